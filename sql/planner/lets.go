package planner

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// InlineLet: what is read once, or costs nothing to compute, is put where it is
// read, where other rules see it.
//
//	WITH q AS (SELECT a FROM t) SELECT * FROM q WHERE a > 1  →  SELECT a FROM t WHERE a > 1
func (o *optimizer) cleanLet(r *plan.Let) plan.Rel {
	if !o.on("InlineLet") {
		return r
	}
	uses, looped := countUses(r.Body, r.ID, false)
	free := cheap(r.Value)
	if uses > 1 && !free || looped && !free {
		return r
	}
	o.fire("InlineLet")
	if uses == 0 {
		return r.Body
	}
	return o.inline(r.Body, r.ID, r.Value)
}

// countUses counts the reads of a binding; looped says that one of them is in
// the definition of a recursion, where it would be computed inside of the loop.
func countUses(r plan.Rel, id int, inLoop bool) (uses int, looped bool) {
	switch r := r.(type) {
	case *plan.LocalGet:
		if r.ID == id {
			return 1, inLoop
		}
		return 0, false
	case *plan.Recursive:
		for _, v := range r.Values {
			n, l := countUses(v, id, true)
			uses, looped = uses+n, looped || l
		}
		n, l := countUses(r.Body, id, inLoop)
		return uses + n, looped || l
	}
	plan.Children(r, func(c plan.Rel) {
		n, l := countUses(c, id, inLoop)
		uses, looped = uses+n, looped || l
	})
	return uses, looped
}

// inline replaces the reads of a binding by its value, and cleans on the way up.
func (o *optimizer) inline(r plan.Rel, id int, value plan.Rel) plan.Rel {
	if g, ok := r.(*plan.LocalGet); ok {
		if g.ID == id {
			return value
		}
		return r
	}
	n := plan.MapChildren(r, func(c plan.Rel) plan.Rel { return o.inline(c, id, value) })
	if n == r {
		return r
	}
	return o.node(n)
}

// ShareCommon: a part that occurs more than once is computed once. Parts are
// compared whole, from the largest down; reading a collection, filtering and
// projecting it is not worth sharing.
//
//	(a JOIN b) UNION ALL (a JOIN b)  →  LET l = a JOIN b IN l UNION ALL l
func (o *optimizer) share(r plan.Rel) plan.Rel {
	if !o.on("ShareCommon") || !repeats(r) {
		return r
	}
	s := &sharer{o: o, seen: map[uint64][]plan.Rel{}, counts: map[plan.Rel]int{}, same: map[plan.Rel]plan.Rel{}}
	s.count(r)
	if len(s.common) == 0 {
		return r
	}
	return s.rewrite(r)
}

// lastID is the greatest number of a binding in r.
func lastID(r plan.Rel) int {
	last := 0
	plan.Walk(r, func(n plan.Rel) bool {
		switch n := n.(type) {
		case *plan.Let:
			last = max(last, n.ID)
		case *plan.Recursive:
			last = max(last, slices.Max(n.IDs))
		}
		return true
	})
	return last
}

// repeats reports whether some collection is read twice, without which nothing
// can be common.
func repeats(r plan.Rel) bool {
	seen := make([]plan.ObjectID, 0, 8)
	found := false
	plan.Walk(r, func(n plan.Rel) bool {
		if g, ok := n.(*plan.Get); ok {
			found = found || slices.Contains(seen, g.ID)
			seen = append(seen, g.ID)
		}
		return !found
	})
	return found
}

type sharer struct {
	o      *optimizer
	seen   map[uint64][]plan.Rel
	counts map[plan.Rel]int
	same   map[plan.Rel]plan.Rel // node → the first equal one
	common []plan.Rel            // first ones that occur again
}

// count finds equal nodes. A part of a part that is common already is not
// counted again. Definitions of recursions, and what reads bindings, stay.
func (s *sharer) count(r plan.Rel) {
	if rec, ok := r.(*plan.Recursive); ok {
		s.count(rec.Body)
		return
	}
	if worthSharing(r) {
		h := plan.Hash(r)
		for _, first := range s.seen[h] {
			if plan.Equal(first, r) {
				s.same[r] = first
				if s.counts[first]++; s.counts[first] == 2 {
					s.common = append(s.common, first)
				}
				return
			}
		}
		s.seen[h] = append(s.seen[h], r)
		s.counts[r] = 1
		s.same[r] = r
	}
	plan.Children(r, s.count)
}

// worthSharing reports whether r keeps state or does real work, is
// deterministic, and reads no binding that may be out of scope elsewhere.
func worthSharing(r plan.Rel) bool {
	switch r.(type) {
	case *plan.Join, *plan.Aggregate, *plan.Distinct, *plan.TopK, *plan.Window, *plan.SetOp:
	default:
		return false
	}
	ok := true
	plan.Walk(r, func(n plan.Rel) bool {
		switch n.(type) {
		case *plan.LocalGet, *plan.Recursive, *plan.Let:
			ok = false
		}
		plan.Exprs(n, func(e expr.Expr) { ok = ok && expr.VolatilityOf(e) != expr.Volatile })
		return ok
	})
	return ok
}

// rewrite binds the common parts around the whole plan.
func (s *sharer) rewrite(r plan.Rel) plan.Rel {
	ids := map[plan.Rel]int{}
	for _, c := range s.common {
		s.o.lastID++
		ids[c] = s.o.lastID
	}
	var body func(n plan.Rel) plan.Rel
	body = func(n plan.Rel) plan.Rel {
		if first, ok := s.same[n]; ok && ids[first] > 0 {
			return localGet(ids[first], first)
		}
		return plan.MapChildren(n, body)
	}
	s.o.fire("ShareCommon")
	sort, above := plan.SortedRoot(r)
	if sort != nil {
		r = sort.Input
	}
	out := body(r)
	// A part that contains another one must see its binding: larger ones come
	// further in.
	slices.SortStableFunc(s.common, func(a, b plan.Rel) int { return size(b) - size(a) })
	for _, c := range s.common {
		out = &plan.Let{ID: ids[c], Value: plan.MapChildren(c, body), Body: out}
	}
	if sort == nil {
		return out
	}
	out = plan.WithInput(sort, out)
	if above != nil {
		out = plan.WithInput(above, out)
	}
	return out
}

// size is the number of nodes of r.
func size(r plan.Rel) int {
	n := 0
	plan.Walk(r, func(plan.Rel) bool {
		n++
		return true
	})
	return n
}
