package planner

import (
	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

func init() {
	expr.BindDomainCheck = bindDomainCheck
	expr.ParseType = parseType
}

// parseType reads the name of a built-in type.
func parseType(sql string) (types.Type, error) {
	e, err := parser.ParseExpr("NULL::" + sql)
	if err != nil {
		return types.Unknown, err
	}
	c := e.Node.GetTypeCast()
	if c == nil || !c.Arg.GetAConst().GetIsnull() {
		return types.Unknown, pgerror.New(pgerror.SyntaxError, "invalid type name \"%s\"", sql)
	}
	b := newBinder(&Context{Catalog: catalog.Empty(), SearchPath: []string{catalog.SchemaPublic}}, sql, 0)
	b.src.silent = true
	return b.typeName(c.TypeName)
}

// bindDomainCheck binds the condition of a CHECK of a domain: its VALUE is
// column 0.
func bindDomainCheck(sql string, base types.Type) (expr.Expr, error) {
	e, err := parser.ParseExpr(sql)
	if err != nil {
		return nil, err
	}
	value := &catalog.Object{Columns: []catalog.Column{{Name: "value", Type: base}}}
	ctx := &Context{Catalog: catalog.Empty(), SearchPath: []string{catalog.SchemaPublic}}
	return BindExpr(ctx, sql, &e, value, "domain constraints", types.Bool)
}
