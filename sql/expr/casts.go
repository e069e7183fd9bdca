package expr

import (
	"math"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

var (
	errCharRange = pgerror.New(pgerror.NumericValueOutOfRange, "\"char\" out of range")
	errOIDRange  = pgerror.New(pgerror.NumericValueOutOfRange, "OID out of range")
)

// castFn registers a cast with its function, which can be called by name too.
func castFn(from, to types.Type, ctx CastContext, total bool, k Kernel) *Function {
	fn := Register(Function{
		Name: typName(to.OID), Args: []types.Type{from}, Ret: to, Strict: true, Total: total, Eval: k,
	})
	RegisterCast(Cast{From: from.OID, To: to.OID, Context: ctx, Fn: fn})
	return fn
}

// stableCast is castFn for one that depends on the session's time zone.
func stableCast(from, to types.Type, ctx CastContext, k Kernel) {
	castFn(from, to, ctx, false, k).Volatility = Stable
}

// relabel registers a cast between types of one physical form.
func relabel(from, to types.Type, ctx CastContext) {
	RegisterCast(Cast{From: from.OID, To: to.OID, Context: ctx})
}

// widen converts a number to a type that holds it (or rounds it).
func widen[S, D number](_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	dst, out := Result[D](x, n)
	convert(dst, columnar.Values[S](args[0])[:n])
	return out
}

// narrowInt converts an integer to a narrower one.
func narrowInt[S, D integer](_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	dst, out := Result[D](x, n)
	bad := false
	src := columnar.Values[S](args[0])[:n]
	for i, s := range src {
		d := D(s)
		bad = bad || S(d) != s
		dst[i] = d
	}
	if bad {
		for i, s := range src {
			if S(D(s)) != s {
				x.Fail(i, rangeErr[D]())
			}
		}
	}
	return out
}

// floatToInt rounds half to even and checks the range.
func floatToInt[S floating, D integer](_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	dst, out := Result[D](x, n)
	var z D
	lo, hi := 0.0, 0.0
	switch any(z).(type) {
	case int16:
		lo, hi = math.MinInt16, math.MaxInt16+1
	case int32:
		lo, hi = math.MinInt32, math.MaxInt32+1
	default:
		lo, hi = math.MinInt64, -math.MinInt64
	}
	for i, s := range columnar.Values[S](args[0])[:n] {
		f := math.RoundToEven(float64(s))
		if !(f >= lo && f < hi) {
			dst[i] = 0
			x.Fail(i, rangeErr[D]())
			continue
		}
		dst[i] = D(f)
	}
	return out
}

func narrowFloat(_ *Eval, f float64) (float32, *pgerror.Error) {
	r := float32(f)
	switch {
	case isInf(r) && !isInf(f):
		return r, errFloatOver
	case r == 0 && f != 0:
		return r, errFloatUnder
	}
	return r, nil
}

// toNumeric makes numerics of fixed-width values.
func toNumeric[S columnar.Fixed](f func(dst []byte, s S) []byte) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		v := args[0]
		src := columnar.Values[S](v)
		offs := make([]uint32, n+1)
		data := make([]byte, 0, 6*n)
		for i := range n {
			if !v.Null(i) {
				data = f(data, src[i])
			}
			offs[i+1] = uint32(len(data))
		}
		return columnar.FromBytes(offs, data, nil)
	}
}

// fromNumeric makes fixed-width values of numerics.
func fromNumeric[D columnar.Fixed](f func(a []byte) (D, error)) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		v := args[0]
		dst, out := Result[D](x, n)
		for i := range n {
			var err error
			if v.Null(i) {
				clear(dst[i : i+1])
			} else if dst[i], err = f(v.Bytes(i)); err != nil {
				x.Fail(i, pgerror.As(err))
			}
		}
		return out
	}
}

// bytesMap makes a kernel that appends a value of kind Bytes made of another.
func bytesMap(f func(dst, b []byte) []byte) Kernel {
	return func(_ *Call, _ *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		v := args[0]
		offs := make([]uint32, n+1)
		_, _, src := v.Raw()
		data := make([]byte, 0, len(src))
		for i := range n {
			if !v.Null(i) {
				data = f(data, v.Bytes(i))
			}
			offs[i+1] = uint32(len(data))
		}
		return columnar.FromBytes(offs, data, nil)
	}
}

func castNumbers() {
	i, a := CastImplicit, CastAssignment
	castFn(types.Int2, types.Int4, i, true, widen[int16, int32])
	castFn(types.Int2, types.Int8, i, true, widen[int16, int64])
	castFn(types.Int2, types.Float4, i, true, widen[int16, float32])
	castFn(types.Int2, types.Float8, i, true, widen[int16, float64])
	castFn(types.Int4, types.Int8, i, true, widen[int32, int64])
	castFn(types.Int4, types.Float4, i, true, widen[int32, float32])
	castFn(types.Int4, types.Float8, i, true, widen[int32, float64])
	castFn(types.Int8, types.Float4, i, true, widen[int64, float32])
	castFn(types.Int8, types.Float8, i, true, widen[int64, float64])
	castFn(types.Float4, types.Float8, i, true, widen[float32, float64])
	castFn(types.Float8, types.Float4, a, false, try1(narrowFloat))
	castFn(types.Int4, types.Int2, a, false, narrowInt[int32, int16])
	castFn(types.Int8, types.Int2, a, false, narrowInt[int64, int16])
	castFn(types.Int8, types.Int4, a, false, narrowInt[int64, int32])
	castFn(types.Float4, types.Int2, a, false, floatToInt[float32, int16])
	castFn(types.Float4, types.Int4, a, false, floatToInt[float32, int32])
	castFn(types.Float4, types.Int8, a, false, floatToInt[float32, int64])
	castFn(types.Float8, types.Int2, a, false, floatToInt[float64, int16])
	castFn(types.Float8, types.Int4, a, false, floatToInt[float64, int32])
	castFn(types.Float8, types.Int8, a, false, floatToInt[float64, int64])

	castFn(types.Int2, types.Numeric, i, true, intToNumeric[int16])
	castFn(types.Int4, types.Numeric, i, true, intToNumeric[int32])
	castFn(types.Int8, types.Numeric, i, true, intToNumeric[int64])
	castFn(types.Float4, types.Numeric, a, true, toNumeric(decimal.AppendFloat32))
	castFn(types.Float8, types.Numeric, a, true, toNumeric(decimal.AppendFloat64))
	castFn(types.Numeric, types.Int2, a, false, fromNumeric(decimal.ToInt16))
	castFn(types.Numeric, types.Int4, a, false, fromNumeric(decimal.ToInt32))
	castFn(types.Numeric, types.Int8, a, false, fromNumeric(decimal.ToInt64))
	castFn(types.Numeric, types.Float4, i, false, fromNumeric(decimal.ToFloat32))
	castFn(types.Numeric, types.Float8, i, false, orElse(numericToFloat, fromNumeric(decimal.ToFloat64)))

	castFn(types.Bool, types.Int4, CastExplicit, true, map1(func(b bool) int32 {
		if b {
			return 1
		}
		return 0
	}))
	castFn(types.Int4, types.Bool, CastExplicit, true, map1(func(n int32) bool { return n != 0 }))
}

// castOIDs registers the casts of oid and its aliases.
func castOIDs() {
	regs := []types.OID{types.OIDRegproc, types.OIDRegprocedure, types.OIDRegclass, types.OIDRegtype, types.OIDRegrole, types.OIDRegnamespace,
		types.OIDRegoper, types.OIDRegoperator, types.OIDRegcollation, types.OIDRegconfig, types.OIDRegdictionary}
	toOID := try1(func(_ *Eval, n int64) (int64, *pgerror.Error) {
		if n < 0 || n > math.MaxUint32 {
			return 0, errOIDRange
		}
		return n, nil
	})
	fromInt4 := map1(func(n int32) int64 { return int64(uint32(n)) })
	fromInt2 := map1(func(n int16) int64 { return int64(uint32(int32(n))) })
	toInt4 := map1(func(n int64) int32 { return int32(uint32(n)) })
	all := append([]types.OID{types.OIDOid}, regs...)
	oidFn := Register(Function{Name: "oid", Args: []types.Type{types.Int8}, Ret: types.Oid, Strict: true, Eval: toOID})
	int8Fn := Register(Function{Name: "int8", Args: []types.Type{types.Oid}, Ret: types.Int8, Strict: true, Total: true, Eval: identity})
	for _, o := range all {
		t := types.Of(o)
		int4 := &Function{Name: typName(o), Args: []types.Type{types.Int4}, Ret: t, Strict: true, Total: true, Eval: fromInt4}
		int2 := &Function{Name: typName(o), Args: []types.Type{types.Int2}, Ret: t, Strict: true, Total: true, Eval: fromInt2}
		back := &Function{Name: "int4", Args: []types.Type{t}, Ret: types.Int4, Strict: true, Total: true, Eval: toInt4}
		RegisterCast(Cast{From: types.OIDInt8, To: o, Context: CastImplicit, Fn: oidFn})
		RegisterCast(Cast{From: types.OIDInt4, To: o, Context: CastImplicit, Fn: int4})
		RegisterCast(Cast{From: types.OIDInt2, To: o, Context: CastImplicit, Fn: int2})
		RegisterCast(Cast{From: o, To: types.OIDInt8, Context: CastAssignment, Fn: int8Fn})
		RegisterCast(Cast{From: o, To: types.OIDInt4, Context: CastAssignment, Fn: back})
	}
	for _, o := range regs {
		relabel(types.Oid, types.Of(o), CastImplicit)
		relabel(types.Of(o), types.Oid, CastImplicit)
	}
	relabel(types.Of(types.OIDRegproc), types.Of(types.OIDRegprocedure), CastImplicit)
	relabel(types.Of(types.OIDRegprocedure), types.Of(types.OIDRegproc), CastImplicit)
	relabel(types.Of(types.OIDRegoper), types.Of(types.OIDRegoperator), CastImplicit)
	relabel(types.Of(types.OIDRegoperator), types.Of(types.OIDRegoper), CastImplicit)
	regclass := types.Of(types.OIDRegclass)
	stableCast(types.Text, regclass, CastImplicit, ioCast(types.Text, regclass))
	RegisterCast(Cast{From: types.OIDVarchar, To: types.OIDRegclass, Context: CastImplicit, Fn: registry.funcs["regclass"][0]})
}

// castStrings registers the casts among the string types and their lengths.
func castStrings() {
	i, a := CastImplicit, CastAssignment
	same := bytesMap(func(dst, b []byte) []byte { return append(dst, b...) })
	trim := bytesMap(func(dst, b []byte) []byte { return append(dst, types.TrimBPChar(b)...) })
	fit := bytesMap(func(dst, b []byte) []byte { return append(dst, types.FitName(text(b))...) })
	fitTrim := bytesMap(func(dst, b []byte) []byte { return append(dst, types.FitName(text(types.TrimBPChar(b)))...) })
	first := bytesMap(func(dst, b []byte) []byte {
		if len(b) == 0 || b[0] == 0 {
			return dst
		}
		return append(dst, b[0])
	})
	castFn(types.Name, types.Text, i, true, same)
	castFn(types.Name, types.BPChar, a, true, same)
	castFn(types.Name, types.Varchar, a, true, same)
	castFn(types.Text, types.Name, i, true, fit)
	castFn(types.Varchar, types.Name, i, true, fit)
	castFn(types.BPChar, types.Name, i, true, fitTrim)
	toText := castFn(types.BPChar, types.Text, i, true, trim)
	RegisterCast(Cast{From: types.OIDBPChar, To: types.OIDVarchar, Context: i, Fn: toText})
	relabel(types.Text, types.BPChar, i)
	relabel(types.Text, types.Varchar, i)
	relabel(types.Varchar, types.Text, i)
	relabel(types.Varchar, types.BPChar, i)

	toChar := castFn(types.Text, types.Char, a, true, first)
	RegisterCast(Cast{From: types.OIDBPChar, To: types.OIDChar, Context: a, Fn: toChar})
	RegisterCast(Cast{From: types.OIDVarchar, To: types.OIDChar, Context: a, Fn: toChar})
	fromChar := castFn(types.Char, types.Text, i, true, ioCast(types.Char, types.Text))
	castFn(types.Char, types.BPChar, a, true, ioCast(types.Char, types.BPChar))
	RegisterCast(Cast{From: types.OIDChar, To: types.OIDVarchar, Context: a, Fn: fromChar})
	castFn(types.Char, types.Int4, CastExplicit, true, charToInt)
	castFn(types.Int4, types.Char, CastExplicit, false, intToChar)

	boolText := castFn(types.Bool, types.Text, a, true, boolToText)
	RegisterCast(Cast{From: types.OIDBool, To: types.OIDVarchar, Context: a, Fn: boolText})
	RegisterCast(Cast{From: types.OIDBool, To: types.OIDBPChar, Context: a, Fn: boolText})
}

func charToInt(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	dst, out := Result[int32](x, n)
	for i := range dst {
		dst[i] = 0
		if b := args[0].Bytes(i); len(b) > 0 {
			dst[i] = int32(int8(b[0]))
		}
	}
	return out
}

func intToChar(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	out := x.Builder(columnar.KindBytes, n)
	for i, v := range args[0].Int32s()[:n] {
		switch {
		case v < math.MinInt8 || v > math.MaxInt8:
			x.Fail(i, errCharRange)
			out.String("")
		case v == 0:
			out.String("")
		default:
			out.Bytes([]byte{byte(v)})
		}
	}
	return out.Build()
}

func boolToText(_ *Call, _ *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	out := columnar.NewBuilder(columnar.KindBytes, n)
	for i, b := range args[0].Bools()[:n] {
		switch {
		case args[0].Null(i):
			out.Null()
		case b:
			out.String("true")
		default:
			out.String("false")
		}
	}
	return out.Build()
}

// lengthFn registers the length coercion of a type.
func lengthFn(t types.Type, args int, k Kernel) {
	sig := []types.Type{t, types.Int4, types.Bool}[:args]
	fn := Register(Function{Name: typName(t.OID), Args: sig, Ret: t, Strict: true, Consts: ScalarConsts, Eval: k})
	RegisterCast(Cast{From: t.OID, To: t.OID, Fn: fn})
}

func castLengths() {
	lengthFn(types.Varchar, 3, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		s, err := types.FitVarchar(text(a.Bytes(0, i)), a.Int32(1, i), a.Bool(2, i))
		if err != nil {
			return pgerror.As(err)
		}
		out.String(s)
		return nil
	}))
	lengthFn(types.BPChar, 3, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		var buf [64]byte
		b, err := types.AppendBPChar(buf[:0], text(a.Bytes(0, i)), a.Int32(1, i), a.Bool(2, i))
		if err != nil {
			return pgerror.As(err)
		}
		out.Bytes(b)
		return nil
	}))
	lengthFn(types.Numeric, 2, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		return extend(out, func(dst []byte) ([]byte, error) {
			return decimal.ApplyTypmod(dst, a.Bytes(0, i), a.Int32(1, i))
		})
	}))
	lengthFn(types.Time, 2, map2(types.RoundTime))
	round := try2(func(_ *Eval, ts int64, mod int32) (int64, *pgerror.Error) {
		if mod != -1 && (mod < 0 || mod > 6) && isFinite(ts) {
			return 0, pgerror.New(pgerror.InvalidParameterValue, "timestamp(%d) precision must be between 0 and 6", mod)
		}
		return types.RoundTimestamp(ts, mod), nil
	})
	lengthFn(types.Timestamp, 2, round)
	lengthFn(types.TimestampTZ, 2, round)
	lengthFn(types.TimeTZ, 2, map2(func(v columnar.U128, mod int32) columnar.U128 {
		t, west := types.UnpackTimeTZ(v)
		return types.PackTimeTZ(types.RoundTime(t, mod), west)
	}))
	lengthFn(types.Interval, 2, map2(func(v columnar.U128, mod int32) columnar.U128 {
		return types.UnpackInterval(v).ApplyTypmod(mod).Pack()
	}))
}

// extend appends one value to out through a function that may fail.
func extend(out *columnar.Builder, f func(dst []byte) ([]byte, error)) *pgerror.Error {
	var err error
	out.Extend(func(dst []byte) []byte {
		var b []byte
		if b, err = f(dst); err != nil {
			return dst
		}
		return b
	})
	if err != nil {
		return pgerror.As(err)
	}
	return nil
}

func init() {
	castNumbers()
	castOIDs()
	castStrings()
	castLengths()
	RegisterCast(Cast{From: types.OIDJSON, To: types.OIDJSONB, Context: CastAssignment, Fn: viaText(types.JSON, types.JSONB)})
	RegisterCast(Cast{From: types.OIDJSONB, To: types.OIDJSON, Context: CastAssignment, Fn: viaText(types.JSONB, types.JSON)})
}

// viaText is a cast that pg_cast lists as going through the text form.
func viaText(from, to types.Type) *Function {
	return &Function{
		Name: typName(to.OID), Args: []types.Type{from}, Ret: to, Strict: true, Consts: ScalarConsts,
		Eval: func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			v, opts := args[0], x.options()
			out := x.Builder(to.Kind(), n)
			var buf []byte
			for i := range n {
				if v.Null(i) {
					out.Null()
					continue
				}
				buf = types.AppendText(buf[:0], from, v, i, opts)
				if err := parseText(opts, to.OID, -1, buf, out); err != nil {
					x.Fail(i, pgerror.As(err))
					out.Null()
				}
			}
			return out.Build()
		},
	}
}
