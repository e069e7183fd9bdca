package pgwire

import (
	"encoding/binary"
	"io"
	"strconv"

	"github.com/streamdb/streamdb/sql/pgerror"
)

const (
	writeBufferSize = 8 << 10
	flushSize       = 64 << 10 // results are written in pieces of about this size
)

// Authentication request codes.
const (
	authOK           = 0
	authCleartext    = 3
	authSASL         = 10
	authSASLContinue = 11
	authSASLFinal    = 12
)

// writer collects messages in one buffer and writes it in one piece.
type writer struct {
	dst io.Writer
	buf []byte
	err error // the first failed write; all later output is dropped
}

func newWriter(dst io.Writer) writer {
	return writer{dst: dst, buf: make([]byte, 0, writeBufferSize)}
}

func (w *writer) flush() error {
	if w.err != nil {
		w.buf = w.buf[:0]
		return w.err
	}
	if len(w.buf) == 0 {
		return nil
	}
	_, w.err = w.dst.Write(w.buf)
	if cap(w.buf) > 4*flushSize {
		w.buf = make([]byte, 0, writeBufferSize)
	}
	w.buf = w.buf[:0]
	return w.err
}

// flushIfFull bounds the buffer while a result is sent.
func (w *writer) flushIfFull() error {
	if len(w.buf) < flushSize {
		return w.err
	}
	return w.flush()
}

// begin starts a message; end fills in its length.
func (w *writer) begin(typ byte) int {
	w.buf = append(w.buf, typ, 0, 0, 0, 0)
	return len(w.buf) - 4
}

func (w *writer) end(at int) {
	binary.BigEndian.PutUint32(w.buf[at:], uint32(len(w.buf)-at))
}

func (w *writer) empty(typ byte)   { w.buf = append(w.buf, typ, 0, 0, 0, 4) }
func (w *writer) u16(x uint16)     { w.buf = binary.BigEndian.AppendUint16(w.buf, x) }
func (w *writer) u32(x uint32)     { w.buf = binary.BigEndian.AppendUint32(w.buf, x) }
func (w *writer) cstring(s string) { w.buf = append(append(w.buf, s...), 0) }

func (w *writer) auth(code uint32, data []byte) {
	at := w.begin('R')
	w.u32(code)
	w.buf = append(w.buf, data...)
	w.end(at)
}

func (w *writer) parameterStatus(name, value string) {
	at := w.begin('S')
	w.cstring(name)
	w.cstring(value)
	w.end(at)
}

func (w *writer) keyData(pid, secret uint32) {
	at := w.begin('K')
	w.u32(pid)
	w.u32(secret)
	w.end(at)
}

func (w *writer) readyForQuery(status byte) {
	w.buf = append(w.buf, 'Z', 0, 0, 0, 5, status)
}

func (w *writer) commandComplete(tag string) {
	at := w.begin('C')
	w.cstring(tag)
	w.end(at)
}

func (w *writer) negotiate(minor uint32, unknown []string) {
	at := w.begin('v')
	w.u32(minor)
	w.u32(uint32(len(unknown)))
	for _, s := range unknown {
		w.cstring(s)
	}
	w.end(at)
}

// report writes an ErrorResponse ('E') or a NoticeResponse ('N').
func (w *writer) report(typ byte, e *pgerror.Error) {
	severity := e.Severity
	if severity == "" {
		severity = "ERROR"
		if typ == 'N' {
			severity = "NOTICE"
		}
	}
	code := e.Code
	if code == "" {
		code = pgerror.InternalError
		if typ == 'N' {
			code = pgerror.SuccessfulCompletion
		}
	}
	at := w.begin(typ)
	w.field('S', severity)
	w.field('V', severity)
	w.field('C', code)
	w.buf = append(w.buf, 'M') // required, even if empty
	w.cstring(clean(e.Message))
	w.field('D', e.Detail)
	w.field('H', e.Hint)
	if e.Pos > 0 {
		w.buf = append(w.buf, 'P')
		w.buf = append(strconv.AppendInt(w.buf, int64(e.Pos), 10), 0)
	}
	w.field('W', e.Where)
	w.field('s', e.Schema)
	w.field('t', e.Table)
	w.field('c', e.Column)
	w.field('d', e.DataType)
	w.field('n', e.Constraint)
	w.buf = append(w.buf, 0)
	w.end(at)
}

func (w *writer) field(code byte, s string) {
	if s != "" {
		w.buf = append(w.buf, code)
		w.cstring(clean(s))
	}
}

// clean cuts a text at a zero byte, which would end the field early.
func clean(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] == 0 {
			return s[:i]
		}
	}
	return s
}

func (w *writer) copyResponse(typ byte, binaryFormat bool, columns int) {
	format := uint16(0)
	if binaryFormat {
		format = 1
	}
	at := w.begin(typ)
	w.buf = append(w.buf, byte(format))
	w.u16(uint16(columns))
	for range columns {
		w.u16(format)
	}
	w.end(at)
}
