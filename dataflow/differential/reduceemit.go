package differential

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// minusOnes are the diffs of a delta of retractions. They are only read.
var minusOnes = sync.OnceValue(func() []int64 {
	m := make([]int64, columnar.ChunkRows)
	for i := range m {
		m[i] = -1
	}
	return m
})

// emitter sends a delta from an output port.
type emitter interface {
	Emit(port int, d *dataflow.Delta)
}

// emitBlock is how many touched groups are looked at together: their rows are
// copied out of the table in one pass, and stay in the first-level caches for
// all that follows.
const emitBlock = 1024

// reduceOut is rows of the result under construction: those to retract, or
// those to insert.
type reduceOut struct {
	cols []outColumn
	sel  []uint32 // rows of the block to output
	errs []failure
}

// open prepares for up to n rows.
func (o *reduceOut) open(p *reducePlan, n int) {
	if o.cols != nil {
		return
	}
	o.cols = make([]outColumn, 0, len(p.keyKinds)+len(p.outs))
	for _, k := range p.keyKinds {
		o.cols = append(o.cols, newOutColumn(k, n))
	}
	for i := range p.outs {
		o.cols = append(o.cols, newOutColumn(p.outs[i].out, n))
	}
}

// finish ends an epoch: it emits what changed in the touched groups, and
// forgets the groups that are gone.
func (s *reducePart) finish(out emitter) {
	for _, d := range s.sets {
		s.sweep(d)
	}
	for lo := 0; lo < len(s.touched); lo += columnar.ChunkRows {
		s.emit(lo, min(lo+columnar.ChunkRows, len(s.touched)), out)
	}
	if s.plan.opts.Global {
		s.started = true
	}
	for _, g := range s.empties {
		if s.vacant(g.gid, s.t.at(g.gid)) {
			s.forget(g.gid, g.hash)
		}
	}
	if len(s.plan.spills) > 0 {
		for i := range s.touched {
			s.pools.freeSpills(s.plan.spills, unsafe.Pointer(&s.old[i*s.plan.slots]))
		}
	}
	s.pools.bury()
	s.touched, s.old, s.empties = emptied(s.touched), emptied(s.old), emptied(s.empties)
}

// emit emits what changed in the groups lo to hi of the touched list.
func (s *reducePart) emit(lo, hi int, out emitter) {
	for b := lo; b < hi; b += emitBlock {
		s.look(b, min(b+emitBlock, hi), hi-lo)
	}
	s.send(&s.gone, -1, out)
	s.send(&s.come, 1, out)
}

// look compares old and new slots of the groups lo to hi of the touched list,
// and appends the rows that changed to s.gone and s.come, of up to `room` rows.
func (s *reducePart) look(lo, hi, room int) {
	n := hi - lo
	s.copyRows(lo, hi)
	width := s.t.rest + s.plan.slots
	olds := newRowSet(s.old[lo*s.plan.slots:], s.plan.slots, nil)
	news := newRowSet(s.image[s.t.rest:], width, nil)
	changed := s.changed[:n]
	clear(changed)
	for _, o := range s.plan.looks {
		if s.pools.compare(o, olds, news, changed); !slices.Contains(changed, false) {
			break
		}
	}
	s.choices(olds, news, changed)
	keys := newRowSet(s.image[s.t.keyAt:], width, nil)
	if s.failing > 0 {
		s.failing -= s.takeFailures(&s.gone, olds)
	}
	if s.plan.canFail {
		s.failing += s.takeFailures(&s.come, news)
	}
	s.appendTo(&s.gone, keys, olds, room)
	s.appendTo(&s.come, keys, news, room)
}

// choices lists the rows of a block to retract and to insert.
func (s *reducePart) choices(olds, news rowSet, changed []bool) {
	n := len(changed)
	gone, come := s.gone.sel[:n], s.come.sel[:n]
	var i, k uint64
	for r, differs := range changed {
		p, q := olds.at(uint32(r)), news.at(uint32(r))
		was, is := boolWord(*(*int64)(p) > 0), boolWord(*(*int64)(q) > 0)
		if s.plan.opts.Global {
			was, is = boolWord(s.started), 1
		}
		c := boolWord(differs)
		gone[i], come[k] = uint32(r), uint32(r)
		i += was & (c | (is ^ 1))
		k += is & (c | (was ^ 1))
	}
	s.gone.sel, s.come.sel = gone[:i], come[:k]
}

// copyRows copies the rows of the groups lo to hi of the touched list to
// s.image, and makes their headers as they are between epochs.
func (s *reducePart) copyRows(lo, hi int) {
	width := s.t.rest + s.plan.slots
	if cap(s.image) < (hi-lo)*width {
		n := min(emitBlock, len(s.touched))
		s.image = make([]uint64, n*width)
		s.changed = make([]bool, n)
		s.gone.sel, s.come.sel = make([]uint32, 0, n), make([]uint32, 0, n)
	}
	s.image = s.image[:(hi-lo)*width]
	for k, g := range s.touched[lo:hi] {
		dst := unsafe.Pointer(&s.image[k*width]) // never past the end
		p := s.t.at(g.gid)
		*header(p) &^= groupTouched
		if len(s.plan.spills) > 0 {
			s.pools.settle(s.plan.spills, unsafe.Add(p, s.t.rest*8))
		}
		i := 0
		for ; i < s.t.rest; i++ {
			*wordAt(dst, i) = *wordAt(p, i)
		}
		var any uint64
		for ; i < width; i++ {
			w := *wordAt(p, i)
			*wordAt(dst, i) = w
			any |= w
		}
		switch {
		case any != 0:
		case *header(p)&groupDurable == 0:
			s.empties = append(s.empties, g)
		default:
			s.waiting++
		}
	}
}

// appendTo appends the selected rows of a block to o.
func (s *reducePart) appendTo(o *reduceOut, keys, slots rowSet, room int) {
	if len(o.sel) == 0 {
		return
	}
	o.open(s.plan, room)
	keys.choose(o.sel)
	slots.choose(o.sel)
	k := len(s.plan.keyKinds)
	for c := range k {
		o.cols[c].appendRows(s.t.keys, c, keys, &s.t.ar)
	}
	for i := range s.plan.outs {
		s.pools.result(&s.plan.outs[i], slots, &o.cols[k+i])
	}
}

// takeFailures takes the rows with an output out of range out of the selection,
// and gives their number.
func (s *reducePart) takeFailures(o *reduceOut, slots rowSet) int {
	slots.sel = o.sel
	before := len(o.errs)
	for i := range s.plan.outs {
		x := &s.plan.outs[i]
		if !x.canFail() || !s.pools.anyFails(x, slots) {
			continue
		}
		k := 0
		for _, r := range o.sel {
			if f := s.pools.check(x, slots.at(r)); f != failNone {
				o.errs = append(o.errs, f)
				continue
			}
			o.sel[k] = r
			k++
		}
		o.sel = o.sel[:k]
		slots.sel = o.sel
	}
	return len(o.errs) - before
}

// fails reports whether the group with these slots has an error for a row.
func (s *reducePart) fails(slots unsafe.Pointer) bool {
	if int64(*wordAt(slots, 0)) <= 0 && !s.plan.opts.Global {
		return false
	}
	for i := range s.plan.outs {
		if o := &s.plan.outs[i]; o.canFail() && s.pools.check(o, slots) != failNone {
			return true
		}
	}
	return false
}

// send emits the rows of o, and begins anew.
func (s *reducePart) send(o *reduceOut, diff int64, out emitter) {
	if len(o.errs) > 0 {
		out.Emit(1, failureDelta(o.errs, diff))
		o.errs = o.errs[:0]
	}
	if o.cols == nil {
		return
	}
	d := &dataflow.Delta{Batch: columnar.Batch{Cols: make([]*columnar.Vec, len(o.cols))}}
	for c := range o.cols {
		d.Cols[c] = o.cols[c].done()
		d.N = d.Cols[c].Len()
	}
	if diff < 0 {
		d.Diffs = minusOnes()[:d.N]
	}
	o.cols = nil
	out.Emit(0, d)
}

func failureDelta(fs []failure, diff int64) *dataflow.Delta {
	code := columnar.NewBuilder(columnar.KindBytes, len(fs))
	msg := columnar.NewBuilder(columnar.KindBytes, len(fs))
	diffs := make([]int64, len(fs))
	for i, f := range fs {
		code.String(failures[f][0])
		msg.String(failures[f][1])
		diffs[i] = diff
	}
	b := columnar.Batch{Cols: []*columnar.Vec{code.Build(), msg.Build()}, N: len(fs)}
	return &dataflow.Delta{Batch: b, Diffs: diffs}
}
