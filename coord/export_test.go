package coord

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
