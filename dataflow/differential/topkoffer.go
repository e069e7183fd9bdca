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

// offer takes rows of a delta that only adds, with the hashes of their groups.
func (s *topPart) offer(d *Part) {
	keys := make([]*columnar.Vec, len(s.op.layout.key))
	for i, c := range s.op.layout.key {
		keys[i] = d.Cols[c]
	}
	laid := s.op.layout.lay(&d.Batch)
	vals := laid.Cols[len(keys):]
	w := s.op.rows.words
	step := probeChunk
	if s.op.need() > manyRows || s.op.cold {
		step = columnar.ChunkRows
	}
	for lo := 0; lo < d.N; lo += step {
		n := min(step, d.N-lo)
		rows, hs := s.chunk(lo, n, d.Hash)
		s.fresh = s.t.probe(keys, hs, rows, s.gids, s.fresh[:0])
		if s.op.cold && len(s.fresh) > 0 {
			s.loadGroups()
		}
		if cap(s.enc) < n*w {
			s.enc = make([]uint64, n*w)
		}
		s.enc = s.enc[:n*w]
		s.op.rows.encode(vals, rows, s.enc)
		if s.op.need() > manyRows {
			s.offerMany(d, rows, hs, vals)
			continue
		}
		for i, r := range rows {
			gid := s.gids[i]
			p := s.t.at(gid)
			row := unsafe.Pointer(&s.enc[i*w])
			if diff := d.Diff(int(r)); diff > 0 && s.wanted(p, row, vals, int(r)) {
				s.mark(gid, hs[i], p)
				h := s.ref(p)
				s.pre.add(h, row, diff, vals, int(r))
				*s.total(p) += diff
				s.crop(h, s.total(p))
			}
		}
	}
}

// chunk gives the numbers of rows lo to lo+n, and the low halves of their hashes.
func (s *topPart) chunk(lo, n int, hash []uint64) (rows, hs []uint32) {
	if cap(s.runs.firsts) < n {
		s.runs.firsts, s.runs.hs = make([]uint32, n), make([]uint32, n)
	}
	if cap(s.gids) < n {
		s.gids = make([]uint32, n)
	}
	rows, hs, s.gids = s.runs.firsts[:n], s.runs.hs[:n], s.gids[:n]
	for i := range rows {
		rows[i] = uint32(lo + i)
		hs[i] = uint32(hash[lo+i])
	}
	return rows, hs
}

// total is the sum of the multiplicities in a group's prefix.
func (s *topPart) total(p unsafe.Pointer) *int64 {
	return (*int64)(unsafe.Add(p, (s.t.rest+2)*8))
}

// wanted reports whether an encoded row can be among those that decide the
// result of the group at p.
func (s *topPart) wanted(p, row unsafe.Pointer, vals []*columnar.Vec, at int) bool {
	if *s.total(p) < int64(s.op.need()) {
		return true
	}
	h := s.ref(p)
	last := s.pre.entry(h, h.len()-1)
	if s.pre.against(last, row, vals, at) >= 0 {
		return true
	}
	return s.op.opts.WithTies && s.few.compareEncoded(entryRow(last), row, vals, at, &s.ar) == 0
}

// mark notes that the prefix of a group is about to change.
func (s *topPart) mark(gid, hash uint32, p unsafe.Pointer) {
	s.touch(gid, hash, p)
	if f := header(p); s.op.trace != nil && *f&groupDirty == 0 {
		*f |= groupDirty
		s.dirty = append(s.dirty, gid)
	}
}

// crop drops the entries at the end that do not decide the result.
func (s *topPart) crop(h *prefixRef, total *int64) {
	for h.len() > 0 {
		i := h.len() - 1
		last := s.pre.entry(h, i)
		m := *entryMult(last)
		for s.op.opts.WithTies && i > 0 && s.peers(entryRow(s.pre.entry(h, i-1)), entryRow(last)) {
			i--
			m += *entryMult(s.pre.entry(h, i))
		}
		if *total-m < int64(s.op.need()) {
			return
		}
		for j := i; j < h.len(); j++ {
			s.pre.bury(s.pre.entry(h, j))
		}
		h.setLen(i)
		*total -= m
	}
}

// offerMany puts the rows of a chunk that are wanted in their places all at once.
func (s *topPart) offerMany(d *Part, rows, hs []uint32, vals []*columnar.Vec) {
	type candidate struct{ gid, hash, row uint32 }
	var cs []candidate
	w := s.op.rows.words
	for i, r := range rows {
		p := s.t.at(s.gids[i])
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
		s.mark(cs[lo].gid, cs[lo].hash, p)
		h := s.ref(p)
		s.pre.addRun(h, s.enc[lo*w:], hi-lo, func(i int) int64 { return d.Diff(int(cs[lo+i].row)) }, few.Cols, lo)
		h[1] &^= prefixMore // what was left out does not matter
		s.sum(h, s.total(p))
		s.crop(h, s.total(p))
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
	ptrs := make([]unsafe.Pointer, len(s.fresh))
	for i, gid := range s.fresh {
		ptrs[i] = s.t.at(gid)
	}
	keys, hash, order := s.t.keyColumns(ptrs)
	w := s.op.rows.words
	lookup(s.op.trace, keys, hash, func(lo int, g *trace.Groups) {
		vals := g.Rows.Cols[len(keys):]
		s.encode(vals, g.Rows.N)
		at := 0
		for i, end := range g.Ends {
			p := ptrs[order[lo+i]]
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
		}
	})
}

// flush appends the changes of the trace to ds.
func (s *topPart) flush(ds []*dataflow.Delta) []*dataflow.Delta {
	all := takeDirty(&s.t, &s.dirty)
	for lo := 0; lo < len(all); lo += columnar.ChunkRows {
		ids := all[lo:min(lo+columnar.ChunkRows, len(all))]
		ptrs := make([]unsafe.Pointer, len(ids))
		for i, id := range ids {
			ptrs[i] = s.t.at(id)
		}
		keys := make([]*columnar.Vec, len(s.op.layout.key))
		for c := range keys {
			keys[c] = s.t.decodeKey(c, ptrs)
		}
		ds = retractions(s.op.trace, ptrs, keys, ds)
		ds = s.contents(ptrs, ds)
	}
	return ds
}

// contents appends the rows that groups keep to ds.
func (s *topPart) contents(groups []unsafe.Pointer, ds []*dataflow.Delta) []*dataflow.Delta {
	var keys, rows []unsafe.Pointer
	var diffs []int64
	add := func() {
		b := columnar.Batch{Cols: s.decode(keys, rows), N: len(rows)}
		ds = append(ds, &dataflow.Delta{Batch: b, Diffs: diffs})
		keys, rows, diffs = keys[:0], rows[:0], nil
	}
	for _, p := range groups {
		*header(p) |= groupDurable
		h := s.ref(p)
		for i := range h.len() {
			e := s.pre.entry(h, i)
			keys, rows, diffs = append(keys, p), append(rows, entryRow(e)), append(diffs, *entryMult(e))
			if len(rows) == columnar.ChunkRows {
				add()
			}
		}
	}
	if len(rows) > 0 {
		add()
	}
	return ds
}
