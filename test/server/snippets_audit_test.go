package server

import (
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
	"gaol/test/server/servertest"
)

// The audit log contains a line for each snippet, with its hash and its preset, and without its source.
func TestAudit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	s := servertest.Start(t, servertest.Options{Settings: func(s *settings.Settings) { s.AuditLog = path }})
	const source = "console.log('secret')"
	run(t, s, snippetUser, object{"source": source, "permissions": "strict"})
	call(t, overHTTP(t, s, snippetUser), "run_in_sandbox", object{"source": source})
	if err := s.SetAudit(nil); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), "secret") {
		t.Fatalf("%v, %s", err, text)
	}
	var got []string
	for line := range strings.Lines(string(text)) {
		var e audit.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Code != "" && e.Cause != nil {
			e.Tenant, _, _ = strings.Cut(e.Tenant, "@") // a user of another node
			if servertest.IsFleet() != (e.Gateway != "") {
				t.Errorf("%s was forwarded by %q", e.Action, e.Gateway)
			}
			got = append(got, fmt.Sprint(e.Action, " ", e.Tenant, " ", e.Status, " ", string(e.Permissions), " ", e.Code))
		}
	}
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(source)))
	want := []string{"POST /api/sandbox uid:61801 200 \"strict\" " + hash, "run_in_sandbox uid:61801 200 \"default\" " + hash}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n%s", diff, text)
	}
}
