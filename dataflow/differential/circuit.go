package differential

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// Executor runs n independent pieces of work, possibly in parallel, and
// returns when all are done.
type Executor interface{ Run(n int, f func(i int)) }

// Inline is the Executor that runs in its caller.
type Inline struct{}

// Run calls f for 0..n-1 in order.
func (Inline) Run(n int, f func(i int)) {
	for i := range n {
		f(i)
	}
}

// Options of a circuit; the zero value is good.
type Options struct {
	Partitions int      // parts of the key space, a power of two; 0 is 1
	Exec       Executor // nil is Inline
	// Once makes a circuit that is given all its input at one epoch and then
	// thrown away: operators take cheaper algorithms and keep no state.
	Once bool
}

// Circuit is a dataflow: operators joined by streams, run one epoch at a time
// by Step. Operators are added bottom-up, so that their order of creation is a
// topological one; a step visits only those that have something to do.
// A Circuit is used by one goroutine at a time.
type Circuit struct{}

// New makes an empty circuit.
func New(o Options) *Circuit { panic("being built") }

// Stream names an output of an operator: a collection, seen as its deltas.
type Stream struct{ port *port }

type port struct{}

// Kinds are the columns of the stream.
func (s Stream) Kinds() []columnar.Kind { panic("being built") }

// Input is where deltas enter a circuit.
type Input struct{}

// Input adds an input.
func (c *Circuit) Input(kinds []columnar.Kind) (*Input, Stream) { panic("being built") }

// Push adds a part of the next epoch's changes. d is immutable from now on.
func (in *Input) Push(d *dataflow.Delta) { panic("being built") }

// Step runs one epoch over what was pushed since the last step. Epochs never
// decrease; the same epoch may be stepped again with more of its changes (a
// snapshot is fed in parts that way).
func (c *Circuit) Step(epoch dataflow.Epoch) { panic("being built") }

// Work does up to about fuel rows of deferred merging, for idle time, and
// reports whether some is left.
func (c *Circuit) Work(fuel int) bool { panic("being built") }

// Output is where deltas leave a circuit.
type Output struct{}

// Output adds an output.
func (c *Circuit) Output(s Stream) *Output { panic("being built") }

// Take gives the deltas that arrived since the last Take, not consolidated.
func (o *Output) Take() []*dataflow.Delta { panic("being built") }

// Spines enumerates all durable state in order of construction, which is the
// same for the same sequence of calls. Together they are the circuit's state
// between two steps.
func (c *Circuit) Spines() []*trace.Spine { panic("being built") }

// Restored must be called after the Spines were filled by Restore and before
// the first Step, with the last complete epoch.
func (c *Circuit) Restored(epoch dataflow.Epoch) { panic("being built") }

// ErrorKinds are the columns of an errs stream: SQLSTATE code, message.
var ErrorKinds = []columnar.Kind{columnar.KindBytes, columnar.KindBytes}

// Mapper is a linear operator's function: what it emits for a row depends on
// that row only, and carries the row's diff (times a factor). It must not
// modify its input; emitted deltas may share its vectors. Apply may run
// concurrently with itself.
type Mapper interface {
	Apply(in *dataflow.Delta, emit func(*dataflow.Delta), emitErr func(*dataflow.Delta))
}

// MapperFunc makes a Mapper of a function.
type MapperFunc func(in *dataflow.Delta, emit func(*dataflow.Delta), emitErr func(*dataflow.Delta))

// Apply calls f.
func (f MapperFunc) Apply(in *dataflow.Delta, emit func(*dataflow.Delta), emitErr func(*dataflow.Delta)) {
	f(in, emit, emitErr)
}

// Map applies a Mapper to every delta: filter, project and flat-map.
func (c *Circuit) Map(s Stream, m Mapper, outKinds []columnar.Kind) (oks, errs Stream) {
	panic("being built")
}

// Concat is the sum of collections of equal kinds; of none it is empty.
func (c *Circuit) Concat(kinds []columnar.Kind, ss ...Stream) Stream { panic("being built") }

// Negate has every diff negated.
func (c *Circuit) Negate(s Stream) Stream { panic("being built") }

// Consolidate sums up equal rows within an epoch, so that what does not change
// costs nothing downstream.
func (c *Circuit) Consolidate(s Stream) Stream { panic("being built") }

// Arrangement is a collection indexed by key, partitioned by the hash of the
// key, shared by all operators that need it so. Columns keep their places.
type Arrangement struct{}

// Arrange indexes a stream by keyCols. The same stream and key give the same
// Arrangement.
func (c *Circuit) Arrange(s Stream, keyCols []int) *Arrangement { panic("being built") }

// ImportArrangement shares a trace that is maintained elsewhere (by another
// circuit, or a published collection). A step at epoch t sees it as at t: the
// trace must be complete up to t. At the first step its whole content is the
// delta. The circuit holds the trace at the last epoch it has seen; Close
// releases that.
func (c *Circuit) ImportArrangement(t *trace.Trace) *Arrangement { panic("being built") }

// Close releases holds on imported arrangements.
func (c *Circuit) Close() { panic("being built") }

// Trace is the state of the arrangement, to import it into other circuits.
func (a *Arrangement) Trace() *trace.Trace { panic("being built") }

// Kinds are the columns; Key the key columns among them.
func (a *Arrangement) Kinds() []columnar.Kind { panic("being built") }
func (a *Arrangement) Key() []int             { panic("being built") }

// Stream is the arranged collection as a stream of consolidated deltas.
func (a *Arrangement) Stream() Stream { panic("being built") }

// JoinKind is the kind of a join.
type JoinKind uint8

// The kinds. Semi and anti joins output left rows with their diffs, if a
// (respectively no) right row of the same key exists; a left row with a NULL
// in its key has none unless NullSafe.
const (
	JoinInner JoinKind = iota
	JoinSemi
	JoinAnti
)

// RowFilter decides rows: it appends to sel the indexes of the rows of in to
// keep. Rows that fail go to emitErr with their diffs. It may run concurrently
// with itself.
type RowFilter interface {
	Filter(in *dataflow.Delta, sel []uint32, emitErr func(*dataflow.Delta)) []uint32
}

// JoinOptions say what a join does with matching pairs. Columns are numbered
// over the left's columns followed by the right's.
type JoinOptions struct {
	Kind JoinKind
	// NullSafe makes NULL keys equal to each other; otherwise a NULL in a key
	// column matches nothing.
	NullSafe bool
	// Residual, if set, is given the columns ResidualCols of each pair and
	// keeps a part of the pairs: only then are the Out columns fetched. Inner only.
	Residual     RowFilter
	ResidualCols []int
	// Out lists the columns to fetch, in order; nil means all (for semi and
	// anti: all of the left's). Keep it narrow: fetching is most of a join's cost.
	Out []int
	// Map, if set, is applied to the fetched columns; MapKinds are its columns.
	Map      Mapper
	MapKinds []columnar.Kind
}

// Join joins two arrangements whose keys have equal kinds.
func (c *Circuit) Join(l, r *Arrangement, o JoinOptions) (oks, errs Stream) { panic("being built") }

// Distinct has each row with a positive count once.
func (c *Circuit) Distinct(s Stream) Stream { panic("being built") }

// Threshold has each row with a positive count so many times.
func (c *Circuit) Threshold(s Stream) Stream { panic("being built") }

// Intersect is INTERSECT [ALL]; Except is EXCEPT [ALL].
func (c *Circuit) Intersect(a, b Stream, all bool) Stream { panic("being built") }
func (c *Circuit) Except(a, b Stream, all bool) Stream    { panic("being built") }

// Scope is the inside of a recursion: a circuit of its own whose variables are
// defined in terms of themselves.
type Scope struct{ *Circuit }

// Enter brings an outer stream into the scope. Var is variable i. Set defines
// its next value. Leave takes an inner stream's final content out (the streams
// of the variables themselves are returned by Iterate).
func (s *Scope) Enter(outer Stream) Stream { panic("being built") }
func (s *Scope) Var(i int) Stream          { panic("being built") }
func (s *Scope) Set(i int, value Stream)   { panic("being built") }
func (s *Scope) Leave(inner Stream) Stream { panic("being built") }

// Iterate computes variables from empty to the fixed point of the definitions
// that build sets in the scope, all variables at once in each round, and gives
// their final content. limit > 0 ends after so many rounds. Sets (UNION) need
// a Distinct in their definition to terminate.
func (c *Circuit) Iterate(vars [][]columnar.Kind, limit int, build func(sc *Scope)) []Stream {
	panic("being built")
}
