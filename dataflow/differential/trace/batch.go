package trace

import (
	"sync"
	"sync/atomic"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// Chunk is a run of at most columnar.ChunkRows rows of a batch. Its slices and
// vectors are not to be written, and valid as long as the batch is held.
type Chunk struct {
	columnar.Batch          // all columns, in the collection's order of columns
	Hash           []uint64 // of the keys, ascending; nil in an Unkeyed layout
	Diffs          []dataflow.Diff
}

// Delta is the chunk as a delta that shares its memory.
func (c *Chunk) Delta() *dataflow.Delta {
	return &dataflow.Delta{Batch: c.Batch, Diffs: c.Diffs}
}

// Diff is the diff of row i.
func (c *Chunk) Diff(i int) dataflow.Diff {
	if c.Diffs == nil {
		return 1
	}
	return c.Diffs[i]
}

// recycle gives the chunk's buffers back to the pool.
func (c *Chunk) recycle() {
	for _, v := range c.Cols {
		v.Recycle()
	}
	columnar.PutSlice(c.Hash)
	columnar.PutSlice(c.Diffs)
	*c = Chunk{}
}

// Batch is an immutable, sorted, consolidated set of updates; see the package
// comment. It is counted by reference: whoever made it holds one reference,
// and gives it up with Release or by putting the batch into a Spine.
type Batch struct {
	layout *Layout
	desc   Description
	chunks []*Chunk
	rows   int
	exact  bool // equal hashes are equal keys
	ones   bool // all diffs are 1
	finder finder

	id      atomic.Uint64
	refs    atomic.Int32
	exposed atomic.Bool // was handed to a reader who may keep aliases
	pooled  bool        // the buffers are the batch's own, from the pool
	release func()      // of a block, may be nil

	payload, overhead int64
	widest            int64 // bytes of the largest column of a chunk

	columnsMu sync.Mutex
	columns   []*columnar.Gatherer

	ordersMu sync.Mutex
	orders   map[string]*sortedRows // by the name of the Ordering
}

// newBatch makes a batch of whole chunks (all but the last full, unless
// Unkeyed), with one reference.
func newBatch(l *Layout, desc Description, chunks []*Chunk) *Batch {
	b := &Batch{layout: l, desc: desc, chunks: chunks, exact: l.exact, ones: true}
	for _, c := range chunks {
		b.exact = b.exact && l.exactIn(c.Cols)
		b.ones = b.ones && c.Diffs == nil
		b.rows += c.N
		for _, v := range c.Cols {
			b.widen(v.MemSize())
		}
		b.overhead += int64(len(c.Hash)+len(c.Diffs)) * 8
	}
	if !l.Unkeyed {
		b.finder.init(chunks)
	}
	b.refs.Store(1)
	return b
}

// widen counts a column of a chunk.
func (b *Batch) widen(bytes int) {
	b.payload += int64(bytes)
	b.widest = max(b.widest, int64(bytes))
}

// weight is what to merge a row of the batch costs: 1 unless rows are wide.
func (b *Batch) weight() int { return 1 + int(b.payload/int64(max(b.rows, 1)))/1024 }

// maxWidth is how large a column of a chunk may become by merging, so that it can be
// addressed, and be in memory twice.
var maxWidth int64 = 2 << 30

// mergeable reports whether the chunks of a merge of two batches cannot become too
// large: one has rows of at most two neighbouring chunks of each.
func mergeable(a, b *Batch) bool {
	return a.rows+b.rows <= maxRows && (a.payload+b.payload <= maxWidth || 2*(a.widest+b.widest) <= maxWidth)
}

// Layout is the shape of the rows.
func (b *Batch) Layout() *Layout { return b.layout }

// Desc is the epochs the batch sums up.
func (b *Batch) Desc() Description { return b.desc }

// Len is the number of rows.
func (b *Batch) Len() int { return b.rows }

// Chunks is the number of chunks; Chunk gives one.
func (b *Batch) Chunks() int { return len(b.chunks) }

// Chunk is chunk i; row r of a keyed batch is row r%ChunkRows of chunk
// r/ChunkRows.
func (b *Batch) Chunk(i int) *Chunk { return b.chunks[i] }

// ID is the name that the owner gave the batch when it was persisted; 0 before.
func (b *Batch) ID() uint64 { return b.id.Load() }

// SetID names the batch. It may be called once, from any goroutine.
func (b *Batch) SetID(id uint64) { b.id.Store(id) }

// Retain adds a reference.
func (b *Batch) Retain() { b.refs.Add(1) }

// Release gives up a reference. With the last one the memory goes back to the
// pool, or the block to its keeper.
func (b *Batch) Release() {
	switch n := b.refs.Add(-1); {
	case n > 0:
		return
	case n < 0:
		panic("trace: batch released once too often")
	}
	orderMemory.forget(b)
	if b.release != nil {
		b.release()
	}
	if b.pooled && !b.exposed.Load() {
		for _, c := range b.chunks {
			c.recycle()
		}
		b.chunks, b.columns = nil, nil
	}
}

// Expose says that the batch's memory may be referred to after the last Release:
// it is then left to the garbage collector.
func (b *Batch) Expose() { b.exposed.Store(true) }

// Bytes is the memory of payload (data columns) and of overhead (hashes, diffs).
func (b *Batch) Bytes() (payload, overhead int64) { return b.payload, b.overhead }

// Column is column c of all chunks: row r of a keyed batch is at address r. It is
// made when first asked for, and kept.
func (b *Batch) Column(c int) *columnar.Gatherer {
	b.columnsMu.Lock()
	defer b.columnsMu.Unlock()
	if b.columns == nil {
		b.columns = make([]*columnar.Gatherer, len(b.layout.Kinds))
	}
	if b.columns[c] == nil {
		g := new(columnar.Gatherer)
		g.Reset(b.layout.Kinds[c], columnar.ChunkShift)
		b.AddTo(g, c)
		b.columns[c] = g
	}
	return b.columns[c]
}

// Ones reports whether all diffs are 1.
func (b *Batch) Ones() bool { return b.ones }

// DiffAt is the diff of row r of a keyed batch.
func (b *Batch) DiffAt(r uint32) dataflow.Diff {
	d := b.chunks[r>>columnar.ChunkShift].Diffs
	if d == nil {
		return 1
	}
	return d[r&(columnar.ChunkRows-1)]
}

// AddTo appends the chunks of column c to a Gatherer of shift ChunkShift: row r
// of the batch is then at address base<<ChunkShift + r, where base is the
// number of vectors that were there before.
func (b *Batch) AddTo(g *columnar.Gatherer, c int) {
	for _, ch := range b.chunks {
		g.Add(ch.Cols[c])
	}
}
