package textsearch

import "slices"

// Rewriting looks for a query within another and puts a third in its place. For
// that, chains of one operator are one node with many sorted operands.

// rewriter replaces target by subst.
type rewriter struct {
	target, subst *Node
	done          map[*Node]bool // what was put in: not looked at again
}

// Rewrite appends query with target replaced by subst, wherever it is.
func Rewrite(dst []byte, query, target, subst Query) ([]byte, error) {
	if query.Len() == 0 || target.Len() == 0 {
		return append(dst, query...), nil
	}
	tree := NewRewriting(query)
	tree.Replace(target, subst)
	return tree.Append(dst)
}

// Rewriting is a query that is being rewritten.
type Rewriting struct{ root *Node }

// NewRewriting starts with a query.
func NewRewriting(q Query) *Rewriting {
	r := &Rewriting{root: q.Tree()}
	r.prepare()
	return r
}

func (r *Rewriting) prepare() {
	if r.root != nil {
		flatten(r.root)
		sortKids(r.root)
	}
}

// Replace replaces target by subst. It may be called again.
func (r *Rewriting) Replace(target, subst Query) {
	t := target.Tree()
	if r.root == nil || t == nil {
		return
	}
	flatten(t)
	sortKids(t)
	w := rewriter{target: t, subst: subst.Tree(), done: map[*Node]bool{}}
	r.root = w.within(r.root)
}

// Again makes the query ready for another Replace.
func (r *Rewriting) Again() { r.prepare() }

// Append appends the query as it is now.
func (r *Rewriting) Append(dst []byte) ([]byte, error) {
	if r.root != nil {
		toBinary(r.root)
	}
	return AppendQuery(dst, r.root)
}

// flatten joins operands of the same operator into one node.
func flatten(n *Node) {
	var kids []*Node
	for _, k := range n.Kids {
		flatten(k)
		if k.Op == n.Op && (n.Op == OpAnd || n.Op == OpOr) {
			kids = append(kids, k.Kids...)
		} else {
			kids = append(kids, k)
		}
	}
	n.Kids = kids
}

// sortKids sorts the operands, except those whose order matters.
func sortKids(n *Node) {
	for _, k := range n.Kids {
		sortKids(k)
	}
	if len(n.Kids) > 1 && n.Op != OpPhrase {
		slices.SortStableFunc(n.Kids, compareNodes)
	}
}

// toBinary is the opposite of flatten.
func toBinary(n *Node) {
	for _, k := range n.Kids {
		toBinary(k)
	}
	for len(n.Kids) > 2 {
		first := newOp(n.Op, n.Distance, n.Kids[0], n.Kids[1])
		last := n.Kids[len(n.Kids)-1]
		n.Kids = n.Kids[:len(n.Kids)-1]
		n.Kids[0], n.Kids[1] = first, last
	}
}

func clone(n *Node) *Node {
	c := *n
	c.Kids = make([]*Node, len(n.Kids))
	for i, k := range n.Kids {
		c.Kids[i] = clone(k)
	}
	return &c
}

// put makes what stands for the target; nil if that is nothing.
func (w *rewriter) put() *Node {
	if w.subst == nil {
		return nil
	}
	n := clone(w.subst)
	w.done[n] = true
	return n
}

// within rewrites a node and those under it.
func (w *rewriter) within(n *Node) *Node {
	n = w.node(n)
	if n == nil || w.done[n] || n.Op == OpValue {
		return n
	}
	kids := n.Kids[:0]
	for _, k := range n.Kids {
		if k = w.within(k); k != nil {
			kids = append(kids, k)
		}
	}
	n.Kids = kids
	switch {
	case len(kids) == 0:
		return nil
	case len(kids) == 1 && n.Op != OpNot:
		return kids[0]
	}
	return n
}

// node rewrites a node if it is the target, or has the target's operands among
// its own.
func (w *rewriter) node(n *Node) *Node {
	t := w.target
	if w.done[n] || n.Op != t.Op {
		return n
	}
	if n.Op == OpValue || len(n.Kids) == len(t.Kids) {
		if compareNodes(n, t) == 0 {
			return w.put()
		}
		return n
	}
	if len(n.Kids) < len(t.Kids) {
		return n
	}
	var rest []*Node
	j := 0
	for i, k := range n.Kids {
		c := 1
		if j < len(t.Kids) {
			if c = compareNodes(k, t.Kids[j]); c > 0 {
				return n // an operand of the target is missing
			}
		}
		if c == 0 {
			j++
		} else {
			rest = append(rest, n.Kids[i])
		}
	}
	if j < len(t.Kids) {
		return n
	}
	if s := w.put(); s != nil {
		rest = append(rest, s)
	}
	n.Kids = rest
	sortKids(n)
	return n
}
