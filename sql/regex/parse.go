package regex

// kind is the kind of a node of the syntax tree.
type kind uint8

const (
	kindEmpty kind = iota
	kindSet
	kindCat
	kindAlt
	kindRepeat // of sub[0], min to max times
	kindGroup  // capture number n of sub[0]; 0: not capturing
	kindBackref
	kindAssert
	kindLook
)

// node is a node of the syntax tree.
type node struct {
	kind     kind
	set      *charset
	sub      []*node
	min, max int
	pref     flags // of a repetition: longer, shorter, or 0 (as the operand)
	n        int   // number of a group or back reference; kind of an assertion
}

// flags are what the matching of a part depends on, as in the engine that
// PostgreSQL uses: its preference, and what makes it more than a regular set.
type flags uint8

const (
	longer  flags = 1 << iota // prefers a long match
	shorter                   // prefers a short match
	mixed                     // has parts of both preferences
	capture                   // contains a capture
	backref                   // contains a back reference

	messy = mixed | capture | backref
	prefs = longer | shorter
)

// up is what of f counts for the enclosing part.
func (f flags) up() flags {
	u := f &^ prefs
	if f&prefs == prefs {
		u |= mixed
	}
	return u
}

// combine joins the flags of parts in sequence: the first that has a
// preference decides it.
func combine(f, g flags) flags {
	p := f & prefs
	if p == 0 {
		p = g & prefs
	}
	return (f | g).up() | p
}

// parser makes the syntax tree.
type parser struct {
	lexer
	depth  int
	groups []*node // by number: what is in it, nil while it is open
	look   int     // depth of lookaround, where nothing is captured
}

// maxDepth bounds nesting.
const maxDepth = 1000

// parse reads a whole pattern.
func parse(pattern []rune, f Flags) (*parser, *node) {
	p := &parser{lexer: lexer{p: pattern, flags: f}, groups: []*node{{}}}
	p.prefixes()
	p.next()
	n := p.alternatives()
	if p.err == nil && p.tok == tokClose {
		p.fail(errParens)
	}
	return p, n
}

// alternatives reads branches up to a closing parenthesis or the end.
func (p *parser) alternatives() *node {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		p.fail(errComplex)
		return &node{kind: kindEmpty}
	}
	branches := []*node{p.branch()}
	for p.tok == tokAlt {
		p.next()
		branches = append(branches, p.branch())
	}
	if len(branches) == 1 {
		return branches[0]
	}
	return &node{kind: kindAlt, sub: branches}
}

func (p *parser) branch() *node {
	var items []*node
	for p.err == nil && p.tok != tokEnd && p.tok != tokAlt && p.tok != tokClose {
		if n := p.item(); n != nil {
			items = append(items, n)
		}
	}
	switch len(items) {
	case 0:
		return &node{kind: kindEmpty}
	case 1:
		return items[0]
	}
	return &node{kind: kindCat, sub: items}
}

// item reads an atom with its quantifier, or a constraint.
func (p *parser) item() *node {
	var atom *node
	switch p.tok {
	case tokQuant:
		p.fail(errOperand)
		return nil
	case tokAssert:
		n := &node{kind: kindAssert, n: p.assertion()}
		p.next()
		return n
	case tokLook:
		n := &node{kind: kindLook, n: p.val}
		p.look++
		n.sub = []*node{p.group()}
		p.look--
		return n
	case tokOpen:
		atom = &node{kind: kindGroup}
		if p.val == 1 && p.look == 0 {
			p.nsub++
			atom.n = p.nsub
			p.groups = append(p.groups, nil)
		}
		atom.sub = []*node{p.group()}
		p.groups[atom.n] = atom.sub[0]
	case tokBackref:
		if p.look > 0 || p.val >= len(p.groups) || p.groups[p.val] == nil {
			p.fail(errBackref)
			return nil
		}
		atom = &node{kind: kindBackref, n: p.val}
		p.next()
	default:
		atom = &node{kind: kindSet, set: p.charset()}
		p.next()
	}
	if p.tok != tokQuant || p.err != nil {
		return atom
	}
	r := &node{kind: kindRepeat, sub: []*node{atom}, min: p.min, max: p.max}
	switch p.val {
	case 0:
		r.pref = shorter
	case 1:
		r.pref = longer
	}
	p.next()
	if r.max == 0 { // nothing of it is left
		return &node{kind: kindEmpty}
	}
	return r
}

// group reads alternatives and the parenthesis that closes them.
func (p *parser) group() *node {
	p.next()
	n := p.alternatives()
	if p.err == nil && p.tok != tokClose {
		p.fail(errParens)
	}
	if p.err == nil {
		p.next()
	}
	return n
}

// assertion is the kind of the current one, by the flags.
func (p *parser) assertion() int {
	if p.flags&NLAnchor == 0 {
		switch p.val {
		case assertBOL:
			return assertBegin
		case assertEOL:
			return assertEnd
		}
	}
	return p.val
}

// charset is the set of the current token.
func (p *parser) charset() *charset {
	switch p.tok {
	case tokAny:
		s := &charset{negated: true, noNL: p.flags&NLStop != 0}
		return s.finish()
	case tokClass, tokBracket:
		return p.set.finish()
	}
	s := &charset{ranges: []rune{p.r, p.r}, fold: p.flags&ICase != 0}
	return s.finish()
}
