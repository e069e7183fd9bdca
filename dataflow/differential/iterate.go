package differential

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// Scope is the inside of a recursion: a circuit of its own whose variables are
// defined in terms of themselves.
type Scope struct {
	*Circuit
	it      *iterate
	ins     []*Input  // of the outer streams
	vars    []*Input  // of the variables
	streams []Stream  // of the variables
	values  []*Output // of their definitions
	leaves  []*Output
	round   int
	wanted  func() bool // nil, or whether further rounds matter

	phase     phase
	distincts []*scopeDistinct

	ranked  []*rankedDistinct
	settled int64 // up to this rank they settle rows in this round
}

// Enter brings an outer stream into the scope.
func (s *Scope) Enter(outer Stream) Stream {
	if len(s.ins) == len(s.it.outer) {
		s.it.outer = append(s.it.outer, outer)
	}
	in, inner := s.Input(outer.Kinds())
	s.ins = append(s.ins, in)
	return inner
}

// Var is variable i.
func (s *Scope) Var(i int) Stream { return s.streams[i] }

// Set defines the next value of variable i.
func (s *Scope) Set(i int, value Stream) {
	sameKinds(s.streams[i].Kinds(), value.Kinds())
	s.values[i] = s.Output(value)
}

// Leave takes an inner stream's final content out. (The variables themselves
// are returned by Iterate.) The stream may be used once Iterate has returned.
func (s *Scope) Leave(inner Stream) Stream {
	i := len(s.vars) + len(s.leaves)
	if i == len(s.it.out) {
		s.it.out = append(s.it.out, &port{kinds: inner.Kinds()})
	}
	s.leaves = append(s.leaves, s.Output(inner))
	return Stream{s.it.out[i]}
}

// IterateOptions are the options of Iterate.
type IterateOptions struct {
	// Limit > 0 ends after so many rounds.
	Limit int
	// AtLimit is put out as an error where Limit ends what would have gone on.
	AtLimit *dataflow.Delta
	// Working iterates as SQL defines WITH RECURSIVE, where a step sees only the
	// rows that the one before has added. There are two variables: the
	// definition of the first is where to start, that of the second is the step,
	// whose variable has the last rows added; the result of the second is all
	// rows together. It makes a difference only if the step is not linear.
	Working bool
	// Ranked: the last column of the variables is a rank, which is not part of the
	// result. See Scope.RankedDistinct, which the definitions end with.
	Ranked bool
	// Distinct, of Working: rows that have been added before are not added again.
	Distinct bool
}

// Iterate computes variables from empty to the fixed point of the definitions
// that build sets in the scope, all variables at once in each round, and gives
// their final content; after them, with AtLimit, come the errors. Sets (UNION)
// need a Distinct in their definition to terminate.
//
// Within the scope epochs are rounds, so that each round costs what it changes
// (semi-naive evaluation). When entered streams change:
//
//   - If the scope is built of Map, Concat, Consolidate, inner joins and Distinct
//     and has no limit, added rows simply let the rounds go on: the old fixed
//     point lies below the new one, so that they end there. Deleted rows go
//     before that, in rounds of their own; see phase. If the variables are Ranked,
//     both go together, in the order of the ranks.
//   - Otherwise the scope is evaluated anew from the entered content, which is
//     kept, and what differs from the last result is put out.
//
// build is called again, in the same way, whenever the scope is evaluated anew.
func (c *Circuit) Iterate(vars [][]columnar.Kind, opts IterateOptions, build func(sc *Scope)) []Stream {
	it := &iterate{c: c, vars: vars, opts: opts, build: build}
	for _, k := range vars {
		if opts.Ranked {
			k = k[:len(k)-1]
		}
		it.out = append(it.out, &port{kinds: k})
	}
	it.scope()
	if opts.AtLimit != nil {
		it.out = append(it.out, &port{kinds: ErrorKinds})
	}
	kinds := make([][]columnar.Kind, len(it.out))
	for i, p := range it.out {
		kinds[i] = p.kinds
	}
	n := c.Add(it, it.outer, kinds...)
	for _, p := range it.out {
		p.node = n
	}
	n.out = it.out
	if !c.opts.Once {
		for _, s := range it.outer {
			it.entered = append(it.entered, c.NewTrace(s.Kinds(), allColumns(len(s.Kinds()))))
		}
		for _, k := range kinds {
			it.results = append(it.results, c.NewTrace(k, allColumns(len(k))))
		}
	}
	n.Wake()
	streams := make([]Stream, len(vars))
	for i := range streams {
		streams[i] = n.Out(i)
	}
	if opts.AtLimit != nil {
		streams = append(streams, n.Out(len(it.out)-1))
	}
	return streams
}

// maxOccurs is how often a row may occur in what a round of a recursion adds.
const maxOccurs = 1 << 48

// TooOften is what the Step of a circuit that runs once panics with if a recursion makes
// a row more often than can be counted.
type TooOften struct{}

// iterate is the operator that holds a scope.
type iterate struct {
	c       *Circuit
	vars    [][]columnar.Kind
	opts    IterateOptions
	build   func(*Scope)
	outer   []Stream
	out     []*port        // variables, then what leaves, then errors with AtLimit
	entered []*trace.Trace // content of the outer streams
	results []*trace.Trace // what was put out
	live    *Scope         // at its fixed point, if the scope is monotone
}

// scope makes a fresh scope.
func (it *iterate) scope() *Scope {
	s := &Scope{Circuit: New(Options{Partitions: it.c.opts.Partitions, Exec: it.c.opts.Exec, Poll: it.c.opts.Poll, Stopped: it.c.opts.Stopped, Made: it.c.opts.Made}), it: it}
	s.Circuit.scope = s
	for _, k := range it.vars {
		in, v := s.Input(k)
		s.vars = append(s.vars, in)
		s.streams = append(s.streams, v)
	}
	s.values = make([]*Output, len(it.vars))
	it.build(s)
	for _, o := range s.values {
		if o == nil {
			panic("differential: recursive variable without a definition")
		}
	}
	return s
}

// Step evaluates the scope.
func (it *iterate) Step(x *Context) {
	if it.c.opts.Once {
		s := it.scope()
		for i, in := range s.ins {
			for _, d := range x.In(i) {
				in.Push(d)
			}
		}
		// Who has got enough rows ends an iteration that does not end by itself.
		s.wanted = it.demand()
		put := func(i int, d *dataflow.Delta) {
			if slices.ContainsFunc(d.Diffs, func(n dataflow.Diff) bool { return n > maxOccurs || n < -maxOccurs }) {
				panic(TooOften{})
			}
			x.Emit(i, d)
			x.drain()
		}
		if it.opts.Working {
			for i, ds := range s.runWorking(put) {
				for _, d := range ds {
					x.Emit(i, d)
				}
			}
			return
		}
		s.run(put)
		return
	}
	changes := make([][]*trace.Batch, len(it.outer))
	for i := range it.outer {
		changes[i] = x.Arrange(it.entered[i], x.In(i))
	}
	if it.live != nil {
		it.goOn(x, changes)
	} else {
		it.anew(x, changes)
	}
	for i, t := range it.entered {
		x.Commit(t, changes[i])
	}
}

// goOn continues from the fixed point: deletions first, then additions.
func (it *iterate) goOn(x *Context, changes [][]*trace.Batch) {
	s := it.live
	out := make([][]*dataflow.Delta, len(it.out))
	rounds := func() { s.run(func(i int, d *dataflow.Delta) { out[i] = append(out[i], d) }) }
	if it.opts.Ranked {
		it.push(changes, -1)
	} else if it.push(changes, -1) {
		s.phase = deleting
		rounds()
		s.phase = adding
		for _, d := range s.distincts {
			if d.out != nil {
				d.node.Wake()
			}
		}
	}
	it.push(changes, 1)
	rounds()
	for i, ds := range out {
		it.put(x, i, ds)
	}
}

// push feeds the scope the changes of one sign and reports whether there are any.
func (it *iterate) push(changes [][]*trace.Batch, sign dataflow.Diff) bool {
	some := false
	for i, in := range it.live.ins {
		for _, b := range changes[i] {
			if b == nil {
				continue
			}
			b.Expose()
			for k := range b.Chunks() {
				if d := signed(b.Chunk(k), sign); d != nil {
					in.Push(d)
					some = true
				}
			}
		}
	}
	return some
}

// signed is the rows whose diff has the sign; nil if there are none.
func signed(ch *trace.Chunk, sign dataflow.Diff) *dataflow.Delta {
	if ch.Diffs == nil {
		if sign < 0 {
			return nil
		}
		return ch.Delta()
	}
	diffs := make([]dataflow.Diff, ch.N)
	for i, d := range ch.Diffs {
		if d*sign > 0 {
			diffs[i] = d
		}
	}
	return changedRows(ch, diffs)
}

// anew evaluates the scope over the whole content of the outer streams.
func (it *iterate) anew(x *Context, changes [][]*trace.Batch) {
	it.live = nil
	s := it.scope()
	for i, in := range s.ins {
		for p, sp := range it.entered[i].Spines() {
			pushAll(in, sp.Reader())
			if b := changes[i][p]; b != nil {
				pushAll(in, trace.Reader{Batches: []*trace.Batch{b}})
			}
		}
	}
	for i, ds := range s.result() {
		for _, sp := range it.results[i].Spines() {
			sp.Reader().Scan(func(d *dataflow.Delta) bool {
				ds = append(ds, negate(d))
				return true
			})
		}
		it.put(x, i, ds)
	}
	if it.opts.Limit == 0 && !it.opts.Working && s.goesOn() {
		it.live = s
	}
}

// goesOn reports whether the scope can go on from its fixed point.
func (s *Scope) goesOn() bool {
	for _, n := range s.nodes {
		switch n.op.(type) {
		case *Input, *Output, *Arrangement, mapOp, concatOp, consolidateOp, *join, *scopeDistinct, *rankedDistinct:
		default:
			return false
		}
	}
	return true
}

// pushAll feeds a content. Streams may carry its memory on.
func pushAll(in *Input, r trace.Reader) {
	for _, b := range r.Batches {
		b.Expose()
	}
	r.Scan(func(d *dataflow.Delta) bool {
		in.Push(d)
		return true
	})
}

// put puts out changes of a result.
func (it *iterate) put(x *Context, i int, ds []*dataflow.Delta) {
	t := it.results[i]
	parts := x.Arrange(t, ds)
	for _, b := range parts {
		if b == nil {
			continue
		}
		b.Expose()
		for k := range b.Chunks() {
			x.Emit(i, b.Chunk(k).Delta())
		}
	}
	x.Commit(t, parts)
}

// result iterates to the end and gives the content of the variables, then what leaves.
func (s *Scope) result() [][]*dataflow.Delta {
	if s.it.opts.Working {
		return s.runWorking(nil)
	}
	out := make([][]*dataflow.Delta, len(s.it.out))
	s.run(func(i int, d *dataflow.Delta) { out[i] = append(out[i], d) })
	return out
}

// run iterates to the fixed point and puts out the changes of the variables, round by
// round, and then those of what leaves.
func (s *Scope) run(put func(i int, d *dataflow.Delta)) {
	limit := s.it.opts.Limit
	for {
		s.nextRound()
		going, cut := false, false
		for i, v := range s.values {
			d := Consolidated(s.it.vars[i], v.Take())
			if d == nil {
				continue
			}
			if limit == 0 || s.round < limit {
				s.vars[i].Push(d)
				going = true
			} else {
				cut = true
			}
			if s.it.opts.Ranked {
				d = &dataflow.Delta{Batch: columnar.Batch{Cols: d.Cols[:len(d.Cols)-1], N: d.N}, Diffs: d.Diffs}
			}
			put(i, d)
		}
		if cut && s.it.opts.AtLimit != nil {
			put(len(s.it.out)-1, s.it.opts.AtLimit)
		}
		if !s.settleNext() && !going || s.wanted != nil && !s.wanted() {
			break
		}
	}
	for i, o := range s.leaves {
		if d := Consolidated(s.it.out[len(s.vars)+i].kinds, o.Take()); d != nil {
			put(len(s.vars)+i, d)
		}
	}
}

// settleNext prepares the next round for the rows that wait to be settled, and
// reports whether there are any.
func (s *Scope) settleNext() bool {
	s.settled = never
	for _, d := range s.ranked {
		s.settled = min(s.settled, d.next())
	}
	if s.settled == never {
		s.settled = 0
		return false
	}
	for _, d := range s.ranked {
		if d.next() == s.settled {
			d.node.Wake()
		}
	}
	return true
}

// nextRound steps the scope once.
func (s *Scope) nextRound() {
	if s.opts.Poll != nil {
		s.opts.Poll()
	}
	s.round++
	s.Step(dataflow.Epoch(s.round))
}

// runWorking iterates a working table: see IterateOptions.Working. What leaves
// is that of all rounds together. With put the rows are put out as they are found, and
// are not in the result.
func (s *Scope) runWorking(put func(i int, d *dataflow.Delta)) [][]*dataflow.Delta {
	const from, step = 0, 1
	kinds := s.it.vars[step]
	out := make([][]*dataflow.Delta, len(s.it.out))
	left := make([][]*dataflow.Delta, len(s.leaves)) // content of what leaves
	var made []*dataflow.Delta                       // content of the step
	var working *dataflow.Delta
	var all []*dataflow.Delta // that were added
	for {
		s.nextRound()
		for i, o := range s.leaves {
			at, k := len(s.vars)+i, s.it.out[len(s.vars)+i].kinds
			if d := Consolidated(k, append(left[i], o.Take()...)); d != nil {
				left[i] = []*dataflow.Delta{d}
				out[at] = append(out[at], d)
			} else {
				left[i] = nil
			}
		}
		made = append(made, s.values[step].Take()...)
		var next *dataflow.Delta
		if s.round == 1 {
			next = Consolidated(kinds, s.values[from].Take())
		} else if next = Consolidated(kinds, made); next != nil {
			made = []*dataflow.Delta{next}
			if s.it.opts.Distinct {
				next = added(kinds, next, all)
			}
		} else {
			made = nil
		}
		if next != nil {
			if put == nil || s.it.opts.Distinct {
				all = []*dataflow.Delta{Consolidated(kinds, append(all, next))}
			}
			if put != nil {
				put(step, next)
			}
		}
		if next == nil || s.wanted != nil && !s.wanted() {
			if put == nil {
				out[step] = all
			}
			return out
		}
		change := []*dataflow.Delta{next}
		if working != nil {
			change = append(change, negate(working))
		}
		working = next
		if d := Consolidated(kinds, change); d != nil {
			s.vars[step].Push(d)
		}
	}
}

// added is the rows of a set that another does not have; nil if there are none.
func added(kinds []columnar.Kind, set *dataflow.Delta, have []*dataflow.Delta) *dataflow.Delta {
	all := []*dataflow.Delta{set}
	for _, d := range have {
		all = append(all, negate(d))
	}
	d := Consolidated(kinds, all)
	if d == nil || d.Diffs == nil {
		return d
	}
	var idx []uint32
	for i, n := range d.Diffs {
		if n > 0 {
			idx = append(idx, uint32(i))
		}
	}
	if len(idx) == 0 {
		return nil
	}
	return &dataflow.Delta{Batch: d.Gather(idx)}
}
