package types

import (
	"math"
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// Reading dates and times goes in two steps, as in PostgreSQL: the text is
// split into fields by its characters alone, then the fields are given their
// meaning from left to right (for intervals from right to left).

// dtKind is the kind of a field.
type dtKind uint8

const (
	dtNumber  dtKind = iota // digits, maybe with a point
	dtString                // letters
	dtDate                  // digits or letters with separators, maybe a zone's name
	dtTime                  // digits with colons
	dtZone                  // a sign and digits
	dtSpecial               // a sign and letters
)

type dtField struct {
	kind dtKind
	s    string // in lower case
}

const (
	maxDTFields = 25
	maxDTLen    = 150
)

// dtError says what is wrong with a date or time.
type dtError uint8

const (
	dtOK dtError = iota
	dtBadFormat
	dtOverflow
	dtMonthDayOverflow // maybe the order of month and day was meant otherwise
	dtIntervalOverflow
	dtZoneOverflow
	dtBadZone
)

func (e dtError) error(s, typ string, zone string) error {
	switch e {
	case dtOverflow, dtMonthDayOverflow:
		err := pgerror.New(pgerror.DatetimeFieldOverflow, "date/time field value out of range: \"%s\"", s)
		if e == dtMonthDayOverflow {
			return err.WithHint("Perhaps you need a different \"datestyle\" setting.")
		}
		return err
	case dtIntervalOverflow:
		return pgerror.New(pgerror.IntervalFieldOverflow, "interval field value out of range: \"%s\"", s)
	case dtZoneOverflow:
		return pgerror.New(pgerror.InvalidTimeZoneDisplacement, "time zone displacement out of range: \"%s\"", s)
	case dtBadZone:
		return pgerror.New(pgerror.InvalidParameterValue, "time zone \"%s\" not recognized", zone)
	}
	return pgerror.New(pgerror.InvalidDatetimeFormat, "invalid input syntax for type %s: \"%s\"", typ, s)
}

func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isAlnum(c byte) bool { return isAlpha(c) || isDigit(c) }
func isPunct(c byte) bool { return c > ' ' && c < 0x7f && !isAlnum(c) }

// dtScanner splits a text into fields.
type dtScanner struct {
	s string
	i int
}

func (p *dtScanner) peek() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

func (p *dtScanner) skip(ok func(byte) bool) {
	for p.i < len(p.s) && ok(p.s[p.i]) {
		p.i++
	}
}

// splitDateTime splits s into fields; ok is false if it cannot be a date or time.
func splitDateTime(s string, fields *[maxDTFields]dtField) (n int, e dtError) {
	if len(s) > maxDTLen {
		return 0, dtBadFormat
	}
	p := dtScanner{s: s}
	for p.i < len(s) {
		c := s[p.i]
		if isSpace(c) {
			p.i++
			continue
		}
		if n == maxDTFields {
			return n, dtBadFormat
		}
		start := p.i
		f := &fields[n]
		switch {
		case isDigit(c):
			f.kind = p.number()
		case c == '.':
			p.i++
			p.skip(isDigit)
			f.kind = dtNumber
		case isAlpha(c):
			f.kind = p.word()
		case c == '+' || c == '-':
			p.i++
			p.skip(isSpace)
			switch c := p.peek(); {
			case isDigit(c):
				p.skip(func(c byte) bool { return isDigit(c) || c == ':' || c == '.' || c == '-' })
				f.kind = dtZone
			case isAlpha(c):
				p.skip(isAlpha)
				f.kind = dtSpecial
			default:
				return n, dtBadFormat
			}
		case isPunct(c):
			p.i++
			continue
		default:
			return n, dtBadFormat
		}
		f.s = strings.ToLower(s[start:p.i])
		if f.kind >= dtZone && len(f.s) > 1 && isSpace(f.s[1]) {
			f.s = f.s[:1] + trimSpace(f.s[1:])
		}
		n++
	}
	return n, dtOK
}

// number reads a field that starts with a digit.
func (p *dtScanner) number() dtKind {
	p.skip(isDigit)
	switch delim := p.peek(); delim {
	case ':':
		p.skip(func(c byte) bool { return isDigit(c) || c == ':' || c == '.' })
		return dtTime
	case '-', '/', '.':
		p.i++
		if !isDigit(p.peek()) { // a month's name
			p.skip(func(c byte) bool { return isAlnum(c) || c == delim })
			return dtDate
		}
		p.skip(isDigit)
		if p.peek() == delim {
			p.skip(func(c byte) bool { return isDigit(c) || c == delim })
			return dtDate
		}
		if delim != '.' {
			return dtDate
		}
	}
	return dtNumber
}

// word reads a field that starts with a letter.
func (p *dtScanner) word() dtKind {
	start := p.i
	p.skip(isAlpha)
	c := p.peek()
	date := c == '-' || c == '/' || c == '.'
	if c == '+' || isDigit(c) {
		// The name of a zone goes on, a keyword ends here.
		_, known := dateWords[cutWord(strings.ToLower(p.s[start:p.i]))]
		date = !known
	}
	if !date {
		return dtString
	}
	p.i++
	p.skip(func(c byte) bool {
		return isAlnum(c) || c == '+' || c == '-' || c == '/' || c == '_' || c == '.' || c == ':'
	})
	return dtDate
}

// dtWord is a keyword: what kind of thing it is, and which.
type dtWord struct {
	kind wordKind
	val  int
}

type wordKind uint8

const (
	wordUnknown wordKind = iota
	wordReserved
	wordMonth
	wordDOW
	wordAMPM
	wordADBC
	wordUnits
	wordISOTime
	wordIgnore
	wordDSTMod
	wordAgo
	wordZone    // fixed offset east of UTC, seconds
	wordDSTZone // the same, daylight saving
	wordDynZone // the zone's history tells
)

// Reserved words.
const (
	resNow = iota + 1
	resToday
	resTomorrow
	resYesterday
	resZulu
	resEpoch
	resLate
	resEarly
)

// Units, in dates and intervals.
const (
	unitMicrosecond = iota + 1
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
	unitJulian
	unitTime // a "t" before a time
	unitZone
	unitOther // units that occur in EXTRACT only
)

const (
	valAM = iota
	valPM
	val24
)

// maxWordLen is how much of a keyword counts.
const maxWordLen = 10

func cutWord(s string) string { return s[:min(len(s), maxWordLen)] }

var dateWords = map[string]dtWord{
	"-infinity": {wordReserved, resEarly}, "infinity": {wordReserved, resLate}, "epoch": {wordReserved, resEpoch},
	"now": {wordReserved, resNow}, "today": {wordReserved, resToday}, "tomorrow": {wordReserved, resTomorrow},
	"yesterday": {wordReserved, resYesterday}, "allballs": {wordReserved, resZulu},
	"ad": {wordADBC, 0}, "bc": {wordADBC, 1}, "am": {wordAMPM, valAM}, "pm": {wordAMPM, valPM},
	"at": {wordIgnore, 0}, "on": {wordIgnore, 0}, "dst": {wordDSTMod, 3600}, "t": {wordISOTime, unitTime},
	"d": {wordUnits, unitDay}, "h": {wordUnits, unitHour}, "m": {wordUnits, unitMonth}, "mm": {wordUnits, unitMinute},
	"s": {wordUnits, unitSecond}, "y": {wordUnits, unitYear}, "j": {wordUnits, unitJulian}, "jd": {wordUnits, unitJulian},
	"julian": {wordUnits, unitJulian}, "isoyear": {wordUnits, unitOther}, "dow": {wordUnits, unitOther},
	"doy": {wordUnits, unitOther}, "isodow": {wordUnits, unitOther},
	"jan": {wordMonth, 1}, "january": {wordMonth, 1}, "feb": {wordMonth, 2}, "february": {wordMonth, 2},
	"mar": {wordMonth, 3}, "march": {wordMonth, 3}, "apr": {wordMonth, 4}, "april": {wordMonth, 4},
	"may": {wordMonth, 5}, "jun": {wordMonth, 6}, "june": {wordMonth, 6}, "jul": {wordMonth, 7}, "july": {wordMonth, 7},
	"aug": {wordMonth, 8}, "august": {wordMonth, 8}, "sep": {wordMonth, 9}, "sept": {wordMonth, 9}, "september": {wordMonth, 9},
	"oct": {wordMonth, 10}, "october": {wordMonth, 10}, "nov": {wordMonth, 11}, "november": {wordMonth, 11},
	"dec": {wordMonth, 12}, "december": {wordMonth, 12},
	"sun": {wordDOW, 0}, "sunday": {wordDOW, 0}, "mon": {wordDOW, 1}, "monday": {wordDOW, 1}, "tue": {wordDOW, 2},
	"tues": {wordDOW, 2}, "tuesday": {wordDOW, 2}, "wed": {wordDOW, 3}, "weds": {wordDOW, 3}, "wednesday": {wordDOW, 3},
	"thu": {wordDOW, 4}, "thur": {wordDOW, 4}, "thurs": {wordDOW, 4}, "thursday": {wordDOW, 4}, "fri": {wordDOW, 5},
	"friday": {wordDOW, 5}, "sat": {wordDOW, 6}, "saturday": {wordDOW, 6},
}

var intervalWords = map[string]dtWord{
	"@": {wordIgnore, 0}, "ago": {wordAgo, 0},
	"us": {wordUnits, unitMicrosecond}, "usec": {wordUnits, unitMicrosecond}, "usecs": {wordUnits, unitMicrosecond},
	"usecond": {wordUnits, unitMicrosecond}, "useconds": {wordUnits, unitMicrosecond}, "microsecon": {wordUnits, unitMicrosecond},
	"ms": {wordUnits, unitMillisecond}, "msec": {wordUnits, unitMillisecond}, "msecs": {wordUnits, unitMillisecond},
	"msecond": {wordUnits, unitMillisecond}, "mseconds": {wordUnits, unitMillisecond}, "millisecon": {wordUnits, unitMillisecond},
	"s": {wordUnits, unitSecond}, "sec": {wordUnits, unitSecond}, "secs": {wordUnits, unitSecond},
	"second": {wordUnits, unitSecond}, "seconds": {wordUnits, unitSecond},
	"m": {wordUnits, unitMinute}, "min": {wordUnits, unitMinute}, "mins": {wordUnits, unitMinute},
	"minute": {wordUnits, unitMinute}, "minutes": {wordUnits, unitMinute},
	"h": {wordUnits, unitHour}, "hr": {wordUnits, unitHour}, "hrs": {wordUnits, unitHour},
	"hour": {wordUnits, unitHour}, "hours": {wordUnits, unitHour},
	"d": {wordUnits, unitDay}, "day": {wordUnits, unitDay}, "days": {wordUnits, unitDay},
	"w": {wordUnits, unitWeek}, "week": {wordUnits, unitWeek}, "weeks": {wordUnits, unitWeek},
	"mon": {wordUnits, unitMonth}, "mons": {wordUnits, unitMonth}, "month": {wordUnits, unitMonth}, "months": {wordUnits, unitMonth},
	"qtr": {wordUnits, unitQuarter}, "quarter": {wordUnits, unitQuarter},
	"y": {wordUnits, unitYear}, "yr": {wordUnits, unitYear}, "yrs": {wordUnits, unitYear},
	"year": {wordUnits, unitYear}, "years": {wordUnits, unitYear},
	"dec": {wordUnits, unitDecade}, "decs": {wordUnits, unitDecade}, "decade": {wordUnits, unitDecade}, "decades": {wordUnits, unitDecade},
	"c": {wordUnits, unitCentury}, "cent": {wordUnits, unitCentury}, "century": {wordUnits, unitCentury}, "centuries": {wordUnits, unitCentury},
	"mil": {wordUnits, unitMillennium}, "mils": {wordUnits, unitMillennium}, "millennium": {wordUnits, unitMillennium},
	"millennia": {wordUnits, unitMillennium},
	"timezone":  {wordUnits, unitOther}, "timezone_h": {wordUnits, unitOther}, "timezone_m": {wordUnits, unitOther},
}

// lookupDateWord finds a keyword of dates; abbreviations of zones come first.
func lookupDateWord(s string) (w dtWord, zone string) {
	s = cutWord(s)
	_, abbrevs := zoneTables()
	if a, ok := abbrevs[s]; ok {
		switch {
		case a.zone != "":
			return dtWord{wordDynZone, 0}, a.zone
		case a.dst:
			return dtWord{wordDSTZone, a.east}, ""
		}
		return dtWord{wordZone, a.east}, ""
	}
	return dateWords[s], ""
}

// leadInt reads the integer at the start of s, as C's strtol, and returns what
// follows it.
func leadInt(s string) (n int64, rest string, e dtError) {
	i := 0
	if s != "" && (s[0] == '+' || s[0] == '-') {
		i++
	}
	d := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	if i == d {
		return 0, s, dtOK
	}
	n, err := strconv.ParseInt(s[:i], 10, 64)
	if err != nil {
		return 0, s[i:], dtOverflow
	}
	return n, s[i:], dtOK
}

// leadInt32 is leadInt for a number that must fit in 32 bits.
func leadInt32(s string) (int, string, dtError) {
	n, rest, e := leadInt(s)
	if e == dtOK && n != int64(int32(n)) {
		e = dtOverflow
	}
	return int(n), rest, e
}

// parseFraction reads a point and the digits after it, up to the end.
func parseFraction(s string) (float64, dtError) {
	if s == "." {
		return 0, dtOK
	}
	f, n, ok := leadFloat(s, 64)
	if !ok || n != len(s) {
		return 0, dtBadFormat
	}
	return f, dtOK
}

func parseFractionMicros(s string) (int64, dtError) {
	f, e := parseFraction(s)
	return int64(math.RoundToEven(f * 1e6)), e
}

// decodeZone reads ±hh[:mm[:ss]] or ±hhmm, as seconds west of UTC.
func decodeZone(s string) (west int, e dtError) {
	if s == "" || (s[0] != '+' && s[0] != '-') {
		return 0, dtBadFormat
	}
	hr, rest, e := leadInt32(s[1:])
	if e != dtOK {
		return 0, dtZoneOverflow
	}
	mn, sec := 0, 0
	switch {
	case strings.HasPrefix(rest, ":"):
		if mn, rest, e = leadInt32(rest[1:]); e != dtOK {
			return 0, dtZoneOverflow
		}
		if strings.HasPrefix(rest, ":") {
			if sec, rest, e = leadInt32(rest[1:]); e != dtOK {
				return 0, dtZoneOverflow
			}
		}
	case rest == "" && len(s) > 3:
		mn, hr = hr%100, hr/100
	}
	if hr < 0 || hr > 15 || mn < 0 || mn >= 60 || sec < 0 || sec >= 60 {
		return 0, dtZoneOverflow
	}
	west = -(hr*3600 + mn*60 + sec)
	if s[0] == '-' {
		west = -west
	}
	if rest != "" {
		return west, dtBadFormat
	}
	return west, dtOK
}
