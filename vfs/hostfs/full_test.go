package hostfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inMode runs this test binary in another mode.
func inMode(t testing.TB, mode string, attr *syscall.SysProcAttr, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), modeVar+"="+mode)
	cmd.SysProcAttr = attr
	return cmd
}

// TestFullDisk checks that a file on a full disk has either its old or its new content.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	cmd := inMode(t, "full", &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}, t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// fullMode runs the test in a new mount namespace.
func fullMode(args []string) error {
	dir := args[0]
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=1m,uid=%d,gid=%d", testUID, testGID)); err != nil {
		return err
	}
	root, err := os.Open(dir)
	if err != nil {
		return err
	}
	f, err := New(root, Options{UID: testUID, GID: testGID, IDs: testIDs})
	if err != nil {
		return err
	}
	old, larger := bytes.Repeat([]byte("o"), 600<<10), bytes.Repeat([]byte("n"), 700<<10)
	huge := bytes.Repeat([]byte("h"), 1200<<10)
	if err := f.WriteFile("/file", old, WriteOptions{}); err != nil {
		return err
	}
	var failed error
	check := func(what string, err error) {
		if !errors.Is(err, unix.ENOSPC) {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", what, err), errors.New("the disk should be full"))
		}
		data, err := f.ReadFile("/file")
		if err != nil || !bytes.Equal(data, old) {
			failed = errors.Join(failed, fmt.Errorf("%s: %d bytes that differ from the old ones: %w", what, len(data), err))
		}
		if list, err := f.ReadDir("/"); err != nil || len(list) != 1 && what != "in place" {
			failed = errors.Join(failed, fmt.Errorf("%s left %v: %w", what, list, err))
		}
	}
	check("replace", f.WriteFile("/file", larger, WriteOptions{}))
	check("a new file", f.WriteFile("/new", larger, WriteOptions{}))
	_, err = f.WriteFrom("/file", bytes.NewReader(larger), WriteOptions{})
	check("stream", err)
	check("untar", untarFull(f, larger))
	check("append", f.Append("/file", larger, WriteOptions{}))
	if err := os.Link(dir+"/file", dir+"/other"); err != nil {
		return err
	}
	check("in place", f.WriteFile("/file", huge, WriteOptions{}))
	if err := f.WriteFile("/file", larger, WriteOptions{}); err != nil { // for which there is room
		failed = errors.Join(failed, err)
	}
	data, err := f.ReadFile("/other")
	if !bytes.Equal(data, larger) {
		failed = errors.Join(failed, fmt.Errorf("in place: %d bytes: %w", len(data), err))
	}
	return errors.Join(failed, f.Close())
}

func untarFull(f *FS, data []byte) error {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "half", Size: int64(len(data)), Mode: 0o644})
	if err == nil {
		_, err = w.Write(data)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	_, err = f.Untar(&b, "/", UntarOptions{})
	return err
}
