package expr

import (
	"encoding/binary"
	"math"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// fixedArray tells of the types that are arrays of a fixed length, subscripted from 0
// on: what their elements are, and how many.
func fixedArray(o types.OID) (elem types.Type, n int32, ok bool) {
	switch o {
	case types.OIDPoint:
		return types.Float8, 2, true
	case types.OIDLine:
		return types.Float8, 3, true
	case types.OIDLseg, types.OIDBox:
		return types.Of(types.OIDPoint), 2, true
	case types.OIDName:
		return types.Char, 64, true
	}
	return types.Type{}, 0, false
}

// fixedIndex coerces the subscript of an array of fixed length, which has one dimension.
func fixedIndex(subs []Subscript, pos int) (Expr, error) {
	for _, s := range subs {
		if s.Slice {
			return nil, pgerror.New(pgerror.FeatureNotSupported, "slices of fixed-length arrays not implemented")
		}
	}
	i := subs[0].Lo
	if !CanCoerce(i.Type(), types.Int4, CastAssignment) {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "array subscript must have type integer").At(PosOf(i)).At(pos)
	}
	return coerce(i, types.Int4, CastAssignment, pos)
}

// subscriptFixed is arg[i] of an array of fixed length, NULL where there is no such
// element.
func subscriptFixed(arg Expr, subs []Subscript, pos int) (Expr, error) {
	t := types.Of(arg.Type().OID)
	elem, n, _ := fixedArray(t.OID)
	i, err := fixedIndex(subs, pos)
	if err != nil {
		return nil, err
	}
	if len(subs) > 1 {
		return NullConst(elem), nil
	}
	fn := makeOnce(fnKey("fixed subscript", t.OID), func() *Function {
		return &Function{Name: "subscript", Args: []types.Type{t, types.Int4}, Ret: elem, Strict: true, Total: true, Consts: ScalarConsts,
			Eval: RowKernel(func(_ *Eval, a Args, row int, out *columnar.Builder) *pgerror.Error {
				k, b := a.Int32(1, row), a.Bytes(0, row)
				switch {
				case k < 0 || k >= n:
					out.Null()
				case elem.OID == types.OIDFloat8:
					out.Float64(types.GeoFloat(b, int(k)))
				case elem.OID == types.OIDChar && int(k) >= len(b):
					out.Bytes([]byte{0})
				default:
					width := len(b) / int(n)
					if elem.OID == types.OIDChar {
						width = 1
					}
					out.Bytes(b[int(k)*width : int(k+1)*width])
				}
				return nil
			})}
	})
	return &Call{Fn: fn, Args: []Expr{arg, i}, Typ: elem, Pos: pos}, nil
}

// assignFixed is arg, an array of numbers of fixed length, with value at a subscript; as
// in PostgreSQL nothing changes if either is NULL.
func assignFixed(arg Expr, subs []Subscript, value Expr, pos int) (Expr, error) {
	t := types.Of(arg.Type().OID)
	elem, n, _ := fixedArray(t.OID)
	if elem.OID == types.OIDChar {
		return nil, pgerror.Unsupported("assignment to a part of name").At(pos)
	}
	i, err := fixedIndex(subs, pos)
	if err != nil {
		return nil, err
	}
	if len(subs) > 1 {
		return nil, pgerror.New(pgerror.ArraySubscriptError, "wrong number of array subscripts")
	}
	fn := makeOnce(fnKey("fixed assignment", t.OID), func() *Function {
		return &Function{Name: "subscript assignment", Ret: t, Consts: ScalarConsts,
			Eval: RowKernel(func(_ *Eval, a Args, row int, out *columnar.Builder) *pgerror.Error {
				switch {
				case a.Null(2, row):
					return pgerror.New(pgerror.NullValueNotAllowed, "array subscript in assignment must not be null")
				case a.Null(0, row):
					out.Null()
					return nil
				}
				b, k := a.Bytes(0, row), a.Int32(2, row)
				if a.Null(1, row) {
					out.Bytes(b)
					return nil
				}
				if k < 0 || k >= n {
					return pgerror.New(pgerror.ArraySubscriptError, "array subscript out of range")
				}
				width := len(b) / int(n)
				out.Extend(func(dst []byte) []byte {
					at := len(dst) + int(k)*width
					dst = append(dst, b...)
					if elem.OID == types.OIDFloat8 {
						binary.LittleEndian.PutUint64(dst[at:], math.Float64bits(Arg[float64](a, 1, row)))
					} else {
						copy(dst[at:], a.Bytes(1, row))
					}
					return dst
				})
				return nil
			})}
	})
	return &Call{Fn: fn, Args: []Expr{arg, value, i}, Typ: t, Pos: pos}, nil
}
