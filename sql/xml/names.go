package xml

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Name is the XML name of an SQL name (SQL/XML:2008, 9.1). full escapes colons
// everywhere, and names that start with xml; period escapes periods.
func Name(s string, full, period bool) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == ':' && (i == 0 || full):
			b.WriteString("_x003A_")
		case r == '_' && strings.HasPrefix(s[i+1:], "x"):
			b.WriteString("_x005F_")
		case full && i == 0 && len(s) >= 3 && strings.EqualFold(s[:3], "xml"):
			if r == 'x' {
				b.WriteString("_x0078_")
			} else {
				b.WriteString("_x0058_")
			}
		case period && r == '.':
			b.WriteString("_x002E_")
		case i == 0 && !isNameStart(r) || !isNameChar(r):
			fmt.Fprintf(&b, "_x%04X_", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// SQLName is the SQL name that an XML name stands for.
func SQLName(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if len(s) >= i+7 && s[i] == '_' && s[i+1] == 'x' && s[i+6] == '_' {
			if v, err := strconv.ParseUint(s[i+2:i+6], 16, 32); err == nil {
				b.WriteRune(rune(v))
				i += 7
				continue
			}
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		b.WriteString(s[i : i+n])
		i += n
	}
	return b.String()
}
