package columnar

import (
	"errors"
	"math"
	"unsafe"
)

// Gatherer reads one column of many vectors as one: an address is the number
// of a vector and a row in it, vec<<shift | row. It is how rows are fetched
// from chunked batches, from several batches at once (a merge) and from lists
// of deltas. The zero Gatherer must be Reset.
type Gatherer struct {
	kind  Kind
	shift uint
	base  []unsafe.Pointer // first value, or first byte of data
	offs  []unsafe.Pointer // first offset (KindBytes)
	nulls []Bitmap
	any   bool // some vector has NULLs
	rows  int
	bytes int // of data, to estimate sizes
}

// Reset empties g for vectors of a kind with at most 1<<shift rows each.
func (g *Gatherer) Reset(kind Kind, shift uint) {
	clear(g.base)
	clear(g.offs)
	clear(g.nulls)
	*g = Gatherer{kind: kind, shift: shift, base: g.base[:0], offs: g.offs[:0], nulls: g.nulls[:0]}
}

// Add appends a vector; its number is the count of those before it.
func (g *Gatherer) Add(v *Vec) {
	g.nulls = append(g.nulls, v.nulls)
	g.any = g.any || v.nulls != nil
	g.rows += v.n
	if g.kind == KindBytes {
		g.base = append(g.base, unsafe.Pointer(unsafe.SliceData(v.data)))
		g.offs = append(g.offs, unsafe.Pointer(unsafe.SliceData(v.offs)))
		if v.n > 0 {
			g.bytes += int(v.offs[v.n] - v.offs[0])
		}
		return
	}
	g.base = append(g.base, unsafe.Pointer(unsafe.SliceData(v.fixed)))
}

// Kind is the kind of the column.
func (g *Gatherer) Kind() Kind { return g.kind }

// null reports whether the value at an address is NULL.
func (g *Gatherer) null(e uint32) bool {
	b := g.nulls[e>>g.shift]
	return b != nil && b.Get(int(e&(1<<g.shift-1)))
}

// data is the bytes at an address.
func (g *Gatherer) data(e uint32) []byte {
	c, i := e>>g.shift, uintptr(e&(1<<g.shift-1))
	o := (*[2]uint32)(unsafe.Add(g.offs[c], i*4))
	if o[0] == o[1] {
		return nil // there may be no memory at its place
	}
	return unsafe.Slice((*byte)(unsafe.Add(g.base[c], uintptr(o[0]))), int(o[1]-o[0]))
}

// Gather makes a vector of the values at the addresses.
func (g *Gatherer) Gather(idx []uint32) *Vec {
	b := Builder{kind: g.kind}
	b.reset(0)
	b.reserve(len(idx))
	b.AppendGather(g, idx)
	return b.Build()
}

func gatherFixed[T uint8 | uint16 | uint32 | uint64 | U128](g *Gatherer, out unsafe.Pointer, idx []uint32) {
	dst := unsafe.Slice((*T)(out), len(idx))
	size := unsafe.Sizeof(dst[0])
	if len(g.base) == 1 {
		p := g.base[0]
		for i, e := range idx {
			dst[i] = *(*T)(unsafe.Add(p, uintptr(e)*size))
		}
		return
	}
	shift := g.shift & 31
	mask := uint32(1)<<shift - 1
	base := g.base
	for i, e := range idx {
		dst[i] = *(*T)(unsafe.Add(base[e>>shift], uintptr(e&mask)*size))
	}
}

// AppendGather appends the values at the addresses.
func (b *Builder) AppendGather(g *Gatherer, idx []uint32) {
	if len(idx) == 0 {
		return
	}
	at := b.n
	if b.kind == KindBytes {
		b.gatherBytes(g, idx)
	} else {
		out := b.extend(len(idx))
		switch b.kind.Width() {
		case 1:
			gatherFixed[uint8](g, out, idx)
		case 2:
			gatherFixed[uint16](g, out, idx)
		case 4:
			gatherFixed[uint32](g, out, idx)
		case 8:
			gatherFixed[uint64](g, out, idx)
		case 16:
			gatherFixed[U128](g, out, idx)
		}
	}
	if !g.any {
		return
	}
	for i, e := range idx {
		if g.null(e) {
			b.setNull(at + i)
		}
	}
}

func (b *Builder) gatherBytes(g *Gatherer, idx []uint32) {
	at := max(len(b.offs), 1)
	b.growOffs(len(idx))
	offs := b.offs[at : at+len(idx)]
	shift := g.shift & 31
	mask := uint32(1)<<shift - 1
	total := uint64(len(b.data))
	for i, e := range idx {
		o := (*[2]uint32)(unsafe.Add(g.offs[e>>shift], uintptr(e&mask)*4))
		total += uint64(o[1] - o[0])
		offs[i] = uint32(total)
	}
	checkDataSize(total)
	pos := len(b.data)
	b.growData(int(total) - pos)
	data := b.data
	for i, e := range idx {
		o := *(*uint32)(unsafe.Add(g.offs[e>>shift], uintptr(e&mask)*4))
		end := int(offs[i])
		n := end - pos
		if n == 0 {
			continue // there may be no memory at its place
		}
		src := unsafe.Slice((*byte)(unsafe.Add(g.base[e>>shift], uintptr(o))), n)
		copy(data[pos:end], src)
		pos = end
	}
	b.n += len(idx)
}

// Size is the bytes of data of the values at the given rows: 0 if they are all of
// one width.
func (g *Gatherer) Size(idx []uint32) int {
	if g.kind != KindBytes {
		return 0
	}
	shift := g.shift & 31
	mask := uint32(1)<<shift - 1
	n := 0
	for _, e := range idx {
		o := (*[2]uint32)(unsafe.Add(g.offs[e>>shift], uintptr(e&mask)*4))
		n += int(o[1] - o[0])
	}
	return n
}

// ErrTooLarge is what a builder panics with when the values of a column would take
// more than 4 GiB.
var ErrTooLarge = errors.New("the values of a column take more than 4 GiB at once")

// checkDataSize guards the 32-bit offsets.
func checkDataSize(n uint64) {
	if n > math.MaxUint32 {
		panic(ErrTooLarge)
	}
}

// Gather is the values of v at the given rows.
func (v *Vec) Gather(idx []uint32) *Vec {
	var g Gatherer
	var base, offs [1]unsafe.Pointer
	var nulls [1]Bitmap
	g = Gatherer{kind: v.kind, shift: 31, base: base[:0], offs: offs[:0], nulls: nulls[:0]}
	g.Add(v)
	return g.Gather(idx)
}

// Gather is the given rows of b.
func (b *Batch) Gather(idx []uint32) Batch {
	out := Batch{Cols: make([]*Vec, len(b.Cols)), N: len(idx)}
	for c, v := range b.Cols {
		out.Cols[c] = v.Gather(idx)
	}
	return out
}

// Slice is values i to j of v, sharing its memory.
func (v *Vec) Slice(i, j int) *Vec {
	if i == 0 && j == v.n {
		return v
	}
	w := &Vec{kind: v.kind, n: j - i}
	if v.kind == KindBytes {
		w.offs, w.data = v.offs[i:j+1:j+1], v.data
	} else {
		s := v.kind.Width()
		w.fixed = v.fixed[i*s : j*s : j*s]
	}
	if v.nulls != nil {
		w.nulls = v.nulls.slice(i, j)
	}
	return w
}

// slice copies bits i to j; nil if none is set.
func (b Bitmap) slice(i, j int) Bitmap {
	n := j - i
	if n == 0 {
		return nil
	}
	out := NewBitmap(n)
	sh := uint(i) & 63
	src := b[i>>6:]
	var any uint64
	for k := range out {
		x := src[k] >> sh
		if sh != 0 && k+1 < len(src) {
			x |= src[k+1] << (64 - sh)
		}
		if k == len(out)-1 && n&63 != 0 {
			x &= 1<<(uint(n)&63) - 1
		}
		out[k] = x
		any |= x
	}
	if any == 0 {
		return nil
	}
	return out
}

// Slice is rows i to j of b, sharing its memory.
func (b *Batch) Slice(i, j int) Batch {
	out := Batch{Cols: make([]*Vec, len(b.Cols)), N: j - i}
	for c, v := range b.Cols {
		out.Cols[c] = v.Slice(i, j)
	}
	return out
}

// Select is the given columns of b, in that order.
func (b *Batch) Select(cols []int) Batch {
	out := Batch{Cols: make([]*Vec, len(cols)), N: b.N}
	for i, c := range cols {
		out.Cols[i] = b.Cols[c]
	}
	return out
}

// Concat appends vectors of one kind to one another.
func Concat(kind Kind, vs ...*Vec) *Vec {
	if len(vs) == 1 {
		return vs[0]
	}
	n := 0
	for _, v := range vs {
		n += v.n
	}
	b := NewBuilder(kind, n)
	for _, v := range vs {
		b.AppendVec(v)
	}
	return b.Build()
}

// ConcatBatches appends batches of equal kinds to one another.
func ConcatBatches(kinds []Kind, bs ...*Batch) Batch {
	if len(bs) == 1 {
		return *bs[0]
	}
	out := Batch{Cols: make([]*Vec, len(kinds))}
	vs := make([]*Vec, len(bs))
	for _, b := range bs {
		out.N += b.N
	}
	for c, k := range kinds {
		for i, b := range bs {
			vs[i] = b.Cols[c]
		}
		out.Cols[c] = Concat(k, vs...)
	}
	return out
}

// MemSize is the size of the vector's values in bytes: what it would cost to
// copy. Bytes shared with other vectors count.
func (v *Vec) MemSize() int {
	s := len(v.nulls) * 8
	if v.kind == KindBytes {
		if v.n > 0 {
			s += len(v.offs)*4 + int(v.offs[v.n]-v.offs[0])
		}
		return s
	}
	return s + v.n*v.kind.Width()
}

// MemSize is the size of all columns.
func (b *Batch) MemSize() int {
	s := 0
	for _, v := range b.Cols {
		s += v.MemSize()
	}
	return s
}

// AverageBytes is the mean length of the values, of a KindBytes column.
func (g *Gatherer) AverageBytes() int {
	if g.rows == 0 {
		return 0
	}
	return (g.bytes + g.rows - 1) / g.rows
}

// FilterEqual keeps the pairs of a row of v and an address of g whose values are
// equal (or both NULL), in place.
func (g *Gatherer) FilterEqual(v *Vec, rows, addrs []uint32) ([]uint32, []uint32) {
	var k int
	switch {
	case g.kind == KindBytes:
		for i, e := range addrs {
			r := rows[i]
			if string(v.Bytes(int(r))) == string(g.data(e)) {
				rows[k], addrs[k] = r, e
				k++
			}
		}
	case g.kind.Width() == 1:
		k = filterEqual[uint8](g, v, rows, addrs)
	case g.kind.Width() == 2:
		k = filterEqual[uint16](g, v, rows, addrs)
	case g.kind.Width() == 4:
		k = filterEqual[uint32](g, v, rows, addrs)
	case g.kind.Width() == 8:
		k = filterEqual[uint64](g, v, rows, addrs)
	default:
		k = filterEqual[U128](g, v, rows, addrs)
	}
	rows, addrs = rows[:k], addrs[:k]
	if v.nulls == nil && !g.any {
		return rows, addrs
	}
	k = 0
	for i, e := range addrs {
		if r := rows[i]; v.Null(int(r)) == g.null(e) {
			rows[k], addrs[k] = r, e
			k++
		}
	}
	return rows[:k], addrs[:k]
}

func filterEqual[T uint8 | uint16 | uint32 | uint64 | U128](g *Gatherer, v *Vec, rows, addrs []uint32) int {
	if len(rows) == 0 {
		return 0
	}
	vals := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(v.fixed))), v.n)
	size := unsafe.Sizeof(vals[0])
	shift := g.shift & 31
	mask := uint32(1)<<shift - 1
	k := 0
	for i, e := range addrs {
		r := rows[i]
		x := *(*T)(unsafe.Add(g.base[e>>shift], uintptr(e&mask)*size))
		rows[k], addrs[k] = r, e
		if vals[r] == x {
			k++
		}
	}
	return k
}

// EqualAt reports whether the value at an address equals value i of v.
func (g *Gatherer) EqualAt(addr uint32, v *Vec, i int) bool {
	if g.any || v.nulls != nil {
		if an, bn := g.null(addr), v.Null(i); an || bn {
			return an && bn
		}
	}
	c, at := addr>>g.shift, uintptr(addr&(1<<g.shift-1))
	switch w := g.kind.Width(); w {
	case 0:
		return string(g.data(addr)) == string(v.Bytes(i))
	case 1:
		return *(*uint8)(unsafe.Add(g.base[c], at)) == v.fixed[i]
	case 2:
		return *(*int16)(unsafe.Add(g.base[c], at*2)) == v.Int16s()[i]
	case 4:
		return uint64(*(*uint32)(unsafe.Add(g.base[c], at*4))) == v.word(i)&math.MaxUint32
	case 8:
		return *(*uint64)(unsafe.Add(g.base[c], at*8)) == v.word(i)
	default:
		return *(*U128)(unsafe.Add(g.base[c], at*16)) == v.U128s()[i]
	}
}
