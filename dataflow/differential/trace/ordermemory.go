package trace

import (
	"container/list"
	"sync"
	"weak"
)

// orderMemory bounds the memory of the orders of all batches: beyond, those that
// were not used for the longest are forgotten.
var orderMemory = orderCache{limit: 256 << 20, at: map[weak.Pointer[sortedRows]]*list.Element{}}

// SetOrderLimit bounds the bytes of the orders that are kept for range reads.
func SetOrderLimit(bytes int64) {
	orderMemory.mu.Lock()
	orderMemory.limit = bytes
	gone := orderMemory.excess(0)
	orderMemory.mu.Unlock()
	forgetOrders(gone)
}

// OrderBytes is the memory of the orders that are kept.
func OrderBytes() int64 {
	orderMemory.mu.Lock()
	defer orderMemory.mu.Unlock()
	return orderMemory.used
}

// orderCache lists orders by when they were last used.
type orderCache struct {
	mu    sync.Mutex
	limit int64
	used  int64
	lru   list.List // of *cachedOrder, the last used first
	at    map[weak.Pointer[sortedRows]]*list.Element
}

// cachedOrder is one order of a batch; it keeps neither alive.
type cachedOrder struct {
	batch weak.Pointer[Batch]
	rows  weak.Pointer[sortedRows]
	name  string
	bytes int64
}

// smallOrder is the size up to which an order is left to its batch.
const smallOrder = 1 << 14

func (c *orderCache) touch(b *Batch, name string, s *sortedRows) {
	if s.bytes <= smallOrder {
		return
	}
	c.mu.Lock()
	if e := c.at[weak.Make(s)]; e != nil {
		c.lru.MoveToFront(e)
	}
	c.mu.Unlock()
}

// add takes an order in, and forgets others if there are too many.
func (c *orderCache) add(b *Batch, name string, s *sortedRows) {
	if s.bytes <= smallOrder {
		return
	}
	c.mu.Lock()
	o := &cachedOrder{weak.Make(b), weak.Make(s), name, s.bytes}
	c.at[o.rows] = c.lru.PushFront(o)
	c.used += s.bytes
	gone := c.excess(1)
	c.mu.Unlock()
	forgetOrders(gone)
}

// excess takes out what is beyond the limit, but for the last used ones. Call with
// the lock held.
func (c *orderCache) excess(keep int) (gone []*cachedOrder) {
	for c.used > c.limit && c.lru.Len() > keep {
		gone = append(gone, c.drop(c.lru.Back()))
	}
	return gone
}

// forgetOrders takes orders away from their batches.
func forgetOrders(gone []*cachedOrder) {
	for _, o := range gone {
		b := o.batch.Value()
		if b == nil {
			continue
		}
		b.ordersMu.Lock()
		if s := b.orders[o.name]; s != nil && weak.Make(s) == o.rows {
			delete(b.orders, o.name)
		}
		b.ordersMu.Unlock()
	}
}

// drop takes an order out. Call with the lock held.
func (c *orderCache) drop(e *list.Element) *cachedOrder {
	o := c.lru.Remove(e).(*cachedOrder)
	delete(c.at, o.rows)
	c.used -= o.bytes
	return o
}

// forget takes the orders of a batch out that nobody reads any more.
func (c *orderCache) forget(b *Batch) {
	b.ordersMu.Lock()
	orders := b.orders
	b.orders = nil
	b.ordersMu.Unlock()
	if len(orders) == 0 {
		return
	}
	c.mu.Lock()
	for _, s := range orders {
		if e := c.at[weak.Make(s)]; e != nil {
			c.drop(e)
		}
	}
	c.mu.Unlock()
}
