package differential

import (
	"math/bits"
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
)

// rowSet is some rows of a matrix of words.
type rowSet struct {
	base   unsafe.Pointer
	stride uintptr // bytes
	sel    []uint32
	dense  bool // sel is 0, 1, 2, …
}

func newRowSet(words []uint64, width int, sel []uint32) rowSet {
	return rowSet{base: unsafe.Pointer(unsafe.SliceData(words)), stride: uintptr(width) * 8, sel: sel}
}

// at is the address of the row with number r of the matrix.
func (s *rowSet) at(r uint32) unsafe.Pointer { return unsafe.Add(s.base, uintptr(r)*s.stride) }

// allRows is 0..n-1.
func allRows(n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i)
	}
	return out
}

// outColumn is a column under construction from rows of words, of which there
// are at most as many as it was made for.
type outColumn struct {
	kind  columnar.Kind
	n     int
	fixed *columnar.Vec
	bytes *columnar.Builder
	nulls columnar.Bitmap
	room  int
}

func newOutColumn(kind columnar.Kind, room int) outColumn {
	o := outColumn{kind: kind, room: room}
	if kind == columnar.KindBytes {
		o.bytes = columnar.NewBuilder(kind, room)
	} else {
		o.fixed = columnar.UnsetFixed(kind, room)
	}
	return o
}

// setNull makes value i NULL; its slot was given zero.
func (o *outColumn) setNull(i int) {
	if o.nulls == nil {
		o.nulls = columnar.NewBitmap(o.room)
	}
	o.nulls.Set(i)
}

// done is the column.
func (o *outColumn) done() *columnar.Vec {
	if o.bytes != nil {
		return o.bytes.Build()
	}
	v := o.fixed
	if o.nulls != nil {
		v = v.WithNulls(o.nulls)
	}
	return v.Slice(0, o.n)
}

// appendWords appends the values at word off of rows. NULLs are for the caller.
func (o *outColumn) appendWords(set rowSet, off int, ar *arena) {
	set.base = unsafe.Add(set.base, off*8)
	n := o.n
	if o.kind != columnar.KindBytes {
		o.n += len(set.sel)
	}
	switch o.kind {
	case columnar.KindBool:
		out := o.fixed.Bools()[n:]
		for i, r := range set.sel {
			out[i] = *(*uint64)(set.at(r)) != 0
		}
	case columnar.KindInt16:
		intsOfWords(o.fixed.Int16s()[n:], set)
	case columnar.KindInt32:
		intsOfWords(o.fixed.Int32s()[n:], set)
	case columnar.KindInt64:
		intsOfWords(o.fixed.Int64s()[n:], set)
	case columnar.KindFloat32:
		out := o.fixed.Float32s()[n:]
		for i, r := range set.sel {
			out[i] = wordF32(*(*uint64)(set.at(r)))
		}
	case columnar.KindFloat64:
		out := o.fixed.Float64s()[n:]
		for i, r := range set.sel {
			out[i] = wordF64(*(*uint64)(set.at(r)))
		}
	case columnar.KindFixed16:
		out := o.fixed.U128s()[n:]
		for i, r := range set.sel {
			w := (*[2]uint64)(set.at(r))
			out[i] = columnar.U128{Hi: w[0], Lo: w[1]}
		}
	case columnar.KindBytes:
		o.reserveBytes(set)
		for _, r := range set.sel {
			o.appendBytes((*[2]uint64)(set.at(r)), ar)
		}
	}
}

// choose selects rows, which ascend and are distinct.
func (s *rowSet) choose(sel []uint32) {
	n := len(sel)
	s.sel, s.dense = sel, n > 0 && sel[n-1] == uint32(n-1)
}

// reserveBytes makes room for the Bytes values that rows begin with.
func (o *outColumn) reserveBytes(set rowSet) {
	size := uint64(inlined) // appendBytes writes whole words
	for _, r := range set.sel {
		size += *wordAt(set.at(r), 1) & lenMask
	}
	o.bytes.ReserveData(int(size))
}

func intsOfWords[T int16 | int32 | int64](out []T, set rowSet) {
	out = out[:len(set.sel)]
	if set.dense {
		for i := range out { // no pointer steps past the end
			out[i] = T(wordInt(*(*uint64)(unsafe.Add(set.base, uintptr(i)*set.stride))))
		}
		return
	}
	for i, r := range set.sel {
		out[i] = T(wordInt(*(*uint64)(set.at(r))))
	}
}

// appendBytes appends the Bytes value of two words.
func (o *outColumn) appendBytes(w *[2]uint64, ar *arena) {
	if n := int(w[1] & lenMask); n <= inlined {
		b := bits.ReverseBytes64(w[0])
		o.bytes.Bytes((*[8]byte)(unsafe.Pointer(&b))[:n])
		o.n++
		return
	}
	o.bytes.Extend(func(dst []byte) []byte { return appendBytes(dst, w, ar) })
	o.n++
}

// appendRaw appends the words at off of rows as integers, as they are.
func (o *outColumn) appendRaw(set rowSet, off int) {
	set.base = unsafe.Add(set.base, off*8)
	out := o.fixed.Int64s()[o.n:][:len(set.sel)]
	o.n += len(set.sel)
	if set.dense {
		for i := range out {
			out[i] = *(*int64)(unsafe.Add(set.base, uintptr(i)*set.stride))
		}
		return
	}
	for i, r := range set.sel {
		out[i] = *(*int64)(set.at(r))
	}
}

// appendRows appends column c of rows of a codec.
func (o *outColumn) appendRows(k *rowCodec, c int, set rowSet, ar *arena) {
	mask, bit := c>>6, uint(c)&63
	if k.masks > 0 && o.kind == columnar.KindBytes {
		vals := set
		vals.base = unsafe.Add(vals.base, k.offs[c]*8)
		o.reserveBytes(vals)
		for _, r := range set.sel {
			p := set.at(r)
			if *wordAt(p, mask)>>bit&1 != 0 {
				o.bytes.Null()
				o.n++
				continue
			}
			o.appendBytes((*[2]uint64)(unsafe.Add(p, k.offs[c]*8)), ar)
		}
		return
	}
	n := o.n
	o.appendWords(set, k.offs[c], ar)
	if k.masks == 0 {
		return
	}
	var any uint64
	if set.dense {
		for i := range set.sel {
			p := unsafe.Add(set.base, uintptr(i)*set.stride+uintptr(mask*8))
			any |= *(*uint64)(p)
		}
	} else {
		for _, r := range set.sel {
			any |= *wordAt(set.at(r), mask)
		}
	}
	if any>>bit&1 == 0 {
		return
	}
	for i, r := range set.sel {
		if *wordAt(set.at(r), mask)>>bit&1 != 0 {
			o.setNull(n + i)
		}
	}
}

// decode makes column c of rows.
func (k *rowCodec) decode(c int, set rowSet, ar *arena) *columnar.Vec {
	o := newOutColumn(k.kinds[c], len(set.sel))
	o.appendRows(k, c, set, ar)
	return o.done()
}
