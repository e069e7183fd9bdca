package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// explicitCollation is a COLLATE clause and where it stands.
type explicitCollation struct {
	name string
	pos  int
}

// checkCollations refuses two collations for one operation. All that are accepted are
// the order of bytes, but PostgreSQL holds them to be different.
func (b *binder) checkCollations(n *pg.Node, e expr.Expr) error {
	var args []*pg.Node
	switch n := n.GetNode().(type) {
	case *pg.Node_AExpr:
		args = append(args, n.AExpr.Lexpr)
		if l := n.AExpr.Rexpr.GetList(); l != nil {
			args = append(args, l.Items...)
		} else {
			args = append(args, n.AExpr.Rexpr)
		}
	case *pg.Node_FuncCall:
		args = n.FuncCall.Args
	case *pg.Node_CoalesceExpr:
		args = n.CoalesceExpr.Args
	case *pg.Node_MinMaxExpr:
		args = n.MinMaxExpr.Args
	case *pg.Node_AArrayExpr:
		args = n.AArrayExpr.Elements
	case *pg.Node_TypeCast:
		args = append(args, n.TypeCast.Arg)
	case *pg.Node_CaseExpr:
		for _, w := range n.CaseExpr.Args {
			args = append(args, w.GetCaseWhen().GetResult())
		}
		args = append(args, n.CaseExpr.Defresult)
	}
	var found *explicitCollation
	for _, a := range args {
		switch c, ok := b.collated[a]; {
		case !ok:
		case found == nil:
			found = &c
		case found.name != c.name:
			return pgerror.New(pgerror.CollationMismatch, "collation mismatch between explicit collations \"%s\" and \"%s\"", found.name, c.name).At(c.pos)
		}
	}
	if found != nil && collatable(e.Type()) {
		b.collated[n] = *found
	}
	return nil
}

// collatable reports whether values of a type are compared by a collation.
func collatable(t types.Type) bool {
	i := types.Lookup(t.Storage().OID)
	return t.OID == types.OIDUnknown || i != nil && i.Collation != 0
}

// collate accepts the collations that are the order of bytes.
func (x exprBinder) collate(c *pg.CollateClause) (expr.Expr, error) {
	e, err := x.expr(c.Arg)
	if err != nil {
		return nil, err
	}
	pos := x.pos(c.Location)
	names := listNames(c.Collname)
	if err := checkCollation(names, pos); err != nil {
		return nil, err
	}
	switch cat := e.Type().OID.Category(); {
	case cat == 'S', e.Type().OID.IsArray(), e.Type().OID == types.OIDUnknown:
	default:
		return nil, pgerror.New(pgerror.DatatypeMismatch, "collations are not supported by type %s", e.Type()).At(pos)
	}
	return e, nil
}

// collateNode is collate of the clause in n, and notes it.
func (x exprBinder) collateNode(n *pg.Node) (expr.Expr, error) {
	e, err := x.collate(n.GetCollateClause())
	if err == nil {
		if x.collated == nil {
			x.collated = map[*pg.Node]explicitCollation{}
		}
		names := listNames(n.GetCollateClause().Collname)
		x.collated[n] = explicitCollation{names[len(names)-1], x.pos(n.GetCollateClause().Location)}
	}
	return e, err
}

func checkCollation(names []string, pos int) error {
	switch names[len(names)-1] {
	case "C", "POSIX", "default", "ucs_basic":
		return nil
	}
	if n := names[len(names)-1]; len(n) > 2 && (n[2] == '_' || n[2] == '-') {
		return pgerror.Unsupported("collation \"" + n + "\"").At(pos)
	}
	return pgerror.New(pgerror.UndefinedObject, "collation \"%s\" for encoding \"UTF8\" does not exist", dotted(names)).At(pos)
}
