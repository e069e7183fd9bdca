package kafka

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// watchInterval is how often the state of connections is looked at.
const watchInterval = 500 * time.Millisecond

// monitor looks, beside the reading, for brokers that cannot be reached, new
// partitions, a topic made anew, and how far behind the source is.
func (r *run) monitor(ctx context.Context) {
	last := time.Now()
	for sleep(ctx, min(watchInterval, r.s.opts.refresh)) == nil {
		r.health.set(problemBroker, r.unreachable())
		if time.Since(last) < r.s.opts.refresh {
			continue
		}
		r.refresh(ctx)
		last = time.Now()
	}
}

// unreachable is why a broker cannot be reached, if that holds up the reading:
// not while fetches are answered and nothing is left behind, as when one of
// several seed brokers is away, or one whose partitions others have taken over.
func (r *run) unreachable() error {
	err := r.watch.err()
	if err == nil {
		return nil
	}
	since := func(t *atomic.Int64) time.Duration { return time.Duration(time.Now().UnixNano() - t.Load()) }
	r.mu.Lock()
	behind := r.lag() > 0
	r.mu.Unlock()
	if since(&r.lastFetch) > 2500*time.Millisecond || behind && since(&r.lastRecord) > 5*time.Second {
		return err
	}
	return nil
}

func (r *run) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	topic := r.s.opts.topic
	ts, err := r.adm.ListTopics(ctx, topic)
	if err != nil {
		return // the connection's trouble is told already
	}
	id := topicNumber(ts[topic].ID)
	if errors.Is(ts[topic].Err, kerr.UnknownTopicOrPartition) || id != 0 && id != r.topicID {
		r.anew.Store(true)
	}
	if ts[topic].Err != nil || r.anew.Load() {
		return
	}
	added := map[int32]kgo.Offset{}
	r.mu.Lock()
	for p := range ts[topic].Partitions {
		if _, ok := r.pos[p]; !ok {
			r.pos[p] = 0
			added[p] = kgo.NewOffset().At(0)
		}
	}
	r.mu.Unlock()
	if len(added) > 0 {
		r.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: added})
	}
	ends, err := r.committedEnds(ctx)
	if err != nil {
		return
	}
	r.mu.Lock()
	r.ends = ends
	lag := r.lag()
	r.mu.Unlock()
	r.health.setLag(lag)
}

// commit keeps the consumer group's offsets at what is durable here.
func (r *run) commit(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.s.wake:
		}
		p := r.s.takeDurable()
		offsets := kadm.Offsets{}
		for k, off := range p {
			if n, err := strconv.ParseInt(k, 10, 32); err == nil {
				offsets.Add(kadm.Offset{Topic: r.s.opts.topic, Partition: int32(n), At: off, LeaderEpoch: -1})
			}
		}
		if len(offsets) == 0 {
			continue
		}
		c, cancel := context.WithTimeout(ctx, 10*time.Second)
		// Others may look at these offsets, streamdb does not: a failure is
		// made good by the next commit.
		_ = r.adm.CommitAllOffsets(c, r.s.opts.group, offsets)
		cancel()
	}
}
