package hostfs

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSpecialFiles checks that special files are never opened, and block no operation.
func TestSpecialFiles(t *testing.T) {
	f, dir := newFS(t, Limits{})
	for name, make := range map[string]func(p string) error{
		"fifo":    func(p string) error { return unix.Mkfifo(p, 0o666) },
		"socket":  func(p string) error { return unix.Mknod(p, unix.S_IFSOCK|0o666, 0) },
		"null":    func(p string) error { return unix.Mknod(p, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))) },
		"tty":     func(p string) error { return unix.Mknod(p, unix.S_IFCHR|0o666, int(unix.Mkdev(5, 0))) },
		"watchdg": func(p string) error { return unix.Mknod(p, unix.S_IFCHR|0o666, int(unix.Mkdev(10, 130))) },
		"disk":    func(p string) error { return unix.Mknod(p, unix.S_IFBLK|0o666, int(unix.Mkdev(7, 0))) },
	} {
		if err := errors.Join(make(dir+"/"+name), os.Symlink(name, dir+"/link-"+name)); err != nil {
			t.Fatal(err)
		}
		if err := os.Lchown(dir+"/"+name, testUID, testGID); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{"/" + name, "/link-" + name} {
			began := time.Now()
			for op, do := range operations(f, p) {
				switch op {
				case "open", "read", "write", "from r", "append", "chmod":
					if err := do(); !errors.Is(err, ErrSpecial) {
						t.Errorf("%s %s: %v", op, p, err)
					}
				case "readdir", "list", "tar", "untar", "mkdir":
					if err := do(); !errors.Is(err, unix.ENOTDIR) {
						t.Errorf("%s %s: %v", op, p, err)
					}
				}
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("%s took %v", p, took)
			}
		}
	}
	if info, err := f.Stat("/link-fifo"); err != nil || info.Type() != fs.ModeNamedPipe {
		t.Error(info, err)
	}
}

// TestLease checks that a guest's lease on a file, which blocks open(2) for up to 45 seconds,
// blocks no operation.
func TestLease(t *testing.T) {
	f, dir := newFS(t, Limits{})
	if err := f.WriteFile("/file", []byte("abc"), WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	held, err := os.OpenFile(dir+"/file", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if _, err := unix.FcntlInt(held.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := f.ReadFile("/file"); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("%v, want %v", err, unix.EAGAIN)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

// TestKernelFiles checks that no path leads to the kernel's own file systems.
func TestKernelFiles(t *testing.T) {
	f := openFS(t, "/", Limits{})
	for _, p := range []string{"/proc", "/proc/version", "/proc/sys/kernel/hostname", "/sys/kernel", "/dev/pts", "/proc/self/mem"} {
		for name, op := range operations(f, p) {
			if name == "to" || name == "from" || name == "remove" || name == "clear" || name == "symlink" {
				continue // the folder's permissions deny it already
			}
			if err := op(); !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s %s: %v", name, p, err)
			}
		}
	}
	if _, err := f.ReadFile("/proc/self/exe"); err == nil {
		t.Error("a magic link was followed")
	}
	if _, err := f.ReadFile("/proc/self/root/etc/passwd"); !errors.Is(err, unix.ELOOP) {
		t.Error(err)
	}
}
