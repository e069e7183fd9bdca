package coord

import (
	"context"
	"sync"

	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// lockManager holds exclusive write locks on tables, kept to the end of the
// transaction (two-phase locking). Readers take none: they read snapshots.
type lockManager struct {
	mu    sync.Mutex
	held  map[plan.ObjectID]*txn
	queue map[plan.ObjectID][]*lockWaiter
	// waits says which table a transaction waits for; it waits for one at a time.
	waits map[*txn]plan.ObjectID
}

type lockWaiter struct {
	tx    *txn
	ready chan struct{}
}

func newLockManager() *lockManager {
	return &lockManager{
		held:  map[plan.ObjectID]*txn{},
		queue: map[plan.ObjectID][]*lockWaiter{},
		waits: map[*txn]plan.ObjectID{},
	}
}

// acquire locks a table for tx, waiting in turn. A wait that would close a
// cycle fails with 40P01.
func (m *lockManager) acquire(ctx context.Context, tx *txn, id plan.ObjectID) error {
	m.mu.Lock()
	holder := m.held[id]
	if holder == tx {
		m.mu.Unlock()
		return nil
	}
	if holder == nil && len(m.queue[id]) == 0 {
		m.held[id] = tx
		tx.locks = append(tx.locks, id)
		m.mu.Unlock()
		return nil
	}
	if m.deadlocked(tx, id) {
		m.mu.Unlock()
		return pgerror.New(pgerror.DeadlockDetected, "deadlock detected").
			WithHint("Lock the tables in the same order in every transaction.")
	}
	w := &lockWaiter{tx: tx, ready: make(chan struct{})}
	m.queue[id] = append(m.queue[id], w)
	m.waits[tx] = id
	m.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		m.mu.Lock()
		defer m.mu.Unlock()
		select {
		case <-w.ready: // granted meanwhile: give it on
			m.releaseLocked(id)
			tx.dropLock(id)
		default:
			q := m.queue[id]
			for i := range q {
				if q[i] == w {
					m.queue[id] = append(q[:i:i], q[i+1:]...)
					break
				}
			}
			delete(m.waits, tx)
		}
		return context.Cause(ctx)
	}
}

// deadlocked follows the chain of holders from the holder of id; earlier
// waiters count as holders, as they will be.
func (m *lockManager) deadlocked(tx *txn, id plan.ObjectID) bool {
	seen := map[plan.ObjectID]bool{}
	var reach func(id plan.ObjectID) bool
	reach = func(id plan.ObjectID) bool {
		if seen[id] {
			return false
		}
		seen[id] = true
		blockers := []*txn{m.held[id]}
		for _, w := range m.queue[id] {
			blockers = append(blockers, w.tx)
		}
		for _, b := range blockers {
			if b == tx {
				return true
			}
			if next, ok := m.waits[b]; ok && reach(next) {
				return true
			}
		}
		return false
	}
	return reach(id)
}

// release gives up all locks of tx and grants them to the next in line.
func (m *lockManager) release(tx *txn) {
	m.mu.Lock()
	for _, id := range tx.locks {
		m.releaseLocked(id)
	}
	tx.locks = tx.locks[:0]
	m.mu.Unlock()
}

func (m *lockManager) releaseLocked(id plan.ObjectID) {
	q := m.queue[id]
	if len(q) == 0 {
		delete(m.held, id)
		delete(m.queue, id)
		return
	}
	w := q[0]
	m.queue[id] = q[1:]
	delete(m.waits, w.tx)
	m.held[id] = w.tx
	w.tx.locks = append(w.tx.locks, id)
	close(w.ready)
}

func (tx *txn) dropLock(id plan.ObjectID) {
	for i, l := range tx.locks {
		if l == id {
			tx.locks = append(tx.locks[:i:i], tx.locks[i+1:]...)
			return
		}
	}
}
