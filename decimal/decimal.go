// Package decimal is PostgreSQL's numeric: exact decimal numbers of any size
// that keep their display scale, with NaN and ±Infinity, and with
// PostgreSQL's result scales and rounding (PostgreSQL manual, section 8.1.2).
//
// A number is a byte string, so that a column of them is one pointer-free
// buffer:
//
//	header  2 bytes, little-endian: scale (14 bits) | form (2 bits)
//	coef    the magnitude without the decimal point, little-endian, minimal
//
// The value is ±coef × 10^-scale. Form is 0 for positive (and zero), 1 for
// negative, 2 for the special values, whose scale bits tell NaN, Infinity and
// -Infinity apart. Two encodings are equal if and only if value and display
// scale are; Normalize gives equal values equal bytes.
//
// Functions take encodings and append their result to dst, in the manner of
// append; dst may share its buffer with the arguments. Magnitudes below 2^127
// are computed in two machine words without allocation, others by math/big.
package decimal

import (
	"encoding/binary"
	"math/big"
	"math/bits"

	"github.com/streamdb/streamdb/sql/pgerror"
)

const (
	// MaxScale is the largest display scale that a number can have.
	MaxScale = 16383
	// maxIntDigits bounds the digits before the decimal point.
	maxIntDigits = 131072
	headerLen    = 2
)

type form uint8

const (
	finite form = iota
	nan
	posInf
	negInf
)

// num is a decoded number.
type num struct {
	form  form
	neg   bool
	scale int
	c     u128     // magnitude, if big is nil; below 2^127
	big   *big.Int // magnitude of 2^127 and more; never written once set
}

// load64 reads up to 8 bytes, little-endian.
func load64(b []byte) uint64 {
	switch n := len(b); {
	case n == 8:
		return binary.LittleEndian.Uint64(b)
	case n >= 4:
		lo, hi := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[n-4:])
		return uint64(lo) | uint64(hi)<<(uint(n-4)*8)
	case n >= 2:
		lo, hi := binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint16(b[n-2:])
		return uint64(lo) | uint64(hi)<<(uint(n-2)*8)
	case n == 1:
		return uint64(b[0])
	}
	return 0
}

func decode(e []byte) (x num) {
	h := binary.LittleEndian.Uint16(e)
	switch h >> 14 {
	case 0:
	case 1:
		x.neg = true
	default:
		x.form = form(h&3) + nan
		return x
	}
	x.scale = int(h & MaxScale)
	switch b := e[headerLen:]; {
	case len(b) <= 8:
		x.c.lo = load64(b)
	case len(b) < 16 || (len(b) == 16 && b[15] < 0x80):
		x.c.lo = binary.LittleEndian.Uint64(b)
		x.c.hi = load64(b[8:])
	default:
		x.big = bigFromLE(b)
	}
	return x
}

func bigFromLE(b []byte) *big.Int {
	w := make([]big.Word, (len(b)+7)/8)
	for i := range w {
		w[i] = big.Word(load64(b[i*8 : min(len(b), i*8+8)]))
	}
	return new(big.Int).SetBits(w)
}

func header(neg bool, scale int) uint16 {
	h := uint16(scale)
	if neg {
		h |= 1 << 14
	}
	return h
}

// append encodes x.
func (x *num) append(dst []byte) []byte {
	if x.form != finite {
		return binary.LittleEndian.AppendUint16(dst, 2<<14|uint16(x.form-nan))
	}
	if x.big != nil {
		return x.appendBig(dst)
	}
	dst = binary.LittleEndian.AppendUint16(dst, header(x.neg && !x.c.isZero(), x.scale))
	l := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, x.c.lo)
	if x.c.hi == 0 {
		return dst[:l+(bits.Len64(x.c.lo)+7)/8]
	}
	dst = binary.LittleEndian.AppendUint64(dst, x.c.hi)
	return dst[:l+8+(bits.Len64(x.c.hi)+7)/8]
}

func (x *num) appendBig(dst []byte) []byte {
	w := x.big.Bits()
	dst = binary.LittleEndian.AppendUint16(dst, header(x.neg && len(w) > 0, x.scale))
	l := len(dst)
	for _, d := range w {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(d))
	}
	return dst[:l+(x.big.BitLen()+7)/8]
}

// finish encodes x, unless it is too large for the format.
func (x *num) finish(dst []byte) ([]byte, error) {
	if x.big != nil {
		if x.scale > MaxScale || (x.big.BitLen() > maxIntDigits*3 && bigDigits(x.big)-x.scale > maxIntDigits) {
			return dst, errOverflow()
		}
	}
	return x.append(dst), nil
}

func errOverflow() error {
	return pgerror.New(pgerror.NumericValueOutOfRange, "value overflows numeric format")
}

func errDivisionByZero() error {
	return pgerror.New(pgerror.DivisionByZero, "division by zero")
}

func (x *num) isZero() bool {
	return x.form == finite && x.big == nil && x.c.isZero()
}

// sign is -1, 0 or 1; 0 for NaN.
func (x *num) sign() int {
	switch x.form {
	case nan:
		return 0
	case posInf:
		return 1
	case negInf:
		return -1
	}
	switch {
	case x.isZero():
		return 0
	case x.neg:
		return -1
	}
	return 1
}

// bigMag is the magnitude as a big integer, not to be written.
func (x *num) bigMag() *big.Int {
	if x.big != nil {
		return x.big
	}
	return bigFromU128(x.c)
}

func bigFromU128(c u128) *big.Int {
	return new(big.Int).SetBits([]big.Word{big.Word(c.lo), big.Word(c.hi)})
}

// setMag sets the magnitude, which x then owns.
func (x *num) setMag(b *big.Int) {
	w := b.Bits()
	x.big, x.c = nil, u128{}
	switch {
	case len(w) == 0:
	case len(w) == 1:
		x.c.lo = uint64(w[0])
	case len(w) == 2 && w[1]>>63 == 0:
		x.c = u128{uint64(w[1]), uint64(w[0])}
	default:
		x.big = b
	}
}

// digits is the number of decimal digits of the magnitude, 0 for zero.
func (x *num) digits() int {
	if x.big != nil {
		return bigDigits(x.big)
	}
	return x.c.digits()
}

// bigDigits is the number of decimal digits of b > 0.
func bigDigits(b *big.Int) int {
	// floor((BitLen-1)*log10(2)) is the answer or one less, minus one.
	d := int(uint64(b.BitLen()-1)*646456993>>31) + 1
	if b.CmpAbs(bigPow10(d)) >= 0 {
		d++
	}
	return d
}

var bigPow10Tab = func() (t [128]*big.Int) {
	t[0] = big.NewInt(1)
	for i := 1; i < len(t); i++ {
		t[i] = new(big.Int).Mul(t[i-1], big.NewInt(10))
	}
	return t
}()

// bigPow10 is 10^k, not to be written.
func bigPow10(k int) *big.Int {
	if k < len(bigPow10Tab) {
		return bigPow10Tab[k]
	}
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(k)), nil)
}

// rescaled is the magnitude at a scale not below x's, as a new big integer or
// x's own; not to be written.
func (x *num) rescaled(scale int) *big.Int {
	m := x.bigMag()
	if scale == x.scale {
		return m
	}
	return new(big.Int).Mul(m, bigPow10(scale-x.scale))
}

// Sign is -1, 0 or 1, and 0 for NaN.
func Sign(a []byte) int {
	x := decode(a)
	return x.sign()
}

// IsNaN, IsInf and IsZero classify a number.
func IsNaN(a []byte) bool { x := decode(a); return x.form == nan }

// IsInf reports whether a is Infinity or -Infinity.
func IsInf(a []byte) bool { x := decode(a); return x.form == posInf || x.form == negInf }

// IsZero reports whether a is zero, at any scale.
func IsZero(a []byte) bool { return len(a) == headerLen && a[1] < 0x80 }

// Scale is the display scale; ok is false for the special values, which have none.
func Scale(a []byte) (scale int, ok bool) {
	h := binary.LittleEndian.Uint16(a)
	return int(h & MaxScale), h>>14 < 2
}

// MinScale is the smallest scale that shows all digits; ok is false for the
// special values.
func MinScale(a []byte) (scale int, ok bool) {
	x := decode(a)
	if x.form != finite {
		return 0, false
	}
	x.trimZeros()
	return x.scale, true
}

// AppendNaN appends NaN.
func AppendNaN(dst []byte) []byte { x := num{form: nan}; return x.append(dst) }

// AppendInf appends Infinity, or -Infinity for a negative sign.
func AppendInf(dst []byte, sign int) []byte {
	x := num{form: posInf}
	if sign < 0 {
		x.form = negInf
	}
	return x.append(dst)
}

// Valid reports whether b is a well-formed encoding, for data from outside.
func Valid(b []byte) bool {
	if len(b) < headerLen {
		return false
	}
	h := binary.LittleEndian.Uint16(b)
	switch h >> 14 {
	case 0, 1:
		n := len(b)
		return (n > headerLen || h>>14 == 0) && (n == headerLen || b[n-1] != 0)
	case 2:
		return len(b) == headerLen && h&MaxScale <= uint16(negInf-nan)
	}
	return false
}
