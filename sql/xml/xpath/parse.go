package xpath

import (
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/sql/xml"
)

// maxDepth bounds expressions in expressions.
const maxDepth = 500

// maxBinaries bounds operators.
const maxBinaries = 100_000

// node is a part of an expression.
type node interface{}

type (
	number  float64
	literal string
	binary  struct {
		op   string
		l, r node
	}
	negation struct {
		minus bool
		e     node
	}
	call struct {
		prefix, name string
		args         []node
	}
	variable struct{}
	// filter is an expression with predicates.
	filter struct {
		e     node
		preds []node
	}
	// path is steps from what e gives; nil: from the root, or the node at hand.
	path struct {
		e     node
		root  bool
		steps []step
	}
	step struct {
		axis         string
		test         testKind
		prefix, name string
		preds        []node
	}
)

type testKind uint8

const (
	testName testKind = iota
	testAll           // * and prefix:*
	testNode
	testText
	testComment
	testPI
)

// parser reads an expression; the first error ends it.
type parser struct {
	s     string
	i     int
	err   error
	depth int
	// binaries counts operators: those that follow each other are evaluated one in
	// the other.
	binaries int
}

func (p *parser) fail(e Error) node {
	if p.err == nil {
		p.err = e
	}
	return number(0)
}

func (p *parser) peek() byte { return p.peekAt(0) }

func (p *parser) peekAt(k int) byte {
	if p.err == nil && p.i+k < len(p.s) {
		return p.s[p.i+k]
	}
	return 0
}

func (p *parser) skip() {
	for p.err == nil && p.i < len(p.s) && isBlank(p.s[p.i]) {
		p.i++
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// take reads t if it is next, and the white space behind it.
func (p *parser) take(t string) bool {
	if p.err != nil || !strings.HasPrefix(p.s[p.i:], t) {
		return false
	}
	p.i += len(t)
	p.skip()
	return true
}

// operators reads operands with operators between them, which group to the left.
func (p *parser) operators(operand func() node, ops ...string) node {
	p.skip()
	l := operand()
	p.skip()
next:
	for p.err == nil {
		for _, op := range ops {
			if p.take(op) {
				r := operand()
				if p.binaries++; p.binaries > maxBinaries {
					return p.fail(errDepth)
				}
				l = binary{op, l, r}
				p.skip()
				continue next
			}
		}
		break
	}
	return l
}

func (p *parser) or() node {
	if p.depth++; p.depth > maxDepth {
		return p.fail(errDepth)
	}
	defer func() { p.depth-- }()
	return p.operators(p.and, "or")
}

func (p *parser) and() node      { return p.operators(p.equality, "and") }
func (p *parser) equality() node { return p.operators(p.relational, "=", "!=") }
func (p *parser) relational() node {
	return p.operators(p.additive, "<=", ">=", "<", ">")
}
func (p *parser) additive() node { return p.operators(p.multiplicative, "+", "-") }
func (p *parser) multiplicative() node {
	return p.operators(p.unary, "*", "div", "mod")
}

func (p *parser) unary() node {
	p.skip()
	minus, found := false, false
	for p.take("-") {
		minus, found = !minus, true
	}
	e := p.operators(p.path, "|")
	if found {
		return negation{minus, e}
	}
	return e
}

// isCall reports whether a name that is next is that of a function.
func (p *parser) isCall() (call, name bool) {
	k := nameLen(p.s[p.i:])
	if k == 0 {
		return false, false
	}
	name = true
	n := p.s[p.i : p.i+k]
	if strings.Contains(n, "::") {
		return false, true
	}
	rest := strings.TrimLeft(p.s[p.i+k:], " \t\n\r")
	return strings.HasPrefix(rest, "(") && !nodeTypes[n], true
}

var nodeTypes = map[string]bool{"node": true, "text": true, "comment": true, "processing-instruction": true}

// path reads a location path, or an expression with predicates and steps.
func (p *parser) path() node {
	p.skip()
	c := p.peek()
	primary := c == '$' || c == '(' || isDigit(c) || c == '\'' || c == '"' || c == '.' && isDigit(p.peekAt(1))
	if !primary && c != '*' && c != '/' && c != '@' && c != '.' {
		if p.err != nil {
			return number(0)
		}
		called, name := p.isCall()
		if !name {
			return p.fail(errExpr)
		}
		primary = called
	}
	if !primary {
		return p.location()
	}
	e := p.primary()
	p.skip()
	if preds := p.predicates(); len(preds) > 0 {
		e = filter{e, preds}
	}
	if p.peek() != '/' {
		return e
	}
	steps := p.relative(nil)
	p.skip()
	return path{e: e, steps: steps}
}

var anyNode = step{axis: "descendant-or-self", test: testNode}

// location reads a location path.
func (p *parser) location() node {
	out := path{root: p.peek() == '/'}
	if !out.root {
		out.steps = p.relative(nil)
		return out
	}
	for p.peek() == '/' {
		if p.take("//") {
			out.steps = p.relative(append(out.steps, anyNode))
			continue
		}
		p.i++
		p.skip()
		if c := p.peek(); c == '_' || c == '.' || c == '@' || c == '*' || c|0x20 >= 'a' && c|0x20 <= 'z' {
			out.steps = p.relative(out.steps)
		}
	}
	p.skip()
	return out
}

// relative reads steps.
func (p *parser) relative(steps []step) []step {
	p.skip()
	for first := true; ; first = false {
		switch {
		case p.take("//"):
			steps = append(steps, anyNode)
		case p.take("/"):
		case !first:
			return steps
		}
		steps = p.step(steps)
		p.skip()
		if p.err != nil {
			return steps
		}
	}
}

var axes = map[string]bool{
	"ancestor": true, "ancestor-or-self": true, "attribute": true, "child": true, "descendant": true, "descendant-or-self": true,
	"following": true, "following-sibling": true, "namespace": true, "parent": true, "preceding": true, "preceding-sibling": true, "self": true,
}

func (p *parser) step(steps []step) []step {
	p.skip()
	if p.take("..") {
		return append(steps, step{axis: "parent", test: testNode})
	}
	if p.take(".") {
		return steps
	}
	s := step{axis: "child"}
	name := ""
	if p.peek() != '*' {
		if name = p.ncname(); axes[name] {
			p.skip()
			if p.take("::") {
				s.axis, name = name, ""
			}
		} else if name == "" && p.take("@") {
			s.axis = "attribute"
		}
	}
	p.nodeTest(&s, name)
	p.skip()
	s.preds = p.predicates()
	return append(steps, s)
}

// nodeTest reads a node test, of which a name was read perhaps.
func (p *parser) nodeTest(s *step, name string) {
	p.skip()
	if name == "" && p.take("*") {
		s.test = testAll
		return
	}
	if name == "" {
		if name = p.ncname(); name == "" {
			p.fail(errExpr)
			return
		}
	}
	blank := isBlank(p.peek())
	p.skip()
	if p.take("(") {
		switch name {
		case "node":
			s.test = testNode
		case "text":
			s.test = testText
		case "comment":
			s.test = testComment
		case "processing-instruction":
			s.test = testPI
			if p.peek() != ')' {
				s.name = string(p.literal())
				p.skip()
			}
		default:
			p.fail(errExpr)
			return
		}
		if !p.take(")") {
			p.fail(errExpr)
		}
		return
	}
	s.name = name
	if !blank && p.peek() == ':' {
		p.i++
		s.prefix, s.name = name, ""
		if p.take("*") {
			s.test = testAll
			return
		}
		if s.name = p.ncname(); s.name == "" {
			p.fail(errExpr)
		}
	}
}

func (p *parser) predicates() (out []node) {
	for p.take("[") {
		out = append(out, p.or())
		p.skip()
		if p.err == nil && !p.take("]") {
			p.fail(errPredicate)
		}
	}
	return out
}

// ncname reads a name without colons; "" if there is none.
func (p *parser) ncname() string {
	if p.err != nil {
		return ""
	}
	n := xml.NCNameLen(p.s[p.i:])
	p.i += n
	return p.s[p.i-n : p.i]
}

// nameLen is the length of a name that may have colons.
func nameLen(s string) int {
	n := xml.NCNameLen(s)
	for n > 0 && n < len(s) && s[n] == ':' {
		n++
		n += xml.NCNameLen(s[n:])
	}
	return n
}

func (p *parser) literal() literal {
	q := p.peek()
	if q != '"' && q != '\'' {
		p.fail(errExpr)
		return ""
	}
	k := strings.IndexByte(p.s[p.i+1:], q)
	if k < 0 {
		p.fail(errLiteral)
		return ""
	}
	s := p.s[p.i+1 : p.i+1+k]
	p.i += k + 2
	return literal(s)
}

func (p *parser) primary() node {
	switch c := p.peek(); {
	case c == '$':
		p.i++
		p.skip()
		if n := nameLen(p.s[p.i:]); n > 0 {
			p.i += n
			return variable{}
		}
		return p.fail(errUnclosed)
	case c == '(':
		p.take("(")
		e := p.or()
		p.skip()
		if p.err == nil && !p.take(")") {
			return p.fail(errExpr)
		}
		// A path in parentheses is a set of nodes of its own.
		return filter{e: e}
	case isDigit(c) || c == '.':
		return p.number()
	case c == '"' || c == '\'':
		return p.literal()
	}
	return p.call()
}

func (p *parser) number() node {
	from := p.i
	digits := func() {
		for isDigit(p.peek()) {
			p.i++
		}
	}
	digits()
	if p.peek() == '.' {
		p.i++
		digits()
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.i++
		if c := p.peek(); c == '-' || c == '+' {
			p.i++
		}
		at := p.i
		if digits(); p.i == at {
			f, _ := strconv.ParseFloat(p.s[from:strings.LastIndexAny(p.s[:p.i], "eE")], 64)
			return number(f)
		}
	}
	f, _ := strconv.ParseFloat(p.s[from:p.i], 64)
	return number(f)
}

func (p *parser) call() node {
	c := call{name: p.ncname()}
	if p.peek() == ':' {
		p.i++
		if c.prefix, c.name = c.name, p.ncname(); c.name == "" {
			return p.fail(errExpr)
		}
	}
	p.skip()
	if !p.take("(") {
		return p.fail(errExpr)
	}
	if p.take(")") {
		return c
	}
	for p.err == nil && p.i < len(p.s) { // libxml2 takes the end for a parenthesis
		c.args = append(c.args, p.or())
		p.skip()
		if p.take(")") {
			return c
		}
		if !p.take(",") {
			return p.fail(errExpr)
		}
	}
	return c
}
