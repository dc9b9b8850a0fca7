package runtime

import (
	goruntime "runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A processor that has nothing to do takes 20 to 25 µs to wake up on a virtual machine, and
// a call of a host function has two of them woken. A guest that has just had an answer it
// waited for mostly asks again at once, so whoever reads looks for that a moment before it
// sleeps: a round trip of 45 µs then takes 25.
const (
	watchPeriod = 50 * time.Microsecond // twice what the next call takes to come
	watchPause  = 32                    // answers after one in vain: what that costs the host is bounded
)

// watchful is a reader that may be told to look for what comes at once.
type watchful struct {
	conn  syscall.RawConn
	due   bool
	pause int // answers until the next
}

var canWatch = goruntime.NumCPU() > 1 // else who is to write would wait for the processor

// expect says that something is likely to come at once.
func (r *pipeReader) expect() {
	w := &r.watch
	if w.pause > 0 {
		w.pause--
		return
	}
	w.due = canWatch
}

// watched reads what comes in a moment, if something is expected. Whatever else there is to
// know, such as the end, Read finds.
func (r *pipeReader) watched(b []byte) (n int) {
	w := &r.watch
	if !w.due || r.draining {
		return 0
	}
	w.due = false
	if w.conn == nil {
		var err error
		if w.conn, err = r.file.SyscallConn(); err != nil {
			return 0
		}
	}
	_ = w.conn.Control(func(fd uintptr) {
		for until := time.Now().Add(watchPeriod); ; {
			got, err := unix.Read(int(fd), b)
			if err == nil || err != unix.EAGAIN || time.Now().After(until) {
				n = max(got, 0)
				return
			}
		}
	})
	if n == 0 {
		w.pause = watchPause
	}
	return n
}
