package mounts

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// LeaveChroot replaces the root of the thread's mount namespace by the thread's root, if the two
// differ. It unmounts everything else in that namespace and sets the working directory to
// the root.
//
// Preconditions: the thread is locked to its goroutine and does not share its mount
// namespace and file system attributes (CLONE_NEWNS, CLONE_FS).
func LeaveChroot() error {
	old, err := enterRoot()
	if old == nil {
		return err
	}
	defer old.Close()
	if err := replaceRoot(old); err != nil {
		return fmt.Errorf("cannot leave the chroot that this process runs in: %w; start it outside of the chroot, or make its folder the root by pivot_root(8)", err)
	}
	return nil
}

// OutsideChroot calls f on a thread that has left the chroot, in a new mount namespace.
func OutsideChroot(f func() error) error {
	return onThread(unix.CLONE_NEWNS|unix.CLONE_FS, func() error {
		if err := LeaveChroot(); err != nil {
			return err
		}
		return f()
	})
}

// InChroot reports whether this process is in a chroot. It needs the same privileges as
// LeaveChroot.
func InChroot() (in bool, err error) {
	err = onThread(unix.CLONE_FS, func() error {
		old, err := enterRoot()
		in = old != nil
		old.Close() // may be nil
		return err
	})
	return in, err
}

// onThread calls f on a new thread that has called unshare(2) with flags.
func onThread(flags int, f func() error) error {
	return kernfile.OnThread(func() error {
		if err := os.NewSyscallError("unshare", unix.Unshare(flags)); err != nil {
			return err
		}
		return f()
	})
}

// enterRoot changes the thread's root to its mount namespace's root, a side effect of
// setns(2). It returns the old root, or nil if the root has not changed.
func enterRoot() (old *os.File, err error) {
	own, err := kernfile.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer own.Close()
	if old, err = kernfile.Open("/", unix.O_PATH); err != nil {
		return nil, err
	}
	same := false
	if err = os.NewSyscallError("setns", unix.Setns(int(own.Fd()), unix.CLONE_NEWNS)); err == nil {
		same, err = isRoot(old)
	}
	if err != nil || same {
		old.Close()
		return nil, err
	}
	return old, nil
}

// isRoot reports whether f is the thread's root.
func isRoot(f *os.File) (bool, error) {
	const mask = unix.STATX_MNT_ID | unix.STATX_INO
	var is, root unix.Statx_t
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, mask, &is); err != nil {
		return false, os.NewSyscallError("statx", err)
	}
	if err := unix.Statx(unix.AT_FDCWD, "/", 0, mask, &root); err != nil {
		return false, os.NewSyscallError("statx", err)
	}
	return is.Mnt_id == root.Mnt_id && is.Ino == root.Ino, nil
}

// replaceRoot replaces the namespace's tree by a copy of the tree below root.
func replaceRoot(root *os.File) error {
	// Slave: mounts made here must not propagate to other namespaces.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return &os.PathError{Op: "mount", Path: "/", Err: err}
	}
	const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH | unix.AT_RECURSIVE
	fd, err := unix.OpenTree(int(root.Fd()), "", flags)
	if err == unix.EINVAL { // older kernels such as 6.1 leave an unbindable mount unbindable
		_ = unix.MountSetattr(int(root.Fd()), "", unix.AT_EMPTY_PATH, &unix.MountAttr{Propagation: unix.MS_PRIVATE})
		fd, err = unix.OpenTree(int(root.Fd()), "", flags)
	}
	if err != nil {
		return os.NewSyscallError("open_tree", err)
	}
	defer unix.Close(fd)
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, "/", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return os.NewSyscallError("move_mount", err)
	}
	if err := unix.Fchdir(fd); err != nil {
		return os.NewSyscallError("fchdir", err)
	}
	return PivotRoot()
}

// PivotRoot makes the working directory, which must be a mount, the root of the thread's mount
// namespace, and unmounts everything that is not below it.
func PivotRoot() error {
	if err := unix.PivotRoot(".", "."); err != nil { // stacks the old root on the new one: pivot_root(2)
		return os.NewSyscallError("pivot_root", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return os.NewSyscallError("umount2", err)
	}
	return os.NewSyscallError("chdir", unix.Chdir("/"))
}
