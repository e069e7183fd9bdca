// Package parser turns query text into syntax trees and back. PostgreSQL's own
// grammar (through pg_query) parses all that PostgreSQL can say; the streaming
// statements beyond it have a small recursive-descent parser that hands the
// queries and expressions inside of them to PostgreSQL's grammar.
package parser

import (
	"errors"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"
	pgparser "github.com/pganalyze/pg_query_go/v6/parser"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// Parse splits a query text into statements and parses each. A text without a
// statement gives none. The error is a *pgerror.Error with the 1-based
// character position in the whole text.
func Parse(text string) ([]Statement, error) {
	var out []Statement
	for _, p := range split(text) {
		n, err := parsePiece(text, p)
		if err != nil {
			return nil, err
		}
		out = append(out, Statement{Text: text, Start: p.start, Len: p.end - p.start, Node: n})
	}
	return out, nil
}

// Position is the 1-based character position of a byte offset in text.
func Position(text string, offset int) int {
	if offset < 0 {
		return 0
	}
	return utf8.RuneCountInString(text[:min(offset, len(text))]) + 1
}

func parsePiece(text string, p piece) (Node, error) {
	stmt, err := parsePostgres(text, p.start, p.whole)
	if err != nil {
		return nil, err
	}
	if sel := stmt.GetSelectStmt(); sel != nil && sel.IntoClause == nil {
		return &Select{Query{Stmt: stmt, Base: p.start, SQL: text[p.start:p.end]}}, nil
	}
	return &Postgres{Stmt: stmt, Base: p.start}, nil
}

// parsePostgres parses the single statement in text[start:end] by PostgreSQL's grammar.
func parsePostgres(text string, start, end int) (*pg.Node, error) {
	res, err := pg.Parse(text[start:end])
	if err != nil {
		return nil, postgresError(text, start, err)
	}
	if len(res.Stmts) != 1 {
		return nil, pgerror.New(pgerror.SyntaxError, "syntax error at end of input").At(Position(text, end))
	}
	return res.Stmts[0].Stmt, nil
}

// postgresError moves the position of PostgreSQL's parser into the whole text.
func postgresError(text string, start int, err error) error {
	var e *pgparser.Error
	if !errors.As(err, &e) {
		return err
	}
	out := pgerror.New(pgerror.SyntaxError, "%s", e.Message)
	if e.Cursorpos > 0 {
		out.Pos = Position(text, start) + e.Cursorpos - 1
	}
	return out
}
