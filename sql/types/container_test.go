package types

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/pgerror"
)

func TestArrayInputs(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	tok := []string{"{", "{", "{", "}", "}", "}", ",", ",", ",", "1", "2", "NULL", "null", `"a"`, `"x y"`, `\"`, `"\""`, `\\`, " ", "a b", `""`, "nULl", `"NULL"`, `\N`, "\t", "é", `"{"`, "'"}
	var in []string
	for range 8000 {
		var b strings.Builder
		if r.Intn(4) == 0 {
			b.WriteString([]string{"[1:2]=", "[0:1]=", "[2]=", "[-1:0][1:2]=", "[1:1]", "[", "[a]=", "[1:]=", "[2:1]=", "[1:2] =", " [1:2]= ", "[1:2][1:2]=", "[3:2]={", "[1:2]=x"}[r.Intn(14)])
		}
		b.WriteString("{")
		for range r.Intn(8) {
			b.WriteString(tok[r.Intn(len(tok))])
		}
		b.WriteString("}")
		in = append(in, b.String())
	}
	in = append(in, "", "{}", " {} ", "{{}}", "{{},{}}", "{{1,2},{3,4}}", "{{1,2},{3}}", "{{{1}}}", "{{{{{{1}}}}}}", "{{{{{{{1}}}}}}}", "[1:2]={1,2}", "{1,2", "1,2}", "{1,,2}", "{,1}", "{1,}", "{1}x", "{1} ", `{"a`, `{"a\`, `{\`, "[2147483647:2147483647]={1}", "[2147483646:2147483646]={1}")
	for _, typ := range []Type{Text.ArrayType(), Int4.ArrayType(), {OIDVarcharArray, 5}, Numeric.ArrayType()} {
		compareInputs(t, s, typ, nil, in)
	}
	vectors := []string{"", " ", "1", "1 2 3", " 1  2 ", "1,2", "x", "1 x", "32767 -32768", "32768", "4294967295", "1 4294967296", "-1", "1 2x", "99999999999999999999", "1\t2"}
	compareInputs(t, s, Of(OIDInt2Vector), nil, vectors)
	compareInputs(t, s, Of(OIDOidVector), nil, vectors)
	compareInputs(t, s, Timestamp.ArrayType(), nil, []string{"{2024-01-01,\"2024-02-03 04:05:06\"}", "{infinity,NULL}", "{x}"})
	compareInputs(t, s, Bool.ArrayType(), nil, []string{"{t,f,NULL}", "{true,{f}}"})
	compareInputs(t, s, JSONB.ArrayType(), nil, []string{`{"{\"a\": 1}","[1,2]",null}`, `{{}`})
}

func TestJSONInputs(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	tok := []string{"{", "}", "[", "]", ",", ":", `"a"`, `"b"`, `"bb"`, `"a":`, `"b":`, `"ccc":`, "1", "-1", "0", "01", "1.50", "1e5", "1E-2", "-0", "-0.0", ".5", "5.", "-", "+1", "true", "false", "null", "nul", "True", " ", "\n", "\t", `"\n"`, `"\u00e9"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00"`, `"\ud83d\ud83d"`, `"\u0000"`, `"\x"`, `"\u12"`, `"\u12g4"`, "\"\x01\"", `"`, `"é"`, "é", `"\/\b\f\r\t\\\""`, "'", "1a", "1.5.5", "a_b", `"\ud83dx"`}
	gen := func() string {
		var b strings.Builder
		for range 1 + r.Intn(8) {
			b.WriteString(tok[r.Intn(len(tok))])
		}
		return b.String()
	}
	var valid func(depth int) string
	valid = func(depth int) string {
		switch k := r.Intn(8); {
		case depth > 0 && k < 2:
			parts := make([]string, r.Intn(4))
			for i := range parts {
				parts[i] = valid(depth - 1)
			}
			return "[" + strings.Join(parts, ",") + "]"
		case depth > 0 && k < 5:
			parts := make([]string, r.Intn(5))
			for i := range parts {
				parts[i] = fmt.Sprintf("%q : %s", strings.Repeat("k", r.Intn(3))+string(rune('a'+r.Intn(4))), valid(depth-1))
			}
			return "{" + strings.Join(parts, " ,") + "}"
		}
		return []string{"1", "2.50", "-3e2", "true", "false", "null", `"x"`, `"quo\"te"`, `"\u00e4"`, "12345678901234567890.123456789", `""`, "1E+3", "1.5e-3"}[r.Intn(13)]
	}
	var in []string
	for range 6000 {
		in = append(in, gen())
	}
	for range 3000 {
		in = append(in, valid(4))
	}
	in = append(in, "", " ", "[1,2", `{"a":1,}`, `{"a" 1}`, `{1:2}`, "[1 2]", "1 2", `{"a":1}}`, strings.Repeat("[", 100)+strings.Repeat("]", 100), `{"a":1, "b":2, "a":3}`, strings.Repeat(" ", 100)+"x", strings.Repeat("é", 100)+"x", "[\n1,\n"+strings.Repeat("2,", 60)+"x]")
	compareInputs(t, s, JSONB, nil, in)
	compareInputs(t, s, JSON, nil, in)
}

// samples are texts of valid values by type.
var samples = map[OID][]string{
	OIDBool: {"t", "f"}, OIDInt2: {"0", "-1", "32767", "-32768"}, OIDInt4: {"0", "-1", "2147483647"}, OIDInt8: {"0", "-1", "9223372036854775807"},
	OIDOid: {"0", "4294967295"}, OIDFloat4: {"0", "-0", "1.5", "NaN", "Infinity", "1e30"}, OIDFloat8: {"0", "-0", "1.5", "NaN", "-Infinity", "1e300"},
	OIDNumeric: {"0", "0.00", "1", "-1", "1.0", "10000", "9999.9999", "0.0001", "0.00012", "-123456789012345678901234567890.123456789", "NaN", "Infinity", "-Infinity", "1e100", "100000000", "0.000000001", "12345678"},
	OIDText:    {"", "a", "é", "hello world"}, OIDVarchar: {"x"}, OIDBPChar: {"x  "}, OIDName: {"nm"}, OIDChar: {"c", ""}, OIDBytea: {`\x`, `\x00ff`},
	OIDDate: {"2000-01-01", "1999-12-31", "infinity", "-infinity", "4714-11-24 BC", "5874897-12-31"}, OIDTime: {"00:00:00", "24:00:00", "12:34:56.789"},
	OIDTimeTZ: {"00:00:00+00", "12:34:56.789-08", "23:59:59+05:30"}, OIDTimestamp: {"2000-01-01", "1999-12-31 23:59:59.999999", "infinity", "294276-12-31"},
	OIDTimestampTZ: {"2000-01-01", "2024-02-29 12:00:00+02", "-infinity"}, OIDInterval: {"0", "1 mon", "30 days", "720:00", "-1 year 2 days 03:04:05.6", "-178000000 years"},
	OIDUUID: {"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000"}, OIDJSON: {`{"a" : 1}`}, OIDJSONB: {`{"b":1,"a":[1,2.50,null,true,"x"]}`, "1", "null", "[]", "{}"},
	OIDInt2Vector: {"", "1 2 3"}, OIDOidVector: {"", "23 25"}, OIDTextArray: {"{}", "{a,NULL,\"b c\"}", "[0:1]={x,y}", "{{a,b},{c,d}}"}, OIDInt4Array: {"{}", "{1,2,NULL}", "{{1},{2}}"},
	OIDNumericArray: {"{1.50,NULL,NaN}"}, OIDBoolArray: {"{t,f,NULL}"}, OIDXid: {"5"}, OIDPgLSN: {"16/B374D848", "0/0", "FFFFFFFF/FFFFFFFF"}, OIDXid8: {"77"}, OIDRegtype: {"0"},
	OIDPoint: {"1,2", "(-0,NaN)"}, OIDLseg: {"(1,2),(3,4)"}, OIDBox: {"(1,2),(3,0)"}, OIDPath: {"[(1,2),(3,4)]", "((1,2),(3,4),(5,6))"}, OIDPolygon: {"((1,2),(3,4),(5,6))", "(1,1)"},
	OIDLine: {"{1,2,3}", "(0,0),(1,5)"}, OIDCircle: {"<(1,2),3>", "<(0,0),0>"}, 1020: /* box[] */ {"{}", "{(1,1),(0,0);NULL;(3,4),(1,2)}"}, 1017: /* point[] */ {`{"(1,2)",NULL}`},
	OIDInet: {"0.0.0.0", "1.2.3.4", "1.2.3.4/24", "255.255.255.255/0", "::", "::1/64", "2001:db8::ff00:42:8329", "::ffff:1.2.3.4/97"},
	OIDCIDR: {"0.0.0.0/0", "10.0.0.0/8", "1.2.3.4/32", "::/0", "2001:db8::/33"}, OIDMACAddr: {"00:00:00:00:00:00", "08:00:2b:01:02:03", "ff:ff:ff:ff:ff:ff"},
	OIDMACAddr8: {"00:00:00:00:00:00:00:00", "08:00:2b:01:02:03:04:05", "80:00:00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff:ff:ff"},
	1041:/* inet[] */ {"{}", "{1.2.3.4,NULL,::1/12}"}, 1040: /* macaddr[] */ {"{08:00:2b:01:02:03}"}, 775: /* macaddr8[] */ {"{08:00:2b:01:02:03:04:05,NULL}"},
}

// TestBinaryForms compares the binary forms with those of the send functions,
// and reads them back.
func TestBinaryForms(t *testing.T) {
	s := oracle.Connect(t)
	for o, texts := range samples {
		typ := Of(o)
		send := Lookup(o).Send
		var exprs []string
		for _, x := range texts {
			exprs = append(exprs, fmt.Sprintf("encode(%s(%s::%s), 'hex')", send, oracle.Quote(x), typ))
		}
		for i, want := range s.Eval(t, exprs) {
			b := columnar.NewBuilder(typ.Kind(), 1)
			if err := ParseText(b, typ, texts[i], nil); err != nil {
				t.Errorf("%s %q: %v", typ, texts[i], err)
				continue
			}
			v := b.Build()
			bin := AppendBinary(nil, typ, v, 0)
			if got := hex.EncodeToString(bin); got != want.Text {
				t.Errorf("%s %q: binary %s, want %v", typ, texts[i], got, want)
				continue
			}
			if err := ParseBinary(b, typ, bin); err != nil {
				t.Errorf("%s %q: read back: %v", typ, texts[i], err)
				continue
			}
			w := b.Build()
			if x, y := AppendText(nil, typ, v, 0, nil), AppendText(nil, typ, w, 0, nil); string(x) != string(y) {
				t.Errorf("%s: %s reads back as %s", typ, x, y)
			}
			// No prefix of it may crash, and none but text is valid.
			for n := range bin {
				err := ParseBinary(columnar.NewBuilder(typ.Kind(), 1), typ, bin[:n])
				if err != nil && pgerror.As(err).Code == pgerror.InternalError && o != OIDJSONB {
					t.Errorf("%s: %v", typ, err)
				}
			}
		}
	}
}

// TestOrder compares Compare, SortKeyVec and NormVec with PostgreSQL's operators.
func TestOrder(t *testing.T) {
	s := oracle.Connect(t)
	more := map[OID][]string{
		OIDNumeric:      {"1", "1.0", "1.00", "-1", "-1.0", "0", "-0.0", "1e40", "1e-40", "-1e40", "-1e-40", "NaN", "Infinity", "-Infinity", "12", "12.3", "12.30", "123", "100", "-100", "-10", "1e-10", "0.1", "0.12", "-0.12", "-0.1234", "-0.12340"},
		OIDFloat8:       {"0", "-0", "NaN", "1", "-1", "Infinity", "-Infinity", "1e-300"},
		OIDInterval:     {"1 mon", "30 days", "720:00:00", "29 days 24:00", "-1 mon", "-30 days", "0", "1 us", "-1 us", "12 mons", "360 days", "1 year", "31 days -24:00", "-178000000 years", "178000000 years"},
		OIDBPChar:       {"a", "a ", "a   ", "a b", "", " ", "b"},
		OIDTimeTZ:       {"00:00+00", "01:00+01", "02:00+02", "23:00-01", "12:00+00", "00:00+15", "24:00-15"},
		OIDJSONB:        {"null", `"a"`, `"b"`, `""`, "1", "1.0", "2", "true", "false", "[]", "[1]", "[1.00]", "[1,2]", "[[]]", "[null]", "{}", `{"a":1}`, `{"a":2}`, `{"b":1}`, `{"a":1,"b":2}`, `{"aa":1}`, `{"a":1.0}`, `[{}]`, `[[1]]`, `{"a":[]}`, `{"a":"x"}`},
		OIDTextArray:    {"{}", "{a}", "{a,b}", "{b}", "{NULL}", "{a,NULL}", "{{a}}", "{{a,b}}", "{{a},{b}}", "[0:0]={a}", "[2:2]={a}", `{""}`, "{aa}", "{a,\"\"}"},
		OIDNumericArray: {"{1}", "{1.0}", "{1,2}", "{0.5}", "{NULL}", "{1,NULL}", "{NaN}"},
		OIDInt4Array:    {"{}", "{1}", "{-1}", "{1,2}", "{2}", "{NULL}", "{1,NULL}"},
		OIDUUID:         {"00000000-0000-0000-0000-000000000000", "80000000-0000-0000-0000-000000000000", "7fffffff-ffff-ffff-8fff-ffffffffffff", "7fffffff-ffff-ffff-7fff-ffffffffffff"},
		OIDInet:         networks,
		1041:/* inet[] */ {"{}", "{1.2.3.4}", "{1.2.3.4/24}", "{NULL}", "{1.2.3.4,::}"},
		OIDMACAddr:  {"00:00:00:00:00:00", "08:00:2b:01:02:03", "80:00:2b:01:02:03", "7f:ff:ff:ff:ff:ff", "ff:ff:ff:ff:ff:ff"},
		OIDMACAddr8: {"00:00:00:00:00:00:00:00", "08:00:2b:01:02:03:04:05", "80:00:00:00:00:00:00:00", "7f:ff:ff:ff:ff:ff:ff:ff", "ff:ff:ff:ff:ff:ff:ff:ff"},
		OIDBytea:    {`\x`, `\x00`, `\x0000`, `\x01`, `\xff`, `\x7f`},
	}
	for o, texts := range more {
		typ := Of(o)
		b := columnar.NewBuilder(typ.Kind(), len(texts))
		for _, x := range texts {
			if err := ParseText(b, typ, x, nil); err != nil {
				t.Fatal(err)
			}
		}
		v := b.Build()
		norm, key := NormVec(typ, v), SortKeyVec(typ, v)
		if key.Kind() != SortKeyKind(typ) {
			t.Errorf("%s: kind of the sort key is %s, announced %s", typ, key.Kind(), SortKeyKind(typ))
		}
		var exprs []string
		for _, x := range texts {
			for _, y := range texts {
				exprs = append(exprs, fmt.Sprintf("(select case when a < b then -1 when a = b then 0 else 1 end from (select %s::%s a, %s::%s b) x)", oracle.Quote(x), typ, oracle.Quote(y), typ))
			}
		}
		for k, want := range s.Eval(t, exprs) {
			i, j := k/len(texts), k%len(texts)
			sign := func(c int) string { return fmt.Sprint(max(-1, min(1, c))) }
			if got := sign(Compare(typ, v, i, v, j)); got != want.Text {
				t.Errorf("%s: %s against %s: %s, want %v", typ, texts[i], texts[j], got, want)
			}
			if got := sign(physicalCompare(key, i, j)); got != want.Text {
				t.Errorf("%s: sort keys of %s and %s: %s, want %v", typ, texts[i], texts[j], got, want)
			}
			if eq := physicalCompare(norm, i, j) == 0; eq != (want.Text == "0") {
				t.Errorf("%s: normal forms of %s and %s equal: %v, want %v", typ, texts[i], texts[j], eq, want)
			}
		}
		for i := range texts {
			if Compare(typ, v, i, norm, i) != 0 {
				t.Errorf("%s: %s differs from its normal form", typ, texts[i])
			}
		}
	}
}

// physicalCompare is the order in which the engine sees values.
func physicalCompare(v *columnar.Vec, i, j int) int {
	switch v.Kind() {
	case columnar.KindFloat64:
		return compareFloat(v.Float64s()[i], v.Float64s()[j])
	case columnar.KindInt64:
		return cmp.Compare(v.Int64s()[i], v.Int64s()[j])
	case columnar.KindFixed16:
		return compareDatum(UUID, at(v, i), at(v, j))
	case columnar.KindBytes:
		return strings.Compare(string(v.Bytes(i)), string(v.Bytes(j)))
	}
	panic("no order for " + v.Kind().String())
}
