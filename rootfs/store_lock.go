package rootfs

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// errLocked is the error of lockNow if another open file holds the lock.
var errLocked = errors.New("locked")

// lockPoll is the interval at which a held lock is tried again. A context cannot interrupt
// a blocking flock.
const lockPoll = 20 * time.Millisecond

// lockNow takes a flock, unix.LOCK_EX or unix.LOCK_SH, on the file at path. flags are those
// of open. Closing the file releases the lock, and so does the end of the process, however
// it ends: a lock is never stale.
func lockNow(path string, flags, how int) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return nil, err
	}
	// With LOCK_NB, flock does not wait, and so no signal interrupts it.
	if err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, &os.PathError{Op: "flock", Path: path, Err: err}
}

// lockWait takes the exclusive lock on the file at path, which it creates if missing. It
// waits until the lock is released or ctx ends.
func lockWait(ctx context.Context, path string) (*os.File, error) {
	for {
		if ctx.Err() != nil { // a canceled caller must not get a free lock either
			return nil, context.Cause(ctx)
		}
		f, err := lockNow(path, os.O_RDWR|os.O_CREATE, unix.LOCK_EX)
		if !errors.Is(err, errLocked) {
			return f, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(lockPoll):
		}
	}
}
