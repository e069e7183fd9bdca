package planner

import (
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// exprBinder binds expressions over the row of a scope.
type exprBinder struct {
	*binder
	scope *scope
	ctes  *cteScope
}

// condition binds a boolean expression of a clause.
func (x exprBinder) condition(n *pg.Node, clause string) (expr.Expr, error) {
	e, err := x.expr(n)
	if err != nil {
		return nil, err
	}
	return expr.CoerceToBool(e, clause, x.pos(nodeLocation(n)))
}

// exprs binds a list.
func (x exprBinder) exprs(list []*pg.Node) ([]expr.Expr, error) {
	out := make([]expr.Expr, 0, len(list))
	for _, n := range list {
		e, err := x.expr(n)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// expr binds an expression.
func (x exprBinder) expr(n *pg.Node) (expr.Expr, error) {
	if x.depth++; x.depth > maxDepth {
		return nil, pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded").
			WithHint("Increase the configuration parameter \"max_stack_depth\" (currently 2048kB), after ensuring the platform's stack depth limit is adequate.")
	}
	defer func() { x.depth-- }()
	e, err := x.anyExpr(n)
	if err != nil {
		return nil, err
	}
	if x.collated != nil {
		if err := x.checkCollations(n, e); err != nil {
			return nil, err
		}
	}
	return x.stored(e), nil
}

func (x exprBinder) anyExpr(node *pg.Node) (expr.Expr, error) {
	switch n := node.GetNode().(type) {
	case *pg.Node_ColumnRef:
		return x.column(n.ColumnRef)
	case *pg.Node_AConst:
		return x.constant(n.AConst)
	case *pg.Node_ParamRef:
		if n.ParamRef.Number == 0 { // made by attributeCall
			return x.given[node], nil
		}
		if x.function != nil {
			return x.functionArgument(n.ParamRef.Number, x.pos(n.ParamRef.Location))
		}
		if x.ctx.Arguments != nil {
			return x.givenArgument(n.ParamRef.Number, x.pos(n.ParamRef.Location))
		}
		return x.param(n.ParamRef.Number, x.pos(n.ParamRef.Location))
	case *pg.Node_AExpr:
		return x.aExpr(n.AExpr)
	case *pg.Node_BoolExpr:
		return x.boolExpr(n.BoolExpr)
	case *pg.Node_FuncCall:
		return x.funcCall(n.FuncCall)
	case *pg.Node_TypeCast:
		return x.typeCast(n.TypeCast)
	case *pg.Node_CaseExpr:
		return x.caseExpr(n.CaseExpr)
	case *pg.Node_SubLink:
		return x.subLink(n.SubLink)
	case *pg.Node_NullTest:
		e, err := x.expr(n.NullTest.Arg)
		if err != nil {
			return nil, err
		}
		return expr.NewIsNull(x.outerRow(e), n.NullTest.Nulltesttype == pg.NullTestType_IS_NOT_NULL), nil
	}
	return x.rareExpr(node)
}

// rareExpr binds the kinds of expressions that are not among the most common.
func (x exprBinder) rareExpr(node *pg.Node) (expr.Expr, error) {
	switch n := node.GetNode().(type) {
	case *pg.Node_MergeSupportFunc:
		return x.mergeActionRef(n.MergeSupportFunc)
	case *pg.Node_BooleanTest:
		return x.booleanTest(n.BooleanTest)
	case *pg.Node_CoalesceExpr:
		args, err := x.exprs(n.CoalesceExpr.Args)
		if err != nil {
			return nil, err
		}
		if err := x.refuseSets("set-returning functions are not allowed in COALESCE", args...); err != nil {
			return nil, err
		}
		e, err := expr.NewCoalesce(args, x.pos(n.CoalesceExpr.Location))
		if err != nil {
			return nil, err
		}
		return x.declareCommon(e, args), nil
	case *pg.Node_MinMaxExpr:
		args, err := x.exprs(n.MinMaxExpr.Args)
		if err != nil {
			return nil, err
		}
		e, err := expr.NewMinMax(n.MinMaxExpr.Op == pg.MinMaxOp_IS_GREATEST, args, x.pos(n.MinMaxExpr.Location))
		if err != nil {
			return nil, err
		}
		return x.declareCommon(e, args), nil
	case *pg.Node_AArrayExpr:
		return x.array(n.AArrayExpr, types.Unknown)
	case *pg.Node_RowExpr:
		fields, err := x.rowFields(n.RowExpr.Args)
		if err != nil {
			return nil, err
		}
		return expr.NewRow(fields), nil
	case *pg.Node_AIndirection:
		return x.indirection(n.AIndirection)
	case *pg.Node_CollateClause:
		return x.collateNode(node)
	case *pg.Node_SqlvalueFunction:
		return x.valueFunction(n.SqlvalueFunction)
	case *pg.Node_GroupingFunc:
		return x.groupingFunc(n.GroupingFunc)
	case *pg.Node_SetToDefault:
		return nil, pgerror.New(pgerror.SyntaxError, "DEFAULT is not allowed in this context").At(x.pos(n.SetToDefault.Location))
	case *pg.Node_NamedArgExpr:
		return x.expr(n.NamedArgExpr.Arg)
	case *pg.Node_CurrentOfExpr:
		return nil, pgerror.Unsupported("WHERE CURRENT OF")
	case *pg.Node_XmlExpr:
		return x.xmlExpr(n.XmlExpr)
	case *pg.Node_XmlSerialize:
		return x.xmlSerialize(n.XmlSerialize)
	case *pg.Node_List:
		fields, err := x.exprs(n.List.Items)
		if err != nil {
			return nil, err
		}
		return expr.NewRow(fields), nil
	case nil:
		return nil, pgerror.New(pgerror.SyntaxError, "an expression is missing")
	}
	if e, err := x.sqlJSON(node); e != nil || err != nil {
		return e, err
	}
	return nil, pgerror.Unsupported("this expression").At(x.pos(nodeLocation(node)))
}

// constant is a literal: an integer is int4 or int8 if it fits, else numeric;
// a string is of unknown type until something determines it.
func (x exprBinder) constant(c *pg.A_Const) (expr.Expr, error) {
	pos := x.pos(c.Location)
	if c.Isnull {
		n := nullConst(types.Unknown)
		n.Pos = pos
		return n, nil
	}
	switch v := c.Val.(type) {
	case *pg.A_Const_Ival:
		k := int32Const(v.Ival.Ival)
		k.Pos = pos
		return k, nil
	case *pg.A_Const_Fval:
		if i, ok := integerLiteral(v.Fval.Fval); ok {
			k := int64Const(i)
			if int64(int32(i)) == i { // only -2147483648, which the grammar makes of a larger literal
				k = int32Const(int32(i))
			}
			k.Pos = pos
			return k, nil
		}
		return literal(types.Numeric, numericLiteral(v.Fval.Fval), pos)
	case *pg.A_Const_Sval:
		return unknownConst(v.Sval.Sval, pos), nil
	case *pg.A_Const_Boolval:
		k := boolConst(v.Boolval.Boolval)
		k.Pos = pos
		return k, nil
	case *pg.A_Const_Bsval:
		return literal(types.Of(types.OIDBit), v.Bsval.Bsval, pos)
	}
	return nil, pgerror.Unsupported("this constant").At(pos)
}

// integerLiteral reads a literal too large for int4, in any base.
func integerLiteral(s string) (int64, bool) {
	i, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		i, err = strconv.ParseInt(s, 10, 64)
	}
	return i, err == nil
}

// numericLiteral is the decimal text of a literal that may have underscores.
func numericLiteral(s string) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '_' {
			out = append(out, s[i])
		}
	}
	return string(out)
}

// literal is a constant of a type from its text form.
func literal(t types.Type, text string, pos int) (expr.Expr, error) {
	b := columnar.NewBuilder(t.Kind(), 1)
	if err := types.ParseText(b, t, text, nil); err != nil {
		return nil, pgerror.As(err).At(pos)
	}
	return &expr.Const{Val: b.Build(), Typ: t, Pos: pos}, nil
}

// unknownConst is a string literal.
func unknownConst(s string, pos int) *expr.Const {
	b := columnar.NewBuilder(columnar.KindBytes, 1)
	b.String(s)
	return &expr.Const{Val: b.Build(), Typ: types.Unknown, Pos: pos}
}

func oidConst(v int64, typ types.Type) *expr.Const {
	return &expr.Const{Val: columnar.FromSlice([]int64{v}, nil), Typ: typ}
}

// boolExpr binds AND, OR, NOT.
func (x exprBinder) boolExpr(e *pg.BoolExpr) (expr.Expr, error) {
	pos := x.pos(e.Location)
	args := make([]expr.Expr, len(e.Args))
	name := map[pg.BoolExprType]string{
		pg.BoolExprType_AND_EXPR: "AND", pg.BoolExprType_OR_EXPR: "OR", pg.BoolExprType_NOT_EXPR: "NOT",
	}[e.Boolop]
	for i, a := range e.Args {
		var err error
		if args[i], err = x.condition(a, name); err != nil {
			return nil, err
		}
	}
	if e.Boolop == pg.BoolExprType_NOT_EXPR {
		return expr.NewNot(args[0], pos)
	}
	return expr.NewLogic(e.Boolop == pg.BoolExprType_AND_EXPR, args, pos)
}

func (x exprBinder) booleanTest(t *pg.BooleanTest) (expr.Expr, error) {
	e, err := x.expr(t.Arg)
	if err != nil {
		return nil, err
	}
	test := map[pg.BoolTestType]expr.BoolTest{
		pg.BoolTestType_IS_TRUE: expr.IsTrue, pg.BoolTestType_IS_NOT_TRUE: expr.IsNotTrue,
		pg.BoolTestType_IS_FALSE: expr.IsFalse, pg.BoolTestType_IS_NOT_FALSE: expr.IsNotFalse,
		pg.BoolTestType_IS_UNKNOWN: expr.IsUnknown, pg.BoolTestType_IS_NOT_UNKNOWN: expr.IsNotUnknown,
	}[t.Booltesttype]
	return expr.NewBoolTest(e, test, x.pos(nodeLocation(t.Arg)))
}

// caseExpr binds CASE. `CASE x WHEN v` is `CASE WHEN x = v`.
func (x exprBinder) caseExpr(c *pg.CaseExpr) (expr.Expr, error) {
	pos := x.pos(c.Location)
	var arg expr.Expr
	var err error
	if c.Arg != nil {
		if arg, err = x.expr(c.Arg); err != nil {
			return nil, err
		}
		if arg, err = textIfUnknown(arg); err != nil {
			return nil, err
		}
		return expr.Once(arg, pos, func(v expr.Expr) (expr.Expr, error) { return x.caseOf(c, v, pos) })
	}
	return x.caseOf(c, nil, pos)
}

// caseOf binds CASE whose operand, nil for none, is arg.
func (x exprBinder) caseOf(c *pg.CaseExpr, arg expr.Expr, pos int) (expr.Expr, error) {
	whens := make([]expr.When, len(c.Args))
	for i, n := range c.Args {
		w := n.GetCaseWhen()
		cond, err := x.expr(w.Expr)
		if err != nil {
			return nil, err
		}
		at := x.pos(nodeLocation(w.Expr))
		if arg != nil {
			cond, err = x.operator("=", arg, cond, x.pos(w.Location))
		} else {
			cond, err = expr.CoerceToBool(cond, "CASE/WHEN", at)
		}
		if err != nil {
			return nil, err
		}
		then, err := x.expr(w.Result)
		if err != nil {
			return nil, err
		}
		whens[i] = expr.When{Cond: cond, Then: then}
	}
	var els expr.Expr
	var err error
	if c.Defresult != nil {
		if els, err = x.expr(c.Defresult); err != nil {
			return nil, err
		}
	}
	all := []expr.Expr{els}
	for _, w := range whens {
		all = append(all, w.Cond, w.Then)
	}
	if err := x.refuseSets("set-returning functions are not allowed in CASE", all...); err != nil {
		return nil, err
	}
	e, err := expr.NewCase(whens, els, pos)
	if err != nil || els == nil {
		return e, err
	}
	results := []expr.Expr{els}
	for _, w := range whens {
		results = append(results, w.Then)
	}
	return x.declareCommon(e, results), nil
}

// refuseSets fails if there is a set-returning function in one of es.
func (x exprBinder) refuseSets(where string, es ...expr.Expr) error {
	if x.scope.sel == nil || len(x.scope.sel.srfs) == 0 {
		return nil // the usual case, without a walk
	}
	for _, e := range es {
		i := placeholderIn(e, srfBase, srfBase<<1)
		if i < 0 {
			continue
		}
		for _, c := range x.scope.sel.srfs {
			if k := i - srfBase - c.first; k >= 0 && k < len(c.cols) {
				return pgerror.New(pgerror.FeatureNotSupported, "%s", where).
					WithHint("You might be able to move the set-returning function into a LATERAL FROM item.").At(c.pos)
			}
		}
	}
	return nil
}

// typeCast binds CAST(x AS t) and x::t.
func (x exprBinder) typeCast(c *pg.TypeCast) (expr.Expr, error) {
	typ, err := x.typeName(c.TypeName)
	if err != nil {
		return nil, err
	}
	pos := x.pos(c.Location)
	if pos == 0 {
		pos = x.pos(c.TypeName.GetLocation())
	}
	if a := c.Arg.GetAArrayExpr(); a != nil && typ.OID.IsArray() {
		e, err := x.array(a, typ)
		if err != nil {
			return nil, err
		}
		return expr.Coerce(e, typ, expr.CastExplicit, pos)
	}
	if f := c.Arg.GetFuncCall(); f != nil && typ.OID.IsMap() && len(f.Args) == 0 && listNames(f.Funcname)[0] == "map" {
		return expr.EmptyMap(typ), nil
	}
	e, err := x.expr(c.Arg)
	if err != nil || typ.OID.IsDomain() && x.domains[e] == typ.OID {
		return e, err
	}
	if e, err = expr.Coerce(e, typ, expr.CastExplicit, pos); err != nil {
		return nil, err
	}
	return x.declare(e, typ), nil
}

// array binds ARRAY[…]. A known array type (from a cast around it) is the type
// of the elements, each of which is cast by itself.
func (x exprBinder) array(a *pg.A_ArrayExpr, typ types.Type) (expr.Expr, error) {
	pos := x.pos(a.Location)
	elems := make([]expr.Expr, len(a.Elements))
	multi := false // some element is an array itself
	for i, n := range a.Elements {
		var err error
		if in := n.GetAArrayExpr(); in != nil {
			elems[i], err = x.array(in, typ)
		} else {
			elems[i], err = x.expr(n)
		}
		if err != nil {
			return nil, err
		}
		multi = multi || elems[i].Type().OID.IsArray()
	}
	if typ.OID == types.OIDUnknown {
		if len(elems) == 0 {
			return nil, pgerror.New(pgerror.IndeterminateDatatype, "cannot determine type of empty array").
				WithHint("Explicitly cast to the desired type, for example ARRAY[]::integer[].").At(pos)
		}
		e, err := expr.NewArray(elems, pos)
		if d := x.commonDomain(elems); err == nil && d != 0 && d.Array() != 0 && !multi {
			e.(*expr.ArrayCtor).Typ = types.Of(d.Array())
		}
		return e, err
	}
	if len(elems) == 0 {
		return &expr.ArrayCtor{Typ: types.Of(typ.OID)}, nil
	}
	elem := typ.ElemType()
	if multi {
		elem = typ
	}
	for i, n := range a.Elements {
		var err error
		if elems[i], err = expr.Coerce(elems[i], elem, expr.CastExplicit, x.pos(nodeLocation(n))); err != nil {
			return nil, err
		}
	}
	return expr.NewArray(elems, pos)
}

// rowFields binds the fields of ROW(…), where t.* stands for its columns.
func (x exprBinder) rowFields(list []*pg.Node) ([]expr.Expr, error) {
	var out []expr.Expr
	for _, n := range list {
		if q, ok := starOf(n); ok {
			items, err := x.expandStar(x.scope, q, x.pos(n.GetColumnRef().GetLocation()))
			if err != nil {
				return nil, err
			}
			for _, it := range items {
				out = append(out, it.expr)
			}
			continue
		}
		e, err := x.expr(n)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// indirection binds subscripts and field selections.
func (x exprBinder) indirection(in *pg.A_Indirection) (expr.Expr, error) {
	e, done, err := x.fieldOfCall(in)
	if err != nil {
		return nil, err
	}
	if l := x.listOfOne(in); l != nil {
		if e, err = x.array(l, types.Unknown); err != nil {
			return nil, err
		}
		done = 1
	}
	if e == nil {
		if e, err = x.expr(in.Arg); err != nil {
			return nil, err
		}
	}
	pos := x.pos(nodeLocation(in.Arg))
	var subs []expr.Subscript
	flush := func() error {
		if len(subs) == 0 {
			return nil
		}
		e, err = expr.NewSubscript(e, subs, pos)
		subs = nil
		return err
	}
	for _, n := range in.Indirection[done:] {
		if ix := n.GetAIndices(); ix != nil {
			s, err := x.subscript(ix)
			if err != nil {
				return nil, err
			}
			subs = append(subs, s)
			continue
		}
		if err := flush(); err != nil {
			return nil, err
		}
		if n.GetAStar() != nil {
			return nil, pgerror.New(pgerror.FeatureNotSupported, "row expansion via \"*\" is not supported here").At(pos)
		}
		x.ctx.attribute.note(e.Type().OID, n)
		of := e
		if e, err = x.fieldOf(of, n.GetString_().GetSval(), pos); err != nil {
			if e = x.attributeCall(of, n, nodeLocation(in.Arg)); e == nil {
				return nil, err
			}
		}
	}
	return e, flush()
}

// listOfOne is LIST[x], which the grammar takes for a subscript of a column, where
// there is no such column: Materialize's spelling of ARRAY[x].
func (x exprBinder) listOfOne(in *pg.A_Indirection) *pg.A_ArrayExpr {
	ref, first := in.Arg.GetColumnRef(), in.Indirection[0].GetAIndices()
	if ref == nil || len(ref.Fields) != 1 || ref.Fields[0].GetString_().GetSval() != "list" || first == nil || first.IsSlice {
		return nil
	}
	if _, err := x.columnRef(x.scope, ref); err == nil || pgerror.As(err).Code != pgerror.UndefinedColumn {
		return nil
	}
	return &pg.A_ArrayExpr{Elements: []*pg.Node{first.Uidx}, Location: ref.Location}
}

func (x exprBinder) subscript(ix *pg.A_Indices) (expr.Subscript, error) {
	s := expr.Subscript{Slice: ix.IsSlice}
	var err error
	if ix.IsSlice && ix.Lidx != nil {
		if s.Lo, err = x.expr(ix.Lidx); err != nil {
			return s, err
		}
	}
	if ix.Uidx == nil {
		return s, nil
	}
	e, err := x.expr(ix.Uidx)
	if ix.IsSlice {
		s.Hi = e
	} else {
		s.Lo = e
	}
	return s, err
}

// valueFunction binds CURRENT_DATE and its like.
func (x exprBinder) valueFunction(f *pg.SQLValueFunction) (expr.Expr, error) {
	opts := expr.CallOptions{Pos: x.pos(f.Location)}
	name, typ := "", types.Unknown
	switch f.Op {
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_DATE:
		name = "current_date"
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIME, pg.SQLValueFunctionOp_SVFOP_CURRENT_TIME_N:
		name, typ = "current_time", types.Of(types.OIDTimeTZ)
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP, pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N:
		name, typ = "now", types.TimestampTZ
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIME, pg.SQLValueFunctionOp_SVFOP_LOCALTIME_N:
		name, typ = "localtime", types.Time
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP, pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N:
		name, typ = "localtimestamp", types.Timestamp
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_ROLE, pg.SQLValueFunctionOp_SVFOP_CURRENT_USER, pg.SQLValueFunctionOp_SVFOP_USER:
		name = "current_user"
	case pg.SQLValueFunctionOp_SVFOP_SESSION_USER:
		name = "session_user"
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_CATALOG:
		name = "current_database"
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_SCHEMA:
		name = "current_schema"
	}
	e, err := expr.NewCall(name, nil, opts)
	if err != nil || typ.OID == types.OIDUnknown || f.Typmod < 0 || !hasPrecision(f.Op) {
		return e, err
	}
	x.notePrecision(typ.OID, f.Typmod, 0)
	typ.Mod = min(f.Typmod, 6)
	return expr.Coerce(e, typ, expr.CastExplicit, opts.Pos)
}

func hasPrecision(op pg.SQLValueFunctionOp) bool {
	switch op {
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIME_N, pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N,
		pg.SQLValueFunctionOp_SVFOP_LOCALTIME_N, pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N:
		return true
	}
	return false
}

// groupingFunc binds grouping(…).
func (x exprBinder) groupingFunc(g *pg.GroupingFunc) (expr.Expr, error) {
	pos := x.pos(g.Location)
	if len(g.Args) > 31 {
		return nil, pgerror.New(pgerror.TooManyArguments, "GROUPING must have fewer than 32 arguments").At(pos)
	}
	args, err := x.exprs(g.Args)
	if err != nil {
		return nil, err
	}
	// like an aggregate, it is of the query that its arguments are of
	level := exprLevel(args)
	host := x.scope.up(level)
	if host.sel == nil || host.kind.agg != "" {
		return nil, pgerror.New(pgerror.GroupingError, "grouping operations are not allowed in %s", host.kind.agg).At(pos)
	}
	if level > 0 {
		for i, a := range args {
			args[i] = x.raise(a, level)
		}
	}
	call := grouping{at: pos, args: args}
	for _, n := range g.Args {
		call.pos = append(call.pos, x.pos(nodeLocation(n)))
	}
	index := groupBase + len(host.sel.groupings)
	host.sel.groupings = append(host.sel.groupings, call)
	if level == 0 {
		return &expr.Column{Index: index, Typ: types.Int4, Name: "grouping"}, nil
	}
	host.used = true
	return &expr.OuterColumn{Depth: level, Index: index, Typ: types.Int4, Name: "grouping"}, nil
}

// subLink binds a subquery in an expression.
func (x exprBinder) subLink(s *pg.SubLink) (expr.Expr, error) {
	pos := x.pos(s.Location)
	x.natural = s.SubLinkType == pg.SubLinkType_ARRAY_SUBLINK
	q, err := x.query(s.Subselect.GetSelectStmt(), x.scope, x.ctes, resolveUnknown)
	if err != nil {
		return nil, err
	}
	rel := q.collection()
	cols := rel.Columns()
	if len(q.cols) > 0 {
		x.linkNames[s] = q.cols[0].name
	}
	switch s.SubLinkType {
	case pg.SubLinkType_EXISTS_SUBLINK:
		return &expr.Subquery{Kind: expr.SubqueryExists, Rel: rel, Typ: types.Bool, Pos: pos}, nil
	case pg.SubLinkType_EXPR_SUBLINK:
		if len(cols) != 1 {
			return nil, pgerror.New(pgerror.SyntaxError, "subquery must return only one column").At(pos)
		}
		e := &expr.Subquery{Kind: expr.SubqueryScalar, Rel: rel, Typ: cols[0].Type, Pos: pos}
		return x.declare(e, types.Of(q.cols[0].domain)), nil
	case pg.SubLinkType_ARRAY_SUBLINK:
		return x.arraySubquery(q, pos)
	}
	return x.comparedSubquery(s, rel, pos)
}

// arraySubquery is ARRAY(SELECT …): its elements come in the query's order,
// which is kept as columns after the first.
func (x exprBinder) arraySubquery(q *boundQuery, pos int) (expr.Expr, error) {
	if len(q.cols) != 1 {
		return nil, pgerror.New(pgerror.SyntaxError, "subquery must return only one column").At(pos)
	}
	typ := q.rel.Columns()[0].Type
	if !typ.OID.IsArray() {
		if typ.OID.Array() == 0 {
			return nil, pgerror.New(pgerror.UndefinedObject, "could not find array type for data type %s", typ).At(pos)
		}
		if typ = arrayType(typ); q.cols[0].domain.Array() != 0 {
			typ = types.Of(q.cols[0].domain.Array())
		}
	} else {
		typ = types.Of(typ.OID)
	}
	rel := q.collection()
	if len(q.order) > 0 {
		if q.limit != nil || q.offset != nil {
			rel = &plan.TopK{Input: q.rel, Order: q.order, Limit: q.limit, Offset: q.offset, WithTies: q.ties}
		} else {
			rel = q.rel
		}
		fn, _, _, err := expr.ResolveAggregate("array_agg", []expr.Expr{plan.Ref(rel, 0)}, expr.CallOptions{Pos: pos})
		if err != nil {
			return nil, err
		}
		return orderedArray(rel, q.order, fn, typ, pos)
	}
	return &expr.Subquery{Kind: expr.SubqueryArray, Rel: rel, Typ: typ, Pos: pos}, nil
}

// orderedArray is the array of an ordered subquery: an ordered array_agg, or
// the empty array if there are no rows.
func orderedArray(rel plan.Rel, order []plan.SortKey, fn *expr.Aggregate, typ types.Type, pos int) (expr.Expr, error) {
	agg := plan.AggCall{Fn: fn, Args: []expr.Expr{plan.Ref(rel, 0)}, Typ: typ, Pos: pos}
	for _, k := range order {
		agg.OrderBy = append(agg.OrderBy, plan.SortExpr{Expr: plan.Ref(rel, k.Col), Desc: k.Desc, NullsFirst: k.NullsFirst})
	}
	a := &plan.Aggregate{Input: rel, Aggs: []plan.AggCall{agg}, Cols: []plan.Column{{Name: "array", Type: typ}}}
	sub := &expr.Subquery{Kind: expr.SubqueryScalar, Rel: a, Typ: typ, Pos: pos}
	return &expr.Coalesce{Args: []expr.Expr{sub, &expr.ArrayCtor{Typ: typ}}, Typ: typ}, nil
}

// comparedSubquery is `x op ANY|ALL (q)`, `x IN (q)` and `(a, b) op (q)`.
func (x exprBinder) comparedSubquery(s *pg.SubLink, rel plan.Rel, pos int) (expr.Expr, error) {
	left, err := x.operand(s.Testexpr)
	if err != nil {
		return nil, err
	}
	op, opPos := "=", pos
	if len(s.OperName) > 0 {
		op = s.OperName[len(s.OperName)-1].GetString_().GetSval()
	}
	lefts := []expr.Expr{left}
	if isRow(left) {
		lefts = left.(*expr.Row).Fields
	}
	cols := rel.Columns()
	switch {
	case len(cols) < len(lefts):
		return nil, pgerror.New(pgerror.SyntaxError, "subquery has too few columns").At(pos)
	case len(cols) > len(lefts):
		return nil, pgerror.New(pgerror.SyntaxError, "subquery has too many columns").At(pos)
	}
	rights := plan.Refs(cols)
	outer := make([]expr.Expr, len(lefts))
	for i, l := range lefts {
		outer[i] = x.deepen(l)
	}
	test, err := x.compareRows(op, outer, rights, opPos)
	if err != nil {
		return nil, err
	}
	if test, err = x.mustBeBool(test, op, opPos); err != nil {
		return nil, err
	}
	switch s.SubLinkType {
	case pg.SubLinkType_ANY_SUBLINK:
		return &expr.Subquery{Kind: expr.SubqueryAny, Rel: rel, Test: test, Typ: types.Bool, Pos: pos}, nil
	case pg.SubLinkType_ALL_SUBLINK:
		return &expr.Subquery{Kind: expr.SubqueryAll, Rel: rel, Test: test, Typ: types.Bool, Pos: pos}, nil
	}
	// (a, b) = (SELECT …): the comparison with the only row, NULL without one.
	p := &plan.Project{Input: rel, Exprs: []expr.Expr{test}, Cols: []plan.Column{{Name: "?column?", Type: types.Bool}}}
	return &expr.Subquery{Kind: expr.SubqueryScalar, Rel: p, Typ: types.Bool, Pos: pos}, nil
}

func (x exprBinder) mustBeBool(e expr.Expr, op string, pos int) (expr.Expr, error) {
	if e.Type().OID != types.OIDBool {
		return nil, pgerror.New(pgerror.WrongObjectType, "operator must return type boolean, not type %s", e.Type()).At(pos)
	}
	return e, nil
}

// deepen is an expression of this scope as seen from a subquery in it, with
// the places where its columns were named.
func (b *binder) deepen(e expr.Expr) expr.Expr {
	keep := func(from, to expr.Expr) expr.Expr {
		if use, ok := b.refs[from]; ok {
			use.lifted = true
			b.refs[to] = use
		}
		return to
	}
	return mapRefs(e,
		func(c *expr.Column) expr.Expr {
			return keep(c, &expr.OuterColumn{Depth: 1, Index: c.Index, Typ: c.Typ, Name: c.Name})
		},
		func(c *expr.OuterColumn, _ int) expr.Expr { return keep(c, atDepth(c, c.Depth+1)) })
}
