package expr

import (
	"crypto/md5"
	"encoding/binary"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// ParseType reads the name of a type with its modifiers as SQL writes it. It is
// set by package planner, which knows SQL's syntax.
var ParseType func(sql string) (types.Type, error)

// typeNamed is the type that a text names, built-in or of the catalog.
func typeNamed(x *Eval, name []byte) (types.Type, *pgerror.Error) {
	t, err := ParseType(string(name))
	if err == nil {
		return t, nil
	}
	if x.Context != nil && x.Catalog != nil {
		if oid, err := x.Catalog.RegOID(types.OIDRegtype, string(name)); err == nil {
			return types.Of(types.OID(oid)), nil
		}
	}
	e := *pgerror.As(err)
	e.Pos = 0
	return t, &e
}

// inputError is the error of reading a text as a value of a type, nil if it is one.
func inputError(x *Eval, a Args, i int) (err, typeErr *pgerror.Error) {
	t, typeErr := typeNamed(x, a.Bytes(1, i))
	if typeErr != nil {
		return nil, typeErr
	}
	b := columnar.NewBuilder(t.Kind(), 1)
	if err := newPopulator(x).text(b, t, a.Bytes(0, i)); err != nil {
		return pgerror.As(err), nil
	}
	return nil, nil
}

func inputErrorInfo(x *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
	var err, typeErr *pgerror.Error
	if !columnar.AnyNull(args, i) {
		if err, typeErr = inputError(x, Args(args), i); typeErr != nil {
			return 0, typeErr
		}
	}
	if err == nil {
		err = new(pgerror.Error)
	}
	for k, s := range []string{err.Message, err.Detail, err.Hint, err.Code} {
		if s == "" {
			out[k].Null()
		} else {
			out[k].String(s)
		}
	}
	return 1, nil
}

func errBounds() *pgerror.Error {
	return errParam("lower bound must be less than or equal to upper bound")
}

// randomInt is a random number of a range, bounds included.
func randomInt(x *Eval, lo, hi int64) (int64, *pgerror.Error) {
	if lo > hi {
		return 0, errBounds()
	}
	span := new(big.Int).Sub(big.NewInt(hi), big.NewInt(lo))
	return new(big.Int).Add(big.NewInt(lo), x.randomBelow(span.Add(span, big.NewInt(1)))).Int64(), nil
}

// randomBelow is a random number from 0 to below n.
func (x *Eval) randomBelow(n *big.Int) *big.Int {
	words := (n.BitLen() + 31) / 32
	for {
		v := new(big.Int)
		for range words {
			v.Lsh(v, 32).Or(v, big.NewInt(int64(x.rand()*(1<<32))))
		}
		if v.Rsh(v, uint(32*words-n.BitLen())); v.Cmp(n) < 0 {
			return v
		}
	}
}

func randomNumeric(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	scale := 0
	for k, what := range []string{"lower", "upper"} {
		v := a.Bytes(k, i)
		if decimal.IsNaN(v) {
			return errParam("%s bound cannot be NaN", what)
		}
		if decimal.IsInf(v) {
			return errParam("%s bound cannot be infinity", what)
		}
		s, _ := decimal.Scale(v)
		scale = max(scale, s)
	}
	if decimal.Compare(a.Bytes(0, i), a.Bytes(1, i)) > 0 {
		return errBounds()
	}
	units := func(k int) *big.Int {
		d, err := decimal.Round(nil, a.Bytes(k, i), scale)
		if err != nil {
			return new(big.Int)
		}
		n, _ := new(big.Int).SetString(strings.Replace(decimal.String(d), ".", "", 1), 10)
		return n
	}
	lo, hi := units(0), units(1)
	span := hi.Sub(hi, lo)
	v := lo.Add(lo, x.randomBelow(span.Add(span, big.NewInt(1))))
	d, err := decimal.Parse(nil, v.String()+"e-"+strconv.Itoa(scale))
	if err == nil {
		d, err = decimal.Round(nil, d, scale)
	}
	if err != nil {
		return pgerror.As(err)
	}
	out.Bytes(d)
	return nil
}

// randomNormal is a random number of a normal distribution, by Box and Muller.
func randomNormal(x *Eval, mean, dev float64) (float64, *pgerror.Error) {
	z := math.Sqrt(-2*math.Log(1-x.rand())) * math.Sin(2*math.Pi*x.rand())
	return dev*z + mean, nil
}

func registerRandomRanges() {
	volatile := func(name string, ret types.Type, k Kernel, args ...types.Type) *Function {
		names := []string{"min", "max"}
		return Register(Function{Name: name, Args: args, ArgNames: names, Ret: ret, Strict: true, Volatility: Volatile, Consts: ScalarConsts, Eval: k})
	}
	i4, i8, num, f8 := types.Int4, types.Int8, types.Numeric, types.Float8
	volatile("random", i4, rowFixed(func(x *Eval, a Args, i int) (int32, *pgerror.Error) {
		v, err := randomInt(x, int64(a.Int32(0, i)), int64(a.Int32(1, i)))
		return int32(v), err
	}), i4, i4)
	volatile("random", i8, rowFixed(func(x *Eval, a Args, i int) (int64, *pgerror.Error) {
		return randomInt(x, a.Int64(0, i), a.Int64(1, i))
	}), i8, i8)
	volatile("random", num, RowKernel(randomNumeric), num, num)
	float := func(f float64) *Const { return &Const{Val: columnar.FromSlice([]float64{f}, nil), Typ: f8} }
	n := volatile("random_normal", f8, rowFixed(func(x *Eval, a Args, i int) (float64, *pgerror.Error) {
		return randomNormal(x, a.Float64(0, i), a.Float64(1, i))
	}), f8, f8)
	n.ArgNames, n.Defaults = []string{"mean", "stddev"}, []*Const{float(0), float(1)}
	arr := types.Of(types.OIDAnyArray)
	Register(Function{Name: "array_shuffle", Args: []types.Type{arr}, Ret: arr, Strict: true, Volatility: Volatile, Consts: ScalarConsts,
		Eval: arrayKernel(func(x *Eval, a Args, i int, o *arrayOut) *pgerror.Error { return sampleArray(x, a, i, -1, o) })})
	Register(Function{Name: "array_sample", Args: []types.Type{arr, i4}, Ret: arr, Strict: true, Volatility: Volatile, Consts: ScalarConsts,
		Eval: arrayKernel(func(x *Eval, a Args, i int, o *arrayOut) *pgerror.Error {
			n := a.Int32(1, i)
			if size := firstDim(types.ReadArray(a.Bytes(0, i))).Len; n < 0 || n > size {
				return errParam("sample size must be between 0 and %d", size)
			}
			return sampleArray(x, a, i, int(n), o)
		})})
}

func firstDim(arr types.Array) types.Dim {
	if arr.NDim == 0 {
		return types.Dim{}
	}
	return arr.Dims[0]
}

// sampleArray takes n random elements of the first dimension of an array, all
// if n is negative. A sample counts from 1.
func sampleArray(x *Eval, a Args, i, n int, o *arrayOut) *pgerror.Error {
	arr := types.ReadArray(a.Bytes(0, i))
	d := firstDim(arr)
	dims := append([]types.Dim(nil), arr.Dims[:arr.NDim]...)
	size := int(d.Len)
	switch {
	case n >= 0 && len(dims) > 0:
		dims[0] = types.Dim{Lower: 1, Len: int32(n)}
	case n < 0:
		n = size
	}
	if n == 0 {
		o.end(nil)
		return nil
	}
	order := make([]int, size)
	for k := range order {
		order[k] = k
	}
	each := arr.N / size
	for k := range n {
		j := k + int(x.rand()*float64(size-k))
		order[k], order[j] = order[j], order[k]
		arr.AppendElems(o.vals, order[k]*each, (order[k]+1)*each)
	}
	o.end(dims)
	return nil
}

// zonedPlus adds an interval, or its negative, in the zone that is named, or the
// session's.
func zonedPlus(x *Eval, ts int64, iv columnar.U128, sign int32, zone ...[]byte) (int64, *pgerror.Error) {
	loc := x.location()
	for _, z := range zone {
		var ok bool
		if loc, ok = types.LoadZone(string(z)); !ok {
			return 0, errParam("time zone \"%s\" not recognized", z)
		}
	}
	s := types.UnpackInterval(iv)
	return AddIntervalTZ(ts, types.Span{Months: sign * s.Months, Days: sign * s.Days, Micros: int64(sign) * s.Micros}, loc)
}

func registerZonedDates() {
	tz, iv, text := types.TimestampTZ, types.Interval, types.Text
	for name, sign := range map[string]int32{"date_add": 1, "date_subtract": -1} {
		for _, v := range []Volatility{Stable, Immutable} {
			args := []types.Type{tz, iv}
			if v == Immutable {
				args = append(args, text)
			}
			Register(Function{Name: name, Args: args, Ret: tz, Strict: true, Volatility: v, Consts: ScalarConsts,
				Eval: rowFixed(func(x *Eval, a Args, i int) (int64, *pgerror.Error) {
					if len(a) == 3 {
						return zonedPlus(x, a.Int64(0, i), Arg[columnar.U128](a, 1, i), sign, a.Bytes(2, i))
					}
					return zonedPlus(x, a.Int64(0, i), Arg[columnar.U128](a, 1, i), sign)
				})})
		}
	}
}

// base2 registers a function that writes an integer in a base that is a power of two.
func base2(name string, base int) {
	for _, t := range []types.Type{types.Int4, types.Int8} {
		totalFn(name, types.Text, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			v, _ := a.row(0, i)
			if v.Kind() == columnar.KindInt32 {
				out.String(strconv.FormatUint(uint64(uint32(a.Int32(0, i))), base))
			} else {
				out.String(strconv.FormatUint(uint64(a.Int64(0, i)), base))
			}
			return nil
		}), t)
	}
}

// registerRowID registers row_id(record, number), which tells the rows of a table
// apart: a digest of the stored form, which no setting changes.
func registerRowID() {
	totalFn("row_id", types.UUID, func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		dst, out := Result[columnar.U128](x, n)
		a := Args(args)
		var buf []byte
		for i := range dst {
			buf = append(binary.BigEndian.AppendUint64(buf[:0], uint64(a.Int64(1, i))), a.Bytes(0, i)...)
			sum := md5.Sum(buf)
			dst[i] = columnar.U128{Hi: binary.BigEndian.Uint64(sum[:8]), Lo: binary.BigEndian.Uint64(sum[8:])}
		}
		return out
	}, types.Record, types.Int8)
}

func anyValue(_ *Eval, _ *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	for i := lo; i < hi; i++ {
		if !args[0].Null(i) {
			out.AppendFrom(args[0], i)
			return nil
		}
	}
	out.Null()
	return nil
}

func registerTypeQuestions() {
	text, regtype := types.Text, types.Of(types.OIDRegtype)
	Register(Function{Name: "pg_input_is_valid", Args: []types.Type{text, text}, Ret: types.Bool, Strict: true, Volatility: Stable, Consts: ScalarConsts,
		Eval: rowFixed(func(x *Eval, a Args, i int) (bool, *pgerror.Error) {
			err, typeErr := inputError(x, a, i)
			return err == nil, typeErr
		})})
	RegisterTableFunction(TableFunction{Name: "pg_input_error_info", Args: []types.Type{text, text}, Cols: []types.Type{text, text, text, text},
		Names: []string{"message", "detail", "hint", "sql_error_code"}, Volatility: Stable, Eval: inputErrorInfo})
	rowFn("to_regtypemod", types.Int4, func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		if t, err := typeNamed(x, a.Bytes(0, i)); err == nil {
			out.Int32(t.Mod)
		} else {
			out.Null()
		}
		return nil
	}, text).Volatility = Stable
	rowFn("pg_basetype", regtype, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		if t := types.Of(types.OID(a.Int64(0, i))); types.Lookup(t.OID) == nil {
			out.Null()
		} else {
			out.Int64(int64(t.Storage().OID))
		}
		return nil
	}, regtype).Volatility = Stable
	Register(Function{Name: "jsonb_populate_record_valid", Args: []types.Type{types.Of(types.OIDAnyElement), types.JSONB}, Ret: types.Bool, Volatility: Stable, Consts: ScalarConsts,
		Bind: func(c *Call) (Kernel, error) {
			t := c.Args[0].Type()
			if !t.OID.IsComposite() {
				return nil, pgerror.New(pgerror.DatatypeMismatch, "first argument of %s must be a row type", "jsonb_populate_record_valid")
			}
			return rowFixed(func(x *Eval, a Args, i int) (bool, *pgerror.Error) {
				if a.Null(1, i) {
					return true, nil
				}
				var base []byte
				if !a.Null(0, i) {
					base = a.Bytes(0, i)
				}
				_, err := newPopulator(x).populate(t.OID, base, types.OIDJSONB, a.Bytes(1, i))
				return err == nil, nil
			}), nil
		}})
}

func init() {
	registerRowID()
	f8, text := types.Float8, types.Text
	Register(Function{Name: "erf", Args: []types.Type{f8}, Ret: f8, Strict: true, Total: true, Eval: plain(math.Erf)})
	Register(Function{Name: "erfc", Args: []types.Type{f8}, Ret: f8, Strict: true, Total: true, Eval: plain(math.Erfc)})
	base2("to_bin", 2)
	base2("to_oct", 8)
	registerRandomRanges()
	registerZonedDates()
	registerTypeQuestions()
	elem := types.Of(types.OIDAnyElement)
	RegisterAggregate(Aggregate{Name: "any_value", Op: AggCollect, Args: []types.Type{elem}, Ret: elem, Collect: anyValue})
	Register(Function{Name: "unicode_assigned", Args: []types.Type{text}, Ret: types.Bool, Strict: true, Total: true, Consts: ScalarConsts,
		Eval: rowFixed(func(_ *Eval, a Args, i int) (bool, *pgerror.Error) {
			for _, r := range string(a.Bytes(0, i)) {
				if !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf, unicode.Co) {
					return false, nil
				}
			}
			return true, nil
		})})
	major := strings.Join(strings.SplitN(unicode.Version, ".", 3)[:2], ".")
	sessionText(text, func(*Context) string { return major }, "unicode_version")
	Register(Function{Name: "system_user", Ret: text, Strict: true, Total: true, Volatility: Stable,
		Eval: func(*Call, *Eval, []*columnar.Vec, int) *columnar.Vec { return nullOf(columnar.KindBytes) }})
}
