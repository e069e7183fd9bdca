package differential

import (
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// topPart is a partition of a TopK: a table of groups, each with a prefix of its
// rows (see prefixRef). When a group is first touched in an epoch its visible
// rows are copied; at the end, they are compared with those that are visible
// then. Input that may retract comes sorted by group and row, out of the batch
// that also goes to the trace; input that only adds is offered row by row, most
// of which a comparison with the group's last row turns away.
type topPart struct {
	op   *topK
	t    groupTable
	ar   arena
	dead []uint64
	pre  prefixes
	src  prefixSource

	// plain: every kept row is visible, and rows are only added. Then what is
	// added and dropped is noted as it happens, and nothing needs comparing.
	plain   bool
	touched []touchedGroup
	before  []visible // of all touched groups, one after the other
	ends    []uint32  // where the rows of a touched group end in before
	words   []uint64  // the rows of before and of what is emitted
	after   []visible
	dirty   []uint32

	// What changed, until it is emitted.
	changes []topChange

	runs              keyRuns
	gids, fresh, rows []uint32
	ptrs              []unsafe.Pointer
	enc               []uint64
	keySel, rowSel    []uint32
	few               rowCodec // of the order columns only
}

// visible is a row of the result: where its words are, how often it occurs, and
// the number of its first occurrence.
type visible struct {
	row    uint32 // index into words
	mult   int64
	number int64
}

// topChange is a row to emit, of a group by its place in the touched list.
type topChange struct {
	group, row   uint32
	diff, number int64
}

func newTopPart(t *topK) *topPart {
	s := &topPart{op: t}
	keyKinds := make([]columnar.Kind, len(t.layout.key))
	for i, c := range t.layout.key {
		keyKinds[i] = t.layout.kinds[c]
	}
	s.t = newGroupTable(keyKinds, false, 4)
	s.few = *t.rows
	s.few.kinds = s.few.kinds[:t.layout.ordered]
	s.pre = newPrefixes(t.rows, false, t.need(), &s.ar, &s.dead)
	k := len(keyKinds)
	vals := allColumns(len(t.layout.laid))[k:]
	s.src = prefixSource{table: &s.t, keys: allColumns(k), vals: vals}
	return s
}

// A group's row has, after the key, its prefix, and two more words: see total.
func (s *topPart) ref(p unsafe.Pointer) *prefixRef {
	return (*prefixRef)(unsafe.Add(p, s.t.rest*8))
}

// consume brings the epoch's changes, sorted by group and row, to the prefixes.
func (s *topPart) consume(b *trace.Batch, old trace.Reader) {
	s.src.batches = append(s.src.batches[:0], old.Batches...)
	goesOn := false
	for i := range b.Chunks() {
		goesOn = s.consumeChunk(b, i, goesOn)
	}
	clear(s.src.batches)
	s.src.batches = s.src.batches[:0]
	s.src.scan.close()
}

// consumeChunk consumes chunk i of b. goesOn says that its first group is the last
// one of the chunk before; it returns that of the next chunk.
func (s *topPart) consumeChunk(b *trace.Batch, i int, goesOn bool) (open bool) {
	c := b.Chunk(i)
	k := len(s.op.layout.key)
	open = s.runs.find(b, i, s.src.keys)
	s.room(len(s.runs.firsts))
	s.fresh = s.t.probe(c.Cols[:k], s.runs.hs, s.runs.firsts, s.gids, s.ptrs, s.fresh[:0])
	if s.op.cold {
		s.loadPrefixes()
	}
	s.src.batches = append(s.src.batches, b)
	vals := c.Cols[k:]
	s.encode(vals, c.N)
	w := s.op.rows.words
	for g, first := range s.runs.firsts {
		lo, n := int(first), int(s.runs.ends[g]-first)
		gid := s.gids[g]
		p := unsafe.Add(s.ptrs[g], -s.t.rest*8)
		h := s.ref(p)
		enc := s.enc[lo*w:]
		if !(goesOn && g == 0) && h.more() && h.len() > 0 &&
			s.pre.against(s.pre.entry(h, h.len()-1), unsafe.Pointer(&enc[0]), vals, lo) < 0 {
			continue // beyond what is kept
		}
		s.touch(gid, s.runs.hs[g], p)
		s.pre.addRun(h, enc, n, func(i int) int64 { return c.Diff(lo + i) }, vals, lo)
		// While rows of the group are still to come, the trace must not be asked:
		// it would give them, too.
		if !open || g < len(s.runs.firsts)-1 {
			s.fill(h, p, c.Hash[lo])
		}
	}
	s.src.batches = s.src.batches[:len(s.src.batches)-1]
	return open
}

// room makes room for n groups.
func (s *topPart) room(n int) {
	if len(s.gids) < n {
		s.gids, s.ptrs = make([]uint32, n), make([]unsafe.Pointer, n)
	}
}

// encode encodes the first n rows of vals.
func (s *topPart) encode(vals []*columnar.Vec, n int) {
	if need := n * s.op.rows.words; cap(s.enc) < need {
		s.enc = make([]uint64, need)
	}
	s.enc = s.enc[:n*s.op.rows.words]
	s.op.rows.encode(vals, s.upTo(n), s.enc)
}

func (s *topPart) upTo(n int) []uint32 {
	for len(s.rows) < n {
		s.rows = append(s.rows, uint32(len(s.rows)))
	}
	return s.rows[:n]
}

// touch copies the visible rows of a group that is touched for the first time
// in the epoch.
func (s *topPart) touch(gid, hash uint32, p unsafe.Pointer) {
	f := header(p)
	if *f&groupTouched != 0 {
		return
	}
	s.touched = append(s.touched, touchedGroup{gid, hash})
	*f |= uint32(len(s.touched))
	if s.plain {
		return
	}
	s.before = s.visible(s.ref(p), s.before)
	s.ends = append(s.ends, uint32(len(s.before)))
}

// visible appends the rows of a prefix that belong to the result.
func (s *topPart) visible(h *prefixRef, out []visible) []visible {
	lo, hi := s.op.opts.Offset, s.op.opts.Offset+s.op.opts.Limit
	n := int64(0)
	var last unsafe.Pointer
	for i := range h.len() {
		e := s.pre.entry(h, i)
		m := max(*entryMult(e), 0)
		from, to := max(n, lo), n+m
		switch {
		case n < hi:
			if to > lo && m > 0 {
				last = entryRow(e)
			}
			if !s.op.opts.WithTies {
				to = min(to, hi)
			}
		case !s.op.opts.WithTies || last == nil || !s.peers(last, entryRow(e)):
			return out
		}
		n += m
		if from < to {
			out = append(out, visible{s.copyRow(entryRow(e)), to - from, from + 1})
		}
	}
	return out
}

// peers reports whether rows are equal in the order columns.
func (s *topPart) peers(p, q unsafe.Pointer) bool {
	return s.op.rows.compareTo(s.op.layout.ordered, p, q, &s.ar) == 0
}

func (s *topPart) copyRow(p unsafe.Pointer) uint32 {
	at := len(s.words)
	s.words = append(s.words, unsafe.Slice((*uint64)(p), s.op.rows.words)...)
	return uint32(at / s.op.rows.words)
}

// fill makes sure that a prefix has the rows that decide the result, and no more
// than it should.
func (s *topPart) fill(h *prefixRef, p unsafe.Pointer, hash uint64) {
	keep, ok := s.decided(h)
	for !ok {
		want, _ := s.pre.bounds(h)
		s.pre.refill(h, &s.src, p, hash, max(want-h.len(), want/2, 1))
		keep, ok = s.decided(h)
	}
	s.pre.trim(h, keep)
}

// decided reports whether the result is known from the prefix, and how many of
// its entries that takes.
func (s *topPart) decided(h *prefixRef) (keep int, ok bool) {
	need := int64(s.pre.need)
	n := int64(0)
	var last unsafe.Pointer
	for i := range h.len() {
		e := s.pre.entry(h, i)
		m := max(*entryMult(e), 0)
		if n >= need {
			if !s.op.opts.WithTies {
				return i, true
			}
			if m > 0 && !s.peers(last, entryRow(e)) {
				return i + 1, true // it is the proof that there are no more peers
			}
		}
		if n += m; m > 0 {
			last = entryRow(e)
		}
	}
	return h.len(), !h.more() || n >= need && !s.op.opts.WithTies
}

// finish ends an epoch: it emits what changed.
func (s *topPart) finish(out emitter) {
	var lo uint32
	for i, g := range s.touched {
		p := s.t.at(g.gid)
		*header(p) &^= groupTouched
		if s.plain {
			continue
		}
		s.after = s.visible(s.ref(p), s.after[:0])
		before := s.before[lo:s.ends[i]]
		lo = s.ends[i]
		if s.op.opts.RowNumber {
			s.compareNumbers(uint32(i), before, s.after)
		} else {
			s.compareRows(uint32(i), before, s.after)
		}
	}
	var keys rowSet
	if len(s.changes) > 0 {
		gids := make([]uint32, len(s.touched))
		for i, g := range s.touched {
			gids[i] = g.gid
		}
		keys = s.t.keyRows(gids)
	}
	for lo := 0; lo < len(s.changes); lo += columnar.ChunkRows {
		s.emit(keys, s.changes[lo:min(lo+columnar.ChunkRows, len(s.changes))], out)
	}
	for _, g := range s.touched {
		p := s.t.at(g.gid)
		if h := s.ref(p); h.len() == 0 && !h.more() && *header(p)&(groupDirty|groupDurable) == 0 {
			s.t.remove(g.hash, g.gid)
		}
	}
	for _, w := range s.dead {
		freeBytes(w, &s.ar)
	}
	s.touched, s.before, s.ends = emptied(s.touched), emptied(s.before), emptied(s.ends)
	s.words, s.changes, s.dead = emptied(s.words), emptied(s.changes), emptied(s.dead)
}

func (s *topPart) rowAt(i uint32) unsafe.Pointer {
	return unsafe.Pointer(&s.words[int(i)*s.op.rows.words])
}

// compareRows notes the difference of two sorted lists of rows.
func (s *topPart) compareRows(group uint32, before, after []visible) {
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		c := 0
		switch {
		case i == len(before):
			c = 1
		case j == len(after):
			c = -1
		default:
			c = s.op.rows.compare(s.rowAt(before[i].row), s.rowAt(after[j].row), &s.ar)
		}
		switch {
		case c < 0:
			s.changes = append(s.changes, topChange{group: group, row: before[i].row, diff: -before[i].mult})
			i++
		case c > 0:
			s.changes = append(s.changes, topChange{group: group, row: after[j].row, diff: after[j].mult})
			j++
		default:
			if d := after[j].mult - before[i].mult; d != 0 {
				s.changes = append(s.changes, topChange{group: group, row: after[j].row, diff: d})
			}
			i++
			j++
		}
	}
}

// compareNumbers notes the numbers that are of other rows than before.
func (s *topPart) compareNumbers(group uint32, before, after []visible) {
	i, j := 0, 0
	var bi, aj int64 // occurrences of before[i] and after[j] that are done
	for i < len(before) || j < len(after) {
		n := int64(1<<63 - 1)
		if i < len(before) {
			n = before[i].number + bi
		}
		if j < len(after) {
			n = min(n, after[j].number+aj)
		}
		was := i < len(before) && before[i].number+bi == n
		is := j < len(after) && after[j].number+aj == n
		if !was || !is || s.op.rows.compare(s.rowAt(before[i].row), s.rowAt(after[j].row), &s.ar) != 0 {
			if was {
				s.changes = append(s.changes, topChange{group, before[i].row, -1, n})
			}
			if is {
				s.changes = append(s.changes, topChange{group, after[j].row, 1, n})
			}
		}
		if was {
			if bi++; bi == before[i].mult {
				i, bi = i+1, 0
			}
		}
		if is {
			if aj++; aj == after[j].mult {
				j, aj = j+1, 0
			}
		}
	}
}

// emit emits changes as a delta. keys are those of the touched groups.
func (s *topPart) emit(keys rowSet, cs []topChange, out emitter) {
	s.keySel, s.rowSel = s.keySel[:0], s.rowSel[:0]
	diffs := make([]int64, len(cs))
	for i, c := range cs {
		s.keySel = append(s.keySel, c.group)
		s.rowSel = append(s.rowSel, c.row)
		diffs[i] = c.diff
	}
	keys.sel = s.keySel
	cols := s.op.layout.restore(s.decode(keys, newRowSet(s.words, s.op.rows.words, s.rowSel)))
	if s.op.opts.RowNumber {
		v := columnar.MakeFixed(columnar.KindInt64, len(cs))
		ns := v.Int64s()
		for i, c := range cs {
			ns[i] = c.number
		}
		cols = append(cols, v)
	}
	out.Emit(0, &dataflow.Delta{Batch: columnar.Batch{Cols: cols, N: len(cs)}, Diffs: diffs})
}

// decode makes the layout's columns of rows, each with its group.
func (s *topPart) decode(keys, rows rowSet) []*columnar.Vec {
	cols := make([]*columnar.Vec, 0, len(s.op.layout.laid))
	for c := range s.op.layout.key {
		cols = append(cols, s.t.keys.decode(c, keys, &s.t.ar))
	}
	for c := range s.op.rows.kinds {
		cols = append(cols, s.op.rows.decode(c, rows, &s.ar))
	}
	return cols
}

// loadPrefixes lets groups that are new to the table be read from the trace.
func (s *topPart) loadPrefixes() {
	if len(s.fresh) == 0 {
		return
	}
	for _, gid := range s.fresh {
		p := s.t.at(gid)
		h := s.ref(p)
		h[1] |= prefixMore
		s.fill(h, p, s.t.hashOf(gid))
	}
}
