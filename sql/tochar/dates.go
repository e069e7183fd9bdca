// Package tochar is formatting by templates: to_char, to_date, to_timestamp
// and to_number (PostgreSQL manual, section 9.8).
package tochar

import (
	"strings"
	"unicode/utf8"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// Dates is a template of dates, times and intervals, ready for use.
type Dates struct {
	parts    []part
	standard bool // as ISO SQL wants templates: input must match literally
}

// part is a field of a template, or a character between fields.
type part struct {
	field *field // nil for a character
	fill  bool   // FM: neither zeros nor blanks to pad with
	local bool   // TM: names as the locale has them
	th    string // the ordinal suffix asked for: "", "TH" or "th"

	text string // the character
	kind textKind
}

// textKind is what a character means to input that is read by the template.
type textKind uint8

const (
	textChar textKind = iota
	textSpace
	textSeparator
)

func isSpace(c byte) bool { return c == ' ' || (c >= '\t' && c <= '\r') }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isSeparator(c byte) bool { return c > ' ' && c < 0x7f && !isAlpha(c) && !isDigit(c) }

// charLen is the length of the character at the start of s.
func charLen(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}

// CompileDates reads a template of dates. A standard template, as of
// ISO SQL, has only a few separators, and input must match it literally.
func CompileDates(s string, standard bool) (*Dates, error) {
	d := &Dates{standard: standard, parts: make([]part, 0, len(s))}
	for s != "" {
		var p part
		switch {
		case strings.HasPrefix(s, "FM") || strings.HasPrefix(s, "fm"):
			p.fill = true
			s = s[2:]
		case strings.HasPrefix(s, "TM") || strings.HasPrefix(s, "tm"):
			p.local = true
			s = s[2:]
		}
		if p.field = longestPrefix(dateFields, s, longestField); p.field != nil {
			s = s[len(p.field.name):]
			switch {
			case strings.HasPrefix(s, "TH") || strings.HasPrefix(s, "th"):
				p.th = s[:2]
				s = s[2:]
			case strings.HasPrefix(s, "SP"):
				s = s[2:]
			}
			d.parts = append(d.parts, p)
			continue
		}
		if s == "" {
			break
		}
		rest, err := d.literal(s)
		if err != nil {
			return nil, err
		}
		s = rest
	}
	return d, nil
}

// literal takes a character, or a string of them in double quotes, from s.
func (d *Dates) literal(s string) (rest string, err error) {
	n := charLen(s)
	switch {
	case s[0] == '"':
		var chars []string
		chars, rest = quoted(s[1:])
		for _, c := range chars {
			d.parts = append(d.parts, part{text: c})
		}
		return rest, nil
	case d.standard:
		if !strings.Contains("-./,':; ", s[:n]) {
			return "", pgerror.New(pgerror.InvalidDatetimeFormat, "invalid datetime format separator: \"%s\"", s[:n])
		}
	case strings.HasPrefix(s, `\"`):
		s = s[1:]
	}
	p := part{text: s[:n]}
	switch {
	case isSeparator(s[0]):
		p.kind = textSeparator
	case isSpace(s[0]):
		p.kind = textSpace
	}
	d.parts = append(d.parts, p)
	return s[n:], nil
}

// quoted splits what follows a double quote into the characters up to the
// closing one.
func quoted(s string) (chars []string, rest string) {
	for s != "" {
		if s[0] == '"' {
			return chars, s[1:]
		}
		if s[0] == '\\' && len(s) > 1 {
			s = s[1:]
		}
		n := charLen(s)
		chars = append(chars, s[:n])
		s = s[n:]
	}
	return chars, ""
}

// HasZone reports whether the template has a field of the time zone.
func (d *Dates) HasZone() bool { return d.has(func(f *field) bool { return f.flags&zoned != 0 }) }

// HasTime reports whether the template has a field of the time of day.
func (d *Dates) HasTime() bool { return d.has(func(f *field) bool { return f.flags&timed != 0 }) }

// HasDate reports whether the template has a field of the date.
func (d *Dates) HasDate() bool {
	return d.has(func(f *field) bool { return f.flags&(timed|zoned) == 0 && f.id != fieldExact })
}

func (d *Dates) has(ok func(*field) bool) bool {
	for i := range d.parts {
		if f := d.parts[i].field; f != nil && ok(f) {
			return true
		}
	}
	return false
}
