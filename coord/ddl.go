package coord

import (
	"context"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// firstUserOID is where PostgreSQL's user objects begin.
const firstUserOID = 16384

// execDDL runs a statement that changes the catalog.
func (s *Session) execDDL(ctx context.Context, p *prepared, w pgwire.ResultWriter) (string, error) {
	d, err := s.beginDDL(ctx)
	if err != nil {
		return "", err
	}
	before, from := d.cat, len(d.changes)
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
		err = s.createIndex(d, p, n, w)
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
	case *parser.CreateSink:
		err = s.createSink(d, p, n, w)
	case *parser.CreateTableFromSource:
		err = pgerror.Unsupported("CREATE TABLE ... FROM a source").
			WithHint("CREATE SOURCE ... FOR TABLES (name AS table, ...) makes the tables together with the source.")
	case *parser.CreateSubscription:
		err = s.createSubscription(d, n, w)
	case *parser.Drop:
		err = s.drop(d, n, w)
	case *parser.Alter:
		err = s.alter(ctx, d, p, n, w)
	case *parser.CommentOn:
		err = s.comment(d, n)
	case *parser.Postgres:
		tag, err = s.postgresDDL(d, p, n, w)
	default:
		err = pgerror.Unsupported(tag)
	}
	if err == nil {
		err = s.checkDependents(d, before, from)
	}
	if err == nil {
		s.replan(d, before, from)
		_, err = sinkOrder(d.cat)
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
		if o := d.cat.ByID(id); o != nil {
			r.catalog = append(r.catalog, catalog.Change{Rebuild: id, Temporary: o.Temporary})
		}
	}
	created := createdObjects(before, d)
	r.atEpoch = func(dataflow.Epoch) {
		c.catalog.Store(d.cat)
		for _, o := range before.Objects() {
			if d.cat.ByID(o.ID) == nil || d.rebuilt[o.ID] {
				c.forget(o)
			}
		}
		for _, o := range created {
			if err := c.makeCollection(o); err != nil {
				c.log.Error("collection of a new object", "object", o.Name, "error", err)
			}
		}
	}
	d.after = append(d.after, func(ctx context.Context) {
		for _, o := range before.Objects() {
			if o.Kind == catalog.KindSource && d.cat.ByID(o.ID) == nil {
				c.stopSource(ctx, o.ID)
			}
			if o.Sink != nil && d.cat.ByID(o.ID) == nil {
				c.stopSink(o.ID)
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
		case catalog.KindMaterializedView, catalog.KindIndex, catalog.KindSink:
			coll := c.collection(o.ID)
			if coll == nil || !o.Maintained() {
				continue
			}
			if o.Sink != nil {
				c.startSink(o.ID)
			}
			f, err := c.flowOf(o, coll)
			if err != nil {
				coll.failed.CompareAndSwap(nil, &err)
				coll.setReady()
				continue
			}
			h := c.hydrate(coll.stage.loop, f)
			c.tasks.Go(h.run)
		}
	}
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

// targetIn is target for what may be temporary.
func (s *Session) targetIn(d *ddlState, k catalog.Kind, n parser.Name, temp bool) (schema string, exists *catalog.Object, err error) {
	if n.Schema == catalog.SchemaTemp || n.Schema == s.tempSchema {
		temp, n.Schema = true, ""
	}
	if !temp {
		return s.target(d, k, n)
	}
	if n.Schema != "" {
		return "", nil, pgerror.New(pgerror.InvalidTableDefinition, "cannot create temporary relation in non-temporary schema").At(n.Pos)
	}
	if err := s.makeTemp(d); err != nil {
		return "", nil, err
	}
	return s.tempSchema, d.cat.Get(k, s.tempSchema, n.Name), freeTypeName(d.cat, k, s.tempSchema, n.Name)
}

// target decides the schema of a new object and whether the name is free.
// exists is the object that has it.
func (s *Session) target(d *ddlState, k catalog.Kind, n parser.Name) (schema string, exists *catalog.Object, err error) {
	if n.Database != "" && n.Database != s.database {
		return "", nil, pgerror.New(pgerror.FeatureNotSupported, "cross-database references are not implemented: \"%s.%s.%s\"", n.Database, n.Schema, n.Name).At(n.Pos)
	}
	schema = n.Schema
	if schema == "" {
		for _, p := range s.userPath() {
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
	return schema, d.cat.Get(k, schema, n.Name), freeTypeName(d.cat, k, schema, n.Name)
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
