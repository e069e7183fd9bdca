package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// Accumulator is the running state of one aggregate call, for window frames and
// one-off queries: rows come (diff > 0) and, where Invertible, go (diff < 0).
type Accumulator interface {
	Add(x *Eval, args []*columnar.Vec, i int, diff int64) error
	Value(x *Eval, out *columnar.Builder) error
	Reset()
}

// NewAccumulator makes the state of a call of fn with the given argument types
// and result type.
func NewAccumulator(fn *Aggregate, args []types.Type, typ types.Type) (acc Accumulator, invertible bool, err error) {
	return nil, false, pgerror.Unsupported("aggregate " + fn.Name)
}
