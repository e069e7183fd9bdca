package types

import (
	"math"
	"strconv"

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
	over := false
	for ; i < len(v); i++ {
		if !isDigit(v[i]) {
			return 0, errInput(typ, s)
		}
		if n > limit/10 {
			over = true
		}
		n = n*10 + uint64(v[i]-'0')
		over = over || n > limit
	}
	if over || (n == limit && !neg) {
		return 0, pgerror.New(pgerror.NumericValueOutOfRange, "value \"%s\" is out of range for type %s", s, typ)
	}
	if neg {
		return -int64(n), nil
	}
	return int64(n), nil
}

// ParseInt2, ParseInt4 and ParseInt8 read integers.
func ParseInt2(s string) (int16, error) { n, err := parseInt(s, 16, "smallint"); return int16(n), err }

// ParseInt4 reads an integer.
func ParseInt4(s string) (int32, error) { n, err := parseInt(s, 32, "integer"); return int32(n), err }

// ParseInt8 reads a bigint.
func ParseInt8(s string) (int64, error) { return parseInt(s, 64, "bigint") }

// parseUint reads oid and its likes, for which negative numbers wrap.
func parseUint(s, typ string) (uint32, error) {
	v := trimSpace(s)
	neg := false
	if v != "" && (v[0] == '-' || v[0] == '+') {
		neg = v[0] == '-'
		v = v[1:]
	}
	if v == "" {
		return 0, errInput(typ, s)
	}
	for i := range len(v) {
		if !isDigit(v[i]) {
			return 0, errInput(typ, s)
		}
	}
	n, err := strconv.ParseUint(v, 10, 32)
	if err != nil || (neg && n > 1<<31) {
		return 0, pgerror.New(pgerror.NumericValueOutOfRange, "value \"%s\" is out of range for type %s", s, typ)
	}
	if neg {
		n = -n
	}
	return uint32(n), nil
}

// ParseOid reads an oid.
func ParseOid(s string) (uint32, error) { return parseUint(s, "oid") }

// validFloat reports whether s is a decimal or hexadecimal number as strtod
// reads it, and returns it in a form that strconv reads.
func validFloat(s string) (string, bool) {
	i := 0
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	hex := i+1 < len(s) && s[i] == '0' && s[i+1]|0x20 == 'x'
	if hex {
		i += 2
	}
	digits, point := 0, false
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case isDigit(c) || (hex && c|0x20 >= 'a' && c|0x20 <= 'f'):
			digits++
			continue
		case c == '.' && !point:
			point = true
			continue
		}
		break
	}
	if digits == 0 {
		return s, false
	}
	if i == len(s) {
		if hex {
			return s + "p0", true
		}
		return s, true
	}
	if c := s[i] | 0x20; (hex && c != 'p') || (!hex && c != 'e') {
		return s, false
	}
	if i++; i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	if i == len(s) {
		return s, false
	}
	for ; i < len(s); i++ {
		if !isDigit(s[i]) {
			return s, false
		}
	}
	return s, true
}

func parseFloat(s string, size int, typ string) (float64, error) {
	v := trimSpace(s)
	n, ok := validFloat(v)
	if !ok {
		sign := 1.0
		if v != "" && (v[0] == '-' || v[0] == '+') {
			if v[0] == '-' {
				sign = -1
			}
			v = v[1:]
		}
		switch {
		case equalFold(v, "nan"):
			return math.NaN(), nil
		case equalFold(v, "infinity"), equalFold(v, "inf"):
			return math.Inf(int(sign)), nil
		}
		return 0, errInput(typ, s)
	}
	f, err := strconv.ParseFloat(n, size)
	if err != nil || (f == 0 && hasNonZeroDigit(n)) {
		return 0, pgerror.New(pgerror.NumericValueOutOfRange, "\"%s\" is out of range for type %s", v, typ)
	}
	return f, nil
}

// hasNonZeroDigit looks at the digits before an exponent.
func hasNonZeroDigit(s string) bool {
	for i := range len(s) {
		switch c := s[i] | 0x20; {
		case c == 'e' || c == 'p':
			return false
		case c >= '1' && c <= '9', c >= 'a' && c <= 'f':
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
	exp := 0
	for i := len(dst) - 1; ; i-- {
		if dst[i] == 'e' {
			exp, _ = strconv.Atoi(string(dst[i+1:]))
			break
		}
	}
	if exp >= -4 && exp < fixed {
		return strconv.AppendFloat(dst[:start], f, 'f', -1, size)
	}
	return dst
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
