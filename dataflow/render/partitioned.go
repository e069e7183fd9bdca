package render

import (
	"io"
	"os"
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// A query whose state is too large for memory is run again in parts: the inputs of
// its upmost operator that works by keys are written to a file, cut by the hash of
// the keys, and the operator, with what is above it, is run over one part after the
// other (the hash join of Grace, Kitsuregawa et al. 1983, for all such operators).
// Inputs that have such operators themselves are run in the same way.

const (
	// fanOut is how many parts rows are cut in at a time.
	fanOut = 32
	// maxCuts is how often a part that is still too large is cut again.
	maxCuts = 3
	// partRows is how many rows of a part are collected before they are written, and
	// partBytes about how many bytes.
	partRows  = 1024
	partBytes = 1 << 20
)

// Partitionable reports whether a query can be run in parts, and again.
func Partitionable(rel plan.Rel) bool {
	found, volatile := false, false
	plan.Walk(rel, func(n plan.Rel) bool {
		plan.MapExprs(n, func(e expr.Expr) expr.Expr {
			volatile = volatile || expr.VolatilityOf(e) == expr.Volatile
			return e
		})
		found = found || len(keyedInputs(n)) > 0
		return true
	})
	return found && !volatile
}

// keyedInput is an input of an operator that works by keys: only rows with equal keys,
// of the same or of other inputs, have to do with each other.
type keyedInput struct {
	rel  plan.Rel
	keys []expr.Expr
}

// keyedInputs are the inputs of an operator that works by keys, nil if it does not.
func keyedInputs(r plan.Rel) []keyedInput {
	byAll := func(in plan.Rel) keyedInput { return keyedInput{in, plan.Refs(in.Columns())} }
	one := func(in plan.Rel, keys []expr.Expr) []keyedInput {
		if len(keys) == 0 {
			return nil
		}
		return []keyedInput{{in, keys}}
	}
	switch r := r.(type) {
	case *plan.Aggregate:
		if r.GroupingSets == nil {
			return one(r.Input, r.GroupBy)
		}
	case *plan.Distinct:
		return one(r.Input, plan.Refs(r.Input.Columns()))
	case *plan.Window:
		return one(r.Input, r.Partition)
	case *plan.TopK:
		var keys []expr.Expr
		for _, c := range r.Partition {
			keys = append(keys, plan.Ref(r.Input, c))
		}
		return one(r.Input, keys)
	case *plan.SetOp:
		if r.Kind == plan.Union && r.All {
			return nil
		}
		var out []keyedInput
		for _, in := range r.Inputs {
			if len(in.Columns()) == 0 {
				return nil
			}
			out = append(out, byAll(in))
		}
		return out
	case *plan.Join:
		return joinInputs(r)
	}
	return nil
}

// joinInputs are the sides of a join with the keys that it equates.
func joinInputs(j *plan.Join) []keyedInput {
	if j.Lookup != nil || j.Lateral {
		return nil
	}
	nl := plan.Arity(j.Left)
	l, r := keyedInput{rel: j.Left}, keyedInput{rel: j.Right}
	isLeft := func(c *expr.Column) bool { return c.Index < nl }
	for _, p := range j.On {
		a, b, ok := plan.IsEquality(p)
		if !ok || a.Type().OID != b.Type().OID {
			continue
		}
		if sideOf(a, isLeft) < 0 {
			a, b = b, a
		}
		if sideOf(a, isLeft) <= 0 || sideOf(b, isLeft) >= 0 {
			continue
		}
		l.keys = append(l.keys, a)
		r.keys = append(r.keys, expr.Remap(b, func(i int) int { return i - nl }))
	}
	if len(l.keys) == 0 {
		return nil
	}
	return []keyedInput{l, r}
}

// withoutLets is a plan with the values of its bindings in their places: each is
// computed as often as it is read.
func withoutLets(rel plan.Rel) plan.Rel {
	values := map[int]plan.Rel{}
	var put func(r plan.Rel) plan.Rel
	put = func(r plan.Rel) plan.Rel {
		switch n := r.(type) {
		case *plan.Let:
			values[n.ID] = put(n.Value)
			return put(n.Body)
		case *plan.LocalGet:
			if v := values[n.ID]; v != nil {
				return v
			}
		}
		return plan.MapChildren(r, put)
	}
	return put(rel)
}

// sideOf is 1 for an expression over left columns only, -1 for one over right ones
// only, and 0 for others.
func sideOf(e expr.Expr, isLeft func(c *expr.Column) bool) int {
	side, some := 0, false
	expr.Columns(e, func(c *expr.Column) {
		s := -1
		if isLeft(c) {
			s = 1
		}
		if !some {
			side, some = s, true
		} else if s != side {
			side = 0
		}
	})
	return side
}

// inParts runs a plan in parts, if an operator below filters and projections works by
// keys; it reports whether it has.
func (r *run) inParts(rel plan.Rel) (done bool, err error) {
	var above []plan.Rel
	node := rel
	for {
		if ins := keyedInputs(node); ins != nil {
			return true, r.cutAndRun(above, node, ins)
		}
		switch node.(type) {
		case *plan.Project, *plan.Filter:
			above = append(above, node)
			node = plan.Input(node)
		default:
			return r.overParts(above, node)
		}
	}
}

// overParts runs a plan whose upmost operator does not work by keys over the rows of
// its inputs, which are computed in parts; it reports whether there are such.
func (r *run) overParts(above []plan.Rel, node plan.Rel) (done bool, err error) {
	out := plan.MapChildren(node, func(in plan.Rel) plan.Rel {
		keyed := false
		plan.Walk(in, func(n plan.Rel) bool {
			keyed = keyed || len(keyedInputs(n)) > 0
			return !keyed
		})
		if _, recursive := node.(*plan.Recursive); err != nil || !keyed || recursive {
			return in
		}
		done = true
		cols := in.Columns()
		var rows columnar.Batch
		if rows, err = r.rowsOf(in, cols); err != nil {
			return in
		}
		return &plan.Constant{Cols: cols, Rows: rows}
	})
	if err != nil || !done {
		return false, err
	}
	for _, a := range slices.Backward(above) {
		out = plan.WithInput(a, out)
	}
	return true, r.circuit(out)
}

// cutAndRun writes the inputs of a node in parts and runs the plan over each.
func (r *run) cutAndRun(above []plan.Rel, node plan.Rel, ins []keyedInput) error {
	f, err := r.opts.Memory.Temp()
	if err != nil {
		return pgerror.New(pgerror.IOError, "no file for the rows of a query: %v", err)
	}
	defer f.Close()
	file := &partFile{file: f, memory: r.opts.Memory}
	parts := make([]part, fanOut)
	for i := range parts {
		parts[i].runs = make([][]blockRef, len(ins))
	}
	for i, in := range ins {
		w, err := r.partWriter(file, in, i, 0)
		if err != nil {
			return err
		}
		opts := *r.opts
		opts.Columns = 0
		if err := RunOnce(r.ctx, in.rel, r.reader, opts, func(b *columnar.Batch) error { return w.add(b, parts) }); err != nil {
			return err
		}
		if err := w.flush(parts); err != nil {
			return err
		}
	}
	whole := func(inputs []plan.Rel) plan.Rel {
		i := -1
		out := plan.MapChildren(node, func(plan.Rel) plan.Rel { i++; return inputs[i] })
		for _, a := range slices.Backward(above) {
			out = plan.WithInput(a, out)
		}
		return out
	}
	return r.runParts(file, parts, ins, 1, whole)
}

// runParts runs a plan over each of some parts; those that are too large it cuts again.
func (r *run) runParts(file *partFile, parts []part, ins []keyedInput, cuts int, whole func(inputs []plan.Rel) plan.Rel) error {
	for p := range parts {
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		if parts[p].bytes == 0 {
			continue
		}
		if parts[p].bytes > r.opts.Memory.Sort && cuts < maxCuts {
			smaller, err := r.cutAgain(file, &parts[p], ins, cuts)
			if err == nil {
				err = r.runParts(file, smaller, ins, cuts+1, whole)
			}
			if err != nil {
				return err
			}
			continue
		}
		inputs := make([]plan.Rel, len(ins))
		for i, in := range ins {
			cols := in.rel.Columns()
			var bs []*columnar.Batch
			for _, ref := range parts[p].runs[i] {
				b, err := file.read(ref)
				if err != nil {
					return err
				}
				bs = append(bs, &b)
			}
			inputs[i] = &plan.Constant{Cols: cols, Rows: columnar.ConcatBatches(kindsOf(cols), bs...)}
		}
		if err := r.circuit(whole(inputs)); err != nil {
			return err
		}
		if r.sorter.Enough() {
			return nil
		}
	}
	return nil
}

// cutAgain cuts a part into smaller ones.
func (r *run) cutAgain(file *partFile, p *part, ins []keyedInput, cuts int) ([]part, error) {
	parts := make([]part, fanOut)
	for i := range parts {
		parts[i].runs = make([][]blockRef, len(ins))
	}
	for i, in := range ins {
		w, err := r.partWriter(file, in, i, cuts)
		if err != nil {
			return nil, err
		}
		for _, ref := range p.runs[i] {
			b, err := file.read(ref)
			if err == nil {
				err = w.add(&b, parts)
			}
			if err == nil {
				err = r.ctx.Err()
			}
			if err != nil {
				return nil, err
			}
		}
		if err := w.flush(parts); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// part is the rows of one part: the blocks of each input.
type part struct {
	runs  [][]blockRef
	bytes int64
}

// partFile is a file of blocks of rows.
type partFile struct {
	file   *os.File
	memory *Memory
	end    int64
	buf    []byte
}

func (f *partFile) write(b *columnar.Batch) (blockRef, error) {
	f.buf = columnar.AppendBatch(f.buf[:0], b, nil)
	ref := blockRef{f.end, int64(len(f.buf))}
	if err := f.memory.wrote(len(f.buf)); err != nil {
		return ref, err
	}
	if _, err := f.file.WriteAt(f.buf, f.end); err != nil {
		return ref, pgerror.New(pgerror.IOError, "could not write rows of a query: %v", err)
	}
	f.end += ref.size
	return ref, nil
}

func (f *partFile) read(ref blockRef) (columnar.Batch, error) {
	buf := make([]byte, ref.size)
	_, err := io.ReadFull(io.NewSectionReader(f.file, ref.at, ref.size), buf)
	if err == nil {
		var b columnar.Batch
		if b, _, _, err = columnar.DecodeBatch(buf, false); err == nil {
			return b, nil
		}
	}
	return columnar.Batch{}, pgerror.New(pgerror.IOError, "could not read rows of a query: %v", err)
}

// partWriter cuts the rows of one input by the hash of their keys.
type partWriter struct {
	file    *partFile
	input   int
	cuts    int // before this one, which tell which bits of the hash to use
	keys    *expr.Program
	ctx     *expr.Context
	watch   expr.Watch
	waiting [fanOut][]*columnar.Batch
	rows    [fanOut]int
	bytes   [fanOut]int
	kinds   []columnar.Kind
	hash    []uint64
}

func (r *run) partWriter(file *partFile, in keyedInput, input, cuts int) (*partWriter, error) {
	m := expr.MapFilterProject{}
	for _, k := range in.keys {
		m.Outputs = append(m.Outputs, expr.KeyNorm(k))
	}
	p, err := expr.Compile(m)
	return &partWriter{file: file, input: input, cuts: cuts, keys: p, ctx: r.opts.Context, watch: r.opts.watch(), kinds: kindsOf(in.rel.Columns())}, err
}

// add takes rows.
func (w *partWriter) add(b *columnar.Batch, parts []part) error {
	if b.N == 0 {
		return nil
	}
	w.hash = slices.Grow(w.hash[:0], b.N)[:b.N]
	at := 0
	var failed error
	w.keys.ApplyParts(w.ctx, b, nil, w.watch, func(keys columnar.Batch, _ []dataflow.Diff) bool {
		columnar.HashCols(keys.Cols, keys.N, w.hash[at:at+keys.N])
		at += keys.N
		return failed == nil
	}, func(errs []expr.RowError) { failed = errs[0].Err })
	if failed != nil || at < b.N { // or nobody waits for it
		return failed
	}
	var idx [fanOut][]uint32
	for i, h := range w.hash {
		p := h >> (5 * w.cuts) % fanOut
		idx[p] = append(idx[p], uint32(i))
	}
	for p, rows := range idx {
		if len(rows) == 0 {
			continue
		}
		some := b.Gather(rows)
		w.waiting[p] = append(w.waiting[p], &some)
		w.rows[p] += len(rows)
		w.bytes[p] += some.MemSize()
		if w.rows[p] >= partRows || w.bytes[p] >= partBytes {
			if err := w.write(p, parts); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *partWriter) write(p int, parts []part) error {
	b := columnar.ConcatBatches(w.kinds, w.waiting[p]...)
	ref, err := w.file.write(&b)
	if err != nil {
		return err
	}
	parts[p].runs[w.input] = append(parts[p].runs[w.input], ref)
	parts[p].bytes += ref.size
	w.waiting[p], w.rows[p], w.bytes[p] = nil, 0, 0
	return nil
}

func (w *partWriter) flush(parts []part) error {
	for p := range w.waiting {
		if w.rows[p] > 0 {
			if err := w.write(p, parts); err != nil {
				return err
			}
		}
	}
	return nil
}
