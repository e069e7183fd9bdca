package trace

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// Reader is an immutable list of batches, oldest first, read as their sum.
// A Reader does not keep its batches alive; what it was taken from does.
type Reader struct {
	Layout  *Layout
	Batches []*Batch
}

// Len is the number of rows before summing up across batches.
func (r Reader) Len() int {
	n := 0
	for _, b := range r.Batches {
		n += b.rows
	}
	return n
}

// Scan gives the content in deltas of at most columnar.ChunkRows rows that
// alias the batches (equal rows of different batches are not summed up).
func (r Reader) Scan(yield func(*dataflow.Delta) bool) {
	for _, b := range r.Batches {
		for _, c := range b.chunks {
			if !yield(c.Delta()) {
				return
			}
		}
	}
}

// Groups is what Reader.Groups finds: for probe key i the rows from Ends[i-1]
// to Ends[i], consolidated and in the layout's order.
type Groups struct {
	Rows  columnar.Batch
	Diffs []dataflow.Diff // nil: all 1
	Ends  []int
}

// Groups fetches all rows of the given keys, batched so that cache misses
// overlap. keys are the key columns of the probes, in the order of Layout.Key;
// hashes are columnar.HashCols of them, ascending. Keys are distinct. NULL
// matches NULL. Rows are copies and may be kept.
func (r Reader) Groups(keys []*columnar.Vec, hashes []uint64) *Groups {
	l := r.Layout
	m := NewMatcher(NewProbe(l, keys, hashes, false))
	counts := make([]uint32, len(hashes)) // rows of each probe
	var probe, addr []uint32
	var base uint32
	found := 0 // batches with a match
	for _, b := range r.Batches {
		m.Start(b)
		before := len(probe)
		for m.Next(columnar.ChunkRows) {
			probe = append(probe, m.Probe...)
			for _, x := range m.Row {
				addr = append(addr, base+x)
			}
			for _, x := range m.Probe {
				counts[x]++
			}
		}
		if len(probe) > before {
			found++
		}
		base += uint32(len(b.chunks)) << columnar.ChunkShift
	}
	m.Close()
	g := &Groups{Ends: make([]int, len(hashes))}
	at := make([]uint32, len(hashes))
	sum := uint32(0)
	for i, c := range counts {
		at[i] = sum
		sum += c
		g.Ends[i] = int(sum)
	}
	sorted := make([]uint32, len(addr))
	for i, x := range probe {
		sorted[at[x]] = addr[i]
		at[x]++
	}
	g.Rows = columnar.Batch{Cols: make([]*columnar.Vec, len(l.Kinds)), N: len(sorted)}
	for c, k := range l.Kinds {
		var gt columnar.Gatherer
		gt.Reset(k, columnar.ChunkShift)
		for _, b := range r.Batches {
			b.AddTo(&gt, c)
		}
		g.Rows.Cols[c] = gt.Gather(sorted)
	}
	g.Diffs = r.diffsAt(sorted)
	if found > 1 {
		g.consolidate(l, counts)
	}
	return g
}

// diffsAt is the diffs of rows by their addresses over all batches; nil if all
// are 1.
func (r Reader) diffsAt(addr []uint32) []dataflow.Diff {
	var tab [][]dataflow.Diff
	some := false
	for _, b := range r.Batches {
		for _, c := range b.chunks {
			tab = append(tab, c.Diffs)
			some = some || c.Diffs != nil
		}
	}
	if !some {
		return nil
	}
	out := make([]dataflow.Diff, len(addr))
	for i, e := range addr {
		if d := tab[e>>columnar.ChunkShift]; d != nil {
			out[i] = d[e&(columnar.ChunkRows-1)]
		} else {
			out[i] = 1
		}
	}
	if allOnes(out) {
		return nil
	}
	return out
}

// consolidate sorts the rows of each group and sums up equal ones.
func (g *Groups) consolidate(l *Layout, counts []uint32) {
	keys := make([]columnar.SortKey, len(l.rest))
	for i, c := range l.rest {
		keys[i].Vec = g.Rows.Cols[c]
	}
	a := columnar.GetSlice[columnar.Keyed](g.Rows.N)
	tmp := columnar.GetSlice[columnar.Keyed](g.Rows.N)
	for i := range a {
		a[i].Row = uint32(i)
	}
	idx := make([]uint32, 0, g.Rows.N)
	diffs := make([]dataflow.Diff, 0, g.Rows.N)
	lo := 0
	for i, n := range counts {
		hi := lo + int(n)
		run := a[lo:hi]
		columnar.SortRows(keys, run, tmp[lo:hi])
		for x := 0; x < len(run); {
			sum := g.diff(int(run[x].Row))
			y := x + 1
			for y < len(run) && columnar.Compare(keys, int(run[x].Row), int(run[y].Row)) == 0 {
				sum += g.diff(int(run[y].Row))
				y++
			}
			if sum != 0 {
				idx = append(idx, run[x].Row)
				diffs = append(diffs, sum)
			}
			x = y
		}
		g.Ends[i] = len(idx)
		lo = hi
	}
	columnar.PutSlice(a)
	columnar.PutSlice(tmp)
	g.Rows = g.Rows.Gather(idx)
	g.Diffs = diffs
	if allOnes(diffs) {
		g.Diffs = nil
	}
}

func (g *Groups) diff(i int) dataflow.Diff {
	if g.Diffs == nil {
		return 1
	}
	return g.Diffs[i]
}

// ScanConsolidated gives the content in deltas of which none takes back a row of
// another: where batches hold other diffs than 1, a range of hashes of all
// batches is summed up at a time. Memory is bounded by about
// columnar.ChunkRows rows, and readBytes. What it gives may alias the batches.
func (r Reader) ScanConsolidated(yield func(*dataflow.Delta) bool) {
	ones := true
	for _, b := range r.Batches {
		ones = ones && b.ones
	}
	if ones || r.Layout.Unkeyed {
		r.Scan(yield)
		return
	}
	parts := r.Len()/r.readRows() + 1
	at := make([]int, len(r.Batches))
	end := make([]int, len(r.Batches))
	for n := 0; n < parts; {
		// Hashes are uniform, but not over all of the space in a partition.
		h, last := r.splitter(n+1, parts)
		n++
		rows := 0
		for i, b := range r.Batches {
			end[i] = b.rows
			if !last {
				end[i] = b.lower(h, -1)
			}
			rows += end[i] - at[i]
		}
		if rows > 0 && !yield(r.sumRange(at, end, rows)) {
			return
		}
		copy(at, end)
	}
}

// readBytes is about how many bytes are copied out of batches at a time.
const readBytes = 64 << 20

// readRows is how many rows are: fewer than a chunk has, if they are wide.
func (r Reader) readRows() int {
	rows, bytes := 0, int64(0)
	for _, b := range r.Batches {
		rows += b.rows
		bytes += b.payload
	}
	if bytes <= readBytes {
		return columnar.ChunkRows
	}
	return max(min(columnar.ChunkRows, int(int64(rows)*readBytes/bytes)), 1)
}

// splitter is the hash at which part i of n begins; last says that there is none.
func (r Reader) splitter(i, n int) (h uint64, last bool) {
	if i == n {
		return 0, true
	}
	lo, hi := ^uint64(0), uint64(0)
	for _, b := range r.Batches {
		if b.rows > 0 {
			lo, hi = min(lo, b.hashAt(0)), max(hi, b.hashAt(b.rows-1))
		}
	}
	step := (hi-lo)/uint64(n) + 1
	return lo + step*uint64(i), false
}

// sumRange sums up the rows from at to end of each batch.
func (r Reader) sumRange(at, end []int, rows int) *dataflow.Delta {
	addr := make([]uint32, 0, rows)
	base := uint32(0)
	for i, b := range r.Batches {
		for x := at[i]; x < end[i]; x++ {
			addr = append(addr, base+uint32(x))
		}
		base += uint32(len(b.chunks)) << columnar.ChunkShift
	}
	out := columnar.Batch{Cols: make([]*columnar.Vec, len(r.Layout.Kinds)), N: rows}
	for c, k := range r.Layout.Kinds {
		var g columnar.Gatherer
		g.Reset(k, columnar.ChunkShift)
		for _, b := range r.Batches {
			b.AddTo(&g, c)
		}
		out.Cols[c] = g.Gather(addr)
	}
	out, diffs := columnar.Consolidate(out, r.diffsAt(addr))
	return &dataflow.Delta{Batch: out, Diffs: diffs}
}
