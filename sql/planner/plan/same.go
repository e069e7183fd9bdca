package plan

import (
	"bytes"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/types"
)

// same is the operator *=: two values are the same bit for bit, NULL is the
// same as NULL. PostgreSQL has it for records (record_image_eq). Decorrelation
// joins a subquery's result back to the outer rows by it: SQL's equality would
// lose NULLs, and would confuse values that are equal but not the same (1.0
// and 1.00).
var same = &expr.Function{
	Name:     "*=",
	Args:     []types.Type{types.Of(types.OIDAny), types.Of(types.OIDAny)},
	Ret:      types.Bool,
	Operator: true,
	Total:    true,
	Eval:     evalSame,
}

// Same is the expression `l *= r`.
func Same(l, r expr.Expr) expr.Expr {
	return &expr.Call{Fn: same, Args: []expr.Expr{l, r}, Typ: types.Bool}
}

// IsSame gives the two sides of `l *= r`.
func IsSame(e expr.Expr) (l, r expr.Expr, ok bool) {
	c, ok := e.(*expr.Call)
	if !ok || c.Fn != same {
		return nil, nil, false
	}
	return c.Args[0], c.Args[1], true
}

func evalSame(_ *expr.Call, _ *expr.Eval, args []*columnar.Vec, n int) *columnar.Vec {
	out := columnar.MakeFixed(columnar.KindBool, n)
	vals := out.Bools()
	a, b := args[0], args[1]
	fa, _, _ := a.Raw()
	fb, _, _ := b.Raw()
	w := a.Kind().Width()
	for i := range vals {
		if a.Null(i) || b.Null(i) {
			vals[i] = a.Null(i) == b.Null(i)
			continue
		}
		if w == 0 {
			vals[i] = bytes.Equal(a.Bytes(i), b.Bytes(i))
		} else {
			vals[i] = bytes.Equal(fa[i*w:(i+1)*w], fb[i*w:(i+1)*w])
		}
	}
	return out
}

// image is the bits of a value as bytes. Rows that are grouped or partitioned
// by a value and its image are told apart as *= does.
var image = &expr.Function{
	Name:   "image",
	Args:   []types.Type{types.Of(types.OIDAny)},
	Ret:    types.Bytea,
	Strict: true,
	Total:  true,
	Eval:   evalImage,
}

// Image is the bits of e as bytes.
func Image(e expr.Expr) expr.Expr {
	return &expr.Call{Fn: image, Args: []expr.Expr{e}, Typ: types.Bytea}
}

func evalImage(_ *expr.Call, _ *expr.Eval, args []*columnar.Vec, n int) *columnar.Vec {
	v := args[0]
	w := v.Kind().Width()
	if w == 0 {
		return v
	}
	raw, _, _ := v.Raw()
	b := columnar.NewBuilder(columnar.KindBytes, n)
	for i := range n {
		if v.Null(i) {
			b.Null()
		} else {
			b.Bytes(raw[i*w : (i+1)*w])
		}
	}
	return b.Build()
}
