package pgwire

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"time"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// Codes that stand in the place of the protocol version.
const (
	codeCancel = 80877102
	codeSSL    = 80877103
	codeGSS    = 80877104
)

const tlsHandshakeByte = 0x16 // the first byte of a TLS connection

// handshake is all that happens before the first ReadyForQuery. errClosed: the
// connection has done its work (a cancel request), or there is nobody to tell.
func (c *conn) handshake() error {
	_ = c.sock.SetDeadline(time.Now().Add(c.srv.opt.StartupTimeout))
	version, params, unknown, err := c.startupMessage()
	if err != nil {
		if isTimeout(err) || isGone(err) {
			return errClosed
		}
		return err
	}
	if version>>16 < 3 {
		// such clients expect the error in the form of their protocol
		_, _ = io.WriteString(c.nc, "Eunsupported frontend protocol\n\x00")
		return errClosed
	}
	if version>>16 != 3 {
		return fatal(pgerror.FeatureNotSupported, "unsupported frontend protocol %d.%d: server supports 3.0 to 3.0",
			version>>16, version&0xffff)
	}
	user := params["user"]
	if user == "" {
		return fatal(pgerror.InvalidAuthorization, "no PostgreSQL user name specified in startup packet")
	}
	if params["database"] == "" {
		params["database"] = user
	}
	switch strings.ToLower(params["replication"]) {
	case "", "false", "off", "no", "0":
	default:
		return fatal(pgerror.FeatureNotSupported, "replication connections are not supported")
	}
	if version&0xffff != 0 || len(unknown) > 0 {
		c.w.negotiate(0, unknown)
	}
	if c.srv.stopping.Load() {
		return fatal(pgerror.CannotConnectNow, "the database system is shutting down")
	}
	if !c.srv.register(c) {
		return fatal(pgerror.TooManyConnections, "sorry, too many clients already")
	}
	if err := c.authenticate(user, params["database"]); err != nil {
		if isTimeout(err) {
			return fatal(pgerror.QueryCanceled, "canceling authentication due to timeout")
		}
		return err
	}
	return c.connect(params)
}

// connect makes the session and greets the client.
func (c *conn) connect(params map[string]string) error {
	ctx, cancel := context.WithTimeout(c.srv.ctx, c.srv.opt.StartupTimeout)
	defer cancel()
	session, err := c.srv.backend.Connect(ctx, params, c.info())
	if err != nil {
		return callError(ctx, err)
	}
	c.session = session
	c.formatter, _ = session.(Formatter)
	c.told = map[string]string{}
	for _, p := range session.ParameterStatuses() {
		c.w.parameterStatus(p[0], p[1])
		c.told[p[0]] = p[1]
	}
	c.w.keyData(c.pid, c.secret)
	c.w.readyForQuery(session.TxStatus())
	if err := c.w.flush(); err != nil {
		return err
	}
	c.log = c.log.With("pid", c.pid, "user", params["user"], "database", params["database"])
	if err := c.sock.SetDeadline(time.Time{}); err != nil {
		return err
	}
	c.started = true
	c.busy.Store(c.srv.tick.Load()*tickUnit | busyBit)
	return nil
}

// startupMessage answers the requests that may come before the startup message
// and reads it. unknown are the protocol options that we do not have.
func (c *conn) startupMessage() (version uint32, params map[string]string, unknown []string, err error) {
	if err := c.directTLS(); err != nil {
		return 0, nil, nil, err
	}
	sslDone, gssDone := c.tls, false
	for {
		body, err := c.r.startup()
		if err != nil {
			return 0, nil, nil, err
		}
		code := binary.BigEndian.Uint32(body)
		switch {
		case code == codeCancel:
			if len(body) == 12 {
				c.srv.cancelRequest(binary.BigEndian.Uint32(body[4:]), binary.BigEndian.Uint32(body[8:]))
			}
			return 0, nil, nil, errClosed
		case code == codeSSL && !sslDone:
			sslDone = true
			err = c.answerSSL()
		case code == codeGSS && !gssDone:
			gssDone = true
			err = c.answerEncryption('N', "GSSAPI encryption")
		default:
			params, unknown, err = startupParams(body[4:], code>>16 == 3)
			return code, params, unknown, err
		}
		if err != nil {
			return 0, nil, nil, err
		}
	}
}

// answerEncryption answers a request for encryption with one byte. Bytes that
// came with the request were not encrypted: someone else may have put them there.
func (c *conn) answerEncryption(answer byte, what string) error {
	c.w.buf = append(c.w.buf, answer)
	if err := c.w.flush(); err != nil {
		return errClosed
	}
	if c.r.buffered() > 0 {
		return fatalProtocol("received unencrypted data after %s request", what).
			WithDetail("This could be either a client-software bug or evidence of an attempted man-in-the-middle attack.")
	}
	return nil
}

func (c *conn) answerSSL() error {
	if c.srv.opt.TLSConfig == nil || c.sock.LocalAddr() != nil && c.sock.LocalAddr().Network() == "unix" {
		return c.answerEncryption('N', "SSL")
	}
	if err := c.answerEncryption('S', "SSL"); err != nil {
		return err
	}
	return c.upgrade(c.nc)
}

func (c *conn) upgrade(under net.Conn) error {
	tc := tls.Server(under, c.srv.opt.TLSConfig)
	ctx, cancel := context.WithTimeout(c.srv.ctx, c.srv.opt.StartupTimeout)
	defer cancel()
	if err := tc.HandshakeContext(ctx); err != nil {
		c.log.Info("TLS handshake failed", "error", err)
		return errClosed
	}
	c.nc, c.tls = tc, true
	return nil
}

// directTLS handles a client that starts with TLS without asking; it must name
// the protocol by ALPN, so that it cannot be a browser sent here by an attacker.
func (c *conn) directTLS() error {
	if err := c.r.need(1); err != nil {
		return err
	}
	if c.r.buf[c.r.pos] != tlsHandshakeByte || c.srv.opt.TLSConfig == nil {
		return nil
	}
	const alpn = "postgresql"
	cfg := c.srv.opt.TLSConfig.Clone()
	cfg.NextProtos = []string{alpn}
	seen := bytes.Clone(c.r.buf[c.r.pos:c.r.end])
	c.r.pos, c.r.end = 0, 0
	tc := tls.Server(&replayConn{Conn: c.nc, seen: seen}, cfg)
	ctx, cancel := context.WithTimeout(c.srv.ctx, c.srv.opt.StartupTimeout)
	defer cancel()
	if err := tc.HandshakeContext(ctx); err != nil {
		c.log.Info("TLS handshake failed", "error", err)
		return errClosed
	}
	if tc.ConnectionState().NegotiatedProtocol != alpn {
		return errClosed
	}
	c.nc, c.tls = tc, true
	return nil
}

// replayConn gives bytes that were read already once more.
type replayConn struct {
	net.Conn
	seen []byte
}

func (r *replayConn) Read(p []byte) (int, error) {
	if len(r.seen) > 0 {
		n := copy(p, r.seen)
		r.seen = r.seen[n:]
		return n, nil
	}
	return r.Conn.Read(p)
}

// startupParams reads the name and value pairs of a startup message.
func startupParams(b []byte, v3 bool) (params map[string]string, unknown []string, err error) {
	params = map[string]string{}
	if !v3 {
		return params, nil, nil
	}
	f := fields{b: b}
	for {
		name := string(f.cstring())
		if f.bad {
			return nil, nil, fatalProtocol("invalid startup packet layout: expected terminator as last byte")
		}
		if name == "" {
			break
		}
		value := string(f.cstring())
		if strings.HasPrefix(name, "_pq_.") {
			unknown = append(unknown, name)
			continue
		}
		params[name] = value
	}
	if !f.end() {
		return nil, nil, fatalProtocol("invalid startup packet layout: expected terminator as last byte")
	}
	return params, unknown, nil
}
