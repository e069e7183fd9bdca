package expr

import (
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

func col(i int, t types.Type) *Column { return &Column{Index: i, Typ: t} }

func mustOp(t *testing.T, op string, l, r Expr) Expr {
	t.Helper()
	e, err := NewOp(op, l, r, 0)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestApplyDivertsErrors(t *testing.T) {
	div := mustOp(t, "/", Int4Const(10), col(0, types.Int4))
	gt := mustOp(t, ">", col(0, types.Int4), Int4Const(-5))
	p, err := Compile(MapFilterProject{Filters: []Expr{gt}, Outputs: []Expr{col(0, types.Int4), div}})
	if err != nil {
		t.Fatal(err)
	}
	nulls := columnar.NewBitmap(5)
	nulls.Set(4)
	in := columnar.Batch{N: 5, Cols: []*columnar.Vec{columnar.FromSlice([]int32{5, 0, -7, 3, 0}, nulls)}}
	out, diffs, errs := p.Apply(&Context{}, &in, []int64{1, 2, 3, 4, 5})
	if out.N != 2 || out.Cols[1].Int32s()[0] != 2 || out.Cols[1].Int32s()[1] != 3 || diffs[1] != 4 {
		t.Errorf("got %v rows %v diffs %v", out.N, out.Cols[1].Int32s(), diffs)
	}
	if len(errs) != 1 || errs[0].Row != 1 || errs[0].Err.Code != "22012" {
		t.Errorf("errors %+v", errs)
	}
}

func codeOf(err error) string { return pgerror.As(err).Code }
