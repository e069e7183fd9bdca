package expr

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

var (
	seed = flag.Int64("seed", 1, "seed of the random tests")
	only = flag.String("only", "", "test only functions of this name")
	many = flag.Int("n", 40, "random calls per overload")
)

// term is an expression under test: its SQL text for PostgreSQL, and what this
// package makes of it.
type term struct {
	sql string
	e   Expr
	err error
}

// literals are the values that random calls take, by type: the ordinary, the
// extreme and the special ones.
var literals = map[types.OID][]string{
	types.OIDBool:        {"t", "f"},
	types.OIDInt2:        {"0", "1", "-1", "7", "2", "100", "-100", "32767", "-32768", "-32767", "16384"},
	types.OIDInt4:        {"0", "1", "-1", "7", "2", "3", "10", "31", "32", "33", "100", "1000", "-100", "65536", "2147483647", "-2147483648", "-2147483647", "1073741824"},
	types.OIDInt8:        {"0", "1", "-1", "7", "2", "63", "64", "100", "-100", "12", "3000000000", "9223372036854775807", "-9223372036854775808", "-9223372036854775807", "4611686018427387904"},
	types.OIDFloat4:      {"0", "1", "-1", "2.5", "-2.5", "0.5", "1.5", "3.4e38", "-3.4e38", "1e-45", "1e-38", "NaN", "Infinity", "-Infinity", "-0", "32767.5", "2147483647", "9.2e18", "0.1"},
	types.OIDFloat8:      {"0", "1", "-1", "2.5", "-2.5", "0.5", "1.5", "30", "45", "90", "1e308", "-1e308", "1e-308", "5e-324", "NaN", "Infinity", "-Infinity", "-0", "2147483647.5", "-32768.5", "9223372036854775807", "0.1", "100", "710", "-745.2"},
	types.OIDNumeric:     {"0", "1", "-1", "2.5", "-2.5", "0.5", "1.50", "100", "-100.00", "0.0001", "123456789012345678901234567890", "1e-20", "1e30", "NaN", "Infinity", "-Infinity", "2147483647.5", "-32768.5", "9223372036854775807.49", "3.14159265358979", "0.99", "12.000"},
	types.OIDText:        {"", "a", "abc", "ABC", " a b ", "10", "-3", "äöü", "%a_", "2020-02-29", "t", "1.5", "day", "UTC"},
	types.OIDVarchar:     {"", "a", "abc", "12", "xyz "},
	types.OIDBPChar:      {"", "a", "a ", "abc", "12"},
	types.OIDName:        {"a", "abc", "pg_class"},
	types.OIDChar:        {"a", "b", "1"},
	types.OIDBytea:       {"", `\x00`, `\x01ff`, `\x6162`},
	types.OIDOid:         {"0", "1", "23", "4294967295"},
	types.OIDDate:        {"2000-01-01", "1999-12-31", "2020-02-29", "2021-03-14", "0044-03-15 BC", "infinity", "-infinity", "5874897-12-31", "4714-11-24 BC", "1970-01-01", "2024-12-30", "294276-12-31", "294277-01-01"},
	types.OIDTime:        {"00:00", "12:34:56.789", "23:59:59.999999", "24:00", "06:30"},
	types.OIDTimeTZ:      {"00:00+00", "12:34:56.789-08", "23:59:59.999999+05:30", "24:00+00"},
	types.OIDTimestamp:   {"2000-01-01 00:00", "2020-02-29 12:34:56.789", "2021-03-14 02:30", "2021-11-07 01:30", "1969-07-20 20:17:40", "0044-03-15 12:00 BC", "infinity", "-infinity", "294276-12-31 23:59:59.999999", "4714-11-24 00:00 BC", "2024-12-31 23:59:59.5"},
	types.OIDTimestampTZ: {"2000-01-01 00:00+00", "2020-02-29 12:34:56.789+00", "2021-03-14 10:30+00", "2021-11-07 09:30+00", "1969-07-20 20:17:40-05", "0044-03-15 12:00+00 BC", "infinity", "-infinity", "294276-12-31 23:59:59+00", "2024-12-31 23:59:59.5+00"},
	types.OIDInterval:    {"0", "1 day", "-1 day", "1 mon", "1 year 2 mons 3 days 04:05:06.789", "-1 year 2 days", "1 mon -1 day", "24:00:00", "-00:00:01", "100 days", "33 days 25:00", "2147483647 mons", "-2147483648 days", "1 microsecond", "2562047788:00:54.775807", "0.5 mon", "1.5 days"},
	types.OIDPgLSN:       {"0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF", "0/1"},
	types.OIDXid8:        {"0", "1", "42"},
	types.OIDXid:         {"0", "3", "4294967295"},
	types.OIDPoint:       {"0,0", "1,1", "2,1", "0.5,0.5", "-1,0", "0,3", "5,5", "1.0000001,1", "1e300,1e300", "1e-200,0", "NaN,1", "inf,2", "-Infinity,0", "3,4"},
	types.OIDLseg:        {"(0,0),(1,1)", "(0,1),(1,0)", "(0,0),(4,0)", "(1,0),(2,0)", "(0,0),(0,5)", "(2,-1),(2,3)", "(1,1),(1,1)", "(5,5),(7,9)", "(0,0),(NaN,1)", "(0,0),(inf,1)", "(1,1),(0,0)", "(0,2),(4,2)", "(1e300,0),(-1e300,1)"},
	types.OIDLine:        {"{1,-1,0}", "{1,1,0}", "{0,1,-2}", "{1,0,-3}", "{2,-2,0}", "{1,-1,5}", "{-1,0,0}", "{0,-1,0}", "{0.5,2,1}", "{NaN,1,0}", "{1e300,1e-300,1}", "{1,inf,0}"},
	types.OIDBox:         {"(1,1),(0,0)", "(2,2),(1,1)", "(4,3),(-1,-1)", "(0.5,0.5),(0.25,0.25)", "(10,10),(8,8)", "(1,1),(1,1)", "(1,4),(0,1)", "(inf,1),(0,0)", "(NaN,2),(1,1)", "(1e300,1e300),(0,0)", "(2,1),(0,0.5)", "(3,1),(2,0)"},
	types.OIDPath:        {"[(0,0),(1,1)]", "((0,0),(4,0),(4,4),(0,4))", "[(0,2),(2,2),(2,0)]", "((1,1),(2,1),(2,2))", "[(5,5)]", "((0,0))", "[(0,0),(1,1),(0,2),(NaN,1)]", "((-1,-1),(5,-1),(2,5))", "[(1,0),(1,8),(inf,0)]", "[(7,7),(8,8)]", "((1e200,0),(0,1e200),(1,1))"},
	types.OIDPolygon:     {"((0,0),(4,0),(4,4),(0,4))", "((1,1),(2,1),(2,2),(1,2))", "((0,0),(2,2),(0,4))", "((1,1),(2,2),(3,1),(3,3),(1,3))", "((4,4),(0,4),(0,0),(4,0))", "((0,4),(4,4),(4,0),(0,0))", "((5,5),(6,5),(6,6))", "((1,1))", "((0,0),(1,1))", "((0,0),(8,0),(8,8),(6,8),(6,2),(2,2),(2,8),(0,8))", "((1,3),(7,3),(7,5),(1,5))", "((0,0),(0,4),(2,4),(2,0))", "((0,0),(NaN,1),(1,1))", "((0,0),(inf,0),(1,1))", "((1,1),(3,1),(3,3))"},
	types.OIDCircle:      {"<(0,0),1>", "<(1,1),2>", "<(3,0),2>", "<(0,0),0>", "<(5,5),0.5>", "<(0,0),1.0000001>", "<(NaN,0),1>", "<(0,0),NaN>", "<(1,1),inf>", "<(1e300,0),1e300>", "<(-1,0),1>", "<(2,2),5>"},
	types.OIDInet:        {"0.0.0.0", "10.1.2.3", "10.1.2.3/8", "10.0.0.0/8", "10.1.2.4/24", "10.1.2.0/24", "192.168.0.255/31", "255.255.255.255", "255.255.255.254/1", "::", "::1", "::1/64", "2001:db8::ff00:42:8329/48", "2001:db8::/48", "::ffff:10.1.2.3", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "0:0:0:1::/64"},
	types.OIDCIDR:        {"0.0.0.0/0", "10.0.0.0/8", "10.1.2.0/24", "10.1.2.3/32", "192.168.128.0/17", "::/0", "::1/128", "2001:db8::/48", "2001:db8::/33", "::ffff:0:0/96", "1::2:0:0:3:0/112", "::1.2.3.0/120", "0:0:1:0:2::/128", "4::/9"},
	types.OIDMACAddr:     {"00:00:00:00:00:00", "08:00:2b:01:02:03", "ff:ff:ff:ff:ff:ff", "80:00:00:ff:fe:01"},
	types.OIDMACAddr8:    {"00:00:00:00:00:00:00:00", "08:00:2b:ff:fe:01:02:03", "ff:ff:ff:ff:ff:ff:ff:ff", "80:00:00:ff:fe:01:7f:ff", "7f:ff:ff:ff:ff:ff:ff:ff"},
	types.OIDMoney:       {"0", "1", "-1", "12.34", "-12.345", "1234567.89", "($5.5)", "0.01"},
	types.OIDBit:         {"", "0", "1", "101", "111", "0000", "1011001110001", "xFF", "x8000000000000001", "10000000000000000000000000000001"},
	types.OIDVarbit:      {"", "0", "1", "101", "x0f0", "1111111111"},
	types.OIDUUID:        {"00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "ffffffff-ffff-ffff-ffff-ffffffffffff"},
	types.OIDTSVector: {"", "a", "a b c", "cat:1 dog:2,5A rat:3B", "'it''s' 'a b':1,2 'back\\\\slash'", "cat:3 cat:1A dog", "abc:16383,99999 abd:1", "a:1 b:2 c:3 d:4 e:5 f:6", "cat:1A,2B,3C,4D dog:7",
		"äöü:1 x", "run:5 house:1 fox:9C"},
	types.OIDTSQuery: {"", "a", "cat & dog", "cat | dog", "!cat", "cat <-> dog", "cat <2> dog", "(cat | a) & !dog", "ca:*", "cat:A", "dog:AB & cat:*C", "a & b & c & d", "(a | b) <-> c", "!(a & b)", "a <0> b", "'it''s' | 'a b'",
		"!a <-> b", "cat <-> (dog | rat)", "cat <-> dog <-> rat", "cat & (dog & rat)", "b & a", "a:A", "a:*"},
	types.OIDRegconfig:     {"english", "simple", "pg_catalog.german", "french"},
	types.OIDRegdictionary: {"english_stem", "simple", "russian_stem"},
	types.OIDJSON:          {`{"a":1}`, `[1, 2]`, `"x"`, `null`, `1.50`},
	types.OIDJSONB:         {`{"a":1}`, `[1, 2]`, `[]`, `{}`, `"x"`, `null`, `1.50`, `1.5`, `true`, `{"a":{"b":[1,null]}}`},
}

// rangeLiterals are made of some literals of the subtype.
func rangeLiterals(rng, sub types.OID, ends ...string) {
	quote := func(s string) string { return strconv.Quote(s) }
	out := []string{"empty", "(,)"}
	for i, a := range ends {
		out = append(out, "["+quote(a)+",)", "(,"+quote(a)+"]")
		for _, b := range ends[i:] {
			out = append(out, "["+quote(a)+","+quote(b)+")", "("+quote(a)+","+quote(b)+"]", "["+quote(a)+","+quote(b)+"]", "("+quote(a)+","+quote(b)+")")
		}
	}
	literals[rng] = out
	multi := []string{"{}", "{(,)}"}
	for i := range out {
		multi = append(multi, "{"+out[i]+"}", "{"+out[i]+", "+out[(i*7+3)%len(out)]+"}", "{"+out[i]+","+out[(i*5+1)%len(out)]+","+out[(i*11+2)%len(out)]+"}")
	}
	literals[rng.Multirange()] = multi
	literals[rng.Array()] = []string{"{}", "{" + quote(out[5]) + "," + quote(out[0]) + "," + quote(out[len(out)-1]) + "}", "{NULL}", "{{" + quote(out[3]) + "}}"}
	anyRanges = append(anyRanges, rng)
}

// anyRanges are the range types that polymorphic parameters are tried with.
var anyRanges []types.OID

func init() {
	rangeLiterals(types.OIDInt4Range, types.OIDInt4, "-1", "0", "1", "2", "3", "7", "10", "33")
	rangeLiterals(types.OIDInt8Range, types.OIDInt8, "-1", "1", "2", "12", "64", "4611686018427387904")
	rangeLiterals(types.OIDNumRange, types.OIDNumeric, "-1", "0.5", "1", "1.50", "2.5", "100", "Infinity")
	rangeLiterals(types.OIDDateRange, types.OIDDate, "-infinity", "1999-12-31", "2000-01-01", "2020-02-29", "2024-12-30", "infinity")
	rangeLiterals(types.OIDTsRange, types.OIDTimestamp, "1969-07-20 20:17:40", "2000-01-01 00:00", "2020-02-29 12:34:56.789", "infinity")
	rangeLiterals(types.OIDTsTzRange, types.OIDTimestampTZ, "2000-01-01 00:00+00", "2020-02-29 12:34:56.789+00", "2021-03-14 10:30+00")
	for _, e := range []types.OID{types.OIDInt4, types.OIDText, types.OIDNumeric, types.OIDInt8, types.OIDFloat8, types.OIDInt2, types.OIDTimestamp, types.OIDBool} {
		vals := literals[e]
		quote := func(s string) string { return strconv.Quote(s) }
		out := []string{"{}", "{NULL}"}
		for i := range vals {
			out = append(out, "{"+quote(vals[i])+"}", "{"+quote(vals[i])+","+quote(vals[(i+1)%len(vals)])+"}")
		}
		literals[e.Array()] = append(out, "{"+quote(vals[0])+",NULL,"+quote(vals[1])+"}", "{{"+quote(vals[0])+"},{"+quote(vals[1])+"}}", "[0:1]={"+quote(vals[0])+","+quote(vals[1])+"}")
	}
}

// untypedDiffers are the functions with overloads for types that are not
// supported, which PostgreSQL takes into account for untyped literals.
var untypedDiffers = map[string]bool{"age": true, "trunc": true, "bit_count": true, "get_bit": true, "set_bit": true, "substring": true, "?|": true, "<->": true}

// unit names and zones for functions that take them as text.
var unitLiterals = []string{"year", "month", "day", "hour", "minute", "second", "milliseconds", "microseconds", "week", "quarter", "decade", "century", "millennium", "epoch", "dow", "doy", "isodow", "isoyear", "julian", "timezone", "timezone_hour", "timezone_minute", "Years", "foo", "us"}
var zoneLiterals = []string{"UTC", "America/Los_Angeles", "europe/berlin", "EST", "+02", "PDT", "Asia/Kolkata", "nowhere", "UTC+3"}

// lengthNames are the functions whose second argument is a type modifier.
var lengthNames = map[string]bool{"bit": true, "varbit": true, "bpchar": true, "varchar": true, "time": true, "timetz": true, "timestamp": true, "timestamptz": true}

// literalTerm is a typed or (sometimes) untyped literal.
func literalTerm(t types.Type, s string, typed bool) term {
	sql := oracle.Quote(s)
	lit := UnknownConst(s, 0)
	if !typed {
		return term{sql: sql, e: lit}
	}
	e, err := Coerce(lit, t, CastExplicit, 0)
	return term{sql: sql + "::" + t.String(), e: e, err: err}
}

func randomLiteral(r *rand.Rand, t types.Type, fn string, pos int) term {
	if t.OID == types.OIDAnyEnum {
		return term{err: errors.New("no enum is built in")}
	}
	if r.Intn(12) == 0 {
		e, err := Coerce(&Const{Val: NullVec(types.Text), Typ: types.Unknown}, t, CastExplicit, 0)
		return term{sql: "NULL::" + t.String(), e: e, err: err}
	}
	vals := literals[t.OID]
	if fn == "timezone" && t.OID == types.OIDInterval {
		vals = []string{"1 hour", "-02:30", "05:30:01", "1 day", "1 mon"}
	}
	if t.OID == types.OIDText && pos == 0 {
		switch fn {
		case "extract", "date_part", "date_trunc":
			vals = unitLiterals
		case "timezone":
			vals = zoneLiterals
		}
	}
	if t.OID == types.OIDText && (fn == "date_trunc" && pos == 2 || fn == "make_timestamptz" && pos == 6) {
		vals = zoneLiterals
	}
	if t.OID == types.OIDInt4 && pos == 1 && lengthNames[fn] {
		return literalTerm(t, strconv.Itoa(r.Intn(12)-1), true)
	}
	if t.OID == types.OIDInt4 && strings.HasPrefix(fn, "make_") && r.Intn(3) > 0 {
		return literalTerm(t, strconv.Itoa(r.Intn(30)), true)
	}
	if len(vals) == 0 {
		return term{err: fmt.Errorf("no literals of %s", t)}
	}
	return literalTerm(t, vals[r.Intn(len(vals))], untypedDiffers[fn] || r.Intn(15) != 0)
}

// anyOf are the types that polymorphic parameters are tried with.
var anyOf = []types.Type{types.Int4, types.Text, types.Numeric, types.Int8, types.Timestamp, types.Bool, types.Float8}

// concrete replaces polymorphic parameters.
func concrete(r *rand.Rand, params []types.Type) []types.Type {
	elem := anyOf[r.Intn(len(anyOf))]
	rng := anyRanges[r.Intn(len(anyRanges))]
	for _, p := range params {
		if p.OID == types.OIDAnyRange || p.OID == types.OIDAnyMultirange {
			elem = types.Of(rng.Subtype())
		}
	}
	out := make([]types.Type, len(params))
	for i, p := range params {
		switch p.OID {
		case types.OIDAnyElement, types.OIDAnyNonArray, types.OIDAny:
			p = elem
		case types.OIDAnyArray:
			p = elem.ArrayType()
		case types.OIDAnyRange:
			p = types.Of(rng)
		case types.OIDAnyMultirange:
			p = types.Of(rng.Multirange())
		case types.OIDAnyCompatible:
			p = anyOf[r.Intn(3)]
			if r.Intn(2) == 0 {
				p = elem
			}
		case types.OIDAnyCompatibleArray:
			p = elem.ArrayType()
		}
		out[i] = types.Of(p.OID)
	}
	return out
}

func (c term) eval(ctx *Context) string {
	e, err := c.e, c.err
	if err == nil {
		e, err = FoldLiterals(e, ctx)
	}
	var v *Const
	if err == nil {
		v, err = EvalConst(e, ctx)
	}
	if err != nil {
		pe := pgerror.As(err)
		return "ERROR " + pe.Code + ": " + pe.Message
	}
	val := "NULL"
	if !v.Val.Null(0) {
		typ := v.Typ
		if typ.OID == types.OIDUnknown {
			typ = types.Text
		}
		val = QuoteLiteral(string(types.AppendText(nil, typ, v.Val, 0, ctx.Options())))
	}
	return e.Type().OID.Name() + "|" + val
}

// sameResult compares results; floats may differ in their last digits where
// libraries do.
func sameResult(got, want string) bool {
	if got == want {
		return true
	}
	if ours, rest, ok := strings.Cut(got, "|"); ok && strings.Contains(" point lseg line box path polygon circle ", " "+ours+" ") {
		return sameNumbers(rest, strings.TrimPrefix(want, ours+"|"))
	}
	const f8 = "double precision|"
	if !strings.HasPrefix(got, f8) || !strings.HasPrefix(want, f8) {
		return false
	}
	a, err1 := strconv.ParseFloat(strings.Trim(got[len(f8):], "'"), 64)
	b, err2 := strconv.ParseFloat(strings.Trim(want[len(f8):], "'"), 64)
	return err1 == nil && err2 == nil && math.Abs(a-b) <= 1e-14*math.Max(math.Abs(a), math.Abs(b))
}

var numberText = regexp.MustCompile(`-?[0-9.]+(e[-+]?[0-9]+)?`)

// sameNumbers compares geometric values, whose numbers may differ in their last digits.
func sameNumbers(got, want string) bool {
	if numberText.ReplaceAllString(got, "#") != numberText.ReplaceAllString(want, "#") {
		return false
	}
	w := numberText.FindAllString(want, -1)
	size := 1.0
	for _, n := range w {
		if f, err := strconv.ParseFloat(n, 64); err == nil {
			size = max(size, math.Abs(f))
		}
	}
	for i, n := range numberText.FindAllString(got, -1) {
		a, err1 := strconv.ParseFloat(n, 64)
		b, err2 := strconv.ParseFloat(w[i], 64)
		if err1 != nil || err2 != nil || math.Abs(a-b) > 1e-14*size {
			return false
		}
	}
	return true
}

func testContext() *Context {
	return &Context{Now: time.Date(2024, 5, 6, 7, 8, 9, 123456000, time.UTC), Location: time.UTC, User: "postgres", Database: "postgres"}
}

// compareTerms evaluates terms here and in PostgreSQL.
func compareTerms(t *testing.T, s *oracle.Server, ctx *Context, terms []term) {
	t.Helper()
	exprs := make([]string, len(terms))
	for i, c := range terms {
		exprs[i] = fmt.Sprintf("format('%%s|%%L', pg_typeof(%s), %s)", c.sql, c.sql)
	}
	bad := 0
	for i, want := range s.Eval(t, exprs) {
		got := terms[i].eval(ctx)
		want.Message = strings.Replace(want.Message, "pg_catalog.", "", 1)
		if strings.HasPrefix(got, "ERROR 0A000: the encoding ") {
			continue // one of those that are not there: it says so
		}
		if !sameResult(got, want.String()) {
			if bad++; bad <= 15 {
				t.Errorf("%s\n got %s\nwant %s", terms[i].sql, got, want)
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d differences of %d, -seed=%d", bad, len(terms), *seed)
	}
}

func callSQL(f *Function, args []term) string {
	sqls := make([]string, len(args))
	for i, a := range args {
		sqls[i] = a.sql
	}
	switch {
	case f.Operator && len(args) == 2:
		return "(" + sqls[0] + " " + f.Name + " " + sqls[1] + ")"
	case f.Operator:
		return "(" + f.Name + " " + sqls[0] + ")"
	}
	call := "pg_catalog." + QuoteIdent(f.Name) + "(" + strings.Join(sqls, ", ") + ")"
	if strings.Contains(aliasTSV, "\n"+f.Name+"\tcmp\t") {
		return "sign(" + call + ")::int4" // nothing is said of more than the sign
	}
	return call
}

func makeTerm(f *Function, args []term) term {
	c := term{sql: callSQL(f, args)}
	es := make([]Expr, len(args))
	for i, a := range args {
		if a.err != nil {
			c.err = a.err
			return c
		}
		es[i] = a.e
	}
	switch {
	case f.Operator && len(es) == 2:
		c.e, c.err = NewOp(f.Name, es[0], es[1], 0)
	case f.Operator:
		c.e, c.err = NewOp(f.Name, nil, es[0], 0)
	default:
		c.e, c.err = NewCall(f.Name, es, CallOptions{})
	}
	return c
}

// notCompared are the functions that tell of the time, the session or the
// catalog, or whose arguments here would not make sense.
var notCompared = map[string]bool{
	"now": true, "transaction_timestamp": true, "statement_timestamp": true, "current_timestamp": true, "clock_timestamp": true,
	"localtimestamp": true, "localtime": true, "current_date": true, "current_time": true, "timeofday": true, "random": true, "setseed": true,
	"mz_now": true, "mz_version": true, "mz_uptime": true, "mz_is_superuser": true, "rw_recovery_status": true, "proctime": true, "regclass": true, "interval": true, "convert_from": true, "convert_to": true, "version": true, "current_database": true,
	"current_catalog": true, "current_user": true, "session_user": true, "user": true, "current_role": true, "getpgusername": true,
	"current_query": true, "inet_client_addr": true, "inet_client_port": true, "inet_server_addr": true, "inet_server_port": true, "current_schema": true, "current_schemas": true, "current_setting": true, "set_config": true, "pg_get_expr": true,
	"txid_current": true, "pg_backend_pid": true, "pg_postmaster_start_time": true, "pg_conf_load_time": true, "pg_my_temp_schema": true,
	"pg_column_size": true, "pg_sleep": true, "pg_sleep_for": true, "pg_sleep_until": true, "pg_jit_available": true,
	"query_to_xml": true, "query_to_xmlschema": true, "query_to_xml_and_xmlschema": true, "table_to_xml": true, "table_to_xmlschema": true, "table_to_xml_and_xmlschema": true,
	"schema_to_xml": true, "schema_to_xmlschema": true, "schema_to_xml_and_xmlschema": true,
	"database_to_xml": true, "database_to_xmlschema": true, "database_to_xml_and_xmlschema": true,
}

func init() {
	for _, line := range strings.Split(strings.TrimSpace(catalogFunctions), "\n") {
		name, _, _ := parseSignature(line)
		notCompared[name] = true
	}
}

// allFunctions lists the overloads that PostgreSQL has too.
func allFunctions() []*Function {
	var out []*Function
	for name, fs := range registry.funcs {
		for _, f := range fs {
			if !notCompared[name] && !Newer(name) && !ownFunctions[name] && !ownFunctions[fmt.Sprint(name, " ", f.Args[:min(len(f.Args), 1)], len(f.Args))] {
				out = append(out, f)
			}
		}
	}
	for _, fs := range registry.ops {
		out = append(out, fs...)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if a.Name != b.Name {
			return a.Name < b.Name
		}
		return fmt.Sprint(a.Args) < fmt.Sprint(b.Args)
	})
	return out
}

// ownFunctions are those that PostgreSQL 15 does not have, by name or by name,
// first argument and number of arguments; TestOwnFunctions tests them.
var ownFunctions = func() map[string]bool {
	out := map[string]bool{
		fmt.Sprint("array_length ", []types.Type{types.Of(types.OIDAnyArray)}, 1): true,
		fmt.Sprint("reverse ", []types.Type{types.Bytea}, 1):                      true,
	}
	for _, name := range strings.Fields(`array_contained array_contains array_distinct array_except array_flatten array_intersect
		array_is_intersect array_is_overlap array_join array_max array_min array_overlaps array_reverse array_sort array_sum array_union
		coth row_id crc32 crc32c gamma lgamma map_from_key_values map_from_entries map_keys map_values map_entries map_access map_contains
		map_length map_cat map_insert map_delete jsonb_populate_map constant_time_eq decrypt decrypt_iv digest encrypt encrypt_iv hmac sha1 kafka_murmur2 seahash uuid_generate_v5 list_append list_prepend
		list_cat list_remove list_n_layers list_length try_parse_monotonic_iso8601_timestamp inet_aton inet_ntoa url_encode url_decode secure_compare map_build`) {
		out[name] = true
	}
	return out
}()

func TestFunctionsAgainstPostgres(t *testing.T) {
	s := oracle.Connect(t)
	t.Logf("-seed=%d", *seed)
	r := rand.New(rand.NewSource(*seed))
	ctx := testContext()
	if err := s.Conn.QueryRow(context.Background(), "SELECT now()").Scan(&ctx.Now); err != nil {
		t.Fatal(err)
	}
	groups := map[string][]term{}
	var names []string
	for _, f := range allFunctions() {
		if *only != "" && f.Name != *only || f.Volatility == Volatile || f.Internal {
			continue
		}
		n := *many
		if len(f.Args) == 0 {
			n = 1
		}
		for range n {
			params := concrete(r, f.Args)
			args := make([]term, len(params))
			for i, p := range params {
				args[i] = randomLiteral(r, p, f.Name, i)
			}
			if slices.ContainsFunc(args, func(a term) bool { return a.sql == "" }) {
				continue
			}
			if groups[f.Name] == nil {
				names = append(names, f.Name)
			}
			groups[f.Name] = append(groups[f.Name], makeTerm(f, args))
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) { compareTerms(t, s, ctx, groups[name]) })
	}
}

// TestGeometryAgainstPostgres tries more values of geometric types, whose
// functions have many cases.
func TestGeometryAgainstPostgres(t *testing.T) {
	s := oracle.Connect(t)
	t.Logf("-seed=%d", *seed)
	r := rand.New(rand.NewSource(*seed))
	var terms []term
	for _, f := range allFunctions() {
		if !slices.ContainsFunc(f.Args, func(t types.Type) bool { return t.OID.IsGeometric() }) || *only != "" && f.Name != *only {
			continue
		}
		for range 3 * *many {
			args := make([]term, len(f.Args))
			for i, p := range f.Args {
				args[i] = randomLiteral(r, p, f.Name, i)
			}
			terms = append(terms, makeTerm(f, args))
		}
	}
	compareTerms(t, s, testContext(), terms)
}

// TestZonesAgainstPostgres repeats what depends on the time zone in zones with
// odd offsets and with changes of them.
func TestZonesAgainstPostgres(t *testing.T) {
	s := oracle.Connect(t)
	t.Logf("-seed=%d", *seed)
	r := rand.New(rand.NewSource(*seed))
	involved := func(o types.OID) bool {
		switch o {
		case types.OIDTimestampTZ, types.OIDTimeTZ:
			return true
		}
		return false
	}
	for _, zone := range []string{"America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"} {
		ctx := testContext()
		var err error
		if ctx.Location, err = time.LoadLocation(zone); err != nil {
			t.Fatal(err)
		}
		s.Exec(t, "SET timezone = "+oracle.Quote(zone))
		if err := s.Conn.QueryRow(t.Context(), "SELECT now()").Scan(&ctx.Now); err != nil {
			t.Fatal(err)
		}
		var terms []term
		for _, f := range allFunctions() {
			if f.Volatility == Volatile || !slices.ContainsFunc(append(f.Args, f.Ret), func(t types.Type) bool { return involved(t.OID) }) {
				continue
			}
			for range *many {
				args := make([]term, len(f.Args))
				for i, p := range concrete(r, f.Args) {
					args[i] = randomLiteral(r, p, f.Name, i)
				}
				// The age of infinity is whatever it comes to.
				if !slices.ContainsFunc(args, func(a term) bool { return a.sql == "" || f.Name == "age" && strings.Contains(a.sql, "infinity") }) {
					terms = append(terms, makeTerm(f, args))
				}
			}
		}
		for _, from := range []types.Type{types.Date, types.Time, types.TimeTZ, types.Timestamp, types.TimestampTZ, types.Text} {
			for _, to := range []types.Type{types.Date, types.Time, types.TimeTZ, types.Timestamp, types.TimestampTZ, types.Text} {
				for range *many {
					arg := randomLiteral(r, from, "age", 0)
					terms = append(terms, build("("+arg.sql+")::"+to.String(), []term{arg}, func(es []Expr) (Expr, error) {
						return Coerce(es[0], to, CastExplicit, 0)
					}))
				}
			}
		}
		t.Run(zone, func(t *testing.T) { compareTerms(t, s, ctx, terms) })
	}
}
