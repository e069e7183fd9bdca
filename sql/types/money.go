package types

import (
	"math"
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// AppendMoney appends the text form of an amount in cents, as in the C locale.
func AppendMoney(dst []byte, v int64) []byte {
	u := uint64(v)
	if v < 0 {
		dst, u = append(dst, '-'), -u
	}
	dst = append(dst, '$')
	whole := strconv.FormatUint(u/100, 10)
	for i := range len(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, whole[i])
	}
	return append(dst, '.', byte('0'+u/10%10), byte('0'+u%10))
}

// ParseMoney reads an amount: a sign or parentheses for a debit, a currency
// symbol, digits with commas between them, and a fraction that is rounded.
func ParseMoney(s string) (int64, error) {
	const space = " \t\n\r\f\v"
	rest := strings.TrimLeft(s, space)
	rest = strings.TrimPrefix(rest, "$")
	rest = strings.TrimLeft(rest, space)
	neg := false
	switch {
	case strings.HasPrefix(rest, "-"), strings.HasPrefix(rest, "("):
		neg, rest = true, rest[1:]
	case strings.HasPrefix(rest, "+"):
		rest = rest[1:]
	}
	rest = strings.TrimLeft(rest, space)
	rest = strings.TrimPrefix(rest, "$")
	rest = strings.TrimLeft(rest, space)
	v, decimals, point := int64(0), 0, false // v counts down: its range is one wider
	add := func(d int64) bool {
		ok := v >= (math.MinInt64+d)/10
		v = v*10 - d
		return ok
	}
	i := 0
	for ; i < len(rest); i++ {
		c := rest[i]
		switch {
		case isDigit(c) && (!point || decimals < 2):
			if !add(int64(c - '0')) {
				return 0, errMoneyRange(s)
			}
			if point {
				decimals++
			}
			continue
		case c == '.' && !point:
			point = true
			continue
		case c == ',' && !point:
			continue
		}
		break
	}
	if i < len(rest) && isDigit(rest[i]) && rest[i] >= '5' {
		if v == math.MinInt64 {
			return 0, errMoneyRange(s)
		}
		v--
	}
	for ; decimals < 2; decimals++ {
		if !add(0) {
			return 0, errMoneyRange(s)
		}
	}
	for i < len(rest) && isDigit(rest[i]) {
		i++
	}
	for ; i < len(rest); i++ {
		switch c := rest[i]; {
		case isSpace(c), c == ')', c == '$', c == '+':
		case c == '-':
			neg = true
		default:
			return 0, errInput("money", s)
		}
	}
	if neg {
		return v, nil
	}
	if v == math.MinInt64 {
		return 0, errMoneyRange(s)
	}
	return -v, nil
}

func errMoneyRange(s string) error {
	return pgerror.New(pgerror.NumericValueOutOfRange, "value \"%s\" is out of range for type money", s)
}
