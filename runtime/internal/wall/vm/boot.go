package vm

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/kernel"
)

// Boot makes this process, the first one of a virtual machine, ready to be an agent. It returns the connection to the host.
func Boot() (net.Conn, error) {
	for _, s := range []struct {
		name string
		run  func() error
	}{
		{"mount", func() error { return mountAll("", early) }},
		{"load modules", loadModules},
		{"mount", func() error { return mountAll(newRoot, tops) }},
		{"mount images", mountImages},
		{"switch to the new root", switchRoot},
		{"mount", func() error { return mountAll("", late) }},
		{"set limits", setLimits},
	} {
		if err := s.run(); err != nil {
			return nil, fmt.Errorf("boot: %s: %w", s.name, err)
		}
	}
	file, err := openPort()
	if err != nil {
		return nil, fmt.Errorf("boot: open the serial port: %w", err)
	}
	if _, err := file.WriteString(ready); err != nil {
		return nil, fmt.Errorf("boot: write to the serial port: %w", err)
	}
	return port{file}, nil
}

// Stop ends the machine: QEMU ends instead of restarting it.
func Stop() error {
	return os.NewSyscallError("reboot", unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART))
}

// mount is a file system without a source.
type mount struct {
	at, kind, data string
	flags          uintptr
}

const safe = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// newRoot is where the new root is prepared: the first one, the initramfs, cannot be replaced by pivot_root(2).
const newRoot = "/new"

// The mounts, in their order.
var (
	early = []mount{{"/proc", "proc", "", safe}, {"/sys", "sysfs", "", safe}, {"/dev", "devtmpfs", "", unix.MS_NOSUID | unix.MS_NOEXEC}}
	tops  = []mount{{"", "tmpfs", "mode=755", 0}}
	late  = []mount{
		{"/dev/pts", "devpts", "ptmxmode=666", unix.MS_NOSUID | unix.MS_NOEXEC},
		{"/tmp", "tmpfs", "mode=1777", unix.MS_NOSUID | unix.MS_NODEV},
		{"/run", "tmpfs", "mode=755", unix.MS_NOSUID | unix.MS_NODEV},
		{"/sys/fs/cgroup", "cgroup2", "", safe},
	}
)

// mountAll mounts file systems on folders below root, which it makes.
func mountAll(root string, list []mount) error {
	for _, m := range list {
		at := root + m.at
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, at, m.kind, m.flags, m.data); err != nil {
			return &os.PathError{Op: "mount", Path: at, Err: err}
		}
	}
	return nil
}

// loadModules loads the kernel's modules in the order of their files' names.
func loadModules() error {
	const dir = "/modules"
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err == nil {
			err = os.NewSyscallError(e.Name(), unix.FinitModule(int(f.Fd()), "", 0))
			f.Close()
		}
		if err != nil {
			return err
		}
	}
	return os.RemoveAll(dir) // they are in memory
}

// mountImages mounts the disks.
func mountImages() error {
	disks, err := filepath.Glob("/sys/block/vd*")
	if err != nil {
		return err
	}
	found := map[string]string{}
	for _, d := range disks {
		name, err := os.ReadFile(d + "/serial")
		if err != nil {
			return err
		}
		found[strings.TrimSpace(string(name))] = filepath.Base(d)
	}
	for i := range len(found) {
		at := newRoot + imagePath(i)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("/dev/"+found[diskName(i)], at, "erofs", unix.MS_RDONLY|unix.MS_NODEV, ""); err != nil {
			return &os.PathError{Op: "mount", Path: at, Err: err}
		}
	}
	return nil
}

// switchRoot moves all mounts to the new root, and makes that the root of all threads.
func switchRoot() error {
	for _, m := range early {
		if err := os.Mkdir(newRoot+m.at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.at, newRoot+m.at, "", unix.MS_MOVE, ""); err != nil {
			return os.NewSyscallError("move", err)
		}
	}
	if err := os.Chdir(newRoot); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return os.NewSyscallError("move", err)
	}
	if err := unix.Chroot("."); err != nil {
		return os.NewSyscallError("chroot", err)
	}
	return os.Chdir("/")
}

// maxFiles bounds the descriptors of the agent, and Limits.OpenFiles.
const maxFiles = 1 << 20

// setLimits raises the limits that the kernel sets for its first process.
func setLimits() error {
	return os.NewSyscallError("setrlimit", unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: maxFiles, Max: maxFiles}))
}

// connectTime is how long the host may take to connect the serial port.
const connectTime = 10 * time.Second

// openPort opens the serial port of the agent once the host has connected it: before, reads report its end.
func openPort() (*os.File, error) {
	for end := time.Now().Add(kernel.Timeout(connectTime)); time.Now().Before(end); time.Sleep(time.Millisecond) {
		names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			text, err := os.ReadFile(n)
			if err != nil || strings.TrimSpace(string(text)) != portName {
				continue
			}
			f, err := os.OpenFile("/dev/"+filepath.Base(filepath.Dir(n)), os.O_RDWR, 0)
			if err != nil {
				return nil, err
			}
			events, err := kernfile.Poll(int(f.Fd()), unix.POLLOUT, 0)
			if err == nil && events&unix.POLLHUP == 0 {
				return f, nil
			}
			if err := errors.Join(err, f.Close()); err != nil {
				return nil, err
			}
		}
	}
	return nil, fs.ErrNotExist
}

// port is the agent's end of the connection.
type port struct{ *os.File }

// LocalAddr implements [net.Conn].
func (port) LocalAddr() net.Addr { return &net.UnixAddr{Net: "virtio"} }

// RemoteAddr implements [net.Conn].
func (port) RemoteAddr() net.Addr { return &net.UnixAddr{Net: "virtio"} }
