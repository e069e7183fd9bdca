package reference

import (
	"math"
	"math/big"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
)

// Agg is an aggregate over the values of a column (Arg < 0: over rows).
type Agg struct {
	Op        string // count, sum, min, max, bool_and, bool_or, bit_and, bit_or, bit_xor, sxx, sxy
	Arg, Arg2 int
	Filter    int // < 0: none
	Distinct  bool
	Out       columnar.Kind // of a sum
}

// Failure is the value of an aggregate that is out of range.
type Failure struct{ Code, Message string }

// value is a value with how often it occurs.
type value struct {
	v, w Value
	n    int64
}

// Reduce groups by key and aggregates: rows of (key, results), and the errors of
// the groups with a result out of range. With global there is one group always.
func Reduce(z *ZSet, key []int, aggs []Agg, global bool) (oks, errs *ZSet) {
	oks, errs = New(), New()
	for _, g := range groups(z, key, global) {
		n := int64(0)
		for _, e := range g.entries {
			n += e.Diff
		}
		if n <= 0 && !global {
			continue
		}
		r := append(Row(nil), g.key...)
		var failed *Failure
		for _, a := range aggs {
			v := a.eval(g.entries)
			if f, is := v.(Failure); is && failed == nil {
				failed = &f
			}
			r = append(r, v)
		}
		if failed != nil {
			errs.Add(Row{failed.Code, failed.Message}, 1)
			continue
		}
		oks.Add(r, 1)
	}
	return oks, errs
}

// values is what the aggregate is over: diffs may be negative.
func (a Agg) values(entries []Entry) []value {
	var out []value
	for _, e := range entries {
		if a.Filter >= 0 && e.Row[a.Filter] != true {
			continue
		}
		x := value{n: e.Diff}
		if a.Arg >= 0 {
			if x.v = e.Row[a.Arg]; x.v == nil {
				continue
			}
		}
		if a.Op == "sxy" {
			if x.w = e.Row[a.Arg2]; x.w == nil {
				continue
			}
		}
		out = append(out, x)
	}
	if !a.Distinct || a.Arg < 0 {
		return out
	}
	sums := New()
	for _, x := range out {
		sums.Add(Row{x.v}, x.n)
	}
	out = nil
	for _, e := range Distinct(sums).Entries() {
		out = append(out, value{v: e.Row[0], n: 1})
	}
	return out
}

func (a Agg) eval(entries []Entry) Value {
	vs := a.values(entries)
	n := int64(0)
	for _, x := range vs {
		n += x.n
	}
	if a.Op == "count" {
		return n
	}
	if n <= 0 {
		return nil
	}
	switch a.Op {
	case "sum":
		return a.sum(vs)
	case "min", "max":
		return extreme(vs, a.Op == "max")
	case "bool_and", "bool_or":
		return bools(vs, n, a.Op == "bool_and")
	case "sxx", "sxy":
		return a.deviations(vs, n)
	}
	return bitwise(a.Op, vs, n)
}

// extreme is over the multiset: values whose diffs cancel are not in it.
func extreme(vs []value, largest bool) Value {
	sums := New()
	for _, x := range vs {
		sums.Add(Row{x.v}, x.n)
	}
	es := sorted(sums.Entries(), nil)
	switch {
	case len(es) == 0:
		return nil
	case largest:
		return es[len(es)-1].Row[0]
	}
	return es[0].Row[0]
}

func bools(vs []value, n int64, and bool) Value {
	t := int64(0)
	for _, x := range vs {
		if x.v.(bool) {
			t += x.n
		}
	}
	if and {
		return t == n
	}
	return t > 0
}

func bitsOf(v Value) uint64 {
	switch x := v.(type) {
	case int16:
		return uint64(uint16(x))
	case int32:
		return uint64(uint32(x))
	}
	return uint64(v.(int64))
}

func bitwise(op string, vs []value, n int64) Value {
	var out uint64
	for b := range 64 {
		c := int64(0)
		for _, x := range vs {
			c += int64(bitsOf(x.v)>>b&1) * x.n
		}
		if op == "bit_and" && c == n || op == "bit_or" && c > 0 || op == "bit_xor" && c&1 != 0 {
			out |= 1 << b
		}
	}
	switch vs[0].v.(type) {
	case int16:
		return int16(out)
	case int32:
		return int32(out)
	}
	return int64(out)
}

func (a Agg) sum(vs []value) Value {
	switch vs[0].v.(type) {
	case float32, float64:
		return a.floatSum(vs)
	case string:
		var acc decimal.Acc
		for _, x := range vs {
			acc.Add([]byte(x.v.(string)), x.n)
		}
		b, err := acc.AppendTo(nil)
		if err != nil {
			return Failure{"22003", "value overflows numeric format"}
		}
		return string(b)
	}
	s := new(big.Int)
	for _, x := range vs {
		t := big.NewInt(integer(x.v))
		s.Add(s, t.Mul(t, big.NewInt(x.n)))
	}
	if a.Out == columnar.KindBytes {
		b, err := decimal.AppendBig(nil, s, 0)
		if err != nil {
			return Failure{"22003", "value overflows numeric format"}
		}
		return string(b)
	}
	if !s.IsInt64() {
		return Failure{"22003", "bigint out of range"}
	}
	return s.Int64()
}

func integer(v Value) int64 {
	switch x := v.(type) {
	case int16:
		return int64(x)
	case int32:
		return int64(x)
	}
	return v.(int64)
}

func float(v Value) float64 {
	if x, is := v.(float32); is {
		return float64(x)
	}
	return v.(float64)
}

func (a Agg) floatSum(vs []value) Value {
	var nan, pos, neg int64
	s := new(big.Float).SetPrec(6000)
	for _, x := range vs {
		switch f := float(x.v); {
		case f != f:
			nan += x.n
		case math.IsInf(f, 1):
			pos += x.n
		case math.IsInf(f, -1):
			neg += x.n
		default:
			t := new(big.Float).SetPrec(6000).SetInt64(x.n)
			s.Add(s, t.Mul(t, new(big.Float).SetFloat64(f)))
		}
	}
	special := 0.0
	switch {
	case nan > 0 || pos > 0 && neg > 0:
		special = math.NaN()
	case pos > 0:
		special = math.Inf(1)
	case neg > 0:
		special = math.Inf(-1)
	}
	_, single := vs[0].v.(float32)
	if a.Out == columnar.KindFloat32 || a.Out == 0 && single {
		f, _ := s.Float32()
		return rounded(special, float64(f), func(x float64) Value { return float32(x) })
	}
	f, _ := s.Float64()
	return rounded(special, f, func(x float64) Value { return x })
}

func rounded(special, x float64, as func(float64) Value) Value {
	switch {
	case special != 0:
		return as(special)
	case math.IsInf(x, 0):
		return Failure{"22003", "value out of range: overflow"}
	case x == 0:
		return as(0) // not -0
	}
	return as(x)
}

// deviations is the sum of the products of deviations from the means.
func (a Agg) deviations(vs []value, n int64) Value {
	x, y, xy := new(big.Rat), new(big.Rat), new(big.Rat)
	for _, v := range vs {
		f := float(v.v)
		g := f
		if a.Op == "sxy" {
			g = float(v.w)
		}
		bf, bg, m := new(big.Rat).SetFloat64(f), new(big.Rat).SetFloat64(g), new(big.Rat).SetInt64(v.n)
		if bf == nil || bg == nil {
			return math.NaN()
		}
		x.Add(x, new(big.Rat).Mul(bf, m))
		y.Add(y, new(big.Rat).Mul(bg, m))
		xy.Add(xy, bf.Mul(bf, bg.Mul(bg, m)))
	}
	k := new(big.Rat).SetInt64(n)
	xy.Sub(xy, x.Mul(x, y).Quo(x, k))
	f, _ := xy.Float64()
	return f
}
