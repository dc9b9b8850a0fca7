package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gaol/jail/enter"
	"gaol/jail/hostcommand"
	"gaol/jail/zygote"
	"gaol/rootfs"
	"gaol/rootfs/programs"
	"gaol/test/tier"
)

// hidden are the host's files that an image is built from without prebuilt programs.
var hidden = []string{
	"/usr/bin/cc", "/usr/bin/gcc*", "/usr/bin/c99*", "/usr/bin/c89*", "/usr/bin/clang*", "/usr/bin/tcc", "/usr/bin/as",
	"/usr/bin/ld", "/usr/bin/ld.bfd", "/usr/bin/ld.gold", "/usr/bin/*-linux-gnu-gcc*", "/usr/lib/*-linux-gnu/libc.a", "/bin/busybox", "/usr/bin/catatonit",
}

// The binary of make build builds the default image on a machine without a compiler, and without
// the packages catatonit and busybox-static. There is no network either: the downloads are in the store.
// A binary of go build fails there.
func TestImageWithoutCompiler(t *testing.T) {
	tier.Soak(t)
	dir := t.TempDir()
	built, plain := filepath.Join(dir, "gaol"), filepath.Join(dir, "plain")
	run(t, "make", "--no-print-directory", "build", "BIN="+built)
	run(t, "go", "build", "-ldflags=-s", "-o", plain, "./cmd/gaol")
	store := filepath.Join(dir, "store")
	if err := os.Mkdir(store, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "cp", "--archive", filepath.Join(rootfs.DefaultDir, "downloads"), store)
	script, err := filepath.Abs("testdata/compiler.sh")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--mount", "--net", "--propagation", "private", "sh", "-e", script, built, plain, store}
	for _, pattern := range hidden {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, found...)
	}
	out, err := exec.Command("unshare", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	if want := "the host lacks catatonit (static), cc, a static C library, busybox (static)"; !strings.Contains(string(out), want) {
		t.Errorf("go build's binary did not say %q", want)
	}
	checkPrograms(t, store, filepath.Join(dir, "prebuilt/native"))
}

// checkPrograms checks that the image contains the programs in the folder prebuilt, which make build
// embedded.
func checkPrograms(t *testing.T, dir, prebuilt string) {
	t.Helper()
	store, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	image, err := store.Lookup("default")
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		programs.Enter: enter.Path, programs.Zygote: zygote.Path,
		programs.Command: hostcommand.Path, programs.Reaper: enter.Reaper, programs.Busybox: "/usr/bin/busybox",
	} {
		got, err1 := os.ReadFile(filepath.Join(image.Root(), path))
		want, err2 := os.ReadFile(filepath.Join(prebuilt, name))
		if err1 != nil || err2 != nil || !bytes.Equal(got, want) {
			t.Errorf("%s in the image is not the embedded one: %v, %v", path, err1, err2)
		}
	}
}
