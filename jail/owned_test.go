package jail

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/jail/enter"
	"gaol/jail/mounts"
)

// A guest that owns the image changes it everywhere, the changes are in one folder, and the image stays as it is. The
// programs that start its processes stay the image's, and no process becomes root.
func TestOwned(t *testing.T) {
	for name, change := range map[string]func(*Spec){
		"memory": func(*Spec) {}, "disk": onDisk(t, 80<<20, 1000),
	} {
		t.Run(name, func(t *testing.T) { testOwned(t, change) })
	}
}

func testOwned(t *testing.T, change func(*Spec)) {
	image := t.TempDir()
	j := newJail(t, change, func(s *Spec) {
		if err := errors.Join(os.Chmod(image, 0o755), os.CopyFS(image, os.DirFS(s.Image)), os.Chmod(image+enter.Path, 0o711), os.Mkdir(image+"/etc/folder", 0o755)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"kept", "removed", "folder/old"} {
			if err := os.WriteFile(filepath.Join(image, "etc", name), []byte(name+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s.OneOverlay, s.Owned, s.Image = true, true, image
	})
	before := listing(t, image)
	script := strings.Join([]string{
		"set -e; PATH=/bin:/usr/bin",
		"busybox mkdir /app /usr/made; echo a >/app/a; echo b >/usr/made/b",
		"echo changed >>/etc/kept; busybox rm /etc/removed; busybox rm -r /etc/folder; busybox mkdir /etc/folder; echo c >/etc/folder/c",
		"busybox mv /app/a /usr/made/moved; busybox ln -s /nowhere /etc/link; busybox chmod 700 /etc/kept",
		"for f in /usr/libexec/gaol/*; do busybox rm -f $f; echo '#!/bin/false' >$f; done; busybox mv /usr/libexec /usr/other",
		"busybox id -u; busybox grep CapEff /proc/self/status; (echo x >/dev/x) 2>/dev/null || echo denied; echo >/dev/null",
	}, "\n")
	if got := output(t, j, script); got != "1000\nCapEff:\t0000000000000000\ndenied" {
		t.Errorf("got %q", got)
	}
	if got := output(t, j, "/bin/busybox cat /etc/kept /usr/made/moved"); got != "kept\nchanged\na" {
		t.Errorf("the next process read %q", got)
	}
	if after := listing(t, image); after != before {
		t.Errorf("the image had\n%s\nand has\n%s", before, after)
	}
	changes, err := j.Changes()
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Close()
	dir := "/proc/self/fd/" + strconv.Itoa(int(changes.Fd()))
	for name, kind := range map[string]uint32{
		"app": unix.S_IFDIR, "usr/made/b": unix.S_IFREG, "usr/made/moved": unix.S_IFREG, "etc/kept": unix.S_IFREG, "etc/link": unix.S_IFLNK,
		"etc/removed": unix.S_IFCHR, "etc/folder": unix.S_IFDIR, "etc/folder/c": unix.S_IFREG, "app/a": 0, "etc/folder/old": 0, "usr/other": unix.S_IFDIR,
	} {
		var info unix.Stat_t
		err := unix.Lstat(filepath.Join(dir, name), &info)
		if kind == 0 && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil || info.Mode&unix.S_IFMT != kind || kind == unix.S_IFCHR && info.Rdev != 0 {
			t.Errorf("%s: %o, %v", name, info.Mode, err)
		}
	}
	opaque := make([]byte, 1)
	if n, err := unix.Lgetxattr(filepath.Join(dir, "etc/folder"), "trusted.overlay.opaque", opaque); n != 1 || opaque[0] != 'y' {
		t.Errorf("the replaced folder: %q, %v", opaque, err)
	}
}

// listing returns the owners, modes, times and contents of the files of a folder.
func listing(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.Command("sh", "-c", "cd \"$0\" && find . -printf '%p %U %G %m %T@ %l\\n' | sort; find . -type f -print0 | sort -z | xargs -0 md5sum", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// A guest that does not own the image changes its own folders only, and these are recorded, too.
func TestOneOverlay(t *testing.T) {
	j := newJail(t, func(s *Spec) { s.OneOverlay = true })
	if got := output(t, j, "(echo >/etc/a) 2>/dev/null || echo denied; echo >b; (echo >/c) 2>/dev/null || echo denied"); got != "denied\ndenied" {
		t.Errorf("got %q", got)
	}
	changes, err := j.Changes()
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Close()
	if _, err := os.Stat("/proc/self/fd/" + strconv.Itoa(int(changes.Fd())) + "/work/b"); err != nil {
		t.Error(err)
	}
}

// Other trees have no folder of changes, and containers cannot have one.
func TestNoChanges(t *testing.T) {
	if f, err := newJail(t).Changes(); !errors.Is(err, unix.EINVAL) {
		t.Errorf("%v, %v", f, err)
	}
	spec := testSpec(t)
	spec.OneOverlay, spec.OCI = true, &OCIRuntime{}
	if _, err := Create(t.Context(), spec); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

// The entry program is not readable for a guest that owns the image: the kernel lets no process of the
// guest trace it before it has loaded the filter.
func TestOwnedEntryProgram(t *testing.T) {
	j := newJail(t, func(s *Spec) { s.OneOverlay, s.Owned = true, true })
	first, _ := j.HostIDs()
	cmd := exec.Command("/bin/cat", "/dev/fd/3")
	cmd.ExtraFiles = []*os.File{j.program}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(first + mounts.GuestUID), Gid: uint32(first + mounts.GuestGID)}}
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("read %d bytes of %s", len(out), enter.Path)
	}
}
