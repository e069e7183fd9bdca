package planner

import (
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// Index is a key by which a collection can be looked up.
type Index struct {
	ID     plan.ObjectID // of the index, or of the collection for its own key
	Key    []int         // columns of the collection; -1 - i is Exprs[i]
	Unique bool
	Exprs  []expr.Expr // over the columns of the collection
	Preds  []expr.Expr // that hold for the rows it has, over them, too; nil: it has all
	// Names are those of the parts of Key, for who explains plans.
	Names []string
	// Useless says why nothing can be looked up by it, "" if that is not so.
	Useless string
	// Unequal says that equal keys may differ in their bits, by which whole keys are
	// found: rows are found only in the order of the key.
	Unequal bool
}

// Options is what optimization may depend on besides the bound plan.
type Options struct {
	// Maintained says that the plan is for a view or subscription and not for
	// one answer: a root ORDER BY becomes a TopK if it is limited, else nothing.
	Maintained bool
	// Indexes lists the indexes of a collection; nil: none.
	Indexes func(id plan.ObjectID) []Index
	// Rows estimates how many rows a collection has; nil, or a negative
	// answer: unknown. Plans depend on it: what is maintained keeps its state
	// over a restart only if it is planned again with the same estimates.
	Rows func(id plan.ObjectID) float64
	// Disabled names rules that must not be applied (for tests).
	Disabled map[string]bool
	// Fired, if not nil, is called with the name of each rule that changed the plan.
	Fired func(rule string)
}

// maxRounds bounds how often the rules are applied again because one of them
// may have made room for another. Each round is linear in the plan but for
// joins, so that the whole is polynomial.
const maxRounds = 5

// Optimize lowers a bound plan to the relational stage (no outer columns,
// subqueries, grouping sets or lateral joins) and rewrites it by rules. The
// result is ready for dataflow/render. Nodes of bound are not changed.
func Optimize(bound plan.Rel, opts Options) (plan.Rel, error) {
	if opts.Maintained {
		bound = withoutSort(bound)
	}
	r, err := Lower(bound)
	if err != nil {
		return nil, err
	}
	o := &optimizer{opts: opts, lastID: lastID(r)}
	for o.round = range maxRounds {
		o.changed = false
		r = o.clean(r)
		r = o.push(r, nil)
		r = o.prune(r)
		r = o.clean(r)
		if !o.changed {
			break
		}
	}
	if u := o.joinUnions(r); u != r {
		r = o.clean(o.prune(o.push(u, nil)))
	}
	r = o.lookups(o.share(r))
	r = o.deltaJoins(r)
	if !opts.Maintained {
		if l := o.lookupJoins(r); l != r {
			r = o.clean(l)
		}
	}
	return o.readsInOrder(plan.Rewrite(r, orderPreds)), nil
}

// Lower brings a bound plan to the relational stage and does nothing else.
func Lower(bound plan.Rel) (plan.Rel, error) {
	r, err := unnest(bound)
	if err != nil {
		return nil, err
	}
	r = lower(plan.Rewrite(r, settleVolatile))
	if s, ok := r.(*plan.Sort); ok {
		return plan.Rewrite(plan.WithInput(s, plan.Rewrite(s.Input, withoutSort)), delayVolatile), nil
	}
	return plan.Rewrite(r, func(r plan.Rel) plan.Rel { return delayVolatile(withoutSort(r)) }), nil
}

// optimizer applies rules to one plan.
type optimizer struct {
	opts    Options
	changed bool // in this round, by a rule that may make room for others
	lastID  int  // of the bindings
	round   int
	// simple are the expressions that simplification leaves as they are, by the
	// nullability of the columns that they are over.
	simple map[expr.Expr]uint64
}

// on reports whether a rule may be applied.
func (o *optimizer) on(rule string) bool { return !o.opts.Disabled[rule] }

// fire records that a rule changed the plan.
func (o *optimizer) fire(rule string) {
	o.changed = true
	o.note(rule)
}

// note records that a rule changed the plan in a way that concerns no other.
func (o *optimizer) note(rule string) {
	if o.opts.Fired != nil {
		o.opts.Fired(rule)
	}
}

// rule fires a rule if it may be applied.
func (o *optimizer) rule(rule string) bool {
	if !o.on(rule) {
		return false
	}
	o.fire(rule)
	return true
}

// Rules lists the names of all rules.
func Rules() []string {
	return []string{
		"AggregateToDistinct", "DelayProjection", "DeltaJoin", "DropConstantGroups", "ExtractDisjunction", "FactorDisjunction", "FilterToConstant", "FieldOfRow", "FlatMapToJoin", "FlattenUnion",
		"FoldConstants", "FoldProject", "FuseProjects", "InferFilters", "InlineLet", "JoinOrToUnion", "LeftToAnti", "LookupJoin", "LookupUnion", "OrToIn", "OuterToInner", "PointLookup",
		"PropagateEmpty", "PruneColumns", "PushFilterIntoJoin", "PushFilterThroughAggregate",
		"PushFilterThroughAssert", "PushFilterThroughDistinct", "PushFilterThroughFlatMap", "PushFilterThroughFullJoin",
		"PushFilterThroughProject", "PushFilterThroughSetOp", "PushFilterThroughTopK", "PushFilterThroughWindow",
		"PushLimit", "RangeLookup", "ReadInOrder", "RemoveAggregate", "RemoveAssert", "RemoveDistinct", "RemoveFilter", "SemiToInner",
		"RemoveKeyedAggregate", "RemoveLeftJoin", "RemoveParentJoin", "RemoveProject", "RemoveSelfJoin", "RemoveTopK", "RemoveUnitJoin", "ReorderJoins", "RightToLeft",
		"ShareCommon", "SimplifyCase", "SimplifyCoalesce", "SimplifyIdentity", "SimplifyLogic", "SimplifyNot",
		"SimplifyNullTest", "SinkSemiJoin", "SplitRanks", "WindowToAggregate", "WindowToTopK",
	}
}
