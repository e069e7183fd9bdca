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

// distinct removes duplicate rows of r.
func (b *builder) distinct(r plan.Rel) coll {
	c := b.rel(r, nil)
	if constantRows(r) {
		c, _ = b.some(r, c, 0, 1)
	}
	return b.distinctColl(c, typesOf(r.Columns()))
}

// constantRows reports whether all rows of r are the same.
func constantRows(r plan.Rel) bool {
	p, ok := r.(*plan.Project)
	return ok && !slices.ContainsFunc(p.Exprs, func(e expr.Expr) bool {
		_, constant := e.(*expr.Const)
		return !constant
	})
}

// distinctColl removes duplicate rows. Where rows that look different may be
// equal, the least of them stands for all.
func (b *builder) distinctColl(c coll, typs []types.Type) coll {
	if !slices.ContainsFunc(typs, func(t types.Type) bool { return !plan.BitEqual(t) }) {
		return b.base(b.c.Distinct(b.stream(c)), typs)
	}
	s, keys := b.keyed(c, typs)
	return b.firstColumns(b.c.TopK(s, keys, nil, differential.TopKOptions{Limit: 1}), typs)
}

// keyed is the collection's stream with normal forms of its columns appended
// where those are needed, and the columns that tell rows apart.
func (b *builder) keyed(c coll, typs []types.Type) (s differential.Stream, keys []int) {
	outs := make([]expr.Expr, len(typs))
	keys = make([]int, len(typs))
	for i, t := range typs {
		outs[i] = c.col(i)
		keys[i] = i
		if !plan.BitEqual(t) {
			keys[i] = len(outs)
		}
		if keys[i] != i {
			// Not keyExpr: numeric(8,2) against numeric needs the normal form of both.
			outs = append(outs, expr.KeyNorm(outs[i]))
		}
	}
	return b.mapped(c, outs), keys
}

// firstColumns is the first columns of a stream, which have the types typs.
func (b *builder) firstColumns(s differential.Stream, typs []types.Type) coll {
	all := slices.Clone(typs)
	for _, k := range s.Kinds()[len(typs):] {
		all = append(all, anyOf(k))
	}
	c := b.base(s, all)
	c.outs = columnsOf(typs)
	return c
}

// setOp renders UNION, INTERSECT and EXCEPT.
func (b *builder) setOp(r *plan.SetOp) coll {
	typs := typesOf(r.Cols)
	ins := make([]coll, len(r.Inputs))
	for i, in := range r.Inputs {
		ins[i] = b.rel(in, nil)
	}
	if r.Kind == plan.Union {
		ss := make([]differential.Stream, len(ins))
		for i, c := range ins {
			ss[i] = b.stream(c)
		}
		u := b.base(b.c.Concat(kindsOf(r.Cols), ss...), typs)
		if r.All {
			return u
		}
		return b.distinctColl(u, typs)
	}
	out := ins[0]
	for _, in := range ins[1:] {
		out = b.difference(r, out, in, typs)
	}
	return out
}

// difference is INTERSECT or EXCEPT of two collections. Where equal rows may
// look different it is a semi or anti join, of all rows numbered within their
// equals or of the distinct ones.
func (b *builder) difference(r *plan.SetOp, l, rr coll, typs []types.Type) coll {
	if !slices.ContainsFunc(typs, func(t types.Type) bool { return !plan.BitEqual(t) }) {
		a, c := b.stream(l), b.stream(rr)
		if r.Kind == plan.Intersect {
			return b.base(b.c.Intersect(a, c, r.All), typs)
		}
		return b.base(b.c.Except(a, c, r.All), typs)
	}
	ls, lk := b.keyed(l, typs)
	rs, rk := b.keyed(rr, typs)
	if r.All {
		all := differential.TopKOptions{Limit: -1, RowNumber: true}
		lk, rk = append(lk, len(ls.Kinds())), append(rk, len(rs.Kinds()))
		ls, rs = b.c.TopK(ls, lk[:len(typs)], nil, all), b.c.TopK(rs, rk[:len(typs)], nil, all)
	} else {
		ls = b.c.TopK(ls, lk, nil, differential.TopKOptions{Limit: 1})
	}
	kind := differential.JoinSemi
	if r.Kind == plan.Except {
		kind = differential.JoinAnti
	}
	oks, _ := b.c.Join(b.c.Arrange(ls, lk), b.c.Arrange(rs, rk), differential.JoinOptions{
		Kind: kind, NullSafe: true, Out: upTo(len(typs)),
	})
	return b.base(oks, typs)
}

// topK renders limits per group.
func (b *builder) topK(r *plan.TopK) coll {
	o := differential.TopKOptions{
		WithTies:   r.WithTies,
		AppendOnly: plan.AppendOnly(r.Input),
		RowNumber:  r.RowNumber,
	}
	var err error
	if o.Limit, o.Offset, err = limits(r.Limit, r.Offset, b.opts.Context); err != nil {
		b.fail(err)
	}
	typs := typesOf(r.Input.Columns())
	c := b.rel(r.Input, nil)
	if len(r.Order) == 0 && len(r.Partition) == 0 && !r.WithTies && !r.RowNumber {
		if out, ok := b.some(r.Input, c, o.Offset, o.Limit); ok {
			return out
		}
	}
	outs := make([]expr.Expr, len(typs))
	for i := range typs {
		outs[i] = c.col(i)
	}
	place := func(i int, e expr.Expr) int {
		if e == outs[i] {
			return i
		}
		if at := slices.IndexFunc(outs[len(typs):], func(x expr.Expr) bool { return expr.Equal(x, e) }); at >= 0 {
			return len(typs) + at
		}
		outs = append(outs, e)
		return len(outs) - 1
	}
	part := make([]int, 0, len(r.Partition))
	for _, p := range r.Partition {
		if at := place(p, keyExpr(outs[p])); !slices.Contains(part, at) {
			part = append(part, at)
		}
	}
	order := make([]differential.Order, len(r.Order))
	for i, k := range r.Order {
		order[i] = differential.Order{
			Col: place(k.Col, sortExpr(outs[k.Col])), Desc: k.Desc, NullsFirst: k.NullsFirst,
			NotNull: r.Input.Columns()[k.Col].NotNull,
		}
	}
	s := b.c.TopK(b.mapped(c, outs), part, order, o)
	out := b.firstColumns(s, typs)
	if r.RowNumber {
		out.outs = append(out.outs, &expr.Column{Index: len(outs), Typ: types.Int8})
	}
	return out
}

// limits are the values of LIMIT and OFFSET; limit -1 means none.
func limits(limit, offset expr.Expr, ctx *expr.Context) (l, o int64, err error) {
	l = -1
	if limit != nil {
		n, ok, err := count(limit, ctx)
		switch {
		case err != nil:
			return 0, 0, err
		case ok && n < 0:
			return 0, 0, pgerror.New(pgerror.InvalidRowCountInLimit, "LIMIT must not be negative")
		case ok:
			l = n
		}
	}
	if offset != nil {
		n, ok, err := count(offset, ctx)
		switch {
		case err != nil:
			return 0, 0, err
		case ok && n < 0:
			return 0, 0, pgerror.New(pgerror.InvalidRowCountInOffset, "OFFSET must not be negative")
		case ok:
			o = n
		}
	}
	return l, o, nil
}

// count evaluates a row count; ok is false for NULL.
func count(e expr.Expr, ctx *expr.Context) (n int64, ok bool, err error) {
	e, err = expr.Coerce(e, types.Int8, expr.CastAssignment, 0)
	if err != nil {
		return 0, false, err
	}
	c, err := expr.EvalConst(e, ctx)
	if err != nil || c.Val.Null(0) {
		return 0, false, err
	}
	return c.Val.Int64s()[0], true, nil
}

// assert renders the guard of scalar subqueries: the rows pass, and each key
// with more than one adds an error.
func (b *builder) assert(r *plan.Assert) coll {
	typs := typesOf(r.Input.Columns())
	c := b.rel(r.Input, nil)
	if len(r.Key) == 0 {
		c, _ = b.some(r.Input, c, 0, 2)
	}
	s := b.stream(c)
	counts, _ := b.c.Reduce(s, r.Key, []differential.Agg{{Op: differential.AggCount, Arg: -1, Filter: -1}},
		differential.ReduceOptions{})
	_, errs := b.c.Map(counts, moreThanOne{len(r.Key)}, nil)
	b.errs = append(b.errs, errs)
	return b.base(s, typs)
}

// moreThanOne makes an error of each row whose column col is above 1.
type moreThanOne struct{ col int }

// Apply implements differential.Mapper.
func (m moreThanOne) Apply(in *dataflow.Delta, _, emitErr func(*dataflow.Delta)) {
	var failed []expr.RowError
	for i, n := range in.Cols[m.col].Int64s() {
		if n > 1 {
			failed = append(failed, expr.RowError{Row: i, Err: errMoreThanOneRow})
		}
	}
	if len(failed) > 0 {
		emitErr(errorDelta(failed, in.Diffs))
	}
}

var errMoreThanOneRow = pgerror.New(pgerror.CardinalityViolation,
	"more than one row returned by a subquery used as an expression")

// flatMap renders a table function.
func (b *builder) flatMap(r *plan.FlatMap) coll {
	n := plan.Arity(r.Input)
	c := b.rel(r.Input, nil)
	outs := make([]expr.Expr, 0, n+len(r.Args))
	for i := range n {
		outs = append(outs, c.col(i))
	}
	for _, a := range r.Args {
		outs = append(outs, c.over(a))
	}
	typs := typesOf(r.Cols)
	f := &flatMapper{
		ctx: b.opts.Context, watch: b.opts.watch(), fn: r.Fn, in: n, ordinality: r.Ordinality, outer: r.Outer, kinds: kindsOf(r.Cols), typs: typs[n:],
	}
	oks, errs := b.c.Map(b.mapped(c, outs), f, f.kinds)
	b.errs = append(b.errs, errs)
	return b.base(oks, typs)
}

// flatMapper calls a table function for each row: its input is the columns that
// stay, then the function's arguments.
type flatMapper struct {
	ctx        *expr.Context
	watch      expr.Watch
	fn         *expr.TableFunction
	in         int
	ordinality bool
	outer      bool
	kinds      []columnar.Kind
	typs       []types.Type // of the columns that the function adds
}

// flatRows and flatBytes are about how many rows and bytes an emitted delta has.
const (
	flatRows  = 1 << 15
	flatBytes = 16 << 20
)

// cutRows is how many rows one call of a function gives that can be cut.
const cutRows = 1 << 16

// Cut implements differential.Expander.
func (f *flatMapper) Cut(d *dataflow.Delta) (out []*dataflow.Delta) {
	if f.fn.Cut == nil || f.ordinality {
		return nil
	}
	from := 0
	slice := func(to int) {
		if from < to {
			out = append(out, d.Slice(from, to))
		}
	}
	for i := range d.N {
		args := f.fn.Cut(d.Cols[f.in:], i, cutRows)
		if args == nil {
			continue
		}
		slice(i)
		from = i + 1
		n := args[0].Len()
		same := slices.Repeat([]uint32{uint32(i)}, n)
		c := &dataflow.Delta{Batch: columnar.Batch{N: n}}
		for _, v := range d.Cols[:f.in] {
			c.Cols = append(c.Cols, v.Gather(same))
		}
		c.Cols = append(c.Cols, args...)
		if d.Diffs != nil {
			c.Diffs = slices.Repeat(d.Diffs[i:i+1], n)
		}
		out = append(out, c)
	}
	if from > 0 {
		slice(d.N)
	}
	return out
}

// Apply implements differential.Mapper.
func (f *flatMapper) Apply(in *dataflow.Delta, emit, emitErr func(*dataflow.Delta)) {
	x := expr.NewEval(f.ctx).Watched(f.watch)
	args := in.Cols[f.in:]
	added := len(f.kinds) - f.in
	if f.ordinality {
		added--
	}
	builders := make([]*columnar.Builder, added)
	for i := range builders {
		builders[i] = x.Builder(f.kinds[f.in+i], 0)
	}
	var rows []uint32
	var ords []int64
	var failed []expr.RowError
	bytes := 0
	flush := func() {
		if len(rows) > 0 {
			f.emit(in, rows, builders, ords, bytes, emit)
			rows, ords, bytes = nil, nil, 0
		}
	}
	for i := range in.N {
		if i%64 == 63 && f.watch.Stopped != nil && f.watch.Stopped() {
			return
		}
		n, err := 0, error(nil)
		if !f.fn.Strict || !columnar.AnyNull(args, i) {
			var wanted bool
			wanted, err = expr.Guarded(func() (err error) {
				n, err = f.fn.Eval(x, args, i, builders)
				return err
			})
			if !wanted {
				return
			}
		}
		if err != nil {
			failed = append(failed, expr.RowError{Row: i, Err: pgerror.As(err)})
			n = len(rows)
			for k, b := range builders { // drop what it gave before it failed
				v := b.Build().Slice(0, n)
				b.AppendVec(v)
				builders[k] = b
			}
			continue
		}
		for k := range n {
			rows = append(rows, uint32(i))
			ords = append(ords, int64(k+1))
		}
		if n == 0 && f.outer {
			for _, b := range builders {
				b.Null()
			}
			rows, ords = append(rows, uint32(i)), append(ords, 0)
		}
		bytes += n * rowBytes(in.Cols[:f.in], i)
		if len(rows) >= flatRows || bytes+dataBytes(builders) >= flatBytes {
			flush()
		}
	}
	flush()
	if len(failed) > 0 {
		emitErr(errorDelta(failed, in.Diffs))
	}
}

// rowBytes is the bytes of row i that are of variable length.
func rowBytes(cols []*columnar.Vec, i int) int {
	n := 0
	for _, v := range cols {
		if v.Kind() == columnar.KindBytes {
			n += len(v.Bytes(i))
		}
	}
	return n
}

func dataBytes(bs []*columnar.Builder) int {
	n := 0
	for _, b := range bs {
		n += b.DataLen()
	}
	return n
}

// emit puts rows together; those of which the input columns take so many bytes that
// they should not be there at once, one part after the other.
func (f *flatMapper) emit(in *dataflow.Delta, rows []uint32, builders []*columnar.Builder, ords []int64, bytes int, emit func(*dataflow.Delta)) {
	added := make([]*columnar.Vec, len(builders))
	for k, b := range builders {
		added[k] = b.Build()
	}
	step := len(rows)
	if bytes > 2*flatBytes {
		step = max(int(int64(step)*flatBytes/int64(bytes)), 1)
	}
	for lo := 0; lo < len(rows); lo += step {
		if lo > 0 && f.watch.Stopped != nil && f.watch.Stopped() {
			return
		}
		hi := min(lo+step, len(rows))
		part := make([]*columnar.Vec, len(added))
		for k, v := range added {
			part[k] = v.Slice(lo, hi)
		}
		emit(f.delta(in, rows[lo:hi], part, ords[lo:hi:hi]))
	}
}

// delta puts together rows: input columns, function columns, ordinality.
func (f *flatMapper) delta(in *dataflow.Delta, rows []uint32, added []*columnar.Vec, ords []int64) *dataflow.Delta {
	d := &dataflow.Delta{Batch: columnar.Batch{N: len(rows)}}
	for _, v := range in.Cols[:f.in] {
		d.Cols = append(d.Cols, v.Gather(rows))
	}
	d.Cols = append(d.Cols, added...)
	if f.ordinality {
		var nulls columnar.Bitmap
		for i, o := range ords {
			if o == 0 {
				if nulls == nil {
					nulls = columnar.NewBitmap(len(ords))
				}
				nulls.Set(i)
			}
		}
		d.Cols = append(d.Cols, columnar.FromSlice(ords, nulls))
	}
	if in.Diffs != nil {
		d.Diffs = make([]dataflow.Diff, len(rows))
		for i, r := range rows {
			d.Diffs[i] = in.Diffs[r]
		}
	}
	return d
}
