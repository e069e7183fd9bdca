package config

import (
	_ "embed" // the stop words
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/irish"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/tamil"
	"github.com/blevesearch/snowballstem/turkish"

	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/textsearch"
)

// stemmers by language. The Snowball project has more languages; these are
// those whose Go form there is.
var stemmers = map[string]func(*snowballstem.Env) bool{
	"arabic": arabic.Stem, "danish": stemDanish, "dutch": dutch.Stem, "english": english.Stem, "finnish": stemFinnish,
	"french": stemFrench, "german": german.Stem, "hungarian": hungarian.Stem, "irish": irish.Stem, "italian": italian.Stem,
	"norwegian": norwegian.Stem, "portuguese": portuguese.Stem, "romanian": romanian.Stem, "russian": stemRussian,
	"spanish": spanish.Stem, "swedish": swedish.Stem, "tamil": tamil.Stem, "turkish": turkish.Stem,
}

//go:embed stopwords.tsv
var stopWordsTSV string

// stopWords are the stop words of each language that has some.
var stopWords = sync.OnceValue(func() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for line := range strings.Lines(stopWordsTSV) {
		language, list, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			continue
		}
		words := map[string]bool{}
		for _, w := range strings.Fields(list) {
			words[w] = true
		}
		all[language] = words
	}
	return all
})

// dictionary makes lexemes of words. It is for one goroutine.
type dictionary struct {
	stem  func(*snowballstem.Env) bool // nil: words stay
	stop  map[string]bool
	env   *snowballstem.Env
	lower []byte
}

func newDictionary(name string) (*dictionary, error) {
	if name == textsearch.DictSimple {
		return &dictionary{}, nil
	}
	language := strings.TrimSuffix(name, "_stem")
	stem := stemmers[language]
	if stem == nil {
		return nil, pgerror.Unsupported("text search dictionary \"" + name + "\"")
	}
	return &dictionary{stem: stem, stop: stopWords()[language], env: snowballstem.NewEnv("")}, nil
}

// maxStem is the length in bytes of the longest words that are stemmed.
const maxStem = 1000

// lexeme is what becomes of a word; a stop word becomes nothing.
func (d *dictionary) lexeme(word string) (lexeme string, ok bool) {
	low := d.toLower(word)
	switch {
	case d.stem == nil:
		return low, low != ""
	case len(word) > maxStem:
		return low, true
	case low == "" || d.stop[low]:
		return "", false
	}
	d.env.SetCurrent(low)
	d.stem(d.env)
	if s := d.env.Current(); s != "" {
		return s, true
	}
	return low, true
}

// toLower changes each character to lower case by itself.
func (d *dictionary) toLower(s string) string {
	i := 0
	for i < len(s) && s[i] < utf8.RuneSelf && !(s[i] >= 'A' && s[i] <= 'Z') {
		i++
	}
	if i == len(s) {
		return s
	}
	d.lower = append(d.lower[:0], s[:i]...)
	for _, r := range s[i:] {
		d.lower = utf8.AppendRune(d.lower, unicode.ToLower(r))
	}
	return string(d.lower)
}

// Lexize is what a dictionary makes of a word: nothing for a stop word.
func Lexize(dictOID uint32, word string) ([]string, error) {
	d := textsearch.DictByOID(dictOID)
	if d == nil {
		return nil, pgerror.New(pgerror.InternalError, "cache lookup failed for text search dictionary %d", dictOID)
	}
	dict, err := newDictionary(d.Name)
	if err != nil {
		return nil, err
	}
	if s, ok := dict.lexeme(word); ok {
		return []string{s}, nil
	}
	return []string{}, nil
}

// Languages are those that have stemmers, in order.
func Languages() []string {
	var out []string
	for l := range stemmers {
		out = append(out, l)
	}
	slices.Sort(out)
	return out
}
