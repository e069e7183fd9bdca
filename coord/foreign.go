package coord

import (
	"context"
	"slices"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// references enforces foreign keys at the end of a statement, with the changes
// that their actions make in turn.
func (w *writer) references() error {
	for ; w.next < len(w.changes); w.next++ {
		c := w.changes[w.next]
		for i := range c.t.Foreign {
			if err := w.referring(&c, &c.t.Foreign[i]); err != nil {
				return err
			}
		}
		if c.gone.N == 0 {
			continue
		}
		for _, o := range w.s.snapshot().References(c.t.ID) {
			for i := range o.Foreign {
				if fk := &o.Foreign[i]; fk.RefTable == c.t.ID {
					if err := w.referred(&c, o, fk); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// deferred says whether a foreign key is checked at the end of the transaction.
func (tx *txn) deferred(fk *catalog.ForeignKey) bool {
	if mode, ok := tx.constraints[fk.Name]; ok && fk.Deferrable {
		return mode
	}
	if mode, ok := tx.constraints[""]; ok && fk.Deferrable {
		return mode
	}
	return fk.Deferred
}

// referring checks that new rows refer to rows that are there.
func (w *writer) referring(c *tableChange, fk *catalog.ForeignKey) error {
	if c.rows.N == 0 {
		return nil
	}
	if w.s.tx.deferred(fk) {
		w.s.tx.later = append(w.s.tx.later, laterCheck{*c, fk, nil})
		return nil
	}
	return w.s.checkReferring(w.ctx, c.t, fk, c.rows)
}

// checkReferring checks that rows of t refer to rows that are there.
func (s *Session) checkReferring(ctx context.Context, t *catalog.Object, fk *catalog.ForeignKey, rows columnar.Batch) error {
	parent := s.snapshot().ByID(fk.RefTable)
	if parent == nil {
		return pgerror.New(pgerror.UndefinedTable, "the table that foreign key \"%s\" refers to is gone", fk.Name)
	}
	if err := s.lock(ctx, parent, false); err != nil {
		return err
	}
	violated := func(i int, detail string) error {
		e := pgerror.New(pgerror.ForeignKeyViolation, "insert or update on table \"%s\" violates foreign key constraint \"%s\"", t.Name, fk.Name).
			WithDetail("%s", detail)
		e.Schema, e.Table, e.Constraint = t.Schema, t.Name, fk.Name
		return e
	}
	var idx []uint32
	for i := range rows.N {
		nulls := 0
		for _, k := range fk.Columns {
			if rows.Cols[k].Null(i) {
				nulls++
			}
		}
		if nulls > 0 && nulls < len(fk.Columns) && fk.MatchFull {
			return violated(i, "MATCH FULL does not allow mixing of null and nonnull key values.")
		}
		if nulls == 0 {
			idx = append(idx, uint32(i))
		}
	}
	if len(idx) == 0 {
		return nil
	}
	missing := func(i int) error {
		return violated(i, "Key "+s.keyText(t, fk.Columns, &rows, fk.Columns, i)+" is not present in table \""+parent.Name+"\".")
	}
	some := rows.Gather(idx)
	keys, at, err := s.convertKey(&some, fk.Columns, columnTypes(t.Columns, fk.Columns), columnTypes(parent.Columns, fk.RefColumns))
	if err != nil {
		return err
	}
	if len(at) < len(idx) { // a value that the other type cannot have is not there
		for k := range idx {
			if k == len(at) || at[k] != k {
				return missing(int(idx[k]))
			}
		}
	}
	want := newKeySet(columnTypes(parent.Columns, fk.RefColumns), &keys, span(len(keys.Cols)), nil)
	have, err := s.multiplicity(ctx, parent, fk.RefColumns, want)
	if err != nil {
		return err
	}
	for k, n := range have {
		if n <= 0 {
			return missing(int(idx[want.first[k]]))
		}
	}
	return nil
}

func span(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// convertKey gives some columns of rows other types. at are the rows whose
// values these types can have.
func (s *Session) convertKey(rows *columnar.Batch, cols []int, from, to []types.Type) (out columnar.Batch, at []int, err error) {
	same := true
	out.N = rows.N
	outs := make([]expr.Expr, len(cols))
	for j, c := range cols {
		same = same && from[j].OID == to[j].OID
		out.Cols = append(out.Cols, rows.Cols[c])
		if outs[j], err = expr.Coerce(&expr.Column{Index: c, Typ: from[j]}, types.Of(to[j].OID), expr.CastAssignment, 0); err != nil {
			return out, nil, err
		}
	}
	if same {
		return out, span(rows.N), nil
	}
	prog, err := expr.Compile(expr.MapFilterProject{Outputs: outs})
	if err != nil {
		return out, nil, err
	}
	res, _, errs := prog.Apply(s.exprContext(), rows, nil)
	bad := map[int]bool{}
	for _, e := range errs {
		bad[e.Row] = true
	}
	for i := range rows.N {
		if !bad[i] {
			at = append(at, i)
		}
	}
	return res, at, nil
}

// referred carries out what a foreign key of table o says about rows of c.t that
// are gone, or have another key now.
func (w *writer) referred(c *tableChange, o *catalog.Object, fk *catalog.ForeignKey) error {
	s := w.s
	refTypes := columnTypes(c.t.Columns, fk.RefColumns)
	update := c.rows.N > 0
	var idx []uint32
	var a, b []byte
	for i := range c.gone.N {
		if hasNull(&c.gone, fk.RefColumns, i) {
			continue
		}
		if update {
			a = appendKey(a[:0], &c.gone, fk.RefColumns, refTypes, i)
			if b = appendKey(b[:0], &c.rows, fk.RefColumns, refTypes, i); string(a) == string(b) {
				continue
			}
		}
		idx = append(idx, uint32(i))
	}
	action := fk.OnDelete
	if update {
		action = fk.OnUpdate
	}
	if action == "" && s.tx.deferred(fk) && len(idx) > 0 {
		s.tx.later = append(s.tx.later, laterCheck{tableChange{t: c.t, gone: c.gone.Gather(idx)}, fk, o})
		return nil
	}
	gone := c.gone.Gather(idx)
	if action == "" {
		var keep []uint32
		var err error
		if keep, err = w.vanished(c.t, fk.RefColumns, &gone); err != nil {
			return err
		}
		gone = gone.Gather(keep)
		for k, x := range keep {
			keep[k] = idx[x]
		}
		idx = keep
	}
	rows, from, err := w.referringRows(c.t, o, fk, &gone)
	if err != nil || rows.N == 0 {
		return err
	}
	switch action {
	case "cascade":
		if !update {
			w.delete(o, rows)
			return nil
		}
		fresh := columnar.Batch{N: rows.N, Cols: slices.Clone(rows.Cols)}
		for k := range from {
			from[k] = int(idx[from[k]])
		}
		for j, col := range fk.Columns {
			if fresh.Cols[col], err = s.convertColumn(c.rows.Cols[fk.RefColumns[j]], from, refTypes[j], o.Columns[col].Type); err != nil {
				return err
			}
		}
		return w.replaceReferring(o, rows, fresh)
	case "set null", "set default":
		cols := fk.Columns
		if !update && fk.SetColumns != nil {
			cols = fk.SetColumns
		}
		fresh, err := s.setColumns(o, rows, cols, action == "set default")
		if err != nil {
			return err
		}
		if err := w.replaceReferring(o, rows, fresh); err != nil || action != "set default" {
			return err
		}
		return w.defaultGone(c.t, o, fk, &rows, &fresh, &gone, from)
	}
	return s.stillReferred(c.t, o, fk, &gone, from)
}

// defaultGone is the error of rows whose default is the key that has gone: it is
// told at once, though the constraint be deferred, as they have not changed.
func (w *writer) defaultGone(t, o *catalog.Object, fk *catalog.ForeignKey, rows, fresh, gone *columnar.Batch, from []int) error {
	typs := columnTypes(o.Columns, fk.Columns)
	var same []int
	var a, b []byte
	for i := range rows.N {
		a = appendKey(a[:0], rows, fk.Columns, typs, i)
		if b = appendKey(b[:0], fresh, fk.Columns, typs, i); string(a) == string(b) {
			same = append(same, from[i])
		}
	}
	if len(same) == 0 {
		return nil
	}
	keep, err := w.vanished(t, fk.RefColumns, gone)
	if err != nil {
		return err
	}
	for _, x := range same {
		if slices.Contains(keep, uint32(x)) {
			return w.s.stillReferred(t, o, fk, gone, []int{x})
		}
	}
	return nil
}

// stillReferred is the error of a row that cannot go.
func (s *Session) stillReferred(t, o *catalog.Object, fk *catalog.ForeignKey, gone *columnar.Batch, from []int) error {
	e := pgerror.New(pgerror.ForeignKeyViolation, "update or delete on table \"%s\" violates foreign key constraint \"%s\" on table \"%s\"", t.Name, fk.Name, o.Name).
		WithDetail("Key %s is still referenced from table \"%s\".", s.keyText(t, fk.RefColumns, gone, fk.RefColumns, slices.Min(from)), o.Name)
	e.Schema, e.Table, e.Constraint = o.Schema, o.Name, fk.Name
	return e
}

// vanished are those of rows whose key no row of the table has any more.
func (w *writer) vanished(t *catalog.Object, key []int, rows *columnar.Batch) ([]uint32, error) {
	want := newKeySet(columnTypes(t.Columns, key), rows, key, nil)
	have, err := w.s.multiplicity(w.ctx, t, key, want)
	if err != nil {
		return nil, err
	}
	var out []uint32
	for i, k := range want.of {
		if have[k] <= 0 {
			out = append(out, uint32(i))
		}
	}
	return out, nil
}

// referringRows are the present rows of o that refer to one of the rows of t, and
// for each the row that it refers to.
func (w *writer) referringRows(t, o *catalog.Object, fk *catalog.ForeignKey, gone *columnar.Batch) (columnar.Batch, []int, error) {
	empty := columnar.Batch{}
	if gone.N == 0 {
		return empty, nil, nil
	}
	ts := columnTypes(o.Columns, fk.Columns)
	keys, at, err := w.s.convertKey(gone, fk.RefColumns, columnTypes(t.Columns, fk.RefColumns), ts)
	if err != nil {
		return empty, nil, err
	}
	want := newKeySet(ts, &keys, span(len(keys.Cols)), nil)
	type entry struct {
		diff dataflow.Diff
		n    int // its place among the rows found
		key  int
	}
	all := columnTypes(o.Columns, allColumns(o))
	found := map[string]*entry{}
	var order []string
	bs := make([]*columnar.Builder, len(o.Columns))
	for c, col := range o.Columns {
		bs[c] = columnar.NewBuilder(col.Type.Kind(), 0)
	}
	if err := w.s.withKeys(w.ctx, o, fk.Columns, want, func(k int, b *columnar.Batch, i int, d dataflow.Diff) {
		exact := string(exactKey(nil, b, all, i))
		e := found[exact]
		if e == nil {
			e = &entry{n: len(order), key: at[want.first[k]]}
			found[exact] = e
			order = append(order, exact)
			for c := range bs {
				bs[c].AppendFrom(b.Cols[c], i)
			}
		}
		e.diff += d
	}); err != nil {
		return empty, nil, err
	}
	rows := columnar.Batch{N: len(order)}
	for _, b := range bs {
		rows.Cols = append(rows.Cols, b.Build())
	}
	var keep []uint32
	var from []int
	for _, x := range order {
		for e := found[x]; e.diff > 0; e.diff-- {
			keep = append(keep, uint32(e.n))
			from = append(from, e.key)
		}
	}
	return rows.Gather(keep), from, nil
}

// replaceReferring changes the rows of a table that refer to rows which have changed.
func (w *writer) replaceReferring(o *catalog.Object, old, fresh columnar.Batch) error {
	if err := w.s.lock(w.ctx, o, true); err != nil {
		return err
	}
	fresh, err := w.s.generate(o, fresh)
	if err != nil {
		return err
	}
	return w.replace(o, &old, fresh)
}

// convertColumn is the values of v in rows from, as values of another type.
func (s *Session) convertColumn(v *columnar.Vec, from []int, have, want types.Type) (*columnar.Vec, error) {
	b := columnar.NewBuilder(v.Kind(), len(from))
	for _, i := range from {
		b.AppendFrom(v, i)
	}
	in := columnar.Batch{Cols: []*columnar.Vec{b.Build()}, N: len(from)}
	e, err := expr.Coerce(&expr.Column{Index: 0, Typ: have}, want, expr.CastAssignment, 0)
	if err != nil {
		return nil, err
	}
	prog, err := expr.Compile(expr.MapFilterProject{Outputs: []expr.Expr{e}})
	if err != nil {
		return nil, err
	}
	out, _, errs := prog.Apply(s.exprContext(), &in, nil)
	if len(errs) > 0 {
		return nil, errs[0].Err
	}
	return out.Cols[0], nil
}

// setColumns gives columns of rows NULL or their defaults.
func (s *Session) setColumns(t *catalog.Object, rows columnar.Batch, cols []int, defaults bool) (columnar.Batch, error) {
	outs := plan.Refs(planColumns(t))
	for _, c := range cols {
		e, err := s.defaultExpr(&t.Columns[c], defaults)
		if err != nil {
			return rows, err
		}
		outs[c] = e
	}
	prog, err := expr.Compile(expr.MapFilterProject{Outputs: outs})
	if err != nil {
		return rows, err
	}
	out, _, errs := prog.Apply(s.exprContext(), &rows, nil)
	if len(errs) > 0 {
		return rows, errs[0].Err
	}
	return out, nil
}

// defaultExpr is a column's default, or NULL without one.
func (s *Session) defaultExpr(c *catalog.Column, use bool) (expr.Expr, error) {
	if c.Default == "" || !use {
		return nullConst(*c), nil
	}
	x, err := parser.ParseExpr(c.Default)
	if err != nil {
		return nil, err
	}
	e, err := planner.BindExpr(s.bindContext(nil), c.Default, &x, nil, "DEFAULT expressions", c.Type)
	if err != nil {
		return nil, err
	}
	return expr.FoldLiterals(e, s.exprContext())
}

// laterCheck is a check of a foreign key that waits for the end of the
// transaction: of new rows, or of rows that are gone and that table o referred to.
type laterCheck struct {
	change tableChange
	fk     *catalog.ForeignKey
	o      *catalog.Object
}

// checkLater carries out the checks that were put off.
func (s *Session) checkLater(ctx context.Context) error {
	later := s.tx.later
	s.tx.later = nil
	w := &writer{s: s, ctx: ctx}
	for _, l := range later {
		if l.o == nil {
			rows, err := w.stillThere(l.change.t, l.change.rows)
			if err != nil {
				return err
			}
			if err := s.checkReferring(ctx, l.change.t, l.fk, rows); err != nil {
				return err
			}
			continue
		}
		keep, err := w.vanished(l.change.t, l.fk.RefColumns, &l.change.gone)
		if err != nil {
			return err
		}
		gone := l.change.gone.Gather(keep)
		rows, from, err := w.referringRows(l.change.t, l.o, l.fk, &gone)
		if err != nil {
			return err
		}
		if rows.N > 0 {
			return s.stillReferred(l.change.t, l.o, l.fk, &gone, from)
		}
	}
	return nil
}

// stillThere are those of rows that the table still has.
func (w *writer) stillThere(t *catalog.Object, rows columnar.Batch) (columnar.Batch, error) {
	key := allColumns(t)
	if len(t.PrimaryKey) > 0 {
		key = t.PrimaryKey
	}
	all := columnTypes(t.Columns, allColumns(t))
	want := newKeySet(columnTypes(t.Columns, key), &rows, key, nil)
	have := map[string]dataflow.Diff{}
	if err := w.s.withKeys(w.ctx, t, key, want, func(_ int, b *columnar.Batch, i int, d dataflow.Diff) {
		have[string(exactKey(nil, b, all, i))] += d
	}); err != nil {
		return rows, err
	}
	var keep []uint32
	for i := range rows.N {
		if have[string(exactKey(nil, &rows, all, i))] > 0 {
			keep = append(keep, uint32(i))
		}
	}
	return rows.Gather(keep), nil
}
