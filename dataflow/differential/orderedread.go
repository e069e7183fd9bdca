package differential

import (
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// groupScan reads one group of a trace in the order of a prefix, from a row on,
// summing up over the batches. It is reused.
type groupScan struct {
	heads []scanHead
	hash  [1]uint64
	lo    [1]uint32
	hi    [1]uint32
}

// scanHead is the rows of one batch that are still to come: from row on, up to
// end, or in a reverse scan from row down to end. No more if they are equal.
type scanHead struct {
	b        *trace.Batch
	row, end int
	cols     []*columnar.Vec // of the chunk that row is in
	chunk    int
}

// close lets go of the batches.
func (s *groupScan) close() {
	heads := s.heads[:cap(s.heads)]
	for i := range heads {
		heads[i] = scanHead{cols: heads[i].cols[:0]}
		clear(heads[i].cols[:cap(heads[i].cols)])
	}
}

// place makes the chunk of the head's row current, and gives the row in it.
func (d *scanHead) place(which []int) int {
	if c := d.row >> columnar.ChunkShift; c != d.chunk {
		d.chunk = c
		d.cols = pickCols(d.cols[:0], d.b.Chunk(c).Cols, which)
	}
	return d.row & (columnar.ChunkRows - 1)
}

func pickCols(dst, cols []*columnar.Vec, which []int) []*columnar.Vec {
	for _, c := range which {
		dst = append(dst, cols[c])
	}
	return dst
}

// prefixSource says where the rows of groups are: batches with the key columns
// keys and the row columns vals.
type prefixSource struct {
	batches    []*trace.Batch
	keys, vals []int
	table      *groupTable
	scan       groupScan
	row        []uint64 // room for an encoded row
}

// keyRuns is runs of equal keys in a sorted chunk: the first row of each, the low
// half of its hash, and the row after its last.
type keyRuns struct{ firsts, hs, ends []uint32 }

// find finds the runs in chunk i of b, and reports whether the last one goes on in
// the next chunk.
func (k *keyRuns) find(b *trace.Batch, i int, keys []int) (open bool) {
	c := b.Chunk(i)
	k.firsts, k.hs, k.ends = k.firsts[:0], k.hs[:0], k.ends[:0]
	for r, h := range c.Hash {
		if r > 0 && sameKey(c, r-1, c, r, keys) {
			continue
		}
		if r > 0 {
			k.ends = append(k.ends, uint32(r))
		}
		k.firsts = append(k.firsts, uint32(r))
		k.hs = append(k.hs, uint32(h))
	}
	k.ends = append(k.ends, uint32(c.N))
	return i+1 < b.Chunks() && sameKey(c, c.N-1, b.Chunk(i+1), 0, keys)
}

func sameKey(a *trace.Chunk, i int, b *trace.Chunk, j int, keys []int) bool {
	if a.Hash[i] != b.Hash[j] {
		return false
	}
	for _, c := range keys {
		if !columnar.EqualAt(a.Cols[c], i, b.Cols[c], j) {
			return false
		}
	}
	return true
}

// refill appends to a prefix at least `want` more entries, or all that the group
// has. key is the group's row in the table, hash that of its key.
func (o *prefixes) refill(h *prefixRef, src *prefixSource, key unsafe.Pointer, hash uint64, want int) {
	var fence unsafe.Pointer
	if n := h.len(); n > 0 {
		fence = entryRow(o.entry(h, n-1))
	}
	src.open(o, key, hash, fence)
	if cap(src.row) < o.rows.words {
		src.row = make([]uint64, o.rows.words)
	}
	row := unsafe.Pointer(unsafe.SliceData(src.row[:o.rows.words]))
	added, passed := 0, 0
	h[1] &^= prefixMore // so that an insertion is not beyond the end
	fenceAt := h.len() - 1
	for added < want {
		d, mult := src.next(o)
		if d == nil {
			o.settleFence(h, fenceAt)
			return
		}
		if mult == 0 {
			passed++
			continue
		}
		at := (d.row - o.step()) & (columnar.ChunkRows - 1)
		o.rows.encodeRow(d.cols, at, row)
		o.insertNew(h, h.len(), row, mult, d.cols, at)
		added++
	}
	h[1] |= prefixMore
	o.settleFence(h, fenceAt)
	if passed > 8*added+64 && h.grow() < maxPrefixGrow {
		h[0] += 1 << prefixGrow
	}
}

// settleFence forgets the entry that was the last one, if it is only that.
func (o *prefixes) settleFence(h *prefixRef, at int) {
	if at >= 0 && *entryMult(o.entry(h, at)) == 0 {
		o.remove(h, at)
	}
}

func (o *prefixes) step() int {
	if o.desc {
		return -1
	}
	return 1
}

// open places a head in each batch that has rows of the group after the fence.
func (src *prefixSource) open(o *prefixes, key unsafe.Pointer, hash uint64, fence unsafe.Pointer) {
	s := &src.scan
	s.heads = s.heads[:0]
	s.hash[0] = hash
	for _, b := range src.batches {
		b.Locate(s.hash[:], s.lo[:], s.hi[:])
		lo, hi := int(s.lo[0]), int(s.hi[0])
		if lo == hi {
			continue
		}
		if len(s.heads) < cap(s.heads) {
			s.heads = s.heads[:len(s.heads)+1]
		} else {
			s.heads = append(s.heads, scanHead{})
		}
		d := &s.heads[len(s.heads)-1]
		d.b, d.chunk = b, -1
		if lo, hi = src.narrow(d, key, lo, hi); lo < hi && fence != nil {
			lo, hi = src.after(d, o, fence, lo, hi)
		}
		if lo == hi {
			s.heads = s.heads[:len(s.heads)-1]
			continue
		}
		d.chunk = -1
		if o.desc {
			d.row, d.end = hi-1, lo-1
		} else {
			d.row, d.end = lo, hi
		}
	}
}

// narrow finds the rows of the key among those of its hash: nearly always all.
func (src *prefixSource) narrow(d *scanHead, key unsafe.Pointer, lo, hi int) (int, int) {
	is := func(row int) bool {
		d.row = row
		return src.table.matchRow(key, d.cols, d.place(src.keys))
	}
	d.chunk = -1
	for lo < hi && !is(lo) {
		lo++
	}
	for hi > lo && !is(hi-1) {
		hi--
	}
	return lo, hi
}

// after cuts lo..hi to the rows that come after the fence.
func (src *prefixSource) after(d *scanHead, o *prefixes, fence unsafe.Pointer, lo, hi int) (int, int) {
	d.chunk = -1
	l, h := lo, hi
	for l < h {
		m := int(uint(l+h) >> 1)
		d.row = m
		at := d.place(src.vals)
		c := o.rows.compareVecs(fence, d.cols, at, o.ar) // of the fence to the row
		if c > 0 || (c == 0 && !o.desc) {
			l = m + 1
		} else {
			h = m
		}
	}
	if o.desc {
		return lo, l // the rows below the fence
	}
	return l, hi
}

// next gives the next row, as the head that has just passed it, and the sum of
// its diffs; nil at the end.
func (src *prefixSource) next(o *prefixes) (*scanHead, int64) {
	hs := src.scan.heads
	var best *scanHead
	bestAt := 0
	for i := range hs {
		d := &hs[i]
		if d.row == d.end {
			continue
		}
		at := d.place(src.vals)
		if best != nil {
			c := columnar.CompareRows(d.cols, at, best.cols, bestAt)
			if o.desc {
				c = -c
			}
			if c >= 0 {
				continue
			}
		}
		best, bestAt = d, at
	}
	if best == nil {
		return nil, 0
	}
	var sum int64
	step := o.step()
	for i := range hs {
		d := &hs[i]
		if d == best || d.row == d.end || !columnar.EqualRows(d.cols, d.row&(columnar.ChunkRows-1), best.cols, bestAt) {
			continue
		}
		sum += d.b.Chunk(d.chunk).Diff(d.row & (columnar.ChunkRows - 1))
		d.row += step
	}
	sum += best.b.Chunk(best.chunk).Diff(bestAt)
	best.row += step
	return best, sum
}
