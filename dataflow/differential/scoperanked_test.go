package differential

import (
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/reference"
)

// rankOf appends to rows the greatest of some rank columns and one, in the place
// of those from column n on.
func rankOf(sc *Scope, s Stream, n int, add int64) Stream {
	kinds := append(append([]columnar.Kind(nil), s.Kinds()[:n]...), k64)
	out, _ := sc.Map(s, MapperFunc(func(in *dataflow.Delta, emit, _ func(*dataflow.Delta)) {
		ranks := make([]int64, in.N)
		for _, v := range in.Cols[n:] {
			for i, r := range v.Int64s() {
				ranks[i] = max(ranks[i], r)
			}
		}
		for i := range ranks {
			ranks[i] += add
		}
		emit(&dataflow.Delta{Batch: columnar.Batch{N: in.N, Cols: append(in.Cols[:n:n], columnar.FromSlice(ranks, nil))}, Diffs: in.Diffs})
	}), kinds)
	return out
}

// rankedClosure is the transitive closure, by one variable (linear, or joined with
// itself) or by one of the paths of even and one of those of odd length.
func rankedClosure(c *Circuit, s Stream, way int) []Stream {
	kinds, edge := []columnar.Kind{k64, k64, k64}, []columnar.Kind{k64, k64}
	vars := [][]columnar.Kind{kinds}
	if way == 2 {
		vars = append(vars, kinds)
	}
	outs := c.Iterate(vars, IterateOptions{Ranked: true}, func(sc *Scope) {
		e := sc.Enter(s)
		longer := func(v Stream) Stream {
			step, _ := sc.Join(sc.Arrange(v, []int{1}), sc.Arrange(e, []int{0}), JoinOptions{Out: []int{0, 4, 2}})
			return step
		}
		switch way {
		case 0:
			sc.Set(0, sc.RankedDistinct(rankOf(sc, sc.Concat(kinds, rankOf(sc, e, 2, 0), longer(sc.Var(0))), 2, 1)))
		case 1:
			v := sc.Var(0)
			step, _ := sc.Join(sc.Arrange(v, []int{1}), sc.Arrange(v, []int{0}), JoinOptions{Out: []int{0, 4, 2, 5}})
			sc.Set(0, sc.RankedDistinct(sc.Concat(kinds, rankOf(sc, e, 2, 1), rankOf(sc, step, 2, 1))))
		default:
			odd := sc.RankedDistinct(rankOf(sc, sc.Concat(kinds, rankOf(sc, e, 2, 0), longer(sc.Var(1))), 2, 1))
			sc.Set(0, odd)
			sc.Set(1, sc.RankedDistinct(rankOf(sc, longer(odd), 2, 1)))
		}
	})
	if way == 2 {
		return []Stream{c.Distinct(c.Concat(edge, outs...))}
	}
	return outs
}

// TestRankedDistinct adds and deletes edges of graphs full of cycles.
func TestRankedDistinct(t *testing.T) {
	r := testRand(t)
	kinds := []columnar.Kind{k64, k64}
	for round := range 45 {
		c := New(Options{Partitions: 1 << r.IntN(3)})
		in, s := c.Input(kinds)
		o := c.Output(rankedClosure(c, s, round%3)[0])
		nodes := 4 + r.IntN(25)
		sum, got := reference.New(), reference.New()
		var have [][2]int64
		for epoch := range 25 {
			var from, to, diffs []int64
			n := 1 + r.IntN(3)
			if epoch == 0 {
				n = nodes
			}
			for range n {
				if k := len(have); k > 0 && r.IntN(2) == 0 {
					i := r.IntN(k)
					from, to, diffs = append(from, have[i][0]), append(to, have[i][1]), append(diffs, -1)
					have[i] = have[k-1]
					have = have[:k-1]
					continue
				}
				e := [2]int64{int64(r.IntN(nodes)), int64(r.IntN(nodes))}
				have = append(have, e)
				from, to, diffs = append(from, e[0]), append(to, e[1]), append(diffs, 1)
			}
			d := &dataflow.Delta{Batch: columnar.Batch{Cols: []*columnar.Vec{columnar.FromSlice(from, nil), columnar.FromSlice(to, nil)}, N: len(diffs)}, Diffs: diffs}
			in.Push(d)
			sum.AddDelta(d)
			c.Step(dataflow.Epoch(epoch + 1))
			zsetOf(got, o.Take())
			diffOf(t, got, reach(sum))
			if t.Failed() {
				t.Fatalf("round %d, epoch %d", round, epoch)
			}
		}
	}
}
