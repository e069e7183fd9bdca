package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// insert binds INSERT.
func (b *binder) insert(s *pg.InsertStmt, outer *cteScope) (*Write, error) {
	ctes, err := b.statementWith(s.WithClause, outer)
	if err != nil {
		return nil, err
	}
	t, err := b.target(s.Relation, "insert into")
	if err != nil {
		return nil, err
	}
	into, err := b.insertColumns(t, s.Cols)
	if err != nil {
		return nil, err
	}
	in := inserter{binder: b, t: t, into: into, ctes: ctes, stmt: s, given: make([]expr.Expr, len(t.object.Columns))}
	sel := s.SelectStmt.GetSelectStmt()
	switch {
	case sel == nil:
		in.rel = unit()
	case len(sel.ValuesLists) > 0 && sel.SortClause == nil && sel.LimitCount == nil && sel.LimitOffset == nil && sel.WithClause == nil:
		rows := make([][]*pg.Node, len(sel.ValuesLists))
		for i, l := range sel.ValuesLists {
			rows[i] = l.GetList().GetItems()
		}
		if list := setTargets(rows); list != nil {
			err = in.query(&pg.SelectStmt{TargetList: list})
			break
		}
		err = in.rows(rows)
	default:
		err = in.query(sel)
	}
	if err != nil {
		return nil, err
	}
	out := &Write{Kind: WriteInsert, Table: t.object, Rel: in.rel}
	if out.ViewChecks, err = b.viewChecks(t); err != nil {
		return nil, err
	}
	if out.Row, err = in.row(); err != nil {
		return nil, err
	}
	onConflict := s.OnConflictClause
	policy := t.object.OnConflict
	if policy == "" && b.ctx.Upsert && t.object.PrimaryKey != nil {
		policy = catalog.ConflictOverwrite
	}
	if onConflict == nil {
		onConflict = tablePolicy(t.object, policy)
	}
	if onConflict != nil {
		if out.Conflict, err = b.onConflict(t, onConflict, ctes); err != nil {
			return nil, err
		}
		if s.OnConflictClause == nil {
			out.Conflict.Policy = policy
		}
	}
	out.Returning, err = b.returning(t, s.ReturningList, t.columns(), []*entry{t.entry}, ctes)
	return out, err
}

// inserter binds the rows of an INSERT: rel, and the values that are given for
// columns of the table, over rel's columns.
type inserter struct {
	*binder
	t     *target
	into  []int
	ctes  *cteScope
	stmt  *pg.InsertStmt
	rel   plan.Rel
	given []expr.Expr
}

// insertColumns lists the columns that an INSERT gives values for.
func (b *binder) insertColumns(t *target, list []*pg.Node) ([]int, error) {
	var out []int
	if len(list) == 0 {
		for i, c := range t.named.Columns {
			switch {
			case t.view != nil:
				at, err := t.viewColumn(i, 0)
				if err != nil {
					return nil, err
				}
				if slices.Contains(out, at) {
					return nil, multipleAssignments(t, at)
				}
				out = append(out, at)
			case !c.Hidden:
				out = append(out, i)
			}
		}
		return out, nil
	}
	for _, n := range list {
		r := n.GetResTarget()
		i, err := b.targetColumn(t, r.Name, r.Location)
		if err != nil {
			return nil, err
		}
		for at, have := range out {
			other := list[at].GetResTarget()
			if have != i || len(r.Indirection) > 0 && len(other.Indirection) > 0 {
				continue
			}
			if other.Name != r.Name { // two columns of a view are that of the table
				return nil, multipleAssignments(t, i)
			}
			return nil, pgerror.New(pgerror.DuplicateColumn, "column \"%s\" specified more than once", r.Name).At(b.pos(r.Location))
		}
		out = append(out, i)
	}
	return out, nil
}

func multipleAssignments(t *target, i int) error {
	return pgerror.New(pgerror.SyntaxError, "multiple assignments to same column \"%s\"", t.object.Columns[i].Name)
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

// overridden says whether the value given for a column is not used, and refuses
// one that the column does not take.
func (in *inserter) overridden(c *catalog.Column) (bool, error) {
	if c.Identity != "" && in.stmt.Override == pg.OverridingKind_OVERRIDING_USER_VALUE {
		return true, nil
	}
	detail := fixedColumn(c, in.stmt.Override == pg.OverridingKind_OVERRIDING_SYSTEM_VALUE)
	if detail == "" {
		return false, nil
	}
	e := pgerror.New(pgerror.GeneratedAlways, "cannot insert a non-DEFAULT value into column \"%s\"", c.Name).WithDetail("%s", detail)
	if c.Identity != "" {
		e = e.WithHint("Use OVERRIDING SYSTEM VALUE to override.")
	}
	return false, e
}

// rows binds the rows of VALUES, each cell for its column. Where some of a
// column's cells are DEFAULT a further column says which.
func (in *inserter) rows(lists [][]*pg.Node) error {
	sc := newScope(nil)
	sc.kind = inValues
	x := exprBinder{binder: in.binder, scope: sc, ctes: in.ctes}
	width := len(lists[0])
	if width > len(in.into) {
		return in.checkCount(in.stmt, in.into, width, func() int { return in.pos(nodeLocation(lists[0][len(in.into)])) })
	}
	table, err := in.slots(width)
	if err != nil {
		return err
	}
	rows := make([][]expr.Expr, len(lists))
	defaults := make([]int, width)
	for r, list := range lists {
		if len(list) != width {
			return pgerror.New(pgerror.SyntaxError, "VALUES lists must all be the same length").At(in.pos(nodeLocation(list[0])))
		}
		rows[r] = make([]expr.Expr, width)
		for i, n := range list {
			c := &table[i]
			if n.GetSetToDefault() != nil {
				if steps := in.steps(i); len(steps) > 0 {
					return noDefaultPart(steps, in.pos(in.stmt.Cols[i].GetResTarget().Location))
				}
				rows[r][i] = nullConst(c.Type)
				defaults[i]++
				continue
			}
			pos := in.pos(nodeLocation(n))
			unused, err := in.overridden(c)
			if err != nil {
				return err
			}
			e, err := x.expr(n)
			if err != nil {
				return err
			}
			if rows[r][i], err = in.assign(i, c, e, pos); err != nil {
				return err
			}
			if unused {
				rows[r][i] = nullConst(c.Type)
				defaults[i]++
			}
		}
	}
	if err := in.checkCount(in.stmt, in.into, width, nil); err != nil {
		return err
	}
	var cols []plan.Column
	for i := range width {
		c := &table[i]
		cols = append(cols, plan.Column{Name: c.Name, Type: c.Type})
		if defaults[i] < len(lists) {
			if err := in.give(i, plan.RefTo(cols, i)); err != nil {
				return err
			}
		}
	}
	for i := range width {
		if defaults[i] == 0 || defaults[i] == len(lists) {
			continue
		}
		for r, list := range lists {
			rows[r] = append(rows[r], boolConst(list[i].GetSetToDefault() != nil))
		}
		cols = append(cols, plan.Column{Name: "default", Type: types.Bool, NotNull: true})
		def, err := in.defaultOf(in.t.defaultColumn(in.into[i]))
		if err != nil {
			return err
		}
		in.given[in.into[i]] = &expr.Case{Whens: []expr.When{{Cond: plan.RefTo(cols, len(cols)-1), Then: def}}, Else: in.given[in.into[i]], Typ: cols[i].Type}
	}
	in.rel = valuesRel(rows, cols)
	return nil
}

// query binds INSERT … SELECT. The rows keep the order of the query.
func (in *inserter) query(sel *pg.SelectStmt) error {
	in.inner = true
	q, err := in.binder.query(sel, nil, in.ctes, keepUnknown)
	in.inner = false
	if err != nil {
		return err
	}
	if err := in.checkCount(in.stmt, in.into, len(q.cols), func() int { return q.cols[len(in.into)].pos }); err != nil {
		return err
	}
	table, err := in.slots(len(q.cols))
	if err != nil {
		return err
	}
	for k := range q.cols {
		c := &table[k]
		unused, err := in.overridden(c)
		if err != nil {
			return err
		}
		if q.rel.Columns()[k].Type.OID == types.OIDUnknown { // a literal: it is of the column's type
			if err := coerceOutput(q, k, c.Type); err != nil {
				return err
			}
		}
		if unused {
			continue
		}
		v, err := in.assign(k, c, plan.RefTo(q.rel.Columns(), k), q.cols[k].pos)
		if err != nil {
			return err
		}
		if err := in.give(k, v); err != nil {
			return err
		}
	}
	in.rel = q.sorted()
	return nil
}

// row is the value of each column of the table.
func (in *inserter) row() ([]expr.Expr, error) {
	out := in.given
	for i := range out {
		if out[i] != nil {
			continue
		}
		var err error
		if out[i], err = in.defaultOf(in.t.defaultColumn(i)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// tablePolicy is the ON CONFLICT clause of an INSERT that goes by a table's
// policy, nil for none.
func tablePolicy(o *catalog.Object, policy string) *pg.OnConflictClause {
	if policy == "" {
		return nil
	}
	c := &pg.OnConflictClause{Infer: &pg.InferClause{}, Action: pg.OnConflictAction_ONCONFLICT_NOTHING}
	for i := range o.Columns {
		name := o.Columns[i].Name
		if slices.Contains(o.PrimaryKey, i) {
			c.Infer.IndexElems = append(c.Infer.IndexElems, &pg.Node{Node: &pg.Node_IndexElem{IndexElem: &pg.IndexElem{Name: name}}})
			continue
		}
		if policy == catalog.ConflictIgnore || o.Columns[i].Generated != "" {
			continue
		}
		column := func(table string) *pg.Node {
			return pg.MakeColumnRefNode([]*pg.Node{pg.MakeStrNode(table), pg.MakeStrNode(name)}, -1)
		}
		value := column("excluded")
		if policy == catalog.ConflictNotNull {
			value = &pg.Node{Node: &pg.Node_CoalesceExpr{CoalesceExpr: &pg.CoalesceExpr{Args: []*pg.Node{value, column(o.Name)}}}}
		}
		c.TargetList = append(c.TargetList, pg.MakeResTargetNodeWithNameAndVal(name, value, -1))
		c.Action = pg.OnConflictAction_ONCONFLICT_UPDATE
	}
	c.WhereClause = notOlder(o, o.Version)
	return c
}

// notOlder is the condition that a proposed row does not come before the one present
// by version columns, where NULL is the least; nil for none.
func notOlder(o *catalog.Object, version []int) *pg.Node {
	if len(version) == 0 {
		return nil
	}
	name := o.Columns[version[0]].Name
	column := func(table string) *pg.Node {
		return pg.MakeColumnRefNode([]*pg.Node{pg.MakeStrNode(table), pg.MakeStrNode(name)}, -1)
	}
	null := func(table string, kind pg.NullTestType) *pg.Node {
		return &pg.Node{Node: &pg.Node_NullTest{NullTest: &pg.NullTest{Arg: column(table), Nulltesttype: kind, Location: -1}}}
	}
	compare := func(kind pg.A_Expr_Kind, op string) *pg.Node {
		return pg.MakeAExprNode(kind, []*pg.Node{pg.MakeStrNode(op)}, column("excluded"), column(o.Name), -1)
	}
	and := func(args ...*pg.Node) *pg.Node { return pg.MakeBoolExprNode(pg.BoolExprType_AND_EXPR, args, -1) }
	newer := pg.MakeBoolExprNode(pg.BoolExprType_OR_EXPR, []*pg.Node{
		compare(pg.A_Expr_Kind_AEXPR_OP, ">"),
		and(null("excluded", pg.NullTestType_IS_NOT_NULL), null(o.Name, pg.NullTestType_IS_NULL)),
	}, -1)
	same := compare(pg.A_Expr_Kind_AEXPR_NOT_DISTINCT, "=")
	if rest := notOlder(o, version[1:]); rest != nil {
		same = and(same, rest)
	}
	return pg.MakeBoolExprNode(pg.BoolExprType_OR_EXPR, []*pg.Node{newer, same}, -1)
}

// onConflict binds ON CONFLICT.
func (b *binder) onConflict(t *target, s *pg.OnConflictClause, ctes *cteScope) (*Conflict, error) {
	out := &Conflict{}
	var err error
	if s.Infer != nil {
		if out.Keys, err = b.arbiters(t, s.Infer); err != nil {
			return nil, err
		}
	}
	if s.Action != pg.OnConflictAction_ONCONFLICT_UPDATE {
		return out, nil
	}
	if s.Infer == nil {
		return nil, pgerror.New(pgerror.SyntaxError, "ON CONFLICT DO UPDATE requires inference specification or constraint name").
			WithHint("For example, ON CONFLICT (column_name).").At(b.pos(s.Location))
	}
	n := len(t.object.Columns)
	number := plan.Column{Name: "number", Type: types.Int8, NotNull: true}
	cols := append(append(t.columns(), t.columns()...), number)
	get := b.transient("excluded", cols)
	excluded := t.excluded()
	sel := &selectState{binder: b, ctes: ctes, scope: newScope(nil)}
	sel.scope.entries = []*entry{t.entry, excluded}
	sel.scope.all = sel.scope.entries
	sets, err := b.assignments(t, sel, s.TargetList)
	if err != nil {
		return nil, err
	}
	preds, err := sel.where(s.WhereClause)
	if err != nil {
		return nil, err
	}
	out.Input = get.ID
	if t.view != nil { // its own conditions do not hide the row in conflict
		preds = t.view.resolveAll(preds)
	}
	out.Rel, err = b.finishRel(updateRows(t, filter(get, preds...), sets, []int{2 * n}))
	return out, err
}

// arbiters finds the keys whose conflicts ON CONFLICT (…) handles.
func (b *binder) arbiters(t *target, s *pg.InferClause) ([]string, error) {
	keys := t.object.Keys()
	if s.Conname != "" {
		for _, k := range keys {
			if k.Name == s.Conname && !k.Index {
				return []string{k.Name}, nil
			}
		}
		return nil, pgerror.New(pgerror.UndefinedObject, "constraint \"%s\" for table \"%s\" does not exist", s.Conname, t.object.Name)
	}
	var cols []int
	var exprs []expr.Expr
	x := exprBinder{binder: b, scope: newScope(nil)}
	x.scope.kind, x.scope.entries = everything("index expressions"), []*entry{t.entry}
	for _, n := range s.IndexElems {
		el := n.GetIndexElem()
		if el.Name == "" {
			e, err := x.expr(el.Expr)
			if err != nil {
				return nil, err
			}
			exprs = append(exprs, Simplified(e, GetOf(t.object).Cols))
			continue
		}
		i, err := b.targetColumn(t, el.Name, -1)
		if err != nil {
			return nil, pgerror.New(pgerror.UndefinedColumn, "column \"%s\" does not exist", el.Name).At(b.pos(s.Location))
		}
		if !slices.Contains(cols, i) {
			cols = append(cols, i)
		}
	}
	where, err := x.conflictWhere(s.WhereClause)
	if err != nil {
		return nil, err
	}
	slices.Sort(cols)
	var out []string
	for i := range keys {
		if b.infers(t.object, &keys[i], cols, exprs, where) {
			out = append(out, keys[i].Name)
		}
	}
	if out == nil {
		return nil, pgerror.New(pgerror.InvalidColumnReference, "there is no unique or exclusion constraint matching the ON CONFLICT specification")
	}
	return out, nil
}

// conflictWhere binds the WHERE of a conflict target.
func (x exprBinder) conflictWhere(n *pg.Node) ([]expr.Expr, error) {
	if n == nil {
		return nil, nil
	}
	e, err := x.expr(n)
	if err == nil {
		e, err = expr.CoerceToBool(e, "WHERE", x.binder.pos(nodeLocation(n)))
	}
	return []expr.Expr{e}, err
}

// infers reports whether a conflict target of columns, expressions and a condition
// means a key of a table: it has these, and the rows that satisfy the condition.
func (b *binder) infers(t *catalog.Object, k *catalog.Key, cols []int, exprs, where []expr.Expr) bool {
	if !k.Derived {
		return len(exprs) == 0 && slices.Equal(slices.Sorted(slices.Values(k.Columns)), cols)
	}
	ix := b.ctx.Catalog.ByID(k.Object)
	if ix == nil {
		return false
	}
	table := GetOf(t).Cols
	bind := func(text string) expr.Expr {
		x, err := parser.ParseExpr(text)
		if err != nil {
			return nil
		}
		e, err := BindExpr(b.ctx, text, &x, t, "index expressions", types.Unknown)
		if err != nil {
			return nil
		}
		return Simplified(e, table)
	}
	var own []int
	n := 0
	for _, part := range k.Columns {
		i, ok := catalog.ExprOf(part)
		if !ok {
			own = append(own, part)
			continue
		}
		e := bind(ix.Exprs[i].SQL)
		if e == nil || !slices.ContainsFunc(exprs, func(o expr.Expr) bool { return expr.Equal(o, e) }) {
			return false
		}
		n++
	}
	if slices.Sort(own); !slices.Equal(own, cols) || n != len(exprs) {
		return false
	}
	if ix.Where == "" {
		return true
	}
	e := bind(ix.Where)
	known := make([]expr.Expr, 0, len(where))
	for _, p := range conjuncts(where) {
		known = append(known, Simplified(p, table))
	}
	return e != nil && !slices.ContainsFunc(conjuncts([]expr.Expr{e}), func(w expr.Expr) bool { return !implied(known, w) })
}

// setTargets gives the only row of VALUES as a select list if it calls functions that
// give sets, of which each row is one to insert.
func setTargets(rows [][]*pg.Node) []*pg.Node {
	if len(rows) != 1 || !slices.ContainsFunc(rows[0], callsSet) || slices.ContainsFunc(rows[0], func(n *pg.Node) bool { return n.GetSetToDefault() != nil }) {
		return nil
	}
	out := make([]*pg.Node, len(rows[0]))
	for i, n := range rows[0] {
		out[i] = &pg.Node{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: n, Location: nodeLocation(n)}}}
	}
	return out
}

// callsSet reports whether an expression calls a built-in function that gives a set, not
// counting its subqueries.
func callsSet(n *pg.Node) bool {
	found := false
	var visit func(m protoreflect.Message)
	visit = func(m protoreflect.Message) {
		switch n := m.Interface().(type) {
		case *pg.SubLink:
			return
		case *pg.FuncCall:
			found = found || expr.IsTableFunction(n.Funcname[len(n.Funcname)-1].GetString_().GetSval())
		}
		rangeMessages(m, visit)
	}
	visit(n.ProtoReflect())
	return found
}
