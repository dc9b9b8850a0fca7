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
	path := "/proc/" + strconv.Itoa(pid) + "/net/"
	entries, err := os.ReadDir(path)
	if errors.Is(err, unix.EINVAL) { // the process has ended and left its namespace
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range entries {
		if slices.ContainsFunc(NetEntries, func(e Entry) bool { return e.Name == f.Name() }) {
			continue
		}
		if err := os.Chmod(path+f.Name(), 0); err != nil && !errors.Is(err, unix.ENOENT) { // its module was unloaded
			return err
		}
	}
	return nil
}
