package decimal

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
)

func mk(t testing.TB, s string) []byte {
	t.Helper()
	b, err := Parse(nil, s)
	if err != nil {
		t.Fatalf("parse %q: %v", s, err)
	}
	return b
}

func TestTextRoundTrip(t *testing.T) {
	for _, s := range []string{"0", "0.00", "1", "-1", "1.0", "1.00", "123456789012345678901234567890", "-0.000000000000000000000000000000000000001",
		"170141183460469231731687303715884105727", "170141183460469231731687303715884105728", "340282366920938463463374607431768211456.5",
		"18446744073709551615", "18446744073709551616", "9999999999999999999", "10000000000000000000", "NaN", "Infinity", "-Infinity"} {
		if got := String(mk(t, s)); got != s {
			t.Errorf("%s prints as %s", s, got)
		}
	}
}

func TestU128(t *testing.T) {
	r := rand.New(rand.NewSource(*seed))
	word := func() uint64 {
		switch r.Intn(6) {
		case 0:
			return 0
		case 1:
			return ^uint64(0)
		case 2:
			return uint64(1) << r.Intn(64)
		case 3:
			return uint64(r.Intn(100))
		}
		return r.Uint64()
	}
	toBig := func(ws ...uint64) *big.Int { // most significant first
		b := new(big.Int)
		for _, w := range ws {
			b.Lsh(b, 64).Or(b, new(big.Int).SetUint64(w))
		}
		return b
	}
	mask := toBig(^uint64(0), ^uint64(0))
	for range 200000 {
		a, b := u128{word(), word()}, u128{word(), word()}
		A, B := toBig(a.hi, a.lo), toBig(b.hi, b.lo)
		eq := func(op string, got u128, want *big.Int) {
			if toBig(got.hi, got.lo).Cmp(want) != 0 {
				t.Fatalf("%v %s %v = %v, want %v", a, op, b, got, want)
			}
		}
		eq("+", a.add(b), new(big.Int).And(new(big.Int).Add(A, B), mask))
		p := a.mul(b)
		if toBig(p[3], p[2], p[1], p[0]).Cmp(new(big.Int).Mul(A, B)) != 0 {
			t.Fatalf("%v * %v = %v", a, b, p)
		}
		if a.digits() != len(A.String()) && !a.isZero() {
			t.Fatalf("%v has %d digits, not %d", a, len(A.String()), a.digits())
		}
		if b.isZero() {
			continue
		}
		q, m := a.divMod(b)
		eq("/", q, new(big.Int).Quo(A, B))
		eq("%", m, new(big.Int).Rem(A, B))
		w := u256{word(), word(), word(), word()}
		W := toBig(w[3], w[2], w[1], w[0])
		q, m, ok := w.div(b)
		wantQ := new(big.Int).Quo(W, B)
		if ok != (wantQ.Cmp(mask) <= 0) {
			t.Fatalf("%v / %v: fits %v, want quotient %v", w, b, ok, wantQ)
		}
		if ok {
			eq("256-bit /", q, wantQ)
			eq("256-bit %", m, new(big.Int).Rem(W, B))
		}
	}
}

// TestOrder checks Compare, SortKey, Normalize and Equal with one another.
func TestOrder(t *testing.T) {
	r := rand.New(rand.NewSource(*seed))
	sign := func(i int) int { return max(-1, min(1, i)) }
	for range 50000 {
		x, y := randomNumber(r), randomNumber(r)
		if r.Intn(4) == 0 && !strings.ContainsAny(x, "Ny") {
			y = x
			if !strings.Contains(y, ".") {
				y += "."
			}
			y += strings.Repeat("0", r.Intn(4))
		}
		a, b := mk(t, x), mk(t, y)
		want := compareSlow(x, y)
		if got := sign(Compare(a, b)); got != want {
			t.Fatalf("Compare(%s, %s) = %d, want %d", x, y, got, want)
		}
		ka, kb := SortKey(nil, a), SortKey(nil, b)
		if got := bytes.Compare(ka, kb); got != want {
			t.Fatalf("sort keys of %s and %s: %d, want %d", x, y, got, want)
		}
		if !bytes.Equal(ka, kb) && (bytes.HasPrefix(ka, kb) || bytes.HasPrefix(kb, ka)) {
			t.Fatalf("sort key of one of %s and %s is a prefix of the other's", x, y)
		}
		na, nb := Normalize(nil, a), Normalize(nil, b)
		if bytes.Equal(na, nb) != (want == 0) || Equal(a, b) != (want == 0) {
			t.Fatalf("normal forms of %s and %s: %x %x", x, y, na, nb)
		}
		if Compare(a, na) != 0 || !Valid(a) || !Valid(na) {
			t.Fatalf("normal form of %s is %s", x, String(na))
		}
	}
}

// compareSlow compares by exact rational numbers.
func compareSlow(x, y string) int {
	rank := func(s string) (int, *big.Rat) {
		switch s {
		case "NaN":
			return 3, new(big.Rat)
		case "Infinity":
			return 2, new(big.Rat)
		case "-Infinity":
			return 0, new(big.Rat)
		}
		v, _ := new(big.Rat).SetString(strings.TrimSuffix(s, "."))
		return 1, v
	}
	i, a := rank(x)
	j, b := rank(y)
	if i != j {
		return max(-1, min(1, i-j))
	}
	return a.Cmp(b)
}

// TestAcc adds and takes back random numbers and compares the sum with one
// computed from what is left.
func TestAcc(t *testing.T) {
	r := rand.New(rand.NewSource(*seed))
	for range 400 {
		type entry struct {
			enc  []byte
			mult int64
		}
		var acc, other Acc
		var live []entry
		add := func(e entry) {
			a := &acc
			if r.Intn(3) == 0 {
				a = &other
			}
			if hi, lo, ok := Int128(e.enc, 0); ok && r.Intn(2) == 0 {
				if s, _ := Scale(e.enc); s == 0 {
					a.AddInt128(hi, lo, e.mult)
					return
				}
			}
			a.Add(e.enc, e.mult)
		}
		for range 1 + r.Intn(60) {
			if len(live) > 0 && r.Intn(3) == 0 {
				i := r.Intn(len(live))
				add(entry{live[i].enc, -live[i].mult})
				live = slices.Delete(live, i, i+1)
				continue
			}
			e := entry{mk(t, randomNumber(r)), int64(1 + r.Intn(5))}
			if r.Intn(20) == 0 {
				e.mult = math.MaxInt64 >> r.Intn(40)
			}
			live = append(live, e)
			add(e)
		}
		acc.Merge(&other)
		want := AppendInt64(nil, 0)
		for _, e := range live {
			p, err := Mul(nil, e.enc, AppendInt64(nil, e.mult))
			if err != nil {
				t.Fatal(err)
			}
			if want, err = Add(nil, want, p); err != nil {
				t.Fatal(err)
			}
		}
		got, err := acc.AppendTo(nil)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("sum is %s, want %s (%v)", String(got), String(want), err)
		}
		state := acc.AppendState(nil)
		var back Acc
		if err := back.LoadState(state); err != nil {
			t.Fatal(err)
		}
		again, _ := back.AppendTo(nil)
		if !bytes.Equal(again, want) || !bytes.Equal(back.AppendState(nil), state) {
			t.Fatalf("restored sum is %s, want %s", String(again), String(want))
		}
		for n := range state { // damage must not crash; some of it cannot be seen
			if err := new(Acc).LoadState(state[:n]); err == nil && n < 3 {
				t.Fatalf("a state cut at %d of %d loads", n, len(state))
			}
		}
		for _, e := range live {
			back.Add(e.enc, -e.mult)
		}
		if !back.IsEmpty() {
			t.Fatal("not empty after everything has been taken back")
		}
	}
}

func TestIntegerFunctions(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	var exprs []string
	var got []oracle.Result
	for _, n := range []int64{-1, 0, 1, 5, 20, 33, 34, 35, 100, 1000, 40000} {
		exprs = append(exprs, fmt.Sprintf("factorial(%d)", n))
		got = append(got, result(Factorial(nil, n)))
	}
	num := []string{"0", "1", "5", "10", "-3.5", "2.5", "9.99", "NaN", "Infinity", "-Infinity", "10.0", "0.000001", "123456789012345678901234567890"}
	for range 3000 {
		x, lo, hi, n := num[r.Intn(len(num))], num[r.Intn(len(num))], num[r.Intn(len(num))], r.Intn(12)-1
		exprs = append(exprs, fmt.Sprintf("width_bucket('%s'::numeric, '%s', '%s', %d)", x, lo, hi, n))
		i, err := WidthBucket(mk(t, x), mk(t, lo), mk(t, hi), int32(n))
		got = append(got, result(AppendInt64(nil, int64(i)), err))
	}
	check(t, s, exprs, got)
}

// FuzzParse checks that what is read prints as something that reads the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"0", "-1.50", "1e5", "NaN", "infinity", ".5", "5.", "1e-5", "12345678901234567890123456789012345678901234567890"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := Parse(nil, s)
		if err != nil {
			return
		}
		if !Valid(b) {
			t.Fatalf("%q: invalid encoding %x", s, b)
		}
		c, err := Parse(nil, AppendText(nil, b))
		if err != nil || !bytes.Equal(b, c) {
			t.Fatalf("%q prints as %s, which reads differently (%v)", s, String(b), err)
		}
	})
}

func BenchmarkArithmetic(b *testing.B) {
	x, y := mk(b, "12345.67"), mk(b, "0.908")
	buf := make([]byte, 0, 64)
	for _, op := range []struct {
		name string
		f    func(dst, a, b []byte) ([]byte, error)
	}{{"add", Add}, {"mul", Mul}, {"div", Div}} {
		b.Run(op.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := op.f(buf[:0], x, y); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("compare", func(b *testing.B) {
		for b.Loop() {
			Compare(x, y)
		}
	})
	b.Run("acc", func(b *testing.B) {
		b.ReportAllocs()
		var a Acc
		for b.Loop() {
			a.Add(x, 1)
		}
	})
	b.Run("text", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			AppendText(buf[:0], x)
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Parse(buf[:0], "12345.67"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("sortkey", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			SortKey(buf[:0], x)
		}
	})
}
