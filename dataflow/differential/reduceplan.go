package differential

import (
	"fmt"

	"github.com/streamdb/streamdb/columnar"
)

// A reducePlan says how the aggregates of a Reduce are kept: which words a
// group's row has (its slots), which rows feed them, and how outputs are read
// from them. Equal parts of different aggregates are kept once.
type reducePlan struct {
	kinds    []columnar.Kind // of the input
	keyCols  []int
	keyKinds []columnar.Kind
	opts     ReduceOptions

	slots   int // words; slot 0 is the number of rows
	accs    []*accumulator
	feeds   []*feed
	sets    []*distinctSet
	values  []*valueSet
	outs    []output
	looks   []*output      // the outputs, those first that tell most cheaply of a change
	refs    int            // words after the slots: the prefixes of the value sets
	spills  []*accumulator // those that may refer to something outside of their words
	entries int            // slot with the number of entries in distinct sets; 0: none
	canFail bool           // an output may be out of range
}

// accOp is how a slot changes with a row.
type accOp uint8

const (
	accCount   accOp = iota // a count
	accNarrow               // sum of int16 or int32: one word
	accWide                 // sum of int64: two words
	accFloat                // sum of floats: floatWords
	accProduct              // sum of products of floats: floatWords
	accNumeric              // sum of numerics: numericWords
	accTrue                 // how many are true
	accBits                 // how many have each bit set: a word a bit
	accXor                  // exclusive or of all
	accLargest              // the extreme of all that ever came: see largest
	accBest                 // the extreme, kept by a valueSet
)

// accumulator is one or more slots. a and b choose the argument, or the two
// factors, among the columns of the feed.
type accumulator struct {
	op    accOp
	kind  columnar.Kind // of the argument
	a, b  int
	desc  bool // the extreme is the maximum
	at    int  // first slot
	words int
}

// feed is the rows with non-NULL columns cols that pass a filter. Those of a
// distinct set are the changes of the set instead.
type feed struct {
	cols   []int // input columns, at most two
	filter int
	accs   []*accumulator
	count  *accumulator // how many rows there are; nil until needed
}

// distinctSet is the set of the distinct values of a column, with a counter for
// each filter under which an aggregate wants them.
type distinctSet struct {
	arg   int
	kind  columnar.Kind
	feeds []*feed
}

// valueSet is the multiset of a column's values under a filter, to find the
// smallest or largest one that is left after a deletion.
type valueSet struct {
	arg, filter int
	kind        columnar.Kind
	best        []*accumulator // accBest: least, greatest or both
}

// output is one aggregate.
type output struct {
	op    AggOp
	acc   *accumulator
	xs    [2]*accumulator // of AggSxx and AggSxy: the sums of the factors
	count *accumulator    // number of values; nil: never NULL
	out   columnar.Kind
}

func newReducePlan(kinds []columnar.Kind, keyCols []int, aggs []Agg, opts ReduceOptions) *reducePlan {
	p := &reducePlan{kinds: kinds, keyCols: keyCols, opts: opts, slots: 1}
	for _, c := range keyCols {
		p.keyKinds = append(p.keyKinds, kinds[c])
	}
	if opts.Global && len(keyCols) > 0 {
		panic("differential: a global Reduce has no key")
	}
	rows := &accumulator{op: accCount, words: 1}
	p.accs = []*accumulator{rows}
	p.feeds = []*feed{{filter: -1, count: rows}}
	for _, a := range aggs {
		p.outs = append(p.outs, p.compile(a))
	}
	for i := range p.outs {
		o := &p.outs[i]
		p.canFail = p.canFail || o.canFail()
		if o.op == AggCount {
			p.looks = append([]*output{o}, p.looks...)
		} else {
			p.looks = append(p.looks, o)
		}
	}
	return p
}

// canFail reports whether the sum may be beyond the range of its result. That
// of int16 and int32 would take 2^32 rows.
func (o *output) canFail() bool {
	if o.op != AggSum {
		return false
	}
	switch o.acc.op {
	case accNarrow:
		return false
	case accWide:
		return o.out == columnar.KindInt64
	}
	return true
}

// outKinds are the columns of the result.
func (p *reducePlan) outKinds() []columnar.Kind {
	ks := append([]columnar.Kind(nil), p.keyKinds...)
	for _, o := range p.outs {
		ks = append(ks, o.out)
	}
	return ks
}

func (p *reducePlan) compile(a Agg) output {
	if a.Arg < 0 {
		if a.Op != AggCount {
			panic(fmt.Sprintf("differential: aggregate %d without an argument", a.Op))
		}
		f := p.feed(nil, a.Filter)
		return output{op: AggCount, acc: p.counter(f), out: columnar.KindInt64}
	}
	kind := p.kinds[a.Arg]
	cols := []int{a.Arg}
	switch a.Op {
	case AggMin, AggMax:
		return p.extreme(a, kind)
	case AggBoolAnd, AggBoolOr, AggBitAnd, AggBitOr:
		a.Distinct = false // makes no difference
	case AggSxy:
		if a.Distinct {
			panic("differential: AggSxy is not made for distinct pairs")
		}
		cols = append(cols, a.Arg2)
	}
	var f *feed
	if a.Distinct {
		f = p.distinctFeed(a.Arg, a.Filter)
	} else {
		f = p.feed(cols, a.Filter)
	}
	o := output{op: a.Op, count: p.counter(f)}
	switch a.Op {
	case AggCount:
		return output{op: AggCount, acc: o.count, out: columnar.KindInt64}
	case AggSum:
		o.acc, o.out = p.sum(f, kind, a.Out)
	case AggBoolAnd, AggBoolOr:
		o.acc, o.out = p.acc(f, accumulator{op: accTrue, kind: kind, words: 1}), columnar.KindBool
	case AggBitAnd, AggBitOr:
		o.acc, o.out = p.acc(f, accumulator{op: accBits, kind: kind, words: kind.Width() * 8}), kind
	case AggBitXor:
		o.acc, o.out = p.acc(f, accumulator{op: accXor, kind: kind, words: 1}), kind
	case AggSxx, AggSxy:
		b := len(cols) - 1
		o.xs[0] = p.acc(f, accumulator{op: accFloat, kind: kind, words: floatWords})
		o.xs[1] = p.acc(f, accumulator{op: accFloat, kind: p.kinds[cols[b]], a: b, words: floatWords})
		o.acc = p.acc(f, accumulator{op: accProduct, kind: kind, b: b, words: floatWords})
		o.out = columnar.KindFloat64
	default:
		panic(fmt.Sprintf("differential: unknown aggregate %d", a.Op))
	}
	return o
}

// sum chooses the accumulator of a sum and the kind of its result.
func (p *reducePlan) sum(f *feed, kind, out columnar.Kind) (*accumulator, columnar.Kind) {
	switch kind {
	case columnar.KindInt16, columnar.KindInt32:
		if out == 0 {
			out = columnar.KindInt64
		}
		return p.acc(f, accumulator{op: accNarrow, kind: kind, words: 1}), out
	case columnar.KindInt64:
		if out == 0 {
			out = columnar.KindInt64
		}
		return p.acc(f, accumulator{op: accWide, kind: kind, words: 2}), out
	case columnar.KindFloat32, columnar.KindFloat64:
		if out == 0 {
			out = kind
		}
		return p.acc(f, accumulator{op: accFloat, kind: kind, words: floatWords}), out
	case columnar.KindBytes:
		return p.acc(f, accumulator{op: accNumeric, kind: kind, words: numericWords}), columnar.KindBytes
	}
	panic(fmt.Sprintf("differential: sum of %s", kind))
}

func (p *reducePlan) extreme(a Agg, kind columnar.Kind) output {
	f := p.feed([]int{a.Arg}, a.Filter)
	o := output{op: a.Op, count: p.counter(f), out: kind}
	words := 1
	if kind == columnar.KindFixed16 || kind == columnar.KindBytes {
		words = 2
	}
	desc := a.Op == AggMax
	if p.opts.AppendOnly {
		if kind == columnar.KindBytes {
			words++ // whether there is one
		}
		o.acc = p.acc(f, accumulator{op: accLargest, kind: kind, desc: desc, words: words})
		return o
	}
	o.acc = p.best(p.valueSet(a.Arg, a.Filter, kind), accumulator{op: accBest, kind: kind, desc: desc, words: words})
	return o
}

func (p *reducePlan) feed(cols []int, filter int) *feed {
	for _, f := range p.feeds {
		if equalInts(f.cols, cols) && f.filter == max(filter, -1) {
			return f
		}
	}
	f := &feed{cols: cols, filter: max(filter, -1)}
	p.feeds = append(p.feeds, f)
	return f
}

func (p *reducePlan) distinctFeed(arg, filter int) *feed {
	var set *distinctSet
	for _, s := range p.sets {
		if s.arg == arg {
			set = s
		}
	}
	if set == nil {
		if p.entries == 0 {
			p.entries = p.place(&accumulator{op: accCount, words: 1}).at
		}
		set = &distinctSet{arg: arg, kind: p.kinds[arg]}
		p.sets = append(p.sets, set)
	}
	for _, f := range set.feeds {
		if f.filter == max(filter, -1) {
			return f
		}
	}
	f := &feed{cols: []int{arg}, filter: max(filter, -1)}
	set.feeds = append(set.feeds, f)
	return f
}

func (p *reducePlan) valueSet(arg, filter int, kind columnar.Kind) *valueSet {
	for _, s := range p.values {
		if s.arg == arg && s.filter == max(filter, -1) {
			return s
		}
	}
	s := &valueSet{arg: arg, filter: max(filter, -1), kind: kind}
	p.values = append(p.values, s)
	return s
}

func (p *reducePlan) best(s *valueSet, want accumulator) *accumulator {
	for _, a := range s.best {
		if a.desc == want.desc {
			return a
		}
	}
	a := p.place(&want)
	s.best = append(s.best, a)
	p.refs += 2
	return a
}

// counter is the count of a feed's rows.
func (p *reducePlan) counter(f *feed) *accumulator {
	if f.count == nil {
		f.count = p.place(&accumulator{op: accCount, words: 1})
		f.accs = append(f.accs, f.count)
	}
	return f.count
}

// acc is an accumulator of a feed.
func (p *reducePlan) acc(f *feed, want accumulator) *accumulator {
	for _, a := range f.accs {
		w := want
		w.at = a.at
		if *a == w {
			return a
		}
	}
	a := p.place(&want)
	f.accs = append(f.accs, a)
	return a
}

func (p *reducePlan) place(a *accumulator) *accumulator {
	a.at = p.slots
	p.slots += a.words
	p.accs = append(p.accs, a)
	switch a.op {
	case accFloat, accProduct, accNumeric:
		p.spills = append(p.spills, a)
	}
	return a
}

func equalInts(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
