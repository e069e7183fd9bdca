package coord

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
	"github.com/streamdb/streamdb/storage"
)

// storeSecrets writes the values of new secrets, encrypted, before the catalog
// can refer to them.
func (c *Coordinator) storeSecrets(d *ddlState) error {
	if len(d.secrets) == 0 {
		return nil
	}
	b := &storage.Batch{}
	for id, v := range d.secrets {
		b.PutSecret(uint64(id), v)
	}
	return c.store.Commit(b)
}

func (s *Session) createSecret(d *ddlState, p *prepared, n *parser.CreateSecret, w pgwire.ResultWriter) error {
	schema, exists, err := s.target(d, catalog.KindSecret, n.Name)
	if err != nil {
		return err
	}
	if skip, err := taken(exists, n.IfNotExists, w); skip || err != nil {
		return err
	}
	v, err := s.secretValue(p, &n.Value)
	if err != nil {
		return err
	}
	o, err := s.c.newObject(&catalog.Object{Schema: schema, Name: n.Name.Name, Kind: catalog.KindSecret})
	if err != nil {
		return err
	}
	d.secrets[o.ID] = v
	d.apply(catalog.Change{Put: o})
	return nil
}

func (s *Session) secretValue(p *prepared, x *parser.Expr) ([]byte, error) {
	e, err := planner.BindExpr(s.bindContext(nil), p.stmt.Text, x, nil, "secrets", types.Unknown)
	if err != nil {
		return nil, err
	}
	c, err := expr.EvalConst(e, s.exprContext())
	if err != nil {
		return nil, err
	}
	if c.Val.Kind() != columnar.KindBytes || c.Val.Null(0) {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "a secret must be text or bytea")
	}
	return slices.Clone(c.Val.Bytes(0)), nil
}

// optionText is an option's value as it is stored: a literal, or a reference to
// a secret.
func (s *Session) optionText(d *ddlState, o parser.Option) (string, *catalog.Object, error) {
	switch o.Value.Kind {
	case parser.ValueSecret:
		n := o.Value.Name
		sec := d.cat.Resolve(catalog.KindSecret, n.Schema, n.Name, s.searchPath())
		if sec == nil {
			return "", nil, pgerror.New(pgerror.UndefinedObject, "secret \"%s\" does not exist", n.Name).At(o.Pos)
		}
		return secretRef + sec.Schema + "\x00" + sec.Name, sec, nil
	case parser.ValueNone:
		return literalRef + "true", nil, nil
	case parser.ValueList, parser.ValueMap:
		parts := make([]string, len(o.Value.List))
		for i, v := range o.Value.List {
			parts[i] = v.Text
		}
		return literalRef + strings.Join(parts, ","), nil, nil
	}
	return literalRef + o.Value.Text, nil, nil
}

// addOptions stores options in an object and notes the secrets they use.
func (s *Session) addOptions(d *ddlState, o *catalog.Object, opts []parser.Option) error {
	for _, x := range opts {
		v, sec, err := s.optionText(d, x)
		if err != nil {
			return err
		}
		if _, dup := o.Options[x.Name]; dup {
			return pgerror.New(pgerror.SyntaxError, "option \"%s\" is given more than once", x.Name).At(x.Pos)
		}
		o.Options[x.Name] = v
		if sec != nil && !slices.Contains(o.Deps, sec.ID) {
			o.Deps = append(o.Deps, sec.ID)
		}
	}
	return nil
}

func (s *Session) createConnection(d *ddlState, n *parser.CreateConnection, w pgwire.ResultWriter) error {
	schema, exists, err := s.target(d, catalog.KindConnection, n.Name)
	if err != nil {
		return err
	}
	if skip, err := taken(exists, n.IfNotExists, w); skip || err != nil {
		return err
	}
	switch n.Kind {
	case "kafka", "confluent schema registry", "postgres":
	default:
		return pgerror.Unsupported("CONNECTION TO " + strings.ToUpper(n.Kind))
	}
	o := &catalog.Object{Schema: schema, Name: n.Name.Name, Kind: catalog.KindConnection, Options: map[string]string{"connector": n.Kind}}
	opts := renamedOptions(slices.DeleteFunc(slices.Clone(n.Options), func(x parser.Option) bool { return x.Name == "type" }))
	if err := s.addOptions(d, o, opts); err != nil {
		return err
	}
	if s.c.opts.Check != nil {
		opts, err := s.c.resolveOptionsWith(d, o.Options)
		if err != nil {
			return err
		}
		delete(opts, "connector")
		if err := s.c.opts.Check(n.Kind, opts); err != nil {
			return err
		}
	}
	o.SQL = parser.Print(n)
	if o, err = s.c.newObject(o); err != nil {
		return err
	}
	d.apply(catalog.Change{Put: o})
	return nil
}

// connection finds a connection of one of the kinds.
func (s *Session) connection(d *ddlState, n *parser.Name, kind string) (*catalog.Object, error) {
	o := d.cat.Resolve(catalog.KindConnection, n.Schema, n.Name, s.searchPath())
	if o == nil {
		return nil, pgerror.New(pgerror.UndefinedObject, "connection \"%s\" does not exist", n.Name).At(n.Pos)
	}
	if o.Options["connector"] != kind {
		return nil, pgerror.New(pgerror.WrongObjectType, "connection \"%s\" is not a %s connection", n.Name, kind).At(n.Pos)
	}
	return o, nil
}

// inherit copies a connection's options into a source's under a prefix.
func inherit(o *catalog.Object, prefix string, conn *catalog.Object) {
	for k, v := range conn.Options {
		if k != "connector" {
			o.Options[prefix+k] = v
		}
	}
	o.Deps = append(o.Deps, conn.ID)
	for _, dep := range conn.Deps {
		if !slices.Contains(o.Deps, dep) {
			o.Deps = append(o.Deps, dep)
		}
	}
}

// sourceObject collects what a CREATE SOURCE says, in any spelling, into the
// options that connectors read:
//
//	connector                    kafka | postgres | load generator
//	broker, topic, …             as written, of the connection too
//	registry.url, registry.…     the schema registry
//	format, key.format           avro | json | text | bytes | csv
//	format.…                     what the format was given
//	include                      a line for each INCLUDE: kind, header, alias and
//	                             bytes, separated by tabs
//	dialect                      risingwave for its WITH (connector = …)
//	props.…                      what the connector found (sources.Table.Props)
//	envelope                     none | upsert | debezium
//	tables                       local=upstream,… of multi-table sources
func (s *Session) sourceObject(d *ddlState, p *prepared, n *parser.CreateSource, schema string) (*catalog.Object, error) {
	o := &catalog.Object{Schema: schema, Name: n.Name.Name, Kind: catalog.KindSource, Options: map[string]string{}}
	var err error
	switch n.Kind {
	case parser.SourceKafka:
		err = s.kafkaOptions(d, n, o)
	case parser.SourcePostgres:
		err = s.postgresOptions(d, n, o)
	case parser.SourceLoadGenerator:
		o.Options["connector"] = "load generator"
		o.Options["generator"] = literalRef + n.Generator
		err = s.addOptions(d, o, n.Options)
	case parser.SourceConnector:
		err = s.connectorOptions(d, n, o)
	default:
		err = pgerror.Unsupported("this kind of source")
	}
	if err != nil {
		return nil, err
	}
	includeOption(n, o)
	if n.Envelope != nil {
		o.Options["envelope"] = literalRef + n.Envelope.Kind
	}
	if len(n.Watermarks) > 0 {
		return nil, pgerror.Unsupported("WATERMARK")
	}
	_ = p
	return o, nil
}

// includeOption stores the INCLUDE clauses, in their order.
func includeOption(n *parser.CreateSource, o *catalog.Object) {
	var lines []string
	for _, inc := range n.Includes {
		bytes := ""
		if inc.Bytes || inc.Type != nil && strings.EqualFold(inc.Type.SQL, "bytea") {
			bytes = "bytes"
		}
		lines = append(lines, strings.Join([]string{inc.Kind, inc.Header, inc.Alias, bytes}, "\t"))
	}
	if len(lines) > 0 {
		o.Options["include"] = literalRef + strings.Join(lines, "\n")
	}
}

func (s *Session) kafkaOptions(d *ddlState, n *parser.CreateSource, o *catalog.Object) error {
	o.Options["connector"] = "kafka"
	if n.Connection != nil {
		conn, err := s.connection(d, n.Connection, "kafka")
		if err != nil {
			return err
		}
		inherit(o, "", conn)
	} else {
		o.Options["broker"] = literalRef + n.Broker
		o.Options["topic"] = literalRef + n.Topic
	}
	if err := s.addOptions(d, o, n.Options); err != nil {
		return err
	}
	if o.Options["topic"] == "" {
		return pgerror.New(pgerror.SyntaxError, "a Kafka source needs a TOPIC")
	}
	if err := s.formatOptions(d, o, "key.", n.KeyFormat); err != nil {
		return err
	}
	if err := s.formatOptions(d, o, "", n.Format); err != nil {
		return err
	}
	for _, x := range n.With {
		if x.Name != "size" {
			return s.addOptions(d, o, n.With)
		}
	}
	return nil
}

func (s *Session) formatOptions(d *ddlState, o *catalog.Object, prefix string, f *parser.FormatSpec) error {
	if f == nil {
		return nil
	}
	set := func(k, v string) {
		if v != "" {
			o.Options[prefix+k] = literalRef + v
		}
	}
	set("format", f.Kind)
	set("format.schema", f.InlineSchema)
	set("format.message", f.Message)
	set("format.pattern", f.Pattern)
	set("format.delimiter", f.Delimiter)
	if f.Columns > 0 {
		set("format.columns", fmt.Sprint(f.Columns))
	}
	if f.Header {
		set("format.header", "true")
		set("format.header names", strings.Join(f.HeaderNames, ","))
	}
	set("registry.url", f.RegistryURL)
	if f.RegistryConnection != nil {
		conn, err := s.connection(d, f.RegistryConnection, "confluent schema registry")
		if err != nil {
			return err
		}
		inherit(o, prefix+"registry.", conn)
	}
	for _, x := range append(slices.Clone(f.RegistryOptions), f.Options...) {
		v, _, err := s.optionText(d, x)
		if err != nil {
			return err
		}
		o.Options[prefix+"registry."+x.Name] = v
	}
	return nil
}

func (s *Session) postgresOptions(d *ddlState, n *parser.CreateSource, o *catalog.Object) error {
	o.Options["connector"] = "postgres"
	if n.Connection == nil {
		return pgerror.New(pgerror.SyntaxError, "a Postgres source needs a CONNECTION")
	}
	conn, err := s.connection(d, n.Connection, "postgres")
	if err != nil {
		return err
	}
	inherit(o, "", conn)
	if err := s.addOptions(d, o, n.Options); err != nil {
		return err
	}
	if o.Options["publication"] == "" {
		return pgerror.New(pgerror.SyntaxError, "a Postgres source needs a PUBLICATION")
	}
	switch {
	case n.ForAllTables:
		o.Options["for all tables"] = literalRef + "true"
	case len(n.ForSchemas) > 0:
		o.Options["for schemas"] = literalRef + strings.Join(n.ForSchemas, ",")
	case len(n.ForTables) > 0:
		var ts []string
		for _, t := range n.ForTables {
			sch := t.Name.Schema
			if sch == "" {
				sch = "public"
			}
			ts = append(ts, sch+"."+t.Name.Name)
		}
		o.Options["tables"] = literalRef + strings.Join(ts, ",")
	default:
		return pgerror.New(pgerror.SyntaxError, "a Postgres source needs FOR ALL TABLES, FOR SCHEMAS or FOR TABLES")
	}
	return nil
}

// risingWaveOptions are our names of options that RisingWave calls otherwise.
var risingWaveOptions = map[string]string{
	"properties.bootstrap.server":    "broker",
	"properties.bootstrap.servers":   "broker",
	"kafka.brokers":                  "broker",
	"kafka.topic":                    "topic",
	"scan.startup.mode":              "start mode",
	"scan.startup.timestamp.millis":  "start timestamp",
	"scan.startup.timestamp_millis":  "start timestamp",
	"properties.sasl.mechanism":      "sasl mechanisms",
	"properties.sasl.username":       "sasl username",
	"properties.sasl.password":       "sasl password",
	"properties.security.protocol":   "security protocol",
	"properties.client.id":           "client id",
	"properties.group.id":            "group id",
	"group.id.prefix":                "group id prefix",
	"properties.ssl.ca.pem":          "ssl certificate authority",
	"properties.ssl.certificate.pem": "ssl certificate",
	"properties.ssl.key.pem":         "ssl key",
}

// renamedOptions gives options our names.
func renamedOptions(with []parser.Option) []parser.Option {
	out := slices.Clone(with)
	for i := range out {
		if r, ok := risingWaveOptions[out[i].Name]; ok {
			out[i].Name = r
		}
	}
	return out
}

// connectorOptions reads RisingWave's WITH (connector = …) FORMAT … ENCODE ….
func (s *Session) connectorOptions(d *ddlState, n *parser.CreateSource, o *catalog.Object) error {
	opts := renamedOptions(n.With)
	if i := slices.IndexFunc(opts, func(x parser.Option) bool { return x.Name == "connection" }); i >= 0 {
		conn, err := s.connection(d, &opts[i].Value.Name, "kafka")
		if err != nil {
			return err
		}
		inherit(o, "", conn)
		opts = slices.Delete(opts, i, i+1)
	}
	if err := s.addOptions(d, o, opts); err != nil {
		return err
	}
	conn := strings.TrimPrefix(o.Options["connector"], literalRef)
	o.Options["connector"] = conn
	switch conn {
	case "kafka":
	case "nexmark", "datagen":
		o.Options["connector"] = "load generator"
		o.Options["generator"] = literalRef + conn
		for k := range o.Options {
			if rest, ok := strings.CutPrefix(k, "nexmark."); ok {
				v := o.Options[k]
				delete(o.Options, k)
				o.Options[strings.ReplaceAll(rest, ".", " ")] = v
			}
		}
	default:
		return pgerror.Unsupported("connector '" + conn + "'")
	}
	o.Options["dialect"] = literalRef + "risingwave"
	f := n.FormatEncode
	if f == nil {
		return nil
	}
	if f.KeyEncode != "" {
		o.Options["key.format"] = literalRef + f.KeyEncode
	}
	switch f.Format {
	case "plain", "":
		o.Options["envelope"] = literalRef + "none"
	case "upsert", "debezium":
		o.Options["envelope"] = literalRef + f.Format
	default:
		return pgerror.Unsupported("FORMAT " + strings.ToUpper(f.Format))
	}
	o.Options["format"] = literalRef + f.Encode
	for _, x := range f.Options {
		v, _, err := s.optionText(d, x)
		if err != nil {
			return err
		}
		switch x.Name {
		case "schema.registry":
			o.Options["registry.url"] = v
		case "schema.registry.username":
			o.Options["registry.username"] = v
		case "schema.registry.password":
			o.Options["registry.password"] = v
		case "without_header":
			if v == literalRef+"false" {
				o.Options["format.header"] = literalRef + "true"
			}
		default:
			o.Options["format."+x.Name] = v
		}
	}
	return nil
}

// createSource runs CREATE SOURCE: the connector is asked for the columns (it
// may look into the registry or the upstream database), and the objects for
// its relations and its errors are made.
func (s *Session) createSource(ctx context.Context, d *ddlState, p *prepared, n *parser.CreateSource, w pgwire.ResultWriter) error {
	schema, exists, err := s.target(d, catalog.KindSource, n.Name)
	if err != nil {
		return err
	}
	if exists == nil || !n.OrReplace {
		if skip, err := taken(exists, n.IfNotExists, w); skip || err != nil {
			return err
		}
	}
	if n.Version != nil {
		return pgerror.Unsupported("WITH VERSION COLUMN of a source")
	}
	if s.c.opts.Sources == nil {
		return pgerror.Unsupported("sources in this build")
	}
	o, err := s.sourceObject(d, p, n, schema)
	if err != nil {
		return err
	}
	declared, err := s.declaredTable(p, n)
	if err != nil {
		return err
	}
	if exists != nil {
		if err := s.dropAll(d, false, []*catalog.Object{exists}, nil, "", w); err != nil {
			return err
		}
	}
	if o, err = s.c.newObject(o); err != nil {
		return err
	}
	opts, err := s.c.resolveOptionsWith(d, o.Options)
	if err != nil {
		return err
	}
	cfg := sources.Config{Name: o.Name, ID: uint64(o.ID), Options: opts, Declared: declared}
	src, err := s.c.opts.Sources(ctx, o.Options["connector"], cfg)
	if err != nil {
		return err
	}
	tables := src.Tables()
	if err := src.Close(); err != nil {
		return err
	}
	o.SQL = parser.Print(n)
	return s.putSource(d, n, o, tables)
}

// resolveOptionsWith is resolveOptions for a transaction that may itself have
// made the secrets.
func (c *Coordinator) resolveOptionsWith(d *ddlState, opts map[string]string) (map[string]string, error) {
	if err := c.storeSecrets(d); err != nil {
		return nil, err
	}
	clear(d.secrets)
	return c.resolveOptions(d.cat, opts)
}

// declaredTable is the columns that CREATE SOURCE declares, nil if none.
func (s *Session) declaredTable(p *prepared, n *parser.CreateSource) (*sources.Table, error) {
	if len(n.Columns) == 0 && len(n.Constraints) == 0 {
		return nil, nil
	}
	o := &catalog.Object{Name: n.Name.Name}
	t := &sources.Table{}
	constraints := slices.Clone(n.Constraints)
	for i := range n.Columns {
		def := &n.Columns[i]
		col := catalog.Column{Name: def.Name, Type: types.Unknown}
		if def.Type.Node != nil {
			var err error
			if col, err = s.column(p.stmt.Text, n.Name.Name, def); err != nil {
				return nil, err
			}
			if col.Generated != "" || col.Default != "" || def.Generated != nil || def.Default != nil {
				return nil, pgerror.Unsupported("a computed column of a source").WithHint("Compute it in a view over the source.").At(def.Pos)
			}
		}
		if def.PrimaryKey {
			constraints = append(constraints, parser.Constraint{Kind: parser.ConstraintPrimaryKey, Columns: []string{def.Name}, Pos: def.Pos})
		}
		o.Columns = append(o.Columns, col)
	}
	included := map[string]bool{"_rw_key": true}
	for _, inc := range n.Includes {
		included[inc.Alias] = true
		included["_rw_kafka_"+inc.Kind] = true
	}
	for i := range constraints {
		c := &constraints[i]
		if c.Kind != parser.ConstraintPrimaryKey {
			return nil, pgerror.Unsupported("this constraint on a source")
		}
		for _, name := range c.Columns {
			k := slices.IndexFunc(o.Columns, func(x catalog.Column) bool { return x.Name == name })
			if k < 0 {
				if len(o.Columns) > 0 && !included[name] {
					return nil, pgerror.New(pgerror.UndefinedColumn, "column \"%s\" named in key does not exist", name).At(c.Pos)
				}
				t.KeyNames = append(t.KeyNames, name)
				continue
			}
			t.Key = append(t.Key, k)
			t.KeyNames = append(t.KeyNames, name)
		}
	}
	for _, c := range o.Columns {
		t.Columns = append(t.Columns, sources.Column{Name: c.Name, Type: c.Type, NotNull: c.NotNull})
	}
	return t, nil
}

// putSource adds the objects of a source: itself with its columns if it yields
// one table, else one object a table, and the error relation.
func (s *Session) putSource(d *ddlState, n *parser.CreateSource, o *catalog.Object, tables []sources.Table) error {
	if len(tables) == 0 {
		return pgerror.New(pgerror.InvalidObjectDefinition, "the source yields no tables").
			WithHint("Check that the publication has tables.")
	}
	alias := map[string]parser.Name{}
	for _, t := range n.ForTables {
		if t.Alias != nil {
			sch := t.Name.Schema
			if sch == "" {
				sch = "public"
			}
			alias[sch+"."+t.Name.Name] = *t.Alias
		}
	}
	single := len(tables) == 1 && tables[0].Name == ""
	if single {
		describeTable(o, &tables[0])
		d.apply(catalog.Change{Put: o})
	} else {
		d.apply(catalog.Change{Put: o})
		for i := range tables {
			if err := s.putSubsource(d, o, &tables[i], alias[tables[i].Name]); err != nil {
				return err
			}
		}
	}
	errs := &catalog.Object{Schema: o.Schema, Name: o.Name + "_errors", Kind: catalog.KindSource, Columns: errorColumns, AppendOnly: true,
		Options: map[string]string{"role": "errors", "envelope": "append"}, Parent: o.ID, Deps: []plan.ObjectID{o.ID}}
	for i := 1; d.cat.Get(catalog.KindSource, errs.Schema, errs.Name) != nil; i++ {
		errs.Name = fmt.Sprintf("%s_errors%d", o.Name, i)
	}
	errs, err := s.c.newObject(errs)
	if err == nil {
		d.apply(catalog.Change{Put: errs})
	}
	return err
}

func describeTable(o *catalog.Object, t *sources.Table) {
	for _, c := range t.Columns {
		o.Columns = append(o.Columns, catalog.Column{Name: c.Name, Type: c.Type, NotNull: c.NotNull})
	}
	o.PrimaryKey = t.Key
	o.AppendOnly = t.Envelope == sources.EnvelopeAppend
	o.Options["envelope"] = envelopeName(t.Envelope)
	o.Options["upstream"] = t.Name
	for k, v := range t.Props {
		o.Options["props."+k] = literalRef + v
	}
}

func (s *Session) putSubsource(d *ddlState, o *catalog.Object, t *sources.Table, alias parser.Name) error {
	sub := &catalog.Object{Schema: o.Schema, Kind: catalog.KindSource, Parent: o.ID, Deps: []plan.ObjectID{o.ID}, Options: map[string]string{"role": "subsource"}}
	_, sub.Name, _ = strings.Cut(t.Name, ".")
	if sub.Name == "" {
		sub.Name = t.Name
	}
	if alias.Name != "" {
		sub.Name = alias.Name
		if alias.Schema != "" {
			sub.Schema = alias.Schema
		}
	}
	if e := d.cat.Get(catalog.KindSource, sub.Schema, sub.Name); e != nil {
		return pgerror.New(pgerror.DuplicateTable, "relation \"%s\" already exists", sub.Name).
			WithHint("Name the table with AS in FOR TABLES (%s AS …).", t.Name)
	}
	describeTable(sub, t)
	sub.SQL = fmt.Sprintf("CREATE SUBSOURCE %s.%s OF SOURCE %s.%s (REFERENCE %s)", quoteName(sub.Schema), quoteName(sub.Name), quoteName(o.Schema), quoteName(o.Name), t.Name)
	sub, err := s.c.newObject(sub)
	if err == nil {
		d.apply(catalog.Change{Put: sub})
	}
	return err
}

// validateConnection tries a connection.
func (s *Session) validateConnection(ctx context.Context, n *parser.ValidateConnection) error {
	cat := s.snapshot()
	o := cat.Resolve(catalog.KindConnection, n.Name.Schema, n.Name.Name, s.searchPath())
	if o == nil {
		return pgerror.New(pgerror.UndefinedObject, "connection \"%s\" does not exist", n.Name.Name).At(n.Name.Pos)
	}
	opts, err := s.c.resolveOptions(cat, o.Options)
	if err != nil {
		return err
	}
	if s.c.opts.Validate == nil {
		return pgerror.Unsupported("VALIDATE CONNECTION in this build")
	}
	return s.c.opts.Validate(ctx, o.Options["connector"], opts)
}
