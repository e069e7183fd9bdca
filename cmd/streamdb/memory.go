package main

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
)

// availableMemory is how much memory the process may use, in bytes: that of the
// machine, or of the control group that it runs in. 0: not known.
func availableMemory() int64 {
	n := machineMemory()
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if x, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && x > 0 && (n == 0 || x < n) {
			n = x
		}
	}
	return n
}

func machineMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) >= 2 && f[0] == "MemTotal:" {
			kb, _ := strconv.ParseInt(f[1], 10, 64)
			return kb << 10
		}
	}
	return 0
}
