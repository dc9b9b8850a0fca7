package landlock

import (
	"fmt"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Version is a version of the kernel's interface.
type Version struct {
	ABI   int
	Linux string // the first release that has it
	Adds  string // what it brought, as one says what is missing without it
}

var versions = []Version{
	{1, "5.13", "rights to files"},
	{2, "5.19", "renames and links from folder to folder"},
	{3, "6.2", "a right to truncate files"},
	{4, "6.7", "rights to TCP ports"},
	{5, "6.10", "a right to send devices commands"},
	{6, "6.12", "scopes for signals and abstract unix sockets"},
	{7, "6.15", "denials in the audit log"},
}

// Versions returns the table of versions up to the last that this package uses.
func Versions() []Version { return append([]Version(nil), versions...) }

// linuxOf returns the release that brought an ABI of the table.
func linuxOf(abi int) string { return versions[abi-1].Linux }

// NoneError says that there is no Landlock here.
type NoneError struct {
	Cure string // what to do about it
	Err  error  // what the kernel answered
}

// Error reads "landlock: operation not supported; add landlock to ...".
func (e *NoneError) Error() string { return "landlock: " + e.Err.Error() + "; " + e.Cure }

// Unwrap returns the kernel's answer.
func (e *NoneError) Unwrap() error { return e.Err }

// ABIError says that a kernel's Landlock is too old for what is asked of it.
type ABIError struct {
	Have  int    // the kernel's ABI
	Need  int    // the least that would do
	Linux string // the first release that has it
	What  string // what needs it
}

// Error reads "landlock: truncate needs ABI 3, Linux 6.2 or later; this kernel has ABI 1".
func (e *ABIError) Error() string {
	return fmt.Sprintf("landlock: %s needs ABI %d, Linux %s or later; this kernel has ABI %d", e.What, e.Need, e.Linux, e.Have)
}

var cachedABI = sync.OnceValues(askABI)

// ABI returns the version of the kernel's Landlock, at least 1. It asks the kernel
// once. Its error is a *NoneError.
func ABI() (int, error) { return cachedABI() }

func askABI() (int, error) {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, noLandlock(errno)
	}
	return int(abi), nil
}

// noLandlock tells the reasons apart, as landlock_create_ruleset(2) lists them.
func noLandlock(errno syscall.Errno) error {
	cure := "allow landlock_create_ruleset in the container's seccomp profile"
	switch errno {
	case unix.ENOSYS:
		cure = "boot a kernel of version 5.13 or later with CONFIG_SECURITY_LANDLOCK=y"
	case unix.EOPNOTSUPP:
		cure = "add landlock to the kernel's lsm= parameter, before the others"
	}
	return &NoneError{cure, errno}
}
