package expr

import (
	"math"

	"github.com/streamdb/streamdb/sql/types"
)

func agg(name string, op AggOp, ret types.Type, invertible bool, n func(args []types.Type, typ types.Type) Accumulator, args ...types.Type) {
	RegisterAggregate(Aggregate{Name: name, Op: op, Args: args, Ret: ret, New: n, Invertible: invertible})
}

func registerSums() {
	count := func([]types.Type, types.Type) Accumulator { return new(countAcc) }
	RegisterAggregate(Aggregate{Name: "count", Op: AggCountStar, Ret: types.Int8, New: count, Invertible: true, KeepNulls: true})
	agg("count", AggCount, types.Int8, true, count, types.Of(types.OIDAny))
	sum := func([]types.Type, types.Type) Accumulator { return new(intSum) }
	avg := func([]types.Type, types.Type) Accumulator { return &intSum{avg: true} }
	agg("sum", AggSum, types.Int8, true, sum, types.Int2)
	agg("sum", AggSum, types.Int8, true, sum, types.Int4)
	agg("sum", AggSum, types.Numeric, true, sum, types.Int8)
	agg("sum", AggSum, types.Numeric, true, sum, types.Numeric)
	for _, t := range []types.Type{types.Int2, types.Int4, types.Int8, types.Numeric} {
		agg("avg", AggAvg, types.Numeric, true, avg, t)
	}
	fsum := func([]types.Type, types.Type) Accumulator {
		return newFloatSums(false, false, func(s *floatSums) (float64, bool) { return s.badX.sum(&s.sx), s.n > 0 })
	}
	favg := func([]types.Type, types.Type) Accumulator {
		return newFloatSums(false, false, func(s *floatSums) (float64, bool) { return s.badX.sum(&s.sx) / float64(s.n), s.n > 0 })
	}
	agg("sum", AggSum, types.Float4, true, fsum, types.Float4)
	agg("sum", AggSum, types.Float8, true, fsum, types.Float8)
	agg("avg", AggAvg, types.Float8, true, favg, types.Float4)
	agg("avg", AggAvg, types.Float8, true, favg, types.Float8)
	agg("sum", AggSum, types.Interval, true, func([]types.Type, types.Type) Accumulator { return new(intervalSum) }, types.Interval)
	agg("avg", AggAvg, types.Interval, true, func([]types.Type, types.Type) Accumulator { return &intervalSum{avg: true} }, types.Interval)
}

func registerExtremes() {
	for _, t := range []types.Type{
		types.Int2, types.Int4, types.Int8, types.Oid, types.Float4, types.Float8, types.Numeric, types.Date, types.Time,
		types.TimeTZ, types.Timestamp, types.TimestampTZ, types.Interval, types.Text, types.BPChar, types.Bytea, types.Of(types.OIDAnyArray), types.Of(types.OIDMoney),
		types.Of(types.OIDAnyEnum), types.Of(types.OIDInet), types.Of(types.OIDPgLSN), types.Of(types.OIDXid8),
	} {
		for _, max := range []bool{false, true} {
			name, op := "min", AggMin
			if max {
				name, op = "max", AggMax
			}
			agg(name, op, t, false, func(args []types.Type, _ types.Type) Accumulator {
				return &extreme{typ: types.Of(args[0].OID), max: max}
			}, t)
		}
	}
}

func registerBits() {
	for _, name := range []string{"bool_and", "every", "bool_or"} {
		op, and := AggBoolAnd, name != "bool_or"
		if !and {
			op = AggBoolOr
		}
		agg(name, op, types.Bool, true, func([]types.Type, types.Type) Accumulator { return &boolAcc{and: and} }, types.Bool)
	}
	for name, op := range map[string]byte{"bit_and": '&', "bit_or": '|', "bit_xor": '#'} {
		for _, t := range []types.Type{types.Int2, types.Int4, types.Int8} {
			agg(name, AggBitwise, t, true, func([]types.Type, types.Type) Accumulator { return &bitAcc{op: op} }, t)
		}
	}
}

// varianceNames are the variance family: what they compute.
var varianceNames = map[string]struct{ sample, root bool }{
	"var_pop": {false, false}, "var_samp": {true, false}, "variance": {true, false},
	"stddev_pop": {false, true}, "stddev_samp": {true, true}, "stddev": {true, true},
}

func registerVariances() {
	for name, v := range varianceNames {
		for _, t := range []types.Type{types.Int2, types.Int4, types.Int8, types.Numeric} {
			agg(name, AggVariance, types.Numeric, true, func([]types.Type, types.Type) Accumulator {
				return &numericVar{sample: v.sample, root: v.root}
			}, t)
		}
		for _, t := range []types.Type{types.Float4, types.Float8} {
			agg(name, AggVariance, types.Float8, true, func([]types.Type, types.Type) Accumulator {
				return newFloatSums(false, true, func(s *floatSums) (float64, bool) {
					return varianceOf(s.n, s.moment(s.badX.any(), &s.sxx, &s.sx, &s.sx), v.sample, v.root)
				})
			}, t)
		}
	}
}

// Moments are what the two-column aggregates are computed from: the number of
// pairs, the means, and the sums of products of deviations from them.
type Moments struct {
	N             int64
	AvgX, AvgY    float64
	SXX, SYY, SXY float64
}

// regressions are the aggregates over (Y, X) but regr_count; ok false is NULL.
var regressions = map[string]func(m Moments) (f float64, ok bool){
	"covar_pop":  func(m Moments) (float64, bool) { return m.SXY / float64(m.N), m.N > 0 },
	"covar_samp": func(m Moments) (float64, bool) { return m.SXY / float64(m.N-1), m.N > 1 },
	"corr": func(m Moments) (float64, bool) {
		if m.N < 1 || m.SXX == 0 || m.SYY == 0 {
			return 0, false
		}
		return m.SXY / math.Sqrt(m.SXX*m.SYY), true
	},
	"regr_avgx": func(m Moments) (float64, bool) { return m.AvgX, m.N > 0 },
	"regr_avgy": func(m Moments) (float64, bool) { return m.AvgY, m.N > 0 },
	"regr_sxx":  func(m Moments) (float64, bool) { return m.SXX, m.N > 0 },
	"regr_syy":  func(m Moments) (float64, bool) { return m.SYY, m.N > 0 },
	"regr_sxy":  func(m Moments) (float64, bool) { return m.SXY, m.N > 0 },
	"regr_slope": func(m Moments) (float64, bool) {
		return m.SXY / m.SXX, m.N > 0 && m.SXX != 0
	},
	"regr_intercept": func(m Moments) (float64, bool) {
		return m.AvgY - m.AvgX*m.SXY/m.SXX, m.N > 0 && m.SXX != 0
	},
	"regr_r2": func(m Moments) (float64, bool) {
		switch {
		case m.N < 1 || m.SXX == 0:
			return 0, false
		case m.SYY == 0:
			return 1, true
		}
		return m.SXY * m.SXY / (m.SXX * m.SYY), true
	},
}

func registerRegressions() {
	f8 := types.Float8
	for name, final := range regressions {
		agg(name, AggVariance, f8, true, func([]types.Type, types.Type) Accumulator {
			return newFloatSums(true, true, func(s *floatSums) (float64, bool) { return final(s.moments()) })
		}, f8, f8)
	}
	agg("regr_count", AggVariance, types.Int8, true, func([]types.Type, types.Type) Accumulator { return new(countAcc) }, f8, f8)
}

func (s *floatSums) moments() Moments {
	m := Moments{N: s.n}
	if s.n == 0 {
		return m
	}
	badX, badY := s.badX.any(), s.badY.any()
	m.SXX = s.moment(badX, &s.sxx, &s.sx, &s.sx)
	m.SYY = s.moment(badY, &s.syy, &s.sy, &s.sy)
	m.SXY = s.moment(badX || badY, &s.sxy, &s.sx, &s.sy)
	m.AvgX, m.AvgY = s.badX.sum(&s.sx)/float64(s.n), s.badY.sum(&s.sy)/float64(s.n)
	return m
}

func init() {
	registerSums()
	registerExtremes()
	registerBits()
	registerVariances()
	registerRegressions()
}
