package render

import (
	"encoding/binary"
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// Window calls over large partitions are computed piece by piece (see
// differential.Running). What a call carries from piece to piece:
//
//	row_number, rank, dense_rank, …     the rows, or peer groups, passed
//	a frame from UNBOUNDED PRECEDING    the aggregate's state, as bytes
//	a frame to UNBOUNDED FOLLOWING      that of the rows that follow
//	first_value, nth_value, last_value  the value, once its row is passed, or the last one
//	lag, lead with IGNORE NULLS         the last values that were not NULL
//	what sees only rows near, or peers  nothing

// carried is what a window call carries through a partition.
type carried uint8

const (
	carriesNothing  carried = iota
	carriesRows             // the number of rows passed
	carriesGroups           // the number of peer groups passed
	carriesSums             // an aggregate's state, forwards
	carriesSumsBack         // and backwards
)

// state reports whether the call makes a state of its own.
func (c carried) state() bool { return c >= carriesSums }

func (c carried) backward() bool { return c == carriesSumsBack }

// windowNeeds is what the calls of a window need to be computed in pieces.
type windowNeeds struct {
	reach               differential.Reach
	peers, back, sized  bool
	forth, rows, groups bool // states are carried; rows and peer groups are counted
	wide                bool // how far rows see is not a number of rows
}

// needs finds out what the calls carry and see; ok is false if one of them sees
// what may be anywhere in the partition.
func (f *windowFunc) needs(r *plan.Window) (n *windowNeeds, ok bool) {
	n = &windowNeeds{}
	for i, c := range f.calls {
		if !n.add(c, &r.Calls[i]) {
			return nil, false
		}
	}
	return n, true
}

// look widens the reach.
func (n *windowNeeds) look(before, after int64) bool {
	if max(before, after) > maxLook {
		return false
	}
	n.reach.Before, n.reach.After = max(n.reach.Before, int(before)), max(n.reach.After, int(after))
	return true
}

// maxLook bounds how far a call sees by a number of rows.
const maxLook = 1 << 12

func (n *windowNeeds) add(c *windowCall, p *plan.WindowCall) bool {
	switch c.name {
	case "lag", "lead":
		off, ok := int64(1), true
		if len(p.Args) > 1 {
			off, ok = plan.IntConst(p.Args[1])
		}
		if c.name == "lead" {
			off = -off
		}
		if ok && c.ignoreNulls && off != 0 {
			return n.passNulls(c, off)
		}
		c.look = int(max(off, -off))
		return ok && n.look(off, -off)
	case "ntile":
		_, ok := p.Args[0].(*expr.Const)
		n.rows, n.forth, n.sized = true, true, true
		c.carries = carriesRows
		return ok
	case "percent_rank", "cume_dist":
		n.sized = true
		fallthrough
	case "rank":
		n.peers = true
		fallthrough
	case "row_number":
		n.rows, n.forth = true, true
		c.carries = carriesRows
		return true
	case "dense_rank":
		n.peers, n.groups, n.forth = true, true, true
		c.carries = carriesGroups
		return true
	}
	return n.frame(c, p)
}

// frame is add of a call over frames.
func (n *windowNeeds) frame(c *windowCall, p *plan.WindowCall) bool {
	f := &c.frame
	first, last := f.start.kind == plan.UnboundedPreceding, f.end.kind == plan.UnboundedFollowing
	for _, b := range []*bound{&f.start, &f.end} {
		switch b.kind {
		case plan.CurrentRow:
			n.peers = n.peers || f.unit != plan.FrameRows
		case plan.OffsetPreceding, plan.OffsetFollowing:
			if f.unit != plan.FrameRows {
				c.wide, n.wide, n.peers = true, true, true
			} else if off := offset(b); !n.look(-off, off) {
				return false
			}
		}
	}
	if f.exclude == plan.ExcludeGroup || f.exclude == plan.ExcludeTies {
		n.peers = true
	}
	if first && last && (f.exclude != plan.ExcludeNone || c.ignoreNulls) {
		return false
	}
	c.nth = 1
	if c.name == "nth_value" {
		var ok bool
		if c.nth, ok = plan.IntConst(p.Args[1]); !ok || c.nth <= 0 {
			return false
		}
	}
	if !first && !last {
		return true
	}
	// What is at the end of a frame that moves is near, if it is always the next row.
	far := c.ignoreNulls || c.wide || f.exclude != plan.ExcludeNone
	switch {
	case c.agg != nil && first, c.agg == nil && c.name != "last_value" && first:
		c.carries = carriesSums
		if c.agg == nil && last && c.nth > 1 {
			return false // the row may be far ahead
		}
	case c.agg != nil, c.name == "last_value" && last:
		c.carries = carriesSumsBack
	case far && first:
		c.carries = carriesSums
	case far:
		if c.carries = carriesSumsBack; c.nth > 1 {
			return false
		}
	case c.name == "nth_value" && !n.look(0, max(offsetRows(&f.start), 0)+c.nth):
		return false // (a start that is cut off at the partition's begin is none before the row)
	}
	return n.carry(c) && !(c.agg != nil && first && last)
}

// carry notes what a call carries; false if its state cannot be kept.
func (n *windowNeeds) carry(c *windowCall) bool {
	if !c.carries.state() {
		return true
	}
	n.back = n.back || c.carries.backward()
	n.forth = n.forth || !c.carries.backward()
	acc, _ := c.accumulator()
	_, ok := acc.(expr.SavedAccumulator)
	return ok
}

// passNulls is add of lag (off > 0) and lead (< 0) with IGNORE NULLS: the value is
// among the last ones of the frame of all rows before, or behind.
func (n *windowNeeds) passNulls(c *windowCall, off int64) bool {
	c.frame = frame{unit: plan.FrameRows, start: bound{kind: plan.UnboundedPreceding}, end: bound{kind: plan.OffsetPreceding, rows: 1}}
	c.carries, c.nth = carriesSums, off
	if off < 0 {
		c.frame.start, c.frame.end = bound{kind: plan.OffsetFollowing, rows: 1}, bound{kind: plan.UnboundedFollowing}
		c.carries, c.nth = carriesSumsBack, -off
	}
	return c.nth <= maxRecent && n.look(1, 1) && n.carry(c)
}

// local reports whether the calls see nothing but rows near.
func (n *windowNeeds) local() bool { return !n.peers && !n.back && !n.sized && !n.forth }

// carry is the state of a piece in work. Rows are expanded ones.
type carry struct {
	piece  *differential.Piece
	lo, hi int   // the core
	cuts   []int // as Piece.Cuts
	// By call, with the numbers of rows and peer groups behind them.
	before, after [][]byte
	states        [][][]byte // by cut
	rows, groups  int        // passed before the core
	bad           bool       // the partition must be computed whole
}

// pieceOf is the carry of a piece, whose rows are in p.
func (p *partitions) pieceOf(piece *differential.Piece) *carry {
	c := &carry{piece: piece, cuts: piece.Cuts}
	if p.n != piece.Rows.N {
		c.cuts = make([]int, len(piece.Cuts))
		at, k := 0, 0
		for i := 0; k < len(c.cuts); i++ {
			for k < len(c.cuts) && piece.Cuts[k] == i {
				c.cuts[k] = at
				k++
			}
			if i < len(piece.Mults) {
				at += int(piece.Mults[i])
			}
		}
	}
	c.lo, c.hi = c.cuts[0], c.cuts[len(c.cuts)-1]
	n := len(p.f.calls) + 2
	c.before, c.after = takeParts(piece.Before, n), takeParts(piece.After, n)
	number := func(b []byte) int {
		v, _ := binary.Varint(b)
		return int(v)
	}
	c.rows, c.groups = number(c.before[n-2]), number(c.before[n-1])
	c.states = make([][][]byte, len(c.cuts))
	for k := range c.states {
		c.states[k] = make([][]byte, n)
	}
	return c
}

// takeParts takes a state apart; that of the partition's edge has empty parts.
func takeParts(b []byte, n int) [][]byte {
	parts := make([][]byte, n)
	for i := 0; i < n && len(b) > 0; i++ {
		l, k := binary.Uvarint(b)
		parts[i] = b[k : k+int(l)]
		b = b[k+int(l):]
	}
	return parts
}

// result puts the states together.
func (c *carry) result() [][]byte {
	out := make([][]byte, len(c.states))
	for k, parts := range c.states {
		out[k] = []byte{}
		for _, p := range parts {
			out[k] = append(binary.AppendUvarint(out[k], uint64(len(p))), p...)
		}
	}
	return out
}

// Piece implements differential.PieceFunc.
func (f *windowFunc) Piece(piece *differential.Piece, emit, emitErr func(*dataflow.Delta)) ([][]byte, bool) {
	p := f.expand(&piece.Groups)
	if p.n == 0 {
		states := make([][]byte, len(piece.Cuts))
		for k := range states {
			states[k] = piece.Before
			if piece.Backward {
				states[k] = piece.After
			}
		}
		return states, true
	}
	p.findPeers()
	p.carry = p.pieceOf(piece)
	c := p.carry
	if piece.Sight != nil {
		p.sight(piece.Sight)
		return nil, true
	}
	out := columnar.Batch{N: p.n, Cols: make([]*columnar.Vec, len(f.typs))}
	for i, col := range f.shown {
		out.Cols[i] = p.cols[col]
	}
	for i, call := range f.calls {
		if piece.Emit || call.carries.state() && call.carries.backward() == piece.Backward {
			out.Cols[len(f.shown)+i] = p.call(call)
		}
	}
	if c.bad {
		return nil, false
	}
	if !piece.Backward {
		p.count(c)
	}
	if piece.Emit {
		p.core(&out, &piece.Groups)
		emitGroups(&out, p.failed, emit, emitErr)
	}
	return c.result(), true
}

// sight tells what the rows of a piece see.
func (p *partitions) sight(s *differential.Sight) {
	from, to := make([]int, p.n), make([]int, p.n)
	for i := range from {
		from[i], to[i] = i, i+1
	}
	for _, call := range p.f.calls {
		p.callSight(call, from, to)
	}
	s.From, s.To = from, to
	if mults := p.carry.piece.Mults; p.n != len(mults) {
		ends := expandedEnds(mults)
		s.From, s.To = make([]int, len(mults)), make([]int, len(mults))
		begin := 0
		for i, end := range ends {
			s.From[i], s.To[i] = rowOf(ends, from[begin]), rowOf(ends, to[end-1]-1)+1
			begin = end
		}
	}
}

// callSight widens what is seen by what one call does. Where states are carried, that
// is the rows at the end of the frame that moves: those which come to it or leave it.
func (p *partitions) callSight(c *windowCall, from, to []int) {
	if c.carries != carriesNothing && !c.wide {
		return // its states tell
	}
	if c.name == "lag" || c.name == "lead" {
		for i := range from {
			from[i] = max(min(from[i], i-c.look), 0)
			to[i] = min(max(to[i], i+c.look+1), p.n)
		}
		return
	}
	fr := p.frames(&c.frame, 0, p.n)
	first, last := c.frame.start.kind == plan.UnboundedPreceding, c.frame.end.kind == plan.UnboundedFollowing
	for i := range from {
		s, e := fr.start[i], fr.end[i]
		switch {
		case first && last:
			s, e = i, i+1
		case first && i == 0:
			s = 0
		case first:
			s = fr.end[i-1]
		case last && i == p.n-1:
			e = p.n
		case last:
			e = fr.start[i+1]
		}
		from[i], to[i] = min(from[i], s), max(to[i], e)
	}
}

// expandedEnds is where each row ends among the expanded ones.
func expandedEnds(mults []int64) []int {
	ends := make([]int, len(mults))
	at := 0
	for i, m := range mults {
		at += int(m)
		ends[i] = at
	}
	return ends
}

// rowOf is the row of an expanded one.
func rowOf(ends []int, expanded int) int {
	at, _ := slices.BinarySearch(ends, expanded+1)
	return at
}

// count counts the rows and peer groups up to the cuts, as far as they matter.
func (p *partitions) count(c *carry) {
	n := len(p.f.calls)
	groups, at := c.groups, c.lo
	for k := 1; k < len(c.cuts); k++ {
		for ; at < c.cuts[k]; at++ {
			if p.peerStart[at] == at {
				groups++
			}
		}
		if p.f.needed.rows {
			c.states[k][n] = binary.AppendVarint(nil, int64(c.rows+at-c.lo))
		}
		if p.f.needed.groups {
			c.states[k][n+1] = binary.AppendVarint(nil, int64(groups))
		}
	}
}

// whole gives the bounds of the partition of the rows lo to hi, of which there
// may be more than are here: then they are outside of those.
func (p *partitions) whole(lo, hi int) (int, int) {
	if c := p.carry; c != nil {
		lo = c.lo - c.rows
		return lo, lo + int(c.piece.Size)
	}
	return lo, hi
}

// carryForward is forward over frames that begin with the partition, from a state
// that holds what the frame of the row before the core does (with EXCLUDE: of that,
// the rows before the core).
func (a *frameAggregate) carryForward(c *carry) {
	acc, begun := a.load(c, c.before[a.c.index])
	exclude := a.c.frame.exclude != plan.ExcludeNone
	held := 0 // up to where rows are in the state
	if begun {
		held = min(max(c.lo+int(offsetRows(&a.c.frame.end)), 0), a.p.n)
		if a.c.wide {
			held = a.wideEdge(c, a.fr.end, c.lo-1)
		}
		if exclude {
			held = min(held, c.lo)
		}
	}
	k := 1
	shared := false // the value of the row before is that of the state
	save := func(row int) {
		for ; k < len(c.cuts) && c.cuts[k] == row; k++ {
			if exclude && row > c.lo {
				to := max(held, min(row, a.fr.end[row-1]))
				shared = shared && to == held
				a.add(held, to, 1)
				held = to
			}
			if begun || row > c.lo {
				c.states[k][a.c.index] = acc.AppendState([]byte{1})
			}
		}
	}
	for row := c.lo; row < c.hi; row++ {
		save(row)
		x, keep, y := a.fr.parts(row)
		to := max(x[1], held)
		plain := keep < 0 && y[0] == y[1]
		if shared && plain && to == held {
			a.index[row] = a.index[row-1]
			continue
		}
		a.add(held, to, 1)
		held, shared = to, plain
		a.emitWith(c, acc, row, keep, y)
	}
	save(c.hi)
	c.bad = c.bad || a.err != nil
}

// carryBackward is its mirror image, for frames that end with the partition.
func (a *frameAggregate) carryBackward(c *carry) {
	if b, ok := a.acc.(expr.Backward); ok {
		b.Backward()
	}
	a.back = true
	acc, begun := a.load(c, c.after[a.c.index])
	exclude := a.c.frame.exclude != plan.ExcludeNone
	held := a.p.n // from where on rows are in the state
	if begun {
		held = min(max(c.hi+int(offsetRows(&a.c.frame.start)), 0), a.p.n)
		if a.c.wide {
			held = a.wideEdge(c, a.fr.start, c.hi)
		}
		if exclude {
			held = max(held, c.hi)
		}
	}
	k := len(c.cuts) - 2
	shared := false
	save := func(row int) {
		for ; c.piece.Backward && k >= 0 && c.cuts[k] == row; k-- {
			if exclude && row < c.hi {
				from := min(held, max(row, a.fr.start[row]))
				shared = shared && from == held
				a.addBackward(from, held)
				held = from
			}
			if begun || row < c.hi {
				c.states[k][a.c.index] = acc.AppendState([]byte{1})
			}
		}
	}
	for row := c.hi - 1; row >= c.lo; row-- {
		save(row + 1)
		x, keep, y := a.fr.parts(row)
		if !exclude {
			x, y = y, x
		}
		from := min(y[0], held)
		plain := keep < 0 && x[0] == x[1]
		if shared && plain && from == held {
			a.index[row] = a.index[row+1]
			continue
		}
		a.addBackward(from, held)
		held, shared = from, plain
		a.emitWith(c, acc, row, keep, x)
	}
	save(c.lo)
	c.bad = c.bad || a.err != nil
}

// wideEdge is the end of the frame of a row next to the core.
func (a *frameAggregate) wideEdge(c *carry, ends []int, row int) int {
	if row < 0 || row >= len(ends) {
		c.bad = c.bad || c.lo < c.hi
		return 0
	}
	return ends[row]
}

// emitWith emits the value of the state and some rows that are not kept in it.
func (a *frameAggregate) emitWith(c *carry, acc expr.SavedAccumulator, row, keep int, run [2]int) {
	if !c.piece.Emit {
		return
	}
	rows := [][2]int{{keep, keep + 1}, run}
	if keep < 0 {
		rows = rows[1:]
	}
	if len(rows) == 1 && run[0] == run[1] {
		a.emit(row)
		return
	}
	if !a.invertible {
		a.saved = acc.AppendState(a.saved[:0])
	}
	for _, r := range rows {
		if a.back {
			a.addBackward(r[0], r[1])
		} else {
			a.add(r[0], r[1], 1)
		}
	}
	a.emit(row)
	if !a.invertible {
		c.bad = acc.LoadState(a.saved) != nil || c.bad
		return
	}
	for _, r := range rows {
		a.add(r[0], r[1], -1)
	}
}

// load sets the state to what was saved. begun says that rows were passed: it is
// empty otherwise, and else begins with a 1.
func (a *frameAggregate) load(c *carry, state []byte) (acc expr.SavedAccumulator, begun bool) {
	a.reset()
	acc = a.acc.(expr.SavedAccumulator)
	if len(state) > 0 {
		if err := acc.LoadState(state[1:]); err != nil {
			c.bad = true
		}
	}
	return acc, len(state) > 0
}

func appendNullable(dst []byte, v *columnar.Vec, i int) []byte {
	if v.Null(i) {
		return append(dst, 0)
	}
	return expr.AppendValue(append(dst, 1), v, i)
}

func readNullable(kind columnar.Kind, b []byte) *columnar.Vec {
	if b[0] == 0 {
		out := columnar.NewBuilder(kind, 1)
		out.Null()
		return out.Build()
	}
	return expr.ReadValue(kind, b[1:])
}
