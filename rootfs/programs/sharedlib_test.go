package programs

import (
	"errors"
	"path/filepath"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	c, err := FindLibraries("/usr/bin/env", "/")
	must(t, err)
	if !isLoader(c.Loader) {
		t.Errorf("loader %q", c.Loader)
	}
	for _, name := range []string{"libc.so.6", "libstdc++.so.6", "libgcc_s.so.1"} {
		if !filepath.IsAbs(c.Libs[name]) {
			t.Errorf("%s is at %q", name, c.Libs[name])
		}
	}
	if c.Libs[filepath.Base(c.Loader)] != "" {
		t.Error("the loader is among the libraries")
	}
	if _, err := FindLibraries("/usr/bin/env", t.TempDir()); !errors.Is(err, ErrLibraryNotFound) {
		t.Errorf("without libraries: %v", err)
	}
	if _, err := FindLibraries("/etc/passwd", "/"); err == nil {
		t.Error("a text file was accepted")
	}
	if s, err := FindLibraries("/bin/busybox", "/"); err != nil || s.Loader != "" || len(s.Libs) != 0 {
		t.Errorf("of a static program: %+v, %v", s, err)
	}
}

func TestLibraryNames(t *testing.T) {
	c := &Closure{root: "/"}
	for _, name := range []string{"../../etc/shadow", "/etc/shadow", "a/b"} {
		if _, _, err := c.find(name); err == nil || errors.Is(err, ErrLibraryNotFound) {
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
