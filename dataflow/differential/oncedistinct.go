package differential

import (
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// onceDistinct is Distinct within a scope of a circuit that runs once: a table of counts,
// which need not outlive the run, nor tell what it was before.
type onceDistinct struct {
	kinds []columnar.Kind
	key   []int
	parts []*countTable
}

// countTable is the counts of the rows of a partition.
type countTable struct {
	t     groupTable
	hs    []uint32
	gids  []uint32
	fresh []uint32
	ptrs  []unsafe.Pointer
}

// Step outputs the rows that appear or disappear.
func (d *onceDistinct) Step(x *Context) {
	in := x.In(0)
	cut := x.scatter(in, d.key)
	x.ForEach(countRows(in), func(i int, out *Emitter) {
		if cut.rows(i) == 0 {
			return
		}
		if d.parts[i] == nil {
			d.parts[i] = &countTable{t: newGroupTable(d.kinds, false, 1)}
		}
		for j := range cut.deltas {
			out.Emit(0, d.parts[i].count(&cut.deltas[j], i))
		}
	})
	cut.release()
}

// count adds the rows of partition i of a delta, and gives what that changes.
func (c *countTable) count(d *scattered, i int) *dataflow.Delta {
	var idx []uint32
	var diffs []dataflow.Diff
	ones := true
	all := d.part(i)
	for lo := 0; lo < len(all); lo += probeChunk {
		rows := all[lo:min(lo+probeChunk, len(all))]
		n := len(rows)
		if len(c.hs) < n {
			c.hs, c.gids, c.ptrs = make([]uint32, n), make([]uint32, n), make([]unsafe.Pointer, n)
		}
		for k, r := range rows {
			c.hs[k] = uint32(d.hash[r])
		}
		c.fresh = c.t.probe(d.Cols, c.hs[:n], rows, c.gids[:n], c.ptrs[:n], c.fresh[:0])
		for k, r := range rows {
			p := (*dataflow.Diff)(c.ptrs[k])
			was := *p > 0
			*p += d.Diff(int(r))
			switch is := *p > 0; {
			case was == is:
			case is:
				idx, diffs = append(idx, r), append(diffs, 1)
			default:
				idx, diffs, ones = append(idx, r), append(diffs, -1), false
			}
		}
	}
	if len(idx) == 0 {
		return nil
	}
	out := &dataflow.Delta{Batch: d.Gather(idx), Diffs: diffs}
	if ones {
		out.Diffs = nil
	}
	return out
}
