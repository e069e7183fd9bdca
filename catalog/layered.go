package catalog

import "maps"

// layered is a map to objects whose next version costs little: what was changed
// lately lies above a base that versions share. The two are made one when the
// changes have become many for what a version copies.
type layered[K comparable] struct {
	base map[K]*Object
	top  map[K]*Object // nil: removed
}

func (l *layered[K]) get(k K) *Object {
	if o, ok := l.top[k]; ok {
		return o
	}
	return l.base[k]
}

// set sets a key's object, nil to remove it. Only the version that next has just
// made may be changed.
func (l *layered[K]) set(k K, o *Object) {
	if l.top == nil {
		l.top = map[K]*Object{}
	}
	l.top[k] = o
}

// next is the beginning of the next version. To copy the top each time, and the
// base after so many times, is cheapest where that number is about the root of
// twice the base's size.
func (l *layered[K]) next() layered[K] {
	if n := len(l.top); n < 16 || n*n < 2*len(l.base) {
		return layered[K]{l.base, maps.Clone(l.top)}
	}
	base := maps.Clone(l.base)
	if base == nil {
		base = make(map[K]*Object, len(l.top))
	}
	for k, o := range l.top {
		if o == nil {
			delete(base, k)
		} else {
			base[k] = o
		}
	}
	return layered[K]{base: base}
}
