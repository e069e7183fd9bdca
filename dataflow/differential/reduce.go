package differential

import (
	"math"

	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// Reduce groups by the key columns and aggregates: its rows are the key
// columns, then a column per aggregate. A group exists while the sum of its
// diffs is positive. A group with a result out of range has no row in oks, but
// one in errs.
func (c *Circuit) Reduce(s Stream, keyCols []int, aggs []Agg, o ReduceOptions) (oks, errs Stream) {
	r := &reduce{plan: newReducePlan(s.Kinds(), keyCols, aggs, o), parts: make([]*reducePart, c.Partitions())}
	if c.Once() {
		r.once = func(appendOnly bool) *reducePlan {
			o.AppendOnly = appendOnly
			return newReducePlan(s.Kinds(), keyCols, aggs, o)
		}
	} else {
		r.makeTraces(c)
	}
	n := c.Add(r, []Stream{s}, r.plan.outKinds(), ErrorKinds)
	if o.Global {
		n.Wake()
	}
	return n.Out(0), n.Out(1)
}

// reduce is the operator.
type reduce struct {
	plan   *reducePlan
	parts  []*reducePart
	cold   bool           // restored: groups are in the traces that are not in the tables
	groups *trace.Trace   // nil in a circuit that runs once
	sets   []*trace.Trace // of the plan's distinct sets
	values []*trace.Trace // of the plan's value sets

	// once makes the plan anew when the circuit's only input is there, and it
	// is known whether it retracts anything.
	once func(appendOnly bool) *reducePlan
}

func (r *reduce) part(i int) *reducePart {
	if r.parts[i] == nil {
		s := newReducePart(r.plan, r.groups != nil)
		s.cold, s.loader = r.cold, r
		s.started = r.cold
		r.parts[i] = s
	}
	return r.parts[i]
}

// Restored forgets the tables: groups are loaded when they are touched.
func (r *reduce) Restored(dataflow.Epoch) {
	clear(r.parts)
	r.cold = true
}

// Step consumes the epoch's deltas and emits what changed.
func (r *reduce) Step(x *Context) {
	in := x.In(0)
	rows := 0
	for _, d := range in {
		rows += d.N
	}
	if r.once != nil {
		if len(r.plan.values) > 0 && !retracts(in) {
			r.plan = r.once(true)
		}
		r.once = nil
		for _, set := range r.plan.values {
			r.values = append(r.values, r.plan.valueTrace(set, len(r.parts)))
		}
	}
	batches := make([][]*trace.Batch, len(r.plan.values))
	for i, set := range r.plan.values {
		batches[i] = x.Arrange(r.values[i], r.plan.valueDeltas(set, in))
		defer x.Commit(r.values[i], batches[i])
	}
	cut := x.scatter(in, r.plan.keyCols)
	x.ForEach(rows, func(i int, out *Emitter) {
		global := r.plan.opts.Global && i == 0
		absorbed := r.parts[i] != nil && len(r.parts[i].touched) > 0
		if cut.rows(i) == 0 && !absorbed && (!global || r.part(i).started) {
			return
		}
		s := r.part(i)
		for j := range s.values {
			s.openValues(j, r.values[j].Spines()[i].Reader())
		}
		if global {
			s.touchGlobal()
		}
		for j := range cut.deltas {
			s.consume(&cut.deltas[j], i)
		}
		for j, v := range s.values {
			s.consumeValues(v, batches[j][i])
		}
		s.finish(out)
		s.closeValues()
	})
	cut.release()
	r.tidy(x.Epoch())
}

// tidy flushes when many groups are only kept because their durable rows are
// still to be retracted.
func (r *reduce) tidy(epoch dataflow.Epoch) {
	waiting, live := 0, 0
	for _, s := range r.parts {
		if s != nil {
			waiting += s.waiting
			live += s.t.idx.n
		}
	}
	if waiting > max(tidyGroups, live/2) {
		r.flush(epoch, math.MaxInt)
	}
}

// tidyGroups is how many empty groups are not worth the trouble. Tests lower it.
var tidyGroups = 1 << 16

// retracts reports whether a diff is negative.
func retracts(ds []*dataflow.Delta) bool {
	for _, d := range ds {
		for _, x := range d.Diffs {
			if x < 0 {
				return true
			}
		}
	}
	return false
}

// touchGlobal makes sure that the only group exists and is looked at.
func (s *reducePart) touchGlobal() {
	s.room(1)
	s.fresh = s.t.probe(nil, []uint32{0}, []uint32{0}, s.gids, s.ptrs, s.fresh[:0])
	if s.cold && len(s.fresh) > 0 {
		s.loader.loadGroups(s, s.fresh)
	}
	s.touchOne(s.gids[0], 0)
}
