package coord

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// kindOf is the catalog kind of a kind of object in a statement.
func kindOf(k parser.ObjectKind) (catalog.Kind, bool) {
	switch k {
	case parser.ObjectTable:
		return catalog.KindTable, true
	case parser.ObjectSource:
		return catalog.KindSource, true
	case parser.ObjectView:
		return catalog.KindView, true
	case parser.ObjectMaterializedView:
		return catalog.KindMaterializedView, true
	case parser.ObjectIndex:
		return catalog.KindIndex, true
	case parser.ObjectConnection:
		return catalog.KindConnection, true
	case parser.ObjectSecret:
		return catalog.KindSecret, true
	case parser.ObjectSink:
		return catalog.KindSink, true
	case parser.ObjectCluster:
		return catalog.KindCluster, true
	}
	return 0, false
}

// find resolves the object of DROP, ALTER or COMMENT and checks its kind.
func (s *Session) find(d *ddlState, pk parser.ObjectKind, n parser.Name) (*catalog.Object, error) {
	k, ok := kindOf(pk)
	if !ok {
		return nil, pgerror.Unsupported(string(pk))
	}
	path := s.relationPath()
	if k == catalog.KindCluster {
		n.Schema, path = "", []string{""}
	}
	if n.Schema != "" && d.cat.Schema(n.Schema) == nil {
		return nil, pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", n.Schema)
	}
	o := d.cat.Resolve(k, n.Schema, n.Name, path)
	if o == nil {
		code, what := pgerror.UndefinedTable, strings.ToLower(string(pk))
		switch k {
		case catalog.KindIndex, catalog.KindConnection, catalog.KindSecret, catalog.KindSink, catalog.KindCluster:
			code = pgerror.UndefinedObject
		}
		return nil, pgerror.New(code, "%s \"%s\" does not exist", what, n.Name)
	}
	if o.Kind == catalog.KindVirtual {
		return nil, pgerror.New(pgerror.InsufficientPrivilege, "permission denied: \"%s\" is a system catalog", o.Name)
	}
	if o.Kind != k {
		e := pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a %s", o.Name, strings.ToLower(string(pk)))
		if k == catalog.KindIndex || strings.HasPrefix(string(pk), "INDEX") {
			e.Message = fmt.Sprintf("\"%s\" is not an index", o.Name)
		}
		return nil, e.WithHint("Use DROP %s to remove a %s.", strings.ToUpper(o.Kind.String()), o.Kind)
	}
	return o, nil
}

// missing says whether an error means that the object is not there.
func missing(err error) bool {
	switch pgerror.As(err).Code {
	case pgerror.UndefinedTable, pgerror.UndefinedObject, pgerror.InvalidSchemaName:
		return true
	}
	return false
}

func (s *Session) drop(d *ddlState, n *parser.Drop, w pgwire.ResultWriter) error {
	if n.Kind == parser.ObjectSchema {
		return s.dropSchemas(d, n, w)
	}
	var objs, inside []*catalog.Object
	container := "" // of inside
	for _, name := range n.Names {
		if name.Name == defaultCluster && n.Kind == parser.ObjectCluster {
			return pgerror.New(pgerror.DependentObjectsStillExist, "the default cluster cannot be dropped")
		}
		o, err := s.find(d, n.Kind, name)
		if err != nil {
			if _, known := kindOf(n.Kind); !known && n.IfExists || n.IfExists && missing(err) {
				w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion,
					Message: fmt.Sprintf("%s \"%s\" does not exist, skipping", strings.ToLower(string(n.Kind)), name.Name)})
				continue
			}
			return err
		}
		if o.Parent != 0 {
			p := d.cat.ByID(o.Parent)
			return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop \"%s\" because source \"%s\" requires it", o.Name, p.Name).
				WithHint("You can drop source \"%s\" instead.", p.Name)
		}
		if o.Kind == catalog.KindCluster {
			for _, x := range d.cat.Objects() {
				if x.Cluster == o.Name {
					inside = append(inside, x)
				}
			}
			container = "cluster " + parser.QuoteIdent(o.Name)
		}
		objs = append(objs, o)
	}
	return s.dropAll(d, n.Cascade, objs, inside, container, w)
}

// describer gives an object's kind and name, with its schema where the search
// path does not find it. It knows the objects as they are now.
func (s *Session) describer(d *ddlState) func(*catalog.Object) string {
	cat, path := d.cat, s.searchPath()
	return func(o *catalog.Object) string {
		if o.Schema == "" || cat.Resolve(o.Kind, "", o.Name, path) == o {
			return o.Kind.String() + " " + parser.QuoteIdent(o.Name)
		}
		return o.Kind.String() + " " + parser.QuoteIdent(o.Schema) + "." + parser.QuoteIdent(o.Name)
	}
}

// dropAll drops objs and what is inside them (container names that) with what
// depends on them, which is told, or an error without cascade.
func (s *Session) dropAll(d *ddlState, cascade bool, objs, inside []*catalog.Object, container string, w pgwire.ResultWriter) error {
	describe := s.describer(d)
	all, also := d.cat.DropSet(objs, inside)
	if len(also) > 0 && !cascade {
		if container == "" && len(objs) == 1 {
			container = describe(objs[0])
		}
		return stillNeeded(describe, container, also)
	}
	for _, o := range all {
		d.apply(catalog.Change{Drop: o.ID})
	}
	lines := make([]string, len(also))
	for i, x := range also {
		lines[i] = "drop cascades to " + describe(x.Object)
	}
	switch {
	case len(lines) == 1:
		w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion, Message: lines[0]})
	case len(lines) > 1:
		w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion,
			Message: fmt.Sprintf("drop cascades to %d other objects", len(lines)), Detail: strings.Join(lines, "\n")})
	}
	return nil
}

// stillNeeded is the error of dropping something ("" for several) that others use.
func stillNeeded(describe func(*catalog.Object) string, what string, users []catalog.Dependent) error {
	e := pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop desired object(s) because other objects depend on them")
	if what != "" {
		e = pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop %s because other objects depend on it", what)
	}
	var lines []string
	for _, u := range users {
		on := what
		if u.On != nil {
			on = describe(u.On)
		}
		lines = append(lines, describe(u.Object)+" depends on "+on)
	}
	return e.WithDetail("%s", strings.Join(lines, "\n")).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
}

func (s *Session) dropSchemas(d *ddlState, n *parser.Drop, w pgwire.ResultWriter) error {
	for _, name := range n.Names {
		sc := d.cat.Schema(name.Name)
		switch {
		case sc == nil && n.IfExists:
			w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion, Message: fmt.Sprintf("schema \"%s\" does not exist, skipping", name.Name)})
			continue
		case sc == nil:
			return pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", name.Name)
		case sc.System:
			return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop schema %s because it is required by the database system", sc.Name)
		}
		var inside []*catalog.Object
		for _, o := range d.cat.Objects() {
			if o.Schema == sc.Name && o.Kind != catalog.KindCluster {
				inside = append(inside, o)
			}
		}
		if err := s.dropAll(d, n.Cascade, nil, inside, "schema "+parser.QuoteIdent(sc.Name), w); err != nil {
			return err
		}
		d.apply(catalog.Change{DropSchema: sc.Name})
	}
	return nil
}

// alter runs ALTER.
func (s *Session) alter(ctx context.Context, d *ddlState, p *prepared, n *parser.Alter, w pgwire.ResultWriter) error {
	if n.Kind == parser.ObjectSchema {
		return s.alterSchema(d, n)
	}
	o, err := s.find(d, n.Kind, n.Name)
	if err != nil && n.Kind == parser.ObjectTable && pgerror.As(err).Code == pgerror.WrongObjectType {
		// PostgreSQL's ALTER TABLE takes any relation for what all have.
		o, err = d.cat.Resolve(catalog.KindTable, n.Name.Schema, n.Name.Name, s.relationPath()), nil
	}
	if err != nil {
		if n.IfExists && missing(err) {
			w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion, Message: fmt.Sprintf("relation \"%s\" does not exist, skipping", n.Name.Name)})
			return nil
		}
		if pgerror.As(err).Code == pgerror.UndefinedTable {
			return undefinedRelation(n.Name.Schema, n.Name.Name)
		}
		return err
	}
	for i := range n.Actions {
		c := *o
		c.Columns = slices.Clone(o.Columns)
		c.Deps = slices.Clone(o.Deps)
		if err := s.alterOne(ctx, d, p, &n.Actions[i], o, &c); err != nil {
			return err
		}
		o = d.cat.ByID(o.ID)
	}
	return nil
}

// alterOne applies one action; c is a copy of o to change.
func (s *Session) alterOne(ctx context.Context, d *ddlState, p *prepared, a *parser.AlterCmd, o, c *catalog.Object) error {
	switch a.Action {
	case parser.AlterRename:
		if e := d.cat.Get(o.Kind, o.Schema, a.NewName); e != nil {
			return pgerror.New(pgerror.DuplicateTable, "relation \"%s\" already exists", a.NewName)
		}
		c.Name = a.NewName
		return s.renamed(d, o, c)
	case parser.AlterSetSchema:
		if d.cat.Schema(a.NewName) == nil {
			return pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", a.NewName)
		}
		if e := d.cat.Get(o.Kind, a.NewName, o.Name); e != nil {
			return pgerror.New(pgerror.DuplicateTable, "relation \"%s\" already exists in schema \"%s\"", o.Name, a.NewName)
		}
		c.Schema = a.NewName
		return s.renamed(d, o, c)
	case parser.AlterSwap:
		e := d.cat.Get(o.Kind, o.Schema, a.NewName)
		if e == nil {
			return undefinedRelation(o.Schema, a.NewName)
		}
		if e.Kind != o.Kind {
			return pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a %s", e.Name, o.Kind)
		}
		x := *e
		x.Name, c.Name = o.Name, e.Name
		if err := s.renamed(d, e, &x); err != nil {
			return err
		}
		return s.renamed(d, o, c)
	case parser.AlterOwner, parser.AlterNothing, parser.AlterSetParallelism:
		return nil
	case parser.AlterSecretValue:
		v, err := s.secretValue(p, a.Expr)
		if err != nil {
			return err
		}
		d.secrets[o.ID] = v
		d.apply(catalog.Change{Put: c})
		return nil
	case parser.AlterAddColumn, parser.AlterDropColumn, parser.AlterRenameColumn, parser.AlterSetDefault, parser.AlterDropDefault,
		parser.AlterSetNotNull, parser.AlterDropNotNull, parser.AlterColumnType, parser.AlterAddConstraint, parser.AlterDropConstraint:
		if o.Kind != catalog.KindTable {
			return pgerror.New(pgerror.WrongObjectType, "ALTER action cannot be performed on relation \"%s\"", o.Name).
				WithDetail("This operation is not supported for a %s.", o.Kind)
		}
		return s.alterTable(ctx, d, p, a, o, c)
	}
	return pgerror.Unsupported("this ALTER action")
}

// renamed puts an object under its new name. Definitions that name it are
// written anew; what they mean, and so the state of their views, stays.
func (s *Session) renamed(d *ddlState, o, c *catalog.Object) error {
	users := d.cat.Users(o.ID)
	c.SQL = renameInSQL(c)
	d.apply(catalog.Change{Put: c})
	for _, u := range users {
		if u.Query == "" {
			continue
		}
		nu := *u
		q, err := planner.RenameRelation(u.Query, o.Schema, o.Name, c.Schema, c.Name)
		if err != nil {
			return err
		}
		nu.Query = q
		nu.SQL = viewSQL(&nu)
		d.apply(catalog.Change{Put: &nu})
	}
	return nil
}

// renameInSQL writes the definition of an object under its present name.
func renameInSQL(o *catalog.Object) string {
	switch o.Kind {
	case catalog.KindTable:
		return tableSQL(o)
	case catalog.KindView, catalog.KindMaterializedView:
		return viewSQL(o)
	}
	return o.SQL
}

// viewSQL writes the definition of a view.
func viewSQL(o *catalog.Object) string {
	names := make([]string, len(o.Columns))
	for i, c := range o.Columns {
		names[i] = c.Name
	}
	in := ""
	if o.Kind == catalog.KindMaterializedView && o.Cluster != defaultCluster && o.Cluster != "" {
		in = " IN CLUSTER " + quoteName(o.Cluster)
	}
	return fmt.Sprintf("CREATE %s %s.%s%s%s AS %s", strings.ToUpper(o.Kind.String()), quoteName(o.Schema), quoteName(o.Name), columnList(names), in, o.Query)
}

func (s *Session) alterSchema(d *ddlState, n *parser.Alter) error {
	sc := d.cat.Schema(n.Name.Name)
	if sc == nil {
		return pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", n.Name.Name)
	}
	for _, a := range n.Actions {
		switch a.Action {
		case parser.AlterOwner, parser.AlterNothing:
		default:
			return pgerror.Unsupported("this ALTER SCHEMA action")
		}
	}
	return nil
}

// alterTable changes the columns or constraints of a table. Where the form of
// its rows changes, the table's content is rewritten into a new collection at
// the epoch of the change, under the same id.
func (s *Session) alterTable(ctx context.Context, d *ddlState, p *prepared, a *parser.AlterCmd, o, c *catalog.Object) error {
	col := slices.IndexFunc(o.Columns, func(x catalog.Column) bool { return x.Name == a.Column })
	if a.Action != parser.AlterAddColumn && a.Action != parser.AlterAddConstraint && a.Action != parser.AlterDropConstraint && col < 0 {
		if a.IfExists {
			return nil
		}
		if a.Action == parser.AlterRenameColumn {
			return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" does not exist", a.Column)
		}
		return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", a.Column, o.Name)
	}
	put := func() error {
		c.SQL = tableSQL(c)
		d.apply(catalog.Change{Put: c})
		return nil
	}
	switch a.Action {
	case parser.AlterRenameColumn:
		if slices.ContainsFunc(o.Columns, func(x catalog.Column) bool { return x.Name == a.NewName }) {
			return pgerror.New(pgerror.DuplicateColumn, "column \"%s\" of relation \"%s\" already exists", a.NewName, o.Name)
		}
		if users := s.viewUsers(d, o); len(users) > 0 {
			return dependError(o, a.Column, users[0])
		}
		c.Columns[col].Name = a.NewName
		return put()
	case parser.AlterSetDefault:
		if _, err := planner.BindExpr(s.bindContext(nil), p.stmt.Text, a.Expr, nil, "DEFAULT expressions", o.Columns[col].Type); err != nil {
			return err
		}
		c.Columns[col].Default = a.Expr.SQL
		return put()
	case parser.AlterDropDefault:
		c.Columns[col].Default = ""
		return put()
	case parser.AlterSetNotNull:
		if err := s.eachRow(o, func(dl *dataflow.Delta) error {
			for i := range dl.N {
				if dl.Cols[col].Null(i) && dl.Diff(i) > 0 {
					return pgerror.New(pgerror.NotNullViolation, "column \"%s\" of relation \"%s\" contains null values", a.Column, o.Name)
				}
			}
			return nil
		}); err != nil {
			return err
		}
		c.Columns[col].NotNull = true
		return put()
	case parser.AlterDropNotNull:
		if slices.Contains(o.PrimaryKey, col) {
			return pgerror.New(pgerror.InvalidTableDefinition, "column \"%s\" is in a primary key", a.Column)
		}
		c.Columns[col].NotNull = false
		return put()
	case parser.AlterAddConstraint:
		return s.addConstraint(ctx, d, p, a, o, c)
	case parser.AlterDropConstraint:
		return s.dropConstraint(d, a, o, c)
	}
	return s.rewriteTable(ctx, d, p, a, o, c, col)
}

// viewUsers are the objects whose definition names a table's columns.
func (s *Session) viewUsers(d *ddlState, o *catalog.Object) []*catalog.Object {
	return slices.DeleteFunc(d.cat.Users(o.ID), func(u *catalog.Object) bool { return u.Kind == catalog.KindIndex })
}

func dependError(o *catalog.Object, column string, user *catalog.Object) error {
	return pgerror.New(pgerror.DependentObjectsStillExist, "cannot alter column %s of table %s because other objects depend on it", column, o.Name).
		WithDetail("%s %s depends on table %s", user.Kind, user.Name, o.Name).
		WithHint("Drop the dependent objects first, and create them again after.")
}

// eachRow gives the committed rows of a table and those of the transaction.
func (s *Session) eachRow(o *catalog.Object, f func(*dataflow.Delta) error) error {
	var err error
	if coll := s.c.collection(o.ID); coll != nil && !s.rewritten(o.ID) {
		sn, e := snapshotTrace(coll.rows, s.c.timeline.ingest.done.get())
		if e != nil {
			return e
		}
		if sn != nil {
			defer sn.Release()
			sn.Scan(func(dl *dataflow.Delta) bool {
				err = f(dl)
				return err == nil
			})
		}
	}
	for _, dl := range s.tx.pending(o.ID) {
		if err == nil {
			err = f(dl)
		}
	}
	return err
}

func (s *Session) addConstraint(ctx context.Context, d *ddlState, p *prepared, a *parser.AlterCmd, o, c *catalog.Object) error {
	if err := s.lock(ctx, o); err != nil {
		return err
	}
	if err := s.constraint(p.stmt.Text, c, a.Constraint); err != nil {
		return err
	}
	switch a.Constraint.Kind {
	case parser.ConstraintCheck:
		if err := s.eachRow(o, func(dl *dataflow.Delta) error { return s.checkRows(c, dl.Batch) }); err != nil {
			e := *pgerror.As(err)
			if e.Code == pgerror.CheckViolation {
				e.Message = fmt.Sprintf("check constraint \"%s\" of relation \"%s\" is violated by some row", c.Checks[len(c.Checks)-1].Name, o.Name)
				e.Detail = ""
			}
			return &e
		}
	case parser.ConstraintUnique:
		if err := s.verifyUnique(o, c.Unique[len(c.Unique)-1]); err != nil {
			return err
		}
	case parser.ConstraintPrimaryKey:
		if err := s.verifyUnique(o, c.PrimaryKey); err != nil {
			return err
		}
		return s.rewriteRows(d, o, c, func(b columnar.Batch) (columnar.Batch, error) { return b, s.checkRows(c, b) })
	}
	c.SQL = tableSQL(c)
	d.apply(catalog.Change{Put: c})
	return nil
}

func (s *Session) dropConstraint(d *ddlState, a *parser.AlterCmd, o, c *catalog.Object) error {
	if i := slices.IndexFunc(o.Checks, func(x catalog.Check) bool { return x.Name == a.NewName }); i >= 0 {
		c.Checks = slices.Delete(slices.Clone(o.Checks), i, i+1)
		c.SQL = tableSQL(c)
		d.apply(catalog.Change{Put: c})
		return nil
	}
	keys, names := uniqueKeys(o)
	for i, name := range names {
		if name != a.NewName {
			continue
		}
		if len(o.PrimaryKey) > 0 && i == 0 {
			c.PrimaryKey = nil
			return s.rewriteRows(d, o, c, func(b columnar.Batch) (columnar.Batch, error) { return b, nil })
		}
		c.Unique = slices.DeleteFunc(slices.Clone(o.Unique), func(u []int) bool { return slices.Equal(u, keys[i]) })
		c.SQL = tableSQL(c)
		d.apply(catalog.Change{Put: c})
		return nil
	}
	if a.IfExists {
		return nil
	}
	return pgerror.New(pgerror.UndefinedObject, "constraint \"%s\" of relation \"%s\" does not exist", a.NewName, o.Name)
}

// rewriteTable adds, drops or retypes a column.
func (s *Session) rewriteTable(ctx context.Context, d *ddlState, p *prepared, a *parser.AlterCmd, o, c *catalog.Object, col int) error {
	if err := s.lock(ctx, o); err != nil {
		return err
	}
	if users := s.viewUsers(d, o); len(users) > 0 && a.Action != parser.AlterAddColumn {
		return dependError(o, a.Column, users[0])
	}
	outs := plan.Refs(planColumns(o))
	switch a.Action {
	case parser.AlterAddColumn:
		def, err := s.column(p.stmt.Text, a.ColumnDef)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(o.Columns, func(x catalog.Column) bool { return x.Name == def.Name }) {
			if a.IfNotExists {
				return nil
			}
			return pgerror.New(pgerror.DuplicateColumn, "column \"%s\" of relation \"%s\" already exists", def.Name, o.Name)
		}
		if users := s.viewUsers(d, o); len(users) > 0 {
			// A view keeps reading the columns it knows; its dataflow is made anew
			// over the rewritten table.
			for _, u := range d.cat.Closure(o.ID) {
				if u.Kind == catalog.KindMaterializedView || u.Kind == catalog.KindIndex {
					d.rebuilt[u.ID] = true
				}
			}
		}
		var val expr.Expr
		if a.ColumnDef.Default != nil {
			val, err = planner.BindExpr(s.bindContext(nil), p.stmt.Text, a.ColumnDef.Default, nil, "DEFAULT expressions", def.Type)
		} else {
			val = nullConst(def)
		}
		if err != nil {
			return err
		}
		c.Columns = append(c.Columns, def)
		outs = append(outs, val)
	case parser.AlterDropColumn:
		if slices.Contains(o.PrimaryKey, col) && !a.Cascade {
			return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop column %s of table %s because its primary key depends on it", a.Column, o.Name).
				WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
		}
		outs = slices.Delete(outs, col, col+1)
		dropColumn(c, col)
		for _, u := range d.cat.Users(o.ID) {
			if u.Kind != catalog.KindIndex {
				continue
			}
			if slices.Contains(u.Key, col) {
				d.apply(catalog.Change{Drop: u.ID})
				continue
			}
			nu := *u
			nu.Key = shiftKey(u.Key, col)
			d.apply(catalog.Change{Put: &nu})
		}
	case parser.AlterColumnType:
		t, err := planner.ResolveType(s.bindContext(nil), p.stmt.Text, a.Type)
		if err != nil {
			return err
		}
		if a.Expr != nil {
			outs[col], err = planner.BindExpr(s.bindContext(nil), p.stmt.Text, a.Expr, o, "transform expressions", t)
		} else {
			outs[col], err = expr.Coerce(outs[col], t, expr.CastAssignment, a.Pos)
		}
		if err != nil {
			return err
		}
		c.Columns[col].Type = t
	}
	prog, err := expr.Compile(expr.MapFilterProject{Outputs: outs})
	if err != nil {
		return err
	}
	return s.rewriteRows(d, o, c, func(b columnar.Batch) (columnar.Batch, error) {
		out, _, errs := prog.Apply(s.exprContext(), &b, nil)
		if len(errs) > 0 {
			return out, errs[0].Err
		}
		return out, s.checkRows(c, out)
	})
}

// dropColumn takes a column out of a table's definition, with the constraints
// that use it.
func dropColumn(c *catalog.Object, col int) {
	c.Columns = slices.Delete(c.Columns, col, col+1)
	c.PrimaryKey = shiftKey(c.PrimaryKey, col)
	var us [][]int
	for _, u := range c.Unique {
		if n := shiftKey(u, col); n != nil {
			us = append(us, n)
		}
	}
	c.Unique = us
}

// rewriteRows gives a table a new form: its rows go through f into a new
// collection, which replaces the old one when the transaction commits.
func (s *Session) rewriteRows(d *ddlState, o, c *catalog.Object, f func(columnar.Batch) (columnar.Batch, error)) error {
	var rows []*dataflow.Delta
	if err := s.eachRow(o, func(dl *dataflow.Delta) error {
		n := cloneDelta(dl)
		out, err := f(n.Batch)
		if err != nil {
			return err
		}
		rows = append(rows, &dataflow.Delta{Batch: out, Diffs: n.Diffs})
		return nil
	}); err != nil {
		return err
	}
	s.tx.writes = slices.DeleteFunc(s.tx.writes, func(w tableWrite) bool { return w.id == o.ID })
	for _, r := range rows {
		s.tx.write(o.ID, r)
	}
	c.SQL = tableSQL(c)
	d.rebuilt[o.ID] = true
	for _, u := range d.cat.Closure(o.ID) {
		if u.Kind == catalog.KindIndex || u.Kind == catalog.KindMaterializedView {
			d.rebuilt[u.ID] = true
		}
	}
	d.apply(catalog.Change{Put: c})
	for _, u := range d.cat.Users(o.ID) {
		if u.Kind == catalog.KindIndex && u.Table == o.ID {
			nu := *u
			nu.Columns = c.Columns
			d.apply(catalog.Change{Put: &nu})
		}
	}
	return nil
}

// shiftKey is a key after a column is gone; nil if the column was in it.
func shiftKey(key []int, col int) []int {
	if slices.Contains(key, col) {
		return nil
	}
	out := slices.Clone(key)
	for i, k := range out {
		if k > col {
			out[i]--
		}
	}
	return out
}

func (s *Session) comment(d *ddlState, n *parser.CommentOn) error {
	text := ""
	if n.Comment != nil {
		text = *n.Comment
	}
	if n.Kind == parser.ObjectColumn {
		o := d.cat.Resolve(catalog.KindTable, n.Name.Schema, n.Name.Name, s.relationPath())
		if o == nil {
			return undefinedRelation(n.Name.Schema, n.Name.Name)
		}
		c := *o
		c.Columns = slices.Clone(o.Columns)
		i := slices.IndexFunc(c.Columns, func(x catalog.Column) bool { return x.Name == n.Column })
		if i < 0 {
			return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", n.Column, o.Name)
		}
		c.Columns[i].Comment = text
		d.apply(catalog.Change{Put: &c})
		return nil
	}
	if _, ok := kindOf(n.Kind); !ok {
		return nil
	}
	o, err := s.find(d, n.Kind, n.Name)
	if err != nil {
		return err
	}
	c := *o
	c.Comment = text
	d.apply(catalog.Change{Put: &c})
	return nil
}

// planColumns are a relation's columns as a plan has them.
func planColumns(o *catalog.Object) []plan.Column {
	out := make([]plan.Column, len(o.Columns))
	for i, c := range o.Columns {
		out[i] = plan.Column{Name: c.Name, Type: c.Type, NotNull: c.NotNull}
	}
	return out
}

func nullConst(c catalog.Column) expr.Expr {
	b := columnar.NewBuilder(c.Type.Kind(), 1)
	b.Null()
	return &expr.Const{Val: b.Build(), Typ: c.Type}
}
