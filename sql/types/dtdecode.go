package types

import (
	"math"
	"strings"
	"time"
)

// What has been found so far, as a set of bits.
const (
	hasYear uint32 = 1 << iota
	hasMonth
	hasDay
	hasDOY
	hasHour
	hasMinute
	hasSecond
	hasFraction
	hasZone
	hasDSTZone
	hasDSTMod
	hasDOW
	hasAMPM
	hasADBC
	hasReserved

	hasDate    = hasYear | hasMonth | hasDay
	hasSeconds = hasSecond | hasFraction
	hasTime    = hasHour | hasMinute | hasSeconds
)

// dtDecoder gives the fields of a date or time their meaning.
type dtDecoder struct {
	o        *Options
	timeOnly bool
	fields   [maxDTFields]dtField
	n        int

	seen      uint32 // by earlier fields
	now       uint32 // by this field
	prefix    int    // the unit that an earlier field named, 0 if none
	meridiem  int
	textMonth bool
	julian    bool
	twoDigits bool
	bc        bool

	year, mon, day, yday int
	hour, min, sec       int
	micros               int64
	special              int // resEpoch, resLate, resEarly: the whole value
	west                 int
	named                *time.Location // a zone by name, to be applied to the date
	dyn                  *time.Location // a zone by an abbreviation of changing meaning
	abbrev               string
	badZone              string
}

// decode reads s; the result is in d's fields.
func (d *dtDecoder) decode(s string) dtError {
	d.meridiem = val24
	var e dtError
	if d.n, e = splitDateTime(s, &d.fields); e != dtOK {
		return e
	}
	for i := range d.n {
		d.now = 0
		skip, e := d.field(i)
		if e != dtOK {
			return e
		}
		if skip {
			continue
		}
		if d.now&d.seen != 0 {
			return dtBadFormat
		}
		d.seen |= d.now
	}
	if d.timeOnly {
		return d.finishTime()
	}
	return d.finishDate()
}

func (d *dtDecoder) field(i int) (skip bool, e dtError) {
	f := &d.fields[i]
	switch f.kind {
	case dtDate:
		return false, d.dateField(i, f)
	case dtTime:
		if d.prefix != 0 && !d.timeOnly {
			if d.prefix != unitTime {
				return false, dtBadFormat
			}
			d.prefix = 0
		}
		if e := d.clock(f.s); e != dtOK {
			return false, e
		}
		if !d.timeOnly && d.timeOverflows() {
			return false, dtOverflow
		}
		return false, dtOK
	case dtZone:
		d.west, e = decodeZone(f.s)
		d.now = hasZone
		return false, e
	case dtNumber:
		if d.prefix != 0 {
			return false, d.labelled(f.s)
		}
		return false, d.number(i, f.s)
	}
	return d.word(i, f.s)
}

// timeOverflows reports whether the time is after 24:00:00.
func (d *dtDecoder) timeOverflows() bool {
	if d.hour < 0 || d.hour > 24 || d.min < 0 || d.min > 59 || d.sec < 0 || d.sec > 60 ||
		d.micros < 0 || d.micros > MicrosPerSecond {
		return true
	}
	return d.dayMicros() > MicrosPerDay
}

func (d *dtDecoder) dayMicros() int64 {
	return int64(d.hour)*MicrosPerHour + int64(d.min)*MicrosPerMinute + int64(d.sec)*MicrosPerSecond + d.micros
}

// dateField reads a field with separators: a date, a time with a zone run
// together, or the name of a zone.
func (d *dtDecoder) dateField(i int, f *dtField) dtError {
	if d.timeOnly {
		if i == 0 && d.n >= 2 && (d.fields[d.n-1].kind == dtDate || d.fields[1].kind == dtTime) {
			return d.date(f.s)
		}
	} else {
		switch {
		case d.prefix == unitJulian:
			return d.julianWithZone(f.s)
		case d.prefix == 0 && d.seen&(hasMonth|hasDay) != hasMonth|hasDay:
			return d.date(f.s)
		}
	}
	if !isDigit(f.s[0]) && (d.prefix == 0 || d.timeOnly) {
		loc, ok := LoadZone(f.s)
		if !ok {
			d.badZone = f.s
			return dtBadZone
		}
		d.named, d.now = loc, hasZone
		return dtOK
	}
	if d.prefix != 0 && !d.timeOnly {
		if d.prefix != unitTime {
			return dtBadFormat
		}
		d.prefix = 0
	}
	if d.seen&hasTime == hasTime {
		return dtBadFormat
	}
	dash := strings.IndexByte(f.s, '-')
	if dash < 0 {
		return dtBadFormat
	}
	var e dtError
	if d.west, e = decodeZone(f.s[dash:]); e != dtOK {
		return e
	}
	seen := d.seen
	if d.timeOnly {
		seen |= hasDate
	}
	e = d.runTogether(f.s[:dash], seen)
	d.now |= hasZone
	return e
}

func (d *dtDecoder) julianWithZone(s string) dtError {
	n, rest, e := leadInt32(s)
	if e != dtOK || n < 0 {
		return dtOverflow
	}
	d.setJulian(n)
	d.west, e = decodeZone(rest)
	d.now = hasDate | hasTime | hasZone
	d.prefix = 0
	return e
}

// julianDay0 is Julian day 0.
const julianDay0 = -2451545

func (d *dtDecoder) setJulian(n int) {
	d.year, d.mon, d.day = DayCivil(int64(n) + julianDay0)
	d.julian = true
}

// labelled reads a number whose unit the field before has named.
func (d *dtDecoder) labelled(s string) dtError {
	n, rest, e := leadInt32(s)
	if e != dtOK {
		return dtOverflow
	}
	switch {
	case strings.HasPrefix(rest, "."):
		if d.prefix != unitJulian && d.prefix != unitTime && d.prefix != unitSecond {
			return dtBadFormat
		}
	case rest != "":
		return dtBadFormat
	}
	switch d.prefix {
	case unitYear:
		d.year, d.now = n, hasYear
	case unitMonth:
		if d.seen&hasMonth != 0 && d.seen&hasHour != 0 {
			d.min, d.now = n, hasMinute
		} else {
			d.mon, d.now = n, hasMonth
		}
	case unitDay:
		d.day, d.now = n, hasDay
	case unitHour:
		d.hour, d.now = n, hasHour
	case unitMinute:
		d.min, d.now = n, hasMinute
	case unitSecond:
		d.sec, d.now = n, hasSecond
		if rest != "" {
			d.micros, e = parseFractionMicros(rest)
			d.now = hasSeconds
		}
	case unitJulian:
		e = d.labelledJulian(n, rest)
	case unitTime:
		if e = d.runTogether(s, d.seen|hasDate); e == dtOK && d.now != hasTime {
			e = dtBadFormat
		}
	default:
		e = dtBadFormat
	}
	d.prefix = 0
	return e
}

func (d *dtDecoder) labelledJulian(n int, rest string) dtError {
	if n < 0 {
		return dtOverflow
	}
	d.now = hasDate
	d.setJulian(n)
	if rest == "" {
		return dtOK
	}
	f, e := parseFraction(rest)
	if e != dtOK {
		return e
	}
	us := int64(f * float64(MicrosPerDay))
	d.hour, us = int(us/MicrosPerHour), us%MicrosPerHour
	d.min, us = int(us/MicrosPerMinute), us%MicrosPerMinute
	d.sec, d.micros = int(us/MicrosPerSecond), us%MicrosPerSecond
	d.now |= hasTime
	return dtOK
}

// number reads a number without a label.
func (d *dtDecoder) number(i int, s string) dtError {
	point := strings.IndexByte(s, '.')
	if d.timeOnly {
		switch {
		case point >= 0 && i == 0 && d.n >= 2 && d.fields[d.n-1].kind == dtDate:
			return d.date(s)
		case point > 2, point < 0 && len(s) > 4:
			return d.runTogether(s, d.seen|hasDate)
		case point >= 0:
			return dtBadFormat
		}
		return d.plainNumber(s, d.seen|hasDate)
	}
	switch {
	case point >= 0 && d.seen&hasDate == 0:
		return d.date(s)
	case point > 2:
		return d.runTogether(s, d.seen)
	case len(s) >= 6 && (d.seen&hasDate == 0 || d.seen&hasTime == 0):
		return d.runTogether(s, d.seen)
	}
	return d.plainNumber(s, d.seen)
}

// word reads letters: a keyword, or the abbreviation or name of a zone.
func (d *dtDecoder) word(i int, s string) (skip bool, e dtError) {
	w, zone := lookupDateWord(s)
	switch w.kind {
	case wordIgnore:
		return true, dtOK
	case wordReserved:
		return false, d.reserved(w.val)
	case wordMonth:
		if d.timeOnly {
			return false, dtBadFormat
		}
		d.now = hasMonth
		if d.seen&hasMonth != 0 && !d.textMonth && d.seen&hasDay == 0 && d.mon >= 1 && d.mon <= 31 {
			d.day, d.now = d.mon, hasDay // what looked like the month was the day
		}
		d.textMonth = true
		d.mon = w.val
	case wordDSTMod:
		d.now = hasDSTMod | hasDSTZone
		d.west -= w.val
	case wordDSTZone:
		d.now = hasDSTZone | hasZone
		d.west = -w.val
	case wordZone:
		d.now = hasZone
		d.west = -w.val
	case wordDynZone:
		d.now = hasZone
		loc, ok := LoadZone(zone)
		if !ok {
			return false, dtBadFormat
		}
		d.dyn, d.abbrev = loc, s
	case wordAMPM:
		d.meridiem, d.now = w.val, hasAMPM
	case wordADBC:
		d.bc, d.now = w.val == 1, hasADBC
	case wordDOW:
		if d.timeOnly {
			return false, dtBadFormat
		}
		d.now = hasDOW
	case wordUnits:
		d.prefix = w.val
	case wordISOTime:
		return false, d.isoTime(i, w.val)
	default:
		loc, ok := LoadZone(s)
		if !ok {
			return false, dtBadFormat
		}
		d.named, d.now = loc, hasZone
	}
	return false, dtOK
}

// isoTime notes that a "t" stands before the time.
func (d *dtDecoder) isoTime(i, unit int) dtError {
	if !d.timeOnly && d.seen&hasDate != hasDate {
		return dtBadFormat
	}
	if i+1 >= d.n {
		return dtBadFormat
	}
	if k := d.fields[i+1].kind; k != dtNumber && k != dtTime && k != dtDate {
		return dtBadFormat
	}
	d.prefix = unit
	return dtOK
}

func (d *dtDecoder) reserved(v int) dtError {
	if d.timeOnly && v != resNow && v != resZulu {
		return dtBadFormat
	}
	switch v {
	case resZulu:
		d.now = hasTime | hasZone
		d.hour, d.min, d.sec, d.west = 0, 0, 0, 0
		return dtOK
	case resEpoch, resLate, resEarly:
		d.now = hasReserved // what else is given is read, and then ignored
		d.special = v
		return dtOK
	}
	loc := d.o.location()
	ts := TimestampTZFromTime(d.o.now())
	off := ZoneOffset(ts, loc)
	day, us := SplitTimestamp(ts + int64(off)*MicrosPerSecond)
	switch v {
	case resNow:
		d.now = hasTime
		if !d.timeOnly {
			d.now |= hasDate | hasZone
			d.west = -off
			d.year, d.mon, d.day = DayCivil(day)
		}
		d.hour, d.min, d.sec, d.micros = int(us/MicrosPerHour), int(us/MicrosPerMinute%60), int(us/MicrosPerSecond%60), us%MicrosPerSecond
		return dtOK
	case resYesterday:
		day--
	case resTomorrow:
		day++
	}
	d.now = hasDate
	d.year, d.mon, d.day = DayCivil(day)
	return dtOK
}

// date reads a date with separators.
func (d *dtDecoder) date(s string) dtError {
	var parts [maxDTFields]string
	n := 0
	for s != "" && n < maxDTFields {
		for s != "" && !isAlnum(s[0]) {
			s = s[1:]
		}
		if s == "" {
			return dtBadFormat
		}
		class := isAlpha
		if isDigit(s[0]) {
			class = isDigit
		}
		i := 0
		for i < len(s) && class(s[i]) {
			i++
		}
		parts[n] = s[:i]
		n++
		s = s[min(len(s), i+1):]
	}
	seen, found := d.seen, uint32(0)
	textMonth := false
	for i := range n {
		if !isAlpha(parts[i][0]) {
			continue
		}
		w := dateWords[cutWord(parts[i])]
		if w.kind == wordIgnore {
			continue
		}
		if w.kind != wordMonth || seen&hasMonth != 0 {
			return dtBadFormat
		}
		d.mon, textMonth = w.val, true
		seen |= hasMonth
		found |= hasMonth
		parts[i] = ""
	}
	saved := d.textMonth
	d.textMonth = textMonth
	for _, p := range parts[:n] {
		if p == "" {
			continue
		}
		if e := d.plainNumber(p, seen); e != dtOK {
			return e
		}
		if d.now&seen != 0 {
			return dtBadFormat
		}
		seen |= d.now
		found |= d.now
	}
	d.textMonth = saved
	if seen&^(hasDOY|hasZone) != hasDate {
		return dtBadFormat
	}
	d.now = found
	return dtOK
}

// clock reads hh:mm[:ss[.fff]] or mm:ss.fff.
func (d *dtDecoder) clock(s string) dtError {
	d.now = hasTime
	h, rest, e := leadInt32(s)
	if e != dtOK {
		return e
	}
	if !strings.HasPrefix(rest, ":") {
		return dtBadFormat
	}
	m, rest, e := leadInt32(rest[1:])
	if e != dtOK {
		return e
	}
	d.hour, d.min, d.sec, d.micros = h, m, 0, 0
	switch {
	case rest == "":
	case rest[0] == '.':
		if d.micros, e = parseFractionMicros(rest); e != dtOK {
			return e
		}
		d.hour, d.min, d.sec = 0, h, m
	case rest[0] == ':':
		if d.sec, rest, e = leadInt32(rest[1:]); e != dtOK {
			return e
		}
		if strings.HasPrefix(rest, ".") {
			if d.micros, e = parseFractionMicros(rest); e != dtOK {
				return e
			}
		} else if rest != "" {
			return dtBadFormat
		}
	default:
		return dtBadFormat
	}
	if d.hour < 0 || d.min < 0 || d.min > 59 || d.sec < 0 || d.sec > 60 || d.micros < 0 || d.micros > MicrosPerSecond {
		return dtOverflow
	}
	return dtOK
}

// plainNumber reads a number as the part of a date that is missing.
func (d *dtDecoder) plainNumber(s string, seen uint32) dtError {
	n, rest, e := leadInt32(s)
	if e != dtOK {
		return e
	}
	switch {
	case len(rest) == len(s):
		return dtBadFormat
	case strings.HasPrefix(rest, "."):
		if len(s)-len(rest) > 2 {
			return d.runTogether(s, seen|hasDate)
		}
		if d.micros, e = parseFractionMicros(rest); e != dtOK {
			return e
		}
	case rest != "":
		return dtBadFormat
	}
	if len(s) == 3 && seen&hasDate == hasYear && n >= 1 && n <= 366 {
		d.now = hasDOY | hasMonth | hasDay
		d.yday = n
		return dtOK
	}
	long := len(s) >= 3
	order := d.o.style().Order
	switch seen & hasDate {
	case 0:
		switch {
		case long || order == OrderYMD:
			d.setYear(n, s)
		case order == OrderDMY:
			d.day, d.now = n, hasDay
		default:
			d.mon, d.now = n, hasMonth
		}
	case hasYear:
		d.mon, d.now = n, hasMonth
	case hasMonth:
		if d.textMonth && (long || order == OrderYMD) {
			d.setYear(n, s)
		} else {
			d.day, d.now = n, hasDay
		}
	case hasYear | hasMonth:
		if d.textMonth && long && d.twoDigits { // the year before was the day
			d.day = d.year
			d.year, d.twoDigits = n, false
		} else {
			d.day = n
		}
		d.now = hasDay
	case hasDay:
		d.mon, d.now = n, hasMonth
	case hasMonth | hasDay:
		d.setYear(n, s)
	case hasDate:
		return d.runTogether(s, seen)
	default:
		return dtBadFormat
	}
	return dtOK
}

func (d *dtDecoder) setYear(n int, s string) {
	d.year, d.now = n, hasYear
	d.twoDigits = len(s) <= 2
}

// runTogether reads yyyymmdd, yymmdd, hhmmss[.fff] or hhmm.
func (d *dtDecoder) runTogether(s string, seen uint32) dtError {
	if i := strings.IndexByte(s, '.'); i >= 0 {
		us, e := parseFractionMicros(s[i:])
		if e != dtOK {
			return e
		}
		d.micros = us
		s = s[:i]
	} else if seen&hasDate != hasDate && len(s) >= 6 {
		n := len(s)
		d.now = hasDate
		d.day, d.mon, d.year = int(atoi(s[n-2:])), int(atoi(s[n-4:n-2])), int(atoi(s[:n-4]))
		d.twoDigits = d.twoDigits || n == 6
		return dtOK
	}
	if seen&hasTime == hasTime {
		return dtBadFormat
	}
	switch len(s) {
	case 6:
		d.sec = int(atoi(s[4:]))
	case 4:
		d.sec = 0
	default:
		return dtBadFormat
	}
	d.now = hasTime
	d.hour, d.min = int(atoi(s[:2])), int(atoi(s[2:4]))
	return dtOK
}

var monthDays = [13]int{0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// DaysIn is the number of days of a month (1…12); year 0 is 1 BC.
func DaysIn(year, month int) int {
	if month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		return 29
	}
	return monthDays[month]
}

// validate checks and completes the date.
func (d *dtDecoder) validate() dtError {
	if d.seen&hasYear != 0 && !d.julian {
		switch {
		case d.bc:
			if d.year <= 0 {
				return dtOverflow
			}
			d.year = 1 - d.year
		case d.twoDigits:
			if d.year < 0 {
				return dtOverflow
			}
			if d.year < 70 {
				d.year += 2000
			} else if d.year < 100 {
				d.year += 1900
			}
		case d.year <= 0:
			return dtOverflow
		}
	}
	if d.seen&hasDOY != 0 {
		d.year, d.mon, d.day = DayCivil(CivilDay(d.year, 1, 1) + int64(d.yday) - 1)
	}
	if d.seen&hasMonth != 0 && (d.mon < 1 || d.mon > 12) {
		return dtMonthDayOverflow
	}
	if d.seen&hasDay != 0 && (d.day < 1 || d.day > 31) {
		return dtMonthDayOverflow
	}
	if d.seen&hasDate == hasDate && d.day > DaysIn(d.year, d.mon) {
		return dtOverflow
	}
	return dtOK
}

func (d *dtDecoder) applyMeridiem() dtError {
	if d.meridiem != val24 && d.hour > 12 {
		return dtOverflow
	}
	if d.meridiem == valAM && d.hour == 12 {
		d.hour = 0
	} else if d.meridiem == valPM && d.hour != 12 {
		d.hour += 12
	}
	return dtOK
}

// local is the date and time as microseconds of the local clock.
func (d *dtDecoder) local() int64 {
	day := CivilDay(d.year, d.mon, d.day)
	if day < minDay-1 || day > math.MaxInt32 {
		return 0 // out of range, which others find
	}
	return day*MicrosPerDay + d.dayMicros()
}

func (d *dtDecoder) finishDate() dtError {
	if e := d.validate(); e != dtOK {
		return e
	}
	if e := d.applyMeridiem(); e != dtOK {
		return e
	}
	if d.special != 0 {
		return dtOK
	}
	if d.seen&hasDate != hasDate {
		return dtBadFormat
	}
	if d.seen&hasDSTMod != 0 && (d.named != nil || d.dyn != nil || d.seen&hasZone == 0) {
		return dtBadFormat
	}
	switch {
	case d.named != nil:
		d.west = -LocalOffset(d.local(), d.named)
	case d.dyn != nil:
		d.west = -abbrevOffset(d.local(), d.abbrev, d.dyn)
	case d.seen&hasZone == 0:
		d.west = -LocalOffset(d.local(), d.o.location())
	}
	return dtOK
}

func (d *dtDecoder) finishTime() dtError {
	if e := d.validate(); e != dtOK {
		return e
	}
	if e := d.applyMeridiem(); e != dtOK {
		return e
	}
	if d.timeOverflows() {
		return dtOverflow
	}
	if d.seen&hasTime != hasTime {
		return dtBadFormat
	}
	if d.seen&hasDSTMod != 0 && (d.named != nil || d.dyn != nil || d.seen&hasZone == 0) {
		return dtBadFormat
	}
	dated := d.seen&hasDate == hasDate
	switch {
	case d.named != nil:
		off, fixed := fixedOffset(d.named)
		if !fixed {
			if !dated {
				return dtBadFormat
			}
			off = LocalOffset(d.local(), d.named)
		}
		d.west = -off
	case d.dyn != nil:
		d.today(dated)
		d.west = -abbrevOffset(d.local(), d.abbrev, d.dyn)
	case d.seen&hasZone == 0:
		d.today(d.seen&hasDate != 0)
		d.west = -LocalOffset(d.local(), d.o.location())
	}
	return dtOK
}

// today sets the date to the current one unless there is one.
func (d *dtDecoder) today(dated bool) {
	if !dated {
		day, _ := SplitTimestamp(UTCToLocal(TimestampTZFromTime(d.o.now()), d.o.location()))
		d.year, d.mon, d.day = DayCivil(day)
	}
}

// fixedOffset is the offset of a zone that has always had the same one.
func fixedOffset(loc *time.Location) (off int, ok bool) {
	t := time.Unix(0, 0).In(loc)
	start, end := t.ZoneBounds()
	_, off = t.Zone()
	return off, start.IsZero() && end.IsZero()
}
