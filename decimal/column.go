package decimal

import (
	"encoding/binary"
	"math/bits"
)

// Columns of numbers mostly have one scale and magnitudes of one word. The
// functions here turn such a column into integers and back, without a branch a
// number; what they do not accept is for the functions on single numbers.

// UnpackColumn reads the numbers data[offs[i]:offs[i+1]] as integers × 10^-scale
// into dst, which has one element for each. Empty strings (NULLs) become 0. ok
// is false if the numbers differ in scale or do not all fit.
func UnpackColumn(dst []int64, offs []uint32, data []byte) (scale int, ok bool) {
	scale = -1
	n := len(dst)
	i := 0
	for ; i < n && offs[i] == offs[i+1]; i++ {
		dst[i] = 0
	}
	if i == n {
		return 0, true
	}
	first := uint64(binary.LittleEndian.Uint16(data[offs[i]:]) & MaxScale)
	var bad uint64
	// The last ones are read byte by byte, so that loads of eight bytes stay inside.
	safe := n
	for safe > i && int(offs[safe-1])+headerLen+8 > len(data) {
		safe--
	}
	for ; i < safe; i++ {
		at, size := offs[i], offs[i+1]-offs[i]
		if size == 0 {
			dst[i] = 0
			continue
		}
		h := uint64(binary.LittleEndian.Uint16(data[at:]))
		m := binary.LittleEndian.Uint64(data[at+headerLen:]) & (1<<(8*(size-headerLen)) - 1)
		bad |= (h^first)&(MaxScale|2*negBit) | uint64(int64(headerLen+8)-int64(size))>>63 | m>>63
		neg := -int64(h / negBit & 1)
		dst[i] = (int64(m) ^ neg) - neg
	}
	if bad != 0 {
		return 0, false
	}
	for ; i < n; i++ {
		b := data[offs[i]:offs[i+1]]
		if len(b) == 0 {
			dst[i] = 0
			continue
		}
		h, m, ok := word(b)
		if !ok || m>>63 != 0 || uint64(h&MaxScale) != first {
			return 0, false
		}
		dst[i] = int64(m)
		if h&negBit != 0 {
			dst[i] = -int64(m)
		}
	}
	return int(first), true
}

// PackedSize bounds the bytes that PackColumn needs for n numbers.
func PackedSize(n int) int { return (headerLen+8)*n + 8 }

// PackColumn writes the numbers vals[i] × 10^-scale to buf, which has PackedSize
// bytes, and their offsets to offs, one more than there are numbers. Numbers at
// set bits of nulls become empty strings. It gives the used part of buf.
func PackColumn(buf []byte, offs []uint32, vals []int64, scale int, nulls []uint64) []byte {
	offs[0] = 0
	at := uint32(0)
	for i, v := range vals {
		neg := uint64(v >> 63)
		m := (uint64(v) ^ neg) - neg
		binary.LittleEndian.PutUint16(buf[at:], uint16(scale)|uint16(neg)&negBit)
		binary.LittleEndian.PutUint64(buf[at+headerLen:], m)
		size := headerLen + uint32(bits.Len64(m)+7)/8
		if nulls != nil && nulls[i>>6]>>(uint(i)&63)&1 != 0 {
			size = 0
		}
		at += size
		offs[i+1] = at
	}
	return buf[:at]
}

// Pow10 is 10^k as an integer; ok is false if it does not fit.
func Pow10(k int) (p int64, ok bool) {
	if k < 0 || k > 18 {
		return 0, false
	}
	return int64(pow10Tab[k].lo), true
}
