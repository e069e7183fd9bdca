package types

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"strings"
	"sync"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// RisingWave's struct<name type, …> and map(key, value) are types by their form
// alone. Each has an OID above all that a catalog gives, which follows from the
// form; where a catalog is written, the form is written with it.
//
// A map is stored as the array of its entries, records of a key and a value, in
// the order in which they were made.

// firstAnonymous is where their OIDs begin: an even one is the type, the next
// that of arrays of it.
const firstAnonymous OID = 1 << 30

// mapKind is Definition.Kind of a map, whose Fields are its key and value.
const mapKind = 'M'

var anonymous struct {
	sync.Mutex
	byForm map[string]OID
}

// IsAnonymous reports whether o is a type by its form alone, or an array of one.
func (o OID) IsAnonymous() bool { return o >= firstAnonymous && o < firstAnonymous<<1 }

// StructOf is the type struct<fields>.
func StructOf(fields []Field) OID {
	return intern(&Definition{Kind: 'c', Fields: fields})
}

// MapOf is the type map(key, value).
func MapOf(key, value Type) (OID, error) {
	switch key.OID {
	case OIDInt2, OIDInt4, OIDInt8, OIDText, OIDVarchar:
	default:
		return 0, pgerror.New(pgerror.InvalidTableDefinition, "invalid map key type: %s", key)
	}
	return intern(&Definition{Kind: mapKind, Fields: []Field{{Name: "key", Type: key}, {Name: "value", Type: value}}}), nil
}

// formOf is the type as SQL has it.
func formOf(d *Definition) string {
	if d.Kind == mapKind {
		return "map(" + d.Fields[0].Type.String() + "," + d.Fields[1].Type.String() + ")"
	}
	parts := make([]string, len(d.Fields))
	for i, f := range d.Fields {
		parts[i] = quoteTypeName(f.Name) + " " + f.Type.String()
	}
	return "struct<" + strings.Join(parts, ", ") + ">"
}

// keyOf tells forms apart, also where types of two databases have one name.
func keyOf(d *Definition) string {
	key := []byte{d.Kind}
	for _, f := range d.Fields {
		key = binary.BigEndian.AppendUint32(key, uint32(f.Type.OID))
		key = binary.BigEndian.AppendUint32(key, uint32(f.Type.Mod))
		key = append(append(key, f.Name...), 0)
	}
	return string(key)
}

// intern gives a form its OID: the first free one from that which follows from it.
func intern(d *Definition) OID {
	h := fnv.New32a()
	h.Write([]byte(keyOf(d)))
	return internAt(d, firstAnonymous+OID(h.Sum32()&(1<<29-1))<<1)
}

func internAt(d *Definition, o OID) OID {
	key := keyOf(d)
	anonymous.Lock()
	defer anonymous.Unlock()
	if have, ok := anonymous.byForm[key]; ok {
		return have
	}
	for lookupUser(o) != nil {
		if o += 2; !o.IsAnonymous() {
			o = firstAnonymous
		}
	}
	if anonymous.byForm == nil {
		anonymous.byForm = map[string]OID{}
	}
	anonymous.byForm[key] = o
	d.Array = o + 1
	Define(o, "", formOf(d), d)
	return o
}

// IsMap reports whether o is a map.
func (o OID) IsMap() bool {
	if !o.IsAnonymous() {
		return false
	}
	t := lookupUser(o)
	return t != nil && t.Kind == 'b' && t.Definition != nil && t.Definition.Kind == mapKind
}

// MapTypes are the types of a map's keys and values.
func (o OID) MapTypes() (key, value Type) {
	f := lookupUser(o).Definition.Fields
	return f[0].Type, f[1].Type
}

// EntryOf is the type of a map's entries.
func (o OID) EntryOf() OID { return StructOf(lookupUser(o).Definition.Fields) }

// writtenForm is an anonymous type as a catalog keeps it.
type writtenForm struct {
	OID    uint32
	Kind   string
	Array  bool `json:",omitempty"`
	Fields []Field
}

// MarshalJSON writes the number, and the form of an anonymous type with it.
func (o OID) MarshalJSON() ([]byte, error) {
	if !o.IsAnonymous() {
		return json.Marshal(uint32(o))
	}
	w := writtenForm{OID: uint32(o), Kind: "struct"}
	if e := o.Elem(); e != 0 {
		o, w.Array = e, true
	}
	t := lookupUser(o)
	if t.Definition.Kind == mapKind {
		w.Kind = "map"
	}
	w.Fields = t.Definition.Fields
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote, and makes the type known.
func (o *OID) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '{' {
		var n uint32
		err := json.Unmarshal(b, &n)
		*o = OID(n)
		return err
	}
	var w writtenForm
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*o = OID(w.OID)
	at, d := *o, &Definition{Kind: 'c', Fields: w.Fields}
	if w.Array {
		at--
	}
	if w.Kind == "map" {
		d.Kind = mapKind
	}
	if got := internAt(d, at); got != at {
		return pgerror.New(pgerror.InternalError, "type %s is known under another number", formOf(d))
	}
	return nil
}

// appendMapText appends `{key:value,…}`.
func appendMapText(dst, b []byte, o *Options) []byte {
	a := ReadArray(b)
	dst = append(dst, '{')
	for i := range a.N {
		if i > 0 {
			dst = append(dst, ',')
		}
		r := ReadRecord(a.Bytes(i))
		dst = append(appendText(dst, r.Type(0), r.datum(0), o), ':')
		if r.Null(1) {
			dst = append(dst, "NULL"...)
		} else {
			dst = appendText(dst, r.Type(1), r.datum(1), o)
		}
	}
	return append(dst, '}')
}

// parseMap reads `{key:value,…}`; parts with colons, commas or braces at their
// top are in double quotes. Materialize's `=>` is taken for the colon.
func parseMap(dst []byte, t OID, s string, o *Options) ([]byte, error) {
	fail := func() ([]byte, error) {
		return dst, pgerror.New(pgerror.InvalidTextRepresentation, "malformed map literal: \"%s\"", s)
	}
	text := strings.TrimSpace(s)
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return fail()
	}
	key, value := t.MapTypes()
	m := NewMapBuilder(t)
	rest := strings.TrimSpace(text[1 : len(text)-1])
	for rest != "" {
		k, _, after, ok := mapPart(rest, ":")
		if !ok {
			return fail()
		}
		v, quoted, after, _ := mapPart(after, ",")
		rest = strings.TrimSpace(after)
		kb, vb := columnar.NewBuilder(key.Kind(), 1), columnar.NewBuilder(value.Kind(), 1)
		if err := parseText(kb, key, k, o); err != nil {
			return dst, err
		}
		if !quoted && strings.EqualFold(v, "null") {
			vb.Null()
		} else if err := parseText(vb, value, v, o); err != nil {
			return dst, err
		}
		if err := m.Put(kb.Build(), 0, vb.Build(), 0); err != nil {
			return dst, err
		}
	}
	return m.Append(dst), nil
}

// mapPart reads a part up to the separator, and what follows that.
func mapPart(s, sep string) (part string, quoted bool, rest string, ok bool) {
	s = strings.TrimSpace(s)
	var b strings.Builder
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' && depth == 0:
			quoted = true
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' && i+1 < len(s) {
					i++
				}
				b.WriteByte(s[i])
			}
			continue
		case depth == 0 && strings.HasPrefix(s[i:], sep):
			return strings.TrimSpace(b.String()), quoted, s[i+len(sep):], true
		case depth == 0 && sep == ":" && strings.HasPrefix(s[i:], "=>"):
			return strings.TrimSpace(b.String()), quoted, s[i+2:], true
		case c == '{' || c == '(' || c == '[':
			depth++
		case c == '}' || c == ')' || c == ']':
			depth--
		}
		b.WriteByte(s[i])
	}
	return strings.TrimSpace(b.String()), quoted, "", false
}

// MapBuilder makes a map entry by entry.
type MapBuilder struct {
	entry      OID
	key, value Type
	entries    *columnar.Builder
	record     RecordBuilder
	seen       map[string]struct{}
	buf        []byte
}

// NewMapBuilder makes maps of a type.
func NewMapBuilder(t OID) *MapBuilder {
	key, value := t.MapTypes()
	m := &MapBuilder{entry: t.EntryOf(), key: Of(key.Storage().OID), value: Of(value.Storage().OID)}
	m.record.Names = []string{"key", "value"}
	m.Reset()
	return m
}

// Reset makes the map empty.
func (m *MapBuilder) Reset() {
	m.entries = columnar.NewBuilder(columnar.KindBytes, 4)
	m.seen = map[string]struct{}{}
}

// Put adds an entry, whose key must be new and not NULL.
func (m *MapBuilder) Put(key *columnar.Vec, i int, value *columnar.Vec, j int) error {
	if key.Null(i) {
		return pgerror.New(pgerror.NullValueNotAllowed, "map keys must not be NULL")
	}
	if m.Has(key, i) {
		return pgerror.New(pgerror.InvalidParameterValue, "map keys must be unique")
	}
	m.seen[string(m.buf)] = struct{}{}
	m.record.Field(m.key, key, i)
	m.record.Field(m.value, value, j)
	m.entries.Extend(m.record.Append)
	return nil
}

// Has reports whether there is an entry of a key, which is not NULL.
func (m *MapBuilder) Has(key *columnar.Vec, i int) bool {
	d := at(key, i)
	m.buf = d.appendRaw(m.buf[:0], m.key.Kind())
	_, ok := m.seen[string(m.buf)]
	return ok
}

// Append appends the map.
func (m *MapBuilder) Append(dst []byte) []byte {
	v := m.entries.Build()
	return AppendList(dst, m.entry, v, 0, v.Len())
}

// MapEntries appends the keys and the values of a map.
func MapEntries(b []byte, keys, values *columnar.Builder) int {
	a := ReadArray(b)
	for i := range a.N {
		r := ReadRecord(a.Bytes(i))
		r.AppendField(keys, 0)
		r.AppendField(values, 1)
	}
	return a.N
}
