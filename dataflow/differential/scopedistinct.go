package differential

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// phase is how the Distincts of a scope take changes. A row that loses a
// derivation may still have others, but those may rest on the row itself, by way
// of a cycle. So rows are deleted in two phases (delete and rederive: Gupta,
// Mumick, Subrahmanian, SIGMOD 1993):
//
//   - While deleting, a row that loses any derivation is taken out, and with it
//     what was derived from it, until nothing more goes. Of what is left no
//     derivation was lost, so that it is well founded.
//   - Then the rows taken out of which a derivation is left come back, together
//     with what is new, and the rounds go on as they do for additions.
type phase uint8

const (
	adding phase = iota
	deleting
)

// scopeDistinct is Distinct within a scope.
type scopeDistinct struct {
	a     *Arrangement
	scope *Scope
	node  *Node
	// out is the rows that were taken out, with count 1, while deleting.
	out *trace.Trace
}

func (c *Circuit) scopeDistinct(s Stream) Stream {
	a := c.Arrange(s, allColumns(len(s.Kinds())))
	d := &scopeDistinct{a: a, scope: c.scope}
	d.node = c.AddOver(d, []*Arrangement{a}, s.Kinds())
	c.scope.distincts = append(c.scope.distincts, d)
	return d.node.Out(0)
}

// Step outputs the rows that appear or disappear.
func (d *scopeDistinct) Step(x *Context) {
	rows := d.a.deltaRows()
	x.Probed(d.a, rows)
	if d.scope.phase == deleting && d.out == nil {
		d.out = trace.New(d.a.layout, x.c.opts.Partitions)
	}
	gone := make([][]*dataflow.Delta, x.c.opts.Partitions)
	x.ForEach(rows, func(p int, out *Emitter) {
		old, delta := d.a.Old(p), d.a.Delta(p)
		for _, b := range delta.Batches {
			for i := range b.Chunks() {
				ch := b.Chunk(i)
				change := d.changes(ch, old, p)
				e := changedRows(ch, change)
				out.Emit(0, e)
				if d.scope.phase == deleting && e != nil {
					gone[p] = append(gone[p], negate(e))
				}
			}
		}
		if d.scope.phase == adding && d.out != nil {
			d.rederive(old, delta, p, out)
		}
	})
	if d.scope.phase == adding {
		d.out = nil
		return
	}
	var all []*dataflow.Delta
	for _, g := range gone {
		all = append(all, g...)
	}
	x.Commit(d.out, x.Arrange(d.out, all))
}

// takenOut counts, for rows with the given hashes, whether they are out.
func (d *scopeDistinct) takenOut(cols []*columnar.Vec, hash []uint64, p int) []dataflow.Diff {
	n := make([]dataflow.Diff, len(hash))
	if d.out != nil {
		countMatches(d.out.Spines()[p].Reader(), cols, hash, false, n)
	}
	return n
}

// changes is what each row of the delta changes in the output.
func (d *scopeDistinct) changes(ch *trace.Chunk, old trace.Reader, p int) []dataflow.Diff {
	counts := make([]dataflow.Diff, ch.N)
	countMatches(old, ch.Cols, ch.Hash, false, counts)
	out := d.takenOut(ch.Cols, ch.Hash, p)
	for r, n := range counts {
		was, is := n > 0 && out[r] <= 0, n+ch.Diff(r) > 0
		if d.scope.phase == deleting && ch.Diff(r) < 0 {
			is = false
		}
		switch {
		case was == is:
			counts[r] = 0
		case is:
			counts[r] = 1
		default:
			counts[r] = -1
		}
	}
	return counts
}

// rederive brings back the rows that are out but have a derivation left. Those
// in the delta have been seen to.
func (d *scopeDistinct) rederive(old, delta trace.Reader, p int, out *Emitter) {
	for _, b := range d.out.Spines()[p].Reader().Batches {
		for i := range b.Chunks() {
			ch := b.Chunk(i)
			counts, seen := make([]dataflow.Diff, ch.N), make([]dataflow.Diff, ch.N)
			countMatches(old, ch.Cols, ch.Hash, false, counts)
			countMatches(delta, ch.Cols, ch.Hash, false, seen)
			for r, n := range counts {
				counts[r] = 0
				if n > 0 && seen[r] == 0 && ch.Diff(r) > 0 {
					counts[r] = 1
				}
			}
			out.Emit(0, changedRows(ch, counts))
		}
	}
}
