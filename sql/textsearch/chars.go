package textsearch

import (
	_ "embed" // the table of characters
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

//go:embed chars.tsv
var charsTSV string

// charTables are the classes of chars.tsv.
var charTables = sync.OnceValue(func() map[string]*unicode.RangeTable {
	tables := map[string]*unicode.RangeTable{}
	for line := range strings.Lines(charsTSV) {
		name, list, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			continue
		}
		t := &unicode.RangeTable{}
		for _, r := range strings.Fields(list) {
			from, to, two := strings.Cut(r, "-")
			if !two {
				to = from
			}
			t.R32 = append(t.R32, unicode.Range32{Lo: hex(from), Hi: hex(to), Stride: 1})
		}
		tables[name] = t
	}
	return tables
})

var (
	letters = sync.OnceValue(func() *unicode.RangeTable { return charTables()["letter"] })
	marks   = sync.OnceValue(func() *unicode.RangeTable { return charTables()["mark"] })
)

func hex(s string) uint32 {
	n, err := strconv.ParseUint(s, 16, 32)
	if err != nil {
		panic(fmt.Sprintf("textsearch: chars.tsv: %v", err))
	}
	return uint32(n)
}

// IsAlpha reports whether r is a letter to the C library, which counts digits
// other than the ASCII ones among them.
func IsAlpha(r rune) bool {
	if r < utf8.RuneSelf {
		r |= 0x20
		return r >= 'a' && r <= 'z'
	}
	return unicode.Is(letters(), r)
}

// IsMark reports whether r belongs to the word around it although it is no
// letter.
func IsMark(r rune) bool { return r >= utf8.RuneSelf && unicode.Is(marks(), r) }
