package operations

import (
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server/daemon"
	"gaol/test/harness"
)

// After SIGTERM, running programs may end, and new ones are refused.
func TestDrainWaitsForRuns(t *testing.T) {
	p := start(t, daemon.Options{})
	sandbox := p.createSandbox()
	pid, result := p.startRun(sandbox)
	p.signal(syscall.SIGTERM)
	p.waitLog("msg", "stop")
	harness.WaitFor(t, "not ready", func() bool {
		return request(p.client(), "GET", "http://gaol/readyz", "", nil).status == http.StatusServiceUnavailable
	})
	if text := p.expect(http.StatusServiceUnavailable, "POST", "/v1/run", map[string]any{"code": "1"}); !strings.Contains(text, `"code":"draining"`) {
		t.Error(text)
	}
	p.expect(http.StatusServiceUnavailable, "POST", "/v1/sandboxes/"+sandbox+"/run", map[string]any{"code": "1"})
	if err := unix.Kill(pid, unix.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	if a := <-result; a.status != http.StatusOK || !strings.Contains(a.text, `"exitCode":3`) {
		t.Errorf("the run: %+v", a)
	}
	if code := p.wait(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// Runs that do not end are ended after drainMs, or by a second signal.
func TestDrainEndsRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		config string
		second bool
	}{
		"deadline":      {`{"drainMs": 50}`, false},
		"second signal": {`{"drainMs": 3600000}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			config := filepath.Join(t.TempDir(), "config")
			writeFile(t, config, tc.config)
			p := start(t, daemon.Options{Files: daemon.Files{Config: config}})
			_, result := p.startRun(p.createSandbox())
			p.signal(syscall.SIGTERM)
			p.waitLog("msg", "stop")
			if tc.second {
				p.signal(syscall.SIGINT)
			}
			if a := <-result; a.status != http.StatusServiceUnavailable || !strings.Contains(a.text, `"code":"interrupted"`) {
				t.Errorf("the run: %+v", a)
			}
			if code := p.wait(); code != 0 {
				t.Errorf("exit status %d", code)
			}
		})
	}
}

// A server that is killed leaves no process, and the next one replaces its socket.
func TestKilledServer(t *testing.T) {
	o := daemon.Options{Socket: filepath.Join(t.TempDir(), "s")}
	p := start(t, o)
	p.startRun(p.createSandbox())
	p.expect(http.StatusOK, "POST", "/v1/run", map[string]any{"code": "1"}) // creates a pool
	if len(harness.ProcessesIn(harness.JailCgroups())) == 0 {
		t.Fatal("the server has no processes")
	}
	p.signal(syscall.SIGKILL)
	p.wait()
	harness.WaitFor(t, "the kernel has killed its jails", func() bool {
		return len(harness.ProcessesIn(harness.JailCgroups())) == 0
	})
	next := start(t, o)
	if text := next.expect(http.StatusOK, "GET", "/v1/sandboxes", nil); !strings.Contains(text, `"sandboxes":[]`) {
		t.Error(text)
	}
	next.expect(http.StatusOK, "POST", "/v1/run", map[string]any{"code": "1"})
	next.stop()
}

// Two servers do not share a socket.
func TestSocketInUse(t *testing.T) {
	o := daemon.Options{Socket: filepath.Join(t.TempDir(), "s")}
	p := start(t, o)
	second := startOnly(t, o)
	if code := second.wait(); code != 1 {
		t.Errorf("a second server exits with %d", code)
	}
	p.expect(http.StatusOK, "GET", "/healthz", nil)
	p.stop()
}

// Zygotes that no sandbox uses are stopped.
func TestIdleZygotes(t *testing.T) {
	p := start(t, daemon.Options{IdleEvery: 20_000_000})
	sandbox := p.createSandbox()
	p.expect(http.StatusOK, "POST", "/v1/sandboxes/"+sandbox+"/run", map[string]any{"code": "1"})
	tenants := filepath.Dir(harness.Parent)
	zygotes := func() []string {
		return harness.Glob("/sys/fs/cgroup"+tenants+"/zygote-*", "/sys/fs/cgroup/*"+tenants+"/zygote-*")
	}
	if len(zygotes()) == 0 {
		t.Fatal("there is no zygote")
	}
	p.expect(http.StatusNoContent, "DELETE", "/v1/sandboxes/"+sandbox, nil)
	harness.WaitFor(t, "no zygote is left", func() bool { return len(zygotes()) == 0 })
	p.stop()
}
