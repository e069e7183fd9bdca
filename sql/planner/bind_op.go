package planner

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// aExpr binds the operators and what looks like one.
func (x exprBinder) aExpr(e *pg.A_Expr) (expr.Expr, error) {
	pos := x.pos(e.Location)
	op := e.Name[len(e.Name)-1].GetString_().GetSval()
	if len(e.Name) > 1 {
		if err := x.operatorSchema(e, op, pos); err != nil {
			return nil, err
		}
	}
	switch e.Kind {
	case pg.A_Expr_Kind_AEXPR_IN:
		return x.in(e, op, pos)
	case pg.A_Expr_Kind_AEXPR_BETWEEN, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN,
		pg.A_Expr_Kind_AEXPR_BETWEEN_SYM, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM:
		return x.between(e, pos)
	}
	if l := e.Rexpr.GetSubLink(); l != nil && e.Kind == pg.A_Expr_Kind_AEXPR_OP && e.Lexpr.GetRowExpr() != nil &&
		l.SubLinkType == pg.SubLinkType_EXPR_SUBLINK {
		// (a, b) op (SELECT …)
		return x.subLink(&pg.SubLink{
			SubLinkType: pg.SubLinkType_ROWCOMPARE_SUBLINK, Testexpr: e.Lexpr, OperName: e.Name,
			Subselect: l.Subselect, Location: l.Location,
		})
	}
	var left expr.Expr
	var err error
	if e.Lexpr != nil {
		if left, err = x.operand(e.Lexpr); err != nil {
			return nil, err
		}
	}
	right, err := x.operand(e.Rexpr)
	if err != nil {
		return nil, err
	}
	fields := isRow(left) && isRow(right) && e.Lexpr.GetRowExpr() != nil && e.Rexpr.GetRowExpr() != nil
	if !fields {
		left, right = asValue(left), asValue(right)
	}
	switch e.Kind {
	case pg.A_Expr_Kind_AEXPR_OP_ANY, pg.A_Expr_Kind_AEXPR_OP_ALL:
		return expr.NewArrayOp(op, left, right, e.Kind == pg.A_Expr_Kind_AEXPR_OP_ALL, pos)
	case pg.A_Expr_Kind_AEXPR_DISTINCT, pg.A_Expr_Kind_AEXPR_NOT_DISTINCT:
		return x.distinct(left, right, e.Kind == pg.A_Expr_Kind_AEXPR_NOT_DISTINCT, pos)
	case pg.A_Expr_Kind_AEXPR_NULLIF:
		return expr.NewNullIf(left, right, pos)
	}
	if !fields {
		return x.valueOperator(op, left, right, pos)
	}
	return x.operator(op, left, right, pos)
}

// operatorSchema checks the schema of OPERATOR(schema.op).
func (x exprBinder) operatorSchema(e *pg.A_Expr, op string, pos int) error {
	schema := e.Name[0].GetString_().GetSval()
	if schema == "pg_catalog" {
		return nil
	}
	if x.ctx.Catalog.Schema(schema) == nil {
		return pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", schema).At(pos)
	}
	return pgerror.New(pgerror.UndefinedFunction, "operator does not exist: %s.%s", schema, op).At(pos)
}

// operand binds an operand of a comparison. A row stays a list of fields, so
// that its literals can take the types of the fields that they are compared to.
func (x exprBinder) operand(n *pg.Node) (expr.Expr, error) {
	r := n.GetRowExpr()
	if r == nil {
		return x.expr(n)
	}
	fields, err := x.rowFields(r.Args)
	if err != nil {
		return nil, err
	}
	return &expr.Row{Fields: fields, Typ: types.Record}, nil
}

// isRow reports whether an operand is a list of fields. The whole row of a
// relation is a record, whose comparisons take NULLs for equal.
func isRow(e expr.Expr) bool {
	r, ok := e.(*expr.Row)
	return ok && r.Names == nil && r.Typ.OID == types.OIDRecord
}

// asValue makes a record of a list of fields that is not compared to another.
func asValue(e expr.Expr) expr.Expr {
	if isRow(e) {
		return expr.NewRow(e.(*expr.Row).Fields)
	}
	return e
}

// operator applies an operator; rows are compared field by field.
func (x exprBinder) operator(op string, left, right expr.Expr, pos int) (expr.Expr, error) {
	if isRow(left) && isRow(right) {
		return x.compareRows(op, left.(*expr.Row).Fields, right.(*expr.Row).Fields, pos)
	}
	return x.valueOperator(op, left, right, pos)
}

// valueOperator applies an operator to two values, which may be records.
func (x exprBinder) valueOperator(op string, left, right expr.Expr, pos int) (expr.Expr, error) {
	left, right = record(left), record(right)
	if e, ok, err := expr.NewMapOp(op, left, right, pos); ok {
		return e, err
	}
	return expr.NewOp(op, left, right, pos)
}

// record is a row constructor as the record that it makes.
func record(e expr.Expr) expr.Expr {
	if !isRow(e) {
		return e
	}
	row := *e.(*expr.Row)
	row.Names = make([]string, len(row.Fields))
	return &row
}

// distinct binds IS [NOT] DISTINCT FROM, of rows field by field.
func (x exprBinder) distinct(left, right expr.Expr, not bool, pos int) (expr.Expr, error) {
	if !isRow(left) || !isRow(right) {
		return expr.NewDistinct(left, right, not, pos)
	}
	l, r := left.(*expr.Row), right.(*expr.Row)
	if len(l.Fields) != len(r.Fields) {
		return nil, pgerror.New(pgerror.SyntaxError, "unequal number of entries in row expressions").At(pos)
	}
	parts := make([]expr.Expr, len(l.Fields))
	for i := range parts {
		var err error
		if parts[i], err = expr.NewDistinct(l.Fields[i], r.Fields[i], not, pos); err != nil {
			return nil, err
		}
	}
	if len(parts) == 0 {
		return boolConst(not), nil
	}
	return expr.NewLogic(not, parts, pos)
}

// compareRows compares lists of values: = and <> field by field, the others
// lexicographically.
func (x exprBinder) compareRows(op string, l, r []expr.Expr, pos int) (expr.Expr, error) {
	if len(l) != len(r) {
		return nil, pgerror.New(pgerror.SyntaxError, "unequal number of entries in row expressions").At(pos)
	}
	if len(l) == 1 {
		return x.valueOperator(op, l[0], r[0], pos)
	}
	if len(l) == 0 {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "cannot compare rows of zero length").At(pos)
	}
	switch op {
	case "=", "<>", "!=":
		parts := make([]expr.Expr, len(l))
		for i := range l {
			var err error
			if parts[i], err = x.valueOperator(op, l[i], r[i], pos); err != nil {
				return nil, err
			}
		}
		return expr.NewLogic(op == "=", parts, pos)
	case "<", "<=", ">", ">=":
		return x.lexicographic(op, l, r, pos)
	}
	return nil, pgerror.New(pgerror.FeatureNotSupported, "could not determine interpretation of row comparison operator %s", op).
		WithHint("Row comparison operators must be associated with btree operator families.").At(pos)
}

// lexicographic is a < x OR (a = x AND (b < y OR …)).
func (x exprBinder) lexicographic(op string, l, r []expr.Expr, pos int) (expr.Expr, error) {
	last := len(l) - 1
	for i := range last {
		// What cannot be compared is an error of the operator as written.
		if _, err := x.valueOperator(op, l[i], r[i], pos); err != nil {
			return nil, err
		}
	}
	out, err := x.valueOperator(op, l[last], r[last], pos)
	if err != nil {
		return nil, err
	}
	for i := last - 1; i >= 0; i-- {
		less, err := x.valueOperator(op[:1], l[i], r[i], pos)
		if err != nil {
			return nil, err
		}
		eq, err := x.valueOperator("=", l[i], r[i], pos)
		if err != nil {
			return nil, err
		}
		if out, err = expr.NewLogic(true, []expr.Expr{eq, out}, pos); err != nil {
			return nil, err
		}
		if out, err = expr.NewLogic(false, []expr.Expr{less, out}, pos); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// in binds `x [NOT] IN (list)`.
func (x exprBinder) in(e *pg.A_Expr, op string, pos int) (expr.Expr, error) {
	left, err := x.operand(e.Lexpr)
	if err != nil {
		return nil, err
	}
	not := op == "<>"
	items := e.Rexpr.GetList().GetItems()
	list := make([]expr.Expr, len(items))
	rows := isRow(left)
	for i, n := range items {
		if list[i], err = x.operand(n); err != nil {
			return nil, err
		}
		rows = rows && isRow(list[i])
	}
	if !rows {
		for i := range list {
			list[i] = asValue(list[i])
		}
		return expr.NewIn(asValue(left), list, not, pos)
	}
	row := left.(*expr.Row)
	parts := make([]expr.Expr, len(list))
	for i, it := range list {
		r := it.(*expr.Row)
		if parts[i], err = x.compareRows("=", row.Fields, r.Fields, pos); err != nil {
			return nil, err
		}
	}
	out := parts[0]
	if len(parts) > 1 {
		if out, err = expr.NewLogic(false, parts, pos); err != nil {
			return nil, err
		}
	}
	if not {
		return expr.NewNot(out, pos)
	}
	return out, nil
}

// between binds `x [NOT] BETWEEN [SYMMETRIC] lo AND hi`.
func (x exprBinder) between(e *pg.A_Expr, pos int) (expr.Expr, error) {
	arg, err := x.expr(e.Lexpr)
	if err != nil {
		return nil, err
	}
	ends, err := x.exprs(e.Rexpr.GetList().GetItems())
	if err != nil {
		return nil, err
	}
	not := e.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN || e.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM
	sym := e.Kind == pg.A_Expr_Kind_AEXPR_BETWEEN_SYM || e.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM
	return expr.NewBetween(arg, ends[0], ends[1], not, sym, pos)
}

// typeName resolves a type name of the tree.
func (b *binder) typeName(t *pg.TypeName) (types.Type, error) {
	names := listNames(t.Names)
	pos := b.pos(t.Location)
	name := names[len(names)-1]
	oid := types.OID(0)
	if t.PctType {
		return b.columnType(names, pos)
	}
	if o, err := b.anonymousType(t); err != nil {
		return types.Unknown, err
	} else if o != 0 {
		typ := types.Of(o)
		if len(t.ArrayBounds) > 0 {
			typ = typ.ArrayType()
		}
		return typ, nil
	}
	if len(names) == 1 || names[len(names)-2] == "pg_catalog" {
		if o, ok := types.ByName(name); ok {
			oid = o
		} else if o, ok := foreignTypes[name]; ok {
			oid = o
		}
	}
	if oid == 0 {
		oid = b.userType(names)
	}
	if oid == 0 {
		return types.Unknown, pgerror.New(pgerror.UndefinedObject, "type \"%s\" does not exist", dotted(names)).At(pos)
	}
	typ := types.Of(oid)
	if len(t.Typmods) > 0 {
		mods, err := b.typmods(t.Typmods, pos)
		if err != nil {
			return typ, err
		}
		if typ.Mod, err = types.TypmodIn(oid, mods); err != nil {
			return typ, pgerror.As(err).At(pos)
		}
		if oid != types.OIDInterval || len(mods) > 1 { // an interval's first modifier is its fields
			b.notePrecision(oid, mods[len(mods)-1], pos)
		}
	}
	if len(t.ArrayBounds) > 0 && !typ.OID.IsArray() {
		if typ.OID.Array() == 0 {
			return typ, pgerror.New(pgerror.UndefinedObject, "type \"%s[]\" does not exist", dotted(names)).At(pos)
		}
		typ = typ.ArrayType()
	}
	return typ, nil
}

// anonymousType is the type struct<…> or map(…), 0 if it is another.
func (b *binder) anonymousType(t *pg.TypeName) (types.OID, error) {
	pos := b.pos(t.Location)
	switch t.Names[0].GetString_().GetSval() {
	case parser.StructMarker:
		fields := make([]types.Field, len(t.Typmods))
		for i, n := range t.Typmods {
			c := n.GetColumnDef()
			typ, err := b.typeName(c.TypeName)
			if err != nil {
				return 0, err
			}
			if slices.ContainsFunc(fields[:i], func(f types.Field) bool { return f.Name == c.Colname }) {
				return 0, pgerror.New(pgerror.DuplicateColumn, "column \"%s\" specified more than once", c.Colname).At(pos)
			}
			fields[i] = types.Field{Name: c.Colname, Type: typ}
		}
		return types.StructOf(fields), nil
	case parser.MapMarker:
		key, err := b.typeName(t.Typmods[0].GetTypeName())
		if err != nil {
			return 0, err
		}
		value, err := b.typeName(t.Typmods[1].GetTypeName())
		if err != nil {
			return 0, err
		}
		o, err := types.MapOf(key, value)
		if err != nil {
			return 0, pgerror.As(err).At(pos)
		}
		return o, nil
	}
	return 0, nil
}

// userType finds a user-defined type along the search path, 0 if there is none.
func (b *binder) userType(names []string) types.OID {
	path, name := b.searchPath(), names[len(names)-1]
	if len(names) > 1 {
		path = names[len(names)-2 : len(names)-1]
	}
	for _, schema := range path {
		o := b.ctx.Catalog.Get(catalog.KindType, schema, name)
		switch {
		case o != nil:
			if b.inView == 0 && !slices.Contains(b.deps, o.ID) {
				b.deps = append(b.deps, o.ID)
			}
			return types.OID(o.OID)
		case strings.HasPrefix(name, "_"):
			if o := b.ctx.Catalog.Get(catalog.KindType, schema, name[1:]); o != nil {
				return o.Def.Array
			}
			if o := b.ctx.Catalog.Get(catalog.KindTable, schema, name[1:]); o != nil && o.RowType() != 0 {
				return b.rowType(o).Array()
			}
		}
		if o := b.ctx.Catalog.Get(catalog.KindTable, schema, name); o != nil && o.RowType() != 0 {
			return b.rowType(o)
		}
		// The multirange of a range has a name of its own.
		for _, o := range b.ctx.Catalog.Types(schema) {
			if o.Def.MultirangeName == name && o.Def.Multirange != 0 {
				return o.Def.Multirange
			}
		}
	}
	return 0
}

// rowType is the type of a relation's rows, which the statement then depends on.
func (b *binder) rowType(o *catalog.Object) types.OID {
	if b.inView == 0 && !slices.Contains(b.deps, o.ID) {
		b.deps = append(b.deps, o.ID)
	}
	return o.RowType()
}

// foreignTypes are the names that Materialize and RisingWave have for types of PostgreSQL.
var foreignTypes = map[string]types.OID{
	"string": types.OIDText, "double": types.OIDFloat8, "bytes": types.OIDBytea, "datetime": types.OIDTimestamp,
	"uint2": types.OIDInt4, "uint4": types.OIDInt8, "uint8": types.OIDNumeric,
}

func (b *binder) typmods(list []*pg.Node, pos int) ([]int32, error) {
	var out []int32
	for _, n := range list {
		c := n.GetAConst()
		v, ok := c.GetVal().(*pg.A_Const_Ival)
		if !ok {
			return nil, pgerror.New(pgerror.SyntaxError, "type modifiers must be simple constants or identifiers").At(pos)
		}
		out = append(out, v.Ival.Ival)
	}
	return out, nil
}

// columnType is the type of `table.column%TYPE`.
func (b *binder) columnType(names []string, pos int) (types.Type, error) {
	if len(names) < 2 {
		return types.Unknown, pgerror.New(pgerror.SyntaxError, "improper %%TYPE reference (too few dotted names): %s", dotted(names)).At(pos)
	}
	r := &pg.RangeVar{Relname: names[len(names)-2], Location: -1}
	if len(names) > 2 {
		r.Schemaname = names[len(names)-3]
	}
	o, err := b.relation(r)
	if err != nil {
		return types.Unknown, pgerror.As(err).At(pos)
	}
	for _, c := range o.Columns {
		if c.Name == names[len(names)-1] {
			return types.Of(c.Type.OID), nil
		}
	}
	return types.Unknown, pgerror.New(pgerror.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", names[len(names)-1], o.Name).At(pos)
}
