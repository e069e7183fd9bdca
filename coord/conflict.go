package coord

import (
	"slices"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/types"
)

// rowRef is a row of a batch.
type rowRef struct {
	b *columnar.Batch
	i int
}

// arbiter is a key whose conflicts an INSERT handles.
type arbiter struct {
	key     catalog.Key
	rows    keyedRows         // the proposed ones
	present map[string]rowRef // the rows of the table that have one of the proposed keys
	mine    map[string]bool   // keys that the statement has inserted
	buf     []byte
}

// at is the key of a proposed row; false if it cannot conflict.
func (a *arbiter) at(i int) ([]byte, bool) {
	if !a.rows.counts(&a.key, i) {
		return nil, false
	}
	a.buf = appendKey(a.buf[:0], a.rows.rows, a.rows.cols, a.rows.ts, i)
	return a.buf, true
}

func (r *writeRun) arbiters(t *catalog.Object, names []string, rows *columnar.Batch) ([]*arbiter, error) {
	var out []*arbiter
	for _, k := range t.Keys() {
		if names != nil && !slices.Contains(names, k.Name) {
			continue
		}
		form, err := r.s.formOf(t, &k)
		if err != nil {
			return nil, err
		}
		a := &arbiter{key: k, rows: form.over(r.s.exprContext(), rows), present: map[string]rowRef{}, mine: map[string]bool{}}
		if a.present, err = r.presentRows(t, &k, a.rows.wanted(&k)); err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// presentRows are the rows that a table has with the wanted keys, which are
// unique.
func (r *writeRun) presentRows(t *catalog.Object, key *catalog.Key, want *keySet) (map[string]rowRef, error) {
	counts := newRowCounts(t.Columns)
	var of []int // the numbers of the keys
	err := r.s.withUnique(r.ctx, t, key, want, func(k int, b *columnar.Batch, i int, d dataflow.Diff) {
		if n := counts.add(b, i, d); n == len(of) {
			of = append(of, k)
		}
	})
	rows := counts.batch()
	out := make(map[string]rowRef, len(of))
	for n, d := range counts.diffs {
		if d > 0 {
			out[want.keys[of[n]]] = rowRef{&rows, n}
		}
	}
	return out, err
}

// rowCounts sums up how often rows are there, of which parts are met one by one.
type rowCounts struct {
	ts    []types.Type
	bs    []*columnar.Builder
	at    map[string]int // the place of a row
	diffs []dataflow.Diff
	buf   []byte
}

func newRowCounts(cols []catalog.Column) *rowCounts {
	r := &rowCounts{at: map[string]int{}}
	for _, c := range cols {
		r.ts = append(r.ts, c.Type)
		r.bs = append(r.bs, columnar.NewBuilder(c.Type.Kind(), 0))
	}
	return r
}

// add counts row i of b and gives its place.
func (r *rowCounts) add(b *columnar.Batch, i int, d dataflow.Diff) int {
	r.buf = exactKey(r.buf[:0], b, r.ts, i)
	n, ok := r.at[string(r.buf)]
	if !ok {
		n = len(r.diffs)
		r.at[string(r.buf)] = n
		r.diffs = append(r.diffs, 0)
		for c := range r.bs {
			r.bs[c].AppendFrom(b.Cols[c], i)
		}
	}
	r.diffs[n] += d
	return n
}

// batch is the rows, in the order of their places. It is called once.
func (r *rowCounts) batch() columnar.Batch {
	out := columnar.Batch{N: len(r.diffs)}
	for _, b := range r.bs {
		out.Cols = append(out.Cols, b.Build())
	}
	return out
}

// onConflicts is onConflict for rows that may have a key several times, of which a
// table's policy makes one. Where versions decide, and values that are NULL leave what
// is there, each row is held against the row present: those with one key come one
// after the other.
func (r *writeRun) onConflicts(b *planner.Write, rows columnar.Batch) (columnar.Batch, error) {
	t, policy := b.Table, b.Conflict.Policy
	if policy != catalog.ConflictNotNull || t.Version == nil {
		return r.onConflict(b, foldProposed(t, policy, rows))
	}
	ts := columnTypes(t.Columns, t.PrimaryKey)
	turn := map[string]int{}
	var turns [][]uint32
	var buf []byte
	for i := range rows.N {
		buf = appendKey(buf[:0], &rows, t.PrimaryKey, ts, i)
		n := turn[string(buf)]
		turn[string(buf)] = n + 1
		if n == len(turns) {
			turns = append(turns, nil)
		}
		turns[n] = append(turns[n], uint32(i))
	}
	out := rows.Slice(0, 0)
	for _, idx := range turns {
		done, err := r.onConflict(b, rows.Gather(idx))
		if err != nil {
			return out, err
		}
		out = columnar.ConcatBatches(kindsOf(t.Columns), &out, &done)
	}
	return out, nil
}

// older says whether row i comes before row j by a table's version columns, where
// NULL is the least.
func older(t *catalog.Object, rows *columnar.Batch, i, j int) bool {
	for _, c := range t.Version {
		v := rows.Cols[c]
		if v.Null(i) || v.Null(j) {
			if v.Null(i) != v.Null(j) {
				return v.Null(i)
			}
			continue
		}
		if d := types.Compare(t.Columns[c].Type, v, i, v, j); d != 0 {
			return d < 0
		}
	}
	return false
}

// foldProposed makes one of the rows proposed with one key, as a table's policy
// for conflicts has it: the last of the newest version, or the last values that are
// not NULL.
func foldProposed(t *catalog.Object, policy string, rows columnar.Batch) columnar.Batch {
	if policy != catalog.ConflictOverwrite && policy != catalog.ConflictNotNull {
		return rows
	}
	ts := columnTypes(t.Columns, t.PrimaryKey)
	at := map[string]int{} // the place among those kept
	var kept []uint32      // the last row of each key
	var parts [][]uint32   // by kept row: those with its key, in order
	var buf []byte
	for i := range rows.N {
		buf = appendKey(buf[:0], &rows, t.PrimaryKey, ts, i)
		k, ok := at[string(buf)]
		if !ok {
			k = len(kept)
			at[string(buf)] = k
			kept, parts = append(kept, 0), append(parts, nil)
		} else if older(t, &rows, i, int(kept[k])) {
			continue
		}
		kept[k], parts[k] = uint32(i), append(parts[k], uint32(i))
	}
	if len(kept) == rows.N {
		return rows
	}
	if policy == catalog.ConflictOverwrite {
		return rows.Gather(kept)
	}
	out := columnar.Batch{N: len(kept)}
	for _, v := range rows.Cols {
		b := columnar.NewBuilder(v.Kind(), len(kept))
		for _, same := range parts {
			last := same[len(same)-1]
			for _, i := range same {
				if !v.Null(int(i)) {
					last = i
				}
			}
			b.AppendFrom(v, int(last))
		}
		out.Cols = append(out.Cols, b.Build())
	}
	return out
}

// onConflict inserts the rows that conflict with none and handles the others. It
// gives the rows inserted or updated, in the order in which they were proposed.
func (r *writeRun) onConflict(b *planner.Write, rows columnar.Batch) (columnar.Batch, error) {
	var v violation
	if err := r.s.checkRows(b.Table, rows, &v); err != nil {
		return rows, err
	}
	if v.err != nil { // unless a row before has another error
		if _, err := r.onConflict(b, rows.Slice(0, v.row)); err != nil {
			return rows, err
		}
		return rows, v.error()
	}
	as, err := r.arbiters(b.Table, b.Conflict.Keys, &rows)
	if err != nil {
		return rows, err
	}
	c := conflicts{as: as, update: b.Conflict.Rel != nil, again: -1}
	for i := range rows.N {
		c.row(i)
	}
	fresh := rows.Gather(c.insert)
	if len(c.pairs) == 0 {
		if c.again >= 0 {
			return rows, affectedTwice()
		}
		return fresh, r.insert(b.Table, fresh)
	}
	updated, at, err := r.conflictUpdates(b, &c, &rows)
	if err != nil {
		return rows, err
	}
	if err := r.insert(b.Table, fresh); err != nil {
		return rows, err
	}
	for _, i := range c.insert {
		at = append(at, int64(i))
	}
	kinds := kindsOf(b.Table.Columns)
	all := columnar.ConcatBatches(kinds, &updated, &fresh)
	order := make([]uint32, all.N)
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(x, y uint32) int { return int(at[x] - at[y]) })
	return all.Gather(order), nil
}

func affectedTwice() error {
	return pgerror.New(pgerror.CardinalityViolation, "ON CONFLICT DO UPDATE command cannot affect row a second time").
		WithHint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")
}

// conflicts sorts proposed rows into those to insert and those that meet a
// present row.
type conflicts struct {
	as     []*arbiter
	update bool
	insert []uint32
	pairs  []pair
	again  int // a row that meets one which the statement has inserted; -1: none
}

// pair is a proposed row and the present one that it meets.
type pair struct {
	present  rowRef
	proposed int
}

func (c *conflicts) row(i int) {
	for _, a := range c.as {
		x, ok := a.at(i)
		if !ok {
			continue
		}
		if a.mine[string(x)] {
			if c.update && c.again < 0 {
				c.again = i
			}
			return
		}
		if ref, ok := a.present[string(x)]; ok {
			if c.update {
				c.pairs = append(c.pairs, pair{ref, i})
			}
			return
		}
	}
	c.insert = append(c.insert, uint32(i))
	for _, a := range c.as {
		if x, ok := a.at(i); ok {
			a.mine[string(x)] = true
		}
	}
}

// conflictUpdates carries out DO UPDATE and gives the new rows, with the
// numbers of the proposed ones.
func (r *writeRun) conflictUpdates(b *planner.Write, c *conflicts, rows *columnar.Batch) (columnar.Batch, []int64, error) {
	n := len(b.Table.Columns)
	in := columnar.Batch{N: len(c.pairs)}
	nums := make([]int64, len(c.pairs))
	for col := range n {
		v := columnar.NewBuilder(rows.Cols[col].Kind(), len(c.pairs))
		for _, p := range c.pairs {
			v.AppendFrom(p.present.b.Cols[col], p.present.i)
		}
		in.Cols = append(in.Cols, v.Build())
	}
	idx := make([]uint32, len(c.pairs))
	for k, p := range c.pairs {
		idx[k], nums[k] = uint32(p.proposed), int64(k)
	}
	excluded := rows.Gather(idx)
	in.Cols = append(append(in.Cols, excluded.Cols...), columnar.FromSlice(nums, nil))
	r.reader.give(b.Conflict.Input, &in)
	out, err := r.query(b.Conflict.Rel)
	if err != nil {
		return columnar.Batch{}, nil, err
	}
	order := make([]uint32, out.N)
	for i := range order {
		order[i] = uint32(i)
	}
	got := out.Cols[2*n].Int64s()
	slices.SortFunc(order, func(x, y uint32) int { return int(got[x] - got[y]) })
	sorted := out.Gather(order)
	at := slices.Clone(sorted.Cols[2*n].Int64s())
	seen := map[rowRef]bool{}
	first := c.again
	for k, x := range at {
		p := c.pairs[x]
		if seen[p.present] && (first < 0 || p.proposed < first) {
			first = p.proposed
		}
		seen[p.present] = true
		at[k] = int64(p.proposed)
	}
	if first >= 0 {
		return sorted, nil, affectedTwice()
	}
	old := part(sorted, 0, n)
	fresh, err := r.s.generate(b.Table, part(sorted, n, 2*n))
	if err != nil {
		return fresh, nil, err
	}
	return fresh, at, r.replace(b.Table, &old, fresh)
}
