package tochar

import (
	"strconv"
	"strings"
	"time"

	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// moment is a timestamp or an interval taken apart.
type moment struct {
	year, month, day       int32
	hour                   int64
	minute, second, micros int32
	weekday, yearDay       int32 // Sunday is 0; from 1
	zone                   string
	east                   int // of UTC, in seconds
	interval               bool
}

// AppendTimestamp appends a finite timestamp by the template.
func (d *Dates) AppendTimestamp(dst []byte, ts int64) []byte {
	m := momentOf(ts)
	return d.appendMoment(dst, &m)
}

// AppendTimestampTZ appends a finite timestamptz by the template, as a clock in
// loc shows it.
func (d *Dates) AppendTimestampTZ(dst []byte, ts int64, loc *time.Location) []byte {
	day, micros := types.SplitTimestamp(ts)
	zone, east := time.Unix(day*86400+micros/types.MicrosPerSecond+types.UnixEpochSecond, 0).In(loc).Zone()
	m := momentOf(ts + int64(east)*types.MicrosPerSecond)
	m.zone, m.east = zone, east
	return d.appendMoment(dst, &m)
}

// AppendInterval appends an interval by the template, which must not have
// fields that intervals do not know.
func (d *Dates) AppendInterval(dst []byte, v types.Span) ([]byte, error) {
	for i := range d.parts {
		if f := d.parts[i].field; f != nil && f.flags&calendar != 0 {
			return dst, pgerror.New(pgerror.InvalidDatetimeFormat, "invalid format specification for an interval value").
				WithHint("Intervals are not tied to specific calendar dates.")
		}
	}
	m := moment{year: v.Months / 12, month: v.Months % 12, day: v.Days, interval: true}
	m.hour = v.Micros / types.MicrosPerHour
	rest := v.Micros % types.MicrosPerHour
	m.minute = int32(rest / types.MicrosPerMinute)
	rest %= types.MicrosPerMinute
	m.second, m.micros = int32(rest/types.MicrosPerSecond), int32(rest%types.MicrosPerSecond)
	m.yearDay = v.Months*30 + v.Days
	return d.appendMoment(dst, &m), nil
}

func momentOf(ts int64) (m moment) {
	day, micros := types.SplitTimestamp(ts)
	y, mon, d := types.DayCivil(day)
	m.year, m.month, m.day = int32(y), int32(mon), int32(d)
	m.hour = micros / types.MicrosPerHour
	micros %= types.MicrosPerHour
	m.minute = int32(micros / types.MicrosPerMinute)
	micros %= types.MicrosPerMinute
	m.second, m.micros = int32(micros/types.MicrosPerSecond), int32(micros%types.MicrosPerSecond)
	j := julianDay(m.year, m.month, m.day)
	m.weekday = weekday(j)
	m.yearDay = j - julianDay(m.year, 1, 1) + 1
	return m
}

func (d *Dates) appendMoment(dst []byte, m *moment) []byte {
	for i := range d.parts {
		p := &d.parts[i]
		switch {
		case p.field == nil:
			dst = append(dst, p.text...)
		case p.field.flags&isNumber != 0 && p.field.id != fieldZoneMinute:
			dst = p.appendNumber(dst, m)
		default:
			dst = p.appendName(dst, m)
		}
	}
	return dst
}

// appendNumber appends a field made of digits.
func (p *part) appendNumber(dst []byte, m *moment) []byte {
	start := len(dst)
	switch p.field.id {
	case fieldQuarter:
		if m.month == 0 {
			return dst
		}
		dst = strconv.AppendInt(dst, int64((m.month-1)/3+1), 10)
	case fieldYearComma:
		y := m.shownYear(m.year)
		dst = append(strconv.AppendInt(dst, int64(y/1000), 10), ',')
		dst = appendPadded(dst, int64(y%1000), 3)
	default:
		v, width := m.number(p.field)
		if p.fill && p.field.flags&fixed == 0 {
			width = 0
		}
		dst = appendPadded(dst, v, width)
	}
	if p.th != "" {
		dst = append(dst, ordinal(dst[start:], p.th)...)
	}
	return dst
}

// appendPadded appends v with leading zeros up to width characters, the sign
// being one.
func appendPadded(dst []byte, v int64, width int) []byte {
	if v < 0 {
		dst = append(dst, '-')
		v = -v
		width--
	}
	start := len(dst)
	dst = strconv.AppendInt(dst, v, 10)
	for n := width - (len(dst) - start); n > 0; n-- {
		dst = append(dst, 0)
		copy(dst[start+1:], dst[start:])
		dst[start] = '0'
	}
	return dst
}

// ordinal is the suffix that makes a number an ordinal one, in the letters of style.
func ordinal(digits []byte, style string) string {
	n := len(digits)
	s := "th"
	if n < 2 || digits[n-2] != '1' {
		switch digits[n-1] {
		case '1':
			s = "st"
		case '2':
			s = "nd"
		case '3':
			s = "rd"
		}
	}
	if style == "TH" {
		return strings.ToUpper(s)
	}
	return s
}

// wide is the width of a field of n digits, with room for the sign of v.
func wide[T int32 | int64](n int, v T) int {
	if v < 0 {
		return n + 1
	}
	return n
}

// shownYear is a year as it is shown: years before Christ without their sign.
func (m *moment) shownYear(y int32) int32 {
	if !m.interval && y <= 0 {
		return 1 - y
	}
	return y
}

// number is the value of a field and the width that it is padded to.
func (m *moment) number(f *field) (v int64, width int) {
	switch f.id {
	case fieldHour12:
		if v = m.hour % 12; v == 0 {
			v = 12
		}
		return v, wide(2, m.hour)
	case fieldHour24:
		return m.hour, wide(2, m.hour)
	case fieldMinute:
		return int64(m.minute), wide(2, m.minute)
	case fieldSecond:
		return int64(m.second), wide(2, m.second)
	case fieldDaySeconds:
		return m.hour*3600 + int64(m.minute)*60 + int64(m.second), 0
	case fieldMillis:
		return int64(m.micros / 1000), 3
	case fieldMicros:
		return int64(m.micros), 6
	case fieldFraction1, fieldFraction2, fieldFraction3, fieldFraction4, fieldFraction5, fieldFraction6:
		return int64(m.micros / [...]int32{100000, 10000, 1000, 100, 10, 1}[f.fraction()-1]), f.fraction()
	case fieldMonth:
		return int64(m.month), wide(2, m.month)
	case fieldDayOfYear:
		return int64(m.yearDay), 3
	case fieldISODayOfYear:
		return int64(julianDay(m.year, m.month, m.day) - isoWeekStart(isoYear(m.year, m.month, m.day), 1) + 1), 3
	case fieldDay:
		return int64(m.day), 2
	case fieldWeekday:
		return int64(m.weekday) + 1, 0
	case fieldISOWeekday:
		return int64((m.weekday+6)%7) + 1, 0
	case fieldWeek:
		return int64((m.yearDay-1)/7 + 1), 2
	case fieldISOWeek:
		return int64(isoWeek(m.year, m.month, m.day)), 2
	case fieldMonthWeek:
		return int64((m.day-1)/7 + 1), 0
	case fieldJulian:
		return int64(julianDay(m.year, m.month, m.day)), 0
	case fieldCentury:
		return m.century()
	}
	return m.yearNumber(f)
}

func (m *moment) century() (v int64, width int) {
	switch {
	case m.interval:
		v = int64(m.year / 100)
	case m.year > 0:
		v = int64((m.year-1)/100 + 1)
	default:
		v = int64(m.year/100 - 1)
	}
	return v, wide(2, v)
}

// yearNumber is number for the fields of the year, whole or by its last digits.
func (m *moment) yearNumber(f *field) (v int64, width int) {
	digits, y := 0, m.year
	switch f.id {
	case fieldISOYear4, fieldISOYear3, fieldISOYear2, fieldISOYear1:
		digits, y = 4-int(f.id-fieldISOYear4), isoYear(m.year, m.month, m.day)
	default:
		digits = 4 - int(f.id-fieldYear4)
	}
	v = int64(m.shownYear(y))
	switch digits {
	case 1:
		return v % 10, 1
	case 2:
		v %= 100
	case 3:
		v %= 1000
	}
	return v, wide(digits, m.shownYear(m.year))
}

var (
	monthNames   = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
	monthAbbrevs = []string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}
	dayNames     = []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
	dayAbbrevs   = []string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}
	romanMonths  = []string{"XII", "XI", "X", "IX", "VIII", "VII", "VI", "V", "IV", "III", "II", "I"} // from the longest of each start
)

// appendName appends a field made of letters, or of the time zone.
func (p *part) appendName(dst []byte, m *moment) []byte {
	f := p.field
	name := func(s string, width int) []byte {
		dst = f.style.append(dst, s)
		if !p.fill && !p.local {
			for n := width - len(s); n > 0; n-- {
				dst = append(dst, ' ')
			}
		}
		return dst
	}
	switch f.id {
	case fieldMeridiem:
		return name(f.half(meridiems, m.hour%24 >= 12), 0)
	case fieldEra:
		return name(f.half(eras, m.year <= 0), 0)
	case fieldMonthName:
		return name(monthNames[m.month-1], 9)
	case fieldMonthAbbrev:
		return name(monthAbbrevs[m.month-1], 0)
	case fieldDayName:
		return name(dayNames[m.weekday], 9)
	case fieldDayAbbrev:
		return name(dayAbbrevs[m.weekday], 0)
	case fieldMonthRoman:
		return p.appendRoman(dst, m)
	case fieldZone:
		if f.style == lowerCase {
			return f.style.append(dst, m.zone)
		}
		return append(dst, m.zone...)
	case fieldZoneHour, fieldZoneMinute, fieldOffset:
		return p.appendOffset(dst, m.east)
	}
	return dst
}

// The halves of a day and of history, without and with dots.
var (
	meridiems = [2][]string{{"AM", "PM"}, {"A.M.", "P.M."}}
	eras      = [2][]string{{"AD", "BC"}, {"A.D.", "B.C."}}
)

// halves are the names that a field has for its two values.
func (f *field) halves(names [2][]string) []string {
	if f.flags&dotted != 0 {
		return names[1]
	}
	return names[0]
}

func (f *field) half(names [2][]string, second bool) string {
	if second {
		return f.halves(names)[1]
	}
	return f.halves(names)[0]
}

// appendRoman appends the month in Roman numerals; full years of an interval
// are its last month.
func (p *part) appendRoman(dst []byte, m *moment) []byte {
	i := 12 - m.month
	switch {
	case m.month == 0 && m.year == 0:
		return dst
	case m.month == 0 && m.year > 0:
		i = 0
	case m.month == 0:
		i = 11
	case m.month < 0:
		i = -1 - m.month
	}
	s := romanMonths[i]
	dst = p.field.style.append(dst, s)
	for n := 4 - len(s); n > 0 && !p.fill; n-- {
		dst = append(dst, ' ')
	}
	return dst
}

// appendOffset appends the offset of the time zone, or a part of it.
func (p *part) appendOffset(dst []byte, east int) []byte {
	sign := byte('+')
	if east < 0 {
		sign, east = '-', -east
	}
	hours, minutes := int64(east/3600), int64(east%3600/60)
	if p.field.id == fieldZoneMinute {
		return appendPadded(dst, minutes, 2)
	}
	width := 2
	if p.fill && p.field.id == fieldOffset {
		width = 0
	}
	dst = appendPadded(append(dst, sign), hours, width)
	if p.field.id == fieldOffset && east%3600 != 0 {
		dst = appendPadded(append(dst, ':'), minutes, 2)
	}
	return dst
}
