package render

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// The engine compares rows by their bits. Where SQL's equality is coarser,
// operators are keyed by a normal form (expr.KeyNorm); where SQL's order is
// another, by sort keys (expr.SortKey).

// keyExpr is an expression that has equal bits where e is equal in SQL.
func keyExpr(e expr.Expr) expr.Expr {
	if plan.BitEqual(e.Type()) {
		return e
	}
	return expr.KeyNorm(e)
}

// harmonized gives the two sides of an equality one type whose bits can be
// compared; ok is false if the engine cannot decide this equality by itself.
func harmonized(l, r expr.Expr) (a, b expr.Expr, ok bool) {
	lt, rt := l.Type(), r.Type()
	switch {
	case lt == rt:
		return keyExpr(l), keyExpr(r), true
	case lt.OID == rt.OID:
		return expr.KeyNorm(l), expr.KeyNorm(r), true
	case isText(lt) && isText(rt):
		return l, r, true
	}
	to := types.Int8
	switch {
	case isInt(lt) && isInt(rt):
	case isFloat(lt) && isFloat(rt):
		to = types.Float8
	case (lt.OID == types.OIDDate && rt.OID == types.OIDTimestamp) || (lt.OID == types.OIDTimestamp && rt.OID == types.OIDDate):
		to = types.Timestamp
	default:
		return nil, nil, false
	}
	a, err := expr.Coerce(l, to, expr.CastImplicit, 0)
	if err != nil {
		return nil, nil, false
	}
	b, err = expr.Coerce(r, to, expr.CastImplicit, 0)
	if err != nil {
		return nil, nil, false
	}
	return keyExpr(a), keyExpr(b), true
}

func isText(t types.Type) bool {
	return t.OID == types.OIDText || t.OID == types.OIDVarchar || t.OID == types.OIDName
}

func isInt(t types.Type) bool {
	return t.OID == types.OIDInt2 || t.OID == types.OIDInt4 || t.OID == types.OIDInt8
}

func isFloat(t types.Type) bool {
	return t.OID == types.OIDFloat4 || t.OID == types.OIDFloat8
}

// joinKey is one pair of key expressions, each over its own side.
type joinKey struct {
	left, right expr.Expr
	nullSafe    bool // NULL equals NULL
}

// condition is a join condition taken apart.
type condition struct {
	keys     []joinKey
	left     []expr.Expr // over the left side only
	right    []expr.Expr // over the right side only
	residual []expr.Expr // over both
}

// condition takes ON apart; nl is the number of left columns.
func splitCondition(on []expr.Expr, nl int) condition {
	var c condition
	for _, p := range on {
		if k, ok := equiKey(p, nl); ok {
			c.keys = append(c.keys, k)
			continue
		}
		l, r := sidesOf(p, nl)
		switch {
		case l && r:
			c.residual = append(c.residual, p)
		case r:
			c.right = append(c.right, toRight(p, nl))
		default:
			c.left = append(c.left, p)
		}
	}
	return c
}

// sidesOf tells which sides of a join an expression uses.
func sidesOf(e expr.Expr, nl int) (left, right bool) {
	expr.Columns(e, func(c *expr.Column) {
		left = left || c.Index < nl
		right = right || c.Index >= nl
	})
	return left, right
}

func toRight(e expr.Expr, nl int) expr.Expr {
	return expr.Remap(e, func(i int) int { return i - nl })
}

// equiKey makes a key of an equality between the sides: =, IS NOT DISTINCT
// FROM, or *=.
func equiKey(p expr.Expr, nl int) (joinKey, bool) {
	l, r, ok := plan.IsEquality(p)
	nullSafe, exact := false, false
	if !ok {
		l, r, ok = notDistinct(p)
		nullSafe = ok
	}
	if !ok {
		l, r, ok = plan.IsSame(p)
		nullSafe, exact = ok, ok
	}
	if !ok || expr.VolatilityOf(p) == expr.Volatile {
		return joinKey{}, false
	}
	ll, lr := sidesOf(l, nl)
	rl, rr := sidesOf(r, nl)
	switch {
	case ll && !lr && rr && !rl:
	case lr && !ll && rl && !rr:
		l, r = r, l
	default:
		return joinKey{}, false
	}
	if exact {
		if l.Type().Kind() != r.Type().Kind() {
			return joinKey{}, false
		}
		return joinKey{l, toRight(r, nl), nullSafe}, true
	}
	l, r, ok = harmonized(l, r)
	if !ok {
		return joinKey{}, false
	}
	return joinKey{l, toRight(r, nl), nullSafe}, true
}

// notDistinct gives the two sides of `l IS NOT DISTINCT FROM r`.
func notDistinct(p expr.Expr) (l, r expr.Expr, ok bool) {
	n, ok := p.(*expr.Not)
	if !ok {
		return nil, nil, false
	}
	c, ok := n.Arg.(*expr.Call)
	if !ok || c.Fn.Name != "IS DISTINCT FROM" {
		return nil, nil, false
	}
	return c.Args[0], c.Args[1], true
}

// nullOf is a NULL of a type, as an expression.
func nullOf(t types.Type) expr.Expr {
	b := columnar.NewBuilder(t.Kind(), 1)
	b.Null()
	return &expr.Const{Val: b.Build(), Typ: t}
}

// int4 is an int4 literal.
func int4(v int32) expr.Expr {
	return &expr.Const{Val: columnar.FromSlice([]int32{v}, nil), Typ: types.Int4}
}

// boolean is a bool literal.
func boolean(v bool) expr.Expr {
	return &expr.Const{Val: columnar.FromSlice([]bool{v}, nil), Typ: types.Bool}
}
