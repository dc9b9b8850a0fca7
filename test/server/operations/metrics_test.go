package operations

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gaol/cmd/gaol/server"
	"gaol/cmd/gaol/server/daemon"
	"gaol/cmd/gaol/server/service"
	"gaol/rootfs"
)

// Root on the socket, and tokens with the right admin, may read the metrics.
func TestMetricsAccess(t *testing.T) {
	dir := t.TempDir()
	f := daemon.Files{Config: dir + "/config", Tokens: dir + "/tokens"}
	writeFile(t, f.Config, `{"tenants": {"uid:0": {"sandboxes": 1}}}`)
	writeFile(t, f.Tokens, tokenLine("a", false)+tokenLine("b", true))
	_, file := listenerFile(t, "unix", "@"+filepath.Base(filepath.Dir(dir)))
	p := start(t, daemon.Options{Files: f, Listen: "127.0.0.1:0"}, newSystemd(t).pass(file))
	p.socket = "@" + filepath.Base(filepath.Dir(dir))
	address := p.waitLog("msg", "serve")["address"].(string)
	for token, want := range map[string]int{"a": 403, "b": 200, "c": 401} {
		if a := request(http.DefaultClient, "GET", "http://"+address+"/metrics", secretOf(token), nil); a.status != want {
			t.Errorf("token %s: %+v, want %d", token, a, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if got := asUser(t, p.socket, "/metrics"); !strings.HasPrefix(got, "403 ") {
		t.Errorf("another user: %s", got)
	}
	p.expect(http.StatusOK, "GET", "/metrics", nil)
	p.stop()
}

// The metrics count what has happened. No client can add series.
func TestMetrics(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	writeFile(t, config, `{"tenants": {"uid:0": {"sandboxes": 1}, "token:x": {}}}`)
	p := start(t, daemon.Options{Files: daemon.Files{Config: config}})
	sandbox := p.createSandbox()
	p.expect(http.StatusTooManyRequests, "POST", "/v1/sandboxes", map[string]any{})
	in := "/v1/sandboxes/" + sandbox
	p.expect(http.StatusOK, "POST", in+"/run", map[string]any{"code": "setInterval(() => {}, 1e6)", "timeoutMs": 10})
	p.expect(http.StatusOK, "POST", in+"/evaluate", map[string]any{"code": "1"})
	p.expect(http.StatusUnprocessableEntity, "POST", in+"/exec", map[string]any{"code": "1", "cwd": "no/path"})
	_, result := p.startRun(sandbox)
	text := p.expect(http.StatusOK, "GET", "/metrics", nil)
	for _, want := range []string{
		`gaol_runs_total{cause="timeout",kind="run"} 1`,
		`gaol_runs_total{cause="exit",kind="evaluate"} 1`,
		`gaol_run_errors_total{kind="exec"} 1`,
		`gaol_run_duration_seconds_count{kind="run"} 1`,
		`gaol_queue_wait_seconds_count 4`,
		`gaol_quota_refusals_total{limit="sandboxes",scope="tenant"} 1`,
		`gaol_sandboxes{tenant="uid:0"} 1`,
		`gaol_sandboxes{tenant="token:x"} 0`,
		`gaol_sandboxes{tenant="other"} 0`,
		`gaol_runs{tenant="uid:0"} 1`,
		`gaol_http_requests_total{operation="POST /v1/sandboxes",status="429"} 1`,
		`gaol_http_requests_total{operation="POST /v1/sandboxes/{id}/run",status="200"} 1`,
		`go_goroutines `, `process_open_fds `,
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("no %s", want)
		}
	}
	p.expect(http.StatusNotFound, "GET", "/nowhere", nil)
	p.expect(http.StatusNotFound, "GET", in+"x", nil)
	before := series(p.expect(http.StatusOK, "GET", "/metrics", nil))
	client := p.client()
	for i := range 50 {
		request(client, "GET", fmt.Sprintf("http://gaol/nowhere/%d", i), "", nil)
		request(client, fmt.Sprintf("METHOD%d", i), "http://gaol/nowhere", "", nil)
		request(client, "GET", fmt.Sprintf("http://gaol/v1/sandboxes/%d", i), "", nil)
	}
	if after := series(p.expect(http.StatusOK, "GET", "/metrics", nil)); after > before+40 {
		t.Errorf("150 requests made %d series of %d", after, before)
	}
	p.expect(http.StatusNoContent, "DELETE", in, nil)
	<-result
	p.stop()
	if t.Failed() {
		t.Log(text)
	}
}

// series counts the time series of metrics.
func series(text string) int {
	return len(regexp.MustCompile(`(?m)^gaol_`).FindAllString(text, -1))
}

// A server that cannot run programs lives, but is not ready.
func TestReady(t *testing.T) {
	dir := t.TempDir()
	store, err := rootfs.Open(dir)
	if err == nil {
		_, err = store.Add(t.Context(), []string{"default"}, func(string) error { return nil }) // not the image that sandboxes use
	}
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, daemon.Options{Server: server.Options{Options: service.Options{Store: dir}}})
	p.expect(http.StatusOK, "GET", "/healthz", nil)
	p.expect(http.StatusServiceUnavailable, "GET", "/readyz", nil)
	if line := p.waitLog("msg", "the server is not ready"); !strings.Contains(fmt.Sprint(line["err"]), "no such image") {
		t.Errorf("the log says %v", line)
	}
	p.stop()
	p = start(t, daemon.Options{})
	p.expect(http.StatusOK, "GET", "/readyz", nil)
	p.stop()
}
