package subprocess

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/jail/kernfile"
)

// needed are the capabilities of a subprocess until it changes its user, if the host has them.
const needed = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_SYS_CHROOT | 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SYS_RESOURCE

// setCapabilities sets the capabilities 0 to 31 of this thread, and clears the others.
func setCapabilities(low unix.CapUserData) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{low}
	return os.NewSyscallError("capset", unix.Capset(&header, &data[0]))
}

// limitCapabilities empties the bounding set of this thread. A program that it executes as root
// then has the inheritable capabilities only, on all threads: see "Capabilities and execution of
// programs by root" in capabilities(7). Go can't drop those of all threads later in a program
// with cgo.
//
// Preconditions: the thread is locked to its goroutine and ends with it.
func limitCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	data[0].Inheritable, data[1].Inheritable = needed&data[0].Permitted, 0
	if err := unix.Capset(&header, &data[0]); err != nil {
		return os.NewSyscallError("capset", err)
	}
	last, err := kernfile.ReadFile("/proc/sys/kernel/cap_last_cap")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(last)))
	for c := 0; c <= n && err == nil; c++ {
		err = os.NewSyscallError("prctl", unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0))
	}
	return err
}
