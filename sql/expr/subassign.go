package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// PartType is the type of what is assigned to arg[…][…]: an element's, or for a
// slice the array's own.
func PartType(container types.Type, subs []Subscript) types.Type {
	if container.OID == types.OIDJSONB {
		return types.JSONB
	}
	for _, s := range subs {
		if s.Slice {
			return container
		}
	}
	if elem, _, ok := fixedArray(container.OID); ok {
		return elem
	}
	return container.ElemType()
}

// NewSubscriptAssign makes arg with value, of PartType, at the subscripts. access is
// NewSubscript of the same.
func NewSubscriptAssign(arg, access Expr, subs []Subscript, value Expr, pos int) (Expr, error) {
	t := arg.Type()
	if t.OID == types.OIDJSONB {
		return assignJSON(arg, subs, value, pos)
	}
	if _, _, ok := fixedArray(t.OID); ok {
		return assignFixed(arg, subs, value, pos)
	}
	call, ok := access.(*Call)
	if !ok || t.OID.Elem() == 0 {
		return nil, pgerror.Unsupported("assignment to a part of " + t.OID.Name()).At(pos)
	}
	args := append([]Expr{arg, value}, call.Args[1:]...)
	slice := PartType(t, subs).OID == t.OID
	fn := makeOnce(fnKey("assign", t.OID, types.OID(len(args)), value.Type().OID), func() *Function {
		kernel := assignElem
		if slice {
			kernel = assignSlice
		}
		elem := t.OID.Elem()
		return &Function{Name: "subscript assignment", Ret: types.Of(t.OID), Consts: ScalarConsts,
			Eval: RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
				arr := types.Array{Elem: elem}
				if !a.Null(0, i) {
					arr = types.ReadArray(a.Bytes(0, i))
				}
				for k := range a[2:] {
					if a.Null(k+2, i) {
						return pgerror.New(pgerror.NullValueNotAllowed, "array subscript in assignment must not be null")
					}
				}
				return kernel(&arr, a, i, out)
			})}
	})
	return &Call{Fn: fn, Args: args, Typ: t, Pos: pos}, nil
}

func subscriptError(format string) *pgerror.Error {
	return pgerror.New(pgerror.ArraySubscriptError, "%s", format)
}

// assignElem is arr with argument 1 at the subscripts of the others. An array of one
// dimension grows as far as needed.
func assignElem(arr *types.Array, a Args, i int, out *columnar.Builder) *pgerror.Error {
	n := len(a) - 2
	var at [types.MaxDims]int32
	for k := range n {
		at[k] = a.Int32(k+2, i)
	}
	v, row := a.row(1, i)
	switch {
	case arr.NDim == 0:
		dims := make([]types.Dim, n)
		for k := range dims {
			dims[k] = types.Dim{Len: 1, Lower: at[k]}
			if err := types.CheckArrayDim(int64(at[k]), 1); err != nil {
				return pgerror.As(err)
			}
		}
		out.Extend(func(dst []byte) []byte { return types.AppendArray(dst, arr.Elem, dims, v, row, row+1) })
		return nil
	case arr.NDim != n:
		return subscriptError("wrong number of array subscripts")
	case n == 1:
		return spliced(arr, at[0], at[0], v, row, out)
	}
	place := arr.Index(at[:n])
	if place < 0 {
		return subscriptError("array subscript out of range")
	}
	b := columnar.NewBuilder(v.Kind(), arr.N)
	arr.AppendElems(b, 0, place)
	b.AppendFrom(v, row)
	arr.AppendElems(b, place+1, arr.N)
	elems := b.Build()
	out.Extend(func(dst []byte) []byte { return types.AppendArray(dst, arr.Elem, arr.Dims[:n], elems, 0, elems.Len()) })
	return nil
}

// spliced is an array of one dimension with the values of v from row on in the places
// from lo to hi, and NULL in those between them and the array.
func spliced(arr *types.Array, lo, hi int32, v *columnar.Vec, row int, out *columnar.Builder) *pgerror.Error {
	d := arr.Dims[0]
	from, to := int64(min(lo, d.Lower)), int64(max(hi, d.Upper()))
	if err := types.CheckArrayDim(from, to-from+1); err != nil {
		return pgerror.As(err)
	}
	b := columnar.NewBuilder(types.Of(arr.Elem).Kind(), int(to-from+1))
	for s := from; s <= to; s++ {
		switch {
		case s >= int64(lo) && s <= int64(hi):
			b.AppendFrom(v, row+int(s-int64(lo)))
		case s >= int64(d.Lower) && s <= int64(d.Upper()):
			arr.AppendElem(b, int(s-int64(d.Lower)))
		default:
			b.Null()
		}
	}
	elems := b.Build()
	dims := []types.Dim{{Len: int32(to - from + 1), Lower: int32(from)}}
	out.Extend(func(dst []byte) []byte { return types.AppendArray(dst, arr.Elem, dims, elems, 0, elems.Len()) })
	return nil
}

// assignSlice is arr with the elements of the array that argument 1 is in a slice.
func assignSlice(arr *types.Array, a Args, i int, out *columnar.Builder) *pgerror.Error {
	n := (len(a) - 2) / 2
	if a.Null(1, i) { // assigns nothing
		out.Extend(func(dst []byte) []byte {
			if a.Null(0, i) {
				return types.AppendEmptyArray(dst, arr.Elem)
			}
			return append(dst, a.Bytes(0, i)...)
		})
		return nil
	}
	if arr.NDim != 0 && arr.NDim < n {
		return subscriptError("wrong number of array subscripts")
	}
	src := types.ReadArray(a.Bytes(1, i))
	var lo, hi [types.MaxDims]int32
	count := 1
	dims := max(n, arr.NDim)
	for d := range dims {
		lo[d], hi[d] = arr.Dims[d].Lower, arr.Dims[d].Upper()
		for b, to := range []*int32{&lo[d], &hi[d]} {
			if v := 2 + 2*d + b; d < n && a[v].Kind() == columnar.KindInt32 {
				*to = a.Int32(v, i)
			} else if arr.NDim == 0 {
				return subscriptError("array slice subscript must provide both boundaries").
					WithDetail("When assigning to a slice of an empty array value, slice boundaries must be fully specified.")
			}
		}
		if lo[d] > hi[d] && arr.NDim > 0 {
			return subscriptError("upper bound cannot be less than lower bound")
		}
		if dims > 1 && arr.NDim > 0 && (lo[d] < arr.Dims[d].Lower || hi[d] > arr.Dims[d].Upper()) {
			return subscriptError("array subscript out of range")
		}
		size := int64(hi[d]) - int64(lo[d]) + 1
		if err := types.CheckArrayDim(int64(lo[d]), size); err != nil {
			return pgerror.As(err)
		}
		if count *= int(size); count > src.N {
			return subscriptError("source array too small")
		}
	}
	b := columnar.NewBuilder(types.Of(arr.Elem).Kind(), count)
	src.AppendElems(b, 0, count)
	vals := b.Build()
	switch {
	case arr.NDim == 0:
		to := make([]types.Dim, n)
		for d := range to {
			to[d] = types.Dim{Len: hi[d] - lo[d] + 1, Lower: lo[d]}
		}
		out.Extend(func(dst []byte) []byte { return types.AppendArray(dst, arr.Elem, to, vals, 0, count) })
		return nil
	case dims == 1:
		return spliced(arr, lo[0], hi[0], vals, 0, out)
	}
	assignBlock(arr, lo, hi, vals, out)
	return nil
}

// assignBlock is an array of several dimensions with vals in the block from lo to hi.
func assignBlock(arr *types.Array, lo, hi [types.MaxDims]int32, vals *columnar.Vec, out *columnar.Builder) {
	b := columnar.NewBuilder(vals.Kind(), arr.N)
	next := 0
	for e := range arr.N {
		inside, rest := true, e
		for d := arr.NDim - 1; d >= 0; d-- {
			s := arr.Dims[d].Lower + int32(rest%int(arr.Dims[d].Len))
			rest /= int(arr.Dims[d].Len)
			inside = inside && s >= lo[d] && s <= hi[d]
		}
		if !inside {
			arr.AppendElem(b, e)
			continue
		}
		b.AppendFrom(vals, next)
		next++
	}
	elems := b.Build()
	out.Extend(func(dst []byte) []byte {
		return types.AppendArray(dst, arr.Elem, arr.Dims[:arr.NDim], elems, 0, elems.Len())
	})
}

// assignJSON is arg with value where the subscripts lead.
func assignJSON(arg Expr, subs []Subscript, value Expr, pos int) (Expr, error) {
	path, number, err := subscriptPath(subs, pos)
	if err != nil {
		return nil, err
	}
	return &Call{Fn: jsonAssign, Args: []Expr{arg, path, value, boolConst(number)}, Typ: types.JSONB, Pos: pos}, nil
}

var jsonAssign = &Function{Name: "subscript assignment", Ret: types.JSONB, Consts: ScalarConsts, Bind: docKernel(setSubscript)}

// setSubscript is document 0 with document 2 at the path of argument 1. What the path
// leads through is made, of NULL an array if its first step is a number.
func setSubscript(m *jsonMaker, _ *Eval, a Args, i int) (bool, *pgerror.Error) {
	p := pathSetter{m: m, path: types.ReadArray(a.Bytes(1, i)), op: pathReplace | pathCreate | pathFill, value: types.JSONDoc{byte(types.JSONKindNull)}}
	for k := range p.path.N {
		if p.path.Null(k) {
			return false, pgerror.New(pgerror.NullValueNotAllowed, "jsonb subscript in assignment must not be null")
		}
	}
	if !a.Null(2, i) {
		p.value = a.doc(2, i)
	}
	if !a.Null(0, i) {
		return true, p.walk(a.doc(0, i), 0)
	}
	if !a.Bool(3, i) {
		m.Begin(true)
		m.Key(p.path.Bytes(0))
		if err := p.build(1); err != nil {
			return false, err
		}
		m.End()
		return true, nil
	}
	m.Begin(false)
	if err := p.emptyArray(0); err != nil {
		return false, err
	}
	m.End()
	return true, nil
}
