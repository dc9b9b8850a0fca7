package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"gaol/test/harness"
)

// binDir is where gaol builds the command line.
var binDir string

func TestMain(m *testing.M) {
	var err error
	if binDir, err = os.MkdirTemp("", "gaol-cli-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := harness.RunTests(m)
	os.RemoveAll(binDir)
	os.Exit(code)
}

var buildOnce = sync.OnceValues(func() ([]byte, error) {
	return exec.Command("go", "build", "-o", binDir, "gaol/cmd/gaol").CombinedOutput()
})

// gaol builds the command line once, and returns its path.
func gaol(t testing.TB) string {
	t.Helper()
	if out, err := buildOnce(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(binDir, "gaol")
}
