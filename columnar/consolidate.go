package columnar

import "math/bits"

// Consolidate sums the diffs of equal rows and drops rows whose sum is 0. A nil
// diffs means 1 each, as in the result. The result's order is unspecified but
// deterministic; it is the input itself if that is consolidated already.
func Consolidate(b Batch, diffs []int64) (Batch, []int64) {
	if b.N == 0 {
		return b, nil
	}
	h := GetSlice[uint64](b.N)
	a := GetSlice[Keyed](b.N)
	tmp := GetSlice[Keyed](b.N)
	defer func() {
		PutSlice(h)
		PutSlice(a)
		PutSlice(tmp)
	}()
	HashCols(b.Cols, b.N, h)
	for i, x := range h {
		a[i] = Keyed{Key: x, Row: uint32(i)}
	}
	SortKeyed(a, tmp)
	idx := make([]uint32, 0, b.N)
	out := make([]int64, 0, b.N)
	ones := true
	for lo := 0; lo < len(a); {
		hi := lo + 1
		for hi < len(a) && a[hi].Key == a[lo].Key {
			hi++
		}
		idx, out = sumRun(b.Cols, diffs, a[lo:hi], idx, out)
		lo = hi
	}
	for _, d := range out {
		ones = ones && d == 1
	}
	if ones {
		out = nil
	}
	if len(idx) == b.N {
		if diffs == nil {
			return b, nil
		}
		// Nothing merged and nothing dropped: the input is as good.
		if ones {
			return b, nil
		}
		return b, diffs
	}
	return b.Gather(idx), out
}

// sumRun adds up rows of equal hash, which are equal or (rarely) not.
func sumRun(cols []*Vec, diffs []int64, run []Keyed, idx []uint32, out []int64) ([]uint32, []int64) {
	for len(run) > 0 {
		first := run[0].Row
		sum := int64(0)
		rest := run[:0]
		for _, k := range run {
			if k.Row != first && !EqualRows(cols, int(first), cols, int(k.Row)) {
				rest = append(rest, k)
				continue
			}
			if diffs == nil {
				sum++
			} else {
				sum += diffs[k.Row]
			}
		}
		if sum != 0 {
			idx, out = append(idx, first), append(out, sum)
		}
		run = rest
	}
	return idx, out
}

// PartitionOf is the partition of a key hash among n (a power of two): each is
// a range of hashes, in order.
func PartitionOf(hash uint64, n int) int {
	// A shift by 64 gives 0: all in the only partition.
	return int(hash >> (64 - uint(bits.TrailingZeros(uint(n)))))
}

// Scatter groups rows by the partition of their hash: rows idx[ends[p-1]:ends[p]]
// belong to partition p, in their order.
func Scatter(hash []uint64, n int) (idx []uint32, ends []int) {
	shift := 64 - uint(bits.TrailingZeros(uint(n)))
	ends = make([]int, n)
	at := make([]uint32, n)
	for _, h := range hash {
		at[h>>shift]++
	}
	sum := uint32(0)
	for p, c := range at {
		at[p] = sum
		sum += c
		ends[p] = int(sum)
	}
	idx = GetSlice[uint32](len(hash))
	for i, h := range hash {
		p := h >> shift
		idx[at[p]] = uint32(i)
		at[p]++
	}
	return idx, ends
}
