package planner

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// Predicate push-down: one pass from the root carries predicates down as deep
// as they may go, turns outer joins into inner ones where a predicate rejects
// the NULL-extended rows, and hands clusters of inner joins to joincluster.go.

// push is r filtered by preds, which are over its columns.
func (o *optimizer) push(r plan.Rel, preds []expr.Expr) plan.Rel {
	if len(preds) > 0 {
		var stay []expr.Expr
		preds, stay = split(conjuncts(preds), func(p expr.Expr) bool { return expr.VolatilityOf(p) != expr.Volatile })
		if len(stay) > 0 {
			return filter(o.push(r, preds), stay...)
		}
	}
	switch r := r.(type) {
	case *plan.Filter:
		return o.pushFilter(r, preds)
	case *plan.Project:
		return o.pushProject(r, preds)
	case *plan.Join:
		return o.pushJoin(r, preds)
	case *plan.Aggregate:
		return o.pushAggregate(r, preds)
	case *plan.SetOp:
		return o.pushSetOp(r, preds)
	case *plan.Let:
		return &plan.Let{ID: r.ID, Value: o.push(r.Value, nil), Body: o.push(r.Body, preds)}
	case *plan.Recursive:
		c := *r
		c.Values = make([]plan.Rel, len(r.Values))
		for i, v := range r.Values {
			c.Values[i] = o.push(v, nil)
		}
		c.Body = o.push(r.Body, preds)
		return &c
	}
	in := plan.Input(r)
	if in == nil {
		return filter(r, preds...)
	}
	down, stay := o.through(r, preds)
	if n := o.push(in, down); n != in {
		r = plan.WithInput(r, n)
	}
	return o.numbered(filter(r, stay...))
}

// split cuts a list in two: where ok holds, and the rest.
func split(es []expr.Expr, ok func(expr.Expr) bool) (yes, no []expr.Expr) {
	for i, e := range es {
		if !ok(e) {
			yes = append(yes, es[:i]...)
			for _, e := range es[i:] {
				if ok(e) {
					yes = append(yes, e)
				} else {
					no = append(no, e)
				}
			}
			return yes, no
		}
	}
	return es, nil
}

// pushFilter: adjacent filters become one, in their order.
func (o *optimizer) pushFilter(r *plan.Filter, preds []expr.Expr) plan.Rel {
	if len(preds) > 0 {
		return o.push(r.Input, append(slices.Clone(r.Preds), preds...))
	}
	switch r.Input.(type) {
	case *plan.Get, *plan.LocalGet, *plan.Constant: // already as deep as can be
		if len(conjuncts(r.Preds)) == len(r.Preds) {
			return r
		}
	}
	return o.push(r.Input, r.Preds)
}

// PushFilterThroughProject:
//
//	SELECT * FROM (SELECT a + 1 AS x FROM t) WHERE x > 2  →  SELECT a + 1 FROM t WHERE a + 1 > 2
func (o *optimizer) pushProject(r *plan.Project, preds []expr.Expr) plan.Rel {
	var down, stay []expr.Expr
	if len(preds) > 0 {
		down, stay = split(preds, func(p expr.Expr) bool {
			return !expr.Any(p, func(n expr.Expr) bool {
				c, ok := n.(*expr.Column)
				return ok && expr.VolatilityOf(r.Exprs[c.Index]) == expr.Volatile
			})
		})
		down, stay = o.moved("PushFilterThroughProject", down, stay, preds)
	}
	sub := make([]expr.Expr, len(down))
	for i, p := range down {
		sub[i] = expr.Substitute(p, r.Exprs)
	}
	out := plan.Rel(r)
	if n := o.push(r.Input, sub); n != r.Input {
		out = plan.WithInput(r, n)
	}
	return filter(out, stay...)
}

// moved records that a rule moved down predicates, unless it is disabled.
func (o *optimizer) moved(rule string, down, stay, all []expr.Expr) (d, s []expr.Expr) {
	if len(down) == 0 {
		return nil, all
	}
	if !o.on(rule) {
		return nil, all
	}
	o.fire(rule)
	return down, stay
}

// through splits predicates over a node with one input, whose first columns are
// the input's, into those that hold before the node as well as after it.
//
// PushFilterThroughDistinct: any predicate.
// PushFilterThroughWindow, PushFilterThroughTopK: on partition columns only, for
// the others decide which rows of a partition there are.
// PushFilterThroughFlatMap: on the input's columns.
// PushFilterThroughAssert: on the key, so that whole groups go.
func (o *optimizer) through(r plan.Rel, preds []expr.Expr) (down, stay []expr.Expr) {
	if len(preds) == 0 {
		return nil, nil
	}
	rule := ""
	var allowed func(col int) bool
	switch r := r.(type) {
	case *plan.Distinct:
		rule, allowed = "PushFilterThroughDistinct", func(int) bool { return true }
	case *plan.Window:
		rule, allowed = "PushFilterThroughWindow", func(col int) bool {
			return slices.ContainsFunc(r.Partition, func(e expr.Expr) bool {
				c, ok := e.(*expr.Column)
				return ok && c.Index == col
			})
		}
	case *plan.TopK:
		n := plan.Arity(r.Input)
		rule, allowed = "PushFilterThroughTopK", func(col int) bool { return col < n && slices.Contains(r.Partition, col) }
	case *plan.FlatMap:
		n := plan.Arity(r.Input)
		rule, allowed = "PushFilterThroughFlatMap", func(col int) bool { return col < n }
	case *plan.Assert:
		rule, allowed = "PushFilterThroughAssert", func(col int) bool { return slices.Contains(r.Key, col) }
	default:
		return nil, preds
	}
	down, stay = split(preds, func(p expr.Expr) bool { return usesOnly(p, allowed) && expr.UsesColumns(p) })
	return o.moved(rule, down, stay, preds)
}

// usesOnly reports whether all columns of e are allowed.
func usesOnly(e expr.Expr, allowed func(col int) bool) bool {
	return !expr.Any(e, func(n expr.Expr) bool {
		c, ok := n.(*expr.Column)
		return ok && !allowed(c.Index)
	})
}

// PushFilterThroughAggregate: predicates on group columns choose groups.
//
//	SELECT k, count(*) FROM t GROUP BY k HAVING k = 1  →  … FROM t WHERE k = 1 GROUP BY k
func (o *optimizer) pushAggregate(r *plan.Aggregate, preds []expr.Expr) plan.Rel {
	g := len(r.GroupBy)
	var down, stay []expr.Expr
	if len(preds) > 0 {
		down, stay = split(preds, func(p expr.Expr) bool {
			return g > 0 && expr.UsesColumns(p) && usesOnly(p, func(col int) bool { return col < g })
		})
		down, stay = o.moved("PushFilterThroughAggregate", down, stay, preds)
	}
	sub := make([]expr.Expr, len(down))
	for i, p := range down {
		sub[i] = expr.Substitute(p, r.GroupBy)
	}
	out := plan.Rel(r)
	if n := o.push(r.Input, sub); n != r.Input {
		out = plan.WithInput(r, n)
	}
	return filter(out, stay...)
}

// PushFilterThroughSetOp: a predicate holds for a row of a union, intersection
// or difference if it holds for it in the inputs.
func (o *optimizer) pushSetOp(r *plan.SetOp, preds []expr.Expr) plan.Rel {
	down, stay := o.moved("PushFilterThroughSetOp", preds, nil, preds)
	out := plan.MapChildren(r, func(c plan.Rel) plan.Rel { return o.push(c, down) })
	return filter(out, stay...)
}

// pushJoin pushes predicates into a join.
func (o *optimizer) pushJoin(j *plan.Join, preds []expr.Expr) plan.Rel {
	switch j.Kind {
	case plan.JoinInner:
		return o.cluster(j, preds)
	case plan.JoinRight:
		return o.pushRight(j, preds)
	case plan.JoinFull:
		return o.pushFull(j, preds)
	case plan.JoinLeft:
		return o.pushLeft(j, preds)
	}
	if n := o.sinkSemi(j); n != nil {
		return o.push(n, preds)
	}
	return o.pushSemi(j, preds)
}

// RightToLeft: a right join is a left join the other way round.
//
//	a RIGHT JOIN b  →  b LEFT JOIN a
func (o *optimizer) pushRight(j *plan.Join, preds []expr.Expr) plan.Rel {
	o.fire("RightToLeft")
	nl, nr := plan.Arity(j.Left), plan.Arity(j.Right)
	swap := func(i int) int {
		if i < nl {
			return i + nr
		}
		return i - nl
	}
	c := &plan.Join{Kind: plan.JoinLeft, Left: j.Right, Right: j.Left}
	for _, p := range j.On {
		c.On = append(c.On, expr.Remap(p, swap))
	}
	return o.push(project(c, append(span(nr, nr+nl), span(0, nr)...)), preds)
}

// OuterToInner: a predicate that is not true for NULL-extended rows makes an
// outer join inner, on that side.
//
//	a LEFT JOIN b ON … WHERE b.x > 1  →  a JOIN b ON … WHERE b.x > 1
func (o *optimizer) pushFull(j *plan.Join, preds []expr.Expr) plan.Rel {
	nl := plan.Arity(j.Left)
	left := func(col int) bool { return col < nl }
	right := func(col int) bool { return col >= nl }
	needL := slices.ContainsFunc(preds, func(p expr.Expr) bool { return rejectsNull(p, left) })
	needR := slices.ContainsFunc(preds, func(p expr.Expr) bool { return rejectsNull(p, right) })
	if (needL || needR) && o.on("OuterToInner") {
		o.fire("OuterToInner")
		c := *j
		switch {
		case needL && needR:
			c.Kind = plan.JoinInner
		case needL:
			c.Kind = plan.JoinLeft
		default:
			c.Kind = plan.JoinRight
		}
		return o.push(&c, preds)
	}
	ofLeft, ofRight, stay := o.throughFull(j, preds, nl)
	c := *j
	c.Left, c.Right = o.push(j.Left, ofLeft), o.push(j.Right, ofRight)
	return filter(&c, stay...)
}

// PushFilterThroughFullJoin: what is asked of the merged column of USING is asked
// of it on both sides.
//
//	a FULL JOIN b USING (k) WHERE k = 1  →  (a WHERE k = 1) FULL JOIN (b WHERE k = 1) USING (k)
func (o *optimizer) throughFull(j *plan.Join, preds []expr.Expr, nl int) (left, right, stay []expr.Expr) {
	for _, p := range preds {
		var l, r *expr.Column
		merged := func(e expr.Expr) bool {
			c, ok := e.(*expr.Coalesce)
			if !ok || len(c.Args) != 2 {
				return false
			}
			a, ok1 := c.Args[0].(*expr.Column)
			b, ok2 := c.Args[1].(*expr.Column)
			if !ok1 || !ok2 || a.Index >= nl || b.Index < nl || !plan.SameBits(a.Typ, b.Typ) || l != nil && (l.Index != a.Index || r.Index != b.Index) ||
				!slices.ContainsFunc(conjuncts(j.On), func(q expr.Expr) bool {
					x, y, ok := plan.IsEquality(q)
					return ok && (expr.Equal(x, a) && expr.Equal(y, b) || expr.Equal(x, b) && expr.Equal(y, a))
				}) {
				return false
			}
			l, r = a, b
			return true
		}
		var side func(e expr.Expr, to func() expr.Expr) expr.Expr
		side = func(e expr.Expr, to func() expr.Expr) expr.Expr {
			if merged(e) {
				return to()
			}
			return expr.MapChildren(e, func(e expr.Expr) expr.Expr { return side(e, to) })
		}
		// A column of one side by itself is not the merged one.
		const mark = -1
		only := side(p, func() expr.Expr { return &expr.Column{Index: mark, Typ: l.Typ} })
		if l == nil || !usesOnly(only, func(i int) bool { return i == mark }) || mayRaise(p) || !o.on("PushFilterThroughFullJoin") {
			stay = append(stay, p)
			continue
		}
		o.fire("PushFilterThroughFullJoin")
		left = append(left, side(p, func() expr.Expr { return l }))
		right = append(right, side(p, func() expr.Expr { return &expr.Column{Index: r.Index - nl, Typ: r.Typ, Name: r.Name} }))
	}
	return left, right, stay
}

// LeftToAnti: who asks for the rows without a partner gets an anti join.
//
//	a LEFT JOIN b ON a.k = b.k WHERE b.k IS NULL  →  a WHERE NOT EXISTS (b WHERE a.k = b.k)
func (o *optimizer) leftToAnti(j *plan.Join, preds []expr.Expr) plan.Rel {
	nl := plan.Arity(j.Left)
	var right []plan.Column
	at := slices.IndexFunc(preds, func(p expr.Expr) bool {
		n, ok := p.(*expr.IsNull)
		if !ok || n.Not {
			return false
		}
		c, ok := n.Arg.(*expr.Column)
		if !ok || c.Index < nl {
			return false
		}
		if right == nil {
			right = j.Right.Columns()
		}
		only := func(col int) bool { return col == c.Index }
		return right[c.Index-nl].NotNull || slices.ContainsFunc(j.On, func(p expr.Expr) bool { return rejectsNull(p, only) })
	})
	if at < 0 || !o.rule("LeftToAnti") {
		return nil
	}
	anti := &plan.Join{Kind: plan.JoinAnti, Left: j.Left, Right: j.Right, On: j.On}
	return o.push(nullExtended(anti, 0, j.Columns()), slices.Delete(slices.Clone(preds), at, at+1))
}

// PushFilterIntoJoin: what concerns one side of a join is decided on that side.
//
//	a LEFT JOIN b ON a.k = b.k AND b.x > 1 WHERE a.y = 2
//	  →  (a WHERE y = 2) LEFT JOIN (b WHERE x > 1) ON a.k = b.k
func (o *optimizer) pushLeft(j *plan.Join, preds []expr.Expr) plan.Rel {
	nl := plan.Arity(j.Left)
	onRight := func(col int) bool { return col >= nl }
	if o.on("OuterToInner") && slices.ContainsFunc(preds, func(p expr.Expr) bool { return rejectsNull(p, onRight) }) {
		o.fire("OuterToInner")
		c := *j
		c.Kind = plan.JoinInner
		return o.push(&c, preds)
	}
	if out := o.leftToAnti(j, preds); out != nil {
		return out
	}
	left, stay := split(preds, func(p expr.Expr) bool { return usesOnly(p, func(col int) bool { return col < nl }) })
	left, stay = o.moved("PushFilterIntoJoin", left, stay, preds)
	out := o.sides(j, conjuncts(j.On), left, false)
	return filter(out, stay...)
}

// pushSemi pushes predicates into a semi or anti join: those above are all on
// the left.
func (o *optimizer) pushSemi(j *plan.Join, preds []expr.Expr) plan.Rel {
	left, stay := o.moved("PushFilterIntoJoin", preds, nil, preds)
	return filter(o.sides(j, conjuncts(j.On), left, j.Kind == plan.JoinSemi), stay...)
}

// sides rebuilds a left, semi or anti join whose left side is filtered by left:
// the parts of ON that concern the right side go there, and if semi those of
// the left side to the left.
func (o *optimizer) sides(j *plan.Join, on, left []expr.Expr, semi bool) plan.Rel {
	nl := plan.Arity(j.Left)
	isLeft := func(col int) bool { return col < nl }
	isRight := func(col int) bool { return col >= nl }
	var keep, right []expr.Expr
	for _, p := range on {
		pushable := expr.VolatilityOf(p) != expr.Volatile && expr.UsesColumns(p) && o.on("PushFilterIntoJoin")
		switch {
		case pushable && usesOnly(p, isRight):
			o.fire("PushFilterIntoJoin")
			right = append(right, expr.Remap(p, func(i int) int { return i - nl }))
		case pushable && semi && usesOnly(p, isLeft):
			o.fire("PushFilterIntoJoin")
			left = append(slices.Clip(left), p)
		default:
			keep = append(keep, p)
		}
	}
	right = append(right, o.inferred(j, keep, left)...)
	l, r := o.push(j.Left, left), o.push(j.Right, right)
	if l == j.Left && r == j.Right && len(keep) == len(j.On) {
		return j
	}
	c := *j
	c.Left, c.Right, c.On = l, r, keep
	return &c
}

// hasFilter reports whether r is filtered by p already, at its top.
func hasFilter(r plan.Rel, p expr.Expr) bool {
	switch r := r.(type) {
	case *plan.Filter:
		return slices.ContainsFunc(r.Preds, func(q expr.Expr) bool { return expr.Equal(p, q) }) || hasFilter(r.Input, p)
	case *plan.Project:
		return usesOnly(p, func(col int) bool { _, ok := r.Exprs[col].(*expr.Column); return ok }) &&
			hasFilter(r.Input, expr.Substitute(p, r.Exprs))
	case *plan.Distinct:
		return hasFilter(r.Input, p)
	case *plan.Aggregate:
		return usesOnly(p, func(col int) bool { return col < len(r.GroupBy) }) && hasFilter(r.Input, expr.Substitute(p, r.GroupBy))
	case *plan.Join:
		nl := plan.Arity(r.Left)
		if usesOnly(p, func(col int) bool { return col < nl }) {
			return r.Kind != plan.JoinRight && r.Kind != plan.JoinFull && hasFilter(r.Left, p)
		}
		return r.Kind == plan.JoinInner && usesOnly(p, func(col int) bool { return col >= nl }) &&
			hasFilter(r.Right, expr.Remap(p, func(i int) int { return i - nl }))
	}
	return false
}

// SinkSemiJoin: a semi or anti join that concerns one input of an inner join is
// done on that input, before the join multiplies its rows.
//
//	(a JOIN b) WHERE EXISTS (c WHERE c.x = a.x)  →  (a WHERE EXISTS (…)) JOIN b
func (o *optimizer) sinkSemi(j *plan.Join) plan.Rel {
	if !o.on("SinkSemiJoin") {
		return nil
	}
	nl := plan.Arity(j.Left)
	switch in := j.Left.(type) {
	case *plan.Project:
		if !columnsOnly(in) {
			return nil
		}
		c := *j
		c.Left, c.On = in.Input, throughLeft(j.On, nl, in)
		n := o.sinkSemi(&c)
		if n == nil {
			return nil
		}
		return plan.WithInput(in, n)
	case *plan.Filter:
		c := *j
		c.Left = in.Input
		n := o.sinkSemi(&c)
		if n == nil {
			return nil
		}
		return plan.WithInput(in, n)
	case *plan.Join:
		return o.sinkIntoJoin(j, in, nl)
	}
	return nil
}

// sinkIntoJoin puts the semi join j onto one side of its left input in.
func (o *optimizer) sinkIntoJoin(j, in *plan.Join, nl int) plan.Rel {
	if in.Kind != plan.JoinInner && in.Kind != plan.JoinLeft {
		return nil
	}
	nll := plan.Arity(in.Left)
	usesL, usesR := false, false
	for _, p := range j.On {
		expr.Columns(p, func(c *expr.Column) {
			usesL = usesL || c.Index < nll
			usesR = usesR || (c.Index >= nll && c.Index < nl)
		})
	}
	c, n := *j, *in
	switch {
	case usesL && !usesR:
		c.Left = in.Left
		c.On = remapAll(j.On, func(i int) int {
			if i >= nl {
				return i - nl + nll
			}
			return i
		})
		n.Left = &c
	case usesR && !usesL && in.Kind == plan.JoinInner:
		c.Left = in.Right
		c.On = remapAll(j.On, func(i int) int { return i - nll })
		n.Right = &c
	default:
		return nil
	}
	o.fire("SinkSemiJoin")
	return &n
}

func remapAll(es []expr.Expr, to func(int) int) []expr.Expr {
	out := make([]expr.Expr, len(es))
	for i, e := range es {
		out[i] = expr.Remap(e, to)
	}
	return out
}

// throughLeft rewrites a join condition when the projection p of its left side
// (nl columns) is taken away.
func throughLeft(on []expr.Expr, nl int, p *plan.Project) []expr.Expr {
	n := plan.Arity(p.Input)
	return remapAll(on, func(i int) int {
		if i >= nl {
			return i - nl + n
		}
		return p.Exprs[i].(*expr.Column).Index
	})
}

// columnsOnly reports whether a projection only picks columns.
func columnsOnly(p *plan.Project) bool {
	for _, e := range p.Exprs {
		if _, ok := e.(*expr.Column); !ok {
			return false
		}
	}
	return true
}
