package types

import (
	"strings"
	"unicode/utf8"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// maxJSONDepth bounds nesting, as PostgreSQL's stack does.
const maxJSONDepth = 6000

// JSONToken is a token of a JSON text.
type JSONToken uint8

// The tokens. The punctuation marks stand for themselves.
const (
	JSONEnd    JSONToken = iota
	JSONString           // Text is the raw string with its quotes
	JSONNumber
	JSONTrue
	JSONFalse
	JSONNull
	JSONOpenObject  JSONToken = '{'
	JSONCloseObject JSONToken = '}'
	JSONOpenArray   JSONToken = '['
	JSONCloseArray  JSONToken = ']'
	JSONComma       JSONToken = ','
	JSONColon       JSONToken = ':'
)

// JSONLexer splits a JSON text into tokens.
type JSONLexer struct {
	S        string
	Tok      JSONToken
	From, To int // of the token
	// Decode asks for strings with their escapes resolved, and for the errors
	// that only this can find.
	Decode bool
	Str    []byte // the string token decoded; valid until the next one
}

func isJSONWord(c byte) bool {
	return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80
}

// fail is a syntax error with a detail and the place of the current token.
func (l *JSONLexer) fail(code, message, format string, args ...any) error {
	e := pgerror.New(code, "%s", message).WithDetail(format, args...)
	e.Where = l.where()
	return e
}

func (l *JSONLexer) syntaxError(format string, args ...any) error {
	return l.fail(pgerror.InvalidTextRepresentation, "invalid input syntax for type json", format, args...)
}

// where shows the line of the token up to it, as PostgreSQL's context does.
func (l *JSONLexer) where() string {
	end := min(l.To, len(l.S))
	line := 1 + strings.Count(l.S[:end], "\n")
	start := strings.LastIndexByte(l.S[:end], '\n') + 1
	// At most 50 bytes before the end of the token.
	prefix := ""
	if end-start >= 50 {
		prefix = "..."
		for end-start >= 50 {
			_, n := utf8.DecodeRuneInString(l.S[start:])
			start += n
		}
		if start <= 3 {
			prefix, start = "", 0
		}
	}
	suffix := ""
	if l.Tok != JSONEnd && end < len(l.S) && l.S[end] != '\n' && l.S[end] != '\r' {
		suffix = "..."
	}
	return "JSON data, line " + string(appendInt(nil, int64(line))) + ": " + prefix + l.S[start:end] + suffix
}

// Text is the current token as written.
func (l *JSONLexer) Text() string { return l.S[l.From:l.To] }

// Next reads the next token.
func (l *JSONLexer) Next() error {
	i := l.To
	for i < len(l.S) && (l.S[i] == ' ' || l.S[i] == '\t' || l.S[i] == '\n' || l.S[i] == '\r') {
		i++
	}
	l.From = i
	if i == len(l.S) {
		l.Tok, l.To = JSONEnd, i
		return nil
	}
	switch c := l.S[i]; c {
	case '{', '}', '[', ']', ',', ':':
		l.Tok, l.To = JSONToken(c), i+1
		return nil
	case '"':
		l.Tok = JSONString
		return l.lexString()
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		l.Tok = JSONNumber
		return l.lexNumber()
	}
	for i < len(l.S) && isJSONWord(l.S[i]) {
		i++
	}
	if i == l.From {
		i++
	}
	l.To = i
	switch l.Text() {
	case "true":
		l.Tok = JSONTrue
	case "false":
		l.Tok = JSONFalse
	case "null":
		l.Tok = JSONNull
	default:
		return l.invalidToken()
	}
	return nil
}

func (l *JSONLexer) invalidToken() error {
	l.Tok = JSONNull // not the end: the context goes on after it
	return l.syntaxError("Token \"%s\" is invalid.", l.Text())
}

func (l *JSONLexer) lexNumber() error {
	s, i := l.S, l.From
	digits := func() bool {
		from := i
		for i < len(s) && isDigit(s[i]) {
			i++
		}
		return i > from
	}
	if s[i] == '-' {
		i++
	}
	ok := true
	if i < len(s) && s[i] == '0' {
		i++
	} else {
		ok = digits()
	}
	if i < len(s) && s[i] == '.' {
		i++
		ok = digits() && ok
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		ok = digits() && ok
	}
	for ; i < len(s) && isJSONWord(s[i]); i++ {
		ok = false
	}
	l.To = i
	if !ok {
		return l.invalidToken()
	}
	return nil
}

// stringError is an error inside a string; the token ends after it.
func (l *JSONLexer) stringError(to int, format string, args ...any) error {
	l.To = min(to, len(l.S))
	return l.syntaxError(format, args...)
}

func (l *JSONLexer) lexString() error {
	s, i := l.S, l.From+1
	l.Str = l.Str[:0]
	high := rune(0) // a high surrogate that waits for its low one
	for {
		from := i
		for i < len(s) && s[i] >= 0x20 && s[i] != '"' && s[i] != '\\' {
			i++
		}
		if l.Decode && i > from {
			if high != 0 {
				return l.surrogateError(from + 1)
			}
			l.Str = append(l.Str, s[from:i]...)
		}
		switch {
		case i == len(s):
			return l.stringError(i, "Token \"%s\" is invalid.", s[l.From:])
		case s[i] == '"':
			if high != 0 {
				return l.surrogateError(i + 1)
			}
			l.To = i + 1
			return nil
		case s[i] < 0x20:
			return l.stringError(i, "Character with value 0x%02x must be escaped.", s[i])
		}
		var err error
		if i, high, err = l.lexEscape(i+1, high); err != nil {
			return err
		}
	}
}

func (l *JSONLexer) surrogateError(to int) error {
	return l.stringError(to, "Unicode low surrogate must follow a high surrogate.")
}

// lexEscape reads an escape sequence from i, the place after its backslash.
func (l *JSONLexer) lexEscape(i int, high rune) (int, rune, error) {
	s := l.S
	if i == len(s) {
		return i, 0, l.stringError(i, "Token \"%s\" is invalid.", s[l.From:])
	}
	if s[i] == 'u' {
		return l.lexUnicode(i+1, high)
	}
	if high != 0 {
		return i, 0, l.surrogateError(i + 1)
	}
	c := s[i]
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
	default:
		_, n := utf8.DecodeRuneInString(s[i:])
		return i, 0, l.stringError(i+n, "Escape sequence \"\\%s\" is invalid.", s[i:i+n])
	}
	if l.Decode {
		l.Str = append(l.Str, c)
	}
	return i + 1, 0, nil
}

// lexUnicode reads the four digits of \uXXXX from i.
func (l *JSONLexer) lexUnicode(i int, high rune) (int, rune, error) {
	s := l.S
	r := rune(0)
	for k := range 4 {
		if i+k == len(s) {
			return i, 0, l.stringError(i+k, "Token \"%s\" is invalid.", s[l.From:])
		}
		d, ok := hexVal(s[i+k])
		if !ok {
			_, n := utf8.DecodeRuneInString(s[i+k:])
			return i, 0, l.stringError(i+k+n, "\"\\u\" must be followed by four hexadecimal digits.")
		}
		r = r<<4 | rune(d)
	}
	i += 4
	if !l.Decode {
		return i, 0, nil
	}
	switch {
	case r >= 0xD800 && r <= 0xDBFF:
		if high != 0 {
			return i, 0, l.stringError(i, "Unicode high surrogate must not follow a high surrogate.")
		}
		return i, r, nil
	case r >= 0xDC00 && r <= 0xDFFF:
		if high == 0 {
			return i, 0, l.surrogateError(i)
		}
		r = (high-0xD800)<<10 + (r - 0xDC00) + 0x10000
	case high != 0:
		return i, 0, l.surrogateError(i)
	case r == 0:
		l.To = i
		return i, 0, l.fail(pgerror.UntranslatableCharacter, "unsupported Unicode escape sequence", "\\u0000 cannot be converted to text.")
	}
	l.Str = utf8.AppendRune(l.Str, r)
	return i, 0, nil
}

// found says that the current token is not what was expected.
func (l *JSONLexer) found(expected string) error {
	if l.Tok == JSONEnd {
		return l.syntaxError("The input string ended unexpectedly.")
	}
	return l.syntaxError("Expected %s, but found \"%s\".", expected, l.Text())
}

// JSONHandler receives the parts of a JSON text in order.
type JSONHandler interface {
	Open(object bool) error  // { or [
	Close(object bool) error // } or ]
	Key(key []byte) error    // of the next value of an object
	// Scalar is a value that is no container. The lexer is at its token.
	Scalar(l *JSONLexer) error
}

// ParseJSON reads all of l.S, which must be one JSON value, and tells h of it.
func ParseJSON(l *JSONLexer, h JSONHandler) error {
	if err := l.Next(); err != nil {
		return err
	}
	if err := l.value(h, 0); err != nil {
		return err
	}
	if l.Tok != JSONEnd {
		return l.found("end of input")
	}
	return nil
}

// value reads a value whose first token is the current one, up to the token after.
func (l *JSONLexer) value(h JSONHandler, depth int) error {
	switch l.Tok {
	case JSONOpenObject, JSONOpenArray:
		if depth >= maxJSONDepth {
			return pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded").
				WithHint("The JSON document is nested too deeply.")
		}
		if l.Tok == JSONOpenObject {
			return l.object(h, depth)
		}
		return l.array(h, depth)
	case JSONString, JSONNumber, JSONTrue, JSONFalse, JSONNull:
		if err := h.Scalar(l); err != nil {
			return err
		}
		return l.Next()
	}
	return l.found("JSON value")
}

func (l *JSONLexer) array(h JSONHandler, depth int) error {
	if err := h.Open(false); err != nil {
		return err
	}
	if err := l.Next(); err != nil {
		return err
	}
	for n := 0; l.Tok != JSONCloseArray || n > 0; n++ {
		if err := l.value(h, depth+1); err != nil {
			return err
		}
		if l.Tok == JSONCloseArray {
			break
		}
		if l.Tok != JSONComma {
			return l.found("\",\" or \"]\"")
		}
		if err := l.Next(); err != nil {
			return err
		}
	}
	if err := h.Close(false); err != nil {
		return err
	}
	return l.Next()
}

func (l *JSONLexer) object(h JSONHandler, depth int) error {
	if err := h.Open(true); err != nil {
		return err
	}
	if err := l.Next(); err != nil {
		return err
	}
	for n := 0; l.Tok != JSONCloseObject || n > 0; n++ {
		if l.Tok != JSONString {
			if n == 0 {
				return l.found("string or \"}\"")
			}
			return l.found("string")
		}
		if err := h.Key(l.keyText()); err != nil {
			return err
		}
		if err := l.Next(); err != nil {
			return err
		}
		if l.Tok != JSONColon {
			return l.found("\":\"")
		}
		if err := l.Next(); err != nil {
			return err
		}
		if err := l.value(h, depth+1); err != nil {
			return err
		}
		if l.Tok == JSONCloseObject {
			break
		}
		if l.Tok != JSONComma {
			return l.found("\",\" or \"}\"")
		}
		if err := l.Next(); err != nil {
			return err
		}
	}
	if err := h.Close(true); err != nil {
		return err
	}
	return l.Next()
}

// keyText is a key's text: decoded if strings are.
func (l *JSONLexer) keyText() []byte {
	if l.Decode {
		return l.Str
	}
	return nil
}

type jsonNoop struct{}

func (jsonNoop) Open(bool) error         { return nil }
func (jsonNoop) Close(bool) error        { return nil }
func (jsonNoop) Key([]byte) error        { return nil }
func (jsonNoop) Scalar(*JSONLexer) error { return nil }

// CheckJSON fails if s is not a JSON text.
func CheckJSON(s string) error {
	if err := CheckUTF8(s); err != nil {
		return err
	}
	l := JSONLexer{S: s}
	return ParseJSON(&l, jsonNoop{})
}

// AppendJSONString appends s as a JSON string.
func AppendJSONString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, s[from:]...), '"')
}
