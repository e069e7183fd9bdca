package differential

import (
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
)

// distinctPart holds the entries of a distinctSet in one partition. An entry's
// key is the number of the group and the value; after it comes a counter per
// feed of the set. Where a counter becomes positive, or ceases to be, the feed
// gains or loses the value. All aggregates over the same column share the
// entries, whatever their filters.
//
// A group has in its slot plan.entries the number of its entries in all sets,
// so that it outlives them: entries name it by number.
type distinctPart struct {
	set   *distinctSet
	index int // among the plan's
	t     groupTable
	all   bool           // some feed has no filter
	zero  []touchedGroup // entries that had only zeros when they were last changed
	dirty []uint32
	hash  []uint64 // of the values of the delta that is being consumed

	// The rows of a chunk that have a value: their groups, entries, and room
	// for those among them that change a feed.
	in, out  feedRows
	gids, hs []uint32
	ids      []uint32
	fresh    []uint32
	counters []unsafe.Pointer
}

// entryZero marks an entry that is in the zero list.
const entryZero = 1

func newDistinctPart(set *distinctSet, index int) *distinctPart {
	kinds := []columnar.Kind{columnar.KindInt64, set.kind} // group, value
	d := &distinctPart{set: set, index: index, t: newGroupTable(kinds, true, len(set.feeds))}
	for _, f := range set.feeds {
		d.all = d.all || f.filter < 0
	}
	return d
}

// begin prepares for the chunks of a delta.
func (d *distinctPart) begin(b *columnar.Batch) {
	d.hash = columnar.GetSlice[uint64](b.N)
	columnar.HashCols([]*columnar.Vec{b.Cols[d.set.arg]}, b.N, d.hash)
}

func (d *distinctPart) end() {
	columnar.PutSlice(d.hash)
	d.hash = nil
}

// distinct brings a chunk of rows to a distinct set, and the changes of the set
// to its accumulators.
func (s *reducePart) distinct(d *distinctPart, b *columnar.Batch, hs, gids []uint32, all *feedRows) {
	v := b.Cols[d.set.arg]
	d.choose(b, hs, gids, all)
	n := len(d.in.rows)
	if n == 0 {
		return
	}
	s.findEntries(d, v)
	for i, f := range d.set.feeds {
		d.change(i, f, b)
		if len(d.out.rows) == 0 {
			continue
		}
		d.out.cols[0] = v
		for _, a := range f.accs {
			s.pools.accumulate(a, &d.out)
		}
	}
	d.note(s.durable)
}

// choose finds the rows of a chunk that have a value under some filter.
func (d *distinctPart) choose(b *columnar.Batch, hs, gids []uint32, all *feedRows) {
	v := b.Cols[d.set.arg]
	nulls := v.Nulls()
	in := &d.in
	in.rows, in.ptrs, in.diffs = in.rows[:0], in.ptrs[:0], in.diffs[:0]
	d.gids, d.hs = d.gids[:0], d.hs[:0]
	for i, r := range all.rows {
		if nulls != nil && nulls.Get(int(r)) || !d.all && !d.wanted(b, r) {
			continue
		}
		in.rows = append(in.rows, r)
		in.ptrs = append(in.ptrs, all.ptrs[i])
		in.diffs = append(in.diffs, all.diffs[i])
		d.gids = append(d.gids, gids[i])
		d.hs = append(d.hs, entryHash(hs[i], d.hash[r]))
	}
}

// entryHash is the hash of an entry. The group's key may be the value, with the
// same hash: then it must not cancel.
func entryHash(group uint32, value uint64) uint32 {
	return group*0x9E3779B1 + uint32(value>>32)
}

func (d *distinctPart) wanted(b *columnar.Batch, r uint32) bool {
	for _, f := range d.set.feeds {
		if b.Cols[f.filter].Bools()[r] {
			return true
		}
	}
	return false
}

// findEntries finds or makes the entries of the chosen rows, and gives the
// places of their counters.
func (s *reducePart) findEntries(d *distinctPart, v *columnar.Vec) {
	n := len(d.in.rows)
	t := &d.t
	enc := t.scratch(n)
	w := t.keys.words
	for i, g := range d.gids {
		enc[i*w] = intWord(int64(g))
	}
	t.keys.encodeCol(1, v, d.in.rows, unsafe.Pointer(&enc[0]))
	if cap(d.ids) < n {
		d.ids = make([]uint32, n)
		d.counters = make([]unsafe.Pointer, n)
	}
	d.counters = d.counters[:n]
	d.fresh = t.lookup(enc, []*columnar.Vec{nil, v}, d.hs, d.in.rows, d.ids[:n], d.counters, d.fresh[:0])
	if len(d.fresh) > 0 {
		s.newEntries(d)
	}
}

// newEntries counts entries that were not in the table.
func (s *reducePart) newEntries(d *distinctPart) {
	at := s.t.rest + s.plan.entries
	if s.cold {
		s.loader.loadEntries(s, d.index, d.fresh)
	}
	for _, id := range d.fresh {
		p := d.t.at(id)
		if *header(p)&groupDurable == 0 {
			*wordAt(s.t.at(d.group(p)), at)++
		}
	}
}

// group is the group of the entry at p.
func (d *distinctPart) group(p unsafe.Pointer) uint32 {
	return uint32(wordInt(*wordAt(p, d.t.keyAt)))
}

// change adds the diffs of the rows that pass the filter of feed i to its
// counters, and gives in d.out the rows by which the set changed.
func (d *distinctPart) change(i int, f *feed, b *columnar.Batch) {
	var filter []bool
	if f.filter >= 0 {
		filter = b.Cols[f.filter].Bools()
	}
	in, out := &d.in, &d.out
	out.rows, out.ptrs, out.diffs = out.rows[:0], out.ptrs[:0], out.diffs[:0]
	for j, p := range d.counters {
		if filter != nil && !filter[in.rows[j]] {
			continue
		}
		c := (*int64)(unsafe.Add(p, i*8))
		old := *c
		*c += in.diffs[j]
		if (old > 0) == (*c > 0) {
			continue
		}
		diff := int64(1)
		if old > 0 {
			diff = -1
		}
		out.rows = append(out.rows, in.rows[j])
		out.ptrs = append(out.ptrs, in.ptrs[j])
		out.diffs = append(out.diffs, diff)
	}
}

// note keeps in mind which entries changed, and which may be gone.
func (d *distinctPart) note(durable bool) {
	for j, p := range d.counters {
		h := header(unsafe.Add(p, -d.t.rest*8))
		if durable && *h&groupDirty == 0 {
			*h |= groupDirty
			d.dirty = append(d.dirty, d.ids[j])
		}
		if *h&entryZero == 0 && d.isZero(p) {
			*h |= entryZero
			d.zero = append(d.zero, touchedGroup{d.ids[j], d.hs[j]})
		}
	}
}

// isZero reports whether all counters at p are 0.
func (d *distinctPart) isZero(p unsafe.Pointer) bool {
	var any uint64
	for i := range d.set.feeds {
		any |= *wordAt(p, i)
	}
	return any == 0
}

// sweep forgets the entries that were left with zeros at the end of an epoch,
// but for those that have a durable row: flush must retract that first.
func (s *reducePart) sweep(d *distinctPart) {
	for _, z := range d.zero {
		p := d.t.at(z.gid)
		h := header(p)
		*h &^= entryZero
		switch {
		case !d.isZero(unsafe.Add(p, d.t.rest*8)):
		case *h&groupDurable == 0:
			s.dropEntry(d, p, z.gid, z.hash)
		default:
			s.waiting++
		}
	}
	d.zero = d.zero[:0]
}

func (s *reducePart) dropEntry(d *distinctPart, p unsafe.Pointer, id, hash uint32) {
	gid := d.group(p)
	g := s.t.at(gid)
	*wordAt(g, s.t.rest+s.plan.entries)--
	if h := header(g); s.durable && *h&groupDirty == 0 {
		*h |= groupDirty // it was flushed before its entries
		s.dirty = append(s.dirty, gid)
	}
	d.t.remove(hash, id)
}
