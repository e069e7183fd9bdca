package expr

import (
	"math"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// part is the value of a field: val / 10^scale, or one of the special outcomes.
type part struct {
	val   int64
	scale int
	kind  partKind
	day   int64 // of a Julian date: val is the microsecond of the day
}

type partKind uint8

const (
	partValue partKind = iota
	partNull
	partInf
	partNegInf
	partJulian
	partWide        // val whole seconds and day microseconds beyond them
	partSpan        // the length of an interval: val months and days, day microseconds
	partUnknown     // errors from here on: no such unit,
	partUnsupported // not of this type,
	partRange       // the date is no timestamp
)

// partOfTimestamp is a field of a local timestamp.
func partOfTimestamp(u unit, ts int64) part {
	if !isFinite(ts) {
		return infinitePart(u, ts)
	}
	if p, ok := partOfClock(u, ts-floorDay(ts)*microsPerDay); ok {
		return p
	}
	if u == unitEpoch {
		return epochPart(ts)
	}
	day, t := types.SplitTimestamp(ts)
	if u == unitJulian {
		return part{kind: partJulian, day: day + 2451545, val: t}
	}
	return partOfDay(u, day)
}

func floorDay(ts int64) int64 {
	d, _ := types.SplitTimestamp(ts)
	return d
}

const unixEpochMicros = int64(types.UnixEpochSecond) * types.MicrosPerSecond

// epochPart is the Unix time of a timestamp.
func epochPart(ts int64) part {
	if r, ok := add64(ts, unixEpochMicros); ok {
		return part{val: r, scale: 6}
	}
	// PostgreSQL divides so large a number to 4 decimals.
	return part{kind: partWide, val: ts/1e6 + types.UnixEpochSecond, day: (ts%1e6 + 50) / 100 * 100}
}

// partOfClock is a field of a time of day.
func partOfClock(u unit, t int64) (part, bool) {
	switch u {
	case unitMicrosecond:
		return part{val: t % types.MicrosPerMinute}, true
	case unitMillisecond:
		return part{val: t % types.MicrosPerMinute, scale: 3}, true
	case unitSecond:
		return part{val: t % types.MicrosPerMinute, scale: 6}, true
	case unitMinute:
		return part{val: t / types.MicrosPerMinute % 60}, true
	case unitHour:
		return part{val: t / types.MicrosPerHour}, true
	}
	return part{}, false
}

// bcYear is a year as it is shown: there is no year 0.
func bcYear(y int) int64 {
	if y <= 0 {
		y--
	}
	return int64(y)
}

// partOfDay is a field of a day.
func partOfDay(u unit, day int64) part {
	y, m, d := types.DayCivil(day)
	var v int64
	switch u {
	case unitDay:
		v = int64(d)
	case unitMonth:
		v = int64(m)
	case unitQuarter:
		v = int64((m-1)/3 + 1)
	case unitWeek:
		_, w := isoWeek(day)
		v = int64(w)
	case unitYear:
		v = bcYear(y)
	case unitISOYear:
		iso, _ := isoWeek(day)
		v = bcYear(iso)
	case unitDecade:
		if y >= 0 {
			v = int64(y / 10)
		} else {
			v = int64(-((8 - (y - 1)) / 10))
		}
	case unitCentury:
		if y > 0 {
			v = int64((y + 99) / 100)
		} else {
			v = int64(-((99 - (y - 1)) / 100))
		}
	case unitMillennium:
		if y > 0 {
			v = int64((y + 999) / 1000)
		} else {
			v = int64(-((999 - (y - 1)) / 1000))
		}
	case unitDow:
		v = int64(dayOfWeek(day))
	case unitISODow:
		if v = int64(dayOfWeek(day)); v == 0 {
			v = 7
		}
	case unitDoy:
		v = day - types.CivilDay(y, 1, 1) + 1
	default:
		return part{kind: partUnsupported}
	}
	return part{val: v}
}

// infinitePart is a field of an infinity: the ones that grow are infinite, the
// ones that go round are NULL.
func infinitePart(u unit, ts int64) part {
	switch u {
	case unitYear, unitDecade, unitCentury, unitMillennium, unitJulian, unitISOYear, unitEpoch:
		if ts < 0 {
			return part{kind: partNegInf}
		}
		return part{kind: partInf}
	}
	return part{kind: partNull}
}

func partOfDate(u unit, d int32) part {
	switch {
	case u < unitDay, u >= unitZone:
		return part{kind: partUnsupported}
	case d == types.DateInfinity:
		return infinitePart(u, types.TimestampInfinity)
	case d == types.DateNegInfinity:
		return infinitePart(u, types.TimestampNegInfinity)
	case u == unitEpoch:
		return part{val: (int64(d) - types.UnixEpochDay) * secondsPerDay}
	case u == unitJulian:
		return part{val: int64(d) + 2451545}
	}
	return partOfDay(u, int64(d))
}

func partOfTimestampTZ(x *Eval, u unit, ts int64) part {
	switch u {
	case unitEpoch:
		if isFinite(ts) {
			return epochPart(ts)
		}
	case unitZone, unitZoneHour, unitZoneMinute:
		if isFinite(ts) {
			return zonePart(u, x.zone.offset(ts, x.location()))
		}
	}
	if isFinite(ts) {
		ts = x.toLocal(ts, x.location())
	}
	return partOfTimestamp(u, ts)
}

func zonePart(u unit, off int) part {
	switch u {
	case unitZone:
		return part{val: int64(off)}
	case unitZoneHour:
		return part{val: int64(off / 3600)}
	}
	return part{val: int64(off / 60 % 60)}
}

func partOfTime(u unit, t int64) part {
	if p, ok := partOfClock(u, t); ok {
		return p
	}
	if u == unitEpoch {
		return part{val: t, scale: 6}
	}
	return part{kind: partUnsupported}
}

func partOfTimeTZ(u unit, v columnar.U128) part {
	t, west := types.UnpackTimeTZ(v)
	switch u {
	case unitEpoch:
		return part{val: t + int64(west)*microsPerSecond, scale: 6}
	case unitZone, unitZoneHour, unitZoneMinute:
		return zonePart(u, -int(west))
	}
	return partOfTime(u, t)
}

func partOfSpan(u unit, s types.Span) part {
	switch u {
	case unitHour:
		return part{val: s.Micros / types.MicrosPerHour}
	case unitDay:
		return part{val: int64(s.Days)}
	case unitMonth:
		return part{val: int64(s.Months % 12)}
	case unitQuarter:
		return part{val: int64(s.Months%12/3 + 1)}
	case unitYear:
		return part{val: int64(s.Months / 12)}
	case unitDecade:
		return part{val: int64(s.Months / 12 / 10)}
	case unitCentury:
		return part{val: int64(s.Months / 12 / 100)}
	case unitMillennium:
		return part{val: int64(s.Months / 12 / 1000)}
	case unitEpoch:
		return part{kind: partSpan, val: int64(s.Months)<<32 | int64(uint32(s.Days)), day: s.Micros}
	}
	if p, ok := partOfClock(u, s.Micros); ok {
		return p
	}
	return part{kind: partUnsupported}
}

// span is the interval whose length a partSpan is.
func (p part) span() types.Span {
	return types.Span{Months: int32(p.val >> 32), Days: int32(p.val), Micros: p.day}
}

// appendNumeric appends the value as extract gives it.
func (p part) appendNumeric(dst []byte) ([]byte, error) {
	switch p.kind {
	case partInf:
		return decimal.AppendInf(dst, 1), nil
	case partNegInf:
		return decimal.AppendInf(dst, -1), nil
	case partJulian:
		frac, err := decimal.Div(nil, decimal.AppendInt64(nil, p.val), decimal.AppendInt64(nil, microsPerDay))
		if err != nil {
			return dst, err
		}
		return decimal.Add(dst, decimal.AppendInt64(nil, p.day), frac)
	case partSpan:
		s := p.span()
		// A year has 365.25 days here.
		secs := (1461*int64(s.Months/12) + 120*int64(s.Months%12) + 4*int64(s.Days)) * (secondsPerDay / 4)
		if secs < math.MaxInt64/microsPerSecond && secs > math.MinInt64/microsPerSecond {
			if v, ok := add64(secs*microsPerSecond, s.Micros); ok {
				return decimal.AppendInt64Scaled(dst, v, 6), nil
			}
		}
		return decimal.Add(dst, decimal.AppendInt64(nil, secs), decimal.AppendInt64Scaled(nil, s.Micros, 6))
	case partWide:
		return decimal.Add(dst, decimal.AppendInt64(nil, p.val), decimal.AppendInt64Scaled(nil, p.day, 6))
	}
	return decimal.AppendInt64Scaled(dst, p.val, p.scale), nil
}

// float is the value as date_part gives it.
func (p part) float() float64 {
	switch p.kind {
	case partInf:
		return math.Inf(1)
	case partNegInf:
		return math.Inf(-1)
	case partJulian:
		return float64(p.day) + float64(p.val)/float64(microsPerDay)
	case partSpan: // in the order in which PostgreSQL adds, and rounds
		s := p.span()
		r := float64(s.Micros) / microsPerSecond
		r += 365.25 * secondsPerDay * float64(s.Months/12)
		r += 30 * secondsPerDay * float64(s.Months%12)
		return r + secondsPerDay*float64(s.Days)
	case partWide:
		return float64(p.val) + float64(p.day)/microsPerSecond
	}
	switch p.scale {
	case 3:
		return float64(p.val) / 1000
	case 6:
		return float64(p.val) / 1e6
	}
	return float64(p.val)
}

// partKernel makes the kernels of extract and date_part for one type.
func partKernel[T columnar.Fixed](t types.Type, f func(x *Eval, u unit, v T) part) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		vals := operandOf[T](args[1], n)
		parts := partsBuilder{kind: c.Typ.Kind(), n: n}
		parts.init(x)
		a := Args(args)
		var u unit
		for i := range n {
			if x.skip != nil && x.skip.Get(i) {
				parts.add(x, i, part{kind: partNull})
				continue
			}
			if u == unitNone || args[0].Len() != 1 {
				u = unitOf(a.Bytes(0, i))
			}
			p := part{kind: partUnknown}
			if u != unitNone || f(x, unitYear, vals.at(i)).kind == partRange {
				p = f(x, max(u, 1), vals.at(i))
			}
			if p.kind >= partUnknown {
				x.Fail(i, p.err(a.Bytes(0, i), t))
				p.kind = partNull
			}
			parts.add(x, i, p)
		}
		return parts.build()
	}
}

// err is the error of a part that is none.
func (p part) err(name []byte, t types.Type) *pgerror.Error {
	if p.kind == partRange {
		return errDateForTS
	}
	return errUnit(name, t, p.kind == partUnsupported)
}

// partsBuilder collects parts as float8 or numeric.
type partsBuilder struct {
	kind   columnar.Kind
	n      int
	floats []float64
	vec    *columnar.Vec
	offs   []uint32
	data   []byte
	nulls  columnar.Bitmap
}

func (b *partsBuilder) init(x *Eval) {
	if b.kind == columnar.KindFloat64 {
		b.floats, b.vec = Result[float64](x, b.n)
		return
	}
	b.offs = make([]uint32, b.n+1)
	b.data = make([]byte, 0, 5*b.n)
}

func (b *partsBuilder) add(x *Eval, i int, p part) {
	null := p.kind == partNull
	if null && b.nulls == nil {
		b.nulls = columnar.NewBitmap(b.n)
	}
	if null {
		b.nulls.Set(i)
	}
	if b.kind == columnar.KindFloat64 {
		b.floats[i] = 0
		if !null {
			b.floats[i] = p.float()
		}
		return
	}
	switch {
	case null:
	case p.kind == partValue:
		b.data = decimal.AppendInt64Scaled(b.data, p.val, p.scale)
	default:
		d, err := p.appendNumeric(b.data)
		if err != nil {
			b.nulls = x.failed(b.nulls, i, b.n, err)
		} else {
			b.data = d
		}
	}
	b.offs[i+1] = uint32(len(b.data))
}

func (b *partsBuilder) build() *columnar.Vec {
	if b.kind == columnar.KindFloat64 {
		return b.vec.WithNulls(b.nulls)
	}
	return columnar.FromBytes(b.offs, b.data, b.nulls)
}

func registerParts() {
	reg := func(t types.Type, v Volatility, k Kernel) {
		args := []types.Type{types.Text, t}
		Register(Function{Name: "extract", Args: args, Ret: types.Numeric, Strict: true, Volatility: v, Consts: ScalarConsts, Eval: k})
		if t.OID != types.OIDDate {
			Register(Function{Name: "date_part", Args: args, Ret: types.Float8, Strict: true, Volatility: v, Consts: ScalarConsts, Eval: k})
		}
	}
	reg(types.Date, Immutable, partKernel(types.Date, func(_ *Eval, u unit, d int32) part { return partOfDate(u, d) }))
	reg(types.Time, Immutable, partKernel(types.Time, func(_ *Eval, u unit, t int64) part { return partOfTime(u, t) }))
	reg(types.TimeTZ, Immutable, partKernel(types.TimeTZ, func(_ *Eval, u unit, v columnar.U128) part { return partOfTimeTZ(u, v) }))
	reg(types.Timestamp, Immutable, partKernel(types.Timestamp, func(_ *Eval, u unit, ts int64) part { return partOfTimestamp(u, ts) }))
	reg(types.TimestampTZ, Stable, partKernel(types.TimestampTZ, partOfTimestampTZ))
	reg(types.Interval, Immutable, partKernel(types.Interval, func(_ *Eval, u unit, v columnar.U128) part {
		return partOfSpan(u, types.UnpackInterval(v))
	}))
	// date_part of a date is that of its midnight.
	Register(Function{
		Name: "date_part", Args: []types.Type{types.Text, types.Date}, Ret: types.Float8, Strict: true, Consts: ScalarConsts,
		Eval: partKernel(types.Timestamp, func(_ *Eval, u unit, d int32) part {
			ts, err := dateToTimestamp(nil, d)
			if err != nil {
				return part{kind: partRange}
			}
			return partOfTimestamp(u, ts)
		}),
	})
}

func init() { registerParts() }
