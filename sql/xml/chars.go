package xml

import "unicode/utf8"

const blanks = " \t\n\r"

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// isChar reports whether a document may hold the character.
func isChar(r rune) bool {
	if r < 0x20 {
		return r == 9 || r == 10 || r == 13
	}
	return r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD || r >= 0x10000 && r <= 0x10FFFF
}

// isNameStart and isNameChar are those of XML 1.0, fifth edition; a colon is
// among them.
func isNameStart(r rune) bool {
	if r < 0x80 {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' || r == ':'
	}
	return r >= 0xC0 && r <= 0x2FF && r != 0xD7 && r != 0xF7 || r >= 0x370 && r <= 0x1FFF && r != 0x37E ||
		r == 0x200C || r == 0x200D || r >= 0x2070 && r <= 0x218F || r >= 0x2C00 && r <= 0x2FEF ||
		r >= 0x3001 && r <= 0xD7FF || r >= 0xF900 && r <= 0xFDCF || r >= 0xFDF0 && r <= 0xFFFD || r >= 0x10000 && r <= 0xEFFFF
}

func isNameChar(r rune) bool {
	if r < 0x80 {
		return isNameStart(r) || r >= '0' && r <= '9' || r == '-' || r == '.'
	}
	return isNameStart(r) || r == 0xB7 || r >= 0x300 && r <= 0x36F || r >= 0x203F && r <= 0x2040
}

// nameLen is the length of the name at the start of s; colons says whether it
// may have colons, first whether the first character must be one that starts names.
func nameLen(s string, colons, first bool) int {
	i := 0
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == ':' && !colons || i == 0 && first && !isNameStart(r) || !isNameChar(r) {
			break
		}
		i += n
	}
	return i
}

// NCNameLen is the length of the name without colons at the start of s.
func NCNameLen(s string) int { return nameLen(s, false, true) }
