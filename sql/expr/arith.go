package expr

import (
	"math"
	"math/bits"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// Errors of arithmetic.
var (
	errDivZero    = pgerror.New(pgerror.DivisionByZero, "division by zero")
	errInt2Range  = pgerror.New(pgerror.NumericValueOutOfRange, "smallint out of range")
	errInt4Range  = pgerror.New(pgerror.NumericValueOutOfRange, "integer out of range")
	errInt8Range  = pgerror.New(pgerror.NumericValueOutOfRange, "bigint out of range")
	errFloatOver  = pgerror.New(pgerror.NumericValueOutOfRange, "value out of range: overflow")
	errFloatUnder = pgerror.New(pgerror.NumericValueOutOfRange, "value out of range: underflow")
)

// integer lists the integer kinds.
type integer interface{ int16 | int32 | int64 }

// floating lists the floating-point kinds.
type floating interface{ float32 | float64 }

func rangeErr[T integer]() *pgerror.Error {
	var z T
	switch any(z).(type) {
	case int16:
		return errInt2Range
	case int32:
		return errInt4Range
	}
	return errInt8Range
}

// operand is an argument of a binary kernel: values, or one constant.
type operand[T any] struct {
	vals []T
	one  bool
	c    T
}

func operandOf[T columnar.Fixed](v *columnar.Vec, n int) operand[T] {
	vals := columnar.Values[T](v)
	if len(vals) == 1 && n != 1 {
		return operand[T]{vals: vals, one: true, c: vals[0]}
	}
	return operand[T]{vals: vals[:n]}
}

// at is value i.
func (o *operand[T]) at(i int) T {
	if o.one {
		return o.c
	}
	return o.vals[i]
}

// widened is an argument of an integer kernel, converted to the kernel's type.
func widened[T integer](x *Eval, v *columnar.Vec, n int) operand[T] {
	if v.Kind() == columnar.KindOf[T]() {
		return operandOf[T](v, n)
	}
	vals, _ := Result[T](x, v.Len())
	switch v.Kind() {
	case columnar.KindInt16:
		convert(vals, v.Int16s())
	case columnar.KindInt32:
		convert(vals, v.Int32s())
	default:
		convert(vals, v.Int64s())
	}
	if len(vals) == 1 && n != 1 {
		return operand[T]{vals: vals, one: true, c: vals[0]}
	}
	return operand[T]{vals: vals}
}

// number lists the kinds that Go converts among.
type number interface{ integer | floating }

func convert[D, S number](dst []D, src []S) {
	dst = dst[:len(src)]
	for i, s := range src {
		dst[i] = D(s)
	}
}

// addInt is a+b: overflow shows in the sign bits, collected over all rows and
// looked for only if some row has it.
func addInt[T integer](_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	a, b := widened[T](x, args[0], n), widened[T](x, args[1], n)
	dst, out := Result[T](x, n)
	if a.one {
		a, b = b, a
	}
	dst = dst[:n]
	var over T
	if b.one {
		for i, p := range a.vals[:n] {
			r := p + b.c
			over |= (r ^ p) & (r ^ b.c)
			dst[i] = r
		}
	} else {
		q := b.vals[:n]
		for i, p := range a.vals[:n] {
			r := p + q[i]
			over |= (r ^ p) & (r ^ q[i])
			dst[i] = r
		}
	}
	if over < 0 {
		for i, r := range dst {
			if p, q := a.at(i), b.at(i); (r^p)&(r^q) < 0 {
				x.Fail(i, rangeErr[T]())
			}
		}
	}
	return out
}

func subInt[T integer](_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	a, b := widened[T](x, args[0], n), widened[T](x, args[1], n)
	dst, out := Result[T](x, n)
	dst = dst[:n]
	var over T
	switch {
	case b.one:
		for i, p := range a.vals[:n] {
			r := p - b.c
			over |= (p ^ b.c) & (r ^ p)
			dst[i] = r
		}
	case a.one:
		for i, q := range b.vals[:n] {
			r := a.c - q
			over |= (a.c ^ q) & (r ^ a.c)
			dst[i] = r
		}
	default:
		q := b.vals[:n]
		for i, p := range a.vals[:n] {
			r := p - q[i]
			over |= (p ^ q[i]) & (r ^ p)
			dst[i] = r
		}
	}
	if over < 0 {
		for i, r := range dst {
			if p, q := a.at(i), b.at(i); (p^q)&(r^p) < 0 {
				x.Fail(i, rangeErr[T]())
			}
		}
	}
	return out
}

// mulNarrow is a*b of integers up to 32 bits, checked in 64.
func mulNarrow[T int16 | int32](_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	a, b := widened[T](x, args[0], n), widened[T](x, args[1], n)
	dst, out := Result[T](x, n)
	if a.one {
		a, b = b, a
	}
	dst = dst[:n]
	bad := false
	if b.one {
		c := int64(b.c)
		for i, p := range a.vals[:n] {
			r := int64(p) * c
			bad = bad || int64(T(r)) != r
			dst[i] = T(r)
		}
	} else {
		q := b.vals[:n]
		for i, p := range a.vals[:n] {
			r := int64(p) * int64(q[i])
			bad = bad || int64(T(r)) != r
			dst[i] = T(r)
		}
	}
	if bad {
		for i := range dst {
			if r := int64(a.at(i)) * int64(b.at(i)); int64(T(r)) != r {
				x.Fail(i, rangeErr[T]())
			}
		}
	}
	return out
}

// mulOverflows reports whether the product of two int64 does not fit.
func mulOverflows(a, b int64) bool {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	// Correct the unsigned high word to the signed one.
	hi -= uint64(a>>63) & uint64(b)
	hi -= uint64(b>>63) & uint64(a)
	return hi != uint64(int64(lo)>>63)
}

func mulInt8(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	a, b := widened[int64](x, args[0], n), widened[int64](x, args[1], n)
	dst, out := Result[int64](x, n)
	if a.one {
		a, b = b, a
	}
	dst = dst[:n]
	bad := false
	if b.one {
		for i, p := range a.vals[:n] {
			bad = mulOverflows(p, b.c) || bad
			dst[i] = p * b.c
		}
	} else {
		q := b.vals[:n]
		for i, p := range a.vals[:n] {
			bad = mulOverflows(p, q[i]) || bad
			dst[i] = p * q[i]
		}
	}
	if bad {
		for i := range dst {
			if mulOverflows(a.at(i), b.at(i)) {
				x.Fail(i, errInt8Range)
			}
		}
	}
	return out
}

func divInt[T integer](_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	a, b := widened[T](x, args[0], n), widened[T](x, args[1], n)
	dst, out := Result[T](x, n)
	for i := range dst {
		p, q := a.at(i), b.at(i)
		switch q {
		case 0:
			dst[i] = 0
			x.Fail(i, errDivZero)
		case -1:
			dst[i] = -p
			if p == -p && p != 0 {
				x.Fail(i, rangeErr[T]())
			}
		default:
			dst[i] = p / q
		}
	}
	return out
}

func modInt[T integer](_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	a, b := widened[T](x, args[0], n), widened[T](x, args[1], n)
	dst, out := Result[T](x, n)
	for i := range dst {
		p, q := a.at(i), b.at(i)
		switch q {
		case 0:
			dst[i] = 0
			x.Fail(i, errDivZero)
		case -1:
			dst[i] = 0
		default:
			dst[i] = p % q
		}
	}
	return out
}

func negInt[T integer](_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	dst, out := Result[T](x, n)
	for i, p := range columnar.Values[T](args[0]) {
		dst[i] = -p
		if p == -p && p != 0 {
			x.Fail(i, rangeErr[T]())
		}
	}
	return out
}

func absInt[T integer](_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	dst, out := Result[T](x, n)
	for i, p := range columnar.Values[T](args[0]) {
		dst[i] = max(p, -p)
		if p == -p && p != 0 {
			x.Fail(i, rangeErr[T]())
		}
	}
	return out
}

// identity returns its argument: unary plus.
func identity(_ *Call, _ *Eval, args []*columnar.Vec, _ int) *columnar.Vec { return args[0] }

// bitwise makes a kernel of a function of two integers that cannot fail.
func bitwise[T integer](f func(a, b T) T) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		a, b := operandOf[T](args[0], n), operandOf[T](args[1], n)
		dst, out := Result[T](x, n)
		for i := range dst {
			dst[i] = f(a.at(i), b.at(i))
		}
		return out
	}
}

// shift makes a kernel of a shift by an int4; the count wraps as the CPU's
// does on the width that PostgreSQL computes in.
func shift[T integer](f func(a T, by uint) T) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		a, b := operandOf[T](args[0], n), operandOf[int32](args[1], n)
		dst, out := Result[T](x, n)
		for i := range dst {
			dst[i] = f(a.at(i), uint(b.at(i)))
		}
		return out
	}
}

// floats is an argument of a float kernel, converted to the kernel's type.
func floats[T floating](x *Eval, v *columnar.Vec, n int) operand[T] {
	if v.Kind() == columnar.KindOf[T]() {
		return operandOf[T](v, n)
	}
	vals, _ := Result[T](x, v.Len())
	if v.Kind() == columnar.KindFloat32 {
		convert(vals, v.Float32s())
	} else {
		convert(vals, v.Float64s())
	}
	if len(vals) == 1 && n != 1 {
		return operand[T]{vals: vals, one: true, c: vals[0]}
	}
	return operand[T]{vals: vals}
}

// isInf is branch-light for both widths.
func isInf[T floating](f T) bool { return math.IsInf(float64(f), 0) }

func addFloat[T floating](_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	a, b := floats[T](x, args[0], n), floats[T](x, args[1], n)
	dst, out := Result[T](x, n)
	bad := false
	for i := range dst {
		r := a.at(i) + b.at(i)
		bad = bad || isInf(r)
		dst[i] = r
	}
	if bad {
		checkOver(x, dst, &a, &b)
	}
	return out
}

// checkOver fails the rows that became infinite from finite arguments.
func checkOver[T floating](x *Eval, dst []T, a, b *operand[T]) {
	for i, r := range dst {
		if isInf(r) && !isInf(a.at(i)) && !isInf(b.at(i)) {
			x.Fail(i, errFloatOver)
		}
	}
}

func subFloat[T floating](_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	a, b := floats[T](x, args[0], n), floats[T](x, args[1], n)
	dst, out := Result[T](x, n)
	bad := false
	for i := range dst {
		r := a.at(i) - b.at(i)
		bad = bad || isInf(r)
		dst[i] = r
	}
	if bad {
		checkOver(x, dst, &a, &b)
	}
	return out
}

func mulFloat[T floating](_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	a, b := floats[T](x, args[0], n), floats[T](x, args[1], n)
	dst, out := Result[T](x, n)
	bad := false
	for i := range dst {
		r := a.at(i) * b.at(i)
		bad = bad || isInf(r) || r == 0
		dst[i] = r
	}
	if bad {
		checkOver(x, dst, &a, &b)
		for i, r := range dst {
			if r == 0 && a.at(i) != 0 && b.at(i) != 0 {
				x.Fail(i, errFloatUnder)
			}
		}
	}
	return out
}

func divFloat[T floating](_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	a, b := floats[T](x, args[0], n), floats[T](x, args[1], n)
	dst, out := Result[T](x, n)
	for i := range dst {
		p, q := a.at(i), b.at(i)
		r := p / q
		dst[i] = r
		switch {
		case q == 0 && p == p: // NaN / 0 is NaN
			dst[i] = 0
			x.Fail(i, errDivZero)
		case isInf(r) && !isInf(p):
			x.Fail(i, errFloatOver)
		case r == 0 && p != 0 && !isInf(q):
			x.Fail(i, errFloatUnder)
		}
	}
	return out
}

func registerIntOps[T integer](t types.Type, mul Kernel) {
	bin := func(name string, total bool, k Kernel) {
		Register(Function{Name: name, Operator: true, Args: []types.Type{t, t}, Ret: t, Strict: true, Total: total, Consts: ScalarConsts, Eval: k})
	}
	un := func(name string, total bool, k Kernel) {
		Register(Function{Name: name, Operator: true, Args: []types.Type{t}, Ret: t, Strict: true, Total: total, Eval: k})
	}
	bin("+", false, addInt[T])
	bin("-", false, subInt[T])
	bin("*", false, mul)
	bin("/", false, divInt[T])
	bin("%", false, modInt[T])
	bin("&", true, bitwise(func(a, b T) T { return a & b }))
	bin("|", true, bitwise(func(a, b T) T { return a | b }))
	bin("#", true, bitwise(func(a, b T) T { return a ^ b }))
	un("+", true, identity)
	un("-", false, negInt[T])
	un("@", false, absInt[T])
	un("~", true, map1(func(a T) T { return ^a }))
	fn := func(name string, args int, k Kernel) {
		Register(Function{Name: name, Args: slicesRepeat(t, args), Ret: t, Strict: true, Consts: ScalarConsts, Eval: k})
	}
	fn("abs", 1, absInt[T])
	fn("mod", 2, modInt[T])
}

func slicesRepeat(t types.Type, n int) []types.Type {
	ts := make([]types.Type, n)
	for i := range ts {
		ts[i] = t
	}
	return ts
}

// registerMixed registers the operators between integers of two widths; they
// compute in the wider one.
func registerMixed[T integer](a, b, wide types.Type, mul Kernel) {
	for _, p := range [][2]types.Type{{a, b}, {b, a}} {
		for name, k := range map[string]Kernel{"+": addInt[T], "-": subInt[T], "*": mul, "/": divInt[T]} {
			Register(Function{Name: name, Operator: true, Args: p[:], Ret: wide, Strict: true, Consts: ScalarConsts, Eval: k})
		}
	}
}

func registerFloatOps[T floating](args [2]types.Type, ret types.Type) {
	for name, k := range map[string]Kernel{"+": addFloat[T], "-": subFloat[T], "*": mulFloat[T], "/": divFloat[T]} {
		Register(Function{Name: name, Operator: true, Args: args[:], Ret: ret, Strict: true, Consts: ScalarConsts, Eval: k})
	}
}

func registerFloatUnary[T floating](t types.Type) {
	abs := map1(func(a T) T { return T(math.Abs(float64(a))) })
	Register(Function{Name: "+", Operator: true, Args: []types.Type{t}, Ret: t, Strict: true, Total: true, Eval: identity})
	Register(Function{Name: "-", Operator: true, Args: []types.Type{t}, Ret: t, Strict: true, Total: true, Eval: map1(func(a T) T { return -a })})
	Register(Function{Name: "@", Operator: true, Args: []types.Type{t}, Ret: t, Strict: true, Total: true, Eval: abs})
	Register(Function{Name: "abs", Args: []types.Type{t}, Ret: t, Strict: true, Total: true, Eval: abs})
}

func registerShifts() {
	type ts = []types.Type
	op := func(name string, t types.Type, k Kernel) {
		Register(Function{Name: name, Operator: true, Args: ts{t, types.Int4}, Ret: t, Strict: true, Total: true, Consts: ScalarConsts, Eval: k})
	}
	// smallint and integer are shifted as 32-bit numbers, bigint as 64-bit ones.
	op("<<", types.Int2, shift(func(a int16, by uint) int16 { return int16(int32(a) << (by & 31)) }))
	op(">>", types.Int2, shift(func(a int16, by uint) int16 { return int16(int32(a) >> (by & 31)) }))
	op("<<", types.Int4, shift(func(a int32, by uint) int32 { return a << (by & 31) }))
	op(">>", types.Int4, shift(func(a int32, by uint) int32 { return a >> (by & 31) }))
	op("<<", types.Int8, shift(func(a int64, by uint) int64 { return a << (by & 63) }))
	op(">>", types.Int8, shift(func(a int64, by uint) int64 { return a >> (by & 63) }))
}

func init() {
	registerIntOps[int16](types.Int2, mulNarrow[int16])
	registerIntOps[int32](types.Int4, mulNarrow[int32])
	registerIntOps[int64](types.Int8, mulInt8)
	registerMixed[int32](types.Int2, types.Int4, types.Int4, mulNarrow[int32])
	registerMixed[int64](types.Int2, types.Int8, types.Int8, mulInt8)
	registerMixed[int64](types.Int4, types.Int8, types.Int8, mulInt8)
	registerFloatOps[float32]([2]types.Type{types.Float4, types.Float4}, types.Float4)
	registerFloatOps[float64]([2]types.Type{types.Float8, types.Float8}, types.Float8)
	registerFloatOps[float64]([2]types.Type{types.Float4, types.Float8}, types.Float8)
	registerFloatOps[float64]([2]types.Type{types.Float8, types.Float4}, types.Float8)
	registerFloatUnary[float32](types.Float4)
	registerFloatUnary[float64](types.Float8)
	registerShifts()
}
