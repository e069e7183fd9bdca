// Package kafka reads a topic: every partition from its offset, without a
// consumer group, committed transactions only. Records are decoded by several
// goroutines into columns; a chunk is what one poll gave, with the offsets
// after it, so that each record counts exactly once.
package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sources/format"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// Source is a topic as a source.
type Source struct {
	opts   *options
	table  sources.Table
	layout *layout

	mu      sync.Mutex
	durable sources.Position // to be committed to the group; nil: nothing new
	wake    chan struct{}    // tells the committer
}

var _ sources.Source = (*Source)(nil)

// New makes a source from its declaration. Without cfg.Tables it asks the
// cluster whether the topic exists and the registry for schemas; with them it
// needs nobody.
func New(ctx context.Context, cfg sources.Config) (*Source, error) {
	o, err := parseOptions(&cfg)
	if err != nil {
		return nil, err
	}
	s := &Source{opts: o, wake: make(chan struct{}, 1)}
	if len(cfg.Tables) > 0 {
		s.table, s.layout = cfg.Tables[0], &layout{}
		if err := json.Unmarshal([]byte(s.table.Props[layoutProp]), s.layout); err != nil {
			return nil, fmt.Errorf("kafka: source %s: its stored layout cannot be read: %w", cfg.Name, err)
		}
		if len(s.layout.Columns) != len(s.table.Columns) {
			return nil, fmt.Errorf("kafka: source %s: its stored layout has %d columns, its table %d", cfg.Name, len(s.layout.Columns), len(s.table.Columns))
		}
	} else {
		if err := checkTopic(ctx, o); err != nil {
			return nil, err
		}
		t, l, err := discover(ctx, o, cfg.Declared)
		if err != nil {
			return nil, err
		}
		s.table, s.layout = *t, l
	}
	// A declaration that cannot be compiled must fail now, not when it runs.
	if _, err := newProgram(o, &s.table, s.layout, nil, nil, nil); err != nil {
		return nil, pgerror.New(pgerror.InvalidObjectDefinition, "%s", err)
	}
	return s, nil
}

// checkTopic fails if the cluster does not answer or has no such topic.
func checkTopic(ctx context.Context, o *options) error {
	adm, err := o.conn.reach(ctx)
	if err != nil {
		return err
	}
	defer adm.Close()
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	// A topic that was made a moment ago may not be known to every broker yet.
	for try := 0; ; try++ {
		ts, err := adm.ListTopics(ctx, o.topic)
		if err == nil {
			err = ts[o.topic].Err
		}
		switch {
		case err == nil:
			return nil
		case try == 4 || !errors.Is(err, kerr.UnknownTopicOrPartition):
			return topicError(o.topic, err)
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// Tables is the one table of the source.
func (s *Source) Tables() []sources.Table { return []sources.Table{s.table} }

// Durable notes what may be committed to the consumer group: only for others to
// see, since positions are kept with the data.
func (s *Source) Durable(p sources.Position) {
	s.mu.Lock()
	s.durable = p
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// takeDurable is the position to commit, nil if it was taken already.
func (s *Source) takeDurable() sources.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.durable
	s.durable = nil
	return p
}

// Close has nothing to do: what Run uses ends with it.
func (s *Source) Close() error { return nil }

// Drop removes the consumer group, if it is this source's own.
func (s *Source) Drop(ctx context.Context) error {
	if !s.opts.ownGroup {
		return nil
	}
	adm, err := s.opts.conn.reach(ctx)
	if err != nil {
		return err
	}
	defer adm.Close()
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	r, err := adm.DeleteGroup(ctx, s.opts.group)
	if err == nil {
		err = r.Err
	}
	if isGone(err) {
		return nil
	}
	return err
}

// Run reads until ctx ends. A session with the cluster that breaks is begun
// anew from where it was.
func (s *Source) Run(ctx context.Context, from sources.Position, feed sources.Feed) error {
	health := &health{feed: feed, state: "starting"}
	health.set(problemSession, nil)
	r := &run{s: s, feed: feed, health: health, kept: map[int32]int64{}, first: len(from) == 0}
	if err := r.restore(from); err != nil {
		return err
	}
	if err := r.compile(); err != nil {
		return err
	}
	defer r.close()
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		began := time.Now()
		err := r.session(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Since(began) > time.Minute {
			wait = 200 * time.Millisecond
		}
		health.set(problemSession, err)
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// compile makes the decoders, with clients of the registries if there are any.
func (r *run) compile() error {
	o := r.s.opts
	waiting := func(err error) { r.health.set(problemSchema, err) }
	source := func(f *formatOptions) (format.SchemaSource, error) {
		if f.registry.url == "" {
			return nil, nil
		}
		c, err := f.registry.client()
		if err != nil {
			return nil, err
		}
		r.registries = append(r.registries, c)
		return c, nil
	}
	val, err := source(&o.val)
	if err != nil {
		return err
	}
	key := val
	if o.key.kind != "" {
		if key, err = source(&o.key); err != nil {
			return err
		}
	}
	r.p, err = newProgram(o, &r.s.table, r.s.layout, key, val, waiting)
	return err
}

func (r *run) close() {
	for _, c := range r.registries {
		c.Close()
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
