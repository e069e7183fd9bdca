package differential

import (
	"encoding/binary"
	"math/bits"

	"github.com/streamdb/streamdb/decimal"
)

// A numeric sum is exact and invertible, display scale included (see
// decimal.Acc). A sum of ordinary numbers of one scale, as a column of a
// declared scale has, is kept in four words of the group's row:
//
//	w[0], w[1]  the sum × 10^scale, low and high word, two's complement
//	w[2]        how many numbers it has, by multiplicity
//	w[3]        bits 0-31: scale; bits 32-63: 1 + index of the decimal.Acc in
//	            use instead, 0 if none
const numericWords = 4

// numericSums is a pool of decimal.Accs.
type numericSums struct {
	all  []*decimal.Acc
	free []uint32
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

// add adds mult times the number e.
func (p *numericSums) add(w *[numericWords]uint64, e []byte, mult int64) {
	// In the form of package decimal: scale (14 bits) | form (2 bits), then the
	// magnitude in little-endian bytes.
	h := binary.LittleEndian.Uint16(e)
	coef := e[2:]
	if h>>14 <= 1 && len(coef) <= 8 && w[3]>>32 == 0 {
		scale := uint64(h & decimal.MaxScale)
		if w[2] == 0 && w[0]|w[1] == 0 {
			w[3] = scale
		}
		if scale == w[3] && addScaled(w, magnitude(coef), h>>14 != 0, mult) {
			w[2] += uint64(mult)
			return
		}
	}
	p.wide(w).Add(e, mult)
}

// addScaled adds mult × ±m to the 128-bit sum unless that overflows.
func addScaled(w *[numericWords]uint64, m uint64, neg bool, mult int64) bool {
	u := uint64(mult)
	if mult < 0 {
		u, neg = -u, !neg
	}
	hi, lo := bits.Mul64(m, u)
	if hi>>63 != 0 {
		return false
	}
	if neg {
		var c uint64
		lo, c = bits.Sub64(0, lo, 0)
		hi = -hi - c
	}
	lo, c := bits.Add64(w[0], lo, 0)
	sum, _ := bits.Add64(w[1], hi, c)
	if (w[1]^sum)&(hi^sum)>>63 != 0 {
		return false
	}
	w[0], w[1] = lo, sum
	return true
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
	if i := w[3] >> 32; i != 0 {
		return p.all[i-1]
	}
	i := p.alloc()
	p.all[i].SetSmall(int64(w[1]), w[0], int64(w[2]), int(w[3]))
	*w = [numericWords]uint64{3: uint64(i+1) << 32}
	return p.all[i]
}

// settle brings a sum to its one form once it is empty. It is called once an
// epoch for a touched group.
func (p *numericSums) settle(w *[numericWords]uint64) {
	if i := w[3] >> 32; i != 0 {
		if p.all[i-1].IsEmpty() {
			p.release(uint32(i - 1))
			*w = [numericWords]uint64{}
		}
	} else if w[0]|w[1]|w[2] == 0 {
		w[3] = 0
	}
}

// appendTo appends the sum; it fails if that is beyond numeric's range.
func (p *numericSums) appendTo(dst []byte, w *[numericWords]uint64) ([]byte, error) {
	if i := w[3] >> 32; i != 0 {
		return p.all[i-1].AppendTo(dst)
	}
	var a decimal.Acc
	a.SetSmall(int64(w[1]), w[0], int64(w[2]), int(w[3]))
	return a.AppendTo(dst)
}
