package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// target is the table that a statement changes.
type target struct {
	object *catalog.Object
	entry  *entry
}

// target finds the table to change. verb is "insert into", "update", "delete from".
func (b *binder) target(r *pg.RangeVar, verb string) (*target, error) {
	o, err := b.relation(r)
	if err != nil {
		return nil, err
	}
	pos := b.pos(r.Location)
	switch o.Kind {
	case catalog.KindTable:
	case catalog.KindMaterializedView:
		return nil, pgerror.New(pgerror.WrongObjectType, "cannot change materialized view \"%s\"", o.Name)
	case catalog.KindVirtual:
		return nil, pgerror.New(pgerror.InsufficientPrivilege, "permission denied for table %s", o.Name).At(pos)
	case catalog.KindIndex:
		return nil, pgerror.New(pgerror.WrongObjectType, "cannot open relation \"%s\"", o.Name).
			WithDetail("This operation is not supported for indexes.").At(pos)
	default:
		return nil, pgerror.New(pgerror.WrongObjectType, "cannot %s %s \"%s\"", verb, o.Kind, o.Name).At(pos)
	}
	b.use(o)
	e := objectEntry(o)
	if err := e.rename(r.Alias, pos); err != nil {
		return nil, err
	}
	return &target{object: o, entry: e}, nil
}

// column finds a column of the target by name.
func (b *binder) targetColumn(t *target, name string, loc int32) (int, error) {
	for i, c := range t.object.Columns {
		if c.Name == name {
			return i, nil
		}
	}
	return 0, pgerror.New(pgerror.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, t.object.Name).At(b.pos(loc))
}

// assign converts a value for storing into a column.
func assign(c *catalog.Column, e expr.Expr, pos int) (expr.Expr, error) {
	if !expr.CanCoerce(e.Type(), c.Type, expr.CastAssignment) {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "column \"%s\" is of type %s but expression is of type %s",
			c.Name, types.Of(c.Type.OID), types.Of(e.Type().OID)).
			WithHint("You will need to rewrite or cast the expression.").At(pos)
	}
	return expr.Coerce(e, c.Type, expr.CastAssignment, pos)
}

// defaultOf is the default value of a column.
func (b *binder) defaultOf(c *catalog.Column) (expr.Expr, error) {
	if c.Default == "" {
		return nullConst(c.Type), nil
	}
	e, err := parser.ParseExpr(c.Default)
	if err != nil {
		return nil, err
	}
	save := b.src
	b.src = newSource(c.Default, e.Base)
	b.src.silent = true
	defer func() { b.src = save }()
	x := exprBinder{binder: b, scope: &scope{depth: 1, kind: everything("DEFAULT expressions")}}
	v, err := x.expr(e.Node)
	if err != nil {
		return nil, err
	}
	return assign(c, v, 0)
}

// insert binds INSERT.
func (b *binder) insert(s *pg.InsertStmt) (Bound, error) {
	ctes, err := b.statementWith(s.WithClause)
	if err != nil {
		return nil, err
	}
	t, err := b.target(s.Relation, "insert into")
	if err != nil {
		return nil, err
	}
	if s.OnConflictClause != nil {
		return nil, pgerror.Unsupported("ON CONFLICT").At(b.pos(s.OnConflictClause.Location))
	}
	into, err := b.insertColumns(t, s.Cols)
	if err != nil {
		return nil, err
	}
	var rel plan.Rel
	sel := s.SelectStmt.GetSelectStmt()
	switch {
	case sel == nil:
		rel, err = b.insertRows(t, nil, [][]*pg.Node{{}}, ctes, s)
	case len(sel.ValuesLists) > 0 && sel.SortClause == nil && sel.LimitCount == nil && sel.LimitOffset == nil && sel.WithClause == nil:
		rows := make([][]*pg.Node, len(sel.ValuesLists))
		for i, l := range sel.ValuesLists {
			rows[i] = l.GetList().GetItems()
		}
		rel, err = b.insertRows(t, into, rows, ctes, s)
	default:
		rel, err = b.insertQuery(t, into, sel, ctes, s)
	}
	if err != nil {
		return nil, err
	}
	out := &Insert{Table: t.object}
	if rel, out.Returning, err = b.returning(s.ReturningList, rel, []*entry{t.entry}, ctes); err != nil {
		return nil, err
	}
	if out.Params, err = b.finishParams(); err != nil {
		return nil, err
	}
	out.DeepDeps = b.deep
	out.Rel, err = b.finishRel(rel)
	return out, err
}

func (b *binder) statementWith(w *pg.WithClause) (*cteScope, error) {
	if w == nil {
		return nil, nil
	}
	return b.with(w, nil, nil)
}

// insertColumns lists the columns that an INSERT gives values for.
func (b *binder) insertColumns(t *target, list []*pg.Node) ([]int, error) {
	var out []int
	if len(list) == 0 {
		for i, c := range t.object.Columns {
			if !c.Hidden {
				out = append(out, i)
			}
		}
		return out, nil
	}
	for _, n := range list {
		r := n.GetResTarget()
		if len(r.Indirection) > 0 {
			return nil, pgerror.Unsupported("INSERT into a part of a column").At(b.pos(r.Location))
		}
		i, err := b.targetColumn(t, r.Name, r.Location)
		if err != nil {
			return nil, err
		}
		for _, have := range out {
			if have == i {
				return nil, pgerror.New(pgerror.DuplicateColumn, "column \"%s\" specified more than once", r.Name).At(b.pos(r.Location))
			}
		}
		out = append(out, i)
	}
	return out, nil
}

// checkCount compares the number of values with that of columns. Without a
// column list fewer values are fine: the other columns get their defaults.
func (b *binder) checkCount(s *pg.InsertStmt, into []int, n int, extra func() int) error {
	switch {
	case n > len(into):
		return pgerror.New(pgerror.SyntaxError, "INSERT has more expressions than target columns").At(extra())
	case n < len(into) && len(s.Cols) > 0:
		return pgerror.New(pgerror.SyntaxError, "INSERT has more target columns than expressions").
			At(b.pos(s.Cols[n].GetResTarget().GetLocation()))
	}
	return nil
}

// insertRows binds the rows of VALUES, each cell for its column.
func (b *binder) insertRows(t *target, into []int, lists [][]*pg.Node, ctes *cteScope, s *pg.InsertStmt) (plan.Rel, error) {
	sc := newScope(nil)
	sc.kind = inValues
	x := exprBinder{binder: b, scope: sc, ctes: ctes}
	cols := t.object.Columns
	rows := make([][]expr.Expr, len(lists))
	for r, list := range lists {
		if r > 0 && len(list) != len(lists[0]) {
			return nil, pgerror.New(pgerror.SyntaxError, "VALUES lists must all be the same length").At(b.pos(nodeLocation(list[0])))
		}
		if err := b.checkCount(s, into, len(list), func() int { return b.pos(nodeLocation(list[len(into)])) }); err != nil {
			return nil, err
		}
		row := make([]expr.Expr, len(cols))
		for i, n := range list {
			if n.GetSetToDefault() != nil {
				continue
			}
			e, err := x.expr(n)
			if err != nil {
				return nil, err
			}
			if row[into[i]], err = assign(&cols[into[i]], e, b.pos(nodeLocation(n))); err != nil {
				return nil, err
			}
		}
		for i := range row {
			if row[i] != nil {
				continue
			}
			var err error
			if row[i], err = b.defaultOf(&cols[i]); err != nil {
				return nil, err
			}
		}
		rows[r] = row
	}
	out := make([]plan.Column, len(cols))
	for i, c := range cols {
		out[i] = plan.Column{Name: c.Name, Type: c.Type}
	}
	return valuesRel(rows, out), nil
}

// insertQuery binds INSERT … SELECT.
func (b *binder) insertQuery(t *target, into []int, sel *pg.SelectStmt, ctes *cteScope, s *pg.InsertStmt) (plan.Rel, error) {
	q, err := b.query(sel, nil, ctes, keepUnknown)
	if err != nil {
		return nil, err
	}
	if err := b.checkCount(s, into, len(q.cols), func() int { return q.cols[len(into)].pos }); err != nil {
		return nil, err
	}
	source := &boundQuery{rel: q.collection(), cols: q.cols}
	at := make([]int, len(t.object.Columns)) // column of the query, -1 for the default
	for i := range at {
		at[i] = -1
		for k := range q.cols {
			if into[k] != i {
				continue
			}
			at[i] = k
			if source.rel.Columns()[k].Type.OID == types.OIDUnknown { // a literal: it is of the column's type
				if err := coerceOutput(source, k, t.object.Columns[i].Type); err != nil {
					return nil, err
				}
			}
		}
	}
	in := source.rel.Columns()
	p := &plan.Project{Input: source.rel}
	for i := range t.object.Columns {
		c := &t.object.Columns[i]
		var e expr.Expr
		if at[i] < 0 {
			e, err = b.defaultOf(c)
		} else {
			e, err = assign(c, plan.RefTo(in, at[i]), q.cols[at[i]].pos)
		}
		if err != nil {
			return nil, err
		}
		p.Exprs = append(p.Exprs, e)
		p.Cols = append(p.Cols, plan.Column{Name: c.Name, Type: c.Type, NotNull: neverNullIn(e, in)})
	}
	return p, nil
}

// returning binds RETURNING over the rows of rel, whose columns the entries
// name. What needs a subquery becomes a further column of rel.
func (b *binder) returning(list []*pg.Node, rel plan.Rel, entries []*entry, ctes *cteScope) (plan.Rel, *Returning, error) {
	if len(list) == 0 {
		return rel, nil, nil
	}
	sel := &selectState{binder: b, ctes: ctes, scope: newScope(nil)}
	sel.scope.entries = entries
	if err := sel.targetList(list, inReturning); err != nil {
		return nil, nil, err
	}
	r := &Returning{}
	var extra []expr.Expr
	var cols []plan.Column
	arity := plan.Arity(rel)
	in := rel.Columns()
	for _, it := range sel.items {
		e, err := textIfUnknown(it.expr)
		if err != nil {
			return nil, nil, err
		}
		c := plan.Column{Name: it.name, Type: e.Type(), NotNull: neverNullIn(e, in)}
		if b.ctx.Session != nil {
			if e, err = expr.FoldLiterals(e, b.ctx.Session); err != nil {
				return nil, nil, err
			}
		}
		if hasSubquery(e) {
			extra, cols = append(extra, e), append(cols, c)
			e = &expr.Column{Index: arity + len(extra) - 1, Typ: c.Type, Name: c.Name}
		}
		r.Exprs = append(r.Exprs, e)
		r.Columns = append(r.Columns, ResultColumn{Column: c, TableOID: it.tableOID, AttrNum: it.attNum})
	}
	return extend(rel, extra, cols), r, nil
}

// update binds UPDATE.
func (b *binder) update(s *pg.UpdateStmt) (Bound, error) {
	ctes, err := b.statementWith(s.WithClause)
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
	n := len(t.object.Columns)
	var rel plan.Rel
	if len(s.FromClause) == 0 {
		in := filter(GetOf(t.object), preds...)
		rel = updateRows(t, in, sets, nil)
	} else {
		rel = b.updateFrom(t, sel, sets, preds)
	}
	shift(sel.scope.entries[:1], n) // RETURNING sees the new row,
	shift(sel.scope.entries[1:], n) // then the columns of FROM
	out := &Update{Table: t.object}
	if rel, out.Returning, err = b.returning(s.ReturningList, rel, sel.scope.entries, ctes); err != nil {
		return nil, err
	}
	if out.Params, err = b.finishParams(); err != nil {
		return nil, err
	}
	out.DeepDeps = b.deep
	out.Rel, err = b.finishRel(rel)
	return out, err
}

// changeScope is the scope of UPDATE and DELETE: the target's columns, then
// those of FROM or USING, which rel yields alone.
func (b *binder) changeScope(t *target, from []*pg.Node, ctes *cteScope) (*selectState, error) {
	sel := &selectState{binder: b, ctes: ctes, scope: newScope(nil)}
	if err := b.from(sel, from); err != nil {
		return nil, err
	}
	if err := checkNames([]*entry{t.entry}, sel.scope.entries); err != nil {
		return nil, err
	}
	n := len(t.object.Columns)
	shift(sel.scope.all, n)
	sel.scope.entries = append([]*entry{t.entry}, sel.scope.entries...)
	sel.scope.all = append([]*entry{t.entry}, sel.scope.all...)
	return sel, nil
}

// where binds a WHERE clause as a list of conjuncts.
func (sel *selectState) where(n *pg.Node) ([]expr.Expr, error) {
	if n == nil {
		return nil, nil
	}
	e, err := sel.in(inWhere).condition(n, "WHERE")
	if err != nil {
		return nil, err
	}
	return conjuncts([]expr.Expr{e}), nil
}

// assignments binds the SET list: the new value of each column that has one.
func (b *binder) assignments(t *target, sel *selectState, list []*pg.Node) (map[int]expr.Expr, error) {
	out := map[int]expr.Expr{}
	x := sel.in(inUpdate)
	for _, n := range list {
		r := n.GetResTarget()
		i, err := b.targetColumn(t, r.Name, r.Location)
		if err != nil {
			return nil, err
		}
		if len(r.Indirection) > 0 {
			return nil, pgerror.Unsupported("UPDATE of a part of a column").At(b.pos(r.Location))
		}
		if out[i] != nil {
			return nil, pgerror.New(pgerror.SyntaxError, "multiple assignments to same column \"%s\"", r.Name)
		}
		c := &t.object.Columns[i]
		val := r.Val
		if m := val.GetMultiAssignRef(); m != nil {
			if out[i], err = x.multiAssign(c, m); err != nil {
				return nil, err
			}
			continue
		}
		if out[i], err = x.assigned(c, val); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// assigned binds one value of SET.
func (x exprBinder) assigned(c *catalog.Column, val *pg.Node) (expr.Expr, error) {
	if val.GetSetToDefault() != nil {
		return x.defaultOf(c)
	}
	e, err := x.expr(val)
	if err != nil {
		return nil, err
	}
	return assign(c, e, x.pos(nodeLocation(val)))
}

// multiAssign binds a column of `(a, b) = (…)` or `(a, b) = (SELECT …)`.
func (x exprBinder) multiAssign(c *catalog.Column, m *pg.MultiAssignRef) (expr.Expr, error) {
	if row := m.Source.GetRowExpr(); row != nil {
		if len(row.Args) != int(m.Ncolumns) {
			return nil, pgerror.New(pgerror.SyntaxError, "number of columns does not match number of values").At(x.pos(row.Location))
		}
		return x.assigned(c, row.Args[m.Colno-1])
	}
	link := m.Source.GetSubLink()
	if link == nil || link.SubLinkType != pg.SubLinkType_EXPR_SUBLINK && link.SubLinkType != pg.SubLinkType_MULTIEXPR_SUBLINK {
		return nil, pgerror.New(pgerror.FeatureNotSupported,
			"source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression").At(x.pos(nodeLocation(m.Source)))
	}
	pos := x.pos(link.Location)
	q, err := x.query(link.Subselect.GetSelectStmt(), x.scope, x.ctes, resolveUnknown)
	if err != nil {
		return nil, err
	}
	if len(q.cols) != int(m.Ncolumns) {
		return nil, pgerror.New(pgerror.SyntaxError, "number of columns does not match number of values").At(pos)
	}
	rel := project(q.collection(), []int{int(m.Colno - 1)})
	return assign(c, &expr.Subquery{Kind: expr.SubqueryScalar, Rel: rel, Typ: rel.Columns()[0].Type, Pos: pos}, pos)
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

// updateFrom is UPDATE … FROM: each row of the target is changed once, by one
// of the rows that it joins to. So the rows of FROM are taken one by one for
// each target row, as a lateral join with LIMIT 1.
func (b *binder) updateFrom(t *target, sel *selectState, sets map[int]expr.Expr, preds []expr.Expr) plan.Rel {
	n := len(t.object.Columns)
	order := make([]int, 0, len(sets))
	var values []expr.Expr
	for i := range n {
		if v := sets[i]; v != nil {
			order, values = append(order, i), append(values, v)
		}
	}
	in, first := b.oneMatch(t, sel, preds, values)
	cols := in.Columns()
	news := map[int]expr.Expr{}
	for k, i := range order {
		news[i] = plan.RefTo(cols, first+k)
	}
	return updateRows(t, in, news, span(n, first))
}

// oneMatch joins each row of the target that satisfies preds with one of the
// rows of FROM that it matches: the target's columns, those of FROM, and
// values, from column first on.
func (b *binder) oneMatch(t *target, sel *selectState, preds, values []expr.Expr) (rel plan.Rel, first int) {
	n := len(t.object.Columns)
	var own, both []expr.Expr
	for _, p := range preds {
		if refersWithin(p, n) {
			own = append(own, p)
		} else {
			both = append(both, b.splitRow(p, n))
		}
	}
	right := filter(sel.rel, both...)
	cols := right.Columns()
	var exprs []expr.Expr
	var out []plan.Column
	for _, v := range values {
		exprs = append(exprs, b.splitRow(v, n))
		out = append(out, plan.Column{Name: "?column?", Type: v.Type()})
	}
	right = &plan.TopK{Input: extend(right, exprs, out), Limit: int64Const(1)}
	left := filter(GetOf(t.object), own...)
	return &plan.Join{Kind: plan.JoinInner, Left: left, Right: right, Lateral: true}, n + len(cols)
}

// refersWithin reports whether an expression uses only the first n columns.
func refersWithin(e expr.Expr, n int) bool {
	ok := true
	mapRefs(e, func(c *expr.Column) expr.Expr { ok = ok && c.Index < n; return c },
		func(c *expr.OuterColumn, level int) expr.Expr {
			ok = ok && (c.Depth != level || c.Index < n)
			return c
		})
	return ok
}

// splitRow takes an expression over the target's n columns and those of FROM to
// the right side of a lateral join, where the target's are outer columns.
func (b *binder) splitRow(e expr.Expr, n int) expr.Expr {
	return mapRefs(e,
		func(c *expr.Column) expr.Expr {
			if c.Index < n {
				return &expr.OuterColumn{Depth: 1, Index: c.Index, Typ: c.Typ, Name: c.Name}
			}
			return &expr.Column{Index: c.Index - n, Typ: c.Typ, Name: c.Name}
		},
		func(c *expr.OuterColumn, level int) expr.Expr {
			if c.Index < n {
				return atDepth(c, c.Depth+1)
			}
			return &expr.OuterColumn{Depth: c.Depth, Index: c.Index - n, Typ: c.Typ, Name: c.Name}
		})
}

// delete binds DELETE.
func (b *binder) delete(s *pg.DeleteStmt) (Bound, error) {
	ctes, err := b.statementWith(s.WithClause)
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
	var rel plan.Rel
	switch {
	case len(s.UsingClause) == 0:
		rel = filter(GetOf(t.object), preds...)
	case len(s.ReturningList) > 0:
		rel, _ = b.oneMatch(t, sel, preds, nil)
	default:
		rel = &plan.Join{Kind: plan.JoinSemi, Left: GetOf(t.object), Right: sel.rel, On: preds}
	}
	out := &Delete{Table: t.object}
	if rel, out.Returning, err = b.returning(s.ReturningList, rel, sel.scope.entries, ctes); err != nil {
		return nil, err
	}
	if out.Params, err = b.finishParams(); err != nil {
		return nil, err
	}
	out.DeepDeps = b.deep
	out.Rel, err = b.finishRel(rel)
	return out, err
}

// BindExpr resolves an expression over the columns of a table: a CHECK, an
// index key, a generated column. A nil table admits no column: a DEFAULT.
// context names the clause in errors, as PostgreSQL does ("DEFAULT
// expressions", "check constraints", "index expressions"). The result has the
// type typ by an assignment cast, unless typ is types.Unknown.
func BindExpr(ctx *Context, text string, e *parser.Expr, table *catalog.Object, context string, typ types.Type) (expr.Expr, error) {
	b := newBinder(ctx, text, e.Base)
	s := newScope(nil)
	s.kind = everything(context)
	if table != nil {
		s.entries = []*entry{objectEntry(table)}
	}
	x := exprBinder{binder: b, scope: s}
	pos := b.pos(nodeLocation(e.Node))
	v, err := x.expr(e.Node)
	if err != nil {
		return nil, err
	}
	if table == nil && expr.UsesColumns(v) {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "cannot use column reference in %s", context).At(pos)
	}
	if hasSubquery(v) {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "cannot use subquery in %s", context).At(pos)
	}
	if typ.OID == types.OIDUnknown {
		return textIfUnknown(v)
	}
	if !expr.CanCoerce(v.Type(), typ, expr.CastAssignment) {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "expression is of type %s but %s is needed", v.Type(), typ).At(pos)
	}
	return expr.Coerce(v, typ, expr.CastAssignment, pos)
}

// ResolveType finds the type that a type name names; text is the whole text
// that it is part of.
func ResolveType(ctx *Context, text string, t parser.TypeName) (types.Type, error) {
	return newBinder(ctx, text, t.Base).typeName(t.Node)
}
