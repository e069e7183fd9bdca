package expr

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// The functions of arrays that later versions of PostgreSQL and other streaming
// databases have. Those that take an array for a set or a list look at the
// members of its first dimension: elements, or arrays of one dimension less.

// members are the parts of an array along its first dimension.
type members struct {
	types.Array
	n, size int // members, and elements of each
}

func readMembers(b []byte) members {
	m := members{Array: types.ReadArray(b)}
	if m.NDim > 0 && m.Dims[0].Len > 0 {
		m.n = int(m.Dims[0].Len)
		m.size = m.N / m.n
	}
	return m
}

// compare orders member i of m and member j of o; NULL is equal to NULL and
// greater than all else.
func (m *members) compare(i int, o *members, j int) int {
	for k := range m.size {
		a, b := i*m.size+k, j*o.size+k
		switch l, r := m.Null(a), o.Null(b); {
		case l && r:
			continue
		case l:
			return 1
		case r:
			return -1
		}
		if c := m.CompareElem(a, &o.Array, b); c != 0 {
			return c
		}
	}
	return 0
}

// has reports whether one of the first n members of o equals member i of m.
func (m *members) in(i int, o *members, of []int) bool {
	return slices.ContainsFunc(of, func(j int) bool { return m.compare(i, o, j) == 0 })
}

// all are the numbers of all members.
func (m *members) all() []int {
	out := make([]int, m.n)
	for i := range out {
		out[i] = i
	}
	return out
}

// put ends the row with some members of m.
func (m *members) put(o *arrayOut, which []int) {
	if m.NDim == 0 {
		o.end(nil)
		return
	}
	for _, i := range which {
		m.AppendElems(o.vals, i*m.size, (i+1)*m.size)
	}
	if len(which) == 0 {
		o.end(nil)
		return
	}
	dims := append([]types.Dim(nil), m.Dims[:m.NDim]...)
	dims[0].Len = int32(len(which))
	o.end(dims)
}

func reverseArray(_ *Eval, a Args, i int, o *arrayOut) *pgerror.Error {
	m := readMembers(a.Bytes(0, i))
	order := m.all()
	slices.Reverse(order)
	m.put(o, order)
	return nil
}

// sortArray is array_sort(array [, descending [, nulls first]]).
func sortArray(_ *Eval, a Args, i int, o *arrayOut) *pgerror.Error {
	m := readMembers(a.Bytes(0, i))
	desc := len(a) > 1 && a.Bool(1, i)
	first := desc
	if len(a) > 2 {
		first = a.Bool(2, i)
	}
	order := m.all()
	slices.SortStableFunc(order, func(x, y int) int {
		c := m.compare(x, &m, y)
		if m.size == 1 && m.Null(x) != m.Null(y) {
			if first {
				c = -c
			}
			return c
		}
		if desc {
			c = -c
		}
		return c
	})
	m.put(o, order)
	return nil
}

func distinctMembers(_ *Eval, a Args, i int, o *arrayOut) *pgerror.Error {
	m := readMembers(a.Bytes(0, i))
	var keep []int
	for k := range m.n {
		if !m.in(k, &m, keep) {
			keep = append(keep, k)
		}
	}
	m.put(o, keep)
	return nil
}

// setOf makes array_except, array_intersect and array_union: sets of members,
// in the order of their first occurrence.
func setOf(keepCommon, keepOther, addSecond bool) arrayFunc {
	return func(_ *Eval, a Args, i int, o *arrayOut) *pgerror.Error {
		l, r := readMembers(a.Bytes(0, i)), readMembers(a.Bytes(1, i))
		if l.n > 0 && r.n > 0 && (l.NDim != r.NDim || l.size != r.size) {
			return pgerror.New(pgerror.ArraySubscriptError, "cannot compare arrays of different dimensions")
		}
		other := r.all()
		var keep []int
		for k := range l.n {
			common := l.in(k, &r, other)
			if (common && keepCommon || !common && keepOther) && !l.in(k, &l, keep) {
				keep = append(keep, k)
			}
		}
		if !addSecond {
			l.put(o, keep)
			return nil
		}
		var more []int
		for k := range r.n {
			if !r.in(k, &l, l.all()) && !r.in(k, &r, more) {
				more = append(more, k)
			}
		}
		if l.n == 0 {
			r.put(o, more)
			return nil
		}
		for _, k := range keep {
			l.AppendElems(o.vals, k*l.size, (k+1)*l.size)
		}
		for _, k := range more {
			r.AppendElems(o.vals, k*r.size, (k+1)*r.size)
		}
		dims := append([]types.Dim(nil), l.Dims[:l.NDim]...)
		dims[0].Len = int32(len(keep) + len(more))
		o.end(dims)
		return nil
	}
}

// flattenArray joins the members of an array of arrays: one dimension less.
func flattenArray(_ *Eval, a Args, i int, o *arrayOut) *pgerror.Error {
	arr := types.ReadArray(a.Bytes(0, i))
	if arr.NDim < 2 {
		o.same(a.Bytes(0, i))
		return nil
	}
	dims := append([]types.Dim(nil), arr.Dims[1:arr.NDim]...)
	dims[0] = types.Dim{Len: arr.Dims[0].Len * arr.Dims[1].Len, Lower: 1}
	arr.AppendElems(o.vals, 0, arr.N)
	o.end(dims)
	return nil
}

// extremeElem is array_min or array_max: of the elements that are not NULL.
func extremeElem(max bool) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		arr := types.ReadArray(a.Bytes(0, i))
		best := -1
		for k := range arr.N {
			if arr.Null(k) {
				continue
			}
			if best < 0 {
				best = k
			} else if c := arr.CompareElem(k, &arr, best); c != 0 && c > 0 == max {
				best = k
			}
		}
		if best < 0 {
			out.Null()
		} else {
			arr.AppendElem(out, best)
		}
		return nil
	}
}

// needOrder makes a Bind that refuses element types without an order.
func needOrder(k Kernel) func(c *Call) (Kernel, error) {
	return func(c *Call) (Kernel, error) {
		t := c.Args[0].Type().OID.Elem()
		if _, err := findOperator("<", []types.OID{t, t}, 0); err != nil {
			return nil, pgerror.New(pgerror.UndefinedFunction, "could not identify a comparison function for type %s", t)
		}
		return k, nil
	}
}

// sumArray is array_sum: what sum() makes of the elements.
func sumArray(sum *Aggregate) rowFunc {
	return func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		arr := types.ReadArray(a.Bytes(0, i))
		b := columnar.NewBuilder(arr.Kind(), arr.N)
		arr.AppendElems(b, 0, arr.N)
		args := []*columnar.Vec{b.Build()}
		acc := sum.New(sum.Args, sum.Ret)
		for k := range arr.N {
			if err := acc.Add(x, args, k, 1); err != nil {
				return pgerror.As(err)
			}
		}
		if err := acc.Value(x, out); err != nil {
			return pgerror.As(err)
		}
		return nil
	}
}

func registerArraySums() {
	for _, sum := range registry.aggs["sum"] {
		array := sum.Args[0].OID.Array()
		if array == 0 || sum.New == nil {
			continue
		}
		rowFn("array_sum", sum.Ret, sumArray(sum), types.Of(array))
	}
}

func init() {
	anyArr, anyElem := types.Of(types.OIDAnyArray), types.Of(types.OIDAnyElement)
	arr, bool1 := types.Of(types.OIDAnyCompatibleArray), types.Bool
	ordered := func(name string, ret types.Type, k Kernel, args ...types.Type) {
		Register(Function{Name: name, Args: args, Ret: ret, Strict: true, Consts: ScalarConsts, Bind: needOrder(k)})
	}
	plainArr := func(name string, ret types.Type, k Kernel, args ...types.Type) {
		Register(Function{Name: name, Args: args, Ret: ret, Strict: true, Consts: ScalarConsts, Eval: k})
	}
	plainArr("array_reverse", anyArr, arrayKernel(reverseArray), anyArr)
	plainArr("array_flatten", anyArr, arrayKernel(flattenArray), anyArr)
	ordered("array_sort", anyArr, arrayKernel(sortArray), anyArr)
	ordered("array_sort", anyArr, arrayKernel(sortArray), anyArr, bool1)
	ordered("array_sort", anyArr, arrayKernel(sortArray), anyArr, bool1, bool1)
	ordered("array_distinct", anyArr, arrayKernel(distinctMembers), anyArr)
	ordered("array_except", arr, arrayKernel(setOf(false, true, false)), arr, arr)
	ordered("array_intersect", arr, arrayKernel(setOf(true, false, false)), arr, arr)
	ordered("array_union", arr, arrayKernel(setOf(true, true, true)), arr, arr)
	ordered("array_min", anyElem, RowKernel(extremeElem(false)), anyArr)
	ordered("array_max", anyElem, RowKernel(extremeElem(true)), anyArr)
	for name, f := range map[string]func(a, b *types.Array) bool{
		"array_overlaps": arraysOverlap, "array_is_overlap": arraysOverlap, "array_is_intersect": arraysOverlap,
		"array_contains": arrayContains, "array_contained": func(a, b *types.Array) bool { return arrayContains(b, a) },
	} {
		Register(Function{Name: name, Args: []types.Type{arr, arr}, Ret: types.Bool, Strict: true, Consts: ScalarConsts, Bind: needEquality(arrayTest(f))})
	}
	totalFn("array_length", types.Int4, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		m := readMembers(a.Bytes(0, i))
		out.Int32(int32(m.n))
		return nil
	}), anyArr)
	registerArraySums()
	toString := RowKernel(arrayToString)
	for _, args := range [][]types.Type{{anyArr, types.Text}, {anyArr, types.Text, types.Text}} {
		Register(Function{Name: "array_join", Args: args, Ret: types.Text, Volatility: Stable, Consts: ScalarConsts, Eval: toString})
	}
}
