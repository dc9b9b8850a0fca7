package mounts

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/jail/hostcommand"
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

// Attributes of the guest's mount of the folder of programs, and the limits of its file system: enough for 64
// concurrent runs with the longest programs, or for thousands with short ones. Each run takes a folder, a file
// and a link.
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

// RemoveProgram removes the files of WriteProgram.
func RemoveProgram(dir *os.File, folder, file string) error {
	fd := int(dir.Fd())
	for _, name := range []string{file, packagesLink} {
		if err := unix.Unlinkat(fd, folder+"/"+name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return os.NewSyscallError("unlink", err)
		}
	}
	return os.NewSyscallError("rmdir", unix.Unlinkat(fd, folder, unix.AT_REMOVEDIR))
}

// MaxCommands bounds the commands of a jail.
const MaxCommands = 1024

// Commands returns the folder of commands, in which the host can make further ones with
// [AddCommand]: the guest's mount of it is read-only. It is nil without Tree.Commands. The
// caller closes it.
//
// Preconditions: Mount has succeeded.
func (s *Stage) Commands() *os.File {
	dir := s.commands
	s.commands = nil
	return dir
}

// AddCommand adds a command to the folder, if it lacks it.
func AddCommand(dir *os.File, name string) error {
	fd := int(dir.Fd())
	err := unix.Linkat(fd, hostcommand.Program, fd, name, 0)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return os.NewSyscallError("link", err)
}

// mountCommands makes the folder of commands, a separate file system, and mounts it
// read-only in the overlay. Each command is a hard link to a copy of the image's program.
func (s *Stage) mountCommands() (err error) {
	if s.tree.Commands == nil {
		return nil
	}
	text, err := s.readProgram(hostcommand.Path, hostcommand.MaxSize)
	if err != nil {
		return err
	}
	options := fmt.Sprintf("mode=0755,size=%d,nr_inodes=%d", 2*hostcommand.MaxSize, MaxCommands+4) // tmpfs counts names as inodes
	if s.commands, err = s.mountHostDir(commandDir, hostcommand.Dir, unix.MOUNT_ATTR_RDONLY, options); err != nil {
		return err
	}
	program := filepath.Join(commandDir, hostcommand.Program)
	err = errors.Join(os.WriteFile(program, text, 0o755), os.Lchown(program, s.rootID, s.rootID))
	for _, name := range s.tree.Commands {
		err = errors.Join(err, AddCommand(s.commands, name))
	}
	return err
}

// mountHostDir makes a file system, mounts it with attributes at a guest path in the overlay, and
// returns its folder, in which the host can write. Only the host's root can change its files.
func (s *Stage) mountHostDir(name, path string, attrs uint64, options string) (*os.File, error) {
	if err := unix.Mount("tmpfs", name, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return nil, err
	}
	dir, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	at := filepath.Join(overlayDir, path)
	err = errors.Join(os.Lchown(name, s.rootID, s.rootID), bind(name, at))
	if err == nil {
		err = setMountAttr(unix.AT_FDCWD, at, 0, unix.MountAttr{Attr_set: attrs})
	}
	return dir, err
}

// ErrNoCommands is wrapped by the error for an image without the program of commands.
var ErrNoCommands = errors.New("the image was made by a gaol without commands: make it again")

// readProgram reads a program of the image.
func (s *Stage) readProgram(path string, most int64) ([]byte, error) {
	f, err := s.openProgram(path, unix.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		err = ErrNoCommands
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = unix.EFBIG
	}
	return text, err
}

// makeHostDirs makes the mount points of the host's folders in the layer.
func (s *Stage) makeHostDirs() error {
	dirs := []string{ProgramDir}
	if s.tree.Commands != nil {
		dirs = append(dirs, hostcommand.Dir)
	}
	for _, dir := range dirs {
		if err := mkdirAll(filepath.Join(layerDir, strings.TrimPrefix(dir, "/")), 0o755, s.rootID); err != nil {
			return err
		}
	}
	return nil
}
