package planner

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// raises reports whether an expression of the node is likely to fail for some
// row: whatever is not total but for the overflow of +, - and *, which is rare
// enough to be worth the plans that moving it allows.
func raises(r plan.Rel) bool {
	found := false
	plan.Exprs(r, func(e expr.Expr) { found = found || mayRaise(e) })
	return found
}

func mayRaise(e expr.Expr) bool {
	return expr.Any(e, func(n expr.Expr) bool {
		switch n := n.(type) {
		case *expr.Call:
			return !n.Fn.Total && !arithmetic(n.Fn)
		case *expr.InList:
			return !n.Op.Total
		case *expr.ArrayOp:
			return !n.Op.Total
		}
		return false
	})
}

// arithmetic reports whether the only failure of f is an overflow: sums,
// differences, products, and casts between numbers.
func arithmetic(f *expr.Function) bool {
	if f.Operator {
		return f.Name == "+" || f.Name == "-" || f.Name == "*"
	}
	if len(f.Args) == 0 || !numeric(f.Ret) {
		return false
	}
	return numeric(f.Args[0])
}

// numeric reports whether t is a type of numbers.
func numeric(t types.Type) bool {
	switch t.OID {
	case types.OIDInt2, types.OIDInt4, types.OIDInt8, types.OIDFloat4, types.OIDFloat8, types.OIDNumeric:
		return true
	}
	return false
}

// below lowers the input of r, strictly if r might fail for rows of domains
// that nobody asked for.
func (lo *lowerer) below(r, in plan.Rel, d *domain, depth int) lowered {
	if d != nil && raises(r) {
		lo.strict++
		defer func() { lo.strict-- }()
	}
	return lo.rel(in, d, depth)
}

// aggregate lowers grouping: the domain's columns become group columns. Without
// GROUP BY there is a row also for a domain row without input.
func (lo *lowerer) aggregate(r *plan.Aggregate, d *domain, depth int) lowered {
	if d == nil {
		return lo.unary(r, depth)
	}
	if len(r.GroupBy) > 0 {
		return lo.grouped(r, d, depth)
	}
	g := lo.grouped(r, d, depth)
	k, n := len(d.cols), len(r.Aggs)
	on := sameDomain(d, 0, k+n, make([]bool, k), g.plain)
	j := &plan.Join{Kind: plan.JoinLeft, Left: d.rel, Right: g.rel, On: on}
	return lowered{
		rel:        emptyGroups(project(j, append(span(k, k+n), span(0, k)...)), r, 0),
		correlated: true,
		plain:      make([]bool, k),
	}
}

// unary lowers a node with one input that is not correlated.
func (lo *lowerer) unary(r plan.Rel, depth int) lowered {
	in := plan.Input(r)
	l := lo.rel(in, nil, depth)
	if l.rel == in {
		return lowered{rel: r}
	}
	return lowered{rel: plan.WithInput(r, l.rel)}
}

// grouped is the aggregate r grouped by its columns and the domain's: a domain
// row without input has no row.
func (lo *lowerer) grouped(r *plan.Aggregate, d *domain, depth int) lowered {
	l := lo.below(r, r.Input, d, depth).ensure(d)
	n, k, g := plan.Arity(r.Input), len(d.cols), len(r.GroupBy)
	cols := d.nullable(l.plain)
	a := plan.MapExprs(r, func(e expr.Expr) expr.Expr { return lo.resolve(e, d, n, depth) }).(*plan.Aggregate)
	a = &plan.Aggregate{Input: l.rel, GroupBy: slices.Clone(a.GroupBy), Aggs: a.Aggs}
	a.Cols = append(a.Cols, r.Cols[:g]...)
	for i, c := range cols {
		a.GroupBy = append(a.GroupBy, &expr.Column{Index: n + i, Typ: c.Type, Name: c.Name})
		a.Cols = append(a.Cols, c)
	}
	a.Cols = append(a.Cols, r.Cols[g:]...)
	pick := append(append(span(0, g), span(g+k, g+k+len(r.Aggs))...), span(g, g+k)...)
	return lowered{rel: project(a, pick), correlated: true, plain: l.plain}
}

// emptyGroups makes the aggregates of agg, found from column base of r on, what
// they are over no rows where the join before has put NULL: counts are 0.
func emptyGroups(r plan.Rel, agg *plan.Aggregate, base int) plan.Rel {
	cols := slices.Clone(r.Columns())
	exprs := plan.Refs(cols)
	changed := false
	for i := range agg.Aggs {
		if !countsEmpty(&agg.Aggs[i]) {
			continue
		}
		at := base + i
		exprs[at] = &expr.Coalesce{Args: []expr.Expr{exprs[at], int64Const(0)}, Typ: cols[at].Type}
		cols[at].NotNull = true
		changed = true
	}
	if !changed {
		return r
	}
	return &plan.Project{Input: r, Exprs: exprs, Cols: cols}
}

// countsEmpty reports whether an aggregate is 0, and not NULL, over no rows.
func countsEmpty(a *plan.AggCall) bool {
	return a.Fn.Op == expr.AggCount || a.Fn.Op == expr.AggCountStar || a.Fn.Name == "regr_count"
}

// window lowers window functions: the domain's columns become partition columns.
func (lo *lowerer) window(r *plan.Window, d *domain, depth int) lowered {
	if d == nil {
		return lo.unary(r, depth)
	}
	l := lo.below(r, r.Input, d, depth).ensure(d)
	n, k := plan.Arity(r.Input), len(d.cols)
	w := *plan.MapExprs(r, func(e expr.Expr) expr.Expr { return lo.resolve(e, d, n, depth) }).(*plan.Window)
	w.Input = l.rel
	w.Partition = slices.Clone(w.Partition)
	cols := d.nullable(l.plain)
	for i, c := range cols {
		w.Partition = append(w.Partition, &expr.Column{Index: n + i, Typ: c.Type, Name: c.Name})
	}
	w.Cols = append(append(slices.Clone(r.Cols[:n]), cols...), r.Cols[n:]...)
	return lowered{rel: project(&w, domainLast(n, k, len(w.Cols))), correlated: true, plain: l.plain}
}

// domainLast picks, of total columns, all but the k at n, then those.
func domainLast(n, k, total int) []int {
	return append(append(span(0, n), span(n+k, total)...), span(n, n+k)...)
}

// topK lowers a limit: the domain's columns become partition columns.
func (lo *lowerer) topK(r *plan.TopK, d *domain, depth int) lowered {
	if hasOuter(r.Limit) || hasOuter(r.Offset) {
		return lo.rel(limitByWindow(r.Input, r.Partition, r.Order, r.Limit, r.Offset, r.WithTies), d, depth)
	}
	if d == nil {
		return lo.unary(r, depth)
	}
	l := lo.rel(r.Input, d, depth).ensure(d)
	n := plan.Arity(r.Input)
	c := *r
	c.Input = l.rel
	c.Partition = append(slices.Clone(r.Partition), span(n, n+len(d.cols))...)
	l.rel = &c
	return l
}

// setOp lowers UNION, INTERSECT and EXCEPT, domain row by domain row.
func (lo *lowerer) setOp(r *plan.SetOp, d *domain, depth int) lowered {
	c := *r
	c.Inputs = make([]plan.Rel, len(r.Inputs))
	if d == nil {
		for i, in := range r.Inputs {
			c.Inputs[i] = lo.rel(in, nil, depth).rel
		}
		if slices.Equal(c.Inputs, r.Inputs) {
			return lowered{rel: r}
		}
		return lowered{rel: &c}
	}
	plain := slices.Repeat([]bool{true}, len(d.cols))
	for i, in := range r.Inputs {
		l := lo.rel(in, d, depth).ensure(d)
		c.Inputs[i] = l.rel
		for j := range plain {
			plain[j] = plain[j] && l.plain[j]
		}
	}
	c.Cols = append(slices.Clone(r.Cols), d.nullable(plain)...)
	return lowered{rel: &c, correlated: true, plain: plain}
}

// flatMap lowers a table function.
func (lo *lowerer) flatMap(r *plan.FlatMap, d *domain, depth int) lowered {
	if d == nil {
		return lo.unary(r, depth)
	}
	l := lo.below(r, r.Input, d, depth).ensure(d)
	n, k := plan.Arity(r.Input), len(d.cols)
	f := *plan.MapExprs(r, func(e expr.Expr) expr.Expr { return lo.resolve(e, d, n, depth) }).(*plan.FlatMap)
	f.Input = l.rel
	f.Cols = append(append(slices.Clone(r.Cols[:n]), d.nullable(l.plain)...), r.Cols[n:]...)
	return lowered{rel: project(&f, domainLast(n, k, len(f.Cols))), correlated: true, plain: l.plain}
}

// let lowers a shared value; a correlated one has the domain's columns too.
func (lo *lowerer) let(r *plan.Let, d *domain, depth int) lowered {
	v := lo.rel(r.Value, d, depth)
	if v.correlated {
		lo.lets[r.ID] = &letBinding{dom: d, plain: v.plain}
	}
	b := lo.rel(r.Body, d, depth)
	if v.rel == r.Value && b.rel == r.Body {
		b.rel = r
		return b
	}
	b.rel = &plan.Let{ID: r.ID, Value: v.rel, Body: b.rel}
	return b
}

// localGet reads a shared value: for the rows of a domain d that may be another
// than the one of the value, of which it then has all columns.
func (lo *lowerer) localGet(r *plan.LocalGet, d *domain) lowered {
	b := lo.lets[r.ID]
	if b == nil {
		return lowered{rel: r}
	}
	n := len(r.Cols)
	g := &plan.LocalGet{ID: r.ID, Cols: append(slices.Clone(r.Cols), b.dom.nullable(b.plain)...), AppendOnly: r.AppendOnly}
	if b.dom == d {
		return lowered{rel: g, correlated: true, plain: b.plain}
	}
	width := len(g.Cols)
	j := &plan.Join{Kind: plan.JoinInner, Left: g, Right: d.rel}
	for i, x := range b.dom.refs {
		if x.image {
			continue
		}
		at := d.of[x]
		left := plan.RefTo(g.Cols, n+i)
		right := &expr.Column{Index: width + at, Typ: d.cols[at].Type, Name: d.cols[at].Name}
		if b.plain[i] || d.cols[at].NotNull {
			j.On = append(j.On, equal(left, right))
		} else {
			j.On = append(j.On, plan.Same(left, right))
		}
	}
	pick := append(span(0, n), span(width, width+len(d.cols))...)
	return lowered{rel: project(j, pick), correlated: true, plain: make([]bool, len(d.cols))}
}

// recursive lowers a recursion: if a definition is correlated, all bindings
// have the domain's columns, and iterate for all its rows at once.
func (lo *lowerer) recursive(r *plan.Recursive, d *domain, depth int) lowered {
	own := false
	for _, v := range r.Values {
		own = own || lo.correlated(v, depth)
	}
	if own {
		for _, id := range r.IDs {
			lo.lets[id] = &letBinding{dom: d, plain: make([]bool, len(d.cols))}
		}
	}
	c := *r
	c.Values = make([]plan.Rel, len(r.Values))
	for i, v := range r.Values {
		if own {
			c.Values[i] = lo.rel(v, d, depth).ensure(d).rel
		} else {
			c.Values[i] = lo.rel(v, nil, depth).rel
		}
	}
	b := lo.rel(r.Body, d, depth)
	if b.rel == r.Body && slices.Equal(c.Values, r.Values) {
		b.rel = r
		return b
	}
	c.Body = b.rel
	b.rel = &c
	return b
}

// expandSets replaces grouping sets by a union of aggregates over a shared input:
//
//	GROUP BY GROUPING SETS ((a, b), (a), ())
//	  →  group by a, b  UNION ALL  group by a, NULL  UNION ALL  no group, NULL, NULL
func (lo *lowerer) expandSets(r plan.Rel) plan.Rel {
	return plan.Rewrite(r, func(n plan.Rel) plan.Rel {
		a, ok := n.(*plan.Aggregate)
		if !ok || a.GroupingSets == nil {
			return n
		}
		in, bind := lo.share(a.Input)
		u := &plan.SetOp{Kind: plan.Union, All: true, Cols: slices.Clone(a.Cols)}
		for i := range a.GroupBy {
			for _, set := range a.GroupingSets {
				if !slices.Contains(set, i) {
					u.Cols[i].NotNull = false
				}
			}
		}
		for i, set := range a.GroupingSets {
			u.Inputs = append(u.Inputs, oneSet(a, in, u.Cols, set, i))
		}
		if len(u.Inputs) == 1 {
			return bind(u.Inputs[0])
		}
		return bind(u)
	})
}

// oneSet is the rows of a for its grouping set number.
func oneSet(a *plan.Aggregate, in plan.Rel, cols []plan.Column, set []int, number int) plan.Rel {
	one := &plan.Aggregate{Input: in, Aggs: a.Aggs}
	for _, g := range set {
		one.GroupBy = append(one.GroupBy, a.GroupBy[g])
		one.Cols = append(one.Cols, a.Cols[g])
	}
	g := len(a.GroupBy)
	one.Cols = append(one.Cols, a.Cols[g:g+len(a.Aggs)]...)
	p := &plan.Project{Input: one, Cols: cols}
	for i := range a.GroupBy {
		if at := slices.Index(set, i); at >= 0 {
			p.Exprs = append(p.Exprs, plan.RefTo(one.Cols, at))
		} else {
			p.Exprs = append(p.Exprs, nullConst(a.Cols[i].Type))
		}
	}
	for i := range a.Aggs {
		p.Exprs = append(p.Exprs, plan.RefTo(one.Cols, len(set)+i))
	}
	p.Exprs = append(p.Exprs, int32Const(int32(number)))
	return p
}
