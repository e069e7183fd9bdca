package planner

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// PruneColumns: columns that nobody reads are not computed, and not kept in the
// state of operators. One pass from the root; a pruned node has exactly the
// columns asked for, in their order.
//
//	SELECT a FROM (SELECT a, b, count(*) FROM t GROUP BY a, b)  →  the count goes
//
// With it, for what it finds out:
//
// RemoveLeftJoin: a left join that adds neither columns nor rows goes.
//
//	SELECT a.x FROM a LEFT JOIN b ON a.k = b.id  →  SELECT x FROM a        (b.id is unique)

// columnSet is a set of columns of a node.
type columnSet []bool

func allColumns(n int) columnSet {
	s := make(columnSet, n)
	for i := range s {
		s[i] = true
	}
	return s
}

func (s columnSet) all() bool { return !slices.Contains(s, false) }

// add adds the columns of expressions.
func (s columnSet) add(es ...expr.Expr) {
	for _, e := range es {
		if e != nil {
			expr.Columns(e, func(c *expr.Column) { s[c.Index] = true })
		}
	}
}

// rank maps old columns to new ones: the position among those in s.
func (s columnSet) rank() []int {
	at := make([]int, len(s))
	n := 0
	for i, ok := range s {
		at[i] = n
		if ok {
			n++
		}
	}
	return at
}

// pruner prunes one plan.
type pruner struct {
	o    *optimizer
	lets map[int]*letUse
}

// letUse is what is read of a Let binding, and the projections that read it.
type letUse struct {
	need  columnSet
	reads []*plan.Project
	keep  bool // a binding of a recursion: all columns stay
}

// prune prunes a plan whose columns are all wanted.
func (o *optimizer) prune(r plan.Rel) plan.Rel {
	if !o.on("PruneColumns") {
		return r
	}
	p := &pruner{o: o}
	return p.rel(r, allColumns(plan.Arity(r)))
}

// exact is r, which has the columns have, with only those of need.
func exact(r plan.Rel, have, need columnSet) plan.Rel {
	at := have.rank()
	pick := make([]int, 0, len(need))
	for i, ok := range need {
		if ok {
			pick = append(pick, at[i])
		}
	}
	return project(r, pick)
}

func remapTo(es []expr.Expr, at []int) []expr.Expr {
	return remapAll(es, func(i int) int { return at[i] })
}

func remapList(cs, at []int) []int {
	out := make([]int, len(cs))
	for i, c := range cs {
		out[i] = at[c]
	}
	return out
}

// rel prunes r to the columns of need.
func (p *pruner) rel(r plan.Rel, need columnSet) plan.Rel {
	switch r := r.(type) {
	case *plan.Get:
		return p.get(r, need)
	case *plan.Constant:
		return p.constant(r, need)
	case *plan.Project:
		return p.project(r, need)
	case *plan.Filter:
		in := slices.Clone(need)
		in.add(r.Preds...)
		c := p.rel(r.Input, in)
		if c == r.Input && in.all() {
			return exact(r, in, need)
		}
		return exact(&plan.Filter{Input: c, Preds: remapTo(r.Preds, in.rank())}, in, need)
	case *plan.Join:
		return p.join(r, need)
	case *plan.Aggregate:
		return p.aggregate(r, need)
	case *plan.TopK:
		return p.topK(r, need)
	case *plan.Window:
		return p.window(r, need)
	case *plan.SetOp:
		return p.setOp(r, need)
	case *plan.FlatMap:
		return p.flatMap(r, need)
	case *plan.Let:
		return p.let(r, need)
	case *plan.LocalGet:
		return p.localGet(r, need)
	case *plan.Recursive:
		return p.recursive(r, need)
	case *plan.Assert:
		in := slices.Clone(need)
		for _, k := range r.Key {
			in[k] = true
		}
		c := p.rel(r.Input, in)
		return exact(&plan.Assert{Input: c, Key: remapList(r.Key, in.rank())}, in, need)
	case *plan.Sort:
		c := *r
		c.Input = p.rel(r.Input, allColumns(plan.Arity(r.Input)))
		if c.Input == r.Input {
			return exact(r, allColumns(len(need)), need)
		}
		return exact(&c, allColumns(len(need)), need)
	}
	// Distinct, and whatever else depends on whole rows.
	all := allColumns(len(need))
	out := plan.MapChildren(r, func(c plan.Rel) plan.Rel { return p.rel(c, allColumns(plan.Arity(c))) })
	return exact(out, all, need)
}

func (p *pruner) get(r *plan.Get, need columnSet) plan.Rel {
	if need.all() {
		return r
	}
	p.o.pruned()
	c := *r
	c.Cols, c.Keys = nil, nil
	c.Proj = make([]int, 0, len(r.Cols))
	for i, ok := range need {
		if ok {
			c.Cols = append(c.Cols, r.Cols[i])
			c.Proj = append(c.Proj, r.Source(i))
		}
	}
	at := need.rank()
	for _, k := range r.Keys {
		if !slices.ContainsFunc(k, func(i int) bool { return !need[i] }) {
			c.Keys = append(c.Keys, remapList(k, at))
		}
	}
	c.Refs = nil
	for _, f := range r.Refs {
		if !slices.ContainsFunc(f.Cols, func(i int) bool { return !need[i] }) {
			f.Cols = remapList(f.Cols, at)
			c.Refs = append(c.Refs, f)
		}
	}
	return &c
}

func (o *optimizer) pruned() { o.note("PruneColumns") }

func (p *pruner) constant(r *plan.Constant, need columnSet) plan.Rel {
	if need.all() {
		return r
	}
	p.o.pruned()
	c := &plan.Constant{Diffs: r.Diffs}
	c.Rows.N = r.Rows.N
	for i, ok := range need {
		if ok {
			c.Cols = append(c.Cols, r.Cols[i])
			c.Rows.Cols = append(c.Rows.Cols, r.Rows.Cols[i])
		}
	}
	return c
}

func (p *pruner) project(r *plan.Project, need columnSet) plan.Rel {
	in := make(columnSet, plan.Arity(r.Input))
	for i, ok := range need {
		if ok {
			in.add(r.Exprs[i])
		}
	}
	c := p.rel(r.Input, in)
	if c == r.Input && in.all() && need.all() {
		return r
	}
	if !need.all() {
		p.o.pruned()
	}
	at := in.rank()
	out := &plan.Project{Input: c, Exprs: make([]expr.Expr, 0, len(need)), Cols: make([]plan.Column, 0, len(need))}
	for i, ok := range need {
		if ok {
			out.Exprs = append(out.Exprs, expr.Remap(r.Exprs[i], func(i int) int { return at[i] }))
			out.Cols = append(out.Cols, r.Cols[i])
		}
	}
	return out
}

func (p *pruner) join(r *plan.Join, need columnSet) plan.Rel {
	nl, nr := plan.Arity(r.Left), plan.Arity(r.Right)
	semi := r.Kind == plan.JoinSemi || r.Kind == plan.JoinAnti
	if r.Kind == plan.JoinLeft && !slices.Contains(need[nl:], true) && p.removable(r, nl) {
		return p.rel(r.Left, need[:nl])
	}
	if out := p.o.withoutParent(r, need); out != nil {
		return p.rel(out, need)
	}
	in := make(columnSet, nl+nr)
	copy(in, need)
	in.add(r.On...)
	l, rr := p.rel(r.Left, in[:nl]), p.rel(r.Right, in[nl:])
	have := in
	if semi {
		have = in[:nl]
	}
	if l == r.Left && rr == r.Right && in.all() {
		return exact(r, have, need)
	}
	c := &plan.Join{Kind: r.Kind, Left: l, Right: rr, On: remapTo(r.On, in.rank())}
	return exact(c, have, need)
}

// removable reports whether a left join gives each left row exactly once.
func (p *pruner) removable(r *plan.Join, nl int) bool {
	if !p.o.on("RemoveLeftJoin") || !p.o.uniqueBy(r, nl) {
		return false
	}
	p.o.fire("RemoveLeftJoin")
	return true
}

// uniqueBy reports whether a left row has at most one partner: the right side is
// unique by the columns that ON equates.
func (o *optimizer) uniqueBy(r *plan.Join, nl int) bool {
	var cols []int
	for _, e := range r.On {
		a, b, ok := plan.IsEquality(e)
		if !ok {
			a, b, ok = plan.IsSame(e)
		}
		if !ok || expr.VolatilityOf(e) == expr.Volatile {
			continue
		}
		for _, side := range [][2]expr.Expr{{a, b}, {b, a}} {
			c, ok := side[0].(*expr.Column)
			if ok && c.Index >= nl && usesOnly(side[1], func(i int) bool { return i < nl }) {
				cols = append(cols, c.Index-nl)
			}
		}
	}
	return slices.ContainsFunc(plan.Keys(r.Right), func(k []int) bool { return plan.Subset(k, cols) })
}

func (p *pruner) aggregate(r *plan.Aggregate, need columnSet) plan.Rel {
	g := len(r.GroupBy)
	in := make(columnSet, plan.Arity(r.Input))
	in.add(r.GroupBy...)
	have := make(columnSet, len(r.Cols))
	for i := range have {
		have[i] = i < g || need[i]
		if i >= g && need[i] {
			a := &r.Aggs[i-g]
			in.add(a.Args...)
			in.add(a.Filter)
			for _, s := range a.OrderBy {
				in.add(s.Expr)
			}
		}
	}
	c := p.rel(r.Input, in)
	if c == r.Input && in.all() && have.all() {
		return exact(r, have, need)
	}
	if !have.all() {
		p.o.pruned()
	}
	at := in.rank()
	a := *plan.MapExprs(r, func(e expr.Expr) expr.Expr {
		if !usesOnly(e, func(i int) bool { return in[i] }) {
			return e // of an aggregate that goes
		}
		return expr.Remap(e, func(i int) int { return at[i] })
	}).(*plan.Aggregate)
	aggs := a.Aggs
	a.Input, a.Aggs, a.Cols = c, nil, nil
	for i, ok := range have {
		if !ok {
			continue
		}
		a.Cols = append(a.Cols, r.Cols[i])
		if i >= g {
			a.Aggs = append(a.Aggs, aggs[i-g])
		}
	}
	return exact(&a, have, need)
}

func (p *pruner) topK(r *plan.TopK, need columnSet) plan.Rel {
	n := plan.Arity(r.Input)
	in := slices.Clone(need[:n])
	for _, k := range r.Partition {
		in[k] = true
	}
	for _, k := range r.Order {
		in[k.Col] = true
	}
	c := *r
	c.Input = p.rel(r.Input, in)
	have := in
	if r.RowNumber {
		c.RowNumber = need[n]
		have = append(slices.Clone(in), need[n])
	}
	if c.Input == r.Input && have.all() {
		return exact(r, have, need)
	}
	at := in.rank()
	c.Partition = remapList(r.Partition, at)
	c.Order = slices.Clone(r.Order)
	for i := range c.Order {
		c.Order[i].Col = at[c.Order[i].Col]
	}
	return exact(&c, have, need)
}

func (p *pruner) window(r *plan.Window, need columnSet) plan.Rel {
	n := plan.Arity(r.Input)
	if !slices.Contains(need[n:], true) {
		return p.rel(r.Input, need[:n])
	}
	in := slices.Clone(need[:n])
	in.add(r.Partition...)
	for _, s := range r.Order {
		in.add(s.Expr)
	}
	for i := range r.Calls {
		if !need[n+i] {
			continue
		}
		c := &r.Calls[i]
		in.add(c.Args...)
		in.add(c.Filter, c.Frame.Start.Offset, c.Frame.End.Offset)
	}
	c := p.rel(r.Input, in)
	have := append(slices.Clone(in), need[n:]...)
	if c == r.Input && have.all() {
		return exact(r, have, need)
	}
	p.o.pruned()
	at := in.rank()
	w := *plan.MapExprs(r, func(e expr.Expr) expr.Expr {
		if !usesOnly(e, func(i int) bool { return in[i] }) {
			return e // of a call that goes
		}
		return expr.Remap(e, func(i int) int { return at[i] })
	}).(*plan.Window)
	calls := w.Calls
	w.Input, w.Calls, w.Cols = c, nil, nil
	for i, ok := range have {
		if !ok {
			continue
		}
		w.Cols = append(w.Cols, r.Cols[i])
		if i >= n {
			w.Calls = append(w.Calls, calls[i-n])
		}
	}
	return exact(&w, have, need)
}

func (p *pruner) setOp(r *plan.SetOp, need columnSet) plan.Rel {
	if r.Kind == plan.Union && r.All {
		if need.all() {
			return plan.MapChildren(r, func(c plan.Rel) plan.Rel { return p.rel(c, need) })
		}
		p.o.pruned()
		c := *r
		c.Cols = nil
		for i, ok := range need {
			if ok {
				c.Cols = append(c.Cols, r.Cols[i])
			}
		}
		c.Inputs = make([]plan.Rel, len(r.Inputs))
		for i, in := range r.Inputs {
			c.Inputs[i] = p.rel(in, need)
		}
		return &c
	}
	all := allColumns(len(need))
	out := plan.MapChildren(r, func(c plan.Rel) plan.Rel { return p.rel(c, all) })
	return exact(out, all, need)
}

func (p *pruner) flatMap(r *plan.FlatMap, need columnSet) plan.Rel {
	n := plan.Arity(r.Input)
	in := slices.Clone(need[:n])
	in.add(r.Args...)
	c := p.rel(r.Input, in)
	have := append(slices.Clone(in), allColumns(len(need)-n)...)
	if c == r.Input && in.all() {
		return exact(r, have, need)
	}
	f := *r
	f.Input, f.Args, f.Cols = c, remapTo(r.Args, in.rank()), nil
	for i, ok := range have {
		if ok {
			f.Cols = append(f.Cols, r.Cols[i])
		}
	}
	return exact(&f, have, need)
}

// let prunes the body first, to learn what it reads of the value.
func (p *pruner) let(r *plan.Let, need columnSet) plan.Rel {
	if p.lets == nil {
		p.lets = map[int]*letUse{}
	}
	n := plan.Arity(r.Value)
	use := &letUse{need: make(columnSet, n)}
	p.lets[r.ID] = use
	body := p.rel(r.Body, need)
	if len(use.reads) == 0 {
		return body
	}
	value := p.rel(r.Value, use.need)
	if !use.need.all() {
		p.o.pruned()
	}
	at := use.need.rank()
	g := localGet(r.ID, value)
	for _, read := range use.reads { // each was made by localGet, below, for this
		read.Input = g
		read.Exprs = remapTo(read.Exprs, at)
	}
	return &plan.Let{ID: r.ID, Value: value, Body: body}
}

// localGet reads columns of a binding through a projection, which let completes.
func (p *pruner) localGet(r *plan.LocalGet, need columnSet) plan.Rel {
	use := p.lets[r.ID]
	if use == nil || use.keep {
		return exact(r, allColumns(len(need)), need)
	}
	out := &plan.Project{Input: r}
	for i, ok := range need {
		if ok {
			use.need[i] = true
			out.Exprs = append(out.Exprs, plan.RefTo(r.Cols, i))
			out.Cols = append(out.Cols, r.Cols[i])
		}
	}
	use.reads = append(use.reads, out)
	return out
}

func (p *pruner) recursive(r *plan.Recursive, need columnSet) plan.Rel {
	if p.lets == nil {
		p.lets = map[int]*letUse{}
	}
	for _, id := range r.IDs {
		p.lets[id] = &letUse{keep: true}
	}
	c := *r
	c.Values = make([]plan.Rel, len(r.Values))
	for i, v := range r.Values {
		c.Values[i] = p.rel(v, allColumns(plan.Arity(v)))
	}
	c.Body = p.rel(r.Body, need)
	return &c
}
