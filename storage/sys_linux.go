package storage

import "golang.org/x/sys/unix"

// punchHole gives a range's disk space back; the range then reads as zeros.
func punchHole(fd uintptr, off, n int64) error {
	return unix.Fallocate(int(fd), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
}
