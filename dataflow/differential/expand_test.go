package differential

import (
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// times is an Expander that gives each number so many times. It counts what it has made.
type times struct {
	n    int
	made *int
}

func (times) Cut(*dataflow.Delta) []*dataflow.Delta { return nil }

func (m times) Apply(in *dataflow.Delta, emit, _ func(*dataflow.Delta)) {
	for _, v := range in.Cols[0].Int64s() {
		vals := make([]int64, m.n)
		for i := range vals {
			vals[i] = v
		}
		*m.made += m.n
		emit(&dataflow.Delta{Batch: columnar.Batch{N: m.n, Cols: []*columnar.Vec{columnar.FromSlice(vals, nil)}}})
	}
}

// TestExpandInPortions makes many rows of few in a circuit that runs once: what follows
// takes them as they come, so that few wait at any time, and the circuit asks whether
// it is still wanted.
func TestExpandInPortions(t *testing.T) {
	const rows, each, portion = 4000, 100, 1 << 16
	polls, made, taken, most, sum := 0, 0, 0, 0, int64(0)
	c := New(Options{Once: true, Portion: portion, Poll: func() { polls++ }})
	in, s := c.Input([]columnar.Kind{columnar.KindInt64})
	oks, _ := c.Map(s, times{each, &made}, []columnar.Kind{columnar.KindInt64})
	c.Sink(oks, func(d *dataflow.Delta) {
		most = max(most, made-taken)
		taken += d.N
		for _, v := range d.Cols[0].Int64s() {
			sum += v
		}
	})
	vals := make([]int64, rows)
	for i := range vals {
		vals[i] = int64(i)
	}
	in.Push(&dataflow.Delta{Batch: columnar.Batch{N: rows, Cols: []*columnar.Vec{columnar.FromSlice(vals, nil)}}})
	c.Step(0)
	if taken != rows*each || sum != each*rows*(rows-1)/2 {
		t.Errorf("%d rows with the sum %d", taken, sum)
	}
	if limit := 4 * portion / 8; most > limit {
		t.Errorf("%d rows waited at once, more than %d", most, limit)
	}
	if polls < rows*each*8/(4*portion) {
		t.Errorf("asked %d times whether it is still wanted", polls)
	}
}
