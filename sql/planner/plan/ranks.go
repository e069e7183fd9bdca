package plan

import "github.com/streamdb/streamdb/sql/expr"

// SameRanks reports whether two aggregates are WITHIN GROUP of one order and look
// at single places of it only, so that they can be kept by one ordered group.
func SameRanks(a, b *AggCall) bool {
	if !ranked(a) || !ranked(b) || a.Distinct || b.Distinct {
		return false
	}
	x, y := a.OrderBy[0], b.OrderBy[0]
	return x.Desc == y.Desc && expr.Equal(x.Expr, y.Expr) && (a.Filter == nil) == (b.Filter == nil) &&
		(a.Filter == nil || expr.Equal(a.Filter, b.Filter))
}

// ranked reports whether an aggregate is computed from the values at places.
func ranked(a *AggCall) bool {
	return a.Fn.Ordered && len(a.OrderBy) == 1 && (a.Fn.Ranks != nil || a.Fn.Name == "mode")
}
