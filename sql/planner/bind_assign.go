package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// partAssign is an assignment to a part of a column: `c[1][2] = …`, `c.f = …`.
type partAssign struct {
	exprBinder
	column string
	pos    int // of the target
}

// path binds what follows the column's name: given the old value of what steps start
// from, put makes the new one of the value assigned, of type part.
func (p partAssign) path(old expr.Expr, steps []*pg.Node) (part types.Type, put func(v expr.Expr) (expr.Expr, error), err error) {
	if len(steps) == 0 {
		return old.Type(), func(v expr.Expr) (expr.Expr, error) { return v, nil }, nil
	}
	if typ := old.Type(); typ.OID.IsDomain() {
		part, inner, err := p.path(p.stored(old), steps)
		return part, func(v expr.Expr) (expr.Expr, error) {
			if v, err = inner(v); err != nil {
				return nil, err
			}
			return expr.Coerce(v, typ, expr.CastAssignment, p.pos)
		}, err
	}
	if steps[0].GetAIndices() == nil {
		return p.field(old, steps)
	}
	var subs []expr.Subscript
	for len(subs) < len(steps) && steps[len(subs)].GetAIndices() != nil {
		s, err := p.subscript(steps[len(subs)].GetAIndices())
		if err != nil {
			return part, nil, err
		}
		subs = append(subs, s)
	}
	access, err := expr.NewSubscript(old, subs, p.pos)
	if err != nil {
		return part, nil, err
	}
	if rest := steps[len(subs):]; len(rest) > 0 {
		inner, put, err := p.path(access, rest)
		if err != nil {
			return part, nil, err
		}
		return inner, func(v expr.Expr) (expr.Expr, error) {
			if v, err = put(v); err != nil {
				return nil, err
			}
			return expr.NewSubscriptAssign(old, access, subs, v, p.pos)
		}, nil
	}
	return expr.PartType(old.Type(), subs), func(v expr.Expr) (expr.Expr, error) {
		return expr.NewSubscriptAssign(old, access, subs, v, p.pos)
	}, nil
}

// field is path where the first step is a field of a row.
func (p partAssign) field(old expr.Expr, steps []*pg.Node) (part types.Type, put func(v expr.Expr) (expr.Expr, error), err error) {
	name, typ := steps[0].GetString_().GetSval(), old.Type()
	fields := typ.OID.Fields()
	if fields == nil {
		return part, nil, pgerror.New(pgerror.DatatypeMismatch,
			"cannot assign to field \"%s\" of column \"%s\" because its type %s is not a composite type", name, p.column, types.Of(typ.OID)).At(p.pos)
	}
	at := slices.IndexFunc(fields, func(f types.Field) bool { return f.Name == name })
	if at < 0 {
		return part, nil, pgerror.New(pgerror.UndefinedColumn,
			"cannot assign to field \"%s\" of column \"%s\" because there is no such column in data type %s", name, p.column, types.Of(typ.OID)).At(p.pos)
	}
	row := make([]expr.Expr, len(fields))
	names := make([]string, len(fields))
	for i, f := range fields {
		row[i], names[i] = p.binder.field(old, fields, i, p.pos), f.Name
	}
	part, inner, err := partAssign{p.exprBinder, name, p.pos}.path(row[at], steps[1:])
	if err != nil {
		return part, nil, err
	}
	if len(steps) == 1 {
		part = fields[at].Type
	}
	return part, func(v expr.Expr) (expr.Expr, error) {
		if row[at], err = inner(v); err != nil {
			return nil, err
		}
		return expr.Coerce(expr.NewNamedRow(row, names), typ, expr.CastExplicit, p.pos)
	}, nil
}

// assignPart binds `target = val` where the target is a part of column c, whose value
// so far is old.
func (x exprBinder) assignPart(c *catalog.Column, old expr.Expr, target *pg.ResTarget) (expr.Expr, error) {
	p := partAssign{x, c.Name, x.pos(target.Location)}
	steps := target.Indirection
	last := steps[len(steps)-1]
	if target.Val.GetSetToDefault() != nil {
		return nil, noDefaultPart(steps, p.pos)
	}
	part, put, err := p.path(old, steps)
	if err != nil {
		return nil, err
	}
	var v expr.Expr
	pos := x.pos(nodeLocation(target.Val))
	if m := target.Val.GetMultiAssignRef(); m != nil {
		v, err = x.multiAssign(&catalog.Column{Name: c.Name, Type: part}, m)
	} else {
		v, err = x.expr(target.Val)
	}
	if err != nil {
		return nil, err
	}
	if v, err = p.assignable(v, part, last, pos); err != nil {
		return nil, err
	}
	if v, err = put(v); err != nil {
		return nil, err
	}
	return assign(c, v, p.pos) // a domain is checked
}

// assignable is the value as one of the part's type.
func (p partAssign) assignable(v expr.Expr, part types.Type, last *pg.Node, pos int) (expr.Expr, error) {
	if expr.CanCoerce(v.Type(), part, expr.CastAssignment) {
		return expr.Coerce(v, part, expr.CastAssignment, pos)
	}
	to, from := types.Of(part.OID), types.Of(v.Type().OID)
	err := pgerror.New(pgerror.DatatypeMismatch, "subscripted assignment to \"%s\" requires type %s but expression is of type %s", p.column, to, from)
	if f := last.GetString_(); f != nil {
		err = pgerror.New(pgerror.DatatypeMismatch, "subfield \"%s\" is of type %s but expression is of type %s", f.Sval, to, from)
	}
	return nil, err.WithHint("You will need to rewrite or cast the expression.").At(p.pos)
}

// noDefaultPart is the error of DEFAULT for a part of a column.
func noDefaultPart(steps []*pg.Node, pos int) error {
	what := "an array element"
	if steps[len(steps)-1].GetAIndices() == nil {
		what = "a subfield"
	}
	return pgerror.New(pgerror.FeatureNotSupported, "cannot set %s to DEFAULT", what).At(pos)
}

// steps are those to the part of a column that value i of an INSERT is for.
func (in *inserter) steps(i int) []*pg.Node {
	if i >= len(in.stmt.Cols) {
		return nil
	}
	return in.stmt.Cols[i].GetResTarget().GetIndirection()
}

// part binds the target of value i, a part of its column, whose value so far is old.
func (in *inserter) part(i int, old expr.Expr) (partAssign, types.Type, func(expr.Expr) (expr.Expr, error), error) {
	sc := newScope(nil)
	sc.kind = inValues
	p := partAssign{exprBinder{binder: in.binder, scope: sc, ctes: in.ctes}, in.t.object.Columns[in.into[i]].Name, in.pos(in.stmt.Cols[i].GetResTarget().Location)}
	typ, put, err := p.path(old, in.steps(i))
	return p, typ, put, err
}

// slots are what the first n values of an INSERT are for: columns, or parts of them.
func (in *inserter) slots(n int) ([]catalog.Column, error) {
	out := make([]catalog.Column, n)
	for i := range out {
		out[i] = in.t.object.Columns[in.into[i]]
		if len(in.steps(i)) > 0 {
			_, typ, _, err := in.part(i, nullConst(out[i].Type.Storage()))
			if err != nil {
				return nil, err
			}
			out[i].Type = typ
		}
	}
	return out, nil
}

// assign is a value as one for slot i.
func (in *inserter) assign(i int, c *catalog.Column, e expr.Expr, pos int) (expr.Expr, error) {
	steps := in.steps(i)
	if len(steps) == 0 {
		return assign(c, e, pos)
	}
	p := partAssign{column: c.Name, pos: in.pos(in.stmt.Cols[i].GetResTarget().Location)}
	return p.assignable(e, c.Type, steps[len(steps)-1], pos)
}

// give notes v as the value for slot i. Columns of which parts are given start as NULL.
func (in *inserter) give(i int, v expr.Expr) error {
	at := in.into[i]
	if len(in.steps(i)) == 0 {
		in.given[at] = v
		return nil
	}
	old := in.given[at]
	if old == nil {
		old = nullConst(in.t.object.Columns[at].Type.Storage())
	}
	p, _, put, err := in.part(i, old)
	if err != nil {
		return err
	}
	if t := v.Type(); t.OID.IsDomain() { // it is of the domain: what it is put into holds its base type
		v = expr.Relabeled(v, t.Storage())
	}
	if v, err = put(v); err != nil {
		return err
	}
	in.given[at], err = assign(&in.t.object.Columns[at], v, p.pos)
	return err
}
