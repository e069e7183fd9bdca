package planner

import (
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// rejectsNull reports whether p cannot be true when the columns for which side
// holds are all NULL.
func rejectsNull(p expr.Expr, side func(col int) bool) bool {
	if !expr.Any(p, func(n expr.Expr) bool {
		c, ok := n.(*expr.Column)
		return ok && side(c.Index)
	}) {
		return false
	}
	return nullReject{side}.notTrue(p)
}

// nullReject evaluates abstractly over rows in which some columns are NULL.
type nullReject struct{ null func(col int) bool }

// notTrue: e is false or NULL.
func (x nullReject) notTrue(e expr.Expr) bool {
	switch e := e.(type) {
	case *expr.Logic:
		for _, a := range e.Args {
			if x.notTrue(a) == e.And {
				return e.And
			}
		}
		return !e.And
	case *expr.Not:
		return x.notFalse(e.Arg)
	case *expr.IsNull:
		return e.Not && x.isNull(e.Arg)
	case *expr.Const:
		v, null, ok := boolValue(e)
		return ok && (null || !v)
	}
	return x.isNull(e)
}

// notFalse: e is true or NULL.
func (x nullReject) notFalse(e expr.Expr) bool {
	switch e := e.(type) {
	case *expr.Logic:
		for _, a := range e.Args {
			if x.notFalse(a) != e.And {
				return !e.And
			}
		}
		return e.And
	case *expr.Not:
		return x.notTrue(e.Arg)
	case *expr.IsNull:
		return !e.Not && x.isNull(e.Arg)
	case *expr.Const:
		v, null, ok := boolValue(e)
		return ok && (null || v)
	}
	return x.isNull(e)
}

// isNull: e is NULL.
func (x nullReject) isNull(e expr.Expr) bool {
	switch e := e.(type) {
	case *expr.Column:
		return x.null(e.Index)
	case *expr.Const:
		return e.Val.Null(0)
	case *expr.Not:
		return x.isNull(e.Arg)
	case *expr.Call:
		if _, _, same := plan.IsSame(e); same || !e.Fn.Strict {
			return false
		}
		for _, a := range e.Args {
			if x.isNull(a) {
				return true
			}
		}
	case *expr.InList:
		return x.isNull(e.Arg)
	case *expr.ArrayOp:
		return x.isNull(e.Right)
	case *expr.Coalesce:
		for _, a := range e.Args {
			if !x.isNull(a) {
				return false
			}
		}
		return true
	case *expr.Case:
		for _, w := range e.Whens {
			if !x.isNull(w.Then) {
				return false
			}
		}
		return e.Else == nil || x.isNull(e.Else)
	}
	return false
}
