//go:build unix

package storage

import (
	"golang.org/x/sys/unix"
)

// mapFile maps the first n bytes of a file for reading.
func mapFile(fd uintptr, n int) ([]byte, error) {
	return unix.Mmap(int(fd), 0, n, unix.PROT_READ, unix.MAP_SHARED)
}

func unmapFile(b []byte) error { return unix.Munmap(b) }

// makePrivate takes a file's permissions from all but its owner.
func makePrivate(fd uintptr) error { return unix.Fchmod(int(fd), 0o600) }

// fileUsage is the number of names of a file and the bytes it occupies.
func fileUsage(fd uintptr) (links uint64, allocated int64, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(fd), &st); err != nil {
		return 0, 0, err
	}
	return uint64(st.Nlink), st.Blocks * 512, nil
}
