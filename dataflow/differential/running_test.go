package differential

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// carrying is a running function over (group, value): of each row the least value
// and the sum modulo 3 up to it (its peers included, if they matter), the number
// of values of 3 or more up to four from it on, the value before it, and the size
// of the group if that is asked for.
type carrying struct {
	peers, back, sized bool
	before             int
}

var carryingKinds = []columnar.Kind{k64, k64, k64, k64, k64, k64, k64}

func (f carrying) Apply(g *Groups, emit, _ func(*dataflow.Delta)) {
	lo := 0
	for _, hi := range g.Ends {
		p := &Piece{Groups: Groups{Rows: g.Rows.Slice(lo, hi), Mults: g.Mults[lo:hi], Ends: []int{hi - lo}}, Cuts: []int{0, hi - lo}, Emit: true}
		for _, m := range p.Mults {
			p.Size += m
		}
		f.Piece(p, emit, nil)
		lo = hi
	}
}

func (f carrying) Piece(p *Piece, emit, _ func(*dataflow.Delta)) ([][]byte, bool) {
	states := make([][]byte, len(p.Cuts))
	if p.Rows.N == 0 {
		for k := range states {
			states[k] = p.Before
			if p.Backward {
				states[k] = p.After
			}
		}
		return states, true
	}
	keys, vals := p.Rows.Cols[0].Int64s(), p.Rows.Cols[1].Int64s()
	decode := func(b []byte) (x, y int64) {
		if len(b) == 0 {
			return 1 << 40, 0
		}
		return int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))
	}
	encode := func(x, y int64) []byte {
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(x)), uint64(y))
	}
	first, last := p.Cuts[0], p.Cuts[len(p.Cuts)-1]
	large := make([]int64, p.Rows.N+1)
	if f.back {
		_, n := decode(p.After)
		k := len(p.Cuts) - 1
		for i := last - 1; i >= first; i-- {
			for k > 0 && p.Cuts[k] > i {
				states[k] = encode(0, n)
				k--
			}
			if vals[i] >= 3 {
				n = min(n+p.Mults[i], 4)
			}
			large[i] = n
		}
		for ; k >= 0; k-- {
			states[k] = encode(0, n)
		}
		if p.Backward {
			return states, true
		}
	}
	least, sum := decode(p.Before)
	out := make([][]int64, len(carryingKinds))
	var diffs []int64
	k := 1
	for i := first; i < last; {
		for k < len(p.Cuts) && p.Cuts[k] <= i {
			states[k] = encode(least, sum)
			k++
		}
		end := i + 1
		for f.peers && end < last && vals[end] == vals[i] {
			end++
		}
		for j := i; j < end; j++ {
			least, sum = min(least, vals[j]), (sum+vals[j]*p.Mults[j])%3
		}
		for ; i < end; i++ {
			prev := int64(-1)
			if i > 0 && f.before > 0 {
				prev = vals[i-1]
			}
			size := int64(0)
			if f.sized {
				size = p.Size
			}
			for c, x := range []int64{keys[i], vals[i], least, sum, large[i], prev, size} {
				out[c] = append(out[c], x)
			}
			diffs = append(diffs, p.Mults[i])
		}
	}
	for ; k < len(p.Cuts); k++ {
		states[k] = encode(least, sum)
	}
	if p.Emit && len(diffs) > 0 {
		d := &dataflow.Delta{Batch: columnar.Batch{N: len(diffs)}, Diffs: diffs}
		for _, c := range out {
			d.Cols = append(d.Cols, columnar.FromSlice(c, nil))
		}
		emit(d)
	}
	return states, true
}

// someChanges is a change of groups of values, of which `have` is the content.
func someChanges(r *rand.Rand, have map[[2]int64]int64, groups, values, most int) *dataflow.Delta {
	var ks, vs, ds []int64
	for range 1 + r.IntN(most) {
		row := [2]int64{int64(r.IntN(groups)), int64(r.IntN(values))}
		d := int64(1 + r.IntN(2))
		if have[row] > 0 && r.IntN(2) == 0 {
			d = -have[row]
		} else if r.IntN(20) == 0 {
			d = -1 // it may go below nothing
		}
		have[row] += d
		ks, vs, ds = append(ks, row[0]), append(vs, row[1]), append(ds, d)
	}
	return &dataflow.Delta{Batch: columnar.Batch{N: len(ks), Cols: []*columnar.Vec{columnar.FromSlice(ks, nil), columnar.FromSlice(vs, nil)}}, Diffs: ds}
}

// TestRunning compares functions computed piece by piece with whole groups.
func TestRunning(t *testing.T) {
	r := testRand(t)
	for round := range 60 {
		c := New(Options{Partitions: 1 << r.IntN(3), BlockRows: 1 + r.IntN(5)})
		in, s := c.Input([]columnar.Kind{k64, k64, k64})
		f := carrying{peers: r.IntN(2) == 0, back: r.IntN(2) == 0, sized: r.IntN(3) == 0, before: r.IntN(2)}
		order := []Order{{Col: 1, Desc: r.IntN(2) == 0}}
		run := &Running{Pieces: f, Peers: f.peers, Backward: f.back, Sized: f.sized, Reach: Reach{Before: f.before}}
		quick, _ := c.GroupMap(s, []int{0}, carryingKinds, f, GroupMapOptions{Order: order, Running: run})
		whole, _ := c.GroupMap(s, []int{0}, carryingKinds, f, GroupMapOptions{Order: order})
		diff := c.Output(c.Concat(carryingKinds, quick, c.Negate(whole)))
		have := map[[2]int64]int64{}
		groups, values := 1+r.IntN(3), 5+r.IntN(100)
		for epoch := 1; epoch <= 40; epoch++ {
			d := someChanges(r, have, groups, values, []int{2, 8, 60}[r.IntN(3)])
			// Rows of one value in the second column are peers without being equal.
			peers, third := make([]int64, d.N), make([]int64, d.N)
			for i, v := range d.Cols[1].Int64s() {
				peers[i], third[i] = v/4, v%4
			}
			d.Cols = []*columnar.Vec{d.Cols[0], columnar.FromSlice(peers, nil), columnar.FromSlice(third, nil)}
			in.Push(d)
			c.Step(dataflow.Epoch(epoch))
			if d := Consolidated(carryingKinds, diff.Take()); d != nil {
				t.Fatalf("round %d, epoch %d: %+v: %s", round, epoch, f, fmt.Sprint(d.Cols[0].Int64s(), d.Cols[1].Int64s(), d.Cols[2].Int64s(), d.Cols[3].Int64s(), d.Cols[4].Int64s(), d.Cols[5].Int64s(), d.Diffs))
			}
			if r.IntN(15) == 0 {
				c.Forget()
			}
		}
	}
}

// TestRunningStops counts the rows that a change makes a function see: it ends
// where the states meet.
func TestRunningStops(t *testing.T) {
	c := New(Options{})
	in, s := c.Input([]columnar.Kind{k64, k64})
	f := &watching{}
	out, _ := c.GroupMap(s, []int{0}, carryingKinds, f, GroupMapOptions{Order: []Order{{Col: 1}}, Running: &Running{Pieces: f}})
	o := c.Output(out)
	n := 400_000 // a hundred pieces
	vals := make([]int64, n)
	for i := range vals {
		vals[i] = int64(3 * i)
	}
	push := func(epoch int, diff int64, vals ...int64) (rows, changes int) {
		d := &dataflow.Delta{Batch: columnar.Batch{N: len(vals), Cols: []*columnar.Vec{columnar.FromSlice(make([]int64, len(vals)), nil), columnar.FromSlice(vals, nil)}}}
		for range vals {
			d.Diffs = append(d.Diffs, diff)
		}
		f.rows = 0
		in.Push(d)
		c.Step(dataflow.Epoch(epoch))
		for _, d := range o.Take() {
			changes += d.N
		}
		return f.rows, changes
	}
	push(1, 1, vals...)
	push(2, 1, 600_000) // makes the index
	if rows, changes := push(3, 1, 600_003); rows > 20*blockRows || changes != 1 {
		t.Errorf("a change that no other row sees: %d rows looked at, %d changes", rows, changes)
	}
	if rows, changes := push(4, 1, 3*int64(n)-50); rows > 20*blockRows || changes > 40 {
		t.Errorf("a change at the end: %d rows looked at, %d changes", rows, changes)
	}
	if rows, changes := push(5, 1, 600_001); rows < n/2 || changes < n/2 {
		t.Errorf("a change of all that follows: %d rows looked at, %d changes", rows, changes)
	}
	if rows, changes := push(6, -1, 600_001); rows < n/2 || changes < n/2 {
		t.Errorf("a change taken back: %d rows looked at, %d changes", rows, changes)
	}
}

// watching counts the rows that carrying sees.
type watching struct {
	carrying
	rows int
}

func (f *watching) Apply(g *Groups, emit, emitErr func(*dataflow.Delta)) {
	f.rows += g.Rows.N
	f.carrying.Apply(g, emit, emitErr)
}

func (f *watching) Piece(p *Piece, emit, emitErr func(*dataflow.Delta)) ([][]byte, bool) {
	f.rows += p.Rows.N
	return f.carrying.Piece(p, emit, emitErr)
}

// medians is a function of ranks: the number of values, the middle one, and the
// most frequent one, of the second column; NULLs do not count.
type medians struct{}

func (medians) emit(g, n, mid, mode int64, emit func(*dataflow.Delta)) {
	d := &dataflow.Delta{Batch: columnar.Batch{N: 1}}
	for _, x := range []int64{g, n, mid, mode} {
		d.Cols = append(d.Cols, columnar.FromSlice([]int64{x}, nil))
	}
	emit(d)
}

func (f medians) Apply(g *Groups, emit, _ func(*dataflow.Delta)) {
	lo := 0
	for _, hi := range g.Ends {
		var all []int64
		runs := map[int64]int{}
		mode := int64(-1)
		for i := lo; i < hi; i++ {
			if g.Rows.Cols[1].Null(i) {
				continue
			}
			for range g.Mults[i] {
				all = append(all, g.Rows.Cols[1].Int64s()[i])
			}
		}
		for _, v := range all {
			runs[v]++
		}
		mid := int64(-1)
		if len(all) > 0 {
			mid, mode = all[len(all)/2], all[0]
		}
		for _, v := range all {
			if runs[v] > runs[mode] {
				mode = v
			}
		}
		f.emit(g.Rows.Cols[0].Int64s()[lo], int64(len(all)), mid, mode, emit)
		lo = hi
	}
}

func (f medians) ranked(v *RankedView, emit, _ func(*dataflow.Delta)) {
	first := v.First()
	mid, mode := int64(-1), int64(-1)
	if n := v.Count(); n > 0 {
		b := v.Rows([]int64{0, n / 2, n - 1})
		mid = b.Cols[1].Int64s()[1]
		m := v.Mode()
		mode = m.Cols[1].Int64s()[0]
	}
	f.emit(first.Cols[0].Int64s()[0], v.Count(), mid, mode, emit)
}

// TestRanked compares functions of places with whole groups.
func TestRanked(t *testing.T) {
	r := testRand(t)
	kinds := []columnar.Kind{k64, k64, k64, k64}
	for round := range 60 {
		c := New(Options{Partitions: 1 << r.IntN(3), BlockRows: 1 + r.IntN(5)})
		in, s := c.Input([]columnar.Kind{k64, k64, k64})
		order := []Order{{Col: 1, Desc: r.IntN(2) == 0}}
		quick, _ := c.GroupMap(s, []int{0}, kinds, medians{}, GroupMapOptions{Order: order, Ranked: &Ranked{Apply: medians{}.ranked, Mode: true}})
		whole, _ := c.GroupMap(s, []int{0}, kinds, medians{}, GroupMapOptions{Order: order})
		diff := c.Output(c.Concat(kinds, quick, c.Negate(whole)))
		have := map[[2]int64]int64{}
		groups, values := 1+r.IntN(3), 5+r.IntN(100)
		for epoch := 1; epoch <= 40; epoch++ {
			d := someChanges(r, have, groups, values, []int{2, 8, 60}[r.IntN(3)])
			vs := columnar.NewBuilder(k64, d.N)
			for _, v := range d.Cols[1].Int64s() {
				if v%5 == 0 {
					vs.Null()
				} else {
					vs.Int64(v / 3)
				}
			}
			d.Cols = []*columnar.Vec{d.Cols[0], vs.Build(), d.Cols[1]}
			in.Push(d)
			c.Step(dataflow.Epoch(epoch))
			if d := Consolidated(kinds, diff.Take()); d != nil {
				t.Fatalf("round %d, epoch %d: %s", round, epoch, fmt.Sprint(d.Cols[0].Int64s(), d.Cols[1].Int64s(), d.Cols[2].Int64s(), d.Cols[3].Int64s(), d.Diffs))
			}
			if r.IntN(15) == 0 {
				c.Forget()
			}
		}
	}
}
