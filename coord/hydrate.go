package coord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
	"github.com/streamdb/streamdb/dataflow/render"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// stateFormat is part of every fingerprint: raise it when operators lay out
// their state differently, and old state is computed anew instead of misread.
const stateFormat = 1

// hydrationRows and hydrationBytes bound one step of a hydration.
const (
	hydrationRows  = 1 << 18
	hydrationBytes = 128 << 20
)

// hydration brings a new dataflow from nothing to the present in the
// background: the snapshot of its imports at one epoch, then what has changed
// since, until its cluster can take it over.
type hydration struct {
	c    *Coordinator
	cl   *cluster
	flow *flow

	rows  atomic.Int64 // read so far
	total atomic.Int64 // rows of the snapshot
	epoch atomic.Uint64
	stop  context.CancelFunc
	ctx   context.Context
}

// fingerprint identifies the state of a plan.
func (c *Coordinator) fingerprint(rel plan.Rel, key []int) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%d/%d/%v\n%s", stateFormat, c.partitions, key, plan.Format(rel)))
	return hex.EncodeToString(h[:12])
}

// newFlow renders the dataflow of a view, an index or a sink; less is nil, or what a
// sink has delivered of its query.
func (c *Coordinator) newFlow(id plan.ObjectID, rel plan.Rel, less *plan.Get, out *collection) (*flow, error) {
	df, err := render.Render(rel, render.Options{
		Less:       less,
		Partitions: c.partitions,
		Exec:       c.exec,
		Context:    &expr.Context{Location: zoneUTC, Database: databaseName},
		Arranged:   func(id plan.ObjectID, key []int) *trace.Trace { return c.arranged(out.stage, id, key) },
	})
	if err != nil {
		return nil, err
	}
	return &flow{id: id, df: newInstance(df), out: out, fingerprint: c.fingerprint(rel, out.key)}, nil
}

// arranged is the published arrangement of a collection by a key, for the
// dataflows of a stage to share; nil if there is none. What it is depends on the
// catalog alone: a restart finds the same. (An index is not offered, since it can
// be dropped while the view stays.)
func (c *Coordinator) arranged(of *stage, id plan.ObjectID, key []int) *trace.Trace {
	in := c.collection(id)
	if in == nil || in.stage != c.timeline.ingest && in.stage != of || !slices.Equal(in.key, key) || len(in.rows.Spines()) != c.partitions {
		return nil
	}
	return in.rows
}

// hydrate starts the hydration of a flow.
func (c *Coordinator) hydrate(cl *cluster, f *flow) *hydration {
	h := &hydration{c: c, cl: cl, flow: f}
	h.ctx, h.stop = context.WithCancel(c.ctx)
	c.mu.Lock()
	c.hydrations[f.id] = h
	c.hydrated.Add(1)
	c.mu.Unlock()
	return h
}

// run hydrates until the cluster has taken the flow over.
func (h *hydration) run() {
	err := h.attempt()
	h.c.mu.Lock()
	delete(h.c.hydrations, h.flow.id)
	h.c.mu.Unlock()
	if err == nil {
		return
	}
	h.flow.df.close()
	if h.ctx.Err() == nil {
		h.c.log.Error("hydration failed", slog.Uint64("object", uint64(h.flow.id)), slog.Any("error", err))
		h.flow.failed = true
		h.flow.out.failed.CompareAndSwap(nil, &err)
		h.flow.out.setReady()
	}
}

func (h *hydration) attempt() (err error) {
	defer func() {
		if r := recover(); r != nil {
			h.c.log.Error("hydration panicked", slog.Any("panic", r), slog.String("stack", string(debug.Stack())))
			err = pgerror.New(pgerror.InternalError, "the dataflow of this view has failed: %v", r)
		}
	}()
	var ins []*pin
	defer func() {
		for _, in := range ins {
			in.release()
		}
	}()
	for _, id := range h.flow.df.imports() {
		coll := h.c.collection(id)
		if coll == nil {
			return fmt.Errorf("imported object %d is gone", id)
		}
		if err := coll.await(h.ctx, 0); err != nil {
			return err
		}
		ins = append(ins, &pin{coll: coll})
	}
	at, err := pinLatest(h.ctx, h.c, ins, 0)
	if err != nil {
		return err
	}
	if err := h.feedSnapshot(ins, at); err != nil {
		return err
	}
	for {
		// What came meanwhile is read in one go, up to an epoch from which all
		// later ones are kept: the cluster can take over at any of them.
		next := make([]*pin, len(ins))
		for i, in := range ins {
			next[i] = &pin{coll: in.coll, from: true}
		}
		e, err := pinLatest(h.ctx, h.c, next, at)
		if err == nil {
			err = h.catchUp(ins, e)
		}
		for i, in := range ins {
			in.release()
			ins[i] = next[i]
		}
		if err != nil {
			return err
		}
		at = e
		if err := h.cl.done.wait(h.ctx, e); err != nil {
			return err
		}
		if done, err := h.tryAttach(ins); done || err != nil {
			return err
		}
	}
}

// feedSnapshot steps the flow through its imports' content at epoch at, in
// parts, so that memory is bounded by a part.
func (h *hydration) feedSnapshot(ins []*pin, at dataflow.Epoch) error {
	h.epoch.Store(uint64(at))
	h.flow.df.start()
	h.step(at, nil, nil)
	for _, in := range ins {
		h.total.Add(max(in.coll.rowCount.Load(), 0))
	}
	for _, in := range ins {
		id := in.coll.id
		for _, part := range []struct {
			t    *trace.Trace
			errs bool
		}{{in.coll.rows, false}, {in.coll.errs, true}} {
			s, err := snapshotTrace(part.t, at)
			if err != nil {
				return err
			}
			if s == nil {
				continue
			}
			if !part.errs && !h.flow.df.reads(id) {
				h.rows.Add(int64(s.Len()))
				s.Release()
				continue
			}
			var ds []*dataflow.Delta
			n, bytes := 0, 0
			flush := func() {
				if part.errs {
					h.step(at, nil, changeMap{id: ds})
				} else {
					h.step(at, changeMap{id: ds}, nil)
				}
				h.rows.Add(int64(n))
				ds, n, bytes = nil, 0, 0
			}
			s.Scan(func(d *dataflow.Delta) bool {
				rows := max(int(int64(d.N)*hydrationBytes/int64(max(d.MemSize(), hydrationBytes))), 1)
				for lo := 0; lo < d.N && h.ctx.Err() == nil; lo += rows {
					some := d.Slice(lo, min(lo+rows, d.N))
					ds = append(ds, cloneDelta(some))
					bytes += some.MemSize()
					if n += some.N; n >= hydrationRows || bytes >= hydrationBytes {
						flush()
					}
				}
				return h.ctx.Err() == nil
			})
			s.Release()
			if err := h.ctx.Err(); err != nil {
				return err
			}
			flush()
		}
	}
	return nil
}

func (h *hydration) step(e dataflow.Epoch, rows, errs changeMap) {
	h.flow.step(e, rows, errs, h.c.readable())
}

// catchUp steps the flow from where it is to e, by the traces.
func (h *hydration) catchUp(ins []*pin, e dataflow.Epoch) error {
	rows, errs := changeMap{}, changeMap{}
	for _, in := range ins {
		if err := in.coll.stage.done.wait(h.ctx, e); err != nil {
			return err
		}
		var err error
		if rows[in.coll.id], errs[in.coll.id], err = in.changes(e); err != nil {
			return err
		}
	}
	h.step(e, rows, errs)
	for _, in := range ins {
		in.at = e
	}
	h.epoch.Store(uint64(e))
	return nil
}

// tryAttach hands the flow to the cluster, in its loop, with the little that
// has happened since.
func (h *hydration) tryAttach(ins []*pin) (done bool, err error) {
	err = h.cl.do(h.ctx, func() {
		now := h.cl.done.get()
		for _, in := range ins {
			if in.coll.stage.done.get() < now {
				return // another cluster is behind this one: wait outside
			}
			if _, gap := in.coll.stage.passed(now); gap {
				return
			}
		}
		if err := h.catchUp(ins, now); err != nil {
			return
		}
		imports := h.c.importsOf(h.flow)
		if imports == nil {
			h.flow.df.close()
			done = true
			return
		}
		if !h.cl.attach(h.flow, imports) {
			return // at the next epoch
		}
		h.c.ckpt.dirty.Store(true) // so that its state is kept, even if nothing changes
		h.flow.out.readyAt.Store(uint64(now))
		h.flow.out.setReady()
		done = true
	})
	return done, err
}

// importsOf are the collections that a flow reads, nil if it or one of them is
// gone: a DROP takes them away one by one.
func (c *Coordinator) importsOf(f *flow) map[plan.ObjectID]*collection {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.collections[f.id] != f.out {
		return nil
	}
	out := map[plan.ObjectID]*collection{}
	for _, id := range f.df.imports() {
		if out[id] = c.collections[id]; out[id] == nil {
			return nil
		}
	}
	return out
}

// newViewCollection makes the collection of a view or index.
func (c *Coordinator) newViewCollection(o *catalog.Object, kinds []columnar.Kind, key []int) *collection {
	return newCollection(o.ID, kinds, key, false, c.partitions, &c.clusterFor(o.Cluster, o.Deps).stage)
}
