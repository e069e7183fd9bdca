package render

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// frames are the frames of the rows lo to hi of one partition. Both ends never
// go back from one row to the next.
type frames struct {
	p          *partitions
	lo, hi     int
	start, end []int // of row lo+i; end is exclusive
	exclude    plan.FrameExclude
	present    *present // of calls with IGNORE NULLS
}

// frames computes the frame of every row of a partition.
func (p *partitions) frames(f *frame, lo, hi int) *frames {
	fr := &frames{p: p, lo: lo, hi: hi, exclude: f.exclude}
	fr.start = p.edge(f, &f.start, lo, hi, false)
	fr.end = p.edge(f, &f.end, lo, hi, true)
	for i, s := range fr.start {
		fr.end[i] = max(fr.end[i], s)
	}
	return fr
}

// edge computes one end of the frames: the first row of each, or the row after
// the last.
func (p *partitions) edge(f *frame, b *bound, lo, hi int, end bool) []int {
	out := make([]int, hi-lo)
	switch b.kind {
	case plan.UnboundedPreceding:
		for i := range out {
			out[i] = lo
		}
		return out
	case plan.UnboundedFollowing:
		for i := range out {
			out[i] = hi
		}
		return out
	case plan.CurrentRow:
		at := 0
		if end {
			at = 1
		}
		switch {
		case f.unit == plan.FrameRows:
			for i := range out {
				out[i] = lo + i + at
			}
		case end:
			copy(out, p.peerEnd[lo:hi])
		default:
			copy(out, p.peerStart[lo:hi])
		}
		return out
	}
	switch f.unit {
	case plan.FrameRows:
		by := offset(b)
		if end {
			by++
		}
		for i := range out {
			out[i] = int(min(max(int64(lo+i)+by, int64(lo)), int64(hi)))
		}
	case plan.FrameGroups:
		p.groupEdges(b, lo, hi, end, out)
	default:
		p.rangeEdges(b, lo, hi, end, out)
	}
	return out
}

// offset is the signed offset of a bound in rows or groups, kept from overflow.
func offset(b *bound) int64 {
	n := min(b.rows, 1<<40)
	if b.kind == plan.OffsetPreceding {
		return -n
	}
	return n
}

// groupEdges computes ends by a number of peer groups.
func (p *partitions) groupEdges(b *bound, lo, hi int, end bool, out []int) {
	var starts []int // of the peer groups
	group := make([]int, hi-lo)
	for i := range group {
		if p.peerStart[lo+i] == lo+i {
			starts = append(starts, lo+i)
		}
		group[i] = len(starts) - 1
	}
	for i := range out {
		g := int64(group[i]) + offset(b)
		switch {
		case g < 0:
			out[i] = lo
		case g >= int64(len(starts)):
			out[i] = hi
		case end:
			out[i] = p.peerEnd[starts[g]]
		default:
			out[i] = starts[g]
		}
	}
}

// rangeEdges computes ends by a distance of the ordering value. Rows where that
// is NULL are only in the frames of each other.
func (p *partitions) rangeEdges(b *bound, lo, hi int, end bool, out []int) {
	in := columnar.Batch{N: hi - lo}
	for _, c := range b.source {
		in.Cols = append(in.Cols, p.cols[c].Slice(lo, hi))
	}
	numbers := make([]int64, hi-lo)
	for i := range numbers {
		numbers[i] = int64(i)
	}
	in.Cols = append(in.Cols, columnar.FromSlice(numbers, nil))
	limits, _, _ := b.prog.Apply(p.f.ctx, &in, nil)
	limitOf := make([]int, hi-lo) // row of limits, -1: beyond the type's range
	for i := range limitOf {
		limitOf[i] = -1
	}
	if limits.N > 0 {
		for at, i := range limits.Cols[1].Int64s() {
			limitOf[i] = at
		}
	}
	value := p.cols[b.value]
	desc := p.f.order[0].Desc
	first, last := lo, hi // of the rows that are not NULL
	for first < hi && value.Null(first) {
		first++
	}
	for last > first && value.Null(last-1) {
		last--
	}
	at := first
	for i := range out {
		row := lo + i
		if value.Null(row) {
			out[i] = p.peerStart[row]
			if end {
				out[i] = p.peerEnd[row]
			}
			continue
		}
		if limitOf[i] < 0 {
			out[i] = first
			if b.kind == plan.OffsetFollowing {
				out[i] = last
			}
			continue
		}
		for at < last {
			c := columnar.CompareAt(value, at, limits.Cols[0], limitOf[i])
			if desc {
				c = -c
			}
			if c > 0 || c == 0 && !end {
				break
			}
			at++
		}
		out[i] = at
	}
}

// excluded is the part of the frame of a row that EXCLUDE takes out, and the
// row in it that stays (ties), -1 if none.
func (fr *frames) excluded(row int) (lo, hi, keep int) {
	switch fr.exclude {
	case plan.ExcludeCurrentRow:
		return row, row + 1, -1
	case plan.ExcludeGroup:
		return fr.p.peerStart[row], fr.p.peerEnd[row], -1
	case plan.ExcludeTies:
		return fr.p.peerStart[row], fr.p.peerEnd[row], row
	}
	return 0, 0, -1
}

// has reports whether row at, inside of the frame's ends, is in the frame of row.
func (fr *frames) has(row, at int) bool {
	lo, hi, keep := fr.excluded(row)
	return at < lo || at >= hi || at == keep
}

// present are the rows of a partition whose value is not NULL.
type present struct {
	lo     int
	rows   []int
	before []int // of each row of the partition, and of its end: how many there are before it
}

func findPresent(v *columnar.Vec, lo, hi int) *present {
	p := &present{lo: lo, before: make([]int, hi-lo+1)}
	for i := lo; i < hi; i++ {
		if !v.Null(i) {
			p.rows = append(p.rows, i)
		}
		p.before[i-lo+1] = len(p.rows)
	}
	return p
}

// shifted is the present row that is off present rows away from a row, -1 if
// there is none; 0 away it is the row itself.
func (p *present) shifted(row int, off int64) int {
	var at int64
	switch {
	case off == 0:
		return row
	case off < 0:
		at = int64(p.before[row-p.lo]) + off
	default:
		at = int64(p.before[row-p.lo+1]) + off - 1
	}
	if at < 0 || at >= int64(len(p.rows)) {
		return -1
	}
	return p.rows[at]
}

// within are the present rows in [s, e).
func (p *present) within(s, e int) []int {
	if e <= s {
		return nil
	}
	return p.rows[p.before[s-p.lo]:p.before[e-p.lo]]
}

// nthPresent is nth (from the end: last) over rows whose value is not NULL.
func (fr *frames) nthPresent(row int, n int64, fromEnd bool) int {
	rows := fr.present.within(fr.start[row-fr.lo], fr.end[row-fr.lo])
	for i := range rows {
		at := rows[i]
		if fromEnd {
			at = rows[len(rows)-1-i]
		}
		if fr.exclude == plan.ExcludeNone || fr.has(row, at) {
			if n--; n == 0 {
				return at
			}
		}
	}
	return -1
}

// nth is the n-th row of the frame of row, -1 if it has fewer.
func (fr *frames) nth(row int, n int64) int {
	if fr.present != nil {
		return fr.nthPresent(row, n, false)
	}
	s, e := fr.start[row-fr.lo], fr.end[row-fr.lo]
	if fr.exclude == plan.ExcludeNone {
		if n > int64(e-s) {
			return -1
		}
		return s + int(n) - 1
	}
	for at := s; at < e; at++ {
		if fr.has(row, at) {
			if n--; n == 0 {
				return at
			}
		}
	}
	return -1
}

// last is the last row of the frame of row, -1 if it is empty.
func (fr *frames) last(row int) int {
	if fr.present != nil {
		return fr.nthPresent(row, 1, true)
	}
	for at := fr.end[row-fr.lo] - 1; at >= fr.start[row-fr.lo]; at-- {
		if fr.has(row, at) {
			return at
		}
	}
	return -1
}

// aggregate computes an aggregate over the frames. Equal frames one after the
// other are computed once.
func (p *partitions) aggregate(c *windowCall) *columnar.Vec {
	a := &frameAggregate{p: p, c: c, out: columnar.NewBuilder(c.typ.Kind(), p.n), index: make([]uint32, p.n)}
	for _, arg := range c.args {
		a.args = append(a.args, p.cols[arg])
	}
	if c.filter >= 0 {
		v := p.cols[c.filter]
		bools := v.Bools()
		a.passes = func(row int) bool { return bools[row] && !v.Null(row) }
	}
	a.acc, a.invertible = expr.NewAccumulator(c.agg, c.argTypes, c.typ)
	p.each(func(lo, hi int) {
		a.fr = p.frames(&c.frame, lo, hi)
		switch {
		case p.carry != nil && c.carries == carriesSums:
			a.carryForward(p.carry)
		case p.carry != nil && c.carries == carriesSumsBack:
			a.carryBackward(p.carry)
		case c.frame.exclude != plan.ExcludeNone:
			a.excluding(p.wanted(lo, hi))
		case c.frame.end.kind == plan.UnboundedFollowing && c.frame.start.kind != plan.UnboundedPreceding && !a.invertible:
			a.backward(lo, hi)
		default:
			a.forward(p.wanted(lo, hi))
		}
	})
	if a.out.Len() == 0 && p.n > 0 {
		a.out.Null() // of a piece nobody asks for output
	}
	if a.out.Len() == p.n && a.inOrder() {
		return a.out.Build()
	}
	return a.out.Build().Gather(a.index)
}

// inOrder reports whether every row has a value of its own, in the order of rows.
func (a *frameAggregate) inOrder() bool {
	for i, at := range a.index {
		if int(at) != i {
			return false
		}
	}
	return true
}

// wanted is the rows of a partition that output is wanted for.
func (p *partitions) wanted(lo, hi int) (int, int) {
	if c := p.carry; c != nil {
		return c.lo, c.hi
	}
	return lo, hi
}

// frameAggregate is one aggregate moving over frames.
type frameAggregate struct {
	p          *partitions
	c          *windowCall
	acc        expr.Accumulator
	invertible bool
	args       []*columnar.Vec
	passes     func(row int) bool
	fr         *frames
	out        *columnar.Builder
	index      []uint32 // of the value of each row in out
	err        error    // of an Add, since the last reset
	work       int      // rows added since it was asked whether to go on
}

// pollRows is after how many rows that is asked: frames can take the square of the
// partition's rows.
const pollRows = 1 << 16

// add adds (diff 1) or takes back (-1) the rows lo to hi.
func (a *frameAggregate) add(lo, hi int, diff int64) {
	if a.work += hi - lo; a.work >= pollRows && a.p.f.poll != nil {
		a.work = 0
		a.p.f.poll()
	}
	for i := lo; i < hi; i++ {
		if a.passes != nil && !a.passes(i) {
			continue
		}
		if err := a.acc.Add(a.p.x, a.args, i, diff); err != nil && a.err == nil {
			a.err = err
		}
	}
}

// addBackward adds the rows lo to hi, the last one first.
func (a *frameAggregate) addBackward(lo, hi int) {
	for i := hi - 1; i >= lo; i-- {
		a.add(i, i+1, 1)
	}
}

func (a *frameAggregate) reset() {
	a.acc.Reset()
	a.err = nil
}

// emit makes the present value that of a row.
func (a *frameAggregate) emit(row int) {
	err := a.err
	n := a.out.Len()
	if err == nil {
		err = a.acc.Value(a.p.x, a.out)
	}
	if err != nil {
		a.p.fail(row, err)
		if a.out.Len() == n {
			a.out.Null()
		}
	}
	a.index[row] = uint32(a.out.Len() - 1)
}

// forward goes from the first row to the last: rows enter at the end, and leave
// at the start if the state can take them back; else it begins anew.
func (a *frameAggregate) forward(lo, hi int) {
	if lo == hi {
		return
	}
	a.reset()
	s := a.fr.start[lo-a.fr.lo]
	e := s
	for row := lo; row < hi; row++ {
		ns, ne := a.fr.start[row-a.fr.lo], a.fr.end[row-a.fr.lo]
		if row > lo && ns == s && ne == e && a.err == nil {
			a.index[row] = a.index[row-1]
			continue
		}
		switch {
		case ns == s:
		case a.invertible && a.err == nil && ns < e:
			a.add(s, ns, -1)
		default:
			a.reset()
			e = ns
		}
		s = ns
		a.add(e, ne, 1)
		e = max(e, ne)
		a.emit(row)
	}
}

// backward goes from the last row to the first, for frames that all end with
// the partition.
func (a *frameAggregate) backward(lo, hi int) {
	if b, ok := a.acc.(expr.Backward); ok {
		b.Backward()
	}
	a.reset()
	s := hi
	collects := a.c.agg.New == nil
	for row := hi - 1; row >= lo; row-- {
		ns := a.fr.start[row-lo]
		if row < hi-1 && ns == s {
			a.index[row] = a.index[row+1]
			continue
		}
		if collects { // the order of rows matters
			a.reset()
			a.add(ns, hi, 1)
		} else {
			a.addBackward(ns, s)
		}
		s = ns
		a.emit(row)
	}
}

// excluding computes every frame with EXCLUDE on its own.
func (a *frameAggregate) excluding(lo, hi int) {
	for row := lo; row < hi; row++ {
		s, e := a.fr.start[row-a.fr.lo], a.fr.end[row-a.fr.lo]
		xl, xh, keep := a.fr.excluded(row)
		a.reset()
		cuts := []int{s, min(max(xl, s), e), min(max(xh, s), e), e}
		a.add(cuts[0], cuts[1], 1)
		if keep >= cuts[1] && keep < cuts[2] {
			a.add(keep, keep+1, 1)
		}
		a.add(cuts[2], cuts[3], 1)
		a.emit(row)
	}
}
