package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The operator's lint rules replace the adapter's, over HTTP and MCP. Requests may still choose
// plain programs, which are not checked. A reload reads the rules again.
func TestLintRules(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.json")
	write := func(rules string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(rules), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"names": {"alert": "snippets have no window"}}`)
	config := fmt.Sprintf(`{"adapter": "directive", "lintRules": %q}`, path)
	s := configured(t, config)
	cs := overHTTP(t, s, snippetUser)
	const alert, pid = "export const x = typeof alert", "export const x = typeof process.pid"
	check := func(source string, refused string) {
		t.Helper()
		o := run(t, s, snippetUser, object{"source": source})
		_, text := call(t, cs, "run_in_sandbox", object{"source": source})
		if refused == "" && len(o.Errors) == 0 && !strings.Contains(text, "not allowed") {
			return
		}
		if want := "src/main.ts:1:25 — " + refused; refused == "" || len(o.Errors) != 1 || !strings.HasPrefix(o.Errors[0], want) || !strings.Contains(text, want) {
			t.Errorf("%s: %q, and %q by MCP; want %q", source, o.Errors, text, refused)
		}
	}
	check(alert, "alert is not allowed: snippets have no window")
	check(pid, "")
	if o := run(t, s, snippetUser, object{"source": alert, "adapter": "none"}); len(o.Errors) != 0 {
		t.Errorf("with another adapter: %q", o.Errors)
	}

	write(`{"names": {"process": "snippets have no process"}}`)
	check(pid, "") // not yet
	next := *s.Settings()
	next.Snippets = read(t, config)
	s.Reload(&next, nil)
	check(alert, "")
	check(pid, "process is not allowed: snippets have no process")
}
