package procfs

import (
	"errors"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// HideNet removes all permissions from the entries of /proc/PID/net that [NetEntries] does
// not list. They belong to the host's root and are shared by all processes of the network
// namespace.
//
// Preconditions: the process is in the jail's own network namespace.
func HideNet(pid int) error {
	path := "/proc/" + strconv.Itoa(pid) + "/net"
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if errors.Is(err, unix.EINVAL) { // the process has ended and left its namespace
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if slices.ContainsFunc(NetEntries, func(e Entry) bool { return e.Name == name }) {
			continue
		}
		if err := unix.Fchmodat(int(dir.Fd()), name, 0, 0); err != nil && !errors.Is(err, unix.ENOENT) { // its module was unloaded
			return &os.PathError{Op: "chmod", Path: path + "/" + name, Err: err}
		}
	}
	return nil
}
