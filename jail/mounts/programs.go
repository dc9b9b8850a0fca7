package mounts

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ProgramDir is the folder of the guest's tree with the main programs of runs: see
// [WriteProgram]. The guest can enter it and not list it.
const ProgramDir = "/run/gaol"

// Programs returns the folder of programs, in which the host can write: the guest's mount of it
// is read-only. The caller closes it.
//
// Preconditions: Mount has succeeded.
func (s *Stage) Programs() *os.File {
	dir := s.programs
	s.programs = nil
	return dir
}

// Attributes of the guest's mount of the folder of programs, and the bounds of its file system: those of 64
// runs at a time with the longest programs, or of thousands with short ones. A run has a folder, a file and a
// link.
const (
	programAttrs = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOEXEC

	maxProgramBytes  = 1 << 30
	maxProgramInodes = 1 << 15
)

// mountPrograms makes the folder of programs, a separate file system: it counts neither
// against the guest's disk, nor is it part of the guest's own tree. Nothing in it is executed.
func (s *Stage) mountPrograms() (err error) {
	options := fmt.Sprintf("mode=0711,size=%d,nr_inodes=%d", maxProgramBytes, maxProgramInodes)
	s.programs, err = s.mountHostDir(programDir, ProgramDir, programAttrs, options)
	return err
}

// WriteProgram makes the folder of that name in dir, with a file that everyone can read, and a
// link to the packages that the program finds. owner is the host's id of the guest's root.
func WriteProgram(dir *os.File, folder string, file File, packages string, owner int) (err error) {
	fd := int(dir.Fd())
	if err := unix.Mkdirat(fd, folder, 0o755); err != nil {
		return os.NewSyscallError("mkdir", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, RemoveProgram(dir, folder, file.Path))
		}
	}()
	at, err := unix.Openat(fd, folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open", err)
	}
	defer unix.Close(at)
	if err := unix.Fchmodat(fd, folder, 0o755, 0); err != nil { // the umask is the host's
		return os.NewSyscallError("chmod", err)
	}
	if err := unix.Symlinkat(packages, at, packagesLink); err != nil {
		return os.NewSyscallError("symlink", err)
	}
	to, err := unix.Openat(at, file.Path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, uint32(file.Mode))
	if err != nil {
		return &os.PathError{Op: "open", Path: file.Path, Err: err}
	}
	f := os.NewFile(uintptr(to), file.Path)
	_, err = f.Write(file.Data)
	return errors.Join(err, f.Chmod(file.Mode), f.Chown(owner, owner), f.Close(),
		unix.Fchownat(fd, folder, owner, owner, unix.AT_SYMLINK_NOFOLLOW))
}

const packagesLink = "node_modules"

// RemoveProgram removes what WriteProgram has made.
func RemoveProgram(dir *os.File, folder, file string) error {
	fd := int(dir.Fd())
	for _, name := range []string{file, packagesLink} {
		if err := unix.Unlinkat(fd, folder+"/"+name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return os.NewSyscallError("unlink", err)
		}
	}
	return os.NewSyscallError("rmdir", unix.Unlinkat(fd, folder, unix.AT_REMOVEDIR))
}
