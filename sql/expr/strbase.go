package expr

import (
	"unicode/utf8"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// rowFunc appends the value of a function for row i to out.
type rowFunc = func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error

// rowFn registers a strict function computed row by row.
func rowFn(name string, ret types.Type, f rowFunc, args ...types.Type) *Function {
	return Register(Function{Name: name, Args: args, Ret: ret, Strict: true, Consts: ScalarConsts, Eval: RowKernel(f)})
}

// totalFn registers a strict function that cannot fail.
func totalFn(name string, ret types.Type, k Kernel, args ...types.Type) *Function {
	return Register(Function{Name: name, Args: args, Ret: ret, Strict: true, Total: true, Consts: ScalarConsts, Eval: k})
}

// rowOp is rowFn for an operator.
func rowOp(symbol string, ret types.Type, f rowFunc, args ...types.Type) *Function {
	return Register(Function{Name: symbol, Operator: true, Args: args, Ret: ret, Strict: true, Consts: ScalarConsts, Eval: RowKernel(f)})
}

// totalOp is totalFn for an operator.
func totalOp(symbol string, ret types.Type, k Kernel, args ...types.Type) *Function {
	return Register(Function{Name: symbol, Operator: true, Args: args, Ret: ret, Strict: true, Total: true, Consts: ScalarConsts, Eval: k})
}

// bytesFixed makes a kernel of a function from bytes to a fixed-width value.
func bytesFixed[R columnar.Fixed](f func(b []byte) R) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		dst, out := Result[R](x, n)
		a := Args(args)
		for i := range dst {
			dst[i] = f(a.Bytes(0, i))
		}
		return out
	}
}

// bytes2Fixed makes a kernel of a function from two byte strings to a
// fixed-width value.
func bytes2Fixed[R columnar.Fixed](f func(a, b []byte) R) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		dst, out := Result[R](x, n)
		a := Args(args)
		for i := range dst {
			dst[i] = f(a.Bytes(0, i), a.Bytes(1, i))
		}
		return out
	}
}

// bytesAppend makes a kernel of a function that appends its result to dst.
func bytesAppend(f func(dst, b []byte) []byte) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		out := x.Builder(columnar.KindBytes, n)
		a := Args(args)
		for i := range n {
			if a.Null(0, i) {
				out.Null()
				continue
			}
			out.Extend(func(dst []byte) []byte { return f(dst, a.Bytes(0, i)) })
		}
		return out.Build()
	}
}

// bytesPart makes a kernel of a function whose result is a part of its
// argument, with up to two int arguments behind it.
func bytesPart(f func(b []byte, n, m int32) []byte) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		out := x.Builder(columnar.KindBytes, n)
		a := Args(args)
		for i := range n {
			if a.anyNull(i) {
				out.Null()
				continue
			}
			var p [2]int32
			for k := 1; k < len(args); k++ {
				p[k-1] = a.Int32(k, i)
			}
			out.Bytes(f(a.Bytes(0, i), p[0], p[1]))
		}
		return out.Build()
	}
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// skipChars is the byte offset of character n of b, len(b) if there are fewer.
func skipChars(b []byte, n int64) int {
	if n <= 0 {
		return 0
	}
	i := 0
	for ; i < len(b) && n > 0; n-- {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, w := utf8.DecodeRune(b[i:])
		i += w
	}
	return i
}

// firstChar is the first character of b.
func firstChar(b []byte) []byte {
	_, w := utf8.DecodeRune(b)
	return b[:w]
}

// appendText appends the text form of argument k of row i, which has type t.
func (a Args) appendText(dst []byte, x *Eval, t types.Type, k, i int) []byte {
	v, i := a.row(k, i)
	return types.AppendText(dst, t, v, i, x.options())
}

// castText appends what a cast of argument k of row i to text gives.
func (a Args) castText(dst []byte, x *Eval, t types.Type, k, i int) []byte {
	switch t.OID {
	case types.OIDBool:
		if a.Bool(k, i) {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case types.OIDBPChar:
		return append(dst, types.TrimBPChar(a.Bytes(k, i))...)
	case types.OIDInet:
		return types.ReadInet(a.Bytes(k, i)).AppendFull(dst)
	}
	return a.appendText(dst, x, t, k, i)
}

func errParam(format string, args ...any) *pgerror.Error {
	return pgerror.New(pgerror.InvalidParameterValue, format, args...)
}

func errTooLong() *pgerror.Error {
	return pgerror.New(pgerror.ProgramLimitExceeded, "requested length too large")
}

// maxAlloc is the greatest size of a value. Tests lower it.
var maxAlloc = 0x3fffffff
