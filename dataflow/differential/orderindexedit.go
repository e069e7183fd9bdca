package differential

import (
	"math"

	"github.com/streamdb/streamdb/columnar"
)

// buildRows is how many rows are merged at a time to make an index.
const buildRows = 4096

// build makes the index of the group as it was before the step.
func (n *nearby) build(kind *indexKind, key []*columnar.Vec) *orderIndex {
	x := &orderIndex{kind: kind, key: key}
	x.insert(0, nil, 0)
	if kind.saved {
		x.before[0], x.after[0] = []byte{}, []byte{}
	}
	for i := range n.runs {
		r := &n.runs[i]
		r.next, r.stop = r.lo, r.hi
		if r.delta {
			r.stop = r.lo
		}
	}
	n.refs = n.refs[:0]
	var cuts []int
	for {
		before := len(n.refs)
		n.merge(before+buildRows, true)
		done := len(n.refs) < before+buildRows
		cuts = n.cut(x, n.refs, false, cuts[:0])
		lo := 0
		for _, c := range cuts {
			n.append(x, n.refs[lo:c], &n.refs[c])
			lo = c
		}
		n.refs = n.refs[:copy(n.refs, n.refs[lo:])]
		if done {
			break
		}
	}
	n.append(x, n.refs, nil)
	return x
}

// append fills the last block with rows, and begins the next one at a row.
func (n *nearby) append(x *orderIndex, refs []rowRef, next *rowRef) {
	o := &x.blocks[len(x.blocks)-1]
	*o = n.measure(x, refs, false)
	x.rows += o.rows
	x.places += o.places
	if next != nil {
		cols, at := n.fenceAt(x, &n.runs[next.run], next.row)
		x.insert(len(x.blocks), cols, at)
	}
}

// cut appends where rows should be cut, into blocks.
func (n *nearby) cut(x *orderIndex, refs []rowRef, now bool, cuts []int) []int {
	rows := 0
	var last *rowRef
	for i := range refs {
		ref := &refs[i]
		if ref.mult(now) == 0 {
			continue
		}
		if rows >= x.kind.rows && !n.peers(x, x.kind.fenceCols(), last, ref) {
			cuts = append(cuts, i)
			rows = 0
		}
		rows++
		last = ref
	}
	return cuts
}

// update notes the changes of the step, which are run `run`: what is in the
// blocks, and which of them have rows that see a change.
func (n *nearby) update(x *orderIndex, run int, reach Reach) {
	for row := n.runs[run].lo; row < n.runs[run].hi; row++ {
		n.seek(run, row)
		ref, _, _ := n.step(true)
		if ref.old == ref.new {
			continue
		}
		b := n.block(x, run, row)
		o := &x.blocks[b]
		was, is := int(boolWord(ref.old > 0)), int(boolWord(ref.new > 0))
		o.rows += is - was
		x.rows += is - was
		if n.counts(x, &ref) {
			o.places += ref.new - ref.old
			x.places += ref.new - ref.old
		}
		from := n.farthest(x, b, false, reach.After)
		to := n.farthest(x, b, true, reach.Before)
		for ; from <= to; from++ {
			x.blocks[from].dirty = true
		}
	}
}

// farthest is the block of the last row of a walk over so many places, in both
// states; b if there is none.
func (n *nearby) farthest(x *orderIndex, b int, forward bool, places int) int {
	var old, new int64
	var last rowRef
	some := false
	for p := int64(places); old < p || new < p; {
		ref, _, ok := n.step(forward)
		if !ok {
			break
		}
		old, new = old+ref.old, new+ref.new
		last, some = ref, true
	}
	if !some {
		return b
	}
	return n.block(x, last.run, last.row)
}

// reshape cuts the touched blocks that have become too large, and joins those
// that have become small with a neighbour.
func (n *nearby) reshape(x *orderIndex) {
	var cuts []int
	for b := len(x.blocks) - 1; b >= 0; b-- {
		o := &x.blocks[b]
		if !o.dirty {
			continue
		}
		split := o.rows > max(2*x.kind.rows, o.whole)
		if !split && !x.kind.mode {
			continue
		}
		n.read(x, b, b+1, Reach{}, nil)
		if !split {
			o.most = n.measure(x, n.refs, true).most
			continue
		}
		if cuts = n.cut(x, n.refs, true, cuts[:0]); len(cuts) == 0 {
			o.most = n.measure(x, n.refs, true).most
			o.whole = min(2*o.rows, math.MaxInt/2)
			continue
		}
		lo := 0
		for i, c := range append(cuts, len(n.refs)) {
			if i > 0 {
				first := &n.refs[lo]
				cols, at := n.fenceAt(x, &n.runs[first.run], first.row)
				x.insert(b+i, cols, at)
			}
			x.blocks[b+i] = n.measure(x, n.refs[lo:c], true)
			x.blocks[b+i].dirty = true
			lo = c
		}
	}
	for b := len(x.blocks) - 2; b >= 0; b-- {
		l, r := &x.blocks[b], &x.blocks[b+1]
		if (l.dirty || r.dirty) && min(l.rows, r.rows) < max(x.kind.rows/4, 1) && l.rows+r.rows <= x.kind.rows {
			x.join(b)
		}
	}
}
