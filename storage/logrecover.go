package storage

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamdb/streamdb/dataflow"
)

// recover reads the log that the last process left, verifies all of it, and
// finds its end. Records up to epoch are in a checkpoint; m is the mark that
// was committed with it.
//
// Where a segment has no further valid record, either the log ended there (a
// clean end, or a group torn by a crash, which nobody was told is durable) or
// the record is damaged. It is damage if anything proves that the record was
// durable: the mark, a later frame that says so, or a later segment that goes
// on after it. Then recover fails; it never skips.
func (l *wal) recover(epoch dataflow.Epoch, m logMark) error {
	l.work.L, l.prep.L, l.room.L = &l.mu, &l.mu, &l.mu
	l.released = epoch
	numbers, err := l.list()
	if err != nil {
		return err
	}
	l.nextNumber = 1
	r := recovery{l: l, mark: m}
	for _, n := range numbers {
		l.nextNumber = n + 1
		if err := r.segment(n); err != nil {
			return err
		}
	}
	if err := r.findEnd(); err != nil {
		return err
	}
	if r.last < m.durable && m.needed <= m.durable {
		if r.end == nil {
			return &CorruptionError{File: l.dir, Reason: fmt.Sprintf("log records %d to %d are missing", m.needed, m.durable)}
		}
		return r.end
	}
	l.durable = max(r.last, m.durable)
	l.nextSeq = l.durable + 1
	l.lastEpoch = r.epoch
	l.durableAt = r.epoch
	if err := l.adoptTail(&r); err != nil {
		return diskError(err)
	}
	return l.discard(l.detach())
}

// list gives the numbers of the segment files, and removes unfinished ones.
func (l *wal) list() ([]uint64, error) {
	names, err := l.fs.List(l.dir)
	if err != nil {
		return nil, err
	}
	var numbers []uint64
	for _, name := range names {
		var n uint64
		if _, err := fmt.Sscanf(name, "%d.log", &n); err == nil && name == segmentName(n) {
			numbers = append(numbers, n)
			continue
		}
		if err := l.fs.RemoveAll(l.fs.PathJoin(l.dir, name)); err != nil {
			return nil, err
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

type recovery struct {
	l     *wal
	mark  logMark
	last  uint64           // last valid seq
	epoch dataflow.Epoch   // its epoch
	end   *CorruptionError // where it ended, in case this was not the end
	tail  int              // index of the segment where it ended
	clean bool             // nothing valid lies after the end in that segment
}

// segment reads a segment's records.
func (r *recovery) segment(number uint64) error {
	s, err := openSegment(r.l.fs, r.l.dir, number)
	if err != nil {
		return err
	}
	f, err := r.l.fs.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	end, reason, err := s.scan(f, func(fr *frame, _ []byte) error { return r.frame(s, fr) })
	if err != nil {
		return err
	}
	s.used, s.synced, s.reason = end, end, reason
	if s.frames > 0 || r.end == nil {
		r.end, r.tail = &CorruptionError{File: s.path, Offset: end, Reason: reason}, len(r.l.segs)
	}
	r.l.segs = append(r.l.segs, s)
	return nil
}

// findEnd looks behind the last record for frames that prove that it should
// not be the last. (That one segment goes on where another ended, proves the
// same of the others.) After a clean close there is nothing to be found.
func (r *recovery) findEnd() error {
	if r.mark.closed && r.last == r.mark.durable {
		r.clean = true
		return nil
	}
	for i := r.tail; i < len(r.l.segs); i++ {
		s := r.l.segs[i]
		f, err := r.l.fs.Open(s.path)
		if err != nil {
			return err
		}
		found, durable, err := s.headersAfter(f, s.used)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		if found && durable > r.last {
			return &CorruptionError{File: s.path, Offset: s.used, Reason: s.reason}
		}
		if i == r.tail {
			r.clean = !found
		}
	}
	return nil
}

func (r *recovery) frame(s *segment, fr *frame) error {
	// A gap is where segments that nobody needs were removed, or damage.
	if fr.seq <= r.last || fr.seq != r.last+1 && fr.seq > r.mark.needed {
		if r.end != nil {
			return r.end
		}
		return &CorruptionError{File: s.path, Offset: segmentHeaderSize,
			Reason: fmt.Sprintf("log starts at record %d, record %d is needed", fr.seq, max(r.mark.needed, 1))}
	}
	r.last, r.epoch = fr.seq, fr.epoch
	s.frames++
	s.maxEpoch = fr.epoch
	return nil
}

// adoptTail makes the log end in a segment that can be written, and what was
// read from the page cache durable. Empty segments of a former life go.
func (l *wal) adoptTail(r *recovery) error {
	segs := l.segs
	l.segs = nil
	for _, s := range segs {
		if s.frames > 0 {
			l.segs = append(l.segs, s)
			continue
		}
		if err := l.fs.Remove(s.path); err != nil {
			return err
		}
	}
	if len(l.segs) > 0 {
		tail := l.segs[len(l.segs)-1]
		f, err := l.fs.OpenReadWrite(tail.path, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		tail.f = f
		if err := f.Sync(); err != nil {
			return err
		}
		if r.clean {
			return nil
		}
		// Torn frames lie ahead; writing among them could revive one.
		l.logger.Warn("log has a torn tail, which is cut off", "file", tail.path, "offset", tail.used)
		tail.f = nil
		if err := f.Close(); err != nil {
			return err
		}
	}
	// Even a nearly full disk must open, for something to be dropped.
	s, err := createSegment(l.fs, l.dir, l.nextNumber, l.opts.SegmentBytes, "")
	l.nextNumber++
	if err != nil {
		return errors.Join(err, errors.New("cannot start a log segment"))
	}
	l.segs = append(l.segs, s)
	return nil
}
