package planner

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// A cluster is a maximal tree of inner joins, with the filters and projections
// between them, seen as a set of leaves and a set of predicates: it is put
// together again in the order that joinorder.go chooses, with every predicate
// where its columns first meet. So a cross join with a WHERE becomes equi-joins,
// and a JOIN … ON (…) any order of joins.
//
// Columns of the leaves are numbered through, leaf after leaf.
type cluster struct {
	o      *optimizer
	leaves []plan.Rel
	base   []int // first column of each leaf, and the end
	cols   []plan.Column
	preds  []expr.Expr
	classes
	pieces  []int         // leaf of each column
	members map[int][]int // columns of each class of two or more, by root
	keyed   [][]int       // of each leaf, its columns that are in such a class
	same    [][2]int      // columns that *= joins
	across  [][2]int      // columns that = joins, of different types
}

// cluster is the inner join j filtered by preds.
func (o *optimizer) cluster(j *plan.Join, preds []expr.Expr) plan.Rel {
	c := &cluster{o: o}
	outs := c.flatten(j)
	if len(preds) > 0 {
		if !o.on("PushFilterIntoJoin") {
			return filter(plan.MapChildren(j, func(r plan.Rel) plan.Rel { return o.push(r, nil) }), preds...)
		}
		o.fire("PushFilterIntoJoin")
	}
	for _, p := range preds {
		c.addPred(expr.Substitute(p, outs))
	}
	outs = c.mergeSelf(outs)
	c.base = append(c.base, len(c.cols))
	c.pieces = make([]int, 0, len(c.cols))
	for i := range c.leaves {
		c.pieces = append(c.pieces, slices.Repeat([]int{i}, c.base[i+1]-c.base[i])...)
	}
	rest := c.place()
	order := c.order(rest)
	out, at := c.build(order, rest)
	exprs := make([]expr.Expr, len(outs))
	for i, e := range outs {
		exprs[i] = expr.Remap(e, func(i int) int { return at[i] })
	}
	return projection(out, exprs, j.Columns())
}

// projection is exprs over r, or r itself if they are just its columns in order.
func projection(r plan.Rel, exprs []expr.Expr, cols []plan.Column) plan.Rel {
	identity := len(exprs) == plan.Arity(r)
	for i, e := range exprs {
		c, ok := e.(*expr.Column)
		identity = identity && ok && c.Index == i
	}
	if identity {
		return r
	}
	return &plan.Project{Input: r, Exprs: exprs, Cols: cols}
}

// flatten adds the leaves and predicates of r to the cluster; the result is r's
// columns as expressions over the cluster's.
func (c *cluster) flatten(r plan.Rel) []expr.Expr {
	switch r := r.(type) {
	case *plan.Join:
		if r.Kind != plan.JoinInner {
			break
		}
		outs := append(c.flatten(r.Left), c.flatten(r.Right)...)
		for _, p := range conjuncts(r.On) {
			c.addPred(expr.Substitute(p, outs))
		}
		return outs
	case *plan.Filter:
		if slices.ContainsFunc(r.Preds, func(p expr.Expr) bool { return expr.VolatilityOf(p) == expr.Volatile }) {
			break
		}
		outs := c.flatten(r.Input)
		for _, p := range conjuncts(r.Preds) {
			c.addPred(expr.Substitute(p, outs))
		}
		return outs
	case *plan.Project:
		if !columnsOnly(r) && !c.movable(r) {
			break
		}
		in := c.flatten(r.Input)
		outs := make([]expr.Expr, len(r.Exprs))
		for i, e := range r.Exprs {
			outs[i] = expr.Substitute(e, in)
		}
		return outs
	}
	cols := r.Columns()
	n := len(c.cols)
	c.leaves = append(c.leaves, r)
	c.base = append(c.base, n)
	c.cols = append(c.cols, cols...)
	outs := make([]expr.Expr, len(cols))
	for i, col := range cols {
		outs[i] = &expr.Column{Index: n + i, Typ: col.Type, Name: col.Name}
	}
	return outs
}

// movable reports whether a projection below a join may be computed above it.
// It must be if it stands between inner joins. Elsewhere it stays, for what it
// computes is mostly narrower than what it reads; but
//
// DelayProjection: what may fail is computed when the rows have been joined, as
// PostgreSQL does, so that a row without a partner raises nothing.
//
//	a JOIN (SELECT k, 1 / v AS x FROM b) USING (k)  →  SELECT …, 1 / v FROM a JOIN b USING (k)
func (c *cluster) movable(r *plan.Project) bool {
	if volatileProject(r) {
		return false
	}
	if overJoin(r.Input) {
		return true
	}
	return raises(r) && c.o.rule("DelayProjection")
}

// overJoin reports whether r is an inner join, perhaps filtered or projected.
func overJoin(r plan.Rel) bool {
	switch r := r.(type) {
	case *plan.Join:
		return r.Kind == plan.JoinInner
	case *plan.Filter:
		return overJoin(r.Input)
	case *plan.Project:
		return overJoin(r.Input)
	}
	return false
}

func volatileProject(r *plan.Project) bool {
	return slices.ContainsFunc(r.Exprs, func(e expr.Expr) bool { return expr.VolatilityOf(e) == expr.Volatile })
}

func (c *cluster) addPred(p expr.Expr) {
	for _, q := range conjuncts([]expr.Expr{p}) {
		if v, null, ok := boolValue(q); ok && v && !null {
			continue
		}
		c.preds = append(c.preds, q)
	}
}

// leavesOf is the set of leaves whose columns e uses.
func (c *cluster) leavesOf(e expr.Expr) leafSet {
	var s leafSet
	expr.Columns(e, func(col *expr.Column) { s = s.with(c.pieces[col.Index]) })
	return s
}

// leafSet is a set of leaves: a bit each, beyond 64 in more words.
type leafSet struct {
	lo   uint64
	more string // sorted leaf numbers ≥ 64 as runes
}

func (s leafSet) with(i int) leafSet {
	if i < 64 {
		s.lo |= 1 << i
		return s
	}
	if s.has(i) {
		return s
	}
	rs := append([]rune(s.more), rune(i))
	slices.Sort(rs)
	s.more = string(rs)
	return s
}

func (s leafSet) has(i int) bool {
	if i < 64 {
		return s.lo>>i&1 != 0
	}
	for _, r := range s.more {
		if int(r) == i {
			return true
		}
	}
	return false
}

// within reports whether all of s is in t.
func (s leafSet) within(t leafSet) bool {
	if s.lo&^t.lo != 0 {
		return false
	}
	for _, r := range s.more {
		if !t.has(int(r)) {
			return false
		}
	}
	return true
}

// place sends the predicates that concern one leaf into it, with what follows
// from equalities, and returns those that concern several.
func (c *cluster) place() (rest []joinPred) {
	c.classes.init(len(c.cols))
	var others []expr.Expr
	for _, p := range c.preds {
		l, r, ok := plan.IsEquality(p)
		if ok {
			a, ok1 := l.(*expr.Column)
			b, ok2 := r.(*expr.Column)
			if ok1 && ok2 && a.Typ.OID == b.Typ.OID && a.Index != b.Index {
				c.union(a.Index, b.Index, p.(*expr.Call).Fn)
				continue
			}
			if ok1 && ok2 && a.Typ.OID != b.Typ.OID {
				c.across = append(c.across, [2]int{a.Index, b.Index}, [2]int{b.Index, a.Index})
			}
		}
		if l, r, ok := plan.IsSame(p); ok {
			a, ok1 := l.(*expr.Column)
			b, ok2 := r.(*expr.Column)
			if ok1 && ok2 && a.Typ == b.Typ {
				c.same = append(c.same, [2]int{a.Index, b.Index}, [2]int{b.Index, a.Index})
			}
		}
		others = append(others, p)
	}
	c.collectClasses()
	down := make([][]expr.Expr, len(c.leaves))
	c.placeEqualities(down)
	for _, p := range others {
		s := c.leavesOf(p)
		at := c.single(s)
		switch {
		case s == (leafSet{}):
			down[0] = append(down[0], p)
		case at >= 0:
			down[at] = append(down[at], c.local(p, at))
			c.infer(p, down)
		default:
			rest = append(rest, joinPred{p, s})
			c.extract(p, s, down)
		}
	}
	for i, r := range c.leaves {
		c.leaves[i] = c.o.push(r, down[i])
	}
	return rest
}

// single is the only leaf of s, or -1.
func (c *cluster) single(s leafSet) int {
	at := -1
	for i := range c.leaves {
		if s.has(i) {
			if at >= 0 {
				return -1
			}
			at = i
		}
	}
	return at
}

// local is e, over the cluster's columns, over those of leaf i.
func (c *cluster) local(e expr.Expr, i int) expr.Expr {
	return expr.Remap(e, func(col int) int { return col - c.base[i] })
}

// placeEqualities puts equalities between columns of one leaf into the leaf.
// (Those between leaves become join keys, one per leaf and class.)
func (c *cluster) placeEqualities(down [][]expr.Expr) {
	for leaf, cols := range c.keyed {
		for i, col := range cols {
			for _, prev := range slices.Backward(cols[:i]) {
				if c.find(prev) == c.find(col) {
					a, b := plan.RefTo(c.cols, prev), plan.RefTo(c.cols, col)
					down[leaf] = append(down[leaf], c.local(c.equality(a, b), leaf))
					break
				}
			}
		}
	}
}

// collectClasses lists the columns of each class, and those of each leaf.
func (c *cluster) collectClasses() {
	c.members = map[int][]int{}
	c.keyed = make([][]int, len(c.leaves))
	for col := range c.cols {
		root := c.find(col)
		if c.op[root] == nil {
			continue
		}
		c.members[root] = append(c.members[root], col)
		leaf := c.pieces[col]
		c.keyed[leaf] = append(c.keyed[leaf], col)
	}
}

func (c *cluster) equality(a, b *expr.Column) expr.Expr {
	return &expr.Call{Fn: c.op[c.find(a.Index)], Args: []expr.Expr{a, b}, Typ: types.Bool}
}

// InferFilters, across an inner join: what is known of a column holds for the
// columns that it is equated to.
//
//	a, b WHERE a.k = b.k AND a.k = 5  →  (a WHERE k = 5), (b WHERE k = 5) WHERE a.k = b.k
func (c *cluster) infer(p expr.Expr, down [][]expr.Expr) {
	if !c.o.on("InferFilters") {
		return
	}
	var col *expr.Column
	expr.Columns(p, func(x *expr.Column) { col = x })
	for _, other := range c.members[c.find(col.Index)] {
		c.inferFor(p, col, other, false, down)
	}
	for _, pair := range c.same {
		if pair[0] == col.Index {
			c.inferFor(p, col, pair[1], true, down)
		}
	}
	for _, pair := range c.across {
		if c.find(pair[0]) != c.find(col.Index) {
			continue
		}
		c.inferFor(p, col, pair[1], false, down)
		for _, other := range c.members[c.find(pair[1])] {
			c.inferFor(p, col, other, false, down)
		}
	}
}

// inferFor adds a predicate on col for another column that is equal to it (or,
// by *=, the same), unless that has it already.
func (c *cluster) inferFor(p expr.Expr, col *expr.Column, other int, same bool, down [][]expr.Expr) {
	leaf, to := c.pieces[other], plan.RefTo(c.cols, other)
	if leaf == c.pieces[col.Index] {
		return
	}
	q := transferred(p, col, to, same)
	if q == nil {
		return
	}
	q = c.local(q, leaf)
	is := func(d expr.Expr) bool { return expr.Equal(d, q) }
	if hasFilter(c.leaves[leaf], q) || slices.ContainsFunc(down[leaf], is) ||
		slices.ContainsFunc(c.preds, func(d expr.Expr) bool {
			return c.leavesOf(d) == leafSet{}.with(leaf) && is(c.local(d, leaf))
		}) {
		return
	}
	c.o.fire("InferFilters")
	down[leaf] = append(down[leaf], q)
}

// ExtractDisjunction: if every branch of an OR says something of one leaf, then
// one of these holds for any row of it that can join.
//
//	(a.x = 1 AND b.y = 2) OR (a.x = 3 AND b.y = 4)  →  … AND (a.x = 1 OR a.x = 3) AND (b.y = 2 OR b.y = 4)
func (c *cluster) extract(p expr.Expr, leaves leafSet, down [][]expr.Expr) {
	or, ok := p.(*expr.Logic)
	if !ok || or.And || c.o.round > 0 || mayRaise(p) || !c.o.on("ExtractDisjunction") {
		return
	}
	for leaf := range c.leaves {
		if !leaves.has(leaf) {
			continue
		}
		only := leafSet{}.with(leaf)
		branches := make([]expr.Expr, 0, len(or.Args))
		for _, b := range or.Args {
			own, _ := split(conjuncts([]expr.Expr{b}), func(q expr.Expr) bool { return c.leavesOf(q) == only })
			if len(own) == 0 {
				break
			}
			branches = append(branches, logicOf(true, slices.Clone(own)))
		}
		if len(branches) == len(or.Args) {
			c.o.fire("ExtractDisjunction")
			down[leaf] = append(down[leaf], c.local(logicOf(false, branches), leaf))
		}
	}
}

// joinPred is a predicate over several leaves.
type joinPred struct {
	e      expr.Expr
	leaves leafSet
}

// build joins the leaves in an order. at maps the cluster's columns to those of
// the result.
func (c *cluster) build(order []int, rest []joinPred) (out plan.Rel, at []int) {
	at = make([]int, len(c.cols))
	width := 0
	addLeaf := func(leaf int) {
		for col := c.base[leaf]; col < c.base[leaf+1]; col++ {
			at[col] = width
			width++
		}
	}
	used := make([]bool, len(rest))
	out = c.leaves[order[0]]
	joined := leafSet{}.with(order[0])
	addLeaf(order[0])
	for _, leaf := range order[1:] {
		keys := c.keys(joined, leaf)
		addLeaf(leaf)
		joined = joined.with(leaf)
		j := &plan.Join{Kind: plan.JoinInner, Left: out, Right: c.leaves[leaf]}
		for _, k := range keys {
			j.On = append(j.On, expr.Remap(k, func(i int) int { return at[i] }))
		}
		for i, p := range rest {
			if !used[i] && p.leaves.within(joined) {
				used[i] = true
				j.On = append(j.On, expr.Remap(p.e, func(i int) int { return at[i] }))
			}
		}
		out = j
	}
	return out, at
}

// keys are the equalities by which a leaf joins the leaves already joined: one
// for each class with columns in both.
func (c *cluster) keys(joined leafSet, leaf int) []expr.Expr {
	var out []expr.Expr
	c.links(joined, leaf, func(other, col int) {
		out = append(out, c.equality(plan.RefTo(c.cols, other), plan.RefTo(c.cols, col)))
	})
	return out
}

// links calls f with the pairs of columns of keys.
func (c *cluster) links(joined leafSet, leaf int, f func(other, col int)) {
	for i, col := range c.keyed[leaf] {
		root := c.find(col)
		if slices.ContainsFunc(c.keyed[leaf][:i], func(p int) bool { return c.find(p) == root }) {
			continue
		}
		for _, other := range c.members[root] {
			if c.pieces[other] != leaf && joined.has(c.pieces[other]) {
				f(other, col)
				break
			}
		}
	}
}

// classes are sets of columns that are equal to each other.
type classes struct {
	parent []int
	op     []*expr.Function // of a root: the equality operator
}

func (c *classes) init(n int) {
	c.parent = make([]int, n)
	c.op = make([]*expr.Function, n)
	for i := range c.parent {
		c.parent[i] = i
	}
}

func (c *classes) find(i int) int {
	for c.parent[i] != i {
		c.parent[i] = c.parent[c.parent[i]]
		i = c.parent[i]
	}
	return i
}

// union merges two classes; the lower column is the root.
func (c *classes) union(a, b int, op *expr.Function) {
	a, b = c.find(a), c.find(b)
	if b < a {
		a, b = b, a
	}
	c.parent[b] = a
	c.op[a] = op
}
