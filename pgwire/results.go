package pgwire

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// results is the ResultWriter of a connection; it is reused for all its calls.
type results struct {
	c         *conn
	simple    bool
	completed bool
	formats   []uint16
	cols      []encoder
	options   *types.Options // of text forms
	copyIn    *copyReader
	copyOut   copyWriter
}

// encoder is how the values of one result column are written.
type encoder struct {
	code encoding
	typ  types.Type
}

// encoding names the ways that have their own code; the rest goes through
// package types.
type encoding uint8

const (
	encText encoding = iota
	encBinary
	encRaw // the bytes of the vector are the text or binary form
	encTextBool
	encTextInt16
	encTextInt32
	encTextInt64
	encBinBool
	encBinInt16
	encBinInt32
	encBinInt64
	encBinFloat32
	encBinFloat64
	encBinOid
)

// start prepares for a call.
func (r *results) start(simple bool, formats []uint16) {
	r.simple, r.completed, r.formats = simple, false, formats
	r.copyIn = nil
}

func checkFormats(formats []uint16, columns int) error {
	if len(formats) > 1 && len(formats) != columns {
		return protocolViolation("bind message has %d result formats but query has %d columns", len(formats), columns)
	}
	return nil
}

func formatOf(formats []uint16, i int) uint16 {
	switch len(formats) {
	case 0:
		return 0
	case 1:
		return formats[0]
	}
	return formats[i]
}

func encodingOf(t types.Type, format uint16) encoding {
	switch t.OID {
	case types.OIDText, types.OIDVarchar, types.OIDBPChar, types.OIDName, types.OIDUnknown, types.OIDJSON:
		return encRaw
	}
	if format == 1 {
		switch t.OID {
		case types.OIDBool:
			return encBinBool
		case types.OIDInt2:
			return encBinInt16
		case types.OIDInt4, types.OIDDate:
			return encBinInt32
		case types.OIDInt8, types.OIDTime, types.OIDTimestamp, types.OIDTimestampTZ:
			return encBinInt64
		case types.OIDFloat4:
			return encBinFloat32
		case types.OIDFloat8:
			return encBinFloat64
		case types.OIDOid:
			return encBinOid
		case types.OIDBytea:
			return encRaw
		}
		return encBinary
	}
	switch t.OID {
	case types.OIDBool:
		return encTextBool
	case types.OIDInt2:
		return encTextInt16
	case types.OIDInt4:
		return encTextInt32
	case types.OIDInt8, types.OIDOid:
		return encTextInt64
	}
	return encText
}

// Begin implements ResultWriter.
func (r *results) Begin(cols []Column) error {
	if r.c.w.err != nil {
		return r.c.w.err
	}
	if len(cols) > math.MaxInt16 {
		return pgerror.New(pgerror.TooManyColumns, "target lists can have at most %d entries", 1664)
	}
	if err := checkFormats(r.formats, len(cols)); err != nil {
		return err
	}
	r.completed = false
	r.cols = r.cols[:0]
	for i := range cols {
		r.cols = append(r.cols, encoder{encodingOf(cols[i].Type, formatOf(r.formats, i)), cols[i].Type})
	}
	if r.c.formatter != nil {
		r.options = r.c.formatter.TextOptions()
	}
	if r.simple {
		r.c.w.rowDescription(cols, nil)
	}
	return nil
}

// rowDescription writes the columns; attribute sizes and modifiers are those
// of the types.
func (w *writer) rowDescription(cols []Column, formats []uint16) {
	at := w.begin('T')
	w.u16(uint16(len(cols)))
	for i := range cols {
		col := &cols[i]
		w.cstring(clean(col.Name))
		w.u32(col.TableOID)
		w.u16(uint16(col.AttrNum))
		w.u32(uint32(col.Type.OID))
		w.u16(uint16(typeSize(col.Type.OID)))
		w.u32(uint32(col.Type.Mod))
		w.u16(formatOf(formats, i))
	}
	w.end(at)
}

// typeSize is pg_type.typlen: negative for types of varying length.
func typeSize(o types.OID) int16 {
	if t := types.Lookup(o); t != nil {
		return t.Len
	}
	return -1
}

var errColumns = errors.New("pgwire: a batch does not have the announced columns")

// maxRow bounds a DataRow, whose length is a signed 32-bit number.
const maxRow = 1 << 30

// Rows implements ResultWriter.
func (r *results) Rows(b *columnar.Batch, from, to int) error {
	if len(b.Cols) != len(r.cols) {
		return errColumns
	}
	w := &r.c.w
	for row := from; row < to; row++ {
		at := w.begin('D')
		w.u16(uint16(len(r.cols)))
		buf := w.buf
		for j := range r.cols {
			v := b.Cols[j]
			if v.Null(row) {
				buf = append(buf, 0xff, 0xff, 0xff, 0xff)
				continue
			}
			buf = r.cols[j].append(buf, v, row, r.options)
		}
		w.buf = buf
		if len(buf)-at > maxRow {
			w.buf = buf[:at-1]
			return pgerror.New(pgerror.ProgramLimitExceeded, "row is too large to be sent: %d bytes", len(buf)-at)
		}
		w.end(at)
		if len(buf) >= flushSize {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return w.err
}

// append writes one value that is not NULL with its length before it.
func (e *encoder) append(buf []byte, v *columnar.Vec, i int, o *types.Options) []byte {
	switch e.code {
	case encRaw:
		x := v.Bytes(i)
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(x)))
		return append(buf, x...)
	case encBinBool:
		return append(buf, 0, 0, 0, 1, bit(v.Bools()[i]))
	case encBinInt16:
		return binary.BigEndian.AppendUint16(append(buf, 0, 0, 0, 2), uint16(v.Int16s()[i]))
	case encBinInt32:
		return binary.BigEndian.AppendUint32(append(buf, 0, 0, 0, 4), uint32(v.Int32s()[i]))
	case encBinInt64:
		return binary.BigEndian.AppendUint64(append(buf, 0, 0, 0, 8), uint64(v.Int64s()[i]))
	case encBinFloat32:
		return binary.BigEndian.AppendUint32(append(buf, 0, 0, 0, 4), math.Float32bits(v.Float32s()[i]))
	case encBinFloat64:
		return binary.BigEndian.AppendUint64(append(buf, 0, 0, 0, 8), math.Float64bits(v.Float64s()[i]))
	case encBinOid:
		return binary.BigEndian.AppendUint32(append(buf, 0, 0, 0, 4), uint32(v.Int64s()[i]))
	}
	at := len(buf)
	buf = append(buf, 0, 0, 0, 0)
	switch e.code {
	case encTextBool:
		if v.Bools()[i] {
			buf = append(buf, 't')
		} else {
			buf = append(buf, 'f')
		}
	case encTextInt16:
		buf = strconv.AppendInt(buf, int64(v.Int16s()[i]), 10)
	case encTextInt32:
		buf = strconv.AppendInt(buf, int64(v.Int32s()[i]), 10)
	case encTextInt64:
		buf = strconv.AppendInt(buf, v.Int64s()[i], 10)
	case encBinary:
		buf = types.AppendBinary(buf, e.typ, v, i)
	default:
		buf = types.AppendText(buf, e.typ, v, i, o)
	}
	binary.BigEndian.PutUint32(buf[at:], uint32(len(buf)-at-4))
	return buf
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// Complete implements ResultWriter.
func (r *results) Complete(tag string) error {
	r.completed = true
	if tag == "" {
		r.c.w.empty('I')
	} else {
		r.c.w.commandComplete(tag)
	}
	return r.c.w.flushIfFull()
}

// presented is an error or notice as the session shows it.
func (c *conn) presented(e *pgerror.Error) *pgerror.Error {
	if p, ok := c.session.(Presenter); ok {
		return p.Present(e)
	}
	return e
}

// Notice implements ResultWriter.
func (r *results) Notice(e *pgerror.Error) {
	if f, ok := r.c.session.(NoticeFilter); ok && !f.WantsNotice(e.Severity) {
		return
	}
	r.c.w.report('N', r.c.presented(e))
}

// ParameterStatus implements ResultWriter.
func (r *results) ParameterStatus(name, value string) {
	r.c.changed = append(r.c.changed, [2]string{name, value})
}

// Flush implements ResultWriter.
func (r *results) Flush() error { return r.c.w.flush() }

// CopyIn implements ResultWriter.
func (r *results) CopyIn(binaryFormat bool, columns int) (io.Reader, error) {
	if r.copyIn != nil && r.copyIn.err == nil {
		return nil, errors.New("pgwire: a COPY from the client is not over yet")
	}
	r.c.w.copyResponse('G', binaryFormat, columns)
	if err := r.c.w.flush(); err != nil {
		return nil, err
	}
	r.copyIn = &copyReader{c: r.c}
	r.c.inCopy.Store(true)
	return r.copyIn, nil
}

// CopyOut implements ResultWriter.
func (r *results) CopyOut(binaryFormat bool, columns int) (CopyOutWriter, error) {
	r.c.w.copyResponse('H', binaryFormat, columns)
	r.copyOut = copyWriter{w: &r.c.w}
	return &r.copyOut, r.c.w.flushIfFull()
}
