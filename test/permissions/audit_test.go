package permissions

import (
	"encoding/binary"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/landlock/audit"
	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// auditOn enables the kernel's audit until the test ends. Audit is a setting of the whole
// machine: if it is locked, the test is skipped.
func auditOn(t *testing.T) {
	t.Helper()
	// Package audit's tests do the same, and may run now.
	lock, err := os.Open("/run")
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	if audit.Available() == nil {
		return
	}
	if err := setAudit(1); err != nil {
		t.Skip("audit can't be switched on: ", err)
	}
	t.Cleanup(func() {
		if err := setAudit(0); err != nil {
			t.Error(err)
		}
	})
	if err := audit.Available(); err != nil {
		t.Skip(err)
	}
}

// setAudit sends the kernel what auditctl -e sends.
func setAudit(on uint32) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_AUDIT)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	const size = unix.SizeofNlMsghdr + 40 // struct audit_status
	m := make([]byte, size)
	binary.NativeEndian.PutUint32(m, size)
	binary.NativeEndian.PutUint16(m[4:], unix.AUDIT_SET)
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	binary.NativeEndian.PutUint32(m[unix.SizeofNlMsghdr:], unix.AUDIT_STATUS_ENABLED)
	binary.NativeEndian.PutUint32(m[unix.SizeofNlMsghdr+4:], on)
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 1<<10)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil || n < unix.SizeofNlMsghdr+4 {
		return errors.Join(err, errors.New("no answer of audit"))
	}
	if errno := -int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); errno != 0 {
		return unix.Errno(errno)
	}
	return nil
}

// With audit, denials of Landlock are reported for the program and its children, and only
// for the run that caused them.
func TestPermissionAudit(t *testing.T) {
	if !harness.Needs(t, runtime.FeatureAudit) {
		return
	}
	auditOn(t)
	o := harness.Options(runtime.Options{AuditDenials: true, Permissions: policy.Permissions{
		FS: policy.Scope{Default: policy.Allow, Rules: []policy.Rule{
			{Mode: policy.Deny, Operations: []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}, Paths: []string{"/**"}},
			{Mode: policy.Allow, Operations: []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}, Paths: []string{"/workspace/**"}},
		}},
	}})
	rt := harness.CreateExact(t, o)
	const code = `
		import fs from 'node:fs'; import { execSync } from 'node:child_process';
		for (let i = 0; i < 3; i++) try { fs.writeFileSync('/tmp/mine', '') } catch (e) {}
		try { fs.mkdirSync('/tmp/folder') } catch (e) {}
		execSync('cat /etc/passwd; echo x >/home/node/child; true', { stdio: 'ignore' }); fs.writeFileSync('/workspace/fine', '')`
	want := map[runtime.Denial]bool{
		{Scope: "fs", Operation: "write", Target: "/tmp", Rule: "fs.rules[0]", Count: 3, Source: runtime.SourceAudit}:       true,
		{Scope: "fs", Operation: "create_dir", Target: "/tmp", Rule: "fs.rules[0]", Count: 1, Source: runtime.SourceAudit}:  true,
		{Scope: "fs", Operation: "write", Target: "/home/node", Rule: "fs.rules[0]", Count: 1, Source: runtime.SourceAudit}: true,
	}
	// Records can be lost when the machine has many, and late when it is busy. One attempt must succeed.
	var res *runtime.Result
	for range 20 {
		res = harness.Run(t, rt, code, runtime.RunOptions{})
		missing := len(want)
		for _, d := range res.Denials {
			if want[d] {
				missing--
			}
		}
		if missing == 0 && len(res.Denials) == len(want) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if len(res.Denials) != len(want) {
		t.Errorf("denials: %+v", res.Denials)
	}
	for _, d := range res.Denials {
		if !want[d] {
			t.Errorf("%+v", d)
		}
	}
	if res := harness.Run(t, rt, "1", runtime.RunOptions{}); len(res.Denials) > 0 {
		t.Errorf("of another run: %+v", res.Denials)
	}
}

// Without audit, the error shows how to enable it.
func TestPermissionAuditOff(t *testing.T) {
	auditOn(t) // prevents package audit's tests from enabling it meanwhile
	if err := setAudit(0); err != nil {
		t.Skip("audit can't be switched off: ", err)
	}
	err := harness.CreateError(t, harness.Options(runtime.Options{AuditDenials: true}))
	if !errors.Is(err, runtime.ErrUnsupported) {
		t.Errorf("%v, want %v", err, runtime.ErrUnsupported)
	}
}
