package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
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
	sets, err := b.assignments(t, sel, s.TargetList)
	if err != nil {
		return nil, err
	}
	preds, err := sel.where(s.WhereClause)
	if err != nil {
		return nil, err
	}
	preds = t.preds(preds)
	out := &Write{Kind: WriteUpdate, Table: t.object, Joined: len(s.FromClause) > 0}
	if out.ViewChecks, err = t.viewChecks(); err != nil {
		return nil, err
	}
	in := changed(t, sel, preds, out.Joined)
	cols := in.Columns()
	out.Rel = updateRows(t, in, sets, span(len(t.object.Columns), len(cols)))
	out.Returning, err = b.returning(t, s.ReturningList, cols, sel.scope.entries, ctes)
	return out, err
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
