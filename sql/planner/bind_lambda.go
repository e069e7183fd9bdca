package planner

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// lambdaOf gives the parameters and the body of an argument that is a lambda.
func lambdaOf(n *pg.Node) (params []string, body *pg.Node) {
	f := n.GetFuncCall()
	if f == nil || len(f.Funcname) != 1 || f.Funcname[0].GetString_().GetSval() != parser.LambdaMarker {
		return nil, nil
	}
	last := len(f.Args) - 1
	for _, p := range f.Args[:last] {
		params = append(params, p.GetAConst().GetSval().GetSval())
	}
	return params, f.Args[last]
}

// lambdaCall binds a call whose last argument is a lambda; ok tells.
func (x exprBinder) lambdaCall(f *pg.FuncCall) (e expr.Expr, ok bool, err error) {
	if len(f.Args) == 0 {
		return nil, false, nil
	}
	last := len(f.Args) - 1
	params, body := lambdaOf(f.Args[last])
	if body == nil {
		return nil, false, nil
	}
	name, pos := strings.Join(listNames(f.Funcname), "."), x.pos(f.Location)
	args, err := x.exprs(f.Args[:last])
	if err != nil {
		return nil, true, err
	}
	e, err = x.applied(name, args, params, body, pos)
	return e, true, err
}

// applied binds a function that applies a lambda to its argument.
func (x exprBinder) applied(name string, args []expr.Expr, params []string, body *pg.Node, pos int) (expr.Expr, error) {
	switch name {
	case "array_transform", "array_filter":
		if len(args) != 1 {
			break
		}
		if !args[0].Type().OID.IsArray() {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "the first argument of %s must be an array, not %s", name, args[0].Type()).At(pos)
		}
		l, captured, err := x.lambda(name, params, []types.Type{args[0].Type().ElemType().Storage()}, body, pos)
		if err != nil {
			return nil, err
		}
		return expr.NewArrayTransform(args[0], l, captured, name == "array_filter", pos)
	case "map_filter":
		if len(args) != 1 {
			break
		}
		if !args[0].Type().OID.IsMap() {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "the first argument of %s must be a map, not %s", name, args[0].Type()).At(pos)
		}
		key, value := args[0].Type().OID.MapTypes()
		l, captured, err := x.lambda(name, params, []types.Type{key.Storage(), value.Storage()}, body, pos)
		if err != nil {
			return nil, err
		}
		return expr.NewMapFilter(args[0], l, captured, pos)
	}
	return nil, pgerror.New(pgerror.UndefinedFunction, "there is no function %s that takes a lambda", name).At(pos)
}

// lambda binds a lambda whose parameters have some types. What its body takes
// from around it are the captured expressions.
func (x exprBinder) lambda(fn string, params []string, typs []types.Type, body *pg.Node, pos int) (*expr.Lambda, []expr.Expr, error) {
	if len(params) != len(typs) {
		return nil, nil, pgerror.New(pgerror.DatatypeMismatch, "the lambda of %s must have %d parameters, not %d", fn, len(typs), len(params)).At(pos)
	}
	e := &entry{colsVisible: true}
	for i, p := range params {
		e.columns = append(e.columns, entryColumn{name: p, index: i, typ: typs[i]})
	}
	s := newScope(x.scope)
	s.kind = everything("lambda expressions")
	s.entries = []*entry{e}
	inner := x
	inner.scope = s
	b, err := inner.expr(body)
	if err != nil {
		return nil, nil, err
	}
	if b, err = textIfUnknown(b); err != nil {
		return nil, nil, err
	}
	if hasSubquery(b) {
		return nil, nil, pgerror.Unsupported("a subquery in a lambda expression").At(pos)
	}
	var captured []expr.Expr
	b = mapRefs(b, func(c *expr.Column) expr.Expr { return c }, func(c *expr.OuterColumn, _ int) expr.Expr {
		var from expr.Expr = &expr.Column{Index: c.Index, Typ: c.Typ, Name: c.Name}
		if c.Depth > 1 {
			from = atDepth(c, c.Depth-1)
		}
		if use, ok := x.refs[c]; ok {
			x.refs[from] = use
		}
		captured = append(captured, from)
		return &expr.Column{Index: len(params) + len(captured) - 1, Typ: c.Typ, Name: c.Name}
	})
	return &expr.Lambda{Params: params, Body: b}, captured, nil
}
