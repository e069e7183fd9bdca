package coord

import (
	"context"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/dataflow"
)

// BreakIndexes makes the expressions of indexes call a function that is not there.
func BreakIndexes(c *Coordinator) error {
	r := &request{commit: true}
	for _, o := range c.catalog.Load().Objects() {
		if o.Kind == catalog.KindIndex && len(o.Exprs) > 0 {
			x := o.Clone()
			x.Exprs = []catalog.IndexExpr{{SQL: "nope(a)", Type: o.Exprs[0].Type, Name: o.Exprs[0].Name}}
			r.catalog = append(r.catalog, catalog.Change{Put: x})
		}
	}
	next := c.catalog.Load().Apply(r.catalog...)
	r.atEpoch = func(dataflow.Epoch) { c.catalog.Store(next) }
	r.measure()
	_, err := c.timeline.commit(context.Background(), r)
	return err
}

// SharedBy is how many published arrangements the dataflow of a view looks into.
func (c *Coordinator) SharedBy(view string) int {
	for _, cl := range c.clusterList() {
		n := -1
		_ = cl.do(c.ctx, func() {
			for _, f := range cl.flows {
				if o := c.catalog.Load().ByID(f.id); o != nil && o.Name == view {
					n = len(f.df.shared)
				}
			}
		})
		if n >= 0 {
			return n
		}
	}
	return -1
}

// LockWaiters is how many transactions wait for a table.
func (c *Coordinator) LockWaiters() int {
	c.locks.mu.Lock()
	defer c.locks.mu.Unlock()
	return len(c.locks.waits)
}
