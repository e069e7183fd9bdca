package types

import (
	"encoding/binary"
	"math"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// The form of an array (all numbers little-endian):
//
//	ndim    1 byte, 0 for the empty array
//	flags   1 byte, bit 0: a null bitmap follows the dimensions
//	elem    4 bytes, OID of the element type
//	dims    ndim × (length int32, lower bound int32)
//	nulls   ⌈n/8⌉ bytes, a set bit is a NULL; only if there are NULLs
//	values  fixed-width elements: n of them, zero where NULL;
//	        others: n end offsets (uint32) and the bytes
//
// Arrays that are equal in dimensions, bounds and the bytes of their elements
// have equal forms.

// MaxDims is the greatest number of dimensions.
const MaxDims = 6

const (
	arrayHeader   = 6
	arrayHasNulls = 1
)

// Dim is one dimension of an array.
type Dim struct{ Len, Lower int32 }

// Upper is the upper bound.
func (d Dim) Upper() int32 { return d.Lower + d.Len - 1 }

// Array reads the form of an array. It shares the memory of what it reads.
type Array struct {
	Elem  OID
	NDim  int
	Dims  [MaxDims]Dim
	N     int // number of elements
	kind  columnar.Kind
	nulls []byte
	ends  []byte
	data  []byte
}

// ReadArray takes the form of an array apart.
func ReadArray(b []byte) (a Array) {
	a.NDim = int(b[0])
	a.Elem = OID(binary.LittleEndian.Uint32(b[2:]))
	a.kind = Of(a.Elem).Kind()
	flags := b[1]
	b = b[arrayHeader:]
	if a.NDim == 0 {
		return a
	}
	a.N = 1
	for i := range a.NDim {
		a.Dims[i] = Dim{int32(binary.LittleEndian.Uint32(b)), int32(binary.LittleEndian.Uint32(b[4:]))}
		a.N *= int(a.Dims[i].Len)
		b = b[8:]
	}
	if flags&arrayHasNulls != 0 {
		l := (a.N + 7) / 8
		a.nulls, b = b[:l], b[l:]
	}
	if a.kind == columnar.KindBytes {
		a.ends, a.data = b[:4*a.N], b[4*a.N:]
	} else {
		a.data = b
	}
	return a
}

// HasNulls reports whether some element is NULL.
func (a *Array) HasNulls() bool { return a.nulls != nil }

// Null reports whether element i (from 0, in storage order) is NULL.
func (a *Array) Null(i int) bool { return a.nulls != nil && a.nulls[i>>3]>>(uint(i)&7)&1 != 0 }

// Kind is the physical kind of the elements.
func (a *Array) Kind() columnar.Kind { return a.kind }

// Bytes is the stored form of element i: its bytes, or little-endian its bits.
func (a *Array) Bytes(i int) []byte {
	if a.kind == columnar.KindBytes {
		from := uint32(0)
		if i > 0 {
			from = binary.LittleEndian.Uint32(a.ends[4*i-4:])
		}
		to := binary.LittleEndian.Uint32(a.ends[4*i:])
		return a.data[from:to:to]
	}
	w := a.kind.Width()
	return a.data[i*w : (i+1)*w : (i+1)*w]
}

func (a *Array) datum(i int) datum { return rawDatum(a.kind, a.Bytes(i)) }

// AppendElem appends element i to b, a builder of the elements' kind.
func (a *Array) AppendElem(b *columnar.Builder, i int) {
	if a.Null(i) {
		b.Null()
		return
	}
	a.datum(i).appendTo(b)
}

// AppendElems appends elements [from, to) to b.
func (a *Array) AppendElems(b *columnar.Builder, from, to int) {
	for i := from; i < to; i++ {
		a.AppendElem(b, i)
	}
}

// AppendElemText appends the text form of element i, which is not NULL.
func (a *Array) AppendElemText(dst []byte, i int, o *Options) []byte {
	return appendText(dst, Of(a.Elem), a.datum(i), o)
}

// CompareElem orders element i of a and element j of b, which have the same
// type and are not NULL.
func (a *Array) CompareElem(i int, b *Array, j int) int {
	return compareDatum(Of(a.Elem), a.datum(i), b.datum(j))
}

// CompareValue orders element i of a and value row of v, which is of the same
// type; neither is NULL.
func (a *Array) CompareValue(i int, v *columnar.Vec, row int) int {
	return compareDatum(Of(a.Elem), a.datum(i), at(v, row))
}

// Index is the place of the element with the given subscripts, -1 if there is none.
func (a *Array) Index(subs []int32) int {
	if len(subs) != a.NDim || a.NDim == 0 {
		return -1
	}
	n := 0
	for i, s := range subs {
		d := a.Dims[i]
		if s < d.Lower || int64(s) >= int64(d.Lower)+int64(d.Len) {
			return -1
		}
		n = n*int(d.Len) + int(s-d.Lower)
	}
	return n
}

// AppendEmptyArray appends the empty array of an element type.
func AppendEmptyArray(dst []byte, elem OID) []byte {
	dst = append(dst, 0, 0)
	return binary.LittleEndian.AppendUint32(dst, uint32(elem))
}

// AppendArray appends the array of dimensions dims whose elements, in storage
// order, are values from up to to of v. Without elements it is the empty array.
func AppendArray(dst []byte, elem OID, dims []Dim, v *columnar.Vec, from, to int) []byte {
	if from == to || len(dims) == 0 {
		return AppendEmptyArray(dst, elem)
	}
	start := len(dst)
	dst = append(dst, byte(len(dims)), 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(elem))
	for _, d := range dims {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(d.Len))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(d.Lower))
	}
	n := to - from
	if v.HasNulls() {
		l := len(dst)
		var any byte
		for i := 0; i < n; i += 8 {
			var m byte
			for j := i; j < min(n, i+8); j++ {
				if v.Null(from + j) {
					m |= 1 << (j - i)
				}
			}
			dst = append(dst, m)
			any |= m
		}
		if any == 0 {
			dst = dst[:l]
		} else {
			dst[start+1] = arrayHasNulls
		}
	}
	fixed, offs, data := v.Raw()
	if v.Kind() != columnar.KindBytes {
		w := v.Kind().Width()
		return append(dst, fixed[from*w:to*w]...)
	}
	for _, e := range offs[from+1 : to+1] {
		dst = binary.LittleEndian.AppendUint32(dst, e-offs[from])
	}
	return append(dst, data[offs[from]:offs[to]]...)
}

// AppendList appends the one-dimensional array, with subscripts from 1, of
// values from up to to of v.
func AppendList(dst []byte, elem OID, v *columnar.Vec, from, to int) []byte {
	d := [1]Dim{{int32(to - from), 1}}
	return AppendArray(dst, elem, d[:], v, from, to)
}

// WithElem appends array b with another element type of the same stored form:
// a cast between binary-compatible array types.
func WithElem(dst, b []byte, elem OID) []byte {
	l := len(dst)
	dst = append(dst, b...)
	binary.LittleEndian.PutUint32(dst[l+2:], uint32(elem))
	return dst
}

// maxArrayElems is what PostgreSQL's allocation limit allows.
const maxArrayElems = (1<<30 - 1) / 8

// CheckDims is the number of elements of an array of dimensions dims, or the
// error that it has too many or too great subscripts.
func CheckDims(dims []Dim) (int, error) {
	n := int64(1)
	for _, d := range dims {
		if d.Len < 0 {
			return 0, errArraySize()
		}
		if n *= int64(d.Len); n > math.MaxInt32 {
			return 0, errArraySize()
		}
	}
	if n > maxArrayElems { // a dimension of length 0 makes up for another
		return 0, errArraySize()
	}
	for _, d := range dims {
		if int64(d.Lower)+int64(d.Len) > math.MaxInt32 {
			return 0, pgerror.New(pgerror.ProgramLimitExceeded, "array lower bound is too large: %d", d.Lower)
		}
	}
	return int(n), nil
}

// CheckArrayDim refuses n elements from a lower bound on if there are too many of them,
// or one has no number.
func CheckArrayDim(lower, n int64) error {
	switch {
	case n < 0 || n > maxArrayElems:
		return errArraySize()
	case lower+n > math.MaxInt32:
		return pgerror.New(pgerror.ProgramLimitExceeded, "array lower bound is too large: %d", lower)
	}
	return nil
}

func errArraySize() error {
	return pgerror.New(pgerror.ProgramLimitExceeded, "array size exceeds the maximum allowed (%d)", maxArrayElems)
}

func errTooManyDims(n int) error {
	return pgerror.New(pgerror.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", n, MaxDims)
}

func appendArrayText(dst, b []byte, o *Options) []byte {
	a := ReadArray(b)
	if a.NDim == 0 {
		return append(dst, '{', '}')
	}
	plain := true
	for _, d := range a.Dims[:a.NDim] {
		plain = plain && d.Lower == 1
	}
	if !plain {
		dst = append(a.AppendDims(dst), '=')
	}
	i := 0
	return appendArrayLevel(dst, &a, 0, &i, o)
}

// AppendDims appends the bounds as array_dims shows them: [1:2][0:3].
func (a *Array) AppendDims(dst []byte) []byte {
	for _, d := range a.Dims[:a.NDim] {
		dst = append(dst, '[')
		dst = appendInt(dst, int64(d.Lower))
		dst = append(dst, ':')
		dst = appendInt(dst, int64(d.Upper()))
		dst = append(dst, ']')
	}
	return dst
}

func appendArrayLevel(dst []byte, a *Array, level int, i *int, o *Options) []byte {
	dst = append(dst, '{')
	for k := range a.Dims[level].Len {
		if k > 0 {
			dst = append(dst, a.Elem.Delimiter())
		}
		switch {
		case level+1 < a.NDim:
			dst = appendArrayLevel(dst, a, level+1, i, o)
			continue
		case a.Null(*i):
			dst = append(dst, "NULL"...)
		default:
			l := len(dst)
			dst = quoteArrayElem(a.AppendElemText(dst, *i, o), l, a.Elem.Delimiter())
		}
		*i++
	}
	return append(dst, '}')
}

// Delimiter is what is between two elements of the type in an array literal.
func (o OID) Delimiter() byte {
	if o == OIDBox {
		return ';'
	}
	return ','
}

// quoteArrayElem quotes the element dst[from:] where an array literal needs it.
func quoteArrayElem(dst []byte, from int, delimiter byte) []byte {
	e := dst[from:]
	need := len(e) == 0 || equalFold(string(e), "null")
	escapes := 0
	for _, c := range e {
		switch {
		case c == '"' || c == '\\':
			escapes++
		case c == '{' || c == '}' || c == delimiter || isSpace(c):
			need = true
		}
	}
	if escapes == 0 && !need {
		return dst
	}
	return quoteBackslash(dst, from, escapes, '\\')
}

// quoteBackslash puts dst[from:] in double quotes, with esc ('\\', or 0 for
// doubling) before each of the `escapes` quotes and backslashes in it.
func quoteBackslash(dst []byte, from, escapes int, esc byte) []byte {
	n := len(dst)
	for range escapes + 2 {
		dst = append(dst, 0)
	}
	w := len(dst) - 1
	dst[w] = '"'
	for r := n - 1; r >= from; r-- {
		w--
		c := dst[r]
		dst[w] = c
		if c == '"' || c == '\\' {
			w--
			if dst[w] = esc; esc == 0 {
				dst[w] = c
			}
		}
	}
	dst[from] = '"'
	return dst
}
