package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// partAssign is what a column is after a part of it is set: an attribute of a
// composite value, an element of an array, and parts of those.
type partAssign struct {
	exprBinder
	column *catalog.Column
	val    *pg.Node
	pos    int // of the column
}

// assignedPart binds `SET column.attribute = …` and `SET column[i] = …`; base is
// the column up to now.
func (x exprBinder) assignedPart(c *catalog.Column, base expr.Expr, r *pg.ResTarget) (expr.Expr, error) {
	if r.Val.GetMultiAssignRef() != nil || r.Val.GetSetToDefault() != nil {
		return nil, pgerror.Unsupported("UPDATE of a part of a column by a list or DEFAULT").At(x.pos(r.Location))
	}
	p := partAssign{exprBinder: x, column: c, val: r.Val, pos: x.pos(r.Location)}
	e, err := p.set(base, c.Type, r.Indirection, "column", c.Name)
	if err != nil {
		return nil, err
	}
	return expr.Coerce(e, c.Type, expr.CastAssignment, p.pos)
}

// set is base, of the type typ, with the part that path leads to set; what and
// name are what messages call base.
func (p partAssign) set(base expr.Expr, typ types.Type, path []*pg.Node, what, name string) (expr.Expr, error) {
	if len(path) == 0 {
		return p.value(typ, what, name)
	}
	if path[0].GetAIndices() == nil {
		return p.setField(base, typ, path)
	}
	var subs []expr.Subscript
	for len(path) > 0 && path[0].GetAIndices() != nil {
		s, err := p.subscript(path[0].GetAIndices())
		if err != nil {
			return nil, err
		}
		if s.Slice {
			return nil, pgerror.Unsupported("UPDATE of a slice of an array").At(p.pos)
		}
		if !expr.CanCoerce(s.Lo.Type(), types.Int4, expr.CastAssignment) {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "array subscript must have type integer").At(expr.PosOf(s.Lo))
		}
		if s.Lo, err = expr.Coerce(s.Lo, types.Int4, expr.CastAssignment, p.pos); err != nil {
			return nil, err
		}
		subs, path = append(subs, s), path[1:]
	}
	store := typ.Storage()
	if store.OID.Elem() == 0 {
		if store.OID == types.OIDJSONB {
			return nil, pgerror.Unsupported("UPDATE of a part of a jsonb value").WithHint("Use jsonb_set.").At(p.pos)
		}
		return nil, pgerror.New(pgerror.DatatypeMismatch, "cannot subscript type %s because it does not support subscripting", types.Of(typ.OID)).At(p.pos)
	}
	elem, err := expr.NewSubscript(base, subs, p.pos)
	if err != nil {
		return nil, err
	}
	elemType := types.Type{OID: store.OID.Elem(), Mod: store.Mod}
	v, err := p.set(p.stored(elem), elemType, path, "subscripted assignment to", name)
	if err != nil {
		return nil, err
	}
	at := make([]expr.Expr, len(subs))
	for i, s := range subs {
		at[i] = s.Lo
	}
	return expr.Coerce(expr.NewArrayAssign(base, v, at, p.pos), typ, expr.CastAssignment, p.pos)
}

// setField sets an attribute of a composite value.
func (p partAssign) setField(base expr.Expr, typ types.Type, path []*pg.Node) (expr.Expr, error) {
	name := path[0].GetString_().GetSval()
	store := typ.Storage()
	fields := store.OID.Fields()
	if fields == nil {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "cannot assign to field \"%s\" of column \"%s\" because its type %s is not a composite type",
			name, p.column.Name, types.Of(typ.OID)).At(p.pos)
	}
	k := slices.IndexFunc(fields, func(f types.Field) bool { return f.Name == name })
	if k < 0 {
		return nil, pgerror.New(pgerror.UndefinedColumn, "cannot assign to field \"%s\" of column \"%s\" because there is no such column in data type %s",
			name, p.column.Name, types.Of(typ.OID)).At(p.pos)
	}
	row := &expr.Row{Typ: types.Of(store.OID), Names: make([]string, len(fields))}
	for i, f := range fields {
		e := expr.NewField(base, i, 0)
		if i == k {
			var err error
			if e, err = p.set(e, f.Type, path[1:], "subfield", f.Name); err != nil {
				return nil, err
			}
		}
		row.Names[i], row.Fields = f.Name, append(row.Fields, e)
	}
	return expr.Coerce(row, typ, expr.CastAssignment, p.pos)
}

// value is the value that is assigned.
func (p partAssign) value(typ types.Type, what, name string) (expr.Expr, error) {
	e, err := p.expr(p.val)
	if err != nil {
		return nil, err
	}
	if !expr.CanCoerce(e.Type(), typ, expr.CastAssignment) {
		is := "is of type"
		if what != "subfield" {
			is = "requires type"
		}
		return nil, pgerror.New(pgerror.DatatypeMismatch, "%s \"%s\" %s %s but expression is of type %s", what, name, is,
			types.Of(typ.OID), types.Of(p.declaredType(e).OID)).WithHint("You will need to rewrite or cast the expression.").At(p.pos)
	}
	return expr.Coerce(e, typ, expr.CastAssignment, p.exprBinder.pos(nodeLocation(p.val)))
}
