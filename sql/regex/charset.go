package regex

import (
	"slices"
	"unicode"
)

// class is a named class of characters.
type class uint16

const (
	classAlnum class = 1 << iota
	classAlpha
	classBlank
	classCntrl
	classDigit
	classGraph
	classLower
	classPrint
	classPunct
	classSpace
	classUpper
	classXDigit
	classWord // alnum and the underscore
)

var classNames = map[string]class{
	"alnum": classAlnum, "alpha": classAlpha, "blank": classBlank, "cntrl": classCntrl, "digit": classDigit, "graph": classGraph,
	"lower": classLower, "print": classPrint, "punct": classPunct, "space": classSpace, "upper": classUpper, "xdigit": classXDigit, "word": classWord,
}

// has reports whether r is in one of the classes c.
func (c class) has(r rune) bool {
	letter, digit := unicode.IsLetter(r), r >= '0' && r <= '9'
	alnum := letter || unicode.IsDigit(r)
	space := unicode.IsSpace(r) && r != 0x85 && r != 0xA0 && r != 0x2007 && r != 0x202F
	graph := unicode.IsGraphic(r) && !unicode.IsSpace(r)
	for bit := classAlnum; bit <= classWord; bit <<= 1 {
		if c&bit == 0 {
			continue
		}
		var in bool
		switch bit {
		case classAlnum:
			in = alnum
		case classAlpha:
			in = letter || (alnum && !digit)
		case classBlank:
			in = r == ' ' || r == '\t'
		case classCntrl:
			in = unicode.IsControl(r)
		case classDigit:
			in = digit
		case classGraph:
			in = graph
		case classLower:
			in = unicode.IsLower(r)
		case classPrint:
			in = graph || r == ' '
		case classPunct:
			in = graph && !alnum
		case classSpace:
			in = space
		case classUpper:
			in = unicode.IsUpper(r)
		case classXDigit:
			in = digit || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F'
		case classWord:
			in = alnum || r == '_'
		}
		if in {
			return true
		}
	}
	return false
}

// charset is a set of characters.
type charset struct {
	ranges   []rune // pairs, sorted once the set is finished
	classes  class
	excluded class // classes whose complements are in the set
	negated  bool
	noNL     bool // a newline is never in it
	fold     bool // letter case is ignored
	ascii    [128]bool
}

// finish makes the set ready for use.
func (s *charset) finish() *charset {
	var pairs [][2]rune
	for i := 0; i < len(s.ranges); i += 2 {
		pairs = append(pairs, [2]rune{s.ranges[i], s.ranges[i+1]})
	}
	slices.SortFunc(pairs, func(a, b [2]rune) int { return int(a[0]) - int(b[0]) })
	s.ranges = s.ranges[:0:0]
	for _, p := range pairs {
		if n := len(s.ranges); n > 0 && p[0] <= s.ranges[n-1]+1 {
			s.ranges[n-1] = max(s.ranges[n-1], p[1])
		} else {
			s.ranges = append(s.ranges, p[0], p[1])
		}
	}
	for r := range s.ascii {
		s.ascii[r] = s.slow(rune(r))
	}
	return s
}

func (s *charset) has(r rune) bool {
	if r >= 0 && int(r) < len(s.ascii) {
		return s.ascii[r]
	}
	return s.slow(r)
}

func (s *charset) slow(r rune) bool {
	if s.noNL && r == '\n' {
		return false
	}
	in := s.plain(r)
	if !in && s.fold {
		in = s.plain(unicode.ToLower(r)) || s.plain(unicode.ToUpper(r))
	}
	return in != s.negated
}

func (s *charset) plain(r rune) bool {
	lo, hi := 0, len(s.ranges)/2
	for lo < hi {
		m := (lo + hi) / 2
		switch {
		case r < s.ranges[2*m]:
			hi = m
		case r > s.ranges[2*m+1]:
			lo = m + 1
		default:
			return true
		}
	}
	if s.classes != 0 && s.classes.has(r) {
		return true
	}
	for bit := classAlnum; s.excluded != 0 && bit <= classWord; bit <<= 1 {
		if s.excluded&bit != 0 && !bit.has(r) {
			return true
		}
	}
	return false
}

// one is the only character of the set, if it is a plain set of one.
func (s *charset) one() (rune, bool) {
	if len(s.ranges) == 2 && s.ranges[0] == s.ranges[1] && s.classes|s.excluded == 0 && !s.negated && !s.fold && !s.noNL {
		return s.ranges[0], true
	}
	return 0, false
}

func isWord(r rune) bool { return classWord.has(r) }
