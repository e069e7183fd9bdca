package render

import (
	"fmt"
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// Options says how to render.
type Options struct {
	// Once makes a circuit for a single epoch with all input, thrown away after.
	Once bool
	// Partitions is the number of parts of the key space; 0 means 1.
	Partitions int
	// Exec runs partitions in parallel; nil runs them in the caller.
	Exec differential.Executor
	// Context is what expressions may depend on besides their input.
	Context *expr.Context
	// Arranged gives a shared arrangement of a collection by the given columns
	// of it, or nil. Those that are used are listed in Dataflow.Shared.
	Arranged func(id plan.ObjectID, key []int) *trace.Trace
	// Less, if not nil, is a collection with the result's columns whose rows are
	// taken from it: the result is a difference, in which rows may be negative.
	Less *plan.Get
	// Columns is how many columns of the result RunOnce gives, the first ones;
	// 0 means all. (A query may have further ones to sort by.)
	Columns int

	// BlockRows is differential.Options.BlockRows.
	BlockRows int

	// Memory bounds what RunOnce keeps of rows to be sorted; nil does not.
	Memory *Memory

	stopped func() bool // set by RunOnce: nobody waits for the result any more
	poll    func()
	// positive says of a part of the plan that none of its diffs is negative.
	positive func(r plan.Rel) bool
	// recursive: there is a recursion in the plan, which may not end by itself.
	recursive bool
}

// watch is what evaluations tell and ask.
func (o *Options) watch() expr.Watch {
	w := expr.Watch{Stopped: o.stopped}
	if o.Memory != nil {
		w.Made = o.Memory.Made
	}
	return w
}

// Import is an input of a dataflow: a collection of the catalog, or rather
// those of its columns that are wanted.
type Import struct {
	// Get is the read: what is pushed has its columns Cols, which are columns
	// Source(i) of the collection.
	Get   *plan.Get
	Input *differential.Input
}

// Shared is a shared arrangement that a dataflow reads in place of an import.
type Shared struct {
	ID    plan.ObjectID
	Key   []int
	Trace *trace.Trace
}

// Dataflow is a rendered plan.
type Dataflow struct {
	Circuit *differential.Circuit
	Imports []Import
	Shared  []Shared
	// Columns are the columns of Oks.
	Columns []plan.Column
	// Oks is the result; Errs its row errors (columns differential.ErrorKinds).
	// While Errs is not empty, a read of the result fails with one of them.
	Oks, Errs differential.Stream
	// Sort is the root plan.Sort, nil if there is none: it is left to whoever
	// reads the result (see Sorter).
	Sort *plan.Sort

	literals []literal
}

// literal is rows that are part of the plan itself.
type literal struct {
	in   *differential.Input
	rows *dataflow.Delta
}

// Start feeds what is part of the plan itself (VALUES). It must be called once
// before the first Step, unless the circuit's state was restored.
func (d *Dataflow) Start() {
	for _, l := range d.literals {
		l.in.Push(l.rows)
	}
}

// Render makes a circuit that computes rel: that maintains it, or, with
// Options.Once, that computes it from all input at one epoch.
func Render(rel plan.Rel, opts Options) (*Dataflow, error) {
	co := differential.Options{
		Partitions: opts.Partitions, Exec: opts.Exec, Once: opts.Once, Poll: opts.poll, Stopped: opts.stopped,
		BlockRows: opts.BlockRows,
	}
	if opts.Memory != nil {
		co.Made, co.Portion = opts.Memory.Made, opts.Memory.Portion
	}
	df := &Dataflow{Circuit: differential.New(co)}
	if s, ok := rel.(*plan.Sort); ok {
		df.Sort = s
		rel = s.Input
	}
	df.Columns = rel.Columns()
	b := &builder{opts: &opts, df: df, c: df.Circuit, failed: new(error)}
	b.collectReads(rel)
	out := b.rel(rel, nil)
	df.Oks = b.stream(out)
	if opts.Less != nil {
		kinds := kindsOf(df.Columns)
		in, s := df.Circuit.Input(kinds)
		df.Imports = append(df.Imports, Import{Get: opts.Less, Input: in})
		df.Oks = df.Circuit.Concat(kinds, df.Oks, df.Circuit.Negate(s))
	}
	df.Errs = b.c.Concat(differential.ErrorKinds, b.errs...)
	if *b.failed != nil {
		return nil, *b.failed
	}
	// What is only looked up in a shared arrangement need not be pushed.
	df.Imports = slices.DeleteFunc(df.Imports, func(im Import) bool {
		s := im.Input.Stream()
		return s != df.Oks && !s.Read()
	})
	return df, nil
}

// builder renders plans into one circuit, or into one scope of it.
type builder struct {
	opts   *Options
	df     *Dataflow
	c      *differential.Circuit
	errs   []differential.Stream // of this circuit or scope
	lets   map[int]coll
	reads  map[readKey]*read
	failed *error

	// Inside of a recursion:
	parent  *builder
	scope   *differential.Scope
	outside map[plan.Rel]differential.Stream // what does not depend on the variables
	entered map[differential.Stream]differential.Stream
}

// readKey tells apart the imports of a dataflow: one a collection, but a
// one-off lookup stands for itself.
type readKey struct {
	id     plan.ObjectID
	lookup *plan.Lookup
}

// read is one import: what all reads of a collection want of it.
type read struct {
	get  *plan.Get
	at   map[int]int // column of the collection → column of get
	coll coll
	made bool
}

func (b *builder) fail(err error) {
	if *b.failed == nil {
		*b.failed = err
	}
}

func (b *builder) readKey(g *plan.Get) readKey {
	k := readKey{id: g.ID}
	if b.opts.Once {
		k.lookup = g.Lookup
	}
	return k
}

// collectReads finds out which columns of each collection are read.
func (b *builder) collectReads(r plan.Rel) {
	b.reads = map[readKey]*read{}
	plan.Walk(r, func(n plan.Rel) bool {
		g, ok := n.(*plan.Get)
		if !ok {
			return true
		}
		k := b.readKey(g)
		w := b.reads[k]
		if w == nil {
			w = &read{get: g, at: make(map[int]int, len(g.Cols))}
			b.reads[k] = w
			for i := range g.Cols {
				w.at[g.Source(i)] = i
			}
			return true
		}
		w.merge(g)
		return true
	})
}

// merge makes w read what g reads too.
func (w *read) merge(g *plan.Get) {
	own := false
	for i, c := range g.Cols {
		src := g.Source(i)
		if _, ok := w.at[src]; ok {
			continue
		}
		if !own { // the node is the plan's: widen a copy
			m := &plan.Get{ID: g.ID, Name: g.Name, Cols: slices.Clone(w.get.Cols), AppendOnly: g.AppendOnly}
			for i := range w.get.Cols {
				m.Proj = append(m.Proj, w.get.Source(i))
			}
			w.get, own = m, true
		}
		w.at[src] = len(w.get.Cols)
		w.get.Cols = append(w.get.Cols, c)
		w.get.Proj = append(w.get.Proj, src)
	}
}

// rel renders r. need says which columns are wanted of it; nil means all.
func (b *builder) rel(r plan.Rel, need []bool) coll {
	if b.parent != nil && !b.looped(r) {
		return b.enter(r)
	}
	switch r := r.(type) {
	case *plan.Get:
		return b.get(r)
	case *plan.Constant:
		return b.constant(r)
	case *plan.Project:
		return b.project(r, need)
	case *plan.Filter:
		in := b.rel(r.Input, needed(need, plan.Arity(r.Input), r.Preds))
		return b.settled(in.filter(r.Preds), r.Input)
	case *plan.Join:
		return b.join(r, need)
	case *plan.Aggregate:
		return b.aggregate(r)
	case *plan.Distinct:
		return b.distinct(r.Input)
	case *plan.TopK:
		return b.topK(r)
	case *plan.Window:
		return b.window(r)
	case *plan.SetOp:
		return b.setOp(r)
	case *plan.FlatMap:
		return b.flatMap(r)
	case *plan.Let:
		v := b.rel(r.Value, nil)
		if b.lets == nil {
			b.lets = map[int]coll{}
		}
		b.lets[r.ID] = b.base(b.stream(v), typesOf(r.Value.Columns()))
		return b.rel(r.Body, need)
	case *plan.LocalGet:
		return b.lets[r.ID]
	case *plan.Recursive:
		return b.recursive(r, need)
	case *plan.Assert:
		return b.assert(r)
	case *plan.Sort: // only at the root does order mean something
		return b.rel(r.Input, need)
	}
	b.fail(fmt.Errorf("render: no rendering of %T", r))
	return b.base(b.c.Concat(nil), nil)
}

// needed is need with the columns of exprs, over n columns.
func needed(need []bool, n int, exprs []expr.Expr) []bool {
	if need == nil {
		return nil
	}
	out := make([]bool, n)
	copy(out, need)
	for _, e := range exprs {
		expr.Columns(e, func(c *expr.Column) { out[c.Index] = true })
	}
	return out
}

// get reads a collection.
func (b *builder) get(r *plan.Get) coll {
	w := b.reads[b.readKey(r)]
	if !w.made {
		w.made = true
		in, s := b.c.Input(kindsOf(w.get.Cols))
		b.df.Imports = append(b.df.Imports, Import{Get: w.get, Input: in})
		w.coll = b.base(s, typesOf(w.get.Cols))
	}
	c := w.coll
	c.outs = make([]expr.Expr, len(r.Cols))
	for i, col := range r.Cols {
		c.outs[i] = &expr.Column{Index: w.at[r.Source(i)], Typ: col.Type, Name: col.Name}
	}
	c.get = r
	return c
}

// constant reads literal rows.
func (b *builder) constant(r *plan.Constant) coll {
	if r.Rows.N == 0 {
		return b.base(b.c.Concat(kindsOf(r.Cols)), typesOf(r.Cols))
	}
	in, s := b.c.Input(kindsOf(r.Cols))
	b.df.literals = append(b.df.literals, literal{in, &dataflow.Delta{Batch: r.Rows, Diffs: r.Diffs}})
	return b.base(s, typesOf(r.Cols))
}

// project computes expressions; only those that are needed.
func (b *builder) project(r *plan.Project, need []bool) coll {
	inner := make([]bool, plan.Arity(r.Input))
	for i, e := range r.Exprs {
		if need == nil || need[i] {
			expr.Columns(e, func(c *expr.Column) { inner[c.Index] = true })
		}
	}
	return b.settled(b.rel(r.Input, inner).project(r.Exprs, need), r.Input)
}

func kindsOf(cols []plan.Column) []columnar.Kind {
	out := make([]columnar.Kind, len(cols))
	for i, c := range cols {
		out[i] = c.Type.Kind()
	}
	return out
}

func typesOf(cols []plan.Column) []types.Type {
	out := make([]types.Type, len(cols))
	for i, c := range cols {
		out[i] = c.Type
	}
	return out
}
