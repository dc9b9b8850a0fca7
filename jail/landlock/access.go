package landlock

import (
	"strings"

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
