package runtime

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lastWait is how long reading waits for bytes that a pipe held at its run's end.
// It matters only where somebody else takes them.
const lastWait = 20 * time.Millisecond

// A program that writes without pause waits less for its reader when its pipe is wide, and
// the reader's buffer too: 1 GiB then takes 0.35 s in place of 0.53 (medians of 20). What a
// pipe holds counts as memory of who has written it.
const (
	pipeSize   = 64 << 10 // bytes that it holds at first
	widePipe   = 1 << 20
	wideBuffer = 256 << 10
)

// roomier is a buffer for the next read after one of n bytes.
func roomier(buf []byte, n int) []byte {
	if n < len(buf) || len(buf) >= wideBuffer {
		return buf
	}
	return make([]byte, wideBuffer)
}

// pipeReader reads a pipe to its end or, once a read deadline has told it that
// the run is gone, until what was written before is read. Another run of the
// runtime may hold the other end: it must not keep this one's caller waiting.
type pipeReader struct {
	file     *os.File
	terminal bool // it is the host's end of one
	wide     bool // it was asked to hold more
	draining bool
	rest     int // bytes still to be read while draining
	watch    watchful
}

// Read reads up to len(b) bytes and returns io.EOF at the end.
func (r *pipeReader) Read(b []byte) (int, error) {
	for {
		if r.draining {
			if r.rest <= 0 {
				return 0, io.EOF
			}
			b = b[:min(len(b), r.rest)]
			if err := r.file.SetReadDeadline(time.Now().Add(lastWait)); err != nil {
				return 0, err
			}
		}
		if n := r.watched(b); n > 0 {
			return n, nil
		}
		n, err := r.file.Read(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if !r.draining {
				r.draining, r.rest = true, r.waiting()
				continue
			}
			n, err = r.atOnce(b)
		}
		if r.terminal && errors.Is(err, unix.EIO) { // how it says that nobody has the other end
			err = io.EOF
		}
		if r.draining {
			r.rest -= n
		} else if n >= pipeSize {
			r.widen()
		}
		return n, err
	}
}

// atOnce reads what there is, or returns io.EOF. It is for a Read whose deadline is over: that
// does not look, and who had to wait for a processor may have been late from the beginning.
func (r *pipeReader) atOnce(b []byte) (n int, err error) {
	conn, err := r.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	if closed := conn.Control(func(fd uintptr) { n, err = unix.Read(int(fd), b) }); closed != nil {
		return 0, closed
	}
	if n <= 0 && (err == nil || errors.Is(err, unix.EAGAIN)) {
		err = io.EOF
	}
	return max(n, 0), err
}

// widen has a pipe that was full hold more from now on. Where that is refused it stays as
// it is.
func (r *pipeReader) widen() {
	if r.wide || r.terminal {
		return
	}
	r.wide = true
	if conn, err := r.file.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, widePipe) })
	}
}

// mostOnTerminal is more than the kernel keeps for a terminal's reader. How much that is can't
// be asked: a part of it is still on its way.
const mostOnTerminal = 64 << 10

// waiting is how many bytes a pipe holds (FIONREAD, which x/sys calls TIOCINQ). What a run wrote is all there once it
// has ended; what comes later is somebody else's.
func (r *pipeReader) waiting() (n int) {
	if r.terminal {
		return mostOnTerminal
	}
	conn, err := r.file.SyscallConn()
	if err != nil {
		return 0
	}
	_ = conn.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n
}
