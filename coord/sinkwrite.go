package coord

import (
	"context"
	"slices"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
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
	rows := come.Batch
	if gone.N > 0 {
		again, err := k.clearKeys(r, o, come, gone)
		if err != nil {
			return err
		}
		rows = columnar.ConcatBatches(kindsOf(o.Columns), &again, &rows)
	}
	_, err := r.insertRows(k.into, &rows)
	return err
}

// clearKeys takes the rows away whose keys are gone and do not come. It gives the
// rows that the query still has of keys of which one is gone, and none comes.
func (k *runningSink) clearKeys(r *writeRun, o *catalog.Object, come, gone *dataflow.Delta) (again columnar.Batch, err error) {
	t := k.into.Table
	if c := keyGap(o, t); c != "" { // the table has got the key since
		return again, noKeyColumn(c, t)
	}
	left, err := k.remaining(r, o, gone)
	if err != nil {
		return again, err
	}
	ts := columnTypes(t.Columns, t.PrimaryKey)
	var keys [3]columnar.Batch
	for i, rows := range []*columnar.Batch{&come.Batch, &left, &gone.Batch} {
		if keys[i], err = k.given(r, t.PrimaryKey, rows); err != nil {
			return again, err
		}
	}
	comes, stays := newKeySet(ts, &keys[0], span(len(ts)), nil), newKeySet(ts, &keys[1], span(len(ts)), nil)
	var idx []uint32
	for i := range left.N {
		if _, ok := comes.at[stays.keys[stays.of[i]]]; !ok {
			idx = append(idx, uint32(i))
		}
	}
	again = left.Gather(idx)
	if t.OnConflict == catalog.ConflictIgnore {
		return again, k.deleteOwn(r, o, newKeySet(ts, &keys[2], span(len(ts)), nil), gone)
	}
	var buf []byte
	want := newKeySet(ts, &keys[2], span(len(ts)), func(i int) bool {
		buf = appendKey(buf[:0], &keys[2], span(len(ts)), ts, i)
		_, replaced := comes.at[string(buf)]
		_, held := stays.at[string(buf)]
		return !replaced && !held
	})
	return again, k.deleteKeys(r, want, func(*columnar.Batch, int) bool { return true })
}

// deleteOwn takes the rows of the wanted keys away that have the values of rows that
// are gone: others were there first, and those of the sink have been passed over.
func (k *runningSink) deleteOwn(r *writeRun, o *catalog.Object, want *keySet, gone *dataflow.Delta) error {
	cols := k.columns(o)
	ts := columnTypes(k.into.Table.Columns, cols)
	vals, err := k.given(r, cols, &gone.Batch)
	if err != nil {
		return err
	}
	own := newKeySet(ts, &vals, span(len(cols)), nil)
	var buf []byte
	return k.deleteKeys(r, want, func(b *columnar.Batch, i int) bool {
		buf = appendKey(buf[:0], b, cols, ts, i)
		_, ok := own.at[string(buf)]
		return ok
	})
}

// deleteKeys takes the rows of the wanted primary keys away for which f holds.
func (k *runningSink) deleteKeys(r *writeRun, want *keySet, f func(b *columnar.Batch, i int) bool) error {
	t := k.into.Table
	present, err := r.presentRows(t, t.Primary, want)
	if err != nil {
		return err
	}
	var from *columnar.Batch
	var idx []uint32
	for _, ref := range present {
		if from = ref.b; f(ref.b, ref.i) { // all are of one batch
			idx = append(idx, uint32(ref.i))
		}
	}
	if len(idx) > 0 {
		slices.Sort(idx)
		r.delete(t, from.Gather(idx))
	}
	return nil
}

// columns are those of the table that the sink gives, in their order.
func (k *runningSink) columns(o *catalog.Object) []int {
	var cols []int
	for _, name := range o.Sink.Columns {
		cols = append(cols, k.into.Table.Column(name))
	}
	slices.Sort(cols)
	return cols
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
	cols := k.columns(o)
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
