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

// fromItem is a bound item of a FROM clause: a relation and the entries that
// its columns are known by.
type fromItem struct {
	rel     plan.Rel
	entries []*entry
	hidden  []*entry // entries that an alias hides, for hints
}

// from binds a FROM clause into sel: its items are joined from left to right.
func (b *binder) from(sel *selectState, list []*pg.Node) error {
	var cur *fromItem
	for _, n := range list {
		item, err := b.joinNext(sel.scope, cur, n)
		if err != nil {
			return err
		}
		cur = item
	}
	if cur == nil {
		sel.rel = unit()
		return nil
	}
	sel.rel = cur.rel
	sel.scope.entries = cur.entries
	sel.scope.all = append(cur.entries[:len(cur.entries):len(cur.entries)], cur.hidden...)
	return nil
}

// joinNext cross joins the next item of a FROM list to those before it.
func (b *binder) joinNext(s *scope, left *fromItem, n *pg.Node) (*fromItem, error) {
	if left == nil {
		return b.fromItem(s, n, nil)
	}
	return b.join(s, left, n, plan.JoinInner, func(*fromItem, *fromItem) ([]expr.Expr, error) { return nil, nil })
}

// onFunc binds the condition of a join, over the columns of both sides.
type onFunc func(left, right *fromItem) ([]expr.Expr, error)

// join joins the bound left side with the item n, which may refer to it.
func (b *binder) join(s *scope, left *fromItem, n *pg.Node, kind plan.JoinKind, on onFunc) (*fromItem, error) {
	if f := n.GetRangeFunction(); f != nil && (kind == plan.JoinInner || kind == plan.JoinLeft) {
		return b.joinFunction(s, left, f, kind, on)
	}
	lat := newScope(s.outer())
	lat.ctes = s.ctes
	lat.entries = left.entries
	right, err := b.fromItem(s, n, lat)
	if err != nil {
		return nil, err
	}
	lateral := lat.used
	if lateral && (kind == plan.JoinRight || kind == plan.JoinFull) {
		return nil, pgerror.New(pgerror.InvalidColumnReference,
			"invalid reference to FROM-clause entry for table \"%s\"", left.entries[0].name).
			WithDetail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.")
	}
	return b.combine(left, right, kind, lateral, on)
}

// combine makes the join of two bound sides.
func (b *binder) combine(left, right *fromItem, kind plan.JoinKind, lateral bool, on onFunc) (*fromItem, error) {
	if err := b.checkNames(left.entries, right.entries, 0); err != nil {
		return nil, err
	}
	if !lateral {
		right.rel = undeepen(right.rel)
	}
	shift(right.entries, plan.Arity(left.rel))
	shift(right.hidden, plan.Arity(left.rel))
	preds, err := on(left, right)
	if err != nil {
		return nil, err
	}
	item := &fromItem{
		rel:     &plan.Join{Kind: kind, Left: left.rel, Right: right.rel, On: preds, Lateral: lateral},
		entries: append(left.entries[:len(left.entries):len(left.entries)], right.entries...),
		hidden:  append(left.hidden[:len(left.hidden):len(left.hidden)], right.hidden...),
	}
	return item, nil
}

// outer is the scope around this query level.
func (s *scope) outer() *scope { return s.parent }

// undeepen takes a relation that was bound inside a lateral scope that it does
// not use out of that scope.
func undeepen(r plan.Rel) plan.Rel {
	return mapOuter(r, 0, func(c *expr.OuterColumn, _ int) expr.Expr { return atDepth(c, c.Depth-1) })
}

// fromItem binds one item of a FROM clause. lat is the lateral scope of what
// stands before it, nil if nothing does; s is the query level's scope. What is
// bound under lat is one level deeper than s's parent.
func (b *binder) fromItem(s *scope, n *pg.Node, lat *scope) (*fromItem, error) {
	// around is what the item's own expressions see as their outside.
	around := lat
	if around == nil {
		around = s.outer()
	}
	switch n := n.Node.(type) {
	case *pg.Node_RangeVar:
		return b.rangeVar(s, n.RangeVar, around, lat != nil)
	case *pg.Node_RangeSubselect:
		return b.rangeSubselect(s, n.RangeSubselect, around, lat)
	case *pg.Node_JoinExpr:
		return b.joinExpr(s, n.JoinExpr, lat)
	case *pg.Node_RangeFunction:
		return b.rangeFunction(s, n.RangeFunction, around)
	case *pg.Node_RangeTableSample:
		return nil, pgerror.Unsupported("TABLESAMPLE").At(b.pos(n.RangeTableSample.Location))
	case *pg.Node_RangeTableFunc:
		return nil, pgerror.Unsupported("XMLTABLE").At(b.pos(n.RangeTableFunc.Location))
	case *pg.Node_JsonTable:
		return nil, pgerror.Unsupported("JSON_TABLE").At(b.pos(n.JsonTable.Location))
	}
	return nil, pgerror.Unsupported("this FROM item")
}

// rangeVar binds a table, view, or CTE by name.
func (b *binder) rangeVar(s *scope, r *pg.RangeVar, around *scope, lateral bool) (*fromItem, error) {
	pos := b.pos(r.Location)
	if r.Schemaname == "" {
		if c := s.ctes.find(r.Relname); c != nil {
			return b.cteRef(s, c, r, around)
		}
	}
	o, err := b.relation(r)
	if err != nil {
		if c := s.ctes.findLater(r.Relname); c != nil && r.Schemaname == "" {
			return nil, pgerror.As(err).
				WithDetail("There is a WITH item named \"%s\", but it cannot be referenced from this part of the query.", r.Relname).
				WithHint("Use WITH RECURSIVE, or re-order the WITH items to remove forward references.")
		}
		return nil, err
	}
	if !o.Relation() {
		return nil, pgerror.New(pgerror.WrongObjectType, "cannot open relation \"%s\"", o.Name).
			WithDetail("This operation is not supported for %ss.", o.Kind).At(pos)
	}
	b.use(o)
	rel, err := b.objectRel(o)
	if err != nil {
		return nil, err
	}
	e := objectEntry(o, b.ctx.Database)
	if err := e.rename(r.Alias, pos); err != nil {
		return nil, err
	}
	return &fromItem{rel: rel, entries: []*entry{e}}, nil
}

// objectEntry makes the entry of a relation of the catalog.
func objectEntry(o *catalog.Object, database string) *entry {
	e := &entry{
		database: database, schema: o.Schema, name: o.Name, object: o,
		relVisible: true, colsVisible: true,
	}
	for i, c := range o.Columns {
		e.columns = append(e.columns, entryColumn{
			name: c.Name, index: i, typ: c.Type, hidden: c.Hidden, tableOID: o.OID, attNum: int16(i + 1),
		})
	}
	return e
}

// objectRel is the rows of a relation: a read of its collection, or the
// definition of a view.
func (b *binder) objectRel(o *catalog.Object) (plan.Rel, error) {
	if o.Kind == catalog.KindView {
		return b.view(o)
	}
	return GetOf(o), nil
}

// GetOf is the read of a collection of the catalog, with all that is known of it.
func GetOf(o *catalog.Object) *plan.Get {
	g := &plan.Get{ID: o.ID, Name: o.Schema + "." + o.Name, AppendOnly: o.AppendOnly}
	for _, c := range o.Columns {
		g.Cols = append(g.Cols, plan.Column{Name: c.Name, Type: c.Type, NotNull: c.NotNull})
	}
	if o.PrimaryKey != nil {
		g.Keys = append(g.Keys, o.PrimaryKey)
	}
	g.Keys = append(g.Keys, o.Unique...)
	return g
}

// view binds the query of a view, once a statement.
func (b *binder) view(o *catalog.Object) (plan.Rel, error) {
	if sh := b.views[o.ID]; sh != nil {
		if sh.rel == nil {
			return nil, pgerror.New(pgerror.InvalidObjectDefinition, "infinite recursion detected in rules for relation \"%s\"", o.Name)
		}
		return sh.ref(), nil
	}
	sh := b.newShared()
	b.views[o.ID] = sh
	q, err := parser.ParseQuery(o.Query)
	if err != nil {
		return nil, err
	}
	save := b.src
	b.src = newSource(o.Query, q.Base)
	b.src.silent = true
	b.inView++
	bq, err := b.query(q.Stmt.GetSelectStmt(), nil, resolveUnknown)
	b.inView--
	b.src = save
	if err != nil {
		return nil, err
	}
	rel := bq.collection()
	if n := len(o.Columns); n == len(bq.cols) {
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
func (b *binder) rangeSubselect(s *scope, r *pg.RangeSubselect, around, lat *scope) (*fromItem, error) {
	outside := around
	if lat != nil && !r.Lateral {
		// It sees nothing of what stands before it, but the entries explain
		// what went wrong if it tries to.
		outside = newScope(s.outer())
		outside.all = lat.entries
	}
	if outside == nil {
		outside = &scope{depth: -1}
	}
	inner := *outside
	inner.ctes = s.ctes
	q, err := b.query(r.Subquery.GetSelectStmt(), keepScope(&inner, around == nil), resolveUnknown)
	if err != nil {
		return nil, err
	}
	if inner.used && lat != nil && r.Lateral {
		lat.used = true
	}
	e := q.entry("")
	e.relVisible = r.Alias != nil
	if err := e.rename(r.Alias, 0); err != nil {
		return nil, err
	}
	rel := q.collection()
	if around == nil {
		rel = undeepen(rel)
	}
	return &fromItem{rel: rel, entries: []*entry{e}}, nil
}

func keepScope(s *scope, _ bool) *scope { return s }

// entry makes the entry of a subquery's columns.
func (q *boundQuery) entry(name string) *entry {
	e := &entry{name: name, relVisible: true, colsVisible: true}
	cols := q.rel.Columns()
	for i, c := range q.cols {
		e.columns = append(e.columns, entryColumn{
			name: c.name, index: i, typ: cols[i].Type, tableOID: c.tableOID, attNum: c.attNum,
		})
	}
	return e
}

// joinExpr binds an explicit join.
func (b *binder) joinExpr(s *scope, j *pg.JoinExpr, lat *scope) (*fromItem, error) {
	left, err := b.fromItem(s, j.Larg, lat)
	if err != nil {
		return nil, err
	}
	kind := map[pg.JoinType]plan.JoinKind{
		pg.JoinType_JOIN_INNER: plan.JoinInner, pg.JoinType_JOIN_LEFT: plan.JoinLeft,
		pg.JoinType_JOIN_FULL: plan.JoinFull, pg.JoinType_JOIN_RIGHT: plan.JoinRight,
	}[j.Jointype]
	var merge *merged
	on := func(l, r *fromItem) ([]expr.Expr, error) {
		switch {
		case j.IsNatural, len(j.UsingClause) > 0:
			merge = &merged{kind: kind}
			return b.using(l, r, j, merge)
		case j.Quals != nil:
			return b.joinOn(s, l, r, j.Quals, lat)
		}
		return nil, nil
	}
	_ = types.Bool
	item, err := b.joinUnder(s, left, j.Rarg, kind, lat, on)
	if err != nil {
		return nil, err
	}
	if merge != nil {
		b.mergeColumns(item, merge, j)
	}
	if j.Alias != nil {
		return b.aliasJoin(item, j)
	}
	return item, nil
}
