package differential

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// Groups is a run of whole groups, one after the other, in Rows.
type Groups struct {
	// Rows has the input's columns. Within a group the rows are distinct and
	// sorted by the order asked for, ties by the whole row's physical order.
	Rows columnar.Batch
	// Mults is how many times each row occurs, ≥ 1.
	Mults []int64
	// Ends[g] is the end of group g in Rows; it begins where g-1 ends. A group
	// is empty only if it is the one of GroupMapOptions.Global.
	Ends []int
	// Core, if not nil, tells the rows for which output is wanted: the others are
	// there to be seen. Only a function with a Reach gets it.
	Core []bool
}

// GroupFunc computes output rows from whole groups.
//
//  1. The output for a group depends on that group only (not on the others
//     that happen to come in the same call), and equal groups give equal output:
//     GroupMap computes the old output again rather than keep it.
//  2. Diffs in what it emits are multiplicities (> 0; nil: 1 each), in emitErr
//     rows of (code, message).
//  3. Calls for different partitions may be concurrent.
//  4. g and its vectors may be kept (they are immutable); what is emitted is
//     handed over.
type GroupFunc interface {
	Apply(g *Groups, emit, emitErr func(*dataflow.Delta))
}

// GroupMapOptions are the options of GroupMap.
type GroupMapOptions struct {
	// Order sorts the rows of a group.
	Order []Order
	// Global: there are no key columns and the one group exists also when it
	// is empty (SQL without GROUP BY).
	Global bool
	// Reach, if not nil, says that the function is local: it makes output row by
	// row, and what it makes of a row depends on the rows within its reach only,
	// and on being at the group's edge if they end there.
	Reach *Reach
	// Running, if not nil, says that the function carries states through a group,
	// so that large groups can be computed from a change on.
	Running *Running
	// Ranked, if not nil, says that the function needs of a large group no more than
	// the rows at some places.
	Ranked *Ranked
}
