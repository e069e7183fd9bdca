package coord

import (
	"slices"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// keyIndex is an index that enforces a key, or finds the rows that refer to
// another table. The timeline keeps it with its table, so that a check sees
// what is applied: the rows of the table arranged by the key or, where bits do
// not tell equality, by the key's encoded form in a column before them.
type keyIndex struct {
	coll    *collection
	key     []int
	types   []types.Type // of the key
	encoded bool
}

// newKeyIndex makes the collection of an index that is kept with its table.
func (c *Coordinator) newKeyIndex(o *catalog.Object) *collection {
	k := &keyIndex{key: o.Key, encoded: o.Index.Encoded}
	for _, i := range o.Key {
		k.types = append(k.types, o.Columns[i].Type)
	}
	kinds, key := kindsOf(o.Columns), o.Key
	if k.encoded {
		kinds, key = append([]columnar.Kind{columnar.KindBytes}, kinds...), []int{0}
	}
	k.coll = newCollection(o.ID, kinds, key, false, c.partitions, c.timeline.ingest)
	k.coll.setReady()
	c.keyed[o.Table] = append(c.keyed[o.Table], k)
	return k.coll
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
	if !k.encoded {
		k.coll.append(e, ds, nil, readable)
		return
	}
	out := make([]*dataflow.Delta, len(ds))
	for i, d := range ds {
		out[i] = &dataflow.Delta{Batch: columnar.Batch{Cols: append([]*columnar.Vec{k.encode(&d.Batch)}, d.Cols...), N: d.N}, Diffs: d.Diffs}
	}
	k.coll.append(e, out, nil, readable)
}

// encode is the key's encoded form in each row, NULL where a column is NULL.
func (k *keyIndex) encode(b *columnar.Batch) *columnar.Vec {
	out := columnar.NewBuilder(columnar.KindBytes, b.N)
	var buf []byte
	for i := range b.N {
		buf = appendKey(buf[:0], b, k.key, k.types, i)
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
		out[i] = cols[k].Type
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
