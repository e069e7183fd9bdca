package expr

import (
	"math"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// collectArray is array_agg of elements.
func collectArray(_ *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	if lo == hi {
		out.Null()
		return nil
	}
	elem := c.Typ.OID.Elem()
	out.Extend(func(dst []byte) []byte { return types.AppendList(dst, elem, args[0], lo, hi) })
	return nil
}

// collectNested is array_agg of arrays: an array of one dimension more.
func collectNested(_ *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	if lo == hi {
		out.Null()
		return nil
	}
	elem := c.Typ.OID.Elem()
	vals := columnar.NewBuilder(types.Of(elem).Kind(), hi-lo)
	var first types.Array
	for i := lo; i < hi; i++ {
		if args[0].Null(i) {
			return pgerror.New(pgerror.NullValueNotAllowed, "cannot accumulate null arrays")
		}
		a := types.ReadArray(args[0].Bytes(i))
		switch {
		case i == lo && a.NDim == 0:
			return pgerror.New(pgerror.ArraySubscriptError, "cannot accumulate empty arrays")
		case i == lo:
			first = a
		case a.NDim != first.NDim || a.Dims != first.Dims:
			return pgerror.New(pgerror.ArraySubscriptError, "cannot accumulate arrays of different dimensionality")
		}
		a.AppendElems(vals, 0, a.N)
	}
	if first.NDim == types.MaxDims {
		return pgerror.New(pgerror.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", first.NDim+1, types.MaxDims)
	}
	dims := append([]types.Dim{{Len: int32(hi - lo), Lower: 1}}, first.Dims[:first.NDim]...)
	v := vals.Build()
	out.Extend(func(dst []byte) []byte { return types.AppendArray(dst, elem, dims, v, 0, v.Len()) })
	return nil
}

// collectString is string_agg: NULL values are passed over; the delimiter
// before the first value is not used.
func collectString(_ *Eval, _ *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	var buf []byte
	found := false
	for i := lo; i < hi; i++ {
		if args[0].Null(i) {
			continue
		}
		if found && !args[1].Null(i) {
			buf = append(buf, args[1].Bytes(i)...)
		}
		buf = append(buf, args[0].Bytes(i)...)
		found = true
	}
	if !found {
		out.Null()
		return nil
	}
	out.Bytes(buf)
	return nil
}

// collectMode is mode() WITHIN GROUP: the most frequent value, the first of
// equals in the order.
func collectMode(_ *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	v := args[0]
	best, bestRun := -1, 0
	for i := lo; i < hi; {
		if v.Null(i) {
			i++
			continue
		}
		j := i + 1
		for j < hi && !v.Null(j) && types.Compare(c.Args[0], v, i, v, j) == 0 {
			j++
		}
		if j-i > bestRun {
			best, bestRun = i, j-i
		}
		i = j
	}
	if best < 0 {
		out.Null()
	} else {
		out.AppendFrom(v, best)
	}
	return nil
}

// notNull lists the rows lo to hi where v is not NULL.
func notNull(v *columnar.Vec, lo, hi int) []int {
	var rows []int
	for i := lo; i < hi; i++ {
		if !v.Null(i) {
			rows = append(rows, i)
		}
	}
	return rows
}

func checkFraction(p float64) error {
	if !(p >= 0 && p <= 1) {
		return pgerror.New(pgerror.NumericValueOutOfRange, "percentile value %s is not between 0 and 1", types.AppendFloat8(nil, p, nil))
	}
	return nil
}

// percentileRow is the row of percentile_disc.
func percentileRow(p float64, rows []int) int {
	k := int(math.Ceil(p * float64(len(rows))))
	return rows[max(k, 1)-1]
}

func collectDisc(_ *Eval, _ *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	if lo == hi || args[0].Null(lo) {
		out.Null()
		return nil
	}
	p := args[0].Float64s()[lo]
	if err := checkFraction(p); err != nil {
		return err
	}
	rows := notNull(args[1], lo, hi)
	if len(rows) == 0 {
		out.Null()
		return nil
	}
	out.AppendFrom(args[1], percentileRow(p, rows))
	return nil
}

// interpolate appends the value of percentile_cont to out.
func interpolate(p float64, v *columnar.Vec, rows []int, out *columnar.Builder) error {
	at := p * float64(len(rows)-1)
	first, second := rows[int(math.Floor(at))], rows[int(math.Ceil(at))]
	frac := at - math.Floor(at)
	if v.Kind() == columnar.KindFixed16 {
		lo, hi := v.U128s()[first], v.U128s()[second]
		if first == second {
			out.U128(lo)
			return nil
		}
		diff, err := subInterval(nil, hi, lo)
		if err != nil {
			return err
		}
		part, err := mulInterval(nil, diff, frac)
		if err != nil {
			return err
		}
		sum, err := addInterval(nil, part, lo)
		if err != nil {
			return err
		}
		out.U128(sum)
		return nil
	}
	lo, hi := v.Float64s()[first], v.Float64s()[second]
	if first == second {
		out.Float64(lo)
	} else {
		out.Float64(lo + frac*(hi-lo))
	}
	return nil
}

func collectCont(_ *Eval, _ *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	if lo == hi || args[0].Null(lo) {
		out.Null()
		return nil
	}
	p := args[0].Float64s()[lo]
	if err := checkFraction(p); err != nil {
		return err
	}
	rows := notNull(args[1], lo, hi)
	if len(rows) == 0 {
		out.Null()
		return nil
	}
	return interpolate(p, args[1], rows, out)
}

// collectMany is percentile_cont or percentile_disc of an array of fractions.
func collectMany(cont bool) CollectKernel {
	return func(_ *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
		rows := notNull(args[1], lo, hi)
		if lo == hi || args[0].Null(lo) || len(rows) == 0 {
			out.Null()
			return nil
		}
		elem := c.Typ.OID.Elem()
		a := types.ReadArray(args[0].Bytes(lo))
		if a.N == 0 {
			out.Extend(func(dst []byte) []byte { return types.AppendEmptyArray(dst, elem) })
			return nil
		}
		fracs := columnar.NewBuilder(columnar.KindFloat64, a.N)
		a.AppendElems(fracs, 0, a.N)
		ps := fracs.Build()
		vals := columnar.NewBuilder(types.Of(elem).Kind(), a.N)
		for i, p := range ps.Float64s() {
			if ps.Null(i) {
				vals.Null()
				continue
			}
			if err := checkFraction(p); err != nil {
				return err
			}
			if !cont {
				vals.AppendFrom(args[1], percentileRow(p, rows))
			} else if err := interpolate(p, args[1], rows, vals); err != nil {
				return err
			}
		}
		v := vals.Build()
		out.Extend(func(dst []byte) []byte { return types.AppendArray(dst, elem, a.Dims[:a.NDim], v, 0, v.Len()) })
		return nil
	}
}

func init() {
	anyElem, anyArray := types.Of(types.OIDAnyElement), types.Of(types.OIDAnyArray)
	f8, f8s := types.Float8, types.Of(types.OIDFloat8Array)
	collect := func(name string, ordered, keepNulls bool, ret types.Type, k CollectKernel, args ...types.Type) {
		RegisterAggregate(Aggregate{Name: name, Op: AggCollect, Args: args, Ret: ret, Ordered: ordered, KeepNulls: keepNulls, Collect: k})
	}
	collect("array_agg", false, true, anyArray, collectArray, types.Of(types.OIDAnyNonArray))
	collect("array_agg", false, true, anyArray, collectNested, anyArray)
	collect("string_agg", false, true, types.Text, collectString, types.Text, types.Text)
	collect("string_agg", false, true, types.Bytea, collectString, types.Bytea, types.Bytea)
	collect("mode", true, false, anyElem, collectMode, anyElem)
	collect("percentile_disc", true, false, anyElem, collectDisc, f8, anyElem)
	collect("percentile_disc", true, false, anyArray, collectMany(false), f8s, anyElem)
	collect("percentile_cont", true, false, f8, collectCont, f8, f8)
	collect("percentile_cont", true, false, types.Interval, collectCont, f8, types.Interval)
	collect("percentile_cont", true, false, f8s, collectMany(true), f8s, f8)
	collect("percentile_cont", true, false, types.Of(types.OIDIntervalArray), collectMany(true), f8s, types.Interval)
}
