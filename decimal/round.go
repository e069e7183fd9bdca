package decimal

import "math/big"

// roundTo sets the scale of x, rounding half away from zero (or cutting, if
// trunc) when digits are lost. A negative scale rounds before the decimal
// point; the result then has scale 0.
func (x *num) roundTo(scale int, trunc bool) {
	if x.form != finite {
		return
	}
	switch d := x.scale - scale; {
	case d == 0:
	case d < 0:
		x.extend(scale)
	default:
		x.dropDigits(d, trunc)
		x.scale = scale
		if scale < 0 {
			x.extend(0)
		}
	}
}

// extend raises the scale of x without changing its value.
func (x *num) extend(scale int) {
	k := scale - x.scale
	if x.big == nil {
		if c, ok := x.c.mulPow10(k); ok {
			x.c, x.scale = c, scale
			return
		}
	}
	x.setMag(new(big.Int).Mul(x.bigMag(), bigPow10(k)))
	x.scale = scale
}

// dropDigits divides the magnitude by 10^k, k > 0.
func (x *num) dropDigits(k int, trunc bool) {
	if x.big == nil {
		if k >= len(pow10Tab) {
			x.c = u128{} // below 2^127 < 10^39/2
			return
		}
		p := pow10Tab[k]
		q, r := x.c.divMod(p)
		if !trunc && !r.less(p.sub(r)) {
			q = q.add(u128{0, 1})
		}
		x.c = q
		return
	}
	p := bigPow10(k)
	q, r := new(big.Int).QuoRem(x.big, p, new(big.Int))
	if !trunc && r.Lsh(r, 1).Cmp(p) >= 0 {
		q.Add(q, big.NewInt(1))
	}
	x.setMag(q)
}

// trimZeros lowers the scale as far as only zeros are dropped.
func (x *num) trimZeros() {
	if x.form != finite || x.scale == 0 {
		return
	}
	if x.isZero() {
		x.scale = 0
		return
	}
	if x.big != nil {
		x.trimBig()
		if x.big != nil {
			return
		}
	}
	for _, k := range [...]int{16, 8, 4, 2, 1} {
		p := pow10Tab[k].lo
		for x.scale >= k {
			q, r := x.c.divMod64(p)
			if r != 0 {
				break
			}
			x.c = q
			x.scale -= k
		}
	}
}

func (x *num) trimBig() {
	q, r := new(big.Int), new(big.Int)
	for k := 1 << 14; k > 0; k >>= 1 {
		for x.big != nil && x.scale >= k {
			// A multiple of 10^k has at least k trailing zero bits.
			if int(x.big.TrailingZeroBits()) < k {
				break
			}
			if q.QuoRem(x.big, bigPow10(k), r); r.Sign() != 0 {
				break
			}
			x.setMag(q)
			x.scale -= k
			q = new(big.Int)
		}
	}
}

// maxResultScale bounds the estimated decimal exponents of results
// (NUMERIC_MAX_RESULT_SCALE).
const maxResultScale = 2000

// minRoundScale bounds the negative scales that round and trunc take: there are
// no digits beyond.
const minRoundScale = -131072

// Round rounds to scale digits after the decimal point (before it, if
// negative), half away from zero: round(numeric, int).
func Round(dst, a []byte, scale int) ([]byte, error) {
	x := decode(a)
	x.roundTo(max(minRoundScale, min(MaxScale, scale)), false)
	return x.finish(dst)
}

// Trunc is Round that cuts: trunc(numeric, int).
func Trunc(dst, a []byte, scale int) []byte {
	x := decode(a)
	x.roundTo(max(minRoundScale, min(MaxScale, scale)), true)
	return x.append(dst)
}

// Ceil is the least integer not below a.
func Ceil(dst, a []byte) ([]byte, error) { return toward(dst, a, false) }

// Floor is the greatest integer not above a.
func Floor(dst, a []byte) ([]byte, error) { return toward(dst, a, true) }

func toward(dst, a []byte, down bool) ([]byte, error) {
	x := decode(a)
	if x.form != finite {
		return x.append(dst), nil
	}
	away := x.neg == down
	y := x
	y.roundTo(0, true)
	if away {
		full := y
		full.extend(x.scale)
		if cmpMag(&full, &x) != 0 {
			one := num{neg: x.neg, c: u128{0, 1}}
			y = addNums(&y, &one)
		}
	}
	return y.finish(dst)
}

// TrimScale drops trailing zeros after the decimal point: trim_scale(numeric).
func TrimScale(dst, a []byte) []byte {
	x := decode(a)
	x.trimZeros()
	return x.append(dst)
}

// Normalize is the one representative of all numbers equal to a: of two
// numbers that SQL calls equal, it gives the same bytes.
func Normalize(dst, a []byte) []byte { return TrimScale(dst, a) }
