package coord

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/storage"
)

// recover brings the database to where the last run's log ends: the catalog and
// the state of the last checkpoint, and the log's records after it.
func (c *Coordinator) recover() error {
	p := &c.ckpt
	p.due = make(chan struct{}, 1)
	p.written = map[plan.ObjectID]*storage.ObjectState{}
	p.sizes = map[storage.BlockID]int64{}
	cat, err := c.loadCatalog()
	if err != nil {
		return err
	}
	p.catalog = cat
	c.catalog.Store(cat)
	if err := c.loadSequences(); err != nil {
		return err
	}
	p.sequences = c.sequencesAt()
	c.timeline.last = max(c.store.EpochHighWater(), 1)
	cp := c.store.Checkpoint()
	after := dataflow.Epoch(0)
	if cp != nil {
		after = cp.Epoch
		for i := range cp.Objects {
			st := &cp.Objects[i]
			p.written[plan.ObjectID(st.Object)] = st
			for _, part := range st.Parts {
				for _, b := range part.Blocks {
					p.sizes[b.ID] = b.Bytes
				}
			}
		}
		for id, ps := range cp.Sources {
			pos := sources.Position{}
			for part, o := range ps {
				pos[part] = o.Offset
			}
			c.positions[plan.ObjectID(id)] = pos
		}
	}
	for _, o := range c.inOrder(cat) {
		if err := c.restore(o, p.written[o.ID], after); err != nil {
			return fmt.Errorf("%s %s.%s: %w", o.Kind, o.Schema, o.Name, err)
		}
	}
	c.reached(after)
	if err := c.store.Replay(after, func(rec storage.LogRecord) error {
		r, err := decodeRecord(rec.Payload)
		if err != nil {
			return fmt.Errorf("epoch %d: %w", rec.Epoch, err)
		}
		return c.replay(rec.Epoch, r)
	}); err != nil {
		return err
	}
	if err := c.replayed(); err != nil {
		return err
	}
	c.reached(c.timeline.last)
	for id := range c.sequences { // of transactions that did not commit
		if c.catalog.Load().ByID(id) == nil {
			delete(c.sequences, id)
			delete(c.loggedSequences, id)
		}
	}
	return c.hydrateMissing()
}

// reached says that all stages have got to an epoch.
func (c *Coordinator) reached(e dataflow.Epoch) {
	c.timeline.last = max(c.timeline.last, e)
	c.timeline.ingest.done.set(e)
	c.timeline.durable.set(e)
	for _, cl := range c.clusters {
		cl.done.set(e)
	}
}

func (c *Coordinator) loadCatalog() (*catalog.Snapshot, error) {
	var changes []catalog.Change
	if err := c.store.ScanCatalog(catalogSchemas, func(_ string, v []byte) error {
		s := &catalog.Schema{}
		changes = append(changes, catalog.Change{PutSchema: s})
		return json.Unmarshal(v, s)
	}); err != nil {
		return nil, err
	}
	if err := c.store.ScanCatalog(catalogObjects, func(_ string, v []byte) error {
		o := &catalog.Object{}
		changes = append(changes, catalog.Change{Put: o})
		return json.Unmarshal(v, o)
	}); err != nil {
		return nil, err
	}
	return c.baseCatalog().Apply(changes...), nil
}

// inOrder lists the objects in dependency order.
func (c *Coordinator) inOrder(cat *catalog.Snapshot) []*catalog.Object {
	rank := c.ranks()
	objs := slices.Clone(cat.Objects())
	slices.SortStableFunc(objs, func(a, b *catalog.Object) int { return rank[a.ID] - rank[b.ID] })
	return objs
}

// restore makes an object's collection, and a view's dataflow, from their
// checkpointed state. A view without usable state is hydrated later.
func (c *Coordinator) restore(o *catalog.Object, st *storage.ObjectState, at dataflow.Epoch) error {
	coll, err := c.createCollection(o)
	if err != nil || coll == nil {
		return err
	}
	if coll.stage == c.timeline.ingest {
		if st == nil {
			return nil
		}
		if st.Fingerprint != c.tableFingerprint(coll) {
			return fmt.Errorf("its stored form %q is not the one that the catalog asks for, %q", st.Fingerprint, c.tableFingerprint(coll))
		}
		spines := coll.spines()
		u := c.upserts[o.ID]
		if u != nil {
			spines = append(spines, u.circuit.Spines()...)
		}
		if err := c.restoreSpines(spines, st); err != nil {
			return err
		}
		if u != nil {
			u.circuit.Restored(at)
		}
		return coll.restored(at, st.Meta)
	}
	if st == nil {
		return nil
	}
	f, err := c.flowOf(o, coll)
	if err != nil {
		return err
	}
	if st.Fingerprint != f.fingerprint {
		c.log.Info("state is of another plan: hydrating", slog.String("view", o.Name))
		f.df.close()
		return nil
	}
	for _, id := range f.df.imports() {
		if in := c.collection(id); in == nil || in.stage != c.timeline.ingest && !in.isReady() {
			f.df.close() // what it was computed from is computed anew
			return nil
		}
	}
	if err := c.restoreSpines(append(coll.spines(), f.df.circuit.Spines()...), st); err != nil {
		return err
	}
	f.df.circuit.Restored(at)
	if err := coll.restored(at, st.Meta); err != nil {
		return err
	}
	f.at = at
	cl := coll.stage.loop
	cl.done.set(at)
	if !cl.attach(f, c.importsOf(f)) {
		return fmt.Errorf("the inputs of the view %q cannot be read at epoch %d", o.Name, at)
	}
	return nil
}

func (c *Coordinator) restoreSpines(spines []*trace.Spine, st *storage.ObjectState) error {
	if len(spines) != len(st.Parts) {
		return fmt.Errorf("the checkpoint has %d spines where the plan has %d", len(st.Parts), len(spines))
	}
	for i, part := range st.Parts {
		var bs []*trace.Batch
		for _, ref := range part.Blocks {
			b, err := c.openBatch(ref.ID)
			if err != nil {
				return err
			}
			bs = append(bs, b)
		}
		spines[i].Restore(bs)
	}
	return nil
}

// restored completes a restored collection up to at.
func (c *collection) restored(at dataflow.Epoch, meta []byte) error {
	var m stateMeta
	if err := json.Unmarshal(meta, &m); err != nil {
		return fmt.Errorf("state description: %w", err)
	}
	c.rows.Seal(at)
	c.errs.Seal(at)
	c.rowCount.Store(m.Rows)
	c.errCount.Store(m.Errs)
	c.records.Store(m.Records)
	if m.Ready {
		c.setReady()
	}
	return nil
}

// replayRows is how many rows of the log the dataflows take in one step.
const replayRows = 1 << 18

// replay applies a log record. The dataflows follow in steps of many epochs, so that
// a start costs what has changed since the checkpoint, not each change.
func (c *Coordinator) replay(e dataflow.Epoch, r *record) error {
	if len(r.catalog) > 0 {
		if err := c.replayed(); err != nil {
			return err
		}
		if err := c.replayCatalog(r.catalog); err != nil {
			return err
		}
	}
	c.timeline.last = e
	c.applyIngest(e, r, c.readable())
	c.timeline.ingest.done.set(e)
	c.timeline.durable.set(e)
	c.ckpt.dirty.Store(true)
	for _, ch := range r.changes {
		if ch.delta != nil {
			c.ckpt.unread += ch.delta.N
		}
	}
	if c.ckpt.unread < replayRows {
		return nil
	}
	return c.replayed()
}

// replayed brings the dataflows to where the replay is.
func (c *Coordinator) replayed() error {
	c.ckpt.unread = 0
	e := c.timeline.ingest.done.get()
	for _, cl := range c.clusterList() {
		if cl.done.get() >= e {
			continue
		}
		ec := epochChanges{epoch: e}
		if err := cl.complete(c.ctx, &ec, true); err != nil {
			return err
		}
		cl.step(ec)
	}
	return nil
}

// replayCatalog applies catalog changes of the log: it makes the collections of
// what they create and removes those of what they drop.
func (c *Coordinator) replayCatalog(changes []catalog.Change) error {
	before := c.catalog.Load()
	cat := before.Apply(changes...)
	c.catalog.Store(cat)
	for _, ch := range changes {
		if o := before.ByID(ch.Drop); o != nil {
			c.forget(o)
		}
		if o := before.ByID(ch.Rebuild); o != nil {
			c.forget(o)
		}
	}
	for _, ch := range changes {
		if o := cat.ByID(ch.Rebuild); o != nil && c.collection(o.ID) == nil {
			if err := c.makeCollection(o); err != nil {
				return err
			}
		}
		if ch.Put == nil || cat.ByID(ch.Put.ID) == nil {
			continue
		}
		if c.collection(ch.Put.ID) == nil {
			if err := c.makeCollection(cat.ByID(ch.Put.ID)); err != nil {
				return err
			}
		}
	}
	return nil
}

// hydrateMissing prepares the hydration of every view that has no dataflow.
func (c *Coordinator) hydrateMissing() error {
	attached := map[plan.ObjectID]bool{}
	for _, cl := range c.clusters {
		for _, f := range cl.flows {
			attached[f.id] = true
		}
	}
	for _, o := range c.inOrder(c.catalog.Load()) {
		coll := c.collection(o.ID)
		if coll == nil || coll.stage == c.timeline.ingest || attached[o.ID] {
			continue
		}
		f, err := c.flowOf(o, coll)
		if err != nil {
			c.log.Error("view cannot be planned", slog.String("view", o.Name), slog.Any("error", err))
			coll.failed.CompareAndSwap(nil, &err)
			coll.setReady()
			continue
		}
		c.hydrate(coll.stage.loop, f)
	}
	return nil
}
