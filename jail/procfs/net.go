package procfs

import (
	"errors"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// HideNet takes the permission to read from the entries of /proc/PID/net that
// [OfNetwork] does not list. They are the same for all processes of the network
// namespace, and belong to the host's root.
//
// Preconditions: the process is in a network namespace of the jail's own.
func HideNet(pid int) error {
	path := "/proc/" + strconv.Itoa(pid) + "/net"
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if errors.Is(err, unix.EINVAL) { // the process has ended, and has no namespace any more
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if slices.ContainsFunc(OfNetwork, func(r Row) bool { return r.Name == name }) {
			continue
		}
		if err := unix.Fchmodat(int(dir.Fd()), name, 0, 0); err != nil && !errors.Is(err, unix.ENOENT) { // its module is gone
			return &os.PathError{Op: "chmod", Path: path + "/" + name, Err: err}
		}
	}
	return nil
}
