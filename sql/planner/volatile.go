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
