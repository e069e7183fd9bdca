package types

import (
	"bytes"
	"unicode/utf8"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// maxNameLen is the greatest length of a name in bytes (NAMEDATALEN - 1).
const maxNameLen = 63

// CheckUTF8 fails with 22021 if s is not valid text: UTF-8 without a zero byte.
func CheckUTF8[T string | []byte](s T) error {
	ascii := true
	for i := range len(s) {
		if s[i] >= 0x80 || s[i] == 0 {
			ascii = false
			break
		}
	}
	if ascii {
		return nil
	}
	b := []byte(s)
	for i := 0; i < len(b); {
		if b[i] == 0 {
			return errEncoding(b[i : i+1])
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return errEncoding(b[i:min(len(b), i+leadLen(b[i]))])
		}
		i += n
	}
	return nil
}

// leadLen is the length of the character that byte c starts, by c alone.
func leadLen(c byte) int {
	switch {
	case c&0xe0 == 0xc0:
		return 2
	case c&0xf0 == 0xe0:
		return 3
	case c&0xf8 == 0xf0:
		return 4
	}
	return 1
}

func errEncoding(b []byte) error {
	var s []byte
	for i, c := range b {
		if i > 0 {
			s = append(s, ' ')
		}
		s = append(s, '0', 'x', hexDigits[c>>4], hexDigits[c&15])
	}
	return pgerror.New(pgerror.CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\": %s", s)
}

// charPrefix is the length in bytes of the first n characters of s, and
// whether s has no more than that.
func charPrefix(s string, n int) (int, bool) {
	if len(s) <= n {
		return len(s), true
	}
	for i := range s {
		if n == 0 {
			return i, false
		}
		n--
	}
	return len(s), true
}

// FitVarchar is s cut for a varchar of modifier mod. If more than blanks would
// be lost, an explicit cast cuts, and anything else fails with 22001.
func FitVarchar(s string, mod int32, explicit bool) (string, error) {
	if mod < 4 {
		return s, nil
	}
	n, all := charPrefix(s, int(mod-4))
	if all {
		return s, nil
	}
	if !explicit && !blank(s[n:]) {
		return s, pgerror.New(pgerror.StringDataRightTruncation, "value too long for type character varying(%d)", mod-4)
	}
	return s[:n], nil
}

// AppendBPChar appends s cut or blank-padded for a char of modifier mod, with
// the same rules as FitVarchar.
func AppendBPChar(dst []byte, s string, mod int32, explicit bool) ([]byte, error) {
	if mod < 4 {
		return append(dst, s...), nil
	}
	n, all := charPrefix(s, int(mod-4))
	if !all {
		if !explicit && !blank(s[n:]) {
			return dst, pgerror.New(pgerror.StringDataRightTruncation, "value too long for type character(%d)", mod-4)
		}
		return append(dst, s[:n]...), nil
	}
	dst = append(dst, s...)
	for range int(mod-4) - utf8.RuneCountInString(s) {
		dst = append(dst, ' ')
	}
	return dst, nil
}

func blank(s string) bool {
	for i := range len(s) {
		if s[i] != ' ' {
			return false
		}
	}
	return true
}

// TrimBPChar is b without trailing blanks: what of a char(n) counts in
// comparisons and in a cast to text.
func TrimBPChar(b []byte) []byte { return bytes.TrimRight(b, " ") }

// FitName is s cut to the length of a name, at a character boundary.
func FitName(s string) string {
	if len(s) <= maxNameLen {
		return s
	}
	n := maxNameLen
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// AppendChar appends the text form of a "char": nothing for zero, an octal
// escape for a byte that is no character by itself.
func AppendChar(dst, b []byte) []byte {
	switch {
	case len(b) == 0 || b[0] == 0:
		return dst
	case b[0] >= 0x80:
		return append(dst, '\\', '0'+b[0]>>6, '0'+b[0]>>3&7, '0'+b[0]&7)
	}
	return append(dst, b[0])
}

// ParseChar reads a "char": an octal escape, or the first byte.
func ParseChar(s string) byte {
	switch {
	case len(s) == 4 && s[0] == '\\' && octal(s[1]) && octal(s[2]) && octal(s[3]):
		return (s[1]-'0')<<6 | (s[2]-'0')<<3 | (s[3] - '0')
	case s == "":
		return 0
	}
	return s[0]
}

// AppendBytea appends the text form of a bytea.
func AppendBytea(dst, b []byte, o *Options) []byte {
	if o != nil && o.ByteaEscape {
		for _, c := range b {
			switch {
			case c == '\\':
				dst = append(dst, '\\', '\\')
			case c < 0x20 || c > 0x7e:
				dst = append(dst, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
			default:
				dst = append(dst, c)
			}
		}
		return dst
	}
	dst = append(dst, '\\', 'x')
	for _, c := range b {
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}

// ParseBytea appends the bytes that s spells in hex (\x…) or escape form.
func ParseBytea(dst []byte, s string) ([]byte, error) {
	if len(s) >= 2 && s[0] == '\\' && s[1] == 'x' {
		return ParseHex(dst, s[2:])
	}
	start := len(dst)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c != '\\':
			dst = append(dst, c)
		case i+1 < len(s) && s[i+1] == '\\':
			dst = append(dst, '\\')
			i++
		case i+3 < len(s) && s[i+1] >= '0' && s[i+1] <= '3' && octal(s[i+2]) && octal(s[i+3]):
			dst = append(dst, (s[i+1]-'0')<<6|(s[i+2]-'0')<<3|(s[i+3]-'0'))
			i += 3
		default:
			return dst[:start], pgerror.New(pgerror.InvalidTextRepresentation, "invalid input syntax for type bytea")
		}
	}
	return dst, nil
}

func octal(c byte) bool { return c >= '0' && c <= '7' }

// ParseHex appends the bytes of hexadecimal digits, white space between pairs allowed.
func ParseHex(dst []byte, s string) ([]byte, error) {
	start := len(dst)
	for i := 0; i < len(s); {
		if c := s[i]; c == ' ' || c == '\n' || c == '\t' || c == '\r' {
			i++
			continue
		}
		h, err := hexDigit(s, i)
		if err != nil {
			return dst[:start], err
		}
		if i+1 >= len(s) {
			return dst[:start], pgerror.New(pgerror.InvalidParameterValue, "invalid hexadecimal data: odd number of digits")
		}
		l, err := hexDigit(s, i+1)
		if err != nil {
			return dst[:start], err
		}
		dst = append(dst, h<<4|l)
		i += 2
	}
	return dst, nil
}

func hexDigit(s string, i int) (byte, error) {
	v, ok := hexVal(s[i])
	if !ok {
		return 0, pgerror.New(pgerror.InvalidParameterValue, "invalid hexadecimal digit: \"%s\"", s[i:min(len(s), i+leadLen(s[i]))])
	}
	return v, nil
}
