package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sources/registry"
)

// Bounds of a chunk and of what the client fetches ahead.
const (
	maxChunkRecords = 1 << 16
	maxChunkBytes   = 32 << 20
	runRecords      = 1 << 13 // decoded by one goroutine at a time
	runBytes        = 4 << 20
	fetchBytes      = 16 << 20
	partitionBytes  = 4 << 20
	pollTime        = 500 * time.Millisecond
)

// topicKey is the partition of positions that is none: what topic they are of,
// as a number made of its id, so that a topic made anew under the same name is
// not mistaken for the old one.
const topicKey = "topic"

// run is one run of a source. Its fields belong to the goroutine of Run but for
// those under mu.
type run struct {
	s          *Source
	feed       sources.Feed
	health     *health
	p          *program
	registries []*registry.Client
	workers    []*worker

	// kept is the position that the feed has taken: where a session begins.
	kept      map[int32]int64
	keptTopic int64
	first     bool // nothing is kept yet

	topicID int64 // of the session; 0: not known
	done    bool  // the snapshot is complete
	targets map[int32]int64

	mu   sync.Mutex
	pos  map[int32]int64 // the next offset of each partition
	ends map[int32]int64 // the last known end of each

	client  *kgo.Client
	adm     *kadm.Client
	watch   *connWatch
	fetched atomic.Int64 // answers to fetches
	// When an answer to a fetch and a record last came, in nanoseconds.
	lastFetch, lastRecord atomic.Int64
	anew                  atomic.Bool // the session must be begun anew
	quiet                 time.Time   // when a record last came
	quietAt               int64       // fetched, then
	// failedAt is when a partition could last not be fetched; zero: all can.
	failedAt time.Time
}

// restore reads a stored position.
func (r *run) restore(from sources.Position) error {
	for k, v := range from {
		if k == topicKey {
			r.keptTopic = v
			continue
		}
		p, err := strconv.ParseInt(k, 10, 32)
		if err != nil {
			return fmt.Errorf("kafka: invalid partition %q in a stored position", k)
		}
		r.kept[int32(p)] = v
	}
	return nil
}

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (r *run) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e kgo.BrokerE2E) {
	if key == 1 && e.Err() == nil { // Fetch
		r.fetched.Add(1)
		r.lastFetch.Store(time.Now().UnixNano())
	}
}

// session connects, finds where to begin, and reads until something forces a
// new session.
func (r *run) session(ctx context.Context) error {
	topic := r.s.opts.topic
	r.watch = &connWatch{}
	r.anew.Store(false)
	r.pos, r.topicID = maps.Clone(r.kept), r.keptTopic
	opts := append(r.s.opts.conn.clientOptions(r.watch, r),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.MetadataMinAge(250*time.Millisecond),
		kgo.FetchMaxBytes(fetchBytes), kgo.FetchMaxPartitionBytes(partitionBytes), kgo.FetchMaxWait(time.Second),
		// The partitions are added when their offsets are known; without this
		// the client would be none that consumes.
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{}))
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	r.client, r.adm = cl, kadm.NewClient(cl)
	start, err := r.begin(ctx)
	if err != nil {
		if why := r.watch.err(); why != nil {
			err = why
		}
		return err
	}
	r.health.set(problemSession, nil)
	cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: start})
	side, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { r.monitor(side) })
	wg.Go(func() { r.commit(side) })
	err = r.consume(ctx)
	cancel()
	wg.Wait()
	r.health.set(problemBroker, nil)
	r.health.set(problemFetch, nil)
	return err
}

// begin finds the offsets to begin at and tells the feed of them, so that they
// are kept even if no record ever comes.
func (r *run) begin(ctx context.Context) (map[int32]kgo.Offset, error) {
	c := &sources.Chunk{Position: sources.Position{}}
	look, cancel := context.WithTimeout(ctx, 30*time.Second)
	err := r.locate(look, c)
	cancel()
	if err != nil {
		return nil, err
	}
	if r.caughtUp() {
		c.SnapshotDone = true
	}
	if err := r.push(ctx, c); err != nil {
		return nil, err
	}
	start := map[int32]kgo.Offset{}
	for p, off := range r.pos {
		start[p] = kgo.NewOffset().At(off)
	}
	return start, nil
}

// push gives the feed a chunk and notes what it completes.
func (r *run) push(ctx context.Context, c *sources.Chunk) error {
	if err := r.feed.Push(ctx, c); err != nil {
		return err
	}
	for k, off := range c.Position {
		if p, err := strconv.ParseInt(k, 10, 32); err == nil {
			r.kept[int32(p)] = off
		} else {
			r.keptTopic = off
		}
	}
	r.first = false
	if c.SnapshotDone {
		r.done = true
	}
	if r.done {
		r.health.setState("running")
	} else {
		r.health.setState("snapshot")
	}
	return nil
}

// caughtUp reports whether all that was there when the source began has been read.
func (r *run) caughtUp() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p, end := range r.targets {
		if r.pos[p] < end {
			return false
		}
	}
	return true
}

// consume polls and pushes.
func (r *run) consume(ctx context.Context) error {
	r.quiet, r.quietAt = time.Now(), r.fetched.Load()
	for {
		// Without records the loop still has to look around now and then.
		poll, cancel := context.WithTimeout(ctx, pollTime)
		fs := r.client.PollRecords(poll, maxChunkRecords)
		cancel()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case r.anew.Load():
			return errors.New("the topic has changed")
		}
		c := &sources.Chunk{Position: sources.Position{}}
		tasks, err := r.tasks(ctx, fs, c)
		if err != nil {
			return err
		}
		if err := r.take(ctx, tasks, c); err != nil {
			return err
		}
	}
}

// take decodes tasks and pushes them, in as many chunks as their size demands;
// c is the first of them, which may hold something already.
func (r *run) take(ctx context.Context, tasks []task, c *sources.Chunk) error {
	for {
		n, bytes := 0, 0
		for n < len(tasks) && (n == 0 || bytes+tasks[n].bytes <= maxChunkBytes) {
			bytes += tasks[n].bytes
			n++
		}
		if err := r.chunk(ctx, tasks[:n], c); err != nil {
			return err
		}
		tasks = tasks[n:]
		if !r.done && (r.caughtUp() || len(tasks) == 0 && r.settled()) {
			c.SnapshotDone = true
		}
		if len(c.Position) > 0 || len(c.Errors) > 0 || c.SnapshotDone {
			if err := r.push(ctx, c); err != nil {
				return err
			}
		}
		if len(tasks) == 0 {
			return nil
		}
		c = &sources.Chunk{Position: sources.Position{}}
	}
}

// settled reports whether fetches have come back empty for a while: the last
// records before the end were removed by compaction, so that no record with the
// last offset will ever come.
func (r *run) settled() bool {
	return r.watch.err() == nil && time.Since(r.quiet) > 3*time.Second && r.fetched.Load() > r.quietAt+1
}

// task is a run of records of one partition, to be decoded by one goroutine.
type task struct {
	recs  []*kgo.Record
	bytes int
}

// tasks cuts what a poll gave into tasks. What the client tells of partitions
// goes to c.
func (r *run) tasks(ctx context.Context, fs kgo.Fetches, c *sources.Chunk) (out []task, failed error) {
	fs.EachPartition(func(fp kgo.FetchTopicPartition) {
		switch {
		case fp.Err != nil:
			if err := r.fetchError(ctx, fp.Partition, fp.Err, c); err != nil && failed == nil {
				failed = err
			}
		case len(fp.Records) > 0 && !r.failedAt.IsZero():
			r.failedAt = time.Unix(1, 0) // long ago
		}
		if len(fp.Records) == 0 {
			return
		}
		r.mu.Lock()
		r.ends[fp.Partition] = max(r.ends[fp.Partition], fp.HighWatermark)
		r.mu.Unlock()
		from, bytes := 0, 0
		for i, rec := range fp.Records {
			bytes += len(rec.Key) + len(rec.Value)
			if i+1 == len(fp.Records) || i+1-from >= runRecords || bytes >= runBytes {
				out = append(out, task{fp.Records[from : i+1], bytes})
				from, bytes = i+1, 0
			}
		}
	})
	if !r.failedAt.IsZero() && time.Since(r.failedAt) > 2*time.Second {
		r.failedAt = time.Time{}
		r.health.set(problemFetch, nil)
	}
	if len(out) > 0 {
		r.quiet, r.quietAt = time.Now(), r.fetched.Load()
		r.lastRecord.Store(r.quiet.UnixNano())
	}
	return out, failed
}

// chunk decodes tasks into c and moves the positions behind them.
func (r *run) chunk(ctx context.Context, tasks []task, c *sources.Chunk) error {
	if len(tasks) == 0 {
		return nil
	}
	for _, d := range r.decode(ctx, tasks) {
		if d.err != nil {
			return d.err
		}
		c.Errors = append(c.Errors, d.errors...)
		c.Bytes += d.bytes
		if d.chunk.Rows.N > 0 {
			c.Tables = append(c.Tables, d.chunk)
		}
	}
	r.mu.Lock()
	for _, t := range tasks {
		last := t.recs[len(t.recs)-1]
		r.pos[last.Partition] = last.Offset + 1
		c.Position[strconv.Itoa(int(last.Partition))] = last.Offset + 1
	}
	lag := r.lag()
	r.mu.Unlock()
	r.health.setLag(lag)
	return nil
}

// decode runs tasks on all processors and keeps their order.
func (r *run) decode(ctx context.Context, tasks []task) []decoded {
	out := make([]decoded, len(tasks))
	n := min(len(tasks), runtime.GOMAXPROCS(0))
	for len(r.workers) < n {
		r.workers = append(r.workers, r.p.worker())
	}
	if n == 1 {
		for i := range tasks {
			out[i] = r.workers[0].decode(ctx, tasks[i].recs)
		}
		return out
	}
	var at atomic.Int64
	var wg sync.WaitGroup
	for _, w := range r.workers[:n] {
		wg.Go(func() {
			for i := int(at.Add(1)) - 1; i < len(tasks); i = int(at.Add(1)) - 1 {
				out[i] = w.decode(ctx, tasks[i].recs)
			}
		})
	}
	wg.Wait()
	return out
}

// lag is the number of records not read yet; r.mu is held.
func (r *run) lag() int64 {
	n := int64(0)
	for p, end := range r.ends {
		n += max(0, end-r.pos[p])
	}
	return n
}

// fetchError deals with what the client tells of a partition. An error that it
// returns ends the session.
func (r *run) fetchError(ctx context.Context, p int32, err error, c *sources.Chunk) error {
	var loss *kgo.ErrDataLoss
	switch {
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		return nil // the poll's own
	case errors.As(err, &loss):
		// The client goes on at ResetTo by itself.
		r.skipTo(p, loss.ResetTo, "the cluster has lost records", c)
		return nil
	case errors.Is(err, kerr.OffsetOutOfRange):
		// Begin anew: where to go on is decided there.
		return err
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
		return topicError(r.s.opts.topic, err)
	}
	r.failedAt = time.Now()
	r.health.set(problemFetch, fmt.Errorf("partition %d: %w", p, err))
	if kgo.IsRetryableBrokerErr(err) || kerr.IsRetriable(err) {
		return nil
	}
	return sleepThen(ctx, err)
}

// sleepThen is err after a moment, so that a failure that comes at once is not
// retried at full speed.
func sleepThen(ctx context.Context, err error) error {
	if e := sleep(ctx, 100*time.Millisecond); e != nil {
		return e
	}
	return err
}
