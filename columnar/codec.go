package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// The block form of vectors. Numbers are little-endian, sections are padded to
// 8 bytes, so that a block at an 8-byte aligned address can be used in place.
//
//	batch  = u64 magic|version, u64 rows, u64 columns, u64 flags (1: diffs follow),
//	         vector…, [rows × i64 diffs]
//	vector = u64 kind | flags<<8 (1: null bitmap), u64 data length (bytes kind),
//	         [ceil(rows/64) × u64 nulls], rows × value | (rows+1) × u32 offsets, data

const (
	batchMagic = 0x0001_4843_5442_4453 // "SDBTCH", version 1
	vecNulls   = 1 << 8
	batchDiffs = 1
)

// ErrEncoding marks bytes that are not an encoding.
var ErrEncoding = errors.New("columnar: damaged encoding")

func damaged(what string) error { return fmt.Errorf("%w: %s", ErrEncoding, what) }

func pad8(n int) int { return (n + 7) &^ 7 }

func appendPad(dst []byte, n int) []byte {
	var zero [8]byte
	return append(dst, zero[:pad8(n)-n]...)
}

// words is the memory of a slice of numbers as bytes.
func words[T int64 | uint64 | uint32](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

// EncodedSize is the length that AppendVec appends.
func (v *Vec) EncodedSize() int {
	s := 16
	if v.nulls != nil {
		s += (v.n + 63) / 64 * 8
	}
	if v.kind == KindBytes {
		return s + pad8((v.n+1)*4) + pad8(v.dataLen())
	}
	return s + pad8(v.n*v.kind.Width())
}

func (v *Vec) dataLen() int {
	if v.n == 0 {
		return 0
	}
	return int(v.offs[v.n] - v.offs[0])
}

// AppendVec appends the block form of v; len(dst) must be a multiple of 8.
func AppendVec(dst []byte, v *Vec) []byte {
	head := uint64(v.kind)
	if v.nulls != nil {
		head |= vecNulls
	}
	dst = binary.LittleEndian.AppendUint64(dst, head)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(v.dataLen()))
	if v.nulls != nil {
		dst = append(dst, words([]uint64(v.nulls[:(v.n+63)/64]))...)
	}
	if v.kind != KindBytes {
		size := v.n * v.kind.Width()
		return appendPad(append(dst, v.fixed[:size]...), size)
	}
	switch {
	case v.n == 0:
		dst = append(dst, 0, 0, 0, 0)
	case v.offs[0] == 0:
		dst = append(dst, words(v.offs[:v.n+1])...)
	default:
		lo := v.offs[0]
		for _, o := range v.offs[:v.n+1] {
			dst = binary.LittleEndian.AppendUint32(dst, o-lo)
		}
	}
	dst = appendPad(dst, (v.n+1)*4)
	if v.n > 0 {
		dst = append(dst, v.data[v.offs[0]:v.offs[v.n]]...)
	}
	return appendPad(dst, v.dataLen())
}

// DecodeVec makes a vector of n values over the block form at the start of
// src, which it aliases, and returns the length it takes. src must be 8-byte
// aligned. With check it looks at every offset, so that damaged bytes cannot
// make a vector that panics when it is used.
func DecodeVec(src []byte, n int, check bool) (*Vec, int, error) {
	if len(src) < 16 || n < 0 || n > math.MaxUint32 {
		return nil, 0, damaged("vector header")
	}
	head := binary.LittleEndian.Uint64(src)
	dataLen := binary.LittleEndian.Uint64(src[8:])
	kind := Kind(head)
	if kind < KindBool || kind > KindBytes || head&^(0xFF|vecNulls) != 0 || dataLen > math.MaxUint32 {
		return nil, 0, damaged("vector kind")
	}
	v := &Vec{kind: kind, n: n}
	at := 16
	take := func(size int) []byte {
		if size > len(src)-at || pad8(size) > len(src)-at {
			return nil
		}
		b := src[at : at+size : at+size]
		at += pad8(size)
		return b
	}
	if head&vecNulls != 0 && n > 0 {
		w := (n + 63) / 64
		b := take(w * 8)
		if b == nil {
			return nil, 0, damaged("null bitmap")
		}
		v.nulls = unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), w)
	}
	if kind != KindBytes {
		if size := n * kind.Width(); size > 0 {
			if v.fixed = take(size); v.fixed == nil {
				return nil, 0, damaged("values")
			}
		}
		return v, at, nil
	}
	b := take((n + 1) * 4)
	if b == nil {
		return nil, 0, damaged("offsets")
	}
	v.offs = unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), n+1)
	if dataLen > 0 {
		if v.data = take(int(dataLen)); v.data == nil {
			return nil, 0, damaged("data")
		}
	}
	if check && !v.offsetsValid() {
		return nil, 0, damaged("offsets")
	}
	return v, at, nil
}

func (v *Vec) offsetsValid() bool {
	last := uint32(0)
	for _, o := range v.offs {
		if o < last {
			return false
		}
		last = o
	}
	return v.offs[0] == 0 && int(last) == len(v.data)
}

// EncodedSize is the length that AppendBatch appends.
func EncodedSize(b *Batch, diffs []int64) int {
	s := 32 + len(diffs)*8
	for _, v := range b.Cols {
		s += v.EncodedSize()
	}
	return s
}

// AppendBatch appends the block form of rows with diffs (nil: 1 each).
// len(dst) must be a multiple of 8.
func AppendBatch(dst []byte, b *Batch, diffs []int64) []byte {
	flags := uint64(0)
	if diffs != nil {
		flags |= batchDiffs
	}
	for _, x := range [4]uint64{batchMagic, uint64(b.N), uint64(len(b.Cols)), flags} {
		dst = binary.LittleEndian.AppendUint64(dst, x)
	}
	for _, v := range b.Cols {
		dst = AppendVec(dst, v)
	}
	return append(dst, words(diffs)...)
}

// DecodeBatch makes a batch over the block form at the start of src, which it
// aliases, and returns the length it takes. See DecodeVec.
func DecodeBatch(src []byte, check bool) (b Batch, diffs []int64, size int, err error) {
	if len(src) < 32 || binary.LittleEndian.Uint64(src) != batchMagic {
		return b, nil, 0, damaged("batch header")
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(src)))&7 != 0 {
		src = append(alignedBytes(len(src))[:0], src...)
	}
	rows := binary.LittleEndian.Uint64(src[8:])
	cols := binary.LittleEndian.Uint64(src[16:])
	flags := binary.LittleEndian.Uint64(src[24:])
	if rows > math.MaxUint32 || cols > uint64(len(src)/16) || flags&^batchDiffs != 0 {
		return b, nil, 0, damaged("batch header")
	}
	b = Batch{N: int(rows), Cols: make([]*Vec, cols)}
	at := 32
	for c := range b.Cols {
		v, n, err := DecodeVec(src[at:], b.N, check)
		if err != nil {
			return Batch{}, nil, 0, err
		}
		b.Cols[c] = v
		at += n
	}
	if flags&batchDiffs != 0 {
		if b.N*8 > len(src)-at {
			return Batch{}, nil, 0, damaged("diffs")
		}
		if b.N > 0 {
			diffs = unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(src[at:]))), b.N)
		} else {
			diffs = []int64{}
		}
		at += b.N * 8
	}
	return b, diffs, at, nil
}
