// Package config turns texts into documents and queries of text search: the
// default parser, the dictionaries, the configurations that put them together,
// and headlines (PostgreSQL manual, chapter 12).
package config

import (
	_ "embed" // the states of the parser
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/streamdb/streamdb/sql/textsearch"
)

// TokenType is what kind of token the parser has found.
type TokenType uint8

// The types that are treated in a special way.
const (
	tokASCIIWord  TokenType = 1
	tokWord       TokenType = 2
	tokURL        TokenType = 5
	tokHost       TokenType = 6
	tokSFloat     TokenType = 7
	tokVersion    TokenType = 8
	tokPart       TokenType = 10
	tokASCIIPart  TokenType = 11
	tokBlank      TokenType = 12
	tokTag        TokenType = 13
	tokProtocol   TokenType = 14
	tokNumHWord   TokenType = 15
	tokASCIIHWord TokenType = 16
	tokHWord      TokenType = 17
	tokURLPath    TokenType = 18
	tokFloat      TokenType = 20
	tokInt        TokenType = 21
	tokUInt       TokenType = 22
	tokEntity     TokenType = 23
)

// TokenTypes are the types' names and descriptions; the first one is 1.
var TokenTypes = [...]struct{ Alias, Description string }{
	{"asciiword", "Word, all ASCII"}, {"word", "Word, all letters"}, {"numword", "Word, letters and digits"},
	{"email", "Email address"}, {"url", "URL"}, {"host", "Host"}, {"sfloat", "Scientific notation"}, {"version", "Version number"},
	{"hword_numpart", "Hyphenated word part, letters and digits"}, {"hword_part", "Hyphenated word part, all letters"},
	{"hword_asciipart", "Hyphenated word part, all ASCII"}, {"blank", "Space symbols"}, {"tag", "XML tag"}, {"protocol", "Protocol head"},
	{"numhword", "Hyphenated word, letters and digits"}, {"asciihword", "Hyphenated word, all ASCII"}, {"hword", "Hyphenated word, all letters"},
	{"url_path", "URL path"}, {"file", "File or path name"}, {"float", "Decimal notation"}, {"int", "Signed integer"},
	{"uint", "Unsigned integer"}, {"entity", "XML entity"},
}

// tests are what a rule may be for, besides a character.
type test uint8

const (
	isChar test = iota
	isEOF
	isAny
	isASCII // a letter of ASCII
	isAlpha
	isAlnum
	isNotAlnum
	isDigit
	isXDigit
	isSpace
	isMark
	isURLChar
	isIgnored  // within a script or style
	isStopHost // a host is wanted, this is its end
	isHost     // a host follows
	isURLPath  // a path follows
)

var testNames = map[string]test{
	"eof": isEOF, "any": isAny, "ascii": isASCII, "alpha": isAlpha, "alnum": isAlnum, "notalnum": isNotAlnum, "digit": isDigit,
	"xdigit": isXDigit, "space": isSpace, "mark": isMark, "urlchar": isURLChar, "ignored": isIgnored, "stophost": isStopHost,
	"host": isHost, "urlpath": isURLPath,
}

// action is what a rule does, as bits.
type action uint8

const (
	doPush action = 1 << iota
	doPop
	doFound
	doClear
	doClearAll
	doRerun
	doMerge
)

// special is what a rule does besides.
type special uint8

const (
	_             special = iota
	specialTag            // a tag's name may start or end a script or style
	specialURL            // go back to find the parts of a URL
	specialBack           // go back to find the parts of a hyphenated word
	specialResume         // go back and forget what has been read
)

var specialNames = map[string]special{"tag": specialTag, "url": specialURL, "back": specialBack, "restart": specialResume}

type rule struct {
	test    test
	char    byte
	do      action
	next    int16 // state, -1: stays
	token   TokenType
	special special
}

//go:embed states.txt
var statesText string

const stateBase = 0

var states = sync.OnceValue(func() *table { return readStates(statesText) })

// table is the parser's table: the rules of all states, one after the other,
// and where each state's start. The last rule of a state is for anything.
type table struct {
	rules        []rule
	start        []int
	urlPathFirst int
}

func readStates(text string) *table {
	var lines [][]string
	index := map[string]int16{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 0 && !(f[0] == "#" && len(f) > 3 && f[1] != "go") {
			if f[0][0] == '[' && len(f[0]) > 1 {
				index[strings.Trim(f[0], "[]")] = int16(len(index))
			}
			lines = append(lines, f)
		}
	}
	t := &table{urlPathFirst: int(index["URLPathFirst"])}
	var last []rule
	for _, f := range lines {
		if f[0][0] == '[' && len(f[0]) > 1 {
			t.rules, last = append(t.rules, last...), nil
			t.start = append(t.start, len(t.rules))
			if len(f) > 1 {
				end := rule{next: -1, do: doPop}
				if name := strings.Trim(f[1], "]"); name != "pop" {
					end = rule{next: stateBase, do: doFound, token: tokenByAlias(name)}
				}
				end.test = isEOF
				t.rules = append(t.rules, end)
				end.test = isAny
				last = []rule{end}
			}
			continue
		}
		t.rules = append(t.rules, readRules(f, index)...)
	}
	t.rules = append(t.rules, last...)
	return t
}

func tokenByAlias(name string) TokenType {
	for i, t := range TokenTypes {
		if t.Alias == name {
			return TokenType(i + 1)
		}
	}
	return 0
}

var actionNames = map[string]action{
	"go": 0, "stop": 0, "push": doPush, "pop": doPop, "found": doFound, "clear": doClear, "clearall": doClearAll, "rerun": doRerun, "merge": doMerge,
}

// readRules reads a line of rules that do the same.
func readRules(f []string, index map[string]int16) []rule {
	n := slices.IndexFunc(f, func(s string) bool { _, ok := actionNames[s]; return ok })
	if n < 1 {
		panic(fmt.Sprintf("config: states.txt: %v", f))
	}
	r := rule{next: -1}
	for _, s := range f[n:] {
		a, isAction := actionNames[s]
		state, isState := index[s]
		sp, isSpecial := specialNames[s]
		tok := tokenByAlias(s)
		switch {
		case isAction:
			r.do |= a
		case tok != 0 && r.do&doFound != 0 && r.token == 0:
			r.token = tok
		case isState:
			r.next = state
		case isSpecial:
			r.special = sp
		default:
			panic(fmt.Sprintf("config: states.txt: %q in %v", s, f))
		}
	}
	var out []rule
	for _, s := range f[:n] {
		one := r
		if len(s) == 1 {
			one.char = s[0]
		} else if one.test = testNames[s]; one.test == isChar {
			panic(fmt.Sprintf("config: states.txt: %q in %v", s, f))
		}
		out = append(out, one)
	}
	return out
}

// position is where the parser is in a text; there is a stack of them.
type position struct {
	at, token, width int // byte offset, bytes of the token so far, of the character here
	state            int
	resume           int // rule to go on with after a pop, 0: the state's first
}

// Parser cuts a text into tokens.
type Parser struct {
	t                 *table
	text              string
	stack             []position
	start             int
	ignored, wantHost bool
}

// NewParser starts with a text.
func NewParser(text string) *Parser {
	p := &Parser{t: states()}
	p.Reset(text)
	return p
}

// Reset starts with another text.
func (p *Parser) Reset(text string) {
	p.text, p.ignored, p.wantHost = text, false, false
	p.stack = append(p.stack[:0], position{state: stateBase})
}

// Next is the next token; its type is 0 at the end.
func (p *Parser) Next() (TokenType, string) {
	pos := &p.stack[len(p.stack)-1]
	if pos.at >= len(p.text) {
		return 0, ""
	}
	p.start = pos.at
	pos.resume = 0
	for {
		pos = &p.stack[len(p.stack)-1]
		pos.width = 0
		if pos.at < len(p.text) {
			_, pos.width = utf8.DecodeRuneInString(p.text[pos.at:])
		}
		i := pos.resume
		if i == 0 {
			i = p.t.start[pos.state]
		}
		pos.resume = 0
		for !p.holds(&p.t.rules[i], pos) {
			i++
		}
		r := &p.t.rules[i]
		p.special(r.special, pos)
		length := pos.token
		if r.do&doFound != 0 {
			pos.token = 0
		}
		pos = p.move(r, i)
		if r.next >= 0 {
			pos.state = int(r.next)
		}
		switch {
		case r.do&doFound != 0:
			return r.token, p.text[p.start : p.start+length]
		case pos.at >= len(p.text) && r.do&doRerun == 0:
			return 0, ""
		case r.do&(doRerun|doPop) == 0:
			pos.at += pos.width
			pos.token += pos.width
		}
	}
}

// move changes the stack as rule i asks; it gives the position on top.
func (p *Parser) move(r *rule, i int) *position {
	n := len(p.stack) - 1
	switch {
	case r.do&doPop != 0:
		p.stack = p.stack[:n]
	case r.do&doPush != 0:
		p.stack[n].resume = i + 1
		top := p.stack[n]
		top.resume = 0
		p.stack = append(p.stack, top)
	case r.do&doClear != 0:
		p.stack[n-1] = p.stack[n]
		p.stack = p.stack[:n]
	case r.do&doClearAll != 0:
		p.stack[0] = p.stack[n]
		p.stack = p.stack[:1]
	case r.do&doMerge != 0:
		top := p.stack[n]
		below := &p.stack[n-1]
		below.at, below.token, below.width = top.at, top.token, top.width
		p.stack = p.stack[:n]
	}
	return &p.stack[len(p.stack)-1]
}

func (p *Parser) special(s special, pos *position) {
	switch s {
	case specialTag:
		switch tag := p.text[p.start : p.start+pos.token]; {
		case strings.EqualFold(tag, "<script"), strings.EqualFold(tag, "<style"):
			p.ignored = true
		case strings.EqualFold(tag, "</script"), strings.EqualFold(tag, "</style"):
			p.ignored = false
		}
	case specialURL:
		p.wantHost = true
		pos.at -= pos.token
	case specialBack:
		pos.at -= pos.token
	case specialResume:
		pos.at -= pos.token
		pos.token = 0
	}
}

// holds reports whether a rule is for what is at a position.
func (p *Parser) holds(r *rule, pos *position) bool {
	var c byte
	if pos.width == 1 {
		c = p.text[pos.at]
	}
	switch r.test {
	case isChar:
		return pos.width == 1 && c == r.char
	case isEOF:
		return pos.width == 0
	case isAny:
		return true
	case isASCII:
		return c|0x20 >= 'a' && c|0x20 <= 'z'
	case isAlpha:
		return textsearch.IsAlpha(p.rune(pos))
	case isAlnum:
		return c >= '0' && c <= '9' || textsearch.IsAlpha(p.rune(pos))
	case isNotAlnum:
		return !(c >= '0' && c <= '9' || textsearch.IsAlpha(p.rune(pos)))
	case isDigit:
		return c >= '0' && c <= '9'
	case isXDigit:
		return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
	case isSpace:
		return pos.width > 0 && textsearch.IsSpace(p.text[pos.at:])
	case isMark:
		return textsearch.IsMark(p.rune(pos))
	case isURLChar:
		return c > ' ' && c < 0x7f && strings.IndexByte("\"<>\\^`{|}", c) < 0
	case isIgnored:
		return p.ignored
	case isStopHost:
		was := p.wantHost
		p.wantHost = false
		return was
	case isHost:
		return p.ahead(pos, stateBase, tokHost)
	}
	return p.ahead(pos, p.t.urlPathFirst, tokURLPath)
}

func (p *Parser) rune(pos *position) rune {
	if pos.width == 0 {
		return 0
	}
	r, _ := utf8.DecodeRuneInString(p.text[pos.at:])
	return r
}

// ahead looks whether a token of some type follows, and takes it if so.
func (p *Parser) ahead(pos *position, state int, want TokenType) bool {
	sub := Parser{t: p.t, text: p.text[pos.at:], wantHost: want == tokHost, stack: []position{{state: stateBase}}}
	if state != stateBase {
		sub.stack = append(sub.stack, position{state: state})
	}
	typ, token := sub.Next()
	if typ != want {
		return false
	}
	pos.at += len(token)
	pos.token += len(token)
	pos.width = sub.stack[len(sub.stack)-1].width
	return true
}
