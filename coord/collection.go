package coord

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// stage is what brings collections forward in time: the timeline's ingestion
// for tables and sources, a cluster for views and indexes.
type stage struct {
	loop *cluster // nil for ingestion
	done progress // every change at or before it is in the stage's collections

	// gaps are epochs at which the stage's collections were never complete, as it
	// took several in one step. Replaced as a whole, by the stage only.
	gaps atomic.Pointer[[]gap]
}

// gap is the epochs between two that a stage has been at.
type gap struct{ after, to dataflow.Epoch }

// maxGaps is how many gaps are remembered one by one; what is older counts as one.
const maxGaps = 64

// passOver says that the stage goes from one epoch to another at once. It comes
// before done does.
func (s *stage) passOver(after, to dataflow.Epoch) {
	if to <= after+1 {
		return
	}
	var gs []gap
	if old := s.gaps.Load(); old != nil {
		gs = slices.Clone(*old)
	}
	if len(gs) == maxGaps {
		gs = slices.Delete(gs, 0, 1)
		gs[0].after = 0
	}
	gs = append(gs, gap{after, to})
	s.gaps.Store(&gs)
}

// passed says whether the stage, which has done e, was never at e, and what is the
// next epoch that it has been at.
func (s *stage) passed(e dataflow.Epoch) (to dataflow.Epoch, ok bool) {
	gs := s.gaps.Load()
	if gs == nil {
		return 0, false
	}
	for i := len(*gs) - 1; i >= 0 && (*gs)[i].to > e; i-- {
		if g := (*gs)[i]; e > g.after {
			return g.to, true
		}
	}
	return 0, false
}

// collection is a published collection: a table, a source, a materialized view
// or an index. One goroutine at a time appends (its stage's, or its
// hydration's before that).
type collection struct {
	id    plan.ObjectID
	kinds []columnar.Kind
	key   []int
	rows  *trace.Trace
	errs  *trace.Trace // row errors: code, message
	stage *stage

	// hold keeps the last readable epoch readable while newer ones come in. A DROP may
	// release it while a hydration still appends: holdMu.
	holdMu  sync.Mutex
	hold    *trace.Hold
	errHold *trace.Hold

	// ready is closed when the collection has its content: a view when it is
	// hydrated, a source when its snapshot is complete.
	ready     chan struct{}
	readyOnce sync.Once
	readyAt   atomic.Uint64 // the epoch at which it got its content
	dropped   chan struct{}
	dropOnce  sync.Once

	temporary bool // of a subscription: not in the catalog, not checkpointed

	watch *watch // who is to be told of changes; nil: nobody

	failed atomic.Pointer[error] // why the collection cannot be read any more

	rowCount atomic.Int64 // sum of diffs, for statistics and the planner
	errCount atomic.Int64
	updates  atomic.Int64
	records  atomic.Int64  // taken from a source, ever
	lastAt   atomic.Uint64 // epoch of the last change
}

func newCollection(id plan.ObjectID, kinds []columnar.Kind, key []int, appendOnly bool, partitions int, st *stage) *collection {
	l := trace.NewLayout(kinds, key)
	if len(key) == 0 {
		l.Unkeyed = appendOnly
		partitions = 1
	}
	return &collection{
		id: id, kinds: kinds, key: key, stage: st,
		rows:    trace.New(l, partitions),
		errs:    trace.New(trace.NewLayout(differential.ErrorKinds, []int{0, 1}), 1),
		ready:   make(chan struct{}),
		dropped: make(chan struct{}),
	}
}

// watch tells a reader of a collection that there are changes up to an epoch.
type watch struct {
	at   atomic.Uint64
	wake chan struct{}
}

func (w *watch) note(e dataflow.Epoch) {
	w.at.Store(uint64(e))
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (c *collection) setReady() { c.readyOnce.Do(func() { close(c.ready) }) }
func (c *collection) setDropped() {
	c.dropOnce.Do(func() {
		close(c.dropped)
		c.releaseHolds()
	})
}

func (c *collection) releaseHolds() {
	c.holdMu.Lock()
	defer c.holdMu.Unlock()
	if c.hold != nil {
		c.hold.Release()
		c.hold = nil
	}
	if c.errHold != nil {
		c.errHold.Release()
		c.errHold = nil
	}
}

func (c *collection) isDropped() bool {
	select {
	case <-c.dropped:
		return true
	default:
		return false
	}
}

func (c *collection) isReady() bool {
	select {
	case <-c.ready:
		return true
	default:
		return false
	}
}

// append adds the changes of epoch e and completes it. readable is the newest
// epoch that readers may ask for.
func (c *collection) append(e dataflow.Epoch, rows, errs []*dataflow.Delta, readable dataflow.Epoch) {
	if len(rows) > 0 {
		c.advanceHold(c.rows, &c.hold, readable)
		c.rows.Append(e, rows)
		c.rows.Seal(e)
		n, u := countDiffs(rows)
		c.rowCount.Add(n)
		c.updates.Add(u)
		c.lastAt.Store(uint64(e))
	}
	if len(errs) > 0 {
		c.advanceHold(c.errs, &c.errHold, readable)
		c.errs.Append(e, errs)
		c.errs.Seal(e)
		n, _ := countDiffs(errs)
		c.errCount.Add(n)
	}
	if c.watch != nil && len(rows)+len(errs) > 0 {
		c.watch.note(e)
	}
}

// advanceHold moves a trace's hold to an epoch, which may still be to come, or
// places one there that keeps all later epochs too; none if the collection is dropped.
func (c *collection) advanceHold(t *trace.Trace, h **trace.Hold, at dataflow.Epoch) {
	c.holdMu.Lock()
	defer c.holdMu.Unlock()
	if *h != nil {
		(*h).Advance(at)
		return
	}
	select {
	case <-c.dropped:
		return
	default:
	}
	if n, ok := t.HoldFrom(at); ok {
		*h = n
	}
}

func countDiffs(ds []*dataflow.Delta) (sum, updates int64) {
	for _, d := range ds {
		updates += int64(d.N)
		if d.Diffs == nil {
			sum += int64(d.N)
			continue
		}
		for _, x := range d.Diffs {
			sum += x
		}
	}
	return sum, updates
}

// errVersionGone says that an epoch is no longer readable: the read must pick
// a newer one.
var errVersionGone = errors.New("epoch is no longer readable")

// snapshotTrace reads a trace at e, where every change at or before e is known
// to be in it.
func snapshotTrace(t *trace.Trace, e dataflow.Epoch) (*trace.TraceSnapshot, error) {
	u := t.Upper()
	if u == 0 {
		return nil, nil // nothing was ever there
	}
	s, ok := t.SnapshotAt(min(e, u-1))
	if !ok {
		return nil, errVersionGone
	}
	return s, nil
}

// await waits until the collection has its content and its stage has reached e.
func (c *collection) await(ctx context.Context, e dataflow.Epoch) error {
	if !c.isReady() {
		select {
		case <-c.ready:
		case <-c.dropped:
			return pgerror.New(pgerror.UndefinedTable, "relation %d was dropped", c.id)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return c.stage.done.wait(ctx, e)
}

// snapshot is the content at e, nil if it was always empty. A collection with
// row errors at e cannot be read: one of the errors is returned.
func (c *collection) snapshot(e dataflow.Epoch) (*trace.TraceSnapshot, error) {
	if f := c.failed.Load(); f != nil {
		return nil, *f
	}
	if err := c.rowError(e); err != nil {
		return nil, err
	}
	return snapshotTrace(c.rows, e)
}

// rowError is one of the row errors at e as an error, nil if there are none.
func (c *collection) rowError(e dataflow.Epoch) error {
	s, err := snapshotTrace(c.errs, e)
	if s == nil || err != nil {
		return err
	}
	defer s.Release()
	for _, p := range s.Parts {
		cur := p.Cursor()
		for ; cur.KeyValid(); cur.StepKey() {
			for ; cur.ValValid(); cur.StepVal() {
				if cur.Diff() > 0 {
					ch, i := cur.Row()
					return expr.ErrorAt(&ch.Batch, i)
				}
			}
		}
	}
	return nil
}

func (c *collection) String() string { return fmt.Sprintf("collection %d", c.id) }

// spines lists the durable state of the published collection.
func (c *collection) spines() []*trace.Spine {
	return append(c.rows.Spines(), c.errs.Spines()...)
}
