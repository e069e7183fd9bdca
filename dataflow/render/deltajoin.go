package render

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow/differential"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// deltaJoin renders a tree of inner joins without intermediate results: a path of
// lookups for the changes of each input (see differential.Circuit.Lookup).
type deltaJoin struct {
	b      *builder
	tree   *plan.Tree
	types  []types.Type // of the columns of all inputs
	inputs []deltaInput
	want   []int       // columns of the result, in their order
	carry  []bool      // columns of the inputs that results and residuals read
	stages [][]*lookup // of each path
}

// deltaInput is an input and its arrangements.
type deltaInput struct {
	coll  coll
	keys  [][]expr.Expr // over the input's columns
	sides []*side       // arranged by each of keys
	from  int           // the one whose changes begin the input's path
}

// lookup is one step of a path: rows of the inputs so far look up one more.
type lookup struct {
	input, key int         // which of the input's keys
	values     []expr.Expr // of the key, over the columns of all inputs
	residual   []expr.Expr // over the columns of all inputs
}

// delta renders j by its paths.
func (b *builder) delta(j *plan.Join, need []bool) coll {
	t := plan.TreeOf(j)
	d := &deltaJoin{b: b, tree: t, inputs: make([]deltaInput, len(t.Inputs))}
	width := t.Base[len(t.Inputs)]
	d.carry = make([]bool, width)
	for i, col := range t.Outs {
		if need == nil || need[i] {
			d.want = append(d.want, col)
			d.carry[col] = true
		}
	}
	use := slices.Clone(d.carry)
	for _, p := range t.Preds {
		expr.Columns(p, func(c *expr.Column) { use[c.Index] = true })
	}
	for i, in := range t.Inputs {
		d.inputs[i].coll = b.rel(in, use[t.Base[i]:t.Base[i+1]])
		for _, c := range in.Columns() {
			d.types = append(d.types, c.Type)
		}
	}
	for _, path := range j.Delta {
		d.stages = append(d.stages, d.plan(path))
	}
	for i := range d.inputs {
		d.arrange(i)
	}
	parts := make([]differential.Stream, len(j.Delta))
	for i := range j.Delta {
		parts[i] = d.path(i)
	}
	c := coll{types: make([]types.Type, len(d.want)), outs: make([]expr.Expr, len(t.Outs))}
	kinds := make([]columnar.Kind, len(d.want))
	for i, col := range d.want {
		c.types[i], kinds[i] = d.types[col], d.types[col].Kind()
	}
	at := 0
	for i := range t.Outs {
		if need == nil || need[i] {
			c.outs[i] = &expr.Column{Index: at, Typ: c.types[at]}
			at++
		}
	}
	c.s = b.c.Concat(kinds, parts...)
	return c
}

// plan makes the steps of a path: what joins an input with those before it by a
// key is its key, other conditions are looked at as soon as all they read is there.
func (d *deltaJoin) plan(path []int) []*lookup {
	seen := make([]bool, len(d.inputs))
	seen[path[0]] = true
	used := make([]bool, len(d.tree.Preds))
	out := make([]*lookup, 0, len(path)-1)
	for _, in := range path[1:] {
		seen[in] = true
		l := &lookup{input: in}
		var keys []expr.Expr
		for i, p := range d.tree.Preds {
			if used[i] || !d.within(p, seen) {
				continue
			}
			used[i] = true
			if k, ok := d.keyOf(p, in); ok && !slices.ContainsFunc(keys, func(e expr.Expr) bool { return expr.Equal(e, k.right) }) {
				keys, l.values = append(keys, k.right), append(l.values, k.left)
				continue
			}
			l.residual = append(l.residual, p)
			expr.Columns(p, func(c *expr.Column) { d.carry[c.Index] = true })
		}
		for _, v := range l.values {
			expr.Columns(v, func(c *expr.Column) { d.carry[c.Index] = true })
		}
		l.key = d.inputs[in].keyed(keys)
		out = append(out, l)
	}
	return out
}

// within reports whether e reads only inputs that are seen.
func (d *deltaJoin) within(e expr.Expr, seen []bool) bool {
	return !expr.Any(e, func(n expr.Expr) bool {
		c, ok := n.(*expr.Column)
		return ok && !seen[d.tree.InputOf(c.Index)]
	})
}

// keyOf is an equality as a key of an input: left over the columns of all inputs,
// right over the input's.
func (d *deltaJoin) keyOf(p expr.Expr, in int) (joinKey, bool) {
	if _, _, ok := plan.IsEquality(p); !ok {
		return joinKey{}, false
	}
	lo, hi, width := d.tree.Base[in], d.tree.Base[in+1], d.tree.Base[len(d.inputs)]
	return equiKey(expr.Remap(p, func(i int) int {
		if i >= lo && i < hi {
			return width + i - lo
		}
		return i
	}), width)
}

// keyed is the number of a key among those of the input, which gets it if need be.
func (in *deltaInput) keyed(keys []expr.Expr) int {
	at := slices.IndexFunc(in.keys, func(k []expr.Expr) bool { return slices.EqualFunc(k, keys, expr.Equal) })
	if at < 0 {
		at = len(in.keys)
		in.keys = append(in.keys, keys)
	}
	return at
}

// arrange arranges an input by its keys. What comes from a shared arrangement must
// all come from it, so that all see the same at each step.
func (d *deltaJoin) arrange(i int) {
	in := &d.inputs[i]
	carry := d.carry[d.tree.Base[i]:d.tree.Base[i+1]]
	in.sides = make([]*side, len(in.keys))
	for k, key := range in.keys {
		s := d.b.newSide(in.coll)
		if !d.b.shared(&in.coll, key, s) {
			continue
		}
		in.sides[k], in.from = s, k
		c := coll{s: s.stream, types: make([]types.Type, len(s.arr.Kinds())), outs: make([]expr.Expr, len(s.at))}
		for col, at := range s.at {
			if at >= 0 {
				c.types[at] = s.types[col]
				c.outs[col] = &expr.Column{Index: at, Typ: s.types[col]}
			}
		}
		in.coll = c
		break
	}
	for k, key := range in.keys {
		if in.sides[k] == nil {
			in.sides[k] = d.b.side(in.coll, key, carry)
		}
	}
}

// view is how a path that begins at input start sees another one: those before it
// as they will be, those after it as they were.
func (d *deltaJoin) view(start int, l *lookup) differential.View {
	return differential.View{Arr: d.inputs[l.input].sides[l.key].arr, After: l.input < start}
}

// path renders the path of one input.
func (d *deltaJoin) path(start int) differential.Stream {
	in := &d.inputs[start]
	from := in.sides[in.from]
	s := from.arr.Stream()
	at := make([]int, len(d.types)) // column of the inputs → column of s
	for i := range at {
		at[i] = -1
	}
	for i, a := range from.at {
		at[d.tree.Base[start]+i] = a
	}
	stages := d.stages[start]
	for n, l := range stages {
		out := d.want
		if n < len(stages)-1 {
			out = d.live(start, n)
		}
		var others []differential.View
		if n == 0 {
			for _, o := range stages[1:] {
				others = append(others, d.view(start, o))
			}
		}
		s, at = d.step(s, at, l, d.view(start, l), others, out)
	}
	return s
}

// live are the columns of the inputs up to step n of a path that are read later.
func (d *deltaJoin) live(start, n int) []int {
	here := make([]bool, len(d.inputs))
	here[start] = true
	for _, l := range d.stages[start][:n+1] {
		here[l.input] = true
	}
	read := make([]bool, len(d.types))
	for _, c := range d.want {
		read[c] = true
	}
	for _, l := range d.stages[start][n+1:] {
		for _, e := range slices.Concat(l.values, l.residual) {
			expr.Columns(e, func(c *expr.Column) { read[c.Index] = true })
		}
	}
	var out []int
	for c := range read {
		if read[c] && here[d.tree.InputOf(c)] {
			out = append(out, c)
		}
	}
	return out
}

// step looks rows up, which have column c of the inputs at place at[c], and gives
// the columns out.
func (d *deltaJoin) step(s differential.Stream, at []int, l *lookup, in differential.View, others []differential.View, out []int) (differential.Stream, []int) {
	s, key := d.withKeys(s, at, l)
	right := d.inputs[l.input].sides[l.key]
	width := len(s.Kinds())
	place := func(c int) int {
		if d.tree.InputOf(c) == l.input {
			return width + right.at[c-d.tree.Base[l.input]]
		}
		return at[c]
	}
	o := differential.JoinOptions{Out: make([]int, len(out))}
	to := make([]int, len(at))
	for i := range to {
		to[i] = -1
	}
	for i, c := range out {
		o.Out[i], to[c] = place(c), i
	}
	d.b.residual(&o, l.residual, place)
	oks, errs := d.b.c.Lookup(s, key, in, others, o)
	if o.Residual != nil {
		d.b.errs = append(d.b.errs, errs)
	}
	return oks, to
}

// withKeys is a stream with the values of a lookup's key among its columns, which
// are told; those it has keep their places.
func (d *deltaJoin) withKeys(s differential.Stream, at []int, l *lookup) (differential.Stream, []int) {
	key := make([]int, len(l.values))
	outs := make([]expr.Expr, len(s.Kinds()))
	for c, a := range at {
		if a >= 0 && outs[a] == nil {
			outs[a] = &expr.Column{Index: a, Typ: d.types[c]}
		}
	}
	for a := range outs { // what is only a key of the arrangement that it comes from
		if outs[a] == nil {
			outs[a] = boolean(true)
		}
	}
	n := len(outs)
	for i, v := range l.values {
		if c, ok := v.(*expr.Column); ok && !slices.Contains(key[:i], at[c.Index]) {
			key[i] = at[c.Index]
			continue
		}
		key[i] = len(outs)
		outs = append(outs, expr.Remap(v, func(c int) int { return at[c] }))
	}
	if len(outs) == n {
		return s, key
	}
	m := d.b.mapper(nil, outs)
	oks, errs := d.b.c.Map(s, m, exprKinds(outs))
	if !m.total {
		d.b.errs = append(d.b.errs, errs)
	}
	return oks, key
}
