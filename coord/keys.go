package coord

import (
	"context"
	"fmt"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// keySet is a set of keys: those that some rows have in some columns.
type keySet struct {
	types []types.Type
	rows  *columnar.Batch
	cols  []int
	at    map[string]int // the encoded key → a row that has it
}

// newKeySet collects the keys of the rows that want says (nil: all).
func newKeySet(ts []types.Type, rows *columnar.Batch, cols []int, want func(i int) bool) *keySet {
	k := &keySet{types: ts, rows: rows, cols: cols, at: make(map[string]int, rows.N)}
	var buf []byte
	for i := range rows.N {
		if want != nil && !want(i) {
			continue
		}
		buf = appendKey(buf[:0], rows, cols, ts, i)
		if _, ok := k.at[string(buf)]; !ok {
			k.at[string(buf)] = i
		}
	}
	return k
}

// keyedRow is told of a row with one of the wanted keys, and its multiplicity.
type keyedRow func(key string, b *columnar.Batch, i int, diff dataflow.Diff)

// withKeys gives f the present rows of a table whose columns key have one of the
// wanted keys: the committed ones, and the transaction's own changes to them. A
// row may come several times, with multiplicities that add up.
func (s *Session) withKeys(ctx context.Context, t *catalog.Object, key []int, want *keySet, f keyedRow) error {
	if len(want.at) == 0 {
		return nil
	}
	if err := s.committedWithKeys(ctx, t, key, want, f); err != nil {
		return err
	}
	p := s.tx.pendingBy(t, key)
	for x := range want.at {
		for _, r := range p.rows[x] {
			d := s.tx.writes[r.write].delta
			f(x, &d.Batch, int(r.row), d.Diff(int(r.row)))
		}
	}
	return ctx.Err()
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
	sn, err := snapshotTrace(coll.rows, s.c.timeline.ingest.done.get())
	if err != nil || sn == nil {
		return err
	}
	defer sn.Release()
	if encoded {
		for x := range want.at {
			enc := columnar.FromBytes([]uint32{0, uint32(len(x))}, []byte(x), nil)
			if d := sn.Lookup([]*columnar.Vec{enc}, 0); d != nil {
				b := columnar.Batch{Cols: d.Cols[1:], N: d.N}
				for i := range d.N {
					f(x, &b, i, d.Diff(i))
				}
			}
		}
		return nil
	}
	vecs := make([]*columnar.Vec, len(want.cols))
	for j, c := range want.cols {
		vecs[j] = want.rows.Cols[c]
	}
	for x, at := range want.at {
		if d := sn.Lookup(vecs, at); d != nil {
			for i := range d.N {
				f(x, &d.Batch, i, d.Diff(i))
			}
		}
	}
	return nil
}

func (s *Session) scanForKeys(ctx context.Context, t *catalog.Object, key []int, want *keySet, f keyedRow) error {
	coll := s.c.collection(t.ID)
	if coll == nil {
		return nil
	}
	sn, err := snapshotTrace(coll.rows, s.c.timeline.ingest.done.get())
	if err != nil || sn == nil {
		return err
	}
	defer sn.Release()
	ts := columnTypes(t.Columns, key)
	var buf []byte
	sn.Scan(func(d *dataflow.Delta) bool {
		for i := range d.N {
			buf = appendKey(buf[:0], &d.Batch, key, ts, i)
			if _, ok := want.at[string(buf)]; ok {
				f(string(buf), &d.Batch, i, d.Diff(i))
			}
		}
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
	k := pendingKey{t.ID, fmt.Sprint(key)}
	p := tx.keyed[k]
	if p == nil {
		p = &pendingIndex{rows: map[string][]pendingRow{}}
		if tx.keyed == nil {
			tx.keyed = map[pendingKey]*pendingIndex{}
		}
		tx.keyed[k] = p
	}
	ts := columnTypes(t.Columns, key)
	var buf []byte
	for ; p.upto < len(tx.writes); p.upto++ {
		w := tx.writes[p.upto]
		if w.id != t.ID {
			continue
		}
		for i := range w.delta.N {
			buf = appendKey(buf[:0], &w.delta.Batch, key, ts, i)
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
