package parser

import (
	"strings"
)

// Print writes a statement of this package's own kind as SQL on one line;
// parsing it gives the same statement. Queries and expressions inside keep the
// text that they were written with. "" is for statements in PostgreSQL's tree.
func Print(n Node) string {
	w := &printer{}
	switch n := n.(type) {
	case *Select:
		w.query(&n.Query)
	case *CreateTable:
		w.createTable(n)
	case *CreateTableAs:
		w.createTableAs(n)
	case *CreateTableFromSource:
		w.createTableFromSource(n)
	case *CreateSource:
		w.createSource(n)
	case *CreateSecret:
		w.create("SECRET", false, n.IfNotExists, n.Name)
		w.with(n.With)
		w.put("AS", n.Value.SQL)
	case *CreateConnection:
		w.createConnection(n)
	case *CreateSink:
		w.createSink(n)
	case *CreateView:
		w.createView(n)
	case *CreateMaterializedView:
		w.createMaterializedView(n)
	case *CreateIndex:
		w.createIndex(n)
	case *CreateCluster:
		w.put("CREATE CLUSTER")
		w.when(n.IfNotExists, "IF NOT EXISTS")
		w.put(QuoteIdent(n.Name))
		w.options(n.Options)
	case *CreateSchema:
		w.put("CREATE SCHEMA")
		w.when(n.IfNotExists, "IF NOT EXISTS")
		w.name(n.Name)
		w.clause("AUTHORIZATION", QuoteIdent(n.Owner), n.Owner != "")
	default:
		w.command(n)
	}
	return w.b.String()
}

// printer writes words with blanks between them.
type printer struct{ b strings.Builder }

func (w *printer) put(words ...string) {
	for _, s := range words {
		if s == "" {
			continue
		}
		if w.b.Len() > 0 {
			w.b.WriteByte(' ')
		}
		w.b.WriteString(s)
	}
}

func (w *printer) when(cond bool, words ...string) {
	if cond {
		w.put(words...)
	}
}

func (w *printer) clause(keyword, value string, cond bool) {
	if cond {
		w.put(keyword, value)
	}
}

// QuoteIdent is a name as SQL needs it: quoted unless it is lower-case and no keyword.
func QuoteIdent(s string) string {
	if s == "" {
		return `""`
	}
	plain := !reserved[s]
	for i := 0; i < len(s) && plain; i++ {
		c := s[i]
		plain = c >= 'a' && c <= 'z' || c == '_' || i > 0 && (isDigit(c) || c == '$')
	}
	if plain {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// QuoteString is a string constant.
func QuoteString(s string) string {
	q := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if strings.Contains(s, `\`) {
		return "E" + strings.ReplaceAll(q, `\`, `\\`)
	}
	return q
}

// String is the name as SQL.
func (n Name) String() string {
	s := QuoteIdent(n.Name)
	if n.Schema != "" {
		s = QuoteIdent(n.Schema) + "." + s
	}
	if n.Database != "" {
		s = QuoteIdent(n.Database) + "." + s
	}
	return s
}

func (w *printer) name(n Name) {
	if n.Name != "" {
		w.put(n.String())
	}
}

func identList(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = QuoteIdent(n)
	}
	return "(" + strings.Join(out, ", ") + ")"
}

func (w *printer) columnNames(names []string) {
	if len(names) > 0 {
		w.put(identList(names))
	}
}

// create writes CREATE kind [IF NOT EXISTS] name.
func (w *printer) create(kind string, orReplace, ifNotExists bool, n Name) {
	w.put("CREATE")
	w.when(orReplace, "OR REPLACE")
	w.put(kind)
	w.when(ifNotExists, "IF NOT EXISTS")
	w.name(n)
}

// String is the value as SQL.
func (v Value) String() string {
	switch v.Kind {
	case ValueString:
		return QuoteString(v.Text)
	case ValueIdent:
		if v.Name.Name == "" {
			return v.Text
		}
		return v.Name.String()
	case ValueSecret:
		return "SECRET " + v.Name.String()
	case ValueNull:
		return "NULL"
	case ValueList:
		parts := make([]string, len(v.List))
		for i, e := range v.List {
			parts[i] = e.String()
		}
		return "(" + strings.Join(parts, ", ") + ")"
	case ValueMap:
		var parts []string
		for i := 0; i+1 < len(v.List); i += 2 {
			parts = append(parts, v.List[i].String()+" => "+v.List[i+1].String())
		}
		return "MAP[" + strings.Join(parts, ", ") + "]"
	}
	return v.Text
}

// String is the option as SQL.
func (o Option) String() string {
	name := o.Name
	if !strings.ContainsAny(name, "._") {
		name = strings.ToUpper(name)
	}
	if !plainOption(o.Name) {
		name = `"` + strings.ReplaceAll(o.Name, `"`, `""`) + `"`
	}
	if o.Value.Kind == ValueNone {
		return name
	}
	return name + " = " + o.Value.String()
}

// plainOption reports whether an option's name needs no quotes: words, or
// parts with dots between them.
func plainOption(s string) bool {
	if s != strings.ToLower(s) || s == "" {
		return false
	}
	for i, part := range strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '.' }) {
		for j := 0; j < len(part); j++ {
			if c := part[j]; !isIdentPart(c) || j == 0 && !isIdentStart(c) || c >= 0x80 {
				return false
			}
		}
		if i > 0 && (part == "secret" || part == "map") {
			return false
		}
	}
	return !strings.ContainsAny(s, "\t\n\r\"") && !strings.Contains(s, "  ") && s[0] != ' ' && s[len(s)-1] != ' ' &&
		!strings.Contains(s, "..") && s[0] != '.' && s[len(s)-1] != '.'
}

func optionList(opts []Option) string {
	parts := make([]string, len(opts))
	for i, o := range opts {
		parts[i] = o.String()
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func (w *printer) options(opts []Option) {
	if len(opts) > 0 {
		w.put(optionList(opts))
	}
}

func (w *printer) with(opts []Option) {
	if len(opts) > 0 {
		w.put("WITH", optionList(opts))
	}
}

func (w *printer) query(q *Query) {
	w.put(q.SQL)
	w.asOf(q.AsOf)
}

func (w *printer) asOf(a *AsOf) {
	if a != nil {
		w.put("AS OF")
		w.when(a.AtLeast, "AT LEAST")
		w.put(a.Expr.SQL)
	}
}

func (w *printer) createView(n *CreateView) {
	w.put("CREATE")
	w.when(n.OrReplace, "OR REPLACE")
	w.when(n.Temp, "TEMP")
	w.put("VIEW") // a recursive view's query has become one that says so itself
	w.when(n.IfNotExists, "IF NOT EXISTS")
	w.name(n.Name)
	w.columnNames(n.Columns)
	w.with(n.With)
	w.put("AS")
	w.query(&n.Query)
	w.when(n.CheckOption != "", "WITH "+strings.ToUpper(n.CheckOption)+" CHECK OPTION")
}

func (w *printer) createMaterializedView(n *CreateMaterializedView) {
	w.create("MATERIALIZED VIEW", n.OrReplace, n.IfNotExists, n.Name)
	w.columnNames(n.Columns)
	w.clause("IN CLUSTER", QuoteIdent(n.Cluster), n.Cluster != "")
	w.with(n.With)
	w.put("AS")
	w.query(&n.Query)
	w.when(n.WithNoData, "WITH NO DATA")
	w.when(n.EmitOnWindowClose, "EMIT ON WINDOW CLOSE")
}

func (w *printer) createIndex(n *CreateIndex) {
	w.put("CREATE")
	w.when(n.Unique, "UNIQUE")
	w.when(n.Default, "DEFAULT")
	w.put("INDEX")
	w.when(n.Concurrently, "CONCURRENTLY")
	w.when(n.IfNotExists, "IF NOT EXISTS")
	w.name(n.Name)
	w.clause("IN CLUSTER", QuoteIdent(n.Cluster), n.Cluster != "")
	w.put("ON", n.On.String())
	w.clause("USING", QuoteIdent(n.Using), n.Using != "")
	if len(n.Keys) > 0 {
		w.put("(" + keyTexts(n.Keys) + ")")
	}
	w.clause("INCLUDE", identList(n.Include), len(n.Include) > 0)
	if len(n.Distributed) > 0 {
		w.put("DISTRIBUTED BY", "("+exprTexts(n.Distributed)+")")
	}
	w.with(n.With)
	if n.Where != nil {
		w.put("WHERE", n.Where.SQL)
	}
}

// String is the key as SQL.
func (k IndexKey) String() string {
	s := k.Expr.SQL
	if k.Desc {
		s += " DESC"
	}
	if k.NullsFirst != k.Desc {
		s += " NULLS " + map[bool]string{true: "FIRST", false: "LAST"}[k.NullsFirst]
	}
	return s
}

func keyTexts(keys []IndexKey) string {
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = k.String()
	}
	return strings.Join(parts, ", ")
}

func exprTexts(es []Expr) string {
	parts := make([]string, len(es))
	for i, e := range es {
		parts[i] = e.SQL
	}
	return strings.Join(parts, ", ")
}

func (w *printer) createConnection(n *CreateConnection) {
	w.create("CONNECTION", n.OrReplace, n.IfNotExists, n.Name)
	if findOption(n.Options, "type") != nil {
		w.with(n.Options)
		return
	}
	w.put("TO", strings.ToUpper(n.Kind))
	w.options(n.Options)
	w.with(n.With)
}

func (w *printer) createTable(n *CreateTable) {
	w.put("CREATE")
	w.when(n.Temp, "TEMP")
	w.put("TABLE")
	w.when(n.IfNotExists, "IF NOT EXISTS")
	w.name(n.Name)
	w.put("(" + strings.Join(elementTexts(n.Columns, n.Constraints, n.Like, n.Watermarks, false), ", ") + ")")
	w.when(n.AppendOnly, "APPEND ONLY")
	w.onConflict(n.OnConflict, n.Version)
	w.with(n.With)
	w.clause("ON COMMIT", strings.ToUpper(n.OnCommit), n.OnCommit != "")
}

func (w *printer) onConflict(s string, version []string) {
	if s != "" {
		w.put("ON CONFLICT", strings.ToUpper(s))
	}
	w.clause("WITH VERSION COLUMN", identList(version), version != nil)
}

func (w *printer) createTableAs(n *CreateTableAs) {
	w.put("CREATE")
	w.when(n.Temp, "TEMP")
	w.put("TABLE")
	w.when(n.IfNotExists, "IF NOT EXISTS")
	w.name(n.Name)
	w.columnNames(n.Columns)
	w.with(n.With)
	w.clause("ON COMMIT", strings.ToUpper(n.OnCommit), n.OnCommit != "")
	w.put("AS")
	w.query(&n.Query)
	w.when(n.WithNoData, "WITH NO DATA")
}

func (w *printer) createTableFromSource(n *CreateTableFromSource) {
	w.create("TABLE", false, n.IfNotExists, n.Name)
	if len(n.Columns)+len(n.Constraints) > 0 {
		w.put("(" + strings.Join(elementTexts(n.Columns, n.Constraints, nil, nil, false), ", ") + ")")
	}
	w.put("FROM SOURCE", n.Source.String())
	opts := n.Options
	if n.Reference != nil {
		ref := Option{Name: "reference", Value: Value{Kind: ValueIdent, Name: *n.Reference}}
		opts = append([]Option{ref}, opts...)
	}
	w.options(opts)
	w.formats(nil, n.Format)
	w.includes(n.Includes)
	w.envelope(n.Envelope)
	w.with(n.With)
}

// elementTexts are the elements in the parentheses of CREATE TABLE and SOURCE.
func elementTexts(cols []ColumnDef, cons []Constraint, like []Like, marks []Watermark, wildcard bool) []string {
	var out []string
	if wildcard {
		out = append(out, "*")
	}
	for i := range cols {
		out = append(out, cols[i].String())
	}
	for i := range cons {
		out = append(out, cons[i].String())
	}
	for _, l := range like {
		text := "LIKE " + l.Name.String()
		for _, p := range likeParts {
			if l.Including[p] {
				text += " INCLUDING " + strings.ToUpper(p)
			}
		}
		out = append(out, text)
	}
	for _, m := range marks {
		text := "WATERMARK FOR " + QuoteIdent(m.Column) + " AS " + m.Expr.SQL
		if m.TTL {
			text += " WITH TTL"
		}
		out = append(out, text)
	}
	return out
}

// String is the column definition as SQL.
func (c *ColumnDef) String() string {
	w := &printer{}
	w.put(QuoteIdent(c.Name), c.Type.SQL)
	w.clause("COLLATE", QuoteIdent(c.Collation), c.Collation != "")
	w.when(c.NotNull, "NOT NULL")
	w.when(c.Null, "NULL")
	if c.Default != nil {
		w.put("DEFAULT", c.Default.SQL)
	}
	if c.Generated != nil {
		w.put("GENERATED ALWAYS AS", "("+c.Generated.SQL+")", "STORED")
	}
	if c.Identity != "" {
		w.put("GENERATED", strings.ToUpper(c.Identity), "AS IDENTITY")
	}
	for i := range c.Keys {
		k := c.Keys[i]
		k.Columns = nil
		w.put(k.String())
	}
	for i := range c.Checks {
		w.put(c.Checks[i].String())
	}
	for i := range c.References {
		r := c.References[i]
		r.Columns = nil
		w.put(r.String())
	}
	return w.b.String()
}

// String is the constraint as SQL.
func (c *Constraint) String() string {
	w := &printer{}
	w.clause("CONSTRAINT", QuoteIdent(c.Name), c.Name != "")
	switch c.Kind {
	case ConstraintPrimaryKey:
		w.put("PRIMARY KEY")
		w.columnNames(c.Columns)
	case ConstraintUnique:
		w.put("UNIQUE")
		w.when(c.NullsNotDistinct, "NULLS NOT DISTINCT")
		w.columnNames(c.Columns)
	case ConstraintCheck:
		w.put("CHECK", "("+c.Check.SQL+")")
	case ConstraintForeignKey:
		w.clause("FOREIGN KEY", identList(c.Columns), len(c.Columns) > 0)
		w.put("REFERENCES", c.RefTable.String())
		w.columnNames(c.RefColumns)
		w.when(c.MatchFull, "MATCH FULL")
		w.clause("ON DELETE", strings.ToUpper(c.OnDelete), c.OnDelete != "")
		w.columnNames(c.SetColumns)
		w.clause("ON UPDATE", strings.ToUpper(c.OnUpdate), c.OnUpdate != "")
	}
	w.clause("USING INDEX", QuoteIdent(c.UsingIndex), c.UsingIndex != "")
	w.when(c.Deferrable, "DEFERRABLE")
	w.when(c.Deferred, "INITIALLY DEFERRED")
	w.when(c.NotValid, "NOT VALID")
	w.when(c.NotEnforced, "NOT ENFORCED")
	return w.b.String()
}
