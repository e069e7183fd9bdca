package coord

import (
	"context"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/types"
)

// maxCalls bounds the nesting of functions whose statements are run.
const maxCalls = 100

// callFunction runs the statements of a function that changes tables, or of a
// procedure, and gives what the last one returns, as the columns of the result.
func (s *Session) callFunction(ctx context.Context, o *catalog.Object, args []*expr.Const, w pgwire.ResultWriter) (*columnar.Batch, error) {
	f := o.Function
	if f.Strict {
		for _, a := range args {
			if a.Val.Null(0) {
				return nullResult(f), nil
			}
		}
	}
	if s.calls++; s.calls > maxCalls {
		s.calls = 0
		return nil, pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded")
	}
	outer := s.arguments
	defer func() { s.calls, s.arguments = max(s.calls-1, 0), outer }()
	stmts, err := parser.Parse(f.Body)
	if err != nil {
		return nil, err
	}
	if err := allowedIn(f, stmts); err != nil {
		return nil, err
	}
	s.arguments = &planner.Arguments{Function: o.Name, Args: f.Args, Values: args}
	var last *prepared
	var rows *rowKeeper
	for i := range stmts {
		last, rows = &prepared{stmt: &stmts[i], sql: stmts[i].SQL()}, &rowKeeper{ResultWriter: w}
		err := s.analyze(last)
		if err == nil {
			_, err = s.execute(ctx, last, nil, rows)
		}
		if err != nil {
			e := *pgerror.As(err)
			e.Pos = 0 // it is not one of the statement that called
			return nil, &e
		}
	}
	if last == nil || f.Returns.OID == types.OIDVoid {
		return nullResult(f), nil
	}
	return s.functionRows(f, last, rows)
}

// allowedIn refuses statements that change tables in a function that is not volatile.
func allowedIn(f *catalog.Function, stmts []parser.Statement) error {
	if f.Volatility == "volatile" {
		return nil
	}
	for _, st := range stmts {
		if _, query := st.Node.(*parser.Select); !query {
			return pgerror.New(pgerror.FeatureNotSupported, "%s is not allowed in a non-volatile function", statementTag(&st))
		}
	}
	return nil
}

// nullResult is what a function gives that gives nothing: no rows, or a NULL.
func nullResult(f *catalog.Function) *columnar.Batch {
	n := 1
	if f.Set {
		n = 0
	}
	out := &columnar.Batch{N: n}
	for _, t := range planner.ResultTypes(f) {
		b := columnar.NewBuilder(t.Kind(), n)
		for range n {
			b.Null()
		}
		out.Cols = append(out.Cols, b.Build())
	}
	return out
}

// functionRows gives the rows of the last statement of a function the types that
// it returns. A function that returns no set gives the first, or NULLs.
func (s *Session) functionRows(f *catalog.Function, last *prepared, rows *rowKeeper) (*columnar.Batch, error) {
	var cols []planner.ResultColumn
	switch b := last.bound.(type) {
	case *planner.Query:
		cols = b.Columns
	case *planner.Write:
		if b.Returning != nil {
			cols = b.Returning.Columns
		}
	}
	casts, err := planner.ResultCasts(f, cols)
	if err != nil {
		return nil, err
	}
	kinds := make([]columnar.Kind, len(cols))
	for i, c := range cols {
		kinds[i] = c.Type.Kind()
	}
	all := columnar.ConcatBatches(kinds, rows.batches...)
	if !f.Set {
		if all.N == 0 {
			return nullResult(f), nil
		}
		all = all.Slice(0, 1)
	}
	prog, err := expr.Compile(expr.MapFilterProject{Outputs: casts})
	if err != nil {
		return nil, err
	}
	out, _, errs := prog.Apply(s.exprContext(), &all, nil)
	if len(errs) > 0 {
		return nil, errs[0].Err
	}
	return &out, nil
}

// constsOf are the values of the columns of row i of rows.
func constsOf(rows *columnar.Batch, ts []types.Type, from, i int) []*expr.Const {
	out := make([]*expr.Const, len(ts))
	for k, t := range ts {
		out[k] = &expr.Const{Val: rows.Cols[from+k].Gather([]uint32{uint32(i)}), Typ: t}
	}
	return out
}

// execCalls runs a query that calls functions that change tables, once for each
// row, in the order of the rows.
func (s *Session) execCalls(ctx context.Context, p *prepared, q *planner.Query, params []*expr.Const, w pgwire.ResultWriter) (string, error) {
	rows, err := s.writingRows(ctx, p, q, params, w)
	if err != nil {
		return "", err
	}
	if err := w.Begin(p.columns); err != nil {
		return "", err
	}
	n := 0
	for i := range rows.N {
		one := rows.Gather([]uint32{uint32(i)})
		sets := 0
		for _, c := range q.Calls {
			f := c.Function.Function
			if f.Set {
				sets++
			}
			ts := make([]types.Type, len(f.Args))
			for k, a := range f.Args {
				ts[k] = a.Type.Storage()
			}
			out, err := s.callFunction(ctx, c.Function, constsOf(rows, ts, c.From, i), w)
			if err != nil {
				return "", err
			}
			if sets > 1 {
				return "", pgerror.Unsupported("two functions that change tables and return sets in one select list")
			}
			if out.N != 1 { // each row of the set with the other items
				one = one.Gather(make([]uint32, out.N))
			}
			if one.Cols[c.Column], err = packedRows(f, out); err != nil {
				return "", err
			}
			if one.N > out.N {
				one.Cols[c.Column] = one.Cols[c.Column].Gather(make([]uint32, one.N))
			}
		}
		n += one.N
		if err := w.Rows(firstCols(&one, len(p.columns)), 0, one.N); err != nil {
			return "", err
		}
	}
	return selectTag(n), nil
}

// packedRows are the rows of a function as one column: records, if it has several.
func packedRows(f *catalog.Function, rows *columnar.Batch) (*columnar.Vec, error) {
	if len(f.Table) < 2 {
		return rows.Cols[0], nil
	}
	fields, names := make([]expr.Expr, len(f.Table)), make([]string, len(f.Table))
	for i, a := range f.Table {
		fields[i], names[i] = &expr.Column{Index: i, Typ: a.Type.Storage(), Name: a.Name}, a.Name
	}
	prog, err := expr.Compile(expr.MapFilterProject{Outputs: []expr.Expr{expr.NewNamedRow(fields, names)}})
	if err != nil {
		return nil, err
	}
	out, _, errs := prog.Apply(&expr.Context{}, rows, nil)
	if len(errs) > 0 {
		return nil, errs[0].Err
	}
	return out.Cols[0], nil
}

// callStep runs a call in FROM.
func (r *writeRun) callStep(c *planner.Call) (*columnar.Batch, error) {
	args := make([]*expr.Const, len(c.Args))
	for i, a := range c.Args {
		if len(r.params) > 0 {
			a = expr.BindParams(a, r.params)
		}
		var err error
		if args[i], err = expr.EvalConst(a, r.s.exprContext()); err != nil {
			return nil, err
		}
	}
	return r.s.callFunction(r.ctx, c.Function, args, r.results)
}

// boundCall is the procedure that CALL names, and its arguments.
func (s *Session) boundCall(p *prepared, n *pg.CallStmt) (*catalog.Object, []expr.Expr, error) {
	return planner.BindCall(s.bindContext(p.declared), p.stmt.Text, p.stmt.Start, n.Funccall)
}

// callColumns are the columns of what a procedure returns, nil for none.
func callColumns(f *catalog.Function) []pgwire.Column {
	var out []pgwire.Column
	for _, a := range f.Table {
		out = append(out, pgwire.Column{Name: a.Name, Type: a.Type.Storage()})
	}
	return out
}

// execCall runs CALL.
func (s *Session) execCall(ctx context.Context, p *prepared, n *pg.CallStmt, w pgwire.ResultWriter) (string, error) {
	o, exprs, err := s.boundCall(p, n)
	if err != nil {
		return "", err
	}
	args := make([]*expr.Const, len(exprs))
	for i, e := range exprs {
		if args[i], err = s.constant(ctx, e); err != nil {
			return "", err
		}
	}
	rows, err := s.callFunction(ctx, o, args, w)
	if err != nil || o.Function.Table == nil {
		return "CALL", err
	}
	if err := w.Begin(callColumns(o.Function)); err != nil {
		return "", err
	}
	return "CALL", w.Rows(rows, 0, rows.N)
}

// constant evaluates an argument.
func (s *Session) constant(ctx context.Context, e expr.Expr) (*expr.Const, error) {
	sub := false
	expr.Walk(e, func(x expr.Expr) bool {
		_, is := x.(*expr.Subquery)
		sub = sub || is
		return true
	})
	if sub {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "cannot use subquery in CALL argument").At(expr.PosOf(e))
	}
	return expr.EvalConst(e, s.exprContext())
}
