package render

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

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
	a.acc, a.invertible = c.accumulator()
	p.each(func(lo, hi int) {
		a.fr = p.frames(&c.frame, lo, hi)
		switch {
		case p.carry != nil && c.carries == carriesSums:
			a.carryForward(p.carry)
		case p.carry != nil && c.carries == carriesSumsBack:
			a.carryBackward(p.carry)
		default:
			a.moving(lo, hi)
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
	kept       int      // of the row before: what EXCLUDE TIES keeps of it
	back       bool     // rows come from the last to the first
	saved      []byte   // a state, while other rows are added to it
	work       int      // rows added since it was asked whether to go on
}

// pollRows is after how many rows that is asked: frames can take the square of the
// partition's rows.
const pollRows = 1 << 16

// polled counts rows, and asks when there were many.
func (a *frameAggregate) polled(rows int) {
	if a.work += rows; a.work >= pollRows && a.p.f.poll != nil {
		a.work = 0
		a.p.f.poll()
	}
}

// add adds (diff 1) or takes back (-1) the rows lo to hi.
func (a *frameAggregate) add(lo, hi int, diff int64) {
	a.polled(max(hi-lo, 0))
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
	switch p, picks := a.acc.(*picked); {
	case err != nil:
	case picks && p.count < p.nth && p.fallback > 0 && len(a.args) > p.fallback:
		a.out.AppendFrom(a.args[p.fallback], row)
	default:
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

// moving computes the frames of a partition that depend on nothing outside of it.
func (a *frameAggregate) moving(lo, hi int) {
	f := &a.c.frame
	first, last := f.start.kind == plan.UnboundedPreceding, f.end.kind == plan.UnboundedFollowing
	from, to := a.p.wanted(lo, hi)
	selecting, selects := a.acc.(expr.Selecting)
	switch {
	case a.c.agg.New == nil:
		a.collect(from, to)
	case f.exclude == plan.ExcludeNone && (a.invertible || first):
		a.forward(from, to)
	case f.exclude == plan.ExcludeNone && last:
		a.backward(lo, hi)
	case selects:
		a.selecting(selecting, lo, hi)
	default:
		a.excluding(from, to)
	}
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
	for row := hi - 1; row >= lo; row-- {
		ns := a.fr.start[row-lo]
		if row < hi-1 && ns == s {
			a.index[row] = a.index[row+1]
			continue
		}
		a.addBackward(ns, s)
		s = ns
		a.emit(row)
	}
}

// excluding goes from the first row to the last over frames with EXCLUDE: the rows
// in front of what is excluded and those behind it enter and leave apart.
func (a *frameAggregate) excluding(lo, hi int) {
	var front, behind [2]int // what the state holds
	for row := lo; row < hi; row++ {
		x, keep, y := a.fr.parts(row)
		switch {
		case row == lo || a.err != nil:
			a.reset()
			front, behind = [2]int{x[0], x[0]}, [2]int{y[0], y[0]}
		case keep < 0 && x == front && y == behind && a.kept < 0:
			a.index[row] = a.index[row-1]
			continue
		}
		a.move(&front, x)
		a.move(&behind, y)
		if a.kept = keep; keep >= 0 {
			a.add(keep, keep+1, 1)
		}
		a.emit(row)
		if keep >= 0 && a.err == nil {
			a.add(keep, keep+1, -1)
		}
	}
}

// move makes the state hold another run of rows, which begins and ends no earlier.
func (a *frameAggregate) move(held *[2]int, to [2]int) {
	gone := min(to[0], held[1])
	a.add(held[0], gone, -1)
	a.add(max(to[0], held[1]), to[1], 1)
	*held = to
}

// collect computes an aggregate that needs all rows of a frame, from those rows.
func (a *frameAggregate) collect(lo, hi int) {
	call := expr.AggregateCall{Fn: a.c.agg, Args: a.c.argTypes, Typ: a.c.typ}
	args := a.args
	if a.passes != nil {
		a.fr.present = findPassing(a.passes, a.fr.lo, a.fr.hi)
		rows := make([]uint32, len(a.fr.present.rows))
		for i, r := range a.fr.present.rows {
			rows[i] = uint32(r)
		}
		args = gatherAll(a.args, rows)
	}
	// Places of rows among those that pass.
	at := func(row int) int {
		if p := a.fr.present; p != nil {
			return p.before[row-p.lo]
		}
		return row
	}
	var before [3][2]int
	for row := lo; row < hi; row++ {
		runs := a.fr.runs(row)
		if row > lo && runs == before {
			a.index[row] = a.index[row-1]
			continue
		}
		before = runs
		some, from, to := args, at(runs[0][0]), at(runs[0][1])
		a.polled(to - from)
		if rest := a.fr.count(runs[1]) + a.fr.count(runs[2]); rest > 0 {
			rows := make([]uint32, 0, to-from+rest)
			for _, r := range runs {
				for i := at(r[0]); i < at(r[1]); i++ {
					rows = append(rows, uint32(i))
				}
			}
			a.polled(rest)
			some, from, to = gatherAll(args, rows), 0, len(rows)
		}
		n := a.out.Len()
		if err := a.c.agg.Collect(a.p.x, &call, some, from, to, a.out); err != nil {
			a.p.fail(row, err)
			if a.out.Len() == n {
				a.out.Null()
			}
		}
		a.index[row] = uint32(a.out.Len() - 1)
	}
}

func gatherAll(vs []*columnar.Vec, rows []uint32) []*columnar.Vec {
	out := make([]*columnar.Vec, len(vs))
	for i, v := range vs {
		out[i] = v.Gather(rows)
	}
	return out
}

// selecting computes an aggregate whose value is that of one of the frame's rows, by
// a tree over the rows of the partition: node i stands for the nodes 2i and 2i+1, and
// the leaves are the rows.
func (a *frameAggregate) selecting(s expr.Selecting, lo, hi int) {
	n := hi - lo
	better := func(i, j int32) int32 {
		switch {
		case i < 0:
			return j
		case j < 0 || !s.Replaces(a.args, int(i), int(j)):
			return i
		}
		return j
	}
	tree := make([]int32, 2*n)
	for i := range n {
		tree[n+i] = -1
		if row := lo + i; !a.args[0].Null(row) && (a.passes == nil || a.passes(row)) {
			tree[n+i] = int32(row)
		}
	}
	for i := n - 1; i > 0; i-- {
		tree[i] = better(tree[2*i], tree[2*i+1])
	}
	a.polled(n)
	best := func(run [2]int) int32 {
		l, r := int32(-1), int32(-1)
		for i, j := run[0]-lo+n, run[1]-lo+n; i < j; i, j = i/2, j/2 {
			if i&1 == 1 {
				l = better(l, tree[i])
				i++
			}
			if j&1 == 1 {
				j--
				r = better(tree[j], r)
			}
		}
		return better(l, r)
	}
	from, to := a.p.wanted(lo, hi)
	for row := from; row < to; row++ {
		at := int32(-1)
		for _, run := range a.fr.runs(row) {
			at = better(at, best(run))
		}
		a.polled(1)
		if at < 0 {
			a.out.Null()
		} else {
			a.out.AppendFrom(a.args[0], int(at))
		}
		a.index[row] = uint32(a.out.Len() - 1)
	}
}
