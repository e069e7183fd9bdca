package planner

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// Rules on single nodes whose inputs are clean already, applied bottom-up.

// clean applies the rules below to every node of r.
func (o *optimizer) clean(r plan.Rel) plan.Rel {
	r = plan.MapChildren(r, o.clean)
	r = o.simplifyExprs(r)
	return o.node(r)
}

// node applies the rules for one node.
func (o *optimizer) node(r plan.Rel) plan.Rel {
	switch r := r.(type) {
	case *plan.Project:
		return o.cleanProject(r)
	case *plan.Filter:
		return o.cleanFilter(r)
	case *plan.Join:
		return o.cleanJoin(r)
	case *plan.Aggregate:
		return o.cleanAggregate(r)
	case *plan.Distinct:
		return o.cleanDistinct(r)
	case *plan.TopK:
		return o.cleanTopK(r)
	case *plan.Sort:
		return o.cleanSort(r)
	case *plan.SetOp:
		return o.cleanSetOp(r)
	case *plan.Window:
		if isEmpty(r.Input) && o.rule("PropagateEmpty") {
			return empty(r.Cols)
		}
		return o.windowAggregate(r)
	case *plan.FlatMap:
		if isEmpty(r.Input) && o.rule("PropagateEmpty") {
			return empty(r.Cols)
		}
	case *plan.Assert:
		return o.cleanAssert(r)
	case *plan.Let:
		return o.cleanLet(r)
	}
	return r
}

// isEmpty reports whether r is a Constant without rows.
func isEmpty(r plan.Rel) bool {
	c, ok := r.(*plan.Constant)
	return ok && c.Rows.N == 0
}

func empty(cols []plan.Column) plan.Rel {
	c := &plan.Constant{Cols: cols, Rows: columnar.Batch{Cols: make([]*columnar.Vec, len(cols))}}
	for i, col := range cols {
		c.Rows.Cols[i] = columnar.NewBuilder(col.Type.Kind(), 0).Build()
	}
	return c
}

// FuseProjects: a projection of a projection is one, unless it would compute
// something twice, or a volatile function another number of times.
//
//	SELECT x + 1 FROM (SELECT a * 2 AS x FROM t)  →  SELECT a * 2 + 1 FROM t
//
// RemoveProject: a projection that gives its input's columns as they are goes
// (names of columns are the reader's affair).
//
// FoldProject: of constants over one row, a projection is a constant itself.
func (o *optimizer) cleanProject(r *plan.Project) plan.Rel {
	if isEmpty(r.Input) && o.rule("PropagateEmpty") {
		return empty(r.Cols)
	}
	if in, ok := r.Input.(*plan.Project); ok && o.on("FuseProjects") && fusable(r, in) {
		o.fire("FuseProjects")
		f := &plan.Project{Input: in.Input, Exprs: make([]expr.Expr, len(r.Exprs)), Cols: r.Cols}
		for i, e := range r.Exprs {
			f.Exprs[i] = expr.Substitute(e, in.Exprs)
		}
		return o.node(o.simplifyExprs(f))
	}
	if c, ok := r.Input.(*plan.Constant); ok && c.Rows.N == 1 && c.Diffs == nil && o.on("FoldProject") {
		if out := foldProject(r, c); out != nil {
			o.fire("FoldProject")
			return out
		}
	}
	if isIdentity(r) && o.on("RemoveProject") {
		o.note("RemoveProject")
		return r.Input
	}
	return knownNotNull(r)
}

// knownNotNull is r with the columns marked that are not NULL as far as is known
// by now: joins may have become inner since it was made.
func knownNotNull(r *plan.Project) plan.Rel {
	var in []plan.Column
	var cols []plan.Column
	for i, e := range r.Exprs {
		if r.Cols[i].NotNull {
			continue
		}
		if in == nil {
			in = r.Input.Columns()
		}
		if mayBeNull(e, nil, in) {
			continue
		}
		if cols == nil {
			cols = slices.Clone(r.Cols)
		}
		cols[i].NotNull = true
	}
	if cols == nil {
		return r
	}
	return &plan.Project{Input: r.Input, Exprs: r.Exprs, Cols: cols}
}

// isIdentity reports whether r gives its input's columns in their order.
func isIdentity(r *plan.Project) bool {
	if len(r.Exprs) != plan.Arity(r.Input) {
		return false
	}
	for i, e := range r.Exprs {
		if c, ok := e.(*expr.Column); !ok || c.Index != i {
			return false
		}
	}
	return true
}

// fusable reports whether the expressions of in may be put into those of r.
func fusable(r, in *plan.Project) bool {
	uses := make([]int, len(in.Exprs))
	fields := map[expr.Expr]int{}
	for _, e := range r.Exprs {
		expr.Walk(e, func(e expr.Expr) bool {
			switch e := e.(type) {
			case *expr.Column:
				uses[e.Index]++
			case *expr.Call:
				if f := fieldBelow(e, in); f != nil {
					fields[f]++
					return false
				}
			}
			return true
		})
	}
	for i, e := range in.Exprs {
		if uses[i] > 1 && !isFree(e) || expr.VolatilityOf(e) == expr.Volatile {
			return false
		}
	}
	for f, n := range fields {
		if n > 1 && !isFree(f) {
			return false
		}
	}
	return true
}

func isFree(e expr.Expr) bool {
	switch e.(type) {
	case *expr.Column, *expr.Const, *expr.Param:
		return true
	}
	return false
}

// fieldBelow is the field of a row that the projection below makes, if a call takes one.
func fieldBelow(e *expr.Call, in *plan.Project) expr.Expr {
	if e.Fn.Field == 0 {
		return nil
	}
	c, ok := e.Args[0].(*expr.Column)
	if !ok {
		return nil
	}
	return expr.FieldOfRow(&expr.Call{Fn: e.Fn, Args: []expr.Expr{in.Exprs[c.Index]}, Typ: e.Typ})
}

// foldProject is a projection of one row of constants, if all it computes is
// constant; else nil.
func foldProject(r *plan.Project, c *plan.Constant) plan.Rel {
	out := &plan.Constant{Cols: r.Cols, Rows: columnar.Batch{N: 1, Cols: make([]*columnar.Vec, len(r.Exprs))}}
	for i, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Column:
			out.Rows.Cols[i] = c.Rows.Cols[e.Index]
		case *expr.Const:
			out.Rows.Cols[i] = e.Val
		default:
			return nil
		}
	}
	return out
}

// FilterToConstant: a filter that is never true gives nothing.
//
//	SELECT * FROM t WHERE false  →  no rows
//
// RemoveFilter: predicates that are always true go.
func (o *optimizer) cleanFilter(r *plan.Filter) plan.Rel {
	if isEmpty(r.Input) && o.rule("PropagateEmpty") {
		return r.Input
	}
	var keep []expr.Expr
	for i, p := range conjuncts(r.Preds) {
		v, null, ok := boolValue(p)
		switch {
		case ok && v && !null:
			continue
		case ok && o.on("FilterToConstant"):
			o.fire("FilterToConstant")
			return empty(r.Columns())
		case o.contradicts(r.Preds[:min(i, len(r.Preds))], p):
			o.fire("FilterToConstant")
			return empty(r.Columns())
		}
		if !slices.ContainsFunc(keep, func(q expr.Expr) bool { return expr.Equal(p, q) }) || expr.VolatilityOf(p) == expr.Volatile {
			keep = append(keep, p)
		}
	}
	if len(keep) < len(r.Preds) && o.rule("RemoveFilter") {
		return o.numbered(filter(r.Input, keep...))
	}
	if j := o.flatMapJoin(r); j != r {
		return j
	}
	return o.numbered(r)
}

// contradicts reports whether p and an earlier predicate equate a column to
// two different constants.
func (o *optimizer) contradicts(earlier []expr.Expr, p expr.Expr) bool {
	c, v := columnEquals(p)
	if c == nil || !o.on("FilterToConstant") || !plan.BitEqual(c.Typ) {
		return false
	}
	for _, q := range earlier {
		d, w := columnEquals(q)
		if d != nil && d.Index == c.Index && v.Typ.OID == w.Typ.OID && !sameValue(v, w) {
			return true
		}
	}
	return false
}

// sameValue reports whether two constants of a type are equal in SQL: the column that
// they are compared with has one form of each value, and they may have others.
func sameValue(v, w *expr.Const) bool {
	if !types.NeedsNorm(v.Typ) {
		return expr.Equal(v, w)
	}
	return columnar.EqualAt(types.NormVec(v.Typ, v.Val), 0, types.NormVec(w.Typ, w.Val), 0)
}

// columnEquals gives the parts of `column = constant`.
func columnEquals(p expr.Expr) (*expr.Column, *expr.Const) {
	l, r, ok := plan.IsEquality(p)
	if !ok {
		return nil, nil
	}
	if _, ok := l.(*expr.Const); ok {
		l, r = r, l
	}
	c, ok1 := l.(*expr.Column)
	v, ok2 := r.(*expr.Const)
	if !ok1 || !ok2 || v.Val.Null(0) || c.Typ.OID != v.Typ.OID {
		return nil, nil
	}
	return c, v
}

// RemoveUnitJoin: a cross join with one row adds the row's constants.
//
//	SELECT * FROM t, (SELECT 1 AS one)  →  SELECT *, 1 FROM t
//
// PropagateEmpty: joins with nothing are nothing, or NULL-extended.
func (o *optimizer) cleanJoin(r *plan.Join) plan.Rel {
	if out := o.emptyJoin(r); out != nil {
		return out
	}
	r = o.withoutTrue(r)
	if r.Kind == plan.JoinSemi || r.Kind == plan.JoinAnti {
		return o.cleanSemi(r)
	}
	if r.Kind != plan.JoinInner || !o.on("RemoveUnitJoin") {
		return r
	}
	l, lok := r.Left.(*plan.Constant)
	rc, rok := r.Right.(*plan.Constant)
	cols := r.Columns()
	switch {
	case rok && rc.Rows.N == 1 && rc.Diffs == nil:
		o.fire("RemoveUnitJoin")
		exprs := append(plan.Refs(r.Left.Columns()), constants(rc)...)
		return o.joined(r.Left, exprs, cols, r.On)
	case lok && l.Rows.N == 1 && l.Diffs == nil:
		o.fire("RemoveUnitJoin")
		exprs := append(constants(l), plan.Refs(r.Right.Columns())...)
		return o.joined(r.Right, exprs, cols, r.On)
	}
	return r
}

// withoutTrue: RemoveFilter for the conditions of a join.
func (o *optimizer) withoutTrue(r *plan.Join) *plan.Join {
	keep, gone := split(r.On, func(p expr.Expr) bool {
		v, null, ok := boolValue(p)
		return !ok || null || !v
	})
	if len(gone) == 0 || !o.rule("RemoveFilter") {
		return r
	}
	c := *r
	c.On = keep
	return &c
}

// joined is what is left of a join with one row: in filtered by ON, projected.
func (o *optimizer) joined(in plan.Rel, exprs []expr.Expr, cols []plan.Column, on []expr.Expr) plan.Rel {
	preds := make([]expr.Expr, len(on))
	for i, p := range on {
		preds[i] = expr.Substitute(p, exprs)
	}
	return o.clean(projection(filter(in, preds...), exprs, cols))
}

// constants are the values of a Constant of one row.
func constants(c *plan.Constant) []expr.Expr {
	out := make([]expr.Expr, len(c.Cols))
	for i, v := range c.Rows.Cols {
		out[i] = &expr.Const{Val: v, Typ: c.Cols[i].Type}
	}
	return out
}

// emptyJoin is a join with an empty side, nil if no side is empty.
func (o *optimizer) emptyJoin(r *plan.Join) plan.Rel {
	l, rr := isEmpty(r.Left), isEmpty(r.Right)
	for _, p := range r.On {
		if v, null, ok := boolValue(p); ok && (null || !v) {
			rr = rr || r.Kind != plan.JoinRight && r.Kind != plan.JoinFull
		}
	}
	if !l && !rr || !o.on("PropagateEmpty") {
		return nil
	}
	cols := r.Columns()
	nl := plan.Arity(r.Left)
	switch r.Kind {
	case plan.JoinInner, plan.JoinSemi:
		o.fire("PropagateEmpty")
		return empty(cols)
	case plan.JoinAnti:
		o.fire("PropagateEmpty")
		return r.Left
	case plan.JoinLeft:
		o.fire("PropagateEmpty")
		if l {
			return empty(cols)
		}
		return nullExtended(r.Left, 0, cols)
	case plan.JoinRight:
		if l && !rr {
			o.fire("PropagateEmpty")
			return nullExtended(r.Right, nl, cols)
		}
	case plan.JoinFull:
		o.fire("PropagateEmpty")
		if l {
			return nullExtended(r.Right, nl, cols)
		}
		return nullExtended(r.Left, 0, cols)
	}
	return nil
}

// nullExtended is r's columns at the place at among cols, the others NULL.
func nullExtended(r plan.Rel, at int, cols []plan.Column) plan.Rel {
	n := plan.Arity(r)
	in := r.Columns()
	p := &plan.Project{Input: r, Cols: cols}
	for i, c := range cols {
		if i >= at && i < at+n {
			p.Exprs = append(p.Exprs, plan.RefTo(in, i-at))
		} else {
			p.Exprs = append(p.Exprs, nullConst(c.Type))
		}
	}
	return p
}

// AggregateToDistinct: grouping without aggregates is DISTINCT.
//
//	SELECT a, b FROM t GROUP BY a, b  →  SELECT DISTINCT a, b FROM t
//
// PropagateEmpty: groups of nothing are nothing.
func (o *optimizer) cleanAggregate(r *plan.Aggregate) plan.Rel {
	if len(r.GroupBy) == 0 {
		if len(r.Aggs) == 0 && o.rule("RemoveAggregate") {
			return &plan.Constant{Rows: columnar.Batch{N: 1}}
		}
		return o.splitRanks(r)
	}
	if isEmpty(r.Input) && o.rule("PropagateEmpty") {
		return empty(r.Cols)
	}
	if len(r.Aggs) == 0 && o.rule("AggregateToDistinct") {
		return o.node(&plan.Distinct{Input: o.node(&plan.Project{Input: r.Input, Exprs: r.GroupBy, Cols: r.Cols})})
	}
	if out := o.keyedAggregate(r); out != nil {
		return out
	}
	out := o.dropConstantGroups(o.plainAggs(r))
	if a, ok := out.(*plan.Aggregate); ok {
		return o.splitRanks(a)
	}
	return out
}

// DropConstantGroups: group columns that are constant, or follow from the
// others, do not group. (One is kept, since without groups there would be a row
// for no input.)
//
//	SELECT a, a + 1, 5, count(*) FROM t GROUP BY a, a + 1, 5
//	  →  SELECT a, a + 1, 5, count FROM (SELECT a, count(*) FROM t GROUP BY a)
func (o *optimizer) dropConstantGroups(r *plan.Aggregate) plan.Rel {
	g := len(r.GroupBy)
	if g < 2 || !o.on("DropConstantGroups") {
		return r
	}
	var kept []int
	at := map[int]int{} // input column → place among those kept
	for i, e := range r.GroupBy {
		if c, ok := e.(*expr.Column); ok {
			if _, seen := at[c.Index]; !seen {
				at[c.Index] = len(kept)
				kept = append(kept, i)
			}
		}
	}
	for i, e := range r.GroupBy {
		if _, ok := e.(*expr.Column); !ok && !follows(e, at) {
			kept = append(kept, i)
		}
	}
	if len(kept) == 0 {
		kept = append(kept, 0)
	}
	if len(kept) == g {
		return r
	}
	o.fire("DropConstantGroups")
	a := &plan.Aggregate{Input: r.Input, Aggs: r.Aggs}
	for _, k := range kept {
		a.GroupBy, a.Cols = append(a.GroupBy, r.GroupBy[k]), append(a.Cols, r.Cols[k])
	}
	a.Cols = append(a.Cols, r.Cols[g:]...)
	p := &plan.Project{Input: a, Cols: r.Cols}
	for i, e := range r.GroupBy {
		if k := slices.Index(kept, i); k >= 0 {
			p.Exprs = append(p.Exprs, plan.RefTo(a.Cols, k))
		} else {
			p.Exprs = append(p.Exprs, expr.Remap(e, func(c int) int { return at[c] }))
		}
	}
	for i := range r.Aggs {
		p.Exprs = append(p.Exprs, plan.RefTo(a.Cols, len(kept)+i))
	}
	return p
}

// follows reports whether e is decided by the columns in at. One that may fail
// is not worth moving.
func follows(e expr.Expr, at map[int]int) bool {
	if expr.VolatilityOf(e) == expr.Volatile || mayRaise(e) {
		return false
	}
	return !expr.Any(e, func(n expr.Expr) bool {
		c, ok := n.(*expr.Column)
		if !ok {
			return false
		}
		_, kept := at[c.Index]
		return !kept || !plan.BitEqual(c.Typ)
	})
}

// RemoveDistinct: what is unique by a key has no duplicates to remove.
//
//	SELECT DISTINCT id, x FROM t  →  SELECT id, x FROM t        (id is a primary key)
func (o *optimizer) cleanDistinct(r *plan.Distinct) plan.Rel {
	if isEmpty(r.Input) && o.rule("PropagateEmpty") {
		return r.Input
	}
	if len(plan.Keys(r.Input)) > 0 && o.rule("RemoveDistinct") {
		return r.Input
	}
	switch in := r.Input.(type) {
	case *plan.SetOp: // DISTINCT over UNION ALL is UNION
		if in.Kind == plan.Union && in.All && o.rule("RemoveDistinct") {
			c := *in
			c.All = false
			return o.cleanSetOp(&c)
		}
	}
	return r
}

// RemoveAssert: what is known to be unique need not be asserted.
func (o *optimizer) cleanAssert(r *plan.Assert) plan.Rel {
	if isEmpty(r.Input) && o.rule("PropagateEmpty") {
		return r.Input
	}
	for _, k := range plan.Keys(r.Input) {
		if plan.Subset(k, r.Key) && o.rule("RemoveAssert") {
			return r.Input
		}
	}
	return r
}

// RemoveTopK: a limit that cannot cut anything goes; LIMIT 0 is nothing.
func (o *optimizer) cleanTopK(r *plan.TopK) plan.Rel {
	if r.RowNumber {
		return r
	}
	if isEmpty(r.Input) && o.rule("PropagateEmpty") {
		return r.Input
	}
	noOffset := r.Offset == nil || plan.IsInt(r.Offset, 0) || expr.IsNullConst(r.Offset)
	noLimit := r.Limit == nil || expr.IsNullConst(r.Limit)
	n, known := plan.IntConst(r.Limit)
	switch {
	case noLimit && noOffset && o.rule("RemoveTopK"):
		return r.Input
	case known && n == 0 && noOffset && o.rule("RemoveTopK"):
		return empty(r.Columns())
	case known && n > 0 && noOffset && o.on("RemoveTopK"):
		for _, k := range plan.Keys(r.Input) {
			if plan.Subset(k, r.Partition) {
				o.fire("RemoveTopK")
				return r.Input
			}
		}
	}
	if len(r.Partition) == 0 && !r.WithTies {
		if out := o.limitBelow(r.Input, r.Order, r.Limit, r.Offset); out != nil {
			c := *r
			c.Input = out
			return &c
		}
	}
	return r
}

// cleanSort: PropagateEmpty, and PushLimit below.
func (o *optimizer) cleanSort(r *plan.Sort) plan.Rel {
	if isEmpty(r.Input) && o.rule("PropagateEmpty") {
		return r.Input
	}
	if out := o.limitBelow(r.Input, r.Order, r.Limit, r.Offset); out != nil {
		c := *r
		c.Input = out
		return &c
	}
	return r
}

// FlattenUnion: a union of unions is one; empty inputs go.
//
//	(a UNION ALL b) UNION ALL c  →  a UNION ALL b UNION ALL c
func (o *optimizer) cleanSetOp(r *plan.SetOp) plan.Rel {
	if r.Kind != plan.Union {
		return o.cleanDifference(r)
	}
	if !o.on("FlattenUnion") {
		return r
	}
	var ins []plan.Rel
	changed := false
	for _, in := range r.Inputs {
		u, ok := in.(*plan.SetOp)
		switch {
		case isEmpty(in):
			changed = true
		case ok && u.Kind == plan.Union && (u.All || !r.All):
			ins = append(ins, u.Inputs...)
			changed = true
		default:
			if d, ok := in.(*plan.Distinct); ok && !r.All {
				in, changed = d.Input, true
			}
			ins = append(ins, in)
		}
	}
	if changed {
		o.fire("FlattenUnion")
	}
	switch {
	case len(ins) == 0:
		return empty(r.Cols)
	case len(ins) == 1:
		if r.All {
			return ins[0]
		}
		return o.cleanDistinct(&plan.Distinct{Input: ins[0]})
	case changed:
		return &plan.SetOp{Kind: plan.Union, All: r.All, Inputs: ins, Cols: r.Cols}
	}
	return r
}

// cleanDifference: PropagateEmpty for INTERSECT and EXCEPT.
func (o *optimizer) cleanDifference(r *plan.SetOp) plan.Rel {
	if len(r.Inputs) != 2 || !o.on("PropagateEmpty") {
		return r
	}
	a, b := isEmpty(r.Inputs[0]), isEmpty(r.Inputs[1])
	switch {
	case a || (b && r.Kind == plan.Intersect):
		o.fire("PropagateEmpty")
		return empty(r.Cols)
	case b:
		o.fire("PropagateEmpty")
		if r.All {
			return r.Inputs[0]
		}
		return o.cleanDistinct(&plan.Distinct{Input: r.Inputs[0]})
	}
	return r
}
