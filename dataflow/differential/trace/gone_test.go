package trace

import (
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// TestMergeToNothing merges a row's coming and going, of which nothing is left,
// and asks for the epoch between: it must not be taken for one without the row.
func TestMergeToNothing(t *testing.T) {
	row := func(diff dataflow.Diff) []*dataflow.Delta {
		b := columnar.NewBuilder(columnar.KindInt64, 1)
		b.Int64(7)
		return []*dataflow.Delta{{Batch: columnar.Batch{Cols: []*columnar.Vec{b.Build()}, N: 1}, Diffs: []dataflow.Diff{diff}}}
	}
	tr := New(NewLayout([]columnar.Kind{columnar.KindInt64}, []int{0}), 1)
	tr.Append(5, row(1))
	tr.Seal(5)
	tr.Append(8, row(-1))
	tr.Seal(8)
	s := tr.Spines()[0]
	bs := s.Batches()
	if len(bs) == 2 && !s.mergeNow(bs[0], bs[1]) {
		t.Fatal("no merge")
	}
	for _, b := range bs {
		b.Release()
	}
	for e, want := range map[dataflow.Epoch]bool{4: true, 5: false, 6: false, 7: false, 8: true} {
		snap, ok := tr.SnapshotAt(e)
		if ok != want {
			t.Errorf("epoch %d readable: %v, want %v", e, ok, want)
		}
		if !ok {
			continue
		}
		if snap.Len() != 0 {
			t.Errorf("epoch %d has %d rows", e, snap.Len())
		}
		snap.Release()
	}
}
