package xpath

import (
	"math"
	"slices"

	"github.com/streamdb/streamdb/sql/xml"
)

// focus is the node at hand, its place in the list that it comes from, and the
// length of that.
type focus struct {
	node      *xml.Node
	pos, size int
}

// evaluation evaluates; the first error ends it.
type evaluation struct {
	spaces map[string]string
	root   *xml.Node
	visits int
	err    error
}

func (v *evaluation) fail(e Error) Value {
	if v.err == nil {
		v.err = e
	}
	return Value{}
}

func boolean(b bool) Value    { return Value{Kind: Boolean, Bool: b} }
func numeric(f float64) Value { return Value{Kind: Number, Num: f} }
func text(s string) Value     { return Value{Kind: String, Str: s} }

func (v *evaluation) eval(n node, at focus) Value {
	if v.err != nil {
		return Value{}
	}
	switch n := n.(type) {
	case number:
		return numeric(float64(n))
	case literal:
		return text(string(n))
	case binary:
		return v.binary(n, at)
	case negation:
		x := v.eval(n.e, at).Number()
		if n.minus {
			x = -x
		}
		return numeric(x)
	case call:
		return v.call(n, at)
	case filter:
		return v.filter(n, at)
	case path:
		return v.path(n, at)
	}
	return v.fail(errVariable)
}

func (v *evaluation) binary(n binary, at focus) Value {
	l := v.eval(n.l, at)
	switch {
	case v.err != nil:
		return Value{}
	case n.op == "or" && l.Truth(), n.op == "and" && !l.Truth():
		return boolean(n.op == "or")
	}
	r := v.eval(n.r, at)
	if v.err != nil {
		return Value{}
	}
	switch n.op {
	case "or", "and":
		return boolean(r.Truth())
	case "=", "!=":
		return boolean(equal(l, r, n.op == "!="))
	case "<", "<=", ">", ">=":
		return boolean(less(l, r, n.op))
	case "+":
		return numeric(l.Number() + r.Number())
	case "-":
		return numeric(l.Number() - r.Number())
	case "*":
		return numeric(l.Number() * r.Number())
	case "div":
		return numeric(l.Number() / r.Number())
	case "mod":
		return numeric(math.Mod(l.Number(), r.Number()))
	}
	if l.Kind != Nodes || r.Kind != Nodes {
		return v.fail(errType)
	}
	return Value{Nodes: inOrder(append(slices.Clone(l.Nodes), r.Nodes...))}
}

// filter applies predicates to a set of nodes in document order.
func (v *evaluation) filter(n filter, at focus) Value {
	out := v.eval(n.e, at)
	if len(n.preds) == 0 || v.err != nil {
		return out
	}
	if out.Kind != Nodes {
		return v.fail(errType)
	}
	for _, p := range n.preds {
		out.Nodes = v.keep(slices.Clone(out.Nodes), p)
	}
	return out
}

// keep keeps the nodes for which a predicate holds.
func (v *evaluation) keep(nodes []*xml.Node, pred node) []*xml.Node {
	if k, ok := pred.(number); ok {
		if i := int(k); float64(i) == float64(k) && i >= 1 && i <= len(nodes) {
			return nodes[i-1 : i]
		}
		return nil
	}
	out, size := nodes[:0], len(nodes)
	for i, n := range nodes {
		r := v.eval(pred, focus{n, i + 1, size})
		if v.err != nil {
			return nil
		}
		if r.Kind == Number && r.Num == float64(i+1) || r.Kind != Number && r.Truth() {
			out = append(out, n)
		}
	}
	return out
}

func (v *evaluation) path(n path, at focus) Value {
	nodes := []*xml.Node{at.node}
	switch {
	case n.e != nil:
		e := v.eval(n.e, at)
		if v.err != nil {
			return Value{}
		}
		if len(n.steps) == 0 {
			return e
		}
		if e.Kind != Nodes {
			return v.fail(errType)
		}
		nodes = e.Nodes
	case n.root:
		nodes = []*xml.Node{v.root}
	}
	for _, s := range n.steps {
		uri := ""
		if s.prefix != "" {
			var ok bool
			if uri, ok = v.space(s.prefix); !ok {
				return v.fail(errPrefix)
			}
		}
		var out []*xml.Node
		for _, c := range nodes {
			found := axis(c, s.axis, func(x *xml.Node) bool {
				v.visits++
				return s.matches(x, uri)
			})
			if v.visits > maxVisits {
				return v.fail(errLimit)
			}
			for _, p := range s.preds {
				found = v.keep(found, p)
			}
			out = append(out, found...)
		}
		if v.err != nil {
			return Value{}
		}
		nodes = inOrder(out)
	}
	return Value{Nodes: nodes}
}

// space is the namespace of a prefix.
func (v *evaluation) space(prefix string) (string, bool) {
	if prefix == "xml" {
		return xml.URI, true
	}
	uri, ok := v.spaces[prefix]
	return uri, ok
}

// matches reports whether a node passes the test of the step.
func (s *step) matches(n *xml.Node, uri string) bool {
	principal := xml.ElementNode
	switch s.axis {
	case "attribute":
		principal = xml.AttributeNode
	case "namespace":
		principal = xml.NamespaceNode
	}
	switch s.test {
	case testNode:
		return n.Kind != xml.DoctypeNode && n.Kind != xml.EntityRefNode
	case testText:
		return n.Kind == xml.TextNode || n.Kind == xml.CDATANode
	case testComment:
		return n.Kind == xml.CommentNode
	case testPI:
		return n.Kind == xml.PINode && (s.name == "" || s.name == n.Local)
	case testAll:
		return n.Kind == principal && (s.prefix == "" || n.URI == uri)
	}
	return n.Kind == principal && n.Local == s.name && n.URI == uri
}

// compare is the order of nodes in their document.
func compare(a, b *xml.Node) int {
	if c := a.Order() - b.Order(); c != 0 {
		return c
	}
	switch {
	case a.Kind != xml.NamespaceNode && b.Kind == xml.NamespaceNode:
		return -1
	case a.Kind == xml.NamespaceNode && b.Kind != xml.NamespaceNode:
		return 1
	case a.Local < b.Local:
		return -1
	case a.Local > b.Local:
		return 1
	}
	return 0
}

// inOrder puts nodes in document order, each once.
func inOrder(nodes []*xml.Node) []*xml.Node {
	if !slices.IsSortedFunc(nodes, compare) {
		slices.SortFunc(nodes, compare)
	}
	return slices.CompactFunc(nodes, func(a, b *xml.Node) bool { return compare(a, b) == 0 })
}
