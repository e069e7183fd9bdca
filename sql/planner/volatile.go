package planner

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// settleVolatile computes volatile keys and arguments of groups and windows
// below them, since what becomes of an Aggregate or a Window may use such an
// expression several times, and a predicate on a key may be pushed below:
//
//	SELECT variance(random()) FROM t  →  SELECT variance(r) FROM (SELECT random() AS r FROM t)
//
// A call with a FILTER computes its arguments for the rows that pass it only.
func settleVolatile(r plan.Rel) plan.Rel {
	switch r := r.(type) {
	case *plan.Aggregate:
		c := *r
		c.Aggs = slices.Clone(r.Aggs)
		filters := settler{n: plan.Arity(r.Input)}
		for i := range c.Aggs {
			c.Aggs[i].Filter = filters.one(c.Aggs[i].Filter)
		}
		s := settler{n: filters.end()}
		c.GroupBy = s.list(r.GroupBy, nil)
		for i := range c.Aggs {
			a := &c.Aggs[i]
			a.Args, a.OrderBy = s.list(a.Args, a.Filter), s.order(a.OrderBy, a.Filter)
		}
		c.Input = s.over(filters.over(r.Input))
		if c.Input == r.Input {
			return r
		}
		return &c
	case *plan.Window:
		n := plan.Arity(r.Input)
		c := *r
		c.Calls = slices.Clone(r.Calls)
		filters := settler{n: n}
		for i := range c.Calls {
			c.Calls[i].Filter = filters.one(c.Calls[i].Filter)
		}
		s := settler{n: filters.end()}
		c.Partition, c.Order = s.list(r.Partition, nil), s.order(r.Order, nil)
		for i := range c.Calls {
			c.Calls[i].Args = s.list(c.Calls[i].Args, c.Calls[i].Filter)
		}
		c.Input = s.over(filters.over(r.Input))
		if c.Input == r.Input {
			return r
		}
		c.Cols = slices.Concat(c.Input.Columns(), r.Cols[n:])
		return project(&c, append(span(0, n), span(s.end(), len(c.Cols))...))
	}
	return r
}

// settler replaces volatile expressions by columns from n on.
type settler struct {
	n     int
	exprs []expr.Expr
	cols  []plan.Column
}

// end is the number of columns with those of the settler.
func (s *settler) end() int { return s.n + len(s.exprs) }

// over is r with the columns of the settler.
func (s *settler) over(r plan.Rel) plan.Rel { return extend(r, s.exprs, s.cols) }

// one is e, which may be nil, or a column for it.
func (s *settler) one(e expr.Expr) expr.Expr { return s.where(nil, e) }

// where is one, computed where cond (nil: always) is true.
func (s *settler) where(cond, e expr.Expr) expr.Expr {
	if e == nil || expr.VolatilityOf(e) != expr.Volatile {
		return e
	}
	col := &expr.Column{Index: s.end(), Typ: e.Type(), Name: "?column?"}
	if cond != nil {
		e = &expr.Case{Typ: col.Typ, Whens: []expr.When{{Cond: cond, Then: e}}, Else: nullConst(col.Typ)}
	}
	s.exprs = append(s.exprs, e)
	s.cols = append(s.cols, plan.Column{Name: col.Name, Type: col.Typ})
	return col
}

func (s *settler) list(es []expr.Expr, cond expr.Expr) []expr.Expr {
	es = slices.Clone(es)
	for i, e := range es {
		es[i] = s.where(cond, e)
	}
	return es
}

func (s *settler) order(keys []plan.SortExpr, cond expr.Expr) []plan.SortExpr {
	keys = slices.Clone(keys)
	for i := range keys {
		keys[i].Expr = s.where(cond, keys[i].Expr)
	}
	return keys
}

// delayVolatile computes volatile columns that the order is not of when the rows are
// in order, and only for those that are wanted, as PostgreSQL does (its
// make_sort_input_target): numbers of a sequence then follow the order.
//
//	Sort x LIMIT 3 (Project x, nextval('s') (t))  →  Project x, nextval('s') (Sort x LIMIT 3 (Project x (t)))
func delayVolatile(r plan.Rel) plan.Rel {
	switch n := r.(type) {
	case *plan.Sort:
		c := *n
		if in, _, order, above := delayed(n.Input, nil, n.Order); above != nil {
			c.Input, c.Order, above.Input = in, order, &c
			return above
		}
	case *plan.TopK:
		c := *n
		if n.RowNumber {
			return r
		}
		if in, part, order, above := delayed(n.Input, n.Partition, n.Order); above != nil {
			c.Input, c.Partition, c.Order, above.Input = in, part, order, &c
			return above
		}
	}
	return r
}

// delayed splits a projection, which may be below bindings, in what has to be computed
// before its rows are partitioned and put in order, below, and the rest, above, whose
// input is not set yet.
func delayed(in plan.Rel, part []int, order []plan.SortKey) (below plan.Rel, parts []int, keys []plan.SortKey, above *plan.Project) {
	if l, ok := in.(*plan.Let); ok {
		c := *l
		c.Body, parts, keys, above = delayed(l.Body, part, order)
		return &c, parts, keys, above
	}
	p, ok := in.(*plan.Project)
	if !ok || !volatileProject(p) {
		return nil, nil, nil, nil
	}
	cols := p.Input.Columns()
	b := &plan.Project{Input: p.Input}
	add := func(e expr.Expr, c plan.Column) int {
		for i, have := range b.Exprs {
			if expr.Equal(have, e) && expr.VolatilityOf(e) != expr.Volatile {
				return i
			}
		}
		b.Exprs, b.Cols = append(b.Exprs, e), append(b.Cols, c)
		return len(b.Exprs) - 1
	}
	above = &plan.Project{Exprs: make([]expr.Expr, len(p.Exprs)), Cols: p.Cols}
	at := make([]int, len(p.Exprs))
	var later []int
	for i, e := range p.Exprs {
		if expr.VolatilityOf(e) == expr.Volatile && !slices.Contains(part, i) &&
			!slices.ContainsFunc(order, func(k plan.SortKey) bool { return k.Col == i }) {
			later = append(later, i)
			continue
		}
		at[i] = add(e, p.Cols[i])
		above.Exprs[i] = plan.RefTo(b.Cols, at[i])
	}
	if later == nil {
		return nil, nil, nil, nil
	}
	for _, i := range later {
		above.Exprs[i] = expr.Remap(p.Exprs[i], func(c int) int { return add(plan.RefTo(cols, c), cols[c]) })
	}
	parts, keys = slices.Clone(part), slices.Clone(order)
	for i := range parts {
		parts[i] = at[parts[i]]
	}
	for i := range keys {
		keys[i].Col = at[keys[i].Col]
	}
	return b, parts, keys, above
}
