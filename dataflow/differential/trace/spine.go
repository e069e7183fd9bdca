package trace

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// Spine is a collection (one partition of it) as a list of batches that merge
// geometrically. One goroutine owns it and calls Append, Advance, Work and
// Restore; all else may be called from any.
type Spine struct{}

// NewSpine makes an empty spine.
func NewSpine(l *Layout) *Spine { panic("being built") }

// Layout is the shape of its batches.
func (s *Spine) Layout() *Layout { panic("being built") }

// Append takes over a batch whose Lower is at least the spine's last Upper - 1
// (an epoch may come in several batches), and does merge work in proportion.
// An empty batch only advances Upper.
func (s *Spine) Append(b *Batch) { panic("being built") }

// Advance says that everything before upper is complete.
func (s *Spine) Advance(upper dataflow.Epoch) { panic("being built") }

// Upper is the first epoch that is not complete.
func (s *Spine) Upper() dataflow.Epoch { panic("being built") }

// Work merges about fuel rows and reports whether merges are left: for the
// owner's idle time.
func (s *Spine) Work(fuel int) bool { panic("being built") }

// Reader is the current batches, for the owner, until it next calls Append,
// Work, Restore or Replace.
func (s *Spine) Reader() Reader { panic("being built") }

// Snapshot is the content at an epoch, immutable, and kept until Release.
type Snapshot struct{ Reader }

// Release ends the use of the snapshot and of all that aliases it.
func (s *Snapshot) Release() { panic("being built") }

// SnapshotAt is the content at epoch t. It fails if t is not complete
// (t ≥ Upper), or if batches were merged across it because nothing held it.
func (s *Spine) SnapshotAt(t dataflow.Epoch) (*Snapshot, bool) { panic("being built") }

// Hold keeps every epoch ≥ its own readable.
type Hold struct{}

// Hold places a hold at t. It reports false if t is no longer readable.
func (s *Spine) Hold(t dataflow.Epoch) (*Hold, bool) { panic("being built") }

// Advance moves the hold to a later epoch. Release ends it.
func (h *Hold) Advance(t dataflow.Epoch) { panic("being built") }
func (h *Hold) Release()                 { panic("being built") }

// Batches lists the batches, oldest first, each with a reference for the
// caller to Release: what a checkpoint writes.
func (s *Spine) Batches() []*Batch { panic("being built") }

// Restore puts batches, oldest first, into an empty spine, which takes them over.
func (s *Spine) Restore(bs []*Batch) { panic("being built") }

// Replace puts a batch of equal content (re-opened from its block, with its ID
// set) in the place of old, and takes it over. It reports false, and takes
// nothing, if old was merged away meanwhile.
func (s *Spine) Replace(old, new *Batch) bool { panic("being built") }

// Stats describes a spine.
type Stats struct {
	Batches, Rows     int
	Payload, Overhead int64 // bytes
	Merging           int   // rows in unfinished merges
}

// Stats counts.
func (s *Spine) Stats() Stats { panic("being built") }

// Trace is a collection arranged by key and cut in partitions by hash range,
// a spine each: an arrangement, an index, a published table or view.
type Trace struct{}

// New makes an empty trace of so many partitions (a power of two).
func New(l *Layout, partitions int) *Trace { panic("being built") }

// Layout is the shape of its rows; Spines are its partitions.
func (t *Trace) Layout() *Layout  { panic("being built") }
func (t *Trace) Spines() []*Spine { panic("being built") }

// Append sorts, consolidates and adds the changes of an epoch (again for the
// same epoch is allowed), and does not advance Upper past it: see Seal.
func (t *Trace) Append(epoch dataflow.Epoch, ds []*dataflow.Delta) { panic("being built") }

// Seal says that all epochs ≤ epoch are complete.
func (t *Trace) Seal(epoch dataflow.Epoch)           { panic("being built") }
func (t *Trace) Upper() dataflow.Epoch               { panic("being built") }
func (t *Trace) Hold(e dataflow.Epoch) (*Hold, bool) { panic("being built") }

// TraceSnapshot is a Snapshot of every partition at one epoch.
type TraceSnapshot struct{ Parts []*Snapshot }

// SnapshotAt is the content at epoch e; see Spine.SnapshotAt.
func (t *Trace) SnapshotAt(e dataflow.Epoch) (*TraceSnapshot, bool) { panic("being built") }

// Release, Scan and Lookup; Lookup gives the rows of one key (row i of keys).
func (s *TraceSnapshot) Release()                                           { panic("being built") }
func (s *TraceSnapshot) Scan(yield func(*dataflow.Delta) bool)              { panic("being built") }
func (s *TraceSnapshot) Lookup(keys []*columnar.Vec, i int) *dataflow.Delta { panic("being built") }

// Changes gives what changed after epoch `after` up to and including `upTo`:
// both must be readable (held). For subscriptions, sinks and lagging readers.
func (t *Trace) Changes(after, upTo dataflow.Epoch) (*TraceSnapshot, bool) { panic("being built") }
