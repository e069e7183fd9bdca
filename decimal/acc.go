package decimal

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"slices"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// Acc is an exact sum of numbers with multiplicities. It is invertible: adding
// a number with the opposite multiplicity takes it back to the last bit,
// display scale and special values included. The zero Acc is empty.
//
// The display scale of the sum is the greatest among the numbers whose
// multiplicities do not cancel, therefore the numbers are counted per scale.
type Acc struct {
	hi    int64 // the sum of the finite numbers × 10^scale, two's complement
	lo    uint64
	n     int64     // multiplicity of the finite numbers of display scale `scale`
	scale int32     // greatest display scale seen
	x     *accExtra // what a sum of ordinary numbers of one scale does not need
}

type accExtra struct {
	big                 *big.Int // replaces hi, lo once they have overflowed
	nan, posInf, negInf int64
	scales              []scaleCount // of the other display scales
}

type scaleCount struct {
	scale int32
	n     int64
}

func (a *Acc) extra() *accExtra {
	if a.x == nil {
		a.x = new(accExtra)
	}
	return a.x
}

// Add adds mult times the number e.
func (a *Acc) Add(e []byte, mult int64) {
	x := decode(e)
	if x.form != finite {
		ex := a.extra()
		switch x.form {
		case nan:
			ex.nan += mult
		case posInf:
			ex.posInf += mult
		default:
			ex.negInf += mult
		}
		return
	}
	a.count(int32(x.scale), mult)
	if x.big == nil && (a.x == nil || a.x.big == nil) {
		if c, ok := x.c.mulPow10(int(a.scale) - x.scale); ok && a.addSmall(c, x.neg, mult) {
			return
		}
	}
	a.addBig(x.rescaled(int(a.scale)), x.neg, mult)
}

// AddInt64 adds mult times an integer.
func (a *Acc) AddInt64(i, mult int64) {
	if a.x == nil && a.scale == 0 && mult*mult == 1 && i != math.MinInt64 {
		v := i * mult
		lo, carry := bits.Add64(a.lo, uint64(v), 0)
		hi, _ := bits.Add64(uint64(a.hi), uint64(v>>63), carry)
		if (uint64(a.hi)^hi)&(uint64(v>>63)^hi)>>63 == 0 {
			a.hi, a.lo, a.n = int64(hi), lo, a.n+mult
			return
		}
	}
	a.AddInt128(i>>63, uint64(i), mult)
}

// AddInt128 adds mult times the signed integer hi × 2^64 + lo.
func (a *Acc) AddInt128(hi int64, lo uint64, mult int64) {
	x := fromInt128(hi, lo)
	a.count(0, mult)
	if x.big == nil && (a.x == nil || a.x.big == nil) {
		if c, ok := x.c.mulPow10(int(a.scale)); ok && a.addSmall(c, x.neg, mult) {
			return
		}
	}
	a.addBig(x.rescaled(int(a.scale)), x.neg, mult)
}

// count notes mult numbers of a scale, and raises the scale of the sum if needed.
func (a *Acc) count(scale int32, mult int64) {
	if scale == a.scale {
		a.n += mult
		return
	}
	if scale < a.scale {
		a.countOther(scale, mult)
		return
	}
	if a.n != 0 {
		a.countOther(a.scale, a.n)
	}
	a.raise(scale)
	a.n = mult
}

func (a *Acc) countOther(scale int32, mult int64) {
	if mult == 0 {
		return
	}
	ex := a.extra()
	for i := range ex.scales {
		if s := &ex.scales[i]; s.scale == scale {
			if s.n += mult; s.n == 0 {
				ex.scales = slices.Delete(ex.scales, i, i+1)
			}
			return
		}
	}
	ex.scales = append(ex.scales, scaleCount{scale, mult})
}

// raise brings the sum to a greater scale.
func (a *Acc) raise(scale int32) {
	k := int(scale - a.scale)
	a.scale = scale
	if a.x == nil || a.x.big == nil {
		x := fromInt128(a.hi, a.lo)
		if c, ok := x.c.mulPow10(k); ok && x.big == nil {
			if x.neg {
				c = u128{}.sub(c)
			}
			a.hi, a.lo = int64(c.hi), c.lo
			return
		}
		a.toBig()
	}
	a.x.big.Mul(a.x.big, bigPow10(k))
}

// addSmall adds mult times ±c, if that overflows nothing.
func (a *Acc) addSmall(c u128, neg bool, mult int64) bool {
	m := uint64(mult)
	if mult < 0 {
		m, neg = -m, !neg
	}
	c, ok := c.mul64(m)
	if !ok || !c.fits() {
		return false
	}
	if neg {
		c = u128{}.sub(c)
	}
	lo, carry := bits.Add64(a.lo, c.lo, 0)
	hi, _ := bits.Add64(uint64(a.hi), c.hi, carry)
	// Overflow: the operands have one sign, the sum has the other.
	if (uint64(a.hi)^hi)&(c.hi^hi)>>63 != 0 {
		return false
	}
	a.hi, a.lo = int64(hi), lo
	return true
}

func (a *Acc) toBig() {
	ex := a.extra()
	if ex.big == nil {
		x := fromInt128(a.hi, a.lo)
		ex.big = new(big.Int).Set(x.bigMag())
		if x.neg {
			ex.big.Neg(ex.big)
		}
		a.hi, a.lo = 0, 0
	}
}

func (a *Acc) addBig(m *big.Int, neg bool, mult int64) {
	a.toBig()
	t := new(big.Int).Mul(m, big.NewInt(mult))
	if neg {
		t.Neg(t)
	}
	a.x.big.Add(a.x.big, t)
}

// Merge adds all that b holds.
func (a *Acc) Merge(b *Acc) {
	a.count(b.scale, b.n)
	x := fromInt128(b.hi, b.lo)
	x.scale = int(b.scale)
	if b.x != nil {
		for _, s := range b.x.scales {
			a.count(s.scale, s.n)
		}
		if b.x.nan|b.x.posInf|b.x.negInf != 0 {
			ex := a.extra()
			ex.nan += b.x.nan
			ex.posInf += b.x.posInf
			ex.negInf += b.x.negInf
		}
		if b.x.big != nil {
			x.neg = b.x.big.Sign() < 0
			x.setMag(new(big.Int).Abs(b.x.big))
		}
	}
	if x.big == nil && (a.x == nil || a.x.big == nil) {
		if c, ok := x.c.mulPow10(int(a.scale) - x.scale); ok && a.addSmall(c, x.neg, 1) {
			return
		}
	}
	a.addBig(x.rescaled(int(a.scale)), x.neg, 1)
}

// IsEmpty reports whether everything added has been taken back.
func (a *Acc) IsEmpty() bool {
	if a.hi != 0 || a.lo != 0 || a.n != 0 {
		return false
	}
	return a.x == nil || (a.x.nan|a.x.posInf|a.x.negInf == 0 && len(a.x.scales) == 0 &&
		(a.x.big == nil || a.x.big.Sign() == 0))
}

// Reset empties a.
func (a *Acc) Reset() { *a = Acc{} }

// sum is the current value.
func (a *Acc) sum() num {
	if ex := a.x; ex != nil {
		switch {
		case ex.nan != 0 || (ex.posInf != 0 && ex.negInf != 0):
			return num{form: nan}
		case ex.posInf != 0:
			return num{form: posInf}
		case ex.negInf != 0:
			return num{form: negInf}
		}
	}
	x := fromInt128(a.hi, a.lo)
	scale := a.scale
	if ex := a.x; ex != nil {
		if ex.big != nil {
			x.neg = ex.big.Sign() < 0
			x.setMag(new(big.Int).Abs(ex.big))
		}
	}
	x.scale = int(scale)
	if a.n == 0 {
		scale = 0
		if a.x != nil {
			for _, s := range a.x.scales {
				scale = max(scale, s.scale)
			}
		}
		x.roundTo(int(scale), true) // exact: no number has more digits
	}
	return x
}

// AppendTo appends the sum; 0 if there is nothing in it.
func (a *Acc) AppendTo(dst []byte) ([]byte, error) {
	if a.x == nil && a.n != 0 && a.hi == int64(a.lo)>>63 {
		m := a.lo
		if a.hi < 0 {
			m = -m
		}
		dst = binary.LittleEndian.AppendUint16(dst, header(a.hi < 0, int(a.scale)))
		l := len(dst)
		return binary.LittleEndian.AppendUint64(dst, m)[:l+(bits.Len64(m)+7)/8], nil
	}
	x := a.sum()
	return x.finish(dst)
}

// AppendState appends a form of a from which LoadState restores it. Accs that
// hold the same numbers have the same state.
func (a *Acc) AppendState(dst []byte) []byte {
	b := *a
	var ex accExtra
	if a.x != nil {
		ex = *a.x
	}
	x := fromInt128(b.hi, b.lo)
	if ex.big != nil {
		x.neg = ex.big.Sign() < 0
		x.setMag(new(big.Int).Abs(ex.big))
	}
	scales := slices.Clone(ex.scales)
	if b.n != 0 {
		scales = append(scales, scaleCount{b.scale, b.n})
	}
	slices.SortFunc(scales, func(p, q scaleCount) int { return int(p.scale - q.scale) })
	x.scale = int(b.scale)
	top := 0
	if len(scales) > 0 {
		top = int(scales[len(scales)-1].scale)
	}
	x.roundTo(top, true)
	dst = binary.AppendVarint(dst, ex.nan)
	dst = binary.AppendVarint(dst, ex.posInf)
	dst = binary.AppendVarint(dst, ex.negInf)
	dst = binary.AppendUvarint(dst, uint64(len(scales)))
	for _, s := range scales {
		dst = binary.AppendUvarint(dst, uint64(s.scale))
		dst = binary.AppendVarint(dst, s.n)
	}
	return x.append(dst)
}

// LoadState sets a to what AppendState wrote.
func (a *Acc) LoadState(b []byte) error {
	*a = Acc{}
	bad := func() error { return pgerror.New(pgerror.DataCorrupted, "invalid numeric accumulator") }
	next := func() (v int64, ok bool) {
		v, k := binary.Varint(b)
		if k <= 0 {
			return 0, false
		}
		b = b[k:]
		return v, true
	}
	nans, ok1 := next()
	pos, ok2 := next()
	neg, ok3 := next()
	cnt, k := binary.Uvarint(b)
	if !ok1 || !ok2 || !ok3 || k <= 0 {
		return bad()
	}
	b = b[k:]
	if nans|pos|neg != 0 {
		*a.extra() = accExtra{nan: nans, posInf: pos, negInf: neg}
	}
	for range cnt {
		s, k := binary.Uvarint(b)
		if k <= 0 || s > MaxScale {
			return bad()
		}
		b = b[k:]
		n, ok := next()
		if !ok {
			return bad()
		}
		a.count(int32(s), n)
	}
	if !Valid(b) {
		return bad()
	}
	x := decode(b)
	if x.form != finite || int32(x.scale) != a.scale {
		return bad()
	}
	if x.big == nil && a.addSmall(x.c, x.neg, 1) {
		return nil
	}
	a.addBig(x.bigMag(), x.neg, 1)
	return nil
}
