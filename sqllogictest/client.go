package sqllogictest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// client is one session. It speaks the query protocols itself, so that it can
// send many queries ahead of their answers (each is a message of its own, and
// the server runs them in turn), and read answers without garbage.
type client struct {
	nc      net.Conn
	pc      *pgconn.PgConn // for cancel requests only
	version string

	out     []byte // not yet sent
	in      []byte
	pos     int
	end     int
	broken  bool
	started time.Time // of the statement whose answer is awaited
}

// cell is a value in a result's data; at < 0 is NULL.
type cell struct{ at, end int }

// result is the answer to one record. Its buffers are reused.
type result struct {
	// The first result set with columns.
	oids  []uint32
	cells []cell
	data  []byte
	rows  int
	has   bool // there is one
	// The first statement's: its rows, or the number in its tag.
	affected   int
	statements int
	err        *serverError
}

func (r *result) reset() {
	r.oids, r.cells, r.data = r.oids[:0], r.cells[:0], r.data[:0]
	r.rows, r.has, r.affected, r.statements, r.err = 0, false, -1, 0, nil
}

// value is column c of row i; null tells NULL from the empty string.
func (r *result) value(i, c int) (v []byte, null bool) {
	x := r.cells[i*len(r.oids)+c]
	if x.at < 0 {
		return nil, true
	}
	return r.data[x.at:x.end], false
}

// serverError is an ErrorResponse.
type serverError struct {
	severity, code, message, detail, hint string
}

func (e *serverError) Error() string {
	return e.severity + ": " + e.message + " (" + e.code + ")"
}

// text is what sqllogictest-rs compares with, its driver's prefix included.
func (e *serverError) text() string {
	s := "db error: " + e.severity + ": " + e.message
	if e.detail != "" {
		s += "\nDETAIL: " + e.detail
	}
	if e.hint != "" {
		s += "\nHINT: " + e.hint
	}
	return s
}

var (
	errTimeout  = errors.New("timeout")
	errConnLost = errors.New("connection lost")
)

func lost(err error) error { return fmt.Errorf("%w: %w", errConnLost, err) }

func dial(ctx context.Context, dsn string) (*client, error) {
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "sqllogictest"
	}
	cfg.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, nc net.Conn) (net.Conn, error) {
		return &handover{Conn: nc}, nil
	}
	pc, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	h, err := pc.Hijack()
	if err != nil {
		return nil, err
	}
	if c, ok := h.Conn.(*handover); ok {
		if h.Conn, err = c.take(); err != nil {
			return nil, err
		}
	}
	c := &client{nc: h.Conn, version: h.ParameterStatuses["server_version"], in: make([]byte, 64<<10)}
	if c.pc, err = pgconn.Construct(h); err != nil {
		h.Conn.Close()
		return nil, err
	}
	return c, nil
}

// handover is the connection of a driver that is given up when the session has
// begun. The driver reads in the background while a write of it takes long, and
// does not end that when it is given up: what it read then would be lost.
type handover struct {
	net.Conn
	mu    sync.Mutex // held while it is read
	taken bool
}

func (h *handover) Read(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.taken {
		return 0, net.ErrClosed
	}
	return h.Conn.Read(b)
}

// take ends all reading through h and gives the connection itself.
func (h *handover) take() (net.Conn, error) {
	err := h.SetReadDeadline(time.Unix(1, 0))
	h.mu.Lock()
	h.taken = true
	h.mu.Unlock()
	return h.Conn, errors.Join(err, h.SetReadDeadline(time.Time{}))
}

func (c *client) close() {
	if !c.broken {
		_ = c.nc.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = c.nc.Write([]byte{'X', 0, 0, 0, 4})
	}
	c.broken = true
	c.nc.Close()
}

// queue puts a query into the output buffer.
func (c *client) queue(sql string, extended bool) {
	if !extended {
		c.message('Q', sql, "\x00")
		return
	}
	c.message('P', "\x00", sql, "\x00\x00\x00")        // unnamed, no types
	c.message('B', "\x00\x00\x00\x00\x00\x00\x00\x00") // no parameters, text results
	c.message('D', "P\x00")
	c.message('E', "\x00\x00\x00\x00\x00")
	c.message('S')
}

func (c *client) message(typ byte, parts ...string) {
	n := 4
	for _, p := range parts {
		n += len(p)
	}
	c.out = binary.BigEndian.AppendUint32(append(c.out, typ), uint32(n))
	for _, p := range parts {
		c.out = append(c.out, p...)
	}
}

func (c *client) flush() error {
	if c.broken {
		return lost(net.ErrClosed)
	}
	if len(c.out) == 0 {
		return nil
	}
	_ = c.nc.SetWriteDeadline(time.Now().Add(30 * time.Second))
	_, err := c.nc.Write(c.out)
	c.out = c.out[:0]
	if err != nil {
		c.close()
		return lost(err)
	}
	return nil
}

// receive reads the answer to the query sent longest ago. A statement that
// takes longer than timeout is cancelled: errTimeout. errConnLost: the session
// is over.
func (c *client) receive(r *result, timeout time.Duration) error {
	c.started = time.Now()
	r.reset()
	err := c.answer(r, c.started.Add(timeout))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		_ = c.pc.CancelRequest(ctx)
		cancel()
		if c.answer(r, time.Now().Add(5*time.Second)) != nil {
			c.broken = true
			c.nc.Close()
		}
		return errTimeout
	}
	if err != nil {
		c.broken = true
		c.nc.Close()
		return lost(err)
	}
	return nil
}

func (c *client) answer(r *result, deadline time.Time) error {
	collecting := false // rows belong to the result that is kept
	for {
		typ, body, err := c.next(deadline)
		if err != nil {
			return err
		}
		switch typ {
		case 'D':
			if r.statements == 0 {
				r.affected = max(r.affected, 0) + 1
			}
			if collecting {
				if err := r.row(body); err != nil {
					return err
				}
			}
		case 'T':
			collecting = false
			if !r.has {
				r.has, collecting = true, true
				if err := r.columns(body); err != nil {
					return err
				}
			}
		case 'C':
			if r.statements == 0 && r.affected < 0 {
				r.affected = tagCount(body)
			}
			r.statements++
			collecting = false
		case 'I':
			r.statements++
			collecting = false
		case 'E':
			e := readError(body)
			if r.err == nil {
				r.err = e
			}
			if e.severity == "FATAL" || e.severity == "PANIC" {
				return e
			}
		case 'G': // COPY FROM STDIN: there is nothing to give
			c.message('f', "no copy data\x00")
			if err := c.flush(); err != nil {
				return err
			}
		case 'Z':
			return nil
		}
	}
}

var errMalformed = errors.New("malformed message")

func (r *result) columns(b []byte) error {
	if len(b) < 2 {
		return errMalformed
	}
	n := int(binary.BigEndian.Uint16(b))
	b = b[2:]
	for range n {
		i := 0
		for i < len(b) && b[i] != 0 {
			i++
		}
		if len(b) < i+19 {
			return errMalformed
		}
		r.oids = append(r.oids, binary.BigEndian.Uint32(b[i+7:]))
		b = b[i+19:]
	}
	return nil
}

func (r *result) row(b []byte) error {
	if len(b) < 2 || int(binary.BigEndian.Uint16(b)) != len(r.oids) {
		return errMalformed
	}
	b = b[2:]
	for range r.oids {
		if len(b) < 4 {
			return errMalformed
		}
		n := int(int32(binary.BigEndian.Uint32(b)))
		if b = b[4:]; n < 0 {
			r.cells = append(r.cells, cell{at: -1})
			continue
		}
		if n > len(b) {
			return errMalformed
		}
		r.cells = append(r.cells, cell{len(r.data), len(r.data) + n})
		r.data = append(r.data, b[:n]...)
		b = b[n:]
	}
	r.rows++
	return nil
}

func tagCount(tag []byte) int {
	s := strings.TrimRight(string(tag), "\x00")
	n, err := strconv.Atoi(s[strings.LastIndexByte(s, ' ')+1:])
	if err != nil {
		return -1
	}
	return n
}

func readError(b []byte) *serverError {
	e := &serverError{severity: "ERROR"}
	for _, f := range strings.Split(string(b), "\x00") {
		if f == "" {
			continue
		}
		switch v := f[1:]; f[0] {
		case 'S':
			e.severity = v
		case 'C':
			e.code = v
		case 'M':
			e.message = v
		case 'D':
			e.detail = v
		case 'H':
			e.hint = v
		}
	}
	return e
}

const maxAnswer = 1 << 30

// next reads a message; its body is valid until the next call.
func (c *client) next(deadline time.Time) (byte, []byte, error) {
	if err := c.need(5, deadline); err != nil {
		return 0, nil, err
	}
	typ := c.in[c.pos]
	n := int(binary.BigEndian.Uint32(c.in[c.pos+1:])) - 4
	if n < 0 || n > maxAnswer {
		return 0, nil, errMalformed
	}
	if err := c.need(5+n, deadline); err != nil {
		return 0, nil, err
	}
	body := c.in[c.pos+5 : c.pos+5+n]
	c.pos += 5 + n
	return typ, body, nil
}

func (c *client) need(n int, deadline time.Time) error {
	for c.end-c.pos < n {
		if c.pos+n > len(c.in) {
			to := c.in
			if n > len(c.in) {
				to = make([]byte, max(n, 2*len(c.in)))
			}
			c.end = copy(to, c.in[c.pos:c.end])
			c.in, c.pos = to, 0
		}
		if c.pos == c.end {
			c.pos, c.end = 0, 0
		}
		_ = c.nc.SetReadDeadline(deadline)
		m, err := c.nc.Read(c.in[c.end:])
		c.end += m
		if m == 0 && err != nil {
			if errors.Is(err, io.EOF) {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}
