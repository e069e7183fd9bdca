package trace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// seeded makes a source of randomness whose seed a failing test prints.
func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed=%d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 1))
}

// zset is a naive collection: row text → diff.
type zset map[string]dataflow.Diff

func rowText(cols []*columnar.Vec, i int) string {
	var b strings.Builder
	for _, v := range cols {
		switch {
		case v.Null(i):
			b.WriteString("∅|")
		case v.Kind() == columnar.KindBytes:
			fmt.Fprintf(&b, "%q|", v.Bytes(i))
		case v.Kind() == columnar.KindInt64:
			fmt.Fprintf(&b, "%d|", v.Int64s()[i])
		case v.Kind() == columnar.KindInt32:
			fmt.Fprintf(&b, "%d|", v.Int32s()[i])
		case v.Kind() == columnar.KindFixed16:
			fmt.Fprintf(&b, "%v|", v.U128s()[i])
		default:
			panic("kind")
		}
	}
	return b.String()
}

func (z zset) add(d *dataflow.Delta) {
	for i := range d.N {
		k := rowText(d.Cols, i)
		if z[k] += d.Diff(i); z[k] == 0 {
			delete(z, k)
		}
	}
}

func (z zset) equal(o zset) bool {
	if len(z) != len(o) {
		return false
	}
	for k, d := range z {
		if o[k] != d {
			return false
		}
	}
	return true
}

func contents(r Reader) zset {
	z := zset{}
	r.Scan(func(d *dataflow.Delta) bool {
		z.add(d)
		return true
	})
	return z
}

// randomVec makes a column of small values, some NULL.
func randomVec(r *rand.Rand, k columnar.Kind, n, domain int, nulls bool) *columnar.Vec {
	b := columnar.NewBuilder(k, n)
	for range n {
		if nulls && r.IntN(6) == 0 {
			b.Null()
			continue
		}
		x := r.IntN(domain)
		if r.IntN(3) == 0 {
			x = min(x, r.IntN(domain)/8) // skew
		}
		switch k {
		case columnar.KindInt64:
			b.Int64(int64(x) - 3)
		case columnar.KindInt32:
			b.Int32(int32(x))
		case columnar.KindFixed16:
			b.U128(columnar.U128{Hi: uint64(x % 3), Lo: uint64(x)})
		default:
			b.String(strings.Repeat("x", x%11) + fmt.Sprint(x))
		}
	}
	return b.Build()
}

// randomDelta makes changes; where the collection has negative counts is of no
// concern here.
func randomDelta(r *rand.Rand, kinds []columnar.Kind, n, domain int, nulls bool) *dataflow.Delta {
	d := &dataflow.Delta{Batch: columnar.Batch{N: n}}
	for _, k := range kinds {
		d.Cols = append(d.Cols, randomVec(r, k, n, domain, nulls))
	}
	if r.IntN(3) > 0 {
		for range n {
			d.Diffs = append(d.Diffs, int64(r.IntN(4)-1))
		}
	}
	return d
}

// check verifies the invariants of a batch.
func check(t *testing.T, b *Batch) {
	t.Helper()
	l := b.layout
	rows := 0
	for ci, c := range b.chunks {
		if ci+1 < len(b.chunks) && c.N != columnar.ChunkRows && !l.Unkeyed {
			t.Fatalf("chunk %d of %d has %d rows", ci, len(b.chunks), c.N)
		}
		rows += c.N
		if l.Unkeyed {
			continue
		}
		want := make([]uint64, c.N)
		columnar.HashCols(pick(c.Cols, l.Key), c.N, want)
		if !slices.Equal(want, c.Hash) {
			t.Fatalf("wrong hashes")
		}
		for i := range c.N {
			if c.Diff(i) == 0 {
				t.Fatalf("zero diff")
			}
			if i == 0 && ci == 0 {
				continue
			}
			p, j := c, i-1
			if i == 0 {
				p, j = b.chunks[ci-1], columnar.ChunkRows-1
			}
			if p.Hash[j] > c.Hash[i] || p.Hash[j] == c.Hash[i] && compareBy(l.order, p.Cols, j, c.Cols, i) >= 0 {
				t.Fatalf("rows out of order or equal: %s %s", rowText(p.Cols, j), rowText(c.Cols, i))
			}
		}
	}
	if rows != b.rows {
		t.Fatalf("%d rows, not %d", b.rows, rows)
	}
}

var layouts = []*Layout{
	NewLayout([]columnar.Kind{columnar.KindInt64, columnar.KindInt64}, []int{0}),
	NewLayout([]columnar.Kind{columnar.KindInt32, columnar.KindBytes, columnar.KindInt64}, []int{1, 0}),
	NewLayout([]columnar.Kind{columnar.KindBytes, columnar.KindFixed16}, []int{0, 1}),
	NewLayout([]columnar.Kind{columnar.KindInt64, columnar.KindBytes}, nil),
	NewLayout([]columnar.Kind{columnar.KindFixed16, columnar.KindInt32}, []int{0}),
	NewUnkeyedLayout([]columnar.Kind{columnar.KindInt64, columnar.KindBytes}),
	NewLayout(nil, nil),
	NewLayout([]columnar.Kind{columnar.KindInt64, columnar.KindInt32}, []int{1, 1, 0}),
}

func TestSpine(t *testing.T) {
	r := seeded(t)
	for li, l := range layouts {
		for round := range 4 {
			t.Run(fmt.Sprintf("layout=%d/round=%d", li, round), func(t *testing.T) { testSpine(t, r, l) })
		}
	}
}

// testSpine appends random epochs and compares the content, also of held
// snapshots and through cursors and lookups, with a naive sum.
func testSpine(t *testing.T, r *rand.Rand, l *Layout) {
	parts := 1 << r.IntN(3)
	if l.Unkeyed {
		parts = 1
	}
	tr := New(l, parts)
	sum := zset{}
	sizes := []int{1, 10, 300, 5000, 40000}
	size := sizes[r.IntN(len(sizes))]
	domain := []int{3, 50, 5000, 1 << 30}[r.IntN(4)]
	nulls := r.IntN(2) == 0
	epochs := min(60, 60000/size+2)
	type held struct {
		hold *Hold
		at   dataflow.Epoch
		want zset
	}
	var holds []held
	for e := dataflow.Epoch(1); int(e) <= epochs; e++ {
		var ds []*dataflow.Delta
		for range r.IntN(4) {
			d := randomDelta(r, l.Kinds, r.IntN(size)+1, domain, nulls)
			ds = append(ds, d)
			sum.add(d)
		}
		tr.Append(e, ds)
		tr.Seal(e)
		if r.IntN(4) == 0 {
			tr.Work(r.IntN(3 * size))
		}
		if r.IntN(epochs/4+1) == 0 {
			h, ok := tr.Hold(e)
			if !ok {
				t.Fatal("the last epoch cannot be held")
			}
			holds = append(holds, held{h, e, clone(sum)})
		}
		if len(holds) > 0 && r.IntN(3) == 0 {
			i := r.IntN(len(holds))
			h := holds[i]
			s, ok := tr.SnapshotAt(h.at)
			if !ok {
				t.Fatal("a held epoch is not readable")
			}
			if got := gather(s); !got.equal(h.want) {
				t.Fatalf("at held epoch %d: %d rows, want %d", h.at, len(got), len(h.want))
			}
			s.Release()
			h.hold.Release()
			holds = slices.Delete(holds, i, i+1)
		}
	}
	s, ok := tr.SnapshotAt(dataflow.Epoch(epochs))
	if !ok {
		t.Fatal("not readable")
	}
	defer s.Release()
	if got := gather(s); !got.equal(sum) {
		t.Fatalf("%d rows, want %d", len(got), len(sum))
	}
	for _, p := range s.Parts {
		for _, b := range p.Batches {
			check(t, b)
		}
		if !l.Unkeyed {
			checkCursor(t, p.Reader)
			checkLookups(t, r, l, p.Reader)
		}
		checkBlocks(t, l, p.Reader)
	}
	if !l.Unkeyed {
		checkFind(t, r, l, s)
	}
}

// checkFind looks keys up in all partitions, some of them there, some repeated, and
// compares with a scan.
func checkFind(t *testing.T, r *rand.Rand, l *Layout, s *TraceSnapshot) {
	t.Helper()
	n := []int{1, 2, 300, 20000}[r.IntN(4)]
	some := randomDelta(r, l.Kinds, n, []int{3, 50, 5000}[r.IntN(3)], true)
	s.Scan(func(d *dataflow.Delta) bool {
		if r.IntN(2) == 0 {
			some = d
		}
		return r.IntN(3) > 0
	})
	keys := pick(some.Cols, l.Key)
	number := map[string]int{}
	var first []uint32
	for i := range some.N {
		k := rowText(keys, i)
		if _, ok := number[k]; !ok {
			number[k] = len(first)
			first = append(first, uint32(i))
		}
	}
	want := zset{}
	s.Scan(func(d *dataflow.Delta) bool {
		for i := range d.N {
			if _, ok := number[rowText(pick(d.Cols, l.Key), i)]; ok {
				k := rowText(d.Cols, i)
				if want[k] += d.Diff(i); want[k] == 0 {
					delete(want, k)
				}
			}
		}
		return true
	})
	got := zset{}
	s.Lookup(keys, some.N, func(d *dataflow.Delta) bool {
		got.add(d)
		return true
	})
	if !got.equal(want) {
		t.Fatalf("Lookup of %d keys: %d rows, want %d", some.N, len(got), len(want))
	}
	got = zset{}
	distinct := make([]*columnar.Vec, len(keys))
	for c, v := range keys {
		distinct[c] = v.Gather(first)
	}
	s.Find(distinct, len(first), func(b *Batch, key, row []uint32) bool {
		for i, x := range row {
			c, at := b.Chunk(int(x>>columnar.ChunkShift)), int(x&(columnar.ChunkRows-1))
			if number[rowText(pick(c.Cols, l.Key), at)] != int(key[i]) {
				t.Fatalf("Find gives a row of another key")
			}
			k := rowText(c.Cols, at)
			if got[k] += c.Diff(at); got[k] == 0 {
				delete(got, k)
			}
		}
		return true
	})
	if !got.equal(want) {
		t.Fatalf("Find of %d keys: %d rows, want %d", len(first), len(got), len(want))
	}
}

func clone(z zset) zset {
	c := zset{}
	for k, v := range z {
		c[k] = v
	}
	return c
}

func gather(s *TraceSnapshot) zset {
	z := zset{}
	s.Scan(func(d *dataflow.Delta) bool {
		z.add(d)
		return true
	})
	return z
}

// checkCursor walks the whole reader and compares with a scan.
func checkCursor(t *testing.T, r Reader) {
	t.Helper()
	got := zset{}
	last := -1
	for c := r.Cursor(); c.KeyValid(); c.StepKey() {
		for ; c.ValValid(); c.StepVal() {
			ch, i := c.Row()
			k := rowText(ch.Cols, i)
			if got[k] != 0 || c.Diff() == 0 {
				t.Fatalf("cursor gives %s twice, or with diff 0", k)
			}
			got[k] = c.Diff()
		}
	}
	if want := contents(r); !got.equal(want) {
		t.Fatalf("cursor: %d rows, want %d (%d)", len(got), len(want), last)
	}
}

// checkLookups probes for some keys that are there and some that are not.
func checkLookups(t *testing.T, r *rand.Rand, l *Layout, rd Reader) {
	t.Helper()
	n := 1 + r.IntN(200)
	var cols []*columnar.Vec
	for _, k := range l.KeyKinds() {
		cols = append(cols, randomVec(r, k, n, []int{10, 5000, 1 << 30}[r.IntN(3)], true))
	}
	if len(l.Key) > 0 && rd.Len() > 0 && r.IntN(3) > 0 {
		b := rd.Batches[r.IntN(len(rd.Batches))]
		c := b.chunks[r.IntN(len(b.chunks))]
		cols = pick(c.Cols, l.Key)
		n = c.N
	}
	if len(l.Key) == 0 {
		n = 1
	}
	// Sorted by hash and distinct: consolidate through a batch of keys only.
	kl := NewLayout(l.KeyKinds(), iota2(len(l.Key)))
	kb := Build(kl, []*dataflow.Delta{{Batch: columnar.Batch{Cols: cols, N: n}}}, 1, Description{Upper: 1}, nil)[0]
	c := kb.chunks[0]
	g := rd.Groups(c.Cols, c.Hash)
	all := contents(rd)
	got := zset{}
	lo := 0
	keys := map[string]bool{}
	for i, hi := range g.Ends {
		keys[rowText(c.Cols, i)] = true
		for x := lo; x < hi; x++ {
			if !columnar.EqualRows(pick(g.Rows.Cols, l.Key), x, c.Cols, i) {
				t.Fatalf("row of another key")
			}
			if x > lo && compareBy(l.order, g.Rows.Cols, x-1, g.Rows.Cols, x) >= 0 {
				t.Fatalf("group not sorted")
			}
			got[rowText(g.Rows.Cols, x)] = g.diff(x)
		}
		lo = hi
	}
	want := zset{}
	rd.Scan(func(d *dataflow.Delta) bool {
		for i := range d.N {
			if k := rowText(d.Cols, i); keys[rowText(pick(d.Cols, l.Key), i)] && all[k] != 0 {
				want[k] = all[k]
			}
		}
		return true
	})
	if !got.equal(want) {
		t.Fatalf("lookup of %d keys: %d rows, want %d", len(keys), len(got), len(want))
	}
}

func iota2(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// checkBlocks encodes and re-opens every batch.
func checkBlocks(t *testing.T, l *Layout, r Reader) {
	t.Helper()
	for i, b := range r.Batches {
		block := b.AppendBlock(nil)
		if len(block) != b.EncodedSize() {
			t.Fatalf("block of %d bytes, EncodedSize says %d", len(block), b.EncodedSize())
		}
		released := 0
		o, err := OpenBlock(block, uint64(i+1), func() { released++ })
		if err != nil {
			t.Fatal(err)
		}
		check(t, o)
		if !contents(Reader{l, []*Batch{o}}).equal(contents(Reader{l, []*Batch{b}})) || o.Desc() != b.Desc() || o.ID() != uint64(i+1) {
			t.Fatal("block differs from its batch")
		}
		for cut := 0; cut < len(block); cut += 8 + len(block)/50 {
			if _, err := OpenBlock(block[:cut], 1, nil); err == nil {
				t.Fatalf("opened a block cut at %d of %d", cut, len(block))
			}
		}
		o.Release()
		if released != 1 {
			t.Fatal("block not released")
		}
	}
}

// TestScanConsolidated reads a trace of many batches in deltas that do not
// cancel one another, and compares their sum, and that of each, with the content.
func TestScanConsolidated(t *testing.T) {
	r := seeded(t)
	for round := range 20 {
		l := layouts[round%len(layouts)]
		if l.Unkeyed {
			continue
		}
		tr := New(l, 2)
		z := zset{}
		for e := dataflow.Epoch(1); e < 8; e++ {
			d := randomDelta(r, l.Kinds, 1+r.IntN(4*columnar.ChunkRows/7), 1<<(4+r.IntN(14)), true)
			for i := range d.Diffs {
				if d.Diffs[i] < 0 { // take back what is there, so that no count is negative
					if z[rowText(d.Cols, i)] <= 0 {
						d.Diffs[i] = 1
					}
				}
				z.add(d.Slice(i, i+1))
			}
			if d.Diffs == nil {
				z.add(d)
			}
			tr.Append(e, []*dataflow.Delta{d})
			tr.Seal(e)
		}
		s, ok := tr.SnapshotAt(7)
		if !ok {
			t.Fatal("not readable")
		}
		got := zset{}
		s.ScanConsolidated(func(d *dataflow.Delta) bool {
			for i := range d.N {
				if d.Diff(i) < 0 {
					t.Fatalf("round %d: a diff of %d", round, d.Diff(i))
				}
			}
			got.add(d)
			return true
		})
		s.Release()
		if !got.equal(z) {
			t.Fatalf("round %d: %d rows, want %d", round, len(got), len(z))
		}
	}
}
