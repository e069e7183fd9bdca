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

// Functions in SQL are inlined: a call is the query of the function's body, as a
// lateral join with the row of the arguments, or just an expression where the
// body is one.

// functionScope is what the body of a function that is being bound sees.
type functionScope struct {
	scope *scope
	args  []catalog.Argument
}

// maxInlined bounds the nesting of calls of SQL functions.
const maxInlined = 100

// userFunctions are the functions of the catalog that a name means.
func (b *binder) userFunctions(names []string) []*catalog.Object {
	name := names[len(names)-1]
	if len(names) > 1 {
		return b.ctx.Catalog.Functions(names[len(names)-2], name)
	}
	if expr.IsFunction(name) || expr.IsAggregate(name) || expr.IsTableFunction(name) {
		return nil
	}
	for _, schema := range b.ctx.SearchPath {
		if fs := b.ctx.Catalog.Functions(schema, name); fs != nil {
			return fs
		}
	}
	return nil
}

// userCall resolves a call of a function of the catalog; nil if it is none. A
// function of polymorphic types comes with the types that they stand for.
func (x exprBinder) userCall(f *pg.FuncCall) (*catalog.Object, []expr.Expr, error) {
	names := listNames(f.Funcname)
	candidates := x.userFunctions(names)
	if candidates == nil {
		return nil, nil, nil
	}
	pos := x.pos(f.Location)
	args, argNames, err := x.args(f)
	if err != nil {
		return nil, nil, err
	}
	given := args
	o, args, err := x.resolveUser(dotted(names), candidates, args, expr.CallOptions{Pos: pos, ArgNames: argNames, Variadic: f.FuncVariadic})
	if err != nil {
		return nil, nil, err
	}
	if o.Function.Procedure {
		e := x.noFunction(dotted(names), given, pos).(*pgerror.Error)
		return nil, nil, pgerror.New(pgerror.WrongObjectType, "%s", strings.Replace(strings.TrimPrefix(e.Message, "function "), " does not exist", " is a procedure", 1)).
			WithHint("To call a procedure, use CALL.").At(pos)
	}
	return o, args, x.notAggregate(f, names[len(names)-1], pos)
}

// resolveUser picks one of some functions of the catalog for a call, and gives the
// arguments by its parameters.
func (x exprBinder) resolveUser(name string, candidates []*catalog.Object, args []expr.Expr, opts expr.CallOptions) (*catalog.Object, []expr.Expr, error) {
	sigs := make([]expr.Signature, len(candidates))
	for i, o := range candidates {
		for _, a := range o.Function.Args {
			sigs[i].Args, sigs[i].Names = append(sigs[i].Args, a.Type), append(sigs[i].Names, a.Name)
			if a.Default != "" {
				sigs[i].Defaults++
			}
			sigs[i].Variadic = a.Mode == 'v'
		}
	}
	r, err := expr.ResolveOverload(name, sigs, args, opts)
	if err != nil {
		return nil, nil, err
	}
	o, err := actualFunction(candidates[r.Index], r)
	if err != nil {
		return nil, nil, err
	}
	for i, a := range o.Function.Args {
		if r.Args[i] == nil {
			if r.Args[i], err = x.argumentDefault(a); err != nil {
				return nil, nil, err
			}
		}
	}
	return o, r.Args, nil
}

// actualFunction is a function with the types that its polymorphic ones stand for.
func actualFunction(o *catalog.Object, r *expr.Overload) (*catalog.Object, error) {
	f := *o.Function
	polymorphic := false
	actual := func(t types.Type) (types.Type, error) {
		if !expr.IsPolymorphic(t.OID) {
			return t, nil
		}
		polymorphic = true
		return r.Actual(t)
	}
	list := func(in []catalog.Argument) ([]catalog.Argument, error) {
		out := slices.Clone(in)
		var err error
		for i := range out {
			if out[i].Type, err = actual(out[i].Type); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	var err error
	if f.Args, err = list(f.Args); err != nil {
		return nil, err
	}
	if f.Table, err = list(f.Table); err != nil {
		return nil, err
	}
	if f.Returns, err = actual(f.Returns); err != nil || !polymorphic {
		return o, err
	}
	c := *o
	c.Function = &f
	return &c, nil
}

// argumentDefault binds the default of an argument.
func (b *binder) argumentDefault(a catalog.Argument) (expr.Expr, error) {
	c := catalog.Column{Name: a.Name, Type: a.Type, Default: a.Default}
	return b.defaultOf(&c)
}

// functionBody binds the body of a function, over the columns of its arguments,
// which stand one scope out. scalar says that just the first row is wanted.
func (b *binder) functionBody(o *catalog.Object, scalar bool) (*boundQuery, error) {
	if b.inlined++; b.inlined > maxInlined {
		return nil, pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded")
	}
	defer func() { b.inlined-- }()
	fn := o.Function
	q, err := lastQuery(fn)
	if err != nil {
		return nil, err
	}
	if q.Stmt == nil { // an empty body, of a function that returns nothing
		return b.nothing(), nil
	}
	fs := &functionScope{scope: newScope(nil), args: fn.Args}
	e := &entry{name: o.Name, relVisible: true, colsVisible: true}
	for i, a := range fn.Args {
		name := a.Name
		if name == "" {
			name = "$" + itoa(i+1)
		}
		e.columns = append(e.columns, entryColumn{name: name, index: i, typ: types.Of(a.Type.OID).Storage(), domain: domainType(a.Type)})
	}
	fs.scope.lateral, fs.scope.entries = true, []*entry{e}
	src, outer := b.src, b.function
	b.src, b.function = newSource(fn.Body, q.Base), fs
	b.src.silent = !(b.checking && b.inlined == 1)
	bq, err := b.query(q.Stmt.GetSelectStmt(), fs.scope, nil, resolveUnknown)
	b.src, b.function = src, outer
	if err != nil {
		return nil, err
	}
	if fn.Returns.OID == types.OIDVoid {
		return b.nothing(), nil
	}
	if err := functionResult(o, bq); err != nil {
		return nil, err
	}
	if scalar && bq.limit == nil && !isOneRow(bq.rel) {
		bq.limit = int64Const(1)
	}
	return bq, nil
}

// nothing is what a function returns that returns void.
func (b *binder) nothing() *boundQuery {
	col := plan.Column{Name: "void", Type: types.Void}
	return &boundQuery{rel: &plan.Project{Input: unit(), Exprs: []expr.Expr{nullConst(types.Void)}, Cols: []plan.Column{col}},
		cols: []outputColumn{{name: col.Name}}}
}

// lastQuery is the last of the statements of a function's body, which decides
// what it returns. Those before are queries without effects.
func lastQuery(f *catalog.Function) (parser.Query, error) {
	stmts, err := parser.Parse(f.Body)
	if err != nil {
		return parser.Query{}, err
	}
	for i, st := range stmts {
		n, ok := st.Node.(*parser.Select)
		if !ok {
			break
		}
		if i == len(stmts)-1 {
			return n.Query, nil
		}
	}
	if len(stmts) == 0 && f.Returns.OID == types.OIDVoid {
		return parser.Query{}, nil
	}
	return parser.Query{}, returnMismatch(f).WithDetail("Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.")
}

func returnMismatch(f *catalog.Function) *pgerror.Error {
	return pgerror.New(pgerror.InvalidFunctionDefinition, "return type mismatch in function declared to return %s", returnsText(f))
}

// isOneRow reports whether a relation is one row made of nothing.
func isOneRow(r plan.Rel) bool {
	p, ok := r.(*plan.Project)
	if !ok {
		return false
	}
	c, ok := p.Input.(*plan.Constant)
	return ok && c.Rows.N == 1 && len(c.Rows.Cols) == 0
}

// functionResult gives the results of a body the types that the function returns.
func functionResult(o *catalog.Object, q *boundQuery) error {
	want := ResultTypes(o.Function)
	if want == nil { // a record: whatever the query gives
		return nil
	}
	mismatch := func(detail string, args ...any) error {
		return returnMismatch(o.Function).WithDetail(detail, args...)
	}
	if len(want) == 1 && want[0].OID.Fields() != nil && (len(q.cols) != 1 || !expr.CanCoerce(q.rel.Columns()[0].Type, want[0], expr.CastAssignment)) {
		return rowOf(q, want[0], mismatch)
	}
	if len(q.cols) < len(want) {
		return mismatch("Final statement returns too few columns.")
	}
	if len(q.cols) > len(want) {
		if len(want) == 1 {
			return mismatch("Final statement must return exactly one column.")
		}
		return mismatch("Final statement returns too many columns.")
	}
	for i, t := range want {
		cols := q.rel.Columns()
		if cols[i].Type.OID == t.OID {
			continue
		}
		if !expr.CanCoerce(cols[i].Type, t, expr.CastAssignment) {
			if len(want) == 1 {
				return mismatch("Actual return type is %s.", types.Of(cols[i].Type.OID))
			}
			return mismatch("Final statement returns %s instead of %s at column %d.", types.Of(cols[i].Type.OID), types.Of(t.OID), i+1)
		}
		p, ok := q.rel.(*plan.Project)
		if !ok {
			p = &plan.Project{Input: q.rel, Exprs: plan.Refs(cols), Cols: cols}
		}
		c := *p
		c.Exprs, c.Cols = slices.Clone(p.Exprs), slices.Clone(p.Cols)
		e, err := expr.Coerce(c.Exprs[i], t, expr.CastAssignment, 0)
		if err != nil {
			return err
		}
		c.Exprs[i], c.Cols[i].Type = e, t.Storage()
		q.rel = &c
	}
	return nil
}

// rowOf makes the columns of a body's query one value of a composite type.
func rowOf(q *boundQuery, t types.Type, mismatch func(detail string, args ...any) error) error {
	fields, cols := t.OID.Fields(), q.rel.Columns()
	switch {
	case len(q.cols) < len(fields):
		return mismatch("Final statement returns too few columns.")
	case len(q.cols) > len(fields):
		return mismatch("Final statement returns too many columns.")
	}
	row, names := make([]expr.Expr, len(fields)), make([]string, len(fields))
	for i, f := range fields {
		e := expr.Expr(plan.RefTo(cols, i))
		if !expr.CanCoerce(e.Type(), f.Type, expr.CastAssignment) {
			return mismatch("Final statement returns %s instead of %s at column %d.", types.Of(e.Type().OID), types.Of(f.Type.OID), i+1)
		}
		e, err := expr.Coerce(e, f.Type, expr.CastAssignment, 0)
		if err != nil {
			return err
		}
		row[i], names[i] = expr.Relabeled(e, f.Type.Storage()), f.Name
	}
	v, err := expr.Coerce(expr.NewNamedRow(row, names), t, expr.CastExplicit, 0)
	if err != nil {
		return err
	}
	q.rel = &plan.Project{Input: q.rel, Exprs: append([]expr.Expr{v}, plan.Refs(cols)...),
		Cols: append([]plan.Column{{Name: q.cols[0].name, Type: t}}, cols...)}
	q.cols = []outputColumn{{name: q.cols[0].name}}
	q.order = slices.Clone(q.order)
	for i := range q.order {
		q.order[i].Col++
	}
	return nil
}

// ResultTypes are the types of the columns that a function returns; nil for
// records of any form.
func ResultTypes(f *catalog.Function) []types.Type {
	if f.Table != nil {
		out := make([]types.Type, len(f.Table))
		for i, a := range f.Table {
			out[i] = a.Type
		}
		return out
	}
	if f.Returns.OID == types.OIDRecord {
		return nil
	}
	return []types.Type{f.Returns}
}

func returnsText(f *catalog.Function) string {
	if f.Table != nil || f.Returns.OID == types.OIDRecord {
		return "record"
	}
	return types.Of(f.Returns.OID).String()
}

// functionArgument is $n in the body of a function.
func (x exprBinder) functionArgument(n int32, pos int) (expr.Expr, error) {
	fs := x.function
	if n < 1 || int(n) > len(fs.args) {
		return nil, pgerror.New(pgerror.UndefinedParameter, "there is no parameter $%d", n).At(pos)
	}
	e := fs.scope.entries[0]
	return x.columnAt(x.scope, match{e, &e.columns[n-1], x.scope.level() - fs.scope.level()}, pos), nil
}

// userScalar is a call of a function of the catalog in an expression: a set is
// the elements of an array, several columns are a record.
func (x exprBinder) userScalar(o *catalog.Object, args []expr.Expr, pos int) (expr.Expr, error) {
	if o.Function.Writes {
		return nil, errWrites(o).At(pos)
	}
	x.use(o)
	fn := o.Function
	bq, err := x.functionBody(o, !fn.Set)
	if err != nil {
		return nil, err
	}
	asRecord := rowResult(fn)
	body := bq.wideCollection(fn.Set)
	if asRecord {
		body = x.packed(body, len(bq.cols), fn)
	} else if !fn.Set {
		body = bq.collection()
	}
	typ := body.Columns()[0].Type
	if fn.Set {
		typ = typ.ArrayType()
	}
	var e expr.Expr
	if !fn.Set && !asRecord {
		e = inlineRow(body, args)
	}
	switch {
	case fn.Set:
		if e, err = x.arrayOver(overArguments(args, body, 1), bq, asRecord, pos); err != nil {
			return nil, err
		}
	case e == nil:
		e = &expr.Subquery{Kind: expr.SubqueryScalar, Rel: overArguments(args, firstColumns(body, 1), 1), Typ: typ, Pos: pos}
	}
	if fn.Strict && len(args) > 0 {
		e = &expr.Case{Whens: []expr.When{{Cond: anyNull(args), Then: nullConst(typ)}}, Else: e, Typ: typ}
	}
	if fn.Set {
		if e, err = x.setFunction("unnest", []expr.Expr{e}, expr.CallOptions{Pos: pos}); err != nil {
			return nil, err
		}
	}
	if asRecord {
		return e, nil
	}
	return x.declare(e, ResultTypes(fn)[0]), nil
}

// rowResult reports whether a function's result is a record in an expression.
func rowResult(fn *catalog.Function) bool {
	return len(fn.Table) > 1 || fn.Table == nil && fn.Returns.OID == types.OIDRecord
}

// packed puts the first n columns of a relation into one, a record.
func (b *binder) packed(rel plan.Rel, n int, fn *catalog.Function) plan.Rel {
	refs, cols := plan.Refs(rel.Columns()), rel.Columns()
	names := make([]string, n)
	for i := range names {
		names[i] = cols[i].Name
		if fn.Table != nil {
			names[i] = fn.Table[i].Name
		}
	}
	row := b.withShape(expr.NewNamedRow(refs[:n], names))
	p := &plan.Project{Input: rel, Exprs: []expr.Expr{row}, Cols: []plan.Column{{Name: "row", Type: types.Record}}}
	if fn.Table != nil { // else PostgreSQL does not know the fields
		p.Cols[0].Type = b.shaped(row)
	}
	p.Exprs, p.Cols = append(p.Exprs, refs...), append(p.Cols, cols...)
	return p
}

// arrayOver is the array of the first column of a function's rows, in their order.
func (x exprBinder) arrayOver(rel plan.Rel, bq *boundQuery, shifted bool, pos int) (expr.Expr, error) {
	typ := arrayType(rel.Columns()[0].Type)
	if bq.order == nil {
		return &expr.Subquery{Kind: expr.SubqueryArray, Rel: firstColumns(rel, 1), Typ: typ, Pos: pos}, nil
	}
	order := slices.Clone(bq.order)
	if shifted {
		for i := range order {
			order[i].Col++
		}
	}
	fn, _, _, err := expr.ResolveAggregate("array_agg", []expr.Expr{plan.Ref(rel, 0)}, expr.CallOptions{Pos: pos})
	if err != nil {
		return nil, err
	}
	return orderedArray(rel, order, fn, typ, pos)
}

// anyNull tests whether one of the arguments is NULL.
func anyNull(args []expr.Expr) expr.Expr {
	tests := make([]expr.Expr, len(args))
	for i, a := range args {
		tests[i] = expr.NewIsNull(a, false)
	}
	if len(tests) == 1 {
		return tests[0]
	}
	return &expr.Logic{Args: tests}
}

// inlineRow puts the arguments into a body that is a single expression without
// subqueries; nil if it is another, or an argument must not be computed twice.
func inlineRow(body plan.Rel, args []expr.Expr) expr.Expr {
	if !isOneRow(body) {
		return nil
	}
	e := body.(*plan.Project).Exprs[0]
	if hasSubquery(e) {
		return nil
	}
	used := make([]int, len(args))
	expr.Walk(e, func(n expr.Expr) bool {
		if c, ok := n.(*expr.OuterColumn); ok && c.Depth == 1 {
			used[c.Index]++
		}
		return true
	})
	for i, n := range used {
		if n != 1 && (expr.VolatilityOf(args[i]) == expr.Volatile || n > 1 && hasSubquery(args[i])) {
			return nil
		}
	}
	return expr.Rewrite(e, func(n expr.Expr) expr.Expr {
		if c, ok := n.(*expr.OuterColumn); ok && c.Depth == 1 {
			return args[c.Index]
		}
		return n
	})
}

// overArguments joins the row of the arguments with a body that refers to it; the
// arguments are moved by so many scopes.
func overArguments(args []expr.Expr, body plan.Rel, by int) plan.Rel {
	row := &plan.Project{Input: unit()}
	for i, a := range args {
		if by > 0 {
			a = mapRefs(a, func(c *expr.Column) expr.Expr {
				return &expr.OuterColumn{Depth: by, Index: c.Index, Typ: c.Typ, Name: c.Name}
			}, func(c *expr.OuterColumn, _ int) expr.Expr { return atDepth(c, c.Depth+by) })
		}
		row.Exprs = append(row.Exprs, a)
		row.Cols = append(row.Cols, plan.Column{Name: "$" + itoa(i+1), Type: a.Type()})
	}
	n := len(args)
	join := &plan.Join{Kind: plan.JoinInner, Left: row, Right: body, Lateral: true}
	return project(join, span(n, n+plan.Arity(body)))
}

// isUserFunction reports whether an item of FROM calls a function of the catalog.
func (b *binder) isUserFunction(fn *pg.RangeFunction) bool {
	if len(fn.Functions) != 1 {
		return false
	}
	c := fn.Functions[0].GetList().GetItems()[0].GetFuncCall()
	return c != nil && b.userFunctions(listNames(c.Funcname)) != nil
}

// userTable is a call of a function of the catalog in FROM.
func (f fromBinder) userTable(fn *pg.RangeFunction, env *scope) (*fromItem, error) {
	s := newScope(env)
	s.kind = inFunction
	x := exprBinder{binder: f.binder, scope: s, ctes: f.ctes}
	call := fn.Functions[0].GetList().GetItems()[0].GetFuncCall()
	o, args, err := x.userCall(call)
	if err != nil {
		return nil, err
	}
	f.use(o)
	if o.Function.Writes {
		return f.writingItem(o, args, fn)
	}
	body, err := f.functionBody(o, !o.Function.Set)
	if err != nil {
		return nil, err
	}
	row := overArguments(args, body.wideCollection(true), 0)
	if o.Function.Strict && len(args) > 0 {
		j := row.(*plan.Project).Input.(*plan.Join)
		c := *j
		tests := make([]expr.Expr, len(args))
		for i, col := range j.Left.Columns() {
			tests[i] = expr.NewIsNull(&expr.Column{Index: i, Typ: col.Type, Name: col.Name}, true)
		}
		c.Left = filter(j.Left, tests...)
		row = plan.WithInput(row, &c)
	}
	n, order := len(body.cols), body.order
	if fields := o.Function.Returns.OID.Fields(); fields != nil && o.Function.Table == nil {
		row, order = f.spreadValue(row, fields, order)
		n = len(fields)
	}
	rel, err := f.functionColumns(o, row, n, fn)
	if err != nil {
		return nil, err
	}
	if !o.Function.Set { // one row in any case
		rel = &plan.Join{Kind: plan.JoinLeft, Left: unit(), Right: rel}
	}
	e, err := functionFromEntry(o, rel, n, fn)
	if err != nil {
		return nil, err
	}
	item := &fromItem{rel: rel, entries: []*entry{e}}
	for _, k := range order {
		item.order = append(item.order, plan.SortExpr{Expr: plan.Ref(rel, k.Col), Desc: k.Desc, NullsFirst: k.NullsFirst})
	}
	return item, nil
}

// spreadValue replaces the first column of a relation, of a composite type, by its
// fields, and follows an order.
func (b *binder) spreadValue(rel plan.Rel, fields []types.Field, order []plan.SortKey) (plan.Rel, []plan.SortKey) {
	cols := rel.Columns()
	p := &plan.Project{Input: rel}
	for i, f := range fields {
		p.Exprs = append(p.Exprs, b.field(plan.RefTo(cols, 0), fields, i, 0))
		p.Cols = append(p.Cols, plan.Column{Name: f.Name, Type: f.Type.Storage()})
	}
	all := plan.Refs(cols)
	p.Exprs, p.Cols = append(p.Exprs, all[1:]...), append(p.Cols, cols[1:]...)
	p.Exprs, p.Cols = append(p.Exprs, all[0]), append(p.Cols, cols[0]) // for an order by the value itself
	order = slices.Clone(order)
	for i, k := range order {
		if order[i].Col += len(fields) - 1; k.Col == 0 {
			order[i].Col = len(p.Exprs) - 1
		}
	}
	return p, order
}

// functionFromEntry makes the entry of a function of the catalog in FROM, whose
// result are the first n columns of rel.
func functionFromEntry(o *catalog.Object, rel plan.Rel, n int, fn *pg.RangeFunction) (*entry, error) {
	e := newEntry(o.Name, rel.Columns()[:n])
	composite := o.Function.Returns.OID.Fields() != nil && o.Function.Table == nil
	e.value = n == 1 && !rowResult(o.Function) && !composite
	if composite {
		e.row = o.Function.Returns.OID
	} else {
		for i, t := range ResultTypes(o.Function) {
			e.columns[i].domain = domainType(t)
		}
	}
	if err := e.rename(fn.Alias, 0); err != nil {
		return nil, err
	}
	if fn.Alias != nil && len(fn.Alias.Colnames) == 0 && len(e.columns) == 1 && o.Function.Table == nil && !composite && fn.Coldeflist == nil {
		e.columns[0].name = fn.Alias.Aliasname
	}
	return e, nil
}

// functionColumns names the first n columns of a function in FROM.
func (f fromBinder) functionColumns(o *catalog.Object, rel plan.Rel, n int, fn *pg.RangeFunction) (plan.Rel, error) {
	if fn.Ordinality {
		return nil, pgerror.Unsupported("WITH ORDINALITY of a SQL function")
	}
	cols := rel.Columns()
	p := &plan.Project{Input: rel, Exprs: plan.Refs(cols), Cols: slices.Clone(cols)}
	pos := f.pos(fn.Functions[0].GetList().GetItems()[0].GetFuncCall().GetLocation())
	switch {
	case o.Function.Table != nil:
		for i, a := range o.Function.Table {
			p.Cols[i].Name = a.Name
		}
	case ResultTypes(o.Function) == nil:
		if len(fn.Coldeflist) == 0 {
			return nil, pgerror.New(pgerror.SyntaxError, "a column definition list is required for functions returning \"record\"").At(pos)
		}
		if len(fn.Coldeflist) != n {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "function return row and query-specified return row do not match").
				WithDetail("Returned row contains %d attributes, but query expects %d.", n, len(fn.Coldeflist))
		}
		for i, d := range fn.Coldeflist {
			t, err := f.typeName(d.GetColumnDef().TypeName)
			if err != nil {
				return nil, err
			}
			if t.OID != cols[i].Type.OID {
				return nil, pgerror.New(pgerror.DatatypeMismatch, "function return row and query-specified return row do not match").
					WithDetail("Returned type %s at ordinal position %d, but query expects %s.", types.Of(cols[i].Type.OID), i+1, types.Of(t.OID))
			}
			p.Cols[i].Name = d.GetColumnDef().Colname
		}
	case o.Function.Returns.OID.Fields() == nil:
		p.Cols[0].Name = o.Name
	}
	return p, nil
}

// CheckFunction binds the body of a function that is being made. It gives the
// body with the names of its relations qualified, and reports whether its
// statements change tables. A body of polymorphic types is bound when it is
// called. Positions of errors are those in the body. deps are what it uses.
func CheckFunction(ctx *Context, o *catalog.Object) (body string, writes bool, deps []plan.ObjectID, err error) {
	f := o.Function
	stmts, err := parser.Parse(f.Body)
	if err != nil {
		return "", false, nil, err
	}
	if writes, err = writesTables(ctx, stmts); err != nil {
		return "", false, nil, err
	}
	c := *ctx
	c.Session = nil
	if writes || f.Procedure {
		return f.Body, true, nil, checkWriting(&c, o, stmts)
	}
	q, err := lastQuery(f)
	if err != nil || q.Stmt == nil {
		return "", false, nil, err
	}
	c.Stars = map[*pg.ResTarget][]string{}
	if !slices.ContainsFunc(f.Args, func(a catalog.Argument) bool { return expr.IsPolymorphic(a.Type.OID) }) {
		b := newBinder(&c, f.Body, q.Base)
		b.checking = true
		if _, err := b.functionBody(o, !f.Set); err != nil {
			return "", false, nil, err
		}
		deps = b.deps
	}
	c.Stars = nil
	body, err = Qualify(&c, f.Body, &q)
	return body, false, deps, err
}
