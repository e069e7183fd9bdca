package columnar

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0: a new one")

func testRand(t testing.TB) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("run again with -seed=%d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

var allKinds = []Kind{KindBool, KindInt16, KindInt32, KindInt64, KindFloat32, KindFloat64, KindFixed16, KindBytes}

// appendAny appends a value that is small, extreme or NULL.
func appendAny(r *rand.Rand, b *Builder, domain int, nulls bool) {
	if nulls && r.IntN(7) == 0 {
		b.Null()
		return
	}
	x, edge := r.IntN(domain)-domain/2, r.IntN(16) == 0
	switch b.Kind() {
	case KindBool:
		b.Bool(x&1 != 0)
	case KindInt16:
		b.Int16(int16(x))
	case KindInt32:
		b.Int32(int32(x))
	case KindInt64:
		if edge {
			b.Int64([]int64{math.MinInt64, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64 + 1}[r.IntN(4)])
		} else {
			b.Int64(int64(x))
		}
	case KindFloat32:
		if edge {
			b.Float32([]float32{float32(math.NaN()), float32(math.Inf(-1)), math.Float32frombits(1 << 31), math.Float32frombits(0xFFC00001)}[r.IntN(4)])
		} else {
			b.Float32(float32(x) / 4)
		}
	case KindFloat64:
		if edge {
			b.Float64([]float64{math.NaN(), math.Inf(1), math.Copysign(0, -1), math.Float64frombits(0xFFF8000000000000)}[r.IntN(4)])
		} else {
			b.Float64(float64(x) / 4)
		}
	case KindFixed16:
		b.U128(U128{Hi: uint64(x & 3), Lo: uint64(x)})
	case KindBytes:
		s := fmt.Sprintf("%da common beginning of some length %d", x&1, x)
		switch r.IntN(3) {
		case 0:
			s = s[:min(len(s), 1+x&7)]
		case 1:
			s = fmt.Sprint(x)
		}
		b.String(s)
	}
}

func randomVec(r *rand.Rand, k Kind, n, domain int, nulls bool) *Vec {
	b := NewBuilder(k, 0)
	if r.IntN(2) == 0 {
		b = NewPooledBuilder(k, r.IntN(n+1))
	}
	for range n {
		appendAny(r, b, domain, nulls)
	}
	return b.Build()
}

func randomBatch(r *rand.Rand, kinds []Kind, n, domain int) Batch {
	b := Batch{N: n}
	for _, k := range kinds {
		b.Cols = append(b.Cols, randomVec(r, k, n, domain, r.IntN(2) == 0))
	}
	return b
}

func randomKinds(r *rand.Rand) []Kind {
	kinds := make([]Kind, r.IntN(4))
	for i := range kinds {
		kinds[i] = allKinds[r.IntN(len(allKinds))]
	}
	return kinds
}

// text is a value's bits; values are equal exactly if their texts are.
func text(v *Vec, i int) string {
	if v.Null(i) {
		return "NULL"
	}
	if v.Kind() == KindBytes {
		return fmt.Sprintf("%q", v.Bytes(i))
	}
	w := v.Kind().Width()
	fixed, _, _ := v.Raw()
	return fmt.Sprintf("%x", fixed[i*w:(i+1)*w])
}

func rowText(cols []*Vec, i int) string {
	s := ""
	for _, v := range cols {
		s += text(v, i) + "|"
	}
	return s
}

func texts(v *Vec) []string {
	out := make([]string, v.Len())
	for i := range out {
		out[i] = text(v, i)
	}
	return out
}

// wellFormed checks that NULL slots hold zero bits.
func wellFormed(t *testing.T, v *Vec) {
	t.Helper()
	for i := range v.Len() {
		if !v.Null(i) {
			continue
		}
		if v.Kind() == KindBytes {
			if len(v.Bytes(i)) != 0 {
				t.Fatal("NULL with bytes")
			}
			continue
		}
		w := v.Kind().Width()
		fixed, _, _ := v.Raw()
		if !bytes.Equal(fixed[i*w:(i+1)*w], make([]byte, w)) {
			t.Fatal("NULL with bits")
		}
	}
}

func TestMoveValues(t *testing.T) {
	r := testRand(t)
	for range 300 {
		k := allKinds[r.IntN(len(allKinds))]
		n := r.IntN(300)
		v := randomVec(r, k, n, 50, r.IntN(2) == 0)
		want := texts(v)
		lo := r.IntN(n + 1)
		hi := lo + r.IntN(n-lo+1)
		s := v.Slice(lo, hi)
		if !slices.Equal(texts(s), want[lo:hi]) {
			t.Fatalf("slice of %s", k)
		}
		w := randomVec(r, k, r.IntN(100), 50, r.IntN(2) == 0)
		c := Concat(k, s, w, s)
		if !slices.Equal(texts(c), slices.Concat(want[lo:hi], texts(w), want[lo:hi])) {
			t.Fatalf("concat of %s", k)
		}
		wellFormed(t, c)
		testGather(t, r, k, []*Vec{s, w, v})
	}
}

// testGather fetches at random from several vectors, in portions.
func testGather(t *testing.T, r *rand.Rand, k Kind, vs []*Vec) {
	t.Helper()
	var g Gatherer
	shift := uint(9 + r.IntN(8))
	g.Reset(k, shift)
	var idx []uint32
	var want []string
	for i, v := range vs {
		g.Add(v)
		for range min(v.Len(), 1) * r.IntN(200) {
			j := r.IntN(v.Len())
			idx = append(idx, uint32(i)<<shift|uint32(j))
			want = append(want, text(v, j))
		}
	}
	b := NewBuilder(k, 0)
	if r.IntN(2) == 0 {
		b = NewPooledBuilder(k, len(idx)/2)
		b.ReserveData(r.IntN(1000))
	}
	for lo := 0; lo < len(idx); {
		hi := lo + 1 + r.IntN(len(idx)-lo)
		b.AppendGather(&g, idx[lo:hi])
		lo = hi
	}
	got := b.Build()
	if !slices.Equal(texts(got), want) {
		t.Fatalf("gather of %s", k)
	}
	wellFormed(t, got)
	one := vs[2]
	if one.Len() > 0 && len(want) > 0 {
		rows := make([]uint32, len(idx))
		for i := range rows {
			rows[i] = uint32(r.IntN(one.Len()))
		}
		var wantRows, wantIdx []uint32
		for i, x := range rows {
			if eq := text(one, int(x)) == want[i]; eq != g.EqualAt(idx[i], one, int(x)) {
				t.Fatalf("EqualAt of %s", k)
			} else if eq {
				wantRows, wantIdx = append(wantRows, x), append(wantIdx, idx[i])
			}
		}
		gr, gi := g.FilterEqual(one, rows, idx)
		if !slices.Equal(gr, wantRows) || !slices.Equal(gi, wantIdx) {
			t.Fatalf("FilterEqual of %s", k)
		}
	}
	got.Recycle()
}

func TestBuilder(t *testing.T) {
	for _, k := range allKinds {
		for _, b := range []*Builder{NewBuilder(k, 0), NewPooledBuilder(k, 0), NewPooledBuilder(k, 5000)} {
			b.Zeros(70)
			b.Nulls(3)
			b.Zeros(1)
			v := b.Build()
			if v.Len() != 74 || v.Null(69) || !v.Null(70) || !v.Null(72) || v.Null(73) {
				t.Fatalf("%s: zeros and NULLs", k)
			}
			wellFormed(t, v)
			if e := b.Build(); e.Len() != 0 || e.Slice(0, 0).Len() != 0 {
				t.Fatalf("%s: a builder is not empty after Build", k)
			}
		}
	}
}

func TestHash(t *testing.T) {
	r := testRand(t)
	for range 200 {
		b := randomBatch(r, randomKinds(r), r.IntN(200), 20)
		h := make([]uint64, b.N)
		HashCols(b.Cols, b.N, h)
		seen := map[string]uint64{}
		byHash := map[uint64]string{}
		for i := range b.N {
			if HashRow(b.Cols, i) != h[i] {
				t.Fatal("HashRow differs from HashCols")
			}
			s := rowText(b.Cols, i)
			if x, ok := seen[s]; ok && x != h[i] {
				t.Fatal("equal rows hash differently")
			}
			seen[s] = h[i]
			if o, ok := byHash[h[i]]; ok && o != s {
				t.Fatalf("%q and %q have the same hash", o, s)
			}
			byHash[h[i]] = s
		}
	}
}

// TestHashSpread checks that keys close to one another fill partitions and low
// bits evenly.
func TestHashSpread(t *testing.T) {
	const n = 1 << 16
	b := NewBuilder(KindInt64, n)
	s := NewBuilder(KindBytes, n)
	for i := range n {
		b.Int64(int64(i) << 12)
		s.String(fmt.Sprintf("key-%08d", i))
	}
	for _, v := range []*Vec{b.Build(), s.Build()} {
		h := make([]uint64, n)
		HashCols([]*Vec{v}, n, h)
		var hi, lo [256]int
		for _, x := range h {
			hi[x>>56]++
			lo[x&255]++
		}
		for i := range hi {
			if hi[i] < 170 || hi[i] > 350 || lo[i] < 170 || lo[i] > 350 {
				t.Fatalf("%s: %d and %d keys where 256 are expected", v.Kind(), hi[i], lo[i])
			}
		}
	}
}

// naive is the order of two values, straight from the definition.
func naive(v *Vec, i, j int) int {
	ni, nj := v.Null(i), v.Null(j)
	if ni || nj {
		return cmp.Compare(map[bool]int{true: 1}[ni], map[bool]int{true: 1}[nj])
	}
	float := func(x, y float64, bx, by uint64) int {
		nx, ny := x != x, y != y
		switch {
		case nx && ny:
			return 2 // in some order
		case nx:
			return 1
		case ny:
			return -1
		case x == y:
			// -0 before +0
			return cmp.Compare(by, bx)
		}
		return cmp.Compare(x, y)
	}
	switch v.Kind() {
	case KindBool:
		return cmp.Compare(map[bool]int{true: 1}[v.Bools()[i]], map[bool]int{true: 1}[v.Bools()[j]])
	case KindInt16:
		return cmp.Compare(v.Int16s()[i], v.Int16s()[j])
	case KindInt32:
		return cmp.Compare(v.Int32s()[i], v.Int32s()[j])
	case KindInt64:
		return cmp.Compare(v.Int64s()[i], v.Int64s()[j])
	case KindFloat32:
		x, y := v.Float32s()[i], v.Float32s()[j]
		return float(float64(x), float64(y), uint64(math.Float32bits(x)), uint64(math.Float32bits(y)))
	case KindFloat64:
		x, y := v.Float64s()[i], v.Float64s()[j]
		return float(x, y, math.Float64bits(x), math.Float64bits(y))
	case KindFixed16:
		x, y := v.U128s()[i], v.U128s()[j]
		if x.Hi != y.Hi {
			return cmp.Compare(x.Hi, y.Hi)
		}
		return cmp.Compare(x.Lo, y.Lo)
	}
	return bytes.Compare(v.Bytes(i), v.Bytes(j))
}

func TestCompare(t *testing.T) {
	r := testRand(t)
	for range 40 {
		for _, k := range allKinds {
			v := randomVec(r, k, 40, 30, true)
			for i := range v.Len() {
				for j := range v.Len() {
					got, want := CompareAt(v, i, v, j), naive(v, i, j)
					if want == 2 {
						if got != -CompareAt(v, j, v, i) {
							t.Fatal("NaNs are not ordered")
						}
						continue
					}
					if cmp.Compare(got, 0) != want || (got == 0) != EqualAt(v, i, v, j) {
						t.Fatalf("%s: %s ? %s = %d, want %d", k, text(v, i), text(v, j), got, want)
					}
				}
			}
		}
	}
}

func TestSortKeyed(t *testing.T) {
	r := testRand(t)
	for range 400 {
		n := []int{0, 1, 5, 24, 25, 100, 255, 256, 1000, 20000}[r.IntN(10)]
		a := make([]Keyed, n)
		shape := r.IntN(6)
		for i := range a {
			x := r.Uint64()
			switch shape {
			case 1:
				x %= 10
			case 2:
				x = x%1000 | 7<<60
			case 3:
				x = uint64(i) / 3
			case 4: // equal leading bits, different last ones
				x = x&0xFFFF | 0xABCD<<48
			case 5:
				x = uint64(n - i)
			}
			a[i] = Keyed{Key: x, Row: uint32(i)}
		}
		want := slices.Clone(a)
		slices.SortStableFunc(want, func(x, y Keyed) int { return cmp.Compare(x.Key, y.Key) })
		SortKeyed(a, make([]Keyed, n))
		if !slices.Equal(a, want) {
			t.Fatalf("n=%d shape=%d", n, shape)
		}
	}
}

func TestSortRows(t *testing.T) {
	r := testRand(t)
	for range 300 {
		b := randomBatch(r, randomKinds(r), r.IntN(400), []int{3, 30, 100000}[r.IntN(3)])
		keys := make([]SortKey, len(b.Cols))
		for i, v := range b.Cols {
			keys[i] = SortKey{Vec: v, Desc: r.IntN(2) == 0, NullsFirst: r.IntN(2) == 0}
		}
		less := func(i, j uint32) int {
			for _, k := range keys {
				ni, nj := k.Vec.Null(int(i)), k.Vec.Null(int(j))
				var c int
				switch {
				case ni && nj:
				case ni || nj:
					c = 1
					if ni == k.NullsFirst {
						c = -1
					}
				default:
					if c = CompareAt(k.Vec, int(i), k.Vec, int(j)); k.Desc {
						c = -c
					}
				}
				if c != 0 {
					return c
				}
			}
			return 0
		}
		want := make([]uint32, b.N)
		for i := range want {
			want[i] = uint32(i)
		}
		slices.SortStableFunc(want, less)
		if got := Sort(keys, b.N); !slices.Equal(got, want) {
			t.Fatalf("wrong order by %v", keys)
		}
	}
}

func TestConsolidate(t *testing.T) {
	r := testRand(t)
	for range 300 {
		b := randomBatch(r, randomKinds(r), r.IntN(500), []int{3, 100, 1000000}[r.IntN(3)])
		var diffs []int64
		if r.IntN(3) > 0 {
			diffs = make([]int64, b.N)
			for i := range diffs {
				diffs[i] = int64(r.IntN(4)) - 1
			}
		}
		want := map[string]int64{}
		for i := range b.N {
			d := int64(1)
			if diffs != nil {
				d = diffs[i]
			}
			want[rowText(b.Cols, i)] += d
		}
		for k, d := range want {
			if d == 0 {
				delete(want, k)
			}
		}
		got, gd := Consolidate(b, diffs)
		if got.N != len(want) {
			t.Fatalf("%d rows, want %d", got.N, len(want))
		}
		for i := range got.N {
			d := int64(1)
			if gd != nil {
				d = gd[i]
			}
			k := rowText(got.Cols, i)
			if want[k] != d {
				t.Fatalf("%s: %d, want %d", k, d, want[k])
			}
			delete(want, k)
		}
	}
}

func TestScatter(t *testing.T) {
	r := testRand(t)
	for range 50 {
		n := 1 << r.IntN(6)
		hash := make([]uint64, r.IntN(1000))
		for i := range hash {
			hash[i] = r.Uint64()
		}
		idx, ends := Scatter(hash, n)
		var got []uint32
		lo := 0
		for p, hi := range ends {
			if !slices.IsSorted(idx[lo:hi]) {
				t.Fatal("rows of a partition out of order")
			}
			for _, i := range idx[lo:hi] {
				if PartitionOf(hash[i], n) != p {
					t.Fatal("row in another partition")
				}
				got = append(got, i)
			}
			lo = hi
		}
		slices.Sort(got)
		if len(got) != len(hash) || len(slices.Compact(got)) != len(hash) {
			t.Fatal("rows lost")
		}
	}
}

func TestCodec(t *testing.T) {
	r := testRand(t)
	for range 300 {
		b := randomBatch(r, randomKinds(r), r.IntN(300), 50)
		if b.N > 0 {
			lo := r.IntN(b.N)
			b = b.Slice(lo, b.N) // offsets that do not begin at 0
		}
		var diffs []int64
		if r.IntN(2) == 0 {
			diffs = make([]int64, b.N)
			for i := range diffs {
				diffs[i] = r.Int64()
			}
		}
		enc := AppendBatch(make([]byte, 8), &b, diffs)[8:]
		if len(enc) != EncodedSize(&b, diffs) || len(enc)%8 != 0 {
			t.Fatalf("%d bytes, EncodedSize says %d", len(enc), EncodedSize(&b, diffs))
		}
		src := append(alignedBytes(len(enc) + 16)[:0], enc...)
		src = append(src, "what follows"...)
		got, gd, n, err := DecodeBatch(src, r.IntN(2) == 0)
		if err != nil || n != len(enc) || got.N != b.N || !slices.Equal(gd, diffs) {
			t.Fatalf("decode: %v", err)
		}
		for c, v := range b.Cols {
			if !slices.Equal(texts(v), texts(got.Cols[c])) {
				t.Fatal("values differ")
			}
			if f, _, _ := got.Cols[c].Raw(); len(f) > 0 && !aliases(f, src) {
				t.Fatal("decoding copied")
			}
		}
		damage(t, r, enc)
	}
}

func aliases(part, whole []byte) bool {
	p, w := uintptr(unsafe.Pointer(&part[0])), uintptr(unsafe.Pointer(&whole[0]))
	return p >= w && p < w+uintptr(len(whole))
}

// damage decodes cut and altered bytes: an error or a batch that can be read.
func damage(t *testing.T, r *rand.Rand, enc []byte) {
	t.Helper()
	for range 10 {
		bad := append(alignedBytes(len(enc))[:0], enc...)
		if r.IntN(2) == 0 {
			bad = bad[:r.IntN(len(bad))]
		} else {
			bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
		}
		read(bad)
	}
}

func read(src []byte) {
	b, diffs, _, err := DecodeBatch(src, true)
	if err != nil {
		return
	}
	for i := range b.N {
		_ = rowText(b.Cols, i)
	}
	_ = len(diffs)
}

func FuzzDecodeBatch(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		b := randomBatch(r, randomKinds(r), r.IntN(20), 50)
		f.Add(AppendBatch(nil, &b, nil))
	}
	f.Fuzz(func(t *testing.T, src []byte) { read(src) })
}

func TestPool(t *testing.T) {
	for n := range 200000 {
		if c := poolClass(n); c >= 0 {
			if classSize(c) < n || c > 0 && classSize(c-1) >= n {
				t.Fatalf("class %d of %d bytes for %d", c, classSize(c), n)
			}
			if poolClass(classSize(c)) != c {
				t.Fatalf("class %d does not find itself", c)
			}
		}
	}
	s := GetSlice[uint64](5000)
	p := &s[0]
	PutSlice(s)
	if got := GetSlice[uint64](4999); &got[0] != p {
		t.Error("a freed buffer is not used again")
	}
	SetPoolLimit(0)
	defer SetPoolLimit(256 << 20)
	before := PoolBytes()
	PutSlice(GetSlice[uint64](5000))
	if PoolBytes() > before {
		t.Error("the pool grows beyond its limit")
	}
}

func BenchmarkHash(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, k := range []Kind{KindInt64, KindBytes} {
		v := randomVec(r, k, 1<<16, 1<<30, false)
		h := make([]uint64, v.Len())
		b.Run(k.String(), func(b *testing.B) {
			for b.Loop() {
				HashCols([]*Vec{v}, v.Len(), h)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(v.Len()), "ns/row")
		})
	}
}

func BenchmarkSortKeyed(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{100, 1000, 1 << 14, 1 << 16, 1 << 20} {
		a, tmp, src := make([]Keyed, n), make([]Keyed, n), make([]Keyed, n)
		for i := range src {
			src[i] = Keyed{Key: r.Uint64(), Row: uint32(i)}
		}
		b.Run(fmt.Sprintf("rows=%d", n), func(b *testing.B) {
			for b.Loop() {
				copy(a, src)
				SortKeyed(a, tmp)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/row")
		})
	}
}

func BenchmarkGather(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, k := range []Kind{KindInt64, KindBytes} {
		v := randomVec(r, k, 1<<16, 1<<30, false)
		idx := make([]uint32, v.Len())
		for i := range idx {
			idx[i] = uint32(r.IntN(v.Len()))
		}
		b.Run(k.String(), func(b *testing.B) {
			for b.Loop() {
				v.Gather(idx)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(v.Len()), "ns/row")
		})
	}
}
