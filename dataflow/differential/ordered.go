package differential

import (
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
)

// An ordered prefix is the first rows of a group in some order, with their
// multiplicities; all rows of the group are in a trace. It holds
//
//	every row of the group up to its last entry, and none after it,
//
// which is why what comes after the last entry costs nothing here, and why a
// deletion finds the next row without looking at the group: in the prefix, or,
// when that has run out, by one search in the trace from the last entry on
// (refill), which is kept for that even when it has multiplicity 0 itself. The
// prefix grows up to a bound and is then cut. Both bounds adapt to the group:
// each refill that had to pass over many rows which had been deleted doubles
// them, so that a queue at the front of a large group stays cheap.
//
// An entry is its multiplicity and the row in words. Entries of a group are one
// block of an arena; two words of the group's row tell where:
//
//	w[0]  bits 0-33: block, 0 if none; bits 34-39: log2 of its capacity in
//	      entries; bits 40-45: log2 of the growth of the bounds
//	w[1]  bits 0-31: entries; bit 32: the trace may have more rows
type prefixRef [2]uint64

const (
	prefixRefMask  = 1<<34 - 1
	prefixCapShift = 34
	prefixGrow     = 40
	prefixMore     = 1 << 32
	maxPrefixGrow  = 12
)

// prefixes is what the prefixes of one kind share.
type prefixes struct {
	rows   *rowCodec
	desc   bool // the order is the reverse of the rows' physical order
	stride int  // words of an entry
	lead   int  // first value word of a row, < 0 if there is none or many masks
	ar     *arena
	dead   *[]uint64 // second words of Bytes values to free when the epoch has ended
	need   int       // positive multiplicity that is wanted at the front
	whole  bool      // merge cuts nothing off
}

func newPrefixes(rows *rowCodec, desc bool, need int, ar *arena, dead *[]uint64) prefixes {
	o := prefixes{rows: rows, desc: desc, stride: 1 + rows.words, lead: -1, ar: ar, dead: dead, need: need}
	if rows.masks <= 1 && len(rows.kinds) > 0 {
		o.lead = rows.offs[0]
	}
	return o
}

func (h *prefixRef) len() int     { return int(uint32(h[1])) }
func (h *prefixRef) more() bool   { return h[1]&prefixMore != 0 }
func (h *prefixRef) grow() int    { return int(h[0] >> prefixGrow & 63) }
func (h *prefixRef) cap() int     { return 1 << (h[0] >> prefixCapShift & 63) }
func (h *prefixRef) none() bool   { return h[0]&prefixRefMask == 0 }
func (h *prefixRef) setLen(n int) { h[1] = h[1]&^(1<<32-1) | uint64(n) }

// entry is the place of entry i: its multiplicity, then its row.
func (o *prefixes) entry(h *prefixRef, i int) unsafe.Pointer {
	return unsafe.Add(o.ar.at(h[0]&prefixRefMask), i*o.stride*8)
}

func entryMult(e unsafe.Pointer) *int64        { return (*int64)(e) }
func entryRow(e unsafe.Pointer) unsafe.Pointer { return unsafe.Add(e, 8) }

// against orders the row of an entry and an encoded row that has no tails: row
// `at` of cols.
func (o *prefixes) against(e, row unsafe.Pointer, cols []*columnar.Vec, at int) int {
	p := entryRow(e)
	if o.lead >= 0 && (o.rows.masks == 0 || *wordAt(p, 0)|*wordAt(row, 0) == 0) {
		// Without NULLs the first words nearly always tell.
		if a, b := *wordAt(p, o.lead), *wordAt(row, o.lead); a != b {
			if (a < b) != o.desc {
				return -1
			}
			return 1
		}
	}
	c := o.rows.compareEncoded(p, row, cols, at, o.ar)
	if o.desc {
		return -c
	}
	return c
}

// add changes the multiplicity of a row: the encoded row `at` of cols, without
// tails. It gives the entry, or -1 if the row is beyond the prefix.
func (o *prefixes) add(h *prefixRef, row unsafe.Pointer, mult int64, cols []*columnar.Vec, at int) int {
	n := h.len()
	lo, hi := 0, n
	if h.more() {
		if n == 0 {
			return -1
		}
		switch c := o.against(o.entry(h, n-1), row, cols, at); {
		case c < 0:
			return -1
		case c == 0:
			*entryMult(o.entry(h, n-1)) += mult
			return n - 1
		}
		hi--
	}
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		e := o.entry(h, m)
		switch c := o.against(e, row, cols, at); {
		case c < 0:
			lo = m + 1
		case c > 0:
			hi = m
		default:
			if *entryMult(e) += mult; *entryMult(e) == 0 {
				o.remove(h, m)
			}
			return m
		}
	}
	o.insertNew(h, lo, row, mult, cols, at)
	return lo
}

// insertNew makes entry i of an encoded row, which is row `at` of cols.
func (o *prefixes) insertNew(h *prefixRef, i int, row unsafe.Pointer, mult int64, cols []*columnar.Vec, at int) {
	o.rows.tails(row, cols, at, o.ar)
	o.insert(h, i, row, mult)
	o.rows.untail(row)
}

// addRun adds n encoded rows in ascending order: the rows from `at` on of cols.
// Long runs are merged.
func (o *prefixes) addRun(h *prefixRef, enc []uint64, n int, diff func(i int) int64, cols []*columnar.Vec, at int) {
	row := func(i int) (unsafe.Pointer, int) {
		if o.desc {
			i = n - 1 - i
		}
		return unsafe.Pointer(&enc[i*o.rows.words]), i
	}
	if n > 4 {
		o.merge(h, row, n, diff, cols, at)
		return
	}
	for i := range n {
		r, j := row(i)
		if o.add(h, r, diff(j), cols, at+j) < 0 {
			break // so are those after it
		}
	}
}

// merge is addRun by building the prefix anew, up to its bound. What does not
// matter for the front costs a comparison at most.
func (o *prefixes) merge(h *prefixRef, row func(i int) (unsafe.Pointer, int), n int, diff func(i int) int64, cols []*columnar.Vec, at int) {
	old := *h
	if r, j := row(0); old.more() && (old.len() == 0 || o.against(o.entry(&old, old.len()-1), r, cols, at+j) < 0) {
		return
	}
	_, cut := o.bounds(h)
	h[0] &^= 1<<prefixGrow - 1
	h.setLen(0)
	o.enlarge(h, min(old.len()+n, cut+1))
	i, k, positive := 0, 0, 0
	for k < old.len() || i < n {
		if h.len() >= cut && positive >= o.need && !o.whole {
			break
		}
		c := -1 // of the entry to the row
		var r unsafe.Pointer
		var j int
		if i < n {
			r, j = row(i)
			if c = 1; k < old.len() {
				c = o.against(o.entry(&old, k), r, cols, at+j)
			} else if old.more() {
				break // beyond the last entry
			}
		}
		var mult int64
		if c > 0 {
			mult = diff(j)
			o.insertNew(h, h.len(), r, mult, cols, at+j)
			i++
		} else {
			e := o.entry(&old, k)
			if mult = *entryMult(e); c == 0 {
				mult += diff(j)
				i++
			}
			k++
			if mult == 0 && !(k == old.len() && old.more()) {
				o.bury(e)
				continue
			}
			o.insert(h, h.len(), entryRow(e), mult)
		}
		if mult > 0 {
			positive++
		}
	}
	if k < old.len() || i < n {
		h[1] |= prefixMore
	}
	for ; k < old.len(); k++ {
		o.bury(o.entry(&old, k))
	}
	o.release(&old)
	if h.len() == 0 && !h.more() {
		o.release(h)
	}
}

// insert makes entry i.
func (o *prefixes) insert(h *prefixRef, i int, row unsafe.Pointer, mult int64) {
	n := h.len()
	if h.none() || n == h.cap() {
		o.enlarge(h, n+1)
	}
	e := o.entry(h, i)
	words := unsafe.Slice((*uint64)(e), (n-i+1)*o.stride)
	copy(words[o.stride:], words)
	words[0] = uint64(mult)
	copy(words[1:o.stride], unsafe.Slice((*uint64)(row), o.rows.words))
	h.setLen(n + 1)
}

// enlarge makes room for n entries.
func (o *prefixes) enlarge(h *prefixRef, n int) {
	c := 0
	for 1<<c < n {
		c++
	}
	ref := o.ar.alloc(o.stride * 8 << c)
	if !h.none() {
		copy(o.ar.words(ref, o.stride<<c), o.ar.words(h[0]&prefixRefMask, h.len()*o.stride))
		o.ar.release(h[0]&prefixRefMask, o.stride*8*h.cap())
	}
	h[0] = h[0]&^(1<<prefixGrow-1) | ref | uint64(c)<<prefixCapShift
}

// remove takes entry i out.
func (o *prefixes) remove(h *prefixRef, i int) {
	n := h.len()
	e := o.entry(h, i)
	o.bury(e)
	words := unsafe.Slice((*uint64)(e), (n-i)*o.stride)
	copy(words, words[o.stride:])
	h.setLen(n - 1)
	if n == 1 && !h.more() {
		o.release(h)
	}
}

// bury frees the long values of an entry at the end of the epoch: until then
// what it was is still to be output.
func (o *prefixes) bury(e unsafe.Pointer) {
	for _, c := range o.rows.bytes {
		if w := *wordAt(entryRow(e), o.rows.offs[c]+1); w&lenMask > inlined {
			*o.dead = append(*o.dead, w)
		}
	}
}

// release frees the block of a prefix without entries.
func (o *prefixes) release(h *prefixRef) {
	if !h.none() {
		o.ar.release(h[0]&prefixRefMask, o.stride*8*h.cap())
		h[0] &^= 1<<prefixGrow - 1
	}
}

// drop frees a whole prefix.
func (o *prefixes) drop(h *prefixRef) {
	for i := range h.len() {
		o.bury(o.entry(h, i))
	}
	o.release(h)
	*h = prefixRef{}
}

// bounds are the entries that a refill aims at, and beyond which a prefix is cut.
func (o *prefixes) bounds(h *prefixRef) (fill, cut int) {
	slack := max(4, o.need/4) << h.grow()
	return o.need + slack, 2*o.need + 2*slack
}

// trim cuts a prefix that has become too long.
func (o *prefixes) trim(h *prefixRef, keep int) {
	fill, cut := o.bounds(h)
	if h.len() <= cut || keep > fill {
		return
	}
	for i := fill; i < h.len(); i++ {
		o.bury(o.entry(h, i))
	}
	h.setLen(fill)
	h[1] |= prefixMore
}

// first is the first entry of positive multiplicity; nil if there is none.
func (o *prefixes) first(h *prefixRef) unsafe.Pointer {
	for i := range h.len() {
		if e := o.entry(h, i); *entryMult(e) > 0 {
			return e
		}
	}
	return nil
}

// place is the number of an entry.
func (o *prefixes) place(h *prefixRef, e unsafe.Pointer) int {
	return int(uintptr(e)-uintptr(o.entry(h, 0))) / (o.stride * 8)
}
