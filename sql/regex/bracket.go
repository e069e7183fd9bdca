package regex

import "unicode"

// collating are the names of characters in [.name.] that are not themselves.
var collating = map[string]rune{
	"NUL": 0, "SOH": 1, "STX": 2, "ETX": 3, "EOT": 4, "ENQ": 5, "ACK": 6, "BEL": 7, "alert": 7, "BS": 8, "backspace": 8,
	"HT": 9, "tab": 9, "LF": 10, "newline": 10, "VT": 11, "vertical-tab": 11, "FF": 12, "form-feed": 12, "CR": 13, "carriage-return": 13,
	"SO": 14, "SI": 15, "DLE": 16, "DC1": 17, "DC2": 18, "DC3": 19, "DC4": 20, "NAK": 21, "SYN": 22, "ETB": 23, "CAN": 24, "EM": 25,
	"SUB": 26, "ESC": 27, "IS4": 28, "FS": 28, "IS3": 29, "GS": 29, "IS2": 30, "RS": 30, "IS1": 31, "US": 31, "space": ' ',
	"exclamation-mark": '!', "quotation-mark": '"', "number-sign": '#', "dollar-sign": '$', "percent-sign": '%', "ampersand": '&',
	"apostrophe": '\'', "left-parenthesis": '(', "right-parenthesis": ')', "asterisk": '*', "plus-sign": '+', "comma": ',',
	"hyphen": '-', "hyphen-minus": '-', "period": '.', "full-stop": '.', "slash": '/', "solidus": '/', "zero": '0', "one": '1',
	"two": '2', "three": '3', "four": '4', "five": '5', "six": '6', "seven": '7', "eight": '8', "nine": '9', "colon": ':',
	"semicolon": ';', "less-than-sign": '<', "equals-sign": '=', "greater-than-sign": '>', "question-mark": '?', "commercial-at": '@',
	"left-square-bracket": '[', "backslash": '\\', "reverse-solidus": '\\', "right-square-bracket": ']', "circumflex": '^',
	"circumflex-accent": '^', "underscore": '_', "low-line": '_', "grave-accent": '`', "left-brace": '{', "left-curly-bracket": '{',
	"vertical-line": '|', "right-brace": '}', "right-curly-bracket": '}', "tilde": '~', "DEL": 127,
}

// bracket reads a bracket expression, whose opening bracket has been passed.
func (l *lexer) bracket() {
	if len(l.p)-l.i >= 6 && l.at(0) == '[' && l.at(1) == ':' && (l.at(2) == '<' || l.at(2) == '>') &&
		l.at(3) == ':' && l.at(4) == ']' && l.at(5) == ']' {
		l.tok, l.val = tokAssert, assertWordStart
		if l.at(2) == '>' {
			l.val = assertWordEnd
		}
		l.i += 6
		return
	}
	s := &charset{fold: l.flags&ICase != 0}
	if l.at(0) == '^' {
		l.i++
		s.negated = true
		s.noNL = l.flags&NLStop != 0
	}
	for first := true; first || l.at(0) != ']'; first = false {
		if l.i == len(l.p) {
			l.fail(errBrackets)
			return
		}
		if !l.bracketPart(s, first) {
			return
		}
	}
	l.i++
	if s.fold { // a class of letters of one case is one of both
		if s.classes&(classLower|classUpper) != 0 {
			s.classes = s.classes&^(classLower|classUpper) | classLower | classUpper
		}
	}
	l.tok, l.set = tokBracket, s.finish()
}

// bracketPart adds one character, range or class to s.
func (l *lexer) bracketPart(s *charset, first bool) bool {
	lo, done, ok := l.bracketItem(s, first)
	if !ok || done {
		return ok
	}
	hi := lo
	if l.at(0) == '-' && l.at(1) != ']' {
		l.i++
		if l.i == len(l.p) {
			l.fail(errBrackets)
			return false
		}
		if l.at(0) == '-' { // a range may end with a hyphen
			hi = '-'
			l.i++
		} else if hi, done, ok = l.bracketItem(s, false); !ok {
			return false
		} else if done {
			l.fail(errRange)
			return false
		}
	}
	if lo > hi {
		l.fail(errRange)
		return false
	}
	s.ranges = append(s.ranges, lo, hi)
	return true
}

// bracketItem reads a character, or (done) adds a class to s.
func (l *lexer) bracketItem(s *charset, first bool) (r rune, done, ok bool) {
	c := l.p[l.i]
	l.i++
	switch {
	case c == '-' && !first && l.at(0) != ']':
		l.fail(errRange)
		return 0, false, false
	case c == '\\' && l.advanced():
		return l.bracketEscape(s)
	case c == '[' && (l.at(0) == '.' || l.at(0) == '=' || l.at(0) == ':'):
		return l.bracketName(s, l.at(0))
	}
	return c, false, true
}

func (l *lexer) bracketEscape(s *charset) (r rune, done, ok bool) {
	if l.i == len(l.p) {
		l.fail(errEscape)
		return 0, false, false
	}
	l.escape()
	switch {
	case l.err != nil:
		return 0, false, false
	case l.tok == tokChar:
		return l.r, false, true
	case l.tok == tokClass:
		s.classes |= l.set.classes
		s.excluded |= l.set.excluded
		return 0, true, true
	}
	l.fail(errEscape)
	return 0, false, false
}

// bracketName reads [.x.], [=x=] or [:class:] up to its end.
func (l *lexer) bracketName(s *charset, kind rune) (r rune, done, ok bool) {
	l.i++
	from := l.i
	for l.i < len(l.p) && !(l.p[l.i] == kind && l.at(1) == ']') {
		l.i++
	}
	if l.i == len(l.p) {
		l.fail(errBrackets)
		return 0, false, false
	}
	name := l.p[from:l.i]
	l.i += 2
	if kind == ':' {
		k, found := classNames[string(name)]
		if !found {
			l.fail(errClass)
			return 0, false, false
		}
		s.classes |= k
		return 0, true, true
	}
	if len(name) == 1 {
		r = name[0]
	} else if r, found := collating[string(name)]; found {
		return r, kind == '=' && l.addEquivalent(s, r), true
	} else {
		l.fail(errCollate)
		return 0, false, false
	}
	return r, kind == '=' && l.addEquivalent(s, r), true
}

// addEquivalent adds the class of characters equivalent to r: r itself.
func (l *lexer) addEquivalent(s *charset, r rune) bool {
	s.ranges = append(s.ranges, r, r)
	if s.fold {
		s.ranges = append(s.ranges, unicode.ToLower(r), unicode.ToLower(r))
	}
	return true
}
