package mounts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

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

// makeMountPoints makes them in the upper layer, where they hide the image's files at these
// paths: a link there would lead out of the tree when the host mounts something.
func (s *Stage) makeMountPoints() error {
	for _, path := range mountPoints {
		if err := mkdirAll(filepath.Join(upperDir, path), 0o755, s.rootID); err != nil {
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
