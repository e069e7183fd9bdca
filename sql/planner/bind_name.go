package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/parser"
)

// columnName is the name of an output column without an alias, as PostgreSQL
// chooses it (FigureColname).
func (b *binder) columnName(n *pg.Node) string {
	if name, strength := b.figureName(n); strength > 0 {
		return name
	}
	return "?column?"
}

// IndexColumnName is the name of the column that an expression is in an index.
func IndexColumnName(ctx *Context, text string, e *parser.Expr) string {
	if name, strength := newBinder(ctx, text, e.Base).figureName(e.Node); strength > 0 {
		return name
	}
	return "expr"
}

// figureName gives a name and how good it is: 0 none, 1 weak (a cast's type,
// "case"), 2 strong.
func (b *binder) figureName(node *pg.Node) (string, int) {
	switch n := node.GetNode().(type) {
	case *pg.Node_ColumnRef:
		for i := len(n.ColumnRef.Fields) - 1; i >= 0; i-- {
			if s := n.ColumnRef.Fields[i].GetString_(); s != nil {
				return s.Sval, 2
			}
		}
	case *pg.Node_AIndirection:
		for i := len(n.AIndirection.Indirection) - 1; i >= 0; i-- {
			if s := n.AIndirection.Indirection[i].GetString_(); s != nil {
				return s.Sval, 2
			}
		}
		return b.figureName(n.AIndirection.Arg)
	case *pg.Node_FuncCall:
		return n.FuncCall.Funcname[len(n.FuncCall.Funcname)-1].GetString_().GetSval(), 2
	case *pg.Node_AExpr:
		if n.AExpr.Kind == pg.A_Expr_Kind_AEXPR_NULLIF {
			return "nullif", 2
		}
	case *pg.Node_TypeCast:
		name, strength := b.figureName(n.TypeCast.Arg)
		if strength <= 1 && n.TypeCast.TypeName != nil {
			names := n.TypeCast.TypeName.Names
			return names[len(names)-1].GetString_().GetSval(), 1
		}
		return name, strength
	case *pg.Node_CollateClause:
		return b.figureName(n.CollateClause.Arg)
	case *pg.Node_GroupingFunc:
		return "grouping", 2
	case *pg.Node_SubLink:
		return b.subLinkName(n.SubLink)
	case *pg.Node_CaseExpr:
		if name, strength := b.figureName(n.CaseExpr.Defresult); strength > 1 {
			return name, strength
		}
		return "case", 1
	case *pg.Node_AArrayExpr:
		return "array", 2
	case *pg.Node_RowExpr:
		return "row", 2
	case *pg.Node_CoalesceExpr:
		return "coalesce", 2
	case *pg.Node_MinMaxExpr:
		if n.MinMaxExpr.Op == pg.MinMaxOp_IS_GREATEST {
			return "greatest", 2
		}
		return "least", 2
	case *pg.Node_SqlvalueFunction:
		return valueFunctionName(n.SqlvalueFunction.Op), 2
	case *pg.Node_XmlExpr:
		if name := xmlNames[n.XmlExpr.Op]; name != "" {
			return name, 2
		}
	case *pg.Node_XmlSerialize:
		return "xmlserialize", 2
	case *pg.Node_MergeSupportFunc:
		return "merge_action", 2
	default:
		if name, _ := jsonName(node); name != "" {
			return name, 2
		}
	}
	return "", 0
}

func (b *binder) subLinkName(s *pg.SubLink) (string, int) {
	switch s.SubLinkType {
	case pg.SubLinkType_EXISTS_SUBLINK:
		return "exists", 2
	case pg.SubLinkType_ARRAY_SUBLINK:
		return "array", 2
	case pg.SubLinkType_EXPR_SUBLINK:
		return b.linkNames[s], 2
	}
	return "", 0
}

func valueFunctionName(op pg.SQLValueFunctionOp) string {
	switch op {
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_DATE:
		return "current_date"
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIME, pg.SQLValueFunctionOp_SVFOP_CURRENT_TIME_N:
		return "current_time"
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP, pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N:
		return "current_timestamp"
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIME, pg.SQLValueFunctionOp_SVFOP_LOCALTIME_N:
		return "localtime"
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP, pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N:
		return "localtimestamp"
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_ROLE:
		return "current_role"
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_USER:
		return "current_user"
	case pg.SQLValueFunctionOp_SVFOP_USER:
		return "user"
	case pg.SQLValueFunctionOp_SVFOP_SESSION_USER:
		return "session_user"
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_CATALOG:
		return "current_catalog"
	}
	return "current_schema"
}

// nodeLocation is the leftmost location of an expression, -1 if it has none
// (exprLocation).
func nodeLocation(node *pg.Node) int32 {
	switch n := node.GetNode().(type) {
	case *pg.Node_ColumnRef:
		return n.ColumnRef.Location
	case *pg.Node_AConst:
		return n.AConst.Location
	case *pg.Node_ParamRef:
		return n.ParamRef.Location
	case *pg.Node_AExpr:
		if n.AExpr.Lexpr == nil {
			return n.AExpr.Location
		}
		return leftmost(n.AExpr.Location, n.AExpr.Lexpr)
	case *pg.Node_BoolExpr:
		return leftmost(n.BoolExpr.Location, n.BoolExpr.Args...)
	case *pg.Node_FuncCall:
		return leftmost(n.FuncCall.Location, n.FuncCall.Args...)
	case *pg.Node_TypeCast:
		// a literal becomes a constant of the type, wherever the type stands
		if c := n.TypeCast.Arg.GetAConst(); c != nil && (c.GetSval() != nil || c.Isnull) && len(n.TypeCast.TypeName.GetTypmods()) == 0 {
			return c.Location
		}
		return least(leftmost(n.TypeCast.Location, n.TypeCast.Arg), n.TypeCast.TypeName.GetLocation())
	case *pg.Node_CaseExpr:
		return n.CaseExpr.Location
	case *pg.Node_SubLink:
		return leftmost(n.SubLink.Location, n.SubLink.Testexpr)
	case *pg.Node_NullTest:
		return leftmost(n.NullTest.Location, n.NullTest.Arg)
	case *pg.Node_BooleanTest:
		return leftmost(n.BooleanTest.Location, n.BooleanTest.Arg)
	case *pg.Node_CoalesceExpr:
		return n.CoalesceExpr.Location
	case *pg.Node_MinMaxExpr:
		return n.MinMaxExpr.Location
	case *pg.Node_AArrayExpr:
		return n.AArrayExpr.Location
	case *pg.Node_RowExpr:
		return n.RowExpr.Location
	case *pg.Node_AIndirection:
		return nodeLocation(n.AIndirection.Arg)
	case *pg.Node_CollateClause:
		return leftmost(n.CollateClause.Location, n.CollateClause.Arg)
	case *pg.Node_SqlvalueFunction:
		return n.SqlvalueFunction.Location
	case *pg.Node_GroupingFunc:
		return n.GroupingFunc.Location
	case *pg.Node_SetToDefault:
		return n.SetToDefault.Location
	case *pg.Node_NamedArgExpr:
		return n.NamedArgExpr.Location
	case *pg.Node_ResTarget:
		return n.ResTarget.Location
	case *pg.Node_SortBy:
		return nodeLocation(n.SortBy.Node)
	case *pg.Node_List:
		if len(n.List.Items) > 0 {
			return nodeLocation(n.List.Items[0])
		}
	case *pg.Node_RangeVar:
		return n.RangeVar.Location
	case *pg.Node_GroupingSet:
		return n.GroupingSet.Location
	case *pg.Node_XmlExpr:
		return leftmost(n.XmlExpr.Location, n.XmlExpr.Args...)
	case *pg.Node_XmlSerialize:
		return n.XmlSerialize.Location
	}
	_, at := jsonName(node)
	return at
}

func leftmost(loc int32, nodes ...*pg.Node) int32 {
	for _, n := range nodes {
		if n != nil {
			loc = least(loc, nodeLocation(n))
		}
	}
	return loc
}

// least is the smaller of two locations, of which -1 is none.
func least(a, b int32) int32 {
	switch {
	case a < 0:
		return b
	case b < 0:
		return a
	}
	return min(a, b)
}
