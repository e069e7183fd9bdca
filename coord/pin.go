package coord

import (
	"context"
	"runtime"

	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// pin is a reader's place in a collection: an epoch that stays readable, so that
// what comes after it can be read from the traces, until the pin is moved.
type pin struct {
	coll       *collection
	from       bool // every epoch from at on stays readable
	at         dataflow.Epoch
	rows, errs *trace.Hold
}

// place moves the pin to e and reports whether it could; if not, as what is there
// has merged with something later, it is nowhere.
func (p *pin) place(e dataflow.Epoch) bool {
	p.release()
	hold := func(t *trace.Trace) (h *trace.Hold, ok bool) {
		if p.from {
			return t.HoldFrom(e)
		}
		return t.Hold(e)
	}
	var ok bool
	if p.rows, ok = hold(p.coll.rows); !ok {
		return false
	}
	if p.errs, ok = hold(p.coll.errs); !ok {
		p.release()
		return false
	}
	p.at = e
	return true
}

func (p *pin) release() {
	for _, h := range []*trace.Hold{p.rows, p.errs} {
		if h != nil {
			h.Release()
		}
	}
	p.rows, p.errs = nil, nil
}

// changes reads what changed after the pin, up to e, which must be readable.
func (p *pin) changes(e dataflow.Epoch) (rows, errs []*dataflow.Delta, err error) {
	if rows, err = readChanges(p.coll.rows, p.at, e); err == nil {
		errs, err = readChanges(p.coll.errs, p.at, e)
	}
	return rows, errs, err
}

// readChanges copies a trace's changes after `after` up to e.
func readChanges(t *trace.Trace, after, e dataflow.Epoch) ([]*dataflow.Delta, error) {
	u := t.Upper()
	if u == 0 || u-1 <= after {
		return nil, nil
	}
	s, ok := t.Changes(after, min(e, u-1))
	if !ok {
		return nil, errVersionGone
	}
	defer s.Release()
	var out []*dataflow.Delta
	s.Scan(func(d *dataflow.Delta) bool {
		out = append(out, cloneDelta(d))
		return true
	})
	return out, nil
}

// pinLatest chooses an epoch, not before least, that all stages of the
// collections have reached, and pins the collections there.
func pinLatest(ctx context.Context, c *Coordinator, pins []*pin, least dataflow.Epoch) (dataflow.Epoch, error) {
	for {
		e := c.timeline.ingest.done.get()
		for _, p := range pins {
			e = min(e, p.coll.stage.done.get())
		}
		if e < least {
			e = least
			for _, p := range pins {
				if err := p.coll.stage.done.wait(ctx, e); err != nil {
					return 0, err
				}
			}
		}
		ok := true
		for _, p := range pins {
			if to, gap := p.coll.stage.passed(e); gap {
				least, ok = max(least, to), false
			}
		}
		for _, p := range pins {
			ok = ok && p.place(e)
		}
		if ok {
			return e, nil
		}
		// Merged past it meanwhile: a later one will do.
		if err := ctx.Err(); err != nil {
			return 0, context.Cause(ctx)
		}
		runtime.Gosched()
	}
}
