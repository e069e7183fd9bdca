package textsearch

import (
	"strconv"
	"unicode/utf8"

	"github.com/streamdb/streamdb/sql/pgerror"
)

func appendInt(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }

// scanner reads the words of an input of a vector or query.
type scanner struct {
	all, rest string
	query     bool // operators end words; no positions follow
	web       bool // quotes and backslashes are ordinary, but " ends words
	buf       []byte
	pos       []Pos
}

func (s *scanner) errSyntax() error {
	what := "tsvector"
	if s.query {
		what = "tsquery"
	}
	return pgerror.New(pgerror.SyntaxError, "syntax error in %s: \"%s\"", what, s.all)
}

func isOperator(c byte) bool {
	switch c {
	case '!', '&', '|', '(', ')', '<':
		return true
	}
	return false
}

// IsSpace reports whether a text that is not empty starts with white space, as
// the C library sees it.
func IsSpace(s string) bool {
	if c := s[0]; c < utf8.RuneSelf {
		return c == ' ' || c >= '\t' && c <= '\r'
	}
	r, _ := utf8.DecodeRuneInString(s)
	switch {
	case r == 0x1680, r >= 0x2000 && r <= 0x200A && r != 0x2007, r == 0x2028, r == 0x2029, r == 0x205F, r == 0x3000:
		return true
	}
	return false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// take moves the first character of the rest to the word.
func (s *scanner) take() {
	_, n := utf8.DecodeRuneInString(s.rest)
	s.buf = append(s.buf, s.rest[:n]...)
	s.rest = s.rest[n:]
}

// escaped takes the character behind a backslash.
func (s *scanner) escaped() error {
	if s.rest = s.rest[1:]; s.rest == "" {
		return pgerror.New(pgerror.SyntaxError, "there is no escaped character: \"%s\"", s.all)
	}
	s.take()
	return nil
}

// word reads the next word and its positions, which are valid until the next
// call; ok is false at the end.
func (s *scanner) word() (word []byte, pos []Pos, ok bool, err error) {
	s.buf, s.pos = s.buf[:0], s.pos[:0]
	for s.rest != "" && IsSpace(s.rest) {
		_, n := utf8.DecodeRuneInString(s.rest)
		s.rest = s.rest[n:]
	}
	switch {
	case s.rest == "":
		return nil, nil, false, nil
	case !s.web && s.rest[0] == '\'':
		err = s.quoted()
	case s.query && isOperator(s.rest[0]):
		err = s.errSyntax()
	default:
		err = s.plain()
	}
	if err != nil {
		return nil, nil, false, err
	}
	return s.buf, s.pos, true, nil
}

// plain reads a word that is not quoted. Its first character is part of it,
// whatever it is.
func (s *scanner) plain() error {
	for first := true; ; first = false {
		switch {
		case s.rest == "", !first && (IsSpace(s.rest) || s.query && isOperator(s.rest[0]) || s.web && s.rest[0] == '"'):
			return s.ended()
		case !s.web && s.rest[0] == '\\':
			if err := s.escaped(); err != nil {
				return err
			}
		case !first && s.rest[0] == ':':
			if err := s.ended(); err != nil || s.query {
				return err
			}
			return s.positions()
		default:
			s.take()
		}
	}
}

func (s *scanner) ended() error {
	if len(s.buf) == 0 {
		return s.errSyntax()
	}
	return nil
}

func (s *scanner) quoted() error {
	s.rest = s.rest[1:]
	for {
		switch {
		case s.rest == "":
			return s.errSyntax()
		case s.rest[0] == '\\':
			if err := s.escaped(); err != nil {
				return err
			}
		case s.rest[0] != '\'':
			s.take()
		case len(s.rest) > 1 && s.rest[1] == '\'':
			s.rest = s.rest[1:]
			s.take()
		default:
			s.rest = s.rest[1:]
			if err := s.ended(); err != nil {
				return err
			}
			if !s.query && s.rest != "" && s.rest[0] == ':' {
				return s.positions()
			}
			return nil
		}
	}
}

// positions reads a list of positions; the rest is at the colon or comma before.
func (s *scanner) positions() error {
	for {
		if s.rest = s.rest[1:]; s.rest == "" || !isDigit(s.rest[0]) {
			return s.errSyntax()
		}
		digits := s.rest
		for s.rest != "" && isDigit(s.rest[0]) {
			s.rest = s.rest[1:]
		}
		n, _ := strconv.ParseInt(digits[:len(digits)-len(s.rest)], 10, 64) // out of range: the greatest
		p := Pos(min(int32(n), maxPos-1)) & (maxPos - 1)                   // as PostgreSQL cuts it
		if p == 0 {
			return pgerror.New(pgerror.SyntaxError, "wrong position info in tsvector: \"%s\"", s.all)
		}
		more, err := s.weight(&p)
		if err != nil {
			return err
		}
		if s.pos = append(s.pos, p); !more {
			return nil
		}
	}
}

// weight reads what may follow the digits of a position; more says that a comma
// does.
func (s *scanner) weight(p *Pos) (more bool, err error) {
	for ; s.rest != ""; s.rest = s.rest[1:] {
		var w uint8
		switch c := s.rest[0]; {
		case c == ',':
			return true, nil
		case c == '*':
			w = 3
		case c|0x20 >= 'a' && c|0x20 <= 'd':
			w = 'd' - (c | 0x20)
		case IsSpace(s.rest):
			return false, nil
		case isDigit(c):
			continue
		default:
			return false, s.errSyntax()
		}
		if p.Weight() > 0 {
			return false, s.errSyntax()
		}
		*p = MakePos(p.At(), w)
	}
	return false, nil
}
