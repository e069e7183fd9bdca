package trace

import (
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// TestHoldFrom appends small epochs, which would merge at once: a range hold
// keeps every epoch from its own on readable, a point hold only its own.
func TestHoldFrom(t *testing.T) {
	one := func(v int64) []*dataflow.Delta {
		return []*dataflow.Delta{{Batch: columnar.Batch{N: 1, Cols: []*columnar.Vec{columnar.FromSlice([]int64{v}, nil)}}}}
	}
	for _, from := range []bool{false, true} {
		tr := New(NewLayout([]columnar.Kind{columnar.KindInt64}, []int{0}), 1)
		place := tr.Hold
		if from {
			place = tr.HoldFrom
		}
		h, ok := place(10)
		if !ok {
			t.Fatal("an epoch to come cannot be held")
		}
		for e := dataflow.Epoch(8); e < 60; e++ {
			tr.Append(e, one(int64(e)))
			tr.Seal(e)
		}
		readable := 0
		for e := dataflow.Epoch(10); e < 60; e++ {
			if s, ok := tr.SnapshotAt(e); ok {
				readable++
				s.Release()
			} else if from || e == 10 {
				t.Errorf("epoch %d is not readable with from=%v", e, from)
			}
		}
		if !from && readable == 50 {
			t.Error("nothing merged behind a point hold")
		}
		h.Release()
	}
}
