package differential

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// The durable form of a Reduce is traces: one of the groups, (key columns,
// slots as bytes); one a distinct set, (key columns, value, counters as bytes);
// one a value set, (key columns, value), which is kept up to date epoch by
// epoch. The others are brought up to date by flush, before a checkpoint: a
// group that changes in every epoch is written once for all of them. After a
// restart nothing is read but what is touched: see loadGroups.

// makeTraces makes the durable form.
func (r *reduce) makeTraces(c *Circuit) {
	p := r.plan
	k := len(p.keyCols)
	with := func(kinds ...columnar.Kind) []columnar.Kind {
		return append(append([]columnar.Kind(nil), p.keyKinds...), kinds...)
	}
	r.groups = c.NewTrace(with(columnar.KindBytes), allColumns(k))
	for _, s := range p.sets {
		r.sets = append(r.sets, c.NewTrace(with(s.kind, columnar.KindBytes), allColumns(k+1)))
	}
	for _, s := range p.values {
		r.values = append(r.values, c.NewTrace(with(s.kind), allColumns(k)))
	}
}

// appendSlots appends the durable form of the slots at p.
func (s *spillPools) appendSlots(dst []byte, accs []*accumulator, p unsafe.Pointer) []byte {
	for _, a := range accs {
		switch a.op {
		case accBest: // comes from its value set
		case accFloat, accProduct:
			dst = s.wide.appendState(dst, floatSlots(p, a.at))
		case accNumeric:
			dst = s.nums.appendState(dst, numericSlots(p, a.at))
		case accLargest:
			if a.kind == columnar.KindBytes {
				dst = s.appendLargest(dst, wordAt(p, a.at))
				continue
			}
			for i := range a.words {
				dst = binary.LittleEndian.AppendUint64(dst, *wordAt(p, a.at+i))
			}
		case accXor:
			dst = binary.LittleEndian.AppendUint64(dst, *wordAt(p, a.at))
		default:
			for i := range a.words {
				dst = binary.AppendVarint(dst, int64(*wordAt(p, a.at+i)))
			}
		}
	}
	return dst
}

func (s *spillPools) appendLargest(dst []byte, w *uint64) []byte {
	slots := (*[3]uint64)(unsafe.Pointer(w))
	if slots[2] == 0 {
		return binary.AppendUvarint(dst, 0)
	}
	dst = binary.AppendUvarint(dst, slots[1]&lenMask+1)
	return appendBytes(dst, (*[2]uint64)(unsafe.Pointer(w)), &s.ar)
}

// stateReader reads what appendSlots wrote.
type stateReader struct{ b []byte }

func (r *stateReader) varint() int64 {
	x, n := binary.Varint(r.b)
	r.skip(n)
	return x
}

func (r *stateReader) uvarint() uint64 {
	x, n := binary.Uvarint(r.b)
	r.skip(n)
	return x
}

func (r *stateReader) word() uint64 { return binary.LittleEndian.Uint64(r.bytes(8)) }

func (r *stateReader) bytes(n int) []byte {
	b := r.b[:min(n, len(r.b))]
	r.skip(n)
	return b
}

func (r *stateReader) skip(n int) {
	if n <= 0 || n > len(r.b) {
		panic(fmt.Sprintf("differential: the durable state of a group is cut short (%d bytes left)", len(r.b)))
	}
	r.b = r.b[n:]
}

// loadSlots sets the slots at p, which are zero, from their durable form.
func (s *spillPools) loadSlots(b []byte, accs []*accumulator, p unsafe.Pointer) {
	r := stateReader{b}
	for _, a := range accs {
		switch a.op {
		case accBest:
		case accFloat, accProduct:
			s.wide.loadState(&r, floatSlots(p, a.at))
		case accNumeric:
			s.nums.loadState(&r, numericSlots(p, a.at))
		case accLargest:
			if a.kind != columnar.KindBytes {
				for i := range a.words {
					*wordAt(p, a.at+i) = r.word()
				}
			} else if n := r.uvarint(); n > 0 {
				var v []byte
				if n > 1 {
					v = r.bytes(int(n - 1))
				}
				w := keepBytes(v, &s.ar)
				*(*[3]uint64)(unsafe.Pointer(wordAt(p, a.at))) = [3]uint64{w[0], w[1], 1}
			}
		case accXor:
			*wordAt(p, a.at) = r.word()
		default:
			for i := range a.words {
				*wordAt(p, a.at+i) = uint64(r.varint())
			}
		}
	}
}

// appendState appends the durable form of a float sum: 0 if it is empty, 1 and
// its words, or 2 and what a wideSum holds.
func (p *wideSums) appendState(dst []byte, w *[floatWords]uint64) []byte {
	i := w[3] >> wideShift
	if i == 0 {
		if w[3] == 0 {
			return append(dst, 0)
		}
		dst = append(dst, 1)
		dst = binary.AppendUvarint(dst, w[3])
		for _, x := range w[:3] {
			dst = binary.LittleEndian.AppendUint64(dst, x)
		}
		return dst
	}
	a := p.all[i-1]
	dst = append(dst, 2)
	dst = binary.AppendVarint(dst, a.nan)
	dst = binary.AppendVarint(dst, a.posInf)
	dst = binary.AppendVarint(dst, a.negInf)
	for _, x := range a.limbs {
		dst = binary.AppendUvarint(dst, x)
	}
	return dst
}

func (p *wideSums) loadState(r *stateReader, w *[floatWords]uint64) {
	switch r.bytes(1)[0] {
	case 1:
		w[3] = r.uvarint()
		for i := range 3 {
			w[i] = r.word()
		}
	case 2:
		i := p.alloc()
		a := p.all[i]
		a.nan, a.posInf, a.negInf = r.varint(), r.varint(), r.varint()
		for j := range a.limbs {
			a.limbs[j] = r.uvarint()
		}
		w[3] = uint64(i+1) << wideShift
	}
}

// appendState appends the durable form of a numeric sum: 0 if it is empty, 1 and
// its words, 3 and its words and counts, or 2 and what the decimal.Acc holds.
func (p *numericSums) appendState(dst []byte, w *[numericWords]uint64) []byte {
	if i, ok := accOf(w[3]); ok {
		dst = append(dst, 2)
		st := p.all[i].AppendState(nil)
		return append(binary.AppendUvarint(dst, uint64(len(st))), st...)
	}
	if *w == [numericWords]uint64{} {
		return append(dst, 0)
	}
	form := byte(1)
	if w[3]&sumCounts != 0 {
		form = 3
	}
	dst = append(dst, form)
	for _, x := range w[:3] {
		dst = binary.AppendVarint(dst, int64(x))
	}
	dst = binary.AppendUvarint(dst, w[3]&sumScale)
	if form == 1 {
		return dst
	}
	c := &p.counts[w[3]>>sumIndexAt-1]
	for i, n := range c.n {
		dst = binary.AppendVarint(dst, n)
		if n != 0 {
			dst = binary.AppendUvarint(dst, uint64(c.scale[i]))
		}
	}
	return dst
}

func (p *numericSums) loadState(r *stateReader, w *[numericWords]uint64) {
	switch form := r.bytes(1)[0]; form {
	case 1, 3:
		for i := range 3 {
			w[i] = uint64(r.varint())
		}
		w[3] = r.uvarint()
		for range int(form/3) * len(scaleCounts{}.n) {
			if n := r.varint(); n != 0 {
				*p.count(w, r.uvarint()) = n
			}
		}
	case 2:
		i := p.alloc()
		if err := p.all[i].LoadState(r.bytes(int(r.uvarint()))); err != nil {
			panic(fmt.Sprintf("differential: %v", err))
		}
		w[3] = sumAcc | uint64(i+1)<<sumIndexAt
	}
}

// sortByHash sorts n rows of key columns by their hash.
func sortByHash(cols []*columnar.Vec, n int) (sorted []*columnar.Vec, hash []uint64, order []uint32) {
	hash = make([]uint64, n)
	columnar.HashCols(cols, n, hash)
	a := columnar.GetSlice[columnar.Keyed](n)
	tmp := columnar.GetSlice[columnar.Keyed](n)
	for i, h := range hash {
		a[i] = columnar.Keyed{Key: h, Row: uint32(i)}
	}
	columnar.SortKeyed(a, tmp)
	order = make([]uint32, n)
	for i := range a {
		hash[i], order[i] = a[i].Key, a[i].Row
	}
	columnar.PutSlice(a)
	columnar.PutSlice(tmp)
	sorted = make([]*columnar.Vec, len(cols))
	for c, v := range cols {
		sorted[c] = v.Gather(order)
	}
	return sorted, hash, order
}

// lookup finds the rows of keys, sorted by hash, in all partitions of a trace:
// g.Ends[i] is about key lo+i.
func lookup(t *trace.Trace, keys []*columnar.Vec, hash []uint64, each func(lo int, g *trace.Groups)) {
	spines := t.Spines()
	for lo := 0; lo < len(hash); {
		p := columnar.PartitionOf(hash[lo], len(spines))
		hi := lo + 1
		for hi < len(hash) && columnar.PartitionOf(hash[hi], len(spines)) == p {
			hi++
		}
		part := make([]*columnar.Vec, len(keys))
		for c, v := range keys {
			part[c] = v.Slice(lo, hi)
		}
		each(lo, spines[p].Reader().Groups(part, hash[lo:hi]))
		lo = hi
	}
}

// loadGroups gives groups that are new to the table what the trace has of them.
func (r *reduce) loadGroups(s *reducePart, fresh []uint32) {
	keys, hash, order := sortByHash(s.t.keyColumns(fresh), len(fresh))
	lookup(r.groups, keys, hash, func(lo int, g *trace.Groups) {
		at := 0
		blob := g.Rows.Cols[len(keys)]
		for i, end := range g.Ends {
			if end > at {
				p := s.t.at(fresh[order[lo+i]])
				*header(p) |= groupDurable
				s.pools.loadSlots(blob.Bytes(at), s.plan.accs, unsafe.Add(p, s.t.rest*8))
				s.loadPrefixes(p, hash[lo+i])
				if s.plan.canFail && s.fails(unsafe.Add(p, s.t.rest*8)) {
					s.failing++
				}
			}
			at = end
		}
	})
}

// loadPrefixes fills the prefixes of a group from the traces, as before the epoch.
func (s *reducePart) loadPrefixes(p unsafe.Pointer, hash uint64) {
	for _, v := range s.values {
		for i := range v.pre {
			v.ref(p, i)[1] |= prefixMore
			s.setBest(v, i, p, hash)
		}
	}
}

// loadEntries gives entries that are new to the table what the trace has of them.
func (r *reduce) loadEntries(s *reducePart, set int, fresh []uint32) {
	d := s.sets[set]
	keys, hash, order := sortByHash(s.entryKeys(d, fresh), len(fresh))
	lookup(r.sets[set], keys, hash, func(lo int, g *trace.Groups) {
		at := 0
		blob := g.Rows.Cols[len(keys)]
		for i, end := range g.Ends {
			if end > at {
				p := d.t.at(fresh[order[lo+i]])
				*header(p) |= groupDurable
				b := stateReader{blob.Bytes(at)}
				for f := range d.set.feeds {
					*wordAt(p, d.t.rest+f) = uint64(b.varint())
				}
			}
			at = end
		}
	})
}

// entryKeys are the key columns of entries: those of the group, and the value.
func (s *reducePart) entryKeys(d *distinctPart, ids []uint32) []*columnar.Vec {
	groups := make([]uint32, len(ids))
	for i, id := range ids {
		groups[i] = d.group(d.t.at(id))
	}
	return append(s.t.keyColumns(groups), d.t.keys.decode(1, d.t.keyRows(ids), &d.t.ar))
}

// flush brings the durable form up to date at an epoch that is complete, or
// about `limit` rows of it.
func (r *reduce) flush(epoch dataflow.Epoch, limit int) {
	if r.groups == nil {
		return
	}
	// Entries first: groups outlive theirs.
	for i, t := range r.sets {
		var ds []*dataflow.Delta
		for _, s := range r.parts {
			if s != nil && limit > 0 {
				d := s.sets[i]
				ids := takeDirty(&d.t, &d.dirty, limit)
				limit -= len(ids)
				ds = s.flushEntries(d, t, ids, ds)
			}
		}
		t.Append(epoch, ds)
	}
	var ds []*dataflow.Delta
	for _, s := range r.parts {
		if s != nil && limit > 0 {
			ids := takeDirty(&s.t, &s.dirty, limit)
			limit -= len(ids)
			ds = s.flushGroups(r.groups, ids, ds)
			s.waiting = 0
		}
	}
	r.groups.Append(epoch, ds)
}

// backlog is how many rows flush has to write.
func (r *reduce) backlog() int {
	n := 0
	for _, s := range r.parts {
		if s == nil {
			continue
		}
		n += len(s.dirty)
		for _, d := range s.sets {
			n += len(d.dirty)
		}
	}
	return n
}

// takeDirty takes up to `limit` numbers off a dirty list, each once.
func takeDirty(t *groupTable, dirty *[]uint32, limit int) []uint32 {
	list := *dirty
	if limit < len(list) {
		*dirty = list[limit:]
		list = list[:limit:limit]
	} else {
		*dirty = nil
	}
	ids := list[:0]
	for _, id := range list {
		// A number may be listed twice: it was given out again.
		if h := header(t.at(id)); *h&groupDirty != 0 {
			*h &^= groupDirty
			ids = append(ids, id)
		}
	}
	return ids
}

// retractions appends the negation of what tr has of those of the rows that have
// a durable form.
func retractions(tr *trace.Trace, t *groupTable, ids []uint32, keys []*columnar.Vec, ds []*dataflow.Delta) []*dataflow.Delta {
	var idx []uint32
	for i, id := range ids {
		if *header(t.at(id))&groupDurable != 0 {
			idx = append(idx, uint32(i))
		}
	}
	old := make([]*columnar.Vec, len(keys))
	for c, v := range keys {
		old[c] = v.Gather(idx)
	}
	old, hash, _ := sortByHash(old, len(idx))
	lookup(tr, old, hash, func(_ int, g *trace.Groups) {
		d := &dataflow.Delta{Batch: g.Rows, Diffs: make([]int64, g.Rows.N)}
		for i := range d.Diffs {
			d.Diffs[i] = -1
			if g.Diffs != nil {
				d.Diffs[i] = -g.Diffs[i]
			}
		}
		ds = append(ds, d)
	})
	return ds
}

func (s *reducePart) flushGroups(tr *trace.Trace, all []uint32, ds []*dataflow.Delta) []*dataflow.Delta {
	for lo := 0; lo < len(all); lo += columnar.ChunkRows {
		ids := all[lo:min(lo+columnar.ChunkRows, len(all))]
		keys := s.t.keyColumns(ids)
		ds = retractions(tr, &s.t, ids, keys, ds)
		hash := make([]uint64, len(ids))
		columnar.HashCols(keys, len(ids), hash)
		var live []uint32
		blob := columnar.NewBuilder(columnar.KindBytes, len(ids))
		for i, id := range ids {
			p := s.t.at(id)
			*header(p) &^= groupDurable
			q := unsafe.Add(p, s.t.rest*8)
			if s.empty(q) && s.vacant(id, p) {
				s.forget(ids[i], uint32(hash[i]))
				continue
			}
			*header(p) |= groupDurable
			live = append(live, uint32(i))
			blob.Extend(func(dst []byte) []byte { return s.pools.appendSlots(dst, s.plan.accs, q) })
		}
		ds = append(ds, durableRows(keys, live, blob))
	}
	return ds
}

// forget takes an empty group out of the table.
func (s *reducePart) forget(gid, hash uint32) {
	if s.plan.opts.Global {
		return
	}
	s.t.remove(hash, gid)
}

// durableRows is the given rows of keys, each with its blob.
func durableRows(keys []*columnar.Vec, rows []uint32, blob *columnar.Builder) *dataflow.Delta {
	cols := make([]*columnar.Vec, 0, len(keys)+1)
	for _, v := range keys {
		cols = append(cols, v.Gather(rows))
	}
	return &dataflow.Delta{Batch: columnar.Batch{Cols: append(cols, blob.Build()), N: len(rows)}}
}

func (s *reducePart) flushEntries(d *distinctPart, tr *trace.Trace, all []uint32, ds []*dataflow.Delta) []*dataflow.Delta {
	for lo := 0; lo < len(all); lo += columnar.ChunkRows {
		ids := all[lo:min(lo+columnar.ChunkRows, len(all))]
		keys := s.entryKeys(d, ids)
		ds = retractions(tr, &d.t, ids, keys, ds)
		n := len(keys) - 1
		groupHash, valueHash := make([]uint64, len(ids)), make([]uint64, len(ids))
		columnar.HashCols(keys[:n], len(ids), groupHash)
		columnar.HashCols(keys[n:], len(ids), valueHash)
		var live []uint32
		blob := columnar.NewBuilder(columnar.KindBytes, len(ids))
		for i, id := range ids {
			p := d.t.at(id)
			*header(p) &^= groupDurable
			q := unsafe.Add(p, d.t.rest*8)
			if d.isZero(q) {
				s.dropEntry(d, p, ids[i], entryHash(uint32(groupHash[i]), valueHash[i]))
				continue
			}
			*header(p) |= groupDurable
			live = append(live, uint32(i))
			blob.Extend(func(dst []byte) []byte {
				for f := range d.set.feeds {
					dst = binary.AppendVarint(dst, int64(*wordAt(q, f)))
				}
				return dst
			})
		}
		ds = append(ds, durableRows(keys, live, blob))
	}
	return ds
}

// cached is the memory of the tables.
func (r *reduce) cached() int64 {
	var n int64
	for _, s := range r.parts {
		if s == nil {
			continue
		}
		n += s.t.bytes() + s.pools.ar.size() + int64(len(s.pools.wide.all))*8*(wideLimbs+4)
		for _, d := range s.sets {
			n += d.t.bytes()
		}
	}
	return n
}
