package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
)

// Numeric columns mostly have one scale and fit 64-bit integers. Arithmetic and
// comparison then run over integers; a column (or a result) that does not fit
// sends the whole batch to the functions on single numbers.

// minUnpack is the number of rows from which unpacking pays.
const minUnpack = 32

// unpacked is a numeric argument as integers × 10^-scale.
type unpacked struct {
	operand[int64]
	scale int
}

func unpack(x *Eval, v *columnar.Vec, n int) (u unpacked, ok bool) {
	vals, _ := Result[int64](x, v.Len())
	_, offs, data := v.Raw()
	if u.scale, ok = decimal.UnpackColumn(vals, offs[:v.Len()+1], data); !ok {
		return u, false
	}
	u.vals = vals
	if len(vals) == 1 && n != 1 {
		u.one, u.c = true, vals[0]
	}
	return u, true
}

// unpackPair unpacks two arguments.
func unpackPair(x *Eval, args []*columnar.Vec, n int) (a, b unpacked, ok bool) {
	if n < minUnpack {
		return a, b, false
	}
	if a, ok = unpack(x, args[0], n); ok {
		b, ok = unpack(x, args[1], n)
	}
	return a, b, ok
}

// rescale brings u to a scale that is not less than its own.
func (u *unpacked) rescale(x *Eval, scale int) bool {
	if scale == u.scale {
		return true
	}
	p, ok := decimal.Pow10(scale - u.scale)
	if !ok {
		return false
	}
	u.scale = scale
	if u.one {
		bad := mulOverflows(u.c, p)
		u.c *= p
		return !bad
	}
	dst, _ := Result[int64](x, len(u.vals))
	bad := false
	for i, v := range u.vals {
		bad = mulOverflows(v, p) || bad
		dst[i] = v * p
	}
	u.vals = dst
	return !bad
}

// alignScales brings two arguments to one scale.
func alignScales(x *Eval, a, b *unpacked) bool {
	s := max(a.scale, b.scale)
	return a.rescale(x, s) && b.rescale(x, s)
}

// packed makes the result column.
func packed(x *Eval, vals []int64, scale int) *columnar.Vec {
	offs := make([]uint32, len(vals)+1)
	data := decimal.PackColumn(x.fixed(decimal.PackedSize(len(vals))), offs, vals, scale, x.skip)
	return columnar.FromBytes(offs, append([]byte(nil), data...), nil)
}

// addPacked is a+b, or with sign -1 a-b, if all fits.
func addPacked(sign int64) func(x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	return func(x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		a, b, ok := unpackPair(x, args, n)
		if !ok || !alignScales(x, &a, &b) {
			return nil
		}
		dst, _ := Result[int64](x, n)
		var over int64
		for i := range dst {
			p, q := a.at(i), b.at(i)*sign // not the least integer: magnitudes are below 2^63
			r := p + q
			over |= (r ^ p) & (r ^ q)
			dst[i] = r
		}
		if over < 0 {
			return nil
		}
		return packed(x, dst, a.scale)
	}
}

func mulPacked(x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	a, b, ok := unpackPair(x, args, n)
	if !ok || a.scale+b.scale > decimal.MaxScale {
		return nil
	}
	dst, _ := Result[int64](x, n)
	bad := false
	if a.one {
		a, b = b, a
	}
	if b.one {
		for i, p := range a.vals {
			bad = mulOverflows(p, b.c) || bad
			dst[i] = p * b.c
		}
	} else {
		q := b.vals[:len(a.vals)]
		for i, p := range a.vals {
			bad = mulOverflows(p, q[i]) || bad
			dst[i] = p * q[i]
		}
	}
	if bad {
		return nil
	}
	return packed(x, dst, a.scale+b.scale)
}

// orElse tries a kernel over integers, else goes number by number.
func orElse(fast func(x *Eval, args []*columnar.Vec, n int) *columnar.Vec, slow Kernel) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		if v := fast(x, args, n); v != nil {
			return v
		}
		return slow(c, x, args, n)
	}
}

// cmpNumeric compares numerics.
func cmpNumeric(op cmpOp) Kernel {
	return orElse(func(x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		a, b, ok := unpackPair(x, args, n)
		if !ok || !alignScales(x, &a, &b) {
			return nil
		}
		dst, out := Result[bool](x, n)
		op := op
		if a.one {
			a, b, op = b, a, op.flip()
		}
		if b.one {
			cmpConst(op, dst, a.vals, b.c)
		} else {
			cmpVals(op, dst, a.vals, b.vals)
		}
		return out
	}, func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		dst, out := Result[bool](x, n)
		a := Args(args)
		for i := range dst {
			dst[i] = (x.skip == nil || !x.skip.Get(i)) && op.holds(decimal.Compare(a.Bytes(0, i), a.Bytes(1, i)))
		}
		return out
	})
}

// intToNumeric packs integers.
func intToNumeric[T integer](_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	return packed(x, widened[int64](x, args[0], n).vals[:n], 0)
}

// numericToFloat divides integers that floats hold exactly; one division
// rounds right.
func numericToFloat(x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	if n < minUnpack {
		return nil
	}
	u, ok := unpack(x, args[0], n)
	p, ok2 := decimal.Pow10(u.scale)
	if !ok || !ok2 || u.scale > 15 {
		return nil
	}
	dst, out := Result[float64](x, n)
	var wide int64
	f := float64(p)
	for i, v := range u.vals {
		wide |= v ^ v>>63
		dst[i] = float64(v) / f
	}
	if wide >= 1<<53 {
		return nil
	}
	return out
}
