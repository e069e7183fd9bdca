package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// setOp binds UNION, INTERSECT, EXCEPT with its ORDER BY and LIMIT.
func (b *binder) setOp(s *pg.SelectStmt, parent *scope, ctes *cteScope, mode unknownMode) (*boundQuery, error) {
	q, err := b.setOpTree(s, parent, ctes, true)
	if err != nil {
		return nil, err
	}
	if mode == resolveUnknown {
		if err := resolveOutput(q); err != nil {
			return nil, err
		}
	}
	if err := b.setOpOrder(q, s); err != nil {
		return nil, err
	}
	sc := newScope(parent)
	return q, b.limitExprs(exprBinder{binder: b, scope: sc, ctes: ctes}, s, q)
}

// setOpTree binds a node of the tree of set operations. Its own ORDER BY and
// LIMIT are left to the caller at the root; those of inner nodes apply there.
func (b *binder) setOpTree(s *pg.SelectStmt, parent *scope, ctes *cteScope, root bool) (*boundQuery, error) {
	if s.IntoClause != nil {
		return nil, pgerror.New(pgerror.SyntaxError, "INTO is only allowed on first SELECT of UNION/INTERSECT/EXCEPT").
			At(b.pos(s.IntoClause.GetRel().GetLocation()))
	}
	leaf := s.Op == pg.SetOperation_SETOP_NONE || len(s.ValuesLists) > 0
	if leaf || !root && (len(s.SortClause) > 0 || s.LimitCount != nil || s.LimitOffset != nil || s.WithClause != nil) {
		q, err := b.query(s, parent, ctes, keepUnknown)
		if err != nil {
			return nil, err
		}
		leaf := &boundQuery{rel: q.collection(), cols: q.cols}
		leaf.leaves = []*entry{q.entry("*SELECT*")}
		return leaf, nil
	}
	if b.depth++; b.depth > maxDepth {
		return nil, pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded")
	}
	defer func() { b.depth-- }()
	l, err := b.setOpTree(s.Larg, parent, ctes, false)
	if err != nil {
		return nil, err
	}
	r, err := b.setOpTree(s.Rarg, parent, ctes, false)
	if err != nil {
		return nil, err
	}
	kind, name := plan.Union, "UNION"
	switch s.Op {
	case pg.SetOperation_SETOP_INTERSECT:
		kind, name = plan.Intersect, "INTERSECT"
	case pg.SetOperation_SETOP_EXCEPT:
		kind, name = plan.Except, "EXCEPT"
	}
	if len(s.WindowClause) > 0 && s.WindowClause[0].GetString_().GetSval() == parser.CorrespondingMarker {
		if err := b.corresponding(name, listNames(s.WindowClause[1:]), l, r, b.pos(firstTargetLocation(s.Rarg))); err != nil {
			return nil, err
		}
	}
	if len(l.cols) != len(r.cols) {
		return nil, pgerror.New(pgerror.SyntaxError, "each %s query must have the same number of columns", name).
			At(b.pos(firstTargetLocation(s.Rarg)))
	}
	return b.combineSets(kind, s.All, name, l, r)
}

// corresponding leaves the columns of two queries that have the same names: all
// of them in the order of the left one, or those that BY names.
func (b *binder) corresponding(op string, by []string, l, r *boundQuery, pos int) error {
	names := by
	if len(by) == 0 {
		for _, c := range l.cols {
			if slices.ContainsFunc(r.cols, func(o outputColumn) bool { return o.name == c.name }) {
				names = append(names, c.name)
			}
		}
		if len(names) == 0 {
			return pgerror.New(pgerror.UndefinedColumn, "the queries of %s CORRESPONDING have no column name in common", op).At(pos)
		}
	}
	for _, q := range []*boundQuery{l, r} {
		at := make([]int, len(names))
		for i, name := range names {
			at[i] = slices.IndexFunc(q.cols, func(o outputColumn) bool { return o.name == name })
			if at[i] < 0 {
				return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" of CORRESPONDING BY does not exist on both sides of %s", name, op).At(pos)
			}
			if slices.Contains(at[:i], at[i]) || slices.ContainsFunc(q.cols[at[i]+1:], func(o outputColumn) bool { return o.name == name }) {
				return pgerror.New(pgerror.AmbiguousColumn, "column reference \"%s\" is ambiguous", name).At(pos)
			}
		}
		q.keep(at)
	}
	return nil
}

// keep leaves some of the query's columns.
func (q *boundQuery) keep(at []int) {
	cols := q.rel.Columns()
	p, ok := q.rel.(*plan.Project)
	if !ok {
		p = &plan.Project{Input: q.rel, Exprs: plan.Refs(cols), Cols: cols}
	}
	c := *p
	c.Exprs, c.Cols = make([]expr.Expr, len(at)), make([]plan.Column, len(at))
	out := make([]outputColumn, len(at))
	for i, k := range at {
		c.Exprs[i], c.Cols[i], out[i] = p.Exprs[k], p.Cols[k], q.cols[k]
	}
	q.rel, q.cols = &c, out
}

// firstTargetLocation is where the select list of a query begins.
func firstTargetLocation(s *pg.SelectStmt) int32 {
	for s.Larg != nil {
		s = s.Larg
	}
	if len(s.TargetList) > 0 {
		return nodeLocation(s.TargetList[0].GetResTarget().GetVal())
	}
	if len(s.ValuesLists) > 0 {
		return nodeLocation(s.ValuesLists[0])
	}
	return -1
}

// combineSets makes a set operation of two queries whose columns get their
// common types.
func (b *binder) combineSets(kind plan.SetOpKind, all bool, name string, l, r *boundQuery) (*boundQuery, error) {
	n := len(l.cols)
	for i := range n {
		pair := []expr.Expr{outputExpr(l, i), outputExpr(r, i)}
		typ, err := expr.CommonType(pair, name)
		if err != nil {
			return nil, pgerror.As(err).At(r.cols[i].pos)
		}
		for _, q := range []*boundQuery{l, r} {
			if err := coerceOutput(q, i, typ); err != nil {
				return nil, err
			}
		}
	}
	if !all {
		for i, c := range l.rel.Columns() {
			if !types.HasEquality(c.Type) {
				return nil, pgerror.New(pgerror.UndefinedFunction, "could not identify an equality operator for type %s", c.Type.OID).At(l.cols[i].pos)
			}
		}
	}
	op := &plan.SetOp{Kind: kind, All: all, Inputs: flattenUnion(kind, all, l.rel, r.rel)}
	lc, rc := l.rel.Columns(), r.rel.Columns()
	for i := range n {
		c := plan.Column{Name: l.cols[i].name, Type: lc[i].Type, NotNull: lc[i].NotNull && (rc[i].NotNull || kind != plan.Union)}
		if lc[i].Type != rc[i].Type && !b.sameShape(lc[i].Type, rc[i].Type) {
			c.Type.Mod = -1
		}
		op.Cols = append(op.Cols, c)
	}
	out := &boundQuery{rel: op, cols: make([]outputColumn, n)}
	for i := range n {
		out.cols[i].name, out.cols[i].pos = l.cols[i].name, l.cols[i].pos
		if l.cols[i].domain == r.cols[i].domain {
			out.cols[i].domain = l.cols[i].domain
		}
	}
	out.leaves = append(l.leaves[:len(l.leaves):len(l.leaves)], r.leaves...)
	return out, nil
}

// flattenUnion makes one union of a chain of the same kind.
func flattenUnion(kind plan.SetOpKind, all bool, l, r plan.Rel) []plan.Rel {
	if u, ok := l.(*plan.SetOp); ok && kind == plan.Union && u.Kind == kind && u.All == all {
		return append(u.Inputs[:len(u.Inputs):len(u.Inputs)], r)
	}
	return []plan.Rel{l, r}
}

// outputExpr is column i of a query as an expression: the literal that it is,
// if so, for its type may be still unknown.
func outputExpr(q *boundQuery, i int) expr.Expr {
	if p, ok := q.rel.(*plan.Project); ok {
		switch e := p.Exprs[i].(type) {
		case *expr.Const, *expr.Param:
			return e
		}
	}
	return plan.Ref(q.rel, i)
}

// coerceOutput gives column i of a query a type.
func coerceOutput(q *boundQuery, i int, typ types.Type) error {
	cols := q.rel.Columns()
	if cols[i].Type == typ || cols[i].Type.OID == typ.OID && typ.Mod < 0 {
		return nil
	}
	if c, ok := q.rel.(*plan.SetOp); ok && cols[i].Type.OID == types.OIDUnknown {
		return coerceInputs(c, q, i, typ)
	}
	p, ok := q.rel.(*plan.Project)
	if !ok {
		p = &plan.Project{Input: q.rel, Exprs: plan.Refs(cols), Cols: cols}
	}
	e, err := expr.Coerce(p.Exprs[i], typ, expr.CastImplicit, expr.PosOf(p.Exprs[i]))
	if err != nil {
		return err
	}
	c := *p
	c.Exprs = append([]expr.Expr(nil), p.Exprs...)
	c.Cols = append([]plan.Column(nil), p.Cols...)
	c.Exprs[i], c.Cols[i].Type = e, typ
	q.rel = &c
	return nil
}

// coerceInputs gives a type to a column of a set operation that is a literal in
// each of its inputs.
func coerceInputs(s *plan.SetOp, q *boundQuery, i int, typ types.Type) error {
	c := *s
	c.Inputs = append([]plan.Rel(nil), s.Inputs...)
	c.Cols = append([]plan.Column(nil), s.Cols...)
	for k, in := range c.Inputs {
		one := &boundQuery{rel: in}
		if err := coerceOutput(one, i, typ); err != nil {
			return err
		}
		c.Inputs[k] = one.rel
	}
	c.Cols[i].Type = typ
	q.rel = &c
	return nil
}

// resolveOutput makes text of the output columns of unknown type.
func resolveOutput(q *boundQuery) error {
	for i, c := range q.rel.Columns() {
		if c.Type.OID == types.OIDUnknown {
			if err := coerceOutput(q, i, types.Text); err != nil {
				return err
			}
		}
	}
	return nil
}

// setOpOrder resolves the ORDER BY of a set operation or VALUES: only output
// columns by name or number.
func (b *binder) setOpOrder(q *boundQuery, s *pg.SelectStmt) error {
	for _, n := range s.SortClause {
		sb := n.GetSortBy()
		col, err := b.outputColumn(q, sb.Node)
		if err != nil {
			return err
		}
		k := plan.SortKey{Col: col}
		if k.Desc, k.NullsFirst, err = b.direction(sb); err != nil {
			return err
		}
		q.order = append(q.order, k)
	}
	return nil
}

func (b *binder) outputColumn(q *boundQuery, n *pg.Node) (int, error) {
	pos := b.pos(nodeLocation(n))
	if c := n.GetAConst(); c != nil {
		v, ok := c.Val.(*pg.A_Const_Ival)
		if !ok {
			return 0, pgerror.New(pgerror.SyntaxError, "non-integer constant in ORDER BY").At(pos)
		}
		if i := int(v.Ival.Ival); i >= 1 && i <= len(q.cols) {
			return i - 1, nil
		}
		return 0, pgerror.New(pgerror.InvalidColumnReference, "ORDER BY position %d is not in select list", v.Ival.Ival).At(pos)
	}
	if c := n.GetColumnRef(); c != nil && len(c.Fields) == 1 && c.Fields[0].GetString_() != nil {
		name, found := c.Fields[0].GetString_().Sval, -1
		for i, o := range q.cols {
			if o.name != name {
				continue
			}
			if found >= 0 {
				return 0, pgerror.New(pgerror.AmbiguousColumn, "ORDER BY \"%s\" is ambiguous", name).At(pos)
			}
			found = i
		}
		if found >= 0 {
			return found, nil
		}
		for i, e := range q.leaves {
			e.name = "*SELECT* " + itoa(i+1)
		}
		return 0, b.missingColumn(&scope{all: q.leaves}, "", name, pos)
	}
	return 0, pgerror.New(pgerror.FeatureNotSupported, "invalid UNION/INTERSECT/EXCEPT ORDER BY clause").
		WithDetail("Only result column names can be used, not expressions or functions.").
		WithHint("Add the expression/function to every SELECT, or move the UNION into a FROM clause.").At(pos)
}

// values binds VALUES.
func (b *binder) values(s *pg.SelectStmt, parent *scope, ctes *cteScope, natural bool) (*boundQuery, error) {
	sc := newScope(parent)
	sc.kind = inValues
	x := exprBinder{binder: b, scope: sc, ctes: ctes}
	rows := make([][]expr.Expr, len(s.ValuesLists))
	for i, l := range s.ValuesLists {
		items := l.GetList().GetItems()
		row, err := x.rowFields(items)
		if err != nil {
			return nil, err
		}
		if i > 0 && len(row) != len(rows[0]) {
			return nil, pgerror.New(pgerror.SyntaxError, "VALUES lists must all be the same length").At(b.pos(nodeLocation(l)))
		}
		rows[i] = row
	}
	q := &boundQuery{}
	cols := make([]plan.Column, len(rows[0]))
	column := make([]expr.Expr, len(rows))
	for c := range cols {
		for i := range rows {
			column[i] = rows[i][c]
		}
		typ, err := expr.CommonType(column, "VALUES")
		if err != nil {
			return nil, err
		}
		domain := b.commonDomain(column)
		for i := range rows {
			if rows[i][c], err = expr.Coerce(rows[i][c], typ, expr.CastImplicit, expr.PosOf(rows[i][c])); err != nil {
				return nil, err
			}
		}
		if plainRecord(typ) == types.Record {
			typ.Mod = b.oneShape(column)
		}
		cols[c] = plan.Column{Name: "column" + itoa(c+1), Type: typ}
		q.cols = append(q.cols, outputColumn{name: cols[c].Name, domain: domain})
	}
	if natural = natural && len(rows) > 1 && s.SortClause == nil; natural {
		for i := range rows {
			rows[i] = append(rows[i][:len(cols):len(cols)], int64Const(int64(i)))
		}
		cols = append(cols, plan.Column{Name: "ordinality", Type: types.Int8, NotNull: true})
		q.order = []plan.SortKey{{Col: len(cols) - 1}}
	}
	q.rel = valuesRel(rows, cols)
	if err := b.setOpOrder(q, s); err != nil {
		return nil, err
	}
	return q, b.limitExprs(x, s, q)
}

// valuesRel is literal rows: one Constant for each run of rows that are all
// literals, a projection of one row for each other.
func valuesRel(rows [][]expr.Expr, cols []plan.Column) plan.Rel {
	cols = notNullWhere(cols, rows)
	if len(rows) == 1 {
		return &plan.Project{Input: unit(), Exprs: rows[0], Cols: cols}
	}
	casts := columnCasts(rows, len(cols))
	var inputs []plan.Rel
	for i := 0; i < len(rows); {
		j := i
		for j < len(rows) && literalRow(rows[j], casts) {
			j++
		}
		if j > i {
			inputs = append(inputs, constantRows(rows[i:j], cols, casts))
			i = j
			continue
		}
		inputs = append(inputs, &plan.Project{Input: unit(), Exprs: rows[i], Cols: cols})
		i++
	}
	if len(inputs) == 1 {
		return inputs[0]
	}
	return &plan.SetOp{Kind: plan.Union, All: true, Inputs: inputs, Cols: cols}
}

// columnCasts finds, for each column, the cast that all its literals have
// around them: it is then applied once to the column. Other casts of literals
// are folded in place.
func columnCasts(rows [][]expr.Expr, n int) []*expr.Call {
	casts := make([]*expr.Call, n)
	for c := range casts {
		same := true
		for _, r := range rows {
			call, ok := r[c].(*expr.Call)
			if ok && len(call.Args) == 1 && call.Fn.Volatility == expr.Immutable {
				_, ok = call.Args[0].(*expr.Const)
			} else {
				ok = false
			}
			if !ok || casts[c] != nil && (casts[c].Fn != call.Fn || casts[c].Typ != call.Typ || casts[c].Args[0].Type() != call.Args[0].Type()) {
				same = false
				break
			}
			casts[c] = call
		}
		if same {
			continue
		}
		casts[c] = nil
		for _, r := range rows {
			r[c] = expr.FoldConstants(r[c])
		}
	}
	return casts
}

// notNullWhere marks the columns in which every row has a literal that is not NULL.
func notNullWhere(cols []plan.Column, rows [][]expr.Expr) []plan.Column {
	out := append([]plan.Column(nil), cols...)
	for c := range out {
		out[c].NotNull = true
		for _, r := range rows {
			k, ok := r[c].(*expr.Const)
			if !ok || k.Val.Null(0) {
				out[c].NotNull = false
				break
			}
		}
	}
	return out
}

// literalRow reports whether every cell is a literal, or a literal under the
// cast of its column.
func literalRow(row []expr.Expr, casts []*expr.Call) bool {
	for c, e := range row {
		if _, ok := e.(*expr.Const); !ok && casts[c] == nil {
			return false
		}
	}
	return true
}

// constantRows makes one Constant of literal rows, under a projection if
// columns have casts.
func constantRows(rows [][]expr.Expr, cols []plan.Column, casts []*expr.Call) plan.Rel {
	vecs := make([]*columnar.Vec, len(cols))
	raw := append([]plan.Column(nil), cols...)
	exprs := make([]expr.Expr, len(cols))
	cast := false
	for c := range cols {
		if casts[c] != nil {
			cast = true
			raw[c].Type = casts[c].Args[0].Type()
		}
		b := columnar.NewBuilder(raw[c].Type.Kind(), len(rows))
		for _, r := range rows {
			b.AppendFrom(literalOf(r[c]).Val, 0)
		}
		vecs[c] = b.Build()
		exprs[c] = plan.RefTo(raw, c)
		if casts[c] != nil {
			call := *casts[c]
			call.Args = []expr.Expr{exprs[c]}
			exprs[c] = &call
		}
	}
	k := &plan.Constant{Cols: raw, Rows: columnar.Batch{Cols: vecs, N: len(rows)}}
	if !cast {
		return k
	}
	return &plan.Project{Input: k, Exprs: exprs, Cols: cols}
}

// literalOf is the literal of a cell, without the cast of its column.
func literalOf(e expr.Expr) *expr.Const {
	if c, ok := e.(*expr.Call); ok {
		e = c.Args[0]
	}
	return e.(*expr.Const)
}
