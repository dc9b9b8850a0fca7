package kernel

import (
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// Feature is a feature that ordinary kernels have, and that some on top of another kernel, such as gVisor's, lack.
type Feature string

// The features.
const (
	MountAttr    Feature = "mount_setattr" // flags of several mounts, and id maps
	SignalLimits Feature = "limits of signals and message queues"
	FileIDs      Feature = "setfsuid"
	TIDAddress   Feature = "PR_GET_TID_ADDRESS"
	MemoryMap    Feature = "PR_SET_MM" // a forked program's arguments in /proc
	Listener     Feature = "notifications of system call filters"
	Landlock     Feature = "Landlock"
)

// Profile lists the features that a kernel lacks.
type Profile []Feature

// Lacks reports whether a feature is in the profile.
func (p Profile) Lacks(f Feature) bool { return slices.Contains(p, f) }

// Probe returns the profile of this kernel. It tries each feature once per process, which takes some 20 µs.
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
	{SignalLimits, func() bool { return canLimit(unix.RLIMIT_MSGQUEUE) && canLimit(unix.RLIMIT_SIGPENDING) }},
	{FileIDs, func() bool { return kernfile.OnThread(setFileIDs) == nil }},
	{TIDAddress, func() bool { return answers(unix.SYS_PRCTL, unix.PR_GET_TID_ADDRESS) }},
	{MemoryMap, func() bool { return answers(unix.SYS_PRCTL, unix.PR_SET_MM, unix.PR_SET_MM_MAP_SIZE) }},
	{Listener, func() bool { return answers(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0) }},
	{Landlock, func() bool {
		return answers(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	}},
}

// canLimit sets a limit to its value.
func canLimit(resource int) bool {
	var limit unix.Rlimit
	return unix.Prlimit(0, resource, nil, &limit) == nil && unix.Prlimit(0, resource, &limit, nil) == nil
}

// setFileIDs changes the user of the thread for its files, which needs root.
func setFileIDs() error {
	_, _, err := kernfile.SetFileIDs(1000, 1000)
	return err
}
