package jsonpath

import (
	"strconv"

	"github.com/streamdb/streamdb/decimal"
)

// printer prints nodes; quote appends a string in JSON's notation.
type printer struct {
	dst   []byte
	quote func(dst []byte, s string) []byte
	full  bool // all parentheses
}

// Append appends the path's text; quote appends a string in JSON's notation.
func (p *Path) Append(dst []byte, quote func(dst []byte, s string) []byte) []byte {
	w := printer{dst, quote, true}
	return w.path(p)
}

// AppendShown appends the path's text as PostgreSQL shows it. It does so
// without some parentheses that the path cannot be parsed without.
func (p *Path) AppendShown(dst []byte, quote func(dst []byte, s string) []byte) []byte {
	w := printer{dst, quote, false}
	return w.path(p)
}

func (w *printer) path(p *Path) []byte {
	if p.Strict {
		w.text("strict ")
	}
	w.node(p.Root, false, true)
	return w.dst
}

func (w *printer) text(s string) { w.dst = append(w.dst, s...) }

// priority is how strongly an operator binds.
func (k Kind) priority() int {
	switch k {
	case Or:
		return 0
	case And:
		return 1
	case Equal, NotEqual, Less, Greater, LessOrEqual, GreaterOrEqual, StartsWith:
		return 2
	case Add, Sub:
		return 3
	case Mul, Div, Mod:
		return 4
	case Plus, Minus:
		return 5
	}
	return 6
}

// operand prints an operand of n.
func (w *printer) operand(n, of *Node) { w.node(n, false, n.Kind.priority() <= of.Kind.priority()) }

// node prints a node and its accessors; inner says that it is an accessor,
// parens that an operator needs parentheses.
func (w *printer) node(n *Node, inner, parens bool) {
	for ; n != nil; n, inner, parens = n.Next, true, true {
		switch n.Kind {
		case And, Or, Equal, NotEqual, Less, Greater, LessOrEqual, GreaterOrEqual, Add, Sub, Mul, Div, Mod, StartsWith, LikeRegex, Plus, Minus:
			w.open(parens || w.full)
			w.operator(n)
			w.close(parens || w.full)
		case Not, Exists, IsUnknown:
			parens = w.full && n.Next != nil
			w.open(parens)
			w.predicate(n)
			w.close(parens)
		case Filter:
			w.call("?(", n.Left)
		case Key, AnyKey, AnyLevel:
			if inner {
				w.text(".")
			}
			w.member(n)
		case Subscript:
			w.subscripts(n)
		default:
			if n.Kind.IsMethod() {
				w.method(n)
			} else {
				w.leaf(n)
			}
		}
	}
}

// method prints an item method and its arguments.
func (w *printer) method(n *Node) {
	open := "." + n.Kind.String() + "("
	if n.Right == nil {
		w.call(open, n.Left)
		return
	}
	w.text(open)
	w.node(n.Left, false, false)
	w.call(",", n.Right)
}

func (w *printer) open(parens bool) {
	if parens {
		w.text("(")
	}
}

func (w *printer) close(parens bool) {
	if parens {
		w.text(")")
	}
}

func (w *printer) predicate(n *Node) {
	switch n.Kind {
	case Not:
		w.call("!(", n.Left)
	case Exists:
		w.call("exists (", n.Left)
	default:
		w.call("(", n.Left)
		w.text(" is unknown")
	}
}

func (w *printer) call(open string, arg *Node) {
	w.text(open)
	w.node(arg, false, false)
	w.text(")")
}

func (w *printer) operator(n *Node) {
	if n.Kind == Plus || n.Kind == Minus {
		w.text(n.Kind.String())
		w.operand(n.Left, n)
		return
	}
	w.operand(n.Left, n)
	w.text(" " + n.Kind.String() + " ")
	if n.Kind != LikeRegex {
		w.operand(n.Right, n)
		return
	}
	w.dst = w.quote(w.dst, n.Text)
	if n.Flags != "" {
		w.text(` flag "` + n.Flags + `"`)
	}
}

func (w *printer) member(n *Node) {
	level := func(l uint32) string {
		if l == Deepest {
			return "last"
		}
		return strconv.FormatUint(uint64(l), 10)
	}
	switch {
	case n.Kind == Key:
		w.dst = w.quote(w.dst, n.Text)
	case n.Kind == AnyKey:
		w.text("*")
	case n.From == 0 && n.To == Deepest:
		w.text("**")
	case n.From == n.To:
		w.text("**{" + level(n.From) + "}")
	default:
		w.text("**{" + level(n.From) + " to " + level(n.To) + "}")
	}
}

func (w *printer) subscripts(n *Node) {
	w.text("[")
	for i, r := range n.Subscripts {
		if i > 0 {
			w.text(",")
		}
		w.node(r.From, false, false)
		if r.To != nil {
			w.text(" to ")
			w.node(r.To, false, false)
		}
	}
	w.text("]")
}

func (w *printer) leaf(n *Node) {
	switch n.Kind {
	case Null:
		w.text("null")
	case True:
		w.text("true")
	case False:
		w.text("false")
	case String:
		w.dst = w.quote(w.dst, n.Text)
	case Variable:
		w.text("$")
		w.dst = w.quote(w.dst, n.Text)
	case Number:
		w.open(n.Next != nil)
		w.dst = decimal.AppendText(w.dst, n.Num)
		w.close(n.Next != nil)
	case Root:
		w.text("$")
	case Current:
		w.text("@")
	case Last:
		w.text("last")
	case AnyElem:
		w.text("[*]")
	}
}
