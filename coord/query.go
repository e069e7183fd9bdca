package coord

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
	"github.com/streamdb/streamdb/dataflow/render"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// prepared is a statement with what analysis found. It is analyzed anew when
// the catalog or the search path has changed.
type prepared struct {
	name     string
	stmt     *parser.Statement // nil: the empty query
	sql      string
	declared []types.OID
	params   []types.Type
	columns  []pgwire.Column // nil: returns no rows
	bound    planner.Bound   // of queries and DML
	rel      plan.Rel        // optimized, of queries; parameters are still in it
	point    *pointRead      // what rel comes to, if that is all
	asOf     *parser.AsOf    // nil: now
	cat      *catalog.Snapshot
	path     string
	fromSQL  bool // made by PREPARE
	expanded bool // analyzed within a transaction that computes some views itself
}

// analyze binds and plans a statement, if it is a query or DML, and finds its
// parameters and result columns.
func (s *Session) analyze(p *prepared) error {
	if p.stmt == nil {
		return nil
	}
	p.cat, p.path = s.snapshot(), s.searchPathKey()
	p.expanded = s.expand() != nil
	switch n := p.stmt.Node.(type) {
	case *parser.Select:
		p.asOf = n.Query.AsOf
		return s.analyzeBound(p)
	case *parser.Postgres:
		if n.Stmt.GetInsertStmt() != nil || n.Stmt.GetUpdateStmt() != nil || n.Stmt.GetDeleteStmt() != nil || n.Stmt.GetMergeStmt() != nil {
			return s.analyzeBound(p)
		}
	}
	if d, ok := p.stmt.Node.(*parser.DeclareCursor); ok && d.Query != nil {
		q, err := s.cursorQuery(p, d)
		if err != nil {
			return err
		}
		p.params = q.params
		return nil
	}
	for _, o := range p.declared {
		p.params = append(p.params, types.Of(o))
	}
	cols, err := s.utilityColumns(p)
	p.columns = cols
	return err
}

func (s *Session) analyzeBound(p *prepared) error {
	if f := s.c.opts.Planning; f != nil {
		return f(p.sql, func() error { return s.planBound(p) })
	}
	return s.planBound(p)
}

// planBound binds and plans a query or DML.
func (s *Session) planBound(p *prepared) error {
	b, err := planner.Bind(s.bindContext(p.declared), p.stmt)
	if err != nil {
		return err
	}
	p.bound = b
	switch b := b.(type) {
	case *planner.Query:
		p.params = b.Params
		p.columns = resultColumns(b.Columns)
		if p.rel, err = planner.Optimize(b.Rel, s.optimizeOptions()); err == nil {
			err = s.optimizeSteps(b.Steps)
		}
		if p.asOf == nil && !b.Writes() && err == nil {
			p.point = s.pointOf(p.rel)
		}
	case *planner.Write:
		p.params, p.columns = b.Params, returningColumns(b.Returning)
		if err = s.optimizeWrite(b); err == nil {
			p.rel = b.Rel
		}
	}
	return err
}

// refresh analyzes again if what the analysis depended on has changed. A
// result that would have other columns is an error, as drivers expect it.
func (s *Session) refresh(p *prepared) error {
	if p.stmt == nil || (p.cat == s.snapshot() && p.path == s.searchPathKey() && !p.expanded && s.expand() == nil) {
		return nil
	}
	old := p.columns
	n := &prepared{name: p.name, stmt: p.stmt, sql: p.sql, declared: p.declared, fromSQL: p.fromSQL}
	if len(p.declared) < len(p.params) {
		n.declared = make([]types.OID, len(p.params))
		for i, t := range p.params {
			n.declared[i] = t.OID
		}
	}
	if err := s.analyze(n); err != nil {
		return err
	}
	if !slices.EqualFunc(old, n.columns, func(a, b pgwire.Column) bool { return a.Type.OID == b.Type.OID && a.Name == b.Name }) {
		return pgerror.New(pgerror.FeatureNotSupported, "cached plan must not change result type")
	}
	*p = *n
	return nil
}

func resultColumns(cols []planner.ResultColumn) []pgwire.Column {
	out := make([]pgwire.Column, len(cols))
	for i, c := range cols {
		out[i] = pgwire.Column{Name: c.Name, Type: c.Type, TableOID: c.TableOID, AttrNum: c.AttrNum}
	}
	return out
}

func returningColumns(r *planner.Returning) []pgwire.Column {
	if r == nil {
		return nil
	}
	return resultColumns(r.Columns)
}

// optimizeOptions are those of one-off queries.
func (s *Session) optimizeOptions() planner.Options {
	return planner.Options{Indexes: s.indexes, Rows: s.c.estimateRows}
}

// bitwiseEqual says whether two values of a type are equal just if their bits are.
func bitwiseEqual(t types.Type) bool {
	switch t.Storage().OID {
	case types.OIDBool, types.OIDInt2, types.OIDInt4, types.OIDInt8, types.OIDOid, types.OIDText, types.OIDVarchar,
		types.OIDName, types.OIDBytea, types.OIDDate, types.OIDTime, types.OIDTimestamp, types.OIDTimestampTZ, types.OIDUUID:
		return true
	}
	return false
}

// reader gives a query its collections at one epoch, with the changes of the
// session's own transaction on top.
type reader struct {
	s     *Session
	ctx   *expr.Context
	snaps map[plan.ObjectID]*trace.TraceSnapshot
	// writes are the transaction's changes that it sees; given the relations that
	// exist only while the statement runs.
	writes []tableWrite
	given  map[plan.ObjectID]*columnar.Batch

	read rowsRead
}

// rowsRead counts the rows that reads have looked at, and that were put in order
// for that.
type rowsRead struct{ rows, sorted int }

// give adds a relation that exists only while the statement runs.
func (r *reader) give(id plan.ObjectID, rows *columnar.Batch) {
	if r.given == nil {
		r.given = map[plan.ObjectID]*columnar.Batch{}
	}
	r.given[id] = rows
}

// openReader takes snapshots of the objects that rels read. write says that
// the read is for a write: unless its transaction has fixed an epoch, it sees what
// is applied though not yet durable, and may not be told to the client before its
// own commit.
func (s *Session) openReader(ctx context.Context, write bool, rels ...plan.Rel) (_ *reader, err error) {
	ids := readIDs(rels)
	// The first read of a transaction that sees one epoch throughout pins it
	// before it reads, so that the other collections keep it, too.
	first := !write && s.tx != nil && s.tx.repeat() && s.tx.explicit && s.tx.pinned == 0
	defer func() {
		if err != nil && first {
			s.c.pins.set(s.tx, 0)
		}
	}()
	var next dataflow.Epoch // the epoch to try; 0: the newest
	for try := 0; ; try++ {
		e := next
		if next == 0 {
			if e, err = s.chooseEpoch(ctx, ids, write); err != nil {
				return nil, err
			}
		}
		if first {
			if s.c.pins.set(s.tx, e); next == 0 && s.c.readEpoch() != e && try < maxPinTries {
				continue // some may have merged past it before
			}
		}
		if err := s.c.awaitAll(ctx, ids, e); err != nil {
			return nil, err
		}
		if next = s.c.passedOver(ids, e); next != 0 {
			if s.tx != nil && s.tx.pinned != 0 {
				return nil, pgerror.New(pgerror.SerializationFailure, "could not serialize access: a view has never been at the transaction's snapshot").
					WithHint("Run the transaction again.")
			}
			if write {
				next = 0
			} else if err := s.c.timeline.durable.wait(ctx, next); err != nil {
				return nil, err
			}
			continue
		}
		r, err := s.tryReader(ids, e)
		if err == nil {
			if s.tx != nil && s.tx.repeat() && s.tx.explicit && s.tx.pinned == 0 {
				s.tx.pinned = e
				s.c.pins.set(s.tx, e)
			}
			if s.tx != nil {
				s.tx.noteReads(ids, e)
			}
			return r, nil
		}
		if !errors.Is(err, errVersionGone) {
			return nil, err
		}
		if s.tx != nil && s.tx.pinned != 0 {
			return nil, pgerror.New(pgerror.SerializationFailure, "could not serialize access: the transaction's snapshot is no longer kept").
				WithHint("Run the transaction again.")
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// passedOver is an epoch after e that a view which never was at e has been at; 0
// if all have been at e.
func (c *Coordinator) passedOver(ids []plan.ObjectID, e dataflow.Epoch) (to dataflow.Epoch) {
	for _, id := range ids {
		if coll := c.collection(id); coll != nil {
			if x, gap := coll.stage.passed(e); gap {
				to = max(to, x)
			}
		}
	}
	return to
}

// maxPinTries bounds the attempts to pin an epoch while newer ones come in.
const maxPinTries = 100

// chooseEpoch is the epoch of a read: the newest durable one, and not before
// the collections have got their content.
func (s *Session) chooseEpoch(ctx context.Context, ids []plan.ObjectID, write bool) (dataflow.Epoch, error) {
	if s.tx != nil && s.tx.pinned != 0 {
		for _, id := range ids {
			if coll := s.c.collection(id); coll != nil && dataflow.Epoch(coll.readyAt.Load()) > s.tx.pinned {
				return 0, pgerror.New(pgerror.SerializationFailure, "could not serialize access: a relation has got another form since the transaction's snapshot").
					WithHint("Run the transaction again.")
			}
		}
		return s.tx.pinned, nil
	}
	var content dataflow.Epoch
	for _, id := range ids {
		if coll := s.c.collection(id); coll != nil {
			if err := coll.await(ctx, 0); err != nil {
				return 0, err
			}
			content = max(content, dataflow.Epoch(coll.readyAt.Load()))
		}
	}
	if write {
		return s.c.timeline.ingest.done.get(), nil
	}
	if err := s.c.timeline.durable.wait(ctx, content); err != nil {
		return 0, err
	}
	return s.c.readEpoch(), nil
}

// asOf reads at a fixed epoch of the past, or of the near future, while f runs.
func (s *Session) asOf(ctx context.Context, p *prepared, f func() error) error {
	e, err := s.epochExpr(p, &p.asOf.Expr)
	if err != nil {
		return err
	}
	now := s.c.readEpoch()
	switch {
	case p.asOf.AtLeast:
		e = max(e, now)
	case e < s.c.readable() && e != now:
		return pgerror.New(pgerror.ObjectNotInPrerequisiteState, "the past at epoch %d is no longer kept", e).
			WithHint("The oldest epoch that can be read now is %d.", s.c.readable())
	}
	if err := s.c.timeline.durable.wait(ctx, e); err != nil {
		return err
	}
	tx := s.beginTx()
	old := tx.pinned
	tx.pinned = e
	defer func() { tx.pinned = old }()
	return f()
}

// readIDs lists the collections that plans read, with the indexes that they
// look up.
func readIDs(rels []plan.Rel) []plan.ObjectID {
	var ids []plan.ObjectID
	for _, rel := range rels {
		for _, id := range plan.ReadIDs(rel) {
			if !planner.Transient(id) && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func (s *Session) tryReader(ids []plan.ObjectID, e dataflow.Epoch) (*reader, error) {
	r := &reader{s: s, ctx: s.exprContext(), snaps: make(map[plan.ObjectID]*trace.TraceSnapshot, len(ids))}
	r.ctx.Epoch = e
	if s.tx != nil {
		r.writes = s.tx.writes[:len(s.tx.writes):len(s.tx.writes)]
	}
	for _, id := range ids {
		coll := s.c.collection(id)
		if coll == nil {
			if o := s.snapshot().ByID(id); o != nil && o.Kind == catalog.KindSequence || s.c.virtual[id] != nil || s.ownObject(id) {
				continue
			}
			r.close()
			return nil, pgerror.New(pgerror.UndefinedTable, "a relation of the query has been dropped meanwhile")
		}
		if s.rewritten(id) {
			continue // its rows are among the transaction's own changes
		}
		sn, err := coll.snapshot(e)
		if err != nil {
			r.close()
			return nil, err
		}
		if sn != nil {
			r.snaps[id] = sn
		}
	}
	return r, nil
}

// expand tells the binder which materialized views the session's transaction
// must compute itself: those that it has made, and those over tables that it
// has changed. Nil outside of such a transaction.
func (s *Session) expand() func(o *catalog.Object) bool {
	tx := s.tx
	if tx == nil || len(tx.writes) == 0 && tx.ddl == nil {
		return nil
	}
	cat := s.snapshot()
	var stale func(id plan.ObjectID) bool
	stale = func(id plan.ObjectID) bool {
		if s.ownObject(id) || s.rewritten(id) || tx.written[id] {
			return true
		}
		o := cat.ByID(id)
		return o != nil && slices.ContainsFunc(o.Deps, stale)
	}
	return func(o *catalog.Object) bool { return stale(o.ID) }
}

// ownObject says whether an object was made by the session's transaction.
func (s *Session) ownObject(id plan.ObjectID) bool {
	return s.tx != nil && s.tx.ddl != nil && s.c.catalog.Load().ByID(id) == nil
}

// rewritten says whether the session's transaction has given a table a new form.
func (s *Session) rewritten(id plan.ObjectID) bool {
	return s.tx != nil && s.tx.ddl != nil && s.tx.ddl.rebuilt[id]
}

func (r *reader) close() {
	for _, sn := range r.snaps {
		sn.Release()
	}
	r.snaps = nil
	r.s.read.rows += r.read.rows
	r.s.read.sorted += r.read.sorted
	r.read = rowsRead{}
}

// Positive implements render.PositiveReader: what the session's own transaction
// has not changed can be read without rows that cancel.
func (r *reader) Positive(get *plan.Get) bool {
	return !slices.ContainsFunc(r.writes, func(w tableWrite) bool { return w.id == get.ID })
}

// Snapshot implements render.Reader.
func (r *reader) Snapshot(ctx context.Context, get *plan.Get) iter.Seq2[*dataflow.Delta, error] {
	return func(yield func(*dataflow.Delta, error) bool) {
		give := func(d *dataflow.Delta) bool {
			if err := ctx.Err(); err != nil {
				yield(nil, context.Cause(ctx))
				return false
			}
			r.read.rows += d.N
			return yield(selectCols(d, get), nil)
		}
		if b := r.given[get.ID]; b != nil {
			give(&dataflow.Delta{Batch: *b})
			return
		}
		if o := r.s.snapshot().ByID(get.ID); o != nil && o.Kind == catalog.KindSequence {
			give(&dataflow.Delta{Batch: *r.s.sequenceRow(o)})
			return
		}
		if vt := r.s.c.virtual[get.ID]; vt != nil {
			b, err := vt.rows(r.s)
			if err != nil {
				yield(nil, err)
				return
			}
			give(&dataflow.Delta{Batch: *b})
			return
		}
		if get.Lookup != nil {
			if !r.lookup(get.Lookup, give) {
				return
			}
		} else if sn := r.snaps[get.ID]; sn != nil {
			// Rows that cancel would meet in joins, and multiply.
			more := true
			sn.ScanConsolidated(func(d *dataflow.Delta) bool {
				more = give(d)
				return more
			})
			if !more {
				return
			}
		}
		for _, w := range r.writes {
			if w.id == get.ID && !give(w.delta) {
				return
			}
		}
	}
}

// runQuery runs an optimized plan once and gives its rows to emit.
func (s *Session) runQuery(ctx context.Context, rel plan.Rel, params []*expr.Const, write bool, emit render.Emit) error {
	if len(params) > 0 {
		rel = plan.BindParams(rel, params)
	}
	r, err := s.openReader(ctx, write, rel)
	if err != nil {
		return err
	}
	defer r.close()
	return s.c.runOnce(ctx, rel, r, emit)
}

// portal is a statement with its parameters, executed in parts: a protocol
// portal or a SQL cursor.
type portal struct {
	name   string
	p      *prepared
	params []*expr.Const
	tx     *txn
	level  int  // savepoints of the transaction when it was made
	failed bool // it cannot go on after an error

	cursor bool // made by DECLARE
	hold   bool
	scroll bool

	// rows is the running query; batch and at what it gave last.
	rows   *rowStream
	ran    bool // executed to its end
	tag    string
	buffer []bufferedRows // of a scrollable or held cursor
	pos    int64          // rows before the cursor's position

	sub *subscription // of a cursor over SUBSCRIBE
}

type bufferedRows struct {
	batch *columnar.Batch
}

func (p *portal) columns() []pgwire.Column { return p.p.columns }

func (p *portal) close() {
	if p.rows != nil {
		p.rows.close()
		p.rows = nil
	}
	if p.sub != nil {
		p.sub.close()
		p.sub = nil
	}
}

// rowStream is a running query that gives rows on demand.
type rowStream struct {
	next   func() (*columnar.Batch, error, bool)
	stop   func()
	cancel context.CancelCauseFunc
	batch  *columnar.Batch
	at     int
	done   bool
}

// stream starts a query that is read in parts, beyond the call that started it.
func (s *Session) stream(rel plan.Rel, params []*expr.Const) (*rowStream, error) {
	ctx, cancel := context.WithCancelCause(s.c.ctx)
	if len(params) > 0 {
		rel = plan.BindParams(rel, params)
	}
	r, err := s.openReader(ctx, false, rel)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	st := &rowStream{cancel: cancel}
	seq := func(yield func(*columnar.Batch, error) bool) {
		defer r.close()
		err := s.c.runOnce(ctx, rel, r, func(b *columnar.Batch) error {
			if !yield(b, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
	st.next, st.stop = iter.Pull2(seq)
	return st, nil
}

var errStopped = errors.New("no more rows are wanted")

// take gives up to max rows (0: all) to f in parts, and reports how many, and
// whether the stream has ended.
func (r *rowStream) take(ctx context.Context, max int64, f func(b *columnar.Batch, from, to int) error) (n int64, ended bool, err error) {
	stop := context.AfterFunc(ctx, func() { r.cancel(context.Cause(ctx)) })
	defer stop()
	for max == 0 || n < max {
		if r.done {
			return n, true, nil
		}
		if r.batch == nil || r.at == r.batch.N {
			b, err, ok := r.next()
			if err != nil {
				r.done = true
				return n, true, err
			}
			if !ok {
				r.done = true
				return n, true, nil
			}
			r.batch, r.at = b, 0
			continue
		}
		to := r.batch.N
		if max > 0 {
			to = min(to, r.at+int(max-n))
		}
		if err := f(r.batch, r.at, to); err != nil {
			return n, false, err
		}
		n += int64(to - r.at)
		r.at = to
	}
	return n, false, nil
}

func (r *rowStream) close() {
	r.cancel(errStopped)
	r.stop()
}

// executePortal runs a portal for at most maxRows rows.
func (s *Session) executePortal(ctx context.Context, p *portal, maxRows int, w pgwire.ResultWriter) (suspended bool, err error) {
	if p.ran {
		if p.columns() == nil {
			return false, pgerror.New(pgerror.ObjectNotInPrerequisiteState, "portal \"%s\" cannot be run", p.name)
		}
		return false, w.Complete(countTag(p.tag, 0))
	}
	q, isQuery := p.p.bound.(*planner.Query)
	isQuery = isQuery && !q.Writes()
	kept := !isQuery && (p.rows != nil || maxRows > 0 && p.columns() != nil && returns(p.p.bound))
	if !kept && (!isQuery || (maxRows == 0 && p.rows == nil)) {
		if !isTxControl(p.p.stmt.Node) {
			s.beginTx()
		}
		p.ran = true
		s.notices.tell(w, false)
		tag, err := s.execute(ctx, p.p, p.params, w)
		s.notices.tell(w, true)
		if err != nil {
			return false, err
		}
		p.tag = tag
		s.report(w)
		return false, w.Complete(tag)
	}
	if p.rows == nil {
		if kept {
			p.rows, p.tag, err = s.keep(ctx, p, w)
		} else {
			p.tag = "SELECT 0"
			p.rows, err = s.stream(p.p.rel, p.params)
		}
		if err != nil {
			return false, err
		}
		if err := w.Begin(p.columns()); err != nil {
			return false, err
		}
	}
	width := len(p.columns())
	n, ended, err := p.rows.take(ctx, int64(maxRows), func(b *columnar.Batch, from, to int) error {
		return w.Rows(firstCols(b, width), from, to)
	})
	if err != nil {
		return false, err
	}
	if !ended {
		return true, nil
	}
	p.ran = true
	return false, w.Complete(countTag(p.tag, n))
}

// countTag is a command tag with the rows of one execution as its count.
func countTag(tag string, n int64) string {
	at := strings.LastIndexByte(tag, ' ')
	if at < 0 {
		return tag
	}
	return fmt.Sprintf("%s %d", tag[:at], n)
}

// returns says whether a statement writes, so that it runs to its end however
// few of the rows it returns are wanted.
func returns(bound any) bool {
	switch b := bound.(type) {
	case *planner.Write:
		return true
	case *planner.Query:
		return b.Writes()
	}
	return false
}

// keep executes a writing statement and keeps the rows that it returns.
func (s *Session) keep(ctx context.Context, p *portal, w pgwire.ResultWriter) (*rowStream, string, error) {
	s.beginTx()
	k := &rowKeeper{ResultWriter: w}
	tag, err := s.execute(ctx, p.p, p.params, k)
	if err != nil {
		return nil, "", err
	}
	st := &rowStream{cancel: func(error) {}}
	st.next, st.stop = iter.Pull2(func(yield func(*columnar.Batch, error) bool) {
		for _, b := range k.batches {
			if !yield(b, nil) {
				return
			}
		}
	})
	return st, tag, nil
}

// rowKeeper is a ResultWriter that keeps rows.
type rowKeeper struct {
	pgwire.ResultWriter
	batches []*columnar.Batch
}

// Begin implements pgwire.ResultWriter.
func (*rowKeeper) Begin([]pgwire.Column) error { return nil }

// Rows implements pgwire.ResultWriter.
func (k *rowKeeper) Rows(b *columnar.Batch, from, to int) error {
	sel := make([]uint32, to-from)
	for i := range sel {
		sel[i] = uint32(from + i)
	}
	kept := b.Gather(sel)
	k.batches = append(k.batches, &kept)
	return nil
}

// firstCols drops the columns that are only there to sort by.
func firstCols(b *columnar.Batch, n int) *columnar.Batch {
	if len(b.Cols) == n {
		return b
	}
	return &columnar.Batch{Cols: b.Cols[:n], N: b.N}
}
