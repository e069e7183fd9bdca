package planner

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// Functions whose statements change tables, and procedures, are not part of a
// plan: the session runs their statements one after the other, each with the
// arguments for constants, so that each sees what those before have done. A query
// can call one in FROM, or as an item of the select list of the statement.

// Arguments are what the parameters of a function stand for while one of its
// statements is bound.
type Arguments struct {
	Function string
	Args     []catalog.Argument
	Values   []*expr.Const
}

// Call is a call of a function that the session runs.
type Call struct {
	Function *catalog.Object
	// Args are, in a Step, the arguments, which are constants but for parameters.
	Args []expr.Expr
	// Column is, in a Query, the column of the result; From is the first of those
	// of the arguments.
	Column, From int
}

// givenArgument is $n in a statement of a function.
func (b *binder) givenArgument(n int32, pos int) (expr.Expr, error) {
	a := b.ctx.Arguments
	if n < 1 || int(n) > len(a.Values) {
		return nil, pgerror.New(pgerror.UndefinedParameter, "there is no parameter $%d", n).At(pos)
	}
	c := *a.Values[n-1]
	c.Pos = pos
	return b.declare(&c, a.Args[n-1].Type), nil
}

// namedArgument is the argument that a name means which no column has.
func (b *binder) namedArgument(ref *pg.ColumnRef) expr.Expr {
	a := b.ctx.Arguments
	if a == nil || b.inView > 0 || b.function != nil {
		return nil
	}
	names := listNames(ref.Fields)
	if len(names) == 2 && names[0] == a.Function {
		names = names[1:]
	}
	if len(names) != 1 || names[0] == "" {
		return nil
	}
	i := slices.IndexFunc(a.Args, func(x catalog.Argument) bool { return x.Name == names[0] })
	if i < 0 {
		return nil
	}
	e, err := b.givenArgument(int32(i+1), b.pos(ref.Location))
	if err != nil {
		return nil
	}
	return e
}

// writingItem binds an item of the select list of a statement that is a call of a
// function that changes tables: its arguments are computed with the other items,
// and its result put in its place by the session.
func (sel *selectState) writingItem(x exprBinder, t *pg.ResTarget) (bool, error) {
	f := t.Val.GetFuncCall()
	if f == nil || !sel.writes || sel.inner || sel.inView > 0 || sel.function != nil || sel.stmt != sel.binder.top {
		return false, nil
	}
	candidates := sel.userFunctions(listNames(f.Funcname))
	if !slices.ContainsFunc(candidates, func(o *catalog.Object) bool { return o.Function.Writes }) {
		return false, nil
	}
	o, args, err := x.userCall(f)
	if err != nil || !o.Function.Writes {
		return false, err
	}
	if sel.stmt.DistinctClause != nil || sel.stmt.GroupClause != nil {
		return false, errWrites(o).At(sel.pos(f.Location))
	}
	sel.use(o)
	typ, name := callType(o.Function), t.Name
	if name == "" {
		name = o.Name
	}
	sel.items = append(sel.items, selectItem{expr: nullConst(typ), name: name, pos: sel.pos(f.Location)})
	sel.calls = append(sel.calls, pendingCall{call: Call{Function: o, Column: len(sel.items) - 1}, args: args})
	return true, nil
}

// pendingCall is a call whose arguments get columns when the select list is complete.
type pendingCall struct {
	call Call
	args []expr.Expr
}

// callType is the type of what a function gives in an expression.
func callType(f *catalog.Function) types.Type {
	if rowResult(f) {
		return types.Record
	}
	return ResultTypes(f)[0].Storage()
}

// callArguments puts the arguments of calls after the items of the select list.
func (sel *selectState) callArguments() {
	for i := range sel.calls {
		c := &sel.calls[i]
		c.call.From = -1
		for _, a := range c.args {
			if c.call.From < 0 {
				c.call.From = len(sel.items)
			}
			sel.items = append(sel.items, selectItem{expr: a, name: "?column?", junk: true})
		}
	}
}

// errWrites refuses a function that changes tables where it cannot be run.
func errWrites(o *catalog.Object) *pgerror.Error {
	return pgerror.Unsupported("calling function " + o.Name + ", which changes tables, here").
		WithHint("Call it in FROM with constant arguments, or as an item of the select list of the statement.")
}

// writingItem is a call in FROM of a function that changes tables.
func (f fromBinder) writingItem(o *catalog.Object, args []expr.Expr, fn *pg.RangeFunction) (*fromItem, error) {
	pos := f.pos(fn.Functions[0].GetList().GetItems()[0].GetFuncCall().GetLocation())
	rel, err := f.writingTable(o, args, pos)
	if err != nil {
		return nil, err
	}
	n := plan.Arity(rel)
	if fields := o.Function.Returns.OID.Fields(); fields != nil && o.Function.Table == nil {
		rel, _ = f.spreadValue(rel, fields, nil)
		n = len(fields)
	}
	e, err := functionFromEntry(o, rel, n, fn)
	if err != nil {
		return nil, err
	}
	return &fromItem{rel: rel, entries: []*entry{e}}, nil
}

// writingTable binds a call in FROM of a function that changes tables: a step
// that is run before the statement.
func (f fromBinder) writingTable(o *catalog.Object, args []expr.Expr, pos int) (plan.Rel, error) {
	if !f.writes || f.inner || f.inView > 0 || f.function != nil {
		return nil, errWrites(o).At(pos)
	}
	for _, a := range args {
		free := hasSubquery(a)
		expr.Walk(a, func(e expr.Expr) bool {
			switch e.(type) {
			case *expr.Column, *expr.OuterColumn:
				free = true
			}
			return true
		})
		if free {
			return nil, errWrites(o).At(pos)
		}
	}
	var cols []plan.Column
	for i, t := range ResultTypes(o.Function) {
		c := plan.Column{Name: o.Name, Type: t.Storage()}
		if o.Function.Table != nil {
			c.Name = o.Function.Table[i].Name
		}
		cols = append(cols, c)
	}
	if cols == nil {
		return nil, errWrites(o).At(pos)
	}
	get := f.transient(o.Name, cols)
	f.steps = append(f.steps, Step{ID: get.ID, Call: &Call{Function: o, Args: args}, Cols: cols})
	return get, nil
}

// checkWriting binds the statements of a function that changes tables, or of a
// procedure, when it is made.
func checkWriting(ctx *Context, o *catalog.Object, stmts []parser.Statement) error {
	f := o.Function
	c := *ctx
	c.Arguments = &Arguments{Function: o.Name, Args: f.Args}
	for _, a := range f.Args {
		if expr.IsPolymorphic(a.Type.OID) {
			return nil
		}
		c.Arguments.Values = append(c.Arguments.Values, nullConst(a.Type.Storage()))
	}
	var cols []ResultColumn
	for _, st := range stmts {
		b, err := Bind(&c, &st)
		if err != nil {
			return err
		}
		cols = nil
		switch b := b.(type) {
		case *Query:
			cols = b.Columns
		case *Write:
			if b.Returning != nil {
				cols = b.Returning.Columns
			}
		}
	}
	_, err := ResultCasts(f, cols)
	return err
}

// ResultCasts are the results of a function's last statement with the types that
// the function returns, over its columns; nil for one that returns nothing.
func ResultCasts(f *catalog.Function, cols []ResultColumn) ([]expr.Expr, error) {
	want := ResultTypes(f)
	if f.Returns.OID == types.OIDVoid {
		return nil, nil
	}
	if len(cols) == 0 {
		return nil, returnMismatch(f).WithDetail("Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.")
	}
	q := &boundQuery{cols: make([]outputColumn, len(cols))}
	g := &plan.Get{}
	for _, c := range cols {
		g.Cols = append(g.Cols, c.Column)
	}
	q.rel = g
	if want == nil {
		return plan.Refs(g.Cols), nil
	}
	if err := functionResult(&catalog.Object{Function: f}, q); err != nil {
		return nil, err
	}
	if p, ok := q.rel.(*plan.Project); ok {
		return p.Exprs[:len(want):len(want)], nil
	}
	return plan.Refs(g.Cols), nil
}

// writesTables reports whether the statements of a body do more than read.
func writesTables(ctx *Context, stmts []parser.Statement) (bool, error) {
	writes := false
	b := newBinder(ctx, "", 0)
	calls := func(names []string) bool {
		return slices.ContainsFunc(b.userFunctions(names), func(o *catalog.Object) bool { return o.Function.Writes })
	}
	for _, st := range stmts {
		switch n := st.Node.(type) {
		case *parser.Select:
			for _, c := range n.Query.Stmt.GetSelectStmt().GetWithClause().GetCtes() {
				writes = writes || c.GetCommonTableExpr().GetCtequery().GetSelectStmt() == nil
			}
			eachCall(n.Query.Stmt.ProtoReflect(), func(f *pg.FuncCall) { writes = writes || calls(listNames(f.Funcname)) })
		case *parser.Postgres:
			if n.Stmt.GetInsertStmt() == nil && n.Stmt.GetUpdateStmt() == nil && n.Stmt.GetDeleteStmt() == nil && n.Stmt.GetMergeStmt() == nil {
				return false, pgerror.Unsupported(tagOf(&st) + " in a SQL function")
			}
			writes = true
		default:
			return false, pgerror.Unsupported(tagOf(&st) + " in a SQL function")
		}
	}
	return writes, nil
}

func tagOf(st *parser.Statement) string {
	if tag := st.Node.Tag(); tag != "" {
		return tag
	}
	return strings.ToUpper(strings.Fields(st.SQL())[0])
}

// BindCall binds the call of a procedure: the procedure, and its arguments by its
// input parameters.
func BindCall(ctx *Context, text string, base int, f *pg.FuncCall) (*catalog.Object, []expr.Expr, error) {
	b := newBinder(ctx, text, base)
	s := newScope(nil)
	s.kind = inCall
	x := exprBinder{binder: b, scope: s}
	args, names, err := x.args(f)
	if err != nil {
		return nil, nil, err
	}
	name := dotted(listNames(f.Funcname))
	pos := x.pos(f.Location)
	var candidates []*catalog.Object
	for _, o := range b.userFunctions(listNames(f.Funcname)) {
		if o.Function.Procedure {
			c, fn := *o, *o.Function
			fn.Args = fn.All
			c.Function = &fn
			candidates = append(candidates, &c)
		}
	}
	o, all, err := x.resolveUser(name, candidates, args, expr.CallOptions{Pos: pos, ArgNames: names, Variadic: f.FuncVariadic})
	if err != nil {
		e := *pgerror.As(err)
		if e.Code == pgerror.UndefinedFunction {
			if x.isFunction(f) {
				what := strings.TrimSuffix(strings.TrimPrefix(e.Message, "function "), " does not exist")
				return nil, nil, pgerror.New(pgerror.WrongObjectType, "%s is not a procedure", what).
					WithHint("To call a function, use SELECT.").At(pos)
			}
			e.Message = strings.Replace(e.Message, "function ", "procedure ", 1)
			e.Hint = strings.Replace(e.Hint, "No function", "No procedure", 1)
		}
		return nil, nil, &e
	}
	var in []expr.Expr
	fn := *o.Function
	fn.Args = nil
	for i, a := range o.Function.All {
		if a.Mode != 'o' {
			in, fn.Args = append(in, all[i]), append(fn.Args, o.Function.Args[i])
		}
	}
	c := *o
	c.Function = &fn
	return &c, in, nil
}

// isFunction says whether a function, and no procedure, can be called so. CALL counts
// the output parameters.
func (x exprBinder) isFunction(f *pg.FuncCall) bool {
	for _, o := range x.binder.userFunctions(listNames(f.Funcname)) {
		if slices.ContainsFunc(o.Function.Table, func(a catalog.Argument) bool { return a.Mode == 'o' }) {
			return false
		}
	}
	if _, err := x.expr(&pg.Node{Node: &pg.Node_FuncCall{FuncCall: f}}); err != nil {
		code := pgerror.As(err).Code
		return code != pgerror.UndefinedFunction && code != pgerror.WrongObjectType
	}
	return true
}

// eachCall visits the calls of functions in a tree.
func eachCall(m protoreflect.Message, f func(*pg.FuncCall)) {
	if c, ok := m.Interface().(*pg.FuncCall); ok {
		f(c)
	}
	rangeMessages(m, func(x protoreflect.Message) { eachCall(x, f) })
}
