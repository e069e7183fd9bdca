package planner

import (
	"maps"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// INSERT, UPDATE and DELETE through a simple view change the table behind it: the
// view's columns are columns of the table, or computed from its row.

// computedBase is where the columns of a view that are not columns of its table
// begin, while a statement is bound; they are then replaced by what they compute.
const computedBase = 1 << 18

// excludedBase is where such columns of the row proposed by an INSERT begin. Its
// columns follow those of the table.
const excludedBase = 3 << 17

// ViewCheck is the condition that a view WITH CHECK OPTION puts on new rows of
// the table behind it.
type ViewCheck struct {
	View string
	Cond expr.Expr
	// Rel, if Cond has subqueries, is the numbers of the rows of the transient relation
	// Input, of new rows and their numbers, that do not satisfy it.
	Rel   plan.Rel
	Input plan.ObjectID
}

// viewTarget is what a simple view is over.
type viewTarget struct {
	table *catalog.Object
	// exprs are the view's columns over the table's.
	exprs []expr.Expr
	preds []expr.Expr
	// named are preds with the names of the views whose they are.
	named  []ViewCheck
	checks []ViewCheck
	// defaults are those that the view, or one below it, has for columns of the table.
	defaults map[int]string
}

// defaultColumn is a column of the table with the default that it has for the
// statement.
func (t *target) defaultColumn(i int) *catalog.Column {
	c := &t.object.Columns[i]
	if t.view == nil || t.view.defaults[i] == "" {
		return c
	}
	d := *c
	d.Default = t.view.defaults[i]
	return &d
}

// viewVerbs are the words of the messages that a view cannot be changed.
var viewVerbs = map[string][3]string{
	"insert into": {"inserting into", "INSERT"}, "update": {"updating", "UPDATE"}, "delete from": {"deleting from", "DELETE"},
}

// viewTargetOf finds the table behind a view, or says why there is none.
func (b *binder) viewTargetOf(o *catalog.Object, verb string) (*viewTarget, error) {
	not := func(why string) error { return b.notUpdatable(o, verb, why) }
	q, err := parser.ParseQuery(o.Query)
	if err != nil {
		return nil, err
	}
	s := q.Stmt.GetSelectStmt()
	if why := notSimple(s); why != "" {
		return nil, not(why)
	}
	save := b.src
	b.src = newSource(o.Query, q.Base)
	b.src.silent = true
	b.inView++
	defer func() { b.src = save; b.inView-- }()
	r := s.FromClause[0].GetRangeVar()
	of, err := b.relation(r)
	if err != nil {
		return nil, err
	}
	var inner *viewTarget
	switch of.Kind {
	case catalog.KindTable:
		inner = &viewTarget{table: of}
	case catalog.KindView:
		if inner, err = b.viewTargetOf(of, verb); err != nil {
			return nil, err
		}
	default:
		return nil, not("Views that do not select from a single table or view are not automatically updatable.")
	}
	e := inner.entry(of)
	if err := e.rename(r.Alias, 0); err != nil {
		return nil, err
	}
	sel := &selectState{binder: b, scope: newScope(nil)}
	sel.scope.sel = sel
	sel.scope.entries, sel.scope.all = []*entry{e}, []*entry{e}
	if err := sel.targetList(s.TargetList, inSelect); err != nil {
		return nil, err
	}
	switch {
	case len(sel.aggs) > 0:
		return nil, not("Views that return aggregate functions are not automatically updatable.")
	case len(sel.windows) > 0:
		return nil, not("Views that return window functions are not automatically updatable.")
	case len(sel.srfs) > 0:
		return nil, not("Views that return set-returning functions are not automatically updatable.")
	}
	preds, err := sel.where(s.WhereClause)
	if err != nil {
		return nil, err
	}
	t := &viewTarget{table: inner.table, preds: inner.preds, defaults: maps.Clone(inner.defaults)}
	for i, it := range sel.items {
		x, err := textIfUnknown(it.expr)
		if err != nil {
			return nil, err
		}
		t.exprs = append(t.exprs, inner.resolve(x))
		if c, ok := t.exprs[i].(*expr.Column); ok && o.Columns[i].Default != "" {
			if t.defaults == nil {
				t.defaults = map[int]string{}
			}
			t.defaults[c.Index] = o.Columns[i].Default
		}
	}
	for i := range preds {
		preds[i] = inner.resolve(preds[i])
	}
	t.preds = append(t.preds[:len(t.preds):len(t.preds)], preds...)
	t.named = append(t.named, inner.named...)
	for _, p := range preds {
		t.named = append(t.named, ViewCheck{View: o.Name, Cond: p})
	}
	t.addChecks(o, inner, preds)
	return t, nil
}

const noUpdatableColumns = "Views that have no updatable columns are not automatically updatable."

// updatable reports whether one of the view's columns is one of the table.
func (t *viewTarget) updatable() bool {
	return slices.ContainsFunc(t.exprs, func(e expr.Expr) bool { _, ok := e.(*expr.Column); return ok })
}

// notUpdatable is the error that a view cannot be changed.
func (b *binder) notUpdatable(o *catalog.Object, verb, why string) error {
	hint := "To enable %s the view, provide an INSTEAD OF %s trigger or an unconditional ON %[2]s DO INSTEAD rule."
	if verb == "merge into" {
		if verb = "update"; len(b.mergeVerbs) > 0 {
			verb = b.mergeVerbs[0]
		}
		hint = "To enable %s the view using MERGE, provide an INSTEAD OF %s trigger."
	}
	w := viewVerbs[verb]
	return pgerror.New(pgerror.ObjectNotInPrerequisiteState, "cannot %s view \"%s\"", verb, o.Name).WithDetail("%s", why).WithHint(hint, w[0], w[1])
}

// ViewColumns says which columns of a view can be changed, nil if its rows cannot.
func ViewColumns(ctx *Context, o *catalog.Object) []bool {
	t, err := newBinder(ctx, o.Query, 0).viewTargetOf(o, "update")
	if err != nil {
		return nil
	}
	out := make([]bool, len(t.exprs))
	for i, e := range t.exprs {
		_, out[i] = e.(*expr.Column)
	}
	return out
}

// NotUpdatable says why the rows of a view cannot be changed, "" if they can.
func NotUpdatable(ctx *Context, o *catalog.Object) string {
	t, err := newBinder(ctx, o.Query, 0).viewTargetOf(o, "update")
	switch {
	case err != nil:
		return pgerror.As(err).Detail
	case !t.updatable():
		return noUpdatableColumns
	}
	return ""
}

// addChecks collects the conditions that new rows must meet: those of the view
// if it has a check option, with CASCADED also those of the views below.
func (t *viewTarget) addChecks(o *catalog.Object, inner *viewTarget, preds []expr.Expr) {
	t.checks = inner.checks
	switch o.Options["check_option"] {
	case "cascaded":
		t.checks = t.named
	case "local":
		t.checks = append([]ViewCheck(nil), inner.checks...)
		for _, p := range preds {
			t.checks = append(t.checks, ViewCheck{View: o.Name, Cond: p})
		}
	}
}

// notSimple says why rows cannot be changed through a query, "" if they can.
func notSimple(s *pg.SelectStmt) string {
	what := ""
	switch {
	case s.Op != pg.SetOperation_SETOP_NONE:
		what = "UNION, INTERSECT, or EXCEPT"
	case len(s.DistinctClause) > 0:
		what = "DISTINCT"
	case len(s.GroupClause) > 0:
		what = "GROUP BY"
	case s.HavingClause != nil:
		what = "HAVING"
	case s.WithClause != nil:
		what = "WITH"
	case s.LimitCount != nil || s.LimitOffset != nil:
		what = "LIMIT or OFFSET"
	case len(s.FromClause) != 1 || s.FromClause[0].GetRangeVar() == nil:
		return "Views that do not select from a single table or view are not automatically updatable."
	default:
		return ""
	}
	return "Views containing " + what + " are not automatically updatable."
}

// entry is the relation of as the columns of its table, or computed ones.
func (t *viewTarget) entry(of *catalog.Object) *entry {
	e := objectEntry(of)
	if of.Kind != catalog.KindView {
		return e
	}
	for i := range e.columns {
		if c, ok := t.exprs[i].(*expr.Column); ok {
			e.columns[i].index = c.Index
			e.columns[i].tableOID, e.columns[i].attNum = of.OID, int16(i+1)
			continue
		}
		e.columns[i].index = computedBase + i
	}
	return e
}

// resolve puts what computed columns compute in their places.
func (t *viewTarget) resolve(e expr.Expr) expr.Expr {
	if t == nil || e == nil || len(t.exprs) == 0 {
		return e
	}
	return mapRefs(e, func(c *expr.Column) expr.Expr {
		x, by := t.computed(c.Index)
		if x == nil {
			return c
		}
		return mapRefs(x, func(c *expr.Column) expr.Expr {
			return &expr.Column{Index: c.Index + by, Typ: c.Typ, Name: c.Name}
		}, func(c *expr.OuterColumn, level int) expr.Expr {
			if level == 0 || c.Depth != level {
				return c
			}
			return &expr.OuterColumn{Depth: level, Index: c.Index + by, Typ: c.Typ, Name: c.Name}
		})
	}, func(c *expr.OuterColumn, level int) expr.Expr {
		x, by := t.computed(c.Index)
		if level == 0 || c.Depth != level || x == nil {
			return c
		}
		return mapRefs(x, func(x *expr.Column) expr.Expr {
			return &expr.OuterColumn{Depth: level, Index: x.Index + by, Typ: x.Typ, Name: x.Name}
		}, func(x *expr.OuterColumn, _ int) expr.Expr { return x })
	})
}

// computed is what a computed column computes, nil for other columns, and by how
// many places its columns are moved.
func (t *viewTarget) computed(index int) (expr.Expr, int) {
	switch n := len(t.exprs); {
	case index >= computedBase && index < computedBase+n:
		return t.exprs[index-computedBase], 0
	case index >= excludedBase && index < excludedBase+n:
		return t.exprs[index-excludedBase], len(t.table.Columns)
	}
	return nil, 0
}

func (t *viewTarget) resolveAll(list []expr.Expr) []expr.Expr {
	for i := range list {
		list[i] = t.resolve(list[i])
	}
	return list
}

// viewColumn is the column of the table that a column of the view is.
func (t *target) viewColumn(i int, pos int) (int, error) {
	c, ok := t.view.exprs[i].(*expr.Column)
	if ok {
		return c.Index, nil
	}
	return 0, pgerror.New(pgerror.FeatureNotSupported, "cannot %s column \"%s\" of view \"%s\"", strings.TrimSuffix(t.verb, " from"), t.named.Columns[i].Name, t.named.Name).
		WithDetail("View columns that are not columns of their base relation are not updatable.").At(pos)
}

// viewChecks are the conditions on new rows.
func (b *binder) viewChecks(t *target) ([]ViewCheck, error) {
	if t.view == nil {
		return nil, nil
	}
	out := slices.Clone(t.view.checks)
	for i := range out {
		c := &out[i]
		if !hasSubquery(c.Cond) {
			continue
		}
		number := plan.Column{Name: "number", Type: types.Int8, NotNull: true}
		get := b.transient("new", append(t.columns(), number))
		fails, err := expr.NewBoolTest(c.Cond, expr.IsNotTrue, 0)
		if err != nil {
			return nil, err
		}
		c.Input = get.ID
		if c.Rel, err = b.finishRel(project(filter(get, fails), []int{len(get.Cols) - 1})); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// preds are the conditions of the view on the rows that it shows.
func (t *target) preds(more []expr.Expr) []expr.Expr {
	if t.view == nil {
		return more
	}
	return append(t.view.preds[:len(t.view.preds):len(t.view.preds)], t.view.resolveAll(more)...)
}

// shown is the entry of the rows of a table as the statement names them.
func (t *target) shown() *entry {
	if t.view == nil {
		return objectEntry(t.object)
	}
	return t.view.entry(t.named)
}

// excluded is the entry of the row that an INSERT proposes.
func (t *target) excluded() *entry {
	e := t.shown()
	e.name, e.schema, e.object = "excluded", "", nil
	for i := range e.columns {
		if at := &e.columns[i].index; *at >= computedBase {
			*at += excludedBase - computedBase
		} else {
			*at += len(t.object.Columns)
		}
	}
	return e
}

// updateDefault is the column of the table that column i of the named relation is,
// with the default that UPDATE sets: through a view it is the view's own, or none.
func (t *target) updateDefault(name string, i int) *catalog.Column {
	c := t.object.Columns[i]
	if t.view != nil {
		c.Default = t.named.Columns[t.named.Column(name)].Default
	}
	return &c
}

// resolveReturning puts what computed columns compute into RETURNING.
func (t *target) resolveReturning(items []selectItem) []selectItem {
	for i := range items {
		items[i].expr = t.view.resolve(items[i].expr)
	}
	return items
}
