package enforce

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"gaol/jail/landlock/audit"
	"gaol/policy"
)

// auditLag is how long after a run's end its last records may arrive: a kernel thread
// delivers them, which takes some milliseconds.
const auditLag = 10 * time.Millisecond

// AuditLog is this process's reader of the kernel's audit log. Runtimes share it.
type AuditLog struct{ reader *audit.Reader }

var sharedAudit struct {
	sync.Mutex
	reader *audit.Reader
	users  int
}

// OpenAudit opens the audit log. The error wraps errors.ErrUnsupported if the kernel or its
// configuration does not provide it. The caller must call Close.
func OpenAudit() (*AuditLog, error) {
	sharedAudit.Lock()
	defer sharedAudit.Unlock()
	if sharedAudit.users == 0 {
		reader, err := audit.Open()
		if _, ok := errors.AsType[*audit.UnavailableError](err); ok {
			return nil, fmt.Errorf("%w: %w", err, errors.ErrUnsupported)
		}
		if err != nil {
			return nil, err
		}
		sharedAudit.reader = reader
	}
	sharedAudit.users++
	return &AuditLog{sharedAudit.reader}, nil
}

// Close releases the log. It may be called on nil.
func (l *AuditLog) Close() error {
	if l == nil {
		return nil
	}
	sharedAudit.Lock()
	defer sharedAudit.Unlock()
	if sharedAudit.users--; sharedAudit.users > 0 {
		return nil
	}
	return sharedAudit.reader.Close()
}

// Watch adds the denials of a run to d, given its first process's ID on the host. stop must
// be called after the run's end; it sleeps 10 ms. Watch may be called on nil.
func (l *AuditLog) Watch(pid int, d *Denials) (stop func()) {
	if l == nil {
		return func() {}
	}
	unwatch := l.reader.Watch(pid, d.addRecord)
	return func() {
		time.Sleep(auditLag)
		unwatch()
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

// addRecord adds what a record of the audit log reports.
func (d *Denials) addRecord(a audit.Denial) {
	added := map[policy.Operation]bool{} // a record can name several rights of one operation
	for _, blocker := range a.Blockers {
		what, known := operationOf[blocker]
		if !known || added[what.op] {
			continue
		}
		added[what.op] = true
		n := Denial{Scope: what.scope, Operation: what.op, Target: a.Path, Source: Audit}
		switch {
		case what.scope == policy.Network:
			n.Target = "tcp://" + a.Address.String()
			if at := a.Address.Addr(); !at.IsValid() || at.IsLoopback() { // as rules name it
				n.Target = fmt.Sprintf("tcp://localhost:%d", a.Address.Port())
			}
		case what.scope == policy.Process:
			n.Target = "" // the record has the process ID on the host
		// Both scopes deny it by the same right; the one whose rules allow it is not the cause.
		case what.op == "execute" && d.permissions.Decide(policy.FS, what.op, absolute(a.Path)).Allowed:
			n.Scope, n.Operation = policy.ChildProcess, "spawn"
		}
		d.add(n)
	}
}
