package differential

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// Operator is the code of a node. How to write one:
//
//   - It is created with c.Add (over streams) or c.AddOver (over arrangements)
//     and gets Step calls only in epochs in which an input has something, or
//     in which it asked to be woken (Node.Wake).
//   - State that must survive a restart is in spines: made by c.NewSpine (one
//     partition each, enumerated by c.Spines in the order of creation), changed
//     with x.Commit. What is derived from it (hash tables) is rebuilt in
//     Restored, which an operator with such state implements.
//   - Partitioned work: x.Exchange to split deltas by key hash, x.ForEach to run
//     partitions on the executor (inline if there are few rows).
type Operator interface{ Step(x *Context) }

// Restorer is implemented by operators that derive state from spines.
type Restorer interface{ Restored(epoch dataflow.Epoch) }

// Node is an operator in its circuit.
type Node struct{}

// Out is the stream of an output port.
func (n *Node) Out(port int) Stream { panic("being built") }

// Wake makes the next Step visit the node even without input.
func (n *Node) Wake() { panic("being built") }

// Add adds an operator over streams, with output ports of the given kinds.
func (c *Circuit) Add(op Operator, in []Stream, out ...[]columnar.Kind) *Node { panic("being built") }

// AddOver adds an operator that reads arrangements: it is stepped when one of
// them has a delta.
func (c *Circuit) AddOver(op Operator, in []*Arrangement, out ...[]columnar.Kind) *Node {
	panic("being built")
}

// NewTrace makes the durable state of an operator: a spine a partition.
func (c *Circuit) NewTrace(kinds []columnar.Kind, key []int) *trace.Trace { panic("being built") }

// Partitions is the number of partitions; Once whether the circuit runs once.
func (c *Circuit) Partitions() int { panic("being built") }
func (c *Circuit) Once() bool      { panic("being built") }

// Context is what an operator sees of the step that runs.
type Context struct{}

// Epoch is the epoch of the step.
func (x *Context) Epoch() dataflow.Epoch { panic("being built") }

// In is what arrived at input i in this step.
func (x *Context) In(i int) []*dataflow.Delta { panic("being built") }

// Emit sends a delta from an output port; empty ones vanish. The delta is
// immutable from now on. From within ForEach use the Emitter given there.
func (x *Context) Emit(port int, d *dataflow.Delta) { panic("being built") }

// Emitter sends from one partition.
type Emitter struct{}

// Emit is Context.Emit.
func (e *Emitter) Emit(port int, d *dataflow.Delta) { panic("being built") }

// ForEach runs f for each partition: on the executor, or inline if rows (the
// work, as a number of rows) is small. What partitions emit keeps the order of
// the partitions.
func (x *Context) ForEach(rows int, f func(p int, out *Emitter)) { panic("being built") }

// Part is a delta of which all rows belong to one partition, with the hash of
// each row's key.
type Part struct {
	*dataflow.Delta
	Hash []uint64
}

// Exchange splits deltas by the hash of the key columns: parts[p] is what
// belongs to partition p. With one partition nothing is copied.
func (x *Context) Exchange(ds []*dataflow.Delta, key []int) (parts [][]Part) { panic("being built") }

// Arrange sorts deltas by the layout of t and cuts them by partition: one
// consolidated batch each (nil if empty), which Commit then adds to t.
func (x *Context) Arrange(t *trace.Trace, ds []*dataflow.Delta) []*trace.Batch { panic("being built") }

// Commit appends batches (one a partition, nil for none) to t at the end of the
// step, so that until then its readers see the state before the step.
func (x *Context) Commit(t *trace.Trace, parts []*trace.Batch) { panic("being built") }

// Old and New are an arrangement's content in partition p before and after
// this step, Delta the difference. They are valid during the step.
func (a *Arrangement) Old(p int) trace.Reader   { panic("being built") }
func (a *Arrangement) New(p int) trace.Reader   { panic("being built") }
func (a *Arrangement) Delta(p int) trace.Reader { panic("being built") }
