package coord

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/storage"
)

// mapBytes is the size from which a persisted batch is read from its mapped
// block instead of the heap.
const mapBytes = 256 << 10

// checkpointer writes checkpoints, one at a time: it captures the batches of
// every collection and dataflow at one epoch, writes those that are new as
// blocks, and commits their list with the sources' positions.
type checkpointer struct {
	mu  sync.Mutex // one checkpoint at a time
	due chan struct{}

	// Owned by the timeline.
	dirty atomic.Bool // something was applied, or a view completed, since the last checkpoint

	// What the last checkpoint holds, by object; owned by who holds mu.
	written   map[plan.ObjectID]*storage.ObjectState
	sizes     map[storage.BlockID]int64 // of the blocks in it
	catalog   *catalog.Snapshot         // the one last stored
	sequences map[plan.ObjectID]sequenceState
	count     int64
	took      time.Duration

	unread int // in recovery: rows of the log that the dataflows have not taken yet
}

// capturedState is the state of an object at the checkpoint's epoch: spines by
// role, each a list of batches with a reference each.
type capturedState struct {
	id          plan.ObjectID
	fingerprint string
	meta        stateMeta
	spines      [][]*trace.Batch
	owner       []*trace.Spine
	loop        loop
}

// loop is the goroutine that owns spines: the timeline, or a cluster's. do runs a
// function in it, between epochs; an error says that it has not.
type loop interface {
	do(ctx context.Context, f func()) error
}

// swap puts a batch that is mapped in the place of one in memory, in a spine of a loop.
type swap struct {
	loop  loop
	owner *trace.Spine
	old   *trace.Batch // held
	id    storage.BlockID
}

// stateMeta is kept with an object's state.
type stateMeta struct {
	Ready bool
	Rows  int64 // sum of diffs
	Errs  int64
	// Records is how many a source's table has taken.
	Records int64 `json:",omitempty"`
}

// capture takes the batches of a list of spines. It runs in the goroutine that
// owns them.
func capture(in loop, coll *collection, fingerprint string, ready bool, spines []*trace.Spine) *capturedState {
	s := &capturedState{id: coll.id, fingerprint: fingerprint, owner: spines, loop: in,
		meta: stateMeta{Ready: ready, Rows: coll.rowCount.Load(), Errs: coll.errCount.Load(), Records: coll.records.Load()}}
	for _, sp := range spines {
		s.spines = append(s.spines, sp.Batches())
	}
	return s
}

func (s *capturedState) release() {
	for _, bs := range s.spines {
		for _, b := range bs {
			b.Release()
		}
	}
}

// cut is everything of a checkpoint that is being taken.
type cut struct {
	epoch     dataflow.Epoch
	catalog   *catalog.Snapshot
	positions map[plan.ObjectID]sources.Position
	sequences map[plan.ObjectID]sequenceState
	mu        sync.Mutex
	states    []*capturedState
	waiting   sync.WaitGroup
	holds     []*pin // what clusters that are behind still have to read
}

func (k *cut) add(s *capturedState) {
	k.mu.Lock()
	k.states = append(k.states, s)
	k.mu.Unlock()
}

// hold keeps a collection at the cut's epoch until all have captured.
func (k *cut) hold(p *pin) {
	k.mu.Lock()
	k.holds = append(k.holds, p)
	k.mu.Unlock()
}

// run makes checkpoints when they are due or asked for.
func (p *checkpointer) run(c *Coordinator) {
	tick := time.NewTicker(c.opts.CheckpointInterval)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
		case <-p.due:
		}
		if err := c.Checkpoint(c.ctx); err != nil && c.ctx.Err() == nil {
			c.log.Error("checkpoint failed", slog.Any("error", err))
		}
	}
}

// maybeCheckpoint asks for a checkpoint when the log has grown long. It runs
// in the timeline.
func (c *Coordinator) maybeCheckpoint(dataflow.Epoch) {
	c.ckpt.dirty.Store(true)
	if c.store.LogBytes() > 256<<20 {
		c.askCheckpoint()
	}
}

// askCheckpoint makes the next checkpoint begin now.
func (c *Coordinator) askCheckpoint() {
	select {
	case c.ckpt.due <- struct{}{}:
	default:
	}
}

// Checkpoint makes what has happened so far durable as state, so that the next
// start opens it instead of replaying the log.
func (c *Coordinator) Checkpoint(ctx context.Context) error {
	p := &c.ckpt
	p.mu.Lock()
	defer p.mu.Unlock()
	begun := time.Now()
	k, err := c.takeCut(ctx)
	if err != nil || k == nil {
		return err
	}
	defer func() {
		for _, s := range k.states {
			s.release()
		}
	}()
	if err := p.write(ctx, c, k); err != nil {
		return err
	}
	p.count++
	p.took = time.Since(begun)
	c.mu.RLock()
	defer c.mu.RUnlock()
	for id, pos := range k.positions {
		if s := c.sources[id]; s != nil {
			s.durable(pos)
		}
	}
	return nil
}

// takeCut captures every stage at one epoch; nil if nothing has changed.
func (c *Coordinator) takeCut(ctx context.Context) (*cut, error) {
	var k *cut
	var involved []*cluster
	err := c.timeline.do(ctx, func() {
		if !c.ckpt.dirty.Swap(false) {
			return
		}
		k = &cut{epoch: c.timeline.last, catalog: c.catalog.Load().Stored(), positions: map[plan.ObjectID]sources.Position{}, sequences: c.sequencesAt()}
		for id, p := range c.positions {
			cp := sources.Position{}
			for part, off := range p {
				cp[part] = off
			}
			k.positions[id] = cp
		}
		c.captureIngest(k)
		c.mu.RLock()
		defer c.mu.RUnlock()
		for _, cl := range c.clusters {
			involved = append(involved, cl)
			k.waiting.Add(1)
			cl.notify(epochChanges{epoch: k.epoch, rows: changeMap{}, errs: changeMap{}, held: true, barrier: func(dataflow.Epoch) {
				defer k.waiting.Done()
				for _, f := range cl.flows {
					p := &pin{coll: f.out} // for the loops that read it and are not there yet
					p.place(k.epoch)
					k.hold(p)
					if !f.failed && !f.out.temporary && k.catalog.ByID(f.id) != nil {
						k.add(capture(cl, f.out, f.fingerprint, true, append(f.out.spines(), f.df.circuit.Spines()...)))
					}
				}
			}})
		}
	})
	if err != nil || k == nil {
		return nil, err
	}
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, in := range k.holds {
			in.release()
		}
	}()
	captured := make(chan struct{})
	go func() { k.waiting.Wait(); close(captured) }()
	select {
	case <-captured:
	case <-c.ctx.Done():
		return nil, errShutdown
	}
	// What the cut holds must be durable in the log first: a checkpoint never
	// runs ahead of an acknowledgement.
	if err := c.timeline.durable.wait(ctx, k.epoch); err != nil {
		return nil, err
	}
	return k, nil
}

// captureIngest takes the collections of tables and sources. It runs in the timeline.
func (c *Coordinator) captureIngest(k *cut) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, id := range sortedIDs(c.collections) {
		coll := c.collections[id]
		if coll.stage != c.timeline.ingest {
			continue
		}
		in := &pin{coll: coll}
		in.place(k.epoch) // always possible: there is nothing later
		k.hold(in)
		if k.catalog.ByID(id) == nil {
			continue // of a temporary object
		}
		spines := coll.spines()
		if u := c.upserts[id]; u != nil {
			spines = append(spines, u.circuit.Spines()...)
		}
		k.add(capture(c.timeline, coll, c.tableFingerprint(coll), coll.isReady(), spines))
	}
}

func (c *Coordinator) tableFingerprint(coll *collection) string {
	return fmt.Sprintf("table/%d/%d/%v/%v", stateFormat, c.partitions, coll.kinds, coll.key)
}

// write makes the blocks of new batches and commits the checkpoint.
func (p *checkpointer) write(ctx context.Context, c *Coordinator, k *cut) error {
	cp := &storage.Checkpoint{Epoch: k.epoch, Sources: map[uint64]storage.Positions{}}
	present := map[plan.ObjectID]bool{}
	var swaps []swap
	defer func() {
		for _, w := range swaps {
			w.old.Release()
		}
	}()
	for _, s := range k.states {
		present[s.id] = true
		st, sw, err := p.writeState(c, s)
		swaps = append(swaps, sw...)
		if err != nil {
			return err
		}
		if st != nil {
			cp.Objects = append(cp.Objects, *st)
		}
	}
	var gone []storage.BlockID
	for id, st := range p.written {
		if !present[id] {
			cp.DropObjects = append(cp.DropObjects, uint64(id))
			gone = append(gone, blocksOf(st)...)
		}
	}
	for id, pos := range k.positions {
		ps := storage.Positions{}
		for part, off := range pos {
			ps[part] = storage.Offset{Offset: off}
		}
		cp.Sources[uint64(id)] = ps
	}
	for _, o := range p.catalog.Objects() {
		if k.catalog.ByID(o.ID) == nil && o.Kind == catalog.KindSource {
			cp.DropSources = append(cp.DropSources, uint64(o.ID))
		}
	}
	b := &storage.Batch{}
	b.SetCheckpoint(cp)
	if err := p.storeCatalog(b, k.catalog); err != nil {
		return err
	}
	if err := p.storeSequences(b, k.sequences); err != nil {
		return err
	}
	if err := c.store.Commit(b); err != nil {
		return err
	}
	p.catalog, p.sequences = k.catalog, k.sequences
	for i := range cp.Objects {
		st := &cp.Objects[i]
		id := plan.ObjectID(st.Object)
		keep := map[storage.BlockID]bool{}
		for _, x := range blocksOf(st) {
			keep[x] = true
		}
		if old := p.written[id]; old != nil {
			gone = append(gone, slices.DeleteFunc(blocksOf(old), func(x storage.BlockID) bool { return keep[x] })...)
		}
		p.written[id] = st
	}
	for _, id := range cp.DropObjects {
		delete(p.written, plan.ObjectID(id))
	}
	for _, id := range gone {
		delete(p.sizes, id)
	}
	c.store.DeleteBlocks(gone...)
	c.swapIn(ctx, swaps)
	return nil
}

// swapIn opens the blocks of batches that have been written, and puts them in the places
// of those in memory, in the loops that own them.
func (c *Coordinator) swapIn(ctx context.Context, swaps []swap) {
	type opened struct {
		swap
		new *trace.Batch
	}
	byLoop := map[loop][]opened{}
	for _, w := range swaps {
		m, err := c.openBatch(w.id)
		if err != nil {
			c.log.Warn("keeping a batch in memory", slog.Any("error", err))
			continue
		}
		byLoop[w.loop] = append(byLoop[w.loop], opened{w, m})
	}
	for l, all := range byLoop {
		err := l.do(ctx, func() {
			for _, w := range all {
				if !w.owner.Replace(w.old, w.new) {
					w.new.Release()
				}
			}
		})
		if err != nil { // it has ended, and what it has with it
			for _, w := range all {
				w.new.Release()
			}
		}
	}
}

func blocksOf(st *storage.ObjectState) []storage.BlockID {
	var out []storage.BlockID
	for _, part := range st.Parts {
		for _, b := range part.Blocks {
			out = append(out, b.ID)
		}
	}
	return out
}

// writeState writes an object's new batches. The state is nil if it equals
// what the last checkpoint has. The swaps returned put mapped blocks in the place of
// big batches, once the commit has made the blocks durable.
func (p *checkpointer) writeState(c *Coordinator, s *capturedState) (*storage.ObjectState, []swap, error) {
	st := &storage.ObjectState{Object: uint64(s.id), Fingerprint: s.fingerprint}
	var err error
	if st.Meta, err = json.Marshal(s.meta); err != nil {
		return nil, nil, err
	}
	var swaps []swap
	for role, batches := range s.spines {
		part := storage.Part{Spine: uint32(role)}
		for _, b := range batches {
			if b.Len() == 0 {
				continue
			}
			ref, big, err := p.writeBatch(c, b)
			if err != nil {
				return nil, swaps, err
			}
			if big {
				b.Retain()
				swaps = append(swaps, swap{s.loop, s.owner[role], b, ref.ID})
			}
			part.Blocks = append(part.Blocks, ref)
		}
		st.Parts = append(st.Parts, part)
	}
	if old := p.written[s.id]; old != nil && old.Fingerprint == st.Fingerprint && string(old.Meta) == string(st.Meta) && slices.Equal(blocksOf(old), blocksOf(st)) {
		return nil, swaps, nil
	}
	return st, swaps, nil
}

// writeBatch writes a batch that has no block yet, and reports whether it is one that is
// better mapped than kept in memory.
func (p *checkpointer) writeBatch(c *Coordinator, b *trace.Batch) (ref storage.BlockRef, big bool, err error) {
	d := b.Desc()
	ref = storage.BlockRef{ID: storage.BlockID(b.ID()), Rows: int64(b.Len()), Lower: d.Lower, Upper: d.Upper, Since: d.Since}
	if b.ID() != 0 {
		ref.Bytes = p.sizes[ref.ID]
		return ref, false, nil
	}
	block := b.AppendBlock(columnar.GetSlice[uint8](b.EncodedSize())[:0])
	defer columnar.PutSlice(block)
	id, size, err := c.store.WriteBlock(storage.Raw, block)
	if err != nil {
		return ref, false, err
	}
	b.SetID(uint64(id))
	ref.ID, ref.Bytes = id, size
	p.sizes[id] = size
	return ref, len(block) >= mapBytes, nil
}

// openBatch opens a batch over its mapped block.
func (c *Coordinator) openBatch(id storage.BlockID) (*trace.Batch, error) {
	data, unmap, err := c.store.OpenBlock(id)
	if err != nil {
		return nil, err
	}
	release := c.blocks.open(unmap)
	b, err := trace.OpenBlock(data, uint64(id), release)
	if err != nil {
		release()
		return nil, fmt.Errorf("block %v: %w", id, err)
	}
	return b, nil
}

// openBlocks are the mapped blocks in use. What the batches of collections and
// dataflows still hold at the end is released together.
type openBlocks struct {
	mu   sync.Mutex
	next uint64
	held map[uint64]func()
}

// open notes a block and gives the function that releases it, once.
func (o *openBlocks) open(unmap func()) (release func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held == nil {
		o.held = map[uint64]func(){}
	}
	o.next++
	n := o.next
	o.held[n] = unmap
	return func() {
		o.mu.Lock()
		f := o.held[n]
		delete(o.held, n)
		o.mu.Unlock()
		if f != nil {
			f()
		}
	}
}

// closeAll releases everything. Nothing may read a batch any more.
func (o *openBlocks) closeAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.held {
		f()
	}
	clear(o.held)
}

const (
	catalogObjects = "object/"
	catalogSchemas = "schema/"
)

// storeCatalog writes the catalog's differences to the last stored one.
func (p *checkpointer) storeCatalog(b *storage.Batch, cat *catalog.Snapshot) error {
	if cat == p.catalog {
		return nil
	}
	for _, o := range cat.Objects() {
		if p.catalog.ByID(o.ID) == o {
			continue
		}
		j, err := json.Marshal(o)
		if err != nil {
			return err
		}
		b.PutCatalog(fmt.Sprintf("%s%020d", catalogObjects, o.ID), j)
	}
	for _, o := range p.catalog.Objects() {
		if cat.ByID(o.ID) == nil {
			b.DeleteCatalog(fmt.Sprintf("%s%020d", catalogObjects, o.ID))
			if o.Kind == catalog.KindSecret {
				b.DeleteSecret(uint64(o.ID))
			}
		}
	}
	for _, s := range cat.Schemas() {
		if !s.System && p.catalog.Schema(s.Name) != s {
			j, err := json.Marshal(s)
			if err != nil {
				return err
			}
			b.PutCatalog(catalogSchemas+s.Name, j)
		}
	}
	for _, s := range p.catalog.Schemas() {
		if cat.Schema(s.Name) == nil {
			b.DeleteCatalog(catalogSchemas + s.Name)
		}
	}
	return nil
}
