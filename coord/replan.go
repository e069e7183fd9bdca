package coord

import (
	"slices"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// replan follows up a statement whose catalog changes begin at from: views whose
// plans rely on what a table no longer promises are planned and computed anew, and
// what is known of the results of rebuilt views is found out again. before is the
// catalog as it was.
func (s *Session) replan(d *ddlState, before *catalog.Snapshot, from int) {
	var roots []plan.ObjectID
	for _, c := range d.changes[from:] {
		if c.Put == nil || slices.Contains(roots, c.Put.ID) {
			continue
		}
		old, now := before.ByID(c.Put.ID), d.cat.ByID(c.Put.ID)
		if old != nil && now != nil && (loosened(old, now) || d.rebuilt[now.ID] || now.Query != old.Query) {
			roots = append(roots, now.ID)
		}
	}
	for _, v := range d.cat.Closure(roots...) {
		if !v.Maintained() {
			continue
		}
		now, err := s.c.viewPlan(d.cat, v)
		if err != nil {
			continue // its hydration will say so
		}
		changed := v.Kind == catalog.KindMaterializedView && s.derive(d, v, now)
		if !changed && !d.rebuilt[v.ID] {
			was, err := s.c.viewPlan(before, before.ByID(v.ID))
			changed = err != nil || plan.Format(was) != plan.Format(now)
		}
		if !changed {
			continue
		}
		for _, u := range d.cat.Closure(v.ID) {
			if u.Kind == catalog.KindMaterializedView || u.Kind == catalog.KindIndex || u.Sink != nil {
				d.rebuilt[u.ID] = true
			}
		}
	}
}

// derive updates what the catalog knows of the result of a view by its plan, and
// reports whether that was something else.
func (s *Session) derive(d *ddlState, v *catalog.Object, rel plan.Rel) bool {
	n := v.Clone()
	n.Key, n.Grows = smallestKey(rel), plan.AppendOnly(rel)
	if q, err := parser.ParseQuery(v.Query); err == nil {
		if b, err := planner.BindQuery(s.c.bindContext(d.cat), v.Query, &q); err == nil && len(b.Columns) == len(n.Columns) {
			for i := range n.Columns {
				n.Columns[i].NotNull = b.Columns[i].NotNull
			}
		}
	}
	if slices.Equal(n.Key, v.Key) && n.Grows == v.Grows && slices.EqualFunc(n.Columns, v.Columns, func(a, b catalog.Column) bool { return a.NotNull == b.NotNull }) {
		return false
	}
	d.apply(catalog.Change{Put: n})
	return true
}

// smallestKey is the smallest key of a plan's result that has columns, nil if
// there is none.
func smallestKey(rel plan.Rel) []int {
	var best []int
	for _, k := range plan.Keys(rel) {
		if len(k) > 0 && (best == nil || len(k) < len(best)) {
			best = k
		}
	}
	return best
}

// loosened reports whether a table promises less than before: a column may be
// NULL, or a key or a foreign key is gone.
func loosened(old, now *catalog.Object) bool {
	for i, c := range old.Columns {
		if c.NotNull && i < len(now.Columns) && !now.Columns[i].NotNull {
			return true
		}
	}
	for _, k := range old.Keys() {
		if !slices.ContainsFunc(now.Keys(), func(x catalog.Key) bool { return slices.Equal(x.Columns, k.Columns) }) {
			return true
		}
	}
	for _, f := range old.Foreign {
		if !slices.ContainsFunc(now.Foreign, func(x catalog.ForeignKey) bool { return x.Name == f.Name }) {
			return true
		}
	}
	return false
}

func usedByView(v *catalog.Object, column string) error {
	rule := "rule _RETURN on "
	if v.Kind == catalog.KindSink {
		rule = ""
	}
	return pgerror.New(pgerror.FeatureNotSupported, "cannot alter type of a column used by a view or rule").
		WithDetail("%s%s %s depends on column \"%s\"", rule, v.Kind, v.Name, column)
}

// sameViews checks that the views on the table mean what they did with the new
// fields of a column: their definitions are still right, and give the same types.
func (t *tableAlter) sameViews(column string) error {
	for _, v := range t.d.cat.Closure(t.o.ID) {
		if v.Query == "" {
			continue
		}
		if !t.s.sameColumns(t.d, v) {
			return usedByView(v, column)
		}
	}
	return nil
}
