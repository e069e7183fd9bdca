package decimal

import (
	"encoding/hex"
	"flag"
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/pgerror"
)

var seed = flag.Int64("seed", 1, "seed of the random tests")

// randomNumber spells a number: mostly short, sometimes huge or special.
func randomNumber(r *rand.Rand) string {
	switch r.Intn(40) {
	case 0:
		return "NaN"
	case 1:
		return "Infinity"
	case 2:
		return "-Infinity"
	case 3:
		return []string{"0", "0.00", "1", "-1", "1.000", "10", "100", "0.1", "10000", "9999", "0.0001", "99999999", "2", "-2", "0.5"}[r.Intn(15)]
	}
	digits := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte('0' + r.Intn(10))
			if r.Intn(6) == 0 {
				b[i] = "09"[r.Intn(2)]
			}
		}
		return string(b)
	}
	size := []int{4, 4, 9, 18, 25, 40, 80}[r.Intn(7)]
	s := digits(1 + r.Intn(size))
	if r.Intn(3) > 0 {
		s += "." + digits(r.Intn(size)+1)
	}
	if r.Intn(2) == 0 {
		s = "-" + s
	}
	return s
}

func result(b []byte, err error) oracle.Result {
	if err != nil {
		e := pgerror.As(err)
		return oracle.Result{Null: true, Code: e.Code, Message: e.Message, Detail: e.Detail, Hint: e.Hint}
	}
	return oracle.Result{Text: String(b)}
}

// check compares results with PostgreSQL's for expressions.
func check(t *testing.T, s *oracle.Server, exprs []string, got []oracle.Result) {
	t.Helper()
	const maxShown = 12
	bad := 0
	for i, want := range s.Eval(t, exprs) {
		if got[i] != want {
			if bad++; bad <= maxShown {
				t.Errorf("%s:\n got %v %s\nwant %v %s", exprs[i], got[i], got[i].Detail, want, want.Detail)
			}
		}
	}
	if bad > maxShown {
		t.Errorf("%d differences in %d expressions", bad, len(exprs))
	}
}

func TestBinaryOperators(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	ops := []struct {
		sql string
		f   func(dst, a, b []byte) ([]byte, error)
	}{
		{"%s::numeric + %s::numeric", Add}, {"%s::numeric - %s::numeric", Sub}, {"%s::numeric * %s::numeric", Mul},
		{"%s::numeric / %s::numeric", Div}, {"%s::numeric %% %s::numeric", Mod}, {"div(%s::numeric, %s::numeric)", DivTrunc},
		{"gcd(%s::numeric, %s::numeric)", GCD}, {"lcm(%s::numeric, %s::numeric)", LCM},
	}
	var exprs []string
	var got []oracle.Result
	for range 20000 {
		op := ops[r.Intn(len(ops))]
		x, y := randomNumber(r), randomNumber(r)
		exprs = append(exprs, fmt.Sprintf(op.sql, "'"+x+"'", "'"+y+"'"))
		got = append(got, result(op.f(nil, mk(t, x), mk(t, y))))
	}
	check(t, s, exprs, got)
}

func TestUnaryOperators(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	plain := func(f func(dst, a []byte) []byte) func(dst, a []byte) ([]byte, error) {
		return func(dst, a []byte) ([]byte, error) { return f(dst, a), nil }
	}
	ops := []struct {
		sql string
		f   func(dst, a []byte) ([]byte, error)
	}{
		{"- %s::numeric", plain(Neg)}, {"abs(%s::numeric)", plain(Abs)}, {"ceil(%s::numeric)", Ceil}, {"floor(%s::numeric)", Floor},
		{"trim_scale(%s::numeric)", plain(TrimScale)}, {"sqrt(%s::numeric)", Sqrt},
		{"%s::numeric::int8", func(dst, a []byte) ([]byte, error) { i, err := ToInt64(a); return AppendInt64(dst, i), err }},
		{"%s::numeric::int4", func(dst, a []byte) ([]byte, error) { i, err := ToInt32(a); return AppendInt64(dst, int64(i)), err }},
		{"%s::numeric::int2", func(dst, a []byte) ([]byte, error) { i, err := ToInt16(a); return AppendInt64(dst, int64(i)), err }},
		{"sign(%s::numeric)", func(dst, a []byte) ([]byte, error) {
			if IsNaN(a) {
				return AppendNaN(dst), nil
			}
			return AppendInt64(dst, int64(Sign(a))), nil
		}},
	}
	var exprs []string
	var got []oracle.Result
	for range 12000 {
		x := randomNumber(r)
		op := ops[r.Intn(len(ops))]
		exprs = append(exprs, fmt.Sprintf(op.sql, "'"+x+"'"))
		got = append(got, result(op.f(nil, mk(t, x))))
		n := r.Intn(12) - 4
		exprs = append(exprs, fmt.Sprintf("round('%s'::numeric, %d)", x, n))
		got = append(got, result(Round(nil, mk(t, x), n)))
		exprs = append(exprs, fmt.Sprintf("trunc('%s'::numeric, %d)", x, n))
		got = append(got, result(Trunc(nil, mk(t, x), n), nil))
		p := 1 + r.Intn(30)
		sc := r.Intn(p+3) - 1
		exprs = append(exprs, fmt.Sprintf("'%s'::numeric::numeric(%d,%d)", x, p, sc))
		got = append(got, result(ApplyTypmod(nil, mk(t, x), MakeTypmod(p, sc))))
		exprs = append(exprs, fmt.Sprintf("encode(numeric_send('%s'), 'hex')", x))
		bin := AppendBinary(nil, mk(t, x))
		got = append(got, oracle.Result{Text: hex.EncodeToString(bin)})
		if back, err := ParseBinary(nil, bin); err != nil || string(back) != string(mk(t, x)) {
			t.Errorf("%s: binary form reads back as %s, %v", x, String(back), err)
		}
	}
	check(t, s, exprs, got)
}

func TestTranscendental(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	small := func() string {
		x := randomNumber(r)
		switch r.Intn(3) {
		case 0:
			x = fmt.Sprintf("%.*f", r.Intn(8), r.NormFloat64()*10)
		case 1:
			x = fmt.Sprintf("%.*f", r.Intn(20), 1+r.NormFloat64()/math.Pow(10, float64(r.Intn(12))))
		}
		if len(x) > 45 {
			x = x[:45]
		}
		return strings.TrimSuffix(x, ".")
	}
	var exprs []string
	var got []oracle.Result
	for range 1500 {
		x, y := small(), small()
		a, b := mk(t, x), mk(t, y)
		exprs = append(exprs, fmt.Sprintf("exp('%s'::numeric)", x))
		got = append(got, result(Exp(nil, a)))
		exprs = append(exprs, fmt.Sprintf("ln('%s'::numeric)", x))
		got = append(got, result(Ln(nil, a)))
		exprs = append(exprs, fmt.Sprintf("log('%s'::numeric)", x))
		got = append(got, result(Log10(nil, a)))
		exprs = append(exprs, fmt.Sprintf("log('%s'::numeric, '%s'::numeric)", x, y))
		got = append(got, result(Log(nil, a, b)))
		exprs = append(exprs, fmt.Sprintf("power('%s'::numeric, '%s'::numeric)", x, y))
		got = append(got, result(Power(nil, a, b)))
		n := r.Intn(60) - 20
		exprs = append(exprs, fmt.Sprintf("power('%s'::numeric, %d::numeric)", x, n))
		got = append(got, result(Power(nil, a, AppendInt64(nil, int64(n)))))
	}
	check(t, s, exprs, got)
}

func TestFloatConversions(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	var exprs []string
	var got []oracle.Result
	for range 4000 {
		f := math.Float64frombits(r.Uint64())
		if r.Intn(2) == 0 {
			f = r.NormFloat64() * math.Pow(10, float64(r.Intn(30)-15))
		}
		exprs = append(exprs, fmt.Sprintf("'%v'::float8::numeric", f))
		got = append(got, result(AppendFloat64(nil, f), nil))
		g := math.Float32frombits(r.Uint32())
		exprs = append(exprs, fmt.Sprintf("'%v'::float4::numeric", g))
		got = append(got, result(AppendFloat32(nil, g), nil))
		x := randomNumber(r)
		exprs = append(exprs, fmt.Sprintf("'%s'::numeric::float8 = '%s'::float8", x, x))
		h, err := ToFloat64(mk(t, x))
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprint(h)
		exprs[len(exprs)-1] = fmt.Sprintf("'%s'::numeric::float8 = '%s'::float8", x, strings.ReplaceAll(want, "+Inf", "Inf"))
		got = append(got, oracle.Result{Text: "true"})
	}
	check(t, s, exprs, got)
}

// TestLimits looks at the ends of the ranges.
func TestLimits(t *testing.T) {
	s := oracle.Connect(t)
	nums := []string{"1e131071", "9e131071", "-1e131071", "1e131072", "1e-16383", "1e-16384", "1e-20000", "1e400000", "-1e400000", "0e400000", "1e99999999999", "1e-99999999999",
		"170141183460469231731687303715884105727", "170141183460469231731687303715884105728", "340282366920938463463374607431768211455", "340282366920938463463374607431768211456",
		"99999999999999999999999999999999999999", "100000000000000000000000000000000000000", "9223372036854775807.5", "9223372036854775807.4", "-9223372036854775808.5", "-9223372036854775808.4", "6000", "-6000", "5999.99", "-5999", "0.000000000000000000000000000000001", "1.0000000000000000000000000000000001"}
	var exprs []string
	var got []oracle.Result
	// Numbers too long to show are compared by their digest.
	short := func(r oracle.Result) oracle.Result {
		if len(r.Text) > 200 {
			r.Text = fmt.Sprintf("%d digits from %s to %s", len(r.Text), r.Text[:20], r.Text[len(r.Text)-20:])
		}
		return r
	}
	add := func(sql string, r oracle.Result) {
		exprs = append(exprs, "select case when length(x) > 200 then length(x) || ' digits from ' || left(x, 20) || ' to ' || right(x, 20) else x end from (select ("+sql+")::text x) q")
		got = append(got, short(r))
	}
	var valid []string
	for _, n := range nums {
		b, err := Parse(nil, n)
		add("'"+n+"'::numeric", result(b, err))
		if err == nil {
			valid = append(valid, n)
		}
	}
	for _, x := range valid {
		a := mk(t, x)
		add("sqrt('"+x+"'::numeric)", result(Sqrt(nil, a)))
		add("exp('"+x+"'::numeric)", result(Exp(nil, a)))
		add("ln('"+x+"'::numeric)", result(Ln(nil, a)))
		i, err := ToInt64(a)
		add("'"+x+"'::numeric::int8", result(AppendInt64(nil, i), err))
		for _, y := range valid {
			b := mk(t, y)
			add("'"+x+"'::numeric * '"+y+"'::numeric", result(Mul(nil, a, b)))
			add("'"+x+"'::numeric + '"+y+"'::numeric", result(Add(nil, a, b)))
			add("'"+x+"'::numeric - '"+y+"'::numeric", result(Sub(nil, a, b)))
			if !IsZero(b) {
				add("'"+x+"'::numeric / '"+y+"'::numeric", result(Div(nil, a, b)))
			}
		}
	}
	for _, c := range [][2]string{{"10", "131071"}, {"10", "131072"}, {"2", "435411"}, {"2", "435412"}, {"2", "1e15"}, {"0.5", "1e15"}, {"1", "1e15"}, {"1.5", "100000.5"}, {"1.5", "1000000.5"}, {"0.5", "10000.5"}, {"-1", "1e15"}, {"-2", "3.0"}, {"0", "0"}, {"0", "1.5"}, {"0", "-1"}, {"1.0000000001", "3000000000"}, {"-1.0000000001", "3000000001"}} {
		add("power('"+c[0]+"'::numeric, '"+c[1]+"'::numeric)", result(Power(nil, mk(t, c[0]), mk(t, c[1]))))
	}
	check(t, s, exprs, got)
}
