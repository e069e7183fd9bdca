package render

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow/differential"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// GROUP BY becomes: a projection that computes keys and arguments, the engine's
// Reduce over them, and a projection that makes SQL's aggregates of the
// engine's:
//
//	avg(x)           sum(x) / count(x)
//	min(x)           of numeric and the like: min of (sort key, x), then x
//	GROUP BY numeric keyed by a normal form, shown as the least of the group's
//
// Aggregates that need their whole ordered group (array_agg and others) are
// computed by GroupMap, together with all others of the same GROUP BY.

// grouping collects what one Reduce computes.
type grouping struct {
	b    *builder
	in   coll
	outs []expr.Expr // input columns of Reduce, over the input's stream
	keys []int
	aggs []differential.Agg
}

// column is the place of e, which is over the input collection, in Reduce's input.
func (g *grouping) column(e expr.Expr) int {
	e = g.in.over(e)
	if expr.VolatilityOf(e) != expr.Volatile {
		if at := slices.IndexFunc(g.outs, func(o expr.Expr) bool { return expr.Equal(o, e) }); at >= 0 {
			return at
		}
	}
	g.outs = append(g.outs, e)
	return len(g.outs) - 1
}

// agg is the result of an engine aggregate, as an expression over Reduce's output.
func (g *grouping) agg(a differential.Agg, t types.Type) expr.Expr {
	at := slices.Index(g.aggs, a)
	if at < 0 {
		at = len(g.aggs)
		g.aggs = append(g.aggs, a)
	}
	return &expr.Column{Index: len(g.keys) + at, Typ: t}
}

// aggregate renders GROUP BY.
func (b *builder) aggregate(r *plan.Aggregate) coll {
	need := make([]bool, plan.Arity(r.Input))
	plan.Exprs(r, func(e expr.Expr) {
		expr.Columns(e, func(c *expr.Column) { need[c.Index] = true })
	})
	for i := range r.Aggs {
		if !native(&r.Aggs[i]) {
			if out, ok := b.ranks(r, need); ok {
				return out
			}
			return b.collect(r, need)
		}
	}
	g := &grouping{b: b, in: b.rel(r.Input, need)}
	g.keys = make([]int, len(r.GroupBy))
	outs := make([]expr.Expr, 0, len(r.Cols))
	for i, e := range r.GroupBy {
		g.keys[i] = g.keyColumn(keyExpr(e), i)
	}
	for i, e := range r.GroupBy {
		if plan.BitEqual(e.Type()) {
			outs = append(outs, &expr.Column{Index: i, Typ: e.Type()})
			continue
		}
		// One of the group's values stands for it, not their normal form: where the image
		// is a key too (see the planner's domains), -0 must come out as it went in.
		least := differential.Agg{Op: differential.AggMin, Arg: g.column(e), Filter: -1}
		outs = append(outs, g.agg(least, e.Type()))
	}
	for i := range r.Aggs {
		outs = append(outs, g.lower(&r.Aggs[i]))
	}
	s := b.mapped(g.in, g.outs)
	oks, errs := b.c.Reduce(s, g.keys, g.aggs, differential.ReduceOptions{
		Global:     len(r.GroupBy) == 0,
		AppendOnly: plan.AppendOnly(r.Input),
	})
	b.errs = append(b.errs, errs)
	typs := make([]types.Type, len(oks.Kinds()))
	for i, e := range r.GroupBy {
		typs[i] = e.Type()
	}
	for i, k := range oks.Kinds()[len(g.keys):] {
		typs[len(g.keys)+i] = anyOf(k)
	}
	c := b.base(oks, typs)
	c.outs = outs
	return c
}

// keyColumn is the place of a key in Reduce's input; no two keys share one.
func (g *grouping) keyColumn(e expr.Expr, n int) int {
	at := g.column(e)
	if slices.Contains(g.keys[:n], at) {
		g.outs = append(g.outs, g.outs[at])
		at = len(g.outs) - 1
	}
	return at
}

// anyOf is a type of a physical kind, for columns that only final expressions read.
func anyOf(k columnar.Kind) types.Type {
	switch k {
	case columnar.KindBool:
		return types.Bool
	case columnar.KindInt16:
		return types.Int2
	case columnar.KindInt32:
		return types.Int4
	case columnar.KindInt64:
		return types.Int8
	case columnar.KindFloat32:
		return types.Float4
	case columnar.KindFloat64:
		return types.Float8
	case columnar.KindFixed16:
		return types.UUID
	}
	return types.Bytea
}

// native reports whether the engine maintains an aggregate from deltas alone.
func native(a *plan.AggCall) bool {
	if len(a.Args) > 0 && a.Args[0].Type().OID == types.OIDInterval && a.Fn.Op != expr.AggCount &&
		a.Fn.Op != expr.AggMin && a.Fn.Op != expr.AggMax {
		return false
	}
	switch a.Fn.Op {
	case expr.AggCountStar, expr.AggBoolAnd, expr.AggBoolOr, expr.AggMin, expr.AggMax:
		return true
	case expr.AggFirst, expr.AggLast:
		return len(a.OrderBy) > 0
	case expr.AggBitwise:
		return !a.Distinct || a.Fn.Name != "bit_xor"
	case expr.AggCount:
		return len(a.Args) == 1
	case expr.AggSum, expr.AggAvg:
		// Of equal values that look different, DISTINCT must add one that occurs.
		return !a.Distinct || plan.BitEqual(a.Args[0].Type())
	case expr.AggVariance:
		return !a.Distinct
	}
	return false
}

// lower makes an aggregate of engine aggregates; the result is over Reduce's output.
func (g *grouping) lower(a *plan.AggCall) expr.Expr {
	filter := -1
	if a.Filter != nil {
		filter = g.column(a.Filter)
	}
	one := differential.Agg{Op: differential.AggCount, Arg: -1, Filter: filter}
	if a.Fn.Op == expr.AggCountStar {
		return g.agg(one, types.Int8)
	}
	arg := a.Args[0]
	one.Distinct = a.Distinct
	switch a.Fn.Op {
	case expr.AggCount:
		if a.Distinct {
			arg = keyExpr(arg)
		}
		one.Arg = g.column(arg)
		return g.agg(one, types.Int8)
	case expr.AggSum:
		return g.sum(one, arg, a.Typ)
	case expr.AggAvg:
		return g.average(one, arg, a.Typ)
	case expr.AggFirst, expr.AggLast:
		return g.pick(one, a)
	case expr.AggMin, expr.AggMax:
		one.Distinct = false
		one.Op = differential.AggMin
		if a.Fn.Op == expr.AggMax {
			one.Op = differential.AggMax
		}
		return g.extreme(one, arg, a.Typ)
	case expr.AggVariance:
		return g.variance(a, one)
	}
	one.Arg = g.column(arg)
	one.Op = map[string]differential.AggOp{
		"bool_and": differential.AggBoolAnd, "every": differential.AggBoolAnd, "bool_or": differential.AggBoolOr,
		"bit_and": differential.AggBitAnd, "bit_or": differential.AggBitOr, "bit_xor": differential.AggBitXor,
	}[a.Fn.Name]
	one.Distinct = false
	return g.agg(one, a.Typ)
}

// sum is sum(arg) of type t.
func (g *grouping) sum(a differential.Agg, arg expr.Expr, t types.Type) expr.Expr {
	a.Op, a.Arg, a.Out = differential.AggSum, g.column(arg), t.Kind()
	return g.agg(a, t)
}

// average is sum / count, in the type t of the result.
func (g *grouping) average(a differential.Agg, arg expr.Expr, t types.Type) expr.Expr {
	a.Arg = g.column(arg)
	count := g.agg(a, types.Int8)
	sum := g.sum(a, arg, t)
	avg, err := expr.NewOp("/", sum, g.coerced(count, t), 0)
	if err != nil {
		g.b.fail(err)
		return sum
	}
	return avg
}

// extreme is min or max in SQL's order: where that is not the physical one, of
// the sort key with the value behind it.
func (g *grouping) extreme(a differential.Agg, arg expr.Expr, t types.Type) expr.Expr {
	if !types.NeedsSortKey(arg.Type()) || isFloat(arg.Type()) {
		a.Arg = g.column(arg)
		return g.agg(a, t)
	}
	a.Arg = g.column(pack(arg))
	return unpack(g.agg(a, types.Bytea), t)
}

// pick is first_value or last_value: the value behind the least or greatest key
// of the call's order.
func (g *grouping) pick(one differential.Agg, a *plan.AggCall) expr.Expr {
	one.Op, one.Distinct = differential.AggMin, false
	if a.Fn.Op == expr.AggLast {
		one.Op = differential.AggMax
	}
	one.Arg = g.column(packOrdered(a.OrderBy, a.Args[0]))
	return unpackOrdered(g.agg(one, types.Bytea), a.Typ)
}

// variance is one of the variance family: a final step over sums that the
// engine maintains.
func (g *grouping) variance(a *plan.AggCall, one differential.Agg) expr.Expr {
	if len(a.Args) == 2 {
		return g.regression(a, one)
	}
	arg := a.Args[0]
	one.Arg = g.column(arg)
	parts := []expr.Expr{g.agg(one, types.Int8)}
	if isFloat(arg.Type()) {
		one.Op = differential.AggSxx
		parts = append(parts, g.agg(one, types.Float8))
	} else {
		x := g.coerced(arg, types.Numeric)
		square, err := expr.NewOp("*", x, x, 0)
		if err != nil {
			g.b.fail(err)
			return x
		}
		parts = append(parts, g.sum(one, arg, types.Numeric), g.sum(one, square, types.Numeric))
	}
	return &expr.Call{Fn: expr.VarianceFinal(a.Fn), Args: parts, Typ: a.Typ}
}

// regression is one of the aggregates of pairs (Y, X): a final step over the
// moments of the pairs without NULL.
func (g *grouping) regression(a *plan.AggCall, one differential.Agg) expr.Expr {
	y, x := a.Args[0], a.Args[1]
	pairs := []expr.Expr{&expr.IsNull{Arg: y, Not: true}, &expr.IsNull{Arg: x, Not: true}}
	if a.Filter != nil {
		pairs = append([]expr.Expr{a.Filter}, pairs...)
	}
	one.Filter = g.column(allOf(pairs))
	count := g.agg(one, types.Int8)
	if a.Fn.Name == "regr_count" {
		return count
	}
	moment := func(l, r expr.Expr) expr.Expr {
		m := one
		m.Op, m.Arg, m.Arg2 = differential.AggSxy, g.column(l), g.column(r)
		return g.agg(m, types.Float8)
	}
	return &expr.Call{Fn: expr.RegressionFinal(a.Fn), Typ: a.Typ, Args: []expr.Expr{
		count, g.sum(one, x, types.Float8), g.sum(one, y, types.Float8), moment(x, x), moment(y, y), moment(x, y),
	}}
}

// coerced is e in another type, which it can always be brought to.
func (g *grouping) coerced(e expr.Expr, t types.Type) expr.Expr {
	c, err := expr.Coerce(e, t, expr.CastExplicit, 0)
	if err != nil {
		g.b.fail(err)
		return e
	}
	return c
}
