package coord

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow/render"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// memoryGate keeps the heap within its limit: over it, sources are held back,
// and if that does not help, the query that has made most is ended. What is
// maintained goes on.
type memoryGate struct {
	limit int64
	log   *slog.Logger
	// relieve asks for a checkpoint: what it writes is mapped from then on.
	relieve func()
	mu      sync.Mutex
	open    chan struct{} // nil: open
	// paused, if not nil, is closed when queries may make more rows: it is being
	// found out whether one has to be ended.
	paused atomic.Pointer[chan struct{}]
	// since is the bytes of rows that queries have made since the heap was looked at;
	// at room they must not make more before it is looked at again, for which look
	// is asked.
	since, room atomic.Int64
	look        chan chan struct{}
	done        chan struct{} // closed when run has ended

	queries map[*queryMemory]struct{} // that run
}

// queryMemory is what a running query has made so far, in bytes of rows.
type queryMemory struct {
	gate   *memoryGate
	made   atomic.Int64
	ctx    context.Context
	cancel context.CancelCauseFunc
	ended  atomic.Bool // for want of memory
}

// add counts rows that a query reads or makes.
func (q *queryMemory) add(bytes int) {
	q.made.Add(int64(bytes))
	g := q.gate
	if ch := g.paused.Load(); ch != nil {
		<-*ch
	}
	if since := g.since.Add(int64(bytes)); g.limit <= 0 || since < g.room.Load() {
		return
	}
	seen := make(chan struct{})
	select {
	case g.look <- seen:
		<-seen
	case <-q.ctx.Done():
		return
	case <-g.done:
		return
	}
	if g.room.Load() == 0 { // another query has been ended and is not gone yet
		select {
		case <-time.After(memoryTickQuery):
		case <-q.ctx.Done():
		}
	}
}

// enter registers a query, which leave ends.
func (g *memoryGate) enter(ctx context.Context) (context.Context, *queryMemory) {
	q := &queryMemory{gate: g}
	ctx, q.cancel = context.WithCancelCause(ctx)
	q.ctx = ctx
	g.mu.Lock()
	if g.queries == nil {
		g.queries = map[*queryMemory]struct{}{}
	}
	g.queries[q] = struct{}{}
	g.mu.Unlock()
	return ctx, q
}

func (g *memoryGate) leave(q *queryMemory) {
	g.mu.Lock()
	delete(g.queries, q)
	g.mu.Unlock()
	q.cancel(nil)
}

// The heap is looked at more often while queries run, who can fill it fast.
const (
	memoryTick      = 100 * time.Millisecond
	memoryTickQuery = 10 * time.Millisecond
	// gateShare of the limit closes the gate; queryShare, for queryTicks in
	// turn, ends a query. (The collector's own aim is 0.9 of the limit.)
	gateShare  = 0.9
	queryShare = 0.95
	// queryMade is the part of the limit that a query must have made to be the
	// one to blame; over queryShareAny any is.
	queryMade     = 1.0 / 8
	queryShareAny = 1.25
	queryTicks    = 3
	queryPause    = 20 // ticks until it is looked at again
)

// run samples the heap.
func (g *memoryGate) run(ctx context.Context) {
	defer close(g.done)
	if g.limit <= 0 {
		return
	}
	timer := time.NewTimer(memoryTick)
	defer timer.Stop()
	h := heapWatch{sample: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}}
	for {
		var asked chan struct{}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			h.over++
		case asked = <-g.look:
			if h.over >= 0 || !h.ended {
				h.over = queryTicks
			}
		}
		g.sample(&h)
		if asked != nil {
			close(asked)
			continue
		}
		g.mu.Lock()
		next := memoryTick
		if len(g.queries) > 0 {
			next = memoryTickQuery
		}
		g.mu.Unlock()
		timer.Reset(next)
	}
}

// heapWatch is what run knows of the heap.
type heapWatch struct {
	sample []metrics.Sample
	over   int  // ticks for which it was over its share; negative after a close look
	ended  bool // a query was ended then, and may not be gone yet
}

// sample looks at the heap once.
func (g *memoryGate) sample(h *heapWatch) {
	g.since.Store(0)
	used := g.used(h.sample)
	if used <= queryShare {
		h.over, h.ended = min(h.over, 0), false
	}
	end := false
	paused := h.over >= queryTicks
	if paused {
		// Much of it may be garbage. To find out takes long in a large heap.
		ch := make(chan struct{})
		g.paused.Store(&ch)
		runtime.GC()
		used = g.used(h.sample)
		end, h.over, h.ended = used > queryShare, -queryPause, false
	}
	g.mu.Lock()
	switch {
	case used > gateShare && g.open == nil:
		g.open = make(chan struct{})
	case used <= gateShare && g.open != nil:
		close(g.open)
		g.open = nil
	}
	if used > gateShare {
		g.relieve()
	}
	if end {
		h.ended = g.endLargest(used > queryShareAny)
	}
	g.mu.Unlock()
	g.room.Store(max(int64((1-used)*float64(g.limit)), 0))
	if paused {
		close(*g.paused.Swap(nil))
	}
}

// used is the share of the limit that the heap takes.
func (g *memoryGate) used(sample []metrics.Sample) float64 {
	metrics.Read(sample)
	return float64(sample[0].Value.Uint64()) / float64(g.limit)
}

// endLargest cancels the query that has made most, if that is much or any will
// do, and reports whether it has. Call with the lock held.
func (g *memoryGate) endLargest(anyone bool) bool {
	var most *queryMemory
	for q := range g.queries {
		if most == nil || q.made.Load() > most.made.Load() {
			most = q
		}
	}
	if most == nil || !anyone && float64(most.made.Load()) < float64(g.limit)*queryMade {
		return false
	}
	g.log.Warn("a query was ended for want of memory", slog.Int64("bytes_made", most.made.Load()))
	delete(g.queries, most)
	most.ended.Store(true)
	detail := "The server has reached its memory limit."
	if n := most.made.Load(); n >= 1<<20 {
		detail = fmt.Sprintf("The server has reached its memory limit, and this query had made most: %d MB of rows.", n>>20)
	}
	most.cancel(pgerror.New(pgerror.OutOfMemory, "out of memory").WithDetail("%s", detail).
		WithHint("Ask for fewer rows, or keep the result up to date as a materialized view."))
	return true
}

// wait returns when the gate is open.
func (g *memoryGate) wait(ctx context.Context) error {
	g.mu.Lock()
	ch := g.open
	g.mu.Unlock()
	if ch == nil {
		return nil
	}
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// runOnce runs a plan over what a reader gives, within the server's memory. If that
// is not enough, and nothing has been given out yet, it runs again in parts.
func (c *Coordinator) runOnce(ctx context.Context, rel plan.Rel, r *reader, emit render.Emit) error {
	some := false
	ended, err := c.runWithin(ctx, rel, r, false, func(b *columnar.Batch) error {
		some = true
		return emit(b)
	})
	if err == nil || !ended || some || ctx.Err() != nil || !render.Partitionable(rel) {
		return err
	}
	c.opts.Logger.Info("a query runs again in parts for want of memory")
	_, err = c.runWithin(ctx, rel, r, true, emit)
	return err
}

// runWithin runs a plan, perhaps in parts, and reports whether the keeper of the
// memory has ended it.
func (c *Coordinator) runWithin(ctx context.Context, rel plan.Rel, r *reader, parts bool, emit render.Emit) (ended bool, err error) {
	ctx, q := c.memory.enter(ctx)
	defer c.memory.leave(q)
	m := &render.Memory{Sort: c.sortMemory(), Temp: c.tempFile, Made: q.add, Wrote: r.s.set.tempLimit(), Partition: parts}
	err = render.RunOnce(ctx, rel, r, render.Options{Once: true, Exec: c.exec, Context: r.ctx, Memory: m}, emit)
	return q.ended.Load(), err
}

// tempLimit counts what a query writes to temporary files, and ends it beyond the
// setting temp_file_limit.
func (s *settings) tempLimit() func(bytes int) error {
	v, _ := s.get("temp_file_limit")
	limit, err := parseSizeSetting(v)
	if err != nil || limit < 0 {
		return nil
	}
	wrote := int64(0)
	return func(bytes int) error {
		if wrote += int64(bytes); wrote > limit<<10 {
			return pgerror.New(pgerror.ConfigurationLimitExceeded, "temporary file size exceeds temp_file_limit (%dkB)", limit)
		}
		return nil
	}
}

// sortMemory is how much of a query's rows to be sorted is kept in memory.
func (c *Coordinator) sortMemory() int64 {
	const least, most = 16 << 20, 256 << 20
	if c.memory.limit <= 0 {
		return most
	}
	return min(max(c.memory.limit/16, least), most)
}

// clearTemp removes the files of queries that were left behind by a crash between
// making one and taking its name away.
func (c *Coordinator) clearTemp() error { return os.RemoveAll(filepath.Join(c.dir, "tmp")) }

// tempFile makes a file for a query that has no name, so that a crash leaves
// nothing behind.
func (c *Coordinator) tempFile() (*os.File, error) {
	dir := filepath.Join(c.dir, "tmp")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "query-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
