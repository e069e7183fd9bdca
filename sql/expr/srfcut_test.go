package expr

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/streamdb/streamdb/columnar"
)

// TestCutSeries compares the rows of the calls that generate_series is cut into with
// those of the one call.
func TestCutSeries(t *testing.T) {
	const seed = 7
	rnd := rand.New(rand.NewPCG(seed, 0))
	ends := []int32{math.MinInt32, math.MinInt32 + 7, -100, -1, 0, 1, 99, 100, 1000, math.MaxInt32 - 8, math.MaxInt32}
	values := func(args []*columnar.Vec, calls int) []int32 {
		b := columnar.NewBuilder(columnar.KindInt32, 0)
		for i := range calls {
			if _, err := seriesInt[int32](false)(nil, args, i, []*columnar.Builder{b}); err != nil {
				t.Fatal(err)
			}
		}
		return b.Build().Int32s()
	}
	cuts := 0
	for range 3000 {
		start := ends[rnd.IntN(len(ends))] + int32(rnd.IntN(5)) - 2
		span := int32(rnd.IntN(4000) - 2000)
		stop := start + span
		if (stop > start) != (span > 0) {
			continue // overflow
		}
		steps := []int32{1, -1, 3, -3, 7, 1000, -999, 0, math.MaxInt32, math.MinInt32}
		step := steps[rnd.IntN(len(steps))]
		args := []*columnar.Vec{columnar.FromSlice([]int32{start}, nil), columnar.FromSlice([]int32{stop}, nil), columnar.FromSlice([]int32{step}, nil)}
		if rnd.IntN(3) == 0 {
			args, step = args[:2], 1
		}
		rows := int64(1 + rnd.IntN(300))
		cut := cutSeries[int32](args, 0, rows)
		if cut == nil {
			if step != 0 && int64(len(values(args, 1))) > rows {
				t.Fatalf("seed %d: not cut: %d to %d by %d", seed, start, stop, step)
			}
			continue
		}
		cuts++
		got, want := values(cut, cut[0].Len()), values(args, 1)
		if len(got) != len(want) {
			t.Fatalf("seed %d: %d to %d by %d, %d rows a call: %d rows, not %d", seed, start, stop, step, rows, len(got), len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("seed %d: %d to %d by %d: row %d is %d, not %d", seed, start, stop, step, i, got[i], want[i])
			}
		}
	}
	whole := []*columnar.Vec{columnar.FromSlice([]int64{math.MinInt64}, nil), columnar.FromSlice([]int64{math.MaxInt64}, nil)}
	if cut := cutSeries[int64](whole, 0, 1<<16); cut[0].Len() > maxCalls || cut[1].Int64s()[cut[1].Len()-1] != math.MaxInt64 {
		t.Errorf("all integers in %d calls, the last to %d", cut[0].Len(), cut[1].Int64s()[cut[1].Len()-1])
	}
	if cuts < 500 {
		t.Errorf("only %d were cut", cuts)
	}
}
