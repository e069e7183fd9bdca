package coord

import (
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// databaseName is the name of the database for whom no client has named it: views,
// and connections without one.
const databaseName = "streamdb"

var zoneUTC = time.UTC

// defaultPartitions is a power of two of at least 4 and twice the cores.
func defaultPartitions() int {
	n := 4
	for n < 2*runtime.GOMAXPROCS(0) {
		n *= 2
	}
	return n
}

// makeCollection is createCollection for a new object, which may have content
// from the start.
func (c *Coordinator) makeCollection(o *catalog.Object) error {
	_, err := c.createCollection(o)
	if err == nil && o.Index != nil {
		c.fillKeyIndex(o)
	}
	return err
}

// createCollection makes the collection of an object that has one: a table, a
// source's relation, a materialized view, an index, a sink; nil for others.
func (c *Coordinator) createCollection(o *catalog.Object) (*collection, error) {
	kinds := kindsOf(o.Columns)
	for _, x := range o.Exprs {
		kinds = append(kinds, x.Type.Kind())
	}
	key := collectionKey(o)
	var coll *collection
	switch o.Kind {
	case catalog.KindTable:
		coll = newCollection(o.ID, kinds, key, o.AppendOnly, c.partitions, c.timeline.ingest)
		coll.setReady()
	case catalog.KindSource:
		if len(o.Columns) == 0 {
			return nil, nil
		}
		coll = newCollection(o.ID, kinds, key, o.AppendOnly, c.partitions, c.timeline.ingest)
		if envelopeOf(o) == sources.EnvelopeUpsert {
			c.mu.Lock()
			c.upserts[o.ID] = c.newUpsert(kinds, o.PrimaryKey)
			c.mu.Unlock()
		}
	case catalog.KindSink:
		if o.Discards {
			return nil, nil
		}
		if o.Sink == nil { // what one has delivered
			coll = newCollection(o.ID, kinds, key, false, c.partitions, c.timeline.ingest)
			coll.setReady()
			break
		}
		coll = c.newViewCollection(o, kinds, key)
		coll.watch = &watch{wake: make(chan struct{}, 1)}
	case catalog.KindMaterializedView, catalog.KindIndex:
		if o.Index != nil {
			var err error
			if coll, err = c.newKeyIndex(o, kinds, key); err != nil {
				return nil, err
			}
		} else {
			coll = c.newViewCollection(o, kinds, key)
		}
	default:
		return nil, nil
	}
	if !c.recovering {
		// Nothing is known of it before the epoch that makes it.
		coll.readyAt.Store(uint64(c.timeline.last))
	}
	c.mu.Lock()
	c.collections[o.ID] = coll
	c.mu.Unlock()
	return coll, nil
}

// collectionKey is the key that an object's collection is arranged by: that of
// an index, the primary key of a table, the unique key of a view's result; all
// columns where there is none; none for what only grows.
func collectionKey(o *catalog.Object) []int {
	switch {
	case o.Kind == catalog.KindIndex:
		key := slices.Clone(o.Key)
		for i, k := range key {
			if x, ok := catalog.ExprOf(k); ok { // after the columns
				key[i] = len(o.Columns) + x
			}
		}
		return key
	case o.AppendOnly:
		return nil
	case len(o.Key) > 0:
		return o.Key
	case len(o.PrimaryKey) > 0:
		return o.PrimaryKey
	}
	key := make([]int, len(o.Columns))
	for i := range key {
		key[i] = i
	}
	return key
}

// forget removes an object's collection and dataflow. It runs in the timeline,
// which leaves the dataflow to its cluster's loop, or in recovery.
func (c *Coordinator) forget(o *catalog.Object) {
	c.mu.Lock()
	coll := c.collections[o.ID]
	delete(c.collections, o.ID)
	delete(c.upserts, o.ID)
	if c.catalog.Load().ByID(o.ID) == nil {
		delete(c.sequences, o.ID)
		delete(c.loggedSequences, o.ID)
	}
	h := c.hydrations[o.ID]
	c.mu.Unlock()
	delete(c.positions, o.ID)
	if o.Index != nil {
		c.forgetKeyIndex(o)
	}
	if h != nil {
		h.stop()
	}
	if coll == nil {
		return
	}
	cl := coll.stage.loop
	if cl == nil { // of ingestion
		coll.setDropped()
		return
	}
	drop := func(dataflow.Epoch) {
		cl.detach(o.ID)
		coll.setDropped()
	}
	if c.recovering {
		drop(0)
		return
	}
	// Before the epoch that drops it, whose own changes are still to be told.
	cl.notify(epochChanges{epoch: c.timeline.ingest.done.get(), rows: changeMap{}, errs: changeMap{}, barrier: drop})
}

// bindContext is what the queries of views are bound in: their names are
// qualified, and they depend on no session.
func (c *Coordinator) bindContext(cat *catalog.Snapshot) *planner.Context {
	return &planner.Context{Catalog: cat, Database: databaseName, SearchPath: []string{catalog.SchemaPublic}}
}

// viewPlan is the optimized plan of a materialized view, an index or a sink's query.
func (c *Coordinator) viewPlan(cat *catalog.Snapshot, o *catalog.Object) (plan.Rel, error) {
	query := o.Query
	if o.Kind == catalog.KindIndex {
		t := cat.ByID(o.Table)
		if t == nil {
			return nil, pgerror.New(pgerror.UndefinedTable, "the relation of index %q is gone", o.Name)
		}
		query = indexQuery(t, o)
	}
	stmts, err := parser.Parse(query)
	if err != nil {
		return nil, err
	}
	b, err := planner.Bind(c.bindContext(cat), &stmts[0])
	if err != nil {
		return nil, err
	}
	q, ok := b.(*planner.Query)
	if !ok {
		return nil, pgerror.New(pgerror.WrongObjectType, "the definition of %q is not a query", o.Name)
	}
	return planner.Optimize(q.Collection(), planner.Options{Maintained: true, Rows: func(id plan.ObjectID) float64 {
		if n, ok := o.Rows[id]; ok {
			return n
		}
		return -1
	}})
}

// estimateRows is the present size of a collection, for the planner.
func (c *Coordinator) estimateRows(id plan.ObjectID) float64 {
	if coll := c.collection(id); coll != nil {
		return float64(coll.rowCount.Load())
	}
	return -1
}

// flowOf plans and renders the dataflow of a view, an index or a sink.
func (c *Coordinator) flowOf(o *catalog.Object, coll *collection) (*flow, error) {
	rel, err := c.viewPlan(c.catalog.Load(), o)
	if err != nil {
		return nil, err
	}
	var less *plan.Get
	if o.Sink != nil {
		less = &plan.Get{ID: o.Sink.Delivered, Name: "delivered", Cols: rel.Columns()}
	}
	return c.newFlow(o.ID, rel, less, coll)
}

// quoteName writes an identifier so that it reads back as itself.
func quoteName(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// resolveOptions replaces references to secrets by their values.
func (c *Coordinator) resolveOptions(cat *catalog.Snapshot, opts map[string]string) (map[string]string, error) {
	out := make(map[string]string, len(opts))
	for k, v := range opts {
		name, isSecret := strings.CutPrefix(v, secretRef)
		if !isSecret {
			out[k] = strings.TrimPrefix(v, literalRef)
			continue
		}
		schema, nm, _ := strings.Cut(name, "\x00")
		s := cat.Get(catalog.KindSecret, schema, nm)
		if s == nil {
			return nil, pgerror.New(pgerror.UndefinedObject, "secret %q does not exist", nm)
		}
		b, err := c.store.Secret(uint64(s.ID))
		if err != nil {
			return nil, err
		}
		out[k] = string(b)
	}
	return out, nil
}

// Option values are stored with a prefix that tells a literal from a reference
// to a secret, so that no text can pass for one.
const (
	literalRef = "="
	secretRef  = "secret:"
)
