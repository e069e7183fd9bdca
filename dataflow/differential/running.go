package differential

import (
	"bytes"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// A running function makes its output row by row, from what is near a row and
// from states that it carries through the group: forwards (a running sum, a
// rank), backwards (a sum of all that follows), or both. The index keeps the
// states in which it comes to each block. A change is then answered from the
// block that it is in:
//
//	state kept │ block with the change │ next block │ …
//	           └→ old and new pass ────┴→ as long as the new state differs
//
// Two passes go forwards from the kept state, one over the rows as they were and
// one as they are, and the difference of their output is emitted. They end where
// the new state equals the one that was kept and no further block is touched:
// from there on nothing differs. If the function also looks backwards, a pass in
// the other direction comes first and finds the blocks whose state from behind
// has changed.

// Running says what a running function needs.
type Running struct {
	// Pieces is the function, on a part of a group.
	Pieces PieceFunc
	// Peers: rows that are equal in the order stay in one piece.
	Peers bool
	// Backward: there are states that come from behind.
	Backward bool
	// Sized: the output depends on the number of places of the whole group.
	Sized bool
	// Wide: a row sees what no number of rows bounds, but the function can tell: see
	// Sight.
	Wide bool
	// Stateless: no states are carried. If Wide, Reach does not matter.
	Stateless bool
	// RowByRow: a piece's output is one row for each place of the core, in their order,
	// unless there are errors.
	RowByRow bool
	// Reach is what a row sees besides, which comes along as context.
	Reach Reach
}

// PieceFunc computes groups piece by piece.
type PieceFunc interface {
	// Piece gives the states at the cuts of a piece: at Cuts[k] what is known from
	// all rows in front of it (k > 0), or, Backward, from all from there on (k less
	// than the last). It emits the output of the core if Emit is set. ok false: a
	// state is impossible, and the group must be computed whole.
	Piece(p *Piece, emit, emitErr func(*dataflow.Delta)) (states [][]byte, ok bool)
}

// Piece is a run of rows of one group.
type Piece struct {
	Groups // one group, or none if there are no rows
	// Before is the state at the beginning of the core, After the state at its end
	// that comes from behind; empty if nothing was passed. Equal states are equal bytes.
	Before, After []byte
	// Size is the number of places of the whole group.
	Size int64
	// Cuts are rows: the core begins at the first, ends at the last.
	Cuts     []int
	Emit     bool
	Backward bool
	// Sight, if not nil, is to be told, and nothing else.
	Sight *Sight
}

// Sight is what the rows of a piece see: row i the rows From[i] to To[i]-1, or
// some of them; more if that is the first or the last row of the piece. Neither
// goes back from one row to the next.
type Sight struct{ From, To []int }

// pieceRows is about how many rows a piece grows to.
const pieceRows = 4096

// pass is a change of one group with an index.
type pass struct {
	n           *nearby
	x           *orderIndex
	run         *Running
	named       func(*Groups) *Groups
	kinds       []columnar.Kind
	size        [2]int64          // places of the group, before and after
	cuts        []int             // in refs
	reach       Reach             // context that pieces were read with
	wasAfter    map[int][]byte    // states from behind that have changed
	oks, errs   []*dataflow.Delta // the output
	poks, perrs []*dataflow.Delta // that of a piece
}

// piece runs the function over the rows in refs, as they were or as they are.
func (u *pass) piece(now bool, p Piece) (states [][]byte, ok bool) {
	g := u.n.group(now)
	p.Groups = *u.named(g)
	p.Cuts = u.rowCuts(now)
	p.Size = u.size[boolWord(now)]
	sign := int64(1)
	if !now {
		sign = -1
	}
	return u.run.Pieces.Piece(&p, collectInto(&u.poks, sign), collectInto(&u.perrs, sign))
}

// rowCuts are the cuts as rows of the group made of refs.
func (u *pass) rowCuts(now bool) []int {
	out := make([]int, len(u.cuts))
	at, k := 0, 0
	for i := range u.n.refs {
		for k < len(u.cuts) && u.cuts[k] == i {
			out[k] = at
			k++
		}
		if u.n.refs[i].mult(now) > 0 {
			at++
		}
	}
	for ; k < len(u.cuts); k++ {
		out[k] = at
	}
	return out
}

// span is how far a piece from block b on (down to b, if !up) may go.
func (u *pass) span(b, most int, up bool, goes func(b int) bool) int {
	rows, n := 0, 0
	for n < most && b >= 0 && b < len(u.x.blocks) && (n == 0 || rows < pieceRows && goes(b)) {
		rows += u.x.blocks[b].rows
		n++
		if up {
			b++
		} else {
			b--
		}
	}
	return n
}

// restate computes the states of all blocks of a new index.
func (u *pass) restate() bool {
	nb := len(u.x.blocks)
	all := func(int) bool { return true }
	for b := 0; b < nb; {
		e := b + u.span(b, nb, true, all)
		u.read(b, e)
		states, ok := u.piece(false, Piece{Before: u.x.before[b]})
		if !ok {
			return false
		}
		for j := b + 1; j <= e && j < nb; j++ {
			u.x.before[j] = states[j-b]
		}
		b = e
	}
	for e := nb; u.run.Backward && e > 0; {
		b := e - u.span(e-1, nb, false, all)
		u.read(b, e)
		states, ok := u.piece(false, Piece{After: u.x.after[e-1], Backward: true})
		if !ok {
			return false
		}
		for j := max(b, 1); j < e; j++ {
			u.x.after[j-1] = states[j-b]
		}
		e = b
	}
	return true
}

// backward brings the states from behind up to date.
func (u *pass) backward() bool {
	x := u.x
	u.wasAfter = map[int][]byte{}
	live, most := false, 1
	var old, new []byte
	for e := len(x.blocks); e > 0; {
		if !live {
			if !x.blocks[e-1].dirty {
				e, most = e-1, 1
				continue
			}
			old, new = x.after[e-1], x.after[e-1]
		}
		b := e - u.span(e-1, most, false, func(b int) bool { return live || x.blocks[b].dirty })
		most = min(2*most, pieceRows)
		u.read(b, e)
		was, ok1 := u.piece(false, Piece{After: old, Backward: true})
		is, ok2 := u.piece(true, Piece{After: new, Backward: true})
		if !ok1 || !ok2 {
			return false
		}
		for j := max(b, 1); j < e; j++ {
			if !bytes.Equal(was[j-b], is[j-b]) {
				u.wasAfter[j-1] = was[j-b]
			}
			x.after[j-1] = is[j-b]
		}
		old, new = was[0], is[0]
		live = !bytes.Equal(old, new)
		e = b
	}
	return true
}

// visit reports whether the output of block b may differ for other reasons than
// the state in which it is come to.
func (u *pass) visit(b int) bool {
	if u.x.blocks[b].dirty || u.run.Sized && u.size[0] != u.size[1] {
		return true
	}
	_, ok := u.wasAfter[b]
	return ok
}

// forward brings the states up to date and collects the difference in output.
func (u *pass) forward() bool {
	x, nb := u.x, len(u.x.blocks)
	live, most := false, 1
	var old, new []byte
	for b := 0; b < nb; {
		if !live {
			if !u.visit(b) {
				b, most = b+1, 1
				continue
			}
			old, new = x.before[b], x.before[b]
		}
		e := b + u.span(b, most, true, func(b int) bool { return live || u.visit(b) })
		most = min(2*most, pieceRows)
		u.read(b, e)
		after := x.after[e-1]
		wasAfter, ok := u.wasAfter[e-1]
		if !ok {
			wasAfter = after
		}
		was, ok1 := u.piece(false, Piece{Before: old, After: wasAfter, Emit: true})
		is, ok2 := u.piece(true, Piece{Before: new, After: after, Emit: true})
		if !ok1 || !ok2 {
			return false
		}
		u.flush()
		for j := b + 1; j <= e && j < nb; j++ {
			x.before[j] = is[j-b]
		}
		old, new = was[e-b], is[e-b]
		live = !bytes.Equal(old, new)
		b = e
	}
	return true
}

// flush sums up the output of a piece.
func (u *pass) flush() {
	if !u.unchanged() {
		if d := Consolidated(u.kinds, u.poks); d != nil {
			u.oks = append(u.oks, d)
		}
		if d := Consolidated(ErrorKinds, u.perrs); d != nil {
			u.errs = append(u.errs, d)
		}
	}
	u.poks, u.perrs = u.poks[:0], u.perrs[:0]
}

// emit passes the output on.
func (u *pass) emit(out *Emitter) {
	for _, d := range u.oks {
		out.Emit(0, d)
	}
	for _, d := range u.errs {
		out.Emit(1, d)
	}
}

// unchanged takes out what was output for a row before and is again, by the place of
// rows: most of what is left differs, so that only the output of the rows that have
// come and gone is summed up. It reports false if the places of rows are not known.
func (u *pass) unchanged() bool {
	if u.run == nil || !u.run.RowByRow || len(u.perrs) > 0 || len(u.poks) != 2 || u.poks[0].Diff(0) > 0 {
		return false
	}
	var keep, some [2][]uint32 // rows of the output before and after
	var at [2]int
	for i := range u.n.refs {
		ref := &u.n.refs[i]
		if !ref.core {
			continue
		}
		both := int(min(ref.old, ref.new))
		end := [2]int{at[0] + int(ref.old), at[1] + int(ref.new)}
		if end[0] > u.poks[0].N || end[1] > u.poks[1].N {
			return false
		}
		differ := !equalOutput(u.poks[0], at[0], u.poks[1], at[1], both)
		for k := range at {
			if differ {
				keep[k] = appendRange(keep[k], at[k], at[k]+both)
			}
			some[k] = appendRange(some[k], at[k]+both, end[k])
		}
		at = end
	}
	if at[0] != u.poks[0].N || at[1] != u.poks[1].N {
		return false
	}
	var moved []*dataflow.Delta
	for k, d := range u.poks {
		if len(keep[k]) == d.N {
			u.oks = append(u.oks, d)
		} else if len(keep[k]) > 0 {
			u.oks = append(u.oks, gatherDelta(d, keep[k]))
		}
		if len(some[k]) > 0 {
			moved = append(moved, gatherDelta(d, some[k]))
		}
	}
	if d := Consolidated(u.kinds, moved); d != nil {
		u.oks = append(u.oks, d)
	}
	return true
}

func gatherDelta(d *dataflow.Delta, rows []uint32) *dataflow.Delta {
	return &dataflow.Delta{Batch: d.Gather(rows), Diffs: gatherDiffs(d.Diffs, rows)}
}

func appendRange(dst []uint32, lo, hi int) []uint32 {
	for ; lo < hi; lo++ {
		dst = append(dst, uint32(lo))
	}
	return dst
}

// equalOutput compares n rows. What is computed comes last, and differs first.
func equalOutput(a *dataflow.Delta, i int, b *dataflow.Delta, j, n int) bool {
	for c := len(a.Cols) - 1; c >= 0; c-- {
		for k := range n {
			if !columnar.EqualAt(a.Cols[c], i+k, b.Cols[c], j+k) {
				return false
			}
		}
	}
	return true
}
