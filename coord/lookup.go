package coord

import (
	"context"
	"iter"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// lookupForm is how the rows of an index, or of a collection with a key of its own,
// are found: the types of its key, and whether it is arranged by the key's encoded
// form, in a column before the others.
func lookupForm(o *catalog.Object) (ts []types.Type, encoded bool) {
	if o == nil {
		return nil, false
	}
	if o.Kind != catalog.KindIndex {
		return columnTypes(o.Columns, collectionKey(o)), false
	}
	for _, k := range o.Key {
		ts = append(ts, o.KeyType(k, o.Columns))
	}
	return ts, o.Index != nil && o.Index.Encoded
}

// skipCols leaves the first columns of changes out.
func skipCols(d *dataflow.Delta, n int) *dataflow.Delta {
	if n == 0 {
		return d
	}
	return &dataflow.Delta{Batch: columnar.Batch{Cols: d.Cols[n:], N: d.N}, Diffs: d.Diffs}
}

// lookup gives the rows of a Lookup, or more if that is cheaper. It reports whether
// to go on.
func (r *reader) lookup(l *plan.Lookup, give func(*dataflow.Delta) bool) bool {
	sn := r.snaps[l.Index]
	if sn == nil {
		return true
	}
	ts, encoded := lookupForm(r.s.snapshot().ByID(l.Index))
	skip := 0
	if encoded {
		skip = 1
	}
	more := true
	pass := func(d *dataflow.Delta) bool {
		more = give(skipCols(d, skip))
		return more
	}
	if l.Ordered && len(l.Values[0]) == 0 && l.Lower == nil && l.Upper == nil {
		sn.ScanConsolidated(pass) // only an order was wanted
		return more
	}
	if l.Ordered {
		// From about a quarter of the rows on, a scan is faster.
		if sel, none := r.selectRange(sn, l, 0.25); sel != nil {
			sel.Each(pass)
			return more
		} else if none {
			return true
		}
		sn.ScanConsolidated(pass)
		return more
	}
	keys, n, ok := r.lookupKeys(l)
	switch {
	case !ok || n > scanFrom && n > sn.Len()/8:
		sn.ScanConsolidated(pass)
	case n > 0:
		if encoded {
			keys = encodedKeys(keys, ts, n)
		}
		sn.Lookup(keys, n, pass)
	}
	return more
}

const (
	// scanFrom is how many keys are looked up however few rows there are.
	scanFrom = 16
	// maxKeys bounds how many keys are looked up.
	maxKeys = 1 << 16
)

// lookupKeys evaluates the keys of a lookup, n of them, without those that have a
// NULL. ok is false if that fails, and the filter will tell, if there is a row; or if
// there are too many.
func (r *reader) lookupKeys(l *plan.Lookup) (keys []*columnar.Vec, n int, ok bool) {
	var bs []*columnar.Builder
	ok = r.eachKey(l, func(key []keyPart) bool {
		for i, v := range key {
			if n == 0 {
				bs = append(bs, columnar.NewBuilder(v.vals.Kind(), len(l.Values)))
			}
			bs[i].AppendFrom(v.vals, v.at)
		}
		n++
		return n <= maxKeys
	})
	for _, b := range bs {
		keys = append(keys, b.Build())
	}
	return keys, n, ok
}

// keyPart is a value of a part of a key, one of a vector.
type keyPart struct {
	vals *columnar.Vec
	at   int
}

// eachKey evaluates the keys of a lookup. Those that have a NULL, where it is not
// looked for, are left out. ok is
// false if a value fails, or f does not go on.
func (r *reader) eachKey(l *plan.Lookup, f func(key []keyPart) bool) (ok bool) {
	for _, es := range l.Values {
		parts := make([]keyPart, len(es))
		none := false
		for i, e := range es {
			var err error
			if parts[i].vals, err = r.keyValues(e); err != nil {
				return false
			}
			_, safe := expr.NullSafeValue(e)
			none = none || parts[i].vals.Len() == 0 || parts[i].vals.Null(0) && !safe
		}
		for more := !none; more; {
			if !f(parts) {
				return false
			}
			more = false
			for i := len(parts) - 1; i >= 0 && !more; i-- { // the next combination
				p := &parts[i]
				p.at++
				if more = p.at < p.vals.Len(); !more {
					p.at = 0
				}
			}
		}
	}
	return true
}

// keyValues are the values that an expression of a lookup stands for.
func (r *reader) keyValues(e expr.Expr) (*columnar.Vec, error) {
	if _, ok := expr.AnyArray(e); ok {
		return expr.AnyValues(e, r.ctx)
	}
	if v, ok := expr.NullSafeValue(e); ok {
		e = v
	}
	c, err := expr.EvalConst(e, r.ctx)
	if err != nil {
		return nil, err
	}
	return c.Val, nil
}

// encodedKeys are keys in their encoded form.
func encodedKeys(keys []*columnar.Vec, ts []types.Type, n int) []*columnar.Vec {
	rows := keyedRows{keyForm: &keyForm{ts: ts}, rows: &columnar.Batch{Cols: keys, N: n}}
	for i := range keys {
		rows.cols = append(rows.cols, i)
	}
	return []*columnar.Vec{rows.encoded()}
}

// selectRange finds the rows of an ordered lookup. It gives nil if they are thought
// to be more than a share of all, or cannot be found; or if there can be none.
func (r *reader) selectRange(sn *trace.TraceSnapshot, l *plan.Lookup, most float64) (sel *trace.Selection, none bool) {
	o, ts := r.ordering(l)
	rs, ok := r.ranges(l, ts)
	if !ok {
		return nil, false
	}
	if len(rs) == 0 {
		return nil, true
	}
	sel, ok = sn.Select(o, rs, most)
	if !ok {
		return nil, false
	}
	r.read.sorted += sel.Sorted
	return sel, false
}

// ordering is the order of the rows of a collection by its key.
func (r *reader) ordering(l *plan.Lookup) (*trace.Ordering, []types.Type) {
	o := r.s.snapshot().ByID(l.Index)
	ts, encoded := lookupForm(o)
	out := &trace.Ordering{Name: "key", Cols: make([]int, len(ts)), Keys: make([]func(*columnar.Vec) *columnar.Vec, len(ts))}
	copy(out.Cols, collectionKey(o))
	for i, t := range ts {
		if encoded {
			out.Cols[i]++
		}
		if types.NeedsSortKey(t) {
			out.Keys[i] = func(v *columnar.Vec) *columnar.Vec { return types.SortKeyVec(t, v) }
		}
	}
	return out, ts
}

// ranges evaluates the ranges of an ordered lookup over a key of some types.
func (r *reader) ranges(l *plan.Lookup, ts []types.Type) (out []trace.Range, ok bool) {
	var all trace.Range
	bound := func(b *plan.Bound) (v *columnar.Vec, open, null, ok bool) {
		if b == nil {
			return nil, false, false, true
		}
		c, err := expr.EvalConst(b.Value, r.ctx)
		if err != nil || c.Val.Null(0) {
			return nil, false, err == nil, err == nil
		}
		return types.SortKeyVec(ts[len(l.Values[0])], c.Val), b.Open, false, true
	}
	var null1, null2, ok1, ok2 bool
	all.Lower, all.LowerOpen, null1, ok1 = bound(l.Lower)
	all.Upper, all.UpperOpen, null2, ok2 = bound(l.Upper)
	if !ok1 || !ok2 || null1 || null2 {
		return nil, ok1 && ok2
	}
	ok = r.eachKey(l, func(key []keyPart) bool {
		one := all
		for i, v := range key {
			one.Equal = append(one.Equal, types.SortKeyVec(ts[i], v.vals.Slice(v.at, v.at+1)))
		}
		out = append(out, one)
		return len(out) <= maxKeys
	})
	return out, ok
}

// InOrder implements render.OrderedReader.
func (r *reader) InOrder(ctx context.Context, get *plan.Get) (rows iter.Seq2[*dataflow.Delta, error], most int) {
	l := get.Lookup
	sn := r.snaps[l.Index]
	if sn == nil || !r.Positive(get) {
		return nil, 0
	}
	sel, none := r.selectRange(sn, l, 1)
	if sel == nil && !none {
		return nil, 0
	}
	_, encoded := lookupForm(r.s.snapshot().ByID(l.Index))
	skip := 0
	if encoded {
		skip = 1
	}
	return func(yield func(*dataflow.Delta, error) bool) {
		if none {
			return
		}
		sel.Ordered(l.Desc, func(d *dataflow.Delta) bool {
			if ctx.Err() != nil {
				yield(nil, context.Cause(ctx))
				return false
			}
			r.read.rows += d.N
			return yield(selectCols(skipCols(d, skip), get), nil)
		})
	}, sn.Len() / 8
}
