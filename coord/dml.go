package coord

import (
	"context"
	"errors"
	"slices"
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// maxWriteBytes bounds what one transaction may write, as it is kept in memory
// and in one log record.
const maxWriteBytes = 512 << 20

// optimizeWrite optimizes the plans of a statement that changes tables.
func (s *Session) optimizeWrite(w *planner.Write) (err error) {
	opts := s.optimizeOptions()
	if w.Rel, err = planner.Optimize(w.Rel, opts); err != nil {
		return err
	}
	if w.Conflict != nil && w.Conflict.Rel != nil {
		if w.Conflict.Rel, err = planner.Optimize(w.Conflict.Rel, opts); err != nil {
			return err
		}
	}
	if w.Returning != nil && w.Returning.Rel != nil {
		if w.Returning.Rel, err = planner.Optimize(w.Returning.Rel, opts); err != nil {
			return err
		}
	}
	for i := range w.ViewChecks {
		if c := &w.ViewChecks[i]; c.Rel != nil {
			if c.Rel, err = planner.Optimize(c.Rel, opts); err != nil {
				return err
			}
		}
	}
	return s.optimizeSteps(w.Steps)
}

func (s *Session) optimizeSteps(steps []planner.Step) (err error) {
	for i := range steps {
		switch st := &steps[i]; {
		case st.Call != nil:
		case st.Write != nil:
			err = s.optimizeWrite(st.Write)
		default:
			st.Query, err = planner.Optimize(st.Query, s.optimizeOptions())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeRun is the run of one statement that changes tables: its parts see the
// database as it was before.
type writeRun struct {
	*writer
	params []*expr.Const
	reader *reader
	// several says that the statement has several parts that change tables: a row
	// that one has changed is not changed again.
	several bool
	results pgwire.ResultWriter // takes the notices of functions that are called
}

// errChangedForm says that a table is not what it was when the statement was
// analyzed.
var errChangedForm = errors.New("the form of a table has changed")

// newWriteRun locks the tables that the writes change and takes a snapshot of
// all that the statement reads.
func (s *Session) newWriteRun(ctx context.Context, writes []*planner.Write, queries []plan.Rel, params []*expr.Const) (*writeRun, error) {
	var lock, all []*catalog.Object
	for _, w := range writes {
		if err := s.writable(w.Table, w.Kind.String()); err != nil {
			return nil, err
		}
		for _, k := range w.Actions {
			if err := s.writable(w.Table, k.String()); err != nil {
				return nil, err
			}
		}
		if (w.Kind != planner.WriteInsert || len(w.Table.Keys()) > 0) && !slices.Contains(lock, w.Table) {
			lock = append(lock, w.Table)
		}
		if !slices.Contains(all, w.Table) {
			all = append(all, w.Table)
		}
		queries = append(queries, w.Rel)
		if w.Conflict != nil && w.Conflict.Rel != nil {
			queries = append(queries, w.Conflict.Rel)
		}
		if w.Returning != nil && w.Returning.Rel != nil {
			queries = append(queries, w.Returning.Rel)
		}
		for _, c := range w.ViewChecks {
			if c.Rel != nil {
				queries = append(queries, c.Rel)
			}
		}
	}
	slices.SortFunc(all, func(a, b *catalog.Object) int { return int(a.ID) - int(b.ID) })
	for _, t := range all {
		if err := s.lockForm(ctx, t.ID, false); err != nil {
			return nil, err
		}
		if s.snapshot().ByID(t.ID) != t {
			return nil, errChangedForm // while it waited
		}
	}
	slices.SortFunc(lock, func(a, b *catalog.Object) int { return int(a.ID) - int(b.ID) })
	for _, t := range lock {
		if err := s.lock(ctx, t, true); err != nil {
			return nil, err
		}
	}
	r, err := s.openReader(ctx, true, queries...)
	if err != nil {
		return nil, err
	}
	return &writeRun{writer: &writer{s: s, ctx: ctx}, params: params, reader: r, several: len(writes) > 1}, nil
}

// close gives up what the run reads.
func (r *writeRun) close() {
	if r != nil && r.reader != nil {
		r.reader.close()
	}
}

// stepWrites are the writes among the steps of a statement, and their queries.
func stepWrites(steps []planner.Step) (writes []*planner.Write, queries []plan.Rel) {
	for _, st := range steps {
		switch {
		case st.Call != nil: // its statements have their own
		case st.Write != nil:
			writes = append(writes, st.Write)
		default:
			queries = append(queries, st.Query)
		}
	}
	return writes, queries
}

// execWrite runs INSERT, UPDATE, DELETE or MERGE.
func (s *Session) execWrite(ctx context.Context, p *prepared, b *planner.Write, params []*expr.Const, w pgwire.ResultWriter) (string, error) {
	writes, queries := stepWrites(b.Steps)
	run, err := s.newWriteRun(ctx, append(writes, b), queries, params)
	if err != nil {
		return "", err
	}
	defer run.close()
	run.results = w
	if err := run.steps(b.Steps); err != nil {
		return "", err
	}
	n, out, err := run.write(b)
	if err != nil {
		return "", err
	}
	if err := run.references(); err != nil {
		return "", err
	}
	if b.Returning != nil {
		if err := w.Begin(p.columns); err != nil {
			return "", err
		}
		if err := w.Rows(out, 0, out.N); err != nil {
			return "", err
		}
	}
	tag := b.Kind.String()
	if b.Kind == planner.WriteInsert {
		tag += " 0"
	}
	return tag + " " + strconv.Itoa(n), nil
}

// execWritingQuery runs a query with WITH queries that change tables.
func (s *Session) execWritingQuery(ctx context.Context, p *prepared, q *planner.Query, params []*expr.Const, w pgwire.ResultWriter) (string, error) {
	rows, err := s.writingRows(ctx, p, q, params, w)
	if err != nil {
		return "", err
	}
	if err := w.Begin(p.columns); err != nil {
		return "", err
	}
	return selectTag(rows.N), w.Rows(firstCols(rows, len(p.columns)), 0, rows.N)
}

// writingRows runs the WITH queries of a query that change tables, and the query.
func (s *Session) writingRows(ctx context.Context, p *prepared, q *planner.Query, params []*expr.Const, w pgwire.ResultWriter) (*columnar.Batch, error) {
	writes, queries := stepWrites(q.Steps)
	run, err := s.newWriteRun(ctx, writes, append(queries, p.rel), params)
	if err != nil {
		return nil, err
	}
	defer run.close()
	run.results = w
	if err := run.steps(q.Steps); err != nil {
		return nil, err
	}
	rows, err := run.query(p.rel)
	if err != nil {
		return nil, err
	}
	return rows, run.references()
}

// steps runs the WITH queries of the statement and keeps what they return.
func (r *writeRun) steps(steps []planner.Step) error {
	for _, st := range steps {
		var out *columnar.Batch
		var err error
		switch {
		case st.Call != nil:
			out, err = r.callStep(st.Call)
		case st.Write != nil:
			_, out, err = r.write(st.Write)
		default:
			out, err = r.query(st.Query)
		}
		if err != nil {
			return err
		}
		if out != nil {
			r.reader.give(st.ID, firstCols(out, len(st.Cols)))
		}
	}
	return nil
}

// query runs a plan over the statement's snapshot and keeps its rows.
func (r *writeRun) query(rel plan.Rel) (*columnar.Batch, error) {
	if len(r.params) > 0 {
		rel = plan.BindParams(rel, r.params)
	}
	var parts []columnar.Batch
	size := 0
	err := r.s.c.runOnce(r.ctx, rel, r.reader, func(b *columnar.Batch) error {
		parts = append(parts, *b)
		if size += b.MemSize(); size > maxWriteBytes {
			return pgerror.New(pgerror.ConfigurationLimitExceeded, "the statement writes more than %d MiB at once", maxWriteBytes>>20).
				WithHint("Write in several transactions.")
		}
		return nil
	})
	out := concatParts(rel, parts)
	return &out, err
}

// concatParts puts the parts of a result together.
func concatParts(rel plan.Rel, parts []columnar.Batch) columnar.Batch {
	if len(parts) == 1 {
		return parts[0]
	}
	cols := rel.Columns()
	if len(parts) > 0 {
		cols = cols[:len(parts[0].Cols)]
	}
	kinds := make([]columnar.Kind, len(cols))
	for i, c := range cols {
		kinds[i] = c.Type.Kind()
	}
	ptrs := make([]*columnar.Batch, len(parts))
	for i := range parts {
		ptrs[i] = &parts[i]
	}
	return columnar.ConcatBatches(kinds, ptrs...)
}

// write carries out one INSERT, UPDATE, DELETE or MERGE. It gives the number of
// rows and what RETURNING returns (nil without one).
func (r *writeRun) write(b *planner.Write) (int, *columnar.Batch, error) {
	r.views = b.ViewChecks
	r.failing = func(c *planner.ViewCheck, rows columnar.Batch) (*columnar.Batch, error) {
		r.reader.give(c.Input, numbered(rows))
		return r.query(c.Rel)
	}
	defer func() { r.views = nil }()
	rows, err := r.query(b.Rel)
	if err != nil {
		return 0, nil, err
	}
	var done columnar.Batch // the rows that RETURNING is over
	n := len(b.Table.Columns)
	if b.Joined || r.several && b.Kind != planner.WriteInsert && b.Kind != planner.WriteMerge {
		if *rows, err = r.once(b.Table, *rows, nil); err != nil {
			return 0, nil, err
		}
	}
	switch b.Kind {
	case planner.WriteInsert:
		done, err = r.insertRows(b, rows)
	case planner.WriteUpdate:
		old := part(*rows, 0, n)
		var fresh columnar.Batch
		if fresh, err = r.s.generate(b.Table, part(*rows, n, 2*n)); err == nil {
			err = r.replace(b.Table, &old, fresh)
			done = columnar.Batch{Cols: append(slices.Clone(fresh.Cols), rows.Cols[2*n:]...), N: rows.N}
		}
	case planner.WriteDelete:
		r.delete(b.Table, part(*rows, 0, n))
		done = *rows
	case planner.WriteMerge:
		done, err = r.merge(b, *rows)
	}
	if err != nil {
		return 0, nil, err
	}
	if b.Returning == nil {
		return done.N, nil, nil
	}
	out, err := r.returning(b.Returning, &done)
	return done.N, out, err
}

// part is some of the columns of rows.
func part(rows columnar.Batch, from, to int) columnar.Batch {
	return columnar.Batch{Cols: rows.Cols[from:to:to], N: rows.N}
}

// project evaluates expressions over rows.
func (r *writeRun) project(exprs []expr.Expr, rows *columnar.Batch) (columnar.Batch, error) {
	outs := exprs
	if len(r.params) > 0 {
		outs = make([]expr.Expr, len(exprs))
		for i, e := range exprs {
			outs[i] = expr.BindParams(e, r.params)
		}
	}
	prog, err := expr.Compile(expr.MapFilterProject{Outputs: outs})
	if err != nil {
		return columnar.Batch{}, err
	}
	out, _, errs := prog.Apply(r.reader.ctx, rows, nil)
	if len(errs) > 0 {
		return out, errs[0].Err
	}
	return out, nil
}

// insertRows carries out INSERT and gives the rows inserted or updated.
func (r *writeRun) insertRows(b *planner.Write, source *columnar.Batch) (columnar.Batch, error) {
	rows, err := r.project(b.Row, source)
	if err != nil {
		return rows, err
	}
	if rows, err = r.s.generate(b.Table, rows); err != nil {
		return rows, err
	}
	if b.Conflict != nil {
		return r.onConflicts(b, rows)
	}
	return rows, r.insert(b.Table, rows)
}

// returning computes the RETURNING rows over the rows that were changed.
func (r *writeRun) returning(ret *planner.Returning, rows *columnar.Batch) (*columnar.Batch, error) {
	if ret.Rel == nil {
		out, err := r.project(ret.Exprs, rows)
		return &out, err
	}
	r.reader.give(ret.Input, numbered(*rows))
	out, err := r.query(ret.Rel)
	if err != nil {
		return nil, err
	}
	return firstCols(out, len(ret.Exprs)), nil
}

// numbered is rows with their numbers as a further column.
func numbered(rows columnar.Batch) *columnar.Batch {
	nums := make([]int64, rows.N)
	for i := range nums {
		nums[i] = int64(i)
	}
	return &columnar.Batch{Cols: append(slices.Clone(rows.Cols), columnar.FromSlice(nums, nil)), N: rows.N}
}

// once keeps, of the rows of a join with the table whose columns come first,
// one for each row that the table has: a row is changed once, whatever it joins
// to. again, if not nil, is the error for a row that comes more often.
func (r *writeRun) once(t *catalog.Object, rows columnar.Batch, again func() error) (columnar.Batch, error) {
	ts := columnTypes(t.Columns, allColumns(t))
	count := make(map[string]int64, rows.N)
	keys := make([]string, rows.N)
	var twice []int // a row of each key that comes more than once
	for i := range rows.N {
		keys[i] = string(exactKey(nil, &rows, ts, i))
		if count[keys[i]]++; count[keys[i]] == 2 || r.several && count[keys[i]] == 1 {
			twice = append(twice, i)
		}
	}
	if len(twice) == 0 {
		return rows, nil
	}
	// What comes more than once may be there more than once, without a key.
	left := make(map[string]int64, len(twice))
	for _, i := range twice {
		left[keys[i]] = 1
	}
	if len(t.PrimaryKey) == 0 || r.several {
		if err := r.multiplicities(t, rows, twice, keys, left); err != nil {
			return rows, err
		}
	}
	var keep []uint32
	for i := range rows.N {
		x := keys[i]
		if n, limited := left[x]; limited {
			if n <= 0 {
				if again != nil {
					return rows, again()
				}
				continue
			}
			left[x]--
		}
		keep = append(keep, uint32(i))
	}
	return rows.Gather(keep), nil
}

// multiplicities finds how often some rows are in the table.
func (r *writeRun) multiplicities(t *catalog.Object, rows columnar.Batch, at []int, keys []string, left map[string]int64) error {
	key, ts := allColumns(t), columnTypes(t.Columns, allColumns(t))
	if len(t.PrimaryKey) > 0 {
		key = t.PrimaryKey
	}
	idx := make([]uint32, len(at))
	for k, i := range at {
		idx[k] = uint32(i)
		left[keys[i]] = 0
	}
	some := part(rows, 0, len(t.Columns))
	some = some.Gather(idx)
	want := newKeySet(columnTypes(t.Columns, key), &some, key, nil)
	var buf []byte
	return r.s.withKeys(r.ctx, t, key, want, func(_ int, b *columnar.Batch, i int, d dataflow.Diff) {
		buf = exactKey(buf[:0], b, ts, i)
		if _, ok := left[string(buf)]; ok {
			left[string(buf)] += d
		}
	})
}

// merge carries out the actions of MERGE, row by row in the order of their kinds.
func (r *writeRun) merge(b *planner.Write, rows columnar.Batch) (columnar.Batch, error) {
	n := len(b.Table.Columns)
	last := len(rows.Cols) - 1
	of := map[planner.WriteKind][]uint32{}
	var touched []uint32
	actions := rows.Cols[last].Int32s()
	for i := range rows.N {
		k := b.Actions[actions[i]-1]
		of[k] = append(of[k], uint32(i))
		if k != planner.WriteInsert {
			touched = append(touched, uint32(i))
		}
	}
	if _, err := r.once(b.Table, rows.Gather(touched), func() error {
		return pgerror.New(pgerror.CardinalityViolation, "MERGE command cannot affect row a second time").
			WithHint("Ensure that not more than one source row matches any one target row.")
	}); err != nil {
		return rows, err
	}
	fresh, err := r.s.generate(b.Table, part(rows, n, 2*n))
	if err != nil {
		return rows, err
	}
	gone := part(rows, 0, n)
	del := gone.Gather(of[planner.WriteDelete])
	r.delete(b.Table, del)
	old, upd := gone.Gather(of[planner.WriteUpdate]), fresh.Gather(of[planner.WriteUpdate])
	if err := r.replace(b.Table, &old, upd); err != nil {
		return rows, err
	}
	ins := fresh.Gather(of[planner.WriteInsert])
	if err := r.insert(b.Table, ins); err != nil {
		return rows, err
	}
	if b.Returning == nil {
		return columnar.Batch{N: rows.N}, nil
	}
	// The rows for RETURNING, in the order of the join.
	name := columnar.NewBuilder(columnar.KindBytes, rows.N)
	done := columnar.Batch{N: rows.N}
	for c := range n {
		v := columnar.NewBuilder(fresh.Cols[c].Kind(), rows.N)
		for i := range rows.N {
			if b.Actions[actions[i]-1] == planner.WriteDelete {
				v.AppendFrom(gone.Cols[c], i)
			} else {
				v.AppendFrom(fresh.Cols[c], i)
			}
		}
		done.Cols = append(done.Cols, v.Build())
	}
	for i := range rows.N {
		name.String(b.Actions[actions[i]-1].String())
	}
	done.Cols = append(append(done.Cols, rows.Cols[2*n:last]...), name.Build())
	return done, nil
}

// writable checks that a relation is a table that can be written now.
func (s *Session) writable(t *catalog.Object, verb string) error {
	prep := map[string]string{"INSERT": "insert into", "UPDATE": "update", "DELETE": "delete from", "TRUNCATE": "truncate", "COPY": "copy to", "MERGE": "merge into"}[verb]
	switch {
	case t.Kind == catalog.KindVirtual:
		return pgerror.New(pgerror.InsufficientPrivilege, "permission denied for table %s", t.Name)
	case (t.Kind == catalog.KindMaterializedView || t.Kind == catalog.KindView) && verb == "TRUNCATE":
		return pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a table", t.Name)
	case t.Kind == catalog.KindMaterializedView:
		return pgerror.New(pgerror.WrongObjectType, "cannot change materialized view \"%s\"", t.Name)
	case t.Kind == catalog.KindSequence:
		return pgerror.New(pgerror.WrongObjectType, "cannot change sequence \"%s\"", t.Name)
	case t.Kind == catalog.KindView:
		return pgerror.New(pgerror.WrongObjectType, "cannot copy to view \"%s\"", t.Name).
			WithHint("To enable copying to a view, provide an INSTEAD OF INSERT trigger.")
	case t.Kind != catalog.KindTable:
		return pgerror.New(pgerror.WrongObjectType, "cannot %s %s \"%s\"", prep, t.Kind, t.Name).
			WithHint("Only tables can be written; a source gets its rows from outside.")
	}
	tx := s.beginTx()
	if tx.readOnly && !temporary(t) {
		return pgerror.New(pgerror.ReadOnlySQLTransaction, "cannot execute %s in a read-only transaction", verb)
	}
	if t.AppendOnly && verb != "INSERT" && verb != "COPY" && verb != "MERGE" {
		return pgerror.New(pgerror.ObjectNotInPrerequisiteState, "cannot %s append-only table \"%s\"", prep, t.Name)
	}
	return nil
}

// lockForm takes the lock of the form of a table, alone to change or drop it.
func (s *Session) lockForm(ctx context.Context, id plan.ObjectID, alone bool) error {
	return s.acquire(ctx, formOf(id), alone)
}

// acquire takes a lock within lock_timeout.
func (s *Session) acquire(ctx context.Context, id plan.ObjectID, alone bool) error {
	if d := s.set.duration("lock_timeout"); d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d, pgerror.New(pgerror.LockNotAvailable, "canceling statement due to lock timeout"))
		defer cancel()
	}
	return s.c.locks.acquire(ctx, s.tx, id, alone)
}

// lock takes a table's lock, alone or shared. In a transaction that reads at one
// epoch throughout, a table that has changed since is a conflict.
func (s *Session) lock(ctx context.Context, t *catalog.Object, alone bool) error {
	if err := s.lockForm(ctx, t.ID, false); err != nil {
		return err
	}
	if err := s.acquire(ctx, t.ID, alone); err != nil {
		return err
	}
	if s.tx.pinned != 0 && alone {
		if coll := s.c.collection(t.ID); coll != nil && dataflow.Epoch(coll.lastAt.Load()) > s.tx.pinned {
			return pgerror.New(pgerror.SerializationFailure, "could not serialize access due to concurrent update")
		}
	}
	return nil
}

// tableOf finds a table by a range variable.
func (s *Session) tableOf(rv *pg.RangeVar) (*catalog.Object, error) {
	o := s.snapshot().Resolve(catalog.KindTable, rv.Schemaname, rv.Relname, s.relationPath())
	if o == nil {
		return nil, undefinedRelation(rv.Schemaname, rv.Relname)
	}
	return o, nil
}

func undefinedRelation(schema, name string) error {
	if schema != "" {
		name = schema + "." + name
	}
	return pgerror.New(pgerror.UndefinedTable, "relation \"%s\" does not exist", name)
}

// relationPath is the search path of relations: pg_catalog comes first unless
// it is named.
func (s *Session) relationPath() []string {
	path := s.searchPath()
	if slices.Contains(path, catalog.SchemaPgCatalog) {
		return path
	}
	return append([]string{catalog.SchemaPgCatalog}, path...)
}

func (s *Session) lockTables(ctx context.Context, n *pg.LockStmt) error {
	if !s.inBlock() {
		return pgerror.New(pgerror.NoActiveSQLTransaction, "LOCK TABLE can only be used in transaction blocks")
	}
	for _, r := range n.Relations {
		t, err := s.tableOf(r.GetRangeVar())
		if err != nil {
			return err
		}
		if n.Mode < 5 || t.Kind != catalog.KindTable {
			continue // the modes that writers do not conflict with
		}
		if err := s.lockForm(ctx, t.ID, true); err != nil {
			return err
		}
		if err := s.lock(ctx, t, true); err != nil {
			return err
		}
	}
	return nil
}
