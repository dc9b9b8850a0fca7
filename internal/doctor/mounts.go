package doctor

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"gaol/jail/mounts"
)

// mounted returns a probe that mounts a file system in a thread's mount namespace, which the kernel removes with the
// thread.
func mounted(cure string, mount func() error) func(*examination) Check {
	return asRoot(works(missing, cure+"; in a container, give it CAP_SYS_ADMIN (docker run --privileged)",
		func() error { return mounts.OutsideChroot(mount) }))
}

// scratchMount is where the probes mount: a folder that every system has. The mount
// covers it in the thread's mount namespace only.
const scratchMount = "/tmp"

// tryTmpfs mounts a tmpfs with limits, as a jail does.
//
// Preconditions: the thread has its own mount namespace.
func tryTmpfs() error {
	// private, so that no mount propagates to the host
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", scratchMount, "tmpfs", unix.MS_NOSUID, "size=1m,nr_inodes=64,mode=0755"); err != nil {
		return fmt.Errorf("mount tmpfs: %w", err)
	}
	return tryFile(scratchMount + "/file")
}

// tryOverlay mounts an overlay whose upper layer is a tmpfs, as a jail does.
//
// Preconditions: the thread has its own mount namespace.
func tryOverlay() error {
	if err := tryTmpfs(); err != nil {
		return err
	}
	for _, d := range []string{"lower", "upper", "work", "root"} {
		if err := os.Mkdir(scratchMount+"/"+d, 0o755); err != nil {
			return err
		}
	}
	root, options := scratchMount+"/root", "lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work"
	if err := unix.Mount("overlay", root, "overlay", 0, options); err != nil {
		return fmt.Errorf("mount overlay: %w", err)
	}
	return tryFile(root + "/file")
}

func tryFile(path string) error { return os.WriteFile(path, []byte("gaol\n"), 0o644) }

const rootCure = "start gaol outside the chroot, or make its folder the root of a mount namespace: " +
	"unshare -m sh -c 'mount --rbind DIR DIR && cd DIR && pivot_root . . && umount -l . && exec gaol ...'"

// probeRoot checks whether the root is that of the mount namespace. If it is not, jails
// work if a thread can leave the chroot.
func probeRoot(x *examination) Check {
	is, err := mounts.InChroot()
	if err != nil {
		return missing(err.Error(), "in a container, give it CAP_SYS_ADMIN and CAP_SYS_CHROOT (docker run --privileged)")
	}
	if !is {
		return ok("the mount namespace's own")
	}
	if err := mounts.OutsideChroot(func() error { return nil }); err != nil {
		return missing(err.Error(), rootCure)
	}
	x.chroot = true
	return ok("a chroot; jails mount outside it")
}
