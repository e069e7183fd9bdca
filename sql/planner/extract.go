package planner

import (
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
		return x.quantified(s, true, s.Test)
	case expr.SubqueryAll:
		return x.quantified(s, false, &expr.Not{Arg: s.Test})
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

// quantified is `test ANY (q)` or `test ALL (q)` as a value. hit is the test
// that decides: true for ANY, false for ALL. Then comes NULL, then the rest.
//
//	x IN (q)  →  CASE WHEN EXISTS (q WHERE x = y) THEN true
//	                  WHEN EXISTS (q WHERE (x = y) IS NULL) THEN NULL
//	                  ELSE false END
func (x *extraction) quantified(s *expr.Subquery, decided bool, hit expr.Expr) expr.Expr {
	rel := s.Rel.(plan.Rel)
	witnesses := x.u.nullWitnesses(s.Test, x.cur.Columns(), rel.Columns())
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
	return &expr.Case{
		Whens: []expr.When{
			{Cond: found, Then: boolConst(decided)},
			{Cond: null, Then: nullConst(types.Bool)},
		},
		Else: boolConst(!decided),
		Typ:  types.Bool,
	}
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
