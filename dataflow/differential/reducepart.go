package differential

import (
	"slices"
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
)

// reducePart is a partition of a Reduce: a table of groups and their slots.
//
// In an epoch, each row finds its group; the first one to touch a group in the
// epoch keeps a copy of its slots. When all rows are in, the outputs of the
// touched groups are read from the copy and from the slots, and where they
// differ the one is retracted and the other inserted. The cost is that of the
// rows and of the touched groups, whatever the number of groups.
type reducePart struct {
	plan    *reducePlan
	t       groupTable
	pools   spillPools
	sets    []*distinctPart
	values  []*valuePart
	touched []touchedGroup
	old     []uint64 // the slots of touched groups before the epoch
	durable bool     // changes are to be noted for flush
	cold    bool     // groups may be in the trace that are not in the table: loader has it
	loader  *reduce
	dirty   []uint32
	started bool // the global group has been output

	// Room for finish.
	image      []uint64 // rows of a block of touched groups
	changed    []bool
	gone, come reduceOut
	empties    []touchedGroup // groups left with nothing

	// Room for one chunk of rows.
	rows, hs, gids, fresh []uint32
	ptrs                  []unsafe.Pointer
	sel                   feedRows
}

type touchedGroup struct{ gid, hash uint32 }

func newReducePart(p *reducePlan, durable bool) *reducePart {
	s := &reducePart{plan: p, t: newGroupTable(p.keyKinds, false, p.slots+p.refs), durable: durable}
	for i, set := range p.sets {
		s.sets = append(s.sets, newDistinctPart(set, i))
	}
	ref := p.slots
	for _, set := range p.values {
		s.values = append(s.values, s.newValuePart(set, ref))
		ref += 2 * len(set.best)
	}
	return s
}

// ones are the diffs of rows that all have diff 1. They are only read.
var ones = func() (p [probeChunk]int64) {
	for i := range p {
		p[i] = 1
	}
	return p
}()

// consume adds a delta, whose rows have the given hashes.
func (s *reducePart) consume(d *Part) {
	keys := make([]*columnar.Vec, len(s.plan.keyCols))
	for i, c := range s.plan.keyCols {
		keys[i] = d.Cols[c]
	}
	for _, set := range s.sets {
		set.begin(&d.Batch)
	}
	step := probeChunk
	if s.cold {
		step = columnar.ChunkRows // looked up in the trace all at once
	}
	for lo := 0; lo < d.N; lo += step {
		n := min(step, d.N-lo)
		s.room(n)
		hs, rows := s.hs[:n], s.rows[:n]
		for i, h := range d.Hash[lo : lo+n] {
			hs[i] = uint32(h)
			rows[i] = uint32(lo + i)
		}
		s.fresh = s.t.probe(keys, hs, rows, s.gids, s.fresh[:0])
		if s.cold && len(s.fresh) > 0 {
			s.loader.loadGroups(s, s.fresh)
		}
		var diffs []int64
		switch {
		case d.Diffs != nil:
			diffs = d.Diffs[lo : lo+n]
		case n <= len(ones):
			diffs = ones[:n]
		default:
			diffs = make([]int64, n)
			for i := range diffs {
				diffs[i] = 1
			}
		}
		s.touch(hs, s.gids[:n], diffs)
		s.feed(&d.Batch, rows, hs, diffs)
	}
	for _, set := range s.sets {
		set.end()
	}
}

func (s *reducePart) room(n int) {
	if cap(s.rows) >= n {
		return
	}
	buf := make([]uint32, 3*n)
	s.rows, s.hs, s.gids = buf[:n:n], buf[n:2*n:2*n], buf[2*n:]
	s.ptrs = make([]unsafe.Pointer, n)
	s.sel.rows = make([]uint32, n)
	s.sel.ptrs = make([]unsafe.Pointer, n)
	s.sel.diffs = make([]int64, n)
}

// touch keeps the slots of groups that are touched for the first time in the
// epoch, counts their rows, and gives the places of their slots in s.ptrs.
func (s *reducePart) touch(hs, gids []uint32, diffs []int64) {
	at := s.t.rest * 8
	ptrs := s.ptrs[:len(gids)]
	diffs, hs = diffs[:len(gids)], hs[:len(gids)]
	for i, gid := range gids {
		p := s.t.at(gid)
		q := unsafe.Add(p, at)
		if *header(p)&groupTouched == 0 {
			s.touchFirst(gid, hs[i], p)
		}
		*(*int64)(q) += diffs[i]
		ptrs[i] = q
	}
}

func (s *reducePart) touchFirst(gid, hash uint32, p unsafe.Pointer) {
	s.touched = append(s.touched, touchedGroup{gid, hash})
	h := header(p)
	*h |= uint32(len(s.touched))
	if s.durable && *h&groupDirty == 0 {
		*h |= groupDirty
		s.dirty = append(s.dirty, gid)
	}
	n, l := s.plan.slots, len(s.old)
	if cap(s.old)-l < n {
		s.old = slices.Grow(s.old, max(n, l))
	}
	s.old = s.old[:l+n]
	slots := unsafe.Slice((*uint64)(unsafe.Add(p, s.t.rest*8)), n)
	for i, w := range slots {
		s.old[l+i] = w
	}
	if len(s.plan.spills) > 0 {
		s.pools.cloneSpills(s.plan.spills, unsafe.Pointer(&s.old[l]))
	}
}

// feed brings a chunk of rows to the accumulators.
func (s *reducePart) feed(b *columnar.Batch, rows, hs []uint32, diffs []int64) {
	all := feedRows{rows: rows, ptrs: s.ptrs[:len(rows)], diffs: diffs}
	for _, f := range s.plan.feeds {
		if len(f.accs) == 0 {
			continue
		}
		in := s.choose(b, f, &all)
		for _, a := range f.accs {
			s.pools.accumulate(a, in)
		}
	}
	for _, set := range s.sets {
		s.distinct(set, b, hs, s.gids[:len(rows)], &all)
	}
}

// choose is the rows that belong to a feed.
func (s *reducePart) choose(b *columnar.Batch, f *feed, all *feedRows) *feedRows {
	var cols [2]*columnar.Vec
	nulls := false
	for i, c := range f.cols {
		cols[i] = b.Cols[c]
		nulls = nulls || cols[i].HasNulls()
	}
	if !nulls && f.filter < 0 {
		all.cols = cols
		return all
	}
	in := &s.sel
	n := cap(in.rows)
	in.cols, in.rows, in.ptrs, in.diffs = cols, in.rows[:n], in.ptrs[:n], in.diffs[:n]
	var filter []bool
	if f.filter >= 0 {
		filter = b.Cols[f.filter].Bools() // false where it is NULL
	}
	n = 0
	for i, r := range all.rows {
		if filter != nil && !filter[r] || nulls && columnar.AnyNull(cols[:len(f.cols)], int(r)) {
			continue
		}
		in.rows[n], in.ptrs[n], in.diffs[n] = r, all.ptrs[i], all.diffs[i]
		n++
	}
	in.rows, in.ptrs, in.diffs = in.rows[:n], in.ptrs[:n], in.diffs[:n]
	return in
}

// empty reports whether all slots at p are as those of a new group.
func (s *reducePart) empty(p unsafe.Pointer) bool {
	var any uint64
	for _, w := range unsafe.Slice((*uint64)(p), s.plan.slots) {
		any |= w
	}
	return any == 0
}
