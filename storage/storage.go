// Package storage is the durable side: log, blocks, checkpoints, catalog.
package storage

import (
	"context"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamdb/streamdb/dataflow"
)

type FS = vfs.FS

// Options of a store; the zero value is good.
type Options struct {
	Logger          *slog.Logger               // nil discards
	FS              FS                         // nil is the operating system's; NewMemFS() for tests
	Now             func() time.Time           // clock for latency statistics
	SegmentBytes    int64                      // of a log segment; default 64 MiB
	MaxPendingBytes int64                      // appended, not yet durable; Append blocks beyond; default 64 MiB
	PackBytes       int64                      // of a pack file; default 64 MiB
	MinFreeBytes    uint64                     // writes are refused with ErrDiskFull below; default 64 MiB
	VerifyBytes     int64                      // larger blocks are verified in the background; default 16 MiB
	OnCorruption    func(err *CorruptionError) // told of what the background finds
}

type LogRecord struct {
	Epoch   dataflow.Epoch
	Payload []byte // not to be written to until durable
}

// All signatures of the package; see the final files.
type API interface {
	Close() error
	Generation() uint64

	// log
	Append(rec LogRecord, onDurable func(error)) (Ticket, error) // ErrDiskFull: refused, nothing happened, try again later
	Replay(after dataflow.Epoch, fn func(LogRecord) error) error // payload valid within fn only
	DurableEpoch() dataflow.Epoch

	// blocks
	WriteBlock(c Codec, parts ...[]byte) (id BlockID, stored int64, err error) // start is 64-byte aligned when opened
	OpenBlock(id BlockID) (data []byte, release func(), err error)
	DeleteBlocks(ids ...BlockID) // the writer no longer wants them; the last checkpoint and readers keep theirs
	SyncBlocks() error           // write-ahead; Commit does it too

	// one atomic synced commit of any mixture
	Commit(b *Batch) error
	Checkpoint() *Checkpoint // the last one, nil before the first

	// catalog
	GetCatalog(key string) ([]byte, error) // nil if absent
	ScanCatalog(prefix string, fn func(key string, value []byte) error) error
	Secret(id uint64) ([]byte, error) // ErrNotFound

	// never reused, never back
	AllocateIDs(n int) (first uint64, err error)
	EpochHighWater() dataflow.Epoch
	ReserveEpochs(upTo dataflow.Epoch) error

	Backup(ctx context.Context, dst string) error
	Stats() Stats
}

// Batch is filled with PutCatalog(key string, value []byte), DeleteCatalog(key),
// PutSecret(id uint64, plain []byte), DeleteSecret(id), SetCheckpoint(*Checkpoint).
type Batch struct{}

// Ticket has Wait(ctx) error and Done() <-chan struct{}.
type Ticket struct{}

type Codec uint8

const (
	Raw  Codec = iota // mmap'd, zero-copy
	Zstd              // cold and source data; decoded into the heap at open
)

type CorruptionError struct {
	File   string
	Offset int64
	Reason string
}

type Stats struct{}
