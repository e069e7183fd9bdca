package regex

import (
	"github.com/streamdb/streamdb/sql/pgerror"
)

// Flags change the meaning of a pattern.
type Flags uint8

// The flags.
const (
	ICase    Flags = 1 << iota // ignore letter case
	NLStop                     // . and negated brackets do not match newlines
	NLAnchor                   // ^ and $ match at newlines, too
	Expanded                   // white space and comments in the pattern count for nothing
	Quote                      // the pattern is a literal string
	Extended                   // POSIX extended syntax, without PostgreSQL's additions
	Basic                      // POSIX basic syntax
)

// tokens of a pattern.
type token uint8

const (
	tokEnd token = iota
	tokChar
	tokAny
	tokAlt
	tokOpen    // val 0: not capturing
	tokLook    // lookaround: val is its kind
	tokClose   // )
	tokQuant   // * + ? {m,n}: min, max, val: 1 greedy, 0 not, 2 neither
	tokBracket // a set
	tokClass   // \d, \w, \s and complements: a set
	tokBackref // val: number
	tokAssert  // val: kind
)

// assertions.
const (
	assertBOL       = iota + 1 // ^
	assertEOL                  // $
	assertBegin                // \A
	assertEnd                  // \Z
	assertWordStart            // \m
	assertWordEnd              // \M
	assertWord                 // \y
	assertNotWord              // \Y
)

const (
	lookAhead = iota
	lookNotAhead
	lookBehind
	lookNotBehind
)

// dupMax is the greatest count of a repetition; dupInf is no limit.
const (
	dupMax = 255
	dupInf = dupMax + 1
)

// maxPattern bounds what a pattern may expand to.
const maxStates = 20000

func errRegex(what string) *pgerror.Error {
	return pgerror.New(pgerror.InvalidRegularExpression, "invalid regular expression: %s", what)
}

var (
	errEscape   = errRegex(`invalid escape \ sequence`)
	errParens   = errRegex("parentheses () not balanced")
	errBrackets = errRegex("brackets [] not balanced")
	errBraces   = errRegex("braces {} not balanced")
	errCount    = errRegex("invalid repetition count(s)")
	errRange    = errRegex("invalid character range")
	errOperand  = errRegex("quantifier operand invalid")
	errBackref  = errRegex("invalid backreference number")
	errClass    = errRegex("invalid character class")
	errCollate  = errRegex("invalid collating element")
	errOption   = errRegex("invalid embedded option")
	errPattern  = errRegex("invalid regexp (reg version 0.8)")
	errComplex  = errRegex("regular expression is too complex")
)

// lexer splits a pattern into tokens. tok is the current one.
type lexer struct {
	p     []rune
	i     int
	flags Flags
	nsub  int // captures opened so far, for \12
	err   *pgerror.Error

	tok      token
	last     token // the one before; tokEnd at the start
	val      int
	r        rune
	min, max int
	set      *charset
}

func (l *lexer) fail(e *pgerror.Error) {
	if l.err == nil {
		l.err = e
	}
	l.tok, l.i = tokEnd, len(l.p)
}

func (l *lexer) advanced() bool { return l.flags&(Extended|Basic) == 0 }

func (l *lexer) at(k int) rune {
	if l.i+k < len(l.p) {
		return l.p[l.i+k]
	}
	return -1
}

// skip passes over what expanded syntax ignores, and (?#…) comments.
func (l *lexer) skip() {
	for l.i < len(l.p) {
		c := l.p[l.i]
		switch {
		case l.flags&Expanded != 0 && (c == ' ' || c >= '\t' && c <= '\r'):
			l.i++
		case l.flags&Expanded != 0 && c == '#':
			for l.i < len(l.p) && l.p[l.i] != '\n' {
				l.i++
			}
		case l.advanced() && c == '(' && l.at(1) == '?' && l.at(2) == '#':
			for l.i < len(l.p) && l.p[l.i] != ')' {
				l.i++
			}
			l.i = min(len(l.p), l.i+1)
		default:
			return
		}
	}
}

// prefixes reads what may stand before the pattern: ***: and ***=, and options.
func (l *lexer) prefixes() {
	if l.flags&Quote != 0 {
		return
	}
	if len(l.p) >= 4 && string(l.p[:3]) == "***" {
		switch l.at(3) {
		case '=':
			l.flags = (l.flags | Quote) &^ (Expanded | NLStop | NLAnchor)
			l.i += 4
			return
		case ':':
			l.flags &^= Basic | Extended
			l.i += 4
		case '?':
			l.fail(errPattern)
			return
		default:
			l.fail(errOperand)
			return
		}
	}
	if !l.advanced() {
		return
	}
	if l.at(0) != '(' || l.at(1) != '?' || !isAlpha(l.at(2)) {
		return
	}
	l.i += 2
	for ; l.i < len(l.p) && isAlpha(l.p[l.i]); l.i++ {
		if !l.option(l.p[l.i]) {
			l.fail(errOption)
			return
		}
	}
	if l.at(0) != ')' {
		l.fail(errOption)
		return
	}
	l.i++
	if l.flags&Quote != 0 {
		l.flags &^= Expanded | NLStop | NLAnchor
	}
}

func isAlpha(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }
func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// option applies one embedded option.
func (l *lexer) option(c rune) bool {
	switch c {
	case 'b':
		l.flags |= Basic
	case 'c':
		l.flags &^= ICase
	case 'e':
		l.flags = l.flags&^Quote | Extended
	case 'i':
		l.flags |= ICase
	case 'm', 'n':
		l.flags |= NLStop | NLAnchor
	case 'p':
		l.flags = l.flags&^NLAnchor | NLStop
	case 'q':
		l.flags |= Quote
	case 's':
		l.flags &^= NLStop | NLAnchor
	case 't':
		l.flags &^= Expanded
	case 'w':
		l.flags = l.flags&^NLStop | NLAnchor
	case 'x':
		l.flags |= Expanded
	default:
		return false
	}
	return true
}

// next reads the next token.
func (l *lexer) next() {
	if l.flags&Quote != 0 {
		if l.i == len(l.p) {
			l.tok = tokEnd
			return
		}
		l.tok, l.r = tokChar, l.p[l.i]
		l.i++
		return
	}
	l.skip()
	if l.i == len(l.p) {
		l.tok = tokEnd
		return
	}
	c := l.p[l.i]
	l.i++
	l.last = l.tok
	l.tok, l.r, l.val = tokChar, c, 0
	if l.flags&Basic != 0 {
		l.basic(c)
		return
	}
	switch c {
	case '|':
		l.tok = tokAlt
	case '*':
		l.quantifier(0, dupInf)
	case '+':
		l.quantifier(1, dupInf)
	case '?':
		l.quantifier(0, 1)
	case '{':
		if l.flags&Expanded != 0 {
			l.skip()
		}
		if isDigit(l.at(0)) {
			l.bound()
		}
	case '(':
		l.open()
	case ')':
		l.tok = tokClose
	case '[':
		l.bracket()
	case '.':
		l.tok = tokAny
	case '^':
		l.tok, l.val = tokAssert, assertBOL
	case '$':
		l.tok, l.val = tokAssert, assertEOL
	case '\\':
		l.escape()
	}
}

func (l *lexer) quantifier(min, max int) {
	l.tok, l.min, l.max, l.val = tokQuant, min, max, 1
	if l.advanced() && l.at(0) == '?' {
		l.i++
		l.val = 0
	}
}

// basic reads a token of basic syntax, whose first character is c.
func (l *lexer) basic(c rune) {
	first := l.last == tokEnd || l.last == tokOpen
	switch c {
	case '*':
		if !first && !(l.last == tokAssert && l.i == 2) {
			l.tok, l.min, l.max, l.val = tokQuant, 0, dupInf, 1
		}
	case '[':
		l.bracket()
	case '.':
		l.tok = tokAny
	case '^':
		if first {
			l.tok, l.val = tokAssert, assertBOL
		}
	case '$':
		if l.i == len(l.p) || l.at(0) == '\\' && l.at(1) == ')' {
			l.tok, l.val = tokAssert, assertEOL
		}
	case '\\':
		if l.i == len(l.p) {
			l.fail(errEscape)
			return
		}
		l.r = l.p[l.i]
		l.i++
		switch c := l.r; {
		case c == '{':
			l.bound()
		case c == '(':
			l.tok, l.val = tokOpen, 1
		case c == ')':
			l.tok = tokClose
		case c == '<':
			l.tok, l.val = tokAssert, assertWordStart
		case c == '>':
			l.tok, l.val = tokAssert, assertWordEnd
		case c >= '1' && c <= '9':
			l.tok, l.val = tokBackref, int(c-'0')
		}
	}
}

// bound reads m}, m,} or m,n} after a brace; in basic syntax the brace at the
// end has a backslash before it.
func (l *lexer) bound() {
	number := func() (n int, ok bool) {
		for isDigit(l.at(0)) && n <= dupMax {
			n = n*10 + int(l.at(0)-'0')
			l.i++
		}
		return n, n <= dupMax
	}
	lo, ok := number()
	if !ok {
		l.fail(errCount)
		return
	}
	hi, comma := lo, false
	if l.at(0) == ',' {
		l.i++
		comma, hi = true, dupInf
		if isDigit(l.at(0)) {
			if hi, ok = number(); !ok {
				l.fail(errCount)
				return
			}
		}
	}
	if l.flags&Basic != 0 && l.at(0) == '\\' && l.at(1) == '}' {
		l.i++
	}
	switch l.at(0) {
	case '}':
		l.i++
	case -1:
		l.fail(errBraces)
		return
	default:
		l.fail(errCount)
		return
	}
	if lo > hi {
		l.fail(errCount)
		return
	}
	l.quantifier(lo, hi)
	if !comma {
		l.val = 2 // {m} has the preference of its operand
	}
}

func (l *lexer) open() {
	l.tok, l.val = tokOpen, 1
	if !l.advanced() || l.at(0) != '?' {
		return
	}
	l.i += 2
	switch l.at(-1) {
	case ':':
		l.val = 0
		return
	case '=':
		l.tok, l.val = tokLook, lookAhead
		return
	case '!':
		l.tok, l.val = tokLook, lookNotAhead
		return
	case '<':
		l.i++
		switch l.at(-1) {
		case '=':
			l.tok, l.val = tokLook, lookBehind
			return
		case '!':
			l.tok, l.val = tokLook, lookNotBehind
			return
		}
	}
	l.fail(errOperand)
}

// digits reads up to most digits of a base, at least `least`.
func (l *lexer) digits(base rune, least, most int) (v rune, ok bool) {
	n := 0
	for ; n < most; n++ {
		d := hexValue(l.at(0))
		if d < 0 || d >= base {
			break
		}
		if v = v*base + d; v > 0x7ffffffe/base {
			v = 0x7ffffffe / base
		}
		l.i++
	}
	return v, n >= least
}

func hexValue(r rune) rune {
	switch {
	case isDigit(r):
		return r - '0'
	case r >= 'a' && r <= 'f':
		return r - 'a' + 10
	case r >= 'A' && r <= 'F':
		return r - 'A' + 10
	}
	return -1
}

var charEscapes = map[rune]rune{'a': 7, 'b': 8, 'B': '\\', 'e': 27, 'f': 12, 'n': 10, 'r': 13, 't': 9, 'v': 11}

var assertEscapes = map[rune]int{'A': assertBegin, 'm': assertWordStart, 'M': assertWordEnd, 'y': assertWord, 'Y': assertNotWord, 'Z': assertEnd}

var classEscapes = map[rune]class{'d': classDigit, 's': classSpace, 'w': classWord}

// escape reads what follows a backslash.
func (l *lexer) escape() {
	if l.i == len(l.p) {
		l.fail(errEscape)
		return
	}
	c := l.p[l.i]
	l.i++
	l.tok, l.r = tokChar, c
	if !l.advanced() || !(isAlpha(c) || isDigit(c)) {
		return
	}
	if r, ok := charEscapes[c]; ok {
		l.r = r
		return
	}
	if a, ok := assertEscapes[c]; ok {
		l.tok, l.val = tokAssert, a
		return
	}
	if k, ok := classEscapes[c|0x20]; ok {
		l.tok, l.set = tokClass, &charset{classes: k}
		if c < 'a' {
			l.set = &charset{excluded: k}
		}
		return
	}
	l.numberEscape(c)
}

// numberEscape reads the escapes that take digits or a control character.
func (l *lexer) numberEscape(c rune) {
	ok := true
	switch c {
	case 'c':
		if l.i == len(l.p) {
			l.fail(errEscape)
			return
		}
		l.r = l.p[l.i] & 0o37
		l.i++
	case 'u':
		l.r, ok = l.digits(16, 4, 4)
	case 'U':
		l.r, ok = l.digits(16, 8, 8)
	case 'x':
		l.r, ok = l.digits(16, 1, 255)
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		save := l.i
		l.i--
		n, _ := l.digits(10, 1, 255)
		if l.i == save || int(n) <= l.nsub {
			l.tok, l.val = tokBackref, int(n)
			return
		}
		l.i = save // not a back reference after all
		l.octal()
	case '0':
		l.octal()
	default:
		ok = false
	}
	if !ok {
		l.fail(errEscape)
	}
}

// octal reads up to three octal digits, the first of which has been passed.
func (l *lexer) octal() {
	l.i--
	v, ok := l.digits(8, 1, 3)
	if !ok {
		l.fail(errEscape)
		return
	}
	if v > 0xff {
		l.i--
		v >>= 3
	}
	l.r = v
}
