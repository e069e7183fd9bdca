package planner

import (
	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/types"
)

func init() { expr.BindDomainCheck = bindDomainCheck }

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
