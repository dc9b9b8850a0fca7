package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	loader, libraries, err := FindLibraries(t.Context(), "/usr/bin/env")
	must(t, err)
	if !isLoader(loader) {
		t.Errorf("loader %q", loader)
	}
	found := map[string]string{}
	for _, file := range libraries {
		found[filepath.Base(file)] = file
	}
	for _, name := range []string{"libc.so.6", "libstdc++.so.6", "libgcc_s.so.1"} {
		if !filepath.IsAbs(found[name]) {
			t.Errorf("%s is at %q", name, found[name])
		}
	}
	if found[filepath.Base(loader)] != "" {
		t.Error("the loader is among the libraries")
	}
	if _, _, err := FindLibraries(t.Context(), "/etc/passwd"); err == nil {
		t.Error("a text file was accepted")
	}
	if loader, libraries, err := FindLibraries(t.Context(), "/bin/busybox"); err != nil || loader != "" || len(libraries) != 0 {
		t.Errorf("of a static program: %s, %v, %v", loader, libraries, err)
	}
}

// TestMissingLibrary checks the error for a program that needs a library that this machine lacks.
func TestMissingLibrary(t *testing.T) {
	dir := t.TempDir()
	cc := func(args ...string) {
		cmd := exec.Command("cc", append(args, "-x", "c", "-")...)
		cmd.Stdin = strings.NewReader("int missing(void); int main(void) { return missing(); }")
		if args[0] == "-shared" {
			cmd.Stdin = strings.NewReader("int missing(void) { return 0; }")
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("cc: %v: %s", err, out)
		}
	}
	program, library := filepath.Join(dir, "program"), filepath.Join(dir, "libmissing.so")
	cc("-shared", "-o", library)
	cc("-o", program, "-Wl,--no-as-needed,--allow-shlib-undefined,-L"+dir+",-lmissing,--unresolved-symbols=ignore-all")
	must(t, os.Remove(library))
	if _, _, err := FindLibraries(t.Context(), program); err == nil || !strings.Contains(err.Error(), "libmissing.so") {
		t.Error(err)
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
