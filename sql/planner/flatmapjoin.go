package planner

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// FlatMapToJoin: the rows of a function that does not depend on the row are computed
// once, and joined by key, where they are equated with something of it. In what is
// maintained the join would keep both sides.
//
//	t, generate_series(1, 9) AS g WHERE t.a = g  →  t JOIN generate_series(1, 9) AS g ON t.a = g
func (o *optimizer) flatMapJoin(r *plan.Filter) plan.Rel {
	f, ok := r.Input.(*plan.FlatMap)
	if !ok || o.opts.Maintained || f.Outer || slices.ContainsFunc(f.Args, func(e expr.Expr) bool { return !isFixed(e) }) || !o.on("FlatMapToJoin") {
		return r
	}
	n := plan.Arity(f.Input)
	in := func(c int) bool { return c < n }
	made := func(c int) bool { return c >= n }
	keyed := slices.ContainsFunc(r.Preds, func(p expr.Expr) bool {
		a, b, ok := plan.IsEquality(p)
		return ok && expr.UsesColumns(a) && expr.UsesColumns(b) && (usesOnly(a, in) && usesOnly(b, made) || usesOnly(a, made) && usesOnly(b, in))
	})
	if !keyed {
		return r
	}
	o.fire("FlatMapToJoin")
	alone := *f
	alone.Input, alone.Cols = unit(), f.Cols[n:]
	return &plan.Join{Kind: plan.JoinInner, Left: f.Input, Right: &alone, On: r.Preds}
}
