package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamdb/streamdb/dataflow"
)

// LogRecord is all that one epoch brought in. The log does not look inside.
type LogRecord struct {
	Epoch   dataflow.Epoch
	Payload []byte // given away until the record is durable
}

// Ticket stands for an appended record on its way to the disk.
type Ticket struct{ g *group }

// Done is closed when the record is durable, or has failed.
func (t Ticket) Done() <-chan struct{} { return t.g.done }

// Wait returns when the record is durable (nil) or has failed (ErrFailed), or
// with ctx's error. A record given up on may become durable all the same.
func (t Ticket) Wait(ctx context.Context) error {
	select {
	case <-t.g.done:
		return t.g.err
	default:
	}
	select {
	case <-t.g.done:
		return t.g.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// group is the records that one sync makes durable.
type group struct {
	done chan struct{}
	err  error // before done is closed
}

func newGroup() *group { return &group{done: make(chan struct{})} }

type pending struct {
	rec       LogRecord
	fr        frame
	seg       *segment
	off       int64
	onDurable func(error)
}

// wal is the log of epochs. Append reserves a place and queues; the writer
// goroutine writes all that is queued and syncs once, while the next group
// queues up; the preparer goroutine keeps one allocated segment in reserve.
// A record gets a place only in allocated space, so that a full disk shows
// as ErrDiskFull from Append and never as a failed write.
type wal struct {
	fs     FS
	dir    string
	opts   *Options
	logger *slog.Logger
	stats  *counters

	mu   sync.Mutex
	work sync.Cond // for the writer: the queue is not empty, or closed
	prep sync.Cond // for the preparer: a segment is wanted, or closed
	room sync.Cond // for everyone else: some state has changed

	segs       []*segment // by number; records go to the last, or wait for it
	spare      *segment   // allocated, not yet in segs
	recycled   []string   // paths of files to make segments of
	nextNumber uint64
	want       int64 // size of the segment to prepare, 0 for none
	attempts   int   // of preparing
	prepErr    error // of the last attempt
	holds      int   // readers of segment files: nothing is removed or reused

	queue     []pending
	bytes     int64 // queued or being written
	cur       *group
	nextSeq   uint64
	durable   uint64         // last seq on disk
	durableAt dataflow.Epoch // its epoch
	lastEpoch dataflow.Epoch
	released  dataflow.Epoch // records up to here are not needed
	err       error
	closed    bool

	buf []byte // of the writer
	wg  sync.WaitGroup
}

// start makes the log appendable after recover.
func (l *wal) start() {
	l.cur = newGroup()
	l.wg.Add(2)
	go l.writer()
	go l.preparer()
}

// append queues a record.
func (l *wal) append(rec LogRecord, onDurable func(error)) (Ticket, error) {
	if len(rec.Payload) > math.MaxUint32 {
		return Ticket{}, fmt.Errorf("log record of %d bytes is too large", len(rec.Payload))
	}
	crc := checksum(rec.Payload)
	size := frameSize(len(rec.Payload))
	l.mu.Lock()
	defer l.mu.Unlock()
	seg, err := l.reserve(size)
	if err != nil {
		return Ticket{}, err
	}
	if rec.Epoch < l.lastEpoch {
		return Ticket{}, fmt.Errorf("log record at epoch %d after epoch %d", rec.Epoch, l.lastEpoch)
	}
	p := pending{rec: rec, seg: seg, off: seg.used, onDurable: onDurable}
	p.fr = frame{length: uint64(len(rec.Payload)), payloadCRC: crc, seq: l.nextSeq, epoch: rec.Epoch}
	l.nextSeq++
	l.lastEpoch = rec.Epoch
	seg.used += size
	seg.queued++
	seg.frames++
	seg.maxEpoch = rec.Epoch
	l.bytes += size
	l.queue = append(l.queue, p)
	if seg.used > seg.size/4 && l.spare == nil && l.want == 0 && l.prepErr == nil {
		l.request(l.opts.SegmentBytes)
	}
	l.work.Signal()
	return Ticket{l.cur}, nil
}

// reserve waits for size bytes in the last segment, starting the next one if
// need be. The mutex is held, and released while waiting.
func (l *wal) reserve(size int64) (*segment, error) {
	for {
		last := l.segs[len(l.segs)-1]
		switch {
		case l.closed:
			return nil, ErrClosed
		case l.err != nil:
			return nil, l.err
		case l.bytes > 0 && l.bytes+size > l.opts.MaxPendingBytes:
			l.room.Wait()
			continue
		case last.used+size <= last.size:
			return last, nil
		case l.spare != nil:
			// A spare that is too small for a giant record stays empty.
			l.segs = append(l.segs, l.spare)
			l.spare = nil
			continue
		}
		l.request(max(l.opts.SegmentBytes, segmentHeaderSize+size))
		for n := l.attempts; l.spare == nil && l.attempts == n && !l.closed; {
			l.room.Wait()
		}
		if l.spare == nil && l.prepErr != nil {
			return nil, l.prepErr
		}
	}
}

func (l *wal) request(size int64) {
	l.want = max(l.want, size)
	l.prep.Signal()
}

// preparer makes the next segment whenever one is wanted.
func (l *wal) preparer() {
	defer l.wg.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for l.want == 0 && !l.closed {
			l.prep.Wait()
		}
		if l.closed {
			return
		}
		size, number, recycled := l.want, l.nextNumber, ""
		if n := len(l.recycled); n > 0 && size == l.opts.SegmentBytes {
			recycled, l.recycled = l.recycled[n-1], l.recycled[:n-1]
		}
		l.nextNumber++
		l.mu.Unlock()
		seg, err := l.prepare(number, size, recycled)
		l.mu.Lock()
		l.want = 0
		l.attempts++
		if l.prepErr = err; err == nil {
			l.spare = seg
		} else {
			l.logger.Warn("cannot allocate a log segment", "bytes", size, "error", err)
		}
		l.room.Broadcast()
	}
}

func (l *wal) prepare(number uint64, size int64, recycled string) (*segment, error) {
	if recycled == "" {
		if err := checkFree(l.fs, l.dir, l.opts.MinFreeBytes+uint64(size)); err != nil {
			return nil, err
		}
	}
	return createSegment(l.fs, l.dir, number, size, recycled)
}

// writer is the group commit: one write and one sync for all that has queued
// up while the last sync ran.
func (l *wal) writer() {
	defer l.wg.Done()
	var batch []pending
	for {
		l.mu.Lock()
		for len(l.queue) == 0 && !l.closed {
			l.work.Wait()
		}
		if len(l.queue) == 0 {
			l.mu.Unlock()
			return
		}
		batch, l.queue = l.queue, batch[:0]
		g := l.cur
		l.cur = newGroup()
		err, durable := l.err, l.durable
		l.mu.Unlock()

		if err == nil {
			err = l.writeGroup(batch, durable)
		}
		l.finish(batch, err)
		g.err = err
		close(g.done)
		for i := range batch {
			if f := batch[i].onDurable; f != nil {
				f(err)
			}
		}
		clear(batch)
	}
}

// finish accounts for a written group.
func (l *wal) finish(batch []pending, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range batch {
		p := &batch[i]
		size := frameSize(len(p.rec.Payload))
		l.bytes -= size
		p.seg.queued--
		if err == nil {
			p.seg.synced = p.off + size
			l.durable, l.durableAt = p.fr.seq, p.rec.Epoch
		}
	}
	if err != nil && l.err == nil {
		l.err = err
		l.logger.Error("the log has failed", "error", err)
	}
	l.room.Broadcast()
}

// writeGroup puts the records on disk. A segment is synced before the next is
// written, so that at most the last group can ever be torn.
func (l *wal) writeGroup(batch []pending, durable uint64) error {
	for i := 0; i < len(batch); {
		seg := batch[i].seg
		j := i
		for j < len(batch) && batch[j].seg == seg {
			batch[j].fr.durable = durable
			j++
		}
		if err := l.writeRun(seg, batch[i:j]); err != nil {
			return failure("write "+seg.path, err)
		}
		start := l.opts.Now()
		if err := seg.f.SyncData(); err != nil {
			return failure("sync "+seg.path, err)
		}
		l.stats.logSync.observe(l.opts.Now().Sub(start))
		durable = batch[j-1].fr.seq
		i = j
	}
	l.stats.logRecords.Add(int64(len(batch)))
	return l.closeFull(batch[len(batch)-1].seg)
}

const (
	writeBufferBytes = 1 << 20
	directWriteBytes = 256 << 10
)

// writeRun writes adjacent records of one segment in as few calls as it can.
func (l *wal) writeRun(seg *segment, run []pending) error {
	buf, off := l.buf[:0], run[0].off
	flush := func() error {
		n, err := seg.f.WriteAt(buf, off)
		off += int64(n)
		l.stats.logBytes.Add(int64(n))
		buf = buf[:0]
		return err
	}
	var zeros [8]byte
	for i := range run {
		p := &run[i]
		n := len(p.rec.Payload)
		var h [frameHeaderSize]byte
		p.fr.put(h[:], seg.salt)
		buf = append(buf, h[:]...)
		if n >= directWriteBytes {
			if err := flush(); err != nil {
				return err
			}
			w, err := seg.f.WriteAt(p.rec.Payload, off)
			off += int64(w)
			l.stats.logBytes.Add(int64(w))
			if err != nil {
				return err
			}
		} else {
			buf = append(buf, p.rec.Payload...)
		}
		buf = append(buf, zeros[:frameSize(n)-frameHeaderSize-int64(n)]...)
		if len(buf) >= writeBufferBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	l.buf = buf
	if len(buf) == 0 {
		return nil
	}
	err := flush()
	l.buf = buf
	return err
}

// closeFull closes the files of segments before last, which are complete.
func (l *wal) closeFull(last *segment) error {
	l.mu.Lock()
	var files []vfs.File
	for _, s := range l.segs {
		if s == last {
			break
		}
		if s.f != nil {
			files = append(files, s.f)
			s.f = nil
		}
	}
	l.mu.Unlock()
	for _, f := range files {
		if err := f.Close(); err != nil {
			return failure("close a log segment", err)
		}
	}
	return nil
}

// mark is the log's part of a commit: records from needed on, and at least up
// to durable, must be found at the next open. closed says that nothing was
// written after durable.
type logMark struct {
	needed, durable uint64
	closed          bool
}

// mark says what a checkpoint at epoch leaves needed. Of records still queued
// it says nothing: durable is below them.
func (l *wal) mark(epoch dataflow.Epoch) logMark {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := logMark{needed: l.nextSeq, durable: l.durable, closed: l.closed && l.err == nil}
	for i := len(l.segs) - 1; i >= 0; i-- {
		s := l.segs[i]
		if s.frames > 0 && s.maxEpoch <= epoch {
			break
		}
		m.needed -= uint64(s.frames)
	}
	return m
}

// release frees the segments that hold nothing after epoch. The caller has
// made durable a mark that does not need them.
func (l *wal) release(epoch dataflow.Epoch) error {
	l.mu.Lock()
	l.released = max(l.released, epoch)
	gone := l.detach()
	l.mu.Unlock()
	return l.discard(gone)
}

// detach takes the segments that nobody needs out of the log.
func (l *wal) detach() []*segment {
	if l.holds > 0 {
		return nil
	}
	n := 0
	for n < len(l.segs)-1 {
		s := l.segs[n]
		if s.queued > 0 || s.frames > 0 && s.maxEpoch > l.released {
			break
		}
		n++
	}
	gone := l.segs[:n:n]
	l.segs = l.segs[n:]
	return gone
}

// maxRecycled bounds the files that are kept to be made over.
const maxRecycled = 4

// discard removes detached segments, but keeps some files to make over: their
// space is allocated and written, so that syncing new records to it changes no
// metadata.
func (l *wal) discard(gone []*segment) error {
	var errs []error
	for _, s := range gone {
		if s.f != nil {
			errs = append(errs, s.f.Close())
		}
		if s.size == l.opts.SegmentBytes && l.recycle(s) {
			continue
		}
		errs = append(errs, l.fs.Remove(s.path))
	}
	return errors.Join(errs...)
}

func (l *wal) recycle(s *segment) bool {
	l.mu.Lock()
	enough := len(l.recycled) >= maxRecycled
	l.mu.Unlock()
	path := s.path + ".recycled"
	if enough || l.fs.Rename(s.path, path) != nil {
		return false
	}
	l.mu.Lock()
	l.recycled = append(l.recycled, path)
	l.mu.Unlock()
	return true
}

// hold keeps all segments until unhold, and lists them.
func (l *wal) hold() []segmentView {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds++
	views := make([]segmentView, 0, len(l.segs))
	for _, s := range l.segs {
		if s.synced > segmentHeaderSize {
			views = append(views, segmentView{s, s.synced, s.maxEpoch})
		}
	}
	return views
}

func (l *wal) unhold() error {
	l.mu.Lock()
	l.holds--
	gone := l.detach()
	l.mu.Unlock()
	return l.discard(gone)
}

// segmentView is the durable part of a segment.
type segmentView struct {
	seg      *segment
	end      int64
	maxEpoch dataflow.Epoch // of its durable records, or later
}

// replay gives the durable records after an epoch to fn.
func (l *wal) replay(after dataflow.Epoch, fn func(LogRecord) error) (err error) {
	views := l.hold()
	defer func() { err = errors.Join(err, l.unhold()) }()
	for _, v := range views {
		if v.maxEpoch <= after {
			continue
		}
		f, err := l.fs.Open(v.seg.path)
		if err != nil {
			return err
		}
		part := &segment{path: v.seg.path, salt: v.seg.salt, size: v.end}
		end, reason, err := part.scan(f, func(fr *frame, payload []byte) error {
			if fr.epoch <= after {
				return nil
			}
			return fn(LogRecord{Epoch: fr.epoch, Payload: payload})
		})
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		if end != v.end {
			return &CorruptionError{File: part.path, Offset: end, Reason: reason}
		}
	}
	return nil
}

// close syncs what is queued and stops.
func (l *wal) close() error {
	l.mu.Lock()
	l.closed = true
	l.work.Broadcast()
	l.prep.Broadcast()
	l.room.Broadcast()
	l.mu.Unlock()
	l.wg.Wait()
	return l.closeFiles()
}

func (l *wal) closeFiles() error {
	var errs []error
	for _, s := range append(l.segs[:len(l.segs):len(l.segs)], l.spare) {
		if s != nil && s.f != nil {
			errs = append(errs, s.f.Close())
			s.f = nil
		}
	}
	return errors.Join(errs...)
}

// usage is the number of segments and the bytes of records in them.
func (l *wal) usage() (segments int, bytes, pending int64, durable dataflow.Epoch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segs {
		bytes += s.synced
	}
	return len(l.segs), bytes, l.bytes, l.durableAt
}

// last is the epoch of the last record.
func (l *wal) last() dataflow.Epoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastEpoch
}

// checkFree refuses when a file system has fewer than need bytes left. One that
// cannot tell is trusted.
func checkFree(fs FS, dir string, need uint64) error {
	u, err := fs.GetDiskUsage(dir)
	if err == nil && u.AvailBytes < need {
		return fmt.Errorf("%w: %d MiB are left, %d MiB are needed", ErrDiskFull, u.AvailBytes>>20, need>>20)
	}
	return nil
}
