package pgwire

import (
	"io"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// copyReader gives the bytes of the CopyData messages of one COPY.
type copyReader struct {
	c    *conn
	rest []byte // of the current message, in the connection's read buffer
	err  error  // once it has ended: io.EOF, or why
}

// Read implements io.Reader.
func (r *copyReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.rest, r.err = r.next()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// WriteTo implements io.WriterTo: each message is written as it came, without
// a copy.
func (r *copyReader) WriteTo(w io.Writer) (total int64, err error) {
	for {
		if len(r.rest) > 0 {
			n, err := w.Write(r.rest)
			r.rest = r.rest[n:]
			if total += int64(n); err != nil {
				return total, err
			}
		}
		if r.err == nil {
			r.rest, r.err = r.next()
		}
		if len(r.rest) == 0 && r.err != nil {
			if r.err == io.EOF {
				return total, nil
			}
			return total, r.err
		}
	}
}

// next reads the next piece of data.
func (r *copyReader) next() ([]byte, error) {
	typ, body, err := r.c.r.message()
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil, fatal(pgerror.ConnectionFailure, "unexpected EOF on client connection with an open transaction")
	}
	if err != nil {
		return nil, err
	}
	switch typ {
	case 'd':
		return body, nil
	case 'c':
		return nil, io.EOF
	case 'f':
		f := fields{b: body}
		return nil, pgerror.New(pgerror.QueryCanceled, "COPY from stdin failed: %s", f.cstring())
	case 'H', 'S':
		// clients send these with a statement before they know that it is a COPY
		return nil, nil
	case 'X':
		return nil, fatal(pgerror.ConnectionFailure, "unexpected EOF on client connection with an open transaction")
	}
	return nil, protocolViolation("unexpected message type 0x%02X during COPY from stdin", typ)
}

// copyWriter sends each Write as one CopyData message.
type copyWriter struct {
	w      *writer
	closed bool
}

// Write implements io.Writer.
func (c *copyWriter) Write(p []byte) (int, error) {
	if len(p) > maxRow {
		return 0, pgerror.New(pgerror.ProgramLimitExceeded, "row is too large to be sent: %d bytes", len(p))
	}
	at := c.w.begin('d')
	c.w.buf = append(c.w.buf, p...)
	c.w.end(at)
	if err := c.w.flushIfFull(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush implements CopyOutWriter.
func (c *copyWriter) Flush() error { return c.w.flush() }

// Close implements io.Closer.
func (c *copyWriter) Close() error {
	if !c.closed {
		c.closed = true
		c.w.empty('c')
	}
	return c.w.flushIfFull()
}
