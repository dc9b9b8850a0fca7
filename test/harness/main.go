package harness

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"gaol/runtime"
)

// Main is the TestMain of a package of tests. It exits with the result of RunTests.
func Main(m *testing.M) { os.Exit(RunTests(m)) }

// RunTests runs a package's tests and returns the exit code. It fails if they leave
// anything behind: processes, cgroups, mounts, state, temporary files, descriptors or
// goroutines. It also fails if the files of an image in the store have changed.
func RunTests(m *testing.M) (code int) { return runTests(m, unix.LOCK_SH) }

// MainAlone is Main for tests that measure the machine as a whole. It waits until no other
// package of end-to-end tests runs, which with go test ./... is usually the end. A package
// that starts meanwhile waits for it. With -short it waits for nothing, because these tests begin with tier.Soak.
func MainAlone(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		os.Exit(m.Run())
	}
	os.Exit(runTests(m, unix.LOCK_EX))
}

func runTests(m *testing.M, lock int) int {
	unlock, err := lockMachine(lock)
	if err != nil {
		return fail(err)
	}
	defer unlock()
	temp, err := os.MkdirTemp("", "gaol-test-")
	if err != nil {
		return fail(err)
	}
	// Everything that is left in this folder is from these tests, except the folder of scripts: testscript
	// removes its own with the last script only, which -run may leave out.
	scripts := filepath.Join(temp, "scripts")
	if err := errors.Join(os.Mkdir(scripts, 0o755), os.Setenv("GOTMPDIR", scripts), os.Setenv("TMPDIR", temp)); err != nil {
		return fail(err)
	}
	images, err := listImages(temp)
	if err != nil {
		return fail(err)
	}
	before := TakeInventory()
	code := m.Run()
	if err := runtime.CloseIdle(); err != nil {
		code = fail(err)
	}
	RemoveParent()
	if left := before.leaks(); len(left) > 0 {
		code = fail(fmt.Errorf("left behind:\n  %s", strings.Join(left, "\n  ")))
	}
	if err := images.checkUnchanged(); err != nil {
		code = fail(err)
	}
	if err := errors.Join(os.RemoveAll(temp), RemoveBinary()); err != nil {
		code = fail(err)
	}
	if err := goleak.Find(); err != nil {
		code = fail(err)
	}
	return code
}

func fail(err error) (code int) {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// lockMachine takes the lock that test processes share. A test binary that a test has
// started runs under its parent's lock.
func lockMachine(how int) (unlock func(), err error) {
	if os.Getenv(ParentVar) != "" {
		return func() {}, nil
	}
	f, err := os.OpenFile("/run/gaol-test.lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the tests need root: %w", err)
	}
	for {
		switch err := unix.Flock(int(f.Fd()), how); {
		case err == nil:
			return func() { f.Close() }, nil
		case !errors.Is(err, unix.EINTR):
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}
