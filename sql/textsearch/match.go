package textsearch

import (
	"bytes"
	"math"
	"slices"
)

// Truth is what is known of a match.
type Truth uint8

// The truths: Maybe is where positions are needed and not known.
const (
	No Truth = iota
	Yes
	Maybe
)

// places are where a part of a query matches: at pos, or everywhere else if it
// is negated. A match of several lexemes is known by its last; width is how
// many come before that.
type places struct {
	pos    []uint16
	negate bool
	width  int
}

// Matcher finds a value of a query in a document. Where positions are wanted,
// it gives them, in order and once each; there are some if it says Yes.
type Matcher interface {
	Find(value *Node, positions bool) (Truth, []uint16)
}

// Execute reports whether a query matches what a matcher finds.
func Execute(q *Node, m Matcher) bool { return execute(q, m) != No }

// Match reports whether a query (nil: empty) matches a document.
func Match(v Vector, q *Node) bool {
	return q != nil && Execute(q, &vectorMatcher{v: v})
}

// execute finds out whether a query matches, where positions do not matter yet.
func execute(n *Node, m Matcher) Truth {
	switch n.Op {
	case OpValue:
		t, _ := m.Find(n, false)
		return t
	case OpNot:
		switch execute(n.Kids[0], m) {
		case No:
			return Yes
		case Yes:
			return No
		}
		return Maybe
	case OpAnd:
		l := execute(n.left(), m)
		if l == No {
			return No
		}
		if r := execute(n.right(), m); r != Yes {
			return r
		}
		return l
	case OpOr:
		l := execute(n.left(), m)
		if l == Yes {
			return Yes
		}
		if r := execute(n.right(), m); r != No {
			return r
		}
		return l
	}
	if t, _ := phrase(n, m); t == Yes {
		return Yes
	}
	return No // also if only positions would tell
}

// phrase finds the places of a query at or below a phrase.
func phrase(n *Node, m Matcher) (Truth, places) {
	switch n.Op {
	case OpValue:
		t, pos := m.Find(n, true)
		return t, places{pos: pos}
	case OpNot:
		t, p := phrase(n.Kids[0], m)
		switch {
		case t == No:
			return Yes, places{negate: true}
		case t == Maybe:
			return Maybe, p
		case len(p.pos) == 0: // it is everywhere
			return No, places{}
		}
		p.negate = !p.negate
		return Yes, p
	}
	lt, l := phrase(n.left(), m)
	if lt == No && n.Op != OpOr {
		return No, places{}
	}
	rt, r := phrase(n.right(), m)
	switch {
	case n.Op != OpOr && rt == No, lt == No && rt == No:
		return No, places{}
	case lt == Maybe || rt == Maybe:
		return Maybe, places{}
	}
	if lt == No {
		l.width = 0
	}
	if rt == No {
		r.width = 0
	}
	return combine(n, l, r)
}

// combine gives the places of a binary operator.
func combine(n *Node, l, r places) (Truth, places) {
	width := max(l.width, r.width)
	lOff, rOff := width-l.width, width-r.width
	if n.Op == OpPhrase {
		width = int(n.Distance) + l.width + r.width
		lOff, rOff = int(n.Distance)+r.width, 0
	}
	const both, left, right = 1, 2, 4
	var emit int
	negate := false
	switch {
	case n.Op == OpOr:
		switch {
		case l.negate && r.negate:
			emit, negate = both, true
		case l.negate:
			emit, negate = left, true
		case r.negate:
			emit, negate = right, true
		default:
			emit = both | left | right
		}
	case l.negate && r.negate:
		emit, negate = both|left|right, true
	case l.negate:
		emit = right
	case r.negate:
		emit = left
	default:
		emit = both
	}
	var out []uint16
	put := func(pos, kind int) {
		if emit&kind != 0 && pos > 0 {
			out = append(out, uint16(pos))
		}
	}
	i, j := 0, 0
	for i < len(l.pos) || j < len(r.pos) {
		lPos, rPos := math.MaxInt, math.MaxInt
		if i < len(l.pos) {
			lPos = Pos(l.pos[i]).At() + lOff
		}
		if j < len(r.pos) {
			rPos = Pos(r.pos[j]).At() + rOff
		}
		switch {
		case lPos < rPos:
			put(lPos, left)
			i++
		case lPos > rPos:
			put(rPos, right)
			j++
		default:
			put(rPos, both)
			i, j = i+1, j+1
		}
	}
	if len(out) == 0 && !negate {
		return No, places{}
	}
	return Yes, places{pos: out, negate: negate, width: width}
}

// vectorMatcher finds values in a vector.
type vectorMatcher struct{ v Vector }

// Find is where the value is.
func (m *vectorMatcher) Find(n *Node, positions bool) (Truth, []uint16) {
	i, found := m.v.Find(n.Word)
	if !n.Prefix {
		if !found {
			return No, nil
		}
		return m.at(i, n, positions, nil)
	}
	var pos []uint16
	t := No
	for ; i < m.v.Len() && bytes.HasPrefix(m.v.Word(i), n.Word); i++ {
		var sub Truth
		if sub, pos = m.at(i, n, positions, pos); sub == Maybe {
			return Maybe, nil
		}
		if sub == Yes && !positions {
			return Yes, nil
		}
	}
	if len(pos) > 0 {
		slices.Sort(pos)
		return Yes, slices.Compact(pos)
	}
	return t, nil
}

// at looks at lexeme i and appends its positions that have a weight of the
// value. A lexeme without positions has any weight.
func (m *vectorMatcher) at(i int, n *Node, positions bool, pos []uint16) (Truth, []uint16) {
	count := m.v.PosCount(i)
	switch {
	case count == 0 && positions:
		return Maybe, pos
	case count == 0, !positions && n.Weights == 0:
		return Yes, pos
	}
	t := No
	for k := range count {
		p := m.v.Pos(i, k)
		if n.Weights == 0 || n.Weights&(1<<p.Weight()) != 0 {
			if t = Yes; !positions {
				return t, pos
			}
			pos = append(pos, uint16(p.At()))
		}
	}
	return t, pos
}

// values appends the values under a node.
func (n *Node) values(dst []*Node) []*Node {
	if n == nil {
		return dst
	}
	if n.Op == OpValue {
		return append(dst, n)
	}
	for _, k := range n.Kids {
		dst = k.values(dst)
	}
	return dst
}

// Values are the values of a query, in the order of its stored form.
func Values(q *Node) []*Node { return q.values(nil) }

// distinctValues are the values of a query by their lexemes, the first of each.
func distinctValues(n *Node) []*Node {
	vs := n.values(nil)
	slices.SortStableFunc(vs, func(a, b *Node) int { return bytes.Compare(a.Word, b.Word) })
	return slices.CompactFunc(vs, func(a, b *Node) bool { return bytes.Equal(a.Word, b.Word) })
}

// Contains reports whether all lexemes of b are in a.
func Contains(a, b Query) bool {
	x, y := distinctValues(a.Tree()), distinctValues(b.Tree())
	i := 0
	for _, v := range y {
		for i < len(x) && bytes.Compare(x[i].Word, v.Word) < 0 {
			i++
		}
		if i == len(x) || !bytes.Equal(x[i].Word, v.Word) {
			return false
		}
	}
	return true
}
