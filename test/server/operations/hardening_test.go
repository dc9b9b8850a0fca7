package operations

import (
	"cmp"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gaol/cmd/gaol/server/daemon"
	"gaol/rootfs"
	"gaol/test/harness"
	"gaol/test/tier"
)

// A server that has only what its systemd unit leaves it runs programs.
func TestHardenedUnit(t *testing.T) {
	tier.Soak(t)
	unit := daemon.ServiceUnit("gaol", "serve")
	var dropped []string
	for _, line := range regexp.MustCompile(`(?m)^CapabilityBoundingSet=~(.*)$`).FindAllStringSubmatch(unit, -1) {
		for name := range strings.FieldsSeq(line[1]) {
			dropped = append(dropped, "-"+strings.ToLower(strings.TrimPrefix(name, "CAP_")))
		}
	}
	for _, setting := range []string{"ProtectSystem=strict", "NoNewPrivileges=yes", "UMask=0077", "RuntimeDirectory=gaol", "StateDirectory=gaol"} {
		if !strings.Contains(unit, "\n"+setting+"\n") {
			t.Fatalf("the unit has no %s, which this test imitates", setting)
		}
	}
	store := cmp.Or(os.Getenv(harness.StoreVar), rootfs.DefaultDir)
	dir := t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "config")
	writeFile(t, config, `{"auditLog": "`+dir+`/log"}`)
	p := start(t, daemon.Options{Socket: dir + "/s", Files: daemon.Files{Config: config}}, func(cmd *exec.Cmd) {
		cmd.Path = unshare
		cmd.Args = []string{"unshare", "--mount", "--propagation", "private", "sh", "-e", "testdata/hardened.sh",
			strings.Join(dropped, ","), strings.Join([]string{dir, store, "/run/gaol"}, " "), program}
		cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	})
	p.expect(http.StatusOK, "GET", "/readyz", nil)
	for name, tc := range map[string]struct {
		body map[string]any
		want string
	}{
		"a program": {map[string]any{"code": `require('fs').writeFileSync('f', 'x'); __return(require('child_process').execSync('cat f; id -u').toString())`}, `"value":"x1000\n"`},
		"localhost": {map[string]any{"permissions": map[string]any{"network": "allow"},
			"code": `const s = require('http').createServer((q, r) => r.end('hi')).listen(0, async () => { __return(await (await fetch('http://localhost:' + s.address().port)).text()); s.close(); })`}, `"value":"hi"`},
		"the gateway": {map[string]any{"permissions": map[string]any{"network": "allow"},
			"code": `require('net').connect(8080, '192.168.255.1').on('error', () => {}).on('connect', () => console.log('connected'))`}, `"source":"egress"`},
		"a limit": {map[string]any{"limits": map[string]any{"memoryBytes": 64 << 20}, "code": `Buffer.alloc(200e6, 1)`}, `"cause":"memory"`},
	} {
		if text := p.expect(http.StatusOK, "POST", "/v1/run", tc.body); !strings.Contains(text, tc.want) {
			t.Errorf("%s: %s", name, text)
		}
	}
	p.stop()
}
