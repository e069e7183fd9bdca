package format

import (
	"fmt"
	"math/bits"
	"unicode/utf8"
	"unsafe"

	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/types"
)

// maxJSONDepth bounds nesting.
const maxJSONDepth = 1000

// jsonScanner reads JSON (RFC 8259) and checks all of it, what it skips too. The
// first failure sticks: it moves to the end of the input.
type jsonScanner struct {
	buf    []byte
	pos    int
	depth  int
	reason string
	tmp    []byte // a string whose escapes were resolved
	num    []byte
	build  types.JSONBuilder
}

func (s *jsonScanner) reset(buf []byte) {
	s.buf, s.pos, s.depth, s.reason = buf, 0, 0, ""
}

func (s *jsonScanner) fail(format string, args ...any) {
	if s.reason == "" {
		s.reason = fmt.Sprintf(format, args...)
		s.pos = len(s.buf)
	}
}

// syntax says that something else stands where a thing was expected.
func (s *jsonScanner) syntax(expected string) {
	if s.pos >= len(s.buf) {
		s.fail("invalid JSON: the text ends where %s is expected", expected)
		return
	}
	s.fail("invalid JSON: %s expected at byte %d, found %q", expected, s.pos, s.buf[s.pos:min(len(s.buf), s.pos+10)])
}

// next passes white space and returns the next byte without passing it, 0 at
// the end.
func (s *jsonScanner) next() byte {
	for s.pos < len(s.buf) {
		c := s.buf[s.pos]
		if c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
		s.pos++
	}
	return 0
}

// end demands that nothing follows.
func (s *jsonScanner) end() {
	if s.next(); s.pos < len(s.buf) {
		s.syntax("the end")
	}
}

// Words of eight bytes, for looking at so many characters at once.
const (
	swarOnes   = 0x0101010101010101
	swarHigh   = 0x80 * swarOnes
	swarQuote  = '"' * swarOnes
	swarEscape = '\\' * swarOnes
	swarSpace  = 0x20 * swarOnes
)

// str reads a string whose opening quote has been passed, and its closing quote.
// The result shares memory with the input or with tmp.
func (s *jsonScanner) str() []byte {
	b, i := s.buf, s.pos
	for i+8 <= len(b) {
		x := *(*uint64)(unsafe.Pointer(&b[i]))
		q, e := x^swarQuote, x^swarEscape
		// The lowest byte found is right; those above it may be wrong.
		m := ((q-swarOnes)&^q | (e-swarOnes)&^e | (x - swarSpace) | x) & swarHigh
		if m == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(m) >> 3
		if b[i] == '"' {
			text := b[s.pos:i:i]
			s.pos = i + 1
			return text
		}
		break
	}
	return s.strSlow(i)
}

// strSlow reads a string on from i, byte by byte.
func (s *jsonScanner) strSlow(i int) []byte {
	b := s.buf
	ascii := true
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			text := b[s.pos:i:i]
			if !ascii && !utf8.Valid(text) {
				s.fail("%s", types.CheckUTF8(text))
				return nil
			}
			s.pos = i + 1
			return text
		case c == '\\':
			return s.escaped(i)
		case c < 0x20:
			s.fail("invalid JSON: character with value 0x%02x must be escaped", c)
			return nil
		case c >= 0x80:
			ascii = false
		}
	}
	s.fail("invalid JSON: the text ends inside of a string")
	return nil
}

// escaped reads a string on, whose first escape is at i.
func (s *jsonScanner) escaped(i int) []byte {
	out := append(s.tmp[:0], s.buf[s.pos:i]...)
	b := s.buf
	for i < len(b) {
		c := b[i]
		i++
		switch {
		case c == '"':
			s.tmp, s.pos = out, i
			if !utf8.Valid(out) {
				s.fail("%s", types.CheckUTF8(out))
				return nil
			}
			return out
		case c < 0x20:
			s.fail("invalid JSON: character with value 0x%02x must be escaped", c)
			return nil
		case c != '\\':
			out = append(out, c)
			continue
		}
		if i == len(b) {
			break
		}
		c = b[i]
		i++
		switch c {
		case '"', '\\', '/':
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			var r rune
			if r, i = s.unicode(i); r < 0 {
				return nil
			}
			out = utf8.AppendRune(out, r)
			continue
		default:
			s.fail("invalid JSON: escape sequence \"\\%c\" is invalid", c)
			return nil
		}
		out = append(out, c)
	}
	s.fail("invalid JSON: the text ends inside of a string")
	return nil
}

// unicode reads the digits of \uXXXX from i, and a second such for characters
// of two surrogates. r < 0 after a failure.
func (s *jsonScanner) unicode(i int) (r rune, next int) {
	r = s.hex4(i)
	if i += 4; r < 0 {
		return -1, i
	}
	if r >= 0xD800 && r < 0xDC00 {
		low := rune(-1)
		if i+1 < len(s.buf) && s.buf[i] == '\\' && s.buf[i+1] == 'u' {
			if low = s.hex4(i + 2); low < 0 {
				return -1, i
			}
		}
		if low < 0xDC00 || low > 0xDFFF {
			s.fail("invalid JSON: Unicode low surrogate must follow a high surrogate")
			return -1, i
		}
		return (r-0xD800)<<10 + (low - 0xDC00) + 0x10000, i + 6
	}
	if r >= 0xDC00 && r <= 0xDFFF {
		s.fail("invalid JSON: Unicode low surrogate must follow a high surrogate")
		return -1, i
	}
	if r == 0 {
		s.fail("unsupported Unicode escape sequence: \\u0000 cannot be converted to text")
		return -1, i
	}
	return r, i
}

func (s *jsonScanner) hex4(i int) rune {
	if i+4 > len(s.buf) {
		s.fail("invalid JSON: the text ends inside of a string")
		return -1
	}
	r := rune(0)
	for _, c := range s.buf[i : i+4] {
		d := rune(-1)
		switch {
		case c >= '0' && c <= '9':
			d = rune(c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			d = rune(c|0x20-'a') + 10
		}
		if d < 0 {
			s.fail("invalid JSON: \"\\u\" must be followed by four hexadecimal digits")
			return -1
		}
		r = r<<4 | d
	}
	return r
}

// jsonNumber is a number as written, and its value if it is an integer of at
// most 18 digits.
type jsonNumber struct {
	text  []byte
	value int64
	small bool // value is set
}

// number reads a number.
func (s *jsonScanner) number() (n jsonNumber) {
	b, i := s.buf, s.pos
	neg := i < len(b) && b[i] == '-'
	if neg {
		i++
	}
	first := i
	v := uint64(0)
	if i+8 <= len(b) {
		v, i = leadingDigits(b, i)
	}
	if i == first || i == first+8 { // there may be more
		for i < len(b) && b[i]-'0' <= 9 {
			v = v*10 + uint64(b[i]-'0')
			i++
		}
	}
	digits := i - first
	if digits == 0 || digits > 1 && b[first] == '0' {
		s.syntax("a number")
		return n
	}
	integer := true
	if i < len(b) && b[i] == '.' {
		integer = false
		from := i + 1
		for i++; i < len(b) && b[i]-'0' <= 9; i++ {
		}
		if i == from {
			s.syntax("a number")
			return n
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		integer = false
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		from := i
		for ; i < len(b) && b[i]-'0' <= 9; i++ {
		}
		if i == from {
			s.syntax("a number")
			return n
		}
	}
	n = jsonNumber{text: b[s.pos:i:i], value: int64(v), small: integer && digits <= 18}
	if neg {
		n.value = -n.value
	}
	s.pos = i
	return n
}

// leadingDigits reads the digits among the eight bytes at i.
func leadingDigits(b []byte, i int) (v uint64, end int) {
	x := *(*uint64)(unsafe.Pointer(&b[i])) ^ '0'*swarOnes
	// The lowest byte that is not a digit is right; those above it may be wrong.
	m := (x + (0x80-10)*swarOnes | x) & swarHigh
	n := 8
	if m != 0 {
		n = bits.TrailingZeros64(m) >> 3
		x <<= 64 - 8*uint(n) // zeros in front
	}
	x = (x*10 + x>>8) & 0x00ff00ff00ff00ff
	x = (x*100 + x>>16) & 0x0000ffff0000ffff
	return (x*10000 + x>>32) & 0xffffffff, i + n
}

// word reads true, false or null.
func (s *jsonScanner) word(w string) {
	if len(s.buf)-s.pos < len(w) || string(s.buf[s.pos:s.pos+len(w)]) != w {
		s.syntax("a value")
		return
	}
	s.pos += len(w)
}

// skip passes a value.
func (s *jsonScanner) skip() {
	switch c := s.next(); c {
	case '"':
		s.pos++
		s.str()
	case '{', '[':
		if !s.open() {
			return
		}
		for first := true; s.more(c, first); first = false {
			if c == '{' {
				if s.key(); s.reason != "" {
					return
				}
			}
			s.skip()
		}
	case 't':
		s.word("true")
	case 'f':
		s.word("false")
	case 'n':
		s.word("null")
	default:
		if c != '-' && c-'0' > 9 {
			s.syntax("a value")
			return
		}
		s.number()
	}
}

// open enters an array or object at its bracket.
func (s *jsonScanner) open() bool {
	s.pos++
	if s.depth++; s.depth > maxJSONDepth {
		s.fail("the JSON text is nested more than %d levels deep", maxJSONDepth)
		return false
	}
	return true
}

// more reports whether an element follows in an array or object ('[' or '{'),
// and passes the comma before it, or else the closing bracket.
func (s *jsonScanner) more(bracket byte, first bool) bool {
	if s.reason != "" {
		return false
	}
	c := s.next()
	if c == bracket+2 { // ']' and '}' follow their partners at a distance of two
		s.pos++
		s.depth--
		return false
	}
	if first {
		return true
	}
	if c != ',' {
		if bracket == '[' {
			s.syntax("\",\" or \"]\"")
		} else {
			s.syntax("\",\" or \"}\"")
		}
		return false
	}
	s.pos++
	return true
}

// key reads a key and the colon after it.
func (s *jsonScanner) key() []byte {
	if s.next() != '"' {
		s.syntax("a key")
		return nil
	}
	s.pos++
	k := s.str()
	s.colon()
	return k
}

func (s *jsonScanner) colon() {
	if s.reason != "" {
		return
	}
	if s.next() != ':' {
		s.syntax("\":\"")
		return
	}
	s.pos++
}

// value reads a value into the JSON builder.
func (s *jsonScanner) value() {
	switch c := s.next(); c {
	case '"':
		s.pos++
		s.build.String(s.str())
	case '{', '[':
		if !s.open() {
			return
		}
		s.build.Begin(c == '{')
		for first := true; s.more(c, first); first = false {
			if c == '{' {
				k := s.key()
				if s.reason != "" {
					return
				}
				s.build.Key(k)
			}
			s.value()
		}
		if s.reason == "" {
			s.build.End()
		}
	case 't':
		s.word("true")
		s.build.Bool(true)
	case 'f':
		s.word("false")
		s.build.Bool(false)
	case 'n':
		s.word("null")
		s.build.Null()
	default:
		s.jsonNumber(c)
	}
}

func (s *jsonScanner) jsonNumber(c byte) {
	if c != '-' && c-'0' > 9 {
		s.syntax("a value")
		return
	}
	n := s.number()
	if s.reason != "" {
		return
	}
	if n.small {
		s.num = decimal.AppendInt64(s.num[:0], n.value)
	} else {
		var err error
		if s.num, err = decimal.Parse(s.num[:0], n.text); err != nil {
			s.fail("%s", reason(err))
			return
		}
	}
	s.build.Number(s.num)
}
