package jail

import (
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
func makeMountPoints() error {
	for _, path := range mountPoints {
		if err := mkdirAll(filepath.Join(stageUpper, path)); err != nil {
			return err
		}
	}
	return nil
}

// mountDev mounts /dev and what is below it.
func mountDev(s *Spec, firstID int) error {
	const dev = stageRoot + "/dev"
	const noExec, noDev = unix.MS_NOSUID | unix.MS_NOEXEC, unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV
	if err := unix.Mount("tmpfs", dev, "tmpfs", noExec|unix.MS_STRICTATIME, "mode=755,size=64k"); err != nil {
		return err
	}
	if err := makeDevices(dev); err != nil {
		return err
	}
	for _, m := range []struct {
		name, fstype string
		flags        uintptr
		data         string
	}{
		{"pts", "devpts", noExec, fmt.Sprintf("newinstance,ptmxmode=0666,mode=0620,gid=%d,max=64", firstID+terminalGroup)},
		{"shm", "tmpfs", noDev, fmt.Sprintf("mode=1777,size=%d,nr_inodes=1024", s.Shm)},
	} {
		path := filepath.Join(dev, m.name)
		if err := mkdirAll(path); err != nil {
			return err
		}
		if err := unix.Mount(m.name, path, m.fstype, m.flags, m.data); err != nil {
			return &os.PathError{Op: "mount", Path: path, Err: err}
		}
	}
	return nil
}

// makeDevices makes nodes for this jail alone. Those of the host would be shared:
// a lock on them, or their times, would be seen from jail to jail.
func makeDevices(dir string) error {
	for _, d := range deviceTable {
		path := filepath.Join(dir, d.name)
		if err := unix.Mknod(path, unix.S_IFCHR, int(unix.Mkdev(d.major, d.minor))); err != nil {
			return &os.PathError{Op: "mknod", Path: path, Err: err}
		}
		if err := os.Chmod(path, 0o666); err != nil { // whatever the host's umask
			return err
		}
	}
	for _, l := range deviceLinks {
		if err := os.Symlink(l.target, filepath.Join(dir, l.name)); err != nil {
			return err
		}
	}
	return nil
}
