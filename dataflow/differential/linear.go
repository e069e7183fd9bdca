package differential

import (
	"runtime"
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// Mapper is a linear operator's function: what it emits for a row depends on
// that row only, and carries the row's diff (times a factor). It must not
// modify its input; emitted deltas may share its vectors. Apply may run
// concurrently with itself.
type Mapper interface {
	Apply(in *dataflow.Delta, emit func(*dataflow.Delta), emitErr func(*dataflow.Delta))
}

// MapperFunc makes a Mapper of a function.
type MapperFunc func(in *dataflow.Delta, emit func(*dataflow.Delta), emitErr func(*dataflow.Delta))

// Apply calls f.
func (f MapperFunc) Apply(in *dataflow.Delta, emit func(*dataflow.Delta), emitErr func(*dataflow.Delta)) {
	f(in, emit, emitErr)
}

// Map applies a Mapper to every delta: filter, project and flat-map.
func (c *Circuit) Map(s Stream, m Mapper, outKinds []columnar.Kind) (oks, errs Stream) {
	n := c.Add(mapOp{m}, []Stream{s}, outKinds, ErrorKinds)
	return n.Out(0), n.Out(1)
}

type mapOp struct{ m Mapper }

// Partial is a Mapper that can leave off.
type Partial interface {
	Mapper
	// ApplyUpTo is Apply that ends once it has emitted so many bytes, after some rows.
	ApplyUpTo(in *dataflow.Delta, bytes int, emit, emitErr func(*dataflow.Delta)) (rows int)
}

// Expander is a Mapper that may make many rows of one.
type Expander interface {
	Mapper
	// Cut gives deltas that together are mapped to what d is, if a row of it makes a
	// great many; else nil.
	Cut(d *dataflow.Delta) []*dataflow.Delta
}

// Step maps each delta.
func (op mapOp) Step(x *Context) {
	in := x.In(0)
	rows := countRows(in)
	if x.c.opts.Once {
		op.inPortions(x, in)
		return
	}
	if x.parallel(rows) {
		in = split(in, parallelRows)
	}
	x.each(len(in), rows, func(i int, out *Emitter) {
		op.m.Apply(in[i], func(d *dataflow.Delta) { out.Emit(0, d) }, func(d *dataflow.Delta) { out.Emit(1, d) })
	})
}

// inPortions maps some rows at a time, as many as the last ones tell that they will
// make about a portion.
func (op mapOp) inPortions(x *Context, in []*dataflow.Delta) {
	parts := 4 * runtime.GOMAXPROCS(0)
	size, perRow, waiting := parallelRows, 1, 0
	m, expands := op.m.(Expander)
	if expands {
		size = 1
	}
	var cut []*dataflow.Delta // what is next
	for next, at := 0, 0; next < len(in) || len(cut) > 0; {
		if x.c.opts.Poll != nil {
			x.c.opts.Poll()
		}
		var round []*dataflow.Delta
		rows := 0
		for len(round) < parts && (next < len(in) || len(cut) > 0) {
			if len(cut) == 0 {
				hi := min(at+size, in[next].N)
				cut = append(cut, in[next].Slice(at, hi))
				if at = hi; at == in[next].N {
					next, at = next+1, 0
				}
			}
			d := cut[0]
			hi := min(size, d.N)
			some := d.Slice(0, hi)
			if hi < d.N {
				cut[0] = d.Slice(hi, d.N)
			} else {
				cut = cut[1:]
			}
			if expands {
				if smaller := m.Cut(some); smaller != nil {
					cut = append(smaller, cut...)
					continue
				}
			}
			round = append(round, some)
			rows += hi
		}
		made := op.round(x, round, rows*max(perRow/16, 1), 2*x.c.portion()/parts, &waiting)
		perRow = made/max(rows, 1) + 1
		size = min(max(x.c.portion()/(perRow*parts), 1), parallelRows)
		if waiting >= x.c.portion() {
			x.drain()
			waiting = 0
		}
	}
}

// round maps deltas, possibly in parallel, each up to about most bytes at first, and
// tells the bytes made. Waiting are those that were not drained.
func (op mapOp) round(x *Context, in []*dataflow.Delta, work, most int, waiting *int) (made int) {
	rests := make([]*dataflow.Delta, len(in))
	outs := make([][]sent, len(in))
	x.each(len(in), work, func(i int, _ *Emitter) {
		outs[i], rests[i] = op.some(in[i], most)
	})
	for i, out := range outs {
		for rest := rests[i]; ; out, rest = op.some(rest, x.c.portion()) {
			for _, s := range out {
				if s.port == 0 {
					made += s.d.MemSize()
					*waiting += s.d.MemSize()
				}
				x.Emit(s.port, s.d)
			}
			if rest == nil {
				break
			}
			x.drain()
			*waiting = 0
			if x.c.opts.Poll != nil {
				x.c.opts.Poll()
			}
		}
		outs[i] = nil
	}
	return made
}

// some maps rows of d, about as many as make so many bytes, and gives what is left.
func (op mapOp) some(d *dataflow.Delta, most int) (out []sent, rest *dataflow.Delta) {
	emit := func(d *dataflow.Delta) { out = append(out, sent{0, d}) }
	fail := func(d *dataflow.Delta) { out = append(out, sent{1, d}) }
	p, ok := op.m.(Partial)
	if !ok {
		op.m.Apply(d, emit, fail)
		return out, nil
	}
	if n := p.ApplyUpTo(d, most, emit, fail); n < d.N {
		return out, d.Slice(n, d.N)
	}
	return out, nil
}

// split cuts deltas to at most so many rows each.
func split(ds []*dataflow.Delta, rows int) []*dataflow.Delta {
	var out []*dataflow.Delta
	for _, d := range ds {
		for lo := 0; lo < d.N; lo += rows {
			out = append(out, d.Slice(lo, min(lo+rows, d.N)))
		}
	}
	return out
}

// Concat is the sum of collections of equal kinds; of none it is empty.
func (c *Circuit) Concat(kinds []columnar.Kind, ss ...Stream) Stream {
	for _, s := range ss {
		sameKinds(kinds, s.Kinds())
	}
	if len(ss) == 1 {
		return ss[0]
	}
	return c.Add(concatOp{}, ss, kinds).Out(0)
}

type concatOp struct{}

// Step passes on all inputs.
func (concatOp) Step(x *Context) {
	for i := range x.node.in {
		for _, d := range x.In(i) {
			x.Emit(0, d)
		}
	}
}

// Negate has every diff negated.
func (c *Circuit) Negate(s Stream) Stream {
	return c.Add(negateOp{}, []Stream{s}, s.Kinds()).Out(0)
}

type negateOp struct{}

// Step negates each delta.
func (negateOp) Step(x *Context) {
	for _, d := range x.In(0) {
		x.Emit(0, negate(d))
	}
}

// negate is d with the opposite diffs.
func negate(d *dataflow.Delta) *dataflow.Delta {
	out := &dataflow.Delta{Batch: d.Batch, Diffs: make([]dataflow.Diff, d.N)}
	for i := range out.Diffs {
		out.Diffs[i] = -d.Diff(i)
	}
	return out
}

// Consolidate sums up equal rows within an epoch, so that what does not change
// costs nothing downstream.
func (c *Circuit) Consolidate(s Stream) Stream {
	return c.Add(consolidateOp{}, []Stream{s}, s.Kinds()).Out(0)
}

type consolidateOp struct{}

// Step makes one delta of all.
func (consolidateOp) Step(x *Context) {
	x.Emit(0, Consolidated(x.node.out[0].kinds, x.In(0)))
}

// Occurrences gives each row as often as it occurs at the end of the epoch, with a diff
// of 1 each time: for what computes another value each time. positive says that no
// diff is negative, so that what has come stays. For circuits that run once.
func (c *Circuit) Occurrences(s Stream, positive bool) Stream {
	if positive {
		return c.Add(positiveOccurrences{}, []Stream{s}, s.Kinds()).Out(0)
	}
	return c.Add(occurrencesOp{}, []Stream{s}, s.Kinds()).Out(0)
}

type occurrencesOp struct{}

// Step makes one delta of all.
func (occurrencesOp) Step(x *Context) {
	if d := Consolidated(x.node.out[0].kinds, x.In(0)); d != nil {
		x.Emit(0, occurrences(d))
	}
}

type positiveOccurrences struct{}

// Step passes on what arrived.
func (positiveOccurrences) Step(x *Context) {
	for _, d := range x.In(0) {
		x.Emit(0, occurrences(d))
	}
}

func (op positiveOccurrences) absorb(x *Context) bool { op.Step(x); return true }

// occurrences is d with each row of a positive diff as often as that says.
func occurrences(d *dataflow.Delta) *dataflow.Delta {
	if !slices.ContainsFunc(d.Diffs, func(n dataflow.Diff) bool { return n != 1 }) {
		return d
	}
	var idx []uint32
	for i, n := range d.Diffs {
		for range n {
			idx = append(idx, uint32(i))
		}
	}
	return &dataflow.Delta{Batch: d.Gather(idx)}
}

// Consolidated joins deltas to one in which every row occurs once; nil if
// nothing is left.
func Consolidated(kinds []columnar.Kind, ds []*dataflow.Delta) *dataflow.Delta {
	if len(ds) == 1 && ds[0].N == 1 && ds[0].Diff(0) != 0 {
		return ds[0]
	}
	ds = slices.DeleteFunc(slices.Clone(ds), func(d *dataflow.Delta) bool { return d.N == 0 })
	if len(ds) == 0 {
		return nil
	}
	d := trace.Concat(kinds, ds)
	b, diffs := columnar.Consolidate(d.Batch, d.Diffs)
	if b.N == 0 {
		return nil
	}
	return &dataflow.Delta{Batch: b, Diffs: diffs}
}
