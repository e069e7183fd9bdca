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
// to out (exactly one value; with an error at most one). For a strict function
// it is not called for rows with a NULL argument. It is for work that costs
// far more than the call: text, json, arrays. It takes constants unexpanded.
func RowKernel(f func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		out := x.Builder(c.Typ.Kind(), n)
		a := Args(args)
		var failed columnar.Bitmap
		for i := range n {
			if i%pollRows == pollRows-1 {
				x.poll()
			}
			if c.Fn.Strict && a.anyNull(i) {
				out.Null()
				continue
			}
			if err := f(x, a, i, out); err != nil {
				x.Fail(i, err)
				if out.Len() == i {
					out.Null()
				}
				if failed == nil {
					failed = columnar.NewBitmap(n)
				}
				failed.Set(i)
			}
		}
		v := out.Build()
		if failed != nil {
			return overlay(v, failed)
		}
		return v
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

// map1 makes a kernel of a function of one fixed-width value that cannot fail.
func map1[A, R columnar.Fixed](f func(a A) R) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		dst, out := Result[R](x, n)
		for i, a := range columnar.Values[A](args[0])[:n] {
			dst[i] = f(a)
		}
		return out
	}
}

// map2 makes a kernel of a function of two fixed-width values that cannot fail.
func map2[A, B, R columnar.Fixed](f func(a A, b B) R) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		a, b := operandOf[A](args[0], n), operandOf[B](args[1], n)
		dst, out := Result[R](x, n)
		for i := range dst {
			dst[i] = f(a.at(i), b.at(i))
		}
		return out
	}
}

// try1 makes a kernel of a function of one fixed-width value that may fail.
func try1[A, R columnar.Fixed](f func(x *Eval, a A) (R, *pgerror.Error)) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		dst, out := Result[R](x, n)
		for i, a := range columnar.Values[A](args[0])[:n] {
			var err *pgerror.Error
			if dst[i], err = f(x, a); err != nil {
				x.Fail(i, err)
			}
		}
		return out
	}
}

// try2 makes a kernel of a function of two fixed-width values that may fail.
func try2[A, B, R columnar.Fixed](f func(x *Eval, a A, b B) (R, *pgerror.Error)) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		a, b := operandOf[A](args[0], n), operandOf[B](args[1], n)
		dst, out := Result[R](x, n)
		for i := range dst {
			var err *pgerror.Error
			if dst[i], err = f(x, a.at(i), b.at(i)); err != nil {
				x.Fail(i, err)
			}
		}
		return out
	}
}
