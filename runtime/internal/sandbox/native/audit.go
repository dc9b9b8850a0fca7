package native

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/landlock/audit"
	"gaol/jail/seccomp/notify"
	"gaol/policy"
)

// auditLag is how long after a run's end its last records may arrive: a kernel thread
// delivers them, which takes some milliseconds.
const auditLag = 10 * time.Millisecond

// auditLog is this process's reader of the kernel's audit log, while it has users: sandboxes, and processes in them, whose
// last records may arrive after the sandbox is closed.
var auditLog struct {
	sync.Mutex
	reader *audit.Reader
	users  int
}

// openAudit opens the audit log. The error wraps errors.ErrUnsupported if the kernel or its
// configuration does not provide it. The caller must call closeAudit.
func openAudit() error {
	auditLog.Lock()
	defer auditLog.Unlock()
	if auditLog.users == 0 {
		reader, err := audit.Open()
		if _, ok := errors.AsType[*audit.UnavailableError](err); ok {
			return fmt.Errorf("%w: %w", err, errors.ErrUnsupported)
		}
		if err != nil {
			return err
		}
		auditLog.reader = reader
	}
	auditLog.users++
	return nil
}

// closeAudit releases the log. Its last user closes it.
func closeAudit() {
	auditLog.Lock()
	defer auditLog.Unlock()
	if auditLog.users--; auditLog.users == 0 {
		auditLog.reader.Close()
	}
}

// watchAudit calls report with the denials of a process, given its ID on the host. stop must be
// called after the process's end; it sleeps 10 ms.
func watchAudit(pid int, report func(policy.Denial)) (stop func()) {
	auditLog.Lock()
	defer auditLog.Unlock()
	if auditLog.users == 0 { // the sandbox was closed
		return func() {}
	}
	auditLog.users++
	unwatch := auditLog.reader.Watch(pid, func(d audit.Denial) { reportRecord(d, report) })
	return func() {
		time.Sleep(auditLag)
		unwatch()
		closeAudit()
	}
}

// operationOf maps the names of Landlock's rights in the audit log to operations.
var operationOf = map[string]struct {
	scope string
	op    policy.Operation
}{
	"fs.read_file":    {policy.FS, "read"},
	"fs.write_file":   {policy.FS, "write"},
	"fs.make_reg":     {policy.FS, "write"},
	"fs.make_sock":    {policy.FS, "write"},
	"fs.make_fifo":    {policy.FS, "write"},
	"fs.read_dir":     {policy.FS, "readdir"},
	"fs.make_dir":     {policy.FS, "create_dir"},
	"fs.remove_file":  {policy.FS, "rm"},
	"fs.remove_dir":   {policy.FS, "rm"},
	"fs.refer":        {policy.FS, "rename"},
	"fs.make_sym":     {policy.FS, "symlink"},
	"fs.truncate":     {policy.FS, "truncate"},
	"fs.execute":      {policy.FS, "execute"},
	"net.connect_tcp": {policy.Network, "connect"},
	"scope.signal":    {policy.Process, "signal"},
	"ptrace":          {policy.Process, "inspect"},
}

// reportRecord reports the denials in a record of the audit log.
func reportRecord(a audit.Denial, report func(policy.Denial)) {
	reported := map[policy.Operation]bool{} // a record can name several rights of one operation
	for _, blocker := range a.Blockers {
		what, known := operationOf[blocker]
		if !known || reported[what.op] {
			continue
		}
		reported[what.op] = true
		n := policy.Denial{Scope: what.scope, Operation: what.op, Target: a.Path, Source: policy.SourceAudit}
		switch what.scope {
		case policy.Network:
			n.Target = "tcp://" + a.Address.String()
			if at := a.Address.Addr(); !at.IsValid() || at.IsLoopback() { // as rules name it
				n.Target = fmt.Sprintf("tcp://localhost:%d", a.Address.Port())
			}
		case policy.Process:
			n.Target = "" // the record's process ID is the host's
		}
		report(n)
	}
}

// refused returns the denial of a system call that the filter refused.
func refused(c notify.Call) policy.Denial {
	n := policy.Denial{Target: c.Path, Source: policy.SourceSeccomp}
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
