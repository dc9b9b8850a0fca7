package landlock

import (
	"strings"

	"golang.org/x/sys/unix"
)

// Access is a set of rights to files, as the kernel's LANDLOCK_ACCESS_FS_* number
// them.
type Access uint64

// The rights. The table of Rights says what each stands for.
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

// Right is a row about one right.
type Right struct {
	Name   string // as the kernel's audit records have it, behind "fs."
	Bit    Access
	ABI    int    // the least that has it
	File   bool   // it is a right to a file itself, too, and not only to what a folder holds
	Reason string // what for one would deny it
}

// rights are all that this package knows, by ABI and bit.
var rights = []Right{
	{"execute", Execute, 1, true, "start no programs; reading them is another right"},
	{"write_file", WriteFile, 1, true, "open no file for writing"},
	{"read_file", ReadFile, 1, true, "open no file for reading"},
	{"read_dir", ReadDir, 1, false, "list no folder; what is in it may still be opened by its name"},
	{"remove_dir", RemoveDir, 1, false, "remove or rename no folder"},
	{"remove_file", RemoveFile, 1, false, "remove or rename nothing but folders"},
	{"make_char", MakeChar, 1, false, "make no door to a device"},
	{"make_dir", MakeDir, 1, false, "make no folder, and have none renamed to here"},
	{"make_reg", MakeReg, 1, false, "make no file, and have none renamed or linked to here"},
	{"make_sock", MakeSock, 1, false, "bind no unix socket to a name"},
	{"make_fifo", MakeFifo, 1, false, "make no named pipe"},
	{"make_block", MakeBlock, 1, false, "as make_char"},
	{"make_sym", MakeSym, 1, false, "make no symbolic link for others to walk into"},
	{"refer", Refer, 2, false, "keep files in the folder whose rules they were made under"},
	{"truncate", Truncate, 3, true, "empty no file; write_file does not stop truncate(2)"},
	{"ioctl_dev", IoctlDev, 5, true, "send devices no commands but the harmless ones of every file"},
}

// All are all rights that this package knows.
const All = IoctlDev<<1 - 1

// fileRights are those that a rule for a file may grant: for others the kernel
// refuses it.
var fileRights = mask(func(r Right) bool { return r.File })

func mask(want func(Right) bool) (a Access) {
	for _, r := range rights {
		if want(r) {
			a |= r.Bit
		}
	}
	return a
}

// Rights returns the table of rights.
func Rights() []Right { return append([]Right(nil), rights...) }

// String reads "read_file,truncate".
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
