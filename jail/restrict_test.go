package jail

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

// tries are scripts to run as the guest, and their output.
type tries []struct{ script, want string }

func (list tries) check(t *testing.T, j *Jail) {
	t.Helper()
	for _, tc := range list {
		if got := output(t, j, "("+tc.script+") 2>&1; true"); got != tc.want {
			t.Errorf("%s\n got %q\nwant %q", tc.script, got, tc.want)
		}
	}
}

func tree(path string) Place { return Place{Path: path, Tree: true} }

func file(path string) Place { return Place{Path: path} }

// writeScript returns a command that creates an executable script.
func writeScript(path string) string {
	return "echo 'echo ran' | busybox sed '1i#!/bin/sh' >" + path + "; chmod 755 " + path + "; "
}

// A jail can hide everything but a few places.
func TestHideAllButSome(t *testing.T) {
	j := newJail(t, func(s *Spec) {
		s.Hide = []Place{tree("/")}
		s.Show = []Place{tree("/bin"), file("/etc/gaol/note"), tree("/work")}
		s.Layer = append(s.Layer, File{Path: "/etc/gaol/other", Mode: 0o644}, File{Path: "/srv/x", Mode: 0o644}, File{Path: "/top", Mode: 0o644, Data: []byte("top")})
	})
	tries{
		{"cat /etc/gaol/note", "from the layer"},
		{"cat /etc/gaol/other", "cat: can't open '/etc/gaol/other': Permission denied"},
		{"cat /top", "cat: can't open '/top': Permission denied"},
		{"ls /srv", "ls: can't open '/srv': Permission denied"},
		{"stat /srv/x", "stat: can't stat '/srv/x': Permission denied"},
		{"cat /srv/../top /proc/self/root/top", "cat: can't open '/srv/../top': Permission denied\ncat: can't open '/proc/self/root/top': Permission denied"},
		{"stat -c '%a %u' /srv /top", "0 65534\n0 65534"},
		{"chmod 777 /srv", "chmod: /srv: Operation not permitted"},
		{"echo x >/work/a && cat /work/a", "x"},
		{"ls /tmp", "ls: can't open '/tmp': Permission denied"},
		{"ls /etc /etc/gaol", "/etc:\ngaol\n\n/etc/gaol:\nnote\nother"},
	}.check(t, j)
}

// A hidden place in a guest folder stays hidden, whatever the guest does to the folders
// above it.
func TestHideInsideOwnFolders(t *testing.T) {
	j := newJail(t, func(s *Spec) {
		s.Hide = []Place{tree("/work/secret"), tree("/work/a/b/secret"), file("/work/.env"), tree("/tmp/x/y"), tree("/bin/none")}
	})
	const busy, denied = "Device or resource busy", "Permission denied"
	tries{
		{"ls /work/secret", "ls: can't open '/work/secret': " + denied},
		{"mkdir /work/secret/x", "mkdir: can't create directory '/work/secret/x': " + denied},
		{"echo x >/work/secret/x", "/bin/sh: can't create /work/secret/x: " + denied},
		{"busybox mv /work/secret /work/open", "mv: can't rename '/work/secret': " + busy},
		{"busybox rmdir /work/secret", "rmdir: '/work/secret': " + busy},
		{"chmod 777 /work/secret", "chmod: /work/secret: Operation not permitted"},
		{"cat /work/.env", "cat: can't open '/work/.env': " + denied},
		{"busybox rm -f /work/.env", "rm: can't remove '/work/.env': " + busy},
		{"echo y >/work/f; busybox mv /work/f /work/.env", "mv: can't rename '/work/f': " + busy},
		{"busybox ln /work/.env /work/e", "ln: /work/e: Invalid cross-device link"},
		{"busybox mv /work/a /work/c", "mv: can't rename '/work/a': " + busy},
		{"busybox mv /work/a/b /work/a/c", "mv: can't rename '/work/a/b': " + busy},
		{"busybox mv /tmp/x /tmp/z", "mv: can't rename '/tmp/x': " + busy},
		{"ls /work/a/b/secret", "ls: can't open '/work/a/b/secret': " + denied},
		{"echo mine >/work/a/b/file && cat /work/a/b/file && stat -c '%a %u' /work/a", "mine\n755 1000"},
		{"busybox ln -s /work/secret /work/l && ls /work/l/", "ls: can't open '/work/l/': " + denied},
		{"cd /work/secret", "/bin/sh: cd: line 0: can't cd to /work/secret: " + denied},
		{"cat /proc/self/root/work/secret/x /work/../work/./secret/x", "cat: can't open '/proc/self/root/work/secret/x': " + denied + "\ncat: can't open '/work/../work/./secret/x': " + denied},
		{"ls /bin/none", "ls: can't open '/bin/none': " + denied},
	}.check(t, j)
}

func TestShowInsideOfHidden(t *testing.T) {
	j := newJail(t, func(s *Spec) {
		s.Hide = []Place{tree("/work/secret"), tree("/etc")}
		s.Show = []Place{tree("/work/secret/open/here"), file("/etc/gaol/note")}
	})
	tries{
		{"echo x >/work/secret/open/here/f && cat /work/secret/open/here/f", "x"},
		{"echo x >/work/secret/open/f", "/bin/sh: can't create /work/secret/open/f: Permission denied"},
		{"busybox rmdir /work/secret/open", "rmdir: '/work/secret/open': Permission denied"},
		{"cat /etc/gaol/note; ls /etc /etc/gaol", "from the layer\n/etc:\nls: can't open '/etc': Permission denied\n\n/etc/gaol:\nls: can't open '/etc/gaol': Permission denied"},
		{"ls /work/secret/open", "ls: can't open '/work/secret/open': Permission denied"},
	}.check(t, j)
}

// A guest folder inside a hidden place can still be a working directory.
func TestHideAroundOwnFolder(t *testing.T) {
	j := newJail(t, func(s *Spec) {
		s.Dirs = append(s.Dirs, "/srv/a/own")
		s.Hide = []Place{tree("/srv")}
	})
	tries{
		{"cd /srv/a/own && echo x >x", "/bin/sh: can't create x: Permission denied"},
		{"ls /srv/a /srv/a/own", "/srv/a:\nls: can't open '/srv/a': Permission denied\n\n/srv/a/own:\nls: can't open '/srv/a/own': Permission denied"},
	}.check(t, j)
}

// Hidden folders that lead to a shown place belong to root, even in a folder that everyone
// can write to.
func TestShowInsideOfHiddenShared(t *testing.T) {
	j := newJail(t, func(s *Spec) {
		s.Hide = []Place{tree("/")}
		s.Show = []Place{tree("/bin"), tree("/tmp/a/b/open")}
		s.Make = []Place{tree("/tmp/a/b/open")}
	})
	tries{
		{"stat -c %u /tmp/a /tmp/a/b /tmp/a/b/open", "0\n0\n1000"},
		{"chmod 777 /tmp/a", "chmod: /tmp/a: Operation not permitted"},
		{"echo x >/tmp/a/b/open/x && cat /tmp/a/b/open/x", "x"},
	}.check(t, j)
}

func TestReadOnlyAndNoExec(t *testing.T) {
	j := newJail(t, func(s *Spec) {
		s.ReadOnly = []Place{tree("/work/fixed"), file("/work/f")}
		s.NoExec = []Place{tree("/tmp/noexec")}
		s.Hide, s.Show = []Place{tree("/dev/shm/q")}, []Place{tree("/dev/shm/q/open")}
	})
	tries{
		{"echo x >/work/fixed/x", "/bin/sh: can't create /work/fixed/x: Read-only file system"},
		{"echo x >/work/f", "/bin/sh: can't create /work/f: Read-only file system"},
		{"chmod 777 /work/fixed", "chmod: /work/fixed: Read-only file system"},
		{"busybox mv /work/fixed /work/x", "mv: can't rename '/work/fixed': Device or resource busy"},
		{writeScript("/dev/shm/q/open/script") + "/dev/shm/q/open/script", "/bin/sh: /dev/shm/q/open/script: Permission denied"},
		{writeScript("/work/script") + "/work/script", "ran"},
		{writeScript("/tmp/noexec/script") + "/tmp/noexec/script", "/bin/sh: /tmp/noexec/script: Permission denied"},
		{"busybox mv /tmp/noexec /tmp/x", "mv: can't rename '/tmp/noexec': Device or resource busy"},
	}.check(t, j)
}

// With a list of programs, nothing else can be executed.
func TestExecOnlySome(t *testing.T) {
	j := newJail(t, func(s *Spec) {
		s.NoExec = []Place{tree("/")}
		s.Exec = []Place{file("/bin/busybox"), tree("/work/bin")}
	})
	tries{
		{"/bin/busybox echo ran", "ran"},
		{"/bin/lock", "/bin/sh: /bin/lock: Permission denied"},
		{writeScript("/work/bin/script") + "/work/bin/script", "ran"},
		{"busybox mv /work/bin /work/c", "mv: can't rename '/work/bin': Device or resource busy"},
	}.check(t, j)
	for _, dir := range []string{"/work", "/tmp", "/dev/shm"} {
		tries{{writeScript(dir+"/script") + dir + "/script", "/bin/sh: " + dir + "/script: Permission denied"}}.check(t, j)
	}
}

// The guest can create nothing in a sealed folder.
func TestSealed(t *testing.T) {
	j := newJail(t, func(s *Spec) {
		s.Sealed = []string{"/work"}
		s.Make = []Place{tree("/work/a/mine"), file("/work/file"), tree("/tmp"), tree("/tmp/t")}
		s.Files = []File{{Path: "/work/b/file", Mode: 0o644}}
	})
	tries{
		{"echo x >/work/a/mine/x && echo y >/work/file && echo z >/tmp/t/x && cat /work/a/mine/x /work/file /tmp/t/x", "x\ny\nz"},
		{"stat -c '%a %u' /work /work/a /work/a/mine /work/b /work/file /tmp /tmp/t", "755 0\n755 0\n755 1000\n755 0\n644 1000\n1777 0\n755 1000"},
		{"busybox rmdir /work/a", "rmdir: '/work/a': Permission denied"},
		{"echo x >/work/x", "/bin/sh: can't create /work/x: Permission denied"},
		{"chmod 777 /work", "chmod: /work: Operation not permitted"},
	}.check(t, j)
}

func TestFiles(t *testing.T) {
	j := newJail(t, func(s *Spec) {
		s.Files = []File{{Path: "/work/a/b/c", Mode: 0o640, Data: []byte("content")}, {Path: "/work/a/b/run", Mode: 0o755, Data: []byte("#!/bin/sh\necho ran\n")}, {Path: "/etc/motd", Mode: 0o644, Data: []byte("hi")}}
		s.ReadOnly, s.Writable = []Place{tree("/work")}, []Place{tree("/work/a/free")}
	})
	tries{
		{"cat /work/a/b/c; echo; stat -c '%a %u' /work/a /work/a/b/c /work/a/b/run", "content\n755 1000\n640 1000\n755 1000"},
		{"/work/a/b/run; cat /etc/motd", "ran\nhi"},
		{"echo x >/work/a/b/c", "/bin/sh: can't create /work/a/b/c: Read-only file system"},
		{"echo x >/work/a/free/x && cat /work/a/free/x", "x"},
		{"busybox mv /work/a/free /work/a/x", "mv: can't rename '/work/a/free': Read-only file system"},
	}.check(t, j)
}

func TestPlaceErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Spec)
		want   syscall.Errno
	}{
		"a link":            {func(s *Spec) { s.Hide = []Place{file("/bin/cat")} }, syscall.ELOOP},
		"below a file":      {func(s *Spec) { s.Hide = []Place{tree("/bin/busybox/x")} }, syscall.ENOTDIR},
		"a file as a tree":  {func(s *Spec) { s.ReadOnly = []Place{tree("/bin/busybox")} }, syscall.ENOTDIR},
		"a file on a link":  {func(s *Spec) { s.Files = []File{{Path: "/bin/cat"}} }, syscall.ELOOP},
		"a file for a tree": {func(s *Spec) { s.Files = []File{{Path: "/bin"}} }, syscall.EISDIR},
		"a folder as one":   {func(s *Spec) { s.ReadOnly = []Place{file("/bin")} }, syscall.EISDIR},
	} {
		spec := testSpec(t)
		tc.change(&spec)
		j, err := Create(t.Context(), spec)
		if err == nil {
			j.Close()
		}
		if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), "/bin") {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}
