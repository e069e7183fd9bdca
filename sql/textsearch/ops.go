package textsearch

import (
	"bytes"
	"slices"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// ParseWeight reads a weight's letter.
func ParseWeight(c byte) (uint8, bool) {
	if c |= 0x20; c >= 'a' && c <= 'd' {
		return 'd' - c, true
	}
	return 0, false
}

// SetWeight appends v with another weight, of all lexemes or of those in only.
func SetWeight(dst []byte, v Vector, weight uint8, only func(word []byte) bool) []byte {
	start := len(dst)
	dst = append(dst, v...)
	out := Vector(dst[start:])
	for i := range out.Len() {
		word, n, pos := out.entry(i)
		if only != nil && !only(word) {
			continue
		}
		for k := range n {
			pos[2*k+1] = pos[2*k+1]&0x3f | weight<<6
		}
	}
	return dst
}

// Strip appends v without positions.
func Strip(dst []byte, v Vector) ([]byte, error) {
	var b Builder
	for i := range v.Len() {
		b.Word(v.Word(i))
	}
	return b.Append(dst)
}

// Delete appends v without the lexemes for which drop is true.
func Delete(dst []byte, v Vector, drop func(word []byte) bool) ([]byte, error) {
	var b Builder
	for i := range v.Len() {
		if !drop(v.Word(i)) {
			b.copyEntry(v, i)
		}
	}
	return b.Append(dst)
}

// Filter appends what of v has a weight of the set.
func Filter(dst []byte, v Vector, weights uint8) ([]byte, error) {
	var b Builder
	for i := range v.Len() {
		some := false
		for k := range v.PosCount(i) {
			p := v.Pos(i, k)
			if weights&(1<<p.Weight()) == 0 {
				continue
			}
			if !some {
				b.Word(v.Word(i))
				some = true
			}
			b.Pos(p)
		}
	}
	return b.Append(dst)
}

// Concat appends v and, behind its last position, w.
func Concat(dst []byte, v, w Vector) ([]byte, error) {
	shift := 0
	for i := range v.Len() {
		for k := range v.PosCount(i) {
			shift = max(shift, v.Pos(i, k).At())
		}
	}
	var b Builder
	// add adds the positions of lexeme j of w; count and last are those it has.
	add := func(j, count, last int) {
		for k := 0; k < w.PosCount(j) && count < maxPosCount && last != maxPos-1; k++ {
			p := w.Pos(j, k)
			p = MakePos(p.At()+shift, p.Weight())
			b.Pos(p)
			count, last = count+1, p.At()
		}
	}
	i, j := 0, 0
	for i < v.Len() || j < w.Len() {
		c := 0
		switch {
		case i == v.Len():
			c = 1
		case j == w.Len():
			c = -1
		default:
			c = bytes.Compare(v.Word(i), w.Word(j))
		}
		if c > 0 {
			b.Word(w.Word(j))
			add(j, 0, 0)
			j++
			continue
		}
		b.copyEntry(v, i)
		if c == 0 {
			count, last := v.PosCount(i), 0
			if count > 0 {
				last = v.Pos(i, count-1).At()
			}
			add(j, count, last)
			j++
		}
		i++
	}
	return b.Append(dst)
}

// AppendLexemes appends the vector of lexemes without positions.
func AppendLexemes(dst []byte, words [][]byte) ([]byte, error) {
	for _, w := range words {
		switch {
		case len(w) == 0:
			return dst, pgerror.New(pgerror.ZeroLengthCharacterString, "lexeme array may not contain empty strings")
		case len(w) > MaxWord:
			return dst, pgerror.New(pgerror.ProgramLimitExceeded, "word is too long (%d bytes, max %d bytes)", len(w), MaxWord)
		}
	}
	slices.SortFunc(words, bytes.Compare)
	var b Builder
	for i, w := range words {
		if i == 0 || !bytes.Equal(w, words[i-1]) {
			b.Word(w)
		}
	}
	return b.Append(dst)
}

// Join appends the query of two with an operator between; an empty one leaves
// the other.
func Join(dst []byte, a, b Query, op Op, distance int) ([]byte, error) {
	if distance < 0 || distance > maxPos {
		return dst, errDistance()
	}
	switch {
	case a.Len() == 0:
		return append(dst, b...), nil
	case b.Len() == 0:
		return append(dst, a...), nil
	}
	return AppendQuery(dst, newOp(op, int16(distance), b.Tree(), a.Tree()))
}

// Negate appends the negated query.
func Negate(dst []byte, q Query) ([]byte, error) {
	if q.Len() == 0 {
		return append(dst, q...), nil
	}
	return AppendQuery(dst, newOp(OpNot, 0, q.Tree()))
}
