package columnar

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unsafe"
)

// The hash decides the order of rows at rest and their partition, and is
// stored: it must never change. It is a bijection of the value for a single
// column of a fixed kind of at most 8 bytes without NULLs (HashExact), so that
// there equal hashes are equal keys.
const (
	hashSeed = 0x9E3779B97F4A7C15
	hashMul1 = 0xBF58476D1CE4E5B9
	hashMul2 = 0x94D049BB133111EB
	hashNull = 0x6A09E667F3BCC909
	hashStr0 = 0xA0761D6478BD642F
	hashStr1 = 0xE7037ED1A0B428DB
)

// mix is a bijection with good avalanche (SplitMix64's finalizer).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= hashMul1
	x ^= x >> 27
	x *= hashMul2
	return x ^ x>>31
}

// step adds a value to a running hash; for a fixed h it is a bijection of v.
func step(h, v uint64) uint64 { return mix(h*hashSeed + v) }

// HashExact reports whether rows of key columns of these kinds, none of them
// NULL, have equal hashes only if they are equal.
func HashExact(kinds []Kind) bool {
	switch len(kinds) {
	case 0:
		return true
	case 1:
		w := kinds[0].Width()
		return w != 0 && w <= 8
	}
	return false
}

// HashCols hashes n rows over cols into dst, which must have length n. Without
// columns every row has hash 0.
func HashCols(cols []*Vec, n int, dst []uint64) {
	dst = dst[:n]
	clear(dst)
	for _, v := range cols {
		hashCol(v, dst)
	}
}

func hashCol(v *Vec, dst []uint64) {
	n := len(dst)
	if n == 0 {
		return
	}
	switch v.kind {
	case KindBool:
		hashFixed(unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(v.fixed))), n), v.nulls, dst)
	case KindInt16:
		hashFixed(v.Int16s(), v.nulls, dst)
	case KindInt32:
		hashFixed(v.Int32s(), v.nulls, dst)
	case KindFloat32:
		hashFixed(unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(v.fixed))), n), v.nulls, dst)
	case KindInt64, KindFloat64:
		hashFixed(unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(v.fixed))), n), v.nulls, dst)
	case KindFixed16:
		for i, x := range v.U128s()[:n] {
			if v.Null(i) {
				dst[i] = step(dst[i], hashNull)
			} else {
				dst[i] = step(step(dst[i], x.Hi), x.Lo)
			}
		}
	case KindBytes:
		for i := range dst {
			if v.Null(i) {
				dst[i] = step(dst[i], hashNull)
			} else {
				dst[i] = step(dst[i], hashBytes(v.Bytes(i)))
			}
		}
	}
}

func hashFixed[T uint8 | int16 | int32 | uint32 | uint64](vals []T, nulls Bitmap, dst []uint64) {
	vals = vals[:len(dst)]
	if nulls == nil {
		for i, x := range vals {
			dst[i] = step(dst[i], uint64(x))
		}
		return
	}
	for i, x := range vals {
		u := uint64(x)
		if nulls.Get(i) {
			u = hashNull
		}
		dst[i] = step(dst[i], u)
	}
}

// hashBytes hashes a string 16 bytes a step by 128-bit multiplication.
func hashBytes(b []byte) uint64 {
	h := uint64(len(b)) * hashSeed
	for len(b) > 16 {
		h = mum(binary.LittleEndian.Uint64(b)^hashStr0, binary.LittleEndian.Uint64(b[8:])^h)
		b = b[16:]
	}
	var x, y uint64
	switch {
	case len(b) >= 8:
		x = binary.LittleEndian.Uint64(b)
		y = binary.LittleEndian.Uint64(b[len(b)-8:])
	case len(b) >= 4:
		x = uint64(binary.LittleEndian.Uint32(b))
		y = uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))
	case len(b) > 0:
		x = uint64(b[0])<<16 | uint64(b[len(b)>>1])<<8 | uint64(b[len(b)-1])
	}
	return mum(x^hashStr1, y^h^hashStr0)
}

func mum(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// HashRow is the hash that HashCols gives row i.
func HashRow(cols []*Vec, i int) uint64 {
	var h uint64
	for _, v := range cols {
		switch {
		case v.Null(i):
			h = step(h, hashNull)
		case v.kind == KindBytes:
			h = step(h, hashBytes(v.Bytes(i)))
		case v.kind == KindFixed16:
			x := v.U128s()[i]
			h = step(step(h, x.Hi), x.Lo)
		default:
			h = step(h, v.word(i))
		}
	}
	return h
}

// word is fixed value i, at most 8 bytes wide, as HashCols widens it.
func (v *Vec) word(i int) uint64 {
	switch v.kind {
	case KindBool:
		return uint64(v.fixed[i])
	case KindInt16:
		return uint64(v.Int16s()[i])
	case KindInt32:
		return uint64(v.Int32s()[i])
	case KindFloat32:
		return uint64(math.Float32bits(v.Float32s()[i]))
	case KindFloat64:
		return math.Float64bits(v.Float64s()[i])
	}
	return uint64(v.Int64s()[i])
}
