package coord

import (
	"context"
	"fmt"
	"slices"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// addConstraint runs ADD CONSTRAINT.
func (t *tableAlter) addConstraint() error {
	c := t.a.Constraint
	if err := t.s.lock(t.ctx, t.old, true); err != nil {
		return err
	}
	if err := t.constraint(c); err != nil {
		return err
	}
	switch c.Kind {
	case parser.ConstraintPrimaryKey:
		for _, k := range t.o.PrimaryKey {
			if err := t.noNulls(k); err != nil {
				return err
			}
		}
		if err := t.verifyNew(); err != nil {
			return err
		}
		return t.rewriteRows(func(b columnar.Batch) (columnar.Batch, error) { return b, nil })
	case parser.ConstraintCheck:
		if !c.NotValid {
			if err := t.verifyCheck(t.o); err != nil {
				return err
			}
		}
	default:
		if err := t.verifyNew(); err != nil {
			return err
		}
	}
	t.put()
	return nil
}

// verifyCheck checks the rows against the CHECK constraints of a definition.
func (t *tableAlter) verifyCheck(o *catalog.Object) error {
	rows, err := t.s.presentRows(t.old)
	if err != nil {
		return err
	}
	for _, d := range rows {
		var v violation
		if err := t.s.checkRows(o, d.Batch, &v); err != nil {
			return err
		}
		if err := v.error(); err != nil {
			return violatedBySome(err, o)
		}
	}
	return nil
}

// verifyKey checks that the present rows of a table satisfy a new key.
func (s *Session) verifyKey(t *catalog.Object, k *catalog.Key) error {
	rows, err := s.presentRows(t)
	if err != nil {
		return err
	}
	form, err := s.formOf(t, k)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	var buf []byte
	for _, d := range rows {
		r := form.over(s.exprContext(), &d.Batch)
		for i := range d.N {
			if !r.counts(k, i) {
				continue
			}
			buf = appendKey(buf[:0], r.rows, r.cols, r.ts, i)
			if seen[string(buf)] || d.Diff(i) > 1 {
				e := pgerror.New(pgerror.UniqueViolation, "could not create unique index \"%s\"", k.Name).
					WithDetail("Key %s is duplicated.", s.namedKey(s.keyNames(t, k), r.ts, r.rows, r.cols, i))
				e.Schema, e.Table, e.Constraint = t.Schema, t.Name, k.Name
				return e
			}
			seen[string(buf)] = true
		}
	}
	return nil
}

// verifyForeign checks that the present rows of a table refer to rows that are there.
func (s *Session) verifyForeign(ctx context.Context, t *catalog.Object, fk *catalog.ForeignKey) error {
	rows, err := s.presentRows(t)
	if err != nil {
		return err
	}
	for _, d := range rows {
		if err := s.checkReferring(ctx, t, fk, d.Batch); err != nil {
			return err
		}
	}
	return nil
}

// validate runs VALIDATE CONSTRAINT.
func (t *tableAlter) validate() error {
	if i := slices.IndexFunc(t.o.Checks, func(c catalog.Check) bool { return c.Name == t.a.NewName }); i >= 0 {
		t.o.Checks[i].NotValid = false
		if err := t.verifyCheck(t.o); err != nil {
			return err
		}
		t.put()
		return nil
	}
	i := slices.IndexFunc(t.o.Foreign, func(f catalog.ForeignKey) bool { return f.Name == t.a.NewName })
	switch {
	case i >= 0:
		t.o.Foreign[i].NotValid = false
		if err := t.s.verifyForeign(t.ctx, t.old, &t.o.Foreign[i]); err != nil {
			return err
		}
		t.put()
		return nil
	case constraintNamed(t.o, t.a.NewName):
		return pgerror.New(pgerror.WrongObjectType, "constraint \"%s\" of relation \"%s\" is not a foreign key or check constraint", t.a.NewName, t.o.Name)
	}
	return t.noConstraint(t.a.NewName)
}

func (t *tableAlter) noConstraint(name string) error {
	return pgerror.New(pgerror.UndefinedObject, "constraint \"%s\" of relation \"%s\" does not exist", name, t.o.Name)
}

// renameConstraint runs RENAME CONSTRAINT.
func (t *tableAlter) renameConstraint() error {
	from, to := t.a.Column, t.a.NewName
	if !constraintNamed(t.o, from) {
		return pgerror.New(pgerror.UndefinedObject, "constraint \"%s\" for table \"%s\" does not exist", from, t.o.Name)
	}
	if constraintNamed(t.o, to) {
		return pgerror.New(pgerror.DuplicateObject, "constraint \"%s\" for relation \"%s\" already exists", to, t.o.Name)
	}
	rename := func(name *string) {
		if *name == from {
			*name = to
		}
	}
	if t.o.Primary != nil {
		rename(&t.o.Primary.Name)
	}
	for i := range t.o.Unique {
		k := &t.o.Unique[i]
		if k.Name != from {
			continue
		}
		if t.taken(to) {
			return pgerror.New(pgerror.DuplicateTable, "relation \"%s\" already exists", to)
		}
		k.Name = to
		x := *t.d.cat.ByID(k.Object)
		x.Name = to
		t.d.apply(catalog.Change{Put: &x})
	}
	for i := range t.o.Checks {
		rename(&t.o.Checks[i].Name)
	}
	for i := range t.o.Foreign {
		rename(&t.o.Foreign[i].Name)
	}
	t.put()
	return nil
}

// dropConstraint runs DROP CONSTRAINT.
func (t *tableAlter) dropConstraint() error {
	name := t.a.NewName
	if i := slices.IndexFunc(t.o.Checks, func(c catalog.Check) bool { return c.Name == name }); i >= 0 {
		t.o.Checks = slices.Delete(t.o.Checks, i, i+1)
		t.put()
		return nil
	}
	if i := slices.IndexFunc(t.o.Foreign, func(f catalog.ForeignKey) bool { return f.Name == name }); i >= 0 {
		f := t.o.Foreign[i]
		t.removeForeign(&f)
		t.put()
		return nil
	}
	for _, k := range t.o.Keys() {
		if k.Name != name || k.Index {
			continue
		}
		if err := t.s.lock(t.ctx, t.old, true); err != nil {
			return err
		}
		primary := t.o.Primary != nil && t.o.Primary.Name == name
		if err := t.removeKey(&k, t.a.Cascade); err != nil {
			return err
		}
		if primary { // its rows were in the order of the key
			return t.rewriteRows(func(b columnar.Batch) (columnar.Batch, error) { return b, nil })
		}
		t.put()
		return nil
	}
	if t.a.IfExists {
		t.w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion,
			Message: fmt.Sprintf("constraint \"%s\" of relation \"%s\" does not exist, skipping", name, t.o.Name)})
		return nil
	}
	return t.noConstraint(name)
}

// removeForeign takes a foreign key and its index away.
func (t *tableAlter) removeForeign(fk *catalog.ForeignKey) {
	t.o.Foreign = slices.DeleteFunc(t.o.Foreign, func(f catalog.ForeignKey) bool { return f.Name == fk.Name })
	if fk.Object != 0 {
		t.d.apply(catalog.Change{Drop: fk.Object})
	}
}

// removeKey takes a key and its index away, and (cascade) the foreign keys that
// refer to it.
func (t *tableAlter) removeKey(k *catalog.Key, cascade bool) error {
	for _, r := range t.d.cat.References(t.o.ID) {
		for _, fk := range r.Foreign {
			if fk.RefTable != t.o.ID || k.Derived || !sameColumns(fk.RefColumns, k.Columns) {
				continue
			}
			if !cascade {
				return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop constraint %s on table %s because other objects depend on it", k.Name, t.o.Name).
					WithDetail("constraint %s on table %s depends on index %s", fk.Name, r.Name, k.Name).
					WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
			}
			t.w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion, Message: fmt.Sprintf("drop cascades to constraint %s on table %s", fk.Name, r.Name)})
			if r.ID == t.o.ID {
				t.removeForeign(&fk)
				continue
			}
			t.d.dropForeign(t.d.cat.ByID(r.ID), &fk)
		}
	}
	if t.o.Primary != nil && t.o.Primary.Name == k.Name {
		t.o.PrimaryKey, t.o.Primary = nil, nil
	} else {
		t.o.Unique = slices.DeleteFunc(t.o.Unique, func(x catalog.Key) bool { return x.Name == k.Name })
	}
	if k.Object != 0 {
		t.d.apply(catalog.Change{Drop: k.Object})
	}
	return nil
}

// dropForeign takes a foreign key away from a table.
func (d *ddlState) dropForeign(o *catalog.Object, fk *catalog.ForeignKey) {
	c := o.Clone()
	c.Foreign = slices.DeleteFunc(c.Foreign, func(f catalog.ForeignKey) bool { return f.Name == fk.Name })
	c.SQL = tableSQL(d.cat, c)
	d.apply(catalog.Change{Put: c})
	if fk.Object != 0 {
		d.apply(catalog.Change{Drop: fk.Object})
	}
}

// renameViewColumn runs ALTER VIEW … RENAME COLUMN.
func (s *Session) renameViewColumn(d *ddlState, a *parser.AlterCmd, o, c *catalog.Object) error {
	i := o.Column(a.Column)
	if i < 0 {
		return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" does not exist", a.Column)
	}
	if o.Column(a.NewName) >= 0 {
		return pgerror.New(pgerror.DuplicateColumn, "column \"%s\" of relation \"%s\" already exists", a.NewName, o.Name)
	}
	before := s.c.bindContext(d.cat)
	c.Columns[i].Name = a.NewName
	c.SQL = viewSQL(c)
	d.apply(catalog.Change{Put: c})
	if err := d.renameInIndexes(o.ID, a.Column, a.NewName); err != nil {
		return err
	}
	for _, u := range d.cat.Users(o.ID) {
		nu := *u
		if u.Kind == catalog.KindIndex {
			nu.Columns = c.Columns
			nu.SQL = indexSQL(c, &nu)
		}
		if u.Query != "" {
			q, err := planner.RenameColumn(before, s.c.bindContext(d.cat), u.Query, o, i, a.NewName)
			if err != nil {
				return err
			}
			nu.Query = q
			nu.SQL = definitionSQL(d.cat, &nu)
		}
		d.apply(catalog.Change{Put: &nu})
	}
	return nil
}

// planColumns are a relation's columns as a plan has them.
func planColumns(o *catalog.Object) []plan.Column {
	out := make([]plan.Column, len(o.Columns))
	for i, c := range o.Columns {
		out[i] = plan.Column{Name: c.Name, Type: c.Type.Storage(), NotNull: c.NotNull}
	}
	return out
}

func nullConst(c catalog.Column) expr.Expr { return expr.NullConst(c.Type) }
