package coord

import (
	"slices"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// compositeOf is the composite type that an object is, or that its rows are of.
func compositeOf(o *catalog.Object) types.OID {
	if r := o.RowType(); r != 0 {
		return r
	}
	return types.OID(o.OID)
}

// columnsContaining are the columns of tables and materialized views whose values have
// values of a composite type in them, those with arrays of it first.
func columnsContaining(cat *catalog.Snapshot, o *catalog.Object) []tableColumn {
	var out []tableColumn
	seen := map[*catalog.Object]bool{}
	var visit func(o *catalog.Object)
	visit = func(o *catalog.Object) {
		if seen[o] {
			return
		}
		seen[o] = true
		of := compositeOf(o)
		users := cat.Users(o.ID)
		for _, arrays := range []bool{true, false} {
			for _, u := range users {
				if u.ID == o.ID {
					continue
				}
				if u.Def != nil {
					has := u.Def.Base.OID == of.Array() || slices.ContainsFunc(u.Def.Fields, func(f types.Field) bool { return f.Type.OID == of.Array() })
					if has == arrays {
						visit(u)
					}
					continue
				}
				if u.Kind != catalog.KindTable && u.Kind != catalog.KindMaterializedView {
					continue
				}
				for i := range u.Columns {
					t := u.Columns[i].Type.OID
					if !o.OfType(t) || (t == of.Array()) != arrays {
						continue
					}
					if c := (tableColumn{u, i}); !slices.Contains(out, c) {
						out = append(out, c)
					}
					visit(u) // its rows have a type, too
				}
			}
		}
	}
	visit(o)
	return out
}

// notWithinItself refuses an attribute of a composite type that has the type in it.
func notWithinItself(o *catalog.Object, attribute types.Type) error {
	if !types.Contains(attribute, compositeOf(o)) {
		return nil
	}
	return pgerror.New(pgerror.InvalidTableDefinition, "composite type %s cannot be made a member of itself", o.Name)
}

// rowTypeUsed refuses a change of a table that the values of its rows elsewhere do not
// follow.
func rowTypeUsed(cat *catalog.Snapshot, o *catalog.Object) error {
	used := columnsContaining(cat, o)
	if len(used) == 0 {
		return nil
	}
	c := used[0]
	return pgerror.New(pgerror.FeatureNotSupported, "cannot alter table \"%s\" because column \"%s.%s\" uses its row type", o.Name, c.table.Name, c.table.Columns[c.col].Name)
}

// reshapeRows writes the rows of a table that columns of others have in them anew, as
// the table has gained or lost columns.
func (t *tableAlter) reshapeRows() error {
	var was []string
	for i := range t.old.Columns {
		if !t.old.Columns[i].Hidden {
			was = append(was, t.old.Columns[i].Name)
		}
	}
	r := &types.Reshape{Type: t.o.RowType()}
	for i := range t.o.Columns {
		if c := &t.o.Columns[i]; !c.Hidden {
			r.From = append(r.From, slices.Index(was, c.Name))
			r.Fields = append(r.Fields, types.Field{Name: c.Name, Type: c.Type})
		}
	}
	return t.s.reshapeValues(t.d, t.o, r)
}

// reshapeValues writes the values of a composite type that tables have anew.
func (s *Session) reshapeValues(d *ddlState, o *catalog.Object, r *types.Reshape) error {
	byTable := map[*catalog.Object][]int{}
	var tables []*catalog.Object
	for _, c := range columnsContaining(d.cat, o) {
		if c.table.Kind != catalog.KindTable {
			continue
		}
		if byTable[c.table] == nil {
			tables = append(tables, c.table)
		}
		byTable[c.table] = append(byTable[c.table], c.col)
	}
	for _, t := range tables {
		if err := s.lockAlter(s.ctx, t); err != nil {
			return err
		}
		a := &tableAlter{newTable: newTable{s: s, d: d, o: t.Clone()}, ctx: s.ctx, old: t}
		err := a.rewriteRows(func(b columnar.Batch) (columnar.Batch, error) {
			out := columnar.Batch{Cols: slices.Clone(b.Cols), N: b.N}
			for _, c := range byTable[t] {
				out.Cols[c] = r.Vec(t.Columns[c].Type, b.Cols[c])
			}
			out, err := s.generate(t, out)
			if err != nil {
				return out, err
			}
			return out, a.satisfied(out)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rowTypeOf is the relation whose rows have the type of a name, nil if there is none.
func (s *Session) rowTypeOf(d *ddlState, n parser.Name) *catalog.Object {
	if o := d.cat.Resolve(catalog.KindTable, n.Schema, n.Name, s.relationPath()); o != nil && o.RowType() != 0 {
		return o
	}
	return nil
}

// undroppableType refuses to drop a type that goes with another object.
func (s *Session) undroppableType(d *ddlState, kind parser.ObjectKind, n parser.Name) error {
	if kind != parser.ObjectType && kind != parser.ObjectDomain || d.cat.Resolve(catalog.KindType, n.Schema, n.Name, s.relationPath()) != nil {
		return nil
	}
	r := s.rowTypeOf(d, n)
	builtin, ok := types.ByName(n.Name)
	ok = ok && (n.Schema == "" || n.Schema == catalog.SchemaPgCatalog)
	switch {
	case r == nil && !ok:
		return nil
	case kind == parser.ObjectDomain:
		return pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a domain", dottedName(n))
	case ok:
		return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop type %s because it is required by the database system", builtin)
	}
	whole := s.describer(d)(r)
	return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop type %s because %s requires it", r.RowType(), whole).
		WithHint("You can drop %s instead.", whole)
}

// freeTypeName refuses the name of a relation that a type has: its rows will be of a
// type of that name.
func freeTypeName(cat *catalog.Snapshot, k catalog.Kind, schema, name string) error {
	if (&catalog.Object{Kind: k}).RowType() == 0 || cat.Get(catalog.KindType, schema, name) == nil {
		return nil
	}
	return pgerror.New(pgerror.DuplicateObject, "type \"%s\" already exists", name).
		WithHint("A relation has an associated type of the same name, so you must use a name that doesn't conflict with any existing type.")
}
