package regex

// iteration is the search for a division of a text among the iterations of a
// repeated part: first ends are found that the part's automaton allows, then
// each piece is divided in turn; when that fails, the failing piece is tried
// with another end. Pieces are as long as possible, the first first, or as
// short, if the part prefers that.
type iteration struct {
	m        *matcher
	t, body  *part
	from, to int
	min, max int
	short    bool
	ends     []int // ends[0] is from; ends[k] the end of iteration k
	verified int   // so many pieces have been divided with success
}

func (m *matcher) iterate(t *part, from, to int) bool {
	short := t.sub[0].flags&shorter != 0
	if short && t.min == 0 && from == to {
		return true
	}
	// An empty text is one empty iteration, if that can be, rather than none.
	it := iteration{m: m, t: t, body: t.sub[0], from: from, to: to, min: max(t.min, 1), short: short}
	it.max = to - from
	if it.max > t.max && t.max != dupInf {
		it.max = t.max
	}
	it.max = max(it.max, it.min)
	it.ends = make([]int, it.max+2)
	it.ends[0] = from
	if it.search() {
		return true
	}
	if t.min == 0 && from == to {
		m.clear(it.body)
		return true
	}
	return false
}

// extend finds an end for iteration k: up to limit, or from it on, if short.
func (it *iteration) extend(k, limit int) int {
	prev := it.ends[k-1]
	if !it.short {
		return it.m.longest(it.body.prog, prev, limit)
	}
	// No empty piece unless it is needed to come to the minimum.
	if limit == prev && limit != it.to && (k >= it.min || it.min-k < it.to-limit) {
		limit++
	}
	if k >= it.max { // the last one must reach to the end
		limit = it.to
	}
	return it.m.shortest(it.body.prog, prev, limit, it.to)
}

// first is the limit with which iteration k is tried first.
func (it *iteration) first(k int) int {
	if it.short {
		return it.ends[k-1]
	}
	return it.to
}

func (it *iteration) search() bool {
	k := 1
	limit := it.first(1)
	for k > 0 {
		end := it.extend(k, limit)
		it.ends[k] = end
		if end < 0 {
			k--
		} else {
			it.verified = min(it.verified, k-1)
			switch {
			case end != it.to:
				if k >= it.max {
					k--
					break
				}
				if !it.short && end == it.ends[k-1] && (k >= it.min || it.min-k < it.to-end) {
					break // an empty piece without need
				}
				k++
				limit = it.first(k)
				continue
			case k < it.min:
			default:
				bad := it.verify(k)
				if bad == 0 {
					return true
				}
				k = bad
			}
		}
		k, limit = it.backtrack(k)
	}
	return false
}

// verify divides the pieces up to k and returns the first that cannot be, 0 if all can.
func (it *iteration) verify(k int) int {
	for i := it.verified + 1; i <= k; i++ {
		it.m.clear(it.body)
		if !it.m.dissect(it.body, it.ends[i-1], it.ends[i]) {
			return i
		}
		it.verified = i
	}
	return 0
}

// backtrack finds the last iteration up to k that can have another end.
func (it *iteration) backtrack(k int) (int, int) {
	for ; k > 0; k-- {
		prev, end := it.ends[k-1], it.ends[k]
		if it.short {
			if end >= 0 && end < it.to {
				return k, end + 1
			}
			continue
		}
		if end > prev {
			limit := end - 1
			if limit > prev || (k < it.min && it.min-k >= it.to-prev) {
				return k, limit
			}
		}
	}
	return 0, 0
}
