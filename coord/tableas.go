package coord

import (
	"context"
	"fmt"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
)

// createTableAs runs CREATE TABLE AS and SELECT INTO: the table and its rows
// enter at one epoch.
func (s *Session) createTableAs(ctx context.Context, d *ddlState, p *prepared, n *parser.CreateTableAs, w pgwire.ResultWriter) (string, error) {
	schema, exists, err := s.targetIn(d, catalog.KindTable, n.Name, n.Temp)
	if err != nil {
		return "", err
	}
	if skip, err := taken(exists, n.IfNotExists, w); skip || err != nil {
		return "CREATE TABLE AS", err
	}
	q, params, err := s.tableSource(p, n)
	if err != nil {
		return "", err
	}
	bound := q.bound.(*planner.Query)
	if len(n.Columns) > len(bound.Columns) {
		return "", pgerror.New(pgerror.SyntaxError, "too many column names were specified")
	}
	cols, err := viewColumns(bound, n.Columns)
	if err != nil {
		return "", err
	}
	o := &catalog.Object{Schema: schema, Name: n.Name.Name, Kind: catalog.KindTable, Columns: cols,
		Temporary: schema == s.tempSchema, OnCommit: n.OnCommit}
	for i := range o.Columns {
		o.Columns[i].NotNull = false
	}
	s.onCommit = s.onCommit || n.OnCommit != ""
	o.SQL = tableSQL(d.cat, o)
	if o, err = s.c.newObject(o); err != nil {
		return "", err
	}
	rows := 0
	if !n.WithNoData {
		if err := s.rowsForTable(ctx, q, params, func(b *columnar.Batch) error {
			rows += b.N
			s.tx.write(o.ID, &dataflow.Delta{Batch: *firstCols(b, len(cols))})
			return nil
		}); err != nil {
			return "", err
		}
	}
	d.apply(catalog.Change{Put: o})
	if n.WithNoData {
		return "CREATE TABLE AS", nil
	}
	return fmt.Sprintf("SELECT %d", rows), nil
}

// tableSource is the query of CREATE TABLE AS, its own or that of the prepared
// statement it executes.
func (s *Session) tableSource(p *prepared, n *parser.CreateTableAs) (*prepared, []*expr.Const, error) {
	e := n.Query.Stmt.GetExecuteStmt()
	if e == nil {
		st := *p.stmt
		st.Node = &parser.Select{Query: n.Query}
		q := &prepared{stmt: &st, sql: p.sql}
		return q, nil, s.analyze(q)
	}
	q, params, err := s.executed(p.stmt.Text, e, n.Query.Base)
	if err != nil {
		return nil, nil, err
	}
	if _, ok := q.bound.(*planner.Query); !ok {
		return nil, nil, pgerror.New(pgerror.WrongObjectType, "prepared statement is not a SELECT")
	}
	return q, params, nil
}

// rowsForTable gives the rows of a query for a statement that writes them.
func (s *Session) rowsForTable(ctx context.Context, q *prepared, params []*expr.Const, f func(b *columnar.Batch) error) error {
	b := q.bound.(*planner.Query)
	if len(b.Calls) > 0 {
		return pgerror.Unsupported("a query that calls functions that change tables for its rows, for a new table")
	}
	if len(b.Steps) > 0 {
		rows, err := s.writingRows(ctx, q, b, params, nil)
		if err != nil {
			return err
		}
		return f(rows)
	}
	run := func() error { return s.runQuery(ctx, q.rel, params, true, f) }
	if q.asOf != nil {
		return s.asOf(ctx, q, run)
	}
	return run()
}
