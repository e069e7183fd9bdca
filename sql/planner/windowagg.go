package planner

import (
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
//
// Calls that are not over whole partitions stay a window, over which the join is made.
func (o *optimizer) windowAggregate(w *plan.Window) plan.Rel {
	if !o.opts.Maintained || !plainPartitions(w) || !o.on("WindowToAggregate") {
		return w
	}
	var whole, rest []int // calls
	for i := range w.Calls {
		if wholePartition(w, &w.Calls[i]) {
			whole = append(whole, i)
		} else {
			rest = append(rest, i)
		}
	}
	if len(whole) == 0 {
		return w
	}
	o.fire("WindowToAggregate")
	n, g := plan.Arity(w.Input), len(w.Partition)
	below := w.Input
	if len(rest) > 0 {
		kept := &plan.Window{Input: w.Input, Partition: w.Partition, Order: w.Order, Cols: append([]plan.Column(nil), w.Cols[:n]...)}
		for _, i := range rest {
			kept.Calls = append(kept.Calls, w.Calls[i])
			kept.Cols = append(kept.Cols, w.Cols[n+i])
		}
		below = kept
	}
	in, bind := o.shared(below)
	a := &plan.Aggregate{Input: in, GroupBy: w.Partition}
	for _, e := range w.Partition {
		a.Cols = append(a.Cols, plan.Column{Type: e.Type()})
	}
	m := n + len(rest)
	at := make([]int, len(w.Calls)) // column of the join
	for k, i := range rest {
		at[i] = n + k
	}
	for k, i := range whole {
		c := &w.Calls[i]
		a.Aggs = append(a.Aggs, plan.AggCall{Fn: c.Agg, Args: c.Args, Filter: c.Filter, Typ: c.Typ, Pos: c.Pos})
		a.Cols = append(a.Cols, w.Cols[n+i])
		at[i] = m + g + k
	}
	j := &plan.Join{Kind: plan.JoinInner, Left: in, Right: a}
	for i, e := range w.Partition {
		j.On = append(j.On, plan.Same(e, &expr.Column{Index: m + i, Typ: e.Type()}))
	}
	return bind(project(j, append(span(0, n), at...)))
}

// plainPartitions reports whether the partitions of a window can be found again by
// their keys.
func plainPartitions(w *plan.Window) bool {
	for _, e := range w.Partition {
		if !plan.BitEqual(e.Type()) || expr.VolatilityOf(e) != expr.Immutable {
			return false
		}
	}
	return true
}

// wholePartition reports whether a call of a window is an aggregate over whole
// partitions that an aggregate without order gives too.
func wholePartition(w *plan.Window, c *plan.WindowCall) bool {
	f := c.Frame
	whole := f.Start.Kind == plan.UnboundedPreceding && f.Exclude == plan.ExcludeNone &&
		(f.End.Kind == plan.UnboundedFollowing || len(w.Order) == 0 && f.End.Kind == plan.CurrentRow && f.Unit == plan.FrameRange)
	return c.Agg != nil && c.Agg.Op != expr.AggCollect && whole
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
