package types

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/streamdb/streamdb/decimal"
)

// JSONDoc is the binary form of a jsonb value:
//
//	tag      1 byte: kind (low 4 bits) | width code (high 4 bits)
//	null, false, true: nothing more
//	string:  the text
//	number:  the form of package decimal
//	array:   count, count value ends, values
//	object:  count, count key ends, count value ends, keys, values
//
// Counts and ends (offsets from the start of their area) are little-endian
// numbers of 1, 2 or 4 bytes (width codes 0, 1, 2), the smallest that serve.
// Keys are unique and sorted by length, then bytes, as PostgreSQL does. A
// field is found by binary search without reading the rest, and is a JSONDoc
// itself. Equal documents have equal forms, apart from the scale of numbers.
type JSONDoc []byte

// JSONKind is the kind of a JSON value.
type JSONKind uint8

// The kinds.
const (
	JSONKindNull JSONKind = iota
	JSONKindString
	JSONKindNumber
	JSONKindFalse
	JSONKindTrue
	JSONKindArray
	JSONKindObject
)

// Kind is the kind of the value.
func (j JSONDoc) Kind() JSONKind { return JSONKind(j[0] & 15) }

// IsContainer reports whether the value is an array or object.
func (j JSONDoc) IsContainer() bool { return j.Kind() >= JSONKindArray }

// Str is the text of a string.
func (j JSONDoc) Str() []byte { return j[1:] }

// Number is the encoding of a number.
func (j JSONDoc) Number() []byte { return j[1:] }

// TypeName is what jsonb_typeof says.
func (j JSONDoc) TypeName() string {
	return [...]string{"null", "string", "number", "boolean", "boolean", "array", "object"}[j.Kind()]
}

// num reads number i of the table that starts at byte off.
func (j JSONDoc) num(off, i int) int {
	switch j[0] >> 4 {
	case 0:
		return int(j[off+i])
	case 1:
		return int(binary.LittleEndian.Uint16(j[off+2*i:]))
	}
	return int(binary.LittleEndian.Uint32(j[off+4*i:]))
}

func (j JSONDoc) width() int { return 1 << (j[0] >> 4) }

// Len is the number of elements of an array, or of members of an object.
func (j JSONDoc) Len() int { return j.num(1, 0) }

// span is the part of an area at off that entry i of the table takes.
func (j JSONDoc) span(table, area, i int) []byte {
	from := 0
	if i > 0 {
		from = j.num(table, i-1)
	}
	to := j.num(table, i)
	return j[area+from : area+to : area+to]
}

// layout finds the tables and areas of an object.
func (j JSONDoc) layout() (n, keyTab, valTab, keys, vals int) {
	n, w := j.Len(), j.width()
	keyTab = 1 + w
	valTab = keyTab + n*w
	keys = valTab + n*w
	vals = keys
	if n > 0 {
		vals += j.num(keyTab, n-1)
	}
	return n, keyTab, valTab, keys, vals
}

// Elem is element i of an array.
func (j JSONDoc) Elem(i int) JSONDoc {
	w := j.width()
	return j.span(1+w, 1+w+j.Len()*w, i)
}

// Key is the key of member i of an object, in order of length, then bytes.
func (j JSONDoc) Key(i int) []byte {
	_, keyTab, _, keys, _ := j.layout()
	return j.span(keyTab, keys, i)
}

// Value is the value of member i of an object.
func (j JSONDoc) Value(i int) JSONDoc {
	_, _, valTab, _, vals := j.layout()
	return j.span(valTab, vals, i)
}

// Find is the place of a key in an object, -1 if it is not there.
func (j JSONDoc) Find(key []byte) int {
	n, keyTab, _, keys, _ := j.layout()
	lo, hi := 0, n
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		switch c := cmpKey(j.span(keyTab, keys, m), key); {
		case c == 0:
			return m
		case c < 0:
			lo = m + 1
		default:
			hi = m
		}
	}
	return -1
}

// Get is the value of a key; nil if j is no object or has no such key.
func (j JSONDoc) Get(key []byte) JSONDoc {
	if j.Kind() != JSONKindObject {
		return nil
	}
	if i := j.Find(key); i >= 0 {
		return j.Value(i)
	}
	return nil
}

// At is element i of an array, from the end if negative; nil if j is no array
// or has no such element.
func (j JSONDoc) At(i int) JSONDoc {
	if j.Kind() != JSONKindArray {
		return nil
	}
	n := j.Len()
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return nil
	}
	return j.Elem(i)
}

// cmpKey is the order of keys in an object.
func cmpKey(a, b []byte) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return bytes.Compare(a, b)
}

// AppendText appends the text form.
func (j JSONDoc) AppendText(dst []byte) []byte {
	switch j.Kind() {
	case JSONKindNull:
		return append(dst, "null"...)
	case JSONKindFalse:
		return append(dst, "false"...)
	case JSONKindTrue:
		return append(dst, "true"...)
	case JSONKindString:
		return AppendJSONString(dst, j.Str())
	case JSONKindNumber:
		return decimal.AppendText(dst, j.Number())
	case JSONKindArray:
		dst = append(dst, '[')
		for i := range j.Len() {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = j.Elem(i).AppendText(dst)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	n, keyTab, valTab, keys, vals := j.layout()
	for i := range n {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(AppendJSONString(dst, j.span(keyTab, keys, i)), ": "...)
		dst = JSONDoc(j.span(valTab, vals, i)).AppendText(dst)
	}
	return append(dst, '}')
}

// AppendScalarText appends what ->> gives: the text of a string without
// quotes, of other values the text form. ok is false for null.
func (j JSONDoc) AppendScalarText(dst []byte) (out []byte, ok bool) {
	switch j.Kind() {
	case JSONKindNull:
		return dst, false
	case JSONKindString:
		return append(dst, j.Str()...), true
	}
	return j.AppendText(dst), true
}

// Contains reports whether j @> c.
func (j JSONDoc) Contains(c JSONDoc) bool {
	// An array may contain a bare scalar, at the top only.
	if j.Kind() == JSONKindArray && !c.IsContainer() {
		return j.hasScalar(c)
	}
	return j.contains(c)
}

func (j JSONDoc) hasScalar(c JSONDoc) bool {
	for i := range j.Len() {
		if e := j.Elem(i); e.Kind() == c.Kind() && e.equalScalar(c) {
			return true
		}
	}
	return false
}

func (j JSONDoc) equalScalar(c JSONDoc) bool {
	if bytes.Equal(j, c) {
		return true
	}
	return j.Kind() == JSONKindNumber && c.Kind() == JSONKindNumber && decimal.Equal(j.Number(), c.Number())
}

func (j JSONDoc) contains(c JSONDoc) bool {
	if j.Kind() != c.Kind() {
		return false
	}
	switch j.Kind() {
	case JSONKindObject:
		if c.Len() > j.Len() {
			return false
		}
		for i := range c.Len() {
			v := j.Get(c.Key(i))
			if v == nil || !v.contains(c.Value(i)) {
				return false
			}
		}
		return true
	case JSONKindArray:
		for i := range c.Len() {
			if e := c.Elem(i); !e.IsContainer() {
				if !j.hasScalar(e) {
					return false
				}
			} else if !j.hasContaining(e) {
				return false
			}
		}
		return true
	}
	return j.equalScalar(c)
}

func (j JSONDoc) hasContaining(c JSONDoc) bool {
	for i := range j.Len() {
		if e := j.Elem(i); e.Kind() == c.Kind() && e.contains(c) {
			return true
		}
	}
	return false
}

// JSONBuilder makes jsonb values part by part. Append ends a value; then the
// builder can be used for the next.
type JSONBuilder struct {
	data    []byte
	keys    []byte
	stack   []jsonFrame
	members []jsonMember
	scratch []byte
}

type jsonFrame struct {
	start  int // of the container's values in data
	keys   int // of its keys
	first  int // of its members
	object bool
}

// jsonMember is a finished value of an open container: where it ends in data,
// and its key, if it has one.
type jsonMember struct {
	keyFrom, keyTo int
	from, to       int
}

// value notes that a value of the open container starts here.
func (b *JSONBuilder) value() {
	if len(b.stack) == 0 {
		return
	}
	f := &b.stack[len(b.stack)-1]
	if f.object { // Key has added the member
		b.members[len(b.members)-1].from = len(b.data)
		return
	}
	b.members = append(b.members, jsonMember{from: len(b.data)})
}

func (b *JSONBuilder) done() {
	if len(b.stack) > 0 {
		b.members[len(b.members)-1].to = len(b.data)
	}
}

// Null adds a null.
func (b *JSONBuilder) Null() { b.leaf(JSONKindNull, nil) }

// Bool adds a boolean.
func (b *JSONBuilder) Bool(x bool) {
	if x {
		b.leaf(JSONKindTrue, nil)
	} else {
		b.leaf(JSONKindFalse, nil)
	}
}

// Number adds a number in package decimal's encoding, which must be finite.
func (b *JSONBuilder) Number(enc []byte) { b.leaf(JSONKindNumber, enc) }

// String adds a string.
func (b *JSONBuilder) String(s []byte) { b.leaf(JSONKindString, s) }

func (b *JSONBuilder) leaf(k JSONKind, content []byte) {
	b.value()
	b.data = append(append(b.data, byte(k)), content...)
	b.done()
}

// Doc adds a value that is ready.
func (b *JSONBuilder) Doc(j JSONDoc) {
	b.value()
	b.data = append(b.data, j...)
	b.done()
}

// Begin opens an array or object.
func (b *JSONBuilder) Begin(object bool) {
	b.value()
	b.stack = append(b.stack, jsonFrame{len(b.data), len(b.keys), len(b.members), object})
}

// Key gives the key of the next value of the open object. Of equal keys the
// last one counts.
func (b *JSONBuilder) Key(k []byte) {
	from := len(b.keys)
	b.keys = append(b.keys, k...)
	b.members = append(b.members, jsonMember{keyFrom: from, keyTo: len(b.keys)})
}

// End closes the open array or object.
func (b *JSONBuilder) End() {
	f := b.stack[len(b.stack)-1]
	m := b.members[f.first:]
	if f.object {
		m = b.sortMembers(m)
		b.endObject(f, m)
	} else {
		b.endArray(f, m)
	}
	b.stack = b.stack[:len(b.stack)-1]
	b.members = b.members[:f.first]
	b.keys = b.keys[:f.keys]
	b.done()
}

// sortMembers orders members by key and drops all but the last of equal keys.
func (b *JSONBuilder) sortMembers(m []jsonMember) []jsonMember {
	key := func(x jsonMember) []byte { return b.keys[x.keyFrom:x.keyTo] }
	sorted := true
	for i := 1; i < len(m) && sorted; i++ {
		sorted = cmpKey(key(m[i-1]), key(m[i])) < 0
	}
	if sorted {
		return m
	}
	slices.SortStableFunc(m, func(x, y jsonMember) int { return cmpKey(key(x), key(y)) })
	w := 0
	for i := range m {
		if w > 0 && bytes.Equal(key(m[w-1]), key(m[i])) {
			w--
		}
		m[w] = m[i]
		w++
	}
	return m[:w]
}

// widthCode is the smallest that serves for numbers up to n.
func widthCode(n int) byte {
	switch {
	case n < 1<<8:
		return 0
	case n < 1<<16:
		return 1
	}
	return 2
}

func appendNum(dst []byte, code byte, n int) []byte {
	switch code {
	case 0:
		return append(dst, byte(n))
	case 1:
		return binary.LittleEndian.AppendUint16(dst, uint16(n))
	}
	return binary.LittleEndian.AppendUint32(dst, uint32(n))
}

func (b *JSONBuilder) endArray(f jsonFrame, m []jsonMember) {
	code := widthCode(max(len(m), len(b.data)-f.start))
	h := append(b.scratch[:0], byte(JSONKindArray)|code<<4)
	h = appendNum(h, code, len(m))
	for _, x := range m {
		h = appendNum(h, code, x.to-f.start)
	}
	b.scratch = h
	b.data = slices.Insert(b.data, f.start, h...)
}

func (b *JSONBuilder) endObject(f jsonFrame, m []jsonMember) {
	nk, nv := 0, 0
	for _, x := range m {
		nk += x.keyTo - x.keyFrom
		nv += x.to - x.from
	}
	code := widthCode(max(len(m), nk, nv))
	h := append(b.scratch[:0], byte(JSONKindObject)|code<<4)
	h = appendNum(h, code, len(m))
	n := 0
	for _, x := range m {
		n += x.keyTo - x.keyFrom
		h = appendNum(h, code, n)
	}
	n = 0
	for _, x := range m {
		n += x.to - x.from
		h = appendNum(h, code, n)
	}
	for _, x := range m {
		h = append(h, b.keys[x.keyFrom:x.keyTo]...)
	}
	for _, x := range m {
		h = append(h, b.data[x.from:x.to]...)
	}
	b.scratch = h
	b.data = append(b.data[:f.start], h...)
}

// Append appends the value to dst and makes b empty.
func (b *JSONBuilder) Append(dst []byte) []byte {
	dst = append(dst, b.data...)
	b.Reset()
	return dst
}

// Reset makes b empty.
func (b *JSONBuilder) Reset() {
	b.data, b.keys, b.stack, b.members = b.data[:0], b.keys[:0], b.stack[:0], b.members[:0]
}

// jsonbReader builds a jsonb from a JSON text.
type jsonbReader struct {
	JSONBuilder
	lex JSONLexer
	num []byte
}

func (r *jsonbReader) Open(object bool) error { r.Begin(object); return nil }
func (r *jsonbReader) Close(bool) error       { r.End(); return nil }
func (r *jsonbReader) Key(k []byte) error     { r.JSONBuilder.Key(k); return nil }

func (r *jsonbReader) Scalar(l *JSONLexer) (err error) {
	switch l.Tok {
	case JSONString:
		r.String(l.Str)
	case JSONNumber:
		if r.num, err = decimal.Parse(r.num[:0], l.Text()); err != nil {
			return err
		}
		r.Number(r.num)
	case JSONTrue, JSONFalse:
		r.Bool(l.Tok == JSONTrue)
	default:
		r.Null()
	}
	return nil
}

var jsonbReaders = sync.Pool{New: func() any { return new(jsonbReader) }}

// ParseJSONB appends the binary form of the JSON text s.
func ParseJSONB(dst []byte, s string) ([]byte, error) {
	if err := CheckUTF8(s); err != nil {
		return dst, err
	}
	r := jsonbReaders.Get().(*jsonbReader)
	r.Reset()
	r.lex = JSONLexer{S: s, Decode: true, Str: r.lex.Str}
	err := ParseJSON(&r.lex, r)
	if err == nil {
		dst = r.Append(dst)
	}
	r.lex.S = ""
	jsonbReaders.Put(r)
	return dst, err
}
