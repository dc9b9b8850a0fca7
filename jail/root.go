package jail

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Root opens the guest's root with O_PATH, which the caller closes: the files live as
// long as it is open. To resolve a path from it takes [OpenIn], as what is below it is the
// guest's. What is mounted there is mounted in the jail's namespace alone: to the host's,
// which does not know of it, a place that it is on looks as if it could be removed.
func (j *Jail) Root() (*os.File, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed { // pid 1 may be gone, and its number another's
		return nil, ErrClosed
	}
	root, err := openFD("/proc/"+strconv.Itoa(j.pid1.PID())+"/root", unix.O_PATH|unix.O_DIRECTORY)
	return root, stepError("open", "root", err)
}

// OpenIn opens what a path leads to for who has that root, and nothing else: links on the
// way, and "..", stay below it.
func OpenIn(root *os.File, path string, flags uint64) (*os.File, error) {
	const raced = 100 // tries, as renames and mounts anywhere keep the kernel from being sure of a ".." (EAGAIN)
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	for i := 0; ; i++ {
		fd, err := unix.Openat2(int(root.Fd()), path, &how)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case i == raced || err != unix.EAGAIN && err != unix.EINTR:
			return nil, err
		}
	}
}

// HostIDs are the host's user and group ids that the jail's are: its id 0 is the first of
// them, [GuestUID] the one that is so much larger.
func (j *Jail) HostIDs() (first, count int) { return j.slot.firstHostID(), idsEach }
