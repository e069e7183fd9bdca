package planner

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// fact is a condition on one column that is true for all rows of a relation, or, with
// orNull, for those in which the column is not NULL.
type fact struct {
	p      expr.Expr
	orNull bool
}

// InferFilters, across a left, semi or anti join: what is known of a left
// column holds for the right column that it is equated to. It may be known through
// other joins: a column that such a one adds is equal to one of its left side, or NULL.
//
//	(a WHERE a.k = 5) LEFT JOIN b ON a.k = b.k LEFT JOIN c ON b.k = c.k
//	  →  … LEFT JOIN (b WHERE b.k = 5) … LEFT JOIN (c WHERE c.k = 5) …
func (o *optimizer) inferred(j *plan.Join, on, left []expr.Expr) []expr.Expr {
	if !o.on("InferFilters") {
		return nil
	}
	nl := plan.Arity(j.Left)
	var facts []fact
	var out []expr.Expr
	for _, p := range on {
		a, b, same := equatedColumns(p, nl)
		if a == nil {
			continue
		}
		if facts == nil {
			if facts = factsOf(j.Left, left); len(facts) == 0 {
				return nil
			}
		}
		to := &expr.Column{Index: b.Index - nl, Typ: b.Typ, Name: b.Name}
		for _, f := range facts {
			if same && f.orNull {
				continue // NULL is equated to NULL
			}
			n := transferred(f.p, a, to, same)
			if n != nil && !hasFilter(j.Right, n) && !slices.ContainsFunc(out, func(e expr.Expr) bool { return expr.Equal(e, n) }) {
				o.fire("InferFilters")
				out = append(out, n)
			}
		}
	}
	return out
}

// equatedColumns are the left and the right column that a condition of a join equates,
// by = or, so that NULLs are the same, by *=; nil if it does something else.
func equatedColumns(p expr.Expr, nl int) (a, b *expr.Column, same bool) {
	l, r, ok := plan.IsEquality(p)
	if !ok {
		if l, r, same = plan.IsSame(p); !same {
			return nil, nil, false
		}
	}
	a, ok1 := l.(*expr.Column)
	b, ok2 := r.(*expr.Column)
	if !ok1 || !ok2 {
		return nil, nil, false
	}
	if a.Index >= nl {
		a, b = b, a
	}
	if a.Index >= nl || b.Index < nl {
		return nil, nil, false
	}
	return a, b, same
}

// maxFacts bounds what is known of a relation, so that planning stays polynomial.
const maxFacts = 64

// factsOf is what is known of single columns of r, which is filtered by preds.
func factsOf(r plan.Rel, preds []expr.Expr) []fact {
	var out []fact
	for _, p := range conjuncts(preds) {
		if oneColumn(p) != nil {
			out = append(out, fact{p: p})
		}
	}
	switch r := r.(type) {
	case *plan.Filter:
		out = append(out, factsOf(r.Input, r.Preds)...)
	case *plan.Project:
		for _, f := range factsOf(r.Input, nil) {
			c := oneColumn(f.p)
			for i, e := range r.Exprs {
				if x, ok := e.(*expr.Column); ok && x.Index == c.Index {
					f.p = replaceColumn(f.p, &expr.Column{Index: i, Typ: x.Typ, Name: x.Name})
					out = append(out, f)
					break
				}
			}
		}
	case *plan.Join:
		out = joinFacts(r, out)
	}
	return out[:min(len(out), maxFacts)]
}

// joinFacts adds to what is known of a join's columns what is known of its left side,
// and through its condition of its right side.
func joinFacts(j *plan.Join, out []fact) []fact {
	if j.Kind == plan.JoinRight || j.Kind == plan.JoinFull {
		return out
	}
	out = append(out, factsOf(j.Left, nil)...)
	if j.Kind == plan.JoinSemi || j.Kind == plan.JoinAnti {
		return out
	}
	nl := plan.Arity(j.Left)
	known := out
	for _, p := range conjuncts(j.On) {
		a, b, same := equatedColumns(p, nl)
		if a == nil {
			continue
		}
		for _, f := range known {
			if same && f.orNull {
				continue
			}
			if n := transferred(f.p, a, b, same); n != nil {
				out = append(out, fact{n, f.orNull || j.Kind == plan.JoinLeft})
			}
		}
	}
	return out
}

// oneColumn is the only column that a condition uses, nil if it uses none or several,
// or may not be asked again.
func oneColumn(p expr.Expr) *expr.Column {
	var col *expr.Column
	several := false
	expr.Columns(p, func(c *expr.Column) {
		several = several || col != nil && col.Index != c.Index
		col = c
	})
	if several || expr.VolatilityOf(p) == expr.Volatile || hasSubquery(p) {
		return nil
	}
	return col
}

// transferred is what a condition on the column c says of another one that is equal
// to it, or, with same, the same; nil if it says nothing. Comparisons of integers are
// made for the other's type, if that is another.
func transferred(p expr.Expr, c, to *expr.Column, same bool) expr.Expr {
	if c.Typ.OID == to.Typ.OID {
		if transfers(p, c, to, same) {
			return replaceColumn(p, to)
		}
		return nil
	}
	call, ok := p.(*expr.Call)
	if !ok || same || !isComparison(call.Fn) || len(call.Args) != 2 || !isInt(c.Typ) || !isInt(to.Typ) {
		return nil
	}
	args := slices.Clone(call.Args)
	for i, a := range args {
		if x, ok := a.(*expr.Column); ok && x.Index == c.Index {
			args[i] = to
		} else if v, ok := plan.IntConst(a); !ok {
			return nil
		} else if k := keyValue(int64Const(v), to.Typ); k != nil {
			args[i] = k
		}
	}
	if !expr.UsesColumns(args[0]) && !expr.UsesColumns(args[1]) {
		return nil
	}
	e, err := expr.NewOp(call.Fn.Name, args[0], args[1], call.Pos)
	if err != nil {
		return nil
	}
	return e
}

func isInt(t types.Type) bool {
	return t.OID == types.OIDInt2 || t.OID == types.OIDInt4 || t.OID == types.OIDInt8
}

// transfers reports whether a predicate on the one column c holds for to, which
// is equal to it: always if they are the same or equality is identity, else if
// it is itself an equality.
func transfers(p expr.Expr, c, to *expr.Column, same bool) bool {
	if !usesOnly(p, func(col int) bool { return col == c.Index }) || !expr.UsesColumns(p) ||
		expr.VolatilityOf(p) == expr.Volatile || mayRaise(p) {
		return false
	}
	if same || plan.SameBits(c.Typ, to.Typ) {
		return true
	}
	l, r, ok := plan.IsEquality(p)
	if !ok || l.Type().OID != r.Type().OID {
		return false
	}
	_, lc := l.(*expr.Column)
	_, rc := r.(*expr.Column)
	return lc != rc
}

// replaceColumn is e, which has one column, with another column for it.
func replaceColumn(e expr.Expr, c *expr.Column) expr.Expr {
	return expr.Rewrite(e, func(n expr.Expr) expr.Expr {
		if _, ok := n.(*expr.Column); ok {
			return c
		}
		return n
	})
}
