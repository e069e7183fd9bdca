package pgwire

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// conn is one connection. All but the fields marked shared belong to its own
// goroutine, which reads messages, calls the session and writes the answers.
//
// While a call runs nobody reads the socket. A call that takes long gets a
// watcher (see watchIfSlow) that reads ahead, only to notice that the client
// is gone; its bytes are served first by the next read.
type conn struct {
	srv    *Server
	sock   net.Conn // shared: the socket, to close it and to set deadlines
	nc     net.Conn // sock, or TLS over it
	remote string
	tls    bool
	pid    uint32
	secret uint32
	log    *slog.Logger

	r       reader
	w       writer
	session Session
	// formatter is the session, if it is one
	formatter Formatter
	res       results

	started    bool // past the startup phase
	portals    map[string]*portal
	unnamed    portal
	names      map[string]string
	skipToSync bool // an extended-protocol message failed
	params     []Param
	told       map[string]string // settings as the client knows them
	changed    [][2]string       // settings to tell of when it is its turn
	oids       []types.OID

	mu         sync.Mutex // guards cancel and the pair (inCall, cancelled)
	ctx        context.Context
	cancel     context.CancelCauseFunc // shared
	cancelled  atomic.Bool             // shared: ctx was cancelled and is to be renewed
	inCall     atomic.Bool             // shared: a session method runs
	inCopy     atomic.Bool             // shared: the call may be reading COPY data
	terminated atomic.Bool             // shared

	// busy is 0 while the connection's own goroutine reads the socket, else
	// the tick since which it does not, shifted left, with watchBit once there
	// is a watcher.
	busy      atomic.Uint64
	watchDone chan struct{}
	ahead     []byte // what a watcher has read
	aheadErr  error
}

const (
	busyBit  = 1
	watchBit = 2
	tickUnit = 4

	maxAhead = 64 << 10
)

func newConn(s *Server, nc net.Conn) *conn {
	remote := "pipe"
	if a := nc.RemoteAddr(); a != nil {
		remote = a.String()
	}
	c := &conn{srv: s, sock: nc, nc: nc, remote: remote, portals: map[string]*portal{}}
	c.log = s.opt.Logger.With("remote", remote)
	c.r = newReader(c, s.opt.MaxMessageSize)
	c.w = newWriter(connWriter{c})
	c.res.c = c
	c.ctx, c.cancel = context.WithCancelCause(s.ctx)
	return c
}

func (c *conn) info() ConnInfo {
	local := ""
	if a := c.sock.LocalAddr(); a != nil {
		local = a.String()
	}
	return ConnInfo{RemoteAddr: c.remote, LocalAddr: local, PID: c.pid, TLS: c.tls}
}

// run is the life of a connection.
func (c *conn) run() {
	defer c.close()
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("panic in a connection", "panic", p, "stack", string(debug.Stack()))
			e := fatal(pgerror.InternalError, "internal error; the connection is closed")
			c.w.report('E', e)
			_ = c.w.flush()
		}
	}()
	err := c.handshake()
	if err == nil {
		err = c.serve()
	} else if !errors.Is(err, errClosed) {
		c.srv.stats.refused.Add(1)
	}
	c.farewell(err)
}

// farewell tells the client of a fatal error and lingers, so that what it has
// still in flight does not make the kernel drop the message.
func (c *conn) farewell(err error) {
	var e *pgerror.Error
	if !errors.As(err, &e) {
		if err != nil && !isGone(err) {
			c.log.Info("connection lost", "error", err)
		}
		return
	}
	if e.Severity == "" || e.Severity == "ERROR" {
		f := *e
		f.Severity = "FATAL"
		e = &f
	}
	c.log.Info("connection refused or ended", "code", e.Code, "error", e.Message)
	c.w.report('E', e)
	_ = c.sock.SetWriteDeadline(time.Now().Add(time.Second))
	if c.w.flush() != nil {
		return
	}
	half, ok := c.sock.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = c.sock.SetReadDeadline(time.Now().Add(time.Second))
	_, _ = io.CopyN(io.Discard, c.sock, 1<<20)
}

func (c *conn) close() {
	c.stopWatch()
	c.cancel(errClosed)
	if c.session != nil {
		func() {
			defer func() {
				if p := recover(); p != nil {
					c.log.Error("panic while closing a session", "panic", p, "stack", string(debug.Stack()))
				}
			}()
			c.session.Close()
		}()
	}
	c.nc.Close()
	c.sock.Close()
}

// begin is the start of a session's call: its context.
func (c *conn) begin() context.Context {
	if c.cancelled.Load() {
		c.mu.Lock()
		c.ctx, c.cancel = context.WithCancelCause(c.srv.ctx)
		c.cancelled.Store(false)
		c.mu.Unlock()
	}
	c.inCall.Store(true)
	return c.ctx
}

func (c *conn) end() { c.inCall.Store(false) }

// cancelCall cancels the running call, if there is one.
func (c *conn) cancelCall(cause error) bool {
	c.mu.Lock()
	if !c.inCall.Load() {
		c.mu.Unlock()
		return false
	}
	c.cancelled.Store(true)
	c.cancel(cause)
	c.mu.Unlock()
	if c.inCopy.Load() {
		c.poke()
	}
	return true
}

func (c *conn) terminate() {
	c.terminated.Store(true)
	c.cancelCall(errTerminated)
	c.poke()
}

// poke wakes the goroutine that reads the socket, for it to look around.
func (c *conn) poke() { _ = c.sock.SetReadDeadline(time.Unix(1, 0)) }

func (c *conn) ending() bool { return c.terminated.Load() || c.srv.stopping.Load() }

// Read implements io.Reader for the message reader.
func (c *conn) Read(p []byte) (int, error) {
	if !c.started {
		return c.nc.Read(p) // the startup deadline is the only one
	}
	c.stopWatch()
	n, err := c.readSocket(p)
	c.busy.Store(c.srv.tick.Load()*tickUnit | busyBit)
	c.srv.stats.in.Add(int64(n))
	return n, err
}

func (c *conn) readSocket(p []byte) (int, error) {
	if len(c.ahead) > 0 {
		n := copy(p, c.ahead)
		if c.ahead = c.ahead[n:]; len(c.ahead) == 0 {
			c.ahead = nil
		}
		return n, nil
	}
	if c.aheadErr != nil {
		return 0, c.aheadErr
	}
	for {
		// Whoever pokes has set before what is looked at here.
		if c.inCall.Load() {
			if c.ctx.Err() != nil {
				return 0, callError(c.ctx, c.ctx.Err())
			}
		} else if c.ending() {
			return 0, errAdminShutdown()
		}
		n, err := c.nc.Read(p)
		if n > 0 {
			return n, nil
		}
		if err == nil || !isTimeout(err) {
			return 0, err
		}
		if err := c.sock.SetReadDeadline(time.Time{}); err != nil {
			return 0, err
		}
	}
}

// watchIfSlow starts a watcher if the connection's goroutine has not read the
// socket for a whole tick. Called by the server's ticker only.
func (c *conn) watchIfSlow(now uint64) {
	b := c.busy.Load()
	if b&busyBit == 0 || b&watchBit != 0 || now < b/tickUnit+2 {
		return
	}
	done := make(chan struct{})
	// The watcher's fields are published by the swap: the other side reads
	// them only after it has seen the bit, under mu.
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy.CompareAndSwap(b, b|watchBit) {
		c.watchDone = done
		go c.watch(done)
	}
}

func (c *conn) watch(done chan struct{}) {
	defer close(done)
	tmp := make([]byte, 4<<10)
	for len(c.ahead) < maxAhead {
		n, err := c.nc.Read(tmp)
		c.ahead = append(c.ahead, tmp[:n]...)
		if err != nil {
			if !isTimeout(err) {
				c.aheadErr = err
				c.cancelCall(errClientGone)
			}
			return
		}
	}
}

// stopWatch takes the socket back from the watcher, if there is one.
func (c *conn) stopWatch() {
	if c.busy.Swap(0)&watchBit == 0 {
		return
	}
	c.mu.Lock()
	done := c.watchDone
	c.mu.Unlock()
	c.poke()
	<-done
	_ = c.sock.SetReadDeadline(time.Time{})
}

// connWriter is the socket as the message writer sees it.
type connWriter struct{ c *conn }

func (w connWriter) Write(p []byte) (int, error) {
	c := w.c
	if d := c.srv.opt.WriteTimeout; d > 0 && c.started {
		_ = c.sock.SetWriteDeadline(time.Now().Add(d))
	}
	n, err := c.nc.Write(p)
	c.srv.stats.out.Add(int64(n))
	return n, err
}
