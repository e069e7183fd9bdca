package coord

import (
	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// A SERIALIZABLE transaction that writes is checked when it commits: if a table that
// it read, itself or by a view, has changed since, it might as well have read the
// newer rows, and is refused (optimistic concurrency control by backward validation;
// Kung, Robinson, "On Optimistic Methods for Concurrency Control", TODS 1981). What
// commits is so in the order of the commits. Whole tables are compared, as by the
// locks of writers. Sources are not: what comes from outside has read nothing here.

// serializable says whether the transaction's reads are checked when it commits.
func (m txnModes) serializable() bool {
	return m.isolation == "serializable" || m.isolation == "strict serializable"
}

// noteReads keeps which objects a serializable transaction has read, and at which
// epoch first.
func (tx *txn) noteReads(ids []plan.ObjectID, e dataflow.Epoch) {
	if !tx.serializable() {
		return
	}
	if tx.reads == nil {
		tx.reads = make(map[plan.ObjectID]dataflow.Epoch, len(ids))
	}
	for _, id := range ids {
		if at, ok := tx.reads[id]; !ok || e < at {
			tx.reads[id] = e
		}
	}
}

// tablesRead are the tables below what the transaction has read.
func (tx *txn) tablesRead(cat *catalog.Snapshot) map[plan.ObjectID]dataflow.Epoch {
	if len(tx.reads) == 0 {
		return nil
	}
	out := map[plan.ObjectID]dataflow.Epoch{}
	var below func(id plan.ObjectID, e dataflow.Epoch)
	below = func(id plan.ObjectID, e dataflow.Epoch) {
		o := cat.ByID(id)
		if o == nil {
			return
		}
		switch o.Kind {
		case catalog.KindTable:
			if at, ok := out[id]; !ok || e < at {
				out[id] = e
			}
		case catalog.KindIndex:
			below(o.Table, e)
		case catalog.KindView, catalog.KindMaterializedView:
			for _, d := range o.Deps {
				below(d, e)
			}
		}
	}
	for id, e := range tx.reads {
		below(id, e)
	}
	return out
}

// overtaken says whether a table that a request's transaction has read has changed
// since, also by the requests of the same epoch before it, which wrote to written.
func (t *timeline) overtaken(r *request, written map[plan.ObjectID]bool) bool {
	for id, e := range r.reads {
		coll := t.c.collection(id)
		if written[id] || coll != nil && dataflow.Epoch(coll.lastAt.Load()) > e {
			r.done(0, pgerror.New(pgerror.SerializationFailure, "could not serialize access due to read/write dependencies among transactions").
				WithDetail("A table that the transaction has read has been changed meanwhile.").
				WithHint("The transaction might succeed if retried."))
			return true
		}
	}
	return false
}
