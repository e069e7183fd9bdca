package differential

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/reference"
)

// closure is the transitive closure of the edges a, started from the pairs b
// too; limit > 0 cuts it after so many rounds.
func closure(limit int) subject {
	kinds := []columnar.Kind{k64, k64}
	build := func(c *Circuit, a, b Stream) (Stream, Stream) {
		var leaf Stream
		out := c.Iterate([][]columnar.Kind{kinds}, IterateOptions{Limit: limit}, func(sc *Scope) {
			edges, more := sc.Enter(a), sc.Enter(b)
			v := sc.Var(0)
			step, _ := sc.Join(sc.Arrange(v, []int{1}), sc.Arrange(edges, []int{0}), JoinOptions{Out: []int{0, 3}, NullSafe: true})
			sc.Set(0, sc.Distinct(sc.Concat(kinds, edges, more, step)))
			leaf = sc.Leave(sc.Negate(v))
		})
		// What leaves is what the variable had in the last round.
		return noErrs(c, c.Concat(kinds, out[0], out[0], leaf))
	}
	want := func(a, b *reference.ZSet) *reference.ZSet {
		v := reference.New()
		var last *reference.ZSet
		for round := 1; ; round++ {
			step := reference.Map(reference.Join(v, a, []int{1}, []int{0}, true), func(r reference.Row, emit func(reference.Row, int64)) {
				emit(reference.Row{r[0], r[3]}, 1)
			})
			next := reference.Distinct(reference.Union(a, b, step))
			last = v
			if v.Equal(next) {
				break
			}
			if v = next; round == limit {
				break
			}
		}
		return reference.Union(v, v, reference.Negate(last))
	}
	return subject{fmt.Sprintf("closure/limit=%d", limit), [2][]columnar.Kind{kinds, kinds}, build, want, true}
}

// reach is the transitive closure by search from each node.
func reach(edges *reference.ZSet) *reference.ZSet {
	next := map[reference.Value][]reference.Value{}
	for _, e := range edges.Entries() {
		next[e.Row[0]] = append(next[e.Row[0]], e.Row[1])
	}
	out := reference.New()
	for from := range next {
		seen := map[reference.Value]bool{}
		todo := next[from]
		for len(todo) > 0 {
			to := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if !seen[to] {
				seen[to] = true
				out.Add(reference.Row{from, to}, 1)
				todo = append(todo[:len(todo):len(todo)], next[to]...)
			}
		}
	}
	return out
}

func TestIterate(t *testing.T) {
	r := testRand(t)
	for _, limit := range []int{0, 1, 3} {
		s := closure(limit)
		for round := range 8 {
			t.Run(fmt.Sprintf("%s/%d", s.name, round), func(t *testing.T) { s.run(t, r) })
		}
	}
}

// TestIterateGoesOn adds and deletes single edges after a first lot: the rounds
// must go on from the fixed point, though there are cycles in plenty.
func TestIterateGoesOn(t *testing.T) {
	r := testRand(t)
	const nodes = 300
	kinds := []columnar.Kind{k64, k64}
	edges := func(n int) *dataflow.Delta {
		from, to := columnar.MakeFixed(k64, n), columnar.MakeFixed(k64, n)
		for i := range n {
			from.Int64s()[i] = int64(r.IntN(nodes))
			to.Int64s()[i] = int64(r.IntN(nodes))
		}
		return &dataflow.Delta{Batch: columnar.Batch{Cols: []*columnar.Vec{from, to}, N: n}}
	}
	c := New(Options{})
	in, s := c.Input(kinds)
	builds := 0
	out := c.Iterate([][]columnar.Kind{kinds}, IterateOptions{}, func(sc *Scope) {
		builds++
		e := sc.Enter(s)
		step, _ := sc.Join(sc.Arrange(sc.Var(0), []int{1}), sc.Arrange(e, []int{0}), JoinOptions{Out: []int{0, 3}})
		sc.Set(0, sc.Distinct(sc.Concat(kinds, e, step)))
	})
	o := c.Output(out[0])
	sum, got := reference.New(), reference.New()
	step := func(e dataflow.Epoch, d *dataflow.Delta) {
		in.Push(d)
		sum.AddDelta(d)
		c.Step(e)
		zsetOf(got, o.Take())
		diffOf(t, got, reach(sum))
	}
	first := edges(nodes * 2 / 3)
	step(1, first)
	for e := range dataflow.Epoch(40) {
		if e%3 == 0 {
			step(e+2, edges(1))
		} else {
			d := first.Slice(int(e), int(e)+1)
			d = &dataflow.Delta{Batch: d.Batch, Diffs: []dataflow.Diff{-1}}
			if e%3 == 1 {
				in.Push(edges(1))
				sum.AddDelta(in.deltas[0])
			}
			step(e+2, d)
		}
	}
	if builds != 2 { // to find the inputs, and to evaluate
		t.Errorf("the scope was built %d times", builds)
	}
}

// TestImport shares an arrangement between circuits, one of which lags behind
// and one of which is made late.
func TestImport(t *testing.T) {
	r := testRand(t)
	for round := range 20 {
		t.Run(fmt.Sprint(round), func(t *testing.T) { testImport(t, r) })
	}
}

func testImport(t *testing.T, r *rand.Rand) {
	kinds := []columnar.Kind{k64, k32}
	ha, hb := newHistory(r, kinds), newHistory(r, kinds)
	o := randomOptions(r)
	maker := New(o)
	in, s := maker.Input(kinds)
	made := maker.Arrange(s, []int{0})
	type reader struct {
		c     *Circuit
		in    *Input
		out   *Output
		got   *reference.ZSet
		every int // steps only every so many epochs
	}
	want := map[dataflow.Epoch]*reference.ZSet{}
	newReader := func() *reader {
		rd := &reader{c: New(o), got: reference.New(), every: 1 + r.IntN(3)}
		var b Stream
		rd.in, b = rd.c.Input(kinds)
		oks, _ := rd.c.Join(rd.c.Arrange(b, []int{0}), rd.c.ImportArrangement(made.Trace()), JoinOptions{})
		rd.in.Push(reference.Delta(kinds, hb.now.Entries()))
		rd.out = rd.c.Output(oks)
		return rd
	}
	var readers []*reader
	for e := dataflow.Epoch(1); e < 40; e++ {
		if e == 1 || r.IntN(10) == 0 {
			readers = append(readers, newReader())
		}
		if r.IntN(3) > 0 {
			in.Push(ha.change(r.IntN(20) + 1))
		}
		maker.Step(e)
		if r.IntN(3) > 0 {
			d := hb.change(r.IntN(20) + 1)
			for _, rd := range readers {
				rd.in.Push(d)
			}
		}
		want[e] = reference.Join(hb.now, ha.now, []int{0}, []int{0}, false)
		for _, rd := range readers {
			if int(e)%rd.every == 0 {
				rd.c.Step(e)
				diffOf(t, zsetOf(rd.got, rd.out.Take()), want[e])
			}
		}
		if len(readers) > 3 {
			readers[0].c.Close()
			readers = readers[1:]
		}
	}
}
