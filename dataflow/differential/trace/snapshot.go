package trace

import (
	"slices"

	"github.com/streamdb/streamdb/dataflow"
)

// Snapshot is the content of a spine at an epoch, immutable, and kept until
// Release. Vectors taken from it are valid until then, unless copied.
type Snapshot struct{ Reader }

// Release ends the use of the snapshot and of all that aliases it.
func (s *Snapshot) Release() {
	for _, b := range s.Batches {
		b.Release()
	}
	s.Batches = nil
}

// readable reports whether the content at t is exact, now and (so that a hold
// can be placed) after the merges in progress. Call with the lock held.
func (s *Spine) readable(t dataflow.Epoch) bool {
	return t < s.Upper() && !s.fused(t)
}

// fused reports whether what was complete at t has been put together with what
// came later: t may be an epoch that nobody has said to be complete yet. Call with
// the lock held.
func (s *Spine) fused(t dataflow.Epoch) bool {
	for _, b := range s.batches {
		if b.desc.between(t) {
			return true
		}
	}
	for _, d := range s.gone {
		if d.between(t) {
			return true
		}
	}
	return false
}

// between says whether an epoch is one at which not all of d is complete.
func (d Description) between(t dataflow.Epoch) bool { return d.Lower <= t && t+1 < d.Upper }

// crossing reports whether a merge in progress will make t unreadable. Call with
// the lock held.
func (s *Spine) crossing(t dataflow.Epoch) bool {
	for _, g := range s.merges {
		if g.a.desc.Lower <= t && t+1 < g.b.desc.Upper {
			return true
		}
	}
	return false
}

// between lists the batches of the epochs after < t ≤ upTo, with references.
// Call with the lock held, having checked that both are readable.
func (s *Spine) between(all bool, after, upTo dataflow.Epoch) *Snapshot {
	var out []*Batch
	for _, b := range s.batches {
		if (all || b.desc.Lower > after) && b.desc.Upper <= upTo+1 {
			b.Retain()
			out = append(out, b)
		}
	}
	return &Snapshot{Reader{Layout: s.layout, Batches: out}}
}

// SnapshotAt is the content at epoch t. It fails if t is not complete
// (t ≥ Upper), or if batches were merged across it because nothing held it.
func (s *Spine) SnapshotAt(t dataflow.Epoch) (*Snapshot, bool) {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	if !s.readable(t) {
		return nil, false
	}
	snap := s.between(true, 0, t)
	for _, b := range snap.Batches {
		b.Expose()
	}
	return snap, true
}

// Hold keeps its epoch readable, or (HoldFrom) every epoch from its own on.
type Hold struct {
	shared *shared
	at     dataflow.Epoch
	from   bool
}

// Hold places a hold at t. It reports false if t is no longer readable.
func (s *Spine) Hold(t dataflow.Epoch) (*Hold, bool) {
	return s.shared.hold(t, false, []*Spine{s})
}

func (sh *shared) hold(t dataflow.Epoch, from bool, spines []*Spine) (*Hold, bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, s := range spines {
		// An epoch that is not complete yet can be held too, unless a later one has
		// come in meanwhile.
		if s.fused(t) || s.crossing(t) {
			return nil, false
		}
		if from && slices.ContainsFunc(s.merges, func(g *merging) bool { return t+1 < g.b.desc.Upper }) {
			return nil, false
		}
	}
	h := &Hold{shared: sh, at: t, from: from}
	sh.holds = append(sh.holds, h)
	return h, true
}

// At is the epoch held.
func (h *Hold) At() dataflow.Epoch {
	h.shared.mu.Lock()
	defer h.shared.mu.Unlock()
	return h.at
}

// Advance moves the hold to a later epoch.
func (h *Hold) Advance(t dataflow.Epoch) {
	h.shared.mu.Lock()
	h.at = max(h.at, t)
	h.shared.mu.Unlock()
}

// Release ends the hold.
func (h *Hold) Release() {
	h.shared.mu.Lock()
	defer h.shared.mu.Unlock()
	if i := slices.Index(h.shared.holds, h); i >= 0 {
		h.shared.holds = slices.Delete(h.shared.holds, i, i+1)
	}
}
