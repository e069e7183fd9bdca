package trace

import (
	"math/bits"

	"github.com/streamdb/streamdb/dataflow"
)

// Trace is a collection arranged by key and cut in partitions by hash range,
// a spine each: an arrangement, an index, a published table or view. As with a
// Spine, one goroutine owns it; Hold, SnapshotAt, Changes and Upper are for all.
type Trace struct {
	layout *Layout
	spines []*Spine
	shared *shared
}

// New makes an empty trace of so many partitions (a power of two; an Unkeyed
// one has one).
func New(l *Layout, partitions int) *Trace { return NewWithClock(l, partitions, new(Clock)) }

// NewWithClock is New for a trace that advances together with others.
func NewWithClock(l *Layout, partitions int, clock *Clock) *Trace {
	if bits.OnesCount(uint(partitions)) != 1 || l.Unkeyed && partitions != 1 {
		panic("trace: number of partitions must be a power of two, and 1 without a key")
	}
	t := &Trace{layout: l, spines: make([]*Spine, partitions), shared: &shared{clock: clock}}
	for p := range t.spines {
		t.spines[p] = &Spine{layout: l, shared: t.shared}
	}
	return t
}

// Layout is the shape of its rows.
func (t *Trace) Layout() *Layout { return t.layout }

// Spines are its partitions.
func (t *Trace) Spines() []*Spine { return t.spines }

// Append sorts, consolidates and adds changes of an epoch (again for the same
// epoch is allowed). The epoch is not complete, and readable, until Seal.
func (t *Trace) Append(epoch dataflow.Epoch, ds []*dataflow.Delta) {
	t.AppendBatches(Build(t.layout, ds, len(t.spines), Description{Lower: epoch, Upper: epoch + 1}, nil))
}

// AppendBatches adds batches of one epoch, one a partition (nil: none). It takes
// them over.
func (t *Trace) AppendBatches(parts []*Batch) {
	for p, b := range parts {
		if b != nil {
			t.spines[p].Append(b)
		}
	}
}

// Seal says that all epochs ≤ epoch are complete.
func (t *Trace) Seal(epoch dataflow.Epoch) { t.shared.clock.Advance(epoch + 1) }

// Upper is the first epoch that is not complete.
func (t *Trace) Upper() dataflow.Epoch { return t.shared.clock.Upper() }

// Work merges about fuel rows in each partition and reports whether merges are left.
func (t *Trace) Work(fuel int) bool {
	left := false
	for _, s := range t.spines {
		left = s.Work(fuel) || left
	}
	return left
}

// Hold keeps epoch e readable, in all partitions. It reports false if e is no
// longer readable. An epoch that is still to come can be held.
func (t *Trace) Hold(e dataflow.Epoch) (*Hold, bool) { return t.shared.hold(e, false, t.spines) }

// HoldFrom keeps every epoch ≥ e that is readable now, or still to come,
// readable: nothing after e merges. For readers that are never far behind.
func (t *Trace) HoldFrom(e dataflow.Epoch) (*Hold, bool) { return t.shared.hold(e, true, t.spines) }

// TraceSnapshot is a Snapshot of every partition, at one epoch.
type TraceSnapshot struct {
	layout *Layout
	Parts  []*Snapshot
}

// SnapshotAt is the content at epoch e; see Spine.SnapshotAt.
func (t *Trace) SnapshotAt(e dataflow.Epoch) (*TraceSnapshot, bool) {
	return t.snapshot(true, 0, e)
}

// Changes is what changed after epoch `after` up to and including upTo, both of
// which must be readable (so hold `after`): for subscriptions, sinks and all who
// read at their own pace.
func (t *Trace) Changes(after, upTo dataflow.Epoch) (*TraceSnapshot, bool) {
	return t.snapshot(false, after, upTo)
}

func (t *Trace) snapshot(all bool, after, upTo dataflow.Epoch) (*TraceSnapshot, bool) {
	t.shared.mu.Lock()
	defer t.shared.mu.Unlock()
	for _, s := range t.spines {
		if !s.readable(upTo) || !all && !s.readable(after) {
			return nil, false
		}
	}
	out := &TraceSnapshot{layout: t.layout, Parts: make([]*Snapshot, len(t.spines))}
	for p, s := range t.spines {
		out.Parts[p] = s.between(all, after, upTo)
		for _, b := range out.Parts[p].Batches {
			b.Expose()
		}
	}
	return out, true
}

// Borrow gives the batches of each partition as of epoch `after` (nil for none
// at all) and the changes from then up to upTo, for a reader who copies what it
// keeps. It releases them when it is done.
func (t *Trace) Borrow(after *dataflow.Epoch, upTo dataflow.Epoch) (old, delta *TraceSnapshot, ok bool) {
	t.shared.mu.Lock()
	defer t.shared.mu.Unlock()
	for _, s := range t.spines {
		if !s.readable(upTo) || after != nil && !s.readable(*after) {
			return nil, nil, false
		}
	}
	old = &TraceSnapshot{layout: t.layout, Parts: make([]*Snapshot, len(t.spines))}
	delta = &TraceSnapshot{layout: t.layout, Parts: make([]*Snapshot, len(t.spines))}
	for p, s := range t.spines {
		if after == nil {
			old.Parts[p] = &Snapshot{Reader{Layout: t.layout}}
			delta.Parts[p] = s.between(true, 0, upTo)
			continue
		}
		old.Parts[p] = s.between(true, 0, *after)
		delta.Parts[p] = s.between(false, *after, upTo)
	}
	return old, delta, true
}

// Release ends the use of the snapshots and of all that aliases them.
func (s *TraceSnapshot) Release() {
	for _, p := range s.Parts {
		p.Release()
	}
}

// Len is the number of rows before summing up across batches.
func (s *TraceSnapshot) Len() int {
	n := 0
	for _, p := range s.Parts {
		n += p.Len()
	}
	return n
}

// Scan gives the content in deltas; see Reader.Scan.
func (s *TraceSnapshot) Scan(yield func(*dataflow.Delta) bool) {
	going := true
	for _, p := range s.Parts {
		p.Scan(func(d *dataflow.Delta) bool {
			going = yield(d)
			return going
		})
		if !going {
			return
		}
	}
}

// ScanConsolidated gives the content in deltas of which none takes back a row of
// another; see Reader.ScanConsolidated.
func (s *TraceSnapshot) ScanConsolidated(yield func(*dataflow.Delta) bool) {
	going := true
	for _, p := range s.Parts {
		p.ScanConsolidated(func(d *dataflow.Delta) bool {
			going = yield(d)
			return going
		})
		if !going {
			return
		}
	}
}
