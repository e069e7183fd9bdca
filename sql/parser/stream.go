package parser

import (
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// stream is the tokens of one statement under the recursive-descent parser.
// The first error sticks and makes the rest of the tokens vanish, so that the
// grammar functions need no error returns: every loop ends, every expectation
// after the first failed one is silent.
type stream struct {
	text string
	toks []token // the last is tokEOF
	i    int
	end  int // offset after the last token of the statement
	err  *pgerror.Error
	// final says that PostgreSQL's grammar would take the statement, and the error
	// is of its meaning.
	final bool
}

func newStream(text string, p piece) *stream {
	s := &stream{text: text, end: p.end}
	l := lexer{text: text[:p.whole], pos: p.start}
	for {
		t := l.next()
		if t.kind == tokEOF || t.kind == tokOp && t.val == ";" && t.start >= p.end {
			t.kind = tokEOF
			s.toks = append(s.toks, t)
			return s
		}
		s.toks = append(s.toks, t)
	}
}

func (s *stream) peek() token { return s.toks[s.i] }

func (s *stream) peekAt(n int) token { return s.toks[min(s.i+n, len(s.toks)-1)] }

func (s *stream) advance() token {
	t := s.toks[s.i]
	if s.i < len(s.toks)-1 {
		s.i++
	}
	return t
}

func (s *stream) eof() bool { return s.peek().kind == tokEOF }

// fail records the first error and drops the remaining tokens.
func (s *stream) fail(e *pgerror.Error) {
	if s.err == nil {
		s.err = e
	}
	s.i = len(s.toks) - 1
}

// refuse is the error of a statement whose grammar is right.
func (s *stream) refuse(e *pgerror.Error) {
	if s.err == nil {
		s.final = true
		s.fail(e)
	}
}

// unexpected is the syntax error at the next token.
func (s *stream) unexpected() {
	if s.err != nil {
		return
	}
	s.fail(syntaxErrorAt(s.text, s.peek()))
}

func syntaxErrorAt(text string, t token) *pgerror.Error {
	if t.kind == tokEOF && t.start == t.end {
		return pgerror.New(pgerror.SyntaxError, "syntax error at end of input").At(Position(text, t.start))
	}
	return pgerror.New(pgerror.SyntaxError, "syntax error at or near \"%s\"", text[t.start:t.end]).
		At(Position(text, t.start))
}

// pos is the character position of the next token.
func (s *stream) pos() int { return Position(s.text, s.peek().start) }

// is reports whether the next tokens are the given words.
func (s *stream) is(words ...string) bool {
	for i, w := range words {
		if t := s.peekAt(i); t.kind != tokWord || t.val != w {
			return false
		}
	}
	return true
}

// accept passes the given words if they come next.
func (s *stream) accept(words ...string) bool {
	if !s.is(words...) {
		return false
	}
	s.i += len(words)
	return true
}

// acceptOne passes one of the words and returns it, "" if none comes next.
func (s *stream) acceptOne(words ...string) string {
	for _, w := range words {
		if s.accept(w) {
			return w
		}
	}
	return ""
}

func (s *stream) expect(words ...string) {
	for _, w := range words {
		if !s.accept(w) {
			s.unexpected()
			return
		}
	}
}

func (s *stream) isOp(op string) bool {
	t := s.peek()
	return t.kind == tokOp && t.val == op
}

func (s *stream) acceptOp(op string) bool {
	if !s.isOp(op) {
		return false
	}
	s.advance()
	return true
}

func (s *stream) expectOp(op string) {
	if !s.acceptOp(op) {
		s.unexpected()
	}
}

// isIdent reports whether the next token can be a name. PostgreSQL's reserved
// words cannot.
func (s *stream) isIdent() bool { return identToken(s.peek()) }

func identToken(t token) bool {
	return t.kind == tokQuoted && t.val != "" || t.kind == tokWord && !reserved[t.val]
}

func (s *stream) ident() string {
	if !s.isIdent() {
		if t := s.peek(); t.kind == tokQuoted {
			s.fail(pgerror.New(pgerror.SyntaxError, "zero-length delimited identifier at or near \"%s\"", `""`).
				At(Position(s.text, t.start)))
			return ""
		}
		s.unexpected()
		return ""
	}
	return s.advance().val
}

// label is a name where every keyword is allowed, as after AS.
func (s *stream) label() string {
	if t := s.peek(); t.kind != tokWord && t.kind != tokQuoted {
		s.unexpected()
		return ""
	}
	return s.advance().val
}

func (s *stream) str() string {
	if s.peek().kind != tokString {
		s.unexpected()
		return ""
	}
	return s.advance().val
}

func (s *stream) integer() int64 {
	t := s.peek()
	n, err := strconv.ParseInt(t.val, 10, 64)
	if t.kind != tokNumber || err != nil {
		s.unexpected()
		return 0
	}
	s.advance()
	return n
}

// name is a name of up to three parts.
func (s *stream) name() Name {
	n := Name{Pos: s.pos()}
	parts := []string{s.ident()}
	for len(parts) < 3 && s.acceptOp(".") {
		parts = append(parts, s.label())
	}
	switch len(parts) {
	case 3:
		n.Database, n.Schema, n.Name = parts[0], parts[1], parts[2]
	case 2:
		n.Schema, n.Name = parts[0], parts[1]
	default:
		n.Name = parts[0]
	}
	return n
}

// columnNames is `(a, b, …)`.
func (s *stream) columnNames() []string {
	s.expectOp("(")
	out := []string{s.ident()}
	for s.acceptOp(",") {
		out = append(out, s.ident())
	}
	s.expectOp(")")
	return out
}

func (s *stream) ifNotExists() bool { return s.accept("if", "not", "exists") }

// close finds the parenthesis that closes the one before the next token, as
// an index of toks.
func (s *stream) closing() int {
	depth := 0
	for i := s.i; i < len(s.toks); i++ {
		if t := s.toks[i]; t.kind == tokOp {
			switch t.val {
			case "(", "[":
				depth++
			case ")", "]":
				if depth == 0 {
					return i
				}
				depth--
			}
		}
	}
	return len(s.toks) - 1
}

// until finds the first token at this nesting that is one of the words or
// operators, as an index of toks; a closing parenthesis of an outer level ends
// the search too.
func (s *stream) until(stops ...string) int {
	depth := 0
	for i := s.i; i < len(s.toks); i++ {
		t := s.toks[i]
		if t.kind == tokWord && t.val == "struct" && i+1 < len(s.toks) && strings.HasPrefix(s.toks[i+1].val, "<") {
			// Its commas are inside.
			if _, end, ok := angles(s.text[:s.toks[len(s.toks)-1].start], t.end); ok {
				for i+1 < len(s.toks)-1 && s.toks[i+1].start < end {
					i++
				}
				continue
			}
		}
		if t.kind == tokOp {
			switch t.val {
			case "(", "[", "{":
				depth++
				continue
			case ")", "]", "}":
				if depth == 0 {
					return i
				}
				depth--
				continue
			}
		}
		if depth > 0 || t.kind != tokOp && t.kind != tokWord {
			continue
		}
		for _, stop := range stops {
			if t.val == stop && i > s.i {
				return i
			}
		}
	}
	return len(s.toks) - 1
}

// embed parses the tokens up to index end with PostgreSQL's grammar, between a
// prefix and a suffix. Positions in errors and in the tree are those of the
// whole text; base is what the tree's locations count from.
func (s *stream) embed(prefix string, end int, suffix string) (stmt *pg.Node, base int) {
	if s.err != nil {
		return nil, 0
	}
	from, after := s.peek().start, s.toks[end]
	to := from
	if end > s.i {
		to = s.toks[end-1].end
	}
	base = from - len(prefix)
	body := s.text[from:to]
	res, err := parseTree(prefix + body + suffix)
	if err != nil {
		e := postgresError(prefix+body+suffix, 0, err)
		s.fail(s.moveError(e, len(prefix), from, to, after))
		return nil, base
	}
	if len(res) != 1 {
		s.fail(syntaxErrorAt(s.text, after))
		return nil, base
	}
	s.i = end
	return res[0], base
}

// moveError moves the error of an embedded text into the whole text. What is
// wrong at the end of the embedded text is wrong at the token after it.
func (s *stream) moveError(e *pgerror.Error, prefix, from, to int, after token) *pgerror.Error {
	inner := e.Pos - 1 - prefix // in characters; the prefix is ASCII
	size := Position(s.text[from:to], to-from) - 1
	if e.Pos == 0 || inner >= size {
		if !strings.HasPrefix(e.Message, "syntax error") {
			e.Pos = Position(s.text, to)
			return e
		}
		return syntaxErrorAt(s.text, after)
	}
	e.Pos = Position(s.text, from) + max(inner, 0)
	return e
}

// queryUntil parses the query in the tokens up to index end.
func (s *stream) queryUntil(end int) Query {
	start := s.peek()
	sql := ""
	s.refuseChangelog(end)
	if end > s.i {
		sql = s.text[start.start:s.toks[end-1].end]
	}
	stmt, base := s.embed("", end, "")
	if stmt == nil {
		return Query{}
	}
	sel := stmt.GetSelectStmt()
	if sel == nil {
		s.fail(syntaxErrorAt(s.text, start))
		return Query{}
	}
	if into := sel.IntoClause; into != nil {
		at := base + int(into.GetRel().GetLocation())
		s.refuse(pgerror.New(pgerror.SyntaxError, "SELECT ... INTO is not allowed here").At(Position(s.text, at)))
		return Query{}
	}
	return Query{Stmt: stmt, Base: base, SQL: sql}
}

// parenQuery is `(query)`.
func (s *stream) parenQuery() Query {
	s.expectOp("(")
	q := s.queryUntil(s.closing())
	s.expectOp(")")
	return q
}

// exprUntil parses the expression in the tokens up to index end.
func (s *stream) exprUntil(end int) Expr {
	if s.err != nil {
		return Expr{}
	}
	if end <= s.i {
		s.unexpected()
		return Expr{}
	}
	sql := s.text[s.peek().start:s.toks[end-1].end]
	first, next := s.peek(), s.toks[end]
	stmt, base := s.embed("SELECT ", end, "")
	if stmt == nil {
		return Expr{}
	}
	sel := stmt.GetSelectStmt()
	plain := sel != nil && len(sel.TargetList) == 1 && sel.FromClause == nil && sel.WhereClause == nil &&
		sel.GroupClause == nil && sel.SortClause == nil && sel.LimitCount == nil && sel.LimitOffset == nil &&
		sel.Op == pg.SetOperation_SETOP_NONE
	if !plain || sel.TargetList[0].GetResTarget().GetName() != "" {
		if !plain {
			next = first
		}
		s.fail(syntaxErrorAt(s.text, next))
		return Expr{}
	}
	return Expr{Node: sel.TargetList[0].GetResTarget().GetVal(), Base: base, SQL: sql}
}

// typeUntil parses the type name in the tokens up to index end.
func (s *stream) typeUntil(end int) TypeName {
	if s.err != nil {
		return TypeName{}
	}
	if end <= s.i {
		s.unexpected()
		return TypeName{}
	}
	sql := s.text[s.peek().start:s.toks[end-1].end]
	stmt, base := s.embed("SELECT NULL::", end, "")
	sel := stmt.GetSelectStmt()
	if sel == nil || len(sel.TargetList) != 1 {
		return TypeName{}
	}
	c := sel.TargetList[0].GetResTarget().GetVal().GetTypeCast()
	return TypeName{Node: c.GetTypeName(), Base: base, SQL: sql}
}
