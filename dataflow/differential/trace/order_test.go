package trace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// TestSelect compares range reads, in any order and in that of the ordering, with
// scans, over random changes.
func TestSelect(t *testing.T) {
	r := seeded(t)
	for _, l := range []*Layout{layouts[0], layouts[1], layouts[2], layouts[4]} {
		for round := range 3 {
			t.Run(fmt.Sprintf("kinds=%v/round=%d", l.Kinds, round), func(t *testing.T) {
				tr := New(l, 1<<r.IntN(3))
				size := []int{1, 20, 1000, 6000}[r.IntN(4)]
				domain := []int{3, 50, 100000}[r.IntN(3)]
				for e := dataflow.Epoch(1); int(e) <= min(12, 20000/size+2); e++ {
					d := randomDelta(r, l.Kinds, r.IntN(size)+1, domain, r.IntN(2) == 0)
					tr.Append(e, []*dataflow.Delta{d})
					tr.Seal(e)
					if r.IntN(3) > 0 {
						continue
					}
					s, ok := tr.SnapshotAt(e)
					if !ok {
						t.Fatal("no snapshot")
					}
					checkSelect(t, r, l, s, domain)
					s.Release()
				}
			})
		}
	}
}

// randomRanges are ranges over the key columns of a layout.
func randomRanges(r *rand.Rand, l *Layout, domain int) []Range {
	rs := make([]Range, r.IntN(3)+1)
	one := func(c int) *columnar.Vec { return randomVec(r, l.Kinds[l.Key[c]], 1, domain, false) }
	for i := range rs {
		n := r.IntN(len(l.Key) + 1)
		for c := range n {
			rs[i].Equal = append(rs[i].Equal, one(c))
		}
		if n < len(l.Key) {
			if r.IntN(2) == 0 {
				rs[i].Lower, rs[i].LowerOpen = one(n), r.IntN(2) == 0
			}
			if r.IntN(2) == 0 {
				rs[i].Upper, rs[i].UpperOpen = one(n), r.IntN(2) == 0
			}
		}
	}
	return rs
}

// within is what a Range means.
func within(l *Layout, cols []*columnar.Vec, i int, r *Range) bool {
	for c, v := range r.Equal {
		if columnar.CompareAt(cols[l.Key[c]], i, v, 0) != 0 {
			return false
		}
	}
	if r.Lower == nil && r.Upper == nil {
		return true
	}
	v := cols[l.Key[len(r.Equal)]]
	if v.Null(i) {
		return false
	}
	if r.Lower != nil {
		if x := columnar.CompareAt(v, i, r.Lower, 0); x < 0 || x == 0 && r.LowerOpen {
			return false
		}
	}
	if r.Upper != nil {
		if x := columnar.CompareAt(v, i, r.Upper, 0); x > 0 || x == 0 && r.UpperOpen {
			return false
		}
	}
	return true
}

func checkSelect(t *testing.T, r *rand.Rand, l *Layout, s *TraceSnapshot, domain int) {
	t.Helper()
	o := &Ordering{Name: "key", Cols: l.Key, Keys: make([]func(*columnar.Vec) *columnar.Vec, len(l.Key))}
	if r.IntN(2) == 0 { // as if the values had to be encoded
		o.Name = "encoded"
		o.Keys[0] = func(v *columnar.Vec) *columnar.Vec {
			b := columnar.NewBuilder(v.Kind(), v.Len())
			b.AppendVec(v)
			return b.Build()
		}
	}
	rs := randomRanges(r, l, domain)
	want := zset{}
	rows := 0
	s.Scan(func(d *dataflow.Delta) bool {
		for i := range d.N {
			if slices.ContainsFunc(rs, func(r Range) bool { return within(l, d.Cols, i, &r) }) {
				rows++
				k := rowText(d.Cols, i)
				if want[k] += d.Diff(i); want[k] == 0 {
					delete(want, k)
				}
			}
		}
		return true
	})
	sel, ok := s.Select(o, rs, 1)
	if !ok || sel.Rows != rows {
		t.Fatalf("%d rows selected, not %d", sel.Rows, rows)
	}
	got := zset{}
	sel.Each(func(d *dataflow.Delta) bool { got.add(d); return true })
	if !got.equal(want) {
		t.Fatalf("rows within %v are %v, not %v", rs, got, want)
	}
	if again, _ := s.Select(o, rs, 1); again.Sorted != 0 && s.Len() > 0 {
		t.Fatalf("%d rows are sorted again", again.Sorted)
	}
	for _, desc := range []bool{false, true} {
		got := zset{}
		var last []*columnar.Vec
		at := 0
		sel.Ordered(desc, func(d *dataflow.Delta) bool {
			got.add(d)
			for i := range d.N {
				now := pick(d.Cols, l.Key)
				if x := columnar.CompareRows(now, i, now, i); x != 0 {
					t.Fatal("a row differs from itself")
				}
				if last != nil {
					x := columnar.CompareRows(last, at, now, i)
					if desc && x < 0 || !desc && x > 0 {
						t.Fatalf("desc=%v: %s before %s", desc, rowText(last, at), rowText(now, i))
					}
				}
				last, at = now, i
			}
			return true
		})
		if !got.equal(want) {
			t.Fatalf("rows in order (desc %v) are %v, not %v", desc, got, want)
		}
	}
	if few, ok := s.Select(o, rs, 0.25); ok && few.Rows > max(s.Len()/4, sampleFrom) {
		t.Fatalf("%d of %d rows are no quarter", few.Rows, s.Len())
	}
}

// TestOrderMemory makes orders until older ones must go.
func TestOrderMemory(t *testing.T) {
	before := orderMemory.limit
	defer SetOrderLimit(before)
	l := layouts[0]
	o := &Ordering{Name: "key", Cols: l.Key, Keys: make([]func(*columnar.Vec) *columnar.Vec, 1)}
	r := seeded(t)
	SetOrderLimit(0)
	var bs []*Batch
	for range 4 {
		bs = append(bs, build(l, 1, fresh(r, 20000)))
	}
	SetOrderLimit(2*4*20000 + 1000)
	for _, b := range bs {
		b.order(o)
	}
	if bs[0].hasOrder(o) || bs[1].hasOrder(o) || !bs[2].hasOrder(o) || !bs[3].hasOrder(o) {
		t.Error("not the orders used last are kept")
	}
	bs[2].order(o)
	bs[0].order(o)
	if !bs[2].hasOrder(o) || bs[3].hasOrder(o) {
		t.Error("what was used again is forgotten before what was not")
	}
	used := OrderBytes()
	bs[2].Release()
	if got := OrderBytes(); got >= used {
		t.Errorf("%d bytes of orders after a batch has gone, %d before", got, used)
	}
}
