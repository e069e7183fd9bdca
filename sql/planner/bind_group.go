package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// aggregate is an aggregate call of a query level. Its arguments are over the
// row before grouping.
type aggregate struct {
	call plan.AggCall
	pos  int
	// direct are the direct arguments of an ordered-set aggregate, which are one
	// value for the whole group.
	direct []expr.Expr
}

// grouping is a call of grouping(…), with its position and those of its arguments.
type grouping struct {
	at   int
	args []expr.Expr
	pos  []int
}

// groupClause binds GROUP BY into groupBy and, if it has grouping sets, sets.
func (sel *selectState) groupClause() error {
	list := sel.stmt.GroupClause
	if len(list) == 0 {
		return nil
	}
	sel.grouped = true
	sel.hasSets = slices.ContainsFunc(list, func(n *pg.Node) bool { return n.GetGroupingSet() != nil })
	sets := [][]int{{}}
	plain := true
	for _, n := range list {
		if g := n.GetGroupingSet(); g != nil {
			plain = false
			more, err := sel.groupingSet(g)
			if err != nil {
				return err
			}
			sets = crossSets(sets, more)
			continue
		}
		keys, err := sel.groupKeys(n)
		if err != nil {
			return err
		}
		for i := range sets {
			sets[i] = union(sets[i], keys)
		}
	}
	if plain {
		return nil
	}
	if len(sets) > maxGroupingSets {
		return pgerror.New(pgerror.StatementTooComplex, "too many grouping sets present (maximum %d)", maxGroupingSets)
	}
	if sel.stmt.GroupDistinct {
		sets = distinctSets(sets)
	}
	if len(sets) > 1 || len(sets[0]) != len(sel.groupBy) {
		sel.sets = sets
	}
	return nil
}

// maxGroupingSets is PostgreSQL's limit.
const maxGroupingSets = 4096

// groupKey finds or adds the grouping expression that n means.
func (sel *selectState) groupKeys(n *pg.Node) ([]int, error) {
	if r := n.GetRowExpr(); r != nil && r.RowFormat != pg.CoercionForm_COERCE_EXPLICIT_CALL {
		var out []int
		for _, a := range r.Args {
			k, err := sel.groupKeys(a)
			if err != nil {
				return nil, err
			}
			out = union(out, k)
		}
		return out, nil
	}
	before := len(sel.items)
	i, err := sel.outputItem(n, "GROUP BY", sel.in(inGroupBy))
	if err != nil {
		return nil, err
	}
	e, err := textIfUnknown(sel.items[i].expr)
	if err != nil {
		return nil, err
	}
	sel.items[i].expr = e
	if err := sel.checkGroupable(e, sel.pos(nodeLocation(n))); err != nil {
		return nil, err
	}
	if len(sel.items) > before {
		sel.items = sel.items[:before] // a grouping expression needs no output
	} else if sel.hasSets {
		return []int{sel.itemKey(i)}, nil
	}
	for k, g := range sel.groupBy {
		if expr.Equal(g, e) {
			return []int{k}, nil
		}
	}
	sel.groupBy = append(sel.groupBy, e)
	return []int{len(sel.groupBy) - 1}, nil
}

// itemKey is the key of grouping sets that output item i is. Equal items are keys
// of their own: GROUPING SETS ((1), (2)) nulls each where the other groups.
func (sel *selectState) itemKey(i int) int {
	if sel.items[i].key == 0 {
		sel.groupBy = append(sel.groupBy, sel.items[i].expr)
		sel.items[i].key = len(sel.groupBy)
	}
	return sel.items[i].key - 1
}

func (sel *selectState) checkGroupable(e expr.Expr, pos int) error {
	var bad *pgerror.Error
	expr.Walk(e, func(n expr.Expr) bool {
		c, ok := n.(*expr.Column)
		if !ok || bad != nil {
			return bad == nil
		}
		switch {
		case c.Index >= srfBase:
		case c.Index >= windowBase:
			bad = pgerror.New(pgerror.WindowingError, "window functions are not allowed in GROUP BY").At(sel.windows[c.Index-windowBase].call.Pos)
		case c.Index >= groupBase:
			bad = pgerror.New(pgerror.GroupingError, "aggregate functions are not allowed in GROUP BY").At(sel.groupings[c.Index-groupBase].at)
		case c.Index >= aggBase:
			bad = pgerror.New(pgerror.GroupingError, "aggregate functions are not allowed in GROUP BY").At(sel.aggs[c.Index-aggBase].pos)
		}
		return true
	})
	if bad != nil {
		return bad
	}
	if !types.HasEquality(e.Type()) {
		return pgerror.New(pgerror.UndefinedFunction, "could not identify an equality operator for type %s", e.Type().OID).At(pos)
	}
	return nil
}

// groupingSet expands ROLLUP, CUBE, GROUPING SETS and () into sets of keys.
func (sel *selectState) groupingSet(g *pg.GroupingSet) ([][]int, error) {
	switch g.Kind {
	case pg.GroupingSetKind_GROUPING_SET_EMPTY:
		return [][]int{{}}, nil
	case pg.GroupingSetKind_GROUPING_SET_SETS:
		var out [][]int
		for _, n := range g.Content {
			if in := n.GetGroupingSet(); in != nil {
				more, err := sel.groupingSet(in)
				if err != nil {
					return nil, err
				}
				out = append(out, more...)
				continue
			}
			k, err := sel.groupKeys(n)
			if err != nil {
				return nil, err
			}
			out = append(out, k)
		}
		return out, nil
	}
	var parts [][]int
	for _, n := range g.Content {
		k, err := sel.groupKeys(n)
		if err != nil {
			return nil, err
		}
		parts = append(parts, k)
	}
	if g.Kind == pg.GroupingSetKind_GROUPING_SET_ROLLUP {
		return rollup(parts), nil
	}
	if len(parts) > 12 {
		return nil, pgerror.New(pgerror.TooManyColumns, "CUBE is limited to 12 elements").At(sel.pos(g.Location))
	}
	return cube(parts), nil
}

// rollup is all prefixes of parts, the longest first.
func rollup(parts [][]int) [][]int {
	var out [][]int
	for n := len(parts); n >= 0; n-- {
		set := []int{}
		for _, p := range parts[:n] {
			set = union(set, p)
		}
		out = append(out, set)
	}
	return out
}

// cube is all subsets of parts, the whole first.
func cube(parts [][]int) [][]int {
	var out [][]int
	for mask := 1<<len(parts) - 1; mask >= 0; mask-- {
		set := []int{}
		for i, p := range parts {
			if mask&(1<<(len(parts)-1-i)) != 0 {
				set = union(set, p)
			}
		}
		out = append(out, set)
	}
	return out
}

func crossSets(a, b [][]int) [][]int {
	out := make([][]int, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			out = append(out, union(x, y))
		}
	}
	return out
}

func union(a, b []int) []int {
	out := slices.Clone(a)
	if out == nil {
		out = []int{}
	}
	for _, x := range b {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

func distinctSets(sets [][]int) [][]int {
	var out [][]int
	seen := map[string]bool{}
	for _, s := range sets {
		k := slices.Clone(s)
		slices.Sort(k)
		key := string(appendInts(nil, k))
		if !seen[key] {
			seen[key] = true
			out = append(out, s)
		}
	}
	return out
}

func appendInts(b []byte, xs []int) []byte {
	for _, x := range xs {
		b = append(b, byte(x>>8), byte(x))
	}
	return b
}

// compute makes the nodes between FROM … WHERE and the select list: grouping,
// HAVING, window functions, set-returning functions.
func (sel *selectState) compute() error {
	if sel.grouped || len(sel.aggs) > 0 || len(sel.groupings) > 0 || sel.having != nil {
		if err := sel.aggregate(); err != nil {
			return err
		}
	}
	sel.window()
	if sel.qualify != nil {
		sel.rel = filter(sel.rel, conjuncts([]expr.Expr{sel.qualify})...)
	}
	return sel.flatMap()
}

// everyExpr calls f with the address of every expression that is computed
// after grouping: what the select list and all that it refers to consist of.
func (sel *selectState) everyExpr(f func(*expr.Expr) error) error {
	var ptrs []*expr.Expr
	// The arguments of window and set-returning functions where the calls stand,
	// as PostgreSQL reports mistakes.
	windows, srfs := make([]bool, len(sel.windows)), make([]bool, len(sel.srfs))
	window := func(i int) {
		if w := &sel.windows[i]; !windows[i] {
			windows[i] = true
			for j := range w.call.Args {
				ptrs = append(ptrs, &w.call.Args[j])
			}
			if w.call.Filter != nil {
				ptrs = append(ptrs, &w.call.Filter)
			}
		}
	}
	srf := func(i int) {
		if !srfs[i] {
			srfs[i] = true
			for j := range sel.srfs[i].args {
				ptrs = append(ptrs, &sel.srfs[i].args[j])
			}
		}
	}
	for i := range sel.items {
		expr.Walk(sel.items[i].expr, func(e expr.Expr) bool {
			c, ok := e.(*expr.Column)
			switch {
			case !ok || c.Index < windowBase:
			case c.Index < srfBase:
				window(c.Index - windowBase)
			default:
				if k := sel.srfAt(c.Index - srfBase); k >= 0 {
					srf(k)
				}
			}
			return true
		})
		ptrs = append(ptrs, &sel.items[i].expr)
	}
	if sel.qualify != nil {
		ptrs = append(ptrs, &sel.qualify)
	}
	for i := range sel.windows {
		window(i)
	}
	for i := range sel.srfs {
		srf(i)
	}
	for _, n := range sel.stmt.WindowClause { // also those that no call uses
		ptrs = append(ptrs, sel.named[n.GetWindowDef().Name].exprs()...)
	}
	for i := range sel.windows {
		ptrs = append(ptrs, sel.windows[i].spec.exprs()...)
	}
	if sel.having != nil {
		ptrs = append(ptrs, &sel.having)
	}
	for _, p := range ptrs {
		if err := f(p); err != nil {
			return err
		}
	}
	return nil
}

// srfAt is the set-returning function that a placeholder stands for.
func (sel *selectState) srfAt(at int) int {
	return slices.IndexFunc(sel.srfs, func(c srfCall) bool { return at >= c.first && at < c.first+len(c.cols) })
}

// exprs are the expressions of a window, the order before the partitioning, as
// PostgreSQL reports mistakes.
func (w *windowSpec) exprs() []*expr.Expr {
	var out []*expr.Expr
	for i := range w.order {
		out = append(out, &w.order[i].Expr)
	}
	for i := range w.partition {
		out = append(out, &w.partition[i])
	}
	return out
}

// aggregate makes the Aggregate and HAVING, and rewrites all expressions over
// its output.
func (sel *selectState) aggregate() error {
	sel.flatMapGroups()
	sel.addDependent()
	a := &plan.Aggregate{Input: sel.rel, GroupBy: sel.groupBy, GroupingSets: sel.sets}
	in := sel.rel.Columns()
	for _, g := range sel.groupBy {
		c := plan.Column{Name: "?column?", Type: g.Type(), NotNull: sel.sets == nil && neverNullIn(g, in)}
		if col, ok := g.(*expr.Column); ok {
			c.Name = col.Name
		}
		a.Cols = append(a.Cols, c)
	}
	for _, g := range sel.aggs {
		a.Aggs = append(a.Aggs, g.call)
		counts := g.call.Fn.Op == expr.AggCount || g.call.Fn.Op == expr.AggCountStar
		a.Cols = append(a.Cols, plan.Column{Name: g.call.Fn.Name, Type: g.call.Typ, NotNull: counts})
	}
	if sel.sets != nil {
		a.Cols = append(a.Cols, plan.Column{Name: "grouping set", Type: types.Int4, NotNull: true})
	}
	sel.rel = a
	r := regrouper{sel: sel}
	for _, g := range sel.aggs {
		for _, e := range g.direct {
			if r.rewrite(e); r.err != nil {
				return pgerror.As(r.err).WithDetail("Direct arguments of an ordered-set aggregate must use only grouped columns.")
			}
		}
	}
	if err := sel.everyExpr(func(e *expr.Expr) error {
		*e = r.rewrite(*e)
		return r.err
	}); err != nil {
		return err
	}
	if sel.sets != nil {
		for i := range sel.items { // also a constant is NULL where its key is left out
			if k := sel.items[i].key; k > 0 {
				sel.items[i].expr = r.key(k - 1)
			}
		}
	}
	if sel.having != nil {
		sel.rel = filter(sel.rel, conjuncts([]expr.Expr{sel.having})...)
	}
	return nil
}

// flatMapGroups makes the set-returning functions that GROUP BY refers to: they
// run before the grouping.
func (sel *selectState) flatMapGroups() {
	var calls []int
	for i := range sel.srfs {
		c := &sel.srfs[i]
		for _, g := range sel.groupBy {
			if hasPlaceholder(g, srfBase+c.first, srfBase+c.first+len(c.cols)) {
				calls = append(calls, i)
				break
			}
		}
	}
	if len(calls) == 0 {
		return
	}
	done := map[int]int{}
	sel.flatMapStep(calls, done)
	for i := range sel.groupBy {
		sel.groupBy[i] = sel.placed(sel.groupBy[i], done)
	}
	_ = sel.everyExpr(func(e *expr.Expr) error {
		*e = sel.placed(*e, done)
		return nil
	})
}

// addDependent adds to the grouping the columns that functionally depend on it:
// those of a table whose primary key is grouped by, in every grouping set.
func (sel *selectState) addDependent() {
	byKey := map[int]bool{} // columns of tables whose key is grouped by
	for _, e := range sel.scope.entries {
		if e.object == nil || len(e.object.PrimaryKey) == 0 {
			continue
		}
		all := true
		for _, k := range e.object.PrimaryKey {
			at := slices.IndexFunc(sel.groupBy, func(g expr.Expr) bool {
				c, ok := g.(*expr.Column)
				return ok && c.Index == e.columns[k].index
			})
			all = all && at >= 0 && !slices.ContainsFunc(sel.sets, func(s []int) bool { return !slices.Contains(s, at) })
		}
		for i := range e.columns {
			if all {
				byKey[e.columns[i].index] = true
			}
		}
	}
	if len(byKey) == 0 {
		return
	}
	add := func(index int, typ types.Type, name string) {
		if index < aggBase && byKey[index] {
			delete(byKey, index)
			c := &expr.Column{Index: index, Typ: typ, Name: name}
			if !slices.ContainsFunc(sel.groupBy, func(g expr.Expr) bool { return expr.Equal(g, c) }) {
				sel.groupBy = append(sel.groupBy, c)
				for i, s := range sel.sets {
					sel.sets[i] = append(slices.Clone(s), len(sel.groupBy)-1)
				}
			}
		}
	}
	keys := sel.groupBy
	var visit func(e expr.Expr) expr.Expr
	visit = func(e expr.Expr) expr.Expr {
		if slices.ContainsFunc(keys, func(g expr.Expr) bool { return expr.Equal(g, e) }) {
			return e
		}
		switch e := e.(type) {
		case *expr.Column:
			add(e.Index, e.Typ, e.Name)
			return e
		case *expr.Subquery:
			return mapRefs(e, func(c *expr.Column) expr.Expr { return c }, func(c *expr.OuterColumn, level int) expr.Expr {
				if c.Depth == level {
					add(c.Index, c.Typ, c.Name)
				}
				return c
			})
		}
		return expr.MapChildren(e, visit)
	}
	_ = sel.everyExpr(func(e *expr.Expr) error { visit(*e); return nil })
}

// regrouper rewrites expressions over the row before grouping into expressions
// over the output of the Aggregate.
type regrouper struct {
	sel *selectState
	err error
}

func (r *regrouper) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *regrouper) rewrite(e expr.Expr) expr.Expr {
	if !isConstant(e) || r.sel.sets == nil {
		for i, g := range r.sel.groupBy {
			if expr.Equal(g, e) {
				return r.key(i)
			}
		}
	}
	switch e := e.(type) {
	case *expr.Column:
		if i, ok := r.after(e.Index); ok {
			return &expr.Column{Index: i, Typ: e.Typ, Name: e.Name}
		}
		if e.Index >= groupBase && e.Index < windowBase {
			return r.grouping(r.sel.groupings[e.Index-groupBase])
		}
		if e.Index >= windowBase {
			return e
		}
		r.ungrouped(e, ungroupedColumn)
		return e
	case *expr.Subquery:
		outer := func(format string) outerFunc {
			return func(c *expr.OuterColumn, level int) expr.Expr {
				if c.Depth != level+1 {
					return c
				}
				if level == 0 && r.sel.refs[c].lifted {
					return r.outer(c, ungroupedColumn)
				}
				return r.outer(c, format)
			}
		}
		c := *e
		c.Test = mapOuterExpr(e.Test, 0, outer(ungroupedColumn))
		before := r.err
		inside := outer("subquery uses ungrouped column \"%s\" from outer query")
		c.Rel = mapOuter(e.Rel.(plan.Rel), 0, inside)
		if r.err != before {
			r.err = nil
			asWritten(e.Rel.(plan.Rel), 0, inside)
		}
		return &c
	}
	return expr.MapChildren(e, r.rewrite)
}

const ungroupedColumn = "column \"%s\" must appear in the GROUP BY clause or be used in an aggregate function"

func isConstant(e expr.Expr) bool {
	_, ok := e.(*expr.Const)
	return ok
}

// key is grouping key i in the output.
func (r *regrouper) key(i int) expr.Expr {
	g := r.sel.groupBy[i]
	name := "?column?"
	if c, ok := g.(*expr.Column); ok {
		name = c.Name
	}
	return &expr.Column{Index: i, Typ: g.Type(), Name: name}
}

// after is the output column of an aggregate's placeholder.
func (r *regrouper) after(index int) (int, bool) {
	if index >= aggBase && index < groupBase {
		return len(r.sel.groupBy) + index - aggBase, true
	}
	return 0, false
}

// outer rewrites a reference from inside a subquery.
func (r *regrouper) outer(c *expr.OuterColumn, format string) expr.Expr {
	at := func(i int) expr.Expr {
		return &expr.OuterColumn{Depth: c.Depth, Index: i, Typ: c.Typ, Name: c.Name}
	}
	if i, ok := r.after(c.Index); ok {
		return at(i)
	}
	if c.Index >= windowBase {
		return c
	}
	if c.Index >= groupBase {
		return mapRefs(r.grouping(r.sel.groupings[c.Index-groupBase]), func(k *expr.Column) expr.Expr {
			return &expr.OuterColumn{Depth: c.Depth, Index: k.Index, Typ: k.Typ, Name: k.Name}
		}, func(o *expr.OuterColumn, _ int) expr.Expr { return atDepth(o, o.Depth+c.Depth) })
	}
	for i, g := range r.sel.groupBy {
		if col, ok := g.(*expr.Column); ok && col.Index == c.Index {
			return at(i)
		}
	}
	r.ungrouped(c, format)
	return c
}

func (r *regrouper) ungrouped(e expr.Expr, format string) {
	use := r.sel.refs[e]
	name := use.name
	if use.table != "" {
		name = use.table + "." + name
	}
	r.fail(pgerror.New(pgerror.GroupingError, format, name).At(use.pos))
}

// grouping is the value of grouping(…): a bit per argument, 1 if the row's
// grouping set leaves it out. The last column of the Aggregate numbers the sets.
func (r *regrouper) grouping(g grouping) expr.Expr {
	var keys []int
	for n, a := range g.args {
		i := slices.IndexFunc(r.sel.groupBy, func(k expr.Expr) bool { return expr.Equal(k, a) })
		if i < 0 {
			r.fail(pgerror.New(pgerror.GroupingError,
				"arguments to GROUPING must be grouping expressions of the associated query level").At(g.pos[n]))
			return int32Const(0)
		}
		keys = append(keys, i)
	}
	set := &expr.Column{Index: len(r.sel.groupBy) + len(r.sel.aggs), Typ: types.Int4, Name: "grouping set"}
	c := &expr.Case{Typ: types.Int4, Else: int32Const(0)}
	for n, s := range r.sel.sets {
		bits := int32(0)
		for _, k := range keys {
			bits <<= 1
			if !slices.Contains(s, k) {
				bits |= 1
			}
		}
		if bits != 0 {
			c.Whens = append(c.Whens, expr.When{Cond: mustOp("=", set, int32Const(int32(n))), Then: int32Const(bits)})
		}
	}
	if len(c.Whens) == 0 {
		return int32Const(0)
	}
	return c
}
