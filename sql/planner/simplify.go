package planner

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// Rules on expressions. None may raise an error that the query would not have
// raised, nor lose one in a place that PostgreSQL would evaluate.

// simplifier simplifies the expressions over one set of columns.
type simplifier struct {
	o    *optimizer
	cols []plan.Column
}

// simplifyExprs simplifies the expressions of one node. Long ones that were
// found to be simple before are passed over: the rules run in rounds.
func (o *optimizer) simplifyExprs(r plan.Rel) plan.Rel {
	s := simplifier{o: o}
	known := false
	var over uint64
	return plan.MapExprs(r, func(e expr.Expr) expr.Expr {
		switch e.(type) {
		case *expr.Column, *expr.Const, *expr.Param:
			return e
		}
		if !known {
			s.cols, known = scopeColumns(r), true
			over = nullability(s.cols)
		}
		if had, ok := o.simple[e]; ok && had == over {
			return e
		}
		n := s.expr(o.fold(e))
		if _, deep := e.(*expr.Logic); deep && n == e {
			if o.simple == nil {
				o.simple = map[expr.Expr]uint64{}
			}
			o.simple[e] = over
		}
		return n
	})
}

// nullability tells column lists apart by which of their columns may be NULL.
func nullability(cols []plan.Column) uint64 {
	const prime = 1099511628211 // of FNV-1a
	h := uint64(len(cols))
	for _, c := range cols {
		if h *= prime; c.NotNull {
			h++
		}
	}
	return h
}

// scopeColumns are the columns that the expressions of a node are over.
func scopeColumns(r plan.Rel) []plan.Column {
	if j, ok := r.(*plan.Join); ok {
		l, rc := j.Left.Columns(), j.Right.Columns()
		return append(append(make([]plan.Column, 0, len(l)+len(rc)), l...), rc...)
	}
	if in := plan.Input(r); in != nil {
		return in.Columns()
	}
	return nil
}

// FoldConstants: what is constant is computed once; what fails stays, to fail
// when, and if, it is evaluated.
//
//	x > 1 + 2  →  x > 3
func (o *optimizer) fold(e expr.Expr) expr.Expr {
	if !o.on("FoldConstants") {
		return e
	}
	n := expr.FoldConstants(e)
	if n != e {
		o.fire("FoldConstants")
	}
	return n
}

func (s *simplifier) expr(e expr.Expr) expr.Expr {
	e = expr.MapChildren(e, s.expr)
	switch e := e.(type) {
	case *expr.Logic:
		return s.logic(e)
	case *expr.Not:
		return s.not(e)
	case *expr.IsNull:
		return s.isNull(e)
	case *expr.Coalesce:
		return s.coalesce(e)
	case *expr.Case:
		return s.caseExpr(e)
	case *expr.Call:
		return s.call(e)
	}
	return e
}

// boolValue is the value of a bool constant; null says that it is NULL.
func boolValue(e expr.Expr) (value, null, ok bool) {
	c, ok := e.(*expr.Const)
	if !ok || c.Typ.OID != types.OIDBool {
		return false, false, false
	}
	if c.Val.Null(0) {
		return false, true, true
	}
	return c.Val.Bools()[0], false, true
}

// SimplifyLogic: AND and OR are flattened, and lose arguments that decide
// nothing, or all but the one that decides.
//
//	a AND (b AND true)  →  a AND b        a OR true  →  true
func (s *simplifier) logic(e *expr.Logic) expr.Expr {
	if !s.o.on("SimplifyLogic") {
		return e
	}
	args := make([]expr.Expr, 0, len(e.Args))
	changed := false
	for _, a := range e.Args {
		if l, ok := a.(*expr.Logic); ok && l.And == e.And {
			args, changed = append(args, l.Args...), true
			continue
		}
		v, null, ok := boolValue(a)
		switch {
		case ok && !null && v == e.And:
			changed = true
		case ok && !null:
			s.o.fire("SimplifyLogic")
			return a
		case slices.ContainsFunc(args, func(o expr.Expr) bool { return expr.Equal(o, a) }) && expr.VolatilityOf(a) != expr.Volatile:
			changed = true
		default:
			args = append(args, a)
		}
	}
	out := expr.Expr(e)
	if changed {
		s.o.fire("SimplifyLogic")
		out = logicOf(e.And, args)
	}
	if l, ok := out.(*expr.Logic); ok && !l.And {
		out = s.orToIn(l)
	}
	if l, ok := out.(*expr.Logic); ok && !l.And {
		return s.factor(l)
	}
	return out
}

// logicOf is AND or OR of any number of arguments.
func logicOf(and bool, args []expr.Expr) expr.Expr {
	switch len(args) {
	case 0:
		return boolConst(and)
	case 1:
		return args[0]
	}
	return &expr.Logic{And: and, Args: args}
}

// FactorDisjunction: conditions common to all branches of an OR come out, so
// that they can become join keys and filters below.
//
//	(a AND b) OR (a AND c)  →  a AND (b OR c)
func (s *simplifier) factor(e *expr.Logic) expr.Expr {
	if !s.o.on("FactorDisjunction") {
		return e
	}
	first := conjuncts(e.Args[:1])
	var common []expr.Expr
	for _, p := range first {
		if expr.VolatilityOf(p) != expr.Immutable {
			continue
		}
		all := true
		for _, b := range e.Args[1:] {
			all = all && slices.ContainsFunc(conjuncts([]expr.Expr{b}), func(q expr.Expr) bool { return expr.Equal(p, q) })
		}
		if all {
			common = append(common, p)
		}
	}
	if len(common) == 0 {
		return e
	}
	s.o.fire("FactorDisjunction")
	branches := make([]expr.Expr, 0, len(e.Args))
	for _, b := range e.Args {
		var rest []expr.Expr
		for _, q := range conjuncts([]expr.Expr{b}) {
			if !slices.ContainsFunc(common, func(p expr.Expr) bool { return expr.Equal(p, q) }) {
				rest = append(rest, q)
			}
		}
		if len(rest) == 0 { // this branch is the common part: the OR is no more than it
			return logicOf(true, common)
		}
		branches = append(branches, logicOf(true, rest))
	}
	return logicOf(true, append(common, logicOf(false, branches)))
}

// SimplifyNot: NOT goes down to what cannot absorb it, so that conjuncts show.
//
//	NOT (a OR b)  →  NOT a AND NOT b        NOT (x IS NULL)  →  x IS NOT NULL
func (s *simplifier) not(e *expr.Not) expr.Expr {
	if !s.o.on("SimplifyNot") {
		return e
	}
	switch a := e.Arg.(type) {
	case *expr.Not:
		s.o.fire("SimplifyNot")
		return a.Arg
	case *expr.IsNull:
		s.o.fire("SimplifyNot")
		return s.isNull(&expr.IsNull{Arg: a.Arg, Not: !a.Not})
	case *expr.Logic:
		s.o.fire("SimplifyNot")
		args := make([]expr.Expr, len(a.Args))
		for i, x := range a.Args {
			args[i] = s.not(&expr.Not{Arg: x})
			if n, ok := args[i].(*expr.Not); ok {
				args[i] = s.expr(n)
			}
		}
		return s.logic(&expr.Logic{And: !a.And, Args: args})
	case *expr.Const:
		if v, null, ok := boolValue(a); ok {
			s.o.fire("SimplifyNot")
			if null {
				return a
			}
			return boolConst(!v)
		}
	case *expr.Call:
		if neg := s.negate(a); neg != nil {
			s.o.fire("SimplifyNot")
			return neg
		}
	}
	return e
}

// negate is a comparison's opposite: NOT (x = y) → x <> y. In PostgreSQL's
// order NaN is a value like others, so all comparisons have exact opposites.
func (s *simplifier) negate(c *expr.Call) expr.Expr {
	if !isComparison(c.Fn) || len(c.Args) != 2 {
		return nil
	}
	op := map[string]string{"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}[c.Fn.Name]
	e, err := expr.NewOp(op, c.Args[0], c.Args[1], c.Pos)
	if err != nil {
		return nil
	}
	return e
}

// SimplifyNullTest: IS NULL of what is never NULL, or always, is decided.
//
//	id IS NOT NULL  →  true        (id is a primary key)
func (s *simplifier) isNull(e *expr.IsNull) expr.Expr {
	if !s.o.on("SimplifyNullTest") {
		return e
	}
	if expr.IsNullConst(e.Arg) {
		s.o.fire("SimplifyNullTest")
		return boolConst(!e.Not)
	}
	if !mayBeNull(e.Arg, nil, s.cols) && !mayRaise(e.Arg) {
		s.o.fire("SimplifyNullTest")
		return boolConst(e.Not)
	}
	return e
}

// SimplifyCoalesce: arguments after one that is never NULL go, and NULLs.
//
//	coalesce(NULL, count, 0)  →  count
func (s *simplifier) coalesce(e *expr.Coalesce) expr.Expr {
	if !s.o.on("SimplifyCoalesce") {
		return e
	}
	args := make([]expr.Expr, 0, len(e.Args))
	for _, a := range e.Args {
		if expr.IsNullConst(a) {
			continue
		}
		args = append(args, a)
		if !mayBeNull(a, nil, s.cols) {
			break
		}
	}
	if len(args) == len(e.Args) {
		return e
	}
	s.o.fire("SimplifyCoalesce")
	switch {
	case len(args) == 0:
		return nullConst(e.Typ)
	case len(args) == 1 && args[0].Type() == e.Typ:
		return args[0]
	}
	return &expr.Coalesce{Args: args, Typ: e.Typ}
}

// SimplifyCase: branches with constant conditions are taken or left.
//
//	CASE WHEN false THEN a WHEN x THEN b WHEN true THEN c ELSE d END  →  CASE WHEN x THEN b ELSE c END
func (s *simplifier) caseExpr(e *expr.Case) expr.Expr {
	if !s.o.on("SimplifyCase") {
		return e
	}
	c := &expr.Case{Else: e.Else, Typ: e.Typ}
	changed := false
	for _, w := range e.Whens {
		v, null, ok := boolValue(w.Cond)
		if !ok {
			c.Whens = append(c.Whens, w)
			continue
		}
		changed = true
		if v && !null {
			c.Else = w.Then
			break
		}
	}
	if !changed {
		return e
	}
	s.o.fire("SimplifyCase")
	if len(c.Whens) > 0 {
		return c
	}
	if c.Else == nil {
		return nullConst(e.Typ)
	}
	return c.Else
}

// FieldOfRow: what is taken from a row that is put together there is the field itself.
//
//	(ROW(a, b)).f2  →  b
func (s *simplifier) call(e *expr.Call) expr.Expr {
	if f := expr.FieldOfRow(e); f != nil && s.o.on("FieldOfRow") {
		s.o.fire("FieldOfRow")
		return f
	}
	return s.same(e)
}

// SimplifyIdentity: *= between values that are never NULL is =, where equality
// is identity; *= NULL is IS NULL.
func (s *simplifier) same(e *expr.Call) expr.Expr {
	l, r, ok := plan.IsSame(e)
	if !ok || !s.o.on("SimplifyIdentity") {
		return e
	}
	out := expr.Expr(e)
	switch {
	case expr.IsNullConst(r):
		out = &expr.IsNull{Arg: l}
	case expr.IsNullConst(l):
		out = &expr.IsNull{Arg: r}
	case !mayBeNull(l, nil, s.cols) || !mayBeNull(r, nil, s.cols):
		out = equal(l, r)
	}
	if _, _, ok := plan.IsSame(out); ok {
		return e
	}
	s.o.fire("SimplifyIdentity")
	return out
}
