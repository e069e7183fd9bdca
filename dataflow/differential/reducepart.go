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
	failing int  // groups that have an error for a row, of those in the table
	waiting int  // about how many empty groups and entries wait for flush to forget them
	started bool // the global group has been output

	// Room for finish.
	image      []uint64 // rows of a block of touched groups
	changed    []bool
	gone, come reduceOut
	empties    []touchedGroup // groups left with nothing

	// Room for one chunk of rows.
	keys            []*columnar.Vec
	hs, gids, fresh []uint32
	diffs           []int64
	ptrs            []unsafe.Pointer
	sel             feedRows
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

// consume adds the rows of partition i of a delta.
func (s *reducePart) consume(d *scattered, i int) {
	all := d.part(i)
	if len(all) == 0 {
		return
	}
	s.keys = pickCols(s.keys[:0], d.Cols, s.plan.keyCols)
	for _, set := range s.sets {
		set.begin(&d.Batch)
	}
	step := probeChunk
	if s.cold {
		step = columnar.ChunkRows // looked up in the trace all at once
	}
	for lo := 0; lo < len(all); lo += step {
		rows := all[lo:min(lo+step, len(all))]
		n := len(rows)
		s.room(n)
		hs := s.hs[:n]
		for i, r := range rows {
			hs[i] = uint32(d.hash[r])
		}
		s.fresh = s.t.probe(s.keys, hs, rows, s.gids, s.ptrs, s.fresh[:0])
		if s.cold && len(s.fresh) > 0 {
			s.loader.loadGroups(s, s.fresh)
		}
		diffs := s.diffs[:n]
		if d.Diffs == nil {
			diffs = allOnes(n)
		} else {
			for i, r := range rows {
				diffs[i] = d.Diffs[r]
			}
		}
		s.touch(hs, s.gids[:n], diffs)
		s.feed(&d.Batch, hs, &feedRows{rows: rows, ptrs: s.ptrs[:n], diffs: diffs, ones: d.Diffs == nil})
	}
	for _, set := range s.sets {
		set.end()
	}
}

// allOnes is n diffs of rows that all have diff 1. They are only read.
func allOnes(n int) []int64 {
	if n <= len(ones) {
		return ones[:n]
	}
	m := make([]int64, n)
	for i := range m {
		m[i] = 1
	}
	return m
}

func (s *reducePart) room(n int) {
	if len(s.gids) >= n {
		return
	}
	buf := make([]uint32, 2*n)
	s.hs, s.gids = buf[:n:n], buf[n:]
	s.diffs = make([]int64, n)
	s.ptrs = make([]unsafe.Pointer, n)
	s.sel.rows = make([]uint32, n)
	s.sel.ptrs = make([]unsafe.Pointer, n)
	s.sel.diffs = make([]int64, n)
}

// touch keeps the slots of groups that are touched for the first time in the
// epoch, and counts the rows of those at s.ptrs.
func (s *reducePart) touch(hs, gids []uint32, diffs []int64) {
	n := len(gids)
	ptrs, diffs, hs := s.ptrs[:n], diffs[:n], hs[:n]
	s.touched = slices.Grow(s.touched, n)
	s.old = slices.Grow(s.old, n*s.plan.slots)
	if len(s.plan.spills) == 0 {
		switch s.plan.slots {
		case 1:
			touchFew[words1](s, hs, gids, diffs)
			return
		case 2:
			touchFew[words2](s, hs, gids, diffs)
			return
		case 3:
			touchFew[words3](s, hs, gids, diffs)
			return
		case 4:
			touchFew[words4](s, hs, gids, diffs)
			return
		}
	}
	back := -s.t.rest*8 + 4 // from the slots to the flags
	for i, q := range ptrs {
		if f := (*uint32)(unsafe.Add(q, back)); *f&groupTouched == 0 {
			s.touchFirst(gids[i], hs[i], f, q)
		}
		*(*int64)(q) += diffs[i]
	}
}

// Some words, as types that are copied through registers.
type (
	words1 struct{ A uint64 }
	words2 struct{ A, B uint64 }
	words3 struct{ A, B, C uint64 }
	words4 struct{ A, B, C, D uint64 }
)

// touchFew is touch of groups with slots S. Whether a row is its group's first is
// a toss-up when there are about as many groups as rows: all slots are copied, and
// what is not wanted is overwritten.
func touchFew[S words1 | words2 | words3 | words4](s *reducePart, hs, gids []uint32, diffs []int64) {
	n, k := len(gids), len(s.touched)
	var slots S
	size := unsafe.Sizeof(slots)
	touched := unsafe.Pointer(unsafe.SliceData(s.touched))
	old := unsafe.Pointer(unsafe.SliceData(s.old))
	back := -s.t.rest*8 + 4 // from the slots to the flags
	dirty := uint32(0)
	if s.durable {
		dirty = groupDirty
	}
	ptrs, diffs, hs := s.ptrs[:n], diffs[:n], hs[:n]
	for i, q := range ptrs {
		f := (*uint32)(unsafe.Add(q, back))
		h := *f
		*(*touchedGroup)(unsafe.Add(touched, uintptr(k)*unsafe.Sizeof(touchedGroup{}))) = touchedGroup{gids[i], hs[i]}
		*(*S)(unsafe.Add(old, uintptr(k)*size)) = *(*S)(q)
		k += int(^h & 1)
		*(*int64)(q) += diffs[i]
		if dirty&^h != 0 {
			s.dirty = append(s.dirty, gids[i])
		}
		*f = h | dirty | 1
	}
	s.touched, s.old = s.touched[:k], s.old[:k*s.plan.slots]
}

// touchFirst keeps the slots at q of a group with flags f. There is room.
func (s *reducePart) touchFirst(gid, hash uint32, f *uint32, q unsafe.Pointer) {
	k := len(s.touched)
	s.touched = s.touched[:k+1]
	s.touched[k] = touchedGroup{gid, hash}
	*f |= 1
	if s.durable && *f&groupDirty == 0 {
		*f |= groupDirty
		s.dirty = append(s.dirty, gid)
	}
	n, l := s.plan.slots, len(s.old)
	s.old = s.old[:l+n]
	dst := unsafe.Pointer(&s.old[l])
	for i := range n {
		*wordAt(dst, i) = *wordAt(q, i)
	}
	if len(s.plan.spills) > 0 {
		s.pools.cloneSpills(s.plan.spills, dst)
	}
}

// touchOne is touch of one group, without a row.
func (s *reducePart) touchOne(gid, hash uint32) {
	s.touched = slices.Grow(s.touched, 1)
	s.old = slices.Grow(s.old, s.plan.slots)
	p := s.t.at(gid)
	if f := header(p); *f&groupTouched == 0 {
		s.touchFirst(gid, hash, f, unsafe.Add(p, s.t.rest*8))
	}
}

// feed brings a chunk of rows to the accumulators.
func (s *reducePart) feed(b *columnar.Batch, hs []uint32, all *feedRows) {
	for _, f := range s.plan.feeds {
		if len(f.accs) == 0 {
			continue
		}
		in := s.choose(b, f, all)
		for _, a := range f.accs {
			s.pools.accumulate(a, in)
		}
	}
	for _, set := range s.sets {
		s.distinct(set, b, hs, s.gids[:len(all.rows)], all)
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
	in.rows, in.ptrs, in.diffs, in.ones = in.rows[:n], in.ptrs[:n], in.diffs[:n], all.ones
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
