package expr

import (
	"math"
	"math/rand/v2"
	"sort"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

var (
	errSqrtNegative = pgerror.New(pgerror.InvalidArgumentForPower, "cannot take square root of a negative number")
	errLogZero      = pgerror.New(pgerror.InvalidArgumentForLog, "cannot take logarithm of zero")
	errLogNegative  = pgerror.New(pgerror.InvalidArgumentForLog, "cannot take logarithm of a negative number")
	errPowZero      = pgerror.New(pgerror.InvalidArgumentForPower, "zero raised to a negative power is undefined")
	errPowComplex   = pgerror.New(pgerror.InvalidArgumentForPower, "a negative number raised to a non-integer power yields a complex result")
	errInputRange   = pgerror.New(pgerror.NumericValueOutOfRange, "input is out of range")
)

// float1 makes a kernel of a function of a float whose overflow and underflow
// are errors.
func float1(f func(a float64) (float64, *pgerror.Error)) Kernel {
	return try1(func(_ *Eval, a float64) (float64, *pgerror.Error) { return f(a) })
}

// plain wraps a function that is right for every float.
func plain(f func(a float64) float64) Kernel { return map1(f) }

// bounded wraps a function that overflows only from finite arguments.
func bounded(f func(a float64) float64) Kernel {
	return float1(func(a float64) (float64, *pgerror.Error) {
		r := f(a)
		if isInf(r) && !isInf(a) {
			return 0, errFloatOver
		}
		return r, nil
	})
}

func sqrtFloat(a float64) (float64, *pgerror.Error) {
	if a < 0 {
		return 0, errSqrtNegative
	}
	return math.Sqrt(a), nil
}

func expFloat(a float64) (float64, *pgerror.Error) {
	r := math.Exp(a)
	switch {
	case isInf(a):
		return r, nil
	case isInf(r):
		return 0, errFloatOver
	case r == 0:
		return 0, errFloatUnder
	}
	return r, nil
}

// naturalLog is right for subnormal numbers, too.
func naturalLog(a float64) float64 {
	if a < 0x1p-1022 {
		return math.Log(a*0x1p64) - 64*math.Ln2
	}
	return math.Log(a)
}

// decimalLog is exact at the powers of ten.
func decimalLog(a float64) float64 {
	r := naturalLog(a) / math.Ln10
	if n := math.Round(r); math.Abs(r-n) < 1e-9 && math.Abs(n) < 308 && math.Pow10(int(n)) == a {
		return n
	}
	return r
}

// logFloat makes ln and log of floats.
func logFloat(f func(a float64) float64) func(a float64) (float64, *pgerror.Error) {
	return func(a float64) (float64, *pgerror.Error) {
		switch {
		case a == 0:
			return 0, errLogZero
		case a < 0:
			return 0, errLogNegative
		}
		return f(a), nil
	}
}

func powFloat(_ *Eval, a, b float64) (float64, *pgerror.Error) {
	switch {
	case a != a:
		if b == 0 {
			return 1, nil
		}
		return a, nil
	case b != b:
		if a == 1 {
			return 1, nil
		}
		return b, nil
	case a == 0 && b < 0:
		return 0, errPowZero
	case a < 0 && math.Floor(b) != b && !isInf(b):
		return 0, errPowComplex
	}
	r := math.Pow(a, b)
	if math.Abs(a) < 0x1p-1022 && r != 0 {
		// math.Pow loses the digits of subnormal numbers.
		r = math.Pow(a*0x1p128, b) * math.Pow(0x1p-128, b)
	}
	switch {
	case isInf(a) || isInf(b):
		return r, nil
	case isInf(r):
		return 0, errFloatOver
	case r == 0 && a != 0:
		return 0, errFloatUnder
	}
	return r, nil
}

// trig wraps a function that has no value at the infinities.
func trig(f func(a float64) float64) Kernel {
	return float1(func(a float64) (float64, *pgerror.Error) {
		if isInf(a) {
			return 0, errInputRange
		}
		return f(a), nil
	})
}

// arc wraps a function that is defined from -1 to 1.
func arc(f func(a float64) float64) Kernel {
	return float1(func(a float64) (float64, *pgerror.Error) {
		if a < -1 || a > 1 {
			return 0, errInputRange
		}
		return f(a), nil
	})
}

func sign(a float64) float64 {
	switch {
	case a > 0:
		return 1
	case a < 0:
		return -1
	}
	return 0
}

// signFloat differs from sign in that NaN has none.
func signFloat(a float64) float64 {
	if a != a {
		return 0
	}
	return sign(a)
}

// gcd of integers; the least integer has no absolute value.
func gcd[T integer](_ *Eval, a, b T) (T, *pgerror.Error) {
	if a > b {
		a, b = b, a
	}
	// Negative numbers have the wider range.
	neg := func(v T) T {
		if v > 0 {
			return -v
		}
		return v
	}
	a, b = neg(a), neg(b)
	for b != 0 {
		if b == -1 {
			return 1, nil
		}
		a, b = b, a%b
	}
	if a == -a && a != 0 {
		return 0, rangeErr[T]()
	}
	return -a, nil
}

func lcm[T integer](x *Eval, a, b T) (T, *pgerror.Error) {
	if a == 0 || b == 0 {
		return 0, nil
	}
	g, err := gcd(x, a, b)
	if err != nil {
		return 0, err
	}
	a /= g
	r := a * b
	if int64(r) != int64(a)*int64(b) || mulOverflows(int64(a), int64(b)) {
		return 0, rangeErr[T]()
	}
	if r < 0 {
		r = -r
	}
	if r < 0 {
		return 0, rangeErr[T]()
	}
	return r, nil
}

func registerFloatMath() {
	f8 := types.Float8
	fn := func(name string, total bool, k Kernel) {
		Register(Function{Name: name, Args: []types.Type{f8}, Ret: f8, Strict: true, Total: total, Eval: k})
	}
	fn("ceil", true, plain(math.Ceil))
	fn("ceiling", true, plain(math.Ceil))
	fn("floor", true, plain(math.Floor))
	fn("round", true, plain(math.RoundToEven))
	fn("trunc", true, plain(math.Trunc))
	fn("sign", true, plain(signFloat))
	fn("cbrt", true, plain(math.Cbrt))
	fn("radians", false, float1(func(a float64) (float64, *pgerror.Error) {
		r := a * (math.Pi / 180)
		if r == 0 && a != 0 {
			return 0, errFloatUnder
		}
		return r, nil
	}))
	fn("degrees", false, bounded(func(a float64) float64 { return a / (math.Pi / 180) }))
	fn("sqrt", false, float1(sqrtFloat))
	fn("exp", false, float1(expFloat))
	fn("ln", false, float1(logFloat(naturalLog)))
	fn("log", false, float1(logFloat(decimalLog)))
	fn("log10", false, float1(logFloat(decimalLog)))
	fn("sin", false, trig(math.Sin))
	fn("cos", false, trig(math.Cos))
	fn("tan", false, trig(math.Tan))
	fn("cot", false, trig(func(a float64) float64 { return 1 / math.Tan(a) }))
	fn("asin", false, arc(math.Asin))
	fn("acos", false, arc(math.Acos))
	fn("atan", true, plain(math.Atan))
	fn("sind", false, trig(sinDegrees))
	fn("cosd", false, trig(cosDegrees))
	fn("tand", false, trig(tanDegrees))
	fn("cotd", false, trig(cotDegrees))
	fn("asind", false, arc(asinDegrees))
	fn("acosd", false, arc(acosDegrees))
	fn("atand", true, plain(atanDegrees))
	fn("sinh", true, plain(math.Sinh))
	fn("cosh", true, plain(math.Cosh))
	fn("tanh", true, plain(math.Tanh))
	fn("asinh", true, plain(math.Asinh))
	fn("acosh", false, float1(func(a float64) (float64, *pgerror.Error) {
		if a < 1 {
			return 0, errInputRange
		}
		return math.Acosh(a), nil
	}))
	fn("atanh", false, float1(func(a float64) (float64, *pgerror.Error) {
		if a < -1 || a > 1 {
			return 0, errInputRange
		}
		return math.Atanh(a), nil
	}))
	two := []types.Type{f8, f8}
	Register(Function{Name: "atan2", Args: two, Ret: f8, Strict: true, Total: true, Consts: ScalarConsts, Eval: map2(math.Atan2)})
	Register(Function{Name: "atan2d", Args: two, Ret: f8, Strict: true, Total: true, Consts: ScalarConsts, Eval: map2(atan2Degrees)})
	for _, name := range []string{"power", "pow"} {
		Register(Function{Name: name, Args: two, Ret: f8, Strict: true, Consts: ScalarConsts, Eval: try2(powFloat)})
	}
	Register(Function{Name: "^", Operator: true, Args: two, Ret: f8, Strict: true, Consts: ScalarConsts, Eval: try2(powFloat)})
	Register(Function{Name: "|/", Operator: true, Args: two[:1], Ret: f8, Strict: true, Eval: float1(sqrtFloat)})
	Register(Function{Name: "||/", Operator: true, Args: two[:1], Ret: f8, Strict: true, Total: true, Eval: plain(math.Cbrt)})
	Register(Function{Name: "pi", Ret: f8, Strict: true, Total: true, Eval: func(*Call, *Eval, []*columnar.Vec, int) *columnar.Vec {
		return columnar.FromSlice([]float64{math.Pi}, nil)
	}})
}

func registerIntMath() {
	two := func(name string, t types.Type, k Kernel) {
		Register(Function{Name: name, Args: []types.Type{t, t}, Ret: t, Strict: true, Consts: ScalarConsts, Eval: k})
	}
	two("gcd", types.Int4, try2(gcd[int32]))
	two("gcd", types.Int8, try2(gcd[int64]))
	two("lcm", types.Int4, try2(lcm[int32]))
	two("lcm", types.Int8, try2(lcm[int64]))
}

// widthBucket is width_bucket over floats.
func widthBucket(_ *Eval, a Args, i int) (int32, *pgerror.Error) {
	v, lo, hi, count := a.Float64(0, i), a.Float64(1, i), a.Float64(2, i), a.Int32(3, i)
	fail := func(msg string) (int32, *pgerror.Error) {
		return 0, pgerror.New(pgerror.InvalidArgumentForWidthBucket, "%s", msg)
	}
	switch {
	case count <= 0:
		return fail("count must be greater than zero")
	case v != v || lo != lo || hi != hi:
		return fail("operand, lower bound, and upper bound cannot be NaN")
	case isInf(lo) || isInf(hi):
		return fail("lower and upper bounds must be finite")
	case lo == hi:
		return fail("lower bound cannot equal upper bound")
	}
	// Descending bounds count from the high end.
	below, above := v < lo, v >= hi
	if lo > hi {
		below, above = v > lo, v <= hi
	}
	switch {
	case below:
		return 0, nil
	case above && count == math.MaxInt32:
		return 0, errInt4Range
	case above:
		return count + 1, nil
	}
	return cInt32(float64(count)*(v-lo)/(hi-lo) + 1), nil
}

// thresholdBucket is width_bucket over an ascending array of lower bounds.
func thresholdBucket(c *Call) (Kernel, error) {
	t := types.Of(c.Args[0].Type().OID)
	return rowFixed(func(_ *Eval, a Args, i int) (int32, *pgerror.Error) {
		arr := types.ReadArray(a.Bytes(1, i))
		switch {
		case arr.NDim > 1:
			return 0, pgerror.New(pgerror.ArraySubscriptError, "thresholds must be one-dimensional array")
		case arr.HasNulls():
			return 0, pgerror.New(pgerror.NullValueNotAllowed, "thresholds array must not contain NULLs")
		}
		b := columnar.NewBuilder(arr.Kind(), arr.N)
		arr.AppendElems(b, 0, arr.N)
		bounds := b.Build()
		v, row := a.row(0, i)
		n := sort.Search(arr.N, func(k int) bool { return types.Compare(t, v, row, bounds, k) < 0 })
		return int32(n), nil
	}), nil
}

// countNulls makes num_nulls and num_nonnulls.
func countNulls(null bool) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		dst, out := Result[int32](x, n)
		a := Args(args)
		if c.Variadic {
			return countNullElems(a, dst, out, null)
		}
		for i := range dst {
			dst[i] = 0
			for k := range a {
				if a.Null(k, i) == null {
					dst[i]++
				}
			}
		}
		return out
	}
}

// countNullElems is countNulls of the elements of an array.
func countNullElems(a Args, dst []int32, out *columnar.Vec, null bool) *columnar.Vec {
	missing := columnar.NewBitmap(len(dst))
	for i := range dst {
		dst[i] = 0
		if a.Null(0, i) {
			missing.Set(i)
			continue
		}
		arr := types.ReadArray(a.Bytes(0, i))
		for k := range arr.N {
			if arr.Null(k) == null {
				dst[i]++
			}
		}
	}
	return out.WithNulls(missing)
}

func registerBuckets() {
	f8 := types.Float8
	Register(Function{Name: "width_bucket", Args: []types.Type{f8, f8, f8, types.Int4}, Ret: types.Int4, Strict: true, Consts: ScalarConsts, Eval: rowFixed(widthBucket)})
	Register(Function{
		Name: "width_bucket", Args: []types.Type{types.Of(types.OIDAnyCompatible), types.Of(types.OIDAnyCompatibleArray)},
		Ret: types.Int4, Strict: true, Consts: ScalarConsts, Bind: thresholdBucket,
	})
	for name, null := range map[string]bool{"num_nulls": true, "num_nonnulls": false} {
		Register(Function{Name: name, Args: []types.Type{types.Of(types.OIDAny)}, Variadic: true, Ret: types.Int4, Total: true, Consts: ScalarConsts, Eval: countNulls(null)})
	}
}

// registerRandom registers what differs at each call.
func registerRandom() {
	Register(Function{Name: "random", Ret: types.Float8, Strict: true, Total: true, Volatility: Volatile,
		Eval: func(_ *Call, x *Eval, _ []*columnar.Vec, n int) *columnar.Vec {
			dst, out := Result[float64](x, n)
			for i := range dst {
				dst[i] = x.rand()
			}
			return out
		}})
	Register(Function{Name: "setseed", Args: []types.Type{types.Float8}, Ret: types.Void, Strict: true, Volatility: Volatile,
		Eval: func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			out := columnar.NewBuilder(columnar.KindBytes, n)
			for i, f := range args[0].Float64s()[:n] {
				if f < -1 || f > 1 || f != f {
					x.Fail(i, pgerror.New(pgerror.InvalidParameterValue, "setseed parameter %s is out of allowed range [-1,1]", formatG(f, 6)))
				} else if x.Context != nil && x.Random != nil {
					x.Random.Seed(math.Float64bits(f), 0)
				}
				out.String("")
			}
			return out.Build()
		}})
}

func (x *Eval) rand() float64 {
	if x.Context == nil || x.Random == nil {
		return rand.Float64()
	}
	return rand.New(x.Random).Float64()
}

func init() {
	registerFloatMath()
	registerIntMath()
	registerBuckets()
	registerRandom()
}
