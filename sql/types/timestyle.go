package types

import (
	"fmt"
	"strings"
	"time"
)

// DateForm is how dates and timestamps are written: the first part of DateStyle.
type DateForm uint8

// The forms of dates.
const (
	DateISO DateForm = iota
	DatePostgres
	DateSQL
	DateGerman
)

var dateFormNames = [...]string{"ISO", "Postgres", "SQL", "German"}

// DateOrder is the order of year, month and day where a date does not show it: the
// second part of DateStyle.
type DateOrder uint8

// The orders of a date's fields.
const (
	OrderMDY DateOrder = iota
	OrderDMY
	OrderYMD
)

var dateOrderNames = [...]string{"MDY", "DMY", "YMD"}

// IntervalForm is how intervals are written, and whether their first sign counts for
// all fields when they are read: IntervalStyle.
type IntervalForm uint8

// The forms of intervals.
const (
	IntervalPostgres IntervalForm = iota
	IntervalVerbose
	IntervalSQL
	IntervalISO
)

// TimeStyle is what the text forms of dates, times and intervals depend on besides
// the time zone.
type TimeStyle struct {
	Form     DateForm
	Order    DateOrder
	Interval IntervalForm
}

func (o *Options) style() TimeStyle {
	if o == nil {
		return TimeStyle{}
	}
	return o.Style
}

// ISO gives the options that are o's but for the forms of dates, which are those of
// ISO 8601, as JSON has them.
func (o *Options) ISO() *Options {
	if o == nil || o.Style.Form == DateISO {
		return o
	}
	c := *o
	c.Style.Form = DateISO
	return &c
}

// DateStyle is the value of the setting of this name.
func (s TimeStyle) DateStyle() string {
	return dateFormNames[s.Form] + ", " + dateOrderNames[s.Order]
}

// SetDateStyle takes over what a value of DateStyle says: a form, an order, or both. If
// that is not possible, detail says why.
func (s *TimeStyle) SetDateStyle(v string) (detail string) {
	haveForm, haveOrder := false, false
	form := func(f DateForm) {
		if haveForm && s.Form != f {
			detail = "Conflicting \"datestyle\" specifications."
		}
		s.Form, haveForm = f, true
	}
	order := func(d DateOrder) {
		if haveOrder && s.Order != d {
			detail = "Conflicting \"datestyle\" specifications."
		}
		s.Order, haveOrder = d, true
	}
	for _, part := range strings.Split(v, ",") {
		switch p := strings.ToLower(strings.Trim(strings.TrimSpace(part), `"`)); {
		case p == "iso":
			form(DateISO)
		case p == "sql":
			form(DateSQL)
		case strings.HasPrefix(p, "postgres"):
			form(DatePostgres)
		case p == "german":
			form(DateGerman)
			if !haveOrder {
				s.Order = OrderDMY
			}
		case p == "ymd":
			order(OrderYMD)
		case p == "dmy", strings.HasPrefix(p, "euro"):
			order(OrderDMY)
		case p == "mdy", p == "us", strings.HasPrefix(p, "noneuro"):
			order(OrderMDY)
		case p == "default":
			if !haveForm {
				s.Form = DateISO
			}
			if !haveOrder {
				s.Order = OrderMDY
			}
		default:
			return fmt.Sprintf("Unrecognized key word: \"%s\".", p)
		}
	}
	return detail
}

// SetIntervalStyle takes over a value of IntervalStyle.
func (s *TimeStyle) SetIntervalStyle(v string) {
	switch strings.ToLower(v) {
	case "postgres_verbose":
		s.Interval = IntervalVerbose
	case "sql_standard":
		s.Interval = IntervalSQL
	case "iso_8601":
		s.Interval = IntervalISO
	default:
		s.Interval = IntervalPostgres
	}
}

func appendYear(dst []byte, y int) []byte {
	if y < 10000 {
		return append2(append2(dst, y/100), y%100)
	}
	return appendInt(dst, int64(y))
}

// appendDay appends a date as the form and the order have it, without the era.
func (s TimeStyle) appendDay(dst []byte, day int64) (out []byte, bc bool) {
	y, m, d := DayCivil(day)
	if bc = y <= 0; bc {
		y = 1 - y
	}
	sep := byte('/')
	first, second := m, d
	if s.Order == OrderDMY {
		first, second = d, m
	}
	switch s.Form {
	case DateISO:
		dst = append2(append(appendYear(dst, y), '-'), m)
		return append2(append(dst, '-'), d), bc
	case DateGerman:
		sep, first, second = '.', d, m
	case DatePostgres:
		sep = '-'
	}
	dst = append2(append(append2(dst, first), sep), second)
	return appendYear(append(dst, sep), y), bc
}

// appendMoment appends a date and a time, in zone loc if there is one.
func (s TimeStyle) appendMoment(dst []byte, ts int64, loc *time.Location) []byte {
	var off int
	if loc != nil {
		off = ZoneOffset(ts, loc)
	}
	day, t := SplitTimestamp(ts + int64(off)*MicrosPerSecond)
	bc := false
	if s.Form == DatePostgres {
		y, m, d := DayCivil(day)
		if bc = y <= 0; bc {
			y = 1 - y
		}
		dst = append(append(dst, weekdays[floorMod(day+6, 7)]...), ' ')
		if s.Order == OrderDMY {
			dst = append(append(append2(dst, d), ' '), monthNames[m-1]...)
		} else {
			dst = append2(append(append(dst, monthNames[m-1]...), ' '), d)
		}
		dst = appendClock(append(dst, ' '), t)
		dst = appendYear(append(dst, ' '), y)
	} else {
		dst, bc = s.appendDay(dst, day)
		dst = appendClock(append(dst, ' '), t)
	}
	if loc != nil {
		dst = s.appendZone(dst, ts, off, loc)
	}
	return appendBC(dst, bc)
}

// maxZoneName is how much of a zone's abbreviation is written.
const maxZoneName = 10

// appendZone appends the zone at a moment: its offset in the form of ISO, else its
// abbreviation.
func (s TimeStyle) appendZone(dst []byte, ts int64, off int, loc *time.Location) []byte {
	if s.Form == DateISO {
		return appendZone(dst, off)
	}
	name, _ := TimestampTZToTime(ts).In(loc).Zone()
	if name == "" {
		if s.Form == DatePostgres {
			dst = append(dst, ' ')
		}
		return appendZone(dst, off)
	}
	return append(append(dst, ' '), name[:min(len(name), maxZoneName)]...)
}

var (
	weekdays   = [...]string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}
	monthNames = [...]string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}
)

// appendInterval appends an interval in the form that is set.
func (s TimeStyle) appendInterval(dst []byte, i Span) []byte {
	switch s.Interval {
	case IntervalVerbose:
		return splitSpan(i).appendVerbose(dst)
	case IntervalSQL:
		return splitSpan(i).appendSQL(dst)
	case IntervalISO:
		return splitSpan(i).appendISO(dst)
	}
	return AppendInterval(dst, i)
}

// spanParts are the fields of an interval as they are written; those of the time have
// one sign, as have years and months.
type spanParts struct{ years, months, days, hours, minutes, micros int64 }

func splitSpan(i Span) spanParts {
	return spanParts{
		int64(i.Months / 12), int64(i.Months % 12), int64(i.Days),
		i.Micros / MicrosPerHour, i.Micros / MicrosPerMinute % 60, i.Micros % MicrosPerMinute,
	}
}

// appendShortSeconds appends seconds without leading zeros.
func appendShortSeconds(dst []byte, micros int64) []byte {
	l := len(dst)
	dst = appendSeconds(dst, micros)
	if dst[l] == '0' {
		dst = append(dst[:l], dst[l+1:]...)
	}
	return dst
}

func abs64(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

// appendVerbose writes all fields as numbers with units; if the first is negative,
// "ago" at the end turns all of them.
func (p spanParts) appendVerbose(dst []byte) []byte {
	dst = append(dst, '@')
	zero, ago := true, false
	part := func(n int64, unit string) {
		if n == 0 {
			return
		}
		if zero {
			ago, n = n < 0, abs64(n)
		} else if ago {
			n = -n
		}
		dst = append(append(appendInt(append(dst, ' '), n), ' '), unit...)
		if n != 1 {
			dst = append(dst, 's')
		}
		zero = false
	}
	part(p.years, "year")
	part(p.months, "mon")
	part(p.days, "day")
	part(p.hours, "hour")
	part(p.minutes, "min")
	if p.micros != 0 {
		dst = append(dst, ' ')
		switch {
		case p.micros < 0 && zero:
			ago = true
		case p.micros < 0 != ago:
			dst = append(dst, '-')
		}
		dst = append(appendShortSeconds(dst, abs64(p.micros)), " sec"...)
		if abs64(p.micros) != MicrosPerSecond {
			dst = append(dst, 's')
		}
		zero = false
	}
	if zero {
		dst = append(dst, " 0"...)
	}
	if ago {
		dst = append(dst, " ago"...)
	}
	return dst
}

// appendSQL writes the standard's literals of years and months or of days and times,
// and where an interval is neither, all fields with their signs.
func (p spanParts) appendSQL(dst []byte) []byte {
	neg := p.years < 0 || p.months < 0 || p.days < 0 || p.hours < 0 || p.minutes < 0 || p.micros < 0
	pos := p.years > 0 || p.months > 0 || p.days > 0 || p.hours > 0 || p.minutes > 0 || p.micros > 0
	yearMonth := p.years != 0 || p.months != 0
	dayTime := p.days != 0 || p.hours != 0 || p.minutes != 0 || p.micros != 0
	sign := func(neg bool) {
		if neg {
			dst = append(dst, '-')
		} else {
			dst = append(dst, '+')
		}
	}
	mixed := neg && pos || yearMonth && dayTime
	switch {
	case !neg && !pos:
		return append(dst, '0')
	case mixed:
		sign(p.years < 0 || p.months < 0)
	case neg:
		dst = append(dst, '-')
	}
	if mixed || yearMonth {
		dst = appendInt(append(appendInt(dst, abs64(p.years)), '-'), abs64(p.months))
		if !mixed {
			return dst
		}
		dst = append(dst, ' ')
		sign(p.days < 0)
	}
	if mixed || p.days != 0 {
		dst = append(appendInt(dst, abs64(p.days)), ' ')
	}
	if mixed {
		sign(p.hours < 0 || p.minutes < 0 || p.micros < 0)
	}
	dst = append2(append(appendInt(dst, abs64(p.hours)), ':'), int(abs64(p.minutes)))
	return appendSeconds(append(dst, ':'), abs64(p.micros))
}

// appendISO writes ISO 8601's form with designators.
func (p spanParts) appendISO(dst []byte) []byte {
	if p == (spanParts{}) {
		return append(dst, "PT0S"...)
	}
	part := func(n int64, unit byte) {
		if n != 0 {
			dst = append(appendInt(dst, n), unit)
		}
	}
	dst = append(dst, 'P')
	part(p.years, 'Y')
	part(p.months, 'M')
	part(p.days, 'D')
	if p.hours == 0 && p.minutes == 0 && p.micros == 0 {
		return dst
	}
	dst = append(dst, 'T')
	part(p.hours, 'H')
	part(p.minutes, 'M')
	if p.micros != 0 {
		if p.micros < 0 {
			dst = append(dst, '-')
		}
		dst = append(appendShortSeconds(dst, abs64(p.micros)), 'S')
	}
	return dst
}
