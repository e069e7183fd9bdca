package coord

import (
	"slices"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// retype runs ALTER COLUMN … TYPE.
func (t *tableAlter) retype() error {
	if err := t.s.lock(t.ctx, t.old, true); err != nil {
		return err
	}
	c := &t.o.Columns[t.col]
	typ, err := planner.ResolveType(t.s.bindContext(nil), t.text, t.a.Type)
	if err != nil {
		return err
	}
	if err := notWithinItself(t.old, typ); err != nil {
		return err
	}
	views, err := t.viewsOn(t.col)
	if err != nil {
		return err
	}
	byFields := t.a.Expr == nil && expr.SameFields(c.Type, typ)
	if len(views) > 0 && !byFields {
		return usedByView(views[0], c.Name)
	}
	if gen, err := t.generatedFrom(t.col); err != nil {
		return err
	} else if len(gen) > 0 {
		return pgerror.New(pgerror.FeatureNotSupported, "cannot alter type of a column used by a generated column").
			WithDetail("Column \"%s\" is used by generated column \"%s\".", c.Name, t.old.Columns[gen[0]].Name)
	}
	if err := rowTypeUsed(t.d.cat, t.old); err != nil {
		return err
	}
	outs := plan.Refs(planColumns(t.old))
	switch {
	case t.a.Expr != nil:
		outs[t.col], err = t.s.bindAs(t.text, t.a.Expr, t.old, "transform expressions", typ, func(types.Type) error {
			return pgerror.New(pgerror.DatatypeMismatch, "result of USING clause for column \"%s\" cannot be cast automatically to type %s", c.Name, types.Of(typ.OID)).
				WithHint("You might need to add an explicit cast.")
		})
	case byFields:
		outs[t.col], err = expr.NewFieldsByName(outs[t.col], typ, t.a.Pos)
	case !expr.CanCoerce(c.Type, typ, expr.CastAssignment):
		return pgerror.New(pgerror.DatatypeMismatch, "column \"%s\" cannot be cast automatically to type %s", c.Name, types.Of(typ.OID)).
			WithHint("You might need to specify \"USING %s::%s\".", parser.QuoteIdent(c.Name), types.Of(typ.OID))
	default:
		outs[t.col], err = expr.Coerce(outs[t.col], typ, expr.CastAssignment, t.a.Pos)
	}
	if err == nil {
		err = t.retypeDefault(c, typ)
	}
	if err != nil {
		return err
	}
	c.Type = typ
	refs, err := t.retypedKeys()
	if err != nil {
		return err
	}
	if err := t.rekey(); err != nil {
		return err
	}
	if err := t.rewrite(outs); err != nil {
		return err
	}
	for _, r := range refs {
		if err := t.s.verifyForeign(t.ctx, t.d.cat.ByID(r.table), r.fk); err != nil {
			return err
		}
	}
	if len(views) == 0 {
		return nil
	}
	return t.sameViews(c.Name)
}

// retypeDefault checks that a column's default can have its new type.
func (t *tableAlter) retypeDefault(c *catalog.Column, typ types.Type) error {
	if c.Identity != "" && typ.OID != types.OIDInt2 && typ.OID != types.OIDInt4 && typ.OID != types.OIDInt8 {
		return pgerror.New(pgerror.InvalidParameterValue, "identity column type must be smallint, integer, or bigint")
	}
	if c.Default == "" {
		return nil
	}
	x, err := parser.ParseExpr(c.Default)
	if err != nil {
		return err
	}
	refused := func(types.Type) error {
		return pgerror.New(pgerror.DatatypeMismatch, "default for column \"%s\" cannot be cast automatically to type %s", c.Name, types.Of(typ.OID))
	}
	if !expr.CanCoerce(c.Type, typ, expr.CastAssignment) {
		return refused(c.Type)
	}
	if _, err := t.s.bindAs(c.Default, &x, nil, "DEFAULT expressions", typ, refused); err != nil {
		c.Default = "(" + c.Default + ")::" + typeName(c.Type)
	}
	return nil
}

// rekey makes the indexes of keys fit the types of the columns.
func (t *tableAlter) rekey() error {
	for _, u := range t.d.cat.Users(t.o.ID) {
		if u.Kind == catalog.KindIndex && u.Table == t.o.ID && u.Index != nil {
			nu := *u
			info := *u.Index
			nu.Columns = t.o.Columns
			t.s.retypeIndex(t.o, &nu)
			info.Encoded = encodedIndex(&nu)
			nu.Index = &info
			t.d.apply(catalog.Change{Put: &nu})
		}
	}
	if t.o.Primary == nil {
		return nil
	}
	encoded := encodedKey(t.o, t.o.PrimaryKey)
	switch {
	case encoded && t.o.Primary.Object == 0:
		x, err := t.index(t.o.Primary.Name, t.o.PrimaryKey, &catalog.IndexInfo{Unique: true, Constraint: true, Internal: true})
		if err != nil {
			return err
		}
		t.o.Primary.Object = x.ID
	case !encoded && t.o.Primary.Object != 0:
		t.d.apply(catalog.Change{Drop: t.o.Primary.Object})
		t.o.Primary.Object = 0
	}
	return nil
}

// keyOf is a foreign key of a table.
type keyOf struct {
	table plan.ObjectID
	fk    *catalog.ForeignKey
}

// retypedKeys are the foreign keys, of the table and to it, that the column has a part
// in whose type changes. They are of no use where the types do not go together.
func (t *tableAlter) retypedKeys() ([]keyOf, error) {
	var out []keyOf
	add := func(of, to *catalog.Object, fk *catalog.ForeignKey) error {
		for i, c := range fk.Columns {
			if err := keyTypes(fk.Name, &of.Columns[c], &to.Columns[fk.RefColumns[i]]); err != nil {
				return err
			}
		}
		if !fk.NotValid {
			out = append(out, keyOf{of.ID, fk})
		}
		return nil
	}
	for i := range t.o.Foreign {
		fk := &t.o.Foreign[i]
		to := t.d.cat.ByID(fk.RefTable)
		if fk.RefTable == t.o.ID {
			to = t.o
		}
		if !slices.Contains(fk.Columns, t.col) && (to != t.o || !slices.Contains(fk.RefColumns, t.col)) {
			continue
		}
		if err := add(t.o, to, fk); err != nil {
			return nil, err
		}
	}
	for _, r := range t.d.cat.References(t.o.ID) {
		for i := range r.Foreign {
			fk := &r.Foreign[i]
			if r.ID == t.o.ID || fk.RefTable != t.o.ID || !slices.Contains(fk.RefColumns, t.col) {
				continue
			}
			if err := add(r, t.o, fk); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// ifExists is the error of an action on what is not there, with IF EXISTS a notice.
func (t *tableAlter) ifExists(e *pgerror.Error) error {
	if !t.a.IfExists {
		return e
	}
	e.Severity, e.Code, e.Message = "NOTICE", pgerror.SuccessfulCompletion, e.Message+", skipping"
	t.w.Notice(e)
	return nil
}

// retime runs ALTER CONSTRAINT: it says when a foreign key is checked.
func (t *tableAlter) retime() error {
	name := t.a.NewName
	for i := range t.o.Foreign {
		if fk := &t.o.Foreign[i]; fk.Name == name {
			fk.Deferrable, fk.Deferred = t.a.Column != "", t.a.Column == "deferred"
			t.put()
			return nil
		}
	}
	if constraintNamed(t.o, name) {
		return pgerror.New(pgerror.WrongObjectType, "constraint \"%s\" of relation \"%s\" is not a foreign key constraint", name, t.o.Name)
	}
	return pgerror.New(pgerror.UndefinedObject, "constraint \"%s\" of relation \"%s\" does not exist", name, t.o.Name)
}
