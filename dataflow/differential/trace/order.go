package trace

import (
	"maps"
	"sort"

	"github.com/streamdb/streamdb/columnar"
)

// Ordering is an order of a collection's rows by some of its columns, ascending
// and with NULL last. Batches are not kept in it (see the package comment): each
// gets a list of its rows in that order when a reader first asks for one, which
// lasts as long as the batch does, or until memory is wanted for others.
type Ordering struct {
	// Name tells orderings apart: of equal names are equal ones.
	Name string
	// Cols are the columns, the most significant first.
	Cols []int
	// Keys give, for each column, values of which the physical order is the one
	// wanted; nil: that of the column's own values is.
	Keys []func(*columnar.Vec) *columnar.Vec
}

// key is the values of ordering column i for a vector of its column.
func (o *Ordering) key(i int, v *columnar.Vec) *columnar.Vec {
	if o.Keys[i] == nil {
		return v
	}
	return o.Keys[i](v)
}

// Range is the rows whose first columns of an ordering have the values Equal and
// whose next one is within bounds. Values are vectors of length 1, in the form that
// Ordering.Keys gives. With a bound, NULL is not within.
type Range struct {
	Equal                []*columnar.Vec
	Lower, Upper         *columnar.Vec // nil: no such bound
	LowerOpen, UpperOpen bool          // the bound itself is not within
}

// sortedRows is the rows of a batch in an order.
type sortedRows struct {
	rows  []uint32
	keys  [][]*columnar.Vec // of each column of the ordering, by chunk
	bytes int64
}

// maxSortBytes is the most bytes of values of one column that are sorted at once.
const maxSortBytes = 1 << 31

// chunkKeys are the keys of each column of an ordering, by chunk, and the memory
// that they take beyond the batch's own.
func (b *Batch) chunkKeys(o *Ordering) (keys [][]*columnar.Vec, bytes int64) {
	keys = make([][]*columnar.Vec, len(o.Cols))
	for i, c := range o.Cols {
		keys[i] = make([]*columnar.Vec, len(b.chunks))
		for j, ch := range b.chunks {
			v := o.key(i, ch.Cols[c])
			if keys[i][j] = v; v != ch.Cols[c] {
				bytes += int64(v.MemSize())
			}
		}
	}
	return keys, bytes
}

// order is the batch's rows in an order, nil if they are not to be sorted.
func (b *Batch) order(o *Ordering) *sortedRows {
	b.ordersMu.Lock()
	if s := b.orders[o.Name]; s != nil {
		b.ordersMu.Unlock()
		orderMemory.touch(b, o.Name, s)
		return s
	}
	s := b.sort(o)
	if s != nil {
		if b.orders == nil {
			b.orders = map[string]*sortedRows{}
		}
		b.orders[o.Name] = s
	}
	b.ordersMu.Unlock()
	if s != nil {
		orderMemory.add(b, o.Name, s)
	}
	return s
}

// hasOrder reports whether the batch's rows were sorted before.
func (b *Batch) hasOrder(o *Ordering) bool {
	b.ordersMu.Lock()
	defer b.ordersMu.Unlock()
	return b.orders[o.Name] != nil
}

func (b *Batch) sort(o *Ordering) *sortedRows {
	s := &sortedRows{}
	s.keys, s.bytes = b.chunkKeys(o)
	sortKeys := make([]columnar.SortKey, len(o.Cols))
	for i, vs := range s.keys {
		size := 0
		for _, v := range vs {
			size += v.MemSize()
		}
		if size > maxSortBytes {
			return nil
		}
		if len(vs) == 1 {
			sortKeys[i].Vec = vs[0]
		} else {
			sortKeys[i].Vec = columnar.Concat(vs[0].Kind(), vs...)
		}
	}
	s.rows = columnar.Sort(sortKeys, b.rows)
	s.bytes += int64(len(s.rows)) * 4
	return s
}

// adoptOrders takes over the orders of a batch of equal content whose memory may go.
func (b *Batch) adoptOrders(old *Batch) {
	if b.rows != old.rows || len(b.chunks) != len(old.chunks) {
		return
	}
	old.ordersMu.Lock()
	orders := maps.Clone(old.orders)
	old.ordersMu.Unlock()
	for name, s := range orders {
		n := &sortedRows{rows: s.rows, keys: make([][]*columnar.Vec, len(s.keys)), bytes: s.bytes}
		for i, vs := range s.keys {
			c := old.columnOf(vs)
			if c < 0 {
				n = nil
				break
			}
			for _, ch := range b.chunks {
				n.keys[i] = append(n.keys[i], ch.Cols[c])
			}
		}
		if n == nil {
			continue
		}
		if b.orders == nil {
			b.orders = map[string]*sortedRows{}
		}
		b.orders[name] = n
	}
	for name, n := range maps.Clone(b.orders) {
		orderMemory.add(b, name, n)
	}
}

// columnOf is the column that has the given vectors, -1 if none has.
func (b *Batch) columnOf(vs []*columnar.Vec) int {
	for c, v := range b.chunks[0].Cols {
		if v == vs[0] {
			return c
		}
	}
	return -1
}

// compare compares the key of the row at a position with the values of a range:
// those of Equal and, if it is not nil, bound. A NULL is after every bound.
func (s *sortedRows) compare(row uint32, r *Range, bound *columnar.Vec) int {
	chunk, i := row>>columnar.ChunkShift, int(row&(columnar.ChunkRows-1))
	for c, v := range r.Equal {
		if x := columnar.CompareAt(s.keys[c][chunk], i, v, 0); x != 0 {
			return x
		}
	}
	if bound != nil {
		return columnar.CompareAt(s.keys[len(r.Equal)][chunk], i, bound, 0)
	}
	return 0
}

// null reports whether the column after those of Equal is NULL in a row.
func (s *sortedRows) null(row uint32, r *Range) bool {
	v := s.keys[len(r.Equal)][row>>columnar.ChunkShift]
	return v.Null(int(row & (columnar.ChunkRows - 1)))
}

// beyond says where a row is as to a range: before it (-1), within (0), or after (1).
func (s *sortedRows) beyond(row uint32, r *Range) int {
	x := s.compare(row, r, r.Lower)
	switch {
	case x < 0 || x == 0 && r.Lower != nil && r.LowerOpen:
		return -1
	case r.Lower == nil && r.Upper == nil:
		return x
	}
	x = s.compare(row, r, r.Upper)
	if x > 0 || x == 0 && (r.Upper != nil && r.UpperOpen || s.null(row, r)) {
		return 1
	}
	return 0
}

// find gives the positions lo ≤ p < hi of the rows of a range.
func (s *sortedRows) find(r *Range) (lo, hi int) {
	n := len(s.rows)
	lo = sort.Search(n, func(p int) bool { return s.beyond(s.rows[p], r) >= 0 })
	hi = lo + sort.Search(n-lo, func(p int) bool { return s.beyond(s.rows[lo+p], r) > 0 })
	return lo, hi
}

const (
	// sampleRows is how many rows are looked at to learn how many others are in
	// some ranges, before many are sorted.
	sampleRows = 256
	// sampleFrom is the size of a batch from which on that is worth it.
	sampleFrom = 1 << 14
)

// sample estimates how many of the batch's rows are within ranges.
func (b *Batch) sample(o *Ordering, rs []Range) int {
	s := &sortedRows{keys: make([][]*columnar.Vec, len(o.Cols))}
	step := max(len(b.chunks)/16, 1)
	found, seen := 0, 0
	for j := 0; j < len(b.chunks); j += step {
		ch := b.chunks[j]
		// A row of a chunk is where it is by the hash of its key: any will do.
		n := min(ch.N, sampleRows)
		for i, c := range o.Cols {
			v := o.key(i, ch.Cols[c].Slice(0, n))
			s.keys[i] = []*columnar.Vec{v}
		}
		for row := range n {
			for k := range rs {
				if s.beyond(uint32(row), &rs[k]) == 0 {
					found++
					break
				}
			}
		}
		seen += n
	}
	return int(float64(found) / float64(seen) * float64(b.rows))
}
