package planner

import (
	"strings"

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
	// named is the relation that the statement names: the table, or the view
	// that it is changed through.
	named *catalog.Object
	view  *viewTarget
	verb  string
}

// target finds the table to change. verb is "insert into", "update", "delete from".
func (b *binder) target(r *pg.RangeVar, verb string) (*target, error) {
	o, err := b.relation(r)
	if err != nil {
		return nil, err
	}
	pos := b.pos(r.Location)
	t := &target{object: o, named: o, verb: verb}
	switch o.Kind {
	case catalog.KindTable:
	case catalog.KindView:
		b.use(o)
		if t.view, err = b.viewTargetOf(o, verb); err != nil {
			return nil, err
		}
		if (verb == "insert into" || verb == "update") && !t.view.updatable() {
			return nil, b.notUpdatable(o, verb, noUpdatableColumns)
		}
		t.object = t.view.table
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
	b.use(t.object)
	t.entry = t.shown()
	if err := t.entry.rename(r.Alias, pos); err != nil {
		return nil, err
	}
	return t, nil
}

// column finds a column of the target by name.
func (b *binder) targetColumn(t *target, name string, loc int32) (int, error) {
	for i, c := range t.named.Columns {
		if c.Name == name {
			if t.view != nil {
				return t.viewColumn(i, 0)
			}
			return i, nil
		}
	}
	return 0, pgerror.New(pgerror.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, t.named.Name).At(b.pos(loc))
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

// fixedColumn says why a column takes no value but its DEFAULT, "" if it does.
func fixedColumn(c *catalog.Column, overriding bool) string {
	switch {
	case c.Generated != "":
		return "Column \"" + c.Name + "\" is a generated column."
	case c.Identity == catalog.IdentityAlways && !overriding:
		return "Column \"" + c.Name + "\" is an identity column defined as GENERATED ALWAYS."
	}
	return ""
}

// defaultOf is the default value of a column.
func (b *binder) defaultOf(c *catalog.Column) (expr.Expr, error) {
	text := c.Default
	if text == "" && c.Type.OID.IsDomain() {
		text = types.Lookup(c.Type.OID).Definition.Default
	}
	if text == "" {
		return expr.Coerce(nullConst(c.Type.Storage()), c.Type, expr.CastAssignment, 0)
	}
	e, err := parser.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	save := b.src
	b.src = newSource(text, e.Base)
	b.src.silent = true
	defer func() { b.src = save }()
	x := exprBinder{binder: b, scope: &scope{depth: 1, kind: everything("DEFAULT expressions")}}
	v, err := x.expr(e.Node)
	if err != nil {
		return nil, err
	}
	return assign(c, v, 0)
}

// statementWith binds the WITH clause of a statement, which may itself stand in
// the WITH clause outer.
func (b *binder) statementWith(w *pg.WithClause, outer *cteScope) (*cteScope, error) {
	if w == nil {
		return outer, nil
	}
	return b.with(w, nil, outer)
}

// write binds INSERT, UPDATE, DELETE or MERGE. Parameters and steps are those
// of the whole statement.
func (b *binder) write(n *pg.Node, outer *cteScope) (*Write, error) {
	var w *Write
	var err error
	switch s := n.Node.(type) {
	case *pg.Node_InsertStmt:
		w, err = b.insert(s.InsertStmt, outer)
	case *pg.Node_UpdateStmt:
		w, err = b.update(s.UpdateStmt, outer)
	case *pg.Node_DeleteStmt:
		w, err = b.delete(s.DeleteStmt, outer)
	case *pg.Node_MergeStmt:
		w, err = b.merge(s.MergeStmt, outer)
	default:
		return nil, pgerror.Unsupported("binding this statement")
	}
	if err != nil {
		return nil, err
	}
	if w.Rel, err = b.finishRel(w.Rel); err != nil {
		return nil, err
	}
	if b.ctx.Session != nil {
		for i := range w.Row {
			if w.Row[i], err = expr.FoldLiterals(w.Row[i], b.ctx.Session); err != nil {
				return nil, err
			}
		}
	}
	return w, nil
}

// transient is a new relation that exists only while the statement runs.
func (b *binder) transient(name string, cols []plan.Column) *plan.Get {
	b.transients++
	return &plan.Get{ID: transientBase + plan.ObjectID(b.transients), Name: name, Cols: cols}
}

// writingCTE binds a WITH query that changes a table.
func (b *binder) writingCTE(c *cte, s *cteScope) error {
	w, err := b.write(c.node.Ctequery, s)
	if err != nil {
		return err
	}
	step := Step{Write: w}
	if w.Returning != nil {
		for _, r := range w.Returning.Columns {
			step.Cols = append(step.Cols, r.Column)
			c.cols = append(c.cols, outputColumn{name: r.Name, tableOID: r.TableOID, attNum: r.AttrNum})
		}
	}
	get := b.transient(c.name, step.Cols)
	step.ID = get.ID
	b.steps = append(b.steps, step)
	c.rel, c.silent, c.state = get, w.Returning == nil, cteBound
	if c.silent {
		return nil
	}
	return c.rename(b)
}

// readStep makes a step of a WITH query that only reads, so that all the others
// see the same result of it.
func (b *binder) readStep(c *cte) error {
	if c.shared == nil {
		return nil
	}
	cols := c.shared.cols
	rel, err := b.finishRel(c.shared.ref())
	if err != nil {
		return err
	}
	get := b.transient(c.name, cols)
	b.steps = append(b.steps, Step{ID: get.ID, Query: rel, Cols: cols})
	c.rel, c.shared = get, nil
	return nil
}

// returning binds RETURNING over the rows that a statement has changed, which
// have the columns cols that the entries name.
func (b *binder) returning(t *target, list []*pg.Node, cols []plan.Column, entries []*entry, ctes *cteScope) (*Returning, error) {
	if len(list) == 0 {
		return nil, nil
	}
	sel := &selectState{binder: b, ctes: ctes, scope: newScope(nil)}
	sel.scope.entries = entries
	if err := sel.targetList(list, inReturning); err != nil {
		return nil, err
	}
	r := &Returning{}
	sub := false
	for _, it := range t.resolveReturning(sel.items) {
		e, err := textIfUnknown(it.expr)
		if err != nil {
			return nil, err
		}
		c := plan.Column{Name: it.name, Type: e.Type(), NotNull: neverNullIn(e, cols)}
		if b.ctx.Session != nil {
			if e, err = expr.FoldLiterals(e, b.ctx.Session); err != nil {
				return nil, err
			}
		}
		sub = sub || hasSubquery(e)
		r.Exprs = append(r.Exprs, e)
		r.Columns = append(r.Columns, ResultColumn{Column: c, TableOID: it.tableOID, AttrNum: it.attNum})
	}
	if !sub {
		return r, nil
	}
	number := plan.Column{Name: "number", Type: types.Int8, NotNull: true}
	get := b.transient("RETURNING", append(cols[:len(cols):len(cols)], number))
	p := &plan.Project{Input: get, Exprs: append(r.Exprs[:len(r.Exprs):len(r.Exprs)], plan.RefTo(get.Cols, len(cols)))}
	for _, c := range r.Columns {
		p.Cols = append(p.Cols, c.Column)
	}
	p.Cols = append(p.Cols, number)
	r.Input = get.ID
	var err error
	r.Rel, err = b.finishRel(&plan.Sort{Input: p, Order: []plan.SortKey{{Col: len(r.Exprs)}}})
	return r, err
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
	parts := map[int]bool{} // the columns of which only parts are set
	x := sel.in(inUpdate)
	for _, n := range list {
		r := n.GetResTarget()
		i, err := b.targetColumn(t, r.Name, r.Location)
		if err != nil {
			return nil, err
		}
		part := len(r.Indirection) > 0
		if out[i] != nil && !(part && parts[i]) {
			return nil, multipleAssignments(t, i)
		}
		c := t.updateDefault(r.Name, i)
		val := r.Val
		if detail := fixedColumn(c, false); detail != "" && (val.GetSetToDefault() == nil || t.view != nil) {
			return nil, pgerror.New(pgerror.GeneratedAlways, "column \"%s\" can only be updated to DEFAULT", c.Name).WithDetail("%s", detail)
		}
		switch m := val.GetMultiAssignRef(); {
		case part:
			parts[i] = true
			old := out[i]
			if old == nil {
				old = plan.RefTo(t.columns(), i)
			}
			out[i], err = x.assignPart(c, old, r)
		case m != nil:
			out[i], err = x.multiAssign(c, m)
		default:
			out[i], err = x.assigned(c, val)
		}
		if err != nil {
			return nil, err
		}
		out[i] = t.view.resolve(out[i])
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
	if x.rows != nil && m.Colno > 1 && x.rows.pos == pos {
		return assign(c, x.rows.field(int(m.Colno-1)), pos)
	}
	q, err := x.query(link.Subselect.GetSelectStmt(), x.scope, x.ctes, resolveUnknown)
	if err != nil {
		return nil, err
	}
	if len(q.cols) != int(m.Ncolumns) {
		return nil, pgerror.New(pgerror.SyntaxError, "number of columns does not match number of values").At(pos)
	}
	if x.rows != nil && volatileRel(q.rel) {
		return assign(c, x.rows.add(q, pos), pos)
	}
	rel := project(q.collection(), []int{int(m.Colno - 1)})
	return assign(c, &expr.Subquery{Kind: expr.SubqueryScalar, Rel: rel, Typ: rel.Columns()[0].Type, Pos: pos}, pos)
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
		expr.Walk(v, func(e expr.Expr) bool {
			if q, ok := e.(*expr.Subquery); ok && q.Pos > 0 {
				pos = q.Pos
			}
			return true
		})
		return nil, pgerror.New(pgerror.FeatureNotSupported, "cannot use subquery in %s", strings.TrimSuffix(context, "s")).At(pos)
	}
	if context == "COPY FROM WHERE conditions" {
		return expr.CoerceToBool(v, "WHERE", pos)
	}
	if typ.OID == types.OIDUnknown {
		return textIfUnknown(v)
	}
	if typ.OID == types.OIDBool && v.Type().OID != types.OIDUnknown && v.Type().OID != types.OIDBool && (context == "check constraints" || context == "domain constraints") {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "argument of CHECK must be type boolean, not type %s", v.Type()).At(pos)
	}
	if !expr.CanCoerce(v.Type(), typ, expr.CastAssignment) {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "expression is of type %s but %s is needed", v.Type(), typ).At(pos)
	}
	return expr.Coerce(v, typ, expr.CastAssignment, pos)
}

// ExprDeps are the functions and types that an expression of a table's definition
// uses.
func ExprDeps(ctx *Context, text string, table *catalog.Object) ([]plan.ObjectID, error) {
	e, err := parser.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	b := newBinder(ctx, text, e.Base)
	s := newScope(nil)
	s.kind = everything("expressions")
	s.entries = []*entry{objectEntry(table)}
	x := exprBinder{binder: b, scope: s}
	_, err = x.expr(e.Node)
	return b.deps, err
}

// ResolveType finds the type that a type name names; text is the whole text
// that it is part of.
func ResolveType(ctx *Context, text string, t parser.TypeName) (types.Type, error) {
	return newBinder(ctx, text, t.Base).typeName(t.Node)
}
