package regex

// instruction codes.
type code uint8

const (
	codeSet code = iota
	codeSplit
	codeAssert
	codeLook
	codeMatch
)

type inst struct {
	code     code
	out, alt int32
	set      *charset
	n        int // kind of an assertion or lookaround
	look     *prog
}

// prog is a nondeterministic automaton.
type prog struct {
	id    int
	insts []inst
	start int32
	// first says which ASCII characters a match can begin with; any: it may be
	// empty, or begin with another character.
	first [128]bool
	any   bool
}

// progMaker compiles syntax trees.
type progMaker struct {
	p      *prog
	groups []*node // syntax trees of the captures, for back references
	free   bool    // constraints do not count
	total  *int    // number of instructions in all programs of a pattern
	nprogs *int
}

// compile makes the program of n, nil if it is too large.
func (c *progMaker) compile(n *node) *prog {
	c.p = &prog{id: *c.nprogs}
	*c.nprogs++
	match := c.add(inst{code: codeMatch})
	c.p.start = c.node(n, match)
	if *c.total > maxStates {
		return nil
	}
	c.p.findFirst(c.p.start, make([]bool, len(c.p.insts)))
	return c.p
}

func (c *progMaker) add(i inst) int32 {
	*c.total++
	if *c.total > maxStates {
		return 0
	}
	c.p.insts = append(c.p.insts, i)
	return int32(len(c.p.insts) - 1)
}

// node compiles n so that it goes on at next; it returns the start.
func (c *progMaker) node(n *node, next int32) int32 {
	if *c.total > maxStates {
		return 0
	}
	switch n.kind {
	case kindSet:
		return c.add(inst{code: codeSet, set: n.set, out: next})
	case kindCat:
		for i := len(n.sub) - 1; i >= 0; i-- {
			next = c.node(n.sub[i], next)
		}
	case kindAlt:
		start := c.node(n.sub[len(n.sub)-1], next)
		for i := len(n.sub) - 2; i >= 0; i-- {
			start = c.add(inst{code: codeSplit, out: c.node(n.sub[i], next), alt: start})
		}
		return start
	case kindGroup:
		return c.node(n.sub[0], next)
	case kindRepeat:
		return c.repeat(n, next)
	case kindBackref:
		free := c.free
		c.free = true
		next = c.node(c.groups[n.n], next)
		c.free = free
	case kindAssert:
		if !c.free {
			return c.add(inst{code: codeAssert, n: n.n, out: next})
		}
	case kindLook:
		if !c.free {
			sub := progMaker{groups: c.groups, total: c.total, nprogs: c.nprogs}
			return c.add(inst{code: codeLook, n: n.n, look: sub.compile(n.sub[0]), out: next})
		}
	}
	return next
}

func (c *progMaker) repeat(n *node, next int32) int32 {
	if n.max == dupInf {
		// The loop comes after the copies that are needed.
		loop := c.add(inst{code: codeSplit, alt: next})
		body := c.node(n.sub[0], loop)
		if *c.total <= maxStates {
			c.p.insts[loop].out = body
		}
		next = loop
	} else {
		end := next
		for range n.max - n.min {
			next = c.add(inst{code: codeSplit, out: c.node(n.sub[0], next), alt: end})
		}
	}
	for range n.min {
		next = c.node(n.sub[0], next)
	}
	return next
}

// findFirst collects what a match can begin with.
func (p *prog) findFirst(pc int32, seen []bool) {
	if seen[pc] {
		return
	}
	seen[pc] = true
	switch i := &p.insts[pc]; i.code {
	case codeSet:
		for r, in := range i.set.ascii {
			p.first[r] = p.first[r] || in
		}
	case codeSplit:
		p.findFirst(i.out, seen)
		p.findFirst(i.alt, seen)
	case codeMatch:
		p.any = true
	default:
		p.findFirst(i.out, seen)
	}
}
