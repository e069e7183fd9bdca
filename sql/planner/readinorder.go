package planner

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// ReadInOrder: a query of the first rows by the order of a key, perhaps of those
// with some values or within bounds of it, reads them in that order, and only as
// many as it takes until enough have passed its filters.
//
//	SELECT * FROM t WHERE a = 1 ORDER BY b DESC LIMIT 10   (an index by (a, b))
//	  →  Get t lookup=(a = 1) in order of b backward
func (o *optimizer) readsInOrder(r plan.Rel) plan.Rel {
	if o.opts.Indexes == nil || o.opts.Maintained || !o.on("ReadInOrder") {
		return r
	}
	r = plan.MapChildren(r, o.readsInOrder)
	switch n := r.(type) {
	case *plan.Sort:
		if n.Limit != nil && len(n.Order) > 0 {
			return o.readInOrder(r, n.Order)
		}
	case *plan.TopK:
		if n.Limit != nil && len(n.Order) > 0 && len(n.Partition) == 0 && !n.RowNumber {
			return o.readInOrder(r, n.Order)
		}
	}
	return r
}

// readInOrder makes the read below a limit give its rows in the order wanted, if an
// index has it.
func (o *optimizer) readInOrder(r plan.Rel, order []plan.SortKey) plan.Rel {
	input := plan.Input(r)
	g, preds, keys := sortedChain(input, order)
	if g == nil || g.Lookup != nil && !g.Lookup.Ordered && g.Lookup.Unique {
		return r
	}
	fixed := fixedValues(g, preds)
	var best *plan.Lookup
	for _, ix := range o.opts.Indexes(g.ID) {
		if ix.Useless != "" || len(ix.Key) == 0 || !impliesAll(g, preds, ix.Preds) {
			continue
		}
		l := rangeBy(ix, g, preds, withExprs(ix, g, preds, fixed), 1)
		if !inOrder(ix, g, l, keys) {
			continue
		}
		if o := g.Lookup; o != nil && (o.Index != ix.ID || !o.Ordered) && weight(o) > 1 && len(l.Values[0]) == 0 {
			continue // few rows by another index
		}
		if best == nil || weight(l) > weight(best) {
			best = l
		}
	}
	if best == nil {
		return r
	}
	o.fire("ReadInOrder")
	return plan.WithInput(r, plan.LookedUp(input, best))
}

// orderedExpr is what rows are sorted by: an expression over a read.
type orderedExpr struct {
	e plan.SortKey
	x expr.Expr
}

// sortedChain is the read below filters and projections, all conditions on it, and
// an order, over it; nil if there is none, or what is computed is not the same each
// time.
func sortedChain(r plan.Rel, order []plan.SortKey) (g *plan.Get, preds []expr.Expr, keys []orderedExpr) {
	cols := r.Columns()
	for _, k := range order {
		keys = append(keys, orderedExpr{k, plan.RefTo(cols, k.Col)})
	}
	for {
		switch n := r.(type) {
		case *plan.Get:
			return n, preds, keys
		case *plan.Filter:
			preds = append(preds, n.Preds...)
			r = n.Input
		case *plan.Project:
			if slices.ContainsFunc(n.Exprs, func(e expr.Expr) bool { return expr.VolatilityOf(e) == expr.Volatile }) {
				return nil, nil, nil
			}
			over := func(e expr.Expr) expr.Expr { return expr.Substitute(e, n.Exprs) }
			for i := range preds {
				preds[i] = over(preds[i])
			}
			for i := range keys {
				keys[i].x = over(keys[i].x)
			}
			r = n.Input
		default:
			return nil, nil, nil
		}
	}
}

// inOrder reports whether an index's order, from the columns on that l fixes, is
// the one wanted, and says so in l.
func inOrder(ix Index, g *plan.Get, l *plan.Lookup, keys []orderedExpr) bool {
	at := len(l.Values[0])
	first := true
	for _, k := range keys {
		if fixedPart(ix, g, at, k.x) {
			continue // has one value
		}
		if at == len(ix.Key) {
			l.First = !first && ix.Unique && !anyNullable(ix, g) // no two rows have the same key
			return l.First
		}
		is, t := keyPart(ix, g, at)
		if is == nil || !is(k.x) || !sameForm(k.x.Type(), t) {
			return false
		}
		noNulls := notNullPart(ix, g, at) || at == len(l.Values[0]) && (l.Lower != nil || l.Upper != nil)
		if !noNulls && k.e.Desc != k.e.NullsFirst || !first && k.e.Desc != l.Desc {
			return false
		}
		l.Desc, first = k.e.Desc, false
		at++
	}
	l.First = !first
	return l.First
}

// fixedPart reports whether e is one of the first n parts of an index's key.
func fixedPart(ix Index, g *plan.Get, n int, e expr.Expr) bool {
	for i := range n {
		if is, _ := keyPart(ix, g, i); is != nil && is(e) {
			return true
		}
	}
	return false
}

// notNullPart reports whether a part of a key is never NULL.
func notNullPart(ix Index, g *plan.Get, part int) bool {
	k := ix.Key[part]
	at := -1
	if k >= 0 {
		at = sourceAt(g, k)
	}
	return at >= 0 && g.Cols[at].NotNull
}

func anyNullable(ix Index, g *plan.Get) bool {
	for i := range ix.Key {
		if !notNullPart(ix, g, i) {
			return true
		}
	}
	return false
}
