package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// Args are the argument vectors of a row-wise kernel; a vector of length 1
// stands for a constant.
type Args []*columnar.Vec

func (a Args) row(k, i int) (*columnar.Vec, int) {
	v := a[k]
	if v.Len() == 1 {
		return v, 0
	}
	return v, i
}

// Null reports whether argument k of row i is NULL.
func (a Args) Null(k, i int) bool {
	v, i := a.row(k, i)
	return v.Null(i)
}

// Bytes is argument k of row i, of kind Bytes.
func (a Args) Bytes(k, i int) []byte {
	v, i := a.row(k, i)
	return v.Bytes(i)
}

// Arg is argument k of row i, of a fixed-width kind.
func Arg[T columnar.Fixed](a Args, k, i int) T {
	v, i := a.row(k, i)
	return columnar.Values[T](v)[i]
}

// Bool, Int32, Int64 and Float64 are Arg for one kind.
func (a Args) Bool(k, i int) bool       { return Arg[bool](a, k, i) }
func (a Args) Int32(k, i int) int32     { return Arg[int32](a, k, i) }
func (a Args) Int64(k, i int) int64     { return Arg[int64](a, k, i) }
func (a Args) Float64(k, i int) float64 { return Arg[float64](a, k, i) }

// RowKernel makes a kernel from a function that appends the result for one row
// to out (exactly one value, unless it returns an error). For a strict function
// it is not called for rows with a NULL argument. It is for work that costs
// far more than the call: text, json, arrays. It takes constants unexpanded.
func RowKernel(f func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		out := columnar.NewBuilder(c.Typ.Kind(), n)
		a := Args(args)
		for i := range n {
			if c.Fn.Strict && a.anyNull(i) {
				out.Null()
				continue
			}
			if err := f(x, a, i, out); err != nil {
				x.Fail(i, err)
				out.Null()
			}
		}
		return out.Build()
	}
}

func (a Args) anyNull(i int) bool {
	for k := range a {
		if a.Null(k, i) {
			return true
		}
	}
	return false
}
