package decimal

import (
	"bytes"
	"encoding/binary"
	"strconv"
)

// Compare orders numbers as SQL does: -Infinity, the finite ones by value,
// Infinity, NaN; NaN equals itself.
func Compare(a, b []byte) int {
	if c, ok := compareWords(a, b); ok {
		return c
	}
	x, y := decode(a), decode(b)
	if x.form|y.form != finite {
		return formRank(x.form) - formRank(y.form)
	}
	xs, ys := x.sign(), y.sign()
	if xs != ys {
		if xs < ys {
			return -1
		}
		return 1
	}
	return xs * cmpMag(&x, &y)
}

// Equal reports whether a and b are equal in value.
func Equal(a, b []byte) bool { return bytes.Equal(a, b) || Compare(a, b) == 0 }

// formRank orders the forms; comparing ranks of finite with finite gives 0.
func formRank(f form) int {
	switch f {
	case negInf:
		return -1
	case posInf:
		return 1
	case nan:
		return 2
	}
	return 0
}

// cmpMag compares the magnitudes of finite numbers.
func cmpMag(x, y *num) int {
	if x.big == nil && y.big == nil {
		if x.scale == y.scale {
			return x.c.cmp(y.c)
		}
		s := max(x.scale, y.scale)
		xc, ok1 := x.c.mulPow10(s - x.scale)
		yc, ok2 := y.c.mulPow10(s - y.scale)
		switch {
		case ok1 && ok2:
			return xc.cmp(yc)
		case ok1: // the other is 2^127 or more
			return -1
		case ok2:
			return 1
		}
	}
	// Different numbers of digits before the point decide without a product.
	if !x.isZero() && !y.isZero() {
		if dx, dy := x.digits()-x.scale, y.digits()-y.scale; dx != dy {
			if dx < dy {
				return -1
			}
			return 1
		}
	}
	s := max(x.scale, y.scale)
	return x.rescaled(s).Cmp(y.rescaled(s))
}

// The first byte of a sort key. Finite numbers other than zero are
// 0.d1d2d3… × 10^e with d1 not 0; small e is told by the first byte alone, as
// keyBase+e. Negative numbers have all bytes complemented.
const (
	keyNegInf  = 0x00
	keyZero    = 0x80
	keyLowExp  = 0x81 // e below keyMinExp, in the 4 bytes that follow
	keyHighExp = 0xBF // e above keyMaxExp
	keyMinExp  = -20
	keyMaxExp  = 40
	keyBase    = keyLowExp + 1 - keyMinExp
	keyPosInf  = 0xC0
	keyNaN     = 0xC1
)

// SortKey appends bytes whose order (bytes.Compare) is the SQL order of the
// numbers, equal for equal values. No key is a prefix of another.
func SortKey(dst, a []byte) []byte {
	x := decode(a)
	switch x.form {
	case nan:
		return append(dst, keyNaN)
	case posInf:
		return append(dst, keyPosInf)
	case negInf:
		return append(dst, keyNegInf)
	}
	if x.isZero() {
		return append(dst, keyZero)
	}
	start := len(dst)
	var buf [40]byte
	ds := x.appendCoef(buf[:0])
	switch e := len(ds) - x.scale; {
	case e < keyMinExp:
		dst = binary.BigEndian.AppendUint32(append(dst, keyLowExp), uint32(e)+1<<31)
	case e > keyMaxExp:
		dst = binary.BigEndian.AppendUint32(append(dst, keyHighExp), uint32(e)+1<<31)
	default:
		dst = append(dst, byte(keyBase+e))
	}
	for len(ds) > 0 && ds[len(ds)-1] == '0' {
		ds = ds[:len(ds)-1]
	}
	for len(ds) >= 2 {
		dst = append(dst, (ds[0]-'0')*10+ds[1]-'0'+1)
		ds = ds[2:]
	}
	if len(ds) == 1 {
		dst = append(dst, (ds[0]-'0')*10+1)
	}
	dst = append(dst, 0)
	if x.neg {
		for i := start; i < len(dst); i++ {
			dst[i] = ^dst[i]
		}
	}
	return dst
}

// appendCoef appends the decimal digits of the magnitude, none for zero.
func (x *num) appendCoef(dst []byte) []byte {
	if x.big != nil {
		return x.big.Append(dst, 10)
	}
	return appendU128(dst, x.c)
}

// appendU128 appends the decimal digits of c, none for zero.
func appendU128(dst []byte, c u128) []byte {
	if c.hi == 0 {
		if c.lo == 0 {
			return dst
		}
		return strconv.AppendUint(dst, c.lo, 10)
	}
	q, r := c.divMod64(1e19)
	dst = appendU128(dst, q)
	l := len(dst)
	dst = append(dst, "0000000000000000000"...)
	for i := l + 18; r > 0; i-- {
		dst[i] = byte('0' + r%10)
		r /= 10
	}
	return dst
}
