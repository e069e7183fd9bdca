package differential

import (
	"math"
	"math/big"
	"math/bits"
)

// A float sum is exact: it is kept as a fixed-point integer wide enough for
// everything that was added, so that taking a value back leaves no residue,
// whatever came between, and the result is the true sum rounded once.
//
// Almost all groups hold values of similar size, therefore the ordinary form
// is a window of 192 bits somewhere in the range of exponents, in four words of
// the group's row:
//
//	w[0..2]  the sum × 2^-base, two's complement, little-endian
//	w[3]     bits 0-15: (base + floatBias) / 32 + 1, 0 if the sum is empty;
//	         bits 32-63: 1 + index of the wideSum in use instead, 0 if none
//
// The window is placed around the first value, 48 to 80 bits below its last
// bit, and moved when a value does not fit but the bits allow it. What fits no
// window at all, and NaN and the infinities, go to a wideSum.
const (
	floatWords = 4
	floatBias  = 1 << 13 // base + floatBias > 0, a multiple of 32
	baseMask   = 0xffff
	wideShift  = 32
)

// wideLimbs covers products of two doubles, each with 53 bits from 2^-1126 on
// up to 2^1024, and 2^64 of them.
const wideLimbs = 72

// wideBase is the exponent of bit 0 of a wideSum.
const wideBase = -2304

// wideSum holds any sum of floats or of products of two.
type wideSum struct {
	limbs               [wideLimbs]uint64 // two's complement
	nan, posInf, negInf int64
}

func (a *wideSum) isZero() bool { return *a == wideSum{} }

// wideSums is a pool of wideSums, addressed by index.
type wideSums struct {
	all  []*wideSum
	free []uint32
}

func (p *wideSums) alloc() uint32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free = p.free[:n-1]
		return i
	}
	p.all = append(p.all, new(wideSum))
	return uint32(len(p.all) - 1)
}

func (p *wideSums) release(i uint32) {
	*p.all[i] = wideSum{}
	p.free = append(p.free, i)
}

func floatBase(w *[floatWords]uint64) int { return int(w[3]&baseMask-1)*32 - floatBias }

func setFloatBase(w *[floatWords]uint64, base int) {
	w[3] = w[3]&^baseMask | uint64((base+floatBias)/32+1)
}

func floor32(e int) int { return e &^ 31 }

// addFloat adds mult × x to the sum at w.
func (p *wideSums) addFloat(w *[floatWords]uint64, x float64, mult int64) {
	b := math.Float64bits(x)
	neg := b>>63 != 0
	e := int(b >> 52 & 0x7ff)
	m := b & (1<<52 - 1)
	switch e {
	case 0x7ff:
		p.addSpecial(w, x, mult)
		return
	case 0:
		if m == 0 {
			return
		}
		e = 1
	default:
		m |= 1 << 52
	}
	if mult == 1 {
		p.add(w, m, 0, e-1075, neg)
		return
	}
	u := uint64(mult)
	if mult < 0 {
		u, neg = -u, !neg
	}
	hi, lo := bits.Mul64(m, u)
	p.add(w, lo, hi, e-1075, neg)
}

// addProduct adds mult × x × y to the sum at w.
func (p *wideSums) addProduct(w *[floatWords]uint64, x, y float64, mult int64) {
	if x-x != 0 || y-y != 0 { // NaN or infinite
		p.addSpecial(w, math.NaN(), mult)
		return
	}
	if x == 0 || y == 0 {
		return
	}
	fx, ex := math.Frexp(x)
	fy, ey := math.Frexp(y)
	neg := (fx < 0) != (fy < 0)
	hi, lo := bits.Mul64(uint64(math.Abs(fx)*(1<<53)), uint64(math.Abs(fy)*(1<<53)))
	e := ex + ey - 106
	u := uint64(mult)
	if mult < 0 {
		u, neg = -u, !neg
	}
	// 106 bits times 22 bits fit in 128.
	for ; u != 0; u, e = u>>22, e+22 {
		d := u & (1<<22 - 1)
		h1, l := bits.Mul64(lo, d)
		p.add(w, l, hi*d+h1, e, neg)
	}
}

// add adds ±(mhi,mlo) × 2^e.
func (p *wideSums) add(w *[floatWords]uint64, mlo, mhi uint64, e int, neg bool) {
	if w[3]>>wideShift == 0 {
		if w[3] == 0 {
			setFloatBase(w, floor32(e-48))
		}
		if addWindow(w, mlo, mhi, e, neg) || addRebased(w, mlo, mhi, e, neg) {
			return
		}
		p.widen(w)
	}
	p.all[w[3]>>wideShift-1].add(mlo, mhi, e, neg)
}

func (p *wideSums) addSpecial(w *[floatWords]uint64, x float64, mult int64) {
	if w[3]>>wideShift == 0 {
		p.widen(w)
	}
	a := p.all[w[3]>>wideShift-1]
	switch {
	case x > 0:
		a.posInf += mult
	case x < 0:
		a.negInf += mult
	default:
		a.nan += mult
	}
}

// addWindow adds if the value and the sum fit in the window, and reports that.
func addWindow(w *[floatWords]uint64, mlo, mhi uint64, e int, neg bool) bool {
	off := uint(e - floatBase(w))
	s := off & 63
	a0 := mlo << s
	a1 := mlo>>(64-s) | mhi<<s
	a2 := mhi >> (64 - s)
	switch off >> 6 {
	case 0:
	case 1:
		if a2 != 0 {
			return false
		}
		a0, a1, a2 = 0, a0, a1
	case 2:
		if a1|a2 != 0 {
			return false
		}
		a0, a1, a2 = 0, 0, a0
	default: // also off < 0
		return false
	}
	if a2>>63 != 0 {
		return false
	}
	var c uint64
	if neg {
		a0, c = bits.Sub64(w[0], a0, 0)
		a1, c = bits.Sub64(w[1], a1, c)
		a2, _ = bits.Sub64(w[2], a2, c)
		if (w[2]&^a2)>>63 != 0 { // a negative sum became positive
			return false
		}
	} else {
		a0, c = bits.Add64(w[0], a0, 0)
		a1, c = bits.Add64(w[1], a1, c)
		a2, _ = bits.Add64(w[2], a2, c)
		if (a2&^w[2])>>63 != 0 {
			return false
		}
	}
	w[0], w[1], w[2] = a0, a1, a2
	return true
}

// addRebased moves the window so that the value and the sum fit, if they can.
func addRebased(w *[floatWords]uint64, mlo, mhi uint64, e int, neg bool) bool {
	if w[0]|w[1]|w[2] == 0 {
		setFloatBase(w, floor32(e-48))
		return addWindow(w, mlo, mhi, e, neg)
	}
	// Drop the value's trailing zeros: a round number reaches less far down.
	tz := bits.TrailingZeros64(mlo)
	if mlo == 0 {
		tz = 64 + bits.TrailingZeros64(mhi)
	}
	mlo, mhi = shr128(mlo, mhi, uint(tz))
	e += tz
	base := floatBase(w)
	if e < base {
		nb := floor32(e)
		if !shiftUp(w, uint(base-nb)) {
			return false
		}
		setFloatBase(w, nb)
		return addWindow(w, mlo, mhi, e, neg)
	}
	if addWindow(w, mlo, mhi, e, neg) {
		return true
	}
	// Too high: give up low bits that are zero.
	low := bits.TrailingZeros64(w[0])
	if w[0] == 0 {
		low = 64 + bits.TrailingZeros64(w[1])
		if w[1] == 0 {
			low = 128 + bits.TrailingZeros64(w[2])
		}
	}
	nb := floor32(min(base+low, e))
	if nb == base {
		return false
	}
	old := *w
	shiftDown(w, uint(nb-base))
	setFloatBase(w, nb)
	if addWindow(w, mlo, mhi, e, neg) {
		return true
	}
	*w = old
	return false
}

func shr128(lo, hi uint64, s uint) (uint64, uint64) {
	if s >= 64 {
		return hi >> (s - 64), 0
	}
	return lo>>s | hi<<(64-s), hi >> s
}

// shiftUp multiplies the window by 2^s, unless that overflows.
func shiftUp(w *[floatWords]uint64, s uint) bool {
	if s >= 192 {
		return false
	}
	sign := uint64(int64(w[2]) >> 63)
	x := [3]uint64{w[0], w[1], w[2]}
	for ; s >= 64; s -= 64 {
		if x[2] != sign || (x[1]^sign)>>63 != 0 {
			return false
		}
		x[0], x[1], x[2] = 0, x[0], x[1]
	}
	if s > 0 {
		if uint64(int64(x[2])>>(63-s)) != sign {
			return false
		}
		x[2] = x[2]<<s | x[1]>>(64-s)
		x[1] = x[1]<<s | x[0]>>(64-s)
		x[0] <<= s
	}
	w[0], w[1], w[2] = x[0], x[1], x[2]
	return true
}

// shiftDown divides the window by 2^s; the bits shifted out are zero.
func shiftDown(w *[floatWords]uint64, s uint) {
	sign := uint64(int64(w[2]) >> 63)
	for ; s >= 64; s -= 64 {
		w[0], w[1], w[2] = w[1], w[2], sign
	}
	if s > 0 {
		w[0] = w[0]>>s | w[1]<<(64-s)
		w[1] = w[1]>>s | w[2]<<(64-s)
		w[2] = w[2]>>s | sign<<(64-s)
	}
}

// widen moves the sum at w to a wideSum.
func (p *wideSums) widen(w *[floatWords]uint64) {
	i := p.alloc()
	if w[0]|w[1]|w[2] != 0 {
		a := p.all[i]
		base := floatBase(w)
		neg := int64(w[2]) < 0
		x := [3]uint64{w[0], w[1], w[2]}
		if neg {
			negateLimbs(x[:])
		}
		a.add(x[0], x[1], base, neg)
		a.add(x[2], 0, base+128, neg)
	}
	*w = [floatWords]uint64{3: uint64(i+1) << wideShift}
}

func (a *wideSum) add(mlo, mhi uint64, e int, neg bool) {
	off := uint(e - wideBase)
	s := off & 63
	v := [3]uint64{mlo << s, mlo>>(64-s) | mhi<<s, mhi >> (64 - s)}
	i := int(off >> 6)
	var c uint64
	for j := 0; i < wideLimbs && (j < 3 || c != 0); i, j = i+1, j+1 {
		var x uint64
		if j < 3 {
			x = v[j]
		}
		if neg {
			a.limbs[i], c = bits.Sub64(a.limbs[i], x, c)
		} else {
			a.limbs[i], c = bits.Add64(a.limbs[i], x, c)
		}
	}
}

// negateLimbs negates a two's complement number.
func negateLimbs(x []uint64) {
	c := uint64(1)
	for i := range x {
		x[i], c = bits.Add64(^x[i], 0, c)
	}
}

// settle gives back what an empty sum does not need: after it, equal sums that
// are zero have equal words. It is called once an epoch for a touched group.
func (p *wideSums) settle(w *[floatWords]uint64) {
	if i := w[3] >> wideShift; i != 0 {
		if p.all[i-1].isZero() {
			p.release(uint32(i - 1))
			*w = [floatWords]uint64{}
		}
	} else if w[0]|w[1]|w[2] == 0 {
		w[3] = 0
	}
}

// special is the sum if NaN or an infinity takes part.
func (a *wideSum) special() (float64, bool) {
	switch {
	case a.nan > 0 || (a.posInf > 0 && a.negInf > 0):
		return math.NaN(), true
	case a.posInf > 0:
		return math.Inf(1), true
	case a.negInf > 0:
		return math.Inf(-1), true
	}
	return 0, false
}

// round gives the sum rounded to mant bits with exponents from emin (that of
// the last bit of a subnormal) to emax (2^emax overflows): half to even. Finite
// sums that are too large give ok = false.
func (p *wideSums) round(w *[floatWords]uint64, mant, emin, emax int) (x float64, ok bool) {
	if i := w[3] >> wideShift; i != 0 {
		a := p.all[i-1]
		if x, is := a.special(); is {
			return x, true
		}
		mag := a.limbs
		neg := int64(mag[wideLimbs-1]) < 0
		if neg {
			negateLimbs(mag[:])
		}
		return roundLimbs(mag[:], wideBase, neg, mant, emin, emax)
	}
	mag := [3]uint64{w[0], w[1], w[2]}
	neg := int64(mag[2]) < 0
	if neg {
		negateLimbs(mag[:])
	}
	return roundLimbs(mag[:], floatBase(w), neg, mant, emin, emax)
}

// float64 and float32 are the sum in those formats.
func (p *wideSums) float64(w *[floatWords]uint64) (float64, bool) {
	return p.round(w, 53, -1074, 1024)
}

func (p *wideSums) float32(w *[floatWords]uint64) (float32, bool) {
	x, ok := p.round(w, 24, -149, 128)
	return float32(x), ok
}

func roundLimbs(mag []uint64, base int, neg bool, mant, emin, emax int) (float64, bool) {
	top := len(mag) - 1
	for top >= 0 && mag[top] == 0 {
		top--
	}
	if top < 0 {
		return 0, true
	}
	high := top*64 + bits.Len64(mag[top]) - 1 // position of the highest bit
	low := max(high-mant+1, emin-base)        // position of the last bit kept
	var m uint64
	if low > high+1 {
		return 0, true // less than half of the smallest
	}
	if low <= 0 {
		// All bits are kept, since there are at most mant of them.
		m, low = mag[0], 0
	} else {
		m = bitsAt(mag, low)
		half := mag[(low-1)>>6]>>(uint(low-1)&63)&1 != 0
		if half && (m&1 != 0 || anyBelow(mag, low-1)) {
			m++
		}
	}
	x := math.Ldexp(float64(m), base+low)
	if math.IsInf(x, 0) || x >= math.Ldexp(1, emax-1)*2 {
		return 0, false
	}
	if neg {
		x = -x
	}
	return x, true
}

// bitsAt is the 64 bits of mag from position low.
func bitsAt(mag []uint64, low int) uint64 {
	i, s := low>>6, uint(low)&63
	if i >= len(mag) {
		return 0
	}
	m := mag[i] >> s
	if i+1 < len(mag) {
		m |= mag[i+1] << (64 - s)
	}
	return m
}

// anyBelow reports whether any bit under position low is set.
func anyBelow(mag []uint64, low int) bool {
	i, s := low>>6, uint(low)&63
	if mag[i]&(1<<s-1) != 0 {
		return true
	}
	for _, x := range mag[:i] {
		if x != 0 {
			return true
		}
	}
	return false
}

// exact is the sum as an integer × 2^exp; ok is false if NaN or an infinity
// takes part.
func (p *wideSums) exact(w *[floatWords]uint64) (m *big.Int, exp int, ok bool) {
	limbs, base := w[:3], 0
	if i := w[3] >> wideShift; i != 0 {
		a := p.all[i-1]
		if a.nan|a.posInf|a.negInf != 0 {
			return nil, 0, false
		}
		limbs, base = a.limbs[:], wideBase
	} else if w[3] != 0 {
		base = floatBase(w)
	}
	words := make([]big.Word, len(limbs))
	neg := int64(limbs[len(limbs)-1]) < 0
	c := uint64(1)
	for i, x := range limbs {
		if neg {
			x, c = bits.Add64(^x, 0, c)
		}
		words[i] = big.Word(x)
	}
	m = new(big.Int).SetBits(words)
	if neg {
		m.Neg(m)
	}
	return m, base, true
}

// crossDeviation is (n·Σxy − Σx·Σy)/n, rounded, from the exact sums.
func (p *wideSums) crossDeviation(n int64, sx, sy, sxy *[floatWords]uint64) float64 {
	x, ex, ok1 := p.exact(sx)
	y, ey, ok2 := p.exact(sy)
	xy, exy, ok3 := p.exact(sxy)
	if !ok1 || !ok2 || !ok3 {
		return math.NaN()
	}
	x.Mul(x, y)
	xy.Mul(xy, big.NewInt(n))
	e := min(ex+ey, exy)
	x.Lsh(x, uint(ex+ey-e))
	xy.Lsh(xy, uint(exy-e))
	xy.Sub(xy, x)
	if xy.Sign() == 0 {
		return 0
	}
	// Divide to at least 64 bits, the last of which stands for all that is left
	// over: then rounding once more is right.
	div := big.NewInt(n)
	s := 64 + div.BitLen() - xy.BitLen()
	neg := xy.Sign() < 0
	xy.Abs(xy)
	sticky := false
	if s >= 0 {
		xy.Lsh(xy, uint(s))
	} else {
		sticky = int(xy.TrailingZeroBits()) < -s
		xy.Rsh(xy, uint(-s))
	}
	rem := new(big.Int)
	xy.QuoRem(xy, div, rem)
	if sticky || rem.Sign() != 0 {
		xy.SetBit(xy, 0, 1)
	}
	f, _ := new(big.Float).SetMantExp(new(big.Float).SetInt(xy), e-s).Float64()
	if neg && f != 0 {
		f = -f
	}
	return f
}
