package tochar

import (
	"strings"

	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// numberReader finds a number in a text by a template.
type numberReader struct {
	t         *Numbers
	s         string
	i         int
	sign      byte // ' ' until one is found
	digits    []byte
	pre, post int // digits found before and after the point
	point     bool
}

// Read reads a numeric from s.
func (t *Numbers) Read(dst []byte, s string) ([]byte, error) {
	switch {
	case t.has(hasExponent):
		return dst, pgerror.New(pgerror.FeatureNotSupported, "\"EEEE\" not supported for input")
	case t.has(hasRoman):
		return dst, pgerror.New(pgerror.FeatureNotSupported, "\"RN\" not supported for input")
	}
	r := numberReader{t: t, s: s, sign: ' '}
	for i := range t.parts {
		if r.i >= len(s) {
			break
		}
		if p := t.parts[i].pattern; p != nil {
			r.pattern(p.id)
		} else {
			r.i += charLen(r.s[r.i:])
		}
	}
	text := string(r.sign) + strings.TrimSuffix(string(r.digits), ".")
	v, err := decimal.ParseTypmod(nil, text, decimal.MakeTypmod(t.pre+t.shift+r.post, r.post))
	if err == nil && t.has(hasShift) {
		var power []byte
		power, err = decimal.Power(nil, decimal.AppendInt64(nil, 10), decimal.AppendInt64(nil, int64(-t.shift)))
		if err == nil {
			return decimal.Mul(dst, v, power)
		}
	}
	return append(dst, v...), err
}

func (r *numberReader) done() bool { return r.i >= len(r.s) }

// skip passes over up to n characters that cannot be part of a number.
func (r *numberReader) skip(n int) {
	for ; n > 0 && !r.done() && !strings.ContainsRune("0123456789.,+-", rune(r.s[r.i])); n-- {
		r.i += charLen(r.s[r.i:])
	}
}

func (r *numberReader) pattern(id patternID) {
	switch id {
	case patternNine, patternZero, patternPoint:
		r.digit(id)
		r.i++
	case patternComma, patternGroup:
		if !r.t.has(hasFill) && r.s[r.i] == ',' {
			r.i++
		}
	case patternCurrency:
		r.skip(1)
	case patternOrdinal:
		if !r.t.has(hasPoint) {
			r.skip(2)
		}
	case patternMinus, patternPlus, patternSign:
		switch c := r.s[r.i]; {
		case c == '-' && id != patternPlus || c == '+' && id != patternMinus:
			r.sign = c
			r.i++
		default:
			r.skip(1)
		}
	}
}

// takeSign takes a sign at the current place.
func (r *numberReader) takeSign(brackets bool) bool {
	switch c := r.s[r.i]; {
	case c == '-' || brackets && c == '<':
		r.sign = '-'
	case c == '+':
		r.sign = '+'
	default:
		return false
	}
	return true
}

// digit reads at the place of a 9, a 0, or the point, and stops before the last
// character that it took.
func (r *numberReader) digit(id patternID) {
	if r.s[r.i] == ' ' {
		r.i++
	}
	if r.done() {
		return
	}
	if r.sign == ' ' && id != patternPoint && r.pre+r.post == 0 {
		if r.takeSign(r.t.has(hasBrackets)) {
			r.i++
		}
	}
	if r.done() {
		return
	}
	read := false
	switch c := r.s[r.i]; {
	case isDigit(c):
		if r.point && r.post == r.t.post {
			return
		}
		r.digits = append(r.digits, c)
		if r.point {
			r.post++
		} else {
			r.pre++
		}
		read = true
	case c == '.' && r.t.has(hasPoint) && !r.point:
		r.digits = append(r.digits, '.')
		r.point, read = true, true
	}
	if r.sign == ' ' && r.pre+r.post > 0 {
		r.signBehind(read)
	}
}

// signBehind reads a sign behind the number: one for S at the next place, one
// for MI, PL or SG at this one.
func (r *numberReader) signBehind(read bool) {
	switch {
	case r.t.has(hasSign):
		if read && r.i+1 < len(r.s) && !isDigit(r.s[r.i+1]) {
			r.i++
			if !r.takeSign(false) {
				r.i--
			}
		}
	case !read && r.t.has(hasPlus|hasMinus):
		r.takeSign(false)
	}
}
