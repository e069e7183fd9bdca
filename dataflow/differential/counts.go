package differential

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// countFunc maps the counts of a row in one or two collections to its count in
// the result. It must map 0, 0 to 0.
type countFunc func(a, b dataflow.Diff) dataflow.Diff

func distinctCount(a, _ dataflow.Diff) dataflow.Diff {
	if a > 0 {
		return 1
	}
	return 0
}

func thresholdCount(a, _ dataflow.Diff) dataflow.Diff { return max(a, 0) }

func intersectCount(a, b dataflow.Diff) dataflow.Diff {
	if a > 0 && b > 0 {
		return 1
	}
	return 0
}

func intersectAllCount(a, b dataflow.Diff) dataflow.Diff { return max(min(a, b), 0) }

func exceptCount(a, b dataflow.Diff) dataflow.Diff {
	if a > 0 && b <= 0 {
		return 1
	}
	return 0
}

func exceptAllCount(a, b dataflow.Diff) dataflow.Diff { return max(max(a, 0)-max(b, 0), 0) }

// Distinct has each row with a positive count once.
func (c *Circuit) Distinct(s Stream) Stream {
	switch {
	case c.scope == nil:
		return c.countMap(s, distinctCount)
	case c.scope.it.c.opts.Once && len(s.Kinds()) > 0:
		d := &onceDistinct{kinds: s.Kinds(), key: allColumns(len(s.Kinds())), parts: make([]*countTable, c.opts.Partitions)}
		return c.Add(d, []Stream{s}, s.Kinds()).Out(0)
	}
	return c.scopeDistinct(s)
}

// Threshold has each row with a positive count so many times.
func (c *Circuit) Threshold(s Stream) Stream { return c.countMap(s, thresholdCount) }

// Intersect is INTERSECT [ALL].
func (c *Circuit) Intersect(a, b Stream, all bool) Stream {
	if all {
		return c.countMerge(a, b, intersectAllCount)
	}
	return c.countMerge(a, b, intersectCount)
}

// Except is EXCEPT [ALL].
func (c *Circuit) Except(a, b Stream, all bool) Stream {
	if all {
		return c.countMerge(a, b, exceptAllCount)
	}
	return c.countMerge(a, b, exceptCount)
}

// countMap applies a function to the count of each row. The state is the
// collection arranged by all its columns: a row a distinct row, with its count.
func (c *Circuit) countMap(s Stream, f countFunc) Stream {
	if c.opts.Once {
		return c.Add(onceCounts{f}, []Stream{s}, s.Kinds()).Out(0)
	}
	a := c.Arrange(s, allColumns(len(s.Kinds())))
	return c.AddOver(&countMap{a, f}, []*Arrangement{a}, s.Kinds()).Out(0)
}

type countMap struct {
	a *Arrangement
	f countFunc
}

// Step outputs, for each row of the delta, what its result has changed by.
func (m *countMap) Step(x *Context) {
	rows := m.a.deltaRows()
	x.Probed(m.a, rows)
	x.ForEach(rows, func(p int, out *Emitter) {
		delta := m.a.Delta(p)
		if len(delta.Batches) == 0 {
			return
		}
		old := m.a.Old(p)
		for _, d := range delta.Batches {
			for i := range d.Chunks() {
				ch := d.Chunk(i)
				counts := make([]dataflow.Diff, ch.N)
				countMatches(old, pick(ch.Cols, m.a.layout.Key), ch.Hash, false, counts)
				for r, n := range counts {
					counts[r] = m.f(n+ch.Diff(r), 0) - m.f(n, 0)
				}
				out.Emit(0, changedRows(ch, counts))
			}
		}
	})
}

// changedRows is the rows of a chunk whose diff is not 0, as a delta with those
// diffs; nil if there are none.
func changedRows(ch *trace.Chunk, diffs []dataflow.Diff) *dataflow.Delta {
	idx := make([]uint32, 0, ch.N)
	ones := true
	for r, n := range diffs {
		if n != 0 {
			diffs[len(idx)] = n
			idx = append(idx, uint32(r))
			ones = ones && n == 1
		}
	}
	if len(idx) == 0 {
		return nil
	}
	d := &dataflow.Delta{Batch: ch.Gather(idx)}
	if !ones {
		d.Diffs = diffs[:len(idx)]
	}
	return d
}

// onceCounts is countMap in a circuit that runs once.
type onceCounts struct{ f countFunc }

// Step counts all there is.
func (o onceCounts) Step(x *Context) {
	d := Consolidated(x.node.out[0].kinds, x.In(0))
	if d == nil {
		return
	}
	counts := make([]dataflow.Diff, d.N)
	for r := range counts {
		counts[r] = o.f(d.Diff(r), 0)
	}
	x.Emit(0, changedRows(&trace.Chunk{Batch: d.Batch}, counts))
}

// countMerge applies a function to the counts of each row in two collections.
func (c *Circuit) countMerge(a, b Stream, f countFunc) Stream {
	sameKinds(a.Kinds(), b.Kinds())
	key := allColumns(len(a.Kinds()))
	l, r := c.Arrange(a, key), c.Arrange(b, key)
	in := []*Arrangement{l}
	if r != l {
		in = append(in, r)
	}
	return c.AddOver(&countMerge{l, r, f}, in, a.Kinds()).Out(0)
}

type countMerge struct {
	a, b *Arrangement
	f    countFunc
}

// Step goes over the rows that changed in a, then over those that changed in b
// only.
func (m *countMerge) Step(x *Context) {
	rows := m.a.deltaRows() + m.b.deltaRows()
	x.Probed(m.a, rows)
	x.Probed(m.b, rows)
	x.ForEach(rows, func(p int, out *Emitter) {
		da, db := m.a.Delta(p), m.b.Delta(p)
		oldA, oldB := m.a.Old(p), m.b.Old(p)
		each := func(delta trace.Reader, f func(ch *trace.Chunk, keys []*columnar.Vec)) {
			for _, d := range delta.Batches {
				for i := range d.Chunks() {
					f(d.Chunk(i), pick(d.Chunk(i).Cols, m.a.layout.Key))
				}
			}
		}
		count := func(r trace.Reader, ch *trace.Chunk, keys []*columnar.Vec) []dataflow.Diff {
			n := make([]dataflow.Diff, ch.N)
			countMatches(r, keys, ch.Hash, false, n)
			return n
		}
		each(da, func(ch *trace.Chunk, keys []*columnar.Vec) {
			a, b, change := count(oldA, ch, keys), count(oldB, ch, keys), count(db, ch, keys)
			for r, d := range change {
				change[r] = m.f(a[r]+ch.Diff(r), b[r]+d) - m.f(a[r], b[r])
			}
			out.Emit(0, changedRows(ch, change))
		})
		each(db, func(ch *trace.Chunk, keys []*columnar.Vec) {
			a, b, seen := count(oldA, ch, keys), count(oldB, ch, keys), count(da, ch, keys)
			change := make([]dataflow.Diff, ch.N)
			for r := range change {
				if seen[r] == 0 {
					change[r] = m.f(a[r], b[r]+ch.Diff(r)) - m.f(a[r], b[r])
				}
			}
			out.Emit(0, changedRows(ch, change))
		})
	})
}
