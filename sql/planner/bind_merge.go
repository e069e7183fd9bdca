package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// merger binds MERGE. Its rows are the join of the target with the source, each
// side with a column that tells whether it is there: the target's n columns and
// that one, then the source's and that one.
type merger struct {
	*binder
	t      *target
	sel    *selectState
	source []*entry
	n      int // columns of the target
	m      int // columns of the source
	rel    plan.Rel
	write  *Write
	// whens choose the action of a row; values are the new rows of the actions.
	whens  []expr.When
	values [][]expr.Expr
}

// merge binds MERGE.
func (b *binder) merge(s *pg.MergeStmt, outer *cteScope) (*Write, error) {
	ctes, err := b.statementWith(s.WithClause, outer)
	if err != nil {
		return nil, err
	}
	b.mergeVerbs = mergeVerbs(s)
	t, err := b.target(s.Relation, "merge into")
	if err != nil {
		return nil, err
	}
	sel := &selectState{binder: b, ctes: ctes, scope: newScope(nil)}
	if err := b.from(sel, []*pg.Node{s.SourceRelation}); err != nil {
		return nil, err
	}
	if err := checkNames([]*entry{t.entry}, sel.scope.entries); err != nil {
		return nil, pgerror.New(pgerror.DuplicateAlias, "name \"%s\" specified more than once", t.entry.name).
			WithDetail("The name is used both as MERGE target table and data source.")
	}
	always := map[pg.MergeMatchKind]bool{} // those that a clause without condition decides
	for _, n := range s.MergeWhenClauses {
		w := n.GetMergeWhenClause()
		if always[w.MatchKind] {
			return nil, pgerror.New(pgerror.SyntaxError, "unreachable WHEN clause specified after unconditional WHEN clause")
		}
		always[w.MatchKind] = w.Condition == nil
	}
	checks, err := b.viewChecks(t)
	if err != nil {
		return nil, err
	}
	g := &merger{binder: b, t: t, sel: sel, source: sel.scope.entries, n: len(t.object.Columns), m: plan.Arity(sel.rel),
		write: &Write{Kind: WriteMerge, Table: t.object, ViewChecks: checks}}
	shift(sel.scope.all, g.n+1)
	sel.scope.all = append([]*entry{t.entry}, sel.scope.all...)
	if err := g.join(s); err != nil {
		return nil, err
	}
	for _, w := range s.MergeWhenClauses {
		if err := g.when(w.GetMergeWhenClause()); err != nil {
			return nil, err
		}
	}
	g.finish()
	return g.write, g.returning(s.ReturningList)
}

// mergeVerbs are the words of the actions of MERGE, as errors of views have them.
func mergeVerbs(s *pg.MergeStmt) []string {
	var out []string
	for _, n := range s.MergeWhenClauses {
		switch n.GetMergeWhenClause().CommandType {
		case pg.CmdType_CMD_INSERT:
			out = append(out, "insert into")
		case pg.CmdType_CMD_UPDATE:
			out = append(out, "update")
		case pg.CmdType_CMD_DELETE:
			out = append(out, "delete from")
		}
	}
	return out
}

// see makes the target, the source or both visible to expressions.
func (g *merger) see(target, source bool) {
	g.sel.scope.entries = nil
	if target {
		g.sel.scope.entries = append(g.sel.scope.entries, g.t.entry)
	}
	if source {
		g.sel.scope.entries = append(g.sel.scope.entries, g.source...)
	}
}

// join joins the target with the source, keeping the rows of either that match
// nothing if an action wants them.
func (g *merger) join(s *pg.MergeStmt) error {
	g.see(true, true)
	on, err := g.sel.in(inJoinOn).condition(s.JoinCondition, "MERGE")
	if err != nil {
		return err
	}
	on = g.t.view.resolve(on)
	targets, sources := false, false
	for _, w := range s.MergeWhenClauses {
		switch w.GetMergeWhenClause().MatchKind {
		case pg.MergeMatchKind_MERGE_WHEN_NOT_MATCHED_BY_SOURCE:
			targets = true
		case pg.MergeMatchKind_MERGE_WHEN_NOT_MATCHED_BY_TARGET:
			sources = true
		}
	}
	kind := plan.JoinInner
	switch {
	case targets && sources:
		kind = plan.JoinFull
	case targets:
		kind = plan.JoinLeft
	case sources:
		kind = plan.JoinRight
	}
	present := func(r plan.Rel) plan.Rel {
		return extend(r, []expr.Expr{boolConst(true)}, []plan.Column{{Name: "present", Type: types.Bool, NotNull: true}})
	}
	g.rel = &plan.Join{Kind: kind, Left: present(filter(GetOf(g.t.object), g.t.preds(nil)...)), Right: present(g.sel.rel), On: conjuncts([]expr.Expr{on})}
	return nil
}

// there tells whether the target or the source of a row is there.
func (g *merger) there(col int, yes bool) expr.Expr {
	return expr.NewIsNull(&expr.Column{Index: col, Typ: types.Bool, Name: "present"}, yes)
}

// when binds one WHEN clause.
func (g *merger) when(w *pg.MergeWhenClause) error {
	conds := []expr.Expr{g.there(g.n, w.MatchKind != pg.MergeMatchKind_MERGE_WHEN_NOT_MATCHED_BY_TARGET)}
	conds = append(conds, g.there(g.n+1+g.m, w.MatchKind != pg.MergeMatchKind_MERGE_WHEN_NOT_MATCHED_BY_SOURCE))
	g.see(w.MatchKind != pg.MergeMatchKind_MERGE_WHEN_NOT_MATCHED_BY_TARGET, w.MatchKind != pg.MergeMatchKind_MERGE_WHEN_NOT_MATCHED_BY_SOURCE)
	if w.Condition != nil {
		c, err := g.sel.in(everything("MERGE WHEN AND condition")).condition(w.Condition, "WHEN")
		if err != nil {
			return err
		}
		conds = append(conds, g.t.view.resolve(c))
	}
	action := int32(0)
	switch w.CommandType {
	case pg.CmdType_CMD_NOTHING:
	case pg.CmdType_CMD_INSERT:
		row, err := g.insertAction(w)
		if err != nil {
			return err
		}
		action = g.add(WriteInsert, row)
	case pg.CmdType_CMD_UPDATE:
		sets, err := g.assignments(g.t, g.sel, w.TargetList)
		if err != nil {
			return err
		}
		row := plan.Refs(g.t.columns())
		for i, v := range sets {
			row[i] = v
		}
		action = g.add(WriteUpdate, row)
	case pg.CmdType_CMD_DELETE:
		action = g.add(WriteDelete, nil)
	}
	g.whens = append(g.whens, expr.When{Cond: &expr.Logic{And: true, Args: conds}, Then: int32Const(action)})
	return nil
}

// add notes an action and gives its number.
func (g *merger) add(k WriteKind, row []expr.Expr) int32 {
	g.write.Actions = append(g.write.Actions, k)
	g.values = append(g.values, row)
	return int32(len(g.write.Actions))
}

// insertAction binds INSERT (…) VALUES (…).
func (g *merger) insertAction(w *pg.MergeWhenClause) ([]expr.Expr, error) {
	into, err := g.insertColumns(g.t, w.TargetList)
	if err != nil {
		return nil, err
	}
	in := inserter{binder: g.binder, t: g.t, into: into, stmt: &pg.InsertStmt{Cols: w.TargetList, Override: w.Override},
		given: make([]expr.Expr, len(g.t.object.Columns))}
	if len(w.Values) > 0 {
		if err := g.checkCount(in.stmt, into, len(w.Values), func() int { return g.pos(nodeLocation(w.Values[len(into)])) }); err != nil {
			return nil, err
		}
	}
	slots, err := in.slots(len(w.Values))
	if err != nil {
		return nil, err
	}
	x := g.sel.in(inValues)
	for i, n := range w.Values {
		if n.GetSetToDefault() != nil {
			if steps := in.steps(i); len(steps) > 0 {
				return nil, noDefaultPart(steps, g.pos(w.TargetList[i].GetResTarget().Location))
			}
			continue
		}
		c := &slots[i]
		pos := g.pos(nodeLocation(n))
		unused, err := in.overridden(c)
		if err != nil {
			return nil, err
		}
		e, err := x.expr(n)
		if err != nil {
			return nil, err
		}
		if e, err = in.assign(i, c, e, pos); err != nil {
			return nil, err
		}
		if !unused {
			if err := in.give(i, e); err != nil {
				return nil, err
			}
		}
	}
	return in.row()
}

// finish makes the plan: the action of each row first, then the new rows of
// those that have one.
func (g *merger) finish() {
	number := plan.Column{Name: "action", Type: types.Int4}
	choose := &expr.Case{Whens: g.whens, Else: int32Const(0), Typ: types.Int4}
	rel := extend(g.rel, []expr.Expr{choose}, []plan.Column{number})
	cols := rel.Columns()
	at := len(cols) - 1
	is := func(k int) expr.Expr {
		e, err := expr.NewOp("=", plan.RefTo(cols, at), int32Const(int32(k)), 0)
		if err != nil {
			panic(err) // int4 = int4 exists
		}
		return e
	}
	some, err := expr.NewOp(">", plan.RefTo(cols, at), int32Const(0), 0)
	if err != nil {
		panic(err) // int4 > int4 exists
	}
	p := &plan.Project{Input: filter(rel, some)}
	put := func(e expr.Expr, c plan.Column) {
		p.Exprs, p.Cols = append(p.Exprs, e), append(p.Cols, c)
	}
	for i := range g.n {
		put(plan.RefTo(cols, i), cols[i])
	}
	for i, c := range g.t.columns() {
		v := &expr.Case{Typ: c.Type}
		for k, row := range g.values {
			if row != nil {
				v.Whens = append(v.Whens, expr.When{Cond: is(k + 1), Then: row[i]})
			}
		}
		c.NotNull = false
		if len(v.Whens) == 0 {
			put(nullConst(c.Type), c)
			continue
		}
		put(v, c)
	}
	for i := range g.m {
		put(plan.RefTo(cols, g.n+1+i), cols[g.n+1+i])
	}
	put(plan.RefTo(cols, at), number)
	g.write.Rel = p
}

// returning binds RETURNING: the source's columns come first in *, then the
// target's; merge_action() is the column after them.
func (g *merger) returning(list []*pg.Node) error {
	shift(g.source, -1)
	cols := g.t.columns()
	for i := range cols {
		cols[i].NotNull = false
	}
	for _, c := range g.sel.rel.Columns() {
		c.NotNull = false
		cols = append(cols, c)
	}
	cols = append(cols, plan.Column{Name: "merge_action", Type: types.Text, NotNull: true})
	g.mergeAction = &expr.Column{Index: len(cols) - 1, Typ: types.Text, Name: "merge_action"}
	defer func() { g.mergeAction = nil }()
	var err error
	g.write.Returning, err = g.binder.returning(g.t, list, cols, append(g.source[:len(g.source):len(g.source)], g.t.entry), g.sel.ctes)
	return err
}

// mergeActionRef binds merge_action().
func (x exprBinder) mergeActionRef(f *pg.MergeSupportFunc) (expr.Expr, error) {
	if x.mergeAction == nil {
		return nil, pgerror.New(pgerror.SyntaxError, "MERGE_ACTION() can only be used in the RETURNING list of a MERGE command").At(x.pos(f.Location))
	}
	return x.mergeAction, nil
}
