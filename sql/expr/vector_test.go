package expr

import (
	"bytes"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

// exprGen makes random well-typed expressions over the columns of a batch.
type exprGen struct {
	r    *rand.Rand
	cols []types.Type
	ops  map[types.OID][]*Function // by result type
}

var genTypes = []types.Type{
	types.Bool, types.Int2, types.Int4, types.Int8, types.Float8, types.Float4, types.Numeric, types.Text, types.Date, types.Timestamp,
	types.TimestampTZ, types.Interval, types.UUID,
}

func newExprGen(r *rand.Rand) *exprGen {
	g := &exprGen{r: r, cols: genTypes, ops: map[types.OID][]*Function{}}
	known := map[types.OID]bool{}
	for _, t := range genTypes {
		known[t.OID] = true
	}
	for _, f := range allFunctions() {
		ok := f.Volatility != Volatile && !f.Variadic && !lengthNames[f.Name] && known[f.Ret.OID] && f.Name != "repeat" && f.Name != "lpad" && f.Name != "rpad"
		for _, a := range f.Args {
			ok = ok && known[a.OID]
		}
		if ok {
			g.ops[f.Ret.OID] = append(g.ops[f.Ret.OID], f)
		}
	}
	return g
}

func (g *exprGen) constant(t types.Type) Expr {
	if g.r.Intn(10) == 0 {
		return NullConst(t)
	}
	vals := literals[t.OID]
	e, err := Coerce(UnknownConst(vals[g.r.Intn(len(vals))], 0), t, CastExplicit, 0)
	if err == nil {
		e, err = FoldLiterals(e, testContext())
	}
	if err != nil {
		return NullConst(t)
	}
	return e
}

func (g *exprGen) expr(t types.Type, depth int) Expr {
	if depth == 0 || g.r.Intn(6) == 0 {
		if g.r.Intn(4) == 0 {
			return g.constant(t)
		}
		for i, c := range g.cols {
			if c == t {
				return &Column{Index: i, Typ: t}
			}
		}
	}
	sub := func(t types.Type) Expr { return g.expr(t, depth-1) }
	switch g.r.Intn(8) {
	case 0:
		c := &Case{Typ: t}
		for range 1 + g.r.Intn(3) {
			c.Whens = append(c.Whens, When{Cond: sub(types.Bool), Then: sub(t)})
		}
		if g.r.Intn(3) > 0 {
			c.Else = sub(t)
		}
		return c
	case 1:
		return &Coalesce{Args: []Expr{sub(t), sub(t), sub(t)}, Typ: t}
	}
	if t.OID == types.OIDBool {
		if e := g.boolean(sub); e != nil {
			return e
		}
	}
	fs := g.ops[t.OID]
	if len(fs) == 0 {
		return g.constant(t)
	}
	f := fs[g.r.Intn(len(fs))]
	c := &Call{Fn: f, Typ: t}
	for _, a := range f.Args {
		c.Args = append(c.Args, sub(a))
	}
	return c
}

func (g *exprGen) boolean(sub func(types.Type) Expr) Expr {
	t := genTypes[g.r.Intn(len(genTypes))]
	switch g.r.Intn(7) {
	case 0:
		l := &Logic{And: g.r.Intn(2) == 0}
		for range 2 + g.r.Intn(3) {
			l.Args = append(l.Args, sub(types.Bool))
		}
		return l
	case 1:
		return &Not{Arg: sub(types.Bool)}
	case 2:
		return &IsNull{Arg: sub(t), Not: g.r.Intn(2) == 0}
	case 3:
		op, err := findOperator("=", []types.OID{t.OID, t.OID}, 0)
		if err != nil {
			return nil
		}
		in := &InList{Op: op, Arg: sub(t)}
		for range 1 + g.r.Intn(9) {
			in.List = append(in.List, g.constant(t))
		}
		return in
	case 4:
		if e, err := NewDistinct(sub(t), sub(t), g.r.Intn(2) == 0, 0); err == nil {
			return e
		}
	case 5:
		arr := t.ArrayType()
		if e, err := NewArrayOp("<", sub(t), &ArrayCtor{Elems: []Expr{sub(t), sub(t)}, Typ: arr}, g.r.Intn(2) == 0, 0); err == nil {
			return e
		}
	}
	return nil
}

// randomBatch has a column of each type with the literals' values.
func (g *exprGen) randomBatch(t *testing.T, n int) columnar.Batch {
	b := columnar.Batch{N: n}
	for _, typ := range g.cols {
		out := columnar.NewBuilder(typ.Kind(), n)
		for range n {
			c, ok := g.constant(typ).(*Const)
			if !ok {
				t.Fatalf("%s: no constant", typ)
			}
			out.AppendFrom(c.Val, 0)
		}
		b.Cols = append(b.Cols, out.Build())
	}
	return b
}

// rowOf replaces the columns by the values of row i.
func rowOf(e Expr, b *columnar.Batch, i int) Expr {
	return Rewrite(e, func(n Expr) Expr {
		if c, ok := n.(*Column); ok {
			return ConstOf(c.Typ, b.Cols[c.Index], i)
		}
		return n
	})
}

func valueText(t types.Type, v *columnar.Vec, i int) string {
	if v.Null(i) {
		for _, b := range valueBytes(ConstOf(t, v, i).Val) {
			if b != 0 {
				return "NULL with bits"
			}
		}
		return "NULL"
	}
	return string(types.AppendText(nil, t, v, i, nil))
}

// TestVectorsEqualRows checks that evaluating whole batches, with all the
// sharing and selecting that goes on there, gives what evaluating each row
// alone gives: values, errors and filtering.
func TestVectorsEqualRows(t *testing.T) {
	r := rand.New(rand.NewSource(*seed))
	t.Logf("-seed=%d", *seed)
	g := newExprGen(r)
	ctx := testContext()
	ctx.Location, _ = time.LoadLocation("America/New_York")
	var rows, kept, failed int
	for round := range 400 {
		n := []int{1, 2, 7, 64, 65, 300}[r.Intn(6)]
		b := g.randomBatch(t, n)
		var mfp MapFilterProject
		for range r.Intn(4) {
			mfp.Filters = append(mfp.Filters, g.expr(types.Bool, 3))
		}
		for range 1 + r.Intn(3) {
			mfp.Outputs = append(mfp.Outputs, g.expr(genTypes[r.Intn(len(genTypes))], 3))
		}
		k, e, err := checkRound(ctx, mfp, &b)
		if err != nil {
			t.Fatalf("round %d, -seed=%d: %v", round, *seed, err)
		}
		rows, kept, failed = rows+n, kept+k, failed+e
	}
	t.Logf("%d rows: %d kept, %d with errors", rows, kept, failed)
	if kept < rows/20 || failed < rows/20 {
		t.Error("too few rows are kept or fail for the test to mean much")
	}
}

func checkRound(ctx *Context, mfp MapFilterProject, b *columnar.Batch) (kept, failed int, err error) {
	p, err := Compile(mfp)
	if err != nil {
		return 0, 0, err
	}
	diffs := make([]int64, b.N)
	for i := range diffs {
		diffs[i] = int64(i + 1)
	}
	out, outDiffs, errs := p.Apply(ctx, b, diffs)
	codes := map[int]string{}
	for _, e := range errs {
		codes[e.Row] = e.Err.Code
	}
	at := 0
	for i := range b.N {
		keep, want, code := oneRow(ctx, mfp, b, i)
		if code != codes[i] {
			return 0, 0, fmt.Errorf("row %d: error %q, want %q\n%s", i, codes[i], code, describe(mfp, b, i))
		}
		if code != "" || !keep {
			continue
		}
		if at >= out.N || outDiffs[at] != diffs[i] {
			return 0, 0, fmt.Errorf("row %d is missing\n%s", i, describe(mfp, b, i))
		}
		for k, o := range mfp.Outputs {
			if got := valueText(o.Type(), out.Cols[k], at); got != want[k] {
				return 0, 0, fmt.Errorf("row %d output %d: %s, want %s\n%s", i, k, got, want[k], describe(mfp, b, i))
			}
		}
		at++
	}
	if at != out.N {
		return 0, 0, fmt.Errorf("%d rows too many", out.N-at)
	}
	return out.N, len(errs), nil
}

// oneRow evaluates the program for one row by itself, one expression at a time.
func oneRow(ctx *Context, mfp MapFilterProject, b *columnar.Batch, i int) (keep bool, vals []string, code string) {
	row := columnar.Batch{N: 1}
	for k, v := range b.Cols {
		row.Cols = append(row.Cols, ConstOf(genTypes[k], v, i).Val)
	}
	eval := func(e Expr) (*columnar.Vec, string) {
		p, err := Compile(MapFilterProject{Outputs: []Expr{e}})
		if err != nil {
			return nil, codeOf(err)
		}
		out, _, errs := p.Apply(ctx, &row, nil)
		if len(errs) > 0 {
			return nil, errs[0].Err.Code
		}
		return out.Cols[0], ""
	}
	for _, f := range flattenAnd(mfp.Filters, nil) {
		v, code := eval(f)
		if code != "" || v.Null(0) || !v.Bools()[0] {
			return false, nil, code
		}
	}
	for _, o := range mfp.Outputs {
		v, code := eval(o)
		if code != "" {
			return false, nil, code
		}
		vals = append(vals, valueText(o.Type(), v, 0))
	}
	return true, vals, ""
}

func describe(mfp MapFilterProject, b *columnar.Batch, i int) string {
	var s bytes.Buffer
	for _, f := range mfp.Filters {
		fmt.Fprintf(&s, "filter %s\n    of %s\n", String(f, nil), String(rowOf(f, b, i), nil))
	}
	for _, f := range mfp.Outputs {
		fmt.Fprintf(&s, "output %s\n    of %s\n", String(f, nil), String(rowOf(f, b, i), nil))
	}
	return s.String()
}
