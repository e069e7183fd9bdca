package expr

import (
	"github.com/streamdb/streamdb/sql/types"
)

// Children calls f with each direct operand of e, in order. The relation of a
// Subquery is not visited; its Test is.
func Children(e Expr, f func(Expr)) {
	switch e := e.(type) {
	case *Call:
		each(e.Args, f)
	case *Logic:
		each(e.Args, f)
	case *Not:
		f(e.Arg)
	case *IsNull:
		f(e.Arg)
	case *Case:
		for _, w := range e.Whens {
			f(w.Cond)
			f(w.Then)
		}
		if e.Else != nil {
			f(e.Else)
		}
	case *Coalesce:
		each(e.Args, f)
	case *ArrayCtor:
		each(e.Elems, f)
	case *Row:
		each(e.Fields, f)
	case *InList:
		f(e.Arg)
		each(e.List, f)
	case *ArrayOp:
		f(e.Left)
		f(e.Right)
	case *JSONExpr:
		each(e.operands(), f)
	case *Subquery:
		if e.Test != nil {
			f(e.Test)
		}
	}
}

func each(es []Expr, f func(Expr)) {
	for _, e := range es {
		f(e)
	}
}

// Walk visits e and its operands, parents first; f returns false to skip the
// operands of a node.
func Walk(e Expr, f func(Expr) bool) {
	if f(e) {
		Children(e, func(c Expr) { Walk(c, f) })
	}
}

// Any reports whether f holds for some node of e.
func Any(e Expr, f func(Expr) bool) bool {
	found := false
	Walk(e, func(n Expr) bool {
		found = found || f(n)
		return !found
	})
	return found
}

// Rewrite rebuilds e bottom-up: operands first, then f on the node with the new
// operands. Nodes are never changed in place; an unchanged subtree is shared.
func Rewrite(e Expr, f func(Expr) Expr) Expr {
	return f(MapChildren(e, func(c Expr) Expr { return Rewrite(c, f) }))
}

// MapChildren is e with each direct operand replaced by f of it; e itself if
// nothing changed.
func MapChildren(e Expr, f func(Expr) Expr) Expr {
	switch e := e.(type) {
	case *Call:
		if args, ok := mapAll(e.Args, f); ok {
			c := *e
			c.Args = args
			return &c
		}
	case *Logic:
		if args, ok := mapAll(e.Args, f); ok {
			return &Logic{And: e.And, Args: args}
		}
	case *Not:
		if a := f(e.Arg); a != e.Arg {
			return &Not{Arg: a}
		}
	case *IsNull:
		if a := f(e.Arg); a != e.Arg {
			return &IsNull{Arg: a, Not: e.Not}
		}
	case *Case:
		return mapCase(e, f)
	case *Coalesce:
		if args, ok := mapAll(e.Args, f); ok {
			return &Coalesce{Args: args, Typ: e.Typ}
		}
	case *ArrayCtor:
		if elems, ok := mapAll(e.Elems, f); ok {
			return &ArrayCtor{Elems: elems, Typ: e.Typ}
		}
	case *Row:
		if fields, ok := mapAll(e.Fields, f); ok {
			return &Row{Fields: fields, Names: e.Names, Typ: e.Typ}
		}
	case *InList:
		a := f(e.Arg)
		if list, ok := mapAll(e.List, f); ok || a != e.Arg {
			return &InList{Op: e.Op, Arg: a, List: list, Pos: e.Pos}
		}
	case *ArrayOp:
		if l, r := f(e.Left), f(e.Right); l != e.Left || r != e.Right {
			return &ArrayOp{Op: e.Op, All: e.All, Left: l, Right: r, Pos: e.Pos}
		}
	case *JSONExpr:
		if list, ok := mapAll(e.operands(), f); ok {
			return e.withOperands(list)
		}
	case *Subquery:
		if e.Test != nil {
			if t := f(e.Test); t != e.Test {
				c := *e
				c.Test = t
				return &c
			}
		}
	}
	return e
}

func mapCase(e *Case, f func(Expr) Expr) Expr {
	changed := false
	c := &Case{Whens: make([]When, len(e.Whens)), Else: e.Else, Typ: e.Typ}
	for i, w := range e.Whens {
		c.Whens[i] = When{Cond: f(w.Cond), Then: f(w.Then)}
		changed = changed || c.Whens[i] != w
	}
	if e.Else != nil {
		c.Else = f(e.Else)
		changed = changed || c.Else != e.Else
	}
	if !changed {
		return e
	}
	return c
}

// mapAll maps a list; ok reports whether anything changed. The list is valid
// either way.
func mapAll(es []Expr, f func(Expr) Expr) (out []Expr, ok bool) {
	out = es
	for i, e := range es {
		n := f(e)
		if n == e {
			continue
		}
		if !ok {
			out = append([]Expr(nil), es...)
			ok = true
		}
		out[i] = n
	}
	return out, ok
}

// Columns calls f with each column reference of e (once per occurrence).
func Columns(e Expr, f func(c *Column)) {
	Walk(e, func(n Expr) bool {
		if c, ok := n.(*Column); ok {
			f(c)
		}
		return true
	})
}

// UsesColumns reports whether e refers to a column.
func UsesColumns(e Expr) bool {
	return Any(e, func(n Expr) bool { _, ok := n.(*Column); return ok })
}

// Remap replaces the index of each column c by to(c).
func Remap(e Expr, to func(index int) int) Expr {
	return Rewrite(e, func(n Expr) Expr {
		c, ok := n.(*Column)
		if !ok {
			return n
		}
		i := to(c.Index)
		if i == c.Index {
			return n
		}
		return &Column{Index: i, Typ: c.Typ, Name: c.Name}
	})
}

// Substitute replaces column i by exprs[i].
func Substitute(e Expr, exprs []Expr) Expr {
	return Rewrite(e, func(n Expr) Expr {
		if c, ok := n.(*Column); ok {
			return exprs[c.Index]
		}
		return n
	})
}

// BindParams replaces $i by consts[i-1].
func BindParams(e Expr, consts []*Const) Expr {
	return Rewrite(e, func(n Expr) Expr {
		if p, ok := n.(*Param); ok && p.Index <= len(consts) {
			return consts[p.Index-1]
		}
		return n
	})
}

// VolatilityOf is the most volatile function in e.
func VolatilityOf(e Expr) Volatility {
	v := Immutable
	Walk(e, func(n Expr) bool {
		switch n := n.(type) {
		case *Call:
			v = max(v, n.Fn.Volatility)
		case *InList:
			v = max(v, n.Op.Volatility)
		case *ArrayOp:
			v = max(v, n.Op.Volatility)
		case *JSONExpr:
			v = max(v, n.volatility())
		}
		return v != Volatile
	})
	return v
}

// IsTotal reports whether evaluating e can never raise an error, so that it may
// be evaluated for rows that do not need it.
func IsTotal(e Expr) bool {
	return !Any(e, func(n Expr) bool {
		switch n := n.(type) {
		case *Call:
			return !n.Fn.Total
		case *InList:
			return !n.Op.Total
		case *ArrayOp:
			return !n.Op.Total
		case *ArrayCtor:
			return len(n.Elems) > 0 && n.Elems[0].Type().OID.IsArray() // their shapes may differ
		case *Subquery:
			return n.Kind == SubqueryScalar
		case *JSONExpr:
			return true
		}
		return false
	})
}

// IsNullConst reports whether e is a literal NULL.
func IsNullConst(e Expr) bool {
	c, ok := e.(*Const)
	return ok && c.Val.Null(0)
}

// IsStrict reports whether e is NULL whenever column index is NULL.
func IsStrict(e Expr, index int) bool {
	switch e := e.(type) {
	case *Column:
		return e.Index == index
	case *Call:
		if !e.Fn.Strict {
			return false
		}
		for _, a := range e.Args {
			if IsStrict(a, index) {
				return true
			}
		}
	case *Not:
		return IsStrict(e.Arg, index)
	case *InList:
		return IsStrict(e.Arg, index)
	}
	return false
}

// SameType reports whether two expressions have the same type regardless of
// the modifier.
func SameType(a, b types.Type) bool { return a.OID == b.OID }
