package runtime

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"gaol/jail/landlock/audit"
	"gaol/policy"
)

// auditLag is how long after a run's end its last records are waited for: the kernel
// hands them out by a thread of its own, which takes some milliseconds.
const auditLag = 10 * time.Millisecond

// auditing is this process's reader of the kernel's audit, while a runtime has it.
var auditing struct {
	sync.Mutex
	reader  *audit.Reader
	holders int
}

func holdAudit() (*audit.Reader, error) {
	auditing.Lock()
	defer auditing.Unlock()
	if auditing.holders == 0 {
		reader, err := audit.Open()
		if _, ok := errors.AsType[*audit.UnavailableError](err); ok {
			return nil, optionError("AuditDenials", "%w: %w", err, ErrUnsupported)
		}
		if err != nil {
			return nil, optionError("AuditDenials", "%w", err)
		}
		auditing.reader = reader
	}
	auditing.holders++
	return auditing.reader, nil
}

func releaseAudit() error {
	auditing.Lock()
	defer auditing.Unlock()
	if auditing.holders--; auditing.holders > 0 {
		return nil
	}
	return auditing.reader.Close()
}

// listen has d told what the audit says of a run. stop is to be called after its end.
func (rt *NodeRuntime) listen(pid int, d *denials) (stop func()) {
	if rt.audit == nil {
		return func() {}
	}
	unwatch := rt.audit.Watch(pid, d.audited)
	return func() {
		time.Sleep(auditLag)
		unwatch()
	}
}

// operationOf are the scopes and operations of what Landlock calls its rights.
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

// audited takes a record of the kernel's.
func (d *denials) audited(a audit.Denial) {
	told := map[policy.Operation]bool{}
	for _, blocker := range a.Blockers {
		what, known := operationOf[blocker]
		if !known || told[what.op] {
			continue
		}
		told[what.op] = true
		n := Denial{Scope: what.scope, Operation: what.op, Target: a.Path, Source: SourceAudit}
		switch {
		case what.scope == policy.Network:
			n.Target = fmt.Sprintf("tcp://%s:%d", host(a), a.Address.Port())
		case what.scope == policy.Process:
			n.Target = "" // the record has the host's number of a process
		case what.op == "execute" && d.permissions.Decide(policy.FS, what.op, clean(a.Path)).Allowed:
			n.Scope, n.Operation = policy.ChildProcess, "spawn"
		}
		d.add(n)
	}
}

func host(a audit.Denial) string {
	switch {
	case !a.Address.Addr().IsValid() || a.Address.Addr().IsLoopback():
		return "localhost"
	case strings.Contains(a.Address.Addr().String(), ":"):
		return "[" + a.Address.Addr().String() + "]"
	}
	return a.Address.Addr().String()
}
