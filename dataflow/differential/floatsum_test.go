package differential

import (
	"flag"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0: a new one")

// testRand gives a random source and prints its seed when the test fails.
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

// randomFloat draws from several ranges, the denormal and the largest included.
func randomFloat(r *rand.Rand, kind int) float64 {
	switch kind {
	case 0: // prices
		return float64(r.IntN(10_000_000)-5_000_000) / 100
	case 1: // any finite
		for {
			if x := math.Float64frombits(r.Uint64()); x-x == 0 {
				return x
			}
		}
	case 2: // denormals
		return math.Float64frombits(r.Uint64() & (1<<63 | 1<<40 - 1))
	case 3: // integers and powers of two far apart
		return math.Ldexp(float64(r.IntN(9)-4), r.IntN(400)-200)
	case 4: // whole numbers, large
		return float64(r.Int64() >> r.IntN(60))
	}
	return r.NormFloat64()
}

func TestFloatSumExact(t *testing.T) {
	r := testRand(t)
	for round := range 3000 {
		var p wideSums
		var w [floatWords]uint64
		kind, mixed := round%6, r.IntN(4) == 0
		want := new(big.Float).SetPrec(4500)
		type entry struct {
			x float64
			m int64
		}
		var added []entry
		for range r.IntN(40) {
			k := kind
			if mixed {
				k = r.IntN(6)
			}
			e := entry{randomFloat(r, k), 1}
			switch r.IntN(6) {
			case 0:
				e.m = int64(r.IntN(7) - 3)
			case 1:
				e.m = r.Int64() >> r.IntN(63)
			}
			added = append(added, e)
			p.addFloat(&w, e.x, e.m)
			v := new(big.Float).SetPrec(4500).SetInt64(e.m)
			want.Add(want, v.Mul(v, new(big.Float).SetFloat64(e.x)))
			checkFloatSum(t, &p, &w, want)
		}
		r.Shuffle(len(added), func(i, j int) { added[i], added[j] = added[j], added[i] })
		for _, e := range added {
			p.addFloat(&w, e.x, -e.m)
		}
		p.settle(&w)
		if w != [floatWords]uint64{} {
			t.Fatalf("residue %x after taking back %v", w, added)
		}
		if len(p.free) != len(p.all) {
			t.Fatalf("%d of %d wide sums returned", len(p.free), len(p.all))
		}
	}
}

func checkFloatSum(t *testing.T, p *wideSums, w *[floatWords]uint64, want *big.Float) {
	t.Helper()
	got, ok := p.float64(w)
	f, _ := want.Float64()
	if ok == math.IsInf(f, 0) || (ok && got != f) {
		t.Fatalf("float64 sum %v (%v), want %v", got, ok, f)
	}
	got32, ok := p.float32(w)
	f32, _ := want.Float32()
	if ok == math.IsInf(float64(f32), 0) || (ok && got32 != f32) {
		t.Fatalf("float32 sum %v (%v), want %v", got32, ok, f32)
	}
}

// TestProductSum checks that products can be taken back in any order.
func TestProductSum(t *testing.T) {
	r := testRand(t)
	for round := range 2000 {
		var p wideSums
		var w [floatWords]uint64
		type entry struct {
			x, y float64
			m    int64
		}
		var added []entry
		want := new(big.Rat)
		for range 1 + r.IntN(20) {
			e := entry{randomFloat(r, round%6), randomFloat(r, r.IntN(6)), 1}
			if r.IntN(3) == 0 {
				e.m = r.Int64() >> r.IntN(63)
			}
			added = append(added, e)
			p.addProduct(&w, e.x, e.y, e.m)
			x, y := new(big.Rat).SetFloat64(e.x), new(big.Rat).SetFloat64(e.y)
			want.Add(want, x.Mul(x, y.Mul(y, new(big.Rat).SetInt64(e.m))))
		}
		m, exp, ok := p.exact(&w)
		got := new(big.Rat).SetInt(m)
		scale := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(max(exp, -exp))))
		if exp < 0 {
			scale.Inv(scale)
		}
		if got.Mul(got, scale); !ok || got.Cmp(want) != 0 {
			t.Fatalf("sum of %v is off", added)
		}
		r.Shuffle(len(added), func(i, j int) { added[i], added[j] = added[j], added[i] })
		for _, e := range added {
			p.addProduct(&w, e.x, e.y, -e.m)
		}
		if p.settle(&w); w != [floatWords]uint64{} {
			t.Fatalf("residue %x after taking back %v", w, added)
		}
	}
}

func TestFloatSumSpecial(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		in   []float64
		want float64
	}{
		{[]float64{1, inf}, inf},
		{[]float64{-inf, 1e308, 1e308}, -inf},
		{[]float64{inf, -inf}, math.NaN()},
		{[]float64{3, math.NaN(), inf}, math.NaN()},
	} {
		var p wideSums
		var w [floatWords]uint64
		p.addFloat(&w, 2.5, 1)
		for _, x := range c.in {
			p.addFloat(&w, x, 1)
		}
		got, ok := p.float64(&w)
		if !ok || math.Float64bits(got) != math.Float64bits(c.want) {
			t.Errorf("sum of %v: %v", c.in, got)
		}
		for _, x := range c.in {
			p.addFloat(&w, x, -1)
		}
		if got, ok := p.float64(&w); !ok || got != 2.5 {
			t.Errorf("after taking back %v: %v", c.in, got)
		}
	}
}

// TestCrossDeviation compares with exact rationals, in the case that defeats a
// difference of rounded sums: a small spread around a large mean.
func TestCrossDeviation(t *testing.T) {
	r := testRand(t)
	for round := range 500 {
		var p wideSums
		var sx, sy, sxy [floatWords]uint64
		n := 1 + r.IntN(20)
		rx, ry, rxy := new(big.Rat), new(big.Rat), new(big.Rat)
		for range n {
			x, y := 1e9+r.Float64(), 1e-3*r.NormFloat64()
			if round%3 == 0 {
				x, y = randomFloat(r, 1), randomFloat(r, 3)
			}
			p.addFloat(&sx, x, 1)
			p.addFloat(&sy, y, 1)
			p.addProduct(&sxy, x, y, 1)
			bx, by := new(big.Rat).SetFloat64(x), new(big.Rat).SetFloat64(y)
			rx.Add(rx, bx)
			ry.Add(ry, by)
			rxy.Add(rxy, bx.Mul(bx, by))
		}
		rx.Mul(rx, ry)
		rxy.Mul(rxy, big.NewRat(int64(n), 1))
		rxy.Sub(rxy, rx)
		rxy.Quo(rxy, big.NewRat(int64(n), 1))
		want, _ := rxy.Float64()
		if got := p.crossDeviation(int64(n), &sx, &sy, &sxy); got != want {
			t.Fatalf("n=%d: %v, want %v", n, got, want)
		}
	}
}

func BenchmarkFloatSum(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	x := make([]float64, 1024)
	for i := range x {
		x[i] = randomFloat(r, 0)
	}
	var p wideSums
	var w [floatWords]uint64
	b.ResetTimer()
	for i := range b.N {
		p.addFloat(&w, x[i&1023], 1)
	}
}
