package pgwire

import (
	"encoding/binary"
	"io"
)

const (
	readBufferSize  = 8 << 10
	keepBufferSize  = 64 << 10 // larger buffers are given back once empty
	smallMessageMax = 10_000   // of messages that carry names and numbers only
)

// reader cuts a byte stream into messages. A body is valid until the next call.
// The stream is not trusted: a length is checked against the limit of its
// message type, and memory grows with the bytes that came, not with a length
// that was claimed.
type reader struct {
	src        io.Reader
	buf        []byte
	pos, end   int
	full       bool // the last read filled the buffer
	maxMessage int
}

func newReader(src io.Reader, maxMessage int) reader {
	return reader{src: src, buf: make([]byte, readBufferSize), maxMessage: maxMessage}
}

// buffered is the number of bytes read ahead.
func (r *reader) buffered() int { return r.end - r.pos }

// message reads the next message. io.EOF: the stream ended between messages.
func (r *reader) message() (typ byte, body []byte, err error) {
	if err := r.need(1); err != nil {
		return 0, nil, err
	}
	typ = r.buf[r.pos]
	limit := r.limit(typ)
	if limit == 0 {
		return 0, nil, fatalProtocol("invalid frontend message type %d", typ)
	}
	if err := r.need(5); err != nil {
		return 0, nil, midMessage(err)
	}
	n := int64(binary.BigEndian.Uint32(r.buf[r.pos+1:])) - 4
	if n < 0 || n > int64(limit) {
		return 0, nil, fatalProtocol("invalid message length")
	}
	if err := r.need(5 + int(n)); err != nil {
		return 0, nil, midMessage(err)
	}
	at := r.pos + 5
	r.pos = at + int(n)
	return typ, r.buf[at:r.pos:r.pos], nil
}

// limit is the longest body that a message type may have, 0 for types that a
// client does not send.
func (r *reader) limit(typ byte) int {
	switch typ {
	case 'Q', 'P', 'B', 'F', 'd':
		return r.maxMessage
	case 'C', 'D', 'E', 'H', 'S', 'X', 'c', 'f', 'p':
		return min(smallMessageMax, r.maxMessage)
	}
	return 0
}

// startup reads a message without a type: a length and a body of at least a
// code. It reads nothing past it when the client waits for the answer, as it must.
func (r *reader) startup() ([]byte, error) {
	if err := r.need(4); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(r.buf[r.pos:])) - 4
	if n < 4 || n > smallMessageMax {
		return nil, fatalProtocol("invalid length of startup packet")
	}
	if err := r.need(4 + int(n)); err != nil {
		return nil, midMessage(err)
	}
	at := r.pos + 4
	r.pos = at + int(n)
	return r.buf[at:r.pos:r.pos], nil
}

// need makes n bytes available from pos on.
func (r *reader) need(n int) error {
	for r.end-r.pos < n {
		if err := r.fill(n); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) fill(n int) error {
	if r.pos == r.end {
		r.pos, r.end = 0, 0
		switch {
		case len(r.buf) > keepBufferSize:
			r.buf = make([]byte, readBufferSize)
		case r.full && len(r.buf) < keepBufferSize:
			r.buf = make([]byte, keepBufferSize) // a bulk sender
		}
	}
	if r.pos > 0 && r.pos+n > len(r.buf) {
		r.end = copy(r.buf, r.buf[r.pos:r.end])
		r.pos = 0
	}
	if r.end == len(r.buf) {
		bigger := make([]byte, min(2*len(r.buf), n)) // n > len(r.buf) here
		copy(bigger, r.buf[:r.end])
		r.buf = bigger
	}
	m, err := r.src.Read(r.buf[r.end:])
	r.end += m
	r.full = r.end == len(r.buf)
	if m > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// midMessage turns an end of the stream inside a message into an error.
func midMessage(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// fields reads the fields of a message body. A body too short sets bad, and
// every further read gives zero values.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) take(n int) []byte {
	if n < 0 || len(f.b) < n {
		f.bad, f.b = true, nil
		return nil
	}
	x := f.b[:n:n]
	f.b = f.b[n:]
	return x
}

func (f *fields) uint8() byte {
	if x := f.take(1); x != nil {
		return x[0]
	}
	return 0
}

func (f *fields) uint16() uint16 {
	if x := f.take(2); x != nil {
		return binary.BigEndian.Uint16(x)
	}
	return 0
}

func (f *fields) uint32() uint32 {
	if x := f.take(4); x != nil {
		return binary.BigEndian.Uint32(x)
	}
	return 0
}

// cstring reads up to the next zero byte.
func (f *fields) cstring() []byte {
	for i, x := range f.b {
		if x == 0 {
			s := f.b[:i]
			f.b = f.b[i+1:]
			return s
		}
	}
	f.bad, f.b = true, nil
	return nil
}

// end reports whether the body was read to its end and not past it.
func (f *fields) end() bool { return !f.bad && len(f.b) == 0 }
