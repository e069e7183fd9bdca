package differential

import "github.com/streamdb/streamdb/dataflow"

// A recursion of a circuit that runs once may go on for ever. It ends when nobody wants
// more of its rows: when all that reads them, through operators that pass rows on, has
// got enough.

// demanding is an operator that may have got enough: that what still comes does not
// matter to it.
type demanding interface{ enough() bool }

// First passes on some rows of a stream, whichever come first: limit of them after skip.
// No diff of the stream may be negative. For circuits that run once.
func (c *Circuit) First(s Stream, skip, limit int64) Stream {
	return c.Add(&firstRows{skip: skip, left: limit}, []Stream{s}, s.Kinds()).Out(0)
}

type firstRows struct{ skip, left int64 }

func (f *firstRows) enough() bool { return f.left == 0 }

func (f *firstRows) absorb(x *Context) bool { f.Step(x); return true }

// Step passes on what is within the bounds.
func (f *firstRows) Step(x *Context) {
	for _, d := range x.In(0) {
		if f.left == 0 {
			return
		}
		x.Emit(0, f.cut(d))
	}
}

// cut is the rows of d that are within the bounds.
func (f *firstRows) cut(d *dataflow.Delta) *dataflow.Delta {
	var idx []uint32
	var diffs []dataflow.Diff
	for i := 0; i < d.N && f.left > 0; i++ {
		n := d.Diff(i)
		passed := min(f.skip, n)
		f.skip -= passed
		n = min(n-passed, f.left)
		f.left -= n
		if n > 0 {
			idx = append(idx, uint32(i))
			diffs = append(diffs, n)
		}
	}
	return &dataflow.Delta{Batch: d.Gather(idx), Diffs: diffs}
}

// wanted reports whether some reader of a port wants more rows.
func (p *port) wanted() bool {
	for _, e := range p.readers {
		switch op := e.node.op.(type) {
		case demanding:
			if !op.enough() {
				return true
			}
		case mapOp, concatOp, negateOp, positiveOccurrences:
			if e.node.out[0].wanted() {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// bounded reports whether wanted may ever come to say no.
func (p *port) bounded() bool {
	for _, e := range p.readers {
		switch e.node.op.(type) {
		case demanding:
		case mapOp, concatOp, negateOp, positiveOccurrences:
			if !e.node.out[0].bounded() {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// demand tells an iteration whether its rows are still wanted.
func (it *iterate) demand() (wanted func() bool) {
	ports := it.out[:len(it.vars)]
	for _, p := range ports {
		if !p.bounded() {
			return func() bool { return true }
		}
	}
	return func() bool {
		for _, p := range ports {
			if p.wanted() {
				return true
			}
		}
		return false
	}
}
