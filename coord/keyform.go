package coord

import (
	"context"
	"strconv"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// keyForm is how rows of a table have the key of a unique index: which columns it
// is, after the values of the index's expressions were added to the rows', and which
// rows have one.
type keyForm struct {
	of    *catalog.Object // the index
	width int             // columns of the table
	cols  []int
	ts    []types.Type
	prog  *expr.Program // the expressions, and whether the row is in the index; nil: columns only, of all rows
}

// keyForm is the form of an index, made once for a version of it.
func (c *Coordinator) keyForm(cat *catalog.Snapshot, x *catalog.Object) (*keyForm, error) {
	if v, ok := c.keyForms.Load(x.ID); ok && v.(*keyForm).of == x {
		return v.(*keyForm), nil
	}
	k := &keyForm{of: x, width: len(x.Columns), cols: collectionKey(x)}
	for _, part := range x.Key {
		k.ts = append(k.ts, x.KeyType(part, x.Columns))
	}
	if x.Plain() {
		return k, nil
	}
	var in expr.Expr = boolConst(true)
	bound := true
	if x.Where != "" {
		where := c.bindOver(cat, x, x.Where, types.Bool)
		bound = where != nil
		in = &expr.Coalesce{Args: []expr.Expr{where, boolConst(false)}, Typ: types.Bool}
	}
	var outs []expr.Expr
	for _, e := range x.Exprs {
		v := c.bindOver(cat, x, e.SQL, types.Unknown)
		bound = bound && v != nil
		if x.Where != "" { // elsewhere it might fail
			v = &expr.Case{Whens: []expr.When{{Cond: in, Then: v}}, Typ: e.Type}
		}
		outs = append(outs, v)
	}
	if !bound {
		return nil, pgerror.New(pgerror.ObjectNotInPrerequisiteState, "the expressions of index \"%s\" are not valid any more", x.Name).
			WithHint("Drop the index.")
	}
	prog, err := expr.Compile(expr.MapFilterProject{Outputs: append(outs, in)})
	if err != nil {
		return nil, err
	}
	k.prog = prog
	c.keyForms.Store(x.ID, k)
	return k, nil
}

// emptyForm is a form by which no row is in an index: of one whose expressions cannot be
// bound when a data directory is opened. Who writes to its table is told so.
func emptyForm(x *catalog.Object) (*keyForm, error) {
	k := &keyForm{of: x, width: len(x.Columns), cols: collectionKey(x)}
	for _, part := range x.Key {
		k.ts = append(k.ts, x.KeyType(part, x.Columns))
	}
	var outs []expr.Expr
	for _, e := range x.Exprs {
		outs = append(outs, expr.NullConst(e.Type))
	}
	var err error
	k.prog, err = expr.Compile(expr.MapFilterProject{Outputs: append(outs, boolConst(false))})
	return k, err
}

func boolConst(v bool) *expr.Const {
	return &expr.Const{Val: columnar.FromSlice([]bool{v}, nil), Typ: types.Bool}
}

// keyed is rows with the values of a key's expressions after their columns.
type keyedRows struct {
	*keyForm
	rows *columnar.Batch
	in   *columnar.Vec // which rows are in the index; nil: all
	none bool          // the expressions fail: the rows are refused
}

// over adds the values of the expressions to rows.
func (k *keyForm) over(ctx *expr.Context, rows *columnar.Batch) keyedRows {
	if k.prog == nil {
		return keyedRows{keyForm: k, rows: rows}
	}
	out, _, errs := k.prog.Apply(ctx, rows, nil)
	if len(errs) > 0 {
		return keyedRows{keyForm: k, rows: rows, none: true}
	}
	n := len(out.Cols) - 1
	cols := append(append(make([]*columnar.Vec, 0, k.width+n), rows.Cols[:k.width]...), out.Cols[:n]...)
	return keyedRows{keyForm: k, rows: &columnar.Batch{Cols: cols, N: rows.N}, in: out.Cols[n]}
}

// has reports whether row i is in the index.
func (r *keyedRows) has(i int) bool { return !r.none && (r.in == nil || r.in.Bools()[i]) }

// formOf is the form of a key of a table.
func (s *Session) formOf(t *catalog.Object, k *catalog.Key) (*keyForm, error) {
	if k.Derived {
		if x := s.snapshot().ByID(k.Object); x != nil {
			return s.c.keyForm(s.snapshot(), x)
		}
	}
	return &keyForm{width: len(t.Columns), cols: k.Columns, ts: columnTypes(t.Columns, k.Columns)}, nil
}

// wanted are the keys of rows that may conflict with others.
func (r *keyedRows) wanted(k *catalog.Key) *keySet {
	return newKeySet(r.ts, r.rows, r.cols, func(i int) bool { return r.counts(k, i) })
}

// counts says whether row i may conflict with others.
func (r *keyedRows) counts(k *catalog.Key, i int) bool {
	return r.has(i) && (k.NullsNotDistinct || !hasNull(r.rows, r.cols, i))
}

// withUnique is withKeys for a key of a table.
func (s *Session) withUnique(ctx context.Context, t *catalog.Object, k *catalog.Key, want *keySet, f keyedRow) error {
	if !k.Derived {
		return s.withKeys(ctx, t, k.Columns, want, f)
	}
	form, err := s.formOf(t, k)
	if err != nil || len(want.keys) == 0 {
		return err
	}
	if !s.rewritten(t.ID) && !s.ownObject(t.ID) {
		if coll := s.c.collection(k.Object); coll != nil {
			err = s.findKeys(ctx, coll, form.of.Index.Encoded, form.width, want, f)
		} else {
			err = s.scanForm(ctx, t, form, want, f)
		}
		if err != nil {
			return err
		}
	}
	p := s.tx.pendingThrough(pendingKey{t.ID, "index " + strconv.FormatUint(uint64(k.Object), 10)}, func(b *columnar.Batch) func([]byte, int) ([]byte, bool) {
		r := form.over(s.exprContext(), b)
		return func(dst []byte, i int) ([]byte, bool) {
			return appendKey(dst, r.rows, r.cols, r.ts, i), r.has(i)
		}
	})
	s.tx.eachPending(p, want, f)
	return ctx.Err()
}

// scanForm looks for keys of a form in all rows of a table.
func (s *Session) scanForm(ctx context.Context, t *catalog.Object, form *keyForm, want *keySet, f keyedRow) error {
	var buf []byte
	return s.scanTable(ctx, t, func(d *dataflow.Delta) {
		r := form.over(s.exprContext(), &d.Batch)
		for i := range d.N {
			if !r.has(i) {
				continue
			}
			buf = appendKey(buf[:0], r.rows, r.cols, r.ts, i)
			if k, ok := want.at[string(buf)]; ok {
				f(int(k), &d.Batch, i, d.Diff(i))
			}
		}
	})
}

// keyNames are the parts of a key of a table as errors show them.
func (s *Session) keyNames(t *catalog.Object, k *catalog.Key) []string {
	x := s.snapshot().ByID(k.Object)
	out := make([]string, len(k.Columns))
	for i, part := range k.Columns {
		if n, ok := catalog.ExprOf(part); ok && x != nil {
			out[i] = x.Exprs[n].SQL
		} else {
			out[i] = t.Columns[part].Name
		}
	}
	return out
}

// encodedIndex says whether the equality of the values of an index's key is not that
// of their bits.
func encodedIndex(x *catalog.Object) bool {
	for _, k := range x.Key {
		if !bitwiseEqual(x.KeyType(k, x.Columns)) {
			return true
		}
	}
	return false
}

// dropFromKeys takes the key of an index away from its table.
func dropFromKeys(t *catalog.Object, index plan.ObjectID) {
	kept := t.Unique[:0:0]
	for _, k := range t.Unique {
		if k.Object != index {
			kept = append(kept, k)
		}
	}
	t.Unique = kept
}
