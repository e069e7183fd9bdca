package planner

import (
	"slices"
	"strconv"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// A record knows its fields, but the type record does not. While a statement is
// bound, the modifier of the type of a column of records says which fields they
// have: it is the number of a shape. No column that leaves the planner has it.

// shapes are the shapes of records that occur in a statement.
type shapes [][]types.Field

// of gives a shape its number.
func (s *shapes) of(fields []types.Field) int32 {
	for i, have := range *s {
		if slices.Equal(have, fields) {
			return int32(i)
		}
	}
	*s = append(*s, fields)
	return int32(len(*s) - 1)
}

// withShape is an expression with the shape of its records in its type.
func (b *binder) withShape(e expr.Expr) expr.Expr {
	typ := e.Type()
	if typ.OID != types.OIDRecord && typ.OID != types.OIDRecordArray || typ.Mod >= 0 {
		return e
	}
	switch e := e.(type) {
	case *expr.Row:
		c := *e
		c.Typ.Mod = b.shapes.of(b.rowShape(e))
		return &c
	case *expr.ArrayCtor:
		c := *e
		c.Typ.Mod = b.oneShape(e.Elems)
		return &c
	case *expr.Coalesce:
		c := *e
		c.Typ.Mod = b.oneShape(e.Args)
		return &c
	case *expr.Case:
		c := *e
		var branches []expr.Expr
		for _, w := range e.Whens {
			branches = append(branches, w.Then)
		}
		if e.Else != nil {
			branches = append(branches, e.Else)
		}
		c.Typ.Mod = b.oneShape(branches)
		return &c
	}
	return e
}

// shaped is the type of an expression, with the shape of its records.
func (b *binder) shaped(e expr.Expr) types.Type { return b.withShape(e).Type() }

// sameShape reports whether two types are of records whose fields have the same types.
func (b *binder) sameShape(x, y types.Type) bool {
	if plainRecord(x) != plainRecord(y) || x.Mod < 0 || y.Mod < 0 || x.OID != types.OIDRecord && x.OID != types.OIDRecordArray {
		return false
	}
	return slices.EqualFunc(b.shapes[x.Mod], b.shapes[y.Mod], func(f, g types.Field) bool { return f.Type.OID == g.Type.OID })
}

// oneShape is the shape of the first of the records among values, -1 if others
// have fields of other types.
func (b *binder) oneShape(values []expr.Expr) int32 {
	var one types.Type
	for _, v := range values {
		if expr.IsNullConst(v) {
			continue
		}
		typ := b.shaped(v)
		if one.OID == 0 {
			one = typ
		} else if one != typ && !b.sameShape(one, typ) {
			return -1
		}
	}
	if one.OID == 0 {
		return -1
	}
	return one.Mod
}

// shapedResult is the type of the result of an aggregate or window function: where
// it is of records, or an array of them, they are those of the first argument; an
// array of values of a domain is one of the domain.
func (b *binder) shapedResult(typ types.Type, args []expr.Expr) types.Type {
	if d := b.commonDomain(args[:min(len(args), 1)]); d.Array() != 0 && typ.OID == args[0].Type().OID.Array() {
		return types.Of(d.Array())
	}
	if len(args) == 0 || plainRecord(typ) != typ || typ.OID != types.OIDRecord && typ.OID != types.OIDRecordArray {
		return typ
	}
	if arg := b.shaped(args[0]); arg.OID == types.OIDRecord || arg.OID == types.OIDRecordArray {
		typ.Mod = arg.Mod
	}
	return typ
}

// rowShape are the fields of a row: those without names are f1, f2, ….
func (b *binder) rowShape(row *expr.Row) []types.Field {
	fields := make([]types.Field, len(row.Fields))
	for i, f := range row.Fields {
		fields[i] = types.Field{Name: "f" + strconv.Itoa(i+1), Type: b.shaped(f)}
		if d := b.domains[f]; d != 0 {
			fields[i].Type = types.Of(d)
		}
		if row.Names != nil {
			fields[i].Name = row.Names[i]
		}
	}
	return fields
}

// shapeOf are the fields of a value, nil if it has none or they are not known.
func (b *binder) shapeOf(e expr.Expr) []types.Field {
	typ := e.Type()
	if fields := typ.OID.Fields(); fields != nil {
		return fields
	}
	if typ.OID != types.OIDRecord {
		return nil
	}
	if row, ok := e.(*expr.Row); ok {
		return b.rowShape(row)
	}
	if mod := b.shaped(e).Mod; mod >= 0 && int(mod) < len(b.shapes) {
		return b.shapes[mod]
	}
	return nil
}

// field is field i of a value whose fields are known.
func (b *binder) field(e expr.Expr, fields []types.Field, i, pos int) expr.Expr {
	f := expr.NewRecordField(e, i, fields[i].Type, pos)
	if e.Type().OID.IsComposite() {
		f = expr.NewField(e, i, pos)
	}
	return b.declare(f, fields[i].Type)
}

// fieldOf is a field of a row value.
func (b *binder) fieldOf(e expr.Expr, name string, pos int) (expr.Expr, error) {
	e = b.outerRow(e)
	fields := b.shapeOf(e)
	if i := slices.IndexFunc(fields, func(f types.Field) bool { return f.Name == name }); i >= 0 {
		return b.field(e, fields, i, pos), nil
	}
	switch typ := e.Type(); {
	case typ.OID == types.OIDRecord:
		return nil, pgerror.New(pgerror.UndefinedColumn, "could not identify column \"%s\" in record data type", name).At(pos)
	case fields != nil:
		return nil, pgerror.New(pgerror.UndefinedColumn, "column \"%s\" not found in data type %s", name, typ).At(pos)
	default:
		return nil, pgerror.New(pgerror.WrongObjectType, "column notation .%s applied to type %s, which is not a composite type", name, typ).At(pos)
	}
}

// plainRecords gives the columns that leave the planner their types without shapes.
func plainRecords(cols []plan.Column) []plan.Column {
	for i, c := range cols {
		if plain := plainRecord(c.Type); plain != c.Type {
			cols = slices.Clone(cols)
			for ; i < len(cols); i++ {
				cols[i].Type = plainRecord(cols[i].Type)
			}
			break
		}
	}
	return cols
}

func plainRecord(t types.Type) types.Type {
	if t.OID == types.OIDRecord || t.OID == types.OIDRecordArray {
		t.Mod = -1
	}
	return t
}

// arrayType is the type of arrays made of a query's column: without its
// modifier, but with the shape of records.
func arrayType(t types.Type) types.Type {
	if t.OID == types.OIDRecord {
		return t.ArrayType()
	}
	return types.Of(t.OID.Array())
}
