package differential

import (
	"sync"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// scatter cuts deltas by the partition of their keys, as Exchange does, but
// without moving any data: for operators that look at each row once anyway.
func (x *Context) scatter(ds []*dataflow.Delta, key []int) *scatter {
	s := &scatter{parts: x.c.opts.Partitions, deltas: make([]scattered, len(ds))}
	var cols []*columnar.Vec
	for i, d := range ds {
		cols = pickCols(cols[:0], d.Cols, key)
		hash := columnar.GetSlice[uint64](d.N)
		columnar.HashCols(cols, d.N, hash)
		s.deltas[i] = scattered{Delta: d, hash: hash}
		if s.parts == 1 {
			s.deltas[i].idx = identity(d.N)
		} else {
			s.deltas[i].idx, s.deltas[i].ends = columnar.Scatter(hash, s.parts)
		}
	}
	return s
}

// scatter is deltas whose rows are listed by partition.
type scatter struct {
	parts  int
	deltas []scattered
}

// scattered is a delta, the hashes of its rows' keys, and the rows by partition.
type scattered struct {
	*dataflow.Delta
	hash []uint64
	idx  []uint32
	ends []int // nil: all rows are in partition 0
}

// part is the rows that belong to partition i, ascending.
func (d *scattered) part(i int) []uint32 {
	switch {
	case d.ends == nil:
		return d.idx
	case i == 0:
		return d.idx[:d.ends[0]]
	}
	return d.idx[d.ends[i-1]:d.ends[i]]
}

// rows is the number of rows in partition i.
func (s *scatter) rows(i int) int {
	n := 0
	for j := range s.deltas {
		n += len(s.deltas[j].part(i))
	}
	return n
}

// release gives back the hashes and the lists of rows.
func (s *scatter) release() {
	for i := range s.deltas {
		columnar.PutSlice(s.deltas[i].hash)
		if s.deltas[i].ends != nil {
			columnar.PutSlice(s.deltas[i].idx)
		}
	}
}

// counting is 0, 1, 2, …, for those who want all rows of a delta. It is only read.
var (
	counting  = [1 << 8]uint32(allRows(1 << 8))
	countMany = sync.OnceValue(func() []uint32 { return allRows(1 << 16) })
)

// identity is 0..n-1. It is only to be read.
func identity(n int) []uint32 {
	switch {
	case n <= len(counting):
		return counting[:n]
	case n <= 1<<16:
		return countMany()[:n]
	}
	return allRows(n)
}

// emptied is a slice to be filled again in the next epoch, unless this one was so
// large that its memory is better given back.
func emptied[T any](s []T) []T {
	if cap(s) > 1<<19 {
		return nil
	}
	return s[:0]
}
