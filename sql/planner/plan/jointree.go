package plan

import "github.com/streamdb/streamdb/sql/expr"

// Tree is a tree of inner joins, and of projections that only pick columns, as its
// inputs and its conditions.
type Tree struct {
	Inputs []Rel
	Base   []int       // where the columns of each input begin, and the end
	Preds  []expr.Expr // over the columns of all inputs, one after the other
	Outs   []int       // the columns of the tree's result
}

// TreeOf is the tree of inner joins that r is the root of; of another node, that
// node as the only input.
func TreeOf(r Rel) *Tree {
	t := &Tree{}
	t.Outs = t.add(r)
	n := 0
	for _, in := range t.Inputs {
		t.Base = append(t.Base, n)
		n += Arity(in)
	}
	t.Base = append(t.Base, n)
	return t
}

// InputOf is the input that a column belongs to.
func (t *Tree) InputOf(col int) int {
	i := 0
	for t.Base[i+1] <= col {
		i++
	}
	return i
}

func (t *Tree) width() int {
	n := 0
	for _, in := range t.Inputs {
		n += Arity(in)
	}
	return n
}

func (t *Tree) add(r Rel) []int {
	switch r := r.(type) {
	case *Join:
		if r.Kind != JoinInner || r.Lateral || r.Lookup != nil {
			break
		}
		outs := append(t.add(r.Left), t.add(r.Right)...)
		for _, p := range r.On {
			t.Preds = append(t.Preds, expr.Remap(p, func(i int) int { return outs[i] }))
		}
		return outs
	case *Project:
		picks := make([]int, len(r.Exprs))
		for i, e := range r.Exprs {
			c, ok := e.(*expr.Column)
			if !ok {
				picks = nil
				break
			}
			picks[i] = c.Index
		}
		if j, ok := r.Input.(*Join); !ok || j.Kind != JoinInner || picks == nil {
			break
		}
		in := t.add(r.Input)
		for i, c := range picks {
			picks[i] = in[c]
		}
		return picks
	}
	first := t.width()
	t.Inputs = append(t.Inputs, r)
	outs := make([]int, Arity(r))
	for i := range outs {
		outs[i] = first + i
	}
	return outs
}
