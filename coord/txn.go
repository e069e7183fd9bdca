package coord

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// txn is a transaction of a session. Writes are kept here until the commit,
// which enters all of them, and the catalog changes, at one epoch.
type txn struct {
	started  time.Time
	explicit bool // BEGIN was said, or several statements came in one query
	block    bool // BEGIN was said: ReadyForQuery shows T or E
	failed   bool
	queried  bool // something was asked that reads, or changes, what is stored
	txnModes
	// pinned is the epoch that every read of the transaction sees; 0 if each
	// statement reads the newest one.
	pinned dataflow.Epoch
	locks  []plan.ObjectID
	writes []tableWrite // in order
	ddl    *ddlState
	saves  []savepoint
	// written are the tables of the writes, and maybe of such as were taken back.
	written map[plan.ObjectID]bool
	// reads are what a serializable transaction has read, by the epochs.
	reads map[plan.ObjectID]dataflow.Epoch
	// keyed finds the writes by keys.
	keyed map[pendingKey]*pendingIndex
	// constraints is what SET CONSTRAINTS says, by name ("" for all): deferred or
	// not; later are the checks that are put off.
	constraints map[string]bool
	later       []laterCheck
}

// tableWrite is changes that a statement made to a table.
type tableWrite struct {
	id    plan.ObjectID
	delta *dataflow.Delta
}

// savepoint is a place to roll back to.
type savepoint struct {
	name   string
	writes int
	later  []laterCheck // checks put off
	// constraints is what SET CONSTRAINTS had said.
	constraints map[string]bool
	readOnly    bool
	set         int // length of the settings' undo list
	ddl         int // length of the catalog changes
	cat         *catalog.Snapshot
	// rebuilt and sequences are those of the catalog changes; writesKept, if not
	// nil, the writes as they were, as a rewritten table changes them.
	rebuilt    map[plan.ObjectID]bool
	sequences  map[plan.ObjectID]*sequence
	writesKept []tableWrite
}

// ddlState is the catalog changes of a transaction. It holds the ddl token.
type ddlState struct {
	changes []catalog.Change
	cat     *catalog.Snapshot // with the changes
	after   []func(ctx context.Context)
	// rebuilt are views whose plan changes though their id does not.
	rebuilt map[plan.ObjectID]bool
	secrets map[plan.ObjectID][]byte
	// sequences are those that begin anew when the transaction commits.
	sequences map[plan.ObjectID]*sequence
}

// write adds changes to a table.
func (tx *txn) write(id plan.ObjectID, d *dataflow.Delta) {
	if d.N > 0 {
		tx.writes = append(tx.writes, tableWrite{id, d})
		if tx.written == nil {
			tx.written = map[plan.ObjectID]bool{}
		}
		tx.written[id] = true
	}
}

// keepWrites saves the writes for the savepoints, before those of a table are
// put in another form.
func (tx *txn) keepWrites() {
	for i := range tx.saves {
		if sp := &tx.saves[i]; sp.writesKept == nil {
			sp.writesKept = slices.Clone(tx.writes[:sp.writes])
			if sp.writesKept == nil {
				sp.writesKept = []tableWrite{}
			}
		}
	}
}

// undo takes back the writes after the first n. Who reads those before keeps them.
func (tx *txn) undo(n int) {
	if n < len(tx.writes) {
		tx.writes = tx.writes[:n:n]
		tx.keyed = nil
	}
}

// pending are the transaction's own changes to a table.
func (tx *txn) pending(id plan.ObjectID) []*dataflow.Delta {
	var out []*dataflow.Delta
	for _, w := range tx.writes {
		if w.id == id {
			out = append(out, w.delta)
		}
	}
	return out
}

// snapshot is the catalog as the session sees it.
func (s *Session) snapshot() *catalog.Snapshot {
	if s.tx != nil && s.tx.ddl != nil {
		return s.tx.ddl.cat
	}
	return s.c.catalog.Load()
}

// beginTx opens a transaction if none is open.
func (s *Session) beginTx() *txn {
	if s.tx != nil {
		return s.tx
	}
	s.tx = &txn{started: s.c.opts.Now(), txnModes: s.set.modes}
	s.set.begin(s.tx)
	return s.tx
}

// commitTx ends the transaction: all that it wrote enters at one epoch and is
// durable when this returns.
func (s *Session) commitTx(ctx context.Context) error {
	tx := s.tx
	if tx == nil {
		return nil
	}
	if tx.failed {
		s.rollbackTx()
		return nil
	}
	err := s.beforeCommit(ctx)
	if err == nil {
		err = s.enter(ctx, tx)
	}
	s.finishTx(tx, err == nil)
	if err != nil {
		return err
	}
	if tx.ddl != nil {
		for _, f := range tx.ddl.after {
			f(ctx)
		}
	}
	if (len(tx.writes) > 0 || tx.ddl != nil) && s.implicitFlush() {
		// Whatever comes of it, the transaction has committed.
		_, _ = s.c.awaitSinks(ctx, s.c.readEpoch())
	}
	return nil
}

// implicitFlush reports whether each write is to be followed by a FLUSH, as clients
// of RisingWave ask for. Views need none.
func (s *Session) implicitFlush() bool {
	for _, name := range []string{"rw_implicit_flush", "implicit_flush"} {
		if v, _ := s.set.get(name); v == "true" || v == "on" || v == "t" || v == "1" {
			return true
		}
	}
	return false
}

// enter submits the transaction's writes and waits for their durability.
func (s *Session) enter(ctx context.Context, tx *txn) error {
	if len(tx.writes) == 0 && tx.ddl == nil {
		return nil
	}
	r := &request{}
	cat := s.snapshot()
	for _, w := range tx.writes {
		o := cat.ByID(w.id)
		if o == nil {
			continue // dropped since
		}
		r.changes = append(r.changes, change{id: w.id, delta: w.delta, temp: o.Temporary})
	}
	if tx.ddl != nil {
		if err := s.c.enterDDL(r, tx.ddl); err != nil {
			return err
		}
		s.c.enterSequences(r, tx.ddl)
	}
	r.reads = tx.tablesRead(cat)
	r.measure()
	// The locks are given up when the order of commits is fixed; later writers
	// see these changes, and are acknowledged after them.
	r.applied = func(dataflow.Epoch) { s.c.locks.release(tx) }
	e, err := s.c.timeline.commit(ctx, r)
	if err != nil {
		return err
	}
	s.lastWrite = max(s.lastWrite, e)
	return nil
}

// rollbackTx ends the transaction without a trace.
func (s *Session) rollbackTx() {
	if s.tx != nil {
		s.finishTx(s.tx, false)
	}
}

func (s *Session) finishTx(tx *txn, commit bool) {
	s.tx = nil
	if tx.pinned != 0 {
		s.c.pins.set(tx, 0)
	}
	s.c.locks.release(tx)
	s.c.advisory.release(s, true, false)
	if tx.ddl != nil {
		if !commit {
			s.c.catalog.Load().DefineTypes()
		}
		<-s.c.ddl
	}
	s.set.end(commit)
	for name, p := range s.portals {
		if p.cursor && p.hold && commit {
			continue
		}
		if p.tx == tx {
			p.close()
			delete(s.portals, name)
		}
	}
}

// beginDDL takes the token that lets a transaction change the catalog.
func (s *Session) beginDDL(ctx context.Context) (*ddlState, error) {
	tx := s.beginTx()
	if tx.readOnly {
		return nil, pgerror.New(pgerror.ReadOnlySQLTransaction, "cannot execute this statement in a read-only transaction")
	}
	if tx.ddl != nil {
		return tx.ddl, nil
	}
	if err := s.acquire(ctx, ddlLock, true); err != nil {
		return nil, err
	}
	select {
	case s.c.ddl <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	tx.ddl = &ddlState{cat: s.c.catalog.Load(), rebuilt: map[plan.ObjectID]bool{}, secrets: map[plan.ObjectID][]byte{}}
	return tx.ddl, nil
}

// apply adds catalog changes to the transaction.
func (d *ddlState) apply(changes ...catalog.Change) {
	for i := range changes {
		changes[i].Temporary = d.temporary(&changes[i])
	}
	d.changes = append(d.changes, changes...)
	d.cat = d.cat.Apply(changes...)
}

// savepoint statements.

func (s *Session) savepoint(name string) {
	sp := savepoint{name: name, writes: len(s.tx.writes), later: slices.Clip(s.tx.later),
		constraints: maps.Clone(s.tx.constraints), readOnly: s.tx.readOnly, set: len(s.set.undo)}
	if s.tx.ddl != nil {
		sp.ddl, sp.cat = len(s.tx.ddl.changes), s.tx.ddl.cat
		sp.rebuilt, sp.sequences = maps.Clone(s.tx.ddl.rebuilt), maps.Clone(s.tx.ddl.sequences)
	}
	s.tx.saves = append(s.tx.saves, sp)
}

func (tx *txn) findSave(name string) int {
	for i := len(tx.saves) - 1; i >= 0; i-- {
		if tx.saves[i].name == name {
			return i
		}
	}
	return -1
}

func noSavepoint(name string) error {
	return pgerror.New(pgerror.InvalidSavepoint, "savepoint \"%s\" does not exist", name)
}

func (s *Session) release(name string) error {
	i := s.tx.findSave(name)
	if i < 0 {
		return noSavepoint(name)
	}
	s.tx.readOnly = s.tx.saves[i].readOnly
	s.tx.saves = s.tx.saves[:i]
	for _, p := range s.portals {
		p.level = min(p.level, i)
	}
	return nil
}

func (s *Session) rollbackTo(name string) error {
	i := s.tx.findSave(name)
	if i < 0 {
		return noSavepoint(name)
	}
	sp := s.tx.saves[i]
	s.tx.saves = s.tx.saves[:i+1]
	s.tx.readOnly = sp.readOnly
	for name, p := range s.portals {
		if p.tx == s.tx && p.level > i && (p.cursor || p.rows != nil) {
			p.close()
			delete(s.portals, name)
		}
	}
	if sp.writesKept != nil {
		s.tx.writes, s.tx.keyed = sp.writesKept, nil
	} else {
		s.tx.undo(sp.writes)
	}
	s.tx.later, s.tx.constraints = sp.later, maps.Clone(sp.constraints)
	s.tx.failed = false
	s.set.rollbackTo(sp.set, false)
	if d := s.tx.ddl; d != nil {
		d.changes = d.changes[:sp.ddl]
		d.rebuilt, d.sequences = maps.Clone(sp.rebuilt), maps.Clone(sp.sequences)
		if d.cat = sp.cat; d.cat == nil {
			d.cat = s.c.catalog.Load()
		}
		if d.rebuilt == nil {
			d.rebuilt = map[plan.ObjectID]bool{}
		}
	}
	return nil
}
