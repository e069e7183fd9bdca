package expr

import (
	"math/bits"
	"strings"
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
)

// gather is the values sel of v; a constant stays one.
func (x *Eval) gather(v *columnar.Vec, n int, sel []uint32) *columnar.Vec {
	if v.Len() == 1 && n != 1 {
		return v
	}
	nulls := gatherNulls(v.Nulls(), sel)
	var out *columnar.Vec
	switch v.Kind() {
	case columnar.KindBytes:
		out = gatherBytes(v, sel, nulls)
		x.spend(dataSize(out))
		return out
	case columnar.KindBool:
		out = gatherFixed[bool](x, v, sel)
	case columnar.KindInt16:
		out = gatherFixed[int16](x, v, sel)
	case columnar.KindInt32:
		out = gatherFixed[int32](x, v, sel)
	case columnar.KindInt64:
		out = gatherFixed[int64](x, v, sel)
	case columnar.KindFloat32:
		out = gatherFixed[float32](x, v, sel)
	case columnar.KindFloat64:
		out = gatherFixed[float64](x, v, sel)
	default:
		out = gatherFixed[columnar.U128](x, v, sel)
	}
	if nulls != nil {
		return out.WithNulls(nulls)
	}
	return out
}

func gatherFixed[T columnar.Fixed](x *Eval, v *columnar.Vec, sel []uint32) *columnar.Vec {
	src := columnar.Values[T](v)
	dst, out := Result[T](x, len(sel))
	dst = dst[:len(sel)]
	for i, s := range sel {
		dst[i] = src[s]
	}
	return out
}

// gatherNulls gathers bits; nil if none is set.
func gatherNulls(nulls columnar.Bitmap, sel []uint32) columnar.Bitmap {
	if nulls == nil {
		return nil
	}
	out := columnar.NewBitmap(len(sel))
	any := uint64(0)
	for i, s := range sel {
		bit := nulls[s>>6] >> (s & 63) & 1
		out[i>>6] |= bit << (uint(i) & 63)
		any |= bit
	}
	if any == 0 {
		return nil
	}
	return out
}

// gatherBytes copies neighbouring values in one piece.
func gatherBytes(v *columnar.Vec, sel []uint32, nulls columnar.Bitmap) *columnar.Vec {
	_, offs, data := v.Raw()
	out := make([]uint32, len(sel)+1)
	total := uint32(0)
	dst := out[1:]
	for i, s := range sel {
		total += offs[s+1] - offs[s]
		dst[i] = total
	}
	// A strings.Builder gives memory that is not zeroed first.
	var buf strings.Builder
	buf.Grow(int(total))
	for i := 0; i < len(sel); {
		j := i + 1
		for j < len(sel) && sel[j] == sel[j-1]+1 {
			j++
		}
		buf.Write(data[offs[sel[i]]:offs[sel[j-1]+1]])
		i = j
	}
	s := buf.String()
	return columnar.FromBytes(out, unsafe.Slice(unsafe.StringData(s), len(s)), nulls)
}

// expand repeats a constant n times.
func (x *Eval) expand(v *columnar.Vec, n int) *columnar.Vec {
	if v.Len() == n {
		return v
	}
	if v.Kind() == columnar.KindBytes {
		x.spend(n * dataSize(v))
		return expandBytes(v, n)
	}
	out := x.resultOf(v.Kind(), n)
	src, _, _ := v.Raw()
	dst, _, _ := out.Raw()
	if len(dst) > 0 {
		k := copy(dst, src[:v.Kind().Width()])
		for k < len(dst) {
			k += copy(dst[k:], dst[:k])
		}
	}
	if v.Null(0) {
		return out.WithNulls(ones(n))
	}
	return out
}

func expandBytes(v *columnar.Vec, n int) *columnar.Vec {
	b := v.Bytes(0)
	offs := make([]uint32, n+1)
	for i := range offs {
		offs[i] = uint32(i * len(b))
	}
	data := make([]byte, n*len(b))
	if len(b) > 0 {
		k := copy(data, b)
		for k < len(data) {
			k += copy(data[k:], data[:k])
		}
	}
	var nulls columnar.Bitmap
	if v.Null(0) {
		nulls = ones(n)
	}
	return columnar.FromBytes(offs, data, nulls)
}

// ones is a bitmap of n set bits.
func ones(n int) columnar.Bitmap {
	b := columnar.NewBitmap(n)
	for i := range b {
		b[i] = ^uint64(0)
	}
	if r := uint(n) & 63; r != 0 {
		b[len(b)-1] = 1<<r - 1
	}
	return b
}

// orNulls is the union of two bitmaps, either of which may be nil. It may
// return one of them.
func orNulls(a, b columnar.Bitmap) columnar.Bitmap {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	out := make(columnar.Bitmap, len(a))
	for i := range out {
		out[i] = a[i] | b[i]
	}
	return out
}

// overlay makes the rows of mask NULL in v, whose buffers are not shared.
func overlay(v *columnar.Vec, mask columnar.Bitmap) *columnar.Vec {
	if v.Kind() == columnar.KindBytes {
		v = emptyBytes(v, mask)
	} else {
		zeroFixed(v, mask)
	}
	return v.WithNulls(orNulls(v.Nulls(), mask))
}

// zeroFixed zeroes the slots of mask.
func zeroFixed(v *columnar.Vec, mask columnar.Bitmap) {
	fixed, _, _ := v.Raw()
	w := v.Kind().Width()
	for k, word := range mask {
		for word != 0 {
			i := k<<6 + bits.TrailingZeros64(word)
			word &= word - 1
			clear(fixed[i*w : (i+1)*w])
		}
	}
}

// emptyBytes empties the values of mask that are not empty yet.
func emptyBytes(v *columnar.Vec, mask columnar.Bitmap) *columnar.Vec {
	_, offs, _ := v.Raw()
	clean := true
	for k, word := range mask {
		for word != 0 {
			i := k<<6 + bits.TrailingZeros64(word)
			word &= word - 1
			clean = clean && offs[i] == offs[i+1]
		}
	}
	if clean {
		return v
	}
	b := columnar.NewBuilder(columnar.KindBytes, v.Len())
	for i := range v.Len() {
		if mask.Get(i) || v.Null(i) {
			b.Null()
		} else {
			b.Bytes(v.Bytes(i))
		}
	}
	return b.Build()
}

// rawBools is the values of a bool vector as bytes 0 and 1.
func rawBools(v *columnar.Vec) []byte {
	b, _, _ := v.Raw()
	return b[:v.Len()]
}

// wordsOf views bytes as 8-byte words; the tail that does not fill one is left out.
func wordsOf(b []byte) []uint64 {
	if len(b) < 8 { // a pointer to a word must not reach beyond what was allocated
		return nil
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}
