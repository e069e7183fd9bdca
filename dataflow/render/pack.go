package render

import (
	"encoding/binary"
	"math"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// pack is a value behind its sort key, as bytes in the order of the keys:
//
//	sort key, value, length of the value in 4 bytes
//
// No sort key is a prefix of another, so that what follows cannot disturb the
// order; among equal keys the value decides.
func pack(e expr.Expr) expr.Expr {
	return &expr.Call{Fn: packFunc, Args: []expr.Expr{e}, Typ: types.Bytea}
}

// unpack is the value of type t that was packed.
func unpack(e expr.Expr, t types.Type) expr.Expr {
	return &expr.Call{Fn: unpackFunc, Args: []expr.Expr{e}, Typ: t}
}

var packFunc = &expr.Function{
	Name: "pack", Args: []types.Type{types.Of(types.OIDAny)}, Ret: types.Bytea,
	Strict: true, Total: true, Eval: evalPack,
}

var unpackFunc = &expr.Function{
	Name: "unpack", Args: []types.Type{types.Bytea}, Ret: types.Of(types.OIDAnyElement),
	Strict: true, Total: true, Eval: evalUnpack,
}

func evalPack(c *expr.Call, _ *expr.Eval, args []*columnar.Vec, n int) *columnar.Vec {
	t, v := c.Args[0].Type(), args[0]
	b := columnar.NewBuilder(columnar.KindBytes, n)
	for i := range n {
		if v.Null(i) {
			b.Null()
			continue
		}
		b.Extend(func(dst []byte) []byte {
			dst = types.AppendSortKey(dst, t, v, i)
			at := len(dst)
			dst = appendRaw(dst, v, i)
			return binary.BigEndian.AppendUint32(dst, uint32(len(dst)-at))
		})
	}
	return b.Build()
}

// appendRaw appends the physical value.
func appendRaw(dst []byte, v *columnar.Vec, i int) []byte {
	w := v.Kind().Width()
	if w == 0 {
		return append(dst, v.Bytes(i)...)
	}
	raw, _, _ := v.Raw()
	return append(dst, raw[i*w:(i+1)*w]...)
}

func evalUnpack(c *expr.Call, _ *expr.Eval, args []*columnar.Vec, n int) *columnar.Vec {
	return eachPacked(args[0], c.Typ.Kind(), n, appendValue)
}

// packOrdered puts a value behind a key whose byte order is the order of some
// expressions. Neither is NULL as a whole.
func packOrdered(order []plan.SortExpr, value expr.Expr) expr.Expr {
	args := make([]expr.Expr, 0, len(order)+1)
	for _, o := range order {
		args = append(args, o.Expr)
	}
	f := &expr.Function{
		Name: "pack ordered", Args: []types.Type{types.Of(types.OIDAny)}, Variadic: true, Ret: types.Bytea, Total: true,
		Eval: func(c *expr.Call, _ *expr.Eval, args []*columnar.Vec, n int) *columnar.Vec {
			return evalPackOrdered(order, c, args, n)
		},
	}
	return &expr.Call{Fn: f, Args: append(args, value), Typ: types.Bytea}
}

func evalPackOrdered(order []plan.SortExpr, c *expr.Call, args []*columnar.Vec, n int) *columnar.Vec {
	b := columnar.NewBuilder(columnar.KindBytes, n)
	value := args[len(order)]
	for i := range n {
		b.Extend(func(dst []byte) []byte {
			for k, o := range order {
				// 0, 1, 2: NULLs first, a value, NULLs last.
				switch {
				case !args[k].Null(i):
					dst = append(dst, 1)
				case o.NullsFirst:
					dst = append(dst, 0)
					continue
				default:
					dst = append(dst, 2)
					continue
				}
				at := len(dst)
				dst = types.AppendSortKey(dst, c.Args[k].Type(), args[k], i)
				if o.Desc {
					for j := at; j < len(dst); j++ {
						dst[j] = ^dst[j]
					}
				}
			}
			at := len(dst)
			if value.Null(i) {
				dst = append(dst, 1)
			} else {
				dst = appendRaw(append(dst, 0), value, i)
			}
			return binary.BigEndian.AppendUint32(dst, uint32(len(dst)-at))
		})
	}
	return b.Build()
}

// unpackOrdered is the value of type t that packOrdered put there.
func unpackOrdered(e expr.Expr, t types.Type) expr.Expr {
	return &expr.Call{Fn: unpackOrderedFunc, Args: []expr.Expr{e}, Typ: t}
}

var unpackOrderedFunc = &expr.Function{
	Name: "unpack ordered", Args: []types.Type{types.Bytea}, Ret: types.Of(types.OIDAnyElement),
	Strict: true, Total: true, Eval: evalUnpackOrdered,
}

func evalUnpackOrdered(c *expr.Call, _ *expr.Eval, args []*columnar.Vec, n int) *columnar.Vec {
	return eachPacked(args[0], c.Typ.Kind(), n, func(b *columnar.Builder, kind columnar.Kind, p []byte) {
		if p[0] != 0 {
			b.Null()
			return
		}
		appendValue(b, kind, p[1:])
	})
}

// eachPacked gives what stands at the end of each packed value to f, which appends a
// value of a kind for it.
func eachPacked(packed *columnar.Vec, kind columnar.Kind, n int, f func(b *columnar.Builder, kind columnar.Kind, p []byte)) *columnar.Vec {
	b := columnar.NewBuilder(kind, n)
	for i := range n {
		if packed.Null(i) {
			b.Null()
			continue
		}
		p := packed.Bytes(i)
		end := len(p) - 4
		f(b, kind, p[end-int(binary.BigEndian.Uint32(p[end:])):end])
	}
	return b.Build()
}

// appendValue appends what appendRaw made of a value.
func appendValue(b *columnar.Builder, kind columnar.Kind, p []byte) {
	switch kind {
	case columnar.KindBool:
		b.Bool(p[0] != 0)
	case columnar.KindInt16:
		b.Int16(int16(binary.NativeEndian.Uint16(p)))
	case columnar.KindInt32:
		b.Int32(int32(binary.NativeEndian.Uint32(p)))
	case columnar.KindInt64:
		b.Int64(int64(binary.NativeEndian.Uint64(p)))
	case columnar.KindFloat32:
		b.Float32(math.Float32frombits(binary.NativeEndian.Uint32(p)))
	case columnar.KindFloat64:
		b.Float64(math.Float64frombits(binary.NativeEndian.Uint64(p)))
	case columnar.KindFixed16:
		b.U128(columnar.U128{Hi: binary.NativeEndian.Uint64(p), Lo: binary.NativeEndian.Uint64(p[8:])})
	default:
		b.Bytes(p)
	}
}
