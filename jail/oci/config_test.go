package oci

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// printed is a possible output of an OCI runtime, as a base.
const printed = `{
	"ociVersion": "1.3.0",
	"process": {
		"terminal": true, "user": {"uid": 0, "gid": 0, "additionalGids": [10]}, "args": ["sh"], "env": ["TERM=xterm"], "cwd": "/x",
		"capabilities": {"bounding": ["CAP_KILL"], "effective": ["CAP_KILL"], "permitted": ["CAP_KILL"], "ambient": ["CAP_KILL"]},
		"rlimits": [{"type": "RLIMIT_NOFILE", "hard": 1024, "soft": 1024}]
	},
	"root": {"path": "rootfs", "readonly": true},
	"hostname": "runc",
	"mounts": [{"destination": "/sys", "type": "sysfs", "source": "sysfs"}],
	"linux": {
		"uidMappings": [{"containerID": 0, "hostID": 0, "size": 1}],
		"namespaces": [{"type": "pid"}, {"type": "network"}, {"type": "mount"}, {"type": "user"}],
		"maskedPaths": ["/proc/kcore", "/sys/firmware"], "readonlyPaths": ["/proc/bus"]
	}
}`

// complete returns the spec of a container from the base.
func complete(t *testing.T, c Config) *specs.Spec {
	t.Helper()
	var s specs.Spec
	if err := json.Unmarshal([]byte(printed), &s); err != nil {
		t.Fatal(err)
	}
	if err := c.spec(&s); err != nil {
		t.Fatal(err)
	}
	return &s
}

func TestSpec(t *testing.T) {
	namespaces := map[specs.LinuxNamespaceType]*os.File{}
	for kind, name := range map[specs.LinuxNamespaceType]string{specs.UserNamespace: "user", specs.CgroupNamespace: "cgroup"} {
		f, err := os.Open("/proc/self/ns/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		namespaces[kind] = f
	}
	s := complete(t, Config{
		Root: "/stage/root", Proc: "/stage/proc", Namespaces: namespaces,
		Hostname: "h", CgroupsPath: "/gaol/j1", HideProcesses: true, Args: []string{"/init"},
	})
	p := s.Process
	if p.Terminal || !p.NoNewPrivileges || len(p.Capabilities.Bounding)+len(p.Capabilities.Effective)+len(p.Capabilities.Permitted)+len(p.Capabilities.Ambient) > 0 {
		t.Errorf("rights: %+v, %+v", p, p.Capabilities)
	}
	if len(p.User.AdditionalGids) > 0 || !slices.Equal(p.Args, []string{"/init"}) || len(p.Env) > 0 || p.Cwd != "/" || p.Rlimits != nil {
		t.Errorf("process: %+v", p)
	}
	if s.Root.Path != "/stage/root" || s.Hostname != "h" || s.Linux.CgroupsPath != "/gaol/j1" || s.Linux.UIDMappings != nil {
		t.Errorf("%+v, %+v", s, s.Linux)
	}
	kinds := map[specs.LinuxNamespaceType]string{}
	for _, n := range s.Linux.Namespaces {
		kinds[n.Type] += n.Path + ";"
	}
	for kind := range namespaces {
		if own := kinds[kind]; !strings.HasPrefix(own, "/proc/") || strings.Count(own, ";") != 1 {
			t.Errorf("%s namespace: %q, want the open one", kind, own)
		}
	}
	if kinds[specs.NetworkNamespace] != ";" {
		t.Errorf("network namespace: %q, want a new one", kinds[specs.NetworkNamespace])
	}
	for _, path := range []string{"/proc/kcore", "/sys/firmware", "/proc/keys", "/proc/sys/kernel/core_pattern"} {
		if !slices.Contains(s.Linux.MaskedPaths, path) {
			t.Errorf("%s is not masked", path)
		}
	}
	for _, path := range []string{"/proc/self", "/proc/meminfo", "/proc/sys", "/proc/sys/kernel", "/proc/sys/vm/overcommit_memory"} {
		if slices.Contains(s.Linux.MaskedPaths, path) {
			t.Errorf("%s is masked", path)
		}
	}
	if proc := s.Mounts[0]; proc.Destination != "/proc" || !slices.Contains(proc.Options, "ro") || !slices.Contains(proc.Options, "hidepid=2") {
		t.Errorf("%+v", proc)
	}
	if slices.ContainsFunc(s.Mounts, func(m specs.Mount) bool { return m.Destination == "/sys" }) {
		t.Error("a mount of the base is left")
	}
}

// The error is the last message of the log, bounded, whatever the log has.
func TestLogged(t *testing.T) {
	fallback := errRuntime.Error()
	for text, want := range map[string]string{
		"": fallback, "no JSON": fallback, "{\"level\":\"error\"}\n": fallback,
		"{\"level\":\"warning\",\"msg\":\"first\"}\n{\"level\":\"error\",\"msg\":\"last\"}\n": "last",
		"{\"msg\":\"" + strings.Repeat("x", 5000) + "\"}":                                     strings.Repeat("x", 1000),
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, logFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := logged(dir, errRuntime).Error(); got != want {
			t.Errorf("%.80q: %.80q, want %.80q", text, got, want)
		}
	}
	if got := logged(t.TempDir(), errRuntime); got != errRuntime {
		t.Errorf("without a log: %v", got)
	}
}
