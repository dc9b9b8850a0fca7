package jail

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// deviceTable is all that there is in /dev besides pts and shm.
var deviceTable = []struct {
	name         string
	major, minor uint32
}{
	{"null", 1, 3},
	{"zero", 1, 5},
	{"full", 1, 7},
	{"random", 1, 8},
	{"urandom", 1, 9},
	{"tty", 5, 0},
}

// deviceLinks are the links that programs rely on.
var deviceLinks = []struct{ name, target string }{
	{"fd", "/proc/self/fd"},
	{"stdin", "/proc/self/fd/0"},
	{"stdout", "/proc/self/fd/1"},
	{"stderr", "/proc/self/fd/2"},
	{"ptmx", "pts/ptmx"},
}

const terminalGroup = 5 // the owner of terminals, as on Debian

// mountPoints are for what is made for the jail, and no part of its tree.
var mountPoints = []string{"/proc", "/dev"}

func isMountPoint(path string) bool { return slices.Contains(mountPoints, path) }

// makeMountPoints makes them in the upper layer, where they cover what the image may
// have by their names: a link there would lead the host out of the tree.
func makeMountPoints(root int) error {
	for _, path := range mountPoints {
		if err := mkdirAll(filepath.Join(stageUpper, path), root); err != nil {
			return err
		}
	}
	return nil
}

// mountDev makes /dev and what is below it. It is part of the staging tmpfs, as /dev/shm
// is: each file system of a live jail makes the end of every cgroup on the machine
// slower, whose memory is taken out of two lists for each.
func mountDev(firstID int) error {
	const dev = stageRoot + "/dev"
	if err := makeDevices(dev, firstID); err != nil {
		return err
	}
	for _, folder := range []string{"pts", "shm"} {
		if err := mkdirAll(filepath.Join(dev, folder), firstID); err != nil {
			return err
		}
	}
	if err := os.Chmod(dev+"/shm", 0o777|os.ModeSticky); err != nil {
		return err
	}
	if err := remount(dev, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOEXEC, Attr_clr: unix.MOUNT_ATTR_NODEV}); err != nil {
		return err
	}
	data := fmt.Sprintf("newinstance,ptmxmode=0666,mode=0620,gid=%d,max=64", firstID+terminalGroup)
	if err := unix.Mount("pts", dev+"/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, data); err != nil {
		return &os.PathError{Op: "mount", Path: dev + "/pts", Err: err}
	}
	if err := errors.Join(os.Lchown(dev+"/pts", firstID, firstID), os.Lchown(dev+"/pts/ptmx", firstID, firstID)); err != nil {
		return err
	}
	return remount(dev+"/shm", unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NODEV})
}

// remount mounts a folder on itself, with other flags.
func remount(path string, attr unix.MountAttr) error {
	if err := bindAgain(path); err != nil {
		return err
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &attr); err != nil {
		return &os.PathError{Op: "mount", Path: path, Err: os.NewSyscallError("mount_setattr", err)}
	}
	return nil
}

// makeDevices makes nodes for this jail alone. Those of the host would be shared:
// a lock on them, or their times, would be seen from jail to jail.
func makeDevices(dir string, root int) error {
	for _, d := range deviceTable {
		path := filepath.Join(dir, d.name)
		if err := unix.Mknod(path, unix.S_IFCHR, int(unix.Mkdev(d.major, d.minor))); err != nil {
			return &os.PathError{Op: "mknod", Path: path, Err: err}
		}
		if err := errors.Join(os.Chmod(path, 0o666), os.Lchown(path, root, root)); err != nil { // whatever the host's umask
			return err
		}
	}
	for _, l := range deviceLinks {
		path := filepath.Join(dir, l.name)
		if err := errors.Join(os.Symlink(l.target, path), os.Lchown(path, root, root)); err != nil {
			return err
		}
	}
	return nil
}
