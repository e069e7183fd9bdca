package planner

import (
	"cmp"
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// orderPreds puts a filter's cheap conditions before its dear ones, those of one
// cost in the order in which they are written:
//
//	a * b * c > 0 AND d < 7  →  d < 7 AND a * b * c > 0
//
// It is PostgreSQL's order: a condition that fails is not met where a cheaper one
// is not true.
func orderPreds(r plan.Rel) plan.Rel {
	f, ok := r.(*plan.Filter)
	if !ok || len(f.Preds) < 2 {
		return r
	}
	byCost := func(a, b expr.Expr) int { return cmp.Compare(predCost(a), predCost(b)) }
	if slices.IsSortedFunc(f.Preds, byCost) {
		return r
	}
	preds := slices.Clone(f.Preds)
	slices.SortStableFunc(preds, byCost)
	return &plan.Filter{Input: f.Input, Preds: preds}
}

// predCost counts the calls of a condition twice, and the values that it may be
// compared with once.
func predCost(e expr.Expr) int {
	n := 0
	expr.Walk(e, func(x expr.Expr) bool {
		switch x := x.(type) {
		case *expr.Call:
			n += 2
		case *expr.InList:
			n += len(x.List)
		case *expr.ArrayOp:
			n += 10 // as many elements are assumed
		}
		return true
	})
	return n
}
