package jail

import (
	"errors"
	"os"
	"slices"
	"testing"
)

// Each container has its own state root. It is an absolute path, because a runtime may change its
// working directory.
func TestStateRoot(t *testing.T) {
	for _, r := range []OCIRuntime{{Path: "/bin/runc"}, {Path: "/bin/runc", SystemdCgroup: true}} {
		args := r.command("/run/gaol/oci/j1", "kill", "id")
		at := slices.Index(args, "--root")
		if at < 0 || args[at+1] != "/run/gaol/oci/j1/state" {
			t.Errorf("%q, want the container's state root", args)
		}
		if slices.Contains(args, "--systemd-cgroup") != r.SystemdCgroup {
			t.Errorf("%q with SystemdCgroup %t", args, r.SystemdCgroup)
		}
	}
	t.Chdir(t.TempDir())
	f, err := os.Create("1.slot")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	j := &container{Jail: &Jail{identity: &Identity{file: f, cgroupParent: "/"}, spec: Spec{OCI: &OCIRuntime{Path: "/bin/false"}}}}
	if _, err := j.create(t.Context(), nil); !errors.Is(err, errRelative) {
		t.Errorf("%v, want %v", err, errRelative)
	}
}
