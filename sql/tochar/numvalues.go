package tochar

import (
	"bytes"
	"math"
	"strconv"

	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// AppendNumeric appends a numeric by the template.
func (t *Numbers) AppendNumeric(dst, v []byte) ([]byte, error) {
	var buf [64]byte
	switch {
	case t.has(hasRoman):
		n, err := decimal.ToInt32(v)
		if err != nil {
			return dst, err
		}
		return t.write(dst, appendRoman(buf[:0], int64(n)), 0, t.pre, 0)
	case t.has(hasExponent):
		return t.appendScientific(dst, v)
	}
	pre := t.pre
	if t.has(hasShift) {
		pre += t.shift
		power, err := decimal.Power(nil, decimal.AppendInt64(nil, 10), decimal.AppendInt64(nil, int64(t.shift)))
		if err == nil {
			v, err = decimal.Mul(nil, v, power)
		}
		if err != nil {
			return dst, err
		}
	}
	var rounded [40]byte
	r, err := decimal.Round(rounded[:0], v, t.post)
	if err != nil {
		return dst, err
	}
	return t.appendSigned(dst, decimal.AppendText(buf[:0], r), pre, t.post)
}

// AppendInt4 appends an int4 by the template.
func (t *Numbers) AppendInt4(dst []byte, v int32) ([]byte, error) {
	if t.has(hasExponent) {
		return appendExponent(dst, float64(v), t.post), nil
	}
	n := int64(v)
	if t.has(hasShift) && !t.has(hasRoman) {
		factor := int32(math.MinInt32) // what PostgreSQL takes for a power that is too large
		if t.shift < 10 {
			factor = int32(math.Pow10(t.shift))
		}
		n = int64(v * factor)
	}
	return t.appendInt(dst, n)
}

// AppendInt8 appends an int8 by the template.
func (t *Numbers) AppendInt8(dst []byte, v int64) ([]byte, error) {
	switch {
	case t.has(hasRoman):
		if v != int64(int32(v)) {
			return dst, pgerror.New(pgerror.NumericValueOutOfRange, "integer out of range")
		}
	case t.has(hasExponent):
		var buf [20]byte
		return t.appendScientific(dst, decimal.AppendInt64(buf[:0], v))
	case t.has(hasShift):
		factor := int64(1)
		for range t.shift {
			f := factor * 10
			if t.shift > 18 || f*v/f != v {
				return dst, pgerror.New(pgerror.NumericValueOutOfRange, "bigint out of range")
			}
			factor = f
		}
		v *= factor
	}
	return t.appendInt(dst, v)
}

func (t *Numbers) appendInt(dst []byte, v int64) ([]byte, error) {
	var buf [64]byte
	if t.has(hasRoman) {
		return t.write(dst, appendRoman(buf[:0], v), 0, t.pre, 0)
	}
	pre := t.pre
	if t.has(hasShift) {
		pre += t.shift
	}
	digits := strconv.AppendInt(buf[:0], v, 10)
	if t.post > 0 {
		digits = append(digits, '.')
		for range t.post {
			digits = append(digits, '0')
		}
	}
	return t.appendSigned(dst, digits, pre, t.post)
}

// AppendFloat8 appends a float8 by the template.
func (t *Numbers) AppendFloat8(dst []byte, v float64) ([]byte, error) {
	if t.has(hasRoman) {
		return t.appendFloatRoman(dst, v)
	}
	w := v
	if t.has(hasShift) {
		w = v * math.Pow10(t.shift)
	}
	return t.appendFloat(dst, v, w, 15)
}

// AppendFloat4 appends a float4 by the template.
func (t *Numbers) AppendFloat4(dst []byte, v float32) ([]byte, error) {
	if t.has(hasRoman) {
		return t.appendFloatRoman(dst, float64(v))
	}
	w := v
	if t.has(hasShift) {
		w = v * float32(math.Pow10(t.shift))
	}
	return t.appendFloat(dst, float64(v), float64(w), 6)
}

// appendFloatRoman appends a float in Roman numerals.
func (t *Numbers) appendFloatRoman(dst []byte, v float64) ([]byte, error) {
	r := math.RoundToEven(v)
	if !(r >= math.MinInt32 && r <= math.MaxInt32) {
		r = 0 // shown as no Roman numeral, like 0
	}
	return t.appendInt(dst, int64(r))
}

// appendFloat appends v, shifted by V to w, of which only so many digits are
// worth showing.
func (t *Numbers) appendFloat(dst []byte, v, w float64, digits int) ([]byte, error) {
	if t.has(hasExponent) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return t.appendNoExponent(dst), nil
		}
		return appendExponent(dst, v, t.post), nil
	}
	pre, post := t.pre, t.post
	if t.has(hasShift) {
		pre += t.shift
	}
	var buf [64]byte
	post = max(min(post, digits-len(appendFixed(buf[:0], math.Abs(w), 0))), 0)
	return t.appendSigned(dst, appendFixed(buf[:0], w, post), pre, post)
}

// appendFixed appends a float8 with the given number of decimals.
func appendFixed(dst []byte, f float64, decimals int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	}
	return strconv.AppendFloat(dst, f, 'f', decimals, 64)
}

// appendSigned appends a number in digits, maybe with a sign.
func (t *Numbers) appendSigned(dst, digits []byte, pre, post int) ([]byte, error) {
	sign := byte('+')
	if digits[0] == '-' {
		sign, digits = '-', digits[1:]
	}
	whole := bytes.IndexByte(digits, '.')
	if whole < 0 {
		whole = len(digits)
	}
	if whole > pre { // it does not fit
		digits = bytes.Repeat([]byte{'#'}, pre+post+1)
		digits[pre] = '.'
		whole = pre
	}
	w := numberWriter{t: t, flags: t.flags, dst: dst, digits: digits, sign: sign, post: post, blanks: pre - whole}
	w.prepare(pre)
	return w.run()
}

// write appends a number in Roman numerals.
func (t *Numbers) write(dst, digits []byte, sign byte, pre, post int) ([]byte, error) {
	w := numberWriter{t: t, flags: t.flags, dst: dst, digits: digits, sign: sign, post: post}
	w.prepare(pre)
	return w.run()
}

// appendExponent appends f in scientific notation, a blank for a plus.
func appendExponent(dst []byte, f float64, decimals int) []byte {
	if !math.Signbit(f) {
		dst = append(dst, ' ')
	}
	return strconv.AppendFloat(dst, f, 'e', decimals, 64)
}

// appendNoExponent appends what stands for a number without an exponent.
func (t *Numbers) appendNoExponent(dst []byte) []byte {
	start := len(dst)
	for range t.pre + t.post + 6 {
		dst = append(dst, '#')
	}
	dst[start] = ' '
	dst[start+t.pre+1] = '.'
	return dst
}

// appendScientific is appendExponent for a numeric. The significand is
// rounded as it is: it may become 10.
func (t *Numbers) appendScientific(dst, v []byte) ([]byte, error) {
	if decimal.IsNaN(v) || decimal.IsInf(v) {
		return t.appendNoExponent(dst), nil
	}
	text := decimal.AppendText(nil, v)
	if text[0] == '-' {
		dst, text = append(dst, '-'), text[1:]
	} else {
		dst = append(dst, ' ')
	}
	whole, fraction, _ := bytes.Cut(text, []byte{'.'})
	all := append(bytes.Clone(whole), fraction...)
	exp := 0
	if first := len(all) - len(bytes.TrimLeft(all, "0")); first < len(all) {
		exp = len(whole) - 1 - first
		all = append(append(bytes.Clone(all[first:first+1]), '.'), all[first+1:]...)
	} else {
		all = []byte("0")
	}
	significand, err := decimal.Parse(nil, bytes.TrimSuffix(all, []byte{'.'}))
	if err == nil {
		significand, err = decimal.Round(nil, significand, t.post)
	}
	if err != nil {
		return dst, err
	}
	dst = append(decimal.AppendText(dst, significand), 'e')
	if exp < 0 {
		dst, exp = append(dst, '-'), -exp
	} else {
		dst = append(dst, '+')
	}
	return appendPadded(dst, int64(exp), 2), nil
}

var romanDigits = [...][]string{
	{"", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"},
	{"", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC"},
	{"", "C", "CC", "CCC", "CD", "D", "DC", "DCC", "DCCC", "CM"},
	{"", "M", "MM", "MMM"},
}

// appendRoman appends a number in Roman numerals, which go up to 3999.
func appendRoman(dst []byte, v int64) []byte {
	if v < 1 || v > 3999 {
		return append(dst, "###############"...)
	}
	dst = append(dst, romanDigits[3][v/1000]...)
	dst = append(dst, romanDigits[2][v/100%10]...)
	dst = append(dst, romanDigits[1][v/10%10]...)
	return append(dst, romanDigits[0][v%10]...)
}
