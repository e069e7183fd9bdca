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

// NewAccumulator makes the state of a call of fn with the given argument types
// and result type.
func NewAccumulator(fn *Aggregate, args []types.Type, typ types.Type) (acc Accumulator, invertible bool) {
	if fn.New != nil {
		return fn.New(args, typ), fn.Invertible
	}
	return &collector{call: AggregateCall{Fn: fn, Args: args, Typ: typ}}, false
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

// collector is the state of an aggregate that needs its whole group.
type collector struct {
	call AggregateCall
	rows []*columnar.Builder
	n    int
}

func (c *collector) Reset() { c.rows, c.n = nil, 0 }

func (c *collector) Add(_ *Eval, args []*columnar.Vec, i int, diff int64) error {
	if c.rows == nil {
		for _, a := range args {
			c.rows = append(c.rows, columnar.NewBuilder(a.Kind(), 16))
		}
	}
	for ; diff > 0; diff-- {
		for k, a := range args {
			c.rows[k].AppendFrom(a, i)
		}
		c.n++
	}
	return nil
}

func (c *collector) Value(x *Eval, out *columnar.Builder) error {
	vecs := make([]*columnar.Vec, len(c.call.Args))
	for k := range vecs {
		b := columnar.NewBuilder(c.call.Args[k].Kind(), c.n)
		if c.rows != nil {
			v := c.rows[k].Build()
			for i := range c.n {
				b.AppendFrom(v, i)
				c.rows[k].AppendFrom(v, i)
			}
		}
		vecs[k] = b.Build()
	}
	return c.call.Fn.Collect(x, &c.call, vecs, 0, c.n, out)
}

// NewEval is an evaluation outside of a program, for aggregates and table
// functions.
func NewEval(ctx *Context) *Eval {
	x := &Eval{Context: ctx}
	x.frame = x.newFrame(0, 0)
	return x
}
