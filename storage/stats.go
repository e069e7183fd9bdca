package storage

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/streamdb/streamdb/dataflow"
)

// LatencyBuckets is the number of buckets of a Latency.
const LatencyBuckets = 32

// Latency is a histogram of durations: bucket i counts those of less than 2^i
// microseconds that bucket i-1 does not count; the last one counts the rest.
type Latency struct {
	Count   int64
	Sum     time.Duration
	Buckets [LatencyBuckets]int64
}

// latency is a Latency being counted.
type latency struct {
	sum     atomic.Int64
	buckets [LatencyBuckets]atomic.Int64
}

func (l *latency) observe(d time.Duration) {
	l.sum.Add(int64(d))
	l.buckets[min(bits.Len64(uint64(max(d, 0).Microseconds())), LatencyBuckets-1)].Add(1)
}

func (l *latency) load() Latency {
	h := Latency{Sum: time.Duration(l.sum.Load())}
	for i := range l.buckets {
		h.Buckets[i] = l.buckets[i].Load()
		h.Count += h.Buckets[i]
	}
	return h
}

// counters are what has happened since the store was opened.
type counters struct {
	logRecords, logBytes             atomic.Int64
	blocksWritten, blockBytesWritten atomic.Int64
	mapped, punched, corruptions     atomic.Int64
	logSync, blockSync, commit       latency
}

// Stats is the state of a store, for metrics. Totals count from its opening.
type Stats struct {
	Generation uint64

	LogSegments      int
	LogBytes         int64 // of records not yet released
	LogPendingBytes  int64 // appended, not yet durable
	LogRecordsTotal  int64
	LogWrittenTotal  int64 // bytes
	LogSync          Latency
	LogDurableEpoch  dataflow.Epoch
	BlockFiles       int
	BlockFileBytes   int64
	Blocks           int
	BlockBytes       int64 // of blocks that someone wants
	BlocksOpen       int   // opened and not released
	BlocksTotal      int64 // written
	BlockBytesTotal  int64 // written
	BlockSync        Latency
	MappedBytes      int64 // address space, not memory
	PunchedTotal     int64 // bytes given back from inside of block files
	CorruptionsTotal int64

	CheckpointEpoch   dataflow.Epoch
	CheckpointObjects int
	Commit            Latency
	MetaBytes         int64
}

// Stats takes stock.
func (s *Store) Stats() Stats {
	c := &s.stats
	st := Stats{
		Generation:       s.generation,
		LogRecordsTotal:  c.logRecords.Load(),
		LogWrittenTotal:  c.logBytes.Load(),
		LogSync:          c.logSync.load(),
		BlocksTotal:      c.blocksWritten.Load(),
		BlockBytesTotal:  c.blockBytesWritten.Load(),
		BlockSync:        c.blockSync.load(),
		MappedBytes:      c.mapped.Load(),
		PunchedTotal:     c.punched.Load(),
		CorruptionsTotal: c.corruptions.Load(),
		Commit:           c.commit.load(),
	}
	st.LogSegments, st.LogBytes, st.LogPendingBytes, st.LogDurableEpoch = s.log.usage()
	st.BlockFiles, st.Blocks, st.BlockFileBytes, st.BlockBytes, st.BlocksOpen = s.blocks.usage()
	s.mu.Lock()
	st.CheckpointEpoch, st.CheckpointObjects = s.state.epoch, len(s.state.objects)
	s.mu.Unlock()
	if s.use() == nil {
		defer s.users.Done()
		st.MetaBytes = int64(s.db.Metrics().DiskSpaceUsage())
	}
	return st
}

// LogBytes are the bytes of records not yet released, as in Stats.
func (s *Store) LogBytes() int64 {
	_, n, _, _ := s.log.usage()
	return n
}
