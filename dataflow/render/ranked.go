package render

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// A maintained recursion of sets over joins gets a rank column (see
// differential.Scope.RankedDistinct): what reads a variable has, behind its own
// columns, the greatest rank of the rows that it is made of.

// ranker adds the column to plans.
type ranker struct{ ids []int }

// rankedValues are the definitions of a recursion with a rank behind their
// columns; ok is false if they are of a form that has none.
func (b *builder) rankedValues(r *plan.Recursive) (values []plan.Rel, ok bool) {
	if b.c.Once() || r.Working || r.Limit > 0 || slices.Contains(r.Distinct, false) {
		return nil, false
	}
	k := &ranker{ids: r.IDs}
	for _, v := range r.Values {
		cols := v.Columns()
		if slices.ContainsFunc(cols, func(c plan.Column) bool { return !plan.BitEqual(c.Type) }) {
			return nil, false
		}
		v = bag(v)
		in, ok := k.rel(v)
		if !ok {
			return nil, false
		}
		var rank expr.Expr = rankConst(1)
		if in != v {
			if rank, ok = next(&expr.Column{Index: len(cols), Typ: types.Int8}); !ok {
				return nil, false
			}
		}
		values = append(values, withRank(in, len(cols), rank))
	}
	return values, true
}

// bag is a relation that has the rows of v, some perhaps more than once.
func bag(v plan.Rel) plan.Rel {
	switch r := v.(type) {
	case *plan.Distinct:
		return bag(r.Input)
	case *plan.SetOp:
		if r.Kind == plan.Union && !r.All {
			u := *r
			u.All = true
			return &u
		}
	}
	return v
}

func rankConst(n int64) expr.Expr {
	return &expr.Const{Val: columnar.FromSlice([]int64{n}, nil), Typ: types.Int8}
}

// next is a rank and one.
func next(rank expr.Expr) (expr.Expr, bool) {
	e, err := expr.NewOp("+", rank, rankConst(1), 0)
	return e, err == nil
}

var rankColumn = plan.Column{Name: "rank", Type: types.Int8, NotNull: true}

// withRank is the first n columns of r and a rank.
func withRank(r plan.Rel, n int, rank expr.Expr) plan.Rel {
	p := &plan.Project{Input: r}
	for i, c := range r.Columns()[:n] {
		p.Exprs = append(p.Exprs, &expr.Column{Index: i, Typ: c.Type})
		p.Cols = append(p.Cols, c)
	}
	p.Exprs, p.Cols = append(p.Exprs, rank), append(p.Cols, rankColumn)
	return p
}

// rel is r with a rank, or r itself if it reads no variable.
func (k *ranker) rel(r plan.Rel) (plan.Rel, bool) {
	if !k.reads(r) {
		return r, true
	}
	switch r := r.(type) {
	case *plan.LocalGet:
		return &plan.LocalGet{ID: r.ID, Cols: append(slices.Clone(r.Cols), rankColumn)}, true
	case *plan.Filter:
		in, ok := k.rel(r.Input)
		return &plan.Filter{Input: in, Preds: r.Preds}, ok
	case *plan.Project:
		in, ok := k.rel(r.Input)
		rank := &expr.Column{Index: plan.Arity(r.Input), Typ: types.Int8}
		return &plan.Project{Input: in, Exprs: append(slices.Clone(r.Exprs), rank), Cols: append(slices.Clone(r.Cols), rankColumn)}, ok
	case *plan.SetOp:
		return k.union(r)
	case *plan.Join:
		return k.join(r)
	}
	return nil, false
}

// reads reports whether r reads a variable.
func (k *ranker) reads(r plan.Rel) bool {
	found := false
	plan.Walk(r, func(n plan.Rel) bool {
		g, ok := n.(*plan.LocalGet)
		found = found || ok && slices.Contains(k.ids, g.ID)
		return !found
	})
	return found
}

func (k *ranker) union(r *plan.SetOp) (plan.Rel, bool) {
	if r.Kind != plan.Union || !r.All {
		return nil, false
	}
	out := &plan.SetOp{Kind: r.Kind, All: true, Cols: append(slices.Clone(r.Cols), rankColumn)}
	for _, in := range r.Inputs {
		x, ok := k.rel(in)
		if !ok {
			return nil, false
		}
		if x == in {
			x = withRank(in, len(r.Cols), rankConst(0))
		}
		out.Inputs = append(out.Inputs, x)
	}
	return out, true
}

func (k *ranker) join(r *plan.Join) (plan.Rel, bool) {
	if r.Kind != plan.JoinInner || r.Lateral {
		return nil, false
	}
	left, ok1 := k.rel(r.Left)
	right, ok2 := k.rel(r.Right)
	if !ok1 || !ok2 {
		return nil, false
	}
	nl, nr := plan.Arity(r.Left), plan.Arity(r.Right)
	shift := plan.Arity(left) - nl
	at := func(i int) int {
		if i >= nl {
			i += shift
		}
		return i
	}
	j := &plan.Join{Kind: r.Kind, Left: left, Right: right}
	for _, e := range r.On {
		j.On = append(j.On, expr.Remap(e, at))
	}
	var ranks []expr.Expr
	if left != r.Left {
		ranks = append(ranks, &expr.Column{Index: nl, Typ: types.Int8})
	}
	if right != r.Right {
		ranks = append(ranks, &expr.Column{Index: nl + shift + nr, Typ: types.Int8})
	}
	rank := ranks[0]
	if len(ranks) == 2 {
		var err error
		if rank, err = expr.NewMinMax(true, ranks, 0); err != nil {
			return nil, false
		}
	}
	p := &plan.Project{Input: j}
	cols := j.Columns()
	for i := range nl + nr {
		c := cols[at(i)]
		p.Exprs, p.Cols = append(p.Exprs, &expr.Column{Index: at(i), Typ: c.Type}), append(p.Cols, c)
	}
	p.Exprs, p.Cols = append(p.Exprs, rank), append(p.Cols, rankColumn)
	return p, true
}
