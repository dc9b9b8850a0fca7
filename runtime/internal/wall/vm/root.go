package vm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/internal/kvm"
	"gaol/jail/mounts"
)

// Names in QEMU's root directory.
const (
	kernelName    = "/kernel"
	initramfsName = "/initramfs"
)

// diskName is the file and the serial number of the nth disk.
func diskName(n int) string { return "image" + strconv.Itoa(n) }

// makeRoot makes a root directory for QEMU, read-only and in memory, in a mount namespace of this thread: the programs and libraries of the
// host, and the machine's files.
//
// Preconditions: the thread ends with its goroutine, after QEMU.
func makeRoot(dir string, f *files, emulated bool) error {
	if !strings.HasPrefix(f.qemu, "/usr/") {
		return fmt.Errorf("program %s is not below /usr, where its libraries must be", f.qemu)
	}
	if err := mounts.Unshare(); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	const safe = unix.MS_NOSUID | unix.MS_NODEV
	if err := unix.Mount("tmpfs", dir, "tmpfs", safe, "mode=755"); err != nil {
		return os.NewSyscallError("mount", err)
	}
	list := map[string]string{"/usr": "/usr", kernelName: f.kernel}
	for i, disk := range f.disks {
		list["/"+diskName(i)] = disk
	}
	for at, source := range list {
		if err := bind(dir+at, source, safe|unix.MS_RDONLY); err != nil {
			return err
		}
	}
	if !emulated {
		if err := bind(dir+kvm.Device, kvm.Device, unix.MS_NOSUID|unix.MS_NOEXEC); err != nil {
			return err
		}
	}
	for _, name := range []string{"/lib", "/lib64"} { // of the loader of programs
		if err := showLibraries(dir, name, safe|unix.MS_RDONLY); err != nil {
			return err
		}
	}
	if err := writeInitramfs(dir+initramfsName, f.modules, f.gaol); err != nil {
		return err
	}
	return os.NewSyscallError("mount", unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY|safe, ""))
}

// showLibraries shows a folder, which is a link into /usr on most systems.
func showLibraries(dir, name string, flags uintptr) error {
	target, err := os.Readlink(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, unix.EINVAL):
		return bind(dir+name, name, flags)
	case err != nil:
		return err
	}
	return os.Symlink(target, dir+name)
}

// bind mounts a file or a folder at a path, which it makes.
func bind(at, source string, flags uintptr) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.MkdirAll(at, 0o755)
	} else if err = os.MkdirAll(path.Dir(at), 0o755); err == nil {
		err = os.WriteFile(at, nil, 0o600)
	}
	if err == nil {
		err = unix.Mount(source, at, "", unix.MS_BIND, "")
	}
	if err == nil {
		err = unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|flags, "")
	}
	if err != nil {
		return fmt.Errorf("show %s: %w", source, err)
	}
	return nil
}
