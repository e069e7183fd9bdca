// Package plan is the plan nodes: pure data with one printer. The same nodes
// serve the bound stage (correlated: expr.OuterColumn, expr.Subquery and
// lateral inputs may occur) and the relational stage (decorrelated, optimized,
// ready for dataflow/render).
package plan

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/types"
)

// ObjectID identifies a catalog object for ever; ids are not reused.
type ObjectID uint64

// Column describes an output column.
type Column struct {
	Name    string
	Type    types.Type
	NotNull bool // known never to be NULL
}

// Rel is a relational operator: a multiset of rows with Columns.
type Rel interface {
	expr.Rel
	Columns() []Column
}

// Get reads a collection of the catalog (table, source, materialized view).
// Views are expanded by the binder.
type Get struct {
	ID         ObjectID
	Name       string // schema-qualified, for EXPLAIN and errors
	Cols       []Column
	Keys       [][]int // column sets known to be unique
	Refs       []Reference
	AppendOnly bool // no diff is ever negative
	// Proj tells which columns of the collection Cols are, after column
	// pruning; nil means the first len(Cols) ones.
	Proj []int
	// Lookup says that only rows with certain keys are wanted. It is a hint:
	// the filters above hold without it, so a reader may ignore it.
	Lookup *Lookup
}

// Reference is a foreign key of a Get: a row without NULL in the columns Cols of the
// Get has just one row of another collection whose columns ToCols equal them.
type Reference struct {
	Cols   []int
	To     ObjectID
	ToCols []int
	// Deferrable says that a transaction may see rows that do not satisfy it yet.
	Deferrable bool
}

// Lookup is a read of a collection by the keys of an index (or of the
// collection's own key): the coordinator answers it without a dataflow.
type Lookup struct {
	// Index is the index to use, or the collection itself.
	Index ObjectID
	// Key are the key columns, as columns of the collection.
	Key []int
	// Values has, for each wanted key, one expression a key column, without
	// columns (constants or parameters), of the columns' types.
	Values [][]expr.Expr
	// Unique says that a key has at most one row.
	Unique bool
	// Exact says that there is one key, and that the Filter over the read asks
	// for nothing else.
	Exact bool

	// Ordered says that the rows are found in the order of Key: Values has, for the
	// first columns of Key only, perhaps for none, the values wanted, and Lower and
	// Upper bound the next one. NULL is not within bounds, if there are some.
	Ordered      bool
	Lower, Upper *Bound
	// First says that the rows are wanted in the order of the key columns after
	// those of Values, or with Desc against it, and only as many as those above
	// ask for.
	First, Desc bool
	// Names are those of the columns of Key, for who explains plans.
	Names []string
}

// Bound is an end of a range of values: an expression without columns.
type Bound struct {
	Value expr.Expr
	Open  bool // the value itself is not within
}

// Source is the column of the collection that output column i is.
func (r *Get) Source(i int) int {
	if r.Proj == nil {
		return i
	}
	return r.Proj[i]
}

// Constant is literal rows (VALUES of constants, virtual catalog tables).
type Constant struct {
	Cols []Column
	Rows columnar.Batch
	// Diffs nil means +1 each.
	Diffs []dataflow.Diff
}

// Project computes Exprs over Input; they are the only output columns.
type Project struct {
	Input Rel
	Exprs []expr.Expr
	Cols  []Column
}

// Filter keeps the rows for which all Preds are true.
type Filter struct {
	Input Rel
	Preds []expr.Expr
}

// JoinKind is the kind of a join.
type JoinKind uint8

// The kinds of joins. Semi and Anti output the left columns only.
const (
	JoinInner JoinKind = iota + 1
	JoinLeft
	JoinRight
	JoinFull
	JoinSemi
	JoinAnti
)

// Join joins by On: a conjunction over the left columns followed by the right
// columns. Empty On is a cross join. In the bound stage Lateral says that
// Right may refer to Left's columns as expr.OuterColumn of Depth 1.
type Join struct {
	Kind    JoinKind
	Left    Rel
	Right   Rel
	On      []expr.Expr
	Lateral bool
	// Lookup says that a query that runs once should compute Left first, which
	// is thought to be small, and read of Right's collection only the rows with
	// the keys found. It is a hint: the join is right without it.
	Lookup *JoinLookup
	// Delta says that a maintained plan should keep no intermediate results of
	// the inner joins below (see TreeOf), but follow the changes of each input
	// through the others: Delta[i] is the order in which those of input i meet
	// them, itself first. It is a hint, too.
	Delta [][]int
}

// JoinLookup is how a join looks its right side up: Right only filters and
// projects a Get of the collection.
type JoinLookup struct {
	// Index is the index to use, or the collection itself.
	Index ObjectID
	// Key are the key columns, as columns of the collection; Values gives them,
	// over Left's columns, in the key columns' types.
	Key    []int
	Values []expr.Expr
	Unique bool
}

// AggCall is one aggregate of an Aggregate. Args, Filter and OrderBy are over
// the input's columns.
type AggCall struct {
	Fn       *expr.Aggregate
	Args     []expr.Expr
	Distinct bool
	Filter   expr.Expr // nil: none
	OrderBy  []SortExpr
	Typ      types.Type
	Pos      int
}

// SortExpr is an ordering by an expression.
type SortExpr struct {
	Expr       expr.Expr
	Desc       bool
	NullsFirst bool
}

// Aggregate groups by GroupBy (columns 0..len-1 of the output) and computes
// Aggs (the columns after). Without GroupBy there is exactly one row, also
// over no input. GroupingSets, if not nil, lists sets of indexes into GroupBy;
// group columns outside of a row's set are NULL, and a last column of type
// int4 numbers the grouping set.
type Aggregate struct {
	Input        Rel
	GroupBy      []expr.Expr
	GroupingSets [][]int
	Aggs         []AggCall
	Cols         []Column
}

// Distinct removes duplicate rows.
type Distinct struct{ Input Rel }

// SortKey orders by an output column.
type SortKey struct {
	Col        int
	Desc       bool
	NullsFirst bool
}

// TopK keeps, per group of equal Partition columns, the rows from Offset up to
// Offset+Limit in the order Order (ties broken by the whole row, so that the
// result is deterministic). Nil Limit: all. Limit and Offset are expressions
// without columns (constants or parameters). WithTies keeps the peers of the last.
type TopK struct {
	Input         Rel
	Partition     []int
	Order         []SortKey
	Limit, Offset expr.Expr
	WithTies      bool
	// RowNumber appends an int8 column: the number of the row in its group,
	// from 1, with those before Offset counted.
	RowNumber bool
}

// FrameUnit, FrameBound and Frame describe a window frame.
type FrameUnit uint8

// The units of a frame.
const (
	FrameRange FrameUnit = iota
	FrameRows
	FrameGroups
)

// FrameBoundKind is how a frame bound is given.
type FrameBoundKind uint8

// The kinds of frame bounds.
const (
	UnboundedPreceding FrameBoundKind = iota
	OffsetPreceding
	CurrentRow
	OffsetFollowing
	UnboundedFollowing
)

// FrameBound is one end of a frame.
type FrameBound struct {
	Kind   FrameBoundKind
	Offset expr.Expr
}

// FrameExclude is the EXCLUDE clause.
type FrameExclude uint8

// The EXCLUDE clauses.
const (
	ExcludeNone FrameExclude = iota
	ExcludeCurrentRow
	ExcludeGroup
	ExcludeTies
)

// Frame is a window frame.
type Frame struct {
	Unit       FrameUnit
	Start, End FrameBound
	Exclude    FrameExclude
}

// WindowCall is one window function: a true window function (Name such as
// row_number, rank, lag) or an aggregate over a frame (Agg set).
type WindowCall struct {
	Name   string
	Agg    *expr.Aggregate
	Args   []expr.Expr
	Filter expr.Expr
	Frame  Frame
	// IgnoreNulls says that lag, lead, first_value, last_value and nth_value pass
	// over rows whose value is NULL.
	IgnoreNulls bool
	Typ         types.Type
	Pos         int
}

// Window appends to the input's columns one column per call, all over the same
// partitioning and ordering.
type Window struct {
	Input     Rel
	Partition []expr.Expr
	Order     []SortExpr
	Calls     []WindowCall
	Cols      []Column // input's, then one per call
}

// SetOpKind is the kind of a set operation.
type SetOpKind uint8

// The set operations.
const (
	Union SetOpKind = iota + 1
	Intersect
	Except
)

// SetOp combines inputs with equal column types. Union may have many inputs.
type SetOp struct {
	Kind   SetOpKind
	All    bool
	Inputs []Rel
	Cols   []Column
}

// FlatMap is, for each input row, the rows of a set-returning function: the
// output is the input's columns, then the function's, then (if Ordinality) an
// int8 counted from 1. Args are over the input's columns. With a left outer
// lateral join, Outer keeps input rows without results, NULL-extended.
type FlatMap struct {
	Input      Rel
	Fn         *expr.TableFunction
	Args       []expr.Expr
	Ordinality bool
	Outer      bool
	Cols       []Column
}

// Let binds the collection Value to an id for Body: computed once, used many times.
type Let struct {
	ID    int
	Value Rel
	Body  Rel
}

// LocalGet reads a Let or a recursive binding.
type LocalGet struct {
	ID         int
	Cols       []Column
	Keys       [][]int // of the bound value
	AppendOnly bool    // of the bound value
}

// Recursive is WITH [MUTUALLY] RECURSIVE: Bindings are iterated from empty to
// a fixed point, then Body is computed. Distinct[i] says that binding i is a
// set (UNION), which guarantees termination.
type Recursive struct {
	IDs      []int
	Values   []Rel
	Distinct []bool
	Limit    int // 0: none; otherwise at most so many iterations
	// FailAtLimit says that reaching the limit is an error.
	FailAtLimit bool
	// Working says that a step sees only the rows that the step before has added.
	// Then there are two bindings: where it starts, and the step, which reads its
	// own one; Body reads that too, as all the rows together.
	Working bool
	Body    Rel
}

// Assert fails with Err (as row errors do) when Input has more than one row
// per group of equal Key columns: the guard of scalar subqueries. It passes
// its input on.
type Assert struct {
	Input Rel
	Key   []int
}

// Sort appears only at the root of a one-off query or subscription: the order
// in which rows are returned. A lowered plan may have a Project above it (see
// SortedRoot).
type Sort struct {
	Input         Rel
	Order         []SortKey
	Limit, Offset expr.Expr
}

// IsRel marks the nodes.
func (*Get) IsRel()       {}
func (*Constant) IsRel()  {}
func (*Project) IsRel()   {}
func (*Filter) IsRel()    {}
func (*Join) IsRel()      {}
func (*Aggregate) IsRel() {}
func (*Distinct) IsRel()  {}
func (*TopK) IsRel()      {}
func (*Window) IsRel()    {}
func (*SetOp) IsRel()     {}
func (*FlatMap) IsRel()   {}
func (*Let) IsRel()       {}
func (*LocalGet) IsRel()  {}
func (*Recursive) IsRel() {}
func (*Assert) IsRel()    {}
func (*Sort) IsRel()      {}

// Columns of the nodes.
func (r *Get) Columns() []Column       { return r.Cols }
func (r *Constant) Columns() []Column  { return r.Cols }
func (r *Project) Columns() []Column   { return r.Cols }
func (r *Filter) Columns() []Column    { return r.Input.Columns() }
func (r *Aggregate) Columns() []Column { return r.Cols }
func (r *Distinct) Columns() []Column  { return r.Input.Columns() }
func (r *TopK) Columns() []Column {
	in := r.Input.Columns()
	if !r.RowNumber {
		return in
	}
	out := make([]Column, 0, len(in)+1)
	return append(append(out, in...), Column{Name: "row_number", Type: types.Int8, NotNull: true})
}
func (r *Window) Columns() []Column    { return r.Cols }
func (r *SetOp) Columns() []Column     { return r.Cols }
func (r *FlatMap) Columns() []Column   { return r.Cols }
func (r *Let) Columns() []Column       { return r.Body.Columns() }
func (r *LocalGet) Columns() []Column  { return r.Cols }
func (r *Recursive) Columns() []Column { return r.Body.Columns() }
func (r *Assert) Columns() []Column    { return r.Input.Columns() }
func (r *Sort) Columns() []Column      { return r.Input.Columns() }

// Columns of a join: the left's, then (unless Semi or Anti) the right's, each
// side nullable where the join may extend it with NULLs.
func (r *Join) Columns() []Column { return appendColumns(nil, r) }

// appendColumns appends the columns of r to out. Each column of a tree of joins is
// copied once, not once a level.
func appendColumns(out []Column, r Rel) []Column {
	switch r := r.(type) {
	case *Filter:
		return appendColumns(out, r.Input)
	case *Join:
		begin := len(out)
		out = appendColumns(out, r.Left)
		if r.Kind == JoinSemi || r.Kind == JoinAnti {
			return out
		}
		middle := len(out)
		out = appendColumns(out, r.Right)
		if r.Kind == JoinRight || r.Kind == JoinFull {
			nullable(out[begin:middle])
		}
		if r.Kind == JoinLeft || r.Kind == JoinFull {
			nullable(out[middle:])
		}
		return out
	}
	return append(out, r.Columns()...)
}

func nullable(cols []Column) {
	for i := range cols {
		cols[i].NotNull = false
	}
}
