package planner

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// maxLookups bounds how many keys are looked up one by one.
const maxLookups = 256

// PointLookup: a read of a collection that is filtered by equality with
// constants or parameters on all columns of an index is marked with the keys
// wanted. The filter stays, for readers that do not look up.
//
//	SELECT * FROM t WHERE id = $1        (id is the key of t)  →  Get t lookup=($1)
func (o *optimizer) lookups(r plan.Rel) plan.Rel {
	if o.opts.Indexes == nil {
		return r
	}
	f, ok := r.(*plan.Filter)
	if !ok {
		return plan.MapChildren(r, o.lookups)
	}
	g, ok := f.Input.(*plan.Get)
	if !ok || g.Lookup != nil {
		return plan.MapChildren(r, o.lookups)
	}
	best := o.bestLookup(g, f.Preds)
	if best == nil {
		best = o.lookupBranches(g, f.Preds)
	}
	if best == nil {
		if u := o.lookupUnion(f, g); u != nil {
			return u
		}
		if best = o.rangeLookup(g, f.Preds); best == nil {
			return r
		}
		o.fire("RangeLookup")
	} else {
		o.fire("PointLookup")
		best.Exact = exactKey(g, f.Preds, best)
	}
	c := *g
	c.Lookup = best
	return &plan.Filter{Input: &c, Preds: f.Preds}
}

// bestLookup is the best lookup of whole keys for a filter, nil if there is none.
func (o *optimizer) bestLookup(g *plan.Get, preds []expr.Expr) *plan.Lookup {
	if !o.on("PointLookup") {
		return nil
	}
	fixed := fixedValues(g, preds)
	var best *plan.Lookup
	for _, ix := range o.opts.Indexes(g.ID) {
		if l := lookupBy(ix, withExprs(ix, g, preds, fixed)); l != nil && better(l, best) && impliesAll(g, preds, ix.Preds) {
			best = l
		}
	}
	return best
}

// lookupBranches is the lookup of all the keys that the branches of an OR want of one
// index, nil if there is none: (a, b) IN ((1, 2), (3, 4)) is such an OR.
func (o *optimizer) lookupBranches(g *plan.Get, preds []expr.Expr) *plan.Lookup {
	preds = conjuncts(preds)
	for i, p := range preds {
		or, ok := p.(*expr.Logic)
		if !ok || or.And || len(or.Args) > maxLookups {
			continue
		}
		if l := o.lookupEach(g, or.Args, append(slices.Clone(preds[:i]), preds[i+1:]...)); l != nil {
			return l
		}
	}
	return nil
}

// lookupEach is the lookup of what each of some conditions wants of one index, given
// that others hold, too.
func (o *optimizer) lookupEach(g *plan.Get, branches, others []expr.Expr) *plan.Lookup {
	var all plan.Lookup
	for i, b := range branches {
		l := o.bestLookup(g, append(conjuncts([]expr.Expr{b}), others...))
		switch {
		case l == nil || i > 0 && l.Index != all.Index || len(all.Values)+len(l.Values) > maxLookups:
			return nil
		case i == 0:
			all = *l
		default:
			all.Values = append(slices.Clip(all.Values), l.Values...)
		}
	}
	return &all
}

// exactKey says whether preds ask for nothing but l's one key.
func exactKey(g *plan.Get, preds []expr.Expr, l *plan.Lookup) bool {
	if len(l.Values) != 1 {
		return false
	}
	is := func(e, v expr.Expr) bool {
		c, ok := expr.StripRelabel(e).(*expr.Column)
		if !ok {
			return false
		}
		k := slices.Index(l.Key, g.Source(c.Index))
		if k < 0 {
			return false
		}
		v = keyValue(v, c.Typ)
		return v != nil && expr.Equal(v, l.Values[0][k])
	}
	for _, p := range preds {
		if a, b, ok := plan.IsEquality(p); !ok || !is(a, b) && !is(b, a) {
			return false
		}
	}
	return true
}

// better prefers unique keys, then longer ones.
func better(a, b *plan.Lookup) bool {
	if b == nil {
		return true
	}
	if a.Unique != b.Unique {
		return a.Unique
	}
	if n := nullKeys(a) - nullKeys(b); n != 0 {
		return n < 0
	}
	return len(a.Key) > len(b.Key)
}

// nullKeys counts the columns of the key of which NULLs are looked up: that may be
// most rows.
func nullKeys(l *plan.Lookup) int {
	n := 0
	for _, v := range l.Values[0] {
		if _, ok := expr.NullSafeValue(v); ok {
			n++
		}
	}
	return n
}

// fixedValues are, by column of the collection, the values that preds allow.
func fixedValues(g *plan.Get, preds []expr.Expr) map[int][]expr.Expr {
	fixed := map[int][]expr.Expr{}
	add := func(e expr.Expr, vals []expr.Expr) {
		c, ok := expr.StripRelabel(e).(*expr.Column)
		if !ok {
			return
		}
		out := make([]expr.Expr, 0, len(vals))
		for _, v := range vals {
			v = keyValue(v, c.Typ)
			if v == nil {
				return
			}
			if !slices.ContainsFunc(out, func(o expr.Expr) bool { return expr.Equal(o, v) }) {
				out = append(out, v)
			}
		}
		col := g.Source(c.Index)
		if old, ok := fixed[col]; !ok || fewer(out, old) {
			fixed[col] = out
		}
	}
	for _, p := range preds {
		if l, r, ok := plan.IsEquality(p); ok {
			add(l, []expr.Expr{r})
			add(r, []expr.Expr{l})
		} else if arg, vals := oneOf(p); arg != nil {
			add(arg, vals)
		}
	}
	for _, p := range preds {
		if arg, v := nullSafe(p); arg != nil {
			if c, ok := expr.StripRelabel(arg).(*expr.Column); ok && fixed[g.Source(c.Index)] == nil {
				add(arg, []expr.Expr{v})
			}
		}
	}
	for range preds { // what is equated to a column has its values
		changed := false
		for _, p := range preds {
			l, r, ok := plan.IsEquality(p)
			a, ok1 := l.(*expr.Column)
			b, ok2 := r.(*expr.Column)
			if !ok || !ok1 || !ok2 || a.Typ.OID != b.Typ.OID && !(isInt(a.Typ) && isInt(b.Typ)) {
				continue
			}
			for _, c := range [][2]*expr.Column{{a, b}, {b, a}} {
				from, to := g.Source(c[0].Index), g.Source(c[1].Index)
				if fixed[from] == nil || fixed[to] != nil {
					continue
				}
				if add(c[1], fixed[from]); fixed[to] != nil {
					changed = true
				}
			}
		}
		if !changed {
			break
		}
	}
	return fixed
}

// nullSafe takes a condition apart that an expression is NULL, or not distinct from
// a value.
func nullSafe(p expr.Expr) (arg, v expr.Expr) {
	if n, ok := p.(*expr.IsNull); ok && !n.Not {
		if t := n.Arg.Type().OID; t == types.OIDRecord || t.Fields() != nil {
			return nil, nil // rows of NULLs are NULL, too
		}
		return n.Arg, expr.NullSafe(nullConst(n.Arg.Type()))
	}
	l, r, ok := plan.IsSame(p)
	if n, not := p.(*expr.Not); not && !ok {
		if l, r, ok = expr.IsDistinct(n.Arg); ok {
			eq, err := expr.NewOp("=", l, r, 0)
			if err != nil {
				return nil, nil
			}
			l, r, ok = plan.IsEquality(eq)
		}
	}
	if ok {
		if isFixed(l) {
			l, r = r, l
		}
		if isFixed(r) {
			return l, expr.NullSafe(r)
		}
	}
	return nil, nil
}

// oneOf takes a condition apart that an expression is one of some values.
func oneOf(p expr.Expr) (arg expr.Expr, vals []expr.Expr) {
	switch p := p.(type) {
	case *expr.InList:
		if p.Op.Name == "=" && !p.Op.Fuzzy && len(p.List) <= maxLookups {
			return p.Arg, p.List
		}
	case *expr.ArrayOp:
		if p.Op.Name == "=" && !p.Op.Fuzzy && !p.All {
			return p.Left, []expr.Expr{expr.AnyOf(p.Right, p.Right.Type().ElemType())}
		}
	}
	return nil, nil
}

// fewer reports whether a stands for fewer values than b; the elements of an array are
// taken for many.
func fewer(a, b []expr.Expr) bool {
	if anyOf(a) != anyOf(b) {
		return anyOf(b)
	}
	return len(a) < len(b)
}

// anyOf reports whether one of some values stands for the elements of an array.
func anyOf(vals []expr.Expr) bool {
	return slices.ContainsFunc(vals, func(v expr.Expr) bool { _, ok := expr.AnyArray(v); return ok })
}

// keyValue is v as a value of a key column's type, nil if it is not without
// columns, or cannot be one.
func keyValue(v expr.Expr, t types.Type) expr.Expr {
	if array, ok := expr.AnyArray(v); ok {
		if e := v.Type(); !isFixed(array) || !sameForm(e, t) && !(isInt(e) && isInt(t)) {
			return nil
		}
		return expr.AnyOf(array, t)
	}
	if v, ok := expr.NullSafeValue(v); ok {
		if c, ok := v.(*expr.Const); ok && c.Val.Null(0) {
			return expr.NullSafe(nullConst(t))
		}
		if v = keyValue(v, t); v == nil {
			return nil
		}
		return expr.NullSafe(v)
	}
	switch v := v.(type) {
	case *expr.Param:
		if sameForm(v.Typ, t) {
			return v
		}
	case *expr.Const:
		if v.Val.Null(0) {
			return nil
		}
		if sameForm(v.Typ, t) {
			return v
		}
		n, ok := plan.IntConst(v)
		if !ok {
			return nil
		}
		switch {
		case t.OID == types.OIDInt8:
			return int64Const(n)
		case t.OID == types.OIDInt4 && n == int64(int32(n)):
			return int32Const(int32(n))
		case t.OID == types.OIDInt2 && n == int64(int16(n)):
			return int16Const(int16(n))
		}
	default:
		if sameForm(v.Type(), t) && isFixed(v) {
			return v
		}
	}
	return nil
}

// isFixed reports whether an expression has one value while a query runs, known when it
// starts.
func isFixed(e expr.Expr) bool {
	return !expr.UsesColumns(e) && !hasSubquery(e) && !expr.Any(e, isOuter) && expr.VolatilityOf(e) != expr.Volatile
}

func isOuter(e expr.Expr) bool { _, ok := e.(*expr.OuterColumn); return ok }

// sameForm reports whether values of type v are those of a key of type t, as far as
// equality and order go.
func sameForm(v, t types.Type) bool {
	text := func(o types.OID) bool { return o == types.OIDText || o == types.OIDVarchar || o == types.OIDName }
	return v.OID == t.OID || text(v.OID) && text(t.OID) || v.OID == t.Storage().OID
}

// lookupBy is the lookup of the fixed values by an index, nil if a column of
// its key is not fixed or there are too many combinations.
func lookupBy(ix Index, fixed map[int][]expr.Expr) *plan.Lookup {
	if len(ix.Key) == 0 || ix.Useless != "" || ix.Unequal {
		return nil
	}
	values := [][]expr.Expr{nil}
	for _, k := range ix.Key {
		vals, ok := fixed[k]
		if !ok || len(values)*len(vals) > maxLookups {
			return nil
		}
		next := make([][]expr.Expr, 0, len(values)*len(vals))
		for _, prefix := range values {
			for _, v := range vals {
				next = append(next, append(slices.Clip(prefix), v))
			}
		}
		values = next
	}
	return &plan.Lookup{Index: ix.ID, Key: ix.Key, Values: values, Unique: ix.Unique, Names: ix.Names}
}
