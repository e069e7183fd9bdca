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
//     after it asked to be woken (Node.Wake).
//   - State that must survive a restart is in traces made by c.NewTrace
//     (enumerated by c.Spines in the order of creation) and changed with
//     x.Commit. What is derived from it (hash tables) is rebuilt in Restored,
//     which an operator with such state implements.
//   - Partitioned work: x.Exchange splits deltas by key hash, x.ForEach runs
//     partitions on the executor (inline if there are few rows).
type Operator interface{ Step(x *Context) }

// Restorer is implemented by operators that derive state from traces.
type Restorer interface{ Restored(epoch dataflow.Epoch) }

// flusher is implemented by operators that write behind: flush brings their
// traces up to date as of an epoch that is complete, after which Restored may
// drop what they hold besides, cached bytes of it. backlog is about how many
// rows flush has to write; with a limit it may leave some for later.
type flusher interface {
	Restorer
	flush(epoch dataflow.Epoch, limit int)
	backlog() int
	cached() int64
}

// forgetter is implemented by operators that hold what they can make again from
// their arrangements at any time: cached is about how many bytes.
type forgetter interface {
	forget()
	cached() int64
}

// fewToFlush is a backlog that a checkpoint does not notice. Tests lower it.
var fewToFlush = 1 << 15

// Node is an operator in its circuit.
type Node struct {
	c   *Circuit
	id  int
	op  Operator
	in  [][]*dataflow.Delta // what arrived for the coming step, by input
	out []*port
}

// Out is the stream of an output port.
func (n *Node) Out(port int) Stream { return Stream{n.out[port]} }

// Wake makes the next Step (or this one, if the node's turn has not come yet)
// visit the node even without input.
func (n *Node) Wake() { n.c.wake(n) }

// Add adds an operator over streams, with output ports of the given kinds.
func (c *Circuit) Add(op Operator, in []Stream, out ...[]columnar.Kind) *Node {
	n := &Node{c: c, id: len(c.nodes), op: op}
	if len(in) > 0 {
		n.in = make([][]*dataflow.Delta, len(in))
	}
	for i, s := range in {
		if s.port.node.c != c {
			panic("differential: stream of another circuit")
		}
		s.port.readers = append(s.port.readers, edge{n, i})
	}
	n.out = make([]*port, len(out))
	for i, k := range out {
		n.out[i] = &port{node: n, kinds: k}
	}
	c.nodes = append(c.nodes, n)
	if n.id>>6 == len(c.dirty) {
		c.dirty = append(c.dirty, 0)
	}
	return n
}

// AddOver adds an operator that reads arrangements: it is stepped when one of
// them has a delta.
func (c *Circuit) AddOver(op Operator, in []*Arrangement, out ...[]columnar.Kind) *Node {
	n := c.Add(op, nil, out...)
	for _, a := range in {
		if a.c != c {
			panic("differential: arrangement of another circuit")
		}
		a.readers = append(a.readers, n)
	}
	return n
}

// NewTrace makes the durable state of an operator: a spine a partition.
func (c *Circuit) NewTrace(kinds []columnar.Kind, key []int) *trace.Trace {
	t := trace.NewWithClock(trace.NewLayout(kinds, key), c.opts.Partitions, c.clock)
	c.traces = append(c.traces, t)
	return t
}

// Partitions is the number of partitions.
func (c *Circuit) Partitions() int { return c.opts.Partitions }

// Once reports whether the circuit runs once and is thrown away.
func (c *Circuit) Once() bool { return c.opts.Once }

// parallelRows is how many rows make it worth to wake another processor.
const parallelRows = 1 << 14

// Context is what an operator sees of the step that runs.
type Context struct {
	c     *Circuit
	node  *Node
	emits []Emitter // of ForEach in parallel
}

// Epoch is the epoch of the step.
func (x *Context) Epoch() dataflow.Epoch { return x.c.epoch }

// In is what arrived at input i in this step.
func (x *Context) In(i int) []*dataflow.Delta { return x.node.in[i] }

// Emit sends a delta from an output port; empty ones vanish. The delta is
// immutable from now on. From within ForEach use the Emitter given there.
func (x *Context) Emit(port int, d *dataflow.Delta) {
	if d == nil || d.N == 0 {
		return
	}
	if x.c.opts.Made != nil {
		x.c.opts.Made(d.MemSize())
	}
	x.send(port, d)
}

// send passes a delta on to the readers of a port.
func (x *Context) send(port int, d *dataflow.Delta) {
	for _, e := range x.node.out[port].readers {
		e.node.in[e.input] = append(e.node.in[e.input], d)
		x.c.wake(e.node)
	}
}

// Emitter sends from one piece of parallel work.
type Emitter struct {
	x    *Context // set: emit at once
	held []sent
	made func(bytes int) // Options.Made
}

type sent struct {
	port int
	d    *dataflow.Delta
}

// Emit is Context.Emit.
func (e *Emitter) Emit(port int, d *dataflow.Delta) {
	if e.x != nil {
		e.x.Emit(port, d)
		return
	}
	if d != nil && d.N > 0 {
		if e.made != nil {
			e.made(d.MemSize())
		}
		e.held = append(e.held, sent{port, d})
	}
}

// parallel reports whether work over so many rows goes to the executor.
func (x *Context) parallel(rows int) bool { return rows >= parallelRows && !x.c.inline }

// runner is the executor, or nil to stay in this goroutine.
func (x *Context) runner(rows int) trace.Runner {
	if x.parallel(rows) {
		return x.c.opts.Exec.Run
	}
	return nil
}

// ForEach runs f for each partition: on the executor, or inline if rows (the
// work, as a number of rows) is small. What partitions emit keeps the order of
// the partitions.
func (x *Context) ForEach(rows int, f func(p int, out *Emitter)) {
	x.each(x.c.opts.Partitions, rows, f)
}

// each is ForEach over any n pieces of work.
func (x *Context) each(n, rows int, f func(i int, out *Emitter)) {
	if n == 1 || !x.parallel(rows) {
		out := Emitter{x: x}
		for i := range n {
			f(i, &out)
		}
		return
	}
	for len(x.emits) < n {
		x.emits = append(x.emits, Emitter{made: x.c.opts.Made})
	}
	emits := x.emits[:n]
	x.c.opts.Exec.Run(n, func(i int) { f(i, &emits[i]) })
	for i := range emits {
		e := &emits[i]
		for k, s := range e.held {
			e.held[k] = sent{}
			x.send(s.port, s.d)
		}
		e.held = e.held[:0]
	}
}

// Part is a delta of which all rows belong to one partition, with the hash of
// each row's key.
type Part struct {
	*dataflow.Delta
	Hash []uint64
}

// Exchange splits deltas by the hash of the key columns: parts[p] is what
// belongs to partition p. With one partition nothing is copied.
func (x *Context) Exchange(ds []*dataflow.Delta, key []int) (parts [][]Part) {
	n := x.c.opts.Partitions
	parts = make([][]Part, n)
	if n == 1 {
		parts[0] = make([]Part, 0, len(ds))
	}
	for _, d := range ds {
		if d.N == 0 {
			continue
		}
		cols := make([]*columnar.Vec, len(key))
		for i, c := range key {
			cols[i] = d.Cols[c]
		}
		hash := make([]uint64, d.N)
		columnar.HashCols(cols, d.N, hash)
		if n == 1 {
			parts[0] = append(parts[0], Part{d, hash})
			continue
		}
		idx, ends := columnar.Scatter(hash, n)
		lo := 0
		for p, hi := range ends {
			if hi > lo {
				parts[p] = append(parts[p], takeRows(d, hash, idx[lo:hi]))
			}
			lo = hi
		}
	}
	return parts
}

// takeRows is a part of the given rows.
func takeRows(d *dataflow.Delta, hash []uint64, idx []uint32) Part {
	if len(idx) == d.N {
		return Part{d, hash}
	}
	out := Part{&dataflow.Delta{Batch: d.Gather(idx)}, make([]uint64, len(idx))}
	for i, r := range idx {
		out.Hash[i] = hash[r]
	}
	out.Diffs = gatherDiffs(d.Diffs, idx)
	return out
}

// gatherDiffs is the diffs of the given rows.
func gatherDiffs(diffs []dataflow.Diff, idx []uint32) []dataflow.Diff {
	if diffs == nil {
		return nil
	}
	out := make([]dataflow.Diff, len(idx))
	for i, r := range idx {
		out[i] = diffs[r]
	}
	return out
}

// countRows is the number of rows of deltas.
func countRows(ds []*dataflow.Delta) int {
	n := 0
	for _, d := range ds {
		n += d.N
	}
	return n
}

// Arrange sorts deltas by the layout of t and cuts them by partition: one
// consolidated batch each (nil if empty), which Commit then adds to t.
func (x *Context) Arrange(t *trace.Trace, ds []*dataflow.Delta) []*trace.Batch {
	e := x.c.epoch
	return trace.Build(t.Layout(), ds, len(t.Spines()), trace.Description{Lower: e, Upper: e + 1}, x.runner(countRows(ds)))
}

type commit struct {
	t     *trace.Trace
	parts []*trace.Batch
}

// Commit appends batches (one a partition, nil for none) to t at the end of the
// step, so that until then its readers see the state before the step.
func (x *Context) Commit(t *trace.Trace, parts []*trace.Batch) {
	x.c.commits = append(x.c.commits, commit{t, parts})
}

type probed struct {
	t    *trace.Trace
	rows int
}

// Probed tells that the step looked up so many rows in an arrangement: after
// the step its batches are merged the more.
func (x *Context) Probed(a *Arrangement, rows int) {
	if a.trace != nil && a.im == nil && rows > 0 {
		x.c.probed = append(x.c.probed, probed{a.trace, rows})
	}
}
