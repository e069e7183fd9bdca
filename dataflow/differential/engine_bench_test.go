package differential

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// The benchmarks run whole scenarios: one iteration is millions of rows. Run
// them with -benchtime=1x or a few; the figures are the metrics rows/cpu-s,
// B/row (beyond the payload) and worst/median (epoch).

// narrow makes rows of a random key and a value.
func narrow(r *rand.Rand, n, keys int) *dataflow.Delta {
	k, v := columnar.MakeFixed(k64, n), columnar.MakeFixed(k64, n)
	ks, vs := k.Int64s(), v.Int64s()
	for i := range n {
		ks[i] = int64(r.IntN(keys))
		vs[i] = int64(r.Uint64() >> 20)
	}
	return &dataflow.Delta{Batch: columnar.Batch{Cols: []*columnar.Vec{k, v}, N: n}}
}

// permuted makes rows with the keys lo to hi, each once, in random order.
func permuted(r *rand.Rand, lo, hi int) *dataflow.Delta {
	d := narrow(r, hi-lo, 1)
	for i, x := range r.Perm(hi - lo) {
		d.Cols[0].Int64s()[i] = int64(lo + x)
	}
	return d
}

// epochs times steps in CPU time: of the thread for single epochs, of the
// process (garbage collection included) for the throughput.
type epochs struct {
	d   []time.Duration
	all time.Duration
}

func (e *epochs) time(f func()) {
	all, one := cpuTime(false), cpuTime(true)
	f()
	e.d = append(e.d, cpuTime(true)-one)
	e.all += cpuTime(false) - all
}

func (e *epochs) report(b *testing.B, rows int) {
	slices.Sort(e.d)
	n := len(e.d)
	b.ReportMetric(float64(rows)/e.all.Seconds(), "rows/cpu-s")
	b.ReportMetric(float64(e.d[n-1])/float64(e.d[n/2]), "worst/median")
	b.ReportMetric(float64(e.d[n-1-n/100])/float64(e.d[n/2]), "p99/median")
	b.ReportMetric(float64(e.d[n/2].Microseconds()), "µs/epoch")
}

// lock keeps the benchmark on one thread, so that its CPU time can be told.
func lock(b *testing.B) {
	runtime.LockOSThread()
	b.Cleanup(runtime.UnlockOSThread)
}

func BenchmarkFilterProject(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	d := narrow(r, 1<<16, 1000)
	m := MapperFunc(func(in *dataflow.Delta, emit, _ func(*dataflow.Delta)) {
		k, v := in.Cols[0].Int64s(), in.Cols[1].Int64s()
		sel := columnar.GetSlice[uint32](in.N)
		n := 0
		for i, x := range k {
			sel[n] = uint32(i)
			if x < 500 {
				n++
			}
		}
		out := columnar.MakeFixed(k64, n)
		o := out.Int64s()
		for j, i := range sel[:n] {
			o[j] = v[i]*3 + k[i]
		}
		columnar.PutSlice(sel)
		emit(&dataflow.Delta{Batch: columnar.Batch{Cols: []*columnar.Vec{out}, N: n}})
	})
	c := New(Options{})
	in, s := c.Input([]columnar.Kind{k64, k64})
	oks, _ := c.Map(s, m, []columnar.Kind{k64})
	out := c.Output(oks)
	var e dataflow.Epoch
	start := cpuTime(false)
	for b.Loop() {
		in.Push(d)
		e++
		c.Step(e)
		out.Take()
	}
	b.ReportMetric(float64(b.N)*float64(d.N)/(cpuTime(false)-start).Seconds(), "rows/cpu-s")
}

func BenchmarkArrange(b *testing.B) {
	for _, epoch := range []int{1000, 1 << 16} {
		for _, keys := range []int{1 << 20, 1 << 40} {
			rows := 8 << 20
			if epoch == 1000 {
				rows = 2 << 20
			}
			b.Run(fmt.Sprintf("rows=%d/keys=%d/epoch=%d", rows, keys, epoch), func(b *testing.B) {
				for b.Loop() {
					benchArrange(b, rows, keys, epoch)
				}
			})
		}
	}
}

// BenchmarkArrangeWide has a payload of 100 bytes of text.
func BenchmarkArrangeWide(b *testing.B) {
	lock(b)
	const rows, epoch = 4 << 20, 1 << 16
	for b.Loop() {
		r := rand.New(rand.NewPCG(1, 1))
		text := columnar.NewBuilder(kText, epoch)
		for range epoch {
			text.Extend(func(dst []byte) []byte { return append(dst, make([]byte, 70+r.IntN(60))...) })
		}
		payload := text.Build()
		c := New(Options{})
		in, s := c.Input([]columnar.Kind{k64, k64, kText})
		a := c.Arrange(s, []int{0})
		var t epochs
		for n := 0; n < rows; n += epoch {
			d := narrow(r, epoch, 1<<40)
			d.Cols = append(d.Cols, payload)
			in.Push(d)
			t.time(func() { c.Step(dataflow.Epoch(n + 1)) })
		}
		t.report(b, rows)
		st := a.Trace().Spines()[0].Stats()
		b.ReportMetric(float64(st.Overhead)/float64(st.Rows), "B/row")
	}
}

func benchArrange(b *testing.B, rows, keys, epoch int) {
	lock(b)
	r := rand.New(rand.NewPCG(1, 1))
	c := New(Options{})
	in, s := c.Input([]columnar.Kind{k64, k64})
	a := c.Arrange(s, []int{0})
	var t epochs
	for n := 0; n < rows; n += epoch {
		in.Push(narrow(r, epoch, keys))
		t.time(func() { c.Step(dataflow.Epoch(n + 1)) })
	}
	t.report(b, rows)
	st := a.Trace().Spines()[0].Stats()
	b.ReportMetric(float64(st.Overhead)/float64(st.Rows), "B/row")
	b.ReportMetric(float64(st.Batches), "batches")
}

func BenchmarkJoin(b *testing.B) {
	for _, epoch := range []int{10, 1000, 1 << 16} {
		for _, parts := range []int{1, 4} {
			rows := 8 << 20
			b.Run(fmt.Sprintf("rows=%d/keys=%d/epoch=%d/parts=%d", rows, 1<<20, epoch, parts), func(b *testing.B) {
				for b.Loop() {
					benchJoin(b, rows, epoch, 1<<20, parts)
				}
			})
		}
	}
}

// benchJoin streams rows into a join with a table of so many keys. Both sides are
// kept. With short epochs most of the rows are there before the clock starts.
func benchJoin(b *testing.B, rows, epoch, keys, parts int) {
	lock(b)
	r := rand.New(rand.NewPCG(1, 1))
	c := New(Options{Partitions: parts})
	kinds := []columnar.Kind{k64, k64}
	left, ls := c.Input(kinds)
	right, rs := c.Input(kinds)
	la, ra := c.Arrange(ls, []int{0}), c.Arrange(rs, []int{0})
	oks, _ := c.Join(la, ra, JoinOptions{Out: []int{0, 1, 3}})
	out := c.Output(oks)
	e := dataflow.Epoch(0)
	step := func() {
		e++
		c.Step(e)
	}
	for lo := 0; lo < keys; lo += 1 << 16 {
		right.Push(permuted(r, lo, lo+1<<16))
		step()
	}
	timed := rows
	if epoch < 1<<14 {
		for n := 0; n < rows; n += 1 << 16 {
			left.Push(narrow(r, 1<<16, keys))
			step()
			out.Take()
		}
		timed = min(2<<20, 2000*epoch)
	}
	var t epochs
	for n := 0; n < timed; n += epoch {
		left.Push(narrow(r, epoch, keys))
		t.time(step)
		out.Take()
	}
	t.report(b, timed)
	st := la.Trace().Spines()[0].Stats()
	b.ReportMetric(float64(st.Overhead)/float64(st.Rows), "B/row")
	b.ReportMetric(float64(st.Batches), "batches")
}

// BenchmarkTinyCircuit makes, runs and drops a circuit for one row.
func BenchmarkTinyCircuit(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	d := narrow(r, 1, 10)
	kinds := []columnar.Kind{k64, k64}
	for b.Loop() {
		c := New(Options{Once: true})
		l, ls := c.Input(kinds)
		rr, rs := c.Input(kinds)
		oks, _ := c.Join(c.Arrange(ls, []int{0}), c.Arrange(rs, []int{0}), JoinOptions{Out: []int{1, 3}})
		out := c.Output(c.Distinct(oks))
		l.Push(d)
		rr.Push(d)
		c.Step(1)
		if len(out.Take()) != 1 {
			b.Fatal("no row")
		}
	}
}

func BenchmarkOnceJoin(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	kinds := []columnar.Kind{k64, k64}
	var ls, rs []*dataflow.Delta
	for range 64 {
		ls = append(ls, narrow(r, 1<<16, 1<<20))
	}
	for lo := 0; lo < 1<<20; lo += 1 << 16 {
		rs = append(rs, permuted(r, lo, lo+1<<16))
	}
	start := cpuTime(false)
	for b.Loop() {
		c := New(Options{Once: true})
		l, lS := c.Input(kinds)
		rr, rS := c.Input(kinds)
		oks, _ := c.Join(c.Arrange(lS, []int{0}), c.Arrange(rS, []int{0}), JoinOptions{Out: []int{0, 1, 3}})
		out := c.Output(oks)
		for _, d := range ls {
			l.Push(d)
		}
		for _, d := range rs {
			rr.Push(d)
		}
		c.Step(1)
		out.Take()
	}
	b.ReportMetric(float64(b.N)*float64(64<<16)/(cpuTime(false)-start).Seconds(), "rows/cpu-s")
}

// BenchmarkRowEpoch steps a join with one row an epoch: the latency of the engine.
func BenchmarkRowEpoch(b *testing.B) {
	for _, parts := range []int{1, 4} {
		b.Run(fmt.Sprintf("parts=%d", parts), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			c := New(Options{Partitions: parts})
			kinds := []columnar.Kind{k64, k64}
			left, ls := c.Input(kinds)
			right, rs := c.Input(kinds)
			oks, _ := c.Join(c.Arrange(ls, []int{0}), c.Arrange(rs, []int{0}), JoinOptions{Out: []int{0, 1, 3}})
			out := c.Output(oks)
			e := dataflow.Epoch(1)
			right.Push(permuted(r, 0, 1<<20))
			left.Push(narrow(r, 1<<20, 1<<20))
			c.Step(e)
			for c.Work(1 << 20) {
			}
			ds := make([]*dataflow.Delta, 1000)
			for i := range ds {
				ds[i] = narrow(r, 1, 1<<20)
			}
			b.ReportAllocs()
			b.ResetTimer()
			start := cpuTime(false)
			for b.Loop() {
				e++
				left.Push(ds[int(e)%len(ds)])
				c.Step(e)
				out.Take()
			}
			b.ReportMetric(float64((cpuTime(false)-start).Nanoseconds())/float64(b.N), "cpu-ns/epoch")
		})
	}
}

// BenchmarkIdle steps a circuit of many operators of which one has input.
func BenchmarkIdle(b *testing.B) {
	c := New(Options{})
	kinds := []columnar.Kind{k64, k64}
	var in *Input
	for range 4000 {
		i, s := c.Input(kinds)
		in = i
		c.Output(c.Negate(c.Negate(s)))
	}
	d := narrow(rand.New(rand.NewPCG(1, 1)), 1, 10)
	e := dataflow.Epoch(0)
	for b.Loop() {
		e++
		in.Push(d)
		c.Step(e)
	}
}
