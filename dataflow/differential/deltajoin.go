package differential

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// A delta join keeps no intermediate results. With deltas d1 … dn of a step, states
// s1 … sn before it and t1 … tn after it, the change of s1 ⋈ … ⋈ sn is
//
//	d1 ⋈ s2 ⋈ s3 ⋈ … ⋈ sn  +  t1 ⋈ d2 ⋈ s3 ⋈ … ⋈ sn  +  …  +  t1 ⋈ t2 ⋈ … ⋈ dn
//
// and each of these terms is a path of lookups: of the rows of a delta in the
// arrangement of another input, of what is found in that of a third one, and so on,
// in an order of its own. All that is kept is each input, arranged by the keys that
// the paths look it up by. It is right also if inputs are the same arrangement.

// View is an arrangement as a step begins, or with After as it ends.
type View struct {
	Arr   *Arrangement
	After bool
}

func (v View) part(p int) trace.Reader {
	if v.After {
		return v.Arr.New(p)
	}
	return v.Arr.Old(p)
}

func (v View) empty() bool {
	for p := range v.Arr.c.opts.Partitions {
		if v.part(p).Len() > 0 {
			return false
		}
	}
	return true
}

// Lookup joins what arrives of a stream, by its columns key, with a view of an
// arrangement, and keeps nothing of the stream. It does not react to changes of
// the arrangement, which must have been made before it. Where one of the views of
// others is empty nothing is wanted of the step. Options are those of an inner
// join whose left is the stream.
func (c *Circuit) Lookup(s Stream, key []int, in View, others []View, o JoinOptions) (oks, errs Stream) {
	layout := trace.NewLayout(s.Kinds(), key)
	sameKinds(layout.KeyKinds(), in.Arr.layout.KeyKinds())
	kinds := slices.Concat(s.Kinds(), in.Arr.Kinds())
	if o.Out == nil {
		o.Out = allColumns(len(kinds))
	}
	p := &pairing{o: o, left: len(s.Kinds()), stopped: c.opts.Stopped, kinds: pickKinds(kinds, o.Out), residualKinds: pickKinds(kinds, o.ResidualCols)}
	out := p.kinds
	if o.Map != nil {
		out = o.MapKinds
	}
	n := c.Add(&lookupJoin{pairing: p, layout: layout, in: in, others: others}, []Stream{s}, out, ErrorKinds)
	return n.Out(0), n.Out(1)
}

func pickKinds(kinds []columnar.Kind, cols []int) []columnar.Kind {
	out := make([]columnar.Kind, len(cols))
	for i, c := range cols {
		out[i] = kinds[c]
	}
	return out
}

type lookupJoin struct {
	*pairing
	layout *trace.Layout
	in     View
	others []View
}

// Step looks the rows up that arrived.
func (l *lookupJoin) Step(x *Context) {
	ds := x.In(0)
	if len(ds) == 0 || l.in.empty() || slices.ContainsFunc(l.others, View.empty) {
		return
	}
	rows := countRows(ds)
	x.Probed(l.in.Arr, rows)
	e := x.Epoch()
	parts := trace.Build(l.layout, ds, x.Partitions(), trace.Description{Lower: e, Upper: e + dataflow.Epoch(1)}, x.runner(rows))
	x.ForEach(rows, func(p int, out *Emitter) {
		if parts[p] == nil {
			return
		}
		w := newPairs(l.pairing, out)
		w.probe(trace.Reader{Layout: l.layout, Batches: parts[p : p+1 : p+1]}, l.in.part(p), true)
		w.flush()
	})
}

// Partitions is the number of partitions.
func (x *Context) Partitions() int { return x.c.opts.Partitions }
