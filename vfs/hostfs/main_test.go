package hostfs

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// modeVar selects another mode of this test binary, see modes.
const modeVar = "GAOL_HOSTFS_TEST"

var modes = map[string]func(args []string) error{
	"race": raceMode,
	"full": fullMode,
}

func TestMain(m *testing.M) {
	if mode := modes[os.Getenv(modeVar)]; mode != nil {
		if err := mode(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	unix.Umask(0o077) // it must have no effect
	before := openFiles()
	code := m.Run()
	if after := openFiles(); after > before+2 { // Go's poller
		fmt.Fprintf(os.Stderr, "%d open files, %d before\n", after, before)
		code = 1
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func openFiles() int {
	fds, _ := os.ReadDir("/proc/self/fd")
	return len(fds)
}

// The ids of the guest in these tests. No user has them.
const (
	testUID = 0x6ff00000 + 1000
	testGID = 0x6ff00000 + 1001
)

var testIDs = IDs{First: 0x6ff00000, Count: 65536}

// newFS returns an FS of a new folder, and the folder, which belongs to the guest.
func newFS(t testing.TB, l Limits) (*FS, string) {
	t.Helper()
	return newFSIn(t, t.TempDir(), l)
}

// newMemoryFS is newFS with the files in memory, like a guest's. It is ten times faster than
// a disk.
func newMemoryFS(t testing.TB, l Limits) (*FS, string) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "gaol-test-")
	if err != nil {
		return newFS(t, l)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return newFSIn(t, dir, l)
}

func newFSIn(t testing.TB, dir string, l Limits) (*FS, string) {
	t.Helper()
	if err := errors.Join(os.Chmod(dir, 0o755), os.Lchown(dir, testUID, testGID)); err != nil {
		t.Fatal(err)
	}
	return openFS(t, dir, l), dir
}

func openFS(t testing.TB, dir string, l Limits) *FS {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("acting as a guest needs root")
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(os.NewFile(uintptr(fd), dir), Options{UID: testUID, GID: testGID, IDs: testIDs, Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// asGuest calls do on the host with the guest's credentials.
func asGuest(t testing.TB, do func() error) {
	t.Helper()
	if err := (credentials{uid: testUID, gid: testGID}).act(do); err != nil {
		t.Fatal(err)
	}
}
