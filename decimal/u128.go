package decimal

import "math/bits"

// u128 is an unsigned 128-bit integer.
type u128 struct{ hi, lo uint64 }

// u256 is an unsigned 256-bit integer, least significant limb first.
type u256 [4]uint64

// pow10Tab holds 10^0 … 10^38, all that are below 2^127.
var pow10Tab = func() (t [39]u128) {
	t[0] = u128{0, 1}
	for i := 1; i < len(t); i++ {
		t[i], _ = t[i-1].mul64(10)
	}
	return t
}()

func (a u128) isZero() bool { return a.hi|a.lo == 0 }

// fits reports whether a is below 2^127, the bound of the fast path.
func (a u128) fits() bool { return a.hi>>63 == 0 }

func (a u128) cmp(b u128) int {
	switch {
	case a.hi != b.hi:
		if a.hi < b.hi {
			return -1
		}
		return 1
	case a.lo != b.lo:
		if a.lo < b.lo {
			return -1
		}
		return 1
	}
	return 0
}

func (a u128) less(b u128) bool { return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo) }

// add is a+b modulo 2^128.
func (a u128) add(b u128) u128 {
	lo, c := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, c)
	return u128{hi, lo}
}

// sub is a-b modulo 2^128.
func (a u128) sub(b u128) u128 {
	lo, c := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, c)
	return u128{hi, lo}
}

// mul64 is a*m; ok is false if it needs more than 128 bits.
func (a u128) mul64(m uint64) (r u128, ok bool) {
	h, lo := bits.Mul64(a.lo, m)
	o, hi := bits.Mul64(a.hi, m)
	hi, c := bits.Add64(hi, h, 0)
	return u128{hi, lo}, o|c == 0
}

// mul is the full product.
func (a u128) mul(b u128) u256 {
	var r u256
	r[1], r[0] = bits.Mul64(a.lo, b.lo)
	h1, l1 := bits.Mul64(a.hi, b.lo)
	h2, l2 := bits.Mul64(a.lo, b.hi)
	h3, l3 := bits.Mul64(a.hi, b.hi)
	var c uint64
	r[1], c = bits.Add64(r[1], l1, 0)
	r[2], c = bits.Add64(h1, l3, c)
	r[3] = h3 + c
	r[1], c = bits.Add64(r[1], l2, 0)
	r[2], c = bits.Add64(r[2], h2, c)
	r[3] += c
	return r
}

// mulPow10 is a*10^k, k ≥ 0; ok is false if that is not below 2^127.
func (a u128) mulPow10(k int) (u128, bool) {
	if k == 0 || a.isZero() {
		return a, true
	}
	if k >= len(pow10Tab) {
		return u128{}, false
	}
	p := pow10Tab[k]
	if p.hi == 0 {
		r, ok := a.mul64(p.lo)
		return r, ok && r.fits()
	}
	if a.hi != 0 {
		return u128{}, false
	}
	r, ok := p.mul64(a.lo)
	return r, ok && r.fits()
}

// divMod64 is a/m and a%m.
func (a u128) divMod64(m uint64) (q u128, r uint64) {
	if a.hi == 0 {
		return u128{0, a.lo / m}, a.lo % m
	}
	q.hi, r = a.hi/m, a.hi%m
	q.lo, r = bits.Div64(r, a.lo, m)
	return q, r
}

// divMod is a/b and a%b.
func (a u128) divMod(b u128) (q, r u128) {
	if b.hi == 0 {
		q, m := a.divMod64(b.lo)
		return q, u128{0, m}
	}
	if a.less(b) {
		return u128{}, a
	}
	// Both have a high limb, so that the quotient fits in 64 bits: estimate it
	// from the normalized high limbs, and correct it.
	s := uint(bits.LeadingZeros64(b.hi))
	v := b.shl(s)
	u := a.shr(1)
	qh, _ := bits.Div64(u.hi, u.lo, v.hi)
	qh >>= 63 - s
	if qh != 0 {
		qh--
	}
	p, _ := b.mul64(qh)
	r = a.sub(p)
	for !r.less(b) {
		qh++
		r = r.sub(b)
	}
	return u128{0, qh}, r
}

func (a u128) shl(s uint) u128 {
	if s >= 64 {
		return u128{a.lo << (s - 64), 0}
	}
	return u128{a.hi<<s | a.lo>>(64-s), a.lo << s}
}

func (a u128) shr(s uint) u128 {
	if s >= 64 {
		return u128{0, a.hi >> (s - 64)}
	}
	return u128{a.hi >> s, a.lo>>s | a.hi<<(64-s)}
}

func (a u128) bitLen() int {
	if a.hi != 0 {
		return 64 + bits.Len64(a.hi)
	}
	return bits.Len64(a.lo)
}

// digits is the number of decimal digits, 0 for zero.
func (a u128) digits() int {
	l := a.bitLen()
	if l == 0 {
		return 0
	}
	d := l * 1233 >> 12 // floor(l*log10(2)) for l ≤ 128
	if d < len(pow10Tab) && !a.less(pow10Tab[d]) {
		d++
	}
	return d
}

// div divides a 256-bit number by a 128-bit one; ok is false if the quotient
// needs more than 128 bits.
func (a u256) div(b u128) (q, r u128, ok bool) {
	if b.hi == 0 {
		var m uint64
		if a[3]|a[2] != 0 {
			if a[3] != 0 || a[2] >= b.lo {
				return q, r, false
			}
			m = a[2]
		}
		if m == 0 {
			q.hi, m = a[1]/b.lo, a[1]%b.lo
		} else {
			q.hi, m = bits.Div64(m, a[1], b.lo)
		}
		q.lo, m = bits.Div64(m, a[0], b.lo)
		return q, u128{0, m}, true
	}
	if !(u128{a[3], a[2]}).less(b) {
		return q, r, false
	}
	s := uint(bits.LeadingZeros64(b.hi))
	v := b.shl(s)
	a = a.shl(s)
	r = u128{a[3], a[2]}
	q.hi, r = div3by2(r, a[1], v)
	q.lo, r = div3by2(r, a[0], v)
	return q, r.shr(s), true
}

func (a u256) shl(s uint) u256 {
	if s == 0 {
		return a
	}
	return u256{a[0] << s, a[1]<<s | a[0]>>(64-s), a[2]<<s | a[1]>>(64-s), a[3]<<s | a[2]>>(64-s)}
}

// div3by2 divides u*2^64+l by v, where v has its top bit set and u < v.
func div3by2(u u128, l uint64, v u128) (q uint64, r u128) {
	var rh uint64
	if u.hi >= v.hi {
		q = ^uint64(0)
		var c uint64
		rh, c = bits.Add64(u.lo, v.hi, 0)
		if c != 0 { // the estimate's remainder passes 2^64: no correction needed
			return q, u128{u.lo, l}.sub(mulLow(q, v))
		}
	} else {
		q, rh = bits.Div64(u.hi, u.lo, v.hi)
	}
	for {
		h, p := bits.Mul64(q, v.lo)
		if h < rh || (h == rh && p <= l) {
			break
		}
		q--
		var c uint64
		rh, c = bits.Add64(rh, v.hi, 0)
		if c != 0 {
			break
		}
	}
	return q, u128{u.lo, l}.sub(mulLow(q, v))
}

// mulLow is q*v modulo 2^128.
func mulLow(q uint64, v u128) u128 {
	r, _ := v.mul64(q)
	return r
}
