package coord

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// rewriteTexts writes the SQL texts within an object anew: a view's query, a
// function's body (query is true for both), the expressions of a table or an
// index. nil says that nothing has changed.
func (s *Session) rewriteTexts(d *ddlState, u *catalog.Object, f func(text string, query bool) (string, error)) (*catalog.Object, error) {
	nu := u.Clone()
	var err error
	changed := false
	edit := func(text *string, query bool) {
		if err != nil || *text == "" {
			return
		}
		var now string
		if now, err = f(*text, query); err == nil && now != *text {
			*text, changed = now, true
		}
	}
	switch {
	case u.Query != "":
		edit(&nu.Query, true)
		for i := range nu.Columns {
			edit(&nu.Columns[i].Default, false)
		}
	case u.Function != nil:
		fn := *u.Function
		fn.Args = slices.Clone(fn.Args)
		for _, text := range planner.BodyStatements(fn.Body) {
			was := text
			edit(&text, true)
			fn.Body = strings.Replace(fn.Body, was, text, 1)
		}
		for i := range fn.Args {
			edit(&fn.Args[i].Default, false)
		}
		nu.Function = &fn
	case u.Kind == catalog.KindTable:
		for i := range nu.Columns {
			edit(&nu.Columns[i].Default, false)
			edit(&nu.Columns[i].Generated, false)
		}
		for i := range nu.Checks {
			edit(&nu.Checks[i].Expr, false)
		}
	case u.Kind == catalog.KindIndex:
		nu.Exprs = slices.Clone(u.Exprs)
		for i := range nu.Exprs {
			edit(&nu.Exprs[i].SQL, false)
		}
		edit(&nu.Where, false)
	}
	if err != nil || !changed {
		return nil, err
	}
	nu.SQL = definitionSQL(d.cat, nu)
	return nu, nil
}

// definitionSQL writes the definition of an object as it is now.
func definitionSQL(cat *catalog.Snapshot, o *catalog.Object) string {
	if o.Function != nil {
		return functionSQL(o)
	}
	return renameInSQL(cat, o)
}

// rewriteAll is rewriteTexts of several objects.
func (s *Session) rewriteAll(d *ddlState, users []*catalog.Object, f func(text string, query bool) (string, error)) error {
	for _, u := range users {
		nu, err := s.rewriteTexts(d, d.cat.ByID(u.ID), f)
		if err != nil {
			return err
		}
		if nu != nil {
			d.apply(catalog.Change{Put: nu})
		}
	}
	return nil
}

// functionKinds are the kinds of objects that are functions.
func functionKind(k pg.ObjectType) bool {
	return k == pg.ObjectType_OBJECT_FUNCTION || k == pg.ObjectType_OBJECT_ROUTINE || k == pg.ObjectType_OBJECT_PROCEDURE
}

// altersFunction says whether a statement is an ALTER FUNCTION or its kin.
func altersFunction(st *pg.Node) bool {
	return st.GetAlterFunctionStmt() != nil || functionKind(st.GetRenameStmt().GetRenameType()) ||
		functionKind(st.GetAlterObjectSchemaStmt().GetObjectType()) || functionKind(st.GetAlterOwnerStmt().GetObjectType())
}

// alterFunction runs ALTER FUNCTION, PROCEDURE and ROUTINE.
func (s *Session) alterFunction(d *ddlState, p *prepared, st *pg.Node) (string, error) {
	kind, object := pg.ObjectType_OBJECT_FUNCTION, (*pg.Node)(nil)
	switch {
	case st.GetAlterFunctionStmt() != nil:
		n := st.GetAlterFunctionStmt()
		o, err := s.findRoutine(d, p, n.Objtype, n.Func)
		if err != nil {
			return "", err
		}
		return alterTag(n.Objtype), s.alterFunctionOptions(d, o, n.Actions)
	case st.GetRenameStmt() != nil:
		kind, object = st.GetRenameStmt().RenameType, st.GetRenameStmt().Object
	case st.GetAlterObjectSchemaStmt() != nil:
		kind, object = st.GetAlterObjectSchemaStmt().ObjectType, st.GetAlterObjectSchemaStmt().Object
	default:
		kind, object = st.GetAlterOwnerStmt().ObjectType, st.GetAlterOwnerStmt().Object
	}
	o, err := s.findRoutine(d, p, kind, object.GetObjectWithArgs())
	if err != nil {
		return "", err
	}
	c := *o
	if n := st.GetRenameStmt(); n != nil {
		c.Name = n.Newname
	}
	if n := st.GetAlterObjectSchemaStmt(); n != nil {
		if d.cat.Schema(n.Newschema) == nil {
			return "", pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", n.Newschema)
		}
		c.Schema = n.Newschema
	}
	if c.Name == o.Name && c.Schema == o.Schema && st.GetRenameStmt() == nil {
		return alterTag(kind), nil
	}
	if d.cat.Get(catalog.KindFunction, c.Schema, c.Function.Key(c.Name)) != nil {
		return "", pgerror.New(pgerror.DuplicateFunction, "function %s already exists in schema \"%s\"", signatureText(&c), c.Schema)
	}
	return alterTag(kind), s.functionRenamed(d, o, &c)
}

func alterTag(k pg.ObjectType) string {
	return "ALTER " + strings.TrimPrefix(k.String(), "OBJECT_")
}

// functionRenamed puts a function under its new name, and names it so in what
// uses it.
func (s *Session) functionRenamed(d *ddlState, o, c *catalog.Object) error {
	users := d.cat.Users(o.ID)
	for _, f := range d.cat.Functions(o.Schema, o.Name) {
		for _, u := range users {
			if f.ID != o.ID && slices.ContainsFunc(d.cat.Users(f.ID), func(x *catalog.Object) bool { return x.ID == u.ID }) {
				return pgerror.Unsupported("renaming one of two functions of the name " + o.Name + " that " + u.Kind.String() + " " + u.Name + " uses")
			}
		}
	}
	c.SQL = functionSQL(c)
	d.apply(catalog.Change{Put: c})
	return s.rewriteAll(d, users, func(text string, query bool) (string, error) {
		return planner.RenameFunction(text, query, o.Schema, o.Name, c.Schema, c.Name)
	})
}

// alterFunctionOptions changes the volatility and strictness of a function; the
// other options are about how PostgreSQL would run it.
func (s *Session) alterFunctionOptions(d *ddlState, o *catalog.Object, actions []*pg.Node) error {
	c, f := *o, *o.Function
	c.Function = &f
	for _, a := range actions {
		switch e := a.GetDefElem(); e.Defname {
		case "volatility":
			f.Volatility = e.Arg.GetString_().GetSval()
		case "strict":
			f.Strict = e.Arg.GetBoolean().GetBoolval()
		}
	}
	c.SQL = functionSQL(&c)
	d.apply(catalog.Change{Put: &c})
	s.rebuildViews(d, c.ID)
	return nil
}

// rebuildViews lets the materialized views that use an object be planned anew.
func (s *Session) rebuildViews(d *ddlState, o plan.ObjectID) {
	for _, u := range d.cat.Closure(o) {
		if u.Maintained() {
			d.rebuilt[u.ID] = true
		}
	}
}

// alterSchema runs ALTER SCHEMA.
func (s *Session) alterSchema(d *ddlState, n *parser.Alter) error {
	sc := d.cat.Schema(n.Name.Name)
	if sc == nil {
		return pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", n.Name.Name)
	}
	for _, a := range n.Actions {
		switch a.Action {
		case parser.AlterOwner, parser.AlterNothing:
		case parser.AlterSwap:
			if err := s.swapSchemas(d, sc, a.NewName); err != nil {
				return err
			}
		case parser.AlterRename:
			if err := s.renameSchema(d, sc, a.NewName); err != nil {
				return err
			}
		default:
			return pgerror.Unsupported("this ALTER SCHEMA action")
		}
	}
	return nil
}

// swapSchemas gives two schemas each other's names.
func (s *Session) swapSchemas(d *ddlState, sc *catalog.Schema, name string) error {
	other := d.cat.Schema(name)
	if other == nil {
		return pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", name)
	}
	if other.Name == sc.Name {
		return nil
	}
	free := sc.Name
	for d.cat.Schema(free) != nil {
		free += "_"
	}
	old := sc.Name
	for _, step := range [][2]string{{old, free}, {name, old}, {free, name}} {
		if err := s.renameSchema(d, d.cat.Schema(step[0]), step[1]); err != nil {
			return err
		}
	}
	return nil
}

// renameSchema moves all objects of a schema to its new name, and names it so in
// what uses them.
func (s *Session) renameSchema(d *ddlState, sc *catalog.Schema, name string) error {
	switch {
	case d.cat.Schema(name) != nil:
		return pgerror.New(pgerror.DuplicateSchema, "schema \"%s\" already exists", name)
	case strings.HasPrefix(name, "pg_"):
		return pgerror.New(pgerror.ReservedName, "unacceptable schema name \"%s\"", name).
			WithDetail("The prefix \"pg_\" is reserved for system schemas.")
	case sc.System, sc.Name == catalog.SchemaPublic:
		return pgerror.New(pgerror.InsufficientPrivilege, "permission denied for schema %s", sc.Name)
	}
	c := *sc
	c.Name = name
	var moved []*catalog.Object
	for _, o := range d.cat.Objects() {
		if o.Schema != sc.Name || o.Kind == catalog.KindCluster {
			continue
		}
		switch o.Kind {
		case catalog.KindSource, catalog.KindConnection, catalog.KindSecret, catalog.KindSink:
			return pgerror.Unsupported("renaming a schema with the " + o.Kind.String() + " " + o.Name)
		}
		moved = append(moved, o)
	}
	old := sc.Name
	d.apply(catalog.Change{PutSchema: &c})
	for _, o := range moved {
		co := *o
		co.Schema = name
		d.apply(catalog.Change{Put: &co})
	}
	d.apply(catalog.Change{DropSchema: old})
	if err := s.rewriteAll(d, d.cat.Objects(), func(text string, query bool) (string, error) {
		return planner.RenameSchema(text, query, old, name)
	}); err != nil {
		return err
	}
	for _, o := range d.cat.Objects() {
		if o.Sink != nil && slices.ContainsFunc(moved, func(t *catalog.Object) bool { return t.ID == o.Sink.Into }) {
			moved = append(moved, o)
		}
	}
	for _, o := range moved {
		co := *d.cat.ByID(o.ID)
		co.SQL = definitionSQL(d.cat, &co)
		d.apply(catalog.Change{Put: &co})
		if o.Sequence != nil {
			if err := s.sequenceMoved(d, o, &co); err != nil {
				return err
			}
		}
	}
	return nil
}

// sequenceMoved names a sequence anew in the defaults of columns.
func (s *Session) sequenceMoved(d *ddlState, o, c *catalog.Object) error {
	return s.rewriteAll(d, d.cat.Users(o.ID), func(text string, query bool) (string, error) {
		if text == nextvalSQL(o) {
			return nextvalSQL(c), nil
		}
		return text, nil
	})
}

// renameKeyIndex runs ALTER INDEX … RENAME of the index of a primary key, which is
// no object of its own.
func (s *Session) renameKeyIndex(d *ddlState, t *catalog.Object, name string) error {
	if d.cat.Get(catalog.KindTable, t.Schema, name) != nil || d.cat.PrimaryNamed(t.Schema, name) != nil {
		return pgerror.New(pgerror.DuplicateTable, "relation \"%s\" already exists", name)
	}
	c := t.Clone()
	c.Primary.Name = name
	c.SQL = tableSQL(d.cat, c)
	d.apply(catalog.Change{Put: c})
	return nil
}
