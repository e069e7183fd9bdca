// Package coord is the conductor: it picks epochs, sequences DDL, installs
// dataflows, holds transactions, and answers queries and subscriptions.
//
// # How a change becomes visible
//
// The timeline (one goroutine) gives an epoch to whatever enters — a commit, a
// source's chunk, a DDL change —, appends it to the log as one record, applies
// it to the collections of tables and sources, and passes the changes on to
// the clusters, each of which steps its dataflows in a goroutine of its own.
// An epoch is readable once its record is durable and the stages of all
// collections that a read touches have reached it.
//
// # Who owns what
//
// A collection is appended to by its stage only: the timeline for tables and
// sources, a cluster for views and indexes, a hydration before a cluster takes
// the view over. Everyone else reads immutable snapshots. The catalog is an
// immutable value behind an atomic pointer; changes to it are made under ddl.
package coord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/storage"
)

// defaultCluster always exists.
const defaultCluster = "default"

var errShutdown = pgerror.New(pgerror.AdminShutdown, "the server is shutting down")

// diskError is a storage failure as its user sees it.
func diskError(err error) error {
	if errors.Is(err, storage.ErrDiskFull) {
		return pgerror.New(pgerror.DiskFull, "could not write to the log: the disk is full")
	}
	if e := (*pgerror.Error)(nil); errors.As(err, &e) {
		return err
	}
	return pgerror.New(pgerror.IOError, "could not write to the log: %v", err)
}

// NewSource makes the source of a connector. With cfg.Tables empty it
// discovers them; a restart gives those found when the source was created.
type NewSource func(ctx context.Context, connector string, cfg sources.Config) (sources.Source, error)

// Options of a coordinator.
type Options struct {
	Logger  *slog.Logger
	Now     func() time.Time // nil: time.Now
	Sources NewSource        // nil: no sources
	// Check checks the options of a connection by themselves; nil: it cannot.
	Check func(connector string, options map[string]string) error
	// Validate tries whether a connection's other side answers; nil: cannot.
	Validate func(ctx context.Context, connector string, options map[string]string) error
	// CheckpointInterval is how often changed state is checkpointed; 0 is 10 s.
	CheckpointInterval time.Duration
	// Volatile never syncs the disk: a crash of the machine may lose everything.
	Volatile bool
	// MemoryLimit pauses sources while the heap is above it, and ends queries
	// that make it so; 0 is no limit.
	MemoryLimit int64
	// Partitions of the key space, fixed when a data directory is made; 0 is a
	// small multiple of the cores.
	Partitions int
	// SinkPortion bounds the bytes of one delivery of a sink, about; 0 is 64 MiB.
	SinkPortion int
	// Users are the names of those that may connect, where it is known.
	Users []string
	// Fatal is called when the storage has failed for good; nil panics.
	Fatal func(error)
	// Planning, if set, runs the planning of each query: for who measures it.
	Planning func(sql string, plan func() error) error
}

// Coordinator is the database.
type Coordinator struct {
	opts       Options
	log        *slog.Logger
	dir        string
	store      *storage.Store
	exec       *pool
	partitions int

	catalog atomic.Pointer[catalog.Snapshot]
	ddl     chan struct{} // a token: held by the transaction that changes the catalog
	virtual map[plan.ObjectID]*virtualTable

	timeline *timeline
	locks    *lockManager
	pins     *pins
	advisory advisoryLocks

	mu          sync.RWMutex
	collections map[plan.ObjectID]*collection
	upserts     map[plan.ObjectID]*upsertState // owned by the timeline
	forms       sync.Map                       // by index: *indexForm
	keyForms    sync.Map                       // by index: *keyForm
	keyed       map[plan.ObjectID][]*keyIndex  // by table; owned by the timeline
	clusters    map[clusterLevel]*cluster      // made in the timeline, or in recovery
	looping     bool                           // they run
	sources     map[plan.ObjectID]*runningSource
	sinks       map[plan.ObjectID]*runningSink
	hydrations  map[plan.ObjectID]*hydration
	hydrated    atomic.Int64                       // hydrations begun
	positions   map[plan.ObjectID]sources.Position // owned by the timeline
	sequences   map[plan.ObjectID]*sequence
	// loggedSequences is what the log says of sequences.
	loggedSequences map[plan.ObjectID]sequenceState
	sessions        map[*Session]struct{}

	ckpt    checkpointer
	blocks  openBlocks
	started time.Time
	ctx     context.Context
	stop    context.CancelCauseFunc
	tasks   sync.WaitGroup
	closed  atomic.Bool
	memory  memoryGate

	recovering bool // no loop runs yet
}

// Open opens the database in dir, recovers it, and starts it.
func Open(ctx context.Context, dir string, opts Options) (_ *Coordinator, err error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if opts.CheckpointInterval == 0 {
		opts.CheckpointInterval = 10 * time.Second
	}
	if opts.SinkPortion == 0 {
		opts.SinkPortion = 64 << 20
	}
	store, err := storage.Open(dir, storage.Options{Logger: opts.Logger, Now: opts.Now, Volatile: opts.Volatile})
	if err != nil {
		return nil, err
	}
	c := &Coordinator{
		opts: opts, log: opts.Logger, dir: dir, store: store, exec: newPool(),
		locks:       newLockManager(),
		pins:        newPins(),
		ddl:         make(chan struct{}, 1),
		collections: map[plan.ObjectID]*collection{},
		upserts:     map[plan.ObjectID]*upsertState{},
		keyed:       map[plan.ObjectID][]*keyIndex{},
		clusters:    map[clusterLevel]*cluster{},
		sources:     map[plan.ObjectID]*runningSource{},
		sinks:       map[plan.ObjectID]*runningSink{},
		hydrations:  map[plan.ObjectID]*hydration{},
		positions:   map[plan.ObjectID]sources.Position{},
		sequences:   map[plan.ObjectID]*sequence{},

		loggedSequences: map[plan.ObjectID]sequenceState{},
		sessions:        map[*Session]struct{}{},
		started:         opts.Now(),
	}
	c.ctx, c.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	c.timeline = newTimeline(c)
	c.memory.limit, c.memory.log, c.memory.relieve = opts.MemoryLimit, opts.Logger, c.askCheckpoint
	c.memory.look, c.memory.done = make(chan chan struct{}), make(chan struct{})
	c.memory.room.Store(opts.MemoryLimit / 8)
	if opts.MemoryLimit > 0 {
		trace.SetOrderLimit(max(opts.MemoryLimit/8, 16<<20))
	}
	defer func() {
		if err != nil {
			c.stop(errShutdown)
			c.exec.close()
			c.blocks.closeAll()
			err = errors.Join(err, store.Close())
		}
	}()
	if err := c.clearTemp(); err != nil {
		return nil, err
	}
	if err := c.choosePartitions(); err != nil {
		return nil, err
	}
	begun := time.Now()
	c.recovering = true
	if err := c.recover(); err != nil {
		return nil, fmt.Errorf("recover %s: %w", dir, err)
	}
	c.log.Info("recovered", slog.Duration("took", time.Since(begun)), slog.Uint64("epoch", uint64(c.timeline.last)), slog.Int("objects", len(c.catalog.Load().Objects())))
	c.recovering = false
	c.start()
	return c, nil
}

// choosePartitions reads the number of partitions of the data directory, or
// fixes it in a new one.
func (c *Coordinator) choosePartitions() error {
	const key = "system/partitions"
	v, err := c.store.GetCatalog(key)
	if err != nil {
		return err
	}
	if v != nil {
		c.partitions, err = strconv.Atoi(string(v))
		return err
	}
	c.partitions = c.opts.Partitions
	if c.partitions == 0 {
		c.partitions = defaultPartitions()
	}
	b := &storage.Batch{}
	b.PutCatalog(key, []byte(strconv.Itoa(c.partitions)))
	return c.store.Commit(b)
}

// start runs the loops, the sources and the hydrations that recovery left.
func (c *Coordinator) start() {
	hydrations := slices.Collect(maps.Values(c.hydrations)) // each takes itself out when it is done
	for _, cl := range c.clusters {
		c.tasks.Go(func() { cl.run(c.ctx) })
	}
	c.looping = true
	c.tasks.Go(func() { c.timeline.run(c.ctx) })
	c.tasks.Go(func() { c.ckpt.run(c) })
	c.tasks.Go(func() { c.memory.run(c.ctx) })
	for _, h := range hydrations {
		c.tasks.Go(h.run)
	}
	for _, o := range c.catalog.Load().Objects() {
		if o.Kind == catalog.KindSource && o.Parent == 0 {
			c.startSource(o)
		}
		if o.Sink != nil {
			c.startSink(o.ID)
		}
	}
}

// Close stops everything, after a last checkpoint, and closes the store. When
// ctx ends first, the checkpoint is left to the next start's recovery.
func (c *Coordinator) Close(ctx context.Context) error {
	if c.closed.Swap(true) {
		return nil
	}
	c.mu.Lock()
	sess := make([]*Session, 0, len(c.sessions))
	for s := range c.sessions {
		sess = append(sess, s)
	}
	running := make([]*runningSource, 0, len(c.sources))
	for _, s := range c.sources {
		running = append(running, s)
	}
	sinks := slices.Collect(maps.Values(c.sinks))
	c.mu.Unlock()
	for _, s := range sess {
		s.abort(errShutdown)
	}
	for _, s := range running {
		s.stop()
	}
	for _, k := range sinks {
		k.stop()
	}
	if err := c.settleSequences(ctx); err != nil {
		c.log.Warn("sequences skip some values", slog.Any("error", err))
	}
	if err := c.Checkpoint(ctx); err != nil {
		c.log.Warn("no checkpoint at shutdown", slog.Any("error", err))
	}
	c.stop(errShutdown)
	c.tasks.Wait()
	c.exec.close()
	c.blocks.closeAll()
	return c.store.Close()
}

// fail is called when the storage has failed for good.
func (c *Coordinator) fail(err error) {
	c.log.Error("storage failed", slog.Any("error", err))
	if c.closed.Load() {
		return
	}
	if c.opts.Fatal != nil {
		c.opts.Fatal(err)
		return
	}
	panic(fmt.Sprintf("storage failed: %v", err))
}

// collection is the published collection of an object, nil if there is none.
func (c *Coordinator) collection(id plan.ObjectID) *collection {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.collections[id]
}

// ranks numbers the objects in dependency order.
func (c *Coordinator) ranks() map[plan.ObjectID]int {
	cat := c.catalog.Load()
	rank := map[plan.ObjectID]int{}
	n := 0
	var visit func(id plan.ObjectID)
	visit = func(id plan.ObjectID) {
		if _, ok := rank[id]; ok {
			return
		}
		rank[id] = 0
		if o := cat.ByID(id); o != nil {
			for _, d := range o.Deps {
				visit(d)
			}
		}
		n++ // an object that is newer than what uses it is before that, too
		rank[id] = n
	}
	for _, o := range cat.Objects() {
		visit(o.ID)
	}
	return rank
}

// applyIngest puts an epoch's changes into the collections of tables and
// sources and returns them for the clusters. It runs in the timeline.
func (c *Coordinator) applyIngest(e dataflow.Epoch, rec *record, readable dataflow.Epoch) changeMap {
	changes := changeMap{}
	for _, ch := range rec.changes {
		if coll := c.collection(ch.id); coll != nil && ch.delta != nil {
			coll.records.Add(int64(ch.delta.N))
		}
		if ch.upsert {
			if u := c.upserts[ch.id]; u != nil {
				u.push(ch.delta)
			}
			continue
		}
		if ch.clear {
			changes[ch.id] = c.clearRows(ch.id)
			continue
		}
		if ch.delta != nil && c.collection(ch.id) != nil && !c.fits(ch) {
			c.log.Error("rows that do not have the form of their table are left out", slog.Uint64("object", uint64(ch.id)), slog.Int("rows", ch.delta.N))
			continue
		}
		changes[ch.id] = append(changes[ch.id], ch.delta)
	}
	for id, u := range c.upserts {
		if u.pending {
			changes[id] = append(changes[id], u.step(e)...)
		}
	}
	for id, ds := range changes {
		coll := c.collection(id)
		if coll == nil || len(ds) == 0 {
			delete(changes, id)
			continue
		}
		coll.append(e, ds, nil, readable)
		for _, k := range c.keyed[id] {
			k.append(e, ds, readable)
		}
	}
	for id, p := range rec.positions {
		if c.positions[id] == nil {
			c.positions[id] = sources.Position{}
		}
		for part, off := range p {
			c.positions[id][part] = off
		}
	}
	for _, id := range rec.snapshots {
		c.sourceReady(id)
	}
	for id, st := range rec.sequences {
		c.noteSequence(id, st)
	}
	return changes
}

// clearRows retracts all rows of a collection.
func (c *Coordinator) clearRows(id plan.ObjectID) []*dataflow.Delta {
	coll := c.collection(id)
	if coll == nil || coll.rows.Upper() == 0 {
		return nil
	}
	s, ok := coll.rows.SnapshotAt(coll.rows.Upper() - 1)
	if !ok {
		return nil
	}
	defer s.Release()
	var out []*dataflow.Delta
	s.Scan(func(d *dataflow.Delta) bool {
		n := cloneDelta(d)
		neg := make([]dataflow.Diff, n.N)
		for i := range neg {
			neg[i] = -n.Diff(i)
		}
		n.Diffs = neg
		out = append(out, n)
		return true
	})
	return out
}

// sourceReady opens a source's tables to readers.
func (c *Coordinator) sourceReady(id plan.ObjectID) {
	cat := c.catalog.Load()
	for _, o := range append([]*catalog.Object{cat.ByID(id)}, cat.Users(id)...) {
		if o != nil && (o.ID == id || o.Parent == id) {
			if coll := c.collection(o.ID); coll != nil {
				coll.readyAt.Store(uint64(c.timeline.last))
				coll.setReady()
			}
		}
	}
}

func (c *Coordinator) notifyClusters(e dataflow.Epoch, changes changeMap) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, cl := range c.clusters {
		cl.notify(epochChanges{epoch: e, rows: changes, errs: changeMap{}})
	}
}

// mergeIngest does idle-time merging of tables and sources, in the timeline.
func (c *Coordinator) mergeIngest() bool {
	const fuel = 1 << 16
	left := false
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, coll := range c.collections {
		if coll.stage != c.timeline.ingest {
			continue
		}
		for _, s := range coll.spines() {
			if s.Work(fuel) {
				left = true
			}
		}
	}
	for _, u := range c.upserts {
		if u.circuit.Work(fuel) {
			left = true
		}
	}
	return left
}

// pins are the epochs that transactions read at throughout.
type pins struct {
	mu  sync.Mutex
	at  map[*txn]dataflow.Epoch
	min atomic.Uint64 // the oldest, MaxEpoch if none
}

func newPins() *pins {
	p := &pins{at: map[*txn]dataflow.Epoch{}}
	p.min.Store(uint64(dataflow.MaxEpoch))
	return p
}

func (p *pins) set(tx *txn, e dataflow.Epoch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e == 0 {
		delete(p.at, tx)
	} else {
		p.at[tx] = e
	}
	oldest := dataflow.MaxEpoch
	for _, x := range p.at {
		oldest = min(oldest, x)
	}
	p.min.Store(uint64(oldest))
}

// readable is the oldest epoch that readers may still ask for: collections
// keep it and all later ones apart.
func (c *Coordinator) readable() dataflow.Epoch {
	return min(c.timeline.durable.get(), dataflow.Epoch(c.pins.min.Load()))
}

// readEpoch is the newest epoch that a read may choose: what is durable.
func (c *Coordinator) readEpoch() dataflow.Epoch { return c.timeline.durable.get() }

// awaitAll waits until all collections have their content at e.
func (c *Coordinator) awaitAll(ctx context.Context, ids []plan.ObjectID, e dataflow.Epoch) error {
	for _, id := range ids {
		if coll := c.collection(id); coll != nil {
			if err := coll.await(ctx, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// sortedIDs is the keys of a map in order, for what must be deterministic.
func sortedIDs[V any](m map[plan.ObjectID]V) []plan.ObjectID {
	ids := make([]plan.ObjectID, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
