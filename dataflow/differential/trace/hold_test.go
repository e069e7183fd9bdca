package trace

import (
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// TestHoldBeforeSeal appends and merges an epoch, and then wants to hold the one
// before it, which nobody has said to be complete: it is too late for that.
func TestHoldBeforeSeal(t *testing.T) {
	one := func(v int64) []*dataflow.Delta {
		return []*dataflow.Delta{{Batch: columnar.Batch{N: 1, Cols: []*columnar.Vec{columnar.FromSlice([]int64{v}, nil)}}}}
	}
	tr := New(NewLayout([]columnar.Kind{columnar.KindInt64}, []int{0}), 1)
	tr.Append(5, one(1))
	tr.Seal(5)
	tr.Append(9, one(2))
	s := tr.Spines()[0]
	bs := s.Batches()
	if len(bs) == 2 && !s.mergeNow(bs[0], bs[1]) {
		t.Fatal("no merge")
	}
	for _, b := range bs {
		b.Release()
	}
	if _, ok := tr.Hold(7); ok {
		t.Error("epoch 7 can be held, though it is merged with 9")
	}
	h, ok := tr.Hold(9)
	if !ok {
		t.Fatal("epoch 9 cannot be held")
	}
	h.Release()
}
