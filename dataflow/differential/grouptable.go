package differential

import (
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
)

// groupTable numbers distinct keys, and keeps some words for each: the
// accelerator in front of keyed state. A row is
//
//	header   low half: NULL bits of the key if it has at most 32 columns;
//	         high half: flags and the place in the touched list
//	key      words of the codec (its mask word is the header if that has the bits)
//	rest     the user's words
//
// Keys live until remove; their numbers are then given out again.
type groupTable struct {
	keys  *rowCodec
	idx   hashIndex
	rows  rowStore
	ar    arena
	keyAt int      // first word of the codec's row: 0 or 1
	rest  int      // first word of the user's
	ents  []uint64 // room for the index entries of a chunk,
	enc   []uint64 // its encoded keys,
	one   []uint64 // and of a single row
}

const (
	groupTouched = 1<<30 - 1 // bits of the header's high half: 1 + place in the touched list, or only 1
	groupDirty   = 1 << 30   // changed since the durable form was last brought up to date
	groupDurable = 1 << 31   // the durable form has a row for the group
)

// probeChunk is how many rows are worked on at a time: their encoded keys,
// group rows and operands then stay in the first-level caches between passes.
const probeChunk = 1024

func newGroupTable(keyKinds []columnar.Kind, nonNull bool, restWords int) groupTable {
	t := groupTable{keys: newRowCodec(keyKinds, nonNull), idx: newHashIndex()}
	if t.keys.masks != 1 || len(keyKinds) > 32 {
		t.keyAt = 1
	}
	t.rest = t.keyAt + t.keys.words
	t.rows = newRowStore(t.rest + restWords)
	return t
}

// header is the flag half of the header of a row.
func header(p unsafe.Pointer) *uint32 { return (*uint32)(unsafe.Add(p, 4)) }

// at is the address of a group's row; words from rest on are the user's.
func (t *groupTable) at(gid uint32) unsafe.Pointer { return t.rows.at(gid) }

// key is the address of the codec's row of a group. With keyAt 0 its mask word
// shares the header with the flags.
func (t *groupTable) key(p unsafe.Pointer) unsafe.Pointer { return unsafe.Add(p, t.keyAt*8) }

// probe gives the groups of rows of keys, with the low halves of their hashes
// (hs[i] is of rows[i]), and makes those that are missing: their numbers in
// gids, the addresses of the user's words in ptrs. The numbers of new groups are
// appended to fresh. Addresses hold until the next call.
func (t *groupTable) probe(keys []*columnar.Vec, hs, rows, gids []uint32, ptrs []unsafe.Pointer, fresh []uint32) []uint32 {
	enc := t.scratch(len(rows))
	if t.oneWord() && !keys[0].HasNulls() {
		if keys[0].Kind() == columnar.KindInt64 {
			return t.lookupInts(keys[0].Int64s(), hs, rows, gids, ptrs, fresh)
		}
		encodeWords(keys[0], rows, enc)
		return t.lookupWords(enc, hs, gids, ptrs, fresh)
	}
	t.keys.encode(keys, rows, enc)
	return t.lookup(enc, keys, hs, rows, gids, ptrs, fresh)
}

func (t *groupTable) oneWord() bool {
	return t.keyAt == 0 && t.keys.words == 2 && len(t.keys.kinds) == 1
}

// scratch has room for n encoded keys.
func (t *groupTable) scratch(n int) []uint64 {
	if len(t.ents) < n {
		t.ents = make([]uint64, n)
	}
	if n *= t.keys.words; cap(t.enc) < n {
		t.enc = make([]uint64, n)
	}
	return t.enc[:n]
}

// encodeWords is encode of a column of one word without NULLs, without masks.
func encodeWords(v *columnar.Vec, rows []uint32, words []uint64) {
	switch v.Kind() {
	case columnar.KindInt16:
		wordsOfInts(v.Int16s(), rows, words)
	case columnar.KindInt32:
		wordsOfInts(v.Int32s(), rows, words)
	default:
		for i, r := range rows {
			words[i] = fixedWord(v, r)
		}
	}
}

func wordsOfInts[T int16 | int32](vals []T, rows []uint32, words []uint64) {
	words = words[:len(rows)]
	for i, r := range rows {
		words[i] = intWord(int64(vals[r]))
	}
}

// The lookups work in passes over short loops, so that the processor has many
// cache misses under way at a time: first the index, then the rows. What the
// first entry of a hash does not settle is left to findOrInsert.

// lookupWords is probe for keys of one word that are not NULL.
func (t *groupTable) lookupWords(words []uint64, hs, gids []uint32, ptrs []unsafe.Pointer, fresh []uint32) []uint32 {
	n := len(hs)
	ents := t.ents[:n]
	t.idx.findAll(hs, ents)
	gids, ptrs, words = gids[:n], ptrs[:n], words[:n]
	moves := t.rows.moves
	rows := &t.rows
	rest := uintptr(t.rest) * 8
	for i, e := range ents {
		if e != 0 {
			gid := uint32(e) - 1
			if p := rows.at(gid); *wordAt(p, 1) == words[i] && *(*uint32)(p) == 0 {
				gids[i] = gid
				ptrs[i] = unsafe.Add(p, rest)
				continue
			}
		}
		key := [2]uint64{1: words[i]}
		gids[i], fresh = t.findOrInsert(hs[i], unsafe.Pointer(&key), nil, 0, fresh)
		ptrs[i] = unsafe.Add(rows.at(gids[i]), rest)
	}
	t.relocate(moves, gids, ptrs)
	return fresh
}

// lookupInts is lookupWords for a column of int64.
func (t *groupTable) lookupInts(vals []int64, hs, rows, gids []uint32, ptrs []unsafe.Pointer, fresh []uint32) []uint32 {
	n := len(hs)
	ents := t.ents[:n]
	t.idx.findAll(hs, ents)
	gids, ptrs, rows = gids[:n], ptrs[:n], rows[:n]
	moves := t.rows.moves
	store := &t.rows
	rest := uintptr(t.rest) * 8
	for i, e := range ents {
		w := intWord(vals[rows[i]])
		if e != 0 {
			gid := uint32(e) - 1
			if p := store.at(gid); *wordAt(p, 1) == w && *(*uint32)(p) == 0 {
				gids[i] = gid
				ptrs[i] = unsafe.Add(p, rest)
				continue
			}
		}
		key := [2]uint64{1: w}
		gids[i], fresh = t.findOrInsert(hs[i], unsafe.Pointer(&key), nil, 0, fresh)
		ptrs[i] = unsafe.Add(store.at(gids[i]), rest)
	}
	t.relocate(moves, gids, ptrs)
	return fresh
}

// lookup is probe for keys that are encoded already.
func (t *groupTable) lookup(enc []uint64, keys []*columnar.Vec, hs, rows, gids []uint32, ptrs []unsafe.Pointer, fresh []uint32) []uint32 {
	n := len(hs)
	ents := t.ents[:n]
	t.idx.findAll(hs, ents)
	gids, ptrs, rows = gids[:n], ptrs[:n], rows[:n]
	moves := t.rows.moves
	rest := uintptr(t.rest) * 8
	base := unsafe.Pointer(unsafe.SliceData(enc))
	w := uintptr(t.keys.words) * 8
	fixed := len(t.keys.bytes) == 0
	for i, e := range ents {
		q := unsafe.Add(base, uintptr(i)*w)
		if e != 0 {
			gid := uint32(e) - 1
			p := t.rows.at(gid)
			if (fixed && t.matchFixed(p, q)) || (!fixed && t.match(p, q, keys, int(rows[i]))) {
				gids[i] = gid
				ptrs[i] = unsafe.Add(p, rest)
				continue
			}
		}
		gids[i], fresh = t.findOrInsert(hs[i], q, keys, int(rows[i]), fresh)
		ptrs[i] = unsafe.Add(t.rows.at(gids[i]), rest)
	}
	t.relocate(moves, gids, ptrs)
	return fresh
}

// relocate computes addresses anew if rows have moved meanwhile.
func (t *groupTable) relocate(moves int, gids []uint32, ptrs []unsafe.Pointer) {
	if t.rows.moves == moves {
		return
	}
	for i, gid := range gids {
		ptrs[i] = unsafe.Add(t.rows.at(gid), t.rest*8)
	}
}

// findOrInsert is the group of one encoded key, which is row `row` of keys. A new
// one is appended to fresh.
func (t *groupTable) findOrInsert(h uint32, q unsafe.Pointer, keys []*columnar.Vec, row int, fresh []uint32) (uint32, []uint32) {
	s := &t.idx.dir[uint64(h)>>(t.idx.shift&63)]
	for pos := h & s.mask; ; pos = (pos + 1) & s.mask {
		e := *s.slot(pos)
		if e == 0 {
			gid := t.insert(h, q, keys, row)
			return gid, append(fresh, gid)
		}
		if uint32(e>>32) == h && t.match(t.at(uint32(e)-1), q, keys, row) {
			return uint32(e) - 1, fresh
		}
	}
}

// matchFixed compares a group's key without Bytes columns with an encoded one.
func (t *groupTable) matchFixed(p, q unsafe.Pointer) bool {
	i := 0
	if t.keyAt == 0 {
		if uint32(*wordAt(p, 0)) != uint32(*wordAt(q, 0)) {
			return false
		}
		i = 1
	} else {
		p = unsafe.Add(p, 8)
	}
	for ; i < t.keys.words; i++ {
		if *wordAt(p, i) != *wordAt(q, i) {
			return false
		}
	}
	return true
}

// match compares a group's key with an encoded one, which is row `row` of keys.
func (t *groupTable) match(p, q unsafe.Pointer, keys []*columnar.Vec, row int) bool {
	if t.keyAt == 0 {
		if uint32(*wordAt(p, 0)) != uint32(*wordAt(q, 0)) {
			return false
		}
	} else {
		p = unsafe.Add(p, 8)
		for i := range t.keys.masks {
			if *wordAt(p, i) != *wordAt(q, i) {
				return false
			}
		}
	}
	return t.keys.same(p, q, keys, row, &t.ar)
}

// matchRow compares the key of the group at p with row `row` of keys.
func (t *groupTable) matchRow(p unsafe.Pointer, keys []*columnar.Vec, row int) bool {
	if t.keys.words == 0 {
		return true
	}
	if cap(t.one) < t.keys.words {
		t.one = make([]uint64, t.keys.words)
	}
	q := unsafe.Pointer(unsafe.SliceData(t.one))
	t.keys.encodeRow(keys, row, q)
	return t.match(p, q, keys, row)
}

func (t *groupTable) insert(h uint32, q unsafe.Pointer, keys []*columnar.Vec, row int) uint32 {
	gid := t.rows.add()
	p := t.key(t.at(gid))
	for i := range t.keys.words {
		*wordAt(p, i) = *wordAt(q, i)
	}
	if len(t.keys.bytes) > 0 {
		t.keys.tails(p, keys, row, &t.ar)
	}
	t.idx.insert(h, gid)
	return gid
}

// remove forgets a group.
func (t *groupTable) remove(h, gid uint32) {
	t.idx.remove(h, gid)
	if len(t.keys.bytes) > 0 {
		t.keys.free(t.key(t.at(gid)), &t.ar)
	}
	t.rows.remove(gid)
}

// keyRows copies the keys of groups, so that they can be decoded column by column.
func (t *groupTable) keyRows(ids []uint32) rowSet {
	w := t.keys.words
	words := make([]uint64, len(ids)*w)
	for i, id := range ids {
		copy(words[i*w:], unsafe.Slice((*uint64)(t.key(t.at(id))), w))
	}
	return newRowSet(words, w, allRows(len(ids)))
}

// keyColumns are the key columns of groups.
func (t *groupTable) keyColumns(ids []uint32) []*columnar.Vec {
	set := t.keyRows(ids)
	cols := make([]*columnar.Vec, len(t.keys.kinds))
	for c := range cols {
		cols[c] = t.keys.decode(c, set, &t.ar)
	}
	return cols
}

// hashOf is the hash of the key of a group.
func (t *groupTable) hashOf(id uint32) uint64 {
	return columnar.HashRow(t.keyColumns([]uint32{id}), 0)
}

// bytes is the memory of the table.
func (t *groupTable) bytes() int64 {
	return int64(t.rows.size)*int64(t.rows.stride) + t.idx.bytes() + t.ar.size()
}
