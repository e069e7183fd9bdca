package expr

import (
	"math"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// NewArrayAssign is an array with one element set (array_set_element): value, at
// the subscripts. A NULL array counts as empty; one of one dimension grows.
func NewArrayAssign(array, value Expr, subs []Expr, pos int) Expr {
	t := types.Of(array.Type().OID)
	fn := makeOnce(fnKey("assign element", t.OID, types.OID(len(subs))), func() *Function {
		args := append([]types.Type{t, types.Of(value.Type().OID)}, slicesRepeat(types.Int4, len(subs))...)
		return &Function{Name: "assign", Internal: true, Args: args, Ret: t, Consts: ScalarConsts, Eval: RowKernel(assignElement(t.OID.Elem()))}
	})
	return &Call{Fn: fn, Args: append([]Expr{array, value}, subs...), Typ: t, Pos: pos}
}

func assignElement(elem types.OID) func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		subs := make([]int32, len(a)-2)
		for k := range subs {
			if a.Null(k+2, i) {
				return pgerror.New(pgerror.NullValueNotAllowed, "array subscript in assignment must not be null")
			}
			subs[k] = a.Int32(k+2, i)
		}
		var arr types.Array
		if !a.Null(0, i) {
			arr = types.ReadArray(a.Bytes(0, i))
		}
		dims, err := assignedDims(&arr, subs)
		if err != nil {
			return err
		}
		n, e := types.CheckDims(dims)
		if e != nil {
			return pgerror.As(e)
		}
		before, at := 0, 0 // elements before the old ones, and the place of the new one
		if arr.NDim == 1 {
			before = int(arr.Dims[0].Lower - dims[0].Lower)
		}
		for k, s := range subs {
			at = at*int(dims[k].Len) + int(s-dims[k].Lower)
		}
		b := columnar.NewBuilder(types.Of(elem).Kind(), n)
		v, row := a.row(1, i)
		for k := range n {
			switch old := k - before; {
			case k == at:
				b.AppendFrom(v, row)
			case old < 0 || old >= arr.N || arr.Null(old):
				b.Null()
			default:
				arr.AppendElem(b, old)
			}
		}
		out.Extend(func(dst []byte) []byte { return types.AppendArray(dst, elem, dims, b.Build(), 0, n) })
		return nil
	}
}

// assignedDims are the dimensions of an array once the element at subs is set.
func assignedDims(arr *types.Array, subs []int32) ([]types.Dim, *pgerror.Error) {
	dims := make([]types.Dim, len(subs))
	switch {
	case arr.NDim == 0:
		for k, s := range subs {
			dims[k] = types.Dim{Len: 1, Lower: s}
		}
		return dims, nil
	case arr.NDim != len(subs):
		return nil, pgerror.New(pgerror.ArraySubscriptError, "wrong number of array subscripts")
	}
	copy(dims, arr.Dims[:arr.NDim])
	for k, s := range subs {
		d := &dims[k]
		last := int64(d.Lower) + int64(d.Len) - 1
		if int64(s) >= int64(d.Lower) && int64(s) <= last {
			continue
		}
		if len(subs) > 1 {
			return nil, pgerror.New(pgerror.ArraySubscriptError, "array subscript out of range")
		}
		size := max(last, int64(s)) - min(int64(d.Lower), int64(s)) + 1
		d.Lower, d.Len = min(d.Lower, s), int32(min(size, math.MaxInt32)) // which CheckDims refuses
	}
	return dims, nil
}
