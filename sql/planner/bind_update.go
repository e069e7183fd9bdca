package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// columns are the table's columns.
func (t *target) columns() []plan.Column { return GetOf(t.object).Cols }

// update binds UPDATE.
func (b *binder) update(s *pg.UpdateStmt, outer *cteScope) (*Write, error) {
	ctes, err := b.statementWith(s.WithClause, outer)
	if err != nil {
		return nil, err
	}
	t, err := b.target(s.Relation, "update")
	if err != nil {
		return nil, err
	}
	sel, err := b.changeScope(t, s.FromClause, ctes)
	if err != nil {
		return nil, err
	}
	b.rows = &sharedRows{}
	sets, err := b.assignments(t, sel, s.TargetList)
	rows := b.rows
	if b.rows = nil; err != nil {
		return nil, err
	}
	preds, err := sel.where(s.WhereClause)
	if err != nil {
		return nil, err
	}
	preds = t.preds(preds)
	rows.exprs = t.view.resolveAll(rows.exprs)
	out := &Write{Kind: WriteUpdate, Table: t.object, Joined: len(s.FromClause) > 0}
	if out.ViewChecks, err = b.viewChecks(t); err != nil {
		return nil, err
	}
	in := changed(t, sel, preds, out.Joined)
	cols := in.Columns()
	out.Rel = updateRows(t, rows.over(in, sets), sets, span(len(t.object.Columns), len(cols)))
	out.Returning, err = b.returning(t, s.ReturningList, cols, sel.scope.entries, ctes)
	return out, err
}

// sharedRows are the rows of `(a, b, …) = (SELECT …)` of an UPDATE whose queries are
// volatile: each is computed once for a row of the table, and the columns that are
// set take their values from it.
type sharedRows struct {
	exprs []expr.Expr
	cols  []plan.Column
	types []types.Type // of the fields of the last one
	pos   int
}

// sharedBase is where the columns of shared rows begin until their places are known.
const sharedBase = 1 << 19

// add takes a query in and gives its first field.
func (r *sharedRows) add(q *boundQuery, pos int) expr.Expr {
	rel := q.collection()
	record := types.Of(types.OIDRecord)
	row := &expr.Row{Typ: record, Names: make([]string, len(q.cols))}
	r.types, r.pos = nil, pos
	for i, c := range rel.Columns()[:len(q.cols)] {
		row.Fields = append(row.Fields, plan.RefTo(rel.Columns(), i))
		r.types = append(r.types, c.Type)
	}
	col := plan.Column{Name: "row", Type: record}
	one := &plan.Project{Input: rel, Exprs: []expr.Expr{row}, Cols: []plan.Column{col}}
	r.exprs = append(r.exprs, &expr.Subquery{Kind: expr.SubqueryScalar, Rel: one, Typ: record, Pos: pos})
	r.cols = append(r.cols, col)
	return r.field(0)
}

// field is a field of the last row.
func (r *sharedRows) field(i int) expr.Expr {
	at := sharedBase + len(r.exprs) - 1
	return expr.NewRecordField(&expr.Column{Index: at, Typ: r.cols[0].Type, Name: "row"}, i, r.types[i], r.pos)
}

// over is in with the rows as further columns, which sets then refer to.
func (r *sharedRows) over(in plan.Rel, sets map[int]expr.Expr) plan.Rel {
	if len(r.exprs) == 0 {
		return in
	}
	n := plan.Arity(in)
	for i, e := range sets {
		sets[i] = mapRefs(e, func(c *expr.Column) expr.Expr {
			if c.Index < sharedBase || c.Index >= sharedBase+len(r.exprs) {
				return c
			}
			return &expr.Column{Index: n + c.Index - sharedBase, Typ: c.Typ, Name: c.Name}
		}, func(c *expr.OuterColumn, _ int) expr.Expr { return c })
	}
	return extend(in, r.exprs, r.cols)
}

// volatileExpr says whether an expression, or a subquery in it, is volatile.
func volatileExpr(e expr.Expr) bool {
	return expr.VolatilityOf(e) == expr.Volatile || expr.Any(e, func(n expr.Expr) bool {
		s, ok := n.(*expr.Subquery)
		return ok && volatileRel(s.Rel.(plan.Rel))
	})
}

// volatileRel says whether a query has volatile expressions.
func volatileRel(rel plan.Rel) bool {
	found := false
	eachExpr(rel, func(e expr.Expr) { found = found || expr.VolatilityOf(e) == expr.Volatile })
	return found
}

// changed is the rows that UPDATE or DELETE changes, each with the rows of FROM
// or USING that it goes with.
func changed(t *target, sel *selectState, preds []expr.Expr, joined bool) plan.Rel {
	if !joined {
		return filter(GetOf(t.object), preds...)
	}
	return &plan.Join{Kind: plan.JoinInner, Left: GetOf(t.object), Right: sel.rel, On: preds}
}

// updateRows projects old rows, new rows and further columns of in, whose
// first columns are the target's.
func updateRows(t *target, in plan.Rel, sets map[int]expr.Expr, more []int) plan.Rel {
	cols := in.Columns()
	n := len(t.object.Columns)
	p := &plan.Project{Input: in}
	for i := range n {
		p.Exprs, p.Cols = append(p.Exprs, plan.RefTo(cols, i)), append(p.Cols, cols[i])
	}
	for i := range n {
		e, c := expr.Expr(plan.RefTo(cols, i)), cols[i]
		if v := sets[i]; v != nil {
			e, c.NotNull = v, neverNullIn(v, cols)
		}
		p.Exprs, p.Cols = append(p.Exprs, e), append(p.Cols, c)
	}
	for _, i := range more {
		p.Exprs, p.Cols = append(p.Exprs, plan.RefTo(cols, i)), append(p.Cols, cols[i])
	}
	return p
}

// delete binds DELETE.
func (b *binder) delete(s *pg.DeleteStmt, outer *cteScope) (*Write, error) {
	ctes, err := b.statementWith(s.WithClause, outer)
	if err != nil {
		return nil, err
	}
	t, err := b.target(s.Relation, "delete from")
	if err != nil {
		return nil, err
	}
	sel, err := b.changeScope(t, s.UsingClause, ctes)
	if err != nil {
		return nil, err
	}
	preds, err := sel.where(s.WhereClause)
	if err != nil {
		return nil, err
	}
	preds = t.preds(preds)
	out := &Write{Kind: WriteDelete, Table: t.object, Joined: len(s.UsingClause) > 0}
	if out.Joined && len(s.ReturningList) == 0 {
		out.Rel, out.Joined = &plan.Join{Kind: plan.JoinSemi, Left: GetOf(t.object), Right: sel.rel, On: preds}, false
		return out, nil
	}
	out.Rel = changed(t, sel, preds, out.Joined)
	out.Returning, err = b.returning(t, s.ReturningList, out.Rel.Columns(), sel.scope.entries, ctes)
	return out, err
}
