package differential

import (
	"fmt"
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// lookAround is a local function: for every row the sum of the values from two
// before it to one after it, and the value before it.
type lookAround struct{}

func (lookAround) Apply(g *Groups, emit, _ func(*dataflow.Delta)) {
	var keys, vals, sums, prev []int64
	var core []bool
	lo := 0
	for _, hi := range g.Ends {
		first := len(vals)
		for r := lo; r < hi; r++ {
			for range g.Mults[r] {
				keys = append(keys, g.Rows.Cols[0].Int64s()[r])
				vals = append(vals, g.Rows.Cols[1].Int64s()[r])
				core = append(core, g.Core == nil || g.Core[r])
			}
		}
		for i := first; i < len(vals); i++ {
			sum, before := int64(0), int64(-1)
			for j := max(first, i-2); j <= min(i+1, len(vals)-1); j++ {
				sum += vals[j]
			}
			if i > first {
				before = vals[i-1]
			}
			sums, prev = append(sums, sum), append(prev, before)
		}
		lo = hi
	}
	var keep []uint32
	for i, ok := range core {
		if ok {
			keep = append(keep, uint32(i))
		}
	}
	out := columnar.Batch{N: len(vals), Cols: []*columnar.Vec{columnar.FromSlice(keys, nil), columnar.FromSlice(vals, nil),
		columnar.FromSlice(sums, nil), columnar.FromSlice(prev, nil)}}
	emit(&dataflow.Delta{Batch: out.Gather(keep)})
}

// TestNearby compares neighbourhoods with whole groups.
func TestNearby(t *testing.T) {
	r := testRand(t)
	kinds := []columnar.Kind{k64, k64}
	outs := []columnar.Kind{k64, k64, k64, k64}
	for round := range 30 {
		c := New(Options{Partitions: 1 << r.IntN(3), BlockRows: 1})
		in, s := c.Input(kinds)
		order := []Order{{Col: 1, Desc: round%2 == 0}}
		near, _ := c.GroupMap(s, []int{0}, outs, lookAround{}, GroupMapOptions{Order: order, Reach: &Reach{Before: 2, After: 1}})
		whole, _ := c.GroupMap(s, []int{0}, outs, lookAround{}, GroupMapOptions{Order: order})
		diff := c.Output(c.Concat(outs, near, c.Negate(whole)))
		have := map[[2]int64]int64{}
		groups, values := 1+r.IntN(3), 5+r.IntN(60)
		for epoch := 1; epoch <= 30; epoch++ {
			var ks, vs, ds []int64
			for range 1 + r.IntN(8) {
				row := [2]int64{int64(r.IntN(groups)), int64(r.IntN(values))}
				d := int64(1 + r.IntN(2))
				if have[row] > 0 && r.IntN(2) == 0 {
					d = -have[row]
				}
				have[row] += d
				ks, vs, ds = append(ks, row[0]), append(vs, row[1]), append(ds, d)
			}
			in.Push(&dataflow.Delta{Batch: columnar.Batch{N: len(ks), Cols: []*columnar.Vec{columnar.FromSlice(ks, nil), columnar.FromSlice(vs, nil)}}, Diffs: ds})
			c.Step(dataflow.Epoch(epoch))
			if d := Consolidated(outs, diff.Take()); d != nil {
				t.Fatalf("round %d, epoch %d: %s", round, epoch, fmt.Sprint(d.Cols[0].Int64s(), d.Cols[1].Int64s(), d.Cols[2].Int64s(), d.Cols[3].Int64s(), d.Diffs))
			}
		}
	}
}
