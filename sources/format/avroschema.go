package format

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"sort"
	"strings"

	"github.com/hamba/avro/v2"

	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/types"
)

// avroKind is a type of Avro's (the specification, "Schema Declaration").
type avroKind uint8

const (
	avroNull avroKind = iota
	avroBoolean
	avroInt
	avroLong
	avroFloat
	avroDouble
	avroBytes
	avroString
	avroFixed
	avroEnum
	avroArray
	avroMap
	avroRecord
	avroUnion
)

var avroKindNames = [...]string{"null", "boolean", "int", "long", "float", "double", "bytes", "string", "fixed", "enum", "array", "map", "record", "union"}

func (k avroKind) String() string { return avroKindNames[k] }

// avroType is one type of a parsed schema, as the compiler wants it. Recursive
// schemas make cycles.
type avroType struct {
	kind    avroKind
	logical string // "" for none, or one that means nothing here
	// of decimals
	precision, scale int
	size             int // of fixed
	name             string
	aliases          []string
	symbols          []string
	enumDefault      string
	fields           []avroField
	item             *avroType   // of arrays and maps
	branches         []*avroType // of unions
}

type avroField struct {
	name    string
	aliases []string
	typ     *avroType
	hasDef  bool
	def     any
}

// AvroSchema is a parsed Avro schema.
type AvroSchema struct{ root *avroType }

// ParseAvro parses a schema. refs are the texts of schemas that it refers to,
// each after those that it refers to itself.
func ParseAvro(text string, refs ...string) (*AvroSchema, error) {
	cache := &avro.SchemaCache{}
	for _, r := range refs {
		if _, err := avro.ParseBytesWithCache([]byte(r), "", cache); err != nil {
			return nil, fmt.Errorf("invalid Avro schema (a reference): %s", strings.TrimPrefix(err.Error(), "avro: "))
		}
	}
	s, err := avro.ParseBytesWithCache([]byte(text), "", cache)
	if err != nil {
		return nil, fmt.Errorf("invalid Avro schema: %s", strings.TrimPrefix(err.Error(), "avro: "))
	}
	c := avroConverter{named: map[string]*avroType{}}
	return &AvroSchema{root: c.convert(s)}, nil
}

// Columns are the columns that a schema gives: the fields of a record, or one
// column of the given name for any other type.
func (s *AvroSchema) Columns(name string) ([]sources.Column, []Column) {
	if s.root.kind != avroRecord {
		t, nullable := s.root.sqlType()
		return []sources.Column{{Name: name, Type: t, NotNull: !nullable}}, []Column{{Type: t, NotNull: !nullable}}
	}
	var cols []sources.Column
	var fields []Column
	for _, f := range s.root.fields {
		t, nullable := f.typ.sqlType()
		cols = append(cols, sources.Column{Name: f.name, Type: t, NotNull: !nullable})
		fields = append(fields, Column{Field: f.name, Type: t, NotNull: !nullable})
	}
	return cols, fields
}

// IsRecord reports whether the schema's root is a record.
func (s *AvroSchema) IsRecord() bool { return s.root.kind == avroRecord }

type avroConverter struct{ named map[string]*avroType }

func (c *avroConverter) convert(s avro.Schema) *avroType {
	switch x := s.(type) {
	case *avro.RefSchema:
		if t := c.named[x.Schema().FullName()]; t != nil {
			return t
		}
		return c.convert(x.Schema())
	case *avro.NullSchema:
		return &avroType{kind: avroNull}
	case *avro.PrimitiveSchema:
		t := &avroType{kind: primitiveKinds[x.Type()]}
		t.setLogical(x.Logical(), x.Prop("logicalType"))
		return t
	case *avro.FixedSchema:
		t := &avroType{kind: avroFixed, size: x.Size(), name: x.FullName(), aliases: x.Aliases()}
		c.named[t.name] = t
		t.setLogical(x.Logical(), x.Prop("logicalType"))
		return t
	case *avro.EnumSchema:
		t := &avroType{kind: avroEnum, symbols: x.Symbols(), enumDefault: x.Default(), name: x.FullName(), aliases: x.Aliases()}
		c.named[t.name] = t
		return t
	case *avro.ArraySchema:
		return &avroType{kind: avroArray, item: c.convert(x.Items())}
	case *avro.MapSchema:
		return &avroType{kind: avroMap, item: c.convert(x.Values())}
	case *avro.UnionSchema:
		t := &avroType{kind: avroUnion}
		for _, b := range x.Types() {
			t.branches = append(t.branches, c.convert(b))
		}
		return t
	case *avro.RecordSchema:
		t := &avroType{kind: avroRecord, name: x.FullName(), aliases: x.Aliases()}
		c.named[t.name] = t
		for _, f := range x.Fields() {
			t.fields = append(t.fields, avroField{name: f.Name(), aliases: f.Aliases(), typ: c.convert(f.Type()), hasDef: f.HasDefault(), def: f.Default()})
		}
		return t
	}
	panic(fmt.Sprintf("format: unknown Avro schema %T", s))
}

var primitiveKinds = map[avro.Type]avroKind{
	avro.String: avroString, avro.Bytes: avroBytes, avro.Int: avroInt, avro.Long: avroLong,
	avro.Float: avroFloat, avro.Double: avroDouble, avro.Boolean: avroBoolean, avro.Null: avroNull,
}

// setLogical takes a logical type that fits its underlying type; by the
// specification others are to be ignored.
func (t *avroType) setLogical(l avro.LogicalSchema, prop any) {
	name, _ := prop.(string)
	if l != nil {
		name = string(l.Type())
	}
	if d, ok := l.(*avro.DecimalLogicalSchema); ok {
		t.logical, t.precision, t.scale = "decimal", d.Precision(), d.Scale()
		return
	}
	ok := false
	switch name {
	case "date", "time-millis":
		ok = t.kind == avroInt
	case "time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos",
		"local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos":
		ok = t.kind == avroLong
	case "uuid":
		ok = t.kind == avroString || t.kind == avroFixed && t.size == 16
	case "duration":
		ok = t.kind == avroFixed && t.size == 12
	}
	if ok {
		t.logical = name
	}
}

// maxNumericPrecision is PostgreSQL's limit for a declared precision.
const maxNumericPrecision = 1000

// sqlType is the SQL type for a column of this type, and whether it can be NULL.
// What has no simple type is jsonb, written as to_jsonb would: records and maps
// as objects, unions of several types as the plain value.
func (t *avroType) sqlType() (typ types.Type, nullable bool) {
	switch t.kind {
	case avroNull:
		return types.Text, true
	case avroUnion:
		inner, null := t.unionOne()
		if inner == nil {
			return types.JSONB, null
		}
		typ, nullable = inner.sqlType()
		return typ, nullable || null
	case avroArray:
		if elem, ok := t.item.simple(); ok {
			if a := types.Lookup(elem.OID).Array; a != 0 {
				return types.Type{OID: a, Mod: elem.Mod}, false
			}
		}
		return types.JSONB, false
	case avroMap, avroRecord:
		return types.JSONB, false
	}
	typ, _ = t.simple()
	return typ, false
}

// unionOne is the only type of a union besides null, nil if there are more (or
// none), and whether null is in it.
func (t *avroType) unionOne() (one *avroType, null bool) {
	n := 0
	for _, b := range t.branches {
		if b.kind == avroNull {
			null = true
			continue
		}
		one = b
		n++
	}
	if n != 1 {
		return nil, null
	}
	return one, null
}

// simple is the SQL type of a scalar, or of a union of a scalar and null.
func (t *avroType) simple() (types.Type, bool) {
	switch t.kind {
	case avroUnion:
		if one, _ := t.unionOne(); one != nil && one.kind != avroUnion {
			return one.simple()
		}
		return types.Type{}, false
	case avroBoolean:
		return types.Bool, true
	case avroInt:
		switch t.logical {
		case "date":
			return types.Date, true
		case "time-millis":
			return types.Time, true
		}
		return types.Int4, true
	case avroLong:
		switch t.logical {
		case "time-micros":
			return types.Time, true
		case "timestamp-millis", "timestamp-micros", "timestamp-nanos":
			return types.TimestampTZ, true
		case "local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos":
			return types.Timestamp, true
		}
		return types.Int8, true
	case avroFloat:
		return types.Float4, true
	case avroDouble:
		return types.Float8, true
	case avroString, avroEnum:
		if t.logical == "uuid" {
			return types.UUID, true
		}
		return types.Text, true
	case avroBytes, avroFixed:
		switch t.logical {
		case "decimal":
			if t.precision > maxNumericPrecision || t.scale > t.precision {
				return types.Numeric, true
			}
			return types.Type{OID: types.OIDNumeric, Mod: decimal.MakeTypmod(t.precision, t.scale)}, true
		case "uuid":
			return types.UUID, true
		case "duration":
			return types.Interval, true
		}
		return types.Bytea, true
	}
	return types.Type{}, false
}

// appendDefault appends a field's default, as the parser gives it, in Avro's
// binary form.
func (t *avroType) appendDefault(dst []byte, v any) ([]byte, error) {
	wrong := fmt.Errorf("invalid default for type %s", t.kind)
	switch t.kind {
	case avroNull:
		return dst, nil
	case avroBoolean:
		if x, ok := v.(bool); ok && x {
			return append(dst, 1), nil
		}
		return append(dst, 0), nil
	case avroInt, avroLong:
		switch x := v.(type) {
		case int:
			return binary.AppendVarint(dst, int64(x)), nil
		case int64:
			return binary.AppendVarint(dst, x), nil
		case float64:
			return binary.AppendVarint(dst, int64(x)), nil
		}
	case avroFloat, avroDouble:
		f, ok := v.(float64)
		if x, is32 := v.(float32); is32 {
			f, ok = float64(x), true
		}
		if !ok {
			return dst, wrong
		}
		if t.kind == avroFloat {
			return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(f))), nil
		}
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f)), nil
	case avroString, avroBytes, avroFixed:
		return t.appendDefaultBytes(dst, v, wrong)
	case avroEnum:
		for i, s := range t.symbols {
			if s == v {
				return binary.AppendVarint(dst, int64(i)), nil
			}
		}
	case avroUnion:
		return t.branches[0].appendDefault(binary.AppendVarint(dst, 0), v)
	default:
		return t.appendDefaultContainer(dst, v, wrong)
	}
	return dst, wrong
}

func (t *avroType) appendDefaultBytes(dst []byte, v any, wrong error) ([]byte, error) {
	var b []byte
	switch x := v.(type) {
	case string:
		b = []byte(x)
		if t.kind != avroString { // code points 0–255 stand for bytes
			b = b[:0]
			for _, r := range x {
				b = append(b, byte(r))
			}
		}
	case []byte:
		b = x
	default:
		if t.kind != avroFixed {
			return dst, wrong
		}
		b = fixedBytes(v)
	}
	if t.kind == avroFixed {
		if len(b) != t.size {
			return dst, wrong
		}
		return append(dst, b...), nil
	}
	return append(binary.AppendVarint(dst, int64(len(b))), b...), nil
}

func (t *avroType) appendDefaultContainer(dst []byte, v any, wrong error) (_ []byte, err error) {
	switch t.kind {
	case avroArray:
		list, ok := v.([]any)
		if !ok {
			return dst, wrong
		}
		if len(list) > 0 {
			dst = binary.AppendVarint(dst, int64(len(list)))
			for _, x := range list {
				if dst, err = t.item.appendDefault(dst, x); err != nil {
					return dst, err
				}
			}
		}
		return append(dst, 0), nil
	case avroMap:
		m, ok := v.(map[string]any)
		if !ok {
			return dst, wrong
		}
		keys := make([]string, 0, len(m))
		for k := range m {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		if len(m) > 0 {
			dst = binary.AppendVarint(dst, int64(len(m)))
			for _, k := range keys {
				dst = append(binary.AppendVarint(dst, int64(len(k))), k...)
				if dst, err = t.item.appendDefault(dst, m[k]); err != nil {
					return dst, err
				}
			}
		}
		return append(dst, 0), nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return dst, wrong
	}
	for _, f := range t.fields {
		x, ok := m[f.name]
		if !ok {
			x = f.def
		}
		if dst, err = f.typ.appendDefault(dst, x); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// fixedBytes are the bytes of a [n]byte behind an interface.
func fixedBytes(v any) []byte {
	x := reflect.ValueOf(v)
	if x.Kind() != reflect.Array || x.Type().Elem().Kind() != reflect.Uint8 {
		return nil
	}
	b := make([]byte, x.Len())
	reflect.Copy(reflect.ValueOf(b), x)
	return b
}
