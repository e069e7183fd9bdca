package differential

import (
	"math"
	"math/rand/v2"

	"github.com/streamdb/streamdb/columnar"
)

// appendRandom appends a value from a domain of about `domain` values, some of
// them at the edges of the kind; NULL at times if nulls.
func appendRandom(r *rand.Rand, b *columnar.Builder, domain int, nulls bool) {
	if nulls && r.IntN(8) == 0 {
		b.Null()
		return
	}
	x := r.IntN(domain)
	edge := r.IntN(20) == 0
	switch b.Kind() {
	case columnar.KindBool:
		b.Bool(x&1 != 0)
	case columnar.KindInt16:
		b.Int16(int16(x - 2))
	case columnar.KindInt32:
		b.Int32(int32(x - 2))
	case columnar.KindInt64:
		if edge {
			b.Int64([]int64{math.MinInt64, math.MaxInt64}[x&1])
		} else {
			b.Int64(int64(x - 2))
		}
	case columnar.KindFloat32:
		if edge {
			b.Float32([]float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32}[x&3])
		} else {
			b.Float32(float32(x-2) / 10)
		}
	case columnar.KindFloat64:
		if edge {
			b.Float64([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1e300, 5e-324}[x%6])
		} else {
			b.Float64(float64(x-2) / 10)
		}
	case columnar.KindFixed16:
		b.U128(columnar.U128{Hi: uint64(x & 1), Lo: uint64(x)})
	case columnar.KindBytes:
		s := []byte("a longer text, with a tail")
		b.Bytes(s[:min(len(s), x*x)])
	}
}
