package differential

import (
	"math/bits"
	"runtime"
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// onceJoin is the join of a circuit that runs once: a hash table over the
// smaller input (of a semi or anti join: over the right) is probed with the
// other.
type onceJoin struct {
	*pairing
	l, r *Arrangement
}

// Step probes.
func (j *onceJoin) Step(x *Context) {
	rows := countRows(j.l.rows) + countRows(j.r.rows)
	if j.o.Kind != JoinInner {
		t := newKeyCounts(j.r)
		probe := j.l.list()
		x.each(len(probe.deltas), rows, func(i int, out *Emitter) {
			w := newPairs(j.pairing, out)
			j.half(w, t, probe, i)
			w.flush()
		})
		return
	}
	build, other := j.r, j.l
	if countRows(j.l.rows) < countRows(j.r.rows) && j.r.table == nil {
		build, other = other, build
	}
	t := build.hashTable()
	t.list.prepare(j.o, j.left, build == j.l)
	probe := other.list()
	probe.prepare(j.o, j.left, build != j.l)
	j.inner(x, t, probe, rows, build == j.l)
}

// inner outputs the pairs, in portions: some deltas of the probe side at a time,
// each until it has made much.
func (j *onceJoin) inner(x *Context, t *joinTable, probe *deltaList, rows int, buildIsLeft bool) {
	parts := 4 * runtime.GOMAXPROCS(0)
	var open []*tableProbe
	made := 0
	for next := 0; (next < len(probe.deltas) || len(open) > 0) && !j.leftOff(); {
		for ; len(open) < parts && next < len(probe.deltas); next++ {
			open = append(open, newTableProbe(t, probe, next, !j.o.NullSafe))
		}
		sizes := make([]int, len(open))
		x.each(len(open), rows, func(i int, out *Emitter) {
			w := newPairs(j.pairing, out)
			if j.some(w, open[i], t, probe, buildIsLeft, x.c.portion()) {
				open[i].close()
				open[i] = nil
			}
			w.flush()
			sizes[i] = w.made
		})
		open = slices.DeleteFunc(open, func(p *tableProbe) bool { return p == nil })
		for _, n := range sizes {
			made += n
		}
		if made >= x.c.portion() {
			x.drain()
			made = 0
		}
	}
	for _, p := range open {
		p.close()
	}
}

// some outputs pairs of a probe until there are none, which it reports, or they
// are enough for once.
func (j *onceJoin) some(w *pairs, p *tableProbe, t *joinTable, probe *deltaList, buildIsLeft bool, portion int) (all bool) {
	for !w.leftOff() {
		if w.made >= portion {
			return false
		}
		if !p.next() {
			return true
		}
		b, o := side{t.list, p.addrs}, side{probe, p.rows}
		if !buildIsLeft {
			b, o = o, b
		}
		w.emit(b, o)
	}
	return true
}

// half outputs the rows of delta i of the left that have a match, or not.
func (j *onceJoin) half(w *pairs, t *joinTable, left *deltaList, i int) {
	p := newTableProbe(t, left, i, !j.o.NullSafe)
	present := make([]bool, left.deltas[i].N)
	base := uint32(i) << onceShift
	for !w.leftOff() && p.next() {
		for k, r := range p.rows {
			present[r-base] = t.counts[p.addrs[k]] > 0
		}
	}
	p.close()
	var rows []uint32
	for r, is := range present {
		if is == (j.o.Kind == JoinSemi) {
			rows = append(rows, base+uint32(r))
		}
	}
	if len(rows) > 0 {
		w.emitLeft(left, rows, nil)
	}
}

// onceShift is how many bits of an address in a deltaList are the row.
const onceShift = 16

// deltaList is deltas whose rows have addresses: the number of the delta and
// the row in it.
type deltaList struct {
	deltas []*dataflow.Delta
	kinds  []columnar.Kind
	key    []int
	cols   []*columnar.Gatherer // by column, made when asked for
	ones   bool
}

// list is the rows of a Once arrangement.
func (a *Arrangement) list() *deltaList {
	if a.listed == nil {
		l := &deltaList{kinds: a.layout.Kinds, key: a.layout.Key, ones: true}
		l.deltas = split(a.rows, 1<<onceShift)
		for _, d := range l.deltas {
			l.ones = l.ones && d.Diffs == nil
		}
		l.cols = make([]*columnar.Gatherer, len(l.kinds))
		a.listed = l
	}
	return a.listed
}

// Column is column c of all deltas.
func (l *deltaList) Column(c int) *columnar.Gatherer {
	if l.cols[c] == nil {
		g := new(columnar.Gatherer)
		g.Reset(l.kinds[c], onceShift)
		for _, d := range l.deltas {
			g.Add(d.Cols[c])
		}
		l.cols[c] = g
	}
	return l.cols[c]
}

// prepare makes the columns that a join fetches, so that several goroutines may
// ask for them.
func (l *deltaList) prepare(o JoinOptions, left int, isLeft bool) {
	for _, cols := range [2][]int{o.Out, o.ResidualCols} {
		for _, c := range cols {
			switch {
			case isLeft && c < left:
				l.Column(c)
			case !isLeft && c >= left:
				l.Column(c - left)
			}
		}
	}
}

// Ones reports whether all diffs are 1.
func (l *deltaList) Ones() bool { return l.ones }

// DiffAt is the diff of a row.
func (l *deltaList) DiffAt(addr uint32) dataflow.Diff {
	return l.deltas[addr>>onceShift].Diff(int(addr & (1<<onceShift - 1)))
}

// hashes is the hashes of the keys of delta i, and whether a key column has NULLs.
func (l *deltaList) hashes(i int) (hash []uint64, keys []*columnar.Vec, nulls bool) {
	d := l.deltas[i]
	keys = pick(d.Cols, l.key)
	hash = columnar.GetSlice[uint64](d.N)
	columnar.HashCols(keys, d.N, hash)
	for _, v := range keys {
		nulls = nulls || v.HasNulls()
	}
	return hash, keys, nulls
}

// joinTable is a hash table over the rows of a deltaList: a slot holds the
// first of a chain of entries.
type joinTable struct {
	list  *deltaList
	keys  []*columnar.Gatherer
	exact bool // equal hashes are equal keys
	shift uint
	slots []uint32 // entry + 1
	// Entries.
	hash []uint64
	addr []uint32
	next []uint32 // entry + 1
	// Of a table of keys: the sum of the diffs of each key's rows. Its
	// addresses are the entries themselves.
	counts []dataflow.Diff
}

func newJoinTable(l *deltaList, rows int) *joinTable {
	t := &joinTable{list: l}
	kinds := make([]columnar.Kind, len(l.key))
	for i, c := range l.key {
		kinds[i] = l.kinds[c]
		t.keys = append(t.keys, l.Column(c))
	}
	t.exact = columnar.HashExact(kinds)
	size := bits.Len(uint(rows)) + 1
	t.slots = make([]uint32, 1<<size)
	t.shift = 64 - uint(size)
	t.hash = make([]uint64, 0, rows)
	t.addr = make([]uint32, 0, rows)
	t.next = make([]uint32, 0, rows)
	return t
}

// hashTable is the table of all rows, made once.
func (a *Arrangement) hashTable() *joinTable {
	if a.table != nil {
		return a.table
	}
	l := a.list()
	t := newJoinTable(l, countRows(a.rows))
	for i := range l.deltas {
		hash, _, nulls := l.hashes(i)
		t.exact = t.exact && !nulls
		for r, h := range hash {
			t.insert(h, uint32(i)<<onceShift|uint32(r))
		}
		columnar.PutSlice(hash)
	}
	a.table = t
	return t
}

func (t *joinTable) insert(h uint64, addr uint32) {
	s := h >> t.shift
	t.hash = append(t.hash, h)
	t.addr = append(t.addr, addr)
	t.next = append(t.next, t.slots[s])
	t.slots[s] = uint32(len(t.hash))
}

// newKeyCounts is a table of an arrangement's keys with the sums of their diffs.
func newKeyCounts(a *Arrangement) *joinTable {
	l := a.list()
	t := newJoinTable(l, countRows(a.rows))
	for i, d := range l.deltas {
		hash, keys, nulls := l.hashes(i)
		t.exact = t.exact && !nulls
		for r, h := range hash {
			e := t.slots[h>>t.shift]
			for e != 0 && !(t.hash[e-1] == h && t.equal(keys, r, e-1)) {
				e = t.next[e-1]
			}
			if e == 0 {
				t.insert(h, uint32(i)<<onceShift|uint32(r))
				t.counts = append(t.counts, 0)
				e = uint32(len(t.hash))
			}
			t.counts[e-1] += d.Diff(r)
		}
		columnar.PutSlice(hash)
	}
	return t
}

// equal reports whether entry e has the key at row r of the given columns.
func (t *joinTable) equal(keys []*columnar.Vec, r int, e uint32) bool {
	for c, g := range t.keys {
		if !g.EqualAt(t.addr[e], keys[c], r) {
			return false
		}
	}
	return true
}

// tableProbe enumerates the pairs of the rows of one delta and the entries of a
// table with equal keys.
type tableProbe struct {
	rows  []uint32 // addresses of the probing rows
	addrs []uint32 // addresses of the rows of the table; of a table of keys: entries

	t        *joinTable
	base     uint32
	hash     []uint64
	keys     []*columnar.Vec
	exact    bool
	skipNull bool
	at       int
	entry    uint32 // + 1, to go on with for row at; 0: at its beginning
}

func newTableProbe(t *joinTable, l *deltaList, i int, skipNull bool) *tableProbe {
	p := &tableProbe{t: t, base: uint32(i) << onceShift}
	var nulls bool
	p.hash, p.keys, nulls = l.hashes(i)
	p.exact = t.exact && !nulls
	p.skipNull = skipNull && nulls
	n := min(pairsMax, max(len(p.hash), 64))
	p.rows = columnar.GetSlice[uint32](n)
	p.addrs = columnar.GetSlice[uint32](n)
	return p
}

func (p *tableProbe) close() {
	columnar.PutSlice(p.hash)
	columnar.PutSlice(p.rows)
	columnar.PutSlice(p.addrs)
}

// next finds more pairs; false means that there are none.
func (p *tableProbe) next() bool {
	for p.at < len(p.hash) {
		p.fill()
		if !p.exact {
			p.verify()
		}
		if len(p.rows) > 0 {
			for i, r := range p.rows {
				p.rows[i] = p.base + r
			}
			return true
		}
	}
	return false
}

// fill finds pairs of equal hash.
func (p *tableProbe) fill() {
	t := p.t
	rows, addrs := p.rows[:cap(p.rows)], p.addrs[:cap(p.addrs)]
	k := 0
	for p.at < len(p.hash) {
		h := p.hash[p.at]
		e := p.entry
		if e == 0 {
			if p.skipNull && columnar.AnyNull(p.keys, p.at) {
				p.at++
				continue
			}
			e = t.slots[h>>t.shift]
		}
		for e != 0 && k < len(rows) {
			if t.hash[e-1] == h {
				rows[k] = uint32(p.at)
				addrs[k] = e - 1
				k++
			}
			e = t.next[e-1]
		}
		p.entry = e
		if e != 0 {
			break
		}
		p.at++
		if k == len(rows) {
			break
		}
	}
	p.rows, p.addrs = rows[:k], addrs[:k]
	if t.counts == nil {
		for i, e := range p.addrs {
			p.addrs[i] = t.addr[e]
		}
	}
}

// verify keeps the pairs whose keys are equal.
func (p *tableProbe) verify() {
	if p.t.counts == nil {
		for c, g := range p.t.keys {
			p.rows, p.addrs = g.FilterEqual(p.keys[c], p.rows, p.addrs)
		}
		return
	}
	k := 0
	for i, e := range p.addrs {
		if r := p.rows[i]; p.t.equal(p.keys, int(r), e) {
			p.rows[k], p.addrs[k] = r, e
			k++
		}
	}
	p.rows, p.addrs = p.rows[:k], p.addrs[:k]
}
