package decimal

import (
	"fmt"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// MakeTypmod is the type modifier of numeric(precision, scale).
func MakeTypmod(precision, scale int) int32 {
	return int32(precision<<16|scale&0x7ff) + 4
}

// SplitTypmod is the precision and scale of a modifier; ok is false for a
// modifier that says nothing.
func SplitTypmod(typmod int32) (precision, scale int, ok bool) {
	if typmod < 4 {
		return 0, 0, false
	}
	t := typmod - 4
	return int(t>>16) & 0xffff, int(t&0x7ff^1024) - 1024, true
}

// ApplyTypmod rounds a to a declared precision and scale, and fails with
// 22003 if it does not fit.
func ApplyTypmod(dst, a []byte, typmod int32) ([]byte, error) {
	if typmod < 4 {
		return append(dst, a...), nil
	}
	x := decode(a)
	if err := x.applyTypmod(typmod); err != nil {
		return dst, err
	}
	return x.append(dst), nil
}

func (x *num) applyTypmod(typmod int32) error {
	precision, scale, ok := SplitTypmod(typmod)
	if !ok || x.form == nan {
		return nil
	}
	if x.form != finite {
		return pgerror.New(pgerror.NumericValueOutOfRange, "numeric field overflow").
			WithDetail("A field with precision %d, scale %d cannot hold an infinite value.", precision, scale)
	}
	x.roundTo(scale, false)
	if limit := precision - scale; x.digits()-x.scale > limit && !x.isZero() {
		bound := "1"
		if limit != 0 {
			bound = fmt.Sprintf("10^%d", limit)
		}
		return pgerror.New(pgerror.NumericValueOutOfRange, "numeric field overflow").
			WithDetail("A field with precision %d, scale %d must round to an absolute value less than %s.", precision, scale, bound)
	}
	return nil
}
