package differential

import (
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// valuePart is a partition of a valueSet. The values are in a trace by group;
// each group has at the end of its row a prefix (see prefixRef) of them from
// either end that an aggregate asks for.
type valuePart struct {
	set  *valueSet
	pre  []prefixes // of the accumulators set.best
	refs []int      // word of a group's row where the prefix is
	src  prefixSource

	runs              keyRuns
	gids, fresh, rows []uint32
	ptrs              []unsafe.Pointer
	enc               []uint64
}

func (s *reducePart) newValuePart(set *valueSet, ref int) *valuePart {
	rows := newRowCodec([]columnar.Kind{set.kind}, true)
	v := &valuePart{set: set}
	for i, a := range set.best {
		v.pre = append(v.pre, newPrefixes(rows, a.desc, 1, &s.pools.ar, &s.pools.dead))
		v.refs = append(v.refs, s.t.rest+ref+2*i)
	}
	k := len(s.plan.keyCols)
	v.src = prefixSource{table: &s.t, keys: allColumns(k), vals: []int{k}}
	return v
}

func (v *valuePart) ref(p unsafe.Pointer, i int) *prefixRef {
	return (*prefixRef)(unsafe.Add(p, v.refs[i]*8))
}

// valueDeltas projects deltas to the key columns and the value, for the rows
// that have one.
func (p *reducePlan) valueDeltas(set *valueSet, ds []*dataflow.Delta) []*dataflow.Delta {
	cols := append(append([]int(nil), p.keyCols...), set.arg)
	out := make([]*dataflow.Delta, 0, len(ds))
	for _, d := range ds {
		v := d.Cols[set.arg]
		part := &dataflow.Delta{Batch: d.Select(cols), Diffs: d.Diffs}
		if !v.HasNulls() && set.filter < 0 {
			out = append(out, part)
			continue
		}
		var filter []bool
		if set.filter >= 0 {
			filter = d.Cols[set.filter].Bools()
		}
		sel := make([]uint32, 0, d.N)
		for i := range d.N {
			if !v.Null(i) && (filter == nil || filter[i]) {
				sel = append(sel, uint32(i))
			}
		}
		if len(sel) == 0 {
			continue
		}
		part.Batch = part.Gather(sel)
		if d.Diffs != nil {
			part.Diffs = make([]int64, len(sel))
			for i, r := range sel {
				part.Diffs[i] = d.Diffs[r]
			}
		}
		out = append(out, part)
	}
	return out
}

// valueTrace makes a trace for a valueSet: (key columns, value).
func (p *reducePlan) valueTrace(set *valueSet, partitions int) *trace.Trace {
	kinds := append(append([]columnar.Kind(nil), p.keyKinds...), set.kind)
	return trace.New(trace.NewLayout(kinds, allColumns(len(p.keyKinds))), partitions)
}

// openValues says where the values are: the trace as it was before the epoch,
// and, once consumeValues gets to them, the changes of the epoch.
func (s *reducePart) openValues(i int, old trace.Reader) {
	v := s.values[i]
	v.src.batches = append(v.src.batches[:0], old.Batches...)
}

func (s *reducePart) closeValues() {
	for _, v := range s.values {
		clear(v.src.batches)
		v.src.batches = v.src.batches[:0]
		v.src.scan.close()
	}
}

// consumeValues brings the epoch's changes of the values, which are sorted by
// group and value, to the prefixes, and the extremes to the slots.
func (s *reducePart) consumeValues(v *valuePart, b *trace.Batch) {
	if b == nil {
		return
	}
	v.src.batches = append(v.src.batches, b)
	for i := range b.Chunks() {
		s.consumeValueChunk(v, b, i)
	}
}

func (s *reducePart) consumeValueChunk(v *valuePart, b *trace.Batch, i int) {
	c := b.Chunk(i)
	k := len(s.plan.keyCols)
	open := v.runs.find(b, i, v.src.keys)
	if n := len(v.runs.firsts); len(v.gids) < n {
		v.gids, v.ptrs = make([]uint32, n), make([]unsafe.Pointer, n)
	}
	v.fresh = s.t.probe(c.Cols[:k], v.runs.hs, v.runs.firsts, v.gids, v.ptrs, v.fresh[:0])
	vals := c.Cols[k : k+1]
	codec := v.pre[0].rows
	if cap(v.enc) < c.N*codec.words {
		v.enc = make([]uint64, c.N*codec.words)
	}
	v.enc = v.enc[:c.N*codec.words]
	for len(v.rows) < c.N {
		v.rows = append(v.rows, uint32(len(v.rows)))
	}
	codec.encode(vals, v.rows[:c.N], v.enc)
	for g, first := range v.runs.firsts {
		lo, n := int(first), int(v.runs.ends[g]-first)
		p := unsafe.Add(v.ptrs[g], -s.t.rest*8)
		if *header(p)&groupTouched == 0 {
			s.touchOne(v.gids[g], v.runs.hs[g])
		}
		diff := func(i int) int64 { return c.Diff(lo + i) }
		for i := range v.pre {
			h := v.ref(p, i)
			v.pre[i].addRun(h, v.enc[lo*codec.words:], n, diff, vals, lo)
			// While rows of the group are still to come, the trace must not be
			// asked: it would give them, too.
			if !open || g < len(v.runs.firsts)-1 {
				s.setBest(v, i, p, c.Hash[lo])
			}
		}
	}
}

// setBest reads the extreme off the prefix, which it refills and cuts as needed.
func (s *reducePart) setBest(v *valuePart, i int, p unsafe.Pointer, hash uint64) {
	o := &v.pre[i]
	h := v.ref(p, i)
	best := o.first(h)
	for best == nil && h.more() {
		fill, _ := o.bounds(h)
		o.refill(h, &v.src, p, hash, fill)
		best = o.first(h)
	}
	a := v.set.best[i]
	slots := (*[2]uint64)(unsafe.Add(p, (s.t.rest+a.at)*8))
	if best == nil {
		clear(slots[:a.words])
		return
	}
	row := entryRow(best)
	for j := range a.words {
		slots[j] = *wordAt(row, j)
	}
	if h.len() > 8 {
		o.trim(h, o.place(h, best)+1)
	}
}

// vacant reports whether no value of the group is left, and then frees what its
// prefixes hold.
func (s *reducePart) vacant(gid uint32, p unsafe.Pointer) bool {
	if len(s.values) == 0 {
		return true
	}
	for _, v := range s.values {
		for i := range v.pre {
			h := v.ref(p, i)
			if h.more() {
				v.pre[i].refill(h, &v.src, p, s.t.hashOf(gid), 1)
			}
			if h.more() || h.len() > 0 {
				return false
			}
		}
	}
	for _, v := range s.values {
		for i := range v.pre {
			v.pre[i].drop(v.ref(p, i))
		}
	}
	return true
}
