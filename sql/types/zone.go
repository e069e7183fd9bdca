package types

import (
	_ "embed" // zone names and abbreviations
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones must not depend on the machine

	"github.com/streamdb/streamdb/sql/pgerror"
)

//go:embed tznames.txt
var zoneNamesText string

//go:embed tzabbrev.tsv
var zoneAbbrevText string

// zoneAbbrev is what an abbreviation stands for: an offset, or what a zone's
// history says of it.
type zoneAbbrev struct {
	east int
	dst  bool
	zone string
}

var zoneTables = sync.OnceValues(func() (names map[string]string, abbrevs map[string]zoneAbbrev) {
	names, abbrevs = map[string]string{}, map[string]zoneAbbrev{}
	for n := range strings.FieldsSeq(zoneNamesText) {
		names[strings.ToLower(n)] = n
	}
	for line := range strings.Lines(zoneAbbrevText) {
		f := strings.Fields(line)
		if f[0] == "#" {
			continue
		}
		a := zoneAbbrev{dst: len(f) > 2}
		if east, err := strconv.Atoi(f[1]); err == nil {
			a.east = east
		} else {
			a.zone = f[1]
		}
		abbrevs[strings.ToLower(f[0])] = a
	}
	return names, abbrevs
})

var loadedZones sync.Map // lower-case name → *time.Location

// ZoneNames lists the names of the time zone database, sorted.
func ZoneNames() []string { return strings.Fields(zoneNamesText) }

// LoadZone finds a zone of the time zone database, letter case ignored, or one
// in POSIX notation with a fixed offset ("UTC+3" is three hours west).
func LoadZone(name string) (*time.Location, bool) {
	key := strings.ToLower(name)
	if l, ok := loadedZones.Load(key); ok {
		return l.(*time.Location), true
	}
	names, _ := zoneTables()
	if n, ok := names[key]; ok {
		if n == "UTC" {
			return time.UTC, true
		}
		l, err := time.LoadLocation(n)
		if err != nil {
			return nil, false
		}
		loadedZones.Store(key, l)
		return l, true
	}
	return posixZone(name)
}

// defaultDSTRule is when daylight saving applies in a POSIX zone that does not
// say: the rule of the United States.
const defaultDSTRule = ",M3.2.0,M11.1.0"

// posixZone reads a zone in POSIX notation: an abbreviation (may be empty), an offset west of
// UTC (hh[:mm[:ss]]), and maybe one for daylight saving, with its rule.
func posixZone(s string) (*time.Location, bool) {
	std, rest := posixName(s)
	west, rest, ok := posixOffset(rest)
	if !ok {
		return nil, false
	}
	name := strings.ToUpper(std)
	if rest == "" {
		return time.FixedZone(name, -west), true
	}
	dst, rest := posixName(rest)
	if dst == "" {
		return nil, false
	}
	dstWest := west - 3600
	if rest != "" && rest[0] != ',' {
		if dstWest, rest, ok = posixOffset(rest); !ok || (rest != "" && rest[0] != ',') {
			return nil, false
		}
	}
	if rest == "" {
		rest = defaultDSTRule
	}
	// The time package reads such rules at the end of zone files only.
	loc, err := time.LoadLocationFromTZData(name, tzFile("LMT", nil, posixPart(name, west)+posixPart(strings.ToUpper(dst), dstWest)+rest))
	return loc, err == nil
}

// posixName takes an abbreviation off s.
func posixName(s string) (name, rest string) {
	if strings.HasPrefix(s, "<") {
		name, rest, _ = strings.Cut(s[1:], ">")
		return name, rest
	}
	i := 0
	for i < len(s) && s[i] != '+' && s[i] != '-' && s[i] != ',' && !isDigit(s[i]) {
		i++
	}
	return s[:i], s[i:]
}

// posixOffset takes an offset off s, in seconds west of UTC.
func posixOffset(s string) (west int, rest string, ok bool) {
	sign := 1
	if s != "" && (s[0] == '-' || s[0] == '+') {
		if s[0] == '-' {
			sign = -1
		}
		s = s[1:]
	}
	const maxHours = 24*7 - 1
	for unit, limit := 3600, maxHours; ; unit, limit = unit/60, 59 {
		i, n := 0, 0
		for i < len(s) && isDigit(s[i]) && n <= limit {
			n = n*10 + int(s[i]-'0')
			i++
		}
		if i == 0 || n > limit+unit%2 { // 60 seconds pass
			return 0, s, false
		}
		west += n * unit
		if s = s[i:]; unit == 1 || !strings.HasPrefix(s, ":") {
			return sign * west, s, true
		}
		s = s[1:]
	}
}

// posixPart is an abbreviation and offset as the time package reads them.
func posixPart(name string, west int) string {
	sign := ""
	if west < 0 {
		sign, west = "-", -west
	}
	return fmt.Sprintf("<%s>%s%d:%02d:%02d", (name + "   ")[:max(3, len(name))], sign, west/3600, west/60%60, west%60)
}

// zoneChange is a moment, in Unix seconds, from which an offset holds.
type zoneChange struct {
	at  int64
	off int
}

// tzFile is a zone file (RFC 8536) with changes of the offset, of which the first is in
// force before it, too, and a footer; every type has the abbreviation of 3 letters or more.
func tzFile(abbrev string, changes []zoneChange, footer string) []byte {
	head := func(version byte, changes []zoneChange) []byte {
		h := append([]byte("TZif"), version)
		h = append(h, make([]byte, 15)...)
		for _, n := range []int{0, 0, 0, len(changes), max(1, len(changes)), len(abbrev) + 1} {
			h = binary.BigEndian.AppendUint32(h, uint32(n))
		}
		for _, c := range changes {
			h = binary.BigEndian.AppendUint64(h, uint64(c.at))
		}
		for i := range changes {
			h = append(h, byte(i))
		}
		if len(changes) == 0 {
			changes = []zoneChange{{}}
		}
		for _, c := range changes {
			h = append(binary.BigEndian.AppendUint32(h, uint32(int32(c.off))), 0, 0)
		}
		return append(append(h, abbrev...), 0)
	}
	return append(append(head('2', nil), head('2', changes)...), "\n"+footer+"\n"...)
}

var abbrevZones sync.Map // upper-case abbreviation → *time.Location

// abbrevZone is the zone of who goes by an abbreviation all the year: its offset is that
// of the abbreviation's latest use in loc, before all of them that of the first.
func abbrevZone(abbrev string, loc *time.Location) *time.Location {
	if l, ok := abbrevZones.Load(abbrev); ok {
		return l.(*time.Location)
	}
	var changes []zoneChange
	last := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	for t := time.Date(1800, 1, 1, 0, 0, 0, 0, time.UTC); t.Before(last); {
		t = t.In(loc)
		start, end := t.ZoneBounds()
		name, off := t.Zone()
		if strings.EqualFold(name, abbrev) && (len(changes) == 0 || changes[len(changes)-1].off != off) {
			at := int64(-1 << 40)
			if !start.IsZero() {
				at = start.Unix()
			}
			changes = append(changes, zoneChange{at, off})
		}
		if end.IsZero() {
			break
		}
		t = end
	}
	out := loc
	if len(changes) > 0 {
		if l, err := time.LoadLocationFromTZData(abbrev, tzFile((abbrev + "   ")[:max(3, len(abbrev))], changes, "")); err == nil {
			out = l
		}
	}
	abbrevZones.Store(abbrev, out)
	return out
}

// ParseZone finds what a zone name in SQL (SET TIME ZONE, AT TIME ZONE) means:
// an abbreviation, a name of the time zone database, or POSIX notation.
func ParseZone(name string) (*time.Location, error) {
	_, abbrevs := zoneTables()
	if a, ok := abbrevs[strings.ToLower(name)]; ok {
		if a.zone == "" {
			return time.FixedZone(strings.ToUpper(name), a.east), nil
		}
		if l, ok := LoadZone(a.zone); ok {
			return abbrevZone(strings.ToUpper(name), l), nil
		}
	}
	if l, ok := LoadZone(name); ok {
		return l, nil
	}
	return nil, pgerror.New(pgerror.InvalidParameterValue, "time zone \"%s\" not recognized", name)
}

// LocalOffset is the offset east of UTC, in seconds, at which a clock in loc
// shows local (microseconds since 2000-01-01 00:00 of that clock). A local
// time that occurs twice or never is read as PostgreSQL does: by the offset
// before a step forward, by the one after a step back.
func LocalOffset(local int64, loc *time.Location) int {
	if loc == time.UTC || loc == nil {
		return 0
	}
	sec := floorDiv(local, MicrosPerSecond) + UnixEpochSecond
	prev := time.Unix(sec-24*3600, 0).In(loc)
	_, before := prev.Zone()
	_, end := prev.ZoneBounds()
	if end.IsZero() {
		return before
	}
	boundary := end.Unix()
	_, after := end.Zone()
	t1, t2 := sec-int64(before), sec-int64(after)
	switch {
	case t1 < boundary && t2 < boundary:
		return before
	case t1 > boundary && t2 >= boundary:
		return after
	case t1 > t2:
		return before
	}
	return after
}

// LocalToUTC is the timestamptz at which a clock in loc shows timestamp local.
func LocalToUTC(local int64, loc *time.Location) int64 {
	return local - int64(LocalOffset(local, loc))*MicrosPerSecond
}

// UTCToLocal is what a clock in loc shows at timestamptz ts.
func UTCToLocal(ts int64, loc *time.Location) int64 {
	return ts + int64(ZoneOffset(ts, loc))*MicrosPerSecond
}

// abbrevOffset is the offset east of UTC that an abbreviation had in loc at a
// local time: that of its latest use before, else of its first after, else the
// one the zone has then.
func abbrevOffset(local int64, abbrev string, loc *time.Location) int {
	off := LocalOffset(local, loc)
	t := time.Unix(floorDiv(local, MicrosPerSecond)+UnixEpochSecond-int64(off), 0).In(loc)
	for u := t; ; {
		name, o := u.Zone()
		if strings.EqualFold(name, abbrev) {
			return o
		}
		start, _ := u.ZoneBounds()
		if start.IsZero() {
			break
		}
		u = start.Add(-time.Second)
	}
	const steps = 200 // far enough for every zone that ends in rules
	for range steps {
		_, end := t.ZoneBounds()
		if end.IsZero() {
			break
		}
		t = end
		name, o := t.Zone()
		if strings.EqualFold(name, abbrev) {
			return o
		}
	}
	return off
}

// Abbreviation is one of a time zone: its offset in seconds east of UTC, and
// whether it is that of daylight saving.
type Abbreviation struct {
	Name string
	East int
	DST  bool
}

// ZoneAbbreviations are the abbreviations of time zones by name, as they are
// used at a time.
func ZoneAbbreviations(now time.Time) []Abbreviation {
	_, abbrevs := zoneTables()
	out := make([]Abbreviation, 0, len(abbrevs))
	for name, a := range abbrevs {
		x := Abbreviation{strings.ToUpper(name), a.east, a.dst}
		if a.zone != "" {
			loc, ok := LoadZone(a.zone)
			if !ok {
				continue
			}
			x.East, x.DST = abbrevAt(now.In(loc), x.Name)
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b Abbreviation) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// abbrevAt is what an abbreviation means in the zone of t: now, or when it was
// last used.
func abbrevAt(t time.Time, abbrev string) (east int, dst bool) {
	_, off := t.Zone()
	for u := t; ; {
		name, o := u.Zone()
		if strings.EqualFold(name, abbrev) {
			return o, u.IsDST()
		}
		start, _ := u.ZoneBounds()
		if start.IsZero() {
			return off, t.IsDST()
		}
		u = start.Add(-time.Second)
	}
}
