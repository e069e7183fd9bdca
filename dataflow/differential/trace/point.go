package trace

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// Point is the rows of one key at one epoch, in place. It can be used again
// after Release.
type Point struct {
	batches []*Batch
	// Chunk and Row are where the row stands, if the key has just one row and it
	// was never changed; Chunk is nil otherwise.
	Chunk *Chunk
	Row   int
	// Found is the number of changes found: 0 says that there is no row.
	Found int
}

// PointAt finds the rows of one key at epoch e: row i of keys, the key columns in
// the order of Layout.Key. It reports false if e is not readable. What p names is
// valid until p is released.
func (t *Trace) PointAt(e dataflow.Epoch, keys []*columnar.Vec, i int, p *Point) bool {
	h := columnar.HashRow(keys, i)
	s := t.spines[columnar.PartitionOf(h, len(t.spines))]
	t.shared.mu.Lock()
	if !s.readable(e) {
		t.shared.mu.Unlock()
		return false
	}
	p.batches = p.batches[:0]
	for _, b := range s.batches {
		if b.desc.Upper <= e+1 && b.rows > 0 {
			b.Retain()
			p.batches = append(p.batches, b)
		}
	}
	t.shared.mu.Unlock()
	p.Chunk, p.Found = nil, 0
	for _, b := range p.batches {
		p.find(b, h, keys, i)
	}
	if p.Found != 1 {
		p.Chunk = nil
	}
	return true
}

// find looks a key up in one batch.
func (p *Point) find(b *Batch, h uint64, keys []*columnar.Vec, i int) {
	at := b.lower(h, -1)
	if at >= b.rows || b.hashAt(at) != h {
		return
	}
	for end := b.runEnd(at+1, h); at < end; at++ {
		c, row := b.chunks[at>>columnar.ChunkShift], at&(columnar.ChunkRows-1)
		if !c.keyIs(b.layout, row, keys, i) {
			continue
		}
		p.Found++
		if c.Diffs == nil || c.Diffs[row] == 1 {
			p.Chunk, p.Row = c, row
		} else {
			p.Found++ // not a row by itself
		}
	}
}

func (c *Chunk) keyIs(l *Layout, row int, keys []*columnar.Vec, i int) bool {
	for k, col := range l.Key {
		if !columnar.EqualAt(c.Cols[col], row, keys[k], i) {
			return false
		}
	}
	return true
}

// Release ends the use of what the point names.
func (p *Point) Release() {
	for _, b := range p.batches {
		b.Release()
	}
	clear(p.batches)
	p.batches, p.Chunk = p.batches[:0], nil
}
