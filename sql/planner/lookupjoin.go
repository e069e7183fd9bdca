package planner

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

const (
	// smallRows is how many rows the first side of a lookup join may have.
	smallRows = 256
	// scanRows is from how many rows on a collection is worth not to scan.
	scanRows = 2000
)

// LookupJoin: a query that runs once reads of a large collection only what a
// small other side joins with, if there is an index by the join's key. Inner
// joins may change their sides for it.
//
//	(o WHERE o.id = 7) JOIN c ON c.id = o.customer  →  o first, then c by the customers found
func (o *optimizer) lookupJoins(r plan.Rel) plan.Rel {
	if o.opts.Indexes == nil || o.opts.Rows == nil || !o.on("LookupJoin") {
		return r
	}
	r = plan.MapChildren(r, o.lookupJoins)
	j, ok := r.(*plan.Join)
	if !ok {
		return r
	}
	switch j.Kind {
	case plan.JoinInner, plan.JoinLeft, plan.JoinSemi, plan.JoinAnti:
	default:
		return r
	}
	if l := o.joinLookup(j); l != nil {
		o.fire("LookupJoin")
		c := *j
		c.Lookup = l
		return &c
	}
	if j.Kind != plan.JoinInner {
		return r
	}
	s := swapSides(j)
	if l := o.joinLookup(s); l != nil {
		o.fire("LookupJoin")
		s.Lookup = l
		nl, nr := plan.Arity(j.Left), plan.Arity(j.Right)
		return project(s, append(span(nr, nr+nl), span(0, nr)...))
	}
	return r
}

// swapSides is an inner join the other way round.
func swapSides(j *plan.Join) *plan.Join {
	nl, nr := plan.Arity(j.Left), plan.Arity(j.Right)
	return &plan.Join{Kind: j.Kind, Left: j.Right, Right: j.Left, On: remapAll(j.On, func(i int) int {
		if i < nl {
			return i + nr
		}
		return i - nl
	})}
}

// joinLookup is how j can look up its right side, nil if it cannot or should not.
func (o *optimizer) joinLookup(j *plan.Join) *plan.JoinLookup {
	get, at := chainOf(j.Right)
	if get == nil || !worseThanKeys(get.Lookup) || o.opts.Rows(get.ID) < scanRows || !o.small(j.Left) || readsLocal(j.Left) {
		return nil
	}
	nl := plan.Arity(j.Left)
	values := map[int]expr.Expr{} // column of the collection → its value over the left
	for _, p := range j.On {
		l, r, ok := plan.IsEquality(p)
		if !ok {
			continue
		}
		if c, ok := l.(*expr.Column); ok && c.Index >= nl {
			l, r = r, l
		}
		c, ok := r.(*expr.Column)
		if !ok || c.Index < nl || at[c.Index-nl] < 0 || !usesOnly(l, func(i int) bool { return i < nl }) ||
			!expr.UsesColumns(l) || mayRaise(l) || expr.VolatilityOf(l) == expr.Volatile {
			continue
		}
		if v := widened(l, c.Typ); v != nil {
			values[at[c.Index-nl]] = v
		}
	}
	var best *plan.JoinLookup
	for _, ix := range o.opts.Indexes(get.ID) {
		if len(ix.Key) == 0 || len(ix.Preds) > 0 || ix.Useless != "" || ix.Unequal {
			continue
		}
		l := &plan.JoinLookup{Index: ix.ID, Key: ix.Key, Unique: ix.Unique}
		for _, k := range ix.Key {
			if v, ok := values[k]; ok {
				l.Values = append(l.Values, v)
			}
		}
		if len(l.Values) == len(ix.Key) && (best == nil || ix.Unique && !best.Unique) {
			best = l
		}
	}
	return best
}

// worseThanKeys says whether what a read looks up may be so much that the keys of a
// join are better: nothing, or half a range.
func worseThanKeys(l *plan.Lookup) bool {
	return l == nil || l.Ordered && !l.First && len(l.Values[0]) == 0 && (l.Lower == nil || l.Upper == nil)
}

// widened is e as a value of an integer or other type, nil if that could lose
// or confuse values.
func widened(e expr.Expr, t types.Type) expr.Expr {
	if e.Type().OID == t.OID {
		return e
	}
	wide := map[types.OID]int{types.OIDInt2: 1, types.OIDInt4: 2, types.OIDInt8: 3}
	if f, w := wide[e.Type().OID], wide[t.OID]; f == 0 || f > w {
		return nil
	}
	c, err := expr.Coerce(e, types.Of(t.OID), expr.CastImplicit, 0)
	if err != nil {
		return nil
	}
	return c
}

// chainOf is the read below filters and projections, and where its
// collection's columns are among r's: at[i] is the column of the collection that
// column i is, -1 for a computed one.
func chainOf(r plan.Rel) (get *plan.Get, at []int) {
	switch r := r.(type) {
	case *plan.Get:
		at = make([]int, len(r.Cols))
		for i := range at {
			at[i] = r.Source(i)
		}
		return r, at
	case *plan.Filter:
		return chainOf(r.Input)
	case *plan.Project:
		get, in := chainOf(r.Input)
		at = make([]int, len(r.Exprs))
		for i, e := range r.Exprs {
			at[i] = -1
			if c, ok := e.(*expr.Column); ok && get != nil {
				at[i] = in[c.Index]
			}
		}
		return get, at
	}
	return nil, nil
}

// small reports whether r is thought to have few rows, at little cost.
func (o *optimizer) small(r plan.Rel) bool {
	switch r := r.(type) {
	case *plan.Constant:
		return r.Rows.N <= smallRows
	case *plan.Get:
		if l := r.Lookup; l != nil && (!l.Ordered || len(l.Values[0]) > 0 || l.Lower != nil && l.Upper != nil) {
			return true
		}
		n := o.opts.Rows(r.ID)
		return n >= 0 && n <= smallRows
	case *plan.Filter:
		return o.small(r.Input)
	case *plan.Project:
		return o.small(r.Input)
	case *plan.Distinct:
		return o.small(r.Input)
	case *plan.Window:
		return o.small(r.Input)
	case *plan.TopK:
		n, ok := plan.IntConst(r.Limit)
		return ok && n <= smallRows && len(r.Partition) == 0 && !r.WithTies || o.small(r.Input)
	case *plan.Aggregate:
		return o.small(r.Input)
	case *plan.Assert:
		return o.small(r.Input)
	case *plan.Join:
		return r.Lookup != nil || (r.Kind == plan.JoinSemi || r.Kind == plan.JoinAnti) && o.small(r.Left) && o.small(r.Right)
	}
	return false
}

// readsLocal reports whether r reads a binding that is made outside of it.
func readsLocal(r plan.Rel) bool {
	found := false
	var bound []int
	plan.Walk(r, func(n plan.Rel) bool {
		switch n := n.(type) {
		case *plan.Let:
			bound = append(bound, n.ID)
		case *plan.Recursive:
			bound = append(bound, n.IDs...)
		case *plan.LocalGet:
			found = found || !slices.Contains(bound, n.ID)
		}
		return !found
	})
	return found
}
