package expr

import (
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

var (
	errTimestampRange = pgerror.New(pgerror.DatetimeFieldOverflow, "timestamp out of range")
	errDateRange      = pgerror.New(pgerror.DatetimeFieldOverflow, "date out of range")
	errDateForTS      = pgerror.New(pgerror.DatetimeFieldOverflow, "date out of range for timestamp")
	errSubDates       = pgerror.New(pgerror.DatetimeFieldOverflow, "cannot subtract infinite dates")
	errSubTimestamps  = pgerror.New(pgerror.DatetimeFieldOverflow, "cannot subtract infinite timestamps")
)

// isFinite reports whether a timestamp is none of the infinities.
func isFinite(ts int64) bool {
	return ts != types.TimestampInfinity && ts != types.TimestampNegInfinity
}

func dateFinite(d int32) bool { return d != types.DateInfinity && d != types.DateNegInfinity }

// location is the session's time zone.
func (x *Eval) location() *time.Location {
	if x.Context == nil || x.Location == nil {
		return time.UTC
	}
	return x.Location
}

// civil is a timestamp taken apart; year 0 is 1 BC.
type civil struct {
	year, month, day int
	micros           int64 // of the day
}

func splitCivil(ts int64) civil {
	d, t := types.SplitTimestamp(ts)
	c := civil{micros: t}
	c.year, c.month, c.day = types.DayCivil(d)
	return c
}

// join is the timestamp of c, which may be out of range.
func (c civil) join() (int64, *pgerror.Error) {
	d := types.CivilDay(c.year, c.month, c.day)
	hi := d * microsPerDay
	ts, ok := add64(hi, c.micros)
	if !ok || hi/microsPerDay != d {
		return 0, errTimestampRange
	}
	return ts, nil
}

// inRange fails for what no timestamp can be.
func inRange(ts int64, err *pgerror.Error) (int64, *pgerror.Error) {
	if err != nil || !types.ValidTimestamp(ts) || !isFinite(ts) {
		return 0, errTimestampRange
	}
	return ts, nil
}

func isLeap(y int) bool { return y%4 == 0 && (y%100 != 0 || y%400 == 0) }

func monthDays(y, m int) int {
	switch m {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if isLeap(y) {
			return 29
		}
		return 28
	}
	return 31
}

// addMonths and addDays shift a local timestamp.
func addMonths(ts int64, n int32) (int64, *pgerror.Error) {
	c := splitCivil(ts)
	m := c.month - 1 + int(n)
	c.year += m / 12
	if m %= 12; m < 0 {
		m += 12
		c.year--
	}
	c.month = m + 1
	c.day = min(c.day, monthDays(c.year, c.month))
	return c.join()
}

func addDays(ts int64, n int32) (int64, *pgerror.Error) {
	d, t := types.SplitTimestamp(ts)
	c := civil{micros: t}
	c.year, c.month, c.day = types.DayCivil(d + int64(n))
	return c.join()
}

func addMicros(ts, micros int64) (int64, *pgerror.Error) {
	r, ok := add64(ts, micros)
	if !ok || !types.ValidTimestamp(r) || !isFinite(r) {
		return 0, errTimestampRange
	}
	return r, nil
}

// AddInterval is timestamp + interval.
func AddInterval(ts int64, s types.Span) (int64, *pgerror.Error) {
	if !isFinite(ts) {
		return ts, nil
	}
	var err *pgerror.Error
	if s.Months != 0 {
		if ts, err = inRange(addMonths(ts, s.Months)); err != nil {
			return 0, err
		}
	}
	if s.Days != 0 {
		if ts, err = inRange(addDays(ts, s.Days)); err != nil {
			return 0, err
		}
	}
	return addMicros(ts, s.Micros)
}

// AddIntervalTZ is timestamptz + interval: months and days are those of the
// clock in loc.
func AddIntervalTZ(ts int64, s types.Span, loc *time.Location) (int64, *pgerror.Error) {
	if !isFinite(ts) {
		return ts, nil
	}
	if s.Months != 0 {
		local, err := addMonths(types.UTCToLocal(ts, loc), s.Months)
		if ts, err = inRange(types.LocalToUTC(local, loc), err); err != nil {
			return 0, err
		}
	}
	if s.Days != 0 {
		local, err := addDays(types.UTCToLocal(ts, loc), s.Days)
		if ts, err = inRange(types.LocalToUTC(local, loc), err); err != nil {
			return 0, err
		}
	}
	return addMicros(ts, s.Micros)
}

func timestampPlus(_ *Eval, ts int64, iv columnar.U128) (int64, *pgerror.Error) {
	return AddInterval(ts, types.UnpackInterval(iv))
}

func timestampMinus(_ *Eval, ts int64, iv columnar.U128) (int64, *pgerror.Error) {
	s := types.UnpackInterval(iv)
	return AddInterval(ts, types.Span{Months: -s.Months, Days: -s.Days, Micros: -s.Micros})
}

func timestampTZPlus(x *Eval, ts int64, iv columnar.U128) (int64, *pgerror.Error) {
	return AddIntervalTZ(ts, types.UnpackInterval(iv), x.location())
}

func timestampTZMinus(x *Eval, ts int64, iv columnar.U128) (int64, *pgerror.Error) {
	s := types.UnpackInterval(iv)
	return AddIntervalTZ(ts, types.Span{Months: -s.Months, Days: -s.Days, Micros: -s.Micros}, x.location())
}

func timestampDiff(_ *Eval, a, b int64) (columnar.U128, *pgerror.Error) {
	if !isFinite(a) || !isFinite(b) {
		return columnar.U128{}, errSubTimestamps
	}
	t := a - b
	d := t / microsPerDay
	return types.Span{Days: int32(d), Micros: t - d*microsPerDay}.Pack(), nil
}

// dateToTimestamp is midnight of a date.
func dateToTimestamp(_ *Eval, d int32) (int64, *pgerror.Error) {
	switch d {
	case types.DateInfinity:
		return types.TimestampInfinity, nil
	case types.DateNegInfinity:
		return types.TimestampNegInfinity, nil
	}
	hi := int64(d) * microsPerDay
	if hi/microsPerDay != int64(d) || !types.ValidTimestamp(hi) {
		return 0, errDateForTS
	}
	return hi, nil
}

// dateToTimestampTZ is midnight of a date in the session's zone.
func dateToTimestampTZ(x *Eval, d int32) (int64, *pgerror.Error) {
	ts, err := dateToTimestamp(x, d)
	if err != nil || !isFinite(ts) {
		return ts, err
	}
	ts = types.LocalToUTC(ts, x.location())
	if !types.ValidTimestamp(ts) {
		return 0, errDateForTS
	}
	return ts, nil
}

func timestampToTZ(x *Eval, ts int64) (int64, *pgerror.Error) {
	if !isFinite(ts) {
		return ts, nil
	}
	r := types.LocalToUTC(ts, x.location())
	if !types.ValidTimestamp(r) {
		return 0, errTimestampRange
	}
	return r, nil
}

func timestampFromTZ(x *Eval, ts int64) (int64, *pgerror.Error) {
	if !isFinite(ts) {
		return ts, nil
	}
	r := x.toLocal(ts, x.location())
	if !types.ValidTimestamp(r) {
		return 0, errTimestampRange
	}
	return r, nil
}

func timestampToDate(_ *Eval, ts int64) (int32, *pgerror.Error) {
	switch ts {
	case types.TimestampInfinity:
		return types.DateInfinity, nil
	case types.TimestampNegInfinity:
		return types.DateNegInfinity, nil
	}
	d, _ := types.SplitTimestamp(ts)
	return int32(d), nil
}

func timestampTZToDate(x *Eval, ts int64) (int32, *pgerror.Error) {
	if isFinite(ts) {
		ts = x.toLocal(ts, x.location())
	}
	return timestampToDate(x, ts)
}

func datePlusDays(_ *Eval, d, n int32) (int32, *pgerror.Error) {
	if !dateFinite(d) {
		return d, nil
	}
	r := int64(d) + int64(n)
	if !types.ValidDay(r) {
		return 0, errDateRange
	}
	return int32(r), nil
}

func dateMinusDays(_ *Eval, d, n int32) (int32, *pgerror.Error) {
	if !dateFinite(d) {
		return d, nil
	}
	r := int64(d) - int64(n)
	if !types.ValidDay(r) {
		return 0, errDateRange
	}
	return int32(r), nil
}

func dateDiff(_ *Eval, a, b int32) (int32, *pgerror.Error) {
	if !dateFinite(a) || !dateFinite(b) {
		return 0, errSubDates
	}
	return a - b, nil
}

func datePlusTime(x *Eval, d int32, t int64) (int64, *pgerror.Error) {
	ts, err := dateToTimestamp(x, d)
	if err != nil || !isFinite(ts) {
		return ts, err
	}
	if ts += t; !types.ValidTimestamp(ts) {
		return 0, errTimestampRange
	}
	return ts, nil
}

func datePlusTimeTZ(x *Eval, d int32, v columnar.U128) (int64, *pgerror.Error) {
	ts, err := dateToTimestamp(x, d)
	if err != nil || !isFinite(ts) {
		return ts, err
	}
	t, west := types.UnpackTimeTZ(v)
	if ts += t + int64(west)*microsPerSecond; !types.ValidTimestamp(ts) {
		return 0, errDateForTS
	}
	return ts, nil
}

// dayTime wraps microseconds into a day.
func dayTime(t int64) int64 {
	if t %= microsPerDay; t < 0 {
		t += microsPerDay
	}
	return t
}

func timePlus(t int64, iv columnar.U128) int64 {
	return dayTime(t + types.UnpackInterval(iv).Micros) // an overflow wraps
}

func timeMinus(t int64, iv columnar.U128) int64 {
	return dayTime(t - types.UnpackInterval(iv).Micros)
}

func timeTZShift(f func(t int64, iv columnar.U128) int64) func(v, iv columnar.U128) columnar.U128 {
	return func(v, iv columnar.U128) columnar.U128 {
		t, west := types.UnpackTimeTZ(v)
		return types.PackTimeTZ(f(t, iv), west)
	}
}

func timeDiff(a, b int64) columnar.U128 { return types.Span{Micros: a - b}.Pack() }

func timestampTime(_ *Eval, ts int64) (int64, *pgerror.Error) {
	_, t := types.SplitTimestamp(ts)
	return t, nil
}

func intervalTime(iv columnar.U128) int64 { return dayTime(types.UnpackInterval(iv).Micros) }

// swap exchanges the arguments of a function.
func swap[A, B, R any](f func(x *Eval, a A, b B) (R, *pgerror.Error)) func(x *Eval, b B, a A) (R, *pgerror.Error) {
	return func(x *Eval, b B, a A) (R, *pgerror.Error) { return f(x, a, b) }
}

func registerDateOps() {
	type ts = []types.Type
	op := func(name string, a, b, ret types.Type, v Volatility, k Kernel) {
		Register(Function{Name: name, Operator: true, Args: ts{a, b}, Ret: ret, Strict: true, Volatility: v, Consts: ScalarConsts, Eval: k})
	}
	d, t, ttz, stamp, stz, iv, i4 := types.Date, types.Time, types.TimeTZ, types.Timestamp, types.TimestampTZ, types.Interval, types.Int4
	im, st := Immutable, Stable
	op("+", d, i4, d, im, try2(datePlusDays))
	op("+", i4, d, d, im, try2(swap(datePlusDays)))
	op("-", d, i4, d, im, try2(dateMinusDays))
	op("-", d, d, i4, im, try2(dateDiff))
	op("+", d, t, stamp, im, try2(datePlusTime))
	op("+", t, d, stamp, im, try2(swap(datePlusTime)))
	op("+", d, ttz, stz, im, try2(datePlusTimeTZ))
	op("+", ttz, d, stz, im, try2(swap(datePlusTimeTZ)))
	viaTimestamp := func(f func(x *Eval, ts int64, iv columnar.U128) (int64, *pgerror.Error)) func(x *Eval, d int32, iv columnar.U128) (int64, *pgerror.Error) {
		return func(x *Eval, d int32, iv columnar.U128) (int64, *pgerror.Error) {
			ts, err := dateToTimestamp(x, d)
			if err != nil {
				return 0, err
			}
			return f(x, ts, iv)
		}
	}
	op("+", d, iv, stamp, im, try2(viaTimestamp(timestampPlus)))
	op("+", iv, d, stamp, im, try2(swap(viaTimestamp(timestampPlus))))
	op("-", d, iv, stamp, im, try2(viaTimestamp(timestampMinus)))
	op("+", stamp, iv, stamp, im, try2(timestampPlus))
	op("+", iv, stamp, stamp, im, try2(swap(timestampPlus)))
	op("-", stamp, iv, stamp, im, try2(timestampMinus))
	op("+", stz, iv, stz, st, try2(timestampTZPlus))
	op("+", iv, stz, stz, st, try2(swap(timestampTZPlus)))
	op("-", stz, iv, stz, st, try2(timestampTZMinus))
	op("-", stamp, stamp, iv, im, try2(timestampDiff))
	op("-", stz, stz, iv, im, try2(timestampDiff))
	op("+", t, iv, t, im, map2(timePlus))
	op("+", iv, t, t, im, map2(func(iv columnar.U128, t int64) int64 { return timePlus(t, iv) }))
	op("-", t, iv, t, im, map2(timeMinus))
	op("-", t, t, iv, im, map2(timeDiff))
	op("+", ttz, iv, ttz, im, map2(timeTZShift(timePlus)))
	op("+", iv, ttz, ttz, im, map2(func(iv, v columnar.U128) columnar.U128 { return timeTZShift(timePlus)(v, iv) }))
	op("-", ttz, iv, ttz, im, map2(timeTZShift(timeMinus)))
}

func registerDateCasts() {
	i, a := CastImplicit, CastAssignment
	d, t, ttz, stamp, stz, iv := types.Date, types.Time, types.TimeTZ, types.Timestamp, types.TimestampTZ, types.Interval
	pair := func(a, b, ret types.Type, v Volatility, k Kernel) {
		Register(Function{Name: typName(ret.OID), Args: []types.Type{a, b}, Ret: ret, Strict: true, Volatility: v, Consts: ScalarConsts, Eval: k})
	}
	pair(d, t, stamp, Immutable, try2(datePlusTime))
	pair(d, ttz, stz, Immutable, try2(datePlusTimeTZ))
	pair(d, t, stz, Stable, try2(func(x *Eval, d int32, t int64) (int64, *pgerror.Error) {
		ts, err := datePlusTime(x, d, t)
		if err != nil {
			return 0, err
		}
		return timestampToTZ(x, ts)
	}))
	castFn(d, stamp, i, false, try1(dateToTimestamp))
	stableCast(d, stz, i, try1(dateToTimestampTZ))
	castFn(stamp, d, a, true, try1(timestampToDate))
	stableCast(stz, d, a, try1(timestampTZToDate))
	stableCast(stamp, stz, i, try1(timestampToTZ))
	stableCast(stz, stamp, a, try1(timestampFromTZ))
	castFn(stamp, t, a, true, finiteOnly(timestampTime))
	stableCast(stz, t, a, finiteOnly(func(x *Eval, ts int64) (int64, *pgerror.Error) {
		return timestampTime(x, x.toLocal(ts, x.location()))
	}))
	stableCast(stz, ttz, a, finiteOnly(func(x *Eval, ts int64) (columnar.U128, *pgerror.Error) {
		off := x.zone.offset(ts, x.location())
		_, micros := types.SplitTimestamp(ts + int64(off)*microsPerSecond)
		return types.PackTimeTZ(micros, int32(-off)), nil
	}))
	castFn(t, iv, i, true, map1(func(t int64) columnar.U128 { return types.Span{Micros: t}.Pack() }))
	castFn(iv, t, a, true, map1(intervalTime))
	castFn(ttz, t, a, true, map1(func(v columnar.U128) int64 { t, _ := types.UnpackTimeTZ(v); return t }))
	stableCast(t, ttz, i, try1(func(x *Eval, t int64) (columnar.U128, *pgerror.Error) {
		// The zone's offset is that of today at this time.
		day, _ := types.SplitTimestamp(types.UTCToLocal(x.nowTZ(), x.location()))
		off := types.LocalOffset(day*microsPerDay+t, x.location())
		return types.PackTimeTZ(t, int32(-off)), nil
	}))
}

// finiteOnly makes a kernel of a function of timestamps that is NULL for the
// infinities.
func finiteOnly[R columnar.Fixed](f func(x *Eval, ts int64) (R, *pgerror.Error)) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		dst, out := Result[R](x, n)
		var nulls columnar.Bitmap
		for i, ts := range args[0].Int64s()[:n] {
			if !isFinite(ts) {
				if nulls == nil {
					nulls = columnar.NewBitmap(n)
				}
				nulls.Set(i)
				clear(dst[i : i+1])
				continue
			}
			var err *pgerror.Error
			if dst[i], err = f(x, ts); err != nil {
				x.Fail(i, err)
			}
		}
		if nulls != nil {
			return out.WithNulls(nulls)
		}
		return out
	}
}

// Comparisons of a date with timestamps: a date beyond their range is greater
// or less than all of them.
func dateAsTimestamp(d int32) int64 {
	switch d {
	case types.DateInfinity:
		return types.TimestampInfinity
	case types.DateNegInfinity:
		return types.TimestampNegInfinity
	}
	const last = 106751982 // 294276-12-31, the last date that is a timestamp too
	if d > last {
		return types.TimestampInfinity - 1
	}
	return int64(d) * microsPerDay
}

func compare64(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func localToTZ(x *Eval, ts int64) int64 {
	if !isFinite(ts) || ts == types.TimestampInfinity-1 {
		return ts
	}
	return types.LocalToUTC(ts, x.location())
}

func registerDateCompare() {
	d, stamp, stz := types.Date, types.Timestamp, types.TimestampTZ
	registerCompare(d, stamp, Immutable, cmpWith(func(_ *Eval, a int32, b int64) int { return compare64(dateAsTimestamp(a), b) }))
	registerCompare(stamp, d, Immutable, cmpWith(func(_ *Eval, a int64, b int32) int { return compare64(a, dateAsTimestamp(b)) }))
	registerCompare(d, stz, Stable, cmpWith(func(x *Eval, a int32, b int64) int { return compare64(localToTZ(x, dateAsTimestamp(a)), b) }))
	registerCompare(stz, d, Stable, cmpWith(func(x *Eval, a int64, b int32) int { return compare64(a, localToTZ(x, dateAsTimestamp(b))) }))
	registerCompare(stamp, stz, Stable, cmpWith(func(x *Eval, a, b int64) int { return compare64(localToTZ(x, a), b) }))
	registerCompare(stz, stamp, Stable, cmpWith(func(x *Eval, a, b int64) int { return compare64(a, localToTZ(x, b)) }))
}

func init() {
	registerDateOps()
	registerDateCasts()
	registerDateCompare()
}
