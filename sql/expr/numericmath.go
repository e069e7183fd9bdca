package expr

import (
	"math"
	"math/big"

	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// The transcendental functions of numeric have at least 16 significant digits;
// the scale of the result follows PostgreSQL's estimates of its size. They are
// computed in binary fixed point with many guard bits and rounded once.
const (
	numericSigDigits = 16
	numericMaxScale  = 1000
	guardBits        = 96
)

var errNumericOver = pgerror.New(pgerror.NumericValueOutOfRange, "value overflows numeric format")

// finite is a finite numeric taken apart: coef × 10^-scale.
type finite struct {
	coef  *big.Int
	scale int
}

func finiteOf(a []byte) (finite, bool) {
	m, s, ok := decimal.Big(a)
	return finite{m, s}, ok
}

var bigTen = big.NewInt(10)

func pow10(n int) *big.Int { return new(big.Int).Exp(bigTen, big.NewInt(int64(n)), nil) }

// exponent is the exponent of the first digit; 0 for zero.
func (f finite) exponent() int {
	if f.coef.Sign() == 0 {
		return 0
	}
	return len(new(big.Int).Abs(f.coef).String()) - f.scale - 1
}

func floorDiv4(n int) int {
	if n < 0 {
		n -= 3
	}
	return n / 4
}

// leading is the value as f × 10^p, f having the first digits groups of four
// digits of PostgreSQL's base 10^4 form.
func (f finite) leading(groups int) (m float64, p int) {
	w := 4 * floorDiv4(f.exponent())
	p = w - 4*(groups-1)
	// Trailing groups of zeros are not stored.
	v := new(big.Int).Abs(f.coef)
	if e := f.scale + p; e >= 0 {
		v.Quo(v, pow10(e))
	} else {
		v.Mul(v, pow10(-e))
	}
	for groups > 1 {
		q, r := new(big.Int).QuoRem(v, big.NewInt(10000), new(big.Int))
		if r.Sign() != 0 {
			break
		}
		v, p, groups = q, p+4, groups-1
	}
	m, _ = new(big.Float).SetInt(v).Float64()
	return m, p
}

func (f finite) float() float64 {
	r := new(big.Rat).SetFrac(f.coef, pow10(f.scale))
	v, _ := r.Float64()
	return v
}

// cmpInt compares with n × 10^-scale.
func (f finite) cmp(n int64, scale int) int {
	a, b := new(big.Int).Set(f.coef), big.NewInt(n)
	if f.scale > scale {
		b.Mul(b, pow10(f.scale-scale))
	} else {
		a.Mul(a, pow10(scale-f.scale))
	}
	return a.Cmp(b)
}

// lnWeight estimates the exponent of the first digit of the logarithm.
func (f finite) lnWeight() int {
	if f.coef.Sign() <= 0 {
		return 0
	}
	if f.cmp(9, 1) >= 0 && f.cmp(11, 1) <= 0 {
		x := finite{new(big.Int).Sub(f.coef, pow10(f.scale)), f.scale}
		return x.exponent()
	}
	m, p := f.leading(2)
	ln := math.Abs(math.Log(m) + float64(p)*2.302585092994046)
	return int(math.Log10(ln))
}

func clampScale(s int) int { return min(max(s, 0), numericMaxScale) }

// roundFixed is the numeric nearest to v × 2^-bits at a scale.
func roundFixed(dst []byte, v *big.Int, bits uint, scale int) ([]byte, error) {
	a := new(big.Int).Abs(v)
	a.Mul(a, pow10(scale))
	a.Add(a, new(big.Int).Lsh(big.NewInt(1), bits-1))
	a.Rsh(a, bits)
	if v.Sign() < 0 {
		a.Neg(a)
	}
	return decimal.AppendBig(dst, a, scale)
}

// fixed is the value in binary fixed point.
func (f finite) fixed(bits uint) *big.Int {
	v := new(big.Int).Lsh(f.coef, bits)
	return v.Quo(v, pow10(f.scale))
}

// atanhInv is atanh(1/n) in fixed point.
func atanhInv(n int64, bits uint) *big.Int {
	x := new(big.Int).Lsh(big.NewInt(1), bits)
	x.Quo(x, big.NewInt(n))
	sum, sq := new(big.Int).Set(x), big.NewInt(n*n)
	t := new(big.Int)
	for k := int64(3); x.Sign() != 0; k += 2 {
		x.Quo(x, sq)
		sum.Add(sum, t.Quo(x, big.NewInt(k)))
	}
	return sum
}

// ln2 is the logarithm of 2: 18 atanh(1/26) - 2 atanh(1/4801) + 8 atanh(1/8749).
func ln2(bits uint) *big.Int {
	s := atanhInv(26, bits)
	s.Mul(s, big.NewInt(18))
	t := atanhInv(4801, bits)
	s.Sub(s, t.Mul(t, big.NewInt(2)))
	t = atanhInv(8749, bits)
	return s.Add(s, t.Mul(t, big.NewInt(8)))
}

// ln is the natural logarithm of a positive value in fixed point, with an
// absolute error far below 2^-(bits-guardBits/2).
func (f finite) ln(bits uint) *big.Int {
	one := new(big.Int).Lsh(big.NewInt(1), bits)
	// m = value × 2^-k lies between 1/2 and 2.
	k := f.coef.BitLen() - pow10(f.scale).BitLen()
	num, den := new(big.Int).Set(f.coef), pow10(f.scale)
	if k > 0 {
		den.Lsh(den, uint(k))
	} else {
		num.Lsh(num, uint(-k))
	}
	m := num.Lsh(num, bits)
	m.Quo(m, den)
	// Square roots bring m near 1, where the series converges fast.
	const roots = 8
	for range roots {
		m.Sqrt(m.Lsh(m, bits))
	}
	// ln m = 2 atanh((m-1)/(m+1))
	x := new(big.Int).Sub(m, one)
	x.Lsh(x, bits)
	x.Quo(x, m.Add(m, one))
	sq := new(big.Int).Mul(x, x)
	sq.Rsh(sq, bits)
	sum, t := new(big.Int).Set(x), new(big.Int)
	for n := int64(3); x.Sign() != 0; n += 2 {
		x.Mul(x, sq)
		x.Quo(x, one)
		sum.Add(sum, t.Quo(x, big.NewInt(n)))
	}
	sum.Lsh(sum, roots+1)
	l := ln2(bits)
	return sum.Add(sum, l.Mul(l, big.NewInt(int64(k))))
}

// expFixed is e^v of a fixed-point number as a fixed-point number times 2^k.
func expFixed(v *big.Int, bits uint) (m *big.Int, k int) {
	l := ln2(bits)
	q, r := new(big.Int), new(big.Int)
	q.DivMod(v, l, r)
	const halvings = 16
	r.Rsh(r, halvings)
	one := new(big.Int).Lsh(big.NewInt(1), bits)
	sum, term := new(big.Int).Set(one), new(big.Int).Set(one)
	for n := int64(1); term.Sign() != 0; n++ {
		term.Mul(term, r)
		term.Rsh(term, bits)
		term.Quo(term, big.NewInt(n))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
		sum.Rsh(sum, bits)
	}
	return sum, int(q.Int64())
}

func bitsFor(digits int) uint { return uint(max(digits, 0)*10/3) + guardBits }

// expTo is e^(v × 2^-bits) at a scale.
func expTo(dst []byte, v *big.Int, bits uint, scale int) ([]byte, error) {
	m, k := expFixed(v, bits)
	if k >= 0 {
		m.Lsh(m, uint(k))
		return roundFixed(dst, m, bits, scale)
	}
	return roundFixed(dst, m, bits+uint(-k), scale)
}

func zeroAt(dst []byte, scale int) ([]byte, error) {
	return decimal.AppendBig(dst, new(big.Int), scale)
}

// sqrtNumeric is the square root at a scale.
func sqrtNumeric(dst, a []byte, scale int) ([]byte, error) {
	f, _ := finiteOf(a)
	// The integer root of coef × 10^(2(scale+1)-f.scale) has one digit too many.
	v := new(big.Int).Set(f.coef)
	if e := 2*(scale+1) - f.scale; e >= 0 {
		v.Mul(v, pow10(e))
	} else {
		v.Quo(v, pow10(-e))
	}
	v.Sqrt(v)
	v.Add(v, big.NewInt(5))
	v.Quo(v, bigTen)
	return decimal.AppendBig(dst, v, scale)
}

func numericSqrt(dst, a []byte) ([]byte, error) {
	if decimal.IsNaN(a) {
		return decimal.AppendNaN(dst), nil
	}
	if decimal.Sign(a) < 0 {
		return dst, errSqrtNegative
	}
	f, ok := finiteOf(a)
	if !ok {
		return decimal.AppendInf(dst, 1), nil
	}
	w := (floorDiv4(f.exponent()) + 1) * 4
	half := w/2 - 1
	return sqrtNumeric(dst, a, clampScale(max(numericSigDigits-half, f.scale)))
}

func numericLn(dst, a []byte) ([]byte, error) {
	if decimal.IsNaN(a) {
		return decimal.AppendNaN(dst), nil
	}
	switch s := decimal.Sign(a); {
	case s < 0:
		return dst, errLogNegative
	case s == 0:
		return dst, errLogZero
	}
	f, ok := finiteOf(a)
	if !ok {
		return decimal.AppendInf(dst, 1), nil
	}
	scale := clampScale(max(numericSigDigits-f.lnWeight(), f.scale))
	bits := bitsFor(scale)
	return roundFixed(dst, f.ln(bits), bits, scale)
}

func numericExp(dst, a []byte) ([]byte, error) {
	f, ok := finiteOf(a)
	switch {
	case decimal.IsNaN(a):
		return decimal.AppendNaN(dst), nil
	case !ok && decimal.Sign(a) < 0:
		return decimal.AppendInt64(dst, 0), nil
	case !ok:
		return decimal.AppendInf(dst, 1), nil
	}
	v := f.float()
	weight := min(max(v*0.434294481903252, -2000), 2000)
	scale := clampScale(max(numericSigDigits-int(weight), f.scale))
	if math.Abs(v) >= 6000 {
		if v > 0 {
			return dst, errNumericOver
		}
		return zeroAt(dst, scale)
	}
	bits := bitsFor(scale + max(int(weight), 0))
	return expTo(dst, f.fixed(bits), bits, scale)
}

// numericLog is log(base, num).
func numericLog(dst, base, num []byte) ([]byte, error) {
	if decimal.IsNaN(base) || decimal.IsNaN(num) {
		return decimal.AppendNaN(dst), nil
	}
	s1, s2 := decimal.Sign(base), decimal.Sign(num)
	switch {
	case s1 < 0 || s2 < 0:
		return dst, errLogNegative
	case s1 == 0 || s2 == 0:
		return dst, errLogZero
	}
	b, ok1 := finiteOf(base)
	n, ok2 := finiteOf(num)
	switch {
	case !ok1 && !ok2:
		return decimal.AppendNaN(dst), nil
	case !ok1:
		return decimal.AppendInt64(dst, 0), nil
	case !ok2:
		return decimal.AppendInf(dst, 1), nil
	case b.cmp(1, 0) == 0:
		return dst, errDivZero
	}
	bw, nw := b.lnWeight(), n.lnWeight()
	scale := clampScale(max(numericSigDigits-(nw-bw), b.scale, n.scale))
	bits := bitsFor(scale + max(nw-bw, 0) + 2*max(-bw, 0) + max(-nw, 0))
	l := n.ln(bits)
	l.Lsh(l, bits)
	l.Quo(l, b.ln(bits))
	return roundFixed(dst, l, bits, scale)
}

func numericPower(dst, a, b []byte) ([]byte, error) {
	x, ok1 := finiteOf(a)
	y, ok2 := finiteOf(b)
	if !ok1 || !ok2 {
		return powerSpecial(dst, a, b, x, ok1, y, ok2)
	}
	if x.coef.Sign() == 0 && y.coef.Sign() < 0 {
		return dst, errPowZero
	}
	n, integral := y.integer()
	if x.coef.Sign() < 0 && !integral {
		return dst, errPowComplex
	}
	if integral && n.IsInt64() && n.Int64() >= math.MinInt32 && n.Int64() <= math.MaxInt32 {
		return powerInt(dst, x, int(n.Int64()), y.scale)
	}
	if x.coef.Sign() == 0 {
		return zeroAt(dst, numericSigDigits)
	}
	neg := x.coef.Sign() < 0 && n.Bit(0) == 1
	x.coef = new(big.Int).Abs(x.coef)
	// A first estimate of the size of the result.
	m, p := x.leading(4)
	ln := (math.Log(m) + float64(p)*2.302585092994046) * y.float()
	if x.cmp(9, 1) >= 0 && x.cmp(11, 1) <= 0 {
		near := finite{new(big.Int).Sub(x.coef, pow10(x.scale)), x.scale}
		ln = math.Log1p(near.float()) * y.float()
	}
	if math.Abs(ln) > 2000*3.01 {
		if ln > 0 {
			return dst, errNumericOver
		}
		return zeroAt(dst, numericMaxScale)
	}
	weight := ln * 0.434294481903252
	scale := clampScale(max(numericSigDigits-int(weight), x.scale, y.scale))
	bits := bitsFor(scale+max(int(weight), 0)+max(y.exponent(), 0)) + uint(max(-x.lnWeight(), 0))*4
	v := x.ln(bits)
	v.Mul(v, y.coef)
	v.Quo(v, pow10(y.scale))
	out, err := expTo(nil, v, bits, scale)
	if err != nil {
		return dst, err
	}
	if neg {
		return decimal.Neg(dst, out), nil
	}
	return append(dst, out...), nil
}

// integer is the value if it has no fraction.
func (f finite) integer() (*big.Int, bool) {
	q, r := new(big.Int).QuoRem(f.coef, pow10(f.scale), new(big.Int))
	return q, r.Sign() == 0
}

// powerInt is x^n for an integer n whose numeric had the display scale nScale.
func powerInt(dst []byte, x finite, n, nScale int) ([]byte, error) {
	weight := 0.0
	if x.coef.Sign() != 0 {
		m, p := x.leading(4)
		weight = float64(n) * (math.Log10(m) + float64(p))
	}
	if weight > 4*(32767+1) {
		return dst, errNumericOver
	}
	if weight+1 < -numericMaxScale {
		return zeroAt(dst, numericMaxScale)
	}
	scale := clampScale(max(numericSigDigits-int(weight), x.scale, nScale))
	abs := n
	if abs < 0 {
		abs = -abs
	}
	if bits := float64(x.coef.BitLen()) * float64(abs); bits > 1<<16 {
		return powerLong(dst, x, n, weight, scale)
	}
	num := new(big.Int).Exp(x.coef, big.NewInt(int64(abs)), nil)
	den := pow10(x.scale * abs)
	if n < 0 {
		num, den = den, num
	}
	return roundRatio(dst, num, den, scale)
}

// roundRatio is num/den at a scale, half away from zero.
func roundRatio(dst []byte, num, den *big.Int, scale int) ([]byte, error) {
	a := new(big.Int).Abs(num)
	d := new(big.Int).Abs(den)
	a.Mul(a, pow10(scale))
	a.Lsh(a, 1)
	a.Add(a, d)
	a.Quo(a, d.Lsh(d, 1))
	if num.Sign()*den.Sign() < 0 {
		a.Neg(a)
	}
	return decimal.AppendBig(dst, a, scale)
}

// powerLong is x^n where the exact power has too many digits to compute.
func powerLong(dst []byte, x finite, n int, weight float64, scale int) ([]byte, error) {
	prec := bitsFor(scale+max(int(weight), 0)) + 64
	base := new(big.Float).SetPrec(prec).SetRat(new(big.Rat).SetFrac(x.coef, pow10(x.scale)))
	r := new(big.Float).SetPrec(prec).SetInt64(1)
	abs := n
	if abs < 0 {
		abs = -abs
	}
	for ; abs > 0; abs >>= 1 {
		if abs&1 != 0 {
			r.Mul(r, base)
		}
		base.Mul(base, base)
	}
	if n < 0 {
		r.Quo(new(big.Float).SetPrec(prec).SetInt64(1), r)
	}
	rat, _ := r.Rat(nil)
	if rat == nil {
		return dst, errNumericOver
	}
	return roundRatio(dst, rat.Num(), rat.Denom(), scale)
}

// powerSpecial is power where NaN or an infinity takes part, after POSIX pow.
func powerSpecial(dst, a, b []byte, x finite, ok1 bool, y finite, ok2 bool) ([]byte, error) {
	one := func() ([]byte, error) { return decimal.AppendInt64(dst, 1), nil }
	zero := func() ([]byte, error) { return decimal.AppendInt64(dst, 0), nil }
	s1, s2 := decimal.Sign(a), decimal.Sign(b)
	isOne := ok1 && x.cmp(1, 0) == 0
	integral := !ok2 // infinities count as integers
	if ok2 {
		_, integral = y.integer()
	}
	switch {
	case decimal.IsNaN(a):
		if ok2 && s2 == 0 {
			return one()
		}
		return decimal.AppendNaN(dst), nil
	case decimal.IsNaN(b):
		if isOne {
			return one()
		}
		return decimal.AppendNaN(dst), nil
	case s1 == 0 && s2 < 0:
		return dst, errPowZero
	case s1 < 0 && !integral:
		return dst, errPowComplex
	case isOne || s2 == 0:
		return one()
	case s1 == 0:
		return zero()
	case !ok2:
		if ok1 && x.cmp(-1, 0) == 0 {
			return one()
		}
		large := !ok1 || x.cmp(1, 0) > 0 || x.cmp(-1, 0) < 0
		if large == (s2 > 0) {
			return decimal.AppendInf(dst, 1), nil
		}
		return zero()
	case s2 < 0:
		return zero()
	case s1 < 0:
		if n, _ := y.integer(); n.Bit(0) == 1 {
			return decimal.AppendInf(dst, -1), nil
		}
	}
	return decimal.AppendInf(dst, 1), nil
}

func init() {
	n := types.Numeric
	fn := func(name string, k Kernel, args ...types.Type) {
		Register(Function{Name: name, Args: args, Ret: n, Strict: true, Consts: ScalarConsts, Eval: k})
	}
	ten := decimal.AppendInt64(nil, 10)
	log10 := numericFn(func(dst, a []byte) ([]byte, error) { return numericLog(dst, ten, a) })
	fn("sqrt", numericFn(numericSqrt), n)
	fn("exp", numericFn(numericExp), n)
	fn("ln", numericFn(numericLn), n)
	fn("log", log10, n)
	fn("log10", log10, n)
	fn("log", numericOp(numericLog), n, n)
	fn("power", numericOp(numericPower), n, n)
	fn("pow", numericOp(numericPower), n, n)
	Register(Function{Name: "^", Operator: true, Args: []types.Type{n, n}, Ret: n, Strict: true, Consts: ScalarConsts, Eval: numericOp(numericPower)})
}
