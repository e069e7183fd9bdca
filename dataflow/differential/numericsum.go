package differential

import (
	"encoding/binary"
	"math/bits"

	"github.com/streamdb/streamdb/decimal"
)

// A numeric sum is exact and invertible, display scale included: that of the
// result is the greatest among the numbers that are in the sum, for which the
// numbers are counted by scale. Four words of the group's row hold
//
//	w[0], w[1]  the sum × 10^scale, low and high word, two's complement
//	w[2]        how many numbers of that scale there are, by multiplicity
//	w[3]        bits 0-15: scale; bits 16-17: where the rest is; bits 32-63:
//	            1 + its index
//
// There is no rest if all numbers have one scale, as those of a column of a
// declared scale do. The counts of a few lesser scales are in a scaleCounts.
// What is too large, has too many scales, or is NaN or infinite, makes the whole
// sum a decimal.Acc.
const numericWords = 4

const (
	sumScale   = 1<<16 - 1
	sumCounts  = 1 << 16 // the rest is a scaleCounts
	sumAcc     = 2 << 16 // everything is in a decimal.Acc
	sumIndexAt = 32
)

// scaleCounts are numbers of numbers by scale; entries of no number are free.
type scaleCounts struct {
	n     [6]int64
	scale [6]uint16
}

// numericSums holds what does not fit in the words.
type numericSums struct {
	all    []*decimal.Acc
	free   []uint32
	counts []scaleCounts
	spare  []uint32 // free places in counts
}

func (p *numericSums) alloc() uint32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free = p.free[:n-1]
		return i
	}
	p.all = append(p.all, new(decimal.Acc))
	return uint32(len(p.all) - 1)
}

func (p *numericSums) release(i uint32) {
	p.all[i].Reset()
	p.free = append(p.free, i)
}

// accOf is the index of the decimal.Acc of a sum, from its last word.
func accOf(w3 uint64) (uint32, bool) { return uint32(w3>>sumIndexAt) - 1, w3&sumAcc != 0 }

// pow10 are the powers of ten that fit in a word.
var pow10 = func() (t [20]uint64) {
	t[0] = 1
	for i := 1; i < len(t); i++ {
		t[i] = t[i-1] * 10
	}
	return t
}()

// add adds mult times the number e.
func (p *numericSums) add(w *[numericWords]uint64, e []byte, mult int64) {
	// In the form of package decimal: scale (14 bits) | form (2 bits), then the
	// magnitude in little-endian bytes.
	h := binary.LittleEndian.Uint16(e)
	coef := e[2:]
	if h>>14 <= 1 && len(coef) <= 8 && w[3]&sumAcc == 0 {
		scale := uint64(h & decimal.MaxScale)
		m := magnitude(coef)
		if scale == w[3]&sumScale {
			if addScaled(w, m, 0, h>>14 != 0, mult) {
				w[2] += uint64(mult)
				return
			}
		} else if p.addOther(w, scale, m, h>>14 != 0, mult) {
			return
		}
	}
	p.wide(w).Add(e, mult)
}

// addOther adds a number of another scale than the sum's, if that is simple.
func (p *numericSums) addOther(w *[numericWords]uint64, scale, m uint64, neg bool, mult int64) bool {
	at := w[3] & sumScale
	if w[2] == 0 && w[0]|w[1] == 0 && w[3]&sumCounts == 0 {
		w[3] = scale // nothing is in it
		if !addScaled(w, m, 0, neg, mult) {
			return false
		}
		w[2] = uint64(mult)
		return true
	}
	if scale < at {
		if at-scale >= uint64(len(pow10)) {
			return false
		}
		hi, lo := bits.Mul64(m, pow10[at-scale])
		c := p.count(w, scale)
		if c == nil || !addScaled(w, lo, hi, neg, mult) {
			return false
		}
		*c += mult
		return true
	}
	if scale-at >= uint64(len(pow10)) || !raise(w, pow10[scale-at]) {
		return false
	}
	// From here on the sum is of the greater scale, even if the number does not fit.
	n := int64(w[2])
	w[2], w[3] = 0, w[3]&^sumScale|scale
	if n != 0 {
		c := p.count(w, at)
		if c == nil {
			// No room for the count: go back.
			lower(w, pow10[scale-at])
			w[2], w[3] = uint64(n), w[3]&^sumScale|at
			return false
		}
		*c += n
	}
	if !addScaled(w, m, 0, neg, mult) {
		return false
	}
	w[2] = uint64(mult)
	return true
}

// count is the count of a lesser scale; nil if there is no room for it.
func (p *numericSums) count(w *[numericWords]uint64, scale uint64) *int64 {
	if w[3]&sumCounts == 0 {
		var i uint32
		if n := len(p.spare); n > 0 {
			i = p.spare[n-1]
			p.spare = p.spare[:n-1]
		} else {
			p.counts = append(p.counts, scaleCounts{})
			i = uint32(len(p.counts) - 1)
		}
		w[3] |= sumCounts | uint64(i+1)<<sumIndexAt
	}
	c := &p.counts[w[3]>>sumIndexAt-1]
	empty := -1
	for i := range c.n {
		if c.n[i] == 0 {
			empty = i
		} else if uint64(c.scale[i]) == scale {
			return &c.n[i]
		}
	}
	if empty < 0 {
		return nil
	}
	c.scale[empty] = uint16(scale)
	return &c.n[empty]
}

// dropCounts gives the counts back.
func (p *numericSums) dropCounts(w *[numericWords]uint64) {
	i := w[3]>>sumIndexAt - 1
	p.counts[i] = scaleCounts{}
	p.spare = append(p.spare, uint32(i))
	w[3] &= sumScale
}

// addScaled adds mult × ±(hi, lo) to the 128-bit sum unless that overflows.
func addScaled(w *[numericWords]uint64, lo, hi uint64, neg bool, mult int64) bool {
	u := uint64(mult)
	if mult < 0 {
		u, neg = -u, !neg
	}
	if u != 1 {
		over, h := bits.Mul64(hi, u)
		var c uint64
		hi, lo = bits.Mul64(lo, u)
		if hi, c = bits.Add64(hi, h, 0); over|c != 0 {
			return false
		}
	}
	if hi>>63 != 0 {
		return false
	}
	var c uint64
	if neg {
		lo, c = bits.Sub64(0, lo, 0)
		hi = -hi - c
	}
	lo, c = bits.Add64(w[0], lo, 0)
	sum, _ := bits.Add64(w[1], hi, c)
	if (w[1]^sum)&(hi^sum)>>63 != 0 {
		return false
	}
	w[0], w[1] = lo, sum
	return true
}

// raise multiplies the sum by a power of ten unless that overflows.
func raise(w *[numericWords]uint64, by uint64) bool {
	lo, hi, neg := absolute(w)
	over, h := bits.Mul64(hi, by)
	c, l := bits.Mul64(lo, by)
	h, carry := bits.Add64(h, c, 0)
	if over|carry != 0 || h>>63 != 0 {
		return false
	}
	setSum(w, l, h, neg)
	return true
}

// lower divides the sum by a power of ten, if that divides it.
func lower(w *[numericWords]uint64, by uint64) bool {
	lo, hi, neg := absolute(w)
	h, r := bits.Div64(0, hi, by)
	l, r := bits.Div64(r, lo, by)
	if r == 0 {
		setSum(w, l, h, neg)
	}
	return r == 0
}

func absolute(w *[numericWords]uint64) (lo, hi uint64, neg bool) {
	lo, hi = w[0], w[1]
	if neg = hi>>63 != 0; neg {
		var c uint64
		lo, c = bits.Sub64(0, lo, 0)
		hi = -hi - c
	}
	return lo, hi, neg
}

func setSum(w *[numericWords]uint64, lo, hi uint64, neg bool) {
	if neg {
		var c uint64
		lo, c = bits.Sub64(0, lo, 0)
		hi = -hi - c
	}
	w[0], w[1] = lo, hi
}

// magnitude reads up to 8 little-endian bytes.
func magnitude(b []byte) uint64 {
	var m uint64
	for i := len(b) - 1; i >= 0; i-- {
		m = m<<8 | uint64(b[i])
	}
	return m
}

// wide is the Acc of a sum, which is moved there if it was not.
func (p *numericSums) wide(w *[numericWords]uint64) *decimal.Acc {
	if i, ok := accOf(w[3]); ok {
		return p.all[i]
	}
	i := p.alloc()
	a := p.all[i]
	a.SetSmall(int64(w[1]), w[0], int64(w[2]), int(w[3]&sumScale))
	if w[3]&sumCounts != 0 {
		c := &p.counts[w[3]>>sumIndexAt-1]
		for k, n := range c.n {
			if n != 0 {
				a.CountScale(int(c.scale[k]), n)
			}
		}
		p.dropCounts(w)
	}
	*w = [numericWords]uint64{3: sumAcc | uint64(i+1)<<sumIndexAt}
	return a
}

// settle brings a sum to its one form: that of the greatest scale in it, or
// zeros. It is called once an epoch for a touched group, before it is read.
func (p *numericSums) settle(w *[numericWords]uint64) {
	if i, ok := accOf(w[3]); ok {
		if p.all[i].IsEmpty() {
			p.release(i)
			*w = [numericWords]uint64{}
		}
		return
	}
	if w[3]&sumCounts != 0 {
		p.settleCounts(w)
	}
	if w[0]|w[1]|w[2] == 0 && w[3]&(sumCounts|sumAcc) == 0 {
		w[3] = 0
	}
}

func (p *numericSums) settleCounts(w *[numericWords]uint64) {
	c := &p.counts[w[3]>>sumIndexAt-1]
	top, others := -1, 0
	for i, n := range c.n {
		if n == 0 {
			continue
		}
		others++
		if top < 0 || c.scale[i] > c.scale[top] {
			top = i
		}
	}
	if w[2] == 0 && top >= 0 {
		// The greatest scale is gone: no number left has more digits, unless there
		// are more retractions than insertions, for the time being.
		at, scale := w[3]&sumScale, uint64(c.scale[top])
		if at-scale < uint64(len(pow10)) && lower(w, pow10[at-scale]) {
			w[2], w[3] = uint64(c.n[top]), w[3]&^sumScale|scale
			c.n[top] = 0
			others--
		} else {
			p.wide(w)
			return
		}
	}
	if others == 0 {
		p.dropCounts(w)
	}
}

// appendTo appends the sum; it fails if that is beyond numeric's range.
func (p *numericSums) appendTo(dst []byte, w *[numericWords]uint64) ([]byte, error) {
	if i, ok := accOf(w[3]); ok {
		return p.all[i].AppendTo(dst)
	}
	var a decimal.Acc
	a.SetSmall(int64(w[1]), w[0], int64(w[2]), int(w[3]&sumScale))
	return a.AppendTo(dst)
}
