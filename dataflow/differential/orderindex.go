package differential

import (
	"slices"
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
)

// The rows of a large group are in the batches of a trace, sorted within each. An
// orderIndex cuts them into blocks and keeps of each what lets a change be
// answered without the others: how many places it has, and the states in which a
// function comes to it. A block holds the rows from its fence up to the next one's:
//
//	fence   -∞      (7, b)      (9, a) …
//	block   0 ────── 1 ────────── 2 ─────
//
// Fences are values and not places, so that batches may merge and rows go. All of
// it can be told from the trace: it is made when a group is first touched, and
// dropped when the group is computed whole, or with a restart. It takes about
// 1/blockRows of what the rows take.
type orderIndex struct {
	kind   *indexKind
	key    []*columnar.Vec // of the group: one row
	ar     arena
	fences []uint64 // a row of the codec for each block
	blocks []orderBlock
	places int64 // of all blocks
	rows   int   // of all blocks

	// What a function knows when it comes to the first row of a block, from those
	// in front of it, or to the last, from those behind it; nil: not known yet.
	before, after [][]byte
}

// orderBlock describes a block.
type orderBlock struct {
	rows   int   // that exist
	places int64 // that count
	most   int64 // places of the most frequent value
	whole  int   // rows up to which it is left whole though it is too large
	dirty  bool  // touched in this step
}

// indexKind is what the indexes of an operator have in common.
type indexKind struct {
	cols    []int     // of the trace's layout: its order within a group
	fence   *rowCodec // of the first ones, by which blocks are cut
	counted int       // the column that is not NULL where places count; -1: all do
	mode    bool      // the most frequent value is wanted, of cols[0]
	saved   bool      // states are kept
	rows    int       // that a block is made with
}

// blockRows is how many rows a block has unless Options say otherwise: to read one
// costs less than to find it in all batches, and an index of them little memory.
const blockRows = 192

// wholeBlocks is how many blocks the rows of a group must fill for it to have an
// index.
const wholeBlocks = 5

// manyChanges is how many changes of a group are never too many for its index.
const manyChanges = 128

func (k *indexKind) fenceCols() int { return len(k.fence.kinds) }

// bytes is about what the index takes.
func (x *orderIndex) bytes() int64 {
	n := int64(len(x.fences))*8 + int64(cap(x.blocks))*int64(unsafe.Sizeof(orderBlock{})) + x.ar.size()
	for _, states := range [][][]byte{x.before, x.after} {
		for _, s := range states {
			n += int64(cap(s)) + 24
		}
	}
	return n
}

func (x *orderIndex) fence(b int) unsafe.Pointer {
	return unsafe.Pointer(&x.fences[b*x.kind.fence.words])
}

// insert makes an empty block b that begins at a row.
func (x *orderIndex) insert(b int, cols []*columnar.Vec, row int) {
	w := x.kind.fence.words
	x.fences = slices.Insert(x.fences, b*w, make([]uint64, w)...)
	x.blocks = slices.Insert(x.blocks, b, orderBlock{})
	if cols != nil {
		x.kind.fence.encodeRow(cols, row, x.fence(b))
		x.kind.fence.tails(x.fence(b), cols, row, &x.ar)
	}
	if x.kind.saved {
		x.before = slices.Insert(x.before, b, nil)
		x.after = slices.Insert(x.after, max(b-1, 0), nil) // what is known behind the whole stays behind its last part
	}
}

// join makes one block of b and the next one.
func (x *orderIndex) join(b int) {
	w := x.kind.fence.words
	x.kind.fence.free(x.fence(b+1), &x.ar)
	x.fences = slices.Delete(x.fences, (b+1)*w, (b+2)*w)
	next := &x.blocks[b+1]
	o := &x.blocks[b]
	o.rows += next.rows
	o.places += next.places
	o.most = max(o.most, next.most)
	o.dirty = o.dirty || next.dirty
	o.whole = 0
	x.blocks = slices.Delete(x.blocks, b+1, b+2)
	if x.kind.saved {
		x.before = slices.Delete(x.before, b+1, b+2)
		x.after = slices.Delete(x.after, b, b+1)
	}
}

// fenceAt is the fence columns of a run's row, and its place in them.
func (n *nearby) fenceAt(x *orderIndex, r *groupRun, row int) ([]*columnar.Vec, int) {
	if c := row >> columnar.ChunkShift; c != r.chunk {
		r.chunk = c
		r.cols = pickCols(r.cols[:0], r.b.Chunk(c).Cols, x.kind.cols[:x.kind.fenceCols()])
	}
	return r.cols, row & (columnar.ChunkRows - 1)
}

// block is the block of a run's row.
func (n *nearby) block(x *orderIndex, run, row int) int {
	cols, at := n.fenceAt(x, &n.runs[run], row)
	lo, hi := 0, len(x.blocks) // the fence of lo is not after the row, that of hi is
	for lo+1 < hi {
		m := (lo + hi) / 2
		if x.kind.fence.compareVecs(x.fence(m), cols, at, &x.ar) <= 0 {
			lo = m
		} else {
			hi = m
		}
	}
	return lo
}

// lower is the first row of a run, from lo on, that is in block b > 0 or a later one.
func (n *nearby) lower(x *orderIndex, r *groupRun, b, lo int) int {
	if b == len(x.blocks) {
		return r.hi
	}
	hi := r.hi
	fence := x.fence(b)
	for step := 1; lo < hi; step *= 2 { // what is sought is mostly near
		m := min(lo+step, hi) - 1
		cols, at := n.fenceAt(x, r, m)
		if x.kind.fence.compareVecs(fence, cols, at, &x.ar) <= 0 {
			hi = m
			break
		}
		lo = m + 1
	}
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		cols, at := n.fenceAt(x, r, m)
		if x.kind.fence.compareVecs(fence, cols, at, &x.ar) <= 0 {
			hi = m
		} else {
			lo = m + 1
		}
	}
	return lo
}

// seekBlock puts all runs at the beginning of block b.
func (n *nearby) seekBlock(x *orderIndex, b int) {
	for i := range n.runs {
		r := &n.runs[i]
		lo, hi := r.lo, r.hi
		if b == len(x.blocks) {
			lo = hi
		}
		for b > 0 && lo < hi {
			m := int(uint(lo+hi) >> 1)
			cols, at := n.fenceAt(x, r, m)
			if x.kind.fence.compareVecs(x.fence(b), cols, at, &x.ar) <= 0 {
				hi = m
			} else {
				lo = m + 1
			}
		}
		r.next, r.prev = lo, lo-1
	}
}

// merge appends to refs the rows from next to stop of all runs, in order and
// summed up, and those of them that exist before or after the step. It may end
// early, when there are `most` rows in refs.
func (n *nearby) merge(most int, core bool) {
	act := n.active[:0]
	for i := range n.runs {
		if n.runs[i].next < n.runs[i].stop {
			act = append(act, i)
		}
	}
	for len(act) > 1 && len(n.refs) < most {
		eq := append(n.equal[:0], 0)
		for k := 1; k < len(act); k++ {
			best := act[eq[0]]
			switch c := n.compare(act[k], n.runs[act[k]].next, best, n.runs[best].next); {
			case c < 0:
				eq = append(eq[:0], k)
			case c == 0:
				eq = append(eq, k)
			}
		}
		n.equal = eq
		ref := rowRef{run: act[eq[0]], row: n.runs[act[eq[0]]].next, core: core}
		for j := len(eq) - 1; j >= 0; j-- {
			r := &n.runs[act[eq[j]]]
			d := r.b.DiffAt(uint32(r.next))
			ref.new += d
			if !r.delta {
				ref.old += d
			}
			if r.next++; r.next == r.stop {
				act = slices.Delete(act, eq[j], eq[j]+1)
			}
		}
		n.take(ref)
	}
	n.active = act
	if len(act) != 1 {
		return
	}
	r := &n.runs[act[0]]
	for ; r.next < r.stop && len(n.refs) < most; r.next++ {
		d := r.b.DiffAt(uint32(r.next))
		ref := rowRef{run: act[0], row: r.next, new: d, core: core}
		if !r.delta {
			ref.old = d
		}
		n.take(ref)
	}
}

// take appends a row to refs, if it exists before or after.
func (n *nearby) take(ref rowRef) {
	ref.old, ref.new = max(ref.old, 0), max(ref.new, 0)
	if ref.old+ref.new > 0 {
		n.refs = append(n.refs, ref)
	}
}

// read reads the blocks from b up to e into refs as the core, with so many places
// around them as context. It appends to cuts where each block begins in refs, and
// where the last one ends.
func (n *nearby) read(x *orderIndex, b, e int, reach Reach, cuts []int) []int {
	n.refs = n.refs[:0]
	n.seekBlock(x, b)
	var old, new int64
	for reach.Before > 0 && (old < int64(reach.Before) || new < int64(reach.Before)) {
		ref, _, ok := n.step(false)
		if !ok {
			break
		}
		old, new = old+ref.old, new+ref.new
		n.refs = append(n.refs, ref)
	}
	slices.Reverse(n.refs)
	for ; b < e; b++ {
		cuts = append(cuts, len(n.refs))
		for i := range n.runs {
			r := &n.runs[i]
			r.stop = n.lower(x, r, b+1, r.next)
		}
		n.merge(1<<62, true)
	}
	cuts = append(cuts, len(n.refs))
	for old, new = 0, 0; reach.After > 0 && (old < int64(reach.After) || new < int64(reach.After)); {
		ref, _, ok := n.step(true)
		if !ok {
			break
		}
		old, new = old+ref.old, new+ref.new
		n.refs = append(n.refs, ref)
	}
	return cuts
}

// counts reports whether a row's places count.
func (n *nearby) counts(x *orderIndex, ref *rowRef) bool {
	if x.kind.counted < 0 {
		return true
	}
	ch, i := n.runs[ref.run].at(ref.row)
	return !ch.Cols[x.kind.counted].Null(i)
}

// peers reports whether two rows are equal in the first k columns of the order.
func (n *nearby) peers(x *orderIndex, k int, a, b *rowRef) bool {
	ca, i := n.runs[a.run].at(a.row)
	cb, j := n.runs[b.run].at(b.row)
	for _, c := range x.kind.cols[:k] {
		if columnar.CompareAt(ca.Cols[c], i, cb.Cols[c], j) != 0 {
			return false
		}
	}
	return true
}

// measure describes a block by its rows as they are (or were, if !now).
func (n *nearby) measure(x *orderIndex, refs []rowRef, now bool) (o orderBlock) {
	run := int64(0)
	var last *rowRef
	for i := range refs {
		ref := &refs[i]
		m := ref.mult(now)
		if m == 0 {
			continue
		}
		o.rows++
		if !n.counts(x, ref) {
			continue
		}
		o.places += m
		if !x.kind.mode {
			continue
		}
		if last == nil || !n.peers(x, 1, last, ref) {
			run = 0
		}
		run += m
		o.most = max(o.most, run)
		last = ref
	}
	return o
}
