package differential

import (
	"fmt"
	"slices"
	"sync"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// Arrangement is a collection indexed by key, partitioned by the hash of the
// key, shared by all operators that need it so. Columns keep their places.
//
// During a step, once its turn has passed, Old, New and Delta are the content
// before and after the step and the difference; the delta becomes part of the
// trace when the step ends.
type Arrangement struct {
	c       *Circuit
	layout  *trace.Layout
	source  *port        // that is arranged; nil if imported
	trace   *trace.Trace // nil in a Once circuit, unless imported
	delta   []*trace.Batch
	im      *imported
	node    *Node
	stream  bool // someone reads the arrangement as a stream
	readers []*Node
	keyed   *Arrangement // Keys, once made

	// In a Once circuit the rows are kept as they come; batches are only made
	// for those who ask.
	rows   []*dataflow.Delta
	built  []*trace.Batch
	listed *deltaList
	table  *joinTable
}

// Arrange indexes a stream by keyCols. The same stream and key give the same
// Arrangement.
func (c *Circuit) Arrange(s Stream, keyCols []int) *Arrangement {
	for _, a := range c.arrs {
		if a.source == s.port && slices.Equal(a.layout.Key, keyCols) {
			return a
		}
	}
	a := &Arrangement{c: c, source: s.port}
	if c.opts.Once {
		a.layout = trace.NewLayout(s.Kinds(), keyCols)
	} else {
		a.trace = c.NewTrace(s.Kinds(), keyCols)
		a.layout = a.trace.Layout()
	}
	a.node = c.Add(a, []Stream{s}, s.Kinds())
	c.arrs = append(c.arrs, a)
	return a
}

// Step arranges what arrived.
func (a *Arrangement) Step(x *Context) {
	if a.im != nil {
		a.im.step(x)
		return
	}
	in := x.In(0)
	if a.c.opts.Once {
		a.rows = append(a.rows, in...)
		a.wakeReaders()
		for _, d := range in {
			x.Emit(0, d)
		}
		return
	}
	a.delta = x.Arrange(a.trace, in)
	some := false
	for _, b := range a.delta {
		if b == nil {
			continue
		}
		some = true
		if a.stream {
			b.Expose()
			for i := range b.Chunks() {
				x.Emit(0, b.Chunk(i).Delta())
			}
		}
	}
	if some {
		a.c.touched = append(a.c.touched, a)
		a.wakeReaders()
	} else {
		a.delta = nil
	}
}

func (a *Arrangement) wakeReaders() {
	for _, n := range a.readers {
		a.c.wake(n)
	}
}

// commit makes the delta a part of the state.
func (a *Arrangement) commit() {
	if a.im != nil {
		a.im.release()
		return
	}
	a.trace.AppendBatches(a.delta)
	a.delta = nil
}

// Trace is the state of the arrangement, to import it into other circuits.
func (a *Arrangement) Trace() *trace.Trace { return a.trace }

// Kinds are the columns.
func (a *Arrangement) Kinds() []columnar.Kind { return a.layout.Kinds }

// Key lists the key columns.
func (a *Arrangement) Key() []int { return a.layout.Key }

// Stream is the arranged collection as a stream, of consolidated deltas unless
// the circuit runs once.
func (a *Arrangement) Stream() Stream {
	a.stream = true
	return a.node.Out(0)
}

// Old is the content of partition p before this step, New after it, and Delta
// the difference. They are valid during the step.
func (a *Arrangement) Old(p int) trace.Reader {
	switch {
	case a.im != nil:
		return a.im.view(false, p)
	case a.trace == nil:
		return trace.Reader{Layout: a.layout}
	}
	return a.trace.Spines()[p].Reader()
}

// Delta is what this step changes in partition p.
func (a *Arrangement) Delta(p int) trace.Reader {
	r := trace.Reader{Layout: a.layout}
	switch {
	case a.im != nil:
		return a.im.view(true, p)
	case a.trace == nil:
		a.build()
		if b := a.built[p]; b != nil {
			r.Batches = []*trace.Batch{b}
		}
	case a.delta != nil && a.delta[p] != nil:
		r.Batches = a.delta[p : p+1 : p+1]
	}
	return r
}

// New is the content of partition p after this step.
func (a *Arrangement) New(p int) trace.Reader {
	r, d := a.Old(p), a.Delta(p)
	if len(d.Batches) > 0 {
		r.Batches = append(slices.Clip(r.Batches), d.Batches...)
	}
	return r
}

// deltaRows is the number of rows of the step's delta.
func (a *Arrangement) deltaRows() int {
	n := 0
	for p := range a.c.opts.Partitions {
		n += a.Delta(p).Len()
	}
	return n
}

// build makes batches of a Once arrangement's rows.
func (a *Arrangement) build() {
	if a.built == nil {
		e := a.c.epoch
		a.built = trace.Build(a.layout, a.rows, a.c.opts.Partitions, trace.Description{Lower: e, Upper: e + 1},
			a.c.x.runner(countRows(a.rows)))
	}
}

// Keys is the arrangement projected to its key: a row a key, whose diff is the
// number of rows of that key.
func (a *Arrangement) Keys() *Arrangement {
	if a.keyed != nil {
		return a.keyed
	}
	key := a.layout.Key
	if len(key) == len(a.layout.Kinds) && slices.IsSorted(key) {
		a.keyed = a
		return a
	}
	project := MapperFunc(func(in *dataflow.Delta, emit, _ func(*dataflow.Delta)) {
		emit(&dataflow.Delta{Batch: in.Select(key), Diffs: in.Diffs})
	})
	keys, _ := a.c.Map(a.Stream(), project, a.layout.KeyKinds())
	a.keyed = a.c.Arrange(keys, allColumns(len(key)))
	return a.keyed
}

// imported is a trace maintained elsewhere, seen by this circuit at its own pace.
type imported struct {
	a     *Arrangement
	trace *trace.Trace
	hold  *trace.Hold
	seen  bool           // some content was seen, up to at
	at    dataflow.Epoch // it is held

	mu         sync.Mutex // partitions may ask for a view at the same time
	old, delta *trace.TraceSnapshot
}

// ImportArrangement shares a trace that is maintained elsewhere (by another
// circuit, or a published collection). A step at epoch t sees it as at t: the
// trace must be complete up to t. At the first step its whole content is the
// delta. The circuit holds the trace at the last epoch it has seen; Close
// releases that.
func (c *Circuit) ImportArrangement(t *trace.Trace) *Arrangement {
	for _, im := range c.imports {
		if im.trace == t {
			return im.a
		}
	}
	if n := len(t.Spines()); n != c.opts.Partitions {
		panic(fmt.Sprintf("differential: import of a trace of %d partitions into a circuit of %d", n, c.opts.Partitions))
	}
	a := &Arrangement{c: c, layout: t.Layout(), trace: t}
	a.im = &imported{a: a, trace: t}
	a.node = c.Add(a, nil, t.Layout().Kinds)
	c.imports = append(c.imports, a.im)
	return a
}

// open looks for changes at the beginning of a step.
func (im *imported) open(epoch dataflow.Epoch) {
	if u := im.trace.Upper(); u > 0 && (!im.seen || u > im.at+1) {
		im.a.node.Wake()
	}
}

// step takes the batches as of the last epoch seen, and those since then.
func (im *imported) step(x *Context) {
	var after *dataflow.Epoch
	if im.seen {
		after = &im.at
	}
	upper := im.trace.Upper()
	if upper == 0 {
		return // nothing is complete
	}
	upTo := min(x.Epoch(), upper-1)
	if im.seen && upTo <= im.at {
		return
	}
	hold, ok := im.trace.Hold(upTo)
	if ok {
		im.old, im.delta, ok = im.trace.Borrow(after, upTo)
	}
	if !ok {
		panic(fmt.Sprintf("differential: imported arrangement is not readable at epoch %d", upTo))
	}
	if im.hold != nil {
		im.hold.Release()
	}
	im.hold, im.at, im.seen = hold, upTo, true
	im.a.c.touched = append(im.a.c.touched, im.a)
	if im.delta.Len() == 0 {
		return
	}
	im.a.wakeReaders()
	if im.a.stream {
		im.delta.Scan(func(d *dataflow.Delta) bool {
			x.Emit(0, d)
			return true
		})
		for _, p := range im.delta.Parts {
			for _, b := range p.Batches {
				b.Expose()
			}
		}
	}
}

// view is partition p of what the step sees. If the step did not look at the
// trace, because nothing changed, that is the content at the last epoch seen.
func (im *imported) view(delta bool, p int) trace.Reader {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.old == nil && im.seen && !im.reopen() {
		panic(fmt.Sprintf("differential: imported arrangement is not readable at epoch %d", im.at))
	}
	s := im.old
	if delta {
		s = im.delta
	}
	if s == nil {
		return trace.Reader{Layout: im.a.layout}
	}
	return s.Parts[p].Reader
}

// reopen borrows the content at the last epoch seen.
func (im *imported) reopen() (ok bool) {
	upper := im.trace.Upper()
	if upper == 0 {
		return true
	}
	at := min(im.at, upper-1)
	im.old, im.delta, ok = im.trace.Borrow(&at, at)
	im.a.c.touched = append(im.a.c.touched, im.a)
	return ok
}

// release ends the step's use of the batches.
func (im *imported) release() {
	if im.old != nil {
		im.old.Release()
		im.delta.Release()
		im.old, im.delta = nil, nil
	}
}

// restored says that the circuit's state is as of epoch.
func (im *imported) restored(epoch dataflow.Epoch) {
	hold, ok := im.trace.Hold(epoch)
	if !ok {
		panic(fmt.Sprintf("differential: imported arrangement is not readable at epoch %d", epoch))
	}
	im.hold, im.at, im.seen = hold, epoch, true
}

func (im *imported) close() {
	im.release()
	if im.hold != nil {
		im.hold.Release()
		im.hold = nil
	}
}
