package regex

// matcher matches one text.
type matcher struct {
	re   *Regexp
	text []rune
	caps []int32 // start and end by group, in characters; -1: not set
	fold bool

	ends  map[uint64][]int32 // by program and start: where matches can end
	looks map[uint64]bool    // by program, place and kind
	all   []int32
	until int // the end of what is being divided
	lists [2]stateList
}

// stateList is a set of states in order of insertion.
type stateList struct {
	dense  []int32
	sparse []int32
}

func (s *stateList) reset(n int) {
	if len(s.sparse) < n {
		s.sparse = make([]int32, n)
	}
	s.dense = s.dense[:0]
}

func (s *stateList) add(pc int32) bool {
	if i := s.sparse[pc]; int(i) < len(s.dense) && s.dense[i] == pc {
		return false
	}
	s.sparse[pc] = int32(len(s.dense))
	s.dense = append(s.dense, pc)
	return true
}

// closure adds pc and what is reached from it without a character.
func (m *matcher) closure(p *prog, l *stateList, pc int32, at int) {
	for l.add(pc) {
		i := &p.insts[pc]
		switch i.code {
		case codeSplit:
			m.closure(p, l, i.out, at)
			pc = i.alt
			continue
		case codeAssert:
			if m.assert(i.n, at) {
				pc = i.out
				continue
			}
		case codeLook:
			if m.look(i, at) {
				pc = i.out
				continue
			}
		}
		return
	}
}

func (m *matcher) wordAt(i int) bool { return i >= 0 && i < len(m.text) && isWord(m.text[i]) }

func (m *matcher) assert(kind, at int) bool {
	switch kind {
	case assertBegin:
		return at == 0
	case assertEnd:
		return at == len(m.text)
	case assertBOL:
		return at == 0 || m.text[at-1] == '\n'
	case assertEOL:
		return at == len(m.text) || m.text[at] == '\n'
	}
	before, after := m.wordAt(at-1), m.wordAt(at)
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

// look evaluates lookaround at a place.
func (m *matcher) look(i *inst, at int) bool {
	key := uint64(i.look.id)<<32 | uint64(at)
	found, ok := m.looks[key]
	if !ok {
		sub := matcher{re: m.re, text: m.text, fold: m.fold, looks: m.looks}
		if i.n == lookAhead || i.n == lookNotAhead {
			found = sub.run(i.look, at, len(m.text), stopFirst) >= 0
		} else {
			for from := at; from >= 0 && !found; from-- {
				sub.until = at
				found = sub.run(i.look, from, at, stopAtLimit) == at
			}
		}
		m.looks[key] = found
	}
	return found == (i.n == lookAhead || i.n == lookBehind)
}

// what run is to find.
type stopMode uint8

const (
	stopLast    stopMode = iota // the last end
	stopFirst                   // the first end
	stopAtLimit                 // an end at the limit
	stopNever                   // all ends, in m.all
)

// run follows p from a place up to limit and returns where the match ends, -1
// if there is none.
func (m *matcher) run(p *prog, from, limit int, mode stopMode) int {
	cur, next := &m.lists[0], &m.lists[1]
	cur.reset(len(p.insts))
	m.closure(p, cur, p.start, from)
	last := -1
	for at := from; ; at++ {
		for _, pc := range cur.dense {
			if p.insts[pc].code != codeMatch {
				continue
			}
			switch mode {
			case stopFirst:
				return at
			case stopAtLimit:
				if at == limit {
					return at
				}
			case stopNever:
				m.all = append(m.all, int32(at))
			}
			last = at
			break
		}
		if at >= limit || len(cur.dense) == 0 {
			break
		}
		r := m.text[at]
		next.reset(len(p.insts))
		for _, pc := range cur.dense {
			if i := &p.insts[pc]; i.code == codeSet && i.set.has(r) {
				m.closure(p, next, i.out, at+1)
			}
		}
		cur, next = next, cur
	}
	if mode == stopAtLimit {
		return -1
	}
	return last
}

// allEnds lists where matches of p from a place can end, ascending.
func (m *matcher) allEnds(p *prog, from int) []int32 {
	key := uint64(p.id)<<32 | uint64(from)
	if e, ok := m.ends[key]; ok {
		return e
	}
	m.all = nil
	m.run(p, from, m.until, stopNever)
	m.ends[key] = m.all
	return m.all
}

// longest is the last end in [from, limit], -1 if there is none.
func (m *matcher) longest(p *prog, from, limit int) int {
	e := m.allEnds(p, from)
	for k := len(e) - 1; k >= 0; k-- {
		if int(e[k]) <= limit {
			return int(e[k])
		}
	}
	return -1
}

// shortest is the first end in [least, limit], -1 if there is none.
func (m *matcher) shortest(p *prog, from, least, limit int) int {
	for _, e := range m.allEnds(p, from) {
		if int(e) >= least {
			if int(e) > limit {
				break
			}
			return int(e)
		}
	}
	return -1
}

// find looks for the leftmost match from a place on; withGroups says that its
// captures are wanted.
func (m *matcher) find(from int, withGroups bool) bool {
	tree := m.re.tree
	p := tree.prog
	short := tree.flags&shorter != 0
	verify := tree.flags&backref != 0
	for at := from; at <= len(m.text); at++ {
		if !p.any && (at == len(m.text) || m.text[at] < 128 && !p.first[m.text[at]]) {
			continue
		}
		if !verify {
			mode := stopLast
			if short {
				mode = stopFirst
			}
			if end := m.run(p, at, len(m.text), mode); end >= 0 {
				return m.settle(at, end, withGroups)
			}
			continue
		}
		if m.findVerified(at, short) {
			return true
		}
	}
	return false
}

// settle notes the match and divides it among the groups.
func (m *matcher) settle(at, end int, withGroups bool) bool {
	for k := range m.caps {
		m.caps[k] = -1
	}
	m.caps[0], m.caps[1] = int32(at), int32(end)
	if withGroups && len(m.caps) > 2 {
		m.begin(end)
		m.dissect(m.re.tree, at, end)
	}
	return true
}

// begin prepares for dividing text up to a place.
func (m *matcher) begin(until int) {
	if m.until != until || m.ends == nil {
		m.ends = map[uint64][]int32{}
	}
	m.until = until
}

// findVerified tries the ends of matches from a place, since with back
// references the automaton allows too much.
func (m *matcher) findVerified(at int, short bool) bool {
	m.begin(len(m.text))
	p := m.re.tree.prog
	end := -1
	for {
		switch {
		case short && end < 0:
			end = m.shortest(p, at, at, len(m.text))
		case short:
			end = m.shortest(p, at, end+1, len(m.text))
		case end < 0:
			end = m.longest(p, at, len(m.text))
		default:
			end = m.longest(p, at, end-1)
		}
		if end < 0 {
			return false
		}
		for k := range m.caps {
			m.caps[k] = -1
		}
		if m.dissect(m.re.tree, at, end) {
			m.caps[0], m.caps[1] = int32(at), int32(end)
			return true
		}
		if !short && end == at {
			return false
		}
	}
}

// clear forgets the captures within t.
func (m *matcher) clear(t *part) {
	if t.group > 0 {
		m.caps[2*t.group], m.caps[2*t.group+1] = -1, -1
	}
	for _, s := range t.sub {
		m.clear(s)
	}
}

// dissect divides [from, to), which t matches as a regular set, among the
// parts of t; false if that cannot be done.
func (m *matcher) dissect(t *part, from, to int) bool {
	ok := true
	switch t.op {
	case opBackref:
		ok = m.backref(t, from, to)
	case opConcat:
		ok = m.concat(t.sub[0], t.sub[1], from, to)
	case opAlt:
		ok = false
		for _, s := range t.sub {
			if m.longest(s.prog, from, to) == to && m.dissect(s, from, to) {
				ok = true
				break
			}
		}
	case opIter:
		ok = m.iterate(t, from, to)
	case opWrap:
		ok = m.dissect(t.sub[0], from, to)
	}
	switch {
	case !ok:
		m.clear(t)
	case t.group > 0:
		m.caps[2*t.group], m.caps[2*t.group+1] = int32(from), int32(to)
	}
	return ok
}

func (m *matcher) concat(left, right *part, from, to int) bool {
	short := left.flags&shorter != 0
	mid := -1
	if short {
		mid = m.shortest(left.prog, from, from, to)
	} else {
		mid = m.longest(left.prog, from, to)
	}
	for mid >= 0 {
		if m.longest(right.prog, mid, to) == to && m.dissect(left, from, mid) && m.dissect(right, mid, to) {
			return true
		}
		if short {
			if mid == to {
				return false
			}
			mid = m.shortest(left.prog, from, mid+1, to)
		} else {
			if mid == from {
				return false
			}
			mid = m.longest(left.prog, from, mid-1)
		}
		m.clear(left)
		m.clear(right)
	}
	return false
}

func (m *matcher) backref(t *part, from, to int) bool {
	s, e := m.caps[2*t.back], m.caps[2*t.back+1]
	if s < 0 {
		return false
	}
	n := int(e - s)
	switch {
	case n == 0:
		return from == to
	case from == to:
		return t.min == 0
	case (to-from)%n != 0:
		return false
	}
	times := (to - from) / n
	if times < t.min || (times > t.max && t.max != dupInf) {
		return false
	}
	for k := from; k < to; k++ {
		a, b := m.text[k], m.text[int(s)+(k-from)%n]
		if a != b && !(m.fold && foldEqual(a, b)) {
			return false
		}
	}
	return true
}
