package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// BinaryVar is the environment variable with the path of the command line to test, as make build has
// built it. Without it, tests build their own.
const BinaryVar = "GAOL_TEST_BINARY"

var binary struct {
	once sync.Once
	dir  string
	err  error
}

// Gaol returns the path of the command line gaol, the only file in its folder, which every user can
// execute. It remains until RunTests returns.
func Gaol(t testing.TB) string {
	t.Helper()
	binary.once.Do(func() { binary.dir, binary.err = installBinary() })
	if binary.err != nil {
		t.Fatal(binary.err)
	}
	return filepath.Join(binary.dir, "gaol")
}

func installBinary() (dir string, err error) {
	// Not in TMPDIR, in which tests must leave nothing.
	if dir, err = os.MkdirTemp("/tmp", "gaol-bin-"); err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return dir, err
	}
	path := filepath.Join(dir, "gaol")
	cmd := exec.Command("go", "build", "-o", path, "gaol/cmd/gaol")
	if built := os.Getenv(BinaryVar); built != "" {
		cmd = exec.Command("install", "-m", "0755", built, path)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return dir, nil
}

// RemoveBinary removes what [Gaol] has created. RunTests calls it.
func RemoveBinary() error {
	if binary.dir == "" {
		return nil
	}
	return os.RemoveAll(binary.dir)
}
