package differential

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/reference"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// goExec runs every piece of work on a goroutine of its own.
type goExec struct{}

func (goExec) Run(n int, f func(int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// randomOptions are options that must not matter.
func randomOptions(r *rand.Rand) Options {
	o := Options{Partitions: 1 << (2 * r.IntN(2)), BlockRows: []int{0, 1, 4}[r.IntN(3)]}
	if r.IntN(2) == 0 {
		o.Exec = goExec{}
	}
	return o
}

// history is a random collection that changes.
type history struct {
	r      *rand.Rand
	kinds  []columnar.Kind
	domain int
	nulls  bool
	grows  bool // nothing is ever retracted
	now    *reference.ZSet
	rows   []reference.Row // a multiset: what can be deleted
}

func newHistory(r *rand.Rand, kinds []columnar.Kind) *history {
	return &history{r: r, kinds: kinds, domain: []int{2, 8, 60, 2000}[r.IntN(4)], nulls: r.IntN(2) == 0, now: reference.New()}
}

// change makes a delta of inserts (some twice), deletes, and pairs that cancel.
func (h *history) change(n int) *dataflow.Delta {
	bs := make([]*columnar.Builder, len(h.kinds))
	for c, k := range h.kinds {
		bs[c] = columnar.NewBuilder(k, 0)
	}
	var diffs []dataflow.Diff
	add := func(row reference.Row, diff dataflow.Diff) {
		for c, v := range row {
			reference.Append(bs[c], v)
		}
		diffs = append(diffs, diff)
	}
	for range n {
		if len(h.rows) > 0 && !h.grows && h.r.IntN(5) < 2 {
			i := h.r.IntN(len(h.rows))
			add(h.rows[i], -1)
			h.rows[i] = h.rows[len(h.rows)-1]
			h.rows = h.rows[:len(h.rows)-1]
			continue
		}
		row := h.row()
		m := 1
		if h.r.IntN(6) == 0 {
			m = 1 + h.r.IntN(3)
		}
		if !h.grows && h.r.IntN(10) == 0 {
			add(row, int64(-m))
			add(row, int64(m))
			continue
		}
		add(row, int64(m))
		for range m {
			h.rows = append(h.rows, row)
		}
	}
	d := &dataflow.Delta{Batch: columnar.Batch{N: len(diffs)}, Diffs: diffs}
	ones := true
	for _, x := range diffs {
		ones = ones && x == 1
	}
	if ones {
		d.Diffs = nil
	}
	for _, b := range bs {
		d.Cols = append(d.Cols, b.Build())
	}
	h.now.AddDelta(d)
	return d
}

func (h *history) row() reference.Row {
	row := make(reference.Row, len(h.kinds))
	for c, k := range h.kinds {
		b := columnar.NewBuilder(k, 1)
		domain := h.domain
		if h.r.IntN(2) == 0 {
			domain = max(1, domain/8) // skew
		}
		appendRandom(h.r, b, domain, h.nulls)
		row[c] = reference.ValueAt(b.Build(), 0)
	}
	return row
}

// pieces cuts a delta at random.
func pieces(r *rand.Rand, d *dataflow.Delta) []*dataflow.Delta {
	var out []*dataflow.Delta
	for lo := 0; lo < d.N; {
		hi := min(d.N, lo+1+r.IntN(d.N))
		out = append(out, d.Slice(lo, hi))
		lo = hi
	}
	return out
}

// subject is an operator under test: how to build it over two inputs, and what
// it means.
type subject struct {
	name  string
	kinds [2][]columnar.Kind
	build func(c *Circuit, a, b Stream) (oks, errs Stream)
	want  func(a, b *reference.ZSet) *reference.ZSet

	coarse bool // keys have few values whatever the domain
}

// zsetOf is the sum of deltas.
func zsetOf(z *reference.ZSet, ds []*dataflow.Delta) *reference.ZSet {
	for _, d := range ds {
		if d.N == 0 {
			panic("empty delta emitted")
		}
		for _, v := range d.Cols {
			if v.Len() != d.N {
				panic("column of another length")
			}
		}
		z.AddDelta(d)
	}
	return z
}

func diffOf(t *testing.T, got, want *reference.ZSet) {
	t.Helper()
	d := reference.Union(got, reference.Negate(want))
	if d.Len() == 0 {
		return
	}
	es := d.Entries()
	for _, e := range es[:min(len(es), 5)] {
		t.Errorf("row %v: %d too many", e.Row, e.Diff)
	}
	t.Fatalf("%d rows, want %d; %d differ", got.Len(), want.Len(), d.Len())
}

// run drives a subject through a random history, maintained, and at the end
// once from scratch.
func (s *subject) run(t *testing.T, r *rand.Rand) {
	// Rows an epoch, epochs, least domain: enough keys that joins stay small.
	shapes := [][3]int{{1, 3, 2}, {15, 25, 2}, {200, 5, 60}, {2000, 2, 2000}}
	shape := shapes[r.IntN(len(shapes))]
	if s.coarse {
		shape = shapes[r.IntN(2)]
	}
	ha, hb := newHistory(r, s.kinds[0]), newHistory(r, s.kinds[1])
	ha.domain, hb.domain = max(ha.domain, shape[2]), max(hb.domain, shape[2])
	c := New(randomOptions(r))
	ia, sa := c.Input(s.kinds[0])
	ib, sb := c.Input(s.kinds[1])
	oks, errs := s.build(c, sa, sb)
	out, errOut := c.Output(oks), c.Output(errs)
	got, gotErrs := reference.New(), reference.New()
	epoch := dataflow.Epoch(0)
	for range shape[1] + r.IntN(10) {
		epoch += dataflow.Epoch(1 + r.IntN(3))
		if r.IntN(4) > 0 {
			for _, d := range pieces(r, ha.change(r.IntN(shape[0])+1)) {
				ia.Push(d)
			}
		}
		if r.IntN(4) > 0 {
			for _, d := range pieces(r, hb.change(r.IntN(shape[0])+1)) {
				ib.Push(d)
			}
		}
		c.Step(epoch)
		if r.IntN(4) == 0 {
			c.Work(r.IntN(1000))
		}
		diffOf(t, zsetOf(got, out.Take()), s.want(ha.now, hb.now))
		zsetOf(gotErrs, errOut.Take())
		if r.IntN(8) == 0 {
			c, ia, ib, out, errOut = s.restart(c, r, epoch)
		}
	}
	s.once(t, r, ha, hb)
}

// restart moves the state to a new circuit, by way of blocks.
func (s *subject) restart(old *Circuit, r *rand.Rand, epoch dataflow.Epoch) (c *Circuit, ia, ib *Input, out, errs *Output) {
	c = New(old.opts)
	ia, sa := c.Input(s.kinds[0])
	ib, sb := c.Input(s.kinds[1])
	oks, es := s.build(c, sa, sb)
	out, errs = c.Output(oks), c.Output(es)
	to := c.Spines()
	for i, sp := range old.Spines() {
		var bs []*trace.Batch
		for _, b := range sp.Batches() {
			o, err := trace.OpenBlock(b.AppendBlock(nil), uint64(i+1), nil)
			if err != nil {
				panic(err)
			}
			bs = append(bs, o)
			b.Release()
		}
		to[i].Restore(bs)
	}
	c.Restored(epoch)
	return c, ia, ib, out, errs
}

// once computes the same from scratch.
func (s *subject) once(t *testing.T, r *rand.Rand, ha, hb *history) {
	o := randomOptions(r)
	o.Once = true
	c := New(o)
	ia, sa := c.Input(s.kinds[0])
	ib, sb := c.Input(s.kinds[1])
	oks, _ := s.build(c, sa, sb)
	out := c.Output(oks)
	for _, e := range []struct {
		in *Input
		h  *history
	}{{ia, ha}, {ib, hb}} {
		if d := reference.Delta(e.h.kinds, e.h.now.Entries()); d.N > 0 {
			for _, p := range pieces(r, d) {
				e.in.Push(p)
			}
		}
	}
	c.Step(7)
	diffOf(t, zsetOf(reference.New(), out.Take()), s.want(ha.now, hb.now))
}

var (
	k16, k32, k64, kText = columnar.KindInt16, columnar.KindInt32, columnar.KindInt64, columnar.KindBytes
	kBool, kFixed        = columnar.KindBool, columnar.KindFixed16
)

// oddSum keeps rows whose first two columns have an odd sum (NULL counts 0); it
// reports an error for those with a sum of 4.
type oddSum struct{}

func (oddSum) Filter(in *dataflow.Delta, sel []uint32, emitErr func(*dataflow.Delta)) []uint32 {
	var bad []uint32
	for i := range in.N {
		x := in.Cols[0].Int64s()[i] + in.Cols[1].Int64s()[i]
		if x&1 != 0 {
			sel = append(sel, uint32(i))
		}
		if x == 4 {
			bad = append(bad, uint32(i))
		}
	}
	if len(bad) > 0 {
		b := columnar.NewBuilder(kText, len(bad))
		for range bad {
			b.String("22012")
		}
		v := b.Build()
		emitErr(&dataflow.Delta{Batch: columnar.Batch{Cols: []*columnar.Vec{v, v}, N: len(bad)}, Diffs: gatherDiffs(in.Diffs, bad)})
	}
	return sel
}

func num(v reference.Value) int64 {
	if v == nil {
		return 0
	}
	return v.(int64)
}

func noErrs(c *Circuit, s Stream) (Stream, Stream) { return s, c.Concat(ErrorKinds) }

func joinSubjects() []subject {
	type keyed struct {
		kinds  [2][]columnar.Kind
		lk, rk []int
		coarse bool
	}
	shapes := []keyed{
		{[2][]columnar.Kind{{k64, k64}, {k64, k32}}, []int{0}, []int{0}, false},
		{[2][]columnar.Kind{{k64, kText, k16}, {k32, k64, kText}}, []int{1, 0}, []int{2, 1}, false},
		{[2][]columnar.Kind{{kText, k64}, {k64, kText}}, []int{0}, []int{1}, true},
		{[2][]columnar.Kind{{kFixed, k16}, {kFixed}}, []int{0}, []int{0}, false},
		{[2][]columnar.Kind{{k16, kBool}, {k16, kBool}}, []int{0}, []int{0}, false},
	}
	var out []subject
	for i, k := range shapes {
		for _, safe := range []bool{false, true} {
			name := fmt.Sprintf("shape=%d/nullsafe=%t", i, safe)
			with := func(kind JoinKind) func(c *Circuit, a, b Stream) (Stream, Stream) {
				return func(c *Circuit, a, b Stream) (Stream, Stream) {
					return c.Join(c.Arrange(a, k.lk), c.Arrange(b, k.rk), JoinOptions{Kind: kind, NullSafe: safe})
				}
			}
			out = append(out,
				subject{"join/" + name, k.kinds, with(JoinInner), func(a, b *reference.ZSet) *reference.ZSet {
					return reference.Join(a, b, k.lk, k.rk, safe)
				}, k.coarse},
				subject{"semi/" + name, k.kinds, with(JoinSemi), func(a, b *reference.ZSet) *reference.ZSet {
					return reference.Semi(a, b, k.lk, k.rk, safe)
				}, k.coarse},
				subject{"anti/" + name, k.kinds, with(JoinAnti), func(a, b *reference.ZSet) *reference.ZSet {
					return reference.Anti(a, b, k.lk, k.rk, safe)
				}, k.coarse})
		}
	}
	return out
}

func otherSubjects() []subject {
	pairs := [2][]columnar.Kind{{k64, k64}, {k64, k64}}
	rows := [2][]columnar.Kind{{k64, kText}, {k64, kText}}
	set := func(name string, build func(c *Circuit, a, b Stream) Stream, want func(a, b *reference.ZSet) *reference.ZSet) subject {
		return subject{name, rows, func(c *Circuit, a, b Stream) (Stream, Stream) { return noErrs(c, build(c, a, b)) }, want, false}
	}
	out := []subject{
		{"residual", pairs, func(c *Circuit, a, b Stream) (Stream, Stream) {
			swap := MapperFunc(func(in *dataflow.Delta, emit, _ func(*dataflow.Delta)) {
				emit(&dataflow.Delta{Batch: in.Select([]int{1, 0}), Diffs: in.Diffs})
			})
			return c.Join(c.Arrange(a, []int{0}), c.Arrange(b, []int{0}), JoinOptions{
				Residual: oddSum{}, ResidualCols: []int{1, 3}, Out: []int{3, 1}, Map: swap, MapKinds: []columnar.Kind{k64, k64},
			})
		}, func(a, b *reference.ZSet) *reference.ZSet {
			return reference.Map(reference.Join(a, b, []int{0}, []int{0}, false), func(r reference.Row, emit func(reference.Row, int64)) {
				if (num(r[1])+num(r[3]))&1 != 0 {
					emit(reference.Row{r[1], r[3]}, 1)
				}
			})
		}, false},
		{"self-join", pairs, func(c *Circuit, a, b Stream) (Stream, Stream) {
			arr := c.Arrange(a, []int{1})
			return c.Join(arr, arr, JoinOptions{})
		}, func(a, b *reference.ZSet) *reference.ZSet { return reference.Join(a, a, []int{1}, []int{1}, false) }, false},
		{"cross", [2][]columnar.Kind{{kBool}, {kBool, k16}}, func(c *Circuit, a, b Stream) (Stream, Stream) {
			return c.Join(c.Arrange(a, nil), c.Arrange(b, nil), JoinOptions{Out: []int{2, 0}})
		}, func(a, b *reference.ZSet) *reference.ZSet {
			return reference.Map(reference.Join(a, b, nil, nil, false), func(r reference.Row, emit func(reference.Row, int64)) {
				emit(reference.Row{r[2], r[0]}, 1)
			})
		}, true},
		{"arranged-stream", pairs, func(c *Circuit, a, b Stream) (Stream, Stream) {
			s := c.Concat(pairs[0], c.Arrange(a, []int{1}).Stream(), c.Negate(c.Consolidate(b)))
			return noErrs(c, s)
		}, func(a, b *reference.ZSet) *reference.ZSet { return reference.Union(a, reference.Negate(b)) }, false},
		set("distinct", func(c *Circuit, a, b Stream) Stream { return c.Distinct(c.Concat(rows[0], a, c.Negate(b))) },
			func(a, b *reference.ZSet) *reference.ZSet {
				return reference.Distinct(reference.Union(a, reference.Negate(b)))
			}),
		set("threshold", func(c *Circuit, a, b Stream) Stream { return c.Threshold(c.Concat(rows[0], a, c.Negate(b))) },
			func(a, b *reference.ZSet) *reference.ZSet {
				return reference.Threshold(reference.Union(a, reference.Negate(b)))
			}),
	}
	for _, all := range []bool{false, true} {
		out = append(out,
			set(fmt.Sprintf("intersect/all=%t", all), func(c *Circuit, a, b Stream) Stream { return c.Intersect(a, b, all) },
				func(a, b *reference.ZSet) *reference.ZSet { return reference.Intersect(a, b, all) }),
			set(fmt.Sprintf("except/all=%t", all), func(c *Circuit, a, b Stream) Stream { return c.Except(a, b, all) },
				func(a, b *reference.ZSet) *reference.ZSet { return reference.Except(a, b, all) }))
	}
	return out
}

func TestOperators(t *testing.T) {
	r := testRand(t)
	for _, s := range append(joinSubjects(), otherSubjects()...) {
		for round := range 6 {
			t.Run(fmt.Sprintf("%s/%d", s.name, round), func(t *testing.T) { s.run(t, r) })
		}
	}
}
