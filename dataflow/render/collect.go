package render

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// collect renders a GROUP BY with an aggregate that needs its whole group: all
// of its aggregates are computed anew for the groups that change.
func (b *builder) collect(r *plan.Aggregate, need []bool) coll {
	g := &grouping{b: b, in: b.rel(r.Input, need)}
	g.keys = make([]int, len(r.GroupBy))
	for i, e := range r.GroupBy {
		g.keys[i] = g.keyColumn(keyExpr(e), i)
	}
	f := &collectFunc{ctx: b.opts.Context, watch: b.opts.watch()}
	for _, e := range r.GroupBy {
		f.shown = append(f.shown, g.column(e))
	}
	for i := range r.Aggs {
		f.calls = append(f.calls, g.collectCall(&r.Aggs[i]))
	}
	f.typs = typesOf(r.Cols)
	s := b.mapped(g.in, g.outs)
	oks, errs := b.c.GroupMap(s, g.keys, kindsOf(r.Cols), f, differential.GroupMapOptions{Global: len(r.GroupBy) == 0})
	b.errs = append(b.errs, errs)
	return b.base(oks, f.typs)
}

// collectCall places what one aggregate call reads.
func (g *grouping) collectCall(a *plan.AggCall) collectCall {
	c := collectCall{filter: -1, call: expr.AggregateCall{Fn: a.Fn, Args: exprTypes(a.Args), Typ: a.Typ}}
	for _, e := range a.Args {
		c.args = append(c.args, g.column(e))
	}
	if a.Filter != nil {
		c.filter = g.column(a.Filter)
	}
	for _, s := range a.OrderBy {
		c.order = append(c.order, differential.Order{Col: g.column(sortExpr(s.Expr)), Desc: s.Desc, NullsFirst: s.NullsFirst})
	}
	if a.Distinct {
		// Equal values must be adjacent: those not ordered by yet come last.
		for _, e := range a.Args {
			k := g.column(sortExpr(e))
			c.distinct = append(c.distinct, g.column(keyExpr(e)))
			if !slices.ContainsFunc(c.order, func(o differential.Order) bool { return o.Col == k }) {
				c.order = append(c.order, differential.Order{Col: k})
			}
		}
	}
	return c
}

// sortExpr is an expression whose physical order is the SQL order of e.
func sortExpr(e expr.Expr) expr.Expr { return expr.SortKey(e) }

// collectFunc computes aggregates group by group.
type collectFunc struct {
	ctx   *expr.Context
	watch expr.Watch
	shown []int // input columns shown as group columns: of the first row
	calls []collectCall
	typs  []types.Type
}

// collectCall is one aggregate call over columns of the groups.
type collectCall struct {
	call     expr.AggregateCall
	args     []int
	filter   int // -1: none
	order    []differential.Order
	distinct []int // columns that tell distinct rows apart, after order; nil: all rows count
}

// Apply implements differential.GroupFunc.
func (f *collectFunc) Apply(g *differential.Groups, emit, emitErr func(*dataflow.Delta)) {
	n := len(g.Ends)
	out := columnar.Batch{N: n, Cols: make([]*columnar.Vec, len(f.typs))}
	first := make([]uint32, n)
	lo := 0
	for i, hi := range g.Ends {
		first[i] = uint32(lo)
		lo = hi
	}
	for i, c := range f.shown {
		out.Cols[i] = g.Rows.Cols[c].Gather(first)
	}
	x := expr.NewEval(f.ctx).Watched(f.watch)
	var failed []expr.RowError
	for i := range f.calls {
		v, errs := f.calls[i].compute(x, g)
		out.Cols[len(f.shown)+i] = v
		failed = append(failed, errs...)
	}
	emitGroups(&out, failed, emit, emitErr)
}

// emitGroups emits rows but for the failed ones, whose errors it emits.
func emitGroups(out *columnar.Batch, failed []expr.RowError, emit, emitErr func(*dataflow.Delta)) {
	if len(failed) == 0 {
		emit(&dataflow.Delta{Batch: *out})
		return
	}
	bad := columnar.NewBitmap(out.N)
	once := failed[:0]
	for _, e := range failed {
		if !bad.Get(e.Row) {
			bad.Set(e.Row)
			once = append(once, e)
		}
	}
	emitErr(errorDelta(once, nil))
	var good []uint32
	for i := range out.N {
		if !bad.Get(i) {
			good = append(good, uint32(i))
		}
	}
	if len(good) > 0 {
		emit(&dataflow.Delta{Batch: out.Gather(good)})
	}
}

// compute is the call's value for each group.
func (c *collectCall) compute(x *expr.Eval, g *differential.Groups) (*columnar.Vec, []expr.RowError) {
	rows, ends := c.rows(g)
	args := make([]*columnar.Vec, len(c.args))
	for i, a := range c.args {
		args[i] = g.Rows.Cols[a]
		if !ascending(rows, g.Rows.N) {
			args[i] = args[i].Gather(rows)
		}
	}
	out := x.Builder(c.call.Typ.Kind(), len(ends))
	var failed []expr.RowError
	lo := 0
	for i, hi := range ends {
		wanted, err := expr.Guarded(func() error { return c.call.Fn.Collect(x, &c.call, args, lo, hi, out) })
		if !wanted {
			out.Nulls(len(ends) - out.Len())
			break
		}
		if err != nil {
			failed = append(failed, expr.RowError{Row: i, Err: pgerror.As(err)})
			if out.Len() == i {
				out.Null()
			}
		}
		lo = hi
	}
	return out.Build(), failed
}

// ascending reports whether rows are 0 to n-1.
func ascending(rows []uint32, n int) bool {
	if len(rows) != n {
		return false
	}
	for i, r := range rows {
		if int(r) != i {
			return false
		}
	}
	return true
}

// rows lists the rows that count for the call, in its order, each as often as it
// occurs, and where each group ends among them.
func (c *collectCall) rows(g *differential.Groups) (rows []uint32, ends []int) {
	keys := sortKeys(g, c.order)
	filter := passes(g, c.filter)
	rows = make([]uint32, 0, g.Rows.N)
	ends = make([]int, len(g.Ends))
	var run, scratch []columnar.Keyed
	lo := 0
	for i, hi := range g.Ends {
		run = run[:0]
		for r := lo; r < hi; r++ {
			if filter == nil || filter(r) {
				run = append(run, columnar.Keyed{Row: uint32(r)})
			}
		}
		if len(keys) > 0 && len(run) > 1 {
			scratch = slices.Grow(scratch[:0], len(run))[:len(run)]
			columnar.SortRows(keys, run, scratch)
		}
		for j, k := range run {
			if c.distinct != nil {
				if j == 0 || !sameKey(g, c.distinct, run[j-1].Row, k.Row) {
					rows = append(rows, k.Row)
				}
				continue
			}
			for range g.Mults[k.Row] {
				rows = append(rows, k.Row)
			}
		}
		ends[i] = len(rows)
		lo = hi
	}
	return rows, ends
}

// passes tells which rows a filter column lets through; nil if there is none.
func passes(g *differential.Groups, col int) func(row int) bool {
	if col < 0 {
		return nil
	}
	v := g.Rows.Cols[col]
	bools := v.Bools()
	return func(row int) bool { return bools[row] && !v.Null(row) }
}

func sortKeys(g *differential.Groups, order []differential.Order) []columnar.SortKey {
	keys := make([]columnar.SortKey, len(order))
	for i, o := range order {
		keys[i] = columnar.SortKey{Vec: g.Rows.Cols[o.Col], Desc: o.Desc, NullsFirst: o.NullsFirst}
	}
	return keys
}

func sameKey(g *differential.Groups, cols []int, a, b uint32) bool {
	for _, c := range cols {
		v := g.Rows.Cols[c]
		if v.Null(int(a)) != v.Null(int(b)) || !v.Null(int(a)) && !columnar.EqualAt(v, int(a), v, int(b)) {
			return false
		}
	}
	return true
}
