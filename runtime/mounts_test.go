package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gaol/rootfs"
	"gaol/runtime/internal/sandbox"
	"gaol/vfs"
)

func TestOpenSourceRefuses(t *testing.T) {
	dir := t.TempDir()
	store, link := filepath.Join(dir, "state/store"), filepath.Join(dir, "link")
	if err := errors.Join(os.MkdirAll(filepath.Join(store, "images"), 0o755), os.Mkdir(filepath.Join(dir, "state/store2"), 0o755), os.Symlink(store, link)); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "later/gaol")
	if err := os.Mkdir(filepath.Join(dir, "later"), 0o755); err != nil {
		t.Fatal(err)
	}
	own := []string{link, missing}
	for path, says := range map[string]string{
		store: "it has to do with " + store, store + "/images": "it has to do with", link: "it has to do with", dir + "/state": "it has to do with", dir: "it has to do with",
		dir + "/later": "it has to do with " + missing, // the guest could create it
		"/":            "all that the host has",
		"/sys":         "it is sysfs", "/sys/fs/cgroup": "shows the host's kernel", "/proc": "it is proc", "/proc/self": "it is proc", "/dev": "it is in /dev",
		"/dev/null": "neither a folder nor a file", "/dev/pts": "it is devpts",
	} {
		f, err := openSource(path, own)
		if err == nil {
			f.Close()
		}
		if path == "/sys/fs/cgroup" && err != nil && strings.Contains(err.Error(), "it is cgroup2") {
			continue // on a machine with one file system
		}
		if !errors.Is(err, errSource) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", path, err, says)
		}
	}
	for _, path := range []string{dir + "/state/store2", "/dev/shm"} {
		f, err := openSource(path, own)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		f.Close()
	}
}

// With another store in use, the default store cannot be a source either.
func TestOpenSourcesRefusesStores(t *testing.T) {
	other := t.TempDir()
	for _, path := range []string{rootfs.DefaultDir, filepath.Dir(rootfs.DefaultDir), other, sandbox.StateDir, filepath.Dir(sandbox.StateDir)} {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			continue // no runtime exists yet; its parent folder is refused instead
		}
		s := settings{Options: Options{Mounts: []Mount{{Source: path, Target: "/x", Access: ReadWrite}}}, cwd: vfs.Workspace}
		if err := s.setPermissions(s.Permissions); err != nil {
			t.Fatal(err)
		}
		var spec sandbox.Spec
		err := s.openSources(&spec, other)
		open := spec.Mounts
		closeMounts(open)
		if !errors.Is(err, errSource) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestMountUser(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := dir.Chown(0, 61010); err != nil {
		t.Skip("needs root: ", err)
	}
	for _, c := range []struct {
		user *MountUser
		want *sandbox.Owner
	}{
		{nil, nil},
		{&MountUser{UID: 7, GID: 8}, &sandbox.Owner{UID: 7, GID: 8}},
		{&MountUser{UID: 7, GID: 8, Groups: []int{9, 61010}}, &sandbox.Owner{UID: 7, GID: 61010}},
	} {
		got, err := c.user.owner(dir)
		if err != nil || (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%+v: %+v, %v", c.user, got, err)
		}
	}
	for _, u := range []MountUser{{UID: -1}, {GID: -1}, {Groups: []int{1 << 33}}, {UID: 1<<32 - 1}} {
		if _, err := (Options{MountUser: &u}).resolve(); err == nil {
			t.Errorf("%+v is valid", u)
		}
	}
}
