package cli

import (
	"debug/elf"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go/features"
	"golang.org/x/mod/semver"

	"gaol/internal/ociruntime"
	"gaol/rootfs"
	"gaol/test/harness"
)

// build returns what make build has built. Unless make runs the tests, it runs make build, with
// another binary than bin/gaol.
func build(t *testing.T) string {
	t.Helper()
	if bin := os.Getenv(harness.BinaryVar); bin != "" {
		return bin
	}
	bin := filepath.Join(t.TempDir(), "gaol")
	cmd := exec.Command("make", "build", "BIN="+bin)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

func TestBuild(t *testing.T) {
	bin := build(t)
	t.Run("static", func(t *testing.T) { checkStatic(t, bin) })
	t.Run("without libseccomp", func(t *testing.T) { checkRuns(t, bin) })
	t.Run("gaol-server", func(t *testing.T) { checkStatic(t, filepath.Join(filepath.Dir(bin), "gaol-server")) })
	t.Run("runc", func(t *testing.T) { checkRunc(t, filepath.Join(filepath.Dir(bin), "runc")) })
	t.Run("nats-server", func(t *testing.T) { checkNATS(t, filepath.Join(filepath.Dir(bin), "nats-server")) })
}

// The binary needs no shared library and no dynamic loader.
func checkStatic(t *testing.T, bin string) {
	file, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if libraries, _ := file.ImportedLibraries(); len(libraries) > 0 {
		t.Errorf("it needs %v", libraries)
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("it needs a dynamic loader")
		}
	}
}

// runc is static, supports all features that gaol needs, and is of the version of go.mod, which the advice to
// those without it names, too.
func checkRunc(t *testing.T, bin string) {
	checkStatic(t, bin)
	if _, err := ociruntime.Find(bin); err != nil {
		t.Error(err)
	}
	version := versionOf(t, "github.com/opencontainers/runc")
	if text, err := exec.Command(bin, "--version").Output(); err != nil || !strings.HasPrefix(string(text), "runc version "+version[1:]+"\n") {
		t.Errorf("%s, %v, want %s", text, err, version)
	}
	var got features.Features
	text, err := exec.Command(bin, "features").Output()
	if err := errors.Join(err, json.Unmarshal(text, &got)); err != nil {
		t.Fatal(err)
	}
	if l := got.Linux; !*l.Seccomp.Enabled || !*l.Cgroup.V1 || !*l.Cgroup.V2 {
		t.Errorf("features: %s", text)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := ociruntime.Find(ociruntime.Runc); err == nil || !strings.Contains(err.Error(), "/runc@"+semver.MajorMinor(version)+`"`) {
		t.Errorf("the advice does not name %s: %v", version, err)
	}
}

// versionOf returns the version of a module in go.mod.
func versionOf(t *testing.T, module string) string {
	t.Helper()
	version, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(version))
}

// nats-server is static, and of the version of go.mod.
func checkNATS(t *testing.T, bin string) {
	checkStatic(t, bin)
	if _, err := ociruntime.Find(bin); err != nil {
		t.Error(err)
	}
	want := "nats-server: " + versionOf(t, "github.com/nats-io/nats-server/v2") + "\n"
	if text, err := exec.Command(bin, "--version").Output(); err != nil || string(text) != want {
		t.Errorf("%q, %v, want %q", text, err, want)
	}
}

// enterScript makes the default image the root folder, with the kernel's file systems and
// gaol's own folders, and runs the binary there. The image is Debian without libseccomp.
const enterScript = `
cd "$SCRATCH"
mkdir root
mount -t tmpfs tmpfs root
mkdir root/lower root/upper root/work root/merged
mount --bind "$IMAGE" root/lower
mount -t overlay overlay -o lowerdir=root/lower,upperdir=root/upper,workdir=root/work root/merged
cd root/merged
for dir in proc sys dev run var/lib/gaol; do
	mkdir -p $dir
	mount --rbind /$dir $dir
done
cp "$GAOL" usr/bin/gaol
exec chroot . /usr/bin/gaol run -e 'console.log(6 * 7)'
`

// The binary runs programs where no libseccomp is installed.
func checkRuns(t *testing.T, bin string) {
	store, err := rootfs.Open(rootfs.DefaultDir)
	if err != nil {
		t.Fatal(err)
	}
	image, err := store.Ensure(t.Context(), "", rootfs.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	libraries, _ := filepath.Glob(image.Root() + "/usr/lib/*/libseccomp*")
	if len(libraries) > 0 {
		t.Fatalf("the image has %v", libraries)
	}
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-ec", enterScript)
	cmd.Env = append(os.Environ(), "SCRATCH="+t.TempDir(), "IMAGE="+image.Root(), "GAOL="+bin)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "42" {
		t.Errorf("%v: %s", err, out)
	}
}
