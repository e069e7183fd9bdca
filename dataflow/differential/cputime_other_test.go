//go:build !linux

package differential

import "time"

var processStart = time.Now()

// cpuTime is wall time where CPU time is not at hand.
func cpuTime(bool) time.Duration { return time.Since(processStart) }
