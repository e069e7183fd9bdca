package trace

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// Builder writes sorted, consolidated rows as the chunks of a new batch.
type Builder struct {
	layout   *Layout
	capacity int // rows at most
	bytesRow []int
	cols     []columnar.Builder
	hash     []uint64
	diffs    []dataflow.Diff // nil while all are 1
	n        int             // rows in the open chunk
	rows     int
	chunks   []*Chunk
}

// NewBuilder makes a builder of at most so many rows.
func NewBuilder(l *Layout, capacity int) *Builder {
	b := &Builder{layout: l, capacity: capacity, cols: make([]columnar.Builder, len(l.Kinds))}
	if capacity > columnar.ChunkRows {
		b.chunks = make([]*Chunk, 0, (capacity+columnar.ChunkRows-1)/columnar.ChunkRows)
	}
	return b
}

// open prepares the next chunk.
func (b *Builder) open() {
	n := min(max(b.capacity-b.rows, 1), columnar.ChunkRows)
	for c, k := range b.layout.Kinds {
		b.cols[c].InitPooled(k, n)
		if b.bytesRow != nil && k == columnar.KindBytes {
			b.cols[c].ReserveData(b.bytesRow[c] * n)
		}
	}
	// Also without a key, for the merger to write to.
	b.hash = columnar.GetSlice[uint64](n)
}

// room is how many rows the open chunk still takes.
func (b *Builder) room() int { return min(columnar.ChunkRows-b.n, b.capacity-b.rows) }

// hashes is where the hashes of the next rows go, before they are added.
func (b *Builder) hashes() []uint64 {
	if b.n == 0 && b.hash == nil {
		b.open()
	}
	return b.hash[b.n:]
}

// add appends rows: those of gs at addresses idx, with their diffs (nil: all
// 1). There must be room for them, and their hashes must be in place.
func (b *Builder) add(gs []columnar.Gatherer, idx []uint32, diffs []dataflow.Diff) {
	if len(idx) == 0 {
		return
	}
	if b.n == 0 && b.hash == nil {
		b.open()
	}
	for c := range gs {
		b.cols[c].AppendGather(&gs[c], idx)
	}
	b.addDiffs(len(idx), diffs)
	b.n += len(idx)
	b.rows += len(idx)
	if b.n == columnar.ChunkRows {
		b.seal()
	}
}

// addDiffs appends diffs, keeping none as long as all are 1.
func (b *Builder) addDiffs(n int, diffs []dataflow.Diff) {
	if diffs != nil && allOnes(diffs) {
		diffs = nil
	}
	if diffs == nil && b.diffs == nil {
		return
	}
	if b.diffs == nil {
		b.diffs = ones(columnar.GetSlice[dataflow.Diff](max(b.n+n, len(b.hash)))[:b.n])
	}
	if diffs != nil {
		b.diffs = appendPooled(b.diffs, diffs)
		return
	}
	l := len(b.diffs)
	b.diffs = growPooled(b.diffs, n)
	ones(b.diffs[l:])
}

func allOnes(d []dataflow.Diff) bool {
	for _, x := range d {
		if x != 1 {
			return false
		}
	}
	return true
}

func ones(d []dataflow.Diff) []dataflow.Diff {
	for i := range d {
		d[i] = 1
	}
	return d
}

// growPooled lengthens a pooled slice by n elements, to be filled.
func growPooled[T columnar.Scalar](s []T, n int) []T {
	l := len(s)
	if l+n > cap(s) {
		t := columnar.GetSlice[T](max(l+n, 2*l))
		copy(t, s)
		columnar.PutSlice(s)
		s = t
	}
	return s[:l+n]
}

func appendPooled[T columnar.Scalar](s, x []T) []T {
	l := len(s)
	s = growPooled(s, len(x))
	copy(s[l:], x)
	return s
}

// seal ends the open chunk.
func (b *Builder) seal() {
	ch := &Chunk{Batch: columnar.Batch{Cols: make([]*columnar.Vec, len(b.cols)), N: b.n}, Diffs: b.diffs}
	if b.layout.Unkeyed {
		columnar.PutSlice(b.hash)
		ch.Hash = nil
	} else {
		ch.Hash = b.hash[:b.n]
	}
	for c := range b.cols {
		ch.Cols[c] = b.cols[c].Build()
	}
	b.chunks = append(b.chunks, ch)
	b.hash, b.diffs, b.n = nil, nil, 0
}

// Done makes the batch.
func (b *Builder) Done(desc Description) *Batch {
	if b.n > 0 {
		b.seal()
	}
	columnar.PutSlice(b.hash) // of a chunk that got no rows
	b.hash = nil
	batch := newBatch(b.layout, desc, b.chunks)
	batch.pooled = true
	b.chunks = nil
	return batch
}

// sortRows is the rows that a batch is sorted in before they become batches: a
// list this long stays in cache while it is sorted and gathered.
const sortRows = 1 << 16

// sortBytes is about how many bytes of rows are put together for that.
const sortBytes = 256 << 20

// Runner runs n independent pieces of work, possibly in parallel.
type Runner func(n int, f func(i int))

// Build sorts and consolidates deltas into one batch a partition (a power of
// two of them); nil where there is nothing. Long inputs run partitions by run,
// which may be nil.
func Build(l *Layout, ds []*dataflow.Delta, parts int, desc Description, run Runner) []*Batch {
	out := make([]*Batch, parts)
	rows := 0
	for _, d := range ds {
		rows += d.N
	}
	if rows == 0 {
		return out
	}
	if l.Unkeyed {
		out[0] = buildUnkeyed(l, ds, desc)
		return out
	}
	if run == nil || rows < parallelRows {
		run = func(n int, f func(int)) {
			for i := range n {
				f(i)
			}
		}
	}
	units := sortUnits(l, ds)
	if len(units) == 1 {
		buildUnit(l, units[0], out, desc, run)
		return out
	}
	runs := make([][]*Batch, len(units))
	for u, d := range units {
		runs[u] = make([]*Batch, parts)
		buildUnit(l, d, runs[u], desc, run)
	}
	run(parts, func(p int) {
		bs := make([]*Batch, 0, len(runs))
		for _, r := range runs {
			if r[p] != nil {
				bs = append(bs, r[p])
			}
		}
		out[p] = mergeAll(l, bs)
	})
	return out
}

// parallelRows is how many rows make it worth to wake another processor.
const parallelRows = 1 << 14

// mergeAll merges batches of one epoch into one; nil if nothing is left.
func mergeAll(l *Layout, bs []*Batch) *Batch {
	for len(bs) > 1 {
		k := 0
		for i := 0; i < len(bs); i += 2 {
			if i+1 == len(bs) {
				bs[k] = bs[i]
			} else {
				a, b := bs[i], bs[i+1]
				bs[k] = Merge(a, b)
				a.Release()
				b.Release()
			}
			k++
		}
		bs = bs[:k]
	}
	if len(bs) == 0 {
		return nil
	}
	if bs[0].rows == 0 {
		bs[0].Release()
		return nil
	}
	return bs[0]
}

// sortUnits joins short deltas and cuts long ones, to about sortRows.
func sortUnits(l *Layout, ds []*dataflow.Delta) []*dataflow.Delta {
	var units []*dataflow.Delta
	for i := 0; i < len(ds); {
		rows, bytes := ds[i].N, ds[i].MemSize()
		if rows >= 2*sortRows {
			for lo := 0; lo < rows; lo += sortRows {
				units = append(units, ds[i].Slice(lo, min(lo+sortRows, rows)))
			}
			i++
			continue
		}
		j := i + 1
		for j < len(ds) && rows+ds[j].N <= sortRows && bytes < sortBytes {
			rows += ds[j].N
			bytes += ds[j].MemSize()
			j++
		}
		if rows > 0 {
			units = append(units, Concat(l.Kinds, ds[i:j]))
		}
		i = j
	}
	return units
}

// Concat joins deltas to one; a single one is returned as it is.
func Concat(kinds []columnar.Kind, ds []*dataflow.Delta) *dataflow.Delta {
	if len(ds) == 1 {
		return ds[0]
	}
	bs := make([]*columnar.Batch, 0, len(ds))
	rows, some := 0, false
	for _, d := range ds {
		if d.N > 0 {
			bs = append(bs, &d.Batch)
			rows += d.N
			some = some || d.Diffs != nil
		}
	}
	out := &dataflow.Delta{Batch: columnar.ConcatBatches(kinds, bs...)}
	if some {
		out.Diffs = make([]dataflow.Diff, 0, rows)
		for _, d := range ds {
			if d.Diffs != nil {
				out.Diffs = append(out.Diffs, d.Diffs...)
				continue
			}
			for range d.N {
				out.Diffs = append(out.Diffs, 1)
			}
		}
	}
	return out
}

// buildUnkeyed keeps the deltas as the chunks of a batch; short ones are joined.
func buildUnkeyed(l *Layout, ds []*dataflow.Delta, desc Description) *Batch {
	var chunks []*Chunk
	for i := 0; i < len(ds); {
		rows, bytes := ds[i].N, ds[i].MemSize()
		j := i + 1
		for j < len(ds) && rows+ds[j].N <= columnar.ChunkRows && bytes < sortBytes {
			rows += ds[j].N
			bytes += ds[j].MemSize()
			j++
		}
		d := Concat(l.Kinds, ds[i:j])
		for at := 0; at < d.N; at += columnar.ChunkRows {
			end := min(at+columnar.ChunkRows, d.N)
			part := d.Slice(at, end)
			if part.Diffs != nil && allOnes(part.Diffs) {
				part.Diffs = nil
			}
			chunks = append(chunks, &Chunk{Batch: part.Batch, Diffs: part.Diffs})
		}
		i = j
	}
	return newBatch(l, desc, chunks)
}
