//go:build !invariants

package columnar

// poisonFreed: freed buffers are overwritten, so that a use after free shows.
const poisonFreed = false
