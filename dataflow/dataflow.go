// Package dataflow is the vocabulary of the engine: epochs, diffs, deltas and
// frontiers. It knows neither SQL nor I/O nor goroutines.
//
// A collection is a time-varying Z-set: a map from rows to integer diffs. Its
// content at epoch t is the sum of its deltas at epochs ≤ t (DBSP: Budiu et
// al., VLDB 2023).
package dataflow

import (
	"math"

	"github.com/streamdb/streamdb/columnar"
)

// Epoch is logical time: strictly increasing, and wall-clock milliseconds
// since 1970 where the clock permits.
type Epoch uint64

// MaxEpoch is later than every epoch.
const MaxEpoch Epoch = math.MaxUint64

// Diff is the signed multiplicity of a row in a delta.
type Diff = int64

// Delta is the changes of one epoch (or a part of them): rows with a diff
// each. Diffs == nil means +1 for every row. The same row may occur many times.
type Delta struct {
	columnar.Batch
	Diffs []Diff
}

// Diff is the diff of row i.
func (d *Delta) Diff(i int) Diff {
	if d.Diffs == nil {
		return 1
	}
	return d.Diffs[i]
}

// Slice is rows lo to hi, sharing memory.
func (d *Delta) Slice(lo, hi int) *Delta {
	if lo == 0 && hi == d.N {
		return d
	}
	s := &Delta{Batch: d.Batch.Slice(lo, hi)}
	if d.Diffs != nil {
		s.Diffs = d.Diffs[lo:hi:hi]
	}
	return s
}

// Frontier is the lower bound of the epochs still to come: everything before
// it is complete. MaxEpoch means closed.
type Frontier struct{ At Epoch }

// Beyond reports whether t is complete: no more changes at t can come.
func (f Frontier) Beyond(t Epoch) bool { return f.At > t }

// Closed reports whether no more epochs come.
func (f Frontier) Closed() bool { return f.At == MaxEpoch }
