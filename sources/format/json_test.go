package format

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/types"
)

// randomJSON writes a random value, in odd but valid ways.
func randomJSON(r *rand.Rand, depth int) string {
	space := func() string { return []string{"", "", "", " ", "\n\t"}[r.IntN(5)] }
	n := r.IntN(9)
	if depth == 0 {
		n = r.IntN(7)
	}
	switch n {
	case 0:
		return "null"
	case 1:
		return "true"
	case 2:
		return "false"
	case 3:
		return fmt.Sprint(r.Int64() >> r.IntN(64))
	case 4:
		return []string{"0", "-0", "1.50", "1e3", "-2.5E-2", "123456789012345678901234567890", "0.000001"}[r.IntN(7)]
	case 5, 6:
		return randomJSONString(r)
	case 7:
		var parts []string
		for range r.IntN(4) {
			parts = append(parts, space()+randomJSON(r, depth-1)+space())
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	var parts []string
	for range r.IntN(5) {
		parts = append(parts, space()+randomJSONString(r)+space()+":"+space()+randomJSON(r, depth-1)+space())
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func randomJSONString(r *rand.Rand) string {
	var b strings.Builder
	b.WriteByte('"')
	for range r.IntN(12) {
		switch r.IntN(10) {
		case 0:
			b.WriteString([]string{`\"`, `\\`, `\/`, `\b`, `\n`, `\u00e9`, `\ud83d\ude00`, `\u0041`}[r.IntN(8)])
		case 1:
			b.WriteRune(rune(0x80 + r.IntN(0x2000)))
		default:
			b.WriteByte("abcdefgh 0123"[r.IntN(13)])
		}
	}
	b.WriteByte('"')
	return b.String()
}

// mutate damages a text.
func mutate(r *rand.Rand, s string) string {
	b := []byte(s)
	for range 1 + r.IntN(2) {
		if len(b) == 0 {
			break
		}
		i := r.IntN(len(b))
		switch r.IntN(3) {
		case 0:
			const odd = "{}[]\",:\\0tn\x00\xff"
			b[i] = odd[r.IntN(len(odd))]
		case 1:
			b = append(b[:i], b[i+1:]...)
		default:
			b = b[:i]
		}
	}
	return string(b)
}

// TestJSONOracle compares the jsonb of random texts, sound and damaged, with
// what encoding/json makes of them, and what package types does.
func TestJSONOracle(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	d := NewJSON(JSONOptions{Columns: []Column{{Type: types.JSONB}}})
	b := []*columnar.Builder{columnar.NewBuilder(columnar.KindBytes, 1)}
	bad := 0
	for range 20_000 {
		text := randomJSON(r, 4)
		if r.IntN(3) == 0 {
			text = mutate(r, text)
		}
		err := d.Decode(context.Background(), b, []byte(text))
		own, ownErr := types.ParseJSONB(nil, text)
		if (err == nil) != (ownErr == nil) {
			t.Fatalf("%q: %v, package types: %v", text, err, ownErr)
		}
		if valid := json.Valid([]byte(text)) && utf8.ValidString(text); err == nil && !valid {
			t.Fatalf("%q was accepted", text)
		}
		if err != nil {
			bad++
			if b[0].Len() != 0 {
				t.Fatalf("%q left a value behind", text)
			}
			continue
		}
		got := b[0].Build().Bytes(0)
		if !bytes.Equal(got, own) {
			t.Fatalf("%q: %s, package types: %s", text, types.JSONDoc(got).AppendText(nil), types.JSONDoc(own).AppendText(nil))
		}
		if want := parseNumbers(t, []byte(text)); !sameJSON(parseNumbers(t, types.JSONDoc(got).AppendText(nil)), want) {
			t.Fatalf("%q: %s", text, types.JSONDoc(got).AppendText(nil))
		}
	}
	if bad < 1000 {
		t.Errorf("only %d damaged texts", bad)
	}
}

// TestJSONColumnsOracle compares columns with what ->> and a cast would give.
func TestJSONColumnsOracle(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	fields := []Column{{Field: "a", Type: types.Text}, {Field: "b", Type: types.JSONB}, {Field: "c", Type: types.Numeric}, {Field: "d", Type: types.Int8}}
	d := NewJSON(JSONOptions{Columns: fields})
	var cols []sources.Column
	for _, f := range fields {
		cols = append(cols, sources.Column{Name: f.Field, Type: f.Type})
	}
	bs := Builders(cols, 1)
	good := 0
	for range 20_000 {
		var parts []string
		for _, k := range []string{"a", "b", "c", "d", "x", "A", "b"} {
			if r.IntN(3) > 0 {
				parts = append(parts, fmt.Sprintf("%q: %s", k, randomJSON(r, 2)))
			}
		}
		r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		text := "{" + strings.Join(parts, ", ") + "}"
		err := d.Decode(context.Background(), bs, []byte(text))
		var row []string
		for i, b := range bs {
			v := b.Build()
			switch {
			case err != nil:
				if v.Len() != 0 {
					t.Fatalf("%s left a value behind", text)
				}
			case v.Null(0):
				row = append(row, "NULL")
			default:
				row = append(row, string(types.AppendText(nil, fields[i].Type, v, 0, nil)))
			}
		}
		doc, derr := types.ParseJSONB(nil, text)
		if derr != nil {
			t.Fatal(derr)
		}
		want, ok := castFields(doc, fields)
		if ok != (err == nil) {
			t.Fatalf("%s: %v, want %v", text, err, want)
		}
		if err == nil {
			good++
			if want[0] == asWritten && strings.Contains(text, row[0]) {
				want[0] = row[0]
			}
			if !reflect.DeepEqual(row, want) {
				t.Fatalf("%s: %q, want %q", text, row, want)
			}
		}
	}
	if good < 1000 {
		t.Errorf("only %d good records", good)
	}
}

// asWritten stands for the text of a number.
const asWritten = "(as written)"

// castFields is the slow way: look up the field in jsonb, cast its text.
func castFields(doc types.JSONDoc, fields []Column) ([]string, bool) {
	var row []string
	for _, f := range fields {
		v := doc.Get([]byte(f.Field))
		if v == nil && f.Field == "a" {
			v = doc.Get([]byte("A"))
		}
		if v == nil || v.Kind() == types.JSONKindNull {
			row = append(row, "NULL")
			continue
		}
		text, _ := v.AppendScalarText(nil)
		switch {
		case f.Type == types.JSONB:
			row = append(row, string(v.AppendText(nil)))
			continue
		case f.Type == types.Text && v.Kind() == types.JSONKindNumber:
			row = append(row, asWritten) // which jsonb does not know
			continue
		case f.Type == types.Text:
			row = append(row, string(text))
			continue
		case v.Kind() != types.JSONKindNumber && v.Kind() != types.JSONKindString:
			return nil, false
		}
		typ := f.Type
		if typ == types.Int8 && v.Kind() == types.JSONKindNumber {
			typ = types.Numeric
		}
		b := columnar.NewBuilder(typ.Kind(), 1)
		if err := types.ParseText(b, typ, string(text), nil); err != nil {
			return nil, false
		}
		s := string(types.AppendText(nil, typ, b.Build(), 0, nil))
		if typ != f.Type { // a number that is whole, in any notation
			whole, frac, _ := strings.Cut(s, ".")
			if strings.Trim(frac, "0") != "" {
				return nil, false
			}
			b = columnar.NewBuilder(columnar.KindInt64, 1)
			if types.ParseText(b, types.Int8, whole, nil) != nil {
				return nil, false
			}
			s = string(types.AppendText(nil, types.Int8, b.Build(), 0, nil))
		}
		row = append(row, s)
	}
	return row, true
}

// TestJSONTypes decodes into columns of all types.
func TestJSONTypes(t *testing.T) {
	for _, x := range []struct {
		typ  types.Type
		json string
		want string // what begins with ! is the reason of an error
	}{
		{types.Int2, `32767`, "32767"}, {types.Int2, `32768`, "!out of range for type smallint"}, {types.Int4, `-2147483648`, "-2147483648"},
		{types.Int4, `1.0`, "1"}, {types.Int4, `1.5`, "!1.5 is not a whole number"}, {types.Int4, `1e2`, "100"}, {types.Int4, `"7"`, "7"}, {types.Int4, `"x"`, "!invalid input syntax for type integer"},
		{types.Int4, `true`, "!a boolean cannot be read as type integer"}, {types.Int4, `[]`, "!a JSON array cannot"}, {types.Int8, `9223372036854775807`, "9223372036854775807"},
		{types.Int8, `9223372036854775808`, "!out of range"}, {types.Int8, `-9223372036854775808`, "-9223372036854775808"},
		{types.Float8, `-0`, "-0"}, {types.Float8, `1e400`, "!out of range"}, {types.Float8, `0.1`, "0.1"}, {types.Float8, `"NaN"`, "NaN"}, {types.Float4, `16777217`, "1.6777216e+07"},
		{types.Numeric, `1.10`, "1.10"}, {types.Type{OID: types.OIDNumeric, Mod: 4<<16 | 1 + 4}, `1.25`, "1.3"}, {types.Numeric, `"1e-5"`, "0.00001"},
		{types.Bool, `true`, "t"}, {types.Bool, `"no"`, "f"}, {types.Bool, `1`, "!a number cannot"},
		{types.Text, `"a\u00e9\n"`, "a\u00e9\n"}, {types.Text, `1.50`, "1.50"}, {types.Text, `{"b":1,"a":2}`, `{"a": 2, "b": 1}`}, {types.Text, `"\u0000"`, "!cannot be converted to text"},
		{types.Text, `"\ud800"`, "!surrogate"}, {types.Type{OID: types.OIDVarchar, Mod: 4 + 2}, `"abc"`, "!too long"}, {types.BPChar, `"ab"`, "ab"},
		{types.Bytea, `"\\x00ff"`, `\x00ff`}, {types.UUID, `"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"`, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
		{types.Date, `"2020-02-30"`, "!out of range"}, {types.Date, `"2020-02-29"`, "2020-02-29"}, {types.Time, `"12:34:56.7"`, "12:34:56.7"}, {types.Interval, `"1 day"`, "1 day"},
		{types.Timestamp, `"2020-01-02T03:04:05.5"`, "2020-01-02 03:04:05.5"}, {types.Timestamp, `"2020-01-02 03:04:05Z"`, "2020-01-02 03:04:05"},
		{types.TimestampTZ, `"2020-01-02T03:04:05+01"`, "2020-01-02 02:04:05+00"}, {types.TimestampTZ, `"2020-01-02T03:04:05.123456Z"`, "2020-01-02 03:04:05.123456+00"},
		{types.TimestampTZ, `"2020-13-02T03:04:05Z"`, "!out of range"},
		{types.TimestampTZ, `1577934245`, "2020-01-02 03:04:05+00"}, {types.TimestampTZ, `1577934245123`, "2020-01-02 03:04:05.123+00"},
		{types.TimestampTZ, `1577934245123456`, "2020-01-02 03:04:05.123456+00"}, {types.TimestampTZ, `1577934245123456789`, "2020-01-02 03:04:05.123456+00"}, {types.Timestamp, `-1`, "1969-12-31 23:59:59"},
		{types.JSONB, `[1,{"a":null}]`, `[1, {"a": null}]`}, {types.JSON, `[1, 2 ]`, `[1, 2 ]`}, {types.JSONB, `"s"`, `"s"`},
		{types.Of(types.OIDInt4Array), `[1,null,"3"]`, "{1,NULL,3}"}, {types.Of(types.OIDInt4Array), `[[1,2],[3,4]]`, "{{1,2},{3,4}}"}, {types.Of(types.OIDInt4Array), `[]`, "{}"},
		{types.Of(types.OIDInt4Array), `[[1],[2,3]]`, "!different lengths"}, {types.Of(types.OIDInt4Array), `[1,[2]]`, "!same depth"}, {types.Of(types.OIDInt4Array), `"{4,5}"`, "{4,5}"},
		{types.Of(types.OIDTextArray), `["a,b","c"]`, `{"a,b",c}`}, {types.Of(types.OIDInt4Array), `[1,true]`, "!a boolean cannot"},
		{types.Int4, `null`, "NULL"},
	} {
		d := NewJSON(JSONOptions{Columns: []Column{{Field: "v", Type: x.typ}}})
		bs := []*columnar.Builder{columnar.NewBuilder(x.typ.Kind(), 1)}
		err := d.Decode(context.Background(), bs, []byte(`{"v": `+x.json+` }`))
		if reason, isErr := strings.CutPrefix(x.want, "!"); isErr {
			if err == nil || !strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), `column "v"`) {
				t.Errorf("%s as %s: %v, want %s", x.json, x.typ.OID.Name(), err, reason)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s as %s: %v", x.json, x.typ.OID.Name(), err)
			continue
		}
		got := "NULL"
		if v := bs[0].Build(); !v.Null(0) {
			got = string(types.AppendText(nil, x.typ, v, 0, nil))
		}
		if got != x.want {
			t.Errorf("%s as %s: %s, want %s", x.json, x.typ.OID.Name(), got, x.want)
		}
	}
}

// TestJSONNames finds columns by exact and by folded name.
func TestJSONNames(t *testing.T) {
	cols := []sources.Column{{Name: "datetime", Type: types.Text}, {Name: "Id", Type: types.Text}}
	d := NewJSON(JSONOptions{Columns: jsonFields(cols)})
	for text, want := range map[string]string{
		`{"dateTime":"a","Id":"b"}`:                 "a|b",
		`{"dateTime":"a","datetime":"b","id":"x"}`:  "b|NULL",
		`{"datetime":"b","dateTime":"a"}`:           "b|NULL",
		`{"Id":"1","Id":"2"}`:                       "NULL|2",
		`{"d\u0061tetime":"e"}`:                     "e|NULL",
		`  { } `:                                    "NULL|NULL",
		`{"Id":null}`:                               "NULL|NULL",
		`{"other":{"Id":1,"list":[1,[2,{}],"\""]}}`: "NULL|NULL",
	} {
		for range 3 {
			bs := Builders(cols, 1)
			if err := d.Decode(context.Background(), bs, []byte(text)); err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			var row []string
			for _, b := range bs {
				if v := b.Build(); v.Null(0) {
					row = append(row, "NULL")
				} else {
					row = append(row, string(v.Bytes(0)))
				}
			}
			if got := strings.Join(row, "|"); got != want {
				t.Errorf("%s: %s, want %s", text, got, want)
			}
		}
	}
	for _, text := range []string{``, `[]`, `1`, `{"Id":"a"} x`, `{"Id":"a",}`, `{"Id" "a"}`, `{"Id":"a"`, `{"other":[1,]}`, `{"other":01}`, "{\"Id\":\"a\nb\"}", `{"other":"\x"}`, "{\"other\":\"\xff\"}", `{,}`} {
		var bad *RecordError
		if err := d.Decode(context.Background(), Builders(cols, 1), []byte(text)); !errors.As(err, &bad) {
			t.Errorf("%q was accepted", text)
		}
	}
	deep := strings.Repeat("[", 100_000)
	if err := d.Decode(context.Background(), Builders(cols, 1), []byte(`{"x":`+deep)); err == nil || !strings.Contains(err.Error(), "nested") {
		t.Errorf("deep nesting: %v", err)
	}
}

// TestNotNull refuses what a column cannot hold.
func TestNotNull(t *testing.T) {
	d := NewJSON(JSONOptions{Columns: []Column{{Field: "a", Type: types.Int4, NotNull: true}}})
	for _, text := range []string{`{}`, `{"a":null}`} {
		bs := []*columnar.Builder{columnar.NewBuilder(columnar.KindInt32, 1)}
		if err := d.Decode(context.Background(), bs, []byte(text)); err == nil || !strings.Contains(err.Error(), "cannot be NULL") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestCSV reads lines as COPY does.
func TestCSV(t *testing.T) {
	cols := []sources.Column{{Name: "a", Type: types.Text}, {Name: "b", Type: types.Int4}}
	d := NewCSV(CSVOptions{Columns: jsonFields(cols)})
	for text, want := range map[string]string{
		"x,1": "x|1", "x,1\r\n": "x|1", "\"a,\"\"b\"\"\nc\",2": "a,\"b\"\nc|2", ",": "NULL|NULL", "\"\",3": "|3", "a\"b\"c,4": "abc|4",
		"x": "!1 fields where 2 are expected", "x,1,2": "!more than 2 fields", "\"x,1": "!unterminated", "x,y": "!invalid input syntax for type integer", "x,1\ny,2": "!more than one line", "\xff,1": "!invalid byte sequence", "": "!1 fields",
	} {
		bs := Builders(cols, 1)
		err := d.Decode(context.Background(), bs, []byte(text))
		if reason, isErr := strings.CutPrefix(want, "!"); isErr {
			if err == nil || !strings.Contains(err.Error(), reason) || bs[0].Len()+bs[1].Len() != 0 {
				t.Errorf("%q: %v, want %s", text, err, reason)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		var row []string
		for i, b := range bs {
			if v := b.Build(); v.Null(0) {
				row = append(row, "NULL")
			} else {
				row = append(row, string(types.AppendText(nil, cols[i].Type, v, 0, nil)))
			}
		}
		if got := strings.Join(row, "|"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestFastTimestamp agrees with the general reader wherever it answers.
func TestFastTimestamp(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	answered := 0
	for range 50_000 {
		text := fmt.Sprintf("%04d-%02d-%02d%s%02d:%02d:%02d", r.IntN(10000), r.IntN(14), r.IntN(33), []string{" ", "T"}[r.IntN(2)], r.IntN(26), r.IntN(62), r.IntN(62))
		if n := r.IntN(9); n > 0 {
			text += "." + fmt.Sprintf("%0*d", n, r.IntN(10))[:n]
		}
		typ := types.Timestamp
		if r.IntN(2) == 0 {
			typ = types.TimestampTZ
			text += []string{"", "Z"}[r.IntN(2)]
		}
		ts, ok := fastTimestamp([]byte(text), typ == types.TimestampTZ)
		if !ok {
			continue
		}
		answered++
		b := columnar.NewBuilder(columnar.KindInt64, 1)
		if err := types.ParseText(b, typ, text, nil); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if want := b.Build().Int64s()[0]; ts != want {
			t.Fatalf("%s: %d, want %d", text, ts, want)
		}
	}
	if answered < 10_000 {
		t.Errorf("answered only %d times", answered)
	}
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":"x\u00e9","c":[1,2],"d":{"e":null}}`, `{"t":"2020-01-02T03:04:05Z","n":1.5e3,"f":0.1}`, `{`, `[]`, `{"A":true}`} {
		f.Add([]byte(s))
	}
	cols := []sources.Column{{Name: "a", Type: types.Int8}, {Name: "b", Type: types.Text}, {Name: "c", Type: types.Of(types.OIDInt4Array)},
		{Name: "d", Type: types.JSONB}, {Name: "t", Type: types.TimestampTZ}, {Name: "n", Type: types.Numeric}, {Name: "f", Type: types.Float8}, {Name: "j", Type: types.JSON}}
	d := NewJSON(JSONOptions{Columns: jsonFields(cols)})
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.ContainsAny(text, "eE") && len(text) > 200 {
			return // numbers with great exponents are slow, and package decimal's own matter
		}
		checkRows(t, d, cols, text)
	})
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte("a,1\n"))
	f.Add([]byte(`"a""b",`))
	cols := []sources.Column{{Name: "a", Type: types.Text}, {Name: "b", Type: types.Int4}}
	d := NewCSV(CSVOptions{Columns: jsonFields(cols)})
	f.Fuzz(func(t *testing.T, text []byte) { checkRows(t, d, cols, text) })
}
