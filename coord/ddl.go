package coord

import (
	"context"
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/render"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// firstUserOID is where PostgreSQL's user objects begin.
const firstUserOID = 16384

// execDDL runs a statement that changes the catalog.
func (s *Session) execDDL(ctx context.Context, p *prepared, w pgwire.ResultWriter) (string, error) {
	d, err := s.beginDDL(ctx)
	if err != nil {
		return "", err
	}
	node := p.stmt.Node
	tag := node.Tag()
	switch n := node.(type) {
	case *parser.CreateTable:
		err = s.createTable(d, p, n, w)
	case *parser.CreateTableAs:
		tag, err = s.createTableAs(ctx, d, p, n, w)
	case *parser.CreateView:
		err = s.createView(d, p, n, w)
	case *parser.CreateMaterializedView:
		err = s.createMaterializedView(d, p, n, w)
	case *parser.CreateIndex:
		err = s.createIndex(d, n, w)
	case *parser.CreateSchema:
		err = s.createSchema(d, n, w)
	case *parser.CreateCluster:
		err = s.createCluster(d, n, w)
	case *parser.CreateSecret:
		err = s.createSecret(d, p, n, w)
	case *parser.CreateConnection:
		err = s.createConnection(d, n, w)
	case *parser.CreateSource:
		err = s.createSource(ctx, d, p, n, w)
	case *parser.Drop:
		err = s.drop(d, n, w)
	case *parser.Alter:
		err = s.alter(ctx, d, p, n, w)
	case *parser.CommentOn:
		err = s.comment(d, n)
	default:
		err = pgerror.Unsupported(tag)
	}
	return tag, err
}

// enterDDL puts a transaction's catalog changes into its request.
func (c *Coordinator) enterDDL(r *request, d *ddlState) error {
	if len(d.changes) == 0 {
		return nil
	}
	if err := c.storeSecrets(d); err != nil {
		return err
	}
	before := c.catalog.Load()
	r.catalog = d.changes
	for _, id := range sortedIDs(d.rebuilt) {
		r.catalog = append(r.catalog, catalog.Change{Rebuild: id})
	}
	created := createdObjects(before, d)
	r.atEpoch = func(e dataflow.Epoch) {
		c.catalog.Store(d.cat)
		for _, o := range before.Objects() {
			if d.cat.ByID(o.ID) == nil || d.rebuilt[o.ID] {
				c.forget(o)
			}
		}
		for _, o := range d.cat.Objects() {
			if o.Kind == catalog.KindCluster {
				c.ensureCluster(o.Name, e)
			}
		}
		for _, o := range created {
			if _, err := c.createCollection(o); err != nil {
				c.log.Error("collection of a new object", "object", o.Name, "error", err)
			}
		}
	}
	d.after = append(d.after, func(ctx context.Context) {
		for _, o := range before.Objects() {
			if o.Kind == catalog.KindSource && d.cat.ByID(o.ID) == nil {
				c.stopSource(ctx, o.ID)
			}
		}
		c.launch(created)
	})
	return nil
}

// createdObjects are the objects that need a new collection: new ones, and
// views that are rebuilt. Views come after what they read.
func createdObjects(before *catalog.Snapshot, d *ddlState) []*catalog.Object {
	var roots []plan.ObjectID
	isNew := map[plan.ObjectID]bool{}
	for _, o := range d.cat.Objects() {
		if before.ByID(o.ID) == nil || d.rebuilt[o.ID] {
			roots = append(roots, o.ID)
			isNew[o.ID] = true
		}
	}
	var out []*catalog.Object
	for _, o := range d.cat.Closure(roots...) {
		if isNew[o.ID] {
			out = append(out, o)
		}
	}
	return out
}

// launch starts the sources and the hydrations of new objects.
func (c *Coordinator) launch(created []*catalog.Object) {
	for _, o := range created {
		switch o.Kind {
		case catalog.KindSource:
			if o.Parent == 0 {
				c.startSource(o)
			}
		case catalog.KindMaterializedView, catalog.KindIndex:
			coll := c.collection(o.ID)
			if coll == nil {
				continue
			}
			f, err := c.flowOf(o, coll)
			if err != nil {
				coll.failed.CompareAndSwap(nil, &err)
				coll.setReady()
				continue
			}
			h := c.hydrate(c.clusterOf(o), f)
			c.tasks.Go(h.run)
		}
	}
}

// ensureCluster makes a cluster's loop, at epoch e, in the timeline.
func (c *Coordinator) ensureCluster(name string, e dataflow.Epoch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clusters[name] != nil {
		return
	}
	cl := newCluster(c, name)
	cl.done.set(e)
	c.clusters[name] = cl
	c.tasks.Go(func() { cl.run(c.ctx) })
}

// stopSource ends a dropped source and frees what it holds upstream.
func (c *Coordinator) stopSource(ctx context.Context, id plan.ObjectID) {
	c.mu.Lock()
	s := c.sources[id]
	delete(c.sources, id)
	c.mu.Unlock()
	if s == nil {
		return
	}
	s.mu.Lock()
	src := s.src
	s.mu.Unlock()
	s.stop()
	if src != nil {
		if err := src.Drop(ctx); err != nil {
			c.log.Warn("source left something upstream", "source", s.obj.Name, "error", err)
		}
	}
}

// newObject gives an object its ids.
func (c *Coordinator) newObject(o *catalog.Object) (*catalog.Object, error) {
	id, err := c.store.AllocateIDs(1)
	if err != nil {
		return nil, diskError(err)
	}
	o.ID = plan.ObjectID(id)
	o.OID = uint32(firstUserOID + id)
	return o, nil
}

// target decides the schema of a new object and whether the name is free.
// exists is the object that has it.
func (s *Session) target(d *ddlState, k catalog.Kind, n parser.Name) (schema string, exists *catalog.Object, err error) {
	if n.Database != "" && n.Database != databaseName {
		return "", nil, pgerror.New(pgerror.FeatureNotSupported, "cross-database references are not implemented: \"%s.%s.%s\"", n.Database, n.Schema, n.Name).At(n.Pos)
	}
	schema = n.Schema
	if schema == "" {
		for _, p := range s.searchPath() {
			if d.cat.Schema(p) != nil {
				schema = p
				break
			}
		}
		if schema == "" {
			return "", nil, pgerror.New(pgerror.InvalidSchemaName, "no schema has been selected to create in").At(n.Pos)
		}
	}
	sc := d.cat.Schema(schema)
	if sc == nil {
		return "", nil, pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", schema).At(n.Pos)
	}
	if sc.System {
		return "", nil, pgerror.New(pgerror.InsufficientPrivilege, "permission denied for schema %s", schema).At(n.Pos)
	}
	if len(n.Name) > 63 {
		return "", nil, pgerror.New(pgerror.NameTooLong, "identifier \"%s\" is longer than 63 bytes", n.Name).At(n.Pos)
	}
	return schema, d.cat.Get(k, schema, n.Name), nil
}

// taken handles a name that is in use: skip says that IF NOT EXISTS applies.
func taken(exists *catalog.Object, ifNotExists bool, w pgwire.ResultWriter) (skip bool, err error) {
	if exists == nil {
		return false, nil
	}
	code, what := pgerror.DuplicateTable, "relation"
	if !exists.Relation() && exists.Kind != catalog.KindIndex {
		code, what = pgerror.DuplicateObject, exists.Kind.String()
	}
	e := pgerror.New(code, "%s \"%s\" already exists", what, exists.Name)
	if ifNotExists {
		e.Severity, e.Message = "NOTICE", e.Message+", skipping"
		w.Notice(e)
		return true, nil
	}
	return false, e
}

// column makes a table column of its definition.
func (s *Session) column(text string, def *parser.ColumnDef) (catalog.Column, error) {
	t, err := planner.ResolveType(s.bindContext(nil), text, def.Type)
	if err != nil {
		return catalog.Column{}, err
	}
	col := catalog.Column{Name: def.Name, Type: t, NotNull: def.NotNull || def.PrimaryKey}
	if def.Collation != "" && !collationC(def.Collation) {
		return col, pgerror.Unsupported("collation \"" + def.Collation + "\"")
	}
	if def.Generated != nil {
		return col, pgerror.Unsupported("GENERATED column")
	}
	if def.Identity != "" {
		return col, pgerror.Unsupported("IDENTITY column")
	}
	if len(def.References) > 0 {
		return col, pgerror.Unsupported("FOREIGN KEY")
	}
	if def.Default != nil {
		e, err := planner.BindExpr(s.bindContext(nil), text, def.Default, nil, "DEFAULT expressions", t)
		if err != nil {
			return col, err
		}
		_ = e
		col.Default = def.Default.SQL
	}
	return col, nil
}

func collationC(name string) bool {
	switch strings.ToLower(name) {
	case "c", "posix", "default", "ucs_basic", "c.utf8":
		return true
	}
	return false
}

// tableObject makes the catalog object of CREATE TABLE.
func (s *Session) tableObject(d *ddlState, text string, n *parser.CreateTable, schema string) (*catalog.Object, error) {
	o := &catalog.Object{Schema: schema, Name: n.Name.Name, Kind: catalog.KindTable, AppendOnly: n.AppendOnly}
	for _, like := range n.Like {
		t := d.cat.Resolve(catalog.KindTable, like.Schema, like.Name, s.relationPath())
		if t == nil {
			return nil, undefinedRelation(like.Schema, like.Name)
		}
		o.Columns = append(o.Columns, t.Columns...)
	}
	constraints := n.Constraints
	for i := range n.Columns {
		def := &n.Columns[i]
		col, err := s.column(text, def)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(o.Columns, func(c catalog.Column) bool { return c.Name == col.Name }) {
			return nil, pgerror.New(pgerror.DuplicateColumn, "column \"%s\" specified more than once", col.Name)
		}
		o.Columns = append(o.Columns, col)
		if def.PrimaryKey {
			constraints = append(constraints, parser.Constraint{Kind: parser.ConstraintPrimaryKey, Columns: []string{def.Name}, Pos: def.Pos})
		}
		if def.Unique {
			constraints = append(constraints, parser.Constraint{Kind: parser.ConstraintUnique, Columns: []string{def.Name}, Pos: def.Pos})
		}
		constraints = append(constraints, def.Checks...)
	}
	if len(o.Columns) > 1600 {
		return nil, pgerror.New(pgerror.TooManyColumns, "tables can have at most 1600 columns")
	}
	for i := range constraints {
		if err := s.constraint(text, o, &constraints[i]); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// constraint adds a constraint to a table.
func (s *Session) constraint(text string, o *catalog.Object, c *parser.Constraint) error {
	key := make([]int, len(c.Columns))
	for i, name := range c.Columns {
		key[i] = slices.IndexFunc(o.Columns, func(x catalog.Column) bool { return x.Name == name })
		if key[i] < 0 {
			return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" named in key does not exist", name).At(c.Pos)
		}
	}
	switch c.Kind {
	case parser.ConstraintPrimaryKey:
		if len(o.PrimaryKey) > 0 {
			return pgerror.New(pgerror.InvalidTableDefinition, "multiple primary keys for table \"%s\" are not allowed", o.Name).At(c.Pos)
		}
		o.PrimaryKey = key
		for _, k := range key {
			o.Columns[k].NotNull = true
		}
	case parser.ConstraintUnique:
		o.Unique = append(o.Unique, key)
	case parser.ConstraintCheck:
		if _, err := planner.BindExpr(s.bindContext(nil), text, c.Check, o, "check constraints", types.Bool); err != nil {
			return err
		}
		name := c.Name
		if name == "" {
			name = checkName(o, c.Check.SQL)
		}
		o.Checks = append(o.Checks, catalog.Check{Name: name, Expr: c.Check.SQL})
	case parser.ConstraintForeignKey:
		return pgerror.Unsupported("FOREIGN KEY")
	}
	return nil
}

// checkName names a CHECK as PostgreSQL does: after its table and, if it uses
// just one column, that.
func checkName(o *catalog.Object, sql string) string {
	base := o.Name
	used := ""
	for _, c := range o.Columns {
		if strings.Contains(sql, c.Name) {
			if used != "" {
				used = ""
				break
			}
			used = c.Name
		}
	}
	if used != "" {
		base += "_" + used
	}
	name := base + "_check"
	for i := 1; slices.ContainsFunc(o.Checks, func(c catalog.Check) bool { return c.Name == name }); i++ {
		name = fmt.Sprintf("%s_check%d", base, i)
	}
	return name
}

func (s *Session) createTable(d *ddlState, p *prepared, n *parser.CreateTable, w pgwire.ResultWriter) error {
	schema, exists, err := s.target(d, catalog.KindTable, n.Name)
	if err != nil {
		return err
	}
	if skip, err := taken(exists, n.IfNotExists, w); skip || err != nil {
		return err
	}
	if n.Temp {
		return pgerror.Unsupported("TEMPORARY table")
	}
	o, err := s.tableObject(d, p.stmt.Text, n, schema)
	if err != nil {
		return err
	}
	o.SQL = tableSQL(o)
	if o, err = s.c.newObject(o); err != nil {
		return err
	}
	d.apply(catalog.Change{Put: o})
	return nil
}

// tableSQL writes the CREATE TABLE of a table.
func tableSQL(o *catalog.Object) string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s.%s (", quoteName(o.Schema), quoteName(o.Name))
	for i, c := range o.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %s", quoteName(c.Name), typeName(c.Type))
		if c.Default != "" {
			b.WriteString(" DEFAULT " + c.Default)
		}
		if c.NotNull {
			b.WriteString(" NOT NULL")
		}
	}
	names := func(key []int) string {
		out := make([]string, len(key))
		for i, k := range key {
			out[i] = quoteName(o.Columns[k].Name)
		}
		return strings.Join(out, ", ")
	}
	if len(o.PrimaryKey) > 0 {
		fmt.Fprintf(&b, ", PRIMARY KEY (%s)", names(o.PrimaryKey))
	}
	for _, u := range o.Unique {
		fmt.Fprintf(&b, ", UNIQUE (%s)", names(u))
	}
	for _, c := range o.Checks {
		fmt.Fprintf(&b, ", CONSTRAINT %s CHECK (%s)", quoteName(c.Name), c.Expr)
	}
	b.WriteString(")")
	if o.AppendOnly {
		b.WriteString(" APPEND ONLY")
	}
	return b.String()
}

// typeName is a type as SQL writes it.
func typeName(t types.Type) string { return t.String() }

// createTableAs runs CREATE TABLE AS and SELECT INTO: the table and its rows
// enter at one epoch.
func (s *Session) createTableAs(ctx context.Context, d *ddlState, p *prepared, n *parser.CreateTableAs, w pgwire.ResultWriter) (string, error) {
	schema, exists, err := s.target(d, catalog.KindTable, n.Name)
	if err != nil {
		return "", err
	}
	if skip, err := taken(exists, n.IfNotExists, w); skip || err != nil {
		return "CREATE TABLE AS", err
	}
	q, err := planner.BindQuery(s.bindContext(nil), p.stmt.Text, &n.Query)
	if err != nil {
		return "", err
	}
	cols, err := viewColumns(q, n.Columns)
	if err != nil {
		return "", err
	}
	o := &catalog.Object{Schema: schema, Name: n.Name.Name, Kind: catalog.KindTable, Columns: cols}
	for i := range o.Columns {
		o.Columns[i].NotNull = false
	}
	o.SQL = tableSQL(o)
	if o, err = s.c.newObject(o); err != nil {
		return "", err
	}
	rows := 0
	if !n.WithNoData {
		rel, err := planner.Optimize(q.Rel, s.optimizeOptions())
		if err != nil {
			return "", err
		}
		width := len(cols)
		if err := s.runQuery(ctx, rel, nil, true, func(b *columnar.Batch) error {
			rows += b.N
			s.tx.write(o.ID, &dataflow.Delta{Batch: *firstCols(b, width)})
			return nil
		}); err != nil {
			return "", err
		}
	}
	d.apply(catalog.Change{Put: o})
	return fmt.Sprintf("SELECT %d", rows), nil
}

// viewColumns are the columns of a view: the query's, under the names given.
func viewColumns(q *planner.Query, names []string) ([]catalog.Column, error) {
	if len(names) > len(q.Columns) {
		return nil, pgerror.New(pgerror.SyntaxError, "CREATE VIEW specifies more column names than columns")
	}
	out := make([]catalog.Column, len(q.Columns))
	for i, c := range q.Columns {
		out[i] = catalog.Column{Name: c.Name, Type: c.Type, NotNull: c.NotNull}
		if i < len(names) {
			out[i].Name = names[i]
		}
		if c.Type.OID == types.OIDUnknown {
			out[i].Type = types.Text
		}
	}
	for i := range out {
		for j := range i {
			if out[i].Name == out[j].Name {
				return nil, pgerror.New(pgerror.DuplicateColumn, "column \"%s\" specified more than once", out[i].Name)
			}
		}
	}
	return out, nil
}

// boundView is the query of a view, bound and with its names qualified.
func (s *Session) boundView(p *prepared, query *parser.Query) (*planner.Query, string, error) {
	ctx := s.bindContext(nil)
	ctx.Session = nil // a view does not depend on who made it, or when
	ctx.Stars = map[*pg.ResTarget][]string{}
	q, err := planner.BindQuery(ctx, p.stmt.Text, query)
	if err != nil {
		return nil, "", err
	}
	if len(q.Params) > 0 {
		return nil, "", pgerror.New(pgerror.UndefinedParameter, "there is no parameter $1")
	}
	sql, err := planner.Qualify(ctx, p.stmt.Text, query)
	return q, sql, err
}

func (s *Session) createView(d *ddlState, p *prepared, n *parser.CreateView, w pgwire.ResultWriter) error {
	schema, exists, err := s.target(d, catalog.KindView, n.Name)
	if err != nil {
		return err
	}
	if n.Temp {
		return pgerror.Unsupported("TEMPORARY view")
	}
	if exists == nil || !n.OrReplace {
		if skip, err := taken(exists, n.IfNotExists, w); skip || err != nil {
			return err
		}
	}
	q, sql, err := s.boundView(p, &n.Query)
	if err != nil {
		return err
	}
	cols, err := viewColumns(q, n.Columns)
	if err != nil {
		return err
	}
	o := &catalog.Object{Schema: schema, Name: n.Name.Name, Kind: catalog.KindView, Columns: cols, Query: sql, Deps: q.Deps}
	o.SQL = fmt.Sprintf("CREATE VIEW %s.%s%s AS %s", quoteName(schema), quoteName(o.Name), columnList(n.Columns), sql)
	return s.putView(d, o, exists)
}

func columnList(names []string) string {
	if len(names) == 0 {
		return ""
	}
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = quoteName(n)
	}
	return " (" + strings.Join(out, ", ") + ")"
}

// putView adds a view, or replaces one of the same kind in its place: what uses
// it is planned anew.
func (s *Session) putView(d *ddlState, o *catalog.Object, exists *catalog.Object) error {
	if exists == nil {
		n, err := s.c.newObject(o)
		if err == nil {
			d.apply(catalog.Change{Put: n})
		}
		return err
	}
	if exists.Kind != o.Kind {
		return pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a %s", exists.Name, o.Kind)
	}
	if err := replaceable(exists, o); err != nil && (o.Kind == catalog.KindView || len(d.cat.Users(exists.ID)) > 0) {
		return err
	}
	o.ID, o.OID, o.Comment = exists.ID, exists.OID, exists.Comment
	d.apply(catalog.Change{Put: o})
	for _, u := range d.cat.Closure(o.ID) {
		if u.Kind == catalog.KindMaterializedView || u.Kind == catalog.KindIndex {
			d.rebuilt[u.ID] = true
		}
	}
	for _, dep := range o.Deps {
		if dep == o.ID {
			return pgerror.New(pgerror.InvalidObjectDefinition, "infinite recursion detected in view \"%s\"", o.Name)
		}
	}
	return nil
}

// replaceable checks that a view keeps its columns, to which others may refer.
func replaceable(old, n *catalog.Object) error {
	if len(n.Columns) < len(old.Columns) {
		return pgerror.New(pgerror.InvalidTableDefinition, "cannot drop columns from view")
	}
	for i, c := range old.Columns {
		if c.Name != n.Columns[i].Name {
			return pgerror.New(pgerror.InvalidTableDefinition, "cannot change name of view column \"%s\" to \"%s\"", c.Name, n.Columns[i].Name).
				WithHint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.")
		}
		if c.Type != n.Columns[i].Type {
			return pgerror.New(pgerror.InvalidTableDefinition, "cannot change data type of view column \"%s\" from %s to %s", c.Name, typeName(c.Type), typeName(n.Columns[i].Type))
		}
	}
	return nil
}

func (s *Session) createMaterializedView(d *ddlState, p *prepared, n *parser.CreateMaterializedView, w pgwire.ResultWriter) error {
	schema, exists, err := s.target(d, catalog.KindMaterializedView, n.Name)
	if err != nil {
		return err
	}
	if exists == nil || !n.OrReplace {
		if skip, err := taken(exists, n.IfNotExists, w); skip || err != nil {
			return err
		}
	}
	if n.EmitOnWindowClose {
		return pgerror.Unsupported("EMIT ON WINDOW CLOSE")
	}
	q, sql, err := s.boundView(p, &n.Query)
	if err != nil {
		return err
	}
	cols, err := viewColumns(q, n.Columns)
	if err != nil {
		return err
	}
	cl, err := s.clusterName(d, n.Cluster)
	if err != nil {
		return err
	}
	o := &catalog.Object{Schema: schema, Name: n.Name.Name, Kind: catalog.KindMaterializedView, Columns: cols, Query: sql, Deps: q.Deps, Cluster: cl}
	if err := s.planView(o, q); err != nil {
		return err
	}
	in := ""
	if cl != defaultCluster {
		in = " IN CLUSTER " + quoteName(cl)
	}
	o.SQL = fmt.Sprintf("CREATE MATERIALIZED VIEW %s.%s%s%s AS %s", quoteName(schema), quoteName(o.Name), columnList(n.Columns), in, sql)
	return s.putView(d, o, exists)
}

// clusterName is the cluster that a view is placed on.
func (s *Session) clusterName(d *ddlState, name string) (string, error) {
	if name == "" {
		name, _ = s.set.get("cluster")
	}
	if name == "" || name == defaultCluster {
		return defaultCluster, nil
	}
	if d.cat.Get(catalog.KindCluster, "", name) == nil {
		return "", pgerror.New(pgerror.UndefinedObject, "unknown cluster \"%s\"", name)
	}
	return name, nil
}

// planView checks that a view can be maintained, and finds the key of its result.
func (s *Session) planView(o *catalog.Object, q *planner.Query) error {
	o.Rows = map[plan.ObjectID]float64{}
	rel, err := planner.Optimize(q.Collection(), planner.Options{Maintained: true, Rows: func(id plan.ObjectID) float64 {
		n := s.c.estimateRows(id)
		o.Rows[id] = n
		return n
	}})
	if err != nil {
		return err
	}
	var volatile error
	plan.Walk(rel, func(r plan.Rel) bool {
		plan.Exprs(r, func(e expr.Expr) {
			if name := timeFunction(e); name != "" && volatile == nil {
				volatile = pgerror.New(pgerror.FeatureNotSupported, "%s is not supported in a maintained view", name).
					WithHint("A view that is kept up to date changes with its inputs, not with the time of its creation.")
			}
			if v := expr.VolatilityOf(e); v == expr.Volatile && volatile == nil {
				volatile = pgerror.New(pgerror.InvalidObjectDefinition, "volatile functions are not allowed in a maintained view").
					WithHint("The result of a function like random() has no meaning in a view that is kept up to date.")
			}
		})
		return true
	})
	if volatile != nil {
		return volatile
	}
	if _, err := render.Render(rel, render.Options{Partitions: 1, Context: &expr.Context{Location: zoneUTC, Database: databaseName}}); err != nil {
		return err
	}
	o.AppendOnly = false
	for _, k := range plan.Keys(rel) {
		if len(k) > 0 && (o.Key == nil || len(k) < len(o.Key)) {
			o.Key = k
		}
	}
	return nil
}

// timeFunction names the first function in e that tells the time, "" if there
// is none.
func timeFunction(e expr.Expr) (name string) {
	expr.Walk(e, func(x expr.Expr) bool {
		if c, ok := x.(*expr.Call); ok {
			switch c.Fn.Name {
			case "now", "transaction_timestamp", "statement_timestamp", "clock_timestamp", "current_timestamp", "current_date",
				"current_time", "localtimestamp", "localtime", "timeofday", "mz_now":
				name = c.Fn.Name + "()"
			}
		}
		return name == ""
	})
	return name
}

func (s *Session) createIndex(d *ddlState, n *parser.CreateIndex, w pgwire.ResultWriter) error {
	t := d.cat.Resolve(catalog.KindTable, n.On.Schema, n.On.Name, s.relationPath())
	if t == nil {
		return undefinedRelation(n.On.Schema, n.On.Name)
	}
	if t.Kind == catalog.KindIndex || t.Kind == catalog.KindVirtual {
		return pgerror.New(pgerror.WrongObjectType, "cannot create index on relation \"%s\"", t.Name)
	}
	var key []int
	for _, k := range n.Keys {
		if k.Column == "" {
			return pgerror.Unsupported("index on an expression")
		}
		c := slices.IndexFunc(t.Columns, func(x catalog.Column) bool { return x.Name == k.Column })
		if c < 0 {
			return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" does not exist", k.Column)
		}
		if !slices.Contains(key, c) {
			key = append(key, c)
		}
	}
	if len(key) == 0 { // DEFAULT INDEX
		if key = collectionKey(t); len(key) == 0 {
			for i := range t.Columns {
				key = append(key, i)
			}
		}
	}
	if n.Where != nil {
		return pgerror.Unsupported("partial index")
	}
	name := n.Name.Name
	if name == "" {
		name = indexName(d.cat, t, key)
	}
	exists := d.cat.Get(catalog.KindIndex, t.Schema, name)
	if skip, err := taken(exists, n.IfNotExists, w); skip || err != nil {
		return err
	}
	cl, err := s.clusterName(d, n.Cluster)
	if err != nil {
		return err
	}
	o := &catalog.Object{Schema: t.Schema, Name: name, Kind: catalog.KindIndex, Columns: t.Columns, Table: t.ID, Key: key, Deps: []plan.ObjectID{t.ID}, Cluster: cl}
	if t.Kind == catalog.KindView {
		q, err := planner.BindQuery(s.bindContext(nil), t.Query, mustQuery(t.Query))
		if err != nil {
			return err
		}
		if err := s.planView(&catalog.Object{}, q); err != nil {
			return err
		}
	}
	cols := make([]string, len(key))
	for i, k := range key {
		cols[i] = quoteName(t.Columns[k].Name)
	}
	unique := ""
	if n.Unique {
		unique = "UNIQUE "
		if t.Kind != catalog.KindTable {
			return pgerror.Unsupported("unique index on a " + t.Kind.String())
		}
		nt := *t
		nt.Unique = append(slices.Clone(t.Unique), key)
		if err := s.verifyUnique(&nt, key); err != nil {
			return err
		}
		d.apply(catalog.Change{Put: &nt})
	}
	o.SQL = fmt.Sprintf("CREATE %sINDEX %s ON %s.%s USING btree (%s)", unique, quoteName(name), quoteName(t.Schema), quoteName(t.Name), strings.Join(cols, ", "))
	if o, err = s.c.newObject(o); err != nil {
		return err
	}
	d.apply(catalog.Change{Put: o})
	return nil
}

// mustQuery parses the stored query of a view.
func mustQuery(sql string) *parser.Query {
	q, err := parser.ParseQuery(sql)
	if err != nil {
		panic(fmt.Sprintf("stored query does not parse: %v", err))
	}
	return &q
}

// verifyUnique checks that the present rows of a table satisfy a new key.
func (s *Session) verifyUnique(t *catalog.Object, key []int) error {
	count := map[string]int64{}
	coll := s.c.collection(t.ID)
	if coll == nil {
		return nil
	}
	sn, err := snapshotTrace(coll.rows, s.c.timeline.ingest.done.get())
	if err != nil || sn == nil {
		return err
	}
	defer sn.Release()
	dup := false
	sn.Scan(func(d *dataflow.Delta) bool {
	rows:
		for i := range d.N {
			var enc []byte
			for _, c := range key {
				if d.Cols[c].Null(i) {
					continue rows
				}
				enc = types.AppendSortKey(enc, t.Columns[c].Type, d.Cols[c], i)
			}
			count[string(enc)] += d.Diff(i)
		}
		return true
	})
	for _, n := range count {
		dup = dup || n > 1
	}
	if dup {
		return pgerror.New(pgerror.UniqueViolation, "could not create unique index on \"%s\"", t.Name).
			WithDetail("The table has duplicate keys.")
	}
	return nil
}

// indexName makes a name as PostgreSQL does: table_columns_idx, with a number
// if that is taken.
func indexName(cat *catalog.Snapshot, t *catalog.Object, key []int) string {
	base := t.Name
	for _, k := range key {
		base += "_" + t.Columns[k].Name
	}
	base = base[:min(len(base), 55)]
	name := base + "_idx"
	for i := 1; cat.Get(catalog.KindIndex, t.Schema, name) != nil; i++ {
		name = fmt.Sprintf("%s_idx%d", base, i)
	}
	return name
}

func (s *Session) createSchema(d *ddlState, n *parser.CreateSchema, w pgwire.ResultWriter) error {
	name := n.Name.Name
	if d.cat.Schema(name) != nil {
		e := pgerror.New(pgerror.DuplicateSchema, "schema \"%s\" already exists", name)
		if n.IfNotExists {
			e.Severity, e.Message = "NOTICE", e.Message+", skipping"
			w.Notice(e)
			return nil
		}
		return e
	}
	if strings.HasPrefix(name, "pg_") {
		return pgerror.New(pgerror.ReservedName, "unacceptable schema name \"%s\"", name).
			WithDetail("The prefix \"pg_\" is reserved for system schemas.")
	}
	id, err := s.c.store.AllocateIDs(1)
	if err != nil {
		return diskError(err)
	}
	d.apply(catalog.Change{PutSchema: &catalog.Schema{Name: name, OID: uint32(firstUserOID + id)}})
	return nil
}

func (s *Session) createCluster(d *ddlState, n *parser.CreateCluster, w pgwire.ResultWriter) error {
	var exists *catalog.Object
	if n.Name == defaultCluster {
		exists = &catalog.Object{Name: n.Name, Kind: catalog.KindCluster}
	} else {
		exists = d.cat.Get(catalog.KindCluster, "", n.Name)
	}
	if skip, err := taken(exists, n.IfNotExists, w); skip || err != nil {
		return err
	}
	for _, o := range n.Options {
		if o.Name == "engine" {
			return pgerror.Unsupported("ENGINE of a cluster")
		}
	}
	o, err := s.c.newObject(&catalog.Object{Name: n.Name, Kind: catalog.KindCluster, SQL: "CREATE CLUSTER " + quoteName(n.Name)})
	if err == nil {
		d.apply(catalog.Change{Put: o})
	}
	return err
}
