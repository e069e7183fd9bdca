package expr

import (
	"math"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// truncKernel makes the kernels of date_trunc for one type; f reports false for
// a unit that does not apply.
func truncKernel[T columnar.Fixed](t types.Type, f func(x *Eval, u unit, v T, loc *time.Location) (T, bool, *pgerror.Error)) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		a := Args(args)
		dst, out := Result[T](x, n)
		vals := operandOf[T](args[1], n)
		var u unit
		loc := x.location()
		if ts, ok := any(dst).([]int64); ok && args[0].Len() == 1 && len(args) == 2 && !vals.one &&
			(t.OID == types.OIDTimestamp || loc == time.UTC) && cutTimestamps(unitOf(args[0].Bytes(0)), ts, args[1].Int64s()) {
			return out
		}
		for i := range n {
			clear(dst[i : i+1])
			if x.skip != nil && x.skip.Get(i) {
				continue
			}
			if endless(vals.at(i)) {
				dst[i] = vals.at(i)
				continue
			}
			if len(args) == 3 {
				var err error
				if loc, err = types.ParseZone(text(a.Bytes(2, i))); err != nil {
					x.Fail(i, pgerror.As(err))
					continue
				}
			}
			if u == unitNone || args[0].Len() != 1 {
				if u = unitOf(a.Bytes(0, i)); !u.isDelta() {
					u = unitNone
					x.Fail(i, errUnit(a.Bytes(0, i), t, false))
					continue
				}
			}
			r, ok, err := f(x, u, vals.at(i), loc)
			if !ok {
				err = errUnit(a.Bytes(0, i), t, true)
				if t.OID == types.OIDInterval && u == unitWeek {
					err = err.WithDetail("Months usually have fractional weeks.")
				}
			}
			if err != nil {
				x.Fail(i, err)
				continue
			}
			dst[i] = r
		}
		return out
	}
}

// cutTimestamps cuts timestamps to a unit of fixed length, by a division by a
// constant; false if u is none.
func cutTimestamps(u unit, dst, src []int64) bool {
	switch u {
	case unitSecond:
		for i, ts := range src {
			m := ts % types.MicrosPerSecond
			dst[i] = cutFinite(ts, m+m>>63&types.MicrosPerSecond)
		}
	case unitMinute:
		for i, ts := range src {
			m := ts % types.MicrosPerMinute
			dst[i] = cutFinite(ts, m+m>>63&types.MicrosPerMinute)
		}
	case unitHour:
		for i, ts := range src {
			m := ts % types.MicrosPerHour
			dst[i] = cutFinite(ts, m+m>>63&types.MicrosPerHour)
		}
	case unitDay:
		for i, ts := range src {
			m := ts % microsPerDay
			dst[i] = cutFinite(ts, m+m>>63&microsPerDay)
		}
	default:
		return false
	}
	return true
}

// cutFinite is ts less m, but for the infinities.
func cutFinite(ts, m int64) int64 {
	if uint64(ts)+1<<63+1 <= 1 { // the extreme integers
		m = 0
	}
	return ts - m
}

// endless reports whether v is a timestamp at infinity.
func endless[T columnar.Fixed](v T) bool {
	ts, ok := any(v).(int64)
	return ok && !isFinite(ts)
}

func truncTimestamp(_ *Eval, u unit, ts int64, _ *time.Location) (int64, bool, *pgerror.Error) {
	r, ok, err := truncLocal(u, ts)
	if ok && err == nil {
		r, err = inRange(r, nil)
	}
	return r, ok, err
}

func truncTimestampTZ(x *Eval, u unit, ts int64, loc *time.Location) (int64, bool, *pgerror.Error) {
	off := int64(x.zone.offset(ts, loc)) * microsPerSecond
	r, ok, err := truncLocal(u, ts+off)
	if !ok || err != nil {
		return 0, ok, err
	}
	if u < unitDay {
		// Within an hour the offset stays, also where it changes that day.
		r -= off
	} else {
		r = types.LocalToUTC(r, loc)
	}
	if !types.ValidTimestamp(r) {
		return 0, true, errTimestampRange
	}
	return r, true, nil
}

func truncInterval(_ *Eval, u unit, v columnar.U128, _ *time.Location) (columnar.U128, bool, *pgerror.Error) {
	s, ok := truncSpan(u, types.UnpackInterval(v))
	return s.Pack(), ok, nil
}

func registerTrunc() {
	type ts = []types.Type
	reg := func(args ts, ret types.Type, v Volatility, k Kernel) {
		Register(Function{Name: "date_trunc", Args: args, Ret: ret, Strict: true, Volatility: v, Consts: ScalarConsts, Eval: k})
	}
	tz := truncKernel(types.TimestampTZ, truncTimestampTZ)
	reg(ts{types.Text, types.Timestamp}, types.Timestamp, Immutable, truncKernel(types.Timestamp, truncTimestamp))
	reg(ts{types.Text, types.TimestampTZ}, types.TimestampTZ, Stable, tz)
	reg(ts{types.Text, types.TimestampTZ, types.Text}, types.TimestampTZ, Stable, tz)
	reg(ts{types.Text, types.Interval}, types.Interval, Immutable, truncKernel(types.Interval, truncInterval))
}

// bin is date_bin: the start of the interval of length stride from origin that
// ts lies in.
func bin(_ *Eval, stride columnar.U128, ts, origin int64) (int64, *pgerror.Error) {
	switch s := types.UnpackInterval(stride); {
	case !isFinite(ts):
		return ts, nil
	case !isFinite(origin):
		return 0, pgerror.New(pgerror.DatetimeFieldOverflow, "origin out of range")
	case s.Months != 0:
		return 0, pgerror.New(pgerror.FeatureNotSupported, "timestamps cannot be binned into intervals containing months or years")
	default:
		days := int64(s.Days) * microsPerDay
		size, ok := add64(days, s.Micros)
		if !ok || days/microsPerDay != int64(s.Days) {
			return 0, errIntervalRange
		}
		if size <= 0 {
			return 0, pgerror.New(pgerror.DatetimeFieldOverflow, "stride must be greater than zero")
		}
		diff := ts - origin
		if (ts^origin)&(diff^ts) < 0 {
			return 0, errIntervalRange
		}
		mod := diff % size
		r := origin + (diff - mod)
		if mod < 0 {
			if r, ok = add64(r, -size); !ok {
				return 0, errTimestampRange
			}
		}
		if !types.ValidTimestamp(r) {
			return 0, errTimestampRange
		}
		return r, nil
	}
}

// age is the difference in years, months and days of the calendar.
func age(a, b int64) types.Span {
	x, y := splitCivil(a), splitCivil(b)
	sign := 1
	if a < b {
		sign = -1
	}
	years, months, days := sign*(x.year-y.year), sign*(x.month-y.month), sign*(x.day-y.day)
	micros := int64(sign) * (x.micros - y.micros)
	for micros < 0 {
		micros += microsPerDay
		days--
	}
	for days < 0 {
		if a < b {
			days += monthDays(x.year, x.month)
		} else {
			days += monthDays(y.year, y.month)
		}
		months--
	}
	for months < 0 {
		months += 12
		years--
	}
	return types.Span{Months: int32(sign * (12*years + months)), Days: int32(sign * days), Micros: int64(sign) * micros}
}

func ageTimestamp(_ *Eval, a, b int64) (columnar.U128, *pgerror.Error) {
	// -infinity has no date; infinity passes for one.
	if a == types.TimestampNegInfinity || b == types.TimestampNegInfinity {
		return columnar.U128{}, errTimestampRange
	}
	return age(a, b).Pack(), nil
}

func ageTimestampTZ(x *Eval, a, b int64) (columnar.U128, *pgerror.Error) {
	for _, ts := range []*int64{&a, &b} {
		// infinity passes for a date here, too
		if local := types.UTCToLocal(*ts, x.location()); isFinite(*ts) || *ts > 0 && local > 0 {
			*ts = local
		}
	}
	return ageTimestamp(x, a, b)
}

// nowTZ is the time of the transaction.
func (x *Eval) nowTZ() int64 {
	if x.Context == nil {
		return 0
	}
	return types.TimestampTZFromTime(x.Now)
}

// clockTZ is the time at this moment.
func (x *Eval) clockTZ() int64 {
	if x.Context == nil || x.Clock == nil {
		return x.nowTZ()
	}
	return types.TimestampTZFromTime(x.Clock())
}

// today is midnight of the current date in the session's zone, as local time.
func (x *Eval) today() int64 {
	d, _ := types.SplitTimestamp(types.UTCToLocal(x.nowTZ(), x.location()))
	return d * microsPerDay
}

func toTimestamp(_ *Eval, f float64) (int64, *pgerror.Error) {
	switch {
	case f != f:
		return 0, pgerror.New(pgerror.DatetimeFieldOverflow, "timestamp cannot be NaN")
	case math.IsInf(f, 1):
		return types.TimestampInfinity, nil
	case math.IsInf(f, -1):
		return types.TimestampNegInfinity, nil
	}
	out := func() (int64, *pgerror.Error) {
		return 0, pgerror.New(pgerror.DatetimeFieldOverflow, "timestamp out of range: \"%s\"", formatG(f, 6))
	}
	// The limits are those of the years that can be stored.
	if f < -210866803200.0 || f >= 9224318016000.0 {
		return out()
	}
	us := math.RoundToEven((f - types.UnixEpochSecond) * 1e6)
	if us < -9.3e18 || us > 9.3e18 || !types.ValidTimestamp(cInt64(us)) {
		return out()
	}
	return int64(us), nil
}

func registerClock() {
	clock := func(name string, ret types.Type, v Volatility, f func(x *Eval) int64) {
		Register(Function{Name: name, Ret: ret, Strict: true, Total: true, Volatility: v, Eval: func(_ *Call, x *Eval, _ []*columnar.Vec, n int) *columnar.Vec {
			dst, out := Result[int64](x, n)
			for i := range dst {
				dst[i] = f(x)
			}
			return out
		}})
	}
	now := func(x *Eval) int64 { return x.nowTZ() }
	for _, name := range []string{"now", "transaction_timestamp", "current_timestamp", "proctime"} {
		clock(name, types.TimestampTZ, Stable, now)
	}
	clock("statement_timestamp", types.TimestampTZ, Stable, func(x *Eval) int64 {
		if x.Context == nil || x.Statement.IsZero() {
			return x.nowTZ()
		}
		return types.TimestampTZFromTime(x.Statement)
	})
	clock("clock_timestamp", types.TimestampTZ, Volatile, (*Eval).clockTZ)
	clock("localtimestamp", types.Timestamp, Stable, func(x *Eval) int64 { return types.UTCToLocal(x.nowTZ(), x.location()) })
	clock("localtime", types.Time, Stable, func(x *Eval) int64 {
		_, t := types.SplitTimestamp(types.UTCToLocal(x.nowTZ(), x.location()))
		return t
	})
	Register(Function{Name: "current_date", Ret: types.Date, Strict: true, Total: true, Volatility: Stable, Eval: func(_ *Call, x *Eval, _ []*columnar.Vec, n int) *columnar.Vec {
		dst, out := Result[int32](x, n)
		for i := range dst {
			dst[i] = int32(floorDay(x.today()))
		}
		return out
	}})
	Register(Function{Name: "current_time", Ret: types.TimeTZ, Strict: true, Total: true, Volatility: Stable, Eval: func(_ *Call, x *Eval, _ []*columnar.Vec, n int) *columnar.Vec {
		dst, out := Result[columnar.U128](x, n)
		off := types.ZoneOffset(x.nowTZ(), x.location())
		_, t := types.SplitTimestamp(types.UTCToLocal(x.nowTZ(), x.location()))
		for i := range dst {
			dst[i] = types.PackTimeTZ(t, int32(-off))
		}
		return out
	}})
	Register(Function{Name: "timeofday", Ret: types.Text, Strict: true, Total: true, Volatility: Volatile, Eval: func(_ *Call, x *Eval, _ []*columnar.Vec, n int) *columnar.Vec {
		out := columnar.NewBuilder(columnar.KindBytes, n)
		for range n {
			t := time.Time{}
			if x.Context != nil && x.Clock != nil {
				t = x.Clock()
			} else if x.Context != nil {
				t = x.Now
			}
			out.String(t.In(x.location()).Format("Mon Jan 02 15:04:05.000000 2006 MST"))
		}
		return out.Build()
	}})
}

func registerAges() {
	type ts = []types.Type
	stamp, stz, iv := types.Timestamp, types.TimestampTZ, types.Interval
	fn := func(name string, args ts, ret types.Type, v Volatility, k Kernel) {
		Register(Function{Name: name, Args: args, Ret: ret, Strict: true, Volatility: v, Consts: ScalarConsts, Eval: k})
	}
	fn("age", ts{stamp, stamp}, iv, Immutable, try2(ageTimestamp))
	Register(Function{Name: "age", Args: ts{stz, stz}, Ret: iv, Strict: true, Styled: true, Consts: ScalarConsts, Eval: try2(ageTimestampTZ)})
	fn("age", ts{stamp}, iv, Stable, try1(func(x *Eval, a int64) (columnar.U128, *pgerror.Error) { return ageTimestamp(x, x.today(), a) }))
	fn("age", ts{stz}, iv, Stable, try1(func(x *Eval, a int64) (columnar.U128, *pgerror.Error) {
		return ageTimestampTZ(x, types.LocalToUTC(x.today(), x.location()), a)
	}))
	fn("to_timestamp", ts{types.Float8}, stz, Immutable, try1(toTimestamp))
	isFin := map1(isFinite)
	fn("isfinite", ts{types.Date}, types.Bool, Immutable, map1(dateFinite))
	fn("isfinite", ts{stamp}, types.Bool, Immutable, isFin)
	fn("isfinite", ts{stz}, types.Bool, Immutable, isFin)
	fn("isfinite", ts{iv}, types.Bool, Immutable, map1(func(columnar.U128) bool { return true }))
	bins := func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		stride, at, origin := operandOf[columnar.U128](args[0], n), operandOf[int64](args[1], n), operandOf[int64](args[2], n)
		dst, out := Result[int64](x, n)
		for i := range dst {
			var err *pgerror.Error
			if dst[i], err = bin(x, stride.at(i), at.at(i), origin.at(i)); err != nil {
				x.Fail(i, err)
			}
		}
		return out
	}
	fn("date_bin", ts{iv, stamp, stamp}, stamp, Immutable, bins)
	fn("date_bin", ts{iv, stz, stz}, stz, Immutable, bins)
}

func init() {
	registerTrunc()
	registerClock()
	registerAges()
}
