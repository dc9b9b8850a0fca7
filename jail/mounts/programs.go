package mounts

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"gaol/jail/hostcommand"
)

// ProgramDir is the folder of the guest's tree with the main programs of runs: see
// [HostDir.WriteProgram]. The guest can enter it and not list it.
const ProgramDir = "/run/gaol"

// HostDir is a folder of the guest's tree in which the host can write: the guest's mount of it is
// read-only. The methods of a closed one fail with os.ErrClosed.
type HostDir struct {
	*os.Root
	owner int // host id of the guest's root
}

// Close closes the folder, which may be nil.
func (d *HostDir) Close() error {
	if d == nil {
		return nil
	}
	return d.Root.Close()
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
	s.Programs, err = s.mountHostDir(programDir, ProgramDir, programAttrs, options)
	return err
}

// WriteProgram makes the folder of that name, with a file that everyone can read, and a link to the
// packages that the program finds. [os.Root.RemoveAll] removes it.
func (d *HostDir) WriteProgram(folder string, file File, packages string) error {
	if err := d.Mkdir(folder, 0o755); err != nil {
		return err
	}
	name := filepath.Join(folder, file.Path)
	err := errors.Join(
		d.Symlink(packages, filepath.Join(folder, "node_modules")),
		d.WriteFile(name, file.Data, file.Mode),
		d.Chmod(name, file.Mode), d.Chmod(folder, 0o755), // the umask is the host's
		d.Lchown(name, d.owner, d.owner), d.Lchown(folder, d.owner, d.owner),
	)
	if err != nil {
		err = errors.Join(err, d.RemoveAll(folder))
	}
	return err
}

// MaxCommands bounds the commands of a jail.
const MaxCommands = 1024

// AddCommand adds a command to the folder of commands, if it lacks it.
func (d *HostDir) AddCommand(name string) error {
	err := d.Link(hostcommand.Program, name)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	return err
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
	if s.Commands, err = s.mountHostDir(commandDir, hostcommand.Dir, unix.MOUNT_ATTR_RDONLY, options); err != nil {
		return err
	}
	program := filepath.Join(commandDir, hostcommand.Program)
	err = errors.Join(os.WriteFile(program, text, 0o755), os.Lchown(program, s.rootID, s.rootID))
	for _, name := range s.tree.Commands {
		err = errors.Join(err, s.Commands.AddCommand(name))
	}
	return err
}

// mountHostDir makes a file system, mounts it with attributes at a guest path in the overlay, and
// returns its folder, in which the host can write. Only the host's root can change its files.
func (s *Stage) mountHostDir(name, path string, attrs uint64, options string) (*HostDir, error) {
	if err := unix.Mount("tmpfs", name, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	at := filepath.Join(overlayDir, path)
	err = errors.Join(os.Lchown(name, s.rootID, s.rootID), bind(name, at))
	if err == nil {
		err = setMountAttr(unix.AT_FDCWD, at, 0, unix.MountAttr{Attr_set: attrs})
	}
	return &HostDir{dir, s.rootID}, err
}

// readProgram reads a program of the image.
func (s *Stage) readProgram(path string, most int64) ([]byte, error) {
	f, err := s.openProgram(path, unix.O_RDONLY)
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
