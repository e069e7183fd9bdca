package planner

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// outerFunc maps an outer column that is free in the tree being mapped. level
// is how many scopes (subqueries, right sides of lateral joins) of that tree
// are around it, so c.Depth-level is its depth as seen from the tree's root.
type outerFunc func(c *expr.OuterColumn, level int) expr.Expr

// mapOuter replaces the free outer columns of r.
func mapOuter(r plan.Rel, level int, f outerFunc) plan.Rel {
	r = plan.MapExprs(r, func(e expr.Expr) expr.Expr { return mapOuterExpr(e, level, f) })
	j, ok := r.(*plan.Join)
	if !ok || !j.Lateral {
		return plan.MapChildren(r, func(c plan.Rel) plan.Rel { return mapOuter(c, level, f) })
	}
	left, right := mapOuter(j.Left, level, f), mapOuter(j.Right, level+1, f)
	if left == j.Left && right == j.Right {
		return j
	}
	c := *j
	c.Left, c.Right = left, right
	return &c
}

// mapOuterExpr replaces the free outer columns of an expression.
func mapOuterExpr(e expr.Expr, level int, f outerFunc) expr.Expr {
	switch e := e.(type) {
	case nil:
		return nil
	case *expr.OuterColumn:
		if e.Depth <= level {
			return e
		}
		return f(e, level)
	case *expr.Subquery:
		rel := mapOuter(e.Rel.(plan.Rel), level+1, f)
		test := mapOuterExpr(e.Test, level+1, f)
		if rel == e.Rel && test == e.Test {
			return e
		}
		c := *e
		c.Rel, c.Test = rel, test
		return &c
	}
	return expr.MapChildren(e, func(c expr.Expr) expr.Expr { return mapOuterExpr(c, level, f) })
}

// asWritten shows f the free outer columns of a query in the order in which
// PostgreSQL comes upon them: its targets, conditions of joins, WHERE, HAVING, and
// then the subqueries in FROM.
func asWritten(r plan.Rel, level int, f outerFunc) {
	type item struct {
		rel   plan.Rel
		level int
	}
	var from []item
	own := func(r plan.Rel, level int) {
		plan.Exprs(r, func(e expr.Expr) { mapOuterExpr(e, level, f) })
	}
	var inFrom, inQuery func(r plan.Rel, level int)
	inFrom = func(r plan.Rel, level int) {
		switch r := r.(type) {
		case *plan.Join:
			inFrom(r.Left, level)
			right := level
			if r.Lateral {
				right++
			}
			inFrom(r.Right, right)
			own(r, level)
		case *plan.Filter:
			inFrom(r.Input, level)
			own(r, level)
		default:
			from = append(from, item{r, level})
		}
	}
	inQuery = func(r plan.Rel, level int) {
		switch r.(type) {
		case *plan.Join:
			inFrom(r, level)
			return
		case *plan.Filter:
			if _, grouped := plan.Input(r).(*plan.Aggregate); !grouped {
				inFrom(r, level)
				return
			}
			inQuery(plan.Input(r), level)
			own(r, level)
			return
		}
		own(r, level)
		plan.Children(r, func(c plan.Rel) { inQuery(c, level) })
	}
	inQuery(r, level)
	for _, i := range from {
		asWritten(i.rel, i.level, f)
	}
}

// deepen makes r usable one scope deeper: its free outer columns skip the new scope.
func deepen(r plan.Rel) plan.Rel {
	return mapOuter(r, 0, func(c *expr.OuterColumn, _ int) expr.Expr { return atDepth(c, c.Depth+1) })
}

// mapRefs rewrites all that e, an expression over the columns of a scope,
// refers to: col maps its columns, outer the outer columns in it and in its
// subqueries. level is the number of subqueries around; an outer column whose
// Depth equals its level (> 0) is one of the scope's own columns.
func mapRefs(e expr.Expr, col func(c *expr.Column) expr.Expr, outer outerFunc) expr.Expr {
	switch e := e.(type) {
	case *expr.Column:
		return col(e)
	case *expr.OuterColumn:
		return outer(e, 0)
	case *expr.Subquery:
		inner := func(c *expr.OuterColumn, level int) expr.Expr { return outer(c, level+1) }
		rel := mapOuter(e.Rel.(plan.Rel), 0, inner)
		test := mapOuterExpr(e.Test, 0, inner)
		if rel == e.Rel && test == e.Test {
			return e
		}
		c := *e
		c.Rel, c.Test = rel, test
		return &c
	}
	return expr.MapChildren(e, func(c expr.Expr) expr.Expr { return mapRefs(c, col, outer) })
}

func atDepth(c *expr.OuterColumn, depth int) *expr.OuterColumn {
	return &expr.OuterColumn{Depth: depth, Index: c.Index, Typ: c.Typ, Name: c.Name}
}

// hasSubquery reports whether e contains a subquery.
func hasSubquery(e expr.Expr) bool {
	return e != nil && expr.Any(e, func(n expr.Expr) bool { _, ok := n.(*expr.Subquery); return ok })
}

// hasOuter reports whether e, which has no subquery, refers to an outer column.
func hasOuter(e expr.Expr) bool {
	return e != nil && expr.Any(e, func(n expr.Expr) bool { _, ok := n.(*expr.OuterColumn); return ok })
}

// conjuncts flattens nested ANDs into a list.
func conjuncts(es []expr.Expr) []expr.Expr {
	flat := true
	for _, e := range es {
		if l, ok := e.(*expr.Logic); ok && l.And {
			flat = false
		}
	}
	if flat {
		return es
	}
	var out []expr.Expr
	for _, e := range es {
		if l, ok := e.(*expr.Logic); ok && l.And {
			out = append(out, conjuncts(l.Args)...)
		} else {
			out = append(out, e)
		}
	}
	return out
}

// filter is r filtered by preds, if there are any.
func filter(r plan.Rel, preds ...expr.Expr) plan.Rel {
	if len(preds) == 0 {
		return r
	}
	return &plan.Filter{Input: r, Preds: preds}
}

// project is the columns picked of r, in that order.
func project(r plan.Rel, picked []int) plan.Rel {
	cols := r.Columns()
	if len(picked) == len(cols) {
		same := true
		for i, c := range picked {
			same = same && i == c
		}
		if same {
			return r
		}
	}
	p := &plan.Project{Input: r, Exprs: make([]expr.Expr, len(picked)), Cols: make([]plan.Column, len(picked))}
	for i, c := range picked {
		p.Exprs[i], p.Cols[i] = plan.RefTo(cols, c), cols[c]
	}
	return p
}

// firstColumns is the first n columns of r.
func firstColumns(r plan.Rel, n int) plan.Rel {
	if plan.Arity(r) == n {
		return r
	}
	return project(r, span(0, n))
}

// extend is r with exprs over its columns appended.
func extend(r plan.Rel, exprs []expr.Expr, cols []plan.Column) plan.Rel {
	if len(exprs) == 0 {
		return r
	}
	in := r.Columns()
	return &plan.Project{
		Input: r,
		Exprs: append(plan.Refs(in), exprs...),
		Cols:  append(append(make([]plan.Column, 0, len(in)+len(cols)), in...), cols...),
	}
}

// span is lo, lo+1, … hi-1.
func span(lo, hi int) []int {
	out := make([]int, hi-lo)
	for i := range out {
		out[i] = lo + i
	}
	return out
}

// boolConst is TRUE or FALSE.
func boolConst(v bool) *expr.Const {
	return &expr.Const{Val: boolVec(v), Typ: types.Bool}
}

func boolVec(v bool) *columnar.Vec { return columnar.FromSlice([]bool{v}, nil) }

// nullConst is NULL of a type.
func nullConst(t types.Type) *expr.Const {
	b := columnar.NewBuilder(t.Kind(), 1)
	b.Null()
	return &expr.Const{Val: b.Build(), Typ: t}
}

// int64Const is an int8 literal.
func int64Const(v int64) *expr.Const {
	return &expr.Const{Val: columnar.FromSlice([]int64{v}, nil), Typ: types.Int8}
}

// int16Const is an int2 literal.
func int16Const(v int16) *expr.Const {
	return &expr.Const{Val: columnar.FromSlice([]int16{v}, nil), Typ: types.Int2}
}

// int32Const is an int4 literal.
func int32Const(v int32) *expr.Const {
	return &expr.Const{Val: columnar.FromSlice([]int32{v}, nil), Typ: types.Int4}
}
