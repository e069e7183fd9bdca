package decimal

// SetSmall sets a to a sum of ordinary numbers: hi × 2^64 + lo is the sum ×
// 10^scale, n the multiplicity of the numbers, all of display scale `scale`. It
// lets a caller keep most of its sums in plain words.
func (a *Acc) SetSmall(hi int64, lo uint64, n int64, scale int) {
	*a = Acc{hi: hi, lo: lo, n: n, scale: int32(scale)}
}

// CountScale notes n numbers of a display scale whose values are in the sum
// already: with SetSmall, which takes only those of the greatest scale.
func (a *Acc) CountScale(scale int, n int64) { a.count(int32(scale), n) }
