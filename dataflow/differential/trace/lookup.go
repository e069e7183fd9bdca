package trace

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// sortedKeys are keys to look up in every partition.
type sortedKeys struct {
	cols []*columnar.Vec // by hash,
	hash []uint64
	row  []uint32 // and which of the given ones each is
}

// sortKeys sorts n keys by hash.
func sortKeys(keys []*columnar.Vec, n int) *sortedKeys {
	k := &sortedKeys{hash: make([]uint64, n), row: make([]uint32, n)}
	columnar.HashCols(keys, n, k.hash)
	if n == 1 {
		k.cols = keys
		return k
	}
	a, tmp := columnar.GetSlice[columnar.Keyed](n), columnar.GetSlice[columnar.Keyed](n)
	for i, h := range k.hash {
		a[i].Key, a[i].Row = h, uint32(i)
	}
	columnar.SortKeyed(a, tmp)
	for i := range a {
		k.hash[i], k.row[i] = a[i].Key, a[i].Row
	}
	columnar.PutSlice(a)
	columnar.PutSlice(tmp)
	k.gather(keys)
	return k
}

func (k *sortedKeys) gather(keys []*columnar.Vec) {
	k.cols = make([]*columnar.Vec, len(keys))
	for c, v := range keys {
		k.cols[c] = v.Gather(k.row)
	}
}

// distinct leaves out keys that equal one before. keys are all, as given.
func (k *sortedKeys) distinct(keys []*columnar.Vec) {
	n, run := 0, 0 // run is the first kept key of the present hash
next:
	for i, h := range k.hash {
		if n > 0 && k.hash[n-1] != h {
			run = n
		}
		for j := run; j < n; j++ {
			if columnar.CompareRows(keys, int(k.row[j]), keys, int(k.row[i])) == 0 {
				continue next
			}
		}
		k.hash[n], k.row[n] = h, k.row[i]
		n++
	}
	if n < len(k.hash) {
		k.hash, k.row = k.hash[:n], k.row[:n]
		k.gather(keys)
	}
}

// parts gives the keys of each partition that has some: from lo to hi.
func (k *sortedKeys) parts(n int, yield func(part, lo, hi int) bool) {
	for lo := 0; lo < len(k.hash); {
		p := columnar.PartitionOf(k.hash[lo], n)
		hi := lo + 1
		for hi < len(k.hash) && columnar.PartitionOf(k.hash[hi], n) == p {
			hi++
		}
		if !yield(p, lo, hi) {
			return
		}
		lo = hi
	}
}

func (k *sortedKeys) slice(lo, hi int) []*columnar.Vec {
	out := make([]*columnar.Vec, len(k.cols))
	for c, v := range k.cols {
		out[c] = v.Slice(lo, hi)
	}
	return out
}

// Find gives the places of the rows of n distinct keys: rows of keys, the key
// columns in the order of Layout.Key. Each portion is the pairs of a key and a row
// of the batch, and is valid until yield returns. A row may stand in several
// batches, with diffs that add up. Nothing is copied, and only places are looked
// at that have a key's hash. NULL matches NULL.
func (s *TraceSnapshot) Find(keys []*columnar.Vec, n int, yield func(b *Batch, key, row []uint32) bool) {
	k := sortKeys(keys, n)
	k.parts(len(s.Parts), func(p, lo, hi int) bool {
		m := NewMatcher(NewProbe(s.layout, k.slice(lo, hi), k.hash[lo:hi], false))
		defer m.Close()
		for _, b := range s.Parts[p].Batches {
			m.Start(b)
			for m.Next(columnar.ChunkRows) {
				for i, x := range m.Probe {
					m.Probe[i] = k.row[lo+int(x)]
				}
				if !yield(b, m.Probe, m.Row) {
					return false
				}
			}
		}
		return true
	})
}

// Lookup gives the rows of n keys, each key once: rows of keys, the key columns in
// the order of Layout.Key. The rows are copies.
func (s *TraceSnapshot) Lookup(keys []*columnar.Vec, n int, yield func(*dataflow.Delta) bool) {
	k := sortKeys(keys, n)
	k.distinct(keys)
	k.parts(len(s.Parts), func(p, lo, hi int) bool {
		g := s.Parts[p].Groups(k.slice(lo, hi), k.hash[lo:hi])
		return g.Rows.N == 0 || yield(&dataflow.Delta{Batch: g.Rows, Diffs: g.Diffs})
	})
}
