package decimal

// Small gives the parts of a sum of ordinary numbers of one display scale:
// hi × 2^64 + lo is the sum × 10^scale, n the multiplicity of the numbers. It
// reports false for any other sum. With SetSmall it lets a caller keep most of
// its sums in plain words.
func (a *Acc) Small() (hi int64, lo uint64, n int64, scale int, ok bool) {
	return a.hi, a.lo, a.n, int(a.scale), a.x == nil
}

// SetSmall sets a to the sum with these parts.
func (a *Acc) SetSmall(hi int64, lo uint64, n int64, scale int) {
	*a = Acc{hi: hi, lo: lo, n: n, scale: int32(scale)}
}
