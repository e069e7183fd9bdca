package planner

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// The first step of lowering turns every expr.Subquery into a lateral join: the
// subquery becomes the right side, the expression around it reads the join's
// columns. What a lateral join's right side sees as outer columns is then the
// one form of correlation left, which lower.go removes.
//
//	WHERE EXISTS (q)       semi join lateral q
//	WHERE x IN (q)         semi join lateral (q filtered by x = column)
//	WHERE x NOT IN (q)     anti joins: none equal, and none NULL
//	SELECT (q)             left join lateral q, asserted to have at most one row
//	SELECT EXISTS (q)      left join lateral (one row if q is not empty), IS NOT NULL
//	SELECT x IN (q)        CASE WHEN EXISTS (equal) … WHEN EXISTS (NULL) …
//	SELECT ARRAY(q)        cross join lateral (array_agg of q)

// unnester removes subqueries from the expressions of a plan.
type unnester struct {
	err    error
	root   plan.Rel
	lastID int // of Let; 0: not looked for
}

// unnest removes subqueries from the expressions of r; lateral joins remain.
func unnest(r plan.Rel) (plan.Rel, error) {
	if !needsUnnest(r) {
		return r, nil
	}
	u := &unnester{root: r}
	out := u.rel(r)
	return out, u.err
}

func needsUnnest(r plan.Rel) bool {
	found := false
	plan.Walk(r, func(n plan.Rel) bool {
		if !found {
			plan.Exprs(n, func(e expr.Expr) { found = found || hasSubquery(e) })
		}
		return !found
	})
	return found
}

func (u *unnester) fail(err error) {
	if u.err == nil {
		u.err = err
	}
}

func (u *unnester) rel(r plan.Rel) plan.Rel {
	r = plan.MapChildren(r, u.rel)
	switch r.(type) {
	case *plan.TopK, *plan.Sort: // LIMIT 1 must be seen to be 1
		r = plan.MapExprs(r, expr.FoldConstants)
	}
	found := false
	plan.Exprs(r, func(e expr.Expr) { found = found || hasSubquery(e) })
	if !found {
		return r
	}
	switch r := r.(type) {
	case *plan.Filter:
		return u.filter(r)
	case *plan.Join:
		return u.join(r)
	case *plan.TopK:
		return u.rel(limitByWindow(r.Input, r.Partition, r.Order, r.Limit, r.Offset, r.WithTies))
	case *plan.Sort:
		c := *r
		c.Input = u.rel(limitByWindow(r.Input, nil, r.Order, r.Limit, r.Offset, false))
		c.Limit, c.Offset = nil, nil
		return &c
	}
	in := plan.Input(r)
	n := plan.Arity(in)
	x := &extraction{u: u, cur: in}
	out := plan.WithInput(plan.MapExprs(r, x.expr), in)
	in = x.rel()
	out = plan.WithInput(out, in)
	added := plan.Arity(in) - n
	switch o := out.(type) {
	case *plan.Window:
		return withoutMiddle(o, &o.Cols, in, n, added)
	case *plan.FlatMap:
		return withoutMiddle(o, &o.Cols, in, n, added)
	}
	return out
}

// withoutMiddle projects away the columns that extraction added to the input
// of a node that passes its input's columns on.
func withoutMiddle(r plan.Rel, cols *[]plan.Column, in plan.Rel, n, added int) plan.Rel {
	all := append(append([]plan.Column{}, in.Columns()...), (*cols)[n:]...)
	*cols = all
	return project(r, append(span(0, n), span(n+added, len(all))...))
}

// limitByWindow is LIMIT and OFFSET by expressions that are not constant: the
// rows are numbered, and the numbers compared.
//
//	LIMIT l OFFSET o  →  row_number() > o AND (l IS NULL OR row_number() <= o + l)
func limitByWindow(in plan.Rel, part []int, order []plan.SortKey, limit, offset expr.Expr, ties bool) plan.Rel {
	cols := in.Columns()
	n := len(cols)
	w := &plan.Window{Input: in}
	for _, p := range part {
		w.Partition = append(w.Partition, plan.RefTo(cols, p))
	}
	for _, k := range order {
		w.Order = append(w.Order, plan.SortExpr{Expr: plan.RefTo(cols, k.Col), Desc: k.Desc, NullsFirst: k.NullsFirst})
	}
	frame := plan.Frame{Start: plan.FrameBound{Kind: plan.UnboundedPreceding}, End: plan.FrameBound{Kind: plan.CurrentRow}}
	w.Cols = append(w.Cols, cols...)
	for _, name := range []string{"row_number", "rank"} {
		w.Calls = append(w.Calls, plan.WindowCall{Name: name, Typ: types.Int8, Frame: frame})
		w.Cols = append(w.Cols, plan.Column{Name: name, Type: types.Int8, NotNull: true})
	}
	number, last := plan.RefTo(w.Cols, n), plan.RefTo(w.Cols, n)
	if ties {
		last = plan.RefTo(w.Cols, n+1)
	}
	skip := expr.Expr(int64Const(0))
	var preds []expr.Expr
	if offset != nil {
		skip = &expr.Coalesce{Args: []expr.Expr{asInt8(offset), int64Const(0)}, Typ: types.Int8}
		preds = append(preds, mustOp(">", number, skip))
	}
	if limit != nil {
		l := asInt8(limit)
		preds = append(preds, &expr.Logic{Args: []expr.Expr{
			&expr.IsNull{Arg: l},
			mustOp("<=", mustOp("-", last, skip), l),
		}})
	}
	return firstColumns(filter(w, preds...), n)
}

// asInt8 is an integer expression as int8.
func asInt8(e expr.Expr) expr.Expr {
	if e.Type().OID == types.OIDInt8 {
		return e
	}
	c, err := expr.Coerce(e, types.Int8, expr.CastAssignment, 0)
	if err != nil {
		return e
	}
	return c
}

// mustOp resolves an operator that is known to exist.
func mustOp(op string, l, r expr.Expr) expr.Expr {
	e, err := expr.NewOp(op, l, r, 0)
	if err != nil {
		panic("planner: operator " + op + " of " + err.Error())
	}
	return e
}

// filter handles WHERE and HAVING: top-level conjuncts that are EXISTS, IN and
// the like become semi and anti joins; others read columns.
func (u *unnester) filter(r *plan.Filter) plan.Rel {
	n := plan.Arity(r.Input)
	var plain, rest []expr.Expr
	for _, p := range conjuncts(r.Preds) {
		if hasSubquery(p) {
			rest = append(rest, p)
		} else {
			plain = append(plain, p)
		}
	}
	x := &extraction{u: u, cur: filter(r.Input, plain...)}
	for _, p := range rest {
		if !u.conjunct(x, p) {
			e := x.expr(p)
			x.cur = filter(x.cur, e)
		}
	}
	return firstColumns(x.rel(), n)
}

// conjunct turns a conjunct of a WHERE that is a subquery, or its negation, into
// a semi or anti join; it reports whether it could.
func (u *unnester) conjunct(x *extraction, p expr.Expr) bool {
	negated := false
	for {
		not, ok := p.(*expr.Not)
		if !ok {
			break
		}
		p, negated = not.Arg, !negated
	}
	s, ok := p.(*expr.Subquery)
	if !ok {
		return false
	}
	rel := s.Rel.(plan.Rel)
	switch {
	case s.Kind == expr.SubqueryExists && !negated:
		x.semi(plan.JoinSemi, rel)
	case s.Kind == expr.SubqueryExists:
		x.semi(plan.JoinAnti, rel)
	case s.Kind == expr.SubqueryAny && !negated:
		x.semi(plan.JoinSemi, filter(rel, conjuncts([]expr.Expr{x.onceARow(s.Test)})...))
	case s.Kind == expr.SubqueryAll && negated:
		x.semi(plan.JoinSemi, filter(rel, &expr.Not{Arg: x.onceARow(s.Test)}))
	case s.Kind == expr.SubqueryAny || s.Kind == expr.SubqueryAll:
		test := x.onceARow(s.Test)
		hit := test
		if s.Kind == expr.SubqueryAll {
			hit = &expr.Not{Arg: test}
		}
		witnesses := u.nullWitnesses(test, x.cur.Columns(), rel.Columns())
		if len(witnesses) > 0 && volatileRel(rel) {
			if refersToScope(rel) {
				v := x.aggregated(rel, s.Kind == expr.SubqueryAny, hit, test)
				if negated {
					v = &expr.Not{Arg: v}
				}
				x.cur = filter(x.cur, v)
				return true
			}
			rel = x.shared(rel)
		}
		x.semi(plan.JoinAnti, filter(rel, conjuncts([]expr.Expr{hit})...))
		for _, w := range witnesses {
			x.semi(plan.JoinAnti, filter(rel, w...))
		}
	default:
		return false
	}
	return true
}

// nullWitnesses lists filters over a subquery's rows; if one of them lets a row
// through, then test is NULL for some row (and true or false for the others).
// A comparison of an outer with an inner value is split into two, so that
// neither needs to compare all pairs:
//
//	(x = y) IS NULL  →  x IS NULL, any row;  y IS NULL, any x
func (u *unnester) nullWitnesses(test expr.Expr, outer, inner []plan.Column) [][]expr.Expr {
	if !mayBeNull(test, outer, inner) {
		return nil
	}
	c, ok := test.(*expr.Call)
	if !ok || !c.Fn.Strict || len(c.Args) != 2 || !isComparison(c.Fn) || hasSubquery(test) {
		return [][]expr.Expr{{&expr.IsNull{Arg: test}}}
	}
	var out [][]expr.Expr
	for _, a := range c.Args {
		if mayBeNull(a, outer, inner) {
			out = append(out, []expr.Expr{&expr.IsNull{Arg: a}})
		}
	}
	return out
}

// isComparison reports whether a function is one of the comparison operators,
// which are NULL only if an argument is.
func isComparison(f *expr.Function) bool {
	if !f.Operator || f.Fuzzy {
		return false
	}
	switch f.Name {
	case "=", "<>", "<", ">", "<=", ">=":
		return true
	}
	return false
}

// mayBeNull reports whether e, over the columns inner and (at depth 1) outer,
// can be NULL.
func mayBeNull(e expr.Expr, outer, inner []plan.Column) bool {
	switch e := e.(type) {
	case *expr.Column:
		return e.Index >= len(inner) || !inner[e.Index].NotNull
	case *expr.OuterColumn:
		return e.Depth != 1 || e.Index >= len(outer) || !outer[e.Index].NotNull
	case *expr.Const:
		return e.Val.Null(0)
	case *expr.IsNull, *expr.Row, *expr.ArrayCtor:
		return false
	case *expr.Not:
		return mayBeNull(e.Arg, outer, inner)
	case *expr.Logic:
		return anyMayBeNull(e.Args, outer, inner)
	case *expr.Call:
		if _, _, same := plan.IsSame(e); same {
			return false
		}
		if isComparison(e.Fn) || (e.Fn.Strict && neverNull(e.Fn)) {
			return anyMayBeNull(e.Args, outer, inner)
		}
	case *expr.Coalesce:
		for _, a := range e.Args {
			if !mayBeNull(a, outer, inner) {
				return false
			}
		}
	case *expr.Case:
		if e.Else == nil || mayBeNull(e.Else, outer, inner) {
			return true
		}
		for _, w := range e.Whens {
			if mayBeNull(w.Then, outer, inner) {
				return true
			}
		}
		return false
	case *expr.Subquery:
		return e.Kind != expr.SubqueryExists && e.Kind != expr.SubqueryArray
	}
	return true
}

func anyMayBeNull(es []expr.Expr, outer, inner []plan.Column) bool {
	for _, e := range es {
		if mayBeNull(e, outer, inner) {
			return true
		}
	}
	return false
}

// neverNull reports whether a strict function gives no NULL for arguments that
// are not NULL: arithmetic and casts between numbers, dates and strings.
func neverNull(f *expr.Function) bool {
	if f.Operator {
		switch f.Name {
		case "+", "-", "*", "/", "%", "||", "~~", "!~~":
			return f.Ret.Kind() != columnar.KindBytes || f.Ret.OID == types.OIDNumeric || f.Ret.OID == types.OIDText
		}
		return false
	}
	switch f.Name {
	case "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "date", "timestamp", "timestamptz":
		return true
	}
	return false
}

// join handles subqueries in ON.
func (u *unnester) join(j *plan.Join) plan.Rel {
	var plain, rest []expr.Expr
	for _, p := range conjuncts(j.On) {
		if hasSubquery(p) {
			rest = append(rest, p)
		} else {
			plain = append(plain, p)
		}
	}
	c := *j
	switch j.Kind {
	case plan.JoinInner:
		c.On = plain
		return u.filter(&plan.Filter{Input: &c, Preds: rest})
	case plan.JoinRight:
		return u.swapped(j)
	case plan.JoinFull:
		return u.fullJoin(j, plain, rest)
	}
	// ON moves into the right side, which becomes lateral:
	//	l LEFT JOIN r ON p(l, r)  →  l LEFT JOIN LATERAL (SELECT * FROM r WHERE p(l, r))
	nl := plan.Arity(j.Left)
	right := j.Right
	if !j.Lateral {
		right = deepen(right)
	}
	on := make([]expr.Expr, 0, len(j.On))
	for _, p := range append(plain, rest...) {
		on = append(on, onToRight(p, nl))
	}
	c.On, c.Lateral = nil, true
	c.Right = u.filter(&plan.Filter{Input: right, Preds: on})
	return &c
}

// onToRight turns an expression over the columns of a join (nl of the left
// side) into one over the right side's, inside the lateral scope.
func onToRight(e expr.Expr, nl int) expr.Expr {
	return mapRefs(e,
		func(c *expr.Column) expr.Expr {
			if c.Index < nl {
				return &expr.OuterColumn{Depth: 1, Index: c.Index, Typ: c.Typ, Name: c.Name}
			}
			return &expr.Column{Index: c.Index - nl, Typ: c.Typ, Name: c.Name}
		},
		func(c *expr.OuterColumn, level int) expr.Expr {
			if c.Depth != level || c.Index < nl {
				return atDepth(c, c.Depth+1)
			}
			o := atDepth(c, c.Depth)
			o.Index -= nl
			return o
		})
}

// swapped is a right join as a left join.
func (u *unnester) swapped(j *plan.Join) plan.Rel {
	nl, nr := plan.Arity(j.Left), plan.Arity(j.Right)
	swap := func(i int) int {
		if i < nl {
			return i + nr
		}
		return i - nl
	}
	c := plan.Join{Kind: plan.JoinLeft, Left: j.Right, Right: j.Left}
	for _, p := range j.On {
		c.On = append(c.On, mapRefs(p,
			func(c *expr.Column) expr.Expr {
				return &expr.Column{Index: swap(c.Index), Typ: c.Typ, Name: c.Name}
			},
			func(c *expr.OuterColumn, level int) expr.Expr {
				if c.Depth != level {
					return c
				}
				o := atDepth(c, c.Depth)
				o.Index = swap(o.Index)
				return o
			}))
	}
	return project(u.join(&c), append(span(nr, nr+nl), span(0, nr)...))
}

// fullJoin computes each subquery in ON on the side that it refers to.
func (u *unnester) fullJoin(j *plan.Join, plain, rest []expr.Expr) plan.Rel {
	nl, nr := plan.Arity(j.Left), plan.Arity(j.Right)
	sides := [2]*extraction{{u: u, cur: j.Left}, {u: u, cur: j.Right}}
	type placed struct{ side, col int }
	done := map[*expr.Column]placed{}
	var pull func(e expr.Expr) expr.Expr
	pull = func(e expr.Expr) expr.Expr {
		s, ok := e.(*expr.Subquery)
		if !ok {
			return expr.MapChildren(e, pull)
		}
		side, ok := sideOf(s, nl)
		if !ok {
			u.fail(pgerror.New(pgerror.FeatureNotSupported,
				"FULL JOIN is only supported with merge-joinable or hash-joinable join conditions"))
			return boolConst(true)
		}
		v := sides[side].expr(shiftSubquery(s, side*nl))
		return expr.Rewrite(v, func(n expr.Expr) expr.Expr {
			c, ok := n.(*expr.Column)
			if !ok {
				return n
			}
			p := &expr.Column{Index: c.Index, Typ: c.Typ, Name: c.Name}
			done[p] = placed{side, c.Index}
			return p
		})
	}
	on := make([]expr.Expr, 0, len(plain)+len(rest))
	for _, p := range append(plain, rest...) {
		on = append(on, pull(p))
	}
	el, er := plan.Arity(sides[0].cur), plan.Arity(sides[1].cur)
	for i, p := range on {
		on[i] = expr.Rewrite(p, func(n expr.Expr) expr.Expr {
			c, ok := n.(*expr.Column)
			if !ok {
				return n
			}
			at := c.Index
			if d, ok := done[c]; ok {
				at = d.col + d.side*el
			} else if at >= nl {
				at += el - nl
			}
			return &expr.Column{Index: at, Typ: c.Typ, Name: c.Name}
		})
	}
	full := &plan.Join{Kind: plan.JoinFull, Left: sides[0].rel(), Right: sides[1].rel(), On: on}
	if el == nl && er == nr {
		return full
	}
	return project(full, append(span(0, nl), span(el, el+nr)...))
}

// sideOf tells which side of a join a subquery in ON refers to: 0 left (or
// none), 1 right.
func sideOf(s *expr.Subquery, nl int) (side int, ok bool) {
	left, right := false, false
	mapRefs(s, func(c *expr.Column) expr.Expr { return c }, func(c *expr.OuterColumn, level int) expr.Expr {
		if c.Depth == level {
			left = left || c.Index < nl
			right = right || c.Index >= nl
		}
		return c
	})
	if right {
		side = 1
	}
	return side, !left || !right
}

// shiftSubquery moves what a subquery refers to in its scope by -by columns.
func shiftSubquery(s *expr.Subquery, by int) expr.Expr {
	return mapRefs(s, func(c *expr.Column) expr.Expr { return c }, func(c *expr.OuterColumn, level int) expr.Expr {
		if c.Depth != level || by == 0 {
			return c
		}
		o := atDepth(c, c.Depth)
		o.Index -= by
		return o
	})
}
