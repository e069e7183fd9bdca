package expr

import (
	"sync/atomic"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// Values of some megabytes make vectors of a few thousand rows larger than memory, and
// one evaluation of them longer than anybody waits. ApplyParts therefore evaluates some
// rows at a time: it looks at what goes in, and gives up and begins again with fewer rows
// when it turns out that too much is made.

// partIn is about how many bytes of variable length go into one evaluation, and partMade
// how many it may make, of more than one row. Tests lower them.
var (
	partIn   = 8 << 20
	partMade = 16 << 20
)

const (
	// pollGrown is how large a buffer is from which on it is asked whenever it grows
	// whether the evaluation is still wanted.
	pollGrown = 1 << 20
	// pollRows is how many rows are computed one by one between such questions.
	pollRows = 32
	// foldMade is about how much a constant expression may make to be computed ahead.
	foldMade = 1 << 20
)

// Watch observes an evaluation. Both functions may be nil, and are called from many
// goroutines.
type Watch struct {
	// Stopped says that nobody wants the result any more.
	Stopped func() bool
	// Made is told the bytes of a large buffer that is about to be made.
	Made func(bytes int)
}

// budget is what an evaluation may still make.
type budget struct {
	watch Watch
	most  int // bytes, from which on it gives up; 0: never
	made  int
	grew  func(bytes int) // grown as a function value, once made
}

// tooMuch is what an evaluation of several rows gives up with, unwanted one that is not
// wanted any more. One that makes a value longer than any may be panics with its error.
type (
	tooMuch  struct{}
	unwanted struct{}
)

// errTooMuch is what giving up is called where it is an error.
var errTooMuch = pgerror.New(pgerror.ProgramLimitExceeded, "an expression makes too much")

// spend counts bytes that were made, or are about to be.
func (x *Eval) spend(bytes int) {
	if x.made += bytes; x.most > 0 && x.made > x.most {
		panic(tooMuch{})
	}
}

// grown is told the capacity of a buffer that has grown, or is about to.
func (x *Eval) grown(bytes int) {
	if x.most > 0 && x.made+bytes > 2*x.most {
		panic(tooMuch{})
	}
	if bytes < pollGrown {
		return
	}
	if x.watch.Made != nil && bytes > partMade {
		x.watch.Made(bytes / 2)
	}
	x.poll()
}

// poll ends the evaluation if nobody wants it any more.
func (x *Eval) poll() {
	if x.watch.Stopped != nil && x.watch.Stopped() {
		panic(unwanted{})
	}
}

// along is asked within a loop over one value, with the bytes that it has come to, and
// gives the bytes from which on to ask again.
func (x *Eval) along(bytes int) (next int) {
	if bytes > maxAlloc {
		panic(errAlloc(bytes))
	}
	if x.watch.Made != nil && bytes > partMade {
		x.watch.Made(pollGrown)
	}
	x.poll()
	return bytes + pollGrown
}

// Watched is x that is observed.
func (x *Eval) Watched(w Watch) *Eval {
	x.watch = w
	return x
}

// Guarded calls f, which evaluates something outside of a program. A value that is longer
// than any may be is an error; wanted is false if nobody wants the result any more.
func Guarded(f func() error) (wanted bool, err error) {
	wanted = true
	defer func() {
		switch r := recover().(type) {
		case nil:
		case unwanted:
			wanted = false
		case *pgerror.Error:
			err = r
		default:
			panic(r)
		}
	}()
	return true, f()
}

// Builder makes a builder of results.
func (x *Eval) Builder(kind columnar.Kind, capacity int) *columnar.Builder {
	if kind != columnar.KindBytes {
		return columnar.NewBuilder(kind, capacity)
	}
	if x.grew == nil {
		x.grew = x.grown
	}
	return columnar.NewWatchedBuilder(capacity, x.grew, maxAlloc, refuseLong)
}

// refuseLong ends the evaluation for a value that is too long.
func refuseLong(bytes int) { panic(errAlloc(bytes)) }

// errAlloc is PostgreSQL's error for a value that is longer than any may be.
func errAlloc(bytes int) *pgerror.Error {
	return pgerror.New(pgerror.ProgramLimitExceeded, "invalid memory alloc request size %d", bytes)
}

// dataSize is the bytes of a vector's values of variable length.
func dataSize(v *columnar.Vec) int {
	if v.Kind() != columnar.KindBytes || v.Len() == 0 {
		return 0
	}
	_, offs, _ := v.Raw()
	return int(offs[v.Len()] - offs[0])
}

// parts is what a program has learned of how many rows to evaluate at once.
type parts struct {
	bytes    bool // something of variable length is computed
	volatile bool // it must not be computed again
	rows     atomic.Int32
}

// ApplyParts is Apply in as many parts as it takes for each to be of a bearable size.
// It gives the rows that pass to emit, and those with errors, by their index in in, to
// fail, part by part, until emit wants no more; it tells how many rows of in it has
// evaluated. When watch says that nobody wants the result it leaves off.
func (p *Program) ApplyParts(ctx *Context, in *columnar.Batch, diffs []int64, watch Watch, emit func(out columnar.Batch, diffs []int64) bool, fail func(errs []RowError)) (rows int) {
	step := p.firstPart(in)
	for lo := 0; lo < in.N; {
		if lo > 0 && watch.Stopped != nil && watch.Stopped() {
			return in.N
		}
		hi := min(lo+step, in.N)
		part, some := in, diffs
		if lo > 0 || hi < in.N {
			b := in.Slice(lo, hi)
			part = &b
			if diffs != nil {
				some = diffs[lo:hi:hi]
			}
		}
		out, outDiffs, errs, made, end := p.attempt(ctx, part, some, watch)
		switch {
		case end == ended:
			return in.N
		case end == again:
			step = max(part.N/8, 1)
			p.parts.rows.Store(int32(step))
			continue
		}
		if step < in.N {
			step = p.nextPart(part, made)
		}
		for i := range errs {
			errs[i].Row += lo
		}
		lo = hi
		if len(errs) > 0 {
			fail(errs)
		}
		if out.N > 0 && !emit(out, outDiffs) {
			return lo
		}
	}
	return in.N
}

// firstPart is how many rows of a batch are evaluated first.
func (p *Program) firstPart(in *columnar.Batch) int {
	size := 0
	for _, v := range in.Cols {
		size += dataSize(v)
	}
	step := in.N
	if size > partIn {
		step = max(int(int64(in.N)*int64(partIn)/int64(size)), 1)
	}
	if !p.parts.bytes || p.byRow {
		return step
	}
	if n := int(p.parts.rows.Load()); n > 0 {
		return min(step, n)
	}
	if p.parts.volatile {
		return min(step, 64) // it is learned from these how much a row makes
	}
	return step
}

// nextPart is how many rows are evaluated after a part that has made so many bytes.
func (p *Program) nextPart(part *columnar.Batch, made int) int {
	size := made
	for _, v := range part.Cols {
		size = max(size, dataSize(v)*(partMade/partIn))
	}
	n := min(8*part.N, 1<<20)
	if size > 0 {
		n = min(n, max(int(int64(part.N)*int64(partMade/2)/int64(size)), 1))
	}
	p.parts.rows.Store(int32(n))
	return n
}

// How an attempt ends.
type outcome uint8

const (
	good  outcome = iota
	again         // with fewer rows
	ended         // nobody wants it
)

// attempt evaluates one part.
func (p *Program) attempt(ctx *Context, in *columnar.Batch, diffs []int64, watch Watch) (out columnar.Batch, outDiffs []int64, errs []RowError, made int, end outcome) {
	if !p.parts.bytes {
		out, outDiffs, errs = p.Apply(ctx, in, diffs)
		return out, outDiffs, errs, 0, good
	}
	x := evals.Get().(*Eval) // not given back if it is left in the middle
	x.watch, x.made = watch, 0
	if in.N > 1 && !p.parts.volatile && !p.byRow {
		x.most = partMade
	}
	defer func() {
		if r := recover(); r != nil {
			errs, end = x.left(r)
		}
	}()
	if p.byRow && in.N > 1 {
		out, outDiffs, errs = p.applyByRow(ctx, in, diffs)
		return out, outDiffs, errs, out.MemSize(), good
	}
	out, outDiffs, errs, made = p.apply(x, ctx, in, diffs)
	return out, outDiffs, errs, made, good
}

// left is what an evaluation that panicked with r comes to.
func (x *Eval) left(r any) (errs []RowError, end outcome) {
	switch r := r.(type) {
	case unwanted:
		return nil, ended
	case tooMuch:
		return nil, again
	case *pgerror.Error:
		if x.most > 0 {
			return nil, again
		}
		return []RowError{{Err: r}}, good
	case error:
		if r == columnar.ErrTooLarge && x.most > 0 {
			return nil, again
		}
	}
	panic(r)
}

// applyToConstants is apply of what stands for all rows: it would make as much for fewer.
func (x *Eval) applyToConstants(n *node, args []*columnar.Vec, f *frame) (v *columnar.Vec) {
	most := x.most
	x.most = 0
	defer func() {
		x.most = most
		r := recover()
		if r == nil {
			return
		}
		err, ok := r.(*pgerror.Error)
		if !ok {
			panic(r)
		}
		for i := range f.n {
			x.errs = append(x.errs, RowError{Row: f.row(i), Err: err})
		}
		v = nullOf(n.kind)
	}()
	return x.apply(n.call, n.kernel, args, 1, f)
}
