package coord

import (
	"context"
	"encoding/binary"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// upsertState turns the raw records of a source table with the upsert envelope
// into changes: it keeps the current row of every key.
type upsertState struct {
	circuit *differential.Circuit
	in      *differential.Input
	out     *differential.Output
	pending bool
}

// upsertKinds are the columns of raw records: the table's, the operation, the
// unchanged columns.
func upsertKinds(kinds []columnar.Kind) []columnar.Kind {
	return append(append([]columnar.Kind{}, kinds...), columnar.KindInt16, columnar.KindBytes)
}

func (c *Coordinator) newUpsert(kinds []columnar.Kind, key []int) *upsertState {
	u := &upsertState{circuit: differential.New(differential.Options{Partitions: c.partitions, Exec: c.exec})}
	in, s := u.circuit.Input(upsertKinds(kinds))
	u.in = in
	u.out = u.circuit.Output(u.circuit.Upsert(s, key, differential.UpsertOptions{OpCol: len(kinds), UnchangedCol: len(kinds) + 1}))
	return u
}

func (u *upsertState) push(d *dataflow.Delta) {
	u.in.Push(d)
	u.pending = true
}

func (u *upsertState) step(e dataflow.Epoch) []*dataflow.Delta {
	u.pending = false
	u.circuit.Step(e)
	return u.out.Take()
}

// upsertDelta puts a chunk's operations into columns beside its rows.
func upsertDelta(tc *sources.TableChunk) *dataflow.Delta {
	ops := columnar.NewBuilder(columnar.KindInt16, len(tc.Ops))
	for _, op := range tc.Ops {
		ops.Int16(int16(op))
	}
	un := columnar.NewBuilder(columnar.KindBytes, len(tc.Ops))
	for i := range tc.Ops {
		if i >= len(tc.Unchanged) || len(tc.Unchanged[i]) == 0 {
			un.Null()
			continue
		}
		un.Extend(func(dst []byte) []byte {
			for _, w := range tc.Unchanged[i] {
				dst = binary.LittleEndian.AppendUint64(dst, w)
			}
			return dst
		})
	}
	d := &dataflow.Delta{}
	d.N = tc.Rows.N
	d.Cols = append(append(d.Cols, tc.Rows.Cols...), ops.Build(), un.Build())
	return d
}

// errorColumns are the columns of a source's error relation.
var errorColumns = []catalog.Column{
	{Name: "reason", Type: types.Text, NotNull: true},
	{Name: "partition", Type: types.Text},
	{Name: "record_offset", Type: types.Int8},
	{Name: "key", Type: types.Bytea},
	{Name: "raw", Type: types.Bytea},
	{Name: "at", Type: types.TimestampTZ, NotNull: true},
}

func kindsOf(cols []catalog.Column) []columnar.Kind {
	k := make([]columnar.Kind, len(cols))
	for i, c := range cols {
		k[i] = c.Type.Kind()
	}
	return k
}

// pgMicros is a time as timestamptz.
func pgMicros(t time.Time) int64 { return t.UnixMicro() - 946_684_800_000_000 }

func errorsDelta(errs []sources.RecordError) *dataflow.Delta {
	bs := make([]*columnar.Builder, len(errorColumns))
	for i, c := range errorColumns {
		bs[i] = columnar.NewBuilder(c.Type.Kind(), len(errs))
	}
	bytes := func(b *columnar.Builder, v []byte) {
		if v == nil {
			b.Null()
		} else {
			b.Bytes(v)
		}
	}
	for _, e := range errs {
		bs[0].String(e.Reason)
		bs[1].String(e.Partition)
		bs[2].Int64(e.Offset)
		bytes(bs[3], e.Key)
		bytes(bs[4], e.Raw)
		bs[5].Int64(pgMicros(e.At))
	}
	d := &dataflow.Delta{}
	d.N = len(errs)
	for _, b := range bs {
		d.Cols = append(d.Cols, b.Build())
	}
	return d
}

// runningSource is a source at work: it feeds the timeline.
type runningSource struct {
	c        *Coordinator
	obj      *catalog.Object
	src      sources.Source
	tables   []plan.ObjectID // object of each of the source's tables
	envelope []sources.Envelope
	errors   plan.ObjectID // its error relation
	cancel   context.CancelFunc
	done     chan struct{}

	mu     sync.Mutex
	status sources.Status
	// final is a status that is true once all that was pushed is durable.
	final    *sources.Status
	inFlight int // chunks pushed and not yet durable

	records  atomic.Int64
	bytes    atomic.Int64
	errCount atomic.Int64
	complete bool // the snapshot is complete; owned by the source's goroutine
}

// SetStatus implements sources.Feed.
func (s *runningSource) SetStatus(st sources.Status) {
	s.mu.Lock()
	if st.State == "finished" && s.inFlight > 0 {
		s.final = &st
		s.mu.Unlock()
		return
	}
	old := s.status
	s.status, s.final = st, nil
	s.mu.Unlock()
	if st.Error != "" && st.Error != old.Error {
		s.c.log.Warn("source", slog.String("name", s.obj.Name), slog.String("state", st.State), slog.String("error", st.Error))
	}
}

func (s *runningSource) currentStatus() sources.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Push implements sources.Feed: the chunk enters at one epoch. It returns when
// the timeline has taken the chunk, which under load is when there is room.
func (s *runningSource) Push(ctx context.Context, ch *sources.Chunk) error {
	if err := s.c.memory.wait(ctx); err != nil {
		return err
	}
	r := &request{}
	for i := range ch.Tables {
		tc := &ch.Tables[i]
		id := s.tables[tc.Table]
		if tc.Truncate {
			r.changes = append(r.changes, change{id: id, clear: true})
		}
		if tc.Rows.N == 0 {
			continue
		}
		if s.envelope[tc.Table] == sources.EnvelopeUpsert {
			r.changes = append(r.changes, change{id: id, upsert: true, delta: upsertDelta(tc)})
		} else {
			r.changes = append(r.changes, change{id: id, delta: &tc.Rows})
		}
		s.records.Add(int64(tc.Rows.N))
	}
	if len(ch.Errors) > 0 {
		r.changes = append(r.changes, change{id: s.errors, delta: errorsDelta(ch.Errors)})
		s.errCount.Add(int64(len(ch.Errors)))
	}
	if len(ch.Position) > 0 {
		r.positions = map[plan.ObjectID]sources.Position{s.obj.ID: ch.Position}
	}
	if ch.SnapshotDone && !s.complete {
		r.snapshots = []plan.ObjectID{s.obj.ID}
		s.complete = true
	}
	if r.empty() {
		return nil
	}
	s.bytes.Add(ch.Bytes)
	r.measure()
	failed := make(chan error, 1)
	r.done = func(_ dataflow.Epoch, err error) {
		s.landed()
		if err != nil {
			failed <- err
		}
	}
	s.mu.Lock()
	s.inFlight++
	s.mu.Unlock()
	if err := s.c.timeline.submit(ctx, s.c.timeline.chunks, r); err != nil {
		s.landed()
		return err
	}
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// landed counts a chunk that is durable, or never will be.
func (s *runningSource) landed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight--; s.inFlight == 0 && s.final != nil {
		s.status, s.final = *s.final, nil
	}
}

// sourceConfig is the declaration of a source with names and secrets resolved.
func (c *Coordinator) sourceConfig(o *catalog.Object, cat *catalog.Snapshot) (sources.Config, error) {
	opts, err := c.resolveOptions(cat, o.Options)
	if err != nil {
		return sources.Config{}, err
	}
	return sources.Config{Name: o.Name, ID: uint64(o.ID), Options: opts, Tables: sourceTables(cat, o)}, nil
}

// sourceTables are the relations that a source object yields, as it was
// created: itself, or its subsources in the order of their ids.
func sourceTables(cat *catalog.Snapshot, o *catalog.Object) []sources.Table {
	var out []sources.Table
	for _, t := range sourceObjects(cat, o) {
		st := sources.Table{Name: t.Options["upstream"], Envelope: envelopeOf(t), Key: t.PrimaryKey}
		for _, col := range t.Columns {
			st.Columns = append(st.Columns, sources.Column{Name: col.Name, Type: col.Type, NotNull: col.NotNull})
		}
		for k, v := range t.Options {
			if name, ok := strings.CutPrefix(k, "props."); ok {
				if st.Props == nil {
					st.Props = map[string]string{}
				}
				st.Props[name] = strings.TrimPrefix(v, literalRef)
			}
		}
		out = append(out, st)
	}
	return out
}

// sourceObjects are the objects of a source's tables.
func sourceObjects(cat *catalog.Snapshot, o *catalog.Object) []*catalog.Object {
	if len(o.Columns) > 0 {
		return []*catalog.Object{o}
	}
	var out []*catalog.Object
	for _, u := range cat.Users(o.ID) {
		if u.Parent == o.ID && u.Options["role"] == "subsource" {
			out = append(out, u)
		}
	}
	return out
}

func envelopeOf(o *catalog.Object) sources.Envelope {
	switch o.Options["envelope"] {
	case "upsert":
		return sources.EnvelopeUpsert
	case "changes":
		return sources.EnvelopeChanges
	}
	return sources.EnvelopeAppend
}

func envelopeName(e sources.Envelope) string {
	return [...]string{"", "append", "upsert", "changes"}[e]
}

// startSource runs a source of the catalog in the background.
func (c *Coordinator) startSource(o *catalog.Object) {
	cat := c.catalog.Load()
	s := &runningSource{c: c, obj: o, done: make(chan struct{})}
	for _, t := range sourceObjects(cat, o) {
		s.tables = append(s.tables, t.ID)
		s.envelope = append(s.envelope, envelopeOf(t))
	}
	for _, u := range cat.Users(o.ID) {
		if u.Parent == o.ID && u.Options["role"] == "errors" {
			s.errors = u.ID
		}
	}
	if len(s.tables) > 0 {
		if coll := c.collection(s.tables[0]); coll != nil {
			s.complete = coll.isReady()
		}
	}
	ctx, cancel := context.WithCancel(c.ctx)
	s.cancel = cancel
	s.status = sources.Status{State: "starting", Updated: c.opts.Now()}
	c.mu.Lock()
	c.sources[o.ID] = s
	c.mu.Unlock()
	c.tasks.Go(func() {
		defer close(s.done)
		s.run(ctx, cat)
	})
}

func (s *runningSource) run(ctx context.Context, cat *catalog.Snapshot) {
	wait := time.Second
	for ctx.Err() == nil {
		err := s.attempt(ctx, cat)
		if ctx.Err() != nil {
			return
		}
		s.SetStatus(sources.Status{State: "failed", Error: err.Error(), Lag: -1, Updated: s.c.opts.Now()})
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		wait = min(2*wait, time.Minute)
	}
}

// attempt runs the source once from its last position.
func (s *runningSource) attempt(ctx context.Context, cat *catalog.Snapshot) error {
	if s.c.opts.Sources == nil {
		return pgerror.Unsupported("sources in this build")
	}
	cfg, err := s.c.sourceConfig(s.obj, cat)
	if err != nil {
		return err
	}
	src, err := s.c.opts.Sources(ctx, s.obj.Options["connector"], cfg)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.src = src
	s.mu.Unlock()
	defer src.Close()
	from := sources.Position{}
	if err := s.c.timeline.do(ctx, func() {
		for k, v := range s.c.positions[s.obj.ID] {
			from[k] = v
		}
	}); err != nil {
		return err
	}
	return src.Run(ctx, from, s)
}

// stop ends the source's goroutine and waits for it.
func (s *runningSource) stop() {
	s.cancel()
	<-s.done
}

// durable tells the source that a checkpoint holds everything up to p.
func (s *runningSource) durable(p sources.Position) {
	s.mu.Lock()
	src := s.src
	s.mu.Unlock()
	if src != nil {
		src.Durable(p)
	}
}
