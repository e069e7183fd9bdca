package expr

import (
	"math"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// The types of transaction numbers and log positions are compared as the
// unsigned numbers that they are.

func cmpUnsigned(_ *Eval, a, b int64) int {
	switch x, y := uint64(a), uint64(b); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

var errLSNRange = pgerror.New(pgerror.InvalidParameterValue, "pg_lsn out of range")

// lsnOf is the log position that a numeric is.
func lsnOf(n []byte) (int64, *pgerror.Error) {
	if decimal.IsInf(n) {
		return 0, pgerror.New(pgerror.FeatureNotSupported, "cannot convert infinity to pg_lsn")
	}
	v, err := decimal.Round(nil, n, 0)
	if err != nil {
		return 0, pgerror.As(err)
	}
	if decimal.Sign(v) < 0 || decimal.Compare(v, numericOf(math.MaxUint64)) > 0 {
		return 0, errLSNRange
	}
	if decimal.Compare(v, numericOf(math.MaxInt64)) <= 0 {
		i, err := decimal.ToInt64(v)
		if err != nil {
			return 0, pgerror.As(err)
		}
		return i, nil
	}
	if v, err = decimal.Sub(nil, v, numericOf(1<<63)); err == nil {
		var i int64
		if i, err = decimal.ToInt64(v); err == nil {
			return int64(uint64(i) + 1<<63), nil
		}
	}
	return 0, pgerror.As(err)
}

// numericOf is an unsigned number as numeric.
func numericOf(v uint64) []byte {
	low := decimal.AppendInt64(nil, int64(v&math.MaxInt64))
	if v <= math.MaxInt64 {
		return low
	}
	half := decimal.AppendInt64(nil, 1<<62)
	sum, err := decimal.Add(nil, half, half)
	if err == nil {
		sum, err = decimal.Add(nil, sum, low)
	}
	if err != nil {
		panic("expr: an unsigned number as numeric: " + err.Error())
	}
	return sum
}

// moveLSN adds a numeric to a log position, or subtracts it.
func moveLSN(out *columnar.Builder, lsn int64, by []byte, add bool) *pgerror.Error {
	op, verb := decimal.Add, "add NaN to"
	if !add {
		op, verb = decimal.Sub, "subtract NaN from"
	}
	if decimal.IsNaN(by) {
		return pgerror.New(pgerror.FeatureNotSupported, "cannot %s pg_lsn", verb)
	}
	n, err := op(nil, numericOf(uint64(lsn)), by)
	if err != nil {
		return pgerror.As(err)
	}
	v, e := lsnOf(n)
	if e != nil {
		return e
	}
	out.Int64(v)
	return nil
}

func init() {
	lsn, xid8, xid, num := types.Of(types.OIDPgLSN), types.Of(types.OIDXid8), types.Of(types.OIDXid), types.Numeric
	for _, t := range []types.Type{lsn, xid8} {
		registerCompare(t, t, Immutable, cmpWith(cmpUnsigned))
	}
	for _, op := range []cmpOp{cmpEq, cmpNe} {
		for _, b := range []types.Type{xid, types.Int4} {
			k := cmpWith(cmpUnsigned)(op)
			if b == types.Int4 {
				k = cmpWith(func(_ *Eval, a int64, b int32) int { return cmpUnsigned(nil, a, int64(uint32(b))) })(op)
			}
			totalOp(cmpSymbols[op], types.Bool, k, xid, b)
		}
	}
	totalOp("=", types.Bool, cmpWith(cmpUnsigned)(cmpEq), types.Of(types.OIDCid), types.Of(types.OIDCid))
	rowOp("-", num, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		return extend(out, func(dst []byte) ([]byte, error) {
			return decimal.Sub(dst, numericOf(uint64(a.Int64(0, i))), numericOf(uint64(a.Int64(1, i))))
		})
	}, lsn, lsn)
	rowOp("+", lsn, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		return moveLSN(out, a.Int64(0, i), a.Bytes(1, i), true)
	}, lsn, num)
	rowOp("+", lsn, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		return moveLSN(out, a.Int64(1, i), a.Bytes(0, i), true)
	}, num, lsn)
	rowOp("-", lsn, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		return moveLSN(out, a.Int64(0, i), a.Bytes(1, i), false)
	}, lsn, num)
	rowFn("pg_lsn", lsn, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		if decimal.IsNaN(a.Bytes(0, i)) {
			return pgerror.New(pgerror.FeatureNotSupported, "cannot convert NaN to pg_lsn")
		}
		v, err := lsnOf(a.Bytes(0, i))
		if err == nil {
			out.Int64(v)
		}
		return err
	}, num)
	toXid := totalFn("xid", xid, map1(func(v int64) int64 { return int64(uint32(v)) }), xid8)
	RegisterCast(Cast{From: types.OIDXid8, To: types.OIDXid, Context: CastExplicit, Fn: toXid})
	registerSends()
	registerRangeSupport()
}

// registerSends registers the functions that give the binary form of a value.
func registerSends() {
	done := map[string]bool{}
	for _, t := range types.All() {
		if t.Send == "-" || done[t.Send] || t.Category == 'P' && t.OID != types.OIDRecord || !sendable(t.OID) {
			continue
		}
		done[t.Send] = true
		arg := types.Of(t.OID)
		switch t.Kind {
		case 'r':
			arg = anyRange
		case 'm':
			arg = anyMultirange
		}
		if t.IsArray() {
			arg = types.Of(types.OIDAnyArray)
		}
		registerSend(t.Send, arg)
	}
	registerSend("enum_send", types.Of(types.OIDAnyEnum))
}

func registerSend(name string, arg types.Type) {
	f := totalFn(name, types.Bytea, func(c *Call, _ *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		typ := c.Args[0].Type()
		a := Args(args)
		out := columnar.NewBuilder(columnar.KindBytes, n)
		for i := range n {
			v, row := a.row(0, i)
			if v.Null(row) {
				out.Null()
				continue
			}
			out.Extend(func(dst []byte) []byte { return types.AppendBinary(dst, typ, v, row) })
		}
		return out.Build()
	}, arg)
	switch name {
	case "textsend", "namesend", "bpcharsend", "varcharsend", "array_send", "record_send", "enum_send", "range_send", "multirange_send", "xml_send":
		f.Volatility = Stable // the client's encoding may change
	}
}

// sendable reports whether a type has values here.
func sendable(o types.OID) bool {
	switch o {
	case types.OIDACLItem, types.OIDPgNodeTree:
		return false
	}
	return true
}

// registerRangeSupport registers what the built-in ranges have for indexes: the
// canonical form of a range, and how far apart two values are.
func registerRangeSupport() {
	for _, r := range []types.OID{types.OIDInt4Range, types.OIDInt8Range, types.OIDDateRange} {
		totalFn(typName(r)+"_canonical", types.Of(r), identity, types.Of(r))
	}
	f8 := types.Float8
	diff := func(rng types.OID, k Kernel) {
		sub := types.Of(rng.Subtype())
		Register(Function{Name: typName(rng) + "_subdiff", Args: []types.Type{sub, sub}, Ret: f8, Strict: true, Consts: ScalarConsts, Eval: k})
	}
	diff(types.OIDInt4Range, map2(func(a, b int32) float64 { return float64(a) - float64(b) }))
	diff(types.OIDInt8Range, map2(func(a, b int64) float64 { return float64(a) - float64(b) }))
	diff(types.OIDDateRange, map2(func(a, b int32) float64 { return float64(a) - float64(b) }))
	seconds := map2(func(a, b int64) float64 { return (float64(a) - float64(b)) / 1e6 })
	diff(types.OIDTsRange, seconds)
	diff(types.OIDTsTzRange, seconds)
	diff(types.OIDNumRange, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		d, err := decimal.Sub(nil, a.Bytes(0, i), a.Bytes(1, i))
		var f float64
		if err == nil {
			f, err = decimal.ToFloat64(d)
		}
		if err != nil {
			return pgerror.As(err)
		}
		out.Float64(f)
		return nil
	}))
}
