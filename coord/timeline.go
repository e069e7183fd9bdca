package coord

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/storage"
)

// The bounds of one epoch under load.
const (
	epochRows  = 1 << 16
	epochBytes = 16 << 20
)

// request is what wants to enter at an epoch: a transaction's commit, a DDL
// change, or a source's chunk. All of it enters at the same one.
type request struct {
	record
	rows   int
	bytes  int64
	commit bool // of a transaction, not of a source
	// reads are the tables that must not have changed since an epoch each.
	reads map[plan.ObjectID]dataflow.Epoch
	// atEpoch runs in the timeline when the epoch is cut, after the record was
	// accepted by the log and before its changes are applied: it creates the
	// collections that a catalog change needs.
	atEpoch func(e dataflow.Epoch)
	// applied runs in the timeline when the changes are in the collections.
	applied func(e dataflow.Epoch)
	// done is told when the epoch is durable, or why it never will be.
	done func(e dataflow.Epoch, err error)
}

// timeline cuts epochs: it stamps what enters, logs it, applies it to the
// collections of tables and sources, and hands the changes to the clusters.
// One goroutine runs it and owns those collections.
type timeline struct {
	c       *Coordinator
	commits chan *request
	chunks  chan *request
	control chan func()
	last    dataflow.Epoch
	durable progress // log synced: the newest epoch that may be read
	ingest  *stage
	stopped chan struct{}
	merging bool       // collections may have merges left for idle time
	retry   []*request // refused by a full disk, tried again
}

func newTimeline(c *Coordinator) *timeline {
	return &timeline{
		c:       c,
		commits: make(chan *request, 256),
		chunks:  make(chan *request, 16),
		control: make(chan func()),
		ingest:  &stage{},
		stopped: make(chan struct{}),
	}
}

// next is the epoch after the last one: the wall clock's milliseconds if that
// has moved on, else one more.
func (t *timeline) next() dataflow.Epoch {
	return max(t.last+1, dataflow.Epoch(t.c.opts.Now().UnixMilli()))
}

// run is the loop. It ends when ctx does, after what was accepted is logged.
func (t *timeline) run(ctx context.Context) {
	defer close(t.stopped)
	idle := time.NewTimer(time.Hour)
	defer idle.Stop()
	for {
		var first *request
		chunks := t.chunks
		if len(t.retry) > 0 {
			chunks = nil
			idle.Reset(200 * time.Millisecond)
		} else if t.merging {
			idle.Reset(time.Millisecond)
		}
		select {
		case <-ctx.Done():
			t.refuse()
			return
		case f := <-t.control:
			f()
			continue
		case first = <-t.commits:
		case first = <-chunks:
		case <-idle.C:
			if len(t.retry) == 0 {
				t.merging = t.c.mergeIngest()
				continue
			}
			first, t.retry = t.retry[0], t.retry[1:]
		}
		t.epoch(t.gather(first))
	}
}

// refuse fails whatever still waits to enter.
func (t *timeline) refuse() {
	for {
		select {
		case r := <-t.commits:
			r.done(0, errShutdown)
		case r := <-t.chunks:
			r.done(0, errShutdown)
		default:
			for _, r := range t.retry {
				r.done(0, errShutdown)
			}
			return
		}
	}
}

// gather takes what else has arrived, up to the bounds of an epoch. A request
// with catalog changes gets an epoch of its own.
func (t *timeline) gather(first *request) []*request {
	reqs := []*request{first}
	rows, bytes := first.rows, first.bytes
	if len(first.catalog) > 0 {
		return reqs
	}
	for rows < epochRows && bytes < epochBytes {
		var r *request
		select {
		case r = <-t.commits:
		default:
			select {
			case r = <-t.chunks:
			default:
				return reqs
			}
		}
		if len(r.catalog) > 0 {
			t.epoch(reqs)
			return []*request{r}
		}
		reqs = append(reqs, r)
		rows += r.rows
		bytes += r.bytes
	}
	return reqs
}

// epoch logs and applies requests as one epoch.
func (t *timeline) epoch(reqs []*request) {
	reqs = t.valid(reqs)
	rec := merge(reqs)
	if rec.empty() {
		for _, r := range reqs {
			r.done(t.last, nil)
		}
		return
	}
	e := t.next()
	payload, err := rec.encode()
	if err != nil {
		for _, r := range reqs {
			r.done(0, err)
		}
		return
	}
	// An epoch is complete, and its requests are told, when it is both durable
	// and applied, whichever comes last.
	var steps atomic.Int32
	var syncErr error
	step := func() {
		if steps.Add(1) == 2 {
			t.complete(e, reqs, syncErr)
		}
	}
	_, err = t.c.store.Append(storage.LogRecord{Epoch: e, Payload: payload}, func(err error) {
		syncErr = err
		if err == nil {
			columnar.PutSlice(payload) // the log kept it until it was durable
		}
		step()
	})
	if err != nil {
		t.refused(reqs, err)
		return
	}
	t.finish(e, reqs, rec)
	step()
}

// valid refuses commits that must not enter, and gives the other requests.
func (t *timeline) valid(reqs []*request) []*request {
	var written map[plan.ObjectID]bool // if some request asks
	if slices.ContainsFunc(reqs, func(r *request) bool { return len(r.reads) > 0 }) {
		written = map[plan.ObjectID]bool{}
	}
	return slices.DeleteFunc(reqs, func(r *request) bool {
		if t.outdated(r) || t.overtaken(r, written) {
			return true
		}
		for i := 0; written != nil && i < len(r.changes); i++ {
			written[r.changes[i].id] = true
		}
		return false
	})
}

// outdated refuses a commit whose rows do not fit their tables, which have
// another form by now or are gone. (Its locks should have kept them.)
func (t *timeline) outdated(r *request) bool {
	if !r.commit || len(r.catalog) > 0 {
		return false
	}
	for _, ch := range r.changes {
		if ch.delta == nil || t.c.fits(ch) {
			continue
		}
		r.done(0, pgerror.New(pgerror.SerializationFailure, "could not serialize access: a table has been changed or dropped meanwhile").
			WithHint("Run the transaction again."))
		return true
	}
	return false
}

// fits says whether the rows of a change have the columns of their collection.
func (c *Coordinator) fits(ch change) bool {
	coll := c.collection(ch.id)
	return coll != nil && slices.EqualFunc(ch.delta.Cols, coll.kinds, func(v *columnar.Vec, k columnar.Kind) bool { return v.Kind() == k })
}

// refused handles a record that the log did not take: commits fail, chunks of
// sources wait for room.
func (t *timeline) refused(reqs []*request, err error) {
	t.c.log.Error("log refused an epoch", slog.Any("error", err))
	for _, r := range reqs {
		if len(r.positions) > 0 && errors.Is(err, storage.ErrDiskFull) {
			t.retry = append(t.retry, r)
			continue
		}
		r.done(0, diskError(err))
	}
}

// finish applies an accepted epoch.
func (t *timeline) finish(e dataflow.Epoch, reqs []*request, rec *record) {
	t.last = e
	for _, r := range reqs {
		if r.atEpoch != nil {
			r.atEpoch(e)
		}
	}
	changes := t.c.applyIngest(e, rec, t.c.readable())
	t.ingest.done.set(e)
	t.c.notifyClusters(e, changes)
	for _, r := range reqs {
		if r.applied != nil {
			r.applied(e)
		}
	}
	if len(changes) > 0 {
		t.merging = true
	}
	t.c.maybeCheckpoint(e)
}

// complete opens an epoch to readers.
func (t *timeline) complete(e dataflow.Epoch, reqs []*request, err error) {
	if err != nil {
		for _, r := range reqs {
			r.done(0, diskError(err))
		}
		t.c.fail(err)
		return
	}
	t.durable.set(e)
	for _, r := range reqs {
		r.done(e, nil)
	}
}

// merge puts the requests of an epoch into one record.
func merge(reqs []*request) *record {
	if len(reqs) == 1 {
		return &reqs[0].record
	}
	m := &record{positions: map[plan.ObjectID]sources.Position{}}
	for _, r := range reqs {
		m.changes = append(m.changes, r.changes...)
		m.catalog = append(m.catalog, r.catalog...)
		m.snapshots = append(m.snapshots, r.snapshots...)
		for id, st := range r.sequences {
			if m.sequences == nil {
				m.sequences = map[plan.ObjectID]sequenceState{}
			}
			m.sequences[id] = st
		}
		for id, p := range r.positions {
			old := m.positions[id]
			if old == nil {
				old = sources.Position{}
				m.positions[id] = old
			}
			for part, off := range p {
				old[part] = off
			}
		}
	}
	return m
}

// do runs f in the timeline, between two epochs.
func (t *timeline) do(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case t.control <- func() { defer close(done); f() }:
	case <-t.stopped:
		return errShutdown
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	<-done
	return nil
}

// submit hands a request to the timeline; its done is called in any case.
func (t *timeline) submit(ctx context.Context, ch chan *request, r *request) error {
	select {
	case ch <- r:
		return nil
	case <-t.stopped:
		return errShutdown
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// commit enters a request and waits until it is durable.
func (t *timeline) commit(ctx context.Context, r *request) (dataflow.Epoch, error) {
	type result struct {
		e   dataflow.Epoch
		err error
	}
	ch := make(chan result, 1)
	r.commit = true
	r.done = func(e dataflow.Epoch, err error) { ch <- result{e, err} }
	if err := t.submit(ctx, t.commits, r); err != nil {
		return 0, err
	}
	// Once submitted the commit happens or fails by itself: a cancelled client
	// does not change that.
	select {
	case res := <-ch:
		return res.e, res.err
	case <-t.stopped:
		select {
		case res := <-ch:
			return res.e, res.err
		default:
			return 0, errShutdown
		}
	}
}

// rowsOf counts for the bounds of an epoch.
func (r *request) measure() {
	for _, c := range r.changes {
		if c.delta == nil {
			continue
		}
		r.rows += c.delta.N
		for _, v := range c.delta.Cols {
			f, o, d := v.Raw()
			r.bytes += int64(len(f) + 4*len(o) + len(d))
		}
	}
}
