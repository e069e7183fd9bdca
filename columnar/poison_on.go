//go:build invariants

package columnar

const poisonFreed = true
