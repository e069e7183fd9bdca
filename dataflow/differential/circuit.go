package differential

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// Executor runs n independent pieces of work, possibly in parallel, and
// returns when all are done.
type Executor interface{ Run(n int, f func(i int)) }

// Inline is the Executor that runs in its caller.
type Inline struct{}

// Run calls f for 0..n-1 in order.
func (Inline) Run(n int, f func(i int)) {
	for i := range n {
		f(i)
	}
}

// Options of a circuit; the zero value is good.
type Options struct {
	Partitions int      // parts of the key space, a power of two; 0 is 1
	Exec       Executor // nil is Inline
	// Once makes a circuit that is given all its input at one epoch and then
	// thrown away: operators take cheaper algorithms and keep no state.
	Once bool
	// Poll, if set, is called before each operator and each round of a
	// recursion. It may panic to abandon the circuit.
	Poll func()
	// Stopped, if set, says that nobody wants the result any more. Joins ask
	// it from time to time, from many goroutines, and then leave off.
	Stopped func() bool
	// Portion is about how many bytes a join makes in a circuit that runs once
	// before they are passed on; 0 is 32 MiB.
	Portion int
	// BlockRows is how many rows a block of a large group's index has (see
	// orderIndex), and so how large such a group is; 0 is a good number.
	BlockRows int
	// Made, if set, is told the bytes of what operators emit.
	Made func(bytes int)
}

// Circuit is a dataflow: operators joined by streams, run one epoch at a time
// by Step. Operators are added bottom-up, so that their order of creation is a
// topological one; a step visits only those that have something to do, found in
// a bitmap, so that an idle operator costs nothing.
// A Circuit is used by one goroutine at a time.
type Circuit struct {
	opts    Options
	inline  bool // the executor does nothing in parallel
	nodes   []*Node
	dirty   []uint64 // a bit a node
	epoch   dataflow.Epoch
	begun   bool // there was a step, or a restored state
	clock   *trace.Clock
	x       Context
	traces  []*trace.Trace // durable state, in order of construction
	arrs    []*Arrangement
	imports []*imported
	touched []*Arrangement // with a delta in this step
	commits []commit
	probed  []probed
	scope   *Scope // that the circuit is the inside of, or nil
}

// New makes an empty circuit.
func New(o Options) *Circuit {
	if o.Partitions == 0 {
		o.Partitions = 1
	}
	if bits.OnesCount(uint(o.Partitions)) != 1 {
		panic(fmt.Sprintf("differential: %d partitions, not a power of two", o.Partitions))
	}
	if o.Exec == nil {
		o.Exec = Inline{}
	}
	_, inline := o.Exec.(Inline)
	c := &Circuit{opts: o, inline: inline, clock: new(trace.Clock)}
	c.x.c = c
	return c
}

// Stream names an output of an operator: a collection, seen as its deltas.
type Stream struct{ port *port }

// port is an output of a node and those who read it.
type port struct {
	node    *Node
	kinds   []columnar.Kind
	readers []edge
}

type edge struct {
	node  *Node
	input int
}

// Kinds are the columns of the stream.
func (s Stream) Kinds() []columnar.Kind { return s.port.kinds }

// Input is where deltas enter a circuit.
type Input struct {
	node   *Node
	deltas []*dataflow.Delta
}

// Input adds an input.
func (c *Circuit) Input(kinds []columnar.Kind) (*Input, Stream) {
	in := &Input{}
	in.node = c.Add(in, nil, kinds)
	return in, in.node.Out(0)
}

// Stream is what was pushed, as a stream.
func (in *Input) Stream() Stream { return in.node.Out(0) }

// Read says whether an operator has the stream as its input.
func (s Stream) Read() bool { return len(s.port.readers) > 0 }

// Push adds a part of the next epoch's changes. d is immutable from now on.
func (in *Input) Push(d *dataflow.Delta) {
	if d.N == 0 {
		return
	}
	if len(d.Cols) != len(in.node.out[0].kinds) {
		panic(fmt.Sprintf("differential: delta of %d columns pushed into an input of %d", len(d.Cols), len(in.node.out[0].kinds)))
	}
	in.deltas = append(in.deltas, d)
	in.node.Wake()
}

// Step passes on what was pushed.
func (in *Input) Step(x *Context) {
	for i, d := range in.deltas {
		in.deltas[i] = nil
		x.Emit(0, d)
	}
	in.deltas = in.deltas[:0]
}

// Step runs one epoch over what was pushed since the last step. Epochs never
// decrease; the same epoch may be stepped again with more of its changes (a
// snapshot is fed in parts that way).
func (c *Circuit) Step(epoch dataflow.Epoch) {
	if epoch < c.epoch {
		panic(fmt.Sprintf("differential: step at epoch %d after %d", epoch, c.epoch))
	}
	c.epoch, c.begun = epoch, true
	for _, im := range c.imports {
		im.open(epoch)
	}
	for w := 0; w < len(c.dirty); w++ {
		for c.dirty[w] != 0 {
			b := bits.TrailingZeros64(c.dirty[w])
			c.dirty[w] &^= 1 << b
			c.run(c.nodes[w<<6+b])
		}
	}
	for i, a := range c.touched {
		c.touched[i] = nil
		a.commit()
	}
	c.touched = c.touched[:0]
	for i, m := range c.commits {
		c.commits[i] = commit{}
		m.t.AppendBatches(m.parts)
	}
	c.commits = c.commits[:0]
	for i, p := range c.probed {
		c.probed[i] = probed{}
		for _, s := range p.t.Spines() {
			s.Probed(p.rows / len(p.t.Spines()))
		}
	}
	c.probed = c.probed[:0]
	c.clock.Advance(epoch + 1)
}

// run steps one node and empties its inputs.
func (c *Circuit) run(n *Node) {
	if c.opts.Poll != nil {
		c.opts.Poll()
	}
	c.x.node = n
	n.op.Step(&c.x)
	n.emptyInputs()
}

func (n *Node) emptyInputs() {
	for i, in := range n.in {
		clear(in)
		n.in[i] = in[:0]
	}
}

// wake marks a node to be visited.
func (c *Circuit) wake(n *Node) { c.dirty[n.id>>6] |= 1 << (n.id & 63) }

// Work does up to about fuel rows of deferred merging and writing in each trace,
// for idle time, and reports whether some is left.
func (c *Circuit) Work(fuel int) bool {
	left := false
	for _, n := range c.nodes {
		if f, ok := n.op.(flusher); ok && f.backlog() > fewToFlush {
			f.flush(c.epoch, max(fuel/16, 1)) // a row costs that much more than in a merge
			left = left || f.backlog() > fewToFlush
		}
	}
	for _, t := range c.traces {
		left = t.Work(fuel) || left
	}
	return left
}

// Output is where deltas leave a circuit.
type Output struct{ deltas []*dataflow.Delta }

// Output adds an output.
func (c *Circuit) Output(s Stream) *Output {
	o := &Output{}
	c.Add(o, []Stream{s})
	return o
}

// Step keeps what arrived.
func (o *Output) Step(x *Context) { o.deltas = append(o.deltas, x.In(0)...) }

// Take gives the deltas that arrived since the last Take, not consolidated.
func (o *Output) Take() []*dataflow.Delta {
	d := o.deltas
	o.deltas = nil
	return d
}

// Spines enumerates all durable state in order of construction, which is the
// same for the same sequence of calls. Together they are the circuit's state
// between two steps, as of this call: some operators write behind, and catch up
// here. A checkpoint therefore calls Spines for itself, between two steps.
func (c *Circuit) Spines() []*trace.Spine {
	c.flush()
	var out []*trace.Spine
	for _, t := range c.traces {
		out = append(out, t.Spines()...)
	}
	return out
}

// Forget drops what operators hold in memory in front of their traces, which they
// then read again where they need it: for when memory is short. Cached is about
// how many bytes that is.
func (c *Circuit) Forget() {
	if c.opts.Once || !c.begun {
		return // there are no traces to read again
	}
	c.flush()
	for _, n := range c.nodes {
		if f, ok := n.op.(flusher); ok {
			f.Restored(c.epoch)
		}
		if f, ok := n.op.(forgetter); ok {
			f.forget()
		}
	}
}

// Cached is the memory that Forget can free.
func (c *Circuit) Cached() int64 {
	var n int64
	for _, node := range c.nodes {
		if f, ok := node.op.(interface{ cached() int64 }); ok {
			n += f.cached()
		}
	}
	return n
}

// flush brings all traces up to date.
func (c *Circuit) flush() {
	for _, n := range c.nodes {
		if f, ok := n.op.(flusher); ok {
			f.flush(c.epoch, math.MaxInt)
		}
	}
}

// Restored must be called after the Spines were filled by Restore and before
// the first Step, with the last complete epoch.
func (c *Circuit) Restored(epoch dataflow.Epoch) {
	c.epoch, c.begun = epoch, true
	c.clock.Advance(epoch + 1)
	for _, im := range c.imports {
		im.restored(epoch)
	}
	for _, n := range c.nodes {
		if r, ok := n.op.(Restorer); ok {
			r.Restored(epoch)
		}
	}
}

// Close releases what the circuit holds of imported arrangements.
func (c *Circuit) Close() {
	for _, im := range c.imports {
		im.close()
	}
	c.imports = nil
}

// ErrorKinds are the columns of an errs stream: SQLSTATE code, message.
var ErrorKinds = []columnar.Kind{columnar.KindBytes, columnar.KindBytes}

// sameKinds panics unless two streams have the same columns.
func sameKinds(a, b []columnar.Kind) {
	if !slices.Equal(a, b) {
		panic(fmt.Sprintf("differential: columns %v and %v differ", a, b))
	}
}

// allColumns is 0..n-1.
func allColumns(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
