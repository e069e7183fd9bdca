package render

import (
	"github.com/streamdb/streamdb/dataflow/differential"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// Options says how to render.
type Options struct {
	// Once makes a circuit for a single epoch with all input, thrown away after.
	Once bool
	// Partitions is the number of parts of the key space; 0 means 1.
	Partitions int
	// Exec runs partitions in parallel; nil runs them in the caller.
	Exec differential.Executor
	// Context is what expressions may depend on besides their input.
	Context *expr.Context
	// Arranged gives a shared arrangement of a collection by the given columns
	// of it, or nil. Those that are used are listed in Dataflow.Shared.
	Arranged func(id plan.ObjectID, key []int) *trace.Trace
}

// Import is an input of a dataflow: a collection of the catalog, or rather
// those of its columns that are wanted.
type Import struct {
	ID    plan.ObjectID
	Name  string
	Cols  []int // columns of the collection, ascending: the columns of what is pushed
	Input *differential.Input
}

// Shared is a shared arrangement that a dataflow reads in place of an import.
type Shared struct {
	ID    plan.ObjectID
	Key   []int
	Trace *trace.Trace
}

// Dataflow is a rendered plan.
type Dataflow struct {
	Circuit *differential.Circuit
	Imports []Import
	Shared  []Shared
	// Columns are the columns of Oks.
	Columns []plan.Column
	// Oks is the result; Errs its row errors (columns differential.ErrorKinds).
	// While Errs is not empty, a read of the result fails with one of them.
	Oks, Errs differential.Stream
	// Order is the order of a root plan.Sort, over the columns of Oks.
	Order []plan.SortKey
}

// Render makes a circuit that maintains rel. A root plan.Sort is left to the
// reader (Dataflow.Order).
func Render(rel plan.Rel, opts Options) (*Dataflow, error) {
	return nil, pgerror.Unsupported("query")
}
