package native

import (
	"fmt"

	"golang.org/x/sys/unix"

	"gaol/jail/seccomp/notify"
	"gaol/policy"
	"gaol/runtime/internal/sandbox"
)

// refused returns the denial of a system call that the filter refused.
func refused(c notify.Call) sandbox.Denial {
	n := sandbox.Denial{Target: c.Path, Source: sandbox.Seccomp}
	switch c.Label {
	case "spawn":
		n.Scope, n.Operation = policy.ChildProcess, "spawn"
	case "signal":
		n.Scope, n.Operation = policy.Process, "signal"
	case "chmod", "rename", "readdir":
		n.Scope, n.Operation = policy.FS, policy.Operation(c.Label)
	case "fast open":
		n.Scope, n.Operation = policy.Network, "connect"
	default:
		n.Scope, n.Operation, n.Target = policy.Network, "socket", socketName(c)
	}
	return n
}

// socketName returns the family and type that a guest passed to socket(2) or
// socketpair(2), as the manual pages write them, such as "AF_INET SOCK_STREAM".
func socketName(c notify.Call) string {
	const families = 0xffff_ffff // of an int
	family, ok := map[uint64]string{
		unix.AF_INET: "AF_INET", unix.AF_INET6: "AF_INET6", unix.AF_UNIX: "AF_UNIX",
	}[c.Args[0]&families]
	if c.Nr != unix.SYS_SOCKET && c.Nr != unix.SYS_SOCKETPAIR || !ok {
		return ""
	}
	const types = 0xf // the rest are flags
	kind, ok := map[uint64]string{unix.SOCK_STREAM: "SOCK_STREAM", unix.SOCK_DGRAM: "SOCK_DGRAM", unix.SOCK_RAW: "SOCK_RAW"}[c.Args[1]&types]
	if !ok {
		kind = fmt.Sprint(c.Args[1] & types)
	}
	return family + " " + kind
}
