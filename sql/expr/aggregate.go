package expr

import (
	"math"
	"math/big"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

func anyNullAt(args []*columnar.Vec, i int) bool {
	for _, a := range args {
		if a.Null(i) {
			return true
		}
	}
	return false
}

// countAcc counts rows.
type countAcc struct{ n int64 }

func (a *countAcc) Reset() { a.n = 0 }
func (a *countAcc) Add(_ *Eval, args []*columnar.Vec, i int, diff int64) error {
	if !anyNullAt(args, i) {
		a.n += diff
	}
	return nil
}
func (a *countAcc) Value(_ *Eval, out *columnar.Builder) error {
	out.Int64(a.n)
	return nil
}

// intSum sums integers into a bigint, with a wider state.
type intSum struct {
	acc decimal.Acc
	n   int64
	avg bool
	buf []byte
}

func (a *intSum) Reset() { a.acc.Reset(); a.n = 0 }
func (a *intSum) Add(_ *Eval, args []*columnar.Vec, i int, diff int64) error {
	if args[0].Null(i) {
		return nil
	}
	a.n += diff
	switch args[0].Kind() {
	case columnar.KindInt16:
		a.acc.AddInt64(int64(args[0].Int16s()[i]), diff)
	case columnar.KindInt32:
		a.acc.AddInt64(int64(args[0].Int32s()[i]), diff)
	case columnar.KindInt64:
		a.acc.AddInt64(args[0].Int64s()[i], diff)
	default:
		a.acc.Add(args[0].Bytes(i), diff)
	}
	return nil
}

func (a *intSum) Value(_ *Eval, out *columnar.Builder) error {
	if a.n == 0 {
		out.Null()
		return nil
	}
	sum, err := a.acc.AppendTo(a.buf[:0])
	if err != nil {
		return err
	}
	a.buf = sum
	if a.avg {
		var n [16]byte
		if sum, err = decimal.Div(nil, sum, decimal.AppendInt64(n[:0], a.n)); err != nil {
			return err
		}
	}
	if out.Kind() == columnar.KindBytes {
		out.Bytes(sum)
		return nil
	}
	n, err := decimal.ToInt64(sum)
	if err != nil {
		return errInt8Range
	}
	out.Int64(n)
	return nil
}

// specials counts the values that are not finite.
type specials struct{ nan, inf, negInf int64 }

func (s specials) any() bool { return s.nan+s.inf+s.negInf > 0 }

// floatSums are exact sums of two columns of floats, of their squares and of
// their product: what the float aggregates come from, rounded once.
type floatSums struct {
	n             int64
	badX, badY    specials
	sx, sy        big.Float
	sxx, syy, sxy big.Float
	two, squares  bool
	final         func(s *floatSums) (float64, bool)
}

// exactBits is a precision at which no sum of products of doubles is rounded.
const exactBits = 4608

func newFloatSums(two, squares bool, final func(s *floatSums) (float64, bool)) *floatSums {
	s := &floatSums{two: two, squares: squares, final: final}
	s.Reset()
	return s
}

func (s *floatSums) Reset() {
	*s = floatSums{two: s.two, squares: s.squares, final: s.final}
	for _, f := range []*big.Float{&s.sx, &s.sy, &s.sxx, &s.syy, &s.sxy} {
		f.SetPrec(exactBits)
	}
}

func floatAt(v *columnar.Vec, i int) float64 {
	if v.Kind() == columnar.KindFloat32 {
		return float64(v.Float32s()[i])
	}
	return v.Float64s()[i]
}

// note counts f if it is not finite.
func (s *specials) note(f float64, diff int64) bool {
	switch {
	case f != f:
		s.nan += diff
	case math.IsInf(f, 1):
		s.inf += diff
	case math.IsInf(f, -1):
		s.negInf += diff
	default:
		return false
	}
	return true
}

// sum is the sum of values of which some may not be finite.
func (s specials) sum(finite *big.Float) float64 {
	switch {
	case s.nan > 0 || s.inf > 0 && s.negInf > 0:
		return math.NaN()
	case s.inf > 0:
		return math.Inf(1)
	case s.negInf > 0:
		return math.Inf(-1)
	}
	f, _ := finite.Float64()
	return f
}

func (s *floatSums) Add(_ *Eval, args []*columnar.Vec, i int, diff int64) error {
	if anyNullAt(args, i) {
		return nil
	}
	s.n += diff
	// The arguments of the two-column aggregates are (Y, X).
	y := floatAt(args[0], i)
	x := y
	if s.two {
		x = floatAt(args[1], i)
	}
	var m, bx, by, p big.Float
	m.SetPrec(exactBits).SetInt64(diff)
	add := func(sum, a, b *big.Float) {
		p.SetPrec(exactBits).Mul(a, b)
		sum.Add(sum, p.Mul(&p, &m))
	}
	one := big.NewFloat(1)
	okX := !s.badX.note(x, diff)
	if okX {
		bx.SetPrec(exactBits).SetFloat64(x)
		add(&s.sx, &bx, one)
		if s.squares {
			add(&s.sxx, &bx, &bx)
		}
	}
	if !s.two || s.badY.note(y, diff) {
		return nil
	}
	by.SetPrec(exactBits).SetFloat64(y)
	add(&s.sy, &by, one)
	add(&s.syy, &by, &by)
	if okX {
		add(&s.sxy, &bx, &by)
	}
	return nil
}

func (s *floatSums) Value(_ *Eval, out *columnar.Builder) error {
	f, ok := s.final(s)
	switch {
	case !ok:
		out.Null()
	case out.Kind() == columnar.KindFloat32:
		r := float32(f)
		if isInf(r) && !s.badX.any() && !s.badY.any() {
			return errFloatOver
		}
		out.Float32(r)
	default:
		if isInf(f) && !s.badX.any() && !s.badY.any() {
			return errFloatOver
		}
		out.Float64(f)
	}
	return nil
}

// moment is q - a*b/n: the sum of products of deviations from the means. It is
// NaN if a value was not finite.
func (s *floatSums) moment(bad bool, q, a, b *big.Float) float64 {
	switch {
	case s.n == 0:
		return 0
	case bad:
		return math.NaN()
	}
	var p, n big.Float
	n.SetPrec(exactBits).SetInt64(s.n)
	p.SetPrec(2*exactBits).Mul(a, b)
	p.Quo(&p, &n)
	f, _ := p.Sub(q, &p).Float64()
	return f
}

// varianceOf is the final step of the variance family: of the moment sxx of n
// values. ok false: NULL.
func varianceOf(n int64, sxx float64, sample, root bool) (f float64, ok bool) {
	d := n
	if sample {
		d--
	}
	if n == 0 || d == 0 {
		return 0, false
	}
	f = sxx / float64(d)
	if root {
		f = math.Sqrt(f)
	}
	return f, true
}

// intervalSum sums intervals part by part.
type intervalSum struct {
	months, days int64
	micros       big.Int
	n            int64
	avg          bool
}

func (a *intervalSum) Reset() { *a = intervalSum{avg: a.avg} }
func (a *intervalSum) Add(_ *Eval, args []*columnar.Vec, i int, diff int64) error {
	if args[0].Null(i) {
		return nil
	}
	s := types.UnpackInterval(args[0].U128s()[i])
	a.n += diff
	a.months += diff * int64(s.Months)
	a.days += diff * int64(s.Days)
	var p big.Int
	a.micros.Add(&a.micros, p.Mul(big.NewInt(s.Micros), big.NewInt(diff)))
	return nil
}

func (a *intervalSum) Value(_ *Eval, out *columnar.Builder) error {
	if a.n == 0 {
		out.Null()
		return nil
	}
	s := types.Span{Months: int32(a.months), Days: int32(a.days), Micros: a.micros.Int64()}
	if int64(s.Months) != a.months || int64(s.Days) != a.days || !a.micros.IsInt64() {
		return errIntervalRange
	}
	if a.avg {
		v, err := divInterval(s.Pack(), float64(a.n))
		if err != nil {
			return err
		}
		out.U128(v)
		return nil
	}
	out.U128(s.Pack())
	return nil
}

// extreme keeps the least or the greatest value, of equal ones the last, as
// PostgreSQL does (of char(n) the first).
type extreme struct {
	typ  types.Type
	max  bool
	back bool // rows come from the last to the first
	best *columnar.Vec
}

// Backward tells that rows will come from the last to the first.
func (a *extreme) Backward() { a.back = true }

func (a *extreme) Reset() { a.best = nil }
func (a *extreme) Add(_ *Eval, args []*columnar.Vec, i int, _ int64) error {
	v := args[0]
	if v.Null(i) {
		return nil
	}
	if a.best != nil {
		c := types.Compare(a.typ, v, i, a.best, 0)
		if c == 0 && (a.typ.OID == types.OIDBPChar) != a.back || c != 0 && c > 0 != a.max {
			return nil
		}
	}
	a.best = ConstOf(a.typ, v, i).Val
	return nil
}

// Replaces implements Selecting.
func (a *extreme) Replaces(args []*columnar.Vec, i, j int) bool {
	c := types.Compare(a.typ, args[0], j, args[0], i)
	return c == 0 && a.typ.OID != types.OIDBPChar || c != 0 && c > 0 == a.max
}

func (a *extreme) Value(_ *Eval, out *columnar.Builder) error {
	if a.best == nil {
		out.Null()
	} else {
		out.AppendFrom(a.best, 0)
	}
	return nil
}

// boolAcc counts truths, for bool_and and bool_or.
type boolAcc struct {
	n, trues int64
	and      bool
}

func (a *boolAcc) Reset() { a.n, a.trues = 0, 0 }
func (a *boolAcc) Add(_ *Eval, args []*columnar.Vec, i int, diff int64) error {
	if args[0].Null(i) {
		return nil
	}
	a.n += diff
	if args[0].Bools()[i] {
		a.trues += diff
	}
	return nil
}

func (a *boolAcc) Value(_ *Eval, out *columnar.Builder) error {
	switch {
	case a.n == 0:
		out.Null()
	case a.and:
		out.Bool(a.trues == a.n)
	default:
		out.Bool(a.trues > 0)
	}
	return nil
}

// bitAcc folds integers bitwise, by the number of ones at each bit.
type bitAcc struct {
	n    int64
	ones [64]int64
	op   byte // '&', '|', '#'
}

func (a *bitAcc) Reset() { *a = bitAcc{op: a.op} }
func (a *bitAcc) Add(_ *Eval, args []*columnar.Vec, i int, diff int64) error {
	if args[0].Null(i) {
		return nil
	}
	a.n += diff
	v := uint64(intAt(args[0], i))
	for b := range a.ones {
		a.ones[b] += diff * int64(v>>b&1)
	}
	return nil
}

// intAt is value i of an integer vector.
func intAt(v *columnar.Vec, i int) int64 {
	switch v.Kind() {
	case columnar.KindInt16:
		return int64(v.Int16s()[i])
	case columnar.KindInt32:
		return int64(v.Int32s()[i])
	}
	return v.Int64s()[i]
}

func (a *bitAcc) Value(_ *Eval, out *columnar.Builder) error {
	if a.n == 0 {
		out.Null()
		return nil
	}
	var v uint64
	for b, ones := range a.ones {
		if a.op == '&' && ones == a.n || a.op == '|' && ones > 0 || a.op == '#' && ones&1 != 0 {
			v |= 1 << b
		}
	}
	switch out.Kind() {
	case columnar.KindInt16:
		out.Int16(int16(v))
	case columnar.KindInt32:
		out.Int32(int32(v))
	default:
		out.Int64(int64(v))
	}
	return nil
}

// numericVar is the variance family over integers and numeric, exact.
type numericVar struct {
	sum, squares decimal.Acc
	n            int64
	sample, root bool
}

func (a *numericVar) Reset() { *a = numericVar{sample: a.sample, root: a.root} }
func (a *numericVar) Add(_ *Eval, args []*columnar.Vec, i int, diff int64) error {
	v := args[0]
	if v.Null(i) {
		return nil
	}
	var enc []byte
	if v.Kind() == columnar.KindBytes {
		enc = v.Bytes(i)
	} else {
		enc = decimal.AppendInt64(nil, intAt(v, i))
	}
	square, err := decimal.Mul(nil, enc, enc)
	if err != nil {
		return err
	}
	a.n += diff
	a.sum.Add(enc, diff)
	a.squares.Add(square, diff)
	return nil
}

func (a *numericVar) Value(_ *Eval, out *columnar.Builder) error {
	sum, err := a.sum.AppendTo(nil)
	if err != nil {
		return err
	}
	squares, err := a.squares.AppendTo(nil)
	if err != nil {
		return err
	}
	v, ok, err := numericVariance(a.n, sum, squares, a.sample, a.root)
	if err != nil {
		return err
	}
	if !ok {
		out.Null()
	} else {
		out.Bytes(v)
	}
	return nil
}

// numericVariance is the final step of the variance family over exact sums:
// (n*squares - sum*sum) / (n*(n-1)), at the scale of a quotient.
func numericVariance(n int64, sum, squares []byte, sample, root bool) (v []byte, ok bool, err error) {
	if n == 0 || sample && n == 1 {
		return nil, false, nil
	}
	if decimal.IsNaN(sum) || decimal.IsInf(sum) || decimal.IsNaN(squares) || decimal.IsInf(squares) {
		return decimal.AppendNaN(nil), true, nil
	}
	count := decimal.AppendInt64(nil, n)
	a, err := decimal.Mul(nil, count, squares)
	if err != nil {
		return nil, false, err
	}
	b, err := decimal.Mul(nil, sum, sum)
	if err != nil {
		return nil, false, err
	}
	if a, err = decimal.Sub(nil, a, b); err != nil {
		return nil, false, err
	}
	if decimal.Sign(a) <= 0 {
		return decimal.AppendInt64(nil, 0), true, nil
	}
	d := n
	if sample {
		d--
	}
	if b, err = decimal.Mul(nil, count, decimal.AppendInt64(nil, d)); err != nil {
		return nil, false, err
	}
	if v, err = decimal.Div(nil, a, b); err != nil || !root {
		return v, true, err
	}
	scale, _ := decimal.Scale(v)
	v, err = sqrtNumeric(nil, v, scale)
	return v, true, err
}

// errIntervalRange is the overflow of interval arithmetic.
var errIntervalRange = pgerror.New(pgerror.DatetimeFieldOverflow, "interval out of range")
