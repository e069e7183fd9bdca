package differential

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// manyRows is how many rows a group may keep for rows to be put in their place
// one by one; beyond it those of a delta are sorted first and merged.
const manyRows = 256

func (s *topPart) many() bool { return s.pre.need > manyRows }

// offer takes the rows of partition i of a delta that only adds. vals are the
// layout's columns after the key.
func (s *topPart) offer(d *scattered, i int, vals []*columnar.Vec) {
	all := d.part(i)
	if len(all) == 0 {
		return
	}
	keys := pickCols(nil, d.Cols, s.op.layout.key)
	w := s.op.rows.words
	step := probeChunk
	if s.many() || s.op.cold {
		step = columnar.ChunkRows
	}
	for lo := 0; lo < len(all); lo += step {
		rows := all[lo:min(lo+step, len(all))]
		n := len(rows)
		if cap(s.runs.hs) < n {
			s.runs.hs = make([]uint32, n)
		}
		s.room(n)
		hs := s.runs.hs[:n]
		for i, r := range rows {
			hs[i] = uint32(d.hash[r])
		}
		s.fresh = s.t.probe(keys, hs, rows, s.gids, s.ptrs, s.fresh[:0])
		if s.op.cold && len(s.fresh) > 0 {
			s.loadGroups()
		}
		if cap(s.enc) < n*w {
			s.enc = make([]uint64, n*w)
		}
		s.enc = s.enc[:n*w]
		s.op.rows.encode(vals, rows, s.enc)
		if s.many() {
			s.offerMany(d, rows, hs, vals)
			continue
		}
		for i, r := range rows {
			p := unsafe.Add(s.ptrs[i], -s.t.rest*8)
			row := unsafe.Pointer(&s.enc[i*w])
			if diff := d.Diff(int(r)); diff > 0 && s.wanted(p, row, vals, int(r)) {
				s.accept(s.gids[i], hs[i], p, row, diff, vals, int(r))
			}
		}
	}
}

// The words of a group's row after its prefix, for input that only adds: the sum
// of the multiplicities in the prefix, and, once that is enough, the first word
// of its last row. What is greater need not be compared in full.
func (s *topPart) total(p unsafe.Pointer) *int64 {
	return (*int64)(unsafe.Add(p, (s.t.rest+2)*8))
}

func (s *topPart) bound(p unsafe.Pointer) *uint64 { return wordAt(p, s.t.rest+3) }

// wanted reports whether an encoded row can be among those that decide the
// result of the group at p.
func (s *topPart) wanted(p, row unsafe.Pointer, vals []*columnar.Vec, at int) bool {
	if *s.total(p) < int64(s.pre.need) {
		return true
	}
	if s.pre.lead >= 0 && *wordAt(row, s.pre.lead) > *s.bound(p) && *wordAt(row, 0) == 0 {
		return false
	}
	h := s.ref(p)
	last := s.pre.entry(h, h.len()-1)
	if s.pre.against(last, row, vals, at) >= 0 {
		return true
	}
	return s.op.opts.WithTies && s.few.compareEncoded(entryRow(last), row, vals, at, &s.ar) == 0
}

// accept puts an encoded row in its place.
func (s *topPart) accept(gid, hash uint32, p, row unsafe.Pointer, mult int64, vals []*columnar.Vec, at int) {
	g := s.mark(gid, hash, p)
	h := s.ref(p)
	i := s.pre.add(h, row, mult, vals, at)
	*s.total(p) += mult
	if s.plain {
		s.changes = append(s.changes, topChange{group: g, row: s.copyRow(entryRow(s.pre.entry(h, i))), diff: mult})
	}
	s.crop(g, p)
}

// mark notes that the prefix of a group is about to change, and gives the
// group's place in the touched list.
func (s *topPart) mark(gid, hash uint32, p unsafe.Pointer) uint32 {
	s.touch(gid, hash, p)
	f := header(p)
	if s.op.trace != nil && *f&groupDirty == 0 {
		*f |= groupDirty
		s.dirty = append(s.dirty, gid)
	}
	return *f&groupTouched - 1
}

// crop drops from a group, which is number g of the touched ones, what does not
// decide the result: entries at the end, and, unless ties count, a part of the
// last one's multiplicity.
func (s *topPart) crop(g uint32, p unsafe.Pointer) {
	h, total, need := s.ref(p), s.total(p), int64(s.pre.need)
	for *total > need {
		i := h.len() - 1
		last := s.pre.entry(h, i)
		m := *entryMult(last)
		for s.op.opts.WithTies && i > 0 && s.peers(entryRow(s.pre.entry(h, i-1)), entryRow(last)) {
			i--
			m += *entryMult(s.pre.entry(h, i))
		}
		if *total-m < need {
			if s.op.opts.WithTies {
				break
			}
			m = *total - need
			*entryMult(last) -= m
			i++
		}
		if s.plain {
			s.changes = append(s.changes, topChange{group: g, row: s.copyRow(entryRow(last)), diff: -m})
		}
		for j := i; j < h.len(); j++ {
			s.pre.bury(s.pre.entry(h, j))
		}
		h.setLen(i)
		*total -= m
	}
	s.setBound(p)
}

// setBound is to be called when the last entry of a group has changed.
func (s *topPart) setBound(p unsafe.Pointer) {
	h := s.ref(p)
	if *s.total(p) < int64(s.pre.need) || s.pre.lead < 0 {
		return
	}
	*s.bound(p) = ^uint64(0)
	if s.op.opts.WithTies && s.op.layout.ordered == 0 {
		return // all rows are peers
	}
	if row := entryRow(s.pre.entry(h, h.len()-1)); *wordAt(row, 0) == 0 {
		*s.bound(p) = *wordAt(row, s.pre.lead)
	}
}

// offerMany puts the rows of a chunk that are wanted in their places all at once.
func (s *topPart) offerMany(d *scattered, rows, hs []uint32, vals []*columnar.Vec) {
	type candidate struct{ gid, hash, row uint32 }
	var cs []candidate
	w := s.op.rows.words
	for i, r := range rows {
		p := unsafe.Add(s.ptrs[i], -s.t.rest*8)
		if d.Diff(int(r)) > 0 && s.wanted(p, unsafe.Pointer(&s.enc[i*w]), vals, int(r)) {
			cs = append(cs, candidate{s.gids[i], hs[i], r})
		}
	}
	if len(cs) == 0 {
		return
	}
	slices.SortFunc(cs, func(a, b candidate) int {
		if a.gid != b.gid {
			return cmp.Compare(a.gid, b.gid)
		}
		return columnar.CompareRows(vals, int(a.row), vals, int(b.row))
	})
	idx := make([]uint32, len(cs))
	for i, c := range cs {
		idx[i] = c.row
	}
	few := columnar.Batch{Cols: vals, N: d.N}
	few = few.Gather(idx)
	s.encode(few.Cols, few.N)
	for lo := 0; lo < len(cs); {
		hi := lo + 1
		for hi < len(cs) && cs[hi].gid == cs[lo].gid {
			hi++
		}
		p := s.t.at(cs[lo].gid)
		h := s.ref(p)
		g := s.mark(cs[lo].gid, cs[lo].hash, p)
		s.pre.addRun(h, s.enc[lo*w:], hi-lo, func(i int) int64 { return d.Diff(int(cs[lo+i].row)) }, few.Cols, lo)
		h[1] &^= prefixMore // what was left out does not matter
		s.sum(h, s.total(p))
		s.crop(g, p)
		lo = hi
	}
}

func (s *topPart) sum(h *prefixRef, total *int64) {
	*total = 0
	for i := range h.len() {
		*total += *entryMult(s.pre.entry(h, i))
	}
}

// loadGroups gives groups that are new to the table the rows that the trace has.
func (s *topPart) loadGroups() {
	keys, hash, order := sortByHash(s.t.keyColumns(s.fresh), len(s.fresh))
	w := s.op.rows.words
	lookup(s.op.trace, keys, hash, func(lo int, g *trace.Groups) {
		vals := g.Rows.Cols[len(keys):]
		s.encode(vals, g.Rows.N)
		at := 0
		for i, end := range g.Ends {
			p := s.t.at(s.fresh[order[lo+i]])
			h := s.ref(p)
			for ; at < end; at++ {
				*header(p) |= groupDurable
				diff := int64(1)
				if g.Diffs != nil {
					diff = g.Diffs[at]
				}
				s.pre.add(h, unsafe.Pointer(&s.enc[at*w]), diff, vals, at)
			}
			s.sum(h, s.total(p))
			s.setBound(p)
		}
	})
}

// flush appends what the trace must change for some groups to ds.
func (s *topPart) flush(all []uint32, ds []*dataflow.Delta) []*dataflow.Delta {
	for lo := 0; lo < len(all); lo += columnar.ChunkRows {
		ids := all[lo:min(lo+columnar.ChunkRows, len(all))]
		ds = retractions(s.op.trace, &s.t, ids, s.t.keyColumns(ids), ds)
		ds = s.contents(ids, ds)
	}
	return ds
}

// contents appends the rows that groups keep to ds.
func (s *topPart) contents(groups []uint32, ds []*dataflow.Delta) []*dataflow.Delta {
	w := s.op.rows.words
	keys := s.t.keyRows(groups)
	var keySel []uint32
	var words []uint64
	var diffs []int64
	add := func() {
		keys.sel = keySel
		rows := newRowSet(words, w, allRows(len(keySel)))
		b := columnar.Batch{Cols: s.decode(keys, rows), N: len(keySel)}
		ds = append(ds, &dataflow.Delta{Batch: b, Diffs: diffs})
		keySel, words, diffs = keySel[:0], words[:0], nil
	}
	for k, gid := range groups {
		p := s.t.at(gid)
		*header(p) |= groupDurable
		h := s.ref(p)
		for i := range h.len() {
			e := s.pre.entry(h, i)
			keySel = append(keySel, uint32(k))
			words = append(words, unsafe.Slice((*uint64)(entryRow(e)), w)...)
			diffs = append(diffs, *entryMult(e))
			if len(keySel) == columnar.ChunkRows {
				add()
			}
		}
	}
	if len(keySel) > 0 {
		add()
	}
	return ds
}

// cached is the memory of the tables.
func (t *topK) cached() int64 {
	var n int64
	for _, s := range t.parts {
		if s != nil {
			n += s.t.bytes() + s.ar.size()
		}
	}
	return n
}
