package types

import (
	"encoding/binary"
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
)

func appendRangeText(dst []byte, t OID, r Range, o *Options) []byte {
	if r.Empty {
		return append(dst, "empty"...)
	}
	sub := Of(t.Subtype())
	bound := func(b Bound) {
		if !b.Inf {
			l := len(dst)
			dst = quoteBound(appendText(dst, sub, b.val, o), l)
		}
	}
	if r.Lower.Inc {
		dst = append(dst, '[')
	} else {
		dst = append(dst, '(')
	}
	bound(r.Lower)
	dst = append(dst, ',')
	bound(r.Upper)
	if r.Upper.Inc {
		return append(dst, ']')
	}
	return append(dst, ')')
}

func quoteBound(dst []byte, from int) []byte {
	need := len(dst) == from
	escapes := 0
	for _, c := range dst[from:] {
		switch {
		case c == '"' || c == '\\':
			escapes++
		case c == '(' || c == ')' || c == '[' || c == ']' || c == ',' || isSpace(c):
			need = true
		}
	}
	if escapes == 0 && !need {
		return dst
	}
	return quoteBackslash(dst, from, escapes, 0)
}

func appendMultirangeText(dst []byte, t OID, rs []Range, o *Options) []byte {
	dst = append(dst, '{')
	for i, r := range rs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendRangeText(dst, t, r, o)
	}
	return append(dst, '}')
}

// rangeReader reads a range literal.
type rangeReader struct {
	lit string // what messages quote
	s   string
	t   OID
	o   *Options
}

func (r *rangeReader) fail(detail string) error {
	return pgerror.New(pgerror.InvalidTextRepresentation, "malformed range literal: \"%s\"", r.lit).WithDetail("%s", detail)
}

// parseRange appends the form of the range of type t that s is.
func parseRange(dst []byte, t OID, s string, o *Options) ([]byte, error) {
	r := rangeReader{lit: s, s: strings.TrimLeft(s, " \t\n\r\f\v"), t: t, o: o}
	v, err := r.read()
	if err != nil {
		return dst, err
	}
	return v.Append(dst, t), nil
}

func (r *rangeReader) read() (v Range, err error) {
	if len(r.s) >= 5 && equalFold(r.s[:5], "empty") {
		if strings.TrimLeft(r.s[5:], " \t\n\r\f\v") != "" {
			return v, r.fail("Junk after \"empty\" key word.")
		}
		return Range{Empty: true}, nil
	}
	if r.s == "" || r.s[0] != '[' && r.s[0] != '(' {
		return v, r.fail("Missing left parenthesis or bracket.")
	}
	lowInc := r.s[0] == '['
	r.s = r.s[1:]
	lower, lowInf, err := r.text()
	if err != nil {
		return v, err
	}
	if r.s[0] != ',' {
		return v, r.fail("Missing comma after lower bound.")
	}
	r.s = r.s[1:]
	upper, upInf, err := r.text()
	if err != nil {
		return v, err
	}
	if r.s[0] == ',' {
		return v, r.fail("Too many commas.")
	}
	upInc := r.s[0] == ']'
	if strings.TrimLeft(r.s[1:], " \t\n\r\f\v") != "" {
		return v, r.fail("Junk after right parenthesis or bracket.")
	}
	vals := columnar.NewBuilder(Of(r.t.Subtype()).Kind(), 2)
	for _, b := range [...]struct {
		inf bool
		s   string
	}{{lowInf, lower}, {upInf, upper}} {
		if b.inf {
			vals.Null()
		} else if err := parseText(vals, Of(r.t.Subtype()), b.s, r.o); err != nil {
			return v, err
		}
	}
	b := vals.Build()
	return MakeRange(r.t, RangeBound(b, 0, lowInc), RangeBound(b, 1, upInc))
}

// RangeBound is the bound at value row of v, none if that is NULL.
func RangeBound(v *columnar.Vec, row int, inc bool) Bound {
	if v.Null(row) {
		return Bound{Inf: true}
	}
	return NewBound(v, row, inc)
}

// text reads the text of one bound, up to the character that ends it.
func (r *rangeReader) text() (s string, inf bool, err error) {
	if r.s != "" && strings.IndexByte(",)]", r.s[0]) >= 0 {
		return "", true, nil
	}
	var b strings.Builder
	quoted := false
	for i := 0; i < len(r.s); i++ {
		c := r.s[i]
		switch {
		case !quoted && (c == ',' || c == ')' || c == ']'):
			r.s = r.s[i:]
			return b.String(), false, nil
		case c == '\\':
			if i++; i == len(r.s) {
				return "", false, r.fail("Unexpected end of input.")
			}
			b.WriteByte(r.s[i])
		case c == '"' && !quoted:
			quoted = true
		case c == '"' && i+1 < len(r.s) && r.s[i+1] == '"':
			i++
			b.WriteByte('"')
		case c == '"':
			quoted = false
		default:
			b.WriteByte(c)
		}
	}
	return "", false, r.fail("Unexpected end of input.")
}

// parseMultirange appends the form of the multirange of type t that s is.
func parseMultirange(dst []byte, t OID, s string, o *Options) ([]byte, error) {
	fail := func(detail string) ([]byte, error) {
		return dst, pgerror.New(pgerror.InvalidTextRepresentation, "malformed multirange literal: \"%s\"", s).WithDetail("%s", detail)
	}
	rng := t.RangeType()
	rest := strings.TrimLeft(s, " \t\n\r\f\v")
	if rest == "" || rest[0] != '{' {
		return fail("Missing left brace.")
	}
	var rs []Range
	rest = rest[1:]
	for first := true; ; first = false {
		rest = strings.TrimLeft(rest, " \t\n\r\f\v")
		n := 0
		switch {
		case rest == "":
			return fail("Unexpected end of input.")
		case first && rest[0] == '}':
		case rest[0] == '[' || rest[0] == '(':
			if n = rangeEnd(rest); n < 0 {
				return fail("Unexpected end of input.")
			}
		case len(rest) >= 5 && equalFold(rest[:5], "empty"):
			n = 5
		default:
			return fail("Expected range start.")
		}
		if n > 0 {
			r := rangeReader{lit: rest[:n], s: rest[:n], t: rng, o: o}
			v, err := r.read()
			if err != nil {
				return dst, err
			}
			rs = append(rs, v)
			rest = strings.TrimLeft(rest[n:], " \t\n\r\f\v")
		}
		switch {
		case rest == "":
			return fail("Unexpected end of input.")
		case rest[0] == '}':
			if strings.TrimLeft(rest[1:], " \t\n\r\f\v") != "" {
				return fail("Junk after closing right brace.")
			}
			return AppendMultirange(dst, rng, OpsOf(rng).Normalize(rs)), nil
		case rest[0] != ',':
			return fail("Expected comma or end of multirange.")
		}
		rest = rest[1:]
	}
}

// rangeEnd is the length of the range literal that s begins with, -1 if it does
// not end.
func rangeEnd(s string) int {
	quoted := false
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '"' && quoted && i+1 < len(s) && s[i+1] == '"':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ')' || c == ']'):
			return i + 1
		}
	}
	return -1
}

func appendRangeBinary(dst []byte, t OID, r Range) []byte {
	dst = append(dst, r.flags())
	if r.Empty {
		return dst
	}
	sub := Of(t.Subtype())
	for _, b := range [...]Bound{r.Lower, r.Upper} {
		if !b.Inf {
			dst = appendSized(dst, sub, b.val)
		}
	}
	return dst
}

func appendMultirangeBinary(dst []byte, t OID, rs []Range) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(rs)))
	for _, r := range rs {
		mark := len(dst)
		dst = appendRangeBinary(append(dst, 0, 0, 0, 0), t, r)
		binary.BigEndian.PutUint32(dst[mark:], uint32(len(dst)-mark-4))
	}
	return dst
}

// sized takes a length and so many bytes off p.
func sized(p []byte) (b, rest []byte, err error) {
	if len(p) < 4 {
		return nil, nil, errShortMessage()
	}
	n := int32(binary.BigEndian.Uint32(p))
	if p = p[4:]; n < 0 || int64(n) > int64(len(p)) {
		return nil, nil, errShortMessage()
	}
	return p[:n], p[n:], nil
}

func readRangeBinary(t OID, p []byte) (r Range, err error) {
	if len(p) == 0 {
		return r, errShortMessage()
	}
	f := p[0] & rangeFlagsAll
	p = p[1:]
	if f&rangeEmpty != 0 {
		if len(p) > 0 {
			return r, errBinaryFormat("")
		}
		return Range{Empty: true}, nil
	}
	vals := columnar.NewBuilder(Of(t.Subtype()).Kind(), 2)
	for _, inf := range [...]rangeFlags{rangeLowerInf, rangeUpperInf} {
		if f&inf != 0 {
			vals.Null()
			continue
		}
		var b []byte
		if b, p, err = sized(p); err == nil {
			err = parseBinary(vals, Of(t.Subtype()), b)
		}
		if err != nil {
			return r, err
		}
	}
	if len(p) > 0 {
		return r, errBinaryFormat("")
	}
	v := vals.Build()
	return MakeRange(t, RangeBound(v, 0, f&rangeLowerInc != 0), RangeBound(v, 1, f&rangeUpperInc != 0))
}

func parseRangeBinary(dst []byte, t OID, p []byte) ([]byte, error) {
	r, err := readRangeBinary(t, p)
	if err != nil {
		return dst, err
	}
	return r.Append(dst, t), nil
}

func parseMultirangeBinary(dst []byte, t OID, p []byte) ([]byte, error) {
	if len(p) < 4 {
		return dst, errShortMessage()
	}
	n := binary.BigEndian.Uint32(p)
	p = p[4:]
	rng := t.RangeType()
	var rs []Range
	for range n {
		b, rest, err := sized(p)
		if err != nil {
			return dst, err
		}
		r, err := readRangeBinary(rng, b)
		if err != nil {
			return dst, err
		}
		rs, p = append(rs, r), rest
	}
	if len(p) > 0 {
		return dst, errBinaryFormat("")
	}
	return AppendMultirange(dst, rng, OpsOf(rng).Normalize(rs)), nil
}

// appendRangeKey appends a key whose byte order is the order of ranges: the
// empty range first; an end that is not there before or after all values; a
// lower bound outside of the range after its value, an upper one before.
func appendRangeKey(dst []byte, t OID, r Range) []byte {
	if r.Empty {
		return append(dst, 0)
	}
	sub := Of(t.Subtype())
	dst = append(dst, 1)
	if r.Lower.Inf {
		dst = append(dst, 0)
	} else {
		dst = appendSortKey(append(dst, 1), sub, r.Lower.val)
		if r.Lower.Inc {
			dst = append(dst, 0)
		} else {
			dst = append(dst, 1)
		}
	}
	if r.Upper.Inf {
		return append(dst, 1)
	}
	dst = appendSortKey(append(dst, 0), sub, r.Upper.val)
	if r.Upper.Inc {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func appendMultirangeKey(dst []byte, t OID, rs []Range) []byte {
	for _, r := range rs {
		dst = appendRangeKey(append(dst, keyValue), t, r)
	}
	return append(dst, keyEnd)
}

// normRange gives equal ranges the same form.
func normRange(t OID, r Range) Range {
	sub := Of(t.Subtype())
	r.Lower.val, r.Upper.val = normDatum(sub, r.Lower.val), normDatum(sub, r.Upper.val)
	return r
}
