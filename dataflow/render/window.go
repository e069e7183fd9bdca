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

// window renders window functions: GroupMap by the partition, whose rows come
// in the window's order, computes all calls for the partitions that change.
func (b *builder) window(r *plan.Window) coll {
	n := plan.Arity(r.Input)
	in := b.rel(r.Input, nil)
	g := &grouping{b: b, in: in}
	f := &windowFunc{ctx: b.opts.Context, typs: typesOf(r.Cols), poll: b.opts.poll}
	for i := range n {
		f.shown = append(f.shown, g.column(&expr.Column{Index: i, Typ: f.typs[i]}))
	}
	g.keys = make([]int, len(r.Partition))
	for i, e := range r.Partition {
		g.keys[i] = g.keyColumn(keyExpr(e), i)
	}
	for _, s := range r.Order {
		f.order = append(f.order, differential.Order{Col: g.column(sortExpr(s.Expr)), Desc: s.Desc, NullsFirst: s.NullsFirst})
	}
	for i := range r.Calls {
		f.calls = append(f.calls, b.windowCall(g, r, &r.Calls[i]))
		f.calls[i].index = i
	}
	s := b.mapped(in, g.outs)
	o := differential.GroupMapOptions{Order: f.order}
	if n, ok := f.needs(r); ok {
		f.needed = n
		if n.local() {
			o.Reach = &n.reach
		} else {
			o.Running = &differential.Running{Pieces: f, RowByRow: true, Peers: n.peers, Backward: n.back, Sized: n.sized, Wide: n.wide, Stateless: !n.back && !n.sized && !n.forth, Reach: n.reach}
		}
	}
	oks, errs := b.c.GroupMap(s, g.keys, kindsOf(r.Cols), f, o)
	b.errs = append(b.errs, errs)
	return b.base(oks, f.typs)
}

// windowCall places what one call reads, and resolves its frame.
func (b *builder) windowCall(g *grouping, r *plan.Window, c *plan.WindowCall) *windowCall {
	w := &windowCall{name: c.Name, agg: c.Agg, typ: c.Typ, argTypes: exprTypes(c.Args), filter: -1, ignoreNulls: c.IgnoreNulls}
	for _, e := range c.Args {
		w.args = append(w.args, g.column(e))
	}
	if c.Filter != nil {
		w.filter = g.column(c.Filter)
	}
	w.frame.unit, w.frame.exclude = c.Frame.Unit, c.Frame.Exclude
	w.frame.start = b.bound(g, r, c.Frame, c.Frame.Start, "starting")
	w.frame.end = b.bound(g, r, c.Frame, c.Frame.End, "ending")
	return w
}

// bound resolves one end of a frame.
func (b *builder) bound(g *grouping, r *plan.Window, f plan.Frame, e plan.FrameBound, which string) bound {
	out := bound{kind: e.Kind}
	if e.Kind != plan.OffsetPreceding && e.Kind != plan.OffsetFollowing {
		return out
	}
	k, err := expr.EvalConst(e.Offset, b.opts.Context)
	if err != nil {
		b.fail(err)
		return out
	}
	if k.Val.Null(0) {
		b.fail(pgerror.New(pgerror.NullValueNotAllowed, "frame %s offset must not be null", which))
		return out
	}
	if f.Unit != plan.FrameRange {
		out.rows, _ = plan.IntConst(k)
		if out.rows < 0 {
			b.fail(pgerror.New(pgerror.InvalidPrecedingOrFollowing, "frame %s offset must not be negative", which))
		}
		return out
	}
	b.rangeBound(g, r, e, k, which == "ending", &out)
	return out
}

// rangeBound places the value that limits a RANGE frame, and the ordering
// column in the same type.
func (b *builder) rangeBound(g *grouping, r *plan.Window, e plan.FrameBound, k *expr.Const, end bool, out *bound) {
	s := r.Order[0]
	if o := s.Expr.Type().OID; o == types.OIDTime || o == types.OIDTimeTZ {
		var err error
		if s.Expr, k, err = withinDay(s.Expr, k); err != nil {
			b.fail(err)
			return
		}
	}
	if negative(k) {
		b.fail(pgerror.New(pgerror.InvalidPrecedingOrFollowing, "invalid preceding or following size in window function"))
		return
	}
	op := "+"
	if (e.Kind == plan.OffsetPreceding) != s.Desc {
		op = "-"
	}
	limit, err := expr.NewOp(op, s.Expr, k, 0)
	if err == nil {
		limit, err = infinitelyFar(limit, s, k, op == "-", end)
	}
	if err != nil {
		b.fail(err)
		return
	}
	value, err := expr.Coerce(s.Expr, types.Of(limit.Type().OID), expr.CastImplicit, 0)
	if err != nil {
		// The sum has a narrower type than the column: bring it back.
		value = s.Expr
		if limit, err = expr.Coerce(limit, types.Of(s.Expr.Type().OID), expr.CastExplicit, 0); err != nil {
			b.fail(err)
			return
		}
	}
	out.value = g.column(sortExpr(value))
	// A limit beyond its type's range is no limit, and no error: so it is
	// computed by the call itself.
	limit = g.in.over(sortExpr(limit))
	expr.Columns(limit, func(c *expr.Column) {
		if !slices.Contains(out.source, c.Index) {
			out.source = append(out.source, c.Index)
		}
	})
	prog, err := expr.Compile(expr.MapFilterProject{Outputs: []expr.Expr{
		expr.Remap(limit, func(i int) int { return slices.Index(out.source, i) }),
		&expr.Column{Index: len(out.source), Typ: types.Int8},
	}})
	if err != nil {
		b.fail(err)
	}
	for i, c := range out.source {
		out.source[i] = g.rawColumn(c)
	}
	out.prog = prog
}

// withinDay makes intervals of times of day, by UTC, as frames do not go round midnight;
// of an offset its months and days do not count.
func withinDay(e expr.Expr, k *expr.Const) (expr.Expr, *expr.Const, error) {
	span := types.UnpackInterval(k.Val.U128s()[0])
	span.Months, span.Days = 0, 0
	second := types.Span{Micros: 1e6}
	k = intervalConst(span)
	since, err := expr.Coerce(e, types.Time, expr.CastExplicit, 0)
	if err == nil {
		since, err = expr.Coerce(since, types.Interval, expr.CastExplicit, 0)
	}
	if err != nil || e.Type().OID == types.OIDTime {
		return since, k, err
	}
	east, err := expr.NewCall("date_part", []expr.Expr{expr.TextConst("timezone"), e}, expr.CallOptions{})
	if err != nil {
		return nil, nil, err
	}
	if east, err = expr.NewOp("*", east, intervalConst(second), 0); err != nil {
		return nil, nil, err
	}
	since, err = expr.NewOp("-", since, east, 0)
	return since, k, err
}

func intervalConst(s types.Span) *expr.Const {
	return &expr.Const{Val: columnar.FromSlice([]columnar.U128{s.Pack()}, nil), Typ: types.Interval}
}

// infinitelyFar is limit, s.Expr minus or plus an offset, where that is the difference
// of two infinities: no number then lies beyond it, as PostgreSQL's in_range has it.
func infinitelyFar(limit expr.Expr, s plan.SortExpr, k *expr.Const, minus, end bool) (expr.Expr, error) {
	if string(types.AppendText(nil, k.Typ, k.Val, 0, nil)) != "Infinity" {
		return limit, nil
	}
	infinity := func(positive bool, t types.Type) (expr.Expr, error) {
		text := columnar.NewBuilder(columnar.KindBytes, 1)
		text.String(map[bool]string{true: "Infinity", false: "-Infinity"}[positive])
		return expr.Coerce(&expr.Const{Val: text.Build(), Typ: types.Unknown}, types.Of(t.OID), expr.CastExplicit, 0)
	}
	base, err := infinity(minus, s.Expr.Type())
	if err != nil {
		return nil, err
	}
	is, err := expr.NewOp("=", s.Expr, base, 0)
	if err != nil {
		return nil, err
	}
	far, err := infinity(end != s.Desc, limit.Type())
	if err != nil {
		return nil, err
	}
	return expr.NewCase([]expr.When{{Cond: is, Then: far}}, limit, 0)
}

// rawColumn is the place in Reduce's input of a column of the input's stream.
func (g *grouping) rawColumn(i int) int {
	e := &expr.Column{Index: i, Typ: g.in.types[i]}
	if at := slices.IndexFunc(g.outs, func(o expr.Expr) bool { return expr.Equal(o, e) }); at >= 0 {
		return at
	}
	g.outs = append(g.outs, e)
	return len(g.outs) - 1
}

// negative reports whether a constant is less than zero of its type.
func negative(k *expr.Const) bool {
	zero, err := expr.NewOp("<", k, &expr.Const{Val: columnar.FromSlice([]int32{0}, nil), Typ: types.Int4}, 0)
	if k.Typ.OID == types.OIDInterval {
		b := columnar.NewBuilder(columnar.KindBytes, 1)
		b.String("0")
		zero, err = expr.NewOp("<", k, &expr.Const{Val: b.Build(), Typ: types.Unknown}, 0)
	}
	if err != nil {
		return false
	}
	v, err := expr.EvalConst(zero, nil)
	return err == nil && !v.Val.Null(0) && v.Val.Bools()[0]
}

// windowFunc computes window calls partition by partition.
type windowFunc struct {
	ctx   *expr.Context
	shown []int // columns passed on
	order []differential.Order
	calls []*windowCall
	typs  []types.Type
	poll  func() // nil, or ends the computation if nobody waits for it any more

	needed *windowNeeds // to be computed in pieces; nil: that cannot be
}

// windowCall is one call over columns of the partitions.
type windowCall struct {
	name     string
	agg      *expr.Aggregate
	args     []int
	argTypes []types.Type
	filter   int
	frame    frame
	typ      types.Type
	// ignoreNulls says that rows whose first argument is NULL are passed over.
	ignoreNulls bool

	index   int  // among the calls
	wide    bool // its frames end at distances of the order, or of peer groups
	look    int  // of lag and lead: over so many rows
	carries carried
	nth     int64 // which value is picked
}

// frame is a resolved frame.
type frame struct {
	unit       plan.FrameUnit
	start, end bound
	exclude    plan.FrameExclude
}

// bound is a resolved frame bound.
type bound struct {
	kind plan.FrameBoundKind
	rows int64 // offset of ROWS and GROUPS

	// RANGE with an offset: the limit is computed by prog from the columns
	// source, and compared with the column value.
	source []int
	prog   *expr.Program
	value  int
}

// partitions is whole partitions, with every row as often as it occurs.
type partitions struct {
	x    *expr.Eval
	f    *windowFunc
	cols []*columnar.Vec // input columns of the expanded rows
	n    int
	ends []int
	// peers[i] is where the peers of row i begin, peerEnd[i] where they end.
	peerStart, peerEnd []int
	failed             []expr.RowError
	carry              *carry // the rows are a piece of a partition
}

// Apply implements differential.GroupFunc.
func (f *windowFunc) Apply(g *differential.Groups, emit, emitErr func(*dataflow.Delta)) {
	p := f.expand(g)
	p.findPeers()
	out := columnar.Batch{N: p.n, Cols: make([]*columnar.Vec, len(f.typs))}
	for i, c := range f.shown {
		out.Cols[i] = p.cols[c]
	}
	for i, c := range f.calls {
		out.Cols[len(f.shown)+i] = p.call(c)
	}
	if g.Core != nil {
		p.core(&out, g)
	}
	emitGroups(&out, p.failed, emit, emitErr)
}

// core keeps the output, and the errors, of the rows that it is wanted for.
func (p *partitions) core(out *columnar.Batch, g *differential.Groups) {
	if !slices.Contains(g.Core, false) {
		return
	}
	var keep []uint32
	at := make([]int, p.n) // place of each row in what is kept, -1 if it is not
	row := 0
	for r, wanted := range g.Core {
		for range g.Mults[r] {
			at[row] = -1
			if wanted {
				at[row] = len(keep)
				keep = append(keep, uint32(row))
			}
			row++
		}
	}
	*out = out.Gather(keep)
	failed := p.failed[:0]
	for _, e := range p.failed {
		if e.Row = at[e.Row]; e.Row >= 0 {
			failed = append(failed, e)
		}
	}
	p.failed = failed
}

// offsetRows is where a bound in rows is, as seen from the current row.
func offsetRows(b *bound) int64 {
	if b.kind == plan.CurrentRow {
		return 0
	}
	return offset(b)
}

// expand repeats rows by their multiplicity.
func (f *windowFunc) expand(g *differential.Groups) *partitions {
	p := &partitions{x: expr.NewEval(f.ctx), f: f, cols: g.Rows.Cols, n: g.Rows.N, ends: g.Ends}
	if !slices.ContainsFunc(g.Mults, func(m int64) bool { return m != 1 }) {
		return p
	}
	var rows []uint32
	p.ends = make([]int, len(g.Ends))
	lo := 0
	for i, hi := range g.Ends {
		for r := lo; r < hi; r++ {
			for range g.Mults[r] {
				rows = append(rows, uint32(r))
			}
		}
		p.ends[i] = len(rows)
		lo = hi
	}
	p.n = len(rows)
	p.cols = make([]*columnar.Vec, len(g.Rows.Cols))
	for i, v := range g.Rows.Cols {
		p.cols[i] = v.Gather(rows)
	}
	return p
}

// findPeers finds the rows that the order does not tell apart.
func (p *partitions) findPeers() {
	p.peerStart, p.peerEnd = make([]int, p.n), make([]int, p.n)
	other := make([]bool, p.n) // than the row before
	for _, o := range p.f.order {
		markOthers(p.cols[o.Col], other)
	}
	lo := 0
	for _, hi := range p.ends {
		start := lo
		for i := lo; i < hi; i++ {
			if i > lo && other[i] {
				start = i
			}
			p.peerStart[i] = start
		}
		end := hi
		for i := hi - 1; i >= lo; i-- {
			p.peerEnd[i] = end
			if p.peerStart[i] == i {
				end = i
			}
		}
		lo = hi
	}
}

// markOthers marks the rows whose value is not that of the row before.
func markOthers(v *columnar.Vec, other []bool) {
	if v.Nulls() == nil {
		switch v.Kind() {
		case columnar.KindInt32:
			markUnequal(v.Int32s(), other)
			return
		case columnar.KindInt64:
			markUnequal(v.Int64s(), other)
			return
		}
	}
	for i := 1; i < len(other); i++ {
		other[i] = other[i] || columnar.CompareAt(v, i-1, v, i) != 0
	}
}

func markUnequal[T comparable](vals []T, other []bool) {
	for i := 1; i < len(vals); i++ {
		if vals[i] != vals[i-1] {
			other[i] = true
		}
	}
}

// fail records an error of a row.
func (p *partitions) fail(row int, err error) {
	p.failed = append(p.failed, expr.RowError{Row: row, Err: pgerror.As(err)})
}

// each calls f for every partition that is not empty.
func (p *partitions) each(f func(lo, hi int)) {
	lo := 0
	for _, hi := range p.ends {
		if hi > lo {
			f(lo, hi)
		}
		lo = hi
	}
}

// call computes one call for all rows.
func (p *partitions) call(c *windowCall) *columnar.Vec {
	if c.agg != nil || p.carry != nil && c.carries.state() {
		return p.aggregate(c)
	}
	switch c.name {
	case "row_number":
		return p.numbers(func(i, lo, _ int) int { return i - lo + 1 })
	case "rank":
		return p.numbers(func(i, lo, _ int) int { return p.peerStart[i] - lo + 1 })
	case "dense_rank":
		dense := 0
		return p.numbers(func(i, lo, _ int) int {
			switch c := p.carry; {
			case c != nil && i == c.lo:
				dense = c.groups
			case i == lo:
				dense = 0
			}
			if p.peerStart[i] == i {
				dense++
			}
			return dense
		})
	case "percent_rank":
		return p.fractions(func(i, lo, hi int) float64 {
			if hi-lo == 1 {
				return 0
			}
			return float64(p.peerStart[i]-lo) / float64(hi-lo-1)
		})
	case "cume_dist":
		return p.fractions(func(i, lo, hi int) float64 { return float64(p.peerEnd[i]-lo) / float64(hi-lo) })
	case "ntile":
		return p.ntile(c)
	case "lag":
		return p.shift(c, -1)
	case "lead":
		return p.shift(c, 1)
	}
	return p.pick(c)
}

func (p *partitions) numbers(f func(i, lo, hi int) int) *columnar.Vec {
	out := columnar.MakeFixed(columnar.KindInt64, p.n)
	vals := out.Int64s()
	p.each(func(lo, hi int) {
		first, end := p.whole(lo, hi)
		for i := lo; i < hi; i++ {
			vals[i] = int64(f(i, first, end))
		}
	})
	return out
}

func (p *partitions) fractions(f func(i, lo, hi int) float64) *columnar.Vec {
	out := columnar.MakeFixed(columnar.KindFloat64, p.n)
	vals := out.Float64s()
	p.each(func(lo, hi int) {
		first, end := p.whole(lo, hi)
		for i := lo; i < hi; i++ {
			vals[i] = f(i, first, end)
		}
	})
	return out
}

// integer is value i of an integer vector.
func integer(v *columnar.Vec, i int) int64 {
	switch v.Kind() {
	case columnar.KindInt16:
		return int64(v.Int16s()[i])
	case columnar.KindInt32:
		return int64(v.Int32s()[i])
	}
	return v.Int64s()[i]
}

// ntile cuts a partition in buckets whose sizes differ by one at most; the
// number of buckets is that of the partition's first row.
func (p *partitions) ntile(c *windowCall) *columnar.Vec {
	arg := p.cols[c.args[0]]
	b := columnar.NewBuilder(c.typ.Kind(), p.n)
	p.each(func(lo, hi int) {
		if arg.Null(lo) {
			b.Nulls(hi - lo)
			return
		}
		buckets := integer(arg, lo)
		if buckets <= 0 {
			p.fail(lo, pgerror.New(pgerror.InvalidArgumentForNtile, "argument of ntile must be greater than zero"))
			b.Nulls(hi - lo)
			if p.carry != nil {
				p.carry.bad = true
			}
			return
		}
		first, end := p.whole(lo, hi)
		n := int64(end - first)
		size, larger := n/buckets, n%buckets
		for i := int64(lo - first); i < int64(hi-first); i++ {
			t := i/(size+1) + 1
			if edge := larger * (size + 1); i >= edge {
				t = larger + (i-edge)/max(size, 1) + 1
			}
			b.Int32(int32(t))
		}
	})
	return b.Build()
}

// shift is lag (dir -1) and lead (dir 1).
func (p *partitions) shift(c *windowCall, dir int64) *columnar.Vec {
	v := p.cols[c.args[0]]
	b := columnar.NewBuilder(c.typ.Kind(), p.n)
	p.each(func(lo, hi int) {
		var some *present
		if c.ignoreNulls {
			some = findPresent(v, lo, hi)
		}
		for i := lo; i < hi; i++ {
			off := int64(1)
			if len(c.args) > 1 {
				o := p.cols[c.args[1]]
				if o.Null(i) {
					b.Null()
					continue
				}
				off = integer(o, i)
			}
			at := int64(i) + dir*off
			if some != nil {
				at = int64(some.shifted(i, dir*off))
			}
			switch {
			case at >= int64(lo) && at < int64(hi):
				b.AppendFrom(v, int(at))
			case len(c.args) > 2:
				b.AppendFrom(p.cols[c.args[2]], i)
			default:
				b.Null()
			}
		}
	})
	return b.Build()
}

// pick is first_value, last_value and nth_value.
func (p *partitions) pick(c *windowCall) *columnar.Vec {
	v := p.cols[c.args[0]]
	b := columnar.NewBuilder(c.typ.Kind(), p.n)
	p.each(func(lo, hi int) {
		fr := p.frames(&c.frame, lo, hi)
		if c.ignoreNulls {
			fr.present = findPresent(v, lo, hi)
		}
		for i := lo; i < hi; i++ {
			at, ok := -1, true
			switch c.name {
			case "first_value":
				at = fr.nth(i, 1)
			case "last_value":
				at = fr.last(i)
			default:
				at, ok = p.nthOf(c, fr, i)
			}
			if at < 0 || !ok {
				b.Null()
			} else {
				b.AppendFrom(v, at)
			}
		}
	})
	return b.Build()
}

// nthOf is the row that nth_value asks for.
func (p *partitions) nthOf(c *windowCall, fr *frames, i int) (at int, ok bool) {
	k := p.cols[c.args[1]]
	if k.Null(i) {
		return -1, false
	}
	n := integer(k, i)
	if n <= 0 {
		p.fail(i, pgerror.New(pgerror.InvalidArgumentForNthValue, "argument of nth_value must be greater than zero"))
		return -1, false
	}
	return fr.nth(i, n), true
}
