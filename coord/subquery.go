package coord

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow/render"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
)

// maxSubqueries bounds how deep queries of functions are in each other.
const maxSubqueries = 32

// lockedSubquery is subquery for the statement itself, whose rows may be
// computed by several goroutines: one runs a query at a time.
func (s *Session) lockedSubquery(sql string, emit func(cols []expr.QueryColumn, b *columnar.Batch) error) ([]expr.QueryColumn, error) {
	s.subqueries.Lock()
	defer s.subqueries.Unlock()
	return s.subquery(sql, emit, 1)
}

// subquery runs a query of a function's own, as query_to_xml's: it reads what the
// session would read now, and must not change anything.
func (s *Session) subquery(sql string, emit func(cols []expr.QueryColumn, b *columnar.Batch) error, depth int) ([]expr.QueryColumn, error) {
	if depth > maxSubqueries {
		return nil, pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded")
	}
	stmts, err := parser.Parse(sql)
	if err != nil {
		return nil, err
	}
	if len(stmts) != 1 {
		return nil, pgerror.New(pgerror.DataException, "invalid query")
	}
	p := &prepared{sql: sql, stmt: &stmts[0]}
	_, selects := p.stmt.Node.(*parser.Select)
	if !selects && emit == nil {
		return nil, pgerror.New(pgerror.InvalidCursorDefinition, "cannot open %s query as cursor", statementTag(p.stmt))
	}
	if !selects {
		return nil, errWritingSubquery(statementTag(p.stmt))
	}
	if err := s.analyze(p); err != nil {
		return nil, err
	}
	q, ok := p.bound.(*planner.Query)
	switch {
	case !ok || len(q.Steps) > 0:
		return nil, errWritingSubquery("SELECT")
	case p.asOf != nil:
		return nil, pgerror.Unsupported("AS OF in a query of a function")
	case len(p.params) > 0:
		return nil, pgerror.New(pgerror.UndefinedParameter, "there is no parameter $1")
	}
	cols := make([]expr.QueryColumn, len(p.columns))
	for i, c := range p.columns {
		cols[i] = expr.QueryColumn{Name: c.Name, Type: c.Type}
	}
	if emit == nil {
		return cols, nil
	}
	ctx := s.statementContext()
	r, err := s.openReader(ctx, false, p.rel)
	if err != nil {
		return nil, err
	}
	defer r.close()
	r.ctx.Query = func(sql string, emit func(cols []expr.QueryColumn, b *columnar.Batch) error) ([]expr.QueryColumn, error) {
		return s.subquery(sql, emit, depth+1)
	}
	ctx, m := s.c.memory.enter(ctx)
	defer s.c.memory.leave(m)
	mem := &render.Memory{Sort: s.c.sortMemory(), Temp: s.c.tempFile, Made: m.add, Wrote: s.set.tempLimit()}
	// It runs in its caller: that one is a worker already.
	return cols, render.RunOnce(ctx, p.rel, r, render.Options{Once: true, Context: r.ctx, Memory: mem}, func(b *columnar.Batch) error {
		return emit(cols, firstCols(b, len(cols)))
	})
}

func errWritingSubquery(what string) error {
	return pgerror.New(pgerror.FeatureNotSupported, "%s is not allowed in a non-volatile function", what)
}
