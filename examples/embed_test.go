package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// goRun runs the program in dir with the given go command and compares its output.
func goRun(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"run"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "sum: 3\n" {
		t.Errorf("%v: %v\n%s", cmd.Args, err, out)
	}
}

// Another module imports gaol by a replace line. If this fails because go.mod needs updates,
// run go mod tidy in examples/embed.
func TestModuleWithReplace(t *testing.T) {
	goRun(t, "embed", "-mod=readonly", ".")
}

// Another module vendors gaol: its C and JavaScript files are vendored, too.
func TestModuleWithVendor(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("embed")); err != nil {
		t.Fatal(err)
	}
	repo, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"mod", "edit", "-replace", "gaol=" + repo},
		{"mod", "vendor"},
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
		}
	}
	goRun(t, dir, "-mod=vendor", "-trimpath", ".")
}
