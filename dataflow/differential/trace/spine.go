package trace

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/streamdb/streamdb/dataflow"
)

// Spine is a collection (one partition of it) as a list of batches, oldest
// first, that merge geometrically. One goroutine owns it and calls Append,
// Advance, Work, Reader and Restore; all else may be called from any.
//
// # Merging
//
// Two neighbours x, y (x the older) are due to merge when y has more than half
// the rows of x, so that sizes at least double from one batch to the older next
// and there are about log2(N/n) of them, for N rows that came n at a time. Every
// row then takes part in so many merges; that many rows of work, and an eighth
// more, is what Append does for each row it adds. The work goes to the smallest
// merge first: small ones end at once and keep the list short, and the big ones
// get what is left, which on average is what they need. So every Append does
// about the same work, in proportion to its rows, and none pays for a big merge.
type Spine struct {
	layout *Layout
	shared *shared

	batches []*Batch   // guarded by shared.mu for others than the owner
	merges  []*merging // of neighbours in batches; written under shared.mu
	credit  int        // rows of work that Append owes
	merged  int        // rows of work done
	probes  int        // rows that were looked up since a merge was made for that

	// gone describes merges of several epochs of which nothing was left: the
	// content between those epochs is no longer known, though no batch tells.
	gone []Description
}

// maxGone is how many such merges are remembered: they matter to those who have
// chosen an epoch and not held it yet.
const maxGone = 256

// shared is what the spines of a trace have in common.
type shared struct {
	mu    sync.Mutex
	holds []*Hold
	clock *Clock
}

// Clock says up to where traces that advance together are complete. A circuit
// has one for all its traces, so that an epoch costs nothing to those that it
// does not change.
type Clock struct{ upper atomic.Uint64 }

// Advance says that everything before upper is complete. It never goes back.
func (c *Clock) Advance(upper dataflow.Epoch) {
	if upper > c.Upper() {
		c.upper.Store(uint64(upper))
	}
}

// Upper is the first epoch that is not complete.
func (c *Clock) Upper() dataflow.Epoch { return dataflow.Epoch(c.upper.Load()) }

// merging is a merge in progress. Its inputs in the list may be swapped for
// their persisted twins (see Replace): keep are those it still reads.
type merging struct {
	a, b *Batch
	m    *Merger
	keep []*Batch
}

const (
	// mergeMin is the least work that is worth a visit.
	mergeMin = 256
	// mergeAtOnce is how many rows (of about a kilobyte) are merged whatever the credit.
	mergeAtOnce = 1024
	// probesWorth is how many rows of merging a lookup is worth.
	probesWorth = 4
	// maxRows is the most rows of a batch: addresses are 32 bits, over the
	// batches of a merge.
	maxRows = 1 << 31
	// unkeyedMax is the size beyond which unkeyed batches stay as they are.
	unkeyedMax = 1 << 20
)

// NewSpine makes an empty spine.
func NewSpine(l *Layout) *Spine {
	return &Spine{layout: l, shared: &shared{clock: new(Clock)}}
}

// Layout is the shape of its batches.
func (s *Spine) Layout() *Layout { return s.layout }

// Append takes over a batch of an epoch not before that of the last one (an
// epoch may come in several), and does merge work in proportion. It becomes
// readable when Advance says that its epoch is complete.
func (s *Spine) Append(b *Batch) {
	if b.rows == 0 {
		b.Release()
		return
	}
	s.shared.mu.Lock()
	if n := len(s.batches); n > 0 && s.batches[n-1].desc.Upper > b.desc.Upper {
		s.shared.mu.Unlock()
		panic("trace: batch appended out of order")
	}
	s.batches = append(s.batches[:len(s.batches):len(s.batches)], b)
	s.shared.mu.Unlock()
	s.plan()
	total := 0
	for _, x := range s.batches {
		total += x.rows
	}
	levels := bits.Len(uint(total / b.rows))
	s.credit += b.rows * b.weight() * levels * 9 / 8
	if len(s.batches) > 4*levels+8 {
		s.credit *= 2 // catch up
	}
	if s.credit >= mergeMin {
		s.Work(s.credit)
		s.credit = 0
	}
}

// Advance says that everything before upper is complete.
func (s *Spine) Advance(upper dataflow.Epoch) { s.shared.clock.Advance(upper) }

// Upper is the first epoch that is not complete.
func (s *Spine) Upper() dataflow.Epoch { return s.shared.clock.Upper() }

// Work merges about fuel rows and reports whether merges are left: for the
// owner's idle time.
func (s *Spine) Work(fuel int) bool {
	s.plan()
	for fuel > 0 && len(s.merges) > 0 {
		least := 0
		for i, g := range s.merges {
			if g.m.Remaining() < s.merges[least].m.Remaining() {
				least = i
			}
		}
		m := s.merges[least].m
		n := m.Work(max(fuel/m.weight, 1))
		s.merged += n
		fuel -= max(n*m.weight, 1)
		if m.Remaining() == 0 {
			s.finish(least)
			s.plan()
		}
	}
	return len(s.merges) > 0
}

// Probed tells that so many rows were looked up, which costs the more the more
// batches there are. It does work in proportion: on the merges that are there,
// and, when those are done, on merging what is not due. A collection that is
// read and no longer changes ends as one batch.
func (s *Spine) Probed(rows int) {
	if len(s.batches) < 2 {
		return
	}
	s.probes += rows
	if len(s.merges) > 0 {
		s.Work(max(rows, mergeMin))
		return
	}
	n := len(s.batches)
	a, b := s.batches[n-2], s.batches[n-1]
	if a.rows+b.rows > probesWorth*s.probes || !mergeable(a, b) || s.layout.Unkeyed || s.held(a, b) {
		return
	}
	s.probes = 0
	s.start(a, b)
}

// plan starts the merges that are due; the shortest it does at once.
func (s *Spine) plan() {
	for i := len(s.batches) - 1; i > 0; i-- {
		a, b := s.batches[i-1], s.batches[i]
		if !s.due(a, b) {
			continue
		}
		if a.rows*a.weight()+b.rows*b.weight() > mergeAtOnce {
			s.start(a, b)
			continue
		}
		if s.mergeNow(a, b) {
			// The result may be due with its elder or its younger neighbour.
			i = min(i+1, len(s.batches))
		}
	}
}

// start begins to merge neighbours, unless a hold was placed between them.
func (s *Spine) start(a, b *Batch) {
	g := &merging{a: a, b: b, m: NewMerger(a, b)}
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	if !s.shared.separates(a, b) {
		s.merges = append(s.merges, g)
	}
}

// due reports whether neighbours a, b should begin to merge.
func (s *Spine) due(a, b *Batch) bool {
	if 2*b.rows <= a.rows {
		return false
	}
	if !mergeable(a, b) || s.layout.Unkeyed && a.rows+b.rows > unkeyedMax {
		return false
	}
	for _, g := range s.merges {
		if g.a == a || g.b == a || g.a == b || g.b == b {
			return false
		}
	}
	return !s.held(a, b)
}

// held reports whether a hold separates a and b.
func (s *Spine) held(a, b *Batch) bool {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	return s.shared.separates(a, b)
}

// separates reports whether a hold reads all of a and not all of b, or, being
// for all epochs from its own on, may come to. Call with the lock held.
func (sh *shared) separates(a, b *Batch) bool {
	for _, h := range sh.holds {
		if h.at+1 < b.desc.Upper && (h.from || a.desc.Upper <= h.at+1) {
			return true
		}
	}
	return false
}

// finish puts the result of merge i in the place of its inputs.
func (s *Spine) finish(i int) {
	g := s.merges[i]
	c := g.m.Done()
	s.shared.mu.Lock()
	s.merges = slices.Delete(s.merges, i, i+1)
	s.replace(g.a, g.b, c)
	s.shared.mu.Unlock()
	s.drop(g.a, g.b, c)
	for _, b := range g.keep {
		b.Release()
	}
}

// mergeNow merges two neighbours at once. It reports false if a hold was placed
// between them meanwhile.
func (s *Spine) mergeNow(a, b *Batch) bool {
	s.merged += a.rows + b.rows
	c := Merge(a, b)
	s.shared.mu.Lock()
	if s.shared.separates(a, b) {
		s.shared.mu.Unlock()
		c.Release()
		return false
	}
	s.replace(a, b, c)
	s.shared.mu.Unlock()
	s.drop(a, b, c)
	return true
}

// replace puts c, if it has rows, in the place of the neighbours a and b. Call
// with the lock held.
func (s *Spine) replace(a, b, c *Batch) {
	list := make([]*Batch, 0, len(s.batches))
	for _, x := range s.batches {
		switch {
		case x == b:
		case x != a:
			list = append(list, x)
		case c.rows > 0:
			list = append(list, c)
		}
	}
	s.batches = list
	if c.rows > 0 || b.desc.Upper <= a.desc.Lower+1 {
		return
	}
	if len(s.gone) == maxGone {
		s.gone = slices.Delete(s.gone, 0, maxGone/2)
	}
	s.gone = append(s.gone, Description{Lower: a.desc.Lower, Upper: b.desc.Upper})
}

// drop gives up the inputs of a merge, and its result if that is empty.
func (s *Spine) drop(a, b, c *Batch) {
	a.Release()
	b.Release()
	if c.rows == 0 {
		c.Release()
	}
}

// Reader is the current batches, for the owner, until it next calls Append,
// Work or Restore, or anyone calls Replace.
func (s *Spine) Reader() Reader { return Reader{Layout: s.layout, Batches: s.batches} }

// Batches lists the batches, oldest first, each with a reference for the
// caller to Release: what a checkpoint writes.
func (s *Spine) Batches() []*Batch {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	for _, b := range s.batches {
		b.Retain()
	}
	return s.batches[:len(s.batches):len(s.batches)]
}

// Restore puts batches, oldest first, into an empty spine, which takes them
// over. Advance then says up to where they are complete.
func (s *Spine) Restore(bs []*Batch) {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	if len(s.batches) > 0 {
		panic("trace: Restore into a spine that is not empty")
	}
	for _, b := range bs {
		if !b.layout.Equal(s.layout) {
			panic("trace: batch of another layout restored")
		}
		if b.rows > 0 {
			s.batches = append(s.batches, b)
		} else {
			b.Release()
		}
	}
}

// Replace puts a batch of equal content (re-opened from its block, with its ID
// set) in the place of old, and takes it over. It reports false, and takes
// nothing, if old was merged away meanwhile. Only the owner may call it.
func (s *Spine) Replace(old, new *Batch) bool {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	for i, b := range s.batches {
		if b != old {
			continue
		}
		list := append([]*Batch(nil), s.batches...)
		list[i] = new
		new.adoptOrders(old)
		s.batches = list
		for _, g := range s.merges {
			// The merge goes on over the old memory, which it keeps alive.
			switch old {
			case g.a:
				g.a = new
				g.keep = append(g.keep, old)
				return true
			case g.b:
				g.b = new
				g.keep = append(g.keep, old)
				return true
			}
		}
		old.Release()
		return true
	}
	return false
}

// Stats describes a spine.
type Stats struct {
	Batches, Rows     int
	Payload, Overhead int64 // bytes
}

// Stats counts.
func (s *Spine) Stats() Stats {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	st := Stats{Batches: len(s.batches)}
	for _, b := range s.batches {
		p, o := b.Bytes()
		st.Rows += b.rows
		st.Payload += p
		st.Overhead += o
	}
	return st
}
