package differential

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// benchPartitions is a usual number of partitions; the benchmarks use one core.
const benchPartitions = 16

// benchRows is the rows of a step; deltas have a quarter of them each.
const benchRows = 1 << 16

// keyedDeltas makes deltas of (key, value) over so many keys. With churn, each
// delta after the first few takes back half of an earlier one.
func keyedDeltas(steps, keys int, churn bool) []*dataflow.Delta {
	n := steps * benchRows / columnar.ChunkRows
	const benchRows = columnar.ChunkRows
	r := rand.New(rand.NewPCG(1, uint64(keys)))
	var out []*dataflow.Delta
	for i := range n {
		k, v := make([]int64, benchRows), make([]int64, benchRows)
		d := &dataflow.Delta{Batch: columnar.Batch{N: benchRows}}
		for j := range k {
			k[j], v[j] = int64(r.IntN(keys))*7919, r.Int64N(1_000_000_000)
		}
		if churn && i >= 4 {
			d.Diffs = make([]int64, benchRows)
			old := out[i-4]
			ok, ov := old.Cols[0].Int64s(), old.Cols[1].Int64s()
			for j := range d.Diffs {
				d.Diffs[j] = 1
				if j&1 == 0 && old.Diff(j|1) > 0 {
					k[j], v[j], d.Diffs[j] = ok[j|1], ov[j|1], -1
				}
			}
		}
		d.Cols = []*columnar.Vec{columnar.FromSlice(k, nil), columnar.FromSlice(v, nil)}
		out = append(out, d)
	}
	return out
}

// reportSteps runs steps of benchRows rows, and reports rows a second of CPU time:
// of all of it, garbage collection included, and of the best step, which tells
// least of what else the machine was doing.
func reportSteps(b *testing.B, step func(i int)) {
	lock(b)
	best := time.Hour
	b.ResetTimer()
	start := cpuTime(false)
	for i := range b.N {
		t := cpuTime(true)
		step(i)
		best = min(best, cpuTime(true)-t)
	}
	b.ReportMetric(float64(b.N*benchRows)/(cpuTime(false)-start).Seconds()/1e6, "Mrows/cpu-s")
	b.ReportMetric(benchRows/best.Seconds()/1e6, "best-Mrows/s")
	b.ReportMetric(0, "ns/op")
}

// benchDeltas steps an operator over deltas, again and again those after the
// first `warm` steps,.
func benchDeltas(b *testing.B, ds []*dataflow.Delta, warm int, build func(c *Circuit, s Stream) Stream) {
	c := New(Options{Partitions: benchPartitions})
	in, s := c.Input(ds[0].Kinds())
	out := c.Output(build(c, s))
	epoch := dataflow.Epoch(1)
	const parts = benchRows / columnar.ChunkRows
	step := func(i int) {
		for _, d := range ds[i*parts : (i+1)*parts] {
			in.Push(d)
		}
		c.Step(epoch)
		epoch++
		out.Take()
	}
	for i := range warm {
		step(i)
	}
	rest := len(ds)/parts - warm
	reportSteps(b, func(i int) { step(warm + i%rest) })
}

// BenchmarkBare is the least that a sum and a count by key can cost: a bare hash
// table of int64 keys, without deltas, output, NULLs or overflow. It is there to
// tell the machine from the engine.
func BenchmarkBare(b *testing.B) {
	for _, keys := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			ds := keyedDeltas(16+2*keys/benchRows, keys, false)
			type row struct{ key, count, sum int64 }
			size := uint64(1)
			for size < 2*uint64(keys) {
				size *= 2
			}
			idx, rows := make([]uint32, size), make([]row, 0, keys)
			add := func(d *dataflow.Delta) {
				ks, vs := d.Cols[0].Int64s(), d.Cols[1].Int64s()
				for i, k := range ks {
					h := uint64(k) * 0x9E3779B97F4A7C15
					for p := (h ^ h>>29) & (size - 1); ; p = (p + 1) & (size - 1) {
						if idx[p] == 0 {
							rows = append(rows, row{k, 0, 0})
							idx[p] = uint32(len(rows))
						}
						if r := &rows[idx[p]-1]; r.key == k {
							r.count++
							r.sum += vs[i]
							break
						}
					}
				}
			}
			for _, d := range ds {
				add(d)
			}
			const parts = benchRows / columnar.ChunkRows
			reportSteps(b, func(i int) {
				for j := range parts {
					add(ds[(i*parts+j)%len(ds)])
				}
			})
		})
	}
}

func BenchmarkReduce(b *testing.B) {
	sumCount := []Agg{{Op: AggSum, Arg: 1, Filter: -1}, {Op: AggCount, Arg: -1, Filter: -1}}
	reduce := func(aggs []Agg, o ReduceOptions) func(*Circuit, Stream) Stream {
		return func(c *Circuit, s Stream) Stream {
			oks, _ := c.Reduce(s, []int{0}, aggs, o)
			return oks
		}
	}
	for _, keys := range []int{1_000, 100_000, 1_000_000, 4_000_000} {
		ds := keyedDeltas(16+2*keys/benchRows, keys, false)
		b.Run(fmt.Sprintf("sum+count/keys=%d", keys), func(b *testing.B) {
			benchDeltas(b, ds, 2*keys/benchRows, reduce(sumCount, ReduceOptions{}))
		})
	}
	grow := keyedDeltas(48, 100_000, false)
	churn := keyedDeltas(100, 100_000, true)
	maximum := []Agg{{Op: AggMax, Arg: 1, Filter: -1}}
	b.Run("max/append-only", func(b *testing.B) {
		benchDeltas(b, grow, 4, reduce(maximum, ReduceOptions{AppendOnly: true}))
	})
	b.Run("max/retractions", func(b *testing.B) {
		benchDeltas(b, churn, 20, reduce(maximum, ReduceOptions{}))
	})
	b.Run("min+max/retractions", func(b *testing.B) {
		both := append(maximum, Agg{Op: AggMin, Arg: 1, Filter: -1})
		benchDeltas(b, churn, 20, reduce(both, ReduceOptions{}))
	})
	b.Run("count-distinct/append-only", func(b *testing.B) {
		d := []Agg{{Op: AggCount, Arg: 1, Filter: -1, Distinct: true}}
		benchDeltas(b, grow, 4, reduce(d, ReduceOptions{AppendOnly: true}))
	})
	b.Run("count-distinct/retractions", func(b *testing.B) {
		d := []Agg{{Op: AggCount, Arg: 1, Filter: -1, Distinct: true}}
		benchDeltas(b, churn, 20, reduce(d, ReduceOptions{}))
	})
}

// BenchmarkReduceReport is a report as of Nexmark's queries 15 to 17: a text key
// beside an integer one, counts under filters, extremes, a sum, distinct counts.
func BenchmarkReduceReport(b *testing.B) {
	days := []string{"2015-07-15", "2015-07-16"}
	var ds []*dataflow.Delta
	for i, d := range keyedDeltas(40, 20_000, false) {
		day := columnar.NewBuilder(columnar.KindBytes, d.N)
		var flags [3]*columnar.Vec
		vals := d.Cols[1].Int64s()
		for f := range flags {
			flags[f] = columnar.MakeFixed(columnar.KindBool, d.N)
			for j, v := range vals {
				flags[f].Bools()[j] = v%3 == int64(f)
			}
		}
		bidder := columnar.MakeFixed(columnar.KindInt64, d.N)
		for j, v := range vals {
			day.String(days[i/80])
			bidder.Int64s()[j] = v >> 4 % 5000
		}
		cols := []*columnar.Vec{d.Cols[0], day.Build(), d.Cols[1], flags[0], flags[1], flags[2], bidder}
		ds = append(ds, &dataflow.Delta{Batch: columnar.Batch{Cols: cols, N: d.N}})
	}
	plain := []Agg{{Op: AggCount, Arg: -1, Filter: -1}, {Op: AggMin, Arg: 2, Filter: -1}, {Op: AggMax, Arg: 2, Filter: -1},
		{Op: AggSum, Arg: 2, Filter: -1}, {Op: AggCount, Arg: 2, Filter: -1}}
	distinct := []Agg{{Op: AggCount, Arg: 6, Filter: -1, Distinct: true}}
	for f := range 3 {
		plain = append(plain, Agg{Op: AggCount, Arg: -1, Filter: 3 + f})
		distinct = append(distinct, Agg{Op: AggCount, Arg: 6, Filter: 3 + f, Distinct: true})
	}
	for name, aggs := range map[string][]Agg{"plain": plain, "distinct": append(distinct, plain...)} {
		b.Run(name, func(b *testing.B) {
			benchDeltas(b, ds, 10, func(c *Circuit, s Stream) Stream {
				oks, _ := c.Reduce(s, []int{0, 1}, aggs, ReduceOptions{AppendOnly: true})
				return oks
			})
		})
	}
}

// BenchmarkReduceLatency is the cost of small epochs over a million groups.
func BenchmarkReduceLatency(b *testing.B) {
	const keys = 1_000_000
	ds := keyedDeltas(3*keys/benchRows, keys, false)
	for _, rows := range []int{1, 1000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			c := New(Options{Partitions: benchPartitions})
			in, s := c.Input(ds[0].Kinds())
			sums, _ := c.Reduce(s, []int{0}, []Agg{{Op: AggSum, Arg: 1, Filter: -1}}, ReduceOptions{})
			top := c.TopK(sums, nil, []Order{{Col: 1, Desc: true}}, TopKOptions{Limit: 10})
			out := c.Output(top)
			epoch := dataflow.Epoch(0)
			for _, d := range ds {
				in.Push(d)
				epoch++
				c.Step(epoch)
				out.Take()
			}
			lock(b)
			b.ResetTimer()
			start := cpuTime(true)
			for i := range b.N {
				d := ds[i%len(ds)]
				at := i / len(ds) * rows % (d.N - rows)
				in.Push(d.Slice(at, at+rows))
				epoch++
				c.Step(epoch)
				out.Take()
			}
			b.ReportMetric(float64((cpuTime(true)-start).Nanoseconds())/1e3/float64(b.N), "cpu-µs/epoch")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkReduceQueue deletes the greatest value of a group of a million, again
// and again: a priority queue.
func BenchmarkReduceQueue(b *testing.B) {
	const rows = 1_000_000
	c := New(Options{})
	kinds := []columnar.Kind{columnar.KindInt64, columnar.KindInt64}
	in, s := c.Input(kinds)
	oks, _ := c.Reduce(s, []int{0}, []Agg{{Op: AggMax, Arg: 1, Filter: -1}}, ReduceOptions{})
	out := c.Output(oks)
	push := func(lo, hi int, diff int64) {
		k, v := make([]int64, hi-lo), make([]int64, hi-lo)
		d := &dataflow.Delta{Batch: columnar.Batch{N: hi - lo}, Diffs: make([]int64, hi-lo)}
		for i := range v {
			v[i], d.Diffs[i] = int64(lo+i), diff
		}
		d.Cols = []*columnar.Vec{columnar.FromSlice(k, nil), columnar.FromSlice(v, nil)}
		in.Push(d)
	}
	for lo := 0; lo < rows; lo += columnar.ChunkRows {
		push(lo, min(lo+columnar.ChunkRows, rows), 1)
	}
	epoch := dataflow.Epoch(1)
	c.Step(epoch)
	lock(b)
	b.ResetTimer()
	start := cpuTime(true)
	top := rows
	for range b.N {
		if top == 0 {
			b.Fatal("queue is empty")
		}
		top--
		push(top, top+1, -1)
		epoch++
		c.Step(epoch)
		out.Take()
	}
	b.ReportMetric(float64((cpuTime(true)-start).Nanoseconds())/1e3/float64(b.N), "cpu-µs/epoch")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkReduceCheckpoint is the cost of bringing the durable form up to date,
// and of reading it again, a group.
func BenchmarkReduceCheckpoint(b *testing.B) {
	const keys = 1_000_000
	ds := keyedDeltas(3*keys/benchRows, keys, false)
	c := New(Options{Partitions: benchPartitions})
	in, s := c.Input(ds[0].Kinds())
	sums, _ := c.Reduce(s, []int{0}, []Agg{{Op: AggSum, Arg: 1, Filter: -1}}, ReduceOptions{})
	out := c.Output(sums)
	epoch := dataflow.Epoch(0)
	touched := 0
	step := func(ds []*dataflow.Delta) {
		for _, d := range ds {
			in.Push(d)
		}
		epoch++
		c.Step(epoch)
		for _, d := range out.Take() {
			if d.Diffs == nil {
				touched += d.N
			}
		}
	}
	lock(b)
	var flush, load time.Duration
	groups, loaded := 0, 0
	for range b.N {
		for i := 0; i < len(ds); i += 4 {
			step(ds[i:min(i+4, len(ds))])
		}
		groups += c.nodes[1].op.(*reduce).groupsInTables()
		t := cpuTime(true)
		c.Spines()
		flush += cpuTime(true) - t
		c.Forget()
		touched = 0
		t = cpuTime(true)
		step(ds[:4])
		load += cpuTime(true) - t
		loaded += touched
	}
	b.ReportMetric(float64(flush.Nanoseconds())/float64(groups), "flush-ns/group")
	b.ReportMetric(float64(load.Nanoseconds())/float64(loaded), "cold-ns/group")
	b.ReportMetric(0, "ns/op")
}

func (r *reduce) groupsInTables() int {
	n := 0
	for _, s := range r.parts {
		if s != nil {
			n += s.t.idx.n
		}
	}
	return n
}

func BenchmarkTopK(b *testing.B) {
	top := func(o TopKOptions) func(*Circuit, Stream) Stream {
		o.Limit = 10
		return func(c *Circuit, s Stream) Stream {
			return c.TopK(s, []int{0}, []Order{{Col: 1, Desc: true, NullsFirst: true, NotNull: true}}, o)
		}
	}
	grow := keyedDeltas(80, 100_000, false)
	b.Run("top10/append-only", func(b *testing.B) { benchDeltas(b, grow, 16, top(TopKOptions{AppendOnly: true})) })
	b.Run("top10/append-only/numbered", func(b *testing.B) {
		benchDeltas(b, grow, 16, top(TopKOptions{AppendOnly: true, RowNumber: true}))
	})
	churn := keyedDeltas(100, 100_000, true)
	b.Run("top10/retractions", func(b *testing.B) { benchDeltas(b, churn, 20, top(TopKOptions{})) })
}

// BenchmarkOnce is the cost of setting up and running a tiny circuit.
func BenchmarkOnce(b *testing.B) {
	ds := keyedDeltas(1, 10, false)
	small := &dataflow.Delta{Batch: ds[0].Batch.Slice(0, 10)}
	for _, op := range []string{"none", "reduce", "top"} {
		b.Run(op, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c := New(Options{Once: true})
				in, s := c.Input(small.Kinds())
				switch op {
				case "reduce":
					s, _ = c.Reduce(s, []int{0}, []Agg{{Op: AggSum, Arg: 1, Filter: -1}}, ReduceOptions{})
				case "top":
					s = c.TopK(s, nil, []Order{{Col: 1}}, TopKOptions{Limit: 5})
				}
				out := c.Output(s)
				in.Push(small)
				c.Step(1)
				if len(out.Take()) == 0 {
					b.Fatal("no output")
				}
			}
		})
	}
}
