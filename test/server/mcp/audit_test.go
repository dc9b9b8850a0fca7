package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/settings"
)

// TestAudit checks that each call of a tool writes a line to the audit log, without the code.
func TestAudit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	socket := start(t, func(s *settings.Settings) { s.AuditLog = path })
	const code = "throw 1 // secret"
	var want []string
	for _, version := range []string{"2025-06-18", ""} {
		s := connect(t, socket, alice, version)
		id := s.create(nil)
		s.fails("run_code", args{"code": code, "sandboxId": id})
		s.fails("run_command", args{"command": "exit 4", "sandboxId": id})
		s.fails("run_code", args{"code": "1", "sandboxId": "sb-none"})
		s.ok("sandbox_init", args{}, nil)
		want = append(want, "create_sandbox 200 uid:4001",
			fmt.Sprintf("run_code 200 uid:4001 %x %s", sha256.Sum256([]byte(code)), id),
			fmt.Sprintf("run_command 200 uid:4001 %x %s 4", sha256.Sum256([]byte("/bin/sh\x00-c\x00exit 4\x00")), id),
			"run_code 404 uid:4001", "sandbox_init 200 uid:4001")
	}
	if diff := cmp.Diff(want, readAudit(t, path)); diff != "" {
		t.Error(diff)
	}
}

// readAudit describes the lines of an audit log about tools.
func readAudit(t *testing.T, path string) (got []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte("secret")) {
		t.Errorf("the log has the code: %s", text)
	}
	for line := range bytes.Lines(text) {
		var e audit.Entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if bytes.Contains([]byte(e.Action), []byte("/mcp")) { // the request of HTTP
			continue
		}
		e.Tenant, _, _ = strings.Cut(e.Tenant, "@") // a user of another node
		described := fmt.Sprintf("%s %d %s", e.Action, e.Status, e.Tenant)
		if e.Code != "" {
			described += " " + e.Code + " " + e.Sandbox
		}
		if e.ExitCode != nil {
			described += fmt.Sprint(" ", *e.ExitCode)
		}
		got = append(got, described)
	}
	return got
}
