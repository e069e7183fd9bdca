package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

// Volatility is PostgreSQL's provolatile.
type Volatility uint8

// The volatilities.
const (
	Immutable Volatility = iota
	Stable               // fixed within a statement: now(), current_user; depends on settings
	Volatile             // random(), nextval(): refused in maintained views
)

// Function is one overload of a scalar function, operator or cast. A prefix
// operator has one argument.
type Function struct {
	Name       string
	OID        uint32 // pg_proc OID of PostgreSQL where there is one
	Args       []types.Type
	ArgNames   []string   // for named notation (make_interval(days => 3)), may be nil
	Defaults   []*Const   // of the last len(Defaults) arguments
	Variadic   bool       // the last argument's array type is spread
	Ret        types.Type // may be polymorphic
	Strict     bool       // NULL in, NULL out, without a call
	Volatility Volatility
	Sequential bool // reads or changes what other calls do: nextval(), set_config()
	Operator   bool // registered under an operator symbol
	// Fuzzy says that = is no equality: it takes sizes, or values near each other,
	// for equal.
	Fuzzy bool
	// Internal says that the function is streamdb's own: the planner's helpers.
	Internal bool
	// Lambda is what a function that applies one applies; such a function is made
	// for its call.
	Lambda *Lambda
	// Field is the number of the field that the function takes from a record, from 1.
	Field int
	// Postfix says that the operator is printed after its argument (IS TRUE).
	Postfix bool
	// Relabel says that the result is the argument under another type of the
	// same physical form; there is no kernel.
	Relabel bool
	// Queries says that the function runs queries of its own, which no maintained
	// view can follow.
	Queries bool
	// Literal says that the call stands for a literal whose meaning depends on
	// the session; see FoldLiterals.
	Literal bool
	// Notes says that the function may tell the client something besides its result.
	Notes bool
	// Styled says that settings have a say in the result, although PostgreSQL calls
	// the function immutable.
	Styled bool
	// Total says that no argument makes it fail: the evaluator may compute it
	// also for rows whose result is not used, and the optimizer may move it.
	Total bool
	// Consts says whether constant arguments come as vectors of length 1.
	Consts ConstArgs // RowKernel needs ScalarConsts or ExpandConsts, either will do
	Eval   Kernel
	// Bind, if set, makes the kernel for one call when an expression is
	// compiled: the place to specialize by argument types (polymorphic
	// functions) or to prepare constant arguments (patterns, formats). It is
	// used instead of Eval.
	Bind func(c *Call) (Kernel, error)
}

// ConstArgs says how a kernel wants constant arguments.
type ConstArgs uint8

// The ways.
const (
	ExpandConsts ConstArgs = iota // every argument has n values
	ScalarConsts                  // a constant argument has one value; use At
)

// Aggregate is one overload of an aggregate function.
type Aggregate struct {
	Name string
	OID  uint32
	Args []types.Type
	// Variadic says that the last argument's array type is spread.
	Variadic bool
	Ret      types.Type
	// Ordered says that WITHIN GROUP applies; the ordered arguments follow the direct ones.
	Ordered bool
	// Op is how the engine computes it.
	Op AggOp
	// New makes its running state; nil for those of the Collect kind, which need
	// the whole ordered group.
	New func(args []types.Type, typ types.Type) Accumulator
	// Invertible says that the state can take rows back.
	Invertible bool
	// Collect computes it over one ordered group, the rows lo to hi of args, and
	// appends one value to out. Every aggregate has it.
	Collect CollectKernel
	// Ranks, if not nil, computes it from the values at a few places of the ordered
	// group.
	Ranks *RankKernel
	// KeepNulls says that rows with NULL arguments count (array_agg, count(*)).
	KeepNulls bool
}

// CollectKernel computes an aggregate call over the rows lo to hi (exclusive) of
// its arguments.
type CollectKernel func(x *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error

// AggregateCall is what a CollectKernel needs to know of its call.
type AggregateCall struct {
	Fn   *Aggregate
	Args []types.Type // actual types of the arguments
	Typ  types.Type
}

// AggOp is how an aggregate is computed. The planner lowers an aggregate into
// accumulable parts (sums and counts of derived columns) and a final scalar
// expression where it can; only those of the Collect kind see the whole group.
type AggOp uint8

// The ways.
const (
	AggCountStar AggOp = iota + 1
	AggCount           // of non-NULL arguments
	AggSum             // invertible: exact for integers and numeric, correctly rounded for floats
	AggAvg
	AggMin
	AggMax
	AggBoolAnd
	AggBoolOr
	AggVariance // var_pop, var_samp, stddev_pop, stddev_samp, covar_*, corr, regr_*: by Name
	AggBitwise  // bit_and, bit_or, bit_xor: by Name
	AggFirst    // first_value in the call's order; NULLs count
	AggLast     // last_value
	AggCollect  // array_agg, string_agg, json[b]_agg, json[b]_object_agg, mode, percentile_*: needs the ordered group
)

// TableFunction is one overload of a set-returning function.
type TableFunction struct {
	Name   string
	OID    uint32
	Args   []types.Type
	Cols   []types.Type // may be polymorphic in a single column
	Names  []string
	Strict bool
	// ArgNames, Defaults and Variadic are as in Function.
	ArgNames []string
	Defaults []*Const
	Variadic bool
	// Volatility is that of the function; calls with columns are evaluated per row.
	Volatility Volatility
	Eval       TableKernel
	// Cut, which may be nil, gives the arguments of calls that together give the rows of
	// the call with the i-th arguments, each at most so many, or many times fewer than it;
	// nil if it gives no more than so many.
	Cut func(args []*columnar.Vec, i int, rows int64) []*columnar.Vec
}
