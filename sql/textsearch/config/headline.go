package config

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/textsearch"
)

// Options are those of headlines.
type Options struct {
	maxWords, minWords, shortWord, maxFragments int
	all                                         bool
	start, stop, delimiter                      string
}

// ParseOptions reads the text of options: NAME = value, separated by commas.
func ParseOptions(s string) (*Options, error) {
	o := &Options{maxWords: 35, minWords: 15, shortWord: 3, start: "<b>", stop: "</b>", delimiter: " ... "}
	list, err := splitOptions(s)
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		if err := o.set(l.name, l.value); err != nil {
			return nil, err
		}
	}
	if o.all {
		return o, nil
	}
	bad := ""
	switch {
	case o.minWords >= o.maxWords:
		bad = "MinWords should be less than MaxWords"
	case o.minWords <= 0:
		bad = "MinWords should be positive"
	case o.shortWord < 0:
		bad = "ShortWord should be >= 0"
	case o.maxFragments < 0:
		bad = "MaxFragments should be >= 0"
	default:
		return o, nil
	}
	return nil, pgerror.New(pgerror.InvalidParameterValue, "%s", bad)
}

func (o *Options) set(name, value string) error {
	number := func(dst *int) error {
		n, err := parseInt(value)
		*dst = n
		return err
	}
	switch strings.ToLower(name) {
	case "maxwords":
		return number(&o.maxWords)
	case "minwords":
		return number(&o.minWords)
	case "shortword":
		return number(&o.shortWord)
	case "maxfragments":
		return number(&o.maxFragments)
	case "startsel":
		o.start = value
	case "stopsel":
		o.stop = value
	case "fragmentdelimiter":
		o.delimiter = value
	case "highlightall":
		switch strings.ToLower(value) {
		case "1", "on", "true", "t", "y", "yes":
			o.all = true
		default:
			o.all = false
		}
	default:
		return pgerror.New(pgerror.InvalidParameterValue, "unrecognized headline parameter: \"%s\"", name)
	}
	return nil
}

func parseInt(s string) (int, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 32)
	switch {
	case err == nil:
		return int(n), nil
	case errors.Is(err, strconv.ErrRange):
		return 0, pgerror.New(pgerror.NumericValueOutOfRange, "value \"%s\" is out of range for type %s", s, "integer")
	}
	return 0, pgerror.New(pgerror.InvalidTextRepresentation, "invalid input syntax for type %s: \"%s\"", "integer", s)
}

// option is one of a list; quoted says that its value was.
type option struct {
	name, value string
	quoted      bool
}

func optionSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// splitOptions takes a list of options apart.
func splitOptions(s string) ([]option, error) {
	var out []option
	rest := s
	for {
		for rest != "" && (optionSpace(rest[0]) || rest[0] == ',') {
			rest = rest[1:]
		}
		if rest == "" {
			return out, nil
		}
		var o option
		ok := false
		if o.name, rest, ok = optionName(rest); ok {
			if rest = strings.TrimLeft(rest, " \t\n\v\f\r"); strings.HasPrefix(rest, "=") {
				o.value, o.quoted, rest, ok = optionValue(strings.TrimLeft(rest[1:], " \t\n\v\f\r"))
			} else {
				ok = false
			}
		}
		if !ok {
			return nil, pgerror.New(pgerror.SyntaxError, "invalid parameter list format: \"%s\"", s)
		}
		if n, err := strconv.ParseInt(o.value, 10, 32); err == nil && !o.quoted {
			o.value = strconv.Itoa(int(n))
		}
		out = append(out, o)
	}
}

func optionName(s string) (name, rest string, ok bool) {
	if s[0] == '"' {
		return quotedOption(s, false)
	}
	i := 0
	for i < len(s) && !optionSpace(s[i]) && s[i] != '=' {
		i++
	}
	return s[:i], s[i:], true
}

// quotedOption reads what is in quotes, which are doubled within.
func quotedOption(s string, backslash bool) (text, rest string, ok bool) {
	var b []byte
	for i := 1; i < len(s); i++ {
		two := i+1 < len(s) && s[i+1] == s[i]
		switch {
		case s[i] == s[0] && !two:
			return string(b), s[i+1:], true
		case two && (s[i] == s[0] || backslash && s[i] == '\\'):
			i++
		}
		b = append(b, s[i])
	}
	return "", "", false
}

func optionValue(s string) (value string, quoted bool, rest string, ok bool) {
	switch {
	case s == "":
		return "", false, "", false
	case strings.HasPrefix(s, "E'"):
		s = s[1:]
		fallthrough
	case s[0] == '\'':
		value, rest, ok = quotedOption(s, true)
		return value, true, rest, ok
	case s[0] == '"':
		value, rest, ok = quotedOption(s, false)
		return value, true, rest, ok
	}
	i := 0
	for i < len(s) && !optionSpace(s[i]) && s[i] != ',' {
		i++
	}
	return s[:i], false, s[i:], true
}

// hlWord is a token of the text of a headline. value is the value of the query
// that it matches; if it matches several, repeated ones follow.
type hlWord struct {
	typ                         TokenType
	text                        string
	value                       *textsearch.Node
	at                          int
	in, selected, skip, replace bool
	repeated                    bool
}

// headline is a text at work.
type headline struct {
	*Options
	words []hlWord
	query *textsearch.Node
	cover int // the greatest length of a cover
}

// Headline appends the parts of a text that show best what a query (nil: empty)
// finds in it.
func (c *Config) Headline(dst []byte, text string, query *textsearch.Node, o *Options) []byte {
	h := headline{Options: o, query: query, cover: max(o.maxWords*10, 100)}
	if o.maxFragments > 0 {
		h.cover *= o.maxFragments
	}
	values := textsearch.Values(query)
	at := 0
	c.parser.Reset(text)
	for {
		t, token := c.parser.Next()
		if t == 0 {
			break
		}
		if len(token) >= textsearch.MaxWord {
			continue
		}
		h.words = append(h.words, hlWord{typ: t, text: token})
		d := c.dictionary(t)
		if d == nil {
			continue
		}
		at++
		if w, ok := d.lexeme(token); ok {
			h.match(values, []byte(w), textsearch.MakePos(at, 0).At())
		}
	}
	if o.maxFragments != 0 {
		h.fragments()
	} else {
		h.best()
	}
	return h.append(dst)
}

// match marks the last word with the values that it matches.
func (h *headline) match(values []*textsearch.Node, lexeme []byte, at int) {
	k := len(h.words) - 1
	for _, v := range values {
		if v.Prefix && !bytes.HasPrefix(lexeme, v.Word) || !v.Prefix && !bytes.Equal(lexeme, v.Word) {
			continue
		}
		if h.words[k].value == nil {
			h.words[k].value, h.words[k].at = v, at
			continue
		}
		w := h.words[k]
		w.value, w.at, w.repeated = v, at, true
		h.words = append(h.words, w)
	}
}

func (h *headline) interesting(i int) bool { return h.words[i].value != nil && !h.words[i].repeated }

// counts reports whether word i counts as a word.
func (h *headline) counts(i int) bool {
	switch h.words[i].typ {
	case tokBlank, tokTag, tokURL, tokNumHWord, tokASCIIHWord, tokHWord:
		return false
	}
	return true
}

// badEnd reports whether a headline should not end at word i.
func (h *headline) badEnd(i int) bool {
	if h.interesting(i) {
		return false
	}
	switch h.words[i].typ {
	case tokSFloat, tokVersion, tokFloat, tokInt, tokUInt, tokProtocol, tokEntity:
		return true
	}
	return !h.counts(i) || len(h.words[i].text) <= h.shortWord
}

// firstValue is the first word from i on that matches a value, -1 if there is none.
func (h *headline) firstValue(i int) int {
	for ; i < len(h.words); i++ {
		if h.words[i].value != nil {
			return i
		}
	}
	return -1
}

// hlMatcher finds values in some words.
type hlMatcher struct{ words []hlWord }

// Find is where a value is among the words.
func (m *hlMatcher) Find(v *textsearch.Node, positions bool) (textsearch.Truth, []uint16) {
	var pos []uint16
	for i := range m.words {
		if m.words[i].value != v {
			continue
		}
		if !positions {
			return textsearch.Yes, nil
		}
		if at := uint16(m.words[i].at); len(pos) == 0 || pos[len(pos)-1] < at {
			pos = append(pos, at)
		}
	}
	if len(pos) == 0 {
		return textsearch.No, nil
	}
	return textsearch.Yes, pos
}

// nextCover finds the first, shortest run of words from p on that matches the
// query.
func (h *headline) nextCover(p int) (from, to int, ok bool) {
	if h.query == nil {
		return 0, 0, false
	}
	for from = h.firstValue(p); from >= 0; {
		next := -1
		for to = from; to >= 0 && (to == from || to-from < h.cover); {
			if textsearch.Execute(h.query, &hlMatcher{h.words[from : to+1]}) {
				return from, to, true
			}
			n := h.firstValue(to + 1)
			if to == from {
				next = n
			}
			to = n
		}
		from = next
	}
	return 0, 0, false
}

// mark puts the words from one to another into the headline.
func (h *headline) mark(from, to int) {
	for i := from; i <= to; i++ {
		w := &h.words[i]
		w.selected = w.selected || w.value != nil
		switch w.typ {
		case tokTag:
			w.replace = w.replace || !h.all
		case tokURL, tokNumHWord, tokASCIIHWord, tokHWord:
			w.skip = true
		}
		w.in = !w.repeated
	}
}

// markStart takes the first words, where nothing matches.
func (h *headline) markStart() {
	n, end := 0, -1
	for i := 0; i < len(h.words) && n < h.minWords; i++ {
		if h.counts(i) {
			n++
		}
		end = i
	}
	h.mark(0, end)
}

// best takes the best run of words.
func (h *headline) best() {
	if h.all {
		h.mark(0, len(h.words)-1)
		return
	}
	from, to, found, whole := -1, -1, -1, false
	for p := 0; ; p++ {
		a, b, ok := h.nextCover(p)
		if !ok {
			break
		}
		p = a
		begin, end, values := h.stretch(a, b)
		covered := begin <= a && end >= b
		if covered && !whole || covered == whole && (values > found || values == found && !h.badEnd(end) && h.badEnd(to)) {
			from, to, found, whole = begin, end, values, covered
		}
	}
	if found < 0 {
		h.markStart()
		return
	}
	h.mark(from, to)
}

// stretch makes a headline of a cover: as long as it may be, with good ends.
// values is how many values are in it.
func (h *headline) stretch(a, b int) (begin, end, values int) {
	n, i := 0, a
	begin, end = a, a
	count := func(i, by int) {
		if h.counts(i) {
			n += by
		}
		if h.interesting(i) {
			values += by
		}
	}
	for ; i <= b && n < h.maxWords; i++ {
		count(i, 1)
		end = i
	}
	if n >= h.maxWords {
		for i = min(i, b); n > h.minWords && h.badEnd(i); i-- {
			count(i, -1)
			end = i - 1
		}
		return begin, end, values
	}
	for i--; i < len(h.words) && n < h.maxWords; i++ {
		if i > b {
			count(i, 1)
		}
		end = i
		if !h.badEnd(i) && n >= h.minWords {
			break
		}
	}
	if n >= h.minWords {
		return begin, end, values
	}
	for i = a - 1; i >= 0; i-- {
		count(i, 1)
		if n >= h.maxWords || !h.badEnd(i) && n >= h.minWords {
			break
		}
	}
	return max(i, 0), end, values
}

// fragment is a part of a cover that may be shown.
type fragment struct {
	from, to, values, length int
	chosen, excluded         bool
}

// split takes the next fragment off a cover.
func (h *headline) split(from, to int) fragment {
	f := fragment{from: from, to: to}
	for i := from; i <= to; i++ {
		if f.from = i; h.interesting(i) {
			break
		}
	}
	i := f.from
	for ; i <= to && f.length < h.maxWords; i++ {
		if h.counts(i) {
			f.length++
		}
		if h.interesting(i) {
			f.values++
		}
	}
	if to > i {
		for f.to = i; i >= f.from; i-- {
			if f.to = i; h.interesting(i) {
				break
			}
			if h.counts(i) {
				f.length--
			}
		}
	}
	return f
}

// fragments takes the best fragments of all covers.
func (h *headline) fragments() {
	var all []fragment
	for p := 0; ; p++ {
		a, b, ok := h.nextCover(p)
		if !ok {
			break
		}
		for from := a; from <= b; {
			f := h.split(from, b)
			all = append(all, f)
			from = f.to + 1
		}
		p = a
	}
	chosen := 0
	for range max(h.maxFragments, 0) {
		best := -1
		values, length := 0, math.MaxInt32
		for i, f := range all {
			if !f.chosen && !f.excluded && (values < f.values || values == f.values && length > f.length) {
				values, length, best = f.values, f.length, i
			}
		}
		if best < 0 {
			break
		}
		chosen++
		all[best].chosen = true
		h.extend(&all[best])
		from, to := all[best].from, all[best].to
		h.mark(from, to)
		for i := range all {
			f := &all[i]
			if i != best && (f.from >= from && f.from <= to || f.to >= from && f.to <= to || f.from < from && f.to > to) {
				f.excluded = true
			}
		}
	}
	if chosen == 0 {
		h.markStart()
	}
}

// extend makes a fragment longer on both sides, to good ends.
func (h *headline) extend(f *fragment) {
	if f.length >= h.maxWords {
		return
	}
	room, n := (h.maxWords-f.length)/2, 0
	mark := f.from
	for i := f.from - 1; i >= 0 && n < room && !h.words[i].in; i-- {
		if h.counts(i) {
			f.length++
			n++
		}
		mark = i
	}
	for ; mark < f.from && h.badEnd(mark); mark++ {
		if h.counts(mark) {
			f.length--
		}
	}
	f.from = mark
	mark = f.to
	for i := f.to + 1; i < len(h.words) && f.length < h.maxWords && !h.words[i].in; i++ {
		if h.counts(i) {
			f.length++
		}
		mark = i
	}
	for ; mark > f.to && h.badEnd(mark); mark-- {
		if h.counts(mark) {
			f.length--
		}
	}
	f.to = mark
}

// append appends the headline.
func (h *headline) append(dst []byte) []byte {
	within, count := false, 0
	for i := range h.words {
		w := &h.words[i]
		if !w.in || w.repeated {
			within = within && w.repeated
			continue
		}
		if !within {
			within = true
			if count++; count > 1 {
				dst = append(dst, h.delimiter...)
			}
		}
		switch {
		case w.replace:
			dst = append(dst, ' ')
		case w.skip:
		case w.selected:
			dst = append(append(append(dst, h.start...), w.text...), h.stop...)
		default:
			dst = append(dst, w.text...)
		}
	}
	return dst
}
