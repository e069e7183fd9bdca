package expr

import (
	"slices"
	"strings"
	"sync"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// Program is a compiled MapFilterProject. It is immutable and safe for
// concurrent use.
type Program struct {
	filters []*node
	outs    []*node
	nodes   int
	// byRow says that several calls depend on each other by what they leave behind:
	// all of a row come before those of the next.
	byRow bool
	parts parts
}

// Compile prepares a MapFilterProject for evaluation. Params, OuterColumns and
// Subqueries must have been replaced.
func Compile(mfp MapFilterProject) (*Program, error) {
	var c compiler
	p := new(Program)
	for _, e := range flattenAnd(mfp.Filters, nil) {
		n, err := c.compile(e)
		if err != nil {
			return nil, err
		}
		p.filters = append(p.filters, n)
	}
	outs, err := c.all(mfp.Outputs)
	if err != nil {
		return nil, err
	}
	p.outs, p.nodes = outs, len(c.nodes)
	p.byRow = sequential(append(mfp.Outputs[:len(mfp.Outputs):len(mfp.Outputs)], mfp.Filters...))
	for _, n := range c.nodes {
		p.parts.bytes = p.parts.bytes || n.kind == columnar.KindBytes
		p.parts.volatile = p.parts.volatile || n.volatile
	}
	return p, nil
}

// sequential reports whether the results of some calls depend on others among them.
func sequential(es []Expr) bool {
	n, changes := 0, false
	for _, e := range es {
		Walk(e, func(e Expr) bool {
			if c, ok := e.(*Call); ok && c.Fn.Sequential {
				n++
				changes = changes || c.Fn.Volatility == Volatile
			}
			return true
		})
	}
	return n > 1 && changes
}

// flattenAnd splits conjunctions.
func flattenAnd(es, out []Expr) []Expr {
	for _, e := range es {
		if l, ok := e.(*Logic); ok && l.And {
			out = flattenAnd(l.Args, out)
		} else {
			out = append(out, e)
		}
	}
	return out
}

// Kinds are the physical kinds of the outputs.
func (p *Program) Kinds() []columnar.Kind {
	ks := make([]columnar.Kind, len(p.outs))
	for i, n := range p.outs {
		ks[i] = n.kind
	}
	return ks
}

// Types are the types of the outputs.
func (p *Program) Types() []types.Type {
	ts := make([]types.Type, len(p.outs))
	for i, n := range p.outs {
		ts[i] = n.typ
	}
	return ts
}

// evals are the spare evaluation states, with their recycled buffers.
var evals = sync.Pool{New: func() any { return &Eval{scratch: scratch{recycles: true}} }}

// Apply evaluates the program over a batch. diffs nil means all +1. The rows
// that pass the filters without an error are in out, with their diffs (nil if
// diffs is nil). Rows with an error are in errs, once each and in order, by
// their index in in; only the first error of a row is kept. Columns that pass
// through unchanged are shared with in.
func (p *Program) Apply(ctx *Context, in *columnar.Batch, diffs []int64) (out columnar.Batch, outDiffs []int64, errs []RowError) {
	if in.N == 0 {
		return p.empty(), nil, nil
	}
	if p.byRow && in.N > 1 {
		return p.applyByRow(ctx, in, diffs)
	}
	x := evals.Get().(*Eval)
	out, outDiffs, errs, _ = p.apply(x, ctx, in, diffs)
	return out, outDiffs, errs
}

// apply is Apply of one part by an evaluation; it tells the bytes made.
func (p *Program) apply(x *Eval, ctx *Context, in *columnar.Batch, diffs []int64) (out columnar.Batch, outDiffs []int64, errs []RowError, made int) {
	x.Context = ctx
	root := x.newFrame(in.N, p.nodes)
	root.cols = in.Cols
	f := x.filter(p.filters, root)
	if f.n == 0 {
		out = p.empty()
	} else {
		out = columnar.Batch{N: f.n, Cols: make([]*columnar.Vec, len(p.outs))}
		for i, n := range p.outs {
			out.Cols[i] = x.expand(x.eval(n, f), f.n)
		}
	}
	outDiffs = pickDiffs(diffs, f.rows)
	if len(x.errs) > 0 {
		errs = dedupe(x.errs)
		out, outDiffs = x.dropErrors(out, outDiffs, errs, f)
	}
	made = x.made
	x.finish(out.Cols)
	return out, outDiffs, errs, made
}

// applyByRow is Apply for one row after the other, up to the first that fails.
func (p *Program) applyByRow(ctx *Context, in *columnar.Batch, diffs []int64) (out columnar.Batch, outDiffs []int64, errs []RowError) {
	parts := make([]*columnar.Batch, 0, in.N)
	for i := range in.N {
		row := in.Slice(i, i+1)
		var d []int64
		if diffs != nil {
			d = diffs[i : i+1]
		}
		o, od, es := p.Apply(ctx, &row, d)
		outDiffs = append(outDiffs, od...)
		if len(es) > 0 {
			es[0].Row = i
			errs = es[:1]
			break
		}
		parts = append(parts, &o)
	}
	return columnar.ConcatBatches(p.Kinds(), parts...), outDiffs, errs
}

func (p *Program) empty() columnar.Batch {
	b := columnar.Batch{Cols: make([]*columnar.Vec, len(p.outs))}
	for i, n := range p.outs {
		b.Cols[i] = columnar.NewBuilder(n.kind, 0).Build()
	}
	return b
}

// finish gives the evaluation's state back.
func (x *Eval) finish(out []*columnar.Vec) {
	x.release(out)
	x.Context, x.frame, x.skip, x.fan, x.errs, x.opts = nil, nil, nil, false, nil, nil
	x.watch, x.made, x.most = Watch{}, 0, 0
	evals.Put(x)
}

// filter narrows f to the rows for which all conditions are true. Conditions
// that are light are evaluated over all rows while a good part of them is left.
func (x *Eval) filter(conds []*node, f *frame) *frame {
	for i := 0; i < len(conds) && f.n > 0; {
		mask := x.eval(conds[i], f)
		i++
		for i < len(conds) && conds[i].light && mask.Len() == f.n && countTrue(mask) > f.n/4 {
			mask = x.both(mask, x.expand(x.eval(conds[i], f), f.n))
			i++
		}
		yes := x.selectTrue(mask, f.n)
		if len(yes) < f.n {
			f = x.child(f, yes)
		}
	}
	return f
}

// both is the conjunction where only TRUE matters: NULL slots are zero.
func (x *Eval) both(a, b *columnar.Vec) *columnar.Vec {
	out := x.resultOf(columnar.KindBool, a.Len())
	p, q, dst := rawBools(a), rawBools(b), rawBools(out)
	pw, qw, dw := wordsOf(p), wordsOf(q), wordsOf(dst)
	for i := range dw {
		dw[i] = pw[i] & qw[i]
	}
	for i := 8 * len(dw); i < len(dst); i++ {
		dst[i] = p[i] & q[i]
	}
	return out
}

func countTrue(v *columnar.Vec) int {
	raw := rawBools(v)
	n := 0
	words := wordsOf(raw)
	for len(words) > 0 {
		k := min(len(words), 255)
		var sums uint64 // eight byte-wide counters
		for _, w := range words[:k] {
			sums += w
		}
		for ; sums != 0; sums >>= 8 {
			n += int(sums & 0xFF)
		}
		words = words[k:]
	}
	for _, b := range raw[len(raw)&^7:] {
		n += int(b)
	}
	return n
}

// selectTrue lists the rows where a condition is true, without branches.
func (x *Eval) selectTrue(cond *columnar.Vec, n int) []uint32 {
	if cond.Len() == 1 && n != 1 {
		if cond.Bools()[0] {
			return x.identity(n)
		}
		return nil
	}
	sel := x.indexes(n)
	k := 0
	for i, b := range rawBools(cond) {
		sel[k] = uint32(i)
		k += int(b)
		if k == n {
			break
		}
	}
	return sel[:k]
}

func pickDiffs(diffs []int64, rows []uint32) []int64 {
	if diffs == nil || rows == nil {
		return diffs
	}
	out := make([]int64, len(rows))
	for i, r := range rows {
		out[i] = diffs[r]
	}
	return out
}

// dedupe keeps the first error of each row, in the order of rows.
func dedupe(errs []RowError) []RowError {
	slices.SortStableFunc(errs, func(a, b RowError) int { return a.Row - b.Row })
	return slices.CompactFunc(errs, func(a, b RowError) bool { return a.Row == b.Row })
}

// dropErrors removes the rows with errors from the outputs of f.
func (x *Eval) dropErrors(out columnar.Batch, diffs []int64, errs []RowError, f *frame) (columnar.Batch, []int64) {
	keep := make([]uint32, 0, f.n)
	k := 0
	for i := range f.n {
		r := f.row(i)
		for k < len(errs) && errs[k].Row < r {
			k++
		}
		if k < len(errs) && errs[k].Row == r {
			continue
		}
		keep = append(keep, uint32(i))
	}
	if len(keep) == f.n {
		return out, diffs
	}
	for i, v := range out.Cols {
		out.Cols[i] = x.gather(v, -1, keep)
		if v.Len() == 1 && len(keep) == 0 {
			out.Cols[i] = columnar.NewBuilder(v.Kind(), 0).Build()
		}
	}
	out.N = len(keep)
	return out, pickDiffs(diffs, keep)
}

// ErrorBatch is the rows of an errs stream for errors of a batch with diffs:
// columns code and message (with detail and hint), and the diffs (nil: all +1).
// ErrorAt reads them.
func ErrorBatch(errs []RowError, diffs []int64) (columnar.Batch, []int64) {
	code := columnar.NewBuilder(columnar.KindBytes, len(errs))
	msg := columnar.NewBuilder(columnar.KindBytes, len(errs))
	rows := make([]uint32, len(errs))
	for i, e := range errs {
		code.String(e.Err.Code)
		text := e.Err.Message
		if e.Err.Detail != "" || e.Err.Hint != "" {
			text += errorPart + e.Err.Detail + errorPart + e.Err.Hint
		}
		msg.String(text)
		rows[i] = uint32(e.Row)
	}
	return columnar.Batch{Cols: []*columnar.Vec{code.Build(), msg.Build()}, N: len(errs)}, pickDiffs(diffs, rows)
}

// errorPart separates message, detail and hint; text values cannot have it.
const errorPart = "\x00"

// ErrorAt is the error that row i of an errs batch stands for.
func ErrorAt(b *columnar.Batch, i int) *pgerror.Error {
	parts := strings.SplitN(string(b.Cols[1].Bytes(i)), errorPart, 3)
	e := &pgerror.Error{Code: string(b.Cols[0].Bytes(i)), Message: parts[0]}
	if len(parts) == 3 {
		e.Detail, e.Hint = parts[1], parts[2]
	}
	return e
}

// EvalConst evaluates an expression without columns. The error is the row
// error, if there was one.
func EvalConst(e Expr, ctx *Context) (*Const, error) { return evalConst(e, ctx, 0) }

// evalConst is EvalConst that gives up with an error when it makes more than most bytes,
// if that is not 0.
func evalConst(e Expr, ctx *Context, most int) (k *Const, err error) {
	if c, ok := e.(*Const); ok {
		return c, nil
	}
	var c compiler
	n, err := c.compile(e)
	if err != nil {
		return nil, err
	}
	x := evals.Get().(*Eval)
	x.Context, x.most = ctx, most
	defer func() {
		switch r := recover().(type) {
		case nil:
		case tooMuch:
			err = errTooMuch
		case *pgerror.Error:
			err = r
		default:
			panic(r)
		}
	}()
	v := x.eval(n, x.newFrame(1, len(c.nodes)))
	errs := x.errs
	x.finish([]*columnar.Vec{v})
	if len(errs) > 0 {
		return nil, errs[0].Err
	}
	return &Const{Val: v, Typ: e.Type(), Pos: PosOf(e)}, nil
}

// FoldLiterals evaluates the calls that exist only because a literal's meaning
// depends on the session ('today'::date, '…'::timestamptz, 't'::regclass): the
// binder applies it once a statement is bound, also for maintained views.
func FoldLiterals(e Expr, ctx *Context) (Expr, error) {
	var failed error
	out := Rewrite(e, func(n Expr) Expr {
		c, ok := n.(*Call)
		if !ok || !c.Fn.Literal || failed != nil {
			return n
		}
		k, err := EvalConst(c, ctx)
		if err != nil {
			failed = pgerror.As(err).At(c.Pos)
			return n
		}
		return k
	})
	return out, failed
}

// FoldConstants evaluates the subexpressions that are immutable, have no
// columns, do not fail and are not huge.
func FoldConstants(e Expr) Expr {
	return Rewrite(e, func(n Expr) Expr {
		if c, ok := n.(*Call); ok && nullByStrictness(c) && !isPseudo(c.Typ.OID) {
			return NullConst(c.Typ)
		}
		if !foldable(n) {
			return n
		}
		c, err := evalConst(n, &Context{}, foldMade)
		if err != nil {
			return n
		}
		return c
	})
}

// foldable reports whether n is a pure function of constants.
func foldable(n Expr) bool {
	switch n := n.(type) {
	case *Call:
		if n.Fn.Volatility != Immutable || n.Fn.Styled || n.Fn.Relabel && n.Args[0].Type().OID == types.OIDUnknown {
			return false
		}
	case *InList:
		if n.Op.Volatility != Immutable {
			return false
		}
	case *ArrayOp:
		if n.Op.Volatility != Immutable {
			return false
		}
	case *Logic, *Not, *IsNull, *Case, *Coalesce, *ArrayCtor:
	default:
		return false
	}
	ok := true
	Children(n, func(c Expr) {
		_, isConst := c.(*Const)
		ok = ok && isConst
	})
	return ok
}
