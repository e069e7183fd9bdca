// Package render is the one bridge from plans to the engine: it turns a
// relational plan into a circuit of operators.
package render

import (
	"context"
	"iter"
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// Reader gives the content of collections at the one epoch of a read.
type Reader interface {
	// Snapshot reads a collection: the deltas have exactly the columns
	// get.Cols (column i is column get.Source(i) of the collection), and sum up
	// to its content: diffs of equal rows in different deltas may cancel. If
	// get.Lookup is set, rows with other keys may be left out. An error ends
	// the sequence.
	Snapshot(ctx context.Context, get *plan.Get) iter.Seq2[*dataflow.Delta, error]
}

// PositiveReader is a Reader that may know of a read that none of its diffs is
// negative: then its rows are passed on as they come.
type PositiveReader interface {
	Reader
	Positive(get *plan.Get) bool
}

// OrderedReader is a Reader that may give the rows of a read whose Lookup says First
// in that order, none of them with a negative diff; nil: it cannot. Of more than
// most rows a sorted scan is thought to be cheaper.
type OrderedReader interface {
	Reader
	InOrder(ctx context.Context, get *plan.Get) (rows iter.Seq2[*dataflow.Delta, error], most int)
}

// Emit takes a batch of result rows; rows are whole (no diffs). An error ends the run.
type Emit func(b *columnar.Batch) error

// RunOnce computes rel over one snapshot and gives the rows to emit as they
// come, in the order of a root plan.Sort. Row errors end the run as the error
// that it returns. It stops soon after ctx is cancelled.
func RunOnce(ctx context.Context, rel plan.Rel, r Reader, opts Options, emit Emit) error {
	opts.Once = true
	opts.stopped = func() bool { return ctx.Err() != nil }
	opts.poll = func() {
		if err := ctx.Err(); err != nil {
			panic(abandoned{context.Cause(ctx)})
		}
	}
	run := &run{ctx: ctx, reader: r, opts: &opts, emit: emit, width: opts.Columns}
	opts.positive = run.positive
	s, delayed := plan.SortedRoot(rel)
	if s == nil {
		s = &plan.Sort{Input: rel}
	}
	rel = s.Input
	if run.width == 0 || delayed != nil {
		run.width = plan.Arity(rel)
	}
	var err error
	if run.sorter, err = NewSorter(s, opts.Context, run.width); err != nil {
		return err
	}
	if delayed != nil {
		if run.emit, err = run.projected(delayed); err != nil {
			return err
		}
	}
	run.sorter.memory = opts.Memory
	defer run.sorter.Close()
	run.streams = run.sorter.Streams() && s.Limit == nil && s.Offset == nil
	if run.sorter.Enough() {
		return nil
	}
	if get, filters, outs, ok := linear(rel); ok {
		var first *Sorter
		if first, err = run.inOrder(s, get, filters, outs); first != nil && err == nil {
			return first.Emit(run.emit)
		}
		if err == nil {
			err = run.linear(get, filters, outs)
		}
	} else {
		done := false
		if opts.Memory != nil && opts.Memory.Partition {
			if rel, err = run.resolveLookups(withoutLets(rel)); err != nil {
				return err
			}
			done, err = run.inParts(rel)
		}
		if !done && err == nil {
			err = run.circuit(rel)
		}
	}
	if err == nil && ctx.Err() != nil { // what came after that was dropped
		err = context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	return run.sorter.Emit(run.emit)
}

// projected is run.emit with what is computed of the rows in their order. The rows that
// OFFSET passes over are computed, too.
func (r *run) projected(p *plan.Project) (Emit, error) {
	exprs := p.Exprs
	if r.opts.Columns > 0 {
		exprs = exprs[:r.opts.Columns]
	}
	prog, err := expr.Compile(expr.MapFilterProject{Outputs: exprs})
	if err != nil {
		return nil, err
	}
	out := limiter{skip: r.sorter.offset, left: -1, width: len(exprs), emit: r.emit}
	if r.sorter.limit >= 0 {
		r.sorter.limit += r.sorter.offset
	}
	r.sorter.offset = 0
	return func(b *columnar.Batch) error {
		var err error
		prog.ApplyParts(r.opts.Context, b, nil, r.opts.watch(), func(rows columnar.Batch, _ []dataflow.Diff) bool {
			if err == nil {
				err = out.add(&rows)
			}
			return err == nil
		}, func(errs []expr.RowError) {
			if err == nil {
				err = errs[0].Err
			}
		})
		return err
	}, nil
}

// run is one run of a query.
type run struct {
	ctx     context.Context
	reader  Reader
	opts    *Options
	emit    Emit
	width   int
	sorter  *Sorter
	streams bool                              // rows go to emit as they come
	ordered iter.Seq2[*dataflow.Delta, error] // what linear reads, if it is in order
	bound   map[int]bool                      // by binding: none of its diffs is negative
}

// linear takes a plan apart that only filters and projects one collection or
// literal rows. The expressions are over the columns of source. What is computed
// over a volatile expression is not linear: the expression has one value a row.
func linear(r plan.Rel) (source plan.Rel, filters, outs []expr.Expr, ok bool) {
	switch r := r.(type) {
	case *plan.Get, *plan.Constant:
		return r, nil, nil, true
	case *plan.Project:
		source, filters, outs, ok = linear(r.Input)
		if !ok {
			return nil, nil, nil, false
		}
		if outs == nil {
			return source, filters, r.Exprs, true
		}
		if anyVolatile(outs) {
			return nil, nil, nil, false
		}
		over := make([]expr.Expr, len(r.Exprs))
		for i, e := range r.Exprs {
			over[i] = expr.Substitute(e, outs)
		}
		return source, filters, over, true
	case *plan.Filter:
		source, filters, outs, ok = linear(r.Input)
		if !ok || anyVolatile(outs) {
			return nil, nil, nil, false
		}
		for _, p := range r.Preds {
			if outs != nil {
				p = expr.Substitute(p, outs)
			}
			filters = append(filters, p)
		}
		return source, filters, outs, true
	}
	return nil, nil, nil, false
}

// linear runs a plan without a circuit: each delta of the snapshot goes through
// one program.
func (r *run) linear(source plan.Rel, filters, outs []expr.Expr) error {
	b := &builder{opts: r.opts, failed: new(error)}
	cols := source.Columns()
	if outs == nil {
		outs = columnsOf(typesOf(cols))
	}
	var m *mapper
	if len(filters) > 0 || !isIdentity(outs, len(cols)) {
		m = b.mapper(filters, outs)
		if *b.failed != nil {
			return *b.failed
		}
	}
	out := &result{run: r, kinds: exprKinds(outs), positive: r.positive(source)}
	rows := r.source(source)
	if anyVolatile(filters) || anyVolatile(outs) {
		rows = occurrences(rows, kindsOf(cols), out.positive)
		out.positive = true
	}
	var err error
	keep := func(d *dataflow.Delta) {
		if err == nil && !out.enough() {
			err = out.add(d)
		}
	}
	fail := func(d *dataflow.Delta) { out.errs = append(out.errs, d) }
	for d, e := range rows {
		if e != nil {
			return e
		}
		if m == nil {
			keep(d)
		} else {
			m.Apply(d, keep, fail)
		}
		if err != nil {
			return err
		}
		if out.enough() {
			break
		}
	}
	return out.finish()
}

// occurrences gives each row as often as it occurs in the end.
func occurrences(rows iter.Seq2[*dataflow.Delta, error], kinds []columnar.Kind, positive bool) iter.Seq2[*dataflow.Delta, error] {
	return func(yield func(*dataflow.Delta, error) bool) {
		give := func(d *dataflow.Delta) bool {
			b, err := expand(d.Batch, d.Diffs)
			return yield(&dataflow.Delta{Batch: b}, err) && err == nil
		}
		var all []*dataflow.Delta
		for d, err := range rows {
			switch {
			case err != nil:
				yield(nil, err)
				return
			case !positive:
				all = append(all, d)
			case !give(d):
				return
			}
		}
		if d := differential.Consolidated(kinds, all); d != nil {
			give(d)
		}
	}
}

// source reads a collection or literal rows.
func (r *run) source(source plan.Rel) iter.Seq2[*dataflow.Delta, error] {
	switch s := source.(type) {
	case *plan.Constant:
		return func(yield func(*dataflow.Delta, error) bool) {
			if s.Rows.N > 0 {
				yield(&dataflow.Delta{Batch: s.Rows, Diffs: s.Diffs}, nil)
			}
		}
	case *plan.Get:
		if r.ordered != nil {
			return r.ordered
		}
		return func(yield func(*dataflow.Delta, error) bool) {
			for d, err := range r.reader.Snapshot(r.ctx, s) {
				if err == nil && r.ctx.Err() != nil {
					err = context.Cause(r.ctx)
				}
				if !yield(d, err) || err != nil {
					return
				}
			}
		}
	}
	panic("render: a source is a Get or a Constant")
}

// abandoned is thrown out of a circuit whose context has ended.
type abandoned struct{ err error }

// circuit runs a plan as a circuit.
func (r *run) circuit(rel plan.Rel) (err error) {
	if rel, err = r.resolveLookups(rel); err != nil {
		return err
	}
	positive := r.positive(rel) // of its bindings, too
	opts := *r.opts
	plan.Walk(rel, func(n plan.Rel) bool {
		_, is := n.(*plan.Recursive)
		opts.recursive = opts.recursive || is
		return !opts.recursive
	})
	df, err := Render(rel, opts)
	if err != nil {
		return err
	}
	defer df.Circuit.Close()
	out := &result{run: r, kinds: kindsOf(df.Columns), positive: positive}
	errs := df.Circuit.Output(df.Errs)
	df.Circuit.Sink(df.Oks, func(d *dataflow.Delta) {
		if err := out.add(d); err != nil || out.enough() {
			panic(abandoned{err})
		}
	})
	df.Start()
	for _, im := range df.Imports {
		for d, err := range r.source(im.Get) {
			if err != nil {
				return err
			}
			im.Input.Push(d)
		}
	}
	if err := step(df.Circuit); err != nil {
		return err
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	out.errs = errs.Take()
	return out.finish()
}

// step runs a circuit's one step. It may be abandoned, with or without an error.
func step(c *differential.Circuit) (err error) {
	defer func() {
		if p := recover(); p != nil {
			switch p := p.(type) {
			case abandoned:
				err = p.err
			case differential.TooOften:
				err = pgerror.New(pgerror.ProgramLimitExceeded, "a recursive query makes a row more often than can be counted")
			default:
				panic(p)
			}
		}
	}()
	c.Step(0)
	return nil
}

// positive says that no row of a plan's result has a negative diff, nor any on
// the way to it, so that a row that has come stays.
func (r *run) positive(rel plan.Rel) bool {
	switch n := rel.(type) {
	case *plan.Get:
		p, knows := r.reader.(PositiveReader)
		return n.AppendOnly || knows && p.Positive(n)
	case *plan.Constant:
		return !slices.ContainsFunc(n.Diffs, func(d dataflow.Diff) bool { return d < 0 })
	case *plan.Project:
		return r.positive(n.Input)
	case *plan.Filter:
		return r.positive(n.Input)
	case *plan.Join:
		return n.Kind == plan.JoinInner && r.positive(n.Left) && r.positive(n.Right)
	case *plan.FlatMap:
		return r.positive(n.Input)
	case *plan.SetOp:
		return n.Kind == plan.Union && n.All && !slices.ContainsFunc(n.Inputs, func(in plan.Rel) bool { return !r.positive(in) })
	case *plan.Let:
		r.bind(n.ID, r.positive(n.Value))
		return r.positive(n.Body)
	case *plan.LocalGet:
		return r.bound[n.ID]
	case *plan.Recursive:
		for _, id := range n.IDs {
			r.bind(id, true)
		}
		grows := true
		for i, v := range n.Values {
			if n.Distinct[i] { // the row that stands for its equals may be another one later
				grows = grows && !slices.ContainsFunc(v.Columns(), func(c plan.Column) bool { return !plan.BitEqual(c.Type) })
				v = bag(v)
			}
			grows = grows && (n.Working || r.positive(v)) // a working table's rows are whole
		}
		for _, id := range n.IDs {
			r.bind(id, grows)
		}
		return r.positive(n.Body)
	}
	return false
}

// bind notes of a binding whether positive holds for it.
func (r *run) bind(id int, positive bool) {
	if r.bound == nil {
		r.bound = map[int]bool{}
	}
	r.bound[id] = positive
}

// result collects what a run computes. Rows whose diffs may still cancel wait
// until the end.
type result struct {
	run      *run
	kinds    []columnar.Kind
	positive bool // no diff is negative
	waiting  []*dataflow.Delta
	errs     []*dataflow.Delta
}

// add takes a delta of the result.
func (o *result) add(d *dataflow.Delta) error {
	if !o.positive {
		o.waiting = append(o.waiting, d)
		return nil
	}
	b, err := expand(d.Batch, d.Diffs)
	if err != nil {
		return err
	}
	return o.deliver(b)
}

// enough reports whether further rows cannot matter.
func (o *result) enough() bool { return o.positive && o.run.sorter.Enough() }

// deliver passes rows on.
func (o *result) deliver(b columnar.Batch) error {
	if !o.run.streams {
		return o.run.sorter.Add(b)
	}
	if b.N == 0 || len(o.errs) > 0 {
		return nil
	}
	b.Cols = b.Cols[:o.run.width]
	return o.run.emit(&b)
}

// finish delivers what waits, or the error of a row that has one.
func (o *result) finish() error {
	if err := firstError(o.errs); err != nil {
		return err
	}
	o.errs = nil // they were of rows that are gone again
	if o.cancels() {
		if err := o.consolidate(); err != nil {
			return err
		}
	}
	for _, d := range o.waiting {
		b, err := expand(d.Batch, d.Diffs)
		if err != nil {
			return err
		}
		if err := o.deliver(b); err != nil {
			return err
		}
	}
	return nil
}

// cancels reports whether a diff is negative.
func (o *result) cancels() bool {
	for _, d := range o.waiting {
		for _, x := range d.Diffs {
			if x < 0 {
				return true
			}
		}
	}
	return false
}

// consolidate sums up equal rows of what waits.
func (o *result) consolidate() error {
	b, diffs := together(o.kinds, o.waiting)
	b, diffs = columnar.Consolidate(b, diffs)
	o.waiting = []*dataflow.Delta{{Batch: b, Diffs: diffs}}
	return nil
}

// together is deltas as one.
func together(kinds []columnar.Kind, ds []*dataflow.Delta) (columnar.Batch, []dataflow.Diff) {
	parts := make([]*columnar.Batch, len(ds))
	var diffs []dataflow.Diff
	for i, d := range ds {
		parts[i] = &d.Batch
		for j := range d.N {
			diffs = append(diffs, d.Diff(j))
		}
	}
	return columnar.ConcatBatches(kinds, parts...), diffs
}

// firstError is one of the errors that stay after summing up, nil if none does.
func firstError(errs []*dataflow.Delta) error {
	if len(errs) == 0 {
		return nil
	}
	b, diffs := together(differential.ErrorKinds, errs)
	b, diffs = columnar.Consolidate(b, diffs)
	for i := range b.N {
		if diffs == nil || diffs[i] > 0 {
			return expr.ErrorAt(&b, i)
		}
	}
	return nil
}
