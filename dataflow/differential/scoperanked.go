package differential

import (
	"math"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// A Distinct of a scope whose rows carry a rank keeps apart which derivations a
// row may rest on. The rank of a derivation is one more than the greatest of the
// rows that it is made of; the rank of a row is fixed when it appears, as the least
// of its derivations. So a row that has a derivation of its rank or a lesser one is
// well founded: by rows of lesser ranks only, and not by itself by way of a cycle.
//
//	a ──→ b ──→ c        d stays when a → b goes if it has another derivation of
//	0     1     2 ──→ d  rank 3 or less; if it has one of rank 7, it goes, and comes
//	                  3  back with rank 7 when all up to 6 is settled
//
// Rows are settled in the order of their ranks: a row that has lost its support at
// its own rank, a row that has gained one at the rank of that. What a settled row
// changes has a greater rank. (It is the order in which shortest paths are mended;
// but ranks need not be the least, so that a new row leaves others as they are.)
// A deletion costs as much as there are rows whose support it takes away, and not
// as there are rows beyond it.
type rankedDistinct struct {
	a     *Arrangement // derivations by row, with their ranks
	scope *Scope
	node  *Node
	cur   *trace.Trace // the rows, with theirs
	// waiting are rows to look at when their time comes, by partition and rank.
	waiting []map[int64][]*columnar.Batch
}

// never is the rank of what is not there.
const never = math.MaxInt64

// RankedDistinct has each row once. The last column is the rank of the derivation,
// an int64; that of the result is the rank of the row. Variables of the scope
// must have been made with IterateOptions.Ranked.
func (s *Scope) RankedDistinct(in Stream) Stream {
	kinds := in.Kinds()
	key := allColumns(len(kinds) - 1)
	d := &rankedDistinct{a: s.Arrange(in, key), scope: s, cur: s.NewTrace(kinds, key)}
	d.waiting = make([]map[int64][]*columnar.Batch, s.Partitions())
	for p := range d.waiting {
		d.waiting[p] = map[int64][]*columnar.Batch{}
	}
	d.node = s.AddOver(d, []*Arrangement{d.a}, kinds)
	s.ranked = append(s.ranked, d)
	return d.node.Out(0)
}

// next is the least rank at which a row waits.
func (d *rankedDistinct) next() int64 {
	least := int64(never)
	for _, w := range d.waiting {
		for r := range w {
			least = min(least, r)
		}
	}
	return least
}

// settling is rows of one partition that are looked at.
type settling struct {
	keys      columnar.Batch
	had, has  *trace.Groups
	time      []int64  // when each is settled: never if there is nothing to settle
	was       []int64  // its rank
	least     []int64  // that of its least derivation
	wasAt, at []uint32 // the rows that say so, in had and has
}

// Step looks at the rows that changed and those whose time has come, settles what
// can be, and lets the rest wait.
func (d *rankedDistinct) Step(x *Context) {
	upTo := d.scope.settled
	if len(d.scope.ranked) == 1 {
		upTo = d.next()
	}
	looks := make([]*settling, len(d.waiting))
	rows := d.a.deltaRows()
	x.Probed(d.a, rows)
	x.ForEach(rows, func(p int, _ *Emitter) { looks[p] = d.look(p, upTo) })
	if len(d.scope.ranked) == 1 {
		for _, s := range looks {
			for i := range s.time {
				upTo = min(upTo, s.time[i])
			}
		}
	}
	var all []*dataflow.Delta
	for p, s := range looks {
		for _, e := range d.settle(s, p, upTo) {
			x.Emit(0, e)
			all = append(all, e)
		}
	}
	if len(all) > 0 {
		x.Commit(d.cur, x.Arrange(d.cur, all))
	}
}

// look finds out about rows.
func (d *rankedDistinct) look(p int, upTo int64) *settling {
	s := &settling{}
	kinds := d.a.layout.KeyKinds()
	var some []*columnar.Batch
	if delta := d.a.Delta(p); delta.Len() > 0 {
		keys, hash := touchedKeys(delta)
		some = append(some, &columnar.Batch{Cols: keys, N: len(hash)})
	}
	for r, bs := range d.waiting[p] {
		if r <= upTo {
			some = append(some, bs...)
			delete(d.waiting[p], r)
		}
	}
	if len(some) == 0 {
		return s
	}
	s.keys = columnar.ConcatBatches(kinds, some...)
	if len(some) > 1 {
		s.keys, _ = columnar.Consolidate(s.keys, nil)
	}
	cols, hash, _ := sortByHash(s.keys.Cols, s.keys.N)
	s.keys.Cols = cols
	s.has = d.a.New(p).Groups(cols, hash)
	s.had = d.cur.Spines()[p].Reader().Groups(cols, hash)
	n := s.keys.N
	s.time, s.was, s.least = make([]int64, n), make([]int64, n), make([]int64, n)
	s.wasAt, s.at = make([]uint32, n), make([]uint32, n)
	for i := range n {
		s.was[i], s.wasAt[i] = firstRank(s.had, i)
		s.least[i], s.at[i] = firstRank(s.has, i)
		switch {
		case s.was[i] == never:
			s.time[i] = s.least[i]
		case s.least[i] > s.was[i]:
			s.time[i] = s.was[i]
		default:
			s.time[i] = never
		}
	}
	return s
}

// firstRank is the least rank in group i, and where it stands.
func firstRank(g *trace.Groups, i int) (rank int64, at uint32) {
	lo := 0
	if i > 0 {
		lo = g.Ends[i-1]
	}
	ranks := g.Rows.Cols[len(g.Rows.Cols)-1].Int64s()
	for r := lo; r < g.Ends[i]; r++ {
		if g.Diffs == nil || g.Diffs[r] > 0 {
			return ranks[r], uint32(r)
		}
	}
	return never, 0
}

// settle gives the changes of the rows whose time is not after upTo.
func (d *rankedDistinct) settle(s *settling, p int, upTo int64) (out []*dataflow.Delta) {
	var gone, come []uint32
	wait := map[int64][]uint32{}
	for i, at := range s.time {
		switch {
		case at == never:
			continue
		case at > upTo:
			wait[at] = append(wait[at], uint32(i))
			continue
		case s.was[i] != never:
			gone = append(gone, s.wasAt[i])
		}
		switch {
		case s.least[i] == never:
		case s.least[i] <= upTo:
			come = append(come, s.at[i])
		default:
			wait[s.least[i]] = append(wait[s.least[i]], uint32(i))
		}
	}
	for r, idx := range wait {
		b := s.keys.Gather(idx)
		d.waiting[p][r] = append(d.waiting[p][r], &b)
	}
	if len(gone) > 0 {
		out = append(out, negate(&dataflow.Delta{Batch: s.had.Rows.Gather(gone)}))
	}
	if len(come) > 0 {
		out = append(out, &dataflow.Delta{Batch: s.has.Rows.Gather(come)})
	}
	return out
}
