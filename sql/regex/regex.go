// Package regex is PostgreSQL's regular expressions (PostgreSQL manual, section
// 9.7.3): advanced and extended POSIX syntax with back references, lookaround,
// and greedy and non-greedy quantifiers, with the rules of Henry Spencer's
// engine for what matches: the leftmost match, long or short as the pattern
// prefers, divided among the groups from left to right by their preferences.
//
// Where a pattern means the same to Go's regexp package, that is used: it takes
// time linear in the text. Everything else is matched here.
package regex

import (
	"bytes"
	"regexp"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Regexp is a compiled pattern. It is safe for concurrent use.
type Regexp struct {
	nsub  int
	flags Flags
	tree  *part
	// literal is the text that alone matches, if there is one; anchored says
	// that it must stand at the start.
	literal  []byte
	isPlain  bool
	anchored bool
	simple   *simple // nil if the pattern is not simple
	// goAny tells whether there is a match, goLong finds the leftmost longest
	// one; nil if Go cannot. goGroups says that its groups are right, too.
	goAny, goLong *regexp.Regexp
	goGroups      bool
	goRestart     bool // it may be started within a text
	pool          sync.Pool
}

// Compile compiles a pattern. Errors are *pgerror.Error with code 2201B.
func Compile(pattern []byte, f Flags) (*Regexp, error) {
	p, n := parse(bytes.Runes(pattern), f)
	if p.err != nil {
		return nil, p.err
	}
	re := &Regexp{nsub: p.nsub, flags: p.flags, tree: makeTree(n)}
	total, nprogs := 0, 0
	if !re.compileTree(re.tree, &progMaker{groups: p.groups, total: &total, nprogs: &nprogs}) {
		return nil, errComplex
	}
	re.findLiteral(n)
	if re.tree.flags&shorter == 0 && isSimple(n) {
		re.simple = makeSimple(n)
	}
	re.translate(n)
	re.pool.New = func() any {
		return &matcher{re: re, caps: make([]int32, 2*re.nsub+2), fold: re.flags&ICase != 0}
	}
	return re, nil
}

func (re *Regexp) compileTree(t *part, c *progMaker) bool {
	if t.prog = c.compile(t.ast); t.prog == nil {
		return false
	}
	for _, s := range t.sub {
		if !re.compileTree(s, c) {
			return false
		}
	}
	return true
}

// findLiteral notes that the pattern is a plain text.
func (re *Regexp) findLiteral(n *node) {
	items := []*node{n}
	if n.kind == kindCat {
		items = n.sub
	}
	if len(items) > 0 && items[0].kind == kindAssert && items[0].n == assertBegin {
		re.anchored = true
		items = items[1:]
	}
	var lit []byte
	for _, i := range items {
		if i.kind != kindSet {
			return
		}
		r, ok := i.set.one()
		if !ok {
			return
		}
		lit = utf8.AppendRune(lit, r)
	}
	re.literal, re.isPlain = lit, re.nsub == 0
}

// NumSubexp is the number of capturing groups.
func (re *Regexp) NumSubexp() int { return re.nsub }

// Match reports whether s contains a match.
func (re *Regexp) Match(s []byte) bool {
	switch {
	case re.isPlain && re.anchored:
		return bytes.HasPrefix(s, re.literal)
	case re.isPlain:
		return bytes.Contains(s, re.literal)
	}
	if re.simple != nil {
		var caps [2]int
		r := simpleRun{p: re.simple, s: s, caps: caps[:], steps: re.steps(s)}
		if ok, done := r.find(0); done {
			return ok
		}
	}
	switch {
	case re.goAny != nil:
		return re.goAny.Match(s)
	}
	m := re.matcher(s)
	defer re.release(m)
	return m.find(0, false)
}

// Find looks for the leftmost match of s that starts at byte `from` or later.
// It appends to dst the byte offsets of its start and end, and, if groups is
// set, those of all groups, -1 for those that took no part. ok is false if
// there is no match.
func (re *Regexp) Find(dst []int, s []byte, from int, groups bool) (loc []int, ok bool) {
	if re.isPlain {
		return re.findPlain(dst, s, from)
	}
	groups = groups && re.nsub > 0
	if re.simple != nil {
		if loc, ok, done := re.findSimple(dst, s, from, groups); done {
			return loc, ok
		}
	}
	if re.goLong != nil && (!groups || re.goGroups) && (from == 0 || re.goRestart) {
		var l []int
		if groups {
			l = re.goLong.FindSubmatchIndex(s[from:])
		} else {
			l = re.goLong.FindIndex(s[from:])
		}
		for _, i := range l {
			if i >= 0 {
				i += from
			}
			dst = append(dst, i)
		}
		return dst, l != nil
	}
	m := re.matcher(s)
	defer re.release(m)
	at := m.runeAt(s, from)
	if !m.find(at, groups) {
		return dst, false
	}
	n := 2
	if groups {
		n = len(m.caps)
	}
	return m.offsets(dst, s, n), true
}

// steps is how long trying may take for a simple pattern.
func (re *Regexp) steps(s []byte) int { return 1000 + 40*len(s) }

func (re *Regexp) findSimple(dst []int, s []byte, from int, groups bool) (loc []int, ok, done bool) {
	n := 2
	if groups {
		n += 2 * re.nsub
	}
	l := len(dst)
	for range n {
		dst = append(dst, -1)
	}
	r := simpleRun{p: re.simple, s: s, caps: dst[l:], steps: re.steps(s)}
	if ok, done = r.find(from); !ok {
		dst = dst[:l]
	}
	return dst, ok, done
}

func (re *Regexp) findPlain(dst []int, s []byte, from int) ([]int, bool) {
	i := 0
	if re.anchored {
		if from > 0 || !bytes.HasPrefix(s, re.literal) {
			return dst, false
		}
	} else if i = bytes.Index(s[from:], re.literal); i < 0 {
		return dst, false
	}
	return append(dst, from+i, from+i+len(re.literal)), true
}

func (re *Regexp) matcher(s []byte) *matcher {
	m := re.pool.Get().(*matcher)
	m.text = m.text[:0]
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			m.text = append(m.text, rune(s[i]))
			i++
			continue
		}
		r, w := utf8.DecodeRune(s[i:])
		m.text = append(m.text, r)
		i += w
	}
	m.ends, m.looks = nil, map[uint64]bool{}
	return m
}

func (re *Regexp) release(m *matcher) {
	m.ends, m.looks, m.all = nil, nil, nil
	re.pool.Put(m)
}

// runeAt is the number of the character at a byte offset.
func (m *matcher) runeAt(s []byte, offset int) int {
	if len(m.text) == len(s) {
		return offset
	}
	return utf8.RuneCount(s[:offset])
}

// offsets appends the first n captures as byte offsets.
func (m *matcher) offsets(dst []int, s []byte, n int) []int {
	for _, c := range m.caps[:n] {
		if c < 0 || len(m.text) == len(s) {
			dst = append(dst, int(c))
			continue
		}
		off := 0
		for _, r := range m.text[:c] {
			off += utf8.RuneLen(r)
		}
		dst = append(dst, off)
	}
	return dst
}

func foldEqual(a, b rune) bool {
	return unicode.ToLower(a) == unicode.ToLower(b) || unicode.ToUpper(a) == unicode.ToUpper(b)
}
