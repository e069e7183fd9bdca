package storage

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var (
	// ErrCorruption marks every *CorruptionError: bytes on disk are not what
	// was written. No retry mends it.
	ErrCorruption = errors.New("data corruption")
	// ErrDiskFull says that a write was refused for want of space. Nothing of
	// it happened, the store is intact, and the same call may succeed later.
	ErrDiskFull = errors.New("no space left on disk")
	// ErrInUse says that another process has the data directory open.
	ErrInUse = errors.New("data directory is in use by another process")
	// ErrFailed says that a write or sync failed in a way after which the
	// store cannot know what is on disk. Only opening it anew does.
	ErrFailed = errors.New("storage has failed and must be reopened")
	// ErrClosed is returned by calls after Close.
	ErrClosed = errors.New("storage is closed")
	// ErrNotFound says that a block or a secret does not exist.
	ErrNotFound = errors.New("not found")
)

// CorruptionError names the damaged place.
type CorruptionError struct {
	File   string
	Offset int64
	Reason string
}

func (e *CorruptionError) Error() string {
	return fmt.Sprintf("data corruption in %s at offset %d: %s", e.File, e.Offset, e.Reason)
}

// Is makes errors.Is(err, ErrCorruption) hold.
func (e *CorruptionError) Is(target error) bool { return target == ErrCorruption }

// diskError marks err as ErrDiskFull where that is the cause.
func diskError(err error) error {
	if err != nil && vfs.IsNoSpaceError(err) && !errors.Is(err, ErrDiskFull) {
		return fmt.Errorf("%w: %w", ErrDiskFull, err)
	}
	return err
}

// failure marks err as final.
func failure(attempt string, err error) error {
	return fmt.Errorf("%s: %w: %w", attempt, ErrFailed, diskError(err))
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
