package mounts

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/hostcommand"
	"gaol/jail/kernel"
)

// makeGuestDirs makes the guest folders in the upper layer, where their owner replaces the
// owner of the image's folder of the same name. New parents belong to the guest's root.
func (s *Stage) makeGuestDirs() error {
	for _, d := range s.tree.Dirs {
		if err := checkGuestDir(d, s.tree.Protected); err != nil {
			return pathError(d, err)
		}
		path := filepath.Join(upperDir, d)
		if err := errors.Join(s.copyFolders(filepath.Dir(d)), mkdirAll(path, 0o755, s.rootID)); err != nil {
			return pathError(d, err)
		}
		if slices.Contains(s.tree.Sealed, d) {
			continue
		}
		if err := os.Lchown(path, s.guestUID(), s.guestGID()); err != nil {
			return err
		}
	}
	return nil
}

// openChanges opens the upper folder of a tree with OneOverlay. With Owned, the guest gets its folders and those of the
// layer, which would hide the owners of the image's.
func (s *Stage) openChanges() (err error) {
	if !s.tree.OneOverlay {
		return nil
	}
	for _, dir := range []string{layerDir, upperDir} {
		if !s.tree.Owned {
			break
		}
		err = errors.Join(err, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.IsDir() || slices.Contains(mountPoints, strings.TrimPrefix(path, dir)) {
				return err
			}
			return os.Lchown(path, s.guestUID(), s.guestGID())
		}))
	}
	if err == nil {
		s.Changes, err = kernfile.Open(upperDir, unix.O_RDONLY|unix.O_DIRECTORY)
	}
	return err
}

// checkGuestDir rejects a folder if its owner could replace a protected program, or if it
// would hide a file or a link of the image.
func checkGuestDir(dir string, protected []string) error {
	if err := checkNotProtected(dir, protected); err != nil {
		return err
	}
	for p := dir; p != "/"; p = filepath.Dir(p) {
		for _, layer := range []string{layerDir, imageDir} {
			info, err := os.Lstat(filepath.Join(layer, p))
			if err == nil && !info.IsDir() {
				err = &os.PathError{Op: "make", Path: p, Err: syscall.ENOTDIR}
			}
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// checkNotProtected rejects a path from which a protected program could be replaced.
func checkNotProtected(path string, protected []string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return &os.PathError{Op: "make", Path: path, Err: syscall.EINVAL}
	}
	for _, program := range protected {
		if path == "/" || strings.HasPrefix(program+"/", path+"/") {
			return &os.PathError{Op: "own", Path: path, Err: ErrProtected}
		}
	}
	return nil
}

// copyFolders makes a folder and its parents in the upper layer. Folders of the image keep
// their owner and mode: everyone may write to /tmp, above all.
func (s *Stage) copyFolders(dir string) error {
	if dir == "/" {
		return nil
	}
	if err := s.copyFolders(filepath.Dir(dir)); err != nil {
		return err
	}
	path := filepath.Join(upperDir, dir)
	if _, err := os.Lstat(path); err == nil {
		return nil // another guest folder
	}
	info, err := os.Lstat(filepath.Join(imageDir, dir))
	if errors.Is(err, os.ErrNotExist) {
		return mkdirAs(path, 0o755, s.rootID, s.rootID) // the folders above it exist
	}
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	return mkdirAs(path, info.Mode(), int(owner.Uid), int(owner.Gid))
}

// mkdirAll makes a folder and the missing ones above it for an owner.
func mkdirAll(path string, mode os.FileMode, id int) error {
	err := mkdirAs(path, mode, id, id)
	if errors.Is(err, os.ErrNotExist) {
		if err = mkdirAll(filepath.Dir(path), mode, id); err == nil {
			err = mkdirAs(path, mode, id, id)
		}
	}
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	return err
}

func mkdirAs(path string, mode os.FileMode, uid, gid int) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return errors.Join(os.Lchown(path, uid, gid), os.Chmod(path, mode))
}

// makeEmpty makes an empty file or folder, which belongs to the thread's user.
func makeEmpty(path string, folder bool, mode os.FileMode) error {
	if folder {
		return os.Mkdir(path, mode)
	}
	if err := unix.Mknod(path, unix.S_IFREG|uint32(mode&0o666), 0); err != nil {
		return &os.PathError{Op: "make", Path: path, Err: err}
	}
	return nil
}

// Device is a device node in /dev.
type Device struct {
	Name         string
	Major, Minor uint32
}

// Devices are the nodes in /dev. In addition to these and links, /dev has only pts and shm.
var Devices = []Device{
	{"null", 1, 3},
	{"zero", 1, 5},
	{"full", 1, 7},
	{"random", 1, 8},
	{"urandom", 1, 9},
	{"tty", 5, 0},
}

// deviceLinks are links that programs rely on.
var deviceLinks = []struct{ name, target string }{
	{"fd", "/proc/self/fd"},
	{"stdin", "/proc/self/fd/0"},
	{"stdout", "/proc/self/fd/1"},
	{"stderr", "/proc/self/fd/2"},
	{"ptmx", "pts/ptmx"},
}

const (
	terminalGroup = 5  // the group of terminals, as on Debian
	maxTerminals  = 64 // of a jail
)

// mountPoints are where file systems of the jail itself are mounted.
var mountPoints = []string{"/proc", "/dev"}

// makeMountPoints creates the mount points in the layer, also for the host's folders. They hide image files with the same
// paths: mounting on a symbolic link of the image could lead outside the tree.
func (s *Stage) makeMountPoints() error {
	dirs := append(slices.Clip(mountPoints), ProgramDir)
	if s.tree.Commands != nil {
		dirs = append(dirs, hostcommand.Dir)
	}
	for _, path := range dirs {
		if err := mkdirAll(filepath.Join(layerDir, path), 0o755, s.rootID); err != nil {
			return err
		}
	}
	return nil
}

// mountDev mounts /dev and the file systems below it. /dev and /dev/shm are parts of the
// staging tmpfs: each file system of a live jail slows down the removal of every cgroup on
// the machine, whose memory is removed from two lists for each.
func (s *Stage) mountDev() error {
	const dev, pts, shm = Root + "/dev", Root + "/dev/pts", Root + "/dev/shm"
	err := errors.Join(
		makeDevices(dev, s.rootID),
		mkdirAs(pts, 0o755, s.rootID, s.rootID),
		mkdirAs(shm, 0o777|os.ModeSticky, s.rootID, s.rootID),
		bindWithFlags(dev, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOEXEC, Attr_clr: unix.MOUNT_ATTR_NODEV}),
	)
	if err != nil {
		return err
	}
	data := fmt.Sprintf("newinstance,ptmxmode=0666,mode=0620,gid=%d", s.rootID+terminalGroup)
	if !kernel.Probe().Lacks(kernel.TerminalLimit) {
		data += fmt.Sprintf(",max=%d", maxTerminals)
	}
	if err := unix.Mount("pts", pts, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, data); err != nil {
		return &os.PathError{Op: "mount", Path: pts, Err: err}
	}
	return errors.Join(
		os.Lchown(pts, s.rootID, s.rootID),
		os.Chmod(pts, 0o755), // gVisor gives it the mode of terminals
		os.Lchown(pts+"/ptmx", s.rootID, s.rootID),
		bindWithFlags(shm, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NODEV}),
	)
}

// makeDevices makes nodes for this jail alone. The host's nodes would be shared: locks on
// them, and their times, would be visible from jail to jail.
func makeDevices(dir string, rootID int) error {
	for _, d := range Devices {
		path := filepath.Join(dir, d.Name)
		err := os.NewSyscallError("mknod", unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(d.Major, d.Minor))))
		if err := errors.Join(err, os.Lchown(path, rootID, rootID)); err != nil {
			return err
		}
	}
	for _, l := range deviceLinks {
		path := filepath.Join(dir, l.name)
		if err := errors.Join(os.Symlink(l.target, path), os.Lchown(path, rootID, rootID)); err != nil {
			return err
		}
	}
	return nil
}

// ProgramDir is the folder of the guest's tree with the main programs of runs: see
// [HostDir.WriteProgram]. The guest can enter it and not list it.
const ProgramDir = "/run/gaol"

// HostDir is a folder of the guest's tree in which the host can write: the guest's mount of it is
// read-only. The methods of a closed one fail with os.ErrClosed.
type HostDir struct {
	*os.Root
	dir   *os.File // the folder itself
	owner int      // host id of the guest's root
}

// Close closes the folder, which may be nil.
func (d *HostDir) Close() error {
	if d == nil {
		return nil
	}
	return errors.Join(d.dir.Close(), d.Root.Close())
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
// packages that the program finds. Each run waits for it, so it makes few system calls.
func (d *HostDir) WriteProgram(folder string, file File, packages string) error {
	return kernfile.Control(d.dir, func(dir int) error {
		if err := unix.Mkdirat(dir, folder, 0o755); err != nil {
			return err
		}
		fd, err := unix.Openat(dir, filepath.Join(folder, file.Path), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0)
		if err == nil {
			f := os.NewFile(uintptr(fd), file.Path)
			_, err = f.Write(file.Data)
			err = errors.Join(err, unix.Fchown(fd, d.owner, d.owner), unix.Fchmod(fd, uint32(file.Mode.Perm())), f.Close())
		}
		err = errors.Join(err, unix.Symlinkat(packages, dir, filepath.Join(folder, "node_modules")),
			unix.Fchmodat(dir, folder, 0o755, 0), unix.Fchownat(dir, folder, d.owner, d.owner, 0)) // the umask is the host's
		if err != nil {
			err = errors.Join(err, d.RemoveProgram(folder, file.Path))
		}
		return err
	})
}

// RemoveProgram removes what WriteProgram has made.
func (d *HostDir) RemoveProgram(folder, name string) error {
	return kernfile.Control(d.dir, func(dir int) error {
		return errors.Join(
			unix.Unlinkat(dir, filepath.Join(folder, name), 0),
			unix.Unlinkat(dir, filepath.Join(folder, "node_modules"), 0),
			unix.Unlinkat(dir, folder, unix.AT_REMOVEDIR),
		)
	})
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
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	dir, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	at := filepath.Join(overlayDir, path)
	err = errors.Join(os.Lchown(name, s.rootID, s.rootID), bind(name, at))
	if err == nil {
		err = setMountAttr(unix.AT_FDCWD, at, 0, unix.MountAttr{Attr_set: attrs})
	}
	return &HostDir{root, dir, s.rootID}, err
}

// readProgram reads a program of the image.
func (s *Stage) readProgram(path string, most int64) ([]byte, error) {
	f, err := s.OpenProgram(path, unix.O_RDONLY)
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
