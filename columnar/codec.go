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
//	batch = u64 magic|version, u64 rows, u64 columns, u64 flags (1: diffs follow),
//	        (head, body)…, [rows × i64 diffs]
//	head  = u64 kind | flags<<8 (1: null bitmap), u64 data length (bytes kind)
//	body  = [ceil(rows/64) × u64 nulls], rows × value | (rows+1) × u32 offsets, data

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

// VecHead is the shape of an encoded vector: what its body does not say.
type VecHead struct {
	Kind  Kind
	Nulls bool
	Data  int // bytes of data, of the bytes kind
}

// Head is the shape of v.
func (v *Vec) Head() VecHead { return VecHead{Kind: v.kind, Nulls: v.nulls != nil, Data: v.dataLen()} }

// Words is the head as two numbers, the form in which it is stored.
func (h VecHead) Words() (uint64, uint64) {
	w := uint64(h.Kind)
	if h.Nulls {
		w |= vecNulls
	}
	return w, uint64(h.Data)
}

// VecHeadOf is the inverse of Words.
func VecHeadOf(w, data uint64) (VecHead, error) {
	h := VecHead{Kind: Kind(w), Nulls: w&vecNulls != 0, Data: int(data)}
	if h.Kind < KindBool || h.Kind > KindBytes || w&^(0xFF|vecNulls) != 0 || data > math.MaxUint32 {
		return h, damaged("vector head")
	}
	return h, nil
}

// BodySize is the length of the body of a vector of n values.
func (h VecHead) BodySize(n int) int {
	s := 0
	if h.Nulls {
		s += (n + 63) / 64 * 8
	}
	if h.Kind == KindBytes {
		return s + pad8((n+1)*4) + pad8(h.Data)
	}
	return s + pad8(n*h.Kind.Width())
}

func (v *Vec) dataLen() int {
	if v.n == 0 || v.kind != KindBytes {
		return 0
	}
	return int(v.offs[v.n] - v.offs[0])
}

// AppendBody appends the body of v; len(dst) must be a multiple of 8.
func (v *Vec) AppendBody(dst []byte) []byte {
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

// DecodeBody makes a vector of n values over the body at the start of src,
// which it aliases, and returns the length it takes. src must be 8-byte
// aligned. With check it looks at every value, so that damaged bytes cannot
// make a vector that panics when it is used; without, it touches none.
func (h VecHead) DecodeBody(src []byte, n int, check bool) (*Vec, int, error) {
	if n < 0 || n > math.MaxUint32 || h.BodySize(n) > len(src) {
		return nil, 0, damaged("vector length")
	}
	v := &Vec{kind: h.Kind, n: n}
	at := 0
	take := func(size int) []byte {
		b := src[at : at+size : at+size]
		at += pad8(size)
		return b
	}
	if h.Nulls && n > 0 {
		w := (n + 63) / 64
		v.nulls = unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(take(w*8)))), w)
	}
	if h.Kind != KindBytes {
		if n > 0 {
			v.fixed = take(n * h.Kind.Width())
		}
	} else {
		v.offs = unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(take((n+1)*4)))), n+1)
		if h.Data > 0 {
			v.data = take(h.Data)
		}
	}
	if check && !v.valid() {
		return nil, 0, damaged("vector")
	}
	return v, at, nil
}

// valid reports whether no value can make a reader panic.
func (v *Vec) valid() bool {
	switch v.kind {
	case KindBool:
		for _, x := range v.fixed {
			if x > 1 {
				return false
			}
		}
	case KindBytes:
		return v.offsetsValid()
	}
	return true
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
		s += 16 + v.Head().BodySize(v.n)
	}
	return s
}

// BatchSize is the length that AppendBatch adds.
func BatchSize(b *Batch, diffs []int64) int {
	size := 32 + 8*len(diffs)
	for _, v := range b.Cols {
		size += 16 + v.Head().BodySize(v.n)
	}
	return size
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
		w, data := v.Head().Words()
		dst = binary.LittleEndian.AppendUint64(dst, w)
		dst = binary.LittleEndian.AppendUint64(dst, data)
		dst = v.AppendBody(dst)
	}
	return append(dst, words(diffs)...)
}

// DecodeBatch makes a batch over the block form at the start of src, which it
// aliases if it is 8-byte aligned, and returns the length it takes. See
// VecHead.DecodeBody about check.
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
		if len(src)-at < 16 {
			return Batch{}, nil, 0, damaged("batch length")
		}
		head, err := VecHeadOf(binary.LittleEndian.Uint64(src[at:]), binary.LittleEndian.Uint64(src[at+8:]))
		if err != nil {
			return Batch{}, nil, 0, err
		}
		v, n, err := head.DecodeBody(src[at+16:], b.N, check)
		if err != nil {
			return Batch{}, nil, 0, err
		}
		b.Cols[c] = v
		at += 16 + n
	}
	if flags&batchDiffs != 0 {
		if b.N*8 > len(src)-at {
			return Batch{}, nil, 0, damaged("diffs")
		}
		if b.N > 0 {
			diffs = unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(src[at:]))), b.N)
		}
		at += b.N * 8
	}
	return b, diffs, at, nil
}
