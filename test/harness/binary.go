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
// built it beside gaol-server, runc and nats-server. Without it, tests build their own, which has all commands.
const BinaryVar = "GAOL_TEST_BINARY"

// binaries are the programs in dir, each with the error of its installation.
var binaries struct {
	sync.Mutex
	dir       string
	installed map[string]error
}

// Gaol returns the path of the command line gaol, in a folder that has only gaol and the programs that make build puts beside it. Every user
// can execute it. It remains until RunTests returns.
func Gaol(t testing.TB) string {
	t.Helper()
	if os.Getenv(BinaryVar) != "" {
		beside(t, "gaol-server")
	}
	return binary(t, "gaol", os.Getenv(BinaryVar), "gaol/cmd/gaol")
}

// Runc returns the path of the runc of go.mod's version, in the folder of [Gaol], where gaol finds it.
func Runc(t testing.TB) string {
	t.Helper()
	return beside(t, "runc", "-tags=seccomp", "github.com/opencontainers/runc")
}

// NATS returns the path of the nats-server of go.mod's version, in the folder of [Gaol], where gaol finds it.
func NATS(t testing.TB) string {
	t.Helper()
	return beside(t, "nats-server", "github.com/nats-io/nats-server/v2")
}

// beside installs a program that make build puts beside gaol.
func beside(t testing.TB, name string, build ...string) string {
	t.Helper()
	built := os.Getenv(BinaryVar)
	if built != "" {
		built = filepath.Join(filepath.Dir(built), name)
	}
	return binary(t, name, built, build...)
}

// binary installs a program once: what make build has built, or what go build builds with the arguments.
func binary(t testing.TB, name, built string, build ...string) string {
	t.Helper()
	binaries.Lock()
	defer binaries.Unlock()
	if err := makeBinaries(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(binaries.dir, name)
	err, installed := binaries.installed[name]
	if !installed {
		err = installBinary(path, built, build)
		binaries.installed[name] = err
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func makeBinaries() (err error) {
	if binaries.dir != "" {
		return nil
	}
	binaries.installed = map[string]error{}
	// Not in TMPDIR, in which tests must leave nothing.
	if binaries.dir, err = os.MkdirTemp("/tmp", "gaol-bin-"); err != nil {
		return err
	}
	return os.Chmod(binaries.dir, 0o755)
}

func installBinary(path, built string, build []string) error {
	cmd := exec.Command("go", append([]string{"build", "-o", path}, build...)...)
	if built != "" {
		cmd = exec.Command("install", "-m", "0755", built, path)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}

// RemoveBinary removes what [Gaol], [Runc] and [NATS] have created. RunTests calls it.
func RemoveBinary() error {
	if binaries.dir == "" {
		return nil
	}
	return os.RemoveAll(binaries.dir)
}
