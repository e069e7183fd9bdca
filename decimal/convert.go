package decimal

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"strconv"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// AppendInt64 appends an integer as a number of scale 0.
func AppendInt64(dst []byte, i int64) []byte {
	u := uint64(i)
	if i < 0 {
		u = -u
	}
	dst = binary.LittleEndian.AppendUint16(dst, header(i < 0, 0))
	l := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, u)
	return dst[:l+(bits.Len64(u)+7)/8]
}

// AppendInt64Scaled appends i × 10^-scale at that display scale, 0 ≤ scale ≤ MaxScale.
func AppendInt64Scaled(dst []byte, i int64, scale int) []byte {
	l := len(dst)
	dst = AppendInt64(dst, i)
	binary.LittleEndian.PutUint16(dst[l:], header(i < 0, scale))
	return dst
}

// AppendInt128 appends the signed 128-bit integer hi × 2^64 + lo at scale 0.
func AppendInt128(dst []byte, hi int64, lo uint64) []byte {
	x := fromInt128(hi, lo)
	return x.append(dst)
}

func fromInt128(hi int64, lo uint64) (x num) {
	c := u128{uint64(hi), lo}
	if hi < 0 {
		x.neg = true
		c = u128{}.sub(c)
	}
	if x.c = c; !c.fits() {
		x.setMag(bigFromU128(c))
	}
	return x
}

// Int128 is a at scale as a signed 128-bit integer; ok is false if digits
// would be lost, if it is not below 2^127, or not finite.
func Int128(a []byte, scale int) (hi int64, lo uint64, ok bool) {
	x := decode(a)
	if x.form != finite || x.big != nil || x.scale > scale {
		return 0, 0, false
	}
	c, ok := x.c.mulPow10(scale - x.scale)
	if !ok {
		return 0, 0, false
	}
	if x.neg {
		c = u128{}.sub(c)
	}
	return int64(c.hi), c.lo, true
}

func errConvert(f form, typ string) error {
	what := "NaN"
	if f != nan {
		what = "infinity"
	}
	return pgerror.New(pgerror.FeatureNotSupported, "cannot convert %s to %s", what, typ)
}

func (x *num) toInt(minVal, maxVal int64, typ string) (int64, error) {
	if x.form != finite {
		return 0, errConvert(x.form, typ)
	}
	x.roundTo(0, false)
	if x.big == nil && x.c.hi == 0 {
		u := x.c.lo
		if !x.neg && u <= uint64(maxVal) {
			return int64(u), nil
		}
		if x.neg && u <= -uint64(minVal) {
			return int64(-u), nil
		}
	}
	return 0, pgerror.New(pgerror.NumericValueOutOfRange, "%s out of range", typ)
}

// ToInt64 rounds to a bigint, half away from zero; 22003 if it does not fit.
func ToInt64(a []byte) (int64, error) {
	x := decode(a)
	return x.toInt(math.MinInt64, math.MaxInt64, "bigint")
}

// ToInt32 rounds to an integer.
func ToInt32(a []byte) (int32, error) {
	x := decode(a)
	i, err := x.toInt(math.MinInt32, math.MaxInt32, "integer")
	return int32(i), err
}

// ToInt16 rounds to a smallint.
func ToInt16(a []byte) (int16, error) {
	x := decode(a)
	i, err := x.toInt(math.MinInt16, math.MaxInt16, "smallint")
	return int16(i), err
}

// AppendFloat64 appends f as PostgreSQL converts double precision to numeric:
// rounded to 15 significant digits.
func AppendFloat64(dst []byte, f float64) []byte { return appendFloat(dst, f, 15) }

// AppendFloat32 appends f as PostgreSQL converts real to numeric: rounded to 6
// significant digits.
func AppendFloat32(dst []byte, f float32) []byte { return appendFloat(dst, float64(f), 6) }

func appendFloat(dst []byte, f float64, digits int) []byte {
	switch {
	case math.IsNaN(f):
		return AppendNaN(dst)
	case math.IsInf(f, 0):
		return AppendInf(dst, int(math.Copysign(1, f)))
	}
	x, _ := parse(strconv.AppendFloat(make([]byte, 0, 32), f, 'e', digits-1, 64))
	x.trimZeros()
	return x.append(dst)
}

// exactPow10 holds the powers of ten that float64 has exactly.
var exactPow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// ToFloat64 is the nearest double precision; 22003 if it is out of range.
func ToFloat64(a []byte) (float64, error) {
	x := decode(a)
	if x.form == finite && x.big == nil && x.c.hi == 0 && x.c.lo < 1<<53 && x.scale < len(exactPow10) {
		f := float64(x.c.lo) / exactPow10[x.scale]
		if x.neg {
			f = -f
		}
		return f, nil
	}
	return x.toFloat(a, 64, "double precision")
}

// ToFloat32 is the nearest real; 22003 if it is out of range.
func ToFloat32(a []byte) (float32, error) {
	x := decode(a)
	f, err := x.toFloat(a, 32, "real")
	return float32(f), err
}

func (x *num) toFloat(a []byte, size int, typ string) (float64, error) {
	switch x.form {
	case nan:
		return math.NaN(), nil
	case posInf:
		return math.Inf(1), nil
	case negInf:
		return math.Inf(-1), nil
	}
	s := String(a)
	f, err := strconv.ParseFloat(s, size)
	if err != nil || (f == 0 && !x.isZero()) {
		return 0, pgerror.New(pgerror.NumericValueOutOfRange, "\"%s\" is out of range for type %s", s, typ)
	}
	return f, nil
}

// AppendBig appends m × 10^-scale, 0 ≤ scale ≤ MaxScale.
func AppendBig(dst []byte, m *big.Int, scale int) ([]byte, error) {
	x := num{neg: m.Sign() < 0, scale: scale}
	x.setMag(new(big.Int).Abs(m))
	return x.finish(dst)
}

// Big is the coefficient (with its sign) and the scale of a finite number; ok
// is false for the others.
func Big(a []byte) (m *big.Int, scale int, ok bool) {
	x := decode(a)
	if x.form != finite {
		return nil, 0, false
	}
	m = new(big.Int).Set(x.bigMag())
	if x.neg {
		m.Neg(m)
	}
	return m, x.scale, true
}
