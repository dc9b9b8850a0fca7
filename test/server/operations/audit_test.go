package operations

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/daemon"
	"gaol/runtime"
)

// readAudit returns the lines of an audit log.
func readAudit(t testing.TB, path string) (entries []audit.Entry, text string) {
	t.Helper()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(all) {
		var e audit.Entry
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		entries = append(entries, e)
	}
	return entries, string(all)
}

// The audit log has one line for each request of a tenant, without its secrets.
func TestAuditLog(t *testing.T) {
	dir := t.TempDir()
	config, path := filepath.Join(dir, "config"), filepath.Join(dir, "log")
	writeFile(t, config, fmt.Sprintf(`{"auditLog": %q}`, path))
	p := start(t, daemon.Options{Files: daemon.Files{Config: config}})
	sandbox := p.createSandbox()
	const secret = "e7d2c1b0-secret"
	code := "/* " + secret + " */ import('node:net').then(n => n.connect(80, '127.0.0.1').on('error', () => process.exit(5)))"
	ran := p.expect(http.StatusOK, "POST", "/v1/sandboxes/"+sandbox+"/run", map[string]any{
		"code": code, "env": map[string]string{"SECRET": secret}, "args": []string{secret}, "stdin": secret, "permissions": map[string]any{"network": "deny"},
	})
	p.expect(http.StatusOK, "POST", "/v1/sandboxes/"+sandbox+"/command", map[string]any{"command": "sh", "args": []string{"-c", "exit 7 # " + secret}})
	p.expect(http.StatusOK, "POST", "/v1/evaluate", map[string]any{"code": "6 * 7 /* " + secret + " */"})
	p.expect(http.StatusNotFound, "DELETE", "/v1/sandboxes/nope", nil)
	p.expect(http.StatusNotFound, "GET", "/nowhere", nil)
	p.expect(http.StatusOK, "GET", "/healthz", nil) // of no tenant
	p.stop()

	entries, text := readAudit(t, path)
	if strings.Contains(text, secret) {
		t.Errorf("the log has a secret: %s", text)
	}
	uid, none := 0, runtime.CauseNone
	exit := func(n int) *int { return &n }
	hash := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	of := func(e audit.Entry) audit.Entry {
		e.Tenant, e.PID, e.UID = "uid:0", int32(os.Getpid()), &uid
		return e
	}
	want := []audit.Entry{
		of(audit.Entry{Action: "POST /v1/sandboxes", Sandbox: sandbox, Status: 201}),
		of(audit.Entry{Action: "POST /v1/sandboxes/{id}/run", Sandbox: sandbox, Status: 200, Code: hash(code), Cause: &none, ExitCode: exit(5),
			Permissions: json.RawMessage(`{"network":"deny"}`)}),
		of(audit.Entry{Action: "POST /v1/sandboxes/{id}/command", Sandbox: sandbox, Status: 200, Code: hash("sh\x00-c\x00exit 7 # " + secret + "\x00"), Cause: &none, ExitCode: exit(7)}),
		of(audit.Entry{Action: "POST /v1/evaluate", Status: 200, Code: hash("6 * 7 /* " + secret + " */"), Cause: &none}),
		of(audit.Entry{Action: "DELETE /v1/sandboxes/{id}", Sandbox: "nope", Status: 404}),
		of(audit.Entry{Status: 404}),
	}
	if diff := cmp.Diff(want, entries, cmpopts.IgnoreFields(audit.Entry{}, "Time", "DurationMs", "BytesIn", "BytesOut", "Denials")); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
	if e := entries[1]; len(e.Denials) == 0 || e.Denials[0].Scope != "network" || e.BytesIn < int64(len(code)) || e.BytesOut != int64(len(ran)) || e.DurationMs <= 0 || e.Time.IsZero() {
		t.Errorf("the line of the run: %+v", e)
	}
}
