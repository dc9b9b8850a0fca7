package ociruntime

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const stranger = 12345 // a user's id

// program creates an executable file below a folder.
func program(t *testing.T, path ...string) string {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	f := finder{dir + "/bin", []uint32{0}}
	t.Setenv("PATH", dir+"/path")
	find := func(name, want string) {
		t.Helper()
		if got, err := f.find(name); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %s", name, got, err, want)
		}
	}
	for _, path := range []string{"path/runc", "lib/gaol/runc", "bin/runc"} { // each precedes those before it
		want := program(t, dir, path)
		find("runc", want)
		find("", want)
	}
	program(t, dir, "bin/crun")
	find("crun", program(t, dir, "path/crun"))
	find(dir+"/path/runc", dir+"/path/runc")

	if err := os.Symlink(dir+"/path/crun", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	find(dir+"/link", dir+"/path/crun")
}

func TestFindNothing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for name, wants := range map[string][]string{
		"":         {"runc: ", "make build", "go install -tags seccomp github.com/opencontainers/runc@", "Options.OCI.Runtime"},
		"runc":     {"runc: ", "make build", "go install", "Options.OCI.Runtime"},
		"crun":     {"crun: ", "apt-get install crun", "Options.OCI.Runtime"},
		"runsc":    {`"runsc"`, "want runc, crun or an absolute path"},
		"./runc":   {`"./runc"`, "want runc, crun or an absolute path"},
		"/missing": {"/missing", "no such file or directory"},
	} {
		_, err := finder{dir: t.TempDir()}.find(name)
		if err == nil {
			t.Errorf("%q was found", name)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, which does not contain %q", name, err, want)
			}
		}
	}
}

// Another program of gaol is found beside it, but not in PATH.
func TestBeside(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+"/path")
	f := finder{dir + "/bin", []uint32{0}}
	program(t, dir, "path/engine")
	if got, err := f.beside("engine"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%q, %v, want %v", got, err, fs.ErrNotExist)
	}
	for _, path := range []string{"lib/gaol/engine", "bin/engine"} { // each precedes the one before it
		want := program(t, dir, path)
		if got, err := f.beside("engine"); got != want || err != nil {
			t.Errorf("%q, %v, want %s", got, err, want)
		}
	}
	if err := os.Chmod(dir+"/bin/engine", 0o775); err != nil {
		t.Fatal(err)
	}
	if got, err := f.beside("engine"); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Errorf("%q, %v: a file that others can write was not rejected", got, err)
	}
	got, err := Beside("nats-server")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%q, %v, want %v", got, err, fs.ErrNotExist)
	}
	const want = `find nats-server: file does not exist: put it beside gaol: build it with "make build" or "go install github.com/nats-io/nats-server/v2@v2.15"`
	if got != "" || err.Error() != want {
		t.Errorf("%q, %v, want %s", got, err, want)
	}
}

// Beside looks in the folder of the running executable.
func TestBesideSelf(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want := program(t, filepath.Dir(self), "engine")
	defer os.Remove(want)
	if got, err := Beside("engine"); got != want || err != nil {
		t.Errorf("%q, %v, want %s", got, err, want)
	}
}

// Files that could be another user's program are rejected, and nothing else is used instead.
func TestFindRejects(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+"/path")
	program(t, dir, "path/runc")
	for name, tc := range map[string]struct {
		change func(path string) error
		want   string
	}{
		"other owner":       {func(path string) error { return os.Chown(path, stranger, 0) }, "belongs to user 12345 instead of root"},
		"writable by group": {func(path string) error { return os.Chmod(path, 0o775) }, "chmod go-w"},
		"writable by all":   {func(path string) error { return os.Chmod(path, 0o757) }, "chmod go-w"},
		"not executable":    {func(path string) error { return os.Chmod(path, 0o644) }, "chmod +x"},
		"a folder": {func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o755)
		}, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := program(t, t.TempDir(), "bin/runc")
			f := finder{filepath.Dir(path), []uint32{0}}
			if got, err := f.find("runc"); got != path || err != nil {
				t.Fatalf("before: %q, %v", got, err)
			}
			if err := tc.change(path); err != nil {
				t.Fatal(err)
			}
			for _, asked := range []string{"runc", path} {
				if got, err := f.find(asked); err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s: %q, %v, want %q", asked, got, err, tc.want)
				}
			}
		})
	}
}

// The owner of the running executable may own the runtime, too.
func TestFindOfDeveloper(t *testing.T) {
	path := program(t, t.TempDir(), "runc")
	if err := os.Chown(path, stranger, stranger); err != nil {
		t.Fatal(err)
	}
	if got, err := (finder{filepath.Dir(path), []uint32{0, stranger}}).find(""); got != path || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// The parts of virtual machines are found in PATH, and the kernel beside gaol.
func TestFindMachine(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	var want Machine
	for _, part := range []struct {
		name string
		path *string
		cure string
	}{
		{QEMU, &want.QEMU, "qemu-system-x86"}, {Mkfs, &want.Mkfs, "erofs-utils"}, {Gaol, &want.Gaol, "make build"},
		{"microvm/kernel", &want.Kernel, "make microvm"}, {"microvm/modules.cpio", &want.Modules, "make microvm"},
	} {
		if _, err := FindMachine(); err == nil || !strings.Contains(err.Error(), part.cure) {
			t.Errorf("without %s: %v", part.name, err)
		}
		*part.path = program(t, dir, part.name)
	}
	if got, err := FindMachine(); got != want || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if err := os.Chmod(want.Kernel, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := FindMachine(); err == nil || !strings.Contains(err.Error(), "other users") {
		t.Errorf("a kernel that others can write: %v", err)
	}
}
