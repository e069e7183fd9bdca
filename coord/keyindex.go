package coord

import (
	"slices"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// keyIndex is an index that enforces a key, or finds the rows that refer to
// another table. The timeline keeps it with its table, so that a check sees
// what is applied: the rows of the table arranged by the key or, where bits do
// not tell equality, by the key's encoded form in a column before them.
type keyIndex struct {
	coll    *collection
	form    *keyForm
	encoded bool
	ctx     *expr.Context
}

// newKeyIndex makes the collection of an index that is kept with its table.
func (c *Coordinator) newKeyIndex(o *catalog.Object, kinds []columnar.Kind, key []int) (*collection, error) {
	form, err := c.keyForm(c.catalog.Load(), o)
	if err != nil && c.recovering {
		c.log.Error("an index cannot be kept", "index", o.Name, "error", err)
		form, err = emptyForm(o)
	}
	if err != nil {
		return nil, err
	}
	k := &keyIndex{form: form, encoded: o.Index.Encoded, ctx: &expr.Context{Location: zoneUTC, Database: databaseName}}
	if k.encoded {
		kinds, key = append([]columnar.Kind{columnar.KindBytes}, kindsOf(o.Columns)...), []int{0}
	}
	k.coll = newCollection(o.ID, kinds, key, false, c.partitions, c.timeline.ingest)
	k.coll.setReady()
	c.keyed[o.Table] = append(c.keyed[o.Table], k)
	return k.coll, nil
}

// fillKeyIndex gives a new index the rows that its table has.
func (c *Coordinator) fillKeyIndex(o *catalog.Object) {
	i := slices.IndexFunc(c.keyed[o.Table], func(k *keyIndex) bool { return k.coll.id == o.ID })
	t := c.collection(o.Table)
	if i < 0 || t == nil || t.rows.Upper() == 0 {
		return
	}
	at := t.rows.Upper() - 1
	sn, ok := t.rows.SnapshotAt(at)
	if !ok {
		return
	}
	defer sn.Release()
	var rows []*dataflow.Delta
	sn.Scan(func(d *dataflow.Delta) bool {
		rows = append(rows, cloneDelta(d))
		return true
	})
	c.keyed[o.Table][i].append(at, rows, at)
}

// forgetKeyIndex ends the upkeep of an index.
func (c *Coordinator) forgetKeyIndex(o *catalog.Object) {
	c.keyed[o.Table] = slices.DeleteFunc(c.keyed[o.Table], func(k *keyIndex) bool { return k.coll.id == o.ID })
	if len(c.keyed[o.Table]) == 0 {
		delete(c.keyed, o.Table)
	}
}

// append adds the changes that the table has at epoch e.
func (k *keyIndex) append(e dataflow.Epoch, ds []*dataflow.Delta, readable dataflow.Epoch) {
	if !k.encoded && k.form.prog == nil {
		k.coll.append(e, ds, nil, readable)
		return
	}
	out := make([]*dataflow.Delta, 0, len(ds))
	for _, d := range ds {
		if d = k.entries(d); d.N > 0 {
			out = append(out, d)
		}
	}
	k.coll.append(e, out, nil, readable)
}

// entries are what the index has of some changes.
func (k *keyIndex) entries(d *dataflow.Delta) *dataflow.Delta {
	r := k.form.over(k.ctx, &d.Batch)
	out := &dataflow.Delta{Batch: *r.rows, Diffs: d.Diffs}
	if k.encoded {
		out.Batch = columnar.Batch{Cols: append([]*columnar.Vec{r.encoded()}, d.Cols...), N: d.N}
	}
	if r.in == nil && !r.none {
		return out
	}
	var keep []uint32
	for i := range d.N {
		if r.has(i) {
			keep = append(keep, uint32(i))
		}
	}
	if len(keep) == d.N {
		return out
	}
	some := &dataflow.Delta{Batch: out.Gather(keep)}
	for _, i := range keep {
		some.Diffs = append(some.Diffs, d.Diff(int(i)))
	}
	return some
}

// encoded is the key's encoded form in each row.
func (r *keyedRows) encoded() *columnar.Vec {
	out := columnar.NewBuilder(columnar.KindBytes, r.rows.N)
	var buf []byte
	for i := range r.rows.N {
		buf = appendKey(buf[:0], r.rows, r.cols, r.ts, i)
		out.Bytes(buf)
	}
	return out.Build()
}

// appendKey encodes the key of row i so that equal keys have equal bytes. NULLs
// are equal.
func appendKey(dst []byte, b *columnar.Batch, key []int, ts []types.Type, i int) []byte {
	for j, c := range key {
		if b.Cols[c].Null(i) {
			dst = append(dst, 0)
			continue
		}
		dst = types.AppendSortKey(append(dst, 1), ts[j], b.Cols[c], i)
	}
	return dst
}

// hasNull reports whether a column of the key is NULL in row i.
func hasNull(b *columnar.Batch, key []int, i int) bool {
	for _, c := range key {
		if b.Cols[c].Null(i) {
			return true
		}
	}
	return false
}

// columnTypes are the types of some columns.
func columnTypes(cols []catalog.Column, key []int) []types.Type {
	out := make([]types.Type, len(key))
	for i, k := range key {
		out[i] = cols[k].Type.Storage()
	}
	return out
}

// encodedKey says whether the equality of a key's values is not that of their bits.
func encodedKey(t *catalog.Object, key []int) bool {
	return slices.ContainsFunc(key, func(c int) bool { return !bitwiseEqual(t.Columns[c].Type) })
}

// arrangement finds the collection by which the rows of a table with a key are
// looked up: its own, or an index. Zero: there is none.
func arrangement(cat *catalog.Snapshot, t *catalog.Object, key []int) (id plan.ObjectID, encoded bool) {
	if slices.Equal(collectionKey(t), key) && !encodedKey(t, key) {
		return t.ID, false
	}
	for _, u := range cat.Users(t.ID) {
		if u.Kind == catalog.KindIndex && u.Table == t.ID && u.Index != nil && u.Plain() && slices.Equal(u.Key, key) {
			return u.ID, u.Index.Encoded
		}
	}
	return 0, false
}
