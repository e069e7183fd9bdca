package expr

import (
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// TestApplyParts compares evaluation in parts, under bounds so low that it must begin
// again and again, with evaluation at once.
func TestApplyParts(t *testing.T) {
	defer func(in, made int) { partIn, partMade = in, made }(partIn, partMade)
	seed := time.Now().UnixNano()
	r := rand.New(rand.NewSource(seed))
	call := func(name string, args ...Expr) Expr { return must(t)(NewCall(name, args, CallOptions{})) }
	op := func(name string, l, r Expr) Expr { return must(t)(NewOp(name, l, r, 0)) }
	text, n := &Column{Index: 5, Typ: types.Text}, &Column{Index: 6, Typ: types.Int4}
	word := &Column{Index: 7, Typ: types.Text}
	some := op("%", n, Int4Const(37))
	programs := []MapFilterProject{
		{Outputs: []Expr{call("repeat", word, some), n}},
		{Outputs: []Expr{call("length", call("repeat", text, some)), text}},
		{Filters: []Expr{op("<", n, Int4Const(50000))}, Outputs: []Expr{op("||", call("repeat", word, some), word), call("upper", text)}},
		{Filters: []Expr{op(">", call("length", call("replace", text, TextConst("a"), word)), Int4Const(170))}, Outputs: []Expr{TextConst("constant"), n}},
		{Outputs: []Expr{op("/", Int4Const(7), op("%", n, Int4Const(50))), call("repeat", word, some)}},
		{Outputs: []Expr{call("repeat", word, op("/", Int4Const(70), op("%", n, Int4Const(9)))), op("/", n, op("%", n, Int4Const(31)))}},
	}
	for k, m := range programs {
		for range 5 {
			b := benchBatch(1 + r.Intn(3000))
			diffs := make([]int64, b.N)
			for i := range diffs {
				diffs[i] = r.Int63n(5) - 2
			}
			partIn, partMade = 1<<(6+r.Intn(12)), 1<<(6+r.Intn(12))
			p, err := Compile(m)
			if err != nil {
				t.Fatal(err)
			}
			want, wantDiffs, wantErrs := p.Apply(&Context{}, &b, diffs)
			var got []*columnar.Batch
			var gotDiffs []int64
			var gotErrs []RowError
			parts, leave := 0, r.Intn(20)
			for lo := 0; lo < b.N; {
				rest := b.Slice(lo, b.N)
				lo += p.ApplyParts(&Context{}, &rest, diffs[lo:], Watch{}, func(out columnar.Batch, ds []int64) bool {
					got, gotDiffs = append(got, &out), append(gotDiffs, ds...)
					parts++
					return parts%20 != leave
				}, func(errs []RowError) {
					for _, e := range errs {
						gotErrs = append(gotErrs, RowError{Row: lo + e.Row, Err: e.Err})
					}
				})
			}
			all := columnar.ConcatBatches(p.Kinds(), got...)
			if all.N != want.N || !slices.Equal(gotDiffs, wantDiffs) {
				t.Fatalf("seed %d, program %d: %d rows in parts, %d at once", seed, k, all.N, want.N)
			}
			for c := range want.Cols {
				for i := range want.N {
					if !columnar.EqualAt(want.Cols[c], i, all.Cols[c], i) {
						t.Fatalf("seed %d, program %d: column %d of row %d differs", seed, k, c, i)
					}
				}
			}
			same := func(a, b RowError) bool { return a.Row == b.Row && a.Err.Message == b.Err.Message }
			if !slices.EqualFunc(gotErrs, wantErrs, same) {
				t.Fatalf("seed %d, program %d: errors %v in parts, %v at once", seed, k, gotErrs, wantErrs)
			}
		}
	}
}

// TestStopped ends an evaluation within a value.
func TestStopped(t *testing.T) {
	x := must(t)(NewCall("repeat", []Expr{&Column{Index: 7, Typ: types.Text}, Int4Const(1 << 20)}, CallOptions{}))
	p, err := Compile(MapFilterProject{Outputs: []Expr{must(t)(NewCall("replace", []Expr{x, TextConst("a"), TextConst("b")}, CallOptions{}))}})
	if err != nil {
		t.Fatal(err)
	}
	b := benchBatch(100)
	asked := 0
	p.ApplyParts(&Context{}, &b, nil, Watch{Stopped: func() bool { asked++; return true }}, func(columnar.Batch, []int64) bool {
		t.Error("rows are given though nobody wants them")
		return true
	}, func([]RowError) { t.Error("an error that nobody wants") })
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

// TestValueTooLong makes a value that is longer than any may be, which is an error of its
// row only.
func TestValueTooLong(t *testing.T) {
	defer func(n int) { maxAlloc = n }(maxAlloc)
	maxAlloc = 1 << 22
	big := must(t)(NewCall("repeat", []Expr{TextConst("0123456789abcdef"), Int4Const(1 << 16)}, CallOptions{}))
	p, err := Compile(MapFilterProject{Outputs: []Expr{must(t)(NewCall("length",
		[]Expr{must(t)(NewCall("replace", []Expr{&Column{Index: 0, Typ: types.Text}, TextConst("x"), big}, CallOptions{}))}, CallOptions{}))}})
	if err != nil {
		t.Fatal(err)
	}
	in := columnar.NewBuilder(columnar.KindBytes, 3)
	in.String("x")
	in.Bytes(slices.Repeat([]byte("x"), 5))
	in.String("-")
	b := columnar.Batch{N: 3, Cols: []*columnar.Vec{in.Build()}}
	var got []int32
	var failed []RowError
	p.ApplyParts(&Context{}, &b, nil, Watch{}, func(out columnar.Batch, _ []int64) bool {
		got = append(got, out.Cols[0].Int32s()...)
		return true
	}, func(errs []RowError) { failed = append(failed, errs...) })
	if !slices.Equal(got, []int32{1 << 20, 1}) || len(failed) != 1 || failed[0].Row != 1 || failed[0].Err.Code != pgerror.ProgramLimitExceeded {
		t.Errorf("lengths %v, errors %v", got, failed)
	}
}

func must(t *testing.T) func(e Expr, err error) Expr {
	return func(e Expr, err error) Expr {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
}
