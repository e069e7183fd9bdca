package differential

import "unsafe"

// hashIndex maps 32-bit hashes to row numbers: open addressing in segments of a
// bounded size, which split in two when they are full (extendible hashing), so
// that no insertion pays for more than one segment. An entry is hash<<32 | row+1,
// 0 if empty. The directory is indexed by the high bits of the hash, a segment
// by the low ones.
type hashIndex struct {
	dir   []segment
	shift uint // 32 - log2(len(dir))
	n     int
}

// segment is a directory entry; several may be of one segment.
type segment struct {
	slots unsafe.Pointer // *[mask+1]uint64
	mask  uint32
	meta  *segmentMeta
}

type segmentMeta struct {
	n     uint32
	depth uint8 // high bits of the hash that all entries share
}

const (
	segmentFirst = 32   // slots
	segmentMax   = 4096 // slots of a segment before it is split
	maxDirBits   = 18   // beyond it segments grow instead
)

func newHashIndex() hashIndex {
	return hashIndex{dir: []segment{newSegment(segmentFirst, 0)}, shift: 32}
}

func newSegment(slots int, depth uint8) segment {
	s := make([]uint64, slots)
	return segment{unsafe.Pointer(unsafe.SliceData(s)), uint32(slots - 1), &segmentMeta{depth: depth}}
}

func (s *segment) slot(i uint32) *uint64 {
	return (*uint64)(unsafe.Add(s.slots, uintptr(i)*8))
}

// findAll gives, for each hash, the first entry that has it, or 0.
func (x *hashIndex) findAll(hs []uint32, ents []uint64) {
	dir, shift := x.dir, x.shift&63
	ents = ents[:len(hs)]
	for i, h := range hs {
		s := &dir[uint64(h)>>shift]
		mask := uintptr(s.mask)
		for pos := uintptr(h) & mask; ; pos = (pos + 1) & mask {
			e := *(*uint64)(unsafe.Add(s.slots, pos*8))
			if uint32(e>>32) == h || e == 0 {
				ents[i] = e
				break
			}
		}
	}
}

// insert adds a row. Its hash may be there already, the row not.
func (x *hashIndex) insert(h, row uint32) {
	s := &x.dir[h>>x.shift]
	for s.meta.n >= s.mask-s.mask/4 {
		x.enlarge(h)
		s = &x.dir[h>>x.shift]
	}
	s.put(h, row)
	x.n++
}

func (s *segment) put(h, row uint32) {
	i := h & s.mask
	for *s.slot(i) != 0 {
		i = (i + 1) & s.mask
	}
	*s.slot(i) = uint64(h)<<32 | uint64(row+1)
	s.meta.n++
}

// enlarge makes room in the segment of h: a larger one, or two.
func (x *hashIndex) enlarge(h uint32) {
	i := h >> x.shift
	old := x.dir[i]
	size := int(old.mask) + 1
	depth := uint(old.meta.depth)
	if size < segmentMax || depth == maxDirBits {
		s := newSegment(2*size, uint8(depth))
		old.each(func(h, row uint32) { s.put(h, row) })
		x.replace(i, depth, s)
		return
	}
	if 32-x.shift == depth {
		dir := make([]segment, 2*len(x.dir))
		for j, s := range x.dir {
			dir[2*j], dir[2*j+1] = s, s
		}
		x.dir = dir
		x.shift--
	}
	lo, hi := newSegment(segmentMax, uint8(depth+1)), newSegment(segmentMax, uint8(depth+1))
	bit := uint32(1) << (31 - depth)
	old.each(func(h, row uint32) {
		if h&bit == 0 {
			lo.put(h, row)
		} else {
			hi.put(h, row)
		}
	})
	first := h &^ (2*bit - 1) >> x.shift
	x.replace(first, depth+1, lo)
	x.replace((h|bit)>>x.shift, depth+1, hi)
}

// replace puts s in all places of the segment at i of the given depth.
func (x *hashIndex) replace(i uint32, depth uint, s segment) {
	k := uint32(1) << (32 - x.shift - depth)
	i &^= k - 1
	for j := range k {
		x.dir[i+j] = s
	}
}

// each visits the entries.
func (s *segment) each(f func(h, row uint32)) {
	for _, e := range unsafe.Slice((*uint64)(s.slots), int(s.mask)+1) {
		if e != 0 {
			f(uint32(e>>32), uint32(e)-1)
		}
	}
}

// remove takes a row out.
func (x *hashIndex) remove(h, row uint32) {
	s := &x.dir[h>>x.shift]
	i := h & s.mask
	want := uint64(h)<<32 | uint64(row+1)
	for *s.slot(i) != want {
		i = (i + 1) & s.mask
	}
	// Close the gap, so that probes need no tombstones.
	for j := (i + 1) & s.mask; ; j = (j + 1) & s.mask {
		e := *s.slot(j)
		if e == 0 {
			break
		}
		if home := uint32(e>>32) & s.mask; (j-home)&s.mask >= (j-i)&s.mask {
			*s.slot(i) = e
			i = j
		}
	}
	*s.slot(i) = 0
	s.meta.n--
	x.n--
}

// bytes is about the memory of the index: segments are about half full.
func (x *hashIndex) bytes() int64 { return int64(x.n)*16 + int64(len(x.dir))*24 }
