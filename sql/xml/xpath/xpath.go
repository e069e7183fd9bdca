// Package xpath is XPath 1.0 over the trees of package xml: expressions are read
// and evaluated in the ways of libxml2, which PostgreSQL uses.
package xpath

import "github.com/streamdb/streamdb/sql/xml"

// Error is what is wrong with an expression, in libxml2's words.
type Error string

func (e Error) Error() string { return string(e) }

// The errors.
const (
	errExpr      Error = "Invalid expression"
	errPredicate Error = "Invalid predicate"
	errLiteral   Error = "Unfinished literal"
	errUnclosed  Error = "Expected $ for variable reference"
	errVariable  Error = "Undefined variable"
	errType      Error = "Invalid type"
	errArity     Error = "Invalid number of arguments"
	errFunction  Error = "Unregistered function"
	errPrefix    Error = "Undefined namespace prefix"
	errDepth     Error = "Recursion limit exceeded"
	errSize      Error = "Invalid context size"
	errPosition  Error = "Invalid context position"
	errLimit     Error = "Operation limit exceeded"
)

// Kind is the kind of a value.
type Kind uint8

// The kinds.
const (
	Nodes Kind = iota
	Number
	String
	Boolean
)

// Value is the value of an expression. Nodes are in document order.
type Value struct {
	Kind  Kind
	Nodes []*xml.Node
	Num   float64
	Str   string
	Bool  bool
}

// Expr is an expression.
type Expr struct{ root node }

// Compile reads an expression.
func Compile(s string) (*Expr, error) {
	p := &parser{s: s}
	n := p.or()
	if p.err == nil && p.i < len(s) {
		p.err = errExpr
	}
	if p.err != nil {
		return nil, p.err
	}
	return &Expr{n}, nil
}

// maxVisits bounds how many nodes one evaluation may look at: predicates in
// predicates cost powers of the document's size.
const maxVisits = 20_000_000

// Eval evaluates the expression at a node. spaces are the namespaces by prefix.
func (e *Expr) Eval(at *xml.Node, spaces map[string]string) (Value, error) {
	v := &evaluation{spaces: spaces, root: at.Root()}
	out := v.eval(e.root, focus{node: at})
	return out, v.err
}
