package storage

import (
	"fmt"

	"github.com/streamdb/streamdb/dataflow"
)

// idRange is ids that the store may hand out without asking the disk.
type idRange struct{ next, end uint64 }

// idStep is how many ids are taken from the disk at a time. A restart skips
// what is left of them.
const idStep = 64

// AllocateIDs hands out n adjacent ids, of which it returns the first. An id is
// never handed out twice in the life of a data directory; the first is 1.
func (s *Store) AllocateIDs(n int) (uint64, error) {
	if n < 1 {
		return 0, fmt.Errorf("cannot allocate %d ids", n)
	}
	if err := s.use(); err != nil {
		return 0, err
	}
	defer s.users.Done()
	if first, ok := s.takeIDs(n); ok {
		return first, nil
	}
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if first, ok := s.takeIDs(n); ok {
		return first, nil
	}
	s.mu.Lock()
	end := max(s.ids.next, 1) + uint64(n) + idStep
	s.mu.Unlock()
	if err := s.setCounter(metaIDs, end); err != nil {
		return 0, err
	}
	s.mu.Lock()
	s.ids.next, s.ids.end = max(s.ids.next, 1), end
	s.mu.Unlock()
	first, _ := s.takeIDs(n)
	return first, nil
}

func (s *Store) takeIDs(n int) (first uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids.next == 0 || s.ids.end-s.ids.next < uint64(n) {
		return 0, false
	}
	first = s.ids.next
	s.ids.next += uint64(n)
	return first, true
}

func (s *Store) setCounter(name string, n uint64) error {
	pb := s.db.NewBatch()
	defer pb.Close()
	setMeta(pb, name, n)
	return s.update(pb)
}

// EpochHighWater is an epoch that no epoch ever used is after: not by a record,
// a checkpoint, or under ReserveEpochs. After Open, time goes on after it.
func (s *Store) EpochHighWater() dataflow.Epoch {
	last := s.log.last()
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(last, s.state.epoch, s.epochs)
}

// ReserveEpochs makes it durable that epochs up to upTo may have been used.
// Reads give out epochs that no record bears; reserving a few seconds ahead
// keeps the timeline from going back over them after a restart.
func (s *Store) ReserveEpochs(upTo dataflow.Epoch) error {
	if err := s.use(); err != nil {
		return err
	}
	defer s.users.Done()
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	s.mu.Lock()
	have := s.epochs
	s.mu.Unlock()
	if upTo <= have {
		return nil
	}
	if err := s.setCounter(metaEpochs, uint64(upTo)); err != nil {
		return err
	}
	s.mu.Lock()
	s.epochs = upTo
	s.mu.Unlock()
	return nil
}
