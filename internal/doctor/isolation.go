package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kvm"
	"gaol/internal/ociruntime"
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
// The calling thread must have its own mount namespace.
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
// The calling thread must have its own mount namespace.
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
	return ok("a chroot; jails mount outside it")
}

// probeJail runs a program in the native isolation.
func probeJail(x *examination) Check {
	cure := "run gaol as root: sudo gaol doctor"
	if x.root {
		cure = "fix the missing features above; if there are none, this is a bug of gaol"
	}
	return x.run("native", cure)
}

// withOCI returns a probe that runs a program in a container of an OCI runtime.
func withOCI(name string) func(*examination) Check {
	return func(x *examination) Check {
		return optional(x.run(name, "install or repair "+name+", or use another isolation"))
	}
}

// probeGVisor finds runsc, and runs a program in gVisor.
func probeGVisor(x *examination) Check {
	path, err := ociruntime.FindRunsc()
	if err != nil {
		return optional(missing(err.Error(), "build runsc with make gvisor, and put it beside gaol, or use another isolation"))
	}
	version, err := runscVersion(x.ctx, path)
	if err != nil {
		return optional(missing(err.Error(), "build runsc again with make gvisor, or use another isolation"))
	}
	c := x.run("gvisor", "build the version of make gvisor, fix the missing features above, or use another isolation")
	c.Detail = version + ": " + c.Detail
	return optional(c)
}

// runscVersion returns the first line that runsc --version prints, such as "runsc version release-20260901.0".
func runscVersion(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	line, _, _ := strings.Cut(string(out), "\n")
	if err == nil && !strings.HasPrefix(line, "runsc version ") {
		err = errors.New("it is not gVisor's runsc")
	}
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", path, err)
	}
	return fmt.Sprintf("%.80s", strings.TrimSpace(line)), nil
}

// probeMicroVM finds QEMU, mkfs.erofs and a kernel, and runs a program in a virtual machine.
func probeMicroVM(x *examination) Check {
	if _, err := ociruntime.FindMachine(); err != nil {
		return optional(missing(err.Error(), "install qemu-system-x86 and erofs-utils, fetch the kernel with make microvm, and put its folder beside gaol, or use another isolation"))
	}
	c := x.run("microvm", "fix the missing features above, or use another isolation")
	if _, err := kvm.Probe(); err != nil {
		c.Detail = fmt.Sprintf("emulated, 10 to 20 times as slow as with KVM (%v): %s", err, c.Detail)
	}
	return optional(c)
}

// optional returns the result of a check of another isolation than the native one, to which the other checks apply: no result
// is a failure of the machine.
func optional(c Check) Check {
	if c.Status != OK {
		c.Status = Optional
	}
	return c
}

// run runs a program in an isolation.
func (x *examination) run(isolation, cure string) Check {
	switch {
	case x.options.Program == nil:
		return degraded("not tried", "run gaol doctor")
	case x.image == nil:
		return degraded("not tried: there is no image to run it in", "gaol image build, then gaol doctor again")
	}
	detail, err := x.options.Program(x.ctx, isolation)
	if err != nil {
		return missing(strings.TrimPrefix(err.Error(), "gaol: "), cure)
	}
	return ok(detail)
}
