package kernel

import (
	"errors"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Feature is a feature that ordinary kernels have, and that some on top of another kernel, such as gVisor's, lack.
type Feature string

// The features.
const (
	MountAttr     Feature = "mount_setattr" // flags of several mounts, and id maps
	TerminalLimit Feature = "limits of terminals"
	NetModes      Feature = "modes of /proc/net" // their entries belong to a network namespace
	LowPorts      Feature = "ports below 1024 for all users"
	GroupLimits   Feature = "limits of cgroups and of mounted file systems"
	SocketLists   Feature = "lists of sockets"
	SignalLimits  Feature = "limits of signals and message queues"
	TIDAddress    Feature = "PR_GET_TID_ADDRESS"
	MemoryMap     Feature = "PR_SET_MM" // a forked program's arguments in /proc
	Listener      Feature = "notifications of system call filters"
	Landlock      Feature = "Landlock"
	SocketLookup  Feature = "BPF" // programs that look up sockets
)

// FirstPortFile contains the lowest port that processes without capabilities can listen on.
const FirstPortFile = "/proc/sys/net/ipv4/ip_unprivileged_port_start"

// Profile lists the features that a kernel lacks.
type Profile []Feature

// Lacks reports whether a feature is in the profile.
func (p Profile) Lacks(f Feature) bool { return slices.Contains(p, f) }

// Probe returns the profile of this kernel. It tries each feature once per process, which takes some 60 µs.
var Probe = sync.OnceValue(func() (lacking Profile) {
	for _, t := range tries {
		if !t.works() {
			lacking = append(lacking, t.feature)
		}
	}
	return lacking
})

// tries tries each feature without an effect.
var tries = []struct {
	feature Feature
	works   func() bool
}{
	{MountAttr, func() bool { return unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &unix.MountAttr{}) != unix.ENOSYS }},
	{TerminalLimit, func() bool { return limitTerminals() != unix.EINVAL }},
	{NetModes, func() bool { return !errors.Is(os.Chmod("/proc/thread-self/net/dev", 0o444), unix.EPERM) }},
	{LowPorts, func() bool { return exists(FirstPortFile) }},
	{GroupLimits, func() bool { // gVisor accepts them, and has fewer files
		return exists("/sys/fs/cgroup/memory/memory.stat") || exists("/sys/fs/cgroup/memory.stat")
	}},
	{SocketLists, func() bool { return canOpen(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG) }},
	{SignalLimits, func() bool { return canLimit(unix.RLIMIT_MSGQUEUE) && canLimit(unix.RLIMIT_SIGPENDING) }},
	{TIDAddress, func() bool { return answers(unix.SYS_PRCTL, unix.PR_GET_TID_ADDRESS) }},
	{MemoryMap, func() bool { return answers(unix.SYS_PRCTL, unix.PR_SET_MM, unix.PR_SET_MM_MAP_SIZE) }},
	{Listener, func() bool { return answers(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0) }},
	{Landlock, func() bool {
		return answers(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	}},
	{SocketLookup, func() bool {
		_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_CREATE, 0, 4) // no address of arguments: EFAULT, or EPERM
		return errno != unix.ENOSYS && errno != unix.EINVAL                  // gVisor knows other commands, and no maps
	}},
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// limitTerminals makes a file system of a terminal, without a mount. Its error is an errno.
func limitTerminals() error {
	fd, err := unix.Fsopen("devpts", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	if err := unix.FsconfigSetString(fd, "max", "1"); err != nil {
		return err
	}
	return unix.FsconfigCreate(fd)
}

// canOpen opens a socket.
func canOpen(family, kind, protocol int) bool {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	return err == nil && unix.Close(fd) == nil
}

// canLimit sets a limit to its value.
func canLimit(resource int) bool {
	var limit unix.Rlimit
	return unix.Prlimit(0, resource, nil, &limit) == nil && unix.Prlimit(0, resource, &limit, nil) == nil
}
