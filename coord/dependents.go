package coord

import (
	"slices"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// checkDependents refuses a change of objects after which what uses them could not be
// bound any more: views, checks, generated columns, and the expressions of indexes,
// without which a table could not even be opened. from is where the statement's changes
// begin.
func (s *Session) checkDependents(d *ddlState, before *catalog.Snapshot, from int) error {
	var roots []plan.ObjectID
	for _, c := range d.changes[from:] {
		if c.Put == nil || slices.Contains(roots, c.Put.ID) {
			continue
		}
		if old := before.ByID(c.Put.ID); old != nil && old != d.cat.ByID(c.Put.ID) {
			roots = append(roots, c.Put.ID)
		}
	}
	if len(roots) == 0 {
		return nil
	}
	for _, o := range d.cat.Closure(roots...) {
		var err error
		switch {
		case before.ByID(o.ID) == nil:
		case o.Kind == catalog.KindView, o.Kind == catalog.KindMaterializedView:
			_, err = s.c.viewPlan(d.cat, o)
		case o.Kind == catalog.KindTable:
			_, err = s.rulesOf(o)
		case o.Kind == catalog.KindIndex && !o.Plain():
			s.c.forms.Delete(o.ID) // what is bound may mean something else now
			if t := d.cat.ByID(o.Table); t != nil && s.c.indexForm(d.cat, t, o) == nil {
				err = pgerror.New(pgerror.DependentObjectsStillExist, "its expressions would not be valid any more")
			}
		}
		if err != nil {
			return pgerror.New(pgerror.DependentObjectsStillExist, "cannot make this change because %s \"%s\" depends on what it changes", o.Kind, o.Name).
				WithDetail("%s", pgerror.As(err).Message).
				WithHint("Drop or alter it first.")
		}
	}
	return nil
}
