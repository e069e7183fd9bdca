package coord

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// advisoryLocks are the locks of pg_advisory_lock and its kin (PostgreSQL
// manual, section 13.3.5): numbers that sessions lock by agreement.
type advisoryLocks struct {
	mu      sync.Mutex
	held    map[int64]*advisoryLock
	changed chan struct{} // closed, and made anew, when a lock is given up
}

// advisoryLock is who holds one number: how often in shared and in exclusive
// mode, for the session and for its transaction.
type advisoryLock struct{ holders map[*Session]*advisoryHold }

type advisoryHold struct{ shared, exclusive, xactShared, xactExclusive int }

func (h *advisoryHold) any() bool { return h.shared+h.exclusive+h.xactShared+h.xactExclusive > 0 }

// free reports whether s can have the lock now. Call with the mutex held.
func (l *advisoryLock) free(s *Session, shared bool) bool {
	for x, h := range l.holders {
		if x != s && h.any() && (!shared || h.exclusive+h.xactExclusive > 0) {
			return false
		}
	}
	return true
}

func (a *advisoryLocks) lock(ctx context.Context, s *Session, key int64, shared, xact, try bool) (bool, error) {
	for {
		a.mu.Lock()
		if a.held == nil {
			a.held, a.changed = map[int64]*advisoryLock{}, make(chan struct{})
		}
		l := a.held[key]
		if l == nil {
			l = &advisoryLock{holders: map[*Session]*advisoryHold{}}
			a.held[key] = l
		}
		if l.free(s, shared) {
			h := l.holders[s]
			if h == nil {
				h = &advisoryHold{}
				l.holders[s] = h
			}
			switch {
			case shared && xact:
				h.xactShared++
			case shared:
				h.shared++
			case xact:
				h.xactExclusive++
			default:
				h.exclusive++
			}
			a.mu.Unlock()
			return true, nil
		}
		wait := a.changed
		a.mu.Unlock()
		if try {
			return false, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

func (a *advisoryLocks) unlock(s *Session, key int64, shared bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.held[key]
	if l == nil || l.holders[s] == nil {
		return false
	}
	h := l.holders[s]
	n := &h.exclusive
	if shared {
		n = &h.shared
	}
	if *n == 0 {
		return false
	}
	*n--
	a.gaveUp(key, s)
	return true
}

// gaveUp wakes the waiters. Call with the mutex held.
func (a *advisoryLocks) gaveUp(key int64, s *Session) {
	l := a.held[key]
	if h := l.holders[s]; h != nil && !h.any() {
		delete(l.holders, s)
		if len(l.holders) == 0 {
			delete(a.held, key)
		}
	}
	close(a.changed)
	a.changed = make(chan struct{})
}

// release gives up a session's locks: those of its transaction, or all.
func (a *advisoryLocks) release(s *Session, xact, session bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, l := range a.held {
		h := l.holders[s]
		if h == nil {
			continue
		}
		if session {
			h.shared, h.exclusive = 0, 0
		}
		if xact {
			h.xactShared, h.xactExclusive = 0, 0
		}
		a.gaveUp(key, s)
	}
}

// sessionLocks are the advisory locks as one session's expressions use them.
type sessionLocks struct{ s *Session }

// Lock implements expr.AdvisoryLocks.
func (l sessionLocks) Lock(key int64, shared, xact, try bool) (bool, error) {
	return l.s.c.advisory.lock(l.s.statementContext(), l.s, key, shared, xact, try)
}

// Unlock implements expr.AdvisoryLocks.
func (l sessionLocks) Unlock(key int64, shared bool) bool {
	return l.s.c.advisory.unlock(l.s, key, shared)
}

// UnlockAll implements expr.AdvisoryLocks.
func (l sessionLocks) UnlockAll() { l.s.c.advisory.release(l.s, false, true) }

// statementContext is the context of the running statement.
func (s *Session) statementContext() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil {
		return s.c.ctx
	}
	return s.ctx
}

// sleep is pg_sleep.
func (s *Session) sleep(seconds float64) error {
	ctx := s.statementContext()
	t := time.NewTimer(time.Duration(min(max(seconds, 0), 1e9) * float64(time.Second)))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		var e *pgerror.Error
		if !errors.As(context.Cause(ctx), &e) { // a row's error needs a code
			e = pgerror.New(pgerror.QueryCanceled, "canceling statement due to user request")
		}
		return e
	}
}

// cancelSession is pg_cancel_backend and pg_terminate_backend.
func (c *Coordinator) cancelSession(pid int32, terminate bool) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for s := range c.sessions {
		if s.info.PID != uint32(pid) {
			continue
		}
		if terminate {
			s.abort(&pgerror.Error{Severity: "FATAL", Code: pgerror.AdminShutdown, Message: "terminating connection due to administrator command"})
			return true
		}
		s.mu.Lock()
		if s.cancel != nil {
			s.cancel(pgerror.New(pgerror.QueryCanceled, "canceling statement due to user request"))
		}
		s.mu.Unlock()
		return true
	}
	return false
}
