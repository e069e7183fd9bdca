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

// maxCalls bounds the calls that one is cut into; they may be cut again.
const maxCalls = 1 << 10

var errSeriesLong = pgerror.New(pgerror.ProgramLimitExceeded, "generate_series gives more than %d rows in one call", maxSeries)

// seriesInt is generate_series of integers; it stops where the next value would
// overflow. Exclusive, it is range(): the stop is not part of it.
func seriesInt[T integer](exclusive bool) TableKernel {
	return func(_ *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
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
			if exclusive && v == stop {
				return n, nil
			}
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
}

// cutSeries cuts generate_series of integers: see TableFunction.Cut.
func cutSeries[T integer](args []*columnar.Vec, i int, rows int64) []*columnar.Vec {
	for _, v := range args {
		if v.Null(min(i, v.Len()-1)) {
			return nil
		}
	}
	a := Args(args)
	start, stop, step := int64(Arg[T](a, 0, i)), int64(Arg[T](a, 1, i)), int64(1)
	if len(args) == 3 {
		step = int64(Arg[T](a, 2, i))
	}
	if step == 0 || (step > 0) != (stop > start) {
		return nil
	}
	// The distance fits in 64 bits without a sign, and so does a step.
	distance, by := uint64(stop)-uint64(start), uint64(step)
	if step < 0 {
		distance, by = -distance, -by
	}
	n := distance / by // rows but the first
	if n < uint64(rows) {
		return nil
	}
	rows = int64(max(uint64(rows), n/maxCalls+1))
	out := make([]*columnar.Builder, len(args))
	for k, v := range args {
		out[k] = columnar.NewBuilder(v.Kind(), int(n/uint64(rows))+1)
	}
	for at, more := uint64(0), true; more; at += uint64(rows) {
		last := n
		if more = n-at >= uint64(rows); more {
			last = at + uint64(rows) - 1
		}
		columnar.Append(out[0], T(start+int64(at)*step))
		columnar.Append(out[1], T(start+int64(last)*step))
		if len(args) == 3 {
			columnar.Append(out[2], T(step))
		}
	}
	vecs := make([]*columnar.Vec, len(out))
	for k, b := range out {
		vecs[k] = b.Build()
	}
	return vecs
}

func seriesNumeric(exclusive bool) TableKernel {
	return func(_ *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
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
		for v := a.Bytes(0, i); ; n++ {
			if c := decimal.Compare(v, stop) * sign; c > 0 || exclusive && c == 0 {
				return n, nil
			}
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
	}
}

// stepTime adds an interval to a timestamp.
type stepTime = func(x *Eval, ts int64, step columnar.U128) (int64, *pgerror.Error)

// zonedStep adds in the time zone that the fourth argument names.
func zonedStep(a Args, i int) (stepTime, error) {
	loc, err := types.ParseZone(string(a.Bytes(3, i)))
	if err != nil {
		return nil, err
	}
	return func(_ *Eval, ts int64, step columnar.U128) (int64, *pgerror.Error) {
		return AddIntervalTZ(ts, types.UnpackInterval(step), loc)
	}, nil
}

// seriesTime is generate_series of timestamps; without add it is that in a
// time zone that is an argument.
func seriesTime(add stepTime, exclusive bool) TableKernel {
	return func(x *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
		add := add
		if add == nil {
			var err error
			if add, err = zonedStep(Args(args), i); err != nil {
				return 0, err
			}
		}
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
			if exclusive && v == stop {
				return n, nil
			}
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
	for name, exclusive := range map[string]bool{"generate_series": false, "range": true} {
		add := func(t types.Type, v Volatility, k TableKernel, args ts) *TableFunction {
			return RegisterTableFunction(TableFunction{Name: name, Args: args, Cols: ts{t}, Names: []string{name}, Strict: true, Volatility: v, Eval: k})
		}
		series := func(t types.Type, k TableKernel, cut func([]*columnar.Vec, int, int64) []*columnar.Vec) {
			two, three := add(t, Immutable, k, ts{t, t}), add(t, Immutable, k, ts{t, t, t})
			if !exclusive {
				two.Cut, three.Cut = cut, cut
			}
		}
		series(types.Int4, seriesInt[int32](exclusive), cutSeries[int32])
		series(types.Int8, seriesInt[int64](exclusive), cutSeries[int64])
		series(types.Numeric, seriesNumeric(exclusive), nil)
		naive, zoned := types.Timestamp, types.TimestampTZ
		add(naive, Immutable, seriesTime(timestampPlus, exclusive), ts{naive, naive, types.Interval})
		add(zoned, Stable, seriesTime(timestampTZPlus, exclusive), ts{zoned, zoned, types.Interval})
		add(zoned, Stable, seriesTime(nil, exclusive), ts{zoned, zoned, types.Interval, types.Text})
	}
	arr := types.Of(types.OIDAnyArray)
	for _, args := range []ts{{arr, types.Int4}, {arr, types.Int4, types.Bool}} {
		RegisterTableFunction(TableFunction{Name: "generate_subscripts", Args: args, Cols: ts{types.Int4}, Names: []string{"generate_subscripts"}, Strict: true, Eval: subscripts})
	}
	RegisterTableFunction(TableFunction{
		Name: "_pg_expandarray", Args: ts{arr}, Cols: ts{types.Of(types.OIDAnyElement), types.Int4}, Names: []string{"x", "n"}, Strict: true, Eval: expandArray,
	})
}
