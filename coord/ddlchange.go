package coord

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
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
	case parser.ObjectSubscription:
		return catalog.KindSubscription, true
	case parser.ObjectCluster:
		return catalog.KindCluster, true
	case parser.ObjectSequence:
		return catalog.KindSequence, true
	case parser.ObjectType, parser.ObjectDomain:
		return catalog.KindType, true
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
	if n.Schema == catalog.SchemaTemp {
		n.Schema = s.tempSchema
	}
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
		case catalog.KindIndex, catalog.KindConnection, catalog.KindSecret, catalog.KindSink, catalog.KindCluster, catalog.KindSubscription:
			code = pgerror.UndefinedObject
		case catalog.KindType:
			return nil, pgerror.New(pgerror.UndefinedObject, "type \"%s\" does not exist", dottedName(n))
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
		if err := s.undroppableType(d, n.Kind, name); err != nil {
			return err
		}
		o, err := s.find(d, n.Kind, name)
		if err == nil && n.Kind == parser.ObjectDomain && o.Def.Kind != 'd' {
			return pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a domain", o.Name)
		}
		if err != nil {
			if _, known := kindOf(n.Kind); !known && n.IfExists || n.IfExists && missing(err) {
				what := strings.ToLower(string(n.Kind))
				if n.Kind == parser.ObjectDomain {
					what = "type"
				}
				msg := fmt.Sprintf("%s \"%s\" does not exist, skipping", what, dottedName(name))
				if k, _ := kindOf(n.Kind); k != catalog.KindType {
					msg = fmt.Sprintf("%s \"%s\" does not exist, skipping", what, name.Name)
				}
				if pgerror.As(err).Code == pgerror.InvalidSchemaName {
					msg = fmt.Sprintf("schema \"%s\" does not exist, skipping", name.Schema)
				}
				w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion, Message: msg})
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
		if o.Index != nil && o.Index.Constraint {
			t := d.cat.ByID(o.Table)
			return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop index %s because constraint %s on table %s requires it", o.Name, o.Name, t.Name).
				WithHint("You can drop constraint %s on table %s instead.", o.Name, t.Name)
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
		if o.Function != nil {
			name := parser.QuoteIdent(o.Name)
			for _, p := range path {
				if f := cat.Get(catalog.KindFunction, p, o.Function.Key(o.Name)); f == o {
					return "function " + o.Function.Signature(name)
				} else if f != nil {
					break
				}
			}
			return "function " + o.Function.Signature(parser.QuoteIdent(o.Schema)+"."+name)
		}
		if o.Schema == "" || cat.Resolve(o.Kind, "", o.Name, path) == o {
			return o.Kind.String() + " " + parser.QuoteIdent(o.Name)
		}
		return o.Kind.String() + " " + parser.QuoteIdent(o.Schema) + "." + parser.QuoteIdent(o.Name)
	}
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
	if t := s.keyIndexTable(d, n.Name); err != nil && t != nil && (n.Kind == parser.ObjectIndex || n.Kind == parser.ObjectTable) && n.Actions[0].Action == parser.AlterRename {
		return s.renameKeyIndex(d, t, n.Actions[0].NewName)
	}
	if err != nil && n.Kind == parser.ObjectTable && pgerror.As(err).Code == pgerror.WrongObjectType {
		// PostgreSQL's ALTER TABLE takes any relation for what all have.
		o, err = d.cat.Resolve(catalog.KindTable, n.Name.Schema, n.Name.Name, s.relationPath()), nil
	}
	if err != nil {
		if n.IfExists && missing(err) {
			w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion, Message: fmt.Sprintf("relation \"%s\" does not exist, skipping", n.Name.Name)})
			return nil
		}
		if pgerror.As(err).Code == pgerror.UndefinedTable || n.Kind == parser.ObjectIndex && missing(err) {
			return undefinedRelation(n.Name.Schema, n.Name.Name)
		}
		e := *pgerror.As(err)
		e.Hint = "" // it tells how to drop
		return &e
	}
	if err := s.lockForm(ctx, o.ID, true); err != nil {
		return err
	}
	actions, err := inPhases(n.Actions)
	if err != nil {
		return err
	}
	for i := range actions {
		if err := s.alterOne(ctx, d, p, &actions[i], o, o.Clone(), w); err != nil {
			return err
		}
		o = d.cat.ByID(o.ID)
	}
	return nil
}

// alterPhases are the phases of ALTER TABLE in which its actions are carried out;
// those that are not named are in the last.
var alterPhases = map[parser.AlterAction]int{
	parser.AlterDropColumn: 1, parser.AlterDropConstraint: 1, parser.AlterDropDefault: 1, parser.AlterDropNotNull: 1,
	parser.AlterDropIdentity: 1, parser.AlterDropExpression: 1,
	parser.AlterColumnType: 2,
	parser.AlterAddColumn:  3,
	parser.AlterSetNotNull: 4, parser.AlterSetIdentity: 4,
	parser.AlterAddConstraint: 5, // of keys
	parser.AlterSetDefault:    6, parser.AlterAddIdentity: 6,
}

// inPhases puts actions into the order in which PostgreSQL carries them out.
func inPhases(actions []parser.AlterCmd) ([]parser.AlterCmd, error) {
	if len(actions) == 1 {
		return actions, nil
	}
	phase := func(a *parser.AlterCmd) int {
		p, ok := alterPhases[a.Action]
		switch {
		case !ok:
			return 7
		case a.Constraint != nil && a.Constraint.Kind != parser.ConstraintPrimaryKey && a.Constraint.Kind != parser.ConstraintUnique:
			return 6
		}
		return p
	}
	out := slices.Clone(actions)
	slices.SortStableFunc(out, func(a, b parser.AlterCmd) int { return phase(&a) - phase(&b) })
	for i := range out {
		for j := range i {
			if out[i].Action == parser.AlterColumnType && out[j].Action == parser.AlterColumnType && out[i].Column == out[j].Column {
				return nil, pgerror.New(pgerror.FeatureNotSupported, "cannot alter type of column \"%s\" twice", out[i].Column)
			}
		}
	}
	return out, nil
}

// storageOptions passes the parameters that say how PostgreSQL stores a table.
func storageOptions(opts []parser.Option) error {
	for _, o := range opts {
		name := o.Name
		if strings.HasPrefix(name, "autovacuum_") || strings.HasPrefix(name, "toast.") || strings.HasPrefix(name, "vacuum_") {
			continue
		}
		switch name {
		case "retain history for", "retain history", "parallel_workers", "toast_tuple_target", "log_autovacuum_min_duration", "user_catalog_table", "deduplicate_items",
			"fillfactor", "fastupdate", "buffering", "gin_pending_list_limit", "pages_per_range", "autosummarize":
		default:
			return pgerror.New(pgerror.InvalidParameterValue, "unrecognized parameter \"%s\"", name)
		}
	}
	return nil
}

// viewDefault runs ALTER VIEW … ALTER COLUMN SET or DROP DEFAULT.
func (s *Session) viewDefault(d *ddlState, p *prepared, a *parser.AlterCmd, o, c *catalog.Object) error {
	i := o.Column(a.Column)
	if i < 0 {
		return undefinedColumn(a.Column, o)
	}
	c.Columns[i].Default = ""
	if a.Action == parser.AlterSetDefault {
		if _, err := s.bindDefault(p.stmt.Text, a.Expr, a.Column, c.Columns[i].Type); err != nil {
			return noPosition(err)
		}
		c.Columns[i].Default = s.fixed(a.Expr.SQL, nil, c.Columns[i].Type)
	}
	d.apply(catalog.Change{Put: c})
	return nil
}

// alterOne applies one action; c is a copy of o to change.
func (s *Session) alterOne(ctx context.Context, d *ddlState, p *prepared, a *parser.AlterCmd, o, c *catalog.Object, w pgwire.ResultWriter) error {
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
		if a.NewName == o.Schema {
			return nil
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
	case parser.AlterOwner, parser.AlterNothing, parser.AlterTuning:
		return nil
	case parser.AlterSetOptions, parser.AlterResetOptions:
		if o.Kind == catalog.KindConnection {
			return pgerror.Unsupported("ALTER CONNECTION ... SET").WithHint("Create another connection, and sources that use it.")
		}
		if o.Kind == catalog.KindCluster { // of Materialize: sizes and replicas
			return nil
		}
		if o.Kind == catalog.KindTable || o.Kind == catalog.KindIndex || o.Kind == catalog.KindMaterializedView {
			return storageOptions(a.Options)
		}
		if o.Kind == catalog.KindView {
			return s.alterViewOptions(d, a, c)
		}
	case parser.AlterSetConfig, parser.AlterResetConfig:
		return s.alterConfig(d, a, c)
	case parser.AlterSecretValue:
		v, err := s.secretValue(p, a.Expr)
		if err != nil {
			return err
		}
		d.secrets[o.ID] = v
		d.apply(catalog.Change{Put: c})
		return nil
	case parser.AlterAddColumn, parser.AlterDropColumn, parser.AlterRenameColumn, parser.AlterSetDefault, parser.AlterDropDefault,
		parser.AlterSetNotNull, parser.AlterDropNotNull, parser.AlterColumnType, parser.AlterAddConstraint, parser.AlterDropConstraint,
		parser.AlterRenameConstraint, parser.AlterConstraintTiming, parser.AlterValidate, parser.AlterAddIdentity, parser.AlterSetIdentity, parser.AlterDropIdentity, parser.AlterDropExpression:
		if a.Action == parser.AlterRenameColumn && (o.Kind == catalog.KindView || o.Kind == catalog.KindMaterializedView) {
			return s.renameViewColumn(d, a, o, c)
		}
		if o.Kind == catalog.KindView && (a.Action == parser.AlterSetDefault || a.Action == parser.AlterDropDefault) {
			return s.viewDefault(d, p, a, o, c)
		}
		if o.Kind != catalog.KindTable {
			return pgerror.New(pgerror.WrongObjectType, "ALTER action cannot be performed on relation \"%s\"", o.Name).
				WithDetail("This operation is not supported for a %s.", o.Kind)
		}
		return s.alterTable(ctx, d, p, a, o, c, w)
	}
	if a.Action == parser.AlterSetCluster {
		if placement(d.cat, a.NewName) == o.Cluster {
			return nil
		}
		return pgerror.Unsupported("ALTER ... SET CLUSTER").WithHint("CREATE OR REPLACE MATERIALIZED VIEW ... IN CLUSTER makes the view anew in another cluster.")
	}
	return pgerror.Unsupported("this ALTER action")
}

// renamed puts an object under its new name. Definitions that name it are
// written anew; what they mean, and so the state of their views, stays.
func (s *Session) renamed(d *ddlState, o, c *catalog.Object) error {
	users := d.cat.Users(o.ID)
	c.SQL = renameInSQL(d.cat, c)
	d.apply(catalog.Change{Put: c})
	for _, u := range users {
		u = d.cat.ByID(u.ID) // with what the ones before have changed
		nu := u.Clone()
		switch {
		case u.Kind == catalog.KindIndex:
			if u.Schema != c.Schema && (u.PlainIndex() && len(d.cat.Users(u.ID)) > 0) {
				nu.Schema = c.Schema
				if err := s.renamed(d, u, nu); err != nil {
					return err
				}
				continue
			}
			nu.Schema = c.Schema
			if c.Kind == catalog.KindTable || c.Kind == catalog.KindView || c.Kind == catalog.KindMaterializedView {
				nu.SQL = indexSQL(c, nu)
			}
		case u.Kind == catalog.KindSubscription:
			nu.SQL = subscriptionSQL(d.cat, nu)
		case u.Kind == catalog.KindSequence:
			if u.Schema == c.Schema {
				continue
			}
			nu.Schema = c.Schema // it stays with the table that owns it
			if err := s.renamed(d, u, nu); err != nil {
				return err
			}
			continue
		case o.Kind == catalog.KindSequence:
			for i := range nu.Columns {
				if nu.Columns[i].Default == nextvalSQL(o) {
					nu.Columns[i].Default = nextvalSQL(c)
				}
			}
			nu.SQL = tableSQL(d.cat, nu)
		case u.Query != "":
			q, err := planner.RenameRelation(u.Query, o.Schema, o.Name, c.Schema, c.Name)
			if err != nil {
				return err
			}
			nu.Query = q
			nu.SQL = definitionSQL(d.cat, nu)
		default:
			continue
		}
		d.apply(catalog.Change{Put: nu})
	}
	for _, f := range d.cat.Objects() { // bodies of functions name relations, too
		if f.Function == nil {
			continue
		}
		body, err := planner.RenameRelation(f.Function.Body, o.Schema, o.Name, c.Schema, c.Name)
		if err == nil && o.RowType() != 0 {
			body, err = planner.RenameType(body, true, o.Schema, o.Name, c.Schema, c.Name)
		}
		if err == nil && body != f.Function.Body {
			nf, fn := *f, *f.Function
			fn.Body = body
			nf.Function = &fn
			d.apply(catalog.Change{Put: &nf})
		}
	}
	if o.RowType() != 0 { // its name is that of a type, too
		return s.rewriteAll(d, users, func(text string, query bool) (string, error) {
			return planner.RenameType(text, query, o.Schema, o.Name, c.Schema, c.Name)
		})
	}
	if o.Kind == catalog.KindIndex && o.Index != nil {
		return s.renameKey(d, o, c.Name)
	}
	return nil
}

// renameKey gives the key that an index enforces the index's new name.
func (s *Session) renameKey(d *ddlState, o *catalog.Object, name string) error {
	t := d.cat.ByID(o.Table).Clone()
	for i := range t.Unique {
		if t.Unique[i].Object == o.ID {
			t.Unique[i].Name = name
		}
	}
	t.SQL = tableSQL(d.cat, t)
	d.apply(catalog.Change{Put: t})
	return nil
}

// renameInSQL writes the definition of an object under its present name.
func renameInSQL(cat *catalog.Snapshot, o *catalog.Object) string {
	switch o.Kind {
	case catalog.KindTable:
		return tableSQL(cat, o)
	case catalog.KindSequence:
		return sequenceSQL(o)
	case catalog.KindIndex:
		return indexSQL(cat.ByID(o.Table), o)
	case catalog.KindView, catalog.KindMaterializedView:
		return viewSQL(o)
	case catalog.KindSink:
		return sinkSQL(cat, o)
	case catalog.KindSubscription:
		return subscriptionSQL(cat, o)
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
	return fmt.Sprintf("CREATE %s %s.%s%s%s AS %s", strings.ToUpper(o.Kind.String()), quoteName(o.Schema), quoteName(o.Name), columnList(names), viewOptionsSQL(o)+in, o.Query) + checkOptionSQL(o)
}
