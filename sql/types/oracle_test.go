package types

import (
	"flag"
	"fmt"
	"math/rand"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/pgerror"
)

var seed = flag.Int64("seed", 1, "seed of the random tests")

// show parses s as type t and prints it again, or shows the error.
func show(t Type, s string, o *Options) oracle.Result {
	b := columnar.NewBuilder(t.Kind(), 1)
	if err := ParseText(b, t, s, o); err != nil {
		e := pgerror.As(err)
		return oracle.Result{Null: true, Code: e.Code, Message: e.Message, Detail: e.Detail, Hint: e.Hint}
	}
	v := b.Build()
	return oracle.Result{Text: string(AppendText(nil, t, v, 0, o))}
}

// compareInputs checks ParseText and AppendText of a type against PostgreSQL.
func compareInputs(t *testing.T, s *oracle.Server, typ Type, o *Options, inputs []string) {
	t.Helper()
	exprs := make([]string, len(inputs))
	for i, in := range inputs {
		exprs[i] = fmt.Sprintf("%s::%s", oracle.Quote(in), typ)
		switch {
		case typ.OID == OIDInet: // the cast to text shows the mask always
			exprs[i] = fmt.Sprintf("format('%%s', %s)", exprs[i])
		case typ.OID == OIDBool:
			exprs[i] = fmt.Sprintf("case when %s then 't' else 'f' end", exprs[i])
		case typ.OID == OIDVarchar && typ.Mod > 0:
			exprs[i] = fmt.Sprintf("varcharin(%s, 0, %d)", oracle.Quote(in), typ.Mod)
		case typ.OID == OIDVarcharArray:
			exprs[i] = fmt.Sprintf("array_in(%s, %d, %d)", oracle.Quote(in), OIDVarchar, typ.Mod)
		case typ.OID == OIDBPChar: // the cast to text drops blanks
			exprs[i] = fmt.Sprintf("convert_from(bpcharsend(bpcharin(%s, 0, %d)), 'UTF8')", oracle.Quote(in), typ.Mod)
		}
	}
	bad := 0
	for i, want := range s.Eval(t, exprs) {
		if got := show(typ, inputs[i], o); got != want {
			if bad++; bad <= maxShown {
				t.Errorf("%s %q:\n got %v %s\nwant %v %s", typ, inputs[i], got, got.Hint+got.Detail, want, want.Hint+want.Detail)
			}
		}
	}
	if bad > maxShown {
		t.Errorf("%d differences in %d inputs", bad, len(inputs))
	}
}

// maxShown bounds the differences that a failing test prints.
const maxShown = 12

// pick joins random parts.
func pick(r *rand.Rand, parts ...[]string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p[r.Intn(len(p))])
	}
	return b.String()
}

func TestScalarInputs(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	digits := []string{"", "0", "1", "7", "12", "127", "128", "255", "32767", "32768", "65536", "2147483647", "2147483648", "4294967295", "4294967296",
		"9223372036854775807", "9223372036854775808", "18446744073709551615", "99999999999999999999", "1.5", ".5", "5.", "1e3", "1E-3", "1e400", "1e-400", "0x1F", "x", "NaN", "inf", "Infinity", "1_000", "1 2"}
	var in []string
	for range 3000 {
		in = append(in, pick(r, []string{"", "", " ", "\t", "\n "}, []string{"", "", "-", "+", "--", "- "}, digits, []string{"", "", "", "e5", "E+05", "e", ".", " ", "  \v"}))
	}
	for _, typ := range []Type{Int2, Int4, Int8, Oid, Float4, Float8, Numeric, {OIDNumeric, 4 + 5<<16 | 2}, {OIDNumeric, 4 + 3<<16 | 2045}, {OIDNumeric, 4 + 3<<16 | 5}} {
		compareInputs(t, s, typ, nil, in)
	}
	compareInputs(t, s, Bool, nil, []string{"t", "T", "true", "tr", "TRUE", "truex", "y", "yes", "ye", "on", "o", "of", "off", "offf", "1", "0", "10", "f", "fa", "false", "n", "no", "nop", "", " ", " t ", "\ttrue\n"})
	compareInputs(t, s, UUID, nil, []string{"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
		"a0eebc999c0b4ef8bb6d6bb9bd380a11", "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11x", "{a0eebc999c0b4ef8bb6d6bb9bd380a11", "a-0eebc999c0b4ef8bb6d6bb9bd380a11", "", "{}", " a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc999c0b4ef8bb6d6bb9bd380a11-"})
	for _, typ := range []Type{Text, {OIDVarchar, 4 + 3}, {OIDBPChar, 4 + 5}, Of(OIDVarchar), Bytea, Char, Name} {
		compareInputs(t, s, typ, nil, []string{"", "a", "abc", "abcd", "abc  ", "ab   ", "äöü", "äöüß", "äöü    ", "     ", `\x`, `\x01`, `\x0`, `\xgg`, `\x0 1`, `\x 01 ff`, `\\`, `\`, `\001`, `\400`, `a\377b`, "\x01\x02", "é", `\xAbCd`, strings.Repeat("é", 40)})
	}
}

func TestFloatText(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	var in []string
	for range 3000 {
		in = append(in, fmt.Sprintf("%ve%d", r.Float64()*2-1, r.Intn(80)-40))
		in = append(in, fmt.Sprintf("%de%d", r.Intn(1000), r.Intn(40)-20))
	}
	in = append(in, "-0", "0", "-0.0", "1e15", "1e14", "999999999999999", "100000", "1000000", "123456", "1234567", "0.0001", "0.00001", "5e-324", "2e-324", "1e-45", "1e-46", "3.4e38", "3.5e38", "1e308", "1e309")
	compareInputs(t, s, Float8, nil, in)
	compareInputs(t, s, Float4, nil, in)
	for _, extra := range []int{0, -3, -15} {
		s.Exec(t, fmt.Sprintf("SET extra_float_digits = %d", extra))
		o := &Options{FloatDigits: max(1, 15+extra)}
		compareInputs(t, s, Float8, o, in)
	}
}

// overflows are days of years so large that PostgreSQL's arithmetic wraps around.
var overflows = regexp.MustCompile(`\d{9,}[.-]|\d{8,}\.\d{3}`)

func TestDateTimeInputs(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	years := []string{"2024", "1999", "99", "02", "0001", "4714", "12345", "294276", "5874897", "1", "0", "24"}
	md := []string{"1", "2", "02", "12", "13", "29", "30", "31", "32", "00", "Jan", "feb", "September", "sept", "DECEMBER", "255"}
	sep := []string{"-", "-", "-", "/", ".", " ", ""}
	clock := []string{"", "", "", "12:34", "12:34:56", "00:00:00", "23:59:59.999999", "23:59:60", "24:00:00", "24:00:01", "12:34:56.1234567", "1:2:3", "12:60:00", "123456", "1234", "T123456.5", "T12:34:56", "04:05 PM", "12:00 am", "13:00 PM", "25:00", "12:34:56.5 pm", "101112.345", "::", "1:.5"}
	zone := []string{"", "", "", "", "Z", "UTC", " zulu", "+02", "-08:00", "+0530", "+05:30:15", " America/New_York", " EST", " EDT", " PST8PDT", " europe/berlin", "+16", "-15:59", " XYZ", " BC", " AD", " +3 BC", " MSK", " UTC+3", " est5edt", " dst", " MET DST", " <+07>-7"}
	lead := []string{"", "", "", "", "", "Mon ", "Friday, ", " ", "J", "y", "on ", "at ", "\t"}
	var in []string
	for range 12000 {
		var d string
		switch r.Intn(5) {
		case 0, 1:
			d = pick(r, years, sep, md, sep, md)
		case 2:
			d = pick(r, md, sep, md, sep, years)
		case 3:
			d = pick(r, md, sep, years, sep, md)
		case 4:
			d = []string{"20240131", "240131", "2024031", "2024.365", "2024.366", "2023.366", "J2451545", "J2451545.5", "J 2451545", "julian 2451187", "epoch", "infinity", "-infinity", "+infinity", "y2001m02d04", "y2001m2d4h5mm6s7.5", "1999", "1.1.1", "allballs", "2024-02-30", "Feb 29 2023", "29 Feb 2024", "now x", "2024-W01", "99999", "999999", "9999999", "today x", "", "-", "2024-01-01-01", "Jan-01-2024", "2024-Jan-01", "01-Jan-2024", "Jan 1 24", "1 Jan", "1/1/1", "4714-11-24 BC", "4714-11-23 BC", "4713-01-01 BC", "5874897-12-31", "5874898-01-01", "294276-12-31", "294277-01-01"}[r.Intn(44)]
		}
		tz := zone[r.Intn(len(zone))]
		if s := pick(r, lead) + d + pick(r, []string{" ", " ", "T", "", " T"}) + pick(r, clock) + tz; !overflows.MatchString(s) {
			in = append(in, s)
		}
	}
	for _, tzname := range []string{"UTC", "America/New_York", "Asia/Kolkata"} {
		loc, err := ParseZone(tzname)
		if err != nil {
			t.Fatal(err)
		}
		s.Exec(t, "SET timezone = '"+tzname+"'")
		o := &Options{Location: loc, Now: time.Now()}
		for _, typ := range []Type{Date, Timestamp, TimestampTZ, {OIDTimestamp, 2}, {OIDTimestampTZ, 0}} {
			compareInputs(t, s, typ, o, in)
		}
	}
}

func TestTimeInputs(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	clock := []string{"", "12:34", "12:34:56", "00:00:00", "23:59:59.9999999", "23:59:60", "24:00:00", "24:00:01", "12:34:56.1234567", "1:2:3", "12:60:00", "123456", "1234", "T123456.5", "T12:34:56", "t040506.789", "04:05 PM", "12:00 am", "12:00 pm", "13:00 PM", "25:00", "101112.345", "h12mm30s5", "allballs", "-1:00", "12", "1.5", ".5", "040506", "0405", "04050"}
	zone := []string{"", "", "", "", "Z", "UTC", " zulu", "+02", "-08:00", "+0530", "+05:30:15", " America/New_York", " EST", " EDT", " Etc/GMT+3", "+16", "-15:59", " XYZ", " MSK", " dst", "-0800"}
	lead := []string{"", "", "", "2024-07-04 ", "2024-01-04 ", "20240101 ", "Mon ", "J2451545 ", "Jan 1 2024 ", "1.1.2024 ", "2024.123 "}
	var in []string
	for range 6000 {
		in = append(in, pick(r, lead, clock, zone))
	}
	s.Exec(t, "SET timezone = 'UTC'")
	for _, typ := range []Type{Time, TimeTZ, {OIDTime, 1}, {OIDTimeTZ, 0}} {
		compareInputs(t, s, typ, nil, in)
	}
}

func TestIntervalInputs(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	num := []string{"1", "2", "-1", "+3", "1.5", "-2.75", "0", ".5", "-.5", "100", "2147483647", "2147483648", "178956970", "9223372036854775807", "1e3", "0.1", "12.345678", "1-2", "-1-2", "1-12", "3.", "0.000001", "0.0000005", "1.0000005"}
	unit := []string{"", "", "s", "sec", "second", "seconds", "m", "min", "minutes", "h", "hour", "hrs", "d", "day", "days", "w", "week", "mon", "months", "y", "year", "years", "decade", "century", "mil", "millennia", "ms", "us", "microseconds", "milliseconds", "microsecondsx", "x", "ago", "qtr", "timezone", "@", "at", "infinity", "dst", "t"}
	sp := []string{" ", " ", " ", "", "  "}
	tail := []string{"", "", "", " ago", " 12:34", " 12:34:56", " -1:00:00", " +1:2:3.5", " 5:6.5", " 100:00", " 1:60", " 12:34:56.123456789", "ago", " 0.5"}
	var in []string
	for range 12000 {
		var b strings.Builder
		for range r.Intn(4) {
			b.WriteString(pick(r, num, sp, unit, sp))
		}
		in = append(in, pick(r, []string{"", "", "", "@ ", "@"})+b.String()+pick(r, tail))
	}
	iso := []string{"Y", "M", "D", "W", "H", "S", "T", "T", "-", ":", ""}
	isoNum := []string{"1", "2.5", "-3", "0001", "20240102", "010203", "1e2", "", ".5", "1.123456789", "99999999999999999"}
	for range 6000 {
		b := "P"
		for range r.Intn(6) {
			b += pick(r, isoNum, iso)
		}
		in = append(in, b)
	}
	in = append(in, "P1Y2M3DT4H5M6S", "P0001-02-03T04:05:06", "P00010203T040506", "P1.5W", "PT0.000001S", "P", "PT", "P1", "1 year 2 months 3 days 04:05:06.789", "-1 year -2 mons +3 days -04:05:06.789")
	for _, name := range []string{"interval", "interval(2)", "interval(0)", "interval year", "interval year to month", "interval day", "interval day to minute", "interval hour", "interval minute to second", "interval second(3)"} {
		typ, ok := ParseName(name)
		if !ok {
			t.Fatalf("ParseName(%q)", name)
		}
		compareInputs(t, s, typ, nil, in)
	}
}
