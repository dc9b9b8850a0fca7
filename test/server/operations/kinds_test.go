package operations

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"gaol/cmd/gaol/server/daemon"
)

// Processes and cells of contexts are in the audit log and the metrics, as runs are.
func TestProcessesAndCells(t *testing.T) {
	config, path := filepath.Join(t.TempDir(), "config"), filepath.Join(t.TempDir(), "log")
	writeFile(t, config, fmt.Sprintf(`{"auditLog": %q}`, path))
	p := start(t, daemon.Options{Files: daemon.Files{Config: config}})
	in := "/v1/sandboxes/" + p.createSandbox()
	made := func(path string, body map[string]any) string {
		var created struct{ ID string }
		text := p.expect(http.StatusCreated, "POST", in+path, body)
		if err := json.Unmarshal([]byte(text), &created); err != nil {
			t.Fatal(err)
		}
		return in + path + "/" + created.ID
	}
	process := made("/processes", map[string]any{"code": "process.exit(4)"})
	p.expect(http.StatusOK, "GET", process+"/wait", nil)
	cell := made("/contexts", map[string]any{})
	p.expect(http.StatusOK, "POST", cell+"/cells", map[string]any{"code": "1 + 1"})
	metrics := p.expect(http.StatusOK, "GET", "/metrics", nil)
	p.stop()
	for _, want := range []string{`gaol_runs_total{cause="exit",kind="process"} 1`, `gaol_runs_total{cause="exit",kind="cell"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s", want)
		}
	}
	_, log := readAudit(t, path)
	for _, code := range []string{"process.exit(4)", "1 + 1"} {
		if !strings.Contains(log, fmt.Sprintf("%x", sha256.Sum256([]byte(code)))) {
			t.Errorf("%s is not in the log:\n%s", code, log)
		}
	}
}
