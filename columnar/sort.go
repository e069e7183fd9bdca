package columnar

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Keyed is a sort key with the row (or address) that it belongs to.
type Keyed struct {
	Key uint64
	Row uint32
	_   uint32
}

const (
	insertionMax = 24 // runs up to this length are sorted by insertion
	radixBits    = 11 // digits are at most this wide: 2048 counters stay in L1
)

// SortKeyed sorts by Key, keeping the order of equal keys. scratch must be as
// long as a; the result is in a.
//
// It sorts only as many leading bits as make ties rare, from where keys differ
// at all, by least-significant-digit radix; what ties remain it sorts as runs.
func SortKeyed(a, scratch []Keyed) {
	n := len(a)
	if n <= insertionMax {
		insertKeyed(a)
		return
	}
	var diff uint64
	first := a[0].Key
	for i := range a {
		diff |= a[i].Key ^ first
	}
	if diff == 0 {
		return
	}
	top := 64 - bits.LeadingZeros64(diff) // bits that can differ
	// Uniform keys: log2 n bits tell rows apart, a few more make ties rare.
	length := bits.Len(uint(n))
	passes := (length + 4 + radixBits - 1) / radixBits
	want := min(top, length+6, passes*radixBits)
	if n < 256 {
		want = min(top, 8)
	}
	if top-want < 4 {
		want = top
	}
	passes = (want + radixBits - 1) / radixBits
	width := (want + passes - 1) / passes
	shift := max(top-width*passes, 0)
	src, dst := a, scratch[:n]
	for p := range passes {
		radixPass(src, dst, uint(shift+p*width), uint(width))
		src, dst = dst, src
	}
	if passes&1 == 1 {
		copy(a, src)
	}
	if shift > 0 {
		fixRuns(a, scratch, uint(shift))
	}
}

// radixPass scatters src to dst by the digit of so many bits at shift.
func radixPass(src, dst []Keyed, shift, width uint) {
	if width <= 8 {
		radixPass8(src, dst, shift&63, uint64(1)<<width-1)
		return
	}
	var count [1 << radixBits]uint32
	mask := uint64(1)<<width - 1
	shift &= 63
	for i := range src {
		count[src[i].Key>>shift&mask&(1<<radixBits-1)]++
	}
	var sum uint32
	for i, c := range count {
		count[i], sum = sum, sum+c
	}
	for i := range src {
		d := src[i].Key >> shift & mask & (1<<radixBits - 1)
		o := count[d]
		count[d] = o + 1
		dst[o] = src[i]
	}
}

// radixPass8 is radixPass with few counters, for short inputs.
func radixPass8(src, dst []Keyed, shift uint, mask uint64) {
	var count [256]uint32
	for i := range src {
		count[uint8(src[i].Key>>(shift&63)&mask)]++
	}
	var sum uint32
	for i, c := range count {
		count[i], sum = sum, sum+c
	}
	for i := range src {
		d := uint8(src[i].Key >> (shift & 63) & mask)
		o := count[d]
		count[d] = o + 1
		dst[o] = src[i]
	}
}

// fixRuns sorts the runs of keys that are equal above shift.
func fixRuns(a, scratch []Keyed, shift uint) {
	for i := 1; i < len(a); i++ {
		if a[i].Key >= a[i-1].Key {
			continue
		}
		// Only a run with equal upper bits can be out of order.
		up := a[i].Key >> shift
		lo := i - 1
		for lo > 0 && a[lo-1].Key>>shift == up {
			lo--
		}
		hi := i + 1
		for hi < len(a) && a[hi].Key>>shift == up {
			hi++
		}
		if hi-lo <= insertionMax {
			insertKeyed(a[lo:hi])
		} else {
			SortKeyed(a[lo:hi], scratch)
		}
		i = hi - 1
	}
}

func insertKeyed(a []Keyed) {
	for i := 1; i < len(a); i++ {
		x := a[i]
		j := i
		for j > 0 && a[j-1].Key > x.Key {
			a[j] = a[j-1]
			j--
		}
		a[j] = x
	}
}

// SortKey is a column to sort by. NullsFirst is absolute: NULLs come first if
// it is set and last if not, whatever Desc is.
type SortKey struct {
	Vec        *Vec
	Desc       bool
	NullsFirst bool
}

// compare compares values i and j of the column in the order asked for.
func (k *SortKey) compare(i, j int) int { return k.compareTo(i, k.Vec, j) }

// compareTo compares value i of the column with value j of another.
func (k *SortKey) compareTo(i int, w *Vec, j int) int {
	v := k.Vec
	if v.nulls != nil || w.nulls != nil {
		in, jn := v.Null(i), w.Null(j)
		if in || jn {
			switch {
			case in == jn:
				return 0
			case in == k.NullsFirst:
				return -1
			}
			return 1
		}
	}
	r := CompareAt(v, i, w, j)
	if k.Desc {
		return -r
	}
	return r
}

// Compare compares rows i and j.
func Compare(keys []SortKey, i, j int) int {
	for k := range keys {
		if r := keys[k].compare(i, j); r != 0 {
			return r
		}
	}
	return 0
}

// CompareBetween compares row i of a with row j of b, which have the same keys
// over different vectors.
func CompareBetween(a []SortKey, i int, b []SortKey, j int) int {
	for k := range a {
		if r := a[k].compareTo(i, b[k].Vec, j); r != 0 {
			return r
		}
	}
	return 0
}

// Prefixes sets the Key of each element to an order-preserving prefix of its
// Row's value. It reports whether equal prefixes mean equal values.
func (k *SortKey) Prefixes(a []Keyed) (exact bool) {
	v := k.Vec
	var flip uint64
	if k.Desc {
		flip = ^flip
	}
	switch v.kind {
	case KindBool:
		for i := range a {
			a[i].Key = uint64(v.fixed[a[i].Row])<<63 ^ flip
		}
	case KindInt16:
		prefixInts(v.Int16s(), a, 48, flip)
	case KindInt32:
		prefixInts(v.Int32s(), a, 32, flip)
	case KindInt64:
		prefixInts(v.Int64s(), a, 0, flip)
	case KindFloat32:
		vals := v.Float32s()
		for i := range a {
			a[i].Key = uint64(float32Key(vals[a[i].Row]))<<32 ^ flip
		}
	case KindFloat64:
		vals := v.Float64s()
		for i := range a {
			a[i].Key = float64Key(vals[a[i].Row]) ^ flip
		}
	case KindFixed16:
		vals := v.U128s()
		for i := range a {
			a[i].Key = vals[a[i].Row].Hi ^ flip
		}
	case KindBytes:
		for i := range a {
			a[i].Key = bytesPrefix(v.Bytes(int(a[i].Row))) ^ flip
		}
	}
	exact = v.kind != KindFixed16 && v.kind != KindBytes
	if v.nulls == nil {
		return exact
	}
	for i := range a {
		// One bit makes room for NULL on either side.
		null := v.nulls.Get(int(a[i].Row))
		switch {
		case null && k.NullsFirst:
			a[i].Key = 0
		case null:
			a[i].Key = ^uint64(0)
		case k.NullsFirst:
			a[i].Key = a[i].Key>>1 | 1<<63
		default:
			a[i].Key >>= 1
		}
	}
	return exact && v.kind.Width() < 8
}

func prefixInts[T int16 | int32 | int64](vals []T, a []Keyed, up uint, flip uint64) {
	for i := range a {
		a[i].Key = (uint64(vals[a[i].Row])<<up ^ 1<<63) ^ flip
	}
}

func bytesPrefix(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var x uint64
	for i, c := range b {
		x |= uint64(c) << (56 - 8*uint(i))
	}
	return x
}

// SortRows sorts rows (the Rows of a) by the keys, keeping the order of equal
// rows; the Keys of a are overwritten. scratch must be as long as a.
func SortRows(keys []SortKey, a, scratch []Keyed) {
	if len(keys) == 0 || len(a) < 2 {
		return
	}
	if len(a) <= insertionMax {
		insertRows(keys, a)
		return
	}
	exact := keys[0].Prefixes(a)
	if !sortedKeyed(a) {
		SortKeyed(a, scratch)
	}
	for lo := 0; lo < len(a); {
		hi := lo + 1
		for hi < len(a) && a[hi].Key == a[lo].Key {
			hi++
		}
		if hi-lo > 1 {
			if exact {
				SortRows(keys[1:], a[lo:hi], scratch[lo:hi])
			} else {
				sortTies(keys, a[lo:hi], scratch[lo:hi])
			}
		}
		lo = hi
	}
}

// sortTies sorts rows whose prefix of the first key is equal but not exact.
func sortTies(keys []SortKey, a, scratch []Keyed) {
	k := &keys[0]
	if len(a) > insertionMax && allEqual(k, a) {
		SortRows(keys[1:], a, scratch)
		return
	}
	slices.SortStableFunc(a, func(x, y Keyed) int { return Compare(keys, int(x.Row), int(y.Row)) })
}

func allEqual(k *SortKey, a []Keyed) bool {
	first := int(a[0].Row)
	for i := range a[1:] {
		if !EqualAt(k.Vec, first, k.Vec, int(a[i+1].Row)) {
			return false
		}
	}
	return true
}

func sortedKeyed(a []Keyed) bool {
	for i := 1; i < len(a); i++ {
		if a[i].Key < a[i-1].Key {
			return false
		}
	}
	return true
}

func insertRows(keys []SortKey, a []Keyed) {
	for i := 1; i < len(a); i++ {
		x := a[i]
		j := i
		for j > 0 && Compare(keys, int(a[j-1].Row), int(x.Row)) > 0 {
			a[j] = a[j-1]
			j--
		}
		a[j] = x
	}
}

// Sort is the order of n rows by the keys: a stable sort.
func Sort(keys []SortKey, n int) []uint32 {
	a := GetSlice[Keyed](n)
	for i := range a {
		a[i].Row = uint32(i)
	}
	tmp := GetSlice[Keyed](n)
	SortRows(keys, a, tmp)
	out := make([]uint32, n)
	for i := range out {
		out[i] = a[i].Row
	}
	PutSlice(a)
	PutSlice(tmp)
	return out
}
