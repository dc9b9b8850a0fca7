package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	seccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"

	"gaol/jail"
	"gaol/jail/cgroup"
	"gaol/jail/gateway"
	"gaol/jail/landlock"
	"gaol/jail/landlock/audit"
)

// systemCalls are calls that gaol requires and that some kernels still in use lack. They
// are called with arguments that have no effect: versions are unreliable, because
// distributions backport features.
var systemCalls = []struct {
	name  string
	since string
	try   func() error
}{
	{"openat2", "5.6", tryOpenat2},
	{"clone3", "5.7", tryClone3}, // with a cgroup as target, which is as old
	{"close_range with CLOEXEC", "5.11", tryCloseRange},
}

func tryOpenat2() error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &how)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func tryClone3() error {
	_, _, errno := unix.RawSyscall(unix.SYS_CLONE3, 0, 0, 0)
	if errno == unix.EINVAL { // it exists, and expects arguments
		return nil
	}
	return errno
}

func tryCloseRange() error {
	const none = 1<<32 - 1 // no descriptor has this number
	return unix.CloseRange(none, none, unix.CLOSE_RANGE_CLOEXEC)
}

func probeKernel(*examination) Check {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return missing("uname: "+err.Error(), "run gaol on Linux itself, not on an emulation of it")
	}
	version := unix.ByteSliceToString(name.Release[:])
	for _, c := range systemCalls {
		if err := c.try(); err != nil {
			return missing(fmt.Sprintf("%s: %s: %v", version, c.name, err),
				"boot a kernel of version "+c.since+" or later, best 6.1 or later; in a container, use a current runtime and libseccomp")
		}
	}
	return ok(version)
}

func probeSocketLists(*examination) Check {
	if err := jail.CheckSocketLists(); err != nil {
		return degraded(err.Error()+"; jails can have no network", "load the modules tcp_diag and udp_diag, or boot a kernel with CONFIG_INET_DIAG and CONFIG_INET_UDP_DIAG")
	}
	return ok("TCP and UDP")
}

func probeGateway(*examination) Check {
	if err := errors.Join(gateway.Probe(), cgroup.CheckIdentified()); err != nil {
		return degraded(err.Error()+"; no rule for external hosts can be used", "boot a kernel of version 5.9 or later with CONFIG_BPF_SYSCALL and CONFIG_CGROUP_BPF, mount cgroup v2, and give gaol CAP_BPF")
	}
	if text, err := os.ReadFile("/proc/sys/net/core/bpf_jit_enable"); err == nil && strings.TrimSpace(string(text)) == "0" {
		return ok("BPF sk_lookup, interpreted: sysctl net.core.bpf_jit_enable=1 makes connects faster")
	}
	return ok("BPF sk_lookup, compiled")
}

// Levels of libseccomp's API, as seccomp_api_get(3) lists them.
const (
	levelKillProcess = 3 // Linux 4.14
	levelUserNotify  = 5 // Linux 5.0
)

func probeSeccomp(*examination) Check {
	level, err := seccomp.GetAPI() // tries the kernel's features
	switch {
	case err != nil:
		return missing(err.Error(), "boot a kernel with CONFIG_SECCOMP=y and CONFIG_SECCOMP_FILTER=y")
	case level < levelKillProcess:
		return missing(fmt.Sprintf("API level %d, without the action kill_process", level), "boot a kernel with CONFIG_SECCOMP=y and CONFIG_SECCOMP_FILTER=y")
	case level < levelUserNotify:
		return degraded(fmt.Sprintf("API level %d, without the action user_notif", level), "boot a kernel of version 5.0 or later")
	}
	return ok(fmt.Sprintf("API level %d", level))
}

func probeLibseccomp(*examination) Check {
	major, minor, micro := seccomp.GetLibraryVersion()
	detail := fmt.Sprintf("version %d.%d.%d", major, minor, micro)
	if major < 2 || major == 2 && minor < 5 {
		return missing(detail+": it lacks system calls of current Node", "apt-get install libseccomp2, of version 2.5 or later")
	}
	return ok(detail)
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

func probeAudit(*examination) Check { return auditFinding(audit.Available()) }

// auditFinding is never a failure: logging is optional, and most machines disable it.
func auditFinding(err error) Check {
	if err == nil {
		return ok("on: Landlock denials can be reported")
	}
	return ok("Landlock denials cannot be reported: " + strings.TrimPrefix(err.Error(), "audit: "))
}

// filesV2 were added to cgroup v2 over time; gaol works without them, with less.
var filesV2 = []struct{ name, since, instead string }{
	{"cgroup.kill", "5.14", "a run is ended by killing its processes one by one"},
	{"memory.peak", "5.19", "the peak memory of a run is not known"},
	{"pids.peak", "6.1", "the peak number of a run's processes is not known"},
}

// checkFilesV2 looks for filesV2 in any group: the root group has none of them.
func checkFilesV2(version cgroup.Version) Check {
	detail := version.String() + ", with the controllers gaol uses"
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs") // fails only for an invalid pattern
	if version != cgroup.V2 || len(groups) == 0 {
		return ok(detail)
	}
	for _, f := range filesV2 {
		if found, _ := filepath.Glob("/sys/fs/cgroup/*/" + f.name); len(found) == 0 {
			return degraded(detail+", but no "+f.name+": "+f.instead, "boot a kernel of version "+f.since+" or later")
		}
	}
	return ok(detail)
}

func probeCgroup(x *examination) Check {
	version, err := cgroup.Detect()
	if err == nil {
		return checkFilesV2(version)
	}
	if m, isMissing := errors.AsType[*cgroup.MissingError](err); isMissing {
		return missing("no "+strings.Join(m.Controllers, ", ")+" below "+m.Path, m.Cure)
	}
	if r, readOnly := errors.AsType[*cgroup.ReadOnlyError](err); readOnly {
		err = fmt.Errorf("%s can't be written: %w", r.Path, r.Err)
	}
	if !x.root {
		return missing(err.Error(), "run gaol as root: sudo gaol ...")
	}
	return missing(err.Error(), "in a container, mount /sys/fs/cgroup writable (docker run --privileged --cgroupns=private)")
}
