package trace

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

var pairs = NewLayout([]columnar.Kind{columnar.KindInt64, columnar.KindInt64}, []int{0})

// fresh makes n rows with random keys.
func fresh(r *rand.Rand, n int) *dataflow.Delta {
	k, v := columnar.MakeFixed(columnar.KindInt64, n), columnar.MakeFixed(columnar.KindInt64, n)
	for i := range n {
		k.Int64s()[i], v.Int64s()[i] = r.Int64(), r.Int64()
	}
	return &dataflow.Delta{Batch: columnar.Batch{Cols: []*columnar.Vec{k, v}, N: n}}
}

func build(l *Layout, e dataflow.Epoch, ds ...*dataflow.Delta) *Batch {
	return Build(l, ds, 1, Description{Lower: e, Upper: e + 1}, nil)[0]
}

// TestWorkIsEven appends equal batches and checks that no Append does much more
// merging than its share, while the list of batches stays logarithmic.
func TestWorkIsEven(t *testing.T) {
	r := seeded(t)
	for _, n := range []int{300, 1000, 4000} {
		s := NewSpine(pairs)
		for e := 1; e <= 600; e++ {
			before := s.merged
			s.Append(build(pairs, dataflow.Epoch(e), fresh(r, n)))
			did := s.merged - before
			levels := bits.Len(uint(e))
			if limit := n*(levels*9/8+4) + 3*mergeAtOnce; did > 2*limit {
				t.Fatalf("append %d of %d rows: %d rows merged, limit %d", e, n, did, limit)
			}
			if max := 4*levels + 10; len(s.batches) > max {
				t.Fatalf("append %d of %d rows: %d batches, more than %d", e, n, len(s.batches), max)
			}
		}
		for s.Work(100000) {
		}
		st := s.Stats()
		if st.Rows != 600*n || st.Batches > bits.Len(600) || st.Overhead != 8*int64(st.Rows) || st.Payload != 16*int64(st.Rows) {
			t.Fatalf("after all merges: %+v", st)
		}
	}
}

// TestProbed checks that a spine that is only read becomes one batch.
func TestProbed(t *testing.T) {
	r := seeded(t)
	s := NewSpine(pairs)
	for e := range 40 {
		s.Append(build(pairs, dataflow.Epoch(e), fresh(r, 1+r.IntN(5000))))
	}
	rows := s.Stats().Rows
	for range rows/1000*4 + 100 {
		s.Probed(1000)
	}
	if st := s.Stats(); st.Batches != 1 || st.Rows != rows {
		t.Fatalf("%+v", st)
	}
}

// TestReplace swaps batches for their persisted twins, also in the midst of merges.
func TestReplace(t *testing.T) {
	r := seeded(t)
	s := NewSpine(pairs)
	want := zset{}
	opened, released := 0, 0
	for e := range 80 {
		d := fresh(r, 1+r.IntN(3000))
		want.add(d)
		s.Append(build(pairs, dataflow.Epoch(e), d))
		if r.IntN(3) > 0 {
			continue
		}
		for _, b := range s.Batches() {
			if b.ID() == 0 && r.IntN(2) == 0 {
				o, err := OpenBlock(b.AppendBlock(nil), uint64(opened+1), func() { released++ })
				if err != nil {
					t.Fatal(err)
				}
				if !s.Replace(b, o) {
					t.Fatal("batch is not in its spine")
				}
				opened++
				if s.Replace(b, o) {
					t.Fatal("replaced what is not there")
				}
			}
			b.Release()
		}
	}
	if got := contents(s.Reader()); !got.equal(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	left := 0
	for s.Work(1 << 20) {
	}
	for _, b := range s.batches {
		if b.ID() != 0 {
			left++
		}
	}
	if opened == 0 || released != opened-left {
		t.Fatalf("%d blocks opened, %d in use, %d released", opened, left, released)
	}
	list := s.Batches()
	o := NewSpine(pairs)
	o.Restore(list)
	o.Advance(80)
	snap, ok := o.SnapshotAt(79)
	if !ok || !contents(snap.Reader).equal(want) {
		t.Fatal("restored spine differs")
	}
	snap.Release()
}

// TestReaders reads held epochs on many goroutines while the owner goes on, and
// gives memory back to the pool.
func TestReaders(t *testing.T) {
	r := seeded(t)
	tr := New(pairs, 2)
	const rowsPerEpoch = 500
	var wg sync.WaitGroup
	var latest atomic.Uint64
	stop := make(chan struct{})
	errs := make(chan error, 8)
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				e := dataflow.Epoch(latest.Load())
				if e == 0 {
					continue
				}
				h, ok := tr.Hold(e)
				if !ok {
					continue // merged across meanwhile: pick a newer one
				}
				s, ok := tr.SnapshotAt(e)
				if !ok {
					errs <- fmt.Errorf("held epoch %d is not readable", e)
					return
				}
				if got := s.Len(); got != int(e)*rowsPerEpoch {
					errs <- fmt.Errorf("epoch %d: %d rows", e, got)
				}
				var sum int64
				s.Scan(func(d *dataflow.Delta) bool {
					for i, k := range d.Cols[0].Int64s() {
						sum += k - d.Cols[1].Int64s()[i]
					}
					return true
				})
				if sum != 0 {
					errs <- fmt.Errorf("epoch %d: damaged rows", e)
				}
				s.Release()
				h.Release()
			}
		})
	}
	for e := dataflow.Epoch(1); e <= 300; e++ {
		d := fresh(r, rowsPerEpoch)
		d.Cols[1] = d.Cols[0]
		tr.Append(e, []*dataflow.Delta{d})
		tr.Seal(e)
		latest.Store(uint64(e))
	}
	close(stop)
	wg.Wait()
	select {
	case err := <-errs:
		t.Fatal(err)
	default:
	}
}

func BenchmarkLocate(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, rows := range []int{1 << 16, 1 << 20, 1 << 23} {
		var bs []*Batch
		for n := 0; n < rows; n += 1 << 16 {
			bs = append(bs, build(pairs, 1, fresh(r, 1<<16)))
		}
		big := mergeAll(pairs, bs)
		for _, probes := range []int{1000, 1 << 14, 1 << 16} {
			var p []uint64
			for _, c := range build(pairs, 1, fresh(r, probes)).chunks {
				p = append(p, c.Hash...)
			}
			lo, hi := make([]uint32, probes), make([]uint32, probes)
			b.Run(fmt.Sprintf("rows=%d/probes=%d", rows, probes), func(b *testing.B) {
				for b.Loop() {
					big.Locate(p, lo, hi)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(probes), "ns/probe")
			})
		}
	}
}

func BenchmarkMerge(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, perKey := range []int{1, 4} {
		for _, n := range []int{1000, 1 << 16, 1 << 20} {
			side := func() *Batch {
				var bs []*Batch
				for k := 0; k < n; k += min(n, 1<<16) {
					d := fresh(r, min(n, 1<<16))
					for i := range d.Cols[0].Int64s() {
						d.Cols[0].Int64s()[i] = int64(r.IntN(n / perKey))
						if perKey == 1 {
							d.Cols[0].Int64s()[i] = r.Int64()
						}
					}
					bs = append(bs, build(pairs, 1, d))
				}
				return mergeAll(pairs, bs)
			}
			x, y := side(), side()
			b.Run(fmt.Sprintf("rows=%d/perkey=%d", 2*n, perKey), func(b *testing.B) {
				for b.Loop() {
					Merge(x, y).Release()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(2*n), "ns/row")
			})
		}
	}
}

// TestWideRows appends rows that are so wide that merging all of them would make chunks
// larger than they may be.
func TestWideRows(t *testing.T) {
	defer func(n int64) { maxWidth = n }(maxWidth)
	maxWidth = 1 << 20
	r := seeded(t)
	l := NewLayout([]columnar.Kind{columnar.KindInt64, columnar.KindBytes}, []int{0})
	s := NewSpine(l)
	rows, bytes := 0, int64(0)
	for e := dataflow.Epoch(1); e <= 200; e++ {
		n := 1 + r.IntN(20)
		k, v := columnar.NewBuilder(columnar.KindInt64, n), columnar.NewBuilder(columnar.KindBytes, n)
		for range n {
			k.Int64(r.Int64())
			v.Bytes(make([]byte, r.IntN(20000)))
		}
		b := build(l, e, &dataflow.Delta{Batch: columnar.Batch{Cols: []*columnar.Vec{k.Build(), v.Build()}, N: n}})
		rows, bytes = rows+b.Len(), bytes+b.payload
		s.Append(b)
		if r.IntN(3) == 0 {
			s.Probed(1000)
		}
	}
	for s.Work(100000) {
	}
	for _, b := range s.batches {
		if b.widest > maxWidth {
			t.Errorf("a column of a chunk takes %d bytes", b.widest)
		}
	}
	if st := s.Stats(); st.Rows != rows || st.Batches > int(6*bytes/maxWidth) {
		t.Errorf("%d rows of %d bytes are %d rows in %d batches", rows, bytes, st.Rows, st.Batches)
	}
}
