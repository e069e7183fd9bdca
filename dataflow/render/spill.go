package render

import (
	"container/heap"
	"io"
	"os"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// Memory bounds what a one-off query keeps of rows to be sorted.
type Memory struct {
	// Sort is the bytes of rows from which on sorted runs go to a file.
	Sort int64
	// Temp makes a file for them, which has no name any more.
	Temp func() (*os.File, error)
	// Portion is about how many bytes of joined rows are made before they are
	// passed on; 0 is the default.
	Portion int
	// Made is told the bytes of rows as they are made; from many goroutines.
	Made func(bytes int)
	// Wrote is told the bytes that are about to be written to files; an error ends
	// the query. Nil: nothing is told.
	Wrote func(bytes int) error
	// Partition runs queries in parts, of rows in files, where that is possible.
	Partition bool
}

func (m *Memory) wrote(bytes int) error {
	if m.Wrote == nil {
		return nil
	}
	return m.Wrote(bytes)
}

// sortRuns are sorted runs of rows in a file, each a list of blocks, for an
// external merge sort (Knuth, volume 3, 5.4).
type sortRuns struct {
	file   *os.File
	memory *Memory
	runs   [][]blockRef
	end    int64
	buf    []byte
}

type blockRef struct{ at, size int64 }

// spillRows is how many rows a block of a run has, and spillBytes about how many bytes:
// in the end a block of each run is in memory.
const (
	spillRows  = 4096
	spillBytes = 1 << 20
)

// write adds a run: the rows idx of b.
func (s *sortRuns) write(b *columnar.Batch, idx []uint32) error {
	var run []blockRef
	rows := rowsWithin(b, spillRows, spillBytes)
	for len(idx) > 0 {
		n := min(len(idx), rows)
		part := b.Gather(idx[:n])
		idx = idx[n:]
		s.buf = columnar.AppendBatch(s.buf[:0], &part, nil)
		if err := s.memory.wrote(len(s.buf)); err != nil {
			return err
		}
		if _, err := s.file.WriteAt(s.buf, s.end); err != nil {
			return pgerror.New(pgerror.IOError, "could not write a sorted run: %v", err)
		}
		run = append(run, blockRef{s.end, int64(len(s.buf))})
		s.end += int64(len(s.buf))
	}
	s.runs = append(s.runs, run)
	return nil
}

// rowsWithin is how many rows of b, up to most, take about so many bytes.
func rowsWithin(b *columnar.Batch, most, bytes int) int {
	return max(min(most, int(int64(b.N)*int64(bytes)/int64(max(b.MemSize(), 1)))), 1)
}

func (s *sortRuns) close() { s.file.Close() }

// runReader is the place of a merge in one run.
type runReader struct {
	sorter *Sorter
	runs   *sortRuns
	left   []blockRef
	batch  columnar.Batch
	keys   []columnar.SortKey
	row    int
	source int // number of the batch among those of the rows being collected, -1: none yet

	rowBytes int // of a row of batch, about
}

// next goes to the next block; false says that the run is over.
func (r *runReader) next() (bool, error) {
	if len(r.left) == 0 {
		return false, nil
	}
	ref := r.left[0]
	r.left = r.left[1:]
	buf := make([]byte, ref.size)
	if _, err := io.ReadFull(io.NewSectionReader(r.runs.file, ref.at, ref.size), buf); err != nil {
		return false, err
	}
	b, _, _, err := columnar.DecodeBatch(buf, false)
	if err != nil {
		return false, err
	}
	r.batch, r.row, r.source = b, 0, -1
	r.keys, r.rowBytes = r.sorter.keys(&r.batch), r.batch.MemSize()/r.batch.N
	return true, nil
}

// runHeap has the run with the least row on top; equal rows keep the order of
// the runs.
type runHeap struct {
	rs    []*runReader
	order []int
}

func (h *runHeap) Len() int { return len(h.order) }
func (h *runHeap) Less(i, j int) bool {
	a, b := h.rs[h.order[i]], h.rs[h.order[j]]
	if c := columnar.CompareBetween(a.keys, a.row, b.keys, b.row); c != 0 {
		return c < 0
	}
	return h.order[i] < h.order[j]
}
func (h *runHeap) Swap(i, j int) { h.order[i], h.order[j] = h.order[j], h.order[i] }
func (h *runHeap) Push(x any)    { h.order = append(h.order, x.(int)) }
func (h *runHeap) Pop() any {
	x := h.order[len(h.order)-1]
	h.order = h.order[:len(h.order)-1]
	return x
}

// merge gives all runs as one, in batches.
func (s *Sorter) merge(emit func(b *columnar.Batch) error) error {
	h := &runHeap{}
	for i, run := range s.spilled.runs {
		r := &runReader{sorter: s, runs: s.spilled, left: run}
		h.rs = append(h.rs, r)
		if some, err := r.next(); err != nil {
			return err
		} else if some {
			h.order = append(h.order, i)
		}
	}
	heap.Init(h)
	c := collector{kinds: s.kinds(), emit: emit}
	for h.Len() > 0 {
		r := h.rs[h.order[0]]
		if err := c.add(r); err != nil {
			return err
		}
		if r.row++; r.row == r.batch.N {
			some, err := r.next()
			if err != nil {
				return err
			}
			if !some {
				heap.Pop(h)
				continue
			}
		}
		heap.Fix(h, 0)
	}
	return c.flush()
}

// collector makes batches of single rows of many.
type collector struct {
	kinds   []columnar.Kind
	emit    func(b *columnar.Batch) error
	batches []columnar.Batch
	readers []*runReader
	rows    []uint32 // batch << spillShift | row
	bytes   int      // of rows, about
}

const spillShift = 12 // spillRows rows

// add takes the row on which r stands.
func (c *collector) add(r *runReader) error {
	if r.source < 0 {
		r.source = len(c.batches)
		c.batches, c.readers = append(c.batches, r.batch), append(c.readers, r)
	}
	c.rows = append(c.rows, uint32(r.source)<<spillShift|uint32(r.row))
	c.bytes += r.rowBytes
	if len(c.rows) < sortedRows && c.bytes < sortedBytes {
		return nil
	}
	return c.flush()
}

func (c *collector) flush() error {
	if len(c.rows) == 0 {
		return nil
	}
	out := columnar.Batch{N: len(c.rows), Cols: make([]*columnar.Vec, len(c.kinds))}
	for i, k := range c.kinds {
		var g columnar.Gatherer
		g.Reset(k, spillShift)
		for j := range c.batches {
			g.Add(c.batches[j].Cols[i])
		}
		out.Cols[i] = g.Gather(c.rows)
	}
	for _, r := range c.readers {
		r.source = -1
	}
	clear(c.batches)
	c.bytes = 0
	c.batches, c.readers, c.rows = c.batches[:0], c.readers[:0], c.rows[:0]
	return c.emit(&out)
}
