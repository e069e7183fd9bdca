package planner

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// PushLimit: no more rows of each input of a union can be wanted than of the
// union, OFFSET included; nor of the side of a join that the order is of, if each of
// its rows has a partner, or needs none (which a query that runs once makes use of).
//
//	(a UNION ALL b) ORDER BY x LIMIT 10  →  ((a ORDER BY x LIMIT 10) UNION ALL (b …)) ORDER BY x LIMIT 10
//	a LEFT JOIN b ON a.k = b.k ORDER BY a.x LIMIT 10  →  (a ORDER BY x LIMIT 10) LEFT JOIN b … LIMIT 10
func (o *optimizer) limitBelow(in plan.Rel, order []plan.SortKey, limit, offset expr.Expr) plan.Rel {
	n, known := plan.IntConst(limit)
	if !known || !o.on("PushLimit") {
		return nil
	}
	if offset != nil {
		off, ok := plan.IntConst(offset)
		if !ok {
			return nil
		}
		n += off
	}
	if n < 0 {
		return nil
	}
	out := o.limited(in, order, n)
	if out != nil {
		o.fire("PushLimit")
	}
	return out
}

// limited is r with some of its inputs limited to the n rows that matter for its
// first n; nil if there is nothing to limit.
func (o *optimizer) limited(r plan.Rel, order []plan.SortKey, n int64) plan.Rel {
	switch r := r.(type) {
	case *plan.SetOp:
		if r.Kind != plan.Union || !r.All {
			return nil
		}
		changed := false
		out := plan.MapChildren(r, func(c plan.Rel) plan.Rel {
			if t := atMost(c, order, n); t != nil {
				changed = true
				return t
			}
			return c
		})
		if changed {
			return out
		}
	case *plan.Project:
		keys := make([]plan.SortKey, len(order))
		for i, k := range order {
			c, ok := r.Exprs[k.Col].(*expr.Column)
			if !ok {
				return nil
			}
			keys[i] = k
			keys[i].Col = c.Index
		}
		if o.opts.Maintained || volatileProject(r) {
			return nil
		}
		if in := o.limited(r.Input, keys, n); in != nil {
			return plan.WithInput(r, in)
		}
	case *plan.Join:
		if !o.opts.Maintained && len(order) > 0 {
			return o.limitedJoin(r, order, n)
		}
	}
	return nil
}

// atMost is the first n rows of r, nil if it has no more anyway.
func atMost(r plan.Rel, order []plan.SortKey, n int64) plan.Rel {
	if t, ok := r.(*plan.TopK); ok {
		if m, ok := plan.IntConst(t.Limit); ok && m <= n && len(t.Partition) == 0 && !t.WithTies {
			return nil
		}
	}
	if p, ok := r.(*plan.Project); ok && atMost(p.Input, nil, n) == nil {
		return nil
	}
	if plan.MaxOneRow(r) {
		return nil
	}
	return &plan.TopK{Input: r, Order: order, Limit: int64Const(n)}
}

// limitedJoin limits the side of a join by which it is ordered, where each of its
// rows makes at least one of the join.
func (o *optimizer) limitedJoin(j *plan.Join, order []plan.SortKey, n int64) plan.Rel {
	nl := plan.Arity(j.Left)
	if j.Lateral || slices.ContainsFunc(j.On, func(p expr.Expr) bool { return expr.VolatilityOf(p) == expr.Volatile || mayRaise(p) }) {
		return nil
	}
	ofLeft, ofRight := true, true
	right := make([]plan.SortKey, len(order))
	for i, k := range order {
		ofLeft, ofRight = ofLeft && k.Col < nl, ofRight && k.Col >= nl
		right[i] = k
		right[i].Col -= nl
	}
	c := *j
	switch {
	case ofLeft && (j.Kind == plan.JoinLeft || j.Kind == plan.JoinInner && o.hasPartner(j)):
		if c.Left = atMost(j.Left, order, n); c.Left != nil {
			return &c
		}
	case ofRight && (j.Kind == plan.JoinRight || j.Kind == plan.JoinInner && o.hasPartner(swapSides(j))):
		if c.Right = atMost(j.Right, right, n); c.Right != nil {
			return &c
		}
	}
	return nil
}

// hasPartner reports whether each left row of an inner join has a partner, as a
// foreign key promises.
func (o *optimizer) hasPartner(j *plan.Join) bool {
	pairs := columnPairs(j.On, plan.Arity(j.Left))
	if pairs == nil {
		return false
	}
	left := j.Left.Columns()
	if slices.ContainsFunc(pairs, func(p [2]int) bool { return !left[p[0]].NotNull }) {
		return false
	}
	return o.refersTo(j.Left, j.Right, pairs, func(int) bool { return false })
}
