package catalog

import (
	"math/rand/v2"
	"testing"
)

// Every version of a layered map keeps what it held when the next one was made.
func TestLayered(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var l layered[int]
	now := map[int]*Object{}
	type version struct {
		l    layered[int]
		want map[int]*Object
	}
	var all []version
	for range 400 {
		l = l.next()
		for range r.IntN(20) {
			k := r.IntN(200)
			if r.IntN(3) == 0 {
				l.set(k, nil)
				delete(now, k)
			} else {
				o := &Object{}
				l.set(k, o)
				now[k] = o
			}
		}
		v := version{l, map[int]*Object{}}
		for k, o := range now {
			v.want[k] = o
		}
		all = append(all, v)
	}
	for i := range all {
		for k := range 200 {
			if got := all[i].l.get(k); got != all[i].want[k] {
				t.Fatalf("version %d, key %d: %p, want %p", i, k, got, all[i].want[k])
			}
		}
	}
}
