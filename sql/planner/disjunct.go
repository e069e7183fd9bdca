package planner

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// Rules on OR, where each branch alone has a better way than the whole.

// OrToIn: equalities of one column with constants are one list.
//
//	k = 1 OR k = 5 OR k IN (7, 8)  →  k IN (1, 5, 7, 8)
func (s *simplifier) orToIn(e *expr.Logic) expr.Expr {
	if !s.o.on("OrToIn") {
		return e
	}
	var args []expr.Expr
	own := map[*expr.InList]bool{} // lists made here, which may grow
	changed := false
	for _, a := range e.Args {
		in := asList(a)
		if in == nil {
			args = append(args, a)
			continue
		}
		at := slices.IndexFunc(args, func(x expr.Expr) bool {
			o := asList(x)
			return o != nil && o.Op == in.Op && expr.Equal(o.Arg, in.Arg)
		})
		if at < 0 {
			args = append(args, a)
			continue
		}
		changed = true
		o := asList(args[at])
		if !own[o] {
			o = &expr.InList{Op: o.Op, Arg: o.Arg, List: slices.Clone(o.List), Pos: o.Pos}
			own[o] = true
			args[at] = o
		}
		for _, v := range in.List {
			if !slices.ContainsFunc(o.List, func(x expr.Expr) bool { return expr.Equal(x, v) }) {
				o.List = append(o.List, v)
			}
		}
	}
	if !changed {
		return e
	}
	s.o.fire("OrToIn")
	return logicOf(false, args)
}

// asList is an equality of a column with a constant or parameter, or with a list
// of them, as a list; nil if it is none.
func asList(e expr.Expr) *expr.InList {
	if in, ok := e.(*expr.InList); ok {
		if _, ok := in.Arg.(*expr.Column); !ok || in.Op.Name != "=" || in.Op.Fuzzy || slices.ContainsFunc(in.List, func(v expr.Expr) bool { return !fixed(v) }) {
			return nil
		}
		return in
	}
	l, r, ok := plan.IsEquality(e)
	if !ok || !fixed(r) {
		return nil
	}
	if _, ok := l.(*expr.Column); !ok {
		return nil
	}
	c := e.(*expr.Call)
	return &expr.InList{Op: c.Fn, Arg: l, List: []expr.Expr{r}, Pos: c.Pos}
}

func fixed(e expr.Expr) bool {
	switch e.(type) {
	case *expr.Const, *expr.Param:
		return true
	}
	return false
}

// notTrue is that a condition is false or NULL.
func notTrue(e expr.Expr) expr.Expr {
	return &expr.Not{Arg: &expr.Coalesce{Args: []expr.Expr{e, boolConst(false)}, Typ: e.Type()}}
}

// branch is the i-th branch of an OR without the rows of those before it, as
// conjuncts.
func branch(or *expr.Logic, i int) []expr.Expr {
	out := slices.Clone(conjuncts(or.Args[i : i+1]))
	for _, b := range or.Args[:i] {
		out = append(out, notTrue(b))
	}
	return out
}

// divisible finds an OR among conditions whose branches may be evaluated apart,
// and for which good holds of the conjuncts of each; it gives the others, too.
func divisible(preds []expr.Expr, good func(branch []expr.Expr) bool) (or *expr.Logic, rest []expr.Expr) {
	preds = conjuncts(preds)
	for i, p := range preds {
		l, ok := p.(*expr.Logic)
		if !ok || l.And || len(l.Args) > maxBranches || mayRaise(p) || expr.VolatilityOf(p) != expr.Immutable {
			continue
		}
		if !slices.ContainsFunc(l.Args, func(b expr.Expr) bool { return !good(conjuncts([]expr.Expr{b})) }) {
			return l, append(slices.Clone(preds[:i]), preds[i+1:]...)
		}
	}
	return nil, nil
}

// maxBranches is how many branches of an OR become inputs of a union.
const maxBranches = 8

// JoinOrToUnion: a join on an OR of equalities is a union of joins by keys, each
// without what the ones before have found. A row of a semi join asks the next one
// if it finds no partner, one of an anti join must pass all. The rows of an outer
// join without a partner are those that pass as of an anti join.
//
//	a JOIN b ON a.x = b.x OR a.y = b.y
//	  →  a JOIN b ON a.x = b.x  UNION ALL  a JOIN b ON a.y = b.y AND (a.x = b.x) IS NOT TRUE
func (o *optimizer) joinUnions(r plan.Rel) plan.Rel {
	if !o.on("JoinOrToUnion") {
		return r
	}
	if rec, ok := r.(*plan.Recursive); ok {
		c := *rec
		c.Body = o.joinUnions(rec.Body)
		return &c
	}
	r = plan.MapChildren(r, o.joinUnions)
	j, ok := r.(*plan.Join)
	if !ok || j.Kind == plan.JoinRight || j.Lookup != nil {
		return r
	}
	nl := plan.Arity(j.Left)
	keyed := func(es []expr.Expr) bool {
		return slices.ContainsFunc(es, func(e expr.Expr) bool { return isKey(e, nl) })
	}
	if keyed(conjuncts(j.On)) {
		return r
	}
	or, rest := divisible(j.On, keyed)
	if or == nil || !o.manyPairs(j) {
		return r
	}
	o.fire("JoinOrToUnion")
	return o.divided(j, or, rest)
}

// isKey reports whether an equality compares the two sides of a join, the left of
// which has nl columns.
func isKey(e expr.Expr, nl int) bool {
	l, r, ok := plan.IsEquality(e)
	if !ok {
		if l, r, ok = plan.IsSame(e); !ok {
			return false
		}
	}
	left := func(e expr.Expr) bool { return expr.UsesColumns(e) && usesOnly(e, func(i int) bool { return i < nl }) }
	right := func(e expr.Expr) bool { return expr.UsesColumns(e) && usesOnly(e, func(i int) bool { return i >= nl }) }
	return left(l) && right(r) || left(r) && right(l)
}

// manyPairs reports whether to look at all pairs of rows takes longer than to
// read the sides twice. A view looks at all rows of a side for each that changes.
func (o *optimizer) manyPairs(j *plan.Join) bool {
	const fewRows = 64
	if !o.opts.Maintained && (plan.MaxOneRow(j.Left) || plan.MaxOneRow(j.Right)) {
		return false
	}
	return o.opts.Maintained || o.rows(j.Left) > fewRows && o.rows(j.Right) > fewRows
}

// divided is the join j on rest and one of the branches of or.
func (o *optimizer) divided(j *plan.Join, or *expr.Logic, rest []expr.Expr) plan.Rel {
	left, bindL := o.shared(j.Left)
	right, bindR := o.shared(j.Right)
	join := func(kind plan.JoinKind, l plan.Rel, on []expr.Expr) plan.Rel {
		return &plan.Join{Kind: kind, Left: l, Right: right, On: append(slices.Clip(rest), on...)}
	}
	cols := j.Columns()
	var parts []plan.Rel
	alone := left // without a partner by the branches so far
	aloneRight, nl := right, plan.Arity(j.Left)
	for i, b := range or.Args {
		on := conjuncts([]expr.Expr{b})
		switch j.Kind {
		case plan.JoinSemi:
			parts = append(parts, join(plan.JoinSemi, alone, on))
		case plan.JoinInner, plan.JoinLeft, plan.JoinFull:
			parts = append(parts, join(plan.JoinInner, left, branch(or, i)))
		}
		if j.Kind == plan.JoinAnti || j.Kind == plan.JoinLeft || j.Kind == plan.JoinFull || j.Kind == plan.JoinSemi && i < len(or.Args)-1 {
			alone = join(plan.JoinAnti, alone, on)
		}
		if j.Kind == plan.JoinFull {
			s := swapSides(&plan.Join{Left: left, Right: aloneRight, On: append(slices.Clip(rest), on...)})
			s.Kind = plan.JoinAnti
			aloneRight = s
		}
	}
	if j.Kind == plan.JoinAnti {
		return bindL(bindR(alone))
	}
	if j.Kind == plan.JoinLeft || j.Kind == plan.JoinFull {
		parts = append(parts, nullExtended(alone, 0, cols))
	}
	if j.Kind == plan.JoinFull {
		parts = append(parts, nullExtended(aloneRight, nl, cols))
	}
	return bindL(bindR(&plan.SetOp{Kind: plan.Union, All: true, Inputs: parts, Cols: cols}))
}

// LookupUnion: a filter that is an OR over several indexes reads the rows that
// each branch looks up.
//
//	SELECT * FROM t WHERE a = 1 OR b = 2        (indexes by a and by b)
//	  →  t WHERE a = 1  UNION ALL  t WHERE b = 2 AND (a = 1) IS NOT TRUE
func (o *optimizer) lookupUnion(f *plan.Filter, g *plan.Get) plan.Rel {
	if o.opts.Maintained || !o.on("LookupUnion") || o.opts.Rows == nil || o.opts.Rows(g.ID) < scanRows {
		return nil
	}
	or, rest := divisible(f.Preds, func(b []expr.Expr) bool { return o.bestLookup(g, b) != nil })
	if or == nil {
		return nil
	}
	o.fire("LookupUnion")
	out := &plan.SetOp{Kind: plan.Union, All: true, Cols: g.Cols}
	for i := range or.Args {
		c := *g
		preds := append(branch(or, i), rest...)
		c.Lookup = o.bestLookup(g, preds)
		out.Inputs = append(out.Inputs, &plan.Filter{Input: &c, Preds: preds})
	}
	return out
}
