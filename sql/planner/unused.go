package planner

import (
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
	first := fixed[ix.Key[0]]
	switch l := rangeBy(ix, g, preds, fixed, maxLookups); {
	case len(first) > maxLookups:
		return itoa(len(first)) + " keys are too many to look up"
	case weight(l) == 0:
		return missingKey(g, ix, preds)
	case !impliesAll(g, preds, ix.Preds):
		return "the filter does not imply that " + expr.String(logicOf(true, ix.Preds), nil)
	}
	return "another one is better"
}

// missingKey tells what a filter says of the first part of a key in place of its
// values or bounds.
func missingKey(g *plan.Get, ix Index, preds []expr.Expr) string {
	key := ix.Key[0]
	if key < 0 {
		return "no value or bound of " + expr.String(ix.Exprs[-1-key], nil) + " is given"
	}
	at := sourceAt(g, key)
	name := "column " + itoa(key+1)
	if len(ix.Names) > 0 {
		name = ix.Names[0]
	}
	is := func(e expr.Expr) bool { c, ok := e.(*expr.Column); return ok && c.Index == at }
	for _, p := range conjuncts(preds) {
		if at < 0 || usesOnly(p, func(i int) bool { return i != at }) {
			continue
		}
		or, isOr := p.(*expr.Logic)
		c, isCall := p.(*expr.Call)
		comparison := isCall && isComparison(c.Fn) && len(c.Args) == 2
		switch {
		case isOr && !or.And:
			return "an OR is about more than " + name
		case comparison && c.Fn.Name == "<>":
			return "<> excludes few values of " + name
		case comparison && (is(c.Args[0]) && expr.UsesColumns(c.Args[1]) || is(c.Args[1]) && expr.UsesColumns(c.Args[0])):
			return name + " is compared with other columns, and not with a constant"
		case comparison && (is(c.Args[0]) || is(c.Args[1])):
			return name + " is compared with a value of another type"
		case comparison:
			return "the condition is on an expression of " + name + ", and not on it"
		case isCall && c.Fn.Operator && (c.Fn.Name == "~~" || c.Fn.Name == "~"):
			return "the pattern for " + name + " does not begin with a constant text"
		}
	}
	return "no value or bound of " + name + " is given"
}
