package parser

import "strings"

// createSource parses what follows CREATE SOURCE, or CREATE TABLE with a
// connector when the columns have been read already.
func (s *stream) createSource(h createHead, table bool) Node {
	n := &CreateSource{Table: table, OrReplace: h.orReplace, Temp: h.temp}
	n.IfNotExists = s.ifNotExists()
	n.Name = s.name()
	if s.isOp("(") {
		s.sourceColumns(n)
	}
	if s.accept("in", "cluster") {
		n.Cluster = s.ident()
	}
	if s.accept("from") {
		s.sourceFrom(n)
	}
	s.sourceClauses(n)
	if n.Kind == 0 && s.err == nil {
		s.unexpected()
	}
	return n
}

// sourceColumns reads the declared columns: either definitions or bare names.
func (s *stream) sourceColumns(n *CreateSource) {
	d := s.tableElements()
	n.Columns, n.Constraints, n.Watermarks, n.Wildcard = d.columns, d.constraints, d.watermarks, d.wildcard
}

func (s *stream) sourceFrom(n *CreateSource) {
	switch {
	case s.accept("kafka"):
		n.Kind = SourceKafka
		s.kafkaFrom(n)
	case s.accept("postgres"):
		n.Kind = SourcePostgres
		s.expect("connection")
		s.connectionAndOptions(n)
		if s.accept("publication") {
			n.Options = append(n.Options, Option{Name: "publication", Value: Value{Kind: ValueString, Text: s.str()}})
		}
	case s.accept("load", "generator"):
		n.Kind = SourceLoadGenerator
		words := []string{s.label()}
		for s.peek().kind == tokWord && (!s.sourceClauseStarts() || s.is("value") && words[0] == "key") {
			words = append(words, s.advance().val)
		}
		n.Generator = strings.Join(words, " ")
		if s.isOp("(") {
			n.Options = s.options()
		}
	case s.accept("webhook"):
		n.Kind = SourceWebhook
		s.expect("body", "format")
		n.BodyFormat = s.label()
		s.accept("array")
	case s.accept("file"):
		n.Kind = SourceFile
		n.Options = []Option{{Name: "path", Value: s.value()}}
	default:
		s.unexpected()
	}
}

// kafkaFrom reads the short form `BROKER 'b' TOPIC 't'` or `CONNECTION c (…)`.
func (s *stream) kafkaFrom(n *CreateSource) {
	if s.accept("connection") {
		s.connectionAndOptions(n)
		return
	}
	if s.acceptOne("broker", "brokers", "bootstrap") == "" {
		s.unexpected()
	}
	s.acceptOp("=")
	n.Broker = s.str()
	s.acceptOp(",")
	s.expect("topic")
	s.acceptOp("=")
	n.Topic = s.str()
}

func (s *stream) connectionAndOptions(n *CreateSource) {
	if s.peek().kind == tokString {
		n.Options = []Option{{Name: "connection string", Value: s.value()}}
	} else {
		c := s.name()
		n.Connection = &c
	}
	if s.isOp("(") {
		n.Options = append(n.Options, s.options()...)
	}
}

var sourceClauseWords = []string{
	"key", "value", "format", "include", "envelope", "expose", "for", "with", "in", "append", "on", "check",
}

func (s *stream) sourceClauseStarts() bool {
	for _, w := range sourceClauseWords {
		if s.is(w) {
			return true
		}
	}
	return false
}

// sourceClauses reads the clauses of all dialects, in any order.
func (s *stream) sourceClauses(n *CreateSource) {
	for s.err == nil && !s.eof() {
		switch {
		case s.accept("key", "format"):
			n.KeyFormat = s.format()
		case s.accept("value", "format"):
			n.Format = s.format()
		case s.is("format") && s.toks[min(s.i+2, len(s.toks)-1)].val == "encode":
			n.FormatEncode = s.formatEncode()
		case s.accept("format"):
			n.Format = s.format()
		case s.is("include"):
			n.Includes = append(n.Includes, s.includes()...)
		case s.accept("envelope"):
			n.Envelope = s.envelope()
		case s.accept("expose", "progress", "as"):
			e := s.name()
			n.Expose = &e
		case s.is("for"):
			s.externalTables(n)
		case s.accept("in", "cluster"):
			n.Cluster = s.ident()
		case s.accept("append", "only"):
			n.AppendOnly = true
		case s.is("on", "conflict"):
			n.OnConflict, n.Version = s.tableOnConflict()
		case s.accept("check"):
			e := s.webhookCheck()
			n.Check = &e
		case s.isWith():
			n.With = append(n.With, s.withOptions()...)
			if n.Kind == 0 && findOption(n.With, "connector") != nil {
				n.Kind = SourceConnector
			}
		default:
			s.unexpected()
		}
	}
}

// webhookCheck is `([WITH (HEADERS, BODY, …)] expr)`.
func (s *stream) webhookCheck() Expr {
	s.expectOp("(")
	s.withOptions()
	e := s.exprUntil(s.closing())
	s.expectOp(")")
	return e
}

// findOption is the option of that name, or nil.
func findOption(opts []Option, name string) *Option {
	for i := range opts {
		if opts[i].Name == name {
			return &opts[i]
		}
	}
	return nil
}

// externalTables is FOR ALL TABLES | FOR TABLES (…) | FOR SCHEMAS (…).
func (s *stream) externalTables(n *CreateSource) {
	switch {
	case s.accept("for", "all", "tables"):
		n.ForAllTables = true
	case s.accept("for", "tables"):
		n.ForTables = s.externalTableList()
	case s.accept("for", "schemas"):
		n.ForSchemas = s.columnNames()
	default:
		s.unexpected()
	}
}

func (s *stream) externalTableList() []ExternalTable {
	var out []ExternalTable
	s.expectOp("(")
	for s.err == nil {
		t := ExternalTable{Name: s.name()}
		if s.acceptOne("as", "into") != "" {
			a := s.name()
			t.Alias = &a
		}
		out = append(out, t)
		if !s.acceptOp(",") {
			break
		}
	}
	s.expectOp(")")
	return out
}

// format reads what follows FORMAT in Materialize's spelling.
func (s *stream) format() *FormatSpec {
	f := &FormatSpec{Kind: s.label()}
	switch f.Kind {
	case "avro", "protobuf":
		s.registryFormat(f)
	case "json":
		f.Array = s.accept("array")
	case "regex":
		f.Pattern = s.str()
	case "csv":
		s.csvFormat(f)
	case "text", "bytes":
	default:
		s.i--
		s.unexpected()
	}
	return f
}

func (s *stream) registryFormat(f *FormatSpec) {
	if f.Kind == "protobuf" && s.accept("message") {
		f.Message = s.str()
	}
	s.expect("using")
	switch {
	case s.accept("schema"):
		s.accept("registry")
		f.InlineSchema = s.str()
	case s.accept("confluent", "schema", "registry"):
		if s.accept("connection") {
			c := s.name()
			f.RegistryConnection = &c
		} else {
			f.RegistryURL = s.str()
		}
	default:
		s.unexpected()
	}
	if s.isOp("(") {
		f.RegistryOptions = s.options()
	}
	if s.isWith() {
		f.RegistryOptions = append(f.RegistryOptions, s.withOptions()...)
	}
	for s.accept("key") || s.accept("value") { // [KEY|VALUE] STRATEGY 'x' of old
		s.expect("strategy")
		f.RegistryOptions = append(f.RegistryOptions, Option{Name: "strategy", Value: s.value()})
	}
}

func (s *stream) csvFormat(f *FormatSpec) {
	s.expect("with")
	if s.accept("header") {
		f.Header = true
		if s.isOp("(") {
			f.HeaderNames = s.columnNames()
		}
	} else {
		f.Columns = int(s.integer())
		s.expect("columns")
	}
	if s.accept("delimited") {
		s.accept("by")
		f.Delimiter = s.str()
	}
}

// formatEncode is RisingWave's FORMAT f ENCODE e (…) [KEY ENCODE k (…)].
func (s *stream) formatEncode() *FormatEncode {
	s.expect("format")
	f := &FormatEncode{Format: s.label()}
	s.expect("encode")
	f.Encode = s.label()
	if s.isOp("(") {
		f.Options = s.options()
	}
	if s.accept("key", "encode") {
		f.KeyEncode = s.label()
		if s.isOp("(") {
			f.KeyOptions = s.options()
		}
	}
	return f
}

// includes is INCLUDE item [AS name], … or one INCLUDE an item.
func (s *stream) includes() []Include {
	var out []Include
	s.expect("include")
	for s.err == nil {
		out = append(out, s.include())
		if !s.acceptOp(",") {
			break
		}
	}
	return out
}

func (s *stream) include() Include {
	inc := Include{Pos: s.pos(), Kind: s.label()}
	switch inc.Kind {
	case "header":
		if s.peek().kind == tokString {
			inc.Header = s.str()
		}
	case "all": // INCLUDE ALL HEADERS of old spellings
		inc.Kind = s.label()
	}
	if s.isIdent() && !s.is("as") && !s.is("bytes") && !s.sourceClauseStarts() {
		t := s.typeUntil(s.i + 1)
		inc.Type = &t
	}
	if s.accept("as") {
		inc.Alias = s.label()
	}
	if s.accept("bytes") {
		inc.Bytes = true
	}
	return inc
}

// envelope reads what follows ENVELOPE.
func (s *stream) envelope() *Envelope {
	e := &Envelope{Kind: s.label()}
	switch e.Kind {
	case "none", "upsert", "debezium", "materialize":
	default:
		s.i--
		s.unexpected()
	}
	if s.isOp("(") {
		e.Options = s.options()
	}
	return e
}
