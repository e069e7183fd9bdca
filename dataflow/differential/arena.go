package differential

import (
	"math/bits"
	"unsafe"
)

// arena hands out small blocks of pointer-free memory, addressed by number, so
// that the garbage collector sees a few large chunks whatever the state's size.
// A ref is a block's address in units of 16 bytes, 34 bits wide; 0 is none.
// Freed blocks are kept in lists by size class.
type arena struct {
	chunks [][]uint64
	next   uint64 // first free unit of the last ordinary chunk
	end    uint64 // the end of that chunk
	free   [arenaClasses]uint64
	huge   []uint32 // free places in chunks, left by freed huge blocks
	used   int64    // bytes in blocks that are handed out
}

const (
	arenaUnit      = 16
	arenaChunkBits = 14 // units a chunk: 256 KiB
	arenaChunk     = 1 << arenaChunkBits
	arenaFirst     = 1 << 6 // units of the first chunk; each next one is twice as large
	arenaClasses   = 8 + 4*(arenaChunkBits-3)
)

// arenaClass is the size class of n > 0 units, and the units of that class: all
// sizes up to 8, then four a doubling.
func arenaClass(n int) (class, units int) {
	if n <= 8 {
		return n - 1, n
	}
	s := uint(bits.Len(uint(n-1))) - 3
	q := (n + 1<<s - 1) >> s // 5..8
	return 8 + 4*int(s-1) + q - 5, q << s
}

// alloc gives a block of at least n > 0 bytes with arbitrary content.
func (a *arena) alloc(n int) uint64 {
	c, units := arenaClass((n + arenaUnit - 1) / arenaUnit)
	a.used += int64(units) * arenaUnit
	if units > arenaChunk {
		return a.allocHuge(units)
	}
	if ref := a.free[c]; ref != 0 {
		a.free[c] = *(*uint64)(a.at(ref))
		return ref
	}
	if a.next+uint64(units) > a.end {
		a.grow(units)
	}
	ref := a.next
	a.next += uint64(units)
	return ref
}

// grow begins a chunk with room for units.
func (a *arena) grow(units int) {
	a.shelve()
	if len(a.chunks) == 0 {
		a.chunks = append(a.chunks, nil) // so that no ref is 0
	}
	size := arenaFirst
	for i := 1; i < len(a.chunks) && size < arenaChunk; i++ {
		size *= 2
	}
	size = min(max(size, units), arenaChunk)
	a.next = uint64(len(a.chunks)) << arenaChunkBits
	a.end = a.next + uint64(size)
	a.chunks = append(a.chunks, make([]uint64, size*arenaUnit/8))
}

// shelve puts what is left of the last chunk on the free lists.
func (a *arena) shelve() {
	for left := int(a.end - a.next); left > 0; left = int(a.end - a.next) {
		c, units := arenaClass(left)
		for units > left {
			c--
			units = arenaUnits(c)
		}
		*(*uint64)(a.at(a.next)) = a.free[c]
		a.free[c] = a.next
		a.next += uint64(units)
	}
}

// arenaUnits is the size of a class.
func arenaUnits(class int) int {
	if class < 8 {
		return class + 1
	}
	class -= 8
	return (class%4 + 5) << uint(class/4+1)
}

func (a *arena) allocHuge(units int) uint64 {
	if len(a.chunks) == 0 {
		a.chunks = append(a.chunks, nil)
	}
	block := make([]uint64, units*arenaUnit/8)
	if n := len(a.huge); n > 0 {
		i := a.huge[n-1]
		a.huge = a.huge[:n-1]
		a.chunks[i] = block
		return uint64(i) << arenaChunkBits
	}
	a.chunks = append(a.chunks, block)
	return uint64(len(a.chunks)-1) << arenaChunkBits
}

// release frees a block that alloc(n) gave.
func (a *arena) release(ref uint64, n int) {
	c, units := arenaClass((n + arenaUnit - 1) / arenaUnit)
	a.used -= int64(units) * arenaUnit
	if units > arenaChunk {
		i := uint32(ref >> arenaChunkBits)
		a.chunks[i] = nil
		a.huge = append(a.huge, i)
		return
	}
	*(*uint64)(a.at(ref)) = a.free[c]
	a.free[c] = ref
}

// at is the address of a block.
func (a *arena) at(ref uint64) unsafe.Pointer {
	chunk := a.chunks[ref>>arenaChunkBits]
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(chunk)), (ref&(arenaChunk-1))*arenaUnit)
}

// size is the memory of all chunks.
func (a *arena) size() int64 {
	n := 0
	for _, c := range a.chunks {
		n += len(c)
	}
	return int64(n) * 8
}

// bytes is n bytes of a block.
func (a *arena) bytes(ref uint64, n int) []byte {
	return unsafe.Slice((*byte)(a.at(ref)), n)
}

// words is n words of a block.
func (a *arena) words(ref uint64, n int) []uint64 {
	return unsafe.Slice((*uint64)(a.at(ref)), n)
}

// rowStore holds rows of a fixed number of words, addressed by number. Rows
// never move once there are a few of them; growing copies nothing large.
type rowStore struct {
	stride uintptr // bytes
	shift  uint    // log2 of the rows of a chunk
	base   []unsafe.Pointer
	n      uint32 // rows ever handed out
	size   uint32 // rows there is room for
	free   []uint32
	moves  int // how often rows have moved
}

const (
	rowChunkBytes = 256 << 10
	rowFirst      = 16 // rows of the first chunk to begin with
)

func newRowStore(words int) rowStore {
	s := rowStore{stride: uintptr(words) * 8}
	s.shift = uint(bits.Len(uint(rowChunkBytes)/uint(s.stride))) - 1
	if uintptr(rowChunkBytes) < s.stride*rowFirst {
		s.shift = 4
	}
	return s
}

// at is the address of row i.
func (s *rowStore) at(i uint32) unsafe.Pointer {
	return unsafe.Add(s.base[i>>(s.shift&31)], uintptr(i&(1<<(s.shift&31)-1))*s.stride)
}

// add makes a row of zeros.
func (s *rowStore) add() uint32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i
	}
	if s.n == s.size {
		s.grow()
	}
	s.n++
	return s.n - 1
}

func (s *rowStore) grow() {
	full := uint32(1) << s.shift
	words := int(s.stride / 8)
	if s.size >= full {
		chunk := make([]uint64, int(full)*words)
		s.base = append(s.base, unsafe.Pointer(unsafe.SliceData(chunk)))
		s.size += full
		return
	}
	// The first chunk grows by copying until it is full-sized.
	size := min(max(2*s.size, rowFirst), full)
	chunk := make([]uint64, int(size)*words)
	if s.size > 0 {
		copy(chunk, unsafe.Slice((*uint64)(s.base[0]), int(s.size)*words))
		s.base[0] = unsafe.Pointer(unsafe.SliceData(chunk))
		s.moves++
	} else {
		s.base = append(s.base, unsafe.Pointer(unsafe.SliceData(chunk)))
	}
	s.size = size
}

// remove frees row i, which add gives out again.
func (s *rowStore) remove(i uint32) {
	clear(unsafe.Slice((*uint64)(s.at(i)), s.stride/8))
	s.free = append(s.free, i)
}
