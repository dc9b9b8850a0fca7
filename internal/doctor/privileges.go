package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"gaol/jail/mounts"

	"golang.org/x/sys/unix"
)

func isRoot() bool { return os.Geteuid() == 0 }

// capabilities are required, but root may lack them in a container with a reduced set. Capabilities that
// gaol uses only in the jail's user namespace are not listed: the creator of a user
// namespace has all capabilities in it.
var capabilities = []struct {
	name string
	bit  int
	why  string
}{
	{"SYS_ADMIN", unix.CAP_SYS_ADMIN, "namespaces and mounts"},
	{"CHOWN", unix.CAP_CHOWN, "give the guest its folders"},
	{"DAC_OVERRIDE", unix.CAP_DAC_OVERRIDE, "enter folders that belong to the guest"},
	{"FOWNER", unix.CAP_FOWNER, "change modes of the guest's files"},
	{"KILL", unix.CAP_KILL, "end the guest's processes"},
	{"MKNOD", unix.CAP_MKNOD, "make the guest's /dev"},
	{"SYS_CHROOT", unix.CAP_SYS_CHROOT, "enter mount namespaces"},
	{"SETUID", unix.CAP_SETUID, "map user ids"},
	{"SETGID", unix.CAP_SETGID, "map group ids"},
}

func probePrivileges(x *examination) Check {
	if !x.root {
		return missing(fmt.Sprintf("user id %d", os.Geteuid()), "run gaol as root: sudo gaol ...")
	}
	have, err := effectiveCapabilities()
	if err != nil {
		return degraded("root; capabilities unknown: "+err.Error(), "mount -t proc proc /proc")
	}
	var lacking []string
	for _, c := range capabilities {
		if have&(1<<c.bit) == 0 {
			lacking = append(lacking, "CAP_"+c.name+" ("+c.why+")")
		}
	}
	if lacking != nil {
		return missing("root without "+strings.Join(lacking, ", "),
			"start the container with these capabilities (docker run --privileged)")
	}
	return ok("root, with every capability gaol uses")
}

// effectiveCapabilities reads the set of this process.
func effectiveCapabilities() (uint64, error) {
	var data [2]unix.CapUserData // version 3 has 64 bits in two halves
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]); err != nil {
		return 0, fmt.Errorf("capget: %w", err)
	}
	return uint64(data[1].Effective)<<32 | uint64(data[0].Effective), nil
}

// namespace is a kind of namespace that a jail uses.
type namespace struct {
	name   string
	flag   uintptr
	sysctl string // its name in /proc/sys/user
	config string // the kernel option that enables it
	why    string
}

var namespaces = []namespace{
	{"user", unix.CLONE_NEWUSER, "user", "CONFIG_USER_NS", "give guests ids that no host user has"},
	{"pid", unix.CLONE_NEWPID, "pid", "CONFIG_PID_NS", "hide processes and kill them"},
	{"mount", unix.CLONE_NEWNS, "mnt", "", "give guests a separate file tree"}, // every kernel supports it
	{"network", unix.CLONE_NEWNET, "net", "CONFIG_NET_NS", "give guests no network"},
	{"ipc", unix.CLONE_NEWIPC, "ipc", "CONFIG_IPC_NS", "share no memory with the host"},
	{"uts", unix.CLONE_NEWUTS, "uts", "CONFIG_UTS_NS", "give guests a separate host name"},
	{"cgroup", unix.CLONE_NEWCGROUP, "cgroup", "CONFIG_CGROUPS", "hide the host's cgroups"},
}

// probe creates the namespace.
func (n namespace) probe(x *examination) Check {
	try := func() error { return tryNamespace(n.flag) }
	err := try()
	if chroot, _ := mounts.InChroot(); chroot { // the kernel makes no user namespaces there
		err = mounts.OutsideChroot(try)
	}
	if err != nil {
		return missing(err.Error(), n.cure(err))
	}
	if x.root {
		return ok("made one")
	}
	return ok("made one, inside a user namespace")
}

// noProgram is a name that execve(2) rejects with an error that clone(2) does not have.
var noProgram = "/" + strings.Repeat("x", unix.NAME_MAX+1)

// tryNamespace makes a process in a new namespace, which ends because it has no program. Without root
// it also creates a user namespace, which grants the right to create the others.
func tryNamespace(flags uintptr) error {
	if !isRoot() {
		flags |= unix.CLONE_NEWUSER
	}
	attributes := &syscall.SysProcAttr{Cloneflags: flags}
	if flags&unix.CLONE_NEWUSER != 0 {
		attributes.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	_, err := os.StartProcess(noProgram, nil, &os.ProcAttr{Sys: attributes})
	switch err = errors.Unwrap(err); {
	case errors.Is(err, unix.ENAMETOOLONG):
		return nil
	case err == nil:
		return errors.New("the process has a program")
	}
	return err
}

// cure explains the error by the list in clone(2).
func (n namespace) cure(err error) string {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return "run as root; in a container, give it CAP_SYS_ADMIN and a seccomp profile that allows clone (docker run --privileged)"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EUSERS):
		return "sysctl -w user.max_" + n.sysctl + "_namespaces=65536"
	case errors.Is(err, unix.EINVAL) && n.config != "":
		return "boot a kernel with " + n.config + "=y"
	}
	return "boot a newer kernel; in a container, docker run --privileged"
}
