package differential

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// The operations in the int16 op column of Upsert.
const (
	UpsertPut      = 0 // the row of this key is now this one
	UpsertDelete   = 1 // the row of this key is gone; only the key columns count
	UpsertTruncate = 2 // all rows are gone; no column counts
)

// UpsertOptions say where Upsert finds what is not data.
type UpsertOptions struct {
	// OpCol is the int16 column of the operation.
	OpCol int
	// UnchangedCol is a KindBytes column, < 0: none. Bit c (little-endian: byte
	// c/8, bit c%8) of its value says that output column c keeps the value it
	// had, whatever this record holds there; NULL or a short value: no such
	// column. What it had is the current row of the key, or, if there is none,
	// the row that the record just before deleted: an update that changes the
	// key arrives as delete and put.
	UnchangedCol int
}

// Upsert turns records of the upsert envelope, in the order of their arrival,
// into the collection of the current rows by key. keyCols are input columns; the
// output has the input's columns but for those that the options name. Its state
// is the trace of the current rows; of the records of an epoch, those of equal
// keys are resolved first, so that a key costs one look-up and one retraction
// and insertion. The diffs of the input do not count.
func (c *Circuit) Upsert(s Stream, keyCols []int, o UpsertOptions) Stream {
	u := &upsert{opts: o, key: keyCols}
	kinds := s.Kinds()
	at := make([]int, len(kinds))
	for col, k := range kinds {
		if col != o.OpCol && col != o.UnchangedCol {
			at[col] = len(u.cols)
			u.cols = append(u.cols, col)
			u.kinds = append(u.kinds, k)
		}
	}
	outKey := make([]int, len(keyCols))
	for i, col := range keyCols {
		outKey[i] = at[col]
	}
	if c.Once() {
		u.trace = trace.New(trace.NewLayout(u.kinds, outKey), c.Partitions())
	} else {
		u.trace = c.NewTrace(u.kinds, outKey)
	}
	return c.Add(u, []Stream{s}, u.kinds).Out(0)
}

// upsert is the operator.
type upsert struct {
	opts  UpsertOptions
	key   []int // input columns
	cols  []int // input columns of the output
	kinds []columnar.Kind
	trace *trace.Trace
}

// A version of a row is where its values are: nowhere, in a record, or in the
// state before the epoch. Columns that keep their values point further back.
type version struct {
	kind  uint8
	row   uint32
	moved []columnPlace // by output column, of a record with unchanged ones; nil otherwise
}

// The kinds of versions, and the vectors of upsertEpoch.gather.
const (
	inRecords uint8 = iota
	inState
	nowhere
)

// columnPlace is where one value of a version is.
type columnPlace struct {
	kind uint8
	row  uint32
}

func (v *version) column(c int) columnPlace {
	if v.moved != nil {
		return v.moved[c]
	}
	return columnPlace{v.kind, v.row}
}

// upsertEpoch is the records of one epoch.
type upsertEpoch struct {
	u       *upsert
	records *dataflow.Delta
	keyOf   []uint32  // record to key
	current []version // by key
	state   columnar.Batch
	before  []uint32 // by key: row of state, or noRow
	all     bool     // a truncation took all that was there before
}

const noRow = ^uint32(0)

// Step resolves the epoch's records and emits what they change.
func (u *upsert) Step(x *Context) {
	in := x.In(0)
	if len(in) == 0 {
		return
	}
	kinds := make([]columnar.Kind, len(in[0].Cols))
	for i, v := range in[0].Cols {
		kinds[i] = v.Kind()
	}
	e := &upsertEpoch{u: u, records: trace.Concat(kinds, in)}
	keys, hash := e.findKeys()
	e.lookUp(x, keys, hash)
	e.resolve()
	batches := x.Arrange(u.trace, e.changes())
	for _, b := range batches {
		if b == nil {
			continue
		}
		b.Expose()
		for i := range b.Chunks() {
			x.Emit(0, b.Chunk(i).Delta())
		}
	}
	x.Commit(u.trace, batches)
}

// findKeys numbers the keys of the records in the order of their hashes.
func (e *upsertEpoch) findKeys() (keys []*columnar.Vec, hash []uint64) {
	r := e.records
	cols := r.Select(e.u.key).Cols
	hs := columnar.GetSlice[uint64](r.N)
	a := columnar.GetSlice[columnar.Keyed](r.N)
	tmp := columnar.GetSlice[columnar.Keyed](r.N)
	columnar.HashCols(cols, r.N, hs)
	for i, h := range hs {
		a[i] = columnar.Keyed{Key: h, Row: uint32(i)}
	}
	columnar.SortKeyed(a, tmp)
	e.keyOf = make([]uint32, r.N)
	firsts := make([]uint32, 0, r.N)
	lo := 0 // the first key of the present hash
	for i, k := range a {
		if i == 0 || k.Key != a[i-1].Key {
			lo = len(firsts)
		}
		id := lo
		for id < len(firsts) && !columnar.EqualRows(cols, int(firsts[id]), cols, int(k.Row)) {
			id++
		}
		if id == len(firsts) {
			firsts = append(firsts, k.Row)
			hash = append(hash, k.Key)
		}
		e.keyOf[k.Row] = uint32(id)
	}
	columnar.PutSlice(hs)
	columnar.PutSlice(a)
	columnar.PutSlice(tmp)
	b := columnar.Batch{Cols: cols, N: r.N}
	return b.Gather(firsts).Cols, hash
}

// lookUp fetches the current rows of the keys.
func (e *upsertEpoch) lookUp(x *Context, keys []*columnar.Vec, hash []uint64) {
	spines := e.u.trace.Spines()
	bounds := make([]int, len(spines)+1)
	for _, h := range hash {
		bounds[columnar.PartitionOf(h, len(spines))+1]++
	}
	for p := range spines {
		bounds[p+1] += bounds[p]
	}
	found := make([]*trace.Groups, len(spines))
	x.ForEach(len(hash), func(p int, _ *Emitter) {
		lo, hi := bounds[p], bounds[p+1]
		if lo == hi {
			return
		}
		part := make([]*columnar.Vec, len(keys))
		for c, v := range keys {
			part[c] = v.Slice(lo, hi)
		}
		found[p] = spines[p].Reader().Groups(part, hash[lo:hi])
	})
	e.before = make([]uint32, len(hash))
	e.current = make([]version, len(hash))
	var bs []*columnar.Batch
	rows := uint32(0)
	for p, g := range found {
		if g == nil {
			continue
		}
		at := 0
		for i, end := range g.Ends {
			k := bounds[p] + i
			e.before[k], e.current[k] = noRow, version{kind: nowhere}
			if end > at {
				e.before[k] = rows + uint32(at)
				e.current[k] = version{kind: inState, row: e.before[k]}
			}
			at = end
		}
		rows += uint32(g.Rows.N)
		bs = append(bs, &g.Rows)
	}
	e.state = columnar.ConcatBatches(e.u.kinds, bs...)
}

// resolve goes through the records in order.
func (e *upsertEpoch) resolve() {
	ops := e.records.Cols[e.u.opts.OpCol].Int16s()
	var masks *columnar.Vec
	if c := e.u.opts.UnchangedCol; c >= 0 {
		masks = e.records.Cols[c]
	}
	deleted := version{kind: nowhere}
	for r, op := range ops {
		k := e.keyOf[r]
		switch op {
		case UpsertTruncate:
			for i := range e.current {
				e.current[i] = version{kind: nowhere}
			}
			e.all = true
			deleted = version{kind: nowhere}
		case UpsertDelete:
			deleted = e.current[k]
			e.current[k] = version{kind: nowhere}
		default:
			v := version{kind: inRecords, row: uint32(r)}
			if masks != nil && len(masks.Bytes(r)) > 0 {
				old := e.current[k]
				if old.kind == nowhere {
					old = deleted
				}
				v.moved = e.unchanged(v, old, masks.Bytes(r))
			}
			e.current[k] = v
			deleted = version{kind: nowhere}
		}
	}
}

// unchanged is where the columns of version v are, of which those in mask are
// where they were before.
func (e *upsertEpoch) unchanged(v, old version, mask []byte) []columnPlace {
	places := make([]columnPlace, len(e.u.cols))
	for c := range places {
		places[c] = columnPlace{v.kind, v.row}
		if c>>3 < len(mask) && mask[c>>3]>>(c&7)&1 != 0 {
			places[c] = old.column(c)
		}
	}
	return places
}

// changes is what the epoch changes in the collection.
func (e *upsertEpoch) changes() []*dataflow.Delta {
	var ds []*dataflow.Delta
	if e.all {
		for _, s := range e.u.trace.Spines() {
			s.Reader().Scan(func(d *dataflow.Delta) bool {
				ds = append(ds, negate(d))
				return true
			})
		}
	}
	var gone []uint32
	var come []version
	moved := false
	for k, v := range e.current {
		if e.before[k] != noRow && !e.all && v.kind != inState {
			gone = append(gone, e.before[k])
		}
		if v.kind == inRecords {
			come = append(come, v)
			moved = moved || v.moved != nil
		}
	}
	if len(gone) > 0 {
		ds = append(ds, negate(&dataflow.Delta{Batch: e.state.Gather(gone)}))
	}
	if len(come) > 0 {
		ds = append(ds, &dataflow.Delta{Batch: e.gather(come, moved)})
	}
	return ds
}

// gather makes the rows of versions, all of which are in the records but for the
// columns that moved.
func (e *upsertEpoch) gather(vs []version, moved bool) columnar.Batch {
	b := columnar.Batch{Cols: make([]*columnar.Vec, len(e.u.cols)), N: len(vs)}
	addr := make([]uint32, len(vs))
	for i, v := range vs {
		addr[i] = v.row
	}
	for c, col := range e.u.cols {
		if !moved {
			b.Cols[c] = e.records.Cols[col].Gather(addr)
			continue
		}
		null := columnar.NewBuilder(e.u.kinds[c], 1)
		null.Null()
		var g columnar.Gatherer
		g.Reset(e.u.kinds[c], versionShift)
		g.Add(e.records.Cols[col])
		g.Add(e.state.Cols[c])
		g.Add(null.Build())
		for i := range vs {
			at := vs[i].column(c)
			addr[i] = uint32(at.kind)<<versionShift | at.row
		}
		b.Cols[c] = g.Gather(addr)
	}
	return b
}

// versionShift leaves room for the three kinds of places in an address.
const versionShift = 30
