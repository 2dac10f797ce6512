package selfmetrics

import (
	"syscall"
	"time"
)

// ProcessorTime is what the process has used so far of all processors, in user and system mode: other work on the machine does not count. 0 if unknown.
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
