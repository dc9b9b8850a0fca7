package stdio

import (
	goruntime "runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// On a virtual machine an idle processor takes 20 to 25 µs to wake up, and a call of a host
// function wakes two of them. A guest that has received an answer mostly calls again at
// once, so the reader spins for a moment before it sleeps. A round trip then takes 25 µs
// instead of 45.
const (
	spinPeriod = 50 * time.Microsecond // twice the time until the next call arrives
	spinPause  = 32                    // after a spin that found nothing, so many answers pass without one
)

var canSpin = goruntime.NumCPU() > 1 // otherwise the writer would wait for the processor

// spinner makes a Reader poll for data that is expected at once.
type spinner struct {
	conn      syscall.RawConn
	expecting bool
	pause     int // answers until the next attempt
}

// Expect says that data will likely arrive at once.
func (r *Reader) Expect() {
	s := &r.spinner
	if s.pause > 0 {
		s.pause--
		return
	}
	s.expecting = canSpin
}

// spin polls for expected data. It returns 0 if none arrives, and leaves the reasons to
// Read.
func (r *Reader) spin(b []byte) (n int) {
	s := &r.spinner
	if !s.expecting {
		return 0
	}
	s.expecting = false
	if s.conn == nil {
		var err error
		if s.conn, err = r.file.SyscallConn(); err != nil {
			return 0
		}
	}
	_ = s.conn.Control(func(fd uintptr) {
		for until := time.Now().Add(spinPeriod); ; {
			got, err := unix.Read(int(fd), b)
			if err == nil || err != unix.EAGAIN || time.Now().After(until) {
				n = max(got, 0)
				return
			}
		}
	})
	if n == 0 {
		s.pause = spinPause
	}
	return n
}
