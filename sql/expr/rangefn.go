package expr

import (
	"sync"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

var (
	anyRange      = types.Of(types.OIDAnyRange)
	anyMultirange = types.Of(types.OIDAnyMultirange)
)

// rangeOf is the range type that belongs to a range or multirange type.
func rangeOf(t types.OID) types.OID {
	if r := t.RangeType(); r != 0 {
		return r
	}
	return t
}

// rangeList reads ranges and multiranges alike: a list of ranges that are not
// empty, in order. One range is read into buf.
func rangeList(t types.OID, b []byte, buf *[1]types.Range) []types.Range {
	if r := t.RangeType(); r != 0 {
		return types.ReadMultirange(r, b)
	}
	if buf[0] = types.ReadRange(t, b); buf[0].Empty {
		return nil
	}
	return buf[:]
}

// hull is the range from the first to the last end of a list.
func hull(rs []types.Range) types.Range {
	if len(rs) == 0 {
		return types.Range{Empty: true}
	}
	return types.Range{Lower: rs[0].Lower, Upper: rs[len(rs)-1].Upper}
}

type rangePredicate func(o types.RangeOps, a, b []types.Range) bool

// onHulls makes a predicate of lists of one that looks at their ends only.
func onHulls(f func(o types.RangeOps, a, b types.Range) bool) rangePredicate {
	return func(o types.RangeOps, a, b []types.Range) bool { return f(o, hull(a), hull(b)) }
}

func listContains(o types.RangeOps, a, b []types.Range) bool {
	i := 0
	for _, r := range b {
		for i < len(a) && !o.Contains(a[i], r) {
			i++
		}
		if i == len(a) {
			return false
		}
	}
	return true
}

func listOverlaps(o types.RangeOps, a, b []types.Range) bool {
	for _, x := range a {
		for _, y := range b {
			if o.Overlaps(x, y) {
				return true
			}
		}
	}
	return false
}

// rangeTest is the kernel of a predicate of two ranges or multiranges.
func rangeTest(f rangePredicate) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		l, r := c.Args[0].Type().OID, c.Args[1].Type().OID
		o := types.OpsOf(rangeOf(l))
		dst, out := Result[bool](x, n)
		a := Args(args)
		var bufs [2][1]types.Range
		for i := range dst {
			dst[i] = !a.anyNull(i) && f(o, rangeList(l, a.Bytes(0, i), &bufs[0]), rangeList(r, a.Bytes(1, i), &bufs[1]))
		}
		return out
	}
}

// rangeHas is the kernel of @> with an element; elem is which argument that is.
func rangeHas(elem int) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		t := c.Args[1-elem].Type().OID
		o := types.OpsOf(rangeOf(t))
		dst, out := Result[bool](x, n)
		a := Args(args)
		var buf [1]types.Range
		for i := range dst {
			if dst[i] = false; a.anyNull(i) {
				continue
			}
			v, row := a.row(elem, i)
			for _, r := range rangeList(t, a.Bytes(1-elem, i), &buf) {
				if dst[i] = o.ContainsValue(r, v, row); dst[i] {
					break
				}
			}
		}
		return out
	}
}

func registerRangeTests() {
	type ts = []types.Type
	elem := types.Of(types.OIDAnyElement)
	flip := func(f rangePredicate) rangePredicate {
		return func(o types.RangeOps, a, b []types.Range) bool { return f(o, b, a) }
	}
	before := onHulls(types.RangeOps.Before)
	for symbol, f := range map[string]rangePredicate{
		"@>": listContains, "<@": flip(listContains), "&&": listOverlaps, "<<": before, ">>": flip(before),
		"&<": onHulls(types.RangeOps.OverLeft), "&>": onHulls(types.RangeOps.OverRight), "-|-": onHulls(types.RangeOps.Adjacent),
	} {
		for _, args := range []ts{{anyRange, anyRange}, {anyRange, anyMultirange}, {anyMultirange, anyRange}, {anyMultirange, anyMultirange}} {
			totalOp(symbol, types.Bool, rangeTest(f), args...)
		}
	}
	for _, t := range (ts{anyRange, anyMultirange}) {
		registerCompare(t, t, Immutable, cmpTyped)
		totalOp("@>", types.Bool, rangeHas(1), t, elem)
		totalOp("<@", types.Bool, rangeHas(0), elem, t)
	}
}

// rangeRow is the function of a RowKernel over the ranges or multiranges that
// the strict function's arguments are.
func rangeRow(t types.Type, f func(o types.RangeOps, a, b []types.Range) ([]types.Range, error)) Kernel {
	multi := t.OID == types.OIDAnyMultirange
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		typ := c.Args[0].Type().OID
		o := types.OpsOf(rangeOf(typ))
		var bufs [2][1]types.Range
		return RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			var second []types.Range
			if len(a) > 1 {
				second = rangeList(typ, a.Bytes(1, i), &bufs[1])
			}
			rs, err := f(o, rangeList(typ, a.Bytes(0, i), &bufs[0]), second)
			if err != nil {
				return pgerror.As(err)
			}
			appendRanges(out, o.Type, multi, rs)
			return nil
		})(c, x, args, n)
	}
}

// appendRanges appends a multirange, or the one range in rs.
func appendRanges(out *columnar.Builder, t types.OID, multi bool, rs []types.Range) {
	out.Extend(func(dst []byte) []byte {
		if multi {
			return types.AppendMultirange(dst, t, rs)
		}
		return one(rs).Append(dst, t)
	})
}

func one(rs []types.Range) types.Range {
	if len(rs) == 0 {
		return types.Range{Empty: true}
	}
	return rs[0]
}

func registerRangeArithmetic() {
	single := func(f func(o types.RangeOps, a, b types.Range) (types.Range, error)) Kernel {
		return rangeRow(anyRange, func(o types.RangeOps, a, b []types.Range) ([]types.Range, error) {
			r, err := f(o, one(a), one(b))
			return []types.Range{r}, err
		})
	}
	many := func(f func(o types.RangeOps, a, b []types.Range) []types.Range) Kernel {
		return rangeRow(anyMultirange, func(o types.RangeOps, a, b []types.Range) ([]types.Range, error) { return f(o, a, b), nil })
	}
	op := func(symbol string, t types.Type, total bool, k Kernel) {
		Register(Function{Name: symbol, Operator: true, Args: []types.Type{t, t}, Ret: t, Strict: true, Total: total, Consts: ScalarConsts, Eval: k})
	}
	op("+", anyRange, false, single(types.RangeOps.Union))
	op("-", anyRange, false, single(types.RangeOps.Minus))
	op("*", anyRange, true, single(func(o types.RangeOps, a, b types.Range) (types.Range, error) { return o.Intersect(a, b), nil }))
	op("+", anyMultirange, true, many(func(o types.RangeOps, a, b []types.Range) []types.Range {
		return o.Normalize(append(append([]types.Range(nil), a...), b...))
	}))
	op("-", anyMultirange, true, many(types.RangeOps.MinusAll))
	op("*", anyMultirange, true, many(types.RangeOps.IntersectAll))
	totalFn("range_merge", anyRange, single(func(o types.RangeOps, a, b types.Range) (types.Range, error) { return o.Hull(a, b), nil }), anyRange, anyRange)
	totalFn("range_merge", anyRange, rangeRow(anyRange, func(_ types.RangeOps, a, _ []types.Range) ([]types.Range, error) {
		return []types.Range{hull(a)}, nil
	}), anyMultirange)
	totalFn("multirange", anyMultirange, rangeRow(anyMultirange, func(_ types.RangeOps, a, _ []types.Range) ([]types.Range, error) { return a, nil }), anyRange)
}

// registerRangeEnds registers what looks at the ends of a range or multirange.
func registerRangeEnds() {
	for _, t := range []types.Type{anyRange, anyMultirange} {
		test := func(name string, f func(r types.Range) bool) {
			totalFn(name, types.Bool, func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
				typ := c.Args[0].Type().OID
				dst, out := Result[bool](x, n)
				a := Args(args)
				var buf [1]types.Range
				for i := range dst {
					dst[i] = !a.Null(0, i) && f(hull(rangeList(typ, a.Bytes(0, i), &buf)))
				}
				return out
			}, t)
		}
		test("isempty", func(r types.Range) bool { return r.Empty })
		test("lower_inc", func(r types.Range) bool { return r.Lower.Inc })
		test("upper_inc", func(r types.Range) bool { return r.Upper.Inc })
		test("lower_inf", func(r types.Range) bool { return r.Lower.Inf })
		test("upper_inf", func(r types.Range) bool { return r.Upper.Inf })
		end := func(name string, f func(r types.Range) types.Bound) {
			totalFn(name, types.Of(types.OIDAnyElement), func(c *Call, _ *Eval, args []*columnar.Vec, n int) *columnar.Vec {
				typ := c.Args[0].Type().OID
				out := columnar.NewBuilder(c.Typ.Kind(), n)
				a := Args(args)
				var buf [1]types.Range
				for i := range n {
					var r types.Range
					if r.Empty = a.Null(0, i); !r.Empty {
						r = hull(rangeList(typ, a.Bytes(0, i), &buf))
					}
					if r.Empty {
						out.Null()
					} else {
						f(r).AppendTo(out)
					}
				}
				return out.Build()
			}, t)
		}
		end("lower", func(r types.Range) types.Bound { return r.Lower })
		end("upper", func(r types.Range) types.Bound { return r.Upper })
	}
}

var rangeBrackets = map[string][2]bool{"[]": {true, true}, "[)": {true, false}, "(]": {false, true}, "()": {false, false}}

// makeRange is the constructor of a range type: two bounds, NULL for none, and
// the brackets.
func makeRange(t types.OID) Kernel {
	return RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		inc := [2]bool{true, false}
		if len(a) == 3 {
			if a.Null(2, i) {
				return pgerror.New(pgerror.DataException, "range constructor flags argument must not be null")
			}
			var ok bool
			if inc, ok = rangeBrackets[string(a.Bytes(2, i))]; !ok {
				return pgerror.New(pgerror.SyntaxError, "invalid range bound flags").WithHint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\".")
			}
		}
		var ends [2]types.Bound
		for k := range ends {
			v, row := a.row(k, i)
			ends[k] = types.RangeBound(v, row, inc[k])
		}
		r, err := types.MakeRange(t, ends[0], ends[1])
		if err != nil {
			return pgerror.As(err)
		}
		out.Extend(func(dst []byte) []byte { return r.Append(dst, t) })
		return nil
	})
}

var errNullMember = pgerror.New(pgerror.NullValueNotAllowed, "multirange values cannot contain null members")

// makeMultirange is the constructor of a multirange from ranges, or from an
// array of them.
func makeMultirange(o types.RangeOps) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		return RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			if c.Variadic && a.Null(0, i) {
				out.Null()
				return nil
			}
			rs, err := rangeMembers(o, c.Variadic, a, i)
			if err == nil {
				appendRanges(out, o.Type, true, o.Normalize(rs))
			}
			return err
		})(c, x, args, n)
	}
}

func rangeMembers(o types.RangeOps, array bool, a Args, i int) ([]types.Range, *pgerror.Error) {
	var rs []types.Range
	if !array {
		for k := range a {
			if a.Null(k, i) {
				return nil, errNullMember
			}
			rs = append(rs, types.ReadRange(o.Type, a.Bytes(k, i)))
		}
		return rs, nil
	}
	arr := types.ReadArray(a.Bytes(0, i))
	if arr.NDim > 1 {
		return nil, pgerror.New(pgerror.CardinalityViolation, "multiranges cannot be constructed from multidimensional arrays")
	}
	for k := range arr.N {
		if arr.Null(k) {
			return nil, errNullMember
		}
		rs = append(rs, types.ReadRange(o.Type, arr.Bytes(k)))
	}
	return rs, nil
}

// rangeConstructors are the functions that make values of a range type and of
// its multirange; the last is the cast between them.
func rangeConstructors(rng types.OID) []*Function {
	t, sub, multi := types.Of(rng), types.Of(rng.Subtype()), types.Of(rng.Multirange())
	name, multiName := typName(rng), typName(multi.OID)
	var out []*Function
	for _, args := range [][]types.Type{{sub, sub}, {sub, sub, types.Text}} {
		out = append(out, &Function{Name: name, Args: args, Ret: t, Consts: ScalarConsts, Eval: makeRange(rng)})
	}
	build := makeMultirange(types.OpsOf(rng))
	return append(out,
		&Function{Name: multiName, Ret: multi, Strict: true, Consts: ScalarConsts, Eval: build},
		&Function{Name: multiName, Args: []types.Type{t.ArrayType()}, Variadic: true, Ret: multi, Consts: ScalarConsts, Eval: build},
		&Function{
			Name: multiName, Args: []types.Type{t}, Ret: multi, Strict: true, Total: true, Consts: ScalarConsts,
			Eval: rangeRow(anyMultirange, func(_ types.RangeOps, a, _ []types.Range) ([]types.Range, error) { return a, nil }),
		})
}

// userRanges are the constructors of user-defined ranges, by the range's OID.
var userRanges sync.Map

func constructorsOf(rng types.OID) []*Function {
	if fs, ok := userRanges.Load(rng); ok {
		return fs.([]*Function)
	}
	fs, _ := userRanges.LoadOrStore(rng, rangeConstructors(rng))
	return fs.([]*Function)
}

// NewTypeCall resolves a call by the name of a user-defined type: the
// constructor of a range or multirange, else a cast.
func NewTypeCall(typ types.OID, args []Expr, opts CallOptions) (Expr, error) {
	if rng := rangeOf(typ); rng.IsRange() {
		var fns []*Function
		for _, f := range constructorsOf(rng) {
			if f.Ret.OID == typ {
				fns = append(fns, f)
			}
		}
		return newCall(typName(typ), fns, args, opts)
	}
	if len(args) != 1 {
		return nil, noFunction(typName(typ), args, opts)
	}
	return coerce(args[0], types.Of(typ), CastExplicit, opts.Pos)
}

// collectRanges is range_agg: the multirange of all ranges; NULLs are passed over.
func collectRanges(_ *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	o := types.OpsOf(rangeOf(c.Typ.OID))
	var rs []types.Range
	found := false
	var buf [1]types.Range
	for i := lo; i < hi; i++ {
		if !args[0].Null(i) {
			rs, found = append(rs, rangeList(c.Args[0].OID, args[0].Bytes(i), &buf)...), true
		}
	}
	if !found {
		out.Null()
		return nil
	}
	appendRanges(out, o.Type, true, o.Normalize(rs))
	return nil
}

// collectCommon is range_intersect_agg: what all ranges have in common.
func collectCommon(_ *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	o := types.OpsOf(rangeOf(c.Typ.OID))
	var rs []types.Range
	found := false
	for i := lo; i < hi; i++ {
		if args[0].Null(i) {
			continue
		}
		var buf [1]types.Range
		next := rangeList(c.Args[0].OID, args[0].Bytes(i), &buf)
		if found {
			next = o.IntersectAll(rs, next)
		}
		rs, found = append(rs[:0:0], next...), true
	}
	if !found {
		out.Null()
		return nil
	}
	appendRanges(out, o.Type, c.Typ.OID != o.Type, rs)
	return nil
}

// unnestRanges gives the ranges of a multirange.
func unnestRanges(_ *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
	b := Args(args).Bytes(0, i)
	t := types.RangeTypeOf(b)
	rs := types.ReadMultirange(t, b)
	for _, r := range rs {
		out[0].Extend(func(dst []byte) []byte { return r.Append(dst, t) })
	}
	return len(rs), nil
}

func init() {
	registerRangeTests()
	registerRangeArithmetic()
	registerRangeEnds()
	for _, t := range types.All() {
		if t.Multirange == 0 {
			continue
		}
		var last *Function
		for _, f := range rangeConstructors(t.OID) {
			last = Register(*f)
		}
		RegisterCast(Cast{From: t.OID, To: t.Multirange, Context: CastExplicit, Fn: last})
	}
	RegisterTableFunction(TableFunction{
		Name: "unnest", Args: []types.Type{anyMultirange}, Cols: []types.Type{anyRange}, Names: []string{"unnest"}, Strict: true, Eval: unnestRanges,
	})
	collect := func(name string, ret, arg types.Type, k CollectKernel) {
		RegisterAggregate(Aggregate{Name: name, Op: AggCollect, Args: []types.Type{arg}, Ret: ret, KeepNulls: true, Collect: k})
	}
	for _, t := range []types.Type{anyRange, anyMultirange} {
		collect("range_agg", anyMultirange, t, collectRanges)
		collect("range_intersect_agg", t, t, collectCommon)
	}
}
