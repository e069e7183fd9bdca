// Package storage is the durable side of the database: a log of epochs, blocks
// of columns, checkpoints that name blocks and source positions at one epoch,
// and the catalog's keys and values. It interprets no value.
//
// # Layout of a data directory
//
//	FORMAT      the version of all the rest; a newer one is refused
//	LOCK        locked by the process that has the directory open
//	secret.key  the key that secrets are encrypted with, readable by the owner only
//	meta/       a Pebble store: catalog, secrets, checkpoint, counters
//	log/        segments of the log
//	blocks/     block files
//
// # What is durable when
//
// An appended record is durable when its Ticket says so. A Batch is durable,
// all of it or nothing, when Commit returns. A written block is durable once a
// Commit has listed it in a checkpoint; at the next open, what no checkpoint
// lists is removed. Recovery is: open, take Checkpoint, Replay what came after
// its epoch.
//
// # Memory
//
// Raw blocks are mapped: their bytes are page cache, outside of the Go heap and
// of GOMEMLIMIT, and the kernel drops and reads them again as it sees fit. A
// block must not be touched after its release; Close leaves mapped what is
// still in use. Where a file cannot be mapped, blocks are read into the heap.
//
// # Failing disks
//
// Reading a mapped page that the disk cannot deliver raises SIGBUS, which Go
// turns into a crash of the process; Guard turns it into an error instead, for
// goroutines that run under it. A failed sync is final (ErrFailed), since the
// kernel may have dropped the pages it could not write. A full disk is not: log
// space is allocated ahead, and a reserve is kept for the small commits that
// free space, so that ErrDiskFull means that nothing happened.
package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/klauspost/compress/zstd"

	"github.com/streamdb/streamdb/dataflow"
)

// FormatVersion is the version of data directories that this package writes, and the
// one that it reads: what was before it has not been released.
const FormatVersion = 2

// FS is where the files are. Tests wrap it to inject faults, or use NewMemFS.
type FS = vfs.FS

// MemFS is a file system in memory, for tests. CrashClone copies the state
// that a crash would leave.
type MemFS = vfs.MemFS

// CrashConfig says how much of what was not synced survives a CrashClone.
type CrashConfig = vfs.CrashCloneCfg

// NewMemFS makes an empty file system in memory.
func NewMemFS() *MemFS { return vfs.NewCrashableMem() }

// Options of a store; the zero value is good.
type Options struct {
	Logger *slog.Logger     // nil discards
	FS     FS               // nil is the operating system's
	Now    func() time.Time // for latency statistics; nil is the wall clock

	// Volatile never syncs: what is written outlives the process, but not a
	// crash of the machine.
	Volatile bool

	// SegmentBytes is the size of a log segment (64 MiB). A larger record gets
	// a segment of its own size.
	SegmentBytes int64
	// MaxPendingBytes bounds what is appended and not yet durable (64 MiB);
	// Append waits when it is reached.
	MaxPendingBytes int64
	// PackBytes is the greatest size of a file of small blocks (64 MiB). A
	// block of a quarter of it has its own file.
	PackBytes int64
	// MinFreeBytes is left free on the disk (64 MiB): log and blocks are
	// refused with ErrDiskFull below it, commits below a quarter of it.
	MinFreeBytes uint64
	// VerifyBytes is the size (16 MiB) up to which a block's checksum is
	// verified before its first use. A larger one is given out at once and
	// verified in the background, so that opening a large state takes no time.
	VerifyBytes int64
	// OnCorruption is told what verification in the background finds.
	OnCorruption func(*CorruptionError)
}

func (o Options) withDefaults() *Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	size := int64(64 << 20)
	if _, ok := o.FS.(*MemFS); ok {
		size = 256 << 10 // it copies whole files when it syncs
	}
	setDefault(&o.SegmentBytes, size)
	setDefault(&o.MaxPendingBytes, 64<<20)
	setDefault(&o.PackBytes, 64<<20)
	setDefault(&o.MinFreeBytes, 64<<20)
	setDefault(&o.VerifyBytes, 16<<20)
	return &o
}

func setDefault[T int64 | uint64](p *T, v T) {
	if *p == 0 {
		*p = v
	}
}

// Store is an open data directory. Its methods may be called concurrently.
type Store struct {
	dir    string
	opts   *Options
	fs     FS
	logger *slog.Logger
	lock   io.Closer
	db     *pebble.DB
	log    *wal
	blocks *blocks
	keys   *keyring
	stats  counters

	generation uint64

	commitMu sync.Mutex // one commit at a time
	mu       sync.Mutex // guards what follows; not held across I/O
	state    state
	ids      idRange
	epochs   dataflow.Epoch // reserved
	err      error          // Pebble has failed
	closing  bool
	users    sync.WaitGroup // of db
}

// Open opens a data directory, or creates one where there is nothing. It
// recovers from whatever the last process left.
func Open(dir string, options Options) (_ *Store, err error) {
	o := options.withDefaults()
	if o.FS == vfs.Default {
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
	}
	if o.Volatile {
		o.FS = volatileFS{o.FS}
	}
	s := &Store{dir: dir, opts: o, fs: o.FS, logger: o.Logger}
	if err := s.acquire(); err != nil {
		return nil, fmt.Errorf("open data directory %s: %w", dir, diskError(err))
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open data directory %s: %w", dir, diskError(err)), s.abandon())
	}
	return s, nil
}

func (s *Store) path(name ...string) string {
	return s.fs.PathJoin(append([]string{s.dir}, name...)...)
}

// acquire makes the directory and locks it.
func (s *Store) acquire() error {
	if err := makeDir(s.fs, s.dir); err != nil {
		return err
	}
	lock, err := s.fs.Lock(s.path("LOCK"))
	var cannotCreate *fs.PathError
	switch {
	case errors.As(err, &cannotCreate):
		return err
	case err != nil:
		return ErrInUse
	}
	s.lock = lock
	return nil
}

func (s *Store) open() error {
	if err := s.checkFormat(); err != nil {
		return err
	}
	if err := s.checkSpace(); err != nil {
		return err
	}
	for _, d := range []string{"meta", "log", "blocks"} {
		if err := s.fs.MkdirAll(s.path(d), 0o700); err != nil {
			return err
		}
	}
	if err := syncDir(s.fs, s.dir); err != nil {
		return err
	}
	if err := s.openMeta(); err != nil {
		return err
	}
	m, err := s.loadMeta()
	if err != nil {
		return err
	}
	if s.keys, err = openKeyring(s.fs, s.dir, s.hasSecrets); err != nil {
		return err
	}
	if err := s.openBlocks(m.nextFile); err != nil {
		return err
	}
	s.log = &wal{fs: s.fs, dir: s.path("log"), opts: s.opts, logger: s.logger, stats: &s.stats}
	if err := s.log.recover(s.state.epoch, m.log); err != nil {
		return err
	}
	s.generation = m.generation + 1
	if err := s.writeMeta(s.log.mark(s.state.epoch)); err != nil {
		return err
	}
	s.log.start()
	s.blocks.start()
	return nil
}

// checkFormat refuses what this version does not understand, and marks an
// empty directory as ours before anything else is made in it.
func (s *Store) checkFormat() error {
	const prefix = "streamdb data format "
	text, err := readAll(s.fs, s.path("FORMAT"))
	if err == nil {
		v, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(string(text), prefix)))
		switch {
		case err != nil || !bytes.HasPrefix(text, []byte(prefix)):
			return &CorruptionError{File: s.path("FORMAT"), Reason: "not a format version"}
		case v > FormatVersion:
			return fmt.Errorf("data format %d was written by a newer version; this one reads up to %d", v, FormatVersion)
		case v < FormatVersion:
			return fmt.Errorf("data format %d was written by an older version; this one reads from %d on", v, FormatVersion)
		}
		return nil
	}
	if !isNotExist(err) {
		return err
	}
	names, err := s.fs.List(s.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != "LOCK" && name != "FORMAT.tmp" && name != "lost+found" {
			return fmt.Errorf("directory is not empty and not a data directory: it contains %q", name)
		}
	}
	return s.writeFormat(s.dir)
}

func (s *Store) writeFormat(dir string) error {
	return writeFileAtomic(s.fs, dir, "FORMAT", fmt.Appendf(nil, "streamdb data format %d\n", FormatVersion))
}

// leastFree is what must be free to open a store: on a full disk the metadata
// store could not finish its own recovery, and would try for ever.
const leastFree = 16 << 20

// checkSpace refuses to open a store where there is no room to work.
func (s *Store) checkSpace() error {
	u, err := s.fs.GetDiskUsage(s.dir)
	if err != nil || u.AvailBytes >= leastFree {
		return nil // not every file system tells
	}
	return fmt.Errorf("%w: %d KiB are free, and at least %d MiB are needed to start; nothing is lost", ErrDiskFull, u.AvailBytes>>10, leastFree>>20)
}

func (s *Store) openMeta() error {
	cache := pebble.NewCache(8 << 20)
	defer cache.Unref()
	db, err := pebble.Open(s.path("meta"), &pebble.Options{
		FS:                 s.fs,
		Cache:              cache,
		MemTableSize:       4 << 20,
		FormatMajorVersion: pebble.FormatValueSeparation,
		Logger:             pebbleLogger{s.logger},
		EventListener: &pebble.EventListener{
			// Whoever reads the damaged part gets the error.
			DataCorruption: func(i pebble.DataCorruptionInfo) {
				s.logger.Error("found corruption", "file", i.Path, "error", i.Details)
			},
		},
	})
	if errors.Is(err, pebble.ErrCorruption) {
		return &CorruptionError{File: s.path("meta"), Reason: err.Error()}
	}
	s.db = db
	return err
}

func (s *Store) openBlocks(nextFile uint32) error {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0))
	if err != nil {
		return err
	}
	s.blocks = &blocks{fs: s.fs, dir: s.path("blocks"), opts: s.opts, logger: s.logger, stats: &s.stats, enc: enc, dec: dec}
	return s.blocks.load(s.state.refs(), nextFile)
}

// pebbleLogger drops Pebble's chatter. Pebble calls Fatalf where it cannot go
// on and must not return to; update recovers from it, and in Pebble's own
// goroutines it ends the process, which the next open recovers from.
type pebbleLogger struct{ *slog.Logger }

type pebbleFatal struct{ message string }

func (f *pebbleFatal) Error() string { return f.message }

func (l pebbleLogger) Infof(string, ...any) {}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.Error("metadata store", "error", fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	panic(&pebbleFatal{fmt.Sprintf(format, args...)})
}

// use keeps the store open during an operation on the database.
func (s *Store) use() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closing:
		return ErrClosed
	case s.err != nil:
		return s.err
	}
	s.users.Add(1)
	return nil
}

// update applies a batch to Pebble, synced.
func (s *Store) update(b *pebble.Batch) (err error) {
	defer func() {
		if r := recover(); r != nil {
			fatal, ok := r.(*pebbleFatal)
			if !ok {
				panic(r)
			}
			err = failure("write to "+s.path("meta"), fatal)
			s.mu.Lock()
			s.err = err
			s.mu.Unlock()
		}
	}()
	if err := checkFree(s.fs, s.dir, s.opts.MinFreeBytes/4+uint64(b.Len())); err != nil {
		return err
	}
	return diskError(b.Commit(pebble.Sync))
}

// Generation counts the opens of the data directory: each process that has had
// it open has its own number, by which outside systems can shut out an earlier.
func (s *Store) Generation() uint64 { return s.generation }

// Append queues a record for the log and returns at once, except that it waits
// while too much is pending. Epochs must not decrease. Records that are queued
// while a sync runs become durable together with the next one. onDurable, if
// not nil, is called after the Ticket is done, in the order of the records, by
// the goroutine that writes the log: it must not block.
//
// ErrDiskFull means that the record was refused and the log is as before.
func (s *Store) Append(rec LogRecord, onDurable func(error)) (Ticket, error) {
	return s.log.append(rec, onDurable)
}

// Replay gives the durable records with an epoch after the given one to fn, in
// order. A payload is valid only during the call.
func (s *Store) Replay(after dataflow.Epoch, fn func(LogRecord) error) error {
	return s.log.replay(after, fn)
}

// DurableEpoch is the epoch of the last durable record, 0 without one.
func (s *Store) DurableEpoch() dataflow.Epoch {
	_, _, _, epoch := s.log.usage()
	return epoch
}

// WriteBlock stores the parts, one after the other, as an immutable block, and
// returns its name and the bytes it takes. The caller keeps the parts. The block
// belongs to the caller until a Commit lists it, or DeleteBlocks gives it up.
func (s *Store) WriteBlock(codec Codec, parts ...[]byte) (BlockID, int64, error) {
	return s.blocks.write(codec, parts)
}

// OpenBlock gives the bytes of a block, starting at a multiple of 64. They must
// not be written to, and not be touched after release.
func (s *Store) OpenBlock(id BlockID) (data []byte, release func(), err error) {
	return s.blocks.open(id)
}

// DeleteBlocks says that their writer no longer wants blocks that no Commit
// has listed. A block that the last checkpoint lists, or that is open, goes
// when that ends.
func (s *Store) DeleteBlocks(ids ...BlockID) { s.blocks.forget(ids) }

// SyncBlocks makes the blocks written so far reach the disk, so that the next
// Commit has less to wait for.
func (s *Store) SyncBlocks() error { return s.blocks.syncAll(false) }

// Close makes pending records durable and closes everything. It reports blocks
// that are still open.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return ErrClosed
	}
	s.closing = true
	failed := s.err
	s.mu.Unlock()
	s.users.Wait()
	errs := []error{s.log.close()}
	if failed == nil {
		errs = append(errs, s.writeMeta(s.log.mark(s.state.epoch)))
	}
	return errors.Join(append(errs, s.abandon())...)
}

// abandon closes what has been opened.
func (s *Store) abandon() error {
	var errs []error
	if s.log != nil {
		errs = append(errs, s.log.closeFiles())
	}
	if s.blocks != nil {
		errs = append(errs, s.blocks.close())
	}
	if s.db != nil && s.err == nil {
		errs = append(errs, s.db.Close())
	}
	return errors.Join(append(errs, s.lock.Close())...)
}
