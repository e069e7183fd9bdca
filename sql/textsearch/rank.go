package textsearch

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// DefaultWeights are those of the weights D to A in ranks.
var DefaultWeights = [4]float32{0.1, 0.2, 0.4, 1}

// The ways to take the length of a document into account, as bits of a number.
const (
	normLogLength = 1 << iota
	normLength
	normExtent
	normUnique
	normLogUnique
	normScale
)

// CheckWeights gives weights below 0 their defaults.
func CheckWeights(w [4]float32) ([4]float32, error) {
	for i := range w {
		if !(w[i] >= 0) {
			w[i] = DefaultWeights[i]
		}
		if w[i] > 1 {
			return w, pgerror.New(pgerror.InvalidParameterValue, "weight out of range")
		}
	}
	return w, nil
}

// length is the number of positions; a lexeme without any counts once.
func (v Vector) length() int {
	n := 0
	for i := range v.Len() {
		n += max(v.PosCount(i), 1)
	}
	return n
}

// matches is the range of lexemes that a value matches.
func (v Vector) matches(n *Node) (lo, hi int) {
	lo, found := v.Find(n.Word)
	if !n.Prefix {
		if found {
			return lo, lo + 1
		}
		return lo, lo
	}
	for hi = lo; hi < v.Len() && bytes.HasPrefix(v.Word(hi), n.Word); hi++ {
	}
	return lo, hi
}

// distanceWeight is what two occurrences w places apart are worth.
func distanceWeight(w int) float32 {
	if w > 100 {
		return 1e-30
	}
	return float32(1 / (1.005 + 0.05*math.Exp(float64(float32(w))/1.5-2)))
}

// rankPos are the positions of lexeme i; nowhere says that there are none, for
// which one stands.
func (v Vector) rankPos(i, none int) (pos []Pos, nowhere bool) {
	n := v.PosCount(i)
	if n == 0 {
		return []Pos{Pos(none)}, true
	}
	for k := range n {
		pos = append(pos, v.Pos(i, k))
	}
	return pos, false
}

// rankAnd adds up what pairs of values are worth by their distances.
func rankAnd(w *[4]float32, v Vector, q *Node) float32 {
	values := distinctValues(q)
	if len(values) < 2 {
		return rankOr(w, v, q)
	}
	type found struct {
		pos     []Pos
		nowhere bool
	}
	all := make([]found, len(values))
	res := float32(-1)
	for i, value := range values {
		lo, hi := v.matches(value)
		for e := lo; e < hi; e++ {
			pos, nowhere := v.rankPos(e, maxPos-1)
			all[i] = found{pos, nowhere}
			for _, other := range all[:i] {
				for _, p := range pos {
					for _, o := range other.pos {
						dist := p.At() - o.At()
						if dist < 0 {
							dist = -dist
						}
						if dist == 0 && !nowhere && !other.nowhere {
							continue
						}
						if dist == 0 {
							dist = maxPos
						}
						cur := float32(math.Sqrt(float64(w[p.Weight()] * w[o.Weight()] * distanceWeight(dist))))
						if res < 0 {
							res = cur
						} else {
							res = float32(1 - (1-float64(res))*(1-float64(cur)))
						}
					}
				}
			}
		}
	}
	return res
}

// rankOr adds up the weights of the occurrences, the later ones counting less.
func rankOr(w *[4]float32, v Vector, q *Node) float32 {
	values := distinctValues(q)
	res := float32(0)
	for _, value := range values {
		lo, hi := v.matches(value)
		for e := lo; e < hi; e++ {
			pos, _ := v.rankPos(e, 0)
			sum, best, at := float32(0), float32(-1), 0
			for j, p := range pos {
				weight := w[p.Weight()]
				sum += weight / float32((j+1)*(j+1))
				if weight > best {
					best, at = weight, j
				}
			}
			res = float32(float64(res) + float64(best+sum-best/float32((at+1)*(at+1)))/1.64493406685)
		}
	}
	if len(values) > 0 {
		res /= float32(len(values))
	}
	return res
}

// Rank is ts_rank: how much a document is worth for a query, by the
// frequencies of its lexemes.
func Rank(w [4]float32, v Vector, q *Node, norm int32) float32 {
	if v.Len() == 0 || q == nil {
		return 0
	}
	var res float32
	if q.Op == OpAnd || q.Op == OpPhrase {
		res = rankAnd(&w, v, q)
	} else {
		res = rankOr(&w, v, q)
	}
	if res < 0 {
		res = 1e-20
	}
	if norm&normLogLength != 0 {
		res = float32(float64(res) / (math.Log(float64(v.length()+1)) / math.Log(2)))
	}
	if norm&normLength != 0 {
		res /= float32(v.length())
	}
	if norm&normUnique != 0 {
		res /= float32(v.Len())
	}
	if norm&normLogUnique != 0 {
		res = float32(float64(res) / (math.Log(float64(v.Len()+1)) / math.Log(2)))
	}
	if norm&normScale != 0 {
		res /= res + 1
	}
	return res
}

// occurrence is a position of a lexeme, with the values of the query that it
// matches.
type occurrence struct {
	pos    Pos
	lexeme int
	values []*Node
}

// occurrences are those of all values, in order.
func occurrences(v Vector, q *Node) []occurrence {
	var all []occurrence
	for _, value := range q.values(nil) {
		lo, hi := v.matches(value)
		for e := lo; e < hi; e++ {
			for k := range v.PosCount(e) {
				p := v.Pos(e, k)
				if value.Weights == 0 || value.Weights&(1<<p.Weight()) != 0 {
					all = append(all, occurrence{p, e, []*Node{value}})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b occurrence) int {
		return cmp.Or(cmp.Compare(a.pos.At(), b.pos.At()), cmp.Compare(a.pos.Weight(), b.pos.Weight()), cmp.Compare(a.lexeme, b.lexeme))
	})
	out := all[:0]
	for _, o := range all {
		if n := len(out); n > 0 && out[n-1].pos == o.pos && out[n-1].lexeme == o.lexeme {
			out[n-1].values = append(out[n-1].values, o.values...)
		} else {
			out = append(out, o)
		}
	}
	return out
}

// coverMatcher finds the values that have been seen so far.
type coverMatcher struct {
	seen    map[*Node][]uint16
	reverse bool // positions come from the last on
}

func (m *coverMatcher) add(o occurrence) {
	for _, v := range o.values {
		at := uint16(o.pos.At())
		if s := m.seen[v]; len(s) == 0 || s[len(s)-1] != at {
			m.seen[v] = append(s, at)
		}
	}
}

// Find is where the value has been seen.
func (m *coverMatcher) Find(n *Node, positions bool) (Truth, []uint16) {
	pos := m.seen[n]
	switch {
	case len(pos) == 0:
		return No, nil
	case positions && m.reverse:
		pos = slices.Clone(pos)
		slices.Reverse(pos)
	}
	return Yes, pos
}

// cover is the next shortest part of a document that matches: the occurrences
// from begin to end.
type cover struct{ next, begin, end int }

func (c *cover) find(doc []occurrence, q *Node) bool {
	for ; c.next < len(doc); c.next++ {
		m := coverMatcher{seen: map[*Node][]uint16{}}
		end := c.next
		for ; end < len(doc); end++ {
			if m.add(doc[end]); Execute(q, &m) {
				break
			}
		}
		if end == len(doc) || doc[end].pos.At() == 0 {
			return false
		}
		m = coverMatcher{seen: map[*Node][]uint16{}, reverse: true}
		for begin := end; begin >= c.next; begin-- {
			if m.add(doc[begin]); Execute(q, &m) {
				c.begin, c.end, c.next = begin, end, begin+1
				return true
			}
		}
	}
	return false
}

// RankCover is ts_rank_cd: how much a document is worth for a query, by how
// close together its lexemes are.
func RankCover(w [4]float32, v Vector, q *Node, norm int32) float32 {
	var inverse [4]float64
	for i := range w {
		inverse[i] = 1 / float64(w[i])
	}
	doc := occurrences(v, q)
	if len(doc) == 0 {
		return 0
	}
	rank, distances, last := 0.0, 0.0, 0.0
	covers := 0
	for c := (cover{}); c.find(doc, q); covers++ {
		sum := 0.0
		for _, o := range doc[c.begin : c.end+1] {
			sum += inverse[o.pos.Weight()]
		}
		length := c.end - c.begin
		from, to := doc[c.begin].pos.At(), doc[c.end].pos.At()
		noise := to - from - length
		if noise < 0 {
			noise = length / 2
		}
		rank += float64(length+1) / sum / float64(1+noise)
		middle := float64(from+to) / 2
		if covers > 0 && middle > last {
			distances += 1 / (middle - last)
		}
		last = middle
	}
	if norm&normLogLength != 0 {
		rank /= math.Log(float64(v.length() + 1))
	}
	if norm&normLength != 0 {
		rank /= float64(v.length())
	}
	if norm&normExtent != 0 && covers > 0 && distances > 0 {
		rank /= float64(covers) / distances
	}
	if norm&normUnique != 0 {
		rank /= float64(v.Len())
	}
	if norm&normLogUnique != 0 {
		rank /= math.Log(float64(v.Len()+1)) / math.Log(2)
	}
	if norm&normScale != 0 {
		rank /= rank + 1
	}
	return float32(rank)
}
