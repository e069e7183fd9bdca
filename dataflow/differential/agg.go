package differential

import "github.com/streamdb/streamdb/columnar"

// AggOp is what an aggregate of Reduce computes. All are maintained from
// deltas alone; none rescans its group.
type AggOp uint8

// The aggregates. Over no (non-NULL, filtered) value AggCount gives 0 and every
// other one NULL.
const (
	// AggCount counts rows (Arg < 0) or the rows with a non-NULL Arg. Out: int64.
	AggCount AggOp = iota + 1
	// AggSum adds. int16/32/64: exact in 128 bits; Out KindInt64 (the default;
	// a sum beyond int64 is a row error 22003) or KindBytes (numeric, exact).
	// float32/64: the exact sum, rounded once, to Out KindFloat32 or
	// KindFloat64 (default: Arg's kind); beyond the largest finite it is a row
	// error 22003. KindBytes: numeric.
	AggSum
	// AggMin and AggMax are by physical order, on any kind.
	AggMin
	AggMax
	// AggBoolAnd and AggBoolOr take a bool.
	AggBoolAnd
	AggBoolOr
	// AggBitAnd, AggBitOr and AggBitXor take int16/32/64.
	AggBitAnd
	AggBitOr
	AggBitXor
	// AggSxx is the sum of squared deviations of a float Arg from its mean, and
	// AggSxy that of the products of the deviations of Arg and Arg2 over the
	// rows in which both are non-NULL: what variances, covariances and
	// regressions are made of, without the cancellation that a difference of
	// rounded sums suffers. Out: float64; NaN once any value is not finite.
	AggSxx
	AggSxy
)

// Agg is one aggregate: one output column.
type Agg struct {
	Op       AggOp
	Arg      int           // input column; < 0: count(*)
	Arg2     int           // second input column, of AggSxy only
	Filter   int           // bool input column that must be true; < 0: none
	Distinct bool          // over the distinct values of Arg
	Out      columnar.Kind // kind of the result where Op leaves a choice; 0: its default
}

// ReduceOptions are what the plan knows about a Reduce.
type ReduceOptions struct {
	// Global: there are no key columns and the one group always exists, also
	// over an empty input (SQL without GROUP BY). Its row is there from the
	// first Step on.
	Global bool
	// AppendOnly: no input diff is ever negative, so that AggMin and AggMax
	// need to keep only the extreme.
	AppendOnly bool
}
