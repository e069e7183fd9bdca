package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// arrayOut makes one array a row: the elements of all rows are collected in one
// vector first.
type arrayOut struct {
	elem types.OID
	vals *columnar.Builder
	rows []arrayRow
	last int // number of elements in the rows so far
}

type arrayRow struct {
	null     bool
	whole    []byte // an array that is taken as it is
	ndim     int
	dims     [types.MaxDims]types.Dim
	from, to int
}

// null makes the row NULL; same makes it a given array.
func (o *arrayOut) null()         { o.rows = append(o.rows, arrayRow{null: true}) }
func (o *arrayOut) same(b []byte) { o.rows = append(o.rows, arrayRow{whole: b}) }

// end makes the row an array of the elements appended to o.vals since the last.
func (o *arrayOut) end(dims []types.Dim) {
	r := arrayRow{ndim: len(dims), from: o.last, to: o.vals.Len()}
	copy(r.dims[:], dims)
	o.rows = append(o.rows, r)
	o.last = r.to
}

func (o *arrayOut) build(x *Eval) *columnar.Vec {
	v := o.vals.Build()
	out := x.Builder(columnar.KindBytes, len(o.rows))
	for i := range o.rows {
		switch r := &o.rows[i]; {
		case r.null:
			out.Null()
		case r.whole != nil:
			out.Bytes(r.whole)
		default:
			out.Extend(func(dst []byte) []byte {
				return types.AppendArray(dst, o.elem, r.dims[:r.ndim], v, r.from, r.to)
			})
		}
	}
	return out.Build()
}

// arrayFunc adds the array for row i to o; after an error it must not have
// appended elements.
type arrayFunc func(x *Eval, a Args, i int, o *arrayOut) *pgerror.Error

func arrayKernel(f arrayFunc) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		elem := c.Typ.OID.Elem()
		o := arrayOut{elem: elem, vals: x.Builder(types.Of(elem).Kind(), n), rows: make([]arrayRow, 0, n)}
		a := Args(args)
		for i := range n {
			if c.Fn.Strict && a.anyNull(i) {
				o.null()
				continue
			}
			if err := f(x, a, i, &o); err != nil {
				x.Fail(i, err)
				o.null()
			}
		}
		return o.build(x)
	}
}

func errMultiDim(what string) *pgerror.Error {
	return pgerror.New(pgerror.FeatureNotSupported, "%s multidimensional arrays is not supported", what)
}

// appendElem is array_append; with front it is array_prepend.
func appendElem(array, elem int, front bool) arrayFunc {
	return func(_ *Eval, a Args, i int, o *arrayOut) *pgerror.Error {
		var arr types.Array
		d := types.Dim{Lower: 1}
		if !a.Null(array, i) {
			arr = types.ReadArray(a.Bytes(array, i))
			if arr.NDim > 1 {
				return pgerror.New("22000", "argument must be empty or one-dimensional array")
			}
			if arr.NDim == 1 {
				d = arr.Dims[0]
			}
		}
		d.Len++
		if _, err := types.CheckDims([]types.Dim{d}); err != nil {
			return pgerror.New(pgerror.NumericValueOutOfRange, "integer out of range")
		}
		v, row := a.row(elem, i)
		if front {
			o.vals.AppendFrom(v, row)
		}
		arr.AppendElems(o.vals, 0, arr.N)
		if !front {
			o.vals.AppendFrom(v, row)
		}
		o.end([]types.Dim{d})
		return nil
	}
}

func errConcat(detail string, args ...any) *pgerror.Error {
	return pgerror.New(pgerror.ArraySubscriptError, "cannot concatenate incompatible arrays").WithDetail(detail, args...)
}

// concatDims are the dimensions of a || b.
func concatDims(a, b *types.Array) ([]types.Dim, *pgerror.Error) {
	long, short := a, b
	if b.NDim > a.NDim {
		long, short = b, a
	}
	dims := append([]types.Dim(nil), long.Dims[:long.NDim]...)
	switch long.NDim - short.NDim {
	case 0:
		dims[0].Len += short.Dims[0].Len
		for k := 1; k < len(dims); k++ {
			if short.Dims[k] != dims[k] {
				return nil, errConcat("Arrays with differing element dimensions are not compatible for concatenation.")
			}
		}
		dims[0].Lower = a.Dims[0].Lower
	case 1:
		dims[0].Len++
		for k, d := range short.Dims[:short.NDim] {
			if d != dims[k+1] {
				return nil, errConcat("Arrays with differing dimensions are not compatible for concatenation.")
			}
		}
	default:
		return nil, errConcat("Arrays of %d and %d dimensions are not compatible for concatenation.", a.NDim, b.NDim)
	}
	return dims, nil
}

func concatArrays(_ *Eval, a Args, i int, o *arrayOut) *pgerror.Error {
	switch l, r := a.Null(0, i), a.Null(1, i); {
	case l && r:
		o.null()
		return nil
	case l:
		o.same(a.Bytes(1, i))
		return nil
	case r:
		o.same(a.Bytes(0, i))
		return nil
	}
	l, r := types.ReadArray(a.Bytes(0, i)), types.ReadArray(a.Bytes(1, i))
	switch {
	case l.NDim == 0 && r.NDim > 0:
		o.same(a.Bytes(1, i))
		return nil
	case r.NDim == 0:
		o.same(a.Bytes(0, i))
		return nil
	}
	dims, err := concatDims(&l, &r)
	if err != nil {
		return err
	}
	if _, err := types.CheckDims(dims); err != nil {
		return pgerror.As(err)
	}
	l.AppendElems(o.vals, 0, l.N)
	r.AppendElems(o.vals, 0, r.N)
	o.end(dims)
	return nil
}

// elemEquals reports whether element k of arr is argument `arg` of row i; NULL
// equals NULL.
func elemEquals(arr *types.Array, k int, a Args, arg, i int) bool {
	null := a.Null(arg, i)
	if arr.Null(k) || null {
		return arr.Null(k) && null
	}
	v, row := a.row(arg, i)
	return arr.CompareValue(k, v, row) == 0
}

func removeElems(_ *Eval, a Args, i int, o *arrayOut) *pgerror.Error {
	if a.Null(0, i) {
		o.null()
		return nil
	}
	arr := types.ReadArray(a.Bytes(0, i))
	if arr.NDim > 1 {
		return errMultiDim("removing elements from")
	}
	left := 0
	for k := range arr.N {
		if !elemEquals(&arr, k, a, 1, i) {
			arr.AppendElem(o.vals, k)
			left++
		}
	}
	d := arr.Dims[0]
	d.Len = int32(left)
	o.end([]types.Dim{d})
	return nil
}

func replaceElems(_ *Eval, a Args, i int, o *arrayOut) *pgerror.Error {
	if a.Null(0, i) {
		o.null()
		return nil
	}
	arr := types.ReadArray(a.Bytes(0, i))
	v, row := a.row(2, i)
	for k := range arr.N {
		if elemEquals(&arr, k, a, 1, i) {
			o.vals.AppendFrom(v, row)
		} else {
			arr.AppendElem(o.vals, k)
		}
	}
	o.end(arr.Dims[:arr.NDim])
	return nil
}

// arrayPosition is array_position: the subscript of the first equal element.
func arrayPosition(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	if a.Null(0, i) {
		out.Null()
		return nil
	}
	arr := types.ReadArray(a.Bytes(0, i))
	if arr.NDim > 1 {
		return errMultiDim("searching for elements in")
	}
	if arr.NDim == 0 {
		out.Null()
		return nil
	}
	if a.Null(1, i) && !arr.HasNulls() {
		out.Null()
		return nil
	}
	lower, from := int64(arr.Dims[0].Lower), int64(0)
	if len(a) > 2 {
		if a.Null(2, i) {
			return pgerror.New(pgerror.NullValueNotAllowed, "initial position must not be null")
		}
		from = max(int64(a.Int32(2, i))-lower, 0)
	}
	for k := from; k < int64(arr.N); k++ {
		if elemEquals(&arr, int(k), a, 1, i) {
			out.Int32(int32(lower + k))
			return nil
		}
	}
	out.Null()
	return nil
}

func arrayPositions(_ *Eval, a Args, i int, o *arrayOut) *pgerror.Error {
	if a.Null(0, i) {
		o.null()
		return nil
	}
	arr := types.ReadArray(a.Bytes(0, i))
	if arr.NDim > 1 {
		return errMultiDim("searching for elements in")
	}
	n := int32(0)
	for k := range arr.N {
		if elemEquals(&arr, k, a, 1, i) {
			o.vals.Int32(arr.Dims[0].Lower + int32(k))
			n++
		}
	}
	o.end([]types.Dim{{Len: n, Lower: 1}})
	return nil
}

// fillDims reads the dimensions of array_fill.
func fillDims(a Args, i int) ([]types.Dim, *pgerror.Error) {
	if a.Null(1, i) || len(a) > 2 && a.Null(2, i) {
		return nil, pgerror.New(pgerror.NullValueNotAllowed, "dimension array or low bound array cannot be null")
	}
	subscripts := func(k int, name string) (types.Array, *pgerror.Error) {
		arr := types.ReadArray(a.Bytes(k, i))
		if arr.NDim > 1 {
			return arr, pgerror.New(pgerror.ArraySubscriptError, "wrong number of array subscripts").WithDetail("%s array must be one dimensional.", name)
		}
		if arr.HasNulls() {
			return arr, pgerror.New(pgerror.NullValueNotAllowed, "dimension values cannot be null")
		}
		return arr, nil
	}
	lens, err := subscripts(1, "Dimension")
	if err != nil {
		return nil, err
	}
	if lens.N > types.MaxDims {
		return nil, pgerror.New(pgerror.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", lens.N, types.MaxDims)
	}
	ints := func(arr *types.Array) []int32 {
		b := columnar.NewBuilder(columnar.KindInt32, arr.N)
		arr.AppendElems(b, 0, arr.N)
		return b.Build().Int32s()
	}
	dims := make([]types.Dim, lens.N)
	for k, n := range ints(&lens) {
		dims[k] = types.Dim{Len: n, Lower: 1}
	}
	if len(a) > 2 {
		lows, err := subscripts(2, "Low bound")
		if err != nil {
			return nil, err
		}
		if lows.N != lens.N {
			return nil, pgerror.New(pgerror.ArraySubscriptError, "wrong number of array subscripts").
				WithDetail("Low bound array has different size than dimensions array.")
		}
		for k, n := range ints(&lows) {
			dims[k].Lower = n
		}
	}
	return dims, nil
}

func fillArray(_ *Eval, a Args, i int, o *arrayOut) *pgerror.Error {
	dims, err := fillDims(a, i)
	if err != nil {
		return err
	}
	n, cerr := types.CheckDims(dims)
	if cerr != nil {
		return pgerror.As(cerr)
	}
	if n == 0 || len(dims) == 0 {
		o.end(nil)
		return nil
	}
	v, row := a.row(0, i)
	for range n {
		o.vals.AppendFrom(v, row)
	}
	o.end(dims)
	return nil
}

func trimArray(_ *Eval, a Args, i int, o *arrayOut) *pgerror.Error {
	arr, n := types.ReadArray(a.Bytes(0, i)), a.Int32(1, i)
	size := int32(0)
	if arr.NDim > 0 {
		size = arr.Dims[0].Len
	}
	if n < 0 || n > size {
		return pgerror.New(pgerror.ArraySubscriptError, "number of elements to trim must be between 0 and %d", size)
	}
	if size == 0 {
		o.end(nil)
		return nil
	}
	dims := append([]types.Dim(nil), arr.Dims[:arr.NDim]...)
	for k := range dims {
		dims[k].Lower = 1
	}
	dims[0].Len -= n
	arr.AppendElems(o.vals, 0, arr.N/int(size)*int(dims[0].Len))
	o.end(dims)
	return nil
}

// dimension makes a kernel of a property of one dimension of an array.
func dimension(f func(d types.Dim) int32) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		arr, k := types.ReadArray(a.Bytes(0, i)), a.Int32(1, i)
		if k < 1 || int(k) > arr.NDim {
			out.Null()
		} else {
			out.Int32(f(arr.Dims[k-1]))
		}
		return nil
	}
}

// hasElem reports whether arr has an element equal to element k of b, not NULL.
func hasElem(arr, b *types.Array, k int) bool {
	for j := range arr.N {
		if !arr.Null(j) && arr.CompareElem(j, b, k) == 0 {
			return true
		}
	}
	return false
}

func arraysOverlap(a, b *types.Array) bool {
	for k := range b.N {
		if !b.Null(k) && hasElem(a, b, k) {
			return true
		}
	}
	return false
}

// arrayContains reports whether every element of b is in a; NULL never is.
func arrayContains(a, b *types.Array) bool {
	for k := range b.N {
		if b.Null(k) || !hasElem(a, b, k) {
			return false
		}
	}
	return true
}

func arrayTest(f func(a, b *types.Array) bool) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		dst, out := Result[bool](x, n)
		a := Args(args)
		for i := range dst {
			dst[i] = false
			if x.skip != nil && x.skip.Get(i) {
				continue
			}
			l, r := types.ReadArray(a.Bytes(0, i)), types.ReadArray(a.Bytes(1, i))
			dst[i] = f(&l, &r)
		}
		return out
	}
}

// arrayToString joins the text forms of the elements; NULLs are passed over
// unless there is a text for them.
func arrayToString(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	if a.Null(0, i) || a.Null(1, i) {
		out.Null()
		return nil
	}
	arr, sep := types.ReadArray(a.Bytes(0, i)), a.Bytes(1, i)
	out.Extend(func(dst []byte) []byte {
		any := false
		for k := range arr.N {
			null := arr.Null(k)
			if null && (len(a) < 3 || a.Null(2, i)) {
				continue
			}
			if any {
				dst = append(dst, sep...)
			}
			any = true
			if null {
				dst = append(dst, a.Bytes(2, i)...)
			} else {
				dst = arr.AppendElemText(dst, k, x.options())
			}
		}
		return dst
	})
	return nil
}

// needEquality makes a Bind that refuses element types without equality.
func needEquality(k Kernel) func(c *Call) (Kernel, error) {
	return func(c *Call) (Kernel, error) {
		if t := c.Args[0].Type().OID.Elem(); !types.HasEquality(types.Of(t)) {
			return nil, pgerror.New(pgerror.UndefinedFunction, "could not identify an equality operator for type %s", t)
		}
		return k, nil
	}
}

func registerArrayShape() {
	arr, i4 := types.Of(types.OIDAnyArray), types.Int4
	total := func(name string, f rowFunc, args ...types.Type) { totalFn(name, i4, RowKernel(f), args...) }
	total("array_length", dimension(func(d types.Dim) int32 { return d.Len }), arr, i4)
	total("array_lower", dimension(func(d types.Dim) int32 { return d.Lower }), arr, i4)
	total("array_upper", dimension(types.Dim.Upper), arr, i4)
	total("array_ndims", func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		if v := types.ReadArray(a.Bytes(0, i)); v.NDim > 0 {
			out.Int32(int32(v.NDim))
		} else {
			out.Null()
		}
		return nil
	}, arr)
	total("cardinality", func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		v := types.ReadArray(a.Bytes(0, i))
		out.Int32(int32(v.N))
		return nil
	}, arr)
	totalFn("array_dims", types.Text, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		if v := types.ReadArray(a.Bytes(0, i)); v.NDim > 0 {
			out.Extend(v.AppendDims)
		} else {
			out.Null()
		}
		return nil
	}), arr)
}

// unnest appends the elements of an array.
func unnest(_ *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
	arr := types.ReadArray(args[0].Bytes(i))
	arr.AppendElems(out[0], 0, arr.N)
	return arr.N, nil
}

func init() {
	arr, elem := types.Of(types.OIDAnyCompatibleArray), types.Of(types.OIDAnyCompatible)
	anyArr, anyElem, i4 := types.Of(types.OIDAnyArray), types.Of(types.OIDAnyElement), types.Int4
	ints := types.Of(types.OIDInt4Array)
	registerArrayShape()
	lax := func(name string, op bool, ret types.Type, k Kernel, args ...types.Type) {
		Register(Function{Name: name, Operator: op, Args: args, Ret: ret, Consts: ScalarConsts, Eval: k})
	}
	equal := func(name string, ret types.Type, k Kernel, args ...types.Type) {
		Register(Function{Name: name, Args: args, Ret: ret, Consts: ScalarConsts, Bind: needEquality(k)})
	}
	lax("array_append", false, arr, arrayKernel(appendElem(0, 1, false)), arr, elem)
	lax("array_prepend", false, arr, arrayKernel(appendElem(1, 0, true)), elem, arr)
	lax("array_cat", false, arr, arrayKernel(concatArrays), arr, arr)
	lax("||", true, arr, arrayKernel(appendElem(0, 1, false)), arr, elem)
	lax("||", true, arr, arrayKernel(appendElem(1, 0, true)), elem, arr)
	lax("||", true, arr, arrayKernel(concatArrays), arr, arr)
	lax("array_fill", false, anyArr, arrayKernel(fillArray), anyElem, ints)
	lax("array_fill", false, anyArr, arrayKernel(fillArray), anyElem, ints, ints)
	equal("array_remove", arr, arrayKernel(removeElems), arr, elem)
	equal("array_replace", arr, arrayKernel(replaceElems), arr, elem, elem)
	equal("array_position", i4, RowKernel(arrayPosition), arr, elem)
	equal("array_position", i4, RowKernel(arrayPosition), arr, elem, i4)
	equal("array_positions", ints, arrayKernel(arrayPositions), arr, elem)
	Register(Function{Name: "trim_array", Args: []types.Type{anyArr, i4}, Ret: anyArr, Strict: true, Consts: ScalarConsts, Eval: arrayKernel(trimArray)})
	for _, op := range []struct {
		symbol, name string
		f            func(a, b *types.Array) bool
	}{
		{"&&", "arrayoverlap", arraysOverlap}, {"@>", "arraycontains", arrayContains},
		{"<@", "arraycontained", func(a, b *types.Array) bool { return arrayContains(b, a) }},
	} {
		f := Function{Name: op.symbol, Operator: true, Args: []types.Type{anyArr, anyArr}, Ret: types.Bool, Strict: true, Consts: ScalarConsts, Bind: needEquality(arrayTest(op.f))}
		Register(f)
		f.Name, f.Operator = op.name, false
		Register(f)
	}
	toString := RowKernel(arrayToString)
	Register(Function{Name: "array_to_string", Args: []types.Type{anyArr, types.Text}, Ret: types.Text, Strict: true, Volatility: Stable, Consts: ScalarConsts, Eval: toString})
	Register(Function{Name: "array_to_string", Args: []types.Type{anyArr, types.Text, types.Text}, Ret: types.Text, Volatility: Stable, Consts: ScalarConsts, Eval: toString})
	RegisterTableFunction(TableFunction{Name: "unnest", Args: []types.Type{anyArr}, Cols: []types.Type{anyElem}, Names: []string{"unnest"}, Strict: true, Eval: unnest})
}
