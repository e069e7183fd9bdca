package plan

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
)

// Arity is the number of output columns, without building them.
func Arity(r Rel) int {
	switch r := r.(type) {
	case *Filter:
		return Arity(r.Input)
	case *Distinct:
		return Arity(r.Input)
	case *TopK:
		if r.RowNumber {
			return Arity(r.Input) + 1
		}
		return Arity(r.Input)
	case *Assert:
		return Arity(r.Input)
	case *Sort:
		return Arity(r.Input)
	case *Let:
		return Arity(r.Body)
	case *Recursive:
		return Arity(r.Body)
	case *Join:
		if r.Kind == JoinSemi || r.Kind == JoinAnti {
			return Arity(r.Left)
		}
		return Arity(r.Left) + Arity(r.Right)
	}
	return len(r.Columns())
}

// Children calls f with each input of r, in order.
func Children(r Rel, f func(Rel)) {
	switch r := r.(type) {
	case *Project:
		f(r.Input)
	case *Filter:
		f(r.Input)
	case *Join:
		f(r.Left)
		f(r.Right)
	case *Aggregate:
		f(r.Input)
	case *Distinct:
		f(r.Input)
	case *TopK:
		f(r.Input)
	case *Window:
		f(r.Input)
	case *SetOp:
		for _, in := range r.Inputs {
			f(in)
		}
	case *FlatMap:
		f(r.Input)
	case *Let:
		f(r.Value)
		f(r.Body)
	case *Recursive:
		for _, v := range r.Values {
			f(v)
		}
		f(r.Body)
	case *Assert:
		f(r.Input)
	case *Sort:
		f(r.Input)
	}
}

// Walk visits r and its inputs, parents first; f returns false to skip the
// inputs of a node. Subqueries inside expressions are not visited.
func Walk(r Rel, f func(Rel) bool) {
	if f(r) {
		Children(r, func(c Rel) { Walk(c, f) })
	}
}

// MapChildren is r with each input replaced by f of it; r itself if nothing
// changed. Nodes are never changed in place.
func MapChildren(r Rel, f func(Rel) Rel) Rel {
	switch r := r.(type) {
	case *Join:
		if a, b := f(r.Left), f(r.Right); a != r.Left || b != r.Right {
			c := *r
			c.Left, c.Right = a, b
			return &c
		}
		return r
	case *SetOp:
		if ins, ok := mapRels(r.Inputs, f); ok {
			c := *r
			c.Inputs = ins
			return &c
		}
		return r
	case *Let:
		if a, b := f(r.Value), f(r.Body); a != r.Value || b != r.Body {
			return &Let{ID: r.ID, Value: a, Body: b}
		}
		return r
	case *Recursive:
		vs, ok := mapRels(r.Values, f)
		if b := f(r.Body); ok || b != r.Body {
			c := *r
			c.Values, c.Body = vs, b
			return &c
		}
		return r
	}
	in := Input(r)
	if in == nil {
		return r
	}
	if n := f(in); n != in {
		return WithInput(r, n)
	}
	return r
}

func mapRels(rs []Rel, f func(Rel) Rel) (out []Rel, changed bool) {
	out = rs
	for i, r := range rs {
		n := f(r)
		if n == r {
			continue
		}
		if !changed {
			out = append([]Rel(nil), rs...)
			changed = true
		}
		out[i] = n
	}
	return out, changed
}

// Input is the only input of a node with one, else nil.
func Input(r Rel) Rel {
	switch r := r.(type) {
	case *Project:
		return r.Input
	case *Filter:
		return r.Input
	case *Aggregate:
		return r.Input
	case *Distinct:
		return r.Input
	case *TopK:
		return r.Input
	case *Window:
		return r.Input
	case *FlatMap:
		return r.Input
	case *Assert:
		return r.Input
	case *Sort:
		return r.Input
	}
	return nil
}

// WithInput is a copy of a node with one input over another input.
func WithInput(r Rel, in Rel) Rel {
	switch r := r.(type) {
	case *Project:
		c := *r
		c.Input = in
		return &c
	case *Filter:
		return &Filter{Input: in, Preds: r.Preds}
	case *Aggregate:
		c := *r
		c.Input = in
		return &c
	case *Distinct:
		return &Distinct{Input: in}
	case *TopK:
		c := *r
		c.Input = in
		return &c
	case *Window:
		c := *r
		c.Input = in
		return &c
	case *FlatMap:
		c := *r
		c.Input = in
		return &c
	case *Assert:
		return &Assert{Input: in, Key: r.Key}
	case *Sort:
		c := *r
		c.Input = in
		return &c
	}
	panic("plan: WithInput on a node without a single input")
}

// Rewrite rebuilds r bottom-up: inputs first, then f on the node with the new
// inputs.
func Rewrite(r Rel, f func(Rel) Rel) Rel {
	return f(MapChildren(r, func(c Rel) Rel { return Rewrite(c, f) }))
}

// Exprs calls f with each expression of the node r itself.
func Exprs(r Rel, f func(expr.Expr)) {
	MapExprs(r, func(e expr.Expr) expr.Expr {
		f(e)
		return e
	})
}

// MapExprs is r with each expression of the node itself replaced by f of it; r
// itself if nothing changed.
func MapExprs(r Rel, f func(expr.Expr) expr.Expr) Rel {
	m := exprMapper{f: f}
	switch r := r.(type) {
	case *Get:
		if r.Lookup == nil {
			return r
		}
		vals := append([][]expr.Expr(nil), r.Lookup.Values...)
		for i := range vals {
			vals[i] = m.list(vals[i])
		}
		lower, upper := m.bound(r.Lookup.Lower), m.bound(r.Lookup.Upper)
		if m.changed {
			c, l := *r, *r.Lookup
			l.Values, l.Lower, l.Upper = vals, lower, upper
			c.Lookup = &l
			return &c
		}
	case *Project:
		if es := m.list(r.Exprs); m.changed {
			c := *r
			c.Exprs = es
			return &c
		}
	case *Filter:
		if ps := m.list(r.Preds); m.changed {
			return &Filter{Input: r.Input, Preds: ps}
		}
	case *Join:
		on, l := m.list(r.On), r.Lookup
		if l != nil {
			c := *l
			c.Values = m.list(l.Values)
			l = &c
		}
		if m.changed {
			c := *r
			c.On, c.Lookup = on, l
			return &c
		}
	case *Aggregate:
		g, aggs := m.list(r.GroupBy), m.aggs(r.Aggs)
		if m.changed {
			c := *r
			c.GroupBy, c.Aggs = g, aggs
			return &c
		}
	case *TopK:
		l, o := m.one(r.Limit), m.one(r.Offset)
		if m.changed {
			c := *r
			c.Limit, c.Offset = l, o
			return &c
		}
	case *Sort:
		l, o := m.one(r.Limit), m.one(r.Offset)
		if m.changed {
			c := *r
			c.Limit, c.Offset = l, o
			return &c
		}
	case *Window:
		p, o, calls := m.list(r.Partition), m.order(r.Order), m.calls(r.Calls)
		if m.changed {
			c := *r
			c.Partition, c.Order, c.Calls = p, o, calls
			return &c
		}
	case *FlatMap:
		if as := m.list(r.Args); m.changed {
			c := *r
			c.Args = as
			return &c
		}
	}
	return r
}

type exprMapper struct {
	f       func(expr.Expr) expr.Expr
	changed bool
}

func (m *exprMapper) one(e expr.Expr) expr.Expr {
	if e == nil {
		return nil
	}
	n := m.f(e)
	if n != e {
		m.changed = true
	}
	return n
}

func (m *exprMapper) list(es []expr.Expr) []expr.Expr {
	out := es
	own := false
	for i, e := range es {
		n := m.one(e)
		if n == e {
			continue
		}
		if !own {
			out, own = append([]expr.Expr(nil), es...), true
		}
		out[i] = n
	}
	return out
}

func (m *exprMapper) order(os []SortExpr) []SortExpr {
	if len(os) == 0 {
		return os
	}
	out := append([]SortExpr(nil), os...)
	for i := range out {
		out[i].Expr = m.one(out[i].Expr)
	}
	return out
}

func (m *exprMapper) aggs(as []AggCall) []AggCall {
	if len(as) == 0 {
		return as
	}
	out := append([]AggCall(nil), as...)
	for i := range out {
		out[i].Args = m.list(out[i].Args)
		out[i].Filter = m.one(out[i].Filter)
		out[i].OrderBy = m.order(out[i].OrderBy)
	}
	return out
}

func (m *exprMapper) calls(cs []WindowCall) []WindowCall {
	out := append([]WindowCall(nil), cs...)
	for i := range out {
		out[i].Args = m.list(out[i].Args)
		out[i].Filter = m.one(out[i].Filter)
		out[i].Frame.Start.Offset = m.one(out[i].Frame.Start.Offset)
		out[i].Frame.End.Offset = m.one(out[i].Frame.End.Offset)
	}
	return out
}

func (m *exprMapper) bound(b *Bound) *Bound {
	if b == nil {
		return nil
	}
	return &Bound{Value: m.one(b.Value), Open: b.Open}
}

// ReadIDs lists the collections and indexes that running a plan reads.
func ReadIDs(r Rel) []ObjectID {
	var ids []ObjectID
	add := func(id ObjectID) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	Walk(r, func(n Rel) bool {
		switch n := n.(type) {
		case *Get:
			if n.Lookup != nil {
				add(n.Lookup.Index)
			} else {
				add(n.ID)
			}
		case *Join:
			if n.Lookup != nil {
				add(n.Lookup.Index)
			}
		}
		return true
	})
	return ids
}

// BindParams replaces the parameters of a plan by constants.
func BindParams(r Rel, consts []*expr.Const) Rel {
	if len(consts) == 0 {
		return r
	}
	return Rewrite(r, func(n Rel) Rel {
		return MapExprs(n, func(e expr.Expr) expr.Expr { return expr.BindParams(e, consts) })
	})
}

// LookedUp is a chain of filters and projections over a Get, with a lookup.
func LookedUp(r Rel, l *Lookup) Rel {
	if g, ok := r.(*Get); ok {
		c := *g
		c.Lookup = l
		return &c
	}
	return WithInput(r, LookedUp(Input(r), l))
}

// Ref is a reference to output column i of r.
func Ref(r Rel, i int) *expr.Column { return RefTo(r.Columns(), i) }

// RefTo is a reference to column i of cols.
func RefTo(cols []Column, i int) *expr.Column {
	return &expr.Column{Index: i, Typ: cols[i].Type, Name: cols[i].Name}
}

// SortedRoot gives the Sort of a query, nil if it has none, and the projection, nil if
// there is none, that computes volatile columns of the rows in their order.
func SortedRoot(r Rel) (s *Sort, above *Project) {
	if s, ok := r.(*Sort); ok {
		return s, nil
	}
	if p, ok := r.(*Project); ok {
		if s, ok := p.Input.(*Sort); ok {
			return s, p
		}
	}
	return nil, nil
}

// Refs are references to all of cols.
func Refs(cols []Column) []expr.Expr {
	out := make([]expr.Expr, len(cols))
	for i := range cols {
		out[i] = RefTo(cols, i)
	}
	return out
}
