package differential

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// A function of groups is local if what it makes of a row depends on the rows
// near it only. Then a change in a large group touches only its neighbourhood:
//
//	context | core | changed row | core | context
//
// The core is the rows that see the changed one: those up to After places in
// front of it and up to Before behind. The context is what the core sees
// besides. Both are read from the batches of the trace outwards from the changed
// row, so that the cost is that of the neighbourhood and not of the group. The
// function gets the neighbourhood as a group of its own, as it was and as it is,
// and gives its output for the core.
//
// Places count rows by their multiplicity, and a walk goes on until it has
// passed enough of them in both the old and the new state.

// Reach says how far a local function looks from a row: over so many rows before
// it and after it.
type Reach struct{ Before, After int }

// maxReach bounds the neighbourhoods that are worth their walk.
const maxReach = 1 << 12

// wholeGroup is the number of rows up to which a group is computed whole.
const wholeGroup = 256

// groupRun is the rows [lo, hi) of one batch that belong to a group.
type groupRun struct {
	b      *trace.Batch
	lo, hi int
	delta  bool   // a change of this step
	next   int    // the next row forwards
	prev   int    // the next row backwards
	stop   int    // where a merge ends
	base   uint32 // address of row 0 for the gatherers; it may wrap around

	cols  []*columnar.Vec // the ordering columns of a chunk
	chunk int             // which one, -1: none
}

// rowRef is a row of a neighbourhood, with its multiplicity before and after.
type rowRef struct {
	run, row int
	old, new dataflow.Diff
	core     bool
}

// mult is the multiplicity before or after.
func (r *rowRef) mult(now bool) int64 {
	if now {
		return r.new
	}
	return r.old
}

// nearby reads the rows of one group around places.
type nearby struct {
	l     *trace.Layout
	reach Reach
	runs  []groupRun
	refs  []rowRef

	active, equal []int // runs, of a merge
	gatherers     []columnar.Gatherer
	gathers       bool // the gatherers are those of the runs
	addr          []uint32
}

// close lets go of the batches.
func (n *nearby) close() {
	runs := n.runs[:cap(n.runs)]
	for i := range runs {
		cols := runs[i].cols[:cap(runs[i].cols)]
		clear(cols)
		runs[i] = groupRun{cols: cols[:0]}
	}
	for c := range n.gatherers {
		n.gatherers[c].Reset(n.l.Kinds[c], columnar.ChunkShift)
	}
	n.runs, n.gathers = n.runs[:0], false
}

// at is the chunk and the place in it of a row.
func (r *groupRun) at(row int) (*trace.Chunk, int) {
	return r.b.Chunk(row >> columnar.ChunkShift), row & (columnar.ChunkRows - 1)
}

// compare orders two rows of the group.
func (n *nearby) compare(a, x, b, y int) int {
	ca, i := n.runs[a].at(x)
	cb, j := n.runs[b].at(y)
	for _, c := range n.l.Order()[len(n.l.Key):] {
		if r := columnar.CompareAt(ca.Cols[c], i, cb.Cols[c], j); r != 0 {
			return r
		}
	}
	return 0
}

// open finds the rows of a group: key i of keys. It gives how many there are, and
// how many of them are changes.
func (n *nearby) open(old, delta []*trace.Batch, keys []*columnar.Vec, i int, hash uint64) (rows, changes int) {
	n.runs, n.gathers = n.runs[:0], false
	hashes := []uint64{hash}
	add := func(bs []*trace.Batch, isDelta bool) {
		for _, b := range bs {
			var lo, hi [1]uint32
			b.Locate(hashes, lo[:], hi[:])
			r := groupRun{b: b, lo: int(lo[0]), hi: int(hi[0]), delta: isDelta, chunk: -1}
			n.narrow(&r, keys, i)
			if r.lo == r.hi {
				continue
			}
			if k := len(n.runs); k < cap(n.runs) {
				r.cols = n.runs[:k+1][k].cols[:0]
			}
			n.runs = append(n.runs, r)
			rows += r.hi - r.lo
			if isDelta {
				changes += r.hi - r.lo
			}
		}
	}
	add(old, false)
	add(delta, true)
	return rows, changes
}

// narrow cuts the rows of one hash down to those of one key.
func (n *nearby) narrow(r *groupRun, keys []*columnar.Vec, i int) {
	compare := func(row int) int {
		ch, at := r.at(row)
		for k, c := range n.l.Key {
			if x := columnar.CompareAt(ch.Cols[c], at, keys[k], i); x != 0 {
				return x
			}
		}
		return 0
	}
	bound := func(lo, hi, above int) int {
		for lo < hi {
			m := (lo + hi) / 2
			if compare(m) < above {
				lo = m + 1
			} else {
				hi = m
			}
		}
		return lo
	}
	r.lo = bound(r.lo, r.hi, 0)
	r.hi = bound(r.lo, r.hi, 1)
}

// seek puts all runs at a row: it is the next one forwards, and what is in front
// of it the next backwards.
func (n *nearby) seek(run, row int) {
	for i := range n.runs {
		r := &n.runs[i]
		lo, hi := r.lo, r.hi
		for lo < hi {
			m := (lo + hi) / 2
			if n.compare(i, m, run, row) < 0 {
				lo = m + 1
			} else {
				hi = m
			}
		}
		r.next, r.prev = lo, lo-1
	}
}

// step takes the next row forwards or backwards, summed up over the batches;
// ok is false at the end of the group. changed says that this step changes it.
func (n *nearby) step(forward bool) (ref rowRef, changed, ok bool) {
	best := -1
	for i := range n.runs {
		r := &n.runs[i]
		if forward && r.next == r.hi || !forward && r.prev < r.lo {
			continue
		}
		if best < 0 {
			best = i
			continue
		}
		if forward {
			if n.compare(i, r.next, best, n.runs[best].next) < 0 {
				best = i
			}
		} else if n.compare(i, r.prev, best, n.runs[best].prev) > 0 {
			best = i
		}
	}
	if best < 0 {
		return rowRef{}, false, false
	}
	at := n.runs[best].prev
	if forward {
		at = n.runs[best].next
	}
	ref = rowRef{run: best, row: at}
	for i := best; i < len(n.runs); i++ {
		r := &n.runs[i]
		row := r.prev
		if forward {
			row = r.next
		}
		if row < r.lo || row >= r.hi || i != best && n.compare(i, row, best, at) != 0 {
			continue
		}
		ch, j := r.at(row)
		d := ch.Diff(j)
		ref.new += d
		if r.delta {
			changed = true
		} else {
			ref.old += d
		}
		if forward {
			r.next++
		} else {
			r.prev--
		}
	}
	ref.old, ref.new = max(ref.old, 0), max(ref.new, 0)
	return ref, changed, true
}

// around reads the neighbourhood of a changed row, and of the changed rows that
// lie in it, into refs. It gives where in the changes' run the rows end that it
// has covered.
func (n *nearby) around(run, row int) {
	n.refs = n.refs[:0]
	n.seek(run, row)
	w := walk{core: n.reach.After, context: n.reach.Before}
	for !w.done() {
		ref, _, ok := n.step(false)
		if !ok {
			break
		}
		n.refs = append(n.refs, w.pass(ref))
	}
	for i, j := 0, len(n.refs)-1; i < j; i, j = i+1, j-1 {
		n.refs[i], n.refs[j] = n.refs[j], n.refs[i]
	}
	placed := len(n.refs) // rows that are core or context for good
	for {
		ref, changed, ok := n.step(true)
		if !ok || !changed && w.done() {
			break
		}
		if changed {
			// All between two changes counts as core, which is no mistake.
			for i := placed; i < len(n.refs); i++ {
				n.refs[i].core = true
			}
			ref.core = true
			n.refs = append(n.refs, ref)
			placed = len(n.refs)
			w = walk{core: n.reach.Before, context: n.reach.After}
			continue
		}
		n.refs = append(n.refs, w.pass(ref))
	}
}

// walk counts the places that are still to pass away from a change: those of the
// core, then those of the context. Rows count whole, so the context begins to
// count where the core has ended.
type walk struct {
	core, context    int
	coreOld, coreNew int64
	old, new         int64
}

func (w *walk) inCore() bool { return w.coreOld < int64(w.core) || w.coreNew < int64(w.core) }

func (w *walk) done() bool {
	return !w.inCore() && w.old >= int64(w.context) && w.new >= int64(w.context)
}

// pass counts a row, and tells whether it is core.
func (w *walk) pass(ref rowRef) rowRef {
	if ref.core = w.inCore(); ref.core {
		w.coreOld, w.coreNew = w.coreOld+ref.old, w.coreNew+ref.new
	} else {
		w.old, w.new = w.old+ref.old, w.new+ref.new
	}
	return ref
}

// group makes a group of the rows in refs, as it was or as it is.
func (n *nearby) group(now bool) *Groups {
	g := &Groups{Core: make([]bool, 0, len(n.refs)), Mults: make([]int64, 0, len(n.refs))}
	n.addr = n.addr[:0]
	n.place()
	for i := range n.refs {
		ref := &n.refs[i]
		if m := ref.mult(now); m > 0 {
			n.addr = append(n.addr, n.runs[ref.run].base+uint32(ref.row))
			g.Mults = append(g.Mults, m)
			g.Core = append(g.Core, ref.core)
		}
	}
	g.Rows = n.gather()
	if g.Rows.N > 0 {
		g.Ends = []int{g.Rows.N}
	}
	return g
}

// gather is the rows at addr.
func (n *nearby) gather() columnar.Batch {
	out := columnar.Batch{N: len(n.addr), Cols: make([]*columnar.Vec, len(n.l.Kinds))}
	for c := range n.l.Kinds {
		out.Cols[c] = n.gatherers[c].Gather(n.addr)
	}
	return out
}

// place gives the rows of the runs addresses.
func (n *nearby) place() {
	if n.gathers {
		return
	}
	n.gathers = true
	if n.gatherers == nil {
		n.gatherers = make([]columnar.Gatherer, len(n.l.Kinds))
	}
	for c, k := range n.l.Kinds {
		n.gatherers[c].Reset(k, columnar.ChunkShift)
	}
	chunks := 0
	for i := range n.runs {
		r := &n.runs[i]
		first, last := r.lo>>columnar.ChunkShift, (r.hi-1)>>columnar.ChunkShift
		r.base = uint32(chunks-first) << columnar.ChunkShift
		for c := range n.l.Kinds {
			for k := first; k <= last; k++ {
				n.gatherers[c].Add(r.b.Chunk(k).Cols[c])
			}
		}
		chunks += last + 1 - first
	}
}

// nearChanges computes the neighbourhoods of the changes of one group; false if
// the group should be computed whole.
func (g *groupMap) nearChanges(n *nearby, p int, keys []*columnar.Vec, i int, hash uint64, out *Emitter) bool {
	delta := g.in.Delta(p).Batches
	if len(delta) != 1 {
		return false
	}
	n.reach = *g.reach
	rows, changes := n.open(g.in.Old(p).Batches, delta, keys, i, hash)
	many := changes*(n.reach.Before+n.reach.After+4)*2 > rows
	if rows <= g.small || many && g.small == wholeGroup || changes == 0 {
		return false
	}
	run := len(n.runs) - 1 // the changes come last
	for row := n.runs[run].lo; row < n.runs[run].hi; {
		n.around(run, row)
		row = n.runs[run].next
		var oks, errs []*dataflow.Delta
		g.applyTo(g.named(n.group(false)), -1, &oks, &errs)
		g.applyTo(g.named(n.group(true)), 1, &oks, &errs)
		out.Emit(0, Consolidated(g.kinds, oks))
		out.Emit(1, Consolidated(ErrorKinds, errs))
	}
	return true
}

// named gives the rows of a group their columns back.
func (g *groupMap) named(in *Groups) *Groups {
	if g.layout != nil {
		in.Rows.Cols = g.layout.restore(in.Rows.Cols)
	}
	return in
}
