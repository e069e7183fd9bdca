package differential

import (
	"bytes"
	"math/bits"
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
)

// feedRows is rows on their way into accumulators: row rows[i] of the vectors
// goes to the slots at ptrs[i] with diffs[i].
type feedRows struct {
	cols  [2]*columnar.Vec
	rows  []uint32
	ptrs  []unsafe.Pointer
	diffs []int64
	ones  bool // all diffs are 1
}

// spillPools hold what does not fit the slots.
type spillPools struct {
	wide wideSums
	nums numericSums
	ar   arena    // tails of the extremes of kind Bytes
	dead []uint64 // second words of extremes that were replaced in this epoch
}

func floatSlots(p unsafe.Pointer, at int) *[floatWords]uint64 {
	return (*[floatWords]uint64)(unsafe.Add(p, at*8))
}

func numericSlots(p unsafe.Pointer, at int) *[numericWords]uint64 {
	return (*[numericWords]uint64)(unsafe.Add(p, at*8))
}

// accumulate adds rows to the slots of one accumulator.
func (s *spillPools) accumulate(a *accumulator, in *feedRows) {
	v := in.cols[a.a]
	ptrs, diffs := in.ptrs, in.diffs[:len(in.ptrs)]
	switch a.op {
	case accCount:
		if in.ones {
			for _, p := range ptrs {
				*wordAt(p, a.at)++
			}
			return
		}
		for i, p := range ptrs {
			*wordAt(p, a.at) += uint64(diffs[i])
		}
	case accNarrow:
		if a.kind == columnar.KindInt16 {
			addNarrow(v.Int16s(), in, a.at)
		} else {
			addNarrow(v.Int32s(), in, a.at)
		}
	case accWide:
		if in.ones {
			addWideOnes(v.Int64s(), in, a.at)
			return
		}
		addWide(v.Int64s(), in, a.at)
	case accFloat:
		if v.Kind() == columnar.KindFloat64 {
			vals := v.Float64s()
			for i, r := range in.rows {
				s.wide.addFloat(floatSlots(ptrs[i], a.at), vals[r], diffs[i])
			}
		} else {
			vals := v.Float32s()
			for i, r := range in.rows {
				s.wide.addFloat(floatSlots(ptrs[i], a.at), float64(vals[r]), diffs[i])
			}
		}
	case accProduct:
		w := in.cols[a.b]
		for i, r := range in.rows {
			s.wide.addProduct(floatSlots(ptrs[i], a.at), floatAt(v, r), floatAt(w, r), diffs[i])
		}
	case accNumeric:
		_, offs, data := v.Raw()
		for i, r := range in.rows {
			s.nums.add(numericSlots(ptrs[i], a.at), data[offs[r]:offs[r+1]], diffs[i])
		}
	case accTrue:
		vals := v.Bools()
		for i, r := range in.rows {
			*wordAt(ptrs[i], a.at) += uint64(diffs[i]) & -boolWord(vals[r])
		}
	case accBits, accXor:
		accumulateBits(a, v, in)
	case accLargest:
		s.accumulateLargest(a, v, in)
	}
}

func floatAt(v *columnar.Vec, r uint32) float64 {
	if v.Kind() == columnar.KindFloat64 {
		return v.Float64s()[r]
	}
	return float64(v.Float32s()[r])
}

func addNarrow[T int16 | int32](vals []T, in *feedRows, at int) {
	ptrs, diffs := in.ptrs[:len(in.rows)], in.diffs[:len(in.rows)]
	for i, r := range in.rows {
		*wordAt(ptrs[i], at) += uint64(int64(vals[r]) * diffs[i])
	}
}

func addWide(vals []int64, in *feedRows, at int) {
	ptrs, diffs := in.ptrs[:len(in.rows)], in.diffs[:len(in.rows)]
	for i, r := range in.rows {
		x, d := vals[r], diffs[i]
		hi, lo := bits.Mul64(uint64(x), uint64(d))
		// The unsigned product takes negative factors for 2^64 more than they are.
		hi -= uint64(x>>63)&uint64(d) + uint64(d>>63)&uint64(x)
		w := (*[2]uint64)(unsafe.Add(ptrs[i], at*8))
		var c uint64
		w[0], c = bits.Add64(w[0], lo, 0)
		w[1] += hi + c
	}
}

// addWideOnes is addWide of rows whose diffs are all 1.
func addWideOnes(vals []int64, in *feedRows, at int) {
	ptrs := in.ptrs[:len(in.rows)]
	for i, r := range in.rows {
		x := vals[r]
		w := (*[2]uint64)(unsafe.Add(ptrs[i], at*8))
		var c uint64
		w[0], c = bits.Add64(w[0], uint64(x), 0)
		w[1] += uint64(x>>63) + c
	}
}

// intBits is an integer of any width as its bits.
func intBits(v *columnar.Vec, r uint32) uint64 {
	switch v.Kind() {
	case columnar.KindInt16:
		return uint64(uint16(v.Int16s()[r]))
	case columnar.KindInt32:
		return uint64(uint32(v.Int32s()[r]))
	}
	return uint64(v.Int64s()[r])
}

func accumulateBits(a *accumulator, v *columnar.Vec, in *feedRows) {
	for i, r := range in.rows {
		x, d := intBits(v, r), uint64(in.diffs[i])
		if a.op == accXor {
			*wordAt(in.ptrs[i], a.at) ^= x & -(d & 1)
			continue
		}
		for ; x != 0; x &= x - 1 {
			*wordAt(in.ptrs[i], a.at+bits.TrailingZeros64(x)) += d
		}
	}
}

// accumulateLargest keeps the largest of the words of values, or of their
// complements for a minimum: then zero, which a fresh slot holds, is neutral.
// Bytes have a third slot that says whether there is a value.
func (s *spillPools) accumulateLargest(a *accumulator, v *columnar.Vec, in *feedRows) {
	flip := ^uint64(0)
	if a.desc {
		flip = 0
	}
	switch a.kind {
	case columnar.KindBytes:
		s.largestBytes(a, v, in)
	case columnar.KindFixed16:
		vals := v.U128s()
		for i, r := range in.rows {
			hi, lo := vals[r].Hi^flip, vals[r].Lo^flip
			w := (*[2]uint64)(unsafe.Add(in.ptrs[i], a.at*8))
			if in.diffs[i] > 0 && (hi > w[0] || (hi == w[0] && lo > w[1])) {
				w[0], w[1] = hi, lo
			}
		}
	case columnar.KindInt64:
		largestInts(v.Int64s(), in, a.at, flip)
	case columnar.KindInt32:
		largestInts(v.Int32s(), in, a.at, flip)
	case columnar.KindInt16:
		largestInts(v.Int16s(), in, a.at, flip)
	default:
		for i, r := range in.rows {
			x := fixedWord(v, r) ^ flip
			if w := wordAt(in.ptrs[i], a.at); in.diffs[i] > 0 && x > *w {
				*w = x
			}
		}
	}
}

func largestInts[T int16 | int32 | int64](vals []T, in *feedRows, at int, flip uint64) {
	ptrs, diffs := in.ptrs[:len(in.rows)], in.diffs[:len(in.rows)]
	for i, r := range in.rows {
		x := intWord(int64(vals[r])) ^ flip
		if w := wordAt(ptrs[i], at); diffs[i] > 0 && x > *w {
			*w = x
		}
	}
}

// fixedWord is the order-preserving word of a value of a kind with one.
func fixedWord(v *columnar.Vec, r uint32) uint64 {
	switch v.Kind() {
	case columnar.KindBool:
		return boolWord(v.Bools()[r])
	case columnar.KindInt16:
		return intWord(int64(v.Int16s()[r]))
	case columnar.KindInt32:
		return intWord(int64(v.Int32s()[r]))
	case columnar.KindInt64:
		return intWord(v.Int64s()[r])
	case columnar.KindFloat32:
		return f32Word(v.Float32s()[r])
	}
	return f64Word(v.Float64s()[r])
}

func (s *spillPools) largestBytes(a *accumulator, v *columnar.Vec, in *feedRows) {
	for i, r := range in.rows {
		b := v.Bytes(int(r))
		w := (*[3]uint64)(unsafe.Add(in.ptrs[i], a.at*8))
		if in.diffs[i] <= 0 {
			continue
		}
		if w[2] != 0 {
			c := s.compareBytes(b, w[0], w[1])
			if c == 0 || (c < 0) == a.desc {
				continue
			}
			s.dead = append(s.dead, w[1])
		}
		k := keepBytes(b, &s.ar)
		w[0], w[1], w[2] = k[0], k[1], 1
	}
}

// compareBytes compares b with a kept Bytes value.
func (s *spillPools) compareBytes(b []byte, w0, w1 uint64) int {
	if x := prefixWord(b); x != w0 {
		if x < w0 {
			return -1
		}
		return 1
	}
	m, n := len(b), int(w1&lenMask)
	if m <= inlined || n <= inlined {
		return m - n
	}
	return bytes.Compare(b[inlined:], s.ar.bytes(w1>>refShift, n-inlined))
}

// settle brings the slots at p to their one form at the end of an epoch.
func (s *spillPools) settle(spills []*accumulator, p unsafe.Pointer) {
	for _, a := range spills {
		if a.op == accNumeric {
			s.nums.settle(numericSlots(p, a.at))
		} else {
			s.wide.settle(floatSlots(p, a.at))
		}
	}
}

// cloneSpills gives a copy of slots its own copy of what they refer to, as far as
// outputs are read from it; freeSpills releases it.
func (s *spillPools) cloneSpills(spills []*accumulator, p unsafe.Pointer) {
	for _, a := range spills {
		w := wordAt(p, a.at+3)
		if a.op == accNumeric {
			if old, ok := accOf(*w); ok {
				i := s.nums.alloc()
				s.nums.all[i].Merge(s.nums.all[old])
				*w = sumAcc | uint64(i+1)<<sumIndexAt
			}
		} else if old := *w >> wideShift; old != 0 {
			i := s.wide.alloc()
			*s.wide.all[i] = *s.wide.all[old-1]
			*w = *w&baseMask | uint64(i+1)<<wideShift
		}
	}
}

func (s *spillPools) freeSpills(spills []*accumulator, p unsafe.Pointer) {
	for _, a := range spills {
		w := *wordAt(p, a.at+3)
		if a.op == accNumeric {
			if i, ok := accOf(w); ok {
				s.nums.release(i)
			}
		} else if i := w >> wideShift; i != 0 {
			s.wide.release(uint32(i - 1))
		}
	}
}

// bury frees the extremes that were replaced, when nothing reads them any more.
func (s *spillPools) bury() {
	for _, w := range s.dead {
		freeBytes(w, &s.ar)
	}
	s.dead = s.dead[:0]
}
