package render

import (
	"math"
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// coll is a collection under construction: a stream, and the filters and
// projections still to be applied to it. Those are collected, so that a chain
// of them becomes one operator, applied when something needs the stream.
type coll struct {
	s       differential.Stream
	types   []types.Type // of the columns of s
	filters []expr.Expr  // over s
	// outs are the columns of the collection, over s; nil means those of s. A
	// nil element is a column that nobody needs.
	outs []expr.Expr
	get  *plan.Get // the collection is just this read, unless it is filtered or computed
}

// base is a collection that is a stream.
func (b *builder) base(s differential.Stream, typs []types.Type) coll {
	return coll{s: s, types: typs}
}

// col is column i as an expression over the stream.
func (c *coll) col(i int) expr.Expr {
	if c.outs != nil {
		return c.outs[i]
	}
	return &expr.Column{Index: i, Typ: c.types[i]}
}

// arity is the number of columns.
func (c *coll) arity() int {
	if c.outs != nil {
		return len(c.outs)
	}
	return len(c.types)
}

// over is an expression over the collection's columns as one over the stream.
func (c *coll) over(e expr.Expr) expr.Expr {
	if c.outs == nil || e == nil {
		return e
	}
	return expr.Substitute(e, c.outs)
}

func (c coll) filter(preds []expr.Expr) coll {
	c.filters = slices.Clip(c.filters)
	for _, p := range preds {
		c.filters = append(c.filters, c.over(p))
	}
	c.get = nil
	return c
}

// project computes the exprs that are needed (nil: all) over the collection.
func (c coll) project(exprs []expr.Expr, need []bool) coll {
	outs := make([]expr.Expr, len(exprs))
	picks := c.get != nil
	for i, e := range exprs {
		if need == nil || need[i] {
			outs[i] = c.over(e)
			_, ok := outs[i].(*expr.Column)
			picks = picks && ok
		}
	}
	c.outs = outs
	if !picks {
		c.get = nil
	}
	return c
}

// settled is c, made of the rows of r, with volatile expressions computed, once for each
// occurrence of a row, however many uses they have.
func (b *builder) settled(c coll, r plan.Rel) coll {
	plain := len(c.filters)
	if at := slices.IndexFunc(c.filters, isVolatile); at >= 0 {
		plain = at
	} else if !anyVolatile(c.outs) {
		return c
	}
	if c.outs == nil {
		c.outs = columnsOf(c.types)
	}
	in := c
	in.filters = c.filters[:plain]
	exprs := c.filters[plain:]
	for _, e := range c.outs {
		if e != nil {
			exprs = append(exprs[:len(exprs):len(exprs)], e)
		}
	}
	at := make([]int, len(c.types)) // columns that are used, plus one
	in.outs = []expr.Expr{}
	for _, e := range exprs {
		expr.Columns(e, func(col *expr.Column) {
			if at[col.Index] == 0 {
				in.outs = append(in.outs, col)
				at[col.Index] = len(in.outs)
			}
		})
	}
	over := func(e expr.Expr) expr.Expr { return expr.Remap(e, func(i int) int { return at[i] - 1 }) }
	rows := b.base(b.occurrences(b.stream(in), r), exprTypes(in.outs))
	for _, p := range c.filters[plain:] {
		rows.filters = append(rows.filters, over(p))
	}
	outs, refs := compact(c.outs)
	for i, e := range outs {
		outs[i] = over(e)
	}
	s := b.base(b.mapped(rows, outs), exprTypes(outs))
	s.outs = refs
	return s
}

// whole is c, made of the rows of r, as what is volatile has to see it.
func (b *builder) whole(c coll, r plan.Rel) coll {
	if c.outs == nil {
		c.outs = columnsOf(c.types)
	}
	outs, refs := compact(c.outs)
	s := b.base(b.occurrences(b.mapped(c, outs), r), exprTypes(outs))
	s.outs = refs
	return s
}

// compact is columns without those that nobody needs, and where the others are in it.
func compact(cols []expr.Expr) (some, refs []expr.Expr) {
	refs = make([]expr.Expr, len(cols))
	for i, e := range cols {
		if e != nil {
			refs[i] = &expr.Column{Index: len(some), Typ: e.Type()}
			some = append(some, e)
		}
	}
	return some, refs
}

// occurrences is a stream of the rows of r without rows that cancel, or that stand for
// several.
func (b *builder) occurrences(s differential.Stream, r plan.Rel) differential.Stream {
	return b.c.Occurrences(s, b.opts.positive != nil && b.parent == nil && b.opts.positive(r))
}

func isVolatile(e expr.Expr) bool { return expr.VolatilityOf(e) == expr.Volatile }

// anyVolatile reports whether one of es, some of which may be nil, is volatile.
func anyVolatile(es []expr.Expr) bool {
	return slices.ContainsFunc(es, func(e expr.Expr) bool { return e != nil && isVolatile(e) })
}

// stream is the collection with all its columns, filters and projections applied.
func (b *builder) stream(c coll) differential.Stream {
	outs := c.outs
	if outs == nil {
		if len(c.filters) == 0 {
			return c.s
		}
		outs = columnsOf(c.types)
	}
	return b.mapped(c, outs)
}

// mapped is the collection's rows with the columns outs, which are over its stream.
func (b *builder) mapped(c coll, outs []expr.Expr) differential.Stream {
	if len(c.filters) == 0 && isIdentity(outs, len(c.types)) {
		return c.s
	}
	m := b.mapper(c.filters, outs)
	oks, errs := b.c.Map(c.s, m, exprKinds(outs))
	if !m.total {
		b.errs = append(b.errs, errs)
	}
	return oks
}

func isIdentity(outs []expr.Expr, n int) bool {
	if len(outs) != n {
		return false
	}
	for i, e := range outs {
		if c, ok := e.(*expr.Column); !ok || c.Index != i {
			return false
		}
	}
	return true
}

func columnsOf(typs []types.Type) []expr.Expr {
	out := make([]expr.Expr, len(typs))
	for i, t := range typs {
		out[i] = &expr.Column{Index: i, Typ: t}
	}
	return out
}

func exprKinds(es []expr.Expr) []columnar.Kind {
	out := make([]columnar.Kind, len(es))
	for i, e := range es {
		out[i] = e.Type().Kind()
	}
	return out
}

func exprTypes(es []expr.Expr) []types.Type {
	out := make([]types.Type, len(es))
	for i, e := range es {
		out[i] = e.Type()
	}
	return out
}

// mapper filters and projects.
type mapper struct {
	prog  *expr.Program
	ctx   *expr.Context
	picks []int // if it only picks columns: which
	total bool  // no row can fail
	watch expr.Watch
}

// mapper makes the operator for filters and outputs over the same columns.
func (b *builder) mapper(filters, outs []expr.Expr) *mapper {
	m := &mapper{ctx: b.opts.Context, total: true, watch: b.opts.watch()}
	if len(filters) == 0 {
		m.picks = columnPicks(outs)
	}
	if m.picks != nil {
		return m
	}
	for _, es := range [][]expr.Expr{filters, outs} {
		for _, e := range es {
			m.total = m.total && expr.IsTotal(e)
		}
	}
	prog, err := expr.Compile(expr.MapFilterProject{Filters: filters, Outputs: outs})
	if err != nil {
		b.fail(err)
	}
	m.prog = prog
	return m
}

// columnPicks are the indexes of outs if they are all columns, else nil.
func columnPicks(outs []expr.Expr) []int {
	picks := make([]int, len(outs))
	for i, e := range outs {
		c, ok := e.(*expr.Column)
		if !ok {
			return nil
		}
		picks[i] = c.Index
	}
	return picks
}

// Apply implements differential.Mapper.
func (m *mapper) Apply(in *dataflow.Delta, emit, emitErr func(*dataflow.Delta)) {
	m.ApplyUpTo(in, math.MaxInt, emit, emitErr)
}

// ApplyUpTo implements differential.Partial.
func (m *mapper) ApplyUpTo(in *dataflow.Delta, bytes int, emit, emitErr func(*dataflow.Delta)) (rows int) {
	if m.watch.Stopped != nil && m.watch.Stopped() {
		return in.N
	}
	if m.picks != nil {
		emit(&dataflow.Delta{Batch: in.Batch.Select(m.picks), Diffs: in.Diffs})
		return in.N
	}
	return m.prog.ApplyParts(m.ctx, &in.Batch, in.Diffs, m.watch, func(out columnar.Batch, diffs []dataflow.Diff) bool {
		emit(&dataflow.Delta{Batch: out, Diffs: diffs})
		bytes -= out.MemSize()
		return bytes > 0
	}, func(errs []expr.RowError) {
		emitErr(errorDelta(errs, in.Diffs))
	})
}

// errorDelta is the errs rows for the failed rows of a delta.
func errorDelta(errs []expr.RowError, diffs []int64) *dataflow.Delta {
	b, d := expr.ErrorBatch(errs, diffs)
	return &dataflow.Delta{Batch: b, Diffs: d}
}

// rowFilter keeps rows: the residual of a join.
type rowFilter struct {
	prog  *expr.Program
	ctx   *expr.Context
	watch expr.Watch
}

// rowFilter makes the filter for preds over n columns. Its program has one more
// input column, the row's number, which is its output.
func (b *builder) rowFilter(preds []expr.Expr, n int) *rowFilter {
	prog, err := expr.Compile(expr.MapFilterProject{
		Filters: preds,
		Outputs: []expr.Expr{&expr.Column{Index: n, Typ: types.Int8}},
	})
	if err != nil {
		b.fail(err)
	}
	return &rowFilter{prog: prog, ctx: b.opts.Context, watch: b.opts.watch()}
}

// Filter implements differential.RowFilter.
func (f *rowFilter) Filter(in *dataflow.Delta, sel []uint32, emitErr func(*dataflow.Delta)) []uint32 {
	if f.watch.Stopped != nil && f.watch.Stopped() {
		return sel
	}
	numbers := columnar.MakeFixed(columnar.KindInt64, in.N)
	for i := range numbers.Int64s() {
		numbers.Int64s()[i] = int64(i)
	}
	b := columnar.Batch{Cols: append(slices.Clip(in.Cols), numbers), N: in.N}
	f.prog.ApplyParts(f.ctx, &b, nil, f.watch, func(out columnar.Batch, _ []dataflow.Diff) bool {
		for _, i := range out.Cols[0].Int64s() {
			sel = append(sel, uint32(i))
		}
		return true
	}, func(errs []expr.RowError) {
		emitErr(errorDelta(errs, in.Diffs))
	})
	return sel
}
