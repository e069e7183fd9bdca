package jsonpath

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// tokenKind is the kind of a token; other tokens are their own character.
type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokChar
	tokIdent
	tokString
	tokVariable
	tokInt
	tokNumeric
	tokKeyword
	tokOperator // && || == != <= >= ** and so on
)

type token struct {
	kind tokenKind
	text string // of a name or string without its quotes; the symbol; the keyword in lower case
	as   string // the keyword as written
	seen string // what an error message shows
}

// keywords; those with true count only in lower case.
var keywords = map[string]bool{
	"is": false, "to": false, "abs": false, "lax": false, "flag": false, "last": false, "null": true, "size": false, "true": true,
	"type": false, "with": false, "false": true, "floor": false, "double": false, "exists": false, "starts": false, "strict": false,
	"ceiling": false, "datetime": false, "unknown": false, "keyvalue": false, "like_regex": false,
	"bigint": false, "boolean": false, "decimal": false, "integer": false, "number": false, "string": false,
	"date": false, "time": false, "time_tz": false, "timestamp": false, "timestamp_tz": false,
}

func syntaxError(msg, seen string) *pgerror.Error {
	if seen == "" {
		return pgerror.New(pgerror.SyntaxError, "%s at end of jsonpath input", msg)
	}
	return pgerror.New(pgerror.SyntaxError, "%s at or near \"%s\" of jsonpath input", msg, seen)
}

type lexer struct {
	s string
	i int
}

func isBlank(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'
}

const special = `?%$.[]{}()|&!=<>@#,*:-+/`

// isOther reports whether c can be part of an unquoted name.
func isOther(c byte) bool {
	return !isBlank(c) && c != '\\' && c != '"' && strings.IndexByte(special, c) < 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (l *lexer) at(i int) byte {
	if l.i+i < len(l.s) {
		return l.s[l.i+i]
	}
	return 0
}

// span is the number of bytes from here on that ok accepts.
func (l *lexer) span(from int, ok func(byte) bool) int {
	for l.i+from < len(l.s) && ok(l.s[l.i+from]) {
		from++
	}
	return from
}

func (l *lexer) char(n int, kind tokenKind) (token, error) {
	s := l.s[l.i : l.i+n]
	l.i += n
	return token{kind: kind, text: s, seen: s}, nil
}

// next takes the next token.
func (l *lexer) next() (token, error) {
	for l.i < len(l.s) {
		if isBlank(l.s[l.i]) {
			l.i++
			continue
		}
		if !strings.HasPrefix(l.s[l.i:], "/*") {
			break
		}
		n := strings.Index(l.s[l.i+2:], "*/")
		if n < 0 {
			return token{}, syntaxError("unexpected end of comment", "")
		}
		l.i += n + 4
	}
	if l.i >= len(l.s) {
		return token{}, nil
	}
	switch c := l.s[l.i]; {
	case c == '"':
		l.i++
		s, err := l.quoted()
		return token{kind: tokString, text: s, seen: `"`}, err
	case c == '$' && l.at(1) == '"':
		l.i += 2
		s, err := l.quoted()
		return token{kind: tokVariable, text: s, seen: `"`}, err
	case c == '$' && l.i+1 < len(l.s) && isOther(l.at(1)):
		t, err := l.char(l.span(1, isOther), tokVariable)
		t.text = t.text[1:]
		return t, err
	case isDigit(c) || c == '.' && isDigit(l.at(1)):
		return l.number()
	case isOther(c) || c == '\\':
		return l.name()
	}
	for _, op := range []string{"&&", "||", "**", "<=", "==", "<>", "!=", ">="} {
		if strings.HasPrefix(l.s[l.i:], op) {
			t, err := l.char(2, tokOperator)
			if op == "<>" {
				t.text = "!="
			}
			return t, err
		}
	}
	return l.char(1, tokChar)
}

// number takes a number.
func (l *lexer) number() (token, error) {
	kind, n := tokInt, 0
	switch {
	case l.at(0) == '0':
		n = 1
	case l.at(0) != '.':
		n = l.span(0, isDigit)
	}
	if l.at(n) == '.' {
		kind, n = tokNumeric, l.span(n+1, isDigit)
	}
	bad := ""
	if c := l.at(n); c == 'e' || c == 'E' {
		m := n + 1
		if c := l.at(m); c == '+' || c == '-' {
			m++
		}
		if e := l.span(m, isDigit); e > m {
			kind, n = tokNumeric, e
		} else if m > n+1 {
			bad, n = "invalid numeric literal", m
		}
	}
	end := n
	if bad == "" && l.i+n < len(l.s) && isOther(l.at(n)) {
		_, size := utf8.DecodeRuneInString(l.s[l.i+n:])
		bad, n, end = "trailing junk after numeric literal", n+size, n+1
	}
	if bad == "" {
		return l.char(n, kind)
	}
	if l.span(0, isOther) > end { // a longer match, and so the one that counts
		return l.name()
	}
	return token{}, syntaxError(bad, l.s[l.i:l.i+n])
}

// name takes an unquoted name or a keyword.
func (l *lexer) name() (token, error) {
	var b []byte
	t := token{kind: tokIdent}
	for l.i < len(l.s) {
		switch c := l.s[l.i]; {
		case c == '\\':
			var err error
			if b, err = l.escape(b); err != nil {
				return t, err
			}
			continue
		case isOther(c):
			b = append(b, c)
			l.i++
			continue
		case isBlank(c):
			n := l.span(0, isBlank)
			t.seen = l.s[l.i : l.i+n]
		case strings.HasPrefix(l.s[l.i:], "/*"): // PostgreSQL's scanner loses the name
			return l.next()
		}
		break
	}
	t.text, t.as = string(b), string(b)
	low := strings.ToLower(t.text)
	if exact, ok := keywords[low]; ok && (!exact || low == t.text) {
		t.kind, t.text = tokKeyword, low
	}
	return t, nil
}

// quoted takes what follows a double quote up to the closing one.
func (l *lexer) quoted() (string, error) {
	var b []byte
	for l.i < len(l.s) {
		switch c := l.s[l.i]; c {
		case '"':
			l.i++
			return string(b), nil
		case '\\':
			var err error
			if b, err = l.escape(b); err != nil {
				return "", err
			}
		default:
			b = append(b, c)
			l.i++
		}
	}
	return "", syntaxError("unexpected end of quoted string", "")
}

// escape takes an escape sequence.
func (l *lexer) escape(b []byte) ([]byte, error) {
	if l.i+1 >= len(l.s) || l.s[l.i+1] == '\n' {
		return b, syntaxError("unexpected end after backslash", `\`)
	}
	switch c := l.s[l.i+1]; c {
	case 'b', 'f', 'n', 'r', 't', 'v':
		b = append(b, "\b\f\n\r\t\v"[strings.IndexByte("bfnrtv", c)])
		l.i += 2
	case 'u':
		return l.unicode(b)
	case 'x':
		v, err := strconv.ParseUint(l.s[l.i+2:min(l.i+4, len(l.s))], 16, 8)
		if err != nil || l.i+4 > len(l.s) {
			n := l.span(2, isHex)
			return b, syntaxError("invalid hex character sequence", l.s[l.i:l.i+n])
		}
		l.i += 4
		return appendCode(b, rune(v))
	default:
		_, n := utf8.DecodeRuneInString(l.s[l.i+1:])
		b = append(b, l.s[l.i+1:l.i+1+n]...)
		l.i += 1 + n
	}
	return b, nil
}

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// code takes \uXXXX or \u{…}; ok is false if there is none.
func (l *lexer) code() (r rune, ok bool) {
	if l.at(0) != '\\' || l.at(1) != 'u' {
		return 0, false
	}
	from, most := 2, 4
	braces := l.at(2) == '{'
	if braces {
		from, most = 3, 6
	}
	n := min(l.span(from, isHex), from+most)
	if n == from || !braces && n < from+most || braces && l.at(n) != '}' {
		return 0, false
	}
	v, err := strconv.ParseUint(l.s[l.i+from:l.i+n], 16, 32)
	if err != nil {
		return 0, false
	}
	if braces {
		n++
	}
	l.i += n
	return rune(v), true
}

// unicode takes Unicode escapes, of which two may be the halves of one
// character.
func (l *lexer) unicode(b []byte) ([]byte, error) {
	start := l.i
	var high rune
	for l.at(0) == '\\' && l.at(1) == 'u' {
		r, ok := l.code()
		if !ok {
			n := l.span(2, func(c byte) bool { return isHex(c) || c == '{' })
			return b, syntaxError("invalid unicode sequence", l.s[start:l.i+n])
		}
		switch {
		case r >= 0xd800 && r < 0xdc00:
			if high != 0 {
				return b, badSurrogate("Unicode high surrogate must not follow a high surrogate.")
			}
			high = r
			continue
		case r >= 0xdc00 && r < 0xe000:
			if high == 0 {
				return b, badSurrogate("Unicode low surrogate must follow a high surrogate.")
			}
			r = 0x10000 + (high-0xd800)<<10 + (r - 0xdc00)
			high = 0
		case high != 0:
			return b, badSurrogate("Unicode low surrogate must follow a high surrogate.")
		}
		var err error
		if b, err = appendCode(b, r); err != nil {
			return b, err
		}
	}
	if high != 0 {
		return b, badSurrogate("Unicode low surrogate must follow a high surrogate.")
	}
	return b, nil
}

func badSurrogate(detail string) error {
	return pgerror.New(pgerror.InvalidTextRepresentation, "invalid input syntax for type %s", "jsonpath").WithDetail("%s", detail)
}

func appendCode(b []byte, r rune) ([]byte, error) {
	if r == 0 {
		return b, pgerror.New(pgerror.UntranslatableCharacter, "unsupported Unicode escape sequence").
			WithDetail("\\u0000 cannot be converted to text.")
	}
	if r > utf8.MaxRune {
		return b, pgerror.New(pgerror.SyntaxError, "could not convert Unicode to server encoding")
	}
	return utf8.AppendRune(b, r), nil
}
