package quota

import (
	"os"

	"golang.org/x/sys/unix"
)

var errDescriptors = &Exceeded{Limit: "openFiles", Server: true, RetryAfter: retryAfter}

// Parts of the process's descriptors. Sandboxes, runs, sessions and connections leave an eighth for requests and their
// files, and these leave a half of it for accepting clients, replying to them, and ending what exists.
const (
	reservedShare = 8
	repliesShare  = 16
)

// spareDescriptors reports whether more of the process's descriptors are free than one of share. The lowest free number
// shows it in a microsecond: there are at least as many open descriptors below it.
func spareDescriptors(share uint64) bool {
	var most unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &most) != nil {
		return true
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return false
	}
	defer null.Close()
	return uint64(null.Fd()) < most.Cur-most.Cur/share
}
