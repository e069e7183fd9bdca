// Package render is the one bridge from plans to the engine: it turns a
// relational plan into a circuit of operators.
package render

import (
	"context"
	"iter"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// Reader gives the content of collections at the one epoch of a read.
type Reader interface {
	// Snapshot reads a collection: the deltas have exactly the columns
	// get.Cols (column i is column get.Source(i) of the collection). If
	// get.Lookup is set, rows with other keys may be left out. An error ends
	// the sequence.
	Snapshot(ctx context.Context, get *plan.Get) iter.Seq2[*dataflow.Delta, error]
}

// Emit takes a batch of result rows; rows are whole (no diffs). An error ends the run.
type Emit func(b *columnar.Batch) error

// RunOnce computes rel over one snapshot and gives the rows to emit as they
// come, in the order of a root plan.Sort. Row errors end the run as the error
// that it returns. It stops soon after ctx is cancelled.
func RunOnce(ctx context.Context, rel plan.Rel, r Reader, opts Options, emit Emit) error {
	return pgerror.Unsupported("query")
}
