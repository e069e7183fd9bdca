package render

import (
	"errors"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// errUnordered ends a read in order of which too few rows have passed its filters.
var errUnordered = errors.New("too many rows are read in order")

// inOrder gives the first rows of a sorted read by reading it in order, up to where
// there are enough; nil if it cannot be read so, or not with profit.
func (r *run) inOrder(s *plan.Sort, source plan.Rel, filters, outs []expr.Expr) (*Sorter, error) {
	get, ok := source.(*plan.Get)
	if !ok || get.Lookup == nil || !get.Lookup.First || s.Limit == nil {
		return nil, nil
	}
	reader, ok := r.reader.(OrderedReader)
	if !ok {
		return nil, nil
	}
	rows, most := reader.InOrder(r.ctx, get)
	most += columnar.ChunkRows
	if want := r.sorter.limit + r.sorter.offset; rows == nil || want > int64(most) {
		return nil, nil
	}
	sub := *r
	sub.streams = false
	sub.sorter = &Sorter{typs: r.sorter.typs, limit: r.sorter.limit, offset: r.sorter.offset, width: r.width, peers: r.sorter.peers}
	sub.ordered = func(yield func(*dataflow.Delta, error) bool) {
		seen := 0
		for d, err := range rows {
			if seen += d.N; err == nil && seen > 2*most {
				err = errUnordered
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
	err := sub.linear(source, filters, outs)
	if err == errUnordered {
		return nil, nil
	}
	return sub.sorter, err
}

// firstRows puts the rows that a TopK may keep in the place of its input, if they
// can be read in order: as many as it wants, and the peers of the last.
func (r *run) firstRows(t *plan.TopK) (plan.Rel, error) {
	source, filters, outs, ok := linear(t.Input)
	if !ok {
		return t, nil
	}
	s := &plan.Sort{Input: t.Input, Order: t.Order, Limit: t.Limit, Offset: t.Offset}
	sorter, err := NewSorter(s, r.opts.Context, plan.Arity(t.Input))
	if err != nil {
		return nil, err
	}
	sorter.limit, sorter.offset, sorter.peers = sorter.limit+sorter.offset, 0, t.Order
	sub := &run{ctx: r.ctx, reader: r.reader, opts: r.opts, width: plan.Arity(t.Input), sorter: sorter}
	sorter, err = sub.inOrder(s, source, filters, outs)
	if sorter == nil || err != nil {
		return t, err
	}
	cols := t.Input.Columns()
	var parts []*columnar.Batch
	for i := range sorter.batches {
		parts = append(parts, &sorter.batches[i])
	}
	return plan.WithInput(t, &plan.Constant{Cols: cols, Rows: columnar.ConcatBatches(kindsOf(cols), parts...)}), nil
}
