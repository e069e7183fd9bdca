package pgwire

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Options are the limits and the security of a server. The zero value serves
// clients of this machine without a password.
type Options struct {
	// TLSConfig turns on TLS; nil answers that there is none.
	TLSConfig *tls.Config
	// Auth decides how a user proves who it is. Nil is LocalTrust.
	Auth Auth
	// MaxConns bounds the sessions; more get 53300. 0 means 1000.
	MaxConns int
	// StartupTimeout is the time from accept to the end of authentication. 0
	// means a minute.
	StartupTimeout time.Duration
	// MaxMessageSize bounds a message of a client, hence a statement, a
	// parameter and a piece of COPY data. 0 means 256 MiB.
	MaxMessageSize int
	// WriteTimeout closes a connection whose client takes nothing for so long.
	// 0 waits for ever (keepalive still finds hosts that are gone).
	WriteTimeout time.Duration
	// KeepAlive is TCP's: idle time and interval of its probes. 0 means 30 s.
	KeepAlive time.Duration
	// ShutdownGrace is how long Serve lets statements finish once its context
	// is done. 0 means five seconds.
	ShutdownGrace time.Duration
	// Logger gets one record a refused or broken connection. Nil is silent.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Auth == nil {
		o.Auth = LocalTrust{}
	}
	if o.MaxConns <= 0 {
		o.MaxConns = 1000
	}
	if o.StartupTimeout <= 0 {
		o.StartupTimeout = time.Minute
	}
	if o.MaxMessageSize <= 0 {
		o.MaxMessageSize = 256 << 20
	}
	if o.KeepAlive <= 0 {
		o.KeepAlive = 30 * time.Second
	}
	if o.ShutdownGrace <= 0 {
		o.ShutdownGrace = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Stats are counters since the start of a server, for its metrics.
type Stats struct {
	Sessions   int64 // open now, authenticated
	Accepted   int64 // connections ever accepted
	Refused    int64 // connections that never became a session
	Cancels    int64 // cancel requests that hit a running statement
	BytesIn    int64
	BytesOut   int64
	Statements int64 // simple queries and executions
}

// Server is a set of listeners that share sessions' limits and cancel keys.
type Server struct {
	backend Backend
	opt     Options

	ctx  context.Context // of all sessions; its end is the hard stop
	stop context.CancelFunc

	tick     atomic.Uint64 // advanced every watchInterval
	stopping atomic.Bool

	mu        sync.Mutex
	conns     map[*conn]struct{} // all accepted connections
	sessions  map[uint32]*conn   // those past authentication, by process id
	listeners map[net.Listener]struct{}
	lastPID   uint32
	closed    bool
	wg        sync.WaitGroup // one a connection, one for the ticker
	done      chan struct{}

	stats struct {
		accepted, refused, cancels, in, out, statements atomic.Int64
	}
}

// watchInterval is how often running statements are looked at: one that has
// run for a whole interval gets a watcher that notices that its client is gone.
const watchInterval = 100 * time.Millisecond

// NewServer makes a server; Serve gives it listeners.
func NewServer(backend Backend, opt Options) *Server {
	s := &Server{
		backend:   backend,
		opt:       opt.withDefaults(),
		conns:     map[*conn]struct{}{},
		sessions:  map[uint32]*conn{},
		listeners: map[net.Listener]struct{}{},
		done:      make(chan struct{}),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.tick.Store(1)
	s.wg.Add(1)
	go s.watchRunning()
	return s
}

// Serve runs a server on one listener until ctx is done; then statements may
// finish for ShutdownGrace before all connections are closed. Every goroutine
// has ended when it returns.
func Serve(ctx context.Context, l net.Listener, backend Backend, opt Options) error {
	s := NewServer(backend, opt)
	stopped := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(stopped)
		grace, cancel := context.WithTimeout(context.Background(), s.opt.ShutdownGrace)
		defer cancel()
		_ = s.Shutdown(grace)
	})
	err := s.Serve(l)
	if unhook() {
		s.Close()
		return err
	}
	<-stopped
	return nil
}

// ErrServerClosed is what Serve returns after Shutdown or Close.
var ErrServerClosed = errors.New("pgwire: server closed")

// Serve accepts connections of l until the server is shut down or l fails.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	s.mu.Lock()
	if s.closed || s.stopping.Load() {
		s.mu.Unlock()
		return ErrServerClosed
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.listeners, l)
		s.mu.Unlock()
	}()
	var delay time.Duration
	for {
		nc, err := l.Accept()
		if err != nil {
			if s.stopping.Load() {
				return ErrServerClosed
			}
			var ne net.Error
			if errors.Is(err, net.ErrClosed) || !errors.As(err, &ne) {
				return err
			}
			// out of descriptors and the like: wait and try again
			delay = min(max(2*delay, 5*time.Millisecond), time.Second)
			s.opt.Logger.Warn("accept failed", "error", err, "retry_in", delay)
			select {
			case <-time.After(delay):
				continue
			case <-s.ctx.Done():
				return ErrServerClosed
			}
		}
		delay = 0
		s.accept(nc)
	}
}

// accept starts the goroutine of a connection. Connections that are not yet
// sessions are bounded too, generously, so that cancel requests get through.
func (s *Server) accept(nc net.Conn) {
	s.stats.accepted.Add(1)
	s.mu.Lock()
	if s.closed || len(s.conns) >= 2*s.opt.MaxConns+100 {
		s.mu.Unlock()
		s.stats.refused.Add(1)
		nc.Close()
		return
	}
	c := newConn(s, nc)
	s.conns[c] = struct{}{}
	s.wg.Add(1)
	s.mu.Unlock()
	if tc, ok := nc.(*net.TCPConn); ok {
		_ = tc.SetNoDelay(true)
		_ = tc.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: s.opt.KeepAlive, Interval: s.opt.KeepAlive, Count: 4})
	}
	go func() {
		defer s.wg.Done()
		c.run()
		s.mu.Lock()
		delete(s.conns, c)
		if s.sessions[c.pid] == c {
			delete(s.sessions, c.pid)
		}
		s.mu.Unlock()
	}()
}

// register gives an authenticated connection its process id and secret;
// false: there are too many sessions.
func (s *Server) register(c *conn) bool {
	var key [4]byte
	if _, err := rand.Read(key[:]); err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sessions) >= s.opt.MaxConns {
		return false
	}
	for {
		s.lastPID = (s.lastPID + 1) & 0x7fffffff
		if _, taken := s.sessions[s.lastPID]; !taken && s.lastPID != 0 {
			break
		}
	}
	c.pid, c.secret = s.lastPID, binary.BigEndian.Uint32(key[:])
	s.sessions[c.pid] = c
	return true
}

// cancelRequest is a client's: it must know the secret.
func (s *Server) cancelRequest(pid, secret uint32) {
	s.mu.Lock()
	c := s.sessions[pid]
	s.mu.Unlock()
	var want uint32
	if c != nil {
		want = c.secret
	}
	same := subtle.ConstantTimeEq(int32(want), int32(secret))
	if c != nil && same == 1 && c.cancelCall(errCancelRequest) {
		s.stats.cancels.Add(1)
	}
}

// Cancel cancels the statement that a session runs; false: no such session.
func (s *Server) Cancel(pid uint32) bool {
	s.mu.Lock()
	c := s.sessions[pid]
	s.mu.Unlock()
	if c == nil {
		return false
	}
	c.cancelCall(errCancelRequest)
	return true
}

// Terminate ends a session, cancelling what it runs; false: no such session.
func (s *Server) Terminate(pid uint32) bool {
	s.mu.Lock()
	c := s.sessions[pid]
	s.mu.Unlock()
	if c == nil {
		return false
	}
	c.terminate()
	return true
}

// Stats reads the counters.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	n := len(s.sessions)
	s.mu.Unlock()
	return Stats{
		Sessions:   int64(n),
		Accepted:   s.stats.accepted.Load(),
		Refused:    s.stats.refused.Load(),
		Cancels:    s.stats.cancels.Load(),
		BytesIn:    s.stats.in.Load(),
		BytesOut:   s.stats.out.Load(),
		Statements: s.stats.statements.Load(),
	}
}

// Shutdown stops accepting, tells idle sessions 57P01, lets running statements
// finish until ctx is done, and then closes everything.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopping.Store(true)
	s.mu.Lock()
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		c.poke()
	}
	s.mu.Unlock()
	idle := time.NewTicker(10 * time.Millisecond)
	defer idle.Stop()
	for {
		s.mu.Lock()
		n := len(s.conns)
		s.mu.Unlock()
		if n == 0 {
			s.Close()
			return nil
		}
		select {
		case <-ctx.Done():
			s.Close()
			return ctx.Err()
		case <-idle.C:
		}
	}
}

// Close is the hard stop: statements are cancelled, sockets closed. It waits
// for all goroutines of the server.
func (s *Server) Close() {
	s.stopping.Store(true)
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		c.nc.Close()
	}
	s.mu.Unlock()
	s.stop()
	s.wg.Wait()
}

// watchRunning starts a watcher on each connection whose statement has run for
// more than a whole interval. Short statements never pay for one.
func (s *Server) watchRunning() {
	defer s.wg.Done()
	t := time.NewTicker(watchInterval)
	defer t.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-t.C:
		}
		now := s.tick.Add(1)
		s.mu.Lock()
		for _, c := range s.sessions {
			c.watchIfSlow(now)
		}
		s.mu.Unlock()
	}
}
