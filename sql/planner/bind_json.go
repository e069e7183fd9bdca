package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// sqlJSON binds the constructors, predicates and query functions of SQL/JSON;
// nil means that n is none of them.
func (x exprBinder) sqlJSON(n *pg.Node) (expr.Expr, error) {
	switch n := n.GetNode().(type) {
	case *pg.Node_JsonIsPredicate:
		return x.isJSON(n.JsonIsPredicate)
	case *pg.Node_JsonFuncExpr:
		return x.jsonFunc(n.JsonFuncExpr)
	case *pg.Node_JsonObjectConstructor:
		return x.jsonObject(n.JsonObjectConstructor)
	case *pg.Node_JsonArrayConstructor:
		return x.jsonArray(n.JsonArrayConstructor)
	case *pg.Node_JsonArrayQueryConstructor:
		return x.jsonArrayQuery(n.JsonArrayQueryConstructor)
	case *pg.Node_JsonObjectAgg:
		return x.jsonObjectAgg(n.JsonObjectAgg)
	case *pg.Node_JsonArrayAgg:
		return x.jsonArrayAgg(n.JsonArrayAgg)
	case *pg.Node_JsonParseExpr:
		return x.jsonParse(n.JsonParseExpr)
	case *pg.Node_JsonScalarExpr:
		return x.jsonScalar(n.JsonScalarExpr)
	case *pg.Node_JsonSerializeExpr:
		return x.jsonSerialize(n.JsonSerializeExpr)
	}
	return nil, nil
}

// jsonName is the name of the column that a node of SQL/JSON makes, and where
// the node is; "" for other nodes.
func jsonName(n *pg.Node) (name string, location int32) {
	switch n := n.GetNode().(type) {
	case *pg.Node_JsonIsPredicate:
		return "", leftmost(n.JsonIsPredicate.Location, n.JsonIsPredicate.Expr)
	case *pg.Node_JsonFuncExpr:
		f := n.JsonFuncExpr
		return map[pg.JsonExprOp]string{pg.JsonExprOp_JSON_EXISTS_OP: "json_exists", pg.JsonExprOp_JSON_QUERY_OP: "json_query", pg.JsonExprOp_JSON_VALUE_OP: "json_value"}[f.Op], f.Location
	case *pg.Node_JsonObjectConstructor:
		return "json_object", n.JsonObjectConstructor.Location
	case *pg.Node_JsonArrayConstructor:
		return "json_array", n.JsonArrayConstructor.Location
	case *pg.Node_JsonArrayQueryConstructor:
		return "json_array", n.JsonArrayQueryConstructor.Location
	case *pg.Node_JsonObjectAgg:
		return "json_objectagg", n.JsonObjectAgg.Constructor.Location
	case *pg.Node_JsonArrayAgg:
		return "json_arrayagg", n.JsonArrayAgg.Constructor.Location
	case *pg.Node_JsonParseExpr:
		return "json", n.JsonParseExpr.Location
	case *pg.Node_JsonScalarExpr:
		return "json_scalar", n.JsonScalarExpr.Location
	case *pg.Node_JsonSerializeExpr:
		return "json_serialize", n.JsonSerializeExpr.Location
	}
	return "", -1
}

func isString(t types.Type) bool { return t.OID.Category() == 'S' }

func isJSONType(t types.Type) bool { return t.OID == types.OIDJSON || t.OID == types.OIDJSONB }

// jsonValue binds `value [FORMAT JSON]`: as it is, unless a format is given or
// the value's own default format def applies (a type, or none). target is the
// type that is needed, if one is.
func (x exprBinder) jsonValue(v *pg.JsonValueExpr, def, target types.Type) (expr.Expr, error) {
	e, err := x.expr(v.RawExpr)
	if err != nil {
		return nil, err
	}
	if e, err = textIfUnknown(e); err != nil {
		return nil, err
	}
	return x.formatted(e, v.Format, def, target, x.pos(nodeLocation(v.RawExpr)))
}

// formatted makes json or jsonb of a value for which a format is given, or the
// target type. The types 0 stand for none.
func (x exprBinder) formatted(e expr.Expr, f *pg.JsonFormat, def, target types.Type, pos int) (expr.Expr, error) {
	format := def
	explicit := f != nil && f.FormatType > pg.JsonFormatType_JS_FORMAT_DEFAULT
	at := pos
	if explicit {
		at = x.pos(f.Location)
		if f.Encoding > pg.JsonEncoding_JS_ENC_DEFAULT && e.Type().OID != types.OIDBytea {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "JSON ENCODING clause is only allowed for bytea input type").At(at)
		}
		format = types.JSON
	}
	if isJSONType(e.Type()) {
		format = types.Type{}
	}
	switch {
	case format.OID == 0 && (target.OID == 0 || e.Type().OID == target.OID):
		return e, nil
	case target.OID == 0 && e.Type().OID != types.OIDBytea && !isString(e.Type()):
		if explicit {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "cannot use non-string types with explicit FORMAT JSON clause").At(at)
		}
		return nil, pgerror.New(pgerror.DatatypeMismatch, "cannot use non-string types with implicit FORMAT JSON clause").At(at)
	}
	var err error
	if e.Type().OID == types.OIDBytea && format.OID != 0 {
		if e, err = x.decodedJSON(e, f, pos); err != nil {
			return nil, err
		}
	}
	to := target
	if to.OID == 0 {
		to = format
	}
	if !expr.CanCoerce(e.Type(), to, expr.CastExplicit) {
		return nil, pgerror.New(pgerror.CannotCoerce, "cannot cast type %s to %s", e.Type().OID, to.OID).At(pos)
	}
	return expr.Coerce(e, to, expr.CastExplicit, pos)
}

// decodedJSON is the text that bytes hold, in the encoding that the format says.
func (x exprBinder) decodedJSON(e expr.Expr, f *pg.JsonFormat, pos int) (expr.Expr, error) {
	if err := x.checkEncoding(f); err != nil {
		return nil, err
	}
	return expr.NewCall("convert_from", []expr.Expr{e, unknownConst("utf8", pos)}, expr.CallOptions{Pos: pos})
}

func (x exprBinder) checkEncoding(f *pg.JsonFormat) error {
	if f == nil || f.Encoding <= pg.JsonEncoding_JS_ENC_UTF8 {
		return nil
	}
	return pgerror.New(pgerror.FeatureNotSupported, "unsupported JSON encoding").
		WithHint("Only UTF8 JSON encoding is supported.").At(x.pos(f.Location))
}

// jsonReturning is the RETURNING clause of a function: its type, with OID 0 if
// there is none. strict says that a format is only for types of strings.
func (x exprBinder) jsonReturning(o *pg.JsonOutput, strict bool) (types.Type, error) {
	if o == nil || o.TypeName == nil {
		return types.Type{}, nil
	}
	t, err := x.typeName(o.TypeName)
	if err != nil {
		return t, err
	}
	if o.TypeName.Setof {
		return t, pgerror.New(pgerror.FeatureNotSupported, "returning SETOF types is not supported in SQL/JSON functions")
	}
	if t.OID.Category() == 'P' {
		return t, pgerror.New(pgerror.FeatureNotSupported, "returning pseudo-types is not supported in SQL/JSON functions")
	}
	f := o.Returning.GetFormat()
	if f == nil || f.FormatType <= pg.JsonFormatType_JS_FORMAT_DEFAULT {
		return t, nil
	}
	at := x.pos(f.Location)
	if strict && t.OID != types.OIDBytea && !isJSONType(t) && !isString(t) {
		return t, pgerror.New(pgerror.FeatureNotSupported, "cannot use JSON format with non-string output types").At(at)
	}
	if f.Encoding > pg.JsonEncoding_JS_ENC_DEFAULT && t.OID != types.OIDBytea {
		return t, pgerror.New(pgerror.DatatypeMismatch, "cannot set JSON encoding for non-bytea output types").At(at)
	}
	return t, x.checkEncoding(f)
}

// jsonResult gives a constructed value the type that is to be returned.
func (x exprBinder) jsonResult(e expr.Expr, t types.Type, pos int) (expr.Expr, error) {
	switch {
	case t.OID == 0 || t.OID == e.Type().OID:
		return e, nil
	case t.OID == types.OIDBytea:
		s, err := expr.Coerce(e, types.Text, expr.CastAssignment, pos)
		if err != nil {
			return nil, err
		}
		return expr.NewCall("convert_to", []expr.Expr{s, unknownConst("utf8", pos)}, expr.CallOptions{Pos: pos})
	case !expr.CanCoerce(e.Type(), t, expr.CastAssignment):
		return nil, pgerror.New(pgerror.CannotCoerce, "cannot cast type %s to %s", e.Type().OID, t.OID).At(pos)
	}
	return expr.Coerce(e, t, expr.CastAssignment, pos)
}

// jsonOutput is the RETURNING clause of a constructor with some arguments, and
// whether it makes jsonb.
func (x exprBinder) jsonOutput(o *pg.JsonOutput, args []expr.Expr) (t types.Type, jsonb bool, err error) {
	if t, err = x.jsonReturning(o, true); err != nil || t.OID != 0 {
		return t, t.OID == types.OIDJSONB, err
	}
	for _, a := range args {
		jsonb = jsonb || a.Type().OID == types.OIDJSONB
	}
	return t, jsonb, nil
}

// keyValues binds the members of an object, keys and values in turn.
func (x exprBinder) keyValues(list []*pg.Node) ([]expr.Expr, error) {
	var out []expr.Expr
	for _, n := range list {
		kv := n.GetJsonKeyValue()
		k, err := x.expr(kv.Key)
		if err != nil {
			return nil, err
		}
		if k, err = textIfUnknown(k); err != nil {
			return nil, err
		}
		v, err := x.jsonValue(kv.Value, types.Type{}, types.Type{})
		if err != nil {
			return nil, err
		}
		out = append(out, k, v)
	}
	return out, nil
}

func (x exprBinder) jsonObject(c *pg.JsonObjectConstructor) (expr.Expr, error) {
	pos := x.pos(c.Location)
	args, err := x.keyValues(c.Exprs)
	if err != nil {
		return nil, err
	}
	t, jsonb, err := x.jsonOutput(c.Output, args)
	if err != nil {
		return nil, err
	}
	return x.jsonResult(expr.NewJSONBuild(true, jsonb, c.AbsentOnNull, c.Unique, args, pos), t, pos)
}

func (x exprBinder) jsonArray(c *pg.JsonArrayConstructor) (expr.Expr, error) {
	pos := x.pos(c.Location)
	var args []expr.Expr
	for _, n := range c.Exprs {
		e, err := x.jsonValue(n.GetJsonValueExpr(), types.Type{}, types.Type{})
		if err != nil {
			return nil, err
		}
		args = append(args, e)
	}
	t, jsonb, err := x.jsonOutput(c.Output, args)
	if err != nil {
		return nil, err
	}
	return x.jsonResult(expr.NewJSONBuild(false, jsonb, c.AbsentOnNull, false, args, pos), t, pos)
}

// jsonArrayQuery binds JSON_ARRAY(SELECT …): an aggregate over the query's rows
// in their order, NULL if there are none.
func (x exprBinder) jsonArrayQuery(c *pg.JsonArrayQueryConstructor) (expr.Expr, error) {
	pos := x.pos(c.Location)
	q, err := x.query(c.Query.GetSelectStmt(), x.scope, x.ctes, resolveUnknown)
	if err != nil {
		return nil, err
	}
	if len(q.cols) != 1 {
		return nil, pgerror.New(pgerror.SyntaxError, "subquery must return only one column").At(pos)
	}
	rel := q.collection()
	if len(q.order) > 0 && q.limit == nil && q.offset == nil {
		rel = q.rel
	} else if len(q.order) > 0 {
		rel = &plan.TopK{Input: q.rel, Order: q.order, Limit: q.limit, Offset: q.offset, WithTies: q.ties}
	}
	arg, err := x.formatted(plan.Ref(rel, 0), c.Format, types.Type{}, types.Type{}, pos)
	if err != nil {
		return nil, err
	}
	t, jsonb, err := x.jsonOutput(c.Output, []expr.Expr{arg})
	if err != nil {
		return nil, err
	}
	agg := plan.AggCall{Pos: pos}
	if agg.Fn, agg.Args, agg.Typ, err = expr.ResolveAggregate(jsonAggregate("agg", jsonb, c.AbsentOnNull, false), []expr.Expr{arg}, expr.CallOptions{Pos: pos}); err != nil {
		return nil, err
	}
	for _, k := range q.order {
		agg.OrderBy = append(agg.OrderBy, plan.SortExpr{Expr: plan.Ref(rel, k.Col), Desc: k.Desc, NullsFirst: k.NullsFirst})
	}
	a := &plan.Aggregate{Input: rel, Aggs: []plan.AggCall{agg}, Cols: []plan.Column{{Name: "json_array", Type: agg.Typ}}}
	sub := &expr.Subquery{Kind: expr.SubqueryScalar, Rel: a, Typ: agg.Typ, Pos: pos}
	return x.jsonResult(sub, t, pos)
}

// jsonAggregate is the name of an aggregate: json[b]_agg or json[b]_object_agg.
func jsonAggregate(name string, jsonb, absent, unique bool) string {
	s := "json_" + name
	if jsonb {
		s = "jsonb_" + name
	}
	if unique {
		s += "_unique"
	}
	if absent {
		s += "_strict"
	}
	return s
}

func (x exprBinder) jsonObjectAgg(a *pg.JsonObjectAgg) (expr.Expr, error) {
	args, err := x.keyValues([]*pg.Node{{Node: &pg.Node_JsonKeyValue{JsonKeyValue: a.Arg}}})
	if err != nil {
		return nil, err
	}
	return x.jsonAgg("object_agg", a.Constructor, args, a.AbsentOnNull, a.Unique)
}

func (x exprBinder) jsonArrayAgg(a *pg.JsonArrayAgg) (expr.Expr, error) {
	arg, err := x.jsonValue(a.Arg, types.Type{}, types.Type{})
	if err != nil {
		return nil, err
	}
	return x.jsonAgg("agg", a.Constructor, []expr.Expr{arg}, a.AbsentOnNull, false)
}

// jsonAgg binds JSON_OBJECTAGG or JSON_ARRAYAGG as a call of the aggregate
// behind it.
func (x exprBinder) jsonAgg(name string, c *pg.JsonAggConstructor, args []expr.Expr, absent, unique bool) (expr.Expr, error) {
	pos := x.pos(c.Location)
	t, jsonb, err := x.jsonOutput(c.Output, args)
	if err != nil {
		return nil, err
	}
	name = jsonAggregate(name, jsonb, absent, unique)
	f := &pg.FuncCall{AggOrder: c.AggOrder, AggFilter: c.AggFilter, Over: c.Over, Location: c.Location}
	var e expr.Expr
	if f.Over != nil {
		e, err = x.windowFunction(f, name, args, false, pos)
	} else {
		e, err = x.aggregateOver(f, name, args, false, pos)
	}
	if err != nil {
		return nil, err
	}
	return x.jsonResult(e, t, pos)
}

// jsonParse binds JSON(text [WITH UNIQUE KEYS]).
func (x exprBinder) jsonParse(p *pg.JsonParseExpr) (expr.Expr, error) {
	pos := x.pos(p.Location)
	if !p.UniqueKeys {
		return x.jsonValue(p.Expr, types.JSON, types.JSON)
	}
	e, err := x.jsonText(p.Expr.RawExpr, p.Expr.Format)
	if err != nil {
		return nil, err
	}
	if e.Type().OID != types.OIDText {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "cannot use non-string types with WITH UNIQUE KEYS clause").At(pos)
	}
	return expr.NewUniqueJSON(e, pos), nil
}

// jsonText binds a document that is to be read: a string or bytes as text,
// anything else as it is.
func (x exprBinder) jsonText(n *pg.Node, f *pg.JsonFormat) (expr.Expr, error) {
	e, err := x.expr(n)
	if err != nil {
		return nil, err
	}
	pos := x.pos(nodeLocation(n))
	if e.Type().OID == types.OIDBytea {
		return x.decodedJSON(e, f, pos)
	}
	if e.Type().OID == types.OIDUnknown || isString(e.Type()) {
		if e, err = expr.Coerce(e, types.Text, expr.CastImplicit, pos); err != nil {
			return nil, err
		}
	}
	if f != nil && f.Encoding > pg.JsonEncoding_JS_ENC_DEFAULT {
		return nil, pgerror.New(pgerror.InvalidParameterValue, "cannot use JSON FORMAT ENCODING clause for non-bytea input types").At(x.pos(f.Location))
	}
	return e, nil
}

func (x exprBinder) jsonScalar(s *pg.JsonScalarExpr) (expr.Expr, error) {
	e, err := x.expr(s.Expr)
	if err != nil {
		return nil, err
	}
	if e, err = textIfUnknown(e); err != nil {
		return nil, err
	}
	return expr.NewCall("to_json", []expr.Expr{e}, expr.CallOptions{Pos: x.pos(s.Location)})
}

func (x exprBinder) jsonSerialize(s *pg.JsonSerializeExpr) (expr.Expr, error) {
	e, err := x.jsonValue(s.Expr, types.JSON, types.Type{})
	if err != nil {
		return nil, err
	}
	t, err := x.jsonReturning(s.Output, true)
	switch {
	case err != nil:
		return nil, err
	case t.OID == 0:
		t = types.Text
	case t.OID != types.OIDBytea && !isString(t):
		return nil, pgerror.New(pgerror.DatatypeMismatch, "cannot use type %s in RETURNING clause of %s", t.OID, "JSON_SERIALIZE()").
			WithHint("Try returning a string type or bytea.")
	}
	return x.jsonResult(e, t, x.pos(s.Location))
}

func (x exprBinder) isJSON(p *pg.JsonIsPredicate) (expr.Expr, error) {
	e, err := x.jsonText(p.Expr, p.Format)
	if err != nil {
		return nil, err
	}
	if !isJSONType(e.Type()) && e.Type().OID != types.OIDText {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "cannot use type %s in IS JSON predicate", e.Type().OID)
	}
	item := map[pg.JsonValueType]expr.JSONItem{
		pg.JsonValueType_JS_TYPE_OBJECT: expr.JSONObject, pg.JsonValueType_JS_TYPE_ARRAY: expr.JSONArray, pg.JsonValueType_JS_TYPE_SCALAR: expr.JSONScalar,
	}[p.ItemType]
	return expr.NewIsJSON(e, item, p.UniqueKeys, x.pos(p.Location)), nil
}
