package planner

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// WindowToAggregate: aggregates over whole partitions are a GROUP BY joined back.
// That is kept up to date by what changes, and not by the size of the partition:
// a new row that is not the greatest touches nothing but itself. For a query
// that runs once it would only be work done twice.
//
//	SELECT *, max(x) OVER (PARTITION BY k) FROM t
//	  →  SELECT t.*, m FROM t JOIN (SELECT k, max(x) AS m FROM t GROUP BY k) g ON t.k *= g.k
func (o *optimizer) windowAggregate(w *plan.Window) plan.Rel {
	if !o.opts.Maintained || !wholePartitions(w) || !o.on("WindowToAggregate") {
		return w
	}
	o.fire("WindowToAggregate")
	n, g := plan.Arity(w.Input), len(w.Partition)
	in, bind := o.shared(w.Input)
	a := &plan.Aggregate{Input: in, GroupBy: w.Partition}
	for _, e := range w.Partition {
		a.Cols = append(a.Cols, plan.Column{Type: e.Type()})
	}
	for i := range w.Calls {
		c := &w.Calls[i]
		a.Aggs = append(a.Aggs, plan.AggCall{Fn: c.Agg, Args: c.Args, Filter: c.Filter, Typ: c.Typ, Pos: c.Pos})
		a.Cols = append(a.Cols, w.Cols[n+i])
	}
	j := &plan.Join{Kind: plan.JoinInner, Left: in, Right: a}
	for i, e := range w.Partition {
		j.On = append(j.On, plan.Same(e, &expr.Column{Index: n + i, Typ: e.Type()}))
	}
	return bind(project(j, append(span(0, n), span(n+g, n+g+len(w.Calls))...)))
}

// wholePartitions reports whether all calls of a window are aggregates over
// whole partitions that an aggregate without order gives too.
func wholePartitions(w *plan.Window) bool {
	for _, e := range w.Partition {
		if !plan.BitEqual(e.Type()) || expr.VolatilityOf(e) != expr.Immutable {
			return false
		}
	}
	return !slices.ContainsFunc(w.Calls, func(c plan.WindowCall) bool {
		f := c.Frame
		whole := f.Start.Kind == plan.UnboundedPreceding && f.Exclude == plan.ExcludeNone &&
			(f.End.Kind == plan.UnboundedFollowing || len(w.Order) == 0 && f.End.Kind == plan.CurrentRow && f.Unit == plan.FrameRange)
		return c.Agg == nil || c.Agg.Op == expr.AggCollect || !whole
	})
}

// shared makes a relation that is read twice: see lowerer.share.
func (o *optimizer) shared(r plan.Rel) (plan.Rel, func(plan.Rel) plan.Rel) {
	if cheap(r) {
		return r, func(body plan.Rel) plan.Rel { return body }
	}
	o.lastID++
	id := o.lastID
	return localGet(id, r), func(body plan.Rel) plan.Rel { return &plan.Let{ID: id, Value: r, Body: body} }
}
