package differential

import (
	"syscall"
	"time"
	"unsafe"
)

// cpuTime is the CPU time used by the process (garbage collection included), or
// by the calling thread, which must be locked: figures that other programs on
// the machine disturb less than wall time.
func cpuTime(thread bool) time.Duration {
	clock := uintptr(2) // CLOCK_PROCESS_CPUTIME_ID
	if thread {
		clock = 3
	}
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		panic(errno)
	}
	return time.Duration(ts.Nano())
}
