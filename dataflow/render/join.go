package render

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow/differential"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// A join is rendered as an inner join on keys with a residual filter; the rows
// of an outer join that find no partner come from an anti join:
//
//	l LEFT JOIN r ON p  =  (l JOIN r ON p) + (l with no partner, NULLs)
//
// where, without a residual, "no partner" is an anti join on the keys, and with
// one, an anti join with the left rows of (l JOIN r ON p).

// side is one side of a join, arranged by its keys.
type side struct {
	stream differential.Stream
	arr    *differential.Arrangement
	at     []int        // column of the collection → column of arr, -1: not there
	types  []types.Type // of the columns of the collection
	key    []int        // key columns of arr
	unique []int        // a key of the collection (columns of it), nil if none is known
}

// join renders any join.
func (b *builder) join(r *plan.Join, need []bool) coll {
	if r.Delta != nil && !b.opts.Once && b.parent == nil {
		return b.delta(r, need)
	}
	j := *r
	nl, nr := plan.Arity(j.Left), plan.Arity(j.Right)
	if j.Kind == plan.JoinRight {
		return b.join(swapped(&j, nl, nr), swapNeed(need, nl, nr)).project(swappedColumns(&j, nl, nr), need)
	}
	semi := j.Kind == plan.JoinSemi || j.Kind == plan.JoinAnti
	if need == nil {
		need = slices.Repeat([]bool{true}, nl)
		if !semi {
			need = append(need, slices.Repeat([]bool{true}, nr)...)
		}
	}
	cond := splitCondition(j.On, nl)
	use := needed(need, nl+nr, j.On)
	lid, rid := uniqueKey(j.Left), uniqueKey(j.Right)
	if len(cond.residual) > 0 && j.Kind != plan.JoinInner {
		identify(use[:nl], lid)
		if j.Kind == plan.JoinFull {
			identify(use[nl:], rid)
		}
	}
	left, right := b.rel(j.Left, use[:nl]), b.rel(j.Right, use[nl:])
	if semi && len(j.On) == 0 {
		right, _ = b.some(j.Right, right, 0, 1)
	}
	if anyVolatile(j.On) {
		left, right = b.whole(left, j.Left), b.whole(right, j.Right)
	}
	b.placeOneSided(&j, &cond, &left, &right)
	cond.keys = nullSafety(cond.keys, j.Left.Columns(), j.Right.Columns(), j.Kind == plan.JoinFull, &right)
	jn := &joiner{b: b, cond: cond, nl: nl}
	jn.nullSafe = slices.ContainsFunc(cond.keys, func(k joinKey) bool { return k.nullSafe })
	lk, rk := make([]expr.Expr, len(cond.keys)), make([]expr.Expr, len(cond.keys))
	for i, k := range cond.keys {
		lk[i], rk[i] = k.left, k.right
	}
	// What a side has to carry besides its keys: what is asked for and what the
	// residual reads; a semi join without residual reads only keys of the right.
	carry := needed(need, nl+nr, cond.residual)
	if len(cond.residual) > 0 && j.Kind != plan.JoinInner {
		identify(carry[:nl], lid)
		if j.Kind == plan.JoinFull {
			identify(carry[nl:], rid)
		}
	}
	jn.l, jn.r = b.side(left, lk, carry[:nl]), b.side(right, rk, carry[nl:])
	jn.l.unique, jn.r.unique = lid, rid
	switch j.Kind {
	case plan.JoinSemi, plan.JoinAnti:
		return jn.semi(j.Kind == plan.JoinAnti, need)
	case plan.JoinInner:
		return jn.inner(need)
	}
	return jn.outer(j.Kind, need)
}

// identify adds to the columns of a side what tells its rows apart: a key of
// it, or all columns.
func identify(cols []bool, unique []int) {
	for i := range cols {
		cols[i] = cols[i] || unique == nil || slices.Contains(unique, i)
	}
}

// swapped is a right join as a left join, with the sides exchanged.
func swapped(j *plan.Join, nl, nr int) *plan.Join {
	out := &plan.Join{Kind: plan.JoinLeft, Left: j.Right, Right: j.Left}
	for _, p := range j.On {
		out.On = append(out.On, expr.Remap(p, func(i int) int {
			if i < nl {
				return i + nr
			}
			return i - nl
		}))
	}
	return out
}

func swapNeed(need []bool, nl, nr int) []bool {
	if need == nil {
		return nil
	}
	return append(slices.Clone(need[nl:nl+nr]), need[:nl]...)
}

func swappedColumns(j *plan.Join, nl, nr int) []expr.Expr {
	cols := j.Columns()
	out := make([]expr.Expr, nl+nr)
	for i := range out {
		at := i + nr
		if i >= nl {
			at = i - nl
		}
		out[i] = &expr.Column{Index: at, Typ: cols[i].Type}
	}
	return out
}

// uniqueKey is the smallest known key of r, nil if there is none.
func uniqueKey(r plan.Rel) []int {
	var best []int
	for _, k := range plan.Keys(r) {
		if best == nil || len(k) < len(best) {
			best = append([]int{}, k...)
		}
	}
	return best
}

// placeOneSided handles the parts of ON over one side: a filter where the
// side's rows need a partner to survive, else one more key, which is NULL and
// matches nothing, or false and does not match true, where the part is not true.
func (b *builder) placeOneSided(j *plan.Join, cond *condition, left, right *coll) {
	if len(cond.left) > 0 {
		if j.Kind == plan.JoinInner || j.Kind == plan.JoinSemi {
			*left = left.filter(cond.left)
		} else {
			cond.keys = append(cond.keys, joinKey{left: allOf(cond.left), right: boolean(true)})
		}
	}
	if len(cond.right) > 0 {
		if j.Kind != plan.JoinFull {
			*right = right.filter(cond.right)
		} else {
			cond.keys = append(cond.keys, joinKey{left: boolean(true), right: allOf(cond.right)})
		}
	}
}

func allOf(preds []expr.Expr) expr.Expr {
	if len(preds) == 1 {
		return preds[0]
	}
	return &expr.Logic{And: true, Args: preds}
}

// nullSafety makes keys agree on whether NULLs match, which an operator decides
// for all its keys: if some are null-safe, the others get what keeps NULLs from
// matching.
func nullSafety(keys []joinKey, l, r []plan.Column, full bool, right *coll) []joinKey {
	safe := false
	for i := range keys {
		k := &keys[i]
		if k.nullSafe && (notNull(k.left, l) || notNull(k.right, r)) {
			k.nullSafe = false
		}
		safe = safe || k.nullSafe
	}
	if !safe {
		return keys
	}
	out := slices.Clone(keys)
	for _, k := range keys {
		if k.nullSafe || notNull(k.left, l) || notNull(k.right, r) {
			continue
		}
		if !full {
			*right = right.filter([]expr.Expr{&expr.IsNull{Arg: k.right, Not: true}})
			continue
		}
		// NULL on the left is told apart from NULL on the right.
		mark := func(e expr.Expr, v int32) expr.Expr {
			return &expr.Case{Whens: []expr.When{{Cond: &expr.IsNull{Arg: e}, Then: int4(v)}}, Else: int4(0), Typ: types.Int4}
		}
		out = append(out, joinKey{left: mark(k.left, 1), right: mark(k.right, 2)})
	}
	return out
}

// notNull reports whether a key expression over cols is never NULL.
func notNull(e expr.Expr, cols []plan.Column) bool {
	switch e := e.(type) {
	case *expr.Column:
		return cols[e.Index].NotNull
	case *expr.Const:
		return !e.Val.Null(0)
	case *expr.Call:
		return e.Fn.Name == "key_norm" && notNull(e.Args[0], cols)
	}
	return false
}

// newSide is a side that is not arranged yet.
func (b *builder) newSide(c coll) *side {
	s := &side{at: make([]int, c.arity()), types: make([]types.Type, c.arity())}
	for i := range s.types {
		if e := c.col(i); e != nil {
			s.types[i] = e.Type()
		}
	}
	return s
}

// side arranges one side of a join by its keys, with the columns of it that are
// to be carried.
func (b *builder) side(c coll, keys []expr.Expr, carry []bool) *side {
	s := b.newSide(c)
	if b.shared(&c, keys, s) {
		return s
	}
	var outs []expr.Expr
	add := func(e expr.Expr) int {
		if at := slices.IndexFunc(outs, func(o expr.Expr) bool { return expr.Equal(o, e) }); at >= 0 {
			return at
		}
		outs = append(outs, e)
		return len(outs) - 1
	}
	for i := range s.at {
		s.at[i] = -1
		if carry[i] {
			s.at[i] = add(c.col(i))
		}
	}
	for _, k := range keys {
		at := add(c.over(k))
		if slices.Contains(s.key, at) { // a key column stands for one key
			outs = append(outs, outs[at])
			at = len(outs) - 1
		}
		s.key = append(s.key, at)
	}
	s.stream = b.mapped(c, outs)
	if b.opts.Once && len(outs) == 0 { // all rows are one, as often as there are any
		s.stream = b.c.Consolidate(s.stream)
	}
	s.arr = b.c.Arrange(s.stream, s.key)
	return s
}

// shared reads a collection through an arrangement that exists already, if it
// is read as it is and by columns of it.
func (b *builder) shared(c *coll, keys []expr.Expr, s *side) bool {
	if c.get == nil || len(c.filters) > 0 || b.opts.Arranged == nil || b.parent != nil || len(keys) == 0 {
		return false
	}
	key := make([]int, len(keys))
	for i, k := range keys {
		col, ok := c.over(k).(*expr.Column)
		if !ok || slices.ContainsFunc(keys[:i], func(o expr.Expr) bool { return expr.Equal(o, k) }) {
			return false
		}
		key[i] = b.reads[b.readKey(c.get)].get.Source(col.Index)
	}
	t := b.opts.Arranged(c.get.ID, key)
	if t == nil {
		return false
	}
	if !slices.ContainsFunc(b.df.Shared, func(x Shared) bool { return x.Trace == t }) {
		b.df.Shared = append(b.df.Shared, Shared{ID: c.get.ID, Key: key, Trace: t})
	}
	s.arr, s.key = b.c.ImportArrangement(t), key
	s.stream = s.arr.Stream()
	for i := range s.at {
		s.at[i] = -1
		if e, ok := c.col(i).(*expr.Column); ok {
			s.at[i] = b.reads[b.readKey(c.get)].get.Source(e.Index)
		}
	}
	return true
}

// joiner renders one join whose sides are arranged.
type joiner struct {
	b        *builder
	l, r     *side
	cond     condition
	nullSafe bool
	nl       int
}

// place is where the pair of rows has column i of the join.
func (j *joiner) place(i int) int {
	if i < j.nl {
		return j.l.at[i]
	}
	return len(j.l.arr.Kinds()) + j.r.at[i-j.nl]
}

func (j *joiner) typeOf(i int) types.Type {
	if i < j.nl {
		return j.l.types[i]
	}
	return j.r.types[i-j.nl]
}

// pairs is the inner join with the columns of the join that are listed.
func (j *joiner) pairs(cols []int) differential.Stream {
	o := differential.JoinOptions{NullSafe: j.nullSafe, Out: make([]int, len(cols))}
	for i, c := range cols {
		o.Out[i] = j.place(c)
	}
	j.b.residual(&o, j.cond.residual, j.place)
	oks, errs := j.b.c.Join(j.l.arr, j.r.arr, o)
	if o.Residual != nil {
		j.b.errs = append(j.b.errs, errs)
	}
	return oks
}

// residual makes a join look at conditions whose columns are at the places told.
func (b *builder) residual(o *differential.JoinOptions, conds []expr.Expr, place func(col int) int) {
	if len(conds) == 0 {
		return
	}
	var used []int
	for _, p := range conds {
		expr.Columns(p, func(c *expr.Column) {
			if !slices.Contains(used, c.Index) {
				used = append(used, c.Index)
			}
		})
	}
	preds := make([]expr.Expr, len(conds))
	for i, p := range conds {
		preds[i] = expr.Remap(p, func(c int) int { return slices.Index(used, c) })
	}
	for _, c := range used {
		o.ResidualCols = append(o.ResidualCols, place(c))
	}
	o.Residual = b.rowFilter(preds, len(used))
}

// inner is the inner join with the columns needed.
func (j *joiner) inner(need []bool) coll {
	cols := listOf(need)
	s := j.pairs(cols)
	return j.result(s, cols, len(need))
}

// listOf are the indexes of what is set.
func listOf(set []bool) []int {
	out := make([]int, 0, len(set))
	for i, ok := range set {
		if ok {
			out = append(out, i)
		}
	}
	return out
}

// result is a collection of n columns of which the stream s has those listed.
func (j *joiner) result(s differential.Stream, cols []int, n int) coll {
	c := coll{s: s, types: make([]types.Type, len(cols)), outs: make([]expr.Expr, n)}
	for i, col := range cols {
		c.types[i] = j.typeOf(col)
		c.outs[col] = &expr.Column{Index: i, Typ: c.types[i]}
	}
	return c
}

// partnered keeps, or with anti drops, the rows of a side that have a partner,
// with the columns of the side listed.
func (j *joiner) partnered(left, anti bool, cols []int) differential.Stream {
	own, other := j.l, j.r
	if !left {
		own, other = j.r, j.l
	}
	o := differential.JoinOptions{Kind: differential.JoinSemi, NullSafe: j.nullSafe, Out: make([]int, len(cols))}
	if anti {
		o.Kind = differential.JoinAnti
	}
	for i, c := range cols {
		o.Out[i] = own.at[c]
	}
	if len(j.cond.residual) == 0 {
		oks, _ := j.b.c.Join(own.arr, other.arr, o)
		return oks
	}
	// Which rows have a partner is told by what identifies them: a key, or all
	// of the columns.
	id := own.unique
	if id == nil {
		id = upTo(len(own.at))
	}
	var pairCols, idAt []int
	for _, c := range id {
		at := own.at[c]
		if at < 0 || slices.Contains(idAt, at) {
			continue
		}
		idAt = append(idAt, at)
		if !left {
			c += j.nl
		}
		pairCols = append(pairCols, c)
	}
	found := j.b.c.Arrange(j.pairs(pairCols), upTo(len(pairCols)))
	all := j.b.c.Arrange(own.arr.Stream(), idAt)
	o.NullSafe = true
	oks, _ := j.b.c.Join(all, found, o)
	return oks
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// semi is a semi or anti join.
func (j *joiner) semi(anti bool, need []bool) coll {
	cols := listOf(need)
	return j.result(j.partnered(true, anti, cols), cols, len(need))
}

// outer is a left or full join.
func (j *joiner) outer(kind plan.JoinKind, need []bool) coll {
	cols := listOf(need)
	parts := []differential.Stream{j.pairs(cols), j.alone(true, cols)}
	if kind == plan.JoinFull {
		parts = append(parts, j.alone(false, cols))
	}
	kinds := make([]columnar.Kind, len(cols))
	for i, c := range cols {
		kinds[i] = j.typeOf(c).Kind()
	}
	return j.result(j.b.c.Concat(kinds, parts...), cols, len(need))
}

// alone is the rows of a side without a partner, with NULLs for the other
// side's columns.
func (j *joiner) alone(left bool, cols []int) differential.Stream {
	var own []int
	outs := make([]expr.Expr, len(cols))
	for i, c := range cols {
		if (c < j.nl) != left {
			outs[i] = nullOf(j.typeOf(c))
			continue
		}
		outs[i] = &expr.Column{Index: len(own), Typ: j.typeOf(c)}
		if !left {
			c -= j.nl
		}
		own = append(own, c)
	}
	s := j.partnered(left, true, own)
	m := j.b.mapper(nil, outs)
	oks, _ := j.b.c.Map(s, m, exprKinds(outs))
	return oks
}
