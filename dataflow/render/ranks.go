package render

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// A GROUP BY whose aggregates are all WITHIN GROUP of one order needs of a large
// group no more than the rows at a few places (see differential.Ranked). Groups
// are kept in the order of the aggregates, with NULL for what does not count;
// small ones are computed whole, by the same kernels.

// ranks renders such a GROUP BY; ok is false if r is not one.
func (b *builder) ranks(r *plan.Aggregate, need []bool) (out coll, ok bool) {
	if b.c.Once() || !oneOrder(r) {
		return coll{}, false
	}
	g := &grouping{b: b, in: b.rel(r.Input, need)}
	g.keys = make([]int, len(r.GroupBy))
	for i, e := range r.GroupBy {
		g.keys[i] = g.keyColumn(keyExpr(e), i)
	}
	f := &collectFunc{ctx: b.opts.Context, watch: b.opts.watch()}
	first := r.Aggs[0].OrderBy[0]
	counted := func(e expr.Expr) int {
		if c := r.Aggs[0].Filter; c != nil {
			e = &expr.Case{Whens: []expr.When{{Cond: c, Then: e}}, Typ: e.Type()}
		}
		return g.column(e)
	}
	order := differential.Order{Col: counted(sortExpr(first.Expr)), Desc: first.Desc}
	for i := range r.Aggs {
		a := &r.Aggs[i]
		c := collectCall{filter: -1, call: expr.AggregateCall{Fn: a.Fn, Args: exprTypes(a.Args), Typ: a.Typ}}
		last := len(a.Args) - 1
		for _, e := range a.Args[:last] {
			c.args = append(c.args, g.column(e))
		}
		c.args = append(c.args, counted(a.Args[last]))
		f.calls = append(f.calls, c)
	}
	for _, e := range r.GroupBy {
		f.shown = append(f.shown, g.column(e))
	}
	f.typs = typesOf(r.Cols)
	s := b.mapped(g.in, g.outs)
	o := differential.GroupMapOptions{Order: []differential.Order{order}, Global: len(r.GroupBy) == 0, Ranked: &differential.Ranked{Apply: f.ranked}}
	o.Ranked.Mode = slices.ContainsFunc(r.Aggs, func(a plan.AggCall) bool { return a.Fn.Ranks == nil })
	oks, errs := b.c.GroupMap(s, g.keys, kindsOf(r.Cols), f, o)
	b.errs = append(b.errs, errs)
	return b.base(oks, f.typs), true
}

// oneOrder reports whether all aggregates look at places of the same order.
func oneOrder(r *plan.Aggregate) bool {
	for i := range r.Aggs {
		if !plan.SameRanks(&r.Aggs[0], &r.Aggs[i]) {
			return false
		}
	}
	return len(r.Aggs) > 0
}

// ranked is Apply of one large group.
func (f *collectFunc) ranked(v *differential.RankedView, emit, emitErr func(*dataflow.Delta)) {
	out := columnar.Batch{N: 1, Cols: make([]*columnar.Vec, len(f.typs))}
	first := v.First()
	for i, c := range f.shown {
		out.Cols[i] = first.Cols[c]
	}
	var failed []expr.RowError
	for i := range f.calls {
		c := &f.calls[i]
		b := columnar.NewBuilder(c.call.Typ.Kind(), 1)
		if err := c.rank(v, &first, b); err != nil {
			failed = append(failed, expr.RowError{Row: 0, Err: pgerror.As(err)})
		}
		if b.Len() == 0 {
			b.Null()
		}
		out.Cols[len(f.shown)+i] = b.Build()
	}
	emitGroups(&out, failed, emit, emitErr)
}

// rank appends the call's value for one large group.
func (c *collectCall) rank(v *differential.RankedView, first *columnar.Batch, out *columnar.Builder) error {
	if first.N == 0 {
		return nil
	}
	value := c.args[len(c.args)-1]
	k := c.call.Fn.Ranks
	if k == nil {
		if b := v.Mode(); b.N > 0 {
			out.AppendFrom(b.Cols[value], 0)
		}
		return nil
	}
	direct := first.Cols[c.args[0]]
	places, err := k.Places(direct, 0, v.Count())
	if err != nil {
		return err
	}
	b := v.Rows(places)
	return k.Value(&c.call, direct, 0, v.Count(), b.Cols[value], out)
}
