package parser

import (
	"strings"
	"unicode/utf8"
)

// tokenKind is the lexical kind of a token (PostgreSQL manual, section 4.1).
type tokenKind uint8

const (
	tokEOF    tokenKind = iota
	tokWord             // identifier or keyword: val is folded to lower case
	tokQuoted           // quoted identifier: val is the name
	tokString           // string constant of any spelling: val is the text
	tokNumber           // numeric constant
	tokParam            // $1
	tokOp               // operator or punctuation: val is its text
	tokBad              // unterminated quote or comment: runs to the end of the text
)

// token is a token of text[start:end].
type token struct {
	kind       tokenKind
	start, end int
	val        string
}

// lexer reads tokens by PostgreSQL's lexical rules. It never fails: what
// PostgreSQL's scanner rejects becomes tokBad, and its message is left to
// PostgreSQL's scanner.
type lexer struct {
	text string
	pos  int
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}

func isIdentStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isIdentPart(c byte) bool { return isIdentStart(c) || isDigit(c) || c == '$' }

func isOpChar(c byte) bool { return c < 0x80 && strings.IndexByte("~!@#^&|`?+-*/%<>=", c) >= 0 }

// next reads one token.
func (l *lexer) next() token {
	if bad := l.skipBlank(); bad >= 0 {
		l.pos = len(l.text)
		return token{kind: tokBad, start: bad, end: l.pos}
	}
	start := l.pos
	if start >= len(l.text) {
		return token{kind: tokEOF, start: start, end: start}
	}
	c := l.text[start]
	switch {
	case isIdentStart(c):
		if t, ok := l.prefixedQuote(start, c); ok {
			return t
		}
		for l.pos < len(l.text) && isIdentPart(l.text[l.pos]) {
			l.pos++
		}
		return token{tokWord, start, l.pos, foldIdent(l.text[start:l.pos])}
	case c == '"':
		return l.quotedIdent(start, start)
	case c == '\'':
		return l.quotedString(start, start, false)
	case isDigit(c), c == '.' && start+1 < len(l.text) && isDigit(l.text[start+1]):
		return l.number(start)
	case c == '$':
		return l.dollar(start)
	}
	return l.operator(start)
}

// skipBlank passes white space and comments. It returns the start of an
// unterminated comment, else -1.
func (l *lexer) skipBlank() int {
	for l.pos < len(l.text) {
		c := l.text[l.pos]
		switch {
		case isSpace(c):
			l.pos++
		case c == '-' && strings.HasPrefix(l.text[l.pos:], "--"):
			n := strings.IndexAny(l.text[l.pos:], "\r\n")
			if n < 0 {
				n = len(l.text) - l.pos
			}
			l.pos += n
		case c == '/' && strings.HasPrefix(l.text[l.pos:], "/*"):
			start := l.pos
			if !l.blockComment() {
				return start
			}
		default:
			return -1
		}
	}
	return -1
}

// blockComment passes a comment, which may nest.
func (l *lexer) blockComment() bool {
	depth := 0
	for l.pos < len(l.text) {
		switch rest := l.text[l.pos:]; {
		case strings.HasPrefix(rest, "/*"):
			depth++
			l.pos += 2
		case strings.HasPrefix(rest, "*/"):
			depth--
			l.pos += 2
			if depth == 0 {
				return true
			}
		default:
			l.pos++
		}
	}
	return false
}

// prefixedQuote reads E'…', B'…', X'…', N'…', U&'…' and U&"…".
func (l *lexer) prefixedQuote(start int, c byte) (token, bool) {
	rest := l.text[start+1:]
	switch c {
	case 'e', 'E', 'b', 'B', 'x', 'X', 'n', 'N':
		if strings.HasPrefix(rest, "'") {
			return l.quotedString(start, start+1, c == 'e' || c == 'E'), true
		}
	case 'u', 'U':
		if strings.HasPrefix(rest, "&'") {
			return l.quotedString(start, start+2, false), true
		}
		if strings.HasPrefix(rest, `&"`) {
			return l.quotedIdent(start, start+2), true
		}
	}
	return token{}, false
}

func (l *lexer) quotedIdent(start, quote int) token {
	var b strings.Builder
	for i := quote + 1; i < len(l.text); i++ {
		if l.text[i] != '"' {
			b.WriteByte(l.text[i])
			continue
		}
		if i+1 < len(l.text) && l.text[i+1] == '"' {
			b.WriteByte('"')
			i++
			continue
		}
		l.pos = i + 1
		return token{tokQuoted, start, l.pos, truncateIdent(b.String())}
	}
	l.pos = len(l.text)
	return token{kind: tokBad, start: start, end: l.pos}
}

// quotedString reads a string constant with its continuations: constants that
// only white space with a newline separates are one.
func (l *lexer) quotedString(start, quote int, escapes bool) token {
	var b strings.Builder
	i := quote + 1
	for i < len(l.text) {
		c := l.text[i]
		switch {
		case c == '\\' && escapes && i+1 < len(l.text):
			i = unescape(&b, l.text, i)
		case c != '\'':
			b.WriteByte(c)
			i++
		case i+1 < len(l.text) && l.text[i+1] == '\'':
			b.WriteByte('\'')
			i += 2
		default:
			next := continuation(l.text, i+1)
			if next < 0 {
				l.pos = i + 1
				return token{tokString, start, l.pos, b.String()}
			}
			i = next + 1
		}
	}
	l.pos = len(l.text)
	return token{kind: tokBad, start: start, end: l.pos}
}

// continuation finds the quote that continues a string constant ended at i.
func continuation(text string, i int) int {
	newline := false
	for i < len(text) && isSpace(text[i]) {
		newline = newline || text[i] == '\n' || text[i] == '\r'
		i++
	}
	if newline && i < len(text) && text[i] == '\'' {
		return i
	}
	return -1
}

// unescape appends the character of the escape at text[i] and returns the
// offset after it.
func unescape(b *strings.Builder, text string, i int) int {
	c := text[i+1]
	i += 2
	digits := func(base, most int) int {
		n, v := 0, 0
		for n < most && i < len(text) {
			d := strings.IndexByte("0123456789abcdef", text[i]|0x20)
			if text[i] < '0' || d < 0 || d >= base {
				break
			}
			v = v*base + d
			n++
			i++
		}
		return v
	}
	switch c {
	case 'b':
		b.WriteByte('\b')
	case 'f':
		b.WriteByte('\f')
	case 'n':
		b.WriteByte('\n')
	case 'r':
		b.WriteByte('\r')
	case 't':
		b.WriteByte('\t')
	case 'x':
		b.WriteByte(byte(digits(16, 2)))
	case 'u':
		b.WriteRune(rune(digits(16, 4)))
	case 'U':
		b.WriteRune(rune(digits(16, 8)))
	case '0', '1', '2', '3', '4', '5', '6', '7':
		i--
		b.WriteByte(byte(digits(8, 3)))
	default:
		b.WriteByte(c)
	}
	return i
}

func (l *lexer) number(start int) token {
	i := start
	hex := strings.HasPrefix(l.text[i:], "0x") || strings.HasPrefix(l.text[i:], "0X")
	for i < len(l.text) {
		c := l.text[i]
		switch {
		case isDigit(c), c == '_', hex && isIdentPart(c), !hex && (c == 'o' || c == 'b') && i == start+1:
			i++
		case c == '.' && !hex && !strings.HasPrefix(l.text[i:], "..") && !strings.Contains(l.text[start:i], "."):
			i++
		case (c == 'e' || c == 'E') && exponent(l.text[i+1:]):
			i += 2
		default:
			l.pos = i
			return token{tokNumber, start, i, l.text[start:i]}
		}
	}
	l.pos = i
	return token{tokNumber, start, i, l.text[start:i]}
}

func exponent(s string) bool {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	return s != "" && isDigit(s[0])
}

// dollar reads a parameter or a dollar-quoted string.
func (l *lexer) dollar(start int) token {
	i := start + 1
	if i < len(l.text) && isDigit(l.text[i]) {
		for i < len(l.text) && isDigit(l.text[i]) {
			i++
		}
		l.pos = i
		return token{tokParam, start, i, l.text[start+1 : i]}
	}
	if i < len(l.text) && isIdentStart(l.text[i]) {
		for i < len(l.text) && (isIdentStart(l.text[i]) || isDigit(l.text[i])) {
			i++
		}
	}
	if i >= len(l.text) || l.text[i] != '$' {
		l.pos = start + 1
		return token{tokOp, start, l.pos, "$"}
	}
	tag := l.text[start : i+1]
	end := strings.Index(l.text[i+1:], tag)
	if end < 0 {
		l.pos = len(l.text)
		return token{kind: tokBad, start: start, end: l.pos}
	}
	body := l.text[i+1 : i+1+end]
	l.pos = i + 1 + end + len(tag)
	return token{tokString, start, l.pos, body}
}

// operator reads an operator or punctuation. A multi-character operator ends
// before a comment, and before a trailing + or - unless it holds one of the
// characters that only operators have.
func (l *lexer) operator(start int) token {
	i := start
	for i < len(l.text) && isOpChar(l.text[i]) {
		if rest := l.text[i:]; strings.HasPrefix(rest, "--") || strings.HasPrefix(rest, "/*") {
			break
		}
		i++
	}
	if i > start+1 && !strings.ContainsAny(l.text[start:i], "~!@#^&|`?%") {
		for i > start+1 && (l.text[i-1] == '+' || l.text[i-1] == '-') {
			i--
		}
	}
	if i == start {
		_, n := utf8.DecodeRuneInString(l.text[i:])
		i += n
		for _, two := range [...]string{"::", ":=", ".."} {
			if strings.HasPrefix(l.text[start:], two) {
				i = start + 2
			}
		}
	}
	l.pos = i
	return token{tokOp, start, i, l.text[start:i]}
}

// maxIdent is the greatest length of a name in bytes (NAMEDATALEN - 1).
const maxIdent = 63

func truncateIdent(s string) string {
	if len(s) <= maxIdent {
		return s
	}
	n := maxIdent
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// foldIdent lower-cases the ASCII letters of a name, as PostgreSQL does.
func foldIdent(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= 'A' && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if b[i] >= 'A' && b[i] <= 'Z' {
					b[i] |= 0x20
				}
			}
			return truncateIdent(string(b))
		}
	}
	return truncateIdent(s)
}
