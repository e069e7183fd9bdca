package differential

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// JoinKind is the kind of a join.
type JoinKind uint8

// The kinds. Semi and anti joins output left rows with their diffs, if a
// (respectively no) right row of the same key exists; a left row with a NULL
// in its key has none unless NullSafe.
const (
	JoinInner JoinKind = iota
	JoinSemi
	JoinAnti
)

// RowFilter decides rows: it appends to sel the indexes of the rows of in to
// keep, ascending. Rows that fail go to emitErr with their diffs. It may run
// concurrently with itself.
type RowFilter interface {
	Filter(in *dataflow.Delta, sel []uint32, emitErr func(*dataflow.Delta)) []uint32
}

// JoinOptions say what a join does with matching pairs. Columns are numbered
// over the left's columns followed by the right's.
type JoinOptions struct {
	Kind JoinKind
	// NullSafe makes NULL keys equal to each other; otherwise a NULL in a key
	// column matches nothing.
	NullSafe bool
	// Residual, if set, is given the columns ResidualCols of each pair and
	// keeps a part of the pairs: only then are the Out columns fetched. Inner only.
	Residual     RowFilter
	ResidualCols []int
	// Out lists the columns to fetch, in order; nil means all (for semi and
	// anti: all of the left's). Keep it narrow: fetching is most of a join's cost.
	Out []int
	// Map, if set, is applied to the fetched columns; MapKinds are its columns.
	Map      Mapper
	MapKinds []columnar.Kind
}

// Join joins two arrangements whose keys have equal kinds. With deltas dl, dr of
// a step and states l, r before it, the change of l ⋈ r is
//
//	dl ⋈ r + (l + dl) ⋈ dr
//
// which needs the old view of the right and the new one of the left, and is
// right also if both are the same arrangement.
func (c *Circuit) Join(l, r *Arrangement, o JoinOptions) (oks, errs Stream) {
	sameKinds(l.layout.KeyKinds(), r.layout.KeyKinds())
	kinds := slices.Concat(l.Kinds(), r.Kinds())
	if o.Kind != JoinInner {
		kinds = l.Kinds()
		if o.Residual != nil {
			panic("differential: residual of a semi or anti join")
		}
	}
	if o.Out == nil {
		o.Out = allColumns(len(kinds))
	}
	p := &pairing{o: o, left: len(l.Kinds()), stopped: c.opts.Stopped, kinds: make([]columnar.Kind, len(o.Out))}
	for i, col := range o.Out {
		p.kinds[i] = kinds[col]
	}
	for _, col := range o.ResidualCols {
		p.residualKinds = append(p.residualKinds, kinds[col])
	}
	out := p.kinds
	if o.Map != nil {
		out = o.MapKinds
	}
	var op Operator
	switch {
	case c.opts.Once && l.im == nil && r.im == nil:
		op = &onceJoin{pairing: p, l: l, r: r}
	case o.Kind == JoinInner:
		op = &join{pairing: p, l: l, r: r}
	default:
		r = r.Keys()
		op = &halfJoin{pairing: p, l: l, r: r}
	}
	in := []*Arrangement{l}
	if r != l {
		in = append(in, r)
	}
	n := c.AddOver(op, in, out, ErrorKinds)
	return n.Out(0), n.Out(1)
}

// pairing says what becomes of matching pairs.
type pairing struct {
	o             JoinOptions
	left          int // columns of the left
	kinds         []columnar.Kind
	residualKinds []columnar.Kind
	stopped       func() bool // Options.Stopped
}

// join is the inner join.
type join struct {
	*pairing
	l, r *Arrangement
}

// Step joins the deltas.
func (j *join) Step(x *Context) {
	dl, dr := j.l.deltaRows(), j.r.deltaRows()
	rows := dl + dr
	x.Probed(j.r, dl)
	x.Probed(j.l, dr)
	var shared *pairs // inline, all partitions write to one
	x.ForEach(rows, func(p int, out *Emitter) {
		w := shared
		if w == nil {
			w = newPairs(j.pairing, out)
			if out.x != nil {
				shared = w
			}
		}
		dl, dr := j.l.Delta(p), j.r.Delta(p)
		if len(dl.Batches) > 0 {
			w.probe(dl, j.r.Old(p), true)
		}
		if len(dr.Batches) > 0 {
			w.probe(dr, j.l.New(p), false)
		}
		if shared == nil {
			w.flush()
		}
	})
	if shared != nil {
		shared.flush()
	}
}

const (
	// pairsMax is how many pairs are looked for at a time, and about the
	// longest delta that a join emits.
	pairsMax = 1 << 14
	// pairsWhole is how many pairs are worth a delta of their own; fewer are
	// collected.
	pairsWhole = 1 << 12
	// pairsBytes is how many bytes of strings pairs have at a time, if they are more
	// than one.
	pairsBytes = 64 << 20
)

// pairs makes output of matching pairs: of many at once directly, of few by
// collecting them in builders.
type pairs struct {
	*pairing
	out   *Emitter
	cols  []columnar.Builder
	diffs []dataflow.Diff // nil while all are 1
	n     int             // rows in cols
	bytes int             // of strings in cols
	made  int             // bytes sent
}

func newPairs(p *pairing, out *Emitter) *pairs {
	w := &pairs{pairing: p, out: out, cols: make([]columnar.Builder, len(p.kinds))}
	w.reset()
	return w
}

func (w *pairs) reset() {
	for i, k := range w.kinds {
		w.cols[i].Init(k, 0)
	}
	w.n, w.bytes, w.diffs = 0, 0, nil
}

// probe joins the rows of a delta with a reader; isLeft says that the delta is
// of the left side.
func (w *pairs) probe(delta, state trace.Reader, isLeft bool) {
	if state.Len() == 0 {
		return
	}
	for _, d := range delta.Batches {
		for c := range d.Chunks() {
			w.probeChunk(d, c, state, isLeft)
		}
	}
}

// rowSource is where rows are fetched from, by address: a batch, or a list of
// deltas.
type rowSource interface {
	Column(c int) *columnar.Gatherer
	Ones() bool
	DiffAt(addr uint32) dataflow.Diff
}

// side is one side of pairs.
type side struct {
	from rowSource
	rows []uint32
}

func (w *pairs) probeChunk(d *trace.Batch, c int, state trace.Reader, isLeft bool) {
	ch := d.Chunk(c)
	p := trace.NewProbe(state.Layout, pick(ch.Cols, d.Layout().Key), ch.Hash, !w.o.NullSafe)
	m := trace.NewMatcher(p)
	base := uint32(c) << columnar.ChunkShift
	for _, b := range state.Batches {
		m.Start(b)
		for m.Next(pairsMax) {
			if base > 0 {
				for i := range m.Probe {
					m.Probe[i] += base
				}
			}
			l, r := side{d, m.Probe}, side{b, m.Row}
			if !isLeft {
				l, r = r, l
			}
			w.emit(l, r)
		}
	}
	m.Close()
}

// pick selects columns.
func pick(cols []*columnar.Vec, which []int) []*columnar.Vec {
	out := make([]*columnar.Vec, len(which))
	for i, c := range which {
		out[i] = cols[c]
	}
	return out
}

// leftOff says that the join need not go on.
func (p *pairing) leftOff() bool { return p.stopped != nil && p.stopped() }

// emit makes output of pairs.
func (w *pairs) emit(l, r side) {
	if w.leftOff() {
		return
	}
	bytes := w.bytesOf(l, r, w.o.Out)
	if n := len(l.rows); n > 1 && bytes+w.bytesOf(l, r, w.o.ResidualCols) > pairsBytes {
		w.emit(side{l.from, l.rows[:n/2]}, side{r.from, r.rows[:n/2]})
		w.emit(side{l.from, l.rows[n/2:]}, side{r.from, r.rows[n/2:]})
		return
	}
	if w.o.Residual != nil {
		if l.rows, r.rows = w.filter(l, r); len(l.rows) == 0 {
			return
		}
		bytes = w.bytesOf(l, r, w.o.Out)
	}
	diffs := pairDiffs(l, r)
	n := len(l.rows)
	if n >= pairsWhole {
		d := &dataflow.Delta{Batch: columnar.Batch{Cols: make([]*columnar.Vec, len(w.kinds)), N: n}, Diffs: diffs}
		for i, col := range w.o.Out {
			g, rows := w.column(l, r, col)
			d.Cols[i] = g.Gather(rows)
		}
		w.send(d)
		return
	}
	for i, col := range w.o.Out {
		g, rows := w.column(l, r, col)
		w.cols[i].AppendGather(g, rows)
	}
	w.diffs = appendDiffs(w.diffs, w.n, diffs, n)
	w.n += n
	if w.bytes += bytes; w.n >= pairsMax || w.bytes >= pairsBytes {
		w.flush()
	}
}

// bytesOf is how many bytes of strings there are in columns of pairs.
func (w *pairs) bytesOf(l, r side, cols []int) (n int) {
	for _, col := range cols {
		g, rows := w.column(l, r, col)
		n += g.Size(rows)
	}
	return n
}

// column is where column col of the pairs comes from.
func (w *pairs) column(l, r side, col int) (*columnar.Gatherer, []uint32) {
	if col < w.left {
		return l.from.Column(col), l.rows
	}
	return r.from.Column(col - w.left), r.rows
}

// pairDiffs is the products of the pairs' diffs; nil if all are 1.
func pairDiffs(l, r side) []dataflow.Diff {
	if l.from.Ones() && r.from.Ones() {
		return nil
	}
	out := make([]dataflow.Diff, len(l.rows))
	for i, a := range l.rows {
		out[i] = l.from.DiffAt(a) * r.from.DiffAt(r.rows[i])
	}
	return out
}

// appendDiffs appends m diffs (nil: 1 each) to n of them (nil: 1 each).
func appendDiffs(dst []dataflow.Diff, n int, diffs []dataflow.Diff, m int) []dataflow.Diff {
	if dst == nil && diffs == nil {
		return nil
	}
	if dst == nil {
		dst = make([]dataflow.Diff, n, n+m)
		for i := range dst {
			dst[i] = 1
		}
	}
	if diffs != nil {
		return append(dst, diffs...)
	}
	for range m {
		dst = append(dst, 1)
	}
	return dst
}

// filter keeps the pairs that pass the residual.
func (w *pairs) filter(l, r side) (lr, rr []uint32) {
	d := &dataflow.Delta{Batch: columnar.Batch{Cols: make([]*columnar.Vec, len(w.residualKinds)), N: len(l.rows)}}
	for i, col := range w.o.ResidualCols {
		g, rows := w.column(l, r, col)
		d.Cols[i] = g.Gather(rows)
	}
	d.Diffs = pairDiffs(l, r)
	sel := w.o.Residual.Filter(d, nil, func(e *dataflow.Delta) { w.out.Emit(1, e) })
	for i, x := range sel {
		l.rows[i], r.rows[i] = l.rows[x], r.rows[x]
	}
	return l.rows[:len(sel)], r.rows[:len(sel)]
}

// flush sends what was collected.
func (w *pairs) flush() {
	if w.n == 0 {
		return
	}
	d := &dataflow.Delta{Batch: columnar.Batch{Cols: make([]*columnar.Vec, len(w.cols)), N: w.n}, Diffs: w.diffs}
	for i := range w.cols {
		d.Cols[i] = w.cols[i].Build()
	}
	w.reset()
	w.send(d)
}

// sendTo emits a delta, through the Mapper if there is one.
func (p *pairing) sendTo(out *Emitter, d *dataflow.Delta) {
	if p.o.Map == nil {
		out.Emit(0, d)
		return
	}
	p.o.Map.Apply(d, func(d *dataflow.Delta) { out.Emit(0, d) }, func(d *dataflow.Delta) { out.Emit(1, d) })
}

func (w *pairs) send(d *dataflow.Delta) {
	w.made += d.MemSize()
	w.sendTo(w.out, d)
}
