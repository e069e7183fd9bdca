package differential

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/reference"
	"github.com/streamdb/streamdb/decimal"
)

// An oracle test draws a random circuit, feeds it a random history, and compares
// after every epoch what each of its streams adds up to with what the reference
// computes from scratch; with restarts in between; and at last retracts
// everything and looks that nothing is left.

// column is what is known of a column of a stream.
type column struct {
	kind    columnar.Kind
	numeric bool // holds encoded numerics
}

// flow is a stream of the circuit under test.
type flow struct {
	name  string
	cols  []column
	grows bool // no diff is ever negative
	stays bool // has rows without any input
	ins   []int
	build func(c *Circuit, in []Stream) (oks, errs Stream)
	want  func(in []*reference.ZSet) (oks, errs *reference.ZSet)
}

// plan is a circuit: the inputs come first, the rest are in topological order.
type oraclePlan struct {
	r      *rand.Rand
	joins  bool // may have a join,
	joined bool // has one
	inputs int
	flows  []*flow
}

func kindsOf(cols []column) []columnar.Kind {
	ks := make([]columnar.Kind, len(cols))
	for i, c := range cols {
		ks[i] = c.kind
	}
	return ks
}

func newOraclePlan(r *rand.Rand, grows, joins bool) *oraclePlan {
	p := &oraclePlan{r: r, inputs: 1 + r.IntN(2), joins: joins}
	for i := range p.inputs {
		f := &flow{name: fmt.Sprintf("input%d", i), grows: grows}
		for range 1 + r.IntN(5) {
			f.cols = append(f.cols, column{kind: allKinds[r.IntN(len(allKinds))]})
		}
		f.cols = append(f.cols, column{kind: k64})
		p.flows = append(p.flows, f)
	}
	for range 1 + r.IntN(4) {
		if f := p.draw(); f != nil {
			p.flows = append(p.flows, f)
		}
	}
	return p
}

func (p *oraclePlan) String() string {
	var b strings.Builder
	for i, f := range p.flows {
		fmt.Fprintf(&b, "%d = %s of %v: %v\n", i, f.name, f.ins, kindsOf(f.cols))
	}
	return b.String()
}

// draw makes an operator over streams that exist.
func (p *oraclePlan) draw() *flow {
	src := p.r.IntN(len(p.flows))
	in := p.flows[src]
	switch p.r.IntN(14) {
	case 0:
		return p.numerics(src)
	case 1:
		return p.linear(src)
	case 2:
		if !p.joins {
			return nil
		}
		p.joins, p.joined = false, true // one is enough: rows multiply
		return p.join(src)
	case 3:
		f := &flow{name: "distinct", cols: in.cols, ins: []int{src}}
		f.build = func(c *Circuit, s []Stream) (Stream, Stream) { return noErrs(c, c.Distinct(s[0])) }
		f.want = func(z []*reference.ZSet) (*reference.ZSet, *reference.ZSet) {
			return reference.Distinct(z[0]), reference.New()
		}
		return f
	case 4, 5, 6:
		return p.top(src)
	case 7, 8:
		return p.groupMap(src)
	}
	return p.reduce(src)
}

// numerics replaces the integers of a stream by numerics of various scales.
func (p *oraclePlan) numerics(src int) *flow {
	in := p.flows[src]
	f := &flow{name: "numerics", cols: append([]column(nil), in.cols...), ins: []int{src}, grows: in.grows}
	scales := 1 + p.r.IntN(3)
	change := make([]bool, len(f.cols))
	for i, c := range f.cols {
		if c.kind == k64 {
			f.cols[i] = column{kind: kText, numeric: true}
			change[i] = true
		}
	}
	convert := func(r reference.Row) reference.Row {
		out := append(reference.Row(nil), r...)
		for i := range out {
			if x, ok := out[i].(int64); ok && change[i] {
				switch x {
				case 3:
					out[i] = string(decimal.AppendNaN(nil))
				case 4:
					out[i] = string(decimal.AppendInf(nil, -1))
				default:
					out[i] = string(decimal.AppendInt64Scaled(nil, x, int(uint64(x)%uint64(scales))))
				}
			}
		}
		return out
	}
	return f.mapper(kindsOf(f.cols), func(r reference.Row, emit func(reference.Row, int64)) { emit(convert(r), 1) })
}

// mapper completes a flow that is linear in its only input.
func (f *flow) mapper(kinds []columnar.Kind, fn func(r reference.Row, emit func(reference.Row, int64))) *flow {
	m := MapperFunc(func(in *dataflow.Delta, emit, _ func(*dataflow.Delta)) {
		var es []reference.Entry
		for i := range in.N {
			fn(rowAt(in.Cols, i), func(r reference.Row, factor int64) {
				es = append(es, reference.Entry{Row: r, Diff: factor * in.Diff(i)})
			})
		}
		emit(reference.Delta(kinds, es))
	})
	f.build = func(c *Circuit, s []Stream) (Stream, Stream) { return c.Map(s[0], m, kinds) }
	f.want = func(z []*reference.ZSet) (*reference.ZSet, *reference.ZSet) {
		return reference.Map(z[0], fn), reference.New()
	}
	return f
}

// linear projects, or negates a part.
func (p *oraclePlan) linear(src int) *flow {
	in := p.flows[src]
	perm := p.r.Perm(len(in.cols))[:1+p.r.IntN(len(in.cols))]
	f := &flow{name: fmt.Sprintf("project%v", perm), ins: []int{src}, grows: in.grows}
	for _, c := range perm {
		f.cols = append(f.cols, in.cols[c])
	}
	factor := int64(1)
	if p.r.IntN(4) == 0 {
		factor, f.grows, f.name = -1, false, f.name+" negated"
	}
	return f.mapper(kindsOf(f.cols), func(r reference.Row, emit func(reference.Row, int64)) {
		emit(reference.Project(r, perm), factor)
	})
}

func (p *oraclePlan) join(src int) *flow {
	l := p.flows[src]
	other := p.r.IntN(len(p.flows))
	r := p.flows[other]
	lk := p.r.IntN(len(l.cols))
	for rk, c := range r.cols {
		if c.kind != l.cols[lk].kind || len(l.cols)+len(r.cols) > 8 {
			continue
		}
		f := &flow{name: fmt.Sprintf("join on %d=%d", lk, rk), ins: []int{src, other}, grows: l.grows && r.grows}
		f.cols = append(append(f.cols, l.cols...), r.cols...)
		f.build = func(c *Circuit, s []Stream) (Stream, Stream) {
			return c.Join(c.Arrange(s[0], []int{lk}), c.Arrange(s[1], []int{rk}), JoinOptions{})
		}
		f.want = func(z []*reference.ZSet) (*reference.ZSet, *reference.ZSet) {
			return reference.Join(z[0], z[1], []int{lk}, []int{rk}, false), reference.New()
		}
		return f
	}
	return nil
}

func (p *oraclePlan) someColumns(n, most int) []int {
	return p.r.Perm(n)[:p.r.IntN(min(n, most)+1)]
}

func (p *oraclePlan) order(n int) (order []Order, want []reference.Order) {
	for range p.r.IntN(3) {
		o := Order{Col: p.r.IntN(n), Desc: p.r.IntN(2) == 0, NullsFirst: p.r.IntN(2) == 0}
		order = append(order, o)
		want = append(want, reference.Order{Col: o.Col, Desc: o.Desc, NullsFirst: o.NullsFirst})
	}
	return order, want
}

func (p *oraclePlan) top(src int) *flow {
	in := p.flows[src]
	part := p.someColumns(len(in.cols), 2)
	order, want := p.order(len(in.cols))
	o := TopKOptions{
		Limit:      []int64{-1, 0, 1, 1, 2, 3, 5, 20, 400}[p.r.IntN(9)],
		Offset:     max(0, int64(p.r.IntN(8)-4)),
		WithTies:   p.r.IntN(3) == 0,
		RowNumber:  p.r.IntN(3) == 0,
		AppendOnly: in.grows && p.r.IntN(4) > 0,
	}
	f := &flow{name: fmt.Sprintf("top %+v by %v order %v", o, part, order), ins: []int{src}}
	f.cols = append(f.cols, in.cols...)
	if o.RowNumber {
		f.cols = append(f.cols, column{kind: k64})
	}
	f.build = func(c *Circuit, s []Stream) (Stream, Stream) { return noErrs(c, c.TopK(s[0], part, order, o)) }
	f.want = func(z []*reference.ZSet) (*reference.ZSet, *reference.ZSet) {
		return reference.TopK(z[0], part, want, o.Limit, o.Offset, o.WithTies, o.RowNumber), reference.New()
	}
	return f
}

// running is a GroupFunc: each row with the number of rows up to it; groups of
// five rows are an error.
func running(rows []reference.Entry, emit func(reference.Row, int64), fail func()) {
	n := int64(0)
	for _, e := range rows {
		n += e.Diff
	}
	if n == 5 {
		fail()
		return
	}
	if n == 0 {
		return
	}
	n = 0
	for _, e := range rows {
		n += e.Diff
		emit(append(append(reference.Row(nil), e.Row...), n), e.Diff)
	}
}

type runningFunc struct{ kinds []columnar.Kind }

func (f runningFunc) Apply(g *Groups, emit, emitErr func(*dataflow.Delta)) {
	var oks, errs []reference.Entry
	lo := 0
	for _, hi := range g.Ends {
		var rows []reference.Entry
		for i := lo; i < hi; i++ {
			rows = append(rows, reference.Entry{Row: rowAt(g.Rows.Cols, i), Diff: g.Mults[i]})
		}
		running(rows, func(r reference.Row, n int64) { oks = append(oks, reference.Entry{Row: r, Diff: n}) },
			func() { errs = append(errs, reference.Entry{Row: reference.Row{"54000", "five"}, Diff: 1}) })
		if hi == lo {
			oks = append(oks, reference.Entry{Row: make(reference.Row, len(f.kinds)), Diff: 1})
		}
		lo = hi
	}
	emit(reference.Delta(f.kinds, oks))
	emitErr(reference.Delta(ErrorKinds, errs))
}

func (p *oraclePlan) groupMap(src int) *flow {
	in := p.flows[src]
	key := p.someColumns(len(in.cols), 2)
	order, want := p.order(len(in.cols))
	global := len(key) == 0 && p.r.IntN(2) == 0
	f := &flow{name: fmt.Sprintf("group map by %v order %v global %v", key, order, global), ins: []int{src}, stays: global}
	f.cols = append(append(f.cols, in.cols...), column{kind: k64})
	kinds := kindsOf(f.cols)
	f.build = func(c *Circuit, s []Stream) (Stream, Stream) {
		return c.GroupMap(s[0], key, kinds, runningFunc{kinds}, GroupMapOptions{Order: order, Global: global})
	}
	f.want = func(z []*reference.ZSet) (*reference.ZSet, *reference.ZSet) {
		errs := reference.New()
		oks := reference.GroupMap(z[0], key, want, global, func(rows []reference.Entry, emit func(reference.Row, int64)) {
			if len(rows) == 0 {
				emit(make(reference.Row, len(kinds)), 1)
				return
			}
			running(rows, emit, func() { errs.Add(reference.Row{"54000", "five"}, 1) })
		})
		return oks, errs
	}
	return f
}

var aggNames = map[AggOp]string{
	AggCount: "count", AggSum: "sum", AggMin: "min", AggMax: "max", AggBoolAnd: "bool_and", AggBoolOr: "bool_or",
	AggBitAnd: "bit_and", AggBitOr: "bit_or", AggBitXor: "bit_xor", AggSxx: "sxx", AggSxy: "sxy",
}

// agg draws an aggregate, and gives the kind of its result.
func (p *oraclePlan) agg(cols []column) (Agg, column) {
	a := Agg{Op: AggCount, Arg: -1, Filter: -1}
	for range p.r.IntN(3) {
		if c := p.r.IntN(len(cols)); cols[c].kind == kBool {
			a.Filter = c
		}
	}
	if p.r.IntN(6) == 0 {
		return a, column{kind: k64}
	}
	a.Arg = p.r.IntN(len(cols))
	c := cols[a.Arg]
	ops := []AggOp{AggCount, AggMin, AggMax}
	switch c.kind {
	case kBool:
		ops = append(ops, AggBoolAnd, AggBoolOr)
	case k16, k32, k64:
		ops = append(ops, AggSum, AggSum, AggBitAnd, AggBitOr, AggBitXor)
	case columnar.KindFloat32, columnar.KindFloat64:
		ops = append(ops, AggSum, AggSum, AggSxx, AggSxy)
	case kText:
		if c.numeric {
			ops = append(ops, AggSum, AggSum, AggSum)
		}
	}
	a.Op = ops[p.r.IntN(len(ops))]
	a.Distinct = p.r.IntN(3) == 0 && a.Op != AggSxy
	switch a.Op {
	case AggMin, AggMax, AggBoolAnd, AggBoolOr, AggBitAnd, AggBitOr, AggBitXor:
		return a, c
	case AggSxx, AggSxy:
		a.Arg2 = a.Arg
		for i, d := range cols {
			if d.kind == columnar.KindFloat64 || d.kind == columnar.KindFloat32 {
				a.Arg2 = i
			}
		}
		return a, column{kind: columnar.KindFloat64}
	case AggSum:
		switch c.kind {
		case kText:
			return a, c
		case columnar.KindFloat32, columnar.KindFloat64:
			a.Out = []columnar.Kind{0, columnar.KindFloat64, columnar.KindFloat32}[p.r.IntN(3)]
			if a.Out == 0 {
				return a, c
			}
			return a, column{kind: a.Out}
		}
		if p.r.IntN(2) == 0 {
			a.Out = kText
			return a, column{kind: kText, numeric: true}
		}
	}
	return a, column{kind: k64}
}

func (p *oraclePlan) reduce(src int) *flow {
	in := p.flows[src]
	key := p.someColumns(len(in.cols), 2)
	o := ReduceOptions{Global: len(key) == 0 && p.r.IntN(3) > 0, AppendOnly: in.grows && p.r.IntN(4) > 0}
	f := &flow{ins: []int{src}, stays: o.Global}
	for _, c := range key {
		f.cols = append(f.cols, in.cols[c])
	}
	var aggs []Agg
	var want []reference.Agg
	for range max(p.r.IntN(5), 1-len(key)) {
		a, c := p.agg(in.cols)
		aggs = append(aggs, a)
		want = append(want, reference.Agg{Op: aggNames[a.Op], Arg: a.Arg, Arg2: a.Arg2, Filter: a.Filter, Distinct: a.Distinct, Out: a.Out})
		f.cols = append(f.cols, c)
	}
	f.name = fmt.Sprintf("reduce by %v %+v %+v", key, want, o)
	f.build = func(c *Circuit, s []Stream) (Stream, Stream) { return c.Reduce(s[0], key, aggs, o) }
	f.want = func(z []*reference.ZSet) (*reference.ZSet, *reference.ZSet) {
		return reference.Reduce(z[0], key, want, o.Global)
	}
	return f
}

// oracleRun is a plan in a circuit.
type oracleRun struct {
	p      *oraclePlan
	c      *Circuit
	inputs []*Input
	outs   [][2]*Output
	sums   [][2]*reference.ZSet
}

func (p *oraclePlan) start(o Options) *oracleRun {
	run := &oracleRun{p: p, c: New(o)}
	var streams []Stream
	for _, f := range p.flows {
		if f.build == nil {
			in, s := run.c.Input(kindsOf(f.cols))
			run.inputs = append(run.inputs, in)
			streams = append(streams, s)
			continue
		}
		var in []Stream
		for _, i := range f.ins {
			in = append(in, streams[i])
		}
		oks, errs := f.build(run.c, in)
		streams = append(streams, oks)
		run.outs = append(run.outs, [2]*Output{run.c.Output(oks), run.c.Output(errs)})
		run.sums = append(run.sums, [2]*reference.ZSet{reference.New(), reference.New()})
	}
	return run
}

// check compares all streams with what they should be.
func (run *oracleRun) check(t *testing.T, inputs []*reference.ZSet, when string) {
	t.Helper()
	sums := append([]*reference.ZSet(nil), inputs...)
	for i, f := range run.p.flows[run.p.inputs:] {
		var in []*reference.ZSet
		for _, k := range f.ins {
			in = append(in, sums[k])
		}
		oks, errs := f.want(in)
		sums = append(sums, oks)
		for port, want := range []*reference.ZSet{oks, errs} {
			got := zsetOf(run.sums[i][port], run.outs[i][port].Take())
			if !got.Equal(want) {
				t.Fatalf("%s: stream %d, port %d\n%s%s", when, run.p.inputs+i, port, got.Difference(want, 10), run.p)
			}
		}
	}
}

// restart moves the state to a new circuit, by way of blocks.
func (run *oracleRun) restart(t *testing.T, epoch dataflow.Epoch) *oracleRun {
	next := run.p.start(run.c.opts)
	moveState(t, run.c, next.c)
	next.c.Restored(epoch)
	next.sums = run.sums
	return next
}

func TestOracle(t *testing.T) {
	r := testRand(t)
	rounds := 800
	if testing.Short() {
		rounds = 150
	}
	defer func(n, m int) { tidyGroups, fewToFlush = n, m }(tidyGroups, fewToFlush)
	for round := range rounds {
		tidyGroups, fewToFlush = r.IntN(20), r.IntN(20)
		oracleRound(t, r, round)
		if t.Failed() {
			return
		}
	}
}

func oracleRound(t *testing.T, r *rand.Rand, round int) {
	grows := r.IntN(3) == 0
	most := []int{3, 12, 40, 40, 150}[r.IntN(5)]
	if round%400 == 399 {
		most = 40_000 // enough for several chunks, and for the executor
	}
	p := newOraclePlan(r, grows, most < 1000)
	run := p.start(randomOptions(r))
	var hs []*history
	for _, f := range p.flows[:p.inputs] {
		h := newHistory(r, kindsOf(f.cols))
		h.grows = grows
		if p.joined {
			h.domain = max(h.domain, 60)
		}
		hs = append(hs, h)
	}
	contents := func() (zs []*reference.ZSet) {
		for _, h := range hs {
			zs = append(zs, h.now)
		}
		return zs
	}
	epoch := dataflow.Epoch(0)
	for range 3 + r.IntN(12) {
		if most > 1000 && epoch > 3 {
			break
		}
		epoch += dataflow.Epoch(1 + r.IntN(3))
		for i, h := range hs {
			if r.IntN(4) == 0 {
				continue
			}
			for _, d := range pieces(r, h.change(1+r.IntN(most))) {
				run.inputs[i].Push(d)
			}
		}
		run.c.Step(epoch)
		run.check(t, contents(), fmt.Sprintf("epoch %d", epoch))
		switch r.IntN(10) {
		case 8:
			run.c.Forget()
		case 0, 9:
			run.c.Work(r.IntN([]int{4, 1000}[r.IntN(2)]))
		case 1:
			run.c.Spines() // a checkpoint
		case 2:
			run = run.restart(t, epoch)
		}
	}
	p.once(t, r, hs)
	if grows {
		return
	}
	for i, h := range hs {
		if h.now.Len() > 0 {
			run.inputs[i].Push(reference.Delta(h.kinds, reference.Negate(h.now).Entries()))
		}
		h.now = reference.New()
	}
	run.c.Step(epoch + 1)
	run.check(t, contents(), "after retracting everything")
	if !slices.ContainsFunc(p.flows, func(f *flow) bool { return f.stays }) {
		run.checkEmpty(t)
	}
}

// once computes the final content from scratch.
func (p *oraclePlan) once(t *testing.T, r *rand.Rand, hs []*history) {
	o := randomOptions(r)
	o.Once = true
	run := p.start(o)
	var zs []*reference.ZSet
	for i, h := range hs {
		zs = append(zs, h.now)
		// With cancelling rows, as a snapshot of several batches has.
		es := h.now.Entries()
		if !h.grows {
			for range r.IntN(3) {
				row := h.row()
				es = append(es, reference.Entry{Row: row, Diff: 1})
				es = append([]reference.Entry{{Row: row, Diff: -1}}, es...)
			}
		}
		if len(es) > 0 {
			for _, d := range pieces(r, reference.Delta(h.kinds, es)) {
				run.inputs[i].Push(d)
			}
		}
	}
	run.c.Step(1)
	run.check(t, zs, "once")
}

// checkEmpty looks that a circuit without input holds nothing.
func (run *oracleRun) checkEmpty(t *testing.T) {
	t.Helper()
	for i, sp := range run.c.Spines() {
		if sp.Reader().Cursor().KeyValid() {
			t.Fatalf("spine %d is not empty\n%s", i, run.p)
		}
	}
	for _, n := range run.c.nodes {
		switch op := n.op.(type) {
		case *reduce:
			for _, s := range op.parts {
				if s != nil {
					checkEmptyReduce(t, run, s)
				}
			}
		case *topK:
			for _, s := range op.parts {
				if s != nil && (s.t.idx.n > 0 || s.ar.used > 0 || s.t.ar.used > 0) {
					t.Fatalf("top-k keeps %d groups, %d and %d bytes\n%s", s.t.idx.n, s.ar.used, s.t.ar.used, run.p)
				}
			}
		}
	}
}

func checkEmptyReduce(t *testing.T, run *oracleRun, s *reducePart) {
	t.Helper()
	groups := s.t.idx.n
	if groups > 0 || s.t.ar.used > 0 || s.pools.ar.used > 0 {
		t.Fatalf("reduce keeps %d groups, %d and %d bytes\n%s", groups, s.t.ar.used, s.pools.ar.used, run.p)
	}
	if c := len(s.pools.nums.counts) - len(s.pools.nums.spare); c > 0 {
		t.Fatalf("reduce keeps %d counts of scales\n%s", c, run.p)
	}
	if a, b := len(s.pools.wide.all)-len(s.pools.wide.free), len(s.pools.nums.all)-len(s.pools.nums.free); a+b > 0 {
		t.Fatalf("reduce keeps %d float and %d numeric sums\n%s", a, b, run.p)
	}
	for _, d := range s.sets {
		if d.t.idx.n > 0 || d.t.ar.used > 0 {
			t.Fatalf("distinct set keeps %d entries, %d bytes\n%s", d.t.idx.n, d.t.ar.used, run.p)
		}
	}
}
