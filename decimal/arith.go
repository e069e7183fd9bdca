package decimal

import "math/big"

// Add is a+b. The scale is the greater of the two.
func Add(dst, a, b []byte) ([]byte, error) {
	if r, ok := addWords(dst, a, b, 0); ok {
		return r, nil
	}
	x, y := decode(a), decode(b)
	return addSigned(dst, &x, &y)
}

// Sub is a-b. The scale is the greater of the two.
func Sub(dst, a, b []byte) ([]byte, error) {
	if r, ok := addWords(dst, a, b, negBit); ok {
		return r, nil
	}
	x, y := decode(a), decode(b)
	y.negate()
	return addSigned(dst, &x, &y)
}

func (x *num) negate() {
	switch x.form {
	case posInf:
		x.form = negInf
	case negInf:
		x.form = posInf
	}
	x.neg = !x.neg
}

func addSigned(dst []byte, x, y *num) ([]byte, error) {
	if x.form|y.form != finite {
		r := addSpecial(x, y)
		return r.append(dst), nil
	}
	r := addNums(x, y)
	return r.finish(dst)
}

func addSpecial(x, y *num) num {
	switch {
	case x.form == nan || y.form == nan:
		return num{form: nan}
	case x.form == finite:
		return *y
	case y.form == finite || x.form == y.form:
		return *x
	}
	return num{form: nan} // Infinity - Infinity
}

// addNums adds finite numbers.
func addNums(x, y *num) num {
	r := num{scale: max(x.scale, y.scale)}
	if x.big == nil && y.big == nil {
		xc, ok1 := x.c.mulPow10(r.scale - x.scale)
		yc, ok2 := y.c.mulPow10(r.scale - y.scale)
		if ok1 && ok2 {
			if x.neg == y.neg {
				r.neg = x.neg
				if r.c = xc.add(yc); r.c.fits() {
					return r
				}
			} else if xc.less(yc) {
				r.neg, r.c = y.neg, yc.sub(xc)
				return r
			} else {
				r.neg, r.c = x.neg, xc.sub(yc)
				return r
			}
		}
	}
	xb, yb := x.rescaled(r.scale), y.rescaled(r.scale)
	m := new(big.Int)
	switch {
	case x.neg == y.neg:
		r.neg = x.neg
		m.Add(xb, yb)
	case xb.Cmp(yb) < 0:
		r.neg = y.neg
		m.Sub(yb, xb)
	default:
		r.neg = x.neg
		m.Sub(xb, yb)
	}
	r.c = u128{}
	r.setMag(m)
	return r
}

// Mul is a*b. The scale is the sum of the two.
func Mul(dst, a, b []byte) ([]byte, error) {
	if r, ok := mulWords(dst, a, b); ok {
		return r, nil
	}
	x, y := decode(a), decode(b)
	if x.form|y.form != finite {
		r := mulSpecial(&x, &y)
		return r.append(dst), nil
	}
	r := mulNums(&x, &y)
	if r.scale > MaxScale {
		r.roundTo(MaxScale, false)
	}
	return r.finish(dst)
}

func mulSpecial(x, y *num) num {
	s := x.sign() * y.sign() // 0: NaN, or Infinity times zero
	switch {
	case s > 0:
		return num{form: posInf}
	case s < 0:
		return num{form: negInf}
	}
	return num{form: nan}
}

// mulNums multiplies finite numbers.
func mulNums(x, y *num) num {
	r := num{neg: x.neg != y.neg, scale: x.scale + y.scale}
	if x.big == nil && y.big == nil {
		if p := x.c.mul(y.c); p[3]|p[2] == 0 && p[1]>>63 == 0 {
			r.c = u128{p[1], p[0]}
			return r
		}
	}
	r.setMag(new(big.Int).Mul(x.bigMag(), y.bigMag()))
	return r
}

// The bounds of the scale of a quotient and of the transcendental functions.
const (
	minSigDigits    = 16
	maxDisplayScale = 1000
	decDigits       = 4 // PostgreSQL's numeric has base 10^4
)

// group4 is x seen in base 10^4: the exponent of its first digit, and that
// digit. Both are 0 for zero.
func (x *num) group4() (weight, first int) {
	if x.isZero() {
		return 0, 0
	}
	d := x.digits()
	weight = floorDiv4(d - x.scale - 1)
	// The first digit is coef / 10^(scale+4*weight).
	switch e := x.scale + decDigits*weight; {
	case e <= 0:
		m := x.c.lo // below 10^4
		for ; e < 0; e++ {
			m *= 10
		}
		return weight, int(m)
	case x.big != nil:
		return weight, int(new(big.Int).Quo(x.big, bigPow10(e)).Int64())
	default:
		q, _ := x.c.divMod(pow10Tab[e])
		return weight, int(q.lo)
	}
}

func floorDiv4(n int) int { return n >> 2 }

// divScale is the result scale of x/y: at least 16 significant digits, and no
// less than either input's scale. It looks at base-10^4 digits, as PostgreSQL does.
func divScale(x, y *num) int {
	xw, xf := x.group4()
	yw, yf := y.group4()
	qw := xw - yw
	if xf <= yf {
		qw--
	}
	s := minSigDigits - qw*decDigits
	return min(max(s, x.scale, y.scale, 0), maxDisplayScale)
}

// Div is a/b, rounded to PostgreSQL's scale for quotients.
func Div(dst, a, b []byte) ([]byte, error) {
	x, y := decode(a), decode(b)
	if x.form|y.form != finite {
		return divSpecial(dst, &x, &y)
	}
	if y.isZero() {
		return dst, errDivisionByZero()
	}
	r := divNums(&x, &y, divScale(&x, &y), false)
	return r.finish(dst)
}

// DivTrunc is the integer part of a/b: div(numeric, numeric).
func DivTrunc(dst, a, b []byte) ([]byte, error) {
	x, y := decode(a), decode(b)
	if x.form|y.form != finite {
		return divSpecial(dst, &x, &y)
	}
	if y.isZero() {
		return dst, errDivisionByZero()
	}
	r := divNums(&x, &y, 0, true)
	return r.finish(dst)
}

func divSpecial(dst []byte, x, y *num) ([]byte, error) {
	r := num{form: nan}
	switch {
	case x.form == nan || y.form == nan:
	case x.form == finite: // by an infinity
		r.form = finite
	case y.isZero():
		return dst, errDivisionByZero()
	case y.form == finite:
		r.form = posInf
		if x.sign() != y.sign() {
			r.form = negInf
		}
	}
	return r.append(dst), nil
}

// divNums divides finite numbers, y not zero, to the given scale.
func divNums(x, y *num, scale int, trunc bool) num {
	r := num{neg: x.neg != y.neg, scale: scale}
	e := scale + y.scale - x.scale // quotient = xc*10^e / yc
	if x.big == nil && y.big == nil {
		if c, ok := divSmall(x.c, y.c, e, trunc); ok {
			r.c = c
			return r
		}
	}
	n, d := x.bigMag(), y.bigMag()
	if e >= 0 {
		n = new(big.Int).Mul(n, bigPow10(e))
	} else {
		d = new(big.Int).Mul(d, bigPow10(-e))
	}
	q, m := new(big.Int).QuoRem(n, d, new(big.Int))
	if !trunc && m.Lsh(m, 1).Cmp(d) >= 0 {
		q.Add(q, big.NewInt(1))
	}
	r.setMag(q)
	return r
}

// divSmall is x*10^e / y, if that can be done in 256 bits and gives less than 2^127.
func divSmall(x, y u128, e int, trunc bool) (q u128, ok bool) {
	var m u128
	switch {
	case e >= len(pow10Tab) || -e >= len(pow10Tab):
		if x.isZero() {
			return q, true
		}
		return q, false
	case e >= 0:
		if q, m, ok = x.mul(pow10Tab[e]).div(y); !ok {
			return q, false
		}
	default:
		if y, ok = y.mulPow10(-e); !ok {
			return q, false
		}
		q, m = x.divMod(y)
	}
	if !trunc && !m.less(y.sub(m)) {
		q = q.add(u128{0, 1})
	}
	return q, q.fits()
}

// Mod is the remainder of a/b cut to an integer; it has a's sign.
func Mod(dst, a, b []byte) ([]byte, error) {
	x, y := decode(a), decode(b)
	if x.form|y.form != finite {
		switch {
		case x.form == nan || y.form == nan:
			return AppendNaN(dst), nil
		case x.form == finite:
			return x.append(dst), nil
		case y.isZero():
			return dst, errDivisionByZero()
		}
		return AppendNaN(dst), nil
	}
	if y.isZero() {
		return dst, errDivisionByZero()
	}
	r := modNums(&x, &y)
	return r.finish(dst)
}

func modNums(x, y *num) num {
	r := num{neg: x.neg, scale: max(x.scale, y.scale)}
	if x.big == nil && y.big == nil {
		xc, ok1 := x.c.mulPow10(r.scale - x.scale)
		yc, ok2 := y.c.mulPow10(r.scale - y.scale)
		if ok1 && ok2 {
			_, r.c = xc.divMod(yc)
			return r
		}
	}
	r.setMag(new(big.Int).Rem(x.rescaled(r.scale), y.rescaled(r.scale)))
	return r
}

// Neg is -a.
func Neg(dst, a []byte) []byte {
	x := decode(a)
	x.negate()
	return x.append(dst)
}

// Abs is |a|.
func Abs(dst, a []byte) []byte {
	x := decode(a)
	if x.neg || x.form == negInf {
		x.negate()
	}
	return x.append(dst)
}

// GCD is the greatest common divisor, not negative: gcd(numeric, numeric).
func GCD(dst, a, b []byte) ([]byte, error) {
	x, y := decode(a), decode(b)
	if x.form|y.form != finite {
		return AppendNaN(dst), nil
	}
	r := gcdNums(&x, &y)
	return r.finish(dst)
}

func gcdNums(x, y *num) num {
	s := max(x.scale, y.scale)
	r := num{scale: s}
	r.setMag(new(big.Int).GCD(nil, nil, x.rescaled(s), y.rescaled(s)))
	return r
}

// LCM is the least common multiple, not negative: lcm(numeric, numeric).
func LCM(dst, a, b []byte) ([]byte, error) {
	x, y := decode(a), decode(b)
	if x.form|y.form != finite {
		return AppendNaN(dst), nil
	}
	r := num{scale: max(x.scale, y.scale)}
	if !x.isZero() && !y.isZero() {
		xb, yb := x.rescaled(r.scale), y.rescaled(r.scale)
		g := new(big.Int).GCD(nil, nil, xb, yb)
		r.setMag(g.Mul(new(big.Int).Quo(xb, g), yb))
	}
	return r.finish(dst)
}
