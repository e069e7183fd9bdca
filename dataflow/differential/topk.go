package differential

import (
	"math"
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// Order is one ordering column. The order is the physical one of the column's
// kind (see columnar: floats with NaN greatest, bytes bytewise), NULL greatest
// in ascending order unless NullsFirst says otherwise.
//
// NullsFirst is absolute: NULLs come first if it is set, last if not, whatever
// Desc is (as plan.SortKey has it).
type Order struct {
	Col        int
	Desc       bool
	NullsFirst bool
	// NotNull: the column is known never to be NULL, which spares NullsFirst its
	// price (a column of state).
	NotNull bool
}

// TopKOptions say which rows of each group TopK keeps.
type TopKOptions struct {
	Limit  int64 // rows per group, < 0: all after Offset
	Offset int64
	// WithTies keeps also the rows that are equal to the last kept one in the
	// order columns.
	WithTies bool
	// AppendOnly: no input diff is ever negative, so that only the rows up to
	// Offset+Limit need to be kept.
	AppendOnly bool
	// RowNumber appends an int64 column: the row's number in its group from 1,
	// Offset included. A row of multiplicity m then becomes m rows.
	RowNumber bool
}

// TopK keeps, of each group of equal part columns, the rows from Offset up to
// Offset+Limit in an order, ties broken by the whole row's physical order. Rows
// of the group that do not count (of negative multiplicity) are passed over.
func (c *Circuit) TopK(s Stream, part []int, order []Order, o TopKOptions) Stream {
	kinds := s.Kinds()
	if o.RowNumber {
		kinds = append(slices.Clone(kinds), columnar.KindInt64)
	}
	if o.Limit == 0 {
		return c.Concat(kinds)
	}
	if o.Limit < 0 || o.Offset > math.MaxInt32-o.Limit {
		return c.topAll(s, part, order, o)
	}
	t := &topK{layout: newOrderLayout(s.Kinds(), part, order), opts: o, parts: make([]*topPart, c.Partitions())}
	t.rows = newRowCodec(t.layout.rowKinds(), false)
	if !c.Once() {
		t.trace = c.NewTrace(t.layout.laid, allColumns(len(part)))
	}
	return c.Add(t, []Stream{s}, kinds).Out(0)
}

// topK is the operator.
type topK struct {
	layout *orderLayout
	opts   TopKOptions
	rows   *rowCodec // of the layout's columns after the key
	parts  []*topPart
	trace  *trace.Trace // nil in a circuit that runs once
	cold   bool         // restored: groups are in the trace that are not in the tables
}

// need is how many rows of a group decide the result.
func (t *topK) need() int { return int(t.opts.Offset + t.opts.Limit) }

func (t *topK) part(i int) *topPart {
	if t.parts[i] == nil {
		t.parts[i] = newTopPart(t)
	}
	return t.parts[i]
}

// Restored forgets the tables: groups are loaded when they are touched.
func (t *topK) Restored(dataflow.Epoch) {
	clear(t.parts)
	t.cold = true
}

// Step consumes the epoch's deltas and emits what changed.
func (t *topK) Step(x *Context) {
	in := x.In(0)
	rows := 0
	for _, d := range in {
		rows += d.N
	}
	if t.opts.AppendOnly || t.trace == nil && !retracts(in) {
		cut := x.scatter(in, t.layout.key)
		laid := make([][]*columnar.Vec, len(in))
		for i, d := range in {
			laid[i] = t.layout.lay(&d.Batch).Cols[len(t.layout.key):]
		}
		x.ForEach(rows, func(i int, out *Emitter) {
			if cut.rows(i) == 0 {
				return
			}
			s := t.part(i)
			s.pre.whole = t.opts.WithTies // crop knows what to drop
			s.plain = t.opts.Offset == 0 && !t.opts.WithTies && !t.opts.RowNumber && !s.many()
			for j := range cut.deltas {
				s.offer(&cut.deltas[j], i, laid[j])
			}
			s.finish(out)
		})
		cut.release()
		return
	}
	laid := make([]*dataflow.Delta, len(in))
	for i, d := range in {
		laid[i] = t.layout.layDelta(d)
	}
	target := t.trace
	if target == nil {
		target = trace.New(trace.NewLayout(t.layout.laid, allColumns(len(t.layout.key))), len(t.parts))
	}
	batches := x.Arrange(target, laid)
	x.ForEach(rows, func(i int, out *Emitter) {
		if batches[i] == nil {
			return
		}
		s := t.part(i)
		s.consume(batches[i], target.Spines()[i].Reader())
		s.finish(out)
	})
	if t.trace != nil {
		x.Commit(t.trace, batches)
	}
}

// flush brings the trace up to date, which append-only input changes only here.
func (t *topK) flush(epoch dataflow.Epoch, limit int) {
	if t.trace == nil || !t.opts.AppendOnly {
		return
	}
	var ds []*dataflow.Delta
	for _, s := range t.parts {
		if s != nil && limit > 0 {
			ids := takeDirty(&s.t, &s.dirty, limit)
			limit -= len(ids)
			ds = s.flush(ids, ds)
		}
	}
	t.trace.Append(epoch, ds)
}

// backlog is how many groups flush has to write.
func (t *topK) backlog() int {
	n := 0
	for _, s := range t.parts {
		if s != nil {
			n += len(s.dirty)
		}
	}
	return n
}
