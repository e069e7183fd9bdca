package xml

import (
	"slices"
	"strings"
)

// knownEncoding reports whether libxml2 knows an encoding that a declaration
// names. The text itself is always in UTF-8.
func knownEncoding(name string) bool {
	n := encodingKey(name)
	for family, numbers := range encodingFamilies {
		if number, ok := strings.CutPrefix(n, family); ok && slices.Contains(strings.Fields(numbers), number) {
			return true
		}
	}
	return slices.Contains(encodings, n)
}

// encodingKey is a name without punctuation, which does not count.
func encodingKey(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' {
			return -1
		}
		return r
	}, strings.ToUpper(name))
}

// encodingFamilies are encodings that differ by a number behind their names.
var encodingFamilies = map[string]string{
	"ISO8859": "1 2 3 4 5 6 7 8 9 10 11 13 14 15 16", "WINDOWS": "1250 1251 1252 1253 1254 1255 1256 1257 1258 31J",
	"CP":      "437 850 852 855 857 866 932 936 949 950 1250 1251 1252 1253 1254 1255 1256 1257 1258",
	"ISO2022": "JP JP2 KR CN", "KOI8": "R U", "UTF": "7 8 16 16LE 16BE 32 32LE 32BE", "LATIN": "1 2 3 4 5 6 7 8 9 10",
}

var encodings = []string{
	"ASCII", "USASCII", "HTML", "ISO10646UCS2", "ISO10646UCS4", "UCS2", "UCS4", "EUCJP", "EUCKR", "EUCTW", "EUCCN",
	"SHIFTJIS", "SJIS", "BIG5", "BIG5HKSCS", "GBK", "GB2312", "GB18030", "TIS620", "MACINTOSH",
}
