package trace

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// Cursor is a position in a Reader: a key, and a row within the key. It walks
// in the layout's order, summing up over the batches. It is for tests and small
// reads; hot paths use Groups.
type Cursor struct {
	layout *Layout
	heads  []head
	val    head // a place of the current row
	diff   dataflow.Diff
	keyed  bool // there is a current key
	valid  bool // and a current row
}

// head is a place in one batch: the next row, and the end of the current key.
type head struct {
	b        *Batch
	row, end int
}

func (h head) at() (*Chunk, int) {
	return h.b.chunks[h.row>>columnar.ChunkShift], h.row & (columnar.ChunkRows - 1)
}

// Cursor starts at the first key.
func (r Reader) Cursor() *Cursor {
	c := &Cursor{layout: r.Layout}
	for _, b := range r.Batches {
		c.heads = append(c.heads, head{b: b})
	}
	c.findKey()
	return c
}

// compareKey orders the keys of two heads' rows.
func (c *Cursor) compareKey(a, b head) int {
	x, i := a.at()
	y, j := b.at()
	switch {
	case x.Hash[i] < y.Hash[j]:
		return -1
	case x.Hash[i] > y.Hash[j]:
		return 1
	}
	return compareBy(c.layout.Key, x.Cols, i, y.Cols, j)
}

// findKey goes to the least key from the heads on that has a row.
func (c *Cursor) findKey() {
	for {
		least := -1
		for k, h := range c.heads {
			if h.row < h.b.rows && (least < 0 || c.compareKey(h, c.heads[least]) < 0) {
				least = k
			}
		}
		if least < 0 {
			c.keyed, c.valid = false, false
			return
		}
		c.keyed = true
		key := c.heads[least]
		for k := range c.heads {
			h := &c.heads[k]
			h.end = h.row
			for e := *h; e.row < e.b.rows && c.compareKey(e, key) == 0; e.row++ {
				h.end = e.row + 1
			}
		}
		if c.findVal(); c.valid {
			return
		}
	}
}

// findVal goes to the least row of the key from the heads on whose diffs do not
// cancel, and moves the heads past it.
func (c *Cursor) findVal() {
	for {
		least := -1
		c.diff = 0
		for k, h := range c.heads {
			if h.row == h.end {
				continue
			}
			r := -1
			if least >= 0 {
				x, i := h.at()
				y, j := c.val.at()
				r = compareBy(c.layout.rest, x.Cols, i, y.Cols, j)
			}
			if r < 0 {
				least, c.val, c.diff = k, h, 0
			}
			if r <= 0 {
				ch, i := h.at()
				c.diff += ch.Diff(i)
			}
		}
		if least < 0 {
			c.valid = false
			return
		}
		for k := range c.heads {
			h := &c.heads[k]
			if h.row == h.end {
				continue
			}
			x, i := h.at()
			y, j := c.val.at()
			if compareBy(c.layout.rest, x.Cols, i, y.Cols, j) == 0 {
				h.row++
			}
		}
		if c.diff != 0 {
			c.valid = true
			return
		}
	}
}

// SeekKey goes to the first key at or after row i of the given key columns (in
// the order of Layout.Key).
func (c *Cursor) SeekKey(keys []*columnar.Vec, i int) {
	hash := columnar.HashRow(keys, i)
	for k := range c.heads {
		h := &c.heads[k]
		h.row = h.b.rows
		if h.b.rows == 0 {
			continue
		}
		for h.row = h.b.lower(hash, -1); h.row < h.b.rows; h.row++ {
			ch, j := h.at()
			if ch.Hash[j] != hash || columnar.CompareRows(pick(ch.Cols, c.layout.Key), j, keys, i) >= 0 {
				break
			}
		}
	}
	c.findKey()
}

// KeyValid reports whether there is a current key. It stays current, without
// rows, when StepVal has passed its last one.
func (c *Cursor) KeyValid() bool { return c.keyed }

// ValValid reports whether the key has a current row.
func (c *Cursor) ValValid() bool { return c.valid }

// StepVal goes to the next row of the key.
func (c *Cursor) StepVal() { c.findVal() }

// StepKey goes to the next key.
func (c *Cursor) StepKey() {
	for k := range c.heads {
		c.heads[k].row = c.heads[k].end
	}
	c.findKey()
}

// Row is the place of the current row: a chunk that holds it, and its index.
func (c *Cursor) Row() (*Chunk, int) { return c.val.at() }

// Diff is the sum of the current row's diffs; never 0.
func (c *Cursor) Diff() dataflow.Diff { return c.diff }
