package render

import (
	"errors"
	"math"
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

const (
	// sortedRows is how many rows an emitted batch of sorted rows has, and sortedBytes
	// about how many bytes.
	sortedRows  = 4096
	sortedBytes = 8 << 20
	// pruneRows is how many rows beyond the limit are kept before they are cut.
	pruneRows = 1 << 16
)

// Sorter gives rows in the order and within the limit of a root plan.Sort. With
// a limit it keeps no more than about that many rows.
type Sorter struct {
	order         []plan.SortKey
	typs          []types.Type
	limit, offset int64 // limit -1: none
	width         int   // columns to emit
	batches       []columnar.Batch
	rows          int // in batches
	bytes         int64
	memory        *Memory // nil: no bound
	spilled       *sortRuns
	// peers says that rows come in this order, and that all that are equal in it to
	// the last one wanted are wanted, too: of those, more may be kept.
	peers []plan.SortKey
}

// NewSorter makes a Sorter for rows with the columns of s; of those it emits
// the first width.
func NewSorter(s *plan.Sort, ctx *expr.Context, width int) (*Sorter, error) {
	limit, offset, err := limits(s.Limit, s.Offset, ctx)
	if err != nil {
		return nil, err
	}
	if limit > math.MaxInt64-offset { // more than there can be
		limit = -1
	}
	return &Sorter{order: s.Order, typs: typesOf(s.Input.Columns()), limit: limit, offset: offset, width: width}, nil
}

// Streams reports whether rows need no sorting: they are emitted as they come.
func (s *Sorter) Streams() bool { return len(s.order) == 0 }

// Enough reports whether further rows cannot matter.
func (s *Sorter) Enough() bool {
	if s.limit == 0 {
		return true
	}
	return s.Streams() && s.limit >= 0 && int64(s.rows) >= s.limit+s.offset && !s.peersLeft()
}

// peersLeft reports whether the next row may be a peer of the last one wanted.
func (s *Sorter) peersLeft() bool {
	if s.peers == nil {
		return false
	}
	at := int(s.limit+s.offset) - 1
	b := 0
	for at >= s.batches[b].N {
		at -= s.batches[b].N
		b++
	}
	last := &s.batches[len(s.batches)-1]
	keys := func(b *columnar.Batch) []columnar.SortKey { return orderKeys(s.peers, s.typs, b) }
	return columnar.CompareBetween(keys(&s.batches[b]), at, keys(last), last.N-1) == 0
}

// Add takes rows.
func (s *Sorter) Add(b columnar.Batch) error {
	if b.N == 0 {
		return nil
	}
	s.batches = append(s.batches, b)
	s.rows += b.N
	s.bytes += int64(b.MemSize())
	if s.limit >= 0 && int64(s.rows) > s.limit+s.offset+pruneRows && s.peers == nil {
		s.prune()
	}
	if m := s.memory; m != nil && s.bytes > m.Sort && !s.Streams() {
		return s.spill()
	}
	return nil
}

// spill writes the rows that are there as a sorted run.
func (s *Sorter) spill() error {
	if s.spilled == nil {
		f, err := s.memory.Temp()
		if err != nil {
			return pgerror.New(pgerror.IOError, "no file for a sort: %v", err)
		}
		s.spilled = &sortRuns{file: f, memory: s.memory}
	}
	all, idx := s.sorted()
	if err := s.spilled.write(&all, idx); err != nil {
		return err
	}
	s.batches, s.rows, s.bytes = nil, 0, 0
	return nil
}

// Close gives back what the Sorter has on disk.
func (s *Sorter) Close() {
	if s.spilled != nil {
		s.spilled.close()
	}
}

func (s *Sorter) kinds() []columnar.Kind {
	kinds := make([]columnar.Kind, len(s.typs))
	for i, t := range s.typs {
		kinds[i] = t.Kind()
	}
	return kinds
}

// prune keeps only the rows that may still be within the limit.
func (s *Sorter) prune() {
	all, idx := s.sorted()
	if keep := s.limit + s.offset; int64(len(idx)) > keep {
		idx = idx[:keep]
	}
	b := all.Gather(idx)
	s.batches, s.rows, s.bytes = append(s.batches[:0], b), b.N, int64(b.MemSize())
}

// sorted is all rows in one batch, and their order.
func (s *Sorter) sorted() (columnar.Batch, []uint32) {
	var all columnar.Batch
	if len(s.batches) == 1 {
		all = s.batches[0]
	} else {
		parts := make([]*columnar.Batch, len(s.batches))
		for i := range s.batches {
			parts[i] = &s.batches[i]
		}
		all = columnar.ConcatBatches(s.kinds(), parts...)
	}
	return all, columnar.Sort(s.keys(&all), all.N)
}

// keys are the sort keys over a batch.
func (s *Sorter) keys(b *columnar.Batch) []columnar.SortKey { return orderKeys(s.order, s.typs, b) }

// orderKeys are the keys of an order over a batch of columns of the given types.
func orderKeys(order []plan.SortKey, typs []types.Type, b *columnar.Batch) []columnar.SortKey {
	keys := make([]columnar.SortKey, len(order))
	for i, k := range order {
		v := b.Cols[k.Col]
		if t := typs[k.Col]; types.NeedsSortKey(t) {
			v = types.SortKeyVec(t, v)
		}
		keys[i] = columnar.SortKey{Vec: v, Desc: k.Desc, NullsFirst: k.NullsFirst}
	}
	return keys
}

// Emit gives all rows, in order, in batches.
func (s *Sorter) Emit(emit Emit) error {
	if s.spilled != nil {
		return s.emitMerged(emit)
	}
	if s.rows == 0 {
		return nil
	}
	if s.Streams() {
		return s.emitAll(emit)
	}
	all, idx := s.sorted()
	idx = idx[min(s.offset, int64(len(idx))):]
	if s.limit >= 0 && int64(len(idx)) > s.limit {
		idx = idx[:s.limit]
	}
	all.Cols = all.Cols[:s.width]
	rows := rowsWithin(&all, sortedRows, sortedBytes)
	for len(idx) > 0 {
		n := min(len(idx), rows)
		b := all.Gather(idx[:n])
		if err := emit(&b); err != nil {
			return err
		}
		idx = idx[n:]
	}
	return nil
}

// emitMerged merges the runs on disk.
func (s *Sorter) emitMerged(emit Emit) error {
	if s.rows > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	out := limiter{skip: s.offset, left: s.limit, width: s.width, emit: emit}
	err := s.merge(out.add)
	if err == errEnough {
		return nil
	}
	return err
}

// errEnough ends a merge of which no more rows are wanted.
var errEnough = errors.New("enough rows")

// limiter passes on the rows within offset and limit.
type limiter struct {
	skip, left int64 // left -1: all
	width      int
	emit       Emit
}

func (l *limiter) add(b *columnar.Batch) error {
	lo := min(l.skip, int64(b.N))
	l.skip -= lo
	hi := int64(b.N)
	if l.left >= 0 {
		hi = min(hi, lo+l.left)
		l.left -= hi - lo
	}
	if lo < hi {
		out := b.Slice(int(lo), int(hi))
		out.Cols = out.Cols[:l.width]
		if err := l.emit(&out); err != nil {
			return err
		}
	}
	if l.left == 0 {
		return errEnough
	}
	return nil
}

// emitAll gives the rows in the order in which they came.
func (s *Sorter) emitAll(emit Emit) error {
	out := limiter{skip: s.offset, left: s.limit, width: s.width, emit: emit}
	for i := range s.batches {
		switch err := out.add(&s.batches[i]); err {
		case nil:
		case errEnough:
			return nil
		default:
			return err
		}
	}
	return nil
}

// expand gives each row as often as its diff says. Rows of negative diff must
// have been consolidated away: one left is a broken invariant of the data.
func expand(b columnar.Batch, diffs []dataflow.Diff) (columnar.Batch, error) {
	if diffs == nil || !slices.ContainsFunc(diffs, func(d dataflow.Diff) bool { return d != 1 }) {
		return b, nil
	}
	idx := make([]uint32, 0, b.N)
	for i, d := range diffs {
		if d < 0 {
			return b, pgerror.New(pgerror.InternalError, "a row occurs %d times", d)
		}
		for range d {
			idx = append(idx, uint32(i))
		}
	}
	return b.Gather(idx), nil
}
