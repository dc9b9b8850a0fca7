package rootfs

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// errLocked is what lockNow gives when another open file holds the lock.
var errLocked = errors.New("locked")

// lockPoll is how often a lock that another holds is tried again. The kernel's
// own waiting can't be interrupted by a context.
const lockPoll = 20 * time.Millisecond

// lockNow takes a flock, unix.LOCK_EX or unix.LOCK_SH, on the file at path,
// which flags may say to create. Closing the file gives the lock back, and so
// does the end of the process, however it comes: a lock is never stale.
func lockNow(path string, flags, how int) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, &os.PathError{Op: "flock", Path: path, Err: err}
}

// lockWait takes the exclusive lock on the file at path, made if missing, once
// its holder lets go or ctx ends.
func lockWait(ctx context.Context, path string) (*os.File, error) {
	for {
		if ctx.Err() != nil { // also for a lock that is free: nothing is to be done any more
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
