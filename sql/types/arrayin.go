package types

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
)

func appendInt(dst []byte, i int64) []byte { return strconv.AppendInt(dst, i, 10) }

// arrayToken is what was read last in an array literal.
type arrayToken uint8

const (
	noLevel arrayToken = iota
	levelStarted
	elemStarted
	quotedStarted
	quotedDone
	elemDelimited
	levelDone
	levelDelimited
)

// arrayReader reads an array literal. Element texts are collected unescaped.
type arrayReader struct {
	lit    string // what messages quote
	s      string
	i      int
	last   arrayToken
	quoted bool // inside quotes
	comma  byte // between elements
	ndim   int
	level  int
	count  [MaxDims]int32 // of items at each level so far
	dims   [MaxDims]Dim
	// sizes are the lengths of the finished sub-arrays at each level; 0: none yet.
	sizes [MaxDims]int32
	elems []arrayElem
	text  []byte
	cur   arrayElem // the element being read
	keep  int       // end of cur without trailing white space
}

type arrayElem struct {
	from, to int  // in text
	literal  bool // quoted or escaped: cannot be NULL
}

func (r *arrayReader) fail(format string, args ...any) error {
	return pgerror.New(pgerror.InvalidTextRepresentation, "malformed array literal: \"%s\"", r.lit).WithDetail(format, args...)
}

func (r *arrayReader) skipSpace() {
	for r.i < len(r.s) && isSpace(r.s[r.i]) {
		r.i++
	}
}

// bounds reads the optional [l:u]… before the braces.
func (r *arrayReader) bounds() (dims []Dim, err error) {
	for {
		r.skipSpace()
		if r.i == len(r.s) || r.s[r.i] != '[' {
			break
		}
		r.i++
		if len(dims) >= MaxDims {
			return nil, errTooManyDims(len(dims) + 1)
		}
		d, err := r.bound()
		if err != nil {
			return nil, err
		}
		dims = append(dims, d)
	}
	if len(dims) == 0 {
		if r.i == len(r.s) || r.s[r.i] != '{' {
			return nil, r.fail("Array value must start with \"{\" or dimension information.")
		}
		return nil, nil
	}
	if r.i == len(r.s) || r.s[r.i] != '=' {
		return nil, r.fail("Missing \"=\" after array dimensions.")
	}
	r.i++
	r.skipSpace()
	if r.i == len(r.s) || r.s[r.i] != '{' {
		return nil, r.fail("Array contents must start with \"{\".")
	}
	return dims, nil
}

func (r *arrayReader) bound() (d Dim, err error) {
	number := func() (int32, bool) {
		from := r.i
		for r.i < len(r.s) && (isDigit(r.s[r.i]) || r.s[r.i] == '-' || r.s[r.i] == '+') {
			r.i++
		}
		return atoi(r.s[from:r.i]), r.i > from
	}
	n, ok := number()
	if !ok {
		return d, r.fail("\"[\" must introduce explicitly-specified array dimensions.")
	}
	d.Lower = 1
	if r.i < len(r.s) && r.s[r.i] == ':' {
		r.i++
		d.Lower = n
		if n, ok = number(); !ok {
			return d, r.fail("Missing array dimension value.")
		}
	}
	if r.i == len(r.s) || r.s[r.i] != ']' {
		return d, r.fail("Missing \"]\" after array dimensions.")
	}
	r.i++
	if n < d.Lower {
		return d, pgerror.New(pgerror.ArraySubscriptError, "upper bound cannot be less than lower bound")
	}
	d.Len = n - d.Lower + 1
	return d, nil
}

// atoi is C's: leading sign, digits as far as they go, wrapping.
func atoi(s string) int32 {
	neg := false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		neg = s[0] == '-'
		s = s[1:]
	}
	n := int64(0)
	for i := 0; i < len(s) && isDigit(s[i]); i++ {
		n = n*10 + int64(s[i]-'0')
	}
	if neg {
		n = -n
	}
	return int32(n)
}

// braces reads {…} and all in it.
func (r *arrayReader) braces() error {
	whole := r.lit
	r.lit = r.s[r.i:]
	for done := false; !done; r.i++ {
		if r.i == len(r.s) {
			return r.fail("Unexpected end of input.")
		}
		var err error
		switch c := r.s[r.i]; {
		case c == '\\':
			err = r.escape()
		case c == '"':
			err = r.quote()
		case r.quoted:
			r.text = append(r.text, c)
		case c == '{':
			err = r.open()
		case c == '}':
			done, err = r.close()
		case c == r.comma:
			err = r.delimiter()
		default:
			err = r.plain(c)
		}
		if err != nil {
			return err
		}
	}
	r.skipSpace()
	if r.i < len(r.s) {
		return r.fail("Junk after closing right brace.")
	}
	r.lit = whole
	return nil
}

// begin starts an element unless one is being read.
func (r *arrayReader) begin(tok arrayToken) {
	if r.last != elemStarted && r.last != quotedStarted {
		r.cur = arrayElem{from: len(r.text)}
	}
	r.last = tok
}

func (r *arrayReader) escape() error {
	switch r.last {
	case levelStarted, elemStarted, elemDelimited:
		r.begin(elemStarted)
	case quotedStarted:
	default:
		return r.fail("Unexpected \"%c\" character.", '\\')
	}
	if r.i++; r.i == len(r.s) {
		return r.fail("Unexpected end of input.")
	}
	r.cur.literal = true
	r.text = append(r.text, r.s[r.i])
	r.keep = len(r.text)
	return nil
}

func (r *arrayReader) quote() error {
	switch r.last {
	case levelStarted, elemDelimited:
		r.begin(quotedStarted)
		r.cur.literal = true
		r.quoted = true
	case quotedStarted:
		r.quoted = false
		r.last = quotedDone
		r.keep = len(r.text)
	default:
		return r.fail("Unexpected array element.")
	}
	return nil
}

func (r *arrayReader) open() error {
	if r.last != noLevel && r.last != levelStarted && r.last != levelDelimited {
		return r.fail("Unexpected \"%c\" character.", '{')
	}
	r.last = levelStarted
	if r.level >= MaxDims {
		return errTooManyDims(r.level + 1)
	}
	r.count[r.level] = 0
	r.level++
	r.ndim = max(r.ndim, r.level)
	return nil
}

// endItem closes the element or sub-array before a delimiter or brace.
func (r *arrayReader) endItem() {
	r.count[r.level-1]++
	if r.last == elemStarted || r.last == quotedDone {
		r.cur.to = r.keep
		r.text = r.text[:r.keep]
		r.elems = append(r.elems, r.cur)
	}
}

func (r *arrayReader) close() (done bool, err error) {
	switch r.last {
	case elemStarted, quotedDone, levelDone:
		r.endItem()
	case levelStarted:
		if r.level != 1 {
			return false, r.fail("Unexpected \"%c\" character.", '}')
		}
	default:
		return false, r.fail("Unexpected \"%c\" character.", '}')
	}
	r.last = levelDone
	r.level--
	if n := r.count[r.level]; r.sizes[r.level] != 0 && n != r.sizes[r.level] {
		return false, r.fail("Multidimensional arrays must have sub-arrays with matching dimensions.")
	}
	r.sizes[r.level] = r.count[r.level]
	return r.level == 0, nil
}

func (r *arrayReader) delimiter() error {
	switch r.last {
	case elemStarted, quotedDone:
		r.endItem()
		r.last = elemDelimited
	case levelDone:
		r.endItem()
		r.last = levelDelimited
	default:
		return r.fail("Unexpected \"%c\" character.", r.comma)
	}
	return nil
}

func (r *arrayReader) plain(c byte) error {
	if isSpace(c) {
		if r.last == elemStarted { // inside, or after, the element
			r.text = append(r.text, c)
		}
		return nil
	}
	switch r.last {
	case levelStarted, elemStarted, elemDelimited:
		r.begin(elemStarted)
	default:
		return r.fail("Unexpected array element.")
	}
	r.text = append(r.text, c)
	r.keep = len(r.text)
	return nil
}

func parseArray(dst []byte, t Type, s string, o *Options) ([]byte, error) {
	elem := t.ElemType()
	r := arrayReader{lit: s, s: s, comma: elem.OID.Delimiter()}
	dims, err := r.bounds()
	if err != nil {
		return dst, err
	}
	if err := r.braces(); err != nil {
		return dst, err
	}
	if len(r.elems) == 0 {
		r.ndim = 0
	}
	for i := range r.ndim {
		r.dims[i] = Dim{r.sizes[i], 1}
	}
	if dims != nil {
		if len(dims) != r.ndim {
			return dst, r.fail("Specified array dimensions do not match array contents.")
		}
		for i, d := range dims {
			if d.Len != r.dims[i].Len {
				return dst, r.fail("Specified array dimensions do not match array contents.")
			}
			r.dims[i] = d
		}
	}
	if _, err := CheckDims(r.dims[:r.ndim]); err != nil {
		return dst, err
	}
	b := columnar.NewBuilder(elem.Kind(), len(r.elems))
	for _, e := range r.elems {
		text := r.text[e.from:e.to]
		if !e.literal && equalFold(string(text), "null") {
			b.Null()
			continue
		}
		if err := ParseTextBytes(b, elem, text, o); err != nil {
			return dst, err
		}
	}
	v := b.Build()
	if err := checkDomain(elem.OID, v); err != nil {
		return dst, err
	}
	return AppendArray(dst, elem.OID, r.dims[:r.ndim], v, 0, v.Len()), nil
}

func appendVectorText(dst, b []byte) []byte {
	a := ReadArray(b)
	for i := range a.N {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = appendInt(dst, a.datum(i).int())
	}
	return dst
}

// parseVector reads int2vector and oidvector: numbers with blanks between.
func parseVector(dst []byte, o OID, s string) ([]byte, error) {
	elem := Of(o.Elem())
	b := columnar.NewBuilder(elem.Kind(), 4)
	for {
		for s != "" && isSpace(s[0]) {
			s = s[1:]
		}
		if s == "" {
			break
		}
		i := strings.IndexByte(s, ' ')
		if i < 0 {
			i = len(s)
		}
		if o == OIDOidVector { // a number ends before anything else
			for i = 0; i < len(s) && (isDigit(s[i]) || (i == 0 && (s[0] == '-' || s[0] == '+'))); i++ {
			}
			if i == 0 {
				return dst, errInput("oid", s)
			}
		}
		if err := ParseText(b, elem, s[:i], nil); err != nil {
			return dst, err
		}
		s = s[i:]
	}
	n := b.Len()
	return AppendVector(dst, o, b.Build(), 0, n), nil
}

// AppendVector appends the int2vector or oidvector (type o) of values from up
// to to of v: an array with subscripts from 0.
func AppendVector(dst []byte, o OID, v *columnar.Vec, from, to int) []byte {
	if from == to { // unlike empty arrays, empty vectors have a dimension
		dst = append(dst, 1, 0)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(o.Elem()))
		return append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	d := [1]Dim{{int32(to - from), 0}}
	return AppendArray(dst, o.Elem(), d[:], v, from, to)
}

func appendArrayBinary(dst, b []byte) []byte {
	a := ReadArray(b)
	dst = binary.BigEndian.AppendUint32(dst, uint32(a.NDim))
	hasNull := uint32(0)
	if a.HasNulls() {
		hasNull = 1
	}
	dst = binary.BigEndian.AppendUint32(dst, hasNull)
	dst = binary.BigEndian.AppendUint32(dst, uint32(a.Elem))
	for _, d := range a.Dims[:a.NDim] {
		dst = binary.BigEndian.AppendUint32(dst, uint32(d.Len))
		dst = binary.BigEndian.AppendUint32(dst, uint32(d.Lower))
	}
	for i := range a.N {
		if a.Null(i) {
			dst = append(dst, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		dst = appendSized(dst, Of(a.Elem), a.datum(i))
	}
	return dst
}

// appendSized appends a value's binary form with its length before it.
func appendSized(dst []byte, t Type, d datum) []byte {
	l := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = appendBinary(dst, t, d)
	binary.BigEndian.PutUint32(dst[l:], uint32(len(dst)-l-4))
	return dst
}

func parseArrayBinary(dst []byte, t Type, p []byte) ([]byte, error) {
	elem := t.ElemType()
	if len(p) < 12 {
		return dst, errShortMessage()
	}
	ndim := int32(binary.BigEndian.Uint32(p))
	flags := binary.BigEndian.Uint32(p[4:])
	got := OID(binary.BigEndian.Uint32(p[8:]))
	p = p[12:]
	if ndim < 0 {
		return dst, pgerror.New(pgerror.InvalidBinaryRepresentation, "invalid number of dimensions: %d", ndim)
	}
	if ndim > MaxDims {
		return dst, errTooManyDims(int(ndim))
	}
	if flags > 1 {
		return dst, pgerror.New(pgerror.InvalidBinaryRepresentation, "invalid array flags")
	}
	if got != elem.OID {
		return dst, pgerror.New(pgerror.DatatypeMismatch, "binary data has array element type %d (%s) instead of expected %d (%s)",
			got, got.Name(), elem.OID, elem.OID.Name())
	}
	if len(p) < int(ndim)*8 {
		return dst, errShortMessage()
	}
	var dims [MaxDims]Dim
	for i := range ndim {
		dims[i] = Dim{int32(binary.BigEndian.Uint32(p)), int32(binary.BigEndian.Uint32(p[4:]))}
		p = p[8:]
	}
	n, err := CheckDims(dims[:ndim])
	if err != nil {
		return dst, err
	}
	if ndim == 0 || n == 0 {
		if t.OID == OIDInt2Vector || t.OID == OIDOidVector {
			return AppendVector(dst, t.OID, nil, 0, 0), nil
		}
		return AppendEmptyArray(dst, elem.OID), nil
	}
	if n > len(p)/4 {
		return dst, errShortMessage()
	}
	b := columnar.NewBuilder(elem.Kind(), n)
	for range n {
		if len(p) < 4 {
			return dst, errShortMessage()
		}
		l := int32(binary.BigEndian.Uint32(p))
		p = p[4:]
		if l == -1 {
			b.Null()
			continue
		}
		if l < -1 || int(l) > len(p) {
			return dst, errShortMessage()
		}
		if err := ParseBinary(b, elem, p[:l]); err != nil {
			return dst, err
		}
		p = p[l:]
	}
	if len(p) > 0 {
		return dst, errBinaryFormat("")
	}
	v := b.Build()
	if err := checkDomain(elem.OID, v); err != nil {
		return dst, err
	}
	return AppendArray(dst, elem.OID, dims[:ndim], v, 0, n), nil
}
