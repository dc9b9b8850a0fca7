package mounts

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// guestVar makes this test binary enter a chroot and leave it.
const guestVar = "GAOL_TEST_CHROOT"

// testInChroot is the program of the process in the chroot.
func testInChroot(dir string) {
	if err := testInside(dir); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("done")
	os.Exit(0)
}

// unbindable makes the root a mount that can be copied only after it has become a slave.
const unbindable = "unbindable"

// testInside enters a chroot at dir, in a new mount namespace with shared propagation, and
// tries operations that a chroot forbids.
func testInside(dir string) error {
	propagate := func(flag uintptr) error { return unix.Mount("", "/", "", unix.MS_REC|flag, "") }
	if err := propagate(unix.MS_PRIVATE); err != nil {
		return err
	}
	if os.Getenv(guestVar+"_MOUNTED") != "" {
		if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "proc"), 0o755); err != nil {
		return err
	}
	if err := unix.Mount("/proc", filepath.Join(dir, "proc"), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	if err := propagate(unix.MS_SHARED); err != nil {
		return err
	}
	if os.Getenv(guestVar+"_MOUNTED") == unbindable {
		if err := unix.Mount("", dir, "", unix.MS_UNBINDABLE, ""); err != nil {
			return err
		}
	}
	all, err := os.Open("/proc/self/mountinfo") // describes the root at the time of reading
	if err != nil {
		return err
	}
	defer all.Close()
	before, err := io.ReadAll(all)
	if err != nil {
		return err
	}
	if err := unix.Chroot(dir); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if in, err := InChroot(); err != nil || !in {
		return fmt.Errorf("in a chroot: %v, %w", in, err)
	}
	if err := namespace(); err != unix.EPERM { // the restriction that LeaveChroot lifts
		return fmt.Errorf("a user namespace in a chroot: %w", err)
	}
	if err := OutsideChroot(outside); err != nil {
		return err
	}
	if in, err := InChroot(); err != nil || !in {
		return fmt.Errorf("in a chroot afterwards: %v, %w", in, err)
	}
	if _, err := all.Seek(0, io.SeekStart); err != nil {
		return err
	}
	after, err := io.ReadAll(all)
	for line := range strings.Lines(string(after)) { // a concurrent test can end mounts by removing their folders
		if !bytes.Contains(before, []byte(line)) {
			return fmt.Errorf("new mount: %s", line)
		}
	}
	return err
}

// outside checks the view and the abilities of a thread that has left the chroot.
func outside() error {
	names, err := os.ReadDir("/")
	if err != nil || len(names) != 2 || names[0].Name() != "file" || names[1].Name() != "proc" {
		return fmt.Errorf("the root holds %v, %w", names, err)
	}
	info, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(info)) {
		if at := strings.Fields(line)[4]; at != "/" && at != "/proc" && !strings.HasPrefix(at, "/proc/") {
			return fmt.Errorf("mounted on %s", at)
		}
	}
	if err := unix.Mount("tmpfs", "/proc", "tmpfs", 0, ""); err != nil { // must not propagate
		return err
	}
	return namespace()
}

// namespace creates a user namespace in a child process.
func namespace() error {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	pid, _, errno := unix.RawSyscall(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(syscall.SIGCHLD), 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		for {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	_, err := unix.Wait4(int(pid), nil, 0, nil)
	return err
}

func TestLeave(t *testing.T) {
	for name, mounted := range map[string]string{"folder": "", "mount point": "1", unbindable: unbindable} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), guestVar+"="+dir, guestVar+"_MOUNTED="+mounted)
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != "done\n" {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// Outside of a chroot nothing changes.
func TestLeaveOutsideOfChroot(t *testing.T) {
	if in, err := InChroot(); in || err != nil {
		t.Fatalf("in a chroot: %v, %v", in, err)
	}
	before, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	count := func(text []byte) (n int) {
		for line := range bytes.Lines(text) {
			if !bytes.Contains(line, []byte("/gaol-test-")) { // of a concurrent test
				n++
			}
		}
		return n
	}
	err = OutsideChroot(func() error {
		inside, err := os.ReadFile("/proc/thread-self/mountinfo")
		if err == nil && count(inside) != count(before) {
			err = fmt.Errorf("%d mounts instead of %d", count(inside), count(before))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func BenchmarkLeaveOutsideOfChroot(b *testing.B) {
	done := make(chan error)
	go func() {
		goruntime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS)
		for b.Loop() {
			if err == nil {
				err = LeaveChroot()
			}
		}
		done <- err
	}()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}
