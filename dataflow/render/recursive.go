package render

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow/differential"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// recursive renders WITH RECURSIVE by a scope of the circuit. What does not
// depend on the variables is computed outside and brought in.
func (b *builder) recursive(r *plan.Recursive, need []bool) coll {
	values, ranked := b.rankedValues(r)
	if !ranked {
		values = r.Values
	}
	kinds := make([][]columnar.Kind, len(values))
	typs := make([][]types.Type, len(values))
	for i, v := range values {
		cols := v.Columns()
		kinds[i], typs[i] = kindsOf(cols), typesOf(cols)
	}
	// The scope is built anew whenever it is evaluated; what is outside only once.
	outside := map[plan.Rel]differential.Stream{}
	first := true
	opts := differential.IterateOptions{Limit: r.Limit, Working: r.Working, Distinct: r.Working && r.Distinct[1], Ranked: ranked}
	if r.FailAtLimit {
		opts.AtLimit = errorDelta([]expr.RowError{{Err: pgerror.New(pgerror.ProgramLimitExceeded,
			"recursive query exceeded the recursion limit %d", r.Limit).
			WithHint("Use RETURN AT RECURSION LIMIT to not error, but return the current state as the final result when reaching the limit.")}}, nil)
	}
	outs := b.c.Iterate(kinds, opts, func(sc *differential.Scope) {
		in := &builder{
			opts: b.opts, df: b.df, c: sc.Circuit, reads: b.reads, failed: b.failed,
			parent: b, scope: sc, lets: map[int]coll{}, outside: outside,
			entered: map[differential.Stream]differential.Stream{},
		}
		for i, id := range r.IDs {
			in.lets[id] = in.base(sc.Var(i), typs[i])
		}
		for i, v := range values {
			c := in.rel(v, nil)
			switch {
			case ranked:
				c = in.base(sc.RankedDistinct(in.stream(c)), typs[i])
			case r.Distinct[i]:
				c = in.distinctColl(c, typs[i])
			}
			s := in.stream(c)
			sc.Set(i, s)
			if !r.Working {
				// The definitions that follow see this round's content already.
				in.lets[r.IDs[i]] = in.base(s, typs[i])
			}
		}
		for _, e := range in.errs {
			if out := sc.Leave(e); first {
				b.errs = append(b.errs, out)
			}
		}
		first = false
	})
	if r.FailAtLimit {
		b.errs = append(b.errs, outs[len(r.IDs)])
	}
	if b.lets == nil {
		b.lets = map[int]coll{}
	}
	for i, id := range r.IDs {
		b.lets[id] = b.base(outs[i], typesOf(r.Values[i].Columns()))
	}
	return b.rel(r.Body, need)
}

// looped reports whether r depends on the variables of this scope, directly or
// through a binding made inside of it.
func (b *builder) looped(r plan.Rel) bool {
	found := false
	var bound []int
	plan.Walk(r, func(n plan.Rel) bool {
		switch n := n.(type) {
		case *plan.LocalGet:
			_, inside := b.lets[n.ID]
			found = found || inside && !slices.Contains(bound, n.ID)
		case *plan.Let:
			bound = append(bound, n.ID)
		case *plan.Recursive:
			bound = append(bound, n.IDs...)
		}
		return !found
	})
	return found
}

// enter renders r outside of the scope and brings it in.
func (b *builder) enter(r plan.Rel) coll {
	s, ok := b.outside[r]
	if !ok {
		s = b.parent.stream(b.parent.rel(r, nil))
		b.outside[r] = s
	}
	in, ok := b.entered[s]
	if !ok {
		in = b.scope.Enter(s)
		b.entered[s] = in
	}
	return b.base(in, typesOf(r.Columns()))
}

// some is rows of r, whichever come first, limit of them after skip: all that is wanted
// of it. It reports false where they cannot be taken as they come, or it is not worth it.
// A recursion ends when that is enough.
func (b *builder) some(r plan.Rel, c coll, skip, limit int64) (coll, bool) {
	if !b.opts.recursive || b.parent != nil || limit < 0 || !b.opts.positive(r) {
		return c, false
	}
	return b.base(b.c.First(b.stream(c), skip, limit), typesOf(r.Columns())), true
}
