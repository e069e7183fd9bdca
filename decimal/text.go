package decimal

import (
	"math/big"
	"math/bits"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// AppendText appends the number as PostgreSQL prints it.
func AppendText(dst, a []byte) []byte {
	x := decode(a)
	switch x.form {
	case nan:
		return append(dst, "NaN"...)
	case posInf:
		return append(dst, "Infinity"...)
	case negInf:
		return append(dst, "-Infinity"...)
	}
	if x.neg {
		dst = append(dst, '-')
	}
	start := len(dst)
	dst = x.appendCoef(dst)
	n := len(dst) - start
	if x.scale == 0 {
		if n == 0 {
			dst = append(dst, '0')
		}
		return dst
	}
	if pad := x.scale + 1 - n; pad > 0 { // at least one digit before the point
		for range pad {
			dst = append(dst, '0')
		}
		copy(dst[start+pad:], dst[start:start+n])
		for i := range pad {
			dst[start+i] = '0'
		}
	}
	point := len(dst) - x.scale
	dst = append(dst, 0)
	copy(dst[point+1:], dst[point:len(dst)-1])
	dst[point] = '.'
	return dst
}

// String is the number as PostgreSQL prints it.
func String(a []byte) string { return string(AppendText(nil, a)) }

func errSyntax(s string) error {
	return pgerror.New(pgerror.InvalidTextRepresentation, "invalid input syntax for type numeric: \"%s\"", s)
}

func isSpace(c byte) bool { return c == ' ' || (c >= '\t' && c <= '\r') }

// Parse appends the number that s spells, as PostgreSQL's numeric input does:
// digits with an optional point and exponent, NaN, [±]Infinity, [±]inf, with
// white space around.
func Parse[T string | []byte](dst []byte, s T) ([]byte, error) {
	x, ok := parse(s)
	if !ok {
		return dst, errSyntax(string(s))
	}
	return x.finishParsed(dst)
}

// ParseTypmod is Parse followed by ApplyTypmod.
func ParseTypmod[T string | []byte](dst []byte, s T, typmod int32) ([]byte, error) {
	x, ok := parse(s)
	if !ok {
		return dst, errSyntax(string(s))
	}
	if err := x.applyTypmod(typmod); err != nil {
		return dst, err
	}
	return x.finishParsed(dst)
}

// finishParsed is finish for numbers whose scale is not bounded yet.
func (x *num) finishParsed(dst []byte) ([]byte, error) {
	if x.form == finite && x.scale > MaxScale {
		return dst, errOverflow()
	}
	return x.finish(dst)
}

func parse[T string | []byte](s T) (x num, ok bool) {
	i, n := 0, len(s)
	for i < n && isSpace(s[i]) {
		i++
	}
	for n > i && isSpace(s[n-1]) {
		n--
	}
	if i < n && (s[i] == '+' || s[i] == '-') {
		x.neg = s[i] == '-'
		i++
	}
	if i == n {
		return x, false
	}
	if c := s[i]; c != '.' && (c < '0' || c > '9') {
		return parseSpecial(string(s[i:n]), x.neg, i > 0 && (s[i-1] == '+' || s[i-1] == '-'))
	}
	return parseDigits(s, i, n, x)
}

func parseSpecial(s string, neg, signed bool) (x num, ok bool) {
	switch {
	case !signed && equalFold(s, "nan"):
		return num{form: nan}, true
	case equalFold(s, "infinity") || equalFold(s, "inf"):
		if neg {
			return num{form: negInf}, true
		}
		return num{form: posInf}, true
	}
	return x, false
}

// equalFold compares with a lower-case ASCII word.
func equalFold(s, lower string) bool {
	if len(s) != len(lower) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// parseDigits reads the unsigned number s[i:n] into x.
func parseDigits[T string | []byte](s T, i, n int, x num) (num, bool) {
	start, point, nd := i, -1, 0
	small := true
	for ; i < n; i++ {
		c := s[i]
		if c == '.' {
			if point >= 0 {
				return x, false
			}
			point = nd
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		nd++
		if small {
			h, lo := bits.Mul64(x.c.lo, 10)
			lo, carry := bits.Add64(lo, uint64(c-'0'), 0)
			hi := x.c.hi*10 + h + carry
			if x.c.hi > (1<<63-11)/10 {
				small = false
			} else {
				x.c = u128{hi, lo}
			}
		}
	}
	if nd == 0 {
		return x, false
	}
	if !small {
		b := make([]byte, 0, nd)
		for j := start; j < i; j++ {
			if s[j] != '.' {
				b = append(b, s[j])
			}
		}
		m, _ := new(big.Int).SetString(string(b), 10)
		x.setMag(m)
	}
	if point >= 0 {
		x.scale = nd - point
	}
	if i == n {
		return x, true
	}
	return parseExponent(s, i, n, x)
}

// maxExponent bounds what an exponent can say without the number being out of
// every range.
const maxExponent = 1 << 18

func parseExponent[T string | []byte](s T, i, n int, x num) (num, bool) {
	if s[i] != 'e' && s[i] != 'E' {
		return x, false
	}
	i++
	neg := false
	if i < n && (s[i] == '+' || s[i] == '-') {
		neg = s[i] == '-'
		i++
	}
	if i == n {
		return x, false
	}
	e := 0
	for ; i < n; i++ {
		if s[i] < '0' || s[i] > '9' {
			return x, false
		}
		e = min(e*10+int(s[i]-'0'), maxExponent)
	}
	if neg {
		x.scale += e
		return x, true
	}
	x.scale -= e
	if x.scale < 0 {
		if e < maxExponent {
			x.extend(0)
		} else if x.scale = 0; !x.isZero() {
			// Far too large; any such number makes the overflow.
			x.setMag(new(big.Int).Lsh(big.NewInt(1), maxIntDigits*4))
		}
	}
	return x, true
}
