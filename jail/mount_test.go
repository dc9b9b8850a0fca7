package jail

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/jail/mounts"
)

// hostFolder creates a folder that belongs to another user, with files of that user and of
// a third one.
func hostFolder(t *testing.T) (dir string, source *os.File) {
	t.Helper()
	dir = t.TempDir()
	const owner, third = 4242, 4343
	for _, f := range []struct {
		name  string
		mode  os.FileMode
		owner int
	}{{"file", 0o600, owner}, {"open", 0o666, third}, {"closed", 0o600, third}} {
		path := filepath.Join(dir, f.name)
		if err := errors.Join(os.WriteFile(path, []byte("host's "+f.name+"\n"), f.mode), os.Chmod(path, f.mode), os.Chown(path, f.owner, f.owner)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o755), os.Chown(filepath.Join(dir, "sub"), owner, owner), os.Chown(dir, owner, owner)); err != nil {
		t.Fatal(err)
	}
	source, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { source.Close() })
	return dir, source
}

func TestMountReadOnly(t *testing.T) {
	_, source := hostFolder(t)
	j := newJail(t, func(s *Spec) { s.Mounts = []mounts.Mount{{Source: source, Target: "/work/a/host"}} })
	tries{
		{"cat /work/a/host/file /work/a/host/open", "host's file\nhost's open"},
		{"cat /work/a/host/closed", "cat: can't open '/work/a/host/closed': Permission denied"},
		{"stat -c '%a %u %g' /work/a/host/file /work/a/host/closed", "600 1000 1000\n600 4343 4343"},
		{"echo x >/work/a/host/file", "/bin/sh: can't create /work/a/host/file: Read-only file system"},
		{"touch /work/a/host/new", "touch: /work/a/host/new: Read-only file system"},
		{"busybox mv /work/a/host /work/b", "mv: can't rename '/work/a/host': Device or resource busy"},
	}.check(t, j)
}

func TestMountReadWrite(t *testing.T) {
	dir, source := hostFolder(t)
	j := newJail(t, func(s *Spec) {
		s.Mounts = []mounts.Mount{{Source: source, Target: "/srv/host", Access: mounts.ReadWrite}}
	})
	tries{
		{"echo mine >/srv/host/file && echo new >/srv/host/sub/new && stat -c '%a %u' /srv/host/sub/new", "644 1000"},
		{"busybox ln -s /etc/passwd /srv/host/link && busybox rm /srv/host/open && ls /srv/host", "closed\nfile\nlink\nsub"},
		{"chmod 755 /srv/host/file && chmod 4755 /srv/host/file; stat -c %a /srv/host/file", "chmod: /srv/host/file: Operation not permitted\n755"},
		{"cat /srv/host/../host/closed", "cat: can't open '/srv/host/../host/closed': Permission denied"},
	}.check(t, j)
	for name, want := range map[string]string{"file": "mine\n", "sub/new": "new\n"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		var info unix.Stat_t
		if err := errors.Join(err, unix.Stat(filepath.Join(dir, name), &info)); err != nil || string(text) != want || info.Uid != 4242 {
			t.Errorf("%s is %q of %d, %v", name, text, info.Uid, err)
		}
	}
}

func TestMountCopyOnWrite(t *testing.T) {
	dir, source := hostFolder(t)
	change := func(s *Spec) {
		s.Mounts = []mounts.Mount{{Source: source, Target: "/work/host", Access: mounts.CopyOnWrite}}
	}
	j, other := newJail(t, change), newJail(t, change)
	tries{
		{"echo mine >/work/host/file && busybox rm /work/host/open && mkdir /work/host/sub/d && busybox mv /work/host/sub /work/host/renamed && cat /work/host/file && stat -c '%a %u' /work/host /work/host/file", "mine\n755 1000\n600 1000"},
		{"dd if=/dev/zero of=/work/host/big bs=64k count=15 2>/dev/null; dd if=/dev/zero of=/work/big bs=64k count=15 2>&1 | busybox head -n 1", "dd: error writing '/work/big': No space left on device"},
	}.check(t, j)
	tries{{"cat /work/host/file; ls /work/host /work/host/sub", "host's file\n/work/host:\nclosed\nfile\nopen\nsub\n\n/work/host/sub:"}}.check(t, other)
	text, err := os.ReadFile(filepath.Join(dir, "file"))
	if err != nil || string(text) != "host's file\n" {
		t.Errorf("the host's file is %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "open")); err != nil {
		t.Error(err)
	}
}

func TestMountOneFile(t *testing.T) {
	dir, _ := hostFolder(t)
	source, err := os.OpenFile(filepath.Join(dir, "file"), unix.O_PATH, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	j := newJail(t, func(s *Spec) {
		s.Mounts = []mounts.Mount{{Source: source, Target: "/work/one"}, {Source: source, Target: "/etc/two"}}
	})
	tries{{"cat /work/one /etc/two; echo x >/work/one", "host's file\nhost's file\n/bin/sh: can't create /work/one: Read-only file system"}}.check(t, j)
}

// If only some places are executable, mounts are not: an allowed program, such as a
// loader, could map a file as code.
func TestMountsExecuteNothing(t *testing.T) {
	dir, source := hostFolder(t)
	script := filepath.Join(dir, "script")
	if err := errors.Join(os.WriteFile(script, []byte("#!/bin/sh\necho ran\n"), 0o755), os.Chmod(script, 0o755)); err != nil {
		t.Fatal(err)
	}
	change := func(s *Spec) {
		s.Mounts = []mounts.Mount{
			{Source: source, Target: "/work/ro"}, {Source: source, Target: "/work/rw", Access: mounts.ReadWrite}, {Source: source, Target: "/work/cow", Access: mounts.CopyOnWrite},
			{Source: source, Target: "/listed", Access: mounts.CopyOnWrite},
		}
	}
	list := func(s *Spec) {
		s.NoExec, s.Exec = []Place{tree("/")}, []Place{file("/bin/busybox"), tree("/listed")}
	}
	any, some := newJail(t, change), newJail(t, change, list)
	for _, at := range []string{"/work/ro", "/work/rw", "/work/cow"} {
		tries{{at + "/script", "ran"}}.check(t, any)
		tries{
			{at + "/script", "/bin/sh: " + at + "/script: Permission denied"},
			{"busybox grep -c ' " + at + " .*noexec' /proc/self/mountinfo", "1"},
		}.check(t, some)
	}
	tries{{"/listed/script", "ran"}}.check(t, some)
}

// Mounts in a read-only place keep their own access.
func TestMountsInAReadOnlyPlace(t *testing.T) {
	dir, source := hostFolder(t)
	j := newJail(t, func(s *Spec) {
		s.Mounts = []mounts.Mount{{Source: source, Target: "/work/cow", Access: mounts.CopyOnWrite}, {Source: source, Target: "/work/cow/sub/ro"}, {Source: source, Target: "/work/ro"}}
		s.ReadOnly, s.Writable = []Place{tree("/work")}, []Place{tree("/work/cow")}
	})
	tries{
		{"echo x >/work/x", "/bin/sh: can't create /work/x: Read-only file system"},
		{"echo x >/work/ro/x", "/bin/sh: can't create /work/ro/x: Read-only file system"},
		{"echo x >/work/cow/sub/ro/x", "/bin/sh: can't create /work/cow/sub/ro/x: Read-only file system"},
		{"echo x >/work/cow/x && cat /work/cow/x", "x"},
	}.check(t, j)
	if _, err := os.Stat(filepath.Join(dir, "x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the host's folder has what the guest wrote: %v", err)
	}
}

// A mount in a hidden place is hidden, and so are the folders that lead to it.
func TestMountInAHiddenPlace(t *testing.T) {
	_, source := hostFolder(t)
	j := newJail(t, func(s *Spec) {
		s.Hide = []Place{tree("/work/secret")}
		s.Mounts = []mounts.Mount{{Source: source, Target: "/work/secret/a/host"}}
	})
	tries{{"cat /work/secret/a/host/file", "cat: can't open '/work/secret/a/host/file': Permission denied"}}.check(t, j)
}

// Missing mount points in a ReadWrite mount are created with the guest's rights; the thread
// gets its own rights back for the next mount.
func TestMountBelowAnother(t *testing.T) {
	dir, source := hostFolder(t)
	j := newJail(t, func(s *Spec) {
		s.Mounts = []mounts.Mount{{Source: source, Target: "/work/rw", Access: mounts.ReadWrite}, {Source: source, Target: "/work/rw/sub/a/ro"}, {Source: source, Target: "/new/place"}}
		s.Make, s.Files = []Place{tree("/work/rw/made")}, []File{{Path: "/work/rw/b/c", Mode: 0o640, Data: []byte("content")}}
	})
	tries{
		{"cat /work/rw/sub/a/ro/file /new/place/file /work/rw/b/c", "host's file\nhost's file\ncontent"},
		{"cd /work/rw; stat -c '%a %u %g' sub/a made b b/c /new", "755 1000 1000\n755 1000 1000\n755 1000 1000\n640 1000 1000\n755 0 0"},
		{"busybox rmdir /work/rw/sub/a/ro", "rmdir: '/work/rw/sub/a/ro': Device or resource busy"},
	}.check(t, j)
	for _, name := range []string{"sub/a/ro", "made", "b/c"} {
		var info unix.Stat_t
		if err := unix.Lstat(filepath.Join(dir, name), &info); err != nil || info.Uid != 4242 || info.Gid != 4242 {
			t.Errorf("the host's %s is of %d, %v", name, info.Uid, err)
		}
	}
}

func TestMountsRefused(t *testing.T) {
	dir, source := hostFolder(t)
	one, err := os.OpenFile(filepath.Join(dir, "file"), unix.O_PATH, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	proc, err := os.OpenFile("/proc", unix.O_PATH, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	for name, tc := range map[string]struct {
		mount mounts.Mount
		want  error
	}{
		"the root":          {mounts.Mount{Source: source, Target: "/"}, mounts.ErrProtected},
		"over our own":      {mounts.Mount{Source: source, Target: "/usr/libexec"}, mounts.ErrProtected},
		"in /proc":          {mounts.Mount{Source: source, Target: "/proc/self"}, syscall.EBUSY},
		"over /dev":         {mounts.Mount{Source: source, Target: "/dev"}, syscall.EBUSY},
		"relative":          {mounts.Mount{Source: source, Target: "work/x"}, syscall.EINVAL},
		"through a link":    {mounts.Mount{Source: source, Target: "/bin/sh"}, syscall.ELOOP},
		"below a file":      {mounts.Mount{Source: source, Target: "/bin/busybox/x"}, syscall.ENOTDIR},
		"a file on a tree":  {mounts.Mount{Source: one, Target: "/work"}, syscall.EISDIR},
		"a copy of a file":  {mounts.Mount{Source: one, Target: "/work/x", Access: mounts.CopyOnWrite}, syscall.ENOTDIR},
		"what has no owner": {mounts.Mount{Source: proc, Target: "/work/x", Access: mounts.ReadWrite}, ErrNoIDMap},
	} {
		spec := testSpec(t)
		spec.Mounts = []mounts.Mount{tc.mount}
		j, err := Create(t.Context(), spec)
		if err == nil {
			j.Close()
		}
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}
