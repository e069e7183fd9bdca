package expr

import (
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// unit is a field of dates, times and intervals, as extract and date_trunc name it.
type unit uint8

const (
	unitNone unit = iota
	unitMicrosecond
	unitMillisecond
	unitSecond
	unitMinute
	unitHour
	unitDay
	unitWeek
	unitMonth
	unitQuarter
	unitYear
	unitDecade
	unitCentury
	unitMillennium
	unitEpoch
	unitJulian
	unitISOYear
	unitDow
	unitISODow
	unitDoy
	unitZone
	unitZoneHour
	unitZoneMinute
)

// unitNames are the spellings, cut to ten characters as PostgreSQL's tables are.
var unitNames = map[string]unit{
	"microsecon": unitMicrosecond, "us": unitMicrosecond, "usec": unitMicrosecond, "usecond": unitMicrosecond, "useconds": unitMicrosecond, "usecs": unitMicrosecond,
	"millisecon": unitMillisecond, "ms": unitMillisecond, "msec": unitMillisecond, "msecond": unitMillisecond, "mseconds": unitMillisecond, "msecs": unitMillisecond,
	"s": unitSecond, "sec": unitSecond, "second": unitSecond, "seconds": unitSecond, "secs": unitSecond,
	"m": unitMinute, "min": unitMinute, "mins": unitMinute, "minute": unitMinute, "minutes": unitMinute,
	"h": unitHour, "hour": unitHour, "hours": unitHour, "hr": unitHour, "hrs": unitHour,
	"d": unitDay, "day": unitDay, "days": unitDay,
	"w": unitWeek, "week": unitWeek, "weeks": unitWeek,
	"mon": unitMonth, "mons": unitMonth, "month": unitMonth, "months": unitMonth,
	"qtr": unitQuarter, "quarter": unitQuarter,
	"y": unitYear, "yr": unitYear, "yrs": unitYear, "year": unitYear, "years": unitYear,
	"dec": unitDecade, "decs": unitDecade, "decade": unitDecade, "decades": unitDecade,
	"c": unitCentury, "cent": unitCentury, "century": unitCentury, "centuries": unitCentury,
	"mil": unitMillennium, "mils": unitMillennium, "millennia": unitMillennium, "millennium": unitMillennium,
	"epoch": unitEpoch, "j": unitJulian, "jd": unitJulian, "julian": unitJulian, "isoyear": unitISOYear,
	"dow": unitDow, "isodow": unitISODow, "doy": unitDoy,
	"timezone": unitZone, "timezone_h": unitZoneHour, "timezone_m": unitZoneMinute,
}

// unitOf reads the name of a unit.
func unitOf(name []byte) unit {
	s := strings.ToLower(text(name))
	if len(s) > 10 {
		s = s[:10]
	}
	return unitNames[s]
}

// isDelta reports whether a unit is one of durations: the others are only
// fields of dates, which date_trunc does not know at all.
func (u unit) isDelta() bool { return u != unitNone && (u < unitEpoch || u >= unitZone) }

func errUnit(name []byte, t types.Type, known bool) *pgerror.Error {
	s := strings.ToLower(string(name))
	if known {
		return pgerror.New(pgerror.FeatureNotSupported, "unit \"%s\" not supported for type %s", s, t.OID)
	}
	return pgerror.New(pgerror.InvalidParameterValue, "unit \"%s\" not recognized for type %s", s, t.OID)
}

// isoWeek is the ISO week and year of a day.
func isoWeek(day int64) (year, week int) {
	// The week of a day is that of its Thursday; 2000-01-03 was a Monday.
	monday := day - floorMod(day-2, 7)
	year, _, _ = types.DayCivil(monday + 3)
	first := types.CivilDay(year, 1, 4)
	first -= floorMod(first-2, 7)
	return year, int((monday-first)/7) + 1
}

func floorMod(a, b int64) int64 {
	if a %= b; a < 0 {
		a += b
	}
	return a
}

// dayOfWeek is 0 for Sunday; 2000-01-01 was a Saturday.
func dayOfWeek(day int64) int { return int(floorMod(day+6, 7)) }

// truncYear is the first year of the decade, century or millennium of a year
// (0 is 1 BC).
func truncYear(u unit, y int) int {
	// Larger units first: the first year of a millennium is that of a century.
	if u == unitMillennium {
		if y > 0 {
			return (y+999)/1000*1000 - 999
		}
		return -((999-(y-1))/1000)*1000 + 1
	}
	if u == unitCentury {
		if y > 0 {
			return (y+99)/100*100 - 99
		}
		return -((99-(y-1))/100)*100 + 1
	}
	if u == unitDecade {
		if y > 0 {
			return y / 10 * 10
		}
		return -((8 - (y - 1)) / 10) * 10
	}
	return y
}

// truncLocal cuts a finite local timestamp; ok is false for a unit that does
// not apply.
func truncLocal(u unit, ts int64) (r int64, ok bool, err *pgerror.Error) {
	var size int64
	switch u {
	case unitMicrosecond:
		return ts, true, nil
	case unitMillisecond:
		size = 1000
	case unitSecond:
		size = types.MicrosPerSecond
	case unitMinute:
		size = types.MicrosPerMinute
	case unitHour:
		size = types.MicrosPerHour
	case unitDay:
		size = microsPerDay
	}
	if size != 0 {
		return ts - floorMod(ts, size), true, nil
	}
	c := splitCivil(ts)
	c.micros = 0
	switch u {
	case unitWeek:
		day, _ := types.SplitTimestamp(ts)
		day -= floorMod(day-2, 7)
		c.year, c.month, c.day = types.DayCivil(day)
	case unitMonth:
		c.day = 1
	case unitQuarter:
		c.month, c.day = (c.month-1)/3*3+1, 1
	case unitYear, unitDecade, unitCentury, unitMillennium:
		c.year, c.month, c.day = truncYear(u, c.year), 1, 1
	default:
		return 0, false, nil
	}
	r, err = c.join()
	return r, true, err
}

// truncSpan cuts an interval; ok is false for a unit that does not apply.
func truncSpan(u unit, s types.Span) (types.Span, bool) {
	cut := func(size int64) types.Span {
		s.Micros = s.Micros / size * size
		return s
	}
	months := func(size int32) types.Span { return types.Span{Months: s.Months / size * size} }
	switch u {
	case unitMicrosecond:
		return s, true
	case unitMillisecond:
		return cut(1000), true
	case unitSecond:
		return cut(types.MicrosPerSecond), true
	case unitMinute:
		return cut(types.MicrosPerMinute), true
	case unitHour:
		return cut(types.MicrosPerHour), true
	case unitDay:
		return types.Span{Months: s.Months, Days: s.Days}, true
	case unitMonth:
		return months(1), true
	case unitQuarter:
		return months(3), true
	case unitYear:
		return months(12), true
	case unitDecade:
		return months(120), true
	case unitCentury:
		return months(1200), true
	case unitMillennium:
		return months(12000), true
	}
	return s, false
}
