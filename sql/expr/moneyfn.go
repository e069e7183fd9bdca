package expr

import (
	"math"
	"math/bits"

	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

var (
	moneyType     = types.Of(types.OIDMoney)
	errMoneyRange = pgerror.New(pgerror.NumericValueOutOfRange, "money out of range")
)

// toMoney rounds f, which was made of the float by.
func toMoney(f, by float64) (int64, *pgerror.Error) {
	if isInf(f) && !isInf(by) {
		return 0, errFloatOver
	}
	f = math.RoundToEven(f)
	if !(f >= math.MinInt64 && f < -math.MinInt64) {
		return 0, errMoneyRange
	}
	return int64(f), nil
}

func mulMoney(a, b int64) (int64, *pgerror.Error) {
	if a == 0 || b == 0 {
		return 0, nil
	}
	hi, _ := bits.Mul64(uint64(max(a, -a)), uint64(max(b, -b)))
	if p := a * b; hi == 0 && p/b == a && !(a == -1 && b == math.MinInt64) {
		return p, nil
	}
	return 0, errMoneyRange
}

func registerMoneyByInt[T integer](t types.Type) {
	op := func(symbol string, k Kernel, args ...types.Type) {
		Register(Function{Name: symbol, Operator: true, Args: args, Ret: moneyType, Strict: true, Consts: ScalarConsts, Eval: k})
	}
	op("*", try2(func(_ *Eval, a int64, b T) (int64, *pgerror.Error) { return mulMoney(a, int64(b)) }), moneyType, t)
	op("*", try2(func(_ *Eval, a T, b int64) (int64, *pgerror.Error) { return mulMoney(int64(a), b) }), t, moneyType)
	op("/", try2(func(_ *Eval, a int64, b T) (int64, *pgerror.Error) {
		switch {
		case b == 0:
			return 0, errDivZero
		case b == -1 && a == math.MinInt64:
			return 0, errMoneyRange
		}
		return a / int64(b), nil
	}), moneyType, t)
}

func registerMoneyByFloat[T floating](t types.Type) {
	op := func(symbol string, k Kernel, args ...types.Type) {
		Register(Function{Name: symbol, Operator: true, Args: args, Ret: moneyType, Strict: true, Consts: ScalarConsts, Eval: k})
	}
	op("*", try2(func(_ *Eval, a int64, b T) (int64, *pgerror.Error) { return toMoney(float64(a)*float64(b), float64(b)) }), moneyType, t)
	op("*", try2(func(_ *Eval, a T, b int64) (int64, *pgerror.Error) { return toMoney(float64(a)*float64(b), float64(a)) }), t, moneyType)
	op("/", try2(func(_ *Eval, a int64, b T) (int64, *pgerror.Error) {
		if b == 0 {
			return 0, errDivZero
		}
		return toMoney(float64(a)/float64(b), float64(b))
	}), moneyType, t)
}

// hundredfold makes cents of whole units.
func hundredfold[T integer](_ *Eval, a T) (int64, *pgerror.Error) {
	v, err := mulMoney(int64(a), 100)
	if err != nil {
		err = errInt8Range
	}
	return v, err
}

var hundred = decimal.AppendInt64(nil, 100)

func registerMoneyCasts() {
	// The locale that money is shown in could change.
	castFn(types.Int4, moneyType, CastAssignment, false, try1(hundredfold[int32])).Volatility = Stable
	castFn(types.Int8, moneyType, CastAssignment, false, try1(hundredfold[int64])).Volatility = Stable
	castFn(types.Numeric, moneyType, CastAssignment, false, fromNumeric(func(a []byte) (int64, error) {
		cents, err := decimal.Mul(nil, a, hundred)
		if err != nil {
			return 0, err
		}
		return decimal.ToInt64(cents)
	})).Volatility = Stable
	castFn(moneyType, types.Numeric, CastAssignment, true, toNumeric(func(dst []byte, v int64) []byte {
		q, err := decimal.Div(nil, decimal.AppendInt64(nil, v), hundred)
		if err != nil {
			panic("expr: cents as numeric: " + err.Error()) // no amount is out of range
		}
		if q, err = decimal.Round(dst, q, 2); err != nil {
			panic("expr: cents as numeric: " + err.Error())
		}
		return q
	})).Volatility = Stable
}

func init() {
	registerCompare(moneyType, moneyType, Immutable, cmpInt[int64])
	sum := func(symbol string, f func(a, b int64) (int64, bool)) {
		Register(Function{
			Name: symbol, Operator: true, Args: []types.Type{moneyType, moneyType}, Ret: moneyType, Strict: true, Consts: ScalarConsts,
			Eval: try2(func(_ *Eval, a, b int64) (int64, *pgerror.Error) {
				c, ok := f(a, b)
				if !ok {
					return 0, errMoneyRange
				}
				return c, nil
			}),
		})
	}
	sum("+", func(a, b int64) (int64, bool) { c := a + b; return c, (a^c)&(b^c) >= 0 })
	sum("-", func(a, b int64) (int64, bool) { c := a - b; return c, (a^b)&(a^c) >= 0 })
	registerMoneyByInt[int16](types.Int2)
	registerMoneyByInt[int32](types.Int4)
	registerMoneyByInt[int64](types.Int8)
	registerMoneyByFloat[float32](types.Float4)
	registerMoneyByFloat[float64](types.Float8)
	Register(Function{
		Name: "/", Operator: true, Args: []types.Type{moneyType, moneyType}, Ret: types.Float8, Strict: true, Consts: ScalarConsts,
		Eval: try2(func(_ *Eval, a, b int64) (float64, *pgerror.Error) {
			if b == 0 {
				return 0, errDivZero
			}
			return float64(a) / float64(b), nil
		}),
	})
	registerMoneyCasts()
	agg("sum", AggSum, moneyType, true, func([]types.Type, types.Type) Accumulator { return new(intSum) }, moneyType)
}
