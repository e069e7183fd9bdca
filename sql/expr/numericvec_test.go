package expr

import (
	"math/rand"
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/types"
)

// numericColumn has n numbers of mostly one scale, of any size up to 63 bits.
func numericColumn(r *rand.Rand, n int) *columnar.Vec {
	b := columnar.NewBuilder(columnar.KindBytes, n)
	scale, width := r.Intn(5), r.Intn(63)
	mixed := r.Intn(5) == 0
	for range n {
		switch {
		case r.Intn(10) == 0:
			b.Null()
		case mixed && r.Intn(20) == 0:
			b.Bytes(decimal.AppendNaN(nil))
		case mixed:
			b.Bytes(decimal.AppendInt64Scaled(nil, r.Int63n(1000), r.Intn(4)))
		default:
			b.Bytes(decimal.AppendInt64Scaled(nil, (r.Int63()>>width)*int64(1-2*r.Intn(2)), scale))
		}
	}
	return b.Build()
}

// TestNumericColumns checks the arithmetic over integers against that on single
// numbers.
func TestNumericColumns(t *testing.T) {
	r := rand.New(rand.NewSource(*seed))
	t.Logf("-seed=%d", *seed)
	n := types.Numeric
	for range 150 {
		b := columnar.Batch{N: 100, Cols: []*columnar.Vec{numericColumn(r, 100), numericColumn(r, 100)}}
		args := []Expr{col(0, n), col(1, n)}
		if k := r.Intn(4); k < 2 {
			args[k] = ConstOf(n, b.Cols[k], r.Intn(100))
		}
		for _, op := range []string{"+", "-", "*", "<", "=", ">=", "<>"} {
			e := mustOp(t, op, args[0], args[1])
			p, err := Compile(MapFilterProject{Outputs: []Expr{e}})
			if err != nil {
				t.Fatal(err)
			}
			out, _, errs := p.Apply(&Context{}, &b, nil)
			if len(errs) > 0 {
				t.Fatal(errs[0].Err)
			}
			for i := range b.N {
				want, err := EvalConst(rowOf(e, &b, i), &Context{})
				if err != nil {
					t.Fatal(err)
				}
				if got, want := valueText(e.Type(), out.Cols[0], i), valueText(e.Type(), want.Val, 0); got != want {
					t.Fatalf("%s: %s, want %s, -seed=%d", String(rowOf(e, &b, i), nil), got, want, *seed)
				}
			}
		}
	}
}
