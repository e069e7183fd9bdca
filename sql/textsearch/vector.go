// Package textsearch has the values of text search, documents (tsvector) and
// queries (tsquery), and what is done with them: matching, ranking, rewriting
// (PostgreSQL manual, chapter 12). How texts become documents is in its
// subpackage config.
package textsearch

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// Limits of values.
const (
	MaxWord     = 1<<11 - 1 // bytes of a lexeme
	maxData     = 1<<20 - 1 // bytes of the lexemes and positions of a vector
	maxPos      = 1 << 14   // positions are below
	maxPosCount = 256       // of a lexeme
)

// Pos is the place of a lexeme in its document, from 1, with the weight of that
// occurrence: 3 (A) to 0 (D).
type Pos uint16

// MakePos makes a position; too great ones become the greatest.
func MakePos(at int, weight uint8) Pos { return Pos(weight)<<14 | Pos(min(at, maxPos-1)) }

// At is the place.
func (p Pos) At() int { return int(p & (maxPos - 1)) }

// Weight is the weight of the occurrence.
func (p Pos) Weight() uint8 { return uint8(p >> 14) }

// Vector is the stored form of a tsvector: the number of lexemes (uint32,
// little-endian like all of it), for each one its start in the data (uint32),
// its length and the number of its positions (uint16), then the data: each
// lexeme, and behind it its positions. Lexemes are in the order of their bytes,
// positions ascend. Equal vectors have the same bytes.
type Vector []byte

const (
	vectorHead = 4
	entrySize  = 8
)

// Len is the number of lexemes.
func (v Vector) Len() int { return int(binary.LittleEndian.Uint32(v)) }

func (v Vector) entry(i int) (word []byte, npos int, pos []byte) {
	n := v.Len()
	e := v[vectorHead+i*entrySize:]
	start := vectorHead + n*entrySize + int(binary.LittleEndian.Uint32(e))
	end := start + int(binary.LittleEndian.Uint16(e[4:]))
	npos = int(binary.LittleEndian.Uint16(e[6:]))
	return v[start:end:end], npos, v[end : end+2*npos]
}

// Word is lexeme i.
func (v Vector) Word(i int) []byte {
	w, _, _ := v.entry(i)
	return w
}

// PosCount is the number of positions of lexeme i, 0 if none are known.
func (v Vector) PosCount(i int) int {
	return int(binary.LittleEndian.Uint16(v[vectorHead+i*entrySize+6:]))
}

// Pos is position k of lexeme i.
func (v Vector) Pos(i, k int) Pos {
	_, _, p := v.entry(i)
	return Pos(binary.LittleEndian.Uint16(p[2*k:]))
}

// Find is the index of the first lexeme that is not before word, and whether it
// is word.
func (v Vector) Find(word []byte) (int, bool) {
	lo, hi := 0, v.Len()
	for lo < hi {
		m := int(uint(lo+hi) / 2)
		switch c := bytes.Compare(v.Word(m), word); {
		case c == 0:
			return m, true
		case c < 0:
			lo = m + 1
		default:
			hi = m
		}
	}
	return lo, false
}

// Builder makes a vector of lexemes that are added in their order.
type Builder struct {
	heads, data []byte
	n, size     int
}

// Reset forgets what was added.
func (b *Builder) Reset() { b.heads, b.data, b.n, b.size = b.heads[:0], b.data[:0], 0, 0 }

// Word adds a lexeme.
func (b *Builder) Word(word []byte) { b.String(unsafe.String(unsafe.SliceData(word), len(word))) }

// String is Word of a string.
func (b *Builder) String(word string) {
	b.heads = binary.LittleEndian.AppendUint32(b.heads, uint32(len(b.data)))
	b.heads = binary.LittleEndian.AppendUint16(b.heads, uint16(len(word)))
	b.heads = binary.LittleEndian.AppendUint16(b.heads, 0)
	b.data = append(b.data, word...)
	b.n++
	b.size += len(word)
}

// Pos adds a position to the last lexeme.
func (b *Builder) Pos(p Pos) {
	count := b.heads[len(b.heads)-2:]
	if n := binary.LittleEndian.Uint16(count); n == 0 {
		b.size += b.size%2 + 2
		binary.LittleEndian.PutUint16(count, 1)
	} else {
		binary.LittleEndian.PutUint16(count, n+1)
	}
	b.size += 2
	b.data = binary.LittleEndian.AppendUint16(b.data, uint16(p))
}

// copyEntry adds lexeme i of v with its positions.
func (b *Builder) copyEntry(v Vector, i int) {
	word, n, _ := v.entry(i)
	b.Word(word)
	for k := range n {
		b.Pos(v.Pos(i, k))
	}
}

// Append appends the vector to dst.
func (b *Builder) Append(dst []byte) ([]byte, error) {
	if b.size > maxData {
		return dst, errVectorTooLong(b.size)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(b.n))
	dst = append(dst, b.heads...)
	return append(dst, b.data...), nil
}

func errVectorTooLong(n int) error {
	return pgerror.New(pgerror.ProgramLimitExceeded, "string is too long for tsvector (%d bytes, max %d bytes)", n, maxData)
}

// dataSize is the number of bytes that PostgreSQL's form takes, without its
// fixed part: vectors are ordered by it first.
func (v Vector) dataSize() int {
	size := 0
	for i := range v.Len() {
		word, n, _ := v.entry(i)
		size += 4 + len(word)
		if n > 0 {
			size += size%2 + 2 + 2*n
		}
	}
	return size
}

// CompareVectors orders vectors: by their sizes, then by their lexemes and
// positions.
func CompareVectors(a, b Vector) int {
	if bytes.Equal(a, b) {
		return 0
	}
	if c := cmp.Or(cmp.Compare(a.dataSize(), b.dataSize()), cmp.Compare(a.Len(), b.Len())); c != 0 {
		return c
	}
	for i := range a.Len() {
		x, n, _ := a.entry(i)
		y, m, _ := b.entry(i)
		if (n > 0) != (m > 0) {
			return cmp.Compare(m, n)
		}
		if c := cmp.Or(bytes.Compare(x, y), cmp.Compare(m, n)); c != 0 {
			return c
		}
		for k := range n {
			p, q := a.Pos(i, k), b.Pos(i, k)
			if c := cmp.Or(cmp.Compare(q.At(), p.At()), cmp.Compare(q.Weight(), p.Weight())); c != 0 {
				return c
			}
		}
	}
	return 0
}

// AppendVectorKey appends a key whose byte order is that of CompareVectors.
func AppendVectorKey(dst []byte, v Vector) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(v.dataSize()))
	dst = binary.BigEndian.AppendUint32(dst, uint32(v.Len()))
	for i := range v.Len() {
		word, n, _ := v.entry(i)
		if n > 0 {
			dst = append(dst, 0)
		} else {
			dst = append(dst, 1)
		}
		dst = append(append(dst, word...), 0) // a lexeme has no zero byte
		dst = binary.BigEndian.AppendUint16(dst, ^uint16(n))
		for k := range n {
			p := v.Pos(i, k)
			dst = binary.BigEndian.AppendUint16(dst, ^uint16(p.At()<<2|int(p.Weight())))
		}
	}
	return dst
}

// sortPos sorts positions and drops those that are there already; the greater
// weight stays.
func sortPos(ps []Pos) []Pos {
	slices.SortStableFunc(ps, func(a, b Pos) int { return cmp.Compare(a.At(), b.At()) })
	n := 1
	for _, p := range ps[1:] {
		last := &ps[n-1]
		switch {
		case p.At() != last.At():
			ps[n] = p
			if n++; n >= maxPosCount || p.At() == maxPos-1 {
				return ps[:n]
			}
		case p.Weight() > last.Weight():
			*last = p
		}
	}
	return ps[:n]
}
