package planner

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// extraction rewrites expressions over a relation: each subquery becomes a
// lateral join on top of cur, whose first columns stay what they were.
type extraction struct {
	u    *unnester
	cur  plan.Rel
	done map[*expr.Subquery]expr.Expr
	lets []*plan.Let // what is read several times, see shared; without a body
}

// rel is cur with what it shares.
func (x *extraction) rel() plan.Rel {
	r := x.cur
	for _, l := range slices.Backward(x.lets) {
		r = &plan.Let{ID: l.ID, Value: l.Value, Body: r}
	}
	return r
}

// shared is a subquery that does not refer to cur, to be read several times but
// computed once: it has volatile functions.
func (x *extraction) shared(rel plan.Rel) plan.Rel {
	value := x.u.rel(withoutSort(mapOuter(rel, 0, func(c *expr.OuterColumn, level int) expr.Expr {
		if c.Depth <= level {
			return c
		}
		return atDepth(c, c.Depth-1)
	})))
	l := &plan.Let{ID: x.u.newID(), Value: value}
	x.lets = append(x.lets, l)
	return localGet(l.ID, value)
}

// newID numbers a Let.
func (u *unnester) newID() int {
	if u.lastID == 0 {
		u.lastID = lastID(u.root)
		eachExpr(u.root, func(e expr.Expr) {
			if s, ok := e.(*expr.Subquery); ok {
				u.lastID = max(u.lastID, lastID(s.Rel.(plan.Rel)))
			}
		})
	}
	u.lastID++
	return u.lastID
}

// refersToScope reports whether a subquery refers to the scope that it is in.
func refersToScope(rel plan.Rel) bool {
	found := false
	mapOuter(rel, 0, func(c *expr.OuterColumn, level int) expr.Expr {
		found = found || c.Depth == level+1
		return c
	})
	return found
}

// expr replaces the subqueries of e by expressions over cur.
func (x *extraction) expr(e expr.Expr) expr.Expr {
	s, ok := e.(*expr.Subquery)
	if !ok {
		return expr.MapChildren(e, x.expr)
	}
	if v, ok := x.done[s]; ok {
		return v
	}
	v := x.value(s)
	if x.done == nil {
		x.done = map[*expr.Subquery]expr.Expr{}
	}
	x.done[s] = v
	return v
}

// value is a subquery as a scalar.
func (x *extraction) value(s *expr.Subquery) expr.Expr {
	rel := s.Rel.(plan.Rel)
	switch s.Kind {
	case expr.SubqueryExists:
		return x.exists(rel)
	case expr.SubqueryAny:
		test := x.onceARow(s.Test)
		return x.quantified(rel, true, test, test)
	case expr.SubqueryAll:
		test := x.onceARow(s.Test)
		return x.quantified(rel, false, test, &expr.Not{Arg: test})
	case expr.SubqueryArray:
		return x.array(s, rel)
	}
	return x.scalar(rel)
}

// semi keeps (or, with JoinAnti, drops) the rows of cur for which rel has rows.
func (x *extraction) semi(kind plan.JoinKind, rel plan.Rel) {
	x.cur = &plan.Join{Kind: kind, Lateral: true, Left: x.cur, Right: x.u.rel(rel)}
}

// scalar is the single value of rel: NULL if it has no row, error 21000 if it
// has more than one.
func (x *extraction) scalar(rel plan.Rel) expr.Expr {
	right := x.u.rel(withoutSort(rel))
	if !plan.MaxOneRow(right) {
		right = &plan.Assert{Input: right}
	}
	kind := plan.JoinLeft
	if plan.ExactlyOneRow(right) {
		kind = plan.JoinInner
	}
	return x.attach(kind, right)
}

// attach joins right, which has at most one row, to cur; it gives its first column.
func (x *extraction) attach(kind plan.JoinKind, right plan.Rel) expr.Expr {
	at := plan.Arity(x.cur)
	x.cur = &plan.Join{Kind: kind, Lateral: true, Left: x.cur, Right: right}
	c := right.Columns()[0]
	return &expr.Column{Index: at, Typ: c.Type, Name: c.Name}
}

// exists is whether rel has rows, as a value.
func (x *extraction) exists(rel plan.Rel) expr.Expr {
	right := x.u.rel(withoutSort(rel))
	if plan.ExactlyOneRow(right) {
		return boolConst(true)
	}
	c := x.attach(plan.JoinLeft, &plan.Distinct{Input: &plan.Project{
		Input: right,
		Exprs: []expr.Expr{boolConst(true)},
		Cols:  []plan.Column{{Name: "exists", Type: types.Bool, NotNull: true}},
	}})
	return &expr.IsNull{Arg: c, Not: true}
}

// onceARow computes what is volatile on the left side of test, the condition of ANY
// or ALL, as columns of cur: once for a row of it, not for each pair.
func (x *extraction) onceARow(test expr.Expr) expr.Expr {
	if !volatileExpr(test) {
		return test
	}
	if expr.UsesColumns(test) {
		return expr.MapChildren(test, x.onceARow)
	}
	e := x.expr(mapRefs(test, func(c *expr.Column) expr.Expr { return c }, func(c *expr.OuterColumn, level int) expr.Expr {
		switch {
		case c.Depth <= level:
			return c
		case c.Depth == 1:
			return &expr.Column{Index: c.Index, Typ: c.Typ, Name: c.Name}
		}
		return atDepth(c, c.Depth-1)
	}))
	at := plan.Arity(x.cur)
	col := plan.Column{Name: "?column?", Type: e.Type()}
	x.cur = extend(x.cur, []expr.Expr{e}, []plan.Column{col})
	return &expr.OuterColumn{Depth: 1, Index: at, Typ: col.Type, Name: col.Name}
}

// quantified is `test ANY (q)` or `test ALL (q)` as a value. hit is the test
// that decides: true for ANY, false for ALL. Then comes NULL, then the rest.
//
//	x IN (q)  →  CASE WHEN EXISTS (q WHERE x = y) THEN true
//	                  WHEN EXISTS (q WHERE (x = y) IS NULL) THEN NULL
//	                  ELSE false END
func (x *extraction) quantified(rel plan.Rel, decided bool, test, hit expr.Expr) expr.Expr {
	witnesses := x.u.nullWitnesses(test, x.cur.Columns(), rel.Columns())
	if len(witnesses) > 0 && volatileRel(rel) {
		if refersToScope(rel) {
			return x.aggregated(rel, decided, hit, test)
		}
		rel = x.shared(rel)
	}
	found := x.exists(filter(rel, conjuncts([]expr.Expr{hit})...))
	if len(witnesses) == 0 {
		if decided {
			return found
		}
		return &expr.Not{Arg: found}
	}
	unknown := make([]expr.Expr, len(witnesses))
	for i, w := range witnesses {
		unknown[i] = x.exists(filter(rel, w...))
	}
	null := unknown[0]
	if len(unknown) > 1 {
		null = &expr.Logic{Args: unknown}
	}
	return threeValued(decided, found, null)
}

// threeValued is decided if found, else NULL if null, else the contrary.
func threeValued(decided bool, found, null expr.Expr) expr.Expr {
	return &expr.Case{
		Whens: []expr.When{
			{Cond: found, Then: boolConst(decided)},
			{Cond: null, Then: nullConst(types.Bool)},
		},
		Else: boolConst(!decided),
		Typ:  types.Bool,
	}
}

// aggregated is quantified for a volatile query that refers to cur, and must be
// computed once for each of its rows: both conditions are aggregates of one pass.
func (x *extraction) aggregated(rel plan.Rel, decided bool, hit, test expr.Expr) expr.Expr {
	tests := []expr.Expr{hit, &expr.IsNull{Arg: test}}
	p := &plan.Project{Input: withoutSort(rel), Exprs: tests}
	agg := &plan.Aggregate{}
	for i, name := range []string{"found", "unknown"} {
		p.Cols = append(p.Cols, plan.Column{Name: name, Type: types.Bool})
		fn, args, typ, err := expr.ResolveAggregate("bool_or", []expr.Expr{plan.RefTo(p.Cols, i)}, expr.CallOptions{})
		if err != nil {
			x.u.fail(err)
			return nullConst(types.Bool)
		}
		agg.Aggs = append(agg.Aggs, plan.AggCall{Fn: fn, Args: args, Typ: typ})
		agg.Cols = append(agg.Cols, plan.Column{Name: name, Type: typ})
	}
	agg.Input = x.u.rel(p)
	at := plan.Arity(x.cur)
	found := x.attach(plan.JoinInner, agg)
	return threeValued(decided, found, plan.RefTo(x.cur.Columns(), at+1))
}

// array is ARRAY(q): the first column of q collected in its order.
func (x *extraction) array(s *expr.Subquery, rel plan.Rel) expr.Expr {
	order := orderOf(rel)
	in := x.u.rel(withoutSort(rel))
	cols := in.Columns()
	fn, args, typ, err := expr.ResolveAggregate("array_agg", []expr.Expr{plan.RefTo(cols, 0)}, expr.CallOptions{Pos: s.Pos})
	if err != nil {
		x.u.fail(err)
		return nullConst(s.Typ)
	}
	empty, err := emptyArray(s.Typ)
	if err != nil {
		x.u.fail(err)
		return nullConst(s.Typ)
	}
	call := plan.AggCall{Fn: fn, Args: args, Typ: typ}
	for _, k := range order {
		call.OrderBy = append(call.OrderBy, plan.SortExpr{
			Expr: plan.RefTo(cols, k.Col), Desc: k.Desc, NullsFirst: k.NullsFirst,
		})
	}
	v := x.attach(plan.JoinInner, &plan.Aggregate{
		Input: in,
		Aggs:  []plan.AggCall{call},
		Cols:  []plan.Column{{Name: "array", Type: typ}},
	})
	return &expr.Coalesce{Args: []expr.Expr{v, empty}, Typ: s.Typ}
}

func emptyArray(t types.Type) (expr.Expr, error) {
	b := columnar.NewBuilder(columnar.KindBytes, 1)
	b.String("{}")
	c, err := expr.Coerce(&expr.Const{Val: b.Build(), Typ: types.Unknown}, t, expr.CastExplicit, 0)
	if err != nil {
		return nil, err
	}
	return expr.FoldConstants(c), nil
}

// orderOf is the order of the rows of a subquery, if it has one.
func orderOf(r plan.Rel) []plan.SortKey {
	switch r := r.(type) {
	case *plan.Sort:
		return r.Order
	case *plan.TopK:
		if len(r.Partition) == 0 {
			return r.Order
		}
	case *plan.Project:
		in := orderOf(r.Input)
		var out []plan.SortKey
		for _, k := range in {
			at := -1
			for i, e := range r.Exprs {
				if c, ok := e.(*expr.Column); ok && c.Index == k.Col {
					at = i
					break
				}
			}
			if at < 0 {
				return out
			}
			out = append(out, plan.SortKey{Col: at, Desc: k.Desc, NullsFirst: k.NullsFirst})
		}
		return out
	case *plan.Let:
		return orderOf(r.Body)
	}
	return nil
}

// withoutSort is r without a Sort at its root that only orders; a limited one
// becomes a TopK.
func withoutSort(r plan.Rel) plan.Rel {
	s, ok := r.(*plan.Sort)
	if !ok {
		return r
	}
	if s.Limit == nil && s.Offset == nil {
		return s.Input
	}
	return &plan.TopK{Input: s.Input, Order: s.Order, Limit: s.Limit, Offset: s.Offset}
}
