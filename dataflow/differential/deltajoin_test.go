package differential

import (
	"math/rand/v2"
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// TestDeltaJoin joins three inputs, the first of which is also the fourth, by paths
// of lookups and by joins of pairs, under random changes of all of them in each
// epoch, with duplicates, NULLs and rows that come and go: the results add up to
// the same.
func TestDeltaJoin(t *testing.T) {
	for seed := range uint64(20) {
		deltaJoin(t, seed)
	}
}

func deltaJoin(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	c := New(Options{Partitions: 1 << r.IntN(3)})
	kinds := []columnar.Kind{columnar.KindInt64, columnar.KindInt64}
	ins := make([]*Input, 3)
	ss := make([]Stream, 4) // a(x, y), b(y, z), c(z, w), a as d(w, x)
	for i := range ins {
		ins[i], ss[i] = c.Input(kinds)
	}
	ss[3] = ss[0]
	by := func(i, col int) *Arrangement { return c.Arrange(ss[i], []int{col}) }
	even := evenSum{} // of a.x and b.z

	// (a ⋈ b) ⋈ c ⋈ d
	ab, _ := c.Join(by(0, 1), by(1, 0), JoinOptions{Residual: even, ResidualCols: []int{0, 3}, Out: []int{0, 1, 3}})
	abc, _ := c.Join(c.Arrange(ab, []int{2}), by(2, 0), JoinOptions{Out: []int{0, 1, 2, 4}})
	want, _ := c.Join(c.Arrange(abc, []int{3}), by(3, 0), JoinOptions{Out: []int{0, 1, 2, 3, 5}})

	old := func(i, col int) View { return View{Arr: by(i, col)} }
	now := func(i, col int) View { return View{Arr: by(i, col), After: true} }
	look := func(s Stream, key int, in View, o JoinOptions, others ...View) Stream {
		oks, _ := c.Lookup(s, []int{key}, in, others, o)
		return oks
	}
	for _, v := range []struct{ i, col int }{{0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}, {3, 0}} {
		by(v.i, v.col) // before the lookups
	}
	// From a: b, c, d.
	s := look(by(0, 1).Stream(), 1, old(1, 0), JoinOptions{Residual: even, ResidualCols: []int{0, 3}, Out: []int{0, 1, 3}}, old(2, 0), old(3, 0))
	s = look(s, 2, old(2, 0), JoinOptions{Out: []int{0, 1, 2, 4}})
	fromA := look(s, 3, old(3, 0), JoinOptions{Out: []int{0, 1, 2, 3, 5}})
	// From b: a, c, d.
	s = look(by(1, 0).Stream(), 0, now(0, 1), JoinOptions{Residual: even, ResidualCols: []int{1, 2}, Out: []int{2, 0, 1}})
	s = look(s, 2, old(2, 0), JoinOptions{Out: []int{0, 1, 2, 4}})
	fromB := look(s, 3, old(3, 0), JoinOptions{Out: []int{0, 1, 2, 3, 5}})
	// From c: d, b, a.
	s = look(by(2, 0).Stream(), 1, old(3, 0), JoinOptions{Out: []int{0, 1, 3}})
	s = look(s, 0, now(1, 1), JoinOptions{Out: []int{3, 0, 1, 2}})
	fromC := look(s, 0, now(0, 1), JoinOptions{Residual: even, ResidualCols: []int{1, 4}, Out: []int{4, 0, 1, 2, 3}})
	// From d: c, b, a.
	s = look(by(3, 0).Stream(), 0, now(2, 1), JoinOptions{Out: []int{2, 0, 1}})
	s = look(s, 0, now(1, 1), JoinOptions{Out: []int{3, 0, 1, 2}})
	fromD := look(s, 0, now(0, 1), JoinOptions{Residual: even, ResidualCols: []int{1, 4}, Out: []int{4, 0, 1, 2, 3}})

	got := c.Concat(want.Kinds(), fromA, fromB, fromC, fromD)
	out := c.Output(c.Consolidate(c.Concat(want.Kinds(), got, c.Negate(want))))
	some := c.Output(want)
	rows, made := make([][][2]int64, 3), 0
	for e := range dataflow.Epoch(30) {
		for i, in := range ins {
			if r.IntN(4) > 0 {
				in.Push(randomChange(r, &rows[i]))
			}
		}
		c.Step(e + 1)
		for _, d := range out.Take() {
			t.Fatalf("seed %d, epoch %d: they differ in %d rows", seed, e, d.N)
		}
		for _, d := range some.Take() {
			made += d.N
		}
	}
	if made == 0 {
		t.Errorf("seed %d: nothing was joined", seed)
	}
}

// randomChange adds rows and takes some of those away that are there.
func randomChange(r *rand.Rand, rows *[][2]int64) *dataflow.Delta {
	cols := []*columnar.Builder{columnar.NewBuilder(columnar.KindInt64, 0), columnar.NewBuilder(columnar.KindInt64, 0)}
	d := &dataflow.Delta{}
	add := func(row [2]int64, diff dataflow.Diff) {
		for i, v := range row {
			if v < 0 {
				cols[i].Null()
			} else {
				cols[i].Int64(v)
			}
		}
		d.N++
		d.Diffs = append(d.Diffs, diff)
	}
	for range r.IntN(6) {
		row := [2]int64{r.Int64N(6) - 1, r.Int64N(6) - 1}
		*rows = append(*rows, row)
		add(row, 1)
	}
	for range r.IntN(5) {
		if n := len(*rows); n > 0 {
			at := r.IntN(n)
			add((*rows)[at], -1)
			(*rows)[at] = (*rows)[n-1]
			*rows = (*rows)[:n-1]
		}
	}
	d.Cols = []*columnar.Vec{cols[0].Build(), cols[1].Build()}
	return d
}

// evenSum keeps rows whose two columns have an even sum, or a NULL.
type evenSum struct{}

func (evenSum) Filter(in *dataflow.Delta, sel []uint32, _ func(*dataflow.Delta)) []uint32 {
	a, b := in.Cols[0].Int64s(), in.Cols[1].Int64s()
	for i := range in.N {
		if in.Cols[0].Null(i) || in.Cols[1].Null(i) || (a[i]+b[i])%2 == 0 {
			sel = append(sel, uint32(i))
		}
	}
	return sel
}
