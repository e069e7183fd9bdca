package pgcatalog

import (
	"strings"
	"sync"
)

// keywords are the words that need quotes as names.
var keywords = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	t := readRows("keywords")
	for i := range t.rows {
		if t.get(i, "catcode") != "U" {
			m[t.get(i, "word")] = true
		}
	}
	return m
})

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c >= 0x80
}

// words are the identifiers in an SQL expression, with string literals left out.
func words(sql string) []string {
	var out []string
	for i := 0; i < len(sql); {
		switch c := sql[i]; {
		case c == '\'' || c == '"':
			end := i + 1
			for end < len(sql) && sql[end] != c || end+1 < len(sql) && sql[end] == c && sql[end+1] == c {
				if sql[end] == c {
					end++
				}
				end++
			}
			if c == '"' && end <= len(sql) {
				out = append(out, strings.ReplaceAll(sql[i+1:min(end, len(sql))], `""`, `"`))
			}
			i = end + 1
		case isWord(c):
			end := i
			for end < len(sql) && isWord(sql[end]) {
				end++
			}
			out = append(out, strings.ToLower(sql[i:end]))
			i = end
		default:
			i++
		}
	}
	return out
}

// quoteIdent writes an identifier as quote_ident does: with quotes where it
// needs them.
func quoteIdent(s string) string {
	plain := s != "" && (s[0] >= 'a' && s[0] <= 'z' || s[0] == '_')
	for i := 0; i < len(s) && plain; i++ {
		c := s[i]
		plain = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_'
	}
	if plain && !keywords()[s] {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// valueWords writes what a domain's condition calls its value in capitals.
func valueWords(sql string) string {
	var b strings.Builder
	for i := 0; i < len(sql); {
		end := i + 1
		switch c := sql[i]; {
		case c == '\'' || c == '"':
			for end < len(sql) && sql[end] != c {
				end++
			}
			end = min(end+1, len(sql))
		case isWord(c):
			for end < len(sql) && isWord(sql[end]) {
				end++
			}
			if strings.EqualFold(sql[i:end], "value") && !strings.HasPrefix(sql[end:], "(") && (i == 0 || sql[i-1] != '.') {
				b.WriteString("VALUE")
				i = end
				continue
			}
		}
		b.WriteString(sql[i:end])
		i = end
	}
	return b.String()
}
