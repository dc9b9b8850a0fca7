package operations

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gaol/cmd/gaol/server/daemon"
	"gaol/rootfs"
	"gaol/test/harness"
)

// TestKilledBuild: the next build removes what a killed server has left of one. Builds are in the audit log and the metrics.
func TestKilledBuild(t *testing.T) {
	dir := harness.ImportImage(t, harness.ShellImage(t, "sh", "mkdir", "sleep"), rootfs.ImportOptions{})
	store, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	config, log := filepath.Join(t.TempDir(), "config"), filepath.Join(t.TempDir(), "log")
	writeFile(t, config, fmt.Sprintf(`{"tenant": {"images": 2, "imageBytes": 100000000}, "auditLog": %q}`, log))
	o := daemon.Options{Files: daemon.Files{Config: config}}
	o.Server.Store = dir
	build := func(last string) map[string]any {
		return map[string]any{
			"name": "x", "from": "app", "limits": map[string]any{"diskBytes": 8 << 20, "memoryBytes": 64 << 20},
			"steps": []any{map[string]string{"run": "echo a >/a"}, map[string]string{"run": last}},
		}
	}
	count := func() (images, temp int) {
		list, err := store.List()
		if err != nil {
			t.Fatal(err)
		}
		return len(list), len(harness.Glob(filepath.Join(dir, "tmp", "*")))
	}
	before := harness.TakeInventory()
	first := start(t, o)
	text, err := json.Marshal(build("echo begun; sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://gaol/v1/images", strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	res, err := first.client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	harness.Expect(t, bufio.NewReader(res.Body), `data: {"text":"begun\n"}`)
	first.signal(syscall.SIGKILL)
	first.wait()
	if images, temp := count(); images != 1 || temp == 0 {
		t.Errorf("the killed server has left %d images and %d temporary folders", images, temp)
	}
	second := start(t, o)
	second.expect(http.StatusOK, "POST", "/v1/images", build("exec true"))
	if images, temp := count(); images != 2 || temp != 0 {
		t.Errorf("after the next build there are %d images and %d temporary folders", images, temp)
	}
	second.expect(http.StatusUnprocessableEntity, "POST", "/v1/images", map[string]any{"name": "y", "from": "app", "steps": build("exit 4")["steps"], "limits": build("")["limits"]})
	metrics := second.expect(http.StatusOK, "GET", "/metrics", nil)
	second.stop()
	if want := `gaol_runs_total{cause="exit",kind="build"} 2`; !strings.Contains(metrics, want) {
		t.Errorf("no %s", want)
	}
	if _, log := readAudit(t, log); strings.Count(log, `"action":"POST /v1/images"`) < 2 || !strings.Contains(log, `"exitCode":4`) {
		t.Errorf("the log is\n%s", log)
	}
	before.CheckLeaks(t)
}
