package coord

import (
	"context"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
)

// Temporary objects are of a session: they are in a schema of its own, enter
// neither the log nor checkpoints, and go with the session.

// temporary reports whether an object is one.
func temporary(o *catalog.Object) bool { return o.Temporary }

// hasTemp reports whether the session has temporary objects.
func (s *Session) hasTemp() bool { return s.snapshot().Schema(s.tempSchema) != nil }

// makeTemp makes the schema of the session's temporary objects.
func (s *Session) makeTemp(d *ddlState) error {
	if d.cat.Schema(s.tempSchema) != nil {
		return nil
	}
	id, err := s.c.store.AllocateIDs(1)
	if err != nil {
		return diskError(err)
	}
	d.apply(catalog.Change{PutSchema: &catalog.Schema{Name: s.tempSchema, OID: uint32(firstUserOID + id), Temporary: true}})
	return nil
}

// temporary reports whether a change is of a temporary object.
func (d *ddlState) temporary(c *catalog.Change) bool {
	switch {
	case c.Put != nil:
		return c.Put.Temporary
	case c.PutSchema != nil:
		return c.PutSchema.Temporary
	case c.Drop != 0:
		o := d.cat.ByID(c.Drop)
		return o != nil && o.Temporary
	case c.DropSchema != "":
		sc := d.cat.Schema(c.DropSchema)
		return sc != nil && sc.Temporary
	}
	return false
}

// usesTemporary reports whether a query uses temporary objects.
func (s *Session) usesTemporary(d *ddlState, q *planner.Query) bool {
	for _, id := range q.DeepDeps {
		if o := d.cat.ByID(id); o != nil && o.Temporary {
			return true
		}
	}
	return false
}

// beforeCommit does what is left to the end of a transaction: checks that were
// put off, and ON COMMIT of temporary tables.
func (s *Session) beforeCommit(ctx context.Context) error {
	if err := s.checkLater(ctx); err != nil {
		return err
	}
	if !s.onCommit || !s.hasTemp() {
		return nil
	}
	var drop []*catalog.Object
	for _, o := range s.snapshot().Objects() {
		if o.Schema != s.tempSchema {
			continue
		}
		switch o.OnCommit {
		case "drop":
			drop = append(drop, o)
		case "delete rows":
			if err := s.clearTable(ctx, o); err != nil {
				return err
			}
		}
	}
	if drop == nil {
		return nil
	}
	d, err := s.beginDDL(ctx)
	if err != nil {
		return err
	}
	return s.dropAll(d, true, drop, nil, "", discard{})
}

// clearTable deletes all rows of a table.
func (s *Session) clearTable(ctx context.Context, t *catalog.Object) error {
	var gone []*dataflow.Delta
	if err := s.eachRow(t, func(d *dataflow.Delta) error {
		gone = append(gone, cloneDelta(d))
		return ctx.Err()
	}); err != nil {
		return err
	}
	for _, d := range gone {
		neg := make([]int64, d.N)
		for i := range neg {
			neg[i] = -d.Diff(i)
		}
		s.tx.write(t.ID, &dataflow.Delta{Batch: d.Batch, Diffs: neg})
	}
	return nil
}

// dropTemporary drops the session's temporary objects when it ends.
func (s *Session) dropTemporary() {
	if !s.hasTemp() || s.c.closed.Load() {
		return
	}
	s.c.tasks.Go(func() {
		if err := s.discardTemp(s.c.ctx); err == nil {
			_ = s.commitTx(s.c.ctx) // at the server's end it goes with it
		}
		s.rollbackTx()
	})
}

// discardTemp drops all temporary objects, as DISCARD TEMP does.
func (s *Session) discardTemp(ctx context.Context) error {
	if !s.hasTemp() {
		return nil
	}
	d, err := s.beginDDL(ctx)
	if err != nil {
		return err
	}
	var inside []*catalog.Object
	for _, o := range d.cat.Objects() {
		if o.Schema == s.tempSchema {
			inside = append(inside, o)
		}
	}
	if err := s.dropAll(d, true, inside, nil, "", discard{}); err != nil {
		return err
	}
	d.apply(catalog.Change{DropSchema: s.tempSchema})
	return nil
}

// discard is a result writer of no one.
type discard struct{ pgwire.ResultWriter }

// Notice drops the notice.
func (discard) Notice(*pgerror.Error) {}
