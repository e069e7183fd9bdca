package coord

import (
	"context"
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// pointRead is a SELECT of columns of the rows with one key: what applications
// ask most, and what is answered without making a circuit, or even copying the
// row. Its fields after cols are reused by every execution.
type pointRead struct {
	index  []plan.ObjectID // the collection looked into: the one read or an index of it
	key    []expr.Expr     // constants and parameters, in the order of the key
	cols   []int           // the collection's columns of the result
	vals   []*columnar.Vec
	at     trace.Point
	result columnar.Batch
}

// pointOf is pointOf of a plan whose keys stand in the index as they are.
func (s *Session) pointOf(rel plan.Rel) *pointRead {
	p := pointOf(rel)
	if p != nil {
		if _, encoded := lookupForm(s.snapshot().ByID(p.index[0])); encoded {
			return nil
		}
	}
	return p
}

// pointOf recognizes the plans that are point reads, nil if rel is another.
func pointOf(rel plan.Rel) *pointRead {
	switch r := rel.(type) {
	case *plan.Get:
		if r.Lookup == nil || !r.Lookup.Exact {
			return nil
		}
		p := &pointRead{index: []plan.ObjectID{r.Lookup.Index}, key: r.Lookup.Values[0], cols: make([]int, len(r.Cols))}
		for i := range r.Cols {
			p.cols[i] = r.Source(i)
		}
		p.vals = make([]*columnar.Vec, len(p.key))
		return p
	case *plan.Filter:
		if _, ok := r.Input.(*plan.Get); ok {
			return pointOf(r.Input)
		}
	case *plan.Project:
		p := pointOf(r.Input)
		if p == nil {
			return nil
		}
		cols := make([]int, len(r.Exprs))
		for i, e := range r.Exprs {
			c, ok := e.(*expr.Column)
			if !ok {
				return nil
			}
			cols[i] = p.cols[c.Index]
		}
		p.cols = cols
		return p
	}
	return nil
}

// pointable says whether the session reads nothing but what is published now.
func (s *Session) pointable() bool {
	return s.tx == nil || len(s.tx.writes) == 0 && s.tx.ddl == nil && s.tx.pinned == 0 && !s.tx.repeat()
}

// runPoint runs a point read. done is false if it takes the general way: the key
// has no single row that stands in place.
func (s *Session) runPoint(ctx context.Context, p *pointRead, params []*expr.Const, w pgwire.ResultWriter) (rows int, done bool, err error) {
	for i, e := range p.key {
		switch e := e.(type) {
		case *expr.Const:
			p.vals[i] = e.Val
		case *expr.Param:
			p.vals[i] = params[e.Index-1].Val
		default:
			return 0, false, nil
		}
		if p.vals[i].Null(0) {
			return 0, true, nil // equal to nothing
		}
	}
	e, err := s.chooseEpoch(ctx, p.index, false)
	if err != nil {
		return 0, false, err
	}
	coll := s.c.collection(p.index[0])
	if coll == nil {
		return 0, false, nil
	}
	if err := coll.await(ctx, e); err != nil {
		return 0, false, err
	}
	if _, gap := coll.stage.passed(e); gap {
		return 0, false, nil
	}
	if f := coll.failed.Load(); f != nil {
		return 0, false, *f
	}
	if coll.errs.Upper() > 0 {
		if err := coll.rowError(e); err != nil {
			return 0, false, nil // the general way tells it, or reads at another epoch
		}
	}
	upper := coll.rows.Upper()
	if upper == 0 {
		return 0, true, nil
	}
	if !coll.rows.PointAt(min(e, upper-1), p.vals, 0, &p.at) {
		return 0, false, nil
	}
	defer p.at.Release()
	if p.at.Found == 0 {
		return 0, true, nil
	}
	if p.at.Chunk == nil {
		return 0, false, nil
	}
	p.result.Cols = slices.Grow(p.result.Cols[:0], len(p.cols))[:len(p.cols)]
	for i, c := range p.cols {
		p.result.Cols[i] = p.at.Chunk.Cols[c]
	}
	p.result.N = p.at.Chunk.N
	err = w.Rows(&p.result, p.at.Row, p.at.Row+1)
	clear(p.result.Cols)
	return 1, true, err
}
