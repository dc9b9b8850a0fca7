package doctor

import (
	"errors"

	"golang.org/x/sys/unix"
)

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
	{"mount", unix.CLONE_NEWNS, "mnt", "", "give guests a file tree of their own"}, // every kernel supports it
	{"network", unix.CLONE_NEWNET, "net", "CONFIG_NET_NS", "give guests no network"},
	{"ipc", unix.CLONE_NEWIPC, "ipc", "CONFIG_IPC_NS", "share no memory with the host"},
	{"uts", unix.CLONE_NEWUTS, "uts", "CONFIG_UTS_NS", "give guests a host name of their own"},
	{"cgroup", unix.CLONE_NEWCGROUP, "cgroup", "CONFIG_CGROUPS", "hide the host's cgroups"},
}

// probe creates the namespace.
func (n namespace) probe(x *examination) Check {
	err := x.runChild("namespace", n.flag)
	if err == nil && x.root {
		return ok("made one")
	}
	if err == nil {
		return ok("made one, inside a user namespace")
	}
	return missing(err.Error(), n.cure(err))
}

// cure explains the error by the list in clone(2).
func (n namespace) cure(err error) string {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return "run as root; in a container, give it CAP_SYS_ADMIN and a seccomp profile that allows clone " +
			"(docker run --privileged); on Ubuntu, sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EUSERS):
		return "sysctl -w user.max_" + n.sysctl + "_namespaces=65536"
	case errors.Is(err, unix.EINVAL) && n.config != "":
		return "boot a kernel with " + n.config + "=y"
	}
	return "boot a newer kernel; in a container, docker run --privileged"
}
