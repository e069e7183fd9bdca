package parser

import (
	"strconv"
	"strings"
)

func (w *printer) createSource(n *CreateSource) {
	w.put("CREATE")
	w.when(n.OrReplace, "OR REPLACE")
	w.when(n.Temp, "TEMP")
	if n.Table {
		w.put("TABLE")
	} else {
		w.put("SOURCE")
	}
	w.when(n.IfNotExists, "IF NOT EXISTS")
	w.name(n.Name)
	if el := elementTexts(n.Columns, n.Constraints, nil, n.Watermarks, n.Wildcard); len(el) > 0 {
		w.put("(" + strings.Join(el, ", ") + ")")
	}
	w.clause("IN CLUSTER", QuoteIdent(n.Cluster), n.Cluster != "")
	w.sourceFrom(n)
	w.when(n.AppendOnly, "APPEND ONLY")
	w.onConflict(n.OnConflict, n.Version)
	w.formats(n.KeyFormat, n.Format)
	w.includes(n.Includes)
	w.envelope(n.Envelope)
	switch {
	case n.ForAllTables:
		w.put("FOR ALL TABLES")
	case len(n.ForTables) > 0:
		parts := make([]string, len(n.ForTables))
		for i, t := range n.ForTables {
			parts[i] = t.Name.String()
			if t.Alias != nil {
				parts[i] += " AS " + t.Alias.String()
			}
		}
		w.put("FOR TABLES", "("+strings.Join(parts, ", ")+")")
	case len(n.ForSchemas) > 0:
		w.put("FOR SCHEMAS", identList(n.ForSchemas))
	}
	if n.Expose != nil {
		w.put("EXPOSE PROGRESS AS", n.Expose.String())
	}
	if n.Check != nil {
		w.put("CHECK", "("+n.Check.SQL+")")
	}
	w.with(n.With)
	w.formatEncode(n.FormatEncode)
}

func (w *printer) sourceFrom(n *CreateSource) {
	switch n.Kind {
	case SourceKafka:
		w.put("FROM KAFKA")
		if n.Connection == nil {
			w.put("BROKER", QuoteString(n.Broker), "TOPIC", QuoteString(n.Topic))
			return
		}
		w.put("CONNECTION", n.Connection.String())
		w.options(n.Options)
	case SourcePostgres:
		w.put("FROM POSTGRES CONNECTION")
		opts := n.Options
		if n.Connection == nil && len(opts) > 0 && opts[0].Name == "connection string" {
			w.put(opts[0].Value.String())
			opts = opts[1:]
		} else if n.Connection != nil {
			w.name(*n.Connection)
		}
		w.options(opts)
	case SourceLoadGenerator:
		w.put("FROM LOAD GENERATOR", strings.ToUpper(n.Generator))
		w.options(n.Options)
	case SourceWebhook:
		w.put("FROM WEBHOOK BODY FORMAT", strings.ToUpper(n.BodyFormat))
	case SourceFile:
		w.put("FROM FILE", n.Options[0].Value.String())
	}
}

func (w *printer) formats(key, value *FormatSpec) {
	if key != nil {
		w.put("KEY FORMAT")
		w.format(key)
		if value != nil {
			w.put("VALUE")
		}
	}
	if value != nil {
		w.put("FORMAT")
		w.format(value)
	}
}

func (w *printer) format(f *FormatSpec) {
	w.put(strings.ToUpper(f.Kind))
	switch f.Kind {
	case "avro", "protobuf":
		w.clause("MESSAGE", QuoteString(f.Message), f.Message != "")
		w.put("USING")
		switch {
		case f.RegistryConnection != nil:
			w.put("CONFLUENT SCHEMA REGISTRY CONNECTION", f.RegistryConnection.String())
		case f.InlineSchema != "":
			w.put("SCHEMA", QuoteString(f.InlineSchema))
		default:
			w.put("CONFLUENT SCHEMA REGISTRY", QuoteString(f.RegistryURL))
		}
		w.options(f.RegistryOptions)
	case "json":
		w.when(f.Array, "ARRAY")
	case "regex":
		w.put(QuoteString(f.Pattern))
	case "csv":
		w.put("WITH")
		if f.Header {
			w.put("HEADER")
			w.columnNames(f.HeaderNames)
		} else {
			w.put(strconv.Itoa(f.Columns), "COLUMNS")
		}
		w.clause("DELIMITED BY", QuoteString(f.Delimiter), f.Delimiter != "")
	}
}

func (w *printer) includes(list []Include) {
	for _, inc := range list {
		w.put("INCLUDE", strings.ToUpper(inc.Kind))
		w.clause("", QuoteString(inc.Header), inc.Header != "")
		if inc.Type != nil {
			w.put(inc.Type.SQL)
		}
		w.clause("AS", QuoteIdent(inc.Alias), inc.Alias != "")
		w.when(inc.Bytes, "BYTES")
	}
}

func (w *printer) envelope(e *Envelope) {
	if e != nil {
		w.put("ENVELOPE", strings.ToUpper(e.Kind))
		w.options(e.Options)
	}
}

func (w *printer) formatEncode(f *FormatEncode) {
	if f == nil {
		return
	}
	w.put("FORMAT", strings.ToUpper(f.Format), "ENCODE", strings.ToUpper(f.Encode))
	w.options(f.Options)
	if f.KeyEncode != "" {
		w.put("KEY ENCODE", strings.ToUpper(f.KeyEncode))
		w.options(f.KeyOptions)
	}
}

func (w *printer) createSink(n *CreateSink) {
	w.create("SINK", false, n.IfNotExists, n.Name)
	w.clause("IN CLUSTER", QuoteIdent(n.Cluster), n.Cluster != "")
	if n.Into != nil {
		w.put("INTO", n.Into.String())
		w.columnNames(n.IntoColumns)
	}
	if n.From != nil {
		w.put("FROM", n.From.String())
	} else if n.Query != nil {
		w.put("AS")
		if c := n.Changelog; c != nil {
			w.put("WITH", QuoteIdent(c.Name), "AS CHANGELOG FROM", c.Of.String())
		}
		w.query(n.Query)
	}
	if n.Connection != nil {
		w.put("INTO", strings.ToUpper(n.Kind), "CONNECTION", n.Connection.String())
		w.options(n.Options)
	}
	w.clause("KEY", identList(n.Key), len(n.Key) > 0)
	w.when(n.KeyNotEnforced, "NOT ENFORCED")
	w.clause("HEADERS", QuoteIdent(n.Headers), n.Headers != "")
	w.formats(n.KeyFormat, n.Format)
	w.envelope(n.Envelope)
	w.with(n.With)
	w.formatEncode(n.FormatEncode)
}

// command writes the statements that define nothing.
func (w *printer) command(n Node) {
	switch n := n.(type) {
	case *Drop:
		w.drop(n)
	case *Alter:
		w.alter(n)
	case *Show:
		w.show(n)
	case *ShowCreate:
		w.put("SHOW CREATE", string(n.Kind), n.Name.String())
	case *ShowVariable:
		w.put("SHOW")
		w.put(settingText(n.Name))
	case *SetVariable:
		w.setVariable(n)
	case *Subscribe:
		w.subscribe(n)
	case *Copy:
		w.copy(n)
	case *DeclareCursor:
		w.declare(n)
	case *Fetch:
		w.fetch(n)
	case *CloseCursor:
		if w.put("CLOSE"); n.Name == "" {
			w.put("ALL")
		} else {
			w.put(QuoteIdent(n.Name))
		}
	case *Explain:
		w.explain(n)
	case *Flush:
		w.put("FLUSH")
	case *Recover:
		w.put("RECOVER")
	case *Wait:
		w.put("WAIT", string(n.Kind))
		if n.Name != nil {
			w.name(*n.Name)
		}
	case *CreateSubscription:
		w.create("SUBSCRIPTION", false, n.IfNotExists, n.Name)
		w.put("FROM", n.From.String())
		w.with(n.With)
	case *ValidateConnection:
		w.put("VALIDATE CONNECTION", n.Name.String())
	case *CommentOn:
		w.commentOn(n)
	}
}

func (w *printer) drop(n *Drop) {
	w.put("DROP", string(n.Kind))
	w.when(n.Concurrently, "CONCURRENTLY")
	w.when(n.IfExists, "IF EXISTS")
	w.names(n.Names)
	w.when(n.Cascade, "CASCADE")
}

func (w *printer) names(list []Name) {
	parts := make([]string, len(list))
	for i, n := range list {
		parts[i] = n.String()
	}
	w.put(strings.Join(parts, ", "))
}

func (w *printer) alter(n *Alter) {
	w.put("ALTER", string(n.Kind))
	w.when(n.IfExists, "IF EXISTS")
	w.name(n.Name)
	parts := make([]string, len(n.Actions))
	for i := range n.Actions {
		parts[i] = n.Actions[i].String()
	}
	w.put(strings.Join(parts, ", "))
}

// String is the action as SQL.
func (c *AlterCmd) String() string {
	w := &printer{}
	column := func(words ...string) {
		w.put("ALTER COLUMN", QuoteIdent(c.Column))
		w.put(words...)
	}
	switch c.Action {
	case AlterRename:
		w.put("RENAME TO", QuoteIdent(c.NewName))
	case AlterSetSchema:
		w.put("SET SCHEMA", QuoteIdent(c.NewName))
	case AlterOwner:
		w.put("OWNER TO", QuoteIdent(c.NewName))
	case AlterAddColumn:
		w.put("ADD COLUMN")
		w.when(c.IfNotExists, "IF NOT EXISTS")
		w.put(c.ColumnDef.String())
	case AlterDropColumn, AlterDropConstraint:
		w.put(map[AlterAction]string{AlterDropColumn: "DROP COLUMN", AlterDropConstraint: "DROP CONSTRAINT"}[c.Action])
		w.when(c.IfExists, "IF EXISTS")
		w.clause("", QuoteIdent(c.Column), c.Column != "")
		w.clause("", QuoteIdent(c.NewName), c.NewName != "")
		w.when(c.Cascade, "CASCADE")
	case AlterRenameColumn:
		w.put("RENAME COLUMN", QuoteIdent(c.Column), "TO", QuoteIdent(c.NewName))
	case AlterSetDefault:
		column("SET DEFAULT", c.Expr.SQL)
	case AlterDropDefault:
		column("DROP DEFAULT")
	case AlterSetNotNull:
		column("SET NOT NULL")
	case AlterDropNotNull:
		column("DROP NOT NULL")
	case AlterColumnType:
		column("TYPE", c.Type.SQL)
		if c.Expr != nil {
			w.put("USING", c.Expr.SQL)
		}
	case AlterAddConstraint:
		w.put("ADD", c.Constraint.String())
	case AlterSetOptions:
		w.put("SET", optionList(c.Options))
	case AlterResetOptions:
		w.put("RESET", optionList(c.Options))
	case AlterSetConfig:
		w.put("SET CONFIG", optionList(c.Options))
	case AlterResetConfig:
		w.put("RESET CONFIG", optionList(c.Options))
	case AlterSwap:
		w.put("SWAP WITH", QuoteIdent(c.NewName))
	case AlterSetCluster:
		w.put("SET CLUSTER", QuoteIdent(c.NewName))
	case AlterSecretValue:
		w.put("AS", c.Expr.SQL)
	case AlterTuning:
		if c.NewName == "" {
			w.put("RESET", strings.ToUpper(c.Column))
		} else {
			w.put("SET", strings.ToUpper(c.Column), "=", QuoteString(c.NewName))
		}
	case AlterAddSubsource:
		w.put("ADD SUBSOURCE", c.Tables[0].Name.String())
	case AlterSinkFrom:
		w.put("SET FROM", c.Tables[0].Name.String())
	case AlterConstraintTiming:
		w.put("ALTER CONSTRAINT " + QuoteIdent(c.NewName))
		w.put(map[string]string{"": "NOT DEFERRABLE", "deferrable": "DEFERRABLE", "deferred": "DEFERRABLE INITIALLY DEFERRED"}[c.Column])
	case AlterRenameConstraint:
		w.put("RENAME CONSTRAINT", QuoteIdent(c.Column), "TO", QuoteIdent(c.NewName))
	case AlterValidate:
		w.put("VALIDATE CONSTRAINT", QuoteIdent(c.NewName))
	case AlterAddIdentity:
		column("ADD GENERATED", strings.ToUpper(c.NewName), "AS IDENTITY")
	case AlterSetIdentity:
		column()
		w.clause("SET GENERATED", strings.ToUpper(c.NewName), c.NewName != "")
		w.when(len(c.Sequence) > 0, "RESTART")
	case AlterDropIdentity:
		column("DROP IDENTITY")
		w.when(c.IfExists, "IF EXISTS")
	case AlterDropExpression:
		column("DROP EXPRESSION")
		w.when(c.IfExists, "IF EXISTS")
	case AlterNothing:
		column("SET STATISTICS -1")
	}
	return w.b.String()
}

func (w *printer) show(n *Show) {
	if n.Kind == "relation" {
		w.put("DESCRIBE", n.In.String())
		return
	}
	w.put("SHOW")
	w.when(n.Full, "FULL")
	w.put(strings.ToUpper(n.Kind))
	if n.In != nil {
		w.put("FROM", n.In.String())
	}
	w.clause("IN CLUSTER", QuoteIdent(n.Cluster), n.Cluster != "")
	if n.Like != nil {
		w.put("LIKE", QuoteString(*n.Like))
	}
	if n.Where != nil {
		w.put("WHERE", n.Where.SQL)
	}
}

func settingText(name string) string {
	if name == "all" {
		return "ALL"
	}
	parts := strings.Split(name, ".")
	for i, p := range parts {
		parts[i] = QuoteIdent(p)
	}
	return strings.Join(parts, ".")
}

func (w *printer) setVariable(n *SetVariable) {
	if n.Reset {
		w.put("RESET", settingText(n.Name))
		return
	}
	w.put("SET")
	w.when(n.Local, "LOCAL")
	w.put(settingText(n.Name), "TO")
	if len(n.Values) == 0 {
		w.put("DEFAULT")
		return
	}
	parts := make([]string, len(n.Values))
	for i, v := range n.Values {
		parts[i] = v.String()
	}
	w.put(strings.Join(parts, ", "))
}

func (w *printer) subscribe(n *Subscribe) {
	w.put("SUBSCRIBE")
	if n.Query != nil {
		w.put("(" + n.Query.SQL + ")")
	} else if n.Name != nil {
		w.put("TO", n.Name.String())
	}
	if n.Envelope != "" {
		w.put("ENVELOPE", strings.ToUpper(n.Envelope), "(KEY "+identList(n.EnvelopeKey)+")")
	}
	if len(n.OrderBy) > 0 {
		w.put("WITHIN TIMESTAMP ORDER BY", keyTexts(n.OrderBy))
	}
	opts := n.With
	flag := func(name string, v bool) {
		opts = append(opts[:len(opts):len(opts)], Option{Name: name, Value: Value{Kind: ValueBool, Text: strconv.FormatBool(v)}})
	}
	if !n.Snapshot {
		flag("snapshot", false)
	}
	if n.Progress {
		flag("progress", true)
	}
	w.with(opts)
	w.asOf(n.AsOf)
	if n.UpTo != nil {
		w.put("UP TO", n.UpTo.SQL)
	}
}

func (w *printer) copy(n *Copy) {
	w.put("COPY")
	in := &printer{}
	switch {
	case n.Subscribe != nil:
		in.subscribe(n.Subscribe)
	case n.DML != nil:
		in.put(n.DML.SQL())
	case n.Query != nil:
		in.query(n.Query)
	}
	if in.b.Len() > 0 {
		w.put("(" + in.b.String() + ")")
	} else if n.Table != nil {
		w.name(*n.Table)
		w.columnNames(n.Columns)
	}
	stream := "STDOUT"
	if n.From {
		w.put("FROM")
		stream = "STDIN"
	} else {
		w.put("TO")
	}
	w.when(n.Program, "PROGRAM")
	if n.File != "" {
		stream = QuoteString(n.File)
	}
	w.put(stream)
	w.when(len(n.Options) > 0, "WITH")
	w.copyOptions(n.Options)
	if n.Where != nil {
		w.put("WHERE", n.Where.SQL)
	}
}

// copyOptions writes options in the spelling of COPY and EXPLAIN: names are
// one word, no equals sign.
func (w *printer) copyOptions(opts []Option) {
	if len(opts) == 0 {
		return
	}
	parts := make([]string, len(opts))
	for i, o := range opts {
		parts[i] = QuoteIdent(o.Name)
		if o.Value.Kind != ValueNone {
			parts[i] += " " + o.Value.String()
		}
	}
	w.put("(" + strings.Join(parts, ", ") + ")")
}

func (w *printer) declare(n *DeclareCursor) {
	w.put("DECLARE", QuoteIdent(n.Name))
	if n.Subscription != nil {
		w.put("SUBSCRIPTION CURSOR FOR", n.Subscription.String())
		w.when(n.Full, "FULL")
		if n.Since != nil {
			w.put("SINCE", n.Since.SQL)
		}
		return
	}
	w.when(n.Binary, "BINARY")
	w.when(n.Scroll, "SCROLL")
	w.when(n.NoScroll, "NO SCROLL")
	w.put("CURSOR")
	w.when(n.Hold, "WITH HOLD")
	w.put("FOR")
	if n.Subscribe != nil {
		w.subscribe(n.Subscribe)
	} else if n.Query != nil {
		w.query(n.Query)
	}
}

func (w *printer) fetch(n *Fetch) {
	w.put(n.Tag())
	switch n.Direction {
	case FetchForward:
		w.put("FORWARD")
	case FetchBackward:
		w.put("BACKWARD")
	case FetchAbsolute:
		w.put("ABSOLUTE")
	case FetchRelative:
		w.put("RELATIVE")
	}
	if n.Count == FetchAll {
		w.put("ALL")
	} else {
		w.put(strconv.FormatInt(n.Count, 10))
	}
	w.put("FROM", QuoteIdent(n.Cursor))
	w.with(n.With)
}

func (w *printer) explain(n *Explain) {
	w.put("EXPLAIN")
	opts := append([]Option(nil), n.Options...)
	word := func(name, value string) {
		opts = append(opts, Option{Name: name, Value: Value{Kind: ValueIdent, Text: value}})
	}
	if n.Stage == "" {
		if n.Format != "" {
			word("format", n.Format)
		}
		if n.Analyze {
			word("analyze", "true")
		}
		if n.Verbose {
			word("verbose", "true")
		}
		w.copyOptions(opts)
	} else {
		w.put(strings.ToUpper(n.Stage))
		w.when(n.Plan, "PLAN")
		w.with(opts)
		w.clause("AS", strings.ToUpper(n.Format), n.Format != "")
		w.put("FOR")
	}
	switch {
	case n.View != nil:
		w.when(n.Stage == "", "FOR")
		w.put(string(n.ViewKind), n.View.String())
	case n.Statement != nil:
		w.put(n.Statement.SQL())
	}
}

func (w *printer) commentOn(n *CommentOn) {
	w.put("COMMENT ON", string(n.Kind))
	if n.Kind == ObjectColumn {
		w.put(n.Name.String() + "." + QuoteIdent(n.Column))
	} else {
		w.name(n.Name)
	}
	w.put("IS")
	if n.Comment == nil {
		w.put("NULL")
	} else {
		w.put(QuoteString(*n.Comment))
	}
}
