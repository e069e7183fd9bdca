package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// jsonTable binds a JSON_TABLE that stands alone, or is joined laterally.
func (f fromBinder) jsonTable(jt *pg.JsonTable, env *scope) (*fromItem, error) {
	s := newScope(env)
	s.kind = inFunction
	rel, e, err := exprBinder{binder: f.binder, scope: s, ctes: f.ctes}.jsonTableRel(unit(), jt)
	if err != nil {
		return nil, err
	}
	return &fromItem{rel: rel, entries: []*entry{e}}, nil
}

// jsonTableBinder collects the paths and columns of a JSON_TABLE.
type jsonTableBinder struct {
	exprBinder
	names   []string // of the variables
	passing []expr.Expr
	base    int // first column of the items
	paths   int
	used    map[string]bool // names of columns and paths
	exprs   []expr.Expr
	cols    []plan.Column
}

// jsonTableRel adds the columns of a JSON_TABLE to a relation: the items of its
// paths, of which the columns are then taken.
//
//	JSON_TABLE(d, '$[*]' COLUMNS (a int))  →  Project [JSON_VALUE(item, '$."a"')] of FlatMap json_table(d, '$[*]')
func (x exprBinder) jsonTableRel(in plan.Rel, jt *pg.JsonTable) (plan.Rel, *entry, error) {
	fail := false
	if b := jt.OnError; b != nil {
		switch b.Btype {
		case pg.JsonBehaviorType_JSON_BEHAVIOR_ERROR:
			fail = true
		case pg.JsonBehaviorType_JSON_BEHAVIOR_EMPTY, pg.JsonBehaviorType_JSON_BEHAVIOR_EMPTY_ARRAY:
		default:
			return nil, nil, pgerror.New(pgerror.SyntaxError, "invalid %s behavior", "ON ERROR").
				WithDetail("Only EMPTY [ ARRAY ] or ERROR is allowed in the top-level ON ERROR clause.").At(x.pos(b.Location))
		}
	}
	doc, err := x.jsonValue(jt.ContextItem, types.JSONB, types.JSONB)
	if err != nil {
		return nil, nil, err
	}
	t := &jsonTableBinder{exprBinder: x, base: plan.Arity(in), used: map[string]bool{}}
	if t.names, t.passing, err = x.jsonPassing(jt.Passing); err != nil {
		return nil, nil, err
	}
	p, err := t.path(jt.Pathspec, jt.Columns)
	if err != nil {
		return nil, nil, err
	}
	p.Names, p.Fail = t.names, fail
	for _, e := range t.passing {
		p.Types = append(p.Types, e.Type().OID)
	}
	rows := in.Columns()
	for range t.paths {
		rows = append(rows, plan.Column{Name: "item", Type: types.JSONB}, plan.Column{Name: "ordinality", Type: types.Int4})
	}
	rel := &plan.FlatMap{Input: in, Fn: expr.JSONTable, Args: append([]expr.Expr{doc, p.Const()}, t.passing...), Cols: rows}
	out := firstColumns(rel, t.base).(*plan.Project)
	out.Exprs, out.Cols = append(out.Exprs, t.exprs...), append(out.Cols, t.cols...)
	e := newEntry("json_table", t.cols)
	if a := jt.Alias; a != nil && len(a.Colnames) > len(t.cols) {
		return nil, nil, pgerror.New(pgerror.InvalidColumnReference, "%s function has %d columns available but %d columns specified", "JSON_TABLE", len(t.cols), len(a.Colnames))
	}
	shift([]*entry{e}, t.base)
	return out, e, e.rename(jt.Alias, 0)
}

// name notes the name of a column or path; all are different.
func (t *jsonTableBinder) name(name string, location int32) error {
	if name == "" {
		return nil
	}
	if t.used[name] {
		return pgerror.New(pgerror.DuplicateAlias, "duplicate JSON_TABLE column or path name: %s", name).At(t.pos(location))
	}
	t.used[name] = true
	return nil
}

// path binds a path and the columns of its items.
func (t *jsonTableBinder) path(s *pg.JsonTablePathSpec, columns []*pg.Node) (*expr.JSONTablePlan, error) {
	if err := t.name(s.Name, s.NameLocation); err != nil {
		return nil, err
	}
	path, err := t.jsonPath(s.String_)
	if err != nil {
		return nil, err
	}
	c := path.(*expr.Const)
	p := &expr.JSONTablePlan{Path: string(c.Val.Bytes(0))}
	item := t.base + 2*t.paths
	t.paths++
	numbered := false
	for _, n := range columns {
		c := n.GetJsonTableColumn()
		if c.Coltype == pg.JsonTableColumnType_JTC_NESTED {
			continue // its columns come behind those of this level
		}
		if err := t.name(c.Name, c.Location); err != nil {
			return nil, err
		}
		var e expr.Expr
		if c.Coltype == pg.JsonTableColumnType_JTC_FOR_ORDINALITY {
			if numbered {
				return nil, pgerror.New(pgerror.SyntaxError, "cannot use more than one FOR ORDINALITY column").At(t.pos(c.Location))
			}
			numbered = true
			e = &expr.Column{Index: item + 1, Typ: types.Int4, Name: "ordinality"}
		} else if e, err = t.column(c, &expr.Column{Index: item, Typ: types.JSONB, Name: "item"}); err != nil {
			return nil, err
		}
		t.exprs, t.cols = append(t.exprs, e), append(t.cols, plan.Column{Name: c.Name, Type: e.Type()})
	}
	for _, n := range columns {
		if c := n.GetJsonTableColumn(); c.Coltype == pg.JsonTableColumnType_JTC_NESTED {
			nested, err := t.path(c.Pathspec, c.Columns)
			if err != nil {
				return nil, err
			}
			p.Nested = append(p.Nested, nested)
		}
	}
	return p, nil
}

// column binds a column as a query function over the item.
func (t *jsonTableBinder) column(c *pg.JsonTableColumn, item expr.Expr) (expr.Expr, error) {
	f := &pg.JsonFuncExpr{
		ColumnName: c.Name, Output: &pg.JsonOutput{TypeName: c.TypeName, Returning: &pg.JsonReturning{Format: c.Format}},
		OnEmpty: c.OnEmpty, OnError: c.OnError, Wrapper: c.Wrapper, Quotes: c.Quotes, Location: c.Location,
	}
	switch c.Coltype {
	case pg.JsonTableColumnType_JTC_EXISTS:
		f.Op = pg.JsonExprOp_JSON_EXISTS_OP
	case pg.JsonTableColumnType_JTC_FORMATTED:
		f.Op = pg.JsonExprOp_JSON_QUERY_OP
	default:
		typ, err := t.typeName(c.TypeName)
		if err != nil {
			return nil, err
		}
		f.Op = pg.JsonExprOp_JSON_VALUE_OP
		if jsonContainer(typ) || c.Quotes > pg.JsonQuotes_JS_QUOTES_UNSPEC || c.Wrapper > pg.JsonWrapper_JSW_UNSPEC {
			f.Op = pg.JsonExprOp_JSON_QUERY_OP
		}
	}
	if err := t.checkJSONFunc(f, jsonOps[f.Op]); err != nil {
		return nil, err
	}
	e := &expr.JSONExpr{Doc: item, Passing: t.passing, Pos: t.pos(c.Location)}
	e.Names = t.names
	var err error
	if c.Pathspec != nil {
		e.Path, err = t.jsonPath(c.Pathspec.String_)
	} else {
		e.Path, err = literal(types.Of(types.OIDJSONPath), string(types.AppendJSONString([]byte("$."), c.Name)), 0)
	}
	if err != nil {
		return nil, err
	}
	return t.finishJSONFunc(e, f)
}

// jsonContainer reports whether values of a type are made of JSON containers.
func jsonContainer(t types.Type) bool {
	t = t.Storage()
	return isJSONType(t) || t.OID == types.OIDRecord || t.OID.IsArray() || t.OID.IsComposite()
}
