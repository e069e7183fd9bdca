package planner

import (
	"math"
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

const (
	// maxDeltaInputs bounds the inputs of a delta join, of whose paths there are as
	// many as inputs.
	maxDeltaInputs = 12
	// deltaGain is what part of the state of joins two by two a delta join may need.
	deltaGain = 0.9
)

// DeltaJoin: a view over three or more inputs keeps the inputs, arranged by what
// they are looked up by, and not what the joins of the first ones give, if that is
// thought to be more.
//
//	lineitem JOIN orders ON … JOIN customer ON …
//	  →  a change of any of them is looked up in the others; orders is kept twice,
//	     by its key and by its customer, and lineitem joined with orders is not
func (o *optimizer) deltaJoins(r plan.Rel) plan.Rel {
	if !o.opts.Maintained || !o.on("DeltaJoin") {
		return r
	}
	if rec, ok := r.(*plan.Recursive); ok {
		c := *rec
		c.Body = o.deltaJoins(rec.Body)
		return &c
	}
	j, ok := r.(*plan.Join)
	if !ok || j.Kind != plan.JoinInner {
		return plan.MapChildren(r, o.deltaJoins)
	}
	t := plan.TreeOf(j)
	if len(t.Inputs) >= 3 {
		if paths := o.deltaPaths(j, t); paths != nil {
			o.fire("DeltaJoin")
			c := *j
			c.Delta = paths
			return o.belowTree(&c)
		}
	}
	return o.belowTree(j)
}

// belowTree applies deltaJoins to the inputs of a tree of inner joins.
func (o *optimizer) belowTree(r plan.Rel) plan.Rel {
	return plan.MapChildren(r, func(c plan.Rel) plan.Rel {
		switch n := c.(type) {
		case *plan.Join:
			if n.Kind == plan.JoinInner {
				return o.belowTree(n)
			}
		case *plan.Project:
			if j, ok := n.Input.(*plan.Join); ok && j.Kind == plan.JoinInner && columnsOnly(n) {
				return o.belowTree(n)
			}
		}
		return o.deltaJoins(c)
	})
}

// deltaPlan seeks the paths of a delta join.
type deltaPlan struct {
	t     *plan.Tree
	rows  []float64
	keys  [][][]int // the unique keys of each input
	preds []deltaPred
	kept  []map[string]bool // of each input, the keys that it is arranged by
}

// deltaPred is a predicate of the tree and the inputs that it uses.
type deltaPred struct {
	e      expr.Expr
	inputs leafSet
	key    bool // an equality of the columns of two inputs
}

// deltaPaths are the paths of a delta join for a tree, nil if it has none or
// they do not pay.
func (o *optimizer) deltaPaths(j *plan.Join, t *plan.Tree) [][]int {
	n := len(t.Inputs)
	if n > maxDeltaInputs {
		return nil
	}
	d := &deltaPlan{t: t, rows: make([]float64, n), keys: make([][][]int, n), kept: make([]map[string]bool, n)}
	for i, in := range t.Inputs {
		d.rows[i], d.keys[i], d.kept[i] = o.rows(in), plan.Keys(in), map[string]bool{}
	}
	for _, p := range t.Preds {
		q := deltaPred{e: p}
		expr.Columns(p, func(c *expr.Column) { q.inputs = q.inputs.with(t.InputOf(c.Index)) })
		if expr.VolatilityOf(p) == expr.Volatile || q.inputs.count() < 2 {
			return nil
		}
		if l, r, ok := plan.IsEquality(p); ok && comparable(l.Type(), r.Type()) {
			q.key = onlyInput(l, t) >= 0 && onlyInput(r, t) >= 0
		}
		d.preds = append(d.preds, q)
	}
	paths := make([][]int, n)
	for i := range paths {
		if paths[i] = d.path(i); paths[i] == nil {
			return nil
		}
	}
	if d.state() > deltaGain*o.pairState(j, true) {
		return nil
	}
	return paths
}

// comparable reports whether the engine joins by an equality of the two types.
func comparable(a, b types.Type) bool {
	integer := func(t types.Type) bool {
		return t.OID == types.OIDInt2 || t.OID == types.OIDInt4 || t.OID == types.OIDInt8
	}
	return a.OID == b.OID || integer(a) && integer(b)
}

// onlyInput is the only input that e uses, -1 if there is no such.
func onlyInput(e expr.Expr, t *plan.Tree) int {
	at := -1
	expr.Columns(e, func(c *expr.Column) {
		switch in := t.InputOf(c.Index); {
		case at == -1 || at == in:
			at = in
		default:
			at = -2
		}
	})
	return at
}

func (s leafSet) count() int {
	n := len([]rune(s.more))
	for w := s.lo; w != 0; w &= w - 1 {
		n++
	}
	return n
}

// path is the order in which the changes of input start meet the others: always
// one that they are joined with by a key, those first that give the fewest rows,
// and then those that are arranged so already. Nil: there is none.
func (d *deltaPlan) path(start int) []int {
	path := []int{start}
	seen := leafSet{}.with(start)
	for len(path) < len(d.t.Inputs) {
		best, bestRows, bestKey := -1, math.Inf(1), ""
		for i := range d.t.Inputs {
			if seen.has(i) {
				continue
			}
			key, cols := d.lookup(seen, i)
			if key == "" {
				continue
			}
			rows := d.fanout(i, cols)
			if d.kept[i][key] {
				rows *= 0.99
			}
			if rows < bestRows {
				best, bestRows, bestKey = i, rows, key
			}
		}
		if best < 0 {
			return nil
		}
		d.kept[best][bestKey] = true
		path = append(path, best)
		seen = seen.with(best)
	}
	return path
}

// lookup is the key by which rows of the inputs seen look up input i, as a text
// that tells keys apart, "" for none; and those of its parts that are columns.
func (d *deltaPlan) lookup(seen leafSet, i int) (key string, cols []int) {
	all := seen.with(i)
	var parts []string
	for _, p := range d.preds {
		if !p.key || !p.inputs.has(i) || !p.inputs.within(all) {
			continue
		}
		l, r, _ := plan.IsEquality(p.e)
		if onlyInput(l, d.t) != i {
			l = r
		}
		parts = append(parts, expr.String(l, nil))
		if c, ok := l.(*expr.Column); ok {
			cols = append(cols, c.Index-d.t.Base[i])
		}
	}
	slices.Sort(parts)
	for _, p := range slices.Compact(parts) {
		key += p + ";"
	}
	return key, cols
}

// fanout guesses how many rows of input i have the key that a row looks up.
func (d *deltaPlan) fanout(i int, cols []int) float64 {
	for _, k := range d.keys[i] {
		if plan.Subset(k, cols) {
			return 1
		}
	}
	return math.Max(math.Pow(d.rows[i], 0.2), 1.5)
}

// state is the size of what the paths keep.
func (d *deltaPlan) state() float64 {
	total := 0.0
	for i, in := range d.t.Inputs {
		total += float64(len(d.kept[i])) * d.rows[i] * float64(max(plan.Arity(in), 1))
	}
	return total
}

// pairState is the size of what a tree of joins keeps two by two.
func (o *optimizer) pairState(r plan.Rel, root bool) float64 {
	size := 0.0
	if !root {
		size = o.rows(r) * float64(max(plan.Arity(r), 1))
	}
	if p, ok := r.(*plan.Project); ok {
		if _, join := p.Input.(*plan.Join); join && columnsOnly(p) {
			r = p.Input
		}
	}
	if j, ok := r.(*plan.Join); ok && j.Kind == plan.JoinInner {
		size += o.pairState(j.Left, false) + o.pairState(j.Right, false)
	}
	return size
}
