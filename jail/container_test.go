package jail

import (
	"path/filepath"
	"testing"
)

// No two containers have the same cgroup or folder. A scope is new for each container, even in the same
// slot, because systemd removes scopes later.
func TestContainerCgroups(t *testing.T) {
	dir := t.TempDir()
	if err := makeStateDirs(dir); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for range 20 {
		s, err := takeSlot(jailsDir(dir), cgroupParent)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.release() })
		cgroupfs := &Jail{identity: s, spec: Spec{OCI: &OCIRuntime{}}}
		systemd := &Jail{identity: s, spec: Spec{OCI: &OCIRuntime{SystemdCgroup: true}}}
		for _, name := range []string{s.Dir(), cgroupfs.containerCgroup(), systemd.containerCgroup(), systemd.containerCgroup()} {
			if used[name] {
				t.Errorf("%s is used twice", name)
			}
			used[name] = true
		}
		if !filepath.IsAbs(s.Dir()) || !filepath.IsAbs(cgroupfs.containerCgroup()) {
			t.Errorf("%s, %s: not absolute", s.Dir(), cgroupfs.containerCgroup())
		}
	}
}
