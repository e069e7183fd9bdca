package expr

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// formatG is PostgreSQL's %g with so many significant digits.
func formatG(f float64, digits int) string {
	switch {
	case f != f:
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	s := strconv.FormatFloat(f, 'e', digits-1, 64)
	mant, e, _ := strings.Cut(s, "e")
	exp, _ := strconv.Atoi(e)
	trim := func(s string) string {
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return s
	}
	if exp < -4 || exp >= digits {
		sign := "+"
		if exp < 0 {
			sign, exp = "-", -exp
		}
		if exp < 10 {
			sign += "0"
		}
		return trim(mant) + "e" + sign + strconv.Itoa(exp)
	}
	return trim(strconv.FormatFloat(f, 'f', digits-1-exp, 64))
}

// secondText is seconds in an error message: %02g.
func secondText(f float64) string {
	s := formatG(f, 6)
	if len(s) < 2 {
		s = "0" + s
	}
	return s
}

// checkDay finds the day number of a date given by its parts; a negative year
// is one before Christ. Errors show the year as shown.
func checkDay(year, month, day int32, shown int) (int64, *pgerror.Error) {
	y := int(year)
	if y < 0 {
		y++ // 1 BC is year 0
	}
	if year == 0 || year == math.MinInt32 || month < 1 || month > 12 || day < 1 || day > 31 || int(day) > monthDays(y, int(month)) {
		return 0, pgerror.New(pgerror.DatetimeFieldOverflow, "date field value out of range: %d-%02d-%02d", shown, month, day)
	}
	d := types.CivilDay(y, int(month), int(day))
	if !types.ValidDay(d) {
		return 0, pgerror.New(pgerror.DatetimeFieldOverflow, "date out of range: %d-%02d-%02d", shown, month, day)
	}
	return d, nil
}

// checkTime finds the microseconds of a time given by its parts.
func checkTime(hour, minute int32, sec float64) (int64, *pgerror.Error) {
	us := math.RoundToEven(sec * 1e6)
	if hour < 0 || minute < 0 || minute > 59 || hour > 24 || sec != sec || us < 0 || us > types.MicrosPerMinute ||
		hour == 24 && (minute > 0 || us > 0) {
		return 0, pgerror.New(pgerror.DatetimeFieldOverflow, "time field value out of range: %d:%02d:%s", hour, minute, secondText(sec))
	}
	return int64(hour)*types.MicrosPerHour + int64(minute)*types.MicrosPerMinute + int64(us), nil
}

func makeTimestamp(a Args, i int) (int64, *pgerror.Error) {
	d, err := checkDay(a.Int32(0, i), a.Int32(1, i), a.Int32(2, i), int(a.Int32(0, i)))
	if err != nil {
		return 0, err
	}
	t, err := checkTime(a.Int32(3, i), a.Int32(4, i), a.Float64(5, i))
	if err != nil {
		return 0, err
	}
	ts := d*microsPerDay + t
	if d > 1<<27 || d < -1<<27 || !types.ValidTimestamp(ts) {
		return 0, pgerror.New(pgerror.DatetimeFieldOverflow, "timestamp out of range: %d-%02d-%02d %d:%02d:%s",
			a.Int32(0, i), a.Int32(1, i), a.Int32(2, i), a.Int32(3, i), a.Int32(4, i), secondText(a.Float64(5, i)))
	}
	return ts, nil
}

// makeZone reads the zone argument of make_timestamptz: a signed offset east of
// UTC, or a name.
func makeZone(s string) (*time.Location, *pgerror.Error) {
	if s != "" && s[0] >= '0' && s[0] <= '9' {
		return nil, pgerror.New(pgerror.InvalidParameterValue, "invalid input syntax for type numeric time zone: \"%s\"", s).
			WithHint("Numeric time zones must have \"-\" or \"+\" as first character.")
	}
	if s != "" && (s[0] == '+' || s[0] == '-') {
		if off, ok := offset(s[1:]); ok {
			if off > 15*3600+59*60+59 {
				return nil, pgerror.New(pgerror.InvalidParameterValue, "numeric time zone \"%s\" out of range", s)
			}
			if s[0] == '-' {
				off = -off
			}
			return time.FixedZone(s, off), nil
		}
	}
	loc, err := types.ParseZone(s)
	if err != nil {
		return nil, pgerror.As(err)
	}
	return loc, nil
}

// offset reads hh, hhmm, hh:mm or hh:mm:ss as seconds.
func offset(s string) (int, bool) {
	if !strings.Contains(s, ":") && len(s) > 2 {
		s = s[:len(s)-2] + ":" + s[len(s)-2:]
	}
	total, unit := 0, 3600
	for i, p := range strings.Split(s, ":") {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 || i > 2 || i > 0 && n > 59 {
			return 0, false
		}
		total += n * unit
		unit /= 60
	}
	return total, true
}

func makeTimestampTZ(x *Eval, a Args, i int) (int64, *pgerror.Error) {
	ts, err := makeTimestamp(a, i)
	if err != nil {
		return 0, err
	}
	loc := x.location()
	if len(a) == 7 {
		if loc, err = makeZone(text(a.Bytes(6, i))); err != nil {
			return 0, err
		}
	}
	if ts = types.LocalToUTC(ts, loc); !types.ValidTimestamp(ts) {
		return 0, errTimestampRange
	}
	return ts, nil
}

func makeInterval(_ *Eval, a Args, i int) (columnar.U128, *pgerror.Error) {
	secs := a.Float64(6, i)
	if secs-secs != 0 {
		return columnar.U128{}, errIntervalRange
	}
	return types.Span{
		Months: a.Int32(0, i)*12 + a.Int32(1, i),
		Days:   a.Int32(2, i)*7 + a.Int32(3, i),
		Micros: int64(a.Int32(4, i))*types.MicrosPerHour + int64(a.Int32(5, i))*types.MicrosPerMinute + cInt64(math.RoundToEven(secs*1e6)),
	}.Pack(), nil
}

// rowFixed makes a kernel of a function of one row with a fixed-width result.
func rowFixed[R columnar.Fixed](f func(x *Eval, a Args, i int) (R, *pgerror.Error)) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		dst, out := Result[R](x, n)
		for i := range dst {
			if x.skip != nil && x.skip.Get(i) {
				continue
			}
			var err *pgerror.Error
			if dst[i], err = f(x, args, i); err != nil {
				x.Fail(i, err)
			}
		}
		return out
	}
}

func registerMake() {
	type ts = []types.Type
	i4, f8 := types.Int4, types.Float8
	fn := func(name string, args ts, names []string, defaults []*Const, ret types.Type, v Volatility, k Kernel) {
		Register(Function{
			Name: name, Args: args, ArgNames: names, Defaults: defaults, Ret: ret, Strict: true,
			Volatility: v, Consts: ScalarConsts, Eval: k,
		})
	}
	fn("make_date", ts{i4, i4, i4}, []string{"year", "month", "day"}, nil, types.Date, Immutable,
		rowFixed(func(_ *Eval, a Args, i int) (int32, *pgerror.Error) {
			shown := int(a.Int32(0, i))
			if shown < 0 && shown > math.MinInt32 {
				shown++
			}
			d, err := checkDay(a.Int32(0, i), a.Int32(1, i), a.Int32(2, i), shown)
			return int32(d), err
		}))
	fn("make_time", ts{i4, i4, f8}, []string{"hour", "min", "sec"}, nil, types.Time, Immutable,
		rowFixed(func(_ *Eval, a Args, i int) (int64, *pgerror.Error) {
			return checkTime(a.Int32(0, i), a.Int32(1, i), a.Float64(2, i))
		}))
	parts := ts{i4, i4, i4, i4, i4, f8}
	names := []string{"year", "month", "mday", "hour", "min", "sec"}
	fn("make_timestamp", parts, names, nil, types.Timestamp, Immutable,
		rowFixed(func(_ *Eval, a Args, i int) (int64, *pgerror.Error) { return makeTimestamp(a, i) }))
	fn("make_timestamptz", parts, names, nil, types.TimestampTZ, Stable, rowFixed(makeTimestampTZ))
	fn("make_timestamptz", append(parts[:6:6], types.Text), append(names[:6:6], "timezone"), nil, types.TimestampTZ, Stable, rowFixed(makeTimestampTZ))
	var defaults []*Const
	for range 6 {
		defaults = append(defaults, Int4Const(0))
	}
	fn("make_interval", ts{i4, i4, i4, i4, i4, i4, f8}, []string{"years", "months", "weeks", "days", "hours", "mins", "secs"},
		append(defaults, Float8Const(0)), types.Interval, Immutable, rowFixed(makeInterval))
}

// zoneKernel makes the kernels of AT TIME ZONE: the zone is a name or an interval.
func zoneKernel[T columnar.Fixed](f func(x *Eval, loc *time.Location, v T) (T, *pgerror.Error)) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		a := Args(args)
		vals := operandOf[T](args[1], n)
		dst, out := Result[T](x, n)
		var loc *time.Location
		for i := range dst {
			if x.skip != nil && x.skip.Get(i) {
				continue
			}
			if endless(vals.at(i)) {
				dst[i] = vals.at(i)
				continue
			}
			if loc == nil || args[0].Len() != 1 {
				var err *pgerror.Error
				if loc, err = zoneArg(a, i); err != nil {
					x.Fail(i, err)
					loc = nil
					continue
				}
			}
			var err *pgerror.Error
			if dst[i], err = f(x, loc, vals.at(i)); err != nil {
				x.Fail(i, err)
			}
		}
		return out
	}
}

func zoneArg(a Args, i int) (*time.Location, *pgerror.Error) {
	if v, k := a.row(0, i); v.Kind() == columnar.KindFixed16 {
		s := types.UnpackInterval(v.U128s()[k])
		if s.Months != 0 || s.Days != 0 {
			return nil, pgerror.New(pgerror.InvalidParameterValue, "interval time zone \"%s\" must not include months or days", types.AppendInterval(nil, s))
		}
		return time.FixedZone("", -int(int32(-s.Micros/microsPerSecond))), nil
	}
	loc, err := types.ParseZone(text(a.Bytes(0, i)))
	if err != nil {
		return nil, pgerror.As(err)
	}
	return loc, nil
}

func registerZones() {
	toLocal := zoneKernel(func(x *Eval, loc *time.Location, ts int64) (int64, *pgerror.Error) {
		r := x.toLocal(ts, loc)
		if !types.ValidTimestamp(r) {
			return 0, errTimestampRange
		}
		return r, nil
	})
	fromLocal := zoneKernel(func(_ *Eval, loc *time.Location, ts int64) (int64, *pgerror.Error) {
		r := types.LocalToUTC(ts, loc)
		if !types.ValidTimestamp(r) {
			return 0, errTimestampRange
		}
		return r, nil
	})
	clock := zoneKernel(func(x *Eval, loc *time.Location, v columnar.U128) (columnar.U128, *pgerror.Error) {
		t, west := types.UnpackTimeTZ(v)
		to := int64(-types.ZoneOffset(x.nowTZ(), loc))
		return types.PackTimeTZ(dayTime(t+(int64(west)-to)*microsPerSecond), int32(to)), nil
	})
	for _, zone := range []types.Type{types.Text, types.Interval} {
		fn := func(in, out types.Type, v Volatility, k Kernel) {
			Register(Function{Name: "timezone", Args: []types.Type{zone, in}, Ret: out, Strict: true, Volatility: v, Consts: ScalarConsts, Eval: k})
		}
		fn(types.TimestampTZ, types.Timestamp, Immutable, toLocal)
		fn(types.Timestamp, types.TimestampTZ, Immutable, fromLocal)
		v := Immutable
		if zone == types.Text {
			v = Stable
		}
		fn(types.TimeTZ, types.TimeTZ, v, clock)
	}
}

// period is one operand of OVERLAPS.
type period[T any] struct {
	start, end         T
	nullStart, nullEnd bool
}

// order puts the bounds in order; a missing start is the end. It reports false
// for a period without bounds.
func (p *period[T]) order(compare func(a, b T) int) bool {
	switch {
	case p.nullStart && p.nullEnd:
		return false
	case p.nullStart:
		p.start, p.nullStart, p.nullEnd = p.end, false, true
	case !p.nullEnd && compare(p.start, p.end) > 0:
		p.start, p.end = p.end, p.start
	}
	return true
}

// overlap is three-valued OVERLAPS.
func overlap[T any](p, q period[T], compare func(a, b T) int) byte {
	if !p.order(compare) || !q.order(compare) {
		return triNull
	}
	c := compare(p.start, q.start)
	if c == 0 {
		if p.nullEnd || q.nullEnd {
			return triNull
		}
		return triTrue
	}
	if c < 0 {
		p, q = q, p
	}
	// q starts first.
	switch {
	case q.nullEnd:
		return triNull
	case compare(p.start, q.end) < 0:
		return triTrue
	case p.nullEnd:
		return triNull
	}
	return triFalse
}

// overlapKernel makes a kernel of OVERLAPS; add makes an end of a start and an
// interval where the second or fourth argument is one.
func overlapKernel[T columnar.Fixed](compare func(a, b T) int, add func(x *Eval, a T, iv columnar.U128) (T, *pgerror.Error), spans [2]bool) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		a := Args(args)
		state := make([]byte, n)
		for i := range state {
			var ps [2]period[T]
			var failed *pgerror.Error
			for k := range ps {
				p := &ps[k]
				p.nullStart, p.nullEnd = a.Null(2*k, i), a.Null(2*k+1, i)
				if !p.nullStart {
					p.start = Arg[T](a, 2*k, i)
				}
				switch {
				case !spans[k] && !p.nullEnd:
					p.end = Arg[T](a, 2*k+1, i)
				case spans[k] && (p.nullStart || p.nullEnd):
					p.nullEnd = true
				case spans[k]:
					var err *pgerror.Error
					if p.end, err = add(x, p.start, Arg[columnar.U128](a, 2*k+1, i)); err != nil {
						failed = err
					}
				}
			}
			if failed != nil {
				x.Fail(i, failed)
				continue
			}
			state[i] = overlap(ps[0], ps[1], compare)
		}
		return boolsOf(x, state)
	}
}

func registerOverlaps[T columnar.Fixed](t types.Type, compare func(a, b T) int, add func(x *Eval, a T, iv columnar.U128) (T, *pgerror.Error), v Volatility) {
	for _, spans := range [][2]bool{{false, false}, {true, true}, {true, false}, {false, true}} {
		args := []types.Type{t, t, t, t}
		vol := Immutable
		for k, s := range spans {
			if s {
				if add == nil {
					args = nil
					break
				}
				args[2*k+1] = types.Interval
				vol = v
			}
		}
		if args != nil {
			Register(Function{Name: "overlaps", Args: args, Ret: types.Bool, Volatility: vol, Consts: ScalarConsts, Eval: overlapKernel(compare, add, spans)})
		}
	}
}

func init() {
	registerMake()
	registerZones()
	registerOverlaps(types.Timestamp, compare64, timestampPlus, Immutable)
	registerOverlaps(types.TimestampTZ, compare64, timestampTZPlus, Stable)
	registerOverlaps(types.Time, compare64, func(_ *Eval, t int64, iv columnar.U128) (int64, *pgerror.Error) { return timePlus(t, iv), nil }, Immutable)
	registerOverlaps[columnar.U128](types.TimeTZ, types.CompareTimeTZ, nil, Immutable)
}
