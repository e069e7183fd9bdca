package decimal

import (
	"encoding/binary"
	"math/bits"
)

// Numbers whose magnitude fits in one machine word are by far the most common.
// The functions here do them without decoding into a num; ok is false if they
// cannot, for whatever reason.

const negBit = 1 << 14

// word is the header and the magnitude of such a number.
func word(e []byte) (h uint16, m uint64, ok bool) {
	h = binary.LittleEndian.Uint16(e)
	if len(e) > headerLen+8 || h >= 2<<14 {
		return h, 0, false
	}
	return h, load64(e[headerLen:]), true
}

func appendWord(dst []byte, h uint16, m uint64) []byte {
	if m == 0 {
		h &^= negBit
	}
	dst = binary.LittleEndian.AppendUint16(dst, h)
	l := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, m)
	return dst[:l+(bits.Len64(m)+7)/8]
}

// align brings two numbers to the greater of their scales.
func align(hx, hy uint16, x, y uint64) (scale uint16, xm, ym uint64, ok bool) {
	sx, sy := hx&MaxScale, hy&MaxScale
	if sx == sy {
		return sx, x, y, true
	}
	if sx < sy {
		x, ok = mulPow10Word(x, sy-sx)
		return sy, x, y, ok
	}
	y, ok = mulPow10Word(y, sx-sy)
	return sx, x, y, ok
}

func mulPow10Word(m uint64, k uint16) (uint64, bool) {
	if k > 19 {
		return 0, false
	}
	h, l := bits.Mul64(m, pow10Tab[k].lo)
	return l, h == 0
}

// addWords is a+b; flip is negBit for a-b.
func addWords(dst, a, b []byte, flip uint16) ([]byte, bool) {
	hx, x, ok1 := word(a)
	hy, y, ok2 := word(b)
	if !ok1 || !ok2 {
		return dst, false
	}
	hy ^= flip
	scale, x, y, ok := align(hx, hy, x, y)
	if !ok {
		return dst, false
	}
	sign := hx & negBit
	if (hx^hy)&negBit == 0 {
		s, c := bits.Add64(x, y, 0)
		if c != 0 {
			return dst, false
		}
		return appendWord(dst, scale|sign, s), true
	}
	if x < y {
		return appendWord(dst, scale|hy&negBit, y-x), true
	}
	return appendWord(dst, scale|sign, x-y), true
}

func mulWords(dst, a, b []byte) ([]byte, bool) {
	hx, x, ok1 := word(a)
	hy, y, ok2 := word(b)
	h, l := bits.Mul64(x, y)
	scale := hx&MaxScale + hy&MaxScale
	if !ok1 || !ok2 || h != 0 || scale > MaxScale {
		return dst, false
	}
	return appendWord(dst, scale|(hx^hy)&negBit, l), true
}

func compareWords(a, b []byte) (int, bool) {
	hx, x, ok1 := word(a)
	hy, y, ok2 := word(b)
	if !ok1 || !ok2 {
		return 0, false
	}
	if (hx^hy)&negBit != 0 {
		if hx&negBit != 0 {
			return -1, true
		}
		return 1, true
	}
	_, x, y, ok := align(hx, hy, x, y)
	if !ok {
		return 0, false
	}
	if hx&negBit != 0 {
		x, y = y, x
	}
	switch {
	case x < y:
		return -1, true
	case x > y:
		return 1, true
	}
	return 0, true
}
