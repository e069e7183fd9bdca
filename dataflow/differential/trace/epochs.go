package trace

import (
	"slices"

	"github.com/streamdb/streamdb/dataflow"
)

// Epochs lists the epochs after < t ≤ upTo at which the collection changed and
// that are still told apart, in order: the steps that a reader of Changes can
// take. It may list epochs whose changes cancel out.
func (t *Trace) Epochs(after, upTo dataflow.Epoch) []dataflow.Epoch {
	t.shared.mu.Lock()
	defer t.shared.mu.Unlock()
	var out []dataflow.Epoch
	for _, s := range t.spines {
		for _, b := range s.batches {
			e := b.desc.Upper - 1
			if e <= after || e > upTo || slices.Contains(out, e) {
				continue
			}
			ok := true
			for _, x := range t.spines {
				ok = ok && x.readable(e)
			}
			if ok {
				out = append(out, e)
			}
		}
	}
	slices.Sort(out)
	return out
}
