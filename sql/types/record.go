package types

import (
	"encoding/binary"

	"github.com/streamdb/streamdb/columnar"
)

// The form of a record (all numbers little-endian):
//
//	n       2 bytes, number of fields | recordNames
//	fields  n × (type OID uint32, end offset uint32; recordNull set for NULL)
//	values  the fields one after another, as arrays store elements
//	names   if recordNames is set: n × (length uint16, bytes)
//
// Names are what json calls the fields. They play no part in comparisons, and
// the normal form has none.

const (
	recordNull  = 1 << 31
	recordNames = 1 << 15
)

// RecordBuilder makes records field by field. It can be used again after Append.
type RecordBuilder struct {
	// Names, if not nil, are the names of the fields of all records made.
	Names      []string
	head, data []byte
	n          int
}

// Field adds value row of v, which has type t and may be NULL.
func (r *RecordBuilder) Field(t Type, v *columnar.Vec, row int) {
	if v.Null(row) {
		r.null(t)
		return
	}
	r.field(t, at(v, row))
}

func (r *RecordBuilder) null(t Type) {
	r.n++
	r.head = binary.LittleEndian.AppendUint32(r.head, uint32(t.OID))
	r.head = binary.LittleEndian.AppendUint32(r.head, uint32(len(r.data))|recordNull)
}

func (r *RecordBuilder) field(t Type, d datum) {
	r.n++
	r.head = binary.LittleEndian.AppendUint32(r.head, uint32(t.OID))
	r.data = d.appendRaw(r.data, t.Kind())
	r.head = binary.LittleEndian.AppendUint32(r.head, uint32(len(r.data)))
}

// Append appends the record to dst and makes r empty.
func (r *RecordBuilder) Append(dst []byte) []byte {
	n := uint16(r.n)
	if r.Names != nil {
		n |= recordNames
	}
	dst = binary.LittleEndian.AppendUint16(dst, n)
	dst = append(dst, r.head...)
	dst = append(dst, r.data...)
	for _, s := range r.Names {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(s)))
		dst = append(dst, s...)
	}
	r.n, r.head, r.data = 0, r.head[:0], r.data[:0]
	return dst
}

// RecordReader reads the form of a record, whose memory it shares.
type RecordReader struct {
	N     int // number of fields
	head  []byte
	data  []byte
	named bool
}

// ReadRecord takes the form of a record apart.
func ReadRecord(b []byte) RecordReader {
	h := binary.LittleEndian.Uint16(b)
	n := int(h &^ recordNames)
	return RecordReader{N: n, head: b[2 : 2+8*n], data: b[2+8*n:], named: h&recordNames != 0}
}

// Names are the names of the fields, nil if they have none.
func (r *RecordReader) Names() []string {
	if !r.named {
		return nil
	}
	end := uint32(0)
	if r.N > 0 {
		end = binary.LittleEndian.Uint32(r.head[8*r.N-4:]) &^ recordNull
	}
	names := make([]string, r.N)
	b := r.data[end:]
	for i := range names {
		l := int(binary.LittleEndian.Uint16(b))
		names[i] = string(b[2 : 2+l])
		b = b[2+l:]
	}
	return names
}

// Type is the type of field i, without modifier.
func (r *RecordReader) Type(i int) Type {
	return Of(OID(binary.LittleEndian.Uint32(r.head[8*i:])))
}

// Null reports whether field i is NULL.
func (r *RecordReader) Null(i int) bool {
	return binary.LittleEndian.Uint32(r.head[8*i+4:])&recordNull != 0
}

func (r *RecordReader) datum(i int) datum {
	from := uint32(0)
	if i > 0 {
		from = binary.LittleEndian.Uint32(r.head[8*i-4:]) &^ recordNull
	}
	to := binary.LittleEndian.Uint32(r.head[8*i+4:]) &^ recordNull
	return rawDatum(r.Type(i).Kind(), r.data[from:to:to])
}

// AppendField appends field i to b, a builder of the field's kind.
func (r *RecordReader) AppendField(b *columnar.Builder, i int) {
	if r.Null(i) {
		b.Null()
		return
	}
	r.datum(i).appendTo(b)
}

func appendRecordText(dst, b []byte, o *Options) []byte {
	r := ReadRecord(b)
	dst = append(dst, '(')
	for i := range r.N {
		if i > 0 {
			dst = append(dst, ',')
		}
		if !r.Null(i) {
			l := len(dst)
			dst = quoteRecordField(appendText(dst, r.Type(i), r.datum(i), o), l)
		}
	}
	return append(dst, ')')
}

func quoteRecordField(dst []byte, from int) []byte {
	need := len(dst) == from
	escapes := 0
	for _, c := range dst[from:] {
		switch {
		case c == '"' || c == '\\':
			escapes++
		case c == '(' || c == ')' || c == ',' || isSpace(c):
			need = true
		}
	}
	if escapes == 0 && !need {
		return dst
	}
	return quoteBackslash(dst, from, escapes, 0)
}

func appendRecordBinary(dst, b []byte) []byte {
	r := ReadRecord(b)
	dst = binary.BigEndian.AppendUint32(dst, uint32(r.N))
	for i := range r.N {
		dst = binary.BigEndian.AppendUint32(dst, uint32(r.Type(i).OID))
		if r.Null(i) {
			dst = append(dst, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		dst = appendSized(dst, r.Type(i), r.datum(i))
	}
	return dst
}
