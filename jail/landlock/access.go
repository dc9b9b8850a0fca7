package landlock

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Access is a set of rights to files, with the values of the kernel's
// LANDLOCK_ACCESS_FS_*.
type Access uint64

// The rights. The table rights describes each.
const (
	Execute    Access = unix.LANDLOCK_ACCESS_FS_EXECUTE
	WriteFile  Access = unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	ReadFile   Access = unix.LANDLOCK_ACCESS_FS_READ_FILE
	ReadDir    Access = unix.LANDLOCK_ACCESS_FS_READ_DIR
	RemoveDir  Access = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR
	RemoveFile Access = unix.LANDLOCK_ACCESS_FS_REMOVE_FILE
	MakeChar   Access = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR
	MakeDir    Access = unix.LANDLOCK_ACCESS_FS_MAKE_DIR
	MakeReg    Access = unix.LANDLOCK_ACCESS_FS_MAKE_REG
	MakeSock   Access = unix.LANDLOCK_ACCESS_FS_MAKE_SOCK
	MakeFifo   Access = unix.LANDLOCK_ACCESS_FS_MAKE_FIFO
	MakeBlock  Access = unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	MakeSym    Access = unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	Refer      Access = unix.LANDLOCK_ACCESS_FS_REFER
	Truncate   Access = unix.LANDLOCK_ACCESS_FS_TRUNCATE
	IoctlDev   Access = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// right describes a right.
type right struct {
	Name   string // as in the kernel's audit records after "fs."
	Bit    Access
	ABI    int    // the first with this right
	File   bool   // applies to files, not only to folders
	Reason string // the effect of denying it
}

// rights are all known rights, by ABI and bit.
var rights = []right{
	{"execute", Execute, 1, true, "programs can't be executed; reading them is another right"},
	{"write_file", WriteFile, 1, true, "files can't be opened for writing"},
	{"read_file", ReadFile, 1, true, "files can't be opened for reading"},
	{"read_dir", ReadDir, 1, false, "folders can't be listed; a file in one may still be opened by its name"},
	{"remove_dir", RemoveDir, 1, false, "folders can't be removed or renamed"},
	{"remove_file", RemoveFile, 1, false, "other files can't be removed or renamed"},
	{"make_char", MakeChar, 1, false, "no new device file gives access to a device"},
	{"make_dir", MakeDir, 1, false, "folders can't be created, or renamed to here"},
	{"make_reg", MakeReg, 1, false, "files can't be created, or renamed or linked to here"},
	{"make_sock", MakeSock, 1, false, "unix sockets can't be bound to a path"},
	{"make_fifo", MakeFifo, 1, false, "named pipes can't be created"},
	{"make_block", MakeBlock, 1, false, "as make_char"},
	{"make_sym", MakeSym, 1, false, "no symbolic link can mislead other programs"},
	{"refer", Refer, 2, false, "files stay in the folder whose rules they were created under"},
	{"truncate", Truncate, 3, true, "files can't be truncated; write_file does not deny truncate(2)"},
	{"ioctl_dev", IoctlDev, 5, true, "devices get no ioctl commands except the generic ones"},
}

// All are all known rights.
const All = IoctlDev<<1 - 1

// fileRights are the rights that a rule for a file may grant: the kernel rejects others.
var fileRights = mask(func(r right) bool { return r.File })

func mask(want func(right) bool) (a Access) {
	for _, r := range rights {
		if want(r) {
			a |= r.Bit
		}
	}
	return a
}

// String returns the names, such as "read_file,truncate".
func (a Access) String() string {
	var names []string
	for _, r := range rights {
		if a&r.Bit != 0 {
			names = append(names, r.Name)
		}
	}
	if a&^All != 0 {
		names = append(names, "unknown")
	}
	return strings.Join(names, ",")
}

// Version is a version of the kernel's Landlock interface.
type Version struct {
	ABI   int
	Linux string // the first release with it
	Adds  string // the feature that it added, for errors about older kernels
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

// Versions returns all versions up to the newest that this package uses.
func Versions() []Version { return slices.Clone(versions) }

// UnavailableError is the error if this kernel does not support Landlock.
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
