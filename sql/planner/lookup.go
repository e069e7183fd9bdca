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
	return len(a.Key) > len(b.Key)
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
		if old, ok := fixed[col]; !ok || len(out) < len(old) {
			fixed[col] = out
		}
	}
	for _, p := range preds {
		if l, r, ok := plan.IsEquality(p); ok {
			add(l, []expr.Expr{r})
			add(r, []expr.Expr{l})
			continue
		}
		if in, ok := p.(*expr.InList); ok && in.Op.Name == "=" && !in.Op.Fuzzy && len(in.List) <= maxLookups {
			add(in.Arg, in.List)
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

// keyValue is v as a value of a key column's type, nil if it is not without
// columns, or cannot be one.
func keyValue(v expr.Expr, t types.Type) expr.Expr {
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
		if sameForm(v.Type(), t) && !expr.UsesColumns(v) && !hasSubquery(v) && !expr.Any(v, isOuter) && expr.VolatilityOf(v) != expr.Volatile {
			return v
		}
	}
	return nil
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
