package parser

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// createHead is what may stand between CREATE and the kind of object.
type createHead struct {
	orReplace, temp, recursive, unique, isDefault bool
}

// create parses CREATE …; nil without an error means that the statement is not
// one of this package's.
func (s *stream) create() Node {
	s.expect("create")
	var h createHead
	h.orReplace = s.accept("or", "replace")
	for {
		switch {
		case s.accept("temp"), s.accept("temporary"):
			h.temp = true
			continue
		case s.is("local", "temp"), s.is("local", "temporary"), s.is("global", "temp"), s.is("global", "temporary"), s.is("unlogged", "table"):
			s.advance() // the log is no choice of a table's
			continue
		case s.accept("recursive"):
			h.recursive = true
			continue
		case s.accept("unique"):
			h.unique = true
			continue
		case s.accept("default"):
			h.isDefault = true
			continue
		}
		break
	}
	switch {
	case s.accept("source"):
		return s.createSource(h, false)
	case s.accept("table"):
		return s.createTable(h)
	case s.accept("view") && !h.recursive:
		return s.createView(h)
	case s.accept("materialized", "view"):
		return s.createMaterializedView(h)
	case s.accept("index"):
		return s.createIndex(h)
	case s.accept("sink"):
		return s.createSink()
	case s.accept("secret"):
		n := &CreateSecret{IfNotExists: s.ifNotExists(), Name: s.name(), With: s.withOptions()}
		s.expect("as")
		n.Value = s.exprUntil(len(s.toks) - 1)
		return n
	case s.accept("connection"):
		return s.createConnection(h)
	case s.accept("cluster"):
		return s.createCluster()
	case s.accept("database", "if", "not", "exists"):
		end := len(s.toks) - 1
		stmt, base := s.embed("CREATE DATABASE ", end, "")
		s.i = end
		return &Postgres{Stmt: stmt, Base: base}
	case s.is("type"):
		return s.createContainer()
	case s.is("subsource"):
		return s.absent("CREATE SUBSOURCE", "CREATE SOURCE ... FOR ALL TABLES or FOR TABLES (...) makes a relation of each table.")
	case s.is("network", "policy"):
		return s.absent("CREATE NETWORK POLICY", "Who may connect is decided before a session begins.")
	case s.is("continual", "task"):
		return s.absent("CREATE CONTINUAL TASK", "CREATE SINK ... INTO table keeps a table by the changes of a query.")
	case s.is("function"), s.is("aggregate"):
		s.foreignFunction()
		return nil
	case s.accept("schema"):
		return s.createSchema()
	case s.is("subscription") && (s.peekAt(2).val == "from" || s.peekAt(1).val == "if" || s.peekAt(3).val == "." || s.peekAt(2).val == "."):
		s.advance()
		n := &CreateSubscription{IfNotExists: s.ifNotExists(), Name: s.name()}
		s.expect("from")
		n.From = s.name()
		n.With = s.withOptions()
		return n
	}
	return nil
}

// createCluster is CREATE CLUSTER name [(options)], and Materialize's forms of the
// options without parentheses.
func (s *stream) createCluster() Node {
	if s.is("replica") && identToken(s.peekAt(1)) {
		return s.absent("CREATE CLUSTER REPLICA", hintReplicas)
	}
	n := &CreateCluster{IfNotExists: s.ifNotExists(), Pos: s.pos(), Name: s.ident()}
	switch {
	case s.isOp("("):
		n.Options = s.options()
	case s.is("replicas"):
		return s.absent("CREATE CLUSTER ... REPLICAS", hintReplicas)
	default:
		for s.err == nil && !s.eof() {
			n.Options = append(n.Options, s.option())
			if !s.acceptOp(",") {
				break
			}
		}
	}
	return n
}

// createContainer parses Materialize's CREATE TYPE name AS LIST (ELEMENT TYPE = t) and AS
// MAP (KEY TYPE = text, VALUE TYPE = t), as domains; nil for other types.
func (s *stream) createContainer() Node {
	save := s.i
	s.expect("type")
	start := s.toks[save].start
	name := s.name()
	kind := ""
	if s.accept("as") {
		kind = s.acceptOne("list", "map")
	}
	if kind == "" || !s.isOp("(") {
		s.i, s.err = save, nil
		return nil
	}
	texts := map[string]string{}
	s.expectOp("(")
	for s.err == nil {
		which := s.acceptOne("element", "key", "value")
		if which == "" || !s.accept("type") {
			s.unexpected()
		}
		s.acceptOp("=")
		from, end := s.peek().start, s.until(",")
		s.typeUntil(end)
		texts[which] = s.text[from:s.toks[end-1].end]
		if !s.acceptOp(",") {
			break
		}
	}
	s.expectOp(")")
	of := texts["element"] + "[]"
	if kind == "map" {
		of = "map(" + texts["key"] + ", " + texts["value"] + ")"
	}
	if s.err != nil {
		return nil
	}
	stmts, err := parseTree("CREATE DOMAIN " + name.String() + " AS " + of)
	if err != nil || len(stmts) != 1 {
		s.fail(postgresError(s.text, start, err))
		return nil
	}
	return &Postgres{Stmt: stmts[0], Base: start}
}

const hintReplicas = "A cluster has no replicas: it is a group of views that are computed apart from others."

// foreignFunction refuses what only functions in other languages have, and aggregates
// written like functions.
func (s *stream) foreignFunction() {
	aggregate, returns := s.is("aggregate"), false
	for i := range s.toks[:len(s.toks)-1] {
		t, next := s.toks[i], s.toks[i+1]
		if t.kind != tokWord {
			continue
		}
		returns = returns || t.val == "returns"
		if t.val == "using" && next.kind == tokWord && (next.val == "link" || next.val == "base64") || t.val == "language" && aggregate && returns {
			s.refuse(pgerror.Unsupported("a function in another language than SQL").
				WithHint("Write the function in LANGUAGE sql.").At(Position(s.text, t.start)))
			return
		}
	}
}

func (s *stream) createSchema() Node {
	n := &CreateSchema{IfNotExists: s.ifNotExists()}
	if !s.is("authorization") {
		n.Name = s.name()
		if n.Name.Schema != "" {
			n.Name.Database, n.Name.Schema = n.Name.Schema, ""
		}
	}
	if s.accept("authorization") {
		n.Owner = s.label()
		if n.Name.Name == "" {
			n.Name.Name = n.Owner
		}
	}
	return n
}

func (s *stream) createConnection(h createHead) Node {
	n := &CreateConnection{OrReplace: h.orReplace, IfNotExists: s.ifNotExists(), Name: s.name()}
	if s.isWith() { // RisingWave: CREATE CONNECTION c WITH (type = 'kafka', …)
		n.Options = s.withOptions()
		for _, o := range n.Options {
			if o.Name == "type" {
				n.Kind = strings.ToLower(o.Value.Text)
			}
		}
		return n
	}
	s.expect("to")
	words := []string{s.label()}
	for s.peek().kind == tokWord && !s.is("with") {
		words = append(words, s.advance().val)
	}
	n.Kind = strings.Join(words, " ")
	if s.isOp("(") {
		n.Options = s.options()
	}
	n.With = s.withOptions()
	return n
}

func (s *stream) createView(h createHead) Node {
	n := &CreateView{OrReplace: h.orReplace, Temp: h.temp, IfNotExists: s.ifNotExists(), Name: s.name()}
	if s.isOp("(") {
		n.Columns = s.columnNames()
	}
	n.With = s.withOptions()
	s.expect("as")
	end := len(s.toks) - 1
	if cut := s.tail("with", "check", "option"); cut < 0 {
		for _, kind := range []string{"cascaded", "local"} {
			if cut := s.tail("with", kind, "check", "option"); cut >= 0 {
				end, n.CheckOption = cut, kind
			}
		}
	} else {
		end, n.CheckOption = cut, "cascaded"
	}
	n.Query = s.queryUntil(end)
	if s.err == nil {
		s.i = len(s.toks) - 1
	}
	return n
}

// tail finds the words as the last tokens of the statement: the index of the
// first, or -1.
func (s *stream) tail(words ...string) int {
	at := len(s.toks) - 1 - len(words)
	if at <= s.i {
		return -1
	}
	for i, w := range words {
		if t := s.toks[at+i]; t.kind != tokWord || t.val != w {
			return -1
		}
	}
	return at
}

// recursiveView parses CREATE RECURSIVE VIEW, which PostgreSQL's grammar turns
// into a view over WITH RECURSIVE.
func recursiveView(stmt *pg.Node, base int) (Node, error) {
	v := stmt.GetViewStmt()
	sql, err := deparse(v.Query)
	if err != nil {
		return nil, err
	}
	n := &CreateView{
		Name:      rangeVarName(v.View),
		OrReplace: v.Replace,
		Temp:      v.View.Relpersistence == "t",
		Recursive: true,
		Query:     Query{Stmt: v.Query, Base: base, SQL: sql},
	}
	for _, a := range v.Aliases {
		n.Columns = append(n.Columns, a.GetString_().GetSval())
	}
	return n, nil
}

func rangeVarName(r *pg.RangeVar) Name {
	return Name{Database: r.Catalogname, Schema: r.Schemaname, Name: r.Relname}
}

func (s *stream) createMaterializedView(h createHead) Node {
	n := &CreateMaterializedView{OrReplace: h.orReplace, IfNotExists: s.ifNotExists(), Name: s.name()}
	if s.isOp("(") {
		n.Columns = s.columnNames()
	}
	if s.accept("in", "cluster") {
		n.Cluster = s.ident()
	}
	n.With = s.withOptions()
	s.expect("as")
	end := len(s.toks) - 1
	if cut := s.tail("with", "no", "data"); cut >= 0 {
		n.WithNoData, end = true, cut
	} else if cut := s.tail("with", "data"); cut >= 0 {
		end = cut
	} else if cut := s.tail("emit", "on", "window", "close"); cut >= 0 {
		n.EmitOnWindowClose, end = true, cut
	} else if cut := s.tail("emit", "immediately"); cut >= 0 {
		end = cut
	}
	n.Query = s.queryUntil(end)
	if s.err == nil {
		s.i = len(s.toks) - 1
	}
	return n
}

func (s *stream) createIndex(h createHead) Node {
	n := &CreateIndex{Unique: h.unique, Default: h.isDefault, Concurrently: s.accept("concurrently")}
	n.IfNotExists = s.ifNotExists()
	if !s.is("on") && !s.is("in", "cluster") {
		n.Name = s.name()
	}
	if s.accept("in", "cluster") {
		n.Cluster = s.ident()
	}
	s.expect("on")
	s.accept("only")
	n.On = s.name()
	if s.accept("using") {
		n.Using = s.ident()
	}
	if s.isOp("(") || !n.Default {
		n.Keys = s.indexKeys()
	}
	for s.err == nil && !s.eof() {
		switch {
		case s.accept("include"):
			n.Include = s.columnNames()
		case s.accept("distributed", "by"):
			n.Distributed = s.exprList()
		case s.accept("nulls", "not", "distinct"):
			n.NullsNotDistinct = true
		case s.accept("nulls", "distinct"):
		case s.accept("tablespace"):
			s.ident()
		case s.isWith():
			n.With = s.withOptions()
		case s.accept("where"):
			e := s.exprUntil(len(s.toks) - 1)
			n.Where = &e
		default:
			s.unexpected()
		}
	}
	return n
}

func (s *stream) indexKeys() []IndexKey {
	var out []IndexKey
	s.expectOp("(")
	for s.err == nil {
		out = append(out, s.indexKey())
		if !s.acceptOp(",") {
			break
		}
	}
	s.expectOp(")")
	return out
}

// indexKey is `expr [COLLATE c] [opclass] [ASC|DESC] [NULLS FIRST|LAST]`; the
// words in stops end it.
func (s *stream) indexKey(stops ...string) IndexKey {
	var k IndexKey
	stop := s.until(append(stops, ",", "asc", "desc", "nulls", "collate")...)
	// An operator class is a name after a column or after parentheses.
	if n := stop - s.i; n >= 2 && identToken(s.toks[stop-1]) {
		if before := s.toks[stop-2]; identToken(before) && n == 2 || before.kind == tokOp && before.val == ")" {
			stop--
		}
	}
	if stop-s.i == 1 && s.isIdent() {
		k.Column = s.peek().val
	}
	k.Expr = s.exprUntil(stop)
	if s.accept("collate") {
		s.name()
	}
	if s.isIdent() && !s.is("nulls") && len(stops) == 0 {
		s.name() // operator class
	}
	if s.accept("desc") {
		k.Desc, k.NullsFirst = true, true
	} else {
		s.accept("asc")
	}
	if s.accept("nulls") {
		k.NullsFirst = s.acceptOne("first", "last") == "first"
	}
	return k
}

// exprList is `(expr, …)`.
func (s *stream) exprList() []Expr {
	var out []Expr
	s.expectOp("(")
	for s.err == nil {
		out = append(out, s.exprUntil(s.until(",")))
		if !s.acceptOp(",") {
			break
		}
	}
	s.expectOp(")")
	return out
}
