package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// srfCall is a set-returning function in the expressions of a query level. Its
// columns stand in them as the placeholders from first on.
type srfCall struct {
	fn    *expr.TableFunction
	args  []expr.Expr
	cols  []plan.Column
	first int // number of its first placeholder, from srfBase
	pos   int
	made  bool // its node has been made
}

// setFunction binds a set-returning function in an expression.
func (x exprBinder) setFunction(name string, args []expr.Expr, opts expr.CallOptions) (expr.Expr, error) {
	if recordFunctions[name] == toRecord {
		return nil, expr.ErrRowType(name)
	}
	first, cols, err := x.placeSet(name, args, opts)
	if err != nil {
		return nil, err
	}
	if recordFunctions[name] == populateRecord {
		return expr.NewPopulated(name, args[0], &expr.Column{Index: srfBase + first, Typ: cols[0].Type, Name: name}, opts.Pos)
	}
	if len(cols) == 1 {
		return &expr.Column{Index: srfBase + first, Typ: cols[0].Type, Name: name}, nil
	}
	fields := make([]expr.Expr, len(cols))
	names := make([]string, len(cols))
	for i, c := range cols {
		fields[i] = &expr.Column{Index: srfBase + first + i, Typ: c.Type, Name: c.Name}
		names[i] = c.Name
	}
	return expr.NewNamedRow(fields, names), nil
}

// placeSet registers a set-returning function with the query level.
func (x exprBinder) placeSet(name string, args []expr.Expr, opts expr.CallOptions) (int, []plan.Column, error) {
	fn, args, cols, err := resolveSet(name, args, opts)
	if err != nil {
		return 0, nil, err
	}
	sel := x.scope.sel
	if sel == nil || x.scope.kind.srf != "" {
		return 0, nil, pgerror.New(pgerror.FeatureNotSupported, "set-returning functions are not allowed in %s", x.scope.kind.srf).At(opts.Pos)
	}
	for _, c := range sel.srfs { // equal calls run in step, so one will do
		if c.fn == fn && sameExprs(c.args, args) {
			return c.first, c.cols, nil
		}
	}
	first := 0
	if n := len(sel.srfs); n > 0 {
		first = sel.srfs[n-1].first + len(sel.srfs[n-1].cols)
	}
	sel.srfs = append(sel.srfs, srfCall{fn: fn, args: args, cols: cols, first: first, pos: opts.Pos})
	return first, cols, nil
}

func sameExprs(a, b []expr.Expr) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !expr.Equal(a[i], b[i]) || expr.VolatilityOf(a[i]) == expr.Volatile {
			return false
		}
	}
	return true
}

// resolveSet resolves a set-returning function and names its columns.
func resolveSet(name string, args []expr.Expr, opts expr.CallOptions) (*expr.TableFunction, []expr.Expr, []plan.Column, error) {
	fn, args, typs, err := expr.ResolveTableFunction(name, args, opts)
	if err != nil {
		return nil, nil, nil, err
	}
	cols := make([]plan.Column, len(typs))
	for i, t := range typs {
		cols[i] = plan.Column{Name: name, Type: t}
		if t.OID == types.OIDRecord && len(args) > 0 && args[0].Type().OID == types.OIDRecordArray {
			cols[i].Type = args[0].Type().ElemType() // the records of an array, with their shape
		}
		if i < len(fn.Names) && fn.Names[i] != "" {
			cols[i].Name = fn.Names[i]
		}
	}
	return fn, args, cols, nil
}

// fieldOfCall binds `(f(…)).column` of a set-returning function: only that
// column is taken. done is how many steps of the indirection it covers.
func (x exprBinder) fieldOfCall(in *pg.A_Indirection) (e expr.Expr, done int, err error) {
	f := in.Arg.GetFuncCall()
	if f == nil || len(in.Indirection) == 0 || in.Indirection[0].GetString_() == nil {
		return nil, 0, nil
	}
	if x.userFunctions(listNames(f.Funcname)) != nil {
		return nil, 0, nil
	}
	name, err := x.funcName(f)
	if err != nil {
		return nil, 0, err
	}
	if !expr.IsTableFunction(name) || expr.IsFunction(name) {
		return nil, 0, nil
	}
	args, names, err := x.args(f)
	if err != nil {
		return nil, 0, err
	}
	pos := x.pos(f.Location)
	opts := expr.CallOptions{Pos: pos, Variadic: f.FuncVariadic, ArgNames: names}
	field := in.Indirection[0].GetString_().Sval
	if recordFunctions[name] != 0 {
		if e, err = x.setFunction(name, args, opts); err == nil {
			e, err = x.fieldOf(e, field, pos)
		}
		return e, 1, err
	}
	first, cols, err := x.placeSet(name, args, opts)
	if err != nil {
		return nil, 0, err
	}
	if len(cols) == 1 {
		e, err = x.fieldOf(&expr.Column{Index: srfBase + first, Typ: cols[0].Type, Name: name}, field, pos)
		return e, 1, err
	}
	for i, c := range cols {
		if c.Name == field {
			return &expr.Column{Index: srfBase + first + i, Typ: c.Type, Name: c.Name}, 1, nil
		}
	}
	return nil, 0, pgerror.New(pgerror.UndefinedColumn, "could not identify column \"%s\" in record data type", field).At(pos)
}

// expandRow binds `(row).*` in a select list.
func (x exprBinder) expandRow(in *pg.A_Indirection) ([]selectItem, error) {
	arg := in.Arg
	if last := len(in.Indirection) - 1; last > 0 {
		part := &pg.A_Indirection{Arg: in.Arg, Indirection: in.Indirection[:last]}
		arg = &pg.Node{Node: &pg.Node_AIndirection{AIndirection: part}}
	}
	e, err := x.expr(arg)
	if err != nil {
		return nil, err
	}
	fields := x.shapeOf(e)
	switch {
	case fields == nil && e.Type().OID == types.OIDRecord:
		return nil, pgerror.New(pgerror.WrongObjectType, "record type has not been registered")
	case fields == nil:
		return nil, pgerror.New(pgerror.WrongObjectType, "type %s is not composite", e.Type()).At(x.pos(nodeLocation(in.Arg)))
	}
	out := make([]selectItem, len(fields))
	for i, f := range fields {
		out[i] = selectItem{expr: x.field(e, fields, i, 0), name: f.Name}
	}
	return out, nil
}

// flatMap makes the nodes of the set-returning functions in the expressions:
// those that do not depend on each other run in step.
func (sel *selectState) flatMap() error {
	done := map[int]int{} // column of each placeholder
	for {
		var now []int
		for i := range sel.srfs {
			c := &sel.srfs[i]
			ready := !c.made
			for _, a := range c.args {
				ready = ready && !hasPlaceholder(a, srfBase, srfBase<<1)
			}
			if ready {
				now = append(now, i)
			}
		}
		if len(now) == 0 {
			return nil
		}
		sel.flatMapStep(now, done)
		for i := range sel.items {
			sel.items[i].expr = sel.placed(sel.items[i].expr, done)
		}
		for i := range sel.srfs {
			for j := range sel.srfs[i].args {
				sel.srfs[i].args[j] = sel.placed(sel.srfs[i].args[j], done)
			}
		}
	}
}

// placed is e with the placeholders of set-returning functions replaced where
// their columns are known.
func (sel *selectState) placed(e expr.Expr, done map[int]int) expr.Expr {
	return expr.Rewrite(e, func(n expr.Expr) expr.Expr {
		if c, ok := n.(*expr.Column); ok && c.Index >= srfBase {
			if at, ok := done[c.Index-srfBase]; ok {
				return &expr.Column{Index: at, Typ: c.Typ, Name: c.Name}
			}
		}
		return n
	})
}

// flatMapStep adds the functions of one step to the relation.
func (sel *selectState) flatMapStep(calls []int, done map[int]int) {
	in := sel.rel.Columns()
	place := func(c *srfCall, at int) {
		c.made = true
		for i := range c.cols {
			done[c.first+i] = at + i
		}
	}
	if len(calls) == 1 {
		c := &sel.srfs[calls[0]]
		flat := &plan.FlatMap{Input: sel.rel, Fn: c.fn, Args: c.args, Cols: append(in[:len(in):len(in)], c.cols...)}
		item := &fromItem{order: sel.inputOrder}
		fromBinder{natural: sel.natural}.numberRows(item, flat)
		sel.rel, sel.inputOrder = flat, item.order
		place(c, len(in))
		return
	}
	var right plan.Rel
	for _, i := range calls {
		c := &sel.srfs[i]
		args := make([]expr.Expr, len(c.args))
		for j, a := range c.args {
			args[j] = sel.deepen(a)
		}
		if right == nil {
			place(c, len(in))
		} else {
			place(c, len(in)+plan.Arity(right)-1)
		}
		right = inStep(right, numbered(c.fn, args, c.cols))
	}
	sel.rel = &plan.Join{Kind: plan.JoinInner, Left: sel.rel, Right: right, Lateral: true}
	if sel.natural {
		sel.inputOrder = append(slices.Clip(sel.inputOrder), plan.SortExpr{Expr: plan.Ref(sel.rel, plan.Arity(sel.rel)-1)})
	}
}

// numbered is the rows of a function with their numbers as last column.
func numbered(fn *expr.TableFunction, args []expr.Expr, cols []plan.Column) plan.Rel {
	all := append(cols[:len(cols):len(cols)], plan.Column{Name: "ordinality", Type: types.Int8, NotNull: true})
	return &plan.FlatMap{Input: unit(), Fn: fn, Args: args, Ordinality: true, Cols: all}
}

// inStep joins two numbered relations row by row; the shorter one is filled up
// with NULLs. left may be nil.
func inStep(left, right plan.Rel) plan.Rel {
	if left == nil {
		return right
	}
	nl, nr := plan.Arity(left), plan.Arity(right)
	l := plan.Ref(left, nl-1)
	r := plan.Ref(right, nr-1)
	r.Index += nl
	j := &plan.Join{Kind: plan.JoinFull, Left: left, Right: right, On: []expr.Expr{mustOp("=", l, r)}}
	cols := j.Columns()
	p := &plan.Project{Input: j}
	for i := range cols {
		if i != nl-1 && i != nl+nr-1 {
			p.Exprs = append(p.Exprs, plan.RefTo(cols, i))
			p.Cols = append(p.Cols, cols[i])
		}
	}
	p.Exprs = append(p.Exprs, &expr.Coalesce{Args: []expr.Expr{l, r}, Typ: types.Int8})
	p.Cols = append(p.Cols, plan.Column{Name: "ordinality", Type: types.Int8, NotNull: true})
	return p
}

// tableCall is one function of a FROM item, bound over some row.
type tableCall struct {
	set  *expr.TableFunction // nil for a scalar function
	args []expr.Expr
	call expr.Expr
	cols []plan.Column
	// fields makes the columns of the function's one value, which has the type
	// raw: those of a record.
	fields func(elem expr.Expr) ([]expr.Expr, error)
	raw    types.Type
}

// produced are the columns as the function itself yields them.
func (c *tableCall) produced() []plan.Column {
	if c.fields != nil {
		return []plan.Column{{Name: "value", Type: c.raw}}
	}
	return c.cols
}

// joinFunction joins a single function that may use the columns of the left
// side without a lateral join: as a FlatMap, or a projection. Nil without an
// error leaves the item to the general way.
func (f fromBinder) joinFunction(left *fromItem, fn *pg.RangeFunction, env *scope, kind plan.JoinKind, on onFunc) (*fromItem, error) {
	if kind != plan.JoinInner && kind != plan.JoinLeft || f.functionCount(fn) != 1 || f.isUserFunction(fn) {
		return nil, nil
	}
	if kind == plan.JoinLeft && on != nil {
		return nil, nil
	}
	return f.joinOver(left, env, on, func(x exprBinder) (plan.Rel, *entry, error) {
		call, err := x.tableCall(fn.Functions[0].GetList().GetItems(), fn)
		if err != nil {
			return nil, nil, err
		}
		return functionRel(left.rel, call, fn)
	})
}

// numberRows makes a function number its rows, if that is wanted and possible, and adds
// the number to the item's order: the rows of each left row come in their order.
func (f fromBinder) numberRows(item *fromItem, rel plan.Rel) {
	flat, ok := rel.(*plan.FlatMap)
	if !f.natural || !ok {
		return
	}
	if !flat.Ordinality {
		flat.Ordinality = true
		flat.Cols = append(flat.Cols[:len(flat.Cols):len(flat.Cols)], plan.Column{Name: "ordinality", Type: types.Int8, NotNull: true})
	}
	item.order = append(item.order, plan.SortExpr{Expr: plan.Ref(rel, len(flat.Cols)-1)})
}

// joinOver joins what bind adds to the left side, whose columns it may use.
func (f fromBinder) joinOver(left *fromItem, env *scope, on onFunc, bind func(x exprBinder) (plan.Rel, *entry, error)) (*fromItem, error) {
	s := newScope(env)
	s.lateral, s.entries, s.kind = true, left.entries, inFunction
	rel, e, err := bind(exprBinder{binder: f.binder, scope: s, ctes: f.ctes})
	if err != nil {
		return nil, err
	}
	right := &fromItem{entries: []*entry{e}}
	if err := checkNames(left.entries, right.entries); err != nil {
		return nil, err
	}
	item := &fromItem{
		rel:     rel,
		entries: append(left.entries[:len(left.entries):len(left.entries)], e),
		hidden:  left.hidden,
		order:   slices.Clip(left.order),
	}
	f.numberRows(item, rel)
	if on != nil {
		preds, err := on(left, right)
		if err != nil {
			return nil, err
		}
		item.rel = filter(item.rel, preds...)
	}
	return item, nil
}

// functionCount is how many functions run in step: unnest of several arrays is several.
func (f fromBinder) functionCount(fn *pg.RangeFunction) int {
	if len(fn.Functions) == 1 {
		c := fn.Functions[0].GetList().GetItems()[0].GetFuncCall()
		if c != nil && c.Funcname[len(c.Funcname)-1].GetString_().GetSval() == "unnest" && len(c.Args) > 1 {
			return len(c.Args)
		}
	}
	return len(fn.Functions)
}

// functionRel adds the columns of a function to a relation.
func functionRel(in plan.Rel, c *tableCall, fn *pg.RangeFunction) (plan.Rel, *entry, error) {
	base := plan.Arity(in)
	var rel plan.Rel
	if c.set != nil {
		cols := append(in.Columns(), c.produced()...)
		if fn.Ordinality {
			cols = append(cols, plan.Column{Name: "ordinality", Type: types.Int8, NotNull: true})
		}
		rel = &plan.FlatMap{Input: in, Fn: c.set, Args: c.args, Ordinality: fn.Ordinality, Cols: cols}
	} else {
		exprs := []expr.Expr{c.call}
		cols := c.produced()
		if fn.Ordinality {
			exprs = append(exprs, int64Const(1))
			cols = append(cols[:len(cols):len(cols)], plan.Column{Name: "ordinality", Type: types.Int8, NotNull: true})
		}
		rel = extend(in, exprs, cols)
	}
	if c.fields != nil {
		var err error
		if rel, err = expandFields(rel, base, c); err != nil {
			return nil, nil, err
		}
	}
	e, err := functionEntry(rel.Columns()[base:], c, fn)
	if err != nil {
		return nil, nil, err
	}
	shift([]*entry{e}, base)
	return rel, e, nil
}

// expandFields replaces the one column of a function by those of its records.
func expandFields(rel plan.Rel, base int, c *tableCall) (plan.Rel, error) {
	in := rel.Columns()
	exprs, err := c.fields(plan.RefTo(in, base))
	if err != nil {
		return nil, err
	}
	p := &plan.Project{Input: rel}
	for i := range in {
		if i != base {
			p.Exprs, p.Cols = append(p.Exprs, plan.RefTo(in, i)), append(p.Cols, in[i])
			continue
		}
		p.Exprs = append(p.Exprs, exprs...)
		for _, col := range c.cols {
			col.Type = col.Type.Storage()
			p.Cols = append(p.Cols, col)
		}
	}
	return p, nil
}

// functionEntry makes the entry of a function in FROM. A function with a
// single unnamed column gives it the alias's name.
func functionEntry(cols []plan.Column, c *tableCall, fn *pg.RangeFunction) (*entry, error) {
	e := newEntry("", cols)
	for i, col := range c.cols {
		e.columns[i].domain = domainType(col.Type)
	}
	if len(fn.Functions) == 1 {
		if f := fn.Functions[0].GetList().GetItems()[0].GetFuncCall(); f != nil {
			e.name = f.Funcname[len(f.Funcname)-1].GetString_().GetSval()
		} else if len(c.cols) > 0 {
			e.name = c.cols[0].Name
		}
		e.value = len(c.cols) == 1 && c.fields == nil && !fn.Ordinality
		if c.fields != nil && c.raw.OID.IsComposite() && !fn.Ordinality {
			e.row = c.raw.OID
		}
		named := c.set != nil && len(c.set.Names) > 0 && c.set.Names[0] != "" && c.set.Names[0] != c.set.Name
		if fn.Alias != nil && len(c.cols) == 1 && c.fields == nil && !named {
			e.columns[0].name = fn.Alias.Aliasname
		}
	}
	return e, e.rename(fn.Alias, 0)
}

// tableCall binds a function of a FROM item; item is the function and its
// column definitions.
func (x exprBinder) tableCall(item []*pg.Node, fn *pg.RangeFunction) (*tableCall, error) {
	defs := fn.Coldeflist
	if len(item) > 1 && item[1].GetList() != nil {
		defs = item[1].GetList().Items
	}
	call := item[0].GetFuncCall()
	if call == nil { // CURRENT_USER, COALESCE(…) and the like
		e, err := x.expr(item[0])
		if err != nil {
			return nil, err
		}
		return &tableCall{call: e, cols: []plan.Column{{Name: x.columnName(item[0]), Type: e.Type()}}}, nil
	}
	name, err := x.funcName(call)
	if err != nil {
		return nil, err
	}
	if len(defs) > 0 {
		if fn.Ordinality && len(fn.Coldeflist) > 0 {
			return nil, pgerror.New(pgerror.SyntaxError, "WITH ORDINALITY cannot be used with a column definition list").
				WithHint("Put the column definition list inside ROWS FROM().").At(x.pos(defs[0].GetColumnDef().GetLocation()))
		}
		return x.recordCall(call, name, defs)
	}
	if !expr.IsTableFunction(name) || expr.IsFunction(name) {
		e, err := x.funcCall(call)
		if err != nil {
			return nil, err
		}
		if recordFunctions[name] != 0 && e.Type().OID == types.OIDRecord {
			return nil, x.needDefinitions(call)
		}
		c := &tableCall{call: e, cols: []plan.Column{{Name: name, Type: e.Type()}}}
		x.expand(c)
		return c, nil
	}
	args, names, err := x.args(call)
	if err != nil {
		return nil, err
	}
	c := &tableCall{}
	opts := expr.CallOptions{Pos: x.pos(call.Location), Variadic: call.FuncVariadic, ArgNames: names}
	if c.set, c.args, c.cols, err = resolveSet(name, args, opts); err != nil {
		return nil, err
	}
	switch recordFunctions[name] {
	case toRecord:
		return nil, x.needDefinitions(call)
	case populateRecord:
		return c, x.populated(c, call, name)
	}
	x.expand(c)
	return c, nil
}

// rangeFunction binds a function item that stands alone, or one of several
// functions in step (ROWS FROM).
func (f fromBinder) rangeFunction(fn *pg.RangeFunction, env *scope) (*fromItem, error) {
	if f.isUserFunction(fn) {
		return f.userTable(fn, env)
	}
	s := newScope(env)
	s.kind = inFunction
	x := exprBinder{binder: f.binder, scope: s, ctes: f.ctes}
	if f.functionCount(fn) == 1 {
		c, err := x.tableCall(fn.Functions[0].GetList().GetItems(), fn)
		if err != nil {
			return nil, err
		}
		rel, e, err := functionRel(unit(), c, fn)
		if err != nil {
			return nil, err
		}
		item := &fromItem{rel: rel, entries: []*entry{e}}
		f.numberRows(item, rel)
		return item, nil
	}
	return f.rowsFrom(x, fn)
}

// rowsFrom joins several functions row by row.
func (f fromBinder) rowsFrom(x exprBinder, fn *pg.RangeFunction) (*fromItem, error) {
	items := make([][]*pg.Node, 0, len(fn.Functions))
	for _, n := range fn.Functions {
		items = append(items, n.GetList().GetItems())
	}
	if len(items) == 1 { // unnest(a, b, …)
		call := items[0][0].GetFuncCall()
		items = items[:0]
		for _, a := range call.Args {
			one := &pg.FuncCall{Funcname: call.Funcname, Args: []*pg.Node{a}, Location: call.Location}
			items = append(items, []*pg.Node{{Node: &pg.Node_FuncCall{FuncCall: one}}})
		}
	}
	plain := &pg.RangeFunction{Ordinality: true}
	var rel plan.Rel
	for _, item := range items {
		c, err := x.tableCall(item, plain)
		if err != nil {
			return nil, err
		}
		one, _, err := functionRel(unit(), c, &pg.RangeFunction{Ordinality: true, Functions: []*pg.Node{}})
		if err != nil {
			return nil, err
		}
		rel = inStep(rel, one)
	}
	cols := rel.Columns()
	item := &fromItem{}
	switch {
	case f.natural:
		item.order = []plan.SortExpr{{Expr: plan.Ref(rel, len(cols)-1)}}
	case !fn.Ordinality:
		rel = firstColumns(rel, len(cols)-1)
	}
	if !fn.Ordinality {
		cols = cols[:len(cols)-1]
	}
	e := newEntry("", cols)
	if len(fn.Functions) == 1 {
		e.name = "unnest"
	}
	if err := e.rename(fn.Alias, 0); err != nil {
		return nil, err
	}
	item.rel, item.entries = rel, []*entry{e}
	return item, nil
}
