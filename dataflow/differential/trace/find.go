package trace

import (
	"sort"

	"github.com/streamdb/streamdb/columnar"
)

// finder locates hashes in a batch. Hashes are uniform, so that a hash tells
// its place to within the square root of the number of rows between two known
// ones: the first hash of each chunk (a table that stays in cache) gives a place
// in the chunk to about 64 rows, and the hash found there one to about 4. The
// searches of many hashes do not depend on each other, so that the processor
// overlaps their cache misses.
type finder struct {
	first []uint64  // first hash of each chunk
	scale []float64 // rows per unit of hash in the chunk
}

func (f *finder) init(chunks []*Chunk) {
	f.make(len(chunks))
	for i, c := range chunks {
		f.set(i, c.N, c.Hash[0], c.Hash[c.N-1])
	}
}

func (f *finder) make(chunks int) {
	f.first = make([]uint64, chunks)
	f.scale = make([]float64, chunks)
}

// set describes chunk i.
func (f *finder) set(i, rows int, first, last uint64) {
	f.first[i] = first
	if last > first {
		f.scale[i] = float64(rows) / float64(last-first)
	}
}

// chunkBefore is the last chunk whose first hash is < h, or -1; it is at least
// from, which must be one such (or -1).
func (f *finder) chunkBefore(h uint64, from int) int {
	first := f.first
	// Sorted probes mostly stay in a chunk or go to the next.
	for range 4 {
		if from+1 >= len(first) || first[from+1] >= h {
			return from
		}
		from++
	}
	lo := from + 1
	return lo + sort.Search(len(first)-lo, func(i int) bool { return first[lo+i] >= h }) - 1
}

// lowerBound is the first index of hs whose hash is ≥ h, galloping from a guess.
func lowerBound(hs []uint64, h uint64, at int) int {
	if hs[at] < h {
		lo, step := at, 1 // hs[lo] < h
		for {
			hi := lo + step
			if hi >= len(hs) {
				return search(hs, h, lo+1, len(hs))
			}
			if hs[hi] >= h {
				return search(hs, h, lo+1, hi)
			}
			lo = hi
			step *= 2
		}
	}
	hi, step := at, 1 // hs[hi] ≥ h
	for {
		lo := hi - step
		if lo < 0 {
			return search(hs, h, 0, hi)
		}
		if hs[lo] < h {
			return search(hs, h, lo+1, hi)
		}
		hi = lo
		step *= 2
	}
}

// search is the first index in [lo, hi) whose hash is ≥ h, or hi.
func search(hs []uint64, h uint64, lo, hi int) int {
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if hs[m] < h {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// guess is the likely place of h in chunk c, whose first hash is < h.
func (f *finder) guess(c int, hs []uint64, h uint64) int {
	at := float64(h-f.first[c]) * f.scale[c]
	if at >= float64(len(hs)) {
		return len(hs) - 1
	}
	return int(at)
}

// refine moves a guess by what the hash found there says.
func (f *finder) refine(c int, hs []uint64, h uint64, at int) int {
	move := float64(int64(h-hs[at])) * f.scale[c]
	n := float64(len(hs))
	if move >= n || move <= -n {
		return at
	}
	return min(max(at+int(move), 0), len(hs)-1)
}

// runEnd is the first row from at on whose hash is not h; those before at+1 back
// to the run's begin have h.
func (b *Batch) runEnd(at int, h uint64) int {
	if at >= b.rows {
		return b.rows
	}
	c := at >> columnar.ChunkShift
	hs := b.chunks[c].Hash
	i := at & (columnar.ChunkRows - 1)
	for range 8 {
		if i >= len(hs) {
			break
		}
		if hs[i] != h {
			return c<<columnar.ChunkShift + i
		}
		i++
	}
	if h == ^uint64(0) {
		return b.rows
	}
	if i < len(hs) && hs[len(hs)-1] > h {
		return c<<columnar.ChunkShift + lowerBound(hs, h+1, i)
	}
	return b.lower(h+1, c)
}

// lower is the first row whose hash is ≥ h; from is a chunk at which to begin.
func (b *Batch) lower(h uint64, from int) int {
	if from >= 0 && b.finder.first[from] >= h {
		from = -1
	}
	c := b.finder.chunkBefore(h, from)
	if c < 0 {
		return 0
	}
	hs := b.chunks[c].Hash
	return c<<columnar.ChunkShift + lowerBound(hs, h, b.finder.guess(c, hs, h))
}

// Locate finds, for ascending distinct hashes, the rows lo[i] ≤ r < hi[i] of
// each; lo[i] == hi[i] if there are none.
func (b *Batch) Locate(hashes []uint64, lo, hi []uint32) {
	n := len(hashes)
	if n == 0 {
		return
	}
	if b.rows == 0 {
		clear(lo[:n])
		clear(hi[:n])
		return
	}
	// Only the rows between the first and the last probe count.
	from, to := b.lower(hashes[0], -1), b.rows
	if b.rows > mergeRatio*n {
		to = b.lower(hashes[n-1], -1)
	}
	if to-from <= mergeRatio*n {
		b.locateMerging(hashes, lo, hi, from)
	} else {
		b.locateSearching(hashes, lo, hi)
	}
}

// mergeRatio is how many rows a probe may pass over before searching is cheaper.
const mergeRatio = 16

// locateSearching is Locate by interpolation, in two passes so that the first
// look at each place is independent of the others.
func (b *Batch) locateSearching(hashes []uint64, lo, hi []uint32) {
	c := -1
	for i, h := range hashes {
		c = b.finder.chunkBefore(h, c)
		if c < 0 {
			lo[i] = 0
			continue
		}
		hs := b.chunks[c].Hash
		at := b.finder.guess(c, hs, h)
		lo[i] = uint32(c<<columnar.ChunkShift + b.finder.refine(c, hs, h, at))
	}
	for i, h := range hashes {
		at := int(lo[i])
		c := at >> columnar.ChunkShift
		hs := b.chunks[c].Hash
		at = c<<columnar.ChunkShift + lowerBound(hs, h, at&(columnar.ChunkRows-1))
		lo[i] = uint32(at)
		if at < b.rows && b.hashAt(at) == h {
			hi[i] = uint32(b.runEnd(at+1, h))
		} else {
			hi[i] = uint32(at)
		}
	}
}

func (b *Batch) hashAt(r int) uint64 {
	return b.chunks[r>>columnar.ChunkShift].Hash[r&(columnar.ChunkRows-1)]
}

// locateMerging is Locate by walking both sorted lists, from a row that is not
// after the first probe's.
func (b *Batch) locateMerging(hashes []uint64, lo, hi []uint32, from int) {
	i := 0
	c := from >> columnar.ChunkShift
	j := from & (columnar.ChunkRows - 1)
	for ; c < len(b.chunks) && i < len(hashes); c++ {
		base := uint32(c << columnar.ChunkShift)
		hs := b.chunks[c].Hash
		for i < len(hashes) {
			h := hashes[i]
			for j+4 <= len(hs) && hs[j+3] < h {
				j += 4
			}
			for j < len(hs) && hs[j] < h {
				j++
			}
			if j == len(hs) {
				break
			}
			lo[i] = base + uint32(j)
			for j < len(hs) && hs[j] == h {
				j++
			}
			hi[i] = base + uint32(j)
			if j == len(hs) && hi[i] > lo[i] {
				hi[i] = uint32(b.runEnd(int(base)+j-1, h))
			}
			i++
		}
		j = 0
	}
	for ; i < len(hashes); i++ {
		lo[i], hi[i] = uint32(b.rows), uint32(b.rows)
	}
}
