package regex

import (
	"bytes"
	"unicode/utf8"
)

// A simple pattern is matched by trying: alternatives in their order, the
// longest repetitions first. That is right if repetitions are of single
// characters and greedy, and alternatives have fixed lengths, none longer than
// the one before: then what is found first is also the longest, and divided as
// it should be. Most patterns in practice are simple.

type simpleCode uint8

const (
	simpleSet simpleCode = iota // min to max characters of set
	simpleAlt                   // continue at out, or else at alt
	simpleJump
	simpleSave // note the place in capture n
	simpleAssert
	simpleMatch
)

type simpleInst struct {
	code     simpleCode
	set      *charset
	min, max int
	n        int
	out, alt int
	// sure says that giving characters back cannot help: the set shares none
	// with what must come next.
	sure bool
}

// simple is the program of a simple pattern.
type simple struct {
	insts []simpleInst
	// lit is a text that every match contains, at a distance of at most before
	// characters from its start.
	lit    []byte
	before int
	first  [256]bool // bytes that a match can begin with
	any    bool      // a match can be empty
	begin  bool      // matches are at the start of the text only
}

// isSimple reports whether n is a simple pattern.
func isSimple(n *node) bool {
	switch n.kind {
	case kindBackref, kindLook:
		return false
	case kindRepeat:
		return n.pref != shorter && n.sub[0].kind == kindSet
	case kindAlt:
		last := -1
		for _, s := range n.sub {
			w, fixed := width(s)
			if !fixed || (last >= 0 && w > last) {
				return false
			}
			last = w
		}
	}
	for _, s := range n.sub {
		if !isSimple(s) {
			return false
		}
	}
	return true
}

// makeSimple compiles a simple pattern.
func makeSimple(n *node) *simple {
	p := &simple{}
	p.node(n)
	p.add(simpleInst{code: simpleMatch})
	for i := range p.insts {
		if in := &p.insts[i]; in.code == simpleSet && in.min != in.max {
			in.sure = p.disjoint(i+1, in.set)
		}
	}
	p.findFirst(0)
	p.findLiteral(n)
	k := 0
	for p.insts[k].code == simpleSave {
		k++
	}
	p.begin = p.insts[k].code == simpleAssert && p.insts[k].n == assertBegin
	return p
}

func (p *simple) add(i simpleInst) int {
	p.insts = append(p.insts, i)
	return len(p.insts) - 1
}

func (p *simple) node(n *node) {
	switch n.kind {
	case kindSet:
		p.add(simpleInst{code: simpleSet, set: n.set, min: 1, max: 1})
	case kindRepeat:
		p.add(simpleInst{code: simpleSet, set: n.sub[0].set, min: n.min, max: n.max})
	case kindAssert:
		p.add(simpleInst{code: simpleAssert, n: n.n})
	case kindGroup:
		if n.n > 0 {
			p.add(simpleInst{code: simpleSave, n: 2 * n.n})
		}
		p.node(n.sub[0])
		if n.n > 0 {
			p.add(simpleInst{code: simpleSave, n: 2*n.n + 1})
		}
	case kindCat:
		for _, s := range n.sub {
			p.node(s)
		}
	case kindAlt:
		var jumps []int
		for i, s := range n.sub {
			if i == len(n.sub)-1 {
				p.node(s)
				break
			}
			at := p.add(simpleInst{code: simpleAlt, out: len(p.insts) + 1})
			p.node(s)
			jumps = append(jumps, p.add(simpleInst{code: simpleJump}))
			p.insts[at].alt = len(p.insts)
		}
		for _, j := range jumps {
			p.insts[j].out = len(p.insts)
		}
	}
}

// disjoint reports whether what must come at pc has no character of s, so far
// as ASCII tells; other characters count as shared.
func (p *simple) disjoint(pc int, s *charset) bool {
	for {
		switch in := &p.insts[pc]; in.code {
		case simpleSave:
			pc++
		case simpleJump:
			pc = in.out
		case simpleMatch:
			return true
		case simpleAssert:
			return in.n == assertEnd
		case simpleSet:
			if in.min == 0 {
				return false
			}
			for r, b := range in.set.ascii {
				if b && s.ascii[r] {
					return false
				}
			}
			return !in.set.beyond() || !s.beyond()
		default:
			return false
		}
	}
}

// beyond reports whether the set may have characters beyond ASCII.
func (s *charset) beyond() bool {
	if s.negated || s.classes != 0 || s.excluded != 0 || s.fold {
		return true
	}
	return len(s.ranges) > 0 && s.ranges[len(s.ranges)-1] >= utf8.RuneSelf
}

func (p *simple) findFirst(pc int) {
	switch in := &p.insts[pc]; in.code {
	case simpleSet:
		for r, b := range in.set.ascii {
			p.first[r] = p.first[r] || b
		}
		if in.set.beyond() {
			for b := utf8.RuneSelf; b < 256; b++ {
				p.first[b] = true
			}
		}
		if in.min == 0 {
			p.findFirst(pc + 1)
		}
	case simpleAlt:
		p.findFirst(in.out)
		p.findFirst(in.alt)
	case simpleJump:
		p.findFirst(in.out)
	case simpleMatch:
		p.any = true
	default:
		p.findFirst(pc + 1)
	}
}

// findLiteral looks for the longest literal behind items of bounded length.
func (p *simple) findLiteral(n *node) {
	before, lit := 0, []byte(nil)
	flush := func() {
		if len(lit) > len(p.lit) {
			p.lit, p.before = append([]byte(nil), lit...), before
		}
		before += utf8.RuneCount(lit)
		lit = lit[:0]
	}
	var walk func(n *node) bool
	walk = func(n *node) bool {
		if n.kind == kindSet {
			if r, ok := n.set.one(); ok {
				lit = utf8.AppendRune(lit, r)
				return true
			}
		}
		if n.kind == kindCat || n.kind == kindGroup {
			for _, s := range n.sub {
				if !walk(s) {
					return false
				}
			}
			return true
		}
		flush()
		w, ok := maxWidth(n)
		before += w
		return ok
	}
	walk(n)
	flush()
	if len(p.lit) < 2 {
		p.lit = nil
	}
}

// maxWidth is the greatest number of characters that n matches, if it is bounded.
func maxWidth(n *node) (int, bool) {
	switch n.kind {
	case kindSet:
		return 1, true
	case kindRepeat:
		return n.max, n.max != dupInf
	case kindAlt:
		return width(n.sub[0])
	}
	w := 0
	for _, s := range n.sub {
		v, ok := maxWidth(s)
		if !ok {
			return 0, false
		}
		w += v
	}
	return w, true
}

// simpleRun is one search.
type simpleRun struct {
	p     *simple
	s     []byte
	caps  []int
	steps int
}

// find looks for the leftmost match from a place on. done is false if the
// search takes too long this way.
func (r *simpleRun) find(from int) (ok, done bool) {
	p := r.p
	if p.begin && from > 0 {
		return false, true
	}
	seen := -1 // the first occurrence of the literal at or behind at
	for at := from; at <= len(r.s); at++ {
		if p.lit != nil {
			if seen < at {
				k := bytes.Index(r.s[at:], p.lit)
				if k < 0 {
					return false, true
				}
				seen = at + k
			}
			// A match that contains it starts not far before it.
			at = max(at, seen-utf8.UTFMax*p.before)
		}
		if !p.any && (at == len(r.s) || !p.first[r.s[at]]) {
			continue
		}
		if at < len(r.s) && !utf8.RuneStart(r.s[at]) {
			continue
		}
		end, ok := r.match(0, at)
		if r.steps < 0 {
			return false, false
		}
		if ok {
			r.caps[0], r.caps[1] = at, end
			return true, true
		}
		if p.begin {
			break
		}
	}
	return false, true
}

// match runs the program from pc at place i.
func (r *simpleRun) match(pc, i int) (end int, ok bool) {
	for {
		if r.steps--; r.steps < 0 {
			return 0, false
		}
		switch in := &r.p.insts[pc]; in.code {
		case simpleMatch:
			return i, true
		case simpleJump:
			pc = in.out
			continue
		case simpleSave:
			if in.n >= len(r.caps) { // captures are not wanted
				break
			}
			old := r.caps[in.n]
			r.caps[in.n] = i
			if end, ok = r.match(pc+1, i); !ok {
				r.caps[in.n] = old
			}
			return end, ok
		case simpleAssert:
			if !assertBytes(r.s, in.n, i) {
				return 0, false
			}
		case simpleAlt:
			if end, ok = r.match(in.out, i); ok {
				return end, ok
			}
			pc = in.alt
			continue
		case simpleSet:
			j, n := i, 0
			for n < in.max || in.max == dupInf {
				w := setAt(in.set, r.s, j)
				if w == 0 {
					break
				}
				j += w
				n++
			}
			if n < in.min {
				return 0, false
			}
			if n == in.min || in.sure {
				i = j
				break
			}
			for ; n > in.min; n-- {
				if end, ok = r.match(pc+1, j); ok || r.steps < 0 {
					return end, ok
				}
				_, w := utf8.DecodeLastRune(r.s[:j])
				j -= w
			}
			i = j
		}
		pc++
	}
}

// setAt is the length of the character at i if the set has it, 0 if not.
func setAt(set *charset, s []byte, i int) int {
	if i >= len(s) {
		return 0
	}
	if c := s[i]; c < utf8.RuneSelf {
		if set.ascii[c] {
			return 1
		}
		return 0
	}
	c, w := utf8.DecodeRune(s[i:])
	if set.slow(c) {
		return w
	}
	return 0
}

// assertBytes is matcher.assert on bytes.
func assertBytes(s []byte, kind, i int) bool {
	switch kind {
	case assertBegin:
		return i == 0
	case assertEnd:
		return i == len(s)
	case assertBOL:
		return i == 0 || s[i-1] == '\n'
	case assertEOL:
		return i == len(s) || s[i] == '\n'
	}
	before, after := false, false
	if i > 0 {
		c, _ := utf8.DecodeLastRune(s[:i])
		before = isWord(c)
	}
	if i < len(s) {
		c, _ := utf8.DecodeRune(s[i:])
		after = isWord(c)
	}
	switch kind {
	case assertWordStart:
		return !before && after
	case assertWordEnd:
		return before && !after
	case assertWord:
		return before != after
	}
	return before == after
}
