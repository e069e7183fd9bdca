package trace

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// Selection is the rows of a snapshot that are within some ranges of an ordering.
// It is valid as long as the snapshot is held.
type Selection struct {
	ordering *Ordering
	parts    []selectedPart
	// Rows is how many there are before summing up across batches; Sorted how many
	// rows were sorted to find them.
	Rows, Sorted int
}

// selectedPart is what is selected of a partition.
type selectedPart struct {
	reader Reader
	runs   []run
}

// run is neighbours in the order of a batch.
type run struct {
	batch  *Batch
	base   uint32 // address of the batch's first row over all batches of its reader
	sorted *sortedRows
	lo, hi int
}

// Select finds the rows within ranges of an ordering. It reports false if they are
// thought to be more than a share of all rows, or cannot be found without a scan.
func (s *TraceSnapshot) Select(o *Ordering, rs []Range, most float64) (*Selection, bool) {
	if s.layout.Unkeyed {
		return nil, false
	}
	limit := int(most * float64(s.Len()))
	if most < 1 {
		guess := 0
		for _, p := range s.Parts {
			for _, b := range p.Batches {
				if b.rows >= sampleFrom && !b.hasOrder(o) {
					guess += b.sample(o, rs)
				}
			}
		}
		if guess > limit {
			return nil, false
		}
	}
	sel := &Selection{ordering: o, parts: make([]selectedPart, len(s.Parts))}
	for i, p := range s.Parts {
		sel.parts[i].reader = p.Reader
		base := uint32(0)
		for _, b := range p.Batches {
			if !sel.add(&sel.parts[i], b, base, rs) {
				return nil, false
			}
			base += uint32(len(b.chunks)) << columnar.ChunkShift
		}
	}
	return sel, most >= 1 || sel.Rows <= max(limit, sampleFrom)
}

// add finds the rows within ranges of one batch.
func (sel *Selection) add(p *selectedPart, b *Batch, base uint32, rs []Range) bool {
	if !b.hasOrder(sel.ordering) {
		sel.Sorted += b.rows
	}
	sorted := b.order(sel.ordering)
	if sorted == nil {
		return false
	}
	from := len(p.runs)
	for i := range rs {
		if lo, hi := sorted.find(&rs[i]); lo < hi {
			p.runs = append(p.runs, run{b, base, sorted, lo, hi})
		}
	}
	mine := p.runs[from:]
	slices.SortFunc(mine, func(a, b run) int { return a.lo - b.lo })
	n := 0
	for _, r := range mine { // ranges may overlap
		if n > 0 && r.lo <= mine[n-1].hi {
			mine[n-1].hi = max(mine[n-1].hi, r.hi)
			continue
		}
		mine[n] = r
		n++
	}
	p.runs = p.runs[:from+n]
	for _, r := range p.runs[from:] {
		sel.Rows += r.hi - r.lo
	}
	return true
}

// cancels reports whether rows of a partition's selection may have to be summed up.
func (p *selectedPart) cancels() bool {
	ones := true
	for i := range p.runs {
		if p.runs[i].batch != p.runs[0].batch {
			ones = ones && p.runs[i].batch.ones && p.runs[0].batch.ones
		}
	}
	return !ones
}

// gather fetches rows by their addresses over all batches of the partition.
func (p *selectedPart) gather(addr []uint32) *dataflow.Delta {
	r := p.reader
	out := columnar.Batch{Cols: make([]*columnar.Vec, len(r.Layout.Kinds)), N: len(addr)}
	for c, k := range r.Layout.Kinds {
		var g columnar.Gatherer
		g.Reset(k, columnar.ChunkShift)
		for _, b := range r.Batches {
			b.AddTo(&g, c)
		}
		out.Cols[c] = g.Gather(addr)
	}
	return &dataflow.Delta{Batch: out, Diffs: r.diffsAt(addr)}
}

// Each gives the rows in deltas of which none takes back a row of another. They are
// copies.
func (sel *Selection) Each(yield func(*dataflow.Delta) bool) {
	for i := range sel.parts {
		p := &sel.parts[i]
		if len(p.runs) == 0 {
			continue
		}
		most := p.reader.readRows()
		sum := p.cancels()
		if sum {
			most = int(^uint(0) >> 1)
		}
		var addr []uint32
		flush := func() bool {
			d := p.gather(addr)
			addr = addr[:0]
			if sum {
				d.Batch, d.Diffs = columnar.Consolidate(d.Batch, d.Diffs)
			}
			return d.N == 0 || yield(d)
		}
		for _, r := range p.runs {
			for lo := r.lo; lo < r.hi; {
				n := min(r.hi-lo, most-len(addr))
				for _, row := range r.sorted.rows[lo : lo+n] {
					addr = append(addr, r.base+row)
				}
				lo += n
				if len(addr) == most && !flush() {
					return
				}
			}
		}
		if len(addr) > 0 && !flush() {
			return
		}
	}
}

// firstPortion and lastPortion are how many rows an ordered read gives at first and
// at most: who wants few rows should not pay for many.
const (
	firstPortion = 64
	lastPortion  = 4096
)

// Ordered gives the rows in the ordering, or against it, in deltas of which none
// takes back a row of another. They are copies.
func (sel *Selection) Ordered(desc bool, yield func(*dataflow.Delta) bool) {
	m := newOrderMerge(sel, desc)
	sum := false
	for i := range sel.parts {
		sum = sum || sel.parts[i].cancels()
	}
	for portion := firstPortion; m.len() > 0; portion = min(2*portion, lastPortion) {
		d := m.portion(portion, sum)
		if sum {
			d = sel.summed(d, desc)
		}
		if d.N > 0 && !yield(d) {
			return
		}
	}
}

// summed sums up equal rows and keeps the order.
func (sel *Selection) summed(d *dataflow.Delta, desc bool) *dataflow.Delta {
	d.Batch, d.Diffs = columnar.Consolidate(d.Batch, d.Diffs)
	keys := make([]columnar.SortKey, len(sel.ordering.Cols))
	for i, c := range sel.ordering.Cols {
		keys[i] = columnar.SortKey{Vec: sel.ordering.key(i, d.Cols[c]), Desc: desc, NullsFirst: desc}
	}
	idx := columnar.Sort(keys, d.N)
	out := &dataflow.Delta{Batch: d.Batch.Gather(idx)}
	if d.Diffs != nil {
		out.Diffs = make([]dataflow.Diff, len(idx))
		for i, x := range idx {
			out.Diffs[i] = d.Diffs[x]
		}
	}
	return out
}

// orderMerge merges the runs of a selection: a heap by the next row of each.
type orderMerge struct {
	sel  *Selection
	desc bool
	runs []*mergeRun
}

type mergeRun struct {
	run
	part int
}

func newOrderMerge(sel *Selection, desc bool) *orderMerge {
	m := &orderMerge{sel: sel, desc: desc}
	for i := range sel.parts {
		for _, r := range sel.parts[i].runs {
			m.runs = append(m.runs, &mergeRun{r, i})
		}
	}
	for i := len(m.runs)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	return m
}

func (m *orderMerge) len() int { return len(m.runs) }

// row is the next row of a run.
func (m *orderMerge) row(r *mergeRun) uint32 {
	if m.desc {
		return r.sorted.rows[r.hi-1]
	}
	return r.sorted.rows[r.lo]
}

func (m *orderMerge) compare(a *mergeRun, x uint32, b *mergeRun, y uint32) int {
	cx, cy := x>>columnar.ChunkShift, y>>columnar.ChunkShift
	for c := range a.sorted.keys {
		r := columnar.CompareAt(a.sorted.keys[c][cx], int(x&(columnar.ChunkRows-1)), b.sorted.keys[c][cy], int(y&(columnar.ChunkRows-1)))
		if r != 0 {
			if m.desc {
				return -r
			}
			return r
		}
	}
	return 0
}

func (m *orderMerge) less(a, b *mergeRun) bool { return m.compare(a, m.row(a), b, m.row(b)) < 0 }

func (m *orderMerge) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(m.runs) {
			return
		}
		if c+1 < len(m.runs) && m.less(m.runs[c+1], m.runs[c]) {
			c++
		}
		if !m.less(m.runs[c], m.runs[i]) {
			return
		}
		m.runs[i], m.runs[c] = m.runs[c], m.runs[i]
		i = c
	}
}

// portion takes the next n rows; with whole it goes on to the last row of equal key.
func (m *orderMerge) portion(n int, whole bool) *dataflow.Delta {
	parts := make([][]uint32, len(m.sel.parts)) // addresses of each partition
	of := make([]int, 0, n)                     // the partition of each row
	var last *mergeRun
	var lastRow uint32
	for len(m.runs) > 0 {
		r := m.runs[0]
		row := m.row(r)
		if len(of) >= n && (!whole || m.compare(last, lastRow, r, row) != 0) {
			break
		}
		parts[r.part] = append(parts[r.part], r.base+row)
		of = append(of, r.part)
		last, lastRow = r, row
		if m.desc {
			r.hi--
		} else {
			r.lo++
		}
		if r.lo == r.hi {
			end := len(m.runs) - 1
			m.runs[0] = m.runs[end]
			m.runs = m.runs[:end]
		}
		m.down(0)
	}
	return m.fetch(parts, of)
}

// fetch gathers rows of several partitions in the order in which they were taken.
func (m *orderMerge) fetch(parts [][]uint32, of []int) *dataflow.Delta {
	var ds []*dataflow.Delta
	start := make([]int, len(parts))
	at := 0
	some := false
	for p, addr := range parts {
		start[p] = at
		if len(addr) > 0 {
			d := m.sel.parts[p].gather(addr)
			ds = append(ds, d)
			at += d.N
			some = some || d.Diffs != nil
		}
	}
	if len(ds) == 1 {
		return ds[0]
	}
	batches := make([]*columnar.Batch, len(ds))
	diffs := make([]dataflow.Diff, 0, len(of))
	for i, d := range ds {
		batches[i] = &d.Batch
		for j := range d.N {
			diffs = append(diffs, d.Diff(j))
		}
	}
	all := columnar.ConcatBatches(m.sel.parts[0].reader.Layout.Kinds, batches...)
	idx := make([]uint32, len(of))
	out := &dataflow.Delta{}
	if some {
		out.Diffs = make([]dataflow.Diff, len(of))
	}
	for i, p := range of {
		idx[i] = uint32(start[p])
		start[p]++
		if some {
			out.Diffs[i] = diffs[idx[i]]
		}
	}
	out.Batch = all.Gather(idx)
	return out
}
