package kafka

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/streamdb/streamdb/sources"
)

// truncationPatience is how long an offset may lie past the end of a partition
// before it is believed: after a change of leader the end may be an old one.
const truncationPatience = 5 * time.Second

// locate finds the offset that each partition begins at, for a first run by the
// start mode, else where the last one stopped; what it skips goes to c's errors.
func (r *run) locate(ctx context.Context, c *sources.Chunk) error {
	topic := r.s.opts.topic
	ts, err := r.adm.ListTopics(ctx, topic)
	if err != nil {
		return err
	}
	detail := ts[topic]
	if detail.Err != nil {
		return topicError(topic, detail.Err)
	}
	starts, ends, err := r.bounds(ctx)
	if err != nil {
		return err
	}
	id := topicNumber(detail.ID)
	anew := !r.first && r.topicID != 0 && id != 0 && id != r.topicID
	var begin map[int32]int64
	if r.first {
		if begin, err = r.startAt(ctx, starts, ends); err != nil {
			return err
		}
	}
	for p, start := range starts {
		pos, known := r.pos[p]
		switch {
		case anew:
			r.skipTo(p, start, "the topic was deleted and made anew", c)
		case r.first:
			r.move(p, begin[p], c)
		case !known: // a partition that was added
			r.move(p, start, c)
		case pos < start:
			r.skipTo(p, start, "the cluster has deleted records that were not read yet", c)
		case pos > ends[p]:
			if ends[p], err = r.endAfterAll(ctx, p, pos); err != nil {
				return err
			}
			if pos > ends[p] {
				r.skipTo(p, ends[p], "the cluster has lost records", c)
			}
		}
	}
	for p := range r.pos {
		if _, ok := starts[p]; !ok {
			delete(r.pos, p) // the topic made anew has fewer
		}
	}
	if id != 0 {
		r.topicID = id
		c.Position[topicKey] = id
	}
	r.mu.Lock()
	r.ends = ends
	lag := r.lag()
	r.mu.Unlock()
	r.health.setLag(lag)
	if r.targets == nil || anew {
		if r.targets, err = r.committedEnds(ctx); err != nil {
			r.targets = nil
			return err
		}
	}
	return nil
}

// bounds are the first offset and the end of every partition.
func (r *run) bounds(ctx context.Context) (starts, ends map[int32]int64, err error) {
	s, err := r.adm.ListStartOffsets(ctx, r.s.opts.topic)
	if err == nil {
		starts, err = r.offsetsOf(s)
	}
	if err != nil {
		return nil, nil, err
	}
	e, err := r.adm.ListEndOffsets(ctx, r.s.opts.topic)
	if err == nil {
		ends, err = r.offsetsOf(e)
	}
	return starts, ends, err
}

// committedEnds is how far committed records can be read in every partition.
func (r *run) committedEnds(ctx context.Context) (map[int32]int64, error) {
	e, err := r.adm.ListCommittedOffsets(ctx, r.s.opts.topic)
	if err != nil {
		return nil, err
	}
	return r.offsetsOf(e)
}

func (r *run) offsetsOf(l kadm.ListedOffsets) (map[int32]int64, error) {
	out := map[int32]int64{}
	for p, o := range l[r.s.opts.topic] {
		if o.Err != nil {
			return nil, fmt.Errorf("partition %d: %w", p, o.Err)
		}
		out[p] = o.Offset
	}
	return out, nil
}

// startAt is where a new source begins.
func (r *run) startAt(ctx context.Context, starts, ends map[int32]int64) (map[int32]int64, error) {
	o := r.s.opts
	switch o.start {
	case startLatest:
		return ends, nil
	case startTimestamp:
		ms := o.since
		if ms < 0 {
			ms += time.Now().UnixMilli()
		}
		l, err := r.adm.ListOffsetsAfterMilli(ctx, max(ms, 0), o.topic)
		if err != nil {
			return nil, err
		}
		return r.offsetsOf(l)
	case startOffsets:
		// An offset beyond the end is waited for: what comes before it is read
		// and dropped (program.skip).
		out := map[int32]int64{}
		for p, start := range starts {
			out[p] = start
			if int(p) < len(o.offsets) {
				out[p] = max(start, min(o.offsets[p], ends[p]))
			}
		}
		return out, nil
	}
	return starts, nil
}

// endAfterAll asks again for the end of a partition that was read further than
// it, until it is as far or patience ends.
func (r *run) endAfterAll(ctx context.Context, p int32, pos int64) (int64, error) {
	for began := time.Now(); ; {
		_, ends, err := r.bounds(ctx)
		if err != nil {
			return 0, err
		}
		if ends[p] >= pos || time.Since(began) > truncationPatience {
			return ends[p], nil
		}
		if err := sleep(ctx, 500*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// move sets the position of a partition.
func (r *run) move(p int32, off int64, c *sources.Chunk) {
	r.mu.Lock()
	r.pos[p] = off
	r.mu.Unlock()
	c.Position[strconv.Itoa(int(p))] = off
}

// skipTo goes on at another offset and leaves a record of it among the errors.
func (r *run) skipTo(p int32, off int64, why string, c *sources.Chunk) {
	r.mu.Lock()
	pos := r.pos[p]
	r.mu.Unlock()
	what := fmt.Sprintf("%s: reading goes on at offset %d instead of %d", why, off, pos)
	if off > pos {
		what = fmt.Sprintf("%s: offsets %d to %d are missing", why, pos, off-1)
	}
	c.Errors = append(c.Errors, sources.RecordError{Reason: what, Partition: strconv.Itoa(int(p)), Offset: pos, At: time.Now()})
	r.move(p, off, c)
}

// topicNumber makes a positive number of a topic's id; 0 if it has none.
func topicNumber(id kadm.TopicID) int64 {
	n := binary.BigEndian.Uint64(id[:8]) ^ binary.BigEndian.Uint64(id[8:])*0x9E3779B97F4A7C15
	if id == (kadm.TopicID{}) {
		return 0
	}
	return int64(n&math.MaxInt64) | 1
}
