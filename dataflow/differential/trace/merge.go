package trace

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// Merger merges two batches, adjacent in time, by bounded steps. It makes
// output chunk by chunk: a step takes rows by comparing hashes, then fetches
// their columns.
type Merger struct {
	layout *Layout
	order  []int         // columns that order rows of equal hash
	first  columnar.Kind // of the first of them if it has no NULLs, else 0
	a, b   mergeSide
	gs     []columnar.Gatherer
	diffs  [][]dataflow.Diff // of the chunks of a, then of b
	some   bool              // diffs other than 1 occur
	out    *Builder
	desc   Description
	done   int // rows taken of both
	total  int
	weight int // what a row costs
}

// mergeSide is a position in an input.
type mergeSide struct {
	batch *Batch
	chunk int
	row   int
	base  uint32 // address of the first row of the batch
}

func (s *mergeSide) valid() bool { return s.chunk < len(s.batch.chunks) }

// advance moves by n rows within the chunk.
func (s *mergeSide) advance(n int) {
	s.row += n
	if s.row == s.batch.chunks[s.chunk].N {
		s.row = 0
		s.chunk++
	}
}

// addr is the address of the current row.
func (s *mergeSide) addr() uint32 {
	return s.base + uint32(s.chunk<<columnar.ChunkShift+s.row)
}

func (s *mergeSide) cur() *Chunk { return s.batch.chunks[s.chunk] }

// NewMerger starts a merge of a and b, where a is the older one. The caller
// keeps both alive until Done.
func NewMerger(a, b *Batch) *Merger {
	l := a.layout
	m := &Merger{
		layout: l,
		order:  l.tieOrder(a.exact && b.exact),
		a:      mergeSide{batch: a},
		b:      mergeSide{batch: b, base: uint32(len(a.chunks) << columnar.ChunkShift)},
		gs:     make([]columnar.Gatherer, len(l.Kinds)),
		out:    NewBuilder(l, a.rows+b.rows),
		total:  a.rows + b.rows,
		weight: max(a.weight(), b.weight()),
		desc: Description{
			Lower: min(a.desc.Lower, b.desc.Lower),
			Upper: max(a.desc.Upper, b.desc.Upper),
			Since: max(a.desc.Since, b.desc.Since),
		},
	}
	if len(m.order) > 0 && noNulls(a, m.order[0]) && noNulls(b, m.order[0]) {
		m.first = l.Kinds[m.order[0]]
	}
	m.out.bytesRow = make([]int, len(l.Kinds))
	for c, k := range l.Kinds {
		m.gs[c].Reset(k, columnar.ChunkShift)
		a.AddTo(&m.gs[c], c)
		b.AddTo(&m.gs[c], c)
		m.out.bytesRow[c] = m.gs[c].AverageBytes()
	}
	for _, batch := range [2]*Batch{a, b} {
		for _, c := range batch.chunks {
			m.diffs = append(m.diffs, c.Diffs)
			m.some = m.some || c.Diffs != nil
		}
	}
	return m
}

func noNulls(b *Batch, c int) bool {
	for _, ch := range b.chunks {
		if ch.Cols[c].HasNulls() {
			return false
		}
	}
	return true
}

// Merge merges two batches at once.
func Merge(a, b *Batch) *Batch {
	m := NewMerger(a, b)
	m.Work(m.total)
	return m.Done()
}

// Done is the merged batch, after Remaining has come to 0.
func (m *Merger) Done() *Batch {
	if m.Remaining() > 0 {
		panic("trace: merge not finished")
	}
	return m.out.Done(m.desc)
}

// Remaining is the number of rows still to be taken.
func (m *Merger) Remaining() int { return m.total - m.done }

// mergePiece is the rows taken before their columns are fetched: their
// addresses and hashes stay in the first-level cache.
const mergePiece = 2048

// Work takes about fuel rows and returns how many it took.
func (m *Merger) Work(fuel int) int {
	start := m.done
	idx := columnar.GetSlice[uint32](mergePiece)
	diffs := columnar.GetSlice[dataflow.Diff](mergePiece)
	for m.done < m.total && m.done-start < fuel {
		m.piece(idx, diffs, max(fuel-(m.done-start), 64))
	}
	columnar.PutSlice(idx)
	columnar.PutSlice(diffs)
	return m.done - start
}

// piece takes up to fuel rows, as much as fits the buffers and the open chunk.
func (m *Merger) piece(idx []uint32, diffs []dataflow.Diff, fuel int) {
	limit := min(m.out.room(), len(idx), fuel)
	idx = idx[:limit]
	hash := m.out.hashes()[:limit]
	k := 0
	for stop := m.done + 2*limit; k < limit && m.done < m.total && m.done < stop; {
		from := k
		switch {
		case !m.a.valid():
			k = m.copyRows(&m.b, idx, hash, k)
		case !m.b.valid() || m.layout.Unkeyed:
			k = m.copyRows(&m.a, idx, hash, k)
		default:
			k = m.interleave(idx, hash, k)
		}
		if m.some {
			m.fetchDiffs(idx[from:k], diffs[from:k])
		}
		for k < limit && m.tied() {
			k = m.ties(idx, hash, diffs, k)
		}
	}
	if !m.some {
		m.out.add(m.gs, idx[:k], nil)
		return
	}
	m.out.add(m.gs, idx[:k], diffs[:k])
}

// copyRows takes rows of one input while the other has none.
func (m *Merger) copyRows(s *mergeSide, idx []uint32, hash []uint64, k int) int {
	c := s.cur()
	n := min(len(idx)-k, c.N-s.row)
	at := s.addr()
	for i := range n {
		idx[k+i] = at + uint32(i)
	}
	if c.Hash != nil {
		copy(hash[k:k+n], c.Hash[s.row:])
	}
	s.advance(n)
	m.done += n
	return k + n
}

// interleave takes rows until the buffers are full, an input ends, or both are
// at rows of the same hash (and of the same first column to compare by, where
// that decides).
func (m *Merger) interleave(idx []uint32, hash []uint64, k int) int {
	for k < len(idx) && m.a.valid() && m.b.valid() {
		ca, cb := m.a.cur(), m.b.cur()
		ha, hb := ca.Hash[m.a.row:], cb.Hash[m.b.row:]
		ea, eb := m.a.addr(), m.b.addr()
		var i, j int
		var tie bool
		switch m.first {
		case columnar.KindInt64:
			x, y := ca.Cols[m.order[0]].Int64s(), cb.Cols[m.order[0]].Int64s()
			i, j, tie = mergePairs(ha, hb, x[m.a.row:], y[m.b.row:], ea, eb, idx[k:], hash[k:])
		case columnar.KindInt32:
			x, y := ca.Cols[m.order[0]].Int32s(), cb.Cols[m.order[0]].Int32s()
			i, j, tie = mergePairs(ha, hb, x[m.a.row:], y[m.b.row:], ea, eb, idx[k:], hash[k:])
		default:
			i, j, tie = mergeHashes(ha, hb, ea, eb, idx[k:], hash[k:])
		}
		m.a.advance(i)
		m.b.advance(j)
		m.done += i + j
		k += i + j
		if tie {
			break
		}
	}
	return k
}

// mergePairs is mergeHashes by hash and then by an integer column.
func mergePairs[T int32 | int64](a, b []uint64, va, vb []T, ea, eb uint32, idx []uint32, hash []uint64) (i, j int, tie bool) {
	hash = hash[:len(idx)]
	va, vb = va[:len(a)], vb[:len(b)]
	k := 0
	for {
		n := min(len(a)-i, len(b)-j, len(idx)-k)
		if n == 0 {
			return i, j, false
		}
		for range n {
			x, y, u, v := a[i], b[j], va[i], vb[j]
			var less, same, smaller int
			if x < y {
				less = 1
			}
			if x == y {
				same = 1
			}
			if u < v {
				smaller = 1
			}
			if x == y && u == v {
				return i, j, true
			}
			step := less | same&smaller
			e, f := eb+uint32(j), ea+uint32(i)
			idx[k] = e + (f-e)&-uint32(step)
			hash[k] = min(x, y)
			k++
			i += step
			j += 1 - step
		}
	}
}

// mergeHashes merges until the output is full, an input ends, or a tie; i and j
// are what it took. Which side is next is a coin toss, so that it must not be a
// branch.
func mergeHashes(a, b []uint64, ea, eb uint32, idx []uint32, hash []uint64) (i, j int, tie bool) {
	hash = hash[:len(idx)]
	k := 0
	for {
		n := min(len(a)-i, len(b)-j, len(idx)-k)
		if n == 0 {
			return i, j, false
		}
		// Within n rows neither input ends.
		for range n {
			x, y := a[i], b[j]
			if x == y {
				return i, j, true
			}
			step := 0
			if x < y {
				step = 1
			}
			e := eb + uint32(j)
			if x < y {
				e = ea + uint32(i)
			}
			idx[k] = e
			hash[k] = min(x, y)
			k++
			i += step
			j += 1 - step
		}
	}
}

// fetchDiffs gives the diffs of the rows at the addresses.
func (m *Merger) fetchDiffs(idx []uint32, out []dataflow.Diff) {
	for i, e := range idx {
		d := m.diffs[e>>columnar.ChunkShift]
		if d == nil {
			out[i] = 1
		} else {
			out[i] = d[e&(columnar.ChunkRows-1)]
		}
	}
}

// tied reports whether both inputs are at the same hash.
func (m *Merger) tied() bool {
	return !m.layout.Unkeyed && m.a.valid() && m.b.valid() &&
		m.a.cur().Hash[m.a.row] == m.b.cur().Hash[m.b.row]
}

// ties takes rows while both inputs are at the same hash and in the same chunk:
// the lesser of two rows, or both if they are equal.
func (m *Merger) ties(idx []uint32, hash []uint64, diffs []dataflow.Diff, k int) int {
	ca, cb := m.a.cur(), m.b.cur()
	i, j := m.a.row, m.b.row
	ea, eb := m.a.addr()-uint32(i), m.b.addr()-uint32(j)
	h := ca.Hash[i]
	for k < len(idx) && i < ca.N && j < cb.N && ca.Hash[i] == h && cb.Hash[j] == h {
		var e uint32
		var d dataflow.Diff
		switch r := compareBy(m.order, ca.Cols, i, cb.Cols, j); {
		case r < 0:
			e, d = ea+uint32(i), ca.Diff(i)
			i++
		case r > 0:
			e, d = eb+uint32(j), cb.Diff(j)
			j++
		default:
			e, d = ea+uint32(i), ca.Diff(i)+cb.Diff(j)
			i++
			j++
		}
		if d == 0 {
			continue
		}
		if d != 1 && !m.some {
			m.some = true
			ones(diffs[:k])
		}
		idx[k], hash[k] = e, h
		diffs[k] = d
		k++
	}
	m.done += i - m.a.row + j - m.b.row
	m.a.advance(i - m.a.row)
	m.b.advance(j - m.b.row)
	return k
}
