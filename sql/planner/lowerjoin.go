package planner

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// join lowers a join whose sides do not refer to each other.
func (lo *lowerer) join(j *plan.Join, d *domain, depth int) lowered {
	l := lo.rel(j.Left, d, depth)
	r := lo.rel(j.Right, d, depth)
	if d == nil {
		if l.rel == j.Left && r.rel == j.Right {
			return lowered{rel: j}
		}
		c := *j
		c.Left, c.Right = l.rel, r.rel
		return lowered{rel: &c}
	}
	// A side whose rows survive without a partner must know its domain row, and
	// some side must.
	switch j.Kind {
	case plan.JoinLeft, plan.JoinSemi, plan.JoinAnti:
		l = l.ensure(d)
	case plan.JoinRight:
		r = r.ensure(d)
	case plan.JoinFull:
		l, r = l.ensure(d), r.ensure(d)
	default:
		if !l.correlated && !r.correlated {
			l = l.ensure(d)
		}
	}
	nl, nr, k := plan.Arity(j.Left), plan.Arity(j.Right), len(d.cols)
	widthL := nl
	if l.correlated {
		widthL += k
	}
	on := lo.onOver(j.On, d, depth, nl, widthL, l.correlated, nr)
	if l.correlated && r.correlated {
		on = append(on, sameDomain(d, nl, widthL+nr, l.plain, r.plain)...)
	}
	out := lowered{
		rel:        &plan.Join{Kind: j.Kind, Left: l.rel, Right: r.rel, On: on},
		correlated: true,
	}
	if j.Kind == plan.JoinSemi || j.Kind == plan.JoinAnti {
		out.plain = l.plain
		return out
	}
	// Columns: left, [domain], right, [domain] → left, right, domain.
	out.plain = l.plain
	domAt := nl
	if !l.correlated || j.Kind == plan.JoinRight {
		domAt, out.plain = widthL+nr, r.plain
	}
	pick := append(append(span(0, nl), span(widthL, widthL+nr)...), span(domAt, domAt+k)...)
	if j.Kind == plan.JoinFull {
		out.rel, out.plain = fullDomain(out.rel, d, pick, nl, widthL+nr), make([]bool, k)
		return out
	}
	out.rel = project(out.rel, pick)
	return out
}

// onOver is a join condition over the lowered sides: the right's columns begin
// at widthL, and outer columns read the domain's columns of the left, if it has
// them, else of the right.
func (lo *lowerer) onOver(on []expr.Expr, d *domain, depth, nl, widthL int, leftDomain bool, nr int) []expr.Expr {
	out := make([]expr.Expr, 0, len(on))
	base := widthL + nr
	if leftDomain {
		base = nl
	}
	for _, p := range conjuncts(on) {
		p = expr.Remap(p, func(i int) int {
			if i >= nl {
				return i + widthL - nl
			}
			return i
		})
		out = append(out, lo.resolve(p, d, base, depth))
	}
	return out
}

// fullDomain takes the domain's columns of a full join from whichever side is there.
func fullDomain(j plan.Rel, d *domain, pick []int, l, r int) plan.Rel {
	cols := j.Columns()
	n := len(pick) - len(d.cols)
	p := &plan.Project{Input: j}
	for _, c := range pick[:n] {
		p.Exprs, p.Cols = append(p.Exprs, plan.RefTo(cols, c)), append(p.Cols, cols[c])
	}
	for i, c := range d.cols {
		p.Exprs = append(p.Exprs, &expr.Coalesce{
			Args: []expr.Expr{plan.RefTo(cols, l+i), plan.RefTo(cols, r+i)}, Typ: c.Type,
		})
	}
	p.Cols = append(p.Cols, d.cols...)
	return p
}

// lateral lowers a join whose right side refers to the left's columns.
func (lo *lowerer) lateral(j *plan.Join, d *domain, depth int) lowered {
	j = withoutOrder(j)
	if out := lo.floatTop(j, depth); out != nil {
		return lo.rel(out, d, depth)
	}
	if out := lo.pullOn(j, depth); out != nil {
		return lo.rel(out, d, depth)
	}
	if !lo.refersTo(j.Right, depth, depth+1) {
		c := *j
		c.Lateral = false
		c.Right = mapOuter(j.Right, 0, func(c *expr.OuterColumn, _ int) expr.Expr { return atDepth(c, c.Depth-1) })
		return lo.rel(&c, d, depth)
	}
	l := lo.rel(j.Left, d, depth)
	found := map[ref]int{}
	lo.refs(j.Right, depth+1, found)
	outer := slices.ContainsFunc(j.On, hasOuter)
	for x := range found {
		outer = outer || x.scope < depth
	}
	if outer {
		l = l.ensure(d)
	}
	nl := plan.Arity(j.Left)
	left, bindLeft := lo.share(l.rel)
	inner := domainOf(left, nl, found, d)
	var bindDomain func(plan.Rel) plan.Rel
	inner.rel, bindDomain = lo.share(inner.rel)
	out := lo.apply(j, left, l, inner, d, depth)
	out.rel = bindLeft(bindDomain(out.rel))
	return out
}

// withoutOrder drops what does not matter to whether the right side of a semi
// or anti join has rows: DISTINCT, ORDER BY, LIMIT 1.
func withoutOrder(j *plan.Join) *plan.Join {
	if j.Kind != plan.JoinSemi && j.Kind != plan.JoinAnti {
		return j
	}
	right := j.Right
	switch r := right.(type) {
	case *plan.Distinct:
		right = r.Input
	case *plan.Sort:
		if r.Limit == nil && r.Offset == nil {
			right = r.Input
		}
	case *plan.TopK:
		n, ok := plan.IntConst(r.Limit)
		if r.Offset == nil && len(j.On) == 0 && (r.Limit == nil || ok && n > 0) {
			right = r.Input
		}
	}
	if right == j.Right {
		return j
	}
	c := *j
	c.Right = right
	return withoutOrder(&c)
}

// refersTo reports whether r, inside depth scopes, refers to the columns of one scope.
func (lo *lowerer) refersTo(r plan.Rel, scope, depth int) bool {
	found := map[ref]int{}
	lo.refs(r, depth, found)
	for x := range found {
		if x.scope == scope {
			return true
		}
	}
	return false
}

// share makes a relation that is to be read twice: itself if that is cheap,
// else a LocalGet; bind puts the Let around the readers.
func (lo *lowerer) share(r plan.Rel) (shared plan.Rel, bind func(plan.Rel) plan.Rel) {
	if cheap(r) {
		return r, func(body plan.Rel) plan.Rel { return body }
	}
	id := lo.newID()
	return localGet(id, r), func(body plan.Rel) plan.Rel { return &plan.Let{ID: id, Value: r, Body: body} }
}

// cheap reports whether reading r twice costs no more than sharing it.
func cheap(r plan.Rel) bool {
	switch r := r.(type) {
	case *plan.Get, *plan.LocalGet, *plan.Constant:
		return true
	case *plan.Project:
		for _, e := range r.Exprs {
			if _, ok := e.(*expr.Column); !ok {
				return false
			}
		}
		return cheap(r.Input)
	}
	return false
}

// localGet reads the binding id of a value.
func localGet(id int, value plan.Rel) *plan.LocalGet {
	return &plan.LocalGet{ID: id, Cols: value.Columns(), Keys: plan.Keys(value), AppendOnly: plan.AppendOnly(value)}
}

// domainOf is the distinct combinations of the columns of left (nl columns of
// its own, then those of d) that the right side refers to.
func domainOf(left plan.Rel, nl int, found map[ref]int, d *domain) *domain {
	inner := &domain{of: make(map[ref]int, len(found))}
	for x := range found {
		inner.refs = append(inner.refs, x)
	}
	slices.SortFunc(inner.refs, func(a, b ref) int {
		if a.scope != b.scope {
			return b.scope - a.scope
		}
		return a.index - b.index
	})
	cols := left.Columns()
	p := &plan.Project{Input: left}
	refs := inner.refs
	inner.refs = nil
	var pick []int
	add := func(x ref, e expr.Expr, c plan.Column) {
		inner.of[x] = len(inner.refs)
		inner.refs = append(inner.refs, x)
		p.Exprs, p.Cols = append(p.Exprs, e), append(p.Cols, c)
	}
	for _, x := range refs {
		at := leftColumn(x, nl, d)
		pick = append(pick, at)
		e := plan.RefTo(cols, at)
		add(x, e, cols[at])
		if !plan.BitEqual(e.Typ) {
			x.image = true
			add(x, plan.Image(e), plan.Column{Name: cols[at].Name, Type: types.Bytea, NotNull: cols[at].NotNull})
		}
	}
	inner.rel, inner.cols = projection(left, p.Exprs, p.Cols), p.Cols
	for _, k := range plan.Keys(left) {
		if plan.Subset(k, pick) {
			return inner
		}
	}
	inner.rel = &plan.Distinct{Input: inner.rel}
	return inner
}

// leftColumn is where the left side of a lateral join (nl columns of its own,
// then those of d) has an outer column of the right side.
func leftColumn(x ref, nl int, d *domain) int {
	if d != nil {
		if at, ok := d.of[x]; ok {
			return nl + at
		}
	}
	return x.index
}

// apply joins the lowered right side of a lateral join back to the left.
func (lo *lowerer) apply(j *plan.Join, left plan.Rel, l lowered, inner, d *domain, depth int) lowered {
	nl, nr := plan.Arity(j.Left), plan.Arity(j.Right)
	widthL := plan.Arity(left)
	kind := j.Kind
	var r lowered
	agg, scalar := j.Right.(*plan.Aggregate)
	scalar = scalar && kind == plan.JoinInner && len(agg.GroupBy) == 0
	if scalar {
		// Groups that are empty have no row; the join makes it.
		r = lo.grouped(agg, inner, depth+1)
		kind = plan.JoinLeft
	} else {
		r = lo.rel(j.Right, inner, depth+1).ensure(inner)
	}
	on := lo.onOver(j.On, d, depth, nl, widthL, l.correlated, nr)
	if scalar && len(on) > 0 {
		on = nil // applied below, over what the empty groups give
	}
	for i, x := range inner.refs {
		if x.image {
			continue
		}
		c := inner.cols[i]
		a := &expr.Column{Index: leftColumn(x, nl, d), Typ: c.Type, Name: c.Name}
		b := &expr.Column{Index: widthL + nr + i, Typ: c.Type, Name: c.Name}
		if c.NotNull || r.plain[i] {
			on = append(on, equal(a, b))
		} else {
			on = append(on, plan.Same(a, b))
		}
	}
	out := lowered{
		rel:        &plan.Join{Kind: kind, Left: left, Right: r.rel, On: on},
		correlated: l.correlated,
		plain:      l.plain,
	}
	if kind == plan.JoinSemi || kind == plan.JoinAnti {
		return out
	}
	out.rel = project(out.rel, append(append(span(0, nl), span(widthL, widthL+nr)...), span(nl, widthL)...))
	if scalar {
		out.rel = emptyGroups(out.rel, agg, nl)
		preds := make([]expr.Expr, 0, len(j.On))
		for _, p := range conjuncts(j.On) {
			preds = append(preds, lo.resolve(p, d, nl+nr, depth))
		}
		out.rel = filter(out.rel, preds...)
	}
	return out
}

// floatTop moves projections and filters from the top of an inner lateral
// join's right side above the join, where they see the left's columns directly:
//
//	L, LATERAL (SELECT f(r, l) FROM R WHERE …)  →  SELECT l, f(r, l) FROM L, LATERAL R
//
// It does so only if the projection is correlated, or if what remains is an
// aggregate without groups, whose empty groups apply then handles.
func (lo *lowerer) floatTop(j *plan.Join, depth int) plan.Rel {
	if j.Kind == plan.JoinLeft && len(j.On) == 0 && plan.ExactlyOneRow(j.Right) {
		c := *j
		c.Kind = plan.JoinInner
		return &c
	}
	if j.Kind != plan.JoinInner {
		return nil
	}
	nl := plan.Arity(j.Left)
	switch top := j.Right.(type) {
	case *plan.Project:
		own := slices.ContainsFunc(top.Exprs, hasOuter)
		if !own && !(overAggregate(top.Input) && lo.correlated(top.Input, depth+1)) {
			return nil
		}
		left := j.Left.Columns()
		p := &plan.Project{
			Input: &plan.Join{Kind: plan.JoinInner, Lateral: true, Left: j.Left, Right: top.Input},
			Exprs: plan.Refs(left),
			Cols:  append(slices.Clone(left), top.Cols...),
		}
		for _, e := range top.Exprs {
			p.Exprs = append(p.Exprs, fromRight(e, nl))
		}
		return filter(p, j.On...)
	case *plan.Filter:
		if !overAggregate(top.Input) || !lo.correlated(top.Input, depth+1) {
			return nil
		}
		preds := make([]expr.Expr, 0, len(top.Preds)+len(j.On))
		for _, p := range top.Preds {
			preds = append(preds, fromRight(p, nl))
		}
		return &plan.Filter{
			Input: &plan.Join{Kind: plan.JoinInner, Lateral: true, Left: j.Left, Right: top.Input},
			Preds: append(preds, j.On...),
		}
	}
	return nil
}

// overAggregate reports whether r is an aggregate without groups, or
// projections and filters of one.
func overAggregate(r plan.Rel) bool {
	switch r := r.(type) {
	case *plan.Aggregate:
		return len(r.GroupBy) == 0 && r.GroupingSets == nil
	case *plan.Project:
		return overAggregate(r.Input)
	case *plan.Filter:
		return overAggregate(r.Input)
	}
	return false
}

// fromRight is an expression inside the right side of a lateral join, over the
// right's columns, as one over the join's columns.
func fromRight(e expr.Expr, nl int) expr.Expr {
	return expr.Rewrite(e, func(n expr.Expr) expr.Expr {
		switch n := n.(type) {
		case *expr.Column:
			return &expr.Column{Index: n.Index + nl, Typ: n.Typ, Name: n.Name}
		case *expr.OuterColumn:
			if n.Depth == 1 {
				return &expr.Column{Index: n.Index, Typ: n.Typ, Name: n.Name}
			}
			return atDepth(n, n.Depth-1)
		}
		return n
	})
}

// pulled is the lateral join j with its right side replaced by right, whose
// first columns are the original ones, and the filters taken out of it in ON.
func pulled(j *plan.Join, right plan.Rel, preds []expr.Expr) plan.Rel {
	nl, nr := plan.Arity(j.Left), plan.Arity(j.Right)
	c := *j
	c.Right = mapOuter(right, 0, func(c *expr.OuterColumn, _ int) expr.Expr { return atDepth(c, c.Depth-1) })
	c.Lateral = false
	c.On = slices.Clone(j.On)
	for _, p := range preds {
		c.On = append(c.On, fromRight(p, nl))
	}
	if c.Kind == plan.JoinSemi || c.Kind == plan.JoinAnti {
		return &c
	}
	return firstColumns(&c, nl+nr)
}

// pullOn is the lateral join j as one that is not lateral, if all that its
// right side refers to of the left are filters that can become part of ON.
func (lo *lowerer) pullOn(j *plan.Join, depth int) plan.Rel {
	exists := j.Kind == plan.JoinSemi || j.Kind == plan.JoinAnti
	right, preds := lo.pullUp(j.Right, depth+1, exists)
	if len(preds) == 0 || lo.refersTo(right, depth, depth+1) {
		return nil
	}
	return pulled(j, right, preds)
}

// pullUp takes correlated filters out of r where the operators above them let
// them pass. The result has r's columns, then those that the filters need. If
// exists, all that matters of r is whether it has rows.
func (lo *lowerer) pullUp(r plan.Rel, depth int, exists bool) (plan.Rel, []expr.Expr) {
	switch r := r.(type) {
	case *plan.Filter:
		in, preds := lo.pullUp(r.Input, depth, exists)
		var own []expr.Expr
		for _, p := range conjuncts(r.Preds) {
			if hasOuter(p) {
				preds = append(preds, p)
			} else {
				own = append(own, p)
			}
		}
		return filter(in, own...), preds
	case *plan.Project:
		if slices.ContainsFunc(r.Exprs, hasOuter) {
			return r, nil
		}
		in, preds := lo.pullUp(r.Input, depth, exists)
		if len(preds) == 0 {
			return r, nil
		}
		return throughProject(r, in, preds)
	case *plan.Join:
		if !r.Lateral {
			return lo.pullUpJoin(r, depth, exists)
		}
		if out := lo.pullOn(r, depth); out != nil {
			if in, preds := lo.pullUp(out, depth, exists); len(preds) > 0 {
				return in, preds
			}
		}
	}
	return r, nil
}

// throughProject passes preds over in, the new input of r, through r, which
// gets the columns that they need.
func throughProject(r *plan.Project, in plan.Rel, preds []expr.Expr) (plan.Rel, []expr.Expr) {
	cols := in.Columns()
	p := &plan.Project{Input: in, Exprs: slices.Clone(r.Exprs), Cols: slices.Clone(r.Cols)}
	at := map[int]int{}
	for i, e := range r.Exprs {
		if c, ok := e.(*expr.Column); ok {
			at[c.Index] = i
		}
	}
	out := make([]expr.Expr, len(preds))
	for i, q := range preds {
		out[i] = expr.Remap(q, func(c int) int {
			to, ok := at[c]
			if !ok {
				to = len(p.Exprs)
				at[c] = to
				p.Exprs, p.Cols = append(p.Exprs, plan.RefTo(cols, c)), append(p.Cols, cols[c])
			}
			return to
		})
	}
	return p, out
}

// pullUpJoin takes filters out of the sides of a join whose rows are not
// NULL-extended, and out of the ON of an inner join. Where only existence
// matters, a semi join is as good as an inner one.
func (lo *lowerer) pullUpJoin(j *plan.Join, depth int, exists bool) (plan.Rel, []expr.Expr) {
	if j.Kind == plan.JoinRight || j.Kind == plan.JoinFull {
		return j, nil
	}
	c := *j
	if j.Kind == plan.JoinSemi && exists && slices.ContainsFunc(j.On, hasOuter) {
		c.Kind = plan.JoinInner
	}
	inner := c.Kind == plan.JoinInner
	nl, nr := plan.Arity(j.Left), plan.Arity(j.Right)
	left, preds := lo.pullUp(j.Left, depth, exists && inner)
	right, rightPreds := j.Right, []expr.Expr(nil)
	if inner {
		right, rightPreds = lo.pullUp(j.Right, depth, exists)
	}
	wl := plan.Arity(left)
	over := func(e expr.Expr) expr.Expr {
		return expr.Remap(e, func(i int) int {
			if i >= nl {
				return i + wl - nl
			}
			return i
		})
	}
	c.Left, c.Right, c.On = left, right, nil
	for _, p := range rightPreds {
		preds = append(preds, expr.Remap(p, func(i int) int { return i + wl }))
	}
	for _, p := range conjuncts(j.On) {
		if inner && hasOuter(p) {
			preds = append(preds, over(p))
		} else {
			c.On = append(c.On, over(p))
		}
	}
	if len(preds) == 0 {
		return j, nil
	}
	if j.Kind == plan.JoinSemi || j.Kind == plan.JoinAnti {
		return &c, preds // the left's columns, original ones first
	}
	// left, added, right, added → left, right, added, added
	pick := append(append(append(span(0, nl), span(wl, wl+nr)...), span(nl, wl)...), span(wl+nr, plan.Arity(&c))...)
	out := project(&c, pick)
	if out == plan.Rel(&c) {
		return out, preds
	}
	to := make([]int, len(pick))
	for i, p := range pick {
		to[p] = i
	}
	for i, p := range preds {
		preds[i] = expr.Remap(p, func(c int) int { return to[c] })
	}
	return out, preds
}
