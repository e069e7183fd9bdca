package planner

import (
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

// fromItem is a bound item of a FROM clause: a relation and the entries that
// its columns are known by.
type fromItem struct {
	rel     plan.Rel
	entries []*entry
	hidden  []*entry // entries that an alias hides, for hints
	order   []plan.SortExpr
}

// fromBinder binds the items of one FROM clause. In its functions, env is the
// scope directly around the item being bound: the one around the query, or the
// lateral scope of what the item is joined to.
type fromBinder struct {
	*binder
	ctes *cteScope
	// around is the scope around the query.
	around *scope
	// natural says that the rows of functions and VALUES are wanted in their order.
	natural bool
}

// from binds a FROM clause into sel: its items are joined from left to right.
func (b *binder) from(sel *selectState, list []*pg.Node) error {
	env := sel.scope.parent
	f := fromBinder{b, sel.ctes, env, sel.natural || sel.stmt != nil && collectsRows(sel.stmt)}
	var cur *fromItem
	for _, n := range list {
		var err error
		if cur == nil {
			cur, err = f.item(n, env)
		} else {
			cur, err = f.join(cur, n, env, plan.JoinInner, nil)
		}
		if err != nil {
			return err
		}
	}
	if cur == nil {
		sel.rel = unit()
		return nil
	}
	sel.rel = cur.rel
	sel.inputOrder = cur.order
	sel.scope.entries = cur.entries
	sel.scope.all = append(cur.entries[:len(cur.entries):len(cur.entries)], cur.hidden...)
	return nil
}

// item binds one item of a FROM clause.
func (f fromBinder) item(n *pg.Node, env *scope) (*fromItem, error) {
	switch n := n.Node.(type) {
	case *pg.Node_RangeVar:
		return f.rangeVar(n.RangeVar, env)
	case *pg.Node_RangeSubselect:
		return f.rangeSubselect(n.RangeSubselect, env)
	case *pg.Node_JoinExpr:
		return f.joinExpr(n.JoinExpr, env)
	case *pg.Node_RangeFunction:
		if c, ok := timeWindow(n.RangeFunction); ok {
			return f.timeWindow(c, n.RangeFunction, env)
		}
		return f.rangeFunction(n.RangeFunction, env)
	case *pg.Node_RangeTableSample:
		return nil, pgerror.Unsupported("TABLESAMPLE").At(f.pos(n.RangeTableSample.Location))
	case *pg.Node_RangeTableFunc:
		return f.xmlTable(n.RangeTableFunc, env)
	case *pg.Node_JsonTable:
		return f.jsonTable(n.JsonTable, env)
	}
	return nil, pgerror.Unsupported("this FROM item")
}

// onFunc binds the condition of a join, given both sides with their columns
// numbered as in the join's row.
type onFunc func(left, right *fromItem) ([]expr.Expr, error)

// join joins the bound left side with item n, which may refer to it laterally.
func (f fromBinder) join(left *fromItem, n *pg.Node, env *scope, kind plan.JoinKind, on onFunc) (*fromItem, error) {
	if fn := n.GetRangeFunction(); fn != nil && !isTimeWindow(fn) {
		if item, err := f.joinFunction(left, fn, env, kind, on); item != nil || err != nil {
			return item, err
		}
	}
	if jt := n.GetJsonTable(); jt != nil && kind == plan.JoinInner {
		return f.joinOver(left, env, on, func(x exprBinder) (plan.Rel, *entry, error) { return x.jsonTableRel(left.rel, jt) })
	}
	if rf := n.GetRangeTableFunc(); rf != nil && kind == plan.JoinInner {
		return f.joinOver(left, env, on, func(x exprBinder) (plan.Rel, *entry, error) { return x.xmlTableRel(left.rel, rf) })
	}
	lat := newScope(env)
	lat.lateral, lat.entries = true, left.entries
	lat.unreachable = kind == plan.JoinRight || kind == plan.JoinFull
	right, err := f.item(n, lat)
	if err != nil {
		return nil, err
	}
	if err := checkNames(left.entries, right.entries); err != nil {
		return nil, err
	}
	if !lat.used {
		right.rel = f.moved(right.rel, -1)
	}
	if kind == plan.JoinLeft || kind == plan.JoinFull {
		f.presence(right)
	}
	if kind == plan.JoinRight || kind == plan.JoinFull {
		f.presence(left)
	}
	arity := plan.Arity(left.rel)
	shift(right.entries, arity)
	shift(right.hidden, arity)
	item := &fromItem{
		entries: append(left.entries[:len(left.entries):len(left.entries)], right.entries...),
		hidden:  append(left.hidden[:len(left.hidden):len(left.hidden)], right.hidden...),
	}
	j := &plan.Join{Kind: kind, Left: left.rel, Right: right.rel, Lateral: lat.used}
	if on != nil {
		if j.On, err = on(left, right); err != nil {
			return nil, err
		}
	}
	item.rel = j
	if f.natural && n.GetRangeFunction() != nil {
		item.order = slices.Clip(left.order)
		for _, o := range right.order {
			o.Expr = plan.Ref(j, o.Expr.(*expr.Column).Index+arity)
			item.order = append(item.order, o)
		}
	}
	return item, nil
}

// moved is a relation by so many scopes further in (out, if negative) than it was
// bound, with the places where its outer columns were named.
func (b *binder) moved(r plan.Rel, by int) plan.Rel {
	return mapOuter(r, 0, func(c *expr.OuterColumn, _ int) expr.Expr {
		to := atDepth(c, c.Depth+by)
		if use, ok := b.refs[c]; ok {
			b.refs[to] = use
		}
		return to
	})
}

// checkNames refuses two relations of the same name at one level.
func checkNames(left, right []*entry) error {
	for _, l := range left {
		for _, r := range right {
			if !l.relVisible || !r.relVisible || l.name == "" || l.name != r.name {
				continue
			}
			if l.object != nil && r.object != nil && l.object != r.object && l.schema != r.schema {
				continue
			}
			return pgerror.New(pgerror.DuplicateAlias, "table name \"%s\" specified more than once", l.name)
		}
	}
	return nil
}

// rangeVar binds a table, view, or CTE by name.
func (f fromBinder) rangeVar(r *pg.RangeVar, env *scope) (*fromItem, error) {
	pos := f.pos(r.Location)
	if r.Schemaname == "" {
		if c := f.ctes.find(r.Relname); c != nil {
			return f.cteRef(c, r, env)
		}
	}
	o, err := f.relation(r)
	if err != nil {
		if r.Schemaname == "" && f.ctes.hidden(r.Relname) {
			return nil, pgerror.As(err).
				WithDetail("There is a WITH item named \"%s\", but it cannot be referenced from this part of the query.", r.Relname).
				WithHint("Use WITH RECURSIVE, or re-order the WITH items to remove forward references.")
		}
		return nil, err
	}
	if o.PlainIndex() {
		return f.indexItem(o, r)
	}
	if !o.Relation() {
		return nil, pgerror.New(pgerror.WrongObjectType, "cannot open relation \"%s\"", o.Name).
			WithDetail("This operation is not supported for %s.", plural(o.Kind)).At(pos)
	}
	f.use(o)
	e := objectEntry(o)
	var rel plan.Rel
	if f.wantsRowID(o) {
		rel, err = f.withRowID(o)
		e.columns = append(e.columns, entryColumn{name: RowIDColumn, index: len(o.Columns), typ: types.UUID, hidden: true})
	} else {
		rel, err = f.objectRel(o)
	}
	if err != nil {
		return nil, err
	}
	if err := e.rename(r.Alias, 0); err != nil {
		return nil, err
	}
	return &fromItem{rel: rel, entries: []*entry{e}}, nil
}

// indexItem binds an index as a relation: the rows of what it indexes, with the
// columns of its key first.
func (f fromBinder) indexItem(o *catalog.Object, r *pg.RangeVar) (*fromItem, error) {
	t := f.ctx.Catalog.ByID(o.Table)
	f.use(o)
	f.use(t)
	rel, err := f.objectRel(t)
	if err != nil {
		return nil, err
	}
	e := objectEntry(t)
	e.schema, e.name = o.Schema, o.Name
	columns := e.columns
	e.columns = make([]entryColumn, 0, len(columns))
	for _, k := range o.Key {
		e.columns = append(e.columns, columns[k])
	}
	for i, c := range columns {
		if !slices.Contains(o.Key, i) {
			e.columns = append(e.columns, c)
		}
	}
	if err := e.rename(r.Alias, 0); err != nil {
		return nil, err
	}
	return &fromItem{rel: rel, entries: []*entry{e}}, nil
}

func plural(k catalog.Kind) string {
	if k == catalog.KindIndex {
		return "indexes"
	}
	return k.String() + "s"
}

// objectEntry makes the entry of a relation of the catalog.
func objectEntry(o *catalog.Object) *entry {
	e := &entry{
		schema: o.Schema, name: o.Name, object: o, row: o.RowType(),
		relVisible: true, colsVisible: true,
	}
	for i, c := range o.Columns {
		e.columns = append(e.columns, entryColumn{
			name: c.Name, index: i, typ: c.Type.Storage(), domain: domainType(c.Type), hidden: c.Hidden, tableOID: o.OID, attNum: int16(i + 1),
			notNull: c.NotNull,
		})
	}
	return e
}

// objectRel is the rows of a relation: a read of its collection, or the
// definition of a view.
func (b *binder) objectRel(o *catalog.Object) (plan.Rel, error) {
	if o.Kind == catalog.KindView || o.Kind == catalog.KindMaterializedView && b.ctx.Expand != nil && b.ctx.Expand(o) {
		return b.view(o)
	}
	return GetOf(o), nil
}

// GetOf is the read of a collection of the catalog, with all that is known of it.
func GetOf(o *catalog.Object) *plan.Get {
	g := &plan.Get{ID: o.ID, Name: o.Schema + "." + o.Name, AppendOnly: o.AppendOnly || o.Grows}
	for _, c := range o.Columns {
		g.Cols = append(g.Cols, plan.Column{Name: c.Name, Type: c.Type.Storage(), NotNull: c.NotNull})
	}
	if o.PrimaryKey != nil {
		g.Keys = append(g.Keys, o.PrimaryKey)
	}
	for _, k := range o.Unique {
		if !k.Derived {
			g.Keys = append(g.Keys, k.Columns)
		}
	}
	for i := range o.Foreign {
		if f := &o.Foreign[i]; !f.NotValid {
			g.Refs = append(g.Refs, plan.Reference{Cols: f.Columns, To: f.RefTable, ToCols: f.RefColumns, Deferrable: f.Deferrable})
		}
	}
	return g
}

// view binds the query of a view, once a statement.
func (b *binder) view(o *catalog.Object) (plan.Rel, error) {
	return b.named(b.views, o)
}

// RowIDColumn is the hidden column that tells the rows of a table without a
// primary key apart, also equal ones.
const RowIDColumn = "_row_id"

// wantsRowID says whether the text being bound may ask for the hidden column of o.
func (b *binder) wantsRowID(o *catalog.Object) bool {
	return o.Kind == catalog.KindTable && o.PrimaryKey == nil && len(o.Columns) > 0 && o.Column(RowIDColumn) < 0 &&
		strings.Contains(strings.ToLower(b.src.text), RowIDColumn)
}

// withRowID is a table with the column of row ids: equal rows are numbered, and
// the id is a digest of the row and its number. It stays while the row does.
func (b *binder) withRowID(o *catalog.Object) (plan.Rel, error) {
	names := make([]string, len(o.Columns))
	for i, c := range o.Columns {
		names[i] = parser.QuoteIdent(c.Name)
	}
	cols := strings.Join(names, ", ")
	v := &catalog.Object{ID: o.ID, Name: o.Name, Query: "SELECT " + cols + ", row_id(ROW(" + cols + "), row_number() OVER (PARTITION BY row_id(ROW(" + cols + "), 0))) FROM " +
		parser.QuoteIdent(o.Schema) + "." + parser.QuoteIdent(o.Name)}
	return b.named(b.rowIDs, v)
}

// named is the query of o, bound once for all that use it: shared has the others.
func (b *binder) named(shared map[plan.ObjectID]*sharedRel, o *catalog.Object) (plan.Rel, error) {
	if sh := shared[o.ID]; sh != nil {
		if sh.value == nil {
			return nil, pgerror.New(pgerror.InvalidObjectDefinition, "infinite recursion detected in rules for relation \"%s\"", o.Name)
		}
		return sh.ref(), nil
	}
	sh := b.newShared()
	shared[o.ID] = sh
	q, err := parser.ParseQuery(o.Query)
	if err != nil {
		return nil, err
	}
	save := b.src
	b.src = newSource(o.Query, q.Base)
	b.src.silent = true
	b.inView++
	bq, err := b.query(q.Stmt.GetSelectStmt(), nil, nil, resolveUnknown)
	b.inView--
	b.src = save
	if err != nil {
		return nil, err
	}
	rel := bq.collection()
	if len(o.Columns) == len(bq.cols) {
		rel = renamed(rel, o.Columns)
	}
	b.complete(sh, rel)
	return sh.ref(), nil
}

// renamed gives the columns of a relation the names that a view has them by.
func renamed(r plan.Rel, cols []catalog.Column) plan.Rel {
	in := r.Columns()
	same := true
	for i := range cols {
		same = same && in[i].Name == cols[i].Name
	}
	if same {
		return r
	}
	p := &plan.Project{Input: r, Exprs: plan.Refs(in)}
	for i := range cols {
		c := in[i]
		c.Name = cols[i].Name
		p.Cols = append(p.Cols, c)
	}
	return p
}

// rangeSubselect binds a query in FROM.
func (f fromBinder) rangeSubselect(r *pg.RangeSubselect, env *scope) (*fromItem, error) {
	outside := env
	if !r.Lateral {
		outside = env.blank(f.around)
	}
	f.binder.natural = f.natural
	q, err := f.query(r.Subquery.GetSelectStmt(), outside, f.ctes, resolveUnknown)
	if err != nil {
		return nil, err
	}
	e := q.entry("")
	e.relVisible = r.Alias != nil
	if err := e.rename(r.Alias, 0); err != nil {
		return nil, err
	}
	item := &fromItem{rel: q.wideCollection(true), entries: []*entry{e}}
	for _, k := range q.order {
		item.order = append(item.order, plan.SortExpr{Expr: plan.Ref(item.rel, k.Col), Desc: k.Desc, NullsFirst: k.NullsFirst})
	}
	return item, nil
}

// entry makes the entry of a subquery's columns.
func (q *boundQuery) entry(name string) *entry {
	e := &entry{name: name, relVisible: true, colsVisible: true}
	cols := q.rel.Columns()
	for i, c := range q.cols {
		e.columns = append(e.columns, entryColumn{
			name: c.name, index: i, typ: cols[i].Type, domain: c.domain, tableOID: c.tableOID, attNum: c.attNum,
			notNull: cols[i].NotNull,
		})
	}
	return e
}

// joinExpr binds an explicit join.
func (f fromBinder) joinExpr(j *pg.JoinExpr, env *scope) (*fromItem, error) {
	left, err := f.item(j.Larg, env)
	if err != nil {
		return nil, err
	}
	kind := plan.JoinInner
	switch j.Jointype {
	case pg.JoinType_JOIN_LEFT:
		kind = plan.JoinLeft
	case pg.JoinType_JOIN_RIGHT:
		kind = plan.JoinRight
	case pg.JoinType_JOIN_FULL:
		kind = plan.JoinFull
	}
	var merge []mergedColumn
	var on onFunc
	switch {
	case j.IsNatural || len(j.UsingClause) > 0:
		on = func(l, r *fromItem) (preds []expr.Expr, err error) {
			merge, preds, err = f.using(l, r, j, kind)
			return preds, err
		}
	case j.Quals != nil:
		on = func(l, r *fromItem) ([]expr.Expr, error) { return f.joinOn(l, r, j.Quals, env) }
	}
	item, err := f.join(left, j.Rarg, env, kind, on)
	if err != nil {
		return nil, err
	}
	if kind == plan.JoinLeft || kind == plan.JoinFull {
		nullable(item.entries[len(left.entries):])
	}
	if kind == plan.JoinRight || kind == plan.JoinFull {
		nullable(item.entries[:len(left.entries)])
	}
	if len(merge) > 0 {
		if err := f.mergeColumns(item, merge, j); err != nil {
			return nil, err
		}
	}
	if j.Alias != nil {
		return aliasJoin(item, j)
	}
	return item, nil
}

// joinOn binds the condition of ON, which sees the two sides and what is around
// the query, but nothing of what stands to the left of the join.
func (f fromBinder) joinOn(l, r *fromItem, quals *pg.Node, env *scope) ([]expr.Expr, error) {
	s := newScope(env.blank(f.around))
	s.entries = append(l.entries[:len(l.entries):len(l.entries)], r.entries...)
	s.all = append(l.hidden[:len(l.hidden):len(l.hidden)], r.hidden...)
	s.kind = inJoinOn
	x := exprBinder{binder: f.binder, scope: s, ctes: f.ctes}
	e, err := x.condition(quals, "JOIN/ON")
	if err != nil {
		return nil, err
	}
	return conjuncts([]expr.Expr{e}), nil
}

// mergedColumn is a column that USING or NATURAL makes of two.
type mergedColumn struct {
	name        string
	left, right *entryColumn
	value       expr.Expr
}

// using binds the columns of USING or NATURAL: equalities, and the merged columns.
func (f fromBinder) using(l, r *fromItem, j *pg.JoinExpr, kind plan.JoinKind) ([]mergedColumn, []expr.Expr, error) {
	names := listNames(j.UsingClause)
	if j.IsNatural {
		names = commonNames(l.entries, r.entries)
	}
	var out []mergedColumn
	var preds []expr.Expr
	for i, name := range names {
		for _, before := range names[:i] {
			if before == name {
				return nil, nil, pgerror.New(pgerror.DuplicateColumn, "column name \"%s\" appears more than once in USING clause", name)
			}
		}
		lc, err := usingColumn(l.entries, name, "left")
		if err != nil {
			return nil, nil, err
		}
		rc, err := usingColumn(r.entries, name, "right")
		if err != nil {
			return nil, nil, err
		}
		if f.inView == 0 {
			f.ctx.trace.noteMerged(l.entries, lc)
			f.ctx.trace.noteMerged(r.entries, rc)
		}
		lx := &expr.Column{Index: lc.index, Typ: lc.typ, Name: name}
		rx := &expr.Column{Index: rc.index, Typ: rc.typ, Name: name}
		m := mergedColumn{name: name, left: lc, right: rc}
		if m.value, err = mergedValue(lx, rx, kind); err != nil {
			return nil, nil, err
		}
		eq, err := expr.NewOp("=", lx, rx, 0)
		if err != nil {
			return nil, nil, err
		}
		preds = append(preds, eq)
		out = append(out, m)
	}
	return out, preds, nil
}

// mergedValue is the value of a merged column, of the common type of the two.
func mergedValue(l, r expr.Expr, kind plan.JoinKind) (expr.Expr, error) {
	typ, err := expr.CommonType([]expr.Expr{l, r}, "JOIN/USING")
	if err != nil {
		return nil, err
	}
	if l.Type().OID != typ.OID || kind == plan.JoinFull {
		if l, err = expr.Coerce(l, typ, expr.CastImplicit, 0); err != nil {
			return nil, err
		}
	}
	if r.Type().OID != typ.OID || kind == plan.JoinFull {
		if r, err = expr.Coerce(r, typ, expr.CastImplicit, 0); err != nil {
			return nil, err
		}
	}
	_, lPlain := l.(*expr.Column)
	_, rPlain := r.(*expr.Column)
	switch {
	case kind == plan.JoinFull:
		return expr.NewCoalesce([]expr.Expr{l, r}, 0)
	case kind == plan.JoinRight, kind == plan.JoinInner && !lPlain && rPlain:
		return r, nil
	}
	return l, nil
}

// commonNames lists the columns that NATURAL JOIN equates.
func commonNames(l, r []*entry) []string {
	has := map[string]bool{}
	for _, e := range r {
		for _, c := range e.columns {
			if e.colsVisible && !c.merged && !c.hidden {
				has[c.name] = true
			}
		}
	}
	var out []string
	for _, e := range l {
		for _, c := range e.columns {
			if e.colsVisible && !c.merged && !c.hidden && has[c.name] {
				out = append(out, c.name)
			}
		}
	}
	return out
}

func usingColumn(es []*entry, name, side string) (*entryColumn, error) {
	var found *entryColumn
	for _, e := range es {
		if !e.colsVisible {
			continue
		}
		for i := range e.columns {
			if c := &e.columns[i]; c.name == name && !c.merged {
				if found != nil {
					return nil, pgerror.New(pgerror.AmbiguousColumn, "common column name \"%s\" appears more than once in %s table", name, side)
				}
				found = c
			}
		}
	}
	if found == nil {
		return nil, pgerror.New(pgerror.UndefinedColumn, "column \"%s\" specified in USING clause does not exist in %s table", name, side)
	}
	return found, nil
}

// mergeColumns adds the merged columns to a join: they come first in *, and
// the two that each is made of are only visible with qualification.
func (f fromBinder) mergeColumns(item *fromItem, merge []mergedColumn, j *pg.JoinExpr) error {
	e := &entry{colsVisible: true}
	if j.JoinUsingAlias != nil {
		e.name, e.relVisible, e.ofColumns = j.JoinUsingAlias.Aliasname, true, true
		if err := checkNames([]*entry{e}, item.entries); err != nil {
			return err
		}
	}
	var extra []expr.Expr
	var cols []plan.Column
	arity := plan.Arity(item.rel)
	for _, m := range merge {
		c := entryColumn{name: m.name, typ: m.value.Type()}
		if x, ok := m.value.(*expr.Column); ok {
			c.index = x.Index
			from := m.left
			if x.Index == m.right.index {
				from = m.right
			}
			c.tableOID, c.attNum, c.table = from.tableOID, from.attNum, tableOf(item.entries, from)
		} else {
			c.index = arity + len(extra)
			c.table = tableOf(item.entries, m.left)
			extra = append(extra, m.value)
			cols = append(cols, plan.Column{Name: m.name, Type: c.typ})
		}
		if m.left.domain == m.right.domain {
			c.domain = m.left.domain
		}
		m.left.merged, m.right.merged = true, true
		e.columns = append(e.columns, c)
	}
	item.rel = extend(item.rel, extra, cols)
	item.entries = append([]*entry{e}, item.entries...)
	return nil
}

// tableOf is the relation that a column of one of the entries is of.
func tableOf(entries []*entry, c *entryColumn) string {
	if c.table != "" {
		return c.table
	}
	for _, e := range entries {
		for i := range e.columns {
			if &e.columns[i] == c {
				return e.name
			}
		}
	}
	return ""
}

// aliasJoin makes one entry of a join that has an alias.
func aliasJoin(item *fromItem, j *pg.JoinExpr) (*fromItem, error) {
	e := &entry{relVisible: true, colsVisible: true, joined: true}
	for _, in := range item.entries {
		for _, c := range in.columns {
			if in.colsVisible && !c.merged && !c.hidden {
				e.columns = append(e.columns, c)
			}
		}
	}
	if err := e.rename(j.Alias, 0); err != nil {
		return nil, err
	}
	return &fromItem{rel: item.rel, entries: []*entry{e}, hidden: append(item.entries, item.hidden...)}, nil
}
