package types

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
)

func isSpace(c byte) bool { return c == ' ' || (c >= '\t' && c <= '\r') }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// trimSpace removes the white space that input functions skip.
func trimSpace(s string) string {
	for len(s) > 0 && isSpace(s[0]) {
		s = s[1:]
	}
	for len(s) > 0 && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

// hasPrefixFold reports whether lower-case word begins with s, ASCII case ignored.
func isPrefixFold(s, word string) bool {
	return len(s) > 0 && len(s) <= len(word) && equalFold(s, word[:len(s)])
}

// equalFold compares s with a lower-case word, ASCII case ignored.
func equalFold(s, word string) bool {
	if len(s) != len(word) {
		return false
	}
	for i := range len(s) {
		if lower(s[i]) != word[i] {
			return false
		}
	}
	return true
}

// ParseBool reads a boolean: true, yes, on, 1 and their opposites, or unique
// prefixes of them.
func ParseBool(s string) (bool, error) {
	v := trimSpace(s)
	switch {
	case isPrefixFold(v, "true"), isPrefixFold(v, "yes"), equalFold(v, "on"), v == "1":
		return true, nil
	case isPrefixFold(v, "false"), isPrefixFold(v, "no"), v == "0",
		len(v) >= 2 && isPrefixFold(v, "off"):
		return false, nil
	}
	return false, errInput("boolean", s)
}

func parseInt(s string, bits int, typ string) (int64, error) {
	v := trimSpace(s)
	i, neg := 0, false
	if v != "" && (v[0] == '-' || v[0] == '+') {
		neg = v[0] == '-'
		i++
	}
	if i == len(v) {
		return 0, errInput(typ, s)
	}
	limit := uint64(1) << (bits - 1)
	var n uint64
	for ; i < len(v); i++ {
		if !isDigit(v[i]) {
			return 0, errInput(typ, s)
		}
		if n > limit/10 || n*10+uint64(v[i]-'0') > limit {
			return 0, errRange(s, typ)
		}
		n = n*10 + uint64(v[i]-'0')
	}
	if n == limit && !neg {
		return 0, errRange(s, typ)
	}
	if neg {
		return -int64(n), nil
	}
	return int64(n), nil
}

func errRange(s, typ string) error {
	return pgerror.New(pgerror.NumericValueOutOfRange, "value \"%s\" is out of range for type %s", s, typ)
}

// ParseInt2, ParseInt4 and ParseInt8 read integers.
func ParseInt2(s string) (int16, error) { n, err := parseInt(s, 16, "smallint"); return int16(n), err }

// ParseInt4 reads an integer.
func ParseInt4(s string) (int32, error) { n, err := parseInt(s, 32, "integer"); return int32(n), err }

// ParseInt8 reads a bigint.
func ParseInt8(s string) (int64, error) { return parseInt(s, 64, "bigint") }

// parseUint reads oid and its likes as C's strtoul does: a negative number
// wraps, and so does one whose 64 bits are those of a negative 32-bit one.
func parseUint(s, typ string) (uint32, error) {
	v := trimSpace(s)
	neg := false
	if v != "" && (v[0] == '-' || v[0] == '+') {
		neg = v[0] == '-'
		v = v[1:]
	}
	i := 0
	for i < len(v) && isDigit(v[i]) {
		i++
	}
	if i == 0 {
		return 0, errInput(typ, s)
	}
	n, err := strconv.ParseUint(v[:i], 10, 64)
	if err != nil {
		return 0, errRange(s, typ)
	}
	if i < len(v) {
		return 0, errInput(typ, s)
	}
	if neg {
		n = -n
	}
	if u := uint32(n); n == uint64(u) || n == uint64(int32(u)) {
		return u, nil
	}
	return 0, errRange(s, typ)
}

// ParseOid reads an oid.
func ParseOid(s string) (uint32, error) { return parseUint(s, "oid") }

// floatPrefix is the length of the longest number at the start of s that C's
// strtod would read, and whether it is hexadecimal.
func floatPrefix(s string) (n int, hex bool) {
	i := 0
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	if i+2 < len(s) && s[i] == '0' && s[i+1]|0x20 == 'x' {
		if n := i + 2 + mantissa(s[i+2:], true); n > i+2 {
			return n + exponent(s[n:], 'p'), true
		}
	}
	m := mantissa(s[i:], false)
	if m == 0 {
		return 0, false
	}
	return i + m + exponent(s[i+m:], 'e'), false
}

// mantissa is the length of digits with at most one point.
func mantissa(s string, hex bool) int {
	digits, point := false, false
	i := 0
	for ; i < len(s); i++ {
		c := s[i]
		switch {
		case isDigit(c) || (hex && c|0x20 >= 'a' && c|0x20 <= 'f'):
			digits = true
			continue
		case c == '.' && !point:
			point = true
			continue
		}
		break
	}
	if !digits {
		return 0
	}
	return i
}

// exponent is the length of an exponent that letter introduces.
func exponent(s string, letter byte) int {
	if s == "" || s[0]|0x20 != letter {
		return 0
	}
	i := 1
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	from := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	if i == from {
		return 0
	}
	return i
}

// leadFloat reads the longest number at the start of s. ok is false if it is
// too large, or too small to be told from zero.
func leadFloat(s string, size int) (f float64, n int, ok bool) {
	n, hex := floatPrefix(s)
	if n == 0 {
		return 0, 0, true
	}
	text := s[:n]
	if hex && !hasLetter(text, 'p') {
		text += "p0"
	}
	f, err := strconv.ParseFloat(text, size)
	return f, n, err == nil && (f != 0 || !hasNonZeroDigit(text))
}

func hasLetter(s string, letter byte) bool {
	for i := range len(s) {
		if s[i]|0x20 == letter {
			return true
		}
	}
	return false
}

// NaN is the one that input makes and binary output sends.
var NaN = math.Float64frombits(0x7ff8000000000000)

func parseFloat(s string, size int, typ string) (float64, error) {
	v := trimSpace(s)
	f, n, ok := leadFloat(v, size)
	if !ok {
		bad := s
		if size == 64 {
			bad = v[:n]
		}
		return 0, pgerror.New(pgerror.NumericValueOutOfRange, "\"%s\" is out of range for type %s", bad, typ)
	}
	if n > 0 {
		if n < len(v) {
			return 0, errInput(typ, s)
		}
		return f, nil
	}
	sign := 1
	if v != "" && (v[0] == '-' || v[0] == '+') {
		if v[0] == '-' {
			sign = -1
		}
		v = v[1:]
	}
	switch {
	case equalFold(v, "nan"):
		return NaN, nil
	case equalFold(v, "infinity"), equalFold(v, "inf"):
		return math.Inf(sign), nil
	}
	return 0, errInput(typ, s)
}

// hasNonZeroDigit looks at the digits before an exponent.
func hasNonZeroDigit(s string) bool {
	for i := range len(s) {
		switch c := s[i] | 0x20; {
		case c == 'p', c == 'e' && !hasLetter(s, 'x'):
			return false
		case s[i] >= '1' && s[i] <= '9', c >= 'a' && c <= 'f':
			return true
		}
	}
	return false
}

// ParseFloat8 reads a double precision.
func ParseFloat8(s string) (float64, error) { return parseFloat(s, 64, "double precision") }

// ParseFloat4 reads a real.
func ParseFloat4(s string) (float32, error) {
	f, err := parseFloat(s, 32, "real")
	return float32(f), err
}

// AppendFloat8 appends the text form of a double precision: the shortest that
// reads back the same, unless o asks for a number of digits.
func AppendFloat8(dst []byte, f float64, o *Options) []byte {
	if o != nil && o.FloatDigits > 0 {
		return appendFloatDigits(dst, f, o.FloatDigits)
	}
	return appendFloat(dst, f, 64, 15)
}

// AppendFloat4 appends the text form of a real.
func AppendFloat4(dst []byte, f float32, o *Options) []byte {
	if o != nil && o.FloatDigits > 0 {
		return appendFloatDigits(dst, float64(f), max(1, o.FloatDigits-9))
	}
	return appendFloat(dst, float64(f), 32, 6)
}

func appendSpecialFloat(dst []byte, f float64) ([]byte, bool) {
	switch {
	case f != f:
		return append(dst, "NaN"...), true
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...), true
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...), true
	}
	return dst, false
}

// appendFloat prints the shortest form; without an exponent where that of the
// first digit is from -4 up to fixed.
func appendFloat(dst []byte, f float64, size, fixed int) []byte {
	if i := int64(f); float64(i) == f && i > -100000 && i < 100000 && (i != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(dst, i, 10)
	}
	dst, ok := appendSpecialFloat(dst, f)
	if ok {
		return dst
	}
	a := math.Abs(f)
	if a == 0 || (a >= 1e-3 && a < 1e5) {
		return strconv.AppendFloat(dst, f, 'f', -1, size)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'e', -1, size) // d.ddde±xx, as C prints it
	// From here on boundaries can be hit; such numbers have an exponent.
	if large := math.Ldexp(1, mantissaBits(size)-1); a >= large && a < 1e40 && onBoundary(dst[start:], f, size) {
		for digits := 0; ; digits++ {
			dst = strconv.AppendFloat(dst[:start], f, 'e', digits, size)
			if g, _ := strconv.ParseFloat(string(dst[start:]), size); g == f && !onBoundary(dst[start:], f, size) {
				return dst
			}
		}
	}
	_, exp, _ := strings.Cut(string(dst[start:]), "e")
	if x, _ := strconv.Atoi(exp); x < -4 || x >= fixed {
		return dst
	}
	return strconv.AppendFloat(dst[:start], f, 'f', -1, size)
}

func mantissaBits(size int) int {
	if size == 32 {
		return 24
	}
	return 53
}

// onBoundary reports whether the decimal number text lies exactly between f
// and one of its neighbours. The shortest form that Go finds may do so, as it
// reads back right by the rule of rounding to even; PostgreSQL, which does not
// trust that rule to be kept, takes one strictly between the middles. It can
// happen only for large numbers, whose middles are integers or nearly so.
func onBoundary(text []byte, f float64, size int) bool {
	mant, e := math.Frexp(math.Abs(f))
	bits := mantissaBits(size)
	m := int64(math.Ldexp(mant, bits)) // f = m * 2^(e-bits)
	if m&1 != 0 {
		return false
	}
	x, ok := new(big.Rat).SetString(string(text))
	if !ok {
		return false
	}
	x.Abs(x)
	for _, side := range [...]int64{-1, 1} {
		y := new(big.Rat).SetInt64(2*m + side)
		shift := new(big.Int).Lsh(big.NewInt(1), uint(max(e-bits-1, bits+1-e)))
		if e-bits-1 >= 0 {
			y.Mul(y, new(big.Rat).SetInt(shift))
		} else {
			y.Quo(y, new(big.Rat).SetInt(shift))
		}
		if x.Cmp(y) == 0 {
			return true
		}
	}
	return false
}

// appendFloatDigits prints as C's %.*g.
func appendFloatDigits(dst []byte, f float64, digits int) []byte {
	dst, ok := appendSpecialFloat(dst, f)
	if ok {
		return dst
	}
	return strconv.AppendFloat(dst, f, 'g', digits, 64)
}

// AppendUUID appends the text form of a uuid.
func AppendUUID(dst []byte, u columnar.U128) []byte {
	for i := 0; i < 32; i++ {
		if i == 8 || i == 12 || i == 16 || i == 20 {
			dst = append(dst, '-')
		}
		w := u.Hi
		if i >= 16 {
			w = u.Lo
		}
		dst = append(dst, hexDigits[w>>(60-4*(i%16))&15])
	}
	return dst
}

const hexDigits = "0123456789abcdef"

func hexVal(c byte) (byte, bool) {
	switch {
	case isDigit(c):
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// ParseUUID reads a uuid: 32 hexadecimal digits, with a hyphen after any group
// of four, with braces around if wanted.
func ParseUUID(s string) (u columnar.U128, err error) {
	v := s
	if len(v) > 0 && v[0] == '{' {
		if v[len(v)-1] != '}' {
			return u, errInput("uuid", s)
		}
		v = v[1 : len(v)-1]
	}
	i := 0
	for n := range 32 {
		if n > 0 && n%4 == 0 && i < len(v) && v[i] == '-' {
			i++
		}
		if i >= len(v) {
			return u, errInput("uuid", s)
		}
		d, ok := hexVal(v[i])
		if !ok {
			return u, errInput("uuid", s)
		}
		i++
		u.Hi = u.Hi<<4 | u.Lo>>60
		u.Lo = u.Lo<<4 | uint64(d)
	}
	if i != len(v) {
		return u, errInput("uuid", s)
	}
	return u, nil
}
