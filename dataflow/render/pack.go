package render

import (
	"encoding/binary"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
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
	kind := c.Typ.Kind()
	b := columnar.NewBuilder(kind, n)
	for i := range n {
		if args[0].Null(i) {
			b.Null()
			continue
		}
		p := args[0].Bytes(i)
		end := len(p) - 4
		p = p[end-int(binary.BigEndian.Uint32(p[end:])) : end]
		if kind == columnar.KindBytes {
			b.Bytes(p)
		} else { // the only fixed-width types with sort keys of their own are of 16 bytes
			b.U128(columnar.U128{Hi: binary.NativeEndian.Uint64(p), Lo: binary.NativeEndian.Uint64(p[8:])})
		}
	}
	return b.Build()
}
