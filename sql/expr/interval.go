package expr

import (
	"math"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

const (
	microsPerSecond = types.MicrosPerSecond
	microsPerDay    = types.MicrosPerDay
	secondsPerDay   = 86400
	daysPerMonth    = 30
)

func add32(a, b int32) (int32, bool) {
	r := int64(a) + int64(b)
	return int32(r), int64(int32(r)) == r
}

func add64(a, b int64) (int64, bool) {
	r := a + b
	return r, (r^a)&(r^b) >= 0
}

func addSpans(a, b types.Span) (types.Span, *pgerror.Error) {
	m, ok1 := add32(a.Months, b.Months)
	d, ok2 := add32(a.Days, b.Days)
	t, ok3 := add64(a.Micros, b.Micros)
	if !ok1 || !ok2 || !ok3 {
		return a, errIntervalRange
	}
	return types.Span{Months: m, Days: d, Micros: t}, nil
}

func addInterval(_ *Eval, a, b columnar.U128) (columnar.U128, *pgerror.Error) {
	s, err := addSpans(types.UnpackInterval(a), types.UnpackInterval(b))
	return s.Pack(), err
}

func subInterval(_ *Eval, a, b columnar.U128) (columnar.U128, *pgerror.Error) {
	x, y := types.UnpackInterval(a), types.UnpackInterval(b)
	m, d, t := int64(x.Months)-int64(y.Months), int64(x.Days)-int64(y.Days), x.Micros-y.Micros
	if int64(int32(m)) != m || int64(int32(d)) != d || (x.Micros^y.Micros)&(t^x.Micros) < 0 {
		return a, errIntervalRange
	}
	return types.Span{Months: int32(m), Days: int32(d), Micros: t}.Pack(), nil
}

func negSpan(s types.Span) (types.Span, *pgerror.Error) {
	if s.Months == math.MinInt32 || s.Days == math.MinInt32 || s.Micros == math.MinInt64 {
		return s, errIntervalRange
	}
	return types.Span{Months: -s.Months, Days: -s.Days, Micros: -s.Micros}, nil
}

func negInterval(_ *Eval, a columnar.U128) (columnar.U128, *pgerror.Error) {
	s, err := negSpan(types.UnpackInterval(a))
	return s.Pack(), err
}

// roundMicro rounds seconds to microseconds.
func roundMicro(f float64) float64 { return math.RoundToEven(f*1e6) / 1e6 }

// cInt32 and cInt64 convert as a C compiler's cast does on x86: what does not
// fit becomes the least integer.
func cInt32(f float64) int32 {
	if !(f > math.MinInt32-1 && f < math.MaxInt32+1) {
		return math.MinInt32
	}
	return int32(f)
}

func cInt64(f float64) int64 {
	if !(f >= math.MinInt64 && f < -math.MinInt64) {
		return math.MinInt64
	}
	return int64(f)
}

// cascade spreads the fractions of months and days that a product or quotient
// left over to the smaller units; r has the whole months and days.
func cascade(r types.Span, months, days, micros float64) (types.Span, float64) {
	rest := roundMicro((months - float64(r.Months)) * daysPerMonth)
	secs := roundMicro((days - float64(r.Days) + rest - float64(cInt32(rest))) * secondsPerDay)
	if math.Abs(secs) >= secondsPerDay {
		whole := cInt32(secs / secondsPerDay)
		r.Days += whole
		secs -= float64(whole) * secondsPerDay
	}
	r.Days += cInt32(rest)
	return r, math.RoundToEven(micros + secs*microsPerSecond)
}

// scaleInterval makes an interval of months, days and microseconds that may
// have fractions.
func scaleInterval(months, days, micros float64) (columnar.U128, *pgerror.Error) {
	for _, v := range []float64{months, days} {
		if !(v >= math.MinInt32 && v < math.MaxInt32+1) {
			return columnar.U128{}, errIntervalRange
		}
	}
	r, t := cascade(types.Span{Months: int32(months), Days: int32(days)}, months, days, micros)
	if t != t || t < math.MinInt64 || t >= -math.MinInt64 {
		return columnar.U128{}, errIntervalRange
	}
	r.Micros = int64(t)
	return r.Pack(), nil
}

func mulInterval(_ *Eval, a columnar.U128, f float64) (columnar.U128, *pgerror.Error) {
	s := types.UnpackInterval(a)
	return scaleInterval(float64(s.Months)*f, float64(s.Days)*f, float64(s.Micros)*f)
}

func divInterval(a columnar.U128, f float64) (columnar.U128, *pgerror.Error) {
	if f == 0 {
		return a, errDivZero
	}
	s := types.UnpackInterval(a)
	return scaleInterval(float64(s.Months)/f, float64(s.Days)/f, float64(s.Micros)/f)
}

func justifyHours(_ *Eval, a columnar.U128) (columnar.U128, *pgerror.Error) {
	s := types.UnpackInterval(a)
	whole := s.Micros / microsPerDay
	s.Micros -= whole * microsPerDay
	d, ok := add32(s.Days, int32(whole))
	if !ok {
		return a, errIntervalRange
	}
	s.Days = d
	alignTime(&s)
	return s.Pack(), nil
}

// alignTime gives days and time of day the same sign.
func alignTime(s *types.Span) {
	if s.Days > 0 && s.Micros < 0 {
		s.Micros += microsPerDay
		s.Days--
	} else if s.Days < 0 && s.Micros > 0 {
		s.Micros -= microsPerDay
		s.Days++
	}
}

// daysToMonths moves whole months of 30 days from days to months.
func daysToMonths(s *types.Span) bool {
	whole := s.Days / daysPerMonth
	m, ok := add32(s.Months, whole)
	s.Days -= whole * daysPerMonth
	s.Months = m
	return ok
}

func justifyDays(_ *Eval, a columnar.U128) (columnar.U128, *pgerror.Error) {
	s := types.UnpackInterval(a)
	if !daysToMonths(&s) {
		return a, errIntervalRange
	}
	if s.Months > 0 && s.Days < 0 {
		s.Days += daysPerMonth
		s.Months--
	} else if s.Months < 0 && s.Days > 0 {
		s.Days -= daysPerMonth
		s.Months++
	}
	return s.Pack(), nil
}

func justifyInterval(_ *Eval, a columnar.U128) (columnar.U128, *pgerror.Error) {
	s := types.UnpackInterval(a)
	// Days first where both have one sign, so that the days cannot overflow.
	if s.Days > 0 && s.Micros > 0 || s.Days < 0 && s.Micros < 0 {
		if !daysToMonths(&s) {
			return a, errIntervalRange
		}
	}
	whole := s.Micros / microsPerDay
	s.Micros -= whole * microsPerDay
	s.Days += int32(whole)
	if !daysToMonths(&s) {
		return a, errIntervalRange
	}
	if s.Months > 0 && (s.Days < 0 || s.Days == 0 && s.Micros < 0) {
		s.Days += daysPerMonth
		s.Months--
	} else if s.Months < 0 && (s.Days > 0 || s.Days == 0 && s.Micros > 0) {
		s.Days -= daysPerMonth
		s.Months++
	}
	alignTime(&s)
	return s.Pack(), nil
}

func init() {
	iv, f8 := types.Interval, types.Float8
	type ts = []types.Type
	op := func(name string, args ts, ret types.Type, k Kernel) {
		Register(Function{Name: name, Operator: true, Args: args, Ret: ret, Strict: true, Consts: ScalarConsts, Eval: k})
	}
	op("+", ts{iv, iv}, iv, try2(addInterval))
	op("-", ts{iv, iv}, iv, try2(subInterval))
	op("-", ts{iv}, iv, try1(negInterval))
	op("*", ts{iv, f8}, iv, try2(mulInterval))
	op("*", ts{f8, iv}, iv, try2(func(x *Eval, f float64, a columnar.U128) (columnar.U128, *pgerror.Error) {
		return mulInterval(x, a, f)
	}))
	op("/", ts{iv, f8}, iv, try2(func(_ *Eval, a columnar.U128, f float64) (columnar.U128, *pgerror.Error) {
		return divInterval(a, f)
	}))
	fn := func(name string, k Kernel) {
		Register(Function{Name: name, Args: ts{iv}, Ret: iv, Strict: true, Eval: k})
	}
	fn("justify_hours", try1(justifyHours))
	fn("justify_days", try1(justifyDays))
	fn("justify_interval", try1(justifyInterval))
}
