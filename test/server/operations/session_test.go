package operations

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/cmd/gaol/server/daemon"
	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/vfs/hostfs"
)

// Each request of a session writes a line to the audit log, with the hash of its code.
func TestAuditOfSession(t *testing.T) {
	dir := t.TempDir()
	config, path := filepath.Join(dir, "config"), filepath.Join(dir, "log")
	writeFile(t, config, fmt.Sprintf(`{"auditLog": %q}`, path))
	p := start(t, daemon.Options{Files: daemon.Files{Config: config}})
	useSession(t, p.socket)
	p.stop()

	type line struct {
		Action, Code string
		InSandbox    bool
		Exit, Status int
		In, Out      int64
	}
	var got []line
	entries, _ := readAudit(t, path)
	for _, e := range entries {
		l := line{Action: e.Action, Code: e.Code, InSandbox: e.Sandbox != "", Status: e.Status}
		if e.Action != "GET /v1/session" { // whose bytes count all frames
			l.In, l.Out = e.BytesIn, e.BytesOut
		}
		if e.ExitCode != nil {
			l.Exit = *e.ExitCode
		}
		if e.Tenant != "uid:0" || e.PID == 0 {
			t.Errorf("%+v", e)
		}
		got = append(got, l)
	}
	hash := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	want := []line{
		{"session createSandbox", "", true, 0, 200, 0, 0},
		{"session runIn", hash("process.exit(3)"), true, 3, 200, 0, 0},
		{"session commandIn", hash("false\x00"), true, 1, 200, 0, 0},
		{"session evaluateIn", hash("6 * 7"), true, 0, 200, 0, 0},
		{"session spawn", hash("process.exit(4)"), true, 4, 200, 0, 0},
		{"session commandIn", hash("nope\x00"), true, 0, 422, 0, 0},
		{"session writeFile", "", true, 0, 200, 5, 0},
		{"session readFile", "", true, 0, 200, 0, 5},
		{"session readFile", "", true, 0, 404, 0, 0},
		{"session deleteSandbox", "", true, 0, 200, 0, 0},
		{"GET /v1/session", "", false, 0, 101, 0, 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// useSession makes one run of each kind.
func useSession(t *testing.T, socket string) {
	t.Helper()
	ctx := t.Context()
	c, err := client.Dial(ctx, client.Options{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sb, err := c.Create(ctx, client.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err1 := sb.Run(ctx, "process.exit(3)", runtime.RunOptions{})
	_, err2 := sb.Command(ctx, "false", nil, runtime.RunOptions{})
	_, err3 := sb.Evaluate(ctx, "6 * 7", runtime.EvaluateOptions{})
	proc, err4 := sb.SpawnCode(ctx, "process.exit(4)", runtime.SpawnOptions{})
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := proc.Wait(ctx); err != nil {
		t.Error(err)
	}
	if _, err := sb.Command(ctx, "nope", nil, runtime.RunOptions{}); err == nil {
		t.Error("there is no such program")
	}
	if err := sb.FS().WriteFile(ctx, "/workspace/x", []byte("hello"), hostfs.WriteOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := sb.FS().ReadFile(ctx, "/workspace/x"); err != nil {
		t.Error(err)
	}
	if _, err := sb.FS().ReadFile(ctx, "/workspace/none"); err == nil {
		t.Error("there is no such file")
	}
	if err := sb.Close(); err != nil {
		t.Error(err)
	}
}
