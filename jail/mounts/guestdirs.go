package mounts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/jail/hostcommand"
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
	if path == "." {
		return nil
	}
	if err := mkdirAll(filepath.Dir(path), mode, id); err != nil {
		return err
	}
	err := mkdirAs(path, mode, id, id)
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

// makeMountPoints makes them, and those of the folders of the host, in the layer, where they hide the image's files at
// these paths: a link there would lead out of the tree when the host mounts something.
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
	data := fmt.Sprintf("newinstance,ptmxmode=0666,mode=0620,gid=%d,max=%d", s.rootID+terminalGroup, maxTerminals)
	if err := unix.Mount("pts", pts, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, data); err != nil {
		return &os.PathError{Op: "mount", Path: pts, Err: err}
	}
	return errors.Join(
		os.Lchown(pts, s.rootID, s.rootID),
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
