package coord

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// progressInterval is how often a quiet subscription tells its progress.
const progressInterval = time.Second

// subscription streams a collection: its snapshot at one epoch, then each
// later epoch's changes. It reads the collection's trace from a held epoch at
// its own pace, so that a slow client holds back nobody and costs no queue:
// the epochs that it has not read yet merge into fewer.
type subscription struct {
	s     *Session
	coll  *collection
	own   bool // the collection was made for the subscription
	width int

	shape    *changeShape
	progress bool
	snapshot bool
	upTo     dataflow.Epoch

	at      dataflow.Epoch // everything up to it has been given
	begun   bool
	now     *pin              // at at
	end     *pin              // where it is to end, if that is said
	pending []*columnar.Batch // made, not yet fetched
	next    int               // row of pending[0]
	told    time.Time         // last progress
	done    bool
}

// subscribeColumns are the columns of the result.
func (s *Session) subscribeColumns(p *prepared, n *parser.Subscribe) ([]pgwire.Column, error) {
	q, err := s.subscribeQuery(p, n)
	if err != nil {
		return nil, err
	}
	p.bound = nil
	h, err := newChangeShape(n, resultColumns(q.Columns), nil)
	if err != nil {
		return nil, err
	}
	return h.columns, nil
}

// subscribeQuery binds what is subscribed to.
func (s *Session) subscribeQuery(p *prepared, n *parser.Subscribe) (*planner.Query, error) {
	if n.Query != nil {
		return planner.BindQuery(s.bindContext(nil), p.stmt.Text, n.Query)
	}
	o := s.snapshot().Resolve(catalog.KindTable, n.Name.Schema, n.Name.Name, s.relationPath())
	if o == nil || !o.Relation() {
		return nil, pgerror.As(undefinedRelation(n.Name.Schema, n.Name.Name)).At(n.Name.Pos)
	}
	text := "SELECT * FROM " + quoteName(o.Schema) + "." + quoteName(o.Name)
	q, err := parser.ParseQuery(text)
	if err != nil {
		return nil, err
	}
	return planner.BindQuery(s.bindContext(nil), text, &q)
}

// changelogKey is the key of a relation that a changelog is of.
func (s *Session) changelogKey(n *parser.Subscribe) []int {
	if n.Envelope != changelogEnvelope {
		return nil
	}
	o := s.snapshot().Resolve(catalog.KindTable, n.Name.Schema, n.Name.Name, s.relationPath())
	switch {
	case o.PrimaryKey != nil:
		return slices.Clone(o.PrimaryKey)
	case o.Kind == catalog.KindMaterializedView && len(o.Key) > 0 && !slices.ContainsFunc(o.Key, func(c int) bool { return o.Columns[c].Hidden }):
		return slices.Clone(o.Key)
	}
	key := make([]int, len(o.Columns))
	for i := range key {
		key[i] = i
	}
	return key
}

// subscribe starts a subscription. A plain relation with a collection is read
// as it is; a query gets a dataflow of its own for as long as it is read.
func (s *Session) subscribe(ctx context.Context, p *prepared, n *parser.Subscribe) (*subscription, error) {
	q, err := s.subscribeQuery(p, n)
	if err != nil {
		return nil, err
	}
	if len(q.Params) > 0 {
		return nil, pgerror.Unsupported("SUBSCRIBE with parameters")
	}
	sub := &subscription{s: s, width: len(q.Columns), progress: n.Progress, snapshot: n.Snapshot, upTo: dataflow.MaxEpoch}
	if sub.shape, err = newChangeShape(n, resultColumns(q.Columns), s.changelogKey(n)); err != nil {
		return nil, err
	}
	if n.UpTo != nil {
		if sub.upTo, err = s.epochExpr(p, n.UpTo); err != nil {
			return nil, err
		}
	}
	rel := q.Collection()
	if g, ok := bareGet(rel); ok {
		sub.coll = s.c.collection(g.ID)
	}
	if sub.coll == nil {
		if sub.coll, err = s.temporaryView(rel); err != nil {
			return nil, err
		}
		sub.own = true
	}
	if err := sub.begin(ctx, p, n); err != nil {
		sub.close()
		return nil, err
	}
	return sub, nil
}

// bareGet recognizes a read of a whole collection.
func bareGet(rel plan.Rel) (*plan.Get, bool) {
	if p, ok := rel.(*plan.Project); ok {
		for i, e := range p.Exprs {
			if c, ok := e.(*expr.Column); !ok || c.Index != i {
				return nil, false
			}
		}
		if len(p.Exprs) != len(p.Input.Columns()) {
			return nil, false
		}
		rel = p.Input
	}
	g, ok := rel.(*plan.Get)
	return g, ok && g.Proj == nil
}

// epochExpr evaluates an AS OF or UP TO expression: an epoch in milliseconds,
// or a timestamp.
func (s *Session) epochExpr(p *prepared, x *parser.Expr) (dataflow.Epoch, error) {
	e, err := planner.BindExpr(s.bindContext(nil), p.stmt.Text, x, nil, "AS OF", types.Unknown)
	if err != nil {
		return 0, err
	}
	c, err := expr.EvalConst(e, s.exprContext())
	if err != nil {
		return 0, err
	}
	if c.Val.Null(0) {
		return 0, pgerror.New(pgerror.NullValueNotAllowed, "AS OF must not be NULL")
	}
	switch c.Typ.OID {
	case types.OIDInt4:
		return dataflow.Epoch(c.Val.Int32s()[0]), nil
	case types.OIDInt8:
		return dataflow.Epoch(c.Val.Int64s()[0]), nil
	case types.OIDNumeric:
		v, err := decimal.ToInt64(c.Val.Bytes(0))
		return dataflow.Epoch(v), err
	case types.OIDTimestampTZ, types.OIDTimestamp:
		return dataflow.Epoch((c.Val.Int64s()[0] + 946_684_800_000_000) / 1000), nil
	case types.OIDUnknown, types.OIDText:
		v, err := strconv.ParseUint(string(c.Val.Bytes(0)), 10, 64)
		if err != nil {
			return 0, pgerror.New(pgerror.InvalidTextRepresentation, "invalid epoch \"%s\"", c.Val.Bytes(0))
		}
		return dataflow.Epoch(v), nil
	}
	return 0, pgerror.New(pgerror.DatatypeMismatch, "AS OF must be an epoch in milliseconds or a timestamp, not %s", c.Typ)
}

// temporaryView maintains a query for one subscription.
func (s *Session) temporaryView(rel plan.Rel) (*collection, error) {
	rel, err := planner.Optimize(rel, planner.Options{Maintained: true, Rows: s.c.estimateRows})
	if err != nil {
		return nil, err
	}
	name, _ := s.set.get("cluster")
	name = placement(s.snapshot(), name)
	if name != defaultCluster && s.snapshot().Get(catalog.KindCluster, "", name) == nil {
		return nil, pgerror.New(pgerror.UndefinedObject, "unknown cluster \"%s\"", name)
	}
	var deps []plan.ObjectID
	plan.Walk(rel, func(r plan.Rel) bool {
		if g, ok := r.(*plan.Get); ok {
			deps = append(deps, g.ID)
		}
		return true
	})
	var cl *cluster
	if err := s.c.timeline.do(s.c.ctx, func() { cl = s.c.clusterFor(name, deps) }); err != nil {
		return nil, err
	}
	id, err := s.c.store.AllocateIDs(1)
	if err != nil {
		return nil, diskError(err)
	}
	cols := rel.Columns()
	kinds := make([]columnar.Kind, len(cols))
	key := make([]int, len(cols))
	for i, c := range cols {
		kinds[i], key[i] = c.Type.Kind(), i
	}
	coll := newCollection(plan.ObjectID(id), kinds, key, false, s.c.partitions, &cl.stage)
	coll.temporary = true
	f, err := s.c.newFlow(coll.id, rel, nil, coll)
	if err != nil {
		return nil, err
	}
	s.c.mu.Lock()
	s.c.collections[coll.id] = coll
	s.c.mu.Unlock()
	h := s.c.hydrate(cl, f)
	s.c.tasks.Go(h.run)
	return coll, nil
}

// begin waits for the content and holds it at the first epoch.
func (sub *subscription) begin(ctx context.Context, p *prepared, n *parser.Subscribe) error {
	c := sub.s.c
	if err := sub.coll.await(ctx, 0); err != nil {
		return err
	}
	for {
		// Not before the collection has got its content.
		content := dataflow.Epoch(sub.coll.readyAt.Load())
		if err := c.timeline.durable.wait(ctx, content); err != nil {
			return err
		}
		e := c.readEpoch()
		if n.AsOf != nil {
			at, err := sub.s.epochExpr(p, &n.AsOf.Expr)
			if err != nil {
				return err
			}
			if at > e {
				if err := c.timeline.durable.wait(ctx, at); err != nil {
					return err
				}
			}
			e = at
		}
		if err := sub.coll.await(ctx, e); err != nil {
			return err
		}
		if to, gap := sub.coll.stage.passed(e); gap && n.AsOf == nil {
			if err := c.timeline.durable.wait(ctx, to); err != nil {
				return err
			}
			e = to
		} else if gap {
			return pgerror.New(pgerror.ObjectNotInPrerequisiteState, "the relation has never been at epoch %d, but at %d", e, to)
		}
		if sub.pinBegin(e) {
			return nil
		}
		if n.AsOf != nil {
			return pgerror.New(pgerror.ObjectNotInPrerequisiteState, "the past at epoch %d is no longer kept", e).
				WithHint("The oldest epoch that can be read now is %d.", c.readable())
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
	}
}

// pinBegin pins the collection at the first epoch, and at the last one if that is
// said, and reports whether both can be read.
func (sub *subscription) pinBegin(e dataflow.Epoch) bool {
	now, end := &pin{coll: sub.coll}, &pin{coll: sub.coll}
	if !now.place(e) {
		return false
	}
	if sub.upTo != dataflow.MaxEpoch && !end.place(max(sub.upTo-1, e)) {
		now.release()
		return false
	}
	sub.at, sub.now, sub.end = e, now, end
	return true
}

// close frees the pins, and the dataflow if it is the subscription's own.
func (sub *subscription) close() {
	for _, p := range []*pin{sub.now, sub.end} {
		if p != nil {
			p.release()
		}
	}
	if !sub.own || sub.coll == nil {
		return
	}
	c, id := sub.s.c, sub.coll.id
	c.mu.Lock()
	delete(c.collections, id)
	h := c.hydrations[id]
	c.mu.Unlock()
	if h != nil {
		h.stop()
	}
	for _, cl := range c.clusterList() {
		if &cl.stage == sub.coll.stage {
			cl.notify(epochChanges{epoch: cl.done.get(), barrier: func(dataflow.Epoch) {
				cl.detach(id)
				sub.coll.setDropped()
			}})
		}
	}
	sub.own = false
}

// advance makes the next batches: the snapshot first, then what has changed. It
// waits for a change, or for the interval of progress, until deadline (zero:
// for ever), and reports whether it made any.
func (sub *subscription) advance(ctx context.Context, deadline time.Time) (bool, error) {
	if !sub.begun {
		sub.begun, sub.told = true, time.Now()
		return true, sub.first()
	}
	for {
		if sub.at+1 >= sub.upTo && sub.upTo != dataflow.MaxEpoch {
			sub.done = true
			return false, nil
		}
		made, err := sub.changes(ctx)
		if made || err != nil {
			return made, err
		}
		wait := progressInterval
		if !deadline.IsZero() {
			wait = min(wait, time.Until(deadline))
		}
		if wait <= 0 {
			return false, nil
		}
		wctx, cancel := context.WithTimeout(ctx, wait)
		err = sub.s.c.timeline.durable.wait(wctx, sub.at+1)
		cancel()
		if err != nil && ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		select {
		case <-sub.coll.dropped:
			return false, pgerror.New(pgerror.UndefinedTable, "the subscribed relation was dropped")
		default:
		}
		if sub.progress && time.Since(sub.told) >= progressInterval {
			sub.tellProgress(max(sub.at, sub.s.c.readEpoch()) + 1)
			return true, nil
		}
	}
}

// first makes the snapshot.
func (sub *subscription) first() error {
	if err := sub.coll.rowError(sub.at); err != nil {
		return err
	}
	if sub.progress {
		sub.tellProgress(sub.at)
	}
	if sub.snapshot {
		s, err := snapshotTrace(sub.coll.rows, sub.at)
		if err != nil {
			return err
		}
		if s != nil {
			defer s.Release()
			sub.add(s, sub.at, true)
		}
	}
	if sub.progress {
		sub.tellProgress(sub.at + 1)
	}
	return nil
}

// changes makes batches of what is durable after sub.at, if anything changed.
func (sub *subscription) changes(ctx context.Context) (bool, error) {
	next, err := sub.pinNext(ctx)
	if next == nil || err != nil {
		return false, err
	}
	e := next.at
	defer func() {
		sub.now.release()
		sub.at, sub.now = e, next
	}()
	if err := sub.coll.rowError(e); err != nil {
		return false, err
	}
	made := false
	if u := sub.coll.rows.Upper(); u > 0 && u-1 > sub.at {
		to := min(e, u-1)
		// Epoch by epoch, as far as they are apart; the last may be one of which no
		// batch is left.
		for _, t := range append(sub.coll.rows.Epochs(sub.at, to-1), to) {
			at := &pin{coll: sub.coll}
			if t < to && !at.place(t) {
				continue // merged with a later one just now
			}
			s, ok := sub.coll.rows.Changes(sub.at, t)
			if t < to {
				sub.now.release()
				sub.at, sub.now = t, at
			}
			if !ok {
				return false, errVersionGone
			}
			before := len(sub.pending)
			sub.add(s, t, false)
			s.Release()
			made = made || len(sub.pending) > before
		}
	}
	if made && sub.progress {
		sub.tellProgress(e + 1)
	}
	return made, nil
}

// pinNext pins the collection at the newest durable epoch; nil if that is where
// the subscription is.
func (sub *subscription) pinNext(ctx context.Context) (*pin, error) {
	next := &pin{coll: sub.coll}
	for ctx.Err() == nil {
		e := min(sub.s.c.readEpoch(), sub.upTo-1)
		if e <= sub.at {
			return nil, nil
		}
		if f := sub.coll.failed.Load(); f != nil {
			return nil, *f
		}
		if err := sub.coll.stage.done.wait(ctx, e); err != nil {
			return nil, err
		}
		if to, gap := sub.coll.stage.passed(e); gap {
			if to >= sub.upTo {
				to = sub.upTo - 1 // it ends before: there is nothing in the gap
			} else if err := sub.s.c.timeline.durable.wait(ctx, to); err != nil {
				return nil, err
			}
			e = to
		}
		if next.place(e) {
			return next, nil
		}
		runtime.Gosched() // merged past it meanwhile
	}
	return nil, context.Cause(ctx)
}

// add makes a batch of consolidated changes at epoch e, or of the first rows.
func (sub *subscription) add(s *trace.TraceSnapshot, e dataflow.Epoch, snapshot bool) {
	var parts []*columnar.Batch
	var diffs []int64
	s.Scan(func(d *dataflow.Delta) bool {
		c := cloneDelta(d)
		parts = append(parts, &c.Batch)
		for i := range c.N {
			diffs = append(diffs, c.Diff(i))
		}
		return true
	})
	if len(diffs) == 0 {
		return
	}
	all := columnar.ConcatBatches(sub.coll.kinds, parts...)
	all, diffs = columnar.Consolidate(all, diffs)
	if all.N == 0 {
		return
	}
	if diffs == nil {
		diffs = repeatDiff(1, all.N)
	}
	sub.pending = append(sub.pending, sub.shape.rows(*firstCols(&all, sub.width), diffs, e, snapshot))
}

// tellProgress makes the row that says that everything before e is complete.
func (sub *subscription) tellProgress(e dataflow.Epoch) {
	sub.told = time.Now()
	sub.pending = append(sub.pending, sub.shape.progressed(e))
}

// execSubscribe streams a subscription as the rows of a statement that ends
// only when the client cancels it (or at UP TO).
func (s *Session) execSubscribe(ctx context.Context, p *prepared, n *parser.Subscribe, w pgwire.ResultWriter) (string, error) {
	sub, err := s.subscribe(ctx, p, n)
	if err != nil {
		return "", err
	}
	defer sub.close()
	if err := w.Begin(p.columns); err != nil {
		return "", err
	}
	rows := 0
	err = sub.pump(ctx, func(b *columnar.Batch) error {
		rows += b.N
		return w.Rows(b, 0, b.N)
	}, w.Flush)
	return fmt.Sprintf("SUBSCRIBE %d", rows), err
}

// pump gives batches to emit until the subscription ends.
func (sub *subscription) pump(ctx context.Context, emit func(b *columnar.Batch) error, flush func() error) error {
	for !sub.done {
		if _, err := sub.advance(ctx, time.Time{}); err != nil {
			return err
		}
		for _, b := range sub.pending {
			if err := emit(b); err != nil {
				return err
			}
		}
		sub.pending = sub.pending[:0]
		if err := flush(); err != nil {
			return err
		}
	}
	return nil
}

// copySubscribe runs COPY (SUBSCRIBE …) TO STDOUT.
func (s *Session) copySubscribe(ctx context.Context, p *prepared, n *parser.Copy, o *copyOptions, w pgwire.ResultWriter) (string, error) {
	st := *p.stmt
	st.Node = n.Subscribe
	q := &prepared{stmt: &st, sql: p.sql}
	if err := s.analyze(q); err != nil {
		return "", err
	}
	sub, err := s.subscribe(ctx, q, n.Subscribe)
	if err != nil {
		return "", err
	}
	defer sub.close()
	out, err := w.CopyOut(o.format == "binary", len(q.columns))
	if err != nil {
		return "", err
	}
	enc := newCopyEncoder(o, q.columns, s.TextOptions())
	if err := enc.begin(out); err != nil {
		return "", err
	}
	rows := 0
	err = sub.pump(ctx, func(b *columnar.Batch) error {
		rows += b.N
		for i := range b.N {
			if err := enc.row(out, b, i); err != nil {
				return err
			}
		}
		return nil
	}, out.Flush)
	if err != nil {
		return "", err
	}
	if err := enc.end(out); err != nil {
		return "", err
	}
	return fmt.Sprintf("COPY %d", rows), out.Close()
}

// fetchSubscription runs FETCH on a cursor over SUBSCRIBE: it waits for rows
// until the timeout, by default for the first one.
func (s *Session) fetchSubscription(ctx context.Context, c *portal, n *parser.Fetch, w pgwire.ResultWriter) (string, error) {
	if n.Direction != parser.FetchForward || n.Count < 0 {
		return "", pgerror.New(pgerror.ObjectNotInPrerequisiteState, "cursor can only scan forward")
	}
	timeout := time.Duration(-1)
	if c.sub.shape.envelope == changelogEnvelope { // RisingWave's do not wait unless they are told to
		timeout = 0
	}
	for _, o := range n.With {
		if o.Name == "timeout" {
			d, err := time.ParseDuration(strings.ReplaceAll(o.Value.Text, " ", ""))
			if err != nil {
				return "", pgerror.New(pgerror.InvalidParameterValue, "invalid timeout \"%s\"", o.Value.Text)
			}
			timeout = d
		}
	}
	var deadline time.Time
	if timeout >= 0 {
		deadline = time.Now().Add(timeout)
	}
	if err := w.Begin(c.columns()); err != nil {
		return "", err
	}
	sub := c.sub
	var given int64
	for given < n.Count && !sub.done {
		if len(sub.pending) == 0 {
			if given > 0 && timeout < 0 {
				// Without a timeout FETCH gives what there is, once there is any.
				deadline = time.Now()
			}
			made, err := sub.advance(ctx, deadline)
			if err != nil {
				return "", err
			}
			if len(sub.pending) == 0 && !made {
				break
			}
			continue
		}
		b := sub.pending[0]
		to := sub.next + int(min(int64(b.N-sub.next), n.Count-given))
		if err := w.Rows(b, sub.next, to); err != nil {
			return "", err
		}
		given += int64(to - sub.next)
		if sub.next = to; to == b.N {
			sub.pending, sub.next = sub.pending[1:], 0
		}
	}
	return fmt.Sprintf("FETCH %d", given), nil
}
