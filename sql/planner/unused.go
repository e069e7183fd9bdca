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
		for _, ix := range opts.Indexes(g.ID) {
			switch {
			case used[ix.ID], g.Lookup != nil && g.Lookup.Index == ix.ID:
			default:
				out = append(out, UnusedIndex{g, ix, whyNot(g, ix, preds)})
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
func whyNot(g *plan.Get, ix Index, preds []expr.Expr) string {
	switch {
	case ix.Useless != "":
		return ix.Useless
	case len(preds) == 0:
		return "all rows are read"
	}
	fixed := withExprs(ix, g, preds, fixedValues(g, preds))
	var missing []string
	keys := 1
	for i, k := range ix.Key {
		if len(fixed[k]) == 0 {
			missing = append(missing, missingKey(g, ix, i, preds))
		}
		keys *= max(len(fixed[k]), 1)
	}
	switch {
	case len(missing) > 0:
		return strings.Join(missing, "; ")
	case keys > maxLookups:
		return itoa(keys) + " keys are too many to look up"
	case !impliesAll(g, preds, ix.Preds):
		return "the filter does not imply that " + expr.String(logicOf(true, ix.Preds), nil)
	case g.Lookup != nil:
		return "another one is better"
	}
	return "a key column's type is not that of the constant"
}

// missingKey tells what a filter says of a part of a key in place of its value.
func missingKey(g *plan.Get, ix Index, part int, preds []expr.Expr) string {
	key := ix.Key[part]
	if key < 0 {
		return "no equality with a constant of " + expr.String(ix.Exprs[-1-key], nil)
	}
	at := sourceAt(g, key)
	name := "column " + itoa(key+1)
	if part < len(ix.Names) {
		name = ix.Names[part]
	}
	is := func(e expr.Expr) bool { c, ok := e.(*expr.Column); return ok && c.Index == at }
	for _, p := range conjuncts(preds) {
		if at < 0 || usesOnly(p, func(i int) bool { return i != at }) {
			continue
		}
		l, r, equality := plan.IsEquality(p)
		or, isOr := p.(*expr.Logic)
		c, isCall := p.(*expr.Call)
		switch {
		case isOr && !or.And:
			return "an OR is about more than " + name
		case equality && (is(l) && expr.UsesColumns(r) || is(r) && expr.UsesColumns(l)):
			return name + " is equated to other columns, and not to a constant"
		case equality && (is(l) || is(r)):
			return name + " is compared with a value of another type"
		case equality:
			return "the equality is of an expression of " + name + ", and not of it"
		case isCall && isComparison(c.Fn) && c.Fn.Name != "<>":
			return "only bounds of " + name + " are given, but rows are found by whole keys"
		}
	}
	return "no equality with a constant on " + name
}
