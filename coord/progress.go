package coord

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/streamdb/streamdb/dataflow"
)

// progress is an epoch that only grows, and that can be waited for.
type progress struct {
	at      atomic.Uint64
	mu      sync.Mutex
	waiters map[chan struct{}]dataflow.Epoch
}

// get is the last epoch reached.
func (p *progress) get() dataflow.Epoch { return dataflow.Epoch(p.at.Load()) }

// set moves on to e and wakes whoever waited for it.
func (p *progress) set(e dataflow.Epoch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if uint64(e) <= p.at.Load() {
		return
	}
	p.at.Store(uint64(e))
	for ch, want := range p.waiters {
		if want <= e {
			close(ch)
			delete(p.waiters, ch)
		}
	}
}

// wait returns when e is reached or ctx ends.
func (p *progress) wait(ctx context.Context, e dataflow.Epoch) error {
	if p.get() >= e {
		return nil
	}
	p.mu.Lock()
	if p.get() >= e {
		p.mu.Unlock()
		return nil
	}
	ch := make(chan struct{})
	if p.waiters == nil {
		p.waiters = map[chan struct{}]dataflow.Epoch{}
	}
	p.waiters[ch] = e
	p.mu.Unlock()
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		p.mu.Lock()
		delete(p.waiters, ch)
		p.mu.Unlock()
		return context.Cause(ctx)
	}
}

// pool is the executor of the engine: a fixed set of workers shared by all
// circuits. The caller of Run works too.
type pool struct {
	tasks chan func()
	wg    sync.WaitGroup
}

func newPool() *pool {
	p := &pool{tasks: make(chan func())}
	for range runtime.GOMAXPROCS(0) - 1 {
		p.wg.Go(func() {
			for f := range p.tasks {
				f()
			}
		})
	}
	return p
}

// Run calls f(0) … f(n-1), on idle workers where there are some.
func (p *pool) Run(n int, f func(i int)) {
	if n == 1 {
		f(0)
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	var failure atomic.Pointer[any]
	work := func() {
		defer wg.Done()
		defer func() {
			if r := recover(); r != nil {
				failure.CompareAndSwap(nil, &r)
			}
		}()
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			f(i)
		}
	}
	helpers := min(n, runtime.GOMAXPROCS(0)) - 1
	for range helpers {
		wg.Add(1)
		select {
		case p.tasks <- work:
		default:
			wg.Done()
		}
	}
	wg.Add(1)
	work()
	wg.Wait()
	if r := failure.Load(); r != nil {
		panic(*r) // the dataflow that called recovers it
	}
}

func (p *pool) close() {
	close(p.tasks)
	p.wg.Wait()
}
