package expr

import (
	"math"
	"slices"

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
	first, size := -1, 0
	for i := lo; i < hi; i++ {
		if args[0].Null(i) {
			continue
		}
		if first < 0 {
			first = i
		} else if !args[1].Null(i) {
			size += len(args[1].Bytes(i))
		}
		n := len(args[0].Bytes(i))
		if size+n >= maxAlloc {
			return pgerror.New(pgerror.ProgramLimitExceeded, "out of memory").
				WithDetail("Cannot enlarge string buffer containing %d bytes by %d more bytes.", size, n)
		}
		size += n
	}
	if first < 0 {
		out.Null()
		return nil
	}
	out.Extend(func(dst []byte) []byte {
		dst = slices.Grow(dst, size)
		for i := first; i < hi; i++ {
			if args[0].Null(i) {
				continue
			}
			if i > first && !args[1].Null(i) {
				dst = append(dst, args[1].Bytes(i)...)
			}
			dst = append(dst, args[0].Bytes(i)...)
		}
		return dst
	})
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

// RankKernel computes an aggregate WITHIN GROUP from the values at a few places
// of the ordered group, counted from 0 and over those that are not NULL. direct
// is the direct argument, of which row i counts.
type RankKernel struct {
	// Places lists the places in a group of n whose values decide; none if the result
	// is NULL or needs no value.
	Places func(direct *columnar.Vec, i int, n int64) ([]int64, error)
	// Value appends the result to out; vals are the values at Places.
	Value func(c *AggregateCall, direct *columnar.Vec, i int, n int64, vals *columnar.Vec, out *columnar.Builder) error
}

// Collect implements CollectKernel.
func (k *RankKernel) Collect(_ *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	if lo == hi {
		out.Null()
		return nil
	}
	rows := notNull(args[1], lo, hi)
	n := int64(len(rows))
	places, err := k.Places(args[0], lo, n)
	if err != nil {
		return err
	}
	at := make([]uint32, len(places))
	for i, p := range places {
		at[i] = uint32(rows[p])
	}
	return k.Value(c, args[0], lo, n, args[1].Gather(at), out)
}

// discPlace is the place of percentile_disc.
func discPlace(places []int64, p float64, n int64) []int64 {
	return append(places, max(int64(math.Ceil(p*float64(n))), 1)-1)
}

// contPlaces are the places between which percentile_cont interpolates.
func contPlaces(places []int64, p float64, n int64) []int64 {
	at := p * float64(n-1)
	return append(places, int64(math.Floor(at)), int64(math.Ceil(at)))
}

// interpolate appends the value of percentile_cont to out: between values i and
// i+1 of vals.
func interpolate(p float64, n int64, vals *columnar.Vec, i int, out *columnar.Builder) error {
	at := p * float64(n-1)
	frac := at - math.Floor(at)
	if vals.Kind() == columnar.KindFixed16 {
		lo, hi := vals.U128s()[i], vals.U128s()[i+1]
		if frac == 0 {
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
	lo, hi := vals.Float64s()[i], vals.Float64s()[i+1]
	if frac == 0 {
		out.Float64(lo)
	} else {
		out.Float64(lo + frac*(hi-lo))
	}
	return nil
}

// percentile is percentile_cont or percentile_disc of one fraction.
func percentile(cont bool) *RankKernel {
	return &RankKernel{
		Places: func(direct *columnar.Vec, i int, n int64) ([]int64, error) {
			if direct.Null(i) {
				return nil, nil
			}
			p := direct.Float64s()[i]
			switch err := checkFraction(p); {
			case err != nil:
				return nil, err
			case n == 0:
				return nil, nil
			case cont:
				return contPlaces(nil, p, n), nil
			}
			return discPlace(nil, p, n), nil
		},
		Value: func(_ *AggregateCall, direct *columnar.Vec, i int, n int64, vals *columnar.Vec, out *columnar.Builder) error {
			switch {
			case vals.Len() == 0:
				out.Null()
			case cont:
				return interpolate(direct.Float64s()[i], n, vals, 0, out)
			default:
				out.AppendFrom(vals, 0)
			}
			return nil
		},
	}
}

// fractions are the elements of an array of fractions.
func fractions(direct *columnar.Vec, i int) (types.Array, *columnar.Vec) {
	a := types.ReadArray(direct.Bytes(i))
	b := columnar.NewBuilder(columnar.KindFloat64, a.N)
	a.AppendElems(b, 0, a.N)
	return a, b.Build()
}

// percentiles is percentile_cont or percentile_disc of an array of fractions.
func percentiles(cont bool) *RankKernel {
	return &RankKernel{
		Places: func(direct *columnar.Vec, i int, n int64) (places []int64, err error) {
			if n == 0 || direct.Null(i) {
				return nil, nil
			}
			_, ps := fractions(direct, i)
			for k, p := range ps.Float64s() {
				if ps.Null(k) {
					continue
				}
				if err := checkFraction(p); err != nil {
					return nil, err
				}
				if cont {
					places = contPlaces(places, p, n)
				} else {
					places = discPlace(places, p, n)
				}
			}
			return places, nil
		},
		Value: func(c *AggregateCall, direct *columnar.Vec, i int, n int64, vals *columnar.Vec, out *columnar.Builder) error {
			if n == 0 || direct.Null(i) {
				out.Null()
				return nil
			}
			elem := c.Typ.OID.Elem()
			a, ps := fractions(direct, i)
			if a.N == 0 {
				out.Extend(func(dst []byte) []byte { return types.AppendEmptyArray(dst, elem) })
				return nil
			}
			elems := columnar.NewBuilder(types.Of(elem).Kind(), a.N)
			at := 0
			for k, p := range ps.Float64s() {
				switch {
				case ps.Null(k):
					elems.Null()
				case cont:
					if err := interpolate(p, n, vals, at, elems); err != nil {
						return err
					}
					at += 2
				default:
					elems.AppendFrom(vals, at)
					at++
				}
			}
			v := elems.Build()
			out.Extend(func(dst []byte) []byte { return types.AppendArray(dst, elem, a.Dims[:a.NDim], v, 0, v.Len()) })
			return nil
		},
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
	ranks := func(name string, k *RankKernel, ret, direct, elem types.Type) {
		RegisterAggregate(Aggregate{Name: name, Op: AggCollect, Args: []types.Type{direct, elem}, Ret: ret, Ordered: true, Collect: k.Collect, Ranks: k})
	}
	ranks("percentile_disc", percentile(false), anyElem, f8, anyElem)
	ranks("percentile_disc", percentiles(false), anyArray, f8s, anyElem)
	ranks("percentile_cont", percentile(true), f8, f8, f8)
	ranks("percentile_cont", percentile(true), types.Interval, f8, types.Interval)
	ranks("percentile_cont", percentiles(true), f8s, f8s, f8)
	ranks("percentile_cont", percentiles(true), types.Of(types.OIDIntervalArray), f8s, types.Interval)
}
