package expr

import (
	"hash/crc32"
	"math"
	"slices"

	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// gammaFloat is the gamma function, with the errors of PostgreSQL 18.
func gammaFloat(a float64) (float64, *pgerror.Error) {
	switch {
	case math.IsNaN(a) || math.IsInf(a, 1):
		return a, nil
	case math.IsInf(a, -1), a <= 0 && a == math.Trunc(a):
		return 0, errFloatOver
	}
	r := math.Gamma(a)
	switch {
	case math.IsInf(r, 0):
		return 0, errFloatOver
	case r == 0:
		return 0, errFloatUnder
	}
	return r, nil
}

// lgammaFloat is the logarithm of the absolute value of the gamma function.
func lgammaFloat(a float64) (float64, *pgerror.Error) {
	r, _ := math.Lgamma(a)
	if math.IsInf(r, 0) && !math.IsInf(a, 0) {
		return 0, errFloatOver
	}
	if math.IsInf(a, -1) {
		return math.Inf(1), nil
	}
	return r, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendReversed(dst, b []byte) []byte {
	at := len(dst)
	dst = append(dst, b...)
	slices.Reverse(dst[at:])
	return dst
}

// These are functions of PostgreSQL 18.
func init() {
	f8 := types.Float8
	Register(Function{Name: "gamma", Args: []types.Type{f8}, Ret: f8, Strict: true, Eval: float1(gammaFloat)})
	Register(Function{Name: "lgamma", Args: []types.Type{f8}, Ret: f8, Strict: true, Eval: float1(lgammaFloat)})
	totalFn("crc32", types.Int8, bytesFixed(func(b []byte) int64 { return int64(crc32.ChecksumIEEE(b)) }), types.Bytea)
	totalFn("crc32c", types.Int8, bytesFixed(func(b []byte) int64 { return int64(crc32.Checksum(b, castagnoli)) }), types.Bytea)
	totalFn("reverse", types.Bytea, bytesAppend(appendReversed), types.Bytea)
	Register(Function{Name: "coth", Args: []types.Type{f8}, Ret: f8, Strict: true, Total: true, Eval: plain(func(a float64) float64 { return 1 / math.Tanh(a) })})
}
