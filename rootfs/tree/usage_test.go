package tree

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestUsage(t *testing.T) {
	const mib = 1 << 20
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.MkdirAll(path("a/deep"), 0o755), os.Mkdir(path("b"), 0o755),
		os.WriteFile(path("a/deep/one"), make([]byte, mib), 0o644), os.Link(path("a/deep/one"), path("a/link")),
		os.WriteFile(path("a/shared"), make([]byte, 2*mib), 0o644), os.Link(path("a/shared"), path("b/shared")),
		os.WriteFile(path("b/holes"), nil, 0o644), os.Truncate(path("b/holes"), 1<<40),
		os.Symlink("/", path("b/root")))
	if err != nil {
		t.Fatal(err)
	}
	u := Usage{}
	for _, tc := range []struct {
		dir          string
		taken, freed int64 // MiB
	}{
		{"a", 3, 1}, {"b", 0, 2}, {"missing", 0, 0}, {"a/deep/one", 0, 0},
	} {
		taken, freed, err := u.Add(path(tc.dir))
		if err != nil || taken/mib != tc.taken || freed/mib != tc.freed {
			t.Errorf("%s: %d bytes, %d freed, %v; want %d MiB, %d freed", tc.dir, taken, freed, err, tc.taken, tc.freed)
		}
	}
	if taken, freed, err := (Usage{}).Add(path("b/shared")); err != nil || taken/mib != 2 || freed != 0 {
		t.Errorf("a file: %d, %d, %v", taken, freed, err)
	}
}

// TestUsageOfMounts checks that other file systems below a folder do not count.
func TestUsageOfMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a mount needs root")
	}
	dir := t.TempDir()
	mount := filepath.Join(dir, "gaol-test-mount") // package doctor compares mounts
	if err := os.Mkdir(mount, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", mount, "tmpfs", 0, "size=4m"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	if err := os.WriteFile(filepath.Join(mount, "file"), make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	if taken, _, err := (Usage{}).Add(dir); err != nil || taken >= 1<<20 {
		t.Errorf("%d, %v", taken, err)
	}
	if taken, _, err := (Usage{}).Add(mount); err != nil || taken < 1<<20 {
		t.Errorf("the mount itself: %d, %v", taken, err)
	}
}
