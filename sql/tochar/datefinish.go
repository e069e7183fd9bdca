package tochar

import (
	"math"
	"time"

	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// Reading is the date and time that a text was found to hold by a template.
type Reading struct {
	Year, Month, Day     int // year 0 is 1 BC
	Hour, Minute, Second int
	Micros               int
	Precision            int  // decimals of the second that were asked for, 0 if not
	HasZone              bool // the text says the zone
	East                 int  // the zone's offset, in seconds
}

// julianDay0 is the day number, as package types counts, of Julian day 0.
const julianDay0 = -2451545

func errFieldOverflow(s string) error {
	return pgerror.New(pgerror.DatetimeFieldOverflow, "date/time field value out of range: \"%s\"", s)
}

// Read reads s by the template.
func (d *Dates) Read(s string) (v Reading, err error) {
	r, err := d.read(s)
	if err != nil {
		return v, err
	}
	v = Reading{Month: 1, Day: 1, Precision: r.precision}
	if err = r.clock(&v); err != nil {
		return v, err
	}
	if err = r.date(&v); err != nil {
		return v, err
	}
	v.Micros = r.millis*1000 + r.micros
	if v.Hour < 0 || v.Hour >= 24 || v.Minute < 0 || v.Minute >= 60 || v.Second < 0 || v.Second >= 60 || v.Micros < 0 || v.Micros >= types.MicrosPerSecond {
		return v, errFieldOverflow(s)
	}
	if r.zoneSign != 0 {
		if r.zoneHours < 0 || r.zoneHours > 15 || r.zoneMinutes < 0 || r.zoneMinutes >= 60 {
			return v, pgerror.New(pgerror.InvalidTimeZoneDisplacement, "time zone displacement out of range: \"%s\"", s)
		}
		v.HasZone, v.East = true, r.zoneSign*(r.zoneHours*60+r.zoneMinutes)*60
	}
	return v, nil
}

// clock finds the time of day.
func (r *reading) clock(v *Reading) error {
	if x := r.daySeconds; x != 0 {
		v.Hour, v.Minute, v.Second = x/3600, x%3600/60, x%60
	}
	if r.second != 0 {
		v.Second = r.second
	}
	if r.minute != 0 {
		v.Minute = r.minute
	}
	if r.hour != 0 {
		v.Hour = r.hour
	}
	if r.twelve {
		if v.Hour < 1 || v.Hour > 12 {
			return badDate("hour \"%d\" is invalid for the 12-hour clock", v.Hour).
				WithHint("Use the 24-hour clock, or give an hour between 1 and 12.")
		}
		v.Hour %= 12
		if r.pm != 0 {
			v.Hour += 12
		}
	}
	return nil
}

// given is which parts of a date a text gave.
type given uint8

const (
	givenYear given = 1 << iota
	givenMonth
	givenDay
	givenDate = givenYear | givenMonth | givenDay
)

// date finds the date: each field that was given, in this order, overrides
// what was found before.
func (r *reading) date(v *Reading) error {
	var g given
	if r.findYear(v) {
		g = givenYear
	}
	if r.julian != 0 {
		v.setDay(int64(r.julian) + julianDay0)
		g = givenDate
	}
	if r.week != 0 {
		if r.mode == isoMode {
			v.setDay(r.isoDay(v.Year))
			g = givenDate
		} else {
			r.dayOfYear = (r.week-1)*7 + 1
		}
	}
	if r.monthWeek != 0 {
		r.day = (r.monthWeek-1)*7 + 1
	}
	if r.day != 0 {
		v.Day = r.day
		g |= givenDay
	}
	if r.month != 0 {
		v.Month = r.month
		g |= givenMonth
	}
	if r.dayOfYear != 0 && (v.Month <= 1 || v.Day <= 1) {
		if v.Year == 0 && r.bc == 0 {
			return badDate("cannot calculate day of year without year information")
		}
		g |= r.findDayOfYear(v)
	}
	if g&givenMonth != 0 && (v.Month < 1 || v.Month > 12) ||
		g&givenDay != 0 && (v.Day < 1 || v.Day > 31) ||
		g == givenDate && v.Day > types.DaysIn(v.Year, v.Month) {
		return errFieldOverflow(r.s)
	}
	return nil
}

func (v *Reading) setDay(day int64) { v.Year, v.Month, v.Day = types.DayCivil(day) }

// findYear finds the year; false if none was given.
func (r *reading) findYear(v *Reading) bool {
	century := r.century
	if r.bc != 0 {
		century = -century
	}
	switch {
	case r.year != 0 && century != 0 && r.yearDigits <= 2: // the century, and the year in it
		v.Year = r.year % 100
		switch {
		case v.Year != 0 && century >= 0:
			v.Year += (century - 1) * 100
		case v.Year != 0:
			v.Year = (century+1)*100 - v.Year + 1
		default: // the last year of the century
			v.Year = century * 100
			if century < 0 {
				v.Year++
			}
		}
	case r.year != 0:
		v.Year = r.year
		if r.bc != 0 {
			v.Year = -v.Year
		}
		if v.Year < 0 {
			v.Year++
		}
	case century > 0:
		v.Year = (century-1)*100 + 1
	case century < 0:
		v.Year = century*100 + 1
	default:
		return false
	}
	return true
}

// isoDay is the day of the week that was given by its number in an ISO year.
func (r *reading) isoDay(year int) int64 {
	day := isoStart(year) + int64(r.week-1)*7
	switch {
	case r.weekday > 1:
		day += int64(r.weekday) - 2
	case r.weekday != 0: // Sunday
		day += 6
	}
	return day
}

// isoStart is the day number of the first day of an ISO year.
func isoStart(year int) int64 { return int64(isoWeekStart(int32(year), 1)) + julianDay0 }

// findDayOfYear finds month and day by the day of the year.
func (r *reading) findDayOfYear(v *Reading) given {
	if r.mode == isoMode {
		v.setDay(isoStart(v.Year) + int64(r.dayOfYear) - 1)
		return givenDate
	}
	month, day := 1, r.dayOfYear
	for month <= 12 && day > types.DaysIn(v.Year, month) {
		day -= types.DaysIn(v.Year, month)
		month++
	}
	if v.Month <= 1 {
		v.Month = month
	}
	if v.Day <= 1 {
		v.Day = day
	}
	return givenMonth | givenDay
}

// Date is the date that was read; s is the text.
func (v Reading) Date(s string) (int32, error) {
	day, ok := v.dayNumber()
	if !ok || !types.ValidDay(day) {
		return 0, pgerror.New(pgerror.DatetimeFieldOverflow, "date out of range: \"%s\"", s)
	}
	return int32(day), nil
}

// dayNumber is the day of the date; false if it is far out of range.
func (v Reading) dayNumber() (int64, bool) {
	if v.Year < -5000 || v.Year > 6000000 {
		return 0, false
	}
	return types.CivilDay(v.Year, v.Month, v.Day), true
}

// Time is the time of day that was read, in microseconds.
func (v Reading) Time() int64 {
	t := int64(v.Hour*60+v.Minute)*types.MicrosPerMinute + int64(v.Second)*types.MicrosPerSecond + int64(v.Micros)
	return types.RoundTime(t, v.typmod())
}

func (v Reading) typmod() int32 {
	if v.Precision == 0 {
		return -1
	}
	return int32(v.Precision)
}

// Timestamp is the timestamp that was read, whatever the zone; typ names the
// type of the result.
func (v Reading) Timestamp(typ string) (int64, error) { return v.timestamp(typ, time.UTC) }

// TimestampTZ is the timestamptz that was read, in zone loc if the text has
// none.
func (v Reading) TimestampTZ(typ string, loc *time.Location) (int64, error) {
	if v.HasZone {
		loc = time.FixedZone("", v.East)
	}
	return v.timestamp(typ, loc)
}

func (v Reading) timestamp(typ string, loc *time.Location) (int64, error) {
	day, ok := v.dayNumber()
	local := day*types.MicrosPerDay + int64(v.Hour*60+v.Minute)*types.MicrosPerMinute + int64(v.Second)*types.MicrosPerSecond + int64(v.Micros)
	if ok && day < math.MaxInt64/types.MicrosPerDay {
		if ts := types.LocalToUTC(local, loc); types.ValidTimestamp(ts) {
			return types.RoundTimestamp(ts, v.typmod()), nil
		}
	}
	return 0, pgerror.New(pgerror.DatetimeFieldOverflow, "%s out of range", typ)
}
