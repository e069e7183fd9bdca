package tochar

import "strings"

// fieldID is what a field of a date template stands for.
type fieldID uint8

const (
	fieldMeridiem fieldID = iota
	fieldEra
	fieldCentury
	fieldDayName
	fieldDayAbbrev
	fieldDayOfYear
	fieldDay
	fieldWeekday
	fieldFraction1 // the six fractions in order
	fieldFraction2
	fieldFraction3
	fieldFraction4
	fieldFraction5
	fieldFraction6
	fieldExact // FX: fixed format from here on
	fieldHour24
	fieldHour12
	fieldISODayOfYear
	fieldISOWeekday
	fieldISOWeek
	fieldISOYear4
	fieldISOYear3
	fieldISOYear2
	fieldISOYear1
	fieldJulian
	fieldMinute
	fieldMonth
	fieldMonthName
	fieldMonthAbbrev
	fieldMillis
	fieldOffset
	fieldQuarter
	fieldMonthRoman
	fieldDaySeconds
	fieldSecond
	fieldZoneHour
	fieldZoneMinute
	fieldZone
	fieldMicros
	fieldWeek
	fieldMonthWeek
	fieldYearComma
	fieldYear4
	fieldYear3
	fieldYear2
	fieldYear1
)

// dateMode is the calendar that a field belongs to; a template to read dates by
// must not mix them.
type dateMode uint8

const (
	anyMode dateMode = iota
	gregorianMode
	isoMode
)

// fieldFlags describes a field.
type fieldFlags uint8

const (
	isNumber fieldFlags = 1 << iota // made of digits
	calendar                        // has no meaning for intervals
	dotted                          // A.M. rather than AM
	fixed                           // of as many digits as its name says, whatever the modifiers
	timed                           // part of a time of day
	zoned                           // part of a time zone
)

// letterCase is how a field's name is written, which its letters follow.
type letterCase uint8

const (
	upperCase letterCase = iota
	titleCase
	lowerCase
)

// append appends a name that is given in title case.
func (c letterCase) append(dst []byte, s string) []byte {
	start := len(dst)
	dst = append(dst, s...)
	for i := start; i < len(dst); i++ {
		switch b := dst[i]; {
		case c == upperCase && b >= 'a' && b <= 'z':
			dst[i] = b - 0x20
		case c == lowerCase && b >= 'A' && b <= 'Z':
			dst[i] = b + 0x20
		}
	}
	return dst
}

type field struct {
	id    fieldID
	name  string // as written
	mode  dateMode
	flags fieldFlags
	style letterCase
}

// fieldTable lists the fields by their names in upper case.
var fieldTable = []field{
	{fieldEra, "A.D.", anyMode, calendar | dotted, 0}, {fieldMeridiem, "A.M.", anyMode, dotted | timed, 0}, {fieldEra, "AD", anyMode, calendar, 0}, {fieldMeridiem, "AM", anyMode, timed, 0},
	{fieldEra, "B.C.", anyMode, calendar | dotted, 0}, {fieldEra, "BC", anyMode, calendar, 0},
	{fieldCentury, "CC", anyMode, isNumber, 0},
	{fieldDayName, "DAY", anyMode, calendar, 0}, {fieldDayOfYear, "DDD", gregorianMode, isNumber, 0}, {fieldDay, "DD", gregorianMode, isNumber, 0}, {fieldDayAbbrev, "DY", anyMode, calendar, 0}, {fieldWeekday, "D", gregorianMode, isNumber | calendar, 0},
	{fieldFraction1, "FF1", anyMode, isNumber | fixed | timed, 0}, {fieldFraction2, "FF2", anyMode, isNumber | fixed | timed, 0}, {fieldFraction3, "FF3", anyMode, isNumber | fixed | timed, 0},
	{fieldFraction4, "FF4", anyMode, isNumber | fixed | timed, 0}, {fieldFraction5, "FF5", anyMode, isNumber | fixed | timed, 0}, {fieldFraction6, "FF6", anyMode, isNumber | fixed | timed, 0},
	{fieldExact, "FX", anyMode, 0, 0},
	{fieldHour24, "HH24", anyMode, isNumber | timed, 0}, {fieldHour12, "HH12", anyMode, isNumber | timed, 0}, {fieldHour12, "HH", anyMode, isNumber | timed, 0},
	{fieldISODayOfYear, "IDDD", isoMode, isNumber, 0}, {fieldISOWeekday, "ID", isoMode, isNumber | calendar, 0}, {fieldISOWeek, "IW", isoMode, isNumber, 0},
	{fieldISOYear4, "IYYY", isoMode, isNumber, 0}, {fieldISOYear3, "IYY", isoMode, isNumber, 0}, {fieldISOYear2, "IY", isoMode, isNumber, 0}, {fieldISOYear1, "I", isoMode, isNumber, 0},
	{fieldJulian, "J", anyMode, isNumber, 0},
	{fieldMinute, "MI", anyMode, isNumber | timed, 0}, {fieldMonth, "MM", gregorianMode, isNumber, 0}, {fieldMonthName, "MONTH", gregorianMode, calendar, 0}, {fieldMonthAbbrev, "MON", gregorianMode, calendar, 0}, {fieldMillis, "MS", anyMode, isNumber | fixed | timed, 0},
	{fieldOffset, "OF", anyMode, calendar | zoned, 0},
	{fieldMeridiem, "P.M.", anyMode, dotted | timed, 0}, {fieldMeridiem, "PM", anyMode, timed, 0},
	{fieldQuarter, "Q", anyMode, isNumber, 0},
	{fieldMonthRoman, "RM", gregorianMode, 0, 0},
	{fieldDaySeconds, "SSSSS", anyMode, isNumber | timed, 0}, {fieldDaySeconds, "SSSS", anyMode, isNumber | timed, 0}, {fieldSecond, "SS", anyMode, isNumber | timed, 0},
	{fieldZoneHour, "TZH", anyMode, calendar | zoned, 0}, {fieldZoneMinute, "TZM", anyMode, isNumber | calendar | zoned, 0}, {fieldZone, "TZ", anyMode, calendar | zoned, 0},
	{fieldMicros, "US", anyMode, isNumber | fixed | timed, 0},
	{fieldWeek, "WW", gregorianMode, isNumber, 0}, {fieldMonthWeek, "W", gregorianMode, isNumber, 0},
	{fieldYearComma, "Y,YYY", gregorianMode, isNumber, 0}, {fieldYear4, "YYYY", gregorianMode, isNumber, 0}, {fieldYear3, "YYY", gregorianMode, isNumber, 0}, {fieldYear2, "YY", gregorianMode, isNumber, 0}, {fieldYear1, "Y", gregorianMode, isNumber, 0},
}

const longestField = len("MONTH")

// dateFields are the fields by their names: in upper case, in lower case, and
// names of days and months in title case.
var dateFields = func() map[string]*field {
	m := make(map[string]*field, 3*len(fieldTable))
	for i := range fieldTable {
		f := fieldTable[i]
		m[f.name] = &f
		low := f
		low.name, low.style = strings.ToLower(f.name), lowerCase
		m[low.name] = &low
		switch f.id {
		case fieldDayName, fieldDayAbbrev, fieldMonthName, fieldMonthAbbrev:
			title := f
			title.name, title.style = f.name[:1]+low.name[1:], titleCase
			m[title.name] = &title
		}
	}
	return m
}()

// width is the number of characters a field takes when it is read at fixed width.
func (f *field) width() int {
	switch f.id {
	case fieldHour24, fieldHour12, fieldZoneHour, fieldZoneMinute:
		return 2
	case fieldMillis, fieldISODayOfYear:
		return 3
	case fieldMicros:
		return 6
	case fieldISOWeekday:
		return 1
	case fieldFraction1, fieldFraction2, fieldFraction3, fieldFraction4, fieldFraction5, fieldFraction6:
		return f.fraction()
	}
	return len(f.name)
}

// fraction is the number of decimals of a fraction of a second.
func (f *field) fraction() int { return int(f.id-fieldFraction1) + 1 }

// longestPrefix finds the longest prefix of s, up to n bytes, that table knows.
func longestPrefix[V any](table map[string]*V, s string, n int) *V {
	for n = min(n, len(s)); n > 0; n-- {
		if v := table[s[:n]]; v != nil {
			return v
		}
	}
	return nil
}
