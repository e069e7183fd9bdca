package decimal

import (
	"math"
	"math/big"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// maxFactorial is the greatest number whose factorial the format can hold.
const maxFactorial = 32177

// Factorial is n!: factorial(bigint).
func Factorial(dst []byte, n int64) ([]byte, error) {
	switch {
	case n < 0:
		return dst, pgerror.New(pgerror.NumericValueOutOfRange, "factorial of a negative number is undefined")
	case n > maxFactorial:
		return dst, errOverflow()
	}
	var r num
	r.setMag(new(big.Int).MulRange(1, max(n, 1)))
	return r.finish(dst)
}

func errBucket(msg string) error {
	return pgerror.New(pgerror.InvalidArgumentForWidthBucket, "%s", msg)
}

// WidthBucket is the number of the bucket that a falls into, if the range from
// low to high is cut in count equal ones: width_bucket(numeric, …).
func WidthBucket(a, low, high []byte, count int32) (int32, error) {
	x, lo, hi := decode(a), decode(low), decode(high)
	switch {
	case count <= 0:
		return 0, errBucket("count must be greater than zero")
	case x.form == nan || lo.form == nan || hi.form == nan:
		return 0, errBucket("operand, lower bound, and upper bound cannot be NaN")
	case lo.form|hi.form != finite:
		return 0, errBucket("lower and upper bounds must be finite")
	}
	c := Compare(low, high)
	if c == 0 {
		return 0, errBucket("lower bound cannot equal upper bound")
	}
	below, above := Compare(a, low), Compare(a, high)
	if c > 0 { // a descending range
		below, above = -below, -above
	}
	switch {
	case below < 0:
		return 0, nil
	case above >= 0:
		if count == 1<<31-1 {
			return 0, pgerror.New(pgerror.NumericValueOutOfRange, "integer out of range")
		}
		return count + 1, nil
	}
	// floor((a-low)*count / (high-low)) + 1, where the quotient is rounded as
	// quotients are: very near a bound the result may be the next bucket.
	lo.negate()
	off, width := addNums(&x, &lo), addNums(&hi, &lo)
	n := num{c: u128{0, uint64(count)}}
	p := mulNums(&off, &n)
	p.neg, width.neg = false, false
	q := divNums(&p, &width, divScale(&p, &width), false)
	q.roundTo(0, true)
	i, err := q.toInt(0, math.MaxInt32-1, "integer")
	return int32(i) + 1, err
}
