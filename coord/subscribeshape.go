package coord

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// changelogEnvelope is the envelope of RisingWave's subscription cursors.
const changelogEnvelope = "changelog"

// changeShape is how a subscription writes changes as rows:
//
//	""         mz_timestamp, mz_diff and the row
//	upsert     mz_timestamp, mz_state, the key and, unless it is gone, the rest of the row
//	debezium   mz_timestamp, mz_state, the key, the rest before and the rest after
//	changelog  the row, op and rw_timestamp, as RisingWave has them
//
// With PROGRESS mz_progressed follows mz_timestamp.
type changeShape struct {
	envelope string
	progress bool
	key      []int // columns of the relation; of a changelog those that tell its rows apart
	keyTypes []types.Type
	rest     []int
	order    []changeOrder // within a timestamp
	columns  []pgwire.Column
}

// changeOrder is a column of WITHIN TIMESTAMP ORDER BY; -1 is mz_diff.
type changeOrder struct {
	col              int
	typ              types.Type
	desc, nullsFirst bool
}

// newChangeShape reads what a SUBSCRIBE says of its output. The columns are the
// relation's; key tells the rows of a changelog apart.
func newChangeShape(n *parser.Subscribe, cols []pgwire.Column, key []int) (*changeShape, error) {
	h := &changeShape{envelope: n.Envelope, progress: n.Progress}
	if len(n.OrderBy) > 0 && n.Envelope != "" {
		return nil, pgerror.New(pgerror.SyntaxError, "SUBSCRIBE cannot have both ENVELOPE and WITHIN TIMESTAMP ORDER BY")
	}
	find := func(name string) int {
		return slices.IndexFunc(cols, func(c pgwire.Column) bool { return c.Name == name })
	}
	for _, name := range n.EnvelopeKey {
		c := find(name)
		switch {
		case c < 0:
			return nil, pgerror.New(pgerror.UndefinedColumn, "column \"%s\" named in key does not exist", name)
		case slices.Contains(key, c):
			return nil, pgerror.New(pgerror.DuplicateColumn, "column \"%s\" appears twice in the key", name)
		}
		key = append(key, c)
	}
	for _, k := range n.OrderBy {
		c := find(k.Column)
		if c < 0 && k.Column != "mz_diff" {
			if k.Column == "" {
				return nil, pgerror.Unsupported("WITHIN TIMESTAMP ORDER BY an expression")
			}
			return nil, pgerror.New(pgerror.UndefinedColumn, "column \"%s\" does not exist", k.Column)
		}
		o := changeOrder{col: c, typ: types.Int8, desc: k.Desc, nullsFirst: k.NullsFirst}
		if c >= 0 {
			o.typ = cols[c].Type
		}
		h.order = append(h.order, o)
	}
	h.key = key
	for _, c := range key {
		h.keyTypes = append(h.keyTypes, cols[c].Type)
	}
	for c := range cols {
		if !slices.Contains(key, c) {
			h.rest = append(h.rest, c)
		}
	}
	h.describe(cols)
	return h, nil
}

// describe makes the columns of the output.
func (h *changeShape) describe(cols []pgwire.Column) {
	if h.envelope == changelogEnvelope {
		h.columns = append(slices.Clone(cols), pgwire.Column{Name: "op", Type: types.Text}, pgwire.Column{Name: "rw_timestamp", Type: types.Int8})
		return
	}
	h.columns = []pgwire.Column{{Name: "mz_timestamp", Type: types.Numeric}}
	if h.progress {
		h.columns = append(h.columns, pgwire.Column{Name: "mz_progressed", Type: types.Bool})
	}
	if h.envelope == "" {
		h.columns = append(append(h.columns, pgwire.Column{Name: "mz_diff", Type: types.Int8}), cols...)
		return
	}
	h.columns = append(h.columns, pgwire.Column{Name: "mz_state", Type: types.Text})
	take := func(idx []int, prefix string) {
		for _, c := range idx {
			x := cols[c]
			x.Name = prefix + x.Name
			h.columns = append(h.columns, x)
		}
	}
	take(h.key, "")
	if h.envelope == "debezium" {
		take(h.rest, "before_")
		take(h.rest, "after_")
	} else {
		take(h.rest, "")
	}
}

// rows writes the consolidated changes of an epoch; those of a snapshot begin the
// subscription.
func (h *changeShape) rows(all columnar.Batch, diffs []int64, e dataflow.Epoch, snapshot bool) *columnar.Batch {
	switch h.envelope {
	case "":
		return h.diffRows(all, diffs, e)
	case changelogEnvelope:
		return h.changelogRows(&all, diffs, e, snapshot)
	}
	return h.stateRows(&all, diffs, e)
}

// head are the columns before those of the state and the row.
func (h *changeShape) head(n int, e dataflow.Epoch) *columnar.Batch {
	b := &columnar.Batch{N: n}
	ts := columnar.NewBuilder(columnar.KindBytes, n)
	for range n {
		ts.Extend(func(dst []byte) []byte { return decimal.AppendInt64(dst, int64(e)) })
	}
	b.Cols = append(b.Cols, ts.Build())
	if h.progress {
		b.Cols = append(b.Cols, columnar.MakeFixed(columnar.KindBool, n))
	}
	return b
}

func (h *changeShape) diffRows(all columnar.Batch, diffs []int64, e dataflow.Epoch) *columnar.Batch {
	if len(h.order) > 0 {
		idx := make([]uint32, all.N)
		for i := range idx {
			idx[i] = uint32(i)
		}
		slices.SortStableFunc(idx, func(i, j uint32) int { return h.compare(&all, diffs, int(i), int(j)) })
		sorted := make([]int64, len(diffs))
		for k, i := range idx {
			sorted[k] = diffs[i]
		}
		all, diffs = all.Gather(idx), sorted
	}
	b := h.head(all.N, e)
	b.Cols = append(append(b.Cols, columnar.FromSlice(diffs, nil)), all.Cols...)
	return b
}

func (h *changeShape) compare(all *columnar.Batch, diffs []int64, i, j int) int {
	for _, o := range h.order {
		d := 0
		if o.col < 0 {
			d = int(diffs[i] - diffs[j])
		} else {
			v := all.Cols[o.col]
			ni, nj := v.Null(i), v.Null(j)
			switch {
			case ni && nj:
				continue
			case ni != nj:
				if ni == o.nullsFirst {
					return -1
				}
				return 1
			}
			d = types.Compare(o.typ, v, i, v, j)
		}
		if o.desc {
			d = -d
		}
		if d != 0 {
			return d
		}
	}
	return 0
}

// keyChange is what an epoch does to a key: the rows that come and go, -1 for none.
type keyChange struct {
	come, gone int
	violated   bool // there are more rows of the key than one
}

// keyChanges gathers changes by key, in the order in which the keys are met.
func (h *changeShape) keyChanges(all *columnar.Batch, diffs []int64) []keyChange {
	var out []keyChange
	at := map[string]int{}
	var buf []byte
	for i, d := range diffs {
		buf = appendKey(buf[:0], all, h.key, h.keyTypes, i)
		k, ok := at[string(buf)]
		if !ok {
			k = len(out)
			at[string(buf)] = k
			out = append(out, keyChange{come: -1, gone: -1})
		}
		c := &out[k]
		side := &c.come
		if d < 0 {
			side = &c.gone
		}
		c.violated = c.violated || *side >= 0 || d > 1 || d < -1
		*side = i
	}
	return out
}

// stateRows are the rows of ENVELOPE UPSERT and DEBEZIUM.
func (h *changeShape) stateRows(all *columnar.Batch, diffs []int64, e dataflow.Epoch) *columnar.Batch {
	changes := h.keyChanges(all, diffs)
	state := columnar.NewBuilder(columnar.KindBytes, len(changes))
	keys, before, after := make([]int, len(changes)), make([]int, len(changes)), make([]int, len(changes))
	for k, c := range changes {
		keys[k] = max(c.come, c.gone)
		before[k], after[k] = c.gone, c.come
		switch {
		case c.violated:
			state.String("key_violation")
			before[k], after[k] = -1, -1
		case c.come < 0:
			state.String("delete")
		case c.gone < 0 && h.envelope == "debezium":
			state.String("insert")
		default:
			state.String("upsert")
		}
	}
	b := h.head(len(changes), e)
	b.Cols = append(b.Cols, state.Build())
	pick := func(cols, rows []int) {
		for _, c := range cols {
			v := columnar.NewBuilder(all.Cols[c].Kind(), len(rows))
			for _, i := range rows {
				if i < 0 {
					v.Null()
				} else {
					v.AppendFrom(all.Cols[c], i)
				}
			}
			b.Cols = append(b.Cols, v.Build())
		}
	}
	pick(h.key, keys)
	if h.envelope == "debezium" {
		pick(h.rest, before)
	}
	pick(h.rest, after)
	return b
}

// changelogRows are the rows of a subscription cursor: a row that goes and one that
// comes with the same key are an update. The rows of the snapshot have no timestamp.
func (h *changeShape) changelogRows(all *columnar.Batch, diffs []int64, e dataflow.Epoch, snapshot bool) *columnar.Batch {
	op, ts := columnar.NewBuilder(columnar.KindBytes, all.N), columnar.NewBuilder(columnar.KindInt64, all.N)
	var idx []uint32
	put := func(i int, what string) {
		for range max(diffs[i], -diffs[i]) {
			idx = append(idx, uint32(i))
			op.String(what)
			if snapshot {
				ts.Null()
			} else {
				ts.Int64(int64(e))
			}
		}
	}
	done := make([]bool, all.N)
	for _, c := range h.keyChanges(all, diffs) {
		if c.come >= 0 && c.gone >= 0 && !c.violated {
			done[c.come], done[c.gone] = true, true
			put(c.gone, "UpdateDelete")
			put(c.come, "UpdateInsert")
		}
	}
	for i, d := range diffs {
		switch {
		case done[i]:
		case d < 0:
			put(i, "Delete")
		default:
			put(i, "Insert")
		}
	}
	out := all.Gather(idx)
	out.Cols = append(out.Cols, op.Build(), ts.Build())
	return &out
}

// progressed is the row that says that everything before e is complete.
func (h *changeShape) progressed(e dataflow.Epoch) *columnar.Batch {
	b := h.head(1, e)
	yes := columnar.NewBuilder(columnar.KindBool, 1)
	yes.Bool(true)
	b.Cols[1] = yes.Build()
	for _, c := range h.columns[2:] {
		v := columnar.NewBuilder(c.Type.Kind(), 1)
		v.Null()
		b.Cols = append(b.Cols, v.Build())
	}
	return b
}
