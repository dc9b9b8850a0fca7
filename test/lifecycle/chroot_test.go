package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/internal/doctor"
	"gaol/runtime"
	"gaol/test/harness"
)

// rootVar is the folder that runChrootedHost makes its root.
const rootVar = "GAOL_TEST_ROOT"

// enterChroot makes a folder that is no mount point the root of this process, with
// everything that the host's root has.
//
// Precondition: the process is in a separate mount namespace.
func enterChroot(dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	entries, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, e := range entries {
		from, to := filepath.Join("/", e.Name()), filepath.Join(dir, e.Name())
		switch e.Type() {
		case os.ModeSymlink:
			target, err := os.Readlink(from)
			if err := errors.Join(err, os.Symlink(target, to)); err != nil {
				return err
			}
		case os.ModeDir:
			if err := errors.Join(os.Mkdir(to, 0o755), unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, "")); err != nil {
				return err
			}
		}
	}
	// Mounts that are made from now on would be visible here.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return err
	}
	return errors.Join(unix.Chroot(dir), os.Chdir("/"))
}

// runChrootedHost runs a program in a jail that is made in a chroot.
func runChrootedHost() {
	all, err := os.Open("/proc/self/mountinfo") // an open file keeps showing the present root
	if err == nil {
		err = enterChroot(os.Getenv(rootVar))
	}
	var before, after []byte
	if err == nil {
		before, err = io.ReadAll(all)
	}
	if err == nil {
		err = runWithMount()
	}
	if err == nil {
		if _, err = all.Seek(0, io.SeekStart); err == nil {
			after, err = io.ReadAll(all)
		}
	}
	for line := range bytes.Lines(after) { // a concurrent test can end mounts by removing their folders
		if !bytes.Contains(before, line) {
			fmt.Printf("new mount: %s", line)
		}
	}
	for _, c := range doctor.Examine(context.Background(), doctor.Options{}).Checks {
		if c.Status == doctor.Missing || c.Name == "root folder" {
			fmt.Printf("%s: %s, %s\n", c.Name, c.Status, c.Detail)
		}
	}
	fmt.Println("done:", err)
}

func runWithMount() error {
	rt, err := runtime.Create(context.Background(), harness.Options(runtime.Options{Mounts: []runtime.Mount{{Source: "/etc", Target: "/data", Access: runtime.CopyOnWrite}}}))
	if err != nil {
		return err
	}
	const code = `require('fs').writeFileSync('/data/new', 'x'); __return(require('fs').readFileSync('/data/new', 'utf8'))`
	res, err := rt.Run(context.Background(), code, runtime.RunOptions{Name: "x.cjs"})
	if err == nil && string(res.Value) != `"x"` {
		err = fmt.Errorf("%s, %s", res.Value, res.Stderr)
	}
	return errors.Join(err, rt.Close(), runtime.CloseIdle())
}

// A host works in a chroot, whose root is no mount point and in which the kernel allows no
// user namespaces. None of its mounts is visible outside.
func TestChroot(t *testing.T) {
	host := hostProgram(t, "chroot")
	host.Env = append(host.Env, rootVar+"="+t.TempDir())
	before := harness.TakeInventory()
	host.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	text, err := host.CombinedOutput()
	if want := "root folder: ok, a chroot; jails mount outside it\ndone: <nil>\n"; err != nil || string(text) != want {
		t.Errorf("%v\n%s", err, text)
	}
	before.CheckLeaks(t)
}
