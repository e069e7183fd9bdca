package format

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	oldrand "math/rand"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hamba/avro/v2"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/types"
)

// schemaMaker makes random schemas, as the JSON values that describe them.
type schemaMaker struct {
	r     *rand.Rand
	names int
}

func (m *schemaMaker) name(prefix string) string {
	m.names++
	return fmt.Sprintf("%s%d", prefix, m.names)
}

var avroLeaves = []any{
	"boolean", "int", "long", "float", "double", "bytes", "string",
	map[string]any{"type": "int", "logicalType": "date"},
	map[string]any{"type": "int", "logicalType": "time-millis"},
	map[string]any{"type": "long", "logicalType": "time-micros"},
	map[string]any{"type": "long", "logicalType": "timestamp-millis"},
	map[string]any{"type": "long", "logicalType": "timestamp-micros"},
	map[string]any{"type": "long", "logicalType": "local-timestamp-millis"},
	map[string]any{"type": "long", "logicalType": "local-timestamp-micros"},
	map[string]any{"type": "string", "logicalType": "uuid"},
	map[string]any{"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3},
	map[string]any{"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 10},
}

func (m *schemaMaker) schema(depth int) any {
	n := m.r.IntN(24)
	if depth <= 0 && n >= 19 {
		n = m.r.IntN(19)
	}
	switch {
	case n < 17:
		return avroLeaves[m.r.IntN(len(avroLeaves))]
	case n == 17:
		return map[string]any{"type": "enum", "name": m.name("E"), "symbols": []string{"A", "B", "C"}}
	case n == 18:
		return map[string]any{"type": "fixed", "name": m.name("F"), "size": 1 + m.r.IntN(5)}
	case n == 19:
		return map[string]any{"type": "array", "items": m.schema(depth - 1)}
	case n == 20:
		return map[string]any{"type": "map", "values": m.schema(depth - 1)}
	case n == 21:
		return m.record(depth-1, 3)
	case n == 22:
		return []any{"null", m.notUnion(depth - 1)}
	}
	return []any{"int", "string", m.record(depth-1, 2), "null"}
}

func (m *schemaMaker) notUnion(depth int) any {
	for {
		s := m.schema(depth)
		if _, ok := s.([]any); !ok {
			return s
		}
	}
}

func (m *schemaMaker) record(depth, fields int) map[string]any {
	var fs []any
	for range 1 + m.r.IntN(fields) {
		fs = append(fs, map[string]any{"name": m.name("f"), "type": m.schema(depth)})
	}
	return map[string]any{"type": "record", "name": m.name("R"), "fields": fs}
}

// write appends a random value of a type in Avro's binary form.
func (m *schemaMaker) write(dst []byte, t *avroType) []byte {
	r := m.r
	long := func(x int64) []byte { return binary.AppendVarint(dst, x) }
	blob := func(b []byte) []byte { return append(long(int64(len(b))), b...) }
	switch t.kind {
	case avroBoolean:
		return append(dst, byte(r.IntN(2)))
	case avroInt:
		switch t.logical {
		case "date":
			return long(int64(r.IntN(80000) - 20000))
		case "time-millis":
			return long(int64(r.IntN(86_400_000)))
		}
		return long(int64(int32(r.Uint32()) >> r.IntN(32)))
	case avroLong:
		switch {
		case t.logical == "time-micros":
			return long(r.Int64N(86_400_000_000))
		case strings.HasSuffix(t.logical, "millis"):
			return long(r.Int64N(8e12) - 4e12)
		case strings.HasSuffix(t.logical, "micros"):
			return long(r.Int64N(8e15) - 4e15)
		}
		return long(r.Int64() >> r.IntN(64) * int64(1-2*r.IntN(2)))
	case avroFloat:
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(r.NormFloat64())))
	case avroDouble:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(r.NormFloat64()*math.Pow10(r.IntN(30)-15)))
	case avroBytes:
		if t.logical == "decimal" {
			x := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.precision)), nil)
			x = new(big.Int).Rand(bigRand(r), x)
			b := append([]byte{0}, x.Bytes()...)
			if r.IntN(2) == 0 { // the same as negative: two's complement
				for i := range b {
					b[i] = ^b[i]
				}
			}
			return blob(b)
		}
		return blob(randomBytes(r))
	case avroString:
		if t.logical == "uuid" {
			return blob(types.AppendUUID(nil, columnar.U128{Hi: r.Uint64(), Lo: r.Uint64()}))
		}
		return blob([]byte(randomText(r)))
	case avroFixed:
		for range t.size {
			dst = append(dst, byte(r.Uint32()))
		}
		return dst
	case avroEnum:
		return long(int64(r.IntN(len(t.symbols))))
	case avroUnion:
		i := r.IntN(len(t.branches))
		return m.write(long(int64(i)), t.branches[i])
	case avroArray, avroMap:
		return m.writeBlocks(dst, t)
	case avroRecord:
		for _, f := range t.fields {
			dst = m.write(dst, f.typ)
		}
	}
	return dst
}

// writeBlocks writes the elements in blocks, some of them with their size.
func (m *schemaMaker) writeBlocks(dst []byte, t *avroType) []byte {
	for range m.r.IntN(3) {
		n := 1 + m.r.IntN(3)
		var body []byte
		for range n {
			if t.kind == avroMap {
				k := m.name("k")
				body = append(binary.AppendVarint(body, int64(len(k))), k...)
			}
			body = m.write(body, t.item)
		}
		if m.r.IntN(2) == 0 {
			dst = binary.AppendVarint(binary.AppendVarint(dst, int64(-n)), int64(len(body)))
		} else {
			dst = binary.AppendVarint(dst, int64(n))
		}
		dst = append(dst, body...)
	}
	return append(dst, 0)
}

func randomBytes(r *rand.Rand) []byte {
	b := make([]byte, r.IntN(40))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(30) {
		switch r.IntN(12) {
		case 0:
			b.WriteRune(rune(0x80 + r.IntN(0x700)))
		case 1:
			b.WriteRune(rune(0x10000 + r.IntN(0x1000)))
		case 2:
			b.WriteString([]string{`"`, `\`, "\n", "\t", "/", "\x01"}[r.IntN(6)])
		default:
			b.WriteByte(byte(' ' + r.IntN(95)))
		}
	}
	return b.String()
}

// expect is what the library's value looks like in jsonb.
func expect(t *avroType, v any) any {
	num := func(s string) any { return json.Number(s) }
	text := func(t types.Type, f func(b *columnar.Builder)) string {
		b := columnar.NewBuilder(t.Kind(), 1)
		f(b)
		return string(types.AppendText(nil, t, b.Build(), 0, nil))
	}
	stamp := func(x time.Time, zone string) any {
		us := (x.Unix()-types.UnixEpochSecond)*1e6 + int64(x.Nanosecond()/1000)
		return strings.Replace(text(types.Timestamp, func(b *columnar.Builder) { b.Int64(us) }), " ", "T", 1) + zone
	}
	switch x := v.(type) {
	case nil:
		return nil
	case map[string]any:
		if t.kind == avroUnion {
			for _, b := range t.branches {
				for k, y := range x {
					if k == b.libraryName() {
						return expect(b, y)
					}
				}
			}
			panic(fmt.Sprintf("no branch for %v", x))
		}
		out := map[string]any{}
		for k, y := range x {
			if t.kind == avroMap {
				out[k] = expect(t.item, y)
				continue
			}
			out[k] = expect(t.fields[t.readerField(k)].typ, y)
		}
		return out
	case []any:
		out := []any{}
		for _, y := range x {
			out = append(out, expect(t.item, y))
		}
		return out
	case int:
		return num(fmt.Sprint(x))
	case int64:
		return num(fmt.Sprint(x))
	case float32:
		return num(fmt.Sprint(x))
	case float64:
		return num(fmt.Sprint(x))
	case []byte:
		return string(types.AppendBytea(nil, x, nil))
	case time.Duration:
		return text(types.Time, func(b *columnar.Builder) { b.Int64(x.Microseconds()) })
	case time.Time:
		if t.kind == avroUnion {
			t, _ = t.unionOne()
		}
		switch {
		case t.logical == "date":
			return text(types.Date, func(b *columnar.Builder) { b.Int32(int32(x.Unix()/86400 - unixDays)) })
		case strings.HasPrefix(t.logical, "local"):
			_, off := x.Zone()
			return stamp(x.Add(time.Duration(off)*time.Second), "")
		}
		return stamp(x, "+00:00")
	case *big.Rat:
		return num(x.FloatString(t.decimalScale()))
	case bool, string:
		return x
	}
	if b := fixedBytes(v); b != nil {
		return string(types.AppendBytea(nil, b, nil))
	}
	panic(fmt.Sprintf("a %T", v))
}

func (t *avroType) decimalScale() int {
	if t.kind == avroUnion {
		t, _ = t.unionOne()
	}
	return t.scale
}

// libraryName is what the library calls a branch of a union.
func (t *avroType) libraryName() string {
	if t.name != "" {
		return t.name
	}
	if t.logical != "" {
		return t.kind.String() + "." + t.logical
	}
	return t.kind.String()
}

// sameJSON compares numbers by value.
func sameJSON(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		p, ok1 := new(big.Rat).SetString(string(x))
		q, ok2 := new(big.Rat).SetString(string(y))
		return ok && ok1 && ok2 && p.Cmp(q) == 0
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			w, ok := y[k]
			if !ok || !sameJSON(v, w) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !sameJSON(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

func parseNumbers(t testing.TB, text []byte) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// decodeWhole decodes a record as one jsonb value, and as columns, which must
// agree with it.
func decodeWhole(t testing.TB, w, r *AvroSchema, body []byte) (any, error) {
	t.Helper()
	p, err := compileAvro(w.root, r.root, []Column{{Type: types.JSONB}})
	if err != nil {
		return nil, err
	}
	var m avroMachine
	b := columnar.NewBuilder(columnar.KindBytes, 1)
	if err := m.run(p, []*columnar.Builder{b}, body); err != nil {
		return nil, err
	}
	whole := parseNumbers(t, types.JSONDoc(b.Build().Bytes(0)).AppendText(nil)).(map[string]any)

	cols, fields := r.Columns("data")
	if p, err = compileAvro(w.root, r.root, fields); err != nil {
		t.Fatal(err)
	}
	bs := Builders(cols, 1)
	if err := m.run(p, bs, body); err != nil {
		t.Fatal(err)
	}
	for i, c := range cols {
		v := bs[i].Build()
		if v.Len() != 1 {
			t.Fatalf("column %s has %d values", c.Name, v.Len())
		}
		want := whole[c.Name]
		if v.Null(0) != (want == nil) {
			t.Fatalf("column %s: NULL is %v, as jsonb %v", c.Name, v.Null(0), want)
		}
		if want == nil {
			continue
		}
		text := string(types.AppendText(nil, c.Type, v, 0, nil))
		if got := columnJSON(t, c.Type, text, v); !sameJSON(got, want) {
			t.Fatalf("column %s %s: %s, as jsonb %v", c.Name, c.Type.OID.Name(), text, want)
		}
	}
	return whole, nil
}

// columnJSON is what to_jsonb gives for a column's value.
func columnJSON(t testing.TB, typ types.Type, text string, v *columnar.Vec) any {
	if info := types.Lookup(typ.OID); info.IsArray() {
		a := types.ReadArray(v.Bytes(0))
		elem := types.Type{OID: info.Elem, Mod: -1}
		out := []any{}
		for i := range a.N {
			if a.Null(i) {
				out = append(out, nil)
				continue
			}
			b := columnar.NewBuilder(elem.Kind(), 1)
			a.AppendElem(b, i)
			e := b.Build()
			out = append(out, columnJSON(t, elem, string(types.AppendText(nil, elem, e, 0, nil)), e))
		}
		return out
	}
	switch typ.OID {
	case types.OIDJSONB:
		return parseNumbers(t, []byte(text))
	case types.OIDBool:
		return text == "true" || text == "t"
	case types.OIDInt4, types.OIDInt8, types.OIDFloat4, types.OIDFloat8, types.OIDNumeric:
		return json.Number(text)
	case types.OIDTimestamp:
		return strings.Replace(text, " ", "T", 1)
	case types.OIDTimestampTZ:
		return strings.TrimSuffix(strings.Replace(text, " ", "T", 1), "+00") + "+00:00"
	}
	return text
}

// TestAvroOracle compares with the library over random schemas and values.
func TestAvroOracle(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for i := range uint64(300) {
		m := &schemaMaker{r: rand.New(rand.NewPCG(seed, i))}
		text, err := json.Marshal(m.record(3, 6))
		if err != nil {
			t.Fatal(err)
		}
		s, err := ParseAvro(string(text))
		if err != nil {
			t.Fatal(err)
		}
		lib, err := avro.ParseBytesWithCache(text, "", &avro.SchemaCache{})
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			body := m.write(nil, s.root)
			got, err := decodeWhole(t, s, s, body)
			if err != nil {
				t.Fatalf("schema %s: %v", text, err)
			}
			var v any
			if err := avro.Unmarshal(lib, body, &v); err != nil {
				t.Fatalf("library: schema %s: %v", text, err)
			}
			if want := expect(s.root, v); !sameJSON(got, want) {
				t.Fatalf("schema %s:\n got %v\nwant %v", text, got, want)
			}
			// Every prefix is too short.
			for n := range body {
				if _, err := decodeWhole(t, s, s, body[:n]); err == nil {
					t.Fatalf("schema %s: a record cut to %d of %d bytes was accepted", text, n, len(body))
				}
			}
		}
	}
}

// TestAvroResolution reads what one schema wrote by another one.
func TestAvroResolution(t *testing.T) {
	field := func(name, typ, more string) string {
		return fmt.Sprintf(`{"name":%q,"type":%s%s}`, name, typ, more)
	}
	rec := func(fields ...string) string {
		return `{"type":"record","name":"R","fields":[` + strings.Join(fields, ",") + `]}`
	}
	const inner = `{"type":"record","name":"I","fields":[{"name":"a","type":"int"}%s]}`
	for _, x := range []struct{ name, writer, reader, want, err string }{
		{"promotion to long", rec(field("x", `"int"`, "")), rec(field("x", `"long"`, "")), `{"x": 5}`, ""},
		{"promotion to float", rec(field("x", `"int"`, "")), rec(field("x", `"float"`, "")), `{"x": 5}`, ""},
		{"promotion to double", rec(field("x", `"long"`, "")), rec(field("x", `"double"`, "")), `{"x": 5}`, ""},
		{"float to double", rec(field("x", `"float"`, "")), rec(field("x", `"double"`, "")), `{"x": 0.5}`, ""},
		{"string to bytes", rec(field("x", `"string"`, "")), rec(field("x", `"bytes"`, "")), `{"x": "\\x6162"}`, ""},
		{"bytes to string", rec(field("x", `"bytes"`, "")), rec(field("x", `"string"`, "")), `{"x": "ab"}`, ""},
		{"narrowing", rec(field("x", `"long"`, "")), rec(field("x", `"int"`, "")), "", "long was written where int is expected"},
		{"added", rec(field("x", `"int"`, "")), rec(field("y", `"string"`, `,"default":"d"`), field("x", `"int"`, "")), `{"x": 5, "y": "d"}`, ""},
		{"added without default", rec(field("x", `"int"`, "")), rec(field("x", `"int"`, ""), field("y", `"string"`, "")), "", "has no default"},
		{"removed", rec(field("y", `{"type":"map","values":["null","string"]}`, ""), field("x", `"int"`, "")), rec(field("x", `"int"`, "")), `{"x": 5}`, ""},
		{"reordered", rec(field("y", `"string"`, ""), field("x", `"int"`, "")), rec(field("x", `"int"`, ""), field("y", `"string"`, "")), `{"x": 5, "y": "ab"}`, ""},
		{"renamed", rec(field("old", `"int"`, "")), rec(field("x", `"int"`, `,"aliases":["old"]`)), `{"x": 5}`, ""},
		{"made nullable", rec(field("x", `"int"`, "")), rec(field("x", `["null","long"]`, "")), `{"x": 5}`, ""},
		{"no longer nullable", rec(field("x", `["int","null"]`, "")), rec(field("x", `"int"`, "")), `{"x": 5}`, ""},
		{"nested", rec(field("x", fmt.Sprintf(inner, ""), "")), rec(field("x", fmt.Sprintf(inner, `,{"name":"b","type":{"type":"array","items":"int"},"default":[1,2]}`), "")), `{"x": {"a": 5, "b": [1, 2]}}`, ""},
		{"enum grown", rec(field("x", `{"type":"enum","name":"E","symbols":["N","A"]}`, "")), rec(field("x", `{"type":"enum","name":"E","symbols":["A"]}`, "")), "", "enum symbol \"N\" is not known"},
		{"enum default", rec(field("x", `{"type":"enum","name":"E","symbols":["N","A"]}`, "")), rec(field("x", `{"type":"enum","name":"E","symbols":["A"],"default":"A"}`, "")), `{"x": "A"}`, ""},
		{"other unit", rec(field("x", `{"type":"long","logicalType":"timestamp-micros"}`, "")), rec(field("x", `{"type":"long","logicalType":"timestamp-millis"}`, "")), `{"x": "1970-01-01T00:00:00.000005+00:00"}`, ""},
		{"nanoseconds", rec(field("x", `{"type":"long","logicalType":"timestamp-nanos"}`, "")), rec(field("x", `{"type":"long","logicalType":"timestamp-nanos"}`, "")), `{"x": "1970-01-01T00:00:00+00:00"}`, ""},
		{"a unit added", rec(field("x", `"long"`, "")), rec(field("x", `{"type":"long","logicalType":"timestamp-millis"}`, "")), `{"x": "1970-01-01T00:00:00.005+00:00"}`, ""},
		{"decimal scale", rec(field("x", `{"type":"bytes","logicalType":"decimal","precision":5,"scale":1}`, "")), rec(field("x", `{"type":"bytes","logicalType":"decimal","precision":7,"scale":3}`, "")), `{"x": 2493.000}`, ""},
		{"defaults of all kinds", rec(field("x", `"int"`, "")), rec(field("x", `"int"`, ""), field("b", `"bytes"`, `,"default":"\u00ff"`), field("f", `{"type":"fixed","name":"F","size":2}`, `,"default":"\u0001a"`),
			field("m", `{"type":"map","values":"long"}`, `,"default":{"k":7}`), field("u", `["null","int"]`, `,"default":null`), field("d", `"double"`, `,"default":1.5`), field("t", `"boolean"`, `,"default":true`),
			field("e", `{"type":"enum","name":"E","symbols":["P","Q"]}`, `,"default":"Q"`), field("r", fmt.Sprintf(inner, ""), `,"default":{"a":3}`)),
			`{"x": 5, "b": "\\xff", "f": "\\x0161", "m": {"k": 7}, "u": null, "d": 1.5, "t": true, "e": "Q", "r": {"a": 3}}`, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			w, err := ParseAvro(x.writer)
			if err != nil {
				t.Fatal(err)
			}
			r, err := ParseAvro(x.reader)
			if err != nil {
				t.Fatal(err)
			}
			var body []byte
			for _, f := range w.root.fields {
				body = fixedValue(body, f.typ)
			}
			got, err := decodeWhole(t, w, r, body)
			if x.err != "" {
				if err == nil || !strings.Contains(err.Error(), x.err) {
					t.Fatalf("error %v, want %s", err, x.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := parseNumbers(t, []byte(x.want)); !sameJSON(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// fixedValue writes 5, "ab" or 0.5, whichever the type can hold.
func fixedValue(dst []byte, t *avroType) []byte {
	switch t.kind {
	case avroInt, avroLong:
		return binary.AppendVarint(dst, 5)
	case avroFloat:
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(0.5))
	case avroString, avroBytes:
		return append(binary.AppendVarint(dst, 2), "ab"...)
	case avroUnion:
		return fixedValue(append(dst, 0), t.branches[0])
	case avroRecord:
		for _, f := range t.fields {
			dst = fixedValue(dst, f.typ)
		}
		return dst
	}
	return append(dst, 0)
}

// TestAvroTypes checks the column type of each type of Avro's.
func TestAvroTypes(t *testing.T) {
	s, err := ParseAvro(`{"type":"record","name":"R","fields":[
		{"name":"null","type":"null"},
		{"name":"enum","type":{"type":"enum","name":"E","symbols":["A"]}},
		{"name":"fixed","type":{"type":"fixed","name":"F","size":3}},
		{"name":"uuid","type":{"type":"fixed","name":"U","size":16,"logicalType":"uuid"}},
		{"name":"interval","type":{"type":"fixed","name":"D","size":12,"logicalType":"duration"}},
		{"name":"numeric","type":{"type":"fixed","name":"N","size":8,"logicalType":"decimal","precision":10,"scale":2}},
		{"name":"nullable","type":["null","long"]},
		{"name":"one","type":["long"]},
		{"name":"several","type":["long","string"]},
		{"name":"array","type":{"type":"array","items":["null",{"type":"int","logicalType":"date"}]}},
		{"name":"arrays","type":{"type":"array","items":{"type":"array","items":"int"}}},
		{"name":"map","type":{"type":"map","values":"int"}},
		{"name":"tree","type":{"type":"record","name":"T","fields":[{"name":"kids","type":{"type":"array","items":"T"}}]}},
		{"name":"nonsense","type":{"type":"string","logicalType":"timestamp-millis"}},
		{"name":"nanos","type":{"type":"long","logicalType":"local-timestamp-nanos"}}]}`)
	if err != nil {
		t.Fatal(err)
	}
	cols, fields := s.Columns("data")
	var got []string
	for _, c := range cols {
		x := c.Name + " " + c.Type.OID.Name() + types.TypmodOut(c.Type)
		if c.NotNull {
			x += " not null"
		}
		got = append(got, x)
	}
	want := []string{"null text", "enum text not null", "fixed bytea not null", "uuid uuid not null", "interval interval not null",
		"numeric numeric(10,2) not null", "nullable bigint", "one bigint not null", "several jsonb not null", "array date[] not null",
		"arrays jsonb not null", "map jsonb not null", "tree jsonb not null", "nonsense text not null", "nanos timestamp without time zone not null"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("columns\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	d, err := NewAvro(AvroOptions{Reader: s, Columns: fields})
	if err != nil {
		t.Fatal(err)
	}
	body := []byte{0}                                       // enum
	body = append(body, "abc"...)                           // fixed
	body = append(body, "0123456789abcdef"...)              // uuid
	body = append(body, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0) // interval
	body = append(body, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x85)
	body = append(body, 0)                // nullable: null
	body = append(body, 0, 2)             // one: 1
	body = append(body, 2, 2, 'x')        // several: "x"
	body = append(body, 4, 0, 2, 2, 0)    // array: null, 1970-01-02
	body = append(body, 2, 2, 4, 0, 0)    // arrays: [[2]]
	body = append(body, 2, 2, 'k', 6, 0)  // map: k: 3
	body = append(body, 4, 2, 0, 0, 0, 0) // tree: two kids, the first with one
	body = append(body, 2, 'z')           // nonsense
	body = append(body, 0xd1, 0x0f)       // nanos: -1001
	bs := Builders(cols, 1)
	if err := d.Decode(context.Background(), bs, body); err != nil {
		t.Fatal(err)
	}
	var row []string
	for i, c := range cols {
		if v := bs[i].Build(); v.Null(0) {
			row = append(row, "NULL")
		} else {
			row = append(row, string(types.AppendText(nil, c.Type, v, 0, nil)))
		}
	}
	wantRow := []string{"NULL", "A", `\x616263`, "30313233-3435-3637-3839-616263646566", "1 mon 2 days 00:00:00.003", "-1.23", "NULL", "1", `"x"`,
		"{NULL,1970-01-02}", "[[2]]", `{"k": 3}`, `{"kids": [{"kids": [{"kids": []}]}, {"kids": []}]}`, "z", "1969-12-31 23:59:59.999998"}
	if !reflect.DeepEqual(row, wantRow) {
		t.Errorf("row\n%s\nwant\n%s", strings.Join(row, "\n"), strings.Join(wantRow, "\n"))
	}
}

// TestAvroBombs are records that ask for more than they are.
func TestAvroBombs(t *testing.T) {
	for name, x := range map[string]struct {
		schema string
		body   []byte
	}{
		"many nulls": {`{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"array","items":"null"}}]}`,
			bytes.Repeat(binary.AppendVarint(nil, 60_000), 1000)},
		"a huge block": {`{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"array","items":"long"}}]}`, binary.AppendVarint(nil, math.MaxInt64)},
		"the least block": {`{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"array","items":"long"}}]}`,
			append(binary.AppendVarint(nil, math.MinInt64), 0)},
		"deep":              {`{"type":"record","name":"R","fields":[{"name":"a","type":["null","R"]}]}`, bytes.Repeat([]byte{2}, 1_000_000)},
		"a huge string":     {`{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}`, binary.AppendVarint(nil, 1<<40)},
		"a negative length": {`{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}`, binary.AppendVarint(nil, -1)},
		"eleven bytes":      {`{"type":"record","name":"R","fields":[{"name":"a","type":"long"}]}`, bytes.Repeat([]byte{0x80}, 11)},
	} {
		s, err := ParseAvro(x.schema)
		if err != nil {
			t.Fatal(err)
		}
		cols, fields := s.Columns("")
		d, err := NewAvro(AvroOptions{Reader: s, Columns: fields})
		if err != nil {
			t.Fatal(err)
		}
		bs := Builders(cols, 1)
		began := time.Now()
		var bad *RecordError
		if err := d.Decode(context.Background(), bs, x.body); !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s took %s", name, took)
		}
		if bs[0].Len() != 0 {
			t.Errorf("%s left a value behind", name)
		}
	}
}

// fakeRegistry gives schemas, after some failures.
type fakeRegistry struct {
	mu      sync.Mutex
	schemas map[int32]string
	fail    int
	asked   int
}

func (f *fakeRegistry) AvroSchema(_ context.Context, id int32) (string, []string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.fail > 0 {
		f.fail--
		return "", nil, errors.New("connection refused")
	}
	if s, ok := f.schemas[id]; ok {
		return s, nil, nil
	}
	return "", nil, fmt.Errorf("%w: %d", ErrNoSchema, id)
}

// TestAvroRegistry finds writers' schemas by id: once each, with patience.
func TestAvroRegistry(t *testing.T) {
	const schema = `{"type":"record","name":"R","fields":[{"name":"a","type":"long"}]}`
	s, err := ParseAvro(schema)
	if err != nil {
		t.Fatal(err)
	}
	reg := &fakeRegistry{schemas: map[int32]string{1: schema, 2: `{"type":"record","name":"R","fields":[{"name":"b","type":"int"},{"name":"a","type":"int"}]}`, 3: "{"}, fail: 2}
	var told []error
	cols, fields := s.Columns("")
	d, err := NewAvro(AvroOptions{Reader: s, Columns: fields, Writers: reg, Waiting: func(err error) { told = append(told, err) }})
	if err != nil {
		t.Fatal(err)
	}
	bs := Builders(cols, 4)
	ctx := context.Background()
	wire := func(id byte, body ...byte) []byte { return append([]byte{0, 0, 0, 0, id}, body...) }
	for _, r := range [][]byte{wire(1, 2), wire(2, 8, 4), wire(1, 6)} {
		if err := d.Decode(ctx, bs, r); err != nil {
			t.Fatal(err)
		}
	}
	if reg.asked != 4 || len(told) != 3 || told[2] != nil {
		t.Errorf("asked %d times, told %v", reg.asked, told)
	}
	for range 3 {
		for id, want := range map[byte]string{3: "invalid Avro schema", 4: "no such schema: 4"} {
			if err := d.Clone().Decode(ctx, bs, wire(id, 1)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("id %d: %v", id, err)
			}
		}
	}
	if reg.asked != 6 {
		t.Errorf("asked %d times, want 6: what does not exist is asked for again and again", reg.asked)
	}
	if v := bs[0].Build(); !reflect.DeepEqual(v.Int64s(), []int64{1, 2, 3}) {
		t.Errorf("values %v", v.Int64s())
	}
	reg.fail = 1 << 30
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	var bad *RecordError
	if err := d.Decode(short, bs, wire(9)); err == nil || errors.As(err, &bad) {
		t.Errorf("a registry that is not there gives %v", err)
	}
}

func FuzzAvro(f *testing.F) {
	m := &schemaMaker{r: rand.New(rand.NewPCG(1, 2))}
	text, err := json.Marshal(map[string]any{"type": "record", "name": "Top", "fields": []any{
		map[string]any{"name": "a", "type": m.record(3, 6)}, map[string]any{"name": "b", "type": m.record(3, 6)},
		map[string]any{"name": "c", "type": []any{"null", "long"}}, map[string]any{"name": "d", "type": map[string]any{"type": "array", "items": "string"}},
	}})
	if err != nil {
		f.Fatal(err)
	}
	s, err := ParseAvro(string(text))
	if err != nil {
		f.Fatal(err)
	}
	for range 20 {
		f.Add(m.write(nil, s.root))
	}
	cols, fields := s.Columns("")
	d, err := NewAvro(AvroOptions{Reader: s, Columns: fields})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) { checkRows(t, d, cols, body) })
}

// checkRows decodes a record that may be anything: one row, or an error and none.
func checkRows(t *testing.T, d Decoder, cols []sources.Column, body []byte) {
	bs := Builders(cols, 2)
	want := 1
	if err := d.Decode(context.Background(), bs, body); err != nil {
		var bad *RecordError
		if !errors.As(err, &bad) {
			t.Fatal(err)
		}
		want = 0
	}
	for i, b := range bs {
		v := b.Build()
		if v.Len() != want {
			t.Fatalf("column %s has %d values, want %d", cols[i].Name, v.Len(), want)
		}
		if want == 1 && !v.Null(0) {
			text := types.AppendText(nil, cols[i].Type, v, 0, nil)
			if err := types.CheckUTF8(text); err != nil {
				t.Fatalf("column %s: %v", cols[i].Name, err)
			}
		}
	}
}

// bigRand adapts the generator to package big.
func bigRand(r *rand.Rand) *oldrand.Rand { return oldrand.New(oldrand.NewSource(r.Int64())) }
