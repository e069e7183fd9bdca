package coord

import (
	"context"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// maxPending bounds the epochs that wait for a cluster with their changes in
// memory. Beyond it the cluster reads what it missed from the collections.
const maxPending = 64

// flow is one installed dataflow: the maintenance of a view or an index.
type flow struct {
	id          plan.ObjectID
	df          *dataflowInstance
	out         *collection
	at          dataflow.Epoch // the last epoch that it was stepped at
	failed      bool           // a broken invariant: its view cannot be read any more
	fingerprint string
}

// seen is how far a cluster has read a collection of another stage. It is pinned
// there, so that what comes after can be read from the traces.
type seen struct {
	*pin
	foreign bool // of another cluster, not of ingestion
	next    *pin // at the epoch in work
	users   int
}

// changeMap is changes by collection.
type changeMap map[plan.ObjectID][]*dataflow.Delta

// epochChanges is what one epoch changed, by collection.
type epochChanges struct {
	epoch   dataflow.Epoch
	rows    changeMap
	errs    changeMap
	barrier func(e dataflow.Epoch) // runs when this epoch, or one after it, is complete
	held    bool                   // it is to be exactly this epoch, which is pinned until the barrier
}

// clusterLevel names a loop of a cluster.
type clusterLevel struct {
	name  string
	level int
}

// cluster is a loop of an isolation unit, in which the dataflows assigned to it run
// epoch by epoch, and never delay another cluster. A view that reads one of another
// cluster runs in a loop one level above that: so loops never wait for each other
// in a circle, and views that read no other cluster do not wait for any.
type cluster struct {
	clusterLevel
	stage
	c       *Coordinator
	mu      sync.Mutex
	pending []epochChanges
	skipped bool // changes were dropped from pending: read them from the traces
	wake    chan struct{}
	control chan func()
	stopped chan struct{}

	// Owned by the loop.
	flows   []*flow // dependency order
	users   map[plan.ObjectID][]*flow
	seen    map[plan.ObjectID]*seen
	foreign []*seen // those of other loops
	pinned  []*seen // those with a pin at the epoch in work
	merging bool
}

// clusterFor is the loop of a cluster, "" for the default one, for what reads the
// given objects. It makes the loop if there is none: call it in the timeline or in
// recovery.
func (c *Coordinator) clusterFor(name string, reads []plan.ObjectID) *cluster {
	if name == "" {
		name = defaultCluster
	}
	cat := c.catalog.Load()
	levels := map[plan.ObjectID]int{}
	var over func(name string, ids []plan.ObjectID) int
	over = func(name string, ids []plan.ObjectID) (level int) {
		for _, id := range ids {
			o := cat.ByID(id)
			if o == nil {
				continue
			}
			if o.Kind != catalog.KindMaterializedView { // what has no loop: what is behind it counts
				if o.Kind == catalog.KindView {
					level = max(level, over(name, o.Deps))
				}
				continue
			}
			of := o.Cluster
			if of == "" {
				of = defaultCluster
			}
			n, ok := levels[id]
			if !ok {
				n = over(of, o.Deps)
				levels[id] = n
			}
			if of != name {
				n++
			}
			level = max(level, n)
		}
		return level
	}
	key := clusterLevel{name, over(name, reads)}
	c.mu.Lock()
	defer c.mu.Unlock()
	cl := c.clusters[key]
	if cl == nil {
		cl = newCluster(c, key)
		cl.done.set(c.timeline.ingest.done.get())
		c.clusters[key] = cl
		if c.looping {
			c.tasks.Go(func() { cl.run(c.ctx) })
		}
	}
	return cl
}

func newCluster(c *Coordinator, key clusterLevel) *cluster {
	cl := &cluster{
		clusterLevel: key,

		c:       c,
		wake:    make(chan struct{}, 1),
		control: make(chan func()),
		stopped: make(chan struct{}),
		users:   map[plan.ObjectID][]*flow{},
		seen:    map[plan.ObjectID]*seen{},
	}
	cl.loop = cl
	return cl
}

// notify tells of a complete epoch. It never blocks.
func (cl *cluster) notify(ec epochChanges) {
	cl.mu.Lock()
	if len(cl.pending) >= maxPending && ec.barrier == nil {
		// Too far behind to keep changes in memory: the traces have them.
		cl.skipped = true
		last := &cl.pending[len(cl.pending)-1]
		if last.barrier == nil {
			last.epoch, last.rows, last.errs = ec.epoch, nil, nil
		} else {
			cl.pending = append(cl.pending, epochChanges{epoch: ec.epoch})
		}
	} else {
		cl.pending = append(cl.pending, ec)
	}
	cl.mu.Unlock()
	cl.poke()
}

func (cl *cluster) poke() {
	select {
	case cl.wake <- struct{}{}:
	default:
	}
}

// do runs f in the loop, between two epochs.
func (cl *cluster) do(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case cl.control <- func() { defer close(done); f() }:
	case <-cl.stopped:
		return errShutdown
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	<-done
	return nil
}

// run is the loop.
func (cl *cluster) run(ctx context.Context) {
	defer close(cl.stopped)
	for {
		if cl.merging {
			select {
			case <-ctx.Done():
				return
			case f := <-cl.control:
				f()
			case <-cl.wake:
				cl.drain(ctx)
			default:
				cl.merging = cl.work()
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case f := <-cl.control:
			f()
		case <-cl.wake:
			cl.drain(ctx)
		}
	}
}

// drain steps through the pending epochs.
func (cl *cluster) drain(ctx context.Context) {
	for ctx.Err() == nil {
		cl.mu.Lock()
		if len(cl.pending) == 0 {
			cl.mu.Unlock()
			return
		}
		ec := cl.pending[0]
		cl.pending = cl.pending[1:]
		skipped := cl.skipped
		if len(cl.pending) == 0 {
			cl.pending = nil
			cl.skipped = false
		}
		cl.mu.Unlock()
		if ec.epoch <= cl.done.get() {
			// A jump has been there: it goes by what is applied, which may be
			// told only now.
			if ec.barrier != nil {
				ec.barrier(cl.done.get())
			}
			continue
		}
		if cl.complete(ctx, &ec, skipped) != nil {
			return
		}
		cl.step(ec)
		if ec.barrier != nil {
			ec.barrier(ec.epoch)
		}
		select {
		case f := <-cl.control:
			f()
		default:
		}
	}
}

// work merges in idle time.
func (cl *cluster) work() bool {
	const fuel = 1 << 16
	left := false
	for _, f := range cl.flows {
		if !f.failed && f.df.circuit.Work(fuel) {
			left = true
		}
		for _, s := range f.out.spines() {
			if s.Work(fuel) {
				left = true
			}
		}
	}
	return left
}

// complete adds to an epoch's changes what must be read from traces: those of
// collections of other clusters, and all if changes were skipped. It waits for
// the other clusters to get to the epoch.
func (cl *cluster) complete(ctx context.Context, ec *epochChanges, skipped bool) error {
	if !skipped && !ec.held {
		var err error
		if skipped, err = cl.passedByOthers(ctx, ec.epoch); err != nil {
			return err
		}
	}
	// Ingestion may have merged what came later with this epoch, while it waited.
	skipped = skipped || !cl.pinAt(ec)
	if skipped {
		if err := cl.jump(ctx, ec); err != nil {
			return err
		}
		cl.passOver(cl.done.get(), ec.epoch)
	}
	unread := cl.foreign
	if skipped {
		unread = slices.Collect(maps.Values(cl.seen))
	}
	if len(unread) > 0 { // the maps are shared with the other loops
		ec.rows, ec.errs = maps.Clone(ec.rows), maps.Clone(ec.errs)
	}
	if ec.rows == nil {
		ec.rows, ec.errs = changeMap{}, changeMap{}
	}
	for _, s := range unread {
		if s.foreign {
			if err := s.coll.stage.done.wait(ctx, ec.epoch); err != nil {
				return err
			}
		}
		id := s.coll.id
		rows, errs, err := s.changes(ec.epoch)
		if err != nil {
			cl.lost(s, ec.epoch)
			continue
		}
		if len(rows) > 0 {
			ec.rows[id] = rows
		}
		if len(errs) > 0 {
			ec.errs[id] = errs
		}
	}
	return nil
}

// lost takes what reads a collection out of service, as changes of it cannot be
// read any more: a broken invariant.
func (cl *cluster) lost(s *seen, e dataflow.Epoch) {
	cl.c.log.Error("changes lost", slog.Uint64("object", uint64(s.coll.id)), slog.Uint64("after", uint64(s.at)), slog.Uint64("upTo", uint64(e)))
	for _, f := range cl.users[s.coll.id] {
		if !f.failed {
			cl.fail(f, pgerror.New(pgerror.InternalError, "the dataflow of this view has lost changes after epoch %d", s.at))
		}
	}
}

// pinAt pins what changed at the epoch of ec there, and reports whether it could.
func (cl *cluster) pinAt(ec *epochChanges) bool {
	for _, m := range []changeMap{ec.rows, ec.errs} {
		for id := range m {
			if s := cl.seen[id]; s != nil && s.next == nil {
				cl.pinNext(s)
			}
		}
	}
	for _, s := range cl.foreign {
		if s.next == nil {
			cl.pinNext(s)
		}
	}
	for _, s := range cl.pinned {
		if !s.next.place(ec.epoch) {
			cl.unpin()
			return false
		}
	}
	return true
}

// pinNext makes the pin of a collection for the epoch in work.
func (cl *cluster) pinNext(s *seen) {
	s.next = &pin{coll: s.coll}
	cl.pinned = append(cl.pinned, s)
}

// unpin gives up the pins at the epoch in work.
func (cl *cluster) unpin() {
	for _, s := range cl.pinned {
		s.next.release()
		s.next = nil
	}
	cl.pinned = cl.pinned[:0]
}

// advance says that everything up to the epoch in work has been processed.
func (cl *cluster) advance() {
	for _, s := range cl.pinned {
		s.release()
		s.pin, s.next = s.next, nil
	}
	cl.pinned = cl.pinned[:0]
}

// passedByOthers waits for the loops whose collections are read here to get to
// an epoch, and says whether one of them has never been there.
func (cl *cluster) passedByOthers(ctx context.Context, e dataflow.Epoch) (bool, error) {
	for _, s := range cl.foreign {
		if err := s.coll.stage.done.wait(ctx, e); err != nil {
			return false, err
		}
		if _, ok := s.coll.stage.passed(e); ok {
			return true, nil
		}
	}
	return false, nil
}

// jump moves an epoch whose changes were skipped to one at which every imported
// collection can be read, and pins them there. An epoch that is held stays.
func (cl *cluster) jump(ctx context.Context, ec *epochChanges) error {
	ec.rows, ec.errs = nil, nil
	cl.unpin()
	var pins []*pin
	for _, s := range cl.seen {
		cl.pinNext(s)
		pins = append(pins, s.next)
	}
	if !ec.held {
		e, err := pinLatest(ctx, cl.c, pins, ec.epoch)
		if err != nil {
			cl.unpin()
			return err
		}
		ec.epoch = e
		cl.mu.Lock()
		i := slices.IndexFunc(cl.pending, func(p epochChanges) bool { return p.held })
		if i < 0 || cl.pending[i].epoch >= e {
			cl.mu.Unlock()
			return nil
		}
		ec.epoch = cl.pending[i].epoch
		cl.mu.Unlock()
	}
	for _, s := range cl.pinned {
		if !s.next.place(ec.epoch) {
			cl.lost(s, ec.epoch)
		}
	}
	return nil
}

// step runs the flows that the changes of an epoch reach, in dependency order.
func (cl *cluster) step(ec epochChanges) {
	dirty := map[*flow]bool{}
	mark := func(id plan.ObjectID) {
		for _, f := range cl.users[id] {
			dirty[f] = true
		}
	}
	for id := range ec.rows {
		mark(id)
	}
	for id := range ec.errs {
		mark(id)
	}
	if len(dirty) > 0 {
		rows, errs := maps.Clone(ec.rows), maps.Clone(ec.errs)
		for _, f := range cl.flows {
			if !dirty[f] {
				continue
			}
			outRows, outErrs := cl.stepFlow(f, ec.epoch, rows, errs)
			if len(outRows)+len(outErrs) > 0 {
				rows[f.id], errs[f.id] = outRows, outErrs
				mark(f.id)
			}
		}
		cl.merging = true
	}
	cl.advance()
	cl.done.set(ec.epoch)
}

// stepFlow feeds a flow the changes of its imports and publishes its output.
// A panic in an operator is a broken invariant: it takes the view and what is
// built on it out of service, not the server.
func (cl *cluster) stepFlow(f *flow, e dataflow.Epoch, rows, errs changeMap) (outRows, outErrs []*dataflow.Delta) {
	if f.failed {
		return nil, nil
	}
	defer func() {
		if r := recover(); r != nil {
			cl.c.log.Error("dataflow failed", slog.Uint64("object", uint64(f.id)), slog.Any("panic", r), slog.String("stack", string(debug.Stack())))
			cl.fail(f, pgerror.New(pgerror.InternalError, "the dataflow of this view has failed: %v", r))
			outRows, outErrs = nil, nil
		}
	}()
	return f.step(e, rows, errs, cl.c.readable())
}

// step pushes changes of the imports, runs the circuit, and appends what comes
// out to the flow's collection.
func (f *flow) step(e dataflow.Epoch, rows, errs changeMap, readable dataflow.Epoch) (outRows, outErrs []*dataflow.Delta) {
	for _, id := range f.df.imports() {
		f.df.push(id, rows[id])
		outErrs = append(outErrs, errs[id]...)
	}
	outRows, er := f.df.step(e)
	outErrs = append(outErrs, er...)
	f.at = e
	f.out.append(e, outRows, outErrs, readable)
	return outRows, outErrs
}

func (cl *cluster) fail(f *flow, err error) {
	f.failed = true
	f.out.failed.CompareAndSwap(nil, &err)
	for _, u := range cl.users[f.id] {
		if !u.failed {
			cl.fail(u, err)
		}
	}
}

// cloneDelta copies a delta out of a snapshot.
func cloneDelta(d *dataflow.Delta) *dataflow.Delta {
	all := make([]uint32, d.N)
	for i := range all {
		all[i] = uint32(i)
	}
	return &dataflow.Delta{Batch: d.Gather(all), Diffs: slices.Clone(d.Diffs)}
}

// attach puts a flow that is complete up to the cluster's epoch into service. It
// reports false, and does nothing, if an import cannot be pinned at that epoch.
// The imports are given, as a DROP may take them out of the catalog meanwhile.
func (cl *cluster) attach(f *flow, imports map[plan.ObjectID]*collection) bool {
	pins := map[plan.ObjectID]*pin{}
	for _, id := range f.df.imports() {
		in, s := imports[id], cl.seen[id]
		if in.stage == &cl.stage {
			continue
		}
		if s != nil {
			continue
		}
		p := &pin{coll: in}
		if pins[id] = p; !p.place(cl.done.get()) {
			for _, p := range pins {
				p.release()
			}
			return false
		}
	}
	cl.flows = append(cl.flows, f)
	if len(cl.users[f.id]) > 0 { // else it is the last: what it reads is here already
		cl.sortFlows()
	}
	for _, id := range f.df.imports() {
		cl.users[id] = append(cl.users[id], f)
		s := cl.seen[id]
		if p := pins[id]; p != nil {
			s = &seen{pin: p, foreign: p.coll.stage != cl.c.timeline.ingest}
			cl.seen[id] = s
			if s.foreign {
				cl.foreign = append(cl.foreign, s)
			}
		}
		if s != nil {
			s.users++
		}
	}
	return true
}

// sortFlows puts the flows into dependency order.
func (cl *cluster) sortFlows() {
	rank := cl.c.ranks()
	slices.SortStableFunc(cl.flows, func(a, b *flow) int { return rank[a.id] - rank[b.id] })
}

// detach takes a flow out of service and frees what it held.
func (cl *cluster) detach(id plan.ObjectID) {
	i := slices.IndexFunc(cl.flows, func(f *flow) bool { return f.id == id })
	if i < 0 {
		return
	}
	f := cl.flows[i]
	cl.flows = slices.Delete(cl.flows, i, i+1)
	for _, in := range f.df.imports() {
		cl.users[in] = slices.DeleteFunc(cl.users[in], func(u *flow) bool { return u == f })
		if len(cl.users[in]) == 0 {
			delete(cl.users, in)
		}
		if s := cl.seen[in]; s != nil {
			if s.users--; s.users == 0 {
				s.release()
				delete(cl.seen, in)
				cl.foreign = slices.DeleteFunc(cl.foreign, func(f *seen) bool { return f == s })
			}
		}
	}
	f.df.close()
}
