package audit

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, mode := range map[string]os.FileMode{"readable": 0o644, "writable": 0o620, "group": 0o640} {
		if err := errors.Join(os.WriteFile(path(name), nil, 0o600), os.Chmod(path(name), mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(unix.Mkfifo(path("fifo"), 0o600), os.Symlink(path("group"), path("link")), os.Mkdir(path("folder"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for name, valid := range map[string]bool{"new": true, "group": true, "readable": false, "writable": false, "fifo": false, "link": false, "folder": false} {
		f, err := Open(path(name))
		if (err == nil) != valid {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = f.Close()
		}
	}
	if info, err := os.Stat(path("new")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a new file: %v, %v", info.Mode(), err)
	}
}

// After an incomplete line, as on a full disk, the next one begins on a new line.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8k"); err != nil {
		t.Skipf("mount: %v", err)
	}
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }()
	f, err := Open(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	var l Log
	_ = l.Set(f) // there is no file before
	long := Entry{Tenant: strings.Repeat("x", 5000)}
	if err := errors.Join(l.Write(long)); err != nil {
		t.Fatal(err)
	}
	if err := l.Write(long); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("a write to a full disk: %v", err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, "size=64k"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Write(Entry{Tenant: "a"}), l.Write(Entry{Tenant: "b"})); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "log"))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if err != nil || len(lines) != 4 {
		t.Fatalf("%v, %d lines", err, len(lines))
	}
	for i, valid := range []bool{true, false, true, true} {
		if json.Valid([]byte(lines[i])) != valid {
			t.Errorf("line %d: %.100s", i, lines[i])
		}
	}
	if err := l.Set(nil); err != nil {
		t.Error(err)
	}
	if err := l.Write(Entry{}); err != nil || l.Enabled() {
		t.Errorf("a log without a file: %v", err)
	}
}

// Each action of a request writes a line with the request's tenant.
func TestBegin(t *testing.T) {
	var lines []Entry
	ctx, request := NewContext(context.Background(), func(e Entry) { lines = append(lines, e) })
	request.SetTenant(&tenant.Tenant{Name: "uid:7", Peer: &tenant.Peer{PID: 8, MountUser: runtime.MountUser{UID: 7}}})
	request.SetCode("of the request", nil)
	inner, end := Begin(ctx, "session run")
	Of(inner).SetSandbox("sb-1")
	Of(inner).SetEnd(new(4), "", nil, runtime.Usage{Network: runtime.NetworkUsage{BytesIn: 5}})
	end(200)
	request.End(101)
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	if e := lines[0]; e.Tenant != "uid:7" || e.PID != 8 || *e.UID != 7 || e.Action != "session run" || e.Sandbox != "sb-1" || e.Code != "" || *e.ExitCode != 4 || e.Network.BytesIn != 5 || e.Status != 200 {
		t.Errorf("the action: %+v", e)
	}
	if e := lines[1]; e.Tenant != "uid:7" || e.Sandbox != "" || e.ExitCode != nil || e.Status != 101 {
		t.Errorf("the request: %+v", e)
	}
}

// Without a log, nothing is recorded.
func TestNoRecord(t *testing.T) {
	ctx, end := Begin(context.Background(), "run")
	r := Of(ctx)
	r.SetCode("x", nil)
	r.SetCommand("x", nil, nil)
	r.SetPermissions(json.RawMessage(`{}`))
	r.SetEnd(nil, "", nil, runtime.Usage{})
	end(200)
	if r != nil {
		t.Error("there is a record")
	}
}

// Long permissions do not make long lines.
func TestLongPermissions(t *testing.T) {
	var line Entry
	_, r := NewContext(context.Background(), func(e Entry) { line = e })
	r.SetPermissions(json.RawMessage(`{"fs": "` + strings.Repeat("x", maxPermissions) + `"}`))
	r.End(200)
	if len(line.Permissions) > 100 || !json.Valid(line.Permissions) {
		t.Errorf("%d bytes: %.100s", len(line.Permissions), line.Permissions)
	}
}
