package doctor

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/jail/kernel"
	"gaol/jail/landlock"
	"gaol/jail/landlock/audit"
)

// systemCalls are calls that gaol requires and that some kernels still in use lack. They
// are called with arguments that have no effect: versions are unreliable, because
// distributions backport features.
var systemCalls = []struct {
	name, since string
	number      uintptr
	a, b, c     uintptr // arguments; a fourth is 0
	want        unix.Errno
}{
	{"openat2", "5.6", unix.SYS_OPENAT2, 0, 0, 0, unix.EINVAL}, // because its last argument is the size of the third
	{"clone3", "5.7", unix.SYS_CLONE3, 0, 0, 0, unix.EINVAL},   // with a cgroup as target, which is as old
	{"close_range with CLOEXEC", "5.11", unix.SYS_CLOSE_RANGE, noDescriptor, noDescriptor, unix.CLOSE_RANGE_CLOEXEC, 0},
}

const noDescriptor = 1<<32 - 1

func probeKernel(x *examination) Check {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return missing("uname: "+err.Error(), "run gaol on Linux itself, not on an emulation of it")
	}
	version := unix.ByteSliceToString(name.Release[:])
	for _, c := range systemCalls {
		if _, _, errno := unix.RawSyscall6(c.number, c.a, c.b, c.c, 0, 0, 0); errno != c.want {
			return missing(fmt.Sprintf("%s: %s: %v", version, c.name, errno),
				"boot a kernel of version "+c.since+" or later, best 6.1 or later; in a container, use a current runtime and libseccomp")
		}
	}
	if _, err := kernel.Slow(); err != nil {
		return degraded(version+": "+err.Error(), "set it only on an emulated machine, where programs start slowly")
	}
	if lacking := kernel.Probe(); x.root && len(lacking) > 0 {
		version += fmt.Sprintf(" without %q", lacking)
	}
	return ok(version)
}

func probeLandlock(*examination) Check {
	abi, err := landlock.ABI()
	if none, ok := errors.AsType[*landlock.UnavailableError](err); ok {
		return degraded("none: "+none.Err.Error(), none.Cure)
	}
	return landlockFinding(abi)
}

// landlockABI is the last ABI that adds a restriction. The next one adds logging, which
// probeAudit checks.
const landlockABI = 6

// landlockFinding lists the missing ABIs, and the features of each.
func landlockFinding(abi int) Check {
	detail := fmt.Sprintf("ABI %d", abi)
	if abi >= landlockABI {
		return ok(detail)
	}
	versions := landlock.Versions()[:landlockABI]
	var lacking []string
	for _, v := range versions[abi:] {
		lacking = append(lacking, fmt.Sprintf("%s (ABI %d)", v.Adds, v.ABI))
	}
	return degraded(detail+" without "+strings.Join(lacking, ", "),
		"boot a kernel of version "+versions[landlockABI-1].Linux+" or later")
}

// probeAudit never fails: logging is optional, and most machines disable it.
func probeAudit(*examination) Check {
	if err := audit.Available(); err != nil {
		return ok("Landlock denials cannot be reported: " + strings.TrimPrefix(err.Error(), "audit: "))
	}
	return ok("on: Landlock denials can be reported")
}

func probeCgroup(x *examination) Check {
	version, err := cgroup.Detect()
	if err == nil {
		return ok(version.String() + ", with the controllers gaol uses")
	}
	if m, isMissing := errors.AsType[*cgroup.MissingError](err); isMissing {
		return missing("no "+strings.Join(m.Controllers, ", ")+" below "+m.Path, m.Cure)
	}
	if !x.root {
		return missing(err.Error(), "run gaol as root: sudo gaol ...")
	}
	return missing(err.Error(), "in a container, mount /sys/fs/cgroup writable (docker run --privileged --cgroupns=private)")
}
