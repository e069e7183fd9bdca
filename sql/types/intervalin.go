package types

import (
	"math"
	"slices"
	"strings"
)

// intervalReader collects the parts of an interval.
type intervalReader struct {
	years, months, days int32
	micros              int64
	firstSign           bool // a minus at the beginning counts for all fields
	negative            bool // there is one, and no other sign
}

func (r *intervalReader) addMicros(n int64, frac float64, unit int64) bool {
	p, ok := mul64(n, unit)
	if !ok {
		return false
	}
	if r.micros, ok = add64(r.micros, p); !ok {
		return false
	}
	return r.addFraction(frac, unit)
}

// addFraction adds a fraction (below 1) of a unit of microseconds, rounded
// half down.
func (r *intervalReader) addFraction(frac float64, unit int64) bool {
	if frac == 0 {
		return true
	}
	frac *= float64(unit)
	us := int64(frac)
	if frac -= float64(us); frac > 0.5 {
		us++
	} else if frac < -0.5 {
		us--
	}
	var ok bool
	r.micros, ok = add64(r.micros, us)
	return ok
}

func (r *intervalReader) addDays(n int64, frac float64, unit int32) bool {
	ok := addScaled(&r.days, n, unit)
	if !ok || frac == 0 {
		return ok
	}
	frac *= float64(unit)
	whole := int32(frac)
	return addScaled(&r.days, int64(whole), 1) && r.addFraction(frac-float64(whole), MicrosPerDay)
}

func (r *intervalReader) addMonths(n int64, frac float64) bool {
	if !addScaled(&r.months, n, 1) {
		return false
	}
	if frac == 0 {
		return true
	}
	return r.addDays(0, frac*30, 1)
}

func (r *intervalReader) addYears(n int64, frac float64, unit int32) bool {
	return addScaled(&r.years, n, unit) &&
		addScaled(&r.months, int64(math.RoundToEven(frac*float64(unit)*12)), 1)
}

// addScaled adds n*unit to *sum, if all stays in 32 bits.
func addScaled(sum *int32, n int64, unit int32) bool {
	if n != int64(int32(n)) {
		return false
	}
	p := n * int64(unit)
	s := int64(*sum) + p
	if p != int64(int32(p)) || s != int64(int32(s)) {
		return false
	}
	*sum = int32(s)
	return true
}

func mul64(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	p := a * b
	return p, p/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64)
}

func add64(a, b int64) (int64, bool) {
	s := a + b
	return s, (s > a) == (b > 0)
}

// add adds n.frac of a unit.
func (r *intervalReader) add(unit int, n int64, frac float64) dtError {
	ok := true
	switch unit {
	case unitMicrosecond:
		ok = r.addMicros(n, frac, 1)
	case unitMillisecond:
		ok = r.addMicros(n, frac, 1000)
	case unitSecond:
		ok = r.addMicros(n, frac, MicrosPerSecond)
	case unitMinute:
		ok = r.addMicros(n, frac, MicrosPerMinute)
	case unitHour:
		ok = r.addMicros(n, frac, MicrosPerHour)
	case unitDay:
		ok = addScaled(&r.days, n, 1) && r.addFraction(frac, MicrosPerDay)
	case unitWeek:
		ok = r.addDays(n, frac, 7)
	case unitMonth:
		ok = r.addMonths(n, frac)
	case unitYear:
		ok = r.addYears(n, frac, 1)
	case unitDecade:
		ok = r.addYears(n, frac, 10)
	case unitCentury:
		ok = r.addYears(n, frac, 100)
	case unitMillennium:
		ok = r.addYears(n, frac, 1000)
	default:
		return dtBadFormat
	}
	if !ok {
		return dtOverflow
	}
	return dtOK
}

// rightmostUnit is what a number without a unit means, by the modifier's fields.
func rightmostUnit(fields int32) int {
	switch {
	case fields == intervalFullRange, fields&intervalSecond != 0:
		return unitSecond
	case fields&intervalMinute != 0:
		return unitMinute
	case fields&intervalHour != 0:
		return unitHour
	case fields&intervalDay != 0:
		return unitDay
	case fields&intervalMonth != 0:
		return unitMonth
	case fields&intervalYear != 0:
		return unitYear
	}
	return unitSecond
}

// clock reads [h]h:mm[:ss] and its like; it replaces the time so far.
func (r *intervalReader) clock(s string, fields int32) dtError {
	h, rest, e := leadInt(s)
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
	sec, us := 0, int64(0)
	shift := false // mm:ss
	switch {
	case rest == "":
		shift = fields == intervalMinute|intervalSecond
	case rest[0] == '.':
		us, e = parseFractionMicros(rest)
		shift = true
	case rest[0] == ':':
		if sec, rest, e = leadInt32(rest[1:]); e != dtOK {
			return e
		}
		if strings.HasPrefix(rest, ".") {
			us, e = parseFractionMicros(rest)
		} else if rest != "" {
			return dtBadFormat
		}
	default:
		return dtBadFormat
	}
	if e != dtOK {
		return e
	}
	if shift {
		if h > math.MaxInt32 || h < math.MinInt32 {
			return dtOverflow
		}
		sec, m, h = m, int(h), 0
	}
	if h < 0 || m < 0 || m > 59 || sec < 0 || sec > 60 || us < 0 || us > MicrosPerSecond {
		return dtOverflow
	}
	r.micros = us
	if !r.addMicros(h, 0, MicrosPerHour) || !r.addMicros(int64(m), 0, MicrosPerMinute) || !r.addMicros(int64(sec), 0, MicrosPerSecond) {
		return dtOverflow
	}
	return dtOK
}

// intervalSeen is the bit of a unit, several for seconds with a fraction.
func intervalSeen(unit int, frac float64) uint32 {
	if unit == unitSecond && frac != 0 {
		return 1<<unitSecond | 1<<unitMillisecond | 1<<unitMicrosecond
	}
	return 1 << unit
}

const intervalSeenTime = 1<<unitHour | 1<<unitMinute | 1<<unitSecond | 1<<unitMillisecond | 1<<unitMicrosecond

// decodeInterval reads fields from right to left, so that units come before
// their numbers.
func (r *intervalReader) decodeInterval(s string, fields int32) dtError {
	var fs [maxDTFields]dtField
	n, e := splitDateTime(s, &fs)
	if e != dtOK {
		return e
	}
	r.negative = r.firstSign && n > 0 && fs[0].s[0] == '-' && !slices.ContainsFunc(fs[1:n], func(f dtField) bool { return f.s[0] == '-' || f.s[0] == '+' })
	unit, ago := 0, false
	var seen uint32
	noUnit := true
	for i := n - 1; i >= 0; i-- {
		f := fs[i]
		var now uint32
		switch f.kind {
		case dtTime:
			e, now, unit, noUnit = r.clock(f.s, fields), intervalSeenTime, unitDay, false
			if r.negative {
				r.micros = min(r.micros, -r.micros)
			}
		case dtString, dtSpecial:
			switch w := intervalWords[cutWord(f.s)]; w.kind {
			case wordIgnore:
				continue
			case wordUnits, wordAgo:
				unit, noUnit = w.val, false
				ago = ago || w.kind == wordAgo
			default:
				return dtBadFormat
			}
		default:
			if f.kind == dtZone && strings.IndexByte(f.s, ':') >= 0 {
				if t := *r; t.clock(f.s[1:], fields) == dtOK {
					if *r = t; f.s[0] == '-' {
						r.micros = -r.micros
					}
					now, unit, noUnit = intervalSeenTime, unitDay, false
					break
				}
			}
			if noUnit {
				unit, noUnit = rightmostUnit(fields), false
			}
			now, unit, e = r.number(f.s, unit)
		}
		if e != dtOK {
			return e
		}
		if now&seen != 0 {
			return dtBadFormat
		}
		seen |= now
	}
	if seen == 0 {
		return dtBadFormat
	}
	if ago {
		if r.micros == math.MinInt64 || r.days == math.MinInt32 || r.months == math.MinInt32 || r.years == math.MinInt32 {
			return dtOverflow
		}
		r.micros, r.days, r.months, r.years = -r.micros, -r.days, -r.months, -r.years
	}
	return dtOK
}

// number reads a signed number of units, or years-months, and returns the
// unit of the number before it.
func (r *intervalReader) number(s string, unit int) (seen uint32, next int, e dtError) {
	n, rest, e := leadInt(s)
	if e != dtOK {
		return 0, unit, e
	}
	frac := 0.0
	switch {
	case rest == "":
	case rest[0] == '-':
		m, rest, e := leadInt32(rest[1:])
		if e != dtOK || m < 0 || m >= 12 {
			return 0, unit, dtOverflow
		}
		if rest != "" {
			return 0, unit, dtBadFormat
		}
		if s[0] == '-' {
			m = -m
		}
		var ok1, ok2 bool
		n, ok1 = mul64(n, 12)
		n, ok2 = add64(n, int64(m))
		if !ok1 || !(ok2 || m == 0) {
			return 0, unit, dtOverflow
		}
		unit = unitMonth
	case rest[0] == '.':
		if frac, e = parseFraction(rest); e != dtOK {
			return 0, unit, e
		}
		if s[0] == '-' {
			frac = -frac
		}
	default:
		return 0, unit, dtBadFormat
	}
	if r.negative {
		n, frac = min(n, -n), min(frac, -frac)
	}
	e = r.add(unit, n, frac)
	seen = intervalSeen(unit, frac)
	if unit == unitHour {
		unit = unitDay
	}
	return seen, unit, e
}

// isoNumber reads a number of an ISO 8601 interval.
func isoNumber(s string) (n int64, frac float64, rest string, e dtError) {
	if s == "" || (!isDigit(s[0]) && s[0] != '-' && s[0] != '.') {
		return 0, 0, s, dtBadFormat
	}
	f, k, ok := leadFloat(s, 64)
	if k == 0 || !ok {
		return 0, 0, s, dtBadFormat
	}
	if f < -1e15 || f > 1e15 {
		return 0, 0, s, dtOverflow
	}
	n = int64(f)
	return n, f - float64(n), s[k:], dtOK
}

// isoInterval reads an ISO 8601 interval: with designators (P1Y2M3DT4H5M6S) or
// in the alternative form (P0001-02-03T04:05:06, P00010203T040506).
type isoInterval struct {
	*intervalReader
	s     string
	field bool // some field of this part has been read
}

func (r *intervalReader) decodeISO(s string) dtError {
	if len(s) < 2 || s[0] != 'P' {
		return dtBadFormat
	}
	p := isoInterval{intervalReader: r, s: s[1:]}
	datePart := true
	for p.s != "" {
		if p.s[0] == 'T' {
			datePart, p.field = false, false
			p.s = p.s[1:]
			continue
		}
		var e dtError
		var done bool
		if datePart {
			done, e = p.dateField()
		} else {
			done, e = p.timeField()
		}
		if e != dtOK || done {
			return e
		}
		p.field = true
	}
	return dtOK
}

// intWidth is the number of digits before the point.
func intWidth(s string) int {
	s = strings.TrimPrefix(s, "-")
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

// unit takes the character after a number, 0 at the end.
func (p *isoInterval) unit() byte {
	if p.s == "" {
		return 0
	}
	c := p.s[0]
	p.s = p.s[1:]
	return c
}

func (p *isoInterval) dateField() (done bool, e dtError) {
	width := intWidth(p.s)
	n, frac, rest, e := isoNumber(p.s)
	if e != dtOK {
		return false, e
	}
	p.s = rest
	switch c := p.unit(); c {
	case 'Y':
		return false, p.add(unitYear, n, frac)
	case 'M':
		return false, p.add(unitMonth, n, frac)
	case 'W':
		return false, p.add(unitWeek, n, frac)
	case 'D':
		return false, p.add(unitDay, n, frac)
	case 'T', 0:
		if c == 'T' {
			p.s = "T" + p.s
		}
		if width == 8 && !p.field {
			return c == 0, p.addAll([]int{unitYear, unitMonth, unitDay}, []int64{n / 10000, n / 100 % 100, n % 100}, frac)
		}
		return p.alternative([]int{unitYear, unitMonth, unitDay}, n, frac, 0)
	case '-':
		return p.alternative([]int{unitYear, unitMonth, unitDay}, n, frac, '-')
	}
	return false, dtBadFormat
}

func (p *isoInterval) timeField() (done bool, e dtError) {
	width := intWidth(p.s)
	n, frac, rest, e := isoNumber(p.s)
	if e != dtOK {
		return false, e
	}
	p.s = rest
	switch p.unit() {
	case 'H':
		return false, p.add(unitHour, n, frac)
	case 'M':
		return false, p.add(unitMinute, n, frac)
	case 'S':
		return false, p.add(unitSecond, n, frac)
	case 0:
		if width == 6 && !p.field {
			// The fraction is lost, as PostgreSQL counts it in microseconds.
			e := p.addAll([]int{unitHour, unitMinute, unitSecond}, []int64{n / 10000, n / 100 % 100, n % 100}, 0)
			if e == dtOK {
				e = p.add(unitMicrosecond, 0, frac)
			}
			return true, e
		}
		return p.alternative([]int{unitHour, unitMinute, unitSecond}, n, frac, 0)
	case ':':
		return p.alternative([]int{unitHour, unitMinute, unitSecond}, n, frac, ':')
	}
	return false, dtBadFormat
}

// addAll adds whole numbers of units, and a fraction of the last.
func (p *isoInterval) addAll(units []int, n []int64, frac float64) dtError {
	for i, u := range units {
		f := 0.0
		if i == len(units)-1 {
			f = frac
		}
		if e := p.add(u, n[i], f); e != dtOK {
			return e
		}
	}
	return dtOK
}

// alternative reads the alternative form, whose first number (n.frac) has been
// read with the separator sep after it.
func (p *isoInterval) alternative(units []int, n int64, frac float64, sep byte) (done bool, e dtError) {
	if p.field {
		return false, dtBadFormat
	}
	if e := p.add(units[0], n, frac); e != dtOK {
		return false, e
	}
	for _, u := range units[1:] {
		if sep == 0 {
			break
		}
		n, frac, rest, e := isoNumber(p.s)
		if e != dtOK {
			return false, e
		}
		if e := p.add(u, n, frac); e != dtOK {
			return false, e
		}
		p.s = rest
		if p.s == "" || (p.s[0] == 'T' && units[0] == unitYear) {
			break
		}
		if p.s[0] != sep || u == units[2] {
			return false, dtBadFormat
		}
		p.s = p.s[1:]
	}
	return p.s == "", dtOK
}

// ParseInterval reads an interval in any of PostgreSQL's forms; modifier mod
// says what a number without a unit means, and applies to the result.
func ParseInterval(s string, mod int32, o *Options) (Span, error) {
	fields := int32(intervalFullRange)
	if mod >= 0 {
		fields = mod >> 16 & intervalFullRange
	}
	r := intervalReader{firstSign: o.style().Interval == IntervalSQL}
	e := r.decodeInterval(s, fields)
	if e == dtBadFormat {
		r = intervalReader{}
		e = r.decodeISO(s)
	}
	if e != dtOK {
		if e == dtOverflow {
			e = dtIntervalOverflow
		}
		return Span{}, e.error(s, "interval", "")
	}
	months := int64(r.years)*12 + int64(r.months)
	if months != int64(int32(months)) {
		return Span{}, errIntervalRange()
	}
	return Span{int32(months), r.days, r.micros}.ApplyTypmod(mod), nil
}
