// Package columnar holds the physical form of all data: typed, nullable,
// pointer-free vectors, batches of them, and the bulk operations on them
// (hashing, sorting, gathering, consolidating). It knows neither SQL types nor
// I/O nor goroutines.
//
// A Vec is immutable once it is shared. Slots that are NULL hold the zero
// value (zero bits, empty bytes), so that physical equality of rows is
// equality of bits plus equality of null bits.
package columnar

import (
	"fmt"
	"strings"
	"unsafe"
)

// Kind is the physical representation of a column.
type Kind uint8

// The physical kinds. Every SQL type maps to exactly one.
const (
	KindBool    Kind = iota + 1 // 1 byte, 0 or 1
	KindInt16                   // int2
	KindInt32                   // int4, date
	KindInt64                   // int8, oid, time, timestamp, timestamptz
	KindFloat32                 // float4
	KindFloat64                 // float8
	KindFixed16                 // uuid, interval: U128
	KindBytes                   // text, bytea, numeric, jsonb, arrays, …: offsets + bytes
)

// Width is the size in bytes of one value, 0 for KindBytes.
func (k Kind) Width() int {
	switch k {
	case KindBool:
		return 1
	case KindInt16:
		return 2
	case KindInt32, KindFloat32:
		return 4
	case KindInt64, KindFloat64:
		return 8
	case KindFixed16:
		return 16
	}
	return 0
}

// String is the kind's name.
func (k Kind) String() string {
	switch k {
	case KindBool:
		return "bool"
	case KindInt16:
		return "int16"
	case KindInt32:
		return "int32"
	case KindInt64:
		return "int64"
	case KindFloat32:
		return "float32"
	case KindFloat64:
		return "float64"
	case KindFixed16:
		return "fixed16"
	case KindBytes:
		return "bytes"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// U128 is a 16-byte fixed-width value; its physical order is (Hi, Lo) unsigned.
type U128 struct{ Hi, Lo uint64 }

// Fixed lists the Go types of the fixed-width kinds.
type Fixed interface {
	bool | int16 | int32 | int64 | float32 | float64 | U128
}

// KindOf is the kind that stores T.
func KindOf[T Fixed]() Kind {
	var z T
	switch any(z).(type) {
	case bool:
		return KindBool
	case int16:
		return KindInt16
	case int32:
		return KindInt32
	case int64:
		return KindInt64
	case float32:
		return KindFloat32
	case float64:
		return KindFloat64
	}
	return KindFixed16
}

// Vec is one column: Len values of one kind, with an optional null bitmap.
type Vec struct {
	kind  Kind
	n     int
	nulls Bitmap   // nil: no NULLs; a set bit is a NULL
	fixed []byte   // n*Width bytes, 8-byte aligned (fixed kinds)
	offs  []uint32 // n+1 offsets into data (KindBytes); offs[0] need not be 0
	data  []byte

	pooled bool // the buffers are this vector's own and may go back to the pool
}

// Kind is the physical kind of the vector.
func (v *Vec) Kind() Kind { return v.kind }

// Len is the number of values.
func (v *Vec) Len() int { return v.n }

// Null reports whether value i is NULL.
func (v *Vec) Null(i int) bool { return v.nulls != nil && v.nulls.Get(i) }

// HasNulls reports whether a null bitmap exists (it may be all zero).
func (v *Vec) HasNulls() bool { return v.nulls != nil }

// Nulls is the null bitmap, nil if there is none. Not to be written.
func (v *Vec) Nulls() Bitmap { return v.nulls }

// Values gives the values of a fixed-width vector without copying. T must be
// the Go type of the vector's kind.
func Values[T Fixed](v *Vec) []T {
	if v.n == 0 {
		return nil
	}
	if k := KindOf[T](); k != v.kind {
		panic(fmt.Sprintf("columnar: Values[%s] on a %s vector", k, v.kind))
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(v.fixed))), v.n)
}

// must panics unless v has the kind.
func (v *Vec) must(k Kind) {
	if v.kind != k {
		panic(fmt.Sprintf("columnar: %s values of a %s vector", k, v.kind))
	}
}

// raw is Values without the check.
func raw[T any](v *Vec) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(v.fixed))), v.n)
}

// Bools are the values of a bool vector, and so on for the other kinds: Values
// for one kind, and cheaper.
func (v *Vec) Bools() []bool {
	v.must(KindBool)
	return raw[bool](v)
}

// Int16s are the values of an int16 vector.
func (v *Vec) Int16s() []int16 {
	v.must(KindInt16)
	return raw[int16](v)
}

// Int32s are the values of an int32 vector.
func (v *Vec) Int32s() []int32 {
	v.must(KindInt32)
	return raw[int32](v)
}

// Int64s are the values of an int64 vector.
func (v *Vec) Int64s() []int64 {
	v.must(KindInt64)
	return raw[int64](v)
}

// Float32s are the values of a float32 vector.
func (v *Vec) Float32s() []float32 {
	v.must(KindFloat32)
	return raw[float32](v)
}

// Float64s are the values of a float64 vector.
func (v *Vec) Float64s() []float64 {
	v.must(KindFloat64)
	return raw[float64](v)
}

// U128s are the values of a fixed16 vector.
func (v *Vec) U128s() []U128 {
	v.must(KindFixed16)
	return raw[U128](v)
}

// Bytes is value i of a KindBytes vector, sharing its memory.
func (v *Vec) Bytes(i int) []byte { return v.data[v.offs[i]:v.offs[i+1]:v.offs[i+1]] }

// Raw exposes the buffers: the fixed bytes, or offsets and data.
func (v *Vec) Raw() (fixed []byte, offs []uint32, data []byte) { return v.fixed, v.offs, v.data }

// FromRaw makes a vector over existing buffers, which it then owns. fixed must
// be 8-byte aligned. nulls may be nil.
func FromRaw(kind Kind, n int, nulls Bitmap, fixed []byte, offs []uint32, data []byte) *Vec {
	return &Vec{kind: kind, n: n, nulls: nulls, fixed: fixed, offs: offs, data: data}
}

// SetRaw makes v, which nobody else uses, what FromRaw makes of fixed values.
func (v *Vec) SetRaw(kind Kind, n int, fixed []byte) { *v = Vec{kind: kind, n: n, fixed: fixed} }

// FromSlice makes a vector over vals, which it then owns. nulls may be nil.
func FromSlice[T Fixed](vals []T, nulls Bitmap) *Vec {
	var z T
	w := int(unsafe.Sizeof(z))
	var b []byte
	if len(vals) > 0 {
		b = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(vals))), len(vals)*w)
	}
	return &Vec{kind: KindOf[T](), n: len(vals), nulls: nulls, fixed: b}
}

// FromBytes makes a KindBytes vector over offsets (n+1 of them) and data.
func FromBytes(offs []uint32, data []byte, nulls Bitmap) *Vec {
	return &Vec{kind: KindBytes, n: len(offs) - 1, nulls: nulls, offs: offs, data: data}
}

// alignedBytes returns n zero bytes, 8-byte aligned.
func alignedBytes(n int) []byte {
	if n == 0 {
		return nil
	}
	u := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(u))), n)
}

// MakeFixed makes a vector of n zero values of a fixed kind, for the caller to
// fill through Values before sharing it.
func MakeFixed(kind Kind, n int) *Vec {
	return &Vec{kind: kind, n: n, fixed: alignedBytes(n * kind.Width())}
}

// UnsetFixed is MakeFixed with arbitrary content: the caller fills all of it, or
// slices off what it has not filled.
func UnsetFixed(kind Kind, n int) *Vec {
	return &Vec{kind: kind, n: n, fixed: unsetBytes(n * kind.Width())}
}

// unsetBytes returns n bytes of arbitrary content, 8-byte aligned. A
// strings.Builder gives memory that is not zeroed first.
func unsetBytes(n int) []byte {
	if n == 0 {
		return nil
	}
	var b strings.Builder
	b.Grow((n + 7) &^ 7)
	b.WriteByte(0)
	p := unsafe.StringData(b.String())
	u := unsafe.Slice(p, n)
	if poisonFreed {
		for i := range u {
			u[i] = 0xDB
		}
	}
	return u
}

// WithNulls is v with another null bitmap. The caller keeps the rule that NULL
// slots hold zero values.
func (v *Vec) WithNulls(b Bitmap) *Vec {
	w := *v
	w.nulls = b
	w.pooled = false
	return &w
}

// Bitmap is a bit a row, 64 rows a word.
type Bitmap []uint64

// NewBitmap has room for n bits, all zero.
func NewBitmap(n int) Bitmap { return make(Bitmap, (n+63)/64) }

// Get is bit i.
func (b Bitmap) Get(i int) bool { return b[i>>6]>>(uint(i)&63)&1 != 0 }

// Set sets bit i.
func (b Bitmap) Set(i int) { b[i>>6] |= 1 << (uint(i) & 63) }

// Clear clears bit i.
func (b Bitmap) Clear(i int) { b[i>>6] &^= 1 << (uint(i) & 63) }

// Batch is a set of equally long columns; N counts rows even without columns.
type Batch struct {
	Cols []*Vec
	N    int
}

// Kinds lists the physical kinds of the columns.
func (b *Batch) Kinds() []Kind {
	k := make([]Kind, len(b.Cols))
	for i, c := range b.Cols {
		k[i] = c.kind
	}
	return k
}

// ChunkRows is the number of rows of a chunk: long columns are lists of chunks
// of exactly so many rows, all but the last, so that row r is row r%ChunkRows
// of chunk r/ChunkRows.
const (
	ChunkShift = 14
	ChunkRows  = 1 << ChunkShift
)
