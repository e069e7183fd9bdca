package regex

// op says how a part of the match tree is divided.
type op uint8

const (
	opWhole   op = iota // not at all
	opConcat            // sub[0], then sub[1]
	opAlt               // the first of sub that fits
	opIter              // sub[0], min to max times
	opBackref           // the text of group back, min to max times
	opWrap              // sub[0], which is a capture itself
)

// part is a node of the match tree: it tells which parts of a matched text are
// whose. Parts without captures, back references or mixed preferences are not
// divided; they are the larger the better.
//
// The tree has the shape that Henry Spencer's engine gives it, because the
// shape decides which of several divisions is found: a branch is cut into the
// part before its first messy atom, that atom, and the rest, which is cut in
// the same way.
type part struct {
	op       op
	flags    flags
	group    int // number of the capture, 0 for none
	min, max int
	back     int
	sub      []*part
	ast      *node // what it matches as a regular set
	prog     *prog
}

func cat(nodes []*node) *node {
	switch len(nodes) {
	case 0:
		return &node{kind: kindEmpty}
	case 1:
		return nodes[0]
	}
	return &node{kind: kindCat, sub: nodes}
}

// makeTree makes the match tree of a syntax tree.
func makeTree(n *node) *part {
	switch n.kind {
	case kindAlt:
		return makeAlternatives(n)
	case kindCat:
		return makeBranch(n.sub)
	case kindEmpty:
		return &part{ast: n}
	}
	return makeBranch([]*node{n})
}

func makeAlternatives(n *node) *part {
	p := &part{op: opAlt, flags: longer, ast: n}
	for _, b := range n.sub {
		c := makeTree(b)
		p.sub = append(p.sub, c)
		p.flags |= (p.flags | c.flags).up()
	}
	if p.flags&messy == 0 {
		p.op, p.sub = opWhole, nil
	}
	return p
}

// quantified takes an item apart: its atom and how often.
func quantified(n *node) (atom *node, min, max int, pref flags) {
	if n.kind == kindRepeat {
		return n.sub[0], n.min, n.max, n.pref
	}
	return n, 1, 1, 0
}

func makeBranch(items []*node) *part {
	var f flags
	for i, n := range items {
		if n.kind == kindAssert || n.kind == kindLook || n.kind == kindEmpty {
			continue
		}
		atom, min, max, pref := quantified(n)
		a := makeAtom(atom)
		all := f | pref | a.flags
		if all.up()&messy == 0 {
			f = all
			continue
		}
		q := makeRepeat(a, atom, n, min, max, pref)
		p := q
		if i+1 < len(items) {
			rest := makeBranch(items[i+1:])
			p = &part{op: opConcat, flags: combine(pref, a.flags), sub: []*part{q, rest}, ast: cat(items[i:])}
			p.flags |= combine(p.flags, rest.flags)
		}
		if i == 0 {
			return p
		}
		prefix := &part{flags: f, ast: cat(items[:i])}
		top := &part{op: opConcat, flags: f, sub: []*part{prefix, p}, ast: cat(items)}
		top.flags |= combine(f, p.flags)
		return top
	}
	return &part{flags: f, ast: cat(items)}
}

// makeAtom makes the tree of an atom.
func makeAtom(n *node) *part {
	switch n.kind {
	case kindBackref:
		return &part{op: opBackref, flags: backref, back: n.n, min: 1, max: 1, ast: n}
	case kindGroup:
		p := makeTree(n.sub[0])
		if n.n == 0 {
			return p
		}
		if p.group != 0 {
			p = &part{op: opWrap, flags: p.flags, sub: []*part{p}, ast: p.ast}
		} else {
			c := *p
			p = &c
		}
		p.group = n.n
		p.flags |= capture
		return p
	}
	return &part{ast: n}
}

// makeRepeat applies a quantifier to the tree a of an atom; n is the whole item.
func makeRepeat(a *part, atom, n *node, min, max int, pref flags) *part {
	own := a.flags & (prefs | mixed)
	switch {
	case atom.kind == kindBackref:
		a.min, a.max, a.ast = min, max, n
		a.flags |= combine(pref, a.flags)
		return a
	case min == 1 && max == 1 && (pref == 0 || own == 0 || pref == own):
		return a
	case a.flags&(capture|backref) == 0:
		return &part{flags: combine(pref, a.flags), ast: n}
	case min > 0 && a.flags&backref == 0:
		// Only the last iteration's captures count.
		f := combine(pref, a.flags)
		lead := &node{kind: kindEmpty}
		if max != 1 {
			lead = &node{kind: kindRepeat, sub: []*node{a.ast}, min: min - 1, max: max - 1}
			if max == dupInf {
				lead.max = dupInf
			}
		}
		return &part{op: opConcat, flags: f, sub: []*part{{flags: f & prefs, ast: lead}, a}, ast: n}
	}
	return &part{op: opIter, flags: combine(pref, a.flags), min: min, max: max, sub: []*part{a}, ast: n}
}
