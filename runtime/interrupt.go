package runtime

import (
	"time"

	"golang.org/x/sys/unix"
)

// interrupt interrupts a program with a grace period whose time is up, and waits for its end.
// guest/grace.cjs is the guest's half.
//
// SIGURG, which other programs ignore, wakes an event loop that waits. SIGINT terminates
// running code.
func (r *activeRun) interrupt() {
	r.interrupted = true
	_ = r.process.Signal(unix.SIGURG, false) // it may have ended
	_ = r.process.Signal(unix.SIGINT, false)
	select {
	case <-r.process.Done():
	case <-time.After(r.task.grace):
	case <-r.rt.closing:
	case <-r.killed:
	}
}
