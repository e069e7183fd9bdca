package planner

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// Joins and aggregates that keys and foreign keys make needless.

// withoutParent is a join without a side that only tells what a foreign key
// promises, nil if there is none.
//
// RemoveParentJoin: a row refers to just one row of the parent, of which nothing
// but the key is read.
//
//	orders o JOIN customers c ON o.customer = c.id  →  orders WHERE customer IS NOT NULL
func (o *optimizer) withoutParent(j *plan.Join, need columnSet) plan.Rel {
	if !o.on("RemoveParentJoin") || j.Lookup != nil {
		return nil
	}
	nl := plan.Arity(j.Left)
	pairs := columnPairs(j.On, nl)
	if pairs == nil {
		return nil
	}
	if o.refersTo(j.Left, j.Right, pairs, func(col int) bool {
		return len(need) > nl && need[nl+col]
	}) {
		switch j.Kind {
		case plan.JoinInner, plan.JoinLeft, plan.JoinSemi, plan.JoinAnti:
			o.fire("RemoveParentJoin")
			return orphaned(j, pairs, nl)
		}
	}
	if j.Kind != plan.JoinInner {
		return nil
	}
	s := swapSides(j)
	nr := plan.Arity(j.Right)
	for i, p := range pairs {
		pairs[i] = [2]int{p[1], p[0]}
	}
	if !o.refersTo(j.Right, j.Left, pairs, func(col int) bool { return need[col] }) {
		return nil
	}
	o.fire("RemoveParentJoin")
	return project(orphaned(s, pairs, nr), append(span(nr, nr+nl), span(0, nr)...))
}

// orphaned is the join j with only its left side read, whose columns pairs[i][0]
// refer to the right's pairs[i][1].
func orphaned(j *plan.Join, pairs [][2]int, nl int) plan.Rel {
	left := j.Left.Columns()
	var known, unknown []expr.Expr
	for _, p := range pairs {
		if !left[p[0]].NotNull {
			known = append(known, &expr.IsNull{Arg: plan.RefTo(left, p[0]), Not: true})
			unknown = append(unknown, &expr.IsNull{Arg: plan.RefTo(left, p[0])})
		}
	}
	switch j.Kind {
	case plan.JoinSemi:
		return filter(j.Left, known...)
	case plan.JoinAnti:
		return filter(j.Left, logicOf(false, unknown))
	}
	cols := j.Columns()
	out := &plan.Project{Input: j.Left, Cols: cols}
	if j.Kind == plan.JoinInner {
		out.Input = filter(j.Left, known...)
	}
	for i, c := range cols {
		at := slices.IndexFunc(pairs, func(p [2]int) bool { return nl+p[1] == i })
		switch {
		case i < nl:
			out.Exprs = append(out.Exprs, plan.RefTo(left, i))
		case at >= 0 && c.Type.OID == left[pairs[at][0]].Type.OID:
			out.Exprs = append(out.Exprs, plan.RefTo(left, pairs[at][0]))
		default: // not read
			out.Exprs = append(out.Exprs, nullConst(c.Type))
		}
	}
	return out
}

// columnPairs are the columns of both sides that a condition equates, if it does
// nothing else and none comes twice; else nil.
func columnPairs(on []expr.Expr, nl int) [][2]int {
	var pairs [][2]int
	for _, p := range on {
		l, r, ok := plan.IsEquality(p)
		if !ok {
			return nil
		}
		a, ok1 := l.(*expr.Column)
		b, ok2 := r.(*expr.Column)
		if !ok1 || !ok2 || a.Typ.OID != b.Typ.OID {
			return nil
		}
		if a.Index >= nl {
			a, b = b, a
		}
		if a.Index >= nl || b.Index < nl || slices.ContainsFunc(pairs, func(q [2]int) bool { return q[0] == a.Index || q[1] == b.Index-nl }) {
			return nil
		}
		pairs = append(pairs, [2]int{a.Index, b.Index - nl})
	}
	return pairs
}

// refersTo reports whether parent is all rows of a collection, the pairs are a
// foreign key of the rows of child to it, and no other columns of it are needed.
func (o *optimizer) refersTo(child, parent plan.Rel, pairs [][2]int, need func(col int) bool) bool {
	get, at := chainOf(parent)
	if get == nil || get.Lookup != nil || !unfilteredChain(parent) {
		return false
	}
	ccols, pcols := child.Columns(), parent.Columns()
	for i := range pcols {
		if !need(i) {
			continue
		}
		k := slices.IndexFunc(pairs, func(p [2]int) bool { return p[1] == i })
		if k < 0 || !plan.SameBits(ccols[pairs[k][0]].Type, pcols[i].Type) {
			return false
		}
	}
	cols := make([]int, len(pairs))
	for i, p := range pairs {
		cols[i] = p[0]
	}
	from, cols := origin(child, cols)
	if from == nil {
		return false
	}
	return slices.ContainsFunc(from.Refs, func(f plan.Reference) bool {
		if f.To != get.ID || len(f.Cols) != len(pairs) || f.Deferrable && !o.opts.Maintained {
			return false
		}
		for i, p := range pairs {
			k := slices.Index(f.Cols, cols[i])
			if k < 0 || at[p[1]] != f.ToCols[k] {
				return false
			}
		}
		return true
	})
}

// unfilteredChain reports whether there are only projections above a read.
func unfilteredChain(r plan.Rel) bool {
	p, ok := r.(*plan.Project)
	if ok {
		return unfilteredChain(p.Input)
	}
	_, ok = r.(*plan.Get)
	return ok
}

// origin is the read that columns of r come from, all of one row of it, or are
// NULL; and which columns of it they are. Nil: there is none such.
func origin(r plan.Rel, cols []int) (*plan.Get, []int) {
	through := func(es []expr.Expr) []int {
		out := make([]int, len(cols))
		for i, c := range cols {
			x, ok := es[c].(*expr.Column)
			if !ok {
				return nil
			}
			out[i] = x.Index
		}
		return out
	}
	within := func(n int) bool { return !slices.ContainsFunc(cols, func(c int) bool { return c >= n }) }
	switch r := r.(type) {
	case *plan.Get:
		return r, cols
	case *plan.Filter, *plan.Distinct, *plan.TopK, *plan.Window, *plan.FlatMap, *plan.Assert:
		in := plan.Input(r)
		if within(plan.Arity(in)) {
			return origin(in, cols)
		}
	case *plan.Project:
		if in := through(r.Exprs); in != nil {
			return origin(r.Input, in)
		}
	case *plan.Aggregate:
		if r.GroupingSets == nil && within(len(r.GroupBy)) {
			if in := through(r.GroupBy); in != nil {
				return origin(r.Input, in)
			}
		}
	case *plan.Join:
		nl := plan.Arity(r.Left)
		if within(nl) {
			return origin(r.Left, cols)
		}
		right := make([]int, len(cols))
		for i, c := range cols {
			right[i] = c - nl
			if c < nl {
				return nil, nil
			}
		}
		return origin(r.Right, right)
	}
	return nil, nil
}

// mergeSelf is RemoveSelfJoin: two reads of one collection whose rows are equal in
// a key are the same row, read once. outs are expressions over the cluster's
// columns, which get other numbers.
//
//	t a JOIN t b ON a.id = b.id WHERE b.x > 1  →  t WHERE x > 1
func (c *cluster) mergeSelf(outs []expr.Expr) []expr.Expr {
	for c.o.on("RemoveSelfJoin") {
		i, j := c.twins()
		if i < 0 {
			break
		}
		c.o.fire("RemoveSelfJoin")
		outs = c.merge(i, j, outs)
	}
	return outs
}

// twins are two leaves that read the same rows; -1 if there are none.
func (c *cluster) twins() (int, int) {
	var eq classes
	for j, r := range c.leaves {
		g, ok := r.(*plan.Get)
		if !ok || g.Lookup != nil {
			continue
		}
		for i, l := range c.leaves[:j] {
			h, ok := l.(*plan.Get)
			if !ok || h.ID != g.ID || h.Lookup != nil {
				continue
			}
			if eq.parent == nil {
				eq = c.equalColumns()
			}
			for _, key := range plan.Keys(g) {
				same := len(key) > 0
				for _, k := range key {
					at := sourceAt(h, g.Source(k))
					same = same && at >= 0 && eq.find(c.base[i]+at) == eq.find(c.base[j]+k)
				}
				if same {
					return i, j
				}
			}
		}
	}
	return -1, -1
}

// equalColumns are the classes of columns that the predicates equate.
func (c *cluster) equalColumns() classes {
	var eq classes
	eq.init(len(c.cols))
	for _, p := range c.preds {
		if l, r, ok := plan.IsEquality(p); ok {
			a, ok1 := l.(*expr.Column)
			b, ok2 := r.(*expr.Column)
			if ok1 && ok2 && a.Typ.OID == b.Typ.OID && a.Index != b.Index {
				eq.union(a.Index, b.Index, p.(*expr.Call).Fn)
			}
		}
	}
	return eq
}

// sourceAt is the column of g that a column of the collection is, -1 for none.
func sourceAt(g *plan.Get, source int) int {
	for i := range g.Cols {
		if g.Source(i) == source {
			return i
		}
	}
	return -1
}

// merge makes leaf i read what leaf j reads too, and takes j away.
func (c *cluster) merge(i, j int, outs []expr.Expr) []expr.Expr {
	g, h := *c.leaves[i].(*plan.Get), c.leaves[j].(*plan.Get)
	g.Cols, g.Proj = slices.Clone(g.Cols), nil
	for k := range g.Cols {
		g.Proj = append(g.Proj, c.leaves[i].(*plan.Get).Source(k))
	}
	at := make([]int, len(h.Cols)) // column of h → column of g
	for k, col := range h.Cols {
		if at[k] = slices.Index(g.Proj, h.Source(k)); at[k] < 0 {
			at[k] = len(g.Cols)
			g.Cols, g.Proj = append(g.Cols, col), append(g.Proj, h.Source(k))
		}
	}
	for _, k := range h.Keys {
		if k = remapList(k, at); !slices.ContainsFunc(g.Keys, func(o []int) bool { return slices.Equal(o, k) }) {
			g.Keys = append(slices.Clip(g.Keys), k)
		}
	}
	old := append(slices.Clone(c.base), len(c.cols))
	c.leaves[i] = &g
	c.leaves = slices.Delete(c.leaves, j, j+1)
	c.base, c.cols = nil, nil
	for _, r := range c.leaves {
		c.base = append(c.base, len(c.cols))
		c.cols = append(c.cols, r.Columns()...)
	}
	to := make([]int, old[len(old)-1])
	for leaf := range len(old) - 1 {
		for col := old[leaf]; col < old[leaf+1]; col++ {
			switch {
			case leaf == j:
				to[col] = c.base[i] + at[col-old[j]]
			case leaf > j:
				to[col] = c.base[leaf-1] + col - old[leaf]
			default:
				to[col] = c.base[leaf] + col - old[leaf]
			}
		}
	}
	renumber := func(i int) int { return to[i] }
	preds := remapAll(c.preds, renumber)
	c.preds = c.preds[:0:0]
	for _, p := range preds {
		if l, r, ok := plan.IsEquality(p); ok && expr.Equal(l, r) {
			if x, ok := l.(*expr.Column); ok {
				if c.cols[x.Index].NotNull {
					continue
				}
				p = &expr.IsNull{Arg: x, Not: true}
			}
		}
		c.preds = append(c.preds, p)
	}
	return remapAll(outs, renumber)
}

// cleanSemi: RemoveDistinct on the right, of which only counts that there is a
// partner.
//
// SemiToInner: who has at most one partner may be joined with it, in any order.
//
//	a WHERE EXISTS (b WHERE b.id = a.k)  →  SELECT a.* FROM a JOIN b ON b.id = a.k        (b.id is unique)
func (o *optimizer) cleanSemi(r *plan.Join) plan.Rel {
	if right := withoutDistinct(r.Right); right != r.Right && o.rule("RemoveDistinct") {
		c := *r
		c.Right = right
		r = &c
	}
	if r.Kind == plan.JoinAnti || !o.on("SemiToInner") {
		return r
	}
	nl := plan.Arity(r.Left)
	if !o.uniqueBy(r, nl) {
		return r
	}
	o.fire("SemiToInner")
	return project(&plan.Join{Kind: plan.JoinInner, Left: r.Left, Right: r.Right, On: r.On}, span(0, nl))
}

// withoutDistinct is r, whose duplicates do not matter, without what removes them.
func withoutDistinct(r plan.Rel) plan.Rel {
	switch r := r.(type) {
	case *plan.Distinct:
		return withoutDistinct(r.Input)
	case *plan.Project:
		if volatileProject(r) {
			return r
		}
		if in := withoutDistinct(r.Input); in != r.Input {
			return plan.WithInput(r, in)
		}
	case *plan.Filter:
		if in := withoutDistinct(r.Input); in != r.Input {
			return plan.WithInput(r, in)
		}
	}
	return r
}

// plainAggs is r without DISTINCT in aggregates whose arguments differ anyway.
//
//	SELECT a, count(DISTINCT id) FROM t GROUP BY a  →  SELECT a, count(id) …        (id is unique)
func (o *optimizer) plainAggs(r *plan.Aggregate) *plan.Aggregate {
	if !slices.ContainsFunc(r.Aggs, func(a plan.AggCall) bool { return a.Distinct }) || !o.on("RemoveDistinct") {
		return r
	}
	keys := plan.Keys(r.Input)
	groups := columnsIn(r.GroupBy)
	out := *r
	changed := false
	for i := range r.Aggs {
		cols := append(slices.Clip(groups), columnsIn(r.Aggs[i].Args)...)
		if !r.Aggs[i].Distinct || !slices.ContainsFunc(keys, func(k []int) bool { return plan.Subset(k, cols) }) {
			continue
		}
		if !changed {
			out.Aggs, changed = slices.Clone(r.Aggs), true
		}
		out.Aggs[i].Distinct = false
	}
	if !changed {
		return r
	}
	o.fire("RemoveDistinct")
	return &out
}

// columnsIn lists those of es that are columns.
func columnsIn(es []expr.Expr) []int {
	var out []int
	for _, e := range es {
		if c, ok := e.(*expr.Column); ok {
			out = append(out, c.Index)
		}
	}
	return out
}

// RemoveKeyedAggregate: in groups by a key there is one row each, of which the
// aggregates can be computed.
//
//	SELECT id, count(*), max(x), sum(y) FROM t GROUP BY id  →  SELECT id, 1, x, y::bigint FROM t        (id is a key)
func (o *optimizer) keyedAggregate(r *plan.Aggregate) plan.Rel {
	if r.GroupingSets != nil || !o.on("RemoveKeyedAggregate") {
		return nil
	}
	groups := columnsIn(r.GroupBy)
	if !slices.ContainsFunc(plan.Keys(r.Input), func(k []int) bool { return plan.Subset(k, groups) }) {
		return nil
	}
	out := &plan.Project{Input: r.Input, Exprs: slices.Clone(r.GroupBy), Cols: r.Cols}
	for i := range r.Aggs {
		e := ofOneRow(&r.Aggs[i])
		if e == nil {
			return nil
		}
		out.Exprs = append(out.Exprs, e)
	}
	o.fire("RemoveKeyedAggregate")
	return o.node(out)
}

// ofOneRow is an aggregate over one row, nil if it is no simple expression.
func ofOneRow(a *plan.AggCall) expr.Expr {
	one := func(cond expr.Expr, v expr.Expr) expr.Expr {
		return &expr.Case{Whens: []expr.When{{Cond: cond, Then: v}}, Else: int64Const(0), Typ: types.Int8}
	}
	switch {
	case a.Fn.Name == "count" && len(a.Args) == 0:
		if a.Filter != nil {
			return one(a.Filter, int64Const(1))
		}
		return int64Const(1)
	case a.Fn.Name == "count" && len(a.Args) == 1:
		cond := []expr.Expr{&expr.IsNull{Arg: a.Args[0], Not: true}}
		if a.Filter != nil {
			cond = append([]expr.Expr{a.Filter}, cond...)
		}
		return one(logicOf(true, cond), int64Const(1))
	case len(a.Args) != 1:
		return nil
	}
	v := a.Args[0]
	switch a.Fn.Name {
	case "min", "max", "any_value", "bool_and", "bool_or", "every":
	case "sum":
		if !numeric(v.Type()) {
			return nil
		}
	default:
		return nil
	}
	if v.Type().OID != a.Typ.OID {
		c, err := expr.Coerce(v, types.Of(a.Typ.OID), expr.CastImplicit, a.Pos)
		if err != nil {
			return nil
		}
		v = c
	}
	if a.Filter != nil {
		v = &expr.Case{Whens: []expr.When{{Cond: a.Filter, Then: v}}, Typ: a.Typ}
	}
	return v
}
