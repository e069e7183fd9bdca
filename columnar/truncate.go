package columnar

// Truncate takes back all values after the first n, so that a row of which
// some column could not be read leaves nothing behind.
func (b *Builder) Truncate(n int) {
	if n >= b.n {
		return
	}
	if b.kind == KindBytes {
		b.data = b.data[:b.offs[n]]
		b.offs = b.offs[:n+1]
	} else {
		b.fixed = b.fixed[:n*b.kind.Width()]
	}
	b.n = n
	if words := (n + 63) / 64; words <= len(b.nulls) {
		b.nulls = b.nulls[:words]
		if n&63 != 0 {
			b.nulls[words-1] &= 1<<(uint(n)&63) - 1
		}
	}
}

// View makes v a vector of what b holds so far, sharing its memory: it is good
// until the next change of b. It serves builders that are used as scratch.
func (b *Builder) View(v *Vec) {
	*v = Vec{kind: b.kind, n: b.n, fixed: b.fixed, offs: b.offs, data: b.data}
	if b.kind == KindBytes && len(b.offs) == 0 {
		v.offs = noOffs
	}
	if b.any {
		b.growNulls((b.n + 63) / 64)
		v.nulls = b.nulls
	}
}
