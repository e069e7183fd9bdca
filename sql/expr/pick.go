package expr

import (
	"math"
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// The aggregates that other streaming databases have besides PostgreSQL's:
// first_value and last_value in an order, arg_min and arg_max, which the
// planner makes of them, and approx_percentile.

// collectEnd is first_value or last_value of an ordered group; NULL counts.
func collectEnd(last bool) CollectKernel {
	return func(_ *Eval, _ *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
		switch {
		case lo == hi:
			out.Null()
		case last:
			out.AppendFrom(args[0], hi-1)
		default:
			out.AppendFrom(args[0], lo)
		}
		return nil
	}
}

// collectArg is arg_min or arg_max: the first argument where the second is the
// least or the greatest, of the rows where neither is NULL; of equal ones the
// first row's.
func collectArg(max bool) CollectKernel {
	return func(_ *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
		best := -1
		for i := lo; i < hi; i++ {
			if args[0].Null(i) || args[1].Null(i) {
				continue
			}
			if best < 0 {
				best = i
			} else if k := types.Compare(c.Args[1], args[1], i, args[1], best); k != 0 && k > 0 == max {
				best = i
			}
		}
		if best < 0 {
			out.Null()
		} else {
			out.AppendFrom(args[0], best)
		}
		return nil
	}
}

// defaultError is the relative error of approx_percentile.
const defaultError = 0.01

// collectApprox is approx_percentile(fraction [, relative error]) over ordered
// values: the middle of the bucket that the value at that place falls in, the
// buckets' limits being the powers of (1 + error) / (1 - error).
func collectApprox(_ *Eval, _ *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	values := args[len(args)-1]
	rows := notNull(values, lo, hi)
	if len(rows) == 0 || args[0].Null(lo) {
		out.Null()
		return nil
	}
	p, relative := args[0].Float64s()[lo], defaultError
	if err := checkFraction(p); err != nil {
		return err
	}
	if len(args) > 2 {
		if args[1].Null(lo) {
			out.Null()
			return nil
		}
		relative = args[1].Float64s()[lo]
	}
	if !(relative > 0 && relative < 1) {
		return pgerror.New(pgerror.NumericValueOutOfRange, "relative error %s is not between 0 and 1", types.AppendFloat8(nil, relative, nil))
	}
	at := min(int(p*float64(len(rows))), len(rows)-1)
	out.Float64(bucketMiddle(values.Float64s()[rows[at]], (1+relative)/(1-relative)))
	return nil
}

// bucketMiddle is the value that stands for all of the bucket of v.
func bucketMiddle(v, base float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	bucket := math.Ceil(math.Log(math.Abs(v)) / math.Log(base))
	return math.Copysign(2*math.Pow(base, bucket)/(base+1), v)
}

// PickOf makes arg_min(x, y) or arg_max(x, y) a first or last value: the
// function, and whether the order by y is descending; nil if fn is another.
func PickOf(fn *Aggregate) (first *Aggregate, desc bool) {
	if fn.Name != "arg_min" && fn.Name != "arg_max" {
		return nil, false
	}
	i := slices.IndexFunc(registry.aggs["first_value"], func(a *Aggregate) bool { return a.Op == AggFirst })
	return registry.aggs["first_value"][i], fn.Name == "arg_max"
}

func init() {
	anyElem, f8 := types.Of(types.OIDAnyElement), types.Float8
	RegisterAggregate(Aggregate{Name: "first_value", Op: AggFirst, Args: []types.Type{anyElem}, Ret: anyElem, KeepNulls: true, Collect: collectEnd(false)})
	RegisterAggregate(Aggregate{Name: "last_value", Op: AggLast, Args: []types.Type{anyElem}, Ret: anyElem, KeepNulls: true, Collect: collectEnd(true)})
	for name, max := range map[string]bool{"arg_min": false, "arg_max": true} {
		RegisterAggregate(Aggregate{Name: name, Op: AggCollect, Args: []types.Type{anyElem, types.Of(types.OIDAny)}, Ret: anyElem, KeepNulls: true, Collect: collectArg(max)})
	}
	for _, args := range [][]types.Type{{f8, f8}, {f8, f8, f8}} {
		RegisterAggregate(Aggregate{Name: "approx_percentile", Op: AggCollect, Args: args, Ret: f8, Ordered: true, Collect: collectApprox})
	}
	RegisterAggregate(Aggregate{Name: "approx_count_distinct", Op: AggCollect, Args: []types.Type{types.Of(types.OIDAny)}, Ret: types.Int8, Collect: collectDistinct})
}

// collectDistinct is approx_count_distinct where it is no count(DISTINCT), over
// the frames of a window: exact.
func collectDistinct(_ *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	seen := map[string]struct{}{}
	var key []byte
	for i := lo; i < hi; i++ {
		if !args[0].Null(i) {
			key = types.AppendSortKey(key[:0], c.Args[0], args[0], i)
			seen[string(key)] = struct{}{}
		}
	}
	out.Int64(int64(len(seen)))
	return nil
}
