package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gaol/test/tier"
)

// Another module imports gaol by a replace line, and from a vendor folder, which has gaol's C
// and JavaScript files, too.
func TestOtherModule(t *testing.T) {
	tier.Soak(t)
	dir := copyModule(t)
	for _, args := range [][]string{
		{"run", "-mod=mod", "."}, // completes go.mod, as go mod tidy does
		{"mod", "vendor"},
		{"run", "-mod=vendor", "-trimpath", "."},
	} {
		out := goCommand(t, dir, args...)
		if args[0] == "run" && out != "sum: 3\n" {
			t.Errorf("go %v prints %q", args, out)
		}
	}
}

// copyModule copies the module embed, and gaol's own go.sum, so that no checksum has to be
// downloaded.
func copyModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	repo, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS("embed")); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600); err != nil {
		t.Fatal(err)
	}
	goCommand(t, dir, "mod", "edit", "-replace", "gaol="+repo)
	return dir
}

func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}
