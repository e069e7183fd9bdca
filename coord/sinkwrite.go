package coord

import (
	"context"
	"slices"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// write makes, in the transaction of the sink's session, what pending rows mean for
// the table, and notes them as delivered.
func (k *runningSink) write(ctx context.Context, o *catalog.Object, pending *dataflow.Delta) (*writer, error) {
	s, t := k.s, k.into.Table
	come, gone := bySign(pending)
	if o.Sink.Changelog != nil {
		var err error
		if come.Batch, err = k.changes(ctx, o, come, gone); err != nil {
			return nil, err
		}
		come.Diffs = nil
	}
	if o.Sink.InsertsOnly || o.Sink.Changelog != nil {
		gone.N = 0
	}
	if err := s.lockForm(ctx, t.ID, false); err != nil {
		return nil, err
	}
	if s.snapshot().ByID(t.ID) != t {
		return nil, errSinkAgain // while it waited
	}
	if gone.N > 0 || len(t.Keys()) > 0 {
		if err := s.lock(ctx, t, true); err != nil {
			return nil, err
		}
	}
	if gone.N > 0 && t.AppendOnly {
		return nil, pgerror.New(pgerror.ObjectNotInPrerequisiteState, "cannot delete from append-only table \"%s\"", t.Name)
	}
	r := &writeRun{writer: &writer{s: s, ctx: ctx}, reader: &reader{s: s, ctx: s.exprContext()}}
	var err error
	if len(t.PrimaryKey) > 0 {
		err = k.writeKeyed(r, o, come, gone)
	} else if err = k.deleteRows(r, o, gone); err == nil {
		_, err = r.insertRows(k.into, repeated(come))
	}
	if err == nil {
		err = r.references()
	}
	s.tx.write(o.Sink.Delivered, pending)
	return r.writer, err
}

// bySign parts changes into the rows that come and those that go, which have positive diffs.
func bySign(d *dataflow.Delta) (come, gone *dataflow.Delta) {
	var plus, minus []uint32
	come, gone = &dataflow.Delta{}, &dataflow.Delta{}
	for i := range d.N {
		if x := d.Diff(i); x > 0 {
			plus, come.Diffs = append(plus, uint32(i)), append(come.Diffs, x)
		} else {
			minus, gone.Diffs = append(minus, uint32(i)), append(gone.Diffs, -x)
		}
	}
	come.Batch, gone.Batch = d.Gather(plus), d.Gather(minus)
	return come, gone
}

// repeated gives each row as often as its diff says.
func repeated(d *dataflow.Delta) *columnar.Batch {
	if !slices.ContainsFunc(d.Diffs, func(x int64) bool { return x != 1 }) {
		return &d.Batch
	}
	var idx []uint32
	for i, x := range d.Diffs {
		for range x {
			idx = append(idx, uint32(i))
		}
	}
	b := d.Gather(idx)
	return &b
}

// given computes some columns of the table's rows from rows of the query.
func (k *runningSink) given(r *writeRun, cols []int, rows *columnar.Batch) (columnar.Batch, error) {
	exprs := make([]expr.Expr, len(cols))
	for i, c := range cols {
		exprs[i] = k.into.Row[c]
	}
	return r.project(exprs, rows)
}

// writeKeyed takes the rows away whose keys are gone, and puts those that come: in
// the place of those that have their keys, or as the table's policy for conflicts has it.
func (k *runningSink) writeKeyed(r *writeRun, o *catalog.Object, come, gone *dataflow.Delta) error {
	t := k.into.Table
	rows := come.Batch
	if gone.N > 0 {
		if c := keyGap(o, t); c != "" { // the table has got the key since
			return noKeyColumn(c, t)
		}
		ts := columnTypes(t.Columns, t.PrimaryKey)
		fresh, err := k.given(r, t.PrimaryKey, &come.Batch)
		if err != nil {
			return err
		}
		kept := newKeySet(ts, &fresh, span(len(ts)), nil)
		left, err := k.remaining(r, o, gone)
		if err != nil {
			return err
		}
		old, err := k.given(r, t.PrimaryKey, &gone.Batch)
		if err != nil {
			return err
		}
		stays, err := k.given(r, t.PrimaryKey, &left)
		if err != nil {
			return err
		}
		others := newKeySet(ts, &stays, span(len(ts)), nil)
		var buf []byte
		want := newKeySet(ts, &old, span(len(ts)), func(i int) bool {
			buf = appendKey(buf[:0], &old, span(len(ts)), ts, i)
			_, comes := kept.at[string(buf)]
			_, held := others.at[string(buf)]
			return !comes && !held
		})
		if err := k.deleteKeys(r, want); err != nil {
			return err
		}
		// A key that something else holds now has what the query still holds of it.
		again := rowsOf(&stays, ts, left, func(key []byte) bool { _, ok := kept.at[string(key)]; return !ok })
		rows = columnar.ConcatBatches(kindsOf(o.Columns), &again, &rows)
	}
	_, err := r.insertRows(k.into, &rows)
	return err
}

// rowsOf are the rows whose keys satisfy f.
func rowsOf(keys *columnar.Batch, ts []types.Type, rows columnar.Batch, f func(key []byte) bool) columnar.Batch {
	var idx []uint32
	var buf []byte
	for i := range rows.N {
		if buf = appendKey(buf[:0], keys, span(len(ts)), ts, i); f(buf) {
			idx = append(idx, uint32(i))
		}
	}
	return rows.Gather(idx)
}

// deleteKeys takes the rows of the wanted primary keys away.
func (k *runningSink) deleteKeys(r *writeRun, want *keySet) error {
	t := k.into.Table
	present, err := r.presentRows(t, t.Primary, want)
	if err != nil {
		return err
	}
	var from *columnar.Batch
	var idx []uint32
	for _, ref := range present { // all are of one batch
		from = ref.b
		idx = append(idx, uint32(ref.i))
	}
	if from != nil {
		slices.Sort(idx)
		r.delete(t, from.Gather(idx))
	}
	return nil
}

// remaining are the rows of the query that have the key of one that is gone and
// stay: those delivered before, without the ones that go.
func (k *runningSink) remaining(r *writeRun, o *catalog.Object, gone *dataflow.Delta) (columnar.Batch, error) {
	coll := k.c.collection(o.Sink.Delivered)
	if coll == nil {
		return columnar.Batch{}, errSinkAgain
	}
	want := newKeySet(columnTypes(o.Columns, o.Key), &gone.Batch, o.Key, nil)
	counts := newRowCounts(o.Columns)
	err := k.s.findKeys(r.ctx, coll, false, len(o.Columns), want, func(_ int, b *columnar.Batch, i int, d dataflow.Diff) { counts.add(b, i, d) })
	if err != nil {
		return columnar.Batch{}, err
	}
	for i := range gone.N {
		counts.add(&gone.Batch, i, -gone.Diffs[i])
	}
	var idx []uint32
	for n, d := range counts.diffs {
		if d > 0 {
			idx = append(idx, uint32(n))
		}
	}
	rows := counts.batch()
	return rows.Gather(idx), nil
}

// deleteRows takes rows away from a table without a key: for each that is gone one
// that has its values in the columns that the sink gives, if there still is one.
func (k *runningSink) deleteRows(r *writeRun, o *catalog.Object, gone *dataflow.Delta) error {
	if gone.N == 0 {
		return nil
	}
	t := k.into.Table
	var cols []int
	for _, name := range o.Sink.Columns {
		cols = append(cols, t.Column(name))
	}
	slices.Sort(cols)
	vals, err := k.given(r, cols, &gone.Batch)
	if err != nil {
		return err
	}
	ts := columnTypes(t.Columns, cols)
	want := newKeySet(ts, &vals, span(len(cols)), nil)
	need := make([]int64, len(want.keys))
	for i, n := range want.of {
		need[n] += gone.Diffs[i]
	}
	if len(cols) == len(t.Columns) && slices.Equal(collectionKey(t), cols) {
		// As they were delivered they are found by their bits.
		if err := k.takeRows(r, need, func(f keyedRow) error {
			return k.s.findKeys(r.ctx, k.c.collection(t.ID), false, len(cols), want, f)
		}); err != nil || !encodedKey(t, cols) || !slices.ContainsFunc(need, func(n int64) bool { return n > 0 }) {
			return err
		}
	}
	return k.takeRows(r, need, func(f keyedRow) error { return k.s.withKeys(r.ctx, t, cols, want, f) })
}

// takeRows deletes, of the rows that find gives, as many of each number as need says,
// or as there are; need is then what is missing.
func (k *runningSink) takeRows(r *writeRun, need []int64, find func(f keyedRow) error) error {
	counts := newRowCounts(k.into.Table.Columns)
	var of []int
	if err := find(func(n int, b *columnar.Batch, i int, d dataflow.Diff) {
		if at := counts.add(b, i, d); at == len(of) {
			of = append(of, n)
		}
	}); err != nil {
		return err
	}
	var idx []uint32
	for at, have := range counts.diffs {
		for ; have > 0 && need[of[at]] > 0; have-- {
			idx = append(idx, uint32(at))
			need[of[at]]--
		}
	}
	rows := counts.batch()
	r.delete(k.into.Table, rows.Gather(idx))
	return nil
}
