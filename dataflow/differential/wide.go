package differential

// A function whose rows see as far as their values say (a frame by RANGE) is
// computed for the blocks with rows that see a change:
//
//	context │ core: see the change ┆ changed ┆ see it │ context
//
// How many blocks that are is found by trying: the core grows while its first
// row sees forwards to the first change, or its last one back to the last change,
// and the context while what a core row sees may go on beyond it. Each try
// doubles. At last the core is cut down to the rows that do see a change.

// wideCore is the blocks of a try.
type wideCore struct {
	lo, hi        int // the core
	before, after int // blocks of context
	first, last   int // in refs: the rows of the core that see a change
}

// wide collects the difference in output.
func (u *pass) wide() {
	done := 0 // blocks that are output
	for b := range u.x.blocks {
		if !u.x.blocks[b].dirty || b < done {
			continue
		}
		w := wideCore{lo: b, hi: b + 1, before: 1, after: 1}
		for more := true; more; {
			u.readWide(&w)
			more = u.grow(&w, done)
		}
		u.cuts = append(u.cuts[:0], w.first, w.last)
		u.setCore()
		u.piece(false, Piece{Emit: true})
		u.piece(true, Piece{Emit: true})
		u.flush()
		done = w.hi
	}
}

// readWide reads a core with its context to refs.
func (u *pass) readWide(w *wideCore) {
	from, to := max(w.lo-w.before, 0), min(w.hi+w.after, len(u.x.blocks))
	cuts := u.n.read(u.x, from, to, u.run.Reach, nil)
	u.cuts = append(u.cuts[:0], cuts[w.lo-from], cuts[w.hi-from])
	u.setCore()
}

// setCore makes the rows between the cuts the core.
func (u *pass) setCore() {
	for i := range u.n.refs {
		u.n.refs[i].core = i >= u.cuts[0] && i < u.cuts[1]
	}
}

// changed is the part of refs from the first change to the last.
func (u *pass) changed() (first, last int) {
	first = -1
	for i := range u.n.refs {
		if ref := &u.n.refs[i]; ref.old != ref.new {
			if first < 0 {
				first = i
			}
			last = i + 1
		}
	}
	if first < 0 { // what sees a change by a number of rows is touched, too
		return u.cuts[0], u.cuts[1]
	}
	return first, last
}

// grow makes a core larger, if its rows see more than is there, or rows beyond it
// see a change; it may not go back to blocks that are done. It reports false if
// the core is as it should be.
func (u *pass) grow(w *wideCore, done int) bool {
	var cutBefore, cutAfter, forth, back bool
	first, last := u.changed()
	w.first, w.last = u.cuts[1], u.cuts[0]
	for _, now := range []bool{false, true} {
		rows := u.rowsOf(now, u.cuts[0], u.cuts[1], first, last)
		s := &Sight{Changed: [2]int{rows[2], rows[3]}}
		u.piece(now, Piece{Sight: s})
		if rows[0] == rows[1] {
			forth, back = true, true // it tells nothing: look further
			continue
		}
		cutBefore, cutAfter = cutBefore || s.CutBefore, cutAfter || s.CutAfter
		forth = forth || s.From < rows[3]
		back = back || s.To > rows[2]
		for i, row := u.cuts[0], rows[0]; i < u.cuts[1]; i++ {
			n := 0
			if u.n.refs[i].mult(now) > 0 {
				n = 1
			}
			if n > 0 && row >= s.See[0] && row < s.See[1] {
				w.first, w.last = min(w.first, i), max(w.last, i+1)
			}
			row += n
		}
	}
	w.first, w.last = max(min(w.first, first), u.cuts[0]), min(max(w.last, last), u.cuts[1])
	more, nb := false, len(u.x.blocks)
	if size := w.hi - w.lo; forth && w.hi < nb {
		w.hi, more = min(w.hi+size, nb), true
	}
	if size := w.hi - w.lo; back && w.lo > done {
		w.lo, more = max(w.lo-size, done), true
	}
	if cutBefore && w.lo-w.before > 0 {
		w.before, more = 2*w.before, true
	}
	if cutAfter && w.hi+w.after < nb {
		w.after, more = 2*w.after, true
	}
	return more
}

// rowsOf are places in refs as rows of the group made of them.
func (u *pass) rowsOf(now bool, at ...int) []int {
	out := make([]int, len(at))
	for i := range u.n.refs {
		if u.n.refs[i].mult(now) == 0 {
			continue
		}
		for k, a := range at {
			if i < a {
				out[k]++
			}
		}
	}
	return out
}
