package differential

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// GroupMap applies a function to each group of equal key columns, and keeps its
// output up to date by computing it anew for the groups that change. Rows of
// negative multiplicity are left out; a group without any other does not exist.
func (c *Circuit) GroupMap(s Stream, keyCols []int, outKinds []columnar.Kind, fn GroupFunc, o GroupMapOptions) (oks, errs Stream) {
	g := &groupMap{fn: fn, global: o.Global, kinds: outKinds}
	l := newOrderLayout(s.Kinds(), keyCols, o.Order)
	if l.natural() {
		// The arrangement is in the right order as it is, and can be shared.
		g.in = c.Arrange(s, keyCols)
	} else {
		g.layout = l
		lay := MapperFunc(func(in *dataflow.Delta, emit, _ func(*dataflow.Delta)) { emit(l.layDelta(in)) })
		laid, _ := c.Map(s, lay, l.laid)
		g.in = c.Arrange(laid, allColumns(len(keyCols)))
	}
	if !c.opts.Once {
		g.near = make([]*nearby, c.Partitions())
		g.shortcuts(c, l.ordered, &o)
	}
	n := c.AddOver(g, []*Arrangement{g.in}, outKinds, ErrorKinds)
	if o.Global {
		n.Wake()
	}
	return n.Out(0), n.Out(1)
}

// natural reports whether rows arranged by the key, without any change, are in
// the order asked for.
func (l *orderLayout) natural() bool {
	if !l.plain() {
		return false
	}
	cols := make([]int, 0, len(l.kinds))
	for _, it := range l.items {
		cols = append(cols, it.col)
	}
	return slices.IsSorted(append(cols, l.rest...))
}

// groupMap is the operator.
type groupMap struct {
	in      *Arrangement
	layout  *orderLayout // of in; nil if it has the input's columns
	fn      GroupFunc
	kinds   []columnar.Kind
	global  bool
	started bool // the only group was output

	// How large groups are answered from less than all of their rows; at most one
	// of them is set.
	reach   *Reach
	running *Running
	ranked  *Ranked
	small   int // rows up to which groups are computed whole, without an index

	index   *indexKind // of running and ranked
	indexes []map[uint64]*orderIndex
	near    []*nearby
}

// Restored notes that there is output. Indexes are made again when they are needed.
func (g *groupMap) Restored(dataflow.Epoch) {
	g.started = true
	g.forget()
}

// forget implements forgetter.
func (g *groupMap) forget() { clear(g.indexes) }

// cached implements forgetter.
func (g *groupMap) cached() int64 {
	var n int64
	for _, m := range g.indexes {
		for _, x := range m {
			n += x.bytes()
		}
	}
	return n
}

// groupsAtOnce is how many groups are fetched at a time.
const groupsAtOnce = 1024

// Step computes the groups with changes, as they were and as they are.
func (g *groupMap) Step(x *Context) {
	x.ForEach(g.in.deltaRows(), func(p int, out *Emitter) {
		delta := g.in.Delta(p)
		first := g.global && p == 0 && !g.started
		if delta.Len() == 0 && !first {
			return
		}
		keys, hash := touchedKeys(delta)
		if first && len(hash) == 0 {
			hash = []uint64{0}
		}
		if g.near != nil && len(hash) > 0 {
			keys, hash = g.largeFirst(p, keys, hash, out)
		}
		for lo := 0; lo < len(hash); lo += groupsAtOnce {
			hi := min(lo+groupsAtOnce, len(hash))
			some := make([]*columnar.Vec, len(keys))
			for c, v := range keys {
				some[c] = v.Slice(lo, hi)
			}
			g.recompute(p, some, hash[lo:hi], out)
		}
	})
	g.started = true
}

// largeFirst computes the groups that are better computed one by one, and gives the
// others back: large ones by what their changes touch, if the function allows for it;
// some that are not small by one merge of their rows as they were and as they are.
func (g *groupMap) largeFirst(p int, keys []*columnar.Vec, hash []uint64, out *Emitter) ([]*columnar.Vec, []uint64) {
	if g.near[p] == nil {
		g.near[p] = &nearby{l: g.in.layout}
	}
	n := g.near[p]
	var whole []uint32
	for i, h := range hash {
		done := false
		switch {
		case g.reach != nil:
			done = g.nearChanges(n, p, keys, i, h, out)
		case g.index != nil:
			if done = g.indexed(n, p, keys, i, h, out); !done {
				delete(g.indexes[p], h)
			}
		case g.running != nil:
			done = g.wide(n, p, keys, i, h, out)
		}
		if !done && len(hash) <= mergedGroups {
			done = g.merged(n, p, keys, i, h, out)
		}
		if !done {
			whole = append(whole, uint32(i))
		}
	}
	n.close()
	if len(whole) == len(hash) {
		return keys, hash
	}
	some := make([]*columnar.Vec, len(keys))
	for c, v := range keys {
		some[c] = v.Gather(whole)
	}
	hashes := make([]uint64, len(whole))
	for i, w := range whole {
		hashes[i] = hash[w]
	}
	return some, hashes
}

const (
	mergedGroups = 32 // how many groups are merged one by one at most
	mergedRows   = 32 // how many rows they have at least
)

// merged computes one whole group; false if it is so small that many are better
// fetched at a time.
func (g *groupMap) merged(n *nearby, p int, keys []*columnar.Vec, i int, hash uint64, out *Emitter) bool {
	delta := g.in.Delta(p).Batches
	if len(delta) != 1 || g.global && !g.started {
		return false
	}
	if rows, _ := n.open(g.in.Old(p).Batches, delta, keys, i, hash); rows < mergedRows {
		return false
	}
	for k := range n.runs {
		r := &n.runs[k]
		r.next, r.stop = r.lo, r.hi
	}
	n.refs = n.refs[:0]
	n.merge(math.MaxInt, true)
	u := &pass{n: n, run: g.running, kinds: g.kinds}
	for k, sign := range []int64{-1, 1} {
		in := n.group(k == 1)
		in.Core = nil
		if g.global && in.Rows.N == 0 {
			in.Ends = []int{0}
		}
		g.applyTo(g.named(in), sign, &u.poks, &u.perrs)
	}
	u.flush()
	u.emit(out)
	return true
}

// touchedKeys lists the distinct keys of sorted batches, in the order of their
// hashes. (There is one batch in all but imported arrangements.)
func touchedKeys(r trace.Reader) ([]*columnar.Vec, []uint64) {
	var runs keyRuns
	var bs []*columnar.Batch
	l := r.Layout
	for _, b := range r.Batches {
		goesOn := false
		for i := range b.Chunks() {
			c := b.Chunk(i)
			open := runs.find(b, i, l.Key)
			firsts := runs.firsts
			if goesOn {
				firsts = firsts[1:]
			}
			goesOn = open
			keys := c.Select(l.Key)
			keys = keys.Gather(firsts)
			bs = append(bs, &keys)
		}
	}
	all := columnar.ConcatBatches(l.KeyKinds(), bs...)
	if len(r.Batches) > 1 {
		all, _ = columnar.Consolidate(all, nil)
	}
	cols, hash, _ := sortByHash(all.Cols, all.N)
	return cols, hash
}

// recompute emits the difference that the step makes for some groups.
func (g *groupMap) recompute(p int, keys []*columnar.Vec, hash []uint64, out *Emitter) {
	var oks, errs []*dataflow.Delta
	was := !g.global || g.started
	if was {
		g.apply(g.in.Old(p).Groups(keys, hash), -1, &oks, &errs)
	}
	retracted := len(oks) + len(errs)
	g.apply(g.in.New(p).Groups(keys, hash), 1, &oks, &errs)
	if retracted == 0 || len(oks)+len(errs) == retracted {
		for _, d := range oks {
			out.Emit(0, d)
		}
		for _, d := range errs {
			out.Emit(1, d)
		}
		return
	}
	out.Emit(0, Consolidated(g.kinds, oks))
	out.Emit(1, Consolidated(ErrorKinds, errs))
}

// apply is applyTo of groups as they are found.
func (g *groupMap) apply(found *trace.Groups, sign int64, oks, errs *[]*dataflow.Delta) {
	g.applyTo(g.groups(found), sign, oks, errs)
}

// applyTo gives groups to the function, and collects what it emits, with the sign.
func (g *groupMap) applyTo(in *Groups, sign int64, oks, errs *[]*dataflow.Delta) {
	if len(in.Ends) == 0 {
		return
	}
	g.fn.Apply(in, collectInto(oks, sign), collectInto(errs, sign))
}

// collectInto is an emit function that appends to a list, with the sign.
func collectInto(to *[]*dataflow.Delta, sign int64) func(*dataflow.Delta) {
	return func(d *dataflow.Delta) {
		if d.N == 0 {
			return
		}
		if sign < 0 {
			d = negate(d)
		}
		*to = append(*to, d)
	}
}

// groups drops rows that do not count and groups without rows, and gives the
// rows their columns back.
func (g *groupMap) groups(found *trace.Groups) *Groups {
	in := &Groups{Rows: found.Rows, Mults: found.Diffs, Ends: make([]int, 0, len(found.Ends))}
	if slices.ContainsFunc(found.Diffs, func(d int64) bool { return d <= 0 }) {
		positive(found)
		in.Rows, in.Mults = found.Rows, found.Diffs
	}
	if in.Mults == nil {
		in.Mults = make([]int64, in.Rows.N)
		for i := range in.Mults {
			in.Mults[i] = 1
		}
	}
	lo := 0
	for _, hi := range found.Ends {
		if hi > lo || g.global {
			in.Ends = append(in.Ends, hi)
		}
		lo = hi
	}
	return g.named(in)
}

// positive keeps the rows of positive multiplicity.
func positive(g *trace.Groups) {
	var idx []uint32
	at := 0
	for i, end := range g.Ends {
		for ; at < end; at++ {
			if g.Diffs[at] > 0 {
				idx = append(idx, uint32(at))
			}
		}
		g.Ends[i] = len(idx)
	}
	g.Rows = g.Rows.Gather(idx)
	g.Diffs = gatherDiffs(g.Diffs, idx)
}

// topAll is TopK without a limit: whole groups.
func (c *Circuit) topAll(s Stream, part []int, order []Order, o TopKOptions) Stream {
	kinds := s.Kinds()
	if o.RowNumber {
		kinds = append(slices.Clone(kinds), columnar.KindInt64)
	}
	f := &numberRows{o}
	oks, _ := c.GroupMap(s, part, kinds, f, GroupMapOptions{Order: order, Running: &Running{Pieces: f}})
	return oks
}

// numberRows is the GroupFunc of topAll.
type numberRows struct{ o TopKOptions }

// Apply emits the rows of each group from the offset up to the limit, if any.
func (f *numberRows) Apply(g *Groups, emit, _ func(*dataflow.Delta)) { f.number(g, 0, emit) }

// number is Apply of groups of which so many places are passed already.
func (f *numberRows) number(g *Groups, passed int64, emit func(*dataflow.Delta)) {
	var idx []uint32
	var diffs, numbers []int64
	lo := 0
	for _, hi := range g.Ends {
		n := passed
		for r := lo; r < hi; r++ {
			from, to := max(n, f.o.Offset), n+g.Mults[r]
			n = to
			if f.o.Limit >= 0 {
				to = min(to, f.o.Offset+f.o.Limit)
			}
			if !f.o.RowNumber && from < to {
				idx, diffs = append(idx, uint32(r)), append(diffs, to-from)
			}
			for ; f.o.RowNumber && from < to; from++ {
				idx, diffs, numbers = append(idx, uint32(r)), append(diffs, 1), append(numbers, from+1)
			}
		}
		lo = hi
	}
	b := g.Rows.Gather(idx)
	if f.o.RowNumber {
		b.Cols = append(b.Cols, columnar.FromSlice(numbers, nil))
	}
	emit(&dataflow.Delta{Batch: b, Diffs: diffs})
}

// Piece implements PieceFunc: the state is the number of places passed, as far
// as it matters.
func (f *numberRows) Piece(p *Piece, emit, _ func(*dataflow.Delta)) ([][]byte, bool) {
	most := int64(math.MaxInt64)
	if f.o.Limit >= 0 && f.o.Offset <= most-f.o.Limit {
		most = f.o.Offset + f.o.Limit
	} else if !f.o.RowNumber {
		most = f.o.Offset
	}
	var passed int64
	if len(p.Before) > 0 {
		passed = int64(binary.LittleEndian.Uint64(p.Before))
	}
	if p.Emit {
		f.number(&p.Groups, passed, emit)
	}
	states := make([][]byte, len(p.Cuts))
	for k := 1; k < len(p.Cuts); k++ {
		for _, m := range p.Mults[p.Cuts[k-1]:p.Cuts[k]] {
			passed = min(passed+m, most)
		}
		states[k] = binary.LittleEndian.AppendUint64(nil, uint64(passed))
	}
	return states, true
}
