package planner

import (
	"maps"
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// Simplified is an expression over columns in the form that the expressions of
// optimized plans have, for comparisons with them.
func Simplified(e expr.Expr, cols []plan.Column) expr.Expr {
	o := &optimizer{}
	s := simplifier{o: o, cols: cols}
	for range maxRounds {
		o.changed = false
		if e = s.expr(o.fold(e)); !o.changed {
			break
		}
	}
	return e
}

// withExprs adds to the values of columns those of the expressions of an index, by
// the numbers that they have in its key.
func withExprs(ix Index, g *plan.Get, preds []expr.Expr, fixed map[int][]expr.Expr) map[int][]expr.Expr {
	if len(ix.Exprs) == 0 {
		return fixed
	}
	fixed = maps.Clone(fixed)
	for i, x := range ix.Exprs {
		is := func(e expr.Expr) bool { return expr.Equal(overTable(expr.StripRelabel(e), g), x) }
		for _, p := range preds {
			var vals []expr.Expr
			if l, r, ok := plan.IsEquality(p); ok {
				switch {
				case is(l):
					vals = []expr.Expr{r}
				case is(r):
					vals = []expr.Expr{l}
				}
			} else if arg, some := oneOf(p); arg != nil && is(arg) {
				vals = some
			} else if arg, v := nullSafe(p); arg != nil && is(arg) && fixed[-1-i] == nil {
				vals = []expr.Expr{v}
			}
			keys := make([]expr.Expr, 0, len(vals))
			for _, v := range vals {
				if v = keyValue(v, x.Type()); v == nil {
					keys = nil
					break
				}
				if !slices.ContainsFunc(keys, func(o expr.Expr) bool { return expr.Equal(o, v) }) {
					keys = append(keys, v)
				}
			}
			if old := fixed[-1-i]; len(keys) > 0 && (old == nil || fewer(keys, old)) {
				fixed[-1-i] = keys
			}
		}
	}
	return fixed
}

// overTable is an expression over the columns of a read as one over those of its
// collection.
func overTable(e expr.Expr, g *plan.Get) expr.Expr {
	if g.Proj == nil {
		return e
	}
	return expr.Remap(e, g.Source)
}

// impliesAll reports whether the rows for which preds hold are among those for which
// wanted, over the columns of the collection, holds.
func impliesAll(g *plan.Get, preds, wanted []expr.Expr) bool {
	if len(wanted) == 0 {
		return true
	}
	known := make([]expr.Expr, 0, len(preds))
	for _, p := range conjuncts(preds) {
		known = append(known, overTable(p, g))
	}
	return !slices.ContainsFunc(conjuncts(wanted), func(w expr.Expr) bool { return !implied(known, w) })
}

// implied reports whether a condition holds for all rows for which all of known
// hold. It is not clever: a condition itself, one branch of an OR, NOT NULL of what
// may not be NULL, and what bounds or values of a column decide.
func implied(known []expr.Expr, w expr.Expr) bool {
	if isTrue(w) || slices.ContainsFunc(known, func(p expr.Expr) bool { return expr.Equal(p, w) }) {
		return true
	}
	switch w := w.(type) {
	case *expr.Logic:
		if w.And {
			return !slices.ContainsFunc(w.Args, func(a expr.Expr) bool { return !implied(known, a) })
		}
		return slices.ContainsFunc(w.Args, func(a expr.Expr) bool { return implied(known, a) })
	case *expr.IsNull:
		if c, ok := w.Arg.(*expr.Column); ok && w.Not {
			return slices.ContainsFunc(known, func(p expr.Expr) bool { return rejectsNull(p, func(i int) bool { return i == c.Index }) })
		}
	}
	return slices.ContainsFunc(known, func(p expr.Expr) bool { return decides(p, w) })
}

// decides reports whether what p says of one column, its values or a bound, makes w
// true.
func decides(p, w expr.Expr) bool {
	if in := asList(p); in != nil && !mayRaise(w) {
		c := in.Arg.(*expr.Column)
		return usesOnly(w, func(i int) bool { return i == c.Index }) && expr.UsesColumns(w) &&
			!slices.ContainsFunc(in.List, func(v expr.Expr) bool { return !isTrue(replaceByValue(w, c, v)) })
	}
	c, op, v := bound(p)
	d, wop, x := bound(w)
	if c == nil || d == nil || c.Index != d.Index || v.Type().OID != x.Type().OID {
		return false
	}
	// c op v  ⇒  c wop x, where v wop' x.
	if op[0] != wop[0] {
		return false
	}
	if op == wop || wop == op+"=" {
		wop = wop[:1] + "="
	}
	e, err := expr.NewOp(wop, v, x, 0)
	return err == nil && isTrue(e)
}

// bound gives the parts of a comparison of a column with a constant.
func bound(p expr.Expr) (*expr.Column, string, *expr.Const) {
	call, ok := p.(*expr.Call)
	if !ok || !isComparison(call.Fn) || len(call.Args) != 2 {
		return nil, "", nil
	}
	op := call.Fn.Name
	c, ok1 := call.Args[0].(*expr.Column)
	v, ok2 := call.Args[1].(*expr.Const)
	if !ok1 || !ok2 {
		op = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op]
		if c, ok1 = call.Args[1].(*expr.Column); ok1 {
			v, ok2 = call.Args[0].(*expr.Const)
		}
	}
	if !ok1 || !ok2 || op == "" || op == "=" || op == "<>" || v.Val.Null(0) {
		return nil, "", nil
	}
	return c, op, v
}

// replaceByValue is e with a constant for a column, which must be of its type: else
// e may mean something else.
func replaceByValue(e expr.Expr, c *expr.Column, v expr.Expr) expr.Expr {
	k, ok := v.(*expr.Const)
	if !ok || k.Typ.OID != c.Typ.OID || k.Val.Null(0) {
		return e
	}
	return expr.Rewrite(e, func(n expr.Expr) expr.Expr {
		if x, ok := n.(*expr.Column); ok && x.Index == c.Index {
			return k
		}
		return n
	})
}

// isTrue reports whether e is constant and true.
func isTrue(e expr.Expr) bool {
	if expr.UsesColumns(e) {
		return false
	}
	v, null, ok := boolValue(expr.FoldConstants(e))
	return ok && v && !null
}
