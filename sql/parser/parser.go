// Package parser turns query text into syntax trees and back. PostgreSQL's own
// grammar (through pg_query) parses all that PostgreSQL can say; the streaming
// statements beyond it have a small recursive-descent parser that hands the
// queries and expressions inside of them to PostgreSQL's grammar.
package parser

import (
	"errors"
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"
	pgparser "github.com/pganalyze/pg_query_go/v6/parser"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// Parse splits a query text into statements and parses each. A text without a
// statement gives none. The error is a *pgerror.Error with the 1-based
// character position in the whole text.
func Parse(text string) ([]Statement, error) {
	if i := strings.IndexByte(text, 0); i >= 0 || !utf8.ValidString(text) {
		return nil, pgerror.New(pgerror.CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\"")
	}
	var out []Statement
	for _, p := range split(text) {
		if p.depth != nil {
			return nil, p.depth
		}
		n, err := parsePiece(text, p)
		if err != nil {
			return nil, err
		}
		out = append(out, Statement{Text: text, Start: p.start, Len: p.end - p.start, Node: n})
	}
	return out, nil
}

// ParseQuery parses a text that is one query, such as a view's.
func ParseQuery(text string) (Query, error) {
	stmts, err := Parse(text)
	if err != nil {
		return Query{}, err
	}
	if len(stmts) == 1 {
		if sel, ok := stmts[0].Node.(*Select); ok {
			return sel.Query, nil
		}
	}
	return Query{}, pgerror.New(pgerror.SyntaxError, "not a query")
}

// ParseExpr parses a text that is one scalar expression, such as a column's default.
func ParseExpr(text string) (Expr, error) {
	if err := checkDepth(text); err != nil {
		return Expr{}, err
	}
	s := newStream(text, piece{start: 0, end: len(text), whole: len(text)})
	e := s.exprUntil(len(s.toks) - 1)
	if s.err != nil {
		return Expr{}, s.err
	}
	return e, nil
}

// ParseType parses the name of a type, as `'…'::regtype` or a column's type has it.
func ParseType(text string) (TypeName, error) {
	if err := checkDepth(text); err != nil {
		return TypeName{}, err
	}
	s := newStream(text, piece{start: 0, end: len(text), whole: len(text)})
	t := s.typeUntil(len(s.toks) - 1)
	if s.err != nil {
		return TypeName{}, s.err
	}
	return t, nil
}

// Position is the 1-based character position of a byte offset in text.
func Position(text string, offset int) int {
	if offset < 0 {
		return 0
	}
	return utf8.RuneCountInString(text[:min(offset, len(text))]) + 1
}

// parsePiece parses one statement: by this package's grammar if its first
// words belong to it, by PostgreSQL's if they don't or it cannot. If neither
// can, the error of the one that understood more of the statement is told.
func parsePiece(text string, p piece) (Node, error) {
	own, known, final, ownErr := parseOwn(text, p)
	if own != nil && ownErr == nil {
		return own, nil
	}
	if final {
		return nil, ownErr
	}
	stmt, err := parsePostgres(text, p.start, p.whole)
	if err == nil {
		if ownErr != nil && ownErr.Code != pgerror.SyntaxError {
			return nil, ownErr
		}
		return wrapPostgres(text, p, stmt)
	}
	if n := selectAsOf(text, p); n != nil {
		return n, nil
	}
	if ownErr != nil && known && (ownErr.Code != pgerror.SyntaxError || ownErr.Pos > asError(err).Pos) {
		return nil, ownErr
	}
	return nil, err
}

func asError(err error) *pgerror.Error { return pgerror.As(err) }

// parseOwn parses a statement by this package's grammar. known says that its
// first words belong to it, final that what is wrong with it is not its grammar.
func parseOwn(text string, p piece) (n Node, known, final bool, _ *pgerror.Error) {
	l := lexer{text: text[:p.whole], pos: p.start}
	first := l.next()
	if first.kind != tokWord {
		return nil, false, false, nil
	}
	f := ownStatements[first.val]
	if f == nil {
		return nil, false, false, nil
	}
	s := newStream(text, p)
	n = f(s)
	if s.err != nil {
		return nil, true, s.final, s.err
	}
	if n == nil {
		return nil, false, false, nil
	}
	if !s.eof() {
		s.unexpected()
		return nil, true, s.final, s.err
	}
	return n, true, false, nil
}

// ownStatements are the first words of the statements that this package
// parses; a function gives nil for what it leaves to PostgreSQL's grammar.
var ownStatements map[string]func(*stream) Node

func init() {
	subscribe := func(s *stream) Node {
		s.advance()
		return s.subscribe(len(s.toks) - 1)
	}
	ownStatements = map[string]func(*stream) Node{
		"create":    (*stream).create,
		"drop":      (*stream).drop,
		"alter":     (*stream).alter,
		"comment":   (*stream).commentOn,
		"show":      (*stream).show,
		"describe":  (*stream).describe,
		"set":       (*stream).set,
		"reset":     (*stream).reset,
		"explain":   (*stream).explain,
		"subscribe": subscribe,
		"tail":      subscribe,
		"declare":   (*stream).declare,
		"fetch":     (*stream).fetch,
		"move":      (*stream).fetch,
		"close":     (*stream).closeCursor,
		"copy":      (*stream).copyStatement,
		"flush":     func(s *stream) Node { s.advance(); return &Flush{} },
		"wait":      (*stream).wait,
		"recover":   func(s *stream) Node { s.advance(); return &Recover{} },
		"use":       (*stream).use,
		"kill": func(s *stream) Node {
			return s.absent("KILL", "SELECT pg_cancel_backend(pid) ends the statement of a session, which pg_stat_activity lists.")
		},
		"cancel": func(s *stream) Node {
			return s.absent("CANCEL JOBS", "SHOW JOBS lists what is being hydrated; DROP the view or index to end it.")
		},
		"grant":  (*stream).grant,
		"revoke": (*stream).grant,
		"validate": func(s *stream) Node {
			s.expect("validate", "connection")
			return &ValidateConnection{Name: s.name()}
		},
	}
}

func (s *stream) wait() Node {
	s.advance()
	n := &Wait{}
	if !s.eof() {
		n.Kind = s.objectKind()
		name := s.name()
		n.Name = &name
	}
	return n
}

// use is RisingWave's USE database.
func (s *stream) use() Node {
	n := &SetVariable{Name: "database", Pos: s.pos()}
	s.advance()
	n.Values = []Value{{Kind: ValueString, Text: s.label()}}
	return n
}

// absent refuses a statement of related systems.
func (s *stream) absent(what, hint string) Node {
	s.refuse(pgerror.Unsupported(what).WithHint("%s", hint).At(s.pos()))
	return nil
}

// grant parses GRANT and REVOKE on the kinds of objects that PostgreSQL does
// not name there, as if they were tables.
func (s *stream) grant() Node {
	for i, t := range s.toks {
		if t.kind != tokWord || t.val != "on" {
			continue
		}
		s.i = i + 1
		if s.accept("all") {
			s.acceptOne("materialized", "sources", "sinks", "views")
			if s.i == i+2 {
				return nil
			}
			s.accept("views")
			return s.grantAs(i+2, "TABLES")
		}
		switch k := s.objectKind(); k {
		case ObjectMaterializedView, ObjectView, ObjectSource, ObjectSink, ObjectConnection, ObjectSecret, ObjectCluster, ObjectSubscription:
			return s.grantAs(i+1, "")
		}
		return nil
	}
	return nil
}

// grantAs hands the statement to PostgreSQL's grammar with a word in place of the
// tokens from at to the next one.
func (s *stream) grantAs(at int, word string) Node {
	from, to := s.toks[0].start, s.toks[at].start
	rest := s.peek().start
	text := s.text[from:to] + word + strings.Repeat(" ", rest-to-len(word)) + s.text[rest:s.end]
	stmts, err := parseTree(text)
	if err != nil || len(stmts) != 1 {
		return nil
	}
	s.i = len(s.toks) - 1
	return &Postgres{Stmt: stmts[0], Base: from}
}

// wrapPostgres makes the node of a statement in PostgreSQL's tree.
func wrapPostgres(text string, p piece, stmt *pg.Node) (Node, error) {
	if sel := stmt.GetSelectStmt(); sel != nil {
		q := Query{Stmt: stmt, Base: p.start, SQL: text[p.start:p.end]}
		first := sel // of set operations
		for first.Larg != nil {
			first = first.Larg
		}
		if first.IntoClause != nil {
			return selectInto(q, first)
		}
		return &Select{q}, nil
	}
	if v := stmt.GetViewStmt(); v != nil && v.Query.GetSelectStmt() != nil {
		return recursiveView(stmt, p.start)
	}
	return &Postgres{Stmt: stmt, Base: p.start}, nil
}

// selectInto makes CREATE TABLE AS of SELECT … INTO, which sel has.
func selectInto(q Query, sel *pg.SelectStmt) (Node, error) {
	into := sel.IntoClause
	sel.IntoClause = nil
	sql, err := deparse(q.Stmt)
	if err != nil {
		return nil, err
	}
	q.SQL = sql
	return &CreateTableAs{
		Name:  rangeVarName(into.Rel),
		Temp:  into.Rel.Relpersistence == "t",
		Query: q,
	}, nil
}

// selectAsOf parses a query that ends in AS OF, nil if it is not one.
func selectAsOf(text string, p piece) Node {
	s := newStream(text, p)
	at := s.lastAsOf(len(s.toks) - 1)
	if at < 0 {
		return nil
	}
	q := s.queryWithAsOf(len(s.toks) - 1)
	if s.err != nil || !s.eof() {
		return nil
	}
	return &Select{q}
}

// parseTree parses a text by PostgreSQL's grammar.
func parseTree(text string) ([]*pg.Node, error) {
	if needsDialect(text) {
		if stmts, ok, err := parseDialect(text); ok {
			return stmts, err
		}
	}
	res, err := grammarTree(text)
	if err != nil {
		if stmts, ok, err := parseDialect(text); ok {
			return stmts, err
		}
		return nil, err
	}
	var out []*pg.Node
	for _, st := range res.Stmts {
		out = append(out, st.Stmt)
	}
	return out, nil
}

// parsePostgres parses the single statement in text[start:end] by PostgreSQL's grammar.
func parsePostgres(text string, start, end int) (*pg.Node, error) {
	stmts, err := parseTree(text[start:end])
	if err != nil {
		return nil, postgresError(text, start, err)
	}
	if len(stmts) != 1 {
		return nil, pgerror.New(pgerror.SyntaxError, "syntax error at end of input").At(Position(text, end))
	}
	return stmts[0], nil
}

// postgresError moves the position of PostgreSQL's parser into the whole text.
func postgresError(text string, start int, err error) *pgerror.Error {
	var e *pgparser.Error
	if own := new(pgerror.Error); errors.As(err, &own) {
		moved := *own
		moved.Pos += Position(text, start) - 1
		return &moved
	}
	if !errors.As(err, &e) { // the tree is too deep for its encoding
		return pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded")
	}
	out := pgerror.New(postgresCode(e.Message), "%s", e.Message)
	if e.Cursorpos > 0 {
		out.Pos = Position(text, start) + e.Cursorpos - 1
	}
	switch {
	case strings.HasPrefix(e.Message, "LIMIT #,#"):
		return out.WithHint("Use separate LIMIT and OFFSET clauses.")
	case e.Message == "invalid Unicode escape" && out.Pos > 0:
		after := []rune(text)[out.Pos:]
		if len(after) > 0 && (after[0] == 'u' || after[0] == 'U') {
			out.Code = pgerror.InvalidEscapeSequence
			return out.WithHint("Unicode escapes must be \\uXXXX or \\UXXXXXXXX.")
		}
		return out.WithHint("Unicode escapes must be \\XXXX or \\+XXXXXX.")
	}
	return out
}

// postgresCode finds the SQLSTATE of a message of PostgreSQL's parser, which
// pg_query does not tell.
func postgresCode(msg string) string {
	switch {
	case strings.HasPrefix(msg, "LIMIT #,#"):
		return pgerror.SyntaxError
	case strings.Contains(msg, "not yet implemented"), strings.Contains(msg, "not supported"),
		strings.Contains(msg, "not implemented"):
		return pgerror.FeatureNotSupported
	case strings.HasPrefix(msg, "invalid byte"):
		return pgerror.CharacterNotInRepertoire
	case strings.HasPrefix(msg, "frame start"), strings.HasPrefix(msg, "frame end"):
		return pgerror.WindowingError
	case strings.HasPrefix(msg, "stack depth"), strings.HasPrefix(msg, "memory exhausted"):
		return pgerror.StatementTooComplex
	}
	return pgerror.SyntaxError
}

// grammarVersion is the version of the tree, which the printer checks.
const grammarVersion = 170007

// PrintExpr prints an expression of PostgreSQL's tree.
func PrintExpr(n *pg.Node) (string, error) {
	target := &pg.Node{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: n}}}
	sql, err := deparse(&pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: &pg.SelectStmt{TargetList: []*pg.Node{target}}}})
	return strings.TrimPrefix(sql, "SELECT "), err
}

// DeparseStatement prints a statement of PostgreSQL's tree.
func DeparseStatement(n *pg.Node) (string, error) { return deparse(n) }

// deparse prints a tree of PostgreSQL's.
func deparse(stmt *pg.Node) (string, error) {
	sql, err := pg.Deparse(&pg.ParseResult{Version: grammarVersion, Stmts: []*pg.RawStmt{{Stmt: stmt}}})
	if err != nil {
		return "", pgerror.New(pgerror.InternalError, "cannot print the statement: %s", err)
	}
	return sql, nil
}

// DeparseExpr prints an expression of PostgreSQL's tree.
func DeparseExpr(n *pg.Node) (string, error) {
	target := &pg.Node{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: n}}}
	sql, err := deparse(&pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: &pg.SelectStmt{TargetList: []*pg.Node{target}}}})
	return strings.TrimPrefix(sql, "SELECT "), err
}

// DeparseBody prints the SQL-standard body of a function, RETURN or BEGIN ATOMIC,
// as a query.
func DeparseBody(n *pg.Node) (string, error) {
	if r := n.GetReturnStmt(); r != nil {
		e, err := DeparseExpr(r.Returnval)
		return "SELECT " + e, err
	}
	var texts []string
	for _, l := range n.GetList().GetItems() {
		for _, st := range l.GetList().GetItems() {
			text, err := deparse(st)
			if r := st.GetReturnStmt(); r != nil {
				text, err = DeparseBody(st)
			}
			if err != nil {
				return "", err
			}
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; "), nil
}
