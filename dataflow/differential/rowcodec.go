package differential

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
)

// rowCodec turns rows of columns into rows of words and back, for state that is
// accessed a row at a time: group keys, rows of a top-k. A row is
//
//	mask words   a bit per column: NULL (absent if the codec has none)
//	values       in the order of the columns: one word, or two for Fixed16
//	             (Hi, Lo) and Bytes
//
// such that comparing words as unsigned numbers compares values in columnar's
// physical order. A Bytes value is its first 8 bytes as a big-endian number
// (zeros where it is shorter), then length (30 bits) | ref<<30, where ref is the
// arena block with the bytes from the ninth on, if there are any.
type rowCodec struct {
	kinds []columnar.Kind
	offs  []int // first word of each column
	masks int   // mask words
	words int
	bytes []int // the columns of kind Bytes
}

const (
	refShift = 30
	lenMask  = 1<<refShift - 1
	inlined  = 8 // bytes of a Bytes value that live in the row
)

// newRowCodec makes a codec of columns, which are never NULL if nonNull.
func newRowCodec(kinds []columnar.Kind, nonNull bool) *rowCodec {
	k := &rowCodec{kinds: kinds, offs: make([]int, len(kinds))}
	if !nonNull {
		k.masks = max(1, (len(kinds)+63)/64)
	}
	k.words = k.masks
	for c, kind := range kinds {
		k.offs[c] = k.words
		k.words++
		switch kind {
		case columnar.KindFixed16:
			k.words++
		case columnar.KindBytes:
			k.words++
			k.bytes = append(k.bytes, c)
		}
	}
	return k
}

func wordAt(p unsafe.Pointer, i int) *uint64 { return (*uint64)(unsafe.Add(p, i*8)) }

// The order-preserving words of fixed kinds. Those of NULL slots are those of
// zero, therefore equal.
func intWord(x int64) uint64   { return uint64(x) ^ 1<<63 }
func wordInt(w uint64) int64   { return int64(w ^ 1<<63) }
func boolWord(x bool) uint64   { return uint64(*(*uint8)(unsafe.Pointer(&x))) }
func f64Word(x float64) uint64 { return f64Bits(math.Float64bits(x)) }
func f64Bits(b uint64) uint64  { return (b ^ (uint64(int64(b)>>63) | 1<<63)) - (1<<52 - 1) }
func wordF64(w uint64) float64 {
	w += 1<<52 - 1
	return math.Float64frombits(w ^ (^uint64(int64(w)>>63) | 1<<63))
}
func f32Word(x float32) uint64 {
	b := math.Float32bits(x)
	return uint64((b ^ (uint32(int32(b)>>31) | 1<<31)) - (1<<23 - 1))
}
func wordF32(w uint64) float32 {
	b := uint32(w) + (1<<23 - 1)
	return math.Float32frombits(b ^ (^uint32(int32(b)>>31) | 1<<31))
}

// prefixWord is the first word of a Bytes value.
func prefixWord(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var w uint64
	for i, x := range b {
		w |= uint64(x) << (56 - 8*i)
	}
	return w
}

// encode writes the given rows of cols to dst, one after the other. The tail of
// a long Bytes value is left out (ref 0): see tails.
func (k *rowCodec) encode(cols []*columnar.Vec, rows []uint32, dst []uint64) {
	if len(rows) == 0 {
		return
	}
	dst = dst[:len(rows)*k.words]
	if k.masks == 1 {
		for i := 0; i < len(dst); i += k.words {
			dst[i] = 0
		}
	} else {
		for i := 0; i < len(dst); i += k.words {
			clear(dst[i : i+k.masks])
		}
	}
	for c, v := range cols {
		k.encodeCol(c, v, rows, unsafe.Pointer(&dst[0]))
	}
}

func (k *rowCodec) encodeCol(c int, v *columnar.Vec, rows []uint32, base unsafe.Pointer) {
	stride := uintptr(k.words) * 8
	p := unsafe.Add(base, k.offs[c]*8)
	switch k.kinds[c] {
	case columnar.KindBool:
		for i, r := range rows {
			*(*uint64)(unsafe.Add(p, uintptr(i)*stride)) = boolWord(v.Bools()[r])
		}
	case columnar.KindInt16:
		encodeInts(v.Int16s(), rows, p, stride)
	case columnar.KindInt32:
		encodeInts(v.Int32s(), rows, p, stride)
	case columnar.KindInt64:
		encodeInts(v.Int64s(), rows, p, stride)
	case columnar.KindFloat32:
		vals := v.Float32s()
		for i, r := range rows {
			*(*uint64)(unsafe.Add(p, uintptr(i)*stride)) = f32Word(vals[r])
		}
	case columnar.KindFloat64:
		vals := v.Float64s()
		for i, r := range rows {
			*(*uint64)(unsafe.Add(p, uintptr(i)*stride)) = f64Word(vals[r])
		}
	case columnar.KindFixed16:
		vals := v.U128s()
		for i, r := range rows {
			*(*[2]uint64)(unsafe.Add(p, uintptr(i)*stride)) = [2]uint64{vals[r].Hi, vals[r].Lo}
		}
	default:
		_, offs, data := v.Raw()
		for i, r := range rows {
			b := data[offs[r]:offs[r+1]]
			*(*[2]uint64)(unsafe.Add(p, uintptr(i)*stride)) = [2]uint64{prefixWord(b), uint64(len(b))}
		}
	}
	if v.HasNulls() && k.masks > 0 {
		nulls := v.Nulls()
		p := unsafe.Add(base, c>>6*8)
		for i, r := range rows {
			if nulls.Get(int(r)) {
				*(*uint64)(unsafe.Add(p, uintptr(i)*stride)) |= 1 << (uint(c) & 63)
			}
		}
	}
}

func encodeInts[T int16 | int32 | int64](vals []T, rows []uint32, p unsafe.Pointer, stride uintptr) {
	for i, r := range rows {
		*(*uint64)(unsafe.Add(p, uintptr(i)*stride)) = intWord(int64(vals[r]))
	}
}

// encodeRow is encode of one row, without allocation.
func (k *rowCodec) encodeRow(cols []*columnar.Vec, row int, dst unsafe.Pointer) {
	one := [1]uint32{uint32(row)}
	for i := range k.masks {
		*wordAt(dst, i) = 0
	}
	for c, v := range cols {
		k.encodeCol(c, v, one[:], dst)
	}
}

// tails gives an encoded row that is to be kept its long Bytes values: copies
// in ar of what row `row` of cols holds.
func (k *rowCodec) tails(p unsafe.Pointer, cols []*columnar.Vec, row int, ar *arena) {
	for _, c := range k.bytes {
		w := wordAt(p, k.offs[c]+1)
		if n := int(*w & lenMask); n > inlined {
			ref := ar.alloc(n - inlined)
			copy(ar.bytes(ref, n-inlined), cols[c].Bytes(row)[inlined:])
			*w = uint64(n) | ref<<refShift
		}
	}
}

// untail makes an encoded row be without tails again.
func (k *rowCodec) untail(p unsafe.Pointer) {
	for _, c := range k.bytes {
		*wordAt(p, k.offs[c]+1) &= lenMask
	}
}

// free releases what tails allocated for the row at p.
func (k *rowCodec) free(p unsafe.Pointer, ar *arena) {
	for _, c := range k.bytes {
		freeBytes(*wordAt(p, k.offs[c]+1), ar)
	}
}

// freeBytes releases the tail of a Bytes value by its second word.
func freeBytes(w uint64, ar *arena) {
	if n := int(w & lenMask); n > inlined {
		ar.release(w>>refShift, n-inlined)
	}
}

// keepBytes makes the two words of a Bytes value, with a copy of its tail in ar.
func keepBytes(b []byte, ar *arena) [2]uint64 {
	w := [2]uint64{prefixWord(b), uint64(len(b))}
	if n := len(b); n > inlined {
		ref := ar.alloc(n - inlined)
		copy(ar.bytes(ref, n-inlined), b[inlined:])
		w[1] |= ref << refShift
	}
	return w
}

// appendBytes appends the Bytes value of two words.
func appendBytes(dst []byte, w *[2]uint64, ar *arena) []byte {
	n := int(w[1] & lenMask)
	l := len(dst)
	dst = binary.BigEndian.AppendUint64(dst, w[0])
	if n <= inlined {
		return dst[:l+n]
	}
	return append(dst, ar.bytes(w[1]>>refShift, n-inlined)...)
}

// same reports whether the kept row at p equals the encoded row at q, which is
// row `row` of cols and has no tails. Mask words are compared by the caller.
func (k *rowCodec) same(p, q unsafe.Pointer, cols []*columnar.Vec, row int, ar *arena) bool {
	if len(k.bytes) == 0 {
		for i := k.masks; i < k.words; i++ {
			if *wordAt(p, i) != *wordAt(q, i) {
				return false
			}
		}
		return true
	}
	for c, kind := range k.kinds {
		o := k.offs[c]
		if *wordAt(p, o) != *wordAt(q, o) {
			return false
		}
		switch kind {
		case columnar.KindFixed16:
			if *wordAt(p, o+1) != *wordAt(q, o+1) {
				return false
			}
		case columnar.KindBytes:
			w := *wordAt(p, o+1)
			if w&lenMask != *wordAt(q, o+1) {
				return false
			}
			if n := int(w & lenMask); n > inlined &&
				!bytes.Equal(ar.bytes(w>>refShift, n-inlined), cols[c].Bytes(row)[inlined:]) {
				return false
			}
		}
	}
	return true
}

// compare orders two kept rows as columnar.CompareRows orders their columns.
func (k *rowCodec) compare(p, q unsafe.Pointer, ar *arena) int {
	return k.compareTo(len(k.kinds), p, q, ar)
}

// compareTo is compare of the first n columns only.
func (k *rowCodec) compareTo(n int, p, q unsafe.Pointer, ar *arena) int {
	if k.masks > 0 {
		for i := range k.masks {
			if *wordAt(p, i)|*wordAt(q, i) != 0 {
				return k.compareNulls(n, p, q, ar)
			}
		}
	}
	for c := range n {
		if r := k.compareCol(c, p, q, ar); r != 0 {
			return r
		}
	}
	return 0
}

func (k *rowCodec) compareNulls(n int, p, q unsafe.Pointer, ar *arena) int {
	for c := range n {
		bit := uint64(1) << (uint(c) & 63)
		pn, qn := *wordAt(p, c>>6)&bit != 0, *wordAt(q, c>>6)&bit != 0
		switch {
		case pn && qn:
		case pn:
			return 1
		case qn:
			return -1
		default:
			if r := k.compareCol(c, p, q, ar); r != 0 {
				return r
			}
		}
	}
	return 0
}

func (k *rowCodec) compareCol(c int, p, q unsafe.Pointer, ar *arena) int {
	o := k.offs[c]
	a, b := *wordAt(p, o), *wordAt(q, o)
	if a != b {
		if a < b {
			return -1
		}
		return 1
	}
	switch k.kinds[c] {
	case columnar.KindFixed16:
	case columnar.KindBytes:
		return compareTails(*wordAt(p, o+1), *wordAt(q, o+1), ar)
	default:
		return 0
	}
	a, b = *wordAt(p, o+1), *wordAt(q, o+1)
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// compareTails compares Bytes values with equal first words by their second ones.
func compareTails(a, b uint64, ar *arena) int {
	m, n := int(a&lenMask), int(b&lenMask)
	if m <= inlined || n <= inlined {
		return m - n
	}
	if a == b {
		return 0
	}
	return bytes.Compare(ar.bytes(a>>refShift, m-inlined), ar.bytes(b>>refShift, n-inlined))
}

// compareEncoded orders a kept row and an encoded one without tails, which is
// row `row` of cols.
func (k *rowCodec) compareEncoded(p, q unsafe.Pointer, cols []*columnar.Vec, row int, ar *arena) int {
	nulls := uint64(0)
	for i := range k.masks {
		nulls |= *wordAt(p, i) | *wordAt(q, i)
	}
	for c, kind := range k.kinds {
		if nulls != 0 {
			bit := uint64(1) << (uint(c) & 63)
			pn, qn := *wordAt(p, c>>6)&bit != 0, *wordAt(q, c>>6)&bit != 0
			switch {
			case pn && qn:
				continue
			case pn:
				return 1
			case qn:
				return -1
			}
		}
		o := k.offs[c]
		a, b := *wordAt(p, o), *wordAt(q, o)
		if a == b && kind == columnar.KindFixed16 {
			a, b = *wordAt(p, o+1), *wordAt(q, o+1)
		}
		switch {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		if kind == columnar.KindBytes {
			if r := compareTail(*wordAt(p, o+1), int(*wordAt(q, o+1)), cols[c], row, ar); r != 0 {
				return r
			}
		}
	}
	return 0
}

// compareVecs orders a kept row and row `row` of cols.
func (k *rowCodec) compareVecs(p unsafe.Pointer, cols []*columnar.Vec, row int, ar *arena) int {
	for c, v := range cols {
		pn := k.masks > 0 && *wordAt(p, c>>6)>>(uint(c)&63)&1 != 0
		switch vn := v.Null(row); {
		case pn && vn:
			continue
		case pn:
			return 1
		case vn:
			return -1
		}
		o := k.offs[c]
		var q [2]uint64
		switch v.Kind() {
		case columnar.KindFixed16:
			x := v.U128s()[row]
			q = [2]uint64{x.Hi, x.Lo}
			if q[0] == *wordAt(p, o) && q[1] != *wordAt(p, o+1) {
				return cmp.Compare(*wordAt(p, o+1), q[1])
			}
		case columnar.KindBytes:
			b := v.Bytes(row)
			q = [2]uint64{prefixWord(b), uint64(len(b))}
			if q[0] == *wordAt(p, o) {
				if r := compareTail(*wordAt(p, o+1), len(b), v, row, ar); r != 0 {
					return r
				}
			}
		default:
			q[0] = fixedWord(v, uint32(row))
		}
		if r := cmp.Compare(*wordAt(p, o), q[0]); r != 0 {
			return r
		}
	}
	return 0
}

// compareTail compares a kept Bytes value, given by its second word, with one of
// n bytes that has the same first word.
func compareTail(w uint64, n int, v *columnar.Vec, row int, ar *arena) int {
	m := int(w & lenMask)
	if m <= inlined || n <= inlined {
		return m - n
	}
	return bytes.Compare(ar.bytes(w>>refShift, m-inlined), v.Bytes(row)[inlined:])
}
