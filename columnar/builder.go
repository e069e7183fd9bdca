package columnar

import (
	"unsafe"
)

// Builder appends values of one kind and makes a Vec of them.
type Builder struct {
	kind  Kind
	n     int
	nulls Bitmap
	any   bool // some NULL was appended
	fixed []byte
	offs  []uint32
	data  []byte
}

// NewBuilder makes a builder with room for capacity values.
func NewBuilder(kind Kind, capacity int) *Builder {
	b := &Builder{kind: kind}
	b.reset(capacity)
	return b
}

func (b *Builder) reset(capacity int) {
	b.n, b.any, b.nulls = 0, false, nil
	if b.kind == KindBytes {
		b.offs = make([]uint32, 1, capacity+1)
		b.data = nil
		return
	}
	b.fixed = alignedBytes(capacity * b.kind.Width())[:0]
}

// Kind is the kind being built.
func (b *Builder) Kind() Kind { return b.kind }

// Len is the number of values appended.
func (b *Builder) Len() int { return b.n }

// grow makes room for one more fixed value and returns its place.
func (b *Builder) grow() unsafe.Pointer {
	w := b.kind.Width()
	l := len(b.fixed)
	if l+w > cap(b.fixed) {
		nb := alignedBytes(max(2*cap(b.fixed), 16*w, l+w))
		copy(nb, b.fixed)
		b.fixed = nb[:l]
	}
	b.fixed = b.fixed[:l+w]
	b.n++
	return unsafe.Pointer(&b.fixed[l])
}

// Append adds one value; T must be the Go type of the builder's kind.
func Append[T Fixed](b *Builder, x T) { *(*T)(b.grow()) = x }

// Bool, Int16, … append one value of that kind.
func (b *Builder) Bool(x bool)       { Append(b, x) }
func (b *Builder) Int16(x int16)     { Append(b, x) }
func (b *Builder) Int32(x int32)     { Append(b, x) }
func (b *Builder) Int64(x int64)     { Append(b, x) }
func (b *Builder) Float32(x float32) { Append(b, x) }
func (b *Builder) Float64(x float64) { Append(b, x) }
func (b *Builder) U128(x U128)       { Append(b, x) }

// Bytes appends a copy of x.
func (b *Builder) Bytes(x []byte) {
	b.data = append(b.data, x...)
	b.endBytes()
}

// String appends a copy of x.
func (b *Builder) String(x string) {
	b.data = append(b.data, x...)
	b.endBytes()
}

// Extend gives the data buffer to f, which appends one value to it and returns
// the longer buffer: a way to format into the column without a copy.
func (b *Builder) Extend(f func(dst []byte) []byte) {
	b.data = f(b.data)
	b.endBytes()
}

func (b *Builder) endBytes() {
	b.offs = append(b.offs, uint32(len(b.data)))
	b.n++
}

// Null appends a NULL.
func (b *Builder) Null() {
	i := b.n
	if b.kind == KindBytes {
		b.endBytes()
	} else {
		p := b.grow()
		clear(unsafe.Slice((*byte)(p), b.kind.Width()))
	}
	b.any = true
	for len(b.nulls) <= i>>6 {
		b.nulls = append(b.nulls, 0)
	}
	b.nulls.Set(i)
}

// AppendFrom appends value i of v, which has the same kind.
func (b *Builder) AppendFrom(v *Vec, i int) {
	if v.Null(i) {
		b.Null()
		return
	}
	if b.kind == KindBytes {
		b.Bytes(v.Bytes(i))
		return
	}
	w := b.kind.Width()
	p := b.grow()
	copy(unsafe.Slice((*byte)(p), w), v.fixed[i*w:(i+1)*w])
}

// Build returns the vector and resets the builder.
func (b *Builder) Build() *Vec {
	v := &Vec{kind: b.kind, n: b.n, fixed: b.fixed, offs: b.offs, data: b.data}
	if b.any {
		for len(b.nulls) < (b.n+63)/64 {
			b.nulls = append(b.nulls, 0)
		}
		v.nulls = b.nulls
	}
	b.reset(0)
	return v
}
