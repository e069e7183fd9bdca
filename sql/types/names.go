package types

import (
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// SplitName takes a name apart at its dots: parts without quotes are folded to
// lower case.
func SplitName(s string) ([]string, error) {
	var parts []string
	i := skipBlanks(s, 0)
	for {
		part, next, ok := namePart(s, i)
		if !ok {
			return nil, pgerror.New(pgerror.InvalidName, "invalid name syntax")
		}
		parts = append(parts, part)
		i = skipBlanks(s, next)
		if i == len(s) {
			return parts, nil
		}
		if s[i] != '.' {
			return nil, pgerror.New(pgerror.InvalidName, "invalid name syntax")
		}
		i = skipBlanks(s, i+1)
	}
}

func skipBlanks(s string, i int) int {
	for i < len(s) && strings.IndexByte(" \t\n\r\f", s[i]) >= 0 {
		i++
	}
	return i
}

// namePart reads one part of a name, which begins at i.
func namePart(s string, i int) (part string, next int, ok bool) {
	if i < len(s) && s[i] == '"' {
		var b strings.Builder
		for i++; i < len(s); i++ {
			if s[i] != '"' {
				b.WriteByte(s[i])
				continue
			}
			if i+1 == len(s) || s[i+1] != '"' {
				return b.String(), i + 1, true
			}
			b.WriteByte('"')
			i++
		}
		return "", i, false
	}
	from := i
	for i < len(s) && s[i] != '.' && strings.IndexByte(" \t\n\r\f", s[i]) < 0 {
		i++
	}
	return strings.ToLower(s[from:i]), i, i > from
}
