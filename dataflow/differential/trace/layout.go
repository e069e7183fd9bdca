package trace

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
)

// Layout is the shape that all batches of a spine share. It is immutable.
type Layout struct {
	Kinds []columnar.Kind
	// Key lists the key columns, a column perhaps more than once. Empty: all
	// rows have one key.
	Key []int
	// Unkeyed says that rows are kept as they came: no hash, no order, no
	// consolidation. It is for append-only collections that are only scanned.
	Unkeyed bool

	order []int // Key, then the other columns
	rest  []int // the other columns
	exact bool  // equal hashes imply equal keys where no key column is NULL
}

// NewLayout makes the layout of rows of the given kinds, keyed by key.
func NewLayout(kinds []columnar.Kind, key []int) *Layout {
	l := &Layout{Kinds: kinds, Key: key}
	isKey := make([]bool, len(kinds))
	keyKinds := make([]columnar.Kind, len(key))
	for i, c := range key {
		isKey[c] = true
		keyKinds[i] = kinds[c]
	}
	for c := range kinds {
		if !isKey[c] {
			l.rest = append(l.rest, c)
		}
	}
	l.order = append(append(make([]int, 0, len(kinds)), key...), l.rest...)
	l.exact = columnar.HashExact(keyKinds)
	return l
}

// NewUnkeyedLayout makes the layout of an append-only collection.
func NewUnkeyedLayout(kinds []columnar.Kind) *Layout {
	return &Layout{Kinds: kinds, Unkeyed: true}
}

// Order is the order of significance of the columns: Key, then the others.
func (l *Layout) Order() []int { return l.order }

// KeyKinds are the kinds of the key columns.
func (l *Layout) KeyKinds() []columnar.Kind {
	k := make([]columnar.Kind, len(l.Key))
	for i, c := range l.Key {
		k[i] = l.Kinds[c]
	}
	return k
}

// Equal reports whether rows of both layouts look the same at rest.
func (l *Layout) Equal(o *Layout) bool {
	return l == o || l.Unkeyed == o.Unkeyed && slices.Equal(l.Kinds, o.Kinds) && slices.Equal(l.Key, o.Key)
}

// pick selects columns.
func pick(cols []*columnar.Vec, which []int) []*columnar.Vec {
	out := make([]*columnar.Vec, len(which))
	for i, c := range which {
		out[i] = cols[c]
	}
	return out
}

// exactIn reports whether equal hashes are equal keys in these columns.
func (l *Layout) exactIn(cols []*columnar.Vec) bool {
	if !l.exact {
		return false
	}
	for _, c := range l.Key {
		if cols[c].HasNulls() {
			return false
		}
	}
	return true
}

// tieOrder is the columns that decide the order of rows of equal hash.
func (l *Layout) tieOrder(exact bool) []int {
	if exact {
		return l.rest
	}
	return l.order
}

// compareBy compares two rows by the given columns, in that order.
func compareBy(order []int, a []*columnar.Vec, i int, b []*columnar.Vec, j int) int {
	for _, c := range order {
		if r := columnar.CompareAt(a[c], i, b[c], j); r != 0 {
			return r
		}
	}
	return 0
}
