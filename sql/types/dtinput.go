package types

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
)

func (o *Options) decoder(timeOnly bool) dtDecoder { return dtDecoder{o: o, timeOnly: timeOnly} }

func errDateRange(s string) error {
	return pgerror.New(pgerror.DatetimeFieldOverflow, "date out of range: \"%s\"", s)
}

// ParseDate reads a date.
func ParseDate(s string, o *Options) (int32, error) {
	if day, _, rest, ok := isoPrefix(s); ok && rest == "" {
		return int32(day), nil
	}
	d := o.decoder(false)
	if e := d.decode(s); e != dtOK {
		return 0, e.error(s, "date", d.badZone)
	}
	switch d.special {
	case resEpoch:
		return UnixEpochDay, nil
	case resLate:
		return DateInfinity, nil
	case resEarly:
		return DateNegInfinity, nil
	}
	day := CivilDay(d.year, d.mon, d.day)
	if !ValidDay(day) {
		return 0, errDateRange(s)
	}
	return int32(day), nil
}

// ParseTime reads a time, rounded as modifier mod says.
func ParseTime(s string, mod int32, o *Options) (int64, error) {
	d := o.decoder(true)
	if e := d.decode(s); e != dtOK {
		return 0, e.error(s, "time", d.badZone)
	}
	return RoundTime(d.dayMicros(), mod), nil
}

// ParseTimeTZ reads a timetz, rounded as modifier mod says.
func ParseTimeTZ(s string, mod int32, o *Options) (columnar.U128, error) {
	d := o.decoder(true)
	if e := d.decode(s); e != dtOK {
		return columnar.U128{}, e.error(s, "time with time zone", d.badZone)
	}
	return PackTimeTZ(RoundTime(d.dayMicros(), mod), int32(d.west)), nil
}

// ParseTimestamp reads a timestamp, rounded as modifier mod says.
func ParseTimestamp(s string, mod int32, o *Options) (int64, error) {
	if day, us, rest, ok := isoPrefix(s); ok && rest == "" {
		return RoundTimestamp(day*MicrosPerDay+us, mod), nil
	}
	d := o.decoder(false)
	if e := d.decode(s); e != dtOK {
		return 0, e.error(s, "timestamp", d.badZone)
	}
	return d.timestamp(s, mod, 0)
}

// ParseTimestampTZ reads a timestamptz, rounded as modifier mod says.
func ParseTimestampTZ(s string, mod int32, o *Options) (int64, error) {
	if day, us, rest, ok := isoPrefix(s); ok {
		ts := day*MicrosPerDay + us
		if rest == "" {
			ts = LocalToUTC(ts, o.location())
			return RoundTimestamp(ts, mod), nil
		}
		if west, ok := isoZone(rest); ok {
			return RoundTimestamp(ts+int64(west)*MicrosPerSecond, mod), nil
		}
	}
	d := o.decoder(false)
	if e := d.decode(s); e != dtOK {
		return 0, e.error(s, "timestamp with time zone", d.badZone)
	}
	return d.timestamp(s, mod, d.west)
}

func (d *dtDecoder) timestamp(s string, mod int32, west int) (int64, error) {
	switch d.special {
	case resEpoch:
		return UnixEpochDay * MicrosPerDay, nil
	case resLate:
		return TimestampInfinity, nil
	case resEarly:
		return TimestampNegInfinity, nil
	}
	// A zone may bring the time back into the range from a day outside of it.
	if day := CivilDay(d.year, d.mon, d.day); day >= minDay-1 && day <= endTimestamp/MicrosPerDay+1 {
		ts := day*MicrosPerDay + d.dayMicros() + int64(west)*MicrosPerSecond
		if ts >= minTimestamp && ts < endTimestamp {
			return RoundTimestamp(ts, mod), nil
		}
	}
	return 0, pgerror.New(pgerror.DatetimeFieldOverflow, "timestamp out of range: \"%s\"", s)
}

// digits2 reads two digits.
func digits2(s string) (int, bool) {
	if !isDigit(s[0]) || !isDigit(s[1]) {
		return 0, false
	}
	return int(s[0]-'0')*10 + int(s[1]-'0'), true
}

// isoPrefix reads yyyy-mm-dd[(T| )hh:mm:ss[.ffffff]], the form that nearly all
// data has, and returns what follows it. ok is false for anything else, even
// if it is right in another way.
func isoPrefix(s string) (day, micros int64, rest string, ok bool) {
	if len(s) < 10 || s[4] != '-' || s[7] != '-' {
		return 0, 0, s, false
	}
	y1, ok1 := digits2(s)
	y2, ok2 := digits2(s[2:])
	m, ok3 := digits2(s[5:])
	d, ok4 := digits2(s[8:])
	y := y1*100 + y2
	if !ok1 || !ok2 || !ok3 || !ok4 || y == 0 || m < 1 || m > 12 || d < 1 || d > DaysIn(y, m) {
		return 0, 0, s, false
	}
	day = CivilDay(y, m, d)
	if len(s) == 10 {
		return day, 0, "", true
	}
	if len(s) < 19 || (s[10] != ' ' && s[10] != 'T') || s[13] != ':' || s[16] != ':' {
		return 0, 0, s, false
	}
	hh, ok1 := digits2(s[11:])
	mm, ok2 := digits2(s[14:])
	ss, ok3 := digits2(s[17:])
	if !ok1 || !ok2 || !ok3 || hh > 23 || mm > 59 || ss > 59 {
		return 0, 0, s, false
	}
	micros = int64(hh)*MicrosPerHour + int64(mm)*MicrosPerMinute + int64(ss)*MicrosPerSecond
	s = s[19:]
	if s != "" && s[0] == '.' {
		i, unit := 1, int64(100_000)
		for i < len(s) && i <= 6 && isDigit(s[i]) {
			micros += int64(s[i]-'0') * unit
			unit /= 10
			i++
		}
		if i == 1 || (i < len(s) && isDigit(s[i])) {
			return 0, 0, s, false
		}
		s = s[i:]
	}
	if s != "" && s[0] != '+' && s[0] != '-' && s != "Z" && s != "z" {
		return 0, 0, s, false
	}
	return day, micros, s, true
}

// isoZone reads Z, ±hh, ±hhmm or ±hh:mm, as seconds west of UTC.
func isoZone(s string) (west int, ok bool) {
	if s == "Z" || s == "z" {
		return 0, true
	}
	switch {
	case len(s) == 3, len(s) == 6 && s[3] == ':':
	default:
		return 0, false
	}
	h, ok := digits2(s[1:])
	if !ok || h > 15 {
		return 0, false
	}
	west = -h * 3600
	if len(s) == 6 {
		m, ok := digits2(s[4:])
		if !ok || m > 59 {
			return 0, false
		}
		west -= m * 60
	}
	if s[0] == '-' {
		west = -west
	}
	return west, true
}
