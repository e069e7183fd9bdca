package trace

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// buildUnit sorts one delta into a batch a partition.
func buildUnit(l *Layout, d *dataflow.Delta, out []*Batch, desc Description, run Runner) {
	keys := columnar.GetSlice[columnar.Keyed](d.N)
	tmp := columnar.GetSlice[columnar.Keyed](d.N)
	hash := columnar.GetSlice[uint64](d.N)
	columnar.HashCols(pick(d.Cols, l.Key), d.N, hash)
	for i, h := range hash {
		keys[i] = columnar.Keyed{Key: h, Row: uint32(i)}
	}
	columnar.PutSlice(hash)
	gs := make([]columnar.Gatherer, len(d.Cols))
	for c, v := range d.Cols {
		gs[c].Reset(l.Kinds[c], 31)
		gs[c].Add(v)
	}
	exact := l.exactIn(d.Cols)
	part := func(a, tmp []columnar.Keyed, p int) {
		columnar.SortKeyed(a, tmp)
		s := sorter{layout: l, d: d, exact: exact}
		out[p] = s.build(a, tmp, gs, desc)
	}
	switch parts := len(out); {
	case parts == 1:
		part(keys, tmp, 0)
	case d.N < parallelRows:
		columnar.SortKeyed(keys, tmp)
		lo := 0
		for p := range parts {
			hi := lo
			for hi < len(keys) && columnar.PartitionOf(keys[hi].Key, parts) == p {
				hi++
			}
			if hi > lo {
				s := sorter{layout: l, d: d, exact: exact}
				out[p] = s.build(keys[lo:hi], tmp[lo:hi], gs, desc)
			}
			lo = hi
		}
	default:
		ends := scatterKeyed(keys, tmp, parts)
		run(parts, func(p int) {
			lo := 0
			if p > 0 {
				lo = ends[p-1]
			}
			if ends[p] > lo {
				part(tmp[lo:ends[p]], keys[lo:ends[p]], p)
			}
		})
	}
	columnar.PutSlice(keys)
	columnar.PutSlice(tmp)
}

// scatterKeyed moves src to dst grouped by partition and gives their ends.
func scatterKeyed(src, dst []columnar.Keyed, parts int) []int {
	ends := make([]int, parts)
	for i := range src {
		ends[columnar.PartitionOf(src[i].Key, parts)]++
	}
	sum := 0
	for p, n := range ends {
		ends[p] = sum
		sum += n
	}
	for _, k := range src {
		p := columnar.PartitionOf(k.Key, parts)
		dst[ends[p]] = k
		ends[p]++
	}
	return ends
}

// sorter turns rows sorted by hash into a batch: it orders rows of equal hash
// by key and value and sums up equal ones.
type sorter struct {
	layout *Layout
	d      *dataflow.Delta
	exact  bool

	keys  []columnar.SortKey // columns that order rows of equal hash
	idx   []uint32
	hash  []uint64
	diffs []dataflow.Diff // nil while all are 1
}

func (s *sorter) build(a, tmp []columnar.Keyed, gs []columnar.Gatherer, desc Description) *Batch {
	s.idx = columnar.GetSlice[uint32](len(a))[:0]
	s.hash = columnar.GetSlice[uint64](len(a))[:0]
	if s.d.Diffs != nil {
		s.diffs = columnar.GetSlice[dataflow.Diff](len(a))[:0]
	}
	for lo := 0; lo < len(a); {
		h := a[lo].Key
		hi := lo + 1
		for hi < len(a) && a[hi].Key == h {
			hi++
		}
		if hi-lo == 1 {
			s.single(a[lo])
		} else {
			s.run(a[lo:hi], tmp[lo:hi])
		}
		lo = hi
	}
	var b *Batch
	if len(s.idx) > 0 {
		b = s.gather(gs, desc)
	}
	columnar.PutSlice(s.idx)
	columnar.PutSlice(s.hash)
	columnar.PutSlice(s.diffs)
	return b
}

func (s *sorter) single(k columnar.Keyed) {
	if s.d.Diffs != nil {
		d := s.d.Diffs[k.Row]
		if d == 0 {
			return
		}
		s.diffs = append(s.diffs, d)
	} else if s.diffs != nil {
		s.diffs = append(s.diffs, 1)
	}
	s.idx = append(s.idx, k.Row)
	s.hash = append(s.hash, k.Key)
}

// run handles rows of equal hash.
func (s *sorter) run(a, tmp []columnar.Keyed) {
	h := a[0].Key
	if s.keys == nil {
		order := s.layout.tieOrder(s.exact)
		s.keys = make([]columnar.SortKey, len(order))
		for i, c := range order {
			s.keys[i].Vec = s.d.Cols[c]
		}
	}
	columnar.SortRows(s.keys, a, tmp)
	for lo := 0; lo < len(a); {
		sum := s.d.Diff(int(a[lo].Row))
		hi := lo + 1
		for hi < len(a) && columnar.Compare(s.keys, int(a[lo].Row), int(a[hi].Row)) == 0 {
			sum += s.d.Diff(int(a[hi].Row))
			hi++
		}
		s.sum(h, a[lo].Row, sum)
		lo = hi
	}
}

func (s *sorter) sum(h uint64, row uint32, sum dataflow.Diff) {
	if sum == 0 {
		return
	}
	if sum != 1 && s.diffs == nil {
		s.diffs = ones(columnar.GetSlice[dataflow.Diff](cap(s.idx))[:len(s.idx)])
	}
	if s.diffs != nil {
		s.diffs = append(s.diffs, sum)
	}
	s.idx = append(s.idx, row)
	s.hash = append(s.hash, h)
}

// gather fetches the columns, chunk by chunk.
func (s *sorter) gather(gs []columnar.Gatherer, desc Description) *Batch {
	b := NewBuilder(s.layout, len(s.idx))
	for lo := 0; lo < len(s.idx); lo += columnar.ChunkRows {
		hi := min(lo+columnar.ChunkRows, len(s.idx))
		var diffs []dataflow.Diff
		if s.diffs != nil {
			diffs = s.diffs[lo:hi]
		}
		copy(b.hashes(), s.hash[lo:hi])
		b.add(gs, s.idx[lo:hi], diffs)
	}
	return b.Done(desc)
}
