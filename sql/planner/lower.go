package planner

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// Lowering removes what only the bound stage has: subqueries (subquery.go),
// grouping sets (grouping.go), and lateral joins, here. After "Unnesting
// Arbitrary Queries" (Neumann, Kemper; BTW 2015), top-down:
//
//	L JOIN LATERAL R ON p
//	  →  L JOIN R' ON p AND (the columns of L that R refers to) *= D
//
// where D, the domain, is the distinct combinations of those columns, and R' is
// R computed for every row of D at once: each operator of R carries D's columns
// along, grouping, partitioning and joining by them. Where a filter of R equates
// all of D's columns to columns of its own input, D is not needed: those columns
// take its place.
//
// Before that, filters at the top of R that refer to L simply become part of
// the join's condition, which does away with most correlated subqueries.

// ref is an outer column by the scope it belongs to: scopes are numbered from
// the outermost, so that the number does not depend on where the reference is.
type ref struct {
	scope, index int
	image        bool // not the column but its bits: see domainOf
}

// domain is the rows for which a correlated tree is computed. A column whose
// equal values may differ in their bits (1.0 and 1.00) is followed by its image,
// so that what groups by the domain's columns does not mix them up.
type domain struct {
	rel  plan.Rel // distinct rows
	cols []plan.Column
	of   map[ref]int // outer column → column of rel
	refs []ref       // column of rel → outer column
}

// lowered is a lowered tree. If it is correlated, its columns are the
// original ones followed by those of the domain.
type lowered struct {
	rel        plan.Rel
	correlated bool
	// plain[i] says that domain column i is never NULL and came from an
	// equality, so that joining it back by = is right.
	plain []bool
}

// lowerer lowers one plan.
type lowerer struct {
	nextID int                 // of Let
	strict int                 // > 0: below an operator that must not see rows of other domains
	lets   map[int]*letBinding // Let bindings whose value is correlated
}

// letBinding is a correlated Let or recursive binding: its LocalGets have the
// domain's columns too.
type letBinding struct {
	dom   *domain
	plain []bool
}

func (lo *lowerer) newID() int {
	lo.nextID++
	return lo.nextID
}

// lower removes correlation from a plan without subqueries.
func lower(r plan.Rel) plan.Rel {
	lo := &lowerer{lets: map[int]*letBinding{}, nextID: lastID(r)}
	lateral := false
	plan.Walk(r, func(n plan.Rel) bool {
		switch n := n.(type) {
		case *plan.Join:
			lateral = lateral || n.Lateral
		case *plan.Aggregate:
			lateral = lateral || n.GroupingSets != nil
		}
		return true
	})
	if !lateral {
		return r
	}
	r = plan.Rewrite(lo.expandSets(r), filterLeft)
	return lo.rel(r, nil, 0).rel
}

// filterLeft filters the left side of a lateral join by what a WHERE says of it
// alone, before the domain of the right side is taken from it.
func filterLeft(r plan.Rel) plan.Rel {
	f, ok := r.(*plan.Filter)
	if !ok {
		return r
	}
	preds, in := conjuncts(f.Preds), f.Input
	over := preds // the predicates over in
	top, projected := in.(*plan.Project)
	if projected && !volatileProject(top) {
		in = top.Input
		over = make([]expr.Expr, len(preds))
		for i, p := range preds {
			over[i] = expr.Substitute(p, top.Exprs)
		}
	}
	j, ok := in.(*plan.Join)
	if !ok || !j.Lateral || j.Kind == plan.JoinRight || j.Kind == plan.JoinFull {
		return r
	}
	nl := plan.Arity(j.Left)
	var left, rest []expr.Expr
	for i, p := range over {
		if usesOnly(p, func(c int) bool { return c < nl }) && expr.VolatilityOf(p) != expr.Volatile {
			left = append(left, p)
		} else {
			rest = append(rest, preds[i])
		}
	}
	if len(left) == 0 {
		return r
	}
	c := *j
	c.Left = filterLeft(filter(j.Left, left...))
	if projected {
		return filter(plan.WithInput(top, &c), rest...)
	}
	return filter(&c, rest...)
}

// refs collects the free outer columns of r by scope; depth is the number of
// scopes around r.
func (lo *lowerer) refs(r plan.Rel, depth int, found map[ref]int) {
	visit := func(n plan.Rel, level int) {
		plan.Exprs(n, func(e expr.Expr) {
			mapOuterExpr(e, level, func(c *expr.OuterColumn, _ int) expr.Expr {
				found[ref{scope: depth + level - c.Depth, index: c.Index}]++
				return c
			})
		})
		if g, ok := n.(*plan.LocalGet); ok && lo.lets[g.ID] != nil {
			for _, x := range lo.lets[g.ID].dom.refs {
				if !x.image {
					found[x]++
				}
			}
		}
	}
	var walk func(n plan.Rel, level int)
	walk = func(n plan.Rel, level int) {
		visit(n, level)
		if j, ok := n.(*plan.Join); ok && j.Lateral {
			walk(j.Left, level)
			walk(j.Right, level+1)
			return
		}
		plan.Children(n, func(c plan.Rel) { walk(c, level) })
	}
	walk(r, 0)
	for x := range found {
		if x.scope >= depth {
			delete(found, x)
		}
	}
}

// correlated reports whether r refers to a scope around it.
func (lo *lowerer) correlated(r plan.Rel, depth int) bool {
	found := map[ref]int{}
	lo.refs(r, depth, found)
	return len(found) > 0
}

// scopeOf is the scope of an outer column at a depth.
func scopeOf(c *expr.OuterColumn, depth int) ref { return ref{scope: depth - c.Depth, index: c.Index} }

// resolve replaces the outer columns of e by the domain's columns, which begin
// at column base.
func (lo *lowerer) resolve(e expr.Expr, d *domain, base, depth int) expr.Expr {
	if e == nil || d == nil {
		return e
	}
	return expr.Rewrite(e, func(n expr.Expr) expr.Expr {
		c, ok := n.(*expr.OuterColumn)
		if !ok {
			return n
		}
		i := d.of[scopeOf(c, depth)]
		return &expr.Column{Index: base + i, Typ: c.Typ, Name: c.Name}
	})
}

// ensure makes l correlated: every row once for each row of the domain.
func (l lowered) ensure(d *domain) lowered {
	if l.correlated || d == nil {
		return l
	}
	return lowered{
		rel:        &plan.Join{Kind: plan.JoinInner, Left: l.rel, Right: d.rel},
		correlated: true,
		plain:      make([]bool, len(d.cols)),
	}
}

// rel lowers r for every row of d (nil: r is not correlated).
func (lo *lowerer) rel(r plan.Rel, d *domain, depth int) lowered {
	if d != nil && !lo.correlated(r, depth) {
		d = nil
	}
	switch r := r.(type) {
	case *plan.Filter:
		return lo.filter(r, d, depth)
	case *plan.Join:
		if r.Lateral {
			return lo.lateral(r, d, depth)
		}
		return lo.join(r, d, depth)
	case *plan.Aggregate:
		return lo.aggregate(r, d, depth)
	case *plan.Window:
		return lo.window(r, d, depth)
	case *plan.TopK:
		return lo.topK(r, d, depth)
	case *plan.SetOp:
		return lo.setOp(r, d, depth)
	case *plan.FlatMap:
		return lo.flatMap(r, d, depth)
	case *plan.Let:
		return lo.let(r, d, depth)
	case *plan.LocalGet:
		return lo.localGet(r, d)
	case *plan.Recursive:
		return lo.recursive(r, d, depth)
	}
	in := plan.Input(r)
	if in == nil { // Get, Constant
		return lowered{rel: r}
	}
	_, assert := r.(*plan.Assert)
	if d != nil && (assert || raises(r)) {
		lo.strict++
		defer func() { lo.strict-- }()
	}
	l := lo.rel(in, d, depth)
	switch r := r.(type) {
	case *plan.Project:
		return lo.project(r, l, d, depth)
	case *plan.Assert:
		if !l.correlated {
			break
		}
		n := plan.Arity(in)
		l.rel = &plan.Assert{Input: l.rel, Key: append(slices.Clone(r.Key), span(n, n+len(d.cols))...)}
		return l
	}
	// Distinct and Sort: the domain's columns are columns like others.
	if l.rel != in {
		l.rel = plan.WithInput(r, l.rel)
	} else {
		l.rel = r
	}
	return l
}

func (lo *lowerer) project(r *plan.Project, l lowered, d *domain, depth int) lowered {
	if !l.correlated && d == nil {
		if l.rel != r.Input {
			l.rel = plan.WithInput(r, l.rel)
		} else {
			l.rel = r
		}
		return l
	}
	l = l.ensure(d)
	n := plan.Arity(r.Input)
	p := &plan.Project{Input: l.rel}
	for _, e := range r.Exprs {
		p.Exprs = append(p.Exprs, lo.resolve(e, d, n, depth))
	}
	for i, c := range d.cols {
		p.Exprs = append(p.Exprs, &expr.Column{Index: n + i, Typ: c.Type, Name: c.Name})
	}
	p.Cols = append(append(p.Cols, r.Cols...), d.nullable(l.plain)...)
	l.rel = p
	return l
}

// nullable are the domain's columns, those that came from an equality not NULL.
func (d *domain) nullable(plain []bool) []plan.Column {
	cols := slices.Clone(d.cols)
	for i := range cols {
		cols[i].NotNull = cols[i].NotNull || plain[i]
	}
	return cols
}

// filter lowers WHERE; equalities with outer columns may do away with the domain.
func (lo *lowerer) filter(r *plan.Filter, d *domain, depth int) lowered {
	l := lo.rel(r.Input, d, depth)
	if d == nil {
		if l.rel != r.Input {
			l.rel = &plan.Filter{Input: l.rel, Preds: r.Preds}
		} else {
			l.rel = r
		}
		return l
	}
	preds := conjuncts(r.Preds)
	if !l.correlated && lo.strict == 0 {
		if out, ok := lo.substitute(l.rel, preds, d, depth); ok {
			return out
		}
	}
	l = l.ensure(d)
	n := plan.Arity(r.Input)
	out := make([]expr.Expr, len(preds))
	for i, p := range preds {
		out[i] = lo.resolve(p, d, n, depth)
	}
	l.rel = &plan.Filter{Input: l.rel, Preds: out}
	return l
}

// substitute filters an uncorrelated input without its domain, if preds equate
// every column of the domain to an expression over the input:
//
//	(in × D) WHERE in.x = D.a AND p(in, D.a)
//	  →  (SELECT in.*, x AS a FROM in) WHERE x IS NOT NULL AND p(in, a)
//
// The result has rows for values that are not in D; they find no partner later.
// (So this must not be done below an operator that may fail for such a row.)
// Types whose equality is not identity keep their domain, since x need not be a.
func (lo *lowerer) substitute(in plan.Rel, preds []expr.Expr, d *domain, depth int) (lowered, bool) {
	exprs := make([]expr.Expr, len(d.cols))
	used := make([]bool, len(preds))
	for i, p := range preds {
		l, r, ok := plan.IsEquality(p)
		if !ok {
			continue
		}
		if _, ok := l.(*expr.OuterColumn); !ok {
			l, r = r, l
		}
		c, ok := l.(*expr.OuterColumn)
		if !ok || hasOuter(r) || !plan.SameBits(c.Typ, r.Type()) ||
			expr.VolatilityOf(r) == expr.Volatile || !expr.IsTotal(r) {
			continue
		}
		at := d.of[scopeOf(c, depth)]
		if exprs[at] == nil {
			exprs[at], used[i] = r, true
		}
	}
	for _, e := range exprs {
		if e == nil {
			return lowered{}, false
		}
	}
	n := plan.Arity(in)
	plain := slices.Repeat([]bool{true}, len(d.cols))
	ext := extend(in, exprs, d.nullable(plain))
	var rest []expr.Expr
	for _, e := range exprs {
		if mayBeNull(e, nil, in.Columns()) {
			rest = append(rest, &expr.IsNull{Arg: e, Not: true})
		}
	}
	for i, p := range preds {
		if !used[i] {
			rest = append(rest, lo.resolve(p, d, n, depth))
		}
	}
	// The IS NOT NULL tests are over the input's columns, which keep their places.
	return lowered{rel: filter(ext, rest...), correlated: true, plain: plain}, true
}

// sameDomain are the conditions that two correlated sides are of the same row
// of the domain; l and r are where its columns begin.
func sameDomain(d *domain, l, r int, lp, rp []bool) []expr.Expr {
	out := make([]expr.Expr, 0, len(d.cols))
	for i, c := range d.cols {
		if d.refs[i].image {
			continue
		}
		a := &expr.Column{Index: l + i, Typ: c.Type, Name: c.Name}
		b := &expr.Column{Index: r + i, Typ: c.Type, Name: c.Name}
		if c.NotNull || lp[i] || rp[i] {
			out = append(out, equal(a, b))
		} else {
			out = append(out, plan.Same(a, b))
		}
	}
	return out
}

// equal is `a = b` for columns of one type whose equality is identity (and so
// never NULL for values that are not), else `a *= b`.
func equal(a, b expr.Expr) expr.Expr {
	if plan.SameBits(a.Type(), b.Type()) {
		if e, err := expr.NewOp("=", a, b, 0); err == nil {
			return e
		}
	}
	return plan.Same(a, b)
}
