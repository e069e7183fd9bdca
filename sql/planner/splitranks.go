package planner

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// SplitRanks: aggregates WITHIN GROUP of one order are a GROUP BY of their own,
// which looks at a few places of a group, and so not at all of it when one row
// changes. For a query that runs once it would only be more work.
//
//	SELECT k, count(*), percentile_disc(0.5) WITHIN GROUP (ORDER BY x) FROM t GROUP BY k
//	  →  … (SELECT k, count(*) FROM t GROUP BY k) JOIN (SELECT k, percentile_disc … GROUP BY k) ON k *= k
func (o *optimizer) splitRanks(a *plan.Aggregate) plan.Rel {
	if !o.opts.Maintained || a.GroupingSets != nil || !o.on("SplitRanks") {
		return a
	}
	parts, split := rankParts(a)
	if !split {
		return a
	}
	for _, e := range a.GroupBy {
		if !plan.BitEqual(e.Type()) || expr.VolatilityOf(e) != expr.Immutable {
			return a
		}
	}
	o.fire("SplitRanks")
	in, bind := o.shared(a.Input)
	g := len(a.GroupBy)
	at := make([]int, len(a.Aggs)) // column of the join
	var out plan.Rel
	width := 0
	for _, p := range parts {
		x := &plan.Aggregate{Input: in, GroupBy: a.GroupBy, Cols: append([]plan.Column(nil), a.Cols[:g]...)}
		for k, i := range p {
			x.Aggs = append(x.Aggs, a.Aggs[i])
			x.Cols = append(x.Cols, a.Cols[g+i])
			at[i] = width + g + k
		}
		if out == nil {
			out = x
		} else {
			j := &plan.Join{Kind: plan.JoinInner, Left: out, Right: x}
			for i, e := range a.GroupBy {
				j.On = append(j.On, plan.Same(&expr.Column{Index: i, Typ: e.Type()}, &expr.Column{Index: width + i, Typ: e.Type()}))
			}
			out = j
		}
		width += g + len(p)
	}
	return bind(project(out, append(span(0, g), at...)))
}

// rankParts are the aggregates of each order, and the others; split is whether
// there are several parts of which one is of an order.
func rankParts(a *plan.Aggregate) (parts [][]int, split bool) {
	var others []int
	for i := range a.Aggs {
		c := &a.Aggs[i]
		if !plan.SameRanks(c, c) {
			others = append(others, i)
			continue
		}
		k := slices.IndexFunc(parts, func(p []int) bool { return plan.SameRanks(&a.Aggs[p[0]], c) })
		if k < 0 {
			k = len(parts)
			parts = append(parts, nil)
		}
		parts[k] = append(parts[k], i)
	}
	some := len(parts) > 0
	if len(others) > 0 {
		parts = append([][]int{others}, parts...)
	}
	return parts, some && len(parts) > 1
}
