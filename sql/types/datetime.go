package types

import (
	"bytes"
	"math"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// The units and limits of date/time values. Day 0 and microsecond 0 are
// 2000-01-01 00:00.
const (
	MicrosPerSecond = 1_000_000
	MicrosPerMinute = 60 * MicrosPerSecond
	MicrosPerHour   = 60 * MicrosPerMinute
	MicrosPerDay    = 24 * MicrosPerHour

	// DateInfinity and its like stand for infinity and -infinity.
	DateInfinity         = math.MaxInt32
	DateNegInfinity      = math.MinInt32
	TimestampInfinity    = math.MaxInt64
	TimestampNegInfinity = math.MinInt64

	// UnixEpochDay is 1970-01-01.
	UnixEpochDay = -10957
	// UnixEpochSecond is the Unix time of 2000-01-01 00:00 UTC.
	UnixEpochSecond = 946684800

	minDay         = -2451545            // 4714-11-24 BC
	endDay         = 2145031949          // 5874898-01-01
	minTimestamp   = -211813488000000000 // 4714-11-24 BC
	endTimestamp   = 9223371331200000000 // 294277-01-01
	maxZoneSeconds = 16 * 3600
)

// validDate reports whether d is a date that can be stored, or an infinity.
func validDate(d int32) bool {
	return (d >= minDay && d < endDay) || d == DateInfinity || d == DateNegInfinity
}

// ValidTimestamp reports whether ts is a timestamp that can be stored, or an infinity.
func ValidTimestamp(ts int64) bool {
	return (ts >= minTimestamp && ts < endTimestamp) || ts == TimestampInfinity || ts == TimestampNegInfinity
}

// ValidDay reports whether day number d is in the range of dates.
func ValidDay(d int64) bool { return d >= minDay && d < endDay }

func errTimestampRange() error {
	return pgerror.New(pgerror.DatetimeFieldOverflow, "timestamp out of range")
}

// CivilDay is the day number (0: 2000-01-01) of a date of the proleptic
// Gregorian calendar; year 0 is 1 BC. The month may lie outside of 1…12.
func CivilDay(year, month, day int) int64 {
	// Count years from March, so that the leap day comes last.
	m := int64(month) - 3
	y := int64(year) + floorDiv(m, 12)
	m = floorMod(m, 12)
	era := floorDiv(y, 400)
	yoe := y - era*400
	doy := (153*m+2)/5 + int64(day) - 1
	return era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 730425
}

// DayCivil is the date of a day number; year 0 is 1 BC.
func DayCivil(d int64) (year, month, day int) {
	d += 730425
	era := floorDiv(d, 146097)
	doe := d - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = int(doy-(153*mp+2)/5) + 1
	y := yoe + era*400
	if mp < 10 {
		return int(y), int(mp) + 3, day
	}
	return int(y) + 1, int(mp) - 9, day
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func floorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}

// SplitTimestamp is the day number and the microsecond of the day.
func SplitTimestamp(ts int64) (day, micros int64) {
	day = floorDiv(ts, MicrosPerDay)
	return day, ts - day*MicrosPerDay
}

// ZoneOffset is what must be added to UTC for local time at the moment ts (a
// timestamptz) in loc, in seconds.
func ZoneOffset(ts int64, loc *time.Location) int {
	if loc == time.UTC || loc == nil {
		return 0
	}
	_, off := time.Unix(floorDiv(ts, MicrosPerSecond)+UnixEpochSecond, 0).In(loc).Zone()
	return off
}

// TimestampTZFromTime is the timestamptz of a time.
func TimestampTZFromTime(t time.Time) int64 {
	return (t.Unix()-UnixEpochSecond)*MicrosPerSecond + int64(t.Nanosecond()/1000)
}

// TimestampTZToTime is the time of a finite timestamptz, in UTC.
func TimestampTZToTime(ts int64) time.Time {
	s := floorDiv(ts, MicrosPerSecond)
	return time.Unix(s+UnixEpochSecond, (ts-s*MicrosPerSecond)*1000).UTC()
}

func append2(dst []byte, n int) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }

// appendClock appends hh:mm:ss and the microseconds that there are.
func appendClock(dst []byte, micros int64) []byte {
	h := int(micros / MicrosPerHour)
	dst = append2(dst, h)
	micros -= int64(h) * MicrosPerHour
	m := int(micros / MicrosPerMinute)
	dst = append2(append(dst, ':'), m)
	return appendSeconds(append(dst, ':'), micros-int64(m)*MicrosPerMinute)
}

// appendSeconds appends two digits and the microseconds that there are.
func appendSeconds(dst []byte, micros int64) []byte {
	s := int(micros / MicrosPerSecond)
	dst = append2(dst, s)
	f := int(micros) - s*MicrosPerSecond
	if f == 0 {
		return dst
	}
	dst = append(dst, '.')
	for p := 100_000; f > 0; p /= 10 {
		dst = append(dst, byte('0'+f/p))
		f %= p
	}
	return dst
}

// appendZone appends an offset east of UTC as +hh[:mm[:ss]].
func appendZone(dst []byte, off int) []byte {
	if off < 0 {
		dst = append(dst, '-')
		off = -off
	} else {
		dst = append(dst, '+')
	}
	dst = append2(dst, off/3600)
	if off%3600 != 0 {
		dst = append2(append(dst, ':'), off/60%60)
		if off%60 != 0 {
			dst = append2(append(dst, ':'), off%60)
		}
	}
	return dst
}

// AppendDate appends the text form of a date.
func AppendDate(dst []byte, d int32) []byte { return TimeStyle{}.appendDate(dst, d) }

func (s TimeStyle) appendDate(dst []byte, d int32) []byte {
	switch d {
	case DateInfinity:
		return append(dst, "infinity"...)
	case DateNegInfinity:
		return append(dst, "-infinity"...)
	}
	dst, bc := s.appendDay(dst, int64(d))
	return appendBC(dst, bc)
}

func appendBC(dst []byte, bc bool) []byte {
	if bc {
		dst = append(dst, " BC"...)
	}
	return dst
}

// AppendTime appends the text form of a time.
func AppendTime(dst []byte, t int64) []byte { return appendClock(dst, t) }

// AppendTimeTZ appends the text form of a timetz.
func AppendTimeTZ(dst []byte, v columnar.U128) []byte {
	t, west := UnpackTimeTZ(v)
	return appendZone(appendClock(dst, t), -int(west))
}

// AppendTimestamp appends the text form of a timestamp.
func AppendTimestamp(dst []byte, ts int64) []byte { return TimeStyle{}.appendTimestamp(dst, ts, nil) }

// AppendTimestampTZ appends the text form of a timestamptz in the zone loc.
func AppendTimestampTZ(dst []byte, ts int64, loc *time.Location) []byte {
	return TimeStyle{}.appendTimestamp(dst, ts, loc)
}

// appendTimestamp appends a timestamptz in the zone loc; without one it is a timestamp.
func (s TimeStyle) appendTimestamp(dst []byte, ts int64, loc *time.Location) []byte {
	if dst, ok := appendInfinity(dst, ts); ok {
		return dst
	}
	return s.appendMoment(dst, ts, loc)
}

// ISOTimestamp turns the text form of a timestamp, or of a timetz, at the end of
// dst into that of ISO 8601 as XML has it: with a T between date and time, and
// with minutes in the zone.
func ISOTimestamp(dst []byte, from int, zoned bool) []byte {
	s := dst[from:]
	if i := bytes.IndexByte(s, ' '); i > 0 && s[i+1] != 'B' {
		s[i] = 'T'
	}
	end := len(s)
	if bytes.HasSuffix(s, []byte(" BC")) {
		end -= 3
	}
	if !zoned || s[end-3] != '+' && s[end-3] != '-' { // no zone, or it has minutes
		return dst
	}
	era := string(s[end:])
	return append(append(dst[:from+end], ":00"...), era...)
}

func appendInfinity(dst []byte, ts int64) ([]byte, bool) {
	switch ts {
	case TimestampInfinity:
		return append(dst, "infinity"...), true
	case TimestampNegInfinity:
		return append(dst, "-infinity"...), true
	}
	return dst, false
}

// PackTimeTZ makes a timetz of microseconds of the day and seconds west of UTC.
func PackTimeTZ(micros int64, west int32) columnar.U128 {
	return columnar.U128{Hi: uint64(micros), Lo: uint64(int64(west))}
}

// UnpackTimeTZ takes a timetz apart.
func UnpackTimeTZ(v columnar.U128) (micros int64, west int32) { return int64(v.Hi), int32(v.Lo) }

// roundUnits are the microseconds of the last digit at each precision.
var roundUnits = [...]int64{1_000_000, 100_000, 10_000, 1_000, 100, 10, 1}

func roundMicros(us int64, mod int32) int64 {
	if mod < 0 || mod >= maxPrecision {
		return us
	}
	u := roundUnits[mod]
	if us >= 0 {
		return (us + u/2) / u * u
	}
	return -((-us + u/2) / u * u)
}

// RoundTime rounds a time to the digits of modifier mod.
func RoundTime(t int64, mod int32) int64 { return roundMicros(t, mod) }

// RoundTimestamp rounds a timestamp or timestamptz to the digits of modifier mod.
func RoundTimestamp(ts int64, mod int32) int64 {
	if ts == TimestampInfinity || ts == TimestampNegInfinity {
		return ts
	}
	return roundMicros(ts, mod)
}
