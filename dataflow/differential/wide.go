package differential

// A function whose rows see as far as their values say (a frame by RANGE) is
// computed for the blocks with rows that see a change:
//
//	context │ core: see the change ┆ changed ┆ see it │ context
//
// How many blocks that are is found by trying: the core grows while its first
// row sees forwards to the changed blocks, or its last one back to them, and the
// context while what a core row sees may go on beyond it. Each try doubles.

// wideCore is the blocks of a try.
type wideCore struct {
	lo, hi        int // the core
	before, after int // blocks of context
}

// wide collects the difference in output.
func (u *pass) wide() {
	nb := len(u.x.blocks)
	done := 0 // blocks that are output
	for b := 0; b < nb; b++ {
		if !u.x.blocks[b].dirty || b < done {
			continue
		}
		w := wideCore{lo: b, hi: b + 1}
		for more := true; more; {
			u.readWide(&w)
			more = u.grow(&w, done)
		}
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
	u.cuts = append(u.cuts[:0], cuts[w.lo-from:w.hi-from+1]...)
	for i := range u.n.refs {
		u.n.refs[i].core = i >= u.cuts[0] && i < u.cuts[len(u.cuts)-1]
	}
}

// grow makes a core larger, if its rows see more than is there, or rows beyond it
// see a change; it may not go back to blocks that are done. It reports false if
// the core is as it should be.
func (u *pass) grow(w *wideCore, done int) bool {
	nb := len(u.x.blocks)
	var cutBefore, cutAfter, forth, back bool
	first, last := w.lo, w.hi-1 // dirty blocks
	for first < last && !u.x.blocks[first].dirty {
		first++
	}
	for last > first && !u.x.blocks[last].dirty {
		last--
	}
	for _, now := range []bool{false, true} {
		s := &Sight{}
		u.piece(now, Piece{Sight: s})
		cuts := u.rowCuts(now)
		if cuts[0] == cuts[len(cuts)-1] {
			s.From, s.To = 0, 1<<62 // it tells nothing: look further
		}
		cutBefore, cutAfter = cutBefore || s.CutBefore, cutAfter || s.CutAfter
		forth = forth || s.From < cuts[last+1-w.lo]
		back = back || s.To > cuts[first-w.lo]
	}
	more := false
	if size := w.hi - w.lo; forth && w.hi < nb {
		w.hi, more = min(w.hi+size, nb), true
	}
	if size := w.hi - w.lo; back && w.lo > done {
		w.lo, more = max(w.lo-size, done), true
	}
	if cutBefore && w.lo-w.before > 0 {
		w.before, more = 2*w.before+1, true
	}
	if cutAfter && w.hi+w.after < nb {
		w.after, more = 2*w.after+1, true
	}
	return more
}
