package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClosure(t *testing.T) {
	dirs, err := libraryDirs("/etc/ld.so.conf")
	must(t, err)
	c, err := closureOf("/usr/bin/env", dirs)
	must(t, err)
	if !isLoader(c.loader) {
		t.Errorf("loader %q", c.loader)
	}
	for _, name := range []string{"libc.so.6", "libstdc++.so.6", "libgcc_s.so.1"} {
		if !filepath.IsAbs(c.libs[name]) {
			t.Errorf("%s is at %q", name, c.libs[name])
		}
	}
	if c.libs[filepath.Base(c.loader)] != "" {
		t.Error("the loader is among the libraries, too")
	}
	if _, err := closureOf("/usr/bin/env", []string{t.TempDir()}); !errors.Is(err, errLibrary) {
		t.Errorf("without libraries: %v", err)
	}
	if _, err := closureOf("/etc/passwd", dirs); err == nil {
		t.Error("a text has a closure")
	}
	if s, err := closureOf("/bin/busybox", dirs); err != nil || s.loader != "" || len(s.libs) != 0 {
		t.Errorf("of a static program: %+v, %v", s, err)
	}
}

func TestLibraryNames(t *testing.T) {
	l := &linker{dirs: []string{"/usr/lib"}}
	for _, name := range []string{"../../etc/shadow", "/etc/shadow", "a/b"} {
		if _, _, err := l.find(name); err == nil || errors.Is(err, errLibrary) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIsLoader(t *testing.T) {
	for p, want := range map[string]bool{
		"/lib64/ld-linux-x86-64.so.2":     true,
		"/lib/ld-linux-aarch64.so.1":      true,
		"/usr/lib/ld-linux-aarch64.so.1":  true,
		"/lib/aarch64-linux-gnu/ld-2.so":  true,
		"/lib64/../etc/ld-shadow":         false,
		"/lib64//ld-linux-x86-64.so.2":    false,
		"/etc/shadow":                     false,
		"/lib64/libc.so.6":                false,
		"/libexec/ld-x":                   false,
		"/home/u/ld-linux-x86-64.so.2":    false,
		"lib64/ld-linux-x86-64.so.2":      false,
		"/usr/usr/lib/ld-linux-x86-64.so": false,
	} {
		if isLoader(p) != want {
			t.Errorf("%s: %t", p, !want)
		}
	}
}

func TestLibraryDirs(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"ld.so.conf":     "/first # comment\ninclude conf.d/*.conf nothing/*\nhwcap 0 x\n\nrelative\n/last\n",
		"conf.d/a.conf":  "/a\n",
		"conf.d/b.conf":  "# none\n/b\ninclude " + dir + "/ld.so.conf\n", // a circle
		"conf.d/c.other": "/c\n",
	} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	got, err := libraryDirs(filepath.Join(dir, "ld.so.conf"))
	must(t, err)
	if diff := cmp.Diff([]string{"/first", "/a", "/b"}, got[:3]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Contains(got, "/last") || slices.Contains(got, "/c") || slices.Contains(got, "relative") {
		t.Errorf("got %q", got)
	}
	if dirs, err := libraryDirs(filepath.Join(dir, "none")); err != nil || !slices.Contains(dirs, "/lib64") {
		t.Errorf("without ld.so.conf: %q, %v", dirs, err)
	}
}
