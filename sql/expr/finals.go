package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// The finals below are the last steps of aggregates that an engine maintains in
// parts: scalar functions of the parts.

// VarianceFinal is the last step of a one-column aggregate of the variance
// family. Of integers and numeric it takes (count, sum, sum of squares), the
// sums exact numerics; of floats (count, sum of squared deviations). It is nil
// if a is another aggregate.
func VarianceFinal(a *Aggregate) *Function {
	v, ok := varianceNames[a.Name]
	if !ok || a.Op != AggVariance {
		return nil
	}
	if a.Ret.OID == types.OIDNumeric {
		return makeOnce(fnKey("final "+a.Name, types.OIDNumeric), func() *Function {
			return numericFinal(a.Name, v.sample, v.root)
		})
	}
	return makeOnce(fnKey("final "+a.Name, types.OIDFloat8), func() *Function {
		return floatFinal(a.Name, []types.Type{types.Int8, types.Float8}, func(args []*columnar.Vec, i int) (float64, bool) {
			n := args[0].Int64s()[i]
			if n == 0 || args[1].Null(i) {
				return 0, false
			}
			return varianceOf(n, args[1].Float64s()[i], v.sample, v.root)
		})
	})
}

func numericFinal(name string, sample, root bool) *Function {
	return &Function{
		Name: "final " + name, Args: []types.Type{types.Int8, types.Numeric, types.Numeric}, Ret: types.Numeric,
		Eval: func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			b := columnar.NewBuilder(columnar.KindBytes, n)
			for i := range n {
				if args[0].Int64s()[i] == 0 || args[1].Null(i) || args[2].Null(i) {
					b.Null()
					continue
				}
				v, ok, err := numericVariance(args[0].Int64s()[i], args[1].Bytes(i), args[2].Bytes(i), sample, root)
				switch {
				case err != nil:
					x.Fail(i, pgerror.As(err))
					b.Null()
				case !ok:
					b.Null()
				default:
					b.Bytes(v)
				}
			}
			return b.Build()
		},
	}
}

// floatFinal is a function of parts that gives a float8, NULL if f says so.
func floatFinal(name string, args []types.Type, f func(args []*columnar.Vec, i int) (float64, bool)) *Function {
	return &Function{
		Name: "final " + name, Args: args, Ret: types.Float8,
		Eval: func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			b := columnar.NewBuilder(columnar.KindFloat64, n)
			for i := range n {
				v, ok := f(args, i)
				switch {
				case !ok:
					b.Null()
				case isInf(v):
					x.Fail(i, errFloatOver)
					b.Null()
				default:
					b.Float64(v)
				}
			}
			return b.Build()
		},
	}
}

// RegressionFinal is the last step of a two-column aggregate of (Y, X): it
// takes (count, sum of X, sum of Y, and the sums of the products of deviations
// XX, YY, XY), all over the rows in which both are not NULL. It is nil if a is
// another aggregate.
func RegressionFinal(a *Aggregate) *Function {
	final, ok := regressions[a.Name]
	if !ok {
		return nil
	}
	f8 := types.Float8
	return makeOnce(fnKey("final "+a.Name, types.OIDFloat8), func() *Function {
		return floatFinal(a.Name, []types.Type{types.Int8, f8, f8, f8, f8, f8}, func(args []*columnar.Vec, i int) (float64, bool) {
			m := Moments{N: args[0].Int64s()[i]}
			if m.N == 0 {
				return 0, false
			}
			m.AvgX, m.AvgY = args[1].Float64s()[i]/float64(m.N), args[2].Float64s()[i]/float64(m.N)
			m.SXX, m.SYY, m.SXY = args[3].Float64s()[i], args[4].Float64s()[i], args[5].Float64s()[i]
			return final(m)
		})
	})
}
