package expr

import (
	"bytes"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

// cmpOp is a comparison.
type cmpOp uint8

const (
	cmpEq cmpOp = iota
	cmpNe
	cmpLt
	cmpLe
	cmpGt
	cmpGe
)

var cmpSymbols = [...]string{"=", "<>", "<", "<=", ">", ">="}

// flip is the comparison with the sides exchanged.
func (o cmpOp) flip() cmpOp { return [...]cmpOp{cmpEq, cmpNe, cmpGt, cmpGe, cmpLt, cmpLe}[o] }

// holds is the truth of a comparison by the sign of a three-way one.
func (o cmpOp) holds(c int) bool {
	switch o {
	case cmpEq:
		return c == 0
	case cmpNe:
		return c != 0
	case cmpLt:
		return c < 0
	case cmpLe:
		return c <= 0
	case cmpGt:
		return c > 0
	}
	return c >= 0
}

// cmpInt compares integers of any two widths.
func cmpInt[T integer](op cmpOp) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		a, b, op := widened[T](x, args[0], n), widened[T](x, args[1], n), op
		dst, out := Result[bool](x, n)
		if a.one {
			a, b, op = b, a, op.flip()
		}
		if b.one {
			cmpConst(op, dst, a.vals, b.c)
		} else {
			cmpVals(op, dst, a.vals, b.vals)
		}
		return out
	}
}

type ordered interface {
	int16 | int32 | int64 | float32 | float64 | uint8
}

// cmpConst compares each value with a constant.
func cmpConst[T ordered](op cmpOp, dst []bool, a []T, c T) {
	dst = dst[:len(a)]
	switch op {
	case cmpEq:
		for i, p := range a {
			dst[i] = p == c
		}
	case cmpNe:
		for i, p := range a {
			dst[i] = p != c
		}
	case cmpLt:
		for i, p := range a {
			dst[i] = p < c
		}
	case cmpLe:
		for i, p := range a {
			dst[i] = p <= c
		}
	case cmpGt:
		for i, p := range a {
			dst[i] = p > c
		}
	case cmpGe:
		for i, p := range a {
			dst[i] = p >= c
		}
	}
}

// cmpVals compares values pair by pair.
func cmpVals[T ordered](op cmpOp, dst []bool, a, b []T) {
	dst, b = dst[:len(a)], b[:len(a)]
	switch op {
	case cmpEq:
		for i, p := range a {
			dst[i] = p == b[i]
		}
	case cmpNe:
		for i, p := range a {
			dst[i] = p != b[i]
		}
	case cmpLt:
		for i, p := range a {
			dst[i] = p < b[i]
		}
	case cmpLe:
		for i, p := range a {
			dst[i] = p <= b[i]
		}
	case cmpGt:
		for i, p := range a {
			dst[i] = p > b[i]
		}
	case cmpGe:
		for i, p := range a {
			dst[i] = p >= b[i]
		}
	}
}

// compareFloats orders floats as SQL does: NaN equals itself and is greatest.
func compareFloats[T floating](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	case a == a:
		return -1
	case b == b:
		return 1
	}
	return 0
}

// cmpFloat compares floats. Against a constant that is not NaN the hardware's
// comparisons do, with > and >= as the negations that put NaN on top.
func cmpFloat[T floating](op cmpOp) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		a, b, op := floats[T](x, args[0], n), floats[T](x, args[1], n), op
		dst, out := Result[bool](x, n)
		if a.one {
			a, b, op = b, a, op.flip()
		}
		if c := b.c; b.one && c == c {
			switch op {
			case cmpGt:
				for i, p := range a.vals {
					dst[i] = !(p <= c)
				}
			case cmpGe:
				for i, p := range a.vals {
					dst[i] = !(p < c)
				}
			default:
				cmpConst(op, dst, a.vals, c)
			}
			return out
		}
		for i := range dst {
			dst[i] = op.holds(compareFloats(a.at(i), b.at(i)))
		}
		return out
	}
}

// cmpBool compares booleans.
func cmpBool(op cmpOp) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		a, b := x.expand(args[0], n), x.expand(args[1], n)
		dst, out := Result[bool](x, n)
		cmpVals(op, dst, rawBools(a), rawBools(b))
		return out
	}
}

// cmpText compares byte strings by their bytes (the C collation).
func cmpText(op cmpOp) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		dst, out := Result[bool](x, n)
		if op == cmpEq || op == cmpNe {
			equalText(dst, args[0], args[1], op == cmpNe)
			return out
		}
		a := Args(args)
		for i := range dst {
			dst[i] = op.holds(bytes.Compare(a.Bytes(0, i), a.Bytes(1, i)))
		}
		return out
	}
}

// equalText compares for equality: lengths first.
func equalText(dst []bool, a, b *columnar.Vec, not bool) {
	if a.Len() == 1 {
		a, b = b, a
	}
	_, offs, data := a.Raw()
	if b.Len() == 1 && len(dst) != 1 {
		c := b.Bytes(0)
		for i := range dst {
			lo, hi := offs[i], offs[i+1]
			dst[i] = (int(hi-lo) == len(c) && bytes.Equal(data[lo:hi], c)) != not
		}
		return
	}
	_, boffs, bdata := b.Raw()
	for i := range dst {
		dst[i] = bytes.Equal(data[offs[i]:offs[i+1]], bdata[boffs[i]:boffs[i+1]]) != not
	}
}

// cmpWith compares fixed-width values by a three-way comparison.
func cmpWith[A, B columnar.Fixed](compare func(x *Eval, a A, b B) int) func(op cmpOp) Kernel {
	return func(op cmpOp) Kernel {
		return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			a, b := operandOf[A](args[0], n), operandOf[B](args[1], n)
			dst, out := Result[bool](x, n)
			for i := range dst {
				dst[i] = op.holds(compare(x, a.at(i), b.at(i)))
			}
			return out
		}
	}
}

// registerCompare registers the six comparisons of two types.
func registerCompare(a, b types.Type, vol Volatility, kernel func(op cmpOp) Kernel) {
	for op := cmpEq; op <= cmpGe; op++ {
		Register(Function{
			Name: cmpSymbols[op], Operator: true, Args: []types.Type{a, b}, Ret: types.Bool,
			Strict: true, Total: true, Volatility: vol, Consts: ScalarConsts, Eval: kernel(op),
		})
	}
}

// cmpTyped compares values of one type by its general comparison.
func cmpTyped(op cmpOp) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		dst, out := Result[bool](x, n)
		a := Args(args)
		t := types.Of(c.Args[0].Type().OID)
		for i := range dst {
			if x.skip != nil && x.skip.Get(i) {
				dst[i] = false
				continue
			}
			l, j := a.row(0, i)
			r, k := a.row(1, i)
			dst[i] = op.holds(types.Compare(t, l, j, r, k))
		}
		return out
	}
}

func init() {
	i2, i4, i8 := types.Int2, types.Int4, types.Int8
	registerCompare(i2, i2, Immutable, cmpInt[int16])
	for _, p := range [][2]types.Type{{i2, i4}, {i4, i2}, {i4, i4}, {types.Date, types.Date}} {
		registerCompare(p[0], p[1], Immutable, cmpInt[int32])
	}
	for _, p := range [][2]types.Type{
		{i2, i8}, {i8, i2}, {i4, i8}, {i8, i4}, {i8, i8}, {types.Oid, types.Oid}, {types.Time, types.Time},
		{types.Timestamp, types.Timestamp}, {types.TimestampTZ, types.TimestampTZ},
	} {
		registerCompare(p[0], p[1], Immutable, cmpInt[int64])
	}
	registerCompare(types.Bool, types.Bool, Immutable, cmpBool)
	registerCompare(types.Float4, types.Float4, Immutable, cmpFloat[float32])
	for _, p := range [][2]types.Type{{types.Float4, types.Float8}, {types.Float8, types.Float4}, {types.Float8, types.Float8}} {
		registerCompare(p[0], p[1], Immutable, cmpFloat[float64])
	}
	for _, p := range [][2]types.Type{
		{types.Bytea, types.Bytea}, {types.Char, types.Char}, {types.Name, types.Name}, {types.Name, types.Text},
		{types.Text, types.Name}, {types.Text, types.Text},
	} {
		registerCompare(p[0], p[1], Immutable, cmpText)
	}
	registerCompare(types.Numeric, types.Numeric, Immutable, cmpNumeric)
	for _, t := range []types.Type{
		types.BPChar, types.Interval, types.TimeTZ, types.UUID, types.JSONB, types.Record,
		types.Of(types.OIDAnyArray), types.Of(types.OIDOidVector),
	} {
		registerCompare(t, t, Immutable, cmpTyped)
	}
}
