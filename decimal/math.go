package decimal

import (
	"math"
	"math/big"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// The transcendental functions compute with binary floating point of enough
// precision that rounding to the result's scale is right, and choose that
// scale as PostgreSQL does.

const (
	log10e = 0.434294481903252
	ln10   = 2.302585092994046
	// expLimit bounds the arguments of the exponential function.
	expLimit = maxResultScale * 3
	// guardBits are computed beyond what the result needs.
	guardBits = 64
)

// bitsFor is a precision that holds so many decimal digits.
func bitsFor(digits int) uint { return uint(max(digits, 0))*3322/1000 + guardBits }

func errPower(msg string) error { return pgerror.New(pgerror.InvalidArgumentForPower, "%s", msg) }
func errLog(msg string) error   { return pgerror.New(pgerror.InvalidArgumentForLog, "%s", msg) }

// resultScale is the scale for a result whose first digit has the given
// decimal exponent: at least 16 significant digits, and no less than others.
func resultScale(weight int, others ...int) int {
	s := minSigDigits - weight
	for _, o := range others {
		s = max(s, o)
	}
	return min(max(s, 0), maxDisplayScale)
}

// float is x with a precision.
func (x *num) float(prec uint) *big.Float {
	f := new(big.Float).SetPrec(prec).SetInt(x.bigMag())
	if x.scale > 0 {
		f.Quo(f, new(big.Float).SetPrec(prec).SetInt(bigPow10(x.scale)))
	}
	if x.neg {
		f.Neg(f)
	}
	return f
}

// fromFloat rounds f to a scale, half away from zero.
func fromFloat(f *big.Float, scale int) num {
	g := new(big.Float).SetPrec(f.Prec() + uint(scale)*3322/1000 + guardBits).SetInt(bigPow10(scale))
	g.Mul(g, f)
	r := num{neg: g.Signbit(), scale: scale}
	g.Abs(g)
	g.Add(g, big.NewFloat(0.5))
	m, _ := g.Int(nil)
	r.setMag(m)
	return r
}

// toDouble is x as float64, ±Inf if it is too large.
func (x *num) toDouble() float64 {
	f, _ := x.float(64).Float64()
	return f
}

// Sqrt is the square root: sqrt(numeric).
func Sqrt(dst, a []byte) ([]byte, error) {
	x := decode(a)
	if x.sign() < 0 {
		return dst, errPower("cannot take square root of a negative number")
	}
	if x.form != finite {
		return x.append(dst), nil
	}
	w, _ := x.group4()
	if x.isZero() {
		w = 0
	}
	scale := resultScale((w+1)*decDigits/2-1, x.scale)
	// With the coefficient at scale 2*(scale+1) its integer root has one digit
	// more than needed; a rest of the root cannot make a tie.
	m := new(big.Int)
	if k := 2*(scale+1) - x.scale; k >= 0 {
		m.Mul(x.bigMag(), bigPow10(k))
	} else {
		m.Quo(x.bigMag(), bigPow10(-k))
	}
	r := num{scale: scale + 1}
	r.setMag(m.Sqrt(m))
	r.roundTo(scale, false)
	return r.finish(dst)
}

// Exp is e to the power of a: exp(numeric).
func Exp(dst, a []byte) ([]byte, error) {
	x := decode(a)
	switch x.form {
	case negInf:
		return AppendInt64(dst, 0), nil
	case nan, posInf:
		return x.append(dst), nil
	}
	v := max(-maxResultScale, min(maxResultScale, x.toDouble()*log10e))
	scale := resultScale(int(v), x.scale)
	r, err := expNum(&x, scale)
	if err != nil {
		return dst, err
	}
	return r.finish(dst)
}

func expNum(x *num, scale int) (num, error) {
	v := x.toDouble()
	if math.Abs(v) >= expLimit {
		if v > 0 {
			return num{}, errOverflow()
		}
		return num{scale: scale}, nil
	}
	prec := bitsFor(scale + max(0, int(v*log10e)) + 8)
	return fromFloat(expFloat(x.float(prec+16), prec), scale), nil
}

// expFloat is e^x to a precision.
func expFloat(x *big.Float, prec uint) *big.Float {
	p := prec + guardBits
	// x = k*ln2 + r, and r is halved until few terms of the series do.
	ln2 := ln2Float(p)
	q, _ := new(big.Float).Quo(x, ln2).Int64()
	r := new(big.Float).SetPrec(p).Mul(ln2, new(big.Float).SetInt64(q))
	r.Sub(new(big.Float).SetPrec(p).Set(x), r)
	halvings := int(math.Sqrt(float64(p))) / 2
	if r.Sign() != 0 {
		r.SetMantExp(r, -halvings)
	}
	p += uint(halvings) * 2
	sum := new(big.Float).SetPrec(p).SetInt64(1)
	term := new(big.Float).SetPrec(p).SetInt64(1)
	for i := int64(1); ; i++ {
		term.Mul(term, r)
		term.Quo(term, new(big.Float).SetInt64(i))
		if term.Sign() == 0 || term.MantExp(nil) < -int(p) {
			break
		}
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum.SetMantExp(sum, int(q))
}

// ln2Float is ln 2 = 2*atanh(1/3).
func ln2Float(prec uint) *big.Float {
	return atanh2(new(big.Float).SetPrec(prec+guardBits).Quo(big.NewFloat(1), big.NewFloat(3)), prec)
}

// atanh2 is 2*atanh(y) for small |y|, by its series.
func atanh2(y *big.Float, prec uint) *big.Float {
	p := prec + guardBits
	y2 := new(big.Float).SetPrec(p).Mul(y, y)
	sum := new(big.Float).SetPrec(p)
	pow := new(big.Float).SetPrec(p).Set(y)
	limit := -int(p)
	if y.Sign() != 0 {
		limit += y.MantExp(nil)
	}
	for i := int64(1); pow.Sign() != 0 && pow.MantExp(nil) > limit; i += 2 {
		sum.Add(sum, new(big.Float).SetPrec(p).Quo(pow, new(big.Float).SetInt64(i)))
		pow.Mul(pow, y2)
	}
	return sum.Add(sum, sum)
}

// lnFloat is ln x to a relative precision, x > 0.
func lnFloat(x *big.Float, prec uint) *big.Float {
	p := prec + guardBits
	m := new(big.Float).SetPrec(max(p, x.Prec())).Set(x)
	k := 0
	// Near 1 the number itself is kept, as a multiple of ln 2 would cancel.
	one := big.NewFloat(1)
	if m.Cmp(big.NewFloat(0.75)) < 0 || m.Cmp(big.NewFloat(1.5)) > 0 {
		k = m.MantExp(m)
		if m.Cmp(big.NewFloat(0.75)) < 0 {
			m.SetMantExp(m, 1)
			k--
		}
	}
	// Square roots bring it nearer to 1: ln m = 2^n * ln(m^(1/2^n)).
	const roots = 4
	n := 0
	if k != 0 {
		p += roots * 2
		m.SetPrec(p)
		for ; n < roots; n++ {
			m.Sqrt(m)
		}
	}
	num := new(big.Float).SetPrec(m.Prec()+guardBits).Sub(m, one)
	den := new(big.Float).SetPrec(m.Prec()+guardBits).Add(m, one)
	r := atanh2(num.Quo(num, den), p)
	if r.Sign() != 0 {
		r.SetMantExp(r, n)
	}
	if k != 0 {
		r.Add(r, new(big.Float).SetPrec(p).Mul(ln2Float(p), new(big.Float).SetInt64(int64(k))))
	}
	return r
}

// lnWeight estimates the decimal exponent of the first digit of ln x, exactly
// as PostgreSQL does, since the scale of results depends on it.
func (x *num) lnWeight() int {
	if x.neg || x.isZero() {
		return 0
	}
	low, high := num{c: u128{0, 9}, scale: 1}, num{c: u128{0, 11}, scale: 1}
	if cmpMag(x, &low) >= 0 && cmpMag(x, &high) <= 0 {
		minusOne := num{neg: true, c: u128{0, 1}}
		d := addNums(x, &minusOne)
		if d.isZero() {
			return 0
		}
		w, first := d.group4()
		return w*decDigits + int(math.Log10(float64(first)))
	}
	digits, exp := x.lead(2)
	l := math.Log(digits) + float64(exp)*ln10
	return int(math.Log10(math.Abs(l)))
}

// lead is the first n base-10^4 digits of x (fewer, if the rest are zero) as a
// number f with x ~ f * 10^exp.
func (x *num) lead(n int) (f float64, exp int) {
	var buf [48]byte
	ds := x.appendCoef(buf[:0])
	w := floorDiv4(len(ds) - x.scale - 1)
	k := len(ds) - x.scale - w*decDigits // decimals of the first digit
	for len(ds) > 0 && ds[len(ds)-1] == '0' {
		ds = ds[:len(ds)-1]
	}
	exp = (w + 1) * decDigits
	for ; n > 0 && len(ds) > 0; n-- {
		d := 0
		for i := range k {
			d *= 10
			if i < len(ds) {
				d += int(ds[i] - '0')
			}
		}
		ds = ds[min(k, len(ds)):]
		k = decDigits
		f = f*10000 + float64(d)
		exp -= decDigits
	}
	return f, exp
}

func (x *num) checkLog() error {
	switch s := x.sign(); {
	case x.form == nan || s > 0:
		return nil
	case s < 0:
		return errLog("cannot take logarithm of a negative number")
	}
	return errLog("cannot take logarithm of zero")
}

// Ln is the natural logarithm: ln(numeric).
func Ln(dst, a []byte) ([]byte, error) {
	x := decode(a)
	if err := x.checkLog(); err != nil {
		return dst, err
	}
	if x.form != finite {
		return x.append(dst), nil
	}
	w := x.lnWeight()
	scale := resultScale(w, x.scale)
	prec := bitsFor(scale + w + 8)
	r := fromFloat(lnFloat(x.float(prec+bitsFor(x.scale)), prec), scale)
	return r.finish(dst)
}

// Log is the logarithm of a to a base: log(base, a).
func Log(dst, base, a []byte) ([]byte, error) {
	b, x := decode(base), decode(a)
	if b.form|x.form == finite {
		if err := b.checkLog(); err != nil {
			return dst, err
		}
		if err := x.checkLog(); err != nil {
			return dst, err
		}
	}
	switch {
	case b.form == nan || x.form == nan:
		return AppendNaN(dst), nil
	case b.sign() < 0 || x.sign() < 0:
		return dst, errLog("cannot take logarithm of a negative number")
	case b.sign() == 0 || x.sign() == 0:
		return dst, errLog("cannot take logarithm of zero")
	case b.form == posInf && x.form == posInf:
		return AppendNaN(dst), nil
	case b.form == posInf:
		return AppendInt64(dst, 0), nil
	case x.form == posInf:
		return x.append(dst), nil
	}
	bw, xw := b.lnWeight(), x.lnWeight()
	scale := resultScale(xw-bw, b.scale, x.scale)
	prec := bitsFor(scale + max(0, xw-bw) + 16)
	lb := lnFloat(b.float(prec+bitsFor(b.scale)), prec)
	if lb.Sign() == 0 {
		return dst, errDivisionByZero()
	}
	lx := lnFloat(x.float(prec+bitsFor(x.scale)), prec)
	r := fromFloat(lx.Quo(lx, lb), scale)
	return r.finish(dst)
}

// Log10 is the logarithm to base 10: log(numeric).
func Log10(dst, a []byte) ([]byte, error) {
	var ten [4]byte
	return Log(dst, AppendInt64(ten[:0], 10), a)
}

// isInteger reports whether x has no fraction.
func (x *num) isInteger() bool {
	if x.form != finite {
		return x.form != nan
	}
	y := *x
	y.trimZeros()
	return y.scale == 0
}

// isOdd reports whether x is an odd integer.
func (x *num) isOdd() bool {
	if x.form != finite || !x.isInteger() {
		return false
	}
	y := *x
	y.trimZeros()
	if y.big != nil {
		return y.big.Bit(0) == 1
	}
	return y.c.lo&1 == 1
}

// Power is a to the power of b: power(numeric, numeric).
func Power(dst, a, b []byte) ([]byte, error) {
	x, y := decode(a), decode(b)
	one := num{c: u128{0, 1}}
	switch {
	case x.form == nan && y.isZero(), y.form == nan && x.form == finite && !x.neg && cmpMag(&x, &one) == 0:
		return one.append(dst), nil
	case x.form == nan || y.form == nan:
		return AppendNaN(dst), nil
	case x.sign() == 0 && y.sign() < 0:
		return dst, errPower("zero raised to a negative power is undefined")
	case x.sign() < 0 && !y.isInteger():
		return dst, errPower("a negative number raised to a non-integer power yields a complex result")
	case x.form|y.form != finite:
		r := powerInf(&x, &y)
		return r.append(dst), nil
	}
	r, err := powerNum(&x, &y)
	if err != nil {
		return dst, err
	}
	return r.finish(dst)
}

// powerInf is x^y where one of them is infinite and neither is NaN.
func powerInf(x, y *num) num {
	zero, one, inf := num{}, num{c: u128{0, 1}}, num{form: posInf}
	switch {
	case x.form == finite && !x.neg && cmpMag(x, &one) == 0, y.sign() == 0:
		return one
	case x.sign() == 0:
		return zero
	case y.form != finite:
		large := true
		if x.form == finite {
			c := cmpMag(x, &one)
			if c == 0 {
				return one
			}
			large = c > 0
		}
		if large == (y.form == posInf) {
			return inf
		}
		return zero
	case y.sign() < 0:
		return zero
	case x.form == negInf && y.isOdd():
		return num{form: negInf}
	}
	return inf
}

func powerNum(x, y *num) (num, error) {
	if y.isInteger() {
		if n, err := y.toInt(math.MinInt32, math.MaxInt32, "integer"); err == nil {
			return powerInt(x, int(n))
		}
	}
	if x.isZero() {
		return num{scale: minSigDigits}, nil
	}
	abs := *x
	abs.neg = false
	lw := abs.lnWeight()
	// A first estimate of y*ln(x) gives the weight of the result.
	low := lnFloat(abs.float(bitsFor(40)+bitsFor(abs.scale)), bitsFor(40))
	v, _ := low.Mul(low, y.float(128)).Float64()
	if math.Abs(v) > maxResultScale*3.01 {
		if v > 0 {
			return num{}, errOverflow()
		}
		return num{scale: maxDisplayScale}, nil
	}
	w := int(v * log10e)
	scale := resultScale(w, x.scale, y.scale)
	prec := bitsFor(scale + max(w, 0) + max(0, -lw) + 24)
	l := lnFloat(abs.float(prec+bitsFor(abs.scale)), prec)
	l.Mul(l, y.float(prec+bitsFor(y.digits())))
	if f, _ := l.Float64(); math.Abs(f) >= expLimit {
		if f > 0 {
			return num{}, errOverflow()
		}
		return num{scale: scale}, nil
	}
	r := fromFloat(expFloat(l, prec), scale)
	r.neg = x.neg && y.isOdd()
	return r, nil
}

// powerInt is x^n, which has 16 digits after the point or as many as x.
func powerInt(x *num, n int) (num, error) {
	scale := resultScale(0, x.scale)
	one := num{c: u128{0, 1}}
	switch {
	case n == 0:
		one.extend(scale)
		return one, nil
	case x.isZero():
		if n < 0 {
			return num{}, errDivisionByZero()
		}
		return num{scale: scale}, nil
	case n == -1:
		return divNums(&one, x, scale, false), nil
	}
	d, p := x.lead(4)
	f := float64(n) * (math.Log10(d) + float64(p)) // about the exponent of the result
	if f > maxIntDigits {
		return num{}, errOverflow()
	}
	if f+1 < float64(-scale) {
		return num{scale: scale}, nil
	}
	r := powerExact(x, n, scale, f)
	r.neg = x.neg && n&1 != 0
	return r, nil
}

// powerExact is |x|^n at a scale; f is about its decimal exponent. Where the
// exact power has not too many digits it is rounded; otherwise floating point
// of ample precision is.
func powerExact(x *num, n, scale int, f float64) num {
	abs := *x
	abs.neg = false
	m := n
	if m < 0 {
		m = -m
	}
	const maxExactBits = 1 << 16
	if abs.bigMag().BitLen()*m <= maxExactBits && abs.scale*m < 1<<20 {
		p := num{scale: abs.scale * m}
		p.setMag(new(big.Int).Exp(abs.bigMag(), big.NewInt(int64(m)), nil))
		if n < 0 {
			one := num{c: u128{0, 1}}
			return divNums(&one, &p, scale, false)
		}
		p.roundTo(scale, false)
		return p
	}
	prec := bitsFor(scale+max(0, int(f))+16) + 64
	base := abs.float(prec)
	r := new(big.Float).SetPrec(prec).SetInt64(1)
	for ; m > 0; m >>= 1 {
		if m&1 != 0 {
			r.Mul(r, base)
		}
		base.Mul(base, base)
	}
	if n < 0 {
		r.Quo(big.NewFloat(1), r)
	}
	return fromFloat(r, scale)
}
