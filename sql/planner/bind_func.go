package planner

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"google.golang.org/protobuf/proto"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// anyCall binds a call: of an aggregate, a window function, a set-returning
// function or a scalar function.
func (x exprBinder) anyCall(f *pg.FuncCall) (expr.Expr, error) {
	pos := x.pos(f.Location)
	if e, ok, err := x.lambdaCall(f); ok {
		return e, err
	}
	f, ignoreNulls := nullTreatment(f)
	if o, args, err := x.userCall(f); o != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return x.userScalar(o, args, pos)
	}
	name, err := x.funcName(f)
	if err != nil {
		return nil, err
	}
	if f.AggWithinGroup && f.Over == nil && isHypothetical(name) {
		return x.hypotheticalSet(f, name, pos)
	}
	if ignoreNulls && !passesNulls(name) {
		return nil, pgerror.New(pgerror.WrongObjectType, "function %s does not accept IGNORE NULLS", name).At(pos)
	}
	if expr.IsAggregate(name) && f.Over == nil {
		return x.aggregateCall(f, name, ignoreNulls, pos)
	}
	args, names, err := x.args(f)
	if err != nil {
		return nil, err
	}
	_, pure := pureWindows[name]
	switch {
	case f.Over != nil && (pure || expr.IsAggregate(name)):
		return x.windowFunction(f, name, args, ignoreNulls, pos)
	case isHypothetical(name) && len(args) > 0:
		return nil, pgerror.New(pgerror.WrongObjectType, "WITHIN GROUP is required for ordered-set aggregate %s", name).At(pos)
	case pure && !expr.IsFunction(name):
		return nil, pgerror.New(pgerror.WrongObjectType, "window function %s requires an OVER clause", name).At(pos)
	}
	opts := expr.CallOptions{Pos: pos, Variadic: f.FuncVariadic, ArgNames: names}
	if link := x.rowSubquery(name, args); link != nil {
		return x.overSubquery(name, link, opts)
	}
	var e expr.Expr
	if typ := x.typeCalled(f, name); typ != 0 {
		return expr.NewTypeCall(typ, args, opts)
	}
	if expr.IsMapFunction(name) {
		if e, err = expr.NewMapCall(name, args, pos); err != nil {
			return nil, err
		}
		return e, x.notAggregate(f, name, pos)
	}
	if name == "pg_typeof" && len(args) == 1 && x.domains[args[0]] != 0 {
		args[0] = expr.Relabeled(args[0], x.declaredType(args[0]))
	}
	if expr.IsTableFunction(name) && !expr.IsFunction(name) {
		e, err = x.setFunction(name, args, opts)
	} else {
		if e, err = expr.NewCall(name, args, opts); err == nil {
			expr.NoteConst(e, x.ctx.Session)
		}
	}
	if err != nil {
		return nil, err
	}
	if recordFunctions[name] == populateRecord && len(args) > 0 {
		e = x.declare(e, x.declaredType(args[0]))
	}
	return e, x.notAggregate(f, name, pos)
}

// typeCalled is the user-defined type whose name is called like a function.
func (x exprBinder) typeCalled(f *pg.FuncCall, name string) types.OID {
	if expr.IsFunction(name) || expr.IsTableFunction(name) {
		return 0
	}
	if o := x.userType(listNames(f.Funcname)); !o.IsRow() {
		return o
	}
	return 0
}

// rowSubquery is the argument of a function that needs the names of a row's
// fields, if it is a subquery: `row_to_json((SELECT x FROM … x))`.
func (x exprBinder) rowSubquery(name string, args []expr.Expr) *expr.Subquery {
	if name != "row_to_json" && name != "to_json" && name != "to_jsonb" || len(args) != 1 {
		return nil
	}
	s, ok := args[0].(*expr.Subquery)
	if !ok || s.Kind != expr.SubqueryScalar || s.Typ.OID != types.OIDRecord {
		return nil
	}
	if p, ok := s.Rel.(*plan.Project); ok {
		if row, ok := p.Exprs[0].(*expr.Row); ok && row.Names != nil {
			return s
		}
	}
	return nil
}

// overSubquery applies a function inside of a scalar subquery.
func (x exprBinder) overSubquery(name string, s *expr.Subquery, opts expr.CallOptions) (expr.Expr, error) {
	p := s.Rel.(*plan.Project)
	e, err := expr.NewCall(name, p.Exprs[:1:1], opts)
	if err != nil {
		return nil, err
	}
	rel := &plan.Project{Input: p.Input, Exprs: []expr.Expr{e}, Cols: []plan.Column{{Name: name, Type: e.Type()}}}
	return &expr.Subquery{Kind: s.Kind, Rel: rel, Typ: e.Type(), Pos: s.Pos}, nil
}

// funcName is the name of the function called, without its schema.
func (x exprBinder) funcName(f *pg.FuncCall) (string, error) {
	names := listNames(f.Funcname)
	name := names[len(names)-1]
	if len(names) == 1 {
		return name, nil
	}
	pos := x.pos(f.Location)
	switch schema := names[len(names)-2]; {
	case schema == "pg_catalog", schema == "information_schema":
		return name, nil
	case x.ctx.Catalog.Schema(schema) == nil:
		return "", pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", schema).At(pos)
	}
	args, _, err := x.args(f)
	if err != nil {
		return "", err
	}
	return "", x.noFunction(dotted(names), args, pos)
}

// noFunction is the error that there is no such function.
func (x exprBinder) noFunction(name string, args []expr.Expr, pos int) error {
	list := types.Signature{Format: strings.TrimPrefix(strings.Repeat(", %s", len(args)), ", ")}
	for _, a := range args {
		list.Types = append(list.Types, a.Type().OID)
	}
	return pgerror.New(pgerror.UndefinedFunction, "function %s(%s) does not exist", name, list).
		WithHint("No function matches the given name and argument types. You might need to add explicit type casts.").At(pos)
}

// notAggregate refuses the clauses that only aggregates and window functions have.
func (x exprBinder) notAggregate(f *pg.FuncCall, name string, pos int) error {
	e := func(format string) error {
		return pgerror.New(pgerror.WrongObjectType, format, name, name).At(pos)
	}
	switch {
	case f.AggStar:
		return e("%s(*) specified, but %s is not an aggregate function")
	case f.AggDistinct:
		return pgerror.New(pgerror.WrongObjectType, "DISTINCT specified, but %s is not an aggregate function", name).At(pos)
	case f.AggWithinGroup:
		return pgerror.New(pgerror.WrongObjectType, "WITHIN GROUP specified, but %s is not an aggregate function", name).At(pos)
	case len(f.AggOrder) > 0:
		return pgerror.New(pgerror.WrongObjectType, "ORDER BY specified, but %s is not an aggregate function", name).At(pos)
	case f.AggFilter != nil:
		return pgerror.New(pgerror.WrongObjectType, "FILTER specified, but %s is not an aggregate function", name).At(pos)
	case f.Over != nil:
		return pgerror.New(pgerror.WrongObjectType, "OVER specified, but %s is not a window function nor an aggregate function", name).At(pos)
	}
	return nil
}

// args binds the arguments of a call; names are those of the trailing named ones.
func (x exprBinder) args(f *pg.FuncCall) (args []expr.Expr, names []string, err error) {
	for _, n := range f.Args {
		if na := n.GetNamedArgExpr(); na != nil {
			for _, have := range names {
				if have == na.Name {
					return nil, nil, pgerror.New(pgerror.SyntaxError, "argument name \"%s\" used more than once", na.Name).At(x.pos(na.Location))
				}
			}
			names = append(names, na.Name)
		} else if len(names) > 0 {
			return nil, nil, pgerror.New(pgerror.SyntaxError, "positional argument cannot follow named argument").At(x.pos(nodeLocation(n)))
		}
		e, err := x.expr(n)
		if err != nil {
			return nil, nil, err
		}
		if p, ok := e.(*expr.Param); ok && p.Typ.OID == types.OIDVoid && x.scope.kind != inCall {
			continue // JDBC's way to say that a parameter is for output
		}
		args = append(args, e)
	}
	return args, names, nil
}

// filterClause binds FILTER (WHERE …).
func (x exprBinder) filterClause(n *pg.Node) (expr.Expr, error) {
	if n == nil {
		return nil, nil
	}
	kind := x.scope.kind
	x.scope.kind = inFilter
	defer func() { x.scope.kind = kind }()
	return x.condition(n, "FILTER")
}

// aggregateCall binds an aggregate. It belongs to the innermost query level
// whose columns its arguments use, which may be one outside of a subquery.
func (x exprBinder) aggregateCall(f *pg.FuncCall, name string, ignoreNulls bool, pos int) (expr.Expr, error) {
	args, names, err := x.args(f)
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		return nil, x.noFunction(name, args, pos)
	}
	return x.aggregateOver(f, name, args, ignoreNulls, pos)
}

// aggregateOver is an aggregate of bound arguments.
func (x exprBinder) aggregateOver(f *pg.FuncCall, name string, args []expr.Expr, ignoreNulls bool, pos int) (expr.Expr, error) {
	call := plan.AggCall{Distinct: f.AggDistinct, Pos: pos}
	opts := expr.CallOptions{Pos: pos, Variadic: f.FuncVariadic, Star: f.AggStar}
	var order []plan.SortExpr
	var err error
	if len(f.AggOrder) > 0 {
		mode := resolveUnknown
		if f.AggWithinGroup {
			mode = keepUnknown
		}
		if order, err = x.sortExprs(f.AggOrder, mode); err != nil {
			return nil, err
		}
	}
	if f.AggWithinGroup {
		opts.Ordered = len(order)
		for _, o := range order {
			args = append(args, o.Expr)
		}
	}
	resolved := name
	if name == "approx_count_distinct" { // the exact number is maintained as cheaply
		resolved, call.Distinct = "count", true
	}
	if call.Fn, call.Args, call.Typ, err = expr.ResolveAggregate(resolved, args, opts); err != nil {
		return nil, err
	}
	call.Typ = x.shapedResult(call.Typ, call.Args)
	if name == "map_agg" {
		if call.Args, call.Typ, err = expr.MapAggregate(call.Args, pos); err != nil {
			return nil, err
		}
	}
	var direct []expr.Expr
	if f.AggWithinGroup {
		n := len(call.Args) - len(order)
		direct = call.Args[:n]
		for i := range order {
			order[i].Expr = call.Args[n+i]
		}
	} else if call.Fn.Ordered {
		return nil, pgerror.New(pgerror.WrongObjectType, "WITHIN GROUP is required for ordered-set aggregate %s", name).At(pos)
	}
	call.OrderBy = order
	if call.Filter, err = x.filterClause(f.AggFilter); err != nil {
		return nil, err
	}
	if err := x.refuseSets("aggregate function calls cannot contain set-returning function calls", call.Args...); err != nil {
		return nil, err
	}
	if err := x.checkDistinctAggregate(&call, f, pos); err != nil {
		return nil, err
	}
	if ignoreNulls {
		call.Filter = alsoPresent(call.Filter, call.Args[0])
	}
	if err := x.pickAggregate(&call, pos); err != nil {
		return nil, err
	}
	return x.placeAggregate(call, direct, pos)
}

// nullTreatment is a call without its IGNORE NULLS, and whether it had one.
func nullTreatment(f *pg.FuncCall) (*pg.FuncCall, bool) {
	if f.Funcname[0].GetString_().GetSval() != parser.IgnoreNullsMarker {
		return f, false
	}
	out := proto.Clone(f).(*pg.FuncCall)
	out.Funcname = out.Funcname[1:]
	return out, true
}

// passesNulls reports whether a function may have IGNORE NULLS.
func passesNulls(name string) bool {
	return pureWindows[name].value || expr.IsAggregate(name) && name == "array_agg"
}

// alsoPresent is the condition cond, which may be nil, and that e is not NULL.
func alsoPresent(cond, e expr.Expr) expr.Expr {
	present := &expr.IsNull{Arg: e, Not: true}
	if cond == nil {
		return present
	}
	return &expr.Logic{And: true, Args: []expr.Expr{cond, present}}
}

// pickAggregate makes arg_min and arg_max first values in the order of their
// second arguments, of the rows where neither is NULL. DISTINCT makes no
// difference to a first or last value.
func (x exprBinder) pickAggregate(call *plan.AggCall, pos int) error {
	if first, desc := expr.PickOf(call.Fn); first != nil {
		key := call.Args[1]
		if err := x.checkSortable(key, pos); err != nil {
			return err
		}
		call.Fn, call.Args, call.Filter = first, call.Args[:1], alsoPresent(alsoPresent(call.Filter, call.Args[0]), key)
		call.OrderBy = append([]plan.SortExpr{{Expr: key, Desc: desc}}, call.OrderBy...)
	}
	if call.Fn.Op == expr.AggFirst || call.Fn.Op == expr.AggLast {
		call.Distinct = false
	}
	return nil
}

// checkDistinctAggregate checks DISTINCT and ORDER BY inside of an aggregate.
func (x exprBinder) checkDistinctAggregate(call *plan.AggCall, f *pg.FuncCall, pos int) error {
	if !call.Distinct {
		return nil
	}
	switch {
	case f.AggWithinGroup:
		return pgerror.New(pgerror.FeatureNotSupported, "cannot use DISTINCT with WITHIN GROUP").At(pos)
	case f.AggStar || len(call.Args) == 0:
		return pgerror.New(pgerror.InvalidColumnReference, "DISTINCT specified, but %s has no arguments", call.Fn.Name).At(pos)
	}
	for i, a := range call.Args {
		if !types.HasEquality(a.Type()) {
			at := pos
			if i < len(f.Args) {
				at = x.pos(nodeLocation(f.Args[i]))
			}
			return pgerror.New(pgerror.UndefinedFunction, "could not identify an equality operator for type %s", a.Type().OID).At(at)
		}
	}
	for i, o := range call.OrderBy {
		found := false
		for k, a := range call.Args {
			e := expr.StripRelabel(a)
			if c, ok := e.(*expr.Call); ok && c.Cast && k < len(f.Args) && f.Args[k].GetTypeCast() == nil {
				e = c.Args[0] // cast implicitly to the type needed
			}
			if expr.Equal(a, o.Expr) || expr.Equal(e, o.Expr) {
				found = true
				call.OrderBy[i].Expr = a
			}
		}
		if !found {
			return pgerror.New(pgerror.InvalidColumnReference,
				"in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list").
				At(x.pos(nodeLocation(f.AggOrder[i])))
		}
	}
	return nil
}

// placeAggregate registers an aggregate with the query level that it belongs
// to and gives the column that stands for it.
func (x exprBinder) placeAggregate(call plan.AggCall, direct []expr.Expr, pos int) (expr.Expr, error) {
	if sel := x.scope.sel; sel != nil && collects(call.Fn) && !call.Fn.Ordered && !call.Distinct && call.OrderBy == nil {
		call.OrderBy = sel.inputOrder
	}
	exprs := append(append([]expr.Expr{}, call.Args...), call.Filter)
	for _, o := range call.OrderBy {
		exprs = append(exprs, o.Expr)
	}
	level := exprLevel(exprs)
	host := x.scope.up(level)
	if host.kind.agg != "" || host.sel == nil {
		where := host.kind.agg
		if host.lateral {
			return nil, pgerror.New(pgerror.GroupingError, "aggregate functions are not allowed in FROM clause of their own query level").At(pos)
		}
		return nil, pgerror.New(pgerror.GroupingError, "aggregate functions are not allowed in %s", where).At(pos)
	}
	if err := x.checkNested(exprs, level); err != nil {
		return nil, err
	}
	if level > 0 {
		raise := func(e expr.Expr) expr.Expr { return x.raise(e, level) }
		for i := range call.Args {
			call.Args[i] = raise(call.Args[i])
		}
		for i := range call.OrderBy {
			call.OrderBy[i].Expr = raise(call.OrderBy[i].Expr)
		}
		if call.Filter != nil {
			call.Filter = raise(call.Filter)
		}
		direct = slices.Clone(direct)
		for i := range direct {
			direct[i] = raise(direct[i])
		}
	}
	i := host.sel.addAggregate(call, direct, pos)
	if level == 0 {
		return &expr.Column{Index: aggBase + i, Typ: call.Typ, Name: call.Fn.Name}, nil
	}
	host.used = true
	return &expr.OuterColumn{Depth: level, Index: aggBase + i, Typ: call.Typ, Name: call.Fn.Name}, nil
}

// collects reports whether the order of its rows is the aggregate's concern.
func collects(fn *expr.Aggregate) bool {
	return fn.Op == expr.AggCollect || fn.Op == expr.AggFirst || fn.Op == expr.AggLast
}

// checkNested refuses aggregates and window functions of the same level inside
// of an aggregate's arguments.
func (x exprBinder) checkNested(exprs []expr.Expr, level int) error {
	for _, e := range exprs {
		if e == nil {
			continue
		}
		found := 0
		note := func(index int) {
			if index >= aggBase && index < srfBase {
				found = index
			}
		}
		mapRefs(e, func(c *expr.Column) expr.Expr {
			if level == 0 {
				note(c.Index)
			}
			return c
		}, func(c *expr.OuterColumn, in int) expr.Expr {
			if c.Depth-in == level {
				note(c.Index)
			}
			return c
		})
		switch {
		case found == 0:
		case found >= windowBase:
			return pgerror.New(pgerror.GroupingError, "aggregate function calls cannot contain window function calls").
				At(x.scope.up(level).sel.windows[found-windowBase].call.Pos)
		case found < groupBase:
			host := x.scope.up(level)
			return pgerror.New(pgerror.GroupingError, "aggregate function calls cannot be nested").At(host.sel.aggs[found-aggBase].pos)
		default:
			host := x.scope.up(level)
			return pgerror.New(pgerror.GroupingError, "aggregate function calls cannot be nested").At(host.sel.groupings[found-groupBase].at)
		}
	}
	return nil
}

// exprLevel is how many levels out the innermost column used by exprs is; 0
// if they use none.
func exprLevel(exprs []expr.Expr) int {
	least := -1
	note := func(level int) {
		if least < 0 || level < least {
			least = level
		}
	}
	for _, e := range exprs {
		if e == nil {
			continue
		}
		mapRefs(e, func(c *expr.Column) expr.Expr { note(0); return c },
			func(c *expr.OuterColumn, in int) expr.Expr { note(c.Depth - in); return c })
	}
	return max(least, 0)
}

// raise is an expression that uses only columns at least level scopes out, as
// seen from there.
func (x exprBinder) raise(e expr.Expr, level int) expr.Expr {
	keep := func(from, to expr.Expr) expr.Expr {
		if use, ok := x.refs[from]; ok {
			x.refs[to] = use
		}
		return to
	}
	return mapRefs(e, func(c *expr.Column) expr.Expr { return c },
		func(c *expr.OuterColumn, in int) expr.Expr {
			if in == 0 && c.Depth == level {
				return keep(c, &expr.Column{Index: c.Index, Typ: c.Typ, Name: c.Name})
			}
			return keep(c, atDepth(c, c.Depth-level))
		})
}

// addAggregate adds an aggregate to the level, or finds the same one.
func (sel *selectState) addAggregate(call plan.AggCall, direct []expr.Expr, pos int) int {
	for i, a := range sel.aggs {
		if sameAggregate(&a.call, &call) {
			return i
		}
	}
	sel.aggs = append(sel.aggs, aggregate{call: call, pos: pos, direct: direct})
	return len(sel.aggs) - 1
}

func sameAggregate(a, b *plan.AggCall) bool {
	if a.Fn != b.Fn || a.Distinct != b.Distinct || a.Typ != b.Typ || len(a.Args) != len(b.Args) || len(a.OrderBy) != len(b.OrderBy) {
		return false
	}
	if (a.Filter == nil) != (b.Filter == nil) || a.Filter != nil && !expr.Equal(a.Filter, b.Filter) {
		return false
	}
	volatile := false
	for i := range a.Args {
		if !expr.Equal(a.Args[i], b.Args[i]) {
			return false
		}
		volatile = volatile || expr.VolatilityOf(a.Args[i]) == expr.Volatile
	}
	for i, o := range a.OrderBy {
		p := b.OrderBy[i]
		if o.Desc != p.Desc || o.NullsFirst != p.NullsFirst || !expr.Equal(o.Expr, p.Expr) {
			return false
		}
	}
	return !volatile
}
