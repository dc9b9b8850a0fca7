package kernel

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrFaults reports faults of gVisor that .ci/gvisor.patch corrects.
var ErrFaults = errors.New(`gVisor's runsc lacks corrections: build it with "make gvisor"`)

// CheckFaults returns an [ErrFaults] if the kernel follows symbolic links against O_NOFOLLOW, or changes files of read-only mounts.
//
// Preconditions: the process has CAP_SYS_ADMIN.
func CheckFaults() error {
	if fd, err := unix.Open("/proc/self", unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
		_ = unix.Close(fd) // nothing was written
		return fmt.Errorf("%w: opening a folder follows links", ErrFaults)
	}
	switch err := changeReadOnly(); {
	case err == nil:
		return fmt.Errorf("%w: files of read-only mounts can be changed", ErrFaults)
	case !errors.Is(err, unix.EROFS):
		return err
	}
	return nil
}

// changeReadOnly changes the mode of the root of a file system that is mounted read-only, at no path. Linux returns EROFS.
func changeReadOnly() error {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("fsopen", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return os.NewSyscallError("fsconfig", err)
	}
	root, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_RDONLY)
	if err != nil {
		return os.NewSyscallError("fsmount", err)
	}
	defer unix.Close(root)
	return unix.Fchmodat(root, ".", 0o700, 0)
}
