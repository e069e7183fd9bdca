package coord

import (
	"context"
	"slices"
	"sync"

	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// lockManager holds locks on tables, kept to the end of the transaction
// (two-phase locking). A writer holds its table alone; who refers to the rows of
// a table shares it, so that they stay. Readers take none: they read snapshots.
type lockManager struct {
	mu     sync.Mutex
	tables map[plan.ObjectID]*tableLock
	// waits says which table a transaction waits for; it waits for one at a time.
	waits map[*txn]plan.ObjectID
}

// formOf is what the form of a table is locked under: every writer shares it, and
// who changes or drops the table has it alone, so that each waits for the other.
func formOf(id plan.ObjectID) plan.ObjectID { return id | 1<<63 }

// ddlLock is held by the transaction that changes the catalog.
const ddlLock plan.ObjectID = 1 << 62

type tableLock struct {
	holders map[*txn]bool // whether it holds the table alone
	queue   []*lockWaiter
}

type lockWaiter struct {
	tx    *txn
	alone bool
	ready chan struct{}
}

func newLockManager() *lockManager {
	return &lockManager{tables: map[plan.ObjectID]*tableLock{}, waits: map[*txn]plan.ObjectID{}}
}

// free reports whether tx can have the lock beside those who hold it.
func (l *tableLock) free(tx *txn, alone bool) bool {
	for h, a := range l.holders {
		if h != tx && (alone || a) {
			return false
		}
	}
	return true
}

func (l *tableLock) grant(tx *txn, alone bool, id plan.ObjectID) {
	if _, has := l.holders[tx]; !has {
		tx.locks = append(tx.locks, id)
	}
	l.holders[tx] = alone || l.holders[tx]
}

// acquire locks a table for tx, alone or shared, waiting in turn. A wait that
// would close a cycle fails with 40P01.
func (m *lockManager) acquire(ctx context.Context, tx *txn, id plan.ObjectID, alone bool) error {
	m.mu.Lock()
	l := m.tables[id]
	if l == nil {
		l = &tableLock{holders: map[*txn]bool{}}
		m.tables[id] = l
	}
	has, holds := l.holders[tx]
	if holds && (has || !alone) {
		m.mu.Unlock()
		return nil
	}
	if l.free(tx, alone) && (holds || len(l.queue) == 0) {
		l.grant(tx, alone, id)
		m.mu.Unlock()
		return nil
	}
	if m.deadlocked(tx, id) {
		m.mu.Unlock()
		return pgerror.New(pgerror.DeadlockDetected, "deadlock detected").
			WithHint("Lock the tables in the same order in every transaction.")
	}
	w := &lockWaiter{tx: tx, alone: alone, ready: make(chan struct{})}
	if holds { // it waits for the other holders only
		l.queue = append([]*lockWaiter{w}, l.queue...)
	} else {
		l.queue = append(l.queue, w)
	}
	m.waits[tx] = id
	m.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		m.abandon(w, id, holds)
		return context.Cause(ctx)
	}
}

// abandon ends a wait; a lock granted meanwhile is given on.
func (m *lockManager) abandon(w *lockWaiter, id plan.ObjectID, held bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.tables[id]
	select {
	case <-w.ready:
		if held {
			l.holders[w.tx] = false
		} else {
			delete(l.holders, w.tx)
			w.tx.locks = slices.DeleteFunc(w.tx.locks, func(x plan.ObjectID) bool { return x == id })
		}
	default:
		l.queue = slices.DeleteFunc(l.queue, func(x *lockWaiter) bool { return x == w })
		delete(m.waits, w.tx)
	}
	m.pump(id)
}

// deadlocked follows the chain of those whom tx would wait for: the holders of
// the table and who waits for it before, as they will hold it.
func (m *lockManager) deadlocked(tx *txn, id plan.ObjectID) bool {
	seen := map[plan.ObjectID]bool{}
	var reach func(id plan.ObjectID, first bool) bool
	reach = func(id plan.ObjectID, first bool) bool {
		l := m.tables[id]
		if seen[id] || l == nil {
			return false
		}
		seen[id] = true
		blocks := func(b *txn) bool {
			if b == tx {
				return !first
			}
			next, ok := m.waits[b]
			return ok && (next != id || first) && reach(next, false)
		}
		for h := range l.holders {
			if blocks(h) {
				return true
			}
		}
		for _, w := range l.queue {
			if blocks(w.tx) {
				return true
			}
		}
		return false
	}
	if _, holds := m.tables[id].holders[tx]; holds {
		// Another who holds the table and waits for it alone waits for tx.
		for _, w := range m.tables[id].queue {
			if _, both := m.tables[id].holders[w.tx]; both {
				return true
			}
		}
	}
	return reach(id, true)
}

// release gives up all locks of tx and grants them to the next in line.
func (m *lockManager) release(tx *txn) {
	m.mu.Lock()
	for _, id := range tx.locks {
		delete(m.tables[id].holders, tx)
		m.pump(id)
	}
	tx.locks = tx.locks[:0]
	m.mu.Unlock()
}

// pump grants a table to those in line who can have it.
func (m *lockManager) pump(id plan.ObjectID) {
	l := m.tables[id]
	for len(l.queue) > 0 && l.free(l.queue[0].tx, l.queue[0].alone) {
		w := l.queue[0]
		l.queue = l.queue[1:]
		delete(m.waits, w.tx)
		l.grant(w.tx, w.alone, id)
		close(w.ready)
	}
	if len(l.queue) == 0 && len(l.holders) == 0 {
		delete(m.tables, id)
	}
}
