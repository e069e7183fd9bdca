package tochar

import (
	"math"
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// reading is a text being read by a template, and what was found in it; zero
// is what was not.
type reading struct {
	s       string
	i       int
	exact   bool // no leeway with blanks
	skipped int  // characters passed over beyond those of the template
	mode    dateMode

	hour, minute, second, daySeconds int
	millis, micros, precision        int
	twelve                           bool // by the 12-hour clock
	pm                               int
	year, yearDigits, bc, century    int
	month, monthWeek, week           int
	day, weekday, dayOfYear, julian  int
	zoneSign, zoneHours, zoneMinutes int
}

func (r *reading) rest() string { return r.s[r.i:] }

// peek is the next byte, 0 at the end.
func (r *reading) peek() byte {
	if r.i < len(r.s) {
		return r.s[r.i]
	}
	return 0
}

func (r *reading) skipSpace() (n int) {
	for r.i < len(r.s) && isSpace(r.s[r.i]) {
		r.i++
		n++
	}
	return n
}

func (r *reading) skipChar() { r.i += charLen(r.rest()) } // nothing at the end

func badDate(format string, args ...any) *pgerror.Error {
	return pgerror.New(pgerror.InvalidDatetimeFormat, format, args...)
}

// read reads s by the template.
func (d *Dates) read(s string) (*reading, error) {
	r := &reading{s: s, exact: d.standard}
	n := 0
	for ; n < len(d.parts) && r.i < len(s); n++ {
		p := &d.parts[n]
		if !r.exact && (p.field != nil && p.field.id != fieldExact || p.field == nil && n == 0) {
			r.skipped += r.skipSpace()
		}
		if p.field == nil {
			if err := r.char(p, d.standard); err != nil {
				return nil, err
			}
			continue
		}
		if err := r.setMode(p.field.mode); err != nil {
			return nil, err
		}
		var next *part
		if n+1 < len(d.parts) {
			next = &d.parts[n+1]
		}
		if err := r.field(p, next); err != nil {
			return nil, err
		}
		if !r.exact {
			r.skipped = r.skipSpace()
		}
	}
	if d.standard {
		if n < len(d.parts) {
			return nil, badDate("input string is too short for datetime format")
		}
		if r.skipSpace(); r.i < len(s) {
			return nil, badDate("trailing characters remain in input string after datetime format")
		}
	}
	return r, nil
}

// char passes over what stands for a character of the template.
func (r *reading) char(p *part, standard bool) error {
	between := p.kind != textChar
	switch {
	case standard && between && !strings.HasPrefix(r.rest(), p.text):
		return badDate("unmatched format separator \"%s\"", p.text)
	case standard && !between && !strings.HasPrefix(p.text, r.rest()[:charLen(r.rest())]):
		return badDate("unmatched format character \"%s\"", p.text)
	case r.exact:
		r.skipChar()
	case between:
		r.skipped--
		if c := r.peek(); isSpace(c) || isSeparator(c) {
			r.i++
			r.skipped++
		}
	case r.skipped > 0: // what was passed over may have been meant
		r.skipped--
	default:
		r.skipChar()
	}
	return nil
}

func (r *reading) setMode(m dateMode) error {
	switch {
	case m == anyMode:
	case r.mode == anyMode:
		r.mode = m
	case r.mode != m:
		return badDate("invalid combination of date conventions").
			WithHint("Do not mix Gregorian and ISO week date conventions in a formatting template.")
	}
	return nil
}

// set stores the value of a field, which may be given twice only if it is the same.
func set(dst *int, v int, f *field) error {
	if *dst != 0 && *dst != v {
		return badDate("conflicting values for \"%s\" field in formatting string", f.name).
			WithDetail("This value contradicts a previous setting for the same field type.")
	}
	*dst = v
	return nil
}

// afterNumber reports whether what comes next in the template ends a number,
// which then may have any length.
func (p *part) afterNumber(next *part) bool {
	switch {
	case p.fill || p.th != "" || next == nil:
		return true
	case next.field != nil:
		return next.field.flags&isNumber == 0
	}
	return len(next.text) != 1 || !isDigit(next.text[0])
}

// integer reads a number into dst, which may be nil; n is the number of bytes
// that it took.
func (r *reading) integer(dst *int, p, next *part, width int) (n int, err error) {
	f, start := p.field, r.i
	r.skipSpace()
	shown := r.rest()[:min(width, len(r.rest()))]
	var v int
	var ok bool
	if p.afterNumber(next) {
		var used int
		if v, used, ok = leadingInt(r.rest()); used == 0 {
			r.i = start
		}
		r.i += used
	} else {
		if len(shown) < width {
			return 0, badDate("source string too short for \"%s\" formatting field", f.name).
				WithDetail("Field requires %d characters, but only %d remain.", width, len(shown)).
				WithHint("If your source string is not fixed-width, try using the \"FM\" modifier.")
		}
		var used int
		if v, used, ok = leadingInt(shown); used > 0 && used < width {
			return 0, badDate("invalid value \"%s\" for \"%s\"", shown, f.name).
				WithDetail("Field requires %d characters, but only %d could be parsed.", width, used).
				WithHint("If your source string is not fixed-width, try using the \"FM\" modifier.")
		}
		r.i += used
	}
	if r.i == start {
		return 0, badDate("invalid value \"%s\" for \"%s\"", shown, f.name).WithDetail("Value must be an integer.")
	}
	if !ok {
		return 0, pgerror.New(pgerror.DatetimeFieldOverflow, "value for \"%s\" in source string is out of range", f.name).
			WithDetail("Value must be in the range %d to %d.", math.MinInt32, math.MaxInt32)
	}
	if dst != nil {
		err = set(dst, v, f)
	}
	return r.i - start, err
}

// leadingInt reads a decimal number with its sign at the start of s; ok is
// false if it is no int4.
func leadingInt(s string) (v, n int, ok bool) {
	start := 0
	if s != "" && (s[0] == '-' || s[0] == '+') {
		start = 1
	}
	for n = start; n < len(s) && isDigit(s[n]); n++ {
	}
	if n == start {
		return 0, 0, true
	}
	i, err := strconv.ParseInt(s[:n], 10, 32)
	return int(i), n, err == nil
}

// name reads one of names, in letters of any case, and gives its index.
func (r *reading) name(names []string, f *field) (int, error) {
	for i, s := range names {
		if len(r.rest()) >= len(s) && strings.EqualFold(r.rest()[:len(s)], s) {
			r.i += len(s)
			return i, nil
		}
	}
	shown := r.rest()
	if n := strings.IndexAny(shown, " \t\n\r\f"); n >= 0 {
		shown = shown[:n]
	}
	return 0, badDate("invalid value \"%s\" for \"%s\"", shown, f.name).
		WithDetail("The given value did not match any of the allowed values for this field.")
}

// field reads the field p.
func (r *reading) field(p, next *part) error {
	f := p.field
	var err error
	switch f.id {
	case fieldExact:
		r.exact = true
		return nil
	case fieldZone, fieldOffset:
		return pgerror.New(pgerror.FeatureNotSupported, "formatting field \"%s\" is only supported in to_char", f.name)
	case fieldMeridiem, fieldEra, fieldMonthName, fieldMonthAbbrev, fieldMonthRoman, fieldDayName, fieldDayAbbrev:
		return r.named(f)
	case fieldZoneHour:
		return r.zoneHour(p, next)
	case fieldZoneMinute:
		if r.zoneSign == 0 {
			r.zoneSign = 1
		}
		_, err = r.integer(&r.zoneMinutes, p, next, f.width())
		return err
	case fieldYearComma:
		err = r.yearWithComma(f)
	case fieldYear4, fieldYear3, fieldYear2, fieldYear1, fieldISOYear4, fieldISOYear3, fieldISOYear2, fieldISOYear1:
		err = r.yearDigitsOf(p, next)
	case fieldMillis:
		err = r.fraction(&r.millis, 3, p, next)
	case fieldFraction1, fieldFraction2, fieldFraction3, fieldFraction4, fieldFraction5, fieldFraction6:
		r.precision = f.fraction()
		err = r.fraction(&r.micros, 6, p, next)
	case fieldMicros:
		err = r.fraction(&r.micros, 6, p, next)
	default:
		_, err = r.integer(r.place(f), p, next, f.width())
		switch f.id {
		case fieldHour12:
			r.twelve = true
		case fieldISOWeekday: // of ISO's week to one that starts on Sunday
			if r.weekday++; r.weekday > 7 {
				r.weekday = 1
			}
		}
	}
	if err == nil && p.th != "" {
		for range 2 {
			if r.i < len(r.s) {
				r.skipChar()
			}
		}
	}
	return err
}

// place is where the value of a number goes; nil if it has no use.
func (r *reading) place(f *field) *int {
	switch f.id {
	case fieldHour24, fieldHour12:
		return &r.hour
	case fieldMinute:
		return &r.minute
	case fieldSecond:
		return &r.second
	case fieldDaySeconds:
		return &r.daySeconds
	case fieldMonth:
		return &r.month
	case fieldDayOfYear, fieldISODayOfYear:
		return &r.dayOfYear
	case fieldDay:
		return &r.day
	case fieldWeekday, fieldISOWeekday:
		return &r.weekday
	case fieldWeek, fieldISOWeek:
		return &r.week
	case fieldMonthWeek:
		return &r.monthWeek
	case fieldCentury:
		return &r.century
	case fieldJulian:
		return &r.julian
	}
	return nil // the quarter alone is no date
}

// named reads a field made of letters.
func (r *reading) named(f *field) error {
	dst, names, base := &r.weekday, dayNames, 0
	switch f.id {
	case fieldMeridiem:
		dst, names = &r.pm, f.halves(meridiems)
		r.twelve = true
	case fieldEra:
		dst, names = &r.bc, f.halves(eras)
	case fieldMonthName:
		dst, names, base = &r.month, monthNames, 1
	case fieldMonthAbbrev:
		dst, names, base = &r.month, monthAbbrevs, 1
	case fieldMonthRoman:
		dst, names, base = &r.month, romanMonths, 12
	case fieldDayAbbrev:
		names = dayAbbrevs
	}
	v, err := r.name(names, f)
	if err != nil {
		return err
	}
	if base == 12 { // Roman numerals are listed backwards
		v = -v
	}
	err = set(dst, v+base, f)
	if err == nil && dst == &r.weekday {
		r.weekday++
	}
	return err
}

// fraction reads a fraction of a second of the given digits; fewer in the input
// are its first ones.
func (r *reading) fraction(dst *int, digits int, p, next *part) error {
	n, err := r.integer(dst, p, next, p.field.width())
	for ; n < digits && err == nil; n++ {
		*dst *= 10
	}
	return err
}

// yearDigitsOf reads a year by its last digits.
func (r *reading) yearDigitsOf(p, next *part) error {
	f := p.field
	n, err := r.integer(&r.year, p, next, f.width())
	if err != nil {
		return err
	}
	switch f.id {
	case fieldYear4, fieldYear3, fieldYear2, fieldYear1:
		r.yearDigits = 4 - int(f.id-fieldYear4)
	default:
		r.yearDigits = 4 - int(f.id-fieldISOYear4)
	}
	if r.yearDigits < 4 && n < 4 {
		r.year = nearYear(r.year)
	}
	return nil
}

// nearYear completes a year to the one nearest to 2020.
func nearYear(y int) int {
	switch {
	case y < 70:
		return y + 2000
	case y < 100:
		return y + 1900
	case y < 520:
		return y + 2000
	case y < 1000:
		return y + 1000
	}
	return y
}

// yearWithComma reads a year as "2,024".
func (r *reading) yearWithComma(f *field) error {
	r.skipSpace()
	thousands, n, ok := leadingInt(r.rest())
	r.i += n
	comma := strings.HasPrefix(r.rest(), ",")
	if comma {
		r.i++
		r.skipSpace()
	}
	years, m, ok2 := leadingInt(r.rest()[:min(3, len(r.rest()))])
	if n == 0 || m == 0 || !comma || !ok || !ok2 {
		return badDate("invalid input string for \"Y,YYY\"")
	}
	r.i += m
	if err := set(&r.year, thousands*1000+years, f); err != nil {
		return err
	}
	r.yearDigits = 4
	return nil
}

// zoneHour reads the hours of the time zone's offset. Their minus may have been
// taken for a separator.
func (r *reading) zoneHour(p, next *part) error {
	c := r.peek()
	switch {
	case c == '+' || c == '-' || c == ' ':
		r.zoneSign = 1
		if c == '-' {
			r.zoneSign = -1
		}
		r.i++
	case r.skipped > 0 && r.s[r.i-1] == '-':
		r.zoneSign = -1
	default:
		r.zoneSign = 1
	}
	_, err := r.integer(&r.zoneHours, p, next, p.field.width())
	return err
}
