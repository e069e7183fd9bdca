package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

var jsonOps = map[pg.JsonExprOp]expr.JSONOp{
	pg.JsonExprOp_JSON_EXISTS_OP: expr.JSONExists, pg.JsonExprOp_JSON_QUERY_OP: expr.JSONQuery, pg.JsonExprOp_JSON_VALUE_OP: expr.JSONValue,
}

var jsonWrappers = map[pg.JsonWrapper]expr.JSONWrapper{
	pg.JsonWrapper_JSW_CONDITIONAL: expr.WrapSeveral, pg.JsonWrapper_JSW_UNCONDITIONAL: expr.WrapAlways,
}

// jsonFunc binds JSON_EXISTS, JSON_QUERY or JSON_VALUE.
func (x exprBinder) jsonFunc(f *pg.JsonFuncExpr) (expr.Expr, error) {
	op := jsonOps[f.Op]
	if err := x.checkJSONFunc(f, op); err != nil {
		return nil, err
	}
	def := types.Type{}
	if op == expr.JSONQuery {
		def = types.JSONB
	}
	doc, err := x.jsonValue(f.ContextItem, def, types.JSONB)
	if err != nil {
		return nil, err
	}
	e := &expr.JSONExpr{Doc: doc, Pos: x.pos(f.Location)}
	if e.Path, err = x.jsonPath(f.Pathspec); err != nil {
		return nil, err
	}
	if e.Names, e.Passing, err = x.jsonPassing(f.Passing); err != nil {
		return nil, err
	}
	return x.finishJSONFunc(e, f)
}

// finishJSONFunc binds what decides of the result of a query function.
func (x exprBinder) finishJSONFunc(e *expr.JSONExpr, f *pg.JsonFuncExpr) (expr.Expr, error) {
	var err error
	e.Op, e.Column = jsonOps[f.Op], f.ColumnName
	e.Wrapper = jsonWrappers[f.Wrapper]
	e.OmitQuotes = f.Quotes == pg.JsonQuotes_JS_QUOTES_OMIT
	if e.Returning, err = x.jsonReturning(f.Output, true); err != nil {
		return nil, err
	}
	if e.Returning.OID == 0 {
		e.Returning = map[expr.JSONOp]types.Type{expr.JSONExists: types.Bool, expr.JSONQuery: types.JSONB, expr.JSONValue: types.Text}[e.Op]
	}
	if e.Op != expr.JSONExists {
		if e.OnEmpty, e.FailEmpty, err = x.jsonBehavior(f.OnEmpty, &e.JSONSpec, "ON EMPTY"); err != nil {
			return nil, err
		}
	}
	e.OnError, e.FailError, err = x.jsonBehavior(f.OnError, &e.JSONSpec, "ON ERROR")
	return e, err
}

// checkJSONFunc refuses clauses that a function cannot have.
func (x exprBinder) checkJSONFunc(f *pg.JsonFuncExpr, op expr.JSONOp) error {
	if o := f.Output.GetReturning().GetFormat(); o != nil && op != expr.JSONQuery &&
		(o.FormatType > pg.JsonFormatType_JS_FORMAT_DEFAULT || o.Encoding > pg.JsonEncoding_JS_ENC_DEFAULT) {
		return pgerror.New(pgerror.SyntaxError, "cannot specify FORMAT JSON in RETURNING clause of %s()", op).At(x.pos(o.Location))
	}
	if op == expr.JSONQuery && f.Quotes == pg.JsonQuotes_JS_QUOTES_OMIT && jsonWrappers[f.Wrapper] != expr.WrapNever {
		return pgerror.New(pgerror.SyntaxError, "SQL/JSON QUOTES behavior must not be specified when WITH WRAPPER is used").At(x.pos(f.Location))
	}
	if err := x.checkBehavior(f.OnEmpty, f.ColumnName, op, "ON EMPTY"); err != nil {
		return err
	}
	return x.checkBehavior(f.OnError, f.ColumnName, op, "ON ERROR")
}

func (x exprBinder) checkBehavior(b *pg.JsonBehavior, column string, op expr.JSONOp, where string) error {
	if b == nil {
		return nil
	}
	ok := b.Btype == pg.JsonBehaviorType_JSON_BEHAVIOR_ERROR
	var list, columns string
	switch op {
	case expr.JSONExists:
		list, columns = "ERROR, TRUE, FALSE, or UNKNOWN", "EXISTS columns"
		ok = ok || b.Btype >= pg.JsonBehaviorType_JSON_BEHAVIOR_TRUE && b.Btype <= pg.JsonBehaviorType_JSON_BEHAVIOR_UNKNOWN
	case expr.JSONQuery:
		list, columns = "ERROR, NULL, EMPTY ARRAY, EMPTY OBJECT, or DEFAULT expression", "formatted columns"
		ok = ok || b.Btype < pg.JsonBehaviorType_JSON_BEHAVIOR_TRUE || b.Btype > pg.JsonBehaviorType_JSON_BEHAVIOR_UNKNOWN
	case expr.JSONValue:
		list, columns = "ERROR, NULL, or DEFAULT expression", "scalar columns"
		ok = ok || b.Btype == pg.JsonBehaviorType_JSON_BEHAVIOR_NULL || b.Btype == pg.JsonBehaviorType_JSON_BEHAVIOR_DEFAULT
	}
	if ok {
		return nil
	}
	pos := x.pos(b.Location)
	if column != "" {
		return pgerror.New(pgerror.SyntaxError, "invalid %s behavior for column \"%s\"", where, column).
			WithDetail("Only %s is allowed in %s for %s.", list, where, columns).At(pos)
	}
	return pgerror.New(pgerror.SyntaxError, "invalid %s behavior", where).
		WithDetail("Only %s is allowed in %s for %s().", list, where, op).At(pos)
}

// jsonPath binds a path.
func (x exprBinder) jsonPath(n *pg.Node) (expr.Expr, error) {
	e, err := x.expr(n)
	if err != nil {
		return nil, err
	}
	path := types.Of(types.OIDJSONPath)
	pos := x.pos(nodeLocation(n))
	if !expr.CanCoerce(e.Type(), path, expr.CastExplicit) {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "JSON path expression must be of type %s, not of type %s", "jsonpath", e.Type().OID).At(pos)
	}
	return expr.Coerce(e, path, expr.CastExplicit, pos)
}

// jsonPassing binds the variables of a path. Their values are jsonb, but for
// those of dates and times, which JSON has no types for.
func (x exprBinder) jsonPassing(list []*pg.Node) (names []string, values []expr.Expr, err error) {
	for _, n := range list {
		a := n.GetJsonArgument()
		e, err := x.expr(a.Val.RawExpr)
		if err != nil {
			return nil, nil, err
		}
		if e, err = textIfUnknown(e); err != nil {
			return nil, nil, err
		}
		pos := x.pos(nodeLocation(a.Val.RawExpr))
		if f := a.Val.Format; f != nil && f.FormatType > pg.JsonFormatType_JS_FORMAT_DEFAULT {
			if e, err = x.formatted(e, f, types.Type{}, types.Type{}, pos); err != nil {
				return nil, nil, err
			}
		}
		switch e.Type().OID {
		case types.OIDDate, types.OIDTime, types.OIDTimeTZ, types.OIDTimestamp, types.OIDTimestampTZ, types.OIDJSONB:
		default:
			if e, err = expr.NewCall("to_jsonb", []expr.Expr{e}, expr.CallOptions{Pos: pos}); err != nil {
				return nil, nil, err
			}
		}
		names, values = append(names, a.Name), append(values, e)
	}
	return names, values, nil
}

// behaviorWords are how the behaviors are written in messages.
var behaviorWords = map[pg.JsonBehaviorType]string{
	pg.JsonBehaviorType_JSON_BEHAVIOR_NULL: "NULL", pg.JsonBehaviorType_JSON_BEHAVIOR_EMPTY: "EMPTY", pg.JsonBehaviorType_JSON_BEHAVIOR_TRUE: "TRUE",
	pg.JsonBehaviorType_JSON_BEHAVIOR_FALSE: "FALSE", pg.JsonBehaviorType_JSON_BEHAVIOR_UNKNOWN: "UNKNOWN",
	pg.JsonBehaviorType_JSON_BEHAVIOR_EMPTY_ARRAY: "EMPTY ARRAY", pg.JsonBehaviorType_JSON_BEHAVIOR_EMPTY_OBJECT: "EMPTY OBJECT",
	pg.JsonBehaviorType_JSON_BEHAVIOR_DEFAULT: "DEFAULT",
}

// jsonBehavior binds ON EMPTY or ON ERROR: a value of the type returned, nil for
// NULL; fail says that it is an error.
func (x exprBinder) jsonBehavior(b *pg.JsonBehavior, s *expr.JSONSpec, where string) (e expr.Expr, fail bool, err error) {
	kind := pg.JsonBehaviorType_JSON_BEHAVIOR_NULL
	if s.Op == expr.JSONExists {
		kind = pg.JsonBehaviorType_JSON_BEHAVIOR_FALSE
	}
	if b != nil {
		kind = b.Btype
	}
	words := behaviorWords[kind]
	base := s.Returning.Storage()
	switch kind {
	case pg.JsonBehaviorType_JSON_BEHAVIOR_ERROR:
		return nil, true, nil
	case pg.JsonBehaviorType_JSON_BEHAVIOR_DEFAULT:
		e, err = x.jsonDefault(b, s)
		if err != nil {
			return nil, false, err
		}
	case pg.JsonBehaviorType_JSON_BEHAVIOR_EMPTY, pg.JsonBehaviorType_JSON_BEHAVIOR_EMPTY_ARRAY:
		e, err = literal(types.JSONB, "[]", 0)
	case pg.JsonBehaviorType_JSON_BEHAVIOR_EMPTY_OBJECT:
		e, err = literal(types.JSONB, "{}", 0)
	case pg.JsonBehaviorType_JSON_BEHAVIOR_TRUE, pg.JsonBehaviorType_JSON_BEHAVIOR_FALSE:
		yes := kind == pg.JsonBehaviorType_JSON_BEHAVIOR_TRUE
		switch {
		case base.OID == types.OIDBool:
			e = boolConst(yes)
		case base.OID == types.OIDInt4:
			e = int32Const(map[bool]int32{true: 1}[yes])
		default:
			e, err = literal(types.JSONB, map[bool]string{true: "true", false: "false"}[yes], 0)
		}
	default: // NULL, UNKNOWN
		if !s.Returning.OID.IsDomain() {
			return nil, false, nil
		}
		e = nullConst(base)
	}
	if err != nil {
		return nil, false, err
	}
	return expr.JSONBehavior(e, s, where, words), false, nil
}

// jsonDefault binds the expression of DEFAULT … ON EMPTY or ON ERROR.
func (x exprBinder) jsonDefault(b *pg.JsonBehavior, s *expr.JSONSpec) (expr.Expr, error) {
	pos := x.pos(nodeLocation(b.Expr))
	e, err := x.expr(b.Expr)
	if err != nil {
		return nil, err
	}
	if err := x.checkJSONDefault(e, pos); err != nil {
		return nil, err
	}
	to, ctx := s.Returning.Storage(), expr.CastExplicit
	if e.Type().OID == to.OID && e.Type().Mod == to.Mod {
		return e, nil
	}
	if e.Type().OID == types.OIDJSONB || expr.IsNullConst(e) {
		if expr.IsNullConst(e) {
			return nullConst(to), nil
		}
		return e, nil
	}
	if c := to.OID.Category(); c == 'S' || c == 'V' {
		ctx = expr.CastAssignment
	}
	if !expr.CanCoerce(e.Type(), to, ctx) {
		return nil, pgerror.New(pgerror.CannotCoerce, "cannot cast behavior expression of type %s to %s", e.Type().OID, s.Returning.OID).
			WithHint("You will need to explicitly cast the expression to type %s.", s.Returning.OID).At(pos)
	}
	return expr.Coerce(e, to, ctx, pos)
}

// checkJSONDefault refuses what a DEFAULT expression must not have.
func (x exprBinder) checkJSONDefault(e expr.Expr, pos int) error {
	refuse := func(message string) error { return pgerror.New(pgerror.DatatypeMismatch, "%s", message).At(pos) }
	const kinds = "can only specify a constant, non-aggregate function, or operator expression for DEFAULT"
	bad := ""
	expr.Walk(e, func(n expr.Expr) bool {
		switch c := n.(type) {
		case *expr.Subquery:
			bad = kinds
		case *expr.OuterColumn:
			bad = "DEFAULT expression must not contain column references"
		case *expr.Column:
			switch {
			case c.Index >= srfBase:
				bad = "DEFAULT expression must not return a set"
			case c.Index >= aggBase:
				bad = kinds
			default:
				bad = "DEFAULT expression must not contain column references"
			}
		}
		return bad == ""
	})
	if bad != "" {
		return refuse(bad)
	}
	return nil
}
