package columnar

import (
	"bytes"
	"cmp"
	"math"
)

// Physical order: integers by number, false before true, floats by value with
// -0 before +0 and NaN greatest, Fixed16 by (Hi, Lo) unsigned, bytes bytewise;
// NULL greatest. Values are equal exactly if their bits are.

// float64Key maps floats to integers of the same order. NaNs with the sign bit
// would come first; the subtraction wraps them around to the end.
func float64Key(x float64) uint64 {
	b := math.Float64bits(x)
	b ^= uint64(int64(b)>>63) | 1<<63
	return b - (1<<52 - 1)
}

func float32Key(x float32) uint32 {
	b := math.Float32bits(x)
	b ^= uint32(int32(b)>>31) | 1<<31
	return b - (1<<23 - 1)
}

func cmpU128(a, b U128) int {
	if a.Hi != b.Hi {
		return cmp.Compare(a.Hi, b.Hi)
	}
	return cmp.Compare(a.Lo, b.Lo)
}

// CompareAt compares value i of a with value j of b, of one kind.
func CompareAt(a *Vec, i int, b *Vec, j int) int {
	if a.nulls != nil || b.nulls != nil {
		an, bn := a.Null(i), b.Null(j)
		switch {
		case an && bn:
			return 0
		case an:
			return 1
		case bn:
			return -1
		}
	}
	return compareValues(a, i, b, j)
}

// at is fixed value i, of Go type T.
func at[T any](v *Vec, i int) T { return raw[T](v)[i] }

// compareValues is CompareAt of values that are not NULL.
func compareValues(a *Vec, i int, b *Vec, j int) int {
	switch a.kind {
	case KindInt64:
		return cmp.Compare(at[int64](a, i), at[int64](b, j))
	case KindBytes:
		return bytes.Compare(a.Bytes(i), b.Bytes(j))
	case KindInt32:
		return cmp.Compare(at[int32](a, i), at[int32](b, j))
	case KindInt16:
		return cmp.Compare(at[int16](a, i), at[int16](b, j))
	case KindBool:
		return cmp.Compare(a.fixed[i], b.fixed[j])
	case KindFloat64:
		return cmp.Compare(float64Key(at[float64](a, i)), float64Key(at[float64](b, j)))
	case KindFloat32:
		return cmp.Compare(float32Key(at[float32](a, i)), float32Key(at[float32](b, j)))
	}
	return cmpU128(at[U128](a, i), at[U128](b, j))
}

// EqualAt reports whether value i of a and value j of b are the same bits, or
// both NULL.
func EqualAt(a *Vec, i int, b *Vec, j int) bool {
	if (a.nulls != nil || b.nulls != nil) && a.Null(i) != b.Null(j) {
		return false
	}
	// Where both are NULL the slots hold zero bits.
	switch a.kind {
	case KindBytes:
		return bytes.Equal(a.Bytes(i), b.Bytes(j))
	case KindFixed16:
		return a.U128s()[i] == b.U128s()[j]
	}
	return a.word(i) == b.word(j)
}

// CompareRows compares row i of a with row j of b, column by column.
func CompareRows(a []*Vec, i int, b []*Vec, j int) int {
	for c, v := range a {
		if r := CompareAt(v, i, b[c], j); r != 0 {
			return r
		}
	}
	return 0
}

// EqualRows reports whether row i of a equals row j of b in every column.
func EqualRows(a []*Vec, i int, b []*Vec, j int) bool {
	for c, v := range a {
		if !EqualAt(v, i, b[c], j) {
			return false
		}
	}
	return true
}

// AnyNull reports whether row i is NULL in one of the columns.
func AnyNull(cols []*Vec, i int) bool {
	for _, v := range cols {
		if v.Null(i) {
			return true
		}
	}
	return false
}
