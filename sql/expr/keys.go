package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

// KeyNorm is an expression whose physical equality is the SQL equality of e:
// e itself where bits suffice.
func KeyNorm(e Expr) Expr {
	t := e.Type()
	if !types.NeedsNorm(t) {
		return e
	}
	return &Call{Fn: normFunc(t.OID), Args: []Expr{e}, Typ: t}
}

func normFunc(o types.OID) *Function {
	return makeOnce(fnKey("key_norm", o), func() *Function {
		t := types.Of(o)
		return &Function{
			Name: "key_norm", Args: []types.Type{t}, Ret: t, Strict: true, Total: true,
			Eval: func(_ *Call, _ *Eval, args []*columnar.Vec, _ int) *columnar.Vec { return types.NormVec(t, args[0]) },
		}
	})
}

// SortKey is an expression whose physical order is the SQL order of e: e itself
// where the engine's order is that, else a key of a fixed-width kind or
// memcomparable bytes.
func SortKey(e Expr) Expr {
	t := e.Type()
	if !types.NeedsSortKey(t) {
		return e
	}
	fn := makeOnce(fnKey("sort_key", t.OID), func() *Function {
		in, ret := types.Of(t.OID), types.Of(t.OID)
		if types.SortKeyKind(in) == columnar.KindBytes {
			ret = types.Bytea
		}
		return &Function{
			Name: "sort_key", Args: []types.Type{in}, Ret: ret, Strict: true, Total: true,
			Eval: func(_ *Call, _ *Eval, args []*columnar.Vec, _ int) *columnar.Vec {
				return types.SortKeyVec(in, args[0])
			},
		}
	})
	return &Call{Fn: fn, Args: []Expr{e}, Typ: fn.Ret}
}
