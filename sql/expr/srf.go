package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

var errStepZero = pgerror.New(pgerror.InvalidParameterValue, "step size cannot equal zero")

// maxSeries bounds the rows of one call, which are made in memory at once.
const maxSeries = 1 << 26

var errSeriesLong = pgerror.New(pgerror.ProgramLimitExceeded, "generate_series gives more than %d rows in one call", maxSeries)

// seriesInt is generate_series of integers; it stops where the next value would
// overflow.
func seriesInt[T integer](_ *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
	a := Args(args)
	start, stop, step := Arg[T](a, 0, i), Arg[T](a, 1, i), T(1)
	if len(args) == 3 {
		step = Arg[T](a, 2, i)
	}
	if step == 0 {
		return 0, errStepZero
	}
	n := 0
	for v := start; step > 0 && v <= stop || step < 0 && v >= stop; n++ {
		if n >= maxSeries {
			return n, errSeriesLong
		}
		columnar.Append(out[0], v)
		next := v + step
		if (next^v)&(next^step) < 0 {
			return n + 1, nil
		}
		v = next
	}
	return n, nil
}

func seriesNumeric(_ *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
	a := Args(args)
	step := decimal.AppendInt64(nil, 1)
	if len(args) == 3 {
		step = a.Bytes(2, i)
	}
	for k, v := range [][]byte{a.Bytes(0, i), a.Bytes(1, i), step} {
		what := [...]string{"start value", "stop value", "step size"}[k]
		switch {
		case decimal.IsNaN(v):
			return 0, pgerror.New(pgerror.InvalidParameterValue, "%s cannot be NaN", what)
		case decimal.IsInf(v):
			return 0, pgerror.New(pgerror.InvalidParameterValue, "%s cannot be infinity", what)
		}
	}
	sign := decimal.Sign(step)
	if sign == 0 {
		return 0, errStepZero
	}
	n := 0
	stop := a.Bytes(1, i)
	for v := a.Bytes(0, i); decimal.Compare(v, stop)*sign <= 0; n++ {
		if n >= maxSeries {
			return n, errSeriesLong
		}
		out[0].Bytes(v)
		next, err := decimal.Add(nil, v, step)
		if err != nil {
			return n + 1, err
		}
		v = next
	}
	return n, nil
}

// seriesTime is generate_series of timestamps.
func seriesTime(add func(x *Eval, ts int64, step columnar.U128) (int64, *pgerror.Error)) TableKernel {
	return func(x *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
		a := Args(args)
		start, stop, step := a.Int64(0, i), a.Int64(1, i), Arg[columnar.U128](a, 2, i)
		sign := types.CompareInterval(types.UnpackInterval(step), types.Span{})
		switch {
		case sign == 0:
			return 0, errStepZero
		case sign > 0 && start > stop || sign < 0 && start < stop:
			return 0, nil
		case !isFinite(start) || !isFinite(stop):
			return 0, errTimestampRange // it would end there, after all values
		}
		n := 0
		for v := start; sign > 0 && v <= stop || sign < 0 && v >= stop; n++ {
			out[0].Int64(v)
			next, err := add(x, v, step)
			if err != nil {
				return n + 1, err
			}
			v = next
		}
		return n, nil
	}
}

// subscripts is generate_subscripts(array, dim [, reverse]).
func subscripts(_ *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
	a := Args(args)
	arr := types.ReadArray(a.Bytes(0, i))
	d := int(a.Int32(1, i)) - 1
	if d < 0 || d >= arr.NDim {
		return 0, nil
	}
	dim := arr.Dims[d]
	for k := range dim.Len {
		if len(args) == 3 && a.Bool(2, i) {
			out[0].Int32(dim.Upper() - k)
		} else {
			out[0].Int32(dim.Lower + k)
		}
	}
	return int(dim.Len), nil
}

// expandArray is information_schema's helper: each element and its position.
func expandArray(_ *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
	arr := types.ReadArray(Args(args).Bytes(0, i))
	arr.AppendElems(out[0], 0, arr.N)
	for k := range arr.N {
		out[1].Int32(int32(k) + 1)
	}
	return arr.N, nil
}

func init() {
	type ts = []types.Type
	series := func(t types.Type, k TableKernel) {
		for _, args := range []ts{{t, t}, {t, t, t}} {
			RegisterTableFunction(TableFunction{Name: "generate_series", Args: args, Cols: ts{t}, Names: []string{"generate_series"}, Strict: true, Eval: k})
		}
	}
	series(types.Int4, seriesInt[int32])
	series(types.Int8, seriesInt[int64])
	series(types.Numeric, seriesNumeric)
	for _, t := range (ts{types.Timestamp, types.TimestampTZ}) {
		k, v := seriesTime(timestampPlus), Immutable
		if t == types.TimestampTZ {
			k, v = seriesTime(timestampTZPlus), Stable
		}
		RegisterTableFunction(TableFunction{
			Name: "generate_series", Args: ts{t, t, types.Interval}, Cols: ts{t}, Names: []string{"generate_series"},
			Strict: true, Volatility: v, Eval: k,
		})
	}
	arr := types.Of(types.OIDAnyArray)
	for _, args := range []ts{{arr, types.Int4}, {arr, types.Int4, types.Bool}} {
		RegisterTableFunction(TableFunction{Name: "generate_subscripts", Args: args, Cols: ts{types.Int4}, Names: []string{"generate_subscripts"}, Strict: true, Eval: subscripts})
	}
	RegisterTableFunction(TableFunction{
		Name: "_pg_expandarray", Args: ts{arr}, Cols: ts{types.Of(types.OIDAnyElement), types.Int4}, Names: []string{"x", "n"}, Strict: true, Eval: expandArray,
	})
}
