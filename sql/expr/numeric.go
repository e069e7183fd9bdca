package expr

import (
	"math/big"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// numericOp makes a kernel of an operation on two numerics.
func numericOp(f func(dst, a, b []byte) ([]byte, error)) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		a := Args(args)
		offs := make([]uint32, n+1)
		data := make([]byte, 0, 8*n)
		var failed columnar.Bitmap
		for i := range n {
			if x.skip == nil || !x.skip.Get(i) {
				d, err := f(data, a.Bytes(0, i), a.Bytes(1, i))
				if err != nil {
					failed = x.failed(failed, i, n, err)
				} else {
					data = d
				}
			}
			offs[i+1] = uint32(len(data))
		}
		return columnar.FromBytes(offs, data, failed)
	}
}

// failed reports an error for row i of n and notes the row as NULL: there is no
// value for it.
func (x *Eval) failed(nulls columnar.Bitmap, i, n int, err error) columnar.Bitmap {
	x.Fail(i, pgerror.As(err))
	if nulls == nil {
		nulls = columnar.NewBitmap(n)
	}
	nulls.Set(i)
	return nulls
}

// numericFn makes a kernel of a function of one numeric that may fail.
func numericFn(f func(dst, a []byte) ([]byte, error)) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		v := args[0]
		offs := make([]uint32, n+1)
		data := make([]byte, 0, 8*n)
		var failed columnar.Bitmap
		for i := range n {
			if !v.Null(i) {
				d, err := f(data, v.Bytes(i))
				if err != nil {
					failed = x.failed(failed, i, n, err)
				} else {
					data = d
				}
			}
			offs[i+1] = uint32(len(data))
		}
		return columnar.FromBytes(offs, data, failed)
	}
}

func appendSign(dst, a []byte) []byte {
	if decimal.IsNaN(a) {
		return decimal.AppendNaN(dst)
	}
	return decimal.AppendInt64(dst, int64(decimal.Sign(a)))
}

// scaleOf makes a kernel of a function that tells a scale, NULL for NaN and infinities.
func scaleOf(f func(a []byte) (int, bool)) Kernel {
	return RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		s, ok := f(a.Bytes(0, i))
		if !ok {
			out.Null()
		} else {
			out.Int32(int32(s))
		}
		return nil
	})
}

// withScale makes a kernel of round or trunc to a number of digits.
func withScale(f func(dst, a []byte, scale int) ([]byte, error)) Kernel {
	return RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		return extend(out, func(dst []byte) ([]byte, error) { return f(dst, a.Bytes(0, i), int(a.Int32(1, i))) })
	})
}

func truncTo(dst, a []byte, scale int) ([]byte, error) { return decimal.Trunc(dst, a, scale), nil }

// sqrtNumeric is the square root of a finite number at a scale, rounded.
func sqrtNumeric(dst, a []byte, scale int) ([]byte, error) {
	coef, s, _ := decimal.Big(a)
	v := new(big.Int).Set(coef)
	ten := big.NewInt(10)
	pow10 := func(n int) *big.Int { return new(big.Int).Exp(ten, big.NewInt(int64(n)), nil) }
	// The integer root has one digit too many, which is rounded off.
	if e := 2*(scale+1) - s; e >= 0 {
		v.Mul(v, pow10(e))
	} else {
		v.Quo(v, pow10(-e))
	}
	v.Sqrt(v)
	v.Add(v, big.NewInt(5))
	return decimal.AppendBig(dst, v.Quo(v, ten), scale)
}

func init() {
	n := types.Numeric
	op := func(name string, k Kernel) {
		Register(Function{Name: name, Operator: true, Args: []types.Type{n, n}, Ret: n, Strict: true, Consts: ScalarConsts, Eval: k})
	}
	fn := func(name string, total bool, ret types.Type, k Kernel, args ...types.Type) {
		Register(Function{Name: name, Args: args, Ret: ret, Strict: true, Total: total, Consts: ScalarConsts, Eval: k})
	}
	un := func(name string, k Kernel) {
		Register(Function{Name: name, Operator: true, Args: []types.Type{n}, Ret: n, Strict: true, Total: true, Eval: k})
	}
	op("+", orElse(addPacked(1), numericOp(decimal.Add)))
	op("-", orElse(addPacked(-1), numericOp(decimal.Sub)))
	op("*", orElse(mulPacked, numericOp(decimal.Mul)))
	op("/", numericOp(decimal.Div))
	op("%", numericOp(decimal.Mod))
	un("+", identity)
	un("-", bytesMap(decimal.Neg))
	un("@", bytesMap(decimal.Abs))
	fn("abs", true, n, bytesMap(decimal.Abs), n)
	fn("sign", true, n, bytesMap(appendSign), n)
	fn("mod", false, n, numericOp(decimal.Mod), n, n)
	fn("div", false, n, numericOp(decimal.DivTrunc), n, n)
	fn("gcd", false, n, numericOp(decimal.GCD), n, n)
	fn("lcm", false, n, numericOp(decimal.LCM), n, n)
	fn("ceil", false, n, numericFn(decimal.Ceil), n)
	fn("ceiling", false, n, numericFn(decimal.Ceil), n)
	fn("floor", false, n, numericFn(decimal.Floor), n)
	fn("round", false, n, numericFn(func(dst, a []byte) ([]byte, error) { return decimal.Round(dst, a, 0) }), n)
	fn("trunc", false, n, numericFn(func(dst, a []byte) ([]byte, error) { return decimal.Trunc(dst, a, 0), nil }), n)
	fn("round", false, n, withScale(decimal.Round), n, types.Int4)
	fn("trunc", false, n, withScale(truncTo), n, types.Int4)
	fn("scale", true, types.Int4, scaleOf(decimal.Scale), n)
	fn("min_scale", true, types.Int4, scaleOf(decimal.MinScale), n)
	fn("trim_scale", true, n, bytesMap(decimal.TrimScale), n)
	op("^", numericOp(decimal.Power))
	fn("power", false, n, numericOp(decimal.Power), n, n)
	fn("pow", false, n, numericOp(decimal.Power), n, n)
	fn("sqrt", false, n, numericFn(decimal.Sqrt), n)
	fn("exp", false, n, numericFn(decimal.Exp), n)
	fn("ln", false, n, numericFn(decimal.Ln), n)
	fn("log", false, n, numericFn(decimal.Log10), n)
	fn("log10", false, n, numericFn(decimal.Log10), n)
	fn("log", false, n, numericOp(decimal.Log), n, n)
	fn("factorial", false, n, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		return extend(out, func(dst []byte) ([]byte, error) { return decimal.Factorial(dst, a.Int64(0, i)) })
	}), types.Int8)
	fn("width_bucket", false, types.Int4, rowFixed(func(_ *Eval, a Args, i int) (int32, *pgerror.Error) {
		r, err := decimal.WidthBucket(a.Bytes(0, i), a.Bytes(1, i), a.Bytes(2, i), a.Int32(3, i))
		if err != nil {
			return 0, pgerror.As(err)
		}
		return r, nil
	}), n, n, n, types.Int4)
}
