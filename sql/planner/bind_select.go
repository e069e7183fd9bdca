package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// unknownMode says what becomes of output columns that are literals of unknown type.
type unknownMode bool

const (
	resolveUnknown unknownMode = false // they become text
	keepUnknown    unknownMode = true  // who uses the query decides
)

// boundQuery is a bound query: rel yields its columns and, after them, columns
// that are only there to order by.
type boundQuery struct {
	calls         []Call // see Query
	rel           plan.Rel
	cols          []outputColumn
	order         []plan.SortKey
	limit, offset expr.Expr
	ties          bool
	// leaves are the queries that a set operation combines, for hints.
	leaves []*entry
}

// outputColumn is a column of a query's result.
type outputColumn struct {
	name     string
	tableOID uint32
	attNum   int16
	domain   types.OID // that is its type, 0 for none
	pos      int       // of the expression in the select list
}

// collection is the query as an unordered collection of its visible columns.
func (q *boundQuery) collection() plan.Rel {
	rel := q.rel
	if q.limit != nil || q.offset != nil {
		rel = &plan.TopK{Input: rel, Order: q.order, Limit: q.limit, Offset: q.offset, WithTies: q.ties}
	}
	return firstColumns(rel, len(q.cols))
}

// wideCollection is the collection with the columns after the visible ones, if
// ordered says that those to order by are wanted.
func (q *boundQuery) wideCollection(ordered bool) plan.Rel {
	switch {
	case !ordered || q.order == nil:
		return q.collection()
	case q.limit != nil || q.offset != nil:
		return &plan.TopK{Input: q.rel, Order: q.order, Limit: q.limit, Offset: q.offset, WithTies: q.ties}
	}
	return q.rel
}

// sorted is the query as the root of a plan: a Sort, if it has an order or a limit.
func (q *boundQuery) sorted() plan.Rel {
	switch {
	case q.ties:
		rel := &plan.TopK{Input: q.rel, Order: q.order, Limit: q.limit, Offset: q.offset, WithTies: true}
		return &plan.Sort{Input: rel, Order: q.order}
	case q.order != nil || q.limit != nil || q.offset != nil:
		return &plan.Sort{Input: q.rel, Order: q.order, Limit: q.limit, Offset: q.offset}
	}
	return q.rel
}

// selectItem is an item of a select list. A junk item is only there to order by.
type selectItem struct {
	entry    string // FROM entry that a * took it from
	expr     expr.Expr
	name     string
	tableOID uint32
	attNum   int16
	domain   types.OID // that is its type, 0 for none
	pos      int
	key      int // of grouping sets, plus one; 0: none
	junk     bool
}

// selectState is a query level while it is bound. Aggregates, window functions
// and set-returning functions stand in expressions as columns with the numbers
// from aggBase, windowBase and srfBase on, until the nodes that compute them
// are made.
type selectState struct {
	*binder
	stmt  *pg.SelectStmt
	scope *scope
	ctes  *cteScope
	rel   plan.Rel
	items []selectItem

	aggs      []aggregate
	groupings []grouping
	windows   []windowCall
	calls     []pendingCall
	named     map[string]*windowSpec
	srfs      []srfCall
	grouped   bool
	hasSets   bool // GROUP BY has grouping sets
	groupBy   []expr.Expr
	sets      [][]int
	having    expr.Expr
	qualify   expr.Expr // over the results of window functions
	order     []sortItem
	distinct  []int // items of DISTINCT ON
	// inputOrder is the order of a subquery that is all of FROM: aggregates like
	// array_agg keep it, as PostgreSQL's do.
	inputOrder []plan.SortExpr
	// natural says that the rows are wanted in the order in which functions and VALUES
	// give them.
	natural bool
}

const (
	aggBase    = 1 << 20
	groupBase  = 1 << 22 // grouping()
	windowBase = 1 << 24
	srfBase    = 1 << 26
)

// sortItem is an item of ORDER BY: which select item, and how.
type sortItem struct {
	item       int
	desc       bool
	nullsFirst bool
}

// clause is the clause that an expression stands in: what is not allowed in it
// has the name by which the error tells so.
type clause struct{ agg, window, srf string }

var (
	inSelect    = clause{}
	inWhere     = everything("WHERE")
	inJoinOn    = clause{"JOIN conditions", "JOIN conditions", "JOIN conditions"}
	inFunction  = everything("functions in FROM")
	inGroupBy   = clause{"GROUP BY", "GROUP BY", ""}
	inHaving    = clause{"", "HAVING", "HAVING"}
	inQualify   = clause{"", "", "QUALIFY"}
	inOrderBy   = clause{}
	inLimit     = everything("LIMIT")
	inOffset    = everything("OFFSET")
	inValues    = everything("VALUES")
	inFilter    = everything("FILTER")
	inWindow    = clause{"", "window definitions", "window definitions"}
	inReturning = everything("RETURNING")
	inUpdate    = everything("UPDATE")
	inCall      = everything("CALL arguments")
)

func everything(name string) clause { return clause{name, name, name} }

// query binds a query whose outside is parent.
func (b *binder) query(s *pg.SelectStmt, parent *scope, ctes *cteScope, mode unknownMode) (*boundQuery, error) {
	if s == nil {
		return nil, pgerror.Unsupported("this statement in a query")
	}
	natural := b.natural
	b.natural = false
	if b.depth++; b.depth > maxDepth {
		return nil, pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded")
	}
	defer func() { b.depth-- }()
	if s.WithClause != nil {
		var err error
		if ctes, err = b.with(s.WithClause, parent, ctes); err != nil {
			return nil, err
		}
	}
	switch {
	case s.Op != pg.SetOperation_SETOP_NONE && s.Op != pg.SetOperation_SET_OPERATION_UNDEFINED:
		if err := lockingOf(s, "%s is not allowed with UNION/INTERSECT/EXCEPT"); err != nil {
			return nil, err
		}
		return b.setOp(s, parent, ctes, mode)
	case s.IntoClause != nil:
		return nil, pgerror.New(pgerror.SyntaxError, "SELECT ... INTO is not allowed here").At(b.pos(s.IntoClause.GetRel().GetLocation()))
	case len(s.ValuesLists) > 0:
		if err := lockingOf(s, "%s cannot be applied to VALUES"); err != nil {
			return nil, err
		}
		return b.values(s, parent, ctes, natural)
	}
	return b.selectStmt(s, parent, ctes, mode, natural)
}

// maxDepth bounds the nesting of expressions and queries, in place of the
// stack limit that PostgreSQL has. The parser refuses deeper trees before.
const maxDepth = 10000

// selectStmt binds a plain SELECT.
func (b *binder) selectStmt(s *pg.SelectStmt, parent *scope, ctes *cteScope, mode unknownMode, natural bool) (*boundQuery, error) {
	sel := &selectState{binder: b, stmt: s, ctes: ctes, scope: newScope(parent)}
	sel.natural = natural && s.SortClause == nil && s.DistinctClause == nil && s.GroupClause == nil && s.HavingClause == nil
	sel.scope.sel = sel
	if err := b.from(sel, s.FromClause); err != nil {
		return nil, err
	}
	if err := sel.targetList(s.TargetList, inSelect); err != nil {
		return nil, err
	}
	preds, err := sel.where(s.WhereClause)
	if err != nil {
		return nil, err
	}
	sel.rel = filter(sel.rel, preds...)
	if err := sel.lists(mode); err != nil {
		return nil, err
	}
	if err := sel.locking(); err != nil {
		return nil, err
	}
	if err := sel.compute(); err != nil {
		return nil, err
	}
	if sel.natural && len(sel.aggs) == 0 && len(sel.windows) == 0 {
		sel.naturalOrder()
	}
	return sel.finish()
}

// in is the binder of expressions of a clause.
func (sel *selectState) in(c clause) exprBinder {
	sel.scope.kind = c
	return exprBinder{binder: sel.binder, scope: sel.scope, ctes: sel.ctes}
}

// lists binds HAVING, ORDER BY, GROUP BY and DISTINCT, which may refer to the
// select list.
func (sel *selectState) lists(mode unknownMode) error {
	s := sel.stmt
	var err error
	having, qualify := splitQualify(s.HavingClause)
	if having != nil {
		if sel.having, err = sel.in(inHaving).condition(having, "HAVING"); err != nil {
			return err
		}
	}
	if qualify != nil {
		if sel.qualify, err = sel.in(inQualify).condition(sel.aliases(qualify), "QUALIFY"); err != nil {
			return err
		}
	}
	if sel.order, err = sel.orderBy(s.SortClause, "ORDER BY"); err != nil {
		return err
	}
	if err := sel.groupClause(); err != nil {
		return err
	}
	for i, n := range s.WindowClause {
		if _, err := sel.in(inWindow).namedWindow(n.GetWindowDef().Name, i+1, 0); err != nil {
			return err
		}
	}
	if err := sel.distinctClause(); err != nil {
		return err
	}
	for i := range sel.items {
		it := &sel.items[i]
		if mode == keepUnknown && s.DistinctClause == nil && !it.junk {
			continue
		}
		if it.expr, err = textIfUnknown(it.expr); err != nil {
			return err
		}
	}
	return nil
}

// textIfUnknown makes text of an expression whose type nothing determined.
func textIfUnknown(e expr.Expr) (expr.Expr, error) {
	if e.Type().OID != types.OIDUnknown {
		return e, nil
	}
	return expr.Coerce(e, types.Text, expr.CastImplicit, expr.PosOf(e))
}

// targetList binds the select list, or that of RETURNING.
func (sel *selectState) targetList(list []*pg.Node, c clause) error {
	x := sel.in(c)
	for _, n := range list {
		t := n.GetResTarget()
		if q, ok := starOf(t.Val); ok {
			items, err := sel.expandStar(sel.scope, q, sel.pos(t.Val.GetColumnRef().GetLocation()))
			if err != nil {
				return err
			}
			if items, err = x.without(items, t.Indirection); err != nil {
				return err
			}
			sel.items = append(sel.items, items...)
			if sel.ctx.Stars != nil && sel.inView == 0 {
				sel.ctx.Stars[t] = starTargets(items)
			}
			continue
		}
		if in := t.Val.GetAIndirection(); in != nil && in.Indirection[len(in.Indirection)-1].GetAStar() != nil {
			items, err := x.expandRow(in)
			if err != nil {
				return err
			}
			sel.items = append(sel.items, items...)
			continue
		}
		if called, err := sel.writingItem(x, t); called || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		e, err := x.expr(t.Val)
		if err != nil {
			return err
		}
		it := selectItem{expr: e, name: t.Name, pos: sel.pos(nodeLocation(t.Val))}
		if it.name == "" {
			it.name = sel.columnName(t.Val)
		}
		if use, ok := sel.refs[e]; ok && t.Val.GetCollateClause() == nil {
			it.tableOID, it.attNum = use.tableOID, use.attNum
		}
		sel.items = append(sel.items, it)
	}
	sel.callArguments()
	for i := range sel.items {
		sel.items[i].domain = sel.domains[sel.items[i].expr]
	}
	return nil
}

// without are the items of a star but for the columns of its EXCEPT.
func (x exprBinder) without(items []selectItem, except []*pg.Node) ([]selectItem, error) {
	var gone []expr.Expr
	for _, n := range except {
		pos := x.pos(nodeLocation(n))
		if _, star := starOf(n); n.GetColumnRef() == nil || star {
			return nil, pgerror.New(pgerror.InvalidColumnReference, "only names of columns are allowed in EXCEPT").At(pos)
		}
		e, err := x.expr(n)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(gone, func(o expr.Expr) bool { return expr.Equal(o, e) }) {
			return nil, pgerror.New(pgerror.DuplicateColumn, "column \"%s\" specified more than once", dotted(listNames(n.GetColumnRef().Fields))).At(pos)
		}
		gone = append(gone, e)
	}
	if gone == nil {
		return items, nil
	}
	return slices.DeleteFunc(items, func(it selectItem) bool {
		return slices.ContainsFunc(gone, func(o expr.Expr) bool { return expr.Equal(o, it.expr) })
	}), nil
}

// starOf gives the qualification of `q.*`.
func starOf(n *pg.Node) ([]string, bool) {
	c := n.GetColumnRef()
	if c == nil || c.Fields[len(c.Fields)-1].GetAStar() == nil {
		return nil, false
	}
	return listNames(c.Fields[:len(c.Fields)-1]), true
}

// orderBy resolves the items of ORDER BY: each is an output column by name or
// number, or an expression, which becomes a junk item if it is not in the list.
func (sel *selectState) orderBy(list []*pg.Node, name string) ([]sortItem, error) {
	var out []sortItem
	for _, n := range list {
		sb := n.GetSortBy()
		i, err := sel.outputItem(sb.Node, name, sel.in(inOrderBy))
		if err != nil {
			return nil, err
		}
		if sel.items[i].expr, err = textIfUnknown(sel.items[i].expr); err != nil {
			return nil, err
		}
		it := sortItem{item: i}
		if it.desc, it.nullsFirst, err = sel.direction(sb); err != nil {
			return nil, err
		}
		if err := sel.checkSortable(sel.items[i].expr, sel.pos(nodeLocation(sb.Node))); err != nil {
			return nil, err
		}
		dup := false
		for _, o := range out {
			dup = dup || o.item == i
		}
		if !dup {
			out = append(out, it)
		}
	}
	return out, nil
}

// splitQualify takes the condition of QUALIFY, which the parser has put there,
// out of HAVING.
func splitQualify(n *pg.Node) (having, qualify *pg.Node) {
	if f := n.GetFuncCall(); f != nil && len(f.Funcname) == 1 && f.Funcname[0].GetString_().GetSval() == parser.QualifyMarker {
		return nil, f.Args[0]
	}
	if b := n.GetBoolExpr(); b != nil && b.Boolop == pg.BoolExprType_AND_EXPR && len(b.Args) == 2 {
		if _, q := splitQualify(b.Args[1]); q != nil {
			return b.Args[0], q
		}
	}
	return n, nil
}

// aliases replaces the names of select items in a condition, where no column
// has that name, by their expressions.
func (sel *selectState) aliases(n *pg.Node) *pg.Node {
	n = proto.Clone(n).(*pg.Node)
	walkTree(n.ProtoReflect(), func(m proto.Message) bool {
		node, ok := m.(*pg.Node)
		if !ok {
			return true
		}
		c := node.GetColumnRef()
		if c == nil || len(c.Fields) != 1 || c.Fields[0].GetString_() == nil || sel.isInput(c.Fields[0].GetString_().Sval) {
			return true
		}
		for _, t := range sel.stmt.TargetList {
			if r := t.GetResTarget(); r.Name == c.Fields[0].GetString_().Sval {
				node.Node = proto.Clone(r.Val).(*pg.Node).Node
				return false
			}
		}
		return true
	})
	return n
}

// direction reads ASC, DESC, USING and NULLS FIRST or LAST.
func (b *binder) direction(sb *pg.SortBy) (desc, nullsFirst bool, err error) {
	desc = sb.SortbyDir == pg.SortByDir_SORTBY_DESC
	if sb.SortbyDir == pg.SortByDir_SORTBY_USING {
		switch op := sb.UseOp[len(sb.UseOp)-1].GetString_().GetSval(); op {
		case "<":
		case ">":
			desc = true
		default:
			return false, false, pgerror.New(pgerror.WrongObjectType, "operator %s is not a valid ordering operator", op).
				WithHint("Ordering operators must be \"<\" or \">\" members of btree operator families.").At(b.pos(sb.Location))
		}
	}
	switch sb.SortbyNulls {
	case pg.SortByNulls_SORTBY_NULLS_FIRST:
		nullsFirst = true
	case pg.SortByNulls_SORTBY_NULLS_LAST:
	default:
		nullsFirst = desc
	}
	return desc, nullsFirst, nil
}

// outputItem finds the select item that an item of ORDER BY, GROUP BY or
// DISTINCT ON means, and adds a junk item for a new expression.
func (sel *selectState) outputItem(n *pg.Node, name string, x exprBinder) (int, error) {
	if c := n.GetColumnRef(); c != nil && len(c.Fields) == 1 && c.Fields[0].GetString_() != nil {
		col := c.Fields[0].GetString_().Sval
		if name != "GROUP BY" || !sel.isInput(col) {
			i, err := sel.itemNamed(col, name, sel.pos(c.Location))
			if err != nil || i >= 0 {
				return i, err
			}
		}
	}
	if c := n.GetAConst(); c != nil {
		return sel.itemNumber(c, name)
	}
	e, err := x.expr(n)
	if err != nil {
		return 0, err
	}
	return sel.itemOf(e), nil
}

// isInput reports whether the name is a column of the FROM clause, which
// GROUP BY prefers to an output column.
func (sel *selectState) isInput(name string) bool {
	for _, e := range sel.scope.entries {
		for i := range e.columns {
			if e.colsVisible && e.columns[i].name == name && !e.columns[i].merged {
				return true
			}
		}
	}
	return false
}

// itemNamed is the item with an output name, -1 if there is none.
func (sel *selectState) itemNamed(col, clause string, pos int) (int, error) {
	found := -1
	for i, it := range sel.items {
		if it.junk || it.name != col {
			continue
		}
		if found >= 0 && !expr.Equal(sel.items[found].expr, it.expr) {
			return 0, pgerror.New(pgerror.AmbiguousColumn, "%s \"%s\" is ambiguous", clause, col).At(pos)
		}
		if found < 0 {
			found = i
		}
	}
	return found, nil
}

// itemNumber is the item at a position.
func (sel *selectState) itemNumber(c *pg.A_Const, clause string) (int, error) {
	pos := sel.pos(c.Location)
	v, ok := c.Val.(*pg.A_Const_Ival)
	if !ok || c.Isnull {
		return 0, pgerror.New(pgerror.SyntaxError, "non-integer constant in %s", clause).At(pos)
	}
	visible := 0
	for _, it := range sel.items {
		if !it.junk {
			visible++
		}
	}
	n := int(v.Ival.Ival)
	if n < 1 || n > visible {
		return 0, pgerror.New(pgerror.InvalidColumnReference, "%s position %d is not in select list", clause, n).At(pos)
	}
	return n - 1, nil
}

// itemOf is the item with an expression, added as junk if there is none.
func (sel *selectState) itemOf(e expr.Expr) int {
	for i, it := range sel.items {
		if expr.Equal(it.expr, e) {
			return i
		}
	}
	sel.items = append(sel.items, selectItem{expr: e, name: "?column?", junk: true})
	return len(sel.items) - 1
}

// checkSortable refuses types without an order.
func (b *binder) checkSortable(e expr.Expr, pos int) error {
	if t := e.Type(); t.OID == types.OIDVoid || !types.HasEquality(t) {
		return pgerror.New(pgerror.UndefinedFunction, "could not identify an ordering operator for type %s", t).
			WithHint("Use an explicit ordering operator or modify the query.").At(pos)
	}
	return nil
}

// distinctClause resolves DISTINCT and DISTINCT ON against ORDER BY.
func (sel *selectState) distinctClause() error {
	d := sel.stmt.DistinctClause
	if d == nil {
		return nil
	}
	if len(d) == 1 && d[0].GetNode() == nil { // plain DISTINCT
		for i, it := range sel.items {
			if it.junk {
				pos := 0
				for k, o := range sel.order {
					if o.item == i {
						pos = sel.sortPos(k)
					}
				}
				return pgerror.New(pgerror.InvalidColumnReference,
					"for SELECT DISTINCT, ORDER BY expressions must appear in select list").At(pos)
			}
			if t := it.expr.Type(); !types.HasEquality(t) {
				return pgerror.New(pgerror.UndefinedFunction, "could not identify an equality operator for type %s", t.OID).At(it.pos)
			}
		}
		return nil
	}
	sel.distinct = []int{}
	places := map[int]int32{} // of the items
	for _, n := range d {
		i, err := sel.outputItem(n, "DISTINCT ON", sel.in(inOrderBy))
		if err != nil {
			return err
		}
		if sel.items[i].expr, err = textIfUnknown(sel.items[i].expr); err != nil {
			return err
		}
		if _, ok := places[i]; !ok {
			places[i] = nodeLocation(n)
			sel.distinct = append(sel.distinct, i)
		}
	}
	// No other item may come before those of DISTINCT ON.
	skipped, ordered := false, map[int]bool{}
	check := func(item int) error {
		if !skipped {
			return nil
		}
		return pgerror.New(pgerror.InvalidColumnReference,
			"SELECT DISTINCT ON expressions must match initial ORDER BY expressions").At(sel.pos(places[item]))
	}
	for _, o := range sel.order {
		if _, ok := places[o.item]; !ok {
			skipped = true
		} else if err := check(o.item); err != nil {
			return err
		}
		ordered[o.item] = true
	}
	for _, i := range sel.distinct {
		if !ordered[i] {
			if err := check(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// sortPos is the position of the k-th ORDER BY expression.
func (sel *selectState) sortPos(k int) int {
	if k >= len(sel.stmt.SortClause) {
		return 0
	}
	return sel.pos(nodeLocation(sel.stmt.SortClause[k].GetSortBy().GetNode()))
}

// finish makes the output: the projection, DISTINCT, and the order and limit.
func (sel *selectState) finish() (*boundQuery, error) {
	p := &plan.Project{Input: sel.rel}
	q := &boundQuery{}
	in := sel.rel.Columns()
	at := make([]int, len(sel.items)) // output column of each item
	for _, junk := range []bool{false, true} {
		for i, it := range sel.items {
			if it.junk != junk {
				continue
			}
			at[i] = len(p.Exprs)
			e := sel.withShape(it.expr)
			p.Exprs = append(p.Exprs, e)
			p.Cols = append(p.Cols, plan.Column{Name: it.name, Type: e.Type(), NotNull: neverNullIn(e, in)})
			if !junk {
				q.cols = append(q.cols, outputColumn{name: it.name, tableOID: it.tableOID, attNum: it.attNum, domain: it.domain, pos: it.pos})
			}
		}
	}
	q.rel = p
	for _, c := range sel.calls {
		c.call.Column = at[c.call.Column]
		if c.call.From >= 0 {
			c.call.From = at[c.call.From]
		}
		q.calls = append(q.calls, c.call)
	}
	for _, o := range sel.order {
		q.order = append(q.order, plan.SortKey{Col: at[o.item], Desc: o.desc, NullsFirst: o.nullsFirst})
	}
	switch {
	case sel.distinct != nil:
		t := &plan.TopK{Input: p, Order: q.order, Limit: int64Const(1)}
		for _, i := range sel.distinct {
			t.Partition = append(t.Partition, at[i])
		}
		q.rel = t
	case sel.stmt.DistinctClause != nil:
		q.rel = &plan.Distinct{Input: p}
	}
	return q, sel.limits(q, sel.stmt)
}

// neverNullIn reports whether an expression over the columns in is never NULL.
func neverNullIn(e expr.Expr, in []plan.Column) bool {
	switch e := e.(type) {
	case *expr.Column:
		return e.Index < len(in) && in[e.Index].NotNull
	case *expr.Const:
		return !e.Val.Null(0)
	}
	return false
}

// limitExprs binds LIMIT, OFFSET and FETCH.
func (b *binder) limitExprs(x exprBinder, s *pg.SelectStmt, q *boundQuery) error {
	var err error
	if s.LimitOffset != nil {
		x.scope.kind = inOffset
		if q.offset, err = x.limit(s.LimitOffset, "OFFSET"); err != nil {
			return err
		}
	}
	if s.LimitCount != nil {
		x.scope.kind = inLimit
		if q.limit, err = x.limit(s.LimitCount, "LIMIT"); err != nil {
			return err
		}
	}
	q.ties = s.LimitOption == pg.LimitOption_LIMIT_OPTION_WITH_TIES
	if q.ties && s.LimitCount.GetAConst().GetIsnull() {
		return pgerror.New(pgerror.InvalidRowCountInLimit, "row count cannot be null in FETCH FIRST ... WITH TIES clause")
	}
	if q.ties && len(q.order) == 0 {
		return pgerror.New(pgerror.SyntaxError, "WITH TIES cannot be specified without ORDER BY clause")
	}
	return nil
}

func (sel *selectState) limits(q *boundQuery, s *pg.SelectStmt) error {
	return sel.limitExprs(exprBinder{binder: sel.binder, scope: sel.scope, ctes: sel.ctes}, s, q)
}

// limit binds the count of LIMIT or OFFSET; NULL and ALL are none.
func (x exprBinder) limit(n *pg.Node, name string) (expr.Expr, error) {
	if c := n.GetAConst(); c != nil && c.Isnull {
		return nil, nil
	}
	pos := x.pos(nodeLocation(n))
	e, err := x.expr(n)
	if err != nil {
		return nil, err
	}
	if expr.Any(e, func(e expr.Expr) bool { _, ok := e.(*expr.Column); return ok }) {
		return nil, pgerror.New(pgerror.InvalidColumnReference, "argument of %s must not contain variables", name).At(pos)
	}
	if !expr.CanCoerce(e.Type(), types.Int8, expr.CastAssignment) {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "argument of %s must be type bigint, not type %s", name, e.Type()).At(pos)
	}
	if e, err = expr.Coerce(e, types.Int8, expr.CastAssignment, pos); err != nil {
		return nil, err
	}
	if v, ok := plan.IntConst(e); ok && v < 0 {
		code := pgerror.InvalidRowCountInLimit
		if name == "OFFSET" {
			code = pgerror.InvalidRowCountInOffset
		}
		return nil, pgerror.New(code, "%s must not be negative", name)
	}
	if name == "OFFSET" && plan.IsInt(e, 0) {
		return nil, nil
	}
	return e, nil
}
