// Package jsonpath is the SQL/JSON path language: its syntax trees, their
// parser and printer (PostgreSQL manual, section 9.16.2).
package jsonpath

import "github.com/streamdb/streamdb/sql/regex"

// Path is a parsed path.
type Path struct {
	Strict bool
	Root   *Node
}

// Kind is the kind of a node.
type Kind uint8

// The kinds: literals and variables, then predicates, arithmetic, and accessors.
const (
	Null Kind = iota
	True
	False
	String
	Number
	Variable
	Root    // $
	Current // @
	Last    // last

	And
	Or
	Not
	IsUnknown
	Equal
	NotEqual
	Less
	Greater
	LessOrEqual
	GreaterOrEqual
	Exists
	StartsWith
	LikeRegex

	Add
	Sub
	Mul
	Div
	Mod
	Plus  // unary
	Minus // unary

	Key
	AnyKey   // .*
	AnyLevel // .**
	AnyElem  // [*]
	Subscript
	Filter
	Type
	Size
	Abs
	Floor
	Ceiling
	Double
	KeyValue
	Bigint
	Boolean
	Decimal
	Integer
	NumberOf
	StringOf
	Datetime
	Date
	Time
	TimeTZ
	Timestamp
	TimestampTZ
)

// Node is an item of a path, with the accessor that is applied to its value.
type Node struct {
	Kind Kind
	Next *Node
	// Left and Right are the operands; Left that of a unary operator, the
	// predicate of a filter, the template of datetime(), the precision of other
	// methods; Right the scale of decimal().
	Left, Right *Node
	Text        string // of strings, names and patterns
	Num         []byte // in the encoding of package decimal
	Subscripts  []Range
	From, To    uint32 // levels of AnyLevel; Deepest for the last
	Flags       string // of LikeRegex, in their order of printing
	Regex       *regex.Regexp
}

// Deepest is the level of the values that have none below.
const Deepest = 1<<32 - 1

// Range is a subscript; To is nil if it is no range.
type Range struct{ From, To *Node }

var names = map[Kind]string{
	And: "&&", Or: "||", Equal: "==", NotEqual: "!=", Less: "<", Greater: ">", LessOrEqual: "<=", GreaterOrEqual: ">=",
	Add: "+", Sub: "-", Mul: "*", Div: "/", Mod: "%", Plus: "+", Minus: "-", StartsWith: "starts with", LikeRegex: "like_regex",
	Type: "type", Size: "size", Abs: "abs", Floor: "floor", Ceiling: "ceiling", Double: "double", KeyValue: "keyvalue",
	Bigint: "bigint", Boolean: "boolean", Decimal: "decimal", Integer: "integer", NumberOf: "number", StringOf: "string",
	Datetime: "datetime", Date: "date", Time: "time", TimeTZ: "time_tz", Timestamp: "timestamp", TimestampTZ: "timestamp_tz",
}

// String is an operator's symbol or a method's name.
func (k Kind) String() string { return names[k] }

// IsPredicate reports whether a node of the kind is a predicate.
func (k Kind) IsPredicate() bool { return k >= And && k <= LikeRegex }

// IsMethod reports whether a node of the kind is an item method.
func (k Kind) IsMethod() bool { return k >= Type }

// last is the end of a chain of accessors.
func (n *Node) last() *Node {
	for n.Next != nil {
		n = n.Next
	}
	return n
}

// HasDates reports whether the path makes dates or times.
func (p *Path) HasDates() bool { return p.Root.any(func(n *Node) bool { return n.Kind >= Datetime }) }

// any reports whether f holds for some node from n on.
func (n *Node) any(f func(n *Node) bool) bool {
	if n == nil {
		return false
	}
	for _, s := range n.Subscripts {
		if s.From.any(f) || s.To.any(f) {
			return true
		}
	}
	return f(n) || n.Left.any(f) || n.Right.any(f) || n.Next.any(f)
}
