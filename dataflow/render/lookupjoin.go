package render

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// maxLookups is how many keys a join looks up; beyond, it scans.
const maxLookups = 1024

// resolveLookups runs the first sides of lookup joins and puts their rows, and
// the keys to be looked up for them, into the plan that is then run.
func (r *run) resolveLookups(rel plan.Rel) (plan.Rel, error) {
	if !hasLookups(rel) {
		return rel, nil
	}
	var err error
	out := plan.MapChildren(rel, func(c plan.Rel) plan.Rel {
		if err != nil {
			return c
		}
		var n plan.Rel
		if n, err = r.resolveLookups(c); err != nil {
			return c
		}
		return n
	})
	if err != nil {
		return nil, err
	}
	switch n := out.(type) {
	case *plan.Join:
		if n.Lookup != nil {
			return r.lookupJoin(n)
		}
	case *plan.TopK:
		return r.firstRows(n)
	}
	return out, nil
}

func hasLookups(rel plan.Rel) bool {
	found := false
	plan.Walk(rel, func(n plan.Rel) bool {
		switch n := n.(type) {
		case *plan.Join:
			found = found || n.Lookup != nil
		case *plan.Get:
			found = found || n.Lookup != nil && n.Lookup.First
		}
		return !found
	})
	return found
}

// lookupJoin is the join with the rows of its left side, and with its right side
// read by their keys if they are few.
func (r *run) lookupJoin(j *plan.Join) (plan.Rel, error) {
	cols := j.Left.Columns()
	left, err := r.rowsOf(j.Left, cols)
	if err != nil {
		return nil, err
	}
	c := *j
	c.Left, c.Lookup = &plan.Constant{Cols: cols, Rows: left}, nil
	if left.N > maxLookups {
		return &c, nil
	}
	prog, err := expr.Compile(expr.MapFilterProject{Outputs: j.Lookup.Values})
	if err != nil {
		return nil, err
	}
	keys, _, errs := prog.Apply(r.opts.Context, &left, nil)
	if len(errs) > 0 {
		return nil, errs[0].Err
	}
	l := &plan.Lookup{Index: j.Lookup.Index, Key: j.Lookup.Key, Unique: j.Lookup.Unique}
	keys, _ = columnar.Consolidate(keys, slices.Repeat([]dataflow.Diff{1}, keys.N))
	for i := range keys.N {
		if columnar.AnyNull(keys.Cols, i) {
			continue
		}
		key := make([]expr.Expr, len(keys.Cols))
		for k, v := range keys.Cols {
			key[k] = &expr.Const{Val: v.Slice(i, i+1), Typ: j.Lookup.Values[k].Type()}
		}
		l.Values = append(l.Values, key)
	}
	c.Right = plan.LookedUp(j.Right, l)
	return &c, nil
}

// rowsOf runs a part of the plan by itself.
func (r *run) rowsOf(rel plan.Rel, cols []plan.Column) (columnar.Batch, error) {
	var parts []*columnar.Batch
	opts := *r.opts
	opts.Columns = 0
	err := RunOnce(r.ctx, rel, r.reader, opts, func(b *columnar.Batch) error {
		parts = append(parts, b)
		return nil
	})
	if err != nil {
		return columnar.Batch{}, err
	}
	return columnar.ConcatBatches(kindsOf(cols), parts...), nil
}
