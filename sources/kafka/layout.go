package kafka

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sources/format"
	"github.com/streamdb/streamdb/sources/registry"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// part is the part of a record that a column comes from.
type part string

const (
	partKey       part = "key"
	partValue     part = "value"
	partPartition part = "partition"
	partOffset    part = "offset"
	partTimestamp part = "timestamp"
	partHeaders   part = "headers"
	partHeader    part = "header"
	partTopic     part = "topic"
)

// columnFrom says where a column comes from.
type columnFrom struct {
	Part  part   `json:"part"`
	Field string `json:"field,omitempty"` // of the key or value; the header's name
}

// layout is all that decoding needs besides the declaration. It is found when
// the source is created and kept in the catalog, so that the schema of the
// reader never changes and a restart needs no registry.
type layout struct {
	Columns []columnFrom `json:"columns"`
	// Fields are all columns of a CSV line, by name.
	ValueFields []string  `json:"value_fields,omitempty"`
	KeyFields   []string  `json:"key_fields,omitempty"`
	Value       *avroText `json:"value,omitempty"`
	Key         *avroText `json:"key,omitempty"`
	// KeyFormat is what the key's format was found to be.
	KeyFormat string `json:"key_format,omitempty"`
}

// avroText is a reader's schema with those it refers to.
type avroText struct {
	Schema string   `json:"schema"`
	Refs   []string `json:"refs,omitempty"`
}

func (a *avroText) parse() (*format.AvroSchema, error) {
	s, err := format.ParseAvro(a.Schema, a.Refs...)
	if err != nil {
		return nil, pgerror.New(pgerror.InvalidParameterValue, "%s", err)
	}
	return s, nil
}

// layoutProp is the property of the table that holds the layout.
const layoutProp = "layout"

// column is a column while the layout is being made.
type column struct {
	sources.Column
	from columnFrom
}

// discovery makes the table of a new source.
type discovery struct {
	o        *options
	declared *sources.Table
	ctx      context.Context
	registry *registry.Client
	layout   layout
}

// discover finds the columns of a new source: from the schema registry, or
// from what was declared.
func discover(ctx context.Context, o *options, declared *sources.Table) (*sources.Table, *layout, error) {
	d := &discovery{o: o, declared: declared, ctx: ctx}
	defer func() {
		if d.registry != nil {
			d.registry.Close()
		}
	}()
	if o.val.kind == "" {
		return nil, nil, pgerror.New(pgerror.SyntaxError, "a Kafka source needs a FORMAT").
			WithHint("Add FORMAT AVRO, JSON, TEXT, BYTES or CSV.")
	}
	value, err := d.valueColumns()
	if err != nil {
		return nil, nil, err
	}
	key, err := d.keyColumns(value)
	if err != nil {
		return nil, nil, err
	}
	// A field that key and value share is taken from the key, which is what
	// identifies the row.
	value = slices.DeleteFunc(value, func(c column) bool {
		return slices.ContainsFunc(key, func(k column) bool { return k.Name == c.Name })
	})
	all := append(append(key, value...), d.metadata()...)
	if err := d.rename(all); err != nil {
		return nil, nil, err
	}
	return d.table(all)
}

// table checks the columns and makes the table.
func (d *discovery) table(all []column) (*sources.Table, *layout, error) {
	t := &sources.Table{Envelope: sources.EnvelopeAppend}
	seen := map[string]bool{}
	for _, c := range all {
		if seen[c.Name] {
			return nil, nil, pgerror.New(pgerror.DuplicateColumn, "column \"%s\" specified more than once", c.Name).
				WithHint("Give one of them another name with INCLUDE … AS.")
		}
		seen[c.Name] = true
		t.Columns = append(t.Columns, c.Column)
		d.layout.Columns = append(d.layout.Columns, c.from)
	}
	if err := d.key(t, all); err != nil {
		return nil, nil, err
	}
	b, err := json.Marshal(&d.layout)
	if err != nil {
		return nil, nil, err
	}
	t.Props = map[string]string{layoutProp: string(b)}
	return t, &d.layout, nil
}

// key finds the columns of the upsert envelope's key. A PRIMARY KEY without the
// upsert envelope makes the last record of a key its row.
func (d *discovery) key(t *sources.Table, all []column) error {
	var names []string
	if d.declared != nil {
		names = d.declared.KeyNames
	}
	switch {
	case len(names) > 0:
		for _, n := range names {
			i := slices.IndexFunc(t.Columns, func(c sources.Column) bool { return c.Name == n })
			if i < 0 {
				return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" named in key does not exist", n)
			}
			t.Key = append(t.Key, i)
		}
	case d.o.envelope == "upsert":
		for i, c := range all {
			if c.from.Part == partKey {
				t.Key = append(t.Key, i)
			}
		}
	default:
		return nil
	}
	if d.o.envelope == "upsert" {
		for i, c := range all {
			if (c.from.Part == partKey) != slices.Contains(t.Key, i) {
				return pgerror.New(pgerror.InvalidObjectDefinition, "the PRIMARY KEY of an upsert source must be the columns of the record's key").
					WithHint("Include the key with INCLUDE KEY AS, and name that column in PRIMARY KEY.")
			}
		}
	}
	t.Envelope = sources.EnvelopeUpsert
	return nil
}

// typed reports whether columns with types were declared.
func (d *discovery) typed() bool {
	return d.declared != nil && len(d.declared.Columns) > 0 && d.declared.Columns[0].Type != types.Unknown
}

// rename gives the columns the names that were declared without types.
func (d *discovery) rename(all []column) error {
	if d.declared == nil || len(d.declared.Columns) == 0 || d.typed() {
		return nil
	}
	if len(d.declared.Columns) != len(all) {
		return pgerror.New(pgerror.InvalidObjectDefinition, "the source has %d columns, but %d names are given", len(all), len(d.declared.Columns))
	}
	for i := range all {
		all[i].Name = d.declared.Columns[i].Name
	}
	return nil
}

func (d *discovery) valueColumns() ([]column, error) {
	f := &d.o.val
	switch f.kind {
	case "avro":
		text, err := d.schema(f, false)
		if err != nil {
			return nil, err
		}
		d.layout.Value = text
		return d.avroColumns(text, partValue, "data")
	case "csv":
		return d.csvColumns(f, partValue, &d.layout.ValueFields)
	}
	if d.typed() {
		cols := d.declaredColumns(partValue)
		if f.kind != "json" {
			if len(cols) != 1 {
				return nil, pgerror.New(pgerror.InvalidObjectDefinition, "FORMAT %s gives one column, but %d are declared", strings.ToUpper(f.kind), len(cols))
			}
			cols[0].from.Field = ""
			if f.kind == "bytes" && cols[0].Type.OID != types.OIDBytea {
				return nil, pgerror.New(pgerror.DatatypeMismatch, "FORMAT BYTES gives a column of type bytea, not %s", cols[0].Type.OID.Name())
			}
		}
		return cols, nil
	}
	return []column{wholeColumn(f.kind, partValue, "")}, nil
}

// wholeColumn is the one column of a format without fields.
func wholeColumn(kind string, p part, name string) column {
	c := column{from: columnFrom{Part: p}}
	switch kind {
	case "json":
		c.Name, c.Type = "data", types.JSONB
	case "text":
		c.Name, c.Type = "text", types.Text
	default:
		c.Name, c.Type = "data", types.Bytea
	}
	if p == partKey {
		c.Name = "key"
	}
	if name != "" {
		c.Name = name
	}
	return c
}

func (d *discovery) declaredColumns(p part) []column {
	var out []column
	for _, c := range d.declared.Columns {
		out = append(out, column{c, columnFrom{p, c.Name}})
	}
	return out
}

// avroColumns are the columns of a schema, or those of them that are declared.
func (d *discovery) avroColumns(text *avroText, p part, name string) ([]column, error) {
	s, err := text.parse()
	if err != nil {
		return nil, err
	}
	cols, fields := s.Columns(name)
	var out []column
	for i, c := range cols {
		out = append(out, column{c, columnFrom{p, fields[i].Field}})
	}
	if p == partKey || !d.typed() {
		return out, nil
	}
	byName := out
	out = nil
	for _, c := range d.declared.Columns {
		i := slices.IndexFunc(byName, func(x column) bool { return x.Name == c.Name })
		if i < 0 {
			i = slices.IndexFunc(byName, func(x column) bool { return strings.EqualFold(x.Name, c.Name) })
		}
		if i < 0 {
			if slices.Contains(d.declared.KeyNames, c.Name) && d.o.envelope == "upsert" {
				continue // the record's key has it
			}
			return nil, pgerror.New(pgerror.UndefinedColumn, "the Avro schema has no field \"%s\"", c.Name)
		}
		x := byName[i]
		if x.Type.OID != c.Type.OID {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "column \"%s\" is of type %s but the field of the Avro schema is of type %s", c.Name, c.Type.OID.Name(), x.Type.OID.Name()).
				WithHint("Leave out the columns to take them from the schema.")
		}
		x.Name = c.Name
		out = append(out, x)
	}
	return out, nil
}

func (d *discovery) csvColumns(f *formatOptions, p part, fields *[]string) ([]column, error) {
	var out []column
	switch {
	case d.typed() && p == partValue:
		out = d.declaredColumns(p)
	case len(f.names) > 0:
		for _, n := range f.names {
			out = append(out, column{sources.Column{Name: n, Type: types.Text}, columnFrom{p, n}})
		}
	case f.columns > 0:
		for i := range f.columns {
			n := fmt.Sprintf("column%d", i+1)
			out = append(out, column{sources.Column{Name: n, Type: types.Text}, columnFrom{p, n}})
		}
	default:
		return nil, pgerror.New(pgerror.SyntaxError, "FORMAT CSV needs the number of columns, or their names")
	}
	if n := max(f.columns, len(f.names)); n > 0 && n != len(out) {
		return nil, pgerror.New(pgerror.InvalidObjectDefinition, "FORMAT CSV has %d columns, but %d are declared", n, len(out))
	}
	for _, c := range out {
		*fields = append(*fields, c.from.Field)
	}
	return out, nil
}

// includeOf is the INCLUDE clause of a kind, nil if there is none.
func (d *discovery) includeOf(kind string) *include {
	for i := range d.o.includes {
		if d.o.includes[i].kind == kind {
			return &d.o.includes[i]
		}
	}
	return nil
}

// keyColumns are those that the record's key gives.
func (d *discovery) keyColumns(value []column) ([]column, error) {
	inc := d.includeOf("key")
	upsert := d.o.envelope == "upsert"
	if inc == nil && !upsert {
		return nil, nil
	}
	alias := ""
	if inc != nil {
		alias = inc.alias
	}
	if d.o.rising && d.o.key.kind == "" {
		return d.risingKey(inc, value)
	}
	f := &d.o.key
	kind := f.kind
	if kind == "" {
		switch {
		case d.o.val.kind == "avro" && d.o.val.registry.url != "":
			kind, f = "avro", &d.o.val
		case upsert:
			return nil, pgerror.New(pgerror.InvalidObjectDefinition, "ENVELOPE UPSERT needs to know the format of the keys").
				WithHint("Write KEY FORMAT … VALUE FORMAT ….")
		default:
			kind = "bytes"
		}
	}
	d.layout.KeyFormat = kind
	return d.formatKey(f, kind, alias)
}

func (d *discovery) formatKey(f *formatOptions, kind, alias string) ([]column, error) {
	switch kind {
	case "avro":
		text, err := d.schema(f, true)
		if err != nil {
			return nil, err
		}
		d.layout.Key = text
		cols, err := d.avroColumns(text, partKey, "key")
		if err != nil || alias == "" {
			return cols, err
		}
		if len(cols) == 1 {
			cols[0].Name = alias
			return cols, nil
		}
		// A key of several fields under one name is one jsonb value.
		return []column{{sources.Column{Name: alias, Type: types.JSONB}, columnFrom{Part: partKey}}}, nil
	case "csv":
		return d.csvColumns(f, partKey, &d.layout.KeyFields)
	}
	return []column{wholeColumn(kind, partKey, alias)}, nil
}

// risingKey are the key's columns in RisingWave's form: the included one as
// bytes, or the columns of the primary key, decoded as the value is.
func (d *discovery) risingKey(inc *include, value []column) ([]column, error) {
	if inc != nil {
		name := inc.alias
		if name == "" {
			name = "_rw_kafka_key"
		}
		d.layout.KeyFormat = "bytes"
		return []column{wholeColumn("bytes", partKey, name)}, nil
	}
	if d.declared == nil || len(d.declared.KeyNames) == 0 {
		d.layout.KeyFormat = "bytes"
		return []column{wholeColumn("bytes", partKey, "_rw_key")}, nil
	}
	if d.o.val.kind == "avro" {
		cols, err := d.formatKey(&d.o.val, "avro", "")
		if err == nil && len(cols) == 1 && cols[0].from.Field == "" && len(d.declared.KeyNames) == 1 {
			cols[0].Name = d.declared.KeyNames[0]
		}
		d.layout.KeyFormat = "avro"
		return cols, err
	}
	var out []column
	for _, n := range d.declared.KeyNames {
		i := slices.IndexFunc(value, func(c column) bool { return c.Name == n })
		if i < 0 {
			return nil, pgerror.New(pgerror.UndefinedColumn, "column \"%s\" named in key does not exist", n)
		}
		c := value[i]
		c.from = columnFrom{partKey, n}
		out = append(out, c)
	}
	switch {
	case d.o.val.kind == "json":
		d.layout.KeyFormat = "json-or-text"
	case len(out) == 1:
		d.layout.KeyFormat = "text"
		out[0].from.Field = ""
	default:
		return nil, pgerror.New(pgerror.InvalidObjectDefinition, "a key of several columns cannot be read from a record's key in format %s", d.o.val.kind)
	}
	return out, nil
}

// metadata are the columns of the other INCLUDE clauses.
func (d *discovery) metadata() []column {
	var out []column
	for _, inc := range d.o.includes {
		c := column{from: columnFrom{Part: part(inc.kind)}}
		c.Name = inc.kind
		if d.o.rising {
			c.Name = "_rw_kafka_" + strings.TrimSuffix(inc.kind, "s")
		}
		switch inc.kind {
		case "key":
			continue
		case "partition":
			c.Type, c.NotNull = types.Int4, true
			if d.o.rising {
				c.Type = types.Text
			}
		case "offset":
			c.Type, c.NotNull = types.Int8, true
			if d.o.rising {
				c.Type = types.Text
			}
		case "timestamp":
			c.Type, c.NotNull = types.TimestampTZ, true
		case "topic":
			c.Type, c.NotNull = types.Text, true
		case "headers":
			c.Type, c.NotNull = types.JSONB, true
		case "header":
			c.from.Field = inc.header
			c.Type = types.Text
			if inc.bytes || d.o.rising {
				c.Type = types.Bytea
			}
			if c.Name = inc.header; d.o.rising {
				c.Name = "_rw_kafka_header_" + inc.header
			}
		}
		if inc.alias != "" {
			c.Name = inc.alias
		}
		out = append(out, c)
	}
	return out
}

// schema finds the schema of keys or values.
func (d *discovery) schema(f *formatOptions, key bool) (*avroText, error) {
	if f.schema != "" && !(key && f == &d.o.val) {
		return &avroText{Schema: f.schema}, nil
	}
	if f.registry.url == "" {
		return nil, pgerror.New(pgerror.SyntaxError, "FORMAT AVRO needs a schema registry or a schema")
	}
	if d.registry != nil {
		d.registry.Close()
	}
	c, err := f.registry.client()
	if err != nil {
		return nil, err
	}
	d.registry = c
	subject := f.subject(d.o.topic, key)
	ctx, cancel := context.WithTimeout(d.ctx, connectTimeout)
	defer cancel()
	s, err := c.Latest(ctx, subject)
	if err != nil {
		code := pgerror.ConnectionFailure
		hint := ""
		if registry.IsNotFound(err) {
			code, hint = pgerror.UndefinedObject, fmt.Sprintf("Register a schema for subject \"%s\" first.", subject)
			if key {
				hint = fmt.Sprintf("Register a schema for subject \"%s\", or say with KEY FORMAT how keys are written.", subject)
			}
		}
		e := pgerror.New(code, "%s", err)
		if hint != "" {
			e = e.WithHint("%s", hint)
		}
		return nil, e
	}
	refs, err := c.AvroReferences(ctx, s)
	if err != nil {
		return nil, pgerror.New(pgerror.ConnectionFailure, "%s", err)
	}
	return &avroText{Schema: s.Text, Refs: refs}, nil
}

// subject is the registry's name for the schema of a topic's keys or values.
func (f *formatOptions) subject(topic string, key bool) string {
	suffix := "-value"
	if key {
		suffix = "-key"
	}
	switch f.strategy {
	case "record_name_strategy":
		return f.message
	case "topic_record_name_strategy":
		return topic + "-" + f.message
	}
	return topic + suffix
}
