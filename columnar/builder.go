package columnar

import (
	"math"
	"unsafe"
)

// Builder appends values of one kind and makes a Vec of them.
type Builder struct {
	kind   Kind
	n      int
	nulls  Bitmap
	any    bool // some NULL was appended
	pooled bool // buffers come from the pool
	fixed  []byte
	offs   []uint32
	data   []byte
	last   int // bytes of the column built before, for the room of a pooled one
	watch  *watch
}

// watch is what a watched builder tells of.
type watch struct {
	grown   func(bytes int) // the capacity that its data has grown to
	longest int             // of a value
	refuse  func(bytes int) // a longer one
}

// NewWatchedBuilder makes a builder of bytes that tells grown the capacity of its data
// whenever that grows, and refuse of a value that is longer than longest. Both may
// panic.
func NewWatchedBuilder(capacity int, grown func(bytes int), longest int, refuse func(bytes int)) *Builder {
	b := &Builder{kind: KindBytes, watch: &watch{grown, longest, refuse}}
	b.reset(capacity)
	return b
}

// NewBuilder makes a builder with room for capacity values.
func NewBuilder(kind Kind, capacity int) *Builder {
	b := &Builder{kind: kind}
	b.reset(capacity)
	return b
}

// NewPooledBuilder makes a builder whose vectors can be given back with
// Vec.Recycle by an owner who knows when nothing refers to them any more.
func NewPooledBuilder(kind Kind, capacity int) *Builder {
	b := &Builder{kind: kind, pooled: true}
	b.reset(capacity)
	return b
}

func (b *Builder) reset(capacity int) {
	*b = Builder{kind: b.kind, pooled: b.pooled, watch: b.watch}
	if capacity > 0 {
		b.reserve(capacity)
	}
}

// bytes makes a buffer of the kind this builder uses.
func (b *Builder) bytes(n int) []byte {
	if b.pooled {
		return getBytes(n)
	}
	return alignedBytes(n)
}

// regrow moves a buffer to one with room for n more bytes.
func (b *Builder) regrow(old []byte, n int) []byte {
	l := len(old)
	room := 16 * 8
	if l == 0 && b.pooled {
		room = max(room, b.last)
	}
	size := max(2*cap(old), l+n, room)
	if b.watch != nil {
		b.watch.grown(size)
	}
	nb := b.bytes(size)
	copy(nb, old)
	if b.pooled && cap(old) > 0 {
		putBytes(old)
	}
	return nb[:l]
}

// Kind is the kind being built.
func (b *Builder) Kind() Kind { return b.kind }

// Len is the number of values appended.
func (b *Builder) Len() int { return b.n }

// DataLen is the bytes of the values of a builder of bytes.
func (b *Builder) DataLen() int { return len(b.data) }

// reserve makes room for n more fixed values or offsets.
func (b *Builder) reserve(n int) {
	if b.kind == KindBytes {
		l := max(len(b.offs), 1)
		b.growOffs(n)
		b.offs = b.offs[:l]
		return
	}
	if need := n * b.kind.Width(); len(b.fixed)+need > cap(b.fixed) {
		if len(b.fixed) == 0 {
			b.fixed = b.bytes(need)[:0]
			return
		}
		b.fixed = b.regrow(b.fixed, need)
	}
}

// growOffs lengthens offs by n entries, to be filled, after the leading 0.
func (b *Builder) growOffs(n int) {
	l := max(len(b.offs), 1)
	if l+n > cap(b.offs) {
		size := l + n
		if len(b.offs) > 1 {
			size = max(size, 2*l)
		}
		var o []uint32
		if b.pooled {
			o = GetSlice[uint32](size)
		} else {
			o = make([]uint32, size)
		}
		o[0] = 0
		copy(o, b.offs)
		if b.pooled {
			PutSlice(b.offs)
		}
		b.offs = o
	}
	b.offs = b.offs[:l+n]
}

// growData lengthens data by n bytes, to be filled.
func (b *Builder) growData(n int) {
	l := len(b.data)
	if l+n > cap(b.data) {
		if l == 0 && !b.pooled {
			if b.watch != nil {
				b.watch.grown(n)
			}
			b.data = make([]byte, n)
			return
		}
		b.data = b.regrow(b.data, n)
	}
	b.data = b.data[:l+n]
}

// extend lengthens fixed by n values and returns the place of the first.
func (b *Builder) extend(n int) unsafe.Pointer {
	w := b.kind.Width()
	l := len(b.fixed)
	if l+n*w > cap(b.fixed) {
		b.fixed = b.regrow(b.fixed, n*w)
	}
	b.fixed = b.fixed[:l+n*w]
	b.n += n
	return unsafe.Pointer(&b.fixed[l])
}

// grow makes room for one more fixed value and returns its place.
func (b *Builder) grow() unsafe.Pointer {
	w := b.kind.Width()
	l := len(b.fixed)
	if l+w > cap(b.fixed) {
		b.fixed = b.regrow(b.fixed, w)
	}
	b.fixed = b.fixed[:l+w]
	b.n++
	return unsafe.Pointer(&b.fixed[l])
}

// Append adds one value; T must be the Go type of the builder's kind.
func Append[T Fixed](b *Builder, x T) {
	l := len(b.fixed)
	if end := l + int(unsafe.Sizeof(x)); end <= cap(b.fixed) {
		b.fixed = b.fixed[:end]
		*(*T)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b.fixed)), l)) = x
		b.n++
		return
	}
	*(*T)(b.grow()) = x
}

// Bool appends a value to a builder of that kind.
func (b *Builder) Bool(x bool) { Append(b, x) }

// Int16 appends a value to a builder of that kind.
func (b *Builder) Int16(x int16) { Append(b, x) }

// Int32 appends a value to a builder of that kind.
func (b *Builder) Int32(x int32) { Append(b, x) }

// Int64 appends a value to a builder of that kind.
func (b *Builder) Int64(x int64) { Append(b, x) }

// Float32 appends a value to a builder of that kind.
func (b *Builder) Float32(x float32) { Append(b, x) }

// Float64 appends a value to a builder of that kind.
func (b *Builder) Float64(x float64) { Append(b, x) }

// U128 appends a value to a builder of that kind.
func (b *Builder) U128(x U128) { Append(b, x) }

// Bytes appends a copy of x.
func (b *Builder) Bytes(x []byte) {
	l, o := len(b.data), len(b.offs)
	if end := l + len(x); end <= cap(b.data) && o > 0 && o < cap(b.offs) && uint64(end) <= math.MaxUint32 {
		b.data = b.data[:end]
		copy(b.data[l:], x)
		b.offs = b.offs[:o+1]
		b.offs[o] = uint32(end)
		b.n++
		return
	}
	if l+len(x) > cap(b.data) {
		if b.watch != nil && len(x) > b.watch.longest {
			b.watch.refuse(len(x))
		}
		b.data = b.regrow(b.data, len(x))
	}
	b.data = b.data[:l+len(x)]
	copy(b.data[l:], x)
	b.endBytes()
}

// ASCII appends a copy of x and reports true, if x is ASCII without zero bytes and
// there is room; else it does nothing.
func (b *Builder) ASCII(x []byte) bool {
	const high, ones = 0x8080808080808080, 0x0101010101010101
	n, l, o := len(x), len(b.data), len(b.offs)
	end := l + n
	if end > cap(b.data) || o == 0 || o >= cap(b.offs) || uint64(end) > math.MaxUint32 {
		return false
	}
	var bad uint64
	if n >= 8 {
		p, q := unsafe.Pointer(unsafe.SliceData(x)), unsafe.Add(unsafe.Pointer(unsafe.SliceData(b.data)), l)
		for last := unsafe.Add(p, n-8); uintptr(p) < uintptr(last); p, q = unsafe.Add(p, 8), unsafe.Add(q, 8) {
			w := *(*uint64)(p)
			*(*uint64)(q) = w
			bad |= w | (w - ones)
		}
		// The last eight bytes, of which some may have been copied already.
		w := *(*uint64)(unsafe.Pointer(&x[n-8]))
		*(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b.data)), end-8)) = w
		bad |= w | (w - ones)
	} else {
		d := b.data[l:end]
		for i, c := range x {
			d[i] = c
			bad |= uint64(c) | uint64(c-1)
		}
	}
	if bad&high != 0 {
		return false
	}
	b.data = b.data[:end]
	b.offs = b.offs[:o+1]
	b.offs[o] = uint32(end)
	b.n++
	return true
}

// String appends a copy of x.
func (b *Builder) String(x string) {
	b.Bytes(unsafe.Slice(unsafe.StringData(x), len(x)))
}

// Extend gives the data buffer to f, which appends one value to it and returns
// the longer buffer: a way to format into the column without a copy.
func (b *Builder) Extend(f func(dst []byte) []byte) {
	l, room := len(b.data), cap(b.data)
	b.data = f(b.data)
	if b.watch != nil && cap(b.data) > room {
		if n := len(b.data) - l; n > b.watch.longest {
			b.data = b.data[:l]
			b.watch.refuse(n)
		}
		b.watch.grown(cap(b.data))
	}
	b.endBytes()
}

func (b *Builder) endBytes() {
	checkDataSize(uint64(len(b.data)))
	if l := len(b.offs); l > 0 && l < cap(b.offs) {
		b.offs = append(b.offs, uint32(len(b.data)))
	} else {
		b.growOffs(1)
		b.offs[len(b.offs)-1] = uint32(len(b.data))
	}
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
	b.setNull(i)
}

// setNull marks value i, which is there already, as NULL.
func (b *Builder) setNull(i int) {
	b.any = true
	b.growNulls(i>>6 + 1)
	b.nulls.Set(i)
}

// growNulls gives the bitmap at least so many words.
func (b *Builder) growNulls(words int) {
	l := len(b.nulls)
	if words <= l {
		return
	}
	if words > cap(b.nulls) {
		size := max(words, 2*l, cap(b.fixed)/(64*max(b.kind.Width(), 1)))
		var nb Bitmap
		if b.pooled {
			nb = Bitmap(GetSlice[uint64](size))
		} else {
			nb = make(Bitmap, size)
		}
		copy(nb, b.nulls)
		if b.pooled {
			PutSlice([]uint64(b.nulls))
		}
		b.nulls = nb
	}
	b.nulls = b.nulls[:words]
	clear(b.nulls[l:])
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

// AppendVec appends all values of v, which has the same kind.
func (b *Builder) AppendVec(v *Vec) {
	if v.n == 0 {
		return
	}
	at := b.n
	if b.kind == KindBytes {
		b.appendBytes(v)
	} else {
		out := b.extend(v.n)
		copy(unsafe.Slice((*byte)(out), len(v.fixed)), v.fixed)
	}
	if v.nulls == nil {
		return
	}
	for i := range v.n {
		if v.nulls.Get(i) {
			b.setNull(at + i)
		}
	}
}

func (b *Builder) appendBytes(v *Vec) {
	lo, hi := v.offs[0], v.offs[v.n]
	l := len(b.data)
	checkDataSize(uint64(l) + uint64(hi-lo))
	b.growData(int(hi - lo))
	copy(b.data[l:], v.data[lo:hi])
	at := max(len(b.offs), 1)
	b.growOffs(v.n)
	delta := uint32(l) - lo
	offs := b.offs[at : at+v.n]
	for i, o := range v.offs[1 : v.n+1] {
		offs[i] = o + delta
	}
	b.n += v.n
}

// Zeros appends n zero values (empty bytes), for the caller to overlay.
func (b *Builder) Zeros(n int) {
	if n == 0 {
		return
	}
	if b.kind == KindBytes {
		at := max(len(b.offs), 1)
		b.growOffs(n)
		for i := at; i < at+n; i++ {
			b.offs[i] = uint32(len(b.data))
		}
		b.n += n
		return
	}
	p := b.extend(n)
	clear(unsafe.Slice((*byte)(p), n*b.kind.Width()))
}

// Nulls appends n NULLs.
func (b *Builder) Nulls(n int) {
	at := b.n
	b.Zeros(n)
	for i := range n {
		b.setNull(at + i)
	}
}

// noOffs are the offsets of an empty vector.
var noOffs = []uint32{0}

// Build returns the vector and resets the builder.
func (b *Builder) Build() *Vec {
	v := &Vec{kind: b.kind, n: b.n, fixed: b.fixed, offs: b.offs, data: b.data, pooled: b.pooled}
	if b.kind == KindBytes && len(b.offs) == 0 {
		v.offs = noOffs
	}
	if b.any {
		b.growNulls((b.n + 63) / 64)
		v.nulls = b.nulls
	}
	*b = Builder{kind: b.kind, pooled: b.pooled, last: max(len(b.fixed), len(b.data)), watch: b.watch}
	return v
}

// InitPooled makes b, which need not be initialized, what NewPooledBuilder returns.
func (b *Builder) InitPooled(kind Kind, capacity int) {
	*b = Builder{kind: kind, pooled: true}
	b.reset(capacity)
}

// ReserveData makes room for n more bytes of KindBytes values.
func (b *Builder) ReserveData(n int) {
	if l := len(b.data); b.kind == KindBytes && l+n > cap(b.data) {
		if l == 0 {
			b.data = b.bytes(n)[:0]
			return
		}
		b.data = b.regrow(b.data, n)
	}
}

// Init makes b, which need not be initialized, what NewBuilder returns.
func (b *Builder) Init(kind Kind, capacity int) {
	*b = Builder{kind: kind}
	b.reset(capacity)
}
