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
//	first_value, nth_value, last_value  the value, once its row is passed
//	what sees only rows near, or peers  nothing

// carried is what a window call carries through a partition.
type carried uint8

const (
	carriesNothing  carried = iota
	carriesRows             // the number of rows passed
	carriesGroups           // the number of peer groups passed
	carriesSums             // an aggregate's state, forwards
	carriesSumsBack         // and backwards
	carriesNth              // the n-th value of the partition
	carriesLast             // the last value of the partition, backwards
)

// state reports whether the call makes a state of its own.
func (c carried) state() bool { return c >= carriesSums }

func (c carried) backward() bool { return c == carriesSumsBack || c == carriesLast }

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
	return n, !n.wide || !n.forth && !n.back && !n.sized
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
	if c.ignoreNulls && (c.name == "lag" || c.name == "lead") {
		return false // the row may be far away
	}
	switch c.name {
	case "lag", "lead":
		off, ok := int64(1), true
		if len(p.Args) > 1 {
			off, ok = plan.IntConst(p.Args[1])
		}
		if c.name == "lead" {
			off = -off
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
	switch f.exclude {
	case plan.ExcludeNone:
	case plan.ExcludeGroup, plan.ExcludeTies:
		n.peers = true
		fallthrough
	default:
		if first || last {
			return false
		}
	}
	if (c.ignoreNulls || c.wide) && (first || last) {
		return false
	}
	nth := int64(1)
	if c.name == "nth_value" {
		var ok bool
		if nth, ok = plan.IntConst(p.Args[1]); !ok || nth <= 0 {
			return false
		}
	}
	switch {
	case c.agg != nil && first:
		c.carries = carriesSums
	case c.agg != nil && last:
		c.carries = carriesSumsBack
	case c.name == "last_value" && last:
		c.carries = carriesLast
	case (c.name == "first_value" || c.name == "nth_value") && first:
		c.carries, c.nth = carriesNth, nth
		if last && nth > 1 {
			return false // the row may be far ahead
		}
	case c.name == "nth_value" && !c.wide && !n.look(0, max(offsetRows(&f.start), 0)+nth):
		return false // (a start that is cut off at the partition's begin is none before the row)
	}
	n.back = n.back || c.carries.backward()
	n.forth = n.forth || c.carries.state() && !c.carries.backward()
	if c.carries == carriesSums || c.carries == carriesSumsBack {
		acc, _ := expr.NewAccumulator(c.agg, c.argTypes, c.typ)
		_, ok := acc.(expr.SavedAccumulator)
		return ok && !(first && last)
	}
	return true
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

// callSight widens what is seen by what one call does.
func (p *partitions) callSight(c *windowCall, from, to []int) {
	if c.name == "lag" || c.name == "lead" {
		for i := range from {
			from[i] = max(min(from[i], i-c.look), 0)
			to[i] = min(max(to[i], i+c.look+1), p.n)
		}
		return
	}
	fr := p.frames(&c.frame, 0, p.n)
	for i := range from {
		from[i], to[i] = min(from[i], fr.start[i]), max(to[i], fr.end[i])
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
// that holds what the frame of the row before the core does.
func (a *frameAggregate) carryForward(c *carry) {
	acc, begun := a.load(c, c.before[a.c.index])
	e := 0
	if begun {
		e = min(max(c.lo+int(offsetRows(&a.c.frame.end)), 0), a.p.n)
	}
	k := 1
	save := func(row int) {
		for ; k < len(c.cuts) && c.cuts[k] == row; k++ {
			if begun || row > c.lo {
				c.states[k][a.c.index] = acc.AppendState([]byte{1})
			}
		}
	}
	for row := c.lo; row < c.hi; row++ {
		save(row)
		ne := max(a.fr.end[row], e)
		if row > c.lo && ne == e {
			a.index[row] = a.index[row-1]
			continue
		}
		a.add(e, ne, 1)
		e = ne
		a.emitIn(c, row)
	}
	save(c.hi)
	c.bad = c.bad || a.err != nil
}

// carryBackward is its mirror image, for frames that end with the partition.
func (a *frameAggregate) carryBackward(c *carry) {
	if b, ok := a.acc.(expr.Backward); ok {
		b.Backward()
	}
	acc, begun := a.load(c, c.after[a.c.index])
	s := a.p.n
	if begun {
		s = min(max(c.hi+int(offsetRows(&a.c.frame.start)), 0), a.p.n)
	}
	k := len(c.cuts) - 2
	save := func(row int) {
		for ; c.piece.Backward && k >= 0 && c.cuts[k] == row; k-- {
			if begun || row < c.hi {
				c.states[k][a.c.index] = acc.AppendState([]byte{1})
			}
		}
	}
	for row := c.hi - 1; row >= c.lo; row-- {
		save(row + 1)
		ns := min(a.fr.start[row], s)
		if row < c.hi-1 && ns == s {
			a.index[row] = a.index[row+1]
			continue
		}
		a.addBackward(ns, s)
		s = ns
		a.emitIn(c, row)
	}
	save(c.lo)
	c.bad = c.bad || a.err != nil
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

// emitIn is emit, if output is wanted.
func (a *frameAggregate) emitIn(c *carry, row int) {
	if c.piece.Emit {
		a.emit(row)
	}
}

// carryNth is first_value and nth_value over frames that begin with the partition.
// The state is the number of rows passed, up to where it no longer matters, and
// the value when its row is one of them.
func (p *partitions) carryNth(c *windowCall, k *carry, fr *frames) *columnar.Vec {
	v := p.cols[c.args[0]]
	rows, used := binary.Varint(k.before[c.index])
	if used <= 0 {
		rows = 0
	}
	enough := c.nth + maxLook
	at := k.lo + int(min(c.nth-1-rows, int64(p.n))) // of the row, if it is not passed
	known := rows >= c.nth
	var value *columnar.Vec
	if known {
		value = readNullable(v.Kind(), k.before[c.index][used:])
	}
	out := columnar.NewBuilder(c.typ.Kind(), p.n)
	for i := range p.n {
		switch {
		case known && rows+int64(fr.end[i]-k.lo) >= c.nth:
			out.AppendFrom(value, 0)
		case !known && at < fr.end[i]:
			out.AppendFrom(v, at)
		default:
			out.Null()
		}
	}
	for j := 1; j < len(k.cuts); j++ {
		n := rows + int64(k.cuts[j]-k.lo)
		s := binary.AppendVarint(nil, min(n, enough))
		switch {
		case known:
			s = appendNullable(s, value, 0)
		case n >= c.nth:
			s = appendNullable(s, v, at)
		}
		k.states[j][c.index] = s
	}
	return out.Build()
}

// carryLast is last_value over frames that end with the partition.
func (p *partitions) carryLast(c *windowCall, k *carry, fr *frames) *columnar.Vec {
	v := p.cols[c.args[0]]
	state := k.after[c.index]
	value, at := v, p.n-1
	if len(state) > 0 {
		value, at = readNullable(v.Kind(), state), 0
	}
	out := columnar.NewBuilder(c.typ.Kind(), p.n)
	for i := range p.n {
		if fr.start[i] < p.n {
			out.AppendFrom(value, at)
		} else {
			out.Null()
		}
	}
	for j := range k.cuts[:len(k.cuts)-1] {
		switch {
		case !k.piece.Backward:
		case len(state) > 0:
			k.states[j][c.index] = state
		case k.cuts[j] < k.hi:
			k.states[j][c.index] = appendNullable(nil, v, k.hi-1)
		}
	}
	return out.Build()
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
