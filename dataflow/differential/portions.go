package differential

import (
	"math/bits"

	"github.com/streamdb/streamdb/dataflow"
)

// In a circuit that runs once, what a join makes can be far more than what goes
// in and what comes out in the end. Such an operator works in portions: after
// each it calls drain, which passes what is there through the operators that can
// take their input bit by bit, so that it need not all be kept.

// portionBytes is about how much a join makes before it drains, and each of its
// parallel parts before it waits for the others, if Options do not say.
const portionBytes = 32 << 20

func (c *Circuit) portion() int {
	if c.opts.Portion > 0 {
		return c.opts.Portion
	}
	return portionBytes
}

// portioned is an operator that can take its input before all of it is there.
type portioned interface {
	// absorb takes what has arrived, and reports whether it could: if not, it
	// has done nothing. Step is called at the operator's turn all the same.
	absorb(x *Context) bool
}

// drain lets the operators after the running one absorb what has arrived.
func (x *Context) drain() {
	self := x.node
	c := x.c
	for id := c.nextDirty(self.id + 1); id >= 0; id = c.nextDirty(id + 1) {
		n := c.nodes[id]
		op, ok := n.op.(portioned)
		if !ok {
			continue
		}
		x.node = n
		if op.absorb(x) {
			n.emptyInputs()
		}
	}
	x.node = self
}

// nextDirty is the first node from id on that has something to do, -1 if none has.
func (c *Circuit) nextDirty(id int) int {
	for w := id >> 6; w < len(c.dirty); w++ {
		set := c.dirty[w]
		if w == id>>6 {
			set &= ^uint64(0) << (id & 63)
		}
		if set != 0 {
			return w<<6 + bits.TrailingZeros64(set)
		}
	}
	return -1
}

func (op mapOp) absorb(x *Context) bool    { op.Step(x); return true }
func (op concatOp) absorb(x *Context) bool { op.Step(x); return true }
func (op negateOp) absorb(x *Context) bool { op.Step(x); return true }

// absorb adds rows to the groups. Sets of values wait until all is there.
func (r *reduce) absorb(x *Context) bool {
	if r.groups != nil || len(r.plan.values) > 0 || len(r.plan.sets) > 0 {
		return false
	}
	in := x.In(0)
	cut := x.scatter(in, r.plan.keyCols)
	x.ForEach(countRows(in), func(i int, _ *Emitter) {
		if cut.rows(i) == 0 {
			return
		}
		s := r.part(i)
		for j := range cut.deltas {
			s.consume(&cut.deltas[j], i)
		}
	})
	cut.release()
	return true
}

// Sink gives the deltas of a stream of a circuit that runs once to f, in the
// goroutine of Step, as soon as they are there.
func (c *Circuit) Sink(s Stream, f func(*dataflow.Delta)) {
	c.Add(sink(f), []Stream{s})
}

type sink func(*dataflow.Delta)

// Step passes on what arrived.
func (f sink) Step(x *Context) {
	for _, d := range x.In(0) {
		f(d)
	}
}

func (f sink) absorb(x *Context) bool { f.Step(x); return true }
