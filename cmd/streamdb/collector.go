package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// gcFloor is how large the heap may grow before the collector starts. By itself
// it starts when the heap has doubled, which is a collection every few hundred
// statements where little is held.
const gcFloor = 128 << 20

var relaxOnce sync.Once

// relaxCollector lets the heap grow to a floor: after each collection it sets
// the growth allowed to what the live heap leaves of it, or to the usual one.
func relaxCollector(floor int64) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	last := 100
	type sentinel struct{ _ [16]byte }
	var again func(*sentinel)
	again = func(s *sentinel) {
		metrics.Read(sample)
		percent := 100
		if live := int64(sample[0].Value.Uint64()); live < floor/2 {
			percent = int(min(100*floor/max(live, 1<<20)-100, math.MaxInt16))
		}
		// To set it stops the world: not for little.
		if percent < last-last/8 || percent > last+last/4 {
			debug.SetGCPercent(percent)
			last = percent
		}
		runtime.SetFinalizer(s, again)
	}
	runtime.SetFinalizer(&sentinel{}, again)
}
