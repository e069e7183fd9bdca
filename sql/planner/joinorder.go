package planner

import (
	"math"
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// Join ordering is greedy: begin with the smallest leaf, then always add the
// leaf that keeps the result smallest, those that are joined by a key first.
// It takes O(n²) estimates for n leaves. Sizes are guesses from what the
// catalog tells of the collections, keys and the shapes of predicates.

// defaultRows is how many rows a collection is thought to have if nobody knows.
const defaultRows = 1000

// order chooses the order in which leaves are joined.
func (c *cluster) order(rest []joinPred) []int {
	n := len(c.leaves)
	same := span(0, n)
	if n < 3 || !c.o.on("ReorderJoins") {
		return same
	}
	g := &greedy{c: c, rest: make([][]joinPred, n), rows: make([]float64, n), keys: make([][][]int, n), values: map[int]float64{}}
	for i, r := range c.leaves {
		for _, p := range rest {
			if p.leaves.has(i) {
				g.rest[i] = append(g.rest[i], p)
			}
		}
		g.rows[i] = c.o.rows(r)
		g.keys[i] = plan.Keys(r)
	}
	for root, cols := range c.members {
		least := math.Inf(1)
		for _, col := range cols {
			least = math.Min(least, c.o.unfiltered(c.leaves[c.pieces[col]]))
		}
		g.values[root] = least
	}
	order := g.run()
	if !slices.Equal(order, same) {
		c.o.fire("ReorderJoins")
	}
	return order
}

type greedy struct {
	c    *cluster
	rest [][]joinPred // those that refer to a leaf
	rows []float64    // of each leaf
	keys [][][]int    // of each leaf
	// values is how many values the columns of a class may have that join: no
	// more than the smallest collection among them has rows.
	values map[int]float64
}

// run tries the few smallest leaves as the first one and keeps the cheapest order.
func (g *greedy) run() []int {
	starts := span(0, len(g.rows))
	slices.SortStableFunc(starts, func(a, b int) int {
		switch {
		case g.rows[a] < g.rows[b]:
			return -1
		case g.rows[a] > g.rows[b]:
			return 1
		}
		return 0
	})
	var best []int
	bestCost := math.Inf(1)
	for _, s := range starts[:min(len(starts), 4)] {
		order, cost := g.from(s)
		if best == nil || cost < bestCost {
			best, bestCost = order, cost
		}
	}
	// An order that is hardly better is not worth the surprise.
	given := span(0, len(g.rows))
	if cost := g.cost(given); cost <= bestCost*1.01 {
		return given
	}
	return best
}

// from is the greedy order that begins with leaf start, and its cost: the sum
// of the sizes of all intermediate results.
func (g *greedy) from(start int) ([]int, float64) {
	order := []int{start}
	joined := leafSet{}.with(start)
	size, cost := g.rows[start], 0.0
	for len(order) < len(g.rows) {
		next, nextSize, nextLinked := -1, 0.0, false
		for leaf := range g.rows {
			if joined.has(leaf) {
				continue
			}
			s, linked := g.size(joined, size, leaf)
			if next < 0 || (linked && !nextLinked) || (linked == nextLinked && s < nextSize) {
				next, nextSize, nextLinked = leaf, s, linked
			}
		}
		order = append(order, next)
		joined = joined.with(next)
		size = nextSize
		cost += size
	}
	return order, cost
}

// cost is the cost of a given order.
func (g *greedy) cost(order []int) float64 {
	joined := leafSet{}.with(order[0])
	size, cost := g.rows[order[0]], 0.0
	for _, leaf := range order[1:] {
		size, _ = g.size(joined, size, leaf)
		joined = joined.with(leaf)
		cost += size
	}
	return cost
}

// size estimates the rows of the join of what is joined (size rows) with a
// leaf; linked says that there is a predicate between them.
func (g *greedy) size(joined leafSet, size float64, leaf int) (rows float64, linked bool) {
	right := g.rows[leaf]
	rows = size * right
	var cols []int
	distinct := 1.0
	g.c.links(joined, leaf, func(_, col int) {
		cols = append(cols, col-g.c.base[leaf])
		distinct *= g.values[g.c.find(col)]
	})
	keys := len(cols)
	all := joined.with(leaf)
	for _, p := range g.rest[leaf] {
		if !p.leaves.within(all) {
			continue
		}
		linked = true
		if l, r, ok := plan.IsEquality(p.e); ok && g.bridges(l, r, leaf) {
			keys++
			distinct *= math.Min(size, right)
			continue
		}
		rows *= selectivity(p.e)
	}
	if keys == 0 {
		return rows, linked
	}
	for _, k := range g.keys[leaf] {
		if plan.Subset(k, cols) {
			return rows / math.Max(right, 1), true
		}
	}
	// Where neither side is known to be unique, values repeat on both.
	distinct = math.Min(math.Pow(distinct, 0.8), math.Max(size, right))
	return rows / math.Max(distinct, 1), true
}

// unfiltered estimates the rows of r without its filters.
func (o *optimizer) unfiltered(r plan.Rel) float64 {
	switch r := r.(type) {
	case *plan.Filter:
		return o.unfiltered(r.Input)
	case *plan.Project:
		return o.unfiltered(r.Input)
	case *plan.Join:
		if r.Kind == plan.JoinSemi || r.Kind == plan.JoinAnti {
			return o.unfiltered(r.Left)
		}
	}
	return o.rows(r)
}

// bridges reports whether an equality has leaf alone on one of its sides.
func (g *greedy) bridges(l, r expr.Expr, leaf int) bool {
	a, b := g.c.leavesOf(l), g.c.leavesOf(r)
	only := leafSet{}.with(leaf)
	return (a == only) != (b == only) && !(a.has(leaf) && b.has(leaf))
}

// rows estimates how many rows r has, at least one.
func (o *optimizer) rows(r plan.Rel) float64 {
	switch r := r.(type) {
	case *plan.Get:
		if o.opts.Rows != nil {
			if n := o.opts.Rows(r.ID); n >= 0 {
				return math.Max(n, 1)
			}
		}
		return defaultRows
	case *plan.Constant:
		return math.Max(float64(r.Rows.N), 1)
	case *plan.LocalGet:
		return defaultRows
	case *plan.Filter:
		return o.filteredRows(r)
	case *plan.Join:
		return o.joinRows(r)
	case *plan.Aggregate:
		if len(r.GroupBy) == 0 {
			return 1
		}
		return math.Pow(o.rows(r.Input), 0.8)
	case *plan.Distinct:
		return math.Pow(o.rows(r.Input), 0.9)
	case *plan.TopK:
		n := o.rows(r.Input)
		if k, ok := plan.IntConst(r.Limit); ok {
			groups := 1.0
			if len(r.Partition) > 0 {
				groups = math.Pow(n, 0.8)
			}
			return math.Max(math.Min(n, groups*float64(k)), 1)
		}
		return n
	case *plan.SetOp:
		total := 0.0
		for _, in := range r.Inputs {
			total += o.rows(in)
		}
		if r.Kind != plan.Union {
			return o.rows(r.Inputs[0])
		}
		return total
	case *plan.FlatMap:
		return 10 * o.rows(r.Input)
	case *plan.Let:
		return o.rows(r.Body)
	case *plan.Recursive:
		return o.rows(r.Body)
	}
	if in := plan.Input(r); in != nil {
		return o.rows(in)
	}
	return defaultRows
}

func (o *optimizer) filteredRows(r *plan.Filter) float64 {
	n := o.rows(r.Input)
	fixed := plan.FixedColumns(r.Preds)
	for _, k := range plan.Keys(r.Input) {
		if len(fixed) > 0 && plan.Subset(k, fixed) {
			return 1
		}
	}
	for _, p := range r.Preds {
		n *= selectivity(p)
	}
	return math.Max(n, 1)
}

func (o *optimizer) joinRows(r *plan.Join) float64 {
	l, rn := o.rows(r.Left), o.rows(r.Right)
	switch r.Kind {
	case plan.JoinSemi:
		return math.Max(l/2, 1)
	case plan.JoinAnti:
		return math.Max(l/4, 1)
	}
	n := l * rn
	if len(r.On) > 0 {
		nl := plan.Arity(r.Left)
		lcols, rcols := plan.EquiColumns(r.On, nl)
		unique := func(in plan.Rel, cols []int) bool {
			return slices.ContainsFunc(plan.Keys(in), func(k []int) bool { return plan.Subset(k, cols) })
		}
		switch {
		case unique(r.Right, rcols): // each left row has as much of a partner as the filters left
			n = l * math.Min(rn/o.unfiltered(r.Right), 1)
		case unique(r.Left, lcols):
			n = rn * math.Min(l/o.unfiltered(r.Left), 1)
		default:
			n /= math.Max(math.Max(l, rn), 1)
		}
		n = math.Max(n, 1)
	}
	switch r.Kind {
	case plan.JoinLeft:
		n = math.Max(n, l)
	case plan.JoinRight:
		n = math.Max(n, rn)
	case plan.JoinFull:
		n = math.Max(n, l+rn)
	}
	return n
}

// selectivity guesses what part of the rows a predicate keeps.
func selectivity(p expr.Expr) float64 {
	switch p := p.(type) {
	case *expr.Call:
		if p.Fn.Operator {
			switch p.Fn.Name {
			case "=":
				return 0.05
			case "<>":
				return 0.9
			case "<", ">", "<=", ">=":
				return 0.35
			}
		}
	case *expr.InList:
		return math.Min(0.05*float64(len(p.List)), 0.5)
	case *expr.IsNull:
		if p.Not {
			return 0.95
		}
		return 0.05
	case *expr.Not:
		return 1 - selectivity(p.Arg)
	case *expr.Logic:
		s := 1.0
		if p.And {
			for _, a := range p.Args {
				s *= selectivity(a)
			}
			return s
		}
		for _, a := range p.Args {
			s *= 1 - selectivity(a)
		}
		return 1 - s
	}
	return 0.3
}
