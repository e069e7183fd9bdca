package coord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// How soon a sink that could not deliver tries again: after the first time, doubling
// to the last.
const (
	sinkRetryFirst = 50 * time.Millisecond
	sinkRetryLast  = 5 * time.Second
)

// errSinkAgain says that a delivery is to be tried again at once: what it went by
// has changed meanwhile.
var errSinkAgain = errors.New("the sink or its table has changed meanwhile")

// runningSink delivers what a sink's query has more or less than what was delivered.
// One goroutine runs it; its session is its own.
type runningSink struct {
	c      *Coordinator
	id     plan.ObjectID
	cancel context.CancelFunc
	done   chan struct{}
	kick   chan struct{} // try at once
	// tried is the epoch up to which everything has been delivered, or was tried to.
	tried progress

	// Owned by the goroutine.
	s         *Session
	committed dataflow.Epoch // of the last delivery: pending is not read before it
	clean     dataflow.Epoch // nothing was pending then
	cleanOf   *collection
	into      *planner.Write // of boundIn
	changelog plan.Rel       // what to insert for changes; nil: what they are
	boundIn   *catalog.Snapshot

	inserted, deleted, deliveries, failures atomic.Int64

	mu    sync.Mutex
	err   error // why it does not deliver; nil: it does
	since time.Time
}

// startSink runs a sink in the background, if it does not run already.
func (c *Coordinator) startSink(id plan.ObjectID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sinks[id] != nil {
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	k := &runningSink{c: c, id: id, cancel: cancel, done: make(chan struct{}), kick: make(chan struct{}, 1), since: c.opts.Now(),
		s: &Session{c: c, user: "streamdb", set: newSettings(), started: c.opts.Now()}}
	c.sinks[id] = k
	c.tasks.Go(func() {
		defer close(k.done)
		k.run(ctx)
	})
}

// stopSink ends a dropped sink. A delivery that is on its way cannot enter any more.
func (c *Coordinator) stopSink(id plan.ObjectID) {
	c.mu.Lock()
	k := c.sinks[id]
	delete(c.sinks, id)
	c.mu.Unlock()
	if k != nil {
		k.cancel()
	}
}

// stop ends the sink's goroutine and waits for it.
func (k *runningSink) stop() {
	k.cancel()
	<-k.done
}

func (k *runningSink) run(ctx context.Context) {
	retry := sinkRetryFirst
	for ctx.Err() == nil && k.c.catalog.Load().ByID(k.id) != nil {
		err := k.round(ctx)
		if ctx.Err() != nil || errors.Is(err, errVersionGone) {
			continue
		}
		if errors.Is(err, errSinkAgain) {
			time.Sleep(time.Millisecond)
			continue
		}
		if err == nil {
			k.note(nil)
			retry = sinkRetryFirst
			continue
		}
		t := time.NewTimer(retry)
		select {
		case <-t.C:
		case <-k.kick:
		case <-ctx.Done():
		}
		t.Stop()
		retry = min(2*retry, sinkRetryLast)
	}
}

// note keeps how the last attempt went.
func (k *runningSink) note(err error) {
	k.mu.Lock()
	old := k.err
	if (old == nil) != (err == nil) {
		k.since = k.c.opts.Now()
	}
	k.err = err
	k.mu.Unlock()
	if err == nil {
		return
	}
	k.failures.Add(1)
	if old == nil || old.Error() != err.Error() {
		name := ""
		if o := k.c.catalog.Load().ByID(k.id); o != nil {
			name = o.Name
		}
		k.c.log.Warn("sink", slog.String("name", name), slog.String("error", err.Error()))
	}
}

// status is why the sink does not deliver, nil if it does, and since when.
func (k *runningSink) status() (since time.Time, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.since, k.err
}

// round delivers once, or waits until there is something to deliver.
func (k *runningSink) round(ctx context.Context) error {
	coll := k.c.collection(k.id)
	if coll == nil { // being made anew
		return errSinkAgain
	}
	select {
	case <-coll.ready:
	case <-coll.dropped:
		return errSinkAgain
	case <-ctx.Done():
		return nil
	}
	if err := coll.stage.done.wait(ctx, max(dataflow.Epoch(coll.watch.at.Load()), k.committed)); err != nil {
		return err
	}
	at := coll.stage.done.get()
	// What has changed up to there was noted before: it is to be looked at after.
	if k.cleanOf != coll || dataflow.Epoch(coll.watch.at.Load()) > k.clean {
		err := k.deliver(ctx, coll, at)
		if errors.Is(err, errSinkAgain) || errors.Is(err, errVersionGone) || ctx.Err() != nil {
			return err
		}
		if err != nil {
			k.note(err) // before who waits for the attempt goes on
			k.tried.set(at)
		}
		if err != nil || k.cleanOf != coll || k.clean != at {
			return err // at once again: there may be more
		}
	}
	k.note(nil)
	k.tried.set(at)
	select {
	case <-coll.watch.wake:
	case <-coll.dropped:
	case <-k.kick:
	case <-ctx.Done():
	}
	return nil
}

// deliver brings what is pending at an epoch, or a portion of it, into the table.
func (k *runningSink) deliver(ctx context.Context, coll *collection, at dataflow.Epoch) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = k.s.panicked(r)
		}
		k.s.rollbackTx()
	}()
	if err := k.c.memory.wait(ctx); err != nil {
		return err
	}
	cat := k.c.catalog.Load()
	pending, err := k.take(coll, at)
	if err != nil {
		return err
	}
	if pending.N == 0 {
		k.clean, k.cleanOf = at, coll
		return nil
	}
	o := cat.ByID(k.id)
	if o == nil || k.c.collection(k.id) != coll {
		return errSinkAgain
	}
	if err := k.bind(cat, o); err != nil {
		return err
	}
	k.s.beginTx()
	w, err := k.write(ctx, o, pending)
	if err != nil {
		return sinkConflict(err)
	}
	if k.c.catalog.Load().ByID(k.id) != o {
		return errSinkAgain
	}
	if err := k.s.commitTx(ctx); err != nil {
		return sinkConflict(err)
	}
	k.committed = k.s.lastWrite
	k.deliveries.Add(1)
	for _, c := range w.changes {
		if c.t.ID == o.Sink.Into {
			k.inserted.Add(int64(c.rows.N))
			k.deleted.Add(int64(c.gone.N))
		}
	}
	return nil
}

// sinkConflict is errSinkAgain for an error that comes of others being at work on the
// same tables.
func sinkConflict(err error) error {
	if e := pgerror.As(err); e.Code == pgerror.DeadlockDetected || e.Code == pgerror.SerializationFailure {
		return errSinkAgain
	}
	return err
}

// take copies what is pending at an epoch, or a portion of it. Rows of one key come
// together.
func (k *runningSink) take(coll *collection, at dataflow.Epoch) (*dataflow.Delta, error) {
	out := &dataflow.Delta{}
	sn, err := coll.snapshot(at)
	if sn == nil || err != nil {
		return out, err
	}
	defer sn.Release()
	var parts []columnar.Batch
	size := 0
	sn.ScanConsolidated(func(d *dataflow.Delta) bool {
		var idx []uint32
		times := 0
		for i := range d.N {
			if x := d.Diff(i); x != 0 {
				idx = append(idx, uint32(i))
				out.Diffs = append(out.Diffs, x)
				times += int(max(x, -x))
			}
		}
		if len(idx) > 0 {
			b := d.Gather(idx)
			parts = append(parts, b)
			size += b.MemSize() / len(idx) * times
		}
		return size < k.c.opts.SinkPortion
	})
	ptrs := make([]*columnar.Batch, len(parts))
	for i := range parts {
		ptrs[i] = &parts[i]
	}
	if len(parts) > 0 {
		out.Batch = columnar.ConcatBatches(coll.kinds, ptrs...)
	}
	return out, nil
}

// bind finds out how rows of the query become rows of the table.
func (k *runningSink) bind(cat *catalog.Snapshot, o *catalog.Object) error {
	if k.boundIn == cat {
		return nil
	}
	t := cat.ByID(o.Sink.Into)
	if t == nil {
		return errSinkAgain
	}
	ctx := k.s.bindContext(nil)
	ctx.Catalog = cat
	from := o.Columns
	if c := o.Sink.Changelog; c != nil {
		q, err := bindChangelog(cat, o, c)
		if err != nil {
			return err
		}
		if k.changelog, err = planner.Optimize(q.Rel, k.s.optimizeOptions()); err != nil {
			return err
		}
		from = c.Columns
	}
	into, err := planner.BindInto(ctx, t, o.Sink.Columns, planColumns(&catalog.Object{Columns: from}))
	if err != nil {
		return noPosition(err)
	}
	if c := into.Conflict; c != nil && c.Rel != nil {
		if c.Rel, err = planner.Optimize(c.Rel, k.s.optimizeOptions()); err != nil {
			return err
		}
	}
	k.into, k.boundIn = into, cat
	return nil
}

// awaitSinks waits until the sinks have delivered what their queries hold at e, and
// what follows from that, or cannot. It gives the errors of those that cannot.
func (c *Coordinator) awaitSinks(ctx context.Context, e dataflow.Epoch) (failed []*pgerror.Error, err error) {
	c.mu.RLock()
	n := len(c.sinks)
	c.mu.RUnlock()
	if n == 0 {
		return nil, nil
	}
	order, err := sinkOrder(c.catalog.Load())
	if err != nil {
		return nil, err
	}
	for _, o := range order {
		c.mu.RLock()
		k := c.sinks[o.ID]
		c.mu.RUnlock()
		if k == nil {
			continue
		}
		if err := k.await(ctx, e); err != nil {
			return nil, err
		}
		if _, err := k.status(); err != nil {
			f := *pgerror.As(err)
			f.Message = fmt.Sprintf("sink \"%s\" has stopped: %s", o.Name, f.Message)
			failed = append(failed, &f)
		}
		e = max(e, c.readEpoch()) // its deliveries are to be seen by the next
	}
	return failed, nil
}

// await waits until the sink has tried to deliver what is pending at e.
func (k *runningSink) await(ctx context.Context, e dataflow.Epoch) error {
	for k.tried.get() < e {
		select {
		case k.kick <- struct{}{}:
		default:
		}
		again, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		err := k.tried.wait(again, e)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-k.done:
			return nil
		default:
		}
	}
	return nil
}

// sinkRows are the rows of streamdb_internal.sinks.
func (s *Session) sinkRows(cols []catalog.Column) *columnar.Batch {
	r := newRowSet(cols)
	s.c.mu.RLock()
	sinks := maps.Clone(s.c.sinks)
	s.c.mu.RUnlock()
	for _, o := range s.snapshot().Objects() {
		k, coll := sinks[o.ID], s.c.collection(o.ID)
		if k == nil || coll == nil {
			continue
		}
		t := s.snapshot().ByID(o.Sink.Into)
		state := "running"
		var text, code any
		since, err := k.status()
		switch {
		case err != nil:
			e := pgerror.As(err)
			state, text, code = "stopped", e.Message, string(e.Code)
			if e.Detail != "" {
				text = e.Message + ": " + e.Detail
			}
		case !coll.isReady():
			state = "hydrating"
		}
		r.add(int64(o.ID), o.Schema, o.Name, t.Schema, t.Name, state, text, code, since,
			s.c.pendingRows(coll), k.deliveries.Load(), k.inserted.Load(), k.deleted.Load(), k.failures.Load())
	}
	return r.batch()
}

// pendingRows is how many rows are still to come or to go by what is pending.
func (c *Coordinator) pendingRows(coll *collection) int64 {
	sn, err := snapshotTrace(coll.rows, coll.stage.done.get())
	if err != nil || sn == nil {
		return 0
	}
	defer sn.Release()
	n := int64(0)
	sn.ScanConsolidated(func(d *dataflow.Delta) bool {
		for i := range d.N {
			n += max(d.Diff(i), -d.Diff(i))
		}
		return true
	})
	return n
}
