package coord

import (
	"context"
	"fmt"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// keySet is a set of keys: those that some rows have in some columns. Keys are
// numbered in the order of their first rows.
type keySet struct {
	rows  *columnar.Batch
	cols  []int
	keys  []string         // encoded
	first []uint32         // the first row of each
	of    []int32          // the number of each row's key; -1: not wanted
	at    map[string]int32 // the numbers by the encoded key
}

// newKeySet collects the keys of the rows that want says (nil: all).
func newKeySet(ts []types.Type, rows *columnar.Batch, cols []int, want func(i int) bool) *keySet {
	k := &keySet{rows: rows, cols: cols, of: make([]int32, rows.N), at: make(map[string]int32, rows.N)}
	ends := make([]int, rows.N)
	var buf []byte
	for i := range rows.N {
		if want != nil && !want(i) {
			k.of[i] = -1
		} else {
			buf = appendKey(buf, rows, cols, ts, i)
		}
		ends[i] = len(buf)
	}
	all := string(buf) // one allocation for all keys
	lo := 0
	for i, hi := range ends {
		if k.of[i] < 0 {
			continue
		}
		x := all[lo:hi]
		lo = hi
		n, ok := k.at[x]
		if !ok {
			n = int32(len(k.keys))
			k.at[x] = n
			k.keys = append(k.keys, x)
			k.first = append(k.first, uint32(i))
		}
		k.of[i] = n
	}
	return k
}

// vecs are the distinct keys, in the order of their numbers.
func (k *keySet) vecs() []*columnar.Vec {
	out := make([]*columnar.Vec, len(k.cols))
	for j, c := range k.cols {
		out[j] = k.rows.Cols[c]
		if len(k.first) < k.rows.N {
			out[j] = out[j].Gather(k.first)
		}
	}
	return out
}

// encoded are the encoded keys, in the order of their numbers.
func (k *keySet) encoded() *columnar.Vec {
	b := columnar.NewBuilder(columnar.KindBytes, len(k.keys))
	var buf []byte
	for _, x := range k.keys {
		buf = append(buf[:0], x...)
		b.Bytes(buf)
	}
	return b.Build()
}

// keyedRow is told of a row with wanted key k, and its multiplicity. The row is
// in place: what is to be kept must be copied.
type keyedRow func(k int, b *columnar.Batch, i int, diff dataflow.Diff)

// withKeys gives f the present rows of a table whose columns key have one of the
// wanted keys: the committed ones, and the transaction's own changes to them. A
// row may come several times, with multiplicities that add up.
func (s *Session) withKeys(ctx context.Context, t *catalog.Object, key []int, want *keySet, f keyedRow) error {
	if len(want.keys) == 0 {
		return nil
	}
	if err := s.committedWithKeys(ctx, t, key, want, f); err != nil {
		return err
	}
	s.tx.eachPending(s.tx.pendingBy(t, key), want, f)
	return ctx.Err()
}

// eachPending gives the transaction's own changes that have one of the wanted keys.
func (tx *txn) eachPending(p *pendingIndex, want *keySet, f keyedRow) {
	if len(p.rows) == 0 {
		return
	}
	for k, x := range want.keys {
		for _, r := range p.rows[x] {
			d := tx.writes[r.write].delta
			f(k, &d.Batch, int(r.row), d.Diff(int(r.row)))
		}
	}
}

// multiplicity is how many present rows of a table have each of the wanted keys of
// some columns.
func (s *Session) multiplicity(ctx context.Context, t *catalog.Object, key []int, want *keySet) ([]dataflow.Diff, error) {
	have := make([]dataflow.Diff, len(want.keys))
	err := s.withKeys(ctx, t, key, want, func(k int, _ *columnar.Batch, _ int, d dataflow.Diff) { have[k] += d })
	return have, err
}

// committedWithKeys looks the keys up where the table is arranged by them, else
// in all of its rows.
func (s *Session) committedWithKeys(ctx context.Context, t *catalog.Object, key []int, want *keySet, f keyedRow) error {
	if s.rewritten(t.ID) || s.ownObject(t.ID) {
		return nil
	}
	id, encoded := arrangement(s.c.catalog.Load(), t, key)
	coll := s.c.collection(id)
	if coll == nil {
		return s.scanForKeys(ctx, t, key, want, f)
	}
	return s.findKeys(ctx, coll, encoded, len(t.Columns), want, f)
}

// findKeys looks the keys up in a collection that is arranged by them and has the
// columns of a table, so many, first, or after the encoded key.
func (s *Session) findKeys(ctx context.Context, coll *collection, encoded bool, width int, want *keySet, f keyedRow) error {
	sn, err := snapshotTrace(coll.rows, s.c.timeline.ingest.done.get())
	if err != nil || sn == nil {
		return err
	}
	defer sn.Release()
	var keys []*columnar.Vec
	skip := 0
	if encoded {
		keys, skip = []*columnar.Vec{want.encoded()}, 1 // the encoded key stands before the columns
	} else {
		keys = want.vecs()
	}
	var b columnar.Batch
	sn.Find(keys, len(want.keys), func(in *trace.Batch, key, row []uint32) bool {
		var c *trace.Chunk
		last := -1
		for j, r := range row {
			if n := int(r >> columnar.ChunkShift); n != last {
				c, last = in.Chunk(n), n
				b = columnar.Batch{Cols: c.Cols[skip : skip+width], N: c.N}
			}
			i := int(r & (columnar.ChunkRows - 1))
			f(int(key[j]), &b, i, c.Diff(i))
		}
		return ctx.Err() == nil
	})
	return ctx.Err()
}

func (s *Session) scanForKeys(ctx context.Context, t *catalog.Object, key []int, want *keySet, f keyedRow) error {
	ts := columnTypes(t.Columns, key)
	var buf []byte
	return s.scanTable(ctx, t, func(d *dataflow.Delta) {
		for i := range d.N {
			buf = appendKey(buf[:0], &d.Batch, key, ts, i)
			if k, ok := want.at[string(buf)]; ok {
				f(int(k), &d.Batch, i, d.Diff(i))
			}
		}
	})
}

// scanTable gives all rows of a table, as they are applied, to f.
func (s *Session) scanTable(ctx context.Context, t *catalog.Object, f func(d *dataflow.Delta)) error {
	coll := s.c.collection(t.ID)
	if coll == nil {
		return nil
	}
	sn, err := snapshotTrace(coll.rows, s.c.timeline.ingest.done.get())
	if err != nil || sn == nil {
		return err
	}
	defer sn.Release()
	sn.Scan(func(d *dataflow.Delta) bool {
		f(d)
		return ctx.Err() == nil
	})
	return ctx.Err()
}

// pendingRow is a row among a transaction's own changes.
type pendingRow struct{ write, row uint32 }

// pendingIndex finds a transaction's own changes to a table by a key.
type pendingIndex struct {
	upto int // writes that are in it
	rows map[string][]pendingRow
}

type pendingKey struct {
	id  plan.ObjectID
	key string
}

// pendingBy is the transaction's changes to a table by a key, up to now.
func (tx *txn) pendingBy(t *catalog.Object, key []int) *pendingIndex {
	ts := columnTypes(t.Columns, key)
	return tx.pendingThrough(pendingKey{t.ID, fmt.Sprint(key)}, func(b *columnar.Batch) func([]byte, int) ([]byte, bool) {
		return func(dst []byte, i int) ([]byte, bool) { return appendKey(dst, b, key, ts, i), true }
	})
}

// pendingThrough is the transaction's changes to a table by what keyOf says of the
// rows of a batch: their keys, and whether they have one.
func (tx *txn) pendingThrough(k pendingKey, keyOf func(b *columnar.Batch) func(dst []byte, i int) ([]byte, bool)) *pendingIndex {
	p := tx.keyed[k]
	if p == nil {
		p = &pendingIndex{rows: map[string][]pendingRow{}}
		if tx.keyed == nil {
			tx.keyed = map[pendingKey]*pendingIndex{}
		}
		tx.keyed[k] = p
	}
	var buf []byte
	for ; p.upto < len(tx.writes); p.upto++ {
		w := tx.writes[p.upto]
		if w.id != k.id {
			continue
		}
		key := keyOf(&w.delta.Batch)
		for i := range w.delta.N {
			var ok bool
			if buf, ok = key(buf[:0], i); !ok {
				continue
			}
			p.rows[string(buf)] = append(p.rows[string(buf)], pendingRow{uint32(p.upto), uint32(i)})
		}
	}
	return p
}

// allColumns is every column of a table.
func allColumns(t *catalog.Object) []int {
	out := make([]int, len(t.Columns))
	for i := range out {
		out[i] = i
	}
	return out
}

// exactKey encodes a whole row so that just identical rows have equal bytes.
func exactKey(dst []byte, b *columnar.Batch, ts []types.Type, i int) []byte {
	for c := range ts {
		v := b.Cols[c]
		if v.Null(i) {
			dst = append(dst, 0)
			continue
		}
		at := len(dst) + 1
		dst = append(dst, 1, 0, 0, 0, 0)
		dst = types.AppendBinary(dst, ts[c], v, i)
		n := len(dst) - at - 4
		dst[at], dst[at+1], dst[at+2], dst[at+3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
	}
	return dst
}
