package planner

import (
	"strings"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// UnusedIndex is an index that an optimized plan does not use, and why.
type UnusedIndex struct {
	Table *plan.Get
	Index Index
	Why   string
}

// UnusedIndexes lists the indexes of the collections that a plan reads, but for
// those that it looks up by.
func UnusedIndexes(r plan.Rel, opts Options) []UnusedIndex {
	if opts.Indexes == nil {
		return nil
	}
	used := map[plan.ObjectID]bool{}
	plan.Walk(r, func(n plan.Rel) bool {
		if j, ok := n.(*plan.Join); ok && j.Lookup != nil {
			used[j.Lookup.Index] = true
		}
		return true
	})
	var out []UnusedIndex
	note := func(g *plan.Get, preds []expr.Expr) {
		fixed := fixedValues(g, preds)
		for _, ix := range opts.Indexes(g.ID) {
			switch {
			case used[ix.ID], g.Lookup != nil && g.Lookup.Index == ix.ID:
			default:
				out = append(out, UnusedIndex{g, ix, whyNot(g, ix, preds, fixed)})
			}
		}
	}
	plan.Walk(r, func(n plan.Rel) bool {
		switch n := n.(type) {
		case *plan.Filter:
			if g, ok := n.Input.(*plan.Get); ok {
				note(g, n.Preds)
				return false
			}
		case *plan.Get:
			note(n, nil)
		}
		return true
	})
	return out
}

// whyNot is the reason why a filter does not look up by an index.
func whyNot(g *plan.Get, ix Index, preds []expr.Expr, fixed map[int][]expr.Expr) string {
	if len(preds) == 0 {
		return "all rows are read"
	}
	name := func(col int) string {
		for i, c := range g.Cols {
			if g.Source(i) == col {
				return c.Name
			}
		}
		return "column " + itoa(col+1)
	}
	var missing []string
	keys := 1
	for _, k := range ix.Key {
		if len(fixed[k]) == 0 {
			missing = append(missing, name(k))
		}
		keys *= max(len(fixed[k]), 1)
	}
	switch {
	case len(missing) > 0:
		return "no equality with a constant on " + strings.Join(missing, ", ")
	case keys > maxLookups:
		return itoa(keys) + " keys are too many to look up"
	case g.Lookup != nil:
		return "another one is better"
	}
	return "a key column's type is not that of the constant"
}
