package differential

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// halfJoin is the semi and the anti join. The right is a collection of keys
// with counts. A left row is in the output if its key is present: if its count
// is positive (for anti: if not). So a step outputs
//
//   - the left's delta as far as keys are present now, and
//   - the left's old rows of the keys that have become present or absent.
type halfJoin struct {
	*pairing
	l, r *Arrangement
}

// Step computes both parts.
func (j *halfJoin) Step(x *Context) {
	dl, dr := j.l.deltaRows(), j.r.deltaRows()
	rows := dl + dr
	x.Probed(j.r, dl)
	x.Probed(j.l, dr)
	x.ForEach(rows, func(p int, out *Emitter) {
		w := newPairs(j.pairing, out)
		dl, dr := j.l.Delta(p), j.r.Delta(p)
		if len(dl.Batches) > 0 {
			now := j.r.New(p)
			for _, d := range dl.Batches {
				for c := range d.Chunks() {
					j.present(w, d, c, now)
				}
			}
		}
		if len(dr.Batches) > 0 {
			old, left := j.r.Old(p), j.l.Old(p)
			for _, d := range dr.Batches {
				for c := range d.Chunks() {
					j.changed(w, d.Chunk(c), old, left)
				}
			}
		}
		w.flush()
	})
}

// present outputs the rows of a chunk of the left's delta whose keys are
// present (for anti: absent) in the right.
func (j *halfJoin) present(w *pairs, d *trace.Batch, c int, right trace.Reader) {
	ch := d.Chunk(c)
	counts := make([]dataflow.Diff, ch.N)
	countMatches(right, pick(ch.Cols, d.Layout().Key), ch.Hash, !j.o.NullSafe, counts)
	base := uint32(c) << columnar.ChunkShift
	var rows []uint32
	for i, n := range counts {
		if (n > 0) == (j.o.Kind == JoinSemi) {
			rows = append(rows, base+uint32(i))
		}
	}
	if len(rows) > 0 {
		w.emitLeft(d, rows, nil)
	}
}

// countMatches adds up the diffs of the rows of a reader with each key.
func countMatches(r trace.Reader, keys []*columnar.Vec, hash []uint64, skipNull bool, counts []dataflow.Diff) {
	m := trace.NewMatcher(trace.NewProbe(r.Layout, keys, hash, skipNull))
	for _, b := range r.Batches {
		m.Start(b)
		for m.Next(pairsMax) {
			for i, x := range m.Probe {
				counts[x] += b.DiffAt(m.Row[i])
			}
		}
	}
	m.Close()
}

// changed outputs the left's old rows of the keys in a chunk of the right's
// delta that become present or absent.
func (j *halfJoin) changed(w *pairs, ch *trace.Chunk, old, left trace.Reader) {
	counts := make([]dataflow.Diff, ch.N)
	countMatches(old, ch.Cols, ch.Hash, false, counts)
	var idx []uint32
	sign := make([]dataflow.Diff, 0, ch.N)
	for i, n := range counts {
		was, is := n > 0, n+ch.Diff(i) > 0
		if was == is {
			continue
		}
		idx = append(idx, uint32(i))
		if is == (j.o.Kind == JoinSemi) {
			sign = append(sign, 1)
		} else {
			sign = append(sign, -1)
		}
	}
	if len(idx) == 0 {
		return
	}
	keys := ch.Gather(idx)
	hash := make([]uint64, len(idx))
	for i, r := range idx {
		hash[i] = ch.Hash[r]
	}
	m := trace.NewMatcher(trace.NewProbe(left.Layout, keys.Cols, hash, !j.o.NullSafe))
	for _, b := range left.Batches {
		m.Start(b)
		for m.Next(pairsMax) {
			factors := make([]dataflow.Diff, len(m.Probe))
			for i, x := range m.Probe {
				factors[i] = sign[x]
			}
			w.emitLeft(b, m.Row, factors)
		}
	}
	m.Close()
}

// emitLeft outputs rows of the left with their diffs times factors (nil: 1).
func (w *pairs) emitLeft(b rowSource, rows []uint32, factors []dataflow.Diff) {
	var diffs []dataflow.Diff
	if factors != nil || !b.Ones() {
		diffs = make([]dataflow.Diff, len(rows))
		for i, r := range rows {
			diffs[i] = b.DiffAt(r)
			if factors != nil {
				diffs[i] *= factors[i]
			}
		}
	}
	for i, col := range w.o.Out {
		w.cols[i].AppendGather(b.Column(col), rows)
	}
	w.diffs = appendDiffs(w.diffs, w.n, diffs, len(rows))
	if w.n += len(rows); w.n >= pairsMax {
		w.flush()
	}
}
