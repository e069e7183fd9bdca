package storage

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fullFS is a file system that says that it is full.
type fullFS struct {
	vfs.FS
	free uint64
}

func (f fullFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: f.free}, nil
}

// TestOpenOnFullDisk says why a store does not open where there is no room, and
// opens it when there is.
func TestOpenOnFullDisk(t *testing.T) {
	mem := vfs.NewMem()
	s, err := Open("dir", Options{FS: mem})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Open("dir", Options{FS: fullFS{mem, 1 << 20}})
	if !errors.Is(err, ErrDiskFull) || !strings.Contains(err.Error(), "1024 KiB are free") {
		t.Errorf("on a full disk: %v", err)
	}
	s, err = Open("dir", Options{FS: fullFS{mem, 1 << 30}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
