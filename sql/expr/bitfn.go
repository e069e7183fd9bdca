package expr

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

var (
	bitType    = types.Of(types.OIDBit)
	varbitType = types.Of(types.OIDVarbit)
)

func bitAt(data []byte, i int) byte { return data[i/8] >> (7 - i%8) & 1 }

// copyBits writes n bits of src, from bit from on, at bit at of dst, which is
// zero there.
func copyBits(dst []byte, at int, src []byte, from, n int) {
	if at%8 == 0 && from%8 == 0 {
		full := n / 8
		copy(dst[at/8:], src[from/8:from/8+full])
		at, from, n = at+8*full, from+8*full, n-8*full
	}
	for i := range n {
		dst[(at+i)/8] |= bitAt(src, from+i) << (7 - (at+i)%8)
	}
}

// putBits appends the bit string of n bits that fill makes of zeros.
func putBits(out *columnar.Builder, n int, fill func(data []byte)) {
	out.Extend(func(dst []byte) []byte {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
		l := len(dst)
		dst = append(dst, make([]byte, (n+7)/8)...)
		fill(dst[l:])
		return dst
	})
}

// subBits appends length bits of b from start (1-based) on; length < 0 means
// all the rest.
func subBits(out *columnar.Builder, b []byte, start, length int64) {
	n, data := types.Bits(b)
	end := int64(n)
	if length >= 0 {
		end = min(end, start-1+length)
	}
	from := min(max(start-1, 0), int64(n))
	end = max(end, from)
	putBits(out, int(end-from), func(dst []byte) { copyBits(dst, 0, data, int(from), int(end-from)) })
}

func bitSubstring(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	length := int64(-1)
	if len(a) == 3 {
		if length = int64(a.Int32(2, i)); length < 0 {
			return pgerror.New(pgerror.SubstringError, "negative substring length not allowed")
		}
	}
	subBits(out, a.Bytes(0, i), int64(a.Int32(1, i)), length)
	return nil
}

// bitOverlay replaces bits, as many as the new ones if not said.
func bitOverlay(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	n, data := types.Bits(a.Bytes(0, i))
	m, with := types.Bits(a.Bytes(1, i))
	start, count := int64(a.Int32(2, i)), int64(m)
	if len(a) == 4 {
		count = int64(a.Int32(3, i))
	}
	switch {
	case start <= 0:
		return pgerror.New(pgerror.SubstringError, "negative substring length not allowed")
	case start+count > math.MaxInt32:
		return errInt4Range
	}
	head := int(min(start-1, int64(n)))
	tail := int(min(max(start+count-1, 0), int64(n)))
	putBits(out, head+m+n-tail, func(dst []byte) {
		copyBits(dst, 0, data, 0, head)
		copyBits(dst, head, with, 0, m)
		copyBits(dst, head+m, data, tail, n-tail)
	})
	return nil
}

// bitPosition is where a bit string first occurs in another, from 1; 0: nowhere.
func bitPosition(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	n, data := types.Bits(a.Bytes(0, i))
	m, part := types.Bits(a.Bytes(1, i))
	found := 0
	for at := 0; at+m <= n && n > 0; at++ {
		k := 0
		for k < m && bitAt(data, at+k) == bitAt(part, k) {
			k++
		}
		if k == m {
			found = at + 1
			break
		}
	}
	out.Int32(int32(found))
	return nil
}

func bitShift(left bool) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		n, data := types.Bits(a.Bytes(0, i))
		by := int64(a.Int32(1, i))
		if !left {
			by = -by
		}
		putBits(out, n, func(dst []byte) {
			switch {
			case by >= int64(n), -by >= int64(n):
			case by >= 0:
				copyBits(dst, 0, data, int(by), n-int(by))
			default:
				copyBits(dst, int(-by), data, 0, n+int(by))
			}
		})
		return nil
	}
}

// bitsOp combines bit strings of one length.
func bitsOp(verb string, f func(x, y byte) byte) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		return combineBits(out, verb, f, a.Bytes(0, i), a.Bytes(1, i))
	}
}

func combineBits(out *columnar.Builder, verb string, f func(x, y byte) byte, a, b []byte) *pgerror.Error {
	n, x := types.Bits(a)
	m, y := types.Bits(b)
	if n != m {
		return pgerror.New(pgerror.StringDataLengthMismatch, "cannot %s bit strings of different sizes", verb)
	}
	putBits(out, n, func(dst []byte) {
		for k := range dst {
			dst[k] = f(x[k], y[k])
		}
	})
	return nil
}

// collectBits is an aggregate of bit strings.
func collectBits(verb string, f func(x, y byte) byte) CollectKernel {
	return func(_ *Eval, _ *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
		var acc []byte
		for i := lo; i < hi; i++ {
			switch {
			case args[0].Null(i):
			case acc == nil:
				acc = bytes.Clone(args[0].Bytes(i))
			default:
				b := columnar.NewBuilder(columnar.KindBytes, 1)
				if err := combineBits(b, verb, f, acc, args[0].Bytes(i)); err != nil {
					return err
				}
				acc = bytes.Clone(b.Build().Bytes(0))
			}
		}
		if acc == nil {
			out.Null()
		} else {
			out.Bytes(acc)
		}
		return nil
	}
}

// bitIn checks the index of get_bit and set_bit.
func bitIn(n int, i int32) *pgerror.Error {
	if i < 0 || int(i) >= n {
		return pgerror.New(pgerror.ArraySubscriptError, "bit index %d out of valid range (0..%d)", i, n-1)
	}
	return nil
}

// intToBits makes the low bits of an integer a bit string; a longer one begins
// with copies of the sign.
func intToBits[T integer](_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	v, n := int64(Arg[T](a, 0, i)), int(a.Int32(1, i))
	if n <= 0 {
		n = 1
	}
	if n > types.MaxBits {
		return pgerror.New(pgerror.ProgramLimitExceeded, "bit string length exceeds the maximum allowed (%d)", types.MaxBits)
	}
	putBits(out, n, func(dst []byte) {
		low := max(n-64, 0)
		if v < 0 {
			for k := range low {
				dst[k/8] |= 1 << (7 - k%8)
			}
		}
		for k := low; k < n; k++ {
			dst[k/8] |= byte(v>>(n-1-k)&1) << (7 - k%8)
		}
	})
	return nil
}

func bitsToInt[T integer](width int) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		n, data := types.Bits(a.Bytes(0, i))
		if n > width {
			return rangeErr[T]()
		}
		var v int64
		for k := range n {
			v = v<<1 | int64(bitAt(data, k))
		}
		if width == 32 {
			v = int64(int32(v))
		}
		columnar.Append(out, T(v))
		return nil
	}
}

func registerBitCasts() {
	fit := func(t types.Type) *Function {
		return rowFn(typName(t.OID), t, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			return extend(out, func(dst []byte) ([]byte, error) {
				return types.FitBits(dst, types.Type{OID: t.OID, Mod: a.Int32(1, i)}, a.Bytes(0, i), a.Bool(2, i))
			})
		}, t, types.Int4, types.Bool)
	}
	for _, t := range []types.Type{bitType, varbitType} {
		RegisterCast(Cast{From: t.OID, To: t.OID, Fn: fit(t)})
	}
	relabel(bitType, varbitType, CastImplicit)
	relabel(varbitType, bitType, CastImplicit)
	to := func(from types.Type, f rowFunc) {
		fn := rowFn("bit", bitType, f, from, types.Int4)
		RegisterCast(Cast{From: from.OID, To: types.OIDBit, Context: CastExplicit, Fn: fn})
	}
	to(types.Int4, intToBits[int32])
	to(types.Int8, intToBits[int64])
	from := func(to types.Type, f rowFunc) {
		fn := rowFn(typName(to.OID), to, f, bitType)
		RegisterCast(Cast{From: types.OIDBit, To: to.OID, Context: CastExplicit, Fn: fn})
	}
	from(types.Int4, bitsToInt[int32](32))
	from(types.Int8, bitsToInt[int64](64))
}

func init() {
	i4 := types.Int4
	registerBitCasts()
	for _, t := range []types.Type{bitType, varbitType} {
		registerCompare(t, t, Immutable, cmpTyped)
	}
	and, or, xor := func(x, y byte) byte { return x & y }, func(x, y byte) byte { return x | y }, func(x, y byte) byte { return x ^ y }
	for _, o := range []struct {
		op, agg, verb string
		f             func(x, y byte) byte
	}{{"&", "bit_and", "AND", and}, {"|", "bit_or", "OR", or}, {"#", "bit_xor", "XOR", xor}} {
		rowOp(o.op, bitType, bitsOp(o.verb, o.f), bitType, bitType)
		RegisterAggregate(Aggregate{Name: o.agg, Op: AggCollect, Args: []types.Type{bitType}, Ret: bitType, Collect: collectBits(o.verb, o.f)})
	}
	rowOp("~", bitType, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		n, data := types.Bits(a.Bytes(0, i))
		inverse := make([]byte, len(data))
		for k := range data {
			inverse[k] = ^data[k]
		}
		out.Extend(func(dst []byte) []byte { return types.AppendBits(dst, n, inverse) })
		return nil
	}, bitType)
	rowOp("<<", bitType, bitShift(true), bitType, i4)
	rowOp(">>", bitType, bitShift(false), bitType, i4)
	rowOp("||", varbitType, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		n, x := types.Bits(a.Bytes(0, i))
		m, y := types.Bits(a.Bytes(1, i))
		putBits(out, n+m, func(dst []byte) { copyBits(dst, 0, x, 0, n); copyBits(dst, n, y, 0, m) })
		return nil
	}, varbitType, varbitType)
	count := func(f func(n int, data []byte) int32) Kernel {
		return bytesFixed(func(b []byte) int32 {
			if len(b) == 0 {
				return 0 // NULL
			}
			return f(types.Bits(b))
		})
	}
	length := count(func(n int, _ []byte) int32 { return int32(n) })
	totalFn("length", i4, length, bitType)
	totalFn("bit_length", i4, length, bitType)
	totalFn("octet_length", i4, count(func(_ int, data []byte) int32 { return int32(len(data)) }), bitType)
	rowFn("bit_count", types.Int8, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		_, data := types.Bits(a.Bytes(0, i))
		n := 0
		for _, b := range data {
			n += bits.OnesCount8(b)
		}
		out.Int64(int64(n))
		return nil
	}, bitType)
	rowFn("substring", bitType, bitSubstring, bitType, i4)
	rowFn("substring", bitType, bitSubstring, bitType, i4, i4)
	rowFn("overlay", bitType, bitOverlay, bitType, bitType, i4)
	rowFn("overlay", bitType, bitOverlay, bitType, bitType, i4, i4)
	rowFn("position", i4, bitPosition, bitType, bitType)
	rowFn("get_bit", i4, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		n, data := types.Bits(a.Bytes(0, i))
		if err := bitIn(n, a.Int32(1, i)); err != nil {
			return err
		}
		out.Int32(int32(bitAt(data, int(a.Int32(1, i)))))
		return nil
	}, bitType, i4)
	rowFn("set_bit", bitType, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		n, data := types.Bits(a.Bytes(0, i))
		at, v := a.Int32(1, i), a.Int32(2, i)
		if err := bitIn(n, at); err != nil {
			return err
		}
		if v != 0 && v != 1 {
			return errParam("new bit must be 0 or 1")
		}
		putBits(out, n, func(dst []byte) {
			copy(dst, data)
			dst[at/8] = dst[at/8]&^(1<<(7-at%8)) | byte(v)<<(7-at%8)
		})
		return nil
	}, bitType, i4, i4)
}
