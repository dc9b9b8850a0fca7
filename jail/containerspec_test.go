package jail

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

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
	dir := t.TempDir()
	if err := makeStateDirs(dir); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(jailsDir(dir), "1.slot"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	j := &container{Jail: &Jail{
		identity: &Identity{1, file, "/gaol"},
		spec:     Spec{OCI: &OCIRuntime{}, Hostname: "h", HideProcesses: true, Reaper: []string{"/init"}},
	}}
	s, err := j.config(namespaces)
	if err != nil {
		t.Fatal(err)
	}
	p := s.Process
	if p.Terminal || !p.NoNewPrivileges || len(p.Capabilities.Bounding)+len(p.Capabilities.Effective)+len(p.Capabilities.Permitted)+len(p.Capabilities.Ambient) > 0 {
		t.Errorf("rights: %+v, %+v", p, p.Capabilities)
	}
	if len(p.User.AdditionalGids) > 0 || !slices.Equal(p.Args, []string{"/init"}) || len(p.Env) > 0 || p.Cwd != "/" || p.Rlimits != nil {
		t.Errorf("process: %+v", p)
	}
	if s.Root.Path != containerRoot(dir) || s.Hostname != "h" || s.Linux.CgroupsPath != "/gaol/j1" || s.Linux.UIDMappings != nil {
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
	for _, path := range []string{"/sys/firmware", "/proc/keys", "/proc/sys/kernel/core_pattern"} {
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
