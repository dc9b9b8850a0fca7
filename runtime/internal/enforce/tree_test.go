package enforce

import (
	"os"
	"path/filepath"
	"testing"

	"gaol/policy"
)

func TestMisplaced(t *testing.T) {
	image := t.TempDir()
	for _, dir := range []string{"usr/bin", "etc"} {
		if err := os.MkdirAll(filepath.Join(image, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, target := range map[string]string{"bin": "usr/bin", "usr/bin/sh": "busybox", "root": "/home/node", "out": "/nosuch/../../.."} {
		if err := os.Symlink(target, filepath.Join(image, path)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(image, "etc/hosts"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path    string
		tree    bool
		nearest string // "": the path is not misplaced
	}{
		{"/", true, ""}, {"/usr/bin", true, ""}, {"/etc/hosts", false, ""}, {"/nosuch/x", true, ""}, {"/workspace", true, ""},
		{"/bin", true, "/usr/bin/**"}, {"/bin/sh", false, "/usr/bin/sh"}, {"/bin", false, "/usr/bin"}, {"/usr/bin/sh", false, "/usr/bin/busybox"},
		{"/root/x", true, "/home/node/x/**"}, {"/out", true, "/**"},
		{"/etc", false, "/etc/**"}, {"/etc/hosts", true, "/etc/hosts"}, {"/etc/hosts/x", false, "/etc/hosts"},
	} {
		why, nearest := misplaced(image, policy.Place{Path: tc.path, Tree: tc.tree})
		if nearest != tc.nearest || (why == "") != (tc.nearest == "") {
			t.Errorf("%s, tree %v: %q, nearest %q, want %q", tc.path, tc.tree, why, nearest, tc.nearest)
		}
	}
}
