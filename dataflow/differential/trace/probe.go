package trace

import (
	"github.com/streamdb/streamdb/columnar"
)

// Probe is keys to look up: rows sorted by the hash of their key. Rows of equal
// hash stand together, but need not have equal keys, nor be distinct.
type Probe struct {
	layout *Layout
	keys   []*columnar.Vec
	exact  bool     // equal hashes are equal keys, as far as the probes go
	rows   []uint32 // the rows that take part; nil: all
	uniq   []uint64 // distinct hashes
	ends   []uint32 // uniq[i] belongs to rows ends[i-1] to ends[i]; nil: one each
}

// NewProbe prepares keys (the key columns, in the order of l.Key) with their
// hashes, ascending, for lookups in collections of layout l. With skipNull a key
// with a NULL in it matches nothing.
func NewProbe(l *Layout, keys []*columnar.Vec, hash []uint64, skipNull bool) *Probe {
	p := &Probe{layout: l, keys: keys, exact: l.exact}
	nulls := false
	for _, v := range keys {
		nulls = nulls || v.HasNulls()
	}
	if nulls {
		p.exact = false
		if skipNull {
			hash = p.dropNulls(hash)
		}
	}
	for i := 1; i < len(hash); i++ {
		if hash[i] == hash[i-1] {
			p.runs(hash)
			return p
		}
	}
	p.uniq = hash
	return p
}

// dropNulls leaves out the rows with a NULL.
func (p *Probe) dropNulls(hash []uint64) []uint64 {
	out := make([]uint64, 0, len(hash))
	p.rows = make([]uint32, 0, len(hash))
	for i, h := range hash {
		if !columnar.AnyNull(p.keys, i) {
			out = append(out, h)
			p.rows = append(p.rows, uint32(i))
		}
	}
	p.exact = p.layout.exact
	return out
}

// runs lists the distinct hashes.
func (p *Probe) runs(hash []uint64) {
	p.uniq = make([]uint64, 0, len(hash))
	p.ends = make([]uint32, 0, len(hash))
	for i, h := range hash {
		if i+1 == len(hash) || hash[i+1] != h {
			p.uniq = append(p.uniq, h)
			p.ends = append(p.ends, uint32(i+1))
		}
	}
}

// Matcher enumerates the pairs of a probe and a row of a batch with equal keys,
// in bounded portions.
type Matcher struct {
	// Probe and Row are the pairs that Next found: rows of the probe keys and
	// of the batch.
	Probe, Row []uint32

	p      *Probe
	b      *Batch
	lo, hi []uint32             // rows of each uniq
	gs     []*columnar.Gatherer // key columns of b, if they must be compared
	at     int                  // index into uniq
	row    uint32               // next row of it,
	probe  uint32               // and next probe for that row
}

// NewMatcher makes a matcher for the probes; Start then says where to look.
// Close gives its buffers back.
func NewMatcher(p *Probe) *Matcher {
	n := len(p.uniq)
	m := &Matcher{p: p}
	m.lo = columnar.GetSlice[uint32](n)
	m.hi = columnar.GetSlice[uint32](n)
	return m
}

// Close gives the buffers back, Probe and Row among them.
func (m *Matcher) Close() {
	columnar.PutSlice(m.lo)
	columnar.PutSlice(m.hi)
	columnar.PutSlice(m.Probe)
	columnar.PutSlice(m.Row)
	*m = Matcher{}
}

// Start begins with a batch.
func (m *Matcher) Start(b *Batch) {
	m.b = b
	m.at = 0
	b.Locate(m.p.uniq, m.lo, m.hi)
	m.enter()
	m.gs = m.gs[:0]
	if m.p.exact && b.exact {
		return
	}
	for _, c := range b.layout.Key {
		m.gs = append(m.gs, b.Column(c))
	}
}

// enter goes to the first pair of uniq[at].
func (m *Matcher) enter() {
	if m.at == len(m.p.uniq) {
		return
	}
	m.row = m.lo[m.at]
	m.probe, _ = m.p.span(m.at)
}

// span is the probes of uniq[i].
func (p *Probe) span(i int) (lo, hi uint32) {
	if p.ends == nil {
		return uint32(i), uint32(i + 1)
	}
	if i > 0 {
		lo = p.ends[i-1]
	}
	return lo, p.ends[i]
}

// Next finds up to max more pairs; false means that there are no more.
func (m *Matcher) Next(max int) bool {
	if cap(m.Probe) < max {
		columnar.PutSlice(m.Probe)
		columnar.PutSlice(m.Row)
		m.Probe = columnar.GetSlice[uint32](max)
		m.Row = columnar.GetSlice[uint32](max)
	}
	for m.at < len(m.p.uniq) {
		m.fill(max)
		if m.p.rows != nil {
			for i, x := range m.Probe {
				m.Probe[i] = m.p.rows[x]
			}
		}
		for c := range m.gs {
			m.Probe, m.Row = m.gs[c].FilterEqual(m.p.keys[c], m.Probe, m.Row)
		}
		if len(m.Probe) > 0 {
			return true
		}
	}
	return false
}

// fill enumerates up to max pairs of equal hash.
func (m *Matcher) fill(max int) {
	probe, row := m.Probe[:max], m.Row[:max]
	k := 0
	for m.at < len(m.p.uniq) {
		hi := m.hi[m.at]
		if m.row >= hi {
			m.at++
			m.enter()
			continue
		}
		if k == max {
			break
		}
		plo, phi := m.p.span(m.at)
		if phi-plo == 1 {
			for k < max && m.row < hi {
				probe[k], row[k] = plo, m.row
				k++
				m.row++
			}
			continue
		}
		for k < max && m.row < hi {
			for k < max && m.probe < phi {
				probe[k], row[k] = m.probe, m.row
				k++
				m.probe++
			}
			if m.probe == phi {
				m.probe = plo
				m.row++
			}
		}
	}
	m.Probe, m.Row = probe[:k], row[:k]
}
