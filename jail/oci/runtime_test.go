package oci

import (
	"errors"
	"slices"
	"testing"
)

// Each container has its own state root. It is an absolute path, because a runtime may change its
// working directory.
func TestStateRoot(t *testing.T) {
	for _, r := range []Runtime{{Path: "/bin/runc"}, {Path: "/bin/runc", SystemdCgroup: true}} {
		args := r.command("/run/gaol/oci/j1", "kill", "id")
		at := slices.Index(args, "--root")
		if at < 0 || args[at+1] != "/run/gaol/oci/j1/state" {
			t.Errorf("%q, want the container's state root", args)
		}
		if slices.Contains(args, "--systemd-cgroup") != r.SystemdCgroup {
			t.Errorf("%q with SystemdCgroup %t", args, r.SystemdCgroup)
		}
	}
	for _, dir := range []string{"", "j1", "./run/j1"} {
		if _, _, err := (&Runtime{Path: "/bin/false"}).Create(t.Context(), nil, dir, "id", Config{}, 0); !errors.Is(err, errRelative) {
			t.Errorf("%q: %v, want %v", dir, err, errRelative)
		}
	}
}
