package planner

import (
	"math"
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// WindowToTopK: a filter on row_number() or rank() keeps the first rows of each
// partition, which TopK maintains without numbering all the others.
//
//	SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY x) AS n FROM t) WHERE n <= 3
//	  →  the first 3 rows per k by x, numbered
//
// rank() <= k is k rows with ties; the ranks, if they are read, are then
// computed over those.
func (o *optimizer) numbered(r plan.Rel) plan.Rel {
	f, ok := r.(*plan.Filter)
	if !ok {
		return r
	}
	w, ok := f.Input.(*plan.Window)
	if !ok || len(w.Calls) != 1 || !o.on("WindowToTopK") {
		return r
	}
	b := bounds{col: plan.Arity(w.Input), low: 1, high: math.MaxInt64}
	rest := b.take(f.Preds)
	if b.high == math.MaxInt64 || (w.Calls[0].Name != "row_number" && (w.Calls[0].Name != "rank" || b.low > 1)) {
		return r
	}
	o.fire("WindowToTopK")
	if b.high < b.low {
		return empty(w.Cols)
	}
	n := b.col
	in, part, order := sortColumns(w)
	t := &plan.TopK{Input: in, Partition: part, Order: order, Limit: int64Const(b.high - b.low + 1)}
	if b.low > 1 {
		t.Offset = int64Const(b.low - 1)
	}
	var out plan.Rel
	switch {
	case w.Calls[0].Name == "rank":
		t.WithTies = true
		c := *w
		c.Input = firstColumns(t, n)
		out = &c
	case b.low == b.high:
		out = extend(firstColumns(t, n), []expr.Expr{int64Const(b.low)}, w.Cols[n:])
	default:
		t.RowNumber = true
		out = project(t, append(span(0, n), plan.Arity(in)))
	}
	return filter(out, rest...)
}

// sortColumns is a window's input with its partition and order as columns.
func sortColumns(w *plan.Window) (in plan.Rel, part []int, order []plan.SortKey) {
	var exprs []expr.Expr
	var cols []plan.Column
	n := plan.Arity(w.Input)
	place := func(e expr.Expr) int {
		if c, ok := e.(*expr.Column); ok {
			return c.Index
		}
		exprs, cols = append(exprs, e), append(cols, plan.Column{Type: e.Type()})
		return n + len(exprs) - 1
	}
	for _, e := range w.Partition {
		if p := place(e); !slices.Contains(part, p) {
			part = append(part, p)
		}
	}
	for _, s := range w.Order {
		order = append(order, plan.SortKey{Col: place(s.Expr), Desc: s.Desc, NullsFirst: s.NullsFirst})
	}
	return extend(w.Input, exprs, cols), part, order
}

// bounds is the range that predicates leave to an integer column.
type bounds struct {
	col       int
	low, high int64
}

// take narrows the bounds by the predicates that compare the column with a
// constant, and returns the others.
func (b *bounds) take(preds []expr.Expr) (rest []expr.Expr) {
	for _, p := range preds {
		if !b.narrow(p) {
			rest = append(rest, p)
		}
	}
	return rest
}

func (b *bounds) narrow(p expr.Expr) bool {
	c, ok := p.(*expr.Call)
	if !ok || !isComparison(c.Fn) || len(c.Args) != 2 {
		return false
	}
	op, l, r := c.Fn.Name, c.Args[0], c.Args[1]
	if _, ok := r.(*expr.Column); ok {
		l, r = r, l
		op = map[string]string{"=": "=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}[op]
	}
	col, ok := l.(*expr.Column)
	v, known := plan.IntConst(r)
	if !ok || !known || col.Index != b.col {
		return false
	}
	switch op {
	case "=":
		b.low, b.high = max(b.low, v), min(b.high, v)
	case "<":
		b.high = min(b.high, v-1)
	case "<=":
		b.high = min(b.high, v)
	case ">":
		b.low = max(b.low, v+1)
	case ">=":
		b.low = max(b.low, v)
	default:
		return false
	}
	return true
}
