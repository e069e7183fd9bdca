package render

import (
	"github.com/streamdb/streamdb/columnar"
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

// parts are the rows of a frame: the run a, the row keep (-1: none), and the run b.
// None of their ends goes back from one row to the next.
func (fr *frames) parts(row int) (a [2]int, keep int, b [2]int) {
	s, e := fr.start[row-fr.lo], fr.end[row-fr.lo]
	if fr.exclude == plan.ExcludeNone {
		return [2]int{s, e}, -1, [2]int{e, e}
	}
	lo, hi, keep := fr.excluded(row)
	lo, hi = min(max(lo, s), e), min(max(hi, s), e)
	if keep < lo || keep >= hi {
		keep = -1
	}
	return [2]int{s, lo}, keep, [2]int{hi, e}
}

// present are the rows of a partition whose value is not NULL.
type present struct {
	lo     int
	rows   []int
	before []int // of each row of the partition, and of its end: how many there are before it
}

func findPresent(v *columnar.Vec, lo, hi int) *present {
	return findPassing(func(i int) bool { return !v.Null(i) }, lo, hi)
}

// findPassing is that of rows that pass otherwise.
func findPassing(passes func(row int) bool, lo, hi int) *present {
	p := &present{lo: lo, before: make([]int, hi-lo+1)}
	for i := lo; i < hi; i++ {
		if passes(i) {
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

// count is how many rows of a run there are for a call.
func (fr *frames) count(run [2]int) int {
	if p := fr.present; p != nil {
		return p.before[run[1]-p.lo] - p.before[run[0]-p.lo]
	}
	return run[1] - run[0]
}

// at is the k-th of them.
func (fr *frames) at(run [2]int, k int) int {
	if p := fr.present; p != nil {
		return p.rows[p.before[run[0]-p.lo]+k]
	}
	return run[0] + k
}

// runs are the parts of a frame as runs.
func (fr *frames) runs(row int) [3][2]int {
	a, keep, b := fr.parts(row)
	if keep < 0 {
		return [3][2]int{a, {a[0], a[0]}, b}
	}
	return [3][2]int{a, {keep, keep + 1}, b}
}

// nth is the n-th row of the frame of row, -1 if it has fewer.
func (fr *frames) nth(row int, n int64) int {
	for _, r := range fr.runs(row) {
		c := int64(fr.count(r))
		if n <= c {
			return fr.at(r, int(n-1))
		}
		n -= c
	}
	return -1
}

// last is the last row of the frame of row, -1 if it is empty.
func (fr *frames) last(row int) int {
	runs := fr.runs(row)
	for i := len(runs) - 1; i >= 0; i-- {
		if c := fr.count(runs[i]); c > 0 {
			return fr.at(runs[i], c-1)
		}
	}
	return -1
}
