package differential

import (
	"slices"
	"sort"

	"github.com/streamdb/streamdb/columnar"
)

// A function whose rows see as far as their values say (a frame by RANGE) tells
// which rows each row sees: see Sight. What a row sees begins and ends no earlier
// than what the row before it does, so the rows that see a change are one run, and
// its ends are found by bisection in what the function has told. The rows around a
// change are read outwards from it, twice as many each time, until
//
//	the first row sees nothing of the change, nor does the last one,
//	the rows that do see it see no further than what was read,
//
// before the step and after it. The cost is that of the rows which see the change,
// and of those which they see.

// sightRows is how many rows are read at first, to each side of a change.
const sightRows = 16

// surroundings is the rows read around a change.
type surroundings struct {
	u                 *pass
	back, forth       []rowRef // from the change outwards
	allBack, allForth bool     // there are no more
	see               [2]int   // in refs: the rows that see a change, and the changes
	state             [2]sighted
}

// sighted is what the function has told of one state.
type sighted struct {
	sight Sight
	rows  []int // for each of refs, and their end: the existing rows in front of it
}

// around reads what matters to the change in a row, into refs.
func (s *surroundings) around(run, row int) {
	n := s.u.n
	n.seek(run, row)
	s.back, s.forth, s.allBack, s.allForth = s.back[:0], s.forth[:0], false, false
	before, after := sightRows, sightRows
	for {
		for ; !s.allBack && len(s.back) < before; s.allBack = !s.read(false) {
		}
		for ; !s.allForth && len(s.forth) < after; s.allForth = !s.read(true) {
		}
		n.refs = append(n.refs[:0], s.back...)
		slices.Reverse(n.refs)
		n.refs = append(n.refs, s.forth...)
		moreBack, moreForth := s.look()
		moreBack, moreForth = moreBack && !s.allBack, moreForth && !s.allForth
		if !moreBack && !moreForth {
			return
		}
		if moreBack {
			before *= 2
		}
		if moreForth {
			after *= 2
		}
	}
}

// read reads one row more.
func (s *surroundings) read(forward bool) bool {
	ref, _, ok := s.u.n.step(forward)
	switch {
	case !ok:
	case forward:
		s.forth = append(s.forth, ref)
	default:
		s.back = append(s.back, ref)
	}
	return ok
}

// look finds the rows that see a change, and reports whether rows beyond those
// read may matter, too. Changes in front of the one begun with are done.
func (s *surroundings) look() (moreBack, moreForth bool) {
	u := s.u
	first, last := u.changed(len(s.back))
	s.see = [2]int{first, last}
	if first == last {
		return false, false // a copy of a row that is not there has gone
	}
	for k := range s.state {
		st := &s.state[k]
		u.tell(st, k == 1)
		lo, hi := st.rows[first], st.rows[last]
		n := len(st.sight.To)
		from := sort.Search(n, func(i int) bool { return st.sight.To[i] > lo })
		to := sort.Search(n, func(i int) bool { return st.sight.From[i] >= hi })
		if from < to {
			s.see[0] = min(s.see[0], st.ref(from))
			s.see[1] = max(s.see[1], st.ref(to-1)+1)
		}
		moreBack = moreBack || from == 0
		moreForth = moreForth || to == n
	}
	for k := range s.state {
		st := &s.state[k]
		if lo, hi := st.rows[s.see[0]], st.rows[s.see[1]]; lo < hi {
			moreBack = moreBack || st.sight.From[lo] == 0
			moreForth = moreForth || st.sight.To[hi-1] == len(st.sight.To)
		}
	}
	return moreBack, moreForth
}

// ref is the place in refs of a row.
func (st *sighted) ref(row int) int {
	at, _ := slices.BinarySearch(st.rows, row+1)
	return at - 1
}

// tell asks what the rows in refs see.
func (u *pass) tell(st *sighted, now bool) {
	st.rows = st.rows[:0]
	n := 0
	for i := range u.n.refs {
		st.rows = append(st.rows, n)
		if u.n.refs[i].mult(now) > 0 {
			n++
		}
	}
	st.rows = append(st.rows, n)
	st.sight = Sight{}
	cuts := u.cuts
	u.cuts = []int{0, len(u.n.refs)}
	u.piece(now, Piece{Sight: &st.sight})
	u.cuts = cuts
}

// read reads blocks as the core of a piece, with all that they see.
func (u *pass) read(b, e int) {
	u.cuts = u.n.read(u.x, b, e, u.reach, u.cuts[:0])
	if !u.run.Wide {
		return
	}
	var state [2]sighted
	before, behind := -1, -1 // rows of context that were too few
	for {
		lo, hi := u.cuts[0], u.cuts[len(u.cuts)-1]
		var moreBack, moreForth bool
		for k := range state {
			st := &state[k]
			u.tell(st, k == 1)
			if from, to := st.rows[lo], st.rows[hi]; from < to {
				moreBack = moreBack || st.sight.From[from] == 0
				moreForth = moreForth || st.sight.To[to-1] == len(st.sight.To)
			}
		}
		context := len(u.n.refs) - hi
		moreBack, moreForth = moreBack && lo != before, moreForth && context != behind
		if !moreBack && !moreForth {
			return
		}
		if moreBack {
			before, u.reach.Before = lo, 2*u.reach.Before
		}
		if moreForth {
			behind, u.reach.After = context, 2*u.reach.After
		}
		u.cuts = u.n.read(u.x, b, e, u.reach, u.cuts[:0])
	}
}

// mark marks the blocks with rows that see the changes.
func (u *pass) mark() {
	s := surroundings{u: u}
	run := len(u.n.runs) - 1
	for row := u.n.runs[run].lo; row < u.n.runs[run].hi; row = u.n.runs[run].next {
		s.around(run, row)
		if s.see[0] == s.see[1] {
			continue
		}
		first, last := &u.n.refs[s.see[0]], &u.n.refs[s.see[1]-1]
		for b := u.n.block(u.x, first.run, first.row); b <= u.n.block(u.x, last.run, last.row); b++ {
			u.x.blocks[b].dirty = true
		}
	}
}

// changed is the part of refs from the first change to the last, from a row on.
func (u *pass) changed(from int) (first, last int) {
	first, last = from, from
	for i := from; i < len(u.n.refs); i++ {
		if ref := &u.n.refs[i]; ref.old != ref.new {
			if first == last {
				first = i
			}
			last = i + 1
		}
	}
	return first, last
}

// wide computes the rows that see the changes of one group; false if the group
// should be computed whole.
func (g *groupMap) wide(n *nearby, p int, keys []*columnar.Vec, i int, hash uint64, out *Emitter) bool {
	delta := g.in.Delta(p).Batches
	if len(delta) != 1 {
		return false
	}
	rows, changes := n.open(g.in.Old(p).Batches, delta, keys, i, hash)
	if rows <= g.small || changes == 0 || changes > manyChanges && changes*8 > rows {
		return false
	}
	u := &pass{n: n, run: g.running, named: g.named, kinds: g.kinds}
	s := surroundings{u: u}
	run := len(n.runs) - 1 // the changes come last
	for row := n.runs[run].lo; row < n.runs[run].hi; row = n.runs[run].next {
		s.around(run, row)
		if s.see[0] == s.see[1] {
			continue
		}
		for i := range n.refs {
			n.refs[i].core = i >= s.see[0] && i < s.see[1]
		}
		u.cuts = append(u.cuts[:0], s.see[:]...)
		u.piece(false, Piece{Emit: true})
		u.piece(true, Piece{Emit: true})
		u.flush()
	}
	u.emit(out)
	return true
}
