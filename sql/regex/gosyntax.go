package regex

import (
	"fmt"
	"regexp"
	"strings"
)

// translate finds the Go pattern that matches the same, if there is one. Go
// knows neither back references nor lookaround; its word boundaries are ASCII.
func (re *Regexp) translate(n *node) {
	g := goWriter{ok: true, ordered: true, restart: true}
	g.node(n)
	if !g.ok {
		return
	}
	any, err := regexp.Compile(g.b.String())
	if err != nil { // too large
		return
	}
	re.goAny = any
	if re.tree.flags&shorter == 0 {
		// Which end the leftmost match has is the pattern's preference.
		re.goLong = regexp.MustCompile(g.b.String())
		re.goLong.Longest()
		re.goGroups, re.goRestart = g.ordered && g.groups == re.nsub, g.restart
	}
}

type goWriter struct {
	b  strings.Builder
	ok bool
	// ordered says that trying alternatives and longer repetitions first, from
	// left to right, gives the same groups as PostgreSQL's division does.
	ordered bool
	restart bool // there are no constraints that look back
	groups  int
}

func (g *goWriter) node(n *node) {
	switch n.kind {
	case kindEmpty:
		g.b.WriteString("(?:)")
	case kindSet:
		g.set(n.set)
	case kindCat:
		for _, s := range n.sub {
			g.node(s)
		}
	case kindAlt:
		g.b.WriteString("(?:")
		last := -1
		for i, s := range n.sub {
			if i > 0 {
				g.b.WriteByte('|')
			}
			g.node(s)
			w, fixed := width(s)
			if !fixed || (last >= 0 && w > last) {
				g.ordered = false
			}
			last = w
		}
		g.b.WriteByte(')')
	case kindGroup:
		if n.n == 0 {
			g.b.WriteString("(?:")
		} else {
			g.b.WriteByte('(')
			g.groups++
		}
		g.node(n.sub[0])
		g.b.WriteByte(')')
	case kindRepeat:
		g.repeat(n)
	case kindAssert:
		g.assert(n.n)
	default:
		g.ok = false
	}
}

func (g *goWriter) repeat(n *node) {
	if n.pref == shorter || n.sub[0].kind != kindSet {
		g.ordered = false
	}
	g.b.WriteString("(?:")
	g.node(n.sub[0])
	g.b.WriteByte(')')
	switch {
	case n.max == dupInf:
		fmt.Fprintf(&g.b, "{%d,}", n.min)
	default:
		fmt.Fprintf(&g.b, "{%d,%d}", n.min, n.max)
	}
}

func (g *goWriter) assert(kind int) {
	switch kind {
	case assertBegin:
		g.restart = false
		g.b.WriteString(`\A`)
	case assertEnd:
		g.b.WriteString(`\z`)
	case assertBOL:
		g.restart = false
		g.b.WriteString(`(?m:^)`)
	case assertEOL:
		g.b.WriteString(`(?m:$)`)
	default:
		g.ok = false
	}
}

// width is the number of characters that n matches, if that is always the same.
func width(n *node) (w int, fixed bool) {
	switch n.kind {
	case kindSet:
		return 1, true
	case kindEmpty, kindAssert, kindLook:
		return 0, true
	case kindGroup:
		return width(n.sub[0])
	case kindCat:
		for _, s := range n.sub {
			v, ok := width(s)
			if !ok {
				return 0, false
			}
			w += v
		}
		return w, true
	case kindRepeat:
		v, ok := width(n.sub[0])
		return v * n.min, ok && n.min == n.max
	case kindAlt:
		for i, s := range n.sub {
			v, ok := width(s)
			if !ok || (i > 0 && v != w) {
				return 0, false
			}
			w = v
		}
		return w, true
	}
	return 0, false
}

// goClasses are Go's names of classes; those without one keep a pattern from
// being translated.
var goClasses = map[class]string{
	classAlnum: `\pL\p{Nd}`, classAlpha: `\pL`, classBlank: ` \t`, classDigit: `0-9`, classLower: `\p{Ll}`, classUpper: `\p{Lu}`,
	classXDigit: `0-9a-fA-F`, classWord: `\pL\p{Nd}_`,
	classSpace: `\t-\r \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}`,
}

func (g *goWriter) set(s *charset) {
	if s.excluded != 0 || (s.noNL && !s.negated) {
		g.excludedSet(s)
		return
	}
	if s.negated && len(s.ranges) == 0 && s.classes == 0 { // any character
		if s.noNL {
			g.b.WriteString(`[^\n]`)
		} else {
			g.b.WriteString(`(?s:.)`)
		}
		return
	}
	if s.fold {
		g.b.WriteString("(?i:")
	}
	g.b.WriteByte('[')
	if s.negated {
		g.b.WriteByte('^')
		if s.noNL {
			g.b.WriteString(`\n`)
		}
	}
	for i := 0; i < len(s.ranges); i += 2 {
		lo, hi := s.ranges[i], s.ranges[i+1]
		if hi > 0x10ffff {
			g.ok = false
			return
		}
		fmt.Fprintf(&g.b, `\x{%x}-\x{%x}`, lo, hi)
	}
	g.classes(s.classes)
	g.b.WriteByte(']')
	if s.fold {
		g.b.WriteByte(')')
	}
}

func (g *goWriter) classes(c class) {
	for bit := classAlnum; bit <= classWord; bit <<= 1 {
		if c&bit == 0 {
			continue
		}
		name, ok := goClasses[bit]
		if !ok {
			g.ok = false
			return
		}
		g.b.WriteString(name)
	}
}

// excludedSet writes the complement of a single class: \D and its like.
func (g *goWriter) excludedSet(s *charset) {
	if len(s.ranges) > 0 || s.classes != 0 || s.negated || s.noNL || s.fold {
		g.ok = false
		return
	}
	if _, one := goClasses[s.excluded]; !one {
		g.ok = false
		return
	}
	g.b.WriteString("[^")
	g.classes(s.excluded)
	g.b.WriteByte(']')
}
