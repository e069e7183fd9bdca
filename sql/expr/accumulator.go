package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

// Accumulator is the running state of one aggregate call, for window frames and
// one-off queries: rows come (diff > 0) and, where the aggregate is Invertible,
// go (diff < 0). Rows with a NULL argument are passed over by Add itself.
type Accumulator interface {
	Add(x *Eval, args []*columnar.Vec, i int, diff int64) error
	Value(x *Eval, out *columnar.Builder) error
	Reset()
}

// Backward is implemented by accumulators to which the order of rows matters: it
// tells that they come from the last to the first.
type Backward interface{ Backward() }

// Selecting is implemented by accumulators whose value is that of one of the rows.
type Selecting interface {
	// Replaces reports whether of two rows that are not NULL the later one, j, is the
	// value rather than i.
	Replaces(args []*columnar.Vec, i, j int) bool
}

// NewAccumulator makes the state of a call of fn with the given argument types
// and result type; nil if fn needs all rows (Collect).
func NewAccumulator(fn *Aggregate, args []types.Type, typ types.Type) (acc Accumulator, invertible bool) {
	if fn.New != nil {
		return fn.New(args, typ), fn.Invertible
	}
	return nil, false
}

// accumulate is Collect by the running state.
func accumulate(x *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	acc := c.Fn.New(c.Args, c.Typ)
	for i := lo; i < hi; i++ {
		if err := acc.Add(x, args, i, 1); err != nil {
			return err
		}
	}
	return acc.Value(x, out)
}

// NewEval is an evaluation outside of a program, for aggregates and table
// functions.
func NewEval(ctx *Context) *Eval {
	x := &Eval{Context: ctx}
	x.frame = x.newFrame(0, 0)
	return x
}
