package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// xmlTable binds an XMLTABLE that stands alone, or is joined laterally.
func (f fromBinder) xmlTable(rf *pg.RangeTableFunc, env *scope) (*fromItem, error) {
	s := newScope(env)
	s.kind = inFunction
	rel, e, err := exprBinder{binder: f.binder, scope: s, ctes: f.ctes}.xmlTableRel(unit(), rf)
	if err != nil {
		return nil, err
	}
	return &fromItem{rel: rel, entries: []*entry{e}}, nil
}

// xmlTableRel adds the columns of an XMLTABLE to a relation.
//
//	XMLTABLE('/r/x' PASSING d COLUMNS a int DEFAULT 1)  →  Project [coalesce(a, 1)] of FlatMap xmltable(d, '/r/x')
func (x exprBinder) xmlTableRel(in plan.Rel, rf *pg.RangeTableFunc) (plan.Rel, *entry, error) {
	doc, err := x.xmlArg(rf.Docexpr, types.XML, "XMLTABLE")
	if err != nil {
		return nil, nil, err
	}
	row, err := x.xmlArg(rf.Rowexpr, types.Text, "XMLTABLE")
	if err != nil {
		return nil, nil, err
	}
	p := &expr.XMLTablePlan{}
	spaces, err := x.xmlSpaces(rf, p)
	if err != nil {
		return nil, nil, err
	}
	base := plan.Arity(in)
	paths, exprs, cols, err := x.xmlColumns(rf, p, base)
	if err != nil {
		return nil, nil, err
	}
	args := append(append([]expr.Expr{doc, p.Const(), row}, spaces...), paths...)
	rows := append(in.Columns()[:base:base], cols...)
	rel := &plan.FlatMap{Input: in, Fn: expr.XMLTable, Args: args, Cols: rows}
	out := firstColumns(rel, base).(*plan.Project)
	out.Exprs, out.Cols = append(out.Exprs, exprs...), append(out.Cols, cols...)
	e := newEntry("xmltable", cols)
	if a := rf.Alias; a != nil && len(a.Colnames) > len(cols) {
		return nil, nil, pgerror.New(pgerror.InvalidColumnReference, "%s function has %d columns available but %d columns specified", "XMLTABLE", len(cols), len(a.Colnames))
	}
	shift([]*entry{e}, base)
	return out, e, e.rename(rf.Alias, 0)
}

// xmlSpaces binds XMLNAMESPACES.
func (x exprBinder) xmlSpaces(rf *pg.RangeTableFunc, p *expr.XMLTablePlan) ([]expr.Expr, error) {
	var uris []expr.Expr
	for _, n := range rf.Namespaces {
		r := n.GetResTarget()
		uri, err := x.xmlArg(r.Val, types.Text, "XMLTABLE")
		if err != nil {
			return nil, err
		}
		var prefix *string
		if r.Name != "" {
			prefix = &r.Name
		}
		for _, other := range p.Spaces {
			switch {
			case prefix == nil && other == nil:
				return nil, pgerror.New(pgerror.SyntaxError, "only one default namespace is allowed").At(x.pos(r.Location))
			case prefix != nil && other != nil && *prefix == *other:
				return nil, pgerror.New(pgerror.SyntaxError, "namespace name \"%s\" is not unique", *prefix).At(x.pos(r.Location))
			}
		}
		p.Spaces, uris = append(p.Spaces, prefix), append(uris, uri)
	}
	return uris, nil
}

// xmlColumns binds the columns: their paths, and their values over what the
// function gives.
func (x exprBinder) xmlColumns(rf *pg.RangeTableFunc, p *expr.XMLTablePlan, base int) (paths, exprs []expr.Expr, cols []plan.Column, err error) {
	ordinal := false
	for i, n := range rf.Columns {
		c := n.GetRangeTableFuncCol()
		at := x.pos(c.Location)
		t := types.Int4
		if c.ForOrdinality {
			if ordinal {
				return nil, nil, nil, pgerror.New(pgerror.SyntaxError, "only one FOR ORDINALITY column is allowed").At(at)
			}
			ordinal = true
		} else {
			if c.TypeName.Setof {
				return nil, nil, nil, pgerror.New(pgerror.InvalidTableDefinition, "column \"%s\" cannot be declared SETOF", c.Colname).At(at)
			}
			if t, err = x.typeName(c.TypeName); err != nil {
				return nil, nil, nil, err
			}
		}
		if c.Colexpr != nil {
			path, err := x.xmlArg(c.Colexpr, types.Text, "XMLTABLE")
			if err != nil {
				return nil, nil, nil, err
			}
			paths = append(paths, path)
		}
		var e expr.Expr = &expr.Column{Index: base + i, Typ: t, Name: c.Colname}
		if c.Coldefexpr != nil {
			d, err := x.xmlArg(c.Coldefexpr, t, "XMLTABLE")
			if err != nil {
				return nil, nil, nil, err
			}
			if e, err = expr.NewCoalesce([]expr.Expr{e, d}, at); err != nil {
				return nil, nil, nil, err
			}
		}
		for _, other := range cols {
			if other.Name == c.Colname {
				return nil, nil, nil, pgerror.New(pgerror.SyntaxError, "column name \"%s\" is not unique", c.Colname).At(at)
			}
		}
		if c.IsNotNull {
			e = expr.NewNotNull(e, c.Colname)
		}
		p.Columns = append(p.Columns, expr.XMLTableColumn{Name: c.Colname, Type: t, Ordinal: c.ForOrdinality, Path: c.Colexpr != nil})
		exprs, cols = append(exprs, e), append(cols, plan.Column{Name: c.Colname, Type: t})
	}
	return paths, exprs, cols, nil
}
