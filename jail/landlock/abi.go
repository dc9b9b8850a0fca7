package landlock

import (
	"fmt"
	"slices"
	"sync"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Version is a version of the kernel's Landlock interface.
type Version struct {
	ABI   int
	Linux string // the first release with it
	Adds  string // the feature it added, to say what an older kernel lacks
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

// Versions returns all versions up to the last one that this package uses.
func Versions() []Version { return slices.Clone(versions) }

// UnavailableError is the error if this kernel has no Landlock.
type UnavailableError struct {
	Cure string // advice for the administrator
	Err  error  // the kernel's error
}

// Error returns a text such as "landlock: operation not supported; add landlock to ...".
func (e *UnavailableError) Error() string { return "landlock: " + e.Err.Error() + "; " + e.Cure }

// Unwrap returns the kernel's error.
func (e *UnavailableError) Unwrap() error { return e.Err }

// ABIError is the error if the kernel's Landlock is too old for a ruleset.
type ABIError struct {
	Have  int    // the kernel's ABI
	Need  int    // the least sufficient ABI
	Linux string // the first release with it
	What  string // the part of the ruleset that needs it
}

// Error returns a text such as "landlock: truncate needs ABI 3, Linux 6.2 or later; this kernel has ABI 1".
func (e *ABIError) Error() string {
	return fmt.Sprintf("landlock: %s needs ABI %d, Linux %s or later; this kernel has ABI %d", e.What, e.Need, e.Linux, e.Have)
}

var cachedABI = sync.OnceValues(func() (int, error) {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0, unavailable(err)
	}
	return abi, nil
})

// ABI returns the version of the kernel's Landlock, at least 1. It queries the kernel
// once. The error is a *UnavailableError.
func ABI() (int, error) { return cachedABI() }

// unavailable adds the cure for an error of landlock_create_ruleset(2).
func unavailable(err error) error {
	cure := "allow landlock_create_ruleset in the container's seccomp profile"
	switch err {
	case unix.ENOSYS:
		cure = "boot a kernel of version 5.13 or later with CONFIG_SECURITY_LANDLOCK=y"
	case unix.EOPNOTSUPP:
		cure = "add landlock to the kernel's lsm= parameter, before the others"
	}
	return &UnavailableError{cure, err}
}
