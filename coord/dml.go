package coord

import (
	"context"
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// maxWriteBytes bounds what one transaction may write, as it is kept in memory
// and in one log record.
const maxWriteBytes = 512 << 20

// execDML runs INSERT, UPDATE or DELETE.
func (s *Session) execDML(ctx context.Context, p *prepared, bound planner.Bound, params []*expr.Const, w pgwire.ResultWriter) (string, error) {
	var t *catalog.Object
	var ret *planner.Returning
	verb := ""
	switch b := bound.(type) {
	case *planner.Insert:
		t, ret, verb = b.Table, b.Returning, "INSERT"
	case *planner.Update:
		t, ret, verb = b.Table, b.Returning, "UPDATE"
	case *planner.Delete:
		t, ret, verb = b.Table, b.Returning, "DELETE"
	}
	if err := s.writable(t, verb); err != nil {
		return "", err
	}
	if verb != "INSERT" || len(t.PrimaryKey) > 0 || len(t.Unique) > 0 {
		if err := s.lock(ctx, t); err != nil {
			return "", err
		}
	}
	var parts []columnar.Batch
	size := 0
	err := s.runQuery(ctx, p.rel, params, true, func(b *columnar.Batch) error {
		parts = append(parts, *b)
		if size += b.MemSize(); size > maxWriteBytes {
			return pgerror.New(pgerror.ConfigurationLimitExceeded, "the statement writes more than %d MiB at once", maxWriteBytes>>20).
				WithHint("Write in several transactions.")
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	rows := concatParts(p.rel, parts)
	width := len(t.Columns)
	if verb == "UPDATE" || verb == "DELETE" {
		if rows, err = s.oncePerRow(ctx, p, t, rows); err != nil {
			return "", err
		}
	}
	switch verb {
	case "INSERT":
		err = s.insertRows(ctx, t, columnar.Batch{Cols: rows.Cols[:width], N: rows.N})
	case "UPDATE":
		err = s.updateRows(ctx, t, columnar.Batch{Cols: rows.Cols[:width], N: rows.N}, columnar.Batch{Cols: rows.Cols[width : 2*width], N: rows.N})
	case "DELETE":
		s.tx.write(t.ID, &dataflow.Delta{Batch: columnar.Batch{Cols: rows.Cols[:width], N: rows.N}, Diffs: repeatDiff(-1, rows.N)})
	}
	if err != nil {
		return "", err
	}
	if ret != nil {
		if err := s.returning(ret, p.columns, params, &rows, w); err != nil {
			return "", err
		}
	}
	if verb == "INSERT" {
		verb = "INSERT 0"
	}
	return verb + " " + strconv.Itoa(rows.N), nil
}

// concatParts puts the parts of a result together.
func concatParts(rel plan.Rel, parts []columnar.Batch) columnar.Batch {
	if len(parts) == 1 {
		return parts[0]
	}
	cols := rel.Columns()
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

func repeatDiff(d int64, n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = d
	}
	return out
}

// writable checks that a relation is a table that can be written now.
func (s *Session) writable(t *catalog.Object, verb string) error {
	prep := map[string]string{"INSERT": "insert into", "UPDATE": "update", "DELETE": "delete from", "TRUNCATE": "truncate", "COPY": "copy to"}[verb]
	switch {
	case t.Kind == catalog.KindVirtual:
		return pgerror.New(pgerror.InsufficientPrivilege, "permission denied for table %s", t.Name)
	case t.Kind == catalog.KindMaterializedView && verb == "TRUNCATE":
		return pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a table", t.Name)
	case t.Kind == catalog.KindMaterializedView:
		return pgerror.New(pgerror.WrongObjectType, "cannot change materialized view \"%s\"", t.Name)
	case t.Kind == catalog.KindView:
		return pgerror.New(pgerror.ObjectNotInPrerequisiteState, "cannot %s view \"%s\"", prep, t.Name).
			WithDetail("Views are not automatically updatable.")
	case t.Kind != catalog.KindTable:
		return pgerror.New(pgerror.WrongObjectType, "cannot %s %s \"%s\"", prep, t.Kind, t.Name).
			WithHint("Only tables can be written; a source gets its rows from outside.")
	}
	tx := s.beginTx()
	if tx.readOnly {
		return pgerror.New(pgerror.ReadOnlySQLTransaction, "cannot execute %s in a read-only transaction", verb)
	}
	if t.AppendOnly && verb != "INSERT" && verb != "COPY" {
		return pgerror.New(pgerror.ObjectNotInPrerequisiteState, "cannot %s append-only table \"%s\"", prep, t.Name)
	}
	return nil
}

// lock takes a table's write lock. In a transaction that reads at one epoch
// throughout, a table that has changed since is a conflict.
func (s *Session) lock(ctx context.Context, t *catalog.Object) error {
	if d := s.set.duration("lock_timeout"); d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d, pgerror.New(pgerror.LockNotAvailable, "canceling statement due to lock timeout"))
		defer cancel()
	}
	if err := s.c.locks.acquire(ctx, s.tx, t.ID); err != nil {
		return err
	}
	if s.tx.pinned != 0 {
		if coll := s.c.collection(t.ID); coll != nil && dataflow.Epoch(coll.lastAt.Load()) > s.tx.pinned {
			return pgerror.New(pgerror.SerializationFailure, "could not serialize access due to concurrent update")
		}
	}
	return nil
}

// insertRows checks new rows and adds them to the transaction.
func (s *Session) insertRows(ctx context.Context, t *catalog.Object, rows columnar.Batch) error {
	if rows.N == 0 {
		return nil
	}
	if err := s.checkRows(t, rows); err != nil {
		return err
	}
	if err := s.checkUnique(ctx, t, nil, rows); err != nil {
		return err
	}
	s.tx.write(t.ID, &dataflow.Delta{Batch: rows})
	return nil
}

// updateRows checks the new rows and replaces the old ones by them.
func (s *Session) updateRows(ctx context.Context, t *catalog.Object, old, rows columnar.Batch) error {
	if rows.N == 0 {
		return nil
	}
	if err := s.checkRows(t, rows); err != nil {
		return err
	}
	if err := s.checkUnique(ctx, t, &old, rows); err != nil {
		return err
	}
	s.tx.write(t.ID, &dataflow.Delta{Batch: old, Diffs: repeatDiff(-1, old.N)})
	s.tx.write(t.ID, &dataflow.Delta{Batch: rows})
	return nil
}

// checkRows enforces NOT NULL and CHECK.
func (s *Session) checkRows(t *catalog.Object, rows columnar.Batch) error {
	for c, col := range t.Columns {
		v := rows.Cols[c]
		if !(col.NotNull || slices.Contains(t.PrimaryKey, c)) || !v.HasNulls() {
			continue
		}
		for i := range rows.N {
			if v.Null(i) {
				e := pgerror.New(pgerror.NotNullViolation, "null value in column \"%s\" of relation \"%s\" violates not-null constraint", col.Name, t.Name).
					WithDetail("Failing row contains %s.", s.rowText(t, rows, i))
				e.Schema, e.Table, e.Column = t.Schema, t.Name, col.Name
				return e
			}
		}
	}
	for _, ck := range t.Checks {
		x, err := parser.ParseExpr(ck.Expr)
		if err != nil {
			return err
		}
		e, err := planner.BindExpr(s.bindContext(nil), ck.Expr, &x, t, "check constraints", types.Bool)
		if err != nil {
			return err
		}
		prog, err := expr.Compile(expr.MapFilterProject{Outputs: []expr.Expr{e}})
		if err != nil {
			return err
		}
		out, _, errs := prog.Apply(s.exprContext(), &rows, nil)
		if len(errs) > 0 {
			return errs[0].Err
		}
		ok := out.Cols[0].Bools()
		for i := range rows.N {
			if !ok[i] && !out.Cols[0].Null(i) {
				e := pgerror.New(pgerror.CheckViolation, "new row for relation \"%s\" violates check constraint \"%s\"", t.Name, ck.Name).
					WithDetail("Failing row contains %s.", s.rowText(t, rows, i))
				e.Schema, e.Table, e.Constraint = t.Schema, t.Name, ck.Name
				return e
			}
		}
	}
	return nil
}

// rowText shows a row in an error's detail.
func (s *Session) rowText(t *catalog.Object, rows columnar.Batch, i int) string {
	var b []byte
	b = append(b, '(')
	opts := s.TextOptions()
	for c := range t.Columns {
		if c > 0 {
			b = append(b, ", "...)
		}
		if rows.Cols[c].Null(i) {
			b = append(b, "null"...)
			continue
		}
		v := types.AppendText(nil, t.Columns[c].Type, rows.Cols[c], i, opts)
		if len(v) > 64 {
			v = append(v[:64:64], "..."...)
		}
		b = append(b, v...)
	}
	return string(append(b, ')'))
}

// uniqueKeys are the keys that a table enforces, with the names of their constraints.
func uniqueKeys(t *catalog.Object) (keys [][]int, names []string) {
	if len(t.PrimaryKey) > 0 {
		keys, names = append(keys, t.PrimaryKey), append(names, t.Name+"_pkey")
	}
	for _, u := range t.Unique {
		n := t.Name
		for _, c := range u {
			n += "_" + t.Columns[c].Name
		}
		keys, names = append(keys, u), append(names, n+"_key")
	}
	return keys, names
}

// checkUnique enforces the primary key and unique constraints of new rows
// against the table, the transaction's own changes, and each other. old are
// the rows that they replace.
func (s *Session) checkUnique(ctx context.Context, t *catalog.Object, old *columnar.Batch, rows columnar.Batch) error {
	keys, names := uniqueKeys(t)
	for k, key := range keys {
		count := map[string]int{}
		var enc []byte
		encode := func(b *columnar.Batch, i int) (string, bool) {
			enc = enc[:0]
			for _, c := range key {
				if b.Cols[c].Null(i) {
					return "", false
				}
				enc = types.AppendSortKey(enc, t.Columns[c].Type, b.Cols[c], i)
			}
			return string(enc), true
		}
		wanted := map[string]int{} // key → a row that has it
		for i := range rows.N {
			if x, ok := encode(&rows, i); ok {
				count[x]++
				wanted[x] = i
			}
		}
		add := func(d *dataflow.Delta, sign int) {
			for i := range d.N {
				if x, ok := encode(&d.Batch, i); ok {
					if _, want := wanted[x]; want {
						count[x] += sign * int(d.Diff(i))
					}
				}
			}
		}
		if old != nil {
			add(&dataflow.Delta{Batch: *old}, -1)
		}
		for _, d := range s.tx.pending(t.ID) {
			add(d, 1)
		}
		if err := s.existing(ctx, t, key, rows, wanted, func(d *dataflow.Delta) { add(d, 1) }); err != nil {
			return err
		}
		for x, n := range count {
			if n > 1 {
				return s.uniqueViolation(t, key, names[k], rows, wanted[x])
			}
		}
	}
	return nil
}

func (s *Session) uniqueViolation(t *catalog.Object, key []int, name string, rows columnar.Batch, i int) error {
	cols, vals := make([]string, len(key)), make([]string, len(key))
	for j, c := range key {
		cols[j] = t.Columns[c].Name
		vals[j] = string(types.AppendText(nil, t.Columns[c].Type, rows.Cols[c], i, s.TextOptions()))
	}
	e := pgerror.New(pgerror.UniqueViolation, "duplicate key value violates unique constraint \"%s\"", name).
		WithDetail("Key (%s)=(%s) already exists.", strings.Join(cols, ", "), strings.Join(vals, ", "))
	e.Schema, e.Table, e.Constraint = t.Schema, t.Name, name
	return e
}

// existing gives the committed rows that may have one of the wanted keys: by
// lookup where the table is arranged by the key, else all of them.
func (s *Session) existing(ctx context.Context, t *catalog.Object, key []int, rows columnar.Batch, wanted map[string]int, f func(*dataflow.Delta)) error {
	coll := s.c.collection(t.ID)
	if coll == nil || s.rewritten(t.ID) {
		return nil
	}
	sn, err := snapshotTrace(coll.rows, s.c.timeline.ingest.done.get())
	if err != nil || sn == nil {
		return err
	}
	defer sn.Release()
	byKey := slices.Equal(key, coll.key)
	for _, c := range key {
		byKey = byKey && bitwiseEqual(t.Columns[c].Type)
	}
	if byKey {
		vecs := make([]*columnar.Vec, len(key))
		for j, c := range key {
			vecs[j] = rows.Cols[c]
		}
		for _, i := range wanted {
			if d := sn.Lookup(vecs, i); d != nil {
				f(d)
			}
		}
		return nil
	}
	sn.Scan(func(d *dataflow.Delta) bool {
		f(d)
		return ctx.Err() == nil
	})
	return ctx.Err()
}

// oncePerRow drops the pairs by which a join would change one row more than
// once (UPDATE … FROM and DELETE … USING take the first match, as PostgreSQL
// takes any).
func (s *Session) oncePerRow(ctx context.Context, p *prepared, t *catalog.Object, rows columnar.Batch) (columnar.Batch, error) {
	n, ok := p.stmt.Node.(*parser.Postgres)
	if !ok || rows.N == 0 {
		return rows, nil
	}
	if u := n.Stmt.GetUpdateStmt(); u != nil && len(u.FromClause) == 0 {
		return rows, nil
	}
	if d := n.Stmt.GetDeleteStmt(); d != nil && len(d.UsingClause) == 0 {
		return rows, nil
	}
	all := make([]int, len(t.Columns))
	for i := range all {
		all[i] = i
	}
	var enc []byte
	encode := func(b *columnar.Batch, i int) string {
		enc = enc[:0]
		for _, c := range all {
			if b.Cols[c].Null(i) {
				enc = append(enc, 0)
				continue
			}
			enc = types.AppendText(append(enc, 1), t.Columns[c].Type, b.Cols[c], i, nil)
			enc = append(enc, 0xff)
		}
		return string(enc)
	}
	have := map[string]int64{}
	for i := range rows.N {
		have[encode(&rows, i)] = 0
	}
	count := func(d *dataflow.Delta) {
		for i := range d.N {
			x := encode(&d.Batch, i)
			if c, ok := have[x]; ok {
				have[x] = c + d.Diff(i)
			}
		}
	}
	if err := s.existing(ctx, t, nil, rows, nil, count); err != nil {
		return rows, err
	}
	for _, d := range s.tx.pending(t.ID) {
		count(d)
	}
	var keep []uint32
	for i := range rows.N {
		if x := encode(&rows, i); have[x] > 0 {
			have[x]--
			keep = append(keep, uint32(i))
		}
	}
	return rows.Gather(keep), nil
}

// returning computes and sends the RETURNING rows.
func (s *Session) returning(ret *planner.Returning, cols []pgwire.Column, params []*expr.Const, rows *columnar.Batch, w pgwire.ResultWriter) error {
	outs := ret.Exprs
	if len(params) > 0 {
		outs = make([]expr.Expr, len(ret.Exprs))
		for i, e := range ret.Exprs {
			outs[i] = expr.BindParams(e, params)
		}
	}
	prog, err := expr.Compile(expr.MapFilterProject{Outputs: outs})
	if err != nil {
		return err
	}
	out, _, errs := prog.Apply(s.exprContext(), rows, nil)
	if len(errs) > 0 {
		return errs[0].Err
	}
	if err := w.Begin(cols); err != nil {
		return err
	}
	return w.Rows(&out, 0, out.N)
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

// truncate deletes all rows of tables.
func (s *Session) truncate(ctx context.Context, n *pg.TruncateStmt) error {
	for _, r := range n.Relations {
		t, err := s.tableOf(r.GetRangeVar())
		if err != nil {
			return err
		}
		if err := s.writable(t, "TRUNCATE"); err != nil {
			return err
		}
		if err := s.lock(ctx, t); err != nil {
			return err
		}
		var gone []*dataflow.Delta
		if err := s.existing(ctx, t, nil, columnar.Batch{}, nil, func(d *dataflow.Delta) { gone = append(gone, cloneDelta(d)) }); err != nil {
			return err
		}
		for _, d := range append(gone, s.tx.pending(t.ID)...) {
			neg := make([]int64, d.N)
			for i := range neg {
				neg[i] = -d.Diff(i)
			}
			s.tx.write(t.ID, &dataflow.Delta{Batch: d.Batch, Diffs: neg})
		}
	}
	return nil
}

func (s *Session) lockTables(ctx context.Context, n *pg.LockStmt) error {
	if s.tx == nil || !s.tx.block {
		return pgerror.New(pgerror.NoActiveSQLTransaction, "LOCK TABLE can only be used in transaction blocks")
	}
	for _, r := range n.Relations {
		t, err := s.tableOf(r.GetRangeVar())
		if err != nil {
			return err
		}
		if n.Mode < 3 || t.Kind != catalog.KindTable {
			continue // shared modes do not conflict with snapshots
		}
		if err := s.lock(ctx, t); err != nil {
			return err
		}
	}
	return nil
}
