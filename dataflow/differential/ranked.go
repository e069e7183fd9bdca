package differential

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// Ranked says what a function needs that looks at single places of a group:
// percentiles, the most frequent value. Places count where the first ordering
// column is not NULL; those rows come first.
type Ranked struct {
	// Apply computes the output for one group, as GroupFunc does.
	Apply func(v *RankedView, emit, emitErr func(*dataflow.Delta))
	// Mode: the most frequent value is asked for.
	Mode bool
}

// RankedView is one large group, of which rows can be asked for by their place.
type RankedView struct {
	n     *nearby
	x     *orderIndex
	now   bool
	block int // that is in refs, -1: none
	named func(*Groups) *Groups
}

// Count is the number of places.
func (v *RankedView) Count() int64 { return v.x.places }

// Exists reports whether the group has rows at all.
func (v *RankedView) Exists() bool { return v.x.rows > 0 }

// First is the first row of the group.
func (v *RankedView) First() columnar.Batch {
	v.n.addr = v.n.addr[:0]
	for b := range v.x.blocks {
		v.read(b)
		for i := range v.n.refs {
			if ref := &v.n.refs[i]; ref.mult(v.now) > 0 {
				v.add(ref)
				return v.rows()
			}
		}
	}
	return v.rows()
}

// Rows are the rows at places, counted from 0.
func (v *RankedView) Rows(places []int64) columnar.Batch {
	v.n.addr = v.n.addr[:0]
	for _, at := range places {
		b := 0
		for ; at >= v.x.blocks[b].places; b++ {
			at -= v.x.blocks[b].places
		}
		v.read(b)
		for i := range v.n.refs {
			ref := &v.n.refs[i]
			if at -= ref.mult(v.now); at < 0 {
				v.add(ref)
				break
			}
		}
	}
	return v.rows()
}

// Mode is the first row of those with the most frequent value; none if no place
// counts.
func (v *RankedView) Mode() columnar.Batch {
	v.n.addr = v.n.addr[:0]
	best := 0
	for b := range v.x.blocks {
		if v.x.blocks[b].most > v.x.blocks[best].most {
			best = b
		}
	}
	if v.x.places == 0 {
		return v.rows()
	}
	v.read(best)
	most, run := int64(0), int64(0)
	var first, last, mode *rowRef
	for i := range v.n.refs {
		ref := &v.n.refs[i]
		m := ref.mult(v.now)
		if m == 0 || !v.n.counts(v.x, ref) {
			continue
		}
		if last == nil || !v.n.peers(v.x, 1, last, ref) {
			run, first = 0, ref
		}
		if run += m; run > most {
			most, mode = run, first
		}
		last = ref
	}
	v.add(mode)
	return v.rows()
}

// read brings a block to refs.
func (v *RankedView) read(b int) {
	if v.block != b {
		v.block = b
		v.n.read(v.x, b, b+1, Reach{}, nil)
	}
}

func (v *RankedView) add(ref *rowRef) {
	v.n.place()
	v.n.addr = append(v.n.addr, v.n.runs[ref.run].base+uint32(ref.row))
}

func (v *RankedView) rows() columnar.Batch {
	v.n.place()
	return v.named(&Groups{Rows: v.n.gather()}).Rows
}

// shortcuts chooses how large groups are computed.
func (g *groupMap) shortcuts(c *Circuit, ordered int, o *GroupMapOptions) {
	l := g.in.layout
	cols := l.Order()[len(l.Key):]
	fence := len(cols)
	kind := &indexKind{cols: cols, counted: -1, rows: blockRows}
	if c.opts.BlockRows > 0 {
		kind.rows = c.opts.BlockRows
	}
	switch r := o.Running; {
	case o.Reach != nil:
		if o.Reach.Before+o.Reach.After > maxReach {
			return
		}
		g.reach, g.small = o.Reach, min(wholeGroup, wholeBlocks*kind.rows)
	case r != nil && r.Wide && r.Stateless:
		g.running, g.small = r, min(wholeGroup, wholeBlocks*kind.rows)
	case r != nil:
		if r.Reach.Before+r.Reach.After > maxReach {
			return
		}
		g.running = r
		kind.saved = true
		if r.Peers {
			fence = ordered
		}
	case o.Ranked != nil && ordered > 0:
		g.ranked = o.Ranked
		kind.counted = cols[0]
		if kind.mode = o.Ranked.Mode; kind.mode {
			fence = 1
		}
	default:
		return
	}
	if g.reach != nil || g.running != nil && g.running.Wide && g.running.Stateless {
		return
	}
	if fence == 0 {
		g.running = nil // all rows are peers
		return
	}
	kinds := make([]columnar.Kind, fence)
	for i, col := range cols[:fence] {
		kinds[i] = l.Kinds[col]
	}
	kind.fence = newRowCodec(kinds, false)
	g.index = kind
	g.indexes = make([]map[uint64]*orderIndex, c.Partitions())
}

// indexed computes what changes in one group by its index; false if it should be
// computed whole, and its index be dropped.
func (g *groupMap) indexed(n *nearby, p int, keys []*columnar.Vec, i int, hash uint64, out *Emitter) bool {
	delta := g.in.Delta(p).Batches
	if len(delta) != 1 || g.global && !g.started {
		return false
	}
	rows, changes := n.open(g.in.Old(p).Batches, delta, keys, i, hash)
	if rows <= wholeBlocks*g.index.rows || changes == 0 || changes > manyChanges && changes*8 > rows {
		return false
	}
	x := g.indexes[p][hash]
	fresh := x == nil
	if fresh {
		key := make([]*columnar.Vec, len(keys))
		for c, v := range keys {
			key[c] = v.Gather([]uint32{uint32(i)})
		}
		x = n.build(g.index, key)
	} else if !columnar.EqualRows(x.key, 0, keys, i) {
		return false // two keys of one hash share the place of one
	}
	u := &pass{n: n, x: x, run: g.running, named: g.named, kinds: g.kinds}
	if g.running != nil {
		u.reach = g.running.Reach
		if u.run.Wide {
			u.reach = Reach{Before: max(u.reach.Before, sightRows), After: max(u.reach.After, sightRows)}
		}
	}
	if g.ranked != nil {
		g.rerank(u)
	} else if fresh && !u.restate() || !u.advance() {
		return false
	}
	if fresh {
		if g.indexes[p] == nil {
			g.indexes[p] = map[uint64]*orderIndex{}
		}
		g.indexes[p][hash] = x
	}
	u.emit(out)
	return true
}

// clean ends a step.
func (x *orderIndex) clean() {
	for b := range x.blocks {
		x.blocks[b].dirty = false
	}
}

// rerank computes a group by places, as it was and as it is.
func (g *groupMap) rerank(u *pass) {
	for _, now := range []bool{false, true} {
		sign := int64(-1)
		if now {
			sign = 1
			u.n.update(u.x, len(u.n.runs)-1, Reach{})
			u.n.reshape(u.x)
			u.x.clean()
		}
		v := &RankedView{n: u.n, x: u.x, now: now, block: -1, named: u.named}
		if v.Exists() || g.global {
			g.ranked.Apply(v, collectInto(&u.poks, sign), collectInto(&u.perrs, sign))
		}
	}
	u.flush()
}

// advance brings the index and the output from before the step to after it.
func (u *pass) advance() bool {
	was := u.x.places
	u.n.update(u.x, len(u.n.runs)-1, u.run.Reach)
	if u.run.Wide {
		u.mark()
	}
	u.n.reshape(u.x)
	u.size = [2]int64{was, u.x.places}
	u.wasAfter = nil
	ok := (!u.run.Backward || u.backward()) && u.forward()
	u.x.clean()
	return ok
}
