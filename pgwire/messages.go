package pgwire

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// portal is what the wire must remember of a portal: its result formats.
type portal struct {
	formats []uint16
}

// serve reads and answers messages until the client leaves. The error, if it
// is a *pgerror.Error, is told to the client.
func (c *conn) serve() error {
	for {
		typ, body, err := c.r.message()
		if err != nil {
			return err
		}
		if c.skipToSync && typ != 'S' && typ != 'X' {
			continue
		}
		switch typ {
		case 'Q':
			err = c.simpleQuery(body)
		case 'P':
			err = c.extended(c.parse(body))
		case 'B':
			err = c.extended(c.bind(body))
		case 'D':
			err = c.extended(c.describe(body))
		case 'E':
			err = c.extended(c.execute(body))
		case 'C':
			err = c.extended(c.closeTarget(body))
		case 'S':
			err = c.sync()
		case 'H':
			err = c.w.flush()
		case 'F':
			err = c.functionCall()
		case 'X':
			return errClosed
		case 'd', 'c', 'f':
			// what a client had in flight when its COPY failed
		default:
			return fatalProtocol("invalid frontend message type %d", typ)
		}
		if err != nil {
			return err
		}
	}
}

// finish reports the error of a call, if any, and returns it if the connection
// is to end. failed says that an error was reported.
func (c *conn) finish(ctx context.Context, err error) (failed bool, fatalErr error) {
	if c.w.err != nil {
		return true, c.w.err
	}
	if c.terminated.Load() {
		return true, errAdminShutdown()
	}
	if err == nil {
		return false, nil
	}
	e := callError(ctx, err)
	if e.Severity == "FATAL" || e.Severity == "PANIC" {
		return true, e
	}
	if e.Code == pgerror.InternalError {
		c.log.Warn("internal error", "error", err)
	}
	c.w.report('E', c.presented(e))
	return true, nil
}

// ready ends a simple query or a Sync: all that was said goes out.
func (c *conn) ready() error {
	status := c.session.TxStatus()
	if status == 'I' && len(c.portals) > 0 {
		clear(c.portals) // portals end with their transaction
	}
	c.tellSettings()
	c.w.readyForQuery(status)
	return c.w.flush()
}

// tellSettings reports the settings that are not as the client knows them: once
// all is done, as PostgreSQL does, so that what was set and undone is not told.
func (c *conn) tellSettings() {
	if len(c.changed) == 0 {
		return
	}
	now := map[string]string{}
	for _, p := range c.changed {
		now[p[0]] = p[1]
	}
	for _, p := range c.changed {
		if v := now[p[0]]; v != c.told[p[0]] {
			c.w.parameterStatus(p[0], v)
			c.told[p[0]] = v
		}
	}
	c.changed = c.changed[:0]
}

func (c *conn) simpleQuery(body []byte) error {
	f := fields{b: body}
	sql := string(f.cstring())
	ctx := c.begin()
	var err error
	if f.end() {
		c.srv.stats.statements.Add(1)
		c.res.start(true, nil)
		err = c.session.Simple(ctx, sql, &c.res)
		err = c.endCopy(err)
	} else {
		err = protocolViolation("invalid message format")
	}
	c.end()
	if _, err := c.finish(ctx, err); err != nil {
		return err
	}
	return c.ready()
}

// extended takes what a message of the extended protocol came to: after an
// error, which the client is told at once, all is skipped up to the next Sync.
func (c *conn) extended(err error) error {
	failed, err := c.finish(c.ctx, err)
	c.skipToSync = failed
	if failed && err == nil {
		return c.w.flush()
	}
	return err
}

// text makes a string of a name. Names come again and again: they are kept.
func (c *conn) text(name []byte) string {
	if len(name) == 0 {
		return ""
	}
	s, ok := c.names[string(name)]
	if !ok {
		if len(c.names) >= 256 || c.names == nil {
			c.names = make(map[string]string)
		}
		s = string(name)
		c.names[s] = s
	}
	return s
}

func (c *conn) parse(body []byte) error {
	f := fields{b: body}
	name, sql := f.cstring(), f.cstring()
	n := int(f.uint16())
	c.oids = c.oids[:0]
	for range n {
		c.oids = append(c.oids, types.OID(f.uint32()))
		if f.bad {
			break
		}
	}
	if !f.end() {
		return protocolViolation("invalid message format")
	}
	ctx := c.begin()
	defer c.end()
	// the session keeps the types
	if err := c.session.Parse(ctx, c.text(name), string(sql), slices.Clone(c.oids)); err != nil {
		return err
	}
	c.w.empty('1')
	return nil
}

func (c *conn) bind(body []byte) error {
	f := fields{b: body}
	name, statement := f.cstring(), f.cstring()
	nf := int(f.uint16())
	formats := f.take(2 * nf)
	n := int(f.uint16())
	if f.bad {
		return protocolViolation("invalid message format")
	}
	if nf > 1 && nf != n {
		return protocolViolation("bind message has %d parameter formats but %d parameters", nf, n)
	}
	if cap(c.params) > 1024 && n <= 1024 {
		c.params = nil
	}
	c.params = c.params[:0]
	for i := range n {
		p := Param{}
		if nf > 0 {
			code := formatCode(formats, min(i, nf-1))
			if code > 1 {
				return pgerror.New(pgerror.InvalidParameterValue, "unsupported format code: %d", code)
			}
			p.Binary = code == 1
		}
		if size := int32(f.uint32()); size >= 0 {
			p.Data = f.take(int(size))
			if p.Data == nil && !f.bad {
				p.Data = []byte{}
			}
		} else if size < -1 {
			f.bad = true
		}
		if f.bad {
			return protocolViolation("invalid message format")
		}
		c.params = append(c.params, p)
	}
	nr := int(f.uint16())
	results := f.take(2 * nr)
	if !f.end() {
		return protocolViolation("invalid message format")
	}
	for i := range nr {
		if code := formatCode(results, i); code > 1 {
			return pgerror.New(pgerror.InvalidParameterValue, "unsupported format code: %d", code)
		}
	}
	ctx := c.begin()
	defer c.end()
	if err := c.session.Bind(ctx, c.text(name), c.text(statement), c.params); err != nil {
		return err
	}
	p := c.makePortal(name)
	p.formats = p.formats[:0]
	for i := range nr {
		p.formats = append(p.formats, formatCode(results, i))
	}
	c.w.empty('2')
	return nil
}

func formatCode(b []byte, i int) uint16 { return uint16(b[2*i])<<8 | uint16(b[2*i+1]) }

func (c *conn) makePortal(name []byte) *portal {
	if len(name) == 0 {
		return &c.unnamed
	}
	p := c.portals[string(name)]
	if p == nil {
		p = &portal{}
		c.portals[string(name)] = p
	}
	return p
}

// formats are the result formats of a portal. A portal that Bind did not make
// (a cursor made by DECLARE) gives text.
func (c *conn) formats(name []byte) []uint16 {
	if len(name) == 0 {
		return c.unnamed.formats
	}
	if p := c.portals[string(name)]; p != nil {
		return p.formats
	}
	return nil
}

func (c *conn) describe(body []byte) error {
	f := fields{b: body}
	kind, name := f.uint8(), f.cstring()
	if !f.end() {
		return protocolViolation("invalid message format")
	}
	ctx := c.begin()
	defer c.end()
	switch kind {
	case 'S':
		d, err := c.session.DescribeStatement(ctx, c.text(name))
		if err != nil {
			return err
		}
		at := c.w.begin('t')
		c.w.u16(uint16(len(d.Params)))
		for _, o := range d.Params {
			c.w.u32(uint32(o))
		}
		c.w.end(at)
		return c.describeColumns(d.Columns, nil)
	case 'P':
		cols, err := c.session.DescribePortal(ctx, c.text(name))
		if err != nil {
			return err
		}
		return c.describeColumns(cols, c.formats(name))
	}
	return protocolViolation("invalid DESCRIBE message subtype %d", kind)
}

func (c *conn) describeColumns(cols []Column, formats []uint16) error {
	if cols == nil {
		c.w.empty('n')
		return nil
	}
	if err := checkFormats(formats, len(cols)); err != nil {
		return err
	}
	c.w.rowDescription(cols, formats)
	return nil
}

func (c *conn) execute(body []byte) error {
	f := fields{b: body}
	name := f.cstring()
	maxRows := max(int(int32(f.uint32())), 0)
	if !f.end() {
		return protocolViolation("invalid message format")
	}
	c.srv.stats.statements.Add(1)
	c.res.start(false, c.formats(name))
	ctx := c.begin()
	defer c.end()
	suspended, err := c.session.Execute(ctx, c.text(name), maxRows, &c.res)
	if err = c.endCopy(err); err != nil {
		return err
	}
	if suspended && !c.res.completed {
		c.w.empty('s')
	}
	return nil
}

func (c *conn) closeTarget(body []byte) error {
	f := fields{b: body}
	kind, name := f.uint8(), f.cstring()
	if !f.end() {
		return protocolViolation("invalid message format")
	}
	c.begin()
	defer c.end()
	var err error
	switch kind {
	case 'S':
		err = c.session.CloseStatement(c.text(name))
	case 'P':
		if len(name) == 0 {
			c.unnamed.formats = c.unnamed.formats[:0]
		} else {
			delete(c.portals, string(name))
		}
		err = c.session.ClosePortal(c.text(name))
	default:
		err = protocolViolation("invalid CLOSE message subtype %d", kind)
	}
	if err != nil {
		return err
	}
	c.w.empty('3')
	return nil
}

func (c *conn) sync() error {
	failed := c.skipToSync
	c.skipToSync = false
	ctx := c.begin()
	err := c.session.Sync(ctx, failed)
	c.end()
	if _, err := c.finish(ctx, err); err != nil {
		return err
	}
	return c.ready()
}

func (c *conn) functionCall() error {
	ctx := c.begin()
	c.end()
	if _, err := c.finish(ctx, pgerror.Unsupported("the function call protocol")); err != nil {
		return err
	}
	return c.ready()
}

// endCopy ends the COPY of a call. If the call failed, the rest of the data is
// skipped by the main loop; if it is content, the client must still say that it
// has ended.
func (c *conn) endCopy(err error) error {
	in := c.res.copyIn
	if in == nil {
		return err
	}
	c.res.copyIn = nil
	defer c.inCopy.Store(false)
	if err == nil && in.err == nil {
		_, err = io.Copy(io.Discard, in)
	} else if in.err != nil && !errors.Is(in.err, io.EOF) && c.isFatal(in.err) {
		err = in.err // the stream is broken, whatever the session made of it
	}
	return err
}

// isFatal reports whether an error of the message reader ends the connection.
func (c *conn) isFatal(err error) bool {
	var e *pgerror.Error
	return !errors.As(err, &e) || e.Severity == "FATAL"
}
