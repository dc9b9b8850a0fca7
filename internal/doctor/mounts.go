package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/jail/mounts"
)

// fileSystem is a type of file system that jails mount.
type fileSystem struct{ name, module, cure, why string }

var fileSystems = []fileSystem{
	{"tmpfs", "tmpfs", "boot a kernel with CONFIG_TMPFS=y", "store what guests write, within limits"},
	{"overlayfs", "overlay", "modprobe overlay, or boot a kernel with CONFIG_OVERLAY_FS", "layer the guest's files over the image"},
}

// probe mounts the file system in a child's mount namespace, which the kernel removes when
// the child exits.
func (f fileSystem) probe(x *examination) Check {
	err := x.runChild(f.name, unix.CLONE_NEWNS)
	if err == nil {
		return ok("mounted one and wrote to it")
	}
	detail := err.Error()
	if !x.root {
		return degraded(detail, "run gaol doctor as root to try it for real")
	}
	if errors.Is(err, unix.EPERM) || f.isKnown() {
		return missing(detail, "in a container, give it CAP_SYS_ADMIN (docker run --privileged)")
	}
	return missing(detail, f.cure)
}

// isKnown reports whether the kernel supports the file system.
func (f fileSystem) isKnown() bool {
	text, _ := os.ReadFile("/proc/filesystems") // its lines are "nodev", a tab and the name
	return strings.Contains(string(text), "\t"+f.module+"\n")
}

// scratchMount is where the children mount: a folder that every system has. The mount
// covers it in the child's mount namespace only.
const scratchMount = "/tmp"

// tryTmpfs mounts a tmpfs with limits, as a jail does.
//
// Precondition: the process has its own mount namespace.
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
// Precondition: the process has its own mount namespace.
func tryOverlay() error {
	if err := tryTmpfs(); err != nil {
		return err
	}
	if err := os.Chdir(scratchMount); err != nil {
		return err
	}
	for _, d := range []string{"lower", "upper", "work", "root"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("overlay", "root", "overlay", 0, "lowerdir=lower,upperdir=upper,workdir=work"); err != nil {
		return fmt.Errorf("mount overlay: %w", err)
	}
	return tryFile("root/file")
}

func tryFile(path string) error { return os.WriteFile(path, []byte("gaol\n"), 0o644) }

const rootCure = "start gaol outside the chroot, or make its folder the root of a mount namespace: " +
	"unshare -m sh -c 'mount --rbind DIR DIR && cd DIR && pivot_root . . && umount -l . && exec gaol ...'"

// probeRoot checks whether the root is that of the mount namespace. If it is not, jails
// work if a thread can leave the chroot.
func probeRoot(x *examination) Check {
	if !x.root {
		return degraded("can't be checked", "run gaol doctor as root")
	}
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
