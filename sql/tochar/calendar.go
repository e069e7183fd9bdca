package tochar

// The calendar of templates is defined for any numbers, as those of intervals
// are none of dates: "month 0", or the day 400 of a month.

// julianDay is the day number of a date, counted from 4714-11-24 BC; year 0 is
// 1 BC.
func julianDay(year, month, day int32) int32 {
	// Count from March, so that the leap day comes last.
	if month > 2 {
		month++
		year += 4800
	} else {
		month += 13
		year += 4799
	}
	century := year / 100
	return year*365 - 32167 + year/4 - century + century/4 + 7834*month/256 + day
}

// weekday is the day of the week of a day number; Sunday is 0.
func weekday(j int32) int32 {
	d := (j + 1) % 7
	if d < 0 {
		d += 7
	}
	return d
}

// isoWeekStart is the day number of the Monday of a week of an ISO year.
func isoWeekStart(year, week int32) int32 {
	fourth := julianDay(year, 1, 4) // always in week 1
	return (week-1)*7 + fourth - weekday(fourth-1)
}

// isoYearWeek is the ISO year and week of a date.
func isoYearWeek(year, month, day int32) (y, week int32) {
	j := julianDay(year, month, day)
	y = year
	if j < isoWeekStart(y, 1) {
		y--
	}
	week = (j-isoWeekStart(y, 1))/7 + 1
	if week >= 53 {
		if next := isoWeekStart(year+1, 1); j >= next {
			return year + 1, (j-next)/7 + 1
		}
	}
	return y, week
}

func isoWeek(year, month, day int32) int32 {
	_, w := isoYearWeek(year, month, day)
	return w
}

func isoYear(year, month, day int32) int32 {
	y, _ := isoYearWeek(year, month, day)
	return y
}
