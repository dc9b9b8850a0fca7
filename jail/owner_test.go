package jail

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The guest sees the files of the image, and the files that are created around it, as root's.
func TestSystemFilesBelongToRoot(t *testing.T) {
	if err := CheckOwners(t.TempDir()); err != nil {
		t.Skip(err)
	}
	j := newJail(t, func(s *Spec) {
		s.Dirs = []string{"/work", "/home/guest", "/usr/src/app", "/sealed"}
		s.Sealed = []string{"/sealed"}
		s.Layer = append(s.Layer, File{Path: "/etc/new/file", Mode: 0o644})
	})
	for _, path := range []string{"/", "/tmp", "/home", "/usr", "/usr/src", "/etc", "/etc/new", "/etc/new/file", "/sealed", "/bin", "/bin/sh", "/bin/busybox",
		"/dev", "/dev/null", "/dev/fd", "/dev/shm", "/dev/pts", "/dev/pts/ptmx", "/proc/1"} {
		if got := output(t, j, "stat -c '%u %g' "+path); got != "0 0" {
			t.Errorf("%s belongs to %s", path, got)
		}
	}
	for _, path := range []string{"/work", "/home/guest", "/usr/src/app", "/proc/self"} {
		if got := output(t, j, "stat -L -c '%u %g' "+path); got != "1000 1000" {
			t.Errorf("%s belongs to %s", path, got)
		}
	}
}

// If the image's file system can't map ids, the guest sees its files as owned by uid 65534.
// Everything else is as usual.
func TestImageWithoutIDMap(t *testing.T) {
	at := t.TempDir()
	work := t.TempDir()
	j := newJail(t, func(s *Spec) {
		for _, d := range []string{"upper", "work"} {
			if err := os.Mkdir(filepath.Join(work, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		data := "lowerdir=" + s.Image + ",upperdir=" + work + "/upper,workdir=" + work + "/work"
		if err := unix.Mount("overlay", at, "overlay", 0, data); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(at, 0); err != nil {
				t.Error(err)
			}
		})
		s.Image = at
		s.Dirs = []string{"/work"}
	})
	const script = "stat -c '%u %g' / /tmp /dev/null /work /bin/busybox | busybox tr '\\n' ','; echo x >/work/x && echo x >/tmp/x && cat /work/x"
	if got, want := output(t, j, script), "0 0,0 0,0 0,1000 1000,65534 65534,x"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if err := CheckOwners(at); err == nil {
		t.Error("CheckOwners has nothing to say")
	}
	if err := CheckOwners(t.TempDir()); err != nil {
		t.Error(err)
	}
}
