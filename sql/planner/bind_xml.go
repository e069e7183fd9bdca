package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
	"github.com/streamdb/streamdb/sql/xml"
)

// xmlNames are the names of the columns that functions of SQL/XML make.
var xmlNames = map[pg.XmlExprOp]string{
	pg.XmlExprOp_IS_XMLCONCAT: "xmlconcat", pg.XmlExprOp_IS_XMLELEMENT: "xmlelement", pg.XmlExprOp_IS_XMLFOREST: "xmlforest",
	pg.XmlExprOp_IS_XMLPARSE: "xmlparse", pg.XmlExprOp_IS_XMLPI: "xmlpi", pg.XmlExprOp_IS_XMLROOT: "xmlroot",
}

// xmlExpr binds a function of SQL/XML.
func (x exprBinder) xmlExpr(e *pg.XmlExpr) (expr.Expr, error) {
	pos := x.pos(e.Location)
	names, named, err := x.xmlNamed(e)
	if err != nil {
		return nil, err
	}
	arg := func(i int, t types.Type, what string) (expr.Expr, error) { return x.xmlArg(e.Args[i], t, what) }
	switch e.Op {
	case pg.XmlExprOp_IS_XMLELEMENT:
		names = append([]string{xml.Name(e.Name, false, false)}, names...)
		for _, n := range e.Args {
			v, err := x.xmlArg(n, types.Type{}, "")
			if err != nil {
				return nil, err
			}
			named = append(named, v)
		}
		return expr.NewXML(expr.XMLElement, names, named, pos), nil
	case pg.XmlExprOp_IS_XMLFOREST:
		return expr.NewXML(expr.XMLForest, names, named, pos), nil
	case pg.XmlExprOp_IS_XMLCONCAT:
		var args []expr.Expr
		for i := range e.Args {
			v, err := arg(i, types.XML, "XMLCONCAT")
			if err != nil {
				return nil, err
			}
			args = append(args, v)
		}
		return expr.NewXML(expr.XMLConcat, nil, args, pos), nil
	case pg.XmlExprOp_IS_XMLPI:
		var args []expr.Expr
		if len(e.Args) > 0 {
			v, err := arg(0, types.Text, "XMLPI")
			if err != nil {
				return nil, err
			}
			args = append(args, v)
		}
		return expr.NewXML(expr.XMLPI, []string{xml.Name(e.Name, false, false)}, args, pos), nil
	case pg.XmlExprOp_IS_XMLPARSE:
		v, err := arg(0, types.Text, "XMLPARSE")
		if err != nil {
			return nil, err
		}
		return expr.NewXMLParse(e.Xmloption == pg.XmlOptionType_XMLOPTION_DOCUMENT, v, pos), nil
	case pg.XmlExprOp_IS_XMLROOT:
		var args []expr.Expr
		for i, t := range []types.Type{types.XML, types.Text, types.Int4} {
			v, err := arg(i, t, "XMLROOT")
			if err != nil {
				return nil, err
			}
			args = append(args, v)
		}
		return expr.NewXML(expr.XMLRoot, nil, args, pos), nil
	case pg.XmlExprOp_IS_DOCUMENT:
		v, err := arg(0, types.XML, "IS DOCUMENT")
		if err != nil {
			return nil, err
		}
		return expr.NewIsDocument(v, pos), nil
	}
	return nil, pgerror.Unsupported("this expression").At(pos)
}

// xmlNamed binds the values that have names: attributes, and the elements of a forest.
func (x exprBinder) xmlNamed(e *pg.XmlExpr) (names []string, values []expr.Expr, err error) {
	element := e.Op == pg.XmlExprOp_IS_XMLELEMENT
	seen := map[string]bool{}
	for _, n := range e.NamedArgs {
		r := n.GetResTarget()
		at := x.pos(r.Location)
		v, err := x.xmlArg(r.Val, types.Type{}, "")
		if err != nil {
			return nil, nil, err
		}
		var name string
		switch ref := r.Val.GetColumnRef(); {
		case r.Name != "":
			name = xml.Name(r.Name, false, false)
		case ref != nil:
			name = xml.Name(x.columnName(r.Val), true, false)
		case element:
			return nil, nil, pgerror.New(pgerror.SyntaxError, "unnamed XML attribute value must be a column reference").At(at)
		default:
			return nil, nil, pgerror.New(pgerror.SyntaxError, "unnamed XML element value must be a column reference").At(at)
		}
		if element && seen[name] {
			return nil, nil, pgerror.New(pgerror.SyntaxError, "XML attribute name \"%s\" appears more than once", name).At(at)
		}
		seen[name] = true
		names, values = append(names, name), append(values, v)
	}
	return names, values, nil
}

// xmlArg binds an argument, which must be of type t if that is one.
func (x exprBinder) xmlArg(n *pg.Node, t types.Type, what string) (expr.Expr, error) {
	e, err := x.expr(n)
	if err != nil {
		return nil, err
	}
	if t.OID == 0 {
		return textIfUnknown(e)
	}
	return x.specific(e, t, what, x.pos(nodeLocation(n)))
}

// specific makes an expression one of a type that a construct needs.
func (x exprBinder) specific(e expr.Expr, t types.Type, what string, pos int) (expr.Expr, error) {
	if !expr.CanCoerce(e.Type(), t, expr.CastAssignment) {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "argument of %s must be type %s, not type %s", what, t.OID, e.Type().OID).At(pos)
	}
	return expr.Coerce(e, t, expr.CastAssignment, pos)
}

// xmlSerialize binds XMLSERIALIZE.
func (x exprBinder) xmlSerialize(s *pg.XmlSerialize) (expr.Expr, error) {
	pos := x.pos(s.Location)
	e, err := x.xmlArg(s.Expr, types.XML, "XMLSERIALIZE")
	if err != nil {
		return nil, err
	}
	t, err := x.typeName(s.TypeName)
	if err != nil {
		return nil, err
	}
	e = expr.NewXMLSerialize(s.Xmloption == pg.XmlOptionType_XMLOPTION_DOCUMENT, s.Indent, e, pos)
	if !expr.CanCoerce(types.Text, t, expr.CastImplicit) {
		return nil, pgerror.New(pgerror.CannotCoerce, "cannot cast XMLSERIALIZE result to %s", t.OID).At(pos)
	}
	return expr.Coerce(e, t, expr.CastImplicit, pos)
}
