package expr

import (
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

// Function is one overload of a scalar function, operator or cast.
type Function struct {
	Name       string
	OID        uint32 // pg_proc OID of PostgreSQL where there is one
	Args       []types.Type
	Variadic   bool       // the last argument's array type is spread
	Ret        types.Type // may be polymorphic
	Strict     bool       // NULL in, NULL out, without a call
	Volatility Volatility
	Operator   bool // registered under an operator symbol
	Eval       Kernel
}

// Aggregate is one overload of an aggregate function.
type Aggregate struct {
	Name string
	OID  uint32
	Args []types.Type
	Ret  types.Type
	// Ordered says that WITHIN GROUP applies; the ordered arguments follow the direct ones.
	Ordered bool
	// Op is how the engine computes it.
	Op AggOp
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
	Eval   TableKernel
}
